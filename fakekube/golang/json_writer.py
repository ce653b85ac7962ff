"""Writes JSON that is not for orjson: nested too deep, or with scalars in another form. Without recursion.

What is indented can be a thousand times longer than what it was read from: before the text is made of its parts, which
share what they have in common, it is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["LONGEST", "written"]

#: Bytes that a document may have; ten thousand levels, each on a line of its own, have half of that.
LONGEST: Final = 1 << 30


def written(value: Any, scalar: Callable[[Any], bytes], *, pretty: bool = False, sort_keys: bool = False) -> bytes:
    """The JSON of a value.

    Args:
        value: plain JSON data; bytes in it are JSON already.
        scalar: writes keys, and what is neither an object nor an array.
        pretty: indented by two spaces, as Go's json.MarshalIndent does it; else compact.
        sort_keys: members are sorted by their names.

    Raises:
        OverflowError: it would be longer than any document is.
    """
    colon = b": " if pretty else b":"
    parts: list[bytes] = []
    todo: list[tuple[Any, int]] = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        kind = type(item)
        if kind is bytes:
            parts.append(item)
        elif item and (kind is dict or kind is list):
            opening, closing = (b"{", b"}") if kind is dict else (b"[", b"]")
            line = b"\n" + b"  " * depth if pretty else b""
            inner = line + b"  " if pretty else b""
            next_line = b"," + inner
            parts.append(opening)
            todo.append((line + closing, depth))
            if kind is dict:
                names = sorted(item) if sort_keys else list(item)
                labels, members = [scalar(name) + colon for name in names], [item[name] for name in names]
            else:
                labels, members = [b""] * len(item), item
            for number in range(len(members) - 1, -1, -1):
                todo.append((members[number], depth + 1))
                todo.append((labels[number], depth))
                todo.append((next_line if number else inner, depth))
        else:
            parts.append(scalar(item))
    if pretty and sum(map(len, parts)) > LONGEST:
        raise OverflowError("the document is too long")
    return b"".join(parts)
