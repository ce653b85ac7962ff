"""The DNS of the cluster: records of Services, their endpoints and pods, as CoreDNS serves them; the resolvers of pods.

A name is fully qualified here; the search list of a pod is applied by its resolver (`network.Network`).

Specified by: the specification of DNS-based service discovery for Kubernetes (kubernetes/dns); CoreDNS' plugin kubernetes with
`pods insecure`; pkg/kubelet/network/dns/dns.go (GetPodDNS); resolv.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, NamedTuple

from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.validation.ip import parse_ip
from fakekube.base.objects import StoredObject
from fakekube.nodes.addresses import API_SERVER

DOMAIN: Final = "cluster.local"
#: The seconds for which a record may be kept.
TTL: Final = 5


class Record(NamedTuple):
    """A resource record."""

    name: str
    type: str
    """A, AAAA, CNAME, SRV or PTR."""
    data: str

    def __str__(self) -> str:
        return f"{self.name}.\t{TTL}\tIN\t{self.type}\t{self.data}"


def endpoints_of(cluster: ClusterAccess, service: str, namespace: str) -> Iterator[StoredObject]:
    """Yields the EndpointSlices of a Service."""
    for piece in cluster.list("discovery.k8s.io", "endpointslices", namespace):
        if (piece["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service:
            yield piece


def reverse_name(address: str) -> str:
    """Returns the name under which the PTR record of an address is looked up."""
    return ip_address(address).reverse_pointer


def lookup(cluster: ClusterAccess, name: str, kind: str) -> list[Record] | None:
    """Returns the records of a name; None if the name does not exist (NXDOMAIN).

    Args:
        cluster: access to Services, EndpointSlices and pods.
        name: a fully qualified name, without the final dot.
        kind: one of A, AAAA, CNAME, SRV or PTR.
    """
    name = name.rstrip(".").lower()
    if name.endswith(".arpa"):
        return _reverse(cluster, name) if kind == "PTR" else None
    if not name.endswith(f".{DOMAIN}"):
        return None
    labels = name.removesuffix(f".{DOMAIN}").split(".")
    if labels[-1] == "pod" and len(labels) == 3:
        return _pod(name, labels[0], kind)
    if labels[-1] != "svc" or len(labels) < 3:
        return None
    service = cluster.get("", "services", labels[-2], labels[-3])
    if service is None:
        return None
    below = labels[:-3]
    if service["spec"].get("type") == "ExternalName":
        return [Record(name, "CNAME", f"{service['spec']['externalName']}.")] if not below else None
    if len(below) == 2 and below[0].startswith("_"):
        return _services(cluster, service, name, *below) if kind == "SRV" else []
    addresses = _addresses(cluster, service, below)
    if addresses is None:
        return None
    if kind == "SRV":
        return [record for _, record in _ports(cluster, service, name)] if not below else []
    return [Record(name, _type_of(one), one) for one in addresses if _type_of(one) == kind]


def _type_of(address: str) -> str:
    return "AAAA" if ":" in address else "A"


def _pod(name: str, address: str, kind: str) -> list[Record] | None:
    text = address.replace("-", ".") if address.count("-") == 3 else address.replace("-", ":")
    if parse_ip(text) is None:
        return None
    return [Record(name, kind, text)] if _type_of(text) == kind else []


def _is_headless(service: StoredObject) -> bool:
    return service["spec"].get("clusterIP") in (None, "", "None")


def _ready_endpoints(cluster: ClusterAccess, service: StoredObject) -> Iterator[tuple[StoredObject, StoredObject]]:
    """Yields the endpoints that have records, each with its EndpointSlice."""
    metadata = service["metadata"]
    for piece in endpoints_of(cluster, metadata["name"], metadata["namespace"]):
        for one in piece.get("endpoints") or ():
            if (one.get("conditions") or {}).get("ready") is not False:
                yield piece, one


def _label_of(endpoint: StoredObject) -> str:
    """Returns the label of an endpoint: its hostname, or its address with dashes."""
    return str(endpoint.get("hostname") or endpoint["addresses"][0].replace(".", "-").replace(":", "-"))


def _addresses(cluster: ClusterAccess, service: StoredObject, below: list[str]) -> list[str] | None:
    """Returns the addresses of a Service, or of one of its endpoints; None if there is no such endpoint."""
    spec = service["spec"]
    if not _is_headless(service):
        return None if below else list(spec.get("clusterIPs") or [spec["clusterIP"]])
    if len(below) > 1:
        return None
    found = [one for _, one in _ready_endpoints(cluster, service) if not below or _label_of(one) == below[0]]
    if not found:
        return None
    return list(dict.fromkeys(address for one in found for address in one["addresses"]))


def _services(cluster: ClusterAccess, service: StoredObject, name: str, port: str, protocol: str) -> list[Record] | None:
    """Returns the SRV records of a named port; None if there is none."""
    wanted = (port.removeprefix("_"), protocol.removeprefix("_").upper())
    found = [record for key, record in _ports(cluster, service, name) if key == wanted]
    return found or None


def _ports(cluster: ClusterAccess, service: StoredObject, name: str) -> Iterator[tuple[tuple[str, str], Record]]:
    """Yields the SRV records of a Service by name and protocol of the port."""
    metadata = service["metadata"]
    base = f"{metadata['name']}.{metadata['namespace']}.svc.{DOMAIN}"
    if not _is_headless(service):
        for one in service["spec"].get("ports") or ():
            key = (one.get("name", ""), one.get("protocol", "TCP"))
            yield key, Record(name, "SRV", f"0 100 {one['port']} {base}.")
        return
    for piece, endpoint in _ready_endpoints(cluster, service):
        for one in piece.get("ports") or ():
            key = (one.get("name") or "", one.get("protocol") or "TCP")
            yield key, Record(name, "SRV", f"0 100 {one['port']} {_label_of(endpoint)}.{base}.")


def _reverse(cluster: ClusterAccess, name: str) -> list[Record] | None:
    """Returns the PTR record of an address."""
    for service in cluster.list("", "services"):
        spec, metadata = service["spec"], service["metadata"]
        full = f"{metadata['name']}.{metadata['namespace']}.svc.{DOMAIN}."
        if not _is_headless(service):
            if any(reverse_name(one) == name for one in spec.get("clusterIPs") or [spec["clusterIP"]]):
                return [Record(name, "PTR", full)]
            continue
        for _, endpoint in _ready_endpoints(cluster, service) if spec.get("type") != "ExternalName" else ():
            if any(reverse_name(one) == name for one in endpoint["addresses"]):
                return [Record(name, "PTR", f"{_label_of(endpoint)}.{full}")]
    return None


# --- The resolver of a pod --------------------------------------------------------------------------------------------


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


def resolver_of(pod: StoredObject, cluster_dns: str) -> Resolver:
    """Returns the resolver of a pod: that of the cluster or of the node, by dnsPolicy, with its dnsConfig.

    Args:
        pod: the pod.
        cluster_dns: the address of the cluster's DNS server.
    """
    spec = pod["spec"]
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy == "ClusterFirst" and spec.get("hostNetwork"):
        policy = "Default"
    searches, servers, options = list[str](), list[str](), dict[str, str]()
    if policy in ("ClusterFirst", "ClusterFirstWithHostNet"):
        searches = [f"{pod['metadata']['namespace']}.svc.cluster.local", "svc.cluster.local", "cluster.local"]
        servers, options = [cluster_dns], {"ndots": "5"}
    elif policy == "Default":
        servers = [API_SERVER]
    own = spec.get("dnsConfig") or {}
    searches += own.get("searches") or ()
    servers += own.get("nameservers") or ()
    options |= {one["name"]: one.get("value") or "" for one in own.get("options") or ()}
    return Resolver(list(dict.fromkeys(servers)), list(dict.fromkeys(searches)), options)
