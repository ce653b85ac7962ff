"""Gives each Widget a Secret and a ServiceAccount, and tells so in a condition. requests, a thread for each kind, three workers.

KUBECONFIG=… python vaults.py            (DEFECT=NAME puts one in)

The queue is a heap of times with a condition variable, as that of client-go: a key is handled by one worker at a time, and failures
double its delay. Writes are creates, updates with the version of the cache, and deletes with a uid.
"""

import base64
import copy
import heapq
import json
import os
import random
import threading
import time

import requests
import urllib3
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as config:
    CONFIG = yaml.safe_load(config)
SERVER, USER = CONFIG["clusters"][0]["cluster"]["server"], CONFIG["users"][0]["user"]
WIDGETS, SECRETS, ACCOUNTS = "/apis/checked.dev/v1/{}widgets", "/api/v1/{}secrets", "/api/v1/{}serviceaccounts"
TROUBLE = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)
SILENCE = (requests.exceptions.ReadTimeout, urllib3.exceptions.ReadTimeoutError)


class Refused(Exception):
    def __init__(self, code, text, after=0.0):
        super().__init__(f"{code} {text[:200]}")
        self.code, self.after = code, after


class Api:
    """A session for each thread."""

    local = threading.local()

    def send(self, method, path, body=None, stream=False, idle=10.0):
        if not hasattr(self.local, "session"):
            self.local.session = requests.Session()
        headers = {"User-Agent": "vaults/0.3 (checked.dev)"}
        if "tokenFile" in USER:
            with open(USER["tokenFile"], encoding="utf-8") as file:
                headers["Authorization"] = "Bearer " + file.read().strip()
        elif "token" in USER:
            headers["Authorization"] = "Bearer " + USER["token"]
        answer = self.local.session.request(method, SERVER + path, json=body, headers=headers, stream=stream, timeout=(5, idle))
        if answer.status_code >= 300:
            after = answer.headers.get("Retry-After", "")
            text = answer.text
            answer.close()
            raise Refused(answer.status_code, text, float(after) if after.isdigit() else 0.0)
        return answer

    def call(self, method, path, body=None):
        return self.send(method, path, body).json()


api = Api()


class Informer(threading.Thread):
    """Keeps the objects of a path, and tells of each change."""

    def __init__(self, path, selector, tell):
        super().__init__(daemon=True)
        self.path, self.tell = path.format(""), tell
        self.query = f"?labelSelector={selector}&" if selector else "?"
        self.store, self.lock, self.synced, self.revision = {}, threading.Lock(), threading.Event(), ""

    def run(self):
        delay = 0.8
        while True:
            begun, least = time.monotonic(), 0.0
            try:
                if not self.revision:
                    self.list()
                delivered = self.watch()
                if delivered or time.monotonic() - begun > 1.5:
                    delay = 0.8
                    continue
                self.revision = ""
            except SILENCE:
                pass
            except Refused as refused:
                least = refused.after
                if refused.code in (410, 504) and DEFECT != "expired-again":
                    self.revision = ""
            except TROUBLE as trouble:
                print(self.path, repr(trouble), flush=True)
            if time.monotonic() - begun > 8.0:
                delay = 0.8
            time.sleep(max(least, delay * random.uniform(0.5, 1.5)))
            delay = min(delay * 2, 30.0)

    def list(self):
        found, token = {}, ""
        while True:
            more = f"&continue={requests.utils.quote(token)}" if token else ""
            page = api.call("GET", f"{self.path}{self.query}limit=200{more}")
            found |= {key_of(one): one for one in page["items"]}
            token = page["metadata"].get("continue", "")
            if not token:
                break
        with self.lock:
            before, self.store = self.store, found
        for key in before.keys() | found.keys():
            if before.get(key, {}).get("metadata") != found.get(key, {}).get("metadata"):
                self.tell(found.get(key) or before[key])
        self.revision = page["metadata"]["resourceVersion"]
        self.synced.set()

    def watch(self):
        seconds = random.randint(240, 400)
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={self.revision}"
        delivered = 0
        with api.send(
            "GET", f"{self.path}{self.query}{query}", stream=True, idle=None if DEFECT == "forever" else 11.0
        ) as answer:
            for event in self.events(answer):
                kind, obj = event.get("type"), event.get("object") or {}
                if kind == "ERROR":
                    raise Refused(obj.get("code", 500), obj.get("message", ""))
                if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                    continue
                self.revision = obj["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    delivered += 1
                    with self.lock:
                        if kind == "DELETED":
                            self.store.pop(key_of(obj), None)
                        else:
                            self.store[key_of(obj)] = obj
                    self.tell(obj)
        return delivered

    def events(self, answer):
        if DEFECT == "iter-lines":
            for line in answer.iter_lines(decode_unicode=True):
                yield json.loads(line)
            return
        rest = []
        for piece in answer.raw.stream(65536, decode_content=True):
            *lines, last = piece.split(b"\n")
            for line in lines:
                yield json.loads(b"".join([*rest, line]))
                rest = []
            rest.append(last)
        if any(rest):
            raise ValueError("the last event is not complete")

    def get(self, key):
        with self.lock:
            return self.store.get(key)


def key_of(obj):
    return obj["metadata"]["namespace"] + "/" + obj["metadata"]["name"]


class Queue:
    def __init__(self):
        self.heap, self.condition = [], threading.Condition()
        self.due, self.busy, self.failed = {}, set(), {}

    def add(self, key, seconds=0.0):
        with self.condition:
            at = time.monotonic() + seconds
            if self.due.get(key, at + 1) > at:
                self.due[key] = at
                heapq.heappush(self.heap, (at, key))
                self.condition.notify()

    def take(self):
        with self.condition:
            while True:
                now = time.monotonic()
                for entry in sorted(self.heap):
                    at, key = entry
                    if self.due.get(key) != at:
                        self.heap.remove(entry)
                    elif at <= now and key not in self.busy:
                        self.heap.remove(entry)
                        del self.due[key]
                        self.busy.add(key)
                        heapq.heapify(self.heap)
                        return key
                heapq.heapify(self.heap)
                waiting = [at for at, key in self.heap if key not in self.busy]
                self.condition.wait(max(min(waiting) - now, 0.001) if waiting else None)

    def done(self, key, trouble=None):
        with self.condition:
            self.busy.discard(key)
            if trouble is None:
                self.failed.pop(key, None)
                self.condition.notify()
                return
            count = self.failed[key] = self.failed.get(key, 0) + 1
            if DEFECT == "five-times" and count > 5:
                return
            self.condition.notify()
        delay = min(0.25 * 2**count, 25.0) * random.uniform(0.6, 1.4)
        self.add(key, max(getattr(trouble, "after", 0.0), delay))


class Controller:
    def __init__(self):
        self.queue = Queue()
        self.widgets = Informer(WIDGETS, "", lambda obj: self.queue.add(key_of(obj)))
        self.secrets = Informer(SECRETS, "checked.dev%2Fvault", self.child)
        self.accounts = Informer(ACCOUNTS, "checked.dev%2Fvault", self.child)

    def child(self, obj):
        for owner in obj["metadata"].get("ownerReferences", ()):
            if owner["kind"] == "Widget" and owner.get("controller"):
                self.queue.add(obj["metadata"]["namespace"] + "/" + owner["name"])

    def work(self):
        while True:
            key = self.queue.take()
            trouble = None
            try:
                self.reconcile(key)
            except Refused as refused:
                trouble = None if refused.code == 404 and self.widgets.get(key) is None else refused
                print(key, refused, flush=True)
            except TROUBLE as error:
                trouble = error
            self.queue.done(key, trouble)

    def reconcile(self, key):
        widget = self.widgets.get(key)
        if widget is None or widget["metadata"].get("deletionTimestamp"):
            return
        name, uid = widget["metadata"]["name"], widget["metadata"]["uid"]
        message = (widget.get("spec") or {}).get("message", "")
        data = {"message": base64.b64encode(message.encode()).decode()}
        ready = [
            self.ensure(self.secrets, SECRETS, widget, {"type": "checked.dev/vault", "data": data}),
            self.ensure(self.accounts, ACCOUNTS, widget, {"automountServiceAccountToken": False}),
        ]
        self.tell(widget, "True" if all(ready) else "False", f"{name} of {uid}")

    def ensure(self, informer, path, widget, content):
        """Returns whether the child is there, is the widget's own, and has the content."""
        meta = widget["metadata"]
        name = f"{meta['name']}-vault"
        collection = path.format(f"namespaces/{meta['namespace']}/")
        owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": meta["name"], "uid": meta["uid"], "controller": True}
        found = informer.get(f"{meta['namespace']}/{name}")
        if found is None:
            fresh = {"name": name, "labels": {"checked.dev/vault": "yes"}, "ownerReferences": [owner]}
            try:
                api.call("POST", collection, {"metadata": fresh, **content})
                return True
            except Refused as refused:
                if refused.code != 409:
                    raise
                found = api.call("GET", f"{collection}/{name}")  # the cache is behind, or somebody else's has no label
        mine = [one for one in found["metadata"].get("ownerReferences", ()) if one.get("controller")]
        if not mine or mine[0]["uid"] != meta["uid"]:
            if (
                mine
                and mine[0]["kind"] == "Widget"
                and mine[0]["name"] == meta["name"]
                and not self.lives(widget, mine[0]["uid"])
            ):
                options = {"kind": "DeleteOptions", "apiVersion": "v1"}
                if DEFECT != "any-uid":
                    options["preconditions"] = {"uid": found["metadata"]["uid"]}
                try:
                    api.call("DELETE", f"{collection}/{name}", options)
                except Refused as refused:
                    if refused.code not in (404, 409):
                        raise
                raise Refused(409, "of the former widget; is deleted")
            return False
        if any(found.get(field) != value for field, value in content.items()):
            changed = copy.deepcopy(found) | content
            if DEFECT == "own-shape":
                kept = {field: found["metadata"][field] for field in ("name", "resourceVersion", "ownerReferences")}
                changed = {"metadata": {**kept, "labels": {"checked.dev/vault": "yes"}}, **content}
            api.call("PUT", f"{collection}/{name}", changed)
        return True

    def lives(self, widget, uid):
        """Returns whether the widget that the server has now is the one with the uid."""
        path = WIDGETS.format(f"namespaces/{widget['metadata']['namespace']}/")
        return api.call("GET", f"{path}/{widget['metadata']['name']}")["metadata"]["uid"] == uid

    def tell(self, widget, status, reason):
        conditions = copy.deepcopy((widget.get("status") or {}).get("conditions") or [])
        wanted = {"type": "Vaulted", "status": status, "message": reason}
        if any({**one, **wanted} == one for one in conditions):
            return
        if DEFECT == "sole":
            conditions = []
        others = [one for one in conditions if one["type"] != "Vaulted"]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entire = [*others, {**wanted, "lastTransitionTime": now}]
        body = {**widget, "status": {**(widget.get("status") or {}), "conditions": entire}}
        path = WIDGETS.format(f"namespaces/{widget['metadata']['namespace']}/")
        api.call("PUT", f"{path}/{widget['metadata']['name']}/status", body)

    def run(self):
        informers = (self.secrets, self.accounts, self.widgets)
        for one in informers:
            one.start()
        for one in informers:
            one.synced.wait()
        workers = [threading.Thread(target=self.work) for _ in range(3)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()


Controller().run()
