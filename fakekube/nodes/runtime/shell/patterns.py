"""Patterns of the shell: `*`, `?` and `[…]`, as in pathname expansion, `case` and `${name#pattern}`.

`regular_expressions` matches them.

Specified by: POSIX.1-2017, Shell & Utilities, 2.13 (Pattern Matching Notation).
"""

from __future__ import annotations

import re

__all__ = ["escape", "is_pattern"]

_SPECIAL = re.compile(r"[*?\[]")


def escape(text: str) -> str:
    """Returns a pattern that matches this text only."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)


def is_pattern(text: str) -> bool:
    """Reports whether a text contains unescaped special characters."""
    return bool(_SPECIAL.search(re.sub(r"\\.", "", text)))
