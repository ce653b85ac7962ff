"""Numbers in annotations, which the real server keeps in fields of its own.

Specified by: pkg/apis/apps/v1/conversion.go; strconv.ParseInt of Go.
"""

from __future__ import annotations

import re

from fakekube.errors import StatusError, status
from fakekube.errors.field import go_quote

__all__ = ["cannot_be_handled", "parse_int"]

_matches = re.compile(r"[+-]?[0-9]+").fullmatch


def parse_int(text: str) -> int:
    """An int64 in decimal. Raises ValueError in Go's words."""
    if not _matches(text):
        raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
    return number


def cannot_be_handled(kind: str, problem: str) -> StatusError:
    """400 for an object of apps/v1 that has no internal form."""
    return status.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {problem}')
