"""Parses IP addresses like Go's net/netip, with the same error messages.

Specified by: Go's net/netip (ParseAddr), net (ParseIP).
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache, lru_cache
from ipaddress import ip_address
from typing import Any, Final

from fakekube.base.golang.strconv import go_quote

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address:
    """Parses an address; its zone is checked and dropped. Raises ValueError with Go's message."""
    separator = re.search(r"[.:%]", text)
    try:
        if separator is None:
            raise ValueError("unable to parse IP")
        if separator[0] == ".":
            _check_v4(text)
            return ipaddress.IPv4Address(text)
        if separator[0] == "%":
            raise ValueError("missing IPv6 address")
        _check_v6(text)
        return ipaddress.IPv6Address(text.partition("%")[0])
    except ValueError as problem:
        raise ValueError(f"ParseAddr({go_quote(text)}): {problem}") from None


def is_address(text: str) -> bool:
    """Reports whether the text is an address without a zone."""
    try:
        parse_address(text)
    except ValueError:
        return False
    return "%" not in text


def is_mapped(address: Address) -> bool:
    """Reports whether an address is an IPv4 address in the form of an IPv6 address (Is4In6)."""
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _check_v4(text: str) -> None:
    """Raises Go's first error, from left to right."""
    value = digits = dots = 0
    for position, character in enumerate(text):
        if character.isascii() and character.isdigit():
            if digits == 1 and value == 0:
                raise ValueError("IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > 255:
                raise ValueError("IPv4 field has value >255")
        elif character == ".":
            if position in (0, len(text) - 1) or text[position - 1] == ".":
                raise ValueError(f"IPv4 field must have at least one digit (at {go_quote(text[position:])})")
            if dots == 3:
                raise ValueError("IPv4 address too long")
            value, digits, dots = 0, 0, dots + 1
        else:
            raise ValueError(f"unexpected character (at {go_quote(text[position:])})")
    if dots < 3:
        raise ValueError("IPv4 address too short")


def _check_v6(text: str) -> None:
    """Raises Go's first error, from left to right."""
    rest, zone = (text.partition("%")[0], text.partition("%")[2]) if "%" in text else (text, None)
    if zone == "":
        raise ValueError("zone must be a non-empty string")
    ellipsis, count = rest.startswith("::"), 0
    rest = rest.removeprefix("::")
    while rest and count < 8:
        digits = re.match(r"[0-9a-fA-F]*", rest)
        field = digits[0] if digits else ""
        if len(field) > 4:
            raise ValueError(f"each group must have 4 or fewer digits (at {go_quote(rest)})")
        if not field:
            raise ValueError(f"each colon-separated field must have at least one digit (at {go_quote(rest)})")
        if rest[len(field) :].startswith("."):
            _check_embedded(rest, ellipsis, count)
            rest, count = "", count + 2
            break
        rest, count = rest[len(field) :], count + 1
        if not rest:
            break
        if not rest.startswith(":"):
            raise ValueError(f"unexpected character, want colon (at {go_quote(rest)})")
        if rest == ":":
            raise ValueError(f"colon must be followed by more characters (at {go_quote(rest)})")
        rest = rest[1:]
        if rest.startswith(":"):
            if ellipsis:
                raise ValueError(f"multiple :: in address (at {go_quote(rest)})")
            ellipsis, rest = True, rest[1:]
    if rest:
        raise ValueError(f"trailing garbage after address (at {go_quote(rest)})")
    if count < 8 and not ellipsis:
        raise ValueError("address string too short")
    if count == 8 and ellipsis:
        raise ValueError("the :: must expand to at least one field of zeros")


def _check_embedded(rest: str, ellipsis: bool, count: int) -> None:
    """Checks an IPv4 address at the end of an IPv6 address."""
    if not ellipsis and count != 6:
        raise ValueError(f"embedded IPv4 address must replace the final 2 fields of the address (at {go_quote(rest)})")
    if count > 6:
        raise ValueError(f"too many hex fields to fit an embedded IPv4 at the end of the address (at {go_quote(rest)})")
    _check_v4(rest)


# --- Mail addresses: a bare address, one with a display name, or one in a group (net/mail) ---------------------------
# The grammar is regular except for nested comments, and RE2 matches any text in linear time.
#
# Specified by: RFC 5322, as far as net/mail (ParseAddress) follows it.


_SPACE: Final = r"[ \t]*"
_COMMENTS: Final = rf"{_SPACE}(?:\((?:[^()\\]|\\.)*\){_SPACE})*"
_BEYOND: Final = r"\x{80}-\x{10ffff}"
_CHARACTER: Final = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{_BEYOND}-]"
_DOTTED: Final = rf"{_CHARACTER}+(?:\.{_CHARACTER}+)*"
_IN_QUOTES: Final = rf"(?:[ \t!#-\[\]-~{_BEYOND}]|\\[ \t!-~{_BEYOND}])"
_QUOTED: Final = rf'"{_IN_QUOTES}*"'
_MAILBOX: Final = rf'{_SPACE}(?:{_DOTTED}|"{_IN_QUOTES}+")@{_SPACE}(?:{_DOTTED}|\[(?P<literal>[!-Z^-~]*)\])'
_WORD: Final = rf"(?:(?:{_CHARACTER}|\.)+|{_QUOTED})"
_PHRASE: Final = rf"{_SPACE}{_WORD}(?:{_COMMENTS}{_WORD})*{_COMMENTS}"
_NAMED: Final = rf"(?:{_PHRASE})?{_SPACE}<{_MAILBOX}>"

_FORMS: Final = (
    rf"{_MAILBOX}{_COMMENTS}",
    rf"{_NAMED}{_COMMENTS}",
    rf"{_PHRASE}:{_MAILBOX}{_COMMENTS};{_COMMENTS}",
    rf"{_PHRASE}:{_NAMED}{_COMMENTS};{_COMMENTS}",
)


def is_mail_address(text: str) -> bool:
    """Reports whether ParseAddress accepts the text."""
    match = next((found for form in _compiled_forms() if (found := form.fullmatch(text))), None)
    literal = match.group("literal") if match is not None else None
    return match is not None and (literal is None or is_address(literal))


@cache
def _compiled_forms() -> tuple[Any, ...]:
    """Returns the compiled forms. Compiling takes some 25 ms, and few schemas have the format."""
    import re2

    return tuple(re2.compile(f"(?s){form}") for form in _FORMS)


# --- Addresses on which a server listens -----------------------------------------------------------------------------


@lru_cache(maxsize=64)  # each cluster asks several times
def is_loopback(host: str) -> bool:
    """Reports whether a server that listens on a host is reachable from this machine only."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def reachability_warning(host: str, rights: str = "need the token or a certificate of the kubeconfig") -> str:
    """Returns the warning that other hosts can reach a server, and what they need; "" if they cannot."""
    return "" if is_loopback(host) else f"warning: other hosts can reach the server at {host or '0.0.0.0'}; they {rights}"


def is_ip_address(host: str) -> bool:
    """Reports whether a host is an IP address and not a name."""
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
