"""Leads Widgets through phases in their status, with a PersistentVolumeClaim for each. kubernetes_asyncio, loops of its own.

KUBECONFIG=… python phases.py            (DEFECT=NAME puts one in)
"""

import asyncio
import datetime
import json
import os
import random
import time

import aiohttp
import yaml
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client.exceptions import ApiException

DEFECT = os.environ.get("DEFECT", "")
PLACE = ("checked.dev", "v1")
TROUBLE = (ApiException, aiohttp.ClientError, OSError, ValueError, KeyError, TimeoutError)


def after_of(problem):
    text = str((getattr(problem, "headers", None) or {}).get("Retry-After", ""))
    return float(text) if text.isdigit() else 0.0


class Store:
    def __init__(self, read, told):
        self.read, self.told, self.items, self.filled = read, told, {}, asyncio.Event()

    async def keep(self):
        revision, pause = None, 0.5
        while True:
            begun, came, least = time.monotonic(), False, 0.0
            try:
                if revision is None:
                    revision = await self.list()
                answer = await self.read(
                    watch=True, resource_version=revision, allow_watch_bookmarks=True, timeout_seconds=random.randrange(200, 300)
                )
                try:
                    buffer = b""
                    async for piece in answer.content.iter_any():
                        *lines, buffer = (buffer + piece).split(b"\n")
                        for line in lines:
                            event = json.loads(line)
                            obj = event["object"]
                            if event["type"] == "ERROR":
                                raise ApiException(status=obj.get("code", 500), reason=obj.get("message"))
                            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                                came = True
                                self.put(obj, event["type"] == "DELETED")
                            elif event["type"] != "BOOKMARK":
                                continue
                            revision = obj["metadata"]["resourceVersion"]
                finally:
                    answer.close()
                if came or time.monotonic() - begun > 1.0:
                    pause = 0.5
                    continue
                revision = None
            except TROUBLE as problem:
                if getattr(problem, "status", 0) in (404, 410, 504):
                    revision = None
                least = after_of(problem)
                if came or time.monotonic() - begun > 9.0:
                    pause = 0.5
            await asyncio.sleep(max(least, random.uniform(0.6, 1.5) * pause))
            pause = min(pause * 2, 30.0)

    async def list(self):
        found, token = {}, None
        while True:
            answer = await self.read(limit=50, **({"_continue": token} if token else {}))
            page = json.loads(await answer.read())
            found.update(((one["metadata"]["namespace"], one["metadata"]["name"]), one) for one in page["items"])
            token = page["metadata"].get("continue")
            if not token:
                break
        for key in self.items.keys() - found.keys():
            self.put(self.items[key], gone=True)
        for one in found.values():
            self.put(one, gone=False)
        self.filled.set()
        return page["metadata"]["resourceVersion"]

    def put(self, obj, gone):
        key = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if gone:
            self.items.pop(key, None)
        else:
            self.items[key] = obj
        self.told(obj, gone)


class Phases:
    def __init__(self, api):
        self.custom, self.core = client.CustomObjectsApi(api), client.CoreV1Api(api)
        self.queue, self.queued, self.failures, self.fresh = asyncio.Queue(), set(), {}, {}
        self.widgets = Store(self.read_widgets, self.widget)
        self.claims = Store(self.read_claims, self.claim)

    async def read_widgets(self, **options):
        answer = await self.custom.list_cluster_custom_object(
            *PLACE, "widgets", _preload_content=False, _request_timeout=aiohttp.ClientTimeout(sock_read=12), **options
        )
        return await self.checked(answer)

    async def read_claims(self, **options):
        answer = await self.core.list_persistent_volume_claim_for_all_namespaces(
            label_selector="made-by=phases",
            _preload_content=False,
            _request_timeout=aiohttp.ClientTimeout(sock_read=12),
            **options,
        )
        return await self.checked(answer)

    @staticmethod
    async def checked(answer):
        if answer.status >= 400:
            text = await answer.text(errors="replace")
            problem = ApiException(status=answer.status, reason=text[:200])
            problem.headers = answer.headers
            raise problem
        return answer

    def widget(self, obj, gone):
        self.add((obj["metadata"]["namespace"], obj["metadata"]["name"]))

    def claim(self, obj, gone):
        for one in obj["metadata"].get("ownerReferences") or ():
            self.add((obj["metadata"]["namespace"], one["name"]))

    def add(self, key):
        if key not in self.queued:
            self.queued.add(key)
            self.queue.put_nowait(key)

    async def work(self):
        while True:
            key = await self.queue.get()
            self.queued.discard(key)
            try:
                await self.reconcile(key)
                self.failures.pop(key, None)
            except TROUBLE as problem:
                if getattr(problem, "status", 0) == 404 and key not in self.widgets.items:
                    continue
                count = self.failures[key] = self.failures.get(key, 0) + 1
                pause = min(0.2 * 2**count, 20.0) * random.uniform(0.8, 1.5)
                asyncio.get_running_loop().call_later(max(pause, after_of(problem)), self.add, key)

    async def reconcile(self, key):
        widget = self.widgets.items.get(key)
        if widget is None or widget["metadata"].get("deletionTimestamp"):
            return
        namespace, name = key
        meta, status = widget["metadata"], widget.get("status") or {}
        there = self.claims.items.get(key)
        if DEFECT == "remembers-names" and there is None and key in self.fresh:
            there = self.fresh[key]
        if there is None:
            owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": name, "uid": meta["uid"], "controller": True}
            body = {
                "metadata": {"name": name, "labels": {"made-by": "phases"}, "ownerReferences": [owner]},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
            try:
                await self.core.create_namespaced_persistent_volume_claim(namespace, body, _request_timeout=10)
            except ApiException as problem:
                if problem.status != 409:
                    raise
                there = (await self.core.read_namespaced_persistent_volume_claim(name, namespace, _request_timeout=10)).to_dict()
                if not any(one["uid"] == meta["uid"] for one in there["metadata"].get("owner_references") or ()):
                    raise
            self.fresh[key] = {"metadata": {"ownerReferences": [owner]}}
        elif DEFECT == "remembers-names":
            pass
        elif not any(one["uid"] == meta["uid"] for one in there["metadata"].get("ownerReferences") or ()):
            raise ApiException(status=409, reason="the claim has another owner")
        message = (widget.get("spec") or {}).get("message", "")
        conditions = status.get("conditions") or []
        mine = next((one for one in conditions if one["type"] == "Ready"), {})
        if status.get("observedGeneration") == meta["generation"] and mine.get("message") == message and DEFECT != "new-times":
            return
        now = datetime.datetime.now(datetime.UTC).strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ" if DEFECT == "new-times" else "%Y-%m-%dT%H:%M:%SZ"
        )
        ready = {"type": "Ready", "status": "True", "reason": "Made", "message": message, "lastTransitionTime": now}
        others = [] if DEFECT == "sole-condition" else [one for one in conditions if one["type"] != "Ready"]
        new = {**status, "phase": "Ready", "observedGeneration": meta["generation"], "conditions": [*others, ready]}
        body = {**widget, "status": new}
        if DEFECT == "kept-body":
            body = self.fresh.setdefault((key, meta["uid"], meta["generation"]), body)
        try:
            await self.custom.replace_namespaced_custom_object_status(
                *PLACE, namespace, "widgets", name, body, _request_timeout=10
            )
        except ApiException as problem:
            if problem.status != 404:
                raise


async def main():
    await config.load_kube_config(os.environ["KUBECONFIG"])
    settings = client.Configuration.get_default_copy()
    settings.retries = None
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
        token_file = yaml.safe_load(file)["users"][0]["user"].get("tokenFile")

    async def read_token(configuration):
        if token_file:
            with open(token_file, encoding="utf-8") as file:
                configuration.api_key["BearerToken"] = f"Bearer {file.read().strip()}"

    settings.refresh_api_key_hook = read_token
    async with client.ApiClient(settings) as api:
        api.user_agent = "phases/0.1"
        phases = Phases(api)
        stores = (phases.claims, phases.widgets)
        tasks = [asyncio.create_task(one.keep()) for one in stores]
        for one in stores:
            await one.filled.wait()
        await asyncio.gather(*tasks, *(asyncio.create_task(phases.work()) for _ in range(2)))


asyncio.run(main())
