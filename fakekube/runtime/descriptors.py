"""File descriptors: what the programs of a container read and write.

A descriptor is counted: a program that gets one holds it once more, and the last one who closes it closes what is behind.

Invariant: nothing here blocks a thread; reading and writing wait as `scheduling` has it.

Specified by: read(2), write(2), pipe(2), dup(2).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fakekube.pipes import Pipe
from fakekube.runtime.filesystem import Device, File, FileSystem, Node
from fakekube.runtime.scheduling import SIGPIPE, Killed, until

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
    "open_device",
]

CHUNK = 65536


class Descriptor:
    """An open file. The default is one from which nothing can be read, and to which nothing can be written."""

    is_terminal = False

    def __init__(self) -> None:
        self._count = 1

    def hold(self) -> Descriptor:
        """Counts one holder more."""
        self._count += 1
        return self

    def close(self) -> None:
        """Counts one holder less; the last one closes what is behind."""
        self._count -= 1
        if self._count == 0:
            self.release()

    def release(self) -> None:
        """Closes what is behind; called once."""

    async def read(self, size: int = CHUNK) -> bytes:
        """Returns up to `size` bytes; b"" at the end. Raises OSError."""
        raise OSError(9, "Bad file descriptor")

    async def write(self, data: bytes) -> None:
        """Writes all of `data`. Raises OSError, BrokenPipeError if nobody reads any more."""
        raise OSError(9, "Bad file descriptor")

    async def read_all(self) -> bytes:
        """Returns all that comes until the end."""
        parts = []
        while part := await self.read():
            parts.append(part)
        return b"".join(parts)

    async def lines(self) -> AsyncIterator[bytes]:
        """Iterates over the lines, each with its end if it has one."""
        rest = b""
        while part := await self.read():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line + b"\n"
        if rest:
            yield rest

    async def readline(self) -> bytes:
        """Returns the next line and reads no further; b"" at the end."""
        line = bytearray()
        while byte := await self.read(1):
            line += byte
            if byte == b"\n":
                break
        return bytes(line)


class Null(Descriptor):
    """/dev/null."""

    async def read(self, size: int = CHUNK) -> bytes:
        return b""

    async def write(self, data: bytes) -> None:
        pass


class Zero(Null):
    """/dev/zero."""

    async def read(self, size: int = CHUNK) -> bytes:
        return bytes(size)


class Random(Null):
    """/dev/urandom."""

    async def read(self, size: int = CHUNK) -> bytes:
        return os.urandom(size)


class PipeReader(Descriptor):
    """The end of a pipe from which it is read."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self.pipe = pipe

    async def read(self, size: int = CHUNK) -> bytes:
        return await until(lambda: self.pipe.read(size), self.pipe)

    def release(self) -> None:
        self.pipe.abandon()


class PipeWriter(Descriptor):
    """The end of a pipe to which it is written."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self.pipe = pipe

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                written = self.pipe.write(rest)
            except BrokenPipeError:  # which no command takes for an error of a file
                raise Killed(SIGPIPE) from None
            rest = rest[written:]
            if rest:
                await until(lambda: (self.pipe.free > 0 or self.pipe.abandoned) or None, self.pipe)

    def release(self) -> None:
        self.pipe.close()


class Capture(Descriptor):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    async def write(self, data: bytes) -> None:
        self.data += data


class Given(Descriptor):
    """Has the given bytes to read."""

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
    """A regular file, open at a place in it."""

    def __init__(self, files: FileSystem, node: File, flags: Flags) -> None:
        super().__init__()
        self.node = node
        self._files, self._flags = files, flags
        self._at = 0
        self._content = None if node.source is None else node.source()

    async def read(self, size: int = CHUNK) -> bytes:
        if not self._flags.read:
            raise OSError(9, "Bad file descriptor")
        content = self.node.data if self._content is None else self._content
        part = bytes(content[self._at : self._at + size])
        self._at += len(part)
        return part

    async def write(self, data: bytes) -> None:
        if not self._flags.write:
            raise OSError(9, "Bad file descriptor")
        if self._flags.append:
            self._at = len(self.node.data)
        elif self._at > len(self.node.data):
            self.node.data += bytes(self._at - len(self.node.data))
        self.node.data[self._at : self._at + len(data)] = data
        self._at += len(data)
        self.node.mtime = self._files.now()


def open_device(node: Node) -> Descriptor | None:
    """Returns a descriptor of a device that is the same for all processes; None if it is another one."""
    made = {"null": Null, "zero": Zero, "random": Random}.get(node.name) if isinstance(node, Device) else None
    return None if made is None else made()
