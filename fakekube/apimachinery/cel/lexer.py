"""Splits an expression into tokens.

The tokens of literals have their values. Like the real lexer, reports and skips characters that do not start a token.

Specified by: cel-spec, doc/langdef.md (Lexis); cel-go/parser/gen/CEL.g4, cel-go/parser/unescape.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel.errors import Issue
from fakekube.apimachinery.cel.values import UInt

#: Keywords, which are not names of variables.
RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "null",
        "namespace",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    }
)

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


_WORDS = {"true": True, "false": False, "null": None}


def _token(kind: str, text: str, position: int, issues: list[Issue]) -> Token:
    if kind == "operator" or text == "in":
        return Token(text, text, position)
    if kind == "escaped":
        return Token("escaped", text, position)
    if kind == "name":
        return Token("literal", text, position, _WORDS[text]) if text in _WORDS else Token("name", text, position)
    try:
        return Token("literal", text, position, _READERS[kind](text))
    except ValueError as error:
        issues.append(Issue(position, str(error)))
        return Token("literal", text, position, 0)


#: The maximum number of digits of a 64-bit number; leading zeros do not count.
_MAX_DIGITS = 20


def _integer(text: str) -> int:
    if text.startswith("0x"):
        return int(text, 16)
    digits = text.lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        raise ValueError("invalid int literal")
    return int(digits)


def _unsigned(text: str) -> UInt:
    try:
        number = _integer(text[:-1])
    except ValueError:
        number = 1 << 64
    if number >= 1 << 64:
        raise ValueError("invalid uint literal")
    return UInt(number)


def _double(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("invalid double literal")
    return number


def _raw(text: str) -> str | bytes:
    quoted = text.lstrip("bBrR")
    body = _unquoted(quoted)
    return body.encode() if len(text) - len(quoted) == 2 else body


def _string(text: str) -> str | bytes:
    if text[0] in "bB":
        return b"".join(_pieces(_unquoted(text[1:])))
    body = _unquoted(text)
    return _ESCAPE.sub(_character, body) if "\\" in body else body


def _unquoted(text: str) -> str:
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[width:-width].replace("\r\n", "\n").replace("\r", "\n")


def _character(match: re.Match[str]) -> str:
    plain = match["plain"]
    if plain:
        return _PLAIN.get(plain, plain)
    if match["octal"]:
        return chr(int(match["octal"], 8))
    digits = match["hex"] or match["four"] or match["eight"]
    if not digits or int(digits, 16) > 0x10FFFF or 0xD800 <= int(digits, 16) < 0xE000:
        raise ValueError("unable to unescape string")
    return chr(int(digits, 16))


def _pieces(body: str) -> list[bytes]:
    """Returns the bytes of a bytes literal: `\\x` and octal escapes are bytes, everything else is UTF-8."""
    pieces, end = [], 0
    for match in _ESCAPE.finditer(body):
        pieces.append(body[end : match.start()].encode())
        end = match.end()
        code = int(match["hex"], 16) if match["hex"] else int(match["octal"], 8) if match["octal"] else None
        if code is None and not match["plain"]:
            raise ValueError("unable to unescape string")
        pieces.append(bytes([code]) if code is not None else _character(match).encode())
    return [*pieces, body[end:].encode()]


_READERS = {"float": _double, "uint": _unsigned, "int": _integer, "raw": _raw, "string": _string}
