"""What changes make of managedFields, which is alike for the objects of one workload.

The entries after a change depend on the fields that it removes, modifies or adds, on the entries before, and on the manager. They
do not depend on the object, if all entries are of its version; only times differ.

Invariants: a cache key identifies the sets of entries by the identity of their trees, which never change; the cache refers to
them, so that no other tree gets the same identity. Entries are never changed in place either: those that a change leaves as they
are, are shared.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from fakekube.apimachinery.patch.apply import managed_fields
from fakekube.apimachinery.patch.apply.atoms import Difference
from fakekube.apimachinery.patch.apply.managed_fields import Managed, Manager
from fakekube.base.caches import BoundedCache, trim
from fakekube.base.golang.timestamps import print_time

_MAX_CHANGES: Final = 1024
#: Stands for the place of an entry whose time is that of the change.
_NOW: Final = -1


class Change(NamedTuple):
    """The outcome of a change."""

    before: Sequence[Mapping[str, Any]]
    """The entries before it."""
    after: Sequence[tuple[dict[str, Any] | None, int]]
    """The entries after it: each with some time, None for one that stays as it is; and the place before of the one that has its
    time, or `_NOW`."""
    leaves_all: bool
    """Whether all entries stay as they are."""

    @classmethod
    def from_managers(
        cls, before: Sequence[Mapping[str, Any]], managed: Managed, maker: Manager | None, *, sorted_keys: bool
    ) -> Change:
        """Makes the outcome of a change.

        Args:
            before: the entries before it, as `managed_fields.encode` writes them, each with a time.
            managed: the managers after it.
            maker: the manager of the change; None if the change gives it no fields.
            sorted_keys: see `managed_fields.encode`.
        """
        places = {manager: place for place, manager in enumerate(managed_fields.decode(before).owners)}
        after: list[tuple[dict[str, Any] | None, int]] = []
        for manager, entry in managed_fields.encode_each(managed, sorted_keys=sorted_keys):
            place = _NOW if manager == maker else places[manager]
            stays = place != _NOW and entry["fieldsV1"] is before[place]["fieldsV1"]
            after.append((None if stays else entry, place))
        return cls(before, after, maker is None and len(after) == len(before) and all(entry is None for entry, _ in after))

    def entries(self, before: list[Any], now: datetime) -> list[Any]:
        """Returns the entries of an object after this change, from those before it."""
        if self.leaves_all:
            return before
        made = [
            before[place] if entry is None else {**entry, "time": print_time(now) if place == _NOW else before[place]["time"]}
            for entry, place in self.after
        ]
        if len(made) > 1:
            made.sort(key=managed_fields.entry_order)
        return made


_Key = tuple[bytes, str, Hashable]
"""What the outcome of a change depends on: the text of the difference, the manager, and what the entries before say but for their
times, with the identities of their sets. (To make a named tuple takes longer than to find one.)"""


class Changes:
    """The cached changes of the objects of one kind in one version."""

    def __init__(self, api_version: str) -> None:
        self._api_version = api_version
        self._known: BoundedCache[_Key, Change] = BoundedCache(_MAX_CHANGES)

    def find(self, difference: Difference, before: Sequence[Mapping[str, Any]], manager: str) -> Change | None:
        """Returns the cached outcome of a change of an object with these entries."""
        key = _key_of(difference, before, manager)
        return self._known.get(key) if key is not None else None

    def keep(self, difference: Difference, change: Change, manager: str) -> None:
        """Caches the outcome of a change, unless it depends on the object: some entry is of another version."""
        key = _key_of(difference, change.before, manager)
        if key is not None and all(entry["apiVersion"] == self._api_version for entry in change.before):
            text, *_ = key
            self._known.add((trim(text), *key[1:]), change, len(text))


def _key_of(difference: Difference, before: Sequence[Mapping[str, Any]], manager: str) -> _Key | None:
    """Returns the cache key of a change; None if it cannot be cached."""
    try:
        text = orjson.dumps(difference)
    except orjson.JSONEncodeError:  # elements that are not valid UTF-8
        return None
    return text, manager, tuple(map(_content_of, before))


def _content_of(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    get = entry.get
    fields = id(get("fieldsV1"))
    return get("manager"), get("operation"), get("apiVersion"), get("subresource"), get("fieldsType"), "time" in entry, fields
