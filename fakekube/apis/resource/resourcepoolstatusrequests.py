"""ResourcePoolStatusRequests: they ask a controller once for the state of the pools of a driver.

Specified by: pkg/apis/resource/validation/validation_resourcepoolstatusrequest.go,
pkg/registry/resource/resourcepoolstatusrequest; k8s.io/api/resource/v1alpha3/types.go (tags).
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, duplicate, invalid, too_many
from fakekube.apis.resource.devices import validate_fully_qualified_name, validate_segments
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, Strategy, WriteContext, spec_as_stored
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import conditions, immutable_field, repeated_indices
from fakekube.apis.validation.rules import (
    Check,
    Rule,
    Rules,
    at_least,
    at_most,
    calls,
    fits,
    form,
    needed,
    optional,
    rules,
    set_,
    struct,
    then,
)
from fakekube.base.objects import Object

_POOLS = 1000
_CONDITIONS = 10
_ITEMS = 32


class ResourcePoolStatusRequestStrategy(Strategy):
    """The strategy of resourcepoolstatusrequests."""

    unconditional_update = False
    delete_returns_object = True
    has_status = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _SPEC.validate(obj.get("spec") or {}, "spec")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return [] if spec_as_stored(context, obj, old) == old.get("spec") else [invalid("spec", None, IMMUTABLE)]


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    status, before = obj.get("status"), old.get("status")
    if before is not None:
        return immutable_field(status, before, "status")
    if status is None:
        return []
    held, path = status.get("conditions") or (), "status.conditions"
    crowd = [too_many(path, len(held), _CONDITIONS)] if len(held) > _CONDITIONS else []
    return conditions(held, path) + _STATUS.validate(status, "status") + crowd


def _list_of(table: Rules, most: int) -> Check:
    """A list of at most so many items; their rules are only asked if they are not too many."""

    def run(value: Any, path: str) -> list[FieldError]:
        items = value or ()
        if len(items) > most:
            return [too_many(path, len(items), most)]
        return [error for index, item in enumerate(items) for error in table.validate(item, f"{path}[{index}]")]

    return Check(f"at most {most} items, each: see {table.struct}", run)


def _validate_repeated_types(items: Any, path: str) -> list[FieldError]:
    """Validates that each kind of partition of a pool stands once."""
    items = items or ()
    repeated = repeated_indices((item.get("attribute", ""), item.get("type", "")) for item in items)
    return [duplicate(f"{path}[{index}]", items[index]) for index in repeated] if len(items) <= _ITEMS else []


def _validate_attribute(value: str, path: str) -> list[FieldError]:
    return validate_fully_qualified_name(value, path, is_declared=True)


def _counts(*fields: str) -> tuple[Rule, ...]:
    return tuple(Rule(field, then(set_(), at_least(0))) for field in fields)


_DRIVER = then(needed(), form(names.caseless_dns_subdomain, "DNS subdomain in any case (k8s-long-name-caseless)"))
_SPEC = rules(
    "ResourcePoolStatusRequestSpec",
    "Validate_ResourcePoolStatusRequestSpec",
    Rule("driver", _DRIVER),
    Rule("poolName", optional(calls(validate_segments))),
    Rule("limit", then(at_most(1000), at_least(1))),
    Rule("defaultPartitionTypeAttribute", optional(calls(_validate_attribute))),
)
_PARTITION_TYPE = rules(
    "PartitionTypeStatus",
    "Validate_PartitionTypeStatus",
    Rule("attribute", needed()),
    Rule("type", needed()),
    *_counts("total", "allocatable"),
)
_CAPACITY = rules(
    "ShareableCapacityStatus",
    "Validate_ShareableCapacityStatus",
    Rule("name", needed()),
    *(Rule(field, set_()) for field in ("total", "consumed", "available")),
)
_SHAREABLE_SUMMARY = rules(
    "ShareableSummaryStatus",
    "Validate_ShareableSummaryStatus",
    *_counts("fullyAvailableDevices", "partiallyAvailableDevices"),
    Rule("capacity", _list_of(_CAPACITY, _ITEMS)),
)
_POOL = rules(
    "PoolStatus",
    "Validate_PoolStatus",
    Rule("driver", _DRIVER),
    Rule("poolName", then(needed(), calls(validate_segments))),
    Rule("generation", then(needed(), at_least(0))),
    Rule("resourceSliceCount", at_least(1, absent=None)),
    *(Rule(f"{word}Devices", at_least(0)) for word in ("total", "allocated", "available", "unavailable")),
    Rule("nodeName", optional(form(names.long_name, "DNS subdomain (k8s-long-name)"))),
    Rule("validationError", fits(256)),
    Rule("partitionSummary", calls(_validate_repeated_types)),
    Rule("partitionSummary", _list_of(_PARTITION_TYPE, _ITEMS)),
    Rule("shareableSummary", struct(_SHAREABLE_SUMMARY)),
)
_STATUS = rules(
    "ResourcePoolStatusRequestStatus",
    "Validate_ResourcePoolStatusRequestStatus",
    *_counts("poolCount"),
    Rule("pools", _list_of(_POOL, _POOLS)),
)

STATUS = ConditionalStatusStrategy(_validate_status)
