"""Applies a NetworkPolicy and a RoleBinding in each labelled Namespace, and the annotation of the Namespace. aiohttp.

KUBECONFIG=… python namespaces.py            (DEFECT=NAME puts one in)
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import ssl
import time
from base64 import b64decode

import aiohttp
import yaml

with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    CONFIG = yaml.safe_load(file)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
DEFECT = os.environ.get("DEFECT", "")
SELECTOR = "tenant"
MANAGER = f"tenants-{os.getpid()}" if DEFECT == "manager-pid" else "tenants"


class ApiError(Exception):
    def __init__(self, code: int, text: str, after: float = 0.0) -> None:
        super().__init__(f"{code} {text[:200]}")
        self.code, self.after = code, after


class Api:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    def _headers(self) -> dict[str, str]:
        token = USER.get("token", "")
        if "tokenFile" in USER:
            with open(USER["tokenFile"], encoding="utf-8") as file:
                token = file.read().strip()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def open(self, method: str, path: str, *, idle: float = 12.0, **more):
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=None if DEFECT == "no-idle" else idle)
        headers = {**self._headers(), **more.pop("headers", {})}
        return self._session.request(method, CLUSTER["server"] + path, timeout=timeout, headers=headers, **more)

    async def check(self, response: aiohttp.ClientResponse) -> None:
        if response.status >= 400:
            after = response.headers.get("Retry-After", "0")
            raise ApiError(response.status, await response.text(errors="replace"), float(after) if after.isdigit() else 0.0)

    async def get(self, path: str, params=None):
        async with self.open("GET", path, params=params) as response:
            await self.check(response)
            return await response.json()

    async def apply(self, path: str, body) -> None:
        force = "false" if DEFECT == "timid" else "true"
        params = {"fieldManager": MANAGER, "force": force}
        headers = {"Content-Type": "application/apply-patch+yaml"}
        data = json.dumps(body)
        async with self.open("PATCH", path, params=params, headers=headers, data=data) as response:
            await self.check(response)


class Watcher:
    def __init__(self, api: Api, path: str, wake, selector: str = "") -> None:
        self.api, self.path, self.wake, self.selector = api, path, wake, selector
        self.objects: dict[tuple[str, str], dict] = {}
        self.revision: str | None = None
        self.ready = asyncio.Event()

    def params(self, **more) -> dict[str, str]:
        return {**({"labelSelector": self.selector} if self.selector else {}), **more}

    async def run(self) -> None:
        delay = 0.5
        while True:
            begun, least = time.monotonic(), 0.0
            try:
                if self.revision is None:
                    self.revision = await self.list()
                before = self.revision
                await self.watch(before)
                if self.revision != before or time.monotonic() - begun > 1.0:
                    delay = 0.5
                    continue
                self.revision = None
            except ApiError as problem:
                least = problem.after
                if problem.code in (410, 504) or DEFECT == "relist-on-error":
                    self.revision = None
                if problem.code == 500 and DEFECT == "dies-500":
                    raise SystemExit(3) from None
            except (TimeoutError, aiohttp.ClientError, ValueError):
                pass
            if time.monotonic() - begun > 10.0:
                delay = 0.5
            if DEFECT == "no-delay":
                continue
            await asyncio.sleep(max(least, random.uniform(delay / 2, delay * 1.5)))
            delay = min(delay * 2, 30.0) if DEFECT != "steady" else 0.5

    async def list(self) -> str:
        items, token = [], ""
        while True:
            page = await self.api.get(self.path, self.params(limit="50", **({"continue": token} if token else {})))
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                break
        new = {key(one): one for one in items}
        for name in self.objects.keys() | new.keys():
            if DEFECT != "ghosts" or name in new:
                self.wake(new.get(name), self.objects.get(name))
        self.objects = new if DEFECT != "ghosts" else self.objects | new
        self.ready.set()
        if DEFECT == "newest-item" and items:
            return max((one["metadata"]["resourceVersion"] for one in items), key=int)
        return page["metadata"]["resourceVersion"]

    async def watch(self, revision: str) -> None:
        params = self.params(
            watch="1", resourceVersion=revision, allowWatchBookmarks="1", timeoutSeconds=str(random.randint(200, 300))
        )
        async with self.api.open("GET", self.path, params=params) as response:
            await self.api.check(response)
            buffer = bytearray()
            try:
                async for piece, _ in response.content.iter_chunks():
                    buffer += piece
                    while (at := buffer.find(b"\n")) >= 0:
                        line = bytes(buffer[:at])
                        del buffer[: at + 1]
                        self.handle(json.loads(line.decode("ascii", "replace") if DEFECT == "ascii" else line))
                        if DEFECT == "one-a-chunk":
                            buffer.clear()
            except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionError):
                if DEFECT == "reset-kills":
                    os._exit(6)
                await asyncio.sleep(random.uniform(0.0, 0.5))

    def handle(self, event) -> None:
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(obj.get("code") or 500, obj.get("message") or "")
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            return
        if kind != "BOOKMARK":
            old = self.objects.pop(key(obj), None)
            if kind != "DELETED":
                self.objects[key(obj)] = obj
            self.wake(None if kind == "DELETED" else obj, old or obj)
        elif DEFECT == "bookmark-object":
            self.wake(obj, None)
        self.revision = obj["metadata"]["resourceVersion"]


def key(obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Controller:
    def __init__(self, api: Api) -> None:
        self.api = api
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.queued: set[str] = set()
        self.failures: dict[str, int] = {}
        self.namespaces = Watcher(api, "/api/v1/namespaces", self.told, SELECTOR)
        self.policies = Watcher(api, "/apis/networking.k8s.io/v1/networkpolicies", self.child, "made-by=tenants")
        self.bindings = Watcher(api, "/apis/rbac.authorization.k8s.io/v1/rolebindings", self.child, "made-by=tenants")

    def told(self, new, old) -> None:
        self.add((new or old)["metadata"]["name"])

    def child(self, new, old) -> None:
        self.add((new or old)["metadata"]["namespace"])

    def add(self, name: str) -> None:
        if name not in self.queued:
            self.queued.add(name)
            self.queue.put_nowait(name)

    async def work(self) -> None:
        while True:
            name = await self.queue.get()
            self.queued.discard(name)
            try:
                await self.reconcile(name)
                self.failures.pop(name, None)
            except (TimeoutError, ApiError, aiohttp.ClientError) as problem:
                if DEFECT == "drops-work":
                    continue
                count = self.failures[name] = self.failures.get(name, 0) + 1
                pause = min(0.2 * 2**count, 20.0) * random.uniform(0.7, 1.4)
                if DEFECT == "hot-work":
                    pause = 0.02
                asyncio.get_running_loop().call_later(max(pause, getattr(problem, "after", 0.0)), self.add, name)

    async def reconcile(self, name: str) -> None:
        namespace = self.namespaces.objects.get(("", name))
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return
        team = namespace["metadata"]["labels"][SELECTOR]
        meta = {"name": "tenant", "labels": {"made-by": "tenants"}}
        policy = self.policies.objects.get((name, "tenant"))
        peer = [{"namespaceSelector": {"matchLabels": {SELECTOR: team}}}]
        spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": peer}]}
        if policy is None or policy["spec"] != spec:
            body = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}
            await self.api.apply(f"/apis/networking.k8s.io/v1/namespaces/{name}/networkpolicies/tenant", body)
        binding = self.bindings.objects.get((name, "tenant"))
        subjects = [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": team}]
        if binding is None or binding.get("subjects") != subjects:
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
            body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta}
            await self.api.apply(
                f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings/tenant",
                {**body, "roleRef": role, "subjects": subjects},
            )
        if (namespace["metadata"].get("annotations") or {}).get("tenants/ready") != team:
            meta = {"name": name, "uid": namespace["metadata"]["uid"], "annotations": {"tenants/ready": team}}
            if DEFECT == "no-uid":
                del meta["uid"]
            if DEFECT == "applies-labels":
                meta["labels"] = namespace["metadata"]["labels"]
            await self.api.apply(f"/api/v1/namespaces/{name}", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


async def main() -> None:
    connector = aiohttp.TCPConnector(limit=30)
    if "certificate-authority-data" in CLUSTER:
        tls = ssl.create_default_context(cadata=b64decode(CLUSTER["certificate-authority-data"]).decode())
        connector = aiohttp.TCPConnector(limit=30, ssl=tls)
    async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "tenants/1.1"}) as session:
        controller = Controller(Api(session))
        watchers = (controller.policies, controller.bindings, controller.namespaces)
        tasks = [asyncio.create_task(one.run()) for one in watchers]
        for one in watchers:
            await one.ready.wait()
        tasks += [asyncio.create_task(controller.work()) for _ in range(3)]
        await asyncio.gather(*tasks)


asyncio.run(main())
