"""The default plugins, in the order in which the real scheduler runs them.

Specified by: pkg/scheduler/apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

from typing import Final

from fakekube.controllers.scheduler.framework import FilterPlugin, ScorePlugin
from fakekube.controllers.scheduler.plugins.node import (
    BalancedAllocation,
    Fit,
    ImageLocality,
    LeastAllocated,
    NodeAffinity,
    NodeAffinityScore,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
    TaintTolerationScore,
)
from fakekube.controllers.scheduler.plugins.pods import (
    InterPodAffinity,
    InterPodAffinityScore,
    PodTopologySpread,
    PodTopologySpreadScore,
)
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
