"""NetworkPolicies: which connections between pods are allowed.

A pod that no policy selects for a direction accepts all its traffic. If policies select it, one rule of one of them must
allow a connection: both the egress of its source and the ingress of its destination, after a Service has been replaced by an
endpoint.

Traffic from the node of a pod (probes, the API server's proxies) is allowed, as is the resolution of names. Pods in the
network of their node are no subjects of policies; as peers they are addresses.

Specified by: k8s.io/api/networking/v1/types.go (NetworkPolicySpec).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final, NamedTuple

from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.base.objects import StoredObject

#: Direction → the field of its rules, and the field of a rule with its peers.
_FIELDS: Final = {"Egress": ("egress", "to"), "Ingress": ("ingress", "from")}


class _Port(NamedTuple):
    """A port that is connected to."""

    pod: StoredObject | None
    """The pod that listens, which may name the port; None if it is none."""
    number: int
    protocol: str


class NetworkPolicies:
    """The policies of a cluster.

    Args:
        cluster: has policies, namespaces and pods.
    """

    def __init__(self, cluster: ClusterAccess) -> None:
        self._cluster = cluster

    def allow(self, source: StoredObject, destination: StoredObject, port: int, protocol: str) -> bool:
        """Reports whether a pod may connect to a port of another pod."""
        return (source["metadata"]["uid"] == destination["metadata"]["uid"]) or (
            self._allows(source, "Egress", destination, _address_of(destination), _Port(destination, port, protocol))
            and self._allows(destination, "Ingress", source, _address_of(source), _Port(destination, port, protocol))
        )

    def allow_address(self, source: StoredObject, address: str, port: int, protocol: str) -> bool:
        """Reports whether a pod may connect to an address that is not that of a pod."""
        return self._allows(source, "Egress", None, address, _Port(None, port, protocol))

    def _allows(self, subject: StoredObject, direction: str, peer: StoredObject | None, address: str, port: _Port) -> bool:
        """Reports whether the policies of a pod allow traffic in a direction.

        Args:
            subject: the pod.
            direction: `Egress` or `Ingress`.
            peer: the pod at the other end; None if it is none.
            address: the address of the other end.
            port: the port that is connected to.
        """
        if subject["spec"].get("hostNetwork"):
            return True
        policies = list(self._policies_for(subject, direction))
        rules, peers = _FIELDS[direction]
        return not policies or any(
            _has_port(rule, port) and self._has_peer(rule.get(peers), policy, peer, address)
            for policy in policies
            for rule in policy["spec"].get(rules) or ()
        )

    def _policies_for(self, pod: StoredObject, direction: str) -> Iterator[StoredObject]:
        """Yields the policies that select a pod for a direction."""
        for policy in self._cluster.list("networking.k8s.io", "networkpolicies", pod["metadata"]["namespace"]):
            selector = from_label_selector(policy["spec"].get("podSelector") or {})
            if direction in (policy["spec"].get("policyTypes") or ()) and selector.matches(pod["metadata"].get("labels")):
                yield policy

    def _has_peer(self, peers: list[StoredObject] | None, policy: StoredObject, pod: StoredObject | None, address: str) -> bool:
        """Reports whether a pod or an address is one of the peers of a rule; without peers a rule has all."""
        return not peers or any(self._is_peer(one, policy, pod, address) for one in peers)

    def _is_peer(self, peer: StoredObject, policy: StoredObject, pod: StoredObject | None, address: str) -> bool:
        """Reports whether a peer of a rule is this pod or this address."""
        block = peer.get("ipBlock")
        if block is not None:
            return _is_in(address, block["cidr"]) and not any(_is_in(address, one) for one in block.get("except") or ())
        if pod is None or pod["spec"].get("hostNetwork"):
            return False
        namespace = pod["metadata"]["namespace"]
        if peer.get("namespaceSelector") is None:
            if namespace != policy["metadata"]["namespace"]:
                return False
        else:
            found = self._cluster.get("", "namespaces", "", namespace)
            labels = found["metadata"].get("labels") if found is not None else None
            if not from_label_selector(peer["namespaceSelector"]).matches(labels):
                return False
        return peer.get("podSelector") is None or from_label_selector(peer["podSelector"]).matches(pod["metadata"].get("labels"))


def _has_port(rule: StoredObject, port: _Port) -> bool:
    """Reports whether a rule is about a port; without ports it is about all."""
    return not rule.get("ports") or any(_is_port(one, port) for one in rule["ports"])


def _is_port(wanted: StoredObject, port: _Port) -> bool:
    """Reports whether a port of a rule, which may be a number, a range or a name, is this port."""
    if wanted.get("protocol", "TCP") != port.protocol:
        return False
    first = wanted.get("port")
    if first is None:
        return True
    if isinstance(first, int):
        return first <= port.number <= (wanted.get("endPort") or first)
    containers = port.pod["spec"]["containers"] if port.pod is not None else ()
    return any(
        one.get("name") == first and one["containerPort"] == port.number and one.get("protocol", "TCP") == port.protocol
        for container in containers
        for one in container.get("ports") or ()
    )


def _is_in(address: str, cidr: str) -> bool:
    """Reports whether an address is in a range; one of another IP family is not."""
    return ipaddress.ip_address(address) in ipaddress.ip_network(cidr, strict=False)


def _address_of(pod: StoredObject) -> str:
    return str((pod.get("status") or {}).get("podIP") or "0.0.0.0")
