"""Shard selectors: lists and watches of the objects whose uid or namespace has a hash in some ranges (gate ShardedListAndWatch).

A selector is a CEL expression: calls of `shardRange(field, '0x…', '0x…')`, joined by `||`. Ranges include their start and exclude
their end; the hash is FNV-1a with 64 bits.

Invariant: all ranges of a selector are of the same field.

Specified by: k8s.io/apiserver/pkg/sharding/parser.go, k8s.io/apimachinery/pkg/sharding (KEP 5866).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel import syntax
from fakekube.apimachinery.cel.errors import CompileError
from fakekube.apimachinery.cel.parser import MACROS, parse
from fakekube.apimachinery.cel.syntax import Node
from fakekube.apimachinery.cel.values import UInt
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import StoredObject

#: Field path → member of the metadata.
_FIELDS: Final[Mapping[str, str]] = {"object.metadata.uid": "uid", "object.metadata.namespace": "namespace"}
_FUNCTION: Final = "shardRange"
_OR: Final = "_||_"
_DIGITS: Final = 16
_ALL_HASHES: Final = "0x10000000000000000"
_NO_MACROS: Final = frozenset({"has", *(name for name, _ in MACROS)})

#: Kind of a node → its number in messages (ast.ExprKind).
_KINDS: Final[Mapping[type[Node], int]] = {
    syntax.Call: 1,
    syntax.Identifier: 3,
    syntax.ListLiteral: 4,
    syntax.Literal: 5,
    syntax.MapLiteral: 6,
    syntax.Select: 7,
    syntax.MessageLiteral: 8,
}
#: Type of a literal → its name in Go.
_GO_TYPES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int64",
    UInt: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
}


class ShardSelectorError(ValueError):
    """A text is not a shard selector; `str` of the error is the message of the real server."""


@dataclass(frozen=True, slots=True)
class ShardRange:
    """The hashes from `start` up to, and without, `end`, of a field: texts as the selector has them."""

    field: str
    start: str
    end: str

    def __str__(self) -> str:
        return f"{_FUNCTION}({self.field}, '{self.start}', '{self.end}')"


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """Ranges of hashes of one field, of which one must have that of an object."""

    ranges: tuple[ShardRange, ...]

    def matches(self, obj: StoredObject) -> bool:
        """Reports whether the hash of the object's field is in one of the ranges."""
        value = hash_field(obj["metadata"].get(_FIELDS[self.ranges[0].field], ""))
        return any(int(one.start, 16) <= value < int(one.end, 16) for one in self.ranges)

    def __str__(self) -> str:
        return " || ".join(map(str, self.ranges))


def hash_field(value: str) -> int:
    """Returns the FNV-1a hash of a value, with 64 bits."""
    found = 0xCBF29CE484222325
    for byte in value.encode():
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return found


def parse_shard_selector(text: str) -> ShardSelector:
    """Parses a selector. Raises ShardSelectorError."""
    source = text.strip()
    if not source:
        raise ShardSelectorError("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    try:
        node = parse(source, unknown=_NO_MACROS)
    except CompileError as error:
        raise ShardSelectorError(f"CEL parse error: {error.issues[0].message}") from None
    ranges = tuple(_ranges(node))
    first = ranges[0].field
    for one in ranges:
        if one.field != first:
            raise ShardSelectorError(f"all shard ranges must use the same field, got {go_quote(first)} and {go_quote(one.field)}")
    return ShardSelector(ranges)


def _ranges(node: Node) -> Iterator[ShardRange]:
    """Yields the ranges of an expression (walkExpr)."""
    if not isinstance(node, syntax.Call):
        kind = _KINDS[type(node)]
        raise ShardSelectorError(f"unexpected expression kind {kind}; expected shardRange() call or || operator")
    if node.function == _OR:
        for argument in node.arguments:
            yield from _ranges(argument)
    elif node.function == _FUNCTION:
        yield _shard_range(node)
    else:
        raise ShardSelectorError(f"unsupported function {go_quote(node.function)}; only shardRange() and || are allowed")


def _shard_range(call: syntax.Call) -> ShardRange:
    """Returns the range of a call (parseShardRangeCall)."""
    if len(call.arguments) != 3:
        raise ShardSelectorError(f"shardRange() requires exactly 3 arguments, got {len(call.arguments)}")
    field = _field_path(call.arguments[0])
    if field not in _FIELDS:
        raise ShardSelectorError(f"unsupported field path {go_quote(field)}; supported: {', '.join(_FIELDS)}")
    start, end = _hex_literal(call.arguments[1], "hexStart"), _hex_literal(call.arguments[2], "hexEnd")
    if int(start, 16) >= int(end, 16):
        raise ShardSelectorError(f"shard range start {start} must be less than end {end}")
    return ShardRange(field, start, end)


def _field_path(node: Node) -> str:
    """Returns a path of fields (extractFieldPath)."""
    names: list[str] = []
    while isinstance(node, syntax.Select):
        if node.optional:
            raise ShardSelectorError("CEL parse error: unsupported syntax '.?'")
        names.insert(0, node.field)
        node = node.operand
    if not isinstance(node, syntax.Identifier):
        kind = _KINDS[type(node)]
        problem = f"expected field path (e.g. object.metadata.uid), got expression kind {kind}"
        raise ShardSelectorError(f"shardRange() first argument: {problem}")
    return ".".join([node.name, *names])


def _hex_literal(node: Node, name: str) -> str:
    """Returns the text of a bound: "0x" and 16 digits, or 2^64 (extractHexLiteral)."""
    if not isinstance(node, syntax.Literal):
        kind = _KINDS[type(node)]
        raise ShardSelectorError(f"{name} must be a string literal (e.g. '0xff'), got expression kind {kind}")
    text: Any = node.value
    if not isinstance(text, str):
        raise ShardSelectorError(f"{name} must be a string literal, got {_GO_TYPES[type(text)]}")
    if not text.startswith("0x"):
        raise ShardSelectorError(f"{name} must have '0x' prefix, got {go_quote(text)}")
    digits = text.removeprefix("0x")
    length = len(digits.encode())
    if not digits:
        raise ShardSelectorError(f"{name}: hex value is required after '0x'")
    if length > _DIGITS + 1:
        raise ShardSelectorError(f"{name}: hex value too long ({length} chars, max {_DIGITS + 1}): {go_quote(digits)}")
    wrong = next((one for one in digits if one not in "0123456789abcdef"), None)
    if wrong is not None:
        raise ShardSelectorError(f"{name}: invalid hex character {go_quote(wrong)} in {go_quote(text)}")
    if length == _DIGITS + 1 and text != _ALL_HASHES:
        raise ShardSelectorError(f"{name}: {length}-digit hex value must be '{_ALL_HASHES}' (2^64), got {go_quote(text)}")
    if length < _DIGITS:
        meant = f"0x{digits:0>{_DIGITS}}"
        problem = f"must be a 0x-prefixed {_DIGITS}-digit hex value, got {go_quote(text)} (did you mean {go_quote(meant)}?)"
        raise ShardSelectorError(f"{name} {problem}")
    return text
