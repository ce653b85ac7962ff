"""NodeUnschedulable: only pods that tolerate the taint for unschedulable nodes run on cordoned nodes.

Specified by: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from __future__ import annotations

from fakekube.apimachinery.selectors.taints import tolerates_all
from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo

__all__ = ["NodeUnschedulable"]

TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class NodeUnschedulable(FilterPlugin):
    """Rejects cordoned nodes."""

    name = "NodeUnschedulable"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) were unschedulable",), name)

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        return None if tolerates_all(cycle.spec.get("tolerations") or (), TAINT) else cls()

    def filter(self, node: NodeInfo) -> Status | None:
        return self.refusal if (node.obj.get("spec") or {}).get("unschedulable") else None
