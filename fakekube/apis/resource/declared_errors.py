"""Errors of the rules that the types of resource.k8s.io declare: they are about the object in the version of the request.

Functions by hand validate the internal object, whose shape is that of v1beta2 and later versions, and so are the paths of their
errors. Declared rules run on the type of the version: in v1beta1 the fields of a device are below `basic`, and a request for
one kind of device has the fields of `exactly` itself.

Specified by: the tags of k8s.io/api/resource/v1beta1/types.go; pkg/registry/resource/*/strategy.go (validation of 1.37).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import FieldErrorType
from fakekube.apimachinery.schema.printing import normalise
from fakekube.apis.resource.v1beta1_conversion import flat_request
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apis.validation.rules import holds_declared_rules

#: The last part of the paths of declared rules of devices and requests, by the type of the error.
_DECLARED: Final[Mapping[FieldErrorType, re.Pattern[str]]] = {
    FieldErrorType.TOO_MANY: re.compile(r"\.(selectors|consumesCounters|bindingConditions|bindingFailureConditions)$"),
    FieldErrorType.NOT_SUPPORTED: re.compile(r"\.(allocationMode|operator|effect)$"),
    FieldErrorType.REQUIRED: re.compile(r"\.(effect|counterSet|counters)$"),
    FieldErrorType.DUPLICATE: re.compile(r"\.consumesCounters\[\d+\]$"),
    FieldErrorType.INVALID: re.compile(r"\.(tolerations\[\d+\]\.key|counterSet|counters|attributes\[[^]]*\])$"),
}
#: The same of fields that 1.37 has added, whose rules no gate turns off.
_NEWER: Final[Mapping[FieldErrorType, re.Pattern[str]]] = {
    FieldErrorType.TOO_MANY: re.compile(r"\.(derivedAttributes|compatibilityGroups)$"),
    FieldErrorType.REQUIRED: re.compile(r"\.derivedAttributes\[\d+\]\.(name|expression)$"),
    FieldErrorType.INVALID: re.compile(r"\.(derivedAttributes\[\d+\]\.name|compatibilityGroups\[\d+\])$"),
    FieldErrorType.DUPLICATE: re.compile(r"\.compatibilityGroups\[\d+\]$"),
    FieldErrorType.TOO_LONG: re.compile(r"\.derivedAttributes\[\d+\]\.name$"),
}
#: What functions by hand say of the same fields begins so.
_BY_HAND: Final = ("must be referenced by", "exactly one value must be")

#: The list of a duplicate → the struct of its items.
_STRUCTS: Final = {
    "requests": "DeviceRequest",
    "firstAvailable": "DeviceSubRequest",
    "sharedCounters": "CounterSet",
    "consumesCounters": "DeviceCounterConsumption",
}
_duplicate_of = re.compile(r"\.(\w+)\[\d+\]$").search
_IN_EXACTLY: Final = re.compile(r"(\.requests\[\d+\])\.exactly\b")
_IN_DEVICE: Final = re.compile(r"^(spec\.devices\[\d+\])\.")


def in_version_of_request(context: WriteContext, errors: Sequence[FieldError]) -> list[FieldError]:
    """Returns the errors, those of declared rules with the paths and values of the version of the request."""
    shown = [_with_printed_item(context, error) for error in errors]
    if context.resource.version != "v1beta1":
        return shown
    return [replace(error, path=_path_in_v1beta1(error.path)) if _is_declared(error) else error for error in shown]


def _is_declared(error: FieldError) -> bool:
    if error.detail.startswith(_BY_HAND) or (error.type is FieldErrorType.NOT_SUPPORTED and not error.value):
        return False  # no declared rule looks at what is not there
    tables = (_DECLARED, _NEWER) if holds_declared_rules() else (_NEWER,)
    return any(error.type in table and table[error.type].search(error.path) is not None for table in tables)


def _path_in_v1beta1(path: str) -> str:
    return _IN_DEVICE.sub(r"\1.basic.", _IN_EXACTLY.sub(r"\1", path))


def _with_printed_item(context: WriteContext, error: FieldError) -> FieldError:
    """Returns the error of a duplicate with the item as the version of the request prints it."""
    if error.type is not FieldErrorType.DUPLICATE or not isinstance(error.value, dict):
        return error
    found, version = _duplicate_of(error.path), context.resource.version
    if found is None or found[1] not in _STRUCTS:
        return error
    is_flat = found[1] == "requests" and version == "v1beta1"
    type_ = context.emulation.types.type_of(f"k8s.io/api/resource/{version}.{_STRUCTS[found[1]]}")
    return replace(error, value=normalise(type_, flat_request(error.value) if is_flat else error.value))
