"""The strategies of writes through /status: the status changes, the rest of the object is kept.

Specified by: the statusStrategy of each kind under pkg/registry;
k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go (ResetObjectMetaForStatus).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fakekube.apis.rest.strategy import Strategy

if TYPE_CHECKING:
    from fakekube.apimachinery.errors import FieldError
    from fakekube.apis.rest.strategy import Object, WriteContext

__all__ = ["KindStatusStrategy", "StatusStrategy", "keep_all_but", "keep_metadata", "restore"]

#: The metadata that a write of the status cannot change, if the kind calls ResetObjectMetaForStatus.
_KEPT_METADATA = ("deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences")

Validate = Callable[["Object", "Object"], "list[FieldError]"]
"""(new object, old object) → the errors of the new status."""


def keep_all_but(obj: Object, old: Object, *changing: str) -> None:
    """Restores all fields except the metadata and the given fields."""
    restore(obj, old, *({*obj, *old} - {"metadata", *changing}))


def restore(part: Object, old: Object, *fields: str) -> None:
    """Restores the given fields."""
    for field in fields:
        if field in old:
            part[field] = old[field]
        else:
            part.pop(field, None)


def keep_metadata(obj: Object, old: Object) -> None:
    """Restores the metadata (ResetObjectMetaForStatus)."""
    restore(obj["metadata"], old["metadata"], *_KEPT_METADATA)


class StatusStrategy(Strategy):
    """The status strategy of a kind.

    Args:
        validate: the kind's validation of a changed status.
        keeps_metadata: labels, annotations and the like cannot be changed through /status; else metadata changes as in a
            write of the object.
        resets: paths that such writes never own in managedFields.
    """

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
        keep_all_but(obj, old, "status")
        if self._keeps_metadata:
            keep_metadata(obj, old)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self._validate(obj, old)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return self._resets


class KindStatusStrategy(StatusStrategy):
    """The status strategy of a kind without its own status validation: validated as any update of the kind."""

    def __init__(self, kind: Strategy) -> None:
        super().__init__()
        self._kind = kind

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self._kind.validate_update(context, obj, old)
