"""Rules about objects that are changed several times, and about lists of which the rest is newer."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.alterations import changes_of_all
from fakekube.checker.rules.changes import _contains, _in_order_of, _leaves, _replaces, _with_change
from fakekube.checker.rules.lists import _judge_inconsistent_list

CONFIG = {
    "kind": "ConfigMap",
    "metadata": {"name": "motd", "annotations": {"note": "first"}},
    "data": {"text": "hello", "more": "bye"},
}
WIDGET = {"kind": "Widget", "metadata": {"name": "wheel"}, "spec": {"sizes": ["big", "small"]}}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("hello-k2x9", True),
        (base64.b64encode(b"hello-k2x9").decode(), True),
        (base64.b64encode(b"hello").decode(), False),
        ("hello", False),
        (3, False),
        (None, False),
    ],
)
def test_a_copied_text_is_found_also_in_base64(value: Any, found: bool) -> None:
    assert _contains(value, "k2x9") is found


def test_changes_of_a_manifest_have_the_numbers_that_they_have_in_what_the_server_has_made_of_it() -> None:
    stored = {**CONFIG, "data": {"more": "bye", "text": "hello"}, "spec": {"parts": [{"a": "1", "b": "2"}]}}
    manifest = {"spec": {"parts": [{"b": "2", "a": "1"}]}, **CONFIG}
    assert changes_of_all([manifest], "x", 2) != changes_of_all([stored], "x", 2)
    assert changes_of_all([_in_order_of(stored, manifest)], "x", 2) == changes_of_all([stored], "x", 2)


def test_a_copy_may_have_the_change_of_another_one_from_the_beginning() -> None:
    for number, (index, _) in enumerate(changes_of_all([CONFIG, WIDGET], "x", 2)):
        made = _with_change([CONFIG, WIDGET], number, "x", 2)
        other = [CONFIG, WIDGET][1 - index]
        assert made[1 - index] == other
        texts = [value for _, value in _leaves(made[index]) if isinstance(value, str) and value.endswith("-x")]
        assert len(texts) == 1


def page(number: int, revision: int | None, token: str = "", offers: str = "", status: int = 200) -> Any:
    query = {"continue": token} if token else {}
    kind = {"is_list": True, "resumes": False, "succeeded": status == 200}
    return SimpleNamespace(
        number=number, revision=revision, query=query, status=status, answer={"metadata": {"continue": offers}}, **kind
    )


def watch(number: int, revision: str) -> Any:
    kind = {"is_list": False, "resumes": True, "succeeded": True}
    return SimpleNamespace(number=number, query={}, asked_revision=revision, status=200, **kind)


def expired(number: int) -> Any:
    return page(number, None, "old", "rest", 410)


@pytest.mark.parametrize(
    ("calls", "broken"),
    [
        ([page(1, 5, offers="old"), expired(2), page(3, 9, "rest"), watch(4, "9")], True),
        ([page(1, 5, offers="old"), expired(2), page(3, 9, "rest", "more"), page(4, 9, "more"), watch(5, "9")], True),
        ([page(1, 5, offers="old"), expired(2), page(3, 9, "rest"), watch(4, "5")], False),
        ([page(1, 5, offers="old"), expired(2), page(3, 9), watch(4, "9")], False),
        ([page(1, 5, offers="old"), page(2, 5, "old"), watch(3, "5")], False),
    ],
)
def test_the_rest_of_an_inconsistent_list_is_newer_than_its_beginning(
    calls: list[Any], broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakekube.checker.rules.lists.excerpt", lambda calls: [])
    known = SimpleNamespace(is_shared=lambda key: False)
    run: Any = SimpleNamespace(baseline=known, streams_since=lambda: {"pods": SimpleNamespace(calls=calls)})
    assert (_judge_inconsistent_list(run) is not None) is broken


@pytest.mark.parametrize(
    ("number", "path", "text", "succeeded", "parallel"),
    [
        (2, "/configmaps/a", "new", True, True),
        (1, "/configmaps/a", "new", True, False),  # itself
        (2, "/configmaps/b", "new", True, False),
        (2, "/configmaps/a", "old", True, False),
        (2, "/configmaps/a", "new", False, False),
    ],
)
def test_a_newer_write_of_the_same_object_shows_two_workers(
    number: int, path: str, text: str, succeeded: bool, parallel: bool
) -> None:
    held: Any = SimpleNamespace(number=1, verb="patch", path="/configmaps/a")
    call: Any = SimpleNamespace(number=number, verb="patch", path=path, succeeded=succeeded, mentions=lambda one: one == text)
    assert _replaces(call, held, "new") is parallel
