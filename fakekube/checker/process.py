"""Starts and stops the client under check: a command, or a function in this process.

A command runs in a session of its own, with KUBECONFIG in its environment and a folder of its own for temporary files, so that
runs do not share caches. A function runs in a thread. A watchdog kills the clients if the check itself is killed.

Invariant: after `kill` no process of the command's process group runs.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


#: How many seconds `join` waits for a function to return.
_STOP_TIMEOUT = 5.0

#: How many bytes of the output are shown.
_TAIL = 1200
#: The output file is truncated above this size in bytes; it is checked at this interval in seconds.
MOST_OUTPUT, _TIDY_SECONDS = 4 << 20, 0.5


#: Words in the line of the output that has the reason why a program ended: of Go, of Java, and of log levels.
_FATAL = ("panic:", "Exception in thread", "fatal", "FATAL")
#: A line of a stack trace of Java or Node, and what Node prints after it.
_OF_STACK = re.compile(r"at \S+.*\)$|at (file|node):|\.\.\. \d+ more$|Node\.js v\d")
#: How many characters of a line are shown.
_LINE = 200


def fatal_line(output: str) -> str:
    """Returns the line of an output that probably explains why the program ended: the last fatal one, else the last one that is
    no part of a stack trace."""
    lines = [line.strip() for line in output.splitlines()]
    telling = [line for line in lines if re.search(r"\w", line) and not _OF_STACK.match(line)] or lines or [""]
    return next((line for line in reversed(telling) if any(word in line for word in _FATAL)), telling[-1])[:_LINE]


def tail_of(path: Path, size: int) -> bytes:
    """Returns the last bytes of a file, at most `size`. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - size, 0))
        return file.read(size)


class ClientProcess(Protocol):
    """A started client."""

    process_id: int
    """The process in which it runs, which may be this one."""

    def exit_code(self) -> int | None:
        """Returns the exit code, negative for a signal; None while the client runs."""

    def kill(self) -> None:
        """Stops the client at once. May be called twice."""

    def join(self) -> None:
        """Waits until a killed client has ended. Called after its cluster has stopped."""

    def output(self) -> str:
        """Returns the last part of the client's output."""

    def processor_seconds(self) -> float:
        """Returns how many seconds of a processor the client has used; 0 if this is unknown."""

    def is_runnable(self) -> bool:
        """Reports whether the client computes, or would if it got a processor or what it reads from a disk; False if this is
        unknown."""


def source_of(paths: Sequence[str]) -> str:
    """Returns the first of some paths that is a file below the working directory, relative to it; else the last part of the first
    path."""
    here = Path.cwd().resolve()
    for path in paths:
        file = Path(os.path.realpath(path))
        if os.path.isfile(path) and file.is_relative_to(here):
            return file.relative_to(here).as_posix()
    return Path(paths[0]).name


class Starter(Protocol):
    """Starts clients; `name` is the name of the client in the report."""

    name: str
    source: str
    """A file of the client, relative to the working directory, or its name if it has no file there."""
    restartable: bool
    """Whether the client can be killed at any time and started again."""

    def start(self, kubeconfig: Path, folder: Path, root: Path) -> ClientProcess:
        """Starts a client.

        Args:
            kubeconfig: of the cluster.
            folder: of this client, in `root` or the same.
            root: a folder of the caller alone. At `close`, and when the caller dies, it is removed, and processes that have it in
                their environment are killed.

        Raises OSError if the command cannot be run.
        """

    def tidy(self) -> None:
        """Truncates long outputs of running clients. Called repeatedly."""

    def close(self) -> None:
        """Stops all remaining processes of clients."""


def starter_of(client: Sequence[str] | Callable[..., Any]) -> Starter:
    """Returns the starter for a command line or a function."""
    return InProcessStarter(client) if callable(client) else CommandStarter(list(client))


class CommandStarter:
    """Starts a command."""

    restartable = True

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self.name = " ".join(command)
        self.source = source_of(command)
        self._watchdog = Watchdog()
        self._running: set[_Command] = set()
        self._tidied_at = 0.0

    def start(self, kubeconfig: Path, folder: Path, root: Path) -> ClientProcess:
        folder.mkdir(parents=True, exist_ok=True)
        environment = {"KUBECONFIG": str(kubeconfig), "TMPDIR": str(folder)}
        started = _Command(self._command, environment, folder / "output.txt", self._forget)
        self._watchdog.add_group(started.group, root)
        self._running.add(started)
        return started

    def _forget(self, command: _Command) -> None:
        self._running.discard(command)
        self._watchdog.remove_group(command.group)

    def tidy(self) -> None:
        now = time.monotonic()
        if now - self._tidied_at > _TIDY_SECONDS:
            self._tidied_at = now
            for command in list(self._running):
                command.shorten_output()

    def close(self) -> None:
        self._watchdog.close()


class _Command:
    """A started command.

    Args:
        command: the command line.
        environment: variables in addition to those of this process.
        output: the file to which its output is appended.
        ended: called when it has been killed.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], output: Path, ended: Callable[[_Command], None]
    ) -> None:
        self._output = output
        self._printed_before = b""
        self._ended = ended
        self._killed = False
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.group = self.process_id = self._process.pid

    def exit_code(self) -> int | None:
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()
        try:  # the process stays a zombie until `kill`, so that no other process gets the number of its group
            found = os.waitid(os.P_PID, self.group, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # killed meanwhile
            return self._process.poll()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def kill(self) -> None:
        if not self._killed:  # later another process may have the number of the group
            self._killed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
            self._process.wait()
        self._ended(self)

    def join(self) -> None:
        self._process.wait()

    def processor_seconds(self) -> float:
        try:  # after the name, which may have spaces: the fields from the third one on
            fields = Path(f"/proc/{self.group}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError):
            return 0.0

    def is_runnable(self) -> bool:
        return any(_state_of(thread / "stat") in "RD" for thread in _threads_of(self.group))

    def output(self) -> str:
        return (self._printed_before + tail_of(self._output, _TAIL))[-_TAIL:].decode(errors="replace").strip()

    def shorten_output(self) -> None:
        """Truncates the output file if it is large. The client continues to append to it."""
        with suppress(OSError):
            if self._output.stat().st_size > MOST_OUTPUT:
                self._printed_before = tail_of(self._output, _TAIL)
                os.truncate(self._output, 0)


def _threads_of(process: int, proc: Path = Path("/proc")) -> Iterator[Path]:
    """Yields the folders of the threads of a process and of those that these have started, as a shell does for each command."""
    with suppress(OSError):  # the process may have ended, or ends meanwhile; so may each thread
        for thread in (proc / str(process) / "task").iterdir():
            yield thread
            with suppress(OSError):
                for child in (thread / "children").read_text(encoding="utf-8").split():
                    yield from _threads_of(int(child), proc)


def _state_of(stat: Path) -> str:
    """Returns the state of a thread, such as R; S if it has ended."""
    try:
        return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "S"


class InProcessStarter:
    """Starts clients by calling a function with the path of a kubeconfig.

    The function is a coroutine function that runs until it is cancelled, or returns a context manager, a function that stops the
    client, or an object with `stop()` or `close()`. If it has a second parameter, it receives a `threading.Event`, which is set
    when the client has to stop, and may block until then.
    """

    restartable = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.name = getattr(function, "__qualname__", type(function).__name__)
        code = getattr(function, "__code__", None)
        self.source = source_of([code.co_filename if code is not None else self.name])

    def start(self, kubeconfig: Path, folder: Path, root: Path) -> ClientProcess:
        return _InProcess(self._function, kubeconfig)

    def tidy(self) -> None:
        """Does nothing: a function has no output file."""

    def close(self) -> None:
        """Does nothing: a function has no processes."""


class _InProcess:
    """A function that runs in a thread, see `InProcessStarter`."""

    def __init__(self, function: Callable[..., Any], kubeconfig: Path) -> None:
        self.process_id = os.getpid()
        self._stopped = threading.Event()
        self._code: int | None = None
        self._error = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._thread = threading.Thread(target=self._run, args=(function, kubeconfig), name="fakekube-check-client", daemon=True)
        self._thread.start()

    def _run(self, function: Callable[..., Any], kubeconfig: Path) -> None:
        try:
            if inspect.iscoroutinefunction(function):
                asyncio.run(self._run_task(function, kubeconfig))
            else:
                wants_event = len(inspect.signature(function).parameters) > 1
                self._run_until_stopped(function(kubeconfig, self._stopped) if wants_event else function(kubeconfig))
            self._code = 0
        except asyncio.CancelledError:
            self._code = 0
        except BaseException as error:
            self._error, self._code = f"{type(error).__name__}: {error}", 1

    async def _run_task(self, function: Callable[..., Any], kubeconfig: Path) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if not self._stopped.is_set():
            await function(kubeconfig)

    def _run_until_stopped(self, made: object) -> None:
        """Waits until the client has to stop, and stops it."""
        if isinstance(made, AbstractContextManager):
            with made:
                self._stopped.wait()
            return
        stop = next((getattr(made, name) for name in ("stop", "close") if hasattr(made, name)), made)
        if callable(stop):
            self._stopped.wait()
            stop()

    def exit_code(self) -> int | None:
        return None if self._stopped.is_set() else self._code

    def kill(self) -> None:
        self._stopped.set()
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)

    def join(self) -> None:
        self._thread.join(_STOP_TIMEOUT)

    def processor_seconds(self) -> float:
        return 0.0

    def is_runnable(self) -> bool:
        return False

    def output(self) -> str:
        return self._error


#: The script of the watchdog reads lines "+ GROUP" and "- GROUP"; its argument is the folder of the check.
_SCRIPT = """
trap '' INT TERM HUP
groups=
while read -r sign group; do
  case $sign in
    +) groups="$groups $group" ;;
    -) left=
       for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
       groups=$left ;;
  esac
done
for one in $groups; do kill -s KILL -- "-$one"; done
for file in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
  process=${file#/proc/}
  kill -s KILL "${process%/environ}"
done
rm -rf -- "$1"
"""

#: How many seconds `close` waits for the shell to end.
_CLOSE_TIMEOUT = 10.0


class Watchdog:
    """The shell that kills the clients if the check dies.

    It reads from a pipe whose other end only the check holds. The check writes each process group that it starts or kills into
    the pipe. When the pipe is closed, for any reason, the shell kills the remaining process groups. On Linux it also kills
    processes that have left their group; it finds them by the check's folder in their environment. The shell starts together
    with the first client. If it cannot start, the check runs without it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None

    def add_group(self, group: int, folder: Path) -> None:
        """Registers a started process group; `folder` is the folder of the check, which the shell deletes at the end."""
        with self._lock:
            if self._shell is None:
                with suppress(OSError):
                    self._shell = _start_shell(folder)
        self._tell("+", group)

    def remove_group(self, group: int) -> None:
        """Removes a killed process group."""
        self._tell("-", group)

    def _tell(self, sign: str, group: int) -> None:
        with self._lock, suppress(OSError):
            if self._shell is not None and self._shell.stdin is not None:
                self._shell.stdin.write(f"{sign} {group}\n".encode())

    def close(self) -> None:
        """Closes the pipe, so that the shell kills the remaining clients and ends."""
        with self._lock:
            shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        shell.stdin.close()
        try:
            shell.wait(_CLOSE_TIMEOUT)
        except subprocess.TimeoutExpired:
            shell.kill()
            shell.wait()


def _start_shell(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, "fakekube-check", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        start_new_session=True,
    )
