"""`fakekube.check`: a check from Python.

report = fakekube.check(["python", "operator.py"], sample="sample.yaml", rules="W1,W5")
report.require_ok()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fakekube.checker.baseline import BaselineFailed
from fakekube.checker.expectations import Expectations
from fakekube.checker.process import starter_of
from fakekube.checker.report import Report
from fakekube.checker.rules import UnknownRule, all_rules, chosen
from fakekube.checker.runner import Progress, run
from fakekube.checker.sample import Sample
from fakekube.checker.session import Session, parse_names

if TYPE_CHECKING:
    from fakekube.cluster.testing.manifests import Source

__all__ = ["BaselineFailed", "UnknownRule", "all_rules", "check"]


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
    """Runs a client against clusters that behave in every way a server may behave, and reports which rules it breaks.

    Args:
        start: a command, which receives KUBECONFIG in its environment, or a function, which receives the path of a kubeconfig.
        The function may be a coroutine function, which is cancelled at the end; it may return a context manager, a function that
        stops the client, or an object with `stop` or `close`; or it has a second parameter, a `threading.Event`, and blocks until
        that is set.
        sample: manifests. CustomResourceDefinitions are prerequisites; all other objects are copied under new names, and the
        client has to react to the copies. By default, a small object of each built-in resource that the client watches.
        rules: ids of rules, which run with all their provocations. By default all rules.
        legality: the classes of provocations that run if `rules` is None.
        idle: seconds without data after which the client closes a watch; None if it does not, or if this is unknown.
        seconds: how long repeated failures are provoked, in real seconds.
        expect: objects or fields that show the client's reaction, RESOURCE/NAME[:PATH[=VALUE]] with {name}, in addition to the
        effects that the baseline run finds.
        seed: the seed of all random choices.
        profile: the profile of the clusters.
        quiet: seconds without a request after which the baseline run considers the client's reaction complete. Increase it for a
        client that waits before it acts.
        timeout: seconds for the whole check; rules without a verdict by then are "not exercised". None for no limit.
        progress: called with a line of text for each step.

    Raises:
        BaselineFailed: the client sent no request, or did not finish its baseline run.
        UnknownRule: there is no such rule.
        ValueError: another argument is invalid; ManifestError for the sample.
    """
    selected = chosen(parse_names(rules), parse_names(legality) or [])
    session = Session(
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
    skipped = [] if rules is not None else [rule for rule in all_rules() if rule.id not in exercised]
    try:
        return run(session, selected, progress or (lambda line: None), skipped)
    finally:
        session.close()
