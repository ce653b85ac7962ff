"""Kinds answer as the real server did: defaults, validation, changes, warnings (see tests/unit/stories.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit import stories


@pytest.mark.parametrize("path", stories.beside(__file__), ids=lambda path: path.stem)
def test_story_answers_as_recorded(path: Path) -> None:
    found = stories.differences_of_fresh_cluster(path)
    assert not found, "\n".join(found)
