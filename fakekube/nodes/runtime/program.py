"""The context of a command: its arguments, options, environment, descriptors, files and container.

Commands are coroutines that take a `Program` and return an exit code; `commands` has them by name.

Invariant: a command reaches its container only through `Host`.

Specified by: getopt(3), open(2), proc(5) for /proc/self/fd.
"""

from __future__ import annotations

import errno
import getopt
import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fakekube.nodes.runtime.descriptors import Descriptor, Flags, Null, OpenFile, open_device
from fakekube.nodes.runtime.filesystem import Device, Directory, File, FileSystem, Node, oserror
from fakekube.nodes.runtime.scheduling import Task, current

if TYPE_CHECKING:
    from datetime import datetime

    from fakekube.base.clock import Clock
    from fakekube.nodes.runtime.kernel import ProcessNamespace
    from fakekube.nodes.runtime.network import Network


class Host(Protocol):
    """The part of a container that commands use."""

    @property
    def pod(self) -> Mapping[str, Any]:
        """The Pod object."""

    @property
    def name(self) -> str:
        """The name of the container."""

    @property
    def hostname(self) -> str:
        """The name of the pod."""

    @property
    def files(self) -> FileSystem:
        """The files of the container."""

    @property
    def processes(self) -> ProcessNamespace:
        """The processes that the container sees."""

    @property
    def uid(self) -> int:
        """The user of the container's processes."""

    @property
    def gid(self) -> int:
        """The group of the container's processes."""

    @property
    def groups(self) -> Sequence[int]:
        """The group and the supplemental groups of the container's processes."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """The container's item in the pod's spec."""

    @property
    def clock(self) -> Clock:
        """The clock of the cluster."""

    @property
    def network(self) -> Network:
        """The network of the container."""

    @property
    def node_name(self) -> str:
        """The name of the node."""

    @property
    def memory_limit(self) -> int:
        """The memory limit in bytes."""

    def started_seconds(self) -> float:
        """Returns for how many seconds the container has been running."""

    def run_to_end(self, command: Sequence[str], limit: float) -> Ended:
        """Runs a command to its end, from any thread."""

    def write_log(self, text: str, stream: str = "stdout") -> None:
        """Writes to the log of the container, from any thread."""

    def call_api(self, path: str, token: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Sends a request with a token to the API server: GET, or POST of a JSON document. Returns status and body."""

    def use(self, resource: str, amount: float, seconds: float) -> None:
        """Uses so much of cpu (millicores) or memory (bytes) for so many seconds."""

    def command_for(self, name: str) -> Command | None:
        """Returns the command of a test's handler; None if there is none."""

    def next_pid(self) -> int:
        """Returns a process id."""

    def register(self, task: Task) -> None:
        """Adds a task to the processes of the container."""


class Ended(NamedTuple):
    """A command that was run to its end."""

    code: int | None
    """The exit code; None if it was killed because it took too long."""
    seconds: float
    """The time that it would have taken."""
    output: bytes
    """What it wrote to stdout and stderr."""


class Usage(Exception):
    """A command was called with invalid arguments; the text is the reason."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(slots=True)
class Program:
    """One call of a command."""

    name: str
    args: Sequence[str]
    env: dict[str, str]
    cwd: str
    descriptors: Mapping[int, Descriptor]
    host: Host
    run_other: Callable[[Sequence[str], Program], Awaitable[int]]
    """Runs another command with the environment and descriptors of a program."""
    argv0: str = ""
    """The name or path by which it was called; `name` is the last part."""
    root: FileSystem | None = None
    """The files of the mount namespace that it has entered; None for those of the container."""
    failed: bool = False
    """Whether one of `inputs` could not be read."""
    umask: int = 0o022
    """The permissions that new files and directories do not get."""

    @property
    def files(self) -> FileSystem:
        """The files that it sees: those of the container, or of the namespace that it has entered."""
        return self.root or self.host.files

    @property
    def stdin(self) -> Descriptor:
        """Descriptor 0; empty if it is closed."""
        return self.descriptors.get(0) or Null()

    @property
    def stdout(self) -> Descriptor:
        """Descriptor 1; writing fails if it is closed."""
        return self.descriptors.get(1) or Descriptor()

    @property
    def stderr(self) -> Descriptor:
        """Descriptor 2; writing fails if it is closed."""
        return self.descriptors.get(2) or Descriptor()

    @property
    def task(self) -> Task:
        """The task that runs the command."""
        return current()

    def task_time(self) -> datetime:
        """Returns the time of the cluster; from any thread."""
        return self.host.clock.now()

    def read_file(self, path: str) -> bytes:
        """Returns the content of a file. Raises OSError."""
        return self.files.read(path, self.cwd)

    def write_file(self, path: str, data: bytes, *, mode: int = 0o666) -> None:
        """Writes a file; a new one has this mode without `umask`, and the user and group of the program. Raises OSError."""
        existed = self.files.exists(path, self.cwd)
        file = self.files.write(path, data, self.cwd, mode=mode & ~self.umask)
        if not existed:
            self._take_over(file)

    def _take_over(self, node: Node) -> None:
        """Makes the user and group of the program those of a new file; its group stays if it is that of the directory."""
        node.uid, node.gid = self.host.uid, node.gid or self.host.gid

    async def write(self, text: str | bytes) -> None:
        """Writes to stdout."""
        await self.stdout.write(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)

    async def complain(self, text: str, code: int = 1) -> int:
        """Writes an error message to stderr, after the name of the command. Returns `code`."""
        await self.stderr.write(f"{self.name}: {text}\n".encode("utf-8", "surrogateescape"))
        return code

    async def complain_about(self, path: str, error: OSError) -> int:
        """Writes the error message for a file to stderr. Returns 1."""
        return await self.complain(f"{path}: {error.strerror}")

    def path(self, path: str) -> str:
        """Returns the absolute path."""
        return posixpath.normpath(posixpath.join(self.cwd, path))

    def open(self, path: str, *, write: bool = False, append: bool = False, read: bool = True) -> Descriptor:
        """Opens a file; for writing it is created, and emptied unless `append`. Raises OSError."""
        if write:
            existed = self.files.exists(path, self.cwd)
            node: object = self.files.create(path, self.cwd, mode=0o666 & ~self.umask)
            if not existed and isinstance(node, File):
                self._take_over(node)
        else:
            node = self.files.node(path, self.cwd)
        if isinstance(node, Device):
            known = open_device(node)
            return known if known is not None else self._own_descriptor(node, path)
        if isinstance(node, Directory):
            raise oserror(errno.EISDIR, path)
        if not isinstance(node, File):
            raise oserror(errno.ENXIO, path)
        if write and not append and not read:
            self.files.reserve(node, 0, path)
            node.data.clear()
            node.mtime = self.files.now()
        return OpenFile(self.files, node, Flags(read, write, append))

    def _own_descriptor(self, node: Device, path: str) -> Descriptor:
        """Returns the descriptor for /dev/stdin, /dev/fd/3, /dev/tty or /proc/1/fd/1. Raises OSError if it is closed."""
        if not node.name:
            raise oserror(errno.ENXIO, path)
        stream, _, of_main = node.name.partition(" of ")
        if of_main:
            return _MainOutput(self.host, stream)
        number = 0 if node.name == "tty" else int(node.name.removeprefix("fd"))
        found = self.descriptors.get(number)
        if found is None:
            raise oserror(errno.ENXIO, path)
        return found.hold()

    async def inputs(self, paths: Sequence[str]) -> AsyncIterator[tuple[str, Descriptor]]:
        """Opens files and yields them; "-" is stdin, which is also the default. Writes an error for files that cannot be read,
        and sets `failed`."""
        for path in paths or ("-",):
            if path == "-":
                yield path, self.stdin
                continue
            try:
                opened = self.open(path)
            except OSError as error:
                await self.complain(f"can't open '{path}': {error.strerror}")
                self.failed = True
                continue
            try:
                yield path, opened
            finally:
                opened.close()

    async def run(self, argv: Sequence[str], **changes: Any) -> int:
        """Runs another command with the fields of this one, except `changes`. Returns the exit code."""
        return await self.run_other(argv, replace(self, **changes))


class _MainOutput(Descriptor):
    """The output of the main program of a container, which is in its log."""

    def __init__(self, host: Host, stream: str) -> None:
        super().__init__()
        self._host, self._stream = host, stream

    async def write(self, data: bytes) -> None:
        self._host.write_log(data.decode("utf-8", "replace"), self._stream)


Command = Callable[[Program], Awaitable[int]]
"""The implementation of a command. May raise Usage."""


def options(
    program: Program, short: str, long: Sequence[str] = (), *, mixed: bool = True, aliases: dict[str, str] | None = None
) -> tuple[dict[str, str], list[str]]:
    """Returns the options, by letter or name without dashes, and the operands.

    Args:
        program: whose arguments are read.
        short, long: as for `getopt`.
        mixed: options may come after operands.
        aliases: long options that mean the same as another one.

    Raises:
        Usage: an option is unknown, or lacks its argument.
    """
    pairs, operands = option_pairs(program, short, long, mixed=mixed)
    names = aliases or {}
    return {names.get(name, name): value for name, value in pairs}, operands


def option_pairs(
    program: Program, short: str, long: Sequence[str] = (), *, mixed: bool = True
) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns as `options` does, but each option as often as it is given, in order."""
    read = getopt.gnu_getopt if mixed else getopt.getopt
    try:
        found, operands = read(list(program.args), short, list(long))
    except getopt.GetoptError as error:
        unknown = "not recognized" in error.msg
        text = f"unrecognized option: {error.opt}" if unknown else f"option requires an argument: {error.opt}"
        raise Usage(text) from None
    return [(name.lstrip("-"), value) for name, value in found], list(operands)


#: The units of `size`, as in busybox (suffixes).
_UNITS = {"b": 512, "k": 1024, "K": 1024, "kB": 1000, "M": 1024**2, "MB": 1000**2, "G": 1024**3, "GB": 1000**3}


def size(text: str) -> int:
    """Parses a number with a unit, such as 10k. Raises Usage."""
    digits = text.rstrip("bkKMGB")
    try:
        return int(digits) * _UNITS.get(text[len(digits) :], 1)
    except ValueError:
        raise Usage(f"invalid number '{text}'") from None
