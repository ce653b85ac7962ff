"""What the packages leave open is collected while their own test runs, whose filters excuse it, not in a later test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def leftovers_collected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs after the cluster of a test with such filters has gone, being set up before it."""
    yield
    if request.node.get_closest_marker("filterwarnings"):
        gc.collect()
