"""Normalises objects to the form in which the real server stores and prints them.

Decoding returns trees in this form; defaulting and strategies append keys to dicts, leave empty lists and set zero
values. `normalise` restores the form: fields in the order of the type, no `omitempty` zero values, all fields that Go
always prints, sorted map keys, and null for empty lists and maps of fields without `omitempty`. The last rule is the
effect of a round trip through the storage of the real server: Protobuf does not distinguish empty from absent.

Invariant: normalise(normalise(x)) == normalise(x); a subtree that is already normalised is returned unchanged, so the
result may share parts with the argument.

Specified by: Go's encoding/json and the generated Protobuf code of the API types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum, auto
from functools import partial
from operator import is_, itemgetter
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.schema.model import Field, ListType, Shape, Type
from fakekube.apimachinery.schema.trees import KNOWN
from fakekube.base.caches import BoundedCache

# --- The form in which Go prints an unset field ----------------------------------------------------------------------
# `omitempty` omits nil pointers, lists and maps and zero scalars, but never a struct by value:
# those print as `{}` (or `null`, `"0"`, `0`: times, quantities and similar types are structs too).
#
# Specified by: Go's encoding/json, and the MarshalJSON of the API machinery's own types.


#: By itself, since before Python 3.12 an attribute of an Enum class is slow.
_STRUCT = Shape.STRUCT
_NIL = frozenset({Shape.LIST, Shape.MAP, Shape.BYTES, Shape.ANY})
_STRUCTS = frozenset({
    Shape.STRUCT, Shape.TIME, Shape.MICRO_TIME, Shape.QUANTITY, Shape.INT_OR_STRING, Shape.RAW,
    Shape.FIELDS_V1, Shape.UNION,
})  # fmt: skip
_ZEROS: dict[Shape, Any] = {
    Shape.STRING: "", Shape.BOOLEAN: False, Shape.INTEGER: 0, Shape.NUMBER: 0, Shape.DURATION: "0s",
    Shape.QUANTITY: "0", Shape.INT_OR_STRING: 0,
}  # fmt: skip


def zero(type_: Type) -> Any:
    """Returns the printed zero value of a type; a new tree each time."""
    return _new_struct(always_printed(type_)) if type_.shape is _STRUCT else _ZEROS.get(type_.shape)


def _new_struct(fields: tuple[tuple[str, Callable[[], Any]], ...]) -> dict[str, Any]:
    return {name: make() for name, make in fields}


def always_printed(type_: Type) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """Returns the fields of a struct that are printed even if unset, in order, each with a factory of the value."""
    known: tuple[tuple[str, Callable[[], Any]], ...] | None = type_.compiled.get("always")
    if known is None:
        makers = ((field.name, _maker(field)) for field in type_.fields.values())
        known = type_.compiled["always"] = tuple((name, make) for name, make in makers if make is not None)
    return known


def _maker(field: Field) -> Callable[[], Any] | None:
    """Returns the factory of an unset field's printed value; None if the field is omitted."""
    shape = field.type.shape
    if field.pointer or shape in _NIL:
        return None if field.omit_empty or field.omit_zero else _null
    if field.omit_zero or (field.omit_empty and shape not in _STRUCTS):
        return None
    if shape is Shape.STRUCT:
        return partial(_new_struct, always_printed(field.type)) if always_printed(field.type) else dict
    value = _ZEROS.get(shape)
    return lambda: value


def _null() -> None:
    return None


Normaliser = Callable[[Any], Any]


#: The maximum number of cached layouts per struct.
_MAXIMUM_PLANS: Final = 500


class _Omit(Enum):
    """The condition for omitting a field."""

    EMPTY = auto()
    NULL = auto()
    NEVER = auto()


class _Form(StrEnum):
    """The treatment of empty lists and maps."""

    STORED = "normalise"
    """Null if the field is always printed, else omitted."""
    HELD = "normalise before storage"
    """Kept if the field is always printed, else omitted."""
    COMPARED = "normalise for comparison"
    """Kept: within atomic lists, where Go compares values instead of their printed form."""


#: The members by themselves: before Python 3.12 an attribute of an Enum class is slow.
_STORED, _HELD, _COMPARED = _Form


def normalise(type_: Type, tree: Any, *, stored: bool = True, parts: Mapping[str, Any] | None = None) -> Any:
    """Normalises a tree of a built-in type. `tree` itself is not changed.

    Args:
        type_: the type of the tree.
        tree: an object, or a part of one.
        stored: True for the form after storage; False for the form before it: empty lists and maps of fields that
            are always printed are kept, and within atomic lists empty and absent ones are different.
        parts: fields of the tree that are normalised, as of a stored object; the result has them as they are.

    Raises:
        KeyError: the tree has a field that the type does not declare.
    """
    form = _normaliser(type_, _STORED if stored else _HELD)
    return {**form({**tree, **dict.fromkeys(parts, KNOWN)}), **parts} if parts else form(tree)


def surely_differ(one: Any, other: Any) -> bool:
    """Reports whether two trees of a type certainly differ after `normalise`; False if that is unknown.

    It compares what `normalise` never changes: scalars that both trees have, and the lengths of lists.
    """
    if not one or not other or one == other:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        for name, item in one.items():  # noqa: SIM110 - in each update of a spec; a generator costs more
            if surely_differ(item, other.get(name)):
                return True
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) != len(other) or any(map(surely_differ, one, other))
    return True


def _normaliser(type_: Type, form: _Form) -> Normaliser:
    known: Normaliser | None = type_.compiled.get(form)
    if known is None:
        known = type_.compiled[form] = _COMPILERS.get(type_.shape, _as_it_is)(type_, form)
    return known


def _as_it_is(_: Type, __: _Form) -> Normaliser:
    return lambda value: value


class _Plan(NamedTuple):
    """The normalisation of structs with one layout."""

    in_form: bool
    """The fields are in the order of the type and complete: a struct without empty values is normalised."""
    in_order: Callable[[dict[str, Any]], dict[str, Any]] | None
    """Puts the fields in the order of the type; None if fields are missing."""
    nested: tuple[tuple[str, Normaliser], ...]
    """The fields whose values are objects or lists."""
    steps: tuple[tuple[Any, ...], ...]
    """For each field in the order of the type: name, normaliser, condition for omitting it, factory of its zero value."""


def _struct(type_: Type, form: _Form) -> Normaliser:
    """Makes the normaliser of a struct, which caches a plan for each layout, as in decoding.

    Structs without empty values need no steps: their fields are put in order, and parts that change are replaced.
    """
    always = dict(always_printed(type_))
    ranks = {name: rank for rank, name in enumerate(type_.fields)}
    plans: BoundedCache[tuple[str, ...], _Plan] = BoundedCache(_MAXIMUM_PLANS)

    def step(name: str) -> tuple[Any, ...]:
        field = type_.fields[name]
        nested = _normaliser(field.type, form) if field.type.shape in _COMPILERS else None
        omit = _omission(field)
        if form is _COMPARED and omit is _Omit.EMPTY and field.type.shape in (Shape.LIST, Shape.MAP):
            omit = _Omit.NULL
        return name, nested, omit is _Omit.EMPTY, omit is _Omit.NULL, always.get(name)

    def plan(layout: tuple[str, ...]) -> _Plan:
        names = tuple(sorted({*layout, *always}, key=ranks.__getitem__))
        steps = tuple(map(step, names))
        nested = tuple((name, normaliser) for name, normaliser, *_ in steps if normaliser is not None)
        in_order = _in_order(names) if len(names) == len(layout) else None
        return plans.add(layout, _Plan(names == layout, in_order, nested, steps))

    def normalise_struct(value: Any) -> Any:
        if value.__class__ is not dict:  # null, or a part that is known
            return value
        layout = tuple(value)
        in_form, in_order, parts, steps = plans.get(layout) or plan(layout)
        if in_order is not None and all(value.values()):
            tree = value if in_form else in_order(value)
            for name, nested in parts:
                item = tree[name]
                part = nested(item)
                if part is not item:
                    if tree is value:
                        tree = dict(value)
                    tree[name] = part
            return tree
        tree = {}
        for name, nested, omit_empty, omit_null, make in steps:
            item = value.get(name)
            if not item:
                if omit_empty or (omit_null and item is None):
                    continue
                if item is None and make is not None:
                    item = make()
            if nested is not None:
                item = nested(item)
            tree[name] = item
        return value if in_form and len(tree) == len(value) and all(map(is_, tree.values(), value.values())) else tree

    return normalise_struct


def _in_order(names: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Makes a function that puts the members of a dict in this order."""
    if len(names) < 2:
        return dict
    values = itemgetter(*names)
    return lambda value: dict(zip(names, values(value), strict=True))


def _omission(field: Field) -> _Omit:
    """Returns the condition on which Go omits a field."""
    shape = field.type.shape
    if shape is Shape.UNION:
        return _Omit.NEVER  # null is not nil: it replaces a value that was neither the struct nor the alternative
    if field.omit_zero or field.pointer or shape in _NULLABLE:
        return _Omit.NULL if field.omit_empty or field.omit_zero else _Omit.NEVER
    if shape in _OMITTED_EMPTY and field.omit_empty:
        return _Omit.EMPTY
    return _Omit.NEVER


def _list(type_: Type, form: _Form) -> Normaliser:
    items = type_.items
    assert items is not None
    if form is _HELD and type_.list_type is ListType.ATOMIC:
        form = _COMPARED
    has_parts, may_be_null = items.shape in _COMPILERS, items.shape is Shape.STRUCT
    nested: Normaliser | None = None

    def normalise_list(value: Any) -> Any:
        nonlocal nested
        if not value:
            return None if form is _STORED else value
        if value is KNOWN:
            return value
        if not has_parts:
            return value
        if nested is None:
            nested = _normaliser(items, form)
        tree = list(map(nested, value))
        if may_be_null and None in value:
            tree = [zero(items) if item is None else item for item in tree]
        return value if all(map(is_, tree, value)) else tree

    return normalise_list


def _map(type_: Type, form: _Form) -> Normaliser:
    items = type_.items
    assert items is not None
    empty = _EMPTY_VALUES.get(items.shape) if form is _STORED else None
    has_parts = items.shape in _COMPILERS or empty is not None
    nested: Normaliser | None = None

    def normalise_map(value: Any) -> Any:
        nonlocal nested
        if not value:
            return None if form is _STORED else value
        if value is KNOWN:
            return value
        if has_parts:
            if nested is None:
                nested = _normaliser(items, form)
            value = {key: nested(item) if item or empty is None else empty for key, item in value.items()}
        keys = list(value)
        return value if sorted(keys) == keys else dict(sorted(value.items()))

    return normalise_map


def _union(type_: Type, form: _Form) -> Normaliser:
    struct, alternative = type_.items, type_.alternative
    assert struct is not None
    assert alternative is not None

    def normalise_union(value: Any) -> Any:
        if type(value) is dict:
            return _normaliser(struct, form)(value)
        return _normaliser(alternative, form)(value) if type(value) is list else value

    return normalise_union


#: The form of nil as a map value.
_EMPTY_VALUES: Final[dict[Shape, Any]] = {Shape.LIST: [], Shape.BYTES: ""}

#: Shapes whose nil is null: `omitempty` omits only null, since empty is not nil.
_NULLABLE: Final = frozenset({Shape.ANY, Shape.FIELDS_V1})

_OMITTED_EMPTY: Final = frozenset({
    Shape.STRING, Shape.BOOLEAN, Shape.INTEGER, Shape.NUMBER, Shape.LIST, Shape.MAP, Shape.BYTES,
})  # fmt: skip

_COMPILERS: Final[dict[Shape, Callable[[Type, _Form], Normaliser]]] = {
    Shape.STRUCT: _struct,
    Shape.LIST: _list,
    Shape.MAP: _map,
    Shape.UNION: _union,
}
