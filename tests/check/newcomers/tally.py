"""Writes one ConfigMap, `tally`, with a line for each labelled ConfigMap of the namespace. urllib3, two threads, lists in pages.

KUBECONFIG=… python tally.py            (DEFECT=NAME puts one in)
"""

import base64
import json
import os
import random
import ssl
import threading
import time

import urllib3
import yaml
from urllib3.exceptions import HTTPError

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    conf = yaml.safe_load(file)
cluster, user = conf["clusters"][0]["cluster"], conf["users"][0]["user"]
ctx = None
if "certificate-authority-data" in cluster:
    ctx = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
pool = urllib3.PoolManager(ssl_context=ctx, retries=False, maxsize=4)
BASE = cluster["server"] + "/api/v1/namespaces/default/configmaps"
lock, store, dirty, synced = threading.Lock(), {}, threading.Event(), threading.Event()


class Bad(Exception):
    def __init__(self, code, after=0.0):
        super().__init__(str(code))
        self.code, self.after = code, after


TROUBLE = (HTTPError, OSError, ValueError, Bad)


def headers():
    token = user.get("token")
    if "tokenFile" in user:
        with open(user["tokenFile"], encoding="utf-8") as file:
            token = file.read().strip()
    found = {"User-Agent": "tally/2.1 (example.org)", "Accept": "application/json"}
    if token:
        found["Authorization"] = "Bearer " + token
    return found


def retry_after(answer):
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0


def call(method, url, body=None, kind="application/json"):
    sent = headers()
    if body is not None:
        sent["Content-Type"] = kind
    answer = pool.request(
        method, url, body=None if body is None else json.dumps(body), headers=sent, timeout=15, preload_content=False
    )
    try:
        text = answer.read(decode_content=True)
    finally:
        answer.release_conn()
    if answer.status >= 300:
        raise Bad(answer.status, retry_after(answer))
    return json.loads(text)


def note(obj):
    data = obj.get("data") or {}
    return f"kind={data.get('kind', '')} note={data.get('note', '')}"


def relist():
    found, token = {}, ""
    while True:
        url = BASE + "?labelSelector=tally%3Dyes&limit=4" + (f"&continue={token}" if token else "")
        page = call("GET", url)
        for one in page["items"]:
            found[one["metadata"]["name"]] = note(one)
        token = page["metadata"].get("continue", "")
        if not token:
            break
    with lock:
        if DEFECT != "keeps-missing":
            store.clear()
        store.update(found)
    synced.set()
    dirty.set()
    return page["metadata"]["resourceVersion"]


def watch(rv):
    url = (
        BASE
        + f"?labelSelector=tally%3Dyes&watch=true&allowWatchBookmarks=true&resourceVersion={rv}&timeoutSeconds={random.randint(200, 400)}"
    )
    answer = pool.request("GET", url, headers=headers(), timeout=urllib3.Timeout(connect=10, read=14), preload_content=False)
    count = 0
    try:
        if answer.status != 200:
            answer.read()
            raise Bad(answer.status, retry_after(answer))
        rest = b""
        for chunk in answer.stream(None, decode_content=True):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                kind, obj = event.get("type"), event.get("object") or {}
                if kind == "ERROR":
                    raise Bad(obj.get("code") or 500)
                if kind in ("ADDED", "MODIFIED", "DELETED"):
                    name = obj["metadata"]["name"]
                    with lock:
                        if kind == "DELETED":
                            store.pop(name, None)
                        else:
                            store[name] = note(obj)
                    dirty.set()
                    count += 1
                elif kind != "BOOKMARK":
                    continue
                rv = obj["metadata"]["resourceVersion"]
                state["rv"] = rv
        return count
    finally:
        answer.close()
        answer.release_conn()


state = {"rv": ""}


def follow():
    pause = 0.7
    while True:
        begun, least = time.monotonic(), 0.0
        try:
            if not state["rv"]:
                state["rv"] = relist()
            got = watch(state["rv"])
            if got or time.monotonic() - begun > 2:
                pause = 0.7
                continue
            state["rv"] = ""
        except urllib3.exceptions.ReadTimeoutError:
            pass
        except TROUBLE as bad:
            print("follow", repr(bad), flush=True)
            least = getattr(bad, "after", 0.0)
            if getattr(bad, "code", 0) in (410, 504):
                state["rv"] = ""
        if time.monotonic() - begun > 8:
            pause = 0.7
        time.sleep(max(least, pause * random.uniform(0.6, 1.4)))
        pause = min(pause * 2, 30)


def write():
    synced.wait()
    pause = 0.5
    while True:
        dirty.wait()
        time.sleep(0.05)
        dirty.clear()
        with lock:
            wanted = dict(store)
        least = 0.0
        try:
            settle(wanted)
            pause = 0.5
            continue
        except TROUBLE as bad:
            if DEFECT == "drops-failed":
                continue
            print("write", repr(bad), flush=True)
            least = getattr(bad, "after", 0.0)
        time.sleep(max(least, pause * random.uniform(0.7, 1.3)))
        pause = min(pause * 2, 30)
        dirty.set()


def settle(wanted):
    try:
        now = call("GET", BASE + "/tally")
    except Bad as bad:
        if bad.code != 404:
            raise
        call(
            "POST",
            BASE,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "tally", "labels": {"made-by": "tally"}},
                "data": wanted,
            },
        )
        return
    if (now.get("data") or {}) == wanted:
        return
    now["data"] = wanted
    if DEFECT == "blind-put":
        now["metadata"].pop("resourceVersion")
    call("PUT", BASE + "/tally", now)


threading.Thread(target=write, daemon=True).start()
follow()
