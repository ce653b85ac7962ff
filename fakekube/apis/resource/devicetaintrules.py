"""DeviceTaintRules: taints of the devices that a selector chooses.

Specified by: pkg/apis/resource/validation (ValidateDeviceTaintRule), pkg/registry/resource/devicetaintrule,
pkg/apis/resource/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import required, too_many
from fakekube.apis.resource.devices import device_name, driver_name, effect, pool_name
from fakekube.apis.rest.strategy import Object, StatusStrategy, Strategy, WriteContext, spec_as_stored
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import conditions, invalid_each, label_name

MAX_CONDITIONS: Final = 8


class DeviceTaintRuleStrategy(Strategy):
    """The strategy of devicetaintrules."""

    has_status = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        _taint_of(obj).setdefault("timeAdded", _TO_BE_DATED)

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        _set_date(context, obj)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        taint, before = _taint_of(obj), (old.get("spec") or {}).get("taint") or {}
        _set_date(context, obj)
        if taint.get("effect") != before.get("effect") and taint["timeAdded"] == before.get("timeAdded"):
            taint["timeAdded"] = context.now()
        if spec_as_stored(context, obj, old) != old.get("spec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {}, None)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {}, old.get("spec") or {})

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


#: What the default of timeAdded is until the clock of the cluster is at hand.
_TO_BE_DATED: Final = "0001-01-01T00:00:00Z"


def _set_date(context: WriteContext, obj: Object) -> None:
    taint = _taint_of(obj)
    if taint.get("timeAdded") in (None, _TO_BE_DATED):
        taint["timeAdded"] = context.now()


def _taint_of(obj: Object) -> Object:
    taint: Object = obj.setdefault("spec", {}).setdefault("taint", {})
    return taint


def _validate_spec(spec: Object, old: Object | None) -> list[FieldError]:
    selector, taint = spec.get("deviceSelector") or {}, spec.get("taint") or {}
    errors: list[FieldError] = []
    for field, check in (("driver", driver_name), ("pool", pool_name), ("device", device_name)):
        if selector.get(field) is not None:
            errors += check(selector[field], f"spec.deviceSelector.{field}")
    errors += label_name(taint.get("key", ""), "spec.taint.key")
    if taint.get("value"):
        errors += invalid_each("spec.taint.value", taint["value"], names.label_value(taint["value"]))
    kind = taint.get("effect", "")
    if old is None or (old.get("taint") or {}).get("effect", "") != kind:
        errors += effect(kind, "spec.taint.effect") if kind else [required("spec.taint.effect")]
    return errors


def _validate_status(obj: Object, _old: Object) -> list[FieldError]:
    items = (obj.get("status") or {}).get("conditions") or []
    errors = conditions(items, "status.conditions")
    if len(items) > MAX_CONDITIONS:
        errors.append(too_many("status.conditions", len(items), MAX_CONDITIONS))
    return errors


class _StatusStrategy(StatusStrategy):
    unconditional_update = False


STATUS = _StatusStrategy(_validate_status, keeps_metadata=True, resets=(("metadata",), ("spec",)))
