"""IP addresses and networks.

Specified by: k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go; Go's net/netip.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekube.cel.errors import EvaluationError, no_such_overload
from fakekube.cel.values import Opaque
from fakekube.errors.field import go_quote

__all__ = ["FUNCTIONS"]

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    """An address without a zone."""

    type_name = "net.IP"
    go_type = "netip.Addr"
    address: _Address

    @property
    def size(self) -> int:
        """Bytes."""
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """An address and the length of a prefix of it."""

    type_name = "net.CIDR"
    go_type = "netip.Prefix"
    address: _Address
    length: int

    @property
    def size(self) -> int:
        """The bytes that the prefix touches."""
        return -(-self.length // 8)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.length), strict=False)


class _Problem(ValueError):
    """What Go says is wrong with an address."""


def _checked_v4(text: str) -> None:
    """Raises what Go finds first, reading from the left."""
    value = digits = dots = 0
    for position, character in enumerate(text):
        if character.isascii() and character.isdigit():
            if digits == 1 and value == 0:
                raise _Problem("IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > 255:
                raise _Problem("IPv4 field has value >255")
        elif character == ".":
            if position in (0, len(text) - 1) or text[position - 1] == ".":
                raise _Problem(f"IPv4 field must have at least one digit (at {go_quote(text[position:])})")
            if dots == 3:
                raise _Problem("IPv4 address too long")
            value, digits, dots = 0, 0, dots + 1
        else:
            raise _Problem(f"unexpected character (at {go_quote(text[position:])})")
    if dots < 3:
        raise _Problem("IPv4 address too short")


def _checked_v6(text: str) -> None:
    """Raises what Go finds first, reading from the left."""
    rest, zone = (text.partition("%")[0], text.partition("%")[2]) if "%" in text else (text, None)
    if zone == "":
        raise _Problem("zone must be a non-empty string")
    ellipsis, count = rest.startswith("::"), 0
    rest = rest.removeprefix("::")
    while rest and count < 8:
        digits = re.match(r"[0-9a-fA-F]*", rest)
        field = digits[0] if digits else ""
        if len(field) > 4:
            raise _Problem(f"each group must have 4 or fewer digits (at {go_quote(rest)})")
        if not field:
            raise _Problem(f"each colon-separated field must have at least one digit (at {go_quote(rest)})")
        if rest[len(field) :].startswith("."):
            _check_embedded(rest, ellipsis, count)
            rest, count = "", count + 2
            break
        rest, count = rest[len(field) :], count + 1
        if not rest:
            break
        if not rest.startswith(":"):
            raise _Problem(f"unexpected character, want colon (at {go_quote(rest)})")
        if rest == ":":
            raise _Problem(f"colon must be followed by more characters (at {go_quote(rest)})")
        rest = rest[1:]
        if rest.startswith(":"):
            if ellipsis:
                raise _Problem(f"multiple :: in address (at {go_quote(rest)})")
            ellipsis, rest = True, rest[1:]
    if rest:
        raise _Problem(f"trailing garbage after address (at {go_quote(rest)})")
    if count < 8 and not ellipsis:
        raise _Problem("address string too short")
    if count == 8 and ellipsis:
        raise _Problem("the :: must expand to at least one field of zeros")


def _check_embedded(rest: str, ellipsis: bool, count: int) -> None:
    """An IPv4 address at the end of an IPv6 address."""
    if not ellipsis and count != 6:
        raise _Problem(f"embedded IPv4 address must replace the final 2 fields of the address (at {go_quote(rest)})")
    if count > 6:
        raise _Problem(f"too many hex fields to fit an embedded IPv4 at the end of the address (at {go_quote(rest)})")
    _checked_v4(rest)


def _parse(text: str) -> _Address:
    """As netip.ParseAddr. Raises _Problem."""
    separator = re.search(r"[.:%]", text)
    try:
        if separator is None:
            raise _Problem("unable to parse IP")
        if separator[0] == ".":
            _checked_v4(text)
            return ipaddress.IPv4Address(text)
        if separator[0] == "%":
            raise _Problem("missing IPv6 address")
        _checked_v6(text)
        return ipaddress.IPv6Address(text)
    except _Problem as problem:
        raise _Problem(f"ParseAddr({go_quote(text)}): {problem}") from None
    except ValueError:
        raise _Problem(f"ParseAddr({go_quote(text)}): unable to parse IP") from None


def _is_mapped(address: _Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _ip(text: str) -> Ip:
    try:
        address = _parse(text)
    except _Problem as problem:
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
    except _Problem as problem:
        raise EvaluationError(f"{_TWICE}{_TWICE}netip.ParsePrefix({go_quote(text)}): {problem}") from None
    if _is_mapped(address):
        raise EvaluationError(f"{_TWICE}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Cidr(address, length)


def _prefix(text: str) -> tuple[_Address, int]:
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise _Problem("no '/'")
    address = _parse(before)
    if "%" in before:
        raise _Problem("IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", bits):
        raise _Problem(f"bad bits after slash: {go_quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise _Problem("prefix length out of range")
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
    """It is not told why a text is no address."""
    try:
        return _contains_ip(cidr, _ip(text))
    except EvaluationError:
        raise no_such_overload() from None


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return ip.address.version == cidr.address.version and ip.address in cidr.network


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    return cidr.length <= other.length and _contains_ip(cidr, Ip(other.address))


def _is_link_local_multicast(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in _LOCAL_MULTICAST
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


_LOCAL_MULTICAST: Final = ipaddress.IPv4Network("224.0.0.0/24")
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


def _is_global_unicast(address: _Address) -> bool:
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
