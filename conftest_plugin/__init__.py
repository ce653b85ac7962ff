"""The pytest plugin: a Kubernetes cluster as a fixture.

```python
def test_operator(fakekube):                       # a fresh cluster for each test
    fakekube.load("deploy/")
    assert fakekube.get("deployments", "web")

@pytest.mark.fakekube(profile="apiserver", tls=True)
def test_bare_server(fakekube): ...
```

Options come, the later the stronger, from the ini file (`fakekube_profile = apiserver`), the command line
(`--fakekube-profile=apiserver`) and the marker. Nothing of fakekube is imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fakekube import Cluster
    from fakekube.checker import Report
    from fakekube.powers.faults import Faults
    from fakekube.testing.object_client import ObjectClient

__all__ = ["fakekube", "fakekube_check", "fakekube_factory", "fakekube_faults", "fakekube_session", "fakekube_user"]

#: name → (type of the ini value, help); every one is an ini option, a command line option and a marker argument.
_OPTIONS = {
    "profile": ("string", "cluster (with controllers) or apiserver (bare, as envtest)"),
    "controllers": ("string", "which controllers run, as --controllers reads it: *, NAME, -NAME, by commas"),
    "stages": ("paths", "kwok's Stage files"),
    "nodes": ("string", "how many nodes there are at the start (1 with kubelets, else 0)"),
    "tls": ("bool", "serve HTTPS"),
    "kubeconfig": ("bool", "set KUBECONFIG for the test"),
    "strict": ("bool", "fail a test that armed a fault which never happened"),
    "load": ("paths", "manifests that every cluster starts with"),
    "enable_admission_plugins": ("string", "admission plugins that are off by default, by commas"),
    "disable_admission_plugins": ("string", "admission plugins that are on by default, by commas"),
    "feature_gates": ("linelist", "feature gates, one GATE=true a line"),
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


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"fakekube({', '.join(f'{name}=…' for name in _OPTIONS)}): how this test's cluster is made"
    )


#: What ini file and command line say, which is read once.
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
    """What holds for a cluster: ini file, command line, marker."""
    if _CONFIGURED not in config.stash:
        config.stash[_CONFIGURED] = _configured(config)
    chosen = config.stash[_CONFIGURED].copy()
    if marker is not None:
        unknown = set(marker.kwargs) - set(_OPTIONS)
        if unknown or marker.args:
            raise pytest.UsageError(f"the marker fakekube takes {', '.join(_OPTIONS)} by name")
        chosen |= marker.kwargs
    if "nodes" in chosen:
        chosen["nodes"] = int(chosen["nodes"])
    gates = chosen.get("feature_gates")
    if isinstance(gates, list):
        pairs = (line.partition("=") for line in gates)
        chosen["feature_gates"] = {name.strip(): value.strip().lower() == "true" for name, _, value in pairs}
    return chosen


def _start(options: dict[str, Any], monkeypatch: Callable[[], pytest.MonkeyPatch]) -> Cluster:
    """A running cluster by such options, which may also be arguments of `Cluster`; `monkeypatch` is asked for if it is needed."""
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


#: The clusters of a test, for the report of one that fails.
_CLUSTERS = pytest.StashKey[list["Cluster"]]()


@pytest.fixture
def fakekube(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A fresh cluster for this test."""
    options = _options(request.config, request.node.get_closest_marker("fakekube"))
    cluster = _start(options, partial(request.getfixturevalue, "monkeypatch"))
    request.node.stash[_CLUSTERS] = [cluster]
    yield cluster
    cluster.stop()
    del request.node.stash[_CLUSTERS]  # pytest keeps its items until the end of the session


@pytest.fixture
def fakekube_faults(fakekube: Cluster) -> Iterator[Faults]:
    """The faults of this test's cluster; a fault that never happens fails the test."""
    yield fakekube.faults
    unfired = fakekube.faults.unfired()
    assert not unfired, "never happened: " + ", ".join(map(str, unfired))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """A test that fails shows what was asked of its cluster, and by whom."""
    report = yield
    if report.when == "call" and report.failed:
        for cluster in item.stash.get(_CLUSTERS, []):
            from fakekube.testing.report import report_of

            report.sections += report_of(cluster, report.longreprtext)
    return report


@pytest.fixture
def fakekube_user(fakekube: Cluster) -> Callable[..., ObjectClient]:
    """Makes clients of users of this test's cluster: `alice = fakekube_user("alice", groups=["team-a"])`."""
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
    """One cluster for all tests that ask for it (with xdist: one a worker)."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        cluster = _start(_options(request.config), lambda: monkeypatch)
        yield cluster
        cluster.stop()


@pytest.fixture
def fakekube_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """Makes as many clusters as a test wants: `one, two = fakekube_factory(), fakekube_factory(tls=True)`."""
    clusters: list[Cluster] = []

    def make(**options: Any) -> Cluster:
        cluster = _start({**_options(request.config), **options}, partial(request.getfixturevalue, "monkeypatch"))
        clusters.append(cluster)
        request.node.stash.setdefault(_CLUSTERS, []).append(cluster)
        return cluster

    yield make
    for cluster in clusters:
        cluster.stop()
