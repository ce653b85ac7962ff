"""Effects of controllers as seen by a client: on a real server these tests need its controller manager (else they are skipped).

Nothing here sleeps: a test watches until what it expects has come.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.behaviour.conftest import Api

MERGE = "application/merge-patch+json"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
VOLUMES = "/api/v1/persistentvolumes"

Object = dict[str, Any]


@pytest.fixture(scope="module")
def living_url(request: pytest.FixtureRequest) -> Iterator[str]:
    target = request.config.getoption("--target")
    if target:
        yield target
        return
    from fakekube import Cluster

    with Cluster() as cluster:
        yield cluster.url


@pytest.fixture
def live(living_url: str) -> Iterator[Api]:
    """A client of a server with controllers, with a namespace of its own."""
    client = Api(living_url)
    client.namespace = client.name("ns")
    assert client.post("/api/v1/namespaces", {"metadata": {"name": client.namespace}}).status == 201
    try:
        watched(client, client.path("serviceaccounts"), "default")
    except TimeoutError:
        pytest.skip("the server has no controller manager: service accounts are not created")
    yield client
    client.delete(f"/api/v1/namespaces/{client.namespace}")


def followed(api: Api, path: str, name: str) -> Iterator[tuple[str, Object]]:
    """The states of an object from the present one on: ADDED, MODIFIED, DELETED, or ABSENT if it is not there at first."""
    field = {"fieldSelector": f"metadata.name={name}"}
    listed = api.get(path, field)
    yield from (("ADDED", obj) for obj in listed.at("items"))
    if not listed.at("items"):
        yield "ABSENT", {}
    since = {"watch": "1", "resourceVersion": listed.at("metadata", "resourceVersion"), "timeoutSeconds": "30"}
    connection = api.connect(timeout=40)
    try:
        connection.request("GET", f"{path}?{urllib.parse.urlencode({**field, **since})}", headers=api.headers())
        answer = connection.getresponse()
        while line := answer.readline():
            event = json.loads(line)
            yield event["type"], event["object"]
    finally:
        connection.close()
    raise TimeoutError(f"{path}/{name}")


def watched(api: Api, path: str, name: str, until: Callable[[str, Object], bool] = lambda event, obj: True) -> Object:
    """The first state of an object (event type, object) that fulfils a condition."""
    return next(obj for event, obj in followed(api, path, name) if event != "ABSENT" and until(event, obj))


def wait_until_deleted(api: Api, path: str, name: str) -> None:
    """Wait until an object is deleted."""
    next(event for event, _ in followed(api, path, name) if event in ("ABSENT", "DELETED"))


def make(api: Api, name: str, *owners: Object, plural: str = "configmaps", **more: Any) -> Object:
    metadata = {"name": name, "ownerReferences": list(owners), **more}
    reply = api.post(api.path(plural), {"metadata": metadata})
    assert reply.status == 201, reply.body
    found: Object = reply.json
    return found


def owner(obj: Object, **more: Any) -> Object:
    metadata = obj["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"], **more}


def test_background_deletion_removes_dependents(live: Api) -> None:
    top = make(live, "top")
    under = make(live, "under", owner(top))
    make(live, "leaf", owner(under), plural="secrets")
    live.delete(live.path("configmaps", "top"), {"propagationPolicy": "Background"})
    wait_until_deleted(live, live.path("configmaps"), "under")
    wait_until_deleted(live, live.path("secrets"), "leaf")


def test_foreground_deletion_waits_for_blocking_dependents(live: Api) -> None:
    top = make(live, "top")
    make(live, "under", owner(top, blockOwnerDeletion=True), finalizers=["example.com/wait"])
    reply = live.delete(live.path("configmaps", "top"), {"propagationPolicy": "Foreground"})
    assert reply.at("metadata", "finalizers") == ["foregroundDeletion"]
    watched(live, live.path("configmaps"), "under", lambda _, obj: "deletionTimestamp" in obj["metadata"])
    assert live.get(live.path("configmaps", "top")).status == 200
    live.patch(live.path("configmaps", "under"), {"metadata": {"finalizers": None}}, MERGE)
    wait_until_deleted(live, live.path("configmaps"), "top")
    assert live.get(live.path("configmaps", "under")).status == 404


def test_orphan_deletion_keeps_dependents(live: Api) -> None:
    top = make(live, "top")
    make(live, "under", owner(top))
    live.delete(live.path("configmaps", "top"), {"propagationPolicy": "Orphan"})
    wait_until_deleted(live, live.path("configmaps"), "top")
    assert "ownerReferences" not in live.get(live.path("configmaps", "under")).at("metadata")


def test_object_with_nonexistent_owner_uid_is_collected(live: Api) -> None:
    top = make(live, "top")
    make(live, "under", owner(top, uid="11111111-2222-3333-4444-555555555555"))
    wait_until_deleted(live, live.path("configmaps"), "under")
    assert live.get(live.path("configmaps", "top")).status == 200


def test_terminating_namespace_reports_remaining_content(live: Api) -> None:
    make(live, "held", finalizers=["example.com/wait"])
    path = f"/api/v1/namespaces/{live.namespace}"
    live.delete(path)

    def conditions(obj: Object) -> dict[str, Object]:
        return {one["type"]: one for one in obj["status"].get("conditions", ())}

    found = conditions(
        watched(
            live,
            "/api/v1/namespaces",
            live.namespace,
            lambda _, obj: conditions(obj).get("NamespaceContentRemaining", {}).get("status") == "True",
        )
    )
    assert found["NamespaceContentRemaining"]["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
    assert found["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances"
    )
    assert found["NamespaceDeletionContentFailure"]["status"] == "False"
    live.patch(live.path("configmaps", "held"), {"metadata": {"finalizers": None}}, MERGE)
    wait_until_deleted(live, "/api/v1/namespaces", live.namespace)


def test_deleted_root_ca_config_map_is_recreated(live: Api) -> None:
    before = watched(live, live.path("configmaps"), "kube-root-ca.crt")["metadata"]["uid"]
    live.delete(live.path("configmaps", "kube-root-ca.crt"))
    watched(
        live,
        live.path("configmaps"),
        "kube-root-ca.crt",
        lambda event, obj: event != "DELETED" and obj["metadata"]["uid"] != before,
    )


def test_service_account_token_secret_is_populated(live: Api) -> None:
    annotations = {"kubernetes.io/service-account.name": "default"}
    live.post(
        live.path("secrets"),
        {"metadata": {"name": "t", "annotations": annotations}, "type": "kubernetes.io/service-account-token"},
    )
    found = watched(live, live.path("secrets"), "t", lambda _, obj: "token" in obj.get("data", {}))
    assert set(found["data"]) == {"ca.crt", "namespace", "token"}
    assert "kubernetes.io/service-account.uid" in found["metadata"]["annotations"]


def test_aggregated_cluster_role_collects_rules(live: Api) -> None:
    label = f"example.com/{live.suffix}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    live.post(
        ROLES,
        {"metadata": {"name": live.name("sum")}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]}},
    )
    live.post(ROLES, {"metadata": {"name": live.name("part"), "labels": {label: "yes"}}, "rules": [rule]})
    try:
        watched(live, ROLES, live.name("sum"), lambda _, obj: obj.get("rules") == [rule])
    finally:
        for name in ("sum", "part"):
            live.delete(f"{ROLES}/{live.name(name)}")


def test_resource_quota_counts_existing_objects(live: Api) -> None:
    make(live, "one", plural="secrets")
    live.post(live.path("resourcequotas"), {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "1"}}})
    watched(live, live.path("resourcequotas"), "q", lambda _, obj: obj.get("status", {}).get("used") == {"secrets": "1"})
    reply = live.post(live.path("secrets"), {"metadata": {"name": "two"}})
    assert (reply.status, reply.at("message")) == (
        403,
        'secrets "two" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1',
    )
    live.delete(live.path("secrets", "one"))
    watched(live, live.path("resourcequotas"), "q", lambda _, obj: obj.get("status", {}).get("used") == {"secrets": "0"})


def test_claim_is_bound_to_a_volume_and_lost_after_its_deletion(live: Api) -> None:
    name = live.name("v")
    spec = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": name,
        "csi": {"driver": "example.com", "volumeHandle": "h"},
    }
    assert live.post(VOLUMES, {"metadata": {"name": name}, "spec": spec}).status == 201
    watched(live, VOLUMES, name, lambda _, obj: obj["status"]["phase"] == "Available")
    live.post(
        live.path("persistentvolumeclaims"),
        {
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
    claim = watched(live, live.path("persistentvolumeclaims"), "c", lambda _, obj: obj["status"]["phase"] == "Bound")
    # Another controller adds conditions to a bound claim, before or after this state.
    status = {field: value for field, value in claim["status"].items() if field != "conditions"}
    assert status == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert claim["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    live.delete(f"{VOLUMES}/{name}")
    live.patch(f"{VOLUMES}/{name}", {"metadata": {"finalizers": None}}, MERGE)
    watched(live, live.path("persistentvolumeclaims"), "c", lambda _, obj: obj["status"]["phase"] == "Lost")
