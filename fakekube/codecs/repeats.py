"""What is the same in many objects is encoded once: the items of their lists.

Replicas have the same containers, ports and tolerations, and the same managers manage the same fields of them. So the
bytes of such an item are found by its JSON, which costs a fraction of any other encoding; they are few, and small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from fakekube.caches import BoundedCache

__all__ = ["repeating"]

#: The length of the JSON of the largest items that are kept, and how many are.
_SMALL: Final = 2048
_MANY: Final = 256


def repeating(encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """The same function of plain JSON data, which remembers what it made lately."""
    kept: BoundedCache[bytes, bytes] = BoundedCache(_MANY)

    def encoded(value: Any) -> bytes:
        try:
            key = orjson.dumps(value)
        except orjson.JSONEncodeError:  # integers beyond 64 bits, bytes, texts that are no UTF-8
            return encode(value)
        made = kept.get(key)
        if made is None:
            made = encode(value)
            if len(key) <= _SMALL:
                kept.add(key, made)
        return made

    return encoded
