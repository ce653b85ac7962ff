"""Gives Pods with a gate their label and condition: asyncio streams, a small HTTP/1.1 of its own, JSON patches.

KUBECONFIG=… python pods_raw.py            (DEFECT=NAME puts one in)
"""

import asyncio
import json
import os
import random
import ssl
import sys
import time
from base64 import b64decode
from pathlib import Path
from urllib.parse import urlsplit

import yaml

with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    CONFIG = yaml.safe_load(file)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
URL = urlsplit(CLUSTER["server"])
TLS = (
    ssl.create_default_context(cadata=b64decode(CLUSTER["certificate-authority-data"]).decode())
    if URL.scheme == "https"
    else None
)
DEFECT = os.environ.get("DEFECT", "")
IDLE = 10.0


class Bad(Exception):
    def __init__(self, code, text="", after=0.0):
        super().__init__(code, text[:200])
        self.code, self.after = code, after


async def exchange(method, target, body=None, kind="application/json"):
    """Yields the status and headers, and then pieces of the body."""
    reader, writer = await asyncio.wait_for(asyncio.open_connection(URL.hostname, URL.port, ssl=TLS, limit=1 << 16), IDLE)
    try:
        token = USER.get("token", "")
        if "tokenFile" in USER:
            token = Path(USER["tokenFile"]).read_text(encoding="utf-8").strip()
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {target} HTTP/1.1", f"Host: {URL.netloc}", "User-Agent: gatekeeper/0.9", "Accept: application/json"]
        lines += ["Connection: close", f"Content-Length: {len(data)}"]
        if data:
            lines.append(f"Content-Type: {kind}")
        if token:
            lines.append(f"Authorization: Bearer {token}")
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        await writer.drain()
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE)
        first, *rest = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
        yield int(first.split()[1]), headers
        idle = None if DEFECT == "sleeps" else IDLE
        if headers.get("transfer-encoding") == "chunked":
            while True:
                size = int((await asyncio.wait_for(reader.readline(), idle)).split(b";")[0] or b"0", 16)
                if size == 0:
                    return
                yield await asyncio.wait_for(reader.readexactly(size), idle)
                await asyncio.wait_for(reader.readexactly(2), idle)
        else:
            left = int(headers.get("content-length", -1))
            while left:
                piece = await asyncio.wait_for(reader.read(65536), idle)
                if not piece:
                    if left > 0:
                        raise ConnectionError("the answer is not complete")
                    return
                left -= len(piece)
                yield piece
    finally:
        writer.close()


TROUBLE = (OSError, ValueError, asyncio.IncompleteReadError, asyncio.TimeoutError, asyncio.LimitOverrunError, IndexError)


async def call(method, target, body=None, kind="application/json"):
    parts, status, headers = [], 0, {}
    async for one in exchange(method, target, body, kind):
        if status:
            parts.append(one)
        else:
            status, headers = one
    text = b"".join(parts)
    if status >= 400 or not status:
        after = headers.get("retry-after", "0")
        raise Bad(status, text.decode(errors="replace"), float(after) if after.isdigit() else 0.0)
    return json.loads(text)


PODS = "/api/v1/pods"
pods, wakes, failures = {}, asyncio.Queue(), {}


def name_of(pod):
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


async def follow():
    revision, delay = None, 0.4
    while True:
        begun, after, came = time.monotonic(), 0.0, False
        try:
            if revision is None:
                page = await call("GET", f"{PODS}?resourceVersion=0" if DEFECT != "unset" else PODS)
                revision = page["metadata"]["resourceVersion"]
                for name in pods.keys() - {name_of(pod) for pod in page["items"]}:
                    pods.pop(name)
                for pod in page["items"]:
                    pods[name_of(pod)] = pod
                    wakes.put_nowait(name_of(pod))
            target = (
                f"{PODS}?watch=1&allowWatchBookmarks=true&timeoutSeconds={random.randrange(100, 200)}&resourceVersion={revision}"
            )
            status, buffer = 0, b""
            async for one in exchange("GET", target):
                if not status:
                    status, headers = one
                    if status >= 400:
                        raise Bad(status, "", float(headers.get("retry-after", "0") or 0))
                    continue
                buffer += one
                *lines, buffer = buffer.split(b"\n")
                if DEFECT == "text-lines":
                    lines = [line for part in lines for line in part.decode().splitlines()]
                for line in lines:
                    event = json.loads(line)
                    obj = event["object"]
                    if event["type"] == "ERROR":
                        raise Bad(obj.get("code", 500), obj.get("message", ""))
                    if event["type"] not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                        continue
                    came = True
                    if DEFECT != "added-only" or event["type"] == "ADDED":
                        revision = obj["metadata"]["resourceVersion"]
                    if event["type"] == "BOOKMARK":
                        continue
                    if event["type"] == "DELETED":
                        pods.pop(name_of(obj), None)
                    else:
                        pods[name_of(obj)] = obj
                        wakes.put_nowait(name_of(obj))
            if DEFECT == "again":
                revision = None
            if came or time.monotonic() - begun > 1.0:
                delay = 0.4
                continue
            revision = None
        except Bad as problem:
            after = problem.after
            if problem.code in (410, 504) and DEFECT != "410-is-fatal":
                revision = None
            elif problem.code == 410:
                sys.exit(2)
            if DEFECT == "429-soon":
                after = 0.0
        except TROUBLE:
            if DEFECT == "trouble-ends":
                raise
        if came:
            delay = 0.4
        await asyncio.sleep(max(random.uniform(delay, 2 * delay), after) if DEFECT != "same-pause" else 0.5)
        delay = min(2 * delay, 20.0)


GATE = "gate.dev/open"


async def work():
    while True:
        name = await wakes.get()
        try:
            await look(name)
            failures.pop(name, None)
        except (Bad, *TROUBLE) as problem:
            if getattr(problem, "code", 0) == 404 and DEFECT != "404-again":
                continue
            failures[name] = failures.get(name, 0) + 1
            if DEFECT == "three-tries" and failures[name] >= 3:
                continue
            pause = min(0.1 * 2 ** failures[name], 12.0) * random.uniform(0.8, 1.6)
            if DEFECT == "404-again":
                pause = 0.9
            asyncio.get_running_loop().call_later(max(pause, getattr(problem, "after", 0.0)), wakes.put_nowait, name)


async def look(name):
    pod = pods.get(name)
    if pod is None:
        if DEFECT == "404-again" and failures.get(name):
            await call(
                "PATCH",
                f"/api/v1/namespaces/{name[0]}/pods/{name[1]}",
                [{"op": "add", "path": "/metadata/annotations", "value": {}}],
                "application/json-patch+json",
            )
        return
    if pod["metadata"].get("deletionTimestamp") or GATE not in [
        one["conditionType"] for one in pod["spec"].get("readinessGates") or ()
    ]:
        return
    target = f"/api/v1/namespaces/{name[0]}/pods/{name[1]}"
    labels = pod["metadata"].get("labels") or {}
    if "gate.dev/seen" not in labels:
        patch = [{"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]}]
        if DEFECT == "whole-labels":
            patch += [{"op": "add", "path": "/metadata/labels", "value": {"gate.dev/seen": "yes"}}]
        else:
            patch += [{"op": "add", "path": "/metadata/labels", "value": {}}] if "labels" not in pod["metadata"] else []
            if "labels" not in pod["metadata"]:
                patch.insert(1, {"op": "test", "path": "/metadata/resourceVersion", "value": pod["metadata"]["resourceVersion"]})
            patch += [{"op": "add", "path": "/metadata/labels/gate.dev~1seen", "value": "yes"}]
        await call("PATCH", target, patch, "application/json-patch+json")
    conditions = pod.get("status", {}).get("conditions") or []
    if not any(one["type"] == GATE and one["status"] == "True" for one in conditions):
        body = {"status": {"conditions": [{"type": GATE, "status": "True", "reason": "Opened"}]}}
        kind = "application/strategic-merge-patch+json" if DEFECT != "merges" else "application/merge-patch+json"
        await call("PATCH", f"{target}/status", body, kind)


async def main():
    await asyncio.gather(follow(), work(), work())


asyncio.run(main())
