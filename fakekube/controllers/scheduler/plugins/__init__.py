"""The default plugins, in the order in which the real scheduler runs them.

Specified by: pkg/scheduler/apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

from fakekube.controllers.scheduler.framework import FilterPlugin, ScorePlugin
from fakekube.controllers.scheduler.plugins.image_locality import ImageLocality
from fakekube.controllers.scheduler.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityScore
from fakekube.controllers.scheduler.plugins.node_affinity import NodeAffinity, NodeAffinityScore
from fakekube.controllers.scheduler.plugins.node_name import NodeName
from fakekube.controllers.scheduler.plugins.node_ports import NodePorts
from fakekube.controllers.scheduler.plugins.node_resources import BalancedAllocation, Fit, LeastAllocated
from fakekube.controllers.scheduler.plugins.node_unschedulable import NodeUnschedulable
from fakekube.controllers.scheduler.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadScore
from fakekube.controllers.scheduler.plugins.taint_toleration import TaintToleration, TaintTolerationScore
from fakekube.controllers.scheduler.plugins.volume_binding import VolumeBinding
from fakekube.controllers.scheduler.plugins.volume_limits import NodeVolumeLimits
from fakekube.controllers.scheduler.plugins.volume_restrictions import VolumeRestrictions
from fakekube.controllers.scheduler.plugins.volume_zone import VolumeZone

__all__ = ["FILTERS", "SCORES"]

FILTERS: tuple[type[FilterPlugin], ...] = (
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

SCORES: tuple[type[ScorePlugin], ...] = (
    TaintTolerationScore,
    NodeAffinityScore,
    LeastAllocated,
    PodTopologySpreadScore,
    InterPodAffinityScore,
    BalancedAllocation,
    ImageLocality,
)
