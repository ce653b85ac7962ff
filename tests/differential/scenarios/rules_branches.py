"""Branches of rules that no other table shows: found by mutants that nothing noticed (`python -m tests.mutants`)."""

from __future__ import annotations

import base64
import functools
import itertools
from typing import Any

from tests.differential.client import MERGE, Client
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


AMOUNTS = (None, "1", "2", "3")


@scenario
def limits_of_pods(c: Client) -> None:
    """A LimitRange of pods: each bound, with a request and a limit that are absent, below, at and above it."""
    path = f"/api/v1/namespaces/{c.ns}"
    for name, bound in (("min", {"min": {"cpu": "2"}}), ("max", {"max": {"cpu": "2"}}), ("ratio", {"maxLimitRequestRatio": {"cpu": "2"}}), ("all", {"min": {"cpu": "1"}, "max": {"cpu": "3"}, "maxLimitRequestRatio": {"cpu": "2"}})):
        for kind in ("Pod", "Container"):
            c.post(f"{path}/limitranges", {"metadata": {"name": name}, "spec": {"limits": [{"type": kind, **bound}]}}, silent=True)
            for request, limit in itertools.product(AMOUNTS, AMOUNTS):
                resources = {side: {"cpu": amount} for side, amount in (("requests", request), ("limits", limit)) if amount}
                c.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}, DRY)
            c.delete(f"{path}/limitranges/{name}", silent=True)
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
