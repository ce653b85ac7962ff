"""fakekube answers the recorded scenarios as well as the table of scores says: not worse, and not better without the table.

After a change for the better: `python -m tests.differential scores --write`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.differential import scores
from tests.differential.comparison import Score
from tests.differential.recordings import FOLDER, RECORDINGS, score_in_process

Played = Callable[[str], Score]


def play(name: str) -> Score:
    recording = RECORDINGS[name]
    return score_in_process(recording, recording.read())


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    """Plays recordings side by side, because some requests wait for seconds."""
    wanted = [item.callspec.params["name"] for item in request.session.items if "played" in getattr(item, "fixturenames", ())]
    if "PYTEST_XDIST_WORKER" in os.environ:  # the tests of this module may be shared out
        wanted = []
    with ThreadPoolExecutor(3) as pool:
        futures: dict[str, Future[Score]] = {name: pool.submit(play, name) for name in wanted}
        yield lambda name: (futures.get(name) or pool.submit(play, name)).result()


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded(name: str, played: Played) -> None:
    expected = scores.read()[name]
    in_order = expected.pop("in_order")
    result = played(name)
    assert _is_as_good(result, expected, in_order), f"\n{result.report(5)}"


def _is_as_good(result: Score, expected: scores.Expected, in_order: int) -> bool:
    figures = scores.figures(result)
    return figures.pop("in_order") >= in_order and figures == expected  # what is told of several webhooks has no order


def test_openapi_descriptions_increase_identical_exchanges() -> None:
    """As docs/fidelity.md says; in a process of its own, because documents are made once a process."""
    pytest.importorskip("kubernetes_validate")
    command = [sys.executable, "-m", "tests.differential", "check", "--descriptions", "-v", "0", "discovery", "negotiation"]
    output = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300).stdout
    assert re.findall(r"^(\w+):.* exchanges ([0-9/]+) identical", output, re.MULTILINE) == [
        ("discovery", "355/368"),
        ("negotiation", "617/617"),
    ]


def test_every_recording_is_played() -> None:
    files = {path.relative_to(FOLDER).as_posix().removesuffix(".json.gz") for path in FOLDER.rglob("*.json.gz")}
    assert {file for file in files if not file.startswith("life/")} == set(RECORDINGS)


def test_fidelity_page_shows_the_scores() -> None:
    assert scores.shown_rows() == scores.page_rows(scores.read())
