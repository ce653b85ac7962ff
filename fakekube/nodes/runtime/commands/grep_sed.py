"""`grep` and its other names, and `sed`: s, d, p, q, a, i, c, y, = with addresses; -n, -e, -E, -i.

Specified by: POSIX.1-2017, Shell & Utilities (grep, sed); busybox findutils/grep.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fakekube.nodes.runtime.descriptors import Descriptor, collect
from fakekube.nodes.runtime.filesystem import File
from fakekube.nodes.runtime.program import Command, Program, Usage, options
from fakekube.nodes.runtime.regular_expressions import Expression, Match, PatternError, compile_posix
from fakekube.nodes.runtime.scheduling import breathe


async def _grep(program: Program) -> int:
    flags, rest = options(program, "ivnclqoEFwxshHre:m:A:B:C:", ["color=", "color"])
    source = flags.get("e") if "e" in flags else rest.pop(0) if rest else None
    if source is None:
        raise Usage("usage: grep PATTERN [FILE]...", 2)
    try:
        expression = compile_posix(
            source,
            extended="E" in flags or program.name == "egrep",
            ignore_case="i" in flags,
            fixed="F" in flags or program.name == "fgrep",
            word="w" in flags,
            line="x" in flags,
        )
    except PatternError as error:
        return await program.complain(f"bad regex '{source}': {error}", 2)
    paths = _recursive(program, rest) if "r" in flags else rest
    names_files = (len(paths) > 1 or "H" in flags or "r" in flags) and "h" not in flags
    found = False
    async for name, opened in program.inputs(paths):
        count = await _grep_file(program, expression, flags, opened, name, prefix=f"{name}:" if names_files else "")
        found = found or count > 0
        if found and "q" in flags:
            return 0
        if "c" in flags:
            await program.write(f"{name + ':' if names_files else ''}{count}\n")
    return 0 if found else 2 if program.failed else 1


async def _grep_file(
    program: Program, expression: Expression, flags: Mapping[str, str], opened: Descriptor, name: str, *, prefix: str
) -> int:
    """Prints what `grep` prints of one file, and returns the number of its selected lines.

    Args:
        program: grep.
        expression: of the pattern.
        flags: the options. With -q, -l and -c no line is printed; with -o only the matches are, and -A, -B and -C have no effect.
        opened: the file.
        name: its name, for -l.
        prefix: begins every line of the output.
    """
    ahead, behind = (int(flags.get(flag, flags.get("C", "0"))) for flag in "AB")
    limit = int(flags.get("m", "1000000000"))
    is_context_shown = not flags.keys() & {"c", "l", "q", "o"}
    count, number, shown_to = 0, 0, 0
    before: list[str] = []
    async for raw in opened.lines():
        number += 1
        line = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
        start = prefix + (f"{number}:" if "n" in flags else "")
        if (expression.search(line) is not None) is ("v" in flags):
            if number <= shown_to and is_context_shown:
                await program.write(f"{start.replace(':', '-')}{line}\n")
            before = [*before, line][-behind:] if behind else []
            continue
        count += 1
        if "q" in flags:
            break
        if "l" in flags:
            await program.write(f"{name}\n")
            break
        if "c" in flags:
            continue
        if "o" in flags:
            async for match in expression.matches(line):
                if match[0]:
                    await program.write(f"{start}{match[0]}\n")
        else:
            await program.write("".join(f"{one}\n" for one in before) + f"{start}{line}\n")
            before, shown_to = [], number + ahead
        if count >= limit:
            break
    return count


def _recursive(program: Program, paths: list[str]) -> list[str]:
    return [path for top in paths or ["."] for path, node in program.files.walk(top, program.cwd) if isinstance(node, File)]


_Address = int | str | Expression | None


@dataclass(slots=True)
class _Step:
    first: _Address
    last: _Address
    negated: bool
    command: str
    pattern: Expression | None = None
    text: str = ""
    flags: str = ""
    active: bool = False

    def selects(self, line: str, number: int, *, is_last: bool) -> bool:
        """Reports whether the addresses of the step select a line."""
        if self.first is None:
            return not self.negated
        if self.last is None:
            return _is_at(self.first, line, number, is_last) is not self.negated
        if not self.active:
            self.active = chosen = _is_at(self.first, line, number, is_last)
            if chosen and isinstance(self.last, int) and self.last <= number:
                self.active = False
            return chosen is not self.negated
        self.active = not _is_at(self.last, line, number, is_last)
        return not self.negated


def _is_at(address: _Address, line: str, number: int, is_last: bool) -> bool:
    if isinstance(address, int):
        return number == address
    return is_last if isinstance(address, str) else bool(address is not None and address.search(line))


class _Reader:
    """Parses a script."""

    def __init__(self, text: str, *, extended: bool) -> None:
        self._text, self._at, self._extended = text, 0, extended

    def steps(self) -> list[_Step]:
        found: list[_Step] = []
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\n;":
                self._at += 1
            if self._at >= len(self._text):
                return found
            found.append(self._step())

    def _step(self) -> _Step:
        first, last = self._address(), None
        if self._peek() == ",":
            self._at += 1
            last = self._address()
        while self._peek() == " ":
            self._at += 1
        negated = self._peek() == "!"
        self._at += negated
        step = _Step(first, last, negated, self._peek())
        self._at += 1
        if step.command in ("s", "y"):
            source, step.text = self._parse_delimited(), ""
            self._at -= 1
            step.text = self._parse_delimited()
            if step.command == "y":
                step.flags = source
                return step
            found = re.compile(r"[gIip0-9]*").match(self._text, self._at)
            assert found is not None
            step.flags, self._at = found[0], found.end()
            step.pattern = self._compile(source, "i" in step.flags.lower())
        elif step.command in ("a", "i", "c"):
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end
            step.text = re.sub(r"^\s*\\?\n?\s*", "", self._text[self._at : end])
            self._at = end
        elif step.command not in ("d", "p", "q", "="):
            raise Usage(f"unsupported command {step.command}")
        return step

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _address(self) -> _Address:
        digits = re.compile(r"\d+").match(self._text, self._at)
        if digits is not None:
            self._at = digits.end()
            return int(digits[0])
        if self._peek() == "$":
            self._at += 1
            return "$"
        if self._peek() == "/":
            return self._compile(self._parse_delimited(), False)
        return None

    def _parse_delimited(self) -> str:
        """Parses the text between two delimiters."""
        mark, start = self._peek(), self._at + 1
        self._at = start
        while self._at < len(self._text) and self._text[self._at] != mark:
            self._at += 2 if self._text[self._at] == "\\" else 1
        if self._at >= len(self._text):
            raise Usage(f"unmatched '{mark}'")
        self._at += 1
        return self._text[start : self._at - 1].replace(f"\\{mark}", mark)

    def _compile(self, source: str, ignore: bool) -> Expression:
        try:
            return compile_posix(source, extended=self._extended, ignore_case=ignore)
        except PatternError as error:
            raise Usage(f"bad regex '{source}': {error}") from None


def _replacement(text: str, found: Match) -> str:
    def replace_part(part: re.Match[str]) -> str:
        if part[0] == "&":
            return found[0]
        if part[1].isdigit():
            return found[int(part[1])] if int(part[1]) <= found.groups else ""
        return {"n": "\n", "t": "\t"}.get(part[1], part[1])

    return re.sub(r"&|\\(.)", replace_part, text, flags=re.DOTALL)


async def _apply(step: _Step, line: str) -> tuple[str, bool]:
    """Applies a substitution. Returns the line, and whether it was changed."""
    assert step.pattern is not None
    digits = re.search(r"\d{1,9}", step.flags)
    wanted = max(int(digits[0]), 1) if digits else 1
    everywhere = None if "g" in step.flags else 1
    made, count = await step.pattern.replace(line, lambda found: _replacement(step.text, found), first=wanted, count=everywhere)
    return made, count >= wanted


async def _edit(lines: list[str], steps: list[_Step], *, quiet: bool) -> list[str]:
    made: list[str] = []
    for number, given in enumerate(lines, 1):
        await breathe()
        line = given
        appended: list[str] = []
        shown, stop = not quiet, False
        for step in steps:
            if not step.selects(line, number, is_last=number == len(lines)):
                continue
            if step.command == "s":
                line, changed = await _apply(step, line)
                made += [line] if changed and "p" in step.flags else []
            elif step.command == "y":
                line = line.translate(str.maketrans(step.flags, step.text))
            elif step.command == "p":
                made.append(line)
            elif step.command == "=":
                made.append(str(number))
            elif step.command == "a":
                appended.append(step.text)
            elif step.command == "i":
                made.append(step.text)
            elif step.command in ("d", "c"):
                made += [step.text] if step.command == "c" else []
                shown = False
                break
            else:
                stop = True
                break
        made += [line] if shown else []
        made += appended
        if stop:
            break
    return made


async def _sed(program: Program) -> int:
    args = [f"-i{arg[2:]}" if arg.startswith("-i") else arg for arg in program.args]
    inplace = any(re.fullmatch(r"-i.*", arg) for arg in args)
    scripts = [value for flag, value in pairwise(args) if flag == "-e"]
    program.args = [arg for arg in args if not arg.startswith("-i")]
    flags, operands = options(program, "ne:Ersf:")
    if "f" in flags:
        scripts.append(program.files.read(flags["f"], program.cwd).decode("utf-8", "surrogateescape"))
    if not scripts:
        scripts = [flags["e"]] if "e" in flags else [operands.pop(0)] if operands else []
    if not scripts:
        raise Usage("usage: sed [-i] [-n] [-E] SCRIPT [FILE]...")
    extended = "E" in flags or "r" in flags
    source = "\n".join(scripts)
    if inplace:
        for path in operands:
            try:
                lines = program.files.read(path, program.cwd).decode("utf-8", "surrogateescape").splitlines()
                edited = await _edit(lines, _Reader(source, extended=extended).steps(), quiet="n" in flags)
                text = "".join(f"{line}\n" for line in edited)
                program.files.write(path, text.encode("utf-8", "surrogateescape"), program.cwd)
            except OSError as error:
                return await program.complain_about(path, error)
        return 0
    lines = []
    async for _, opened in program.inputs(operands):
        lines += [raw.decode("utf-8", "surrogateescape").removesuffix("\n") for raw in await collect(opened.lines())]
    edited = await _edit(lines, _Reader(source, extended=extended).steps(), quiet="n" in flags)
    await program.write("".join(f"{line}\n" for line in edited))
    return int(program.failed)


COMMANDS: Final[dict[str, Command]] = {"grep": _grep, "egrep": _grep, "fgrep": _grep, "sed": _sed}
