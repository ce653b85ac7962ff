"""Validation of Services, in the order of the real server.

Addresses in fields that were lenient must be canonical unless the stored object has them already.

A Service has one address of one family, or two addresses of both families. The first address is immutable; the second can be
added and removed.

Specified by: pkg/apis/core/validation/validation.go (ValidateService, ValidateServiceCreate, ValidateServiceUpdate);
ValidateServiceClusterIPsRelatedFields and validateUpgradeDowngrade… of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, duplicate, forbidden, invalid, not_supported, required
from fakekube.apis.core.endpoints import validate_endpoint_ip
from fakekube.apis.core.services.types import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    externally_accessible,
    is_headless,
    needs_health_check,
)
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import (
    PROTOCOLS,
    invalid_each,
    label_name,
    one_of,
    port,
    port_or_name,
    repeated_indices,
    required_one_of,
)
from fakekube.apis.validation.objectmeta import validate_labels
from fakekube.base.objects import Object

TYPES = (CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)
_AFFINITIES = ("ClientIP", "None")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_TRAFFIC_DISTRIBUTIONS: tuple[str, ...] = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_MAX_AFFINITY_SECONDS = 86400

TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"

_ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL_NAME = "may not be set for ExternalName services"


def validate_service(obj: Object, old: Object | None) -> list[FieldError]:
    """Validates a new or updated Service, without its metadata."""
    spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
    old_spec: Object = old["spec"] if old else {}
    kind = spec.get("type", "")
    errors = _validate_topology_annotations(annotations)
    if not spec.get("ports") and not is_headless(spec) and kind != EXTERNAL_NAME:
        errors.append(required("spec.ports"))
    errors += _validate_type_and_name(spec, kind)
    errors += _validate_ports(spec.get("ports", ()))
    errors += validate_labels(spec.get("selector") or {}, "spec.selector")
    errors += _validate_affinity(spec)
    errors += validate_cluster_ip_fields(spec, old_spec)
    errors += _validate_external_ips(spec, old_spec)
    errors += required_one_of(kind, "spec.type", TYPES)
    errors += _validate_node_ports(spec)
    errors += _forbid_duplicate_ports(spec)
    errors += _validate_source_ranges(spec, old_spec, annotations, (old or {}).get("metadata", {}).get("annotations") or {})
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != LOAD_BALANCER:
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCER))
    if spec.get("allocateLoadBalancerNodePorts") is None and kind == LOAD_BALANCER:
        errors.append(required("allocateLoadBalancerNodePorts"))
    errors += _validate_load_balancer_class(spec)
    errors += _validate_external_traffic(spec)
    errors += _validate_internal_traffic(spec)
    return errors


def validate_service_update(obj: Object, old: Object) -> list[FieldError]:
    """Validates an update of a Service against the old one."""
    new_spec, old_spec = obj["spec"], old["spec"]
    errors: list[FieldError] = []
    if EXTERNAL_NAME not in (new_spec.get("type"), old_spec.get("type")):
        if not (is_headless(new_spec) and is_headless(old_spec)):
            errors += _validate_cluster_ips_update(new_spec, old_spec)
        if not is_headless(new_spec) and not is_headless(old_spec):
            errors += _validate_families_update(new_spec, old_spec)
    if new_spec.get("type") == old_spec.get("type") == LOAD_BALANCER:
        new_class, old_class = new_spec.get("loadBalancerClass"), old_spec.get("loadBalancerClass")
        if new_class != old_class:
            errors.append(invalid("spec.loadBalancerClass", new_class, _SET_ONCE))
    errors += _validate_load_balancer_class(new_spec)
    new_port, old_port = new_spec.get("healthCheckNodePort", 0), old_spec.get("healthCheckNodePort", 0)
    if needs_health_check(old_spec) and needs_health_check(new_spec) and new_port != old_port:
        errors.append(forbidden("spec.healthCheckNodePort", IMMUTABLE))
    return errors


def _validate_topology_annotations(annotations: Object) -> list[FieldError]:
    mode, hints = annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
    return [invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, detail)]


def _validate_type_and_name(spec: Object, kind: str) -> list[FieldError]:
    if kind in (LOAD_BALANCER, NODE_PORT) and is_headless(spec):
        return [invalid("spec.clusterIPs[0]", NONE, f"may not be set to 'None' for {kind} services")]
    if kind != EXTERNAL_NAME:
        return []
    unwanted = [field for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(field)]
    errors = [forbidden(f"spec.{field}", _NOT_EXTERNAL_NAME) for field in unwanted]
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + invalid_each("spec.externalName", name, names.dns_subdomain(name))


def _validate_ports(ports: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(ports):
        path, name = f"spec.ports[{index}]", item.get("name", "")
        if name:
            errors += invalid_each(f"{path}.name", name, names.dns_label(name))
            if name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{path}.name"))
        errors += port(item.get("port", 0), f"{path}.port")
        errors += required_one_of(item.get("protocol", ""), f"{path}.protocol", PROTOCOLS)
        errors += port_or_name(item.get("targetPort", 0), f"{path}.targetPort")
        if item.get("appProtocol") is not None:
            errors += label_name(item["appProtocol"], f"{path}.appProtocol")
    return errors


def _validate_affinity(spec: Object) -> list[FieldError]:
    affinity, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    errors = required_one_of(affinity, "spec.sessionAffinity", _AFFINITIES)
    path = "spec.sessionAffinityConfig"
    if affinity == "ClientIP":  # the defaults fill the configuration; for "None" they drop it
        errors += _validate_client_ip_affinity(config or {}, path)
    return errors


def _validate_client_ip_affinity(config: Object, path: str) -> list[FieldError]:
    seconds = config["clientIP"]["timeoutSeconds"]
    path = f"{path}.clientIP.timeoutSeconds"
    if 0 < seconds <= _MAX_AFFINITY_SECONDS:
        return []
    return [invalid(path, seconds, f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}")]


def _validate_external_ips(spec: Object, old_spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    old_ips = set(old_spec.get("externalIPs") or ())
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        wrong = addresses.legacy_ip(path, ip, strict=True, old=old_ips)
        errors += wrong or validate_endpoint_ip(ip, path)
    return errors


def _validate_node_ports(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    ports = [(index, item) for index, item in enumerate(spec.get("ports", ())) if item.get("nodePort")]
    if spec.get("type") == CLUSTER_IP:
        detail = "may not be used when `type` is 'ClusterIP'"
        errors += [forbidden(f"spec.ports[{index}].nodePort", detail) for index, _ in ports]
    seen: set[tuple[str, int]] = set()
    for index, item in ports:
        key = (item.get("protocol", ""), item["nodePort"])
        if key in seen:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", item["nodePort"]))
        seen.add(key)
    return errors


def _forbid_duplicate_ports(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, int]] = set()
    for index, item in enumerate(spec.get("ports", ())):
        protocol, number = item.get("protocol", ""), item.get("port", 0)
        if (protocol, number) in seen:
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number, "TargetPort": 0, "NodePort": 0}
            errors.append(duplicate(f"spec.ports[{index}]", shown))
        seen.add((protocol, number))
    return errors


def _validate_source_ranges(spec: Object, old_spec: Object, annotations: Object, old_annotations: Object) -> list[FieldError]:
    ranges, annotation = spec.get("loadBalancerSourceRanges"), annotations.get(_SOURCE_RANGES)
    wrong_type = spec.get("type") != LOAD_BALANCER
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        errors = [forbidden(path, _ONLY_LOAD_BALANCER)] if wrong_type else []
        old_ranges = {value.strip() for value in old_spec.get("loadBalancerSourceRanges") or ()}
        for index, value in enumerate(ranges):
            errors += addresses.legacy_cidr(f"{path}[{index}]", value.strip(), strict=True, old=old_ranges)
        return errors
    if annotation is None:
        return []
    path = f"metadata.annotations[{_SOURCE_RANGES}]"
    errors = [forbidden(path, _ONLY_LOAD_BALANCER)] if wrong_type else []
    if annotation.strip() and annotation != old_annotations.get(_SOURCE_RANGES, ""):
        for value in annotation.split(","):
            errors += addresses.legacy_cidr(path, value.strip(), strict=True)
    return errors


def _validate_load_balancer_class(spec: Object) -> list[FieldError]:
    class_name = spec.get("loadBalancerClass")
    if class_name is None:
        return []
    if spec.get("type") != LOAD_BALANCER:
        return [forbidden("spec.loadBalancerClass", _ONLY_LOAD_BALANCER)]
    return label_name(class_name, "spec.loadBalancerClass")


def _validate_external_traffic(spec: Object) -> list[FieldError]:
    policy, path = spec.get("externalTrafficPolicy", ""), "spec.externalTrafficPolicy"
    errors: list[FieldError] = []
    if externally_accessible(spec):
        errors += required_one_of(policy, path, _TRAFFIC_POLICIES)
    elif policy:
        errors.append(invalid(path, policy, "may only be set for externally-accessible services"))
    number, path = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if needs_health_check(spec):
        errors += port(number, path) if number else [required(path)]
    elif number:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid(path, number, detail))
    return errors


def _validate_internal_traffic(spec: Object) -> list[FieldError]:
    policy, path = spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy"
    errors: list[FieldError] = []
    if policy is not None:
        errors += one_of(policy, path, _TRAFFIC_POLICIES)
    elif spec.get("type") in (NODE_PORT, LOAD_BALANCER, CLUSTER_IP):
        errors.append(required(path))
    distribution = spec.get("trafficDistribution")
    known = _TRAFFIC_DISTRIBUTIONS
    if not features.current().enabled("PreferSameTrafficDistribution"):
        known = _TRAFFIC_DISTRIBUTIONS[:1]
    if distribution is not None and distribution not in known:
        errors.append(not_supported("spec.trafficDistribution", distribution, known, plain=True))
    return errors


def validate_load_balancer_status(status: Object, old_status: Object, path: str, kind: str) -> list[FieldError]:
    """Validates the status of a load balancer."""
    ingress = status.get("ingress") or ()
    path = f"{path}.ingress"
    if kind != LOAD_BALANCER and ingress:
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    old_ips = {item["ip"] for item in old_status.get("ingress") or () if item.get("ip")}
    errors: list[FieldError] = []
    for index, item in enumerate(ingress):
        errors += _validate_ingress_point(item, old_ips, f"{path}[{index}]")
    return errors


def _validate_ingress_point(item: Object, old_ips: Collection[str], path: str) -> list[FieldError]:
    ip, mode, hostname = item.get("ip", ""), item.get("ipMode"), item.get("hostname", "")
    errors = addresses.legacy_ip(f"{path}.ip", ip, strict=True, old=old_ips) if ip else []
    if mode is None:
        if ip:
            errors.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
    elif not ip:
        errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    else:
        errors += one_of(mode, f"{path}.ipMode", _IP_MODES)
    if hostname:
        errors += invalid_each(f"{path}.hostname", hostname, names.dns_subdomain(hostname))
        if addresses.parse_ip(hostname) is not None:
            errors.append(invalid(f"{path}.hostname", hostname, addresses.NOT_AN_ADDRESS))
    return errors


FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")

_SET_ONCE = "may not change once set"


def validate_cluster_ip_fields(spec: Object, old_spec: Object) -> list[FieldError]:
    """Validates clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy, alone and together."""
    if spec.get("type") == EXTERNAL_NAME:
        return []
    ips: list[str] = spec.get("clusterIPs") or []
    families: list[str] = spec.get("ipFamilies") or []
    path = "spec.clusterIPs"
    errors = _validate_first_cluster_ip(spec.get("clusterIP", ""), ips, path)
    repeated = set(repeated_indices(families))
    for index, family in enumerate(families):
        errors += one_of(family, f"spec.ipFamilies[{index}]", FAMILIES)
        if index in repeated:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None:
        errors += one_of(policy, "spec.ipFamilyPolicy", _FAMILY_POLICIES)
    wrong_ips = _validate_each_cluster_ip(ips, old_spec.get("clusterIPs") or (), path)
    errors += wrong_ips
    if len(ips) > 2:
        errors.append(invalid(path, ips, addresses.AT_MOST_TWO))
    if wrong_ips:
        return errors
    if len(ips) > 1 and not _is_dual_stack(ips):
        errors.append(invalid(path, ips, addresses.ONE_OF_EACH_FAMILY))
    return errors if is_headless(spec) else errors + _validate_families_match(ips, families, path)


def _validate_first_cluster_ip(ip: str, ips: list[str], path: str) -> list[FieldError]:
    if not ip:
        return [invalid(path, ips, "must be empty when `clusterIP` is not specified")] if ips else []
    if not ips:
        return [required(path)]
    return [] if ips[0] == ip else [invalid(path, ips, "first value must match `clusterIP`")]


def _validate_each_cluster_ip(ips: list[str], old_ips: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, ip in enumerate(ips):
        if index == 0 and ip == NONE:
            if len(ips) > 1:
                errors.append(invalid(path, ips, "'None' must be the first and only value"))
            continue
        errors += addresses.legacy_ip(f"{path}[{index}]", ip, strict=True, old=old_ips)
    return errors


def _is_dual_stack(ips: Sequence[str]) -> bool:
    return len({addresses.is_ipv6(ip) for ip in ips}) == 2


def _validate_families_match(ips: Sequence[str], families: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
        if family in FAMILIES and (family == "IPv6") != addresses.is_ipv6(ip):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{path}[{index}]", ip, detail))
    return errors


def _validate_cluster_ips_update(spec: Object, old_spec: Object) -> list[FieldError]:
    new, old = spec.get("clusterIPs") or [], old_spec.get("clusterIPs") or []
    if len(new) == len(old):
        changed = [index for index, ip in enumerate(old) if new[index] != ip]
        return [_set_once("clusterIPs", index, new) for index in changed]
    if not new:
        return [invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")]
    errors = [_set_once("clusterIPs", 0, new)] if old and new[0] != old[0] else []
    if len(old) > len(new) == 1:
        errors += _validate_released_address("clusterIP", spec)
    return errors


def _validate_families_update(spec: Object, old_spec: Object) -> list[FieldError]:
    new, old = spec.get("ipFamilies") or [], old_spec.get("ipFamilies") or []
    ips = spec.get("clusterIPs") or None
    if len(new) == len(old):
        return [_set_once("ipFamilies", 0, new) for index, family in enumerate(old) if new[index] != family]
    errors: list[FieldError] = []
    if len(old) > len(new) and not ips:
        errors.append(invalid("spec.ipFamilies[0]", new or None, "primary ipFamily can not be unset"))
    if new and old and new[0] != old[0]:
        errors.append(_set_once("ipFamilies", 0, ips))
    if len(old) > len(new) == 1:
        errors += _validate_released_address("ipFamily", spec)
    return errors


def _set_once(field: str, index: int, value: Any) -> FieldError:
    return invalid(f"spec.{field}[{index}]", value, _SET_ONCE)


def _validate_released_address(what: str, spec: Object) -> list[FieldError]:
    """Returns an error about a removed secondary address unless ipFamilyPolicy is SingleStack."""
    policy = spec.get("ipFamilyPolicy")
    if policy == "SingleStack":
        return []
    return [invalid("spec.ipFamilyPolicy", policy, f"must be set to 'SingleStack' when releasing the secondary {what}")]
