"""The types that Kubernetes adds to the language: IP addresses, networks, URLs, quantities, semantic versions.

Specified by: k8s.io/apiserver/pkg/cel/library/{ip,cidr,urls,quantity,semverlib}.go; Go's net/netip (ParsePrefix); semver.org 2.0;
the messages about versions: github.com/blang/semver.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.values import Map, Opaque
from fakekube.apimachinery.schema import quantity
from fakekube.apimachinery.schema.quantity import Format, QuantityError
from fakekube.base.golang import urls
from fakekube.base.golang.net import Address, is_mapped, parse_address
from fakekube.base.golang.strconv import INT64, go_quote, parse_uint


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


def _parse_ip(text: str) -> Ip:
    try:
        address = parse_address(text)
    except ValueError as problem:
        message = f"IP Address {go_quote(text)} parse error during conversion from string: {problem}"
        raise EvaluationError(message) from None
    if "%" in text:
        raise EvaluationError(f"IP address {go_quote(text)} with zone value is not allowed")
    if is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Ip(address)


_PARSE_ERROR: Final = "network address parse error during conversion from string: "


def _parse_cidr(text: str) -> Cidr:
    try:
        address, length = _parse_prefix(text)
    except ValueError as problem:
        raise EvaluationError(f"{_PARSE_ERROR}{_PARSE_ERROR}netip.ParsePrefix({go_quote(text)}): {problem}") from None
    if is_mapped(address):
        raise EvaluationError(f"{_PARSE_ERROR}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Cidr(address, length)


def _parse_prefix(text: str) -> tuple[Address, int]:
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


def _accepts(parse: Callable[..., object]) -> Callable[..., bool]:
    """Returns the function that reports whether a text can be parsed."""

    def check(*arguments: Any) -> bool:
        try:
            parse(*arguments)
        except EvaluationError:
            return False
        return True

    return check


def _contains_text(cidr: Cidr, text: str) -> bool:
    """Evaluates `containsIP` with a string; for an invalid address the error has no reason."""
    try:
        return _contains_ip(cidr, _parse_ip(text))
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


ADDRESS_FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("ip", False, str): _parse_ip,
    ("isIP", False, str): _accepts(_parse_ip),
    ("ip.isCanonical", False, str): lambda text: str(_parse_ip(text)) == text,
    ("family", True, Ip): lambda ip: ip.address.version,
    ("isUnspecified", True, Ip): lambda ip: ip.address.is_unspecified,
    ("isLoopback", True, Ip): lambda ip: ip.address.is_loopback,
    ("isLinkLocalMulticast", True, Ip): lambda ip: _is_link_local_multicast(ip.address),
    ("isLinkLocalUnicast", True, Ip): lambda ip: ip.address.is_link_local,
    ("isGlobalUnicast", True, Ip): lambda ip: _is_global_unicast(ip.address),
    ("string", False, Ip): str,
    ("cidr", False, str): _parse_cidr,
    ("isCIDR", False, str): _accepts(_parse_cidr),
    ("containsIP", True, Cidr, Ip): _contains_ip,
    ("containsIP", True, Cidr, str): _contains_text,
    ("containsCIDR", True, Cidr, Cidr): _contains_cidr,
    ("containsCIDR", True, Cidr, str): lambda cidr, text: _contains_cidr(cidr, _parse_cidr(text)),
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


def _parse_url(text: str) -> Url:
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
    ("url", False, str): _parse_url,
    ("isURL", False, str): _is_url,
    ("getScheme", True, Url): lambda url: url.parts.scheme,
    ("getHost", True, Url): lambda url: url.parts.host,
    ("getHostname", True, Url): lambda url: url.parts.hostname,
    ("getPort", True, Url): lambda url: url.parts.port,
    ("getEscapedPath", True, Url): lambda url: url.parts.escaped_path,
    ("getQuery", True, Url): lambda url: Map.from_pairs(urls.query_values(url.parts.query).items()),
}


# --- Quantities (`1Gi`, `500m`) --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quantity(Opaque):
    """A value of the type quantity."""

    type_name = "kubernetes.Quantity"
    go_type = "*resource.Quantity"
    number: quantity.Quantity

    def __str__(self) -> str:
        return str(self.number)


def _parse_quantity(text: str) -> Quantity:
    try:
        return Quantity(quantity.parse(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _to_integer(number: quantity.Quantity) -> int | None:
    """Returns the amount as an integer; None if it is too large or has decimals (even zeros)."""
    whole = int(number.amount)
    return whole if number.scale >= 0 and whole in INT64 else None


def _as_integer(value: Quantity) -> int:
    whole = _to_integer(value.number)
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _as_approximate_float(value: Quantity) -> float:
    try:
        return float(value.number.amount)
    except OverflowError:
        return math.copysign(math.inf, value.number.sign)


def _compare_quantities(one: Quantity, other: Quantity) -> int:
    return (one.number > other.number) - (one.number < other.number)


def _add_quantities(one: quantity.Quantity, other: quantity.Quantity) -> Quantity:
    """Adds quantities like Go: zero takes the format of the other operand."""
    if other.unscaled == 0:
        return Quantity(one)
    return Quantity(other if one.unscaled == 0 else one + other)


def _quantity_of(number: int) -> quantity.Quantity:
    return quantity.Quantity(number, 0, Format.DECIMAL_EXPONENT)


QUANTITY_FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("quantity", False, str): _parse_quantity,
    ("isQuantity", False, str): _accepts(_parse_quantity),
    ("sign", False, Quantity): lambda value: value.number.sign,
    ("isGreaterThan", True, Quantity, Quantity): lambda one, other: _compare_quantities(one, other) > 0,
    ("isLessThan", True, Quantity, Quantity): lambda one, other: _compare_quantities(one, other) < 0,
    ("compareTo", True, Quantity, Quantity): _compare_quantities,
    ("asApproximateFloat", True, Quantity): _as_approximate_float,
    ("asInteger", True, Quantity): _as_integer,
    ("isInteger", True, Quantity): lambda value: _to_integer(value.number) is not None,
    ("add", True, Quantity, Quantity): lambda one, other: _add_quantities(one.number, other.number),
    ("add", True, Quantity, int): lambda one, other: _add_quantities(one.number, _quantity_of(other)),
    ("sub", True, Quantity, Quantity): lambda one, other: _add_quantities(one.number, -other.number),
    ("sub", True, Quantity, int): lambda one, other: _add_quantities(one.number, _quantity_of(-other)),
}


# --- Semantic versions -----------------------------------------------------------------------------------------------


_DIGITS = re.compile(r"[0-9]+")
_WORD = re.compile(r"[0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    """A semantic version; build metadata are ignored in comparisons."""

    type_name = "kubernetes.Semver"
    go_type = "semver.Version"
    numbers: tuple[int, int, int]
    prerelease: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        return f"{text}-{'.'.join(map(str, self.prerelease))}" if self.prerelease else text

    @property
    def order(self) -> tuple[Any, ...]:
        """The sort key: a release comes after its prereleases, numbers before words."""
        parts = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.prerelease)
        return (*self.numbers, not self.prerelease, parts)


def _parse_version_number(text: str, name: str) -> int:
    if text and not _DIGITS.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name.capitalize()} number must not contain leading zeroes {go_quote(text)}")
    return _parse_number(text)


def _parse_number(text: str) -> int:
    try:
        return parse_uint(text)
    except ValueError as problem:
        raise EvaluationError(str(problem)) from None


def _prerelease_part(text: str) -> int | str:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}")
        return _parse_number(text)
    if not _WORD.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text


def _check_build_part(text: str) -> None:
    if not text:
        raise EvaluationError("Build meta data is empty")
    if not _WORD.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in build meta data {go_quote(text)}")


def parse_semver(text: str) -> Semver:
    """Parses a semantic version. Raises EvaluationError."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    numbers = (
        _parse_version_number(parts[0], "major"),
        _parse_version_number(parts[1], "minor"),
        _parse_version_number(patch, "patch"),
    )
    words = tuple(map(_prerelease_part, prerelease.split("."))) if dash else ()
    for part in build.split(".") if plus else ():
        _check_build_part(part)
    return Semver(numbers, words)


def _normalise(text: str) -> str:
    """Returns the text without `v` and leading zeros, with all three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for number, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[number] = bare if bare[:1].isdigit() else f"0{bare}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join((*parts, *["0"] * (3 - len(parts))))


def _parse_semver_leniently(text: str, normalise: bool = False) -> Semver:
    """Parses a version; with `normalise`, also one such as `v1.02`."""
    return parse_semver(_normalise(text) if normalise else text)


def _compare_semvers(one: Semver, other: Semver) -> int:
    return (one.order > other.order) - (one.order < other.order)


SEMVER_FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("semver", False, str): _parse_semver_leniently,
    ("semver", False, str, bool): _parse_semver_leniently,
    ("isSemver", False, str): _accepts(_parse_semver_leniently),
    ("isSemver", False, str, bool): _accepts(_parse_semver_leniently),
    ("isGreaterThan", True, Semver, Semver): lambda one, other: _compare_semvers(one, other) > 0,
    ("isLessThan", True, Semver, Semver): lambda one, other: _compare_semvers(one, other) < 0,
    ("compareTo", True, Semver, Semver): _compare_semvers,
    ("major", True, Semver): lambda version: version.numbers[0],
    ("minor", True, Semver): lambda version: version.numbers[1],
    ("patch", True, Semver): lambda version: version.numbers[2],
}
