"""The tokens and the syntax tree of an expression, and how names of properties are escaped in it.

An expression is a tree of nodes, each with the position (in characters) at which the real compiler reports its errors. Operators
are calls of functions with the names in error messages (`_+_`, `_[_]`, `!_`). Macros with variables are nodes of their own
(`Loop`): they are evaluated directly, and checked and estimated as their expansion (`fakekube.apimachinery.cel.parser`).

Invariant: nodes are immutable and compared by identity, so that the checker can use them as keys.

Specified by: cel-spec, doc/langdef.md; names of operators: cel-go/common/operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.cel.errors import Issue
from fakekube.apimachinery.cel.values import UInt
from fakekube.base.caches import cache_by_text

LOGICAL_OPERATORS: Final = frozenset({"_&&_", "_||_"})

# --- Tokens ----------------------------------------------------------------------------------------------------------
# The tokens of literals have their values. Like the real lexer, `tokenize` reports and skips characters that do not start one.
# Specified by: cel-spec, doc/langdef.md (Lexis); cel-go/parser/gen/CEL.g4, cel-go/parser/unescape.go.


#: Keywords, which are not names of variables.
RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "null",
        "namespace", "package", "return", "true", "var", "void", "while",
    }
)  # fmt: skip

_ESCAPES = r"""\\(?:[abfnrtv\\?"'`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_STRING_BODIES = "|".join(
    (
        rf'"""(?:[^\\]|{_ESCAPES})*?"""',
        rf"'''(?:[^\\]|{_ESCAPES})*?'''",
        rf'"(?:[^"\\\n\r]|{_ESCAPES})*"',
        rf"'(?:[^'\\\n\r]|{_ESCAPES})*'",
    )
)
#: A string up to the first invalid character, and that character.
_BROKEN_ESCAPE = r"\\(?:u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[xX][0-9a-fA-F]?|[0-3][0-7]?)?."
_BROKEN_STRING = re.compile(
    rf'"(?:[^"\\\n\r]|{_ESCAPES})*(?:{_BROKEN_ESCAPE}|\\|[\n\r])?'
    + "|"
    + rf"'(?:[^'\\\n\r]|{_ESCAPES})*(?:{_BROKEN_ESCAPE}|\\|[\n\r])?"
    + r"|`[A-Za-z0-9_.\-/ ]*.?",
    re.DOTALL,
)
_RAW_BODIES = r'"""[\s\S]*?"""' + r"|'''[\s\S]*?'''" + r'|"[^"\n\r]*"' + r"|'[^'\n\r]*'"
_TOKEN = re.compile(
    rf"""
    (?P<blank>[ \t\r\n\f]+|//[^\n]*)
  | (?P<float>(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<raw>[bB]?[rR][bB]?(?:{_RAW_BODIES}))
  | (?P<string>[bB]?(?:{_STRING_BODIES}))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<operator>\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{{}}])
""",
    re.VERBOSE | re.DOTALL,
)

_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\?\"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<four>[0-9a-fA-F]{4})"
    r"|U(?P<eight>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<wrong>.))",
    re.DOTALL,
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(slots=True, frozen=True)
class Token:
    """A token. `kind` is "literal", "name", "escaped" (in backticks), "end", or the operator or keyword (`in`) itself."""

    kind: str
    text: str
    position: int
    value: Any = None


def tokenize(source: str, issues: list[Issue]) -> list[Token]:
    """Returns the tokens of an expression, the last one of kind "end". Adds lexical errors to `issues`."""
    tokens = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            broken = _BROKEN_STRING.match(source, position)
            width = 2 if source[position] in "=&|" else 1  # the second character of an operator was expected
            wrong = broken[0] if broken else source[position : position + width]
            issues.append(Issue(position, f"Syntax error: token recognition error at: '{_on_one_line(wrong)}'"))
            position += len(wrong)
            continue
        kind, text = str(match.lastgroup), match.group()
        if kind != "blank":
            tokens.append(_token(kind, text, position, issues))
        position = match.end()
    tokens.append(Token("end", "<EOF>", len(source)))
    return tokens


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


_CONSTANTS = {"true": True, "false": False, "null": None}


def _token(kind: str, text: str, position: int, issues: list[Issue]) -> Token:
    if kind == "operator" or text == "in":
        return Token(text, text, position)
    if kind == "escaped":
        return Token("escaped", text, position)
    if kind == "name":
        return Token("literal", text, position, _CONSTANTS[text]) if text in _CONSTANTS else Token("name", text, position)
    try:
        return Token("literal", text, position, _READERS[kind](text))
    except ValueError as error:
        issues.append(Issue(position, str(error)))
        return Token("literal", text, position, 0)


#: The maximum number of digits of a 64-bit number; leading zeros do not count.
_MAX_DIGITS = 20


def _read_integer(text: str) -> int:
    if text.startswith("0x"):
        return int(text, 16)
    digits = text.lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        raise ValueError("invalid int literal")
    return int(digits)


def _read_unsigned(text: str) -> UInt:
    try:
        number = _read_integer(text[:-1])
    except ValueError:
        number = 1 << 64
    if number >= 1 << 64:
        raise ValueError("invalid uint literal")
    return UInt(number)


def _read_double(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("invalid double literal")
    return number


def _read_raw_string(text: str) -> str | bytes:
    quoted = text.lstrip("bBrR")
    body = _unquote(quoted)
    return body.encode() if len(text) - len(quoted) == 2 else body


def _read_string(text: str) -> str | bytes:
    if text[0] in "bB":
        return _unescape_bytes(_unquote(text[1:]))
    body = _unquote(text)
    return _ESCAPE.sub(_unescape_character, body) if "\\" in body else body


def _unquote(text: str) -> str:
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[width:-width].replace("\r\n", "\n").replace("\r", "\n")


def _unescape_character(match: re.Match[str]) -> str:
    plain = match["plain"]
    if plain:
        return _PLAIN.get(plain, plain)
    if match["octal"]:
        return chr(int(match["octal"], 8))
    digits = match["hex"] or match["four"] or match["eight"]
    if not digits or int(digits, 16) > 0x10FFFF or 0xD800 <= int(digits, 16) < 0xE000:
        raise ValueError("unable to unescape string")
    return chr(int(digits, 16))


def _unescape_bytes(body: str) -> bytes:
    """Returns the bytes of a bytes literal: `\\x` and octal escapes are bytes, everything else is UTF-8."""
    pieces, end = [], 0
    for match in _ESCAPE.finditer(body):
        pieces.append(body[end : match.start()].encode())
        end = match.end()
        code = int(match["hex"], 16) if match["hex"] else int(match["octal"], 8) if match["octal"] else None
        if code is None and not match["plain"]:
            raise ValueError("unable to unescape string")
        pieces.append(bytes([code]) if code is not None else _unescape_character(match).encode())
    return b"".join([*pieces, body[end:].encode()])


#: Kind of a literal → how its text is read. Readers raise ValueError.
_READERS = {"float": _read_double, "uint": _read_unsigned, "int": _read_integer, "raw": _read_raw_string, "string": _read_string}


# --- Nodes -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True, eq=False)
class Node:
    """Any expression."""

    position: int
    """The position of its errors, in characters from the start."""


@dataclass(slots=True, frozen=True, eq=False)
class Literal(Node):
    """A constant: `value` is a value of `fakekube.apimachinery.cel.values`."""

    value: Any


@dataclass(slots=True, frozen=True, eq=False)
class Identifier(Node):
    """A variable, or a type; the name begins with a dot if it is not one of a macro's variables (`.object`)."""

    name: str


@dataclass(slots=True, frozen=True, eq=False)
class Select(Node):
    """`operand.field`; with `test` it is `has(operand.field)`, with `optional` `operand.?field`."""

    operand: Node
    field: str
    test: bool = False
    optional: bool = False


@dataclass(slots=True, frozen=True, eq=False)
class Call(Node):
    """A call of a function, a method of `target`, or an operator."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None

    @property
    def operands(self) -> tuple[Node, ...]:
        """The target, if there is one, and the arguments."""
        return self.arguments if self.target is None else (self.target, *self.arguments)


@dataclass(slots=True, frozen=True, eq=False)
class ListLiteral(Node):
    """`[a, ?b]`; `optional` are the indices of elements with a question mark."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True, eq=False)
class MapLiteral(Node):
    """`{a: b, ?c: d}`."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True, eq=False)
class MessageLiteral(Node):
    """`Name{field: a, ?other: b}`."""

    name: str
    fields: tuple[tuple[int, str, Node], ...]
    """(position of the colon, field, value)."""
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True, eq=False)
class Loop(Node):
    """A macro with variables of its own: `all`, `exists`, `exists_one`, `map`, `filter`, `transformList`, `optMap` …"""

    macro: str
    target: Node
    variables: tuple[Identifier, ...]
    bodies: tuple[Node, ...]
    """The arguments after the variables: [condition,] expression."""


@dataclass(slots=True, frozen=True, eq=False)
class Comprehension(Node):
    """The expansion of a macro: folds a range into an accumulator."""

    range: Node
    variables: tuple[str, ...]
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


def parts(node: Node) -> tuple[Node, ...]:
    """Returns the children of a node, in the order of the source."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.operands
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(part for entry in node.entries for part in entry)
        case MessageLiteral():
            return tuple(value for _, _, value in node.fields)
        case Loop():
            return (node.target, *node.bodies)
    return ()


def descendants(node: Node) -> Iterator[Node]:
    """Yields the node and all its descendants, outer ones first."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(parts(here)))


def called_functions(node: Node) -> frozenset[str]:
    """Returns the functions, methods, operators and macros that an expression calls."""
    found = set()
    for here in descendants(node):
        if isinstance(here, Call):
            found.add(here.function)
        elif isinstance(here, Loop):
            found.add(here.macro)
    return frozenset(found)


def references(node: Node, name: str) -> bool:
    """Reports whether a variable is used where no variable of a macro shadows it."""
    if isinstance(node, Identifier):
        return node.name in (name, f".{name}")
    if isinstance(node, Loop) and any(variable.name == name for variable in node.variables):
        return references(node.target, name)
    return any(references(part, name) for part in parts(node))


#: The first minor in which `.x` is not a variable of a macro.
_DOTS_HIDE_LOCALS_SINCE: Final = 37


def name_of_local(name: str) -> str:
    """Returns the name of the macro's variable that an identifier with this name may be."""
    if name.startswith(".") and features.current().minor < _DOTS_HIDE_LOCALS_SINCE:
        return name.removeprefix(".")
    return name


def qualified_name(node: Node) -> str:
    """Returns the qualified name of a chain of selections (`a.b.c`); "" for other nodes."""
    names = []
    while isinstance(node, Select) and not (node.test or node.optional):
        names.append(node.field)
        node = node.operand
    return ".".join((node.name, *reversed(names))) if isinstance(node, Identifier) else ""


# --- Names of properties as identifiers: `my-key` is `my__dash__key`, `namespace` is `__namespace__` -----------------
# Specified by: k8s.io/apiserver/pkg/cel/escaping.go.


_NAME_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPE_WORDS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPECIAL = re.compile(r"__|[-./]")
_ESCAPED = re.compile(r"__([^_]+)__")


@cache_by_text(4096)
def escape(name: str) -> str | None:
    """Returns the identifier of a property; None if it cannot be escaped."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _NAME_ESCAPES[match[0]], name)


@cache_by_text(4096)
def unescape(identifier: str) -> str | None:
    """Returns the property of an identifier; None if it is not one of a property."""
    wrong = False

    def replace(match: re.Match[str]) -> str:
        nonlocal wrong
        word = match[1]
        if word in _ESCAPE_WORDS:
            return _ESCAPE_WORDS[word]
        wrong = wrong or word not in RESERVED or match[0] != identifier
        return word

    name = _ESCAPED.sub(replace, identifier)
    return None if wrong else name
