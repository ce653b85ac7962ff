"""The rules of pods, each shown by an edit of a pod that is valid."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.rule_tables import State, each, tell

# fmt: off
tell_of = functools.partial(tell, module="rules_pods")

Edit = dict[str, Any]
POD: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "i", "image": "i"}], "volumes": [{"name": "v", "emptyDir": {}}]}}
C, I = "spec.containers[0]", "spec.initContainers[0]"  # noqa: E741
SECURITY, OF_C = "spec.securityContext", f"{C}.securityContext"
LONG = "x" * 64
MIRROR = {"metadata.annotations[kubernetes.io/config.mirror]": "x", "spec.nodeName": "n"}
APPARMOR, SECCOMP = "container.apparmor.security.beta.kubernetes.io", "seccomp.security.alpha.kubernetes.io"


def volume(**source: Any) -> Edit:
    return {"spec.volumes[0]": {"name": "v", **source}}


def projected(*sources: Any, **more: Any) -> Edit:
    return volume(projected={"sources": list(sources), **more})


def env(**source: Any) -> Edit:
    return {f"{C}.env": [{"name": "E", "valueFrom": source}]}


ANNOTATIONS = [
    {"metadata.annotations[kubernetes.io/config.mirror]": "x"},
    MIRROR,
    *each("metadata.annotations[scheduler.alpha.kubernetes.io/tolerations]", "[", "{}", '[{"operator":"Nope"}]', "[]"),
    *each("metadata.annotations[controller.kubernetes.io/pod-deletion-cost]", "x", "1", "-1", "+1", "01", "2147483648", "-2147483648", "", "-0"),
    *each(f"metadata.annotations[{SECCOMP}/pod]", "runtime/default", "docker/default", "unconfined", "localhost/a", "localhost/../a", "localhost//a", "x", ""),
    *each(f"metadata.annotations[container.{SECCOMP}/c]", "runtime/default", "x"),
    *each(f"metadata.annotations[{APPARMOR}/c]", "runtime/default", "unconfined", "localhost/a", "localhost/", "x", ""),
    {f"metadata.annotations[{APPARMOR}/other]": "runtime/default"},
    *(
        {f"metadata.annotations[{SECCOMP}/pod]": annotation, f"{SECURITY}.seccompProfile": profile}
        for annotation in ("runtime/default", "unconfined", "localhost/a")
        for profile in ({"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a"}, {"type": "Localhost", "localhostProfile": "b"})
    ),
    *({f"metadata.annotations[container.{SECCOMP}/c]": annotation, f"{OF_C}.seccompProfile": profile} for annotation in ("runtime/default", "localhost/a") for profile in ({"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "b"})),
    *(
        {f"metadata.annotations[{APPARMOR}/c]": annotation, f"{place}.appArmorProfile": profile}
        for place in (SECURITY, OF_C)
        for annotation in ("runtime/default", "unconfined", "localhost/a")
        for profile in ({"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a"}, {"type": "Localhost", "localhostProfile": "b"})
    ),
    {f"metadata.annotations[{APPARMOR}/c]": "unconfined", f"{OF_C}.appArmorProfile": {"type": "RuntimeDefault"}, "spec.os.name": "windows"},
    *each("metadata.annotations[security.alpha.kubernetes.io/sysctls]", "x"),
    *each("metadata.annotations[security.alpha.kubernetes.io/unsafe-sysctls]", "x"),
    *each("metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]", "x"),
    *each("metadata.annotations[a b]", "x"),
    {"metadata.annotations.big": "x" * 262_145},
]

MIRRORS = [
    {**MIRROR, "spec.serviceAccountName": "default"},
    {**MIRROR, "spec.imagePullSecrets": [{"name": "a"}]},
    {**MIRROR, f"{C}.envFrom": [{"configMapRef": {"name": "a"}}]},
    {**MIRROR, f"{C}.env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]},
    {**MIRROR, "spec.resourceClaims": [{"name": "r", "resourceClaimName": "x"}]},
    {**MIRROR, "spec.priorityClassName": "system-node-critical"},
    *(
        {**MIRROR, **volume(**source)}
        for source in (
            {"configMap": {"name": "a"}},
            {"secret": {"secretName": "a"}},
            {"csi": {"driver": "a.b"}},
            {"glusterfs": {"endpoints": "a", "path": "b"}},
            {"persistentVolumeClaim": {"claimName": "a"}},
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}}},
            {"azureFile": {"secretName": "a", "shareName": "b"}},
            {"hostPath": {"path": "/a"}},
            {"projected": {"sources": [{"configMap": {"name": "a"}}]}},
            {"projected": {"sources": [{"secret": {"name": "a"}}]}},
            {"projected": {"sources": [{"serviceAccountToken": {"path": "a"}}]}},
            {"projected": {"sources": [{"downwardAPI": {}}]}},
            {"rbd": {"monitors": ["a"], "image": "b", "secretRef": {"name": "c"}}},
            {"nfs": {"server": "a", "path": "/b"}},
        )
    ),
]

CONTAINERS = [
    {"spec.containers": []},
    {f"{C}.name": ""},
    {f"{C}.name": "A_b"},
    {f"{C}.image": ""},
    {f"{C}.image": " i "},
    {"spec.containers[1]": {"name": "c", "image": "i"}},
    {"spec.containers[1]": {"name": "i", "image": "i"}},
    {"spec.initContainers[1]": {"name": "i", "image": "i"}},
    *each(f"{C}.terminationMessagePolicy", "Nope", ""),
    *each(f"{C}.imagePullPolicy", "Nope", ""),
    *each(f"{C}.restartPolicy", "Nope", "Never", "Always"),
    {f"{C}.restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
    *each(
        f"{C}.restartPolicyRules",
        [{"action": "Nope", "exitCodes": {"operator": "In", "values": [1]}}],
        [{"action": "Restart"}],
        [{}],
        [{"action": "Restart", "exitCodes": {"operator": "Nope", "values": [1]}}],
        [{"action": "RestartAllContainers", "exitCodes": {"operator": "NotIn", "values": []}}],
        [{"action": "Restart", "exitCodes": {"operator": "In", "values": list(range(255))}}],
        [{"action": "Restart", "exitCodes": {"operator": "In", "values": list(range(256))}}],
        [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}] * 20,
        [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}] * 21,
        **{f"{C}.restartPolicy": "Never"},
    ),
    {f"{I}.restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
    {f"{I}.restartPolicy": "Nope"},
    {f"{I}.restartPolicy": "Always", f"{I}.livenessProbe": {"exec": {"command": ["x"]}}, f"{I}.lifecycle": {"preStop": {"exec": {}}}},
    *({f"{I}.{probe}": {"exec": {"command": ["x"]}}} for probe in ("livenessProbe", "readinessProbe", "startupProbe")),
    {f"{I}.lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
    {f"{I}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
    {f"{I}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}], f"{I}.restartPolicy": "Always"},
    *each(f"{C}.resizePolicy", [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}], [{"resourceName": "disk", "restartPolicy": "NotRequired"}], [{"resourceName": "cpu", "restartPolicy": "Nope"}], [{"resourceName": "", "restartPolicy": ""}], [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2),
    {f"{C}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}], "spec.restartPolicy": "Never"},
    {f"{C}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}], "spec.restartPolicy": "Never"},
    *each(
        f"{C}.ports",
        [{}],
        [{"containerPort": 0}],
        [{"containerPort": 65535}],
        [{"containerPort": 65536}],
        [{"containerPort": -1}],
        [{"containerPort": 1, "hostPort": 65536}],
        [{"containerPort": 1, "protocol": "Nope"}],
        [{"containerPort": 1, "name": "a b"}],
        [{"containerPort": 1, "name": "a--b"}],
        [{"containerPort": 1, "name": "-a"}],
        [{"containerPort": 1, "name": "1"}],
        [{"containerPort": 1, "name": "a-name-too-long-1"}],
        [{"containerPort": 1, "name": "A"}],
        [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
        [{"containerPort": 1, "hostPort": 2}, {"containerPort": 2, "hostPort": 2}],
        [{"containerPort": 1, "hostIP": "1.2.3.4"}],
        [{"containerPort": 1, "hostIP": "nope"}],
        [{"containerPort": 1}] * 2,
        [{"containerPort": 1, "hostPort": 2}, {"containerPort": 1, "hostPort": 2, "hostIP": "1.2.3.4"}],
        [{"containerPort": 1, "hostPort": 2, "hostIP": "1.2.3.5"}, {"containerPort": 1, "hostPort": 2, "hostIP": "1.2.3.4"}],
        [{"containerPort": 1, "hostPort": 2}, {"containerPort": 1}],
        [{"containerPort": 1, "hostPort": 2}, {"containerPort": 1, "hostPort": 3}],
    ),
    {f"{C}.ports": [{"containerPort": 1, "name": "a"}], f"{I}.ports": [{"containerPort": 1, "name": "a"}]},
    {f"{C}.ports": [{"containerPort": 1, "hostPort": 2}], "spec.hostNetwork": True},
    *each(f"{C}.envFrom", [{}], [{"configMapRef": {"name": ""}}], [{"configMapRef": {"name": "A_"}}], [{"secretRef": {"name": "a"}, "configMapRef": {"name": "a"}}], [{"prefix": "a=", "secretRef": {"name": "a"}}], [{"prefix": "1", "secretRef": {"name": "a"}}]),
    *each(
        f"{C}.env", [{"name": ""}], [{"name": "a="}], [{"name": "1 ü"}], [{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}], [{"name": "a", "valueFrom": {}}], [{"name": "a", "value": "x"}, {"name": "a", "value": "y"}], [{"name": "a", "value": "x"}, {"name": "a", "value": "$(a)y"}]
    ),
    env(fieldRef={"fieldPath": "metadata.name"}, configMapKeyRef={"name": "a", "key": "b"}),
    *(
        env(fieldRef={"fieldPath": path})
        for path in ("", "metadata.name", "metadata.labels", "metadata.annotations", "metadata.labels['a']", "metadata.annotations['a b']", "metadata.labels['a b']", "metadata.annotations['UP']", "spec.nodeName['a']", "spec.host", "status.phase", "spec.restartPolicy", "nope", "status.hostIPs", "metadata.labels['']")
    ),
    env(fieldRef={"apiVersion": "v2", "fieldPath": "metadata.name"}),
    env(fieldRef={"apiVersion": "", "fieldPath": "metadata.name"}),
    *(
        env(resourceFieldRef=reference)
        for reference in (
            {"resource": ""},
            {"resource": "limits.nope"},
            {"resource": "limits.cpu", "divisor": "1m"},
            {"resource": "limits.cpu", "divisor": "2m"},
            {"resource": "requests.memory", "divisor": "1Mi"},
            {"resource": "requests.memory", "divisor": "3Mi"},
            {"resource": "limits.ephemeral-storage", "divisor": "7"},
            {"resource": "requests.hugepages-2Mi", "divisor": "1"},
            {"resource": "requests.hugepages-2Mi", "divisor": "5"},
            {"resource": "limits.memory", "divisor": "0"},
        )
    ),
    *(env(**{kind: reference}) for kind in ("configMapKeyRef", "secretKeyRef") for reference in ({"name": "a", "key": ""}, {"name": "", "key": "a"}, {"name": "A_", "key": "a b"}, {"name": "a", "key": ".."}, {"name": "a", "key": "..a"})),
    {**volume(hostPath={"path": "/a"}), **env(fileKeyRef={"key": "K", "volumeName": "v", "path": "p"})},
    env(fileKeyRef={"key": "K", "volumeName": "other", "path": "p"}),
    *(env(fileKeyRef=reference) for reference in ({"key": "K", "volumeName": "v", "path": "p"}, {"key": "", "volumeName": "", "path": ""}, {"key": "a=", "volumeName": "A_", "path": "../p"})),
]

MOUNTS = [
    *each(
        f"{C}.volumeMounts",
        [{"name": "", "mountPath": "/a"}],
        [{"name": "other", "mountPath": "/a"}],
        [{"name": "v", "mountPath": ""}],
        [{"name": "v", "mountPath": "/a:b"}],
        [{"name": "v", "mountPath": "/a", "subPath": "/abs"}],
        [{"name": "v", "mountPath": "/a", "subPath": "../x"}],
        [{"name": "v", "mountPath": "/a", "subPath": "a/../x"}],
        [{"name": "v", "mountPath": "/a", "subPathExpr": "../x"}],
        [{"name": "v", "mountPath": "/a", "subPathExpr": "$(X)", "subPath": "x"}],
        [{"name": "v", "mountPath": "/a", "mountPropagation": "Nope"}],
        [{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}],
        [{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"}],
        [{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Nope"}],
        [{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled", "readOnly": True, "mountPropagation": "HostToContainer"}],
        [{"name": "v", "mountPath": "/a", "recursiveReadOnly": "IfPossible", "readOnly": True}],
        [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}],
        [{"name": "v", "mountPath": "./a"}],
        [{"name": "v", "mountPath": "a"}],
    ),
    {f"{C}.volumeMounts": [{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}], f"{OF_C}.privileged": True},
    *each(f"{C}.volumeDevices", [{"name": "v", "devicePath": "/a"}], [{"name": "", "devicePath": ""}], [{"name": "other", "devicePath": "/a"}]),
    *({**volume(persistentVolumeClaim={"claimName": "p"}), f"{C}.volumeDevices": devices} for devices in ([{"name": "v", "devicePath": "/a"}], [{"name": "v", "devicePath": "/../a"}], [{"name": "v", "devicePath": "/a"}] * 2, [{"name": "v", "devicePath": ""}])),
    {**volume(persistentVolumeClaim={"claimName": "p"}), f"{C}.volumeDevices": [{"name": "v", "devicePath": "/a"}], f"{C}.volumeMounts": [{"name": "v", "mountPath": "/a"}]},
    {**volume(persistentVolumeClaim={"claimName": "p"}), f"{C}.volumeDevices": [{"name": "v", "devicePath": "/a"}], "spec.hostUsers": False},
]

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
VOLUMES = [
    {"spec.volumes[0]": {"name": ""}},
    {"spec.volumes[0]": {"name": "A_", "emptyDir": {}}},
    {"spec.volumes[1]": {"name": "v", "emptyDir": {}}},
    {"spec.volumes[1]": {"name": LONG, "emptyDir": {}}},
    volume(emptyDir={}, hostPath={"path": "/a"}),
    volume(emptyDir={"sizeLimit": "-1"}),
    volume(emptyDir={"medium": "HugePages"}),
    volume(emptyDir={"medium": "HugePages-2Mi"}),
    volume(emptyDir={"medium": "HugePages-x"}),
    *(volume(hostPath=source) for source in ({"path": ""}, {"path": "/a/../b"}, {"path": "/a", "type": "Nope"}, {"path": "/a", "type": "Socket"})),
    *(volume(gitRepo=source) for source in ({}, {"repository": "a", "directory": "../a"}, {"repository": "a", "directory": "/a"})),
    *(volume(gcePersistentDisk=source) for source in ({}, {"pdName": "a", "partition": 256}, {"pdName": "a", "partition": -1})),
    *(volume(awsElasticBlockStore=source) for source in ({}, {"volumeID": "a", "partition": 256})),
    *(volume(nfs=source) for source in ({}, {"server": "a", "path": "b"})),
    *(
        volume(iscsi={"targetPortal": "p", "lun": 0, **source})
        for source in (
            {"iqn": "iqn.2001-04.com.example:x"},
            {"iqn": "", "targetPortal": ""},
            {"iqn": "nope"},
            {"iqn": "iqn.x"},
            {"iqn": "eui.0123456789abcdef"},
            {"iqn": "eui.0"},
            {"iqn": "naa.0123456789abcdef0123456789abcdef"},
            {"iqn": "naa.0"},
            {"iqn": "iqn.2001-04.com.example:x", "lun": 256},
            {"iqn": "iqn.2001-04.com.example:x", "chapAuthDiscovery": True},
            {"iqn": "iqn.2001-04.com.example:x", "initiatorName": "x"},
            {"iqn": "iqn.2001-04.com.example:x", "initiatorName": "iqn.2001-04.com.example:y", "targetPortal": "p" * 62},
            {"iqn": "iqn.2001-04.com.example:x", "initiatorName": "iqn.2001-04.com.example:y", "targetPortal": "p" * 63},
        )
    ),
    volume(glusterfs={"endpoints": "", "path": ""}),
    *(volume(flocker=source) for source in ({}, {"datasetName": "a", "datasetUUID": "b"}, {"datasetName": "a/b"}, {"datasetUUID": "b"})),
    volume(persistentVolumeClaim={"claimName": ""}),
    volume(rbd={"monitors": [], "image": ""}),
    *(volume(cinder=source) for source in ({"volumeID": ""}, {"volumeID": "a", "secretRef": {}})),
    volume(cephfs={"monitors": []}),
    *(volume(quobyte=source) for source in ({"registry": "", "volume": ""}, {"registry": "a", "volume": "b"}, {"registry": "a:1,b:2", "volume": "b"}, {"registry": "a:1,b", "volume": "b"}, {"registry": "a:1", "volume": "b", "tenant": "x" * 65})),
    *(volume(fc=source) for source in ({}, {"targetWWNs": ["a"], "wwids": ["b"], "lun": 1}, {"targetWWNs": ["a"]}, {"targetWWNs": ["a"], "lun": 256}, {"wwids": ["b"]})),
    *(volume(flexVolume=source) for source in ({"driver": ""}, {"driver": "a", "options": {"kubernetes.io/x": "y", "A.k8s.io": "z", "ok": "x"}})),
    *(
        volume(secret=source)
        for source in (
            {},
            {"secretName": "a", "defaultMode": 512},
            {"secretName": "a", "items": [{"key": "", "path": ""}]},
            {"secretName": "a", "items": [{"key": "a", "path": "../b", "mode": 512}, {"key": "a", "path": "..b"}, {"key": "a", "path": "/b"}]},
            {"secretName": "a", "items": [{"key": "a", "path": "p"}, {"key": "b", "path": "p/q"}]},
        )
    ),
    *(volume(configMap=source) for source in ({}, {"name": "a", "defaultMode": -1}, {"name": "a", "items": [{"key": "a", "path": "p"}, {"key": "b", "path": "p"}]})),
    *(volume(azureFile=source) for source in ({"secretName": "", "shareName": ""},)),
    volume(vsphereVolume={"volumePath": ""}),
    volume(photonPersistentDisk={"pdID": ""}),
    volume(portworxVolume={"volumeID": ""}),
    *(volume(azureDisk={"diskName": "a", "diskURI": "https://a", **source}) for source in ({"diskName": "", "diskURI": ""}, {"cachingMode": "Nope"}, {"kind": "Nope"}, {"kind": "Managed"}, {"kind": "Shared"}, {"kind": "Shared", "diskURI": "/subscriptions/a"})),
    *(volume(storageos=source) for source in ({}, {"volumeName": "A_", "volumeNamespace": "B_", "secretRef": {}})),
    volume(scaleIO={"gateway": "", "system": "", "volumeName": "", "secretRef": None}),
    *(volume(csi=source) for source in ({"driver": ""}, {"driver": "A_"}, {"driver": LONG}, {"driver": "a.b", "nodePublishSecretRef": {"name": ""}}, {"driver": "a.b", "nodePublishSecretRef": {"name": "A_"}})),
    *(volume(image=source) for source in ({"reference": "a"}, {"reference": ""}, {"reference": "a", "pullPolicy": "Nope"})),
    volume(ephemeral={}),
    volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}),
    volume(ephemeral={"volumeClaimTemplate": {"spec": {**CLAIM, "accessModes": []}}}),
    volume(ephemeral={"volumeClaimTemplate": {"metadata": {"name": "x", "labels": {"a": "b c"}}, "spec": CLAIM}}),
    {**volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}), "spec.volumes[1]": {"name": "w", "persistentVolumeClaim": {"claimName": "a-v"}}},
    {**volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}), "metadata.name": "a" * 253},
    volume(ephemeral={"volumeClaimTemplate": {"spec": {**CLAIM, "resources": {"requests": {"storage": "100m"}}}}}),
    *(
        volume(downwardAPI={"items": [item]})
        for item in (
            {"path": "p", "fieldRef": {"fieldPath": "metadata.name"}, "resourceFieldRef": {"resource": "limits.cpu", "containerName": "c"}},
            {"path": "p"},
            {"path": ""},
            {"path": "..p", "fieldRef": {"fieldPath": "spec.nodeName"}},
            {"path": "p", "mode": 512, "resourceFieldRef": {"resource": "limits.cpu"}},
            {"path": "p", "resourceFieldRef": {"resource": "limits.cpu", "containerName": "c", "divisor": "3"}},
        )
    ),
    volume(downwardAPI={"defaultMode": 512, "items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}, {"path": "p/q", "fieldRef": {"fieldPath": "metadata.name"}}]}),
    projected({}),
    projected(defaultMode=512),
    projected({"secret": {"name": "a"}, "configMap": {"name": "a"}}),
    projected({"secret": {"name": ""}}),
    projected({"secret": {"name": "a", "items": [{"key": "a", "path": "p"}]}}, {"configMap": {"name": "b", "items": [{"key": "a", "path": "p"}]}}),
    projected({"secret": {"name": "a", "items": [{"key": "a", "path": "p"}]}}, {"configMap": {"name": "b", "items": [{"key": "a", "path": "p/q"}]}}),
    projected({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}, {"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}),
    projected({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}, {"serviceAccountToken": {"path": "p/q"}}),
    *(projected({"serviceAccountToken": token}) for token in ({"path": "p", "expirationSeconds": 599}, {"path": "p", "expirationSeconds": 600}, {"path": "p", "expirationSeconds": 4294967297}, {"path": ""}, {"path": "..p"}, {"path": "/p"})),
    projected({"clusterTrustBundle": {"name": "a", "path": "p"}}),
    projected({"podCertificate": {"signerName": "a.b/c", "keyType": "ED25519", "credentialBundlePath": "p"}}),
    *({"spec.volumes[0]": {"name": "v", source: {}}} for source in ("emptyDir", "downwardAPI", "projected")),
    {"spec.volumes": [{"name": "v", "gitRepo": {"repository": "a"}}, {"name": "w", "glusterfs": {"endpoints": "a", "path": "b"}}, {"name": "x", "rbd": {"monitors": ["a"], "image": "b"}}, {"name": "y", "cephfs": {"monitors": ["a"]}}, {"name": "z", "photonPersistentDisk": {"pdID": "a"}}]},
]

PROBE = {"exec": {"command": ["x"]}}
PROBES = [
    *(
        {f"{C}.{kind}": {**PROBE, **probe}}
        for kind in ("livenessProbe", "readinessProbe", "startupProbe")
        for probe in ({"exec": {}}, {"initialDelaySeconds": -1}, {"timeoutSeconds": -1}, {"periodSeconds": -1}, {"successThreshold": -1}, {"successThreshold": 2}, {"failureThreshold": -1}, {"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 1}, {"exec": None}, {"tcpSocket": {"port": 1}})
    ),
    *(
        {f"{C}.livenessProbe": probe}
        for probe in (
            {"httpGet": {"path": "", "port": 0}},
            {"httpGet": {"path": "/", "port": "a b"}},
            {"httpGet": {"path": "/", "port": 65536, "scheme": "ftp"}},
            {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": "x"}]}},
            {"httpGet": {"port": "a--b"}},
            {"httpGet": {"port": "-a"}},
            {"httpGet": {"port": ""}},
            {"tcpSocket": {"port": 0}},
            {"tcpSocket": {"port": "x"}},
            {"grpc": {"port": 0}},
            {"grpc": {"port": 65536}},
            {},
        )
    ),
    *(
        {f"{C}.lifecycle": hooks}
        for hooks in (
            {"preStop": {}},
            {"postStart": {"exec": {}}},
            {"preStop": {"sleep": {"seconds": -1}}},
            {"preStop": {"sleep": {"seconds": 0}}},
            {"preStop": {"sleep": {"seconds": 30}}},
            {"preStop": {"sleep": {"seconds": 31}}},
            {"preStop": {"exec": {"command": ["x"]}, "sleep": {"seconds": 1}}},
            {"postStart": {"httpGet": {"port": 0}}},
            {"preStop": {"tcpSocket": {"port": "?"}}},
            {"stopSignal": "SIGTERM"},
            {"stopSignal": "NOPE"},
        )
    ),
    {f"{C}.lifecycle": {"stopSignal": "SIGTERM"}, "spec.os.name": "linux"},
    {f"{C}.lifecycle": {"stopSignal": "SIGUSR1"}, "spec.os.name": "windows"},
]

LINUX = ("runAsUser", "runAsGroup")
WINDOWS = "windowsOptions"
SECURITIES = [
    *({f"{place}.{name}": value} for place in (SECURITY, OF_C) for name in LINUX for value in (-1, 0, 2147483647, 2147483648)),
    *each(f"{SECURITY}.fsGroup", -1),
    *each(f"{SECURITY}.supplementalGroups", [-1, 1]),
    {"spec.shareProcessNamespace": True, "spec.hostPID": True},
    *each(f"{SECURITY}.fsGroupChangePolicy", "Nope", "Always"),
    *each(f"{SECURITY}.supplementalGroupsPolicy", "Nope", "Strict"),
    *each(f"{SECURITY}.seLinuxChangePolicy", "Nope", "MountOption"),
    *each(f"{SECURITY}.sysctls", [{"name": "", "value": ""}], [{"name": "a b", "value": ""}], [{"name": "kernel.shm_rmid_forced", "value": "1"}] * 2, [{"name": "a/b.c", "value": "1"}], [{"name": "x" * 254, "value": "1"}]),
    {f"{SECURITY}.sysctls": [{"name": "net.ipv4.x", "value": "1"}], "spec.hostNetwork": True},
    {f"{SECURITY}.sysctls": [{"name": "kernel.sem", "value": "1"}], "spec.hostIPC": True},
    *({f"{place}.seccompProfile": profile} for place in (SECURITY, OF_C) for profile in ({"type": ""}, {"type": "Nope"}, {"type": "Localhost"}, {"type": "Localhost", "localhostProfile": "../a"}, {"type": "Unconfined", "localhostProfile": "a"}, {"type": "Localhost", "localhostProfile": ""})),
    *(
        {f"{place}.appArmorProfile": profile}
        for place in (SECURITY, OF_C)
        for profile in (
            {"type": ""},
            {"type": "Nope"},
            {"type": "Localhost"},
            {"type": "Localhost", "localhostProfile": " a"},
            {"type": "Localhost", "localhostProfile": ""},
            {"type": "Localhost", "localhostProfile": "a" * 4096},
            {"type": "Unconfined", "localhostProfile": "a"},
            {"type": "Localhost", "localhostProfile": " "},
        )
    ),
    *each(f"{OF_C}.procMount", "Nope", "Unmasked", "Default"),
    {f"{OF_C}.procMount": "Unmasked", "spec.hostUsers": False},
    {f"{OF_C}.allowPrivilegeEscalation": False, f"{OF_C}.privileged": True},
    {f"{OF_C}.allowPrivilegeEscalation": False, f"{OF_C}.capabilities": {"add": ["CAP_SYS_ADMIN", "X"]}},
    {f"{OF_C}.allowPrivilegeEscalation": True, f"{OF_C}.privileged": True},
    *(
        {f"{place}.{WINDOWS}": options}
        for place in (SECURITY, OF_C)
        for options in (
            {"gmsaCredentialSpecName": "A_"},
            {"gmsaCredentialSpecName": "a"},
            {"gmsaCredentialSpec": ""},
            {"gmsaCredentialSpec": "x" * 65537},
            {"gmsaCredentialSpec": "x" * 65536},
            *({"runAsUserName": name} for name in ("", "a", "a\u0001", "a\\b\\c", "\\a", "a\\", "x" * 105, "x" * 104, " . ", 'a"b', "a b\\c", "x" * 256 + "\\a", "x" * 257 + "\\a", "a.b\\c", "-a.b\\c", "..\\c", "a/b", "NETWORK SERVICE")),
            {"hostProcess": True},
            {"hostProcess": False},
        )
    ),
    {f"{SECURITY}.{WINDOWS}.hostProcess": True, "spec.hostNetwork": True, "spec.os.name": "windows"},
    {f"{SECURITY}.{WINDOWS}.hostProcess": True, "spec.os.name": "windows"},
    {f"{SECURITY}.{WINDOWS}.hostProcess": True, f"{OF_C}.{WINDOWS}.hostProcess": False, "spec.hostNetwork": True, "spec.os.name": "windows"},
    {f"{OF_C}.{WINDOWS}.hostProcess": True, "spec.hostNetwork": True, "spec.os.name": "windows"},
    {f"{OF_C}.{WINDOWS}.hostProcess": True, "spec.hostNetwork": True, "spec.os.name": "windows", f"{I}.securityContext.{WINDOWS}.hostProcess": True},
    {f"{SECURITY}.{WINDOWS}.runAsUserName": "a", "spec.os.name": "linux"},
    {f"{OF_C}.{WINDOWS}.runAsUserName": "a", "spec.os.name": "linux"},
    *(
        {path: value, "spec.os.name": "windows"}
        for path, value in (
            ("spec.hostPID", True),
            ("spec.hostIPC", True),
            ("spec.hostUsers", False),
            ("spec.shareProcessNamespace", True),
            (f"{SECURITY}.appArmorProfile", {"type": "Unconfined"}),
            (f"{SECURITY}.seLinuxOptions", {"level": "x"}),
            (f"{SECURITY}.seccompProfile", {"type": "Unconfined"}),
            (f"{SECURITY}.fsGroup", 1),
            (f"{SECURITY}.fsGroupChangePolicy", "Always"),
            (f"{SECURITY}.sysctls", [{"name": "a", "value": "b"}]),
            (f"{SECURITY}.runAsUser", 1),
            (f"{SECURITY}.runAsGroup", 1),
            (f"{SECURITY}.supplementalGroups", [1]),
            (f"{SECURITY}.supplementalGroupsPolicy", "Merge"),
            (f"{OF_C}.appArmorProfile", {"type": "Unconfined"}),
            (f"{OF_C}.seLinuxOptions", {"level": "x"}),
            (f"{OF_C}.seccompProfile", {"type": "Unconfined"}),
            (f"{OF_C}.capabilities", {"add": ["x"]}),
            (f"{OF_C}.readOnlyRootFilesystem", True),
            (f"{OF_C}.privileged", True),
            (f"{OF_C}.allowPrivilegeEscalation", True),
            (f"{OF_C}.procMount", "Default"),
            (f"{OF_C}.runAsUser", 1),
            (f"{OF_C}.runAsGroup", 1),
            (f"{SECURITY}.seLinuxChangePolicy", "Recursive"),
            ("spec.resources", {"limits": {"cpu": "1"}}),
        )
    ),
    {"spec.os.name": "nope"},
    {"spec.os.name": ""},
    *({"spec.hostUsers": False, path: True} for path in ("spec.hostNetwork", "spec.hostPID", "spec.hostIPC")),
]

SPEC = [
    *each("spec.restartPolicy", "Nope", "", "OnFailure"),
    *each("spec.dnsPolicy", "Nope", "", "None"),
    *each("spec.dnsConfig", {"nameservers": ["1.2.3.4"] * 4}, {"nameservers": ["x"]}, {"nameservers": ["001.2.3.4"]}, {"searches": ["a"] * 33}, {"searches": ["x" * 60 + "." + "y" * 60] * 18}, {"searches": ["a b", ".", "_a.b."]}, {"options": [{"value": "x"}]}),
    {"spec.dnsPolicy": "None", "spec.dnsConfig": {"nameservers": ["1.2.3.4"]}},
    *each("spec.activeDeadlineSeconds", 0, 1, -1, 2147483648),
    *each("spec.terminationGracePeriodSeconds", -1, 0),
    *each("spec.nodeSelector", {"a b": "c"}, {"a": "b c"}, {"beta.kubernetes.io/os": "linux"}),
    *each("spec.serviceAccountName", "A_"),
    *each("spec.nodeName", "A_"),
    *each("spec.hostname", "A_", "a.b", LONG),
    *each("spec.subdomain", "A_"),
    *each("spec.hostnameOverride", "A_", "a.b", LONG, "x" * 65),
    {"spec.hostnameOverride": "a", "spec.hostNetwork": True},
    {"spec.hostnameOverride": "a", "spec.setHostnameAsFQDN": True},
    *each("spec.hostAliases", [{"ip": "x"}], [{"ip": "1.2.3.4", "hostnames": ["A_"]}], [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}], [{"ip": "01.2.3.4"}], [{"ip": "::ffff:1.2.3.4"}], [{"ip": "0::1"}]),
    *each("spec.imagePullSecrets", [{}], [{"name": "a"}, {"name": "a"}]),
    *each("spec.priorityClassName", "A_", "nope"),
    *each("spec.runtimeClassName", "A_", "nope"),
    *each("spec.preemptionPolicy", "Nope", "Never"),
    *each("spec.priority", 1),
    *each("spec.readinessGates", [{"conditionType": "a b"}], [{"conditionType": "a.b/c"}]),
    *each("spec.schedulingGates", [{"name": ""}], [{"name": "a b"}], [{"name": "a"}, {"name": "a"}]),
    {"spec.schedulingGates": [{"name": "a"}], "spec.nodeName": "n"},
    *each("spec.overhead", {"cpu": "1"}),
    *each(
        "spec.tolerations",
        [{"key": "a b"}],
        [{"operator": "Nope"}],
        [{"key": "", "operator": "Equal"}],
        [{"key": "a", "operator": "Exists", "value": "x"}],
        [{"key": "a", "effect": "Nope"}],
        [{"key": "a", "tolerationSeconds": 1}],
        [{"key": "a", "effect": "NoExecute", "tolerationSeconds": -1}],
        [{"key": "a", "operator": "Gt", "value": "x"}],
        [{"key": "a", "operator": "Lt", "value": "01"}],
        [{"key": "a", "value": "x y"}],
    ),
    *each(
        "spec.resourceClaims",
        [{"name": ""}],
        [{"name": "a"}],
        [{"name": "A_", "resourceClaimName": "a"}],
        [{"name": "a", "resourceClaimName": "A_"}],
        [{"name": "a", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}],
        [{"name": "a", "resourceClaimTemplateName": "B_"}],
        [{"name": "a", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "x"}],
    ),
    *each("spec.resources", {"requests": {"cpu": "1"}}, {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}, {"claims": [{"name": "x"}]}, {"limits": {"nope": "1"}}, {"requests": {"cpu": "-1"}}, {"limits": {"example.com/x": "1"}}),
    {"spec.resources": {"requests": {"cpu": "1"}}, f"{C}.resources": {"requests": {"cpu": "2"}}},
    {"spec.resources": {"limits": {"cpu": "1"}}, f"{C}.resources": {"limits": {"cpu": "2"}}},
    {"spec.resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}, f"{C}.resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}},
    {"spec.resources": {"limits": {"hugepages-2Mi": "2Mi"}}, "spec.containers": [{"name": n, "image": "i", "resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}} for n in "cd"]},
    *each(
        f"{C}.resources",
        {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
        {"requests": {"cpu": "-1"}},
        {"requests": {"a b": "1"}},
        {"limits": {"hugepages-2Mi": "3Mi"}},
        {"limits": {"hugepages-2Mi": "2Mi"}},
        {"requests": {"hugepages-2Mi": "2Mi"}},
        {"limits": {"example.com/x": "1.5"}},
        {"requests": {"example.com/x": "1"}},
        {"limits": {"example.com/x": "2"}, "requests": {"example.com/x": "1"}},
        {"claims": [{"name": "nope"}]},
        {"limits": {"memory": "100m"}},
        {"limits": {"requests.x.y/z": "1"}},
        {"limits": {"nope": "1"}},
        {"limits": {"kubernetes.io/x": "1"}},
    ),
    {"spec.resourceClaims": [{"name": "r", "resourceClaimName": "x"}], f"{C}.resources": {"claims": [{"name": "r"}, {"name": "r"}]}},
    {"spec.resourceClaims": [{"name": "r", "resourceClaimName": "x"}], f"{C}.resources": {"claims": [{"name": "r", "request": "A_"}, {"name": ""}]}},
    {"spec.ephemeralContainers": [{"name": "e", "image": "i"}]},
    *each("metadata.labels", {"a b": "c"}, {"a": "b c"}),
    *each(
        "metadata.ownerReferences", [{"apiVersion": "", "kind": "", "name": "", "uid": ""}], [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}], [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "ab"], [{"apiVersion": "a/b/c", "kind": "Pod", "name": "a", "uid": "b"}]
    ),
    *each("metadata.finalizers", ["a"], ["a b"], ["a/b"]),
    *each("metadata.generateName", "A_"),
    *each("metadata.name", "A_", "a.b", "a" * 254),
    *each("metadata.namespace", "other"),
    *each("metadata.generation", -1),
    *each(
        "metadata.managedFields",
        [{"operation": "Nope", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "Nope", "fieldsV1": {}}],
        [{"manager": "x" * 129, "operation": "Update", "apiVersion": "v1"}],
        [{"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": ""}],
        [{"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}, "subresource": "x" * 257}],
        [{"manager": "a\u0001", "operation": "Update", "apiVersion": "v1"}],
    ),
]

TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERS = "preferredDuringSchedulingIgnoredDuringExecution"
NODES, PODS = "spec.affinity.nodeAffinity", "spec.affinity.podAffinity"


def requirement(**more: Any) -> list[dict[str, Any]]:
    return [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"], **more}]}]


def fields(**more: Any) -> list[dict[str, Any]]:
    return [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"], **more}]}]


SELECTOR = {"matchLabels": {"a": "b"}}
AFFINITY = [
    *each(f"{NODES}.{TERMS}", {"nodeSelectorTerms": []}),
    *each(
        f"{NODES}.{TERMS}.nodeSelectorTerms",
        [{}],
        requirement(),
        requirement(key="a b"),
        requirement(operator="Nope"),
        requirement(values=[]),
        requirement(operator="Exists"),
        requirement(operator="Exists", values=None),
        requirement(operator="Gt"),
        requirement(operator="Gt", values=["1", "2"]),
        requirement(operator="Gt", values=["x"]),
        requirement(operator="Lt", values=["1"]),
        requirement(values=["b c"]),
        requirement(key=""),
        requirement(key="beta.kubernetes.io/arch"),
        fields(),
        fields(key="metadata.labels"),
        fields(operator="Exists"),
        fields(values=["a", "b"]),
        fields(values=["A_"]),
        fields(operator="NotIn"),
        fields(values=[]),
        fields(key=""),
    ),
    *each(
        f"{NODES}.{PREFERS}",
        [{"weight": 0, "preference": requirement()[0]}],
        [{"weight": 101, "preference": requirement(values=["b c"])[0]}],
        [{"weight": 1, "preference": {}}],
        [{"weight": 1, "preference": fields(values=["a", "b"])[0]}],
        [{"weight": 1, "preference": requirement(key="failure-domain.beta.kubernetes.io/zone")[0]}],
    ),
    *(
        {f"spec.affinity.{kind}.{TERMS}": [{"topologyKey": "k", "labelSelector": SELECTOR, **term}]}
        for kind in ("podAffinity", "podAntiAffinity")
        for term in (
            {},
            {"topologyKey": ""},
            {"topologyKey": "a b"},
            {"namespaces": ["A_"]},
            {"labelSelector": None},
            {"labelSelector": {"matchLabels": {"a b": "c"}}},
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Nope"}]}},
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            {"matchLabelKeys": ["a"]},
            {"matchLabelKeys": ["x"]},
            {"mismatchLabelKeys": ["x"]},
            {"mismatchLabelKeys": ["a"]},
            {"matchLabelKeys": ["x"], "mismatchLabelKeys": ["x"]},
            {"matchLabelKeys": ["x"], "labelSelector": None},
            {"mismatchLabelKeys": ["x"], "labelSelector": None},
            {"matchLabelKeys": ["a b"]},
            {"matchLabelKeys": ["x", "x"]},
        )
    ),
    {"metadata.labels.a": "b", "spec.topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR, "matchLabelKeys": ["a"]}]},
    {"metadata.labels.a": "b", "spec.topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "matchLabelKeys": ["a"]}]},
    {"metadata.labels.a": "b", f"{PODS}.{TERMS}": [{"topologyKey": "k", "labelSelector": SELECTOR, "matchLabelKeys": ["a"]}]},
    {"metadata.labels.a": "b", f"{PODS}.{TERMS}": [{"topologyKey": "k", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "mismatchLabelKeys": ["a"]}]},
    *each(f"{PODS}.{PREFERS}", [{"weight": 0, "podAffinityTerm": {"topologyKey": "k", "labelSelector": SELECTOR}}], [{"weight": 101, "podAffinityTerm": {"topologyKey": ""}}], [{"weight": 1, "podAffinityTerm": {"topologyKey": "k"}}]),
    *each(
        "spec.topologySpreadConstraints",
        *(
            [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR, **constraint}]
            for constraint in (
                {},
                {"maxSkew": 0},
                {"topologyKey": ""},
                {"topologyKey": "a b"},
                {"whenUnsatisfiable": "Nope"},
                {"whenUnsatisfiable": ""},
                {"minDomains": 0},
                {"minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"},
                {"labelSelector": None},
                {"labelSelector": {"matchLabels": {"a b": "c"}}},
                {"nodeAffinityPolicy": "Nope"},
                {"nodeTaintsPolicy": "Nope"},
                {"matchLabelKeys": ["a"]},
                {"matchLabelKeys": ["x"]},
                {"matchLabelKeys": ["a b"]},
                {"matchLabelKeys": ["x"], "labelSelector": None},
                {"topologyKey": "failure-domain.beta.kubernetes.io/zone"},
            )
        ),
        [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}] * 2,
    ),
]

for title, create in (("annotations", ANNOTATIONS), ("mirrors", MIRRORS), ("containers", CONTAINERS), ("mounts", MOUNTS), ("volumes", VOLUMES), ("probes", PROBES), ("security", SECURITIES), ("spec", SPEC), ("affinity", AFFINITY)):
    tell_of(title, "v1/pods", POD, create=create)

PENDING: Edit = {"spec.schedulingGates": [{"name": "a"}, {"name": "b"}]}
TIME = "2026-01-01T00:00:00Z"
RAN = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": 1, "reason": "x", "startedAt": TIME, "finishedAt": TIME}}}
RUNS = {**RAN, "state": {"running": {"startedAt": TIME}}}

UPDATES = [
    State(
        base={"spec.activeDeadlineSeconds": 10, "spec.tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}], "spec.terminationGracePeriodSeconds": -1, **MIRROR, f"metadata.annotations[{APPARMOR}/c]": "unconfined"},
        update=[
            {f"metadata.annotations[{APPARMOR}/c]": "runtime/default"},
            {f"metadata.annotations[{APPARMOR}/c]": None},
            {"metadata.annotations[kubernetes.io/config.mirror]": None},
            {"metadata.annotations[kubernetes.io/config.mirror]": "y"},
            {f"{C}.image": "new"},
            {f"{C}.image": " new"},
            {f"{C}.image": ""},
            {f"{I}.image": "new"},
            {"spec.containers[1]": {"name": "d", "image": "i"}},
            {"spec.initContainers": None},
            {"spec.activeDeadlineSeconds": None},
            {"spec.activeDeadlineSeconds": 11},
            {"spec.activeDeadlineSeconds": -1},
            {"spec.activeDeadlineSeconds": 9},
            {"spec.tolerations": []},
            {"spec.tolerations[0].tolerationSeconds": 9},
            {"spec.tolerations[0].effect": "NoSchedule"},
            {"spec.terminationGracePeriodSeconds": 1},
            {"spec.terminationGracePeriodSeconds": 2},
            {"spec.nodeSelector": {"a": "b"}},
            {"spec.schedulingGates": [{"name": "a"}]},
            {"spec.hostname": "x"},
            {f"{C}.command": ["x"]},
            {"metadata.labels.a": "b"},
            {"spec.ephemeralContainers": [{"name": "e", "image": "i"}]},
        ],
        calls=[("PUT", "resize", {f"{C}.resources": {"requests": {"cpu": "1"}}}), ("PUT", "ephemeralcontainers", {"spec.ephemeralContainers": [{"name": "e", "image": "i"}]})],
    ),
    State(
        update=[
            {f"metadata.annotations[{APPARMOR}/c]": "unconfined"},
            {"metadata.annotations[kubernetes.io/config.mirror]": "x"},
            {"spec.activeDeadlineSeconds": 5},
            {"metadata.annotations[controller.kubernetes.io/pod-deletion-cost]": "x"},
            {"metadata.name": "other"},
            {"metadata.uid": "other"},
            {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a", "controller": True}] * 2},
            {"metadata.generation": 0},
            {"metadata.creationTimestamp": TIME},
            {"metadata.deletionTimestamp": TIME},
            {"metadata.namespace": "other"},
        ]
    ),
    State(
        base={**PENDING, "spec.nodeSelector": {"a": "b"}, f"{NODES}.{TERMS}.nodeSelectorTerms": [*requirement(), {"matchExpressions": [{"key": "x", "operator": "Exists"}]}]},
        update=[
            {"spec.schedulingGates": [{"name": "a"}]},
            {"spec.schedulingGates": None},
            {"spec.schedulingGates[2]": {"name": "c"}},
            {"spec.nodeSelector.c": "d"},
            {"spec.nodeSelector.a": "d"},
            {"spec.nodeSelector": None},
            {f"{NODES}.{TERMS}.nodeSelectorTerms": requirement()},
            {f"{NODES}.{TERMS}.nodeSelectorTerms[0]": requirement(values=["z"])[0]},
            {f"{NODES}.{TERMS}.nodeSelectorTerms[0].matchExpressions[1]": {"key": "y", "operator": "Exists"}},
            {NODES: None},
            {"spec.affinity": None},
            {f"{NODES}.{TERMS}.nodeSelectorTerms[0].matchFields": fields()[0]["matchFields"]},
            {f"{NODES}.{PREFERS}": [{"weight": 1, "preference": requirement()[0]}]},
            {"spec.affinity.podAffinity": {}},
        ],
        calls=[("POST", "binding", {"metadata": {"name": "{name}"}, "target": {"kind": "Node", "name": "n"}}), ("POST", "binding", {"target": {"kind": "Pod", "name": "n"}}), ("POST", "binding", {"target": {"name": ""}})],
    ),
    State(base=PENDING, update=[{NODES: {TERMS: {"nodeSelectorTerms": requirement()}}}, {"spec.affinity": {"podAffinity": {PREFERS: []}}}, {"spec.nodeSelector": {"a": "b"}}]),
    State(base={"spec.nodeName": "n"}, update=[{"spec.schedulingGates": [{"name": "a"}]}], calls=[("POST", "binding", {"target": {"kind": "Node", "name": "m"}}), ("POST", "binding", {"metadata": {"name": "{name}", "uid": "x"}, "target": {"kind": "Node", "name": "m"}})]),
    State(base={"metadata.finalizers": ["a.b/c"]}, calls=[("DELETE", "", None), ("DELETE", "?gracePeriodSeconds=0", None), ("POST", "binding?x=y", {"metadata": {"name": "{name}"}, "target": {"kind": "Node", "name": "n"}}), ("PATCH", "", {"metadata": {"finalizers": None}})]),
    State(
        calls=[
            *(
                ("PUT", "ephemeralcontainers", {"spec.ephemeralContainers": [{"name": "e", "image": "i", **more}]})
                for more in (
                    {},
                    {"name": ""},
                    {"name": "c"},
                    {"image": ""},
                    {"image": " x"},
                    {"targetContainerName": "c"},
                    {"targetContainerName": "nope"},
                    {"ports": [{"containerPort": 1}]},
                    {"resources": {"limits": {"cpu": "1"}}},
                    {"livenessProbe": PROBE},
                    {"lifecycle": {"preStop": PROBE}},
                    {"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "x"}]},
                    {"volumeMounts": [{"name": "v", "mountPath": "/a", "subPathExpr": "x"}]},
                    {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
                    {"restartPolicy": "Always"},
                    {"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
                )
            ),
            ("PUT", "ephemeralcontainers", {"spec.ephemeralContainers": [{"name": "e", "image": "i"}] * 2}),
            ("PUT", "ephemeralcontainers", {"metadata.annotations.x": "y"}),
        ]
    ),
]
tell_of("updates", "v1/pods", POD, states=UPDATES)

SIZED = {f"{C}.resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}, f"{I}.restartPolicy": "Always", f"{I}.resources": {"requests": {"cpu": "1"}}}


def resize(*edits: Edit) -> list[tuple[str, str, Any]]:
    return [("PUT", "resize", edit) for edit in edits]


RESIZES = [
    State(
        base=SIZED,
        calls=resize(
            {f"{C}.resources.requests.cpu": "500m"},
            {f"{C}.resources.requests.cpu": None},
            {f"{C}.resources.requests": None},
            {f"{C}.resources.limits": None},
            {f"{C}.resources.limits.cpu": "500m"},
            {f"{C}.resources.requests.example": "1"},
            {f"{C}.resources.requests.ephemeral-storage": "1"},
            {f"{C}.resources.limits.memory": "2Gi"},
            {f"{C}.image": "new"},
            {f"{C}.name": "other"},
            {f"{I}.name": "other"},
            {"spec.containers[1]": {"name": "d", "image": "i"}},
            {"spec.initContainers": None},
            {f"{I}.resources.requests.cpu": "2"},
            {f"{I}.resources.requests.ephemeral-storage": "2"},
            {f"{I}.resources.requests": None},
            {f"{I}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            {f"{C}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            {f"{C}.resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}, f"{I}.resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}},
            {"spec.resources": {"requests": {"cpu": "3"}}},
            {"spec.resources": {"requests": {"memory": "3Gi"}, "limits": {"memory": "4Gi"}}},
            {"spec.nodeSelector": {"a": "b"}},
            {"metadata.labels.a": "b"},
            {},
            {f"{C}.resources.claims": [{"name": "x"}]},
            {f"{C}.resources.requests.cpu": "-1"},
        ),
    ),
    State(base={f"{I}.resources": {"requests": {"cpu": "1"}}, f"{I}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}, calls=resize({f"{I}.resources.requests.cpu": "2"}, {f"{I}.resources.requests.memory": "2"}, {f"{I}.resizePolicy[0].restartPolicy": "RestartContainer"})),
    State(base={f"{I}.resources": {"requests": {"cpu": "1"}}, f"{I}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}, calls=resize({f"{I}.resources.requests.cpu": "2"})),
    State(
        base={"spec.resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "2Gi"}}},
        calls=resize(
            {"spec.resources": None}, {"spec.resources.requests.cpu": "3"}, {"spec.resources.requests.cpu": None}, {"spec.resources.limits": None}, {"spec.resources.requests.hugepages-2Mi": "2Mi"}, {"spec.resources.requests.cpu": "9"}, {f"{C}.resources.requests": {"cpu": "1"}}, {f"{C}.resources.requests": {"cpu": "9"}}
        ),
    ),
    State(base={"spec.os.name": "windows"}, calls=resize({f"{C}.resources.requests": {"cpu": "1"}})),
    State(base=SIZED, status={"status.containerStatuses": [RUNS]}, calls=resize({f"{C}.resources.requests.cpu": "500m"})),
    State(base=SIZED, status={"status.containerStatuses": [{**RUNS, "resources": {"requests": {"cpu": "1"}}}], "status.phase": "Running"}, calls=resize({f"{C}.resources.requests.cpu": "500m"})),
    State(base={**SIZED, "spec.nodeName": "nope"}, calls=resize({f"{C}.resources.requests.cpu": "500m"})),
]
tell_of("resizes", "v1/pods", POD, states=RESIZES)

CONDITION = {"type": "X", "status": "True"}
STATUS = [
    {"status.conditions": [{**CONDITION, "type": "a b"}]},
    {"status.conditions": [{**CONDITION, "observedGeneration": -1}]},
    {"status.observedGeneration": -1},
    {"status.nominatedNodeName": "A_"},
    {"status.nominatedNodeName": "n"},
    {"status.qosClass": "Guaranteed"},
    {"status.qosClass": None},
    *each("status.podIPs", [{"ip": "x"}], [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}], [{"ip": "1.2.3.4"}, {"ip": "::1"}], [{"ip": "1.2.3.4"}, {"ip": "x"}], [{"ip": "01.2.3.4"}], [{"ip": "1.2.3.4"}, {"ip": "::1"}, {"ip": "::2"}]),
    {"status.hostIPs": [{"ip": "1.2.3.4"}]},
    {"status.hostIPs": [{"ip": "1.2.3.4"}], "status.hostIP": "1.2.3.4"},
    {"status.hostIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}], "status.hostIP": "1.2.3.4"},
    {"status.hostIPs": [{"ip": "x"}], "status.hostIP": "x"},
    {"status.hostIP": "1.2.3.4"},
    {"status.podIP": "1.2.3.4"},
    {"status.resourceClaimStatuses": [{"name": "r", "resourceClaimName": "x"}]},
    {"status.resourceClaimStatuses": [{"name": "nope"}]},
    {"status.resourceClaimStatuses": [{"name": "r", "resourceClaimName": "A_"}, {"name": "r"}]},
    *each(
        "status.extendedResourceClaimStatus",
        {"resourceClaimName": "", "requestMappings": []},
        {"resourceClaimName": "A_", "requestMappings": [{"containerName": "nope", "resourceName": "x", "requestName": "A_"}]},
        {"resourceClaimName": "a", "requestMappings": [{"containerName": "c", "resourceName": "x", "requestName": "r"}]},
        {"resourceClaimName": "a", "requestMappings": [{"containerName": "c", "resourceName": "example.com/x", "requestName": "r"}] * 2},
    ),
    {"status.containerStatuses": [RUNS]},
    {"status.containerStatuses": []},
    {"status.containerStatuses": [RUNS, RUNS]},
    {"status.containerStatuses": [{**RUNS, "name": "other"}]},
    {"status.containerStatuses": [{**RAN, "user": {"linux": {"uid": -1, "gid": -1, "supplementalGroups": [-1]}}}]},
    *(
        {"status.containerStatuses": [{**RAN, "allocatedResourcesStatus": [item]}]}
        for item in (
            {"name": "cpu"},
            {"name": "nope"},
            {"name": "claim:r"},
            {"name": "claim:q"},
            {"name": "claim:q/a"},
            {"name": "claim:nope"},
            {"name": "cpu", "resources": [{"resourceID": "a", "health": "Nope"}, {"resourceID": "a", "health": "Healthy"}]},
            {"name": "example.com/x", "resources": [{"resourceID": "a", "health": "Healthy", "message": ""}]},
            {"name": "example.com/x", "resources": [{"resourceID": "a", "health": "Healthy", "message": "x" * 1025}]},
            {"name": "example.com/x", "resources": [{"resourceID": "a", "health": "Unknown", "message": "x"}]},
        )
    ),
    {"status.ephemeralContainerStatuses": [{**RAN, "allocatedResourcesStatus": [{"name": "cpu"}]}]},
    {"status.ephemeralContainerStatuses": [{**RAN, "name": "e", "allocatedResourcesStatus": [{"name": "cpu"}]}]},
    {"status.initContainerStatuses": [{**RUNS, "name": "i"}]},
    {"status.phase": "Nope"},
    {"status.resize": "Nope"},
]
CLAIMED = {"spec.resourceClaims": [{"name": "r", "resourceClaimName": "x"}, {"name": "q", "resourceClaimName": "y"}], f"{C}.resources": {"limits": {"example.com/x": "1"}, "claims": [{"name": "r"}, {"name": "q", "request": "a"}]}}
tell_of(
    "status",
    "v1/pods",
    POD,
    states=[
        State(base={"spec.restartPolicy": "Never", **CLAIMED}, status={"status.containerStatuses": [RAN], "status.initContainerStatuses": [{**RAN, "name": "i"}], "status.ephemeralContainerStatuses": [{**RAN, "name": "e"}]}, status_update=[*STATUS, {"status.ephemeralContainerStatuses": [{**RUNS, "name": "e"}]}]),
        State(base={"spec.restartPolicy": "OnFailure"}, status={"status.containerStatuses": [{**RAN, "state": {"terminated": {"exitCode": 0}}}]}, status_update=[{"status.containerStatuses": [RUNS]}]),
        State(base={"spec.restartPolicy": "OnFailure"}, status={"status.containerStatuses": [RAN]}, status_update=[{"status.containerStatuses": [RUNS]}]),
        State(status={"status.containerStatuses": [RAN]}, status_update=[{"status.containerStatuses": [RUNS]}]),
        State(base={"spec.os.name": "windows"}, status_update=[{"status.containerStatuses": [{**RAN, "user": {"linux": {"uid": 1, "gid": 1}}}]}]),
        State(base={"spec.nodeName": "n"}, status_update=[{"status.nominatedNodeName": "n"}]),
        State(base={"spec.restartPolicy": "Never", f"{C}.restartPolicy": "Never", f"{C}.restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}, status={"status.containerStatuses": [RAN]}, status_update=[{"status.containerStatuses": [RUNS]}]),
        State(base={"spec.restartPolicy": "Never", f"{C}.restartPolicy": "Never", f"{C}.restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1]}}]}, status={"status.containerStatuses": [RAN]}, status_update=[{"status.containerStatuses": [RUNS]}]),
    ],
)
