"""IP addresses in texts, as Go reads them: by net.ParseIP, or as it did before Go 1.17, when numbers might begin with zeros.

Specified by: Go's net (ParseIP), k8s.io/utils/net (ParseIPSloppy, ParseCIDRSloppy).
"""

from __future__ import annotations

import ipaddress
import re

__all__ = ["is_ip", "is_sloppy_cidr", "is_sloppy_ip"]


def is_ip(text: str) -> bool:
    """Is it an address, without a zone?"""
    return _parsed(text) is not None


def is_sloppy_ip(text: str) -> bool:
    """The same, with leading zeros."""
    return _parsed(_without_zeros(text)) is not None


def is_sloppy_cidr(text: str) -> bool:
    """An address with leading zeros, and the length of a prefix."""
    address, _, length = text.partition("/")
    found = _parsed(_without_zeros(address))
    return found is not None and re.fullmatch("[0-9]{1,8}", length) is not None and int(length) <= found.max_prefixlen


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if not text.isascii() or "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _without_zeros(text: str) -> str:
    """The address with its decimal numbers in their usual form."""
    head, colon, tail = text.rpartition(":")
    return head + colon + re.sub(r"(?<![0-9a-fA-F])0+(?=[0-9])", "", tail) if "." in tail else text
