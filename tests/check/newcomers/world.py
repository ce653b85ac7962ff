"""Runs Pods for each Widget: a watch only wakes it, then it lists everything from storage and compares. urllib and threads.

KUBECONFIG=… python world.py            (DEFECT=NAME puts one in)
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import random
import ssl
import threading
import time
import traceback
import urllib.error
import urllib.request
from base64 import b64decode
from urllib.parse import quote

import yaml

with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    CONFIG = yaml.safe_load(file)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
DEFECT = os.environ.get("DEFECT", "")
TLS = (
    ssl.create_default_context(cadata=b64decode(CLUSTER["certificate-authority-data"]).decode())
    if CLUSTER["server"].startswith("https")
    else None
)
LABEL = "world.dev/widget"
wakes: queue.Queue[str] = queue.Queue()


class Later(Exception):
    def __init__(self, text, after=0.0, code=0):
        super().__init__(text)
        self.after, self.code = after, code


def request(method, path, body=None, kind="application/json", timeout=10.0):
    headers = {"User-Agent": "world/7", "Accept": "application/json"}
    token = USER.get("token")
    if "tokenFile" in USER:
        with open(USER["tokenFile"], encoding="utf-8") as file:
            token = file.read().strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = kind
    try:
        return urllib.request.urlopen(
            urllib.request.Request(CLUSTER["server"] + path, data, headers, method=method), timeout=timeout, context=TLS
        )
    except urllib.error.HTTPError as problem:
        with problem:
            text = problem.read().decode(errors="replace")
        after = problem.headers.get("Retry-After") or "0"
        raise Later(
            f"{method} {path}: {problem.code} {text[:300]}", float(after) if after.isdigit() else 0.0, problem.code
        ) from None
    except (OSError, ValueError, http.client.HTTPException) as problem:
        raise Later(f"{method} {path}: {problem}") from None


def call(method, path, body=None, kind="application/json"):
    try:
        with request(method, path, body, kind) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException) as problem:
        raise Later(f"{method} {path}: {problem}") from None


def everything(path, **query):
    items, token = [], ""
    while True:
        text = "&".join(f"{name}={quote(value)}" for name, value in query.items())
        page = call("GET", f"{path}?limit=300&{text}" + (f"&continue={quote(token)}" if token else ""))
        items += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            return items, page["metadata"]["resourceVersion"]


WIDGETS = "/apis/checked.dev/v1/widgets"


def reconcile():
    widgets, _ = everything(WIDGETS)
    pods, _ = everything("/api/v1/pods", labelSelector=LABEL)
    problems = []
    for widget in widgets:
        try:
            one(widget, [pod for pod in pods if pod["metadata"]["labels"][LABEL] == widget["metadata"]["uid"]])
        except Later as problem:
            problems.append(problem)
    known = {widget["metadata"]["uid"] for widget in widgets}
    for pod in pods:
        if pod["metadata"]["labels"][LABEL] not in known and not pod["metadata"].get("deletionTimestamp"):
            try:
                drop(pod)
            except Later as problem:
                problems.append(problem)
    if problems:
        raise max(problems, key=lambda problem: problem.after)


def drop(pod):
    metadata = pod["metadata"]
    options = {"preconditions": {"uid": metadata["uid"]}, "gracePeriodSeconds": 0}
    try:
        call("DELETE", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", options)
    except Later as problem:
        if problem.code not in (404, 409) or DEFECT == "delete-fatal":
            if DEFECT == "delete-fatal":
                os._exit(3)
            raise


def one(widget, pods):
    metadata = widget["metadata"]
    if metadata.get("deletionTimestamp"):
        return
    place = f"/api/v1/namespaces/{metadata['namespace']}"
    alive = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    wanted = 2
    for _ in range(wanted - len(alive)):
        labels = {LABEL: metadata["uid"], "world.dev/name": metadata["name"]}
        owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"containers": [{"name": "main", "image": "world:1"}]}
        body = {"metadata": {"generateName": f"{metadata['name']}-", "labels": labels, "ownerReferences": [owner]}, "spec": spec}
        for _ in range(3 if DEFECT == "resends" else 1):
            try:
                call("POST", f"{place}/pods", body)
                break
            except Later:
                if DEFECT != "resends":
                    raise
    count = max(len(alive), wanted)
    if (widget.get("status") or {}).get("size") != count:
        path = f"{place.replace('/api/v1', '/apis/checked.dev/v1')}/widgets/{metadata['name']}/status"
        if DEFECT == "status-put":
            try:
                call(
                    "PUT",
                    path,
                    {
                        **widget,
                        "metadata": {k: v for k, v in metadata.items() if k != "resourceVersion"},
                        "status": {"size": count},
                    },
                )
            except Later as problem:
                if problem.code != 404:
                    raise
            return
        body = [{"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}]
        body += [{"op": "add", "path": "/status", "value": {**(widget.get("status") or {}), "size": count}}]
        try:
            call("PATCH", path, body, "application/json-patch+json")
        except Later as problem:
            if problem.code not in (404, 422):
                raise


def worker():
    failures = 0
    while True:
        wakes.get()
        time.sleep(0.05)
        while not wakes.empty():
            wakes.get_nowait()
        try:
            reconcile()
            failures = 0
        except Later as problem:
            failures += 1
            if DEFECT == "forgets":
                continue
            print("later:", problem, flush=True)
            pause = min(0.3 * 2**failures, 20.0) * random.uniform(0.6, 1.3)
            if DEFECT == "steady":
                pause = 0.25
            if DEFECT != "ignores-after":
                pause = max(pause, problem.after)
            time.sleep(pause)
            wakes.put("again")
        except Exception:
            traceback.print_exc()
            os._exit(1)


def watch(path, selector=""):
    """Wakes the worker whenever something happens. After any interruption it wakes it, too, so that nothing is missed."""
    pause, revision = 0.6, ""
    query = f"&labelSelector={selector}" if selector else ""
    while True:
        begun, count = time.monotonic(), 0
        try:
            if not revision:
                revision = call("GET", f"{path}?limit=1{query}")["metadata"]["resourceVersion"]
                wakes.put("start")
            with request(
                "GET",
                f"{path}?watch=true&resourceVersion={revision}&allowWatchBookmarks=true&timeoutSeconds=280{query}",
                timeout=None if DEFECT == "no-timeout" else 14.0,
            ) as stream:
                for line in stream:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        if DEFECT != "same-revision":
                            revision = ""
                        raise Later(f"watch {path}: {event['object'].get('message')}", 0.0, event["object"].get("code") or 0)
                    if event["type"] not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                        continue
                    count += 1
                    revision = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        wakes.put("event")
            if DEFECT == "watch-once":
                return
            if not count and time.monotonic() - begun < 1.0:
                revision = ""
                raise Later("nothing came")
            pause = 0.6
            continue
        except (Later, OSError, ValueError, http.client.HTTPException) as problem:
            after = getattr(problem, "after", 0.0)
            if getattr(problem, "code", 0) in (410, 504) and DEFECT != "same-revision":
                revision = ""
            if DEFECT == "dies-401" and getattr(problem, "code", 0) == 401:
                os._exit(4)
        if time.monotonic() - begun > 5.0 or count:
            pause = 0.6
        time.sleep(0.0 if DEFECT == "hot" else max(pause * random.uniform(0.6, 1.4), after))
        pause = min(pause * 2, 25.0)


threading.Thread(target=worker, daemon=True).start()
threading.Thread(target=watch, args=("/api/v1/pods", LABEL), daemon=True).start()
watch(WIDGETS)
threading.Event().wait()
