"""Makes a ServiceAccount for each Widget with kopf, whose handlers retry.

KUBECONFIG=… python labels.py            (DEFECT=NAME puts one in)
"""

import asyncio
import os
import random

import kopf
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

DEFECT = os.environ.get("DEFECT", "")
config.load_kube_config(os.environ["KUBECONFIG"])
settings_of_client = client.Configuration.get_default_copy()
settings_of_client.retries = False
api = client.ApiClient(settings_of_client)
api.user_agent = "accounts/1.2"
core = client.CoreV1Api(api)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.networking.connect_timeout = 10


def later(problem, retry):
    text = (problem.headers or {}).get("Retry-After", "") if isinstance(problem, ApiException) else ""
    pause = min(0.5 * 2 ** min(retry, 6), 20.0) * random.uniform(0.8, 1.5)
    return kopf.TemporaryError(str(problem)[:200], delay=max(pause, float(text) if text.isdigit() else 0.0))


async def call(function, *arguments, **more):
    return await asyncio.to_thread(function, *arguments, _request_timeout=10, **more)


@kopf.on.create("checked.dev", "v1", "widgets")
@kopf.on.update("checked.dev", "v1", "widgets", field="spec")
@kopf.on.resume("checked.dev", "v1", "widgets")
async def account(name, namespace, uid, spec, body, retry, patch, **_):
    owner = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": name, "uid": uid, "controller": True}
    wanted = {"say": spec.get("message", "")}
    meta = {"name": name, "annotations": wanted, "ownerReferences": [owner]}
    if DEFECT == "generates":
        meta = {"generateName": f"{name}-", "annotations": wanted, "ownerReferences": [owner]}
    try:
        try:
            await call(core.create_namespaced_service_account, namespace, {"metadata": meta})
        except ApiException as problem:
            if problem.status != 409:
                raise
            there = await call(core.read_namespaced_service_account, name, namespace)
            if not any(one.uid == uid for one in there.metadata.owner_references or ()):
                raise
            if (there.metadata.annotations or {}).get("say") != wanted["say"]:
                change = {"metadata": {"annotations": wanted, "ownerReferences": [owner]}}
                await call(core.patch_namespaced_service_account, name, namespace, change)
        if DEFECT == "whole-object":
            custom = client.CustomObjectsApi(api)
            kept = {
                one: value
                for one, value in body["metadata"].items()
                if one in ("name", "namespace", "resourceVersion", "finalizers")
            }
            whole = {"apiVersion": "checked.dev/v1", "kind": "Widget", "metadata": kept, "spec": dict(spec)}
            try:
                await call(custom.replace_namespaced_custom_object, "checked.dev", "v1", namespace, "widgets", name, whole)
            except ApiException as problem:
                if problem.status != 409:
                    raise
    except ApiException as problem:
        if DEFECT == "permanent":
            raise kopf.PermanentError(str(problem)[:200]) from None
        raise later(problem, retry) from None
    except Exception as problem:
        raise later(problem, retry) from None
    patch.status["account"] = name


@kopf.on.delete("checked.dev", "v1", "widgets")
async def remove(name, namespace, uid, retry, **_):
    try:
        there = await call(core.read_namespaced_service_account, name, namespace)
        if any(one.uid == uid for one in there.metadata.owner_references or ()) or DEFECT == "any-owner":
            options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=there.metadata.uid))
            await call(core.delete_namespaced_service_account, name, namespace, body=options)
    except ApiException as problem:
        if problem.status in (404, 409) and DEFECT != "gone-again":
            return
        raise later(problem, retry) from None
    except Exception as problem:
        raise later(problem, retry) from None


if __name__ == "__main__":
    kopf.run(clusterwide=True, standalone=True)
