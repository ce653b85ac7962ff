"""`tar`, as kubectl cp uses it, and `gzip`.

Specified by: busybox archival (tar, gzip); k8s.io/kubectl/pkg/cmd/cp.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from fakekube.nodes.runtime.descriptors import Descriptor, Given
from fakekube.nodes.runtime.filesystem import Directory, File, FileSystem, Node, Symlink
from fakekube.nodes.runtime.program import Command, Program, Usage, options
from fakekube.nodes.runtime.scheduling import check_memory

_DASHLESS: Final = "cxtfzmpvOCkhjJ"
#: The first bytes of compressed data.
_GZIP, _XZ, _BZIP2 = b"\x1f\x8b", b"\xfd7zXZ", b"BZh"


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
    buffer, code, is_told = io.BytesIO(), 0, False
    with tarfile.open(fileobj=buffer, mode="w:gz" if "z" in flags else "w", format=tarfile.GNU_FORMAT) as archive:
        for name in names:
            try:
                for path, node in list(program.files.walk(name, folder)):
                    if path.startswith("/") and not is_told:
                        is_told = True
                        await program.stderr.write(b"tar: removing leading '/' from member names\n")
                    info, data = _member(path, node)
                    archive.addfile(info, io.BytesIO(data))
            except OSError as error:
                code = await program.complain(f"{name}: {error.strerror}")
    if code:
        await program.complain("error exit delayed from previous errors")
    if flags.get("f", "-") == "-":
        await program.stdout.write(buffer.getvalue())
    else:
        target = program.open(posixpath.join(folder, flags["f"]), write=True, read=False)
        await target.write(buffer.getvalue())
        target.close()
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
    """Extracts or lists the members, each as soon as its bytes have arrived."""
    opened: Descriptor = program.stdin
    if flags.get("f", "-") != "-":
        try:
            opened = program.open(flags["f"])
        except OSError as error:
            return await program.complain(f"can't open '{flags['f']}': {error.strerror}")
    arrived = _Arrived(opened)
    try:
        if await arrived.peek(6) and arrived.is_compressed:
            arrived = _Arrived(Given(_decompress(await arrived.rest())))
        first = True
        while (info := await _next_member(arrived)) is not None:
            first = False
            code = await _extract_member(program, info, arrived, _Wanted(flags, names, folder))
            if code:
                return code
        return await program.complain("short read") if first and not arrived.some else 0
    except tarfile.ReadError:
        return await program.complain("invalid tar magic")
    except (tarfile.TarError, zlib.error, OSError, lzma.LZMAError, EOFError, ValueError, OverflowError, LookupError):
        return await program.complain("short read")
    finally:
        if opened is not program.stdin:
            opened.close()


class _Wanted(NamedTuple):
    """What is extracted."""

    flags: dict[str, str]
    names: Sequence[str]
    """The names of members; all if there are none."""
    folder: str


class _Arrived:
    """The bytes of an archive as they arrive."""

    def __init__(self, source: Descriptor) -> None:
        self._source, self._buffer = source, bytearray()
        self.some = False
        """Whether any bytes have arrived."""

    @property
    def is_compressed(self) -> bool:
        """Whether the archive begins like one of gzip, xz or bzip2."""
        return self._buffer.startswith((_GZIP, _XZ, _BZIP2))

    async def peek(self, size: int) -> bytes:
        """Waits for so many bytes, and returns them without taking them; fewer at the end of the data."""
        check_memory(size)
        while len(self._buffer) < size and (data := await self._source.read()):
            self._buffer += data
            self.some = True
        return bytes(self._buffer[:size])

    async def take(self, size: int) -> bytes:
        """Waits for so many bytes, and takes them. Raises EOFError at the end of the data."""
        data = await self.peek(size)
        if len(data) < size:
            raise EOFError
        del self._buffer[:size]
        return data

    async def rest(self) -> bytes:
        """Returns all bytes up to the end."""
        return bytes(self._buffer) + await self._source.read_all()


def _decompress(data: bytes) -> bytes:
    """Decompresses an archive. Raises the errors of the decompressors."""
    source = io.BytesIO(data)
    if data.startswith(_GZIP):
        return _read_bounded(gzip.GzipFile(fileobj=source))
    return _read_bounded(lzma.open(source) if data.startswith(_XZ) else bz2.open(source))


def _read_bounded(source: io.BufferedIOBase) -> bytes:
    """Reads a file up to its end, and closes it. Its memory is bounded (`check_memory`)."""
    made = bytearray()
    with source as file:
        while part := file.read(1 << 20):
            made += part
            check_memory(len(made))
    return bytes(made)


async def _next_member(arrived: _Arrived) -> tarfile.TarInfo | None:
    """Returns the next member, with its extended headers; None at the end. Raises TarError, EOFError."""
    head = bytearray()
    while True:
        block = await arrived.peek(tarfile.BLOCKSIZE)
        if not block and not head:
            return None
        if len(block) < tarfile.BLOCKSIZE:
            raise EOFError if arrived.some and block[257:262] == b"ustar" else tarfile.ReadError
        await arrived.take(tarfile.BLOCKSIZE)
        if not block.strip(b"\0"):
            return None
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            raise tarfile.ReadError from None
        head += block
        if block[156:157] not in (b"L", b"K", b"x", b"X", b"g"):
            break
        head += await arrived.take(_round_up(info.size))
        check_memory(len(head))
    with tarfile.open(fileobj=io.BytesIO(bytes(head) + bytes(2 * tarfile.BLOCKSIZE)), ignore_zeros=False) as archive:
        found = archive.next()
    return found if found is not None else info


def _round_up(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


async def _extract_member(program: Program, info: tarfile.TarInfo, arrived: _Arrived, wanted: _Wanted) -> int:
    """Extracts or lists a member. Returns the exit code if the archive is not read further, else 0. Raises EOFError."""
    flags, names, folder = wanted
    data = (await arrived.take(_round_up(info.size)))[: info.size] if info.isfile() else b""
    name = info.name.lstrip("/")
    if names and not any(name == one or name.startswith(one.rstrip("/") + "/") for one in names):
        return 0
    if ".." in name.split("/"):
        return await program.complain(f"name with '..' skipped: '{name}'")
    if "t" in flags or "v" in flags:
        await program.write(f"{name}{'/' if info.isdir() and 't' in flags else ''}\n")
    stripped = "/".join(name.split("/")[int(flags.get("strip-components", "0")) :])
    if "t" in flags or not stripped:
        return 0
    if "O" in flags:
        await program.stdout.write(data)
        return 0
    try:
        _unpack(program.files, posixpath.join(folder, stripped), info, data, flags)
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


async def _gzip(program: Program) -> int:
    flags, paths = options(program, "dckf123456789")
    unpack = "d" in flags or program.name in ("gunzip", "zcat")
    async for name, source in program.inputs(paths):
        data = await source.read_all()
        try:
            made = _read_bounded(gzip.GzipFile(fileobj=io.BytesIO(data))) if unpack else gzip.compress(data, mtime=0)
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
