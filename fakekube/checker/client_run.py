"""A client that runs on a cluster of its own: starts and ends both, and waits for conditions while the client runs.

Invariant: every wait ends early if the client has ended or is in a hot loop.
"""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING, Any

from fakekube.checker.process import MOST_OUTPUT, ClientProcess, fatal_line, tail_of
from fakekube.checker.trace import Trace
from fakekube.checker.verdict import NotExercised
from fakekube.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.sample import Sample
    from fakekube.checker.session import Session
    from fakekube.powers.faults import Faults

#: The first and the longest interval between two evaluations of a condition, in seconds.
_FIRST_LOOK, _LONGEST_LOOK = 0.01, 0.1
#: The interval between two looks at the client, in seconds.
_CLIENT_LOOK = 0.3

#: Only so many seconds of a timeout grow with the load of the machine; pauses of clients do not grow with it.
_SLOWED = 12.0
#: How many lines of a client's output are part of the evidence.
_PRINTED = 8


class ClientEnded(Exception):
    """The client has ended by itself."""


class Decided(Exception):
    """The verdict is known, so that the run ends early."""


class HotLoop(Exception):
    """The client sends requests without a pause."""


class ClientRun:
    """A client and its cluster.

    Args:
        session: the shared state of the check.
        name: the seeds of random choices follow from it.
        arguments: of the cluster, besides the usual ones.
        token_file: whether the kubeconfig refers to a file with the token.
    """

    def __init__(self, session: Session, name: str, arguments: Mapping[str, Any], *, token_file: bool) -> None:
        self.session = session
        self.zero = time.monotonic()
        self._token_file = token_file
        self._arguments = {
            "profile": session.profile,
            "version": session.version,
            "control": False,
            "keep_requests": 50_000,
            **arguments,
        }
        self.cluster = Cluster(**self._arguments)
        self.seed(name)
        self.trace = Trace(self.cluster, self.zero)
        self.folder = session.new_folder(name)
        self.process: ClientProcess | None = None
        self.started_at = 0.0
        """When the client was last started, in seconds of the trial."""
        self.provoked = False
        """Whether the provocation has begun."""
        self.provoked_at: int = -1
        """The mark of the trace at which the provocation began."""
        self.ended: str = ""
        """How the client ended by itself; "" if it did not."""
        self.was_killed = False
        """Whether something else than the check has killed it."""
        self.ended_at = 0.0
        """When the end of the client was noticed, in seconds of the trial."""
        self.printed: Sequence[str] = ()
        """The last lines of its output before it ended."""

    def seed(self, name: str) -> None:
        """Makes the random choices follow from the seed of the check and a name."""
        self.random = random.Random(f"{self.session.seed}/{name}")
        self.cluster.faults.seed(self.random.randrange(1 << 30))

    # --- Properties ---------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        return self.cluster.faults

    @property
    def sample(self) -> Sample:
        return self.session.sample

    @property
    def now(self) -> float:
        """Seconds since the trial began."""
        return time.monotonic() - self.zero

    # --- The cluster and the client -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Starts the cluster and creates the prerequisites."""
        self.cluster.start()
        if self.session.traced:
            self.cluster.keep_changes()
        self.load_prerequisites(self.sample.prerequisites)

    def upgrade(self, version: str) -> None:
        """Replaces the cluster by one of another minor, with the same objects and the same address."""
        old, port = self.cluster, self.cluster.port
        snapshot = old.snapshot()
        old.stop()
        self.cluster = Cluster(**{**self._arguments, "version": version, "port": port})
        self.cluster.restore(snapshot)
        self.cluster.start()
        self.trace.follow(self.cluster)

    def load_prerequisites(self, objects: Sequence[Object]) -> None:
        """Creates definitions and namespaces and waits until they can be used."""
        for obj in objects:
            self.cluster.load(obj)
        self.cluster.settle(timeout=20.0)

    def start_client(self) -> None:
        """Starts the client when few enough other clients are starting, and waits for its first request, so that not too many
        clients start at the same time."""
        with self.session.starting:
            mark = self.trace.mark()
            self.launch()
            if self.await_until(lambda: bool(self.trace.since(mark)), self.start_timeout()):
                self.session.starts.append(self.now - self.started_at)

    def start_timeout(self) -> float:
        """Returns how many seconds the client may take until its first request."""
        return self.session.start_timeout

    def launch(self) -> None:
        """Starts the client at once."""
        self.started_at = self.now
        kubeconfig = self.session.write_kubeconfig(self.cluster, self.folder, token_file=self._token_file)
        self.process = self.session.starter.start(kubeconfig, self.folder, self.session.folder)

    def kill_client(self) -> None:
        """Kills the client; no client runs until the next start."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()

    def restart_client(self) -> None:
        """Kills the client and starts it again; a rule that does this sets `restarts`."""
        self.kill_client()
        self.start_client()

    def close(self) -> None:
        """Stops the client and the cluster. May be called twice."""
        self.faults.clear()
        if self.process is not None:
            self.process.kill()
        self.cluster.stop()
        if self.process is not None:
            self.process.join()

    def has_ended(self) -> bool:
        """Reports whether the client has ended by itself."""
        return self.process is not None and self.process.exit_code() is not None

    def output_kept(self) -> str:
        """Returns what the client has printed, at most the last 4 MB."""
        file = self.folder / "output.txt"
        return tail_of(file, MOST_OUTPUT).decode(errors="replace") if file.exists() else self.output()

    def processor_seconds(self) -> float:
        """Returns how many seconds of a processor the client has used; 0 if this is unknown."""
        return self.process.processor_seconds() if self.process is not None else 0.0

    def is_runnable(self) -> bool:
        """Reports whether the client computes, or waits for a processor or a disk; False if this is unknown."""
        return self.process is not None and self.process.is_runnable()

    def output(self) -> str:
        """Returns the last part of the client's output, "" if it was not started."""
        return self.process.output() if self.process is not None else ""

    # --- Waiting ------------------------------------------------------------------------------------------------------

    def await_until(self, condition: Callable[[], bool], seconds: float | Callable[[float], float]) -> bool:
        """Waits until a condition holds; returns whether it does. Time in which this process could not run does not count.

        Args:
            condition: evaluated repeatedly.
            seconds: the timeout, or a function such as `reaction_timeout`. The function receives the start of the wait, in
                seconds of the trial, and returns the timeout; it is called again when that has passed, and may return a
                longer one.

        Raises ClientEnded, HotLoop and Decided; NotExercised if the check is aborted or its timeout has passed.
        """
        look, waited, checked, since = _FIRST_LOOK, 0.0, 0.0, self.now
        allowed = seconds(since) if callable(seconds) else seconds + (self.session.slowness() - 1) * min(seconds, _SLOWED)
        asked_at = time.thread_time()
        while not condition():
            waited += time.thread_time() - asked_at  # it is long when a client that loops has sent very many requests
            if self.session.stopping.is_set():
                raise NotExercised("the check was aborted")
            if self.session.time_is_up():
                raise NotExercised(self.session.TIME_IS_UP)
            if waited >= allowed:
                allowed = seconds(since) if callable(seconds) else allowed
                if waited >= allowed:
                    return False
            if waited - checked >= _CLIENT_LOOK:
                checked = waited
                self.look_at_client()
            before = time.monotonic()
            time.sleep(look)
            waited += min(time.monotonic() - before, 2 * look)
            look = min(look * 1.3, _LONGEST_LOOK)
            asked_at = time.thread_time()
        return True

    def wait(self, seconds: float) -> None:
        """Waits for a time while the client runs. Raises ClientEnded, HotLoop and Decided."""
        end = self.now + seconds
        self.await_until(lambda: self.now >= end, seconds * 10)

    def look_at_client(self) -> None:
        """Raises ClientEnded if the client has ended by itself, and whatever `look_at_trace` raises."""
        self.session.starter.tidy()
        process = self.process
        if process is None:
            return
        code = process.exit_code()
        if code is not None:
            self._set_ended(code, process.output())
            raise ClientEnded(self.ended)
        self.look_at_trace()

    def look_at_trace(self) -> None:
        """Called repeatedly while the client runs. Raises HotLoop if it does not pause, and Decided if the verdict is known."""

    def _set_ended(self, code: int, output: str) -> None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        self.ended = f"the client ended ({how})"
        self.ended_at = self.now
        self.was_killed = code == -signal.SIGKILL
        if output:
            self.ended += f"; it printed: {fatal_line(output)}"
            self.printed = output.splitlines()[-_PRINTED:]
