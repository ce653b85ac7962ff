"""Lists of field errors."""

from __future__ import annotations

import pytest

from fakekube import Cluster
from fakekube.apimachinery.errors import field
from fakekube.apimachinery.errors.field import (
    TooManyErrorsError,
    aggregate,
    invalid,
    lift_limit,
    limit_errors,
    limit_text,
    required,
)


def test_texts_of_a_status_are_bounded() -> None:
    """Each of the errors shows the whole list; all together would show it as often as it has items."""
    items = ["x" * 200] * 3000
    errors = [invalid(f"items[{index}]", items, "no") for index in range(len(items))]
    assert len(aggregate(limit_text(errors))) < 10 << 20


def test_all_errors_of_a_usual_object_are_kept() -> None:
    errors = [invalid(f"items[{index}]", "x" * 1000, "no") for index in range(1000)]
    assert limit_text(errors) == errors


def test_a_request_has_a_bounded_number_of_errors() -> None:
    limit_errors(3)
    try:
        for _ in range(3):
            required("spec")
        with pytest.raises(TooManyErrorsError):
            required("spec")
    finally:
        lift_limit()
    assert [required("spec") for _ in range(5)]


def test_an_object_with_too_many_errors_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server answers so after 34 seconds."""
    monkeypatch.setattr(field.limit_errors, "__defaults__", (50,))
    cluster = Cluster(profile="apiserver")
    body = {"metadata": {"name": "wide"}, "spec": {"ports": [{}] * 100}}
    late = cluster.request("POST", "/api/v1/namespaces/default/services", body)
    wrong = cluster.request("POST", "/api/v1/namespaces/default/services", {**body, "spec": {"ports": [{}] * 10}})
    cluster.stop()
    assert (late.status, b"context deadline exceeded" in late.body) == (504, True)
    assert wrong.status == 422
