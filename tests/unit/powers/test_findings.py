"""Findings, from rows alone and from a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube import Cluster
from fakekube.powers.findings import MAX_FINDINGS, Asked, Written, find
from tests.unit.seen import columns, config_map, deployment


def asked(number: int, verb: str = "update", **more: Any) -> Asked:
    values: dict[str, Any] = {
        "number": number,
        "time": float(number),
        "verb": verb,
        "resource": "pods",
        "namespace": "default",
        "name": "a",
        "actor": "op",
        "is_client": True,
        "code": 200,
        "wrote": (number,),
        "version": "",
        "ended": "",
        "ended_at": 0.0,
        "changes_before": number,
    }
    return Asked(**{**values, **more})


def written(revision: int, actor: str, value: str, **more: Any) -> Written:
    values: dict[str, Any] = {"is_client": True, "heartbeat": False, "values": {"spec.replicas": ("", value)}}
    return Written(revision, "deployments.apps", "default", "web", actor, revision, **{**values, **more})


def kinds(*args: Any, **more: Any) -> list[str]:
    return [one.kind for one in find(*args, **more)]


def test_a_fight_needs_three_turns_with_the_same_values() -> None:
    turns = [written(number, "ab"[number % 2], "35"[number % 2]) for number in range(7)]
    (found,) = find([], turns)
    assert found.kind == "fight"
    assert found.path == "spec.replicas"
    assert set(found.actors) == {"a", "b"}
    assert found.changes == list(range(7))
    assert "alternated between a and b 6 times (revisions 0 to 6)" in found.sentence
    assert kinds([], turns[:3]) == []
    assert kinds([], [written(number, "ab"[number % 2], str(number)) for number in range(7)]) == []  # nobody sets it back
    assert kinds([], [written(number, "a", "35"[number % 2]) for number in range(7)]) == []


def test_a_fight_among_other_writes() -> None:
    turns = [written(number, "ab"[number % 2], "35"[number % 2]) for number in range(2, 8)]
    every = [written(0, "c", "1"), written(1, "c", "2"), *turns, written(9, "c", "9")]
    assert find([], every)[0].changes == [2, 3, 4, 5, 6, 7]


def test_hot_loops() -> None:
    assert kinds([], [written(number, "op", str(number)) for number in range(11)]) == ["hot loop"]
    assert kinds([], [written(number, "op", str(number)) for number in range(10)]) == []
    assert kinds([], [written(number, "op", str(number), is_client=False) for number in range(20)]) == []
    broken = [written(number, "other" if number == 6 else "op", str(number)) for number in range(12)]
    assert kinds([], broken) == []
    refused = [asked(number, code=422, wrote=(), changes_before=0) for number in range(6)]
    assert kinds(refused, []) == ["hot loop"]
    assert kinds(refused[:5], []) == []
    assert kinds([asked(number, code=422, wrote=(), changes_before=20 * number) for number in range(6)], []) == []


def test_blind_retry() -> None:
    assert kinds([asked(1, version="5", code=409), asked(2, version="5")], []) == ["blind retry"]
    assert kinds([asked(1, version="5", code=409), asked(2, version="6")], []) == []
    assert kinds([asked(1, version="5", code=409), asked(2, version="5", name="b")], []) == []


def test_no_relist() -> None:
    expired = asked(1, "watch", ended="error 410", name="")
    assert kinds([expired, asked(2, "watch", version="7", name="")], []) == ["no relist"]
    assert kinds([expired, asked(2, "list", name=""), asked(3, "watch", version="7", name="")], []) == []
    assert kinds([expired, asked(2, "watch", version="", name="")], []) == []


def test_no_effect() -> None:
    assert kinds([asked(number, wrote=()) for number in range(21)], []) == ["no effect"]
    assert kinds([asked(number, wrote=()) for number in range(20)], []) == []


def test_lost_watch() -> None:
    ended = asked(1, "watch", ended="closed by the client", ended_at=10.0)
    assert kinds([ended, asked(50)], [], now=50.0) == ["lost watch"]
    assert kinds([ended, asked(50)], [], now=30.0) == []
    assert kinds([ended], [], now=50.0) == []  # the client has left
    assert kinds([ended, asked(11, "watch"), asked(50)], [], now=50.0) == []


def test_at_most_twenty() -> None:
    every = [written(number, "op", "x", values={}) for number in range(12)]
    many = [
        Written(one.revision, one.resource, one.namespace, f"web-{name}", one.actor, one.request, True, False, {})
        for name in range(30)
        for one in every
    ]
    assert len(find([], many)) == MAX_FINDINGS


@pytest.fixture
def cluster() -> Any:
    with Cluster(profile="apiserver") as started:
        yield started


def test_a_fight_in_a_cluster(cluster: Cluster) -> None:
    cluster.create(deployment("web"))
    one, other = cluster._components.client("my-operator/1.0"), cluster._components.client("autoscaler/1.0")
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    for number in range(6):
        client = (one, other)[number % 2]
        client.call("PATCH", path, {"spec": {"replicas": 3 + 2 * (number % 2)}}, content_type="application/merge-patch+json")
    (found,) = cluster.findings()
    assert (found.kind, found.path, found.name) == ("fight", "spec.replicas", "web")
    assert set(found.actors) == {"my-operator", "autoscaler"}
    rows = {row["revision"]: row for row in columns(cluster.rows.changes(resource="deployments.apps"))}
    assert [rows[revision]["actor"] for revision in found.changes] == ["my-operator", "autoscaler"] * 3
    assert found.requests == [rows[revision]["request"] for revision in found.changes]


def test_an_idle_fault_names_the_nearest_request(cluster: Cluster) -> None:
    cluster.faults.on("delete", "configmaps", own=True).status(500)
    cluster.create(config_map("a"))
    (found,) = cluster.findings()
    assert found.kind == "idle fault"
