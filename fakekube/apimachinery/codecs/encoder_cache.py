"""Caches the encodings of list items that are equal in many objects.

Replicas have the same containers, ports, tolerations and managed fields. The cache key is the item's JSON, which is
much cheaper to encode than any other format. The cache is bounded in number and size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from fakekube.base.caches import BoundedCache

#: The maximum JSON length of cached items in bytes, and the maximum number of items.
_MAXIMUM_BYTES: Final = 2048
_MAXIMUM_ITEMS: Final = 256


def cached_encoder(encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Wraps an encoder of plain JSON data with a bounded cache."""
    cache: BoundedCache[bytes, bytes] = BoundedCache(_MAXIMUM_ITEMS)

    def encoded(value: Any) -> bytes:
        try:
            key = orjson.dumps(value)
        except orjson.JSONEncodeError:  # integers beyond 64 bits, bytes, invalid UTF-8
            return encode(value)
        made = cache.get(key)
        if made is None:
            made = encode(value)
            if len(key) <= _MAXIMUM_BYTES:
                cache.add(key, made)
        return made

    return encoded
