"""The state that all runs of one check share: the client, the sample, the result of the baseline run, concurrency limits.

Invariant: at most as many clients start at the same time as there are processors, because starting is expensive; a running client
mostly waits.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from fakekube.apimachinery.codecs import yaml
from fakekube.base.private_files import write_private
from fakekube.checker.default_sample import default_sample
from fakekube.checker.expectations import Expectations
from fakekube.checker.kept_runs import BASELINE, keep_run
from fakekube.checker.rule import Outcome, Rule, Verdict
from fakekube.checker.stalls import Stalls
from fakekube.cluster.kubeconfigs import write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.checker.baseline import Baseline
    from fakekube.checker.process import Starter
    from fakekube.checker.sample import Sample
    from fakekube.checker.trial import Trial
    from fakekube.cluster import Cluster
    from fakekube.powers.trace import TraceParts

#: How many seconds a client may take until its first request.
START_TIMEOUT = 60.0
#: The maximum size of the trace of one run, in bytes.
_TRACE_LIMIT = 2_000_000


@dataclass
class Session:
    """The shared state of one check.

    Args:
        starter: starts the client.
        sample: if it is empty, the baseline run creates one from the resources that the client watches.
        profile: the profile of the clusters.
        seed: the seed of all random choices.
        idle: seconds without data after which the client closes a watch; None if unknown.
        seconds: how long repeated failures are provoked.
        expects: objects and fields that the user expects as a reaction.
        quiet: seconds without a request after which the baseline run considers a reaction complete.
        start_timeout: how many seconds a client may take until its first request.
        timeout: seconds after which the remaining rules are not exercised; None for no limit.
        depth: the profile of rules, fast or full.
        traced: whether traces for the page are made of the runs that fail or warn, and of the baseline run.
        kept: the folder in which the trace and the output of each run are kept; None if they are not.
    """

    #: Why a rule has no verdict if the timeout has passed.
    TIME_IS_UP: ClassVar[str] = "the timeout of the check had passed"

    starter: Starter
    sample: Sample
    profile: str = "cluster"
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

    def __post_init__(self) -> None:
        self.baseline: Baseline | None = None
        self._begun = time.monotonic()
        self.stopping = threading.Event()
        """Set when the check is aborted."""
        self.stalls = Stalls()
        self.traces: dict[str, TraceParts] = {}
        """Key of a provocation, or `baseline` → the data of a trace file of its last run."""
        self.inspections = Inspections()
        self.baseline_requests = 0
        """How many requests the client sent for the copies of the baseline run."""
        self.processors = max(os.cpu_count() or 1, 1)
        self.starting = threading.BoundedSemaphore(self.processors)
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
        try:
            return min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), 2.0)
        except OSError:
            return 1.0

    def time_is_up(self) -> bool:
        """Reports whether the timeout of the check has passed."""
        return self.timeout is not None and time.monotonic() - self._begun > self.timeout

    def default_sample(self, trial: Trial) -> Sample:
        """Returns a sample of the resources that the client watches. Raises NotExercised if there is none for them."""
        watched = [(call.collection, call) for call in trial.trace if call.is_watch or call.is_list]
        return default_sample(watched)

    def keep(self, trial: Trial, verdict: Verdict | None) -> None:
        """Writes the trace and the output of a run into the folder of the user, if there is one. Raises OSError."""
        if self.kept is not None:
            keep_run(self.kept, trial, verdict)
        if self.traced and (verdict is None or verdict.outcome in (Outcome.FAIL, Outcome.WARN)):
            key = trial.rule.key if trial.rule is not None else BASELINE
            trial.cluster.test = {"id": key, "outcome": str(verdict.outcome) if verdict is not None else "", "message": ""}
            self.traces[key] = trial.cluster.trace_parts(limit=_TRACE_LIMIT)

    def close(self) -> None:
        """Stops the client of the baseline run and deletes all files."""
        if self.baseline is not None:
            self.baseline.trial.close()
            self.keep(self.baseline.trial, None)
        self.starter.close()
        self._folder.cleanup()


class Inspections:
    """The findings of some rules in the runs of a check."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = rules
        self._found: dict[Rule, Verdict] = {}
        self._runs = 0
        self._lock = threading.Lock()

    def inspect(self, trial: Trial) -> None:
        """Inspects the trace of a finished run; `trial` may be that of the baseline."""
        if trial.rule is not None and trial.rule.distorts:
            return
        where = trial.rule.key if trial.rule is not None else "the baseline run"
        with self._lock:
            self._runs += 1
        for rule in self._rules:
            verdict = rule.inspect(trial) if rule not in self._found else None
            if verdict is not None:
                first, *others = verdict.evidence
                with self._lock:
                    self._found.setdefault(rule, replace(verdict, evidence=[f"in {where}: {first}", *others]))

    def verdict(self, rule: Rule) -> Verdict:
        """Returns the verdict of one of the rules."""
        return self._found.get(rule) or Verdict.passed(f"{self._runs} runs")


def parse_names(names: str | Sequence[str] | None) -> list[str] | None:
    """Splits names that are separated by commas; None stays None."""
    if names is None:
        return None
    parts = names.split(",") if isinstance(names, str) else [part for one in names for part in one.split(",")]
    return [part.strip() for part in parts if part.strip()]
