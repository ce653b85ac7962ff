"""What one object is in several versions: conversions of what is applied, of what is owned, and of fields that a version lacks."""

from __future__ import annotations

import base64
from typing import Any

from tests.differential.client import APPLY, MERGE, Client
from tests.differential.registry import scenario
from tests.differential.scenarios.rules_newer import DRY, KEY, public, stub

FORCE = {"force": "true"}


def at(c: Client, version: str, *rest: str) -> str:
    return "/".join([f"/apis/{version}/namespaces/{c.ns}", *rest])


def applied(kind: str, version: str, name: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


@scenario
def what_cannot_be_converted_for_another_manager(c: Client) -> None:
    """The configuration is converted to the version of each other manager before conflicts are reported; of its own before that."""
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    bad = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "value": "https://a.b"}}}]
    path = at(c, "autoscaling/v2", "horizontalpodautoscalers", "s")
    for version in ("autoscaling/v1", "autoscaling/v2"):
        c.post(
            at(c, version, "horizontalpodautoscalers"),
            applied("HorizontalPodAutoscaler", version, "s", {"scaleTargetRef": target, "maxReplicas": 3}),
        )
        for metrics in ([], bad):
            body = applied(
                "HorizontalPodAutoscaler", "autoscaling/v2", "s", {"scaleTargetRef": target, "maxReplicas": 5, "metrics": metrics}
            )
            c.patch(path, body, APPLY, {"fieldManager": "m1"})
            c.patch(path, body, APPLY, {"fieldManager": "m1", **FORCE})
            c.patch(path, body, APPLY, {"fieldManager": "m2"})
        c.delete(path)


@scenario
def what_is_owned_in_another_version(c: Client) -> None:
    """Objects are compared as their types print them: an empty list is no change."""
    name = c.name("s")
    slices = "/apis/resource.k8s.io/%s/resourceslices"
    spec = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
    c.post(slices % "v1beta2", {"metadata": {"name": name}, "spec": {**spec, "devices": [{"name": "d"}]}})
    changed = {**c.get(f"{slices % 'v1'}/{name}").json, "spec": {**spec, "devices": [{"name": "d", "capacity": {}}]}}
    c.put(f"{slices % 'v1'}/{name}", changed, {"fieldManager": "m2"})
    c.put(f"{slices % 'v1beta1'}/{name}", c.get(f"{slices % 'v1beta1'}/{name}").json, {"fieldManager": "m3"})
    c.delete(f"{slices % 'v1'}/{name}")
    policies, kind = "/apis/admissionregistration.k8s.io/%s/mutatingadmissionpolicies", "MutatingAdmissionPolicy"
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nothings"]}
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/x', value: 'y'}]"}}
    policy: dict[str, Any] = {
        "matchConstraints": {"objectSelector": {}, "resourceRules": [rule]},
        "mutations": [mutation],
        "reinvocationPolicy": "Never",
    }
    c.post(policies % "v1", {"metadata": {"name": name}, "spec": policy})
    policy["matchConstraints"]["objectSelector"] = {"matchExpressions": []}
    version = "admissionregistration.k8s.io/v1beta1"
    c.patch(f"{policies % 'v1beta1'}/{name}", applied(kind, version, name, policy), APPLY, {"fieldManager": "m1"})
    c.delete(f"{policies % 'v1'}/{name}")


@scenario
def what_is_applied_in_version_after_version(c: Client) -> None:
    """The manager's fields of the other version are removed, though nothing is left of the object then."""
    spec = {"leaseName": "l", "binaryVersion": "1.37.0", "emulationVersion": "1.36.0", "strategy": "OldestEmulationVersion"}
    first, second = "coordination.k8s.io/v1alpha2", "coordination.k8s.io/v1beta1"
    c.post(at(c, first, "leasecandidates"), applied("LeaseCandidate", first, "s", spec))
    c.patch(at(c, second, "leasecandidates", "s"), applied("LeaseCandidate", second, "s", spec), APPLY, {"fieldManager": "m2"})
    spec["binaryVersion"] = "1.37.1"
    for query in ({}, FORCE):
        c.patch(
            at(c, first, "leasecandidates", "s"),
            applied("LeaseCandidate", first, "s", spec),
            APPLY,
            {"fieldManager": "m2", **query},
        )


@scenario
def what_a_version_does_not_have(c: Client) -> None:
    """The key of a certificate request is null in v1beta1 and absent in v1; the count of an empty series is printed in one group."""
    plural, old, new = "podcertificaterequests", "certificates.k8s.io/v1beta1", "certificates.k8s.io/v1"
    common = {
        "signerName": "a.b/c",
        "podName": "p",
        "podUID": "u",
        "serviceAccountName": "s",
        "serviceAccountUID": "v",
        "nodeName": "n",
        "nodeUID": "w",
    }
    proof = base64.b64encode(KEY.sign(b"u")).decode()
    c.post(
        at(c, old, plural),
        {"metadata": {"name": "old"}, "spec": {**common, "pkixPublicKey": public(KEY), "proofOfPossession": proof}},
    )
    c.post(at(c, new, plural), {"metadata": {"name": "new"}, "spec": {**common, "stubPKCS10Request": stub(KEY)}})
    for name in ("old", "new"):
        for version in (old, new):
            c.get(at(c, version, plural, name))
            c.patch(at(c, version, plural, name), {"metadata": {"labels": {"by": version[-2:]}}}, MERGE, {"fieldManager": "m2"})
    for version in (new, old):
        c.patch(
            at(c, version, plural, "old"), applied("PodCertificateRequest", version, "old", common), APPLY, {"fieldManager": "m3"}
        )
    for name, field in (
        ("new", "pkixPublicKey"),
        ("new", "proofOfPossession"),
        ("old", "stubPKCS10Request"),
        ("old", "pkixPublicKey"),
    ):
        c.patch(at(c, old, plural, name), {"spec": {field: ""}}, MERGE, DRY)
    event = {"involvedObject": {"kind": "Pod", "name": "a", "namespace": c.ns}, "reason": "X", "type": "Normal"}
    for name, series in (
        ("none", None),
        ("empty", {"lastObservedTime": "2026-01-01T00:00:00.000000Z"}),
        ("counted", {"count": 3}),
    ):
        c.post(f"/api/v1/namespaces/{c.ns}/events", {**event, "metadata": {"name": name}, "series": series})
        c.get(at(c, "events.k8s.io/v1", "events", name))


@scenario
def bytes_that_are_applied_are_values(c: Client) -> None:
    """Other bytes of the same value are no conflict; the strategy sees another value."""
    path = at(c, "apps/v1", "controllerrevisions")
    c.post(path, '{"metadata": {"name": "s"}, "data": {"spec":  {"a": 1}}, "revision": 3}')
    body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"annotations": {"a": "b"}}, "revision": 3}
    for data in ({"spec": {"a": 1}}, {"spec": {"a": 2}}):
        for query in ({}, FORCE):
            c.patch(f"{path}/s", {**body, "data": data}, APPLY, {"fieldManager": "m1", **query})


@scenario
def pointers_and_lists_that_never_change(c: Client) -> None:
    """An empty text behind a pointer is a change, an empty list is none; what a create needs, an update does not."""
    path = at(c, "scheduling.k8s.io/v1alpha3")
    composite = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "workloadRef": {"workloadName": "w", "templateName": "t"}}
    c.post(f"{path}/compositepodgroups", {"metadata": {"name": "s"}, "spec": composite})
    c.patch(f"{path}/compositepodgroups/s", {"spec": {"parentCompositePodGroupName": ""}}, MERGE, DRY)
    c.post(f"{path}/podgroups", {"metadata": {"name": "s"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}})
    c.patch(f"{path}/podgroups/s", {"spec": {"parentCompositePodGroupName": "a"}}, MERGE, DRY)
    c.post(
        f"{path}/podgroups",
        {"metadata": {"name": "t"}, "spec": {"schedulingPolicy": {"basic": {}}, "parentCompositePodGroupName": "a"}},
    )
    template: dict[str, Any] = {"name": "t", "schedulingPolicy": {"basic": {}}, "schedulingConstraints": {}}
    c.post(f"{path}/workloads", {"metadata": {"name": "s"}, "spec": {"podGroupTemplates": [template]}})
    template["schedulingConstraints"] = {"topology": []}
    c.patch(f"{path}/workloads/s", {"spec": {"podGroupTemplates": [template]}}, MERGE, DRY)
