"""Commands that read and write lines of text.

Specified by: busybox coreutils/{cat,cut,head,nl,paste,seq,tac,tail,tee,tr,uniq,wc,yes}.c, libbb/printable.c, util-linux/rev.c.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from fakekube.nodes.runtime.commands.echo import unescape
from fakekube.nodes.runtime.descriptors import CHUNK, Descriptor, collect
from fakekube.nodes.runtime.program import Command, Program, Usage, options, size
from fakekube.nodes.runtime.scheduling import check_memory, checkpoint, sleep

#: The number of lines that seq writes at once.
_SEQ_LINES: Final = 512


async def _cat(program: Program) -> int:
    flags, paths = options(program, "nbvetuA")
    shows_tabs, shows_ends = bool({"t", "A"} & flags.keys()), bool({"e", "A"} & flags.keys())
    shows_bytes = shows_tabs or shows_ends or "v" in flags
    numbers, number = bool({"n", "b"} & flags.keys()), 0
    async for _, source in program.inputs(paths):
        if not flags:
            while part := await source.read():
                await program.stdout.write(part)
            continue
        async for line in source.lines():
            text, end = line.removesuffix(b"\n"), line[len(line.removesuffix(b"\n")) :]
            if shows_bytes:
                text = "".join(_print_byte(one, shows_tabs=shows_tabs) for one in text).encode()
                end = b"$\n" if shows_ends and end else end
            elif numbers:
                end = b"\n"
            if numbers and not ("b" in flags and not text):
                number += 1
                text = b"%6d\t%b" % (number, text)
            await program.stdout.write(text + end)
    return int(program.failed)


def _print_byte(code: int, *, shows_tabs: bool) -> str:
    """Returns a byte as ^X or M-X unless it is printable (visible)."""
    if code >= 128:
        return f"M-{_print_byte(code - 128, shows_tabs=True)}"
    if code == 127:
        return "^?"
    return f"^{chr(code + 64)}" if code < 32 and (shows_tabs or code != ord("\t")) else chr(code)


async def _tac(program: Program) -> int:
    async for _, source in program.inputs(program.args):
        lines = await collect(source.lines())
        await program.stdout.write(b"".join(reversed(lines)))
    return int(program.failed)


async def _rev(program: Program) -> int:
    async for _, source in program.inputs(program.args):
        async for line in source.lines():
            text = line.decode("utf-8", "surrogateescape")
            await program.write(text.removesuffix("\n")[::-1] + ("\n" if text.endswith("\n") else ""))
    return int(program.failed)


async def _lines(program: Program, paths: Sequence[str] = ()) -> AsyncIterator[str]:
    """Yields the lines of files, by default of stdin, without their ends."""
    async for _, source in program.inputs(paths):
        async for line in source.lines():
            yield line.decode("utf-8", "surrogateescape").removesuffix("\n")


def _with_option_for_count(args: Sequence[str]) -> list[str]:
    """Replaces the old form `-5` or `+5` of the first argument of head and tail by `-n`."""
    if args and re.fullmatch(r"[-+]\d\w*", args[0]):
        return ["-n", args[0].removeprefix("-"), *args[1:]]
    return list(args)


async def _named_inputs(program: Program, flags: Mapping[str, str], paths: Sequence[str]) -> AsyncIterator[Descriptor]:
    """Yields the inputs of head and tail; before each it writes a line with its name, if there are several or with -v."""
    names, first = "v" in flags or (len(paths) > 1 and "q" not in flags), True
    async for name, source in program.inputs(paths):
        if names:
            await program.write(f"{'' if first else chr(10)}==> {'standard input' if name == '-' else name} <==\n")
        first = False
        yield source


async def _head(program: Program) -> int:
    program.args = _with_option_for_count(program.args)
    flags, paths = options(program, "n:c:qv", ["lines=", "bytes="], aliases={"lines": "n", "bytes": "c"})
    count = _count(flags.get("c", flags.get("n", "10")), signs="-")
    async for source in _named_inputs(program, flags, paths):
        if "c" in flags and count < 0:
            await program.stdout.write((await source.read_all())[:count])
        elif "c" in flags:
            await _copy_bytes(program, source, count)
        elif count < 0:
            await program.stdout.write(b"".join((await collect(source.lines()))[:count]))
        else:
            await _copy_lines(program, source, count)
    return int(program.failed)


def _count(text: str, *, signs: str) -> int:
    """Parses the count of head or tail; one of these signs may be before it. Raises Usage."""
    digits = text[1:] if text[:1] and text[0] in signs else text
    if not digits[:1].isdigit():
        raise Usage(f"invalid number '{digits}'")
    return -size(digits) if text != digits and text[0] == "-" else size(digits)


async def _copy_lines(program: Program, source: Descriptor, count: int) -> None:
    for _ in range(count):
        line = await source.readline()
        if not line:
            break
        await program.stdout.write(line)


async def _copy_bytes(program: Program, source: Descriptor, count: int) -> None:
    while count > 0 and (part := await source.read(min(count, CHUNK))):
        await program.stdout.write(part)
        count -= len(part)


async def _tail(program: Program) -> int:
    program.args = _with_option_for_count(program.args)
    flags, paths = options(
        program, "n:c:fFqvs:", ["lines=", "bytes=", "follow"], aliases={"lines": "n", "bytes": "c", "follow": "f"}
    )
    text = flags.get("c", flags.get("n", "10"))
    count, from_start = abs(_count(text, signs="-+")), text.startswith("+")
    async for source in _named_inputs(program, flags, paths):
        if "c" in flags:
            await program.stdout.write(_take_last(await source.read_all(), count, from_start=from_start))
        else:
            await program.stdout.write(b"".join(_take_last(await collect(source.lines()), count, from_start=from_start)))
        while "f" in flags or "F" in flags:
            while part := await source.read():
                await program.stdout.write(part)
            await sleep(size(flags.get("s", "1")))
    return int(program.failed)


_Items = TypeVar("_Items", bytes, list[bytes])


def _take_last(items: _Items, count: int, *, from_start: bool) -> _Items:
    """Returns so many of the last items, or with `from_start` those from this one on, counted from 1."""
    return items[max(count - 1, 0) if from_start else max(len(items) - count, 0) :]


async def _wc(program: Program) -> int:
    flags, paths = options(program, "lwcmL")
    wanted = [flag for flag in _COUNTS if flag in flags] or ["l", "w", "c"]
    totals = dict.fromkeys(_COUNTS, 0)
    inputs = 0
    async for name, source in program.inputs(paths):
        data = await source.read_all()
        text = data.decode("utf-8", "replace")
        longest = max((len(line.expandtabs(8)) for line in text.split("\n")), default=0)
        counts = {"l": data.count(b"\n"), "w": len(data.split()), "m": len(text), "c": len(data), "L": longest}
        totals = {key: max(totals[key], counts[key]) if key == "L" else totals[key] + counts[key] for key in _COUNTS}
        inputs += 1
        await program.write(_print_counts(counts, wanted, name if paths else ""))
    if inputs > 1:
        await program.write(_print_counts(totals, wanted, "total"))
    return int(program.failed)


#: The counts of wc, in the order in which they are printed.
_COUNTS: Final = ("l", "w", "m", "c", "L")


def _print_counts(counts: Mapping[str, int], wanted: Sequence[str], name: str) -> str:
    if len(wanted) == 1:
        return f"{counts[wanted[0]]}{' ' + name if name else ''}\n"
    return " ".join(f"{counts[key]:9}" for key in wanted) + (f" {name}" if name else "") + "\n"


async def _uniq(program: Program) -> int:
    flags, paths = options(program, "cduizf:s:w:")
    fields, skip, width = (size(flags.get(name, "0")) for name in "fsw")
    runs: list[tuple[str, int]] = []
    last, total = "", 0

    def key_of(line: str) -> str:
        key = re.sub(rf"\A(?:[ \t]*[^ \t]*){{{fields}}}", "", line)[skip:] if fields or skip else line
        key = key[:width] if "w" in flags else key
        return key.lower() if "i" in flags else key

    async for line in _lines(program, paths[:1]):
        key = key_of(line)
        if runs and key == last:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            continue
        runs.append((line, 1))
        last = key
        total += len(line) + 100
        check_memory(total)
    shown = [run for run in runs if not ("d" in flags and run[1] == 1) and not ("u" in flags and run[1] > 1)]
    text = "".join(f"{count:7} {line}\n" if "c" in flags else f"{line}\n" for line, count in shown)
    if len(paths) > 1 and paths[1] != "-":
        program.write_file(paths[1], text.encode("utf-8", "surrogateescape"))
    else:
        await program.write(text)
    return int(program.failed)


def _parse_ranges(text: str) -> list[tuple[int, int]]:
    """Parses the list of cut, such as `1,3-5,7-`. Raises Usage."""
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        for number in filter(None, (first, last)):
            if not re.fullmatch(r"[0-9]{1,9}", number):
                raise Usage(f"invalid number '{number}'")
        start = max(int(first or 1), 1)
        end = max(int(last), 1) if last else (1 << 30 if dash else start)
        if end < start:
            raise Usage(f"{end}<{start}")
        found.append((start, end))
    return found


async def _cut(program: Program) -> int:
    flags, paths = options(program, "d:f:c:b:s", ["output-delimiter="])
    wanted = flags.get("f") or flags.get("c") or flags.get("b")
    if wanted is None:
        raise Usage("expected a list of bytes, characters, or fields")
    ranges, delimiter = _parse_ranges(wanted), flags.get("d", "\t") or "\0"
    async for line in _lines(program, paths):
        if "f" not in flags:
            await program.write("".join(one for n, one in enumerate(line, 1) if any(a <= n <= b for a, b in ranges)) + "\n")
            continue
        parts = line.split(delimiter)
        if len(parts) == 1:
            if "s" not in flags:
                await program.write(f"{line}\n")
            continue
        chosen = [one for n, one in enumerate(parts, 1) if any(a <= n <= b for a, b in ranges)]
        await program.write(flags.get("output-delimiter", delimiter).join(chosen) + "\n")
    return int(program.failed)


def _expand_set(text: str) -> list[str]:
    """Returns the characters of a string of tr, with its escapes, ranges and classes."""
    import string

    classes = {"lower": string.ascii_lowercase, "upper": string.ascii_uppercase, "digit": string.digits, "space": " \t\n\r\f\v",
               "alpha": string.ascii_letters, "alnum": string.ascii_letters + string.digits, "punct": string.punctuation,
               "blank": " \t"}  # fmt: skip
    text = re.sub(r"\[:(\w+):\]", lambda found: classes.get(found[1], ""), unescape(text))
    return [one for found in re.finditer(r"(.)-(.)|(.)", text, re.DOTALL) for one in _expand_range(found)]


def _expand_range(found: re.Match[str]) -> Iterator[str]:
    if found[3] is not None:
        yield found[3]
    else:
        yield from (chr(code) for code in range(ord(found[1]), ord(found[2]) + 1))


async def _tr(program: Program) -> int:
    flags, sets = options(program, "dscC", mixed=False)
    if not sets:
        raise Usage("usage: tr [-cds] STRING1 [STRING2]")
    first = _expand_set(sets[0])
    second = _expand_set(sets[1]) if len(sets) > 1 else []
    complement = "c" in flags or "C" in flags
    table = {} if complement or not second else {one: second[min(n, len(second) - 1)] for n, one in enumerate(first)}
    squeezed = set(second or first) if "s" in flags else set()
    last = ""
    while part := await program.stdin.read():
        made = []
        for one in part.decode("utf-8", "surrogateescape"):
            within = (one in first) is not complement
            if within and "d" in flags:
                continue
            shown = second[-1] if within and complement and second else table.get(one, one)
            if shown in squeezed and shown == last:
                continue
            made.append(shown)
            last = shown
        await program.write("".join(made))
    return 0


async def _tee(program: Program) -> int:
    flags, paths = options(program, "ai")
    opened = []
    code = 0
    for path in paths:
        try:
            opened.append(program.open(path, write=True, append="a" in flags, read=False))
        except OSError as error:
            code = await program.complain_about(path, error)
    try:
        while part := await program.stdin.read():
            await program.stdout.write(part)
            for one in opened:
                await one.write(part)
    finally:
        for one in opened:
            one.close()
    return code


async def _seq(program: Program) -> int:
    flags, operands = options(program, "+ws:", mixed=False) if not _begins_with_number(program.args) else ({}, list(program.args))
    if not 1 <= len(operands) <= 3:
        raise Usage("usage: seq [-w] [-s SEP] [FIRST [INC]] LAST")
    numbers = [_read_number(one) for one in operands]
    first = numbers[0] if len(numbers) > 1 else 1.0
    step, last = numbers[1] if len(numbers) == 3 else 1.0, numbers[-1]
    digits = max(len(one.partition(".")[2]) for one in operands)
    width = max(len(f"{one:.{digits}f}") for one in (first, last)) if "w" in flags and math.isfinite(last) else 0
    separator = flags.get("s", "\n")
    count = 1 << 62 if not step or math.isinf(last) else max(math.floor((last - first) / step * (1 + 1e-12) + 1e-12) + 1, 0)
    for start in range(0, count, _SEQ_LINES):
        lines = (f"{first + place * step:0{width}.{digits}f}" for place in range(start, min(start + _SEQ_LINES, count)))
        await program.write((separator if start else "") + separator.join(lines))
        await checkpoint()
    if count:
        await program.write("\n")
    return 0


def _begins_with_number(args: Sequence[str]) -> bool:
    """Reports whether the first argument is a number, which may be negative, and no option."""
    return bool(args) and re.fullmatch(r"[-+]?[\d.].*", args[0]) is not None


def _read_number(text: str) -> float:
    """Parses a number of seq. Raises Usage."""
    try:
        number = float(int(text, 16)) if text.lower().startswith("0x") else float(text)
    except (ValueError, OverflowError):
        raise Usage(f"invalid number '{text}'") from None
    if math.isnan(number) or "_" in text:
        raise Usage(f"invalid number '{text}'")
    return number


async def _run_yes(program: Program) -> int:
    line = " ".join(program.args) or "y"
    block = f"{line}\n" * max(1, 4096 // (len(line) + 1))
    while True:
        await program.write(block)
        await checkpoint()


async def _nl(program: Program) -> int:
    flags, paths = options(program, "b:i:v:w:s:l:")
    style, separator = flags.get("b", "t")[:1], flags.get("s", "\t")
    step, number, width = size(flags.get("i", "1")), size(flags.get("v", "1")), size(flags.get("w", "6"))
    check_memory(width + len(separator))
    async for line in _lines(program, paths):
        if style == "a" or (style == "t" and line):
            await program.write(f"{number:{max(width, 1)}}{separator}{line}\n")
            number += step
        else:
            await program.write(f"{' ' * (width + len(separator))}{line}\n")
    return int(program.failed)


async def _paste(program: Program) -> int:
    flags, paths = options(program, "d:s")
    delimiters = [_ESCAPES.get(one, one) for one in re.findall(r"\\.|[^\\]", flags.get("d", "\t"))]
    if not delimiters:
        raise Usage("-d '' is not supported")
    opened: list[Descriptor] = []
    try:
        for path in paths or ["-"]:
            opened.append(program.stdin if path == "-" else program.open(path))
        await (_paste_each if "s" in flags else _paste_rows)(program, opened, delimiters)
    except OSError as error:
        return await program.complain(f"can't open '{path}': {error.strerror}")
    finally:
        for one in opened:
            if one is not program.stdin:
                one.close()
    return 0


#: The delimiters of paste that are written with a backslash.
_ESCAPES: Final = {r"\n": "\n", r"\t": "\t", r"\0": "", r"\\": "\\"}


async def _paste_rows(program: Program, inputs: Sequence[Descriptor], delimiters: Sequence[str]) -> None:
    """Writes a line of each input in a row; only a line of the last input ends the row, as in busybox."""
    active: list[Descriptor | None] = [*inputs]
    while any(one is not None for one in active):
        separators = itertools.cycle(delimiters)
        for index, one in enumerate(active):
            line = await one.readline() if one is not None else b""
            if not line:
                active[index] = None
                continue
            end = "\n" if index == len(active) - 1 else next(separators)
            await program.write(line.removesuffix(b"\n") + end.encode())


async def _paste_each(program: Program, inputs: Sequence[Descriptor], delimiters: Sequence[str]) -> None:
    """Writes the lines of each input in one row."""
    for one in inputs:
        separators = itertools.cycle(delimiters)
        line = await one.readline()
        while line:
            following = await one.readline()
            await program.write(line.removesuffix(b"\n") + (next(separators) if following else "\n").encode())
            line = following


COMMANDS: Final[dict[str, Command]] = {
    "cat": _cat,
    "cut": _cut,
    "head": _head,
    "nl": _nl,
    "paste": _paste,
    "rev": _rev,
    "seq": _seq,
    "tac": _tac,
    "tail": _tail,
    "tee": _tee,
    "tr": _tr,
    "uniq": _uniq,
    "wc": _wc,
    "yes": _run_yes,
}
