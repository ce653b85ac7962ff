"""A strategy for texts that match a pattern of Go.

Hypothesis makes texts for patterns of Python, so a pattern is translated token by token. RE2 says which characters a class or an
escape stands for: those of printable ASCII are used, or some others where it has none of these.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, islice
from typing import Final

from hypothesis import strategies as st

from fakekube.base.golang.regexp import compile_pattern
from fakekube.base.golang.strings import bytes_of

_FIRST, _LAST = 0x20, 0x7E
PRINTABLE: Final = st.characters(min_codepoint=_FIRST, max_codepoint=_LAST)
_ASCII: Final = bytes(range(_FIRST, _LAST + 1))
#: Of a class without printable ASCII: its first runs of adjacent characters, and of each its first characters.
_RUNS: Final = 8
_RUN: Final = 64

_TOKEN: Final = re.compile(
    r"""
      \\Q (?P<literal>.*?) (?:\\E|\Z)
    | (?P<set>                                     # brackets, or an escape that stands for characters
        \[ \^? \]? (?: \[:\^?\w+:\] | \\. | [^\]\\] )* \]
      | \\ (?: [pP](?:\{[^}]*\}|.) | x(?:\{[^}]*\}|..) | [0-7]{1,3} | [^AbBz] )
      )
    | \(\? (?P<on>[imsU]*) (?:-(?P<off>[imsU]+))? (?P<scope>[:)])
    | (?P<group>\(\?P?<\w+>)
    | (?P<brace>\{(?!\d))                          # Python reads {,3} as a repetition
    | (?P<end>\\z|\$)
    """,
    re.VERBOSE | re.DOTALL,
)


def texts_like(pattern: str) -> st.SearchStrategy[str]:
    """Returns a strategy for texts of which most match a valid pattern of Go."""
    tokens = tuple(_TOKEN.finditer(pattern))
    flags = {flag for token in tokens if token["scope"] == ")" for flag in _flags(token["on"])}
    translated = _TOKEN.sub(_in_python, pattern)
    used = set(pattern).union(*(run for token in tokens if token["set"] for run in _runs(token["set"])))
    others = "".join(sorted(one for one in used if not _FIRST <= ord(one) <= _LAST))
    alphabet = st.characters(min_codepoint=_FIRST, max_codepoint=_LAST, include_characters=others)
    return st.from_regex(f"(?{''.join(sorted(flags))}){translated}" if flags else translated, alphabet=alphabet)


def _in_python(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "literal":
            return re.escape(token["literal"])
        case "set":
            return _brackets(token["set"])
        case "scope":  # Python has flags for a group, and for the whole pattern
            off = _flags(token["off"] or "")
            return f"(?{_flags(token['on'])}{'-' if off else ''}{off}:" if token["scope"] == ":" else ""
        case "group":
            return "("
        case "brace":
            return r"\{"
    return r"\Z"


def _flags(flags: str) -> str:
    """Returns the flags that change which texts match."""
    return flags.replace("U", "")


def _brackets(token: str) -> str:
    """Returns brackets of Python with the characters for which a token stands."""
    runs = _runs(token)
    # For none a lookahead that never matches: Hypothesis does not know what Python 3.14 makes of (?!).
    return f"[{''.join(f'{re.escape(run[0])}-{re.escape(run[-1])}' for run in runs)}]" if runs else "(?!.?)"


@lru_cache(maxsize=256)
def _runs(token: str) -> tuple[str, ...]:
    """Returns the runs of adjacent characters for which a token stands."""
    pattern = compile_pattern(f"(?:{token})+")
    printable = tuple(run[0].decode() for run in pattern.finditer(_ASCII))
    return printable or tuple(run[0].decode()[:_RUN] for run in islice(pattern.finditer(_beyond_ascii()), _RUNS))


@lru_cache(maxsize=1)
def _beyond_ascii() -> bytes:
    """Returns the text of all characters of the first two planes that are not printable ASCII."""
    return bytes_of("".join(map(chr, chain(range(_LAST + 1, 0xD800), range(0xE000, 0x20000), range(_FIRST)))))
