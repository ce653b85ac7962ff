"""The resolver configuration of a pod: name servers, search list, options.

Specified by: pkg/kubelet/network/dns/dns.go (GetPodDNS, appendDNSConfig); resolv.conf(5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Object = Mapping[str, Any]

#: The address of the Service kube-dns.
CLUSTER_DNS: Final = "10.96.0.10"
#: The name server of the nodes.
_NODE_DNS: Final = "172.18.0.1"


@dataclass(slots=True, frozen=True)
class Resolver:
    """The content of a pod's /etc/resolv.conf."""

    servers: list[str] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"search {' '.join(self.searches)}\n"] if self.searches else []
        lines += [f"nameserver {server}\n" for server in self.servers]
        shown = [f"{name}:{value}" if value else name for name, value in self.options.items()]
        return "".join(lines) + (f"options {' '.join(shown)}\n" if shown else "")


def resolver_of(pod: Object) -> Resolver:
    """Returns the resolver of a pod: that of the cluster or of the node, by dnsPolicy, with its dnsConfig."""
    spec = pod["spec"]
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy == "ClusterFirst" and spec.get("hostNetwork"):
        policy = "Default"
    searches, servers, options = list[str](), list[str](), dict[str, str]()
    if policy in ("ClusterFirst", "ClusterFirstWithHostNet"):
        searches = [f"{pod['metadata']['namespace']}.svc.cluster.local", "svc.cluster.local", "cluster.local"]
        servers, options = [CLUSTER_DNS], {"ndots": "5"}
    elif policy == "Default":
        servers = [_NODE_DNS]
    own = spec.get("dnsConfig") or {}
    searches += own.get("searches") or ()
    servers += own.get("nameservers") or ()
    options |= {one["name"]: one.get("value") or "" for one in own.get("options") or ()}
    return Resolver(list(dict.fromkeys(servers)), list(dict.fromkeys(searches)), options)
