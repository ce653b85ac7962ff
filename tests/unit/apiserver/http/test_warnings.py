"""Warning headers: form, order, limits."""

from __future__ import annotations

from fakekube.apiserver.http.responses import warning_headers


def _values(texts: list[str]) -> list[str]:
    headers = warning_headers(texts)
    assert all(name == "Warning" for name, _ in headers)
    return [value for _, value in headers]


def test_duplicate_warnings_are_dropped_and_quoted() -> None:
    assert _values(["b", 'a "x" \\', "b", ""]) == ['299 - "b"', '299 - "a \\"x\\" \\\\"']


def test_non_ascii_warnings_are_sent_as_utf8() -> None:
    assert [value.encode("latin-1").decode() for value in _values(["é"])] == ['299 - "é"']


def test_warnings_with_newlines_are_dropped() -> None:
    assert _values(["a\nb", "c"]) == ['299 - "c"']


def test_warnings_within_the_size_limit_are_not_truncated() -> None:
    assert _values(["x" * 4096]) == [f'299 - "{"x" * 4096}"']


def test_warnings_over_the_size_limit_are_truncated() -> None:
    values = _values([f"{i:03d}" + "x" * 400 for i in range(30)])
    assert values[0] == f'299 - "000{"x" * 253}"'
    assert len(values) == 16, "16 texts of 256 characters are 4096"
