"""Writes of every kind: which errors of metadata are told once and which twice, what an object that is being deleted may still change, what
a server sets in a new object and in its generation, and which kinds are made by an update.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario

DRY = {"dryRun": "All"}
FOLDER = Path(__file__).parents[3] / "fixtures" / "kinds"
HELD = "example.com/hold"
WRONG: dict[str, Any] = {
    "labels": {"a/b/c": ""},
    "annotations": {"-": ""},
    "finalizers": [HELD, "x"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "n", "uid": "u"}],
}
RACING = ("flowschemas",)
"""A controller of the server itself writes to them at the same time."""
PLURALS = {"horizontalpodautoscalers_v1": "horizontalpodautoscalers"}
OWN_NAMES = ("ipaddresses", "apiservices", "csinodes", "storageversions")
CONTAINERS: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}
SPACE = "/api/v1/namespaces/$NS"
OF_CORE: dict[str, dict[str, Any]] = {
    f"{SPACE}/pods": {"spec": CONTAINERS},
    f"{SPACE}/podtemplates": {"template": TEMPLATE},
    f"{SPACE}/replicationcontrollers": {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
    f"{SPACE}/services": {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
    f"{SPACE}/endpoints": {"subsets": []},
    f"{SPACE}/configmaps": {"data": {"a": "b"}},
    f"{SPACE}/secrets": {"data": {"a": "Yg=="}},
    f"{SPACE}/serviceaccounts": {},
    f"{SPACE}/limitranges": {"spec": {"limits": []}},
    f"{SPACE}/resourcequotas": {"spec": {"hard": {"pods": "100"}}},
    f"{SPACE}/persistentvolumeclaims": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    "/api/v1/persistentvolumes": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    },
    "/api/v1/nodes": {},
    "/api/v1/namespaces": {},
    f"{SPACE}/events": {"involvedObject": {"namespace": "$NS", "kind": "Pod", "name": "p"}},
    "/apis/events.k8s.io/v1/namespaces/$NS/events": {
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "i", "action": "a",
        "reason": "r", "type": "Normal", "regarding": {"namespace": "$NS", "kind": "Pod", "name": "p"},
    },
}  # fmt: skip


def with_metadata(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj.get("metadata", {}), **metadata}}


def placed(client: Client, collection: str, valid: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The collection in the namespace of the client, and the object with a name."""
    plural = collection.rpartition("/")[2]
    is_wide = "/namespaces/" not in collection
    collection, base = (json.loads(json.dumps(part).replace("$NS", client.ns)) for part in (collection, valid))
    given = base.get("metadata", {}).get("name", "") if plural in OWN_NAMES else ""
    return collection, with_metadata(base, name=given or (client.name("m") if is_wide else "m"))


def _tell_metadata(client: Client, collection: str, valid: dict[str, Any]) -> None:
    """Makes an object with a finalizer, and writes wrong metadata before and after its deletion."""
    collection, base = placed(client, collection, valid)
    path = f"{collection}/{base['metadata']['name']}"
    client.post(collection, with_metadata(base, **WRONG), DRY)
    client.post(collection, with_metadata(base, name="", generateName="A_"), DRY)
    client.post(collection, with_metadata(base, finalizers=[HELD]), silent=True)
    stored = client.get(path, silent=True).json
    client.put(path, with_metadata(stored, **WRONG), DRY)
    client.delete(path, {"gracePeriodSeconds": 0}, silent=True)
    stored = client.get(path, silent=True).json
    if stored.get("kind") != "Status":
        for change in (
            {"finalizers": [HELD, "example.com/more"]},
            {"deletionGracePeriodSeconds": 7},
            {"deletionTimestamp": None, "labels": {"a": "b"}},
            {"generation": -1},
        ):
            client.put(path, with_metadata(copy.deepcopy(stored), **change), DRY)
        client.patch(path, {"metadata": {"finalizers": None}}, MERGE, silent=True)
    client.delete(path, {"gracePeriodSeconds": 0}, silent=True)


def _tell_writes(client: Client, collection: str, valid: dict[str, Any]) -> None:
    """Makes an object with fields that the server sets, and updates it with and without a revision."""
    collection, base = placed(client, collection, valid)
    path = f"{collection}/{base['metadata']['name']}"
    own = {
        "generation": 7,
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "selfLink": "/a",
    }
    client.put(path, base, DRY)
    client.post(collection, with_metadata({**base, "status": {}}, **own), DRY)
    client.post(collection, base, silent=True)
    stored = client.get(path, silent=True).json
    anyhow = {**stored, "metadata": {key: value for key, value in stored["metadata"].items() if key != "resourceVersion"}}
    client.put(path, with_metadata(anyhow, labels={"a": "b"}), DRY)
    client.put(path, with_metadata(anyhow, uid="00000000-0000-4000-8000-000000000001"), DRY)
    client.put(path, with_metadata(stored, resourceVersion="1"), DRY)
    client.put(path, with_metadata(stored, generation=9, annotations={"a": "b"}, selfLink="/a"), DRY)
    client.put(f"{path}/status", with_metadata({**anyhow, "spec": {}, "status": {}}, labels={"a": "b"}), DRY)
    client.delete(path, {"gracePeriodSeconds": 0}, DRY)
    client.delete(path, {"gracePeriodSeconds": 0}, silent=True)


def register(title: str, collection: str, valid: dict[str, Any], module: str = __name__) -> None:
    """Registers the two scenarios of a kind."""
    for play, what in ((_tell_metadata, title), (_tell_writes, f"{title}_written")):
        told: Any = functools.partial(play, collection=collection, valid=valid)
        told.__name__, told.__module__, told.__doc__ = what, module, play.__doc__
        scenario(told)


def _first_valid(file: Path) -> tuple[str, dict[str, Any]] | None:
    """The first object of a story that the server made, and where; but not its namespace."""
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        method, place, body = (*row.get("do", ()), None, None, None)[:3]
        if (
            method == "POST"
            and row.get("code") == 201
            and isinstance(body, dict)
            and place.endswith(PLURALS.get(file.stem, file.stem))
        ):
            return place, body
    return None


def _kinds() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields the title, the collection and a valid object of each kind."""
    for file in sorted(FOLDER.glob("*.jsonl")):
        if file.stem not in RACING and (found := _first_valid(file)):
            yield file.stem, *found
    for where, body in OF_CORE.items():
        yield where.rpartition("/")[2] if "events.k8s.io" not in where else "events_v1", where, body


KINDS = tuple(_kinds())
for kind in KINDS:
    register(*kind)
