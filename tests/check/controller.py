"""An operator for Widgets that follows all rules for Kubernetes clients, except for the defect that an option selects.

    KUBECONFIG=… python tests/check/controller.py [--lease] [--slow 1.5] [--events] [--defect ID]

For a Widget it sets a finalizer, creates a Secret with a generated name and a ConfigMap named after the widget, applies what
the ConfigMap holds, and writes an annotation and the status. When the widget is deleted it deletes its children first.
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import writes
from client import arguments
from defects import active
from discovery import Discovery
from leases import Election
from reflector import Object, Reflector, key_of
from transport import Api, ApiError, Broken, crash
from workqueue import WorkQueue
from writes import FINALIZER, MANAGER

AGENT = "checked-operator/1.0"
RESOURCE = "widgets.checked.dev"
OBSERVED = "checked.dev/observed"
LABEL = "checked.dev/managed-by"
SELECTOR = f"{LABEL}={MANAGER}"
#: How many seconds the cache may take to contain a created object before the operator reads it from the server.
EXPECTATION = 5.0


class Retry(Exception):
    """The key has to be reconciled again later; this is not an error."""


class Controller:
    """Watches widgets and their children, and reconciles one widget at a time."""

    def __init__(self, api: Api, options: argparse.Namespace) -> None:
        self._api = api
        self._discovery = Discovery(api)
        self._queue = WorkQueue()
        self._expected: dict[str, tuple[str, float]] = {}
        self._done: set[str] = set()
        self._given_up: set[str] = set()
        self._slow, self._events = options.slow, options.events
        follow = {"idle": options.idle, "initial_events": not options.lists, "page": options.page}
        self._widgets = Reflector(
            api,
            lambda: self._discovery.find(RESOURCE).collection(),
            "",
            self._widget_changed,
            forget=self._discovery.forget,
            **follow,
        )
        self._configs = Reflector(api, lambda: "/api/v1/configmaps", SELECTOR, self._child_changed, **follow)
        self._secrets = Reflector(api, lambda: "/api/v1/secrets", SELECTOR, self._child_changed, **follow)
        self._written: dict[str, Object] = {}
        """What it has written into children last, by their paths."""
        self._manager = f"{MANAGER}-{uuid.uuid4().hex[:8]}" if active("C7-manager") else MANAGER

    def run(self) -> None:
        for reflector in (self._widgets, self._configs, self._secrets):
            reflector.start()
        for reflector in (self._widgets, self._configs, self._secrets):
            reflector.synced.wait()
        if active("W16-sweep"):
            self._sweep_all()
        if active("N3-gets", "N3-writes"):
            threading.Thread(target=self._bustle, daemon=True).start()
        for _ in range(1 if active("R6-blocks") else 2):
            threading.Thread(target=self._work, daemon=True).start()

    # Event handlers

    def _widget_changed(self, kind: str, obj: Object, old: Object | None) -> None:
        same = old is not None and old.get("spec") == obj.get("spec") and not obj["metadata"].get("deletionTimestamp")
        if active("S3-edges") and kind == "MODIFIED" and same:
            return
        if active("W13-twice") and kind == "ADDED":
            self._done.discard(key_of(obj))
        self._queue.add(key_of(obj))

    def _child_changed(self, kind: str, obj: Object, _: Object | None) -> None:
        if active("S3-edges") and kind != "DELETED":
            return
        for owner in obj["metadata"].get("ownerReferences") or ():
            if owner.get("kind") == "Widget":
                self._queue.add(f"{obj['metadata']['namespace']}/{owner['name']}")

    def _work(self) -> None:
        while True:
            key = self._queue.get()
            time.sleep(self._slow * random.uniform(0.5, 1.0))
            try:
                self._reconcile(key)
                if not active("R2-remembers"):
                    self._queue.forget(key)
            except Retry:
                self._queue.add_rate_limited(key)
            except (ApiError, Broken) as error:
                print(f"{key}: {error}", flush=True)
                if isinstance(error, ApiError) and error.code == 404 and active("C6-crash"):
                    crash(str(error))
                if isinstance(error, ApiError) and error.code == 409 and active("C1-stop"):
                    self._given_up.add(key)
                if isinstance(error, ApiError) and error.code == 403 and active("R6-blocks"):
                    self._block(key)
                elif active("R6-spins"):
                    self._queue.add(key)
                else:
                    self._queue.add_rate_limited(key)
            finally:
                self._queue.done(key)

    def _block(self, key: str) -> None:
        """A defect: tries until it succeeds."""
        pause = 0.5
        while True:
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 1.5, 10.0)
            try:
                return self._reconcile(key)
            except (ApiError, Broken, Retry) as error:
                print(f"{key}: {error}", flush=True)

    def _reconcile(self, key: str) -> None:
        widget = self._widgets.items.get(key)
        if key in self._given_up:
            return
        if widget is None:
            self._sweep(key)
        elif widget["metadata"].get("deletionTimestamp"):
            self._finalize(widget)
        else:
            self._ensure(copy.deepcopy(widget))

    def _path(self, widget: Object) -> str:
        return f"{self._discovery.find(RESOURCE).collection(widget['metadata']['namespace'])}/{widget['metadata']['name']}"

    # Reconciling an existing widget

    def _ensure(self, widget: Object) -> None:
        uid, path = widget["metadata"]["uid"], self._path(widget)
        if active("S2-marker") and (widget["metadata"].get("annotations") or {}).get(OBSERVED):
            return
        if FINALIZER not in (widget["metadata"].get("finalizers") or ()):
            widget = writes.add_finalizer(self._api, path, widget)
        if active("S2-marker"):
            widget = self._annotate(path, widget)
        self._ensure_secret(widget)
        try:
            config = self._ensure_config(widget)
        except ApiError as error:
            if not (active("R2-swallows") and error.code >= 500):
                raise
            config = widget
        if config is None:
            return
        if active("R6-invalid"):
            writes.label_wrongly(self._api, path)
        widget = self._annotate(path, widget)
        status = {
            "phase": "Ready",
            "message": (widget.get("spec") or {}).get("message", ""),
            "config": config["metadata"]["name"],
        }
        if active("S3-once") and widget.get("status"):
            status["message"] = widget["status"].get("message", "")
        if widget.get("status") != status:

            def ready(obj: Object) -> bool:
                changed = obj.get("status") != status
                obj["status"] = status
                return changed

            writes.update(self._api, path, widget, ready, uid=uid, subresource="/status")

    def _annotate(self, path: str, widget: Object) -> Object:
        observed = str((widget.get("spec") or {}).get("message", ""))[:60]

        def annotate(obj: Object) -> bool:
            annotations = obj["metadata"].setdefault("annotations", {})
            changed = annotations.get(OBSERVED) != observed
            annotations[OBSERVED] = observed
            return changed or active("N3-needless")

        return writes.update(self._api, path, widget, annotate, uid=widget["metadata"]["uid"])

    def _owned(self, items: list[Object], widget: Object) -> list[Object]:
        return [item for item in items if _belongs(item, widget)]

    def _ensure_secret(self, widget: Object) -> None:
        """Ensures the child with a generated name. A create is not idempotent, so the server is asked for existing children
        first."""
        metadata = widget["metadata"]
        uid, collection = metadata["uid"], f"/api/v1/namespaces/{metadata['namespace']}/secrets"
        if active("W13-twice", "S2-first"):
            marked = (metadata.get("annotations") or {}).get(OBSERVED) is not None
            key = key_of(widget)
            if (active("S2-first") and marked) or key in self._done:
                return
            self._create(collection, self._secret(widget))
            self._done.add(key)
            return
        if self._owned(list(self._secrets.items.values()), widget):
            self._expected.pop(uid, None)
            return
        if not active("C8-blind"):
            expected = self._expected.get(uid)
            if expected and (active("S3-waits") or time.monotonic() - expected[1] < EXPECTATION):
                self._queue.add(key_of(widget), EXPECTATION)
                return
            if not active("S1-restart") and self._owned(self._list_children(collection), widget):
                return
        made = self._create(collection, self._secret(widget))
        self._expected[uid] = (made["metadata"]["uid"], time.monotonic())
        if self._events:
            _quietly(lambda: self._record(widget, made))

    def _record(self, widget: Object, made: Object) -> None:
        """Writes an Event, which is best effort: it is not sent again."""
        metadata = widget["metadata"]
        involved = {"kind": "Widget", "apiVersion": self._discovery.find(RESOURCE).api_version}
        involved |= {key: metadata[key] for key in ("name", "namespace", "uid")}
        text = {"type": "Normal", "reason": "Created", "message": f"created {made['metadata']['name']}"}
        event = {"metadata": {"generateName": f"{metadata['name']}."}, "involvedObject": involved, **text}
        self._api.request("POST", f"/api/v1/namespaces/{metadata['namespace']}/events", {"fieldManager": MANAGER}, event)

    def _create(self, collection: str, body: Object) -> Object:
        while True:
            try:
                return self._api.request("POST", collection, {"fieldManager": MANAGER}, body)
            except Broken as broken:
                if not active("R3-resend-create") or broken.refused:
                    raise
            except ApiError as error:
                if not (active("R3-resend-timeout") and error.code == 504) and not (active("C6-exists") and error.code == 409):
                    raise
            time.sleep(0.3)

    def _list_children(self, collection: str) -> list[Object]:
        found = self._api.request("GET", collection, {"labelSelector": SELECTOR}).get("items")
        return list(found or ())

    def _child(self, widget: Object, kind: str, **metadata: Any) -> Object:
        served = self._discovery.find(RESOURCE)
        owner = {"apiVersion": served.api_version, "kind": "Widget", "name": widget["metadata"]["name"]}
        owner |= {"uid": widget["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
        metadata |= {"namespace": widget["metadata"]["namespace"], "labels": {LABEL: MANAGER}, "ownerReferences": [owner]}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata}

    def _secret(self, widget: Object) -> Object:
        name = f"{widget['metadata']['name'][:50]}-"
        return {**self._child(widget, "Secret", generateName=name), "stringData": {"token": uuid.uuid4().hex}}

    def _ensure_config(self, widget: Object) -> Object | None:
        """Ensures the child with the widget's name and content; returns None while another owner's object has this name."""
        metadata = widget["metadata"]
        collection = f"/api/v1/namespaces/{metadata['namespace']}/configmaps"
        path = f"{collection}/{metadata['name']}"
        config = self._configs.items.get(key_of(widget))
        gone = active("C6-terminating") and config is not None and config["metadata"].get("deletionTimestamp")
        if config is None or gone:
            try:
                config = self._create(collection, self._child(widget, "ConfigMap", name=metadata["name"]))
            except ApiError as error:
                if error.code != 409:
                    raise
                if gone:
                    return self._ensure_config(widget)
                if active("C5-exists"):
                    return self._child(widget, "ConfigMap", name=metadata["name"])
                config = self._api.request("GET", path)
        if not _belongs(config, widget) and not active("C5-adopts"):
            if _controlled_by_namesake(config, widget):
                writes.delete(self._api, path, config)  # of a deleted widget
            raise Retry
        data = {"message": str((widget.get("spec") or {}).get("message", "")), "widget": metadata["name"]}
        if active("S3-keeps") and config.get("data") and "message" not in (widget.get("spec") or {}):
            data["message"] = config["data"]["message"]
        if active("C7-part") and config.get("data"):
            data = {name: value for name, value in data.items() if config["data"].get(name) != value} or config["data"]
        owners = self._child(widget, "ConfigMap")["metadata"]["ownerReferences"]
        if active("C3-owners") and config["metadata"].get("ownerReferences") != owners:
            config = writes.own_alone(self._api, path, owners)
        if config.get("data") == data and _belongs(config, widget):
            return config
        if config.get("data") and (active("S3-made-once") or (active("S3-remembers") and self._written.get(path) == data)):
            return config
        body = self._child(widget, "ConfigMap", name=metadata["name"])
        body["metadata"]["uid"] = config["metadata"]["uid"]
        if active("C5-adopts"):
            del body["metadata"]["ownerReferences"]
        body["data"] = data
        force = {} if active("C7-no-force") else {"force": "true"}
        query = {"fieldManager": self._manager, **force}
        config = self._api.request("PATCH", path, query, body, content_type="application/apply-patch+yaml")
        self._written[path] = data
        return config

    # Reconciling a deleted widget

    def _finalize(self, widget: Object) -> None:
        metadata = widget["metadata"]
        if FINALIZER not in (metadata.get("finalizers") or ()):
            return
        left = []
        for plural in ("secrets", "configmaps"):
            collection = f"/api/v1/namespaces/{metadata['namespace']}/{plural}"
            for child in self._owned(self._list_children(collection), widget):
                left.append(child)
                if not child["metadata"].get("deletionTimestamp"):
                    writes.delete(self._api, f"{collection}/{child['metadata']['name']}", child)
        if any(child["metadata"].get("finalizers") for child in left):
            raise Retry
        writes.remove_finalizer(self._api, self._path(widget), widget)
        self._expected.pop(metadata["uid"], None)

    def _sweep(self, key: str) -> None:
        """Deletes the remaining children of a deleted widget, after the server has confirmed the deletion."""
        namespace, name = key.split("/")
        for plural, reflector in (("secrets", self._secrets), ("configmaps", self._configs)):
            for child in list(reflector.items.values()):
                owners = [owner for owner in child["metadata"].get("ownerReferences") or () if owner.get("kind") == "Widget"]
                if child["metadata"]["namespace"] != namespace or not any(owner["name"] == name for owner in owners):
                    continue
                if not active("S3-edges") and not self._alive(namespace, owners[0]):
                    writes.delete(self._api, f"/api/v1/namespaces/{namespace}/{plural}/{child['metadata']['name']}", child)

    def _alive(self, namespace: str, owner: Object) -> bool:
        try:
            found = self._api.request("GET", f"{self._discovery.find(RESOURCE).collection(namespace)}/{owner['name']}")
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return bool(found["metadata"]["uid"] == owner["uid"])

    def _sweep_all(self) -> None:
        for plural, reflector in (("secrets", self._secrets), ("configmaps", self._configs)):
            for child in list(reflector.items.values()):
                for owner in child["metadata"].get("ownerReferences") or ():
                    namespace = child["metadata"]["namespace"]
                    if f"{namespace}/{owner['name']}" not in self._widgets.items:
                        path = f"/api/v1/namespaces/{namespace}/{plural}/{child['metadata']['name']}"
                        _quietly(lambda path=path: self._api.request("DELETE", path))

    def _bustle(self) -> None:
        while True:
            for widget in list(self._widgets.items.values()):
                path = self._path(widget)
                if active("N3-gets"):
                    _quietly(lambda path=path: self._api.request("GET", path))
                else:
                    status = {"status": widget.get("status")}
                    patch = {"content_type": "application/merge-patch+json"}
                    _quietly(
                        lambda path=path, status=status, patch=patch: self._api.request(
                            "PATCH", f"{path}/status", {}, status, **patch
                        )
                    )
            time.sleep(1.0)


def _belongs(child: Object, widget: Object) -> bool:
    if active("C5-owner-name"):
        return _controlled_by_namesake(child, widget)
    owners = child["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == widget["metadata"]["uid"] for owner in owners)


def _controlled_by_namesake(child: Object, widget: Object) -> bool:
    owners = child["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] == "Widget" and owner["name"] == widget["metadata"]["name"] for owner in owners)


def _quietly(do: Callable[[], object]) -> None:
    try:
        do()
    except (ApiError, Broken) as error:
        print(error, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lease", action="store_true", help="work only as the holder of the lease default/checked-operator")
    parser.add_argument("--slow", type=float, default=0.0, help="the most seconds of work before each reconcile")
    parser.add_argument("--events", action="store_true", help="write an Event for each Secret")
    parser.add_argument("--lease-duration", type=int, default=6, help="in seconds; renewed within two thirds of it")
    options = arguments(parser)
    api = Api(options.kubeconfig, AGENT)
    lost = threading.Event()
    if options.lease:
        duration = options.lease_duration
        election = Election(
            api, "default", "checked-operator", f"{os.getpid()}-{uuid.uuid4()}", duration, duration * 2 / 3, duration / 6
        )
        election.acquire()
        lost = election.lost
    Controller(api, options).run()
    lost.wait()
    crash("leader election lost")


if __name__ == "__main__":
    main()
