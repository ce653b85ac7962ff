"""Commands that show or change how data are encoded: base64, checksums, od and hexdump.

Specified by: busybox coreutils/{base32,md5_sha1_sum,od}.c (od_bloaty.c), util-linux/hexdump.c, libbb/dump.c.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from fakekube.nodes.runtime.program import Command, Program, Usage, option_pairs, options, size
from fakekube.nodes.runtime.scheduling import check_memory

# --- base64 and checksums ---------------------------------------------------------------------------------------------

_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/=\s]")


async def _base64(program: Program) -> int:
    flags, paths = options(program, "dw:i", ["decode"], aliases={"decode": "d"})
    async for _, source in program.inputs(paths[:1]):
        data = await source.read_all()
        if "d" in flags:
            return await _decode_base64(program, data)
        text, width = base64.b64encode(data).decode(), size(flags.get("w", "76"))
        lines = [text[at : at + width] for at in range(0, len(text), width)] if width > 0 else [text]
        await program.write("\n".join(lines) + ("\n" if width > 0 else ""))
    return int(program.failed)


async def _decode_base64(program: Program, data: bytes) -> int:
    """Writes what the first groups of four characters encode; what follows an invalid character is not read."""
    end = _NOT_BASE64.search(data)
    given = b"".join((data if end is None else data[: end.start()]).split())
    groups = [given[at : at + 4] for at in range(0, len(given), 4)]
    valid = list(takewhile(re.compile(rb"[^=]{2}(?:[^=]{2}|[^=]=|==)").fullmatch, groups))
    final = next((number for number, group in enumerate(valid) if group.endswith(b"=")), len(valid))
    await program.write(base64.b64decode(b"".join(valid[: final + 1])))
    return 0 if len(valid) == len(groups) and final >= len(groups) - 1 else await program.complain("truncated input")


async def _sum(program: Program) -> int:
    flags, paths = options(program, "btcs")
    if "c" in flags:
        return await _check_sums(program, paths, silent="s" in flags)
    async for name, source in program.inputs(paths):
        await program.write(f"{_digest(program, await source.read_all())}  {name}\n")
    return int(program.failed)


def _digest(program: Program, data: bytes) -> str:
    return hashlib.new(program.name.removesuffix("sum"), data, usedforsecurity=False).hexdigest()


async def _check_sums(program: Program, paths: Sequence[str], *, silent: bool) -> int:
    """Checks the files that lists of checksums name, and writes what is wrong."""
    code = 0
    async for name, source in program.inputs(paths):
        lines = (await source.read_all()).decode("utf-8", "surrogateescape").splitlines()
        bad = 0
        for line in lines:
            digest, _, path = line.partition("  ")
            good = bool(path) and await _has_digest(program, path, digest)
            bad += not good
            if path and not silent:
                await program.write(f"{path}: {'OK' if good else 'FAILED'}\n")
        if bad and not silent:
            await program.complain(f"WARNING: {bad} of {len(lines)} computed checksums did NOT match")
        if not lines:
            await program.complain(f"{name}: no checksum lines found")
        code |= bool(bad or not lines)
    return int(code or program.failed)


async def _has_digest(program: Program, path: str, digest: str) -> bool:
    async for _, source in program.inputs([path]):
        return _digest(program, await source.read_all()) == digest.lower()
    return False


# --- od and hexdump ---------------------------------------------------------------------------------------------------

_C_ESCAPES: Final = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_ASCII_NAMES: Final = (
    "nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "nl", "vt", "ff", "cr", "so", "si", "dle",
    "dc1", "dc2", "dc3", "dc4", "nak", "syn", "etb", "can", "em", "sub", "esc", "fs", "gs", "rs", "us", "sp",
)  # fmt: skip
_DELETE: Final = 127


def _c_character(code: int) -> str:
    """Returns a byte as a character, an escape of C, or three octal digits."""
    return _C_ESCAPES.get(code) or (chr(code) if 32 <= code < _DELETE else f"{code:03o}")


def _named_character(code: int) -> str:
    """Returns a byte without its highest bit as a character, or its name in ASCII."""
    code &= _DELETE
    return "del" if code == _DELETE else _ASCII_NAMES[code] if code < len(_ASCII_NAMES) else chr(code)


@dataclass(slots=True, frozen=True)
class _Type:
    """How numbers of some bytes are printed, the least significant byte first."""

    length: int
    """The number of bytes of a number."""
    width: int
    """The number of characters of a number, the blanks before it included."""
    show: Callable[[int], str]
    signed: bool = False

    def print_row(self, data: bytes) -> str:
        """Returns the numbers in some bytes; zeros stand for bytes that the last one lacks."""
        numbers = (data[at : at + self.length] for at in range(0, len(data), self.length))
        return "".join(
            self.show(int.from_bytes(one.ljust(self.length, b"\0"), "little", signed=self.signed)).rjust(self.width)
            for one in numbers
        )


def _integer_type(base: str, length: int) -> _Type:
    """Returns the type of integers: base o, x, u or d, which is signed."""
    digits = {"o": -(-length * 8 // 3), "x": length * 2}.get(base)
    if digits is not None:
        return _Type(length, digits + 1, f"{{:0{digits}{base}}}".format)
    width = len(str(1 << (8 * length))) + 1
    return _Type(length, width + 1, str, signed=True) if base == "d" else _Type(length, width, str)


_CHARACTERS: Final = _Type(1, 4, _c_character)
_NAMES: Final = _Type(1, 4, _named_character)
#: The options of od that stand for a type.
_OD_TYPES: Final = {
    "a": "a", "b": "o1", "c": "c", "d": "u2", "h": "x2", "i": "d2", "l": "d4", "o": "o2", "s": "d2", "x": "x2",
}  # fmt: skip
_LENGTHS: Final = {"": 4, "1": 1, "2": 2, "4": 4, "8": 8, "C": 1, "S": 2, "I": 4, "L": 8}
_RADIXES: Final = {"o": "{:07o}", "d": "{:07d}", "x": "{:06x}", "n": ""}


def _parse_types(text: str) -> list[_Type]:
    """Parses the value of od -t, such as x1 or cx4. Raises Usage."""
    found, place = list[_Type](), 0
    while place < len(text):
        match = re.compile(r"([ac])|([doux])([1248CSIL]?)").match(text, place)
        if match is None:
            raise Usage(f"invalid character '{text[place]}' in type string '{text}'")
        one = match[1]
        found.append({"a": _NAMES, "c": _CHARACTERS}[one] if one else _integer_type(match[2], _LENGTHS[match[3]]))
        place = match.end()
    return found


async def _od(program: Program) -> int:
    pairs, paths = option_pairs(program, "abcdhilosxvA:N:j:t:w:")
    given = dict(pairs)
    types = [one for name, value in pairs if name == "t" for one in _parse_types(value)]
    types += [one for name in sorted(given) if name in _OD_TYPES for one in _parse_types(_OD_TYPES[name])]
    radix, skip = _RADIXES.get(given.get("A", "o")[:1]), size(given.get("j", "0"))
    if radix is None:
        raise Usage(f"invalid output address radix '{given['A']}'; it must be one of [doxn]")
    data = await _read_inputs(program, paths)
    if skip > len(data):
        raise Usage("can't skip past end of combined input")
    data = data[skip : skip + size(given["N"]) if "N" in given else None]
    width = size(given.get("w", "16"))
    if width <= 0:
        raise Usage(f"invalid number '{given['w']}'")

    def print_block(block: bytes, place: int) -> str:
        address = radix.format(place)
        rows = [one.print_row(block) for one in types or [_integer_type("o", 2)]]
        return "".join(f"{' ' * len(address) if number else address}{row}\n" for number, row in enumerate(rows))

    await _write_blocks(program, data, width, skip, print_block, squeeze="v" not in given)
    if radix:
        await program.write(f"{radix.format(skip + len(data))}\n")
    return int(program.failed)


#: The formats of hexdump by option, and the one without an option.
_HEXDUMP_TYPES: Final = {
    "b": _Type(1, 4, "{:03o}".format),
    "c": _CHARACTERS,
    "d": _Type(2, 8, "{:05d}".format),
    "o": _Type(2, 8, "{:06o}".format),
    "x": _Type(2, 8, "{:04x}".format),
}
_HEXDUMP_DEFAULT: Final = _Type(2, 5, "{:04x}".format)


async def _hexdump(program: Program) -> int:
    given, paths = options(program, "bcdoxCvn:s:")
    canonical = "C" in given or program.name == "hd"
    skip = size(given.get("s", "0"))
    data = await _read_inputs(program, paths)
    data = data[skip : skip + size(given["n"]) if "n" in given else None]
    kind = next((kind for name, kind in _HEXDUMP_TYPES.items() if name in given), _HEXDUMP_DEFAULT)

    def print_block(block: bytes, place: int) -> str:
        if not canonical:
            return f"{place:07x}{kind.print_row(block):<{16 // kind.length * kind.width}}\n"
        halves = f"{block[:8].hex(' '):<23}  {block[8:].hex(' '):<23}"
        shown = "".join(chr(one) if 32 <= one < _DELETE else "." for one in block)
        return f"{place:08x}  {halves}  |{shown}|\n"

    await _write_blocks(program, data, 16, skip, print_block, squeeze="v" not in given)
    if data:
        await program.write(f"{skip + len(data):0{8 if canonical else 7}x}\n")
    return int(program.failed)


async def _read_inputs(program: Program, paths: Sequence[str]) -> bytes:
    """Returns the content of all inputs in one piece."""
    data = bytearray()
    async for _, source in program.inputs(paths):
        data += await source.read_all()
        check_memory(len(data))
    return bytes(data)


async def _write_blocks(
    program: Program, data: bytes, width: int, start: int, print_block: Callable[[bytes, int], str], *, squeeze: bool
) -> None:
    """Writes data in blocks.

    Args:
        program: writes them.
        data: the data.
        width: the number of bytes of a block.
        start: the address of the first byte.
        print_block: returns the lines of a block with this address.
        squeeze: whether `*` stands for blocks that are the same as the one before.
    """
    before, is_squeezed = b"", False
    for at in range(0, len(data), width):
        block = data[at : at + width]
        if squeeze and block == before:
            if not is_squeezed:
                await program.write("*\n")
            is_squeezed = True
            continue
        before, is_squeezed = block, False
        await program.write(print_block(block, start + at))


COMMANDS: Final[dict[str, Command]] = {
    "base64": _base64,
    "hd": _hexdump,
    "hexdump": _hexdump,
    "md5sum": _sum,
    "od": _od,
    "sha1sum": _sum,
    "sha256sum": _sum,
    "sha512sum": _sum,
}
