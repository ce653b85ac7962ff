"""Endpoints: the addresses behind a Service.

Invalid addresses of a stored object stay valid as long as an update does not change them.

Specified by: pkg/registry/core/endpoint; ValidateEndpoints and ValidateEndpointIP in pkg/apis/core/validation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, required
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import PROTOCOLS, invalid_each, label_name, port, required_one_of
from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.base.golang.net import Address
from fakekube.base.objects import Object


class EndpointsStrategy(Strategy):
    """The strategy of Endpoints, whose subsets are all combinations of their addresses and ports."""

    create_on_update = True
    checks_metadata_again = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_subsets(obj.get("subsets") or ())

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = self.validate(context, obj)
        return [] if errors and semantic_deep_equal(obj.get("subsets"), old.get("subsets")) else errors

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        labels = obj["metadata"].get("labels") or {}
        if labels.get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
            return []
        return [
            text
            for index, subset in enumerate(obj.get("subsets") or ())
            for field in ("addresses", "notReadyAddresses")
            for position, address in enumerate(subset.get(field) or ())
            for text in addresses.ip_warnings(f"subsets[{index}].{field}[{position}].ip", address.get("ip", ""))
        ]


def _validate_subsets(subsets: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(subsets):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(subset.get(field) or ()):
                errors += _validate_address(address, f"{path}.{field}[{position}]")
        ports = subset.get("ports") or ()
        for position, item in enumerate(ports):
            errors += _validate_port(item, len(ports) > 1, f"{path}.ports[{position}]")
    return errors


def _validate_address(address: Object, path: str) -> list[FieldError]:
    ip, hostname, node = address.get("ip", ""), address.get("hostname", ""), address.get("nodeName")
    errors = addresses.legacy_ip(f"{path}.ip", ip, strict=True)
    if hostname:
        errors += invalid_each(f"{path}.hostname", hostname, names.dns_label(hostname))
    if node is not None:
        errors += invalid_each(f"{path}.nodeName", node, names.dns_subdomain(node))
    return errors + validate_endpoint_ip(ip, f"{path}.ip")


def _validate_port(item: Object, name_required: bool, path: str) -> list[FieldError]:
    name = item.get("name", "")
    errors: list[FieldError] = []
    if name:
        errors += invalid_each(f"{path}.name", name, names.dns_label(name))
    elif name_required:
        errors.append(required(f"{path}.name"))
    errors += port(item.get("port", 0), f"{path}.port")
    errors += required_one_of(item.get("protocol", ""), f"{path}.protocol", PROTOCOLS)
    if item.get("appProtocol") is not None:
        errors += label_name(item["appProtocol"], f"{path}.appProtocol")
    return errors


_LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
_LINK_LOCAL = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
_LINK_LOCAL_MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
_MULTICAST_V4 = ipaddress.ip_network("224.0.0.0/24")


def validate_endpoint_ip(text: str, path: str) -> list[FieldError]:
    """Validates that an address is not unspecified, loopback or link-local (ValidateEndpointIP)."""
    address = addresses.parse_ip(text)
    if address is None:
        return [invalid(path, text, "must be a valid IP address")]
    errors = []
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(invalid(path, text, _LOOPBACK))
    if address.is_link_local:
        errors.append(invalid(path, text, _LINK_LOCAL))
    if _is_link_local_multicast(address):
        errors.append(invalid(path, text, _LINK_LOCAL_MULTICAST))
    return errors


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in _MULTICAST_V4
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02
