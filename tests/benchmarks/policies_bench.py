"""Writes under admission policies against the real server: ratios of medians (ours / theirs).

    python -m tests.benchmarks.policies_bench                                   # only ours
    python -m tests.benchmarks.policies_bench --oracle URL --token TOKEN        # one that runs
    python -m tests.benchmarks.policies_bench --oracle-command 'oracle serve --dir {dir} --port {port}'

The two take turns within each measurement, as in against_oracle. Nothing is asserted: the targets stand beside the
figures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.benchmarks.against_oracle import Bench, Row, common_parser, in_turns, report
from tests.benchmarks.wire import RequestFailed

ROOT = "/apis/admissionregistration.k8s.io/v1"
#: What published policies ask of pods.
EXPRESSIONS = (
    "object.spec.containers.all(c, has(c.image) && !c.image.endsWith(':latest'))",
    "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)",
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "has(object.metadata.labels) && 'app' in object.metadata.labels && object.metadata.labels['app'].matches('^[a-z0-9-]+$')",
    "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
)
MUTATION = "Object{metadata: Object.metadata{annotations: {'policies.example.com/seen': 'yes'}}}"


def constraints(bench: Bench) -> dict[str, Any]:
    return {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bench.namespace}},
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    }


def validate(bench: Bench, policies: int) -> Iterator[str]:
    """Make validating policies of five expressions each."""
    validations = [
        {"expression": expression, "messageExpression": "'refused ' + object.metadata.name"} for expression in EXPRESSIONS
    ]
    for number in range(policies):
        name = f"{bench.namespace}-{number}"
        spec = {"matchConstraints": constraints(bench), "validations": validations}
        yield from bind(bench, "validating", name, spec, {"validationActions": ["Deny"]})


def mutate(bench: Bench, policies: int) -> Iterator[str]:
    """Make mutating policies of one mutation each."""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": MUTATION}}
    for number in range(policies):
        name = f"{bench.namespace}-{number}"
        spec = {"matchConstraints": constraints(bench), "mutations": [mutation], "reinvocationPolicy": "Never"}
        yield from bind(bench, "mutating", name, spec, {})


def bind(bench: Bench, kind: str, name: str, spec: dict[str, Any], binding: dict[str, Any]) -> Iterator[str]:
    """Make a policy and its binding. The paths of both."""
    plural = f"{ROOT}/{kind}admissionpolic"
    bench.connection.request("POST", f"{plural}ies", {"metadata": {"name": name}, "spec": spec})
    bench.connection.request("POST", f"{plural}ybindings", {"metadata": {"name": name}, "spec": {"policyName": name, **binding}})
    yield from (f"{plural}ies/{name}", f"{plural}ybindings/{name}")


def pod(name: str, image: str = "example.com/app:1", **labels: str) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "image": image, "ports": [{"containerPort": 80 + number}]} for number in range(3)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", **labels}},
        "spec": {"containers": containers, "schedulerName": "nobody"},
    }


def create(bench: Bench, turn: int) -> float:
    return bench.time("POST", "pods?dryRun=All", pod(f"p{turn}"))


def measurements(benches: list[Bench], options: argparse.Namespace) -> Iterator[Row]:
    """All rows."""
    rounds = options.rounds
    in_turns(benches, 25, create)
    yield Row("create a pod, no policies", "ms", in_turns(benches, rounds, create))
    kinds: tuple[tuple[str, Callable[[Bench, int], Iterator[str]], int], ...] = (
        ("one validating policy", validate, 1),
        ("ten validating policies", validate, 10),
        ("ten mutating policies", mutate, 10),
    )
    for name, make, policies in kinds:
        made = {id(bench): list(make(bench, policies)) for bench in benches}
        for bench in benches:
            wait(bench, mutating=make is mutate)
        in_turns(benches, 25, create)
        yield Row(f"create a pod, {name}", "ms", in_turns(benches, rounds, create), "0.4")
        for bench in benches:
            for path in made[id(bench)]:
                bench.connection.request("DELETE", path)
            wait(bench, mutating=make is mutate, ended=True)


def wait(bench: Bench, *, mutating: bool, ended: bool = False) -> None:
    """Until the policies are in force, or no longer are; the real server hears of them in its own time."""
    refused = pod("probe", "example.com/app:latest")
    while True:
        try:
            answer = bench.connection.request("POST", bench.path("pods?dryRun=All"), refused)
            seen = mutating and "policies.example.com/seen" in str(answer)
        except RequestFailed:
            seen = True
        if seen is not ended:
            time.sleep(1.2)  # until the last of them are
            return
        time.sleep(0.02)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table row by row."""
    report(common_parser(__doc__, rounds=200).parse_args(arguments), measurements)


if __name__ == "__main__":
    main()
