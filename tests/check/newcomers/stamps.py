"""Stamps ConfigMaps with the digest of their data, and keeps an index of them in another one. requests and threads.

KUBECONFIG=… python stamps.py            (DEFECT=NAME puts one in)
"""

import base64
import hashlib
import json
import os
import random
import tempfile
import threading
import time

import requests
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as stream:
    CONFIG = yaml.safe_load(stream)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
SERVER = CLUSTER["server"]
CA = None
if "certificate-authority-data" in CLUSTER:
    CA = os.path.join(tempfile.mkdtemp(), "ca.crt")
    with open(CA, "wb") as stream:
        stream.write(base64.b64decode(CLUSTER["certificate-authority-data"]))
NOTE = "stamps.dev/sha"


class Problem(Exception):
    def __init__(self, code, text, after=0.0):
        super().__init__(f"{code} {text}")
        self.code, self.after = code, after


class Session(threading.local):
    def __init__(self):
        self.http = requests.Session()
        self.http.headers["User-Agent"] = "stamps/0.3"
        self.http.trust_env = False
        if CA:
            self.http.verify = CA


local = Session()


def send(method, path, *, idle=9.0, **options):
    headers = options.pop("headers", {})
    token = USER.get("token")
    if "tokenFile" in USER:
        with open(USER["tokenFile"], encoding="utf-8") as stream:
            token = stream.read().strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    answer = local.http.request(method, SERVER + path, headers=headers, timeout=(5, idle), **options)
    if answer.status_code >= 400:
        after = answer.headers.get("Retry-After", "")
        with answer:
            raise Problem(answer.status_code, answer.text[:200], float(after) if after.isdigit() else 0.0)
    return answer


known, lock, wake = {}, threading.Lock(), threading.Condition()
dirty, not_before, failures = set(), {}, {}


def mark(key, after=0.0):
    with wake:
        not_before[key] = time.monotonic() + after
        dirty.add(key)
        wake.notify()


def key_of(obj):
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def read_all():
    items, token = {}, None
    while True:
        query = {"labelSelector": "mirror=yes", "limit": 50}
        if token:
            query["continue"] = token
        page = send("GET", "/api/v1/configmaps", params=query).json()
        items.update((key_of(one), one) for one in page["items"])
        token = page["metadata"].get("continue")
        if not token:
            return items, page["metadata"]["resourceVersion"]


def lines_of(answer):
    if DEFECT == "unicode-lines":
        answer.encoding = "utf-8"
        yield from answer.iter_lines(chunk_size=2048, decode_unicode=True)
        return
    rest = b""
    for chunk in answer.iter_content(chunk_size=None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def follow():
    revision, pause = None, 0.5
    while True:
        started, seen, least = time.monotonic(), 0, 0.0
        try:
            if revision is None:
                items, revision = read_all()
                with lock:
                    changed = known.keys() | items.keys()
                    known.clear()
                    known.update(items)
                for key in changed:
                    mark(key)
                if DEFECT == "from-now":
                    revision = ""
            query = {"labelSelector": "mirror=yes", "watch": "true", "allowWatchBookmarks": "true"}
            query |= {"resourceVersion": revision, "timeoutSeconds": random.randint(180, 360)}
            with send("GET", "/api/v1/configmaps", params=query, stream=True) as answer:
                for line in lines_of(answer):
                    event = json.loads(line)
                    obj = event["object"]
                    if event["type"] == "ERROR":
                        raise Problem(obj.get("code", 500), obj.get("message", ""))
                    if event["type"] not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                        continue
                    revision = obj["metadata"]["resourceVersion"]
                    if event["type"] == "BOOKMARK":
                        continue
                    seen += 1
                    with lock:
                        known.pop(key_of(obj), None) if event["type"] == "DELETED" else known.update({key_of(obj): obj})
                    mark(key_of(obj))
            if seen or time.monotonic() - started > 1.0:
                pause = 0.5
                continue
            revision = None
        except Problem as problem:
            if problem.code in (410, 504) and DEFECT != "http-410":
                revision = None
            least = problem.after
        except (requests.RequestException, OSError, ValueError):
            if seen or time.monotonic() - started > 8.0:
                pause = 0.5
        time.sleep(max(least, random.uniform(pause * 0.7, pause * 1.6)))
        pause = min(pause * 2, 30.0)


def digest(obj):
    return hashlib.sha256(json.dumps([obj.get("data"), obj.get("binaryData")], sort_keys=True).encode()).hexdigest()[:16]


def stamp(key):
    with lock:
        obj = known.get(key)
    namespace, name = key
    if obj is not None and not obj["metadata"].get("deletionTimestamp"):
        wanted = digest(obj)
        if (obj["metadata"].get("annotations") or {}).get(NOTE) != wanted:
            meta = {"annotations": {NOTE: wanted}, "resourceVersion": obj["metadata"]["resourceVersion"]}
            kind = {"Content-Type": "application/merge-patch+json"}
            path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
            for _ in range(40 if DEFECT == "same-again" else 1):
                try:
                    send("PATCH", path, json={"metadata": meta}, headers=kind)
                    break
                except Problem as problem:
                    if problem.code == 404:
                        break
                    if problem.code != 409 or DEFECT != "same-again":
                        raise
                    time.sleep(0.2)
    index(key, obj)


def index(key, obj):
    """Keeps the line of an object in the index of its namespace."""
    namespace, name = key
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    entry = digest(obj) if obj is not None else None
    try:
        there = send("GET", f"{path}/stamps-index").json()
    except Problem as problem:
        if problem.code != 404:
            raise
        if entry is None:
            return
        try:
            send("POST", path, json={"metadata": {"name": "stamps-index"}, "data": {name: entry}})
        except Problem as problem:
            if problem.code != 409:
                raise
            mark(key, 0.2)
        return
    if (there.get("data") or {}).get(name) == entry:
        return
    meta = {"resourceVersion": there["metadata"]["resourceVersion"]}
    if DEFECT == "index-whole":
        data = {**(there.get("data") or {}), name: entry}
        body = {"metadata": {"name": "stamps-index"}, "data": {one: text for one, text in data.items() if text}}
        send("PUT", f"{path}/stamps-index", json=body)
        return
    kind = {"Content-Type": "application/merge-patch+json"}
    send("PATCH", f"{path}/stamps-index", json={"metadata": meta, "data": {name: entry}}, headers=kind)


def work():
    while True:
        with wake:
            now = time.monotonic()
            ready = [key for key in dirty if not_before[key] <= now]
            if not ready:
                soon = min((not_before[key] for key in dirty), default=now + 5)
                wake.wait(max(soon - now, 0.01))
                continue
            key = ready[0]
            dirty.discard(key)
        try:
            stamp(key)
            failures.pop(key, None)
        except (Problem, requests.RequestException, OSError, ValueError) as problem:
            count = failures[key] = failures.get(key, 0) + 1
            pause = min(0.2 * 2**count, 30.0) * random.uniform(0.7, 1.5)
            mark(key, max(pause, getattr(problem, "after", 0.0)))


threading.Thread(target=follow, daemon=True).start()
work()
