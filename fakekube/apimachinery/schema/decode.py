"""Decodes parsed JSON into a built-in type, with the errors of Go's decoder.

Theory of operation: each type is compiled once into a decoder, a closure `(value, walk) -> tree`, with two modes.

* The fast path (`walk` is None) decodes valid values. A struct takes the names of its members in their order as its
  layout; for each layout it caches a plan of the fields in the order of the type. The first irregularity ends the
  fast path.
* The slow path then walks the value in the order of the document, which determines the error to report: the *first*
  type mismatch is recorded and raised at the end, but an invalid value of a type with a custom JSON form (a time, a
  quantity …) ends the decoding at once. `Walk.stack` contains the current position; paths are formatted only for
  errors.

Invariant: for a valid value, both paths return the same tree.

The result is a new tree in the field order of the type: unknown fields are dropped (and reported), nulls and zero
values of `omitempty` fields are dropped, the zero values that Go always prints are present, maps are sorted. Two
kinds of values stay unchanged: lists and maps that are empty but not null (defaulting may distinguish them from absent
ones; `printing.normalise` drops them), and values of any type (RawExtension, JSON, FieldsV1), which are shared with
the input.

Specified by: sigs.k8s.io/json (Go's encoding/json, case-sensitive, with strict errors), and the UnmarshalJSON
of the types in k8s.io/apimachinery and k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.apimachinery.schema import quantity
from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.apimachinery.schema.printing import always_printed, zero
from fakekube.apimachinery.schema.strict import Strict
from fakekube.apimachinery.schema.trees import KNOWN
from fakekube.apimachinery.schema.walk import DecodeError, Decoder, Frame, Literals, SlowPathRequired, Walk
from fakekube.base.caches import BoundedCache
from fakekube.base.golang import base64, timestamps
from fakekube.base.golang.strconv import json_kind

__all__ = ["DecodeError", "Strict", "decode", "decoder"]

# --- The decoder of each shape of type -------------------------------------------------------------------------------
# `decode` describes how the decoders work together.
#
# Specified by: Go's encoding/json (decode.go), and the UnmarshalJSON of the types in k8s.io/apimachinery and
# k8s.io/apiextensions-apiserver.


#: The maximum number of cached layouts per struct.
_MAXIMUM_PLANS: Final = 500


def decoder(type_: Type) -> Decoder:
    """Returns the compiled decoder of a type."""
    known: Decoder | None = type_.compiled.get("decode")
    if known is None:
        known = type_.compiled["decode"] = _COMPILERS[type_.shape](type_)
    return known


class _Step:
    """The decoding step of one field of a struct."""

    __slots__ = ("as_it_is", "drop_zero", "frame", "make", "name", "rank", "read")

    def __init__(self, owner: Type, field: Field, rank: int, make: Callable[[], Any] | None) -> None:
        shape = field.type.shape
        self.name = field.name
        self.rank = rank
        self.as_it_is = _AS_IT_IS.get(shape)
        self.read = decoder(field.type)
        self.drop_zero = not field.pointer and ((field.omit_empty and shape in _SCALARS) or field.omit_zero)
        self.make = make
        self.frame = Frame(owner, field)


def _struct(type_: Type) -> Decoder:
    always = dict(always_printed(type_))
    ranks = {name: rank for rank, name in enumerate(type_.fields)}
    steps: dict[str, _Step] = {}
    plans: BoundedCache[tuple[str, ...], tuple[tuple[Any, ...], ...]] = BoundedCache(_MAXIMUM_PLANS)
    go = type_.go

    def step(name: str) -> _Step | None:
        """Makes a step on first use, so that unused types are not compiled."""
        known = steps.get(name)
        if known is None and name in ranks:
            known = steps[name] = _Step(type_, type_.fields[name], ranks[name], always.get(name))
        return known

    def plan(layout: tuple[str, ...]) -> tuple[tuple[Any, ...], ...]:
        """Returns the fields of a layout and those that are always printed, in the order of the type."""
        if not ranks.keys() >= set(layout):
            raise SlowPathRequired
        taken = (step(name) for name in sorted({*layout, *always}, key=ranks.__getitem__))
        made = tuple((s.name, s.as_it_is, s.read, s.drop_zero, s.make) for s in taken if s is not None)
        return plans.add(layout, made)

    def decode_struct(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is not dict:
            return _mismatch(value, go, walk)
        if walk is not None:
            return decode_carefully(value, walk)
        layout = tuple(value)
        steps_of_layout = plans.get(layout)
        if steps_of_layout is None:
            steps_of_layout = plan(layout)
        tree = {}
        for name, as_it_is, read, drop_zero, make in steps_of_layout:
            item = value.get(name)
            if item is None:
                if make is not None:
                    tree[name] = make()
                continue
            if item.__class__ is not as_it_is and item is not KNOWN:
                item = read(item, None)
            if item or not drop_zero:
                tree[name] = item
        return tree

    def decode_carefully(value: dict[str, Any], walk: Walk) -> Any:
        tree = {name: make() for name, make in always.items()}
        for name, item in value.items():
            known = step(name)
            if known is None:
                walk.unknown(name)
            elif item is not None:
                walk.stack.append(known.frame)
                held = item if item is KNOWN else known.read(item, walk)
                walk.stack.pop()
                if held or not known.drop_zero:
                    tree[name] = held
        return {name: tree[name] for name in sorted(tree, key=ranks.__getitem__)}

    return decode_struct


def _list(type_: Type) -> Decoder:
    items = type_.items
    assert items is not None
    as_it_is = _AS_IT_IS.get(items.shape)
    go = type_.go
    read: Decoder | None = None  # made on first use, since types may be recursive

    def decode_list(value: Any, walk: Walk | None) -> Any:
        nonlocal read
        if value.__class__ is not list:
            return _mismatch(value, go, walk)
        if read is None:
            read = decoder(items)
        tree = []
        if walk is not None:
            walk.stack.append(0)
        for index, item in enumerate(value):
            if item.__class__ is as_it_is:
                tree.append(item)
                continue
            if walk is not None:
                walk.stack[-1] = index
            tree.append(zero(items) if item is None else read(item, walk))
        if walk is not None:
            walk.stack.pop()
        return tree

    return decode_list


def _map(type_: Type) -> Decoder:
    items = type_.items
    assert items is not None
    as_it_is = _AS_IT_IS.get(items.shape)
    go = type_.go
    read: Decoder | None = None  # made on first use, since types may be recursive

    def decode_map(value: Any, walk: Walk | None) -> Any:
        nonlocal read
        if value.__class__ is not dict:
            return _mismatch(value, go, walk)
        if read is None:
            read = decoder(items)
        tree = {}
        if walk is not None:
            walk.stack.append("")
        for key, item in value.items():
            if item.__class__ is as_it_is:
                tree[key] = item
                continue
            if walk is not None:
                walk.stack[-1] = key
            tree[key] = zero(items) if item is None else read(item, walk)
        if walk is not None:
            walk.stack.pop()
        return dict(sorted(tree.items())) if len(tree) > 1 else tree

    return decode_map


def _union(type_: Type) -> Decoder:
    """Decodes a struct or its alternative. Other values are an error if the alternative is a boolean, and null if it
    is a list.
    """
    struct, alternative = type_.items, type_.alternative
    assert struct is not None
    assert alternative is not None
    alternative_class = bool if alternative.shape is Shape.BOOLEAN else list

    def decode_union(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is dict:
            return _custom_unmarshal(decoder(struct), value, walk)
        if value.__class__ is alternative_class:
            held = _custom_unmarshal(decoder(alternative), value, walk)
            return None if held == [] else held  # an empty list prints like an absent one
        if alternative_class is bool:
            raise _decode_failure("boolean or JSON schema expected", walk)
        return None

    return decode_union


def _custom_unmarshal(read: Decoder, value: Any, walk: Walk | None) -> Any:
    return read(value, None) if walk is None else walk.custom_unmarshal(read, value)


def _mismatch(value: Any, go: str, walk: Walk | None) -> Any:
    """Reports a value that does not fit the Go type `go`."""
    if walk is None:
        raise SlowPathRequired
    walk.mismatch(value, go)
    return None


def _decode_failure(message: str, walk: Walk | None) -> Exception:
    """Returns the exception that ends a decode at once."""
    return SlowPathRequired() if walk is None else DecodeError(message)


def _scalar(class_: type) -> Callable[[Type], Decoder]:
    def compile_scalar(type_: Type) -> Decoder:
        go = type_.go

        def decode_scalar(value: Any, walk: Walk | None) -> Any:
            return value if value.__class__ is class_ else _mismatch(value, go, walk)

        return decode_scalar

    return compile_scalar


def _integer(type_: Type) -> Decoder:
    bits = 64 if type_.format == "int64" else 32
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    go = type_.go

    def decode_integer(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is int and low <= value <= high:
            return value
        return _not_a_number(value, go, walk)

    return decode_integer


#: Whole numbers up to this limit print the same as integers and as floats; they become integers, except for -0.
_EXACT: Final = 2**53


def _number(type_: Type) -> Decoder:
    go = type_.go

    def decode_number(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is float:
            return int(value) if value and -_EXACT <= value <= _EXACT and value.is_integer() else value
        if value.__class__ is int and -_EXACT <= value <= _EXACT:
            return value
        try:
            return float(value) if value.__class__ is int else _not_a_number(value, go, walk)
        except OverflowError:
            return _not_a_number(value, go, walk)

    return decode_number


def _not_a_number(value: Any, go: str, walk: Walk | None) -> None:
    if walk is None:
        raise SlowPathRequired
    walk.not_a_number(value, go)


def _bytes(type_: Type) -> Decoder:
    go = type_.go

    def decode_bytes(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is list:
            return _bytes_of_numbers(value, walk)
        if value.__class__ is not str:
            return _mismatch(value, go, walk)
        try:
            return base64.canonical(value)
        except base64.Base64Error as error:
            if walk is None:
                raise SlowPathRequired from None
            return walk.fault(str(error))

    return decode_bytes


def _bytes_of_numbers(value: list[Any], walk: Walk | None) -> str | None:
    """Decodes []byte. Go also accepts a list of numbers."""
    for item in value:
        if item is not None and not (type(item) is int and 0 <= item < 256):
            _not_a_number(item, "uint8", walk)
            return None
    return base64.encode(bytes(item or 0 for item in value))


def _text(read_text: Callable[[str], str | None]) -> Callable[[Type], Decoder]:
    """Decodes times."""

    def compile_text(_: Type) -> Decoder:
        def decode_text(value: Any, walk: Walk | None) -> Any:
            if value.__class__ is not str:
                raise _decode_failure(walk.type_error(json_kind(value), "string") if walk is not None else "", walk)
            try:
                return read_text(value)
            except ValueError as error:
                raise _decode_failure(str(error), walk) from None

        return decode_text

    return compile_text


def _quantity(_: Type) -> Decoder:
    def decode_quantity(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is str:
            text = value.strip()
        elif value.__class__ is int:
            text = repr(value)
        elif walk is None:
            raise SlowPathRequired
        else:
            text = walk.literal(value) if isinstance(value, float) else ""
        try:
            return quantity.canonical(text)
        except quantity.QuantityError as error:
            raise _decode_failure(str(error), walk) from None

    return decode_quantity


def _int_or_string(_: Type) -> Decoder:
    def decode_int_or_string(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is str or (value.__class__ is int and -(2**31) <= value < 2**31):
            return value
        raise _decode_failure(walk.number_error(value, "int32") if walk is not None else "", walk)

    return decode_int_or_string


def _any(_: Type) -> Decoder:
    return lambda value, _: value


#: Shapes whose values are accepted unchanged if they are of this class.
_AS_IT_IS: Final[dict[Shape, type]] = {Shape.STRING: str, Shape.BOOLEAN: bool}

_SCALARS: Final = frozenset({Shape.STRING, Shape.BOOLEAN, Shape.INTEGER, Shape.NUMBER})

_COMPILERS: Final[dict[Shape, Callable[[Type], Decoder]]] = {
    Shape.STRUCT: _struct,
    Shape.LIST: _list,
    Shape.MAP: _map,
    Shape.UNION: _union,
    Shape.STRING: _scalar(str),
    Shape.BOOLEAN: _scalar(bool),
    Shape.INTEGER: _integer,
    Shape.NUMBER: _number,
    Shape.BYTES: _bytes,
    Shape.TIME: _text(timestamps.parse_time),
    Shape.MICRO_TIME: _text(timestamps.parse_micro_time),
    Shape.QUANTITY: _quantity,
    Shape.INT_OR_STRING: _int_or_string,
    Shape.FIELDS_V1: _any,
    Shape.RAW: _any,
    Shape.ANY: _any,
}


def decode(type_: Type, value: Any, strict: Strict | None = None, literals: Literals | None = None) -> Any:
    """Decodes parsed JSON into a type.

    Args:
        type_: the type to decode into.
        value: the parsed body; not changed, but values of any type in it become part of the result.
        strict: collects unknown fields and duplicates.
        literals: parses the body again, with each number that is not an integer as its literal text; called only if a
            literal is needed (messages, quantities). Without it, the literals are those that Python prints.

    Raises:
        DecodeError: the value does not fit the type.
    """
    if value is None:
        return zero(type_)
    read = decoder(type_)
    try:
        tree = read(value, None)
    except SlowPathRequired:
        walk = Walk(strict, literals)
        tree = read(value, walk)
        if walk.error is not None:
            raise DecodeError(walk.error) from None
    if strict is not None and strict.duplicates:
        strict.finish(type_, value)
    return tree
