"""IP addresses and CIDRs: lenient checks of old fields, strict checks of new fields, and warnings about the difference.

Old fields are parsed like in Go 1.16: leading zeros are ignored, and IPv4 may be mapped into IPv6. New fields accept
only the canonical form. Addresses are `ipaddress` objects; an IPv4-mapped one is unwrapped, as Go does.

Specified by: k8s.io/apimachinery/pkg/util/validation/ip.go and k8s.io/utils/net (parse.go).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import NamedTuple

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid
from fakekube.base.golang.net import Address, is_mapped
from fakekube.base.golang.strconv import go_quote

#: Details of fields that hold addresses or networks, one of each IP family.
AT_MOST_TWO = "may only hold up to 2 values"
ONE_OF_EACH_FAMILY = "may specify no more than one IP for each IP family"
#: The detail of a host name that is an address.
NOT_AN_ADDRESS = "must be a DNS name, not an IP address"


class Network(NamedTuple):
    """A parsed CIDR: the address as written, its network, the length of the prefix, and the number of bits."""

    address: Address
    network: Address
    length: int
    bits: int

    @property
    def mask_size(self) -> int:
        """The length of the prefix as written: among `bits` bits."""
        return self.length + self.bits - self.network.max_prefixlen

    def __str__(self) -> str:
        return f"{self.network}/{self.length}"


_DECIMAL = re.compile("0*([0-9]{1,3})").fullmatch
_HEXADECIMAL = re.compile("[0-9A-Fa-f]+").fullmatch


def parse_ip(text: str) -> Address | None:
    """Parses an address leniently; returns None if it is not one."""
    wide = _parse_ipv6(text) if ":" in text else None
    if wide is not None:
        return wide.ipv4_mapped or wide
    return _parse_ipv4(text)


def _parse_ipv4(text: str) -> ipaddress.IPv4Address | None:
    numbers = [_parse_decimal(part) for part in text.split(".")]
    if len(numbers) != 4 or not all(0 <= number <= 255 for number in numbers):
        return None
    return ipaddress.IPv4Address(bytes(numbers))


def _parse_decimal(text: str) -> int:
    """Parses a decimal number with any number of leading zeros; returns -1 if it is not one or too large."""
    match = _DECIMAL(text)
    return int(match[1]) if match else -1


def _parse_ipv6(text: str) -> ipaddress.IPv6Address | None:
    head, gap, tail = text.partition("::")
    if gap and "::" in tail:
        return None
    front, back = _parse_groups(head, not gap), _parse_groups(tail, bool(gap))
    if front is None or back is None:
        return None
    missing = 8 - len(front) - len(back)
    if missing < 0 or (gap and missing == 0) or (not gap and missing):
        return None
    groups = front + [0] * missing + back
    return ipaddress.IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups))


def _parse_groups(text: str, last: bool) -> list[int] | None:
    """Returns the 16-bit groups between colons; the last part of an address may be written as IPv4."""
    if not text:
        return []
    groups: list[int] = []
    parts = text.split(":")
    for index, part in enumerate(parts):
        if last and index == len(parts) - 1 and "." in part:
            narrow = _parse_ipv4(part)
            if narrow is None:
                return None
            groups += [int(narrow) >> 16, int(narrow) & 0xFFFF]
        elif _HEXADECIMAL(part) and int(part, 16) <= 0xFFFF:
            groups.append(int(part, 16))
        else:
            return None
    return groups


def parse_cidr(text: str) -> Network | None:
    """Parses a CIDR leniently; returns None if it is not one."""
    written, _, bits = text.partition("/")
    narrow = _parse_ipv4(written)
    wide = None if narrow is not None else _parse_ipv6(written)
    address: Address | None = narrow if narrow is not None else wide
    length = _parse_decimal(bits)
    if address is None or not 0 <= length <= address.max_prefixlen:
        return None
    mask = (1 << address.max_prefixlen) - (1 << (address.max_prefixlen - length))
    network = type(address)(int(address) & mask)
    if wide is not None and wide.ipv4_mapped and length >= 96:
        return Network(wide.ipv4_mapped, ipaddress.IPv4Address(int(network) & 0xFFFFFFFF), length - 96, 128)
    return Network((wide.ipv4_mapped if wide else None) or address, network, length, address.max_prefixlen)


def is_ipv6(text: str) -> bool:
    """Reports whether this is an address or CIDR of IPv6 (and not IPv4-mapped)."""
    network = parse_cidr(text) if "/" in text else None
    address = network.network if network else parse_ip(text)
    return address is not None and address.version == 6


def _strict_ip(text: str) -> Address | None:
    """Parses an address strictly (no leading zeros; IPv4-mapped ones stay IPv6)."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _check_ip(path: str, text: str, strict: bool) -> tuple[Address | None, list[FieldError]]:
    """Returns the address, if there is one, and the errors; with `strict`, also those of other than standard forms."""
    address = parse_ip(text)
    if address is None:
        return None, [invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if strict:
        exact = _strict_ip(text)
        if exact is None:
            return address, [invalid(path, text, "must not have leading 0s")]
        if is_mapped(exact):
            return address, [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return address, []


def _is_strict() -> bool:
    """Reports whether new values of lenient fields must be standard ones."""
    return features.current().enabled("StrictIPCIDRValidation")


def legacy_ip(path: str, text: str, strict: bool = False, old: Collection[str] = ()) -> list[FieldError]:
    """Validates an address of a field that has always been lenient; `old` values stay valid."""
    return [] if text in old else _check_ip(path, text, strict and _is_strict())[1]


def ip(path: str, text: str) -> list[FieldError]:
    """Validates an address in canonical form."""
    address, errors = _check_ip(path, text, True)
    if errors or text == str(address):
        return errors
    return [invalid(path, text, f"must be in canonical form ({go_quote(str(address))})")]


def _refusal_text() -> str:
    """Returns what warnings say of a value that only the lenient parser accepts."""
    return "is invalid" if features.current().minor >= 36 else "will be considered invalid in a future Kubernetes release"


def ip_warnings(path: str, text: str) -> list[str]:
    """Returns warnings about an address that only the lenient parser accepts; none about an invalid one."""
    lenient, exact = parse_ip(text), _strict_ip(text)
    if lenient is None:
        return []
    if exact is None or is_mapped(exact):
        better = go_quote(str(lenient))
        return [f"{path}: non-standard IP address {go_quote(text)} {_refusal_text()}: use {better}"]
    if exact.version == 6 and str(exact) != text:
        better = go_quote(str(exact))
        return [f"{path}: IPv6 address {go_quote(text)} should be in RFC 5952 canonical format ({better})"]
    return []


def _strict_cidr(text: str) -> tuple[Address, int] | None:
    written, _, bits = text.partition("/")
    address = _strict_ip(written)
    if address is None or (len(bits) > 1 and bits.startswith("0")):
        return None
    return address, int(bits)


def _check_cidr(path: str, text: str, strict: bool) -> tuple[Network | None, list[FieldError]]:
    """Returns the network, if there is one, and the errors; with `strict`, also those of other than standard forms."""
    network = parse_cidr(text)
    if network is None:
        return None, [invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    if strict:
        exact = _strict_cidr(text)
        if exact is None:
            return network, [invalid(path, text, "must not have leading 0s in IP or prefix length")]
        if is_mapped(exact[0]):
            return network, [invalid(path, text, "must not have an IPv4-mapped IPv6 address")]
        if network.address != network.network:
            return network, [invalid(path, text, "must not have bits set beyond the prefix length")]
    return network, []


def legacy_cidr(path: str, text: str, strict: bool = False, old: Collection[str] = ()) -> list[FieldError]:
    """Validates a CIDR of a field that has always been lenient; `old` values stay valid."""
    return [] if text in old else _check_cidr(path, text, strict and _is_strict())[1]


def cidr(path: str, text: str) -> list[FieldError]:
    """Validates a CIDR in canonical form."""
    network, errors = _check_cidr(path, text, True)
    if errors or text == str(network):
        return errors
    return [invalid(path, text, f"must be in canonical form ({go_quote(str(network))})")]


def cidr_warnings(path: str, text: str) -> list[str]:
    """Returns warnings about a CIDR that only the lenient parser accepts (it must be valid for that parser)."""
    network = parse_cidr(text)
    if network is None:
        return []
    warnings = []
    quoted, better = go_quote(text), go_quote(str(network))
    if network.address != network.network:
        single = go_quote(f"{network.address}/{network.bits}")
        hint = f"(should be {better} or {single}?)"
        warnings.append(f"{path}: CIDR value {quoted} is ambiguous in this context {hint}")
    exact = _strict_cidr(text)
    if exact is None or is_mapped(exact[0]):
        warnings.append(f"{path}: non-standard CIDR value {quoted} {_refusal_text()}: use {better}")
    elif not warnings and exact[0].version == 6 and f"{exact[0]}/{exact[1]}" != text:
        warnings.append(f"{path}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ({better})")
    return warnings


def interface_address(path: str, text: str) -> list[FieldError]:
    """Validates an address with the length of the prefix of its network, in canonical form."""
    network = parse_cidr(text)
    if network is None:
        form = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(path, text, form)]
    length = network.length
    if network.address.version == 4 and length > 32:
        length -= 96
    canonical = f"{network.address}/{length}"
    if text == canonical:
        return []
    return [invalid(path, text, f"must be in canonical form ({go_quote(canonical)})")]
