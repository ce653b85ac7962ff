"""Named formats: each is a function from a text to error messages.

Specified by: k8s.io/apiserver/pkg/cel/library/format.go.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.libraries.standard import parse_timestamp
from fakekube.apimachinery.cel.values import Opaque, Optional
from fakekube.apimachinery.schema.dns import dns_1035_label, dns_label, dns_subdomain
from fakekube.apimachinery.selectors.labels import label_key, label_value
from fakekube.base.golang import urls

Check = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    """A named format; equality is that of the names."""

    type_name = "kubernetes.NamedFormat"
    name: str
    check: Check = field(compare=False)
    pattern_size: int = field(default=0, compare=False)
    """The length of its pattern, for the cost of a validation."""


def _prefix(check: Callable[[str, bool], Sequence[str]]) -> Check:
    """Returns the validator of a prefix of a name."""
    return lambda text: check(text, True)


def _reads(read: Callable[[str], object], problem: str) -> Check:
    def check(text: str) -> Sequence[str]:
        try:
            read(text)
        except (ValueError, binascii.Error, EvaluationError):
            return [problem]
        return ()

    return check


def _date(text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    return date.fromisoformat(text)


def _uuid(text: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", text, re.IGNORECASE):
        raise ValueError(text)


def _base64(text: str) -> None:
    if not text or b64decode(text, validate=True) is None:
        raise ValueError(text)


def _uri(text: str) -> Sequence[str]:
    try:
        urls.parse_request_uri(text)
    except ValueError as problem:
        return [str(problem)]
    return ()


_FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", dns_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", dns_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", dns_1035_label, 30),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(dns_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(dns_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(dns_1035_label), 30),
    "qualifiedName": Format("QualifiedName", label_key, 60),
    "labelValue": Format("LabelValue", label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _reads(_uuid, "does not match the UUID format"), 70),
    "byte": Format("byte", _reads(_base64, "invalid base64"), 84),
    "date": Format("date", _reads(_date, "invalid date"), 71),
    "datetime": Format("datetime", _reads(parse_timestamp, "invalid datetime"), 71),
}


def _validate(named: Format, text: str) -> Optional:
    problems = list(named.check(text))
    return Optional(problems) if problems else Optional()


def _named(name: str) -> Optional:
    return Optional(_FORMATS[name]) if name in _FORMATS else Optional()


def _constant(named: Format) -> Callable[[], Format]:
    return lambda: named


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    **{(f"format.{name}", False): _constant(named) for name, named in _FORMATS.items()},
    ("format.named", False, str): _named,
    ("validate", True, Format, str): _validate,
}
