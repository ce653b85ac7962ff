"""Serves each Site: a ConfigMap, a Service and a ServiceAccount, all by server-side apply. aiohttp, one task for each worker.

KUBECONFIG=… python sites.py            (DEFECT=NAME puts one in)
"""

import asyncio
import json
import os
import random
import ssl
import time
from base64 import b64decode
from urllib.parse import urlencode

import aiohttp
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as config:
    CONFIG = yaml.safe_load(config)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
TLS = (
    ssl.create_default_context(cadata=b64decode(CLUSTER["certificate-authority-data"]).decode())
    if CLUSTER["server"].startswith("https")
    else None
)
SITES = "/apis/pages.checked.dev/v1/sites"
OURS = "pages.checked.dev/site=yes"
MANAGER = f"sites-{os.getpid()}" if DEFECT == "manager-of-process" else "sites"
#: The resources of the children, and their paths below a namespace.
KINDS = {"configmaps": "ConfigMap", "services": "Service", "serviceaccounts": "ServiceAccount"}


class Refused(Exception):
    def __init__(self, code, reason="", after=0.0):
        super().__init__(f"{code} {reason}")
        self.code, self.after = code, after


TROUBLE = (Refused, aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError)


class Server:
    def __init__(self):
        limits = aiohttp.TCPConnector(ssl=TLS if TLS else True, limit=0)
        agent = {"User-Agent": "sites/0.9 (pages.checked.dev)", "Accept": "application/json"}
        self.session = aiohttp.ClientSession(CLUSTER["server"], connector=limits, headers=agent, read_bufsize=1 << 24)
        self.token = ""

    def headers(self):
        if "tokenFile" in USER:
            if DEFECT != "first-token" or not self.token:
                with open(USER["tokenFile"], encoding="utf-8") as file:
                    self.token = file.read().strip()
        else:
            self.token = USER.get("token", "")
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def open(self, method, path, body=None, kind="application/json", idle=10.0):
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=10, sock_read=None if DEFECT == "endless" and idle > 10 else idle
        )
        headers = {**self.headers(), **({"Content-Type": kind} if body is not None else {})}
        data = None if body is None else json.dumps(body)
        return self.session.request(method, path, data=data, headers=headers, timeout=timeout)

    async def call(self, method, path, body=None, kind="application/json"):
        async with self.open(method, path, body, kind) as answer:
            await raise_for(answer)
            if DEFECT == "half-is-enough" and method == "GET":
                return salvage(await all_that_comes(answer))
            return json.loads(await answer.read())


async def all_that_comes(answer):
    got = b""
    try:
        async for piece in answer.content.iter_any():
            got += piece
    except aiohttp.ClientError:
        pass
    return got


def salvage(text):
    """Parses the objects of a list as far as they go."""
    try:
        return json.loads(text)
    except ValueError:
        for end in range(len(text), 0, -1):
            if text[end - 1 : end] == b"}":
                try:
                    found = json.loads(text[:end] + b"]}")
                except ValueError:
                    continue
                return {"metadata": {}, **found}
        raise


async def raise_for(answer):
    if answer.status < 300:
        return
    after = answer.headers.get("Retry-After", "")
    try:
        reason = (json.loads(await answer.read()) or {}).get("reason", "")
    except (ValueError, AttributeError, aiohttp.ClientError):
        reason = ""
    raise Refused(answer.status, reason, float(after) if after.isdigit() else 0.0)


class Backoff:
    def __init__(self, first, longest):
        self.first, self.longest, self.next = first, longest, first

    def draw(self):
        now, self.next = self.next, min(self.longest, self.next * (5 if DEFECT == "fivefold" else 2))
        return now * random.uniform(0.6, 1.4)

    def reset(self):
        self.next = self.first


class Informer:
    def __init__(self, server, path, selector, tell):
        self.server, self.path, self.selector, self.tell = server, path, selector, tell
        self.store, self.revision, self.synced = {}, "", asyncio.Event()

    def query(self, **more):
        if self.selector:
            more["labelSelector"] = self.selector
        return f"{self.path}?{urlencode(more)}"

    async def run(self):
        backoff = Backoff(0.8, 300.0 if DEFECT == "fivefold" else 25.0)
        while True:
            begun, least = time.monotonic(), 0.0
            try:
                if not self.revision:
                    await self.list()
                if await self.watch():
                    backoff.reset()
                    continue
                if time.monotonic() - begun < 1.5:
                    self.revision = ""
            except Refused as refused:
                least = refused.after
                if refused.code in (410, 504):
                    self.revision = ""
            except TimeoutError:
                backoff.reset()  # silence: the connection may be dead
                continue
            except TROUBLE as trouble:
                print(self.path, repr(trouble), flush=True)
            if time.monotonic() - begun > 20.0:
                backoff.reset()
            await asyncio.sleep(least + backoff.draw())

    async def list(self):
        found, more, revision = {}, "", ""
        while True:
            try:
                page = await self.server.call("GET", self.query(limit=50, **({"continue": more} if more else {})))
            except Refused as refused:
                if refused.code != 410 or not more:
                    raise
                found, more = {}, ""
                page = await self.server.call("GET", self.query())
            for item in page.get("items") or ():
                found[key_of(item)] = item
            revision, more = page["metadata"].get("resourceVersion", ""), page["metadata"].get("continue", "")
            if not more:
                break
        before, self.store, self.revision = self.store, found, revision
        for key in before.keys() | found.keys():
            old, new = before.get(key), found.get(key)
            if old is None or new is None or old["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"]:
                self.tell(new or old, old)
        self.synced.set()

    async def watch(self):
        """Returns whether the watch has delivered something."""
        seconds = random.randint(25, 35)
        query = self.query(watch="true", allowWatchBookmarks="true", timeoutSeconds=seconds, resourceVersion=self.revision)
        told = False
        async with self.server.open("GET", query, idle=42.0) as answer:
            await raise_for(answer)
            async for line in answer.content:
                if not line.endswith(b"\n"):
                    raise aiohttp.ClientPayloadError("half a line")
                event = json.loads(line)
                kind, one = event.get("type"), event.get("object") or {}
                if kind == "ERROR":
                    raise Refused(one.get("code") or 500, one.get("reason", ""))
                if kind == "BOOKMARK":
                    if DEFECT != "forgets-bookmarks":
                        self.revision = one["metadata"]["resourceVersion"]
                    continue
                if kind not in ("ADDED", "MODIFIED", "DELETED"):
                    continue
                told = True
                key = key_of(one)
                old = self.store.pop(key, None)
                if kind != "DELETED":
                    self.store[key] = one
                self.tell(one, old)
                self.revision = one["metadata"]["resourceVersion"]
        return told


def key_of(one):
    return (one["metadata"].get("namespace", ""), one["metadata"]["name"])


class Operator:
    def __init__(self, server):
        self.server = server
        self.sites = Informer(server, SITES, "", self.site_changed)
        self.children = {name: Informer(server, f"/api/v1/{name}", OURS, self.child_changed) for name in KINDS}
        self.queue = asyncio.Queue()
        self.queued, self.busy, self.again = set(), set(), set()
        self.failures, self.applied = {}, {}

    def site_changed(self, site, old):
        same = old is not None and old["metadata"].get("generation") == site["metadata"].get("generation")
        if DEFECT == "generation-only" and same:
            return
        self.add(key_of(site))

    def child_changed(self, child, _):
        for owner in child["metadata"].get("ownerReferences") or ():
            if owner["kind"] == "Site":
                self.add((child["metadata"]["namespace"], owner["name"]))

    def add(self, key):
        if key in self.busy:
            self.again.add(key)
        elif key not in self.queued:
            self.queued.add(key)
            self.queue.put_nowait(key)

    async def work(self):
        while True:
            key = await self.queue.get()
            self.queued.discard(key)
            self.busy.add(key)
            try:
                await self.reconcile(key)
                if DEFECT != "remembers-failures":
                    self.failures.pop(key, None)
            except TROUBLE as trouble:
                print(key, repr(trouble), flush=True)
                if DEFECT == "worker-ends" and isinstance(trouble, Refused) and trouble.code >= 500:
                    raise
                count = self.failures[key] = self.failures.get(key, 0) + 1
                pause = min(25.0, 0.2 * 2 ** (count - 1)) * random.uniform(0.7, 1.3)
                least = 0.0 if DEFECT == "own-pace" else getattr(trouble, "after", 0.0)
                asyncio.get_running_loop().call_later(max(pause, least), self.add, key)
            finally:
                self.busy.discard(key)
                if key in self.again:
                    self.again.discard(key)
                    self.add(key)

    async def reconcile(self, key):
        site = self.sites.store.get(key)
        if site is None or site["metadata"].get("deletionTimestamp"):
            if DEFECT != "done-by-name":
                self.applied.pop(key, None)
            return
        meta, spec = site["metadata"], site["spec"]
        wanted = self.wanted(site)
        digest = json.dumps(spec if DEFECT == "done-by-name" else [meta["uid"], *wanted.values()], sort_keys=True)
        if DEFECT == "done-by-name" and self.applied.get(key) == digest:
            return
        for name, body in wanted.items():
            known = self.children[name].store.get((key[0], body["metadata"]["name"]))
            if known is not None and self.owner_of(known) != meta["uid"]:
                await self.replace(name, known, site)
            elif known is None or self.applied.get(key) != digest or self.differs(known, body):
                await self.apply(name, key[0], body)
        self.applied[key] = digest
        await self.write_status(site, spec)

    def wanted(self, site):
        meta, spec = site["metadata"], site["spec"]
        owner = {"apiVersion": site["apiVersion"], "kind": "Site", "name": meta["name"], "uid": meta["uid"], "controller": True}
        name = f"{meta['name']}-site"
        labels = {"pages.checked.dev/site": "yes", **{k: v for k, v in (meta.get("labels") or {}).items() if k == "team"}}
        notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k == "contact"}
        found = {}
        for plural, kind in KINDS.items():
            head = {"name": name, "namespace": meta["namespace"], "labels": dict(labels), "ownerReferences": [owner]}
            found[plural] = {"apiVersion": "v1", "kind": kind, "metadata": head}
        found["configmaps"]["metadata"]["annotations"] = notes
        found["configmaps"]["data"] = {"title": spec["title"], "index.html": spec.get("index", "")}
        found["services"]["spec"] = {
            "selector": {"site": meta["name"]},
            "ports": [{"port": spec.get("port", 80), "name": "http"}],
        }
        known = self.children["configmaps"].store.get((meta["namespace"], name))
        if DEFECT == "label-once" and known is not None and "team" in (known["metadata"].get("labels") or {}):
            found["configmaps"]["metadata"]["labels"]["team"] = known["metadata"]["labels"]["team"]
        return found

    @staticmethod
    def owner_of(child):
        owners = child["metadata"].get("ownerReferences") or ()
        return next((one["uid"] for one in owners if one.get("controller")), "nobody")

    def differs(self, known, body):
        """Whether a child lacks something that is wanted; the server may have added more."""
        meta = known["metadata"]
        for part in ("labels", "annotations"):
            have = meta.get(part) or {}
            if any(have.get(name) != value for name, value in (body["metadata"].get(part) or {}).items()):
                return True
        return any(known.get("data", {}).get(name) != value for name, value in body.get("data", {}).items())

    async def replace(self, name, known, site):
        """A child of an older site of this name goes, and one of somebody else stays."""
        owners = known["metadata"].get("ownerReferences") or ()
        if not any(one["kind"] == "Site" and one["name"] == site["metadata"]["name"] for one in owners):
            raise Refused(409, "somebody else's")
        if not known["metadata"].get("deletionTimestamp"):
            only = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": known["metadata"]["uid"]}}
            path = f"/api/v1/namespaces/{known['metadata']['namespace']}/{name}/{known['metadata']['name']}"
            try:
                await self.server.call("DELETE", path, only)
            except Refused as refused:
                if refused.code not in (404, 409):
                    raise
        raise Refused(409, "an older one is there")

    async def apply(self, name, namespace, body):
        path = f"/api/v1/namespaces/{namespace}/{name}/{body['metadata']['name']}"
        if self.children[name].store.get((namespace, body["metadata"]["name"])) is None:
            try:
                known = await self.server.call("GET", path)
            except Refused as refused:
                if refused.code != 404:
                    raise
            else:
                if self.owner_of(known) != body["metadata"]["ownerReferences"][0]["uid"]:
                    raise Refused(409, "it belongs to another")
        force = "" if DEFECT == "asks-nicely" else "&force=true"
        await self.server.call("PATCH", f"{path}?fieldManager={MANAGER}{force}", body, "application/apply-patch+yaml")

    async def write_status(self, site, spec):
        meta, status = site["metadata"], site.get("status") or {}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        old = next((one for one in status.get("conditions") or () if one["type"] == "Served"), None)
        condition = {"type": "Served", "status": "True", "reason": "Applied", "message": spec["title"], "lastTransitionTime": now}
        if old and old["status"] == "True" and DEFECT != "always-now":
            condition["lastTransitionTime"] = old["lastTransitionTime"]
        address = f"http://{meta['name']}-site.{meta['namespace']}.svc:{spec.get('port', 80)}"
        if old == condition and status.get("address") == address and status.get("seen") == meta["generation"]:
            return
        body = {
            "apiVersion": site["apiVersion"],
            "kind": "Site",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "status": {"address": address, "seen": meta["generation"], "conditions": [condition]},
        }
        path = f"/apis/pages.checked.dev/v1/namespaces/{meta['namespace']}/sites/{meta['name']}/status"
        body["status"]["conditions"] += [one for one in status.get("conditions") or () if one["type"] != "Served"]
        body["metadata"]["resourceVersion"] = meta["resourceVersion"]
        try:
            kind = "application/apply-patch+yaml"
            await self.server.call("PATCH", f"{path}?fieldManager={MANAGER}-status&force=true", body, kind)
        except Refused as refused:
            if refused.code != 404:  # it is gone
                raise

    async def run(self):
        TASKS.extend(asyncio.create_task(one.run()) for one in (*self.children.values(), self.sites))
        for one in (*self.children.values(), self.sites):
            await one.synced.wait()
        TASKS.extend(asyncio.create_task(self.work()) for _ in range(4))
        await asyncio.gather(*TASKS, return_exceptions=True)


TASKS = []


async def main():
    server = Server()
    await Operator(server).run()


asyncio.run(main())
