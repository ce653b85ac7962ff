"""Takes calls: the leader puts each Call into a room, and sums it up in its status. httpx, threads, a lease, pages of two, PUT only.

KUBECONFIG=… python desk.py            (DEFECT=NAME puts one in)
"""

import base64
import datetime
import heapq
import json
import os
import random
import ssl
import threading
import time
import uuid

import httpx
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as config:
    CONFIG = yaml.safe_load(config)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
TLS = True
if "certificate-authority-data" in CLUSTER:
    TLS = ssl.create_default_context(cadata=base64.b64decode(CLUSTER["certificate-authority-data"]).decode())
CALLS = "/apis/desk.checked.dev/v1/calls"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ME = f"desk-{uuid.uuid4().hex[:8]}"
DURATION, DEADLINE, PERIOD = 8, 5.0, 1.5
CLIENT = httpx.Client(base_url=CLUSTER["server"], verify=TLS, headers={"User-Agent": "desk/5.0 (checked.dev)"}, trust_env=False)
FIRST = []


class Refused(Exception):
    def __init__(self, code, reason="", after=0.0, token=""):
        super().__init__(f"{code} {reason}")
        self.code, self.reason, self.after, self.token = code, reason, after, token


TROUBLE = (httpx.HTTPError, OSError, ValueError, Refused)


def headers():
    if "tokenFile" not in USER:
        return {"Authorization": f"Bearer {USER['token']}"} if USER.get("token") else {}
    with open(USER["tokenFile"], encoding="utf-8") as file:
        FIRST.append(file.read().strip())
    return {"Authorization": f"Bearer {FIRST[0] if DEFECT == 'token-of-start' else FIRST[-1]}"}


def refusal(answer, body):
    after = answer.headers.get("Retry-After", "")
    try:
        status = json.loads(body)
    except ValueError:
        status = {}
    more = (status.get("metadata") or {}).get("continue", "") if isinstance(status, dict) else ""
    reason = status.get("reason", "") if isinstance(status, dict) else ""
    return Refused(answer.status_code, reason, float(after) if after.isdigit() else 0.0, more)


def call(method, path, body=None, timeout=10.0, **query):
    answer = CLIENT.request(method, path, json=body, params=query or None, headers=headers(), timeout=timeout)
    if answer.status_code >= 300:
        raise refusal(answer, answer.content)
    return answer.json()


def merge(path, change):
    sent = {**headers(), "Content-Type": "application/merge-patch+json"}
    answer = CLIENT.patch(path, content=json.dumps(change), headers=sent, timeout=10.0)
    if answer.status_code >= 300:
        raise refusal(answer, answer.content)


def utc():
    return datetime.datetime.now(datetime.UTC)


class Election:
    """As client-go does it: another leader's record is old when it has not changed here for as long as it says."""

    def __init__(self):
        self.seen, self.seen_at, self.leading = None, 0.0, threading.Event()

    def run(self):
        renewed = time.monotonic()
        while True:
            begun = time.monotonic()
            try:
                mine = self.step()
            except TROUBLE as trouble:
                print("lease", repr(trouble), flush=True)
                mine = None
            now = time.monotonic()
            if mine:
                renewed = begun
                self.leading.set()
            elif self.leading.is_set() and (mine is False or now - renewed > DEADLINE) and DEFECT != "leads-on":
                print("leader election lost", flush=True)
                os._exit(1)
            time.sleep(PERIOD * random.uniform(0.8, 1.2))

    def step(self):
        stamp = utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": ME, "leaseDurationSeconds": DURATION, "renewTime": stamp, "acquireTime": stamp}
        try:
            lease = call("GET", f"{LEASE}/desk", timeout=3.0)
        except Refused as refused:
            if refused.code != 404:
                raise
            head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "desk", "namespace": "default"}}
            call("POST", LEASE, {**head, "spec": {**spec, "leaseTransitions": 0}}, timeout=3.0)
            return True
        old = lease.get("spec") or {}
        if old != self.seen:
            self.seen, self.seen_at = old, time.monotonic()
        holder = old.get("holderIdentity")
        if holder == ME:
            spec["acquireTime"] = old.get("acquireTime") or stamp
        elif holder:
            lasts = old.get("leaseDurationSeconds") or DURATION
            if DEFECT == "wall-clock":
                renew = datetime.datetime.fromisoformat((old.get("renewTime") or stamp).replace("Z", "+00:00"))
                if (utc() - renew).total_seconds() < lasts:
                    return False
            elif time.monotonic() - self.seen_at < (DURATION if DEFECT == "my-duration" else lasts):
                return False
        transitions = (old.get("leaseTransitions") or 0) + (0 if holder == ME else 1)
        lease["spec"] = {**old, **spec, "leaseTransitions": transitions}
        if DEFECT == "lease-unguarded":
            merge(f"{LEASE}/desk", {"spec": lease["spec"]})
        else:
            call("PUT", f"{LEASE}/desk", lease, timeout=3.0)
        return True


class Work:
    """Keys that are due; a key that fails waits twice as long each time."""

    def __init__(self):
        self.heap, self.due, self.busy, self.again, self.failures = [], {}, set(), set(), {}
        self.changed = threading.Condition()

    def add(self, key, delay=0.0):
        with self.changed:
            if key in self.busy and not delay:
                self.again.add(key)
                return
            at = time.monotonic() + delay
            if at < self.due.get(key, float("inf")):
                self.due[key] = at
                heapq.heappush(self.heap, (at, key))
                self.changed.notify()

    def take(self):
        with self.changed:
            while True:
                while self.heap and self.due.get(self.heap[0][1]) != self.heap[0][0]:
                    heapq.heappop(self.heap)
                left = self.heap[0][0] - time.monotonic() if self.heap else None
                if left is not None and left <= 0:
                    key = heapq.heappop(self.heap)[1]
                    del self.due[key]
                    self.busy.add(key)
                    return key
                self.changed.wait(left)

    def done(self, key, trouble=None):
        with self.changed:
            self.busy.discard(key)
            again = key in self.again
            self.again.discard(key)
            if trouble is None:
                self.failures.pop(key, None)
            else:
                count = self.failures[key] = self.failures.get(key, 0) + 1
        if trouble is not None:
            factor = 6 if DEFECT == "six-times" else 2
            pause = min(600.0 if DEFECT == "six-times" else 20.0, 0.15 * factor ** (count - 1)) * random.uniform(0.75, 1.25)
            self.add(key, max(pause, getattr(trouble, "after", 0.0)))
        elif again:
            self.add(key)


WORK, STORE = Work(), {}
SYNCED = threading.Event()


def key_of(one):
    return (one["metadata"]["namespace"], one["metadata"]["name"])


def page_of(query):
    """One page of the list; its text is parsed only when all of it is there."""
    with CLIENT.stream("GET", CALLS, params=query, headers=headers(), timeout=10.0) as answer:
        text = b""
        try:
            for piece in answer.iter_bytes():
                text += piece
        except httpx.RemoteProtocolError:
            if DEFECT != "half-page" or answer.status_code >= 300:
                raise
        if answer.status_code >= 300:
            raise refusal(answer, text)
        if DEFECT == "half-page":
            return parse_leniently(text)
        return json.loads(text)


def parse_leniently(text):
    try:
        return json.loads(text)
    except ValueError:
        start = text.find(b'"items":[') + 9
        items, decoder, rest = [], json.JSONDecoder(), text[start:].decode(errors="ignore")
        while rest.startswith("{"):
            try:
                one, end = decoder.raw_decode(rest)
            except ValueError:
                break
            items.append(one)
            rest = rest[end:].lstrip(",")
        return {"items": items, "metadata": {}}


def list_all():
    found, query, revision = {}, {"limit": 2}, ""
    while True:
        try:
            page = page_of(query)
        except Refused as refused:
            if refused.code != 410 or "continue" not in query:
                raise
            if DEFECT == "so-far":
                return found, revision
            found, query = {}, {}
            continue
        found |= {key_of(one): one for one in page.get("items") or ()}
        revision = page["metadata"].get("resourceVersion", "")
        if not page["metadata"].get("continue"):
            return found, revision
        query = {"limit": 2, "continue": page["metadata"]["continue"]}


def follow():
    revision, pause = "", 0.8
    while True:
        begun, least = time.monotonic(), 0.0
        try:
            if not revision:
                found, revision = list_all()
                for key in STORE.keys() | found.keys():
                    WORK.add(key)
                STORE.clear()
                STORE.update(found)
                SYNCED.set()
            revision, told = watch(revision)
            if told or time.monotonic() - begun > 2.0:
                pause = 0.8
                continue
            revision = ""
        except httpx.ReadTimeout:
            pause = 0.8
            continue
        except Refused as refused:
            least = refused.after
            if refused.code in (410, 504):
                revision = ""
        except Broken as broken:
            revision = broken.revision
        except TROUBLE as trouble:
            print("calls", repr(trouble), flush=True)
        if time.monotonic() - begun > 15.0:
            pause = 0.8
        time.sleep(least + pause * random.uniform(0.7, 1.4))
        pause = min(25.0, pause * 2)


class Broken(Exception):
    def __init__(self, revision):
        super().__init__("the watch broke")
        self.revision = revision


def watch(revision):
    query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": random.randint(200, 300), "resourceVersion": revision}
    told, rest = False, b""
    limits = httpx.Timeout(10.0, read=11.0)
    with CLIENT.stream("GET", CALLS, params=query, headers=headers(), timeout=limits) as answer:
        if answer.status_code >= 300:
            raise refusal(answer, answer.read())
        try:
            for piece in answer.iter_bytes():
                rest += piece
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    kind, one = event.get("type"), event.get("object") or {}
                    if kind == "ERROR" and DEFECT == "errors-are-news":
                        told = True
                    elif kind == "ERROR":
                        raise Refused(one.get("code") or 500, one.get("reason", ""))
                    if kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                        revision = one["metadata"]["resourceVersion"]
                    if kind == "DELETED":
                        STORE.pop(key_of(one), None)
                    elif kind in ("ADDED", "MODIFIED"):
                        STORE[key_of(one)] = one
                        WORK.add(key_of(one))
                        told = True
        except httpx.ReadTimeout:
            return revision, True
        except (httpx.RemoteProtocolError, httpx.ReadError):
            raise Broken(revision) from None
    return revision, told


def reconcile(key):
    known = STORE.get(key)
    if known is None or known["metadata"].get("deletionTimestamp"):
        return
    path = f"/apis/desk.checked.dev/v1/namespaces/{key[0]}/calls/{key[1]}"
    try:
        put_into_room(path, known)
        sum_up(path, known)
    except Refused as refused:
        if refused.code == 404 and DEFECT == "makes-it-again":
            head = {name: known["metadata"][name] for name in ("name", "namespace", "annotations") if name in known["metadata"]}
            call("POST", path.rpartition("/")[0], {**known, "metadata": head})
        elif refused.code != 404:
            raise


def changed(path, known, change, sub=""):
    """Reads, changes and writes until no one else comes in between; the object has to be the same one."""
    old = None
    for attempt in range(5):
        one = call("GET", path)
        if one["metadata"]["uid"] != known["metadata"]["uid"] or one["metadata"].get("deletionTimestamp"):
            return
        if DEFECT == "newest-revision" and old is not None:
            old["metadata"]["resourceVersion"] = one["metadata"]["resourceVersion"]
            one = old
        elif not change(one):
            return
        old = one
        try:
            if DEFECT == "no-revision":
                whole = {name: one["metadata"][name] for name in ("annotations", "labels") if name in one["metadata"]}
                merge(path + sub, {"metadata": whole, "spec": one.get("spec"), "status": one.get("status")})
            else:
                call("PUT", path + sub, one)
            return
        except Refused as refused:
            if refused.code != 409 or attempt == 4:
                raise
            time.sleep(0.02 * 2**attempt * random.uniform(0.8, 1.6))


def put_into_room(path, known):
    def change(one):
        spec = one.get("spec") or {}
        notes = one["metadata"].setdefault("annotations", {})
        room = f"room of {spec.get('reporter', 'nobody')}, {notes.get('floor', 'ground')} floor"
        if DEFECT == "room-once" and "desk.checked.dev/room" in notes:
            return False
        if notes.get("desk.checked.dev/room") == room:
            return False
        notes["desk.checked.dev/room"] = room
        if DEFECT == "known-fields":
            one["spec"] = {name: spec[name] for name in ("subject", "reporter") if name in spec}
        return True

    if DEFECT == "room-once" or wants(known, change):
        changed(path, known, change)


def wants(known, change):
    """Whether the object in the cache needs a change; a copy of it is asked."""
    return change(json.loads(json.dumps(known)))


def order(conditions):
    return sorted(conditions or (), key=lambda one: one["type"])


def sum_up(path, known):
    def change(one):
        spec, status = one.get("spec") or {}, one.get("status") or {}
        told = [part for part in status.get("conditions") or () if part["type"] != "Taken"]
        new = {
            **status,
            "summary": f"{spec.get('subject', '')} ({', '.join(spec.get('tags') or ())})",
            "generation": one["metadata"]["generation"],
            "conditions": [*(told if DEFECT != "only-taken" else ()), {"type": "Taken", "status": "True", "reason": "Desk"}],
        }
        same = {**new, "conditions": order(new["conditions"])} == {**status, "conditions": order(status.get("conditions"))}
        if same:
            return False
        one["status"] = new
        return True

    if wants(known, change):
        changed(path, known, change, "/status")


def work():
    while True:
        key = WORK.take()
        try:
            reconcile(key)
        except TROUBLE as trouble:
            print(key, repr(trouble), flush=True)
            WORK.done(key, None if DEFECT == "shrugs" else trouble)
        else:
            WORK.done(key)


def main():
    election = Election()
    threading.Thread(target=election.run, daemon=True).start()
    threading.Thread(target=follow, daemon=True).start()
    SYNCED.wait()
    election.leading.wait()
    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    while True:
        time.sleep(3600)


main()
