"""The pytest plugin: a Kubernetes cluster as a fixture.

```python
def test_operator(fakekube):                       # a fresh cluster for each test
    fakekube.load("deploy/")
    assert fakekube.get("deployments", "web")

@pytest.mark.fakekube(profile="apiserver", tls=True)
def test_bare_server(fakekube): ...
```

Options are read from the ini file (`fakekube_profile = apiserver`), the command line (`--fakekube-profile=apiserver`) and the
marker; later ones take precedence. They are those of `fakekube.PluginOptions`: all that `Cluster` takes, and `kubeconfig`.
Nothing of a cluster is imported before a fixture is used. The folder is installed as `fakekube.pytest_plugin`.

PYTEST_DONT_REWRITE: what it asserts has its own texts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import pytest

from . import tracing
from .options import add_options, configured_options, marker_options
from .tracing import pytest_runtest_call, pytest_runtest_teardown
from .unrewritten import FINDER

if TYPE_CHECKING:
    from fakekube import Cluster
    from fakekube.checker import Report
    from fakekube.cluster.testing.object_client import ObjectClient
    from fakekube.cluster_options import PluginOptions
    from fakekube.powers.faults import Faults

__all__ = [
    "ClusterFactory",
    "fakekube",
    "fakekube_check",
    "fakekube_factory",
    "fakekube_faults",
    "fakekube_session",
    "fakekube_user",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
]


class ClusterFactory(Protocol):
    """The type of the fixture `fakekube_factory`."""

    def __call__(self, **options: Unpack[PluginOptions]) -> Cluster:
        """Returns a new cluster, started. Raises UsageError for an unknown option, and what `Cluster` raises."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)
    tracing.add_options(parser, parser.getgroup("fakekube"))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    FINDER.install()


def pytest_configure(config: pytest.Config) -> None:
    tracing.check_options(config)
    FINDER.install()  # again: pytest does not call the other function for a plugin that a conftest.py names
    config.addinivalue_line(
        "markers", "fakekube(profile=…, tls=…, …): the options of this test's cluster, see fakekube.PluginOptions"
    )


def pytest_unconfigure() -> None:
    FINDER.remove()


def _start(options: PluginOptions, monkeypatch: Callable[[], pytest.MonkeyPatch]) -> Cluster:
    """Starts a cluster.

    Args:
        options: those of the plugin.
        monkeypatch: returns the fixture; called only if KUBECONFIG is set.
    """
    from fakekube import Cluster

    sets_kubeconfig = options.pop("kubeconfig", False)
    cluster = Cluster(**options)  # type: ignore[misc]  # without `kubeconfig` they are those of a cluster
    try:
        cluster.start()
        if sets_kubeconfig:
            monkeypatch().setenv("KUBECONFIG", str(cluster.kubeconfig))
    except BaseException:
        cluster.stop()
        raise
    return cluster


@pytest.fixture
def fakekube(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A fresh cluster for this test, started: a `fakekube.Cluster`. It is stopped after the test."""
    options = configured_options(request.config)
    options |= marker_options(request.node.get_closest_marker("fakekube"))
    cluster = _start(options, partial(request.getfixturevalue, "monkeypatch"))
    tracing.begin(request.node, cluster)
    yield cluster
    cluster.stop()
    del request.node.stash[tracing.CLUSTERS]  # pytest keeps its items until the end of the session


@pytest.fixture
def fakekube_faults(fakekube: Cluster) -> Iterator[Faults]:
    """The attribute `faults` of this test's cluster. The test fails if an armed fault never happened."""
    yield fakekube.faults
    unfired = fakekube.faults.unfired()
    assert not unfired, "never happened: " + ", ".join(map(str, unfired))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Adds the recorded requests of a failed test's clusters to its report, and writes trace files."""
    report = yield
    if report.when == "call" and report.failed:
        for cluster in item.stash.get(tracing.CLUSTERS, []):
            from fakekube.cluster.testing.traces import report_of

            report.sections += report_of(cluster, report.longreprtext)
    tracing.finish(item, report)
    return report


@pytest.fixture
def fakekube_user(fakekube: Cluster) -> Callable[..., ObjectClient]:
    """Returns clients of this test's cluster with other users: `alice = fakekube_user("alice", groups=["team-a"])`."""
    return fakekube.as_user


@pytest.fixture
def fakekube_check() -> Callable[..., Report]:
    """Checks a client as `fakekube.check` does: `fakekube_check(start, sample="widget.yaml", rules="W1,W5").require_ok()`.

    `start` is a command or a function with the path of a kubeconfig, which may be a coroutine function. In an asyncio test:
    `await asyncio.to_thread(fakekube_check, start)`.
    """
    from fakekube import check

    return check


@pytest.fixture(scope="session")
def fakekube_session(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One cluster for all tests of the session that use this fixture (with xdist: one for each worker)."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        cluster = _start(configured_options(request.config), lambda: monkeypatch)
        yield cluster
        cluster.stop()


@pytest.fixture
def fakekube_factory(request: pytest.FixtureRequest) -> Iterator[ClusterFactory]:
    """Creates several clusters in a test: `one, two = fakekube_factory(), fakekube_factory(tls=True)`.

    Arguments are the options of the plugin.
    """
    clusters: list[Cluster] = []

    def make(**options: Unpack[PluginOptions]) -> Cluster:
        cluster = _start(configured_options(request.config) | options, partial(request.getfixturevalue, "monkeypatch"))
        clusters.append(cluster)
        tracing.begin(request.node, cluster)
        return cluster

    yield make
    for cluster in clusters:
        cluster.stop()
