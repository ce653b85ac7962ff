"""The command sort.

Specified by: busybox coreutils/sort.c (get_key, compare_keys, sort_main).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from typing import Any, Final

from fakekube.nodes.runtime.descriptors import collect
from fakekube.nodes.runtime.program import Command, Program, Usage, option_pairs

#: The exit code of errors; 1 says that the input of -c is not sorted.
_ERROR: Final = 2
#: Options that say how keys are compared; those of a key replace the global ones.
_ORDER: Final = frozenset("nghMVdfibr")
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_NUMBER: Final = re.compile(r"\s*([-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))([KMGT]?)", re.ASCII)
_KEY: Final = re.compile(r"([1-9]\d{0,8})(?:\.(\d{1,9}))?([a-zA-Z]*)(?:,(\d{1,9})(?:\.(\d{1,9}))?([a-zA-Z]*))?", re.ASCII)


@dataclass(slots=True, frozen=True)
class _Key:
    """A part of a line that is compared: from one place to another, each a field and a character from 1 on."""

    flags: frozenset[str]
    first: int = 1
    first_character: int = 0
    """0: from the beginning of the field."""
    last: int = 0
    """0: up to the end of the line."""
    last_character: int = 0
    """0: up to the end of the field."""

    def extract(self, line: str, separator: str) -> str:
        """Returns the part of a line; fields are separated by `separator`, or, with "", by the blanks before them."""
        start = _end_of_fields(line, self.first - 1, separator)
        end = len(line) if not self.last else _end_of_fields(line, self.last, separator)
        if self.last and separator and line[end - 1 : end] == separator:
            end -= 1
        if "b" in self.flags:
            start += len(line[start:]) - len(line[start:].lstrip())
        if self.last_character:
            end = min(self.last_character, len(line))
        if self.first_character:
            start = min(start + self.first_character - 1, len(line))
        text = line[start : max(start, end)]
        if "d" in self.flags:
            text = "".join(one for one in text if one.isalnum() or one.isspace())
        if "i" in self.flags:
            text = "".join(one for one in text if one.isprintable())
        return text.upper() if "f" in self.flags else text


def _end_of_fields(line: str, count: int, separator: str) -> int:
    """Returns the place after so many fields, their separators included."""
    pattern = f"[^{re.escape(separator)}]*{re.escape(separator)}?" if separator else r"\s*\S*"
    found = re.match(f"(?:{pattern}){{{min(count, len(line) + 1)}}}", line, re.DOTALL)
    return found.end() if found is not None else len(line)


def _parse_key(text: str, shared: frozenset[str]) -> _Key:
    """Parses the value of -k, START[.CHARACTER][FLAGS][,END[.CHARACTER][FLAGS]]; without flags the shared ones count."""
    found = _KEY.fullmatch(text)
    own = frozenset() if found is None else frozenset(found[3] + (found[6] or ""))
    if found is None or not own <= _ORDER:
        raise Usage("bad field specification", _ERROR)
    return _Key(own or shared, int(found[1]), int(found[2] or 0), int(found[4] or 0), int(found[5] or 0))


def _value_of(text: str, flags: frozenset[str]) -> Any:
    """Returns what a key is compared by: values of the same flags have the same type."""
    if flags & {"n", "g", "h"}:
        found = _NUMBER.match(text)
        if found is None:
            return 0.0
        number = float(int(found[1], 16)) if "x" in found[1].lower() else float(found[1])
        return number * 1024 ** (" KMGT".index(found[2] or " ") if "h" in flags else 0)
    if "M" in flags:
        month = text.strip()[:3].upper()
        return _MONTHS.index(month) if month in _MONTHS else -1
    if "V" in flags:
        parts = re.split(r"(\d+)", text, flags=re.ASCII)
        return tuple((int(one[-18:]), one) if number % 2 else (-1, one) for number, one in enumerate(parts))
    return text


@dataclass(slots=True, frozen=True)
class _Order:
    """The order of lines."""

    keys: Sequence[_Key]
    separator: str
    last_resort: bool
    """Whether lines with equal keys are compared as a whole; else they stay in their order."""
    reverse: bool
    """Whether the last resort is reversed."""

    def values(self, line: str) -> list[Any]:
        """Returns what a line is compared by before the last resort."""
        return [self._value(key, line) for key in self.keys]

    def _value(self, key: _Key, line: str) -> Any:
        return _value_of(key.extract(line, self.separator), key.flags)

    def sort(self, lines: Sequence[str]) -> list[str]:
        """Returns the lines in order."""
        # Python's sort is stable, so that the last criterion comes first.
        found = sorted(lines, reverse=self.reverse) if self.last_resort else list(lines)
        for key in reversed(self.keys):
            found.sort(key=partial(self._value, key), reverse="r" in key.flags)
        return found


async def _sort(program: Program) -> int:
    pairs, paths = option_pairs(program, "nghMVdfibrucszmk:t:o:")
    given = dict(pairs)
    flags = frozenset(given)
    shared = flags & _ORDER
    keys = [_parse_key(value, shared) for name, value in pairs if name == "k"] or [_Key(shared)]
    order = _Order(keys, given.get("t", "")[:1], "s" not in flags, "r" in flags)
    end = "\0" if "z" in flags else "\n"
    lines = await collect(_read_lines(program, paths, end))
    if program.failed:
        return _ERROR
    if "c" in flags:
        return await _check_order(program, lines, order, unique="u" in flags)
    lines = order.sort(lines)
    if "u" in flags:
        lines = [next(equal) for _, equal in groupby(lines, order.values)]
    data = "".join(f"{line}{end}" for line in lines).encode("utf-8", "surrogateescape")
    if "o" in flags:
        program.write_file(given["o"], data)
    else:
        await program.write(data)
    return 0


async def _check_order(program: Program, lines: Sequence[str], order: _Order, *, unique: bool) -> int:
    """Returns the exit code of -c: 1, after a message about the first line that is not in order, if there is one."""
    for number, pair in enumerate(pairwise(lines), 1):
        if order.sort(pair) != list(pair) or (unique and order.values(pair[0]) == order.values(pair[1])):
            await program.stderr.write(f"Check line {number}\n".encode())
            return 1
    return 0


async def _read_lines(program: Program, paths: Sequence[str], end: str) -> AsyncIterator[str]:
    async for _, source in program.inputs(paths):
        if end == "\n":
            async for line in source.lines():
                yield line.decode("utf-8", "surrogateescape").removesuffix("\n")
        else:
            text = (await source.read_all()).decode("utf-8", "surrogateescape")
            for part in text.removesuffix(end).split(end) if text else ():
                yield part


COMMANDS: Final[dict[str, Command]] = {"sort": _sort}
