"""The base class of rules: an obligation of clients, a provocation, and a verdict.

Several rules may have the same id and different provocations. They are one row of the report.

Invariant: each run has a rule of its own, made from the class. What a run has to remember between `provoke` and `judge` are
attributes of this object, and nothing else. Only rules that provoke nothing see several runs (`in_every_run`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from fakekube.checker.judges import judge_convergence, judge_process
from fakekube.checker.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fakekube.checker.trial import Baseline, Trial

#: The first words of the provocation of a rule that provokes nothing and inspects the traces of all runs.
IN_EVERY_RUN = "in every run: "


class Rule:
    """The base class of rules.

    A subclass sets the class attributes and overrides some of the methods, which are called in the order of their definition.
    After `provoke`, if `converges` is set, the runner creates a fresh copy of the sample and waits until the client has reacted
    to all copies. `judge` is called in any case.
    """

    id: ClassVar[str]
    """The id in docs/client-rules.md."""
    name: ClassVar[str]
    """A word that tells the provocation from the others of the same id: `--again W8/slices`."""
    provocation: ClassVar[str]
    """A short description, different for each rule with the same id. The seed of the rule's random choices depends on it."""
    obligation: ClassVar[str]
    advice: ClassVar[str]
    """How the author of the client can fix it."""
    source: ClassVar[str]
    """The documentation or source code that specifies the obligation."""
    legality: ClassVar[str] = "A"
    """A: kube-apiserver does it, B: the contract allows it, C: the network does it."""

    fast: ClassVar[bool] = False
    """Whether the rule belongs to the profile fast."""
    decisive: ClassVar[bool] = False
    """Whether the row of the id is "not exercised" if this provocation is, although others passed."""
    steps: ClassVar[Sequence[str]] = ()
    """The ids of the rules whose faults this provocation uses as steps, such as W5 for the normal end of a watch."""
    is_step: ClassVar[bool] = False
    """Whether this provocation is the one that tells whether a client survives the step with its id."""
    watches: ClassVar[bool] = False
    """Whether the rule is about a client that watches."""
    restarts: ClassVar[bool] = False
    """Whether the provocation kills the client and starts it again, which is impossible for a function."""
    at_start: ClassVar[bool] = False
    """Whether the provocation begins before the client starts. Otherwise it begins after the client has reacted to a copy."""
    converges: ClassVar[bool] = True
    """Whether the client must react to a fresh copy afterwards."""
    in_every_run: ClassVar[bool] = False
    """Whether the rule provokes nothing and inspects the traces of the runs of all rules."""
    distorts: ClassVar[bool] = False
    """Whether the provocation answers what a trace cannot be judged by, so that no rule inspects its run."""
    on_baseline: ClassVar[bool] = False
    """Whether the rule provokes nothing and judges the baseline run."""
    expected_seconds: ClassVar[float] = 5.0
    """About how many seconds the rule takes with a correct client; rules that take longest start first."""
    token_file: ClassVar[bool] = False
    """Whether the kubeconfig refers to a file with the token."""

    fallback: ClassVar[type[Rule] | None] = None
    """The rule to run instead of this one if the client does not react before the provocation."""

    @property
    def key(self) -> str:
        """The id and the name, such as W8/slices."""
        return f"{self.id}/{self.name}"

    def make_fresh(self) -> Self:
        """Returns a rule of the same class for another run."""
        return type(self)()

    def cluster_arguments(self) -> Mapping[str, Any]:
        """Returns arguments of `Cluster` for this rule."""
        return {}

    def require(self, baseline: Baseline) -> None:
        """Called before anything is started. Raises NotExercised if the baseline run or the sample already shows that the rule
        does not apply to the client."""

    def prepare(self, trial: Trial) -> None:
        """Called before the client starts. Raises NotExercised."""

    def explain_before(self, trial: Trial, happened: str) -> str:
        """Returns the reason why the rule is not exercised if the client ends or does not react before the provocation.

        Args:
            trial: the run.
            happened: what was seen; the reason, if the rule knows no better one.
        """
        return happened

    def provoke(self, trial: Trial) -> None:
        """Called while the client runs. Raises NotExercised."""

    def find_failure(self, trial: Trial) -> Verdict | None:
        """Returns a failure that the trace already shows, so that the run can end early. Called repeatedly after the provocation
        has begun."""
        return None

    def judge(self, trial: Trial) -> Verdict:
        """Returns the verdict: that of `find_failure`, else of the process and of convergence, else of `judge_trace`."""
        return self.find_failure(trial) or judge_process(trial) or judge_convergence(trial) or self.judge_trace(trial)

    def inspect(self, trial: Trial) -> Verdict | None:
        """Returns a failure that the trace of a run of any rule shows; None if there is none. Called if `in_every_run`."""
        return None

    def conclude(self) -> Verdict | None:
        """Returns a failure that only all inspected runs together show; None if there is none. Called if `in_every_run`."""
        return None

    def judge_trace(self, trial: Trial) -> Verdict:
        """Returns the verdict for a client that still runs and has converged."""
        return Verdict.success(*trial.notes)
