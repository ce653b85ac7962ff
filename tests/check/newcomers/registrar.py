"""Registers PersistentVolumeClaims in ConfigMaps of another namespace, which are named by uid. kr8s and asyncio, three workers.

KUBECONFIG=… python registrar.py            (DEFECT=NAME puts one in)

A finalizer holds a claim until its entry is gone, since owners cannot be in another namespace. All writes are JSON patches that test
what they assume, creates and deletes.
"""

import asyncio
import json
import os
import random
import time

import httpx
import kr8s
import kr8s.asyncio
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as config:
    USER = yaml.safe_load(config)["users"][0]["user"]
FINALIZER, REGISTRY = "checked.dev/registered", "kube-public"
ENTRIES = f"/api/v1/namespaces/{REGISTRY}/configmaps"
TROUBLE = (httpx.HTTPError, httpx.StreamError, OSError, ValueError, kr8s.APITimeoutError, kr8s.ServerError)
QUIET = 14.0


class Refused(Exception):
    def __init__(self, code, message, after):
        super().__init__(f"{code} {message[:200]}")
        self.code, self.after = code, after


class Api:
    """kr8s' connection, without its reaction to statuses."""

    async def open(self):
        self.api = await kr8s.asyncio.api()

    def options(self, method, url, body, kind):
        headers = {"User-Agent": "registrar/0.4", "Content-Type": kind}
        if "tokenFile" in USER:  # kr8s reads the token of a kubeconfig only
            with open(USER["tokenFile"], encoding="utf-8") as file:
                headers["Authorization"] = f"Bearer {file.read().strip()}"
        more = {"content": json.dumps(body).encode()} if body is not None else {}
        base, version, rest = url.removeprefix("/").split("/", 2)
        return {"method": method, "base": f"/{base}", "version": version, "url": rest, "headers": headers, **more}

    async def fail(self, answer, text):
        if answer.status_code == 401:
            await self.api.auth.reauthenticate()
            await self.api._create_session()
        after = answer.headers.get("retry-after", "0")
        raise Refused(answer.status_code, text, float(after) if after.isdigit() else 0.0)

    async def call(self, method, path, body=None, kind="application/json"):
        async with self.api.call_api(timeout=10, raise_for_status=False, **self.options(method, path, body, kind)) as answer:
            if answer.status_code >= 300:
                await self.fail(answer, answer.text)
            return answer.json()

    async def stream(self, path):
        patience = httpx.Timeout(10, read=QUIET)
        options = self.options("GET", path, None, "application/json")
        async with self.api.call_api(stream=True, timeout=patience, raise_for_status=False, **options) as answer:
            if answer.status_code != 200:
                await self.fail(answer, (await answer.aread()).decode(errors="replace"))
            rest = bytearray()
            async for piece in answer.aiter_bytes():
                rest += piece
                if b"\n" not in piece:
                    continue
                *whole, rest = rest.split(b"\n")
                for line in whole:
                    yield json.loads(line)
            if rest:
                raise ValueError("half an event")


kube = Api()


class Watched:
    def __init__(self, path, selector, heard):
        self.path, self.selector, self.heard = path, selector, heard
        self.objects, self.revision, self.listed = {}, None, asyncio.Event()

    async def run(self):
        pause = 0.5
        while True:
            begun, least, heard = time.monotonic(), 0.0, False
            try:
                if self.revision is None:
                    await self.list()
                url = f"{self.path}?watch=true&allowWatchBookmarks=true&labelSelector={self.selector}&resourceVersion={self.revision}"
                async for event in kube.stream(url):
                    heard = self.take(event) or heard
                if heard or time.monotonic() - begun > 2:
                    pause = 0.5
                    continue
                self.revision = None
            except httpx.ReadTimeout:
                pause = 0.5
                continue
            except kr8s.APITimeoutError:
                if time.monotonic() - begun >= QUIET - 1:
                    continue
            except Refused as refused:
                least = refused.after
                if refused.code in (410, 504):
                    self.revision = None
            except TROUBLE as trouble:
                print(self.path, repr(trouble), flush=True)
            pause = 0.5 if heard else pause
            await asyncio.sleep(max(least, pause * random.uniform(0.75, 1.75)))
            pause = min(pause * 2, 24)

    async def list(self):
        found, token = {}, ""
        while True:
            page = await kube.call(
                "GET", f"{self.path}?limit=20&labelSelector={self.selector}" + (f"&continue={token}" if token else "")
            )
            found |= {one["metadata"]["uid"]: one for one in page["items"]}
            token = page["metadata"].get("continue", "")
            if not token:
                break
        before, self.objects, self.revision = self.objects, found, page["metadata"]["resourceVersion"]
        self.listed.set()
        for uid in before.keys() | found.keys():
            self.heard(found.get(uid) or before[uid])

    def take(self, event):
        kind, one = event["type"], event["object"]
        if kind == "ERROR":
            raise Refused(one.get("code", 500), one.get("message", ""), (one.get("details") or {}).get("retryAfterSeconds", 0))
        if kind == "BOOKMARK":
            self.revision = one["metadata"]["resourceVersion"]
            return False
        if kind in ("ADDED", "MODIFIED"):
            self.objects[one["metadata"]["uid"]] = one
        elif kind == "DELETED":
            self.objects.pop(one["metadata"]["uid"], None)
        else:
            return False
        self.revision = one["metadata"]["resourceVersion"]
        self.heard(one)
        return True


turns, busy, again, failures = asyncio.Queue(), set(), set(), {}


def add(uid):
    if uid in busy:
        again.add(uid)
        return
    busy.add(uid)
    turns.put_nowait(uid)


claims = Watched("/api/v1/persistentvolumeclaims", "registered%3Dyes", lambda one: add(one["metadata"]["uid"]))
entries = Watched(ENTRIES, "registry%3Dclaims", lambda one: add(one["data"]["uid"]))


def entry_name(claim):
    metadata = claim["metadata"]
    return f"claim-{metadata['name']}" if DEFECT == "by-name" else f"claim-{metadata['uid']}"


async def register(uid):
    claim = claims.objects.get(uid)
    entry = next((one for one in entries.objects.values() if one.get("data", {}).get("uid") == uid), None)
    if claim is None:
        if entry is not None:
            await forget(entry)
        return
    metadata = claim["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
    held = metadata.get("finalizers", [])
    if metadata.get("deletionTimestamp"):
        if FINALIZER not in held:
            return
        if entry is not None:
            try:
                await forget(entry)
            except (Refused, *TROUBLE):
                if DEFECT != "drops-deletion":
                    raise
                return
        if DEFECT == "clears":
            await kube.call("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            return
        place = f"/metadata/finalizers/{held.index(FINALIZER)}"
        steps = [{"op": "test", "path": "/metadata/uid", "value": uid}]
        if DEFECT != "blind-index":
            steps.append({"op": "test", "path": place, "value": FINALIZER})
        await kube.call("PATCH", path, [*steps, {"op": "remove", "path": place}], "application/json-patch+json")
        return
    if FINALIZER not in held:
        tested = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
        added = {"op": "add", "path": "/metadata/finalizers", "value": [*held, FINALIZER]}
        await kube.call("PATCH", path, [tested, added], "application/json-patch+json")
    purpose = metadata.get("annotations", {}).get("checked.dev/purpose", "")
    data = {"uid": uid, "claim": f"{metadata['namespace']}/{metadata['name']}", "purpose": purpose}
    if entry is None:
        body = {"metadata": {"name": entry_name(claim), "labels": {"registry": "claims"}}, "data": data}
        try:
            await kube.call("POST", ENTRIES, {"apiVersion": "v1", "kind": "ConfigMap", **body})
        except Refused as refused:
            if refused.code != 409:  # nobody else uses these names: our own create, whose event is on its way
                raise
    elif entry["data"] != data:
        tested = {"op": "test", "path": "/metadata/uid", "value": entry["metadata"]["uid"]}
        changed = {"op": "replace", "path": "/data/purpose", "value": purpose}
        await kube.call("PATCH", f"{ENTRIES}/{entry['metadata']['name']}", [tested, changed], "application/json-patch+json")


async def forget(entry):
    try:
        await kube.call("DELETE", f"{ENTRIES}/{entry['metadata']['name']}", {"preconditions": {"uid": entry["metadata"]["uid"]}})
    except Refused as refused:
        if refused.code != 404:
            raise


async def work():
    while True:
        uid = await turns.get()
        try:
            await register(uid)
            failures.pop(uid, None)
        except (Refused, *TROUBLE) as trouble:
            print(uid, repr(trouble), flush=True)
            if getattr(trouble, "code", 0) != 404:
                failures[uid] = failures.get(uid, 0) + 1
                pause = min(0.25 * 2 ** failures[uid], 20) * random.uniform(0.8, 1.6)
                asyncio.get_running_loop().call_later(max(pause, getattr(trouble, "after", 0.0)), add, uid)
        busy.discard(uid)
        if uid in again:
            again.discard(uid)
            add(uid)


async def main():
    await kube.open()
    tasks = [asyncio.create_task(one.run()) for one in (entries, claims)]
    for one in (entries, claims):
        await one.listed.wait()
    tasks += [asyncio.create_task(work()) for _ in range(3)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    raise SystemExit("a task has ended")


asyncio.run(main())
