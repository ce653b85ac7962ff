"""The logs of containers.

A log is rotated when it reaches ten mebibytes: older lines are dropped, because a kubelet only serves its newest file. One
`Notifier` wakes all followers of a log, and they share the bytes of new lines.

Invariant: the times of a log's lines never decrease.

Specified by: pkg/kubelet/kuberuntime/logs/logs.go (ReadLogs), pkg/kubelet/logs/container_log_manager.go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from fakekube.base.clock import Clock
from fakekube.net.streaming.kubelet_api import LogOptions
from fakekube.net.streams import Notifier, frames_of

#: containerLogMaxSize of a kubelet, in bytes.
MAX_SIZE: Final = 10 * 1024 * 1024
#: The maximum length of a line; longer ones are split.
_MAX_LINE: Final = 16 * 1024
#: The bytes that a line has in the file beside its text: time, stream and tag.
_LINE_PREFIX: Final = 40


class Line(NamedTuple):
    """A line, or a piece of one."""

    time: datetime
    stream: str
    """stdout or stderr."""
    text: bytes
    """The text with its line end, unless another piece of the line follows."""


class ContainerLog:
    """The log of one run of a container. Every method may be called from any thread."""

    def __init__(self) -> None:
        self.changed = Notifier()
        self.closed = False
        """Whether the container has ended."""
        self.dropped = 0
        """The number of lines that were dropped by rotation."""
        self._lines: list[Line] = []
        self._size = 0
        self._rest: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._shared: tuple[int, int, bool, bytes] = (0, 0, False, b"")

    @property
    def end(self) -> int:
        """The number of the next line."""
        return self.dropped + len(self._lines)

    def write(self, data: bytes, time: datetime, stream: str = "stdout") -> None:
        """Writes bytes; an incomplete line is buffered."""
        with self._lock:
            *lines, rest = (self._rest.get(stream, b"") + data).split(b"\n")
            for line in lines:
                self._add(time, stream, self._add_full_pieces(time, stream, line) + b"\n")
            self._rest[stream] = self._add_full_pieces(time, stream, rest)
        if lines:
            self.changed.notify()

    def _add_full_pieces(self, time: datetime, stream: str, line: bytes) -> bytes:
        """Adds the pieces of a long line that are as long as one may be, and returns the rest."""
        while len(line) > _MAX_LINE:
            self._add(time, stream, line[:_MAX_LINE])
            line = line[_MAX_LINE:]
        return line

    def close(self, time: datetime) -> None:
        """Closes the log at the end of the container."""
        with self._lock:
            if self.closed:
                return
            for stream, rest in self._rest.items():
                if rest:
                    self._add(time, stream, rest)
            self._rest.clear()
            self.closed = True
        self.changed.notify()

    def _add(self, time: datetime, stream: str, text: bytes) -> None:
        if self._lines and self._lines[-1].time > time:
            time = self._lines[-1].time
        size = _LINE_PREFIX + len(text)
        if self._size + size > MAX_SIZE:
            self.dropped += len(self._lines)
            self._lines, self._size = [], 0
        self._lines.append(Line(time, stream, text))
        self._size += size

    def read_lines(self, first: int = 0) -> tuple[list[Line], int]:
        """Returns the lines from a number on that are not dropped, and the number of the next line."""
        with self._lock:
            return self._lines[max(first - self.dropped, 0) :], self.end

    def tail(self, count: int) -> bytes:
        """Returns the text of the last lines, with an incomplete one."""
        with self._lock:
            lines = [line.text for line in self._lines] + [rest for rest in self._rest.values() if rest]
        return b"".join(lines[-count:])

    def text_from(self, first: int, *, timestamps: bool) -> tuple[bytes, int]:
        """Returns the text of all lines from a number on, and the number of the next line. The result is cached for other
        followers."""
        with self._lock:
            end = self.end
            shared = self._shared
            if shared[:3] != (first, end, timestamps):
                place = max(first - self.dropped, 0)
                is_start = place == 0 or self._lines[place - 1].text.endswith(b"\n")
                text = _print_lines(self._lines[place:], timestamps=timestamps, is_start=is_start)
                self._shared = shared = (first, end, timestamps, text)
            return shared[3], end


def _print_lines(lines: Iterable[Line], *, timestamps: bool, is_start: bool) -> bytes:
    """Returns the text of lines.

    Args:
        lines: the lines.
        timestamps: whether each line begins with its time.
        is_start: whether the first one begins a line, and does not continue one.
    """
    if not timestamps:
        return b"".join(line.text for line in lines)
    parts: list[bytes] = []
    for line in lines:
        if is_start:
            parts.append(line.time.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode())
        parts.append(line.text)
        is_start = line.text.endswith(b"\n")
    return b"".join(parts)


class _Reading:
    """A position in a log, with the options of the reader."""

    def __init__(self, log: ContainerLog, options: LogOptions, now: datetime) -> None:
        self._log, self._options = log, options
        since = options.since_time
        if options.since_seconds is not None:
            since = now - timedelta(seconds=options.since_seconds)
        self._since = None if since is None else since.replace(tzinfo=since.tzinfo or UTC)
        self._stream = None if options.stream in ("", "All") else options.stream.lower()
        self.left = options.limit_bytes
        """The number of bytes that may still be returned; None for no limit."""
        self._at = self._find_start()
        self._is_line_start = True
        """Whether the next line begins one, for a reader that gets only some lines."""

    def _find_start(self) -> int:
        """Returns the number of the first line to return: with tailLines, that of one of the last."""
        tail = self._options.tail_lines
        if tail is None:
            return 0
        lines, end = self._log.read_lines()
        place, count = len(lines), 0
        while place > 0:
            count += lines[place - 1].text.endswith(b"\n") or place == len(lines)
            if count > tail:
                break
            place -= 1
        return end - len(lines) + place

    def read_new_lines(self) -> bytes:
        """Returns the text of new lines."""
        timestamps = self._options.timestamps
        if self._since is None and self._stream is None:
            text, self._at = self._log.text_from(self._at, timestamps=timestamps)
        else:
            found, self._at = self._log.read_lines(self._at)
            wanted = [line for line in found if self._is_wanted(line)]
            text = _print_lines(wanted, timestamps=timestamps, is_start=self._is_line_start)
            if wanted:
                self._is_line_start = wanted[-1].text.endswith(b"\n")
        if self.left is not None:
            text = text[: self.left]
            self.left -= len(text)
        return text

    def _is_wanted(self, line: Line) -> bool:
        return (self._since is None or line.time >= self._since) and self._stream in (None, line.stream)

    @property
    def is_done(self) -> bool:
        """Whether there will be no more lines."""
        return self.left == 0 or (self._log.closed and self._at >= self._log.end)


def read_log(log: ContainerLog, options: LogOptions, now: datetime) -> bytes:
    """Returns the present content of a log."""
    return _Reading(log, options, now).read_new_lines()


class LogStream:
    """Follows a log until its container ends: a `streams.Stream`.

    Args:
        log: the log of the container.
        options: the options of the request.
        clock: of the cluster.
        closed: called once, when the stream is closed.
    """

    deadline: float | None = None

    def __init__(self, log: ContainerLog, options: LogOptions, clock: Clock, closed: Callable[[], None]) -> None:
        self.source = log.changed
        self._clock = clock
        self._reading = _Reading(log, options, clock.now())
        self._on_close: Callable[[], None] | None = closed

    @property
    def ended(self) -> bool:
        """See `streams.Stream`."""
        return self._reading.is_done

    def take(self) -> list[bytes]:
        """See `streams.Stream`."""
        text = self._reading.read_new_lines()
        return [text] if text else []

    def close(self) -> None:
        """See `streams.Stream`."""
        closed, self._on_close = self._on_close, None
        if closed is not None:
            closed()

    def __iter__(self) -> Iterator[bytes]:
        """See `streams.Stream`."""
        return frames_of(self, self._clock)
