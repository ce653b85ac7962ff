"""Lists of field errors."""

from __future__ import annotations

from fakekube.apimachinery.errors.field import aggregate, invalid, limit_text


def test_texts_of_a_status_are_bounded() -> None:
    """Each of the errors shows the whole list; all together would show it as often as it has items."""
    items = ["x" * 200] * 3000
    errors = [invalid(f"items[{index}]", items, "no") for index in range(len(items))]
    assert len(aggregate(limit_text(errors))) < 10 << 20


def test_all_errors_of_a_usual_object_are_kept() -> None:
    errors = [invalid(f"items[{index}]", "x" * 1000, "no") for index in range(1000)]
    assert limit_text(errors) == errors
