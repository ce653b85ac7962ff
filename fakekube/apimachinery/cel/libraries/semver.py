"""Semantic versions.

Specified by: k8s.io/apiserver/pkg/cel/library/semverlib.go; semver.org 2.0; the messages: github.com/blang/semver.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.values import Opaque
from fakekube.base.golang.strconv import go_quote, parse_uint

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


def _numeric(text: str, name: str) -> int:
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


def _parse(text: str) -> Semver:
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    numbers = (_numeric(parts[0], "major"), _numeric(parts[1], "minor"), _numeric(patch, "patch"))
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


def _semver(text: str, normalise: bool = False) -> Semver:
    return _parse(_normalise(text) if normalise else text)


def _is_semver(text: str, normalise: bool = False) -> bool:
    try:
        _semver(text, normalise)
    except EvaluationError:
        return False
    return True


def _order(one: Semver, other: Semver) -> int:
    return (one.order > other.order) - (one.order < other.order)


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("semver", False, str): _semver,
    ("semver", False, str, bool): _semver,
    ("isSemver", False, str): _is_semver,
    ("isSemver", False, str, bool): _is_semver,
    ("isGreaterThan", True, Semver, Semver): lambda one, other: _order(one, other) > 0,
    ("isLessThan", True, Semver, Semver): lambda one, other: _order(one, other) < 0,
    ("compareTo", True, Semver, Semver): _order,
    ("major", True, Semver): lambda version: version.numbers[0],
    ("minor", True, Semver): lambda version: version.numbers[1],
    ("patch", True, Semver): lambda version: version.numbers[2],
}
