"""The two types of API objects as trees of plain JSON.

Invariant: what comes out of the store is a `StoredObject`. It is shared with the store, its history and all readers, and is
never changed; who wants to change one copies it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: An object that belongs to the caller, which may change it.
Object = dict[str, Any]
#: An object of the store or of a cache, which nobody changes.
StoredObject = Mapping[str, Any]
