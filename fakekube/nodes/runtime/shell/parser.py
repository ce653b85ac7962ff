"""Parses shell programs: words, commands, pipelines and lists.

The text is parsed from left to right. A word is a sequence of parts, which `expansion` expands: `WordParser` parses quotes,
parameters, substitutions and arithmetic, and its subclass the commands, also those inside of substitutions. Text that ends within
a construct raises `IncompleteError`, so that an interactive shell can read another line.

Invariant: `at` is the position of the first character that is not parsed.

Specified by: POSIX.1-2017, Shell & Utilities, 2.2 (Quoting), 2.3 (Token Recognition), 2.6 (Word Expansions), 2.10 (Shell
Grammar).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from fakekube.nodes.runtime.shell.syntax import (
    AndOr,
    Arithmetic,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Parameter,
    Part,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Subshell,
    Substitution,
    Word,
)


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
    def parse_substitution(self) -> Script:
        """Parses the script of `$(script)` after the first parenthesis, and the second parenthesis. Raises ShellSyntaxError."""

    def parse_whole_word(self, *, quoted: bool) -> Word:
        """Parses the whole text as one word: as in double quotes if `quoted`. Raises ShellSyntaxError."""
        return tuple(self.parse_parts(lambda: self.at >= len(self.text), quoted=quoted, plain=True))

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
        """Reports whether the next character belongs to a word."""
        return self.at < len(self.text) and self._peek() not in " \t\r\n;&|<>()"

    def _parse_word(self) -> Word | None:
        """Parses a word; returns None if the next token is not a word."""
        self._skip_blanks()
        if not self._is_word():
            return None
        return tuple(self.parse_parts(lambda: not self._is_word(), quoted=False))

    def parse_parts(self, is_end: Callable[[], bool], *, quoted: bool, plain: bool = False) -> list[Part]:
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
                self._parse_escape(found, text, flush, quoted=quoted)
            elif one == "'" and not quoted:
                flush()
                found.append(Literal(self._parse_quoted("'"), quoted=True))
            elif one == '"' and not plain:
                flush()
                self.at += 1
                found += self.parse_parts(self._at_quote, quoted=True) or [Literal("", quoted=True)]
                self.at += 1
            elif one in "$`" and (part := self._parse_expansion(quoted=quoted)) is not None:
                flush()
                found.append(part)
            else:
                text.append(one)
                self.at += 1
        flush()
        return found

    def _at_quote(self) -> bool:
        """Reports whether the quote that ends a string comes next. Raises IncompleteError at the end of the text."""
        if self.at >= len(self.text):
            raise IncompleteError("unterminated quoted string")
        return self._peek() == '"'

    def _parse_escape(self, found: list[Part], text: list[str], flush: Callable[[], None], *, quoted: bool) -> None:
        """Parses a backslash and the next character: adds a literal to `found`, or within quotes characters to `text`."""
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following == "\n":
            return
        if quoted:
            text.append(following if following and following in '$`"\\' else "\\" + following)
            return
        flush()
        found.append(Literal(following or "\\", quoted=True))

    def _parse_quoted(self, quote: str) -> str:
        """Parses the text between two quotes."""
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise IncompleteError("unterminated quoted string")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return text

    def _parse_expansion(self, *, quoted: bool) -> Part | None:
        """Parses an expansion that begins with `$` or a backquote; returns None if the dollar sign is literal."""
        if self._peek() == "`":
            inner = re.sub(r"\\([\\`$])", r"\1", self._parse_quoted("`"))
            return Substitution(self.parse(inner), quoted)
        if self._peek(3) == "$((" and (expression := self._parse_arithmetic()) is not None:
            return Arithmetic(type(self)(expression).parse_whole_word(quoted=True), quoted)
        if self._peek(2) == "$(":
            self.at += 2
            return Substitution(self.parse_substitution(), quoted)
        if self._peek(2) == "${":
            return self._parse_braced_parameter(quoted=quoted)
        following = self.text[self.at + 1 : self.at + 2]
        name = _NAME.match(self.text, self.at + 1)
        if name is not None:
            self.at = name.end()
            return Parameter(name[0], quoted)
        if following and following in _SPECIAL:
            self.at += 2
            return Parameter(following, quoted)
        return None

    def _parse_arithmetic(self) -> str | None:
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

    def _parse_braced_parameter(self, *, quoted: bool) -> Part:
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
        word = tuple(self.parse_parts(lambda: self._at_brace(splits), quoted=quoted))
        other: Word = ()
        if splits and self._peek() == splits:
            self.at += 1
            other = tuple(self.parse_parts(lambda: self._at_brace(None), quoted=quoted))
        self._close_brace()
        return Parameter(name[0], quoted, operator, word, other)

    def _at_brace(self, splits: str | None) -> bool:
        """Reports whether a word of a parameter ends here: at the brace, or at the character that divides two words."""
        if self.at >= len(self.text):
            raise IncompleteError("unterminated substitution")
        return self._peek() == "}" or self._peek() == splits

    def _close_brace(self) -> None:
        """Parses the brace that ends a parameter. Raises ShellSyntaxError."""
        if self._peek() != "}":
            raise IncompleteError("bad substitution") if self.at >= len(self.text) else ShellSyntaxError("bad substitution")
        self.at += 1


#: The words that are part of the grammar where a command may begin.
KEYWORDS: Final = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "for", "case", "esac", "in",
                             "{", "}", "!"})  # fmt: skip
_OPERATORS: Final = ("&&", "||", ";;", "<<-", "<<", ">>", "<&", ">&", "<>", ">|", "&>", ";", "&", "|", "<", ">", "(", ")", "\n")
_REDIRECTIONS: Final = frozenset({"<", ">", ">>", ">|", "<>", "<&", ">&", "<<", "<<-", "&>"})
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")


def parse(text: str) -> Script:
    """Parses a program. Raises ShellSyntaxError, IncompleteError."""
    parser = _Parser(text)
    script = parser.parse_script(frozenset())
    parser.skip_lines()
    if parser.at < len(text):
        raise parser.syntax_error()
    return script


def parse_word(text: str, *, quoted: bool) -> Word:
    """Parses a text as one word: as in double quotes if `quoted`, as in a here-document. Raises ShellSyntaxError."""
    return _Parser(text).parse_whole_word(quoted=quoted)


class _HereDocument(NamedTuple):
    """A here-document, whose text is put into its redirection when it has been read."""

    redirects: list[Redirect]
    place: int
    """The index of its redirection."""
    end: str
    """The line that ends it."""
    is_quoted: bool
    """Whether a part of the delimiter is quoted, so that the text is not expanded."""
    strips_tabs: bool


class _Parser(WordParser):
    """The parser of a program."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._here_documents: list[_HereDocument] = []
        """Those whose text follows in the next lines."""

    def parse(self, text: str) -> Script:
        return parse(text)

    def parse_substitution(self) -> Script:
        script = self.parse_script(frozenset())
        if not self._take_operator(")"):
            raise self.syntax_error()
        return script

    # --- Tokens -------------------------------------------------------------------------------------------------------

    def _peek_operator(self) -> str:
        """Returns the next operator; "" if there is none."""
        self._skip_blanks()
        return next((one for one in _OPERATORS if self.text.startswith(one, self.at)), "")

    def _take_operator(self, operator: str) -> bool:
        """Parses this operator; returns False if another token comes next."""
        if self._peek_operator() != operator:
            return False
        self.at += len(operator)
        if operator == "\n":
            self._read_here_documents()
        return True

    def skip_lines(self) -> None:
        """Skips line ends."""
        while self._take_operator("\n"):
            pass

    def _peek_reserved(self) -> str:
        """Returns the next reserved word; "" if there is none."""
        self._skip_blanks()
        end = self.at
        while end < len(self.text) and self.text[end] not in " \t\r\n;&|<>()":
            end += 1
        word = self.text[self.at : end]
        return word if word in KEYWORDS else ""

    def _take_reserved(self, word: str) -> bool:
        """Parses this reserved word; returns False if another token comes next."""
        if self._peek_reserved() != word:
            return False
        self.at += len(word)
        return True

    def _expect(self, word: str) -> None:
        """Parses this reserved word, perhaps in a later line. Raises ShellSyntaxError if another token comes next."""
        self.skip_lines()
        if not self._take_reserved(word):
            raise self.syntax_error()

    def syntax_error(self) -> ShellSyntaxError:
        """Returns the error for the next token."""
        self._skip_blanks()
        if self.at >= len(self.text):
            return IncompleteError("unexpected end of file")
        found = self._peek_operator() or self._peek_reserved() or re.split(r"[\s;&|<>()]", self.text[self.at :], maxsplit=1)[0]
        shown = "newline" if found == "\n" else f'"{found}"'
        return ShellSyntaxError(f"unexpected {shown}")

    # --- Lists --------------------------------------------------------------------------------------------------------

    def parse_script(self, ends: frozenset[str]) -> Script:
        """Parses lists up to one of these reserved words, a closing operator, or the end of the text."""
        items: list[AndOr] = []
        while True:
            self.skip_lines()
            if self.at >= len(self.text) or self._peek_operator() in (")", ";;") or self._peek_reserved() in ends - {""}:
                break
            self._skip_blanks()
            if self.at >= len(self.text):
                break
            item = self._parse_and_or()
            if self._take_operator("&"):
                item = replace(item, background=True)
            elif not self._take_operator(";") and self._peek_operator() not in ("\n", ")", ";;") and self.at < len(self.text):
                raise self.syntax_error()
            items.append(item)
        return Script(tuple(items))

    def _parse_body(self, *ends: str) -> Script:
        """Parses a list, which must not be empty, up to a reserved word."""
        found = self.parse_script(frozenset(ends))
        if not found.items or self._peek_reserved() not in ends:
            raise self.syntax_error()
        return found

    def _parse_and_or(self) -> AndOr:
        first, rest = self._parse_pipeline(), list[tuple[str, Pipeline]]()
        while (operator := self._peek_operator()) in ("&&", "||"):
            self._take_operator(operator)
            self.skip_lines()
            rest.append((operator, self._parse_pipeline()))
        return AndOr(first, tuple(rest))

    def _parse_pipeline(self) -> Pipeline:
        negated = self._take_reserved("!")
        commands = [self._parse_command()]
        while self._take_operator("|"):
            self.skip_lines()
            commands.append(self._parse_command())
        return Pipeline(tuple(commands), negated)

    # --- Commands -----------------------------------------------------------------------------------------------------

    def _parse_command(self) -> Command:
        compound: dict[str, Callable[[], Command]] = {
            "{": self._parse_group,
            "if": self._parse_if,
            "while": lambda: self._parse_loop("while"),
            "until": lambda: self._parse_loop("until"),
            "for": self._parse_for,
            "case": self._parse_case,
        }
        word = self._peek_reserved()
        made: Command
        if word in compound:
            self._take_reserved(word)
            made = compound[word]()
        elif word:
            raise self.syntax_error()
        elif self._take_operator("("):
            body = self.parse_script(frozenset())
            if not self._take_operator(")"):
                raise self.syntax_error()
            made = Subshell(body)
        else:
            return self._parse_simple()
        redirects: list[Redirect] = []
        while self._parse_redirect(redirects):
            pass
        return _with_redirects(made, redirects)

    def _parse_group(self) -> Command:
        body = self._parse_body("}")
        self._expect("}")
        return Group(body)

    def _parse_if(self) -> Command:
        branches, otherwise = [], None
        while True:
            condition = self._parse_body("then")
            self._expect("then")
            branches.append((condition, self._parse_body("elif", "else", "fi")))
            if self._take_reserved("elif"):
                continue
            if self._take_reserved("else"):
                otherwise = self._parse_body("fi")
            self._expect("fi")
            return If(tuple(branches), otherwise)

    def _parse_loop(self, word: str) -> Command:
        condition = self._parse_body("do")
        return Loop(condition, self._parse_do(), word == "until")

    def _parse_do(self) -> Script:
        """Parses the body of a loop, from `do` to `done`."""
        self._expect("do")
        body = self._parse_body("done")
        self._expect("done")
        return body

    def _parse_for(self) -> Command:
        name = self._parse_name()
        self.skip_lines()
        words: tuple[Word, ...] | None = None
        if self._take_reserved("in"):
            found = []
            while (word := self._parse_word()) is not None:
                found.append(word)
            words = tuple(found)
        self._take_operator(";")
        return For(name, words, self._parse_do())

    def _parse_case(self) -> Command:
        word = self._parse_word()
        if word is None:
            raise self.syntax_error()
        self._expect("in")
        branches = []
        self.skip_lines()
        while not self._take_reserved("esac"):
            self._take_operator("(")
            patterns = []
            while (pattern := self._parse_word()) is not None:
                patterns.append(pattern)
                if not self._take_operator("|"):
                    break
            if not patterns or not self._take_operator(")"):
                raise self.syntax_error()
            branches.append((tuple(patterns), self.parse_script(frozenset({"esac"}))))
            self.skip_lines()
            if not self._take_operator(";;") and self._peek_reserved() != "esac":
                raise self.syntax_error()
            self.skip_lines()
        return Case(word, tuple(branches))

    def _parse_name(self) -> str:
        self._skip_blanks()
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self.syntax_error()
        self.at = found.end()
        return found[0]

    def _parse_simple(self) -> Command:
        """Parses a simple command, or the definition of a function."""
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            if self._parse_redirect(redirects):
                continue
            self._skip_blanks()
            found = None if words else _ASSIGNMENT.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
                assignments.append((found[1], self._parse_word() if self._is_word() else ()))  # type: ignore[arg-type]
                continue
            word = self._parse_word()
            if word is None:
                break
            words.append(word)
            if len(words) == 1 and not assignments and _is_name(word) and self._take_operator("("):
                if not self._take_operator(")"):
                    raise self.syntax_error()
                self.skip_lines()
                return Function(word[0].text, self._parse_command())  # type: ignore[union-attr]
        if not (assignments or words or redirects):
            raise self.syntax_error()
        return _with_redirects(Simple(tuple(assignments), tuple(words)), redirects)

    # --- Redirections -------------------------------------------------------------------------------------------------

    def _parse_redirect(self, into: list[Redirect]) -> bool:
        """Reads a redirection, if one comes next."""
        self._skip_blanks()
        digits = re.compile(r"\d+(?=[<>])").match(self.text, self.at)
        start = self.at
        if digits is not None:
            self.at = digits.end()
        operator = self._peek_operator()
        if operator not in _REDIRECTIONS:
            self.at = start
            return False
        self._take_operator(operator)
        if operator in ("<<", "<<-"):
            self._begin_here_document(into, int(digits[0]) if digits else 0, operator)
            return True
        target = self._parse_word()
        if target is None:
            raise self.syntax_error()
        if operator == "&>":
            into += [Redirect(1, ">", target), Redirect(2, ">&", (Literal("1"),))]
            return True
        default = 0 if operator.startswith("<") else 1
        into.append(Redirect(int(digits[0]) if digits else default, operator, target))
        return True

    def _begin_here_document(self, into: list[Redirect], descriptor: int, operator: str) -> None:
        """Parses the delimiter of a here-document, whose text begins in the next line."""
        word = self._parse_word()
        if word is None:
            raise self.syntax_error()
        end = "".join(part.text for part in word if isinstance(part, Literal))
        quoted = any(isinstance(part, Literal) and part.quoted for part in word)
        into.append(Redirect(descriptor, "<<", ()))
        self._here_documents.append(_HereDocument(into, len(into) - 1, end, quoted, operator == "<<-"))

    def _read_here_documents(self) -> None:
        """Parses the texts of the here-documents that the line before has begun."""
        waiting, self._here_documents = self._here_documents, []
        for one in waiting:
            lines = []
            while True:
                if self.at >= len(self.text):
                    raise IncompleteError("unexpected end of file")
                stop = self.text.find("\n", self.at)
                line = self.text[self.at : stop] if stop >= 0 else self.text[self.at :]
                self.at = len(self.text) if stop < 0 else stop + 1
                line = line.lstrip("\t") if one.strips_tabs else line
                if line == one.end:
                    break
                lines.append(line + "\n")
            text = "".join(lines)
            word: Word = (Literal(text, quoted=True),) if one.is_quoted else parse_word(text, quoted=True)
            one.redirects[one.place] = replace(one.redirects[one.place], target=word)


def _is_name(word: Word) -> bool:
    """Reports whether a word can be the name of a function."""
    return len(word) == 1 and isinstance(word[0], Literal) and not word[0].quoted and bool(re.fullmatch(r"[\w.-]+", word[0].text))


def _with_redirects(command: Command, redirects: list[Redirect]) -> Command:
    """Returns the command with redirections. The list is shared: the text of a here-document is put into it later."""
    return replace(command, redirects=redirects) if redirects else command
