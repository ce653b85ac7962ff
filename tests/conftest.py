"""Options of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakekube.data import descriptions

pytest_plugins = ("pytester",)


@pytest.fixture(scope="session", autouse=True)
def _no_descriptions() -> Iterator[None]:
    """The tests tell the same whether kubernetes-validate is installed or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descriptions, "find_spec", lambda _: None)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
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
