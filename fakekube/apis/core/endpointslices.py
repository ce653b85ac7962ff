"""endpointslices.discovery.k8s.io: the addresses behind a Service, in parts.

Invalid addresses of a stored object stay valid as long as an update does not change them.

Specified by: pkg/registry/discovery/endpointslice; pkg/apis/discovery/validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, too_many
from fakekube.apis.core.endpoints import validate_endpoint_ip
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import PROTOCOLS, fully_qualified_domain, invalid_each, label_name, one_of, required_one_of
from fakekube.apis.validation.rules import by_declaration, changes, fixed, immutable, needed, rules
from fakekube.apis.validation.to_internal import semantic_deep_equal, semantic_deep_equal_as
from fakekube.base.objects import Object

_SLICE = "k8s.io/api/discovery/v1.EndpointSlice"

_ENDPOINT_SLICE_CHANGES = changes(
    "EndpointSlice", "ValidateEndpointSliceUpdate", *by_declaration("addressType", fixed(), (immutable(), 0))
)
_NO_ADDRESS = rules(
    "Endpoint", "validateEndpoints", *by_declaration("addresses", needed(), (needed("must contain at least 1 address"), 0))
)
_MAX_ENDPOINTS = 1000
_MAX_ADDRESSES = 100
_MAX_PORTS = 20000
_MAX_HINTS = 8
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSliceStrategy(Strategy):
    """The strategy of EndpointSlices; the generation also changes with the labels."""

    checks_metadata_update = False
    checks_metadata_again = True

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        _drop_topology(obj)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        meta, old_meta = obj["metadata"], old["metadata"]
        content, old_content = ({**slice_, "metadata": None} for slice_ in (obj, old))
        type_ = context.emulation.types.type_of(_SLICE)
        if not semantic_deep_equal_as(type_, content, old_content) or not semantic_deep_equal(
            meta.get("labels"), old_meta.get("labels")
        ):
            meta["generation"] = old_meta.get("generation", 0) + 1
        _drop_topology(obj)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return self._validate(obj, None)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self._validate(obj, old) + _ENDPOINT_SLICE_CHANGES.validate(obj, old)

    @staticmethod
    def _validate(obj: Object, old: Object | None) -> list[FieldError]:
        kind = obj.get("addressType", "")
        errors = required_one_of(kind, "addressType", _ADDRESS_TYPES)
        errors += _validate_slice_ports(obj.get("ports") or ())
        wrong = _validate_endpoints(obj.get("endpoints") or (), kind)
        if wrong and old is not None and semantic_deep_equal(obj.get("endpoints"), old.get("endpoints")):
            return errors
        return errors + wrong

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        warnings: list[str] = []
        if old is None and obj.get("addressType") == "FQDN":
            warnings.append("spec.addressType: FQDN endpoints are deprecated")
        labels = obj["metadata"].get("labels") or {}
        if labels.get("endpointslice.kubernetes.io/managed-by") in CONTROLLERS:
            return warnings
        for index, endpoint in enumerate(obj.get("endpoints") or ()):
            for position, address in enumerate(endpoint.get("addresses") or ()):
                warnings += addresses.ip_warnings(f"endpoints[{index}].addresses[{position}]", address)
        return warnings


def _drop_topology(obj: Object) -> None:
    """Drops deprecatedTopology, a field of v1beta1 that v1 only returns."""
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


def _validate_slice_ports(ports: Sequence[Object]) -> list[FieldError]:
    if len(ports) > _MAX_PORTS:
        return [too_many("ports", len(ports), _MAX_PORTS)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(ports):
        path, name = f"ports[{index}]", item.get("name", "")
        if name:
            errors += invalid_each(f"{path}.name", name, names.dns_label(name))
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        errors += one_of(item.get("protocol", ""), f"{path}.protocol", PROTOCOLS)
        if item.get("appProtocol") is not None:
            errors += label_name(item["appProtocol"], f"{path}.appProtocol")
    return errors


def _validate_endpoints(endpoints: Sequence[Object], kind: str) -> list[FieldError]:
    if len(endpoints) > _MAX_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)]
    return [
        error for index, endpoint in enumerate(endpoints) for error in _validate_endpoint(endpoint, kind, f"endpoints[{index}]")
    ]


def _validate_endpoint(endpoint: Object, kind: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    found, where = endpoint.get("addresses") or (), f"{path}.addresses"
    if not found:
        errors += _NO_ADDRESS.validate({"addresses": found}, path)
    elif len(found) > _MAX_ADDRESSES:
        errors.append(too_many(where, len(found), _MAX_ADDRESSES))
    for index, address in enumerate(found):
        errors += _validate_typed_address(address, kind, where, f"{where}[{index}]")
    node, hostname, hints = endpoint.get("nodeName"), endpoint.get("hostname"), endpoint.get("hints")
    if node is not None:
        errors += invalid_each(f"{path}.nodeName", node, names.dns_subdomain(node))
    if hostname is not None:
        errors += invalid_each(f"{path}.hostname", hostname, names.dns_label(hostname))
    return errors if hints is None else errors + _validate_hints(hints, f"{path}.hints")


def _validate_typed_address(address: str, kind: str, list_path: str, path: str) -> list[FieldError]:
    """Validates an address by the type of the slice; an unknown type has been reported already."""
    if kind == "FQDN":
        return fully_qualified_domain(address, path)
    if kind not in ("IPv4", "IPv6"):
        return []
    wrong = addresses.ip(path, address) if kind == "IPv6" else addresses.legacy_ip(path, address, strict=True)
    if wrong:
        return wrong
    if (kind == "IPv6") != addresses.is_ipv6(address):
        wrong = [invalid(list_path, address, f"must be an {kind} address")]
    return wrong + validate_endpoint_ip(address, path)


def _validate_hints(hints: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("forZones", names.label_value), ("forNodes", names.dns_subdomain)):
        items: Sequence[dict[str, Any]] = hints.get(field) or ()
        if len(items) > _MAX_HINTS:
            return [*errors, too_many(f"{path}.{field}", len(items), _MAX_HINTS)]
        seen: set[str] = set()
        for index, item in enumerate(items):
            where, name = f"{path}.{field}[{index}].name", item.get("name", "")
            if name in seen:
                errors.append(duplicate(where, name))
            seen.add(name)
            errors += invalid_each(where, name, check(name))
    return errors
