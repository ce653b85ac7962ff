"""`fakekube.check`: a check from Python.

report = fakekube.check(["python", "operator.py"], sample="sample.yaml", rules="W1,W5")
report.require_ok()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fakekube.checker.bench import Bench, parse_names
from fakekube.checker.calm import CalmRunFailed
from fakekube.checker.expectations import Expectations
from fakekube.checker.process import starter_of
from fakekube.checker.report import Report
from fakekube.checker.rules import UnknownRule, all_rules, chosen
from fakekube.checker.runner import Progress, run
from fakekube.checker.sample import Sample

if TYPE_CHECKING:
    from fakekube.testing.manifests import Source

__all__ = ["CalmRunFailed", "UnknownRule", "all_rules", "check"]


def check(
    start: Sequence[str] | Callable[..., Any],
    *,
    sample: Source | None = None,
    rules: str | Sequence[str] | None = None,
    legality: str | Sequence[str] = "A,C",
    idle: float | None = None,
    seconds: float = 10.0,
    expect: Iterable[str] = (),
    seed: int = 0,
    profile: str = "cluster",
    quiet: float = 0.8,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """Runs a client against clusters that do what a server may do, and says which obligations it breaks.

    Args:
        start: a command, which gets KUBECONFIG; or a function that is given the path of a kubeconfig: a coroutine function,
            which is cancelled at the end, or one that returns a context manager, a function that stops the client, or an
            object with `stop` or `close`. A function with a second parameter gets a `threading.Event` and may block until it
            is set.
        sample: manifests. Definitions are prerequisites; everything else is copied under new names as a stimulus. Without
            one, a small object of each resource that the client watches.
        rules: ids; they run with all their provocations. By default all rules.
        legality: the classes of provocations that run where no rules are named.
        idle: seconds of silence after which the client gives up on a watch, if it does.
        seconds: for how long repeated failures are provoked, in real seconds.
        expect: signs of the client's reaction, RESOURCE/NAME[:PATH[=VALUE]] with {name}; what is learned counts as well.
        seed: what all random choices follow from.
        profile: of the clusters.
        quiet: seconds without a request after which the client is taken to have reacted, while its reaction is learned;
            more for a client that waits before it acts.
        timeout: seconds for the whole check; what has not been judged then is not exercised. None for no limit.
        progress: called with a line of text for each step.

    Raises:
        CalmRunFailed: the client never came, or did not finish its calm run.
        UnknownRule: there is no such rule.
        ValueError: another argument is invalid; ManifestError for the sample.
    """
    selected = chosen(parse_names(rules), parse_names(legality) or [])
    bench = Bench(
        starter_of(start),
        Sample.of(sample) if sample is not None else Sample([], []),
        profile=profile,
        seed=seed,
        idle=idle,
        seconds=seconds,
        expects=Expectations.parse(expect),
        quiet=quiet,
        timeout=timeout,
    )
    exercised = {rule.id for rule in selected}
    left_out = [] if rules is not None else [rule for rule in all_rules() if rule.id not in exercised]
    try:
        return run(bench, selected, progress or (lambda line: None), left_out)
    finally:
        bench.close()
