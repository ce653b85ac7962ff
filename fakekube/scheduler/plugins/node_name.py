"""NodeName: a pod that names its node goes there and nowhere else.

Specified by: pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from __future__ import annotations

from fakekube.scheduler.cycle import Cycle
from fakekube.scheduler.framework import Code, FilterPlugin, Status
from fakekube.scheduler.nodeinfo import NodeInfo

__all__ = ["NodeName"]


class NodeName(FilterPlugin):
    """Refuses other nodes than the one that is named."""

    name = "NodeName"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) didn't match the requested node name",), name)

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        wanted = cycle.spec.get("nodeName")
        return cls(wanted) if wanted else None

    def filter(self, node: NodeInfo) -> Status | None:
        return None if node.name == self._wanted else self.refusal
