"""Go's regular expressions: valid patterns, and the errors of invalid ones."""

from __future__ import annotations

import pytest

from fakekube.base.golang.regexp import PatternError, compile_pattern


@pytest.mark.parametrize("pattern", ["", "^a+$", r"\pL\d", "(?i)A", "(?P<n>a)", "a{1000}", r"\\C"])
def test_valid_go_patterns_compile(pattern: str) -> None:
    assert compile_pattern(pattern) is compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing closing ): `(`"),
        ("[a", "missing closing ]: `[a`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"a\C", r"invalid escape sequence: `\C`"),
        ("(" * 1001 + ")" * 1001, f"expression nests too deeply: `{'(' * 1001}{')' * 1001}`"),
    ],
)
def test_invalid_patterns_are_rejected_with_the_message_of_go(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as raised:
        compile_pattern(pattern)
    assert str(raised.value) == f"error parsing regexp: {problem}"
