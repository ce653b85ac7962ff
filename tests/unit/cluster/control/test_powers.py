"""Faults, requests, histories, snapshots and state over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from fakekube import Cluster

MAPS = "api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        yield made


def ask(cluster: Cluster, method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> tuple[int, Any]:
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{cluster.url}/{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_create_read_and_delete_faults(cluster: Cluster) -> None:
    wanted = {"on": {"verbs": "list", "resource": "configmaps"}, "do": {"status": {"code": 503}}, "times": 1, "label": "x"}
    code, fault = ask(cluster, "POST", "fakekube/v1/faults", wanted)
    assert (code, fault["hits"], fault["label"]) == (201, 0, "x")
    assert ask(cluster, "GET", MAPS)[0] == 503
    assert ask(cluster, "GET", f"fakekube/v1/faults/{fault['id']}")[1]["hits"] == 1
    assert [one["id"] for one in ask(cluster, "GET", "fakekube/v1/faults")[1]["items"]] == [fault["id"]]
    assert ask(cluster, "DELETE", f"fakekube/v1/faults/{fault['id']}")[0] == 200
    assert ask(cluster, "GET", f"fakekube/v1/faults/{fault['id']}")[0] == 404
    assert ask(cluster, "DELETE", "fakekube/v1/faults") == (200, {"items": []})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"on": {}, "do": {}},
        {"on": {"verb": "get"}, "do": {"gone": {}}},
        {"on": {}, "do": {"explode": {}}},
        {"on": {"verbs": "eat"}, "do": {"gone": {}}},
        {"on": {}, "do": {"status": {}}},
        {"on": {}, "do": {"intercept": {}}},
        {"on": {}, "do": {"gone": {}}, "every": 0},
        {"on": {}, "do": {"slice": {"size": 0}}},
        {"on": {}, "do": {"gone": 1}},
        {"on": {}, "do": {"gone": {}}, "more": 1},
        {"on": {"resource": 5}, "do": {"gone": {}}},
        {"on": {"own": "x"}, "do": {"gone": {}}},
        {"on": {"verbs": 5}, "do": {"gone": {}}},
        {"on": {}, "do": {"status": {"code": "503"}}},
        {"on": {}, "do": {"gone": {"times": 1}}},
        {"on": {}, "do": {"conflict": {"change": "x"}}},
        {"on": {}, "do": {"gone": {}}, "times": True},
        {"on": {}, "do": {"gone": {}}, "label": 5},
    ],
)
def test_invalid_faults_return_400(cluster: Cluster, body: Any) -> None:
    code, answer = ask(cluster, "POST", "fakekube/v1/faults", body)
    assert code == 400
    assert answer["error"]


def test_recorded_requests_are_listed_and_cleared(cluster: Cluster) -> None:
    cursor = ask(cluster, "GET", "fakekube/v1/requests")[1]["cursor"]
    ask(cluster, "POST", MAPS, {"metadata": {"name": "a"}})
    ask(cluster, "GET", f"{MAPS}/a")
    code, found = ask(cluster, "GET", f"fakekube/v1/requests?since={cursor}&verb=create&wait=2s")
    assert code == 200
    assert [(one["name"], one["status"], one["answer"]["kind"]) for one in found["items"]] == [("a", 201, "ConfigMap")]
    assert ask(cluster, "GET", f"fakekube/v1/requests?since={found['cursor']}")[1]["items"][0]["verb"] == "get"
    for wrong in ("wait=long", "limit=-1", "limit=--5", "limit=%C2%B2", "since=x", "own=maybe", "verb=eat"):
        assert ask(cluster, "GET", f"fakekube/v1/requests?{wrong}")[0] == 400
    assert ask(cluster, "GET", "fakekube/v1/requests?colour=red")[0] == 400
    assert ask(cluster, "DELETE", "fakekube/v1/requests")[0] == 200
    assert ask(cluster, "GET", "fakekube/v1/requests")[1]["items"] == []


def test_history_and_snapshot_endpoints(cluster: Cluster) -> None:
    ask(cluster, "POST", MAPS, {"metadata": {"name": "a"}})
    found = ask(cluster, "GET", "fakekube/v1/history/configmaps/default/a")[1]["items"]
    assert [one["type"] for one in found] == ["ADDED"]
    assert ask(cluster, "GET", "fakekube/v1/history/nothings/-/a")[0] == 404
    code, item = ask(cluster, "POST", "fakekube/v1/snapshots", {"name": "a"})
    assert (code, item["name"]) == (201, "a")
    cluster.delete("cm", "a")
    assert ask(cluster, "POST", "fakekube/v1/snapshots/a/restore")[0] == 200
    assert cluster.get("cm", "a")
    assert [one["name"] for one in ask(cluster, "GET", "fakekube/v1/snapshots")[1]["items"]] == ["a"]
    assert ask(cluster, "DELETE", "fakekube/v1/snapshots/a")[0] == 200
    assert ask(cluster, "POST", "fakekube/v1/snapshots/a/restore")[0] == 404


def test_load_export_compact_reset_and_restart_endpoints(cluster: Cluster) -> None:
    manifest = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    code, loaded = ask(cluster, "POST", "fakekube/v1/load", raw=manifest)
    assert (code, loaded["items"]) == (200, [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}])
    assert ask(cluster, "POST", "fakekube/v1/load", raw=b"just: text\n")[0] == 400
    exported = ask(cluster, "GET", "fakekube/v1/export?format=json&namespace=default&kinds=cm")[1]
    assert [one["metadata"]["name"] for one in exported["items"]] == ["a"]
    with urllib.request.urlopen(f"{cluster.url}/fakekube/v1/export?kinds=cm") as response:
        assert "a" in {one["metadata"]["name"] for one in yaml.safe_load_all(response.read())}
    assert ask(cluster, "GET", "fakekube/v1/export?kinds=nothings")[0] == 400
    assert ask(cluster, "POST", "fakekube/v1/compact") == (200, {})
    assert ask(cluster, "POST", "fakekube/v1/reset") == (200, {})
    assert cluster.list("cm", namespace="default") == []
    assert ask(cluster, "POST", "fakekube/v1/restart", {"cold": "x"})[0] == 400


@pytest.mark.parametrize("form", ["yaml", "compact"])
def test_state_is_saved_and_loaded_over_http(cluster: Cluster, form: str) -> None:
    ask(cluster, "POST", MAPS, {"metadata": {"name": "a"}})
    made = cluster.get("cm", "a")
    with urllib.request.urlopen(f"{cluster.url}/fakekube/v1/state?form={form}&history=true") as response:
        state = response.read()
    cluster.reset()
    assert ask(cluster, "POST", "fakekube/v1/load", raw=state) == (200, {"items": []})
    assert cluster.get("cm", "a") == made
    assert ask(cluster, "POST", "fakekube/v1/load", raw=state[: len(state) // 2])[0] == 400
    assert ask(cluster, "GET", "fakekube/v1/state?form=x")[0] == 400


def test_openapi_document_lists_the_control_paths(cluster: Cluster) -> None:
    paths = ask(cluster, "GET", "fakekube/v1/openapi.json")[1]["paths"]
    assert {"get", "post", "delete"} <= set(paths["/fakekube/v1/faults"])
    assert "/fakekube/v1/history/{resource}/{namespace}/{name}" in paths


@pytest.mark.parametrize("text", [b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","generation":%s}}', b"a: %s\n"])
def test_load_refuses_integers_with_very_many_digits_in_words(cluster: Cluster, text: bytes) -> None:
    code, answer = ask(cluster, "POST", "fakekube/v1/load", raw=text % (b"9" * 200_000))
    assert (code, answer["error"]) == (400, "the text: an integer has too many digits")
