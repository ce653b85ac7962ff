"""`grep`, `egrep` and `fgrep`.

Specified by: POSIX.1-2017, Shell & Utilities (grep); busybox findutils/grep.c.
"""

from __future__ import annotations

from typing import Final

from fakekube.nodes.runtime.commands.options import options
from fakekube.nodes.runtime.filesystem import File
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.regular_expressions import PatternError, compile_posix

__all__ = ["COMMANDS"]


async def _grep(program: Program) -> int:
    flags, rest = options(program, "ivnclqoEFwxshHre:m:A:B:C:", ["color=", "color"])
    source = flags.get("e") if "e" in flags else rest.pop(0) if rest else None
    if source is None:
        raise Usage("usage: grep PATTERN [FILE]...", 2)
    fixed = "F" in flags or program.name == "fgrep"
    try:
        expression = compile_posix(
            source,
            extended="E" in flags or program.name == "egrep",
            ignore_case="i" in flags,
            fixed=fixed,
            word="w" in flags,
            line="x" in flags,
        )
    except PatternError as error:
        return await program.complain(f"bad regex '{source}': {error}", 2)
    paths = _recursive(program, rest) if "r" in flags else rest
    named = (len(paths) > 1 or "H" in flags or "r" in flags) and "h" not in flags
    found = False
    async for name, opened in program.inputs(paths):
        count, number, shown_to = 0, 0, 0
        before: list[str] = []
        ahead, behind = (int(flags.get(flag, flags.get("C", "0"))) for flag in "AB")
        async for raw in opened.lines():
            number += 1
            line = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
            prefix = (f"{name}:" if named else "") + (f"{number}:" if "n" in flags else "")
            if (expression.search(line) is not None) is ("v" in flags):
                if number <= shown_to and not flags.keys() & {"c", "l", "q", "o"}:
                    await program.write(f"{prefix.replace(':', '-')}{line}\n")
                before = [*before, line][-behind:] if behind else []
                continue
            count, found = count + 1, True
            if "q" in flags:
                return 0
            if "l" in flags:
                await program.write(f"{name}\n")
                break
            if "c" in flags:
                continue
            if "o" in flags:
                async for match in expression.matches(line):
                    if match[0]:
                        await program.write(f"{prefix}{match[0]}\n")
            else:
                await program.write("".join(f"{one}\n" for one in before) + f"{prefix}{line}\n")
                before, shown_to = [], number + ahead
            if count >= int(flags.get("m", "1000000000")):
                break
        if "c" in flags:
            await program.write(f"{name + ':' if named else ''}{count}\n")
    return 0 if found else 2 if program.failed else 1


def _recursive(program: Program, paths: list[str]) -> list[str]:
    return [path for top in paths or ["."] for path, node in program.files.walk(top, program.cwd) if isinstance(node, File)]


COMMANDS: Final[dict[str, Command]] = {"grep": _grep, "egrep": _grep, "fgrep": _grep}
