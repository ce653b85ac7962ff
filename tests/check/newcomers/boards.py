"""Applies a Deployment for each Widget, and a condition of its own. The dynamic client of the official package.

KUBECONFIG=… python boards.py            (DEFECT=NAME puts one in)
"""

import datetime
import json
import os
import queue
import random
import threading
import time

import yaml
from kubernetes import config, dynamic
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError
from urllib3.exceptions import HTTPError

DEFECT = os.environ.get("DEFECT", "")
settings = Configuration()
config.load_kube_config(os.environ["KUBECONFIG"], client_configuration=settings)
settings.retries = False
with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
    TOKEN_FILE = yaml.safe_load(file)["users"][0]["user"].get("tokenFile")


def read_token(configuration):
    if TOKEN_FILE:
        with open(TOKEN_FILE, encoding="utf-8") as file:
            configuration.api_key["BearerToken"] = f"Bearer {file.read().strip()}"


settings.refresh_api_key_hook = read_token
api = ApiClient(settings)
api.user_agent = "boards/5.0"
TROUBLE = (
    ApiException,
    DynamicApiError,
    ResourceNotFoundError,
    HTTPError,
    OSError,
    ValueError,
    KeyError,
    AttributeError,
    TypeError,
)
MANAGER = "boards"


def discover():
    pause = 0.5
    while True:
        try:
            return dynamic.DynamicClient(api, cache_file=f"{os.environ.get('TMPDIR', '/tmp')}/boards-{os.getpid()}.json")
        except TROUBLE as problem:
            time.sleep(max(pause * random.uniform(0.7, 1.6), after_of(problem)))
            pause = min(2 * pause, 30.0)


def after_of(problem):
    text = str((getattr(problem, "headers", None) or {}).get("Retry-After", ""))
    return float(text) if text.isdigit() else 0.0


client = discover()


class Kind:
    """A resource that is looked up again when it is gone."""

    def __init__(self, version, kind):
        self.version, self.kind, self.found = version, kind, None

    def get(self):
        if self.found is None:
            try:
                self.found = client.resources.get(api_version=self.version, kind=self.kind)
            except ResourceNotFoundError:
                if DEFECT == "no-second-look":
                    raise
                client.resources.invalidate_cache()
                self.found = client.resources.get(api_version=self.version, kind=self.kind)
        return self.found

    def forget(self):
        self.found = None
        client.resources.invalidate_cache()


widgets_of, deployments_of = Kind("checked.dev/v1", "Widget"), Kind("apps/v1", "Deployment")


class Informer(threading.Thread):
    def __init__(self, kind, changed, **selectors):
        super().__init__(daemon=True)
        self.kind, self.changed, self.selectors = kind, changed, selectors
        self.cache, self.synced = {}, threading.Event()

    def run(self):
        revision, pause = None, 0.6
        while True:
            begun, seen, least = time.monotonic(), 0, 0.0
            try:
                if revision is None:
                    revision = self.list()
                for event in self.watch(revision):
                    obj = event["object"]
                    if event["type"] == "ERROR":
                        raise ApiException(status=obj.get("code", 500), reason=obj.get("message"))
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        seen += 1
                        self.put(obj, gone=event["type"] == "DELETED")
                    elif event["type"] != "BOOKMARK":
                        continue
                    revision = obj["metadata"]["resourceVersion"]
                if seen or time.monotonic() - begun > 1.0:
                    pause = 0.6
                    continue
                revision = None
            except TROUBLE as problem:
                print("again:", self.kind.kind, repr(problem)[:300], flush=True)
                least = after_of(problem)
                status = getattr(problem, "status", 0)
                if status in (404, 410, 504):
                    revision = None
                if status == 404 or isinstance(problem, ResourceNotFoundError):
                    if DEFECT == "no-second-look":
                        os._exit(1)
                    self.kind.forget()
                if seen:
                    pause = 0.6
            time.sleep(max(least, pause * random.uniform(0.6, 1.5)))
            pause = min(pause * 2, 25.0)

    def list(self):
        found, token = {}, None
        while True:
            more = {"_continue": token} if token else {}
            page = self.kind.get().get(limit=40, _request_timeout=10, **self.selectors, **more).to_dict()
            for obj in page["items"]:
                found[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
            token = page["metadata"].get("continue")
            if not token:
                break
        for key in self.cache.keys() - found.keys():
            self.put(self.cache[key], gone=True)
        for obj in found.values():
            self.put(obj, gone=False)
        self.synced.set()
        return page["metadata"]["resourceVersion"]

    def watch(self, revision):
        answer = self.kind.get().get(
            serialize=False,
            watch="true",
            allow_watch_bookmarks="true",
            resource_version=revision,
            timeout_seconds=random.randint(180, 260),
            _request_timeout=(5, 13),
            **self.selectors,
        )
        try:
            buffer = b""
            for piece in answer.stream(1 << 14, decode_content=True):
                *lines, buffer = (buffer + piece).split(b"\n")
                yield from map(json.loads, lines)
        finally:
            answer.close()

    def put(self, obj, gone):
        key = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if gone:
            self.cache.pop(key, None)
        else:
            self.cache[key] = obj
        self.changed(obj)


todo, waiting, failed = queue.Queue(), set(), {}


def add(key):
    if key not in waiting:
        waiting.add(key)
        todo.put(key)


def by_owner(obj):
    for one in obj["metadata"].get("ownerReferences") or ():
        if one["kind"] == "Widget":
            add((obj["metadata"]["namespace"], one["name"]))


widgets = Informer(widgets_of, lambda obj: add((obj["metadata"]["namespace"], obj["metadata"]["name"])))
deployments = Informer(deployments_of, by_owner, label_selector="made-by=boards")


def reconcile(key):
    widget = widgets.cache.get(key)
    if widget is None or widget["metadata"].get("deletionTimestamp"):
        return
    namespace, name = key
    uid, message = widget["metadata"]["uid"], (widget.get("spec") or {}).get("message", "")
    board = deployments.cache.get(key)
    if board is None:
        try:
            board = deployments_of.get().get(name=name, namespace=namespace, _request_timeout=10).to_dict()
        except DynamicApiError as problem:
            if problem.status != 404:
                raise
    owners = board["metadata"].get("ownerReferences") or () if board is not None else ({"uid": uid},)
    if not any(one["uid"] == uid for one in owners) and DEFECT != "by-name":
        raise ApiException(status=409, reason="the Deployment has another owner")
    env = [{"name": "MESSAGE", "value": message}]
    if board is None or board["spec"]["template"]["spec"]["containers"][0].get("env") != env:
        owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": name, "uid": uid, "controller": True}
        labels = {"app": name, "made-by": "boards"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "board", "image": "board:1", "env": env}]}}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": pod},
        }
        if DEFECT == "by-name" and not any(one["uid"] == uid for one in owners):
            del body["metadata"]["ownerReferences"]
        deployments_of.get().server_side_apply(
            body, field_manager=MANAGER, force_conflicts=DEFECT != "no-force", _request_timeout=10
        )
    known = (widget.get("status") or {}).get("conditions") or []
    if any(one["type"] == "Shown" and one.get("reason") == "Applied" and one.get("message") == message for one in known):
        return
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    mine = {"type": "Shown", "status": "True", "reason": "Applied", "message": message, "lastTransitionTime": now}
    others = [] if DEFECT == "only-mine" else [one for one in known if one["type"] != "Shown"]
    meta = {"resourceVersion": widget["metadata"]["resourceVersion"]}
    try:
        widgets_of.get().status.patch(
            body={"metadata": meta, "status": {"conditions": [*others, mine]}},
            name=name,
            namespace=namespace,
            content_type="application/merge-patch+json",
            _request_timeout=10,
        )
    except DynamicApiError as problem:
        if problem.status != 404:
            raise


def work():
    while True:
        key = todo.get()
        waiting.discard(key)
        try:
            reconcile(key)
            failed.pop(key, None)
        except TROUBLE as problem:
            if isinstance(problem, ResourceNotFoundError) or getattr(problem, "status", 0) == 404:
                widgets_of.forget()
            count = failed[key] = failed.get(key, 0) + 1
            pause = min(0.25 * 2**count, 20.0) * random.uniform(0.7, 1.4)
            timer = threading.Timer(max(pause, after_of(problem)), add, [key])
            timer.daemon = True
            timer.start()


deployments.start()
deployments.synced.wait()
widgets.start()
widgets.synced.wait()
work()
