"""Prints the bad values of field errors in Go's syntax, as servers before 1.34 do; later ones print JSON.

The values of errors have no Go type. It follows from the path of the field in the type of the kind; if a value has the field
names of an internal struct, which begin with a capital, the struct is the one of the group that has these fields. A value without
a type is printed as what Go's JSON decoder makes of it.

Specified by: k8s.io/apimachinery/pkg/util/validation/field/errors.go of 1.33 (ErrorBody), fmt (%#v).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from fakekube.apimachinery.data import META_V1, Facts
from fakekube.apimachinery.errors.field import ADDRESS, OMITTED, FieldError, FieldErrorType, Printed
from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strconv import go_float, go_quote
from fakekube.base.golang.strings import json_text
from fakekube.base.golang.timestamps import ZERO_TIME_STRING

INT_OR_STRING: Final = "k8s.io/apimachinery/pkg/util/intstr.IntOrString"
QUANTITY: Final = "k8s.io/apimachinery/pkg/api/resource.Quantity"
_TIME: Final = "k8s.io/apimachinery/pkg/apis/meta/v1.Time"
_RAW: Final = "k8s.io/apimachinery/pkg/runtime.RawExtension"
_MICRO_TIME: Final = "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime"
_CORE: Final = "k8s.io/api/core/v1"
_RESOURCES: Final = ".ResourceList"

#: What validation hands over as it is; everything else of type IntOrString or Quantity it hands over as a string.
_WHOLE_INT_OR_STRING: Final = frozenset({"maxSurge", "maxUnavailable", "minAvailable"})
_WHOLE_QUANTITY: Final = frozenset({"HorizontalPodAutoscaler", "LimitRange", "ResourceQuota"})

_WHOLE_BYTES: Final = "spec.request"
#: How the details of errors end that are about the resource of a resizePolicy, not about the policy itself.
_RESIZED: Final = {FieldErrorType.NOT_SUPPORTED: '"cpu", "memory"', FieldErrorType.DUPLICATE: ""}

#: The paths of times by the names of an older version of the kind, or in metadata.
_TIMES_ELSEWHERE: Final = frozenset({"metadata.deletionTimestamp", "firstTimestamp", "lastTimestamp"})

#: How the detail of errors ends whose value validation converts first.
_NEGATIVE: Final = "than or equal to 0"

#: By kind and path of an error: the path of its value, if that is another one.
_OTHER_PATHS: Final = {("Ingress", "spec"): "spec.rules"}

_PACKAGE: Final = re.compile(r"[\w.\-/]*/([\w.\-]+)/(v\d\w*)\.(\w+)$")
_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[]+)")
_BYTES: Final = ("bytes", "[]byte")
_NUMBERS: Final = frozenset({"int", "int32", "int64", "float64"})


def with_go_values(facts: Facts, group: str, kind: str, errors: Sequence[FieldError]) -> list[FieldError]:
    """Returns the errors with values that are printed in Go's syntax.

    Args:
        facts: of the minor.
        group: of the kind.
        kind: of the object that is invalid.
        errors: its errors.
    """
    printer = _printer(facts, group, kind)
    return [error if error.value is OMITTED else replace(error, value=printer.print_bad_value(error)) for error in errors]


#: The names of fields in Go that are not the JSON names with a capital.
_GO_NAMES: Final = {"apiVersion": "APIVersion", "metadata": "ObjectMeta", "uid": "UID"}
_JSON_NAMES: Final = {"ObjectMeta": "metadata"}
#: The mark of a pointer in the data of internal structs.
_POINTER: Final = "?"
#: The kind of a review whose errors do not name it, by its group.
_REVIEWS: Final = {"authorization.k8s.io": "SubjectAccessReview"}


@cache
def _printer(facts: Facts, group: str, kind: str) -> _Printer:
    versions = [version for own, _, version in (name.rpartition("/") for name in facts.group_versions) if own == group]
    named = kind or _REVIEWS.get(group, "")
    rows = [
        facts.kind(group, version, named) for version in sorted(versions, key=lambda name: ("a" not in name, name), reverse=True)
    ]
    return _Printer(facts, kind, next((row.type for row in rows if row is not None and row.type), ""))


class _Printer:
    """Prints values of the fields of a kind.

    Args:
        facts: of the minor.
        kind: the kind.
        root: the name of its Go type; empty for a kind that has none, such as that of a custom resource.
    """

    def __init__(self, facts: Facts, kind: str, root: str) -> None:
        self._facts, self._kind, self._root = facts, kind, root

    def print_bad_value(self, error: FieldError) -> Any:
        """Returns the value of an error as the message contains it."""
        value, go_type = error.value, self._type_at(_OTHER_PATHS.get((self._kind, error.path), error.path))
        field = error.path.rpartition(".")[2]
        if error.detail.endswith(_NEGATIVE) or isinstance(value, Printed):
            return value
        if go_type.lstrip("*") == INT_OR_STRING and field in _WHOLE_INT_OR_STRING:
            return Printed(self._print(value, INT_OR_STRING))
        if go_type.lstrip("*") == QUANTITY and self._kind in _WHOLE_QUANTITY and isinstance(value, str) and value:
            return Printed(_print_quantity(value, fraction=self._kind == "ResourceQuota"))
        is_time = error.path in _TIMES_ELSEWHERE or go_type.lstrip("*") in (_TIME, _MICRO_TIME)
        if is_time and isinstance(value, str) and value:
            return Printed(value.replace("T", " ").replace("Z", " +0000 UTC"))
        if go_type.lstrip("*") == _RAW:
            return Printed(_print_raw(value))
        if go_type.endswith(_RESOURCES) and not isinstance(value, str):
            return Printed(_print_resources(value))
        if go_type in _BYTES and isinstance(value, str) and error.path == _WHOLE_BYTES:
            return Printed(f"[]byte{{{', '.join(f'{byte:#x}' for byte in b64decode(value))}}}")
        if error.type in _RESIZED and error.path.find("resizePolicy") >= 0 and error.detail.endswith(_RESIZED[error.type]):
            return Printed(value)  # a ResourceName has a method String
        if isinstance(value, str):
            return Printed(go_quote(value))
        if error.path == "metadata.resourceVersion" and isinstance(value, int):
            return Printed(hex(value))
        if isinstance(value, bool | int | float):
            return value
        if value is None and go_type == _MICRO_TIME:
            return Printed(ZERO_TIME_STRING)
        if value is None:
            return Printed(f"{go_name(go_type)}(nil)" if go_type.startswith(("[]", "map[")) else '"null"')
        return Printed(self._print(value, self._type_of(value, go_type)))

    def _type_at(self, path: str) -> str:
        """Returns the Go type of the field at a path; "" if there is none."""
        go_type, steps = self._root, [name for _, name in _STEP.findall(path)]
        if not go_type and "metadata" in steps:  # that of a custom resource, or of an object in it, has a type
            go_type, steps = f"{META_V1}ObjectMeta", steps[steps.index("metadata") + 1 :]
        for name in steps:
            go_type = go_type.lstrip("*")
            if name:
                go_type = self._fields(go_type).get(name, "")
            else:
                listed = self._facts.row(go_type).get("alias", go_type)
                go_type = listed[2:] if listed.startswith("[]") else listed.partition("]")[2]
        return go_type

    def _fields(self, go_type: str) -> Mapping[str, str]:
        """Returns the types of the fields of a struct, by JSON name, those of inlined structs included."""
        fields: dict[str, str] = {}
        for name, field in (self._facts.row(go_type).get("fields") or {}).items():
            if name.startswith("+"):
                fields.update(self._fields(field["t"].lstrip("*")))
            else:
                fields[name] = field["t"]
        return fields

    def _type_of(self, value: Any, go_type: str) -> str:
        """Returns the type of a struct, map or list that the field of this type belongs to, or has."""
        bare = go_type.lstrip("*")
        if isinstance(value, dict):
            bare = bare.removeprefix("[]")
            if value and all(name[:1].isupper() for name in value):
                names = frozenset(_JSON_NAMES.get(name, name.lower()) for name in value)
                own = frozenset(name.lower() for name in self._fields(bare))
                return bare if names == own else self._internal(names) or bare
            strings = all(isinstance(item, str) for item in value.values())
            known = bare.startswith("map[") or self._fields(bare)
            return bare if known else ("map[string]string" if strings and self._root else "")
        if bare.startswith("[]"):
            return bare
        has_type = self._root or self._kind.endswith("Options")
        return "[]string" if has_type and all(isinstance(item, str) for item in value) else ""

    def _internal(self, names: frozenset[str]) -> str:
        package = self._root.rpartition(".")[0]
        if not package:
            return ""
        return _structs(self._facts, package).get(names) or _structs(self._facts, _CORE).get(names, "")

    def _print(self, value: Any, go_type: str) -> str:
        """Prints a value with %#v."""
        if go_type.lstrip("*") == _TIME:
            return "<nil>" if value is None and go_type.startswith("*") else _print_time(value)
        if go_type.startswith("*"):
            name = go_name(go_type)
            return f"({name})(nil)" if value is None else f"({name})({ADDRESS})"
        if go_type == INT_OR_STRING:
            number, text = (0, value) if isinstance(value, str) else (value or 0, "")
            return f"intstr.IntOrString{{Type:{int(isinstance(value, str))}, IntVal:{number}, StrVal:{go_quote(text)}}}"
        if go_type.startswith("[]"):
            return self._print_list(value, go_type)
        if go_type.endswith(_RESOURCES):
            return _print_resources(value)
        if go_type.startswith("map["):
            return self._print_map(value, go_type, go_type.partition("]")[2])
        if self._fields(go_type):
            return self._print_struct(value or {}, go_type)
        if isinstance(value, dict):
            return self._print_map(value, "map[string]interface {}", "")
        if isinstance(value, list):
            return self._print_list(value, "[]interface {}")
        return _print_scalar(value, self._facts.row(go_type).get("alias", go_type))

    def _print_list(self, value: Any, go_type: str) -> str:
        name = go_name(go_type)
        if value is None:
            return f"{name}(nil)"
        element = "" if go_type == "[]interface {}" else go_type[2:]
        return f"{name}{{{', '.join(self._print(item, element) for item in value)}}}"

    def _print_map(self, value: Any, go_type: str, element: str) -> str:
        name = go_name(go_type)
        if value is None:
            return f"{name}(nil)"
        return f"{name}{{{', '.join(f'{go_quote(key)}:{self._print(value[key], element)}' for key in sorted(value))}}}"

    def _print_struct(self, value: Mapping[str, Any], go_type: str) -> str:
        fields = self._fields(go_type)
        lowered = {name.lower(): field for name, field in fields.items()}
        if value and all(name[:1].isupper() for name in value):
            kinds = {field.name: field.kind for field in self._facts.internal.get(go_type.rpartition(".")[2], ())}
            types = {name: lowered.get(_JSON_NAMES.get(name, name.lower()), "") for name in value}
            members = [
                (name, item, types[name] if kinds.get(name, _POINTER) == _POINTER else types[name].removeprefix("*"))
                for name, item in value.items()
            ]
        else:
            members = [(_GO_NAMES.get(name, name[0].upper() + name[1:]), value.get(name), t) for name, t in fields.items()]
        return f"{go_name(go_type)}{{{', '.join(f'{name}:{self._print(item, field)}' for name, item, field in members)}}}"


@cache
def _structs(facts: Facts, package: str) -> Mapping[frozenset[str], str]:
    """Returns the structs of a package by the lower-case names of their fields."""
    return {
        frozenset(name.lower() for name in row["fields"]): f"{package}.{name}"
        for name, row in facts.package(package).items()
        if row.get("fields")
    }


def _print_time(value: str | None) -> str:
    """Prints a time as its GoString does."""
    if value is None:
        return "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)"
    at = datetime.fromisoformat(value)
    return f"time.Date({at.year}, time.{at:%B}, {at.day}, {at.hour}, {at.minute}, {at.second}, 0, time.Local)"


def _print_scalar(value: Any, go_type: str) -> str:
    if value is None:
        zeros = {"bool": "false", **dict.fromkeys(_NUMBERS, "0"), "": "interface {}(nil)"}
        return zeros.get(go_type, '""')
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)


def go_name(go_type: str) -> str:
    """Returns the name of a type as %#v prints it: internal types have the name of their group's package."""
    for prefix in ("*", "[]"):
        if go_type.startswith(prefix):
            return prefix + go_name(go_type[len(prefix) :])
    if go_type.startswith("map["):
        key, _, element = go_type[4:].partition("]")
        return f"map[{go_name(key)}]{go_name(element)}"
    found = _PACKAGE.match(go_type)
    if found is None:
        return go_type.rpartition("/")[2]
    package = found[2] if found[1] == "meta" else found[1]
    return f"{package}.{found[3]}"


def _print_raw(value: Any) -> str:
    """Prints a RawExtension, which holds the bytes of its JSON."""
    text = value.text if isinstance(value, RawObject) else json_text(value).encode()
    raw = "(nil)" if value is None else f"{{{', '.join(map(hex, text))}}}"
    return f"runtime.RawExtension{{Raw:[]uint8{raw}, Object:runtime.Object(nil)}}"


def _print_resources(value: Mapping[str, str] | None) -> str:
    if value is None:
        return "core.ResourceList(nil)"
    amounts = (f"{go_quote(name)}:{_print_quantity(value[name])}" for name in sorted(value))
    return f"core.ResourceList{{{', '.join(amounts)}}}"


def _print_quantity(text: str, *, fraction: bool = False) -> str:
    """Prints a quantity; `fraction`: the text is taken for the canonical form of a decimal fraction, as in `0.5`."""
    from fakekube.apimachinery.schema.quantity import parse

    quantity = parse(text)
    value, scale, cached = quantity.unscaled, quantity.scale, quantity.text
    while fraction and value and value % 10 == 0 and scale < 0:
        value, scale, cached = value // 10, scale + 1, ""
    amount = f"i:resource.int64Amount{{value:{value}, scale:{scale}}}, d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}"
    return f"resource.Quantity{{{amount}, s:{go_quote(cached)}, Format:{go_quote(quantity.format.value)}}}"
