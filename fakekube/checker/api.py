"""`fakekube.check`: a check from Python.

report = fakekube.check(["python", "operator.py"], sample="sample.yaml", rules="W1,W5")
report.require_ok()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery import data
from fakekube.checker.policy import Policy, parse_accepted
from fakekube.checker.process import starter_of
from fakekube.checker.reaction import Expectations
from fakekube.checker.rule import Rule
from fakekube.checker.rules import all_rules, choose_rules, find_provocation, known_ids
from fakekube.checker.runner import Progress, run
from fakekube.checker.sample import Sample
from fakekube.checker.session import Session, parse_names

if TYPE_CHECKING:
    from fakekube.checker.report import Report
    from fakekube.cluster_options import Source

#: The profiles of rules, and the seconds for which each provokes repeated failures.
DEPTHS = {"full": 10.0, "fast": 5.0}
#: The profiles of clusters.
_CLUSTERS = ("apiserver", "envtest", "cluster")


def check(
    start: Sequence[str] | Callable[..., Any],
    *,
    sample: Source | None = None,
    rules: str | Sequence[str] | None = None,
    excluded: str | Sequence[str] | None = None,
    again: str | None = None,
    legality: str | Sequence[str] = "A,C",
    idle: float | None = None,
    seconds: float | None = None,
    expect: Iterable[str] = (),
    seed: int = 0,
    profile: str = "full,cluster",
    version: str | None = None,
    quiet: float = 0.8,
    timeout: float | None = None,
    accept: str | Mapping[str, str] | None = None,
    require: str | Sequence[str] | None = None,
    min_exercised: int | None = None,
    strict: bool = False,
    allow_timeout: bool = False,
    keep: Path | str | None = None,
    traces: bool = False,
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
        excluded: ids of rules that do not run.
        again: one provocation, such as "W8/slices", to run alone.
        legality: the classes of provocations that run if `rules` is None.
        idle: seconds without data after which the client closes a watch; None if it does not, or if this is unknown.
        seconds: how long repeated failures are provoked, in real seconds; by default 10, and 5 in the profile fast.
        expect: objects or fields that show the client's reaction, RESOURCE/NAME[:PATH[=VALUE]] with {name}, in addition to the
        effects that the baseline run finds.
        seed: the seed of all random choices.
        profile: "fast", the provocations that find most, or "full"; and the profile of the clusters, "cluster", "envtest" or
        "apiserver"; both separated by a comma.
        version: the minor of Kubernetes that the clusters emulate, such as "1.35"; None for the default of `Cluster`.
        quiet: seconds without a request after which the baseline run considers the client's reaction complete. Increase it for a
        client that waits before it acts.
        timeout: seconds for the whole check; rules without a verdict by then are "not exercised". None for no limit.
        accept: ids of rules, and keys of provocations such as "W8/slices", whose failures and warnings are accepted, a file
            with a line `W7: reason` for each, or a mapping to reasons.
        require: ids of rules that must be exercised.
        min_exercised: how many rules must be exercised.
        strict: warnings are failures.
        allow_timeout: a timeout that leaves rules unexercised is no failure.
        keep: a folder in which the trace and the output of each run are kept.
        traces: make traces of the runs that fail or warn, for `Report.write_html`.
        progress: called with a line of text for each step.

    Raises:
        BaselineFailed: the client sent no request, or did not finish its baseline run.
        UnknownRule: there is no such rule.
        ValueError: another argument is invalid, or demands what no client can fulfil; ManifestError for the sample.
    """
    depth, cluster = parse_profile(profile)
    if version is not None and version not in data.RELEASES:
        raise ValueError(f"Kubernetes {version} is not known; known: {', '.join(data.RELEASES)}")
    policy = Policy(
        accepted=_parse_accept(accept),
        required=known_ids(parse_names(require) or []),
        min_exercised=min_exercised,
        strict=strict,
        allow_timeout=allow_timeout,
    )
    left_out = known_ids(parse_names(excluded) or [])
    selected, skipped = _select(parse_names(rules), left_out, again, parse_names(legality) or [], depth)
    reasons = {rule.id: reason for rule, reason in skipped} | dict.fromkeys(left_out, "--except names it")
    policy.refuse_impossible((rule.id for rule in selected), reasons)
    session = Session(
        starter_of(start),
        Sample.read(sample) if sample is not None else Sample([], []),
        profile=cluster,
        version=data.DEFAULT if version is None else version,
        seed=seed,
        idle=idle,
        seconds=DEPTHS[depth] if seconds is None else seconds,
        expects=Expectations.parse(expect),
        quiet=quiet,
        timeout=timeout,
        depth=depth,
        kept=Path(keep) if keep is not None else None,
        traced=traces,
        accepted=policy.accepted,
    )
    try:
        report = run(session, selected, progress or (lambda line: None), skipped)
    finally:
        session.close()
    report = replace(report, traces=session.traces)
    cut_short = [
        rule.id
        for rule in report.rules
        if any(session.TIME_IS_UP in line for one in rule.provocations for line in one.evidence[:1])
    ]
    return policy.apply(report, cut_short=cut_short)


def parse_profile(text: str) -> tuple[str, str]:
    """Returns the profile of rules and that of clusters; by default full and cluster. Raises ValueError."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in (*DEPTHS, *_CLUSTERS):
            raise ValueError(f"there is no profile {name}; there are {', '.join((*DEPTHS, *_CLUSTERS))}")
    found = []
    for kind, default in ((tuple(DEPTHS), "full"), (_CLUSTERS, "cluster")):
        chosen = dict.fromkeys(name for name in names if name in kind)
        if len(chosen) > 1:
            raise ValueError(f"--profile names both {' and '.join(chosen)}")
        found.append(next(iter(chosen), default))
    return found[0], found[1]


def _parse_accept(accept: str | Mapping[str, str] | None) -> dict[str, str]:
    found = parse_accepted(accept) if isinstance(accept, str) else dict(accept or {})
    return {find_provocation(one).key if "/" in one else known_ids([one])[0]: reason for one, reason in found.items()}


def _select(
    ids: Sequence[str] | None, left_out: Sequence[str], again: str | None, legality: Sequence[str], depth: str
) -> tuple[list[Rule], list[tuple[Rule, str]]]:
    """Returns the rules to run, and those that are not selected, with the reasons.

    Raises UnknownRule, and ValueError if no rule is left of those that are named.
    """
    if again is not None or ids is not None:
        named = [_find_repeatable(again)] if again is not None else choose_rules(ids, legality)
        selected = [rule for rule in named if rule.id not in left_out]
        if not selected:
            raise ValueError(f"no rule is left to check without {', '.join(left_out)}")
        return selected, []
    named = choose_rules(None, legality)
    classes = {rule.legality for rule in named}
    selected = []
    skipped: list[tuple[Rule, str]] = []
    for rule in all_rules():
        if rule.id in left_out:
            continue
        if rule.legality not in classes:
            skipped.append((rule, f"class {rule.legality} is not selected"))
        elif depth == "fast" and not rule.fast:
            skipped.append((rule, "the profile fast leaves it out"))
        else:
            selected.append(rule)
    return selected, skipped


def _find_repeatable(key: str) -> Rule:
    """Returns the rule for a key such as W8/slices. Raises UnknownRule, and ValueError for one that no run of its own shows."""
    rule = find_provocation(key)
    if rule.in_every_run:
        raise ValueError(
            f"--again: {rule.key} is looked for in every run; name its rule and that of the run in its evidence, such as "
            f"--rules {rule.id},R2"
        )
    return rule
