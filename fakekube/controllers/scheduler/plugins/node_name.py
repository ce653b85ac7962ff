"""NodeName: restricts a pod to the node in spec.nodeName.

Specified by: pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from __future__ import annotations

from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo

__all__ = ["NodeName"]


class NodeName(FilterPlugin):
    """Rejects all nodes but the one with the name."""

    name = "NodeName"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) didn't match the requested node name",), name)

    def __init__(self, node_name: str) -> None:
        self._node_name = node_name

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        node_name = cycle.spec.get("nodeName")
        return cls(node_name) if node_name else None

    def filter(self, node: NodeInfo) -> Status | None:
        return None if node.name == self._node_name else self.refusal
