"""Regular expressions, in Go's dialect.

Specified by: cel-go/common/stdlib (matches), k8s.io/apiserver/pkg/cel/library/regex.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.base.golang import regexp


def compiled(pattern: str) -> Any:
    """Compiles a pattern. Raises EvaluationError with Go's error message."""
    try:
        return regexp.compile_pattern(pattern)
    except regexp.PatternError as error:
        raise EvaluationError(str(error)) from None


def _legal(pattern: str) -> Any:
    try:
        return compiled(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _matches(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = _legal(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Finds all matches like Go, which skips an empty match directly after another match."""
    found, end = [], -1
    for match in _legal(pattern).finditer(text):
        if match.end() > match.start() or match.start() != end:
            found.append(match.group())
        end = match.end()
    return found[:limit] if limit >= 0 else found


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("matches", True, str, str): _matches,
    ("matches", False, str, str): _matches,
    ("find", True, str, str): _find,
    ("findAll", True, str, str): _find_all,
    ("findAll", True, str, str, int): _find_all,
}
