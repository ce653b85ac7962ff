"""Expands the words of shell programs: parameters, substitutions, arithmetic, fields and path names.

Specified by: POSIX.1-2017, Shell & Utilities, 2.6 (Word Expansions).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, MutableMapping
from typing import NamedTuple, Protocol

from fakekube.nodes.runtime.filesystem import Directory, FileSystem
from fakekube.nodes.runtime.regular_expressions import glob, remove_prefix, remove_suffix
from fakekube.nodes.runtime.scheduling import check_memory
from fakekube.nodes.runtime.shell import patterns
from fakekube.nodes.runtime.shell.arithmetic import evaluate
from fakekube.nodes.runtime.shell.syntax import Arithmetic, Literal, Parameter, Part, Script, Substitution, Word

__all__ = ["ExpansionError", "Scope", "fields", "pattern", "text"]


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
    return "".join(patterns.escape(piece.text) if piece.quoted else piece.text for piece in await _pieces(word, scope))


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


# ---------------------------------------------------------------- fields and path names


def _split(pieces: list[_Piece], scope: Scope) -> list[list[_Piece]]:
    """Splits pieces into fields."""
    separators = scope.parameter("IFS")
    separators = " \t\n" if separators is None else separators
    blank = "".join(one for one in separators if one in " \t\n")
    divider = re.compile(f"[{re.escape(separators)}]") if separators else None
    found: list[list[_Piece]] = []
    current: list[_Piece] = []
    for piece in pieces:
        if piece is _BREAK:
            found.append(current)
            current = []
        elif not piece.splits or divider is None:
            if piece.text or piece.quoted:
                current.append(piece)
        else:
            parts = divider.split(piece.text)
            for number, part in enumerate(parts):
                if number:
                    if current or piece.text[: sum(map(len, parts[:number])) + number - 1].strip(blank):
                        found.append(current)
                    current = []
                if part:
                    current.append(_Piece(part, quoted=False))
    if current:
        found.append(current)
    return [field for field in found if field]


def _paths(field: list[_Piece], scope: Scope) -> list[str]:
    """Returns the paths that match a field; the field itself if there are none."""
    plain = "".join(piece.text for piece in field)
    if all(piece.quoted for piece in field) or not any(patterns.is_pattern(piece.text) for piece in field if not piece.quoted):
        return [plain]
    wanted = "".join(patterns.escape(piece.text) if piece.quoted else piece.text for piece in field)
    return _matching(wanted, scope.files, scope.cwd) or [plain]


def _matching(wanted: str, files: FileSystem, cwd: str) -> list[str]:
    found = ["/"] if wanted.startswith("/") else [""]
    for part in [one for one in wanted.split("/") if one]:
        following = []
        for base in found:
            if not patterns.is_pattern(part):
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
