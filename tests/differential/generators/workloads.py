"""Random stories of pods' subresources, budgets, quotas, limits and scales."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE, Client
from tests.differential.definitions import DRY
from tests.differential.random_stories import Steady

# fmt: off

Object = dict[str, Any]

_CPU = ("100m", "200m", "1", "0", "2", "0.5", "1500m")
_MEMORY = ("64Mi", "128Mi", "1Gi", "0", "100M", "1")


def amounts(rng: Steady, more: tuple[str, ...] = ()) -> Object:
    out: Object = {}
    if rng.random() < 0.7:
        out["cpu"] = rng.choice(_CPU)
    if rng.random() < 0.6:
        out["memory"] = rng.choice(_MEMORY)
    if rng.random() < 0.15:
        out[rng.choice(["ephemeral-storage", "example.com/x", "hugepages-2Mi", *more])] = rng.choice(["1", "2Mi", "1Gi", "3"])
    return out


def resources(rng: Steady) -> Object:
    out: Object = {}
    if rng.random() < 0.7:
        out["requests"] = amounts(rng)
    if rng.random() < 0.6:
        out["limits"] = amounts(rng) if rng.random() < 0.6 else dict(out.get("requests", {}))
    return out


def container(rng: Steady, name: str = "c") -> Object:
    out: Object = {"name": name, "image": "i", "resources": resources(rng)}
    if rng.random() < 0.3:
        out["resizePolicy"] = [{"resourceName": rng.choice(["cpu", "memory"]), "restartPolicy": rng.choice(["NotRequired", "RestartContainer"])}]
    return out


def pod(rng: Steady, name: str) -> Object:
    spec: Object = {"containers": [container(rng, f"c{number}") for number in range(rng.choice([1, 1, 2]))]}
    if rng.random() < 0.25:
        spec["initContainers"] = [{**container(rng, "init"), **({"restartPolicy": "Always"} if rng.random() < 0.6 else {})}]
    if rng.random() < 0.2:
        spec["priorityClassName"] = rng.choice(["system-node-critical", "system-cluster-critical", "absent"])
    if rng.random() < 0.2:
        spec["activeDeadlineSeconds"] = rng.choice([1, 5, 0])
    if rng.random() < 0.2:
        spec["terminationGracePeriodSeconds"] = rng.choice([0, 1, -1])
    if rng.random() < 0.2:
        spec["affinity"] = rng.choice([{"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "namespaces": ["x"], "labelSelector": {}}]}}, {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "namespaceSelector": {}, "labelSelector": {}}]}}])
    if rng.random() < 0.15:
        spec["resources"] = {"requests": amounts(rng), "limits": amounts(rng)}
    if rng.random() < 0.1:
        spec["overhead"] = amounts(rng)
    if rng.random() < 0.2:
        spec["nodeName"] = "n"
    return {"metadata": {"name": name, "labels": {"app": rng.choice(["a", "b"])}}, "spec": spec}


def tell_pods(client: Client, rng: Steady) -> None:
    """Resizes, ephemeral containers, bindings, evictions and statuses of pods."""
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    names = ["p0", "p1", "p2"]
    for name in names:
        if client.post(pods, pod(rng, name)).status != 201:
            client.post(pods, {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c0", "image": "i"}]}}, silent=True)
    if rng.random() < 0.5:
        budget = {"metadata": {"name": "b"}, "spec": {rng.choice(["minAvailable", "maxUnavailable"]): rng.choice([0, 1, 2, "50%"]), "selector": rng.choice([{}, {"matchLabels": {"app": "a"}}]), **({"unhealthyPodEvictionPolicy": rng.choice(["IfHealthyBudget", "AlwaysAllow"])} if rng.random() < 0.5 else {})}}
        budgets = f"/apis/policy/v1/namespaces/{client.ns}/poddisruptionbudgets"
        client.post(budgets, budget)
        if rng.random() < 0.7:
            client.patch(f"{budgets}/b/status", {"status": {"observedGeneration": rng.choice([0, 1, 2]), "disruptionsAllowed": rng.choice([0, 1]), "currentHealthy": rng.choice([0, 1, 2]), "desiredHealthy": rng.choice([0, 1]), "expectedPods": 2, **({"disruptedPods": {"p0": "2020-01-01T00:00:00Z"}} if rng.random() < 0.2 else {})}}, MERGE)
    for _ in range(12):
        name = rng.choice([*names, "absent"]) if rng.random() < 0.1 else rng.choice(names)
        _act_on_pod(client, rng, f"{pods}/{name}", name)
    client.get(pods, headers={"Accept": TABLE})


def _act_on_pod(client: Client, rng: Steady, path: str, name: str) -> None:
    query = DRY if rng.random() < 0.3 else None
    current = client.get(path, silent=True).json
    spec = current.get("spec") or {"containers": [{"name": "c0", "image": "i"}]}
    roll = rng.random()
    if roll < 0.35:
        containers = [{"name": one["name"], "resources": resources(rng)} for one in spec["containers"]]
        change: Object = {"containers": containers[: rng.choice([1, 2])]}
        if rng.random() < 0.2 and spec.get("initContainers"):
            change["initContainers"] = [{"name": "init", "resources": resources(rng)}]
        if rng.random() < 0.15:
            change |= rng.choice([{"resources": {"requests": amounts(rng)}}, {"activeDeadlineSeconds": 5}, {"containers": [{"name": "new", "image": "x"}]}, {"containers": [{"name": "c0", "image": "other"}]}, {"nodeName": "m"}, {"containers": [{"name": "c0", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]}])
        target = f"{path}/resize" if rng.random() < 0.85 else path
        if rng.random() < 0.3:
            changed = copy.deepcopy(current)
            for one in changed.get("spec", {}).get("containers", []):
                one["resources"] = resources(rng)
            client.put(target, changed, query)
        elif rng.random() < 0.2:
            client.patch(target, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": change}, APPLY, {"fieldManager": "m", "force": "true"})
        else:
            client.patch(target, {"spec": change}, STRATEGIC, query)
    elif roll < 0.5:
        extra = rng.choice([{"name": "e", "image": "i"}, {"name": "e", "image": "i", "targetContainerName": "c0"}, {"name": "e", "image": "i", "targetContainerName": "nope"}, {"name": "c0", "image": "i"}, {"name": "e", "image": "i", "ports": [{"containerPort": 1}]}, {"name": "e", "image": "i", "resources": {"limits": {"cpu": "1"}}}, {"name": "e2", "image": "", "stdin": True}, {"name": "e", "image": "other"}, {"name": "e", "image": "i", "livenessProbe": {"exec": {}}}, {"name": "e", "image": "i", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}, {"name": "e", "image": "i", "restartPolicy": "Always"}, {}])
        client.patch(f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [extra]}}, rng.choice([STRATEGIC, MERGE]), query)
    elif roll < 0.68:
        eviction: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": rng.choice([name, name, name, "other", ""])}}
        if rng.random() < 0.4:
            eviction["deleteOptions"] = rng.choice([{"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {"preconditions": {"uid": "wrong"}}, {"preconditions": {"resourceVersion": "1"}}, {"propagationPolicy": "Nope"}, {"gracePeriodSeconds": -1}, {"dryRun": ["x"]}])
        client.post(f"{path}/eviction", eviction, query)
    elif roll < 0.76:
        binding: Object = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": rng.choice([name, name, "other"]), **({"annotations": {"a": "b"}, "labels": {"l": "m"}} if rng.random() < 0.4 else {})}, "target": rng.choice([{"kind": "Node", "name": "n"}, {"name": "n"}, {"kind": "Pod", "name": "n"}, {"kind": "Node", "name": ""}, {}])}
        if rng.random() < 0.2:
            binding["metadata"]["uid"] = rng.choice(["wrong", current.get("metadata", {}).get("uid", "x")])
        client.post(rng.choice([f"{path}/binding", path.rpartition("/pods/")[0] + "/bindings"]), binding, query)
    elif roll < 0.9:
        status: Object = {"phase": rng.choice(["Running", "Pending", "Succeeded", "Failed", "Nope"])}
        if rng.random() < 0.6:
            status["conditions"] = rng.choice([[{"type": "Ready", "status": "True"}], [{"type": "Ready", "status": "False", "reason": "R"}], [{"type": "PodScheduled", "status": "True"}, {"type": "x", "status": ""}], [{"type": "PodResizePending", "status": "True"}], []])
        if rng.random() < 0.5:
            status["containerStatuses"] = [{"name": one["name"], "image": "i", "imageID": "", "ready": rng.random() < 0.6, "restartCount": rng.choice([0, 3]), **({"state": rng.choice([{"running": {}}, {"terminated": {"exitCode": 1}}, {"waiting": {"reason": "CrashLoopBackOff"}}, {}]), "resources": resources(rng)} if rng.random() < 0.7 else {})} for one in spec["containers"]]
        if rng.random() < 0.3:
            status |= rng.choice([{"podIP": "10.1.0.1"}, {"podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}]}, {"podIP": "x"}, {"hostIP": "1.2.3.4"}, {"observedGeneration": 5}, {"observedGeneration": -1}, {"nominatedNodeName": "n"}, {"resize": "Proposed"}, {"qosClass": "Guaranteed"}])
        client.patch(f"{path}/status", {"status": status}, rng.choice([MERGE, STRATEGIC]), query)
    else:
        client.patch(path, rng.choice([{"spec": {"schedulingGates": []}}, {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, {"spec": {"activeDeadlineSeconds": 3}}, {"spec": {"containers": [{"name": "c0", "image": "new"}]}}, {"spec": {"terminationGracePeriodSeconds": 1}}, {"metadata": {"generation": 9}}, {"metadata": {"labels": {"x": "y"}}}, {"spec": {"nodeSelector": {"a": "b"}}}]), STRATEGIC, query)


_SCOPES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass", "CrossNamespacePodAffinity", "Nope", "VolumeAttributesClass")
_HARD = ("pods", "requests.cpu", "limits.cpu", "cpu", "memory", "limits.memory", "count/pods", "count/configmaps", "services", "secrets", "requests.storage", "persistentvolumeclaims", "count/deployments.apps", "services.nodeports", "requests.example.com/x", "ephemeral-storage", "nope", "gold.storageclass.storage.k8s.io/requests.storage")


def quota(rng: Steady, name: str) -> Object:
    spec: Object = {"hard": {rng.choice(_HARD): rng.choice(["0", "1", "2", "500m", "1Gi", "-1", "x"] if rng.random() < 0.2 else ["1", "2", "3", "500m", "1Gi"]) for _ in range(rng.choice([1, 2, 3]))}}
    if rng.random() < 0.4:
        spec["scopes"] = [rng.choice(_SCOPES) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.35:
        spec["scopeSelector"] = {"matchExpressions": [{"scopeName": rng.choice(_SCOPES), "operator": rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Nope"]), **({"values": rng.choice([["system-node-critical"], [], ["a b"], ["x", "y"]])} if rng.random() < 0.5 else {})}]}
    return {"metadata": {"name": name}, "spec": spec}


def limits(rng: Steady, name: str) -> Object:
    items = []
    for _ in range(rng.choice([1, 1, 2])):
        item: Object = {"type": rng.choice(["Container", "Container", "Pod", "PersistentVolumeClaim", "Nope", "example.com/x"])}
        for part in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            if rng.random() < 0.45:
                item[part] = {"storage": rng.choice(["1Gi", "2Gi"])} if item["type"] == "PersistentVolumeClaim" else amounts(rng)
        items.append(item)
    return {"metadata": {"name": name}, "spec": {"limits": items}}


def tell_quotas(client: Client, rng: Steady) -> None:
    """Quotas with scopes and ranges of limits, and the pods, claims and services that they meet."""
    core = f"/api/v1/namespaces/{client.ns}"
    for number in range(3):
        made = client.post(f"{core}/resourcequotas", quota(rng, f"q{number}"))
        if made.status == 201 and rng.random() < 0.9:  # what the controller would do
            hard = made.get("spec", "hard")
            used = dict.fromkeys(hard, "0")
            client.put(f"{core}/resourcequotas/q{number}/status", {**made.json, "status": {"hard": hard, "used": used}}, silent=True)
    for number in range(2):
        if rng.random() < 0.7:
            client.post(f"{core}/limitranges", limits(rng, f"l{number}"))
    client.get(f"{core}/limitranges", headers={"Accept": TABLE})
    for number in range(9):
        roll = rng.random()
        query = DRY if rng.random() < 0.3 else None
        if roll < 0.6:
            client.post(f"{core}/pods", pod(rng, f"p{number}"), query)
        elif roll < 0.7:
            client.post(f"{core}/persistentvolumeclaims", {"metadata": {"name": f"v{number}"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": rng.choice(["1Gi", "2Gi", "1"])}}, **({"storageClassName": "gold"} if rng.random() < 0.5 else {})}}, query)
        elif roll < 0.8:
            client.post(f"{core}/services", {"metadata": {"name": f"s{number}"}, "spec": {"type": rng.choice(["ClusterIP", "ClusterIP", "ExternalName"]), "externalName": "a.b", "ports": [{"port": 80}]}}, query)
        elif roll < 0.9:
            client.post(f"{core}/{rng.choice(['configmaps', 'secrets'])}", {"metadata": {"name": f"m{number}"}}, query)
        else:
            client.patch(f"{core}/pods/p{rng.randrange(number + 1)}/resize", {"spec": {"containers": [{"name": "c0", "resources": resources(rng)}]}}, STRATEGIC, query)
    for number in range(3):
        client.get(f"{core}/resourcequotas/q{number}")
        client.patch(f"{core}/resourcequotas/q{number}", {"spec": quota(rng, "x")["spec"]}, MERGE, DRY)
    client.get(f"{core}/resourcequotas", headers={"Accept": TABLE})
    client.delete(f"{core}/pods", None, {"gracePeriodSeconds": "0"}, silent=True)


_SCALABLE = {"Deployment": "deployments", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "ReplicationController": "replicationcontrollers"}


def tell_scales(client: Client, rng: Steady) -> None:
    """Scales of workloads by every verb and format of patches, among applies of the workloads themselves."""
    kind = rng.choice(sorted(_SCALABLE))
    version, root = ("v1", "/api/v1") if kind == "ReplicationController" else ("apps/v1", "/apis/apps/v1")
    selector: Object = {"app": "a"} if kind == "ReplicationController" else {"matchLabels": {"app": "a"}}
    path = f"{root}/namespaces/{client.ns}/{_SCALABLE[kind]}"
    body: Object = {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": {"replicas": 2, "selector": selector, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, **({"serviceName": "s"} if kind == "StatefulSet" else {})}}
    client.post(path, body, {"fieldManager": "m0"})
    own = f"{path}/w"
    for _ in range(14):
        query: Object = {"fieldManager": rng.choice(["m1", "m2"]), **(DRY if rng.random() < 0.15 else {})}
        scale = client.get(f"{own}/scale", silent=True).json
        replicas = rng.choice([0, 1, 5, -1, "x", None, 3, 2**31])
        roll = rng.random()
        if roll < 0.2:
            changed = {**scale, "spec": {"replicas": replicas}}
            if rng.random() < 0.5:
                changed["metadata"] = {**scale.get("metadata", {}), rng.choice(["resourceVersion", "name", "uid", "namespace", "labels", "annotations"]): rng.choice(["1", "", "other", None, {"a": "b"}])}
            if rng.random() < 0.2:
                changed |= rng.choice([{"kind": "Other"}, {"apiVersion": "extensions/v1beta1"}, {"apiVersion": "autoscaling/v2"}, {"status": {"replicas": 9}}, {"spec": {}}])
            client.put(f"{own}/scale", changed, query)
        elif roll < 0.4:
            client.patch(f"{own}/scale", {"spec": {"replicas": replicas}}, rng.choice([MERGE, STRATEGIC]), query)
        elif roll < 0.55:
            client.patch(f"{own}/scale", [{"op": rng.choice(["replace", "add", "test", "remove"]), "path": rng.choice(["/spec/replicas", "/spec", "/status/replicas", "/metadata/name", "/metadata/labels"]), "value": replicas}], JSON_PATCH, query)
        elif roll < 0.75:
            applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": replicas}}
            client.patch(f"{own}/scale", applied, APPLY, {**query, **({"force": "true"} if rng.random() < 0.5 else {})})
        elif roll < 0.9:
            applied = copy.deepcopy(body)
            applied["spec"]["replicas"] = replicas
            if rng.random() < 0.4:
                del applied["spec"]["replicas"]
            client.patch(own, applied, APPLY, {**query, **({"force": "true"} if rng.random() < 0.5 else {})})
        else:
            client.patch(f"{own}/status", {"status": {"replicas": rng.choice([0, 3, -1])}}, MERGE, query)
        client.get(rng.choice([f"{own}/scale", own]), headers={"Accept": TABLE} if rng.random() < 0.2 else None)
