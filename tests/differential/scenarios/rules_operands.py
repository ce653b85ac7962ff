"""Conditions of rules of which an operand decided nothing, and bounds that no value met: found by noting what each of them evaluates to in
all other recordings, stories and tests.
"""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import CRDS, definition, make, served
from tests.differential.registry import scenario
from tests.differential.rule_tables import DRY, Edit, State, each, tell
from tests.differential.scenarios.rules_bounds import around, text
from tests.differential.scenarios.rules_branches import space

# fmt: off

tell_of = functools.partial(tell, module="rules_operands")
T0, T1 = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

POD: Edit = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"
SECURITY = "spec.containers[0].securityContext"
DEVICE: Edit = {"spec.containers[0].volumeDevices": [{"name": "v", "devicePath": "/d"}]}
CLAIM: Edit = {"spec.volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}
OWNED: Edit = {"spec.volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "resources": {"requests": {"storage": "1"}}}}}}]}
SIDECAR: Edit = {"name": "s", "image": "i", "restartPolicy": "Always"}
RULES = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]
TOKEN: Edit = {"spec.volumes": [{"name": "v", "projected": {"sources": [{"podCertificate": {"signerName": "a.b/c", "keyType": "ED25519", "keyPath": "a"}}]}}]}
OF_TOKEN = "spec.volumes[0].projected.sources[0].podCertificate"
TOP = "spec.topologySpreadConstraints"
SPREAD: Edit = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}
tell_of("pods", "v1/pods", POD, create=[
    *around("spec.securityContext.sysctls", 253, lambda size: [{"name": text(size), "value": "1"}]), *each("spec.securityContext.sysctls", *([{"name": name, "value": "1"}] for name in ("fs.mqueue.a", "fs/mqueue/a", "kernel.shm_rmid_forced", "kernel.msgmax", "a/b.c", "a.b/c")), ** {"spec.hostIPC": True}),
    *({**TOKEN, f"{OF_TOKEN}.signerName": signer, f"{OF_TOKEN}.maxExpirationSeconds": seconds} for signer, longest in (("a.b/c", 91 * 86400), ("kubernetes.io/c", 86400), ("a.kubernetes.io/c", 86400)) for seconds in (3599, 3600, longest, longest + 1)),
    *({f"metadata.annotations[{APPARMOR}]": annotation, SECURITY: own, "spec.securityContext": whole} for annotation in ("unconfined", "runtime/default") for own in ({}, {"appArmorProfile": {"type": "Unconfined"}}) for whole in ({}, {"appArmorProfile": {"type": "Unconfined"}})),
    {**DEVICE, "spec.volumes": [{"name": "v", "emptyDir": {}}]}, {**DEVICE, **CLAIM}, {**DEVICE, **OWNED}, {**DEVICE, **CLAIM, "spec.hostUsers": False}, {**DEVICE, **OWNED, "spec.hostUsers": False},
    *each("spec.dnsConfig.searches", ["."], [".."], ["a."], ["a", ".", "."]), *({"spec.initContainers": [{**SIDECAR, **more}]} for more in ({"restartPolicyRules": RULES}, {"restartPolicy": "Never"}, {"restartPolicy": "Never", "restartPolicyRules": RULES}, {"restartPolicy": "OnFailure"})),
    {"spec.hostUsers": False, "spec.hostNetwork": True}, *each("spec.containers[0].env", *([{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor}}}] for resource in ("limits.cpu", "requests.hugepages-2Mi", "limits.x") for divisor in ("0", "1", "1m", "1Mi", "0m"))),
    *each(f"metadata.annotations[{APPARMOR}]", "localhost/", "localhost/a", ""), {"spec.nodeName": "n", "spec.schedulingGates": []}, {"spec.volumes": [{"name": "v", "gitRepo": {"repository": "r"}}]}, {"spec.overhead": {"cpu": "1"}, "spec.runtimeClassName": None},
], states=[
    State(update=[{"spec.containers[0].image": None}, {"spec.containers[0].image": ""}, {"metadata.annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}}, {"spec.activeDeadlineSeconds": 0}]),
    State(base={"metadata.annotations": {"controller.kubernetes.io/pod-deletion-cost": "1"}}, update=each("metadata.annotations", {"controller.kubernetes.io/pod-deletion-cost": "x"}, {"controller.kubernetes.io/pod-deletion-cost": "2"}, None)),
    State(base={TOP: [SPREAD]}, update=[{"metadata.labels": {"a": "b"}}, {"spec.containers[0].image": "j"}]), State(base={TOP: [{**SPREAD, "matchLabelKeys": ["k"]}], "metadata.labels": {"k": "v"}}, update=[{"metadata.labels": {"k": "w"}}, {"metadata.labels": {"a": "b"}}, {"spec.containers[0].image": "j"}]),
    State(base={**DEVICE, **CLAIM}, update=[{"metadata.labels": {"a": "b"}}, {"spec.containers[0].image": "j"}]), State(base={"spec.hostUsers": False}, update=[{"metadata.labels": {"a": "b"}}, {"spec.containers[0].image": "j"}]),
    State(base={"spec.containers[0].restartPolicy": "Always", "spec.containers[0].restartPolicyRules": RULES}, update=[{"metadata.labels": {"a": "b"}}, {"spec.containers[0].image": "j"}, {"spec.containers[0].restartPolicyRules": None}]),
    State(base={"spec.initContainers": [{**SIDECAR, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]}, update=[{"metadata.labels": {"a": "b"}}], calls=[("PUT", "resize", {"spec.initContainers[0].resources": {"requests": {"cpu": "1"}}})]),
    State(base={"spec.nodeName": "n"}, status_update=[*each("status.nominatedNodeName", "m", "", "A_"), {"status.conditions": [{"type": "Ready", "status": "True", "observedGeneration": -1}]}]), State(status={"status.nominatedNodeName": "m"}, status_update=each("status.nominatedNodeName", "m", "n", "", None)),
    State(base={"spec.schedulingGates": [{"name": "g"}], "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}, {}]}}, update=[
        {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}} for terms in ([{"matchExpressions": [{"key": "k", "operator": "Exists"}]}, {"matchExpressions": [{"key": "l", "operator": "Exists"}]}], [{"matchExpressions": [{"key": "k", "operator": "Exists"}, {"key": "l", "operator": "Exists"}]}, {}], [{}, {}])
    ]),
    State(base={"spec.overhead": None, "spec.resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}, calls=[("PUT", "resize", {"spec.resources": resources}) for resources in (None, {}, {"requests": {}}, {"limits": {"cpu": "2"}}, {"requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "3", "memory": "1Gi"}})]),
    State(calls=[("PUT", "resize", {"spec.resources": resources}) for resources in ({}, {"requests": {}}, {"limits": {"cpu": "2"}}, {"requests": {"cpu": "2"}})]),
])

SERVICE: Edit = {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
tell_of("services", "v1/services", SERVICE, create=[
    {"spec.trafficDistribution": "PreferClose"}, {"spec.trafficDistribution": "PreferSameNode"}, {"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local", "spec.healthCheckNodePort": 31500}, {"spec.type": "NodePort", "spec.externalTrafficPolicy": "Local", "spec.healthCheckNodePort": 31500}, {"spec.ipFamilies": ["IPv6"]}, {"spec.clusterIP": ""},
    *({"spec.type": "LoadBalancer", f"metadata.annotations[{RANGES}]": ranges} for ranges in (" ", "10.0.0.0/8", "x", "010.0.0.0/8", "10.0.0.1/8")),
], states=[
    State(update=[{"spec.clusterIPs": None, "spec.clusterIP": ""}, {"spec.clusterIPs": [], "spec.clusterIP": ""}, {"spec.ipFamilies": []}, {"spec.ipFamilies": [], "spec.clusterIPs": []}, {"spec.clusterIP": None, "spec.clusterIPs": None, "spec.ipFamilies": None}, {"spec.sessionAffinity": ""}, {"spec.sessionAffinity": None}]),
    State(base={"spec.type": "LoadBalancer", f"metadata.annotations[{RANGES}]": "10.0.0.0/8"}, update=[*each(f"metadata.annotations[{RANGES}]", "x", " ", "10.0.0.0/8,x"), {"spec.type": "ClusterIP", f"metadata.annotations[{RANGES}]": "x"}], status_update=[*each("status.loadBalancer.ingress", [{"ip": "10.0.0.1"}], [{"ip": "x"}], [{"ip": "010.0.0.1"}], [{"ip": "10.0.0.1", "ipMode": "Nope"}])]),
    State(base={"spec.type": "LoadBalancer"}, status={"status.loadBalancer.ingress": [{"ip": "10.0.0.1", "ipMode": "VIP"}]}, status_update=each("status.loadBalancer.ingress", [{"ip": "10.0.0.1"}], [{"ip": "x"}], [], [{"ip": "::ffff:10.0.0.1"}])),
])

JOB: Edit = {"spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": POD["spec"]["containers"]}}}}
FLAGS = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended")


def finished(*kinds: str) -> list[dict[str, str]]:
    return [{"type": kind, "status": "True", "lastTransitionTime": T0} for kind in kinds]


def status_of(*kinds: str, **more: Any) -> Edit:
    return {"status": {"conditions": finished(*kinds), **more}}


INDEXED: Edit = {"spec.completionMode": "Indexed", "spec.completions": 5, "spec.parallelism": 1, "spec.backoffLimitPerIndex": 1}
STATUSES = [
    *(status_of(*kinds, startTime=start, completionTime=end) for kinds in ((), ("Complete",), ("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget"), ("Suspended",)) for start in (None, T0, T1) for end in (None, T0, T1)),
    *({"status": {"completedIndexes": done, "failedIndexes": lost}} for done in ("", "0", "0-1", "1,3", "4", "5") for lost in (None, "", "0", "2", "3-4", "1")), {"status": {"active": 1, "startTime": T0}}, {"status": {"ready": 1, "active": 1, "startTime": T0}},
]
tell_of("jobs", "batch/v1/jobs", JOB, states=[
    State(status_update=STATUSES), State(base=INDEXED, status_update=STATUSES), State(base={"spec.completions": 0}, status_update=STATUSES[:45:2]), State(status=status_of("Suspended"), status_update=STATUSES[:45:4], update=[{"spec.template.spec.nodeSelector": {"a": "b"}}, {"spec.template.spec.containers[0].resources": {"requests": {"cpu": "1"}}}]),
    *(State(base={"spec.suspend": suspend}, status={"status": status}, update=[{"spec.template.spec.nodeSelector": {"a": "b"}}, {"spec.template.spec.containers[0].resources": {"requests": {"cpu": "1"}}}, {"spec.suspend": not suspend, "spec.template.spec.nodeSelector": {"a": "b"}}]) for suspend in (True, False) for status in (
        {}, {"startTime": T0}, {"startTime": T0, "active": 1}, {"conditions": finished("Suspended"), "active": 1}, {"conditions": finished("Suspended"), "startTime": T0}, {"conditions": finished("Suspended")},
    )),
    State(calls=[("DELETE", f"?dryRun=All{query}", body) for query in ("", "&orphanDependents=false", "&propagationPolicy=Background") for body in (None, {"propagationPolicy": "Orphan"}, {"orphanDependents": True}, {"gracePeriodSeconds": 0})]),
])
CRON: Edit = {"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": JOB["spec"]["template"]}}}}
ZONED = [{"spec.schedule": schedule, "spec.timeZone": zone} for schedule in ("TZ=UTC 0 0 * * *", "CRON_TZ=UTC 0 0 * * *", "0 0 * * TZ") for zone in (None, "UTC", "Nope/x", "/UTC", "..", "\\x", "Local", "")]
tell_of("cron_jobs", "batch/v1/cronjobs", CRON, create=ZONED, states=[State(update=ZONED)])

SET: Edit = {"spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}}}
tell_of("stateful_sets", "apps/v1/statefulsets", SET, create=[*each("spec.revisionHistoryLimit", -1, 0, 1), *each("spec.template.metadata.annotations", {"A b": ""}, {APPARMOR: "x"}, {"seccomp.security.alpha.kubernetes.io/pod": "x"})], states=[State(update=[{"metadata.finalizers": ["x"]}, {"spec.revisionHistoryLimit": -1}], status_update=[
    {"metadata.annotations": {"A b": ""}}, *({f"status.{name}": value} for name in ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "collisionCount", "observedGeneration") for value in (-1, 0, 1)), {"status.replicas": 1, "status.readyReplicas": 2}, {"status.replicas": 2, "status.readyReplicas": 1, "status.availableReplicas": 2},
]), State(status={"status.replicas": 1, "status.collisionCount": 2, "status.observedGeneration": 5}, status_update=[{"status.collisionCount": 1}, {"status.collisionCount": None}, {"status.observedGeneration": 4}])])
METRIC: Edit = {"type": "Object", "object": {"describedObject": {"kind": "A", "name": "b"}, "metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}
tell_of("autoscalers", "autoscaling/v2/horizontalpodautoscalers", {"spec": {"scaleTargetRef": {"kind": "A", "name": "b"}, "maxReplicas": 3}}, create=[
    *({"spec.minReplicas": 0, "spec.metrics": metrics} for metrics in (None, [METRIC], [{"type": "Object"}], [{"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}], [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 1}}}])), *each("spec.behavior.scaleUp.tolerance", "-1", "0", "0.1"),
])

CLASS: Edit = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
tell_of("claims", "v1/persistentvolumeclaims", CLASS, create=[
    *({"spec.dataSource": one, "spec.dataSourceRef": other} for one in (None, {"kind": "PersistentVolumeClaim", "name": "a"}, {"kind": "X", "name": "a"}, {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a"}, {"apiGroup": "b.c", "kind": "X", "name": "a"}) for other in (None, {"kind": "X", "name": "a"}, {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "n"}, {"apiGroup": "b.c", "kind": "X", "name": "a"})),
    *each("spec.resources.requests.storage", "0", "-1", "1m", "1.5"), *each("metadata.annotations", {"volume.beta.kubernetes.io/storage-class": "x"}, {"volume.beta.kubernetes.io/storage-class": ""}),
], states=[State(base={"spec.dataSource": source}, update=[{"metadata.labels": {"a": "b"}}, {"spec.dataSource": {"kind": "PersistentVolumeClaim", "name": "z"}}, {"spec.dataSource": None, "spec.dataSourceRef": None}], status_update=[*({f"status.{field}": {"storage": amount}} for field in ("capacity", "allocatedResources") for amount in ("-1", "1m", "0"))]) for source in (None, {"kind": "PersistentVolumeClaim", "name": "a"}, {"apiGroup": "b.c", "kind": "X", "name": "a"})])
VOLUME: Edit = {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.b", "volumeHandle": "h"}}}
SECRET = {"name": "a", "namespace": "b"}
NODES = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}
ISCSI: Edit = {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}
tell_of("volumes", "v1/*persistentvolumes", VOLUME, create=[
    *({"spec.csi": None, "spec.hostPath": {"path": path}, "spec.persistentVolumeReclaimPolicy": policy} for path in ("/", "//", "///", "/a/..", "/a", "") for policy in ("Recycle", "Retain")),
    *({"spec.csi": None, "spec.iscsi": {**ISCSI, **more}} for more in ({}, {"initiatorName": "iqn.2001-04.com.example:b"}, {"initiatorName": "iqn.2001-04.com.example:b", "targetPortal": text(80)}, {"initiatorName": "x", "secretRef": {}}, {"secretRef": {}, "chapAuthDiscovery": True}, {"initiatorName": "x"}, {"iqn": "x", "secretRef": {"name": ""}}, {"targetPortal": "", "initiatorName": text(80)})),
    {"metadata.annotations": {"volume.beta.kubernetes.io/mount-options": "a"}}, {"metadata.annotations": {"volume.beta.kubernetes.io/mount-options": "a"}, "spec.csi": None, "spec.hostPath": {"path": "/a"}}, {"spec.csi": None, "spec.glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""}},
], states=[
    *(State(base=base, update=[{"spec.csi.controllerExpandSecretRef": SECRET}, {"spec.csi.controllerExpandSecretRef": {**SECRET, "name": "z"}}, {"spec.csi.controllerExpandSecretRef": None}, {"spec.csi": None, "spec.hostPath": {"path": "/a"}}, {"spec.nodeAffinity": NODES}, {"spec.nodeAffinity": None}, {"spec.volumeMode": "Block"}, {"metadata.annotations": {"volume.beta.kubernetes.io/mount-options": "a"}}], status_update=[
        {"status.phase": "Bound"}, {"status.lastPhaseTransitionTime": T0}, {"status.phase": "Available", "status.lastPhaseTransitionTime": None}, {"status.phase": "Bound", "status.lastPhaseTransitionTime": T0},
    ]) for base in ({}, {"spec.csi.controllerExpandSecretRef": SECRET}, {"spec.csi": None, "spec.hostPath": {"path": "/b"}}, {"spec.nodeAffinity": NODES})),
])
ATTACHMENT: Edit = {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
tell_of("attachments", "storage.k8s.io/v1/*volumeattachments", ATTACHMENT, states=[State(update=[{"metadata.labels": {"a": "b"}}, {"spec.attacher": "A_"}, {"spec.nodeName": "m"}], status_update=around("status.attachmentMetadata", 256 * 1024, lambda size: {"k": text(size - 1)}))])
tell_of("secrets", "v1/secrets", {}, create=[*around("stringData", 1 << 20, lambda size: {"k": text(size)}), {"stringData": {"k": text((1 << 20) - 3)}, "data": {"l": "YWJj"}}, {"stringData": {"k": text((1 << 20) - 3)}, "data": {"l": "YWJjZA=="}}])

KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
CERTIFICATE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
SLICE: Edit = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": []}
tell_of("endpoint_slices", "discovery.k8s.io/v1/endpointslices", SLICE, create=[*each("endpoints[0].addresses", ["224.0.0.1"], ["224.0.1.1"], ["239.0.0.0"], ["255.2.0.1"])])
tell_of("endpoints", "v1/endpoints", {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]}, create=each("subsets[0].addresses[0].ip", "224.0.0.1", "224.0.1.1", "239.0.0.0", "ff02::1", "ff05::1", "ff12::1", "ff01::1", "fe02::1", "fe80::1", "febf::1", "fec0::1", "169.254.0.1", "127.0.0.1", "0.0.0.0", "::"))
tell_of("nodes", "v1/*nodes", {}, states=[State(update=[{"spec.podCIDR": "10.0.0.0/24"}, {"spec.providerID": "p"}, {"spec.taints": [{"key": "a", "effect": "NoSchedule"}] * 2}, {"spec.configSource": {"configMap": {}}}], status_update=[
    *each("status.declaredFeatures", ["A", "B"], ["B", "A"], ["A", "A"], ["a b"], []), *each("status.capacity", {"cpu": "-1"}, {"cpu": "1m"}, {"pods": "1m"}, {"memory": "1m"}), *each("status.allocatable", {"cpu": "-1"}, {"pods": "1.5"}),
])])
FLOW: Edit = {"spec": {"matchingPrecedence": 1, "priorityLevelConfiguration": {"name": "exempt"}, "rules": [{"subjects": [{"kind": "User", "user": {"name": "a"}}], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["*"]}]}]}}
tell_of("flow_schemas", "flowcontrol.apiserver.k8s.io/v1/*flowschemas", FLOW, create=[*each("spec.matchingPrecedence", 0, 1, -1, None), *each("spec.rules[0].nonResourceRules[0].verbs", ["*"], ["*", "get"], ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"], ["a", "A"], ["proxy"], []), {"metadata.name": "exempt"}, {"status": {"conditions": [{"type": "", "status": ""}]}}], states=[State(update=[{"status": {"conditions": [{}]}}], status_update=[{"status.conditions": [{"type": "A b"}]}, {"status.conditions": [{"type": "A", "status": "True"}] * 2}])])
LEVEL: Edit = {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Queue", "queuing": {"queues": 8, "handSize": 1, "queueLengthLimit": 1}}}}}
QUEUING = "spec.limited.limitResponse.queuing"
tell_of("levels", "flowcontrol.apiserver.k8s.io/v1/*prioritylevelconfigurations", LEVEL, create=[*({f"{QUEUING}.{field}": value} for field in ("queues", "handSize", "queueLengthLimit") for value in (-1, 0, 1, None)), *each(QUEUING, {}, None), {"status": {"conditions": [{"type": "", "status": ""}]}}])

RANGE: Edit = {"spec": {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "4"}, "maxLimitRequestRatio": {"cpu": "2"}}]}}
AMOUNTS = ("1", "2", "3", "4", "5", None)


@scenario
def limits(c: Client) -> None:
    """What a LimitRange says of requests and limits that are absent, in bounds, and large."""
    for name, limit in (
        ("min", {"min": {"cpu": "2"}}), ("max", {"max": {"cpu": "4"}}), ("ratio", {"maxLimitRequestRatio": {"cpu": "2"}}), ("min-own", {"min": {"example.com/a": "2"}}), ("max-own", {"max": {"example.com/a": "4"}}),
        ("min-large", {"min": {"memory": "9223372036854775"}}), ("max-large", {"max": {"memory": "9223372036854776"}}),
    ):
        for kind in ("Container", "Pod"):
            path = space(c, f"{name}-{kind.lower()}")
            c.post(f"{path}/limitranges", {"metadata": {"name": name}, "spec": {"limits": [{"type": kind, **limit}]}})
            for resources in (
                {}, *({"requests": {"cpu": amount}} for amount in ("0", "1", "2", "4", "5")), *({"limits": {"cpu": amount}} for amount in ("1", "2", "4", "5")), *({"requests": {"cpu": "2"}, "limits": {"cpu": amount}} for amount in ("2", "4", "4001m")),
                {"requests": {"cpu": "0"}, "limits": {"cpu": "1"}}, *({"limits": {"example.com/a": amount}} for amount in ("1", "2", "4", "5")), *({"requests": {"memory": amount}, "limits": {"memory": amount}} for amount in ("9223372036854774", "9223372036854775", "9223372036854776", "9223372036854777")),
            ):
                c.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}, DRY)
            c.delete(path, silent=True)


@scenario
def ratcheted_limits(c: Client) -> None:
    """A pod that a LimitRange would refuse now is updated and resized."""
    path = f"/api/v1/namespaces/{c.ns}"
    c.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}})
    c.post(f"{path}/configmaps", {"metadata": {"name": "m"}})
    c.post(f"{path}/limitranges", {"metadata": {"name": "l"}, **RANGE})
    for place, body in ((f"{path}/pods/p", {"metadata": {"labels": {"a": "b"}}}), (f"{path}/configmaps/m", {"data": {"a": "b"}}), *((f"{path}/pods/p/resize", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": amount}}}]}}) for amount in ("1500m", "2", "4", "5"))):
        c.patch(place, body, MERGE if "resize" not in place else "application/strategic-merge-patch+json", DRY)


ALONE: Edit = {"spec.containers[0].resources": {"requests": {"cpu": "1"}}}
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@scenario
def quota_scopes(c: Client) -> None:
    """Which pods the scopes of a quota match: of each scope one quota that admits none."""
    term = {"topologyKey": "a", "namespaces": ["x"]}
    selected = {"topologyKey": "a", "namespaceSelector": {}}
    specs = (
        {}, {"activeDeadlineSeconds": 1}, {"activeDeadlineSeconds": 2**31 - 1}, {"affinity": {"podAffinity": {AFFINITY: [{"topologyKey": "a"}]}}}, {"affinity": {"podAffinity": {AFFINITY: [term]}}}, {"affinity": {"podAffinity": {AFFINITY: [selected]}}}, {"affinity": {"podAntiAffinity": {AFFINITY: [term]}}},
        *({"affinity": {kind: {PREFERRED: [{"weight": 1, "podAffinityTerm": one}]}}} for kind in ("podAffinity", "podAntiAffinity") for one in ({"topologyKey": "a"}, term, selected)), {"priorityClassName": "system-node-critical"},
        *({"containers": [{"name": "c", "image": "i", "resources": resources}]} for resources in ({"requests": {"cpu": "1"}}, {"limits": {"memory": "1"}}, {"requests": {"ephemeral-storage": "1"}}, {"limits": {"example.com/a": "1"}}, {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}})),
    )
    for scope in ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity", "PriorityClass"):
        path = space(c, scope.lower())
        quota = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": "Exists"}]}}
        c.post(f"{path}/resourcequotas", {"metadata": {"name": "q"}, "spec": quota}, silent=True)
        c.patch(f"{path}/resourcequotas/q/status", {"status": {"hard": quota["hard"], "used": {"pods": "0"}}}, MERGE, silent=True)
        for spec in specs:
            c.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": {**POD["spec"], **spec}}, DRY)
        c.delete(path, silent=True)


CLAIM_OF_DEVICES: Edit = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}
EXACTLY = "spec.devices.requests[0].exactly"
tell_of("device_claims", "resource.k8s.io/v1/resourceclaims", CLAIM_OF_DEVICES, create=[
    *({EXACTLY: {"deviceClassName": "c", "allocationMode": mode, "count": count}} for mode in (None, "ExactCount", "All") for count in (None, 0, 1, -1)), *around("spec.devices.requests", 32, lambda size: [{"name": f"r{number}", "exactly": {"deviceClassName": "c"}} for number in range(size)]),
    *around("spec.devices.constraints", 32, lambda size: [{"matchAttribute": "a.b/c"}] * size), *around("spec.devices.config", 32, lambda size: [{"opaque": {"driver": "a.b", "parameters": {}}}] * size), *around(f"{EXACTLY}.selectors", 32, lambda size: [{"cel": {"expression": "true"}}] * size), *around(f"{EXACTLY}.tolerations", 16, lambda size: [{"operator": "Exists"}] * size),
])
SPARE: Edit = {"spec": {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": "n", "devices": [{"name": "d", "allowMultipleAllocations": True, "capacity": {"c": {"value": "10"}}}]}}
FIRST = "spec.devices[0]"
VALUES = ("0", "1", "3", "10", "10.5", "11", "-1", "1.5", "0.5", "100m", "9223372036854775807", "9223372036854775808", "1e30")
tell_of("device_slices", "resource.k8s.io/v1/*resourceslices", SPARE, create=[
    *({f"{FIRST}.capacity[c].requestPolicy": {"default": default, "validValues": ["1", value]}} for default in ("1",) for value in VALUES), *({f"{FIRST}.capacity[c].requestPolicy": {"default": "1", "validRange": {"min": "1", field: value}}} for field in ("max", "step") for value in VALUES), *({f"{FIRST}.capacity[c].requestPolicy": {"default": value, "validRange": {"min": "0", "max": "10", "step": "1"}}} for value in VALUES),
    *around(f"{FIRST}.attributes", 31, lambda size: {f"a{number}": {"int": 1} for number in range(size)}), *around("spec.devices", 128, lambda size: [{"name": f"d{number}"} for number in range(size)]), *around(f"{FIRST}.taints", 16, lambda size: [{"key": f"k{number}", "effect": "NoSchedule"} for number in range(size)]),
])


FIELD: Edit = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED: Edit = {**FIELD, "x-kubernetes-embedded-resource": True}
NUMBER: Edit = {"type": "integer"}


def scaled(c: Client) -> Edit:
    """A definition with a scale of fields that may hold anything."""
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
    return definition(c, {"type": "object", "properties": {"spec": FIELD, "status": FIELD}}, {"subresources": {"status": {}, "scale": scale}})


@scenario
def scales_of_custom_resources(c: Client) -> None:
    """What stands at the paths of a scale: nothing, numbers at the bounds, and values of other types."""
    body = scaled(c)
    with served(c, body) as path:
        for index, spec in enumerate(({"replicas": 1}, {}, {"replicas": 0}, {"replicas": 2**31 - 1}, {"replicas": 2**31}, {"replicas": -1}, {"replicas": "1"}, {"replicas": True}, {"replicas": 1.5}, {"replicas": None}, None, "x", ["x"])):
            name = f"s{index}"
            if c.post(path, make(body, name, spec=spec)).status != 201:
                continue
            c.get(f"{path}/{name}/scale")
            for sent in ({}, {"replicas": 2}, {"replicas": -1}, {"replicas": -(2**31)}, None):
                c.put(f"{path}/{name}/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": sent}, DRY)
                c.patch(f"{path}/{name}/scale", {"spec": sent}, MERGE, DRY)
            if index < 3:
                for state in ({"replicas": 1, "selector": "a=b"}, {"replicas": -1}, {"replicas": 2**31}, {"replicas": "x"}, {"selector": 1}, {"selector": None}, {}, None, "x"):
                    c.patch(f"{path}/{name}/status", {"status": state}, MERGE, DRY)
                c.patch(f"{path}/{name}/status", {"metadata": {"labels": {"a": "b"}, "finalizers": ["x"]}, "status": {"replicas": 3, "selector": "a=b"}}, MERGE)
                c.get(f"{path}/{name}/scale")


@scenario
def embedded_objects(c: Client) -> None:
    """Embedded objects in lists, maps and fields: their kinds, versions and metadata, and values of formats and types beside them."""
    properties = {
        "one": EMBEDDED, "list": {"type": "array", "items": EMBEDDED}, "map": {"type": "object", "additionalProperties": EMBEDDED}, "closed": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": FIELD}},
        "number": {"type": "number", "enum": [1, 2.5, 3]}, "whole": {**NUMBER, "enum": [1, 65]}, "text": {"type": "string", "enum": ["A", "1"]}, "nullable": {"type": "array", "nullable": True, "items": {"anyOf": [{"type": "string"}, {"type": "integer"}], "x-kubernetes-int-or-string": True}}, "tagged": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "name": {"type": "string", "format": "hostname"}, "book": {"type": "string", "format": "isbn10"}, "card": {"type": "string", "format": "creditcard"}, "other": {"type": "string", "format": "isbn13"},
    }
    body = definition(c, {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    objects: list[Any] = [{}, {"kind": "K"}, {"apiVersion": "v1"}, *({"kind": kind, "apiVersion": version} for kind, version in (("K", "v1"), ("", ""), (1, "v1"), ("K", 1), ("k!", "a/b/c"), (None, None))), *({"kind": "K", "apiVersion": "v1", "metadata": meta} for meta in ({"name": "n"}, {"name": "A_"}, {"labels": {"a": "b c"}}, {"labels": 1}, "x", None, {"x": 1}, {"creationTimestamp": "x"}))]
    long = ".".join([text(63)] * 3)
    with served(c, body) as path:
        for one in objects:
            for spec in ({"one": one}, {"list": [one]}, {"map": {"k": one}}, {"closed": one}):
                c.post(path, make(body, "a", spec=spec), DRY)
        for field, values in {
            "number": (1, 1.0, 2.5, 2, True, "1"), "whole": (1, 65, 1.0, "A", True), "text": ("A", "1", 65, 1, None), "nullable": (None, [], ["a", 1], [None], [1.5]), "tagged": (["a", "a"], ["a", "b"], [None], None),
            "name": (f"{long}.{text(61)}", f"{long}.{text(62)}", f"{long}.{text(63)}", text(63), text(64), "a", "é", "a_b"), "book": ("3401013777", "340101319X", "3-401-01319-X", "3401013778", "x", "X401013777", "080442957X"), "other": ("9783401013190", "9783401013191"), "card": ("4111111111111111", "4111 1111 1111 1111", "4111111111111112", "411111111111", "6011111111111117"),
        }.items():
            for value in values:
                c.post(path, make(body, "a", spec={field: value}), DRY)


def schemas() -> list[Edit]:
    """Schemas of one field, each of which shows an operand."""
    return [
        {"type": "array", "items": []}, {"type": "array", "items": [NUMBER]}, {"type": "array", "items": []} | {"x-kubernetes-list-type": "set"}, {"type": "array", "x-kubernetes-list-type": "set"}, *({"type": "array", "x-kubernetes-list-type": "set", "items": items} for items in (FIELD, {**FIELD, "x-kubernetes-map-type": "atomic"}, {"type": "array", "items": NUMBER}, {"type": "array", "items": NUMBER, "x-kubernetes-list-type": "atomic"}, {"type": "string", "nullable": True})),
        *({"type": "string", "default": default} for default in (None, "", "x", 1)), {"type": "string", "nullable": True, "default": None}, *({"default": default, **schema} for default in (None, 1, "a", True, [], {}, {"a": None}, [None]) for schema in ({"x-kubernetes-int-or-string": True}, FIELD, EMBEDDED, {"type": "object", "additionalProperties": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {**NUMBER, "nullable": True}})),
        *({"type": "string", "x-kubernetes-validations": [{"rule": rule, "message": message}]} for rule in ("true", "true\r", "\r true", "tr\rue", "tr\nue", "self\n == 'a'", "self\r == 'a'") for message in (None, "m", "m\r", "m\rn", " ")), *({"type": "object", "properties": {"a": NUMBER}, "x-kubernetes-validations": [{"rule": "true", "fieldPath": path}]} for path in ("", " ", ".a", ".b", ".a\r", ".a\n", "['a']", ".a.b")),
        {"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": False, "type": "integer", "default": 1}}}, {"type": "object", "properties": {"x-kubernetes-int-or-string": {"type": "boolean"}}, "default": {"x-kubernetes-int-or-string": True}}, {"type": "integer", "maximum": 9007199254740992, "minimum": 9007199254740991}, {"type": "integer", "multipleOf": 0.1, "default": 3}, {"type": "number", "multipleOf": 0.1, "default": 0.3},
        {"type": "null"}, {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}, {"type": "object", "properties": {"a": NUMBER}, "additionalProperties": {"type": "string"}}, {"type": "object", "additionalProperties": False}, {"type": "object", "properties": {}, "additionalProperties": False},
    ]


@scenario
def definitions(c: Client) -> None:
    """Schemas of fields, selectable fields at their bound, and annotations of protected groups."""
    for schema in schemas():
        c.post(CRDS, definition(c, {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": schema}}}}), DRY)
    for size in (8, 9):
        fields = {f"f{number}": {"type": "string"} for number in range(size)}
        c.post(CRDS, definition(c, {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}, {"selectableFields": [{"jsonPath": f".spec.{name}"} for name in fields]}), DRY)
    for annotation in ("https://a/b", "https:///b", "//a/b", "a:b", "/b", "x", "", "unapproved", "unapproved, x", "https:b", "https://"):
        body = definition(c, FIELD)
        body["spec"]["group"] = "own.k8s.io"
        body["metadata"] = {"name": "widgets.own.k8s.io", "annotations": {"api-approved.kubernetes.io": annotation}}
        c.post(CRDS, body, DRY)
