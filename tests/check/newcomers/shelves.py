"""Keeps as many copies of a book as each Shelf asks for, as a ReplicaSet keeps pods: generated names, adoption, release and expectations.

requests, threads, informers whose caches have indices, a work queue.

KUBECONFIG=… python shelves.py            (DEFECT=NAME puts one in)
"""

import base64
import collections
import copy
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
with open(os.environ["KUBECONFIG"], encoding="utf-8") as config:
    CONFIG = yaml.safe_load(config)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
SERVER = CLUSTER["server"]
GROUP = "/apis/books.checked.dev/v1"
LABEL = "books.checked.dev/shelf"
LOCAL = threading.local()


def authority():
    if "certificate-authority-data" not in CLUSTER:
        return CLUSTER.get("certificate-authority", True)
    with tempfile.NamedTemporaryFile("wb", suffix=".pem", delete=False) as file:
        file.write(base64.b64decode(CLUSTER["certificate-authority-data"]))
    return file.name


VERIFY = authority() if SERVER.startswith("https") else True


class Refused(Exception):
    def __init__(self, code, reason="", after=0.0):
        super().__init__(f"{code} {reason}")
        self.code, self.reason, self.after = code, reason, after


class Later(Exception):
    """The work cannot be done now."""


TROUBLE = (requests.RequestException, OSError, ValueError, Refused, Later)


def session():
    if not hasattr(LOCAL, "session"):
        LOCAL.session = requests.Session()
        LOCAL.session.trust_env = False
        LOCAL.session.verify = VERIFY
        LOCAL.session.headers["User-Agent"] = "shelves/2.1 (books.checked.dev)"
    if "tokenFile" in USER:
        with open(USER["tokenFile"], encoding="utf-8") as file:
            LOCAL.session.headers["Authorization"] = f"Bearer {file.read().strip()}"
    elif USER.get("token"):
        LOCAL.session.headers["Authorization"] = f"Bearer {USER['token']}"
    return LOCAL.session


def refusal(answer):
    after = answer.headers.get("Retry-After", "")
    try:
        status = answer.json()
    except ValueError:
        status = None
    reason = status.get("reason", "") if isinstance(status, dict) else ""
    return Refused(answer.status_code, reason, float(after) if after.isdigit() else 0.0)


def call(method, path, body=None, **query):
    answer = session().request(method, SERVER + path, json=body, params=query, timeout=(5, 12))
    if answer.status_code >= 300:
        raise refusal(answer)
    return answer.json()


class Backoff:
    def __init__(self, first, longest):
        self.first, self.longest, self.count = first, longest, 0

    def draw(self):
        pause = min(self.longest, self.first * 2**self.count)
        self.count += 1
        return pause * random.uniform(0.75, 1.5)

    def reset(self):
        self.count = 0


def key_of(obj):
    return (obj["metadata"]["namespace"], obj["metadata"]["name"])


def controller_of(obj):
    return next((one for one in obj["metadata"].get("ownerReferences") or () if one.get("controller")), None)


def owner_index(obj):
    owner = controller_of(obj)
    return [owner["uid"]] if owner else []


def label_index(obj):
    label = (obj["metadata"].get("labels") or {}).get(LABEL)
    return [(obj["metadata"]["namespace"], label)] if label else []


class Cache:
    """Objects by key, with indices."""

    def __init__(self, **indexers):
        self.lock = threading.RLock()
        self.objects, self.indexers = {}, indexers
        self.indices = {name: collections.defaultdict(set) for name in indexers}

    def put(self, obj):
        with self.lock:
            key = key_of(obj)
            old = self.objects.get(key)
            if DEFECT == "string-order" and old and old["metadata"]["resourceVersion"] > obj["metadata"]["resourceVersion"]:
                return old
            self.unindex(key)
            for name, indexer in self.indexers.items():
                for value in indexer(obj):
                    self.indices[name][value].add(key)
            self.objects[key] = obj
            return old

    def unindex(self, key):
        old = self.objects.get(key)
        for name, indexer in self.indexers.items() if old is not None else ():
            for value in indexer(old):
                self.indices[name][value].discard(key)

    def drop(self, key):
        with self.lock:
            self.unindex(key)
            return self.objects.pop(key, None)

    def replace(self, objects):
        """Returns the pairs of old and new states that differ."""
        with self.lock:
            changes = []
            found = {key_of(obj): obj for obj in objects}
            gone = [key for key in self.objects if key not in found] if DEFECT != "keeps-unlisted" else []
            changes += [(self.drop(key), None) for key in gone]
            for obj in found.values():
                old = self.put(obj)
                if old is None or old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                    changes.append((old, obj))
            return changes

    def get(self, key):
        with self.lock:
            return self.objects.get(key)

    def by(self, name, value):
        with self.lock:
            return [self.objects[key] for key in self.indices[name][value] if key in self.objects]


class Informer:
    def __init__(self, path, handle, selector=None, **indexers):
        self.path, self.handle, self.selector = path, handle, selector
        self.cache, self.synced, self.relisted = Cache(**indexers), threading.Event(), []
        self.revision, self.backoff = "", Backoff(0.8, 28.0)

    def start(self):
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            begun, least = time.monotonic(), 0.0
            try:
                if not self.revision:
                    self.list()
                if self.watch() or time.monotonic() - begun > 3.0:
                    self.backoff.reset()
                    continue
                self.revision = ""
            except Refused as refused:
                least = refused.after
                expired = refused.reason == "Gone" if DEFECT == "gone-only" else refused.code in (410, 504)
                if expired:
                    self.revision = ""
            except requests.exceptions.ReadTimeout:
                self.backoff.reset()
                continue
            except (requests.RequestException, OSError, ValueError) as trouble:
                print(self.path, repr(trouble), flush=True)
                if is_silence(trouble):
                    self.backoff.reset()
                    continue
            if time.monotonic() - begun > 12.0:
                self.backoff.reset()
            time.sleep(max(least, self.backoff.draw()))

    def query(self, **more):
        return {**({"labelSelector": self.selector} if self.selector else {}), **more}

    def list(self):
        items, token = [], ""
        if DEFECT == "empty-while-listing":
            self.cache.replace([])
        while True:
            try:
                page = call("GET", self.path, **self.query(limit=200, **({"continue": token} if token else {})))
            except Refused as refused:
                if refused.code != 410 or not token:
                    raise
                items, token = [], ""
                page = call("GET", self.path, **self.query())
            items += page.get("items") or []
            token = page["metadata"].get("continue", "")
            if not token:
                break
        for told in self.relisted:
            told()
        for old, new in self.cache.replace(items):
            self.handle(old, new)
        self.revision = page["metadata"]["resourceVersion"]
        self.synced.set()

    def watch(self):
        """Returns whether something was delivered."""
        told, rest = False, b""
        query = self.query(
            watch="1", allowWatchBookmarks="true", resourceVersion=self.revision, timeoutSeconds=random.randint(300, 500)
        )
        with session().get(
            SERVER + self.path, params=query, stream=True, timeout=None if DEFECT == "no-timeout" else (5, 13)
        ) as answer:
            if answer.status_code >= 300:
                raise refusal(answer)
            for piece in answer.iter_content(chunk_size=None):
                rest += piece
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    told |= self.take(json.loads(line))
        return told

    def take(self, event):
        kind, obj = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise Refused(obj.get("code") or 500, obj.get("reason", ""))
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            return False
        if kind == "BOOKMARK" or DEFECT != "bookmark-only":
            self.revision = obj["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return False
        old = self.cache.drop(key_of(obj)) if kind == "DELETED" else self.cache.put(obj)
        self.handle(old or (obj if kind == "DELETED" else None), None if kind == "DELETED" else obj)
        return True


def is_silence(trouble):
    """A read that takes too long within a body is a ConnectionError of requests."""
    return isinstance(trouble, requests.ConnectionError) and "timed out" in str(trouble).lower()


class Queue:
    def __init__(self):
        self.heap, self.due, self.busy, self.failures = [], {}, set(), collections.Counter()
        self.changed = threading.Condition()

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
                now = time.monotonic()
                ready = min(((at, key) for key, at in self.due.items() if key not in self.busy), default=None)
                if ready is not None and ready[0] <= now:
                    del self.due[ready[1]]
                    self.busy.add(ready[1])
                    return ready[1]
                self.changed.wait(None if ready is None else ready[0] - now)

    def done(self, key, trouble):
        with self.changed:
            self.busy.discard(key)
            self.changed.notify_all()
            if trouble is None:
                del self.failures[key]
                return
            count = self.failures[key] = self.failures[key] + 1
        pause = min(20.0, 0.1 * 2 ** (count - 1)) * random.uniform(0.8, 1.6)
        self.add(key, max(pause, getattr(trouble, "after", 0.0)))


QUEUE = Queue()


class Expectations:
    """What the cache does not show yet, by the uid of the shelf: the names of what was made, and the uids of what was deleted."""

    SECONDS = 300.0 if DEFECT.startswith("expects-") else 15.0

    def __init__(self):
        self.lock, self.waiting = threading.Lock(), {}

    def made(self, owner, name):
        self.add(owner, ("made", name))

    def deleted(self, owner, uid):
        self.add(owner, ("deleted", uid))

    def add(self, owner, what):
        with self.lock:
            self.waiting.setdefault(owner, {})[what] = time.monotonic()

    def saw(self, owner, *whats):
        with self.lock:
            for what in whats:
                self.waiting.get(owner, {}).pop(what, None)

    def clear(self, owner=None):
        with self.lock:
            if owner is None:
                self.waiting.clear()
            else:
                self.waiting.pop(owner, None)

    def met(self, owner):
        """Whether nothing is waited for any more; what takes too long will not come."""
        now = time.monotonic()
        with self.lock:
            left = {what: at for what, at in self.waiting.get(owner, {}).items() if now - at < self.SECONDS}
            self.waiting[owner] = left
            return not left


EXPECTED = Expectations()


def shelf_changed(old, new):
    if DEFECT == "adds-only" and old is not None and new is not None and old["spec"]["copies"] == new["spec"]["copies"]:
        return
    if new is None and old is not None:
        EXPECTED.clear(old["metadata"]["uid"])
    QUEUE.add(key_of(new or old))


def book_changed(old, new):
    for one in (old, new):
        if one is None:
            continue
        owner = controller_of(one)
        if owner is not None and owner["kind"] == "Shelf":
            EXPECTED.saw(owner["uid"], ("made", one["metadata"]["name"]))
            if new is None or new["metadata"].get("deletionTimestamp"):
                EXPECTED.saw(owner["uid"], ("deleted", one["metadata"]["uid"]))
            QUEUE.add((one["metadata"]["namespace"], owner["name"]))
        for namespace, name in label_index(one):
            QUEUE.add((namespace, name))


SHELVES = Informer(f"{GROUP}/shelves", shelf_changed)
BOOKS = Informer("/api/v1/configmaps", book_changed, LABEL, owner=owner_index, label=label_index)
BOOKS.relisted.append(EXPECTED.clear)


def reconcile(key):
    shelf = SHELVES.cache.get(key)
    if shelf is None or (shelf["metadata"].get("deletionTimestamp") and DEFECT != "works-for-terminating"):
        return
    uid = shelf["metadata"]["uid"]
    if not EXPECTED.met(uid):
        QUEUE.add(key, Expectations.SECONDS + 0.5)
        return
    books = claim(shelf)
    wanted = max(0, int(shelf["spec"].get("copies", 1)))
    living = [one for one in books if not one["metadata"].get("deletionTimestamp")]
    for book in living[:wanted] if DEFECT != "print-once" else ():
        print_again(shelf, book)
    if len(living) < wanted:
        known = really_there(shelf) if DEFECT != "no-expectations" else living
        for _ in range(wanted - len(known)):
            make(shelf)
    for book in sorted(living, key=lambda one: one["metadata"]["creationTimestamp"])[wanted:]:
        remove(shelf, book)
    write_status(shelf, len(living))


def really_there(shelf):
    """The cache may be older than this process."""
    found = call("GET", books_of(shelf), labelSelector=f"{LABEL}={shelf['metadata']['name']}")["items"]
    mine = [one for one in found if owner_index(one) == [shelf["metadata"]["uid"]]]
    return [one for one in mine if not one["metadata"].get("deletionTimestamp")]


def books_of(shelf):
    return f"/api/v1/namespaces/{shelf['metadata']['namespace']}/configmaps"


def claim(shelf):
    """Returns the books of a shelf: those that it owns, and orphans with its label, which it adopts. Others are released."""
    uid, name = shelf["metadata"]["uid"], shelf["metadata"]["name"]
    mine = []
    for book in BOOKS.cache.by("owner", uid):
        if label_index(book) == [key_of(shelf)]:
            mine.append(book)
        elif not book["metadata"].get("deletionTimestamp"):
            owners = [one for one in book["metadata"]["ownerReferences"] if one["uid"] != uid]
            change_book(book, lambda one, owners=owners: one["metadata"].update(ownerReferences=owners))
    for book in BOOKS.cache.by("label", key_of(shelf)):
        if book["metadata"].get("deletionTimestamp"):
            continue
        if controller_of(book) is None or (DEFECT == "adopts-owned" and controller_of(book)["uid"] != uid):
            if DEFECT != "adopts-owned":
                present = call("GET", f"{GROUP}/namespaces/{shelf['metadata']['namespace']}/shelves/{name}")
                if present["metadata"]["uid"] != uid or present["metadata"].get("deletionTimestamp"):
                    raise Later("the shelf is another one by now")
            others = [] if DEFECT == "adopts-owned" else book["metadata"].get("ownerReferences") or []
            owners = [*others, reference(shelf)]
            mine.append(change_book(book, lambda one, owners=owners: one["metadata"].update(ownerReferences=owners)))
    return mine


def reference(shelf):
    kind = {"apiVersion": "books.checked.dev/v1", "kind": "Shelf", "controller": True, "blockOwnerDeletion": True}
    return {**kind, "name": shelf["metadata"]["name"], "uid": shelf["metadata"]["uid"]}


def change_book(book, change):
    """Writes a change of what the cache has, guarded by its revision."""
    new = copy.deepcopy(book)
    change(new)
    if DEFECT == "unguarded-books":
        del new["metadata"]["resourceVersion"]
    return call("PUT", f"/api/v1/namespaces/{book['metadata']['namespace']}/configmaps/{book['metadata']['name']}", new)


def content(shelf):
    spec = shelf["spec"]
    if DEFECT == "place-forgotten":
        return {"title": spec.get("title", "")}
    return {"title": spec.get("title", ""), "place": spec.get("place", "")}


def print_again(shelf, book):
    wanted = content(shelf)
    if DEFECT == "place-forgotten":
        wanted["place"] = (book.get("data") or {}).get("place", "")
    if (book.get("data") or {}) | wanted != (book.get("data") or {}):
        change_book(book, lambda one: one.update(data=(one.get("data") or {}) | wanted))


def make(shelf):
    meta = shelf["metadata"]
    head = {"generateName": f"{meta['name']}-", "labels": {LABEL: meta["name"]}, "ownerReferences": [reference(shelf)]}
    data = {"place": shelf["spec"].get("place", ""), **content(shelf)}
    promise = random.random()
    if DEFECT == "expects-before":
        EXPECTED.made(meta["uid"], promise)
    try:
        made = call("POST", books_of(shelf), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": data})
    except requests.RequestException:
        if DEFECT == "expects-unknown":
            EXPECTED.made(meta["uid"], promise)
        raise
    EXPECTED.saw(meta["uid"], ("made", promise))
    if DEFECT != "no-expectations":
        EXPECTED.made(meta["uid"], made["metadata"]["name"])
        if BOOKS.cache.get(key_of(made)) is not None:
            EXPECTED.saw(meta["uid"], ("made", made["metadata"]["name"]))


def remove(shelf, book):
    only = {"preconditions": {"uid": book["metadata"]["uid"]}}
    path = f"{books_of(shelf)}/{book['metadata']['name']}"
    EXPECTED.deleted(shelf["metadata"]["uid"], book["metadata"]["uid"])
    try:
        call("DELETE", path, only)
    except Refused as refused:
        EXPECTED.saw(shelf["metadata"]["uid"], ("deleted", book["metadata"]["uid"]))
        if refused.code not in (404, 409):
            raise
    except requests.RequestException:
        EXPECTED.saw(shelf["metadata"]["uid"], ("deleted", book["metadata"]["uid"]))
        raise


def write_status(shelf, count):
    key, path = key_of(shelf), f"{GROUP}/namespaces/{shelf['metadata']['namespace']}/shelves/{shelf['metadata']['name']}"
    for attempt in range(6):
        if attempt:
            shelf = call("GET", path)
        status = shelf.get("status") or {}
        wanted = {"copies": count, "label": f"{shelf['spec'].get('title')} ({shelf['spec'].get('place')})"}
        if status | wanted == status:
            return
        new = copy.deepcopy(shelf)
        new["status"] = status | wanted
        try:
            call("PUT", f"{path}/status", new)
            return
        except Refused as refused:
            if refused.code == 409 and DEFECT == "status-another-time":
                return
            if refused.code != 409:
                raise
        if attempt:
            time.sleep(0.02 * 2**attempt * random.uniform(0.7, 1.4))
    raise Later(f"others write {key} all the time")


def work():
    while True:
        key = QUEUE.take()
        trouble = None
        try:
            reconcile(key)
        except Refused as refused:
            if refused.code != 404:
                trouble = refused
        except TROUBLE as problem:
            trouble = problem
        if trouble is not None:
            print(key, repr(trouble), flush=True)
        QUEUE.done(key, trouble)


def main():
    BOOKS.start()
    SHELVES.start()
    SHELVES.synced.wait()
    if DEFECT != "starts-at-once":
        BOOKS.synced.wait()
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    threading.Event().wait()


main()
