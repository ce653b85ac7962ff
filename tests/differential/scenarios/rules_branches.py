"""Branches of rules that no other table shows: found by mutants that nothing noticed (`python -m tests.mutants`)."""

from __future__ import annotations

import base64
import functools
import itertools
from typing import Any

from tests.differential.client import MERGE, STRATEGIC, Client
from tests.differential.definitions import definition, make, served
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.rule_tables import DRY, State, tell

# fmt: off
tell_of = functools.partial(tell, module="rules_branches")

POD: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
ITEM = {"key": "k", "path": "a"}
BUNDLE = {"name": "b", "path": "a"}
CERTIFICATE = {"signerName": "a.b/c", "keyType": "ED25519"}
SOURCES: list[dict[str, Any]] = [
    {"secret": {"name": "s", "items": [ITEM]}}, {"configMap": {"name": "m", "items": [ITEM, {"key": "l", "path": "b/c"}]}}, {"downwardAPI": {"items": [{"path": "a/b", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    {"serviceAccountToken": {"path": "b"}}, {"clusterTrustBundle": BUNDLE}, {"clusterTrustBundle": {"signerName": "a.b/c", "labelSelector": {}, "path": "b/c/d"}},
    {"podCertificate": {**CERTIFICATE, "credentialBundlePath": "a"}}, {"podCertificate": {**CERTIFICATE, "keyPath": "b", "certificateChainPath": "a"}}, {"podCertificate": {**CERTIFICATE, "keyPath": "a/k", "certificateChainPath": "a/k"}}, {},
]
VOLUME = {"spec.volumes": [{"name": "v", "projected": {"sources": []}}]}
tell_of("projected_paths", "v1/pods", POD, create=[
    *({**VOLUME, "spec.volumes[0].projected.sources": [one, other]} for one in SOURCES for other in SOURCES),
    {**VOLUME, "spec.volumes[0].projected.sources": SOURCES},
    {**VOLUME, "spec.volumes[0].projected.sources": []},
])

ATTACHMENT = {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
CODES: list[dict[str, Any]] = [{f"status.{name}": {"time": "2026-01-01T00:00:00Z", "message": "m", "errorCode": code}} for name in ("attachError", "detachError") for code in (-1, 0, 1, 2**31 - 1)]
tell_of("volume_attachments", "storage.k8s.io/v1/*volumeattachments", ATTACHMENT, states=[State(status_update=CODES)])


HEX = "0123456789abcdef" * 8
IMAGES = (
    "a", "a:latest", "a:b", "a:Latest", "a/b", "a/b/c", "A/b", "a/B", "B", "a_b", "a__b", "a___b", "a.b", "a..b", "a-b", "a--b", "a-", "-a", "_a", "a_", "a:", "a:-b", "a:.b", "a:b.c-d_e", "a:b/c", f"a:{'t' * 128}", f"a:{'t' * 129}",
    "a" * 254, "a" * 255, "a" * 256, f"a/{'b' * 253}", f"a/{'b' * 254}", f"docker.io/{'a' * 247}", f"docker.io/{'a' * 248}", f"docker.io/{'a' * 249}", HEX[:63], HEX[:64], HEX[:65], HEX[:64].upper(), f"a/{HEX[:64]}", f"{HEX[:64]}:latest",
    *(f"a{tag}@{algorithm}:{HEX[:length]}" for tag in ("", ":latest", ":b") for algorithm, length in (("sha256", 63), ("sha256", 64), ("sha256", 65), ("sha384", 96), ("sha384", 64), ("sha512", 128), ("sha512", 127), ("md5", 32), ("x", 64))),
    f"a:latest@sha256:{HEX[:64].upper()}", f"a:latest@SHA256:{HEX[:64]}", f"a:latest@sha256+b:{HEX[:64]}", f"a:latest@sha256:{HEX[:31]}", "a:latest@sha256:", "a@", "a@b",
    "localhost/a", "localhost/A", "localhost:5000/a", "localhost:5000/a:latest", "localhost:5000/a:b", "localhost", "b:80/a", "b:80/a:b", "B/a", "b.c/a", "b.c/A", "B.c/a", "b..c/a", "b.c:80/a:latest", "b.c:x/a", "[::1]/a", "[::1]:80/a", "[fd00::1]:80/a:b", "[x]/a",
    "docker.io/a", "docker.io/a/b", "docker.io/A", "index.docker.io/a", "index.docker.io/a/b", "index.docker.io/a:b", "index.docker.io", "a//b", "/a", "a/", " a", "a b", "é",
)
tell_of("pull_policies", "v1/pods", POD, create=[{"spec.containers[0].image": image} for image in IMAGES])

PAGES = ("2Mi", "1Mi", "0", "-2Mi", "1", "3", "1m", "1500m", "1.5", "0.5", "1Ki", "x", "", "1e3", "2Mi2")
tell_of("huge_pages", "v1/pods", POD, create=[
    {"spec.containers[0].resources": {"limits": {f"hugepages-{page}": amount, "cpu": "1"}}} for page in PAGES for amount in ("0", "1", "2", "3", "1Mi", "2Mi", "3Mi", "1500m", "-2Mi")
])

TERM = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a b"]}]}
EXPRESSIONS = [{"key": key, "operator": operator, "values": values} for key in ("k", "beta.kubernetes.io/os", "kubernetes.io/os") for operator, values in (("In", ["a b"]), ("In", ["a", "-"]), ("NotIn", ["é"]), ("In", ["linux"]), ("Gt", ["1"]))]
tell_of("node_affinities", "v1/pods", POD, create=[
    *({"spec.affinity.nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [one]}}]}} for one in EXPRESSIONS),
    *({"spec.affinity.nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}} for one in EXPRESSIONS),
    {"spec.affinity.nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a b"]}]}}, {"weight": 2, "preference": TERM}]}},
])

PORTS: list[list[dict[str, Any]]] = [
    [{}], [{"name": "a"}], [{"containerPort": 1}], [{"containerPort": 0}], [{"hostPort": 1}], [{"containerPort": 1, "hostPort": 1}, {"containerPort": 2, "hostPort": 1}], [{"containerPort": 1, "hostPort": 0}, {"containerPort": 2, "hostPort": 0}],
    [{"containerPort": 1}, {"containerPort": 1}], [{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1}], [{"containerPort": 1, "hostIP": "x"}], [{"containerPort": 1, "hostPort": 1, "hostIP": "10.0.0.1"}, {"containerPort": 1, "hostPort": 1}],
]
tell_of("container_ports", "v1/pods", POD, create=[{**network, "spec.containers[0].ports": ports} for network in ({}, {"spec.hostNetwork": True}) for ports in PORTS])

TLS = {"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}
CONTENTS = (None, "", base64.b64encode(b"x").decode(), base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").decode(), base64.b64encode(b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n").decode())
PAIRS: list[dict[str, Any]] = [{"data": {name: text for name, text in (("tls.crt", one), ("tls.key", other)) if text is not None}} for one in CONTENTS for other in CONTENTS]
tell_of("tls_secrets", "v1/secrets", TLS, create=[*PAIRS, *({**pair, "type": "Opaque"} for pair in PAIRS[::7]), {"data": None}, {"data": {}}], states=[State(update=PAIRS[::3])])


RESTRICTED: dict[str, Any] = {
    "hostNetwork": True, "securityContext": {"sysctls": [{"name": name, "value": "1"} for name in ("net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "kernel.shm_rmid_forced", "a.b")], "seLinuxOptions": {"type": "x"},
                                             "windowsOptions": {"hostProcess": True, "runAsUserName": "x"}, "seccompProfile": {"type": "Unconfined"}, "runAsUser": 0, "appArmorProfile": {"type": "Unconfined"}},
    "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
    "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}], "livenessProbe": {"httpGet": {"port": 1, "host": "a"}}, "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}, "procMount": "Unmasked", "seLinuxOptions": {"user": "x"}}}],
}
WINDOWS = {"os": {"name": "windows"}, "hostNetwork": True, "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "x"}}, "containers": [{"name": "c", "image": "i"}]}
OWN_USERS = {"hostUsers": False, "securityContext": {"runAsUser": 0}, "containers": [{"name": "c", "image": "i", "securityContext": {"procMount": "Unmasked"}}]}
VERSIONS = (0, 1, 7, 8, 18, 19, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31, 32, 33, 34, 35, 36, 37, 38)


@scenario
def pod_security_by_version(c: Client) -> None:
    """Each check of Pod Security holds from a version on: what a pod that violates all of them, one of Windows and one with users of its own are told."""
    for level, version in itertools.product(("baseline", "restricted"), VERSIONS):
        labels = {f"pod-security.kubernetes.io/{mode}": text for mode, text in (("enforce", level), ("enforce-version", f"v1.{version}"), ("warn", "privileged"))}
        name = c.name(f"{level}-{version}")
        c.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}, silent=True)
        for spec in (RESTRICTED, WINDOWS, OWN_USERS):
            c.post(f"/api/v1/namespaces/{name}/pods", {"metadata": {"name": "p"}, "spec": spec}, DRY)
        c.delete(f"/api/v1/namespaces/{name}", silent=True)


def space(c: Client, suffix: str) -> str:
    """A namespace that no cache of the server knows."""
    c.post("/api/v1/namespaces", {"metadata": {"name": c.name(suffix)}}, silent=True)
    return f"/api/v1/namespaces/{c.name(suffix)}"


AMOUNTS = (None, "1", "2", "3")


@scenario
def limits_of_pods(c: Client) -> None:
    """A LimitRange of pods: each bound, with a request and a limit that are absent, below, at and above it."""
    for name, bound in (("min", {"min": {"cpu": "2"}}), ("max", {"max": {"cpu": "2"}}), ("ratio", {"maxLimitRequestRatio": {"cpu": "2"}}), ("all", {"min": {"cpu": "1"}, "max": {"cpu": "3"}, "maxLimitRequestRatio": {"cpu": "2"}})):
        for kind in ("Pod", "Container"):
            path = space(c, f"{name}-{kind.lower()}")
            c.post(f"{path}/limitranges", {"metadata": {"name": name}, "spec": {"limits": [{"type": kind, **bound}]}}, silent=True)
            for request, limit in itertools.product(AMOUNTS, AMOUNTS):
                resources = {side: {"cpu": amount} for side, amount in (("requests", request), ("limits", limit)) if amount}
                c.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}, DRY)
            c.delete(path, silent=True)
    path = f"/api/v1/namespaces/{c.ns}"
    c.post(f"{path}/limitranges", {"metadata": {"name": "claims"}, "spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "2"}, "max": {"storage": "3"}}]}}, silent=True)
    for amount in "1234":
        c.post(f"{path}/persistentvolumeclaims", {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": amount}}}}, DRY)


@scenario
def deletions_again(c: Client) -> None:
    """A deletion of what is being deleted may only shorten its grace period."""
    path = f"/api/v1/namespaces/{c.ns}/pods"
    for first, later in (((0,), (0, 5, -1)), ((5,), (5, 6, 4, 1, 0, 7)), ((None,), (None, 31, 30, 29)), ((1,), (-1, 2)), ((-1,), (0, 1))):
        name = f"p{'x' if first[0] is None else first[0]}".replace("-", "m")
        c.post(path, {"metadata": {"name": name, "finalizers": ["a.b/c"]}, "spec": {"nodeName": "n", **POD["spec"]}}, silent=True)
        for seconds in (*first, *later):
            c.delete(f"{path}/{name}", None if seconds is None else {"gracePeriodSeconds": seconds})
        c.patch(f"{path}/{name}", {"metadata": {"finalizers": None}}, MERGE)
        c.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})

CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
BETA = "metadata.annotations[volume.beta.kubernetes.io/storage-class]"
NAMED: list[dict[str, Any]] = [
    {"spec.storageClassName": name, **annotation} for name in ("a", "b", "", None) for annotation in ({}, {BETA: "a"}, {BETA: "b"}, {BETA: None}, {BETA: ""})
]
tell_of("classes_of_claims", "v1/persistentvolumeclaims", CLAIM, create=NAMED, states=[State(base={BETA: "a"}, update=NAMED), State(base={"spec.storageClassName": "a"}, update=NAMED), State(update=NAMED), State(base={BETA: ""}, update=NAMED)])

SLICE = {"spec": {"driver": "d.e", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "allNodes": True, "devices": [{"name": "d"}]}}
KEYS = (*("a" * length for length in (31, 32, 33, 63, 64)), *(f"{'a' * prefix}/{'c' * name}" for prefix in (62, 63, 64) for name in (31, 32, 33)), f"{'a' * 63}.b/c", "a/b/c", "/a", "a/", "é", "A", "1", "a-b", "a_b")
tell_of("keys_of_devices", "resource.k8s.io/v1/*resourceslices", SLICE, create=[
    *({"spec.devices[0].attributes": {key: {"int": 1}}} for key in KEYS), *({"spec.devices[0].capacity": {key: {"value": "1"}}} for key in KEYS),
    *({"spec.devices": None, "spec.sharedCounters": [{"name": "s", "counters": {key: {"value": "1"}}}]} for key in KEYS),
])

TEXTS = ("a" * 63, "a" * 64, "a" * 253, "a" * 254, f"{'a' * 63}/b", f"{'a' * 64}/b", f"a/{'b' * 63}", f"a/{'b' * 64}", f"{'a.' * 126}b/c", f"{'a.' * 127}b/c", "", "/", "a/", "/b", "A/b", "a/B", "a b", ".a", "..", "a.", "-a", "é", "a/b/c", "cpu", "requests.cpu", "pods", "hugepages-2Mi", "requests.hugepages-2Mi", "x.kubernetes.io/y", "kubernetes.io/y", "requests.a.b/c", "limits.a.b/c")
tell_of("keys_of_data", "v1/configmaps", {}, create=[*({"data": {key: "x"}} for key in TEXTS), *({"binaryData": {key: "eA=="}} for key in TEXTS), *({"metadata.labels": {key: "x"}} for key in TEXTS), *({"metadata.annotations": {key: "x"}} for key in TEXTS)])
tell_of("keys_of_secrets", "v1/secrets", {}, create=[*({"data": {key: "eA=="}} for key in TEXTS), *({"stringData": {key: "x"}} for key in TEXTS)])
tell_of("keys_of_pods", "v1/pods", POD, create=[
    *({"spec.nodeSelector": {key: "x"}} for key in TEXTS), *({"spec.containers[0].resources": {"limits": {key: "2Mi", "cpu": "1"}}} for key in TEXTS), *({"spec.containers[0].resources": {"requests": {key: "2Mi"}}} for key in TEXTS), *({"spec.overhead": {key: "2Mi"}, "spec.runtimeClassName": "x"} for key in TEXTS),
])
tell_of("keys_of_quotas", "v1/resourcequotas", {"spec": {"hard": {}}}, create=[*({"spec.hard": {key: "1"}} for key in TEXTS), *({"spec.hard": {f"count/{key}": "1"}} for key in ("pods", "a.b", "", "a/b", "deployments.apps"))])
tell_of("keys_of_ranges", "v1/limitranges", {"spec": {"limits": [{"type": "Container"}]}}, create=[*({"spec.limits[0].max": {key: "2Mi"}} for key in TEXTS), *({"spec.limits[0].maxLimitRequestRatio": {key: "2"}} for key in TEXTS), *({"spec.limits[0].type": "PersistentVolumeClaim", "spec.limits[0].max": {key: "2Mi"}} for key in TEXTS)])

EVENT = {"involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p"}, "reason": "r"}
METADATA: list[dict[str, Any]] = [{"metadata.labels": {"a b": "c"}}, {"metadata.annotations": {"a b": "c"}}, {"metadata.finalizers": ["a b"]}, {"metadata.ownerReferences": [{}]}, {"metadata.labels": {"a": "c d"}}]
tell_of("events", "v1/events", EVENT, create=[*METADATA, {"metadata.name": "A_"}], states=[State(update=METADATA)])
NEW_EVENT = {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "i", "action": "a", "reason": "r", "type": "Normal", "regarding": {"kind": "Pod", "namespace": "{ns}", "name": "p"}}
tell_of("new_events", "events.k8s.io/v1/events", NEW_EVENT, create=[*METADATA, {"metadata.name": "A_"}], states=[State(update=METADATA)])


@scenario
def reasons_of_policies(c: Client) -> None:
    """The reason of a validation decides the code of the answer."""
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    name, reasons = c.name("p"), ("Forbidden", "Unauthorized", "RequestEntityTooLarge", "Invalid")
    validations = [{"expression": f"object.metadata.name != '{reason.lower()}'", "reason": reason} for reason in reasons]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": c.ns}}
    spec = {"matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector}, "validations": [*validations, {"expression": "object.metadata.name != 'none'"}]}
    c.post(f"{policies}ies", {"metadata": {"name": name}, "spec": spec}, silent=True)
    c.post(f"{policies}ybindings", {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}, silent=True)
    maps = f"/api/v1/namespaces/{c.ns}/configmaps"
    until(lambda: c.post(maps, {"metadata": {"name": "none"}}, DRY, silent=True).status == 422, 10)
    for reason in (*reasons, "none", "other"):
        c.post(maps, {"metadata": {"name": reason.lower()}}, DRY)
    for path in (f"{policies}ybindings", f"{policies}ies"):
        c.delete(f"{path}/{name}", silent=True)


@scenario
def quotas_of_attribute_classes(c: Client) -> None:
    """A quota with the scope VolumeAttributesClass counts the claims whose class it names."""
    for operator, values in (("Exists", None), ("DoesNotExist", None), ("In", ["a"]), ("NotIn", ["a"])):
        path = space(c, operator.lower())
        scope = {"scopeName": "VolumeAttributesClass", "operator": operator, **({"values": values} if values else {})}
        c.post(f"{path}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"persistentvolumeclaims": "0"}, "scopeSelector": {"matchExpressions": [scope]}}})
        c.patch(f"{path}/resourcequotas/q/status", {"status": {"hard": {"persistentvolumeclaims": "0"}, "used": {"persistentvolumeclaims": "0"}}}, MERGE, silent=True)
        for name in (None, "a", "b"):
            c.post(f"{path}/persistentvolumeclaims", {"metadata": {"name": "v"}, "spec": {**CLAIM["spec"], **({"volumeAttributesClassName": name} if name else {})}}, DRY)
        c.delete(path, silent=True)
    path = f"/api/v1/namespaces/{c.ns}"
    c.post(f"{path}/resourcequotas", {"metadata": {"name": "s"}, "spec": {"hard": {"services": "1", "services.nodeports": "2", "services.loadbalancers": "0"}}}, silent=True)
    c.patch(f"{path}/resourcequotas/s/status", {"status": {"hard": {"services": "1", "services.nodeports": "2", "services.loadbalancers": "0"}, "used": {"services": "0", "services.nodeports": "0", "services.loadbalancers": "0"}}}, MERGE, silent=True)
    for spec in (
        {"type": "LoadBalancer"}, {"type": "NodePort"}, {"type": "ClusterIP"}, {"type": "NodePort", "ports": [{"port": port, "name": f"p{port}"} for port in (1, 2, 3)]}, {"type": "NodePort", "ports": [{"port": port, "name": f"p{port}"} for port in (1, 2)]},
        {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
    ):
        c.post(f"{path}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], **spec}}, DRY)


@scenario
def resizes_on_nodes(c: Client) -> None:
    """A pod on a node may ask for no more than the node has, and only of Linux."""
    path = f"/api/v1/namespaces/{c.ns}/pods"
    nodes: dict[str, dict[str, Any]] = {
        "bare": {}, "empty": {"status": {"allocatable": {}}}, "small": {"status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}}, "cpu": {"status": {"allocatable": {"cpu": "2"}}},
        "windows": {"metadata": {"labels": {"kubernetes.io/os": "windows"}}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi"}}}, "linux": {"metadata": {"labels": {"kubernetes.io/os": "linux"}}, "status": {"allocatable": {"cpu": "1999m", "memory": "8Gi"}}},
    }
    for suffix, node in nodes.items():
        name = c.name(suffix)
        c.post("/api/v1/nodes", {**node, "metadata": {"name": name, **node.get("metadata", {})}}, silent=True)
        c.post(path, {"metadata": {"name": suffix}, "spec": {"nodeName": name, "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}}]}}, silent=True)
        c.get(f"{path}/{suffix}", silent=True)
    for suffix in nodes:
        for requests in ({"cpu": "1"}, {"cpu": "2"}, {"cpu": "2001m"}, {"memory": "1Gi"}, {"memory": "2Gi"}, {"cpu": "3", "memory": "9Gi"}, {"cpu": "100m"}):
            c.patch(f"{path}/{suffix}/resize", {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}, STRATEGIC, DRY)
    for suffix in nodes:
        c.delete(f"{path}/{suffix}", {"gracePeriodSeconds": 0}, silent=True)
        c.delete(f"/api/v1/nodes/{c.name(suffix)}", silent=True)

BRANCHES: list[dict[str, Any]] = [
    {"format": "date"}, {"format": "ipv4"}, {"minLength": 5}, {"maxLength": 1}, {"pattern": "^x"}, {"enum": ["x", 1, None]}, {"minimum": 5}, {"maximum": 1}, {"multipleOf": 3}, {"minItems": 5}, {"maxItems": 0}, {"uniqueItems": True},
    {"required": ["z"]}, {"minProperties": 5}, {"maxProperties": 0}, {"properties": {"p": {"enum": [7]}}}, {"properties": {"p": {"minimum": 9}, "q": {"maxLength": 0}}}, {"items": {"enum": [7]}}, {"items": {"minimum": 9, "format": "int32"}}, {"additionalProperties": {"enum": [7]}},
    {"allOf": [{"minimum": 5}, {"maximum": 4}]}, {"anyOf": [{"minimum": 5}, {"minLength": 5}]}, {"oneOf": [{"maximum": 100}, {"maximum": 200}]}, {"not": {"minLength": 0}}, {"not": {"required": ["p"]}},
]
VALUES: list[Any] = ["ab", "", 2, -1, 2.5, True, None, [1, 1], [], ["ab"], {"p": 1, "q": "ab"}, {}, {"p": "x"}]


@scenario
def best_matches(c: Client) -> None:
    """Of branches that all refuse a value, the errors of the best match are told."""
    chosen = [(one, other) for number, one in enumerate(BRANCHES) for other in BRANCHES[number + 1 :: 8]]
    free = {"x-kubernetes-preserve-unknown-fields": True, "nullable": True}
    some = {f"f{number}": {**free, ("anyOf", "oneOf")[number % 2]: [one, other]} for number, (one, other) in enumerate(chosen)}
    body = definition(c, {"type": "object", "properties": some})
    with served(c, body) as path:
        for value, field in itertools.product(VALUES, some):
            c.post(path, make(body, **{field: value}), DRY)

COUNTED: list[dict[str, Any]] = [{"count": count} for count in (None, 0, 1, 2)]
tell_of("counts_of_events", "v1/events", {**EVENT, "count": 2}, states=[State(update=COUNTED), State(base={"eventTime": "2026-01-01T00:00:00.000000Z", "reportingComponent": "a.b/c", "reportingInstance": "i", "action": "a", "type": "Normal"}, update=COUNTED)])
tell_of("counts_of_new_events", "events.k8s.io/v1/events", NEW_EVENT, states=[State(update=[{"deprecatedCount": count} for count in (None, 0, 1)]), State(base={"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}, update=[{"series.count": count} for count in (0, 1, 2, 3)])])

RANGES = "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"
RANGE_TEXTS = ("10.0.0.0/8", "010.0.0.0/8", "1.2.3.4/8", "", " ", " 10.0.0.0/8 , 11.0.0.0/8", "10.0.0.0/8,x", "::ffff:1.0.0.0/104", "10.0.0.0/08", "10.0.0.0", "fd00::/8")
RANGED: list[dict[str, Any]] = [*({RANGES: text} for text in RANGE_TEXTS), *({"spec.loadBalancerSourceRanges": [text]} for text in RANGE_TEXTS), {RANGES: "x", "spec.loadBalancerSourceRanges": ["10.0.0.0/8"]}]
BALANCED = {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
tell_of("source_ranges", "v1/services", BALANCED, create=[*RANGED, *({**one, "spec.type": "ClusterIP"} for one in RANGED[::4])], states=[State(base={RANGES: "10.0.0.0/8"}, update=RANGED), State(base={"spec.loadBalancerSourceRanges": ["10.0.0.0/8"]}, update=RANGED)])

TEMPLATE = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
PLACE = "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata"
FIELDS: dict[str, tuple[Any, ...]] = {
    "name": ("", "a"), "generateName": ("", "a"), "namespace": ("", "a"), "uid": ("", "a"), "resourceVersion": ("", "1"), "generation": (0, 1, -1), "creationTimestamp": (None, "2026-01-01T00:00:00Z"), "deletionTimestamp": ("2026-01-01T00:00:00Z",), "deletionGracePeriodSeconds": (0, 1), "selfLink": ("", "a"),
    "labels": ({}, {"a b": "c"}), "annotations": ({}, {"a b": "c"}), "finalizers": ([], ["a.b/c"]), "ownerReferences": ([], [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]), "managedFields": ([], [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]),
}
tell_of("claim_templates", "v1/pods", {"spec": {**POD["spec"], "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}]}}, create=[{f"{PLACE}.{name}": value} for name, values in FIELDS.items() for value in values])
CLAIM_TEMPLATE = {"spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}}
tell_of("device_claim_templates", "resource.k8s.io/v1/resourceclaimtemplates", CLAIM_TEMPLATE, create=[{f"spec.metadata.{name}": value} for name, values in FIELDS.items() for value in values])
tell_of("metadata_of_templates", "apps/v1/deployments", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **POD}}}, create=[{f"spec.template.metadata.{name}": value} for name, values in FIELDS.items() for value in values if name != "labels"])


@scenario
def references_of_expressions(client: Client) -> None:
    """Where a warning of a policy's status says that its expression is."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    client.post(path, {"metadata": {"name": client.name("p")}, "spec": {"validations": [{"expression": "true"}], "failurePolicy": "Ignore", "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}]}}})
    policy = client.get(f"{path}/{client.name('p')}", silent=True).json or {}
    for reference in ("spec.validations[0].expression", " ", "", "*", " a b ", "a[", "a]", "{a}", "a.b['c']", "a['c", "..", "a..b", "$.a", "a[1:2:3:4]", "a[?(@.b==1)]", "a[x]", "a(b)"):
        for warning in ("w", ""):
            status = {"typeChecking": {"expressionWarnings": [{"fieldRef": reference, "warning": warning}]}}
            client.put(f"{path}/{client.name('p')}/status", {**policy, "status": status}, {"dryRun": "All"})
    client.delete(f"{path}/{client.name('p')}")
