"""The rule about clients during an upgrade of the API server to the next minor (D3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakekube.checker.rule import Rule, Verdict

if TYPE_CHECKING:
    from fakekube.checker.trial import Trial


class Upgrade(Rule):
    """The API server is replaced by one of the next minor, which has the same objects and the same address."""

    id = "D3"
    name = "minor"
    provocation = "the API server is replaced by one of the next minor"
    obligation = "a client survives an upgrade of the API server: it connects again, and repeats discovery if a version is gone"
    advice = "use versions of groups that both minors serve, retry refused connections, and list again after a 410"
    source = "Kubernetes docs, version skew policy and deprecation policy; KEP-4330 (compatibility versions)"
    steps = ("W1", "W8", "R2")
    watches = True
    expected_seconds = 15.0

    #: The minors before and after.
    FROM, TO = "1.36", "1.37"

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"version": self.FROM}

    def provoke(self, trial: Trial) -> None:
        trial.upgrade(self.TO)
        trial.await_until(lambda: bool(trial.trace.open_watches()), trial.reaction_timeout)

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.passed(f"from {self.FROM} to {self.TO}")


RULES = (Upgrade,)
