"""Deletion: finalizers, grace, propagation, preconditions, collections, eviction, namespaces."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.differential.client import JSON_PATCH, MERGE, PARTIAL, TABLE, Client
from tests.differential.registry import scenario
from tests.differential.transports import Reply

RBAC = "rbac.authorization.k8s.io/v1"
GROUPS = {
    "deployments": "apps/v1",
    "statefulsets": "apps/v1",
    "jobs": "batch/v1",
    "leases": "coordination.k8s.io/v1",
    "roles": RBAC,
    "rolebindings": RBAC,
    "clusterroles": RBAC,
    "poddisruptionbudgets": "policy/v1",
    "priorityclasses": "scheduling.k8s.io/v1",
    "storageclasses": "storage.k8s.io/v1",
}
CLUSTER = {"nodes", "namespaces", "clusterroles", "priorityclasses", "persistentvolumes", "storageclasses"}
POD = {"containers": [{"name": "c", "image": "i"}]}
WORK = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}
SPECS: dict[str, dict[str, Any]] = {
    "configmaps": {},
    "secrets": {},
    "pods": {"spec": POD},
    "services": {"spec": {"ports": [{"port": 1}]}},
    "serviceaccounts": {},
    "endpoints": {},
    "leases": {},
    "roles": {},
    "rolebindings": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}},
    "deployments": {"spec": WORK},
    "statefulsets": {"spec": WORK},
    "jobs": {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}},
    "poddisruptionbudgets": {"spec": {"selector": {}}},
    "persistentvolumeclaims": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    "limitranges": {},
    "replicationcontrollers": {"spec": {"selector": {"a": "b"}, "template": WORK["template"]}},
    "nodes": {},
    "clusterroles": {},
    "priorityclasses": {"value": 1},
    "storageclasses": {"provisioner": "e.io/p"},
    "persistentvolumes": {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
}
GUARD = ["example.com/guard"]


def at(c: Client, plural: str = "configmaps", *rest: str) -> str:
    root = f"/apis/{GROUPS[plural]}" if plural in GROUPS else "/api/v1"
    return "/".join([root + ("" if plural in CLUSTER else f"/namespaces/{c.ns}"), plural, *rest])


def make(c: Client, name: str, plural: str = "configmaps", **meta: Any) -> Reply:
    return c.post(at(c, plural), json.loads(json.dumps({**SPECS[plural], "metadata": {"name": name, **meta}})), silent=True)


def pod(c: Client, name: str, node: str = "", **spec: Any) -> Reply:
    return c.post(
        at(c, "pods"),
        {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {**POD, "nodeName": node, **spec}},
        silent=True,
    )


def free(c: Client, name: str, plural: str = "configmaps") -> Reply:
    return c.patch(at(c, plural, name), {"metadata": {"finalizers": None}}, MERGE)


def numbers(c: Client) -> None:
    """Revisions in the message just received are no news."""
    body = c.transcript[-1].get("body")
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        body["message"] = re.sub(r"(ResourceVersion in (object meta: |record \())\d+", r"\1N", body["message"])


@scenario
def what_a_delete_answers(c: Client) -> None:
    """Some kinds answer with the object, most with a Status that names it."""
    for plural in SPECS:
        name = c.name("x") if plural in CLUSTER else "x"
        make(c, name, plural)
        c.delete(at(c, plural, name))
        c.get(at(c, plural, name))
        c.patch(at(c, plural, name), {"metadata": {"finalizers": None}}, MERGE, silent=True)


@scenario
def what_a_foreground_delete_answers(c: Client) -> None:
    """The same with a policy that leaves a finalizer: now the object comes back."""
    for plural in ("configmaps", "secrets", "deployments", "leases", "roles", "jobs", "statefulsets", "services", "nodes"):
        name = c.name("x") if plural in CLUSTER else "x"
        make(c, name, plural)
        c.delete(at(c, plural, name), {"propagationPolicy": "Foreground"})
        free(c, name, plural)
        c.get(at(c, plural, name))


@scenario
def a_finalizer_holds_the_object(c: Client) -> None:
    """200 with the object and its deletionTimestamp; gone when the last finalizer goes."""
    make(c, "f", finalizers=["example.com/a", "example.com/b"])
    c.delete(at(c, "configmaps", "f"))
    c.get(at(c, "configmaps", "f"))
    c.delete(at(c, "configmaps", "f"))
    c.post(at(c), {"metadata": {"name": "f"}})
    c.patch(at(c, "configmaps", "f"), {"metadata": {"finalizers": ["example.com/b"]}}, MERGE)
    c.patch(at(c, "configmaps", "f"), {"metadata": {"finalizers": []}}, MERGE)
    c.get(at(c, "configmaps", "f"))


@scenario
def a_dying_object_takes_no_new_finalizers(c: Client) -> None:
    """Removing and reordering is fine, adding is a 422."""
    make(c, "f", finalizers=["example.com/a", "example.com/b"])
    c.delete(at(c, "configmaps", "f"), silent=True)
    for finalizers in (
        ["example.com/b", "example.com/a"],
        ["example.com/a", "example.com/b", "example.com/c"],
        ["example.com/c"],
        ["example.com/a", "example.com/a"],
        ["foregroundDeletion", "example.com/a"],
        ["example.com/a"],
        ["example.com/b"],
    ):
        c.patch(at(c, "configmaps", "f"), {"metadata": {"finalizers": finalizers}}, MERGE)
    c.patch(at(c, "configmaps", "f"), [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH)
    c.get(at(c, "configmaps", "f"))


@scenario
def a_dying_object_can_be_changed(c: Client) -> None:
    """Data, labels and status may change; the deletion cannot be taken back or moved."""
    made = make(c, "d", "deployments", finalizers=GUARD).json
    c.delete(at(c, "deployments", "d"))
    c.patch(at(c, "deployments", "d"), {"spec": {"replicas": 5}}, MERGE)
    c.patch(at(c, "deployments", "d"), {"metadata": {"labels": {"l": "1"}, "deletionTimestamp": None}}, MERGE)
    c.patch(
        at(c, "deployments", "d"),
        {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 100}},
        MERGE,
    )
    c.patch(at(c, "deployments", "d/status"), {"status": {"replicas": 5}}, MERGE)
    c.put(at(c, "deployments", "d"), made)
    del made["metadata"]["resourceVersion"]
    c.put(at(c, "deployments", "d"), made)
    made["metadata"]["finalizers"] = []
    c.put(at(c, "deployments", "d"), made)
    c.get(at(c, "deployments", "d"))


@scenario
def the_last_finalizer_may_go_by_any_write(c: Client) -> None:
    """PUT, the patches and a write to status: what removes it, and what it answers."""
    for how, act in (
        ("put", lambda p: c.put(p, {"metadata": {"name": p.rsplit("/", 1)[1]}})),
        ("merge", lambda p: c.patch(p, {"metadata": {"finalizers": None}}, MERGE)),
        ("json", lambda p: c.patch(p, [{"op": "replace", "path": "/metadata/finalizers", "value": []}], JSON_PATCH)),
        ("dry", lambda p: c.patch(p, {"metadata": {"finalizers": None}}, MERGE, {"dryRun": "All"})),
    ):
        make(c, how, finalizers=GUARD)
        c.delete(at(c, "configmaps", how))
        act(at(c, "configmaps", how))
        c.get(at(c, "configmaps", how))
    make(c, "s", "deployments", finalizers=GUARD)
    c.delete(at(c, "deployments", "s"))
    c.patch(at(c, "deployments", "s/status"), {"metadata": {"finalizers": None}}, MERGE)
    c.get(at(c, "deployments", "s"))


@scenario
def grace_of_a_bound_pod(c: Client) -> None:
    """30 seconds by default; shorter is possible later, longer is not; 0 removes at once."""
    path = at(c, "pods", "g")
    pod(c, "g", "n1")
    c.delete(path)
    c.delete(path)
    c.delete(path, {"gracePeriodSeconds": 60})
    c.delete(path, {"gracePeriodSeconds": 10})
    c.delete(path, None, {"gracePeriodSeconds": "5"})
    c.get(path)
    c.delete(path, {"gracePeriodSeconds": 0})
    c.get(path)


@scenario
def grace_of_an_unbound_or_finished_pod(c: Client) -> None:
    """A pod that never ran, or is done, has no grace."""
    pod(c, "unbound")
    c.delete(at(c, "pods", "unbound"))
    c.get(at(c, "pods", "unbound"))
    for phase in ("Succeeded", "Failed", "Running"):
        pod(c, "p", "n1")
        c.patch(at(c, "pods", "p/status"), {"status": {"phase": phase}}, MERGE, silent=True)
        c.delete(at(c, "pods", "p"))
        c.delete(at(c, "pods", "p"), None, {"gracePeriodSeconds": "0"})
    pod(c, "short", "n1", terminationGracePeriodSeconds=3)
    c.delete(at(c, "pods", "short"))
    pod(c, "none", "n1", terminationGracePeriodSeconds=0)
    c.delete(at(c, "pods", "none"))
    c.get(at(c, "pods", "none"))


@scenario
def odd_grace(c: Client) -> None:
    """Negative, fractional, huge, for pods and for kinds without grace."""
    for grace in (-1, 1, "5", 1.5, 2**40, None, True):
        pod(c, "p", "n1")
        c.delete(at(c, "pods", "p"), {"gracePeriodSeconds": grace})
        c.delete(at(c, "pods", "p"), None, {"gracePeriodSeconds": "0"}, silent=True)
    for grace in ("-1", "x", "", "1.5"):
        make(c, "c")
        c.delete(at(c, "configmaps", "c"), None, {"gracePeriodSeconds": grace})
    make(c, "k", finalizers=GUARD)
    c.delete(at(c, "configmaps", "k"), {"gracePeriodSeconds": 40})
    c.delete(at(c, "configmaps", "k"), {"gracePeriodSeconds": 0})
    free(c, "k")


@scenario
def propagation_policies(c: Client) -> None:
    """Foreground and Orphan leave a finalizer of that name, Background does not."""
    for policy in ("Foreground", "Orphan", "Background", "", "Nope", "foreground"):
        for plural in ("configmaps", "deployments"):
            make(c, "p", plural)
            c.delete(at(c, plural, "p"), {"propagationPolicy": policy})
            c.patch(at(c, plural, "p"), {"metadata": {"finalizers": None}}, MERGE, silent=True)
            c.delete(at(c, plural, "p"), silent=True)
    make(c, "q")
    c.delete(at(c, "configmaps", "q"), None, {"propagationPolicy": "Foreground"})
    c.delete(at(c, "configmaps", "q"), {"propagationPolicy": "Orphan"})
    c.delete(at(c, "configmaps", "q"), {"propagationPolicy": "Background"})
    c.get(at(c, "configmaps", "q"))


@scenario
def orphan_dependents_is_the_old_way(c: Client) -> None:
    """true is Orphan, false is Background; not together with a policy."""
    for options in (
        {"orphanDependents": True},
        {"orphanDependents": False},
        {"orphanDependents": True, "propagationPolicy": "Orphan"},
        {"orphanDependents": False, "propagationPolicy": "Background"},
        {"orphanDependents": "x"},
        {"orphanDependents": None},
    ):
        make(c, "o")
        c.delete(at(c, "configmaps", "o"), options)
        c.patch(at(c, "configmaps", "o"), {"metadata": {"finalizers": None}}, MERGE, silent=True)
    for value in ("true", "false", "x"):
        make(c, "o")
        c.delete(at(c, "configmaps", "o"), None, {"orphanDependents": value})
        c.patch(at(c, "configmaps", "o"), {"metadata": {"finalizers": None}}, MERGE, silent=True)


@scenario
def objects_that_wish_to_be_orphaned(c: Client) -> None:
    """A finalizer that is already there counts, unless a policy is named."""
    for finalizers in (["orphan"], ["foregroundDeletion"], ["orphan", "example.com/x"]):
        for options in (None, {"propagationPolicy": "Background"}, {"propagationPolicy": "Foreground"}):
            make(c, "w", finalizers=finalizers)
            c.delete(at(c, "configmaps", "w"), options)
            c.patch(at(c, "configmaps", "w"), {"metadata": {"finalizers": None}}, MERGE, silent=True)
            c.delete(at(c, "configmaps", "w"), silent=True)


@scenario
def preconditions_guard_a_delete(c: Client) -> None:
    """uid and resourceVersion must match, else 409."""
    made = make(c, "p")
    path = at(c, "configmaps", "p")
    c.delete(path, {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}})
    c.delete(path, {"preconditions": {"resourceVersion": "1"}})
    numbers(c)
    c.delete(path, {"preconditions": {"uid": made.uid, "resourceVersion": "1"}})
    numbers(c)
    c.delete(path, {"preconditions": {"uid": "x", "resourceVersion": made.rv}})
    c.delete(path, {"preconditions": {"uid": ""}})
    c.delete(path, {"preconditions": {"resourceVersion": ""}})
    numbers(c)
    c.delete(path, {"preconditions": {"resourceVersion": "abc"}})
    numbers(c)
    c.delete(path, {"preconditions": {"name": "p"}})
    made = make(c, "p")
    c.delete(path, {"preconditions": {"uid": made.uid, "resourceVersion": made.rv}})
    make(c, "p")
    c.delete(path, {"preconditions": {"uid": made.uid}})
    c.delete(path, {"preconditions": {}})
    c.delete(at(c, "configmaps", "absent"), {"preconditions": {"uid": "x"}})


@scenario
def dry_deletes_delete_nothing(c: Client) -> None:
    """dryRun=All answers like the real thing and leaves the object."""
    for plural in ("configmaps", "deployments", "pods"):
        make(c, "d", plural)
        c.delete(at(c, plural, "d"), None, {"dryRun": "All"})
        c.delete(at(c, plural, "d"), {"dryRun": ["All"]})
        c.delete(at(c, plural, "d"), {"dryRun": ["All"], "propagationPolicy": "Foreground"})
        c.get(at(c, plural, "d"))
    for body, query in (
        ({"dryRun": ["Nope"]}, None),
        ({"dryRun": "All"}, None),
        (None, {"dryRun": "nope"}),
        ({"dryRun": []}, {"dryRun": "All"}),
        (None, {"dryRun": ""}),
    ):
        make(c, "e")
        c.delete(at(c, "configmaps", "e"), body, query)
    pod(c, "b", "n1")
    c.delete(at(c, "pods", "b"), None, {"dryRun": "All"})
    c.delete(at(c, "pods", "b"), {"dryRun": ["All"], "gracePeriodSeconds": 0})
    c.get(at(c, "pods", "b"))


@scenario
def options_in_body_and_query(c: Client) -> None:
    """A body rules out the query; its kind and version are minded."""
    for body, query in (
        ({}, {"propagationPolicy": "Foreground"}),
        ({"kind": "DeleteOptions", "apiVersion": "v1"}, None),
        ({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}, None),
        ({"kind": "DeleteOptions", "apiVersion": "apps/v1"}, None),
        ({"kind": "DeleteOptions", "apiVersion": "v9"}, None),
        ({"kind": "ConfigMap", "apiVersion": "v1"}, None),
        ({"kind": "DeleteOptions"}, None),
        ({"apiVersion": "v1"}, None),
        ({"unknown": 1}, None),
        ("{", None),
        ("", None),
        ("null", None),
        ("[]", None),
        ("x: 1", None),
        ({"propagationPolicy": "Orphan"}, {"propagationPolicy": "Foreground"}),
    ):
        make(c, "o")
        c.delete(at(c, "configmaps", "o"), body, query)
        c.patch(at(c, "configmaps", "o"), {"metadata": {"finalizers": None}}, MERGE, silent=True)
    for text, ctype in (
        ("propagationPolicy: Foreground", "application/yaml"),
        ("gracePeriodSeconds: 0", "application/yaml"),
        ("{}", "text/plain"),
        ("{}", ""),
        ('{"propagationPolicy": "Orphan", "propagationPolicy": "Background"}', "application/json"),
    ):
        make(c, "o")
        c.delete(at(c, "configmaps", "o"), text, ctype=ctype)
        c.patch(at(c, "configmaps", "o"), {"metadata": {"finalizers": None}}, MERGE, silent=True)


@scenario
def ignoring_read_errors(c: Client) -> None:
    """ignoreStoreReadErrorWithClusterBreakingPotential is refused for what can be read, and beside other options."""
    key = "ignoreStoreReadErrorWithClusterBreakingPotential"
    for body, query in (
        ({key: True}, None),
        ({key: False}, None),
        (None, {key: "true"}),
        (None, {key: "false"}),
        ({key: True, "gracePeriodSeconds": 5}, None),
        ({key: True, "dryRun": ["All"]}, None),
        ({key: True, "propagationPolicy": "Background"}, None),
        ({key: True, "orphanDependents": True}, None),
        ({key: True, "preconditions": {"uid": "x"}}, None),
        (None, {key: "true", "dryRun": "All"}),
        ({key: "x"}, None),
    ):
        make(c, "i")
        c.delete(at(c, "configmaps", "i"), body, query)
        c.patch(at(c, "configmaps", "i"), {"metadata": {"finalizers": None}}, MERGE, silent=True)
    c.delete(at(c), {key: True})
    c.delete(at(c, "configmaps", "absent"), {key: True})


@scenario
def a_whole_collection(c: Client) -> None:
    """The answer to deletecollection is the list of what was there."""
    for name in ("a", "b", "c"):
        make(c, name)
    c.delete(at(c))
    c.get(at(c))
    c.delete(at(c))
    c.delete(at(c, "leases"))
    c.delete(at(c, "nothings"))


@scenario
def a_selected_collection(c: Client) -> None:
    """Selectors choose; wrong ones are refused; nothing chosen is an empty list."""
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red"), ("d", "green")):
        make(c, name, labels={"colour": colour})
    for query in (
        {"labelSelector": "colour=none"},
        {"labelSelector": "colour in"},
        {"fieldSelector": "data.x=1"},
        {"labelSelector": "colour=red", "dryRun": "All"},
        {"labelSelector": "colour=red"},
        {"fieldSelector": "metadata.name=b"},
        {"fieldSelector": "metadata.name!=d"},
        {"labelSelector": "colour=green", "fieldSelector": "metadata.name=x"},
    ):
        c.delete(at(c), None, query)
        c.get(at(c), headers={"Accept": TABLE})


@scenario
def a_collection_by_pages_and_revisions(c: Client) -> None:
    """limit, continue and resourceVersion in deletecollection."""
    for query in (
        {"limit": "1"},
        {"limit": "2"},
        {"resourceVersion": "0"},
        {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersionMatch": "Exact"},
        {"continue": "junk"},
        {"limit": "x"},
        {"timeoutSeconds": "1"},
    ):
        for name in ("a", "b", "c"):
            make(c, name)
        c.get(at(c), silent=True)
        c.delete(at(c), None, query)
        c.get(at(c))
    rv = c.get(at(c), silent=True).rv
    make(c, "later")
    c.delete(at(c), None, {"resourceVersion": rv, "resourceVersionMatch": "Exact"})
    c.get(at(c))


@scenario
def options_for_a_collection(c: Client) -> None:
    """Policies, grace, preconditions and dry run apply to each object."""
    for body, query in (
        ({"propagationPolicy": "Foreground"}, None),
        (None, {"propagationPolicy": "Orphan"}),
        ({"preconditions": {"uid": "x"}}, None),
        ({"preconditions": {"resourceVersion": "1"}}, None),
        ({"dryRun": ["All"]}, None),
        ({"gracePeriodSeconds": -5}, None),
        ({"propagationPolicy": "Nope"}, None),
        ({"kind": "Other", "apiVersion": "v1"}, None),
        ("{", None),
    ):
        make(c, "a")
        c.delete(at(c), body, query)
        numbers(c)
        c.patch(at(c, "configmaps", "a"), {"metadata": {"finalizers": None}}, MERGE, silent=True)


@scenario
def a_collection_with_guarded_objects(c: Client) -> None:
    """Guarded objects stay, marked; a second round does not fail."""
    make(c, "a")
    make(c, "b", finalizers=GUARD)
    c.delete(at(c))
    c.get(at(c))
    c.delete(at(c))
    free(c, "b")
    c.get(at(c))
    for name in ("p", "q"):
        pod(c, name, "n1" if name == "p" else "")
    c.delete(at(c, "pods"))
    c.get(at(c, "pods"), headers={"Accept": PARTIAL})
    c.delete(at(c, "pods"), {"gracePeriodSeconds": 0})
    c.get(at(c, "pods"))


@scenario
def collections_that_cannot_be_deleted(c: Client) -> None:
    """405 where the verb is missing: services once, namespaces, all-namespaces paths."""
    for path in (
        "/api/v1/namespaces",
        "/api/v1/configmaps",
        "/apis/apps/v1/deployments",
        "/api/v1/componentstatuses",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        f"/api/v1/namespaces/{c.ns}/bindings",
    ):
        c.delete(path)
    make(c, "s", "services")
    c.delete(at(c, "services"))
    c.delete("/api/v1/nodes", None, {"labelSelector": f"none={c.id}"})
    c.delete(at(c, "priorityclasses"), None, {"labelSelector": f"none={c.id}"})


@scenario
def views_of_a_delete(c: Client) -> None:
    """Table and metadata-only answers to deletions."""
    for accept in (TABLE, PARTIAL, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "text/plain"):
        make(c, "v", "deployments")
        c.delete(at(c, "deployments", "v"), headers={"Accept": accept})
        make(c, "w", "pods")
        c.delete(at(c, "pods", "w"), headers={"Accept": accept})
        make(c, "x")
        c.delete(at(c), headers={"Accept": accept})


@scenario
def eviction_without_a_budget(c: Client) -> None:
    """201 with a Status, and the pod goes."""
    for name, node in (("u", ""), ("b", "n1")):
        pod(c, name, node)
        c.post(at(c, "pods", f"{name}/eviction"), {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
        c.get(at(c, "pods", name))
    c.post(
        at(c, "pods", "b/eviction"),
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}, "deleteOptions": {"gracePeriodSeconds": 0}},
    )
    c.get(at(c, "pods", "b"))
    pod(c, "x", "n1")
    for body in (
        {"metadata": {"name": "other"}},
        {"metadata": {}},
        {},
        {"metadata": {"name": "x", "namespace": "other"}},
        {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "x"}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}},
        {"metadata": {"name": "x"}, "deleteOptions": {"dryRun": ["All"]}},
        {"metadata": {"name": "x"}, "deleteOptions": {"preconditions": {"uid": "y"}}},
        {"metadata": {"name": "x"}, "unknown": 1},
    ):
        c.post(at(c, "pods", "x/eviction"), body)
    c.post(at(c, "pods", "x/eviction"), {"metadata": {"name": "x"}}, {"dryRun": "All"})
    c.post(at(c, "pods", "absent/eviction"), {"metadata": {"name": "absent"}})
    c.get(at(c, "pods", "x/eviction"))
    c.delete(at(c, "pods", "x/eviction"))


@scenario
def eviction_under_a_budget(c: Client) -> None:
    """429 while the budget is unknown or spent, 201 while it lasts; finished pods need none."""
    c.post(
        at(c, "poddisruptionbudgets"),
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
        silent=True,
    )
    for name in ("p1", "p2", "p3"):
        pod(c, name, "n1")
        c.patch(
            at(c, "pods", f"{name}/status"),
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            MERGE,
            silent=True,
        )
    evict = lambda name, query=None: c.post(at(c, "pods", f"{name}/eviction"), {"metadata": {"name": name}}, query)  # noqa: E731
    evict("p1")
    c.patch(
        at(c, "poddisruptionbudgets", "b/status"),
        {
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": 0,
                "currentHealthy": 3,
                "desiredHealthy": 3,
                "expectedPods": 3,
            }
        },
        MERGE,
    )
    evict("p1")
    c.patch(at(c, "poddisruptionbudgets", "b/status"), {"status": {"disruptionsAllowed": 1}}, MERGE)
    evict("p1", {"dryRun": "All"})
    evict("p1")
    budget = c.get(at(c, "poddisruptionbudgets", "b"))
    evict("p2")
    c.patch(at(c, "pods", "p2/status"), {"status": {"phase": "Succeeded"}}, MERGE, silent=True)
    evict("p2")
    c.post(
        at(c, "poddisruptionbudgets"), {"metadata": {"name": "b2"}, "spec": {"maxUnavailable": 1, "selector": {}}}, silent=True
    )
    evict("p3")
    c.delete(at(c, "poddisruptionbudgets", "b2"), {"preconditions": {"uid": budget.uid}})


@scenario
def a_namespace_terminates(c: Client) -> None:
    """Status Terminating, no creates inside, finalize removes it."""
    name = c.name("t")
    root = f"/api/v1/namespaces/{name}"
    c.post("/api/v1/namespaces", {"metadata": {"name": name}})
    c.post(root + "/configmaps", {"metadata": {"name": "in"}, "data": {"a": "b"}}, silent=True)
    c.delete(root)
    c.get(root)
    c.delete(root)
    c.post(root + "/configmaps", {"metadata": {"name": "late"}})
    c.post(root + "/pods", {"metadata": {"name": "late"}, "spec": POD})
    c.post(root + "/configmaps", {"metadata": {"name": "late"}}, {"dryRun": "All"})
    c.put(f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases/l", {"metadata": {"name": "l"}})
    c.patch(root + "/configmaps/in", {"data": {"still": "works"}}, MERGE)
    c.get(root + "/configmaps")
    c.delete(root + "/configmaps/in")
    c.post("/api/v1/namespaces", {"metadata": {"name": name}})
    c.patch(root, {"metadata": {"labels": {"l": "1"}}}, MERGE)
    body = c.get(root).json
    c.put(root, {**body, "spec": {"finalizers": []}})
    c.put(root + "/finalize", {**body, "spec": {"finalizers": []}})
    c.get(root)


@scenario
def the_finalize_subresource(c: Client) -> None:
    """Only namespaces have it; only PUT works; it changes spec.finalizers."""
    name = c.name("z")
    root = f"/api/v1/namespaces/{name}"
    body = c.post("/api/v1/namespaces", {"metadata": {"name": name, "finalizers": GUARD}}).json
    c.get(root + "/finalize")
    c.patch(root + "/finalize", {"spec": {"finalizers": []}}, MERGE)
    c.put(root + "/finalize", {"metadata": {"name": "other"}})
    c.put(root + "/finalize", {**body, "spec": {"finalizers": ["kubernetes", "example.com/more"]}})
    c.put(root + "/finalize", {"metadata": {"name": name}, "spec": {"finalizers": ["not qualified!"]}})
    c.delete(root)
    c.put(root + "/finalize", {"metadata": {"name": name}, "spec": {}})
    c.get(root)
    c.patch(root, {"metadata": {"finalizers": None}}, MERGE)
    c.get(root)
    c.put(f"/api/v1/namespaces/{c.ns}/configmaps/x/finalize", {})


@scenario
def protected_namespaces(c: Client) -> None:
    """default, kube-system and kube-public may not be deleted."""
    for name in ("default", "kube-system", "kube-public"):
        c.delete(f"/api/v1/namespaces/{name}")
    c.delete("/api/v1/namespaces/" + c.name("never"))
    c.delete("/api/v1/namespaces")


@scenario
def owners_and_dependents(c: Client) -> None:
    """The server keeps references and lets the collector do the rest: a dependent stays readable."""
    owner = make(c, "owner")
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner.uid,
        "blockOwnerDeletion": True,
        "controller": True,
    }
    c.post(at(c, "secrets"), {"metadata": {"name": "owned"}}, silent=True)
    c.delete(at(c, "configmaps", "owner"), {"propagationPolicy": "Foreground"})
    c.get(at(c, "secrets", "owned"))
    c.patch(
        at(c, "configmaps", "owner"),
        {"metadata": {"finalizers": None, "ownerReferences": [{**reference, "uid": "11111111-2222-3333-4444-555555555555"}]}},
        MERGE,
    )
    c.get(at(c, "configmaps", "owner"))


@scenario
def a_successor_is_a_new_object(c: Client) -> None:
    """Same name, new uid, new creation, empty past."""
    first = c.post(at(c), {"metadata": {"name": "s", "labels": {"n": "1"}}})
    c.delete(at(c, "configmaps", "s"), {"preconditions": {"uid": first.uid}})
    c.post(at(c), {"metadata": {"name": "s"}})
    c.delete(at(c, "configmaps", "s"), {"preconditions": {"uid": first.uid}})
    c.get(at(c, "configmaps", "s"))
