"""Updates that change nothing skip validation; tested with the objects of all stories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube.apiserver import server as assembly
from fakekube.apiserver.admission.chain import CREATE, Attributes, Chain
from fakekube.apiserver.registry.generic import writes
from fakekube.base.clock import Clock
from fakekube.store import Bucket, Conflict
from tests.unit import stories

UNIT = Path(__file__).parents[3]
FILES = sorted([*UNIT.parents[1].glob("fixtures/kinds/*.jsonl"), *UNIT.glob("apis/stories/*.jsonl")])


@pytest.fixture
def ask() -> Iterator[stories.Ask]:
    clock = Clock()
    yield stories.of_application(
        assembly.build(clock=clock, settings=stories.recorded_settings(), profile="apiserver").application
    )
    clock.close()


def created(ask: stories.Ask) -> Iterator[tuple[str, Any]]:
    """Path and object of all that the stories create; it is there until the next one is asked for."""
    for step in (step for file in FILES for step in stories.load(file)):
        method, path, body = (*step.get("do", ("", "", None)), None)[:3]
        if method != "POST" or step["code"] != 201 or "?" in path:
            continue
        path = path.replace(stories.NAME, "default")
        code, _, text = ask("POST", path, json.loads(json.dumps(body).replace(stories.NAME, "default")), stories.JSON)
        meta = json.loads(text).get("metadata", {})
        own = f"{path}/{meta.get('name')}"
        code, _, text = ask("GET", own, None, stories.JSON)
        if code == 200 and meta.get("uid"):
            yield own, json.loads(text)
            ask("DELETE", f"{own}?gracePeriodSeconds=0", None, stories.JSON)


def test_put_of_an_unchanged_object_returns_it_unchanged(ask: stories.Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way and the long one give the same answers: so what is stored need not be validated again."""
    kinds = set()
    for path, obj in created(ask):
        ask("PUT", path, obj, stories.JSON)  # with which a claim settles
        before = json.loads(ask("GET", path, None, stories.JSON)[2])
        for is_short in (True, False):
            with monkeypatch.context() as patch:
                if not is_short:
                    patch.setattr(writes, "_changes_nothing", lambda *_: False)
                code, _, text = ask("PUT", path, obj | {"metadata": before["metadata"]}, stories.JSON)
            assert (code, json.loads(text)) == (200, before), (path, is_short)
        kinds.add(obj["kind"])
    assert len(kinds) > 40


def test_unchanged_update_skips_validation(ask: stories.Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    obj = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    path = "/api/v1/namespaces/default/configmaps"
    ask("POST", path, obj, stories.JSON)
    monkeypatch.setattr(writes, "_kind_errors", lambda *_, **__: pytest.fail("validated"))
    assert ask("PUT", f"{path}/a", obj, stories.JSON)[0] == 200


def test_an_object_that_is_gone_when_its_update_is_stored_is_validated_as_a_new_one(
    ask: stories.Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/api/v1/namespaces/default/events"
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
    assert ask("POST", path, event, stories.JSON)[0] == 201
    commit, admit = Bucket.commit, Chain.admit

    def lose(bucket: Any, key: str, expected: int | None, make: Any) -> Any:
        if expected:  # it is the update
            commit(bucket, key, None, None)
            raise Conflict(None)
        return commit(bucket, key, expected, make)

    def label_new_objects(chain: Chain, attributes: Attributes) -> None:
        admit(chain, attributes)
        if attributes.object is not None and attributes.operation is CREATE:
            attributes.object["metadata"]["labels"] = {"/": ""}

    monkeypatch.setattr(Bucket, "commit", lose)
    monkeypatch.setattr(Chain, "admit", label_new_objects)
    code, _, text = ask("PUT", f"{path}/e", {**event, "reason": "Changed"}, stories.JSON)
    assert (code, json.loads(text)["details"]["causes"][0]["field"]) == (422, "metadata.labels")
