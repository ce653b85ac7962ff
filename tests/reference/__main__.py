"""Builds the reference, and records fixtures anew.

    python -m tests.reference build OUTPUT                           builds the reference: 15 CPU minutes the first time
    python -m tests.reference record NAME ... [--reference URL]      records fixtures
    python -m tests.reference facts 1.36 --reference URL --oracle OUTPUT [--everything URL]

The names of fixtures are those of `RECORDERS`; `record` without a name lists them. Those of libraries need Go, those of a
server need a running reference: `OUTPUT serve --dir DIR --port 6443`, and then `--reference https://admin-token@127.0.0.1:6443`.
`--everything` is the URL of one that was started with `--feature-gates=AllAlpha=true,AllBeta=true --runtime-config=api/all=true`.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.differential.client import Client
from tests.differential.transports import HttpTransport
from tests.reference import facts
from tests.unit import stories

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_COMPACT = (",", ":")
#: What to answer with lies behind these members of a line; all before them is sent.
_ANSWERS = ("result", "error", "after")

Row = Any


@dataclass(frozen=True, slots=True)
class Recorder:
    """How the files of a fixture are recorded."""

    files: tuple[str, ...]
    """Patterns, from the root of the project."""
    record: Callable[[Path, str], None]
    """Replaces a file, with the reference at a URL ("" where none is needed)."""
    server: bool = True
    but: str = ""
    """A pattern of names that do not belong to it."""

    def paths(self) -> list[Path]:
        found = {path for pattern in self.files for path in ROOT.glob(pattern)}
        return sorted(path for path in found if not (self.but and path.match(self.but)))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _write(path: Path, rows: Iterable[Row], *, ascii_only: bool = False, separators: tuple[str, str] | None = None) -> None:
    text = "".join(f"{json.dumps(row, ensure_ascii=ascii_only, separators=separators)}\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def _go(program: str, *arguments: str, given: str = "") -> str:
    """What a program of recorders/ prints."""
    command = ["go", "run", "-trimpath", f"./recorders/{program}", *arguments]
    return subprocess.run(command, cwd=HERE, input=given, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout


def go_lines(program: str) -> Callable[[Path, str], None]:
    """A recorder whose program reads the lines of the file and prints them with the answers."""

    def record(path: Path, _: str) -> None:
        printed = _go(program, given=path.read_text(encoding="utf-8"))
        _write(path, map(json.loads, printed.splitlines()))

    return record


def operations(path: Path, _: str) -> None:
    """What structured-merge-diff makes of each operation."""
    rows = [json.loads(line) for line in _lines(path)]
    answers = map(json.loads, _go("merges", "operations", given=path.read_text(encoding="utf-8")).splitlines())
    _write(path, (_asked(row) | answer for row, answer in zip(rows, answers, strict=True)), separators=_COMPACT)


def histories(path: Path, _: str) -> None:
    """What structured-merge-diff makes of each step of each history."""
    rows = [json.loads(line) for line in _lines(path)]
    answers = map(json.loads, _go("merges", "histories", given=path.read_text(encoding="utf-8")).splitlines())
    told = (
        [_asked(step) | ({"after": change} if change else {}) for step, change in zip(row, answer, strict=True)]
        for row, answer in zip(rows, answers, strict=True)
    )
    _write(path, told, separators=_COMPACT)


def _asked(row: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in row.items() if name not in _ANSWERS}


def bodies(path: Path, url: str) -> None:
    """How a server with CBOR refuses each body."""
    client = Client(HttpTransport(url))
    rows = []
    for row in map(json.loads, _lines(path)):
        body = base64.b64decode(row["base64"]) if "base64" in row else row["text"].encode()
        target, _, query = row["path"].partition("?")
        reply = client.request(row["method"], target, body, query, ctype=row["type"], silent=True)
        rows.append({**row, "status": reply.status, "message": reply.get("message")})
    client.delete(f"/api/v1/namespaces/{client.ns}", silent=True)
    _write(path, rows, ascii_only=True)


def story(path: Path, url: str) -> None:
    """What a server answers to the requests of a story."""
    stories.record(path, stories.of_server(url))


RECORDERS = {
    "urls": Recorder(("fixtures/urls/cases.jsonl",), go_lines("urls"), server=False),
    "decoding": Recorder(("fixtures/decoding/cases.jsonl",), go_lines("decoding"), server=False),
    "cel": Recorder(("fixtures/cel/expressions.jsonl",), go_lines("expressions"), server=False),
    "operations": Recorder(("tests/unit/apimachinery/patch/apply/recorded/operations.jsonl",), operations, server=False),
    "histories": Recorder(("tests/unit/apimachinery/patch/apply/recorded/histories.jsonl",), histories, server=False),
    "bodies": Recorder(("fixtures/bodies/*.jsonl",), bodies),
    "kinds": Recorder(("fixtures/kinds/*.jsonl",), story),
    "stories": Recorder(("tests/unit/**/stories/*.jsonl",), story, but="cluster_*.jsonl"),
    "cluster-stories": Recorder(("tests/unit/**/stories/cluster_*.jsonl",), story),
}


def record(names: list[str], url: str) -> int:
    """Record fixtures; without a name, list them."""
    if unknown := [name for name in names if name not in RECORDERS]:
        print(f"no fixture is called {', '.join(unknown)}", file=sys.stderr)
    for name, recorder in RECORDERS.items():
        if unknown or not names:
            print(f"{name:16} {'of a server' if recorder.server else 'of a library'}: {', '.join(recorder.files)}")
        elif name in names:
            if recorder.server and not url:
                print(f"{name} needs --reference", file=sys.stderr)
                return 2
            for path in recorder.paths():
                recorder.record(path, url)
    return 2 if unknown else 0


def main() -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.reference", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["build", "record", "facts"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--reference", default="")
    parser.add_argument("--oracle", default="")
    parser.add_argument("--everything", default="")
    options = parser.parse_intermixed_args()
    if options.command == "record":
        return record(options.names, options.reference)
    if not 1 <= len(options.names) <= (2 if options.command == "build" else 1) or (
        options.command == "facts" and not (options.reference and options.oracle)
    ):
        parser.error("see --help")
    if options.command == "build":
        return subprocess.run([HERE / "build.sh", Path(options.names[0]).resolve(), *options.names[1:]], check=False).returncode
    found = facts.collect(options.names[0], options.reference, options.oracle, options.everything)
    facts.pack(found, facts.archive_of(options.names[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
