"""Packs Orders: a Package with a generated name for each item, and for each Package a ConfigMap and a phase.

    KUBECONFIG=… python orders.py            (DEFECT=NAME puts one in)

asyncio and httpx. Two kinds of its own, the second made by the first; a finalizer that deletes the Packages itself; server-side apply by two
field managers; initial events, and lists if the server has none of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import ssl
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import yaml

DEFECT = os.environ.get("DEFECT", "")
FINALIZER = "checked.dev/packages"
GROUP = "/apis/checked.dev/v1"
#: Seconds of silence after which a watch is given up.
SILENCE = 15.0
Object = dict[str, Any]


class Refused(Exception):
    def __init__(self, code: int, text: str, wait: float) -> None:
        super().__init__(f"{code} {text[:160]}")
        self.code, self.wait = code, wait


class Api:
    def __init__(self) -> None:
        config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
        cluster, self._user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        trust: Any = True
        if "certificate-authority-data" in cluster:
            import base64

            trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        limits = httpx.Limits(max_connections=50)
        timeout = httpx.Timeout(12.0, read=SILENCE if DEFECT != "endless" else None)
        # not compressed: httpx reads only the first member of a watch, which has one for all that is sent at a time
        headers = {"User-Agent": "orders/1.3", "Accept-Encoding": "identity"}
        self.http = httpx.AsyncClient(base_url=cluster["server"], verify=trust, limits=limits, timeout=timeout, headers=headers)

    def headers(self, kind: str = "") -> dict[str, str]:
        file = self._user.get("tokenFile")
        token = Path(file).read_text().strip() if file else self._user.get("token")
        return ({"Authorization": f"Bearer {token}"} if token else {}) | ({"Content-Type": kind} if kind else {})

    @staticmethod
    def refusal(answer: httpx.Response, text: str) -> Refused:
        after = answer.headers.get("Retry-After", "0")
        return Refused(answer.status_code, text, float(after) if after.isdigit() and DEFECT != "impatient" else 0.0)

    async def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Object:
        data = None if body is None else json.dumps(body).encode()
        answer = await self.http.request(method, path, content=data, headers=self.headers(kind if data else ""))
        if answer.status_code >= 300:
            raise self.refusal(answer, answer.text)
        return answer.json()

    async def events(self, path: str):
        async with self.http.stream("GET", path, headers=self.headers()) as answer:
            if answer.status_code != 200:
                raise self.refusal(answer, (await answer.aread()).decode(errors="replace"))
            rest = bytearray()
            async for piece in answer.aiter_bytes():
                rest += piece
                *lines, tail = rest.split(b"\n") if b"\n" in piece else (rest,)
                for line in lines:
                    yield json.loads(line)
                rest = bytearray(tail)
            if rest:
                raise OSError("cut within an event")


class Informer:
    """The objects of a collection by namespace/name."""

    def __init__(self, api: Api, path: str, told: Any) -> None:
        self.items: dict[str, Object] = {}
        self.synced = asyncio.Event()
        self._api, self._path, self._told = api, path, told
        self._revision, self._streams = "", True

    async def run(self) -> None:
        pause = 0.8
        while True:
            begun, least = time.monotonic(), 0.0
            try:
                if not self._revision and not self._streams:
                    await self._list()
                came = await self._watch()
                if came or time.monotonic() - begun > 2.0:
                    pause = 0.8
                    continue
                self._revision = ""
            except Refused as problem:
                least = problem.wait
                if not self._revision and self._streams and problem.code in (400, 403, 422):
                    self._streams = False
                    continue
                if problem.code in (410, 504) and DEFECT != "old-revision":
                    self._revision = ""
                if problem.code == 403 and DEFECT == "error-ends":
                    sys.exit(1)
                if problem.code == 500 and DEFECT == "swallows-500":
                    return
            except (httpx.HTTPError, OSError, ValueError) as problem:
                if isinstance(problem, httpx.ReadTimeout) and time.monotonic() - begun >= SILENCE:
                    continue  # a quiet watch
                print(self._path, repr(problem), flush=True)
                if DEFECT == "relists-at-once":
                    self._revision = ""
                    continue
            if DEFECT == "hurries":
                continue
            await asyncio.sleep(max(least, pause * random.uniform(0.6, 1.4)))
            pause = min(pause * 2, 30.0)

    async def _list(self) -> None:
        found: dict[str, Object] = {}
        token = ""
        while True:
            page = await self._api.call("GET", f"{self._path}?limit=200" + (f"&continue={quote(token)}" if token else ""))
            found |= {key_of(one): one for one in page["items"]}
            token = page["metadata"].get("continue", "")
            if not token:
                break
        self._replace(found, page["metadata"]["resourceVersion"])

    def _replace(self, found: dict[str, Object], revision: str) -> None:
        gone = {} if DEFECT == "keeps-ghosts" else {key: one for key, one in self.items.items() if key not in found}
        new = [one for key, one in found.items() if self.items.get(key) != one]
        self.items = {**self.items, **found} if DEFECT == "keeps-ghosts" else found
        self._revision = revision
        self.synced.set()
        for one in [*gone.values(), *new]:
            self._told(one)

    async def _watch(self) -> int:
        seconds = random.randint(250, 400)
        query = f"?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}"
        first: dict[str, Object] | None = None
        if self._revision:
            query += f"&resourceVersion={self._revision}"
        else:
            query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            first = {}
        came = 0
        async for event in self._api.events(self._path + query):
            obj = event["object"]
            if event["type"] == "ERROR":
                details = obj.get("details") or {}
                raise Refused(obj.get("code", 500), obj.get("message", ""), float(details.get("retryAfterSeconds", 0)))
            if event["type"] == "BOOKMARK":
                done = (obj["metadata"].get("annotations") or {}).get("k8s.io/initial-events-end") == "true"
                if first is not None and (done or DEFECT == "any-bookmark"):
                    self._replace(first, obj["metadata"]["resourceVersion"])
                    first = None
                if first is None:
                    self._revision = obj["metadata"]["resourceVersion"]
                continue
            if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                continue
            came += 1
            if first is not None:
                first[key_of(obj)] = obj
                continue
            if event["type"] == "DELETED":
                self.items.pop(key_of(obj), None)
            else:
                self.items[key_of(obj)] = obj
            self._revision = obj["metadata"]["resourceVersion"]
            self._told(obj)
        return came if first is None else 0


def key_of(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def owner_of(obj: Object, kind: str) -> Object | None:
    references = obj["metadata"].get("ownerReferences") or ()
    return next((one for one in references if one.get("controller") and one["kind"] == kind), None)


class Queue:
    """Keys that wait for a worker; a key is with one worker at a time, and comes back after growing pauses if the work fails."""

    def __init__(self, work: Any, workers: int) -> None:
        self._work, self._workers = work, workers
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._active: set[str] = set()
        self._failures: dict[str, int] = {}

    def add(self, key: str) -> None:
        if key not in self._waiting:
            self._waiting.add(key)
            if key not in self._active:
                self._ready.put_nowait(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            key = await self._ready.get()
            self._waiting.discard(key)
            self._active.add(key)
            try:
                await self._work(key)
                self._failures.pop(key, None)
            except (Refused, httpx.HTTPError, OSError, ValueError) as problem:
                print(key, repr(problem), flush=True)
                if DEFECT == "lets-go":
                    continue
                count = self._failures[key] = self._failures.get(key, 0) + 1
                pause = min(0.2 * 2**count, 20.0) * random.uniform(0.7, 1.3)
                if DEFECT == "even-pauses":
                    pause = 0.5
                asyncio.get_running_loop().call_later(max(pause, getattr(problem, "wait", 0.0)), self.add, key)
            finally:
                self._active.discard(key)
                if key in self._waiting:
                    self._ready.put_nowait(key)


class Packer:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._orders = Informer(api, f"{GROUP}/orders", lambda one: self._order_queue.add(key_of(one)))
        self._packages = Informer(api, f"{GROUP}/packages", self._package_changed)
        self._labels = Informer(api, "/api/v1/configmaps", self._label_changed)
        self._order_queue = Queue(self._pack, 2)
        self._package_queue = Queue(self._label, 2)
        self._made: dict[tuple[str, str], Object] = {}
        """Order's uid and item → the Package that was made last: the cache may not have it yet."""

    def _package_changed(self, package: Object) -> None:
        self._package_queue.add(key_of(package))
        owner = owner_of(package, "Order")
        if owner is not None:
            self._order_queue.add(f"{package['metadata']['namespace']}/{owner['name']}")

    def _label_changed(self, label: Object) -> None:
        owner = owner_of(label, "Package")
        if owner is not None:
            self._package_queue.add(f"{label['metadata']['namespace']}/{owner['name']}")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            informers = (self._labels, self._packages, self._orders)
            for one in informers:
                group.create_task(one.run())
            for one in informers:
                await one.synced.wait()
            group.create_task(self._order_queue.run())
            group.create_task(self._package_queue.run())

    # ------------------------------------------------------------ orders

    async def _pack(self, key: str) -> None:
        order = self._orders.items.get(key)
        if order is None:
            return
        metadata = order["metadata"]
        path = f"{GROUP}/namespaces/{metadata['namespace']}/orders/{metadata['name']}"
        if metadata.get("deletionTimestamp"):
            await self._unpack(order, path)
            return
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            added = [FINALIZER] if DEFECT == "sole-finalizer" else [*finalizers, FINALIZER]
            change = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": added}}
            await self._change(path, change)
            return
        wanted = list(dict.fromkeys((order.get("spec") or {}).get("items") or ()))
        own = self._own_packages(order)
        missing = [item for item in wanted if item not in own]
        if missing and DEFECT != "trusts-cache":
            own = await self._read_packages(order)
        for item in wanted:
            if item not in own:
                own[item] = await self._make_package(order, item)
        note = (order.get("spec") or {}).get("note", "")
        for item in wanted:
            package = own[item]
            if (package.get("spec") or {}).get("note", "") != note and not package["metadata"].get("deletionTimestamp"):
                place = f"{GROUP}/namespaces/{metadata['namespace']}/packages/{package['metadata']['name']}"
                await self._change(place, {"metadata": {"uid": package["metadata"]["uid"]}, "spec": {"note": note}})
        for item in own.keys() - set(wanted):
            await self._remove_package(own[item])
        packed = sum((own[item].get("status") or {}).get("phase") == "Packed" for item in wanted)
        shown = f"{packed}/{len(wanted)}"
        if (order.get("status") or {}).get("packed") != shown:
            await self._change(f"{path}/status", {"metadata": {"uid": metadata["uid"]}, "status": {"packed": shown}})

    def _own_packages(self, order: Object) -> dict[str, Object]:
        uid = order["metadata"]["uid"]
        cached = [one for one in self._packages.items.values() if (owner_of(one, "Order") or {}).get("uid") == uid]
        return {one["spec"]["item"]: one for one in cached}

    async def _read_packages(self, order: Object) -> dict[str, Object]:
        """From storage: what this program has made before it was started, or just now."""
        metadata = order["metadata"]
        page = await self._api.call(
            "GET", f"{GROUP}/namespaces/{metadata['namespace']}/packages?labelSelector=checked.dev/order%3D{metadata['uid']}"
        )
        return {one["spec"]["item"]: one for one in page["items"] if (owner_of(one, "Order") or {}).get("uid") == metadata["uid"]}

    async def _make_package(self, order: Object, item: str) -> Object:
        metadata = order["metadata"]
        owner = {
            "apiVersion": "checked.dev/v1",
            "kind": "Order",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        package = {
            "apiVersion": "checked.dev/v1",
            "kind": "Package",
            "metadata": {
                "generateName": f"{metadata['name']}-",
                "namespace": metadata["namespace"],
                "labels": {"checked.dev/order": metadata["uid"]},
                "ownerReferences": [owner],
            },
            "spec": {"item": item, "note": (order.get("spec") or {}).get("note", "")},
        }
        collection = f"{GROUP}/namespaces/{metadata['namespace']}/packages"
        if DEFECT == "creates-again":
            with suppress(httpx.HTTPError, Refused):
                return await self._api.call("POST", collection, package)
        return await self._api.call("POST", collection, package)

    async def _unpack(self, order: Object, path: str) -> None:
        metadata = order["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            return
        left = await self._read_packages(order)
        for package in left.values():
            await self._remove_package(package)
        if left:
            raise Refused(409, "Packages are still there", 0.0)
        rest = [] if DEFECT == "clears-finalizers" else [one for one in finalizers if one != FINALIZER]
        await self._change(path, {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": rest}})

    async def _remove_package(self, package: Object) -> None:
        metadata = package["metadata"]
        options = {"preconditions": {"uid": metadata["uid"]}}
        with suppressed(404, 409):
            await self._api.call(
                "DELETE",
                f"{GROUP}/namespaces/{metadata['namespace']}/packages/{metadata['name']}",
                None if DEFECT == "deletes-by-name" else options,
            )

    async def _change(self, path: str, change: Object) -> None:
        with suppressed(404):
            await self._api.call("PATCH", path, change, "application/merge-patch+json")

    # ------------------------------------------------------------ packages

    async def _label(self, key: str) -> None:
        package = self._packages.items.get(key)
        if package is None or package["metadata"].get("deletionTimestamp"):
            return
        metadata, spec = package["metadata"], package.get("spec") or {}
        name = f"{metadata['name']}-label"
        wanted = {"text": f"{spec.get('item')} ({spec.get('note')})"}
        label = self._labels.items.get(f"{metadata['namespace']}/{name}")
        if label is not None and (owner_of(label, "Package") or {}).get("uid") != metadata["uid"]:
            return
        if label is None or any((label.get("data") or {}).get(one) != text for one, text in wanted.items()):
            owner = {
                "apiVersion": "checked.dev/v1",
                "kind": "Package",
                "name": metadata["name"],
                "uid": metadata["uid"],
                "controller": True,
            }
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": metadata["namespace"], "ownerReferences": [owner]},
                "data": wanted,
            }
            await self._apply(f"/api/v1/namespaces/{metadata['namespace']}/configmaps/{name}", body, "orders-labels")
        if (package.get("status") or {}).get("phase") != "Packed":
            place = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}
            body = {"apiVersion": "checked.dev/v1", "kind": "Package", "metadata": place, "status": {"phase": "Packed"}}
            with suppressed(404, 409):  # gone meanwhile
                await self._apply(
                    f"{GROUP}/namespaces/{metadata['namespace']}/packages/{metadata['name']}/status", body, "orders-phases"
                )

    async def _apply(self, path: str, body: Object, manager: str) -> None:
        forced = "" if DEFECT == "does-not-force" else "&force=true"
        await self._api.call("PATCH", f"{path}?fieldManager={manager}{forced}", body, "application/apply-patch+yaml")


class suppressed:  # noqa: N801
    """Ignores refusals with some codes."""

    def __init__(self, *codes: int) -> None:
        self._codes = codes

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> bool:
        return isinstance(problem, Refused) and problem.code in self._codes


asyncio.run(Packer(Api()).run())
