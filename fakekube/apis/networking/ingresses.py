"""Ingresses and IngressClasses.

An update may keep what the stored object has wrong already: names of secrets, rules of wildcard hosts.

Specified by: pkg/apis/networking/validation, pkg/registry/networking/{ingress,ingressclass},
pkg/apis/networking/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, required, too_long
from fakekube.apis.rest.strategy import Object, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import domain_prefixed_path, immutable_field, invalid_each, one_of, port
from fakekube.apis.well_known import ANNOTATION_INGRESS_CLASS

PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
BAD_ENDINGS = ("/..", "/.")
NOT_AN_ADDRESS = "must be a DNS name, not an IP address"
CONTROLLER_LENGTH = 250


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
        errors = _spec(spec, ValidationOptions())
        annotation, named = (
            (obj["metadata"].get("annotations") or {}).get(ANNOTATION_INGRESS_CLASS),
            spec.get("ingressClassName"),
        )
        if annotation is not None and named is not None and annotation != named:
            text = "must match `ingressClassName` when both are specified"
            errors.append(invalid(f"annotations.{ANNOTATION_INGRESS_CLASS}", annotation, text))
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _spec(obj.get("spec") or {}, _validation_options(old.get("spec") or {}))

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        annotated = ANNOTATION_INGRESS_CLASS in (obj["metadata"].get("annotations") or {})
        if old is None and annotated and (obj.get("spec") or {}).get("ingressClassName") is None:
            return [f"annotation \"{ANNOTATION_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


def _validation_options(old: Object) -> ValidationOptions:
    rules = old.get("rules") or ()
    return ValidationOptions(
        secret_names=any(_secret_name(item.get("secretName", "")) for item in old.get("tls") or ()),
        wildcard_rules=any("*" in rule.get("host", "") and _paths(rule, "") for rule in rules),
    )


def _spec(spec: Object, options: ValidationOptions) -> list[FieldError]:
    rules, backend, named = spec.get("rules"), spec.get("defaultBackend"), spec.get("ingressClassName")
    errors: list[FieldError] = []
    if not rules and backend is None:
        errors.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules or ()):
        errors += _rule(rule, f"spec.rules[{index}]", options)
    for index, item in enumerate(spec.get("tls") or ()):
        errors += _tls(item, f"spec.tls[{index}]", options)
    if named is not None:
        errors += invalid_each("spec.ingressClassName", named, names.dns_subdomain(named))
    return errors


def _host(host: str) -> list[str]:
    return names.wildcard_subdomain(host) if "*" in host else names.dns_subdomain(host)


def _secret_name(name: str) -> list[str]:
    return names.dns_subdomain(name) if name else []


def _tls(item: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, host in enumerate(item.get("hosts") or ()):
        errors += invalid_each(f"{path}.hosts[{index}]", host, _host(host))
    if not options.secret_names:
        name = item.get("secretName", "")
        errors += invalid_each(f"{path}.secretName", name, _secret_name(name))
    return errors


def _rule(rule: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    host = rule.get("host", "")
    errors: list[FieldError] = []
    if host:
        if addresses.parse_ip(host) is not None:
            errors.append(invalid(f"{path}.host", host, NOT_AN_ADDRESS))
        errors += invalid_each(f"{path}.host", host, _host(host))
    if "*" in host and options.wildcard_rules:
        return errors
    return errors + _paths(rule, path)


def _paths(rule: Object, path: str) -> list[FieldError]:
    http = rule.get("http")
    if http is None:
        return []
    paths, where = http.get("paths") or (), f"{path}.http.paths"
    errors = [] if paths else [required(where)]
    for index, item in enumerate(paths):
        errors += _path(item, f"{where}[{index}]")
    return errors


def _path(item: Object, path: str) -> list[FieldError]:
    kind, value, where = item.get("pathType"), item.get("path", ""), f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors = one_of(kind, f"{path}.pathType", PATH_TYPES)
    exact = kind in ("Exact", "Prefix")
    if not value.startswith("/") and (exact or (kind == "ImplementationSpecific" and value)):
        errors.append(invalid(where, value, "must be an absolute path"))
    if exact:
        errors += [invalid(where, value, f"must not contain '{part}'") for part in BAD_SEQUENCES if part in value]
        endings = [part for part in BAD_ENDINGS if value.endswith(part)]
        errors += [invalid(where, value, f"cannot end with '{part}'") for part in endings]
    return errors + _backend(item.get("backend") or {}, f"{path}.backend")


def _backend(backend: Object, path: str) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _typed_reference(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = service.get("name", "")
    where = f"{path}.service.name"
    errors = invalid_each(where, name, names.service_name(name)) if name else [required(where)]
    return errors + _service_port(service.get("port") or {}, path)


def _service_port(item: Object, path: str) -> list[FieldError]:
    name, number = item.get("name", ""), item.get("number", 0)
    if name and number:
        return [invalid(path, "", "cannot set both port name & port number")]
    if name:
        return invalid_each(f"{path}.service.port.name", name, names.port_name(name))
    if number:
        return port(number, f"{path}.service.port.number")
    return [required(path, "port name or number is required")]


def _typed_reference(reference: Object, path: str) -> list[FieldError]:
    """Validates a reference with a group, a kind and a name."""
    group = reference.get("apiGroup")
    errors = [] if group is None else invalid_each(f"{path}.apiGroup", group, names.dns_subdomain(group))
    for field in ("kind", "name"):
        where, value = f"{path}.{field}", reference.get(field, "")
        errors += invalid_each(where, value, names.path_segment(value)) if value else [required(where)]
    return errors


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    points = _ingress_points(obj)
    old_ips = [point["ip"] for point in _ingress_points(old) if point.get("ip")]
    errors: list[FieldError] = []
    for index, point in enumerate(points):
        path = f"status.loadBalancer.ingress[{index}]"
        ip, hostname = point.get("ip", ""), point.get("hostname", "")
        if ip:
            errors += addresses.legacy_ip(f"{path}.ip", ip, strict=True, old=old_ips)
        if hostname:
            errors += invalid_each(f"{path}.hostname", hostname, names.dns_subdomain(hostname))
            if addresses.parse_ip(hostname) is not None:
                errors.append(invalid(f"{path}.hostname", hostname, NOT_AN_ADDRESS))
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


STATUS = _IngressStatusStrategy(_validate_status)


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
        if not names.fits(controller, CONTROLLER_LENGTH):
            errors.append(too_long("spec.controller", CONTROLLER_LENGTH))
        errors += domain_prefixed_path(controller, "spec.controller")
        return errors if parameters is None else errors + _parameters(parameters, "spec.parameters")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        new, before = ((each.get("spec") or {}).get("controller", "") for each in (obj, old))
        return [
            *immutable_field(new, before, "spec.controller"),
            *self.validate_metadata(context, obj["metadata"]),
            *self.validate(context, obj),
        ]


def _parameters(reference: Object, path: str) -> list[FieldError]:
    errors = _typed_reference(reference, path)
    scope, namespace = reference.get("scope"), reference.get("namespace")
    if scope is None:
        return [*errors, required(f"{path}.scope")]
    errors += one_of(scope, f"{path}.scope", ("Cluster", "Namespace"))
    where = f"{path}.namespace"
    if scope == "Namespace":
        if namespace is None:
            return [*errors, required(where, "`parameters.scope` is set to 'Namespace'")]
        errors += invalid_each(where, namespace, names.dns_label(namespace))
    if scope == "Cluster" and namespace is not None:
        errors.append(forbidden(where, "`parameters.scope` is set to 'Cluster'"))
    return errors
