"""Options of the whole suite."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings

from fakekube.apimachinery import data

# `pytest --hypothesis-profile=thorough` searches longer.
settings.register_profile("suite", max_examples=50, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("suite")

#: Names the folder that keeps what processes started by tests have compiled, where Python may not write beside the sources.
_COMPILED = "FAKEKUBE_TESTS_PYCACHE"


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PYTHONDONTWRITEBYTECODE") and _COMPILED not in os.environ:
        os.environ[_COMPILED] = tempfile.mkdtemp(prefix="fakekube-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(_COMPILED), ignore_errors=True))


@pytest.fixture(scope="session", autouse=True)
def _processes_compile_once() -> Iterator[None]:
    """The processes that tests start do not compile the whole package each."""
    with pytest.MonkeyPatch.context() as patch:
        if folder := os.environ.get(_COMPILED):
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", folder)
        yield


@pytest.fixture(scope="session")
def _outcomes(request: pytest.FixtureRequest) -> Mapping[Callable[[], Any], Future[Any]]:
    """Calls the functions of all tests that use `outcome`, side by side. None is under way when the first test goes on."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {call.params["outcome"] for call in calls if call is not None and "outcome" in call.params}
    with ThreadPoolExecutor(len(wanted)) as pool:
        return {function: pool.submit(function) for function in wanted}


@pytest.fixture
def outcome(request: pytest.FixtureRequest, _outcomes: Mapping[Callable[[], Any], Future[Any]]) -> Any:
    """What a function returns that waits most of its time: `parametrize("outcome", [function], indirect=True)`."""
    return _outcomes[request.param].result()


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them time and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


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
