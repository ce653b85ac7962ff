"""Differences of lines: valid at any size, those of go-difflib up to a size."""

from __future__ import annotations

import difflib
import random
from collections.abc import Sequence

import pytest

from fakekube.base.golang import difflib as ours


def apply(before: Sequence[str], text: str) -> list[str]:
    """Returns the lines after a difference is applied; its context must be what is there."""
    after: list[str] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            begin = int(start) - (length != "0")
            after += before[at:begin]
            at = begin
            continue
        if line[0] != "+":
            assert before[at] == line[1:]
            at += 1
        if line[0] != "-":
            after.append(line[1:])
    return [*after, *before[at:]]


def documents(chance: random.Random) -> tuple[list[str], list[str]]:
    before = [f"{chance.randrange(chance.choice([3, 30, 300]))}\n" for _ in range(chance.randrange(60))]
    after = list(before)
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(after) + 1)
        after[at : at + chance.randrange(3)] = [f"{chance.randrange(100)}\n" for _ in range(chance.randrange(3))]
    return before, after


def test_small_differences_are_those_of_go_difflib() -> None:
    before, after = documents(random.Random(7))
    assert ours.unified_diff(before, after) == "".join(list(difflib.unified_diff(before, after))[2:]) != ""


@pytest.mark.parametrize("seed", range(200))
def test_large_differences_are_valid(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "_EXACT", 0)
    before, after = documents(random.Random(seed))
    assert apply(before, ours.unified_diff(before, after)) == after


def test_many_lines_are_compared_in_linear_time() -> None:
    """A matcher that takes the square of the lines in common needs hours."""
    before = [line for number in range(30_000) for line in (f"name {number}\n", "image\n", "policy\n")]
    after = [line.replace("image", "picture") for line in before]
    assert apply(before, ours.unified_diff(before, after)) == after


def test_long_differences_end() -> None:
    found = ours.unified_diff(["a" * 1000 + "\n"] * 4000, ["b" * 1000 + "\n"] * 4000)
    assert len(found) == pytest.approx(ours._MAXIMUM_TEXT, rel=0.01)
