"""Reading parsed JSON as a built-in type: Go's decoder, message for message.

Theory of operation: each type is compiled once into a decoder, a closure `(value, walk) -> tree`, that knows two roads.

* The quick road (`walk` is None) is for values with nothing wrong in them. A struct looks at the names it is given, in
  their order; for each such layout there is a plan of what to do with which field, in the order of the type. The first
  irregularity ends it.
* The careful road then goes through the value in the order of the document, because that decides which mistake is
  told: the *first* wrong type is remembered and told at the end, but a value with a form of its own (a time, a
  quantity …) that cannot be read ends everything at once. `Walk.stack` holds where we are; texts of paths are made only
  when something is wrong.

Invariant: where there is no mistake, both roads lead to the same tree.

The result is a tree of its own in the field order of the type: unknown fields dropped (and reported), nulls and zero
values of `omitempty` fields dropped, the zero values that Go always prints present, maps sorted. Two things stay as
they came: lists and maps that are empty but not null (defaulting may tell them from absent ones; `printing.normalise`
drops them), and values of any form (RawExtension, JSON, FieldsV1), which are shared with the input.

Specified by: sigs.k8s.io/json (Go's encoding/json, case-sensitive, with strict errors), and the UnmarshalJSON of the
types in k8s.io/apimachinery and k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from fakekube.errors.field import go_quote
from fakekube.schema import base64, quantity, timestamps
from fakekube.schema.model import Field, Shape, Type
from fakekube.schema.zero import always_printed, zero

__all__ = ["DecodeError", "Strict", "decode"]

_MAXIMUM_STRICT_ERRORS: Final = 100

#: So many layouts of one struct are remembered.
_MAXIMUM_PLANS: Final = 500


class DecodeError(ValueError):
    """A value is not of the type; the words are the real server's, without the prefix of the verb."""


class Strict:
    """Collects what strict decoding complains about: unknown fields, and members that were given twice.

    Args:
        duplicates: paths of members given twice, as the parser of the format tells them (of unknown fields and inside
            of values of any form too: those are left out here).
        members: all paths of members in the order of the document, each as often as it occurs; asked only if there
            are unknown and duplicate ones, to put them into one order.
    """

    def __init__(self, duplicates: Sequence[str] = (), members: Callable[[], Iterable[str]] | None = None) -> None:
        self.unknown: list[str] = []
        self._duplicates = duplicates
        self._members = members

    def finish(self, type_: Type, value: Any) -> None:
        """Called by `decode` at its end: leave out the duplicates that the real server's typed decoder does not see."""
        if self._duplicates:
            known = set(_member_paths(type_, value, ""))
            self._duplicates = [path for path in self._duplicates if path in known]

    @property
    def messages(self) -> list[str]:
        """`unknown field "spec.x"`, `duplicate field "spec.y"` in the order of the document, each once, at most 100."""
        unknown = {path: f"unknown field {go_quote(path)}" for path in self.unknown}
        duplicate = {path: f"duplicate field {go_quote(path)}" for path in self._duplicates}
        if not unknown or not duplicate or self._members is None:
            return [*unknown.values(), *duplicate.values()][:_MAXIMUM_STRICT_ERRORS]
        found: dict[str, None] = {}
        seen: set[str] = set()
        for path in self._members():
            message = unknown.get(path) or (duplicate.get(path) if path in seen else None)
            seen.add(path)
            if message is not None:
                found[message] = None
        return list(found)[:_MAXIMUM_STRICT_ERRORS]


def decode(type_: Type, value: Any, strict: Strict | None = None, literals: Callable[[], Any] | None = None) -> Any:
    """Read parsed JSON as a type.

    Args:
        type_: what it should be.
        value: what `codecs` made of the body; not changed, but values of any form in it become part of the result.
        strict: told of unknown fields and duplicates.
        literals: reads the body once more, with each number that is no integer as the text it was written as; asked
            only where such a text matters (messages, quantities). Without it, numbers are taken to be written as
            Python writes them.

    Raises:
        DecodeError: in the real server's words.
    """
    if value is None:
        return zero(type_)
    try:
        tree = _decoded(decoder(type_), value, strict, literals)
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    if strict is not None:
        strict.finish(type_, value)
    return tree


def _decoded(read: Decoder, value: Any, strict: Strict | None, literals: Callable[[], Any] | None) -> Any:
    try:
        return read(value, None)
    except _Irregularity:
        walk = Walk(strict, literals)
        tree = read(value, walk)
        if walk.error is not None:
            raise DecodeError(walk.error) from None
        return tree


class _Irregularity(Exception):
    """The quick road ends here."""


class Frame:
    """A field on the way to where the walk is."""

    __slots__ = ("go_names", "name", "owner")

    def __init__(self, owner: Type, field: Field) -> None:
        self.name = field.name
        self.go_names = (*field.embedded, field.name)
        self.owner = owner.go.rpartition(".")[2]


Step: TypeAlias = Frame | int | str
"""A field, an index of a list, a key of a map."""


class Walk:
    """The state of one decode on the careful road."""

    __slots__ = ("_literals", "_own_form", "error", "stack", "strict")

    def __init__(self, strict: Strict | None, literals: Callable[[], Any] | None) -> None:
        self.stack: list[Step] = []
        self.error: str | None = None
        self.strict = strict
        self._literals = literals
        self._own_form: str | None = None

    def unknown(self, name: str) -> None:
        """Report a field that the type does not have."""
        if self.strict is not None and len(self.strict.unknown) < _MAXIMUM_STRICT_ERRORS:
            path = self._path() + "." + name if self.stack else name
            if path not in self.strict.unknown:
                self.strict.unknown.append(path)

    def _path(self) -> str:
        """Where we are, as strict errors tell it."""
        parts = (f"[{step}]" if type(step) is int else f".{step.name if type(step) is Frame else step}" for step in self.stack)
        return "".join(parts).removeprefix(".")

    def mismatch(self, value: Any, go: str) -> None:
        """Remember that a value is not of the Go type `go`, unless something else was wrong before."""
        if self.error is None:
            self.error = self.type_error(_kind(value), go)

    def not_a_number(self, value: Any, go: str) -> None:
        """The same for a value that should be a number; the number that does not fit is told."""
        if self.error is None:
            self.error = self.number_error(value, go)

    def number_error(self, value: Any, go: str) -> str:
        """The message of a value that is no number of the Go type `go`."""
        is_number = type(value) is int or isinstance(value, float)
        return self.type_error(f"number {self.literal(value)}" if is_number else _kind(value), go)

    def fault(self, message: str) -> None:
        """Remember an error that does not tell where it happened."""
        if self.error is None:
            self.error = message

    def type_error(self, what: str, go: str) -> str:
        """Go's UnmarshalTypeError with the field that it happened in."""
        frames = [step for step in self.stack if type(step) is Frame]
        if not frames:
            return f"json: cannot unmarshal {what} into Go value of type {go}"
        path = ".".join(name for frame in frames for name in frame.go_names)
        owner = self._own_form or frames[-1].owner
        return f"json: cannot unmarshal {what} into Go struct field {owner}.{path} of type {go}"

    def literal(self, number: float) -> str:
        """The text of a number as the client wrote it."""
        known = getattr(number, "literal", None)
        if known is None and type(number) is float and self._literals is not None:
            known = _at(self._literals(), self.stack)
        return known if isinstance(known, str) else repr(number)

    def own_form(self, read: Decoder, value: Any) -> Any:
        """Read something that decodes itself: strictness ends there, and what is wrong ends the whole decode at once."""
        strict, error, own_form = self.strict, self.error, self._own_form
        self.strict, self.error = None, None
        self._own_form = own_form or next(step.owner for step in reversed(self.stack) if type(step) is Frame)
        tree = read(value, self)
        if self.error is not None:
            raise DecodeError(self.error)
        self.strict, self.error, self._own_form = strict, error, own_form
        return tree


Decoder: TypeAlias = Callable[[Any, Walk | None], Any]
"""Never given null."""


def _kind(value: Any) -> str:
    """What Go calls a JSON value."""
    kinds = {str: "string", bool: "bool", int: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "number")


def _at(tree: Any, stack: Sequence[Step]) -> Any:
    """What stands in a tree where the walk is; None if the trees differ."""
    for step in stack:
        key = step.name if isinstance(step, Frame) else step
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree


def _member_paths(type_: Type, value: Any, path: str) -> Iterable[str]:
    """The paths of all members that the typed decoder meets."""
    shape = type_.shape
    if type(value) is list and shape is Shape.LIST and type_.items is not None:
        for index, item in enumerate(value):
            yield from _member_paths(type_.items, item, f"{path}[{index}]")
    elif type(value) is dict and shape in (Shape.STRUCT, Shape.MAP):
        for name, item in value.items():
            inner = type_.items if shape is Shape.MAP else type_.fields[name].type if name in type_.fields else None
            if inner is not None:
                below = f"{path}.{name}" if path else name
                yield below
                yield from _member_paths(inner, item, below)


def decoder(type_: Type) -> Decoder:
    """The compiled decoder of a type."""
    known: Decoder | None = type_.compiled.get("decode")
    if known is None:
        known = type_.compiled["decode"] = _COMPILERS[type_.shape](type_)
    return known


class _Step:
    """What to do with one field of a struct."""

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
    plans: dict[tuple[str, ...], tuple[tuple[Any, ...], ...]] = {}
    go = type_.go

    def step(name: str) -> _Step | None:
        """Steps are made on first use, so that types that are not used are not compiled."""
        known = steps.get(name)
        if known is None and name in ranks:
            known = steps[name] = _Step(type_, type_.fields[name], ranks[name], always.get(name))
        return known

    def plan(layout: tuple[str, ...]) -> tuple[tuple[Any, ...], ...]:
        """The fields of a layout and those that are always printed, in the order of the type."""
        if not ranks.keys() >= set(layout):
            raise _Irregularity
        if len(plans) >= _MAXIMUM_PLANS:
            plans.clear()
        taken = (step(name) for name in sorted({*layout, *always}, key=ranks.__getitem__))
        made = tuple((s.name, s.as_it_is, s.read, s.drop_zero, s.make) for s in taken if s is not None)
        plans[layout] = made
        return made

    def decode_struct(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is not dict:
            return _mismatch(value, go, walk)
        if walk is not None:
            return decode_carefully(value, walk)
        layout = tuple(value)
        tree = {}
        for name, as_it_is, read, drop_zero, make in plans.get(layout) or plan(layout):
            item = value.get(name)
            if item.__class__ is not as_it_is:
                if item is None:
                    if make is not None:
                        tree[name] = make()
                    continue
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
                item = known.read(item, walk)
                walk.stack.pop()
                if item or not known.drop_zero:
                    tree[name] = item
        return {name: tree[name] for name in sorted(tree, key=ranks.__getitem__)}

    return decode_struct


def _list(type_: Type) -> Decoder:
    items = type_.items
    assert items is not None
    as_it_is = _AS_IT_IS.get(items.shape)
    go = type_.go

    def decode_list(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is not list:
            return _mismatch(value, go, walk)
        read = decoder(items)
        tree = []
        if walk is not None:
            walk.stack.append(0)
        for index, item in enumerate(value):
            if item.__class__ is not as_it_is:
                if walk is not None:
                    walk.stack[-1] = index
                item = zero(items) if item is None else read(item, walk)
            tree.append(item)
        if walk is not None:
            walk.stack.pop()
        return tree

    return decode_list


def _map(type_: Type) -> Decoder:
    items = type_.items
    assert items is not None
    as_it_is = _AS_IT_IS.get(items.shape)
    go = type_.go

    def decode_map(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is not dict:
            return _mismatch(value, go, walk)
        read = decoder(items)
        tree = {}
        if walk is not None:
            walk.stack.append("")
        for key, item in value.items():
            if item.__class__ is not as_it_is:
                if walk is not None:
                    walk.stack[-1] = key
                item = zero(items) if item is None else read(item, walk)
            tree[key] = item
        if walk is not None:
            walk.stack.pop()
        return dict(sorted(tree.items())) if len(tree) > 1 else tree

    return decode_map


def _union(type_: Type) -> Decoder:
    """A struct or its alternative. Anything else is an error beside a boolean, and null beside a list."""
    struct, alternative = type_.items, type_.alternative
    assert struct is not None
    assert alternative is not None
    alternative_class = bool if alternative.shape is Shape.BOOLEAN else list

    def decode_union(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is dict:
            return _own_form(decoder(struct), value, walk)
        if value.__class__ is alternative_class:
            return _own_form(decoder(alternative), value, walk) or (False if alternative_class is bool else None)
        if alternative_class is bool:
            raise _broken("boolean or JSON schema expected", walk)
        return None

    return decode_union


def _own_form(read: Decoder, value: Any, walk: Walk | None) -> Any:
    return read(value, None) if walk is None else walk.own_form(read, value)


def _mismatch(value: Any, go: str, walk: Walk | None) -> None:
    """A value that is not of the Go type `go`."""
    if walk is None:
        raise _Irregularity
    walk.mismatch(value, go)


def _broken(message: str, walk: Walk | None) -> Exception:
    """What ends a decode at once."""
    return _Irregularity() if walk is None else DecodeError(message)


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


def _number(type_: Type) -> Decoder:
    go = type_.go

    def decode_number(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is int or value.__class__ is float:
            return value
        return _not_a_number(value, go, walk)

    return decode_number


def _not_a_number(value: Any, go: str, walk: Walk | None) -> None:
    if walk is None:
        raise _Irregularity
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
                raise _Irregularity from None
            return walk.fault(str(error))

    return decode_bytes


def _bytes_of_numbers(value: list[Any], walk: Walk | None) -> str | None:
    """Go also takes bytes as a list of numbers."""
    for item in value:
        if item is not None and not (type(item) is int and 0 <= item < 256):
            _not_a_number(item, "uint8", walk)
            return None
    return base64.encoded(bytes(item or 0 for item in value))


def _text(read_text: Callable[[str], str | None]) -> Callable[[Type], Decoder]:
    """Times: strings in a form of their own."""

    def compile_text(_: Type) -> Decoder:
        def decode_text(value: Any, walk: Walk | None) -> Any:
            if value.__class__ is not str:
                raise _broken(walk.type_error(_kind(value), "string") if walk is not None else "", walk)
            try:
                return read_text(value)
            except ValueError as error:
                raise _broken(str(error), walk) from None

        return decode_text

    return compile_text


def _quantity(_: Type) -> Decoder:
    def decode_quantity(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is str:
            text = value.strip()
        elif value.__class__ is int:
            text = repr(value)
        elif walk is None:
            raise _Irregularity
        else:
            text = walk.literal(value) if isinstance(value, float) else ""
        try:
            return quantity.canonical(text)
        except quantity.QuantityError as error:
            raise _broken(str(error), walk) from None

    return decode_quantity


def _int_or_string(_: Type) -> Decoder:
    def decode_int_or_string(value: Any, walk: Walk | None) -> Any:
        if value.__class__ is str or (value.__class__ is int and -(2**31) <= value < 2**31):
            return value
        raise _broken(walk.number_error(value, "int32") if walk is not None else "", walk)

    return decode_int_or_string


def _any(_: Type) -> Decoder:
    return lambda value, _: value


#: Shapes whose values are taken as they are if they are of this class.
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
