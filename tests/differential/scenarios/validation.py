"""Defaults and refusals of built-in kinds, a sample: message and causes, several faults at once."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario

POD = {"containers": [{"name": "c", "image": "i"}]}
ONCE = {**POD, "restartPolicy": "Never"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTOR = {"matchLabels": {"a": "b"}}
LONG = "x" * 64


def merged(base: Any, change: Any) -> Any:
    """`base` with `change` merged in; None removes, lists replace."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return copy.deepcopy(change)
    out = copy.deepcopy(base)
    for key, value in change.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def refuses(
    kind: str,
    place: str,
    minimal: dict[str, Any],
    faults: list[Any],
    updates: list[Any] | None = None,
    status: list[Any] | None = None,
) -> None:
    """Register a scenario: the defaulted minimal object, then each of `faults` created, each of `updates` and `status` merged into it.

    `place` is "group/version/plural", with '*' before the plural of a cluster-wide kind. A fault is a change of the
    minimal object (see `merged`).
    """
    version, _, plural = place.rpartition("/")

    def tell(c: Client) -> None:
        cluster = plural.startswith("*")
        root = ("/api/" if version == "v1" else "/apis/") + version
        collection = f"{root}/{plural[1:]}" if cluster else f"{root}/namespaces/{c.ns}/{plural}"
        name = minimal.get("metadata", {}).get("name") or (c.name("a") if cluster else "a")

        def body(change: Any, named: str) -> Any:
            own = {"apiVersion": version, "kind": kind, "metadata": {"name": named}}
            return json.loads(json.dumps(merged(merged(own, minimal), change)).replace("{ns}", c.ns).replace("{name}", named))

        try:
            if "name" in minimal.get("metadata", {}):
                c.delete(f"{collection}/{name}", silent=True)
            c.post(collection, body({}, name))
            for number, fault in enumerate(faults):
                c.post(collection, body(fault, c.name(f"f{number}") if cluster else f"f{number}"))
            for change in updates or ():
                c.patch(f"{collection}/{name}", json.loads(json.dumps(change).replace("{ns}", c.ns)), MERGE)
            for change in status or ():
                c.patch(f"{collection}/{name}/status", {"status": change}, MERGE)
        finally:
            if cluster:
                c.delete(f"{collection}/{name}", silent=True)
                for number in range(len(faults)):
                    c.delete(f"{collection}/{c.name(f'f{number}')}", silent=True)

    tell.__name__ = tell.__qualname__ = f"{SET}{kind.lower()}" + (
        "_" + version.replace("/", "_").replace(".", "_") if version in ("autoscaling/v2", "events.k8s.io/v1") else ""
    )
    tell.__module__ = "validation"
    tell.__doc__ = f"Defaults of a minimal {kind}, and what is refused of it."
    scenario(tell)


SET = ""


def spec(**change: Any) -> dict[str, Any]:
    return {"spec": change}


def container(**change: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "i", **change}]}}


refuses(
    "Pod",
    "v1/pods",
    {"spec": POD},
    [
        {"spec": {"containers": None}},
        container(name="UPPER", image=" i"),
        container(
            ports=[
                {"containerPort": 65536, "protocol": "ICMP"},
                {"containerPort": 80, "name": "a"},
                {"containerPort": 81, "name": "a"},
            ]
        ),
        container(
            env=[{"name": "1=", "value": "x"}, {"name": "OK", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "a b"}}}]
        ),
        container(resources={"limits": {"cpu": "1m"}, "requests": {"cpu": "2m", "memory": "1.5"}}),
        container(livenessProbe={"exec": {"command": ["x"]}, "successThreshold": 3, "timeoutSeconds": -1}),
        container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]),
        container(securityContext={"capabilities": {"add": ["X"]}, "runAsNonRoot": "x"}),
        spec(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "-1"}}, {"name": "V"}]),
        spec(restartPolicy="never", dnsPolicy="none", terminationGracePeriodSeconds=-30),
        spec(tolerations=[{"key": "a", "operator": "Lt", "value": "x"}, {"effect": "NoRun"}]),
        spec(hostname="a.b", setHostnameAsFQDN="x"),
        spec(nodeSelector={"ok": "not ok!"}),
        spec(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "k", "operator": "In"},
                                    {"key": "k", "operator": "Exists", "values": ["v"]},
                                ]
                            }
                        ]
                    }
                }
            }
        ),
    ],
    [
        {"spec": {"hostPID": True}},
        {"spec": {"containers": [{"name": "c", "image": "z", "command": ["x"]}]}},
        {"metadata": {"labels": {"a": "b"}}},
    ],
    [{"phase": "Running"}, {"startTime": "x"}],
)

refuses(
    "Service",
    "v1/services",
    spec(ports=[{"port": 443, "name": "tls"}], selector={"a": "b"}),
    [
        spec(ports=[{"port": -1}]),
        spec(ports=[{"port": 1}, {"port": 2}]),
        spec(type="Loadbalancer"),
        spec(clusterIP="10.0.0"),
        spec(clusterIP="None", ports=[{"port": 80, "nodePort": 31000}]),
        spec(type="ExternalName", externalName="", clusterIP="10.0.0.99"),
        spec(sessionAffinity="clientip"),
        spec(externalTrafficPolicy="Cluster"),
        spec(loadBalancerIP="x", publishNotReadyAddresses="y"),
        spec(ports=[{"port": 80, "targetPort": "a b"}, {"port": 80, "targetPort": 0, "name": "x"}]),
    ],
    [spec(clusterIP="10.0.0.98"), spec(type="NodePort", ports=[{"port": 443, "name": "tls", "nodePort": 1}]), spec(type="Nope")],
)

refuses(
    "Deployment",
    "apps/v1/deployments",
    spec(selector=SELECTOR, template=TEMPLATE),
    [
        spec(selector={"matchLabels": {"a": "b", "c": "d"}}),
        spec(replicas=-7, paused="x"),
        spec(replicas=-7, minReadySeconds=-3),
        spec(strategy={"type": "recreate"}),
        spec(strategy={"rollingUpdate": {"maxSurge": "-1%"}}),
        spec(progressDeadlineSeconds=-1, minReadySeconds=1),
        spec(template={"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c"}]}}),
    ],
    [spec(selector={"matchLabels": {"z": "z"}}), spec(revisionHistoryLimit=-1)],
    [{"updatedReplicas": 2, "replicas": 1}, {"unavailableReplicas": -1}],
)

refuses(
    "StatefulSet",
    "apps/v1/statefulsets",
    spec(selector=SELECTOR, template=TEMPLATE, serviceName="s"),
    [
        spec(podManagementPolicy="Serial"),
        spec(updateStrategy={"type": "Recreate"}),
        spec(replicas=-2, revisionHistoryLimit=-2),
        spec(volumeClaimTemplates=[{"metadata": {"name": "x"}}], ordinals={"start": -2}),
        spec(selector={"matchLabels": {"q": "r"}}),
    ],
    [spec(serviceName="t"), spec(replicas=0)],
)
refuses(
    "DaemonSet",
    "apps/v1/daemonsets",
    spec(selector=SELECTOR, template=TEMPLATE),
    [
        spec(updateStrategy={"type": "Recreate", "rollingUpdate": {}}),
        spec(updateStrategy={"rollingUpdate": {"maxUnavailable": "120%"}}),
        spec(minReadySeconds=-9),
        spec(template={"spec": {"containers": None}}),
    ],
)
refuses(
    "ReplicaSet",
    "apps/v1/replicasets",
    spec(selector=SELECTOR, template=TEMPLATE),
    [
        spec(replicas=-5),
        spec(selector={"matchLabels": {"a": "no match"}}),
        spec(template={"spec": {"restartPolicy": "Never"}}),
        spec(selector={"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}),
    ],
)
refuses(
    "Job",
    "batch/v1/jobs",
    spec(template={"spec": ONCE}),
    [
        spec(template={"spec": {"restartPolicy": "always"}}),
        spec(parallelism=-3, completions=-3),
        spec(backoffLimit=-2, ttlSecondsAfterFinished=-2),
        spec(completionMode="indexed"),
        spec(selector={"matchLabels": {"x": "y"}}, manualSelector=False),
        spec(podReplacementPolicy="Later", activeDeadlineSeconds=-4),
    ],
    [spec(completions=9), spec(suspend=True), spec(template={"metadata": {"labels": {"n": "m"}}})],
)
refuses(
    "CronJob",
    "batch/v1/cronjobs",
    spec(schedule="@daily", jobTemplate={"spec": {"template": {"spec": ONCE}}}),
    [
        spec(schedule="* * * *"),
        spec(schedule="0 25 * * *"),
        spec(concurrencyPolicy="allow", successfulJobsHistoryLimit=-4),
        spec(timeZone="Mars/Base"),
        spec(jobTemplate={"spec": {"completions": -1}}),
    ],
    [spec(schedule="@never")],
)
refuses(
    "Ingress",
    "networking.k8s.io/v1/ingresses",
    spec(
        rules=[
            {
                "host": "a.b",
                "http": {
                    "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"name": "web"}}}}]
                },
            }
        ]
    ),
    [
        spec(rules=None),
        spec(rules=[{"host": "A.B"}]),
        spec(rules=[{"host": "*"}]),
        spec(rules=[{"http": {"paths": [{"path": "/x", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]),
        spec(
            rules=[
                {
                    "http": {
                        "paths": [
                            {"path": "/./x", "pathType": "Prefix", "backend": {"service": {"name": "", "port": {"number": -1}}}}
                        ]
                    }
                }
            ]
        ),
        spec(tls=[{"hosts": ["A"]}]),
    ],
    [spec(rules=[])],
)
refuses(
    "NetworkPolicy",
    "networking.k8s.io/v1/networkpolicies",
    spec(podSelector={"matchLabels": {"a": "b"}}, ingress=[{}]),
    [
        spec(policyTypes=["ingress"]),
        spec(egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.1/33"}}]}]),
        spec(ingress=[{"ports": [{"port": 65536, "protocol": "ICMP"}]}]),
        spec(podSelector={"matchLabels": {"a": "b c"}}),
    ],
)
refuses(
    "HorizontalPodAutoscaler",
    "autoscaling/v2/horizontalpodautoscalers",
    spec(scaleTargetRef={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s"}, maxReplicas=2),
    [
        spec(maxReplicas=-2),
        spec(minReplicas=-2),
        spec(minReplicas=3),
        spec(scaleTargetRef={"kind": "a/b"}),
        spec(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value", "value": "0"}}}]),
        spec(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 0}]}}),
    ],
)
refuses(
    "PodDisruptionBudget",
    "policy/v1/poddisruptionbudgets",
    spec(maxUnavailable=1),
    [spec(maxUnavailable=-1), spec(minAvailable="10%"), spec(maxUnavailable="200%"), spec(unhealthyPodEvictionPolicy="Always")],
    [spec(maxUnavailable="5%")],
)
refuses(
    "PersistentVolumeClaim",
    "v1/persistentvolumeclaims",
    spec(accessModes=["ReadWriteOnce"], resources={"requests": {"storage": "2Gi"}}, storageClassName="s"),
    [
        spec(accessModes=["RWO"]),
        spec(accessModes=None, resources={"requests": {"storage": None}}),
        spec(resources={"requests": {"storage": "-5"}}),
        spec(volumeMode="block"),
        spec(dataSource={"kind": "PersistentVolumeClaim", "name": ""}),
    ],
    [spec(resources={"requests": {"storage": "1Gi"}}), spec(volumeMode="Block")],
)
refuses(
    "PersistentVolume",
    "v1/*persistentvolumes",
    spec(capacity={"storage": "2Gi"}, accessModes=["ReadOnlyMany"], nfs={"server": "s", "path": "/p"}),
    [
        spec(nfs={"path": "p"}),
        spec(nfs={"server": ""}),
        spec(capacity={"storage": "-2"}),
        spec(accessModes=["Any"], persistentVolumeReclaimPolicy="Keep"),
        spec(hostPath={"path": "/y"}),
        spec(nfs=None),
    ],
    [spec(nfs={"path": "/q"})],
)
refuses(
    "StorageClass",
    "storage.k8s.io/v1/*storageclasses",
    {"provisioner": "p"},
    [{"provisioner": None}, {"reclaimPolicy": "retain"}, {"volumeBindingMode": "Later"}, {"provisioner": "a_b"}],
    [{"provisioner": "q"}, {"allowVolumeExpansion": True}],
)
refuses(
    "Role",
    "rbac.authorization.k8s.io/v1/roles",
    {"rules": []},
    [
        {"rules": [{"verbs": [], "resources": ["x"], "apiGroups": []}]},
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/z"]}]},
        {"metadata": {"name": "a%b"}},
    ],
)
refuses(
    "RoleBinding",
    "rbac.authorization.k8s.io/v1/rolebindings",
    {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "c"}},
    [
        {"roleRef": {"kind": "User", "name": ""}},
        {"subjects": [{"kind": "ServiceAccount", "name": ""}, {"kind": "Robot", "name": "r"}]},
        {"roleRef": {"apiGroup": "rbac"}},
    ],
    [{"roleRef": {"name": "d"}}],
)
refuses(
    "ResourceQuota",
    "v1/resourcequotas",
    spec(hard={"pods": "1"}),
    [
        spec(hard={"pods": "-2"}),
        spec(hard={"services": "0.5"}),
        spec(scopes=["All"]),
        spec(scopes=["BestEffort", "NotBestEffort"]),
    ],
)
refuses(
    "LimitRange",
    "v1/limitranges",
    spec(limits=[{"type": "Pod", "max": {"cpu": "1"}}]),
    [
        spec(limits=[{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]),
        spec(limits=[{"type": "Pod", "default": {"cpu": "1"}}]),
        spec(limits=[{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}}]),
    ],
)
refuses(
    "EndpointSlice",
    "discovery.k8s.io/v1/endpointslices",
    {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]},
    [{"addressType": "ipv4"}, {"endpoints": [{"addresses": ["10.1.2.300"]}]}, {"ports": [{"port": 65536}, {"name": "A"}]}],
    [{"addressType": "FQDN"}],
)
refuses(
    "PriorityClass",
    "scheduling.k8s.io/v1/*priorityclasses",
    {"value": 1},
    [{"value": 1000000001}, {"preemptionPolicy": "never"}],
    [{"value": 2}],
)
refuses(
    "Lease",
    "coordination.k8s.io/v1/leases",
    spec(holderIdentity="h"),
    [spec(leaseDurationSeconds=-2), spec(leaseTransitions=-1, leaseDurationSeconds=0)],
)
refuses(
    "ConfigMap",
    "v1/configmaps",
    {"data": {"a": "b"}},
    [
        {"data": {"a/b": "x"}},
        {"binaryData": {"a": "AA=="}},
        {"data": {".": "x"}},
        {"data": {"a": "x" * 1048577}},
        {"metadata": {"name": "-x"}},
        {"metadata": {"labels": {"a": "b c"}}},
    ],
    [{"immutable": True}, {"data": {"a": "c"}}, {"immutable": False}],
)
refuses(
    "Secret",
    "v1/secrets",
    {"data": {"a": "Yg=="}},
    [
        {"type": "kubernetes.io/basic-auth", "data": {"x": "Yg=="}},
        {"type": "kubernetes.io/tls", "data": {"tls.crt": "Yg=="}},
        {"data": {"a b": "Yg=="}},
        {
            "type": "kubernetes.io/service-account-token",
            "metadata": {"annotations": {"kubernetes.io/service-account.name": "absent"}},
        },
    ],
    [{"type": "x"}, {"stringData": {"a": "c"}}],
)
refuses(
    "Namespace",
    "v1/*namespaces",
    {},
    [{"metadata": {"name": "UPPER"}}, {"metadata": {"finalizers": ["x"]}}, {"spec": {"finalizers": ["kubernetes"]}}],
    [{"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}}],
)
refuses(
    "Node",
    "v1/*nodes",
    {},
    [
        spec(taints=[{"key": "a", "effect": "noschedule"}, {"key": "a", "effect": "NoExecute", "value": "b c"}]),
        spec(podCIDR="10.0.0.0"),
        {"metadata": {"name": "a_b"}},
    ],
    [spec(providerID="p"), spec(providerID="q")],
)
