"""The commands that print their arguments: echo and printf.

Invariant: what printf makes is bounded by the memory of the container, whatever widths its format has.

Specified by: busybox coreutils/{echo,printf}.c (print_formatted, print_direc).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.scheduling import check_memory

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "e": "\x1b"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{1,3})|(.))", re.DOTALL)


def unescape(text: str) -> str:
    """Replaces backslash escapes; unknown ones stay."""

    def replace_escape(found: re.Match[str]) -> str:
        if found[1]:
            return bytes([int(found[1], 16)]).decode("utf-8", "surrogateescape")
        if found[2]:
            return bytes([int(found[2], 8) & 255]).decode("utf-8", "surrogateescape")
        return _ESCAPES.get(found[3], found[0])

    return _ESCAPE.sub(replace_escape, text)


async def _echo(program: Program) -> int:
    args, end, escapes = list(program.args), "\n", False
    while args and re.fullmatch(r"-[neE]+", args[0]):
        flags = args.pop(0)
        end = "" if "n" in flags else end
        escapes = "e" in flags or (escapes and "E" not in flags)
    text = " ".join(args)
    if escapes:
        text, stop, _ = text.partition("\\c")
        text, end = unescape(text), "" if stop else end
    await program.write(text + end)
    return 0


_CONVERSION: Final = re.compile(r"%(?:(%)|([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?[hlLqjzt]*([diouxXeEfFgGcsb]))")
_INTEGERS, _FLOATS = frozenset("diouxX"), frozenset("eEfFgG")
#: The maximum number of characters of a width or a precision.
_MAX_SIZE_LENGTH: Final = 19


async def _printf(program: Program) -> int:
    args = list(program.args)
    if args[:1] == ["--"]:
        del args[0]
    if not args:
        raise Usage("usage: printf FORMAT [ARGUMENT...]", 2)
    formatter = _Formatter(args[0], args[1:])
    while True:
        before = len(formatter.arguments)
        text, goes_on = formatter.format_once()
        await program.write(text)
        for problem in formatter.take_problems():
            await program.complain(problem)
        if not goes_on or not formatter.arguments or len(formatter.arguments) == before:
            return int(formatter.failed)


class _Formatter:
    """Applies a format to arguments, as often as there are arguments for it.

    Args:
        pattern: the format.
        arguments: the arguments; those that are used are removed.
    """

    def __init__(self, pattern: str, arguments: list[str]) -> None:
        self._pattern = pattern
        self.arguments = arguments
        self.failed = False
        """Whether a number or the format was invalid."""
        self._problems: list[str] = []

    def take_problems(self) -> list[str]:
        """Returns the error messages since the last call."""
        problems, self._problems = self._problems, []
        return problems

    def format_once(self) -> tuple[str, bool]:
        """Returns the text of one pass, and whether another one may follow: not after `\\c`, or an invalid format."""
        pattern, stop, _ = self._pattern.partition("\\c")
        made, place = "", 0
        while (start := pattern.find("%", place)) >= 0:
            made += unescape(pattern[place:start])
            found = _CONVERSION.match(pattern, start)
            if found is None:
                self._report(f"{pattern[start:]}: invalid format")
                return made, False
            text, ends = self._convert(found)
            made += text
            check_memory(len(made))
            if ends:
                return made, False
            place = found.end()
        return made + unescape(pattern[place:]), not stop

    def _report(self, problem: str) -> None:
        self.failed = True
        self._problems.append(problem)

    def _next(self) -> str:
        return self.arguments.pop(0) if self.arguments else ""

    def _convert(self, found: re.Match[str]) -> tuple[str, bool]:
        """Returns the text of a conversion, and whether the output ends with it (`\\c` in an argument of %b)."""
        if found[1]:
            return "%", False
        flags, kind = found[2], found[5]
        width, digits = self._read_size(found[3]), self._read_size(found[4])
        precision = "" if found[4] is None else f".{digits}"
        if kind in _INTEGERS:
            return f"%{flags}{width}{precision}{kind}" % self._read_integer(self._next(), signed=kind in "di"), False
        if kind in _FLOATS:
            return f"%{flags}{width}{precision}{kind}" % self._read_float(self._next()), False
        text, stop = self._next(), ""
        if kind == "b":
            text, stop, _ = text.partition("\\c")
            text = unescape(text)
        elif kind == "c":
            text = text[:1] or "\0"
        return f"%{flags}{width}{precision}s" % text, bool(stop)

    def _read_size(self, text: str | None) -> str:
        """Returns a width or precision as the text of a number; "*" takes it from the arguments."""
        if text == "*":
            text = str(self._read_integer(self._next(), signed=True))
        if not text:
            return ""
        if len(text) > _MAX_SIZE_LENGTH:
            raise Usage("invalid width")
        check_memory(abs(int(text)))
        return text

    def _read_integer(self, text: str, *, signed: bool) -> int:
        """Returns the number in an argument, which has 64 bits; 0, after an error message, if it is none."""
        if text[:1] in ("'", '"'):
            return ord(text[1:2] or "\0")
        found = re.fullmatch(r"\s*([-+]?)(?:0[xX]([0-9a-fA-F]{1,16})|0([0-7]{1,22})|([1-9][0-9]{0,19})|(0))", text, re.ASCII)
        if found is not None:
            number = next(int(digits, base) for digits, base in zip(found.groups()[1:], (16, 8, 10, 10), strict=True) if digits)
            number = -number if found[1] == "-" else number
            if -(1 << 63) <= number < 1 << (63 if signed else 64):
                return number if signed else number % (1 << 64)
        self._report(f"invalid number '{text}'")
        return 0

    def _read_float(self, text: str) -> float:
        if text[:1] in ("'", '"'):
            return float(ord(text[1:2] or "\0"))
        with suppress(ValueError):
            if "_" not in text:  # Python allows it between digits, C does not
                return float(text)
        self._report(f"invalid number '{text}'")
        return 0.0


COMMANDS: Final[dict[str, Command]] = {"echo": _echo, "printf": _printf}
