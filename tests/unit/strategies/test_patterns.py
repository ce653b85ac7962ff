"""Texts for patterns in the syntax of Go, much of which Python does not have."""

from __future__ import annotations

import pytest
from hypothesis import find, settings

from fakekube.base.golang.regexp import matcher
from fakekube.strategies.patterns import texts_like


@pytest.mark.parametrize(
    ("pattern", "least"),
    [
        (r"^\p{Greek}\P{Greek}$", "Ͱ0"),
        (r"^\p{^Greek}\pL\PL$", "0A0"),
        (r"^[^\p{L}][\p{Han}\p{Hiragana}]$", "0⺀"),
        (r"^[[:^space:]_-][[:upper:]-]$", "0A"),
        (r"^\x{3B1}\x41\102\t[\n]$", "αAB\t\n"),
        (r"^\Q[.*]\E{2}é$", "[.*]]é"),
        (r"^{,3}{$", "{,3}{"),
        (r"^(?<first>a)(?P<2nd>b)(?i-s:[^C])(?U)c+?$", "ab0c"),
        (r"^a(?-s)b\z", "ab"),
        (r"(?i)^[^\x00-\x{10FFFF}]?É$", "É"),
    ],
)
def test_texts_match_what_only_go_can_say(pattern: str, least: str) -> None:
    texts, fits = texts_like(pattern), matcher(pattern)
    assert find(texts, fits, settings=settings(database=None, derandomize=True, max_examples=20)) == least
