"""The formats of strings in schemas, each with its check; unknown ones are ignored.

Specified by: k8s.io/kube-openapi/pkg/validation/strfmt (default.go, kubernetes-extensions.go).
"""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Mapping

from fakekube.apis.validation import names
from fakekube.apis.validation.ip import parse_cidr, parse_ip
from fakekube.base.golang.net import is_address, is_mail_address
from fakekube.base.golang.timestamps import parse_spelled_duration
from fakekube.base.golang.urls import parse_request_uri


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Returns a check that passes if `read` does not raise ValueError."""

    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _is_date(text: str) -> bool:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = map(int, text.split("-"))
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 400, month)[1]  # the calendar repeats itself


_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})", re.DOTALL)


def _is_datetime(text: str) -> bool:
    """Reports whether a text is a date and time with a zone; text after a second T is ignored."""
    day, *rest = text.lower().split("t")
    time = _TIME.fullmatch(rest[0]) if rest else None
    return time is not None and _is_date(day) and time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


#: One label with a hyphen nowhere but after the first character; or several, the last of letters (a, or + for symbols).
_HOSTNAME = re.compile(
    r"[a-zA-Z0-9+](?:-?[a-zA-Z0-9+]{0,62})|(?:[a-zA-Z0-9+](?:[a-zA-Z0-9+-]{0,61}[a-zA-Z0-9+])?\.)+[a-zA-Z]{2,63}"
)


def _is_hostname(text: str) -> bool:
    classes = {"L": "a", "S": "+"}
    plain = "".join(c if c.isascii() and c.isalnum() else classes.get(unicodedata.category(c)[0], c) for c in text)
    is_short = len(text.encode()) <= 255 and all(len(label.encode()) <= 63 for label in text.split("."))
    return is_short and _HOSTNAME.fullmatch(plain) is not None


def _fits_luhn(text: str) -> bool:
    digits = [int(d) for d in re.sub(r"[\s-]", "", text)]
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    plain = re.sub(r"[^0-9]+", "", text)
    return bool(_CARD.fullmatch(plain)) and _fits_luhn(plain)


_CARD = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|"
    r"3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}"
)


def _is_isbn10(text: str) -> bool:
    plain = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", plain):
        return False
    return sum((10 if d == "X" else int(d)) * (10 - i) for i, d in enumerate(plain)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    plain = re.sub(r"[\s-]", "", text)
    return bool(re.fullmatch("[0-9]{13}", plain)) and sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(plain)) % 10 == 0


_HEX = "[0-9a-fA-F]"
_MAC = (
    rf"{_HEX}{{2}}([:-]){_HEX}{{2}}(?:\1{_HEX}{{2}}){{4}}(?:(?:\1{_HEX}{{2}}){{2}}|(?:\1{_HEX}{{2}}){{14}})?"
    rf"|{_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}}(?:\.{_HEX}{{4}}|(?:\.{_HEX}{{4}}){{7}})?|{_HEX}{{12}}|{_HEX}{{16}}|{_HEX}{{40}}"
)
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"


def _uuid(version: str, variant: str = "") -> Callable[[str], bool]:
    """Returns the check of a UUID: a version, and the first digit of the variant if it matters."""
    part = f"{variant}[0-9a-f]{{3}}" if variant else "[0-9a-f]{4}"
    return _matches(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}[0-9a-f]{{3}}-?{part}-?[0-9a-f]{{12}}", re.IGNORECASE)


#: Format (without hyphens) → its check.
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "uri": _reads(parse_request_uri),
    "email": is_mail_address,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and parse_ip(text) is not None,
    "ipv6": lambda text: ":" in text and is_address(text),
    "cidr": lambda text: parse_cidr(text) is not None,
    "mac": _matches(_MAC),
    "uuid": _uuid("[0-9a-f]"),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matches(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(
        r"rgb\(\s*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*(?:,\s*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*){2}\)"
    ),
    "byte": _matches(_BASE64),
    "date": _is_date,
    "duration": _reads(parse_spelled_duration),
    "datetime": _is_datetime,
    "k8sshortname": lambda text: not names.dns_label(text, False),
    "k8slongname": lambda text: not names.dns_subdomain(text, False),
}
