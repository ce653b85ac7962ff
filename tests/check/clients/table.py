"""Runs `fakekube check` over the programs of this folder and prints the table of docs/check-results.md.

    python tests/check/clients/table.py --built FOLDER [--build] [--language python,go] [--only kopf] [--reports FOLDER] [--at-once 1]

`--build` installs and compiles the clients of the languages (all: python, go, node, rust, java) into the folder first; it needs Python,
Go, Node, Cargo and Maven and takes some minutes. Clients that are not in the folder are left out. The last column is the date.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakekube.checker.rules import all_rules

HERE = Path(__file__).parent
SAMPLE = HERE / "configmap.yaml"

#: Rules that judge what these programs write and keep, and not their libraries: run for the Go programs only, which are the bar.
OF_PROGRAMS = re.compile(r"[CSL]\d|R3|R6|R7")
#: The first words of what R1 says when it is the program's write that was refused.
REFUSED_WRITE = "write"

#: What builds the clients: the folder in that of the built ones, and the commands.
BUILDS = (
    ("python", [[sys.executable, "-m", "venv", "."], ["bin/pip", "install", "-q", "-r", str(HERE / "requirements.txt")]]),
    ("go", [["go", "mod", "tidy"], ["go", "build", "-o", "bin/", "./informer", "./operator"]]),
    ("node", [["npm", "install", "--silent"]]),
    ("rust", [["cargo", "build", "--release", "--quiet"]]),
    ("java", [["mvn", "-q", "-B", "package"]]),
)

JAVA = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", "{java}/target/checked-1.jar:{java}/target/dependency/*"]


@dataclass(slots=True, frozen=True)
class Client:
    """A row of the table."""

    name: str
    title: str
    command: Sequence[str]
    """With {python} and the like in place of the folders of the built clients."""
    version: tuple[str, str]
    """A file in this folder, and the words before the version in it."""
    options: Sequence[str] = ()
    """Of the check."""


def _of_python(name: str, title: str, package: str) -> Client:
    return Client(name, title, ["{python}/bin/python", str(HERE / f"{name}.py")], ("requirements.txt", f"{package}=="))


_GO, _OPERATOR = ("go/go.mod", "client-go v"), ("go/go.mod", "controller-runtime v")
_RUST, _JAVA = ("rust/Cargo.toml", 'kube = { version = "'), ("java/pom.xml", "<fabric8>")
_NODE = ["{node}/node_modules/.bin/node", "{node}/informer.mjs"]
#: HTTP/2 PINGs notice a dead connection after 30 s + 15 s.
_PINGS = ["--idle", "45"]

CLIENTS = (
    Client("client-go", "client-go {}, informer", ["{go}/bin/informer"], _GO, _PINGS),
    Client("controller-runtime", "controller-runtime {}, operator", ["{go}/bin/operator"], _OPERATOR, _PINGS),
    _of_python("kubernetes_watch", "kubernetes {}, `Watch`", "kubernetes"),
    _of_python("kubernetes_informer", "kubernetes {}, `SharedInformer`", "kubernetes"),
    _of_python("kubernetes_asyncio_watch", "kubernetes_asyncio {}, `Watch`", "kubernetes_asyncio"),
    _of_python("kr8s_watch", "kr8s {}, `watch`", "kr8s"),
    _of_python("lightkube_watch", "lightkube {}, `watch` with `on_error_retry`", "lightkube"),
    _of_python("pykube_watch", "pykube-ng {}, `watch`", "pykube-ng"),
    _of_python("kopf_operator", "kopf {}", "kopf"),
    Client("client-node", "@kubernetes/client-node {}, informer", _NODE, ("node/package.json", '/client-node": "')),
    Client("client-node-1", "the same, {}", [*_NODE, "client-node-1"], ("node/package.json", "client-node@")),
    Client("kube-rs-watcher", "kube-rs {}, `watcher` with `default_backoff`", ["{rust}/target/release/watcher"], _RUST),
    Client("kube-rs-controller", "kube-rs {}, `Controller`", ["{rust}/target/release/controller"], _RUST),
    Client("fabric8-informer", "fabric8 {}, `SharedIndexInformer`", [*JAVA, "checked.Informer"], _JAVA),
    Client("fabric8-operator", "fabric8 {}, operator on informers", [*JAVA, "checked.Operator"], _JAVA),
)


def build(folder: Path, languages: Sequence[str]) -> None:
    """Makes the clients of some languages. Raises CalledProcessError."""
    for name, commands in BUILDS:
        if name not in languages:
            continue
        place = folder / name
        if (HERE / name).is_dir():
            shutil.copytree(HERE / name, place, dirs_exist_ok=True)
        place.mkdir(parents=True, exist_ok=True)
        for command in commands:
            print(f"{name}: {' '.join(command)}", file=sys.stderr, flush=True)
            subprocess.run(command, cwd=place, check=True)


def command_of(client: Client, folder: Path) -> list[str]:
    places = {name: str(folder / name) for name, _ in BUILDS}
    return [part.format(**places) for part in client.command]


def is_built(client: Client, folder: Path) -> bool:
    places = re.findall(r"\{(\w+)\}", " ".join(client.command))
    return all((folder / place).is_dir() for place in places)


def language_of(client: Client) -> str:
    """Returns the language of a client, which is the folder that it is built in."""
    return next(re.finditer(r"\{(\w+)\}", " ".join(client.command)))[1]


def version_of(client: Client) -> str:
    """Returns the version that this folder names; `{}` of a row's title."""
    name, before = client.version
    found = re.search(rf"^.*{re.escape(before)}[\^=]*([0-9][0-9.]*)", (HERE / name).read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "?"


def check(client: Client, folder: Path, reports: Path) -> str:
    """Runs the check over a client; returns its row of the table."""
    report = reports / f"{client.name}.json"
    rules = ["--all"] if client.version[0] == "go/go.mod" else ["--rules", ",".join(rules_of_libraries())]
    command = [sys.executable, "-m", "fakekube", "check", *rules, "--sample", str(SAMPLE), "--report", str(report)]
    done = subprocess.run(
        [*command, *client.options, "--", *command_of(client, folder)], capture_output=True, text=True, check=False
    )
    (reports / f"{client.name}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    title = client.title.format(version_of(client))
    if not report.exists():
        return f"| {title} | (exit code {done.returncode}) | | |"
    rows = json.loads(report.read_text(encoding="utf-8"))["rules"]
    words = {word: ", ".join(row["id"] for row in rows if row["verdict"] == word and _counts(row)) for word in ("fail", "warn")}
    today = datetime.datetime.now(datetime.UTC).date()
    return f"| {title} | {words['fail'] or 'none'} | {words['warn'] or 'none'} | {today} |"


def rules_of_libraries() -> list[str]:
    """Returns the ids of the rules that the table shows."""
    return list(dict.fromkeys(rule.id for rule in all_rules() if not OF_PROGRAMS.match(rule.id)))


def _counts(row: dict[str, Any]) -> bool:
    return not (OF_PROGRAMS.match(row["id"]) or (row["id"] in ("R1", "R2") and row["evidence"][0].startswith(REFUSED_WRITE)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--language", default=",".join(name for name, _ in BUILDS), help="languages, separated by commas")
    parser.add_argument("--only", default="", help="names or parts of names, separated by commas")
    parser.add_argument("--reports", type=Path, metavar="FOLDER", help="where report.json and the output of each are kept")
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    folder = options.built.absolute()
    if options.build:
        build(folder, options.language.split(","))
    wanted = [part for part in options.only.split(",") if part]
    chosen = [
        one
        for one in CLIENTS
        if is_built(one, folder)
        and language_of(one) in options.language.split(",")
        and (not wanted or any(part in one.name for part in wanted))
    ]
    reports = (options.reports or Path(tempfile.mkdtemp(prefix="check-reports-"))).absolute()
    reports.mkdir(parents=True, exist_ok=True)
    os.environ.pop("KUBECONFIG", None)
    print("| client | broken | suspected | date |\n|---|---|---|---|", flush=True)
    with ThreadPoolExecutor(options.at_once) as pool:
        for row in pool.map(lambda client: check(client, folder, reports), chosen):
            print(row, flush=True)
    print(f"reports are in {reports}", file=sys.stderr)


if __name__ == "__main__":
    main()
