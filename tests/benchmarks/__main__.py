"""All benchmarks as one table: `python -m tests.benchmarks [--oracle-command COMMAND] [--write] [--against FILE]`.

    python -m tests.benchmarks --oracle-command './oracle serve --dir {dir} --port {port}' --write

With a reference server the table has the figures of both and their ratio; without one it has ours only, and the CPU that single requests
take in process, which the load of the machine changes least. `--write` keeps the figures as results/COMMIT.json beside this file, from
which `--markdown` makes the table of docs/benchmarks.md. `--against FILE` shows what has become more than a tenth slower since then.

Nothing is asserted. Compare only runs on one machine, when it is idle.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks import against_oracle, formats_bench, http2_bench, limits, pytest_bench, writes_bench
from tests.benchmarks.against_oracle import Bench, Row, common_parser
from tests.benchmarks.sides import ours, running, theirs

RESULTS = Path(__file__).parent / "results"
PROJECT = Path(__file__).parents[2]

#: What the ratio to the real server, or the figure, should be at most (at least, for rates).
GOALS: Mapping[str, str] = {
    "get": "0.2",
    "create": "0.15",
    "update": "0.2",
    "merge patch": "0.15",
    "strategic merge patch": "0.2",
    "apply that changes": "0.2",
    "apply without change": "0.12",
    "list of all pods": "0.06",
    f"label-selected list (1 of {against_oracle.TURNS})": "0.1",
    "get as Protobuf": "0.2",
    "aggregated discovery": "0.15",
    "create, with 5000 pods": "0.25",
    "memory before the pods": "0.12",
    "memory with 5000 pods": "0.2",
    "events to 500 watchers": "at least 8",
    "get, 8 clients, HTTP/1.1": "0.33",
    "a test in process": "1.5 ms",
    "a test by socket": "2.2 ms",
    "a test by socket, TLS": "3 ms",
}
#: Units of which more is better.
RATES = {"1/s"}


def measure_all(options: argparse.Namespace) -> Iterator[Row]:
    """All rows: single requests, lists and watches over TLS, formats, HTTP/2, CPU in process, tests, and the limits of the machine."""
    with ExitStack() as stack:
        sides = [stack.enter_context(ours(formats_bench.GATE))]
        if options.oracle_command:
            sides.append(stack.enter_context(theirs(options.oracle_command, options.token)))
        elif options.oracle:
            sides.append(running(options.oracle, options.token))
        for measurements in (against_oracle.measurements, formats_bench.measurements, http2_bench.measurements):
            benches = [Bench(side, stack.enter_context(side.connect())) for side in sides]
            yield from measurements(benches, options)
            for bench in benches:
                bench.connection.request("DELETE", f"/api/v1/namespaces/{bench.namespace}")
    bench = writes_bench.Bench()
    for name, prepare in {**writes_bench.requests(bench), **writes_bench.reads(bench)}.items():
        yield Row(f"CPU of {name}, in process", "us", (writes_bench.measure(prepare),))
    yield from measure_tests(options.tests)
    yield from limits.measurements()


def measure_tests(count: int) -> Iterator[Row]:
    """CPU that a test with a cluster of its own takes on top of an empty one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text(pytest_bench.INI)

        def run(kind: str) -> pytest_bench.Run:
            return min(pytest_bench.run(folder, kind, count, PROJECT, ["-p", "no:xdist"], {}) for _ in range(2))

        empty = run("empty")
        for kind in ("in process", "by socket", "by socket, TLS"):
            cpu, *_ = run(kind).above(empty, count)
            yield Row(f"a test {kind}", "ms", (cpu * 1e3,))


def as_figures(row: Row) -> dict[str, Any]:
    """What is kept of a row."""
    figures = [None if figure is None or math.isnan(figure) else round(figure, 4) for figure in row.figures]
    return {"name": row.name, "unit": row.unit, "figures": figures}


def write(rows: Sequence[dict[str, Any]]) -> Path:
    """Keeps the figures under the name of the commit; returns the path."""
    git = ["git", "-C", str(PROJECT)]
    commit = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    about = {
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{commit}.json"
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    path.write_text(f'{{"about": {json.dumps(about)},\n "rows": [\n  {lines}\n]}}\n')
    return path


def as_markdown(path: Path) -> str:
    """Returns the table of docs/benchmarks.md."""
    kept = json.loads(path.read_text())
    lines = ["| | unit | ours | theirs | ours / theirs | goal |", "|---|---|---|---|---|---|"]
    for row in kept["rows"]:
        figures = [*row["figures"], None][:2]
        shown = ["" if figure is None else f"{figure:,.2f}" if figure < 100 else f"{figure:,.0f}" for figure in figures]
        ratio = f"{figures[0] / figures[1]:.2f}" if figures[0] and figures[1] else ""
        lines.append(f"| {row['name']} | {row['unit']} | {shown[0]} | {shown[1]} | {ratio} | {GOALS.get(row['name'], '')} |")
    about = kept["about"]
    return (
        f"Commit {about['commit']}, {about['date']}: {about['cores']} cores, CPython {about['python']}, load {about['load']}.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def compare(rows: Sequence[dict[str, Any]], path: Path) -> list[str]:
    """Returns the rows that have become more than a tenth worse; ratios are compared where both runs have them."""
    before = {row["name"]: row for row in json.loads(path.read_text())["rows"]}
    worse = []
    for row in rows:
        old, new = _figure(before.get(row["name"])), _figure(row)
        if old and new:
            change = old / new if row["unit"] in RATES else new / old
            if change > 1.1:
                worse.append(f"{row['name']}: {change:.2f} times")
    return worse


def _figure(row: dict[str, Any] | None) -> float | None:
    """The ratio of a row, or our figure if there is no other."""
    if row is None or not row["figures"] or row["figures"][0] is None:
        return None
    ours_, *rest = row["figures"]
    return float(ours_ / rest[0]) if rest and rest[0] else float(ours_)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table row by row, and keeps it."""
    parser = common_parser(__doc__, rounds=200)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--lists", type=int, default=9)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="keep the figures as results/COMMIT.json")
    parser.add_argument("--against", type=Path, metavar="FILE", help="kept figures to compare with")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="only print the table of kept figures")
    options = parser.parse_args(arguments)
    if options.markdown:
        print(as_markdown(options.markdown))
        return
    rows = []
    for row in measure_all(options):
        print(row, flush=True)
        rows.append(as_figures(row))
    if options.write:
        print(f"kept as {write(rows)}")
    if options.against:
        print("\n".join(compare(rows, options.against)) or "nothing has become more than a tenth slower")


if __name__ == "__main__":
    main()
