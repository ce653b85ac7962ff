"""Regular expressions as Go's regexp reads them.

RE2 is asked itself, since Go's package is RE2 rewritten; what it knows and Go does not is refused, and its complaints
are put into Go's words.

Specified by: Go's regexp/syntax (parse.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

from fakekube.golang.strings import bytes_of

__all__ = ["PatternError", "compiled", "matcher"]

#: How RE2 begins to complain → how Go does.
_COMPLAINTS: Final = {
    "missing )": "missing closing )", "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad repetition operator": "invalid nested repetition operator", "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
}

#: Groups within groups, in Go.
_MAX_DEPTH: Final = 1000


class PatternError(ValueError):
    """What Go says of a pattern."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The compiled pattern.

    Raises:
        PatternError: it is none.
    """
    problem = _problem(pattern)
    if problem:
        raise PatternError(f"error parsing regexp: {problem}")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
    raise PatternError(f"error parsing regexp: {_in_words_of_go(text, pattern)}")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Is there somewhere in a text what a pattern describes? Quicker than a search, which tells where.

    Raises:
        PatternError: it is none.
    """
    search = compiled(pattern).search
    return lambda text: search(bytes_of(text)) is not None


def _problem(pattern: str) -> str:
    """What only Go minds."""
    if _depth(pattern) > _MAX_DEPTH:
        return f"expression nests too deeply: `{pattern}`"
    single_byte = re.match(r"(?:[^\\]|\\[^C])*\\C", pattern, re.DOTALL)
    return r"invalid escape sequence: `\C`" if single_byte else ""


def _in_words_of_go(complaint: str, pattern: str) -> str:
    if complaint == "trailing \\":
        return "trailing backslash at end of expression: ``"
    what, _, where = complaint.partition(": ")
    if where in ("(?<=", "(?<!"):
        return f"invalid named capture: `{pattern[pattern.index(where) :]}`"
    return f"{_COMPLAINTS.get(what, what)}: `{where}`"


def _depth(pattern: str) -> int:
    """How deep groups can be nested, at most."""
    if pattern.count("(") <= _MAX_DEPTH:
        return 0
    depth = deepest = 0
    for character in re.sub(r"\\.|\[[^\]]*\]", "", pattern):
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest
