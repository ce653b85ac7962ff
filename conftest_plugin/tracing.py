"""Options and hooks of the pytest plugin that write trace files of tests, and that pause at the first failure.

`--fakekube-trace=failed` (or `all`) writes one HTML file for each failing (or every) test and cluster to the folder of
`--fakekube-trace-dir`. Its path is in the report of the test, in the JUnit XML, and a link of pytest-html.

Invariant: without the options nothing of fakekube is imported here, and no test becomes slower.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fakekube import Cluster

__all__ = ["CLUSTERS", "add_options", "begin", "check_options", "finish", "pytest_runtest_call", "pytest_runtest_teardown"]

#: The clusters of a test.
CLUSTERS = pytest.StashKey[list["Cluster"]]()
_PAUSED = pytest.StashKey[bool]()

_MODES = ("off", "failed", "all")
_FOLDER = "fakekube-traces"


def add_options(parser: pytest.Parser, group: pytest.OptionGroup) -> None:
    """Adds the options to the command line and the ini file."""
    parser.addini("fakekube_trace", "write trace files: off, failed or all", type="string", default="off")
    parser.addini("fakekube_trace_dir", "the folder for trace files", type="string", default=_FOLDER)
    group.addoption("--fakekube-trace", choices=_MODES, default=None, help="write a trace file of failed tests, or of all (off)")
    group.addoption("--fakekube-trace-dir", default=None, metavar="DIR", help=f"the folder for trace files ({_FOLDER})")
    group.addoption(
        "--fakekube-pause",
        action="store_true",
        default=False,
        help="at the first failure hold the clock, print the address of the cluster's page, and wait for Enter",
    )


def check_options(config: pytest.Config) -> None:
    """Raises UsageError for options that do not fit."""
    if config.getini("fakekube_trace") not in _MODES:
        raise pytest.UsageError(f"fakekube_trace must be one of {', '.join(_MODES)}")
    if config.getoption("fakekube_pause") and (hasattr(config, "workerinput") or config.getoption("numprocesses", None)):
        raise pytest.UsageError("--fakekube-pause needs a terminal, which the processes of pytest-xdist do not have")


def _mode(config: pytest.Config) -> str:
    chosen = config.getoption("fakekube_trace") or config.getini("fakekube_trace")
    return str(chosen)


def begin(item: pytest.Item, cluster: Cluster) -> None:
    """Notes a cluster of a test, when it has started."""
    item.stash.setdefault(CLUSTERS, []).append(cluster)
    if _mode(item.config) != "off" or item.config.getoption("fakekube_pause"):
        from fakekube.cluster.testing import traces

        traces.begin(cluster, item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Marks the beginning of the test in its clusters."""
    _mark(item, "call")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Marks the end of the test in its clusters."""
    _mark(item, "teardown")
    return (yield)


def _mark(item: pytest.Item, phase: str) -> None:
    for cluster in item.stash.get(CLUSTERS, None) or ():
        if cluster.test is not None:
            cluster.mark_phase(phase)


def finish(item: pytest.Item, report: pytest.TestReport) -> None:
    """Writes the trace files of a test, and pauses, if its options say so."""
    clusters = _clusters(item)
    if not clusters or not (report.when == "call" or (report.when == "setup" and report.failed)):
        return
    mode = _mode(item.config)
    if mode == "all" or (mode == "failed" and report.failed):
        from fakekube.cluster.testing.traces import write_traces

        folder = Path(item.config.getoption("fakekube_trace_dir") or item.config.getini("fakekube_trace_dir"))
        message = report.longreprtext if report.failed else ""
        paths, problems = write_traces(clusters, item.config.rootpath / folder, item.nodeid, report.outcome, message)
        _add(item, report, paths, problems)
    if report.failed and item.config.getoption("fakekube_pause") and _PAUSED not in item.session.stash:
        item.session.stash[_PAUSED] = True
        _pause(item, clusters[0])


def _clusters(item: pytest.Item) -> list[Cluster]:
    found = list(item.stash.get(CLUSTERS, None) or ())
    shared = getattr(item, "funcargs", {}).get("fakekube_session")
    return [*found, shared] if shared is not None else found


def _add(item: pytest.Item, report: pytest.TestReport, paths: list[Path], problems: list[str]) -> None:
    """Adds the paths to the report, to the properties of JUnit XML, and to the links of pytest-html."""
    lines = [*map(str, paths), *problems]
    if report.failed:
        hint = "Open the file in a browser, or: fakekube show FILE"
        report.sections.append(("fakekube trace", "\n".join([*lines, hint])))
    for path in paths:
        report.user_properties.append(("fakekube_trace", str(path)))
        item.user_properties.append(("fakekube_trace", str(path)))  # for JUnit XML, which reads those of the report of teardown
    if item.config.pluginmanager.hasplugin("html") and paths:
        try:
            from pytest_html import extras  # type: ignore[import-not-found]
        except ImportError:
            return
        found: Any = report
        found.extras = [*getattr(report, "extras", []), *(extras.url(path.as_uri(), name="fakekube trace") for path in paths)]


def _pause(item: pytest.Item, cluster: Cluster) -> None:
    from fakekube.cluster.testing.traces import pause

    manager: Any = item.config.pluginmanager.getplugin("capturemanager")
    if manager is None:
        pause(cluster)
        return
    with manager.global_and_fixture_disabled():
        pause(cluster)
