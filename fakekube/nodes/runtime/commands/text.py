"""Commands that read and write text, encode it and sum it.

Specified by: busybox coreutils and findutils (base64, cat, cut, echo, head, hexdump, md5sum, nl, od, printf, seq, sort, tail,
tee, tr, uniq, wc …).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from fakekube.nodes.runtime.descriptors import collect
from fakekube.nodes.runtime.program import Command, Program, Usage, options, size
from fakekube.nodes.runtime.scheduling import check_memory, checkpoint, sleep

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "e": "\x1b"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{1,3})|(.))", re.DOTALL)


def unescape(text: str) -> str:
    """Replaces backslash escapes."""

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


#: The number of lines that seq writes at once.
_AT_ONCE: Final = 512
_CONVERSION: Final = re.compile(r"%(%|([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?([diouxXeEfgGcsb]))")


async def _printf(program: Program) -> int:
    if not program.args:
        raise Usage("usage: printf FORMAT [ARGUMENT...]")
    pattern, rest = program.args[0], list(program.args[1:])
    while True:
        before = len(rest)
        await program.write(_format(pattern, rest))
        if not rest or len(rest) == before:
            return 0


def _format(pattern: str, rest: list[str]) -> str:
    def convert(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        width = rest.pop(0) if found[3] == "*" and rest else found[3] or ""
        digits = f".{found[4]}" if found[4] else ""
        check_memory(sum(int(one) for one in (width, found[4] or "") if one.strip("-").isdigit() and len(one) < 20))
        if any(len(one) >= 20 for one in (width, found[4] or "")):
            raise Usage("invalid width")
        value, kind = rest.pop(0) if rest else "", found[5]
        if kind in "sbc":
            shown = unescape(value) if kind == "b" else value[:1] if kind == "c" else value
            return f"%{found[2]}{width}{digits}s" % shown
        return f"%{found[2]}{width}{digits}{kind}" % _number(value, kind)

    made, place = "", 0
    for found in _CONVERSION.finditer(pattern):
        made += unescape(pattern[place : found.start()]) + convert(found)
        check_memory(len(made))
        place = found.end()
    return made + unescape(pattern[place:])


def _number(text: str, kind: str) -> int | float:
    text = text.strip() or "0"
    if text[0] in "'\"":
        return ord(text[1:2] or "\0")
    try:
        return float(text) if kind in "eEfgG" else int(text, 0 if not re.fullmatch(r"-?0\d+", text) else 8)
    except ValueError:
        raise Usage(f"invalid number '{text}'") from None


async def _cat(program: Program) -> int:
    flags, paths = options(program, "nbvetuAs")
    number = 0
    async for _, source in program.inputs(paths):
        if not flags:
            while part := await source.read():
                await program.stdout.write(part)
            continue
        async for line in source.lines():
            shown = line
            if "n" in flags or ("b" in flags and line.strip()):
                number += 1
                shown = f"{number:6}\t".encode() + line
            if "A" in flags or "e" in flags:
                shown = shown.replace(b"\n", b"$\n")
            await program.stdout.write(shown)
    return int(program.failed)


async def _tac(program: Program) -> int:
    async for _, source in program.inputs(program.args):
        lines = await collect(source.lines())
        await program.stdout.write(b"".join(reversed(lines)))
    return int(program.failed)


async def _rev(program: Program) -> int:
    async for line in _lines(program, program.args):
        await program.write(line[::-1] + "\n")
    return int(program.failed)


async def _lines(program: Program, paths: list[str] | tuple[str, ...] | object = ()) -> AsyncIterator[str]:
    async for _, source in program.inputs(paths):  # type: ignore[arg-type]
        async for line in source.lines():
            yield line.decode("utf-8", "surrogateescape").removesuffix("\n")


def _with_counts(args: list[str]) -> list[str]:
    """Replaces the old form `-5` of head and tail."""
    return [word for arg in args for word in (("-n", arg[1:]) if re.fullmatch(r"-\d+", arg) else (arg,))]


async def _head(program: Program) -> int:
    program.args = _with_counts(list(program.args))
    flags, paths = options(program, "n:c:qv", ["lines=", "bytes="], aliases={"lines": "n", "bytes": "c"})
    first = True
    async for name, source in program.inputs(paths):
        if len(paths) > 1:
            await program.write(f"{'' if first else chr(10)}==> {name} <==\n")
            first = False
        if "c" in flags:
            await program.stdout.write(await _at_most(source.read, size(flags["c"])))
            continue
        count = size(flags.get("n", "10"))
        if count < 0:
            await program.stdout.write(b"".join((await collect(source.lines()))[:count]))
            continue
        for _ in range(count):
            line = await source.readline()
            if not line:
                break
            await program.stdout.write(line)
    return int(program.failed)


async def _at_most(read: object, count: int) -> bytes:
    data = bytearray()
    while len(data) < count and (part := await read(count - len(data))):  # type: ignore[operator]
        data += part
        check_memory(len(data))
    return bytes(data)


async def _tail(program: Program) -> int:
    program.args = _with_counts(list(program.args))
    flags, paths = options(
        program, "n:c:fFqs:", ["lines=", "bytes=", "follow"], aliases={"lines": "n", "bytes": "c", "follow": "f"}
    )
    many = len(paths) > 1
    async for name, source in program.inputs(paths):
        if many:
            await program.write(f"==> {name} <==\n")
        if "c" in flags:
            count, data = flags["c"], await source.read_all()
            await program.stdout.write(data[int(count) - 1 :] if count.startswith("+") else data[-size(count) :])
        else:
            count = flags.get("n", "10")
            lines = await collect(source.lines())
            wanted = lines[int(count) - 1 :] if count.startswith("+") else lines[-size(count) :] if size(count) else []
            await program.stdout.write(b"".join(wanted))
        while "f" in flags or "F" in flags:
            while part := await source.read():
                await program.stdout.write(part)
            await sleep(float(flags.get("s", "1")))
    return int(program.failed)


async def _wc(program: Program) -> int:
    flags, paths = options(program, "lwcmL")
    wanted = [flag for flag in "lwcm" if flag in flags] or ["l", "w", "c"]
    totals = dict.fromkeys("lwcm", 0)
    counted = 0
    async for name, source in program.inputs(paths):
        data = await source.read_all()
        counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data), "m": len(data.decode("utf-8", "replace"))}
        totals = {key: totals[key] + counts[key] for key in totals}
        counted += 1
        await program.write(_counts(counts, wanted, name if paths else ""))
    if counted > 1:
        await program.write(_counts(totals, wanted, "total"))
    return int(program.failed)


def _counts(counts: dict[str, int], wanted: list[str], name: str) -> str:
    if len(wanted) == 1:
        return f"{counts[wanted[0]]}{' ' + name if name else ''}\n"
    return " ".join(f"{counts[key]:9}" for key in wanted) + (f" {name}" if name else "") + "\n"


async def _sort(program: Program) -> int:
    flags, paths = options(program, "nruk:t:fbho:V")
    lines = await collect(_lines(program, paths))

    def key(line: str) -> object:
        part = line
        if "k" in flags:
            first, _, last = flags["k"].partition(",")
            start = int(re.match(r"\d+", first)[0]) - 1  # type: ignore[index]
            end = int(re.match(r"\d+", last)[0]) if last else None  # type: ignore[index]
            part = flags.get("t", " ").join(line.split(flags.get("t"))[start:end])
        numeric = "n" in flags or "n" in flags.get("k", "") or "h" in flags
        if numeric:
            found = re.match(r"\s*(-?\d*\.?\d+)([KMGT]?)", part)
            value = float(found[1]) * 1024 ** " KMGT".index(found[2] or " ") if found else 0.0
            return (value, line)
        return (part.lower() if "f" in flags else part, line)

    lines.sort(key=key, reverse="r" in flags)  # type: ignore[arg-type]
    if "u" in flags:
        lines = list(dict.fromkeys(lines))
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    if "o" in flags:
        program.files.write(flags["o"], data, program.cwd)
    else:
        await program.write(data)
    return int(program.failed)


async def _uniq(program: Program) -> int:
    flags, paths = options(program, "cdui")
    runs: list[tuple[str, int]] = []
    total = 0
    async for line in _lines(program, paths[:1]):
        same = runs and (runs[-1][0].lower() == line.lower() if "i" in flags else runs[-1][0] == line)
        if same:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            continue
        runs.append((line, 1))
        total += len(line) + 100
        check_memory(total)
    for line, count in runs:
        if ("d" in flags and count == 1) or ("u" in flags and count > 1):
            continue
        await program.write(f"{count:7} {line}\n" if "c" in flags else f"{line}\n")
    return int(program.failed)


def _ranges(text: str) -> list[tuple[int, int]]:
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            start = int(first or 1)
            found.append((start, int(last) if last else (1 << 30 if dash else start)))
        except ValueError:
            raise Usage(f"invalid range '{text}'") from None
    return found


async def _cut(program: Program) -> int:
    flags, paths = options(program, "d:f:c:b:s", ["output-delimiter="])
    wanted = flags.get("f") or flags.get("c") or flags.get("b")
    if wanted is None:
        raise Usage("expected a list of bytes, characters, or fields")
    ranges, delimiter = _ranges(wanted), flags.get("d", "\t")
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


def _characters(text: str) -> list[str]:
    import string

    classes = {"lower": string.ascii_lowercase, "upper": string.ascii_uppercase, "digit": string.digits, "space": " \t\n\r\f\v",
               "alpha": string.ascii_letters, "alnum": string.ascii_letters + string.digits, "punct": string.punctuation,
               "blank": " \t"}  # fmt: skip
    text = re.sub(r"\[:(\w+):\]", lambda found: classes.get(found[1], ""), unescape(text))
    return [one for found in re.finditer(r"(.)-(.)|(.)", text, re.DOTALL) for one in _span(found)]


def _span(found: re.Match[str]) -> Iterator[str]:
    if found[3] is not None:
        yield found[3]
    else:
        yield from (chr(code) for code in range(ord(found[1]), ord(found[2]) + 1))


async def _tr(program: Program) -> int:
    flags, sets = options(program, "dscC", mixed=False)
    if not sets:
        raise Usage("usage: tr [-cds] STRING1 [STRING2]")
    first = _characters(sets[0])
    second = _characters(sets[1]) if len(sets) > 1 else []
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
    args = list(program.args)
    separator = "\n"
    if args[:1] == ["-s"]:
        separator, args = args[1], args[2:]
    try:
        values = [float(arg) for arg in args]
        first = values[0] if len(values) > 1 else 1.0
        step = values[1] if len(values) == 3 else 1.0
        last = values[-1]
    except (ValueError, IndexError):
        raise Usage("invalid number") from None
    whole = all(re.fullmatch(r"[-+]?\d+", arg) for arg in args)
    count = max(int((last - first) / step) + 1, 0) if step else 1 << 30
    for start in range(0, count, _AT_ONCE):
        numbers = (first + place * step for place in range(start, min(start + _AT_ONCE, count)))
        text = separator.join(str(int(one)) if whole else f"{one:g}" for one in numbers)
        await program.write((separator if start else "") + text)
        await checkpoint()
    if count:
        await program.write("\n")
    return 0


async def _run_yes(program: Program) -> int:
    line = " ".join(program.args) or "y"
    block = f"{line}\n" * max(1, 4096 // (len(line) + 1))
    while True:
        await program.write(block)
        await checkpoint()


async def _nl(program: Program) -> int:
    _, paths = options(program, "b:w:s:")
    number = 0
    async for line in _lines(program, paths):
        number += bool(line)
        await program.write(f"{number:6}\t{line}\n" if line else "\n")
    return int(program.failed)


async def _base64(program: Program) -> int:
    flags, paths = options(program, "dw:i", ["decode"], aliases={"decode": "d"})
    async for _, source in program.inputs(paths[:1]):
        data = await source.read_all()
        if "d" in flags:
            try:
                await program.stdout.write(base64.b64decode(b"".join(data.split()), validate=True))
            except binascii.Error:
                return await program.complain("invalid input")
            continue
        text, width = base64.b64encode(data).decode(), int(flags.get("w", "76"))
        lines = [text[at : at + width] for at in range(0, len(text), width)] if width else [text]
        await program.write("\n".join(lines) + ("\n" if width else ""))
    return int(program.failed)


async def _sum(program: Program) -> int:
    _, paths = options(program, "bt")
    async for name, source in program.inputs(paths):
        digest = hashlib.new(program.name.removesuffix("sum"), await source.read_all(), usedforsecurity=False)
        await program.write(f"{digest.hexdigest()}  {name}\n")
    return int(program.failed)


async def _hexdump(program: Program) -> int:
    _, paths = options(program, "Cvn:A:t:c")
    async for _, source in program.inputs(paths):
        data = await source.read_all()
        for at in range(0, len(data), 16):
            row = data[at : at + 16]
            shown = "".join(chr(one) if 32 <= one < 127 else "." for one in row)
            await program.write(f"{at:08x}  {' '.join(f'{one:02x}' for one in row):<48} |{shown}|\n")
        await program.write(f"{len(data):08x}\n")
    return int(program.failed)


COMMANDS: Final[dict[str, Command]] = {
    "cat": _cat,
    "cut": _cut,
    "echo": _echo,
    "head": _head,
    "nl": _nl,
    "printf": _printf,
    "rev": _rev,
    "seq": _seq,
    "sort": _sort,
    "tac": _tac,
    "tail": _tail,
    "tee": _tee,
    "tr": _tr,
    "uniq": _uniq,
    "wc": _wc,
    "yes": _run_yes,
    "base64": _base64,
    "hexdump": _hexdump,
    "md5sum": _sum,
    "od": _hexdump,
    "sha1sum": _sum,
    "sha256sum": _sum,
    "sha512sum": _sum,
}
