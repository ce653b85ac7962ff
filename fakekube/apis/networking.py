"""The kinds of networking.k8s.io: Ingresses, IngressClasses, NetworkPolicies, ServiceCIDRs and IPAddresses.

An update of an Ingress may keep what the stored object has wrong already: names of secrets, rules of wildcard hosts.

Specified by: pkg/apis/networking (validation, v1/defaults.go), pkg/registry/networking/{ingress,ingressclass}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported, required, too_long
from fakekube.apis.rest.strategy import RevalidatingStrategy, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import ip, names
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation.checks import ABSOLUTE_PATH, domain_prefixed_path, immutable_field, invalid_each, one_of, port
from fakekube.apis.validation.names import dns_subdomain, path_segment
from fakekube.apis.validation.rules import by_declaration, changes, fixed, from_minor, immutable
from fakekube.apis.validation.selectors import label_selector
from fakekube.apis.validation.to_internal import contains_empty, to_internal
from fakekube.apis.well_known import ANNOTATION_INGRESS_CLASS, LABEL_IP_ADDRESS_FAMILY
from fakekube.base.chance import random_uuid
from fakekube.base.objects import Object

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDINGS = ("/..", "/.")
_CONTROLLER_LENGTH = 250


@dataclass(slots=True, frozen=True)
class ValidationOptions:
    """Rules that an update may break because the stored object breaks them already."""

    secret_names: bool = False
    wildcard_rules: bool = False


class IngressStrategy(Strategy):
    """The strategy of ingresses; the class annotation is the deprecated form of ingressClassName."""

    has_status = True
    generation = True
    checks_metadata_again = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = _validate_ingress_spec(spec, ValidationOptions())
        annotation, named = (
            (obj["metadata"].get("annotations") or {}).get(ANNOTATION_INGRESS_CLASS),
            spec.get("ingressClassName"),
        )
        if annotation is not None and named is not None and annotation != named:
            text = "must match `ingressClassName` when both are specified"
            errors.append(invalid(f"annotations.{ANNOTATION_INGRESS_CLASS}", annotation, text))
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_ingress_spec(obj.get("spec") or {}, _validation_options(old.get("spec") or {}))

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        annotated = ANNOTATION_INGRESS_CLASS in (obj["metadata"].get("annotations") or {})
        if old is None and annotated and (obj.get("spec") or {}).get("ingressClassName") is None:
            return [f"annotation \"{ANNOTATION_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []


def _validation_options(old: Object) -> ValidationOptions:
    rules = old.get("rules") or ()
    return ValidationOptions(
        secret_names=any(_secret_name(item.get("secretName", "")) for item in old.get("tls") or ()),
        wildcard_rules=any("*" in rule.get("host", "") and _validate_paths(rule, "") for rule in rules),
    )


def _validate_ingress_spec(spec: Object, options: ValidationOptions) -> list[FieldError]:
    rules, backend, named = spec.get("rules"), spec.get("defaultBackend"), spec.get("ingressClassName")
    errors: list[FieldError] = []
    if not rules and backend is None:
        errors.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _validate_backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules or ()):
        errors += _validate_rule(rule, f"spec.rules[{index}]", options)
    for index, item in enumerate(spec.get("tls") or ()):
        errors += _validate_tls(item, f"spec.tls[{index}]", options)
    if named is not None:
        errors += invalid_each("spec.ingressClassName", named, names.dns_subdomain(named))
    return errors


def _host(host: str) -> list[str]:
    return names.wildcard_subdomain(host) if "*" in host else names.dns_subdomain(host)


def _secret_name(name: str) -> list[str]:
    return names.dns_subdomain(name) if name else []


def _validate_tls(item: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, host in enumerate(item.get("hosts") or ()):
        errors += invalid_each(f"{path}.hosts[{index}]", host, _host(host))
    if not options.secret_names:
        name = item.get("secretName", "")
        errors += invalid_each(f"{path}.secretName", name, _secret_name(name))
    return errors


def _validate_rule(rule: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    host = rule.get("host", "")
    errors: list[FieldError] = []
    if host:
        if addresses.parse_ip(host) is not None:
            errors.append(invalid(f"{path}.host", host, addresses.NOT_AN_ADDRESS))
        errors += invalid_each(f"{path}.host", host, _host(host))
    if "*" in host and options.wildcard_rules:
        return errors
    return errors + _validate_paths(rule, path)


def _validate_paths(rule: Object, path: str) -> list[FieldError]:
    http = rule.get("http")
    if http is None:
        return []
    paths, where = http.get("paths") or (), f"{path}.http.paths"
    errors = [] if paths else [required(where)]
    for index, item in enumerate(paths):
        errors += _validate_path(item, f"{where}[{index}]")
    return errors


def _validate_path(item: Object, path: str) -> list[FieldError]:
    kind, value, where = item.get("pathType"), item.get("path", ""), f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors = one_of(kind, f"{path}.pathType", _PATH_TYPES)
    exact = kind in ("Exact", "Prefix")
    if not value.startswith("/") and (exact or (kind == "ImplementationSpecific" and value)):
        errors.append(invalid(where, value, ABSOLUTE_PATH))
    if exact:
        errors += [invalid(where, value, f"must not contain '{part}'") for part in _BAD_SEQUENCES if part in value]
        endings = [part for part in _BAD_ENDINGS if value.endswith(part)]
        errors += [invalid(where, value, f"cannot end with '{part}'") for part in endings]
    return errors + _validate_backend(item.get("backend") or {}, f"{path}.backend")


def _validate_backend(backend: Object, path: str) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _validate_typed_reference(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = service.get("name", "")
    where = f"{path}.service.name"
    errors = invalid_each(where, name, names.service_name(name)) if name else [required(where)]
    return errors + _validate_service_port(service.get("port") or {}, path)


def _validate_service_port(item: Object, path: str) -> list[FieldError]:
    name, number = item.get("name", ""), item.get("number", 0)
    if name and number:
        return [invalid(path, "", "cannot set both port name & port number")]
    if name:
        return invalid_each(f"{path}.service.port.name", name, names.port_name(name))
    if number:
        return port(number, f"{path}.service.port.number")
    return [required(path, "port name or number is required")]


def _validate_typed_reference(reference: Object, path: str) -> list[FieldError]:
    """Validates a reference with a group, a kind and a name."""
    group = reference.get("apiGroup")
    errors = [] if group is None else invalid_each(f"{path}.apiGroup", group, names.dns_subdomain(group))
    for member in ("kind", "name"):
        where, value = f"{path}.{member}", reference.get(member, "")
        missing = required(where, "" if from_minor(34) else f"{member} is required")
        errors += invalid_each(where, value, names.path_segment(value)) if value else [missing]
    return errors


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    points = _ingress_points(obj)
    old_ips = {point["ip"] for point in _ingress_points(old) if point.get("ip")}
    errors: list[FieldError] = []
    for index, point in enumerate(points):
        path = f"status.loadBalancer.ingress[{index}]"
        ip, hostname = point.get("ip", ""), point.get("hostname", "")
        if ip:
            errors += addresses.legacy_ip(f"{path}.ip", ip, strict=True, old=old_ips)
        if hostname:
            errors += invalid_each(f"{path}.hostname", hostname, names.dns_subdomain(hostname))
            if addresses.parse_ip(hostname) is not None:
                errors.append(invalid(f"{path}.hostname", hostname, addresses.NOT_AN_ADDRESS))
    return errors


def _ingress_points(obj: Object) -> Sequence[Object]:
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()


class _IngressStatusStrategy(StatusStrategy):
    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return [
            text
            for index, point in enumerate(_ingress_points(obj))
            if point.get("ip")
            for text in addresses.ip_warnings(f"status.loadBalancer.ingress[{index}]", point["ip"])
        ]


INGRESS_STATUS = _IngressStatusStrategy(_validate_status)


class IngressClassStrategy(Strategy):
    """The strategy of ingressclasses; the controller of a class is immutable."""

    generation = True

    def default(self, obj: Object) -> None:
        parameters = (obj.get("spec") or {}).get("parameters")
        if parameters is not None:
            parameters.setdefault("scope", "Cluster")

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        controller, parameters = spec.get("controller", ""), spec.get("parameters")
        errors: list[FieldError] = []
        if not names.fits(controller, _CONTROLLER_LENGTH):
            errors.append(too_long("spec.controller", _CONTROLLER_LENGTH))
        errors += domain_prefixed_path(controller, "spec.controller")
        return errors if parameters is None else errors + _validate_parameters(parameters, "spec.parameters")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        new, before = ((each.get("spec") or {}).get("controller", "") for each in (obj, old))
        return [
            *immutable_field(new, before, "spec.controller"),
            *self.validate_metadata(context, obj["metadata"]),
            *self.validate(context, obj),
        ]


def _validate_parameters(reference: Object, path: str) -> list[FieldError]:
    errors = _validate_typed_reference(reference, path)
    scope, namespace = reference.get("scope"), reference.get("namespace")
    if scope is None:
        return [*errors, required(f"{path}.scope")]
    errors += one_of(scope, f"{path}.scope", ("Cluster", "Namespace"), plain=True)
    where = f"{path}.namespace"
    if scope == "Namespace":
        if namespace is None:
            return [*errors, required(where, "`parameters.scope` is set to 'Namespace'")]
        errors += invalid_each(where, namespace, names.dns_label(namespace))
    if scope == "Cluster" and namespace is not None:
        errors.append(forbidden(where, "`parameters.scope` is set to 'Cluster'"))
    return errors


# --- NetworkPolicies ---------------------------------------------------------------------------------------------------
# Specified by: pkg/apis/networking (validation, v1/defaults.go), pkg/registry/networking/networkpolicy.


PROTOCOLS = ("TCP", "UDP", "SCTP")
POLICY_TYPES = ("Ingress", "Egress")

#: (list of rules, list of the peers of a rule)
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


class NetworkPolicyStrategy(Strategy):
    """The strategy of networkpolicies."""

    generation = True
    validated_twice_until = 36

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if contains_empty(context.resource.storage_type.fields["spec"].type, obj["spec"]):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_network_policy_spec(obj.get("spec") or {}, allow_invalid_values=False, old_cidrs=())

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self.validate_changed(context, obj, old)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        old_spec = old.get("spec") or {}
        allow_invalid_values = bool(label_selector(old_spec.get("podSelector"), ""))
        old_cidrs = {cidr for _, block in _blocks(old_spec) for cidr in (block.get("cidr", ""), *(block.get("except") or ()))}
        return _validate_network_policy_spec(
            obj.get("spec") or {}, allow_invalid_values=allow_invalid_values, old_cidrs=old_cidrs
        )

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        warnings: list[str] = []
        for path, block in _blocks(obj.get("spec") or {}):
            warnings += ip.cidr_warnings(f"{path}.cidr", block.get("cidr", ""))
            for index, cidr in enumerate(block.get("except") or ()):
                warnings += ip.cidr_warnings(f"{path}.except[{index}]", cidr)
        return warnings


def _peers(spec: Object) -> Iterator[tuple[str, Object]]:
    """Yields every peer with its path."""
    for rules, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(rules) or ()):
            for position, peer in enumerate(rule.get(peers) or ()):
                yield f"spec.{rules}[{index}].{peers}[{position}]", peer


def _blocks(spec: Object) -> Iterator[tuple[str, Object]]:
    for path, peer in _peers(spec):
        if peer.get("ipBlock") is not None:
            yield f"{path}.ipBlock", peer["ipBlock"]


def _validate_network_policy_spec(spec: Object, *, allow_invalid_values: bool, old_cidrs: Collection[str]) -> list[FieldError]:
    errors = label_selector(spec.get("podSelector"), "spec.podSelector", allow_invalid_values=allow_invalid_values)
    for rules, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(rules) or ()):
            path = f"spec.{rules}[{index}]"
            for position, item in enumerate(rule.get("ports") or ()):
                errors += _validate_port(item, f"{path}.ports[{position}]")
            for position, peer in enumerate(rule.get(peers) or ()):
                errors += _validate_peer(peer, f"{path}.{peers}[{position}]", allow_invalid_values, old_cidrs)
    types: list[Any] = spec.get("policyTypes") or []
    if len(types) > len(POLICY_TYPES):
        return [*errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    wrong = [(index, kind) for index, kind in enumerate(types) if kind not in POLICY_TYPES]
    return errors + [not_supported(f"spec.policyTypes[{index}]", kind, POLICY_TYPES) for index, kind in wrong]


def _validate_port(item: Object, path: str) -> list[FieldError]:
    protocol, number, end = item.get("protocol"), item.get("port"), item.get("endPort")
    errors: list[FieldError] = []
    if protocol is not None and protocol not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    if isinstance(number, int):
        errors += port(number, f"{path}.port")
        if end is not None:
            if end < number:
                shown = end if from_minor(37) else number
                errors.append(invalid(f"{path}.endPort", shown, "must be greater than or equal to `port`"))
            errors += port(end, f"{path}.endPort")
        return errors
    if end is not None:
        state = "specified" if number is None else "non-numeric"
        negation = "not " if number is None else ""
        errors.append(invalid(f"{path}.endPort", end, f"may not be specified when `port` is {negation}{state}"))
    if number is not None:
        errors += invalid_each(f"{path}.port", number, names.port_name(number))
    return errors


def _validate_peer(peer: Object, path: str, allow_invalid_values: bool, old_cidrs: Collection[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    selectors = [name for name in ("podSelector", "namespaceSelector") if peer.get(name) is not None]
    for name in selectors:
        errors += label_selector(peer[name], f"{path}.{name}", allow_invalid_values=allow_invalid_values)
    block = peer.get("ipBlock")
    if block is not None:
        errors += _validate_ip_block(block, f"{path}.ipBlock", old_cidrs)
    if block is None and not selectors:
        errors.append(required(path, "must specify a peer"))
    elif block is not None and selectors:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _validate_ip_block(block: Object, path: str, old_cidrs: Collection[str]) -> list[FieldError]:
    text = block.get("cidr", "")
    if not text:
        return [required(f"{path}.cidr")]
    errors = ip.legacy_cidr(f"{path}.cidr", text, strict=True, old=old_cidrs)
    whole = ip.parse_cidr(text)
    if whole is None:
        return errors
    for index, exception in enumerate(block.get("except") or ()):
        where = f"{path}.except[{index}]"
        errors += ip.legacy_cidr(where, exception, strict=True, old=old_cidrs)
        part = ip.parse_cidr(exception)
        if part is not None and not _strictly_within(part, whole):
            errors.append(invalid(where, exception, "must be a strict subset of `cidr`"))
    return errors


def _strictly_within(part: ip.Network, whole: ip.Network) -> bool:
    """Reports whether a block contains another; their prefixes are compared as written, IPv4-mapped ones among 128 bits."""
    if part.network.version != whole.network.version or whole.mask_size >= part.mask_size:
        return False
    shift = whole.network.max_prefixlen - whole.length
    return int(part.network) >> shift == int(whole.network) >> shift


# --- ServiceCIDRs and IPAddresses --------------------------------------------------------------------------------------
# The server creates one for every cluster IP of a Service, and deletes it with the Service; users can create others.
#
# Specified by: pkg/registry/networking/servicecidr, pkg/apis/networking/validation (ValidateServiceCIDR), pkg/api/servicecidr;
# pkg/registry/networking/ipaddress, pkg/apis/networking/validation (ValidateIPAddress),
# pkg/registry/core/service/ipallocator/ipallocator.go (createIPAddress).


PATH = "spec.cidrs"
_ONE_PER_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class ServiceCIDRStrategy(Strategy):
    """The strategy of servicecidrs. Up to 1.35, and without its gate, a write of the object also writes its status."""

    @property
    def has_status(self) -> bool:  # type: ignore[override]
        return self.emulation.enabled("ServiceCIDRStatusFieldWiping")

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_networks(_cidrs(obj))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        new, before = _cidrs(obj), _cidrs(old)
        if len(new) == len(before):
            return [field.immutable(f"{PATH}[{i}]", new[i]) for i, cidr in enumerate(before) if cidr != new[i]]
        if len(before) == 1 and len(new) == 2:
            errors = [field.immutable(f"{PATH}[0]", new[0])] if new[0] != before[0] else []
            return errors + _validate_networks(new)
        return [field.immutable(PATH, (obj.get("spec") or {}).get("cidrs"))]


SERVICE_CIDR_STATUS = StatusStrategy(keeps_metadata=True, resets=(("metadata",), ("spec",)))


def _cidrs(obj: Object) -> list[str]:
    return obj.get("spec", {}).get("cidrs") or []


def _validate_networks(cidrs: list[str]) -> list[FieldError]:
    if not cidrs:
        return [required(PATH, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid(PATH, {"CIDRs": cidrs}, addresses.AT_MOST_TWO)]
    errors = [error for i, cidr in enumerate(cidrs) for error in ip.cidr(f"{PATH}[{i}]", cidr)]
    networks = [ip.parse_cidr(cidr) for cidr in cidrs]
    families = {network.network.version for network in networks if network}
    if len(cidrs) == 2 and len(families) == 1 and None not in networks:
        errors.append(invalid(PATH, cidrs, _ONE_PER_FAMILY))
    return errors


MANAGED_BY_LABEL = "ipaddress.kubernetes.io/managed-by"
_ALLOCATOR = "ipallocator.k8s.io"

_OWNED_FIELDS: Object = {
    "f:metadata": {"f:labels": {".": {}, f"f:{LABEL_IP_ADDRESS_FAMILY}": {}, f"f:{MANAGED_BY_LABEL}": {}}},
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


class IPAddressStrategy(RevalidatingStrategy):
    """The strategy of ipaddresses."""

    suffixes_names = False

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return [error.detail for error in ip.ip("", name)]

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return validate_parent_reference(obj.get("spec", {}).get("parentRef"), "spec.parentRef")

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _IP_ADDRESS_CHANGES.validate(obj, old)


def _shown_parent(reference: Object | None) -> Object | None:
    return None if reference is None else to_internal("ParentReference", reference)


_IP_ADDRESS_CHANGES = changes(
    "IPAddress", "ValidateIPAddressUpdate", *by_declaration("spec.parentRef", fixed(), (immutable(_shown_parent), 0))
)


def validate_parent_reference(reference: Object | None, path: str) -> list[FieldError]:
    """Validates the reference to the owner of the address (validateIPAddressParentReference)."""
    if reference is None:
        return [required(path)]
    errors: list[FieldError] = []
    group, resource = reference.get("group", ""), reference.get("resource", "")
    name, namespace = reference.get("name", ""), reference.get("namespace", "")
    if group:
        errors += invalid_each(f"{path}.group", group, dns_subdomain(group))
    for member, value in (("resource", resource), ("name", name)):
        where = f"{path}.{member}"
        errors += invalid_each(where, value, path_segment(value)) if value else [required(where)]
    if namespace:
        errors += invalid_each(f"{path}.namespace", namespace, path_segment(namespace))
    return errors


def service_ip_address(context: WriteContext, address: str, service: str) -> Object:
    """Returns the IPAddress of a cluster IP of the Service with this name, in the namespace of the write."""
    now = context.now()
    owner = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "networking.k8s.io/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": _OWNED_FIELDS,
    }
    family = "IPv6" if ip.is_ipv6(address) else "IPv4"
    return {
        "metadata": {
            "name": address,
            "uid": random_uuid(),
            "creationTimestamp": now,
            "labels": {LABEL_IP_ADDRESS_FAMILY: family, MANAGED_BY_LABEL: _ALLOCATOR},
            "managedFields": [owner],
        },
        "spec": {"parentRef": {"resource": "services", "namespace": context.namespace, "name": service}},
    }
