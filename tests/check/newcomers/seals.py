"""Seals ConfigMaps: a Secret for each, whole states by PUT. asyncio, a pool of raw connections, initial events instead of lists.

KUBECONFIG=… python seals.py            (DEFECT=NAME puts one in)
"""

import asyncio
import base64
import json
import os
import random
import ssl
import sys
from collections import deque
from urllib.parse import urlencode, urlsplit

import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    CONFIG = yaml.safe_load(file)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
SERVER = urlsplit(CLUSTER["server"])
TLS = None
if SERVER.scheme == "https":
    TLS = ssl.create_default_context(cadata=base64.b64decode(CLUSTER["certificate-authority-data"]).decode())
SILENCE = 11.0
LIMIT = 1 << 16 if DEFECT == "short-lines" else 1 << 25
BROKEN = (OSError, EOFError, ValueError, IndexError, TimeoutError, asyncio.LimitOverrunError)


class Refusal(Exception):
    def __init__(self, code, text="", after=0.0):
        super().__init__(f"{code}: {text[:200]}")
        self.code, self.after = code, after


class Line:
    """A connection that carries one request at a time."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.left, self.chunked = reader, writer, 0, False

    async def ask(self, method, target, body=None):
        data = json.dumps(body).encode() if body is not None else b""
        token = USER.get("token")
        if "tokenFile" in USER:
            with open(USER["tokenFile"], encoding="utf-8") as file:
                token = file.read().strip()
        head = f"{method} {target} HTTP/1.1\r\nHost: {SERVER.netloc}\r\nUser-Agent: seals/2.4\r\nAccept: application/json\r\n"
        head += f"Authorization: Bearer {token}\r\n" if token else ""
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n" if body is not None else ""
        self.writer.write(head.encode() + b"\r\n" + data)
        await self.writer.drain()
        lines = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), SILENCE)).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.chunked = "chunked" in headers.get("transfer-encoding", "")
        self.left = int(headers.get("content-length", 0))
        return int(lines[0].split()[1]), headers

    async def piece(self):
        """Returns the next piece of the body; nothing at its end."""
        if not self.chunked:
            size = min(self.left, 1 << 16)
            self.left -= size
            return await asyncio.wait_for(self.reader.readexactly(size), SILENCE) if size else b""
        size = int((await asyncio.wait_for(self.reader.readuntil(b"\r\n"), SILENCE)).partition(b";")[0], 16)
        data = await asyncio.wait_for(self.reader.readexactly(size + 2), SILENCE)
        return data[:-2]


class Pool:
    def __init__(self):
        self.idle = deque()

    async def take(self):
        while self.idle:
            line = self.idle.pop()
            if not line.reader.at_eof():
                return line
            line.writer.close()
        opening = asyncio.open_connection(SERVER.hostname, SERVER.port, ssl=TLS, limit=1 << 25)
        return Line(*await asyncio.wait_for(opening, SILENCE))

    async def call(self, method, target, body=None):
        line = await self.take()
        try:
            code, headers = await line.ask(method, target, body)
            parts = []
            while part := await line.piece():
                parts.append(part)
            self.idle.append(line)
        except BaseException:
            line.writer.close()
            raise
        text = b"".join(parts)
        if code >= 400:
            raise Refusal(code, text.decode(errors="replace"), float(headers.get("retry-after", "0")))
        return json.loads(text)

    async def events(self, target):
        line = await self.take()
        try:
            code, headers = await line.ask("GET", target)
            if code != 200:
                text = b""
                while part := await line.piece():
                    text += part
                raise Refusal(code, text.decode(errors="replace"), float(headers.get("retry-after", "0")))
            rest = b""
            while part := await line.piece():
                rest += part
                if len(rest) > LIMIT and b"\n" not in rest[:LIMIT]:
                    raise asyncio.LimitOverrunError("line is too long", len(rest))
                *whole, rest = rest.split(b"\n")
                for one in whole:
                    yield json.loads(one)
        finally:
            line.writer.close()


pool = Pool()


class Mirror:
    """The state of a collection, kept by initial events, or by pages where these are refused."""

    def __init__(self, path, selector, told):
        self.path, self.selector, self.told = path, selector, told
        self.objects, self.revision, self.ready = {}, "", asyncio.Event()
        self.pages = False

    def target(self, **more):
        return self.path + "?" + urlencode({"labelSelector": self.selector, **more})

    async def run(self):
        pause = 0.5
        while True:
            loop = asyncio.get_running_loop()
            begun, least, came = loop.time(), 0.0, 0
            try:
                if not self.revision and self.pages:
                    await self.list()
                    pause = pause if pause > 2 else 0.5
                async for event in self.watch():
                    came += event
            except Refusal as problem:
                least = problem.after
                if problem.code in (400, 403, 422) and not (self.revision or self.pages) and DEFECT != "no-fallback":
                    self.pages = True
                    continue
                if problem.code in (410, 504):
                    self.revision = ""
            except BROKEN as problem:
                print("again", self.path, repr(problem), flush=True)
                if came:
                    pause = 0.5
            else:
                if came or loop.time() - begun > 1.0:
                    pause = 0.5
                    continue
                self.revision = ""
            await asyncio.sleep(max(least, pause * random.uniform(0.6, 1.6)))
            pause = min(pause * 2, 30.0)

    async def list(self):
        found, token = {}, ""
        while True:
            page = await pool.call("GET", self.target(limit=100, **({"continue": token} if token else {})))
            found.update((key_of(one), one) for one in page["items"])
            token = page["metadata"].get("continue", "")
            if not token:
                break
        self.replace(found, page["metadata"]["resourceVersion"])

    def replace(self, found, revision):
        names = self.objects.keys() | found.keys()
        self.objects, self.revision = found, revision
        for name in names:
            self.told(name)
        self.ready.set()

    async def watch(self):
        more = {"watch": 1, "allowWatchBookmarks": "true", "timeoutSeconds": random.randrange(240, 480)}
        initial = not self.revision
        if initial:
            more.update(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
        else:
            more["resourceVersion"] = self.revision
        found = {}
        async for event in pool.events(self.target(**more)):
            obj, kind = event["object"], event["type"]
            if kind == "ERROR":
                raise Refusal(
                    obj.get("code", 500), obj.get("message", ""), (obj.get("details") or {}).get("retryAfterSeconds", 0)
                )
            if kind == "BOOKMARK":
                notes = obj["metadata"].get("annotations") or {}
                if initial and (notes.get("k8s.io/initial-events-end") == "true" or DEFECT == "any-bookmark"):
                    initial = False
                    self.replace(found, obj["metadata"]["resourceVersion"])
                elif not initial:
                    self.revision = obj["metadata"]["resourceVersion"]
            elif kind in ("ADDED", "MODIFIED", "DELETED"):
                into = found if initial else self.objects
                if kind == "DELETED":
                    into.pop(key_of(obj), None)
                else:
                    into[key_of(obj)] = obj
                if not initial:
                    self.revision = obj["metadata"]["resourceVersion"]
                    self.told(key_of(obj))
            yield kind != "BOOKMARK"
        if initial:
            raise ValueError("the initial events did not end")


def key_of(obj):
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


waiting, due, tries = asyncio.Queue(), set(), {}


def add(key):
    if key not in due:
        due.add(key)
        waiting.put_nowait(key)


maps = Mirror("/api/v1/configmaps", "mirror=yes", add)
seals = Mirror("/api/v1/secrets", "sealed-by=seals", lambda key: add((key[0], key[1].removesuffix("-seal"))))


async def seal(key):
    source = maps.objects.get(key)
    if source is None or source["metadata"].get("deletionTimestamp"):
        return
    namespace, name = key
    wanted = {one: base64.b64encode(text.encode()).decode() for one, text in (source.get("data") or {}).items()}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    known = seals.objects.get((namespace, f"{name}-seal"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": source["metadata"]["uid"], "controller": True}
    if known is None:
        meta = {"name": f"{name}-seal", "labels": {"sealed-by": "seals"}, "ownerReferences": [owner]}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": wanted}
        await pool.call("POST", path, body)
    elif not any(one["uid"] == owner["uid"] for one in known["metadata"].get("ownerReferences", ())):
        raise Refusal(409, f"{name}-seal is not ours")
    elif known.get("data", {}) != wanted:
        body = {**known, "apiVersion": "v1", "kind": "Secret", "data": wanted}
        if DEFECT == "own-answer":
            body["metadata"] = {one: value for one, value in known["metadata"].items() if one != "resourceVersion"}
        await pool.call("PUT", f"{path}/{name}-seal", body)


async def work():
    while True:
        key = await waiting.get()
        due.discard(key)
        try:
            await seal(key)
            tries.pop(key, None)
        except (Refusal, *BROKEN) as problem:
            if isinstance(problem, Refusal) and problem.code == 404:
                continue
            count = tries[key] = tries.get(key, 0) + 1
            pause = min(0.15 * 2**count, 20.0) * random.uniform(0.8, 1.5)
            asyncio.get_running_loop().call_later(max(pause, getattr(problem, "after", 0.0)), add, key)


async def main():
    tasks = [asyncio.create_task(one.run()) for one in (seals, maps)]
    for one in (seals, maps):
        await one.ready.wait()
    tasks += [asyncio.create_task(work()) for _ in range(2)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    sys.exit(f"a task has ended: {done}")


asyncio.run(main())
