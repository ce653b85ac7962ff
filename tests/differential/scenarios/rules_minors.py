"""What the minors from 1.33 to 1.37 answer differently to the same requests; recorded of each of them."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import condition, definition, served, where
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.steps import maps, pod

DRY = {"dryRun": "All"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def core(client: Client, plural: str) -> str:
    return f"/api/v1/namespaces/{client.ns}/{plural}"


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "main", "image": "example.com/main:1", **fields}])


@scenario
def labels_and_owners(client: Client) -> None:
    """The words for labels that are no labels, and for owners without a name."""
    for labels in ({"a/b/c": ""}, {"x" * 64: ""}, {"a": "x" * 64}, {"A_/a": ""}):
        client.post(maps(client), {"metadata": {"name": "l", "labels": labels}}, DRY)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    for field in owner:
        client.post(maps(client), {"metadata": {"name": "o", "ownerReferences": [{**owner, field: ""}]}}, DRY)
    client.post(maps(client), {"metadata": {"name": "o", "ownerReferences": [{**owner, "kind": "Event"}]}}, DRY)
    client.get(maps(client), {"labelSelector": "a=b", "resourceVersion": "999999999999", "resourceVersionMatch": "Exact"})


@scenario
def options_of_writes(client: Client) -> None:
    """Bad values of options, and the deletion of objects that could not be read."""
    client.post(maps(client), {"metadata": {"name": "a"}})
    for query in ({"dryRun": "all"}, "dryRun=All&dryRun=Nope"):
        client.post(maps(client), {"metadata": {"name": "b"}}, query)
    unsafe = {"kind": "DeleteOptions", "apiVersion": "v1", "ignoreStoreReadErrorWithClusterBreakingPotential": True}
    client.delete(f"{maps(client)}/a", {**unsafe, "gracePeriodSeconds": 0, "dryRun": ["All"]})


@scenario
def requests_for_tokens(client: Client) -> None:
    """The uid of a request for a token."""
    path = f"{core(client, 'serviceaccounts')}/robot/token"
    client.post(core(client, "serviceaccounts"), {"metadata": {"name": "robot"}})
    client.post(path, {"metadata": {"uid": "00000000-0000-4000-8000-000000000001"}, "spec": {"expirationSeconds": 1}})


@scenario
def access_reviews(client: Client) -> None:
    """Reviews of a resource and of a path at once, and of neither."""
    own = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    both = {"resourceAttributes": {"verb": "get", "resource": "pods"}, "nonResourceAttributes": {"path": "/", "verb": "get"}}
    for spec in ({}, both):
        client.post(own, {"spec": spec})


@scenario
def pods(client: Client) -> None:
    """Fields of pods that came with a minor, and what defaulting and merging make of them."""
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    from_file = {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "env", "key": "A"}}}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}
    spread["labelSelector"] = {"matchLabels": {"b": "c"}}
    labelled = pod(topologySpreadConstraints=[spread])
    labelled["metadata"]["labels"] = {"a": "x", "b": "c"}
    for body in (
        container(restartPolicy="Always", restartPolicyRules=rules),
        container(env=[from_file], volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        container(lifecycle={"stopSignal": "SIGUSR1", "preStop": {"sleep": {"seconds": 0}}}),
        labelled,
        pod(resources={}),
        pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        pod(hostUsers=False, hostNetwork=True),
        {**pod(), "status": {"qosClass": "Guaranteed"}},
        pod(volumes=[{"name": "v", "gitRepo": {"repository": "r"}}]),
        pod(tolerations=[{"key": "a", "operator": "Lt", "value": "1"}]),
    ):
        client.post(core(client, "pods"), body, DRY)
    client.post(core(client, "pods"), pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}))
    client.patch(f"{core(client, 'pods')}/p/resize", {"spec": {"resources": {"requests": {"cpu": "1500m"}}}}, MERGE)
    client.patch(f"{core(client, 'pods')}/p/status", {"status": {"nominatedNodeName": "n"}}, STRATEGIC)
    client.post(f"{core(client, 'pods')}/p/binding", {"target": {"kind": "Node", "name": "a b"}})


@scenario
def stateful_sets(client: Client) -> None:
    """Update strategies, and changes of what stays."""
    path = f"/apis/apps/v1/namespaces/{client.ns}/statefulsets"
    spec = {
        "serviceName": "s",
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
    }
    body: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}
    for strategy in ({"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}, {"type": "x"}):
        client.post(path, {**body, "spec": {**spec, "updateStrategy": strategy}}, DRY)
    client.post(path, body)
    client.patch(f"{path}/s", {"spec": {"serviceName": "t", "podManagementPolicy": "Parallel"}}, MERGE)


@scenario
def admission_configurations(client: Client) -> None:
    """Names that belong to configurations in files."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    client.post(path, {"metadata": {"name": "a.static.k8s.io"}}, DRY)


@scenario
def storage(client: Client) -> None:
    """Classes, drivers and attachments."""
    group = "/apis/storage.k8s.io/v1"
    name = client.name("s")
    client.post(f"{group}/storageclasses", {"metadata": {"name": name}, "provisioner": "p"})
    for change in ({"provisioner": "q"}, {"reclaimPolicy": "Retain"}):
        client.patch(f"{group}/storageclasses/{name}", change, MERGE)
    client.delete(f"{group}/storageclasses/{name}", silent=True)
    client.post(f"{group}/csidrivers", {"metadata": {"name": name}, "spec": {}}, DRY)
    attachment = {"attacher": "a b", "source": {"persistentVolumeName": "v"}, "nodeName": "n"}
    client.post(f"{group}/volumeattachments", {"metadata": {"name": name}, "spec": attachment}, DRY)


@scenario
def definitions(client: Client) -> None:
    """Definitions without a schema, of sets of objects, with services without names, and their table."""
    sets = {"type": "array", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}, "x-kubernetes-list-type": "set"}
    service = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {}}, "conversionReviewVersions": ["v1"]}}
    without = definition(client, OPEN)
    del without["spec"]["versions"][0]["schema"]
    client.post(DEFINITIONS, without, DRY)
    for field in (sets, {"type": "string", "format": "k8s-x"}):
        client.post(DEFINITIONS, definition(client, {"type": "object", "properties": {"f": field}}), DRY)
    client.post(DEFINITIONS, definition(client, OPEN, conversion=service), DRY)
    client.post(DEFINITIONS, definition(client, OPEN), DRY, headers={"Accept": TABLE})


@scenario
def claims(client: Client) -> None:
    """Device claims: constraints, tolerations."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{client.ns}/resourceclaims"
    exactly = {"deviceClassName": "c", "tolerations": [{"key": "a.b/c", "operator": "Exists"}]}
    body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    client.post(path, body, DRY)
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    devices = {"requests": requests, "constraints": [{"requests": ["r"], "distinctAttribute": "d.example.com/a"}]}
    client.post(path, {"metadata": {"name": "c"}, "spec": {"devices": devices}}, DRY)


@scenario
def sets_of_devices(client: Client) -> None:
    """Duplicates in the lists of claims and slices, lists that are too long, and names without a domain."""
    claims, slices = f"/apis/resource.k8s.io/v1/namespaces/{client.ns}/resourceclaims", "/apis/resource.k8s.io/v1/resourceslices"
    exactly, option = {"exactly": {"deviceClassName": "c"}}, {"name": "s", "deviceClassName": "c"}
    for devices in (
        {"requests": [{"name": "r", **exactly}, {"name": "r"}, {"name": "r", "exactly": {"deviceClassName": "C c"}}]},
        {"requests": [{"name": "r", "firstAvailable": [option, option]}]},
        {"requests": [{"name": "r", **exactly}], "constraints": [{"requests": ["r", "r"], "matchAttribute": "x"}]},
        {"requests": [{"name": f"r{index}" if index else "R", **exactly} for index in range(33)]},
        {"requests": [{"name": "r", **exactly}], "constraints": [{"requests": ["r"], "matchAttribute": "a.b/c"}] * 33},
    ):
        client.post(claims, {"metadata": {"name": "c"}, "spec": {"devices": devices}}, DRY)
    counters = [{"counterSet": "s", "counters": {"a": {"value": "1"}}}] * 2
    pool = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
    for field in ({"devices": [{"name": "d"}, {"name": "d"}]}, {"devices": [{"name": "d", "consumesCounters": counters}]}):
        client.post(slices, {"metadata": {"name": client.name("s")}, "spec": {**pool, **field}}, DRY)


@scenario
def drivers_of_nodes(client: Client) -> None:
    """A changed driver."""
    path, driver = "/apis/storage.k8s.io/v1/csinodes", {"name": "d.example.com", "nodeID": "n", "topologyKeys": ["k"]}
    client.post(path, {"metadata": {"name": client.name("n")}, "spec": {"drivers": [driver]}})
    for fields in ({"allocatable": {"count": 4}}, {"nodeID": "m", "allocatable": {}}):
        client.patch(f"{path}/{client.name('n')}", {"spec": {"drivers": [{**driver, **fields}]}}, MERGE)
    client.delete(f"{path}/{client.name('n')}")


@scenario
def dates_of_what_has_none(client: Client) -> None:
    """The date of metadata that has none, in discovery and in an error."""
    client.get("/api", headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"})
    for meta in ({"name": "a"}, {"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z"}):
        client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"metadata": meta, "spec": {}})


@scenario
def classes_of_ingresses(client: Client) -> None:
    """Parameters without a kind and a name."""
    spec = {"controller": "example.com/c", "parameters": {"scope": "Cluster", "kind": "", "name": ""}}
    path = "/apis/networking.k8s.io/v1/ingressclasses"
    client.post(path, {"metadata": {"name": client.name("c")}, "spec": spec}, DRY)


@scenario
def deprecated_versions(client: Client) -> None:
    """Kinds that are deprecated, in the warning of a response."""
    client.get(core(client, "endpoints"))
    client.get("/api/v1/componentstatuses", {"labelSelector": "none=here"})


@scenario
def libraries_of_expressions(client: Client) -> None:
    """Functions of CEL that a minor introduced are not known to the expressions that are written to it."""
    texts = {"type": "array", "items": {"type": "string"}}
    for rule in (
        "self.all(x, isSemver(x))",
        "self.all(x, semver(x).major() == 1)",
        "self.sort() == self",
        "self.sortBy(x, size(x)) == self",
        "lists.range(2).size() == 2",
    ):
        message = {"rule": "true", "messageExpression": f"string({rule})"}
        for validation in ({"rule": rule}, message):
            field = {**texts, "maxItems": 3, "x-kubernetes-validations": [validation]}
            client.post(DEFINITIONS, definition(client, {"type": "object", "properties": {"f": field}}), DRY)
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    everything = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    for expression in ("isSemver('1.0.0')", "[1].sort() == [1]", "lists.range(2).size() == 2"):
        spec = {"matchConstraints": {"resourceRules": [everything]}, "validations": [{"expression": expression}]}
        client.post(policies, {"metadata": {"name": client.name("p")}, "spec": spec}, DRY)


@scenario
def updates_of_what_is_gone(client: Client) -> None:
    """A PUT to a name without an object: what comes first, its absence or the uid."""
    uid = "00000000-0000-4000-8000-000000000001"
    for name, meta in (("a", {}), ("b", {"uid": uid}), ("c", {"uid": uid, "resourceVersion": "1"})):
        client.put(f"{maps(client)}/{name}", {"metadata": {"name": name, **meta}})
        client.put(f"{maps(client)}/{name}", {"metadata": {"name": name, **meta}}, DRY)


@scenario
def roles(client: Client) -> None:
    """Errors of an update, which ValidateUpdate found twice."""
    group = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{client.ns}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    client.post(f"{group}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    client.patch(f"{group}/roles/r", {"rules": [{**rule, "resources": []}]}, MERGE)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    client.post(f"{group}/rolebindings", {"metadata": {"name": "r"}, "roleRef": reference, "subjects": []})
    client.patch(f"{group}/rolebindings/r", {"subjects": [{"kind": "Nobody", "name": "x"}]}, MERGE)


@scenario
def two_faults(client: Client) -> None:
    """Which of two faults of a request is answered."""
    nothing = {"Accept": "application/json;as=Nope;v=v1;g=meta.k8s.io"}
    for query in ({"labelSelector": "x y"}, {"fieldSelector": "spec.x=y"}, {"labelSelector": "a/b/c=d"}, {"limit": "x"}):
        client.get(maps(client), query, headers=nothing)
    for selector in ("a/b/c=d", f"a={'x' * 64}"):
        client.get(maps(client), {"labelSelector": selector})


@scenario
def resources_of_containers(client: Client) -> None:
    """Names of resources that are not known."""
    for name in ("x", "a/b/c", "kubernetes.io/x", "requests.example.com/x"):
        client.post(core(client, "pods"), container(resources={"requests": {name: "1"}}), DRY)


@scenario
def keys_of_lists(client: Client) -> None:
    """Items of associative lists that omit keys."""
    for port in ({"name": "a"}, {"port": 1}, {"port": 1, "protocol": "TCP"}):
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [port]}}
        client.patch(f"{core(client, 'services')}/s", body, APPLY, {"fieldManager": "m", **DRY})


@scenario
def creates_while_a_definition_ends(client: Client) -> None:
    """A custom resource cannot be created while its definition is terminating."""
    body = definition(client, OPEN)
    name, instances = body["metadata"]["name"], where(client, body)
    client.post(DEFINITIONS, body, silent=True)
    until(lambda: client.get(instances, silent=True).status == 200)
    held = {
        "apiVersion": f"{body['spec']['group']}/v1",
        "kind": "Widget",
        "metadata": {"name": "held", "finalizers": ["example.com/hold"]},
    }
    client.post(instances, held, silent=True)
    client.delete(f"{DEFINITIONS}/{name}", silent=True)
    until(lambda: condition(client, name, "Terminating") == "True")
    client.post(instances, {**held, "metadata": {"name": "late"}})
    client.patch(f"{instances}/held", {"metadata": {"finalizers": None}}, MERGE, silent=True)
    until(lambda: client.get(f"{DEFINITIONS}/{name}", silent=True).status == 404)


@scenario
def updates(client: Client) -> None:
    """What the strategies of some minors validate twice when an object is updated, and what they validate in other words."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selector = {"matchLabels": {"a": "b"}}
    attachment = {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    name = client.name("u")
    kinds: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
        ("apis/apps/v1", "daemonsets", {"selector": selector, "template": template}, {"template": {"spec": {"containers": []}}}),
        ("apis/apps/v1", "daemonsets", {"selector": selector, "template": template}, {"selector": {"matchLabels": {"c": "d"}}}),
        ("apis/apps/v1", "replicasets", {"selector": selector, "template": template}, {"selector": {"matchLabels": {"c": "d"}}}),
        ("apis/apps/v1", "replicasets", {"selector": selector, "template": template}, {"replicas": -1}),
        ("api/v1", "replicationcontrollers", {"selector": {"a": "b"}, "template": template}, {"replicas": -1}),
        ("apis/networking.k8s.io/v1", "networkpolicies", {"podSelector": {}}, {"podSelector": {"matchLabels": {"a": "-5%"}}}),
        (
            "apis/storage.k8s.io/v1",
            "csinodes",
            {"drivers": [{"name": "d", "nodeID": "n"}]},
            {"drivers": [{"name": "", "nodeID": ""}]},
        ),
        ("apis/storage.k8s.io/v1", "volumeattachments", attachment, {"attacher": "", "nodeName": ""}),
    )
    for group, plural, spec, change in kinds:
        collection = (
            f"/{group}/{plural}" if plural in ("csinodes", "volumeattachments") else f"/{group}/namespaces/{client.ns}/{plural}"
        )
        client.post(collection, {"metadata": {"name": name}, "spec": spec}, silent=True)
        for document in (
            {"spec": change},
            {"metadata": {"ownerReferences": [{"kind": "A", "name": "b", "uid": "c", "apiVersion": ""}]}},
        ):
            client.patch(f"{collection}/{name}", document, MERGE, DRY)
        client.post(collection, {"metadata": {"name": client.name("v")}, "spec": {**spec, **change}}, DRY)
        client.delete(f"{collection}/{name}", {"gracePeriodSeconds": 0}, silent=True)


@scenario
def words_of_minors(client: Client) -> None:
    """Names of drivers and resources, tolerations of classes, types of responses, search paths, profiles of AppArmor."""
    toleration = {"key": "a", "operator": "Exists", "value": "b"}
    client.post(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {"metadata": {"name": client.name("r")}, "handler": "h", "scheduling": {"tolerations": [toleration, toleration]}},
        DRY,
    )
    levels = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    for kind in ("", "Nope"):
        client.post(
            levels,
            {"metadata": {"name": client.name("l")}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": kind}}}},
            DRY,
        )
    for search in ("x,y", "a_b.c", "_a", "a-"):
        client.post(core(client, "pods"), pod(dnsConfig={"searches": [search]}), DRY)
    for profile in ({"type": "Localhost", "localhostProfile": "p"}, {"type": "RuntimeDefault"}, {"type": "Unconfined"}):
        client.post(core(client, "pods"), container(securityContext={"appArmorProfile": profile}), DRY)
        client.post(core(client, "pods"), pod(securityContext={"appArmorProfile": profile}), DRY)
    client.post(
        core(client, "pods"), pod(os={"name": "windows"}, securityContext={"appArmorProfile": {"type": "Unconfined"}}), DRY
    )
    for driver in ("", "A_", "a" * 64):
        client.post(core(client, "pods"), pod(volumes=[{"name": "v", "csi": {"driver": driver}}]), DRY)
    for hard in ({"": "1"}, {"a b": "1"}, {"nope": "1"}, {"pods": "x"}, {"pods": "-1"}):
        client.post(core(client, "resourcequotas"), {"metadata": {"name": "q"}, "spec": {"hard": hard}}, DRY)
    target = {"type": "Utilization", "averageUtilization": 50, "averageValue": "100m"}
    scaler = {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 1}
    scalers = f"/apis/autoscaling/v2/namespaces/{client.ns}/horizontalpodautoscalers"
    for one in (
        target,
        {**target, "averageUtilization": None, "averageValue": "-1"},
        {"type": "Value"},
        {**target, "value": "0"},
    ):
        client.post(
            scalers,
            {
                "metadata": {"name": "h"},
                "spec": {**scaler, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": one}}]},
            },
            DRY,
        )


@scenario
def claims_and_classes_that_change(client: Client) -> None:
    """Claims, templates and classes, which ValidateUpdate validated twice until 1.34; attachers, whose declared rules see no update."""
    devices, core_claims = "/apis/resource.k8s.io/v1", core(client, "persistentvolumeclaims")
    owner = {"metadata": {"ownerReferences": [{"kind": "A", "name": "b", "uid": "c", "apiVersion": ""}]}}
    selectors = [{"cel": {"expression": "device.driver == 'a'"}}]
    opaque = {"opaque": {"driver": "A b", "parameters": {}}}
    changes: list[dict[str, Any]] = [{"selectors": [{"cel": {"expression": "nope("}}]}, {"selectors": [{}]}, {"config": [opaque]}]
    _change(client, f"{devices}/deviceclasses", {"selectors": selectors}, [*({"spec": one} for one in changes), owner])
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": selectors}}
    requests: list[dict[str, Any]] = [
        {**request, "name": "R r"},
        {"name": "r", "exactly": {"deviceClassName": "C c", "selectors": [{"cel": {"expression": "nope("}}]}},
        {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "x"}},
    ]
    namespaced, spec = f"{devices}/namespaces/{client.ns}", {"devices": {"requests": [request]}}
    changes = [{"devices": {"requests": [one]}} for one in requests]
    _change(client, f"{namespaced}/resourceclaims", spec, [*({"spec": one} for one in changes), owner])
    changes = [*({"spec": one} for one in changes), {"metadata": {"labels": {"a b": "c"}}}]
    _change(client, f"{namespaced}/resourceclaimtemplates", {"spec": spec}, [*({"spec": one} for one in changes), owner])
    volume = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    _change(client, core_claims, volume, [{"spec": {"storageClassName": "a b"}}, owner])
    attachment = {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    changes = [{"attacher": one} for one in ("a" * 64, "a b", "é" * 40, "A" * 64)]
    _change(client, "/apis/storage.k8s.io/v1/volumeattachments", attachment, [{"spec": one} for one in changes])
    classes, name = "/apis/storage.k8s.io/v1/volumeattributesclasses", client.name("c")
    client.post(classes, {"metadata": {"name": name}, "driverName": "d", "parameters": {"a": "b"}}, silent=True)
    for change in ({"driverName": ""}, {"driverName": "a b"}, {"parameters": {"": "x"}}, {"parameters": None}, owner):
        client.patch(f"{classes}/{name}", change, MERGE, DRY)
    client.delete(f"{classes}/{name}", silent=True)


def _change(client: Client, collection: str, spec: dict[str, Any], changes: list[dict[str, Any]]) -> None:
    """Tries changes on an object of its own; those of the spec also on a new object."""
    name = client.name("c")
    client.post(collection, {"metadata": {"name": name}, "spec": spec}, silent=True)
    for change in changes:
        client.patch(f"{collection}/{name}", change, MERGE, DRY)
        if "spec" in change:
            client.post(collection, {"metadata": {"name": client.name("d")}, "spec": {**spec, **change["spec"]}}, DRY)
    client.delete(f"{collection}/{name}", silent=True)


@scenario
def tables(client: Client) -> None:
    """Cells that changed: which class is the default, architectures of kernels, reasons of pods and jobs."""
    one, other = client.name("a"), client.name("b")
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    meta = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}, "labels": {"of": client.id}}
    for name in (other, one):  # the younger one, of the same second the first by name
        client.post(classes, {"metadata": {"name": name, **meta}, "provisioner": "p"}, silent=True)
    own = {"labelSelector": f"of={client.id}"}
    for path, query in ((classes, own), (f"{classes}/{one}", None), (classes, {**own, "limit": "1"})):
        client.get(path, query, headers={"Accept": TABLE})
    client.watch(classes, {**own, "resourceVersion": "0"}, headers={"Accept": TABLE}, limit=2)
    for name in (one, other):
        client.delete(f"{classes}/{name}", silent=True)
    attributes = {"volumeattributesclass.alpha.kubernetes.io/is-default-class": "true"}
    ingress = {"ingressclass.kubernetes.io/is-default-class": "true"}
    kernel = {"kernelVersion": "5.1", "architecture": "arm64"}
    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "osImage", "containerRuntimeVersion", "kubeletVersion"), "x")
    node = {"status": {"nodeInfo": {**info, **kernel, "kubeProxyVersion": "", "operatingSystem": "linux"}}}
    for path, body in (
        ("/apis/storage.k8s.io/v1/volumeattributesclasses", {"metadata": {"annotations": attributes}, "driverName": "d"}),
        ("/apis/networking.k8s.io/v1/ingressclasses", {"metadata": {"annotations": ingress}, "spec": {"controller": "a.b/c"}}),
        ("/api/v1/nodes", {"metadata": {}, **node}),
    ):
        client.post(path, {**body, "metadata": {"name": one, **body["metadata"]}}, headers={"Accept": TABLE})
        client.delete(f"{path}/{one}", silent=True)
    _tables_of_statuses(client)


def _tables_of_statuses(client: Client) -> None:
    jobs, template = f"/apis/batch/v1/namespaces/{client.ns}/jobs", pod(restartPolicy="Never")
    indexed = {"completionMode": "Indexed", "completions": 1, "successPolicy": {"rules": [{"succeededCount": 1}]}}
    client.post(jobs, {"metadata": {"name": "j"}, "spec": {**indexed, "template": {"spec": template["spec"]}}}, silent=True)
    met = [{"type": "SuccessCriteriaMet", "status": "True", "reason": "r", "message": "m"}]
    status = {"startTime": "2026-01-01T00:00:00Z", "conditions": met}
    client.patch(f"{jobs}/j/status", {"status": status}, MERGE, headers={"Accept": TABLE})
    running, waiting = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, {"waiting": {"reason": "Waits"}}
    done, failed, killed = (
        {"terminated": ended}
        for ended in ({"exitCode": 0, "reason": "Completed"}, {"exitCode": 1, "reason": "Error"}, {"exitCode": 9, "signal": 9})
    )
    odd = {"terminated": {"exitCode": 1, "reason": "Completed"}}
    path = f"{core(client, 'pods')}/p"
    body = pod(nodeName="n", containers=[{"name": f"c{number}", "image": "i"} for number in range(2)])
    client.post(core(client, "pods"), body, silent=True)
    for ready in ("True", "False"):
        for states in (
            (done, running),
            (running, done),
            (done, done),
            (failed, done),
            (done, failed),
            (odd, running),
            (running, odd),
            (killed, done),
            (done, waiting),
        ):
            containers = [
                {"name": f"c{number}", "image": "i", "imageID": "", "restartCount": 0, "state": state, "ready": state is running}
                for number, state in enumerate(states)
            ]
            conditions = [{"type": "Ready", "status": ready}]
            status = {"phase": "Running", "conditions": conditions, "containerStatuses": containers}
            client.put(f"{path}/status", {**body, "status": status}, headers={"Accept": TABLE})


@scenario
def fields_of_bodies_that_do_not_fit(client: Client) -> None:
    """The path to a field of the wrong type, within inlined structs and within types that decode themselves."""
    for part in ({"livenessProbe": {"httpGet": {"port": True}}}, {"lifecycle": {"preStop": {"exec": 5}}}):
        client.post(core(client, "pods"), container(**part), DRY)
    client.post(core(client, "pods"), pod(volumes=[{"name": "v", "emptyDir": 5}]), DRY)
    number = {"type": 5}
    for schema in (
        number,
        {"properties": {"a": number}},
        {"items": number},
        {"items": {"items": {"maxLength": "x"}}},
        {"items": [number]},
        {"additionalProperties": number},
        {"dependencies": {"a": number}},
    ):
        client.post(DEFINITIONS, definition(client, schema), DRY)


@scenario
def restart_policies(client: Client) -> None:
    """Restart policies and rules of containers and init containers, where a minor has them, and where it does not."""
    rule: dict[str, Any] = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
    many = {"action": "Restart", "exitCodes": {"operator": "x", "values": list(range(256))}}
    fields: tuple[dict[str, Any], ...] = (
        {"restartPolicy": "Nope"},
        {"restartPolicy": "Never"},
        {"restartPolicyRules": [rule]},
        {"restartPolicy": "Always", "restartPolicyRules": [rule]},
        *(
            {"restartPolicy": "Never", "restartPolicyRules": rules}
            for rules in (
                [{**rule, "action": "RestartAllContainers"}],
                [{**rule, "action": "x"}],
                [rule] * 21,
                [many],
                [{"action": "Restart"}],
            )
        ),
    )
    for field in fields:
        client.post(core(client, "pods"), container(**field), DRY)
        client.post(core(client, "pods"), pod(initContainers=[{"name": "i", "image": "i", **field}]), DRY)


@scenario
def words_of_older_minors(client: Client) -> None:
    """What is required now and had the wrong form before, devices that are shown, and requests of two types."""
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    for handler in ({}, {"handler": "a b"}):
        client.post(classes, {"metadata": {"name": client.name("r")}, **handler}, DRY)
    levels = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    for kind in ("", "x"):
        client.post(levels, {"metadata": {"name": client.name("l")}, "spec": {"type": kind}}, DRY)
    claims = f"/apis/resource.k8s.io/v1/namespaces/{client.ns}/resourceclaims"
    option = {"name": "s", "deviceClassName": "C c"}
    for request in (
        {"exactly": {"deviceClassName": "A a"}, "firstAvailable": [option]},
        {"firstAvailable": [option, option]},
        {},
    ):
        client.post(claims, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", **request}]}}}, DRY)
    client.post(claims, {"metadata": {"name": "c"}, "spec": {}}, silent=True)
    device = {"driver": "d.example.com", "pool": "p", "device": "d"}
    client.patch(f"{claims}/c/status", {"status": {"devices": [device, device]}}, MERGE, DRY)


@scenario
def words_of_rules(client: Client) -> None:
    """Rules that have changed nothing but their words, or what they call an error."""
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    for part in (
        {"validations": [{"expression": "true", "message": " "}]},
        {"validations": [{"expression": "true", "message": "a\nb"}]},
        {"validations": [{"expression": "true"}], "variables": [{"name": "a b", "expression": "1"}]},
    ):
        spec = {"matchConstraints": {"resourceRules": [rule]}, **part}
        client.post(policies, {"metadata": {"name": client.name("p")}, "spec": spec}, DRY)
    for one in ("hostNetwork", "hostPID", "hostIPC"):
        client.post(core(client, "pods"), pod(hostUsers=False, **{one: True}), DRY)
    client.post(core(client, "pods"), pod(os={}), DRY)
    restarts = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    body = container(resizePolicy=restarts)
    body["spec"]["restartPolicy"] = "Never"
    client.post(core(client, "pods"), body, DRY)
    levels = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    client.post(levels, {"metadata": {"name": client.name("l")}, "spec": {"type": "Exempt"}}, DRY)
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    text = {"type": "object", "properties": {"a": {"type": "string"}}}
    names = {"plural": "ws", "kind": "W"}
    for part in (
        {"selectableFields": [{"jsonPath": ".a"}]},
        {},
        {"schema": {"openAPIV3Schema": {**text, "x-kubernetes-validations": [{"rule": "true", "message": " "}]}}},
    ):
        spec = {"group": "e.com", "scope": "Namespaced", "names": names, "versions": [{**version, **part}]}
        client.post(DEFINITIONS, {"metadata": {"name": "ws.e.com"}, "spec": spec}, DRY)
    for part in ({"loadBalancerIP": "1.2.3.4"}, {"externalIPs": ["1.2.3.4"]}, {"sessionAffinity": "ClientIP"}):
        spec = {"clusterIP": "None", "ports": [{"port": 80}], **part}
        client.post(core(client, "services"), {"metadata": {"name": "s"}, "spec": spec}, DRY)
    volume = {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    for capacity in (None, {}, {"cpu": "1"}):
        spec = {**volume, "capacity": capacity}
        client.post("/api/v1/persistentvolumes", {"metadata": {"name": client.name("v")}, "spec": spec}, DRY)


@scenario
def times_of_jobs(client: Client) -> None:
    """Times of a Job that cannot be, or that change."""
    path, template = f"/apis/batch/v1/namespaces/{client.ns}/jobs", pod(restartPolicy="Never")["spec"]
    client.post(path, {"metadata": {"name": "j"}, "spec": {"template": {"spec": template}}}, silent=True)
    ended = [{"type": one, "status": "True", "reason": "r", "message": "m"} for one in ("SuccessCriteriaMet", "Complete")]
    first, second, third = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))
    done = {"startTime": second, "completionTime": third, "conditions": ended}
    for change in ({**done, "completionTime": first}, {**done, "uncountedTerminatedPods": {"failed": ["a"]}}):
        client.patch(f"{path}/j/status", {"status": change}, MERGE, DRY)
    client.patch(f"{path}/j/status", {"status": done}, MERGE, silent=True)
    for change in ({"completionTime": second}, {"startTime": first}, {"startTime": None}):
        client.patch(f"{path}/j/status", {"status": change}, MERGE, DRY)


@scenario
def values_with_texts(client: Client) -> None:
    """Data of a ControllerRevision, which do not change if what is applied says the same in another text."""
    path = f"/apis/apps/v1/namespaces/{client.ns}/controllerrevisions"
    head = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"}, "revision": 1}
    client.post(path, '{"metadata":{"name":"a"},"data":{"b": 1, "a":2},"revision":1}')
    for data in ({"a": 2, "b": 1}, {"x": "y"}):
        client.patch(f"{path}/a", {**head, "data": data}, APPLY, {**DRY, "fieldManager": "m", "force": "true"})
    for data in (None, {"a": 1}):
        client.patch(f"{path}/a", {"data": data}, MERGE, DRY)


@scenario
def events(client: Client) -> None:
    """Times of an Event in its other version."""
    path = f"/apis/events.k8s.io/v1/namespaces/{client.ns}/events"
    regarding = {"kind": "Pod", "namespace": client.ns, "name": "p"}
    told = {"reportingController": "a.b/c", "reportingInstance": "i", "action": "Do", "reason": "Did", "type": "Normal"}
    body = {"metadata": {"name": "e"}, "regarding": regarding, "eventTime": "2026-01-01T00:00:00.000001Z", **told}
    client.post(path, body, silent=True)
    for change in ({"deprecatedFirstTimestamp": "2019-12-31T22:00:00Z"}, {"eventTime": "2027-01-01T00:00:00.000001Z"}):
        client.patch(f"{path}/e", change, MERGE, DRY)


@scenario
def names_of_attributes(client: Client) -> None:
    """Names without a part, where they stand in a path, and effects of taints."""
    claims = f"/apis/resource.k8s.io/v1/namespaces/{client.ns}/resourceclaims"
    request: dict[str, Any] = {"name": "r", "exactly": {"deviceClassName": "c"}}
    for name in ("", "/x", "a/", "a"):
        spec = {"devices": {"requests": [request], "constraints": [{"matchAttribute": name}]}}
        client.post(claims, {"metadata": {"name": "c"}, "spec": spec}, DRY)
    exactly = {"deviceClassName": "c", "tolerations": [{"key": "a", "operator": "Exists", "effect": "x"}]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    client.post(claims, {"metadata": {"name": "c"}, "spec": spec}, DRY)
    pool = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
    for part in ({"attributes": {"": {"int": 1}}}, {"attributes": {"/x": {"int": 1}}}, {"capacity": {"a b": {"value": "1"}}}):
        spec = {**pool, "devices": [{"name": "d", **part}]}
        client.post("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": client.name("s")}, "spec": spec}, DRY)
    client.post("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"generateName": "A_"}, "spec": {}}, DRY)


@scenario
def resizes_of_init_containers(client: Client) -> None:
    """What may change of init containers and sidecars when a pod is resized."""
    limits = {"resources": {"limits": {"cpu": "1"}}}
    inits = [{"name": "i", "image": "i", **limits}, {"name": "s", "image": "i", "restartPolicy": "Always", **limits}]
    body = container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    body["spec"]["initContainers"] = inits
    client.post(core(client, "pods"), body, silent=True)
    current = client.get(f"{core(client, 'pods')}/p", silent=True).json
    for index, change in (
        (0, {"resources": {"limits": {"cpu": "2"}}}),
        (0, {"image": "x"}),
        (0, {"resources": {}}),
        (1, {"resources": {}}),
    ):
        changed = [
            {**item, **change} if number == index else item for number, item in enumerate(current["spec"]["initContainers"])
        ]
        client.put(f"{core(client, 'pods')}/p/resize", {**current, "spec": {**current["spec"], "initContainers": changed}}, DRY)


@scenario
def resizes_of_what_has_no_resources(client: Client) -> None:
    """Resizes of containers without requests, of other resources, and of init containers that restart."""
    body = container(resources={"requests": {"cpu": "1"}})
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always"}
    restarting = {"name": "i", "image": "i", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    body["spec"]["initContainers"] = [sidecar]
    client.post(core(client, "pods"), body, silent=True)
    for resources in (
        {"requests": {"cpu": "1"}, "limits": {"ephemeral-storage": "1Gi"}},
        {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    ):
        for field, name in (("containers", "main"), ("initContainers", "s")):
            change = {"spec": {field: [{"name": name, "resources": resources}]}}
            client.patch(f"{core(client, 'pods')}/p/resize", change, STRATEGIC, DRY)
    client.patch(f"{core(client, 'pods')}/p/resize", {"spec": {"resources": {"requests": {"cpu": "2"}}}}, STRATEGIC, DRY)
    body["metadata"]["name"] = "q"
    body["spec"]["initContainers"] = [restarting]
    client.post(core(client, "pods"), body, DRY)


@scenario
def statuses(client: Client) -> None:
    """Conditions without what they must have, statuses of claims, and attachments whose status is validated twice."""
    budgets = f"/apis/policy/v1/namespaces/{client.ns}/poddisruptionbudgets"
    client.post(budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}}, silent=True)
    client.patch(f"{budgets}/b/status", {"status": {"conditions": [{"type": "A", "status": "True"}]}}, MERGE, DRY)
    schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    name = client.name("f")
    client.post(schemas, {"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": "exempt"}}}, silent=True)
    client.patch(f"{schemas}/{name}/status", {"status": {"conditions": [{"status": "True"}]}}, MERGE, DRY)
    client.delete(f"{schemas}/{name}", silent=True)
    claims = core(client, "persistentvolumeclaims")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "c"}
    sources = {name: {"kind": "PersistentVolumeClaim", "name": name} for name in ("dataSource", "dataSourceRef")}
    client.post(claims, {"metadata": {"name": "d"}, "spec": {**spec, **sources}}, DRY)
    client.post(claims, {"metadata": {"name": "c"}, "spec": spec}, silent=True)
    for states in ({"storage": "Nope"}, {"a b": "NodeResizePending"}):
        client.patch(f"{claims}/c/status", {"status": {"allocatedResourceStatuses": states}}, MERGE, DRY)
    attachments, name = "/apis/storage.k8s.io/v1/volumeattachments", client.name("a")
    volume = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    client.post(attachments, {"metadata": {"name": name}, "spec": volume}, silent=True)
    long = {"attachmentMetadata": {"a": "x" * 262_145}}
    for status in (long, {"attachError": {"message": "x" * 1025}}):
        client.patch(f"{attachments}/{name}/status", {"status": {"attached": True, **status}}, MERGE, DRY)
    client.delete(f"{attachments}/{name}", silent=True)


@scenario
def values_of_other_types(client: Client) -> None:
    """Quantities, bytes and versions in errors, and what older minors did not ask for."""
    for limit in (
        {"max": {"cpu": "2"}, "min": {"cpu": "1"}, "default": {"cpu": "500m"}},
        {"maxLimitRequestRatio": {"cpu": "900m"}},
    ):
        client.post(
            core(client, "limitranges"), {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **limit}]}}, DRY
        )
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    for request in ("eA==", ""):
        spec = {"request": request, "signerName": "a.b/c", "usages": ["client auth"]}
        client.post(requests, {"metadata": {"name": client.name("r")}, "spec": spec}, DRY)
    scalers = f"/apis/autoscaling/v2/namespaces/{client.ns}/horizontalpodautoscalers"
    for version in ("a/b/c", "v1"):
        target = {"kind": "X", "name": "x", "apiVersion": version}
        client.post(scalers, {"metadata": {"name": "h"}, "spec": {"maxReplicas": 1, "scaleTargetRef": target}}, DRY)
    jobs = f"/apis/batch/v1/namespaces/{client.ns}/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    rule = {"action": "Ignore", "onPodConditions": [{"type": "X"}]}
    client.post(jobs, {"metadata": {"name": "j"}, "spec": {"template": template, "podFailurePolicy": {"rules": [rule]}}}, DRY)
    body = container()
    body["spec"]["volumes"] = [{"name": "v", "image": {"reference": "example.com/a"}}]
    client.post(core(client, "pods"), body, DRY)


@scenario
def evictions_beside_a_budget(client: Client) -> None:
    """The words about a budget that allows no disruption though enough pods are healthy."""
    budgets = f"/apis/policy/v1/namespaces/{client.ns}/poddisruptionbudgets"
    client.post(core(client, "pods"), {**container(), "metadata": {"name": "p", "labels": {"a": "b"}}}, silent=True)
    client.patch(f"{core(client, 'pods')}/p/status", {"status": {"phase": "Running"}}, MERGE, silent=True)
    client.post(
        budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}, silent=True
    )
    counts = {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "disruptionsAllowed": 0}
    for reason in ("", "SyncFailed", "Other"):
        told = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": reason,
            "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {**counts, "conditions": [told] if reason else []}
        client.patch(f"{budgets}/b/status", {"status": status}, MERGE, silent=True)
        client.post(f"{core(client, 'pods')}/p/eviction", {"metadata": {"name": "p"}}, DRY)


@scenario
def statuses_of_pods(client: Client) -> None:
    """Statuses of claims, statuses of a container twice, and the resize of a pod whose node is not there."""
    body = container(resources={"requests": {"cpu": "1"}})
    body["spec"] |= {"restartPolicy": "Never", "resourceClaims": [{"name": "r", "resourceClaimName": "x"}], "nodeName": "gone"}
    client.post(core(client, "pods"), body, silent=True)
    path = f"{core(client, 'pods')}/p"
    ended = {"terminated": {"exitCode": 1, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z"}}
    status = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    client.patch(f"{path}/status", {"status": {"containerStatuses": [{**status, "state": ended}]}}, MERGE, silent=True)
    running = {**status, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    client.patch(f"{path}/status", {"status": {"containerStatuses": [running, running]}}, MERGE, DRY)
    for name in ("A_", "x"):
        claims = [{"name": "r", "resourceClaimName": name}]
        client.patch(f"{path}/status", {"status": {"resourceClaimStatuses": claims}}, MERGE, DRY)
    client.patch(
        f"{path}/resize", {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}, STRATEGIC, DRY
    )


@scenario
def formats_of_numbers(client: Client) -> None:
    """Formats of numbers in the schema of a definition, known and unknown, and values beyond them."""
    formats = {
        "i": ("integer", "int32"),
        "l": ("integer", "int64"),
        "d": ("number", "double"),
        "x": ("integer", "byte"),
        "y": ("number", "date"),
    }
    properties = {name: {"type": type_, "format": format_} for name, (type_, format_) in formats.items()}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    body = definition(client, schema)
    client.post(DEFINITIONS, body, DRY)
    with served(client, body) as instances:
        for spec in ({"i": 2**31}, {"l": 2**63}, {"d": "a"}, {"x": 256}, {"x": 0.5}, {"y": "a"}, {"i": 1.5}):
            one = {"apiVersion": f"{body['spec']['group']}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": spec}
            client.post(instances, one, DRY)


@scenario
def documents_that_are_replaced(client: Client) -> None:
    """A JSON patch that replaces the whole document by what is no object."""
    client.post(maps(client), {"metadata": {"name": "a"}, "data": {"a": "b"}})
    for value in (None, 5, "text", True, [], [1], {}):
        client.patch(f"{maps(client)}/a", [{"op": "replace", "path": "", "value": value}], "application/json-patch+json", DRY)
