"""Expands the words of shell programs: parameters, substitutions, arithmetic, fields and path names.

Specified by: POSIX.1-2017, Shell & Utilities, 2.6 (Word Expansions), 2.6.4 (Arithmetic Expansion: integers, variables, the
operators of C).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, MutableMapping
from typing import Final, NamedTuple, Protocol

from fakekube.nodes.runtime import regular_expressions
from fakekube.nodes.runtime.filesystem import Directory, FileSystem
from fakekube.nodes.runtime.regular_expressions import glob, remove_prefix, remove_suffix
from fakekube.nodes.runtime.scheduling import check_memory
from fakekube.nodes.runtime.shell.syntax import Arithmetic, Literal, Parameter, Part, Script, Substitution, Word


class ExpressionError(ValueError):
    """An expression cannot be evaluated."""


_TOKEN: Final = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<=|>>=|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:()])"
)
#: Binary operators from the lowest to the highest precedence.
_LEVELS: Final = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
                  ("*", "/", "%"))  # fmt: skip
_ASSIGNMENTS: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_WRAP: Final = 1 << 64


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("divide by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "||": lambda left, right: int(bool(left or right)),
    "&&": lambda left, right: int(bool(left and right)),
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "&": lambda left, right: left & right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    "<=": lambda left, right: int(left <= right),
    ">": lambda left, right: int(left > right),
    ">=": lambda left, right: int(left >= right),
    "<<": lambda left, right: left << (right & 63),
    ">>": lambda left, right: left >> (right & 63),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": lambda left, right: left - _divide(left, right) * right,
}


def evaluate(text: str, variables: MutableMapping[str, str]) -> int:
    """Returns the value of an expression; assignments change the variables. Raises ExpressionError."""
    tokens, place = [], 0
    while place < len(text.rstrip()):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ExpressionError("arithmetic syntax error")
        tokens.append(found[1])
        place = found.end()
    if not tokens:
        return 0
    reader = _Reader(tokens, variables)
    value = reader.assignment()
    if reader.tokens:
        raise ExpressionError("arithmetic syntax error")
    return value


def _wrap_to_64_bits(value: int) -> int:
    value %= _WRAP
    return value - _WRAP if value >= _WRAP // 2 else value


class _Reader:
    """Parses and evaluates tokens."""

    def __init__(self, tokens: list[str], variables: MutableMapping[str, str]) -> None:
        self.tokens = tokens
        self._variables = variables

    def _peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def _value(self, name: str) -> int:
        text = self._variables.get(name, "").strip() or "0"
        try:
            return int(text, 0) if not re.fullmatch(r"-?0\d+", text) else int(text, 8)
        except ValueError:
            raise ExpressionError(f"bad number: {text}") from None

    def assignment(self) -> int:
        if len(self.tokens) > 1 and self.tokens[1] in _ASSIGNMENTS and re.match(r"[A-Za-z_]", self.tokens[0]):
            name, operator = self.tokens.pop(0), self.tokens.pop(0)
            value = self.assignment()
            if operator != "=":
                value = _wrap_to_64_bits(_OPERATIONS[operator[:-1]](self._value(name), value))
            self._variables[name] = str(value)
            return value
        return self._conditional()

    def _conditional(self) -> int:
        value = self._binary(0)
        if self._peek() != "?":
            return value
        self.tokens.pop(0)
        yes = self.assignment()
        if self._peek() != ":":
            raise ExpressionError("arithmetic syntax error")
        self.tokens.pop(0)
        no = self._conditional()
        return yes if value else no

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            operator = self.tokens.pop(0)
            value = _wrap_to_64_bits(_OPERATIONS[operator](value, self._binary(level + 1)))
        return value

    def _unary(self) -> int:
        token = self._peek()
        if not token:
            raise ExpressionError("arithmetic syntax error")
        self.tokens.pop(0)
        if token in ("-", "+", "!", "~"):
            value = self._unary()
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token]
        if token in ("++", "--"):
            return self._step(self.tokens.pop(0) if self.tokens else "", 1 if token == "++" else -1)
        if token == "(":
            value = self.assignment()
            if self._peek() != ")":
                raise ExpressionError("arithmetic syntax error")
            self.tokens.pop(0)
            return value
        if token[0].isdigit():
            return int(token, 16) if token[:2] in ("0x", "0X") else int(token, 8 if token[0] == "0" and token.isdigit() else 10)
        if re.match(r"[A-Za-z_]", token):
            value = self._value(token)
            if self._peek() in ("++", "--"):
                self._step(token, 1 if self.tokens.pop(0) == "++" else -1)
            return value
        raise ExpressionError("arithmetic syntax error")

    def _step(self, name: str, by: int) -> int:
        value = self._value(name) + by
        self._variables[name] = str(value)
        return value


class ExpansionError(ValueError):
    """A parameter is unset or null and the expansion requires a value, or a read-only variable is assigned."""


class Scope(Protocol):
    """The part of a shell that expansion uses."""

    cwd: str

    @property
    def variables(self) -> MutableMapping[str, str]:
        """The variables; expansion may assign to them."""

    @property
    def files(self) -> FileSystem:
        """The file system for pathname expansion."""

    def parameter(self, name: str) -> str | None:
        """Returns the value of a parameter or special parameter; None if it is unset."""

    def positional(self) -> list[str]:
        """Returns the positional parameters."""

    async def output(self, script: Script) -> str:
        """Runs a script and returns its output without the line ends at the end."""


class _Piece(NamedTuple):
    """A part of a field."""

    text: str
    quoted: bool
    splits: bool = False
    """Whether separators in it split fields."""


_BREAK = _Piece("", True, True)
"""Separates two fields, as in "$@"."""


async def fields(words: Iterable[Word], scope: Scope) -> list[str]:
    """Expands words to fields, the arguments of a command."""
    found: list[str] = []
    total = 0
    for word in words:
        if len(word) == 1 and isinstance(word[0], Literal) and word[0].quoted:
            found.append(word[0].text)
            continue
        pieces = await _pieces(_with_home(word, scope), scope)
        total += sum(len(piece.text) for piece in pieces)
        check_memory(total)
        for field in _split(pieces, scope):
            found += _paths(field, scope)
    return found


async def text(word: Word, scope: Scope) -> str:
    """Expands a word without splitting it into fields, as in assignments and redirections."""
    pieces = await _pieces(_with_home(word, scope), scope)
    check_memory(sum(len(piece.text) for piece in pieces))
    return "".join(piece.text if piece is not _BREAK else " " for piece in pieces)


async def pattern(word: Word, scope: Scope) -> str:
    """Expands a word to a pattern, in which quoted characters are literal."""
    return "".join(regular_expressions.escape(piece.text) if piece.quoted else piece.text for piece in await _pieces(word, scope))


def _with_home(word: Word, scope: Scope) -> Word:
    """Replaces `~` at the beginning."""
    first = word[0] if word else None
    if isinstance(first, Literal) and not first.quoted and (first.text == "~" or first.text.startswith("~/")):
        home = scope.parameter("HOME") or "/root"
        return (Literal(home, quoted=True), Literal(first.text[1:]), *word[1:])
    return word


async def _pieces(word: Word, scope: Scope) -> list[_Piece]:
    found: list[_Piece] = []
    for part in word:
        found += await _part(part, scope)
    return found


async def _part(part: Part, scope: Scope) -> list[_Piece]:
    if isinstance(part, Literal):
        return [_Piece(part.text, part.quoted)]
    if isinstance(part, Substitution):
        return [_Piece(await scope.output(part.script), part.quoted, not part.quoted)]
    if isinstance(part, Arithmetic):
        return [_Piece(str(evaluate(await text(part.expression, scope), scope.variables)), part.quoted, not part.quoted)]
    return await _parameter(part, scope)


async def _parameter(part: Parameter, scope: Scope) -> list[_Piece]:
    if part.name in ("@", "*") and not part.operator:
        return _positional(part, scope)
    value = scope.parameter(part.name)
    if part.operator:
        changed = await _operate(part, value, scope)
        if not isinstance(changed, str):
            return changed
        value = changed
    elif value is None and "u" in (scope.parameter("-") or ""):
        raise ExpansionError(f"{part.name}: parameter not set")
    return [_Piece(value or "", part.quoted, not part.quoted)]


def _positional(part: Parameter, scope: Scope) -> list[_Piece]:
    values = scope.positional()
    if part.name == "*" and part.quoted:
        separator = scope.parameter("IFS")
        return [_Piece((" " if separator is None else separator[:1]).join(values), quoted=True)]
    found: list[_Piece] = []
    for number, value in enumerate(values):
        found += [_BREAK] if number else []
        found.append(_Piece(value, part.quoted, not part.quoted))
    return found


async def _operate(part: Parameter, value: str | None, scope: Scope) -> str | list[_Piece]:
    """Applies the operator of `${name op word}`; returns the value, or the pieces of the word."""
    operator = part.operator
    if operator == "length":
        return str(len(value or "") if part.name not in ("@", "*") else len(scope.positional()))
    kind = operator.removeprefix(":")
    if kind in ("-", "=", "?", "+") and operator != ":":
        missing = value is None or (operator.startswith(":") and not value)
        if kind == "+":
            return "" if missing else await _pieces(part.word, scope)
        if not missing:
            return value or ""
        if kind == "-":
            return await _pieces(part.word, scope)
        given = await text(part.word, scope)
        if kind == "?":
            raise ExpansionError(f"{part.name}: {given or 'parameter not set or null'}")
        scope.variables[part.name] = given
        return given
    value = value or ""
    if operator == ":":
        return await _substring(part, value, scope)
    found = await pattern(part.word, scope)
    if operator in ("#", "##"):
        return remove_prefix(value, found, longest=operator == "##")
    if operator in ("%", "%%"):
        return remove_suffix(value, found, longest=operator == "%%")
    replacement = await text(part.other, scope)
    if not found:
        return value
    return (await glob(found).replace(value, lambda _: replacement, count=None if operator == "//" else 1))[0]


async def _substring(part: Parameter, value: str, scope: Scope) -> str:
    start = evaluate(await text(part.word, scope), scope.variables)
    start = max(len(value) + start, 0) if start < 0 else start
    if not part.other:
        return value[start:]
    length = evaluate(await text(part.other, scope), scope.variables)
    return value[start : start + length] if length >= 0 else value[start:length]


# --- Fields and path names --------------------------------------------------------------------------------------------

#: The separators that make no empty fields, and the default of IFS.
BLANKS: Final = " \t\n"


def delimiter_of(separators: str) -> re.Pattern[str]:
    """Returns the pattern of what separates two fields for a value of IFS: blanks, or another character with blanks around it.

    A match has a group if there is another character than blanks, which also separates empty fields.
    """
    blanks = "".join(one for one in separators if one in BLANKS)
    others = "".join(one for one in separators if one not in BLANKS)
    blank, other = (f"[{re.escape(some)}]" if some else r"[^\s\S]" for some in (blanks, others))
    return re.compile(f"{blank}+(?:({other}){blank}*)?|({other}){blank}*")


def _split(pieces: list[_Piece], scope: Scope) -> list[list[_Piece]]:
    """Splits pieces into fields."""
    separators = scope.parameter("IFS")
    delimiter = delimiter_of(BLANKS if separators is None else separators)
    found: list[list[_Piece]] = []
    current: list[_Piece] = []
    for piece in pieces:
        if piece is _BREAK:
            found.append(current)
            current = []
        elif not piece.splits:
            if piece.text or piece.quoted:
                current.append(piece)
        else:
            place = 0
            for one in delimiter.finditer(piece.text):
                if one.start() > place:
                    current.append(_Piece(piece.text[place : one.start()], quoted=False))
                if not current and one.lastindex is not None:
                    current.append(_Piece("", quoted=True))
                found.append(current)
                current, place = [], one.end()
            if place < len(piece.text):
                current.append(_Piece(piece.text[place:], quoted=False))
    if current:
        found.append(current)
    return [field for field in found if field]


def _paths(field: list[_Piece], scope: Scope) -> list[str]:
    """Returns the paths that match a field; the field itself if there are none."""
    plain = "".join(piece.text for piece in field)
    if all(piece.quoted for piece in field) or not any(
        regular_expressions.is_pattern(piece.text) for piece in field if not piece.quoted
    ):
        return [plain]
    wanted = "".join(regular_expressions.escape(piece.text) if piece.quoted else piece.text for piece in field)
    return _matching(wanted, scope.files, scope.cwd) or [plain]


def _matching(wanted: str, files: FileSystem, cwd: str) -> list[str]:
    found = ["/"] if wanted.startswith("/") else [""]
    for part in [one for one in wanted.split("/") if one]:
        following = []
        for base in found:
            if not regular_expressions.is_pattern(part):
                name = posixpath.join(base, re.sub(r"\\(.)", r"\1", part))
                following += [name] if files.exists(name, cwd, follow=False) else []
                continue
            if not files.exists(base or ".", cwd) or not isinstance(files.node(base or ".", cwd), Directory):
                continue
            expression = glob(part)
            following += [
                posixpath.join(base, name)
                for name in files.list(base or ".", cwd)
                if expression.fullmatch(name) and (not name.startswith(".") or part.startswith("."))
            ]
        found = following
    return sorted(found)
