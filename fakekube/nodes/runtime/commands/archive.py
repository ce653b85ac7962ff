"""`tar`, as kubectl cp uses it, and `gzip`.

Specified by: busybox archival (tar, gzip); k8s.io/kubectl/pkg/cmd/cp.
"""

from __future__ import annotations

import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Sequence
from typing import Final

from fakekube.nodes.runtime.commands.options import options
from fakekube.nodes.runtime.filesystem import Directory, File, FileSystem, Node, Symlink
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.scheduling import check_memory

__all__ = ["COMMANDS"]

_DASHLESS: Final = "cxtfzmpvOCkhjJ"


async def _tar(program: Program) -> int:
    args = list(program.args)
    if args and not args[0].startswith("-") and set(args[0]) <= set(_DASHLESS):  # tar xf archive
        args[0] = "-" + args[0]
    program.args = [{"--no-same-owner": "-m", "--to-stdout": "-O"}.get(arg, arg) for arg in args]
    flags, names = options(
        program,
        "cxtf:zmpvOC:khjJoT:X:",
        [
            "create",
            "extract",
            "list",
            "file=",
            "gzip",
            "directory=",
            "exclude=",
            "strip-components=",
            "no-same-permissions",
            "warning=",
        ],
        aliases={"create": "c", "extract": "x", "list": "t", "file": "f", "gzip": "z", "directory": "C"},
    )
    folder = program.path(flags["C"]) if "C" in flags else program.cwd
    if "C" in flags and not program.files.exists(folder):
        return await program.complain(f"can't change directory to '{flags['C']}': No such file or directory")
    if "c" in flags:
        return await _create(program, flags, names, folder)
    if "x" in flags or "t" in flags:
        return await _extract(program, flags, names, folder)
    raise Usage("must specify one of -c, -x, -t")


async def _create(program: Program, flags: dict[str, str], names: Sequence[str], folder: str) -> int:
    if not names:
        return await program.complain("empty archive")
    buffer, code = io.BytesIO(), 0
    with tarfile.open(fileobj=buffer, mode="w:gz" if "z" in flags else "w", format=tarfile.GNU_FORMAT) as archive:
        for name in names:
            if name.startswith("/"):
                await program.stderr.write(b"tar: removing leading '/' from member names\n")
            try:
                for path, node in list(program.files.walk(name, folder)):
                    info, data = _member(path, node)
                    archive.addfile(info, io.BytesIO(data))
            except OSError as error:
                code = await program.complain(f"{name}: {error.strerror}")
    if code:
        await program.complain("error exit delayed from previous errors")
    if flags.get("f", "-") == "-":
        await program.stdout.write(buffer.getvalue())
    else:
        program.files.write(flags["f"], buffer.getvalue(), folder)
    return code


def _member(path: str, node: Node) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(path.lstrip("/") or "./")
    info.mode, info.uid, info.gid, info.mtime = node.mode, node.uid, node.gid, int(node.mtime)
    info.uname = info.gname = "root" if not node.uid else ""
    data = b""
    if isinstance(node, Directory):
        info.type = tarfile.DIRTYPE
    elif isinstance(node, Symlink):
        info.type, info.linkname = tarfile.SYMTYPE, node.target
    elif isinstance(node, File):
        data = bytes(node.content)
        info.size = len(data)
    return info, data


async def _extract(program: Program, flags: dict[str, str], names: Sequence[str], folder: str) -> int:
    if flags.get("f", "-") == "-":
        data = await program.stdin.read_all()
    else:
        try:
            data = program.files.read(flags["f"], program.cwd)
        except OSError as error:
            return await program.complain(f"can't open '{flags['f']}': {error.strerror}")
    try:
        archive = tarfile.open(fileobj=io.BytesIO(data))  # noqa: SIM115
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, OverflowError, LookupError):
        return await program.complain("short read" if not data else "invalid tar magic")
    try:
        return await _extract_members(program, archive, flags, names, folder)
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, EOFError, ValueError, OverflowError):
        return await program.complain("short read")
    finally:
        archive.close()


async def _extract_members(
    program: Program, archive: tarfile.TarFile, flags: dict[str, str], names: Sequence[str], folder: str
) -> int:
    """Extracts or lists the members. Raises the errors of `tarfile` and of decompressors for a damaged archive."""
    for info in archive:
        name = info.name.lstrip("/")
        if names and not any(name == one or name.startswith(one.rstrip("/") + "/") for one in names):
            continue
        if ".." in name.split("/"):
            return await program.complain(f"name with '..' skipped: '{name}'")
        if "t" in flags or "v" in flags:
            await program.write(f"{name}{'/' if info.isdir() and 't' in flags else ''}\n")
        if "t" in flags:
            continue
        stripped = "/".join(name.split("/")[int(flags.get("strip-components", "0")) :])
        if not stripped:
            continue
        check_memory(info.size)
        content = archive.extractfile(info) if info.isfile() else None
        if "O" in flags:
            await program.stdout.write(content.read() if content else b"")
            continue
        try:
            _unpack(program.files, posixpath.join(folder, stripped), info, content.read() if content else b"", flags)
        except OSError as error:
            return await program.complain(f"can't open '{stripped}': {error.strerror}")
    return 0


def _unpack(files: FileSystem, path: str, info: tarfile.TarInfo, data: bytes, flags: dict[str, str]) -> None:
    files.make_directories(posixpath.dirname(path))
    if info.isdir():
        files.make_directories(path).mode = info.mode & 0o7777
        return
    if info.issym():
        if files.exists(path, follow=False):
            files.remove(path)
        files.add(path, Symlink(target=info.linkname, mtime=files.now()))
        return
    made = files.write(path, data, mode=info.mode & 0o777)
    made.mode = info.mode & 0o777
    if "m" not in flags:
        made.mtime = float(info.mtime)


def _inflated(data: bytes) -> bytes:
    """Decompresses data. Its memory is bounded (`check_memory`). Raises OSError and EOFError."""
    made = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while part := file.read(1 << 20):
            made += part
            check_memory(len(made))
    return bytes(made)


async def _gzip(program: Program) -> int:
    flags, paths = options(program, "dckf123456789")
    unpack = "d" in flags or program.name in ("gunzip", "zcat")
    async for name, source in program.inputs(paths):
        data = await source.read_all()
        try:
            made = _inflated(data) if unpack else gzip.compress(data, mtime=0)
        except (OSError, EOFError, zlib.error):
            return await program.complain("invalid magic")
        if name == "-" or "c" in flags or program.name == "zcat":
            await program.stdout.write(made)
            continue
        program.files.write(name.removesuffix(".gz") if unpack else f"{name}.gz", made, program.cwd)
        if "k" not in flags:
            program.files.remove(name, program.cwd)
    return int(program.failed)


COMMANDS: Final[dict[str, Command]] = {"tar": _tar, "gzip": _gzip, "gunzip": _gzip, "zcat": _gzip}
