"""The hashes that workload controllers put into names and labels.

`pod-template-hash` (Deployments, DaemonSets) is the FNV-1a hash of the template printed as a Go struct.
`controller.kubernetes.io/hash` and the names of ControllerRevisions contain the FNV-1 hash of the revision's data. Both are
encoded in an alphabet without vowels, so that they contain no words.

The text of a Go struct is `%#v` of spew with types, sorted map keys and followed pointers:
`(v1.PodSpec){Volumes:([]v1.Volume)<nil> …}`. All fields are printed, absent ones as the zero value of their Go type. Hence the
text depends on names, types and order of the fields of every type that a pod template can contain. `structs.json` of the minor's
data lists them by type: `Name:json:GoType …` for structs (an empty JSON name marks an inlined struct), `= GoType` for others.

Invariant: the text of a struct does not depend on the order of keys, nor on whether an empty list or map is present or absent
(controllers receive objects as Protobuf, which does not distinguish the two).

Specified by: pkg/controller/controller_utils.go (ComputeHash), pkg/controller/history/controller_history.go
(HashControllerRevision), k8s.io/utils/dump/dump.go (ForHash), github.com/davecgh/go-spew/spew/format.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.data import DEFAULT
from fakekube.apimachinery.schema.quantity import Format, Quantity
from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.base.caches import forgettable
from fakekube.base.chance import safe_encode_string
from fakekube.base.golang.strconv import MAX_INT64

_NIL: Final = "<nil>"
_INTEGERS: Final = frozenset({"int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})

#: Decimal digits of a quantity with a binary suffix that Go keeps as an int64.
_BINARY_DIGITS: Final = 15

#: Decimal digits of other quantities that Go keeps as an int64.
_FAST_DIGITS: Final = 18
_NANO: Final = -9
_Printer = Callable[[Any], str]


def print_pod_template(template: dict[str, Any], minor: str = DEFAULT) -> str:
    """Returns the text of a PodTemplateSpec, such as a workload's `spec.template`, in a minor."""
    return "(v1.PodTemplateSpec)" + _printers(minor).of_values("v1.PodTemplateSpec")(template)


class _Printers:
    """The printers of the Go types of a minor, each made on first use."""

    def __init__(self, definitions: Mapping[str, str]) -> None:
        self._definitions = definitions
        """The definition of each named type: its fields, or `= ` and another Go type."""
        self._typed: dict[str, _Printer] = {}
        self._values: dict[str, _Printer] = dict(_SPECIAL)

    def of_fields(self, go_type: str) -> _Printer:
        """Returns a printer of values with their type in parentheses, as spew prints fields of structs."""
        found = self._typed.get(go_type)
        if found is None:
            found = self._typed[go_type] = self._typed_printer(go_type)
        return found

    def of_values(self, go_type: str) -> _Printer:
        """Returns a printer of values without their type, as spew prints items of lists and maps, and targets of pointers."""
        found = self._values.get(go_type)
        if found is None:
            found = self._values[go_type] = self._value_printer(go_type)
        return found

    def _typed_printer(self, go_type: str) -> _Printer:
        if go_type.startswith("*"):
            absent, prefix = f"({go_type}){_NIL}", f"({go_type})"
            pointed_to = self.of_values(go_type[1:])
            return lambda value: absent if value is None else prefix + pointed_to(value)
        prefix = f"({go_type})"
        bare = self.of_values(go_type)
        return lambda value: prefix + bare(value)

    def _value_printer(self, go_type: str) -> _Printer:
        if go_type == "string":
            return lambda value: value or ""
        if go_type == "bool":
            return lambda value: "true" if value else "false"
        if go_type in _INTEGERS:
            return lambda value: str(value or 0)
        if go_type.startswith("[]"):
            return self._list_printer(go_type[2:])
        if go_type.startswith("map["):
            return self._map_printer(go_type[go_type.index("]") + 1 :])
        definition = self._definitions[go_type]
        return self.of_values(definition[2:]) if definition.startswith("= ") else self._struct_printer(definition)

    def _list_printer(self, item_type: str) -> _Printer:
        def print_list(value: Any) -> str:
            item = self.of_values(item_type)
            return f"[{' '.join(map(item, value))}]" if value else _NIL

        return print_list

    def _map_printer(self, value_type: str) -> _Printer:
        def print_map(value: Any) -> str:
            item = self.of_values(value_type)
            return f"map[{' '.join(f'{key}:{item(value[key])}' for key in sorted(value))}]" if value else _NIL

        return print_map

    def _struct_printer(self, definition: str) -> _Printer:
        fields = [tuple(field.split(":", 2)) for field in definition.split(" ")]

        def print_struct(value: Any) -> str:
            parts = []
            for name, json_name, go_type in fields:
                part = (value.get(json_name) if json_name else value) if value else None
                parts.append(f"{name}:{self.of_fields(go_type)(part)}")
            return f"{{{' '.join(parts)}}}"

        return print_struct


@cache
def _printers(minor: str) -> _Printers:
    return _Printers(data.minor(minor).structs)


def _print_time(value: Any) -> str:
    """Prints the zero time: pod templates contain no other."""
    return "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


def _print_int_or_string(value: Any) -> str:
    if isinstance(value, str):
        return f"{{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string){value}}}"
    return f"{{Type:(intstr.Type)0 IntVal:(int32){value or 0} StrVal:(string)}}"


def _print_quantity(value: Any) -> str:
    """Prints a parsed quantity: an int64 with a scale, or an inf.Dec for numbers that do not fit."""
    if value is None:
        return _quantity_text(0, 0, "", "", "")
    quantity = parse_quantity(str(value))
    if _fits_int64(str(value), quantity):
        return _quantity_text(quantity.unscaled, quantity.scale, "", quantity.text, quantity.format.value)
    return _quantity_text(0, 0, _decimal_text(quantity), "", quantity.format.value)


def _fits_int64(text: str, quantity: Quantity) -> bool:
    """Reports whether Go's parser keeps this text as an int64 (the fast path of ParseQuantity)."""
    number = text.strip("+-")
    if quantity.format is Format.BINARY_SI:
        exponent = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}[number[-2]]
        whole = number[:-2].lstrip("0")
        return "." not in whole and _BINARY_DIGITS - len(whole) - exponent * 3 // 10 - 1 >= 0
    digits = sum(character.isdigit() for character in number.lstrip("0").partition("e")[0])
    return digits <= _FAST_DIGITS and quantity.scale >= _NANO and abs(quantity.unscaled) <= MAX_INT64


def _decimal_text(quantity: Quantity) -> str:
    """Prints inf.Dec: the unscaled number in words of 64 bits, the lowest first, at nano scale."""
    saturated = quantity.format is Format.BINARY_SI and abs(quantity.unscaled) == MAX_INT64 and quantity.scale == 0
    scale = 0 if saturated else -_NANO
    unscaled = abs(quantity.unscaled) * 10 ** (quantity.scale + scale)
    words = []
    while unscaled:
        words.append(str(unscaled % 2**64))
        unscaled //= 2**64
    negative = "true" if quantity.unscaled < 0 else "false"
    natural = f"[{' '.join(words)}]" if words else _NIL
    return f"{{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat){natural}}} scale:(inf.Scale){scale}}}"


def _quantity_text(value: int, scale: int, decimal: str, text: str, format_: str) -> str:
    return (
        f"{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal or _NIL}}} s:(string){text} Format:(resource.Format){format_}}}"
    )


_SPECIAL: Final[dict[str, _Printer]] = {
    "v1.Time": _print_time,
    "v1.FieldsV1": lambda value: "{Raw:([]uint8)<nil>}",
    "intstr.IntOrString": _print_int_or_string,
    "resource.Quantity": _print_quantity,
}


_OFFSET: Final = 2166136261
_PRIME: Final = 16777619
_MASK: Final = 0xFFFFFFFF


def fnv1(data: bytes) -> int:
    """Returns the 32-bit FNV-1 hash."""
    result = _OFFSET
    for byte in data:
        result = (result * _PRIME & _MASK) ^ byte
    return result


def fnv1a(data: bytes) -> int:
    """Returns the 32-bit FNV-1a hash."""
    result = _OFFSET
    for byte in data:
        result = (result ^ byte) * _PRIME & _MASK
    return result


def compute_hash(template: dict[str, Any], collision_count: int | None, minor: str = DEFAULT) -> str:
    """Returns the hash of a pod template.

    Args:
        template: `spec.template` of a Deployment or a DaemonSet, as it is stored.
        collision_count: `status.collisionCount`; None if it is absent, which gives another hash than 0.
        minor: the minor whose controllers compute it.
    """
    return _compute_hash(json.dumps(template), collision_count, minor)


@forgettable
@lru_cache(maxsize=256)
def _compute_hash(template: bytes, collision_count: int | None, minor: str) -> str:
    text = print_pod_template(json.reread(template), minor).encode("utf-8", "surrogateescape")
    if collision_count is not None:
        text += collision_count.to_bytes(8, "little")
    return safe_encode_string(str(fnv1a(text)))


def hash_controller_revision(data: bytes, probe: int | None) -> str:
    """Returns the hash of a ControllerRevision's data and of the number of collisions so far (None if absent)."""
    return safe_encode_string(str(fnv1(data + (b"" if probe is None else str(probe).encode()))))
