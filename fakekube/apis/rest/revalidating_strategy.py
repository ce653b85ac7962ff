"""The strategy of kinds whose update validation runs the validation of a new object first, then that of the change."""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext

__all__ = ["RevalidatingStrategy"]


class RevalidatingStrategy(Strategy):
    """Order of an update's checks: metadata, `validate`, the change of the metadata, `validate_change`."""

    checks_metadata_update = False

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        meta = obj["metadata"]
        return [
            *self.validate_metadata(context, meta),
            *self.validate_changed(context, obj, old),
            *self.validate_metadata_update(context, meta, old["metadata"]),
            *self.validate_change(context, obj, old),
        ]

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        """Validates the changed object by itself; `old` may relax rules (ratcheting). Default:
        `validate`."""
        return self.validate(context, obj)

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        """Validates the change, for example immutable fields."""
        return []
