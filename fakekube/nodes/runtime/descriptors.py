"""File descriptors of the programs in a container.

Descriptors are reference-counted: a program that gets one holds it, and the last `close` releases what it refers to.

Invariant: no method blocks a thread; `read` and `write` wait with `scheduling.until`.

Specified by: read(2), write(2), pipe(2), dup(2).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from fakekube.net.pipes import Pipe
from fakekube.nodes.runtime.filesystem import Device, File, FileSystem, Node
from fakekube.nodes.runtime.scheduling import SIGPIPE, Killed, breathe, check_memory, until

__all__ = [
    "Capture",
    "Descriptor",
    "Flags",
    "Given",
    "Null",
    "OpenFile",
    "PipeReader",
    "PipeWriter",
    "Random",
    "Zero",
    "collect",
    "open_device",
]

CHUNK = 65536

Line = TypeVar("Line", str, bytes)


class Descriptor:
    """An open file. The base class can neither be read nor written."""

    is_terminal = False

    def __init__(self) -> None:
        self._count = 1

    def hold(self) -> Descriptor:
        """Adds a reference, and returns the descriptor."""
        self._count += 1
        return self

    def close(self) -> None:
        """Removes a reference; the last one calls `release`."""
        self._count -= 1
        if self._count == 0:
            self.release()

    def release(self) -> None:
        """Releases what the descriptor refers to. Called once."""

    async def read(self, size: int = CHUNK) -> bytes:
        """Returns up to `size` bytes; b"" at the end. Raises OSError."""
        raise OSError(9, "Bad file descriptor")

    async def write(self, data: bytes) -> None:
        """Writes all of `data`. Raises OSError; BrokenPipeError if there is no reader."""
        raise OSError(9, "Bad file descriptor")

    async def read_all(self) -> bytes:
        """Reads until the end, and returns the data."""
        parts, total = [], 0
        while part := await self.read():
            parts.append(part)
            total += len(part)
            check_memory(total)
        return b"".join(parts)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yields the lines with their line ends."""
        parts, total = list[bytes](), 0
        while part := await self.read():
            if b"\n" not in part:
                parts.append(part)
                total += len(part)
                check_memory(total)
                continue
            *whole, rest = b"".join([*parts, part]).split(b"\n")
            parts, total = [rest], len(rest)
            for line in whole:
                yield line + b"\n"
                await breathe()
        if rest := b"".join(parts):
            yield rest

    async def readline(self) -> bytes:
        """Returns the next line and reads no further; b"" at the end."""
        line = bytearray()
        while byte := await self.read(1):
            line += byte
            check_memory(len(line))
            if byte == b"\n":
                break
        return bytes(line)


async def collect(lines: AsyncIterator[Line]) -> list[Line]:
    """Returns all lines. Their memory is bounded (`check_memory`)."""
    found, total = list[Line](), 0
    async for line in lines:
        found.append(line)
        total += len(line) + _LINE
        check_memory(total)
    return found


#: Bytes that a line takes in addition to its characters.
_LINE = 60


class Null(Descriptor):
    """/dev/null."""

    async def read(self, size: int = CHUNK) -> bytes:
        return b""

    async def write(self, data: bytes) -> None:
        await breathe()


class Zero(Null):
    """/dev/zero."""

    async def read(self, size: int = CHUNK) -> bytes:
        await breathe()
        return bytes(min(size, CHUNK))


class Random(Null):
    """/dev/urandom."""

    async def read(self, size: int = CHUNK) -> bytes:
        await breathe()
        return os.urandom(min(size, CHUNK))


class PipeReader(Descriptor):
    """The reading end of a pipe."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self.pipe = pipe

    async def read(self, size: int = CHUNK) -> bytes:
        await breathe()
        return await until(lambda: self.pipe.read(size), self.pipe)

    def release(self) -> None:
        self.pipe.abandon()


class PipeWriter(Descriptor):
    """The writing end of a pipe."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self.pipe = pipe

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                written = self.pipe.write(rest)
            except BrokenPipeError:  # commands must not handle this as an error of a file
                raise Killed(SIGPIPE) from None
            rest = rest[written:]
            if rest:
                await until(lambda: (self.pipe.free > 0 or self.pipe.abandoned) or None, self.pipe)

    def release(self) -> None:
        self.pipe.close()


class Capture(Descriptor):
    """Collects written data."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    async def write(self, data: bytes) -> None:
        await breathe()
        check_memory(len(self.data) + len(data))
        self.data += data


class Given(Descriptor):
    """Reads from given bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data
        self._at = 0

    async def read(self, size: int = CHUNK) -> bytes:
        part = self._data[self._at : self._at + size]
        self._at += len(part)
        return part


@dataclass(slots=True, frozen=True)
class Flags:
    """How a file is opened."""

    read: bool = True
    write: bool = False
    append: bool = False


class OpenFile(Descriptor):
    """A regular file with a position."""

    def __init__(self, files: FileSystem, node: File, flags: Flags) -> None:
        super().__init__()
        self.node = node
        self._files, self._flags = files, flags
        self._at = 0
        self._content = None if node.source is None else node.source()

    async def read(self, size: int = CHUNK) -> bytes:
        await breathe()
        if not self._flags.read:
            raise OSError(9, "Bad file descriptor")
        content = self.node.data if self._content is None else self._content
        part = bytes(content[self._at : self._at + size])
        self._at += len(part)
        return part

    async def write(self, data: bytes) -> None:
        await breathe()
        if not self._flags.write:
            raise OSError(9, "Bad file descriptor")
        if self._flags.append:
            self._at = len(self.node.data)
        self._files.reserve(self.node, max(self._at + len(data), len(self.node.data)))
        if self._at > len(self.node.data):
            self.node.data += bytes(self._at - len(self.node.data))
        self.node.data[self._at : self._at + len(data)] = data
        self._at += len(data)
        self.node.mtime = self._files.now()


def open_device(node: Node) -> Descriptor | None:
    """Returns a descriptor of /dev/null, zero or random; None for other devices."""
    made = {"null": Null, "zero": Zero, "random": Random}.get(node.name) if isinstance(node, Device) else None
    return None if made is None else made()
