"""Encodes JSON that orjson cannot: deeply nested documents, and scalars in another form. It does not recurse.

Invariant: memory is bounded. Indentation can make a document a thousand times longer than its compact form, so the
length of the parts is checked before they are joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.base.golang.raw_json import RawObject

#: The maximum length of a document in bytes: twice that of ten thousand levels with one line each.
LONGEST: Final = 1 << 30


def written(value: Any, scalar: Callable[[Any], bytes], *, pretty: bool = False, sort_keys: bool = False) -> bytes:
    """Encodes a value as JSON.

    Args:
        value: plain JSON data; `bytes` in it are encoded JSON.
        scalar: encodes keys and scalars.
        pretty: indent by two spaces like Go's json.MarshalIndent; else compact.
        sort_keys: sort the members by name.

    Raises:
        OverflowError: the document exceeds the maximum length.
    """
    colon = b": " if pretty else b":"
    parts: list[bytes] = []
    todo: list[tuple[Any, int]] = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        kind = type(item)
        if kind is bytes:
            parts.append(item)
        elif kind is RawObject:
            parts.append(item.indented(depth) if pretty else item.compact)
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
