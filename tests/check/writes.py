"""Writes that keep changes of others: read-modify-write with resourceVersion, finalizers, deletes with uid preconditions."""

from __future__ import annotations

import contextlib
import copy
import random
import time
from collections.abc import Callable
from typing import Any

from defects import active
from transport import Api, ApiError

Object = dict[str, Any]
#: Changes an object in place; returns False if there is nothing to change.
Change = Callable[[Object], bool]

MANAGER = "checked-operator"
FINALIZER = "checked.dev/children"
#: RetryOnConflict of client-go: the number of attempts, and the first pause in seconds.
STEPS, PAUSE = 5, 0.01


def update(api: Api, path: str, obj: Object, change: Change, *, uid: str, subresource: str = "") -> Object:
    """Applies a change to an object, after a conflict to its present version. Sends nothing if nothing changes.

    Raises:
        ApiError: also 409 after all steps, and when an object of another uid has the name now.
    """
    stale = copy.deepcopy(obj)
    for step in range(STEPS):
        body = copy.deepcopy(obj)
        if not change(body):
            return obj
        _spoil(api, path, body, stale, change)
        if active("N3-invalid") and subresource:
            del body["metadata"]["resourceVersion"]
        if active("C2-no-revision") and not subresource:
            for part in ("resourceVersion", "managedFields"):
                body["metadata"].pop(part, None)
            return api.request("PATCH", path, {}, body, content_type="application/merge-patch+json")
        try:
            return api.request("PUT", path + subresource, {"fieldManager": MANAGER}, body)
        except ApiError as error:
            if error.code != 409 or step == STEPS - 1 or active("C1-stop"):
                raise
        if active("C1-at-once"):
            _insist(lambda: api.request("PUT", path + subresource, {}, body), times=5)  # noqa: B023
        if active("C1-spin", "C1-same-body"):
            _repeat(api, path + subresource, body)
        time.sleep(PAUSE * (1 + random.random() * 0.1))
        obj = api.request("GET", path)
        if obj["metadata"]["uid"] != uid:
            raise ApiError({"reason": "Conflict", "message": "the object was deleted and created again"}, 409)
    raise AssertionError


def _spoil(api: Api, path: str, body: Object, stale: Object, change: Change) -> None:
    """Applies the defects that change the body of a write."""
    metadata = body["metadata"]
    if active("C2-newest"):
        newest = api.request("GET", path)["metadata"]["resourceVersion"]
        body.clear()
        body.update(copy.deepcopy(stale))
        change(body)
        body["metadata"]["resourceVersion"] = newest
    if active("C3-empty"):
        full = _without_empty(body)
        body.clear()
        body.update(full)
    if active("C3-fields") and isinstance(body.get("spec"), dict):
        body["spec"] = {name: value for name, value in body["spec"].items() if name in {"message", "size"}}
    if active("C3-metadata"):
        for part in ("labels", "annotations"):
            metadata[part] = {
                name: value for name, value in (metadata.get(part) or {}).items() if name.startswith("checked.dev/")
            }


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(inner) for key, inner in value.items() if inner}
    return value


def _repeat(api: Api, path: str, body: Object) -> None:
    while True:
        try:
            api.request("PUT", path, {"fieldManager": MANAGER}, body)
            return
        except ApiError as error:
            if error.code != 409:
                raise
        time.sleep(0.0 if active("C1-spin") else 0.5)


def _insist(send: Callable[[], object], times: int, pause: float = 0.0) -> None:
    for _ in range(times):
        with contextlib.suppress(ApiError):
            send()
        time.sleep(pause)


def label_wrongly(api: Api, path: str) -> None:
    """A defect: writes a label that the API never accepts, again and again."""
    _insist(lambda: _merge(api, path, {"labels": {"-": "wrong"}}), times=16, pause=0.3)


def own_alone(api: Api, path: str, owners: list[Object]) -> Object:
    """A defect: removes all other owners of an object."""
    return _merge(api, path, {"ownerReferences": owners})


def add_finalizer(api: Api, path: str, obj: Object) -> Object:
    if active("C4-replaces"):
        return _merge(api, path, {"finalizers": [FINALIZER]})
    if active("C4-cached"):
        return _merge(api, path, {"finalizers": [*(obj["metadata"].get("finalizers") or ()), FINALIZER]})

    def add(body: Object) -> bool:
        finalizers = body["metadata"].setdefault("finalizers", [])
        if FINALIZER in finalizers or body["metadata"].get("deletionTimestamp"):
            return False
        finalizers.append(FINALIZER)
        return True

    return update(api, path, obj, add, uid=obj["metadata"]["uid"])


def remove_finalizer(api: Api, path: str, obj: Object) -> None:
    def remove(body: Object) -> bool:
        finalizers = body["metadata"].get("finalizers") or []
        body["metadata"]["finalizers"] = [name for name in finalizers if name != FINALIZER]
        return FINALIZER in finalizers

    try:
        if active("C4-clears", "C4-replaces"):
            _merge(api, path, {"finalizers": None})
        elif active("C4-index"):
            patch = [{"op": "remove", "path": "/metadata/finalizers/0"}]
            api.request("PATCH", path, {}, patch, content_type="application/json-patch+json")
        else:
            update(api, path, obj, remove, uid=obj["metadata"]["uid"])
    except ApiError as error:
        if error.code != 404:
            raise


def _merge(api: Api, path: str, metadata: Object) -> Object:
    return api.request("PATCH", path, {}, {"metadata": metadata}, content_type="application/merge-patch+json")


def delete(api: Api, path: str, obj: Object) -> None:
    """Deletes this object, but no other object with its name; it may be deleted already."""
    body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if not active("C5-by-name"):
        body["preconditions"] = {"uid": obj["metadata"]["uid"]}
    while True:
        try:
            api.request("DELETE", path, {}, body)
        except ApiError as error:
            if active("C6-gone") and error.code == 404:
                time.sleep(0.5)
                continue
            if error.code not in {404, 409}:
                raise
        return
