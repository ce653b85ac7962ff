"""Recorded scenarios of admission on the real server (see tests/unit/stories.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit import stories


@pytest.mark.parametrize("path", stories.beside(__file__), ids=lambda path: path.stem)
def test_recorded_admission_scenarios(path: Path) -> None:
    found = stories.differences_of_fresh_cluster(path)
    assert not found, "\n".join(found)
