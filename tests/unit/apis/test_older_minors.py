"""Rules of the minors before 1.36, with the messages that kube-apiserver 1.33.13 and 1.34.4 gave to the same requests."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube import Cluster

PODS = "/api/v1/namespaces/default/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pod(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/main:1", **container}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def definition(schema: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            **spec,
        },
    }


OPEN = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
RULES = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
FILE_KEY = {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "env", "key": "A"}}}
TO_NO_SERVICE = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {}}, "conversionReviewVersions": ["v1"]}}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (
            PODS,
            pod({"restartPolicy": "Always", "restartPolicyRules": RULES}),
            'Pod "p" is invalid: spec.containers[0].restartPolicy: Forbidden: may not be set for non-init containers',
        ),
        (
            PODS,
            pod({"env": [FILE_KEY], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
            'Pod "p" is invalid: [spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
            '`resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`, spec.containers[0].volumeMounts[0].name: Not found: "v"]',
        ),
        (
            DEFINITIONS,
            definition(None),
            'CustomResourceDefinition.apiextensions.k8s.io "widgets.example.com" is invalid: '
            "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required",
        ),
        (
            DEFINITIONS,
            definition(OPEN, conversion=TO_NO_SERVICE),
            'CustomResourceDefinition.apiextensions.k8s.io "widgets.example.com" is invalid: '
            "[spec.conversion.webhookClientConfig.service.name: Required value: service name is required, "
            "spec.conversion.webhookClientConfig.service.namespace: Required value: service namespace is required]",
        ),
    ],
)
def test_creates_of_1_33(path: str, body: dict[str, Any], message: str) -> None:
    with Cluster(version="1.33", profile="apiserver") as cluster:
        answer = cluster.request("POST", f"{path}?dryRun=All", body)
    assert (answer.status, answer.json()["message"]) == (422, message)


@pytest.mark.parametrize("member", ["provisioner", "reclaimPolicy"])
def test_members_of_a_storage_class_of_1_33_do_not_change(member: str) -> None:
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "a"}, "provisioner": "p"}
    value, text = ("q", "updates to provisioner are forbidden.")
    if member == "reclaimPolicy":
        value, text = ("Retain", "updates to reclaimPolicy are forbidden.")
    with Cluster(version="1.33", profile="apiserver") as cluster:
        cluster.create(made)
        merge = {"Content-Type": "application/merge-patch+json"}
        answer = cluster.request("PATCH", "/apis/storage.k8s.io/v1/storageclasses/a", {member: value}, headers=merge)
    message = f'StorageClass.storage.k8s.io "a" is invalid: {member}: Forbidden: {text}'
    assert (answer.status, answer.json()["message"]) == (422, message)


def test_pods_of_1_34_with_resources_of_their_own_are_not_resized() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    with Cluster(version="1.34", profile="apiserver") as cluster:
        cluster.create(pod({}, resources=resources))
        merge = {"Content-Type": "application/merge-patch+json"}
        wanted = {"spec": {"resources": {"requests": {"cpu": "1500m"}}}}
        answer = cluster.request("PATCH", f"{PODS}/p/resize", wanted, headers=merge)
    message = 'Pod "p" is invalid: []: Forbidden: pods with pod-level resources cannot be resized'
    assert (answer.status, answer.json()["message"]) == (422, message)


def test_options_of_new_pods_follow_the_minor_of_each_cluster() -> None:
    """Minors of one process ask for the same options in turn."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "matchLabelKeys": ["a"],
        "labelSelector": {"matchLabels": {"b": "c"}},
    }
    body = pod({}, topologySpreadConstraints=[constraint])
    body["metadata"]["labels"] = {"a": "x", "b": "c"}
    merged = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}], "matchLabels": {"b": "c"}}
    for version, selector in (("1.33", constraint["labelSelector"]), ("1.37", merged), ("1.33", constraint["labelSelector"])):
        with Cluster(version=version, profile="apiserver") as cluster:
            answer = cluster.request("POST", f"{PODS}?dryRun=All", body)
        assert (answer.status, answer.json()["spec"]["topologySpreadConstraints"][0]["labelSelector"]) == (201, selector)


@pytest.mark.parametrize(("length", "code", "suffix"), [("0", 406, ""), ("", 415, "\n\nAvailable representations: ")])
def test_patches_of_1_33_without_a_body_and_a_type(length: str, code: int, suffix: str) -> None:
    """The router asks for the type of a body only if there is one (go-restful 3.11)."""
    headers = {"Content-Length": length} if length else {}
    with Cluster(version="1.33", profile="apiserver") as cluster:
        answer = cluster.request("PATCH", f"{PODS}/p", headers=headers)
    words = {406: "406: Not Acceptable\n\nAvailable representations: ", 415: f"415: Unsupported Media Type{suffix}"}
    assert (answer.status, answer.json()["message"]) == (code, words[code])


def test_default_mode_of_pod_groups_of_1_36_stays_when_its_gate_is_off() -> None:
    path = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
    body = {"metadata": {"name": "a"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    gates = {"GenericWorkload": True}
    with Cluster(version="1.36", profile="apiserver", feature_gates=gates, runtime_config="api/all=true") as cluster:
        answer = cluster.request("POST", path, body).json()
    assert answer["spec"]["disruptionMode"] == "Pod"


def test_gates_of_1_35_that_are_not_as_by_default() -> None:
    gates = {"EnvFiles": False, "ProcMountType": False, "VolumeLimitScaling": True, "SELinuxMountReadWriteOncePod": False}
    with Cluster(version="1.35", profile="apiserver", feature_gates=gates) as cluster:
        driver = cluster.request("POST", "/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "d"}, "spec": {}})
        unknown = cluster.request("POST", PODS, pod({"env": [{"name": "A", "valueFrom": {}}]}))
        mounted = cluster.request("POST", PODS, pod({"securityContext": {"procMount": "Unmasked"}}))
    assert driver.status == 201
    assert not {"seLinuxMount", "preventPodSchedulingIfMissing"} & driver.json()["spec"].keys()
    assert "f:seLinuxMount" not in driver.json()["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert "`configMapKeyRef` or `secretKeyRef`" in unknown.json()["message"]
    assert mounted.json()["spec"]["containers"][0]["securityContext"] == {"procMount": "Default"}


def test_migrations_of_1_34_name_a_version() -> None:
    path = "/apis/storagemigration.k8s.io/v1alpha1/storageversionmigrations"
    gates = {"StorageVersionMigrator": True}
    with Cluster(version="1.34", profile="apiserver", feature_gates=gates, runtime_config="api/all=true") as cluster:
        answer = cluster.request("POST", path, {"metadata": {"name": "a"}, "spec": {"resource": {"resource": "pods"}}})
        cluster.request("POST", path, {"metadata": {"name": "a"}, "spec": {"resource": {"resource": "pods", "version": "v1"}}})
        body = {"spec": {"resource": {"version": "v2"}}}
        changed = cluster.request("PATCH", f"{path}/a", body, headers={"Content-Type": "application/merge-patch+json"})
    assert answer.json()["message"].endswith("spec.resource.version: Required value: version is required")
    assert changed.json()["message"].endswith('version: Invalid value: "v2": field is immutable')


@pytest.mark.parametrize(("version", "status"), [("1.35", 422), ("1.36", 200)])
def test_resources_of_jobs_without_the_condition_change_from_1_36_on(version: str, status: int) -> None:
    path, containers = "/apis/batch/v1/namespaces/default/jobs", [{"name": "main", "image": "i"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}}}
    gates = {"MutablePodResourcesForSuspendedJobs": True}
    with Cluster(version=version, profile="apiserver", feature_gates=gates) as cluster:
        cluster.request("POST", path, {"metadata": {"name": "s"}, "spec": {"suspend": True, "template": template}})
        patch = {"Content-Type": "application/strategic-merge-patch+json"}
        answer = cluster.request("PATCH", f"{path}/s", change, headers=patch)
    assert answer.status == status
