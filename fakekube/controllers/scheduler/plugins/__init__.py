"""The default plugins, in the order in which the real scheduler runs them.

Specified by: pkg/scheduler/apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

from typing import Final

from fakekube.controllers.scheduler.framework import FilterPlugin, ScorePlugin
from fakekube.controllers.scheduler.plugins.dynamic_resources import DynamicResources
from fakekube.controllers.scheduler.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityScore
from fakekube.controllers.scheduler.plugins.node import (
    ImageLocality,
    NodeAffinity,
    NodeAffinityScore,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
    TaintTolerationScore,
)
from fakekube.controllers.scheduler.plugins.node_resources import BalancedAllocation, Fit, LeastAllocated
from fakekube.controllers.scheduler.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadScore
from fakekube.controllers.scheduler.plugins.volume import NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone

__all__ = ["FILTERS", "SCORES"]

FILTERS: Final[tuple[type[FilterPlugin], ...]] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    Fit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeDeclaredFeatures,
)

SCORES: Final[tuple[type[ScorePlugin], ...]] = (
    TaintTolerationScore,
    NodeAffinityScore,
    LeastAllocated,
    PodTopologySpreadScore,
    InterPodAffinityScore,
    BalancedAllocation,
    ImageLocality,
)
