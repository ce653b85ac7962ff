"""Gates of 1.33 and 1.34 that are locked later, the other way than by default."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.steps import maps

DRY = {"dryRun": "All"}


@scenario
def statuses_of_jobs(client: Client) -> None:
    """What the status of a job may be while nobody but the controller writes it."""
    jobs = f"/apis/batch/v1/namespaces/{client.ns}/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    indexed = {"completionMode": "Indexed", "completions": 2}
    policy = {"successPolicy": {"rules": [{"succeededCount": 1}]}}
    for name, spec in (("plain", {}), ("indexed", indexed), ("success", {**indexed, **policy})):
        client.post(jobs, {"metadata": {"name": name}, "spec": {"template": template, **spec}})
        for kinds in (
            ("SuccessCriteriaMet",),
            ("SuccessCriteriaMet", "Failed", "FailureTarget"),
            ("Complete",),
            ("Complete", "Failed"),
        ):
            client.patch(f"{jobs}/{name}/status", {"status": {"conditions": [_condition(kind) for kind in kinds]}}, MERGE, DRY)
        client.patch(
            f"{jobs}/{name}/status", {"status": {"failed": -1, "ready": 2, "completionTime": "2026-01-01T00:00:00Z"}}, MERGE, DRY
        )
    path = f"{jobs}/success/status"
    client.patch(path, {"status": {"conditions": [_condition("SuccessCriteriaMet")]}}, MERGE)
    client.patch(path, {"status": {"conditions": []}}, MERGE, DRY)
    path = f"{jobs}/indexed/status"
    client.patch(path, {"status": {"conditions": [_condition("Complete")]}}, MERGE)
    client.patch(path, {"status": {"conditions": [_condition(kind) for kind in ("SuccessCriteriaMet", "Complete")]}}, MERGE, DRY)


def _condition(kind: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "R", "message": "m"}


@scenario
def lists_of_the_future(client: Client) -> None:
    """A list at a revision that is not there yet, with and without snapshots in the cache."""
    client.get(maps(client), {"resourceVersion": "999999999999", "resourceVersionMatch": "Exact"})


@scenario
def devices(client: Client) -> None:
    """Conditions of bindings, which need two gates."""
    pool = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
    device = {"name": "d", "bindsToNode": True, "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}
    for version in ("v1beta1", "v1beta2", "v1"):
        held = (
            {"name": "d", "basic": {key: value for key, value in device.items() if key != "name"}}
            if version == "v1beta1"
            else device
        )
        body = {"metadata": {"name": client.name("s")}, "spec": {**pool, "devices": [held]}}
        client.post(f"/apis/resource.k8s.io/{version}/resourceslices", body, DRY)


@scenario
def volumes_of_images(client: Client) -> None:
    """A volume that is an image, and its default."""
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "image": {"reference": "example.com/a"}}]}
    client.post(f"/api/v1/namespaces/{client.ns}/pods", {"metadata": {"name": "p"}, "spec": spec}, DRY)


@scenario
def claims_in_their_first_shape(client: Client) -> None:
    """Claims of v1beta1, whose requests are flat, beside those of v1beta2."""
    first, second = (
        f"/apis/resource.k8s.io/{version}/namespaces/{client.ns}/resourceclaims" for version in ("v1beta1", "v1beta2")
    )
    option = {"name": "o", "deviceClassName": "c"}
    for number, request in enumerate(
        (
            {"name": "r", "deviceClassName": "c"},
            {"name": "r", "deviceClassName": "c", "allocationMode": "All", "selectors": [{"cel": {"expression": "true"}}]},
            {"name": "r", "firstAvailable": [option]},
            {"name": "r", "deviceClassName": "c", "firstAvailable": [option]},
            {"name": "r", "allocationMode": "All"},
            {"name": "r", "count": 2, "deviceClassName": "c", "adminAccess": False},
            {"name": "r"},
            {},
        )
    ):
        client.post(first, {"metadata": {"name": f"c{number}"}, "spec": {"devices": {"requests": [request]}}})
        client.get(f"{second}/c{number}")
        client.get(f"{first}/c{number}")
    client.patch(f"{first}/c0", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    client.patch(f"{first}/c0", {"spec": {"devices": {"requests": [{"name": "x", "deviceClassName": "c"}]}}}, MERGE)
    templates = f"/apis/resource.k8s.io/v1beta1/namespaces/{client.ns}/resourceclaimtemplates"
    spec = {"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "c"}]}}}
    client.post(templates, {"metadata": {"name": "t"}, "spec": spec})
    client.get(f"{templates.replace('v1beta1', 'v1beta2')}/t")


@scenario
def reviews_with_selectors(client: Client) -> None:
    """Access reviews with selectors, which 1.33 drops without its gate."""
    resource = {
        "verb": "list",
        "resource": "pods",
        "fieldSelector": {"rawSelector": "a=b"},
        "labelSelector": {"requirements": [{"key": "a"}]},
    }
    spec = {"user": "u", "resourceAttributes": resource}
    client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": resource}})
    local = {"metadata": {"namespace": client.ns}, "spec": {**spec, "resourceAttributes": {**resource, "namespace": client.ns}}}
    client.post(f"/apis/authorization.k8s.io/v1/namespaces/{client.ns}/localsubjectaccessreviews", local)


@scenario
def standards_of_pods(client: Client) -> None:
    """What the Pod Security Standards allow to pods with a user namespace."""
    namespace = f"/api/v1/namespaces/{client.ns}"
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
    for level, version in (("restricted", "latest"), ("baseline", "latest"), ("restricted", "v1.35"), ("restricted", "v1.24")):
        labels = {
            f"pod-security.kubernetes.io/{name}": value for name, value in (("enforce", level), ("enforce-version", version))
        }
        client.patch(namespace, {"metadata": {"labels": labels}}, MERGE, silent=True)
        until(lambda wanted=version: _enforces(client, wanted))
        for users in (True, False):
            for security in ({"runAsUser": 0, "runAsNonRoot": False}, {"procMount": "Unmasked"}, {}):
                container = {"name": "c", "image": "i", "securityContext": {**safe, **security}}
                probe = {"livenessProbe": {"httpGet": {"port": 1, "host": "h"}}} if not security else {}
                spec = {"containers": [{**container, **probe}], "hostUsers": users}
                client.post(f"{namespace}/pods", {"metadata": {"name": "p"}, "spec": spec}, DRY)


@scenario
def reads_of_kubelets(client: Client) -> None:
    """What a node reads beside what is its own, with and without the selectors of its authorizer."""
    who = {"Impersonate-User": f"system:node:{client.name('n')}", "Impersonate-Group": "system:nodes"}
    slices = "/apis/resource.k8s.io/v1beta1/resourceslices"
    for path in (
        "/api/v1/pods",
        f"/api/v1/namespaces/{client.ns}/pods/absent",
        "/api/v1/nodes/absent",
        slices,
        f"{slices}/absent",
    ):
        client.get(path, {"fieldSelector": "metadata.name=absent"} if not path.endswith("absent") else None, headers=who)
    client.delete(slices, query={"fieldSelector": "spec.nodeName=absent"}, headers=who)
    client.get("/api/v1/secrets", headers=who)


@scenario
def aggregated_discovery(client: Client) -> None:
    """The aggregated form of the core group in its beta version, alone and beside the other."""
    beta, stable = (
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2beta1", "v2")
    )
    for accept in (beta, f"{beta},{stable}", f"{stable},{beta}", f"{beta},application/json"):
        client.get("/api", headers={"Accept": accept})


def _enforces(client: Client, version: str) -> bool:
    """Reports whether admission has seen the labels of the namespace."""
    spec = {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]}
    reply = client.post(f"/api/v1/namespaces/{client.ns}/pods", {"metadata": {"name": "p"}, "spec": spec}, DRY, silent=True)
    return f':{version}"' in str(reply.get("message"))
