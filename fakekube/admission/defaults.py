"""Which of several objects that call themselves the default is taken.

Specified by: pkg/volume/util/storageclass.go (GetDefaultClass),
plugin/pkg/admission/network/defaultingressclass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fakekube.registry.strategy import Object

__all__ = ["newest_default"]


def newest_default(objects: Iterable[Object], annotations: Sequence[str]) -> Object | None:
    """Of those that one of the annotations marks with "true", the newest; of equally old ones, the first by
    name."""
    marked = [
        obj
        for obj in objects
        if any((obj["metadata"].get("annotations") or {}).get(key) == "true" for key in annotations)
    ]
    marked.sort(key=lambda obj: str(obj["metadata"]["name"]))
    return max(marked, key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")), default=None)
