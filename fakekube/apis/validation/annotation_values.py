"""Values of annotations that validation still parses: they hold what later became fields.

Go parses them as JSON into its types. Names match in any letter case, null means absent, and unknown members are
skipped. The first value of a wrong type is reported with Go's names of types and fields: internal types have no JSON
names, so the message has `Key` for them and `podSignature` for others.

Specified by: pkg/apis/core/helper/helpers.go (Get…FromPodAnnotations, …FromNodeAnnotations); Go's encoding/json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fakekube.base.golang.json_reader import JSONError, parse
from fakekube.base.golang.strconv import INT64, json_kind
from fakekube.base.golang.strings import bytes_of
from fakekube.base.golang.timestamps import TimeError, parse_time

__all__ = ["read_avoid_pods", "read_taints", "read_tolerations"]

Part = dict[str, Any]


class _Field(NamedTuple):
    shown: str
    """The name of the field in messages."""
    go_type: str
    holds: Any = str
    """The type: str, bool, int, `parse_time`, or the fields of a struct."""
    many: bool = False


_Struct = Mapping[str, _Field]


def _struct(*fields: _Field) -> _Struct:
    return {field.shown.lower(): field for field in fields}


_TOLERATION = _struct(
    _Field("Key", "string"),
    _Field("Operator", "core.TolerationOperator"),
    _Field("Value", "string"),
    _Field("Effect", "core.TaintEffect"),
    _Field("TolerationSeconds", "int64", int),
)
_TAINT = _struct(
    _Field("Key", "string"),
    _Field("Value", "string"),
    _Field("Effect", "core.TaintEffect"),
    _Field("TimeAdded", "string", parse_time),
)
_OWNER_REFERENCE = _struct(
    _Field("apiVersion", "string"),
    _Field("kind", "string"),
    _Field("name", "string"),
    _Field("uid", "types.UID"),
    _Field("controller", "bool", bool),
    _Field("blockOwnerDeletion", "bool", bool),
)
_AVOID_PODS_ENTRY = _struct(
    _Field("podSignature", "v1.PodSignature", _struct(_Field("podController", "v1.OwnerReference", _OWNER_REFERENCE))),
    _Field("evictionTime", "string", parse_time),
    _Field("reason", "string"),
    _Field("message", "string"),
)
_AVOID_PODS = _struct(_Field("preferAvoidPods", "v1.PreferAvoidPodsEntry", _AVOID_PODS_ENTRY, many=True))


def read_tolerations(text: str) -> list[Part]:
    """Parses the tolerations of an annotation. Raises JSONError."""
    found: list[Part] = _read(text, _Field("", "core.Toleration", _TOLERATION, many=True)) or []
    return found


def read_taints(text: str) -> list[Part]:
    """Parses the taints of an annotation. Raises JSONError."""
    found: list[Part] = _read(text, _Field("", "core.Taint", _TAINT, many=True)) or []
    return found


def read_avoid_pods(text: str) -> Part:
    """Parses the preferAvoidPods annotation. Raises JSONError."""
    found: Part = _read(text, _Field("", "v1.AvoidPods", _AVOID_PODS)) or {}
    return found


def _read(text: str, root: _Field) -> Any:
    try:
        return _value(parse(bytes_of(text)), root, "value")
    except RecursionError:
        raise JSONError("exceeded max depth") from None


def _value(value: Any, field: _Field, where: str) -> Any:
    """Converts one value, or all items of a list; `where` is the name of the place in messages."""
    if value is None or not field.many:
        return _one(value, field, where)
    if not isinstance(value, list):
        raise _mismatch(value, where, f"[]{field.go_type}")
    return [_one(item, field, where) for item in value]


def _one(value: Any, field: _Field, where: str) -> Any:
    holds = field.holds
    if value is None:
        return {} if isinstance(holds, Mapping) else None
    if isinstance(holds, Mapping):
        return _members(value, field, where)
    if holds is parse_time:
        return _time(value, where)
    if type(value) is not holds or (holds is int and value not in INT64):
        raise _mismatch(value, where, field.go_type, shows_number=holds is int)
    return value


def _members(value: Any, field: _Field, where: str) -> Part:
    if not isinstance(value, dict):
        raise _mismatch(value, where, field.go_type)
    struct = field.go_type.rpartition(".")[2]
    above = where.partition(".")[2]
    found = {}
    for name, member in value.items():
        inner = field.holds.get(name.lower())
        if inner is not None and member is not None:
            path = f"{above}.{inner.shown}" if above else inner.shown
            key = inner.shown[:1].lower() + inner.shown[1:]
            found[key] = _value(member, inner, f"struct field {struct}.{path}")
    return found


def _time(value: Any, where: str) -> str | None:
    if type(value) is not str:
        raise _mismatch(value, where, "string")
    try:
        return parse_time(value)
    except TimeError as error:
        raise JSONError(str(error)) from None


def _mismatch(value: Any, where: str, go_type: str, *, shows_number: bool = False) -> JSONError:
    kind = json_kind(value)
    number = f" {value}" if shows_number and kind == "number" else ""
    place = f"{where} of type {go_type}"
    return JSONError(f"json: cannot unmarshal {kind}{number} into Go {place}")
