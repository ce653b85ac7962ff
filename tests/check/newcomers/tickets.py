"""Makes a Role for each ConfigMap, and only lists: every ten seconds, in pages. http.client, one thread.

KUBECONFIG=… python tickets.py            (DEFECT=NAME puts one in)
"""

import base64
import http.client
import json
import os
import random
import ssl
import sys
import time
from urllib.parse import quote, urlsplit

import yaml

DEFECT = os.environ.get("DEFECT", "")
with open(os.environ["KUBECONFIG"], encoding="utf-8") as stream:
    CONFIG = yaml.safe_load(stream)
CLUSTER, USER = CONFIG["clusters"][0]["cluster"], CONFIG["users"][0]["user"]
SERVER = urlsplit(CLUSTER["server"])
PERIOD = 10.0
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Failed(Exception):
    def __init__(self, code, text, after=0.0):
        super().__init__(f"{code} {text[:160]}")
        self.code, self.after, self.text = code, after, text


class Link:
    def __init__(self):
        self.connection = None

    def send(self, method, path, body=None, kind="application/json"):
        if self.connection is None:
            if SERVER.scheme == "https":
                tls = ssl.create_default_context(cadata=base64.b64decode(CLUSTER["certificate-authority-data"]).decode())
                self.connection = http.client.HTTPSConnection(SERVER.netloc, timeout=8, context=tls)
            else:
                self.connection = http.client.HTTPConnection(SERVER.netloc, timeout=8)
        headers = {"User-Agent": "tickets/4", "Accept": "application/json"}
        token = USER.get("token")
        if "tokenFile" in USER:
            with open(USER["tokenFile"], encoding="utf-8") as file:
                token = file.read().strip()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = kind
        try:
            self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as problem:
            self.connection.close()
            self.connection = None
            raise Failed(0, repr(problem)) from None
        if answer.status >= 400:
            after = answer.getheader("Retry-After") or "0"
            raise Failed(answer.status, text.decode(errors="replace"), float(after) if after.isdigit() else 0.0)
        try:
            return json.loads(text)
        except ValueError:
            raise Failed(0, "no JSON") from None


link = Link()
kept = {}


def pages(path, selector):
    items, token, page = {}, kept.get(path, ""), {}
    while True:
        target = f"{path}?limit=3&labelSelector={quote(selector)}" + (f"&continue={quote(token)}" if token else "")
        if DEFECT == "revision-again" and token and page:
            target += f"&resourceVersion={page['metadata']['resourceVersion']}"
        try:
            page = link.send("GET", target)
        except Failed as problem:
            if problem.code == 410 and token and DEFECT == "old-token":
                kept[path] = token
            elif problem.code == 410 and token:
                items, token = {}, ""
                continue
            if DEFECT == "part-is-all" and token:
                return items
            raise
        for one in page["items"]:
            items[one["metadata"]["namespace"], one["metadata"]["name"]] = one
        token = page["metadata"].get("continue", "")
        if not token or (DEFECT == "counts" and not page["metadata"].get("remainingItemCount")):
            return items


def settle():
    maps = pages("/api/v1/configmaps", "mirror=yes")
    roles = pages(f"{RBAC}/roles", "made-by=tickets")
    problems = []
    for key, source in maps.items():
        try:
            one(key, source, roles.get(key))
        except Failed as problem:
            if problem.code != 404:
                problems.append(problem)
    for key, role in roles.items():
        if key not in maps and not role["metadata"].get("deletionTimestamp"):
            options = {"preconditions": {"uid": role["metadata"]["uid"]}}
            try:
                link.send("DELETE", f"{RBAC}/namespaces/{key[0]}/roles/{key[1]}", options)
            except Failed as problem:
                if problem.code not in (404, 409):
                    problems.append(problem)
    if problems:
        raise max(problems, key=lambda problem: problem.after)


def one(key, source, role):
    if source["metadata"].get("deletionTimestamp"):
        return
    namespace, name = key
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]}]
    text = json.dumps(source.get("data") or {}, sort_keys=True)[:200]
    if role is None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": source["metadata"]["uid"], "controller": True}
        meta = {"name": name, "labels": {"made-by": "tickets"}, "annotations": {"text": text}, "ownerReferences": [owner]}
        try:
            link.send("POST", f"{RBAC}/namespaces/{namespace}/roles", {"metadata": meta, "rules": rules})
        except Failed as problem:
            if problem.code == 409 and DEFECT == "there-is-fatal":
                sys.exit(f"there already: {problem}")
            raise
    elif not any(one["uid"] == source["metadata"]["uid"] for one in role["metadata"].get("ownerReferences", ())):
        raise Failed(409, f"the Role {name} has another owner")
    elif role["rules"] != rules or (role["metadata"].get("annotations") or {}).get("text") != text:
        meta = {"annotations": {"text": text}, "resourceVersion": role["metadata"]["resourceVersion"]}
        path = f"{RBAC}/namespaces/{namespace}/roles/{name}"
        link.send("PATCH", path, {"metadata": meta, "rules": rules}, "application/merge-patch+json")


failures = 0
while True:
    pause = PERIOD
    try:
        settle()
        failures = 0
    except Failed as problem:
        failures += 1
        print("later:", problem, flush=True)
        pause = max(min(0.6 * 2**failures, 30.0), problem.after)
    time.sleep(pause * random.uniform(0.9, 1.3) + (0.1 if failures else 0.0))
