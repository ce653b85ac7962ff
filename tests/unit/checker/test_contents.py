"""Other contents of the objects of a sample."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker import contents
from fakekube.checker.contents import TEXTS, OtherContents, _refusal, find_optional
from fakekube.controllers.client import ApiError

SECRET = {"kind": "Secret", "metadata": {"name": "a"}, "data": {"password": "aGlkZGVu"}}
SHOP = {"kind": "Shop", "metadata": {"name": "b", "labels": {"listed": "yes"}}, "spec": {"text": "hello", "also": "hello"}}


@pytest.fixture
def other_contents(monkeypatch: pytest.MonkeyPatch) -> OtherContents:
    """The changes of two objects, for a client that only lists those with a label."""
    for name in ("_refusal", "_refusal_of_either"):
        monkeypatch.setattr(contents, name, lambda *arguments: "")
    monkeypatch.setattr(contents, "own_object", lambda trial, copy, number: (SECRET, SHOP)[number])
    monkeypatch.setattr(contents, "collection_of", lambda *arguments: "")
    trace = SimpleNamespace(streams=lambda: [SimpleNamespace(label_selector="listed=yes")])
    trial: Any = SimpleNamespace(
        baseline=SimpleNamespace(streams={}, written=frozenset(), trial=SimpleNamespace(trace=trace)),
        random=random.Random(0),
        sample=SimpleNamespace(copies=lambda token: [SECRET, SHOP]),
        copies=[None],
        resource_of=lambda obj: obj["kind"],
    )
    return OtherContents(trial, (TEXTS,))


def test_each_value_of_all_objects_has_a_mark_of_its_own(other_contents: OtherContents) -> None:
    values = [value for _, value in other_contents.values()]
    assert [value.path[-1] for value in values] == ["password", "text", "also"]
    assert len({value.mark for value in values}) == len(values)


def test_labels_by_which_objects_are_listed_stay(other_contents: OtherContents) -> None:
    assert set(other_contents.all()[1]["metadata"]["labels"]) == {"check.fakekube.dev/added"}


@pytest.mark.parametrize(("valid", "refusal"), [(True, ""), (False, "invalid")])
def test_an_object_that_was_written_meanwhile_is_tried_in_its_present_state(valid: bool, refusal: str) -> None:
    """A conflict says nothing about the content."""

    def call(method: str, path: str, body: Any = None, query: Any = None) -> Any:
        if method == "GET":
            return {"metadata": {"resourceVersion": "9"}}
        if body["metadata"]["resourceVersion"] != "9":
            raise ApiError({"code": 409, "message": "modified"})
        if not valid:
            raise ApiError({"code": 422, "message": "invalid"})
        return body

    trial: Any = SimpleNamespace(cluster=SimpleNamespace(call=call))
    found = _refusal(trial, "PUT", "/shops/b", {"metadata": {"resourceVersion": "7"}})
    assert refusal in found
    assert bool(found) is not valid


def test_what_the_api_lets_anybody_leave_out_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here all but `text`; `public` is a switch, and `peer` names another object."""

    def copies(new: str) -> list[Any]:
        spec = {"text": "hello", "host": "a", "public": True, "peer": {"name": f"b-{new}"}, "tags": ["x"]}
        return [{"kind": "Shop", "metadata": {"name": f"a-{new}"}, "spec": spec}]

    def refuse(trial: Any, resource: str, new: Any, changed: Any) -> str:
        assert new["spec"].keys() == changed["spec"].keys()
        return "" if "text" in new["spec"] else "spec.text: Required value"

    monkeypatch.setattr(contents, "own_object", lambda trial, copy, number: copies("x1")[number])
    monkeypatch.setattr(contents, "_refusal_of_either", refuse)
    sample = SimpleNamespace(copies=copies)
    trial: Any = SimpleNamespace(random=random.Random(0), sample=sample, copies=[None], resource_of=lambda obj: "shops")
    assert list(find_optional(trial)) == [(0, ("spec", "host"), "a"), (0, ("spec", "tags"), ["x"])]
