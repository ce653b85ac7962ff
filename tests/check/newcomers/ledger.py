"""Copies each selected ConfigMap into a Secret. http.client, watches of metadata only, a limit of requests, a resync.

KUBECONFIG=… python ledger.py            (DEFECT=NAME puts one in)

The cache has metadata only; a worker reads the ConfigMap before it applies the Secret. A bucket of tokens limits the requests of the
whole process, as client-go's flow control does; each half minute all known objects are looked at again.
"""

import base64
import heapq
import http.client
import json
import os
import random
import ssl
import threading
import time
from urllib.parse import quote, urlsplit

import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as config:
    CONFIG = yaml.safe_load(config)
SERVER, USER = urlsplit(CONFIG["clusters"][0]["cluster"]["server"]), CONFIG["users"][0]["user"]
TLS = None
if SERVER.scheme == "https":
    TLS = ssl.create_default_context(
        cadata=base64.b64decode(CONFIG["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    )
META = "application/json;as={};g=meta.k8s.io;v=v1,application/json"
SELECTED = "mirror=yes"
MANAGER = "ledger"


class Refused(Exception):
    def __init__(self, code, reason="", after=0.0, more=""):
        super().__init__(f"{code} {reason}")
        self.code, self.after, self.more = code, after, more


TROUBLE = (OSError, http.client.HTTPException, ValueError, Refused)


class Bucket:
    """Ten requests a second, twenty at once."""

    def __init__(self, rate=10.0, burst=20):
        self.rate, self.burst, self.lock = rate, burst, threading.Lock()
        self.tokens, self.at = float(burst), time.monotonic()

    def take(self):
        with self.lock:
            now = time.monotonic()
            self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate) - 1
            self.at = now
            lacking = -self.tokens / self.rate
        if lacking > 0:
            time.sleep(lacking)


BUCKET = Bucket()
FIRST_TOKEN = []


def token(writing=False):
    if "tokenFile" not in USER:
        return USER.get("token", "")
    with open(USER["tokenFile"], encoding="utf-8") as file:
        found = file.read().strip()
    if DEFECT == "writer-old-token" and writing:
        FIRST_TOKEN.append(found)
        return FIRST_TOKEN[0]
    return found


def seconds_of(value):
    if DEFECT == "retry-after-date" and value:
        return float(int(value))
    return float(value) if value and value.isdigit() else 0.0


def open_request(method, path, body=None, kind="application/json", accept="application/json", idle=12.0):
    BUCKET.take()
    if TLS:
        connection = http.client.HTTPSConnection(SERVER.netloc, timeout=idle, context=TLS)
    else:
        connection = http.client.HTTPConnection(SERVER.netloc, timeout=idle)
    sent = {"User-Agent": "ledger/1.4 (checked.dev)", "Accept": accept, "Authorization": "Bearer " + token(method != "GET")}
    if body is not None:
        sent["Content-Type"] = kind
    try:
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=sent)
        answer = connection.getresponse()
        if answer.status >= 300:
            after = seconds_of(answer.headers.get("Retry-After", ""))
            text = answer.read()
            try:
                status = json.loads(text)
                reason, more = status.get("reason", ""), (status.get("metadata") or {}).get("continue", "")
            except (ValueError, AttributeError):
                reason = more = ""
            raise Refused(answer.status, reason, after, more)
        return connection, answer
    except BaseException:
        connection.close()
        raise


def call(method, path, body=None, kind="application/json", accept="application/json"):
    connection, answer = open_request(method, path, body, kind, accept)
    try:
        return json.loads(answer.read())
    finally:
        connection.close()


class Queue:
    """Keys that are due, each at most once; a key that fails waits twice as long each time."""

    def __init__(self):
        self.due, self.heap, self.busy, self.again, self.failures = {}, [], set(), set(), {}
        self.ready = threading.Condition()

    def add(self, key, delay=0.0):
        with self.ready:
            at = time.monotonic() + delay
            if key in self.busy and not delay:
                self.again.add(key)
                return
            if key not in self.due or at < self.due[key]:
                self.due[key] = at
                heapq.heappush(self.heap, (at, key))
                self.ready.notify()

    def get(self):
        with self.ready:
            while True:
                now = time.monotonic()
                while self.heap and (self.due.get(self.heap[0][1]) != self.heap[0][0]):
                    heapq.heappop(self.heap)
                if self.heap and self.heap[0][0] <= now:
                    key = heapq.heappop(self.heap)[1]
                    del self.due[key]
                    self.busy.add(key)
                    return key
                self.ready.wait(self.heap[0][0] - now if self.heap else None)

    def done(self, key, failed=False, least=0.0):
        with self.ready:
            self.busy.discard(key)
            again = key in self.again
            self.again.discard(key)
            count = self.failures[key] = self.failures.get(key, 0) + 1 if failed else 0
            if not count:
                del self.failures[key]
        if failed:
            self.add(key, max(least, min(30.0, 0.25 * 2 ** (count - 1)) * random.uniform(0.7, 1.4)))
        elif again:
            self.add(key)


QUEUE = Queue()


class Informer(threading.Thread):
    def __init__(self, path, selector, tell):
        super().__init__(daemon=True)
        self.path, self.selector, self.tell = path, selector, tell
        self.store, self.synced, self.revision, self.handled = {}, threading.Event(), "", {}

    def query(self, **more):
        parts = [f"{name}={quote(str(value), safe='')}" for name, value in more.items()]
        wide = (DEFECT == "list-selector" and "watch" in more) or (DEFECT == "page-selector" and "continue" in more)
        if self.selector and not wide:
            parts.append("labelSelector=" + quote(self.selector, safe=""))
        return self.path + "?" + "&".join(parts)

    def run(self):
        delay = 0.8
        while True:
            begun, least = time.monotonic(), 0.0
            try:
                if not self.revision:
                    self.list()
                if self.watch() or time.monotonic() - begun > 1.5:
                    delay = 0.8
                    continue
                self.revision = ""
            except TimeoutError:
                delay = 0.8
            except Refused as refused:
                least = refused.after
                if refused.code == 401 and DEFECT == "401-spins":
                    continue
                if refused.code in (410, 504):
                    self.revision = ""
            except KeyError as error:
                print("bug", repr(error), flush=True)
                os._exit(1)
            except TROUBLE as trouble:
                print(self.path, repr(trouble), flush=True)
                if DEFECT == "retry-after-date" and "int()" in repr(trouble):
                    os._exit(1)
            if time.monotonic() - begun > 8.0:
                delay = 0.8
            time.sleep(max(least, delay * random.uniform(0.5, 1.5)))
            delay = min(delay * 2, 30.0)

    def list(self):
        found, more = {}, ""
        while True:
            query = self.query(limit=3, **({"continue": more} if more else {}))
            try:
                page = call("GET", query, accept=META.format("PartialObjectMetadataList"))
            except Refused as refused:
                if refused.code == 410 and more and DEFECT == "inconsistent-revision" and refused.more:
                    more = refused.more
                    continue
                if refused.code == 410 and more:  # the token has expired: the whole list, at once
                    page = call("GET", self.query(), accept=META.format("PartialObjectMetadataList"))
                    found = {}
                else:
                    raise
            for item in page.get("items") or []:  # null in a list of metadata without items
                found[key_of(item)] = item["metadata"]
            more = page["metadata"].get("continue", "")
            if not more:
                break
        before, self.store = self.store, found
        for key in before.keys() | found.keys():
            if before.get(key) != found.get(key):
                self.tell(key, found.get(key) or before[key])
        self.revision = page["metadata"]["resourceVersion"]
        self.synced.set()

    def watch(self):
        query = self.query(
            watch=1, allowWatchBookmarks="true", timeoutSeconds=random.randint(240, 420), resourceVersion=self.revision
        )
        connection, answer = open_request("GET", query, accept=META.format("PartialObjectMetadata"), idle=11.0)
        delivered = 0
        try:
            while line := answer.readline():
                if not line.endswith(b"\n"):
                    raise http.client.IncompleteRead(line)
                event = json.loads(line)
                kind, one = event.get("type"), event.get("object") or {}
                if kind == "ERROR":
                    code = one["code"] if DEFECT == "status-no-code" else one.get("code") or 500
                    raise Refused(code, one.get("reason", ""))
                if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                    continue
                self.revision = one["metadata"]["resourceVersion"]
                if kind == "BOOKMARK":
                    continue
                delivered += 1
                key = key_of(one)
                if kind == "DELETED":
                    self.store.pop(key, None)
                else:
                    self.store[key] = one["metadata"]
                if DEFECT == "drops-burst":
                    now = time.monotonic()
                    if now - self.handled.get(key, 0.0) < 0.5:
                        continue
                    self.handled[key] = now
                self.tell(key, one["metadata"])
            if answer.chunked is False and answer.length:
                raise http.client.IncompleteRead(b"")
        finally:
            connection.close()
        return delivered


SPACES = {}


def key_of(one):
    meta = one["metadata"]
    if DEFECT == "key-no-namespace":  # the last one of this name is the one
        SPACES[meta["name"]] = meta.get("namespace", "")
        return ("", meta["name"])
    return (meta.get("namespace", ""), meta["name"])


def tell_source(key, meta):
    if DEFECT == "thread-per-event":
        body = None
        try:
            body = call("GET", f"/api/v1/namespaces/{key[0]}/configmaps/{key[1]}")
        except TROUBLE:
            QUEUE.add(key)
            return
        threading.Thread(target=retried, args=(key, body), daemon=True).start()
    else:
        QUEUE.add(key)


def retried(key, body):
    pause = 0.3
    while True:
        try:
            return reconcile(key, body)
        except TROUBLE as trouble:
            time.sleep(max(getattr(trouble, "after", 0.0), pause * random.uniform(0.6, 1.4)))
            pause = min(pause * 2, 20.0)


def tell_secret(key, meta):
    if DEFECT in ("thread-per-event", "drops-burst"):
        return
    for owner in meta.get("ownerReferences") or []:
        if owner["kind"] == "ConfigMap":
            QUEUE.add((key[0], owner["name"]))


LAST = {}


def reconcile(key, body=None):
    if key not in SOURCES.store:
        return
    namespace, name = key
    namespace = namespace or SPACES[name]
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}-ledger"
    source = body
    if source is None:
        try:
            source = call("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except Refused as refused:
            if refused.code == 404:
                return
            raise
    meta = source["metadata"]
    if meta.get("deletionTimestamp"):
        return
    data = source.get("data") or {}
    wanted = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    wanted["size"] = base64.b64encode(str(sum(map(len, data.values()))).encode()).decode()
    wanted["origin"] = base64.b64encode(f"{namespace}/{name}".encode()).decode()
    child = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{name}-ledger",
            "namespace": namespace,
            "labels": {"ledger": "copy"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": meta["uid"], "controller": True}],
        },
        "data": wanted,
    }
    digest = json.dumps(wanted, sort_keys=True)
    known = SECRETS.store.get((key[0], f"{name}-ledger"))
    owned = bool(known) and any(one["uid"] == meta["uid"] for one in known.get("ownerReferences") or [])
    if known and not owned and known.get("labels", {}).get("ledger") != "copy":
        return  # somebody else's
    if known and not owned:
        if known.get("deletionTimestamp"):
            return
        try:
            call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": known["uid"]}})
        except Refused as refused:
            if refused.code not in (404, 409):
                raise
        raise Refused(409, "an older copy is there")
    if owned and LAST.get(key) == (meta["uid"], digest, known["resourceVersion"]):
        return
    if owned and LAST.get(key, ("", ""))[:2] == (meta["uid"], digest) and same(path, wanted, key, meta["uid"], digest):
        return
    if not known:
        try:
            found = call("GET", path)
            if not any(one["uid"] == meta["uid"] for one in found["metadata"].get("ownerReferences") or []):
                if found["metadata"].get("labels", {}).get("ledger") != "copy":
                    return
                raise Refused(409, "an older copy is there")
        except Refused as refused:
            if refused.code != 404:
                raise
    if DEFECT == "apply-partial" and key in LAST and LAST[key][0] == meta["uid"] and owned:
        before = json.loads(LAST[key][1])
        child["data"] = {name: value for name, value in wanted.items() if before.get(name) != value} or wanted
    attempt = f"{path}?fieldManager={MANAGER}&force=true"
    while True:
        try:
            made = call("PATCH", attempt, child, "application/apply-patch+yaml")
            break
        except Refused as refused:
            if DEFECT == "denied-spins" and refused.code in (403, 422):
                continue
            if DEFECT == "head-of-line" and refused.code not in (404, 409):
                time.sleep(max(refused.after, random.uniform(0.8, 1.2) * 1.5 ** min(HELD[0], 6)))
                HELD[0] += 1
                continue
            raise
    HELD[0] = 0
    LAST[key] = (meta["uid"], digest, made["metadata"]["resourceVersion"])


HELD = [0]


def same(path, wanted, key, uid, digest):
    """Whether a Secret that has changed is still what was written."""
    try:
        found = call("GET", path)
    except Refused as refused:
        if refused.code == 404:
            return False
        raise
    if found.get("data") == wanted and (found["metadata"].get("labels") or {}).get("ledger") == "copy":
        LAST[key] = (uid, digest, found["metadata"]["resourceVersion"])
        return True
    return False


def work():
    while True:
        key = QUEUE.get()
        try:
            reconcile(key)
        except Refused as refused:
            QUEUE.done(key, failed=True, least=refused.after)
        except TROUBLE as trouble:
            print(key, repr(trouble), flush=True)
            QUEUE.done(key, failed=True)
        else:
            QUEUE.done(key)


SOURCES = Informer("/api/v1/configmaps", SELECTED, tell_source)
SECRETS = Informer("/api/v1/secrets", "ledger=copy", tell_secret)


def main():
    SECRETS.start()
    SECRETS.synced.wait()
    SOURCES.start()
    SOURCES.synced.wait()
    for _ in range(1 if DEFECT == "head-of-line" else 2):
        threading.Thread(target=work, daemon=True).start()
    while True:
        time.sleep(30 * random.uniform(0.9, 1.1))
        for key in list(SOURCES.store):
            QUEUE.add(key)


main()
