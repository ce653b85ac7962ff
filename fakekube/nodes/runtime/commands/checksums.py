"""Commands that encode and sum: `base64`, `md5sum`, `sha256sum` …, `hexdump`, `od`.

Specified by: busybox coreutils.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

from fakekube.nodes.runtime.commands.options import options
from fakekube.nodes.runtime.program import Command, Program

__all__ = ["COMMANDS"]


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
    "base64": _base64,
    "hexdump": _hexdump,
    "md5sum": _sum,
    "od": _hexdump,
    "sha1sum": _sum,
    "sha256sum": _sum,
    "sha512sum": _sum,
}
