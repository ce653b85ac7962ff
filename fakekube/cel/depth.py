"""Room for expressions that nest deeply.

An expression may nest 250 levels deep, and whatever walks over it takes a few calls for each level. Python allows a
thousand calls at first, of which the caller has used some. The allowance is raised for the process when the first deep
expression comes, and not taken back, since others may rely on it by then.
"""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["make_room"]

_OPENING: Final = "([{?"
#: So many levels fit into what there is.
_SHALLOW: Final = 20
_ROOM: Final = 12_000


def make_room(source: str) -> None:
    """Before anything walks over an expression."""
    depth = sum(map(source.count, _OPENING)) + source.count(".") // 4
    if depth > _SHALLOW and sys.getrecursionlimit() < _ROOM:
        sys.setrecursionlimit(_ROOM)
