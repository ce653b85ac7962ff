"""Options of the whole suite."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)


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
