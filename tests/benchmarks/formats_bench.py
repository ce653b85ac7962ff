"""Answers in other formats than compact JSON, against the real server: ratios of medians (ours / theirs).

    python -m tests.benchmarks.formats_bench                                # only ours
    python -m tests.benchmarks.formats_bench --oracle URL --token TOKEN     # one that runs, with the same feature gate

CBOR is behind the feature gate CBORServingAndStorage, which must be on on both sides; a side that refuses it has no
figure. A first answer is made, the others are joined from what was kept: both is measured (for the first one, every pod
is changed before).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence

from tests.benchmarks.against_oracle import MERGE_PATCH, Bench, Row, common_parser, in_turns, load_all, report
from tests.benchmarks.wire import JSON, RequestFailed

GATE = "--feature-gates=CBORServingAndStorage=true"
PROTOBUF = "application/vnd.kubernetes.protobuf"
CBOR = "application/cbor"
YAML = "application/yaml"
TABLE = f"{JSON};as=Table;g=meta.k8s.io;v=v1"
METADATA = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

#: Not as YAML, which takes the real server ten seconds.
LISTS = (
    ("JSON", JSON, "0.1"),
    ("Protobuf", PROTOBUF, "0.1"),
    ("Table", TABLE, "0.4"),
    ("metadata only", METADATA, ""),
    ("CBOR", CBOR, "0.2"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table row by row."""
    parser = common_parser(__doc__, rounds=200)
    parser.add_argument("--lists", type=int, default=9, help="repetitions of a list")
    parser.add_argument("--pods", type=int, default=5000)
    report(parser.parse_args(arguments), measurements, GATE)


def measurements(benches: list[Bench], options: argparse.Namespace) -> Iterator[Row]:
    """All rows."""
    rounds, pods = options.rounds, options.pods
    load_all(benches, 0, pods)
    for name, accept, target in (("JSON", JSON, "0.4"), ("Protobuf", PROTOBUF, "0.4"), ("CBOR", CBOR, ""), ("YAML", YAML, "")):
        yield read(f"get as {name}", benches, "pods/pod-1", accept, rounds, target)
    for name, accept, target in LISTS:
        yield read(f"list of {pods} pods as {name}", benches, "pods", accept, options.lists, target)
    for name, accept, target in LISTS:
        yield first_lists(f"first list as {name} after changes", benches, accept, pods, target)
    yield read("aggregated discovery", benches, "/apis", AGGREGATED, rounds, "0.4")
    yield read("OpenAPI v2 as Protobuf", benches, "/openapi/v2", OPENAPI_V2, 20, "")
    yield read("OpenAPI v3 of apps/v1", benches, "/openapi/v3/apis/apps/v1", JSON, 20, "")


def read(name: str, benches: list[Bench], path: str, accept: str, rounds: int, target: str) -> Row:
    """The medians of reading a path."""
    return Row(name, "ms", in_turns(benches, rounds, lambda bench, _: timed(bench, path, accept)), target)


def timed(bench: Bench, path: str, accept: str) -> float:
    """Seconds for one answer; not a number if the side does not speak so."""
    request = bench.connection.prepare("GET", path if path.startswith("/") else bench.path(path), accept=accept)
    begin = time.perf_counter()
    try:
        bench.connection.exchange(request)
    except RequestFailed:
        return math.nan
    return time.perf_counter() - begin


def first_lists(name: str, benches: list[Bench], accept: str, pods: int, target: str) -> Row:
    """The time of a list that nobody has asked for since all pods were changed."""
    figures = []
    for bench in benches:
        for number in range(pods):
            change = {"metadata": {"labels": {"changed": name.replace(" ", "-")[:60]}}}
            bench.time("PATCH", f"pods/pod-{number}", change, MERGE_PATCH)
        figures.append(timed(bench, "pods", accept) * 1000)
    return Row(name, "ms", tuple(figures), target)


if __name__ == "__main__":
    main()
