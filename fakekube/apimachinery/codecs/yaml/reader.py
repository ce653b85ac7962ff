"""Decodes YAML that is not JSON, in two steps like sigs.k8s.io/yaml.

First, the events of libyaml become a tree of nodes (of the first document only). Then the nodes become JSON data:
scalars are resolved by the rules of YAML 1.1, keys become strings, merge keys and aliases are expanded within the
limits of go-yaml.

Specified by: sigs.k8s.io/yaml (yaml.go), go.yaml.in/yaml/v2 (decode.go).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from yaml import _yaml
from yaml._yaml import CParser
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from fakekube.apimachinery.codecs import DecodeError
from fakekube.base.caches import cache_by_text
from fakekube.base.golang.strconv import go_float, go_quote, json_number

if TYPE_CHECKING:
    from yaml.events import Event


# --- Plain scalars, by the rules of YAML 1.1 in go-yaml v2 -----------------------------------------------------------
# A table has the words for booleans and null; a text that begins like a number is parsed as an integer (of any base,
# with underscores), then as a float. A text that looks like a time stays a string with the tag of a time: the emitter
# quotes it.
#
# Specified by: go.yaml.in/yaml/v2 (resolve.go).


PREFIX: Final = "tag:yaml.org,2002:"
NULL: Final = PREFIX + "null"
BOOLEAN: Final = PREFIX + "bool"
STRING: Final = PREFIX + "str"
INTEGER: Final = PREFIX + "int"
FLOAT: Final = PREFIX + "float"
TIMESTAMP: Final = PREFIX + "timestamp"
BINARY: Final = PREFIX + "binary"
MERGE: Final = PREFIX + "merge"

_RESOLVABLE: Final = frozenset({"", STRING, BOOLEAN, INTEGER, FLOAT, NULL, TIMESTAMP})

_WORDS: Final[dict[str, tuple[str, Any]]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), (BOOLEAN, True)),
    **dict.fromkeys(("true", "True", "TRUE"), (BOOLEAN, True)),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), (BOOLEAN, False)),
    **dict.fromkeys(("false", "False", "FALSE"), (BOOLEAN, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (FLOAT, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (FLOAT, -math.inf)),
}

_INTEGER: Final = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))").fullmatch
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?)?"
).fullmatch


def resolve(tag: str, text: str) -> tuple[str, Any]:
    """Resolves a scalar to its tag and value.

    Args:
        tag: the explicit tag in its long form; "" if there is none and the scalar is plain.
        text: the scalar's content.

    Returns:
        The tag, and the value: str, int, float, bool or None. Scalars with unknown tags are strings.

    Raises:
        DecodeError: the text is not a value of the explicit tag.
    """
    if tag not in _RESOLVABLE:
        return tag, text
    if tag == STRING:
        return STRING, text
    found, value = _plain(text)
    if tag in ("", found):
        return found, value
    if tag == FLOAT and found == INTEGER and -(2**63) <= value < 2**63:
        return FLOAT, float(value)
    raise DecodeError(f"yaml: cannot decode {_shorten(found)} `{text}` as a {_shorten(tag)}")


def _shorten(tag: str) -> str:
    return f"!!{tag.removeprefix(PREFIX)}" if tag.startswith(PREFIX) else tag


@cache_by_text(4096)
def _plain(text: str) -> tuple[str, Any]:
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[0]
    if first not in "+-.0123456789":
        return STRING, text
    if first == ".":
        return _float(text, text)
    if _TIMESTAMP(text):
        return TIMESTAMP, text
    plain = text.replace("_", "")
    integer = _integer(plain)
    return (INTEGER, integer) if integer is not None else _float(plain, text)


def _float(plain: str, text: str) -> tuple[str, Any]:
    if _FLOAT(plain) and math.isfinite(float(plain)):
        return FLOAT, float(plain)
    return STRING, text


#: The maximum length of an integer of 64 bits in any base.
_LONGEST: Final = 70


def _integer(plain: str) -> int | None:
    """Parses an int64, or a uint64 without a sign; None if the text is neither."""
    match = _INTEGER(plain)
    if match is None:
        return None
    sign, *digits = match.groups()
    bases = zip((16, 2, 8, 10), digits, strict=True)
    base, digit = next((base, text.lstrip("0") or "0") for base, text in bases if text is not None)
    if len(digit) > _LONGEST:
        return None
    number = int(digit, base)
    if sign == "-":
        return -number if number <= 2**63 else None
    return number if number < (2**63 if sign else 2**64) else None


def float_text(number: float, *, single: bool = False) -> str:
    """Prints a float like strconv.FormatFloat(number, 'g', -1, 64) (`single`: with 32 bits)."""
    if not math.isfinite(number):
        return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"
    digits = repr(number)
    if single:
        try:
            digits = _single_digits(number)
        except OverflowError:
            return ".inf" if number > 0 else "-.inf"
    if number == 0:
        return "-0" if digits.startswith("-") else "0"
    decimal = Decimal(digits).normalize()
    power = decimal.adjusted()
    if -4 <= power < 6:
        return format(decimal, "f")
    sign, mantissa, _ = decimal.as_tuple()
    first, *rest = map(str, mantissa)
    point = f".{''.join(rest)}" if rest else ""
    return f"{'-' if sign else ''}{first}{point}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _single_digits(number: float) -> str:
    """Returns the shortest digits that identify this float32. Raises OverflowError."""
    packed = struct.pack("f", number)
    candidates = (f"{struct.unpack('f', packed)[0]:.{precision}g}" for precision in range(1, 10))
    return next(text for text in candidates if struct.pack("f", float(text)) == packed)


_MAXIMUM_DEPTH: Final = 10_000
_ESCAPED_SLASH: Final = rb"\/"
_ESCAPE: Final = re.compile(r"\\(.)", re.S)
_TOO_DEEP: Final = f"yaml: exceeded max depth of {_MAXIMUM_DEPTH}"


def read(body: bytes) -> tuple[Any, list[str]]:
    """See `yaml.loads`."""
    try:
        node = _Composer(body).document()
    except _TooDeepForLibyamlError:
        with _deep_nesting():
            node = _Composer(body).document()
    decoder = _Decoder()
    return (None if node is None else _jsonable(decoder.value(node))), decoder.problems


class _TooDeepForLibyamlError(DecodeError):
    """The document is nested deeper than libyaml allows by default."""


_nesting = threading.Lock()


@contextmanager
def _deep_nesting() -> Iterator[None]:
    """Raises libyaml's limit of nested collections, which belongs to the process, to that of go-yaml while a document is read.

    libyaml has had a limit, of 1,000, since 0.2.6 (PyYAML 6.0.4). `_Composer` limits the depth in its place.
    """
    libyaml: Any = _yaml
    with _nesting:
        usual = libyaml._get_max_nest_level()
        libyaml._set_max_nest_level(sys.maxsize >> 32)
        try:
            yield
        finally:
            libyaml._set_max_nest_level(usual)


def as_json(value: Any) -> Any:
    """Converts JSON data to the form that YAML decoding yields: sorted keys, whole floats as integers."""
    if type(value) is dict:
        return {key: as_json(value[key]) for key in sorted(value)}
    if type(value) is list:
        return [as_json(item) for item in value]
    return json_number(value) if type(value) is float else value


# --- From events to nodes ---------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Node:
    """A scalar (text), a sequence (children), a mapping (keys and values in turn), or an alias (target)."""

    line: int
    tag: str = ""
    text: str = ""
    implicit: bool = True
    """A plain scalar, which may resolve to a value other than a string."""
    children: list[_Node] | None = None
    mapping: bool = False
    target: _Node | None = None

    @property
    def is_merge(self) -> bool:
        scalar = self.children is None and self.target is None
        return scalar and self.text == "<<" and (self.implicit or self.tag == MERGE)


class _Composer:
    """Builds the nodes of the first document. It does not recurse."""

    def __init__(self, body: bytes) -> None:
        try:
            self._parser = CParser(body or b"\n")
        except YAMLError as error:
            raise _syntax_error(error) from None
        self._anchors: dict[str, _Node] = {}
        self._source = body.decode("utf-8-sig", "replace") if _ESCAPED_SLASH in body else ""

    def document(self) -> _Node | None:
        next(self._events())  # the stream
        start = next(self._events())
        if isinstance(start, StreamEndEvent):
            return None
        assert isinstance(start, DocumentStartEvent)
        if start.version not in (None, (1, 1)):
            raise DecodeError(f"yaml: {_at_line(start)}found incompatible YAML document")
        root = _Node(0, children=[])
        pile = [root]
        for event in self._events():
            if isinstance(event, DocumentEndEvent):
                break
            if isinstance(event, SequenceEndEvent | MappingEndEvent):
                pile.pop()
                continue
            node = self._node(event)
            children = pile[-1].children
            assert children is not None
            children.append(node)
            if node.children is not None:
                pile.append(node)
                if len(pile) > _MAXIMUM_DEPTH:
                    raise DecodeError(_TOO_DEEP)
        assert root.children
        return root.children[0]

    def _events(self) -> Iterator[Event]:
        while True:
            try:
                event = self._parser.get_event()
            except YAMLError as error:
                raise _syntax_error(error) from None
            assert event is not None
            yield event

    def _node(self, event: Event) -> _Node:
        line = _line(event)
        if isinstance(event, AliasEvent):
            target = self._anchors.get(event.anchor or "")
            if target is None:
                raise DecodeError(f"yaml: unknown anchor '{event.anchor}' referenced")
            return _Node(line, text=event.anchor or "", target=target)
        if isinstance(event, ScalarEvent):
            if self._source and event.style == '"':
                self._refuse_escaped_slash(event)
            node = _Node(line, event.tag or "", event.value, event.implicit[0])
        elif isinstance(event, SequenceStartEvent):
            node = _Node(line, event.tag or "", children=[])
        else:
            assert isinstance(event, MappingStartEvent)
            node = _Node(line, event.tag or "", children=[], mapping=True)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _refuse_escaped_slash(self, event: ScalarEvent) -> None:
        """Rejects the escape `\\/` of YAML 1.2, which libyaml supports and go-yaml does not."""
        assert event.start_mark is not None and event.end_mark is not None
        quoted = self._source[event.start_mark.index : event.end_mark.index]
        for escape in _ESCAPE.finditer(quoted):
            if escape[1] == "/":
                line = event.start_mark.line + quoted.count("\n", 0, escape.start())
                raise DecodeError(f"yaml: {f'line {line + 1}: ' if line else ''}found unknown escape character")


def _line(event: Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.line


def _at_line(event: Event) -> str:
    return f"line {_line(event)}: " if _line(event) else ""


def _syntax_error(error: YAMLError) -> DecodeError:
    """Returns go-yaml's error: the line, if it is known and not the first, and libyaml's problem."""
    if isinstance(error, ReaderError):
        return DecodeError(f"yaml: {error.reason}")
    assert isinstance(error, MarkedYAMLError)
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    if error.problem == "exceeded maximum nesting depth":
        return _TooDeepForLibyamlError(_TOO_DEEP)
    return DecodeError(f"yaml: {where}{error.problem or 'unknown problem parsing YAML content'}")


# --- From nodes to values ---------------------------------------------------------------------------------------------

#: The number of values before the alias check begins, and the share that aliases may produce, by the total number.
_FEW: Final = 400_000
_MANY: Final = 4_000_000


def _allowed_alias_ratio(count: int) -> float:
    if count <= _FEW:
        return 0.99
    if count >= _MANY:
        return 0.10
    return 0.99 - 0.89 * ((count - _FEW) / (_MANY - _FEW))


@dataclass(slots=True)
class _Decoder:
    """Converts nodes to values like go-yaml decodes into interface{}, with keys of any type."""

    problems: list[str] = field(default_factory=list)
    _count: int = 0
    _aliased: int = 0
    _within: list[_Node] = field(default_factory=list)
    """The aliases that are being expanded."""

    def value(self, node: _Node) -> Any:
        self._count += 1
        if self._within:
            self._aliased += 1
        many = self._aliased > 100 and self._count > 1000
        if many and self._aliased / self._count > _allowed_alias_ratio(self._count):
            raise DecodeError("yaml: document contains excessive aliasing")
        if node.target is not None:
            return self._alias(node, None)
        if node.children is None:
            return _scalar(node)
        if node.mapping:
            return self._mapping(node, {})
        return [self.value(child) for child in node.children]

    def _alias(self, node: _Node, into: dict[Any, Any] | None) -> Any:
        assert node.target is not None
        if node in self._within:
            raise DecodeError(f"yaml: anchor '{node.text}' value contains itself")
        self._within.append(node)
        value = self.value(node.target) if into is None else self._mapping(node.target, into)
        self._within.pop()
        return value

    def _mapping(self, node: _Node, result: dict[Any, Any]) -> dict[Any, Any]:
        children = iter(node.children or ())
        for key_node, value_node in zip(children, children, strict=True):
            if key_node.is_merge:
                self._merge(value_node, result)
                continue
            key = self.value(key_node)
            if isinstance(key, dict | list):
                raise DecodeError(f"yaml: invalid map key: {_go_syntax(key)}")
            typed_key = (type(key), key)
            value = self.value(value_node)
            if typed_key in result:
                self.problems.append(f"line {value_node.line + 1}: key {_go_syntax(key)} already set in map")
            result[typed_key] = value
        return result

    def _merge(self, node: _Node, result: dict[Any, Any]) -> None:
        sources = [node]
        if node.target is None and node.children is not None and not node.mapping:
            sources = node.children[::-1]  # earlier ones take precedence
        for source in sources:
            if not (source.target or source).mapping:
                raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
            if source.target is not None:
                self._alias(source, result)
            else:
                self._mapping(source, result)


def _scalar(node: _Node) -> Any:
    if not node.tag and not node.implicit:
        return node.text
    tag, value = resolve(node.tag, node.text)
    return _binary(value) if tag == BINARY else value


_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?").fullmatch


def _binary(text: str) -> str:
    text = text.replace("\n", "").replace("\r", "")
    try:
        if not _BASE64(text):
            raise ValueError(text)
        return base64.b64decode(text, validate=True).decode("utf-8", "fakekube.go")
    except (ValueError, binascii.Error):
        raise DecodeError("yaml: !!binary value contains invalid base64 data") from None


# --- From values to JSON ----------------------------------------------------------------------------------------------


def _jsonable(value: Any) -> Any:
    """Converts a value to JSON data: keys become strings and are sorted; whole floats become integers."""
    if type(value) is dict:
        members = {_key(key, item): item for (_, key), item in value.items()}
        return {key: _jsonable(members[key]) for key in sorted(members)}
    if type(value) is list:
        return [_jsonable(item) for item in value]
    if type(value) is float:
        if not math.isfinite(value):
            word = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise DecodeError(f"json: unsupported value: {word}")
        return json_number(value)
    return value


def _key(key: Any, value: Any) -> str:
    if type(key) is str:
        return key
    if type(key) is bool:
        return "true" if key else "false"
    if type(key) is int and key < 2**63:
        return str(key)
    if type(key) is float:
        return float_text(key, single=True)
    kind = "%!s(<nil>)" if key is None else "uint64"
    raise DecodeError(f"unsupported map key of type: {kind}, key: {_go_syntax(key)}, value: {_go_syntax(value)}")


def _go_syntax(value: Any) -> str:
    """Formats a value with Go's %#v."""
    if value is None:
        return "<nil>"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is str:
        return go_quote(value)
    if type(value) is int:
        return f"0x{value:x}" if value >= 2**63 else str(value)
    if type(value) is dict:
        members = ", ".join(f"{_go_member(key)}:{_go_member(item)}" for (_, key), item in value.items())
        return f"map[interface {{}}]interface {{}}{{{members}}}"
    if type(value) is list:
        return f"[]interface {{}}{{{', '.join(map(_go_member, value))}}}"
    return go_float(value) if type(value) is float else repr(value)


def _go_member(value: Any) -> str:
    return "interface {}(nil)" if value is None else _go_syntax(value)
