"""IP addresses and networks.

Specified by: k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go; Go's net/netip (ParsePrefix).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.values import Map, Opaque
from fakekube.base.golang import urls
from fakekube.base.golang.net import Address, parse_address
from fakekube.base.golang.strconv import go_quote


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    """An address without a zone."""

    type_name = "net.IP"
    go_type = "netip.Addr"
    address: Address

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """An address and the length of a prefix of it."""

    type_name = "net.CIDR"
    go_type = "netip.Prefix"
    address: Address
    length: int

    @property
    def size(self) -> int:
        """The number of bytes that the prefix covers, at least in part."""
        return -(-self.length // 8)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.length), strict=False)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _ip(text: str) -> Ip:
    try:
        address = parse_address(text)
    except ValueError as problem:
        said = f"IP Address {go_quote(text)} parse error during conversion from string: {problem}"
        raise EvaluationError(said) from None
    if "%" in text:
        raise EvaluationError(f"IP address {go_quote(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Ip(address)


_TWICE: Final = "network address parse error during conversion from string: "


def _cidr(text: str) -> Cidr:
    try:
        address, length = _prefix(text)
    except ValueError as problem:
        raise EvaluationError(f"{_TWICE}{_TWICE}netip.ParsePrefix({go_quote(text)}): {problem}") from None
    if _is_mapped(address):
        raise EvaluationError(f"{_TWICE}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Cidr(address, length)


def _prefix(text: str) -> tuple[Address, int]:
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address = parse_address(before)
    if "%" in before:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", bits):
        raise ValueError(f"bad bits after slash: {go_quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise ValueError("prefix length out of range")
    return address, int(bits)


def _accepts(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except EvaluationError:
            return False
        return True

    return check


def _contains_text(cidr: Cidr, text: str) -> bool:
    """Evaluates `containsIP` with a string; for an invalid address the error has no reason."""
    try:
        return _contains_ip(cidr, _ip(text))
    except EvaluationError:
        raise no_such_overload() from None


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return ip.address.version == cidr.address.version and ip.address in cidr.network


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    return cidr.length <= other.length and _contains_ip(cidr, Ip(other.address))


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in _LOCAL_MULTICAST
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


_LOCAL_MULTICAST: Final = ipaddress.IPv4Network("224.0.0.0/24")
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


def _is_global_unicast(address: Address) -> bool:
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != _BROADCAST


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("ip", False, str): _ip,
    ("isIP", False, str): _accepts(_ip),
    ("ip.isCanonical", False, str): lambda text: str(_ip(text)) == text,
    ("family", True, Ip): lambda ip: ip.address.version,
    ("isUnspecified", True, Ip): lambda ip: ip.address.is_unspecified,
    ("isLoopback", True, Ip): lambda ip: ip.address.is_loopback,
    ("isLinkLocalMulticast", True, Ip): lambda ip: _is_link_local_multicast(ip.address),
    ("isLinkLocalUnicast", True, Ip): lambda ip: ip.address.is_link_local,
    ("isGlobalUnicast", True, Ip): lambda ip: _is_global_unicast(ip.address),
    ("string", False, Ip): str,
    ("cidr", False, str): _cidr,
    ("isCIDR", False, str): _accepts(_cidr),
    ("containsIP", True, Cidr, Ip): _contains_ip,
    ("containsIP", True, Cidr, str): _contains_text,
    ("containsCIDR", True, Cidr, Cidr): _contains_cidr,
    ("containsCIDR", True, Cidr, str): lambda cidr, text: _contains_cidr(cidr, _cidr(text)),
    ("ip", True, Cidr): lambda cidr: Ip(cidr.address),
    ("prefixLength", True, Cidr): lambda cidr: cidr.length,
    ("masked", True, Cidr): lambda cidr: Cidr(cidr.network.network_address, cidr.length),
    ("string", False, Cidr): str,
}


# --- URLs --------------------------------------------------------------------------------------------------------------
# Specified by: k8s.io/apiserver/pkg/cel/library/urls.go.


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """A value of the type URL."""

    type_name = "kubernetes.URL"
    go_type = "*url.URL"
    parts: urls.Url

    def __str__(self) -> str:
        return self.parts.text


def _url(text: str) -> Url:
    """Parses twice: ParseRequestURI, which requires an absolute URL, treats a fragment as a part of the path or query."""
    try:
        urls.parse_request_uri(text)
        return Url(urls.parse_url(text))
    except ValueError as problem:
        raise EvaluationError(f"URL parse error during conversion from string: {problem}") from None


def _is_url(text: str) -> bool:
    try:
        urls.parse_request_uri(text)
    except ValueError:
        return False
    return True


URL_FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("url", False, str): _url,
    ("isURL", False, str): _is_url,
    ("getScheme", True, Url): lambda url: url.parts.scheme,
    ("getHost", True, Url): lambda url: url.parts.host,
    ("getHostname", True, Url): lambda url: url.parts.hostname,
    ("getPort", True, Url): lambda url: url.parts.port,
    ("getEscapedPath", True, Url): lambda url: url.parts.escaped_path,
    ("getQuery", True, Url): lambda url: Map.of(urls.query_values(url.parts.query).items()),
}
