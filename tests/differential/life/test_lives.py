"""fakekube's clusters live at least as well as the table of scores says.

Controllers run in threads of their own, so a few events depend on who comes first: a better score is no failure here. After a
change for the better: `python -m tests.differential scores --write`.
"""

from __future__ import annotations

import pytest

from tests.differential import scores
from tests.differential.life import recordings


@pytest.mark.parametrize("life", recordings.LIVES)
def test_life(life: str) -> None:
    result = recordings.score_in_process(life)
    expected = scores.read()[f"life/{life}"]
    worse = {name for name, figure in scores.life_figures(result).items() if figure < expected[name]}
    assert not worse, f"\n{result.report(5)}"


def test_every_recording_is_played() -> None:
    assert {path.name.removesuffix(".json.gz") for path in recordings.FOLDER.glob("*.json.gz")} == set(recordings.LIVES)
