"""Makes an Endpoints-like ConfigMap for each ConfigMap while it holds a Lease. httpx, threads, JSON patches.

KUBECONFIG=… python elected.py            (DEFECT=NAME puts one in)
"""

import base64
import datetime
import json
import os
import random
import ssl
import sys
import threading
import time
import uuid

import httpx
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as stream:
    CONFIG = yaml.safe_load(stream)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
TLS = True
if "certificate-authority-data" in CLUSTER:
    TLS = ssl.create_default_context(cadata=base64.b64decode(CLUSTER["certificate-authority-data"]).decode())
http = httpx.Client(
    base_url=CLUSTER["server"],
    headers={"User-Agent": "elected/2", "Accept": "application/json"},
    verify=TLS,
    timeout=httpx.Timeout(9.0, pool=30.0),
    limits=httpx.Limits(max_connections=40),
    trust_env=False,
)
ME = f"elected-{uuid.uuid4().hex[:8]}"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
DURATION, DEADLINE, RETRY = 8.0, 5.0, 1.0
MICRO = "%Y-%m-%dT%H:%M:%S.%fZ"


class Answer(Exception):
    def __init__(self, response):
        text = response.text[:200]
        super().__init__(f"{response.status_code} {text}")
        self.code = response.status_code
        after = response.headers.get("Retry-After", "0")
        self.after = float(after) if after.isdigit() else 0.0


def bearer():
    token = USER.get("token")
    if "tokenFile" in USER:
        with open(USER["tokenFile"], encoding="utf-8") as file:
            token = file.read().strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def call(method, path, body=None, kind="application/json", **options):
    content = {} if body is None else {"content": json.dumps(body)}
    headers = bearer() | ({"Content-Type": kind} if body is not None else {})
    response = http.request(method, path, headers=headers, **content, **options)
    if response.status_code >= 400:
        raise Answer(response)
    return response.json()


class Election:
    """Holds a lease, or waits for it. `observed` is when the record was last seen to change, by this process's clock."""

    def __init__(self):
        self.record, self.observed, self.renewed = None, 0.0, 0.0

    def run(self):
        while True:
            begun = time.monotonic()
            try:
                if self.attempt():
                    self.renewed = begun
            except (Answer, httpx.HTTPError, ValueError, KeyError) as problem:
                print("lease:", problem, flush=True)
            time.sleep(max(RETRY * random.uniform(0.8, 1.3) - (time.monotonic() - begun), 0.2))

    def leads(self):
        return self.renewed > 0 and time.monotonic() - self.renewed < DEADLINE

    def watch_over(self):
        """Ends the process when it has led and does no more."""
        while True:
            time.sleep(0.1)
            if self.renewed and not self.leads() and DEFECT != "leads-on":
                print("lost the lease", flush=True)
                os._exit(1)

    def attempt(self):
        now = datetime.datetime.now(datetime.UTC).strftime(MICRO)
        spec = {"holderIdentity": ME, "leaseDurationSeconds": int(DURATION), "acquireTime": now, "renewTime": now}
        limit = {"timeout": DEADLINE / 2}
        try:
            lease = call("GET", f"{LEASES}/elected", **limit)
        except Answer as problem:
            if problem.code != 404:
                raise
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "elected"}}
            call("POST", LEASES, {**body, "spec": {**spec, "leaseTransitions": 0}}, **limit)
            return True
        old = lease.get("spec") or {}
        if old != self.record:
            self.record, self.observed = old, time.monotonic()
        mine = old.get("holderIdentity") == ME
        if not mine and old.get("holderIdentity"):
            if DEFECT == "reads-clock" and old.get("renewTime"):
                told = datetime.datetime.strptime(old["renewTime"], MICRO).replace(tzinfo=datetime.UTC)
                if (datetime.datetime.now(datetime.UTC) - told).total_seconds() < (old.get("leaseDurationSeconds") or DURATION):
                    return False
            else:
                lasts = DURATION if DEFECT == "own-duration" else max(old.get("leaseDurationSeconds") or DURATION, 1)
                if time.monotonic() - self.observed < lasts:
                    return False
        if mine:
            spec["acquireTime"] = old.get("acquireTime", now)
        spec["leaseTransitions"] = (old.get("leaseTransitions") or 0) + (not mine)
        body = {**lease, "spec": {**old, **spec}}
        if DEFECT == "overwrites":
            call("PATCH", f"{LEASES}/elected", {"spec": body["spec"]}, "application/merge-patch+json", **limit)
        else:
            call("PUT", f"{LEASES}/elected", body, **limit)
        self.record, self.observed = body["spec"], time.monotonic()
        return True


election = Election()


class Cache(threading.Thread):
    def __init__(self, selector, told):
        super().__init__(daemon=True)
        self.selector, self.told, self.objects, self.full = selector, told, {}, threading.Event()

    def run(self):
        revision, pause = "", 0.4
        while True:
            begun, came, least = time.monotonic(), 0, 0.0
            try:
                revision = revision or self.list()
                query = {"watch": 1, "allowWatchBookmarks": "true", "labelSelector": self.selector}
                query |= {"resourceVersion": revision, "timeoutSeconds": random.randint(150, 300)}
                timeout = httpx.Timeout(9.0, read=10.0, pool=30.0)
                with http.stream("GET", "/api/v1/configmaps", params=query, headers=bearer(), timeout=timeout) as response:
                    if response.status_code >= 400:
                        response.read()
                        raise Answer(response)
                    rest = b""
                    for piece in response.iter_bytes():
                        *lines, rest = (rest + piece).split(b"\n")
                        for line in lines:
                            event = json.loads(line)
                            if event["type"] == "ERROR":
                                if event["object"].get("code") in (410, 504):
                                    revision = ""
                                raise ValueError(event["object"].get("message"))
                            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                                came += 1
                                self.put(event["object"], event["type"] == "DELETED")
                            elif event["type"] != "BOOKMARK":
                                continue
                            revision = event["object"]["metadata"]["resourceVersion"]
                if came or time.monotonic() - begun > 1.0:
                    pause = 0.4
                    continue
                revision = ""
            except Answer as problem:
                if problem.code in (410, 504):
                    revision = ""
                least = problem.after
            except (httpx.HTTPError, ValueError, OSError):
                if came or time.monotonic() - begun > 8.0:
                    pause = 0.4
            time.sleep(max(least, pause * random.uniform(0.6, 1.5)))
            pause = min(2 * pause, 30.0)

    def list(self):
        found, token = {}, ""
        while True:
            query = {"labelSelector": self.selector, "limit": 60} | ({"continue": token} if token else {})
            page = call("GET", "/api/v1/configmaps", params=query)
            found |= {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in page["items"]}
            token = page["metadata"].get("continue", "")
            if not token:
                break
        for key in set(self.objects) - set(found):
            self.put(self.objects[key], True)
        for one in found.values():
            self.put(one, False)
        self.full.set()
        return page["metadata"]["resourceVersion"]

    def put(self, obj, gone):
        key = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if gone:
            self.objects.pop(key, None)
        else:
            self.objects[key] = obj
        self.told(key)


changed = threading.Condition()
due, failures = {}, {}


def add(key, after=0.0):
    with changed:
        at = time.monotonic() + after
        due[key] = min(due.get(key, at), at) if not after else at
        changed.notify()


sources = Cache("mirror=yes", add)
made = Cache("made-by=elected", lambda key: add((key[0], key[1].removesuffix("-elected"))))


def settle(key):
    source = sources.objects.get(key)
    if source is None or source["metadata"].get("deletionTimestamp"):
        return
    namespace, name = key
    data = source.get("data") or {}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    there = made.objects.get((namespace, f"{name}-elected"))
    uid = source["metadata"]["uid"]
    if there is None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}
        meta = {"name": f"{name}-elected", "labels": {"made-by": "elected"}, "ownerReferences": [owner]}
        call("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
    elif not any(one["uid"] == uid for one in there["metadata"].get("ownerReferences", ())):
        raise ValueError(f"{name}-elected has another owner")
    elif there.get("data", {}) != data:
        patch = [{"op": "test", "path": "/metadata/uid", "value": there["metadata"]["uid"]}]
        patch.append({"op": "add", "path": "/data", "value": data})
        call("PATCH", f"{path}/{name}-elected", patch, "application/json-patch+json")


def work():
    while True:
        with changed:
            now = time.monotonic()
            key = min(due, key=due.get, default=None)
            if key is None or due[key] > now:
                changed.wait(None if key is None else due[key] - now)
                continue
            del due[key]
        while not election.leads() and DEFECT not in ("leads-on", "works-anyway"):
            time.sleep(0.1)
        while DEFECT == "leads-on" and not election.renewed:
            time.sleep(0.1)
        try:
            settle(key)
            failures.pop(key, None)
        except (Answer, httpx.HTTPError, ValueError, OSError) as problem:
            if getattr(problem, "code", 0) == 404:
                continue
            count = failures[key] = failures.get(key, 0) + 1
            pause = min(0.2 * 2**count, 20.0) * random.uniform(0.7, 1.5)
            add(key, max(pause, getattr(problem, "after", 0.0)))


for one in (made, sources):
    one.start()
for target in (election.run, election.watch_over):
    threading.Thread(target=target, daemon=True).start()
for one in (made, sources):
    one.full.wait()
try:
    work()
finally:
    sys.exit(2)
