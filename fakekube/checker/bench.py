"""What all runs of one check have in common: the client, the sample, what is known of the calm run, and how much may run at once.

Invariant: at most as many clients start at the same time as there are processors, because starting is what costs; once they run,
they mostly wait.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.checker.default_sample import default_sample
from fakekube.checker.expectations import Expectations
from fakekube.checker.process import Starter
from fakekube.checker.sample import Sample
from fakekube.codecs import yaml
from fakekube.testing.kubeconfig import write_kubeconfig

if TYPE_CHECKING:
    from fakekube.checker.calm import Calm
    from fakekube.checker.spell import Spell
    from fakekube.cluster import Cluster

__all__ = ["Bench"]

#: Seconds that a client may take until its first request.
START_PATIENCE = 60.0


@dataclass
class Bench:
    """See the module.

    Args:
        starter: starts the client.
        sample: may be empty; then one is made of what the client watches.
        profile: of the clusters.
        seed: what all random choices follow from.
        idle: seconds of silence after which the client says that it gives up on a watch; None: it does not say.
        seconds: for how long repeated failures are provoked.
        expects: signs of a reaction that are told.
        quiet: seconds without a request after which a client of the calm run is quiet.
        start_patience: seconds that a client may take until its first request.
        timeout: seconds after which what has not been judged is given up; None for no limit.
    """

    starter: Starter
    sample: Sample
    profile: str = "cluster"
    seed: int = 0
    idle: float | None = None
    seconds: float = 10.0
    expects: Expectations = field(default_factory=Expectations)
    quiet: float = 0.8
    start_patience: float = START_PATIENCE
    timeout: float | None = None

    def __post_init__(self) -> None:
        self.calm: Calm | None = None
        self._begun = time.monotonic()
        self.stopping = threading.Event()
        """Set when the check is broken off."""
        self.busiest = 0
        """Requests of the client for the copies of the calm run."""
        self.starting = threading.BoundedSemaphore(max(os.cpu_count() or 1, 1))
        self._folder = tempfile.TemporaryDirectory(prefix="fakekube-check-", ignore_cleanup_errors=True)
        self._folders = 0
        self._numbering = threading.Lock()

    def new_folder(self, name: str) -> Path:
        """Returns a folder for one run."""
        with self._numbering:
            self._folders += 1
            number = self._folders
        folder = Path(self._folder.name) / f"{number}-{re.sub('[^A-Za-z0-9]+', '-', name)}"
        folder.mkdir()
        return folder

    def write_kubeconfig(self, cluster: Cluster, folder: Path, *, token_file: bool) -> Path:
        """Writes the kubeconfig of a run: of the cluster's administrator, with the token in a file if asked."""
        path = folder / "kubeconfig"
        if not token_file:
            cluster.write_kubeconfig(path)
            return path
        token = folder / "token"
        if not token.exists():
            token.write_text("admin-token", encoding="utf-8")
        cluster.write_kubeconfig(path)
        config, _ = yaml.loads(path.read_bytes())
        config["users"][0]["user"] = {"tokenFile": str(token)}
        write_kubeconfig(path, config)
        return path

    def slowness(self) -> float:
        """Returns by what factor this machine is too busy to be judged by usual times; at least 1."""
        try:
            return min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), 2.0)
        except OSError:
            return 1.0

    def time_is_up(self) -> bool:
        """Has the check taken as long as it may?"""
        return self.timeout is not None and time.monotonic() - self._begun > self.timeout

    @property
    def ends_by_itself(self) -> bool:
        """Has the client of the calm run ended, though nothing was wrong?"""
        calm = self.calm
        return calm is not None and calm.spell.process is not None and calm.spell.process.exit_code() is not None

    def default_sample(self, spell: Spell) -> Sample:
        """Returns a sample of what the client watches. Raises NotExercised."""
        watched = [(call.collection, call) for call in spell.trace if call.is_watch or call.is_list]
        return default_sample(watched)

    def close(self) -> None:
        """Ends the client of the calm run and deletes all files."""
        if self.calm is not None:
            self.calm.spell.close()
        self.starter.close()
        self._folder.cleanup()


def parse_names(names: str | Sequence[str] | None) -> list[str] | None:
    """Returns names that are separated by commas."""
    if names is None:
        return None
    parts = names.split(",") if isinstance(names, str) else [part for one in names for part in one.split(",")]
    return [part.strip() for part in parts if part.strip()]
