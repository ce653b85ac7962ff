"""Writes through /status: the status changes, the rest of the object stays as it is.

Specified by: the status strategies in pkg/registry/**/strategy.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fakekube.registry.strategy import Strategy

if TYPE_CHECKING:
    from fakekube.errors import FieldError
    from fakekube.registry.strategy import Object, WriteContext

__all__ = ["StatusStrategy", "keep_all_but", "keep_metadata", "restore"]

#: The metadata that such a write may not change, where it may not.
_KEPT_METADATA = ("deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences")


def keep_all_but(obj: Object, old: Object, *changing: str) -> None:
    """Take back what was changed outside the metadata and the fields named."""
    restore(obj, old, *({*obj, *old} - {"metadata", *changing}))


def restore(part: Object, old: Object, *fields: str) -> None:
    """Take back what was changed of some fields."""
    for field in fields:
        if field in old:
            part[field] = old[field]
        else:
            part.pop(field, None)


def keep_metadata(obj: Object, old: Object) -> None:
    """Take back what was changed of the metadata (ResetObjectMetaForStatus)."""
    restore(obj["metadata"], old["metadata"], *_KEPT_METADATA)


class StatusStrategy(Strategy):
    """The common status strategy: metadata changes as in a main write."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        keep_all_but(obj, old, "status")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return []

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",)]
