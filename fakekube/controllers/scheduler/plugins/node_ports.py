"""NodePorts: checks whether the host ports of the pod are free. A port is used per protocol and address.

Specified by: pkg/scheduler/framework/plugins/nodeports/node_ports.go, k8s.io/kube-scheduler/framework/types.go (HostPortInfo).
"""

from __future__ import annotations

from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, Status
from fakekube.controllers.scheduler.nodeinfo import HostPort, NodeInfo

__all__ = ["NodePorts"]

EVERY_ADDRESS = "0.0.0.0"


class NodePorts(FilterPlugin):
    """Rejects nodes on which a host port is in use."""

    name = "NodePorts"
    refusal = Status(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",), name)

    def __init__(self, ports: tuple[HostPort, ...]) -> None:
        self._ports = ports

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        return cls(cycle.pod.host_ports) if cycle.pod.host_ports else None

    def filter(self, node: NodeInfo) -> Status | None:
        in_use = any(_conflict(mine, other) for ports in node.host_ports.values() for other in ports for mine in self._ports)
        return self.refusal if in_use else None


def _conflict(one: HostPort, other: HostPort) -> bool:
    if one[1:] != other[1:]:
        return False
    return one[0] == other[0] or EVERY_ADDRESS in (one[0], other[0])
