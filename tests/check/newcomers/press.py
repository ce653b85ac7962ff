"""Prints Presses: a ConfigMap for each page, a status, a finalizer. requests, threads, a queue; PUT for all writes.

KUBECONFIG=… python press.py            (DEFECT=NAME puts one in)
"""

import base64
import heapq
import json
import os
import random
import tempfile
import threading
import time

import requests
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    CONFIG = yaml.safe_load(file)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
PRESSES, MAPS = "/apis/print.example.com/v1/presses", "/api/v1/configmaps"
FINALIZER, LABEL = "print.example.com/pages", "print.example.com/press"
VERIFY = True
if "certificate-authority-data" in CLUSTER:
    with tempfile.NamedTemporaryFile("wb", suffix=".crt", delete=False) as held:
        held.write(base64.b64decode(CLUSTER["certificate-authority-data"]))
    VERIFY = held.name
TROUBLE = (requests.RequestException, ValueError, OSError)


class Refused(Exception):
    def __init__(self, code, message, after=0.0):
        super().__init__(f"{code} {message[:150]}")
        self.code, self.after = code, after


class Api:
    def __init__(self):
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = VERIFY
        self.session.headers.update({"User-Agent": "press/0.7", "Accept": "application/json"})

    def send(self, method, path, body=None, stream=False, timeout=10, **query):
        token = USER.get("token")
        if "tokenFile" in USER:
            with open(USER["tokenFile"], encoding="utf-8") as file:
                token = file.read().strip()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.session.request(
            method, CLUSTER["server"] + path, params=query, json=body, headers=headers, stream=stream, timeout=timeout
        )
        if answer.status_code >= 400:
            after = answer.headers.get("Retry-After", "")
            raise Refused(answer.status_code, answer.text, float(after) if after.isdigit() else 0.0)
        return answer

    def call(self, method, path, body=None, **query):
        return self.send(method, path, body, **query).json()


class Cache(threading.Thread):
    def __init__(self, path, query, notify):
        super().__init__(daemon=True)
        self.path, self.query, self.notify = path, query, notify
        self.items, self.revision, self.synced = {}, "", threading.Event()
        self.api = Api()

    def run(self):
        delay = 0.5
        while True:
            least, begun, came = 0.0, time.monotonic(), 0
            try:
                if not self.revision:
                    self.list()
                for _ in self.watch():
                    came += 1
                if came or time.monotonic() - begun > 2:
                    delay = 0.5
                    continue
                self.revision = ""
            except Refused as refused:
                least = refused.after
                if refused.code in (410, 504) and DEFECT != "old-revision":
                    self.revision = ""
            except TROUBLE as trouble:
                if isinstance(trouble, requests.ConnectionError) and "Read timed out" in str(trouble):
                    continue
                print(self.path, repr(trouble)[:200], flush=True)
            if came:
                delay = 0.5
            time.sleep(max(least, delay * random.uniform(0.6, 1.4)))
            delay = min(2 * delay, 30)

    def list(self):
        found, token = {}, ""
        while True:
            more = {"continue": token} if token else {}
            page = self.api.call("GET", self.path, limit=100, **self.query, **more)
            if DEFECT == "last-page":
                found = {}
            for one in page["items"]:
                found[key_of(one)] = one
            token = page["metadata"].get("continue")
            if not token:
                break
        old, self.items = self.items, found
        self.revision = page["metadata"]["resourceVersion"]
        self.synced.set()
        for one in [*(old[key] for key in old.keys() - found.keys()), *found.values()]:
            self.notify(one)

    def watch(self):
        query = {
            **self.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.revision,
            "timeoutSeconds": random.randint(200, 300),
        }
        with self.api.send("GET", self.path, stream=True, timeout=(10, 20), **query) as answer:
            for line in answer.iter_lines(chunk_size=None, delimiter=b"\n"):
                if not line:
                    continue
                event = json.loads(line)
                kind, one = event["type"], event["object"]
                if kind == "ERROR":
                    raise Refused(
                        one.get("code", 500), one.get("message", ""), (one.get("details") or {}).get("retryAfterSeconds", 0)
                    )
                if kind == "DELETED":
                    self.items.pop(key_of(one), None)
                elif kind in ("ADDED", "MODIFIED"):
                    self.items[key_of(one)] = one
                elif kind != "BOOKMARK":
                    continue
                self.revision = one["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    self.notify(one)
                yield kind


def key_of(one):
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


class Queue:
    def __init__(self):
        self.changed, self.heap, self.due, self.busy, self.failures = threading.Condition(), [], {}, set(), {}

    def add(self, key, delay=0.0):
        with self.changed:
            at = time.monotonic() + delay
            if at < self.due.get(key, float("inf")):
                self.due[key] = at
                heapq.heappush(self.heap, (at, key))
                self.changed.notify_all()

    def take(self):
        with self.changed:
            while True:
                now, wait, skipped = time.monotonic(), None, []
                found = None
                while self.heap:
                    at, key = heapq.heappop(self.heap)
                    if self.due.get(key) != at:
                        continue
                    if at > now:
                        heapq.heappush(self.heap, (at, key))
                        wait = at - now
                        break
                    if key in self.busy:
                        skipped.append((at, key))
                        continue
                    found = key
                    break
                for one in skipped:
                    heapq.heappush(self.heap, one)
                if found:
                    del self.due[found]
                    self.busy.add(found)
                    return found
                self.changed.wait(wait)

    def done(self, key, trouble=None):
        with self.changed:
            self.busy.discard(key)
            self.changed.notify_all()
            if trouble is None:
                self.failures.pop(key, None)
                return
            count = self.failures[key] = self.failures.get(key, 0) + 1
        delay = min(0.2 * 2**count, 20) * random.uniform(0.75, 1.25)
        if DEFECT == "each-second":
            delay = 1.0
        self.add(key, max(delay, getattr(trouble, "after", 0.0)))


queue = Queue()


def of_map(one):
    label = one["metadata"].get("labels", {}).get(LABEL)
    if label:
        queue.add(f"{one['metadata']['namespace']}/{label}")


presses = Cache(PRESSES, {}, lambda one: queue.add(key_of(one)))
maps = Cache(MAPS, {"labelSelector": LABEL}, of_map)
handled = {}


def owned(one, uid):
    return any(ref.get("uid") == uid and ref.get("controller") for ref in one["metadata"].get("ownerReferences", ()))


def fresh(api, path):
    try:
        return api.call("GET", path)
    except Refused as refused:
        if refused.code == 404:
            return None
        raise


def reconcile(api, key):
    namespace, name = key.split("/")
    press = presses.items.get(key)
    if press is None:
        return
    metadata, spec = press["metadata"], press.get("spec") or {}
    here = f"/apis/print.example.com/v1/namespaces/{namespace}/presses/{name}"
    there = f"/api/v1/namespaces/{namespace}/configmaps"
    uid = metadata["uid"]
    if DEFECT == "generation-only" and handled.get(uid) == metadata["generation"]:
        return
    # what is in storage now: the cache may be behind one's own writes
    selector = {"labelSelector": f"{LABEL}={name}"}
    own = {one["metadata"]["name"]: one for one in api.call("GET", there, **selector)["items"] if owned(one, uid)}
    finalizers = metadata.get("finalizers") or []
    if metadata.get("deletionTimestamp"):
        if FINALIZER in finalizers:
            for one in own.values():
                remove(api, there, one)
            body = {**press, "metadata": {**metadata, "finalizers": [one for one in finalizers if one != FINALIZER]}}
            try:
                api.call("PUT", here, body)
            except Refused as refused:
                if refused.code != 404:
                    raise
        return
    if FINALIZER not in finalizers:
        press = api.call("PUT", here, {**press, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}})
        metadata = press["metadata"]
    pages = spec.get("pages") or {}
    if DEFECT != "page-stays":
        for one in own.values():
            if one["metadata"]["name"].removeprefix(f"{name}-") not in pages:
                remove(api, there, one)
    for page, text in pages.items():
        child = f"{name}-{page}"
        old = own.get(child)
        data = {
            "text": text,
            "copies": str(spec.get("copies", 1)),
            "draft": "true" if spec.get("draft", True) else "false",
            "tags": ",".join(spec.get("tags") or ()),
        }
        if old is None:
            reference = {
                "apiVersion": "print.example.com/v1",
                "kind": "Press",
                "name": name,
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
            head = {"name": child, "namespace": namespace, "labels": {LABEL: name}, "ownerReferences": [reference]}
            api.call("POST", there, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": data})
            continue
        if DEFECT == "if-copies" and not spec.get("copies"):
            data["copies"] = old.get("data", {}).get("copies", "1")
        if DEFECT == "if-draft" and not spec.get("draft"):
            data["draft"] = old.get("data", {}).get("draft", "true")
        if DEFECT == "tags-add":
            before = [tag for tag in old.get("data", {}).get("tags", "").split(",") if tag]
            data["tags"] = ",".join(dict.fromkeys([*before, *(spec.get("tags") or ())]))
        if {key: old.get("data", {}).get(key) for key in data} == data:
            continue
        body = {**old, "data": {**old.get("data", {}), **data}}
        if DEFECT == "no-version":
            body["metadata"] = {key: value for key, value in old["metadata"].items() if key != "resourceVersion"}
        if DEFECT == "own-shape":
            kept = ("name", "namespace", "resourceVersion", "ownerReferences")
            body["metadata"] = {"labels": {LABEL: name}, **{key: old["metadata"][key] for key in kept}}
        api.call("PUT", f"{there}/{child}", body)
    status = {**press.get("status", {}), "pages": len(pages), "observedGeneration": metadata["generation"]}
    if status != press.get("status"):
        api.call("PUT", f"{here}/status", {**press, "status": status})
    handled[uid] = metadata["generation"]


def remove(api, there, one):
    options = {"preconditions": {"uid": one["metadata"]["uid"]}}
    try:
        api.call("DELETE", f"{there}/{one['metadata']['name']}", options)
    except Refused as refused:
        if refused.code not in (404, 409):
            raise


def work():
    api = Api()
    while True:
        key = queue.take()
        try:
            reconcile(api, key)
            queue.done(key)
        except Refused as refused:
            print(key, refused, flush=True)
            swallowed = DEFECT == "swallow-429" and refused.code == 429
            queue.done(key, None if swallowed else refused)
        except TROUBLE as trouble:
            print(key, repr(trouble)[:200], flush=True)
            queue.done(key, trouble)


presses.start()
maps.start()
presses.synced.wait()
maps.synced.wait()
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
while True:
    time.sleep(60)
