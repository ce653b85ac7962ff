"""Definitions and custom resources against the real server: ratios of medians (ours / theirs).

    python -m tests.benchmarks.definitions_bench                                   # only ours
    python -m tests.benchmarks.definitions_bench --oracle URL --token TOKEN        # one that runs
    python -m tests.benchmarks.definitions_bench --oracle-command 'oracle serve --dir {dir} --port {port}'

The two take turns within each measurement, as in against_oracle. Each definition has a schema that nobody has seen yet,
but where it says "seen": test suites define the same again and again. Nothing is asserted: the targets stand beside the
figures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fakekube import Cluster
from tests.benchmarks.against_oracle import APPLY, Bench, Row, common_parser, in_turns, report
from tests.benchmarks.wire import RequestFailed

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RULES = (
    "self.n0 >= 0",
    "self.s0.size() < 100",
    "self.l0.all(i, i.size() < 50)",
    "!has(self.m0.a) || self.m0.a != 'x'",
    "self.n1 < 1000 || self.s1.startsWith('a')",
)


def schema(fields: int, rules: Sequence[str]) -> dict[str, Any]:
    """A schema whose spec has so many fields, of all sorts."""
    sorts: tuple[tuple[str, dict[str, Any]], ...] = (
        ("s", {"type": "string", "maxLength": 100, "pattern": "^[a-z0-9-]*$"}),
        ("n", {"type": "integer", "format": "int32", "minimum": 0, "maximum": 1000}),
        ("b", {"type": "boolean", "default": False}),
        ("l", {"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 50}}),
        ("m", {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 20}}),
        (
            "o",
            {
                "type": "object",
                "properties": {"x": {"type": "string", "enum": ["a", "b"]}, "y": {"type": "number"}},
                "required": ["x"],
            },
        ),
    )
    properties = {f"{name}{index}": sort for index in range(-(-fields // len(sorts))) for name, sort in sorts}
    spec = {"type": "object", "properties": dict(list(properties.items())[:fields]), "required": ["n0", "s0"]}
    if rules:
        spec["x-kubernetes-validations"] = [{"rule": rule, "message": f"not {rule}"} for rule in rules]
    return {
        "type": "object",
        "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }


def spec(fields: int) -> dict[str, Any]:
    """An object of that schema, with every field."""
    values: dict[str, Any] = {"s": "abc", "n": 7, "b": True, "l": ["one", "two"], "m": {"k": "v"}, "o": {"x": "a", "y": 1.5}}
    filled = {f"{name}{index}": value for index in range(-(-fields // len(values))) for name, value in values.items()}
    return dict(list(filled.items())[:fields])


def definition(group: str, openapi: dict[str, Any]) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": openapi},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version]},
    }


def unseen(openapi: dict[str, Any]) -> dict[str, Any]:
    """The schema with one more field, of a name of its own."""
    spec = openapi["properties"]["spec"]
    fields = {**spec["properties"], f"u{uuid.uuid4().hex[:8]}": {"type": "string"}}
    return {**openapi, "properties": {**openapi["properties"], "spec": {**spec, "properties": fields}}}


def define(bench: Bench, openapi: dict[str, Any]) -> tuple[str, float, float]:
    """A definition: its group, and the seconds until it is accepted, and until it is served."""
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    request = bench.connection.prepare("POST", DEFINITIONS, definition(group, openapi))
    begin = time.perf_counter()
    bench.connection.exchange(request)
    accepted = time.perf_counter() - begin
    probe = bench.connection.prepare("GET", bench.path("widgets", f"apis/{group}/v1"))
    while not _is_served(bench, probe):
        pass
    return group, accepted, time.perf_counter() - begin


def _is_served(bench: Bench, probe: Any) -> bool:
    try:
        bench.connection.exchange(probe)
    except RequestFailed:
        return False
    return True


def measurements(benches: list[Bench], options: argparse.Namespace) -> Iterator[Row]:
    """All rows."""
    rounds = options.rounds
    small, large = schema(6, ()), schema(60, RULES)
    huge = schema(620, ())
    lines = len(json.dumps(huge, indent=1).splitlines())
    few = max(rounds // 10, 3)
    for what, openapi in (("6 fields", small), ("60 fields, 5 rules", large)):
        yield Row(
            f"define until served, {what}", "ms", in_turns(benches, few, _defining(partial(unseen, openapi), served=True)), "0.1"
        )
        yield Row("  the same, seen", "ms", in_turns(benches, few, _defining(partial(dict, openapi), served=True)))
    yield Row(f"post of {lines} lines", "ms", in_turns(benches, few, _defining(partial(unseen, huge), served=False)), "0.5")
    yield Row("  the same, seen", "ms", in_turns(benches, few, _defining(partial(dict, huge), served=False)))
    if options.definitions:
        yield from loads(options.definitions)
    groups = {id(bench): define(bench, large)[0] for bench in benches}
    body = spec(60)

    def create(bench: Bench, turn: int) -> float:
        return bench.time("POST", "widgets", _object(groups[id(bench)], f"c{turn}", body), group=f"apis/{groups[id(bench)]}/v1")

    def apply(bench: Bench, turn: int) -> float:
        group, changed = groups[id(bench)], {**body, "n0": turn % 1000}
        rest = f"widgets/a{turn % 5}?fieldManager=bench"
        return bench.time("PATCH", rest, _object(group, f"a{turn % 5}", changed), APPLY, group=f"apis/{group}/v1")

    yield Row("create, 60 fields, 5 rules", "ms", in_turns(benches, rounds, create), "0.4")
    yield Row("apply, 60 fields, 5 rules", "ms", in_turns(benches, rounds, apply), "0.4")


def _defining(openapi: Callable[[], dict[str, Any]], *, served: bool) -> Callable[[Bench, int], float]:
    """Makes a definition and tells the seconds until it is served, or accepted."""
    return lambda bench, _: define(bench, openapi())[2 if served else 1]


def loads(folder: str) -> Iterator[Row]:
    """Loading a folder of definitions in process, into fresh clusters: the first one, and those after it. Only ours."""
    seconds = []
    for _ in range(6):
        with Cluster(profile="apiserver") as cluster:
            begin = time.perf_counter()
            cluster.load(folder)
            seconds.append(time.perf_counter() - begin)
    yield Row(f"load of {folder}, first", "ms", (seconds[0] * 1000,))
    yield Row("  again, in a fresh cluster", "ms", (statistics.median(seconds[1:]) * 1000,))


def _object(group: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": body}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table row by row."""
    parser = common_parser(__doc__, rounds=100)
    parser.add_argument("--definitions", metavar="FOLDER", help="a folder of definitions (not part of this repository) to load")
    report(parser.parse_args(arguments), measurements)


if __name__ == "__main__":
    main()
