"""A CronJob for each Widget, with the official client: CustomObjectsApi, BatchV1Api, threads; the loops around list and watch are its own.

KUBECONFIG=… python official.py            (DEFECT=NAME puts one in)
"""

import json
import os
import random
import threading
import time

from kubernetes import client, config
from kubernetes.client import rest
from kubernetes.client.exceptions import ApiException

DEFECT = os.environ.get("DEFECT", "")
config.load_kube_config(os.environ["KUBECONFIG"])
settings = client.Configuration.get_default_copy()
settings.retries = False
api = client.ApiClient(settings)
api.user_agent = "cron-widgets/3.1"
custom, batch = client.CustomObjectsApi(api), client.BatchV1Api(api)
PAUSES = (0.4, 15.0)


def retry_after(problem):
    text = (problem.headers or {}).get("Retry-After", "") if isinstance(problem, ApiException) else ""
    return float(text) if text.isdigit() else 0.0


class Loop(threading.Thread):
    """List, then watch from its revision, for ever."""

    def __init__(self, read, changed):
        super().__init__(daemon=True)
        self.read, self.changed, self.known, self.synced = read, changed, {}, threading.Event()

    def run(self):
        revision, pause = "", PAUSES[0]
        while True:
            begun, seen, least = time.monotonic(), 0, 0.0
            try:
                if not revision:
                    revision = self.refresh()
                for event in self.stream(revision):
                    obj = event["object"]
                    if event["type"] == "ERROR":
                        raise ApiException(status=obj.get("code", 500), reason=obj.get("message"))
                    if event["type"] not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                        continue
                    seen += 1
                    if DEFECT != "no-resume":
                        revision = obj["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self.put(obj, event["type"] == "DELETED")
                if seen or time.monotonic() - begun > 1.0:
                    pause = PAUSES[0]
                    continue
                revision = ""
            except ApiException as problem:
                if problem.status in (410, 504):
                    revision = ""
                if problem.status == 403 and DEFECT == "x":
                    raise
                least = retry_after(problem)
                if DEFECT == "status-fatal" and problem.status >= 500:
                    print("fatal", problem, flush=True)
                    os._exit(1)
            except (rest.urllib3.exceptions.HTTPError, OSError, ValueError):
                if seen:
                    pause = PAUSES[0]
            wait = pause if DEFECT == "no-jitter" else pause * random.uniform(0.7, 1.5)
            time.sleep(max(wait, least))
            pause = min(pause * 2, PAUSES[1])

    def refresh(self):
        found, token = {}, None
        while True:
            page = self.read(limit=20, _continue=token) if token else self.read(limit=20)
            for obj in page["items"]:
                found[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
            token = page["metadata"].get("continue")
            if not token:
                break
        gone = [obj for key, obj in self.known.items() if key not in found]
        for obj in found.values():
            self.put(obj, False)
        for obj in gone if DEFECT != "keeps-gone" else ():
            self.put(obj, True)
        self.synced.set()
        return page["metadata"]["resourceVersion"]

    def stream(self, revision):
        answer = self.read(
            watch=True,
            resource_version=revision,
            allow_watch_bookmarks=True,
            timeout_seconds=180,
            _preload_content=False,
            _request_timeout=(5, 86400 if DEFECT == "waits" else 14),
        )
        rest = b""
        try:
            for piece in answer.stream(4096, decode_content=True):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        finally:
            answer.close()
            answer.release_conn()

    def put(self, obj, gone):
        key = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if gone:
            self.known.pop(key, None)
        else:
            self.known[key] = obj
        self.changed(obj)


def read_widgets(_continue=None, **options):
    preload = options.pop("_preload_content", True)
    if _continue:
        options["_continue"] = _continue
    return custom.list_cluster_custom_object("checked.dev", "v1", "widgets", _preload_content=preload, **options)


def read_cronjobs(_continue=None, **options):
    options.pop("_preload_content", None)
    if _continue:
        options["_continue"] = _continue
    answer = batch.list_cron_job_for_all_namespaces(_preload_content=False, **options)
    if options.get("watch"):
        return answer
    if answer.status >= 400:
        raise ApiException(http_resp=answer)
    return json.loads(answer.data)


class Work:
    """Keys that wait, each with a time."""

    def __init__(self):
        self.due, self.failed, self.changed = {}, {}, threading.Condition()

    def add(self, key, after=0.0):
        with self.changed:
            at = time.monotonic() + after
            self.due[key] = min(self.due.get(key, at), at)
            self.changed.notify()

    def run(self):
        while True:
            with self.changed:
                key = min(self.due, key=self.due.get, default=None)
                if key is None or self.due[key] > time.monotonic():
                    self.changed.wait(None if key is None else max(self.due[key] - time.monotonic(), 0.01))
                    continue
                del self.due[key]
            try:
                reconcile(key)
                self.failed.pop(key, None)
            except (ApiException, rest.urllib3.exceptions.HTTPError, OSError) as problem:
                count = self.failed[key] = self.failed.get(key, 0) + 1
                if DEFECT == "ignores-failure":
                    continue
                pause = min(0.2 * 2**count, 15.0) * random.uniform(0.7, 1.4)
                if DEFECT == "same-second":
                    pause = 1.0
                self.add(key, max(pause, 0.0 if DEFECT == "hasty" else retry_after(problem)))


work = Work()
widgets = Loop(read_widgets, lambda obj: work.add((obj["metadata"]["namespace"], obj["metadata"]["name"])))
crons = Loop(
    read_cronjobs,
    lambda obj: [work.add((obj["metadata"]["namespace"], one["name"])) for one in obj["metadata"].get("ownerReferences", ())],
)


def reconcile(key):
    widget = widgets.known.get(key)
    if widget is None or widget["metadata"].get("deletionTimestamp"):
        return
    namespace, name = key
    uid = widget["metadata"]["uid"]
    message = widget.get("spec", {}).get("message", "")
    there = crons.known.get(key)
    container = {"name": "say", "image": "say:1", "env": [{"name": "MESSAGE", "value": message}]}
    job = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    spec = {"schedule": "0 3 1 1 *", "jobTemplate": job}
    if there is None:
        owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": name, "uid": uid, "controller": True}
        body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
        try:
            batch.create_namespaced_cron_job(namespace, body, _request_timeout=10, _preload_content=False)
        except ApiException as problem:
            if problem.status != 409:
                raise
            if DEFECT == "exists-fatal":
                os._exit(8)
            known = batch.read_namespaced_cron_job(name, namespace, _request_timeout=10)
            if not any(one.uid == uid for one in known.metadata.owner_references or ()):
                raise
    elif not any(one["uid"] == uid for one in there["metadata"].get("ownerReferences", ())):
        if DEFECT == "takes":
            batch.patch_namespaced_cron_job(name, namespace, {"spec": spec}, _request_timeout=10)
        else:
            raise ApiException(status=409, reason="the CronJob belongs to another object")
    else:
        env = there["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0].get("env")
        if env != container["env"]:
            batch.patch_namespaced_cron_job(name, namespace, {"spec": spec}, _request_timeout=10)
    if (widget.get("status") or {}).get("said") != message:
        body = {"metadata": {"resourceVersion": widget["metadata"]["resourceVersion"]}, "status": {"said": message}}
        if DEFECT == "typed":
            body = {
                "apiVersion": "checked.dev/v1",
                "kind": "Widget",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "resourceVersion": widget["metadata"]["resourceVersion"],
                    "annotations": {"said": message},
                },
                "spec": {"message": message},
            }
            custom.replace_namespaced_custom_object("checked.dev", "v1", namespace, "widgets", name, body)
            body = {"status": {"said": message}}
        try:
            custom.patch_namespaced_custom_object_status(
                "checked.dev", "v1", namespace, "widgets", name, body, _request_timeout=10
            )
        except ApiException as problem:
            if problem.status != 404 or DEFECT == "not-found":
                raise


crons.start()
crons.synced.wait()
widgets.start()
work.run()
