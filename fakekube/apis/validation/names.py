"""The syntax of names and other short strings. Each check returns the texts of what is wrong, in order.

A check takes a string and returns a list of details, empty if the string is valid; the caller makes field errors of them
(`checks.invalid_each`). Checks for the names of objects also take `prefix`: a generateName is validated as the start of a
name, so it may end with one dash.

`preference` orders the versions of a custom group: GA before beta before alpha, then higher numbers first. Versions that do
not have the form of a Kubernetes version come last, in alphabetical order.

Specified by: k8s.io/apimachinery/pkg/util/validation, …/api/validate/content, …/api/validation (generic.go);
k8s.io/apimachinery/pkg/version/helpers.go (CompareKubeAwareVersionStrings).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from fakekube.apimachinery import features
from fakekube.apimachinery.schema.dns import (
    LABEL_LENGTH,
    SUBDOMAIN,
    SUBDOMAIN_LENGTH,
    dns_1035_label,
    dns_label,
    dns_subdomain,
    fits,
    form,
    long_name,
    regex_text,
    too_long_text,
)
from fakekube.apimachinery.selectors.labels import label_key, label_value
from fakekube.base.caches import cache_by_text

__all__ = [
    "LABEL_LENGTH",
    "SUBDOMAIN_LENGTH",
    "NameCheck",
    "c_identifier",
    "caseless_dns_subdomain",
    "config_map_key",
    "decimal_integer",
    "dns_1035_label",
    "dns_label",
    "dns_subdomain",
    "dns_subdomain_with_underscores",
    "environment_name",
    "fits",
    "http_header_name",
    "in_range",
    "kind_name",
    "label_key",
    "label_value",
    "long_name",
    "max_error",
    "min_error",
    "path_segment",
    "percent",
    "port_name",
    "port_number",
    "preference",
    "regex_text",
    "relaxed_environment_name",
    "service_name",
    "too_long_text",
    "wildcard_subdomain",
]

NameCheck = Callable[[str, bool], list[str]]
"""A check: (name, whether it is a prefix) → the details of errors."""

_UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
UNDERSCORE_SUBDOMAIN = rf"{_UNDERSCORE_LABEL}(\.{_UNDERSCORE_LABEL})*"
_WILDCARD = rf"\*\.{SUBDOMAIN}"


#: A subdomain whose labels may have underscores, as the search paths of pods may.
dns_subdomain_with_underscores = form(
    UNDERSCORE_SUBDOMAIN,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character",
    "example.com",
    maximum=SUBDOMAIN_LENGTH,
)
wildcard_subdomain = form(
    _WILDCARD,
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
    "which must consist of lower case alphanumeric characters, '-' or '.' "
    "and end with an alphanumeric character",
    "*.example.com",
    maximum=SUBDOMAIN_LENGTH,
)
c_identifier = form(
    "[A-Za-z_][A-Za-z0-9_]*",
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
    "my_name",
    "MY_NAME",
    "MyName",
)
percent = form("[0-9]+%", "a valid percent string must be a numeric string followed by an ending '%'", "1%", "93%")
http_header_name = form("[-A-Za-z0-9]+", "a valid HTTP header must consist of alphanumeric characters or '-'", "X-Header-Name")
_config_map_key = form(
    "[-._a-zA-Z0-9]+",
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "key.name",
    "KEY_NAME",
    "key-name",
    maximum=SUBDOMAIN_LENGTH,
)


def service_name(name: str, prefix: bool = False) -> list[str]:
    """Validates the name of a Service: a DNS label, which has to begin with a letter where the gate is off."""
    relaxed = features.current().enabled("RelaxedServiceNameValidation")
    return list(dns_label(name, prefix) if relaxed else dns_1035_label(name, prefix))


def caseless_dns_subdomain(name: str) -> list[str]:
    """Validates a subdomain in any letter case with the messages of declarative validation (k8s-long-name-caseless)."""
    told = (text.replace("a lowercase RFC", "an RFC").replace("lower case ", "") for text in long_name(name.lower()))
    return [text.replace("'example.com'", "'Example.com'") for text in told]


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """Validates a segment of a path, the minimum requirement for the name of any object."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    if "/" not in name and "%" not in name:
        return []
    return [f"may not contain '{character}'" for character in "/%" if character in name]


@cache_by_text(4096)
def config_map_key(value: str) -> tuple[str, ...]:
    """Validates a key of the data of a ConfigMap or Secret: a file name."""
    return (*_config_map_key(value), *_change_directory(value))


_relaxed_matches = re.compile("[ -<>-~]*").fullmatch


def relaxed_environment_name(value: str) -> list[str]:
    """Validates the name of an environment variable: any printable ASCII character except the equals sign."""
    if _relaxed_matches(value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


_strict_environment_name = form(
    "[-._a-zA-Z][-._a-zA-Z0-9]*",
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
    "and must not start with a digit",
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)


def environment_name(value: str) -> list[str]:
    """Validates the name of an environment variable of a container, as the gate for relaxed names says."""
    if features.current().enabled("RelaxedEnvironmentVariableValidation"):
        return relaxed_environment_name(value)
    return [*_strict_environment_name(value), *_change_directory(value)]


def kind_name(value: str) -> str:
    """Validates the name of a kind, whatever its case; returns the text of what is wrong, or ""."""
    problems = dns_1035_label(value.lower())
    return f"may have mixed case, but should otherwise match: {','.join(problems)}" if problems else ""


def min_error(minimum: int) -> str:
    """Returns the detail of a number that is too small (MinError)."""
    return f"must be greater than or equal to {minimum}"


def max_error(maximum: int | str) -> str:
    """Returns the detail of a number that is larger than a number, or than what the words name."""
    return f"must be less than or equal to {maximum}"


#: The detail of a path or file name that could leave its directory, or that the kubelet reserves.
STARTS_WITH_DOTS = "must not start with '..'"


def _change_directory(value: str) -> list[str]:
    """Validates that a file name does not refer to a parent directory."""
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return [STARTS_WITH_DOTS] if value.startswith("..") else []


_port_name_matches = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search


def port_name(value: str) -> list[str]:
    """Validates the name of a port (RFC 6335, lower case only)."""
    errors = []
    if not fits(value, 15):
        errors.append(too_long_text(15))
    if not _port_name_matches(value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


_integer_matches = re.compile("0|-?[1-9][0-9]*").fullmatch


def decimal_integer(value: str) -> list[str]:
    """Validates a whole number in canonical form."""
    if not value:
        return ["must be non-empty"]
    return [] if _integer_matches(value) else ["must be a valid decimal integer in canonical form"]


def in_range(value: int, minimum: int, maximum: int) -> list[str]:
    return [] if minimum <= value <= maximum else [f"must be between {minimum} and {maximum}, inclusive"]


def port_number(value: int) -> list[str]:
    return in_range(value, 1, 65535)


_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def preference(version: str) -> tuple[int, int, int, int, str]:
    """Returns a key that sorts the preferred version first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = match.groups()
    return (0, _STABILITY[stability], -int(major), -int(minor or 0), "")


def count_in_bytes(details: Iterable[str]) -> list[str]:
    """Returns details in the words of declared rules, which count bytes."""
    return [detail.replace("characters", "bytes") if "no more than" in detail else detail for detail in details]
