"""Edge cases of the syntax of label keys and values; whole selectors are tested in `test_parsing`."""

from __future__ import annotations

import pytest

from fakekube.apimachinery.selectors.labels import label_key, label_value


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        ("a", []),
        ("A-b_c.9", []),
        ("x" * 63, []),
        ("a.b/c", []),
        ("a." * 126 + "a/c", []),
        ("", ["name part must be non-empty", "name part must consist of"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
        ("é" * 32, ["name part must be no more than 63 bytes", "name part must consist of"]),
        ("a-", ["name part must consist of"]),
        ("/a", ["prefix part must be non-empty"]),
        ("a_b/c", ["prefix part a lowercase RFC 1123 subdomain must consist of"]),
        ("a." * 127 + "a/c", ["prefix part must be no more than 253 bytes"]),
        ("/", ["prefix part must be non-empty", "name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
        ("a\n", ["name part must consist of"]),
    ],
)
def test_label_key_syntax(key: str, problems: list[str]) -> None:
    found = label_key(key)
    assert len(found) == len(problems)
    assert all(text.startswith(start) for text, start in zip(found, problems, strict=True))


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("", []),
        ("a", []),
        ("A-b_c.9", []),
        ("x" * 63, []),
        ("x" * 64, ["must be no more than 63 bytes"]),
        ("-", ["a valid label must be an empty string or consist of"]),
        ("a/b", ["a valid label must be an empty string or consist of"]),
        ("é" * 32, ["must be no more than 63 bytes", "a valid label must be an empty string or consist of"]),
    ],
)
def test_label_value_syntax(value: str, problems: list[str]) -> None:
    found = label_value(value)
    assert len(found) == len(problems)
    assert all(text.startswith(start) for text, start in zip(found, problems, strict=True))
