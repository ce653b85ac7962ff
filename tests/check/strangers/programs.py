"""Clients of different make, all of them correct unless `--defect NAME` is given.

    KUBECONFIG=… python tests/check/strangers/programs.py PROGRAM [--defect NAME] [--start SECONDS]

watch     prints ConfigMaps, and writes nothing
put       reads ConfigMaps, and writes an annotation and a copy with PUT
patch     a finalizer by JSON patch, an annotation by merge patch
apply     applies a ConfigMap for each Widget, and the status
generate  creates two Secrets with generated names for each Widget
several   of a Widget and a Secret beside it, only the Widget gets a finalizer, a status and a child
lead      as several, while it holds a lease
pages     as put, with pages of five
stream    as several, with initial events instead of lists
"""

from __future__ import annotations

import copy
import datetime
import os
import random
import sys
import threading
import time
from typing import Any

from wire import Api, Failed, Object, Queue, Reflector, bad, key_of, main

CONFIGS = "/api/v1/configmaps"
WIDGETS = "/apis/checked.dev/v1/widgets"
SECRETS = "/api/v1/secrets"
FINALIZER = "stranger.dev/cleanup"
MERGE, JSON, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"


def one(collection: str, key: str, subresource: str = "") -> str:
    """The path of an object."""
    namespace, _, name = key.partition("/")
    head, _, plural = collection.rpartition("/")
    return f"{head}/namespaces/{namespace}/{plural}/{name}" + (f"/{subresource}" if subresource else "")


def of_namespace(collection: str, key: str) -> str:
    return one(collection, key).rpartition("/")[0]


# ---------------------------------------------------------------- watch


def watch(api: Api) -> None:
    def changed(key: str, obj: Object | None, old: Object | None) -> None:
        print("gone" if obj is None else "there", key, flush=True)

    Reflector(api, CONFIGS, changed).start()


# ---------------------------------------------------------------- put and pages

SEEN = "stranger.dev/seen"


class Putter:
    """Writes what it has seen of a ConfigMap into an annotation, and copies the data, both with PUT."""

    def __init__(self, api: Api, **reflector: Any) -> None:
        self._api = api
        self._queue = Queue(self._work, workers=2)
        self._reflector = Reflector(api, CONFIGS, lambda key, obj, old: self._queue.add(key), **reflector)
        self._kept: dict[str, Object] = {}
        self._reflector.start()

    def _work(self, key: str) -> None:
        seen = self._reflector.cache.get(key)
        if seen is None:
            if bad("x-first-deleting"):
                del self._kept[key]
            return
        if seen["metadata"]["name"].endswith("-copy") or "kube-root" in key or seen["metadata"].get("deletionTimestamp"):
            return
        mark = f"{len(seen.get('data') or {})} keys, {seen['metadata']['uid'][:8]}"
        if (seen["metadata"].get("annotations") or {}).get(SEEN) != mark:
            self._put(key, mark, seen)
        self._copy(key, seen)

    def _put(self, key: str, mark: str, seen: Object) -> None:
        for attempt in range(5):
            obj = seen if attempt == 0 or bad("c1-same") else self._read(key)
            if obj is None:
                return
            new = copy.deepcopy(obj)
            new["metadata"].setdefault("annotations", {})[SEEN] = mark
            if bad("c2-no-revision"):
                new["metadata"].pop("resourceVersion")
            if bad("c3-annotations"):
                new["metadata"]["annotations"] = {SEEN: mark}
            if bad("c3-binary"):
                new.pop("binaryData", None)
            if bad("c4-finalizers"):
                new["metadata"].pop("finalizers", None)
            try:
                self._api.call("PUT", one(CONFIGS, key), new)
                return
            except Failed as problem:
                if problem.code == 404 and not bad("c6-exits") and not bad("c6-slow-loop"):
                    return
                if problem.code == 409 and bad("c2-forces"):
                    new["metadata"].pop("resourceVersion")
                    self._api.call("PUT", one(CONFIGS, key), new)
                    return
                if problem.code == 409 and bad("c1-spins"):
                    while True:
                        try:
                            self._api.call("PUT", one(CONFIGS, key), new)
                        except Failed:
                            continue
                        return
                if problem.code == 404 and bad("c6-slow-loop"):
                    while True:
                        time.sleep(1.0)
                        try:
                            self._api.call("PUT", one(CONFIGS, key), new)
                            break
                        except Failed:
                            pass
                if problem.code != 409:
                    raise
            time.sleep(0.02 * 2**attempt * (1 + random.random()))
        raise Failed(409, "again and again", 0.0)

    def _read(self, key: str) -> Object | None:
        try:
            return self._api.call("GET", one(CONFIGS, key))
        except Failed as problem:
            if problem.code == 404:
                return None
            raise

    def _copy(self, key: str, seen: Object) -> None:
        name = f"{seen['metadata']['name']}-copy"
        namespace = seen["metadata"]["namespace"]
        there = self._reflector.cache.get(f"{namespace}/{name}") or self._read(f"{namespace}/{name}")
        if there is not None:
            if bad("c5-takes-over") and (there.get("data") or {}) != (seen.get("data") or {}):
                self._api.call("PUT", one(CONFIGS, f"{namespace}/{name}"), {**there, "data": seen.get("data")})
            return
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": seen["metadata"]["name"], "uid": seen["metadata"]["uid"]}
        if bad("c5-old-uid"):
            owner["uid"] = self._kept.setdefault(key, {"uid": owner["uid"]})["uid"]
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [{**owner, "controller": True}]}
        try:
            self._api.call("POST", of_namespace(CONFIGS, key), {"metadata": metadata, "data": seen.get("data") or {}})
        except Failed as problem:
            if problem.code != 409:
                raise


def put(api: Api) -> None:
    Putter(api)


def pages(api: Api) -> None:
    Putter(api, limit=5)


# ---------------------------------------------------------------- patch


class Patcher:
    """Adds a finalizer by JSON patch with a test, an annotation by merge patch, and cleans up."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._queue = Queue(self._work)
        self._reflector = Reflector(api, CONFIGS, lambda key, obj, old: self._queue.add(key))
        self._reflector.start()

    def _work(self, key: str) -> None:
        obj = self._reflector.cache.get(key)
        if obj is None or "kube-root" in key:
            return
        metadata = obj["metadata"]
        names = metadata.get("finalizers") or []
        if metadata.get("deletionTimestamp") and not bad("x-adds-while-deleting"):
            if FINALIZER in names:
                self._remove(key, names)
            return
        if FINALIZER not in names:
            self._add(key, names)
        if (metadata.get("annotations") or {}).get(SEEN) != "yes":
            change = {"metadata": {"annotations": {SEEN: "yes"}}}
            if bad("c3-null-labels"):
                change["metadata"]["labels"] = None  # type: ignore[assignment]
            self._send(key, change, MERGE)

    def _add(self, key: str, names: list[str]) -> None:
        if bad("c4-list"):
            self._send(key, {"metadata": {"finalizers": [*names, FINALIZER]}}, MERGE)
            return
        if names:
            patch = [{"op": "test", "path": "/metadata/finalizers", "value": names}]
            patch.append({"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER})
        else:
            patch = [
                {"op": "test", "path": "/metadata/resourceVersion", "value": self._revision(key)},
                {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]},
            ]
        self._send(key, patch, JSON)

    def _revision(self, key: str) -> str:
        return str((self._reflector.cache.get(key) or {"metadata": {"resourceVersion": ""}})["metadata"]["resourceVersion"])

    def _remove(self, key: str, names: list[str]) -> None:
        if bad("c4-clears"):
            self._send(key, {"metadata": {"finalizers": None}}, MERGE)
            return
        place = 0 if bad("c4-first") else names.index(FINALIZER)
        test = {"op": "test", "path": f"/metadata/finalizers/{place}", "value": names[place]}
        self._send(key, [test, {"op": "remove", "path": f"/metadata/finalizers/{place}"}], JSON)

    def _send(self, key: str, patch: Any, kind: str) -> None:
        try:
            self._api.call("PATCH", one(CONFIGS, key), patch, kind)
        except Failed as problem:
            if problem.code == 404 and not bad("c6-exits"):
                return
            if problem.code == 422 and kind == JSON and not bad("c4-test-fails"):  # the test has failed: look again
                raise Failed(409, problem.text, 0.0) from None
            raise


def patch(api: Api) -> None:
    Patcher(api)


# ---------------------------------------------------------------- apply


class Applier:
    """Applies a ConfigMap for each Widget, and the status."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._manager = f"stranger-{random.random()}" if bad("c7-random") else "stranger"
        self._done: dict[str, str] = {}
        self._queue = Queue(self._work)
        self._widgets = Reflector(api, WIDGETS, lambda key, obj, old: self._queue.add(key))
        self._configs = Reflector(api, f"{CONFIGS}", self._child, main=False)
        self._widgets.start()
        self._configs.start()

    def _child(self, key: str, obj: Object | None, old: Object | None) -> None:
        for owner in ((obj or old) or {"metadata": {}})["metadata"].get("ownerReferences") or ():
            if owner["kind"] == "Widget":
                self._queue.add(f"{key.partition('/')[0]}/{owner['name']}")

    def _work(self, key: str) -> None:
        widget = self._widgets.cache.get(key)
        if widget is None:
            if bad("c6-again") and key in self._done:
                self._apply(key, self._done[key])
            return
        if widget["metadata"].get("deletionTimestamp"):
            return
        if bad("x-done-by-name") and key in self._done:
            return
        self._done[key] = widget["metadata"]["uid"]
        child = self._configs.cache.get(f"{key}-applied")
        wanted = {"message": str((widget.get("spec") or {}).get("message"))}
        if child is None or (child.get("data") or {}) != wanted:
            self._apply(key, widget["metadata"]["uid"], wanted)
        if (widget.get("status") or {}).get("message") != wanted["message"]:
            body = {"apiVersion": "checked.dev/v1", "kind": "Widget", "metadata": {"name": widget["metadata"]["name"]}}
            self._send(one(WIDGETS, key, "status"), {**body, "status": {"message": wanted["message"]}})

    def _apply(self, key: str, uid: str, data: Object | None = None) -> None:
        namespace, _, name = key.partition("/")
        owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": name, "uid": uid, "controller": True}
        metadata = {"name": f"{name}-applied", "namespace": namespace, "ownerReferences": [owner]}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}
        self._send(one(CONFIGS, f"{key}-applied"), body)

    def _send(self, path: str, body: Object) -> None:
        force = "false" if bad("c7-no-force") or bad("c7-swallows") else "true"
        try:
            self._api.call("PATCH", f"{path}?fieldManager={self._manager}&force={force}", body, APPLY)
        except Failed as problem:
            if problem.code == 409 and bad("c7-swallows"):
                return
            if problem.code == 404 and "/widgets/" in path and not bad("c6-exits"):
                return
            raise


def apply(api: Api) -> None:
    Applier(api)


# ---------------------------------------------------------------- generate


class Generator:
    """Creates two Secrets with generated names for each Widget, and remembers them until the cache knows them."""

    COUNT = 2

    def __init__(self, api: Api) -> None:
        self._api = api
        self._queue = Queue(self._work, workers=2)
        self._expected: dict[str, set[str]] = {}
        self._widgets = Reflector(api, WIDGETS, lambda key, obj, old: self._queue.add(key))
        self._secrets = Reflector(api, SECRETS, self._child, main=False)
        self._secrets.start()
        self._secrets.synced.wait()
        self._widgets.start()

    def _child(self, key: str, obj: Object | None, old: Object | None) -> None:
        for owner in ((obj or old) or {"metadata": {}})["metadata"].get("ownerReferences") or ():
            if owner["kind"] == "Widget":
                self._queue.add(f"{key.partition('/')[0]}/{owner['name']}")

    def _children(self, key: str, uid: str, *, fresh: bool) -> list[Object]:
        if fresh:
            found = self._api.call("GET", of_namespace(SECRETS, key))["items"]
        else:
            found = list(self._secrets.cache.values())
        if bad("c5-owner-name"):
            name = key.partition("/")[2]
            return [one for one in found if any(o["name"] == name for o in one["metadata"].get("ownerReferences") or ())]
        return [one for one in found if any(o["uid"] == uid for o in one["metadata"].get("ownerReferences") or ())]

    def _work(self, key: str) -> None:
        widget = self._widgets.cache.get(key)
        if widget is None or widget["metadata"].get("deletionTimestamp"):
            self._expected.pop(key, None)
            return
        uid = widget["metadata"]["uid"]
        cached = self._children(key, uid, fresh=False)
        if not bad("c8-blind") and not bad("s1-trusts-cache"):
            self._expected.setdefault(key, set())
            self._expected[key] -= {one["metadata"]["uid"] for one in cached}
        if len(cached) >= self.COUNT:
            return
        trusting = bad("c8-blind") or bad("s1-trusts-cache") or (bad("r3-resends") and not self._expected.get(key))
        if not trusting:
            cached = self._children(key, uid, fresh=True)
        for _ in range(self.COUNT - len(cached)):
            self._create(key, uid)
        if bad("s1-trusts-cache"):
            time.sleep(2.0)

    def _create(self, key: str, uid: str) -> None:
        namespace, _, name = key.partition("/")
        owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": name, "uid": uid, "controller": True}
        metadata = {"generateName": f"{name}-", "namespace": namespace, "ownerReferences": [owner]}
        body = {"metadata": metadata, "stringData": {"for": name}}
        for attempt in range(3):
            try:
                made = self._api.call("POST", of_namespace(SECRETS, key), body)
            except (Failed, OSError) as problem:
                code = getattr(problem, "code", 0)
                if bad("r3-resends") and (not code or code >= 500) and attempt < 2:
                    continue
                raise
            self._expected.setdefault(key, set()).add(made["metadata"]["uid"])
            return


def generate(api: Api) -> None:
    Generator(api)


# ---------------------------------------------------------------- several, stream, lead


class Owner:
    """Handles Widgets, and only reads the Secrets beside them."""

    def __init__(self, api: Api, **reflector: Any) -> None:
        self._api = api
        self._queue = Queue(self._work)
        self._handled: dict[str, Object] = {}
        self.leads = lambda: True
        self._widgets = Reflector(api, WIDGETS, lambda key, obj, old: self._queue.add(key), **reflector)
        self._configs = Reflector(api, CONFIGS, self._child, main=False, **reflector)
        self._secrets = Reflector(api, SECRETS, lambda key, obj, old: None, main=False, **reflector)
        for one_ in (self._configs, self._secrets):
            one_.start()
        self._configs.synced.wait()
        self._widgets.start()

    def _child(self, key: str, obj: Object | None, old: Object | None) -> None:
        name = key.removesuffix("-child")
        if name != key:
            self._queue.add(name)

    def _work(self, key: str) -> None:
        if not self.leads():
            self._queue.add(key, 1.0)
            return
        widget = self._widgets.cache.get(key)
        if widget is None:
            return
        metadata = widget["metadata"]
        names = metadata.get("finalizers") or []
        if metadata.get("deletionTimestamp"):
            if bad("x-needs-history"):
                self._handled[key]["seen"] = True
            if FINALIZER in names:
                self._delete_child(key, widget)
                self._update(widget, lambda new: new["metadata"].update(finalizers=[x for x in names if x != FINALIZER]))
            elif bad("x-insists"):
                self._update(widget, lambda new: new["metadata"].update(finalizers=[*names, FINALIZER]))
            return
        if bad("c9-counts") and not (widget.get("status") or {}).get("looked"):
            self._status(key, widget, str((widget.get("spec") or {}).get("message")))
        if bad("s2-mark") and (metadata.get("annotations") or {}).get(SEEN):
            return
        if FINALIZER not in names:
            widget = self._update(widget, lambda new: new["metadata"].update(finalizers=[*names, FINALIZER]))
        if bad("s2-mark"):
            widget = self._update(widget, lambda new: new["metadata"].setdefault("annotations", {}).update({SEEN: "yes"}))
        if widget is None:
            return
        self._handled[key] = {}
        child = self._configs.cache.get(f"{key}-child")
        message = str((widget.get("spec") or {}).get("message"))
        if child is None:
            self._create_child(key, widget, message)
        elif (child.get("data") or {}).get("message") != message:
            owners = [owner["uid"] for owner in child["metadata"].get("ownerReferences") or ()]
            if metadata["uid"] not in owners and not bad("c5-overwrites"):
                raise Failed(409, "the child belongs to another object", 0.0)
            new = {**child, "data": {"message": message}}
            if bad("c2-second-write"):
                new = {**new, "metadata": {k: v for k, v in child["metadata"].items() if k != "resourceVersion"}}
            self._api.call("PUT", one(CONFIGS, f"{key}-child"), new)
        if (widget.get("status") or {}).get("message") != message:
            self._status(key, widget, message)

    def _update(self, widget: Object, change: Any) -> Object | None:
        new = copy.deepcopy(widget)
        change(new)
        if bad("c3-spec"):
            new["spec"] = {k: v for k, v in (new.get("spec") or {}).items() if k in ("message", "size", "notes")}
        try:
            return self._api.call("PUT", one(WIDGETS, key_of(widget)), new)
        except Failed as problem:
            if problem.code == 404 and not bad("c6-exits"):
                return None
            raise

    def _status(self, key: str, widget: Object, message: str) -> None:
        if bad("c9-counts"):  # says when it last looked, whenever the cache has no status
            change = {"status": {"message": message, "looked": time.monotonic()}}
            self._api.call("PATCH", one(WIDGETS, key, "status"), change, MERGE)
            return
        new = copy.deepcopy(widget)
        new["status"] = {"message": message}
        if bad("c2-status"):
            new["metadata"].pop("resourceVersion")
        try:
            self._api.call("PUT", one(WIDGETS, key, "status"), new)
        except Failed as problem:
            if problem.code != 404 or bad("c6-exits"):
                raise

    def _create_child(self, key: str, widget: Object, message: str) -> None:
        owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": widget["metadata"]["name"]}
        owner |= {"uid": widget["metadata"]["uid"], "controller": True}
        namespace, _, name = key.partition("/")
        metadata = {"name": f"{name}-child", "namespace": namespace, "ownerReferences": [owner]}
        try:
            self._api.call("POST", of_namespace(CONFIGS, key), {"metadata": metadata, "data": {"message": message}})
        except Failed as problem:
            if problem.code != 409:
                raise

    def _delete_child(self, key: str, widget: Object) -> None:
        child = self._configs.cache.get(f"{key}-child")
        owners = ((child or {}).get("metadata") or {}).get("ownerReferences") or ()
        if child is None or not (bad("c5-by-name") or any(one["uid"] == widget["metadata"]["uid"] for one in owners)):
            return
        options = {} if bad("c5-by-name") else {"preconditions": {"uid": child["metadata"]["uid"]}}
        try:
            self._api.call("DELETE", one(CONFIGS, f"{key}-child"), options)
        except Failed as problem:
            if bad("c6-delete-loop") and problem.code == 404:
                while True:
                    time.sleep(0.7)
                    try:
                        self._api.call("DELETE", one(CONFIGS, f"{key}-child"), options)
                        break
                    except Failed:
                        pass
            if problem.code not in (404, 409):
                raise


def several(api: Api) -> None:
    Owner(api)


def stream(api: Api) -> None:
    Owner(api, streaming=True)


# ---------------------------------------------------------------- lead


class Lease:
    """A lease of six seconds: judged by its changes as this process sees them, written with its resourceVersion."""

    DURATION, DEADLINE = 6, 4.0
    PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    def __init__(self, api: Api) -> None:
        self._api, self._id = api, f"stranger-{os.getpid()}-{random.randrange(10**6)}"
        self._seen: tuple[str, float] = ("", 0.0)
        self._renewed = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def leads(self) -> bool:
        return (bad("l1-leads-on") and self._renewed > 0) or time.monotonic() - self._renewed < self.DEADLINE

    def _run(self) -> None:
        while True:
            begun = time.monotonic()
            try:
                if self._try():
                    self._renewed = begun
            except (Failed, OSError, ValueError):
                pass
            if self._renewed and time.monotonic() - self._renewed > self.DEADLINE and not bad("l1-leads-on"):
                os._exit(1)
            time.sleep(1.0 + random.random() * 0.2)

    def _spec(self, transitions: int) -> Object:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self._id, "leaseDurationSeconds": self.DURATION, "renewTime": now, "acquireTime": now}
        return {**spec, "leaseTransitions": transitions}

    def _try(self) -> bool:
        path = f"{self.PATH}/stranger"
        try:
            connection, response = self._api.open("GET", path, timeout=2.0)
            with connection:
                import json

                lease = json.loads(response.read())
        except Failed as problem:
            if problem.code != 404:
                raise
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "stranger"}}
            self._send("POST", self.PATH, {**body, "spec": self._spec(0)})
            return True
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if lease["metadata"]["resourceVersion"] != self._seen[0]:
            self._seen = (lease["metadata"]["resourceVersion"], time.monotonic())
        if holder and holder != self._id:
            expired = time.monotonic() - self._seen[1] > float(spec.get("leaseDurationSeconds") or self.DURATION)
            if bad("l1-own-clock"):
                text = str(spec.get("renewTime") or "2000-01-01T00:00:00.0Z").replace("Z", "+00:00")
                age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(text)
                expired = age.total_seconds() > self.DURATION
            if not expired:
                if self._renewed:
                    os._exit(1)
                return False
        new = {**lease, "spec": {**spec, **self._spec(int(spec.get("leaseTransitions") or 0) + (holder != self._id))}}
        if bad("l1-unguarded"):
            new["metadata"].pop("resourceVersion")
        self._send("PUT", path, new)
        return True

    def _send(self, method: str, path: str, body: Object) -> None:
        connection, response = self._api.open(method, path, body, timeout=2.0)
        with connection:
            response.read()


def lead(api: Api) -> None:
    lease = Lease(api)
    while not lease.leads():
        time.sleep(0.1)
    Owner(api).leads = lease.leads  # type: ignore[method-assign]


PROGRAMS = {"watch": watch, "put": put, "patch": patch, "apply": apply, "generate": generate}
PROGRAMS |= {"several": several, "lead": lead, "pages": pages, "stream": stream}

if __name__ == "__main__":
    program = sys.argv.pop(1)
    main(PROGRAMS[program], f"stranger-{program}/1.0")
