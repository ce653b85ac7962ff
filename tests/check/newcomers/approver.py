"""Approves CertificateSigningRequests of one signer, and notes each in a ConfigMap. Threads, http.client, no repeated reads.

KUBECONFIG=… python approver.py            (DEFECT=NAME puts one in)

After a conflict it does not read the object again: the event of the newer version is on its way, and it tries again from its
index after a pause. What it hears within a third of a second is one piece of work.
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
from urllib.parse import quote, urlencode, urlsplit

import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    CONFIG = yaml.safe_load(file)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
SERVER = urlsplit(CLUSTER["server"])
SIGNER, NAMESPACE = "checked.dev/web", "default"
REQUESTS, NOTES = "/apis/certificates.k8s.io/v1/certificatesigningrequests", f"/api/v1/namespaces/{NAMESPACE}/configmaps"
TROUBLE = (OSError, http.client.HTTPException, ValueError)


class Denied(Exception):
    def __init__(self, code, text, after=0.0):
        super().__init__(f"{code}: {text[:200]}")
        self.code, self.after = code, after


def connect(patience):
    if SERVER.scheme == "https":
        trusted = ssl.create_default_context(cadata=base64.b64decode(CLUSTER["certificate-authority-data"]).decode())
        return http.client.HTTPSConnection(SERVER.hostname, SERVER.port, timeout=patience, context=trusted)
    return http.client.HTTPConnection(SERVER.hostname, SERVER.port, timeout=patience)


def send(connection, method, target, body=None):
    token = USER.get("token")
    if "tokenFile" in USER:
        with open(USER["tokenFile"], encoding="utf-8") as held:
            token = held.read().strip()
    headers = {"User-Agent": "approver/3.1", "Accept": "application/json", "Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, target, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    if answer.status >= 400:
        after = answer.getheader("Retry-After", "0")
        raise Denied(answer.status, answer.read().decode(errors="replace"), float(after) if after.isdigit() else 0.0)
    return answer


class Sender:
    """A connection that is kept for the next request; opened anew after any trouble."""

    def __init__(self):
        self.connection = None

    def call(self, method, target, body=None):
        if self.connection is None:
            self.connection = connect(10)
        try:
            return json.loads(send(self.connection, method, target, body).read())
        except Denied:
            raise
        except TROUBLE:
            self.connection.close()
            self.connection = None
            raise


class Index(threading.Thread):
    """The objects of a collection: listed in pages, then watched."""

    def __init__(self, path, query, changed):
        super().__init__(daemon=True)
        self.path, self.query, self.changed = path, query, changed
        self.objects, self.version, self.complete = {}, None, threading.Event()

    def run(self):
        pause, sender = 0.4, Sender()
        while True:
            after, seen, begun = 0.0, 0, time.monotonic()
            try:
                if self.version is None:
                    self.list(sender)
                for event in self.watch():
                    seen += event
                if seen or time.monotonic() - begun > 2:
                    pause = 0.4
                    continue
                self.version = None
            except Denied as denied:
                after = denied.after
                if denied.code in (410, 504):
                    self.version = None
            except TROUBLE as trouble:
                print(self.path, repr(trouble), flush=True)
            if seen:
                pause = 0.4
            time.sleep(max(after, pause * random.uniform(1, 2)))
            pause = min(2 * pause, 20)

    def list(self, sender):
        found, more = {}, {}
        while True:
            page = sender.call("GET", f"{self.path}?{urlencode({**self.query, 'limit': 50, **more})}")
            found.update((one["metadata"]["name"], one) for one in page["items"])
            if not page["metadata"].get("continue"):
                break
            more = {"continue": page["metadata"]["continue"]}
        before, self.version = self.objects, page["metadata"]["resourceVersion"]
        self.objects = {**before, **found} if DEFECT == "keeps-missing" else found
        for name in {*before, *found}:
            self.changed(name)
        self.complete.set()

    def watch(self):
        query = {**self.query, "watch": "true", "resourceVersion": self.version, "timeoutSeconds": random.randint(20, 30)}
        connection = connect(40)
        try:
            answer = send(connection, "GET", f"{self.path}?{urlencode(query)}")
            while line := answer.readline():
                event = json.loads(line)
                kind, one = event["type"], event["object"]
                if kind == "ERROR":
                    details = one.get("details") or {}
                    raise Denied(one.get("code", 500), one.get("message", ""), details.get("retryAfterSeconds", 0))
                if kind not in ("ADDED", "MODIFIED", "DELETED"):
                    continue
                name = one["metadata"]["name"]
                if kind == "DELETED":
                    self.objects.pop(name, None)
                else:
                    self.objects[name] = one
                self.version = one["metadata"]["resourceVersion"]
                self.changed(name)
                yield True
        finally:
            connection.close()


class Agenda:
    """Names with the time at which their turn comes."""

    def __init__(self):
        self.times, self.names, self.changed = {}, [], threading.Condition()

    def put(self, name, pause=0.33, sooner=True):
        with self.changed:
            at = time.monotonic() + pause
            if name in self.times and (self.times[name] <= at or not sooner):
                return
            self.times[name] = at
            heapq.heappush(self.names, (at, name))
            self.changed.notify()

    def take(self):
        with self.changed:
            while True:
                now = time.monotonic()
                if self.names and self.names[0][0] <= now:
                    at, name = heapq.heappop(self.names)
                    if self.times.get(name) == at:
                        del self.times[name]
                        return name
                    continue
                self.changed.wait(self.names[0][0] - now if self.names else None)


agenda = Agenda()
requests = Index(REQUESTS, {}, agenda.put)
notes = Index(NOTES, {"labelSelector": "noted-by=approver"}, lambda name: agenda.put(name.removeprefix("csr-")))


def settle(name, sender):
    request, note = requests.objects.get(name), notes.objects.get(f"csr-{name}")
    mine = request is not None and request["spec"]["signerName"] == SIGNER
    if not mine or request["metadata"].get("deletionTimestamp"):
        if note is not None and request is None:
            kept = {"preconditions": {"uid": note["metadata"]["uid"]}}
            sender.call("DELETE", f"{NOTES}/{quote(note['metadata']['name'])}", kept)
        return
    conditions = request.get("status", {}).get("conditions") or []
    if not any(one["type"] in ("Approved", "Denied") for one in conditions):
        verdict = {"type": "Approved", "status": "True", "reason": "Team", "message": "the team is known"}
        metadata = dict(request["metadata"])
        if DEFECT == "any-version":
            del metadata["resourceVersion"]
        decided = [verdict] if DEFECT == "only-verdict" else [*conditions, verdict]
        body = {**request, "metadata": metadata, "status": {**request.get("status", {}), "conditions": decided}}
        body |= {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        sender.call("PUT", f"{REQUESTS}/{quote(name)}/approval", body)
    data = {"uid": request["metadata"]["uid"], "team": (request["metadata"].get("labels") or {}).get("team", "none")}
    if note is None:
        metadata = {"name": f"csr-{name}", "labels": {"noted-by": "approver"}}
        sender.call("POST", NOTES, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    elif note.get("data") != data:
        body = {**note, "apiVersion": "v1", "kind": "ConfigMap", "data": data}
        sender.call("PUT", f"{NOTES}/csr-{quote(name)}", body)


def main():
    for index in (notes, requests):
        index.start()
    for index in (notes, requests):
        index.complete.wait()
    sender, tries = Sender(), {}
    while True:
        name = agenda.take()
        try:
            settle(name, sender)
            tries.pop(name, None)
        except (Denied, *TROUBLE) as trouble:
            print(name, repr(trouble), flush=True)
            if isinstance(trouble, Denied) and trouble.code == 404:
                continue
            tries[name] = tries.get(name, 0) + 1
            pause = min(0.3 * 2 ** tries[name], 25) * random.uniform(0.7, 1.3)
            if DEFECT == "at-once" and getattr(trouble, "code", 0) >= 500:
                pause = 0.05
            agenda.put(name, max(pause, getattr(trouble, "after", 0.0)))


main()
