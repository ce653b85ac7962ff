"""Objects that decisions are made from, and when they changed: what was computed from them is good until
then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from fakekube.streams import Source

__all__ = ["Lister", "Observed"]


class Lister(Protocol):
    """Reads objects of a cluster; `registry.cluster_access.Services` is one."""

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        """All stored objects of a resource, in the order of their names."""


class Observed:
    """Some resources of a cluster.

    Args:
        lister: reads them.
        sources: tell of their changes (their buckets in the store).
    """

    def __init__(self, lister: Lister, sources: Sequence[Source]) -> None:
        self._lister = lister
        self._version = 0
        for source in sources:
            source.subscribe(self._changed)

    def version(self) -> int:
        """Another number after every change. Ask for it before `list`, never after."""
        return self._version

    def list(self, group: str, plural: str) -> Iterator[dict[str, Any]]:
        """All objects of one of the resources."""
        return self._lister.list(group, plural)

    def _changed(self) -> None:
        # Writers of different buckets may be here at once: what counts is that it is another number.
        self._version += 1
