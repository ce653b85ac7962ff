"""Options of the whole suite."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from fakekube.apimachinery import data

# The suite has the same examples in all runs, so that none fails by chance. `pytest --hypothesis-profile=thorough` searches, and longer.
settings.register_profile("suite", max_examples=30, derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("suite")

#: Names the folder that keeps what is compiled during a run, where Python may not write beside the sources.
_COMPILED = "FAKEKUBE_TESTS_PYCACHE"
#: How many files and sockets a test may have open.
_OPEN_FILES = 4096


class _Compiled:
    """Finds no module, but decides where the next one is kept compiled: those of this project in the folder of the run.

    The processes of pytest-xdist so share what they compile; they collect in opposite orders. An entry of `sys.meta_path`: the
    module that is looked for is the next one that is loaded.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        is_own = name.partition(".")[0] in ("fakekube", "tests")
        sys.pycache_prefix, sys.dont_write_bytecode = (self._folder, False) if is_own else (None, True)


def _leave_out_constants() -> None:
    """Hypothesis tries the constants of all modules that are loaded: to find them takes a process seconds, and the examples would depend
    on the tests before. A search (`thorough`) has them.
    """
    providers: Any = sys.modules.get("hypothesis.internal.conjecture.providers")
    if hasattr(providers, "_get_local_constants") and hasattr(providers, "_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants


def _raise_open_files() -> None:
    """Lets the tests have a thousand sockets open, as far as the system allows; some begin with 256."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if resource.RLIM_INFINITY != soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def pytest_configure(config: pytest.Config) -> None:
    _raise_open_files()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, also by the processes to which tests send it
    if config.getoption("--hypothesis-profile", None) is None:
        _leave_out_constants()
    gc.set_threshold(50_000, 20, 100)  # what is collected stays: to look at it time and again takes a quarter of the time
    if os.environ.get("PYTHONDONTWRITEBYTECODE") and _COMPILED not in os.environ:
        os.environ[_COMPILED] = tempfile.mkdtemp(prefix="fakekube-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(_COMPILED), ignore_errors=True))
    if folder := os.environ.get(_COMPILED):
        finder: Any = _Compiled(folder)
        sys.meta_path.insert(0, finder)
        config.add_cleanup(lambda: sys.meta_path.remove(finder))


@pytest.fixture(scope="session", autouse=True)
def _processes_compile_once() -> Iterator[None]:
    """The processes that tests start do not compile the whole package each."""
    with pytest.MonkeyPatch.context() as patch:
        if folder := os.environ.get(_COMPILED):
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", folder)
        yield


class _Reversed(pytest.Dir):
    """A folder whose last file is collected first."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        return list(super().collect())[::-1]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every second process of pytest-xdist collects from the end, so that two do not compile the same module at the same time."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return _Reversed.from_parent(parent, path=path) if int(worker) % 2 else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All processes of pytest-xdist have the same order of modules; the tests that use `awaited` are together, in one of them.

    The files of a folder come before those below it: some of tests/unit take seconds, for which one process would wait at the end.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: ("awaited" not in getattr(item, "fixturenames", ()), item.path.parent.parts, item.path.name))


@pytest.fixture(scope="session")
def _outcomes(request: pytest.FixtureRequest) -> Mapping[Callable[[], Any], Future[Any]]:
    """Calls the functions of all tests that use `awaited`, side by side. None is under way when the first test goes on."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {call.params["awaited"] for call in calls if call is not None and "awaited" in call.params}
    with ThreadPoolExecutor(len(wanted)) as pool:
        return {function: pool.submit(function) for function in wanted}


@pytest.fixture
def awaited(request: pytest.FixtureRequest, _outcomes: Mapping[Callable[[], Any], Future[Any]]) -> Any:
    """What a function returns that waits most of its time: `parametrize("awaited", [function], indirect=True)`."""
    return _outcomes[request.param].result()


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them time and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_descriptions() -> Iterator[None]:
    """The tests tell the same whether kubernetes-validate is installed or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "find_spec", lambda _: None)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--languages",
        default="",
        help="languages whose pages in docs are run, with packages from their registries: go,java,javascript,rust,shell",
    )
    parser.addoption(
        "--target",
        default="",
        help="URL of a running server (https://TOKEN@HOST:PORT) that the behaviour tests talk to instead of fakekube",
    )
    parser.addoption(
        "--operators",
        default="",
        help="a folder with definitions and samples of real operators, a folder each, that the behaviour tests try",
    )
