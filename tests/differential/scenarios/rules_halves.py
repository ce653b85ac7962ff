"""Values exactly at a bound, and conditions of which one half alone decides: what an error of `and` for `or`, or of `<` for `<=`, would show."""

from __future__ import annotations

import base64
import functools
from typing import Any

from tests.differential.client import JSON_PATCH, MERGE, Client
from tests.differential.definitions import CRDS, definition, make, obj, served
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.rule_tables import DRY, Edit, State, each, tell
from tests.differential.scenarios import rules_alpha, rules_edits, rules_metadata_all, rules_newer, rules_podgroups
from tests.differential.scenarios.rules_bounds import around, named, text

# fmt: off

tell_of = functools.partial(tell, module="rules_halves")
# ---------------------------------------------------------------- bounds of kinds that only gates or --runtime-config serve

CONDITION: Edit = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
HEALTH: Edit = {"status": "StorageDegraded", "message": "m"}
conditions = named(CONDITION, "type")
tell_of("bounds_of_evictions", "lifecycle.k8s.io/v1alpha1/evictions", rules_alpha.EVICTION, states=[State(status_update=[
    {}, *around("status.conditions", 100, conditions), *around("status.requesters", 100, lambda size: [{"name": f"a.b/c{number}", "intent": "Eviction"} for number in range(size)]),
])])
tell_of("bounds_of_responders", "v1/pods", rules_alpha.POD, create=[
    *around("spec.evictionResponders", 10, lambda size: [{"name": f"a.b/c{number}", "priority": 1000} for number in range(size)]), *around("spec.evictionResponders", 100_000, lambda size: [{"name": "a.b/c", "priority": size}]),
    *around("spec.evictionResponders", 999, lambda size: [{"name": "a.b/c", "priority": size}]), *around("spec.evictionResponders", -1, lambda size: [{"name": "a.b/c", "priority": size}]),
])
tell_of("bounds_of_taint_rules", "resource.k8s.io/v1/*devicetaintrules", rules_newer.TAINT, states=[State(status_update=around("status.conditions", 8, conditions), update=[
    {"spec.taint.effect": "NoExecute", "spec.taint.timeAdded": None}, {"spec.taint.effect": "NoExecute", "spec.taint.timeAdded": "2026-01-01T00:00:00Z"}, {"spec.taint.value": "v"}, {"spec.taint.timeAdded": "2026-01-01T00:00:00Z"},
])])
PARTITIONS = [{**rules_metadata_all.PARTITION, "type": f"t{number}"} for number in range(31)]
tell_of("bounds_of_pool_statuses", "resource.k8s.io/v1alpha3/*resourcepoolstatusrequests", {"spec": {"driver": "a.b"}}, states=[State(status_update=[
    *around("status", 10, lambda size: {"poolCount": 1, "conditions": conditions(size)}), *({"status": {"poolCount": 1, "pools": [{**rules_metadata_all.POOL, "partitionSummary": [*PARTITIONS, *last]}]}} for last in (PARTITIONS[:1], PARTITIONS[:2])),
])])
tell_of("bounds_of_nodes", "v1/*nodes", {"spec": {}}, states=[State(
    status_update=[*each("status.declaredFeatures", ["A", "A"], ["A", "B"], ["B", "A"]), *around("status.allocatable", 1, lambda size: {"a.b/c": str(size)})],
    update=[*around("spec.podPreemptionPolicy", 20, lambda size: {"disableResizePreemption": [f"a.b/n{number}" for number in range(size)]}), {"spec.podPreemptionPolicy": {"disableResizePreemption": ["a", "a"]}}],
), State(base={"spec.podPreemptionPolicy": {"disableResizePreemption": ["a.b/c"]}}, update=[{}, {"spec.podPreemptionPolicy": {"disableResizePreemption": ["A_ b"]}}, {"spec.podPreemptionPolicy": None}])])
VOLUMES = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in "vw"]
tell_of("bounds_of_health", "v1/pods", {"spec": {**rules_alpha.POD["spec"], "volumes": VOLUMES}}, states=[State(status={"status.volumeHealth": [{"name": "v", "healthConditions": [{**HEALTH, "reason": "R1"}]}]}, status_update=[
    *around("status.volumeHealth", 16, lambda size: [{"name": "v", "healthConditions": [{**HEALTH, "reason": f"R{number}"} for number in range(size)]}]),
    *({"status.volumeHealth": items} for items in ([], [{"name": "v"}], [{"name": "w", "healthConditions": [{**HEALTH, "reason": ""}]}], [{"name": "v", "healthConditions": [{**HEALTH, "reason": "R1"}, {**HEALTH, "status": ""}]}], [{"name": ""}, {"name": "x"}], [{"name": "v"}, {"name": "v"}])),
])])
tell_of("bounds_of_health_of_claims", "v1/persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}, states=[State(status={"status.healthStatus": {"healthConditions": [{**HEALTH, "reason": "R1"}]}}, status_update=[
    *around("status.healthStatus", 16, lambda size: {"healthConditions": [{**HEALTH, "reason": f"R{number}"} for number in range(size)]}), *each("status.healthStatus", None, {}, {"healthConditions": [{**HEALTH, "reason": "R1"}] * 2}, {"healthConditions": [{**HEALTH, "reason": "R1"}, {}]}),
])])
TEMPLATE = rules_podgroups.TEMPLATE
tell_of("bounds_of_workloads", "scheduling.k8s.io/v1beta1/workloads", rules_podgroups.WORKLOAD, create=[
    *around("spec.podGroupTemplates", 8, named(TEMPLATE)), *around("spec.podGroupTemplates[0].resourceClaims", 4, named({"resourceClaimName": "c"})), {"spec.podGroupTemplates": [TEMPLATE, {**TEMPLATE, "name": "other", "priorityClassName": "x"}]},
])
tell_of("bounds_of_derived_attributes", "resource.k8s.io/v1/resourceclaims", {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "a"}}], "constraints": [{"matchAttribute": f"a.b/n{number}"} for number in range(32)]}}}, create=[
    *around("spec.devices.requests[0].exactly.derivedAttributes", 32, lambda size: [{"name": f"a.b/n{number}", "expression": "1"} for number in range(size)]), *around("spec.devices.requests[0].exactly.derivedAttributes", 8, lambda size: [{"name": f"a.b/n{number}", "expression": "1"} for number in range(size)]),
    *around("spec.devices.requests[0].exactly.count", 1),
])
REQUEST: Edit = rules_alpha.REQUEST
tell_of("bounds_of_pod_certificates", "certificates.k8s.io/v1beta1/podcertificaterequests", REQUEST, create=[
    *around("spec.unverifiedUserAnnotations", 256 * 1024, lambda size: {"a.b/c": text(size - 5)}), *around("spec.pkixPublicKey", 10 * 1024, lambda size: base64.b64encode(bytes(size)).decode()), *around("spec.stubPKCS10Request", 10 * 1024, lambda size: base64.b64encode(bytes(size)).decode(), ),
    *({**edit, "spec.pkixPublicKey": None, "spec.proofOfPossession": None} for edit in around("spec.stubPKCS10Request", 10 * 1024, lambda size: base64.b64encode(bytes(size)).decode())),
], states=[State(status_update=[{"status.conditions": [{**CONDITION, "type": "Issued"}], "status.certificateChain": chain} for chain in (text(100 * 1024), text(100 * 1024 + 1))])])

# ---------------------------------------------------------------- requests for certificates

def pem(kind: str, content: bytes) -> str:
    return base64.b64encode(f"-----BEGIN {kind}-----\n{base64.b64encode(content).decode()}\n-----END {kind}-----\n".encode()).decode()


SIGNED: Edit = {"spec": {"signerName": "a.b/c", "usages": ["digital signature"], "request": pem("CERTIFICATE REQUEST", b"0")}}
tell_of("halves_of_signing_requests", "certificates.k8s.io/v1/*certificatesigningrequests", SIGNED, create=[
    *each("spec.request", "eA==", pem("CERTIFICATE", bytes(4))),
    *each("spec.request", *(pem("CERTIFICATE REQUEST", content) for content in (
        bytes.fromhex("308480000000"), bytes.fromhex("30847fffffff"), bytes.fromhex("308400800000"), bytes.fromhex("308180") + bytes(128), bytes.fromhex("30817f") + bytes(127), bytes.fromhex("3003020100"), bytes.fromhex("30023003"), b"0", b"00",
    ))),
])

# ---------------------------------------------------------------- core, batch, autoscaling

CLAIM: Edit = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
tell_of("halves_of_claims", "v1/persistentvolumeclaims", CLAIM, create=[
    *each("spec.resources.requests.storage", "1500m", "0", "1m", "-1"), *each("spec.dataSource", {"kind": "Service", "name": "s"}, {"kind": "PersistentVolumeClaim", "name": "s"}, {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}),
    *each("metadata.annotations", {"volume.beta.kubernetes.io/storage-class": "x"}, {"a": "b"}),
    *({"spec.dataSource": {"kind": "PersistentVolumeClaim", "name": "s"}, "spec.dataSourceRef": reference} for reference in ({"kind": "PersistentVolumeClaim", "name": "s"}, {"kind": "PersistentVolumeClaim", "name": "t"}, {"kind": "PersistentVolumeClaim", "name": "s", "namespace": "n"})),
], states=[
    State(status_update=[*each("status.allocatedResources", {"storage": "1500m"}, {"storage": "1"}, {"storage": "-1"}, {"x": "1"}), *each("status.capacity", {"storage": "1500m"}, {"storage": "-1"}), *each("status.modifyVolumeStatus", {"status": "Pending", "targetVolumeAttributesClassName": "c"}, {"status": "Pending"}, {})]),
    State(base={"spec.dataSourceRef": {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "s", "namespace": "n"}}, update=[{}, {"spec.dataSourceRef": None}, {"spec.dataSourceRef": None, "spec.dataSource": {"kind": "Service", "name": "s"}}]),
])
tell_of("halves_of_templates_of_claims", "v1/pods", {"spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": CLAIM}}]}}, create=[
    *each("spec.volumes[0].ephemeral.volumeClaimTemplate.metadata", {"generation": 0}, {"generation": 1}, {"uid": "u", "name": "n"}, {"name": ""}), *each("metadata.name", "a" * 63, "a" * 251, "a" * 252), {"metadata.name": "", "metadata.generateName": "a"},
])
VOLUME: Edit = {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}
TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
AFFINITY = {"required": {"nodeSelectorTerms": [TERM]}}
ISCSI = {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:s", "lun": 0, "initiatorName": "iqn.2001-04.com.example:i"}
tell_of("halves_of_volumes", "v1/*persistentvolumes", VOLUME, create=[
    *({"spec.hostPath": None, "spec.iscsi": {**ISCSI, **change}} for change in ({}, {"secretRef": {}}, {"initiatorName": "x", "secretRef": {}}, {"initiatorName": "x", "secretRef": {"name": "s"}}, {"initiatorName": "x" * 300, "targetPortal": ""}, {"targetPortal": "a" * 80}, {"targetPortal": "", "secretRef": {}}, {"lun": 255}, {"lun": 256})),
    *each("spec.capacity.storage", "1500m", "0"),
], states=[
    State(base={"spec.nodeAffinity": AFFINITY}, update=[{"spec.nodeAffinity": None}, {"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values": ["c"]}, {"spec.nodeAffinity.required.nodeSelectorTerms": [TERM, TERM]}]),
    State(update=[{"spec.nodeAffinity": AFFINITY}], status={"status.phase": "Available"}, status_update=[{"status.lastPhaseTransitionTime": None}, {"status.phase": "Bound"}, {"status.phase": "Bound", "status.lastPhaseTransitionTime": None}, {"status.lastPhaseTransitionTime": "2026-01-01T00:00:00Z"}]),
])
POD: Edit = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
tell_of("halves_of_pods", "v1/pods", POD, create=[
    *({"spec.hostUsers": users, "spec.hostNetwork": network} for users in (True, False) for network in (True, False)), *({"spec.hostUsers": False, field: True} for field in ("spec.hostPID", "spec.hostIPC")), *each("spec.dnsConfig", {"searches": ["."]}, {"searches": ["a_b."]}, {"searches": [".", "A"]}),
    *each("metadata.annotations", {"container.apparmor.security.beta.kubernetes.io/c": "runtime/default"}, {"container.apparmor.security.beta.kubernetes.io/c": "localhost/x"}, {"container.apparmor.security.beta.kubernetes.io/c": ""}, {"container.seccomp.security.alpha.kubernetes.io/c": "x"}),
    *({"metadata.annotations": {"container.apparmor.security.beta.kubernetes.io/c": of_annotation}, place: {"appArmorProfile": {"type": "RuntimeDefault"}}} for of_annotation in ("runtime/default", "unconfined") for place in ("spec.securityContext", "spec.containers[0].securityContext")),
    *({"spec.securityContext": {"appArmorProfile": {"type": "Unconfined"}}, "metadata.annotations": annotations, "spec.os": {"name": system}} for annotations in (None, {"a": "b"}) for system in ("linux", "windows")),
    *each("metadata.annotations", *({"controller.kubernetes.io/pod-deletion-cost": cost} for cost in ("1", "+1", "01", "2147483648", "99999999999999999999", "-2147483648", "-2147483649", "x"))),
    *each("spec.initContainers", *([{"name": "i", "image": "i", **change}] for change in ({"restartPolicy": "Always", "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}, {"restartPolicy": "Never"}, {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}, {"restartPolicy": "Always"}))),
    *each("spec.topologySpreadConstraints", *([{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", **change}] for change in ({"matchLabelKeys": ["a"]}, {"matchLabelKeys": ["a"], "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}, {"matchLabelKeys": ["a"], "labelSelector": {"matchLabels": {"b": "c"}}}))),
    *each("spec.overhead", {"hugepages-2Mi": "1Mi"}, {"hugepages-2Mi": "2Mi"}, {"cpu": "1"}), {"spec.activeDeadlineSeconds": 1},
], states=[
    State(base={"spec.terminationGracePeriodSeconds": -1}, update=[{"spec.terminationGracePeriodSeconds": 1}, {"spec.terminationGracePeriodSeconds": 2}, {}]),
    State(base={"spec.terminationGracePeriodSeconds": 0}, update=[{"spec.terminationGracePeriodSeconds": 1}]),
    State(base={"metadata.annotations": {"controller.kubernetes.io/pod-deletion-cost": "1"}}, update=[{"metadata.annotations[controller.kubernetes.io/pod-deletion-cost]": "+1"}]),
    State(status={"status.nominatedNodeName": "n"}, status_update=each("status.nominatedNodeName", "", "n", "m", "A_")),
    State(base={"spec.nodeName": "n"}, status_update=each("status.nominatedNodeName", "", "m")),
    State(base={"spec.topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]}, update=[{"metadata.labels": {"a": "b"}}, {"spec.containers[0].image": "j"}]),
    State(base={"spec.schedulingGates": [{"name": "a.b/c"}]}, update=[{"spec.topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]}, {"spec.terminationGracePeriodSeconds": 1}]),
])
tell_of("halves_of_ephemeral_containers", "v1/pods", POD, states=[State(calls=[("PUT", "ephemeralcontainers", {"spec.ephemeralContainers": [{"name": "e", "image": "i", **change}]}) for change in ({"resources": {}}, {"resources": {"requests": {"cpu": "1"}}}, {"ports": [{"containerPort": 1}]}, {"ports": [], "resources": {}}, {"targetContainerName": "x"})])])
JOB: Edit = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
MANUAL = {"spec.manualSelector": True, "spec.selector": {"matchLabels": {"a": "b"}}}
tell_of("halves_of_jobs", "batch/v1/jobs", JOB, states=[
    State(base={"spec.suspend": True}, status_update=[
        *each("status.completedIndexes", "0", "", "x"), *each("status.failedIndexes", "0", "", "x"), {"status.completionTime": "2026-01-01T00:00:00Z"}, {"status.conditions": [{"type": "Complete", "status": "True"}]}, {"status.active": 1, "status.conditions": [{"type": "Failed", "status": "True"}]},
    ]),
    State(base={"spec.completions": None, "spec.parallelism": 1}, status_update=each("status.completedIndexes", "0", "")),
    State(base={"spec.completionMode": "Indexed", "spec.completions": 3, "spec.backoffLimitPerIndex": 1}, status_update=[{"status.completedIndexes": done, "status.failedIndexes": lost} for done, lost in (("0", "0"), ("0,2", "1"), ("0-1", "1"), ("1", "0-2"), ("0", None), ("1", "0,1"), ("0-2", "2"))]),
    State(base={**MANUAL, "spec.template.metadata": {"labels": {"a": "b", "batch.kubernetes.io/job-name": "x"}}}, update=[{"metadata.labels": {"a": "b"}}, {"spec.parallelism": 2}]),
    State(base={**MANUAL, "spec.template.metadata": {"labels": {"a": "b"}}, "metadata.name": "a.b." + "c" * 60}, update=[{"metadata.labels": {"a": "b"}}, {"spec.parallelism": 2}]),
])
CRON: Edit = {"spec": {"schedule": "@daily", "jobTemplate": {"spec": JOB["spec"]}}}
tell_of("halves_of_cronjobs", "batch/v1/cronjobs", CRON, create=[
    *each("spec.timeZone", "/Etc/UTC", "\\Etc\\UTC", "a..b", "..", "Etc/UTC", "UTC", "", "Local", "Nope", "etc/utc"), *each("spec.schedule", "TZ=UTC 0 0 * * *", "CRON_TZ=UTC 0 0 * * *"), *({"spec.schedule": "TZ=UTC 0 0 * * *", "spec.timeZone": zone} for zone in ("UTC", "")),
], states=[State(update=[{"spec.schedule": "TZ=UTC 0 0 * * *"}, {"spec.timeZone": "UTC"}])])
SCALER: Edit = {"spec": {"scaleTargetRef": {"kind": "A", "name": "b"}, "maxReplicas": 3}}
METRIC = {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}
tell_of("halves_of_autoscalers", "autoscaling/v2/horizontalpodautoscalers", SCALER, create=[
    *around("spec.maxReplicas", -1), *each("spec.minReplicas", 0, -1), {"spec.minReplicas": 0, "spec.metrics": [METRIC]}, *({"spec.metrics": [{**METRIC, "external": {"metric": {"name": "m"}, "target": target}}]} for target in ({"type": "Value"}, {"type": "AverageValue", "averageValue": "1"}, {"type": "AverageValue", "value": "1"}, {"type": "Utilization", "averageUtilization": 1})),
], states=[State(base={"spec.minReplicas": 1, "spec.metrics": [METRIC]}, update=[{"spec.minReplicas": 0}, {"spec.minReplicas": 0, "spec.metrics": None}, {"spec.scaleTargetRef.kind": "B C"}])])


@scenario
def halves_of_versions_of_autoscalers(client: Client) -> None:
    """What v1 shows of metrics and statuses, and what it reads of annotations that are not as it writes them."""
    old, new = (f"/apis/autoscaling/{version}/namespaces/{client.ns}/horizontalpodautoscalers" for version in ("v1", "v2"))

    def cpu(**target: Any) -> dict[str, Any]:
        return {"type": "Resource", "resource": {"name": "cpu", "target": target}}

    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 7}}}
    metrics: list[list[dict[str, Any]]] = [[cpu(type="AverageValue", averageValue="1")], [memory], [memory, cpu(type="Utilization", averageUtilization=5)], [METRIC], [{**METRIC, "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}}]]
    for number, held in enumerate(metrics):
        client.post(new, {"metadata": {"name": f"a{number}"}, "spec": {**SCALER["spec"], "metrics": held}}, silent=True)
        client.get(f"{old}/a{number}")
    current: list[dict[str, Any]] = [
        {"type": "Resource", "resource": {"name": name, "current": values}} for name in ("cpu", "memory") for values in ({"averageValue": "1"}, {"averageUtilization": 5, "averageValue": "1"})
    ]
    for held in ([], current[:1], current[1:2], current[2:], [{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "current": {"averageUtilization": 5, "averageValue": "1"}}}]):
        client.patch(f"{new}/a0/status", [{"op": "add", "path": "/status", "value": {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": held}}], JSON_PATCH, silent=True)
        client.get(f"{old}/a0")
    for name, values in {
        "metrics": ("x", "{}", "[1]", '[{"type":1}]', '[{"type":true}]', '[{"type":"External","external":{"metricName":"m","targetValue":true}}]', '[{"type":"External","external":{"metricName":"m","targetValue":1}}]', '[{"type":"External","external":{"metricName":"m","targetAverageValue":"1"}}]', '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":true}}]',
                    '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":2147483647}}]', '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":2147483648}}]', '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":-2147483648}}]', '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":-2147483649}}]'),
        "behavior": ('{"ScaleUp":1}', '{"ScaleUp":{"StabilizationWindowSeconds":true}}', '{"ScaleUp":{"StabilizationWindowSeconds":5}}'),
    }.items():
        for number, value in enumerate(values):
            client.post(old, {"metadata": {"name": f"{name}{number}", "annotations": {f"autoscaling.alpha.kubernetes.io/{name}": value}}, "spec": SCALER["spec"]})


# ---------------------------------------------------------------- services, events, roles, flow schemas

SERVICE: Edit = {"spec": {"ports": [{"port": 80}]}}
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
tell_of("halves_of_services", "v1/services", SERVICE, create=[
    *({"spec.type": kind, "metadata.annotations": {RANGES: value}} for kind in ("LoadBalancer", "ClusterIP") for value in (" ", "10.0.0.0/8", "x", "10.0.0.0/8, 10.1.0.0/16")), *each("spec.trafficDistribution", "PreferClose", "PreferSameZone", "Nope"),
    *({"spec.type": "ExternalName", "spec.externalName": "a.b", "spec.ports": None, field: value} for field, value in (("spec.externalIPs", ["1.2.3.4"]), ("spec.clusterIP", "None"))), {"spec.externalName": "a.b"},
    *each("spec.ports[0].name", "-a", "a-", "a--b", "1", "a.b"), *each("spec.ports[0].targetPort", "-a", "a-", "1", "a--b"),
], states=[
    State(base={"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local"}, update=[{"spec.externalTrafficPolicy": "Cluster"}, {"spec.type": "ClusterIP", "spec.externalTrafficPolicy": None}, {"spec.healthCheckNodePort": 1}, {"metadata.annotations": {RANGES: "x"}}]),
    State(base={"spec.type": "LoadBalancer", "metadata.annotations": {RANGES: "10.0.0.0/8"}}, update=[{"metadata.annotations[a]": "b"}, {f"metadata.annotations[{RANGES}]": "y"}]),
    State(base={"spec.clusterIP": "None"}, update=[{"spec.clusterIP": None, "spec.clusterIPs": None}, {"spec.ipFamilies": ["IPv6"]}]),
])
EVENT: Edit = {"regarding": {"namespace": "{ns}"}, "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a/b", "reportingInstance": "c", "action": "d", "reason": "e", "type": "Normal"}
tell_of("halves_of_events", "events.k8s.io/v1/events", EVENT, create=[*each("deprecatedSource", {"host": "h"}, {"component": "c"}, {}), *each("deprecatedCount", 0, 1), *each("metadata.namespace", "A_")], states=[State(update=[{"metadata.labels": {"a": "b"}}, {"note": "x"}])])
tell_of("halves_of_flow_schemas", "flowcontrol.apiserver.k8s.io/v1/*flowschemas", {"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "rules": []}}, create=[*each("spec.matchingPrecedence", 0, 1, 2, -1, None)])
tell_of("halves_of_levels", "flowcontrol.apiserver.k8s.io/v1/*prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Queue", "queuing": {}}}}}, create=[
    {}, *each("spec.limited.limitResponse.queuing", {"queues": 1, "handSize": 1}, {"queues": 1, "handSize": 2}, {"queues": 0, "handSize": 0, "queueLengthLimit": 0}, {"queues": 5}, {"queueLengthLimit": 7}, {"handSize": -1}),
])
tell_of("halves_of_limits", "v1/limitranges", {"spec": {"limits": [{"type": "Container"}]}}, create=[
    *({"spec.limits[0]": {"type": "Container", "max": {"cpu": most}, "min": {"cpu": least}, "maxLimitRequestRatio": {"cpu": ratio}}} for most, least, ratio in (("9223372036854775", "1", "2"), ("9223372036854774", "3", "9223372036854775"), ("9223372036854775", "9223372036854774", "1500m"), ("4", "2", "2"), ("4", "2", "2001m"), ("4", "0", "2"))),
])
tell_of("halves_of_replica_sets", "apps/v1/replicasets", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **POD}}}, states=[State(base={"metadata.annotations": annotations}, update=[{"metadata.annotations": None}, {"metadata.labels": {"a": "b"}}, {"spec.replicas": 2}]) for annotations in (
    {"alpha.kubernetes.io/x": "y"}, {"non-convertible.kubernetes.io/spec.replicas": "1"}, {"a/non-convertible.kubernetes.io": "1"},
)])
tell_of("halves_of_accounts", "v1/serviceaccounts", {}, create=[{"metadata.annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}], states=[State(base={"metadata.annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}, update=[{"metadata.labels": {"a": "b"}}, {"metadata.annotations": None}]), State(update=[{"metadata.annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}])])
tell_of("halves_of_quotas", "v1/resourcequotas", {"spec": {"hard": {"pods": "1"}}}, create=[{"spec.scopes": scopes, "spec.hard": hard} for scopes in (["BestEffort"], ["NotTerminating"]) for hard in ({"hugepages-2Mi": "2Mi"}, {"requests.hugepages-2Mi": "2Mi"}, {"limits.hugepages-2Mi": "2Mi"}, {"count/x.y": "1"}, {"a.b/c": "1"}, {"requests.cpu": "1"})])
tell_of("halves_of_drivers", "storage.k8s.io/v1/*csinodes", {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}}, states=[State(update=[{"spec.drivers[0].allocatable": {"count": 1}}, {"spec.drivers[0].allocatable": {}}]), State(base={"spec.drivers[0].allocatable": {}}, update=[{"spec.drivers[0].allocatable": None}, {"spec.drivers[0].allocatable.count": 1}])])
REVIEW: Edit = {"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
tell_of("halves_of_reviews", "authorization.k8s.io/v1/*subjectaccessreviews", REVIEW, create=[
    *({"spec.resourceAttributes.fieldSelector": {"requirements": [requirement]}} for requirement in ({"key": "a", "operator": "In", "values": ["b"]}, {"key": "a", "operator": "In", "values": ["b", "c"]}, {"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists", "values": ["b"]}, {"key": "a", "operator": "Nope", "values": ["b"]})),
    *({"spec.resourceAttributes": resource, "spec.nonResourceAttributes": path} for resource in (None, {"verb": "get"}) for path in (None, {}, {"path": "/a"})),
])
WEBHOOK: Edit = {"webhooks": [{"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "s", "namespace": "n"}}}]}
tell_of("halves_of_webhooks", "admissionregistration.k8s.io/v1/*validatingwebhookconfigurations", WEBHOOK, create=[
    *each("webhooks[0].clientConfig.service", {}, {"name": "s"}, {"namespace": "n"}, *({"name": "s", "namespace": "n", "port": port} for port in (0, 1, 443, 65535, 65536, -1))), {"webhooks[1]": WEBHOOK["webhooks"][0]}, *each("webhooks[0].timeoutSeconds", 0, 1, 30, 31),
    *({"webhooks[0].matchConditions": [{"name": name, "expression": "true"}]} for name in ("a", "a.b/c", "", "A_")),
])
DEVICE: Edit = {"driver": "d.e", "pool": "p", "device": "d"}
tell_of("halves_of_interfaces", "resource.k8s.io/v1/resourceclaims", rules_edits.CLAIM, states=[State(status={"status.allocation": {"devices": {"results": [rules_edits.RESULT]}}}, status_update=[
    *around("status.devices", 10, lambda size: [{**DEVICE, "conditions": conditions(size)}]), *({"status.devices": [{**DEVICE, "networkData": {"ips": [address]}}]} for address in ("::ffff:10.0.0.1/128", "::ffff:10.0.0.0/104", "10.0.0.1/32", "10.0.0.1/24", "10.0.0.1/33", "fd00::1/64", "FD00::1/64", "10.0.0.1")),
])])
tell_of("halves_of_amounts", "v1/pods", POD, create=[
    {"spec.containers[0].resources": {"requests": {name: amount}, "limits": {name: limit}}} for name, amount, limit in (
        ("cpu", "1", "1000m"), ("cpu", "1001m", "1"), ("hugepages-2Mi", "2Mi", "2048Ki"), ("hugepages-2Mi", "2Mi", "4Mi"), ("a.b/c", "1", "1e0"), ("a.b/c", "1", "2"), ("memory", "1Gi", "1024Mi"),
    )
])
tell_of("halves_of_addresses", "v1/services", SERVICE, create=[{"spec.clusterIP": "fd00::5"}, {"spec.clusterIP": "1.2.3.4"}, {"spec.clusterIP": "fd00::5", "spec.ipFamilies": ["IPv6"]}])
tell_of("halves_of_attachments", "storage.k8s.io/v1/*volumeattachments", {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}, states=[State(update=[{"spec.nodeName": "m"}, {"metadata.labels": {"a": "b"}}], status_update=[{"spec.nodeName": "m"}, {"status.attached": True}, {"spec.nodeName": "m", "metadata.labels": {"a": "b"}}])])

# ---------------------------------------------------------------- pods and their subresources

APP_ARMOR, SECCOMP = "container.apparmor.security.beta.kubernetes.io/c", "container.seccomp.security.alpha.kubernetes.io/c"


@scenario
def halves_of_bindings(client: Client) -> None:
    """What a binding gives to a pod, in which some of it is already, and its preconditions."""
    node = client.name("n")
    client.post("/api/v1/nodes", {"metadata": {"name": node, "labels": {"topology.kubernetes.io/zone": "z", "a": "b"}}}, silent=True)
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    for number, meta in enumerate(({}, {"labels": {"a": "b"}, "annotations": {"a": "b"}})):
        for sent in ({}, {"labels": {"c": "d"}, "annotations": {"c": "d"}}):
            name = f"p{number}{len(sent)}"
            uid = client.post(pods, {"metadata": {"name": name, **meta}, **POD}, silent=True).get("metadata", "uid")
            if meta:
                client.patch(f"{pods}/{name}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, MERGE, silent=True)
            client.post(f"{pods}/{name}/binding", {"metadata": {"name": name, "uid": uid, **sent}, "target": {"kind": "Node", "name": node}})
            client.get(f"{pods}/{name}")
    client.delete(f"/api/v1/nodes/{node}", silent=True)


@scenario
def halves_of_deletions(client: Client) -> None:
    """Preconditions that hold and that do not, of an object and of one that is being deleted."""
    path = f"/api/v1/namespaces/{client.ns}/configmaps"
    for finalizers in ([], ["a.b/c"]):
        meta = client.post(path, {"metadata": {"name": "m", "finalizers": finalizers}}, silent=True).get("metadata")
        for held in ({"uid": meta["uid"], "resourceVersion": "1"}, {"uid": "x"}, {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}):
            client.delete(f"{path}/m", {"preconditions": held})
        now = client.get(f"{path}/m", silent=True).get("metadata", "resourceVersion", default="")
        for held in ({"uid": meta["uid"]}, {"uid": meta["uid"], "resourceVersion": now}, {"uid": meta["uid"], "resourceVersion": "1"}, {"uid": "x", "resourceVersion": now}):
            client.delete(f"{path}/m", {"preconditions": held})
    client.patch(f"{path}/m", {"metadata": {"finalizers": None}}, MERGE, silent=True)


LEVELS: list[Edit] = [
    *({f"{place}.seLinuxOptions": options} for place in ("spec.securityContext", "spec.containers[0].securityContext") for options in ({"type": "container_t"}, {"type": "spc_t"}, {"user": "u"}, {"role": "r"}, {"level": "l"}, {"type": "container_t", "user": "u", "role": "r"})),
    *({"metadata.annotations": {key: value}} for key in (APP_ARMOR, SECCOMP, "seccomp.security.alpha.kubernetes.io/pod") for value in ("runtime/default", "docker/default", "localhost/x", "unconfined", "")),
    *({f"{place}.seccompProfile": {"type": kind, **({"localhostProfile": "x"} if kind == "Localhost" else {})}} for place in ("spec.securityContext", "spec.containers[0].securityContext") for kind in ("Unconfined", "RuntimeDefault", "Localhost")),
]


def enforce(client: Client, **labels: str) -> None:
    client.patch(f"/api/v1/namespaces/{client.ns}", {"metadata": {"labels": {f"pod-security.kubernetes.io/{mode}": value for mode, value in labels.items()}}}, MERGE, silent=True)


for version in ("latest", "v1.18"):
    tell_of(f"halves_of_levels_of_{version.replace('.', '_')}", "v1/pods", POD, create=LEVELS, before=functools.partial(enforce, enforce="baseline", **{"enforce-version": version}))
tell_of("halves_of_templates_of_levels", "apps/v1/deployments", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **POD}}}, before=functools.partial(enforce, warn="restricted"), create=[
    {}, *({"spec.template.metadata.annotations": {APP_ARMOR: value}, f"spec.template.{place}": {"appArmorProfile": {"type": kind}}} for value in ("runtime/default", "unconfined") for place in ("spec.securityContext", "spec.containers[0].securityContext") for kind in ("RuntimeDefault", "Unconfined")),
    {"spec.template.metadata.annotations": {APP_ARMOR: "unconfined"}},
], states=[State(status_update=[{"status.replicas": 1}])])


@scenario
def halves_of_pods_of_namespaces(client: Client) -> None:
    """The pods that a new level forbids: one of each controller first, and how many more."""
    def owned(name: str, *owners: tuple[str, bool]) -> dict[str, Any]:
        return {"metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": uid, "uid": uid, "controller": controls} for uid, controls in owners]}, "spec": {**POD["spec"], "hostNetwork": name < "d"}}

    pods, namespace = f"/api/v1/namespaces/{client.ns}/pods", f"/api/v1/namespaces/{client.ns}"
    for pod in (owned("a", ("u", True)), owned("b", ("u", True)), owned("c"), owned("d", ("u", False)), owned("e", ("v", True))):
        client.post(pods, pod, silent=True)
    for level in ("baseline", "restricted", "privileged", "Nope"):
        client.patch(namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}, MERGE, DRY)
    client.delete(f"{pods}/b", {"gracePeriodSeconds": 0}, silent=True)
    enforce(client, enforce="baseline")
    for level in ("baseline", "restricted", "privileged"):
        client.patch(namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}, MERGE, DRY)


# ---------------------------------------------------------------- rights, and custom resources

@scenario
def halves_of_rights(client: Client) -> None:
    """Roles that a user may write whose rights they exceed: only what the garbage collector needs changes."""
    user, name, root = f"user-{client.id}", client.name("r"), "/apis/rbac.authorization.k8s.io/v1"
    headers = {"Impersonate-User": user}
    rules = [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"], "verbs": ["get", "create", "update"]}]
    client.post(f"{root}/clusterroles", {"metadata": {"name": name}, "rules": rules}, silent=True)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    client.post(f"{root}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]}, silent=True)
    until(lambda: client.get(f"{root}/namespaces/{client.ns}/roles/none", headers=headers, silent=True).status == 404)
    more = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    aggregated = {"clusterRoleSelectors": [{"matchLabels": {"a": client.id}}]}
    for plural, body in (
        (f"namespaces/{client.ns}/roles", {"rules": more}), ("clusterroles", {"rules": more}), ("clusterroles", {"rules": rules, "aggregationRule": aggregated}), ("clusterroles", {"rules": rules}),
        (f"namespaces/{client.ns}/rolebindings", {"roleRef": {**reference, "name": f"{name}-own"}}), ("clusterrolebindings", {"roleRef": {**reference, "name": f"{name}-own"}}),
    ):
        path = f"{root}/{plural}"
        made = client.post(path, {"metadata": {"name": f"{name}-own"}, **body}, silent=True).json
        client.post(path, {"metadata": {"name": f"{name}-new"}, **body}, DRY, headers=headers)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
        for change in ({"ownerReferences": [owner]}, {"finalizers": ["a.b/c"]}, {"labels": {"a": "b"}}):
            client.put(f"{path}/{name}-own", {**made, "metadata": {**made["metadata"], **change}}, DRY, headers=headers)
        client.put(f"{path}/{name}-own", {**{key: value for key, value in made.items() if key != "aggregationRule"}, "metadata": {**made["metadata"], "labels": {"a": "b"}}}, DRY, headers=headers)
        client.delete(f"{path}/{name}-own", silent=True)
    for plural in ("clusterrolebindings", "clusterroles"):
        client.delete(f"{root}/{plural}/{name}", silent=True)


@scenario
def halves_of_custom_resources(client: Client) -> None:
    """Values of custom resources exactly at the bounds of their schemas."""
    fields: dict[str, dict[str, Any]] = {
        "host": {"type": "string", "format": "hostname"}, "many": {"type": "object", "maxProperties": 2, "minProperties": 1, "additionalProperties": {"type": "integer"}}, "float": {"type": "number", "format": "float"},
        "whole": {"type": "number", "multipleOf": 1}, "part": {"type": "number", "multipleOf": 0.1}, "short": {"type": "string", "maxLength": 2, "minLength": 1}, "few": {"type": "array", "maxItems": 2, "minItems": 1, "items": {"type": "string"}},
        "any": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "held": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}, "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
        "most": {"type": "integer", "maximum": 3, "minimum": 1}, "less": {"type": "number", "maximum": 3, "minimum": 1, "exclusiveMaximum": True, "exclusiveMinimum": True}, "null": {"type": "string", "nullable": True, "default": "d"}, "bare": {"type": "string"},
    }
    label = "a" * 63
    values: dict[str, tuple[Any, ...]] = {
        "host": (f"{label}.{label}.{label}.{label}", f"{label}.{label}.{label}.{'b' * 62}", f"{label}.{label}.{label}.{'b' * 61}", f"{label}a", label, "a..b"), "many": ({}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, {"a": None}, {"a": "x"}),
        "float": (3.4028234663852886e38, 3.4028235677973366e38, 3.402823567797337e38, -3.4028235677973366e38, -3.402823567797337e38), "whole": (1, 1.5, 0, -2), "part": (0.3, 0.35, 1), "short": ("", "a", "ab", "abc", "\u00e9\u00e9"), "few": ([], ["a"], ["a", "b"], ["a", "b", "c"]), "any": ({}, {"a": "x"}, {"b": 1}),
        "set": (["a", "b"], ["a", "a"], ["a", "b", "b", "a"]), "map": ([{"k": "a"}, {"k": "b"}], [{"k": "a"}, {"k": "a"}], [{}], ["x"], [None], [{"k": "a"}, 5]), "most": (0, 1, 3, 4), "less": (1, 1.5, 3), "null": (None, "x"), "bare": (None, "x", 1),
        "held": ({}, {"apiVersion": "v1", "kind": "A"}, {"apiVersion": 1, "kind": "A"}, {"apiVersion": "v1", "kind": ["x"]}, {"apiVersion": "a/b/c", "kind": "A"}, {"apiVersion": "", "kind": ""}, {"apiVersion": "v1", "kind": "A", "metadata": {"name": "A_", "labels": {"a": 1}, "annotations": {"b": "c"}}}, {"apiVersion": "v1", "kind": "A", "metadata": 5}),
    }
    body = definition(client, obj({"spec": obj(fields)}))
    with served(client, body) as path:
        for name, tried in values.items():
            for value in tried:
                client.post(path, make(body, spec={name: value}), DRY)


@scenario
def halves_of_sets_of_containers(client: Client) -> None:
    """A definition whose lists are sets of containers: which of them an update warns of."""
    def listed(*kinds: str) -> dict[str, Any]:
        of = {"type": "object", "x-kubernetes-map-type": "atomic"}, {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}}
        return obj({"spec": obj({kind: {"type": "array", "x-kubernetes-list-type": "set", "items": of[kind == "array"]} for kind in kinds})})

    for first, then in ((("object",), ("object",)), (("object",), ("object", "array")), (("array",), ("array",))):
        body = definition(client, listed(*first), plural=f"{first[0]}s{len(then)}", kind=f"K{first[0]}{len(then)}")
        changed = definition(client, listed(*then), plural=f"{first[0]}s{len(then)}", kind=f"K{first[0]}{len(then)}")
        with served(client, body, silent=False):
            client.patch(f"{CRDS}/{body['metadata']['name']}", {"spec": changed["spec"], "metadata": {"labels": {"a": "b"}}}, MERGE, DRY)
