"""A terminal between a client and a program: echo, line editing, interrupts, line ends.

Input is collected into lines, which the program reads; Ctrl-C interrupts the foreground task, Ctrl-D ends the input.

Invariant: input of the client is processed at once, also while the program does not read.

Specified by: termios(3) in canonical mode (icanon, echo, isig, icrnl, onlcr).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fakekube.net.pipes import Pipe, TerminalSizeQueue
from fakekube.net.streams import Notifier
from fakekube.nodes.runtime.descriptors import CHUNK, Descriptor
from fakekube.nodes.runtime.scheduling import SIGINT, Task, until

__all__ = ["INTERRUPT", "Terminal"]

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

    # ------------------------------------------------------------ the program's side

    async def write(self, data: bytes) -> None:
        if self._stdout is not None:
            await self._stdout.write(data.replace(b"\n", b"\r\n"))

    async def readline(self) -> bytes:
        if self._rest:
            line, self._rest = self._rest, b""
            return line

        def line_or_end() -> bytes | None:
            return self._lines.popleft() if self._lines else b"" if self._ended else None

        return await until(line_or_end, self._typed)

    async def read(self, size: int = CHUNK) -> bytes:
        line = await self.readline()
        while line == INTERRUPT:
            line = await self.readline()
        self._rest = line[size:]
        return line[:size]

    # ------------------------------------------------------------ the client's side

    async def pump(self) -> int:
        """Processes the input of the client until it ends."""
        assert self._stdin is not None
        stdin = self._stdin
        while data := await until(stdin.read, stdin):
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
