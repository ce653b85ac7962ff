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


# ---------------------------------------------------------------- POSIX


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
    parts = [_escape(part) if fixed else _translate(part, extended=extended) for part in source.split("\n")]
    made = "|".join(f"(?:{part})" for part in parts) if len(parts) > 1 else parts[0]
    made = rf"\b(?:{made})\b" if word else made
    return Expression(rf"\A(?:{made})\z" if line else made, ignore_case=ignore_case)


def _escape(text: str) -> str:
    return "".join(f"\\{one}" if one in r"\.+*?()|[]{}^$" else one for one in text)


def _translate(source: str, *, extended: bool) -> str:
    """Translates an expression to the syntax of RE2. Raises PatternError."""
    made: list[str] = []
    place, at_start, repeated = 0, True, False
    while place < len(source):
        one = source[place]
        place += 1
        operator = one in "(){}|+?" and extended
        if one == "\\":
            if place >= len(source):
                raise PatternError("Trailing backslash")
            one = source[place]
            place += 1
            operator = one in "(){}|+?" and not extended
            if not operator:
                made.append(_translate_escape(one))
                at_start = repeated = False
                continue
        if one == "[":
            text, place = _bracket(source, place, escapes=False)
            made.append(text)
        elif one == "*" and not at_start:
            made += () if repeated else one
            repeated = True
            continue
        elif one == "^" and (extended or at_start):
            made.append(r"\A")
            continue
        elif one == "$" and (extended or place == len(source) or source[place : place + 2] in (r"\)", r"\|")):
            made.append(r"\z")
            continue
        elif one == ".":
            made.append(one)
        elif operator and one in "(|":
            made.append(one)
            at_start, repeated = True, False
            continue
        elif operator and one == ")":
            made.append(one)
        elif operator and one in "+?" and not at_start:
            made += () if repeated else one
            repeated = True
            continue
        elif operator and one == "{" and not at_start and (found := _REPETITION.match(source, place)) is not None:
            place = found.end()
            if not repeated:
                made.append(f"{{{found[1] or '0'}{found[2] or ''}{found[3] or ''}}}")
            repeated = True
            continue
        else:
            made.append(_escape(one))
        at_start = repeated = False
    return "".join(made)


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


# ---------------------------------------------------------------- patterns of the shell


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
