"""Caches the effect of changes on managedFields, since objects of one workload change in the same way.

The owners after a change depend on the fields that the change removes, modifies or adds, on the owners before, and on
the manager. They do not depend on the object, if all owners have used its version.

Invariant: the cache key identifies owned sets by the identity of their trees, which never change; the cache holds
references to them, so that no other tree gets the same identity.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

import orjson

from fakekube.apimachinery.patch.apply.entries import Manager, Owned
from fakekube.apimachinery.patch.apply.updater import Comparison, Owners
from fakekube.base.caches import BoundedCache

_MAX_CHANGES: Final = 1024


class Change(NamedTuple):
    """The outcome of a change."""

    owners: dict[Manager, Owned]
    """Must not be changed."""
    maker: Manager | None
    """The manager of the change; None if the change gives it no fields."""


class _Remembered(NamedTuple):
    before: Owners
    change: Change


class Changes:
    """The cached changes of the objects of one kind in one version."""

    def __init__(self, api_version: str) -> None:
        self._api_version = api_version
        self._known: BoundedCache[Hashable, _Remembered] = BoundedCache(_MAX_CHANGES)

    def signature(self, comparison: Comparison, before: Owners, manager: str) -> Hashable | None:
        """Returns the cache key of a change; None if it cannot be cached."""
        if any(owned.api_version != self._api_version for owned in before.values()):
            return None
        try:
            text = orjson.dumps((comparison.removed.tree, comparison.changed.tree))
        except orjson.JSONEncodeError:  # elements that are not valid UTF-8
            return None
        return manager, text, *((owner, id(owned.fields.tree)) for owner, owned in before.items())

    def find(self, signature: Hashable | None) -> Change | None:
        """Returns the cached outcome of a change."""
        found = self._known.get(signature)
        return found.change if found is not None else None

    def keep(self, signature: Hashable | None, before: Owners, change: Change) -> None:
        """Caches the outcome of a change."""
        if signature is not None:
            self._known.add(signature, _Remembered(before, change))
