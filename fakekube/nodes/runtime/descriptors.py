"""File descriptors of the programs in a container, and the terminal between a client and a program.

Descriptors are reference-counted: a program that gets one holds it, and the last `close` releases what it refers to. A terminal
echoes, collects input into lines, which the program reads, and translates line ends; Ctrl-C interrupts the foreground task,
Ctrl-D ends the input.

Invariant: no method blocks a thread; `read` and `write` wait with `scheduling.until`. Input of a terminal is processed at once,
also while the program does not read.

Specified by: read(2), write(2), pipe(2), dup(2); termios(3) in canonical mode (icanon, echo, isig, icrnl, onlcr).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, TypeVar

from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streams import Notifier
from fakekube.nodes.runtime.filesystem import Device, File, FileSystem, Node
from fakekube.nodes.runtime.scheduling import SIGINT, SIGPIPE, Killed, Task, breathe, check_memory, current, running, wait_until

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
        return await wait_until(lambda: self.pipe.read(size), self.pipe)

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
                await wait_until(lambda: (self.pipe.free > 0 or self.pipe.abandoned) or None, self.pipe)

    def release(self) -> None:
        self.pipe.close()


class Capture(Descriptor):
    """Collects written data for the task that makes it, whose memory they take."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self._reader = running()

    async def write(self, data: bytes) -> None:
        await breathe()
        (self._reader or current()).need_memory(len(self.data) + len(data))
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

    def seek(self, at: int) -> None:
        """Sets the position, in bytes from the beginning."""
        self._at = at

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


#: The line that a shell at its prompt reads after Ctrl-C.
INTERRUPT: Final = b"\0"

_ERASE: Final = b"\b \b"
_DEFAULT_SIZE: Final = (80, 24)


class Terminal(Descriptor):
    """The terminal as a descriptor of the program; `pump` must run beside the program.

    Args:
        stdin: the input of the client; None if there is none.
        stdout: the output for the client; None if there is none.
        sizes: the sizes of the client's window.
    """

    is_terminal = True

    def __init__(self, stdin: Pipe | None, stdout: Descriptor | None, sizes: TerminalSizeQueue | None) -> None:
        super().__init__()
        self._stdin, self._stdout, self._sizes = stdin, stdout, sizes
        self._line = bytearray()
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._ended = stdin is None
        self._escape = b""
        self._typed = Notifier()
        self._foreground: Task | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return _DEFAULT_SIZE if self._sizes is None or self._sizes.latest is None else tuple(self._sizes.latest)  # type: ignore[return-value]

    def set_foreground(self, task: Task | None) -> None:
        """Sets the task that Ctrl-C interrupts; None for a shell that waits for a line."""
        self._foreground = task

    # --- The program's side -------------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        if self._stdout is not None:
            await self._stdout.write(data.replace(b"\n", b"\r\n"))

    async def readline(self) -> bytes:
        if self._rest:
            line, self._rest = self._rest, b""
            return line

        def line_or_end() -> bytes | None:
            return self._lines.popleft() if self._lines else b"" if self._ended else None

        return await wait_until(line_or_end, self._typed)

    async def read(self, size: int = CHUNK) -> bytes:
        line = await self.readline()
        while line == INTERRUPT:
            line = await self.readline()
        self._rest = line[size:]
        return line[:size]

    # --- The client's side --------------------------------------------------------------------------------------------

    async def pump(self) -> int:
        """Processes the input of the client until it ends."""
        assert self._stdin is not None
        stdin = self._stdin
        while data := await wait_until(stdin.read, stdin):
            for byte in data:
                await self._type(bytes((byte,)))
        self._ended = True
        self._typed.notify()
        return 0

    async def _show(self, data: bytes) -> None:
        if self._stdout is not None:
            await self._stdout.write(data)

    async def _type(self, byte: bytes) -> None:
        if self._escape:
            await self._continue_escape(byte)
        elif byte in _KEYS:
            await _KEYS[byte](self)
        elif byte >= b" ":
            self._line += byte
            await self._show(byte)

    async def _continue_escape(self, byte: bytes) -> None:
        """Ignores escape sequences such as cursor keys."""
        self._escape += byte
        if not (byte in b"[O" and len(self._escape) == 2) and not byte.isdigit() and byte != b";":
            self._escape = b""

    async def _begin_escape(self) -> None:
        self._escape = b"\x1b"

    async def _end_line(self) -> None:
        await self._show(b"\r\n")
        self._push(bytes(self._line) + b"\n")

    def _push(self, line: bytes) -> None:
        self._line.clear()
        self._lines.append(line)
        self._typed.notify()

    async def _interrupt(self) -> None:
        await self._show(b"^C\r\n")
        self._line.clear()
        self._lines.clear()
        if self._foreground is None:
            self._push(INTERRUPT)
        else:
            self._foreground.kill(SIGINT)

    async def _end_of_file(self) -> None:
        self._push(bytes(self._line))

    async def _erase(self) -> None:
        if self._line:
            while self._line and self._line[-1] & 0xC0 == 0x80:  # the bytes of one character
                self._line.pop()
            self._line.pop()
            await self._show(_ERASE)

    async def _erase_line(self) -> None:
        await self._show(_ERASE * len(self._line.decode("utf-8", "replace")))
        self._line.clear()

    async def _erase_word(self) -> None:
        kept = self._line.rstrip(b" ")
        kept = kept[: kept.rfind(b" ") + 1]
        await self._show(_ERASE * (len(self._line) - len(kept)))
        self._line[:] = kept

    async def _ignore(self) -> None:
        pass


_KEYS: Final = {
    b"\r": Terminal._end_line,
    b"\n": Terminal._end_line,
    b"\x03": Terminal._interrupt,
    b"\x04": Terminal._end_of_file,
    b"\x7f": Terminal._erase,
    b"\b": Terminal._erase,
    b"\x15": Terminal._erase_line,
    b"\x17": Terminal._erase_word,
    b"\x1b": Terminal._begin_escape,
    b"\t": Terminal._ignore,
    b"\x1a": Terminal._ignore,
}
