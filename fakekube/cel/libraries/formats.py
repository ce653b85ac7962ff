"""Named formats: what is wrong with a text, in words.

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

from fakekube.cel.errors import EvaluationError
from fakekube.cel.libraries.standard import parse_timestamp
from fakekube.cel.libraries.urls import url_problem
from fakekube.cel.values import Opaque, Optional
from fakekube.selectors.syntax import label_key, label_value

__all__ = ["FUNCTIONS"]

Check = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    """A format; two are equal if their names are."""

    type_name = "kubernetes.NamedFormat"
    name: str
    check: Check = field(compare=False)
    pattern_size: int = field(default=0, compare=False)
    """How long a pattern for it is: what a check costs."""


_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _form(pattern: str, maximum: int, description: str, *examples: str) -> Check:
    matches = re.compile(pattern).fullmatch
    shown = " or ".join(f"'{example}', " for example in examples)
    text = f"{description} (e.g. {shown}regex used for validation is '{pattern}')"

    def check(name: str) -> list[str]:
        errors = [f"must be no more than {maximum} characters"] if len(name.encode()) > maximum else []
        return errors if matches(name) else [*errors, text]

    return check


_subdomain = _form(
    rf"{_LABEL}(\.{_LABEL})*", 253,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character", "example.com",
)
_plain_label = _form(
    _LABEL, 63,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character", "my-name", "123-abc",
)
_label_1035 = _form(
    "[a-z]([-a-z0-9]*[a-z0-9])?", 63,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character", "my-name", "abc-123",
)


def _label(name: str) -> Sequence[str]:
    errors = list(_plain_label(name))
    if errors and not re.fullmatch(_LABEL, name) and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", name):
        errors[-1] = "must not contain dots"
    return errors


def _prefix(check: Check) -> Check:
    """A dash at the end of a prefix is legal."""
    return lambda name: check(f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name)


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
    problem = url_problem(text)
    return [problem] if problem else ()


_FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", _label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": Format("DNS1035Label", _label_1035, 30),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(_label_1035), 30),
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
