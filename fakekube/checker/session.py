"""The state that all runs of one check share: the client, the sample, concurrency limits, and how long this process stood still.

Invariant: at most as many clients start at the same time as there are processors, because starting is expensive; a running client
mostly waits.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import yaml
from fakekube.base.private_files import write_private
from fakekube.checker.reaction import Expectations
from fakekube.cluster.kubeconfig import write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from fakekube.checker.process import Starter
    from fakekube.checker.sample import Sample
    from fakekube.cluster import Cluster
    from fakekube.powers.trace import TraceParts


#: How many seconds a client may take until its first request.
START_TIMEOUT = 60.0


@dataclass
class Session:
    """The shared state of one check.

    Args:
        starter: starts the client.
        sample: if it is empty, the baseline run creates one from the resources that the client watches.
        profile: the profile of the clusters.
        version: the minor of Kubernetes that they emulate.
        seed: the seed of all random choices.
        idle: seconds without data after which the client closes a watch; None if unknown.
        seconds: how long repeated failures are provoked.
        expects: objects and fields that the user expects as a reaction.
        quiet: seconds without a request after which the baseline run considers a reaction complete.
        start_timeout: how many seconds a client may take until its first request.
        timeout: seconds after which the remaining rules are not exercised; None for no limit.
        depth: the profile of rules, fast or full.
        traced: whether traces for the page are made of the runs that fail or warn, and of the baseline run.
        accepted: the keys of provocations whose failures and warnings are accepted.
        kept: the folder in which the trace and the output of each run are kept; None if they are not.
    """

    #: Why a rule has no verdict if the timeout has passed.
    TIME_IS_UP: ClassVar[str] = "the timeout of the check had passed"

    starter: Starter
    sample: Sample
    profile: str = "cluster"
    version: str = data.DEFAULT
    seed: int = 0
    idle: float | None = None
    seconds: float = 10.0
    expects: Expectations = field(default_factory=Expectations)
    quiet: float = 0.8
    start_timeout: float = START_TIMEOUT
    timeout: float | None = None
    depth: str = "full"
    kept: Path | None = None
    traced: bool = False
    accepted: Container[str] = ()

    def __post_init__(self) -> None:
        self._begun = time.monotonic()
        self.stopping = threading.Event()
        """Set when the check is aborted."""
        self.stalls = Stalls()
        self.traces: dict[str, TraceParts] = {}
        """Key of a provocation, or `baseline` → the data of a trace file of its last run."""
        self.processors = max(os.cpu_count() or 1, 1)
        self.starting = threading.BoundedSemaphore(self.processors)
        self.starts: list[float] = []
        """The seconds that each start of a client took until its first request, as long as others had to wait."""
        self._folder = tempfile.TemporaryDirectory(prefix="fakekube-check-", ignore_cleanup_errors=True)
        self._folders = 0
        self._numbering = threading.Lock()

    @property
    def folder(self) -> Path:
        """The folder of the check."""
        return Path(self._folder.name)

    def new_folder(self, name: str) -> Path:
        """Returns a folder for one run."""
        with self._numbering:
            self._folders += 1
            number = self._folders
        folder = self.folder / f"{number}-{re.sub('[^A-Za-z0-9]+', '-', name)}"
        folder.mkdir()
        return folder

    def write_kubeconfig(self, cluster: Cluster, folder: Path, *, token_file: bool) -> Path:
        """Writes the kubeconfig of a run for the cluster's administrator; with `token_file` it refers to a file with the
        token."""
        path = folder / "kubeconfig"
        if not token_file:
            cluster.write_kubeconfig(path)
            return path
        token = folder / "token"
        if not token.exists():
            write_private(token, "admin-token")
        cluster.write_kubeconfig(path)
        config, _ = yaml.loads(path.read_bytes())
        config["users"][0]["user"] = {"tokenFile": str(token)}
        write_kubeconfig(path, config)
        return path

    def slowness(self) -> float:
        """Returns the factor by which timeouts grow because of the load of this machine: 1 to 2."""
        return min(self.competitors(), 2.0)

    def competitors(self) -> float:
        """Returns how many processes of this machine share a processor, at least 1."""
        try:
            return max(os.getloadavg()[0] / self.processors, 1.0)
        except OSError:
            return 1.0

    def time_is_up(self) -> bool:
        """Reports whether the timeout of the check has passed."""
        return self.timeout is not None and time.monotonic() - self._begun > self.timeout

    def close(self) -> None:
        """Stops all clients and deletes all files."""
        self.starter.close()
        self._folder.cleanup()


def parse_names(names: str | Sequence[str] | None) -> list[str] | None:
    """Splits names that are separated by commas; None stays None."""
    if names is None:
        return None
    parts = names.split(",") if isinstance(names, str) else [part for one in names for part in one.split(",")]
    return [part.strip() for part in parts if part.strip()]


#: Seconds for which this process may stand still during a run that counts.
STALLED = 1.5

#: The interval between two measurements, and the shortest stall that is remembered, in seconds.
_INTERVAL, _SHORTEST = 0.1, 0.5


class Stalls:
    """The stalls of this process while it is `measuring`, because the machine or the interpreter was busy.

    During a stall the cluster answers nothing, so that the timeouts of correct clients pass, and what the trace shows as
    delivered was not sent yet. A thread sleeps and notices how much longer than intended it slept; a stall is known when it has
    ended, at the latest one interval later.
    """

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []
        self._stopped = threading.Event()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Measures within the context, which may be entered again after it has been left."""
        self._stopped.clear()
        thread = threading.Thread(target=self._measure, name="fakekube-check-stalls", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _measure(self) -> None:
        while not self._stopped.is_set():
            begun = time.monotonic()
            self._stopped.wait(_INTERVAL)
            self.observe(begun, time.monotonic())

    def observe(self, begun: float, ended: float) -> None:
        """Records a sleep that was intended to take an interval, with times of `time.monotonic()`."""
        if ended - begun - _INTERVAL >= _SHORTEST:
            self._found.append((ended, ended - begun - _INTERVAL))

    def longest(self, since: float) -> float:
        """Returns the seconds of the longest stall that ended after a time of `time.monotonic()`; 0 if there was none."""
        return max((seconds for ended, seconds in list(self._found) if ended >= since), default=0.0)
