"""Addresses that can receive traffic: those of endpoints, and external IPs of services.

Specified by: pkg/apis/core/validation/validation.go (ValidateEndpointIP).
"""

from __future__ import annotations

import ipaddress

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid
from fakekube.apis.validation import ip

__all__ = ["endpoint_ip"]

_LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
_LINK_LOCAL = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
_LINK_LOCAL_MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
_MULTICAST_V4 = ipaddress.ip_network("224.0.0.0/24")


def endpoint_ip(text: str, path: str) -> list[FieldError]:
    """Validates that an address is not unspecified, loopback or link-local (ValidateEndpointIP)."""
    address = ip.parse_ip(text)
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


def _is_link_local_multicast(address: ip.Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in _MULTICAST_V4
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02
