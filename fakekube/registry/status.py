"""/status of kinds that say something of their own about it: the status may change, the rest stays as it is.

Specified by: the statusStrategy of each kind under pkg/registry;
k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go (ResetObjectMetaForStatus). """

from __future__ import annotations

from collections.abc import Callable, Sequence

from fakekube.errors import FieldError
from fakekube.registry.strategy import Object, Strategy, WriteContext

__all__ = ["StatusStrategy", "keep", "keep_metadata"]

KEPT_METADATA = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)

Validate = Callable[[Object, Object], list[FieldError]]
"""(new object, old object) → what is wrong with the new status."""


def keep(new: Object, old: Object, fields: Sequence[str]) -> None:
    """Put what `old` has in the place of what `new` has."""
    for field in fields:
        if field in old:
            new[field] = old[field]
        else:
            new.pop(field, None)


def keep_metadata(obj: Object, old: Object) -> None:
    """A status is not the place to change labels, finalizers …"""
    keep(obj["metadata"], old["metadata"], KEPT_METADATA)


class StatusStrategy(Strategy):
    """The view of a kind's status."""

    def __init__(
        self,
        validate: Validate = lambda _new, _old: [],
        *,
        keeps_metadata: bool = False,
        resets: Sequence[tuple[str, ...]] = (("spec",),),
    ) -> None:
        self._validate = validate
        self._keeps_metadata = keeps_metadata
        self._resets = resets

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        keep(obj, old, [name for name in {**obj, **old} if name not in ("metadata", "status")])
        if self._keeps_metadata:
            keep_metadata(obj, old)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self._validate(obj, old)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return self._resets
