"""The pytest plugin: a Kubernetes cluster as a fixture.

```python
def test_operator(fakekube):                       # a fresh cluster for each test
    fakekube.load("deploy/")
    assert fakekube.get("deployments", "web")

@pytest.mark.fakekube(profile="apiserver", tls=True)
def test_bare_server(fakekube): ...
```

Options are read from the ini file (`fakekube_profile = apiserver`), the command line (`--fakekube-profile=apiserver`) and the
marker; later ones take precedence. The package fakekube is not imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conftest_plugin import tracing
from conftest_plugin.tracing import pytest_runtest_call, pytest_runtest_teardown

if TYPE_CHECKING:
    from fakekube import Cluster
    from fakekube.checker import Report
    from fakekube.cluster.testing.object_client import ObjectClient
    from fakekube.powers.faults import Faults

__all__ = [
    "fakekube",
    "fakekube_check",
    "fakekube_factory",
    "fakekube_faults",
    "fakekube_session",
    "fakekube_user",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
]

#: Name → type of the ini value, help text. Each is an ini option, a command line option and an argument of the marker.
_OPTIONS = {
    "profile": ("string", "cluster (all controllers), envtest (those for namespaces and garbage collection) or apiserver (none)"),
    "controllers": ("string", "which controllers run: *, NAME, -NAME, separated by commas"),
    "stages": ("paths", "Stage files of kwok"),
    "nodes": ("string", "the number of initial nodes (1 if kubelets run, else 0)"),
    "tls": ("bool", "serve HTTPS"),
    "kubeconfig": ("bool", "set KUBECONFIG for the test"),
    "strict": ("bool", "fail a test if a fault that it armed never happened"),
    "load": ("paths", "manifests, or a saved state, that every cluster starts with"),
    "enable_admission_plugins": ("string", "admission plugins to enable, separated by commas"),
    "disable_admission_plugins": ("string", "admission plugins to disable, separated by commas"),
    "feature_gates": ("linelist", "feature gates, one GATE=true per line"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fakekube", "Kubernetes clusters for tests")
    for name, (kind, text) in _OPTIONS.items():
        parser.addini(f"fakekube_{name}", text, type=kind, default=None)  # type: ignore[arg-type]
        flag = f"--fakekube-{name.replace('_', '-')}"
        if kind == "bool":
            group.addoption(flag, action="store_true", default=None, help=text)
        elif kind == "string":
            group.addoption(flag, default=None, help=text)
        else:
            group.addoption(flag, action="append", default=None, help=text)
    tracing.add_options(parser, group)


def pytest_configure(config: pytest.Config) -> None:
    tracing.check_options(config)
    config.addinivalue_line(
        "markers", f"fakekube({', '.join(f'{name}=…' for name in _OPTIONS)}): the options of this test's cluster"
    )


#: The options of ini file and command line, which are read once.
_CONFIGURED = pytest.StashKey[dict[str, Any]]()


def _configured(config: pytest.Config) -> dict[str, Any]:
    """Returns the options of ini file and command line."""
    chosen: dict[str, Any] = {}
    for name in _OPTIONS:
        for value in (config.getini(f"fakekube_{name}"), config.getoption(f"fakekube_{name}")):
            if value not in (None, [], ""):
                chosen[name] = value
    return chosen


def _options(config: pytest.Config, marker: pytest.Mark | None = None) -> dict[str, Any]:
    """Returns the options of a cluster: those of ini file, command line and marker. Raises UsageError."""
    if _CONFIGURED not in config.stash:
        config.stash[_CONFIGURED] = _configured(config)
    chosen = config.stash[_CONFIGURED].copy()
    if marker is not None:
        unknown = set(marker.kwargs) - set(_OPTIONS)
        if unknown or marker.args:
            raise pytest.UsageError(f"the marker fakekube has the keyword arguments {', '.join(_OPTIONS)}")
        chosen |= marker.kwargs
    if "nodes" in chosen:
        chosen["nodes"] = int(chosen["nodes"])
    gates = chosen.get("feature_gates")
    if isinstance(gates, list):
        pairs = (line.partition("=") for line in gates)
        chosen["feature_gates"] = {name.strip(): value.strip().lower() == "true" for name, _, value in pairs}
    return chosen


def _start(options: dict[str, Any], monkeypatch: Callable[[], pytest.MonkeyPatch]) -> Cluster:
    """Starts a cluster.

    Args:
        options: options of the plugin, and arguments of `Cluster`.
        monkeypatch: returns the fixture; called only if KUBECONFIG is set.
    """
    from fakekube import Cluster

    options = dict(options)
    sources, set_kubeconfig = options.pop("load", ()), options.pop("kubeconfig", False)
    cluster = Cluster(**options).start()
    try:
        if sources:
            cluster.load(*([sources] if isinstance(sources, str) else sources))
            cluster.keep_initial()
        if set_kubeconfig:
            monkeypatch().setenv("KUBECONFIG", str(cluster.kubeconfig))
    except BaseException:
        cluster.stop()
        raise
    return cluster


@pytest.fixture
def fakekube(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A fresh cluster for this test, started: a `fakekube.Cluster`. It is stopped after the test."""
    options = _options(request.config, request.node.get_closest_marker("fakekube"))
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
            from fakekube.cluster.testing.report import report_of

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
        cluster = _start(_options(request.config), lambda: monkeypatch)
        yield cluster
        cluster.stop()


@pytest.fixture
def fakekube_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """Creates several clusters in a test: `one, two = fakekube_factory(), fakekube_factory(tls=True)`.

    Arguments are options of the plugin and arguments of `Cluster`.
    """
    clusters: list[Cluster] = []

    def make(**options: Any) -> Cluster:
        cluster = _start({**_options(request.config), **options}, partial(request.getfixturevalue, "monkeypatch"))
        clusters.append(cluster)
        tracing.begin(request.node, cluster)
        return cluster

    yield make
    for cluster in clusters:
        cluster.stop()
