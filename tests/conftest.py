"""Options of the whole suite."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator

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
