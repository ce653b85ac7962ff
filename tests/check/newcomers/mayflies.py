"""Deletes ConfigMaps some seconds after they were made, as their annotation asks for, and counts them in one ConfigMap that all share.
kubernetes_asyncio: a loop for all namespaces, timers, deletes with preconditions, a JSON patch that tests what it replaces.

KUBECONFIG=… python mayflies.py
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

SECONDS, WARNED = "mayflies.checked.dev/seconds", "mayflies.checked.dev/until"
TROUBLE = (ApiException, aiohttp.ClientError, OSError, ValueError, KeyError, TimeoutError)
LIMIT = aiohttp.ClientTimeout(total=10)


def after_of(problem):
    text = str((getattr(problem, "headers", None) or {}).get("Retry-After", ""))
    return float(text) if text.isdigit() else 0.0


class Mayflies:
    def __init__(self, api):
        self.core = client.CoreV1Api(api)
        self.items, self.timers, self.failures = {}, {}, {}

    async def read(self, timeout, **query):
        answer = await self.core.list_config_map_for_all_namespaces(
            label_selector="mirror=yes", _preload_content=False, _request_timeout=timeout, **query
        )
        if answer.status >= 400:
            problem = ApiException(status=answer.status, reason=(await answer.text(errors="replace"))[:200])
            problem.headers = answer.headers
            raise problem
        return answer

    async def list(self):
        page = json.loads(await (await self.read(LIMIT, resource_version="0")).read())
        found = {one["metadata"]["uid"]: one for one in page["items"]}
        for uid in self.items.keys() - found.keys():
            self.forget(uid)
        for one in found.values():
            self.take(one)
        return page["metadata"]["resourceVersion"]

    def take(self, obj):
        uid = obj["metadata"]["uid"]
        self.items[uid] = obj
        self.schedule(uid, 0.0)

    def forget(self, uid):
        self.items.pop(uid, None)
        self.failures.pop(uid, None)
        timer = self.timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def schedule(self, uid, after):
        timer = self.timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self.timers[uid] = loop.call_later(after, lambda: loop.create_task(self.attempt(uid)))

    async def attempt(self, uid):
        try:
            await self.look(uid)
            self.failures.pop(uid, None)
        except TROUBLE as problem:
            if getattr(problem, "status", 0) == 404:
                return
            count = self.failures[uid] = self.failures.get(uid, 0) + 1
            pause = min(0.25 * 2**count, 20.0) * random.uniform(0.7, 1.4)
            if uid in self.items:
                self.schedule(uid, max(pause, after_of(problem)))

    async def look(self, uid):
        obj = self.items.get(uid)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        meta = obj["metadata"]
        notes = meta.get("annotations") or {}
        try:
            seconds = float(notes.get(SECONDS, ""))
        except ValueError:
            return
        made = datetime.datetime.fromisoformat(meta["creationTimestamp"].replace("Z", "+00:00"))
        end = made + datetime.timedelta(seconds=seconds)
        left = (end - datetime.datetime.now(datetime.UTC)).total_seconds()
        if left <= 0:
            conditions = {"uid": uid, "resourceVersion": meta["resourceVersion"]}
            await self.core.delete_namespaced_config_map(
                meta["name"], meta["namespace"], body={"preconditions": conditions}, _request_timeout=10
            )
            return
        until = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        if notes.get(WARNED) != until:
            change = [
                {"op": "test", "path": "/metadata/uid", "value": uid},
                {"op": "add", "path": "/metadata/annotations/" + WARNED.replace("/", "~1"), "value": until},
            ]
            await self.core.patch_namespaced_config_map(meta["name"], meta["namespace"], change, _request_timeout=10)
        else:
            self.schedule(uid, left)

    async def run(self):
        revision, pause = None, 0.5
        while True:
            begun, came, least = time.monotonic(), False, 0.0
            try:
                if revision is None:
                    revision = await self.list()
                answer = await self.read(
                    aiohttp.ClientTimeout(sock_read=15),
                    watch=True,
                    resource_version=revision,
                    allow_watch_bookmarks=True,
                    timeout_seconds=random.randrange(250, 500),
                )
                try:
                    rest = b""
                    async for piece in answer.content.iter_any():
                        *lines, rest = (rest + piece).split(b"\n")
                        for line in lines:
                            event = json.loads(line)
                            obj = event["object"]
                            if event["type"] == "ERROR":
                                raise ApiException(status=obj.get("code", 500), reason=obj.get("message"))
                            if event["type"] in ("ADDED", "MODIFIED"):
                                self.take(obj)
                            elif event["type"] == "DELETED":
                                self.forget(obj["metadata"]["uid"])
                            elif event["type"] != "BOOKMARK":
                                continue
                            came, revision = True, obj["metadata"]["resourceVersion"]
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
                if time.monotonic() - begun > 12.0:
                    pause = 0.5
            await asyncio.sleep(max(least, random.uniform(0.6, 1.5) * pause))
            pause = min(pause * 2, 30.0)


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
        api.user_agent = "mayflies/1.1"
        await Mayflies(api).run()


asyncio.run(main())
