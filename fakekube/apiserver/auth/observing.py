"""Observes the resources on which cached decisions depend, so that caches are invalidated by changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from fakekube.net.streams import Source, subscribe_weakly


class Lister(Protocol):
    """Reads objects of a cluster; `apis.rest.cluster_access.ClusterAccess` implements it."""

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        """Returns all stored objects of a resource, ordered by name."""


class Observed:
    """Observed resources of a cluster.

    Args:
        lister: Lists the resources.
        sources: The buckets of the resources, which notify about changes.
    """

    def __init__(self, lister: Lister, sources: Sequence[Source]) -> None:
        self._lister = lister
        self._version = 0
        subscribe_weakly(self, Observed._changed, sources)

    def version(self) -> int:
        """Returns a number that differs after every change. Read it before `list`, never after."""
        return self._version

    def list(self, group: str, plural: str) -> Iterator[dict[str, Any]]:
        """Returns all objects of one of the resources."""
        return self._lister.list(group, plural)

    def _changed(self) -> None:
        # Writers of different buckets may run this at once: the number only has to differ.
        self._version += 1
