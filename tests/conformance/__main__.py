"""Runs Kubernetes' conformance suite (e2e.test) against one `fakekube serve`.

    python -m tests.conformance                 # all [Conformance] specs, those marked [Serial] alone at the end
    python -m tests.conformance --small         # a choice that takes a minute
    python -m tests.conformance --focus 'Job .*' --procs 4
    python -m tests.conformance --focus 'Job .*' --all      # also specs that are not marked [Conformance]

e2e.test and ginkgo are built once from Go modules, in a folder outside of the tree (about 15 CPU minutes; needs Go). The server
has no preparation but three nodes and one image that does not exist, which the suite asks for. Results: a table on stdout, and
`report.json`, `junit.xml`, `table.md` and the suite's log in --out.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

#: Minor → the release that is built.
RELEASES: Final = {"1.33": "1.33.13", "1.34": "1.34.4", "1.35": "1.35.4", "1.36": "1.36.3", "1.37": "1.37.2"}
#: Images that the suite uses because they do not exist.
MISSING_IMAGES: Final = ("webserver:404", "foo:non-existent")
#: Specs of --small: a choice from every group that needs pods.
SMALL: Final = (
    r"(Downward API should provide pod name, namespace|Pods should be updated|Variable Expansion should allow composing"
    r"|EmptyDir volumes should support \(root,0644,tmpfs|ConfigMap should be consumable from pods in volume with mappings \["
    r"|Projected secret should be consumable in multiple volumes|Job should adopt matching orphans|ReplicaSet should serve a basic"
    r"|intra-pod communication: http|DNS should provide DNS for the cluster|serve multiport endpoints|mutate custom resource \["
    r"|should be able to convert from CR v1|Guestbook|kubectl run pod|mount an API token|PreStop should call prestop"
    r"|Security Context should support container.SecurityContext.RunAsUser)"
)


#: Seconds after which a server that has nothing to do has returned memory.
_REST: Final = 20.0


class Tools(NamedTuple):
    """The programs of the suite."""

    suite: Path
    ginkgo: Path


class Server(NamedTuple):
    """A running server."""

    kubeconfig: Path
    pid: int

    def footprint(self) -> str:
        """Returns the threads and the resident memory of the process, as far as the system tells them."""
        try:
            text = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        except OSError:
            return "unknown"
        values = dict(re.findall(r"^(Threads|VmRSS):\s+(\d+)", text, re.MULTILINE))
        return f"{values['Threads']} threads, {int(values['VmRSS']) // 1024} MiB"


class Result(NamedTuple):
    """The result of a spec."""

    name: str
    group: str
    passed: bool
    seconds: float
    reason: str


def tools_for(minor: str, folder: Path) -> Tools:
    """Returns the programs of a minor; builds them if they are not there."""
    tools = Tools(folder / "e2e.test", folder / "ginkgo")
    if tools.suite.exists() and tools.ginkgo.exists():
        return tools
    folder.mkdir(parents=True, exist_ok=True)
    release = RELEASES[minor]
    _write_module(folder, release)
    _go(folder, "mod", "tidy")
    package = "k8s.io/component-base/version"
    facts = {"gitVersion": f"v{release}", "gitMajor": "1", "gitMinor": minor.removeprefix("1."), "gitTreeState": "clean"}
    flags = "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in facts.items())
    _go(folder, "test", "-c", "-vet=off", "-trimpath", "-ldflags", flags, "-o", str(tools.suite), "k8s.io/kubernetes/test/e2e")
    _go(folder, "build", "-trimpath", "-o", str(tools.ginkgo), "github.com/onsi/ginkgo/v2/ginkgo")
    return tools


def _write_module(folder: Path, release: str) -> None:
    """Writes a Go module that needs the suite, with the versions that the release itself names."""
    answer = subprocess.run(
        ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{release}"], cwd=folder, check=True, capture_output=True
    )
    theirs = Path(json.loads(answer.stdout)["GoMod"]).read_text(encoding="utf-8")
    staged = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) => \./staging", theirs, re.MULTILINE)))
    lines = ["module conformance", *re.findall(r"^(?:go|godebug) .*$", theirs, re.MULTILINE)]
    lines += [f"require k8s.io/kubernetes v{release}"]
    lines += [f"replace {one} => {one} v0.{release.removeprefix('1.')}" for one in staged]
    (folder / "go.mod").write_text("\n".join(lines) + "\n", encoding="utf-8")
    imports = 'import (\n\t_ "github.com/onsi/ginkgo/v2/ginkgo"\n\t_ "k8s.io/kubernetes/test/e2e"\n)\n'
    (folder / "tools.go").write_text(f"//go:build tools\n\npackage conformance\n\n{imports}", encoding="utf-8")


def _go(folder: Path, *words: str) -> None:
    print("+ go", *words, file=sys.stderr)
    subprocess.run(["go", *words], cwd=folder, check=True)


@contextmanager
def server(out: Path, minor: str, options: Sequence[str] = ()) -> Iterator[Server]:
    """Runs a server, with further options of `serve`."""
    kubeconfig, ready = out / "kubeconfig", out / "ready"
    ready.unlink(missing_ok=True)
    words = [sys.executable, "-m", "fakekube", "serve", "--profile", "cluster", "--tls", "--nodes", "3"]
    words += ["--kubeconfig", str(kubeconfig), "--ready-file", str(ready)]
    words += [word for image in MISSING_IMAGES for word in ("--missing-image", image)]
    words += ["--kubernetes-version", minor, *options]
    with (out / "server.log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            while not ready.exists():
                if process.poll() is not None:
                    raise SystemExit(f"the server did not start: {(out / 'server.log').read_text(encoding='utf-8')}")
                try:
                    process.wait(0.05)
                except subprocess.TimeoutExpired:
                    continue
            yield Server(kubeconfig, process.pid)
        finally:
            process.terminate()


def run(tools: Tools, kubeconfig: Path, out: Path, options: argparse.Namespace) -> None:
    """Runs the suite; its results are in files of `out`."""
    focus = rf"(?:{SMALL if options.small else options.focus})" + ("" if options.all else r".*\[Conformance\]")
    words = [str(tools.ginkgo), f"--procs={options.procs}", f"--focus={focus}", f"--timeout={options.timeout}", "--no-color"]
    words += ["--keep-going", "--silence-skips", f"--output-dir={out}", "--json-report=report.json", "--junit-report=junit.xml"]
    words += [f"--skip={options.skip}"] if options.skip else []
    words += [str(tools.suite), "--", f"--kubeconfig={kubeconfig}", "--provider=local", "--allowed-not-ready-nodes=-1"]
    words += [f"--kubectl-path={options.kubectl}"]
    with (out / "suite.log").open("wb") as log, tempfile.TemporaryDirectory(prefix="conformance-") as temporary:
        # Some specs leave folders in TMPDIR.
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "TMPDIR": temporary}
        subprocess.run(words, stdout=log, stderr=log, check=False, env=environment)


def results_of(report: Sequence[Mapping[str, Any]]) -> list[Result]:
    """Returns the results of the specs in a report of ginkgo."""
    found = []
    for suite in report:
        for spec in suite["SpecReports"] or ():
            if spec["LeafNodeType"] != "It" or spec["State"] in ("skipped", "pending"):
                continue
            name = " ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]])
            group = re.search(r"\[sig-([a-z-]+)\]", name)
            reason = " ".join(((spec.get("Failure") or {}).get("Message") or "").split())
            passed = spec["State"] == "passed"
            found.append(Result(name, group[1] if group else "", passed, spec["RunTime"] / 1e9, reason[:200]))
    return sorted(found)


def table_of(results: Sequence[Result]) -> str:
    """Returns the table of the groups, and the specs that did not pass."""
    totals, passes = collections.Counter[str](), collections.Counter[str]()
    for one in results:
        totals[one.group] += 1
        passes[one.group] += one.passed
    lines = ["| group | passed | of |", "|---|---|---|"]
    lines += [f"| {group} | {passes[group]} | {totals[group]} |" for group in sorted(totals)]
    lines += [f"| all | {sum(passes.values())} | {sum(totals.values())} |", ""]
    lines += [f"* {one.name} ({one.seconds:.0f} s): {one.reason}" for one in results if not one.passed]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the command line; returns 0 if all specs have passed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fakekube-conformance"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", choices=sorted(RELEASES), default="1.36")
    parser.add_argument("--server-minor", help="the minor that the server emulates; by default that of the suite")
    parser.add_argument("--tools", type=Path, help=f"the folder of the built programs (below {cache})")
    parser.add_argument("--out", type=Path, help="the folder of the results (a new one)")
    parser.add_argument("--procs", type=int, default=8, help="how many specs run at a time")
    parser.add_argument("--focus", default="", help="a regular expression for the names of specs")
    parser.add_argument("--skip", default="", help="a regular expression for the names of specs that are left out")
    parser.add_argument("--small", action="store_true", help="run a choice that takes a minute")
    parser.add_argument("--all", action="store_true", help="run specs that are not marked [Conformance] as well")
    parser.add_argument("--timeout", default="90m", help="of the whole run")
    parser.add_argument("--kubectl", default="kubectl", help="the kubectl that the suite calls")
    parser.add_argument(
        "--serve", action="append", default=[], metavar="OPTION", help="a further option of `serve`: --serve=--network-policies"
    )
    parser.add_argument("--if-built", action="store_true", help="do nothing if the programs are not built")
    options = parser.parse_args()
    folder = (options.tools or cache / options.minor).absolute()
    if options.if_built and not (folder / "e2e.test").exists():
        print(f"{folder / 'e2e.test'} is not built")
        return 0
    tools = tools_for(options.minor, folder)
    out = (options.out or Path(tempfile.mkdtemp(prefix="conformance-"))).absolute()
    out.mkdir(parents=True, exist_ok=True)
    with server(out, options.server_minor or options.minor, options.serve) as running:
        before = running.footprint()
        run(tools, running.kubeconfig, out, options)
        after = running.footprint()
        if not options.small:
            time.sleep(_REST)
        rested = running.footprint()
    results = results_of(json.loads((out / "report.json").read_text(encoding="utf-8")))
    table = table_of(results)
    table += f"\nThe server: {before} before the run, {after} after it, {rested} when it had rested.\n"
    (out / "table.md").write_text(table, encoding="utf-8")
    print(table, f"\nresults: {out}", sep="")
    return 0 if results and all(one.passed for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
