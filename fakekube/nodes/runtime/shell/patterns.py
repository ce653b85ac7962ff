"""Patterns of the shell: `*`, `?` and `[…]`, as in pathname expansion, `case` and `${name#pattern}`.

Specified by: POSIX.1-2017, Shell & Utilities, 2.13 (Pattern Matching Notation).
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["CLASSES", "compiled", "escape", "is_pattern", "remove_prefix", "remove_suffix"]

_SPECIAL = re.compile(r"[*?\[]")
CLASSES = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "space": r"\s", "upper": "A-Z", "lower": "a-z",
            "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "blank": r" \t"}  # fmt: skip


def escape(text: str) -> str:
    """Returns a pattern that matches this text only."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)


def is_pattern(text: str) -> bool:
    """Reports whether a text contains unescaped special characters."""
    return bool(_SPECIAL.search(re.sub(r"\\.", "", text)))


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """Returns the regular expression of a pattern."""
    made, place = "", 0
    while place < len(pattern):
        one = pattern[place]
        place += 1
        if one == "*":
            made += ".*"
        elif one == "?":
            made += "."
        elif one == "\\" and place < len(pattern):
            made += re.escape(pattern[place])
            place += 1
        elif one == "[" and (end := pattern.find("]", place + 1 + (pattern[place : place + 1] in "!^"))) > 0:
            end = pattern.find("]", end + 1) if "[:" in pattern[place:end] else end
            inner = pattern[place : end if end > 0 else len(pattern)]
            place = end + 1
            negated = inner[:1] in ("!", "^")
            inner = inner[1:] if negated else inner
            inner = re.sub(r"\[:(\w+):\]", lambda found: CLASSES.get(found[1], ""), inner.replace("\\", "\\\\"))
            made += f"[{'^' if negated else ''}{inner}]"
        else:
            made += re.escape(one)
    try:
        return re.compile(made, re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))


def remove_prefix(text: str, pattern: str, *, longest: bool) -> str:
    """Removes the shortest or longest beginning that matches."""
    lengths = range(len(text), -1, -1) if longest else range(len(text) + 1)
    expression = compiled(pattern)
    return next((text[length:] for length in lengths if expression.fullmatch(text, 0, length)), text)


def remove_suffix(text: str, pattern: str, *, longest: bool) -> str:
    """Removes the shortest or longest end that matches."""
    starts = range(len(text) + 1) if longest else range(len(text), -1, -1)
    expression = compiled(pattern)
    return next((text[:start] for start in starts if expression.fullmatch(text, start)), text)
