"""Random stories are told to their end, and a name always means the same story."""

from __future__ import annotations

import json

import pytest

from tests.differential import recordings
from tests.differential.generators import modes
from tests.differential.recordings import STOPPED, Recording


def told(name: str) -> recordings.Transcripts:
    recording = Recording(name, name, version="1.37", options=modes.OPTIONS.get(name.partition(":")[0], {}))
    return recordings.play_in_process(recording, recording.scenarios(), 1)


@pytest.mark.parametrize("mode", [*modes.OF_OBJECTS, *modes.OF_AREAS])
def test_stories_of_each_mode_come_to_their_end(mode: str) -> None:
    [exchanges] = told(f"{mode}:1:1").values()
    assert len(exchanges) > 5
    assert STOPPED not in [exchange["request"]["path"] for exchange in exchanges]


def test_a_name_means_the_same_requests() -> None:
    first, second = ([json.dumps(one["request"]) for one in next(iter(told("edits:2:1:ConfigMap").values()))] for _ in range(2))
    assert first[:9] == second[:9]
    assert first[:9] != [json.dumps(one["request"]) for one in next(iter(told("edits:3:1:ConfigMap").values()))][:9]


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(SystemExit, match="no mode is called nope"):
        told("nope:1:1")
