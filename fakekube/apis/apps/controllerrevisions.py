"""controllerrevisions.apps: immutable snapshots of the state of a workload.

Specified by: pkg/registry/apps/controllerrevision; ValidateControllerRevision… of pkg/apis/apps/validation.
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import immutable, required
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext
from fakekube.apis.validation.checks import non_negative
from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strings import json_text


class ControllerRevisionStrategy(Strategy):
    """The strategy of controllerrevisions."""

    checks_metadata_again = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = non_negative(obj.get("revision", 0), "revision")
        data = obj.get("data")
        if data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(required("data", "data must be a valid JSON object"))
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = non_negative(obj.get("revision", 0), "revision")
        if _bytes(obj.get("data")) != _bytes(old.get("data")):
            errors.append(immutable("data", obj.get("data")))
        return errors


def _bytes(data: Any) -> bytes:
    """Returns the bytes of a RawExtension, in which the order of members, spaces and the forms of numbers count."""
    return data.text if isinstance(data, RawObject) else json_text(data).encode()
