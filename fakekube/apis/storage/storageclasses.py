"""StorageClasses and VolumeAttributesClasses.

Specified by: pkg/apis/storage/validation (ValidateStorageClass, ValidateVolumeAttributesClass), pkg/api/storage,
pkg/registry/storage/{storageclass,volumeattributesclass}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, immutable, invalid, required, too_long
from fakekube.apis.core.node_labels import DEPRECATED
from fakekube.apis.rest.strategy import Object, RevalidatingStrategy, Strategy, WriteContext
from fakekube.apis.validation.checks import immutable_field, label_name, one_of
from fakekube.apis.validation.maps import total_size
from fakekube.apis.validation.selectors import topology_selector_term
from fakekube.apis.validation.semantic_equality import same

__all__ = ["StorageClassStrategy", "VolumeAttributesClassStrategy"]

MAX_PARAMETERS = 512
PARAMETERS_SIZE = 256 * 1024


class StorageClassStrategy(RevalidatingStrategy):
    """The strategy of storageclasses, most fields of which are immutable."""

    delete_returns_object = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _provisioner(obj.get("provisioner", ""), "provisioner")
        errors += _parameters(obj.get("parameters") or {}, "parameters")
        if obj.get("reclaimPolicy"):
            errors += one_of(obj["reclaimPolicy"], "reclaimPolicy", ("Delete", "Retain"))
        mode = obj.get("volumeBindingMode")
        modes = ("Immediate", "WaitForFirstConsumer")
        errors += [required("volumeBindingMode")] if mode is None else one_of(mode, "volumeBindingMode", modes)
        return errors + _topologies(obj.get("allowedTopologies") or ())

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if not same(obj.get("parameters"), old.get("parameters")):
            errors.append(immutable("parameters", obj.get("parameters")))
        for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
            errors += immutable_field(obj.get(field), old.get(field), field)
        return errors

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return [
            f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {DEPRECATED[item['key']]}"
            for index, term in enumerate(obj.get("allowedTopologies") or ())
            for position, item in enumerate(term.get("matchLabelExpressions") or ())
            if item.get("key") in DEPRECATED
        ]


def _provisioner(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    return label_name(name.lower(), path)


def _parameters(parameters: Mapping[str, str], path: str) -> list[FieldError]:
    if len(parameters) > MAX_PARAMETERS:
        return [too_long(path, MAX_PARAMETERS)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    return errors if total_size(parameters) <= PARAMETERS_SIZE else [*errors, too_long(path, PARAMETERS_SIZE)]


def _topologies(terms: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[dict[str, frozenset[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}]"
        found, wrong = topology_selector_term(term, path)
        errors += wrong
        repeats = sum(1 for other in seen if other == found)
        errors += [duplicate(f"{path}.matchLabelExpressions", "")] * repeats
        seen.append(found)
    return errors


class VolumeAttributesClassStrategy(Strategy):
    """The strategy of volumeattributesclasses, which are immutable."""

    delete_returns_object = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _provisioner(obj.get("driverName", ""), "driverName")
        parameters = obj.get("parameters") or {}
        errors += _parameters(parameters, "parameters")
        return errors if parameters else [*errors, required("parameters", "must contain at least one key/value pair")]

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        changed = [field for field in ("driverName", "parameters") if not same(obj.get(field), old.get(field))]
        errors = [forbidden(field, f"updates to {field} are forbidden.") for field in changed]
        errors += self.validate_metadata(context, obj["metadata"])
        return errors + self.validate(context, obj)
