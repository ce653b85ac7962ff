"""Parses shell programs: commands, pipelines and lists.

The text is parsed from left to right; `words` parses the words of commands. Text that ends within a construct raises
`IncompleteError`, so that an interactive shell can read another line.

Specified by: POSIX.1-2017, Shell & Utilities, 2.2 (Quoting), 2.3 (Token Recognition), 2.10 (Shell Grammar).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fakekube.nodes.runtime.shell.syntax import (
    AndOr,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Subshell,
    Word,
)
from fakekube.nodes.runtime.shell.words import IncompleteError, ShellSyntaxError, WordParser

__all__ = ["IncompleteError", "ShellSyntaxError", "parse", "parse_word"]


_RESERVED: Final = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "for", "case", "esac", "in",
                              "{", "}", "!"})  # fmt: skip
_OPERATORS: Final = ("&&", "||", ";;", "<<-", "<<", ">>", "<&", ">&", "<>", ">|", "&>", ";", "&", "|", "<", ">", "(", ")", "\n")
_REDIRECTIONS: Final = frozenset({"<", ">", ">>", ">|", "<>", "<&", ">&", "<<", "<<-", "&>"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")


def parse(text: str) -> Script:
    """Parses a program. Raises ShellSyntaxError, IncompleteError."""
    parser = _Parser(text)
    script = parser.script(frozenset())
    parser.skip_lines()
    if parser.at < len(text):
        raise parser.unexpected()
    return script


def parse_word(text: str, *, quoted: bool) -> Word:
    """Parses a text as one word: as in double quotes if `quoted`, as in a here-document. Raises ShellSyntaxError."""
    return _Parser(text).whole(quoted=quoted)


class _Parser(WordParser):
    """The parser of a program."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._documents: list[tuple[list[Redirect], int, str, bool, bool]] = []
        """Here-documents whose text follows in the next lines: the list and index of their redirection, the delimiter, whether
        it is quoted, whether leading tabs are removed."""

    def parse(self, text: str) -> Script:
        return parse(text)

    def substituted(self) -> Script:
        script = self.script(frozenset())
        if not self._take(")"):
            raise self.unexpected()
        return script

    # ------------------------------------------------------------ tokens

    def _operator(self) -> str:
        """Returns the next operator; "" if there is none."""
        self._skip_blanks()
        return next((one for one in _OPERATORS if self.text.startswith(one, self.at)), "")

    def _take(self, operator: str) -> bool:
        if self._operator() != operator:
            return False
        self.at += len(operator)
        if operator == "\n":
            self._read_documents()
        return True

    def skip_lines(self) -> None:
        """Skips line ends."""
        while self._take("\n"):
            pass

    def _reserved(self) -> str:
        """Returns the next reserved word; "" if there is none."""
        self._skip_blanks()
        end = self.at
        while end < len(self.text) and self.text[end] not in " \t\r\n;&|<>()":
            end += 1
        word = self.text[self.at : end]
        return word if word in _RESERVED else ""

    def _take_reserved(self, word: str) -> bool:
        if self._reserved() != word:
            return False
        self.at += len(word)
        return True

    def _expect(self, word: str) -> None:
        self.skip_lines()
        if not self._take_reserved(word):
            raise self.unexpected()

    def unexpected(self) -> ShellSyntaxError:
        """Returns the error for the next token."""
        self._skip_blanks()
        if self.at >= len(self.text):
            return IncompleteError("unexpected end of file")
        found = self._operator() or self._reserved() or re.split(r"[\s;&|<>()]", self.text[self.at :], maxsplit=1)[0]
        shown = "newline" if found == "\n" else f'"{found}"'
        return ShellSyntaxError(f"unexpected {shown}")

    # ------------------------------------------------------------ lists

    def script(self, ends: frozenset[str]) -> Script:
        """Parses lists up to one of these reserved words, a closing operator, or the end of the text."""
        items: list[AndOr] = []
        while True:
            self.skip_lines()
            if self.at >= len(self.text) or self._operator() in (")", ";;") or self._reserved() in ends - {""}:
                break
            self._skip_blanks()
            if self.at >= len(self.text):
                break
            item = self._and_or()
            if self._take("&"):
                item = replace(item, background=True)
            elif not self._take(";") and self._operator() not in ("\n", ")", ";;") and self.at < len(self.text):
                raise self.unexpected()
            items.append(item)
        return Script(tuple(items))

    def _body(self, *ends: str) -> Script:
        """Parses a list, which must not be empty, up to a reserved word."""
        found = self.script(frozenset(ends))
        if not found.items or self._reserved() not in ends:
            raise self.unexpected()
        return found

    def _and_or(self) -> AndOr:
        first, rest = self._pipeline(), list[tuple[str, Pipeline]]()
        while (operator := self._operator()) in ("&&", "||"):
            self._take(operator)
            self.skip_lines()
            rest.append((operator, self._pipeline()))
        return AndOr(first, tuple(rest))

    def _pipeline(self) -> Pipeline:
        negated = self._take_reserved("!")
        commands = [self._command()]
        while self._take("|"):
            self.skip_lines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    # ------------------------------------------------------------ commands

    def _command(self) -> Command:
        compound: dict[str, Callable[[], Command]] = {
            "{": self._group,
            "if": self._if,
            "while": lambda: self._loop("while"),
            "until": lambda: self._loop("until"),
            "for": self._for,
            "case": self._case,
        }
        word = self._reserved()
        made: Command
        if word in compound:
            self._take_reserved(word)
            made = compound[word]()
        elif word:
            raise self.unexpected()
        elif self._take("("):
            body = self.script(frozenset())
            if not self._take(")"):
                raise self.unexpected()
            made = Subshell(body)
        else:
            return self._simple()
        redirects: list[Redirect] = []
        while self._redirect(redirects):
            pass
        return _with(made, redirects)

    def _group(self) -> Command:
        body = self._body("}")
        self._expect("}")
        return Group(body)

    def _if(self) -> Command:
        branches, otherwise = [], None
        while True:
            condition = self._body("then")
            self._expect("then")
            branches.append((condition, self._body("elif", "else", "fi")))
            if self._take_reserved("elif"):
                continue
            if self._take_reserved("else"):
                otherwise = self._body("fi")
            self._expect("fi")
            return If(tuple(branches), otherwise)

    def _loop(self, word: str) -> Command:
        condition = self._body("do")
        return Loop(condition, self._do(), word == "until")

    def _do(self) -> Script:
        self._expect("do")
        body = self._body("done")
        self._expect("done")
        return body

    def _for(self) -> Command:
        name = self._name()
        self.skip_lines()
        words: tuple[Word, ...] | None = None
        if self._take_reserved("in"):
            found = []
            while (word := self._word()) is not None:
                found.append(word)
            words = tuple(found)
        self._take(";")
        return For(name, words, self._do())

    def _case(self) -> Command:
        word = self._word()
        if word is None:
            raise self.unexpected()
        self._expect("in")
        branches = []
        self.skip_lines()
        while not self._take_reserved("esac"):
            self._take("(")
            patterns = []
            while (pattern := self._word()) is not None:
                patterns.append(pattern)
                if not self._take("|"):
                    break
            if not patterns or not self._take(")"):
                raise self.unexpected()
            branches.append((tuple(patterns), self.script(frozenset({"esac"}))))
            self.skip_lines()
            if not self._take(";;") and self._reserved() != "esac":
                raise self.unexpected()
            self.skip_lines()
        return Case(word, tuple(branches))

    def _name(self) -> str:
        self._skip_blanks()
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self.unexpected()
        self.at = found.end()
        return found[0]

    def _simple(self) -> Command:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            if self._redirect(redirects):
                continue
            self._skip_blanks()
            found = None if words else _ASSIGNMENT.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
                assignments.append((found[1], self._word() if self._is_word() else ()))  # type: ignore[arg-type]
                continue
            word = self._word()
            if word is None:
                break
            words.append(word)
            if len(words) == 1 and not assignments and _is_name(word) and self._take("("):
                if not self._take(")"):
                    raise self.unexpected()
                self.skip_lines()
                return Function(word[0].text, self._command())  # type: ignore[union-attr]
        if not (assignments or words or redirects):
            raise self.unexpected()
        return _with(Simple(tuple(assignments), tuple(words)), redirects)

    # ------------------------------------------------------------ redirections

    def _redirect(self, into: list[Redirect]) -> bool:
        """Reads a redirection, if one comes next."""
        self._skip_blanks()
        digits = re.compile(r"\d+(?=[<>])").match(self.text, self.at)
        start = self.at
        if digits is not None:
            self.at = digits.end()
        operator = self._operator()
        if operator not in _REDIRECTIONS:
            self.at = start
            return False
        self._take(operator)
        if operator in ("<<", "<<-"):
            self._begin_document(into, int(digits[0]) if digits else 0, operator)
            return True
        target = self._word()
        if target is None:
            raise self.unexpected()
        if operator == "&>":
            into += [Redirect(1, ">", target), Redirect(2, ">&", (Literal("1"),))]
            return True
        default = 0 if operator.startswith("<") else 1
        into.append(Redirect(int(digits[0]) if digits else default, operator, target))
        return True

    def _begin_document(self, into: list[Redirect], descriptor: int, operator: str) -> None:
        word = self._word()
        if word is None:
            raise self.unexpected()
        end = "".join(part.text for part in word if isinstance(part, Literal))
        quoted = any(isinstance(part, Literal) and part.quoted for part in word)
        into.append(Redirect(descriptor, "<<", ()))
        self._documents.append((into, len(into) - 1, end, quoted, operator == "<<-"))

    def _read_documents(self) -> None:
        waiting, self._documents = self._documents, []
        for into, place, end, quoted, strip in waiting:
            lines = []
            while True:
                if self.at >= len(self.text):
                    raise IncompleteError("unexpected end of file")
                stop = self.text.find("\n", self.at)
                line = self.text[self.at : stop] if stop >= 0 else self.text[self.at :]
                self.at = len(self.text) if stop < 0 else stop + 1
                line = line.lstrip("\t") if strip else line
                if line == end:
                    break
                lines.append(line + "\n")
            text = "".join(lines)
            word: Word = (Literal(text, quoted=True),) if quoted else parse_word(text, quoted=True)
            into[place] = replace(into[place], target=word)


def _is_name(word: Word) -> bool:
    return len(word) == 1 and isinstance(word[0], Literal) and not word[0].quoted and bool(re.fullmatch(r"[\w.-]+", word[0].text))


def _with(command: Command, redirects: list[Redirect]) -> Command:
    """Returns the command with redirections. The list is shared: the text of a here-document is put into it later."""
    return replace(command, redirects=redirects) if redirects else command
