"""Validates DNS labels and subdomains, and other texts by length and regular expression.

A check takes a text and returns the real server's messages in order. With `prefix` (a generateName) a single trailing
dash is legal, since a suffix follows.

Specified by: k8s.io/apimachinery/pkg/api/validate/content/dns.go, …/api/validation/generic.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"


def too_long_text(maximum: int) -> str:
    return f"must be no more than {maximum} characters"


def regex_text(description: str, regex: str, *examples: str) -> str:
    """Returns a message with the description, the examples and the regular expression of a format."""
    if not examples:
        return f"{description} (regex used for validation is '{regex}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{description} (e.g. {shown}regex used for validation is '{regex}')"


def fits(value: str, maximum: int) -> bool:
    """Reports whether `value` has at most `maximum` bytes."""
    return len(value) <= maximum if value.isascii() else len(value.encode(errors="surrogatepass")) <= maximum


def form(regex: str, description: str, *examples: str, maximum: int = 0) -> Callable[[str], list[str]]:
    """Makes a check of the length and a regular expression."""
    matches = re.compile(regex).fullmatch
    text = regex_text(description, regex, *examples)

    def check(value: str) -> list[str]:
        if (not maximum or len(value) <= maximum) and matches(value):
            return []
        errors = [] if not maximum or fits(value, maximum) else [too_long_text(maximum)]
        return errors if matches(value) else [*errors, text]

    return check


_subdomain = form(
    SUBDOMAIN,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    "example.com",
    maximum=SUBDOMAIN_LENGTH,
)
_label = form(
    LABEL,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    "my-name",
    "123-abc",
    maximum=LABEL_LENGTH,
)
_label_1035 = form(
    _LABEL_1035,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    "my-name",
    "abc-123",
    maximum=LABEL_LENGTH,
)


def _mask_trailing_dash(prefix: str) -> str:
    """Drops the trailing dash of a prefix."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    """Validates an RFC 1123 subdomain, the format of most names."""
    return _subdomain(_mask_trailing_dash(name) if prefix else name)


def long_name(name: str) -> list[str]:
    """Validates a subdomain with the messages of declarative validation."""
    long = [] if fits(name, SUBDOMAIN_LENGTH) else [f"must be no more than {SUBDOMAIN_LENGTH} bytes"]
    return long + dns_subdomain(name)[len(long) :]


_subdomain_matches = re.compile(SUBDOMAIN).fullmatch
_label_matches = re.compile(LABEL).fullmatch


def dns_label(name: str, prefix: bool = False) -> list[str]:
    """Validates an RFC 1123 label: a subdomain without dots."""
    if prefix:
        name = _mask_trailing_dash(name)
    errors = _label(name)
    if errors and not _label_matches(name) and _subdomain_matches(name):
        errors[-1] = "must not contain dots"
    return errors


def dns_1035_label(name: str, prefix: bool = False) -> list[str]:
    """Validates an RFC 1035 label, which starts with a letter."""
    return _label_1035(_mask_trailing_dash(name) if prefix else name)
