"""Regular expressions, in RE2's dialect.

RE2 is asked itself; only its complaints are put into the words of Go's regexp, which is RE2 rewritten.

Specified by: cel-go/common/stdlib (matches), k8s.io/apiserver/pkg/cel/library/regex.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

from fakekube.cel.errors import EvaluationError

__all__ = ["FUNCTIONS", "compiled"]

#: How RE2 begins to complain → how Go does.
_COMPLAINTS: Final = {
    "missing )": "missing closing )", "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad repetition operator": "invalid nested repetition operator", "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
}
_TRAILING: Final = "error parsing regexp: trailing backslash at end of expression: ``"


#: Groups within groups, in Go.
_MAX_DEPTH: Final = 1000


def _depth(pattern: str) -> int:
    """How deep groups can be nested, at most."""
    if pattern.count("(") <= _MAX_DEPTH:
        return 0
    depth = deepest = 0
    for character in re.sub(r"\\.|\[[^\]]*\]", "", pattern):
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The compiled pattern. Raises EvaluationError with what Go says of it."""
    if _depth(pattern) > _MAX_DEPTH:
        raise EvaluationError(f"error parsing regexp: expression nests too deeply: `{pattern}`")
    single_byte = re.match(r"(?:[^\\]|\\[^C])*\\C", pattern, re.DOTALL)
    if single_byte:  # RE2 knows it, Go does not
        raise EvaluationError("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
    if text == "trailing \\":
        raise EvaluationError(_TRAILING)
    what, _, where = text.partition(": ")
    if where in ("(?<=", "(?<!"):
        raise EvaluationError(f"error parsing regexp: invalid named capture: `{pattern[pattern.index(where) :]}`")
    raise EvaluationError(f"error parsing regexp: {_COMPLAINTS.get(what, what)}: `{where}`")


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
    """As Go finds them: an empty match right behind another one is none."""
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
