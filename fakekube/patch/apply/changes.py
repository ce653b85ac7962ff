"""What changes have done to the books, remembered: objects of one make change alike.

Who owns what after a change follows from what the change has removed and what it has modified or added, from who owned
what before, and from who makes it. The object itself does not matter, as long as all owners have used its version.

Invariant: owned sets are told apart by the identity of their trees, which are never changed; what is remembered holds on
to them, so that no other tree can take an identity over.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

import orjson

from fakekube.caches import BoundedCache
from fakekube.patch.apply.entries import Manager, Owned
from fakekube.patch.apply.updater import Comparison, Owners

__all__ = ["Change", "Changes"]

_MAX_CHANGES: Final = 1024


class Change(NamedTuple):
    """The outcome of a change."""

    owners: dict[Manager, Owned]
    """Not to be changed."""
    maker: Manager | None
    """Who made it; None if nobody owns anything for it."""


class _Remembered(NamedTuple):
    before: Owners
    change: Change


class Changes:
    """The changes of the objects of one kind in one version."""

    def __init__(self, api_version: str) -> None:
        self._api_version = api_version
        self._known: BoundedCache[Hashable, _Remembered] = BoundedCache(_MAX_CHANGES)

    def signature(self, comparison: Comparison, before: Owners, manager: str) -> Hashable | None:
        """What tells a change from others; None for one that cannot be remembered."""
        if any(owned.api_version != self._api_version for owned in before.values()):
            return None
        try:
            text = orjson.dumps((comparison.removed.tree, comparison.changed.tree))
        except orjson.JSONEncodeError:  # elements that are no UTF-8
            return None
        return manager, text, *((owner, id(owned.fields.tree)) for owner, owned in before.items())

    def find(self, signature: Hashable | None) -> Change | None:
        """What such a change has done."""
        found = self._known.get(signature)
        return found.change if found is not None else None

    def keep(self, signature: Hashable | None, before: Owners, change: Change) -> None:
        """Remember what a change has done."""
        if signature is not None:
            self._known.add(signature, _Remembered(before, change))
