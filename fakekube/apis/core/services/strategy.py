"""The strategy of Services: defaults, fields that the server keeps or clears on update, and their cleanup.

`validation` validates, `types` has the consequences of types, `allocation` allocates addresses and ports.

Specified by: pkg/registry/core/service (strategy.go, storage/storage.go), pkg/apis/core/v1/defaults.go,
pkg/api/service/warnings.go.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apis.core.services.allocation import Allocation, release
from fakekube.apis.core.services.types import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NONE,
    drop_type_dependent_fields,
    externally_accessible,
    needs_cluster_ip,
    needs_health_check,
    node_ports,
)
from fakekube.apis.core.services.validation import (
    TOPOLOGY_HINTS,
    TOPOLOGY_MODE,
    validate_load_balancer_status,
    validate_service,
    validate_service_update,
)
from fakekube.apis.rest.strategy import Finish, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation import names
from fakekube.apis.validation.rules import from_minor
from fakekube.base.objects import Object

_DEFAULT_AFFINITY_SECONDS = 10800


class ServiceStrategy(Strategy):
    """The strategy of services."""

    create_on_update = True
    delete_returns_object = True
    has_status = True

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return names.service_name(name, prefix)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", CLUSTER_IP)
        _default_affinity(spec)
        for item in spec.get("ports") or ():
            if item.get("targetPort") in (None, 0, ""):
                item["targetPort"] = item.get("port", 0)
        if externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        kind = spec["type"]
        if kind in (CLUSTER_IP, "NodePort", LOAD_BALANCER):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind == LOAD_BALANCER:
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for point in obj.get("status", {}).get("loadBalancer", {}).get("ingress") or ():
                if point.get("ip"):
                    point.setdefault("ipMode", "VIP")

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        drop_type_dependent_fields(obj, old)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return validate_service(obj, None)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return validate_service_update(obj, old) + validate_service(obj, old)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return _warnings(obj["spec"], obj["metadata"].get("annotations") or {})

    def canonicalize(self, obj: Object) -> None:
        if obj["spec"].get("type") == EXTERNAL_NAME:
            obj["spec"].pop("internalTrafficPolicy", None)

    def begin_create(self, context: WriteContext, obj: Object) -> Finish:
        spec = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        allocation = Allocation(context, obj, None)
        allocation.begin()
        return allocation.finish

    def begin_update(self, context: WriteContext, obj: Object, old: Object) -> Finish:
        _patch_allocated_values(obj["spec"], old["spec"])
        _normalize_cluster_ips(obj["spec"], old["spec"])
        allocation = Allocation(context, obj, old)
        allocation.begin()
        return allocation.finish

    def after_delete(self, context: WriteContext, old: Object) -> None:
        if context.emulation.minor < 37:  # later ones leave that to the controller
            context.services.remove("", "endpoints", old["metadata"]["namespace"], old["metadata"]["name"])
        release(context, old)


def _default_affinity(spec: Object) -> None:
    affinity = spec.get("sessionAffinity") or "None"
    spec["sessionAffinity"] = affinity
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _DEFAULT_AFFINITY_SECONDS}}


def _patch_allocated_values(spec: Object, old: Object) -> None:
    """Keeps values that the server allocated and the client does not send."""
    if needs_cluster_ip(old) and needs_cluster_ip(spec):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and old.get(field):
                spec[field] = old[field]
    if _has_node_ports(old) and _has_node_ports(spec):
        used = set(node_ports(old)) & set(node_ports(spec))
        by_name = {item.get("name", ""): item.get("nodePort", 0) for item in old.get("ports") or ()}
        for item in spec.get("ports") or ():
            held = by_name.get(item.get("name", ""), 0)
            if not item.get("nodePort") and held and held not in used:
                item["nodePort"] = held
    if needs_health_check(old) and needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort", 0)


def _has_node_ports(spec: Object) -> bool:
    if spec.get("type") == LOAD_BALANCER:
        return spec.get("allocateLoadBalancerNodePorts") in (None, True)
    return spec.get("type") == "NodePort"


def _normalize_cluster_ips(spec: Object, old: Object) -> None:
    """Sets clusterIPs for clients that know only clusterIP."""
    ip, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    old_ip, old_ips = old.get("clusterIP", ""), old.get("clusterIPs") or []
    if old_ips and not ips and ip == old_ip:
        spec["clusterIPs"] = ips = old_ips
    if ip == old_ip or ips != old_ips:
        return
    if old_ip and not ip:
        spec.pop("clusterIPs", None)
    else:
        spec["clusterIPs"] = [ip]


def _warnings(spec: Object, annotations: Object) -> list[str]:
    warnings: list[str] = []
    if TOPOLOGY_HINTS in annotations:
        warnings.append(f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
    kind, external_ips = spec.get("type"), spec.get("externalIPs") or ()
    headless = kind == CLUSTER_IP and spec.get("clusterIP") == NONE
    if spec.get("clusterIP", "") not in ("", NONE):
        for index, ip in enumerate(spec.get("clusterIPs") or ()):
            warnings += addresses.ip_warnings(f"spec.clusterIPs[{index}]", ip)
    if headless and from_minor(34):
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": external_ips,
            "SessionAffinity": spec.get("sessionAffinity") != "None",
        }
        warnings += [f"spec.{field} is ignored for headless services" for field, is_set in ignored.items() if is_set]
    for index, ip in enumerate(external_ips):
        warnings += addresses.ip_warnings(f"spec.externalIPs[{index}]", ip)
    if external_ips and not headless and kind != EXTERNAL_NAME and from_minor(36):
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    return warnings + _load_balancer_warnings(spec) + _warn_of_ignored_fields(spec)


def _load_balancer_warnings(spec: Object) -> list[str]:
    warnings: list[str] = []
    if spec.get("loadBalancerIP"):
        warnings += addresses.ip_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        warnings += addresses.cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", cidr)
    return warnings


def _warn_of_ignored_fields(spec: Object) -> list[str]:
    """Returns warnings about fields that the type ignores, and about deprecated ones."""
    warnings: list[str] = []
    external_name = spec.get("type") == EXTERNAL_NAME
    if external_name and spec.get("externalIPs"):
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not external_name and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose" and from_minor(35):
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    return validate_load_balancer_status(
        obj.get("status", {}).get("loadBalancer", {}),
        old.get("status", {}).get("loadBalancer", {}),
        "status.loadBalancer",
        obj["spec"].get("type", ""),
    )


class _ServiceStatusStrategy(StatusStrategy):
    """The strategy of /status; a PUT for a Service that does not exist creates it without allocation."""

    create_on_update = True

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        points = obj.get("status", {}).get("loadBalancer", {}).get("ingress") or ()
        return [
            text
            for index, point in enumerate(points)
            if point.get("ip")
            for text in addresses.ip_warnings(f"status.loadBalancer.ingress[{index}]", point["ip"])
        ]


STATUS = _ServiceStatusStrategy(_validate_status)
