"""StorageClasses and VolumeAttributesClasses.

Specified by: pkg/apis/storage/validation (ValidateStorageClass, ValidateVolumeAttributesClass), pkg/api/storage,
pkg/registry/storage/{storageclass,volumeattributesclass}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, too_long
from fakekube.apis.core.nodes import DEPRECATED
from fakekube.apis.rest.strategy import RevalidatingStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import total_size
from fakekube.apis.validation.rules import (
    Change,
    Rule,
    by_declaration,
    calls,
    changes,
    fixed,
    form,
    immutable,
    kept,
    kept_deeply,
    needed,
    nonempty,
    one_of,
    rules,
    set_,
    then,
)
from fakekube.apis.validation.selectors import topology_selector_term
from fakekube.base.objects import Object

_MAX_PARAMETERS = 512
_PARAMETERS_SIZE = 256 * 1024


class StorageClassStrategy(RevalidatingStrategy):
    """The strategy of storageclasses, most fields of which are immutable."""

    delete_returns_object = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _STORAGE_CLASS.validate(obj)

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _STORAGE_CLASS_CHANGES.validate(obj, old)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return [
            f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {DEPRECATED[item['key']]}"
            for index, term in enumerate(obj.get("allowedTopologies") or ())
            for position, item in enumerate(term.get("matchLabelExpressions") or ())
            if item.get("key") in DEPRECATED
        ]


def validate_parameters(parameters: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Validates the parameters of a class (validateParameters)."""
    parameters = parameters or {}
    if len(parameters) > _MAX_PARAMETERS:
        return [too_long(path, _MAX_PARAMETERS)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    return errors if total_size(parameters) <= _PARAMETERS_SIZE else [*errors, too_long(path, _PARAMETERS_SIZE)]


def validate_allowed_topologies(terms: Sequence[Object] | None, path: str) -> list[FieldError]:
    """Validates the topologies of a storage class (validateAllowedTopologies)."""
    errors: list[FieldError] = []
    seen: list[dict[str, frozenset[str]]] = [{} for _ in terms or ()]
    for index, term in enumerate(terms or ()):
        found, wrong = topology_selector_term(term, f"{path}[{index}]")
        errors += wrong
        repeats = sum(1 for other in seen if other == found)
        errors += [duplicate(f"{path}[{index}].matchLabelExpressions", "")] * repeats
        seen.append(found)
    return errors


PROVISIONER = then(needed(), form(names.label_key, "qualified name in any letter case", lower=True))

_STORAGE_CLASS = rules(
    "StorageClass",
    "ValidateStorageClass",
    Rule("provisioner", PROVISIONER),
    Rule("parameters", calls(validate_parameters)),
    Rule("reclaimPolicy", nonempty(one_of("Delete", "Retain"))),
    Rule("volumeBindingMode", then(set_(), one_of("Immediate", "WaitForFirstConsumer"))),
    Rule("allowedTopologies", calls(validate_allowed_topologies)),
)
_STORAGE_CLASS_CHANGES = changes(
    "StorageClass",
    "ValidateStorageClassUpdate",
    *by_declaration(
        "parameters",
        fixed(),
        (kept_deeply("updates to parameters are forbidden."), 0),
        (immutable(lambda parameters: parameters), 36),
    ),
    *by_declaration("provisioner", fixed(), (kept("updates to provisioner are forbidden."), 0), (immutable(), 36)),
    *by_declaration("reclaimPolicy", fixed(), (kept("updates to reclaimPolicy are forbidden."), 0), (immutable(), 36)),
    *by_declaration("volumeBindingMode", fixed(), (immutable(), 0)),
)
_VOLUME_ATTRIBUTES_CLASS = rules(
    "VolumeAttributesClass",
    "ValidateVolumeAttributesClass",
    Rule("driverName", PROVISIONER),
    Rule("parameters", calls(validate_parameters)),
    Rule("parameters", needed("must contain at least one key/value pair")),
)
_VOLUME_ATTRIBUTES_CLASS_CHANGES = changes(
    "VolumeAttributesClass",
    "ValidateVolumeAttributesClassUpdate",
    Change("driverName", kept("updates to driverName are forbidden.")),
    Change("parameters", kept("updates to parameters are forbidden.")),
)


class VolumeAttributesClassStrategy(Strategy):
    """The strategy of volumeattributesclasses, which are immutable."""

    delete_returns_object = True
    validated_twice_until = 35

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _VOLUME_ATTRIBUTES_CLASS.validate(obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = _VOLUME_ATTRIBUTES_CLASS_CHANGES.validate(obj, old)
        errors += self.validate_metadata(context, obj["metadata"])
        return errors + self.validate(context, obj)
