"""The formats that a string of a custom resource may be asked to have. Unknown formats are not checked.

Specified by: k8s.io/kube-openapi/pkg/validation/strfmt (default.go, kubernetes-extensions.go).
"""

from __future__ import annotations

import binascii
import ipaddress
import re
import unicodedata
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date
from urllib.parse import urlsplit

from fakekube.resources import names
from fakekube.schema.timestamps import TimeError, parse_time

__all__ = ["FORMATS"]


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(read: Callable[[str], object], *errors: type[Exception]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except errors:
            return False
        return True

    return check


def _date(text: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and _parses(date.fromisoformat, ValueError)(text)


def _base64(text: str) -> bool:
    return _parses(lambda t: b64decode(t, validate=True), binascii.Error, ValueError)(text) and bool(text)


def _cidr(text: str) -> bool:
    return "/" in text and _parses(lambda t: ipaddress.ip_network(t, strict=False), ValueError)(text)


def _uri(text: str) -> bool:
    return _parses(urlsplit, ValueError)(text) and (bool(urlsplit(text).scheme) or text.startswith("/"))


#: One label with a hyphen nowhere but after the first character; or several, the last of letters (a, or + for symbols).
_HOSTNAME = re.compile(
    r"[a-zA-Z0-9+](?:-?[a-zA-Z0-9+]{0,62})|(?:[a-zA-Z0-9+](?:[a-zA-Z0-9+-]{0,61}[a-zA-Z0-9+])?\.)+[a-zA-Z]{2,63}"
)


def _hostname(text: str) -> bool:
    classes = {"L": "a", "S": "+"}
    plain = "".join(c if c.isascii() and c.isalnum() else classes.get(unicodedata.category(c)[0], c) for c in text)
    is_short = len(text.encode()) <= 255 and all(len(label.encode()) <= 63 for label in text.split("."))
    return is_short and _HOSTNAME.fullmatch(plain) is not None


def _email(text: str) -> bool:
    return bool(re.fullmatch(r"[^@\s<>]+@[^@\s<>]+|.*<[^@\s<>]+@[^@\s<>]+>", text))


def _luhn(text: str) -> bool:
    digits = [int(d) for d in re.sub(r"[\s-]", "", text)]
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _credit_card(text: str) -> bool:
    plain = re.sub(r"[^0-9]+", "", text)
    return bool(_CARD.fullmatch(plain)) and _luhn(plain)


_CARD = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|"
    r"3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}"
)


def _isbn10(text: str) -> bool:
    plain = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", plain):
        return False
    return sum((10 if d == "X" else int(d)) * (10 - i) for i, d in enumerate(plain)) % 11 == 0


def _isbn13(text: str) -> bool:
    plain = re.sub(r"[\s-]", "", text)
    return bool(re.fullmatch(r"\d{13}", plain)) and sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(plain)) % 10 == 0


#: A number that fits a byte; leading zeros are fine.
_BYTE = r"0*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])"

#: time.ParseDuration; else numbers and words anywhere in the text, one of which must be a unit, or begin with a long one.
_GO_DURATION = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[-+]?0")
_NUMBER_AND_WORD = re.compile(r"\d+\s*([A-Za-zµ]+)")
_UNITS = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_LONG_UNITS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        return True
    words = [word.lower() for word in _NUMBER_AND_WORD.findall(text)]
    return any(word in _UNITS or word.startswith(_LONG_UNITS) for word in words)


def _version(number: str) -> str:
    return rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{number}[0-9a-f]{{3}}-?[0-9a-f]{{4}}-?[0-9a-f]{{12}}"


#: Format (without hyphens) → is a text of it?
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _matches(rf"{_BYTE}(?:\.{_BYTE}){{3}}"),
    "ipv6": _parses(ipaddress.IPv6Address, ValueError),
    "cidr": _cidr,
    "mac": _matches(
        r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4}(?:[0-9a-fA-F]{2}\1){0,2}[0-9a-fA-F]{2}"
        r"|(?:[0-9a-fA-F]{4}\.){2,3}[0-9a-fA-F]{4}"
    ),
    "uuid": _matches(_version("[0-9a-f]"), re.IGNORECASE),
    "uuid3": _matches(_version("3"), re.IGNORECASE),
    "uuid4": _matches(r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE),
    "uuid5": _matches(r"[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(
        r"rgb\(\s*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*(?:,\s*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*){2}\)"
    ),
    "byte": _base64,
    "date": _date,
    "duration": _duration,
    "datetime": _parses(parse_time, TimeError),
    "k8sshortname": lambda text: not names.dns_label(text, False),
    "k8slongname": lambda text: not names.dns_subdomain(text, False),
}
