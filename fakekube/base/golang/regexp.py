"""Compiles regular expressions like Go's regexp, with the same error messages.

The implementation uses RE2, of which Go's package is a port. It rejects the syntax that only RE2 supports, and
translates RE2's errors into Go's.

Specified by: Go's regexp/syntax (parse.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from fakekube.base.golang.strings import bytes_of

#: The start of an RE2 error → the start of Go's error.
_COMPLAINTS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
}

#: Go's maximum nesting depth of groups.
_MAX_DEPTH: Final = 1000


class PatternError(ValueError):
    """A pattern is not valid. The message is Go's."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compiles a pattern.

    Raises:
        PatternError: the pattern is not valid.
    """
    problem = _problem(pattern)
    if problem:
        raise PatternError(f"error parsing regexp: {problem}")
    import re2  # only patterns need it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
    raise PatternError(f"error parsing regexp: {_in_words_of_go(text, pattern)}")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Returns a function that reports whether a text contains a match. It is faster than a search for the position.

    Raises:
        PatternError: the pattern is not valid.
    """
    search = compile_pattern(pattern).search
    return lambda text: search(bytes_of(text)) is not None


def _problem(pattern: str) -> str:
    """Returns Go's error for a pattern that RE2 accepts and Go rejects; "" if there is none."""
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
    """Returns an upper bound of the nesting depth of groups."""
    if pattern.count("(") <= _MAX_DEPTH:
        return 0
    depth = deepest = 0
    for character in re.sub(r"\\.|\[[^\]]*\]", "", pattern):
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest
