"""What a Service of a type needs, and what a change of the type clears.

Specified by: pkg/api/service/util.go, pkg/registry/core/service/strategy.go (dropTypeDependentFields).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakekube.base.objects import Object

CLUSTER_IP = "ClusterIP"
NODE_PORT = "NodePort"
LOAD_BALANCER = "LoadBalancer"
EXTERNAL_NAME = "ExternalName"
NONE = "None"
"""The cluster IP of a headless service."""
LOCAL = "Local"


def is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == [NONE]


def needs_cluster_ip(spec: Object) -> bool:
    return spec.get("type") != EXTERNAL_NAME


def uses_node_ports(spec: Object) -> bool:
    """Reports whether the type has node ports (allocated or not)."""
    return spec.get("type") in (NODE_PORT, LOAD_BALANCER)


def externally_accessible(spec: Object) -> bool:
    return uses_node_ports(spec) or (spec.get("type") == CLUSTER_IP and bool(spec.get("externalIPs")))


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == LOAD_BALANCER and spec.get("externalTrafficPolicy") == LOCAL


def node_ports(spec: Object) -> list[int]:
    """Returns the node ports that are set, in the order of the ports."""
    return [port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort")]


def drop_type_dependent_fields(obj: Object, old: Object) -> None:
    """Clears fields after a change of type which the server set and the client did not change (dropTypeDependentFields)."""
    new_spec, old_spec = obj["spec"], old["spec"]
    if needs_cluster_ip(old_spec) and not needs_cluster_ip(new_spec):
        if is_same_field(new_spec, old_spec, "clusterIP") and is_same_field(new_spec, old_spec, "clusterIPs"):
            _drop(new_spec, ("clusterIP", "clusterIPs"))
        _drop_same(new_spec, old_spec, ("ipFamilies", "ipFamilyPolicy"))
    unasked = set(node_ports(new_spec)) <= set(node_ports(old_spec))
    if uses_node_ports(old_spec) and not uses_node_ports(new_spec) and unasked:
        for port in new_spec.get("ports", ()):
            port.pop("nodePort", None)
    if needs_health_check(old_spec) and not needs_health_check(new_spec):
        _drop_same(new_spec, old_spec, ("healthCheckNodePort",))
    if old_spec.get("type") == LOAD_BALANCER and new_spec.get("type") != LOAD_BALANCER:
        _drop_same(new_spec, old_spec, ("allocateLoadBalancerNodePorts", "loadBalancerClass"))
    if externally_accessible(old_spec) and not externally_accessible(new_spec):
        _drop_same(new_spec, old_spec, ("externalTrafficPolicy",))
    if new_spec.get("type") != LOAD_BALANCER and obj.get("status", {}).get("loadBalancer"):
        obj["status"] = {**obj["status"], "loadBalancer": {}}


def is_same_field(new: Object, old: Object, field: str) -> bool:
    """Reports whether the values are equal, where absent and empty are equal, and false is a value."""
    return bool(_value(new, field) == _value(old, field))


def _value(spec: Object, field: str) -> Any:
    value = spec.get(field)
    return None if value in ("", 0, []) and value is not False else value


def _drop(spec: Object, fields: Sequence[str]) -> None:
    for field in fields:
        spec.pop(field, None)


def _drop_same(new: Object, old: Object, fields: Sequence[str]) -> None:
    _drop(new, [field for field in fields if is_same_field(new, old, field)])
