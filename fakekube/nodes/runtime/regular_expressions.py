"""The regular expressions and patterns of the programs in containers, matched by RE2 in linear time.

POSIX basic and extended expressions, and the patterns of the shell (`*`, `?`, `[…]`), are translated to RE2. What RE2 does not
have, back references, raises `PatternError`: a matcher for them takes exponential time.

Invariant: a match takes a time that is proportional to the length of the text.

Specified by: POSIX.1-2017, Base Definitions, 9 (Regular Expressions); Shell & Utilities, 2.13 (Pattern Matching Notation).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from typing import Any, Final

from fakekube.nodes.runtime.scheduling import breathe, check_memory

#: The maximum memory of one compiled expression, in bytes.
_MAX_MEMORY: Final = 1 << 20
_REPETITION: Final = re.compile(r"(\d*)(?:(,)(\d*))?(\\?\})")
_CLASS: Final = re.compile(r"\[([:.=])(\w+|.)\1\]", re.DOTALL)
_CLASSES: Final = frozenset(
    {"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word", "xdigit"}
)


class PatternError(ValueError):
    """An expression is invalid, or needs a feature that RE2 does not have; the text is the reason."""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class Match:
    """A match."""

    __slots__ = ("_found", "_text")

    def __init__(self, found: Any, text: bytes) -> None:
        self._found, self._text = found, text

    def __getitem__(self, number: int) -> str:
        start, end = self._found.span(number)
        return self._text[start:end].decode("utf-8", "surrogateescape") if start >= 0 else ""

    @property
    def groups(self) -> int:
        """The number of groups of the expression."""
        return int(self._found.re.groups)


class Expression:
    """A compiled expression.

    Args:
        source: in the syntax of RE2.
        ignore_case: whether letters match in either case.
        longest: whether the longest of the leftmost matches counts, as in POSIX; else the first alternative.

    Raises PatternError.
    """

    __slots__ = ("_compiled",)

    def __init__(self, source: str, *, ignore_case: bool = False, longest: bool = True) -> None:
        import re2  # only containers that match need it

        options = re2.Options()
        options.log_errors = False
        options.dot_nl = True
        options.longest_match = longest
        options.case_sensitive = not ignore_case
        options.max_mem = _MAX_MEMORY
        try:
            self._compiled = re2.compile(source, options)
        except (re2.error, UnicodeError) as error:
            reason = error.args[0] if error.args else ""
            raise PatternError(_reason(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason))) from None

    def search(self, text: str) -> Match | None:
        """Returns the leftmost match."""
        data = _bytes(text)
        found = self._compiled.search(data)
        return None if found is None else Match(found, data)

    def match(self, text: str) -> Match | None:
        """Returns the match at the beginning."""
        data = _bytes(text)
        found = self._compiled.match(data)
        return None if found is None else Match(found, data)

    def fullmatch(self, text: str) -> bool:
        """Reports whether the whole text matches."""
        return self._compiled.fullmatch(_bytes(text)) is not None

    async def matches(self, text: str) -> AsyncIterator[Match]:
        """Yields the matches from left to right; other programs run in between."""
        data = _bytes(text)
        for found in self._compiled.finditer(data):
            yield Match(found, data)
            await breathe()

    async def replace(
        self, text: str, replacement: Callable[[Match], str], *, first: int = 1, count: int | None = None
    ) -> tuple[str, int]:
        """Replaces matches; returns the text and the number of matches.

        Args:
            text: in which matches are replaced.
            replacement: returns the replacement of a match.
            first: the number of the first match that is replaced.
            count: the maximum number of replacements; None for no maximum.
        """
        data, parts, place, number = _bytes(text), list[bytes](), 0, 0
        total = 0
        for found in self._compiled.finditer(data):
            number += 1
            if number >= first:
                start, end = found.span()
                parts += data[place:start], _bytes(replacement(Match(found, data)))
                place = end
                total += len(parts[-1]) + len(parts[-2]) + 80
                check_memory(total)
                if count is not None and number - first + 1 >= count:
                    break
            await breathe()
        return (b"".join(parts) + data[place:]).decode("utf-8", "surrogateescape"), number


def _reason(text: str) -> str:
    """Returns the words of regerror for an error of RE2."""
    known = {
        "missing )": "Unmatched ( or \\(",
        "unexpected )": "Unmatched ) or \\)",
        "missing ]": "Unmatched [, [^, [:, [., or [=",
        "invalid character class range": "Invalid range end",
        "invalid character class": "Invalid character class name",
        "no argument for repetition operator": "Invalid preceding regular expression",
        "invalid repetition size": "Invalid content of \\{\\}",
        "pattern too large": "Regular expression too big",
    }
    return next((words for start, words in known.items() if text.startswith(start)), "Invalid regexp")


# --- POSIX ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=128)
def compile_posix(
    source: str, *, extended: bool, ignore_case: bool = False, fixed: bool = False, word: bool = False, line: bool = False
) -> Expression:
    """Compiles an expression. Raises PatternError.

    Args:
        source: in the syntax of POSIX.
        extended: as with `grep -E`.
        ignore_case: as with `grep -i`.
        fixed: the source is literal text.
        word: as with `grep -w`.
        line: as with `grep -x`.
    """
    # Each line of the source is an expression of its own.
    parts = [_escape(part) if fixed else _Translation(part, extended=extended).translate() for part in source.split("\n")]
    made = "|".join(f"(?:{part})" for part in parts) if len(parts) > 1 else parts[0]
    made = rf"\b(?:{made})\b" if word else made
    return Expression(rf"\A(?:{made})\z" if line else made, ignore_case=ignore_case)


def _escape(text: str) -> str:
    return "".join(f"\\{one}" if one in r"\.+*?()|[]{}^$" else one for one in text)


#: The operators that an extended expression writes as they are, and a basic one after a backslash.
_OPERATORS: Final = frozenset("(){}|+?")


class _Translation:
    """The translation of one expression to the syntax of RE2, from left to right."""

    __slots__ = ("_at_start", "_extended", "_is_repeated", "_made", "_place", "_source")

    def __init__(self, source: str, *, extended: bool) -> None:
        self._source = source
        self._extended = extended
        self._made: list[str] = []
        self._place = 0
        self._at_start = True
        """Whether nothing precedes that can be repeated: at the beginning of the expression, a group or an alternative."""
        self._is_repeated = False
        """Whether what precedes is repeated already; another repetition changes nothing."""

    def translate(self) -> str:
        """Returns the expression for RE2. Raises PatternError."""
        while self._place < len(self._source):
            one, is_escaped = self._take()
            if one in _OPERATORS and is_escaped is not self._extended:
                self._translate_operator(one)
            elif is_escaped:
                self._add(_translate_escape(one))
            elif one == "[":
                text, self._place = _bracket(self._source, self._place, escapes=False)
                self._add(text)
            elif one == "*":
                self._repeat(one)
            elif one in "^$":
                self._translate_anchor(one)
            else:
                self._add(one if one == "." else _escape(one))
        return "".join(self._made)

    def _take(self) -> tuple[str, bool]:
        """Returns the next character, and whether there was a backslash before it."""
        one = self._source[self._place]
        self._place += 1
        if one != "\\":
            return one, False
        if self._place >= len(self._source):
            raise PatternError("Trailing backslash")
        one = self._source[self._place]
        self._place += 1
        return one, True

    def _add(self, text: str) -> None:
        """Adds what a repetition may follow."""
        self._made.append(text)
        self._at_start = self._is_repeated = False

    def _translate_operator(self, one: str) -> None:
        if one in "(|":
            self._made.append(one)
            self._at_start, self._is_repeated = True, False
        elif one in "+?":
            self._repeat(one)
        elif one == "{":
            self._repeat_times()
        else:
            self._add(one if one == ")" else _escape(one))

    def _translate_anchor(self, one: str) -> None:
        """Translates `^` and `$`, which a basic expression has only at the beginning and at the end."""
        if one == "^" and (self._extended or self._at_start):
            self._made.append(r"\A")
        elif one == "$" and (self._extended or self._is_at_end()):
            self._made.append(r"\z")
        else:
            self._add(_escape(one))

    def _is_at_end(self) -> bool:
        """Reports whether a basic expression, a group or an alternative of it ends here."""
        return self._place == len(self._source) or self._source[self._place : self._place + 2] in (r"\)", r"\|")

    def _repeat(self, operator: str) -> None:
        """Repeats what precedes; at the start the operator stands for itself."""
        if self._at_start:
            self._add(_escape(operator))
            return
        if not self._is_repeated:
            self._made.append(operator)
        self._is_repeated = True

    def _repeat_times(self) -> None:
        """Translates the numbers after a brace, and their end; a brace without them stands for itself."""
        found = None if self._at_start else _REPETITION.match(self._source, self._place)
        if found is None:
            self._add(_escape("{"))
            return
        self._place = found.end()
        self._repeat(f"{{{found[1] or '0'}{found[2] or ''}{found[3] or ''}}}")


def _translate_escape(one: str) -> str:
    """Translates the character after a backslash. Raises PatternError."""
    if one in "123456789":
        raise PatternError("back references are not supported (RE2)")
    known = {"<": r"\b", ">": r"\b", "`": r"\A", "'": r"\z", "n": "\n", "t": "\t"}
    return known.get(one) or (f"\\{one}" if one in "wWsSbB" else _escape(one))


def _bracket(source: str, place: int, *, escapes: bool) -> tuple[str, int]:
    """Translates the bracket expression whose content begins at `place`. Returns it and the position after it.

    Args:
        source: the expression.
        place: the position after the bracket.
        escapes: whether a backslash quotes the next character, as in patterns of the shell.

    Raises PatternError.
    """
    made = "["
    if source[place : place + 1] == "^" or (escapes and source[place : place + 1] == "!"):
        made, place = "[^", place + 1
    start = place
    while place < len(source):
        one = source[place]
        if one == "]" and place > start:
            return made + "]", place + 1
        found = _CLASS.match(source, place)
        if found is not None and found[1] == ":":
            if found[2] not in _CLASSES:
                raise PatternError("Invalid character class name")
            made, place = f"{made}[:{found[2]}:]", found.end()
            continue
        if found is not None:
            one, place = found[2], found.end() - 1
        elif escapes and one == "\\" and place + 1 < len(source):
            place += 1
            one = source[place]
        elif one == "-" and start < place < len(source) - 1 and source[place + 1] != "]":
            made, place = made + "-", place + 1
            continue
        made += f"\\{one}" if one in "\\[]^-" else one
        place += 1
    raise PatternError("Unmatched [, [^, [:, [., or [=")


# --- Patterns of the shell --------------------------------------------------------------------------------------------


def _glob(pattern: str, *, many: str) -> str:
    made, place = list[str](), 0
    while place < len(pattern):
        one = pattern[place]
        place += 1
        if one == "*":
            made += () if made and made[-1] == many else (many,)
        elif one == "?":
            made.append(".")
        elif one == "\\" and place < len(pattern):
            made.append(_escape(pattern[place]))
            place += 1
        elif one == "[":
            try:
                text, place = _bracket(pattern, place, escapes=True)
            except PatternError:
                text = r"\["
            made.append(text)
        else:
            made.append(_escape(one))
    return "".join(made)


@lru_cache(maxsize=128)
def glob(pattern: str, *, form: str = "{}", lazy: bool = False) -> Expression:
    """Compiles a pattern of the shell; one that is invalid matches itself.

    Args:
        pattern: with `*`, `?` and `[…]`.
        form: the expression around it.
        lazy: whether `*` matches as little as possible.
    """
    try:
        return Expression(form.format(_glob(pattern, many=".*?" if lazy else ".*")), longest=not lazy and form == "{}")
    except PatternError:
        return Expression(form.format(_escape(pattern[:_MAX_LITERAL])))


#: The maximum length of a literal text that fits into `_MAX_MEMORY`.
_MAX_LITERAL: Final = 4096


def remove_prefix(text: str, pattern: str, *, longest: bool) -> str:
    """Removes the shortest or longest beginning that matches."""
    found = glob(pattern, lazy=not longest).match(text)
    return text if found is None else text[len(found[0]) :]


def remove_suffix(text: str, pattern: str, *, longest: bool) -> str:
    """Removes the shortest or longest end that matches."""
    found = glob(pattern, form=r"\A(.*?)(?:{})\z" if longest else r"\A(.*)(?:{})\z").match(text)
    return text if found is None else found[1]


_SPECIAL = re.compile(r"[*?\[]")


def escape(text: str) -> str:
    """Returns a pattern that matches this text only."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)


def is_pattern(text: str) -> bool:
    """Reports whether a text contains unescaped special characters."""
    return bool(_SPECIAL.search(re.sub(r"\\.", "", text)))
