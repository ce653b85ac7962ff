"""The bounds of lists, texts and numbers: each with the last value that is accepted, and the first that is not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tests.differential.rule_tables import Edit, State, tell

# fmt: off

tell_of = functools.partial(tell, module="rules_bounds")


def around(path: str, bound: int, made: Callable[[int], Any] = lambda size: size) -> list[Edit]:
    """The value of a bound, and the next one."""
    return [{path: made(size)} for size in (bound, bound + 1)]


def text(size: int) -> str:
    return "a" * size


def of(value: Any) -> Callable[[int], Any]:
    return lambda size: [value] * size


def named(value: Edit, field: str = "name") -> Callable[[int], Any]:
    return lambda size: [{**value, field: f"n{index}"} for index in range(size)]


SLICE: Edit = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": [{"port": 80}]}
tell_of("endpointslices", "discovery.k8s.io/v1/endpointslices", SLICE, create=[
    *around("endpoints", 1000, of({"addresses": ["10.1.2.3"]})), *around("endpoints[0].addresses", 100, lambda size: [f"10.1.2.{index}" for index in range(size)]),
    *around("endpoints[0].hints", 8, lambda size: {"forZones": named({})(size)}), *around("endpoints[0].hints", 8, lambda size: {"forNodes": named({})(size)}), *around("endpoints[0].deprecatedTopology", 16, lambda size: {f"k{index}": "v" for index in range(size)}),
    *around("ports[0].port", 65535), *around("ports[0].name", 63, text),
])
tell_of("ingressclasses", "networking.k8s.io/v1/*ingressclasses", {"spec": {"controller": "a.b/c"}}, create=around("spec.controller", 250, lambda size: f"a.b/{text(size - 4)}"))
tell_of("storageclasses", "storage.k8s.io/v1/*storageclasses", {"provisioner": "a.b/c"}, create=[
    *around("parameters", 512, lambda size: {f"k{index}": "v" for index in range(size)}), *around("parameters", 256 * 1024, lambda size: {"k": text(size - 1)}), *around("provisioner", 63, lambda size: f"a.b/{text(size)}"),
])
HPA: Edit = {"spec": {"scaleTargetRef": {"kind": "A", "name": "b"}, "maxReplicas": 3, "behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}]}}}}
UP = "spec.behavior.scaleUp"
tell_of("autoscalers", "autoscaling/v2/horizontalpodautoscalers", HPA, create=[
    *around(f"{UP}.policies[0].periodSeconds", 1800), *around(f"{UP}.policies[0].periodSeconds", 0), *around(f"{UP}.policies[0].value", 0), *around(f"{UP}.stabilizationWindowSeconds", 3600), *around(f"{UP}.stabilizationWindowSeconds", -1),
    *around("spec.minReplicas", -1), *around("spec.minReplicas", 3), *around("spec.maxReplicas", 0),
])
LEVEL: Edit = {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}}}}
QUEUING = "spec.limited.limitResponse.queuing"
tell_of("priority_levels", "flowcontrol.apiserver.k8s.io/v1/*prioritylevelconfigurations", LEVEL, create=[
    *around(f"{QUEUING}.queues", 10_000_000), *around(f"{QUEUING}.queues", 7), *around(f"{QUEUING}.handSize", 64), *around(f"{QUEUING}.handSize", 0), *around(f"{QUEUING}.queueLengthLimit", 0), *around("spec.limited.lendablePercent", 100), *around("spec.limited.lendablePercent", -1), *around("spec.limited.borrowingLimitPercent", -1),
    *({f"{QUEUING}.queues": queues, f"{QUEUING}.handSize": hand} for queues, hand in ((1 << 10, 6), (1 << 10, 7), (512, 6), (512, 7), (9, 9), (10, 9))),
])
SCHEMA: Edit = {"matchingPrecedence": 1, "priorityLevelConfiguration": {"name": "exempt"}, "rules": []}
tell_of("flow_schemas", "flowcontrol.apiserver.k8s.io/v1/*flowschemas", {"spec": SCHEMA}, create=[*around("spec.matchingPrecedence", 10000), *around("spec.matchingPrecedence", 0)])
EVENT: Edit = {"regarding": {"namespace": "{ns}"}, "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a/b", "reportingInstance": "c", "action": "d", "reason": "e", "type": "Normal"}
tell_of("events", "events.k8s.io/v1/events", EVENT, create=[*around("note", 1024, text), *(edit for field in ("reason", "action", "reportingInstance") for edit in around(field, 128, text)), *around("reportingController", 63, lambda size: f"a/{text(size)}")])
tell_of("services", "v1/services", {"spec": {"ports": [{"port": 80}], "sessionAffinity": "ClientIP"}}, create=[
    *around("spec.sessionAffinityConfig.clientIP.timeoutSeconds", 86400), *around("spec.sessionAffinityConfig.clientIP.timeoutSeconds", 0), *around("spec.ports[0].port", 65535), *around("spec.ports[0].port", 0), *around("spec.ports[0].targetPort", 65535), *around("spec.ports[0].targetPort", 15, text), *around("spec.ports[0].name", 63, text),
])
POD: Edit = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
CONTAINER = "spec.containers[0]"
WINDOWS = "spec.securityContext.windowsOptions"
tell_of("pods", "v1/pods", POD, create=[
    *around("spec.dnsConfig", 2048, lambda size: {"searches": [*[text(63) + "." + text(63) + "." + text(63) + "." + text(55)] * 7, ".".join([text(63)] * 3 + [text(size - 7 * 248 - 3 * 64)])]}), *around("spec.dnsConfig", 32, lambda size: {"searches": [f"a{index}" for index in range(size)]}), *around("spec.dnsConfig", 3, lambda size: {"nameservers": [f"10.0.0.{index}" for index in range(size)]}),
    *around("spec.hostname", 63, text), *around("spec.hostnameOverride", 64, text), *around("spec.activeDeadlineSeconds", 2**31 - 1), *around("spec.activeDeadlineSeconds", 0), *around("spec.terminationGracePeriodSeconds", -1), *(edit for field in ("runAsUser", "runAsGroup", "fsGroup") for bound in (2**31 - 1, -1) for edit in around(f"spec.securityContext.{field}", bound)), *around("spec.securityContext.supplementalGroups[0]", 2**31 - 1),
    *around(f"{CONTAINER}.securityContext.appArmorProfile", 4095, lambda size: {"type": "Localhost", "localhostProfile": text(size)}),
    *around(WINDOWS, 256, lambda size: {"runAsUserName": f"{'.'.join([text(51)] * 4)}.{text(size - 4 * 52)}\\b"}), *around(WINDOWS, 104, lambda size: {"runAsUserName": text(size)}), *around(WINDOWS, 15, lambda size: {"runAsUserName": text(size) + "\\b"}),
    *around(f"{CONTAINER}.livenessProbe", 0, lambda size: {"exec": {"command": ["a"]}, "timeoutSeconds": size, "periodSeconds": 1}), *around(f"{CONTAINER}.livenessProbe", 1, lambda size: {"exec": {"command": ["a"]}, "successThreshold": size}), *around(f"{CONTAINER}.livenessProbe", 65535, lambda size: {"tcpSocket": {"port": size}}), *around(f"{CONTAINER}.ports", 65535, lambda size: [{"containerPort": size}]), *around(f"{CONTAINER}.ports", 15, lambda size: [{"containerPort": 1, "name": text(size)}]),
    *around("spec.volumes", 0o777, lambda size: [{"name": "v", "configMap": {"name": "a", "defaultMode": size}}]), *around("spec.volumes", -1, lambda size: [{"name": "v", "secret": {"secretName": "a", "defaultMode": size}}]), *(edit for bound in (599, 1 << 32) for edit in around("spec.volumes", bound, lambda size: [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "a", "expirationSeconds": size}}]}}])),
    *around("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution", 100, lambda size: [{"weight": size, "podAffinityTerm": {"topologyKey": "a"}}]), *around("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", 0, lambda size: [{"weight": size, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]),
    *around("spec.topologySpreadConstraints", 0, lambda size: [{"maxSkew": size, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]), *around("spec.topologySpreadConstraints", 0, lambda size: [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "minDomains": size}]),
])
HOOK: Edit = {"webhooks": [{"name": "a.b.c", "clientConfig": {"url": "https://a"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}]}
HOOKS = "webhooks[0]"
tell_of("webhooks", "admissionregistration.k8s.io/v1/*validatingwebhookconfigurations", HOOK, create=[
    *around(f"{HOOKS}.timeoutSeconds", 30), *around(f"{HOOKS}.timeoutSeconds", 0), *around(f"{HOOKS}.matchConditions", 64, named({"expression": "true"})), *around(f"{HOOKS}.clientConfig", 65535, lambda size: {"service": {"name": "a", "namespace": "b", "port": size}}), *around(f"{HOOKS}.clientConfig", 0, lambda size: {"service": {"name": "a", "namespace": "b", "port": size}}),
])
POLICY: Edit = {"spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}, "validations": [{"expression": "true"}]}}
tell_of("policies", "admissionregistration.k8s.io/v1/*validatingadmissionpolicies", POLICY, create=[
    *around("spec.auditAnnotations", 20, named({"valueExpression": "'a'"}, "key")), *around("spec.auditAnnotations", 5 * 1024, lambda size: [{"key": "a", "valueExpression": f"'{text(size - 2)}'"}]), *around("spec.matchConditions", 64, named({"expression": "true"})), *around("spec.variables", 64, named({"expression": "true"})),
])
tell_of("cronjobs", "batch/v1/cronjobs", {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}}, create=[
    *around("metadata.name", 52, text), *around("spec.jobTemplate.spec.managedBy", 63, lambda size: f"a.b/{text(size - 4)}"), *around("spec.jobTemplate.spec.podFailurePolicy", 20, lambda size: {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "a", "status": "True"}]}] * size}),
    *around("spec.jobTemplate.spec.podFailurePolicy", 255, lambda size: {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [index + 1 for index in range(size)]}}]}), *around("spec.jobTemplate.spec.podFailurePolicy", 20, lambda size: {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "a", "status": "True"}] * size}]}),
])
CLAIM: Edit = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "a"}}]}}}
DEVICES = "spec.devices"
REQUEST: Edit = {"exactly": {"deviceClassName": "a"}}
tell_of("claims", "resource.k8s.io/v1/resourceclaims", CLAIM, create=[
    *around(f"{DEVICES}.requests", 32, named(REQUEST)), *around(f"{DEVICES}.requests", 8, lambda size: [{"name": "r", "firstAvailable": named({"deviceClassName": "a"})(size)}]), *around(f"{DEVICES}.constraints", 32, of({"requests": ["r"], "matchAttribute": "a.b/c"})), *around(f"{DEVICES}.config", 32, of({"requests": ["r"], "opaque": {"driver": "a.b", "parameters": {}}})),
    *around(f"{DEVICES}.constraints", 32, lambda size: [{"matchAttribute": f"a.b/{text(size)}"}]), *around(f"{DEVICES}.constraints", 63, lambda size: [{"matchAttribute": f"{text(size)}/c"}]), *around(f"{DEVICES}.requests[0].exactly.selectors", 32, of({"cel": {"expression": "true"}})), *around(f"{DEVICES}.requests[0].exactly.selectors", 10 * 1024, lambda size: [{"cel": {"expression": "true" + " " * (size - 4)}}]),
    *around(f"{DEVICES}.config", 10 * 1024, lambda size: [{"opaque": {"driver": "a.b", "parameters": text(size - 2)}}]), *around(f"{DEVICES}.requests[0].exactly.count", 0), *around(f"{DEVICES}.requests[0].exactly.tolerations", 16, of({"key": "a", "operator": "Exists"})),
])
tell_of("managers", "v1/configmaps", {"data": {"a": "b"}}, states=[State(update=[
    *around("metadata.managedFields[0].manager", 128, text), *around("metadata.managedFields[0].subresource", 256, text), *around("metadata.annotations", 256 * 1024, lambda size: {"a": text(size - 1)}), *around("metadata.labels[a]", 63, text), *around("data", 1024 * 1024, lambda size: {"a": text(size)}),
])])
