"""Patterns are held against texts, and refused, as Go does."""

from __future__ import annotations

import pytest

from fakekube.schema.regular_expressions import PatternError, matcher


@pytest.mark.parametrize(("pattern", "text", "found"), [
    ("b", "abc", True), ("^b", "abc", False), ("^a.c$", "aéc", True), ("^.$", "\udcff", False), ("a", "\udcffa", True), ("", "", True),
])
def test_what_is_found(pattern: str, text: str, found: bool) -> None:
    assert matcher(pattern)(text) is found


def test_what_is_no_pattern() -> None:
    with pytest.raises(PatternError, match="missing closing"):
        matcher("(a")
