"""Selects the default object, such as the default StorageClass, among several that are marked as default.

Specified by: pkg/volume/util/storageclass.go (GetDefaultClass),
plugin/pkg/admission/network/defaultingressclass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fakekube.apis.rest.strategy import Object


def newest_default(objects: Iterable[Object], annotations: Sequence[str]) -> Object | None:
    """Returns the newest object with the value "true" for one of the annotations; of equally old ones, the first by
    name."""
    marked = [obj for obj in objects if any((obj["metadata"].get("annotations") or {}).get(key) == "true" for key in annotations)]
    marked.sort(key=lambda obj: str(obj["metadata"]["name"]))
    return max(marked, key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")), default=None)
