"""What 1.33 says in other words: changes that it refuses with the difference of two Go values (go-cmp), bad values of custom
resources in Go's syntax, APIServices whose Service has no Endpoints."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, STRATEGIC, Client
from tests.differential.definitions import definition, make, note, served
from tests.differential.pacing import until
from tests.differential.registry import scenario

DRY = {"dryRun": "All"}
CONTAINER: dict[str, Any] = {
    "name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "command": ["a", "b"],
    "resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
}  # fmt: skip
POD: dict[str, Any] = {
    "containers": [CONTAINER], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "configMap": {"name": "m"}}],
    "nodeSelector": {"a": "b", "c": "d"}, "tolerations": [{"key": "k", "operator": "Exists"}],
}  # fmt: skip
CHANGES_OF_PODS: tuple[dict[str, Any], ...] = (
    {"hostNetwork": True}, {"restartPolicy": "Never"}, {"nodeName": "n"}, {"hostname": "h", "subdomain": "s"}, {"tolerations": []},
    {"priority": 1}, {"nodeSelector": {"a": "x", "e": "f"}}, {"nodeSelector": None}, {"securityContext": {"runAsUser": 0, "fsGroup": 5}},
    {"containers": [{**CONTAINER, "command": ["b", "c", "d"]}]}, {"containers": [{**CONTAINER, "args": ["x" * 100]}]},
    {"containers": [{**CONTAINER, "env": [{"name": "B", "value": "3"}, {"name": "C"}]}]}, {"containers": [CONTAINER, {"name": "d", "image": "j"}]},
    {"containers": [{**CONTAINER, "livenessProbe": {"tcpSocket": {"port": "p"}}}]},
    {"containers": [{**CONTAINER, "resources": {"limits": {"memory": "128Mi", "a.b/c": "1"}, "requests": {"cpu": "200m", "a.b/c": "1"}}}]},
    {"containers": [{**CONTAINER, "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "n", "protocol": "UDP"}]}]},
    {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "2Gi", "medium": "Memory"}}]}, {"volumes": [*POD["volumes"], {"name": "x", "hostPath": {"path": "/"}}]},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchFields": []}}]}}},
    {"readinessGates": [{"conditionType": "a"}], "overhead": {"cpu": "1"}}, {"schedulerName": "y" * 40, "terminationGracePeriodSeconds": 5},
)  # fmt: skip


@scenario
def pods(client: Client) -> None:
    """Changes of a pod's spec."""
    path = f"/api/v1/namespaces/{client.ns}/pods"
    client.post(path, {"metadata": {"name": "p"}, "spec": POD})
    for change in CHANGES_OF_PODS:
        client.patch(f"{path}/p", {"spec": change}, MERGE, DRY)
    client.patch(f"{path}/p", {"spec": {"containers": [{"name": "c", "image": "j", "tty": True}]}}, STRATEGIC, DRY)


@scenario
def volumes_and_claims(client: Client) -> None:
    """Changes of a claim's spec, and of the source of a volume."""
    claims, volumes, name = (
        f"/api/v1/namespaces/{client.ns}/persistentvolumeclaims",
        "/api/v1/persistentvolumes",
        client.name("v"),
    )
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    client.post(claims, {"metadata": {"name": "c"}, "spec": spec})
    for change in (
        {"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}, {"volumeName": "v"}, {"storageClassName": "s"}, {"volumeMode": "Block"},
        {"selector": {"matchLabels": {"a": "b"}}}, {"resources": {"requests": {"storage": "2Gi"}}}, {"dataSource": {"kind": "K", "name": "n"}},
    ):  # fmt: skip
        client.patch(f"{claims}/c", {"spec": change}, MERGE, DRY)
    for source, changes in (
        ({"hostPath": {"path": "/a"}}, ({"hostPath": {"path": "/b", "type": "Directory"}}, {"hostPath": None, "nfs": {"server": "s", "path": "/"}})),
        ({"cephfs": {"monitors": ["a"]}}, ({"cephfs": {"monitors": ["a", "b"], "secretRef": {"name": "s"}}},)),
    ):  # fmt: skip
        body = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
        client.post(volumes, {"metadata": {"name": name}, "spec": body})
        for change in changes:
            client.patch(f"{volumes}/{name}", {"spec": change}, MERGE, DRY)
        client.delete(f"{volumes}/{name}")
        name += "x"


@scenario
def custom_resources(client: Client) -> None:
    """Bad metadata of a custom resource, and of an object that it contains."""
    contained = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": {"object": contained}}
    body = definition(client, {"type": "object", "properties": {"spec": spec}})
    owner = {"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}
    with served(client, body) as path:
        for metadata in (
            {"ownerReferences": [owner]}, {"ownerReferences": [{**owner, "kind": "Pod", "controller": True}, {**owner, "kind": "Node", "controller": True}]},
            {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}, {"labels": {"-a": "b c"}}, {"annotations": {"A b": "c"}},
            {"finalizers": ["a", "b/c/d"]}, {"managedFields": [{"operation": "x", "fieldsType": "y"}]}, {"generation": -1}, {"name": "-"}, {"generateName": "-"},
        ):  # fmt: skip
            client.post(path, {**make(body), "metadata": {"name": "one", **metadata}}, DRY)
            if "managedFields" not in metadata:
                contained_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}}
                client.post(path, make(body, spec={"object": contained_pod}), DRY)
        for metadata in (
            {"labels": 1},
            {"name": 5},
            {"labels": {"a": 1.5, "b": None}},
            {"ownerReferences": [1, True]},
            "x",
            ["a"],
        ):
            client.post(path, make(body, spec={"object": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}), DRY)
        for contained in (
            {"apiVersion": 1, "kind": "Pod"},
            {"apiVersion": "v1", "kind": {"a": "b"}},
            {"apiVersion": "", "kind": "Pod"},
            {"kind": "-"},
        ):
            client.post(path, make(body, spec={"object": contained}), DRY)


@scenario
def services_of_apiservices(client: Client) -> None:
    """The condition Available follows the Endpoints of the Service; EndpointSlices do not count."""
    services, endpoints, of_groups = (
        f"/api/v1/namespaces/{client.ns}/services",
        f"/api/v1/namespaces/{client.ns}/endpoints",
        "/apis/apiregistration.k8s.io/v1/apiservices",
    )
    group = f"e{client.id}.example.com"
    one = f"{of_groups}/v1.{group}"

    def condition() -> dict[str, Any]:
        return (client.get(one, silent=True).get("status", "conditions") or [{}])[0]

    def note_reason(reason: str) -> None:
        until(lambda: condition().get("reason") == reason)
        note(client, reason, [condition().get(name) for name in ("status", "reason", "message")])

    client.post(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"name": "https", "port": 443}]}}, silent=True)
    client.post(
        f"/apis/discovery.k8s.io/v1/namespaces/{client.ns}/endpointslices",
        {
            "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"name": "https", "port": 443}],
        },
    )  # fmt: skip
    reference = {"namespace": client.ns, "name": "s", "port": 443}
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": reference,
    }
    client.post(of_groups, {"metadata": {"name": f"v1.{group}"}, "spec": spec}, silent=True)
    note_reason("EndpointsNotFound")
    client.post(
        endpoints,
        {"metadata": {"name": "s"}, "subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"name": "other", "port": 443}]}]},
    )
    note_reason("MissingEndpoints")
    client.patch(
        f"{endpoints}/s",
        {"subsets": [{"notReadyAddresses": [{"ip": "10.1.1.1"}], "ports": [{"name": "https", "port": 443}]}]},
        MERGE,
    )
    note_reason("MissingEndpoints")
    client.delete(f"{endpoints}/s")
    note_reason("EndpointsNotFound")
    client.delete(one, silent=True)
