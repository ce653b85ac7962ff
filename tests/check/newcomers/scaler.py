"""Scales Deployments to the number in an annotation, through their subresource `scale`. urllib3, one thread a stream, one for work.

KUBECONFIG=… python scaler.py            (DEFECT=NAME puts one in)

It writes the annotation `checked.dev/scaled` when it is done, and an Event, whose failure nobody minds. Each half minute it looks at
all that it knows again, which costs no request if nothing is to be done.
"""

import base64
import json
import os
import queue
import random
import re
import sys
import threading
import time
import uuid
from datetime import UTC, datetime
from urllib.parse import urlencode

import urllib3
import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    CONFIG = yaml.safe_load(file)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
AUTHORITY = base64.b64decode(CLUSTER.get("certificate-authority-data", "")).decode() or None
POOL = urllib3.PoolManager(
    maxsize=6, retries=False, ca_cert_data=AUTHORITY, headers={"User-Agent": "scaler/1.7", "Accept": "application/json"}
)
WANTED, SCALED = "checked.dev/wanted", "checked.dev/scaled"
DEPLOYMENTS = "/apis/apps/v1/deployments"
TROUBLE = (urllib3.exceptions.HTTPError, OSError, ValueError)
SILENCE = 15.0


class Answer(Exception):
    """An answer that is not a success."""

    def __init__(self, code, message, after=0.0):
        super().__init__(f"{code} {message[:200]}")
        self.code, self.after = code, after


def request(method, path, body=None, kind="application/json", **more):
    headers = {**POOL.headers, "Content-Type": kind}
    token = USER.get("token")
    if "tokenFile" in USER:
        with open(USER["tokenFile"], encoding="utf-8") as held:
            token = held.read().strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    timeout = urllib3.Timeout(connect=5, read=SILENCE)
    answer = POOL.request(method, CLUSTER["server"] + path, body=data, headers=headers, timeout=timeout, **more)
    if answer.status >= 300:
        after = answer.headers.get("Retry-After", "")
        raise Answer(answer.status, answer.data.decode(errors="replace"), float(after) if after.isdigit() else 0.0)
    return answer


def call(method, path, body=None, kind="application/json"):
    return json.loads(request(method, path, body, kind).data)


known = {}


class Position:
    version = ""


work, queued, lock = queue.Queue(), set(), threading.Lock()


def enqueue(key):
    with lock:
        if key in queued:
            return
        queued.add(key)
    work.put(key)


def key_of(one):
    return one["metadata"]["namespace"], one["metadata"]["name"]


def list_all():
    items, token = [], ""
    while True:
        query = {"labelSelector": "scaled=by-annotation", "limit": 3, **({"continue": token} if token else {})}
        page = call("GET", f"{DEPLOYMENTS}?{urlencode(query)}")
        items += page["items"]
        token = page["metadata"].get("continue", "")
        if not token or DEFECT == "three-only":
            break
    found = {key_of(one): one for one in items}
    Position.version = page["metadata"]["resourceVersion"]
    for key in known.keys() - found.keys():
        del known[key]
    for key, one in found.items():
        if known.get(key, {}).get("metadata", {}).get("resourceVersion") != one["metadata"]["resourceVersion"]:
            known[key] = one
            enqueue(key)


def lines(answer):
    rest = b""
    for piece in answer.stream(1 << 16, decode_content=True):
        rest += piece
        if b"\n" not in piece:
            continue
        *whole, rest = rest.split(b"\n")
        yield from whole
    if rest:
        raise ValueError("the watch ended within an event")


def watch():
    """Follows the events; returns whether there were any."""
    query = {
        "labelSelector": "scaled=by-annotation",
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": Position.version,
    }
    answer = request("GET", f"{DEPLOYMENTS}?{urlencode(query)}", preload_content=False)
    came = False
    try:
        for line in lines(answer):
            event = json.loads(line)
            one = event["object"]
            if event["type"] == "ERROR":
                raise Answer(
                    one.get("code", 500), one.get("message", ""), float(one.get("details", {}).get("retryAfterSeconds", 0))
                )
            if event["type"] == "DELETED":
                known.pop(key_of(one), None)
            elif event["type"] in ("ADDED", "MODIFIED"):
                known[key_of(one)] = one
                enqueue(key_of(one))
            elif event["type"] != "BOOKMARK":
                continue
            came = came or event["type"] != "BOOKMARK"
            Position.version = one["metadata"]["resourceVersion"]
    except urllib3.exceptions.ReadTimeoutError:
        came = True  # it was only quiet
    finally:
        answer.close()
    return came


def follow():
    failures = 0
    while True:
        after, begun = 0.0, time.monotonic()
        try:
            if not Position.version:
                list_all()
            if watch() or time.monotonic() - begun > 1.5:
                failures = 0
                continue
            Position.version = ""  # a watch that ends at once: its revision may be the cause
        except Answer as answer:
            after = answer.after
            if answer.code in (410, 504):
                Position.version = ""
        except TROUBLE as trouble:
            print(repr(trouble), flush=True)
            if time.monotonic() - begun > 5:
                failures = 0
        pause = min(0.6 * 2**failures, 30) * (0.5 + random.random())
        failures += 1
        time.sleep(max(pause, after))


def count_of(one):
    digits = re.match(r"\d{1,2}", one["metadata"].get("annotations", {}).get(WANTED, ""))
    return min(int(digits[0]), 5) if digits else 1


def scale(key):
    one = known.get(key)
    if one is None or one["metadata"].get("deletionTimestamp"):
        return
    namespace, name = key
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    wanted = count_of(one)
    if one["spec"].get("replicas") != wanted:
        current = call("GET", f"{path}/scale")
        if current["metadata"]["uid"] != one["metadata"]["uid"]:
            return  # another object has its name: its own event is on the way
        for last in (False, False, True):
            current["spec"]["replicas"] = wanted
            try:
                call("PUT", f"{path}/scale", current)
                break
            except Answer as answer:
                if answer.code != 409 or last:
                    raise
            time.sleep(random.uniform(0.01, 0.03))
            if DEFECT != "old-scale":
                current = call("GET", f"{path}/scale")
        tell(one, wanted)
    told = one["metadata"]["annotations"].get(WANTED, "")
    if one["metadata"]["annotations"].get(SCALED) != told or DEFECT == "always":
        change = {"metadata": {"annotations": {SCALED: told}, "uid": one["metadata"]["uid"]}}
        known_now = call("PATCH", path, change, "application/merge-patch+json")
        print("scaled", key, known_now["metadata"]["resourceVersion"], flush=True)


def tell(one, wanted):
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    namespace, name = key_of(one)
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": namespace, "uid": one["metadata"]["uid"]}
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{uuid.uuid4().hex[:12]}", "namespace": namespace},
        "eventTime": now,
        "reportingController": "checked.dev/scaler",
        "reportingInstance": "scaler-0",
        "action": "Scale",
        "reason": "Scaled",
        "type": "Normal",
        "note": f"to {wanted}",
        "regarding": about,
    }
    try:
        call("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)
    except (Answer, *TROUBLE) as trouble:
        print("no event:", repr(trouble), flush=True)


def resync():
    while True:
        time.sleep(3 if DEFECT == "always" else 30)
        for key in list(known):
            enqueue(key)


def run():
    tries = {}
    while True:
        key = work.get()
        with lock:
            queued.discard(key)
        try:
            scale(key)
            tries.pop(key, None)
        except (Answer, *TROUBLE) as trouble:
            code = getattr(trouble, "code", 0)
            if code == 404:
                if DEFECT == "must-exist":
                    print("it must exist", flush=True)
                    os._exit(3)
                continue
            if code == 409 and key not in known:
                continue
            print(key, repr(trouble), flush=True)
            tries[key] = tries.get(key, 0) + 1
            pause = min(0.2 * 2 ** tries[key], 30) * random.uniform(0.75, 1.5)
            timer = threading.Timer(max(pause, getattr(trouble, "after", 0.0)), enqueue, [key])
            timer.daemon = True
            timer.start()


for task in (follow, resync):
    threading.Thread(target=task, daemon=True).start()
try:
    run()
except KeyboardInterrupt:
    sys.exit()
