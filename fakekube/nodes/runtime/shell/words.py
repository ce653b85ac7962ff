"""Parses the words of shell programs: quotes, parameters, substitutions and arithmetic.

A word is a sequence of parts, which `expansion` expands. Commands inside of substitutions are parsed by the subclass, `parser`.

Invariant: `at` is the position of the first character that is not parsed; text that ends within a construct raises
`IncompleteError`.

Specified by: POSIX.1-2017, Shell & Utilities, 2.2 (Quoting), 2.3 (Token Recognition), 2.6 (Word Expansions).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from fakekube.nodes.runtime.shell.syntax import Arithmetic, Literal, Parameter, Part, Script, Substitution, Word

__all__ = ["IncompleteError", "ShellSyntaxError", "WordParser"]


class ShellSyntaxError(ValueError):
    """The text is not a valid shell program."""


class IncompleteError(ShellSyntaxError):
    """The text ends within a construct."""


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL: Final = "@*#?-$!0123456789"
_PARAMETER_OPERATORS: Final = (":-", ":=", ":?", ":+", "-", "=", "?", "+", "##", "#", "%%", "%", "//", "/", ":")


class WordParser(ABC):
    """A text, and the position up to which it is parsed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @abstractmethod
    def parse(self, text: str) -> Script:
        """Parses another text as a program. Raises ShellSyntaxError."""

    @abstractmethod
    def substituted(self) -> Script:
        """Parses the script of `$(script)` after the first parenthesis, and the second parenthesis. Raises ShellSyntaxError."""

    def whole(self, *, quoted: bool) -> Word:
        """Parses the whole text as one word: as in double quotes if `quoted`. Raises ShellSyntaxError."""
        return tuple(self.parts(lambda: self.at >= len(self.text), quoted=quoted, plain=True))

    def _peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def _skip_blanks(self) -> None:
        while self.at < len(self.text):
            if self._peek() in " \t\r":
                self.at += 1
            elif self._peek(2) == "\\\n":
                self.at += 2
            elif self._peek() == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _is_word(self) -> bool:
        return self.at < len(self.text) and self._peek() not in " \t\r\n;&|<>()"

    def _word(self) -> Word | None:
        """Parses a word; returns None if the next token is not a word."""
        self._skip_blanks()
        if not self._is_word():
            return None
        return tuple(self.parts(lambda: not self._is_word(), quoted=False))

    def parts(self, is_end: Callable[[], bool], *, quoted: bool, plain: bool = False) -> list[Part]:
        """Parses the parts of a word, until `is_end()`. With `plain`, double quotes are literal."""
        found: list[Part] = []
        text: list[str] = []

        def flush() -> None:
            if text:
                found.append(Literal("".join(text), quoted))
                text.clear()

        while not is_end():
            one = self._peek()
            if one == "\\":
                self._escape(found, text, flush, quoted=quoted)
            elif one == "'" and not quoted:
                flush()
                found.append(Literal(self._until("'"), quoted=True))
            elif one == '"' and not plain:
                flush()
                self.at += 1
                found += self.parts(self._at_quote, quoted=True) or [Literal("", quoted=True)]
                self.at += 1
            elif one in "$`" and (part := self._expansion(quoted=quoted)) is not None:
                flush()
                found.append(part)
            else:
                text.append(one)
                self.at += 1
        flush()
        return found

    def _at_quote(self) -> bool:
        if self.at >= len(self.text):
            raise IncompleteError("unterminated quoted string")
        return self._peek() == '"'

    def _escape(self, found: list[Part], text: list[str], flush: Callable[[], None], *, quoted: bool) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following == "\n":
            return
        if quoted:
            text.append(following if following and following in '$`"\\' else "\\" + following)
            return
        flush()
        found.append(Literal(following or "\\", quoted=True))

    def _until(self, quote: str) -> str:
        """Parses the text between two quotes."""
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise IncompleteError("unterminated quoted string")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return text

    def _expansion(self, *, quoted: bool) -> Part | None:
        """Parses an expansion that begins with `$` or a backquote; returns None if the dollar sign is literal."""
        if self._peek() == "`":
            inner = re.sub(r"\\([\\`$])", r"\1", self._until("`"))
            return Substitution(self.parse(inner), quoted)
        if self._peek(3) == "$((" and (expression := self._arithmetic()) is not None:
            return Arithmetic(type(self)(expression).whole(quoted=True), quoted)
        if self._peek(2) == "$(":
            self.at += 2
            return Substitution(self.substituted(), quoted)
        if self._peek(2) == "${":
            return self._braced(quoted=quoted)
        following = self.text[self.at + 1 : self.at + 2]
        name = _NAME.match(self.text, self.at + 1)
        if name is not None:
            self.at = name.end()
            return Parameter(name[0], quoted)
        if following and following in _SPECIAL:
            self.at += 2
            return Parameter(following, quoted)
        return None

    def _arithmetic(self) -> str | None:
        """Returns the expression of `$((…))`; None if it is a substitution that begins with a subshell."""
        depth, place = 0, self.at + 3
        while place < len(self.text):
            one = self.text[place]
            if one == "(":
                depth += 1
            elif one == ")" and depth:
                depth -= 1
            elif one == ")":
                if self.text[place + 1 : place + 2] != ")":
                    return None
                inner = self.text[self.at + 3 : place]
                self.at = place + 2
                return inner
            place += 1
        raise IncompleteError("unterminated arithmetic expansion")

    def _braced(self, *, quoted: bool) -> Part:
        self.at += 2
        length = self._peek() == "#" and self.text[self.at + 1 : self.at + 2] not in ("}", "")
        if length:
            self.at += 1
        name = _NAME.match(self.text, self.at) or re.compile(rf"\d+|[{re.escape(_SPECIAL)}]").match(self.text, self.at)
        if name is None:
            raise ShellSyntaxError("bad substitution")
        self.at = name.end()
        if length:
            self._close_brace()
            return Parameter(name[0], quoted, "length")
        operator = next((one for one in _PARAMETER_OPERATORS if self.text.startswith(one, self.at)), "")
        self.at += len(operator)
        if not operator:
            self._close_brace()
            return Parameter(name[0], quoted)
        splits = {"/": "/", "//": "/", ":": ":"}.get(operator)
        word = tuple(self.parts(lambda: self._at_brace(splits), quoted=quoted))
        other: Word = ()
        if splits and self._peek() == splits:
            self.at += 1
            other = tuple(self.parts(lambda: self._at_brace(None), quoted=quoted))
        self._close_brace()
        return Parameter(name[0], quoted, operator, word, other)

    def _at_brace(self, splits: str | None) -> bool:
        if self.at >= len(self.text):
            raise IncompleteError("unterminated substitution")
        return self._peek() == "}" or self._peek() == splits

    def _close_brace(self) -> None:
        if self._peek() != "}":
            raise IncompleteError("bad substitution") if self.at >= len(self.text) else ShellSyntaxError("bad substitution")
        self.at += 1
