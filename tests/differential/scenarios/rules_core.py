"""The rules of the kinds of the core group other than pods, each shown by an edit of an object that is valid."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.rule_tables import State, each, tell

# fmt: off
tell_of = functools.partial(tell, module="rules_core")

Edit = dict[str, Any]
LONG = "x" * 64


# ---------------------------------------------------------------- limit ranges, quotas

LIMIT = {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}
tell_of(
    "limitranges",
    "v1/limitranges",
    {"spec": {"limits": [LIMIT]}},
    create=[
        {},
        *each("spec.limits[0].type", "", "Nope", "Pod", "PersistentVolumeClaim", "example.com/x", "a b"),
        {"spec.limits[1]": LIMIT},
        {"spec.limits[0].min.cpu": "3"},
        {"spec.limits[0].defaultRequest.cpu": "500m"},
        {"spec.limits[0].defaultRequest.cpu": "3"},
        {"spec.limits[0].default.cpu": "500m"},
        {"spec.limits[0].default.cpu": "3"},
        {"spec.limits[0].default.cpu": "1500m", "spec.limits[0].defaultRequest.cpu": "1750m"},
        {"spec.limits[0].type": "Pod", "spec.limits[0].default.cpu": "1"},
        {"spec.limits[0].type": "Pod", "spec.limits[0].defaultRequest.cpu": "1"},
        {"spec.limits[0].maxLimitRequestRatio.cpu": "900m"},
        {"spec.limits[0].maxLimitRequestRatio.cpu": "3"},
        {"spec.limits[0].maxLimitRequestRatio.cpu": "2"},
        {"spec.limits[0].maxLimitRequestRatio.a b": "2"},
        {"spec.limits[0]": {"type": "PersistentVolumeClaim", "max": {"storage": "1"}}},
        {"spec.limits[0]": {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}}},
        {"spec.limits[0]": {"type": "PersistentVolumeClaim", "min": {"storage": "1"}}},
        {"spec.limits[0]": {"type": "Container", "default": {"example.com/x": "1"}, "defaultRequest": {"example.com/x": "2"}}},
        {"spec.limits[0]": {"type": "Container", "default": {"hugepages-2Mi": "2Mi"}, "defaultRequest": {"hugepages-2Mi": "4Mi"}}},
        {"spec.limits[0].max.a b": "1"},
        {"spec.limits[0].max.nope": "1"},
        {"spec.limits[0].min": {"memory": "9223372036854775807"}, "spec.limits[0].max": {"memory": "9223372036854775807"}, "spec.limits[0].maxLimitRequestRatio": {"memory": "9"}},
        {"metadata.name": "A_"},
    ],
    states=[State(update=[{"spec.limits[0].min.cpu": "3"}])],
)

tell_of(
    "resourcequotas",
    "v1/resourcequotas",
    {"spec": {"hard": {"pods": "1"}}},
    create=[
        *each(
            "spec.hard",
            {"pods": "-1"},
            {"pods": "1.5"},
            {"a b": "1"},
            {"nope": "1"},
            {"example.com/x": "1"},
            {"requests.example.com/x": "1"},
            {"count/pods": "1"},
            {"count/pods.nope": "1500m"},
            {"requests.cpu": "1500m"},
            {"a.storageclass.storage.k8s.io/requests.storage": "1"},
            {"services": "1.5"},
            {"limits.hugepages-2Mi": "1"},
        ),
        *each("spec.scopes", ["Nope"], ["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"], ["BestEffort", "BestEffort"], ["BestEffort"], ["PriorityClass"], ["CrossNamespacePodAffinity"]),
        {"spec.scopes": ["BestEffort"], "spec.hard": {"requests.cpu": "1"}},
        *each(
            "spec.scopeSelector.matchExpressions",
            [{"scopeName": "Nope", "operator": "Exists"}],
            [{"scopeName": "PriorityClass", "operator": "In"}],
            [{"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}],
            [{"scopeName": "BestEffort", "operator": "In", "values": ["a"]}],
            [{"scopeName": "PriorityClass", "operator": "Nope"}],
            [{"scopeName": "PriorityClass", "operator": "In", "values": ["a b"]}],
            [{"scopeName": "BestEffort", "operator": "Exists"}, {"scopeName": "NotBestEffort", "operator": "Exists"}],
            [{"scopeName": "VolumeAttributesClass", "operator": "Exists"}],
        ),
    ],
    states=[State(update=[{"spec.scopes": ["BestEffort"]}, {"spec.hard.pods": "-1"}], status_update=[{"status.hard.pods": "-1"}, {"status.used.pods": "1.5"}, {"status.used": {"a b": "1"}}])],
)

# ---------------------------------------------------------------- volumes

PV: dict[str, Any] = {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}


def source(**given: Any) -> Edit:
    return {"spec.hostPath": None, **{f"spec.{name}": value for name, value in given.items()}}


ISCSI = {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:x", "lun": 0}
CSI = {"driver": "a.b", "volumeHandle": "h"}
REF = {"name": "a", "namespace": "b"}
tell_of(
    "persistentvolumes",
    "v1/*persistentvolumes",
    PV,
    create=[
        {},
        {"spec.hostPath": None},
        {"spec.nfs": {"server": "a", "path": "/b"}},
        *each("spec.capacity", {}, {"cpu": "1"}, {"storage": "0"}, {"storage": "-1"}, {"storage": "1", "cpu": "1"}),
        *each("spec.accessModes", [], ["Nope"], ["ReadWriteOncePod", "ReadWriteOnce"], ["ReadWriteOncePod"]),
        *each("spec.persistentVolumeReclaimPolicy", "Nope", "", "Recycle"),
        {"spec.persistentVolumeReclaimPolicy": "Recycle", "spec.hostPath.path": "/"},
        {"spec.persistentVolumeReclaimPolicy": "Recycle", "spec.hostPath.path": "/a/.."},
        *each("spec.storageClassName", "A_"),
        *each("spec.volumeMode", "Nope", "Block", ""),
        *each("spec.volumeAttributesClassName", "", "a", "A_"),
        {**source(csi=CSI), "spec.volumeAttributesClassName": ""},
        {**source(csi=CSI), "spec.volumeAttributesClassName": "A_"},
        *each(
            "spec.nodeAffinity",
            {},
            {"required": {"nodeSelectorTerms": []}},
            {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a b", "operator": "Exists"}]}]}},
            {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}]}},
            {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "app.kubernetes.io/created-by", "operator": "Exists"}, {"key": "scheduler.alpha.kubernetes.io/preferAvoidPods", "operator": "Exists"}, {"key": "node-role.kubernetes.io/master", "operator": "Exists"}]}]}},
        ),
        {**source(local={"path": "/a"})},
        {**source(local={"path": "../a"}), "spec.nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}},
        {**source(local={"path": ""})},
        {"metadata.annotations[volume.beta.kubernetes.io/mount-options]": "x"},
        {"metadata.annotations[volume.beta.kubernetes.io/mount-options]": "x", **source(nfs={"server": "a", "path": "/b"})},
        {"metadata.annotations[volume.beta.kubernetes.io/storage-class]": "x"},
        *(source(glusterfs={"endpoints": "a", "path": "b", "endpointsNamespace": name}) for name in ("", "A_", "ok")),
        *(
            source(iscsi={**ISCSI, **more})
            for more in ({"iqn": "nope"}, {"iqn": "iqn.x"}, {"targetPortal": ""}, {"initiatorName": "iqn.2001-04.com.example:y", "targetPortal": "p" * 64}, {"initiatorName": "iqn.2001-04.com.example:y", "targetPortal": ""}, {"initiatorName": "nope"}, {"secretRef": {}}, {"chapAuthSession": True}, {"lun": 256})
        ),
        *(source(rbd=given) for given in ({}, {"monitors": ["a"], "image": "b", "secretRef": {}})),
        *(source(cephfs=given) for given in ({}, {"monitors": ["a"], "secretRef": {}})),
        source(cinder={"volumeID": "", "secretRef": {}}),
        source(flexVolume={"driver": "", "secretRef": {}}),
        source(flexVolume={"driver": "a", "options": {"kubernetes.io/x": "y"}}),
        source(scaleIO={"gateway": "", "system": "", "volumeName": "", "secretRef": None}),
        source(storageos={"volumeName": "A_"}),
        source(storageos={"volumeName": "a", "secretRef": {"name": ""}}),
        source(azureFile={"secretName": "", "shareName": "", "secretNamespace": ""}),
        source(azureFile={"secretName": "a", "shareName": "b", "secretNamespace": ""}),
        source(flocker={"datasetName": "a/b", "datasetUUID": "c"}),
        source(quobyte={"registry": "a", "volume": ""}),
        source(fc={}),
        source(gcePersistentDisk={"pdName": "", "partition": 256}),
        source(awsElasticBlockStore={"volumeID": ""}),
        source(vsphereVolume={"volumePath": ""}),
        source(photonPersistentDisk={"pdID": ""}),
        source(portworxVolume={"volumeID": ""}),
        source(azureDisk={"diskName": "", "diskURI": "x", "kind": "Managed"}),
        *(
            source(csi={**CSI, **more})
            for more in (
                {"driver": ""},
                {"driver": "A_"},
                {"volumeHandle": ""},
                *({field: reference} for field in ("controllerPublishSecretRef", "nodeStageSecretRef", "nodePublishSecretRef", "controllerExpandSecretRef", "nodeExpandSecretRef") for reference in ({}, {"name": "A_", "namespace": "b"}, {"name": "a", "namespace": ""})),
            )
        ),
        {"metadata.name": "A_"},
        {"spec.claimRef": {"name": "a"}},
    ],
    states=[
        State(
            base={"spec.nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}}},
            update=[
                {"spec.hostPath.path": "/b"},
                {"spec.hostPath": None, "spec.nfs": {"server": "a", "path": "/b"}},
                {"spec.volumeMode": "Block"},
                {"spec.nodeAffinity": None},
                {"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key": "topology.kubernetes.io/zone"},
                {"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key": "other"},
                {"spec.accessModes": ["ReadOnlyMany"]},
                {"spec.capacity.storage": "0"},
                {"spec.persistentVolumeReclaimPolicy": "Delete"},
            ],
            status_update=[{"status.phase": "Nope"}],
        ),
        State(
            base={**source(csi=CSI), "spec.volumeAttributesClassName": "a"},
            update=[{"spec.volumeAttributesClassName": None}, {"spec.volumeAttributesClassName": "b"}, {"spec.csi.controllerExpandSecretRef": REF}, {"spec.csi.nodeExpandSecretRef": REF}, {"spec.nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a b", "operator": "Exists"}]}]}}}],
        ),
    ],
)

PVC: dict[str, Any] = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
tell_of(
    "persistentvolumeclaims",
    "v1/persistentvolumeclaims",
    PVC,
    create=[
        {},
        *each("spec.accessModes", [], ["Nope"], ["ReadWriteOncePod", "ReadWriteOnce"]),
        *each("spec.resources.requests", {}, {"storage": "0"}, {"storage": "-1"}, {"storage": "100m"}, {"cpu": "1"}),
        *each("spec.storageClassName", "A_", ""),
        *each("spec.volumeMode", "Nope", "Block"),
        *each("spec.volumeName", "A_", "x"),
        *each("spec.volumeAttributesClassName", "A_", "", "a"),
        *each("spec.selector", {"matchLabels": {"a b": "c"}}, {"matchExpressions": [{"key": "a", "operator": "Nope"}]}),
        *each("spec.dataSource", {"kind": "", "name": ""}, {"kind": "PersistentVolumeClaim", "name": "a"}, {"apiGroup": "a b", "kind": "X", "name": "a"}, {"kind": "Pod", "name": "a"}),
        *each("spec.dataSourceRef", {"kind": "", "name": ""}, {"apiGroup": "a.b", "kind": "X", "name": "a", "namespace": "A_"}, {"apiGroup": "a.b", "kind": "X", "name": "a", "namespace": "b"}),
        {"spec.dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}, "spec.dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"}},
        {"spec.dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}, "spec.dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "c"}},
        {"metadata.annotations[volume.beta.kubernetes.io/storage-class]": "x"},
        {"metadata.name": "A_"},
    ],
    states=[
        State(
            update=[
                {"spec.resources.requests.storage": "2Gi"},
                {"spec.resources.requests.storage": "1Mi"},
                {"spec.accessModes": ["ReadOnlyMany"]},
                {"spec.storageClassName": "x"},
                {"spec.volumeName": "x"},
                {"spec.volumeMode": "Block"},
                {"spec.volumeAttributesClassName": "a"},
                {"spec.selector": {}},
                {"metadata.annotations[volume.beta.kubernetes.io/storage-class]": "x"},
            ],
            status_update=[
                {"status.phase": "Bound"},
                {"status.capacity": {"storage": "-1"}},
                {"status.allocatedResources": {"a b": "-1"}},
                {"status.allocatedResourceStatuses": {"storage": "Nope"}},
                {"status.allocatedResourceStatuses": {"a b": "NodeResizePending"}},
                {"status.conditions": [{"type": "", "status": ""}]},
                {"status.allocatedResources": {"storage": "1"}},
                {"status.modifyVolumeStatus": {"status": "Nope"}},
            ],
        ),
        State(
            base={"spec.storageClassName": "x", "spec.volumeName": "v", "spec.volumeAttributesClassName": "a"},
            status={"status.phase": "Bound", "status.capacity": {"storage": "1Gi"}, "status.accessModes": ["ReadWriteOnce"]},
            update=[{"spec.resources.requests.storage": "2Gi"}, {"spec.resources.requests.storage": "1Mi"}, {"spec.volumeAttributesClassName": None}, {"spec.volumeAttributesClassName": "b"}, {"spec.volumeName": None}, {"spec.storageClassName": None}],
        ),
        State(base={"spec.storageClassName": "x"}, status={"status.phase": "Pending"}, update=[{"spec.resources.requests.storage": "2Gi"}]),
    ],
)

# ---------------------------------------------------------------- services

SERVICE: dict[str, Any] = {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
LB = {"spec.type": "LoadBalancer"}
AFFINITY = {"spec.sessionAffinity": "ClientIP"}
tell_of(
    "services",
    "v1/services",
    SERVICE,
    create=[
        {},
        *each("metadata.name", "A_", "1a", "a.b", LONG),
        {"spec.ports": []},
        {"spec.type": "Nope"},
        {"spec.selector": {"a b": "c"}},
        *each("spec.ports[0].port", 0, 65536),
        *each("spec.ports[0].protocol", "Nope", ""),
        *each("spec.ports[0].targetPort", 0, 65536, "a b", "a--b", ""),
        *each("spec.ports[0].appProtocol", "a b", "a/b"),
        *each("spec.ports[0].name", "A_", LONG),
        {"spec.ports[1]": {"port": 81}},
        {"spec.ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]},
        {"spec.ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
        {"spec.ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b", "protocol": "UDP"}]},
        {"spec.ports[0].nodePort": 30000},
        {"spec.type": "NodePort", "spec.ports[0].nodePort": 1},
        {"spec.type": "NodePort", "spec.ports[0].nodePort": 30100},
        {"spec.type": "NodePort", "spec.ports": [{"port": 80, "name": "a", "nodePort": 30101}, {"port": 81, "name": "b", "nodePort": 30101}]},
        {"spec.type": "NodePort", "spec.ports": [{"port": 80, "name": "a", "nodePort": 30101}, {"port": 80, "protocol": "UDP", "name": "b", "nodePort": 30102}]},
        *each("spec.clusterIP", "x", "None", "10.0.0.300", "1.2.3.4", "010.0.0.9", "10.0.0.1", "2001:db8::1"),
        {"spec.clusterIP": "None", **LB},
        {"spec.clusterIP": "None", "spec.type": "NodePort"},
        {"spec.clusterIP": "None", "spec.ports": []},
        {"spec.clusterIPs": ["10.0.0.20"]},
        {"spec.clusterIP": "10.0.0.20", "spec.clusterIPs": ["10.0.0.21"]},
        {"spec.clusterIP": "None", "spec.clusterIPs": ["None", "10.0.0.20"]},
        {"spec.clusterIP": "10.0.0.20", "spec.clusterIPs": ["10.0.0.20", "10.0.0.21"]},
        {"spec.clusterIP": "10.0.0.20", "spec.clusterIPs": ["10.0.0.20", "fd00::1", "fd00::2"]},
        {"spec.clusterIP": "10.0.0.20", "spec.clusterIPs": ["10.0.0.20", "x"]},
        {"spec.clusterIP": "10.0.0.20", "spec.clusterIPs": ["10.0.0.20", "fd00::1"]},
        {"spec.clusterIP": "10.0.0.20", "spec.clusterIPs": ["10.0.0.20", "fd00::1"], "spec.ipFamilyPolicy": "SingleStack"},
        {"spec.ipFamilies": ["IPv4", "IPv6"], "spec.ipFamilyPolicy": "SingleStack"},
        {"spec.ipFamilies": ["IPv6"]},
        {"spec.ipFamilies": ["Nope"]},
        {"spec.ipFamilies": ["IPv4", "IPv4"]},
        {"spec.ipFamilies": ["IPv4", "IPv6", "IPv4"]},
        {"spec.ipFamilyPolicy": "Nope"},
        {"spec.ipFamilyPolicy": "RequireDualStack"},
        {"spec.ipFamilyPolicy": "PreferDualStack"},
        {"spec.ipFamilies": ["IPv6"], "spec.clusterIP": "10.0.0.20"},
        {"spec.ipFamilies": ["IPv4", "IPv6"]},
        {"spec.clusterIP": "None", "spec.selector": None, "spec.ipFamilies": ["IPv4", "IPv6"]},
        {"spec.clusterIP": "None", "spec.ipFamilyPolicy": "RequireDualStack"},
        *({"spec.type": "ExternalName", "spec.externalName": name} for name in ("", "A_", "a.b.", "a.b")),
        *({"spec.type": "ExternalName", "spec.externalName": "a.b", **more} for more in ({"spec.clusterIP": "10.0.0.20"}, {"spec.clusterIP": "None"}, {"spec.ipFamilies": ["IPv4"]}, {"spec.ipFamilyPolicy": "SingleStack"}, {"spec.externalIPs": ["1.2.3.4"]}, {"spec.ports": []}, {"spec.ports[0].nodePort": 30009})),
        {"spec.externalName": "a.b"},
        {"spec.sessionAffinity": "Nope"},
        AFFINITY,
        *({**AFFINITY, "spec.sessionAffinityConfig": config} for config in ({}, {"clientIP": {}}, {"clientIP": {"timeoutSeconds": 0}}, {"clientIP": {"timeoutSeconds": 86400}}, {"clientIP": {"timeoutSeconds": 86401}})),
        {"spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}},
        {"spec.sessionAffinity": "None", "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}},
        *each("spec.externalIPs", ["x"], ["127.0.0.1"], ["0.0.0.0"], ["1.2.3.4"], ["01.2.3.4"], ["169.254.0.1"], ["224.0.0.1"], ["::ffff:1.2.3.4"], ["2001:DB8::1"], ["2001:db8:0::1"]),
        {"spec.clusterIP": "None", "spec.externalIPs": ["1.2.3.4"], "spec.loadBalancerIP": "1.2.3.4", **AFFINITY},
        *each("spec.loadBalancerIP", "x", "01.2.3.4", **LB),
        *each("spec.loadBalancerSourceRanges", ["x"], ["1.2.3.4/8"], ["1.0.0.0/8"], ["01.0.0.0/8"], ["1.0.0.0/08"], ["::ffff:1.0.0.0/104"], ["2001:DB8::/32"], [" 1.0.0.0/8 "], **LB),
        {"spec.loadBalancerSourceRanges": ["1.0.0.0/8"]},
        {"metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]": "x"},
        {"metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]": "x", **LB},
        {"metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]": "1.0.0.0/8", **LB},
        *each("spec.loadBalancerClass", "a b", "a", "a/b", **LB),
        {"spec.loadBalancerClass": "a/b"},
        {"spec.allocateLoadBalancerNodePorts": False},
        {"spec.allocateLoadBalancerNodePorts": False, **LB},
        *each("spec.externalTrafficPolicy", "Nope", "Local"),
        *each("spec.externalTrafficPolicy", "Nope", "Local", "", **LB),
        *each("spec.internalTrafficPolicy", "Nope", "Local", ""),
        {"spec.healthCheckNodePort": 30009},
        {"spec.healthCheckNodePort": 30009, **LB},
        {"spec.healthCheckNodePort": -1, "spec.externalTrafficPolicy": "Local", **LB},
        {"spec.healthCheckNodePort": 1, "spec.externalTrafficPolicy": "Local", **LB},
        *each("spec.trafficDistribution", "Nope", "PreferClose", "PreferSameZone", "PreferSameNode"),
        {"metadata.annotations[service.kubernetes.io/topology-mode]": "a", "metadata.annotations[service.kubernetes.io/topology-aware-hints]": "b"},
        {"metadata.annotations[service.kubernetes.io/topology-aware-hints]": "b"},
        *({**LB, "spec.ports[0].protocol": protocol} for protocol in ("UDP", "SCTP")),
    ],
    states=[
        State(
            update=[
                {"spec.clusterIP": "10.0.0.99"},
                {"spec.clusterIP": None, "spec.clusterIPs": None},
                {"spec.clusterIP": ""},
                {"spec.clusterIPs": []},
                {"spec.clusterIP": "", "spec.clusterIPs": []},
                {"spec.clusterIPs[1]": "fd00::1"},
                {"spec.ipFamilies": ["IPv6"]},
                {"spec.ipFamilies": []},
                {"spec.ipFamilies[1]": "IPv6"},
                {"spec.ipFamilyPolicy": "RequireDualStack"},
                {"spec.ipFamilyPolicy": None},
                {"spec.type": "ExternalName", "spec.externalName": "a.b"},
                {"spec.type": "ExternalName", "spec.externalName": "a.b", "spec.clusterIP": None, "spec.clusterIPs": None, "spec.ipFamilies": None, "spec.ipFamilyPolicy": None},
                {"spec.type": "NodePort"},
                {"spec.type": "NodePort", "spec.ports[0].nodePort": 1},
                {"spec.type": "NodePort", "spec.ports": [{"port": 80, "name": "a", "nodePort": 30111}, {"port": 81, "name": "b", "nodePort": 30111}]},
                {"spec.type": "LoadBalancer", "spec.loadBalancerClass": "a/b"},
                {"spec.selector": None},
                {"metadata.name": "other"},
                {"spec.clusterIP": "None", "spec.clusterIPs": ["None"]},
            ],
            status_update=[{"status.loadBalancer.ingress": [{"ip": "1.2.3.4"}]}],
        ),
        State(
            base={**LB, "spec.loadBalancerClass": "a/b", "spec.externalTrafficPolicy": "Local", "spec.healthCheckNodePort": 32119},
            update=[{"spec.loadBalancerClass": "a/c"}, {"spec.loadBalancerClass": None}, {"spec.healthCheckNodePort": 32118}, {"spec.externalTrafficPolicy": "Cluster"}, {"spec.type": "ClusterIP"}, {"spec.type": "ClusterIP", "spec.loadBalancerClass": None}, {"spec.allocateLoadBalancerNodePorts": False}],
            status_update=[
                *(
                    {"status.loadBalancer.ingress": [item]}
                    for item in ({}, {"ip": "x"}, {"ip": "01.2.3.4"}, {"hostname": "A_"}, {"hostname": "1.2.3.4"}, {"ip": "1.2.3.4", "ipMode": "Nope"}, {"ipMode": "VIP"}, {"ip": "1.2.3.4", "ipMode": "Proxy"}, {"ip": "1.2.3.4", "ports": [{"port": 0, "protocol": "Nope", "error": "a b"}]})
                ),
                {"status.conditions": [{"type": "a b", "status": "Nope", "reason": "", "message": ""}]},
                {"status.conditions": [{"type": "A", "status": "True", "reason": "a b", "message": "x", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": -1}] * 2},
                {"status.conditions": [{"type": "A", "status": "True", "reason": "x" * 1025, "message": "y" * 32769, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
            ],
        ),
        State(
            base={"spec.type": "NodePort", "spec.ports[0].nodePort": 32117},
            update=[{"spec.type": "ClusterIP"}, {"spec.type": "ClusterIP", "spec.ports[0].nodePort": None}, {"spec.ports[0].nodePort": 32116}, {"spec.ports[0].nodePort": 1}, {"spec.ports[0].nodePort": None}, {"spec.ports": [{"port": 80, "name": "a", "nodePort": 32117}, {"port": 81, "name": "b", "nodePort": 32117}]}],
        ),
        State(base={"spec.clusterIP": "None"}, update=[{"spec.clusterIP": "10.0.0.77", "spec.clusterIPs": ["10.0.0.77"]}, {"spec.clusterIPs": ["None", "10.0.0.1"]}, {"spec.ipFamilies": ["IPv4", "IPv6"], "spec.ipFamilyPolicy": "RequireDualStack"}]),
        State(
            base={"spec.clusterIP": "None", "spec.selector": None, "spec.ipFamilyPolicy": "RequireDualStack"},
            update=[{"spec.ipFamilies": ["IPv4"]}, {"spec.ipFamilyPolicy": "SingleStack"}, {"spec.ipFamilyPolicy": "SingleStack", "spec.ipFamilies": ["IPv4"]}, {"spec.ipFamilies": ["IPv6"]}, {"spec.ipFamilies": []}, {"spec.ipFamilies": ["IPv6", "IPv4"]}],
        ),
        State(base={"spec.type": "ExternalName", "spec.externalName": "a.b"}, update=[{"spec.type": "ClusterIP"}, {"spec.externalName": ""}]),
    ],
)

ENDPOINTS: dict[str, Any] = {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]}
tell_of(
    "endpoints",
    "v1/endpoints",
    ENDPOINTS,
    create=[
        {},
        {"subsets[0].addresses": []},
        *(
            {"subsets[0].addresses[0]": address}
            for address in (
                {"ip": ""},
                {"ip": "x"},
                {"ip": "127.0.0.1"},
                {"ip": "169.254.0.1"},
                {"ip": "0.0.0.0"},
                {"ip": "224.0.0.1"},
                {"ip": "224.0.0.251"},
                {"ip": "::"},
                {"ip": "01.2.3.4"},
                {"ip": "1.2.3.4", "hostname": "A_"},
                {"ip": "1.2.3.4", "nodeName": "A_"},
                {"ip": "fe80::1"},
                {"ip": "ff02::1"},
                {"ip": "::ffff:1.2.3.4"},
            )
        ),
        *({"subsets[0].ports[0]": port} for port in ({"port": 0}, {"port": 65536}, {"port": 1, "protocol": "Nope"}, {"port": 1, "name": "A_"}, {"port": 1, "appProtocol": "a b"})),
        {"subsets[0].ports[1]": {"port": 81}},
        {"subsets[0].notReadyAddresses": [{"ip": "x"}]},
        {"metadata.annotations[endpoints.kubernetes.io/last-change-trigger-time]": "x"},
        {"metadata.name": "A_"},
    ],
    states=[State(update=[{"subsets[0].addresses[0].ip": "x"}, {"subsets[0].addresses[0].nodeName": "n"}]), State(base={"subsets[0].addresses[0].nodeName": "n"}, update=[{"subsets[0].addresses[0].nodeName": "m"}, {"subsets[0].addresses[0].nodeName": None}])],
)

# ---------------------------------------------------------------- nodes, namespaces, small kinds

NODE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}}
tell_of(
    "nodes",
    "v1/*nodes",
    NODE,
    create=[
        {},
        *each("spec.podCIDRs", ["x"], ["1.0.0.0/8", "2.0.0.0/8"], ["1.0.0.0/8", "fd00::/64"], ["1.0.0.0/8", "fd00::/64", "fd01::/64"], ["1.2.3.4/8"]),
        *each("spec.podCIDR", "x", "1.0.0.0/8"),
        {"spec.podCIDR": "1.0.0.0/8", "spec.podCIDRs": ["2.0.0.0/8"]},
        *each("spec.taints", [{"key": "a b", "effect": "NoSchedule"}], [{"key": "a"}], [{"key": "a", "effect": "Nope"}], [{"key": "a", "effect": "NoSchedule"}] * 2, [{"key": "a", "effect": "NoSchedule", "value": "x y"}], [{"key": "", "effect": "NoSchedule"}]),
        {"spec.configSource": {}},
        {"metadata.annotations[scheduler.alpha.kubernetes.io/preferAvoidPods]": "x"},
        {"metadata.annotations[scheduler.alpha.kubernetes.io/preferAvoidPods]": "{}"},
        {"metadata.annotations[scheduler.alpha.kubernetes.io/preferAvoidPods]": '{"preferAvoidPods":[{"podSignature":{}}]}'},
        {"metadata.name": "A_"},
        {"metadata.labels[beta.kubernetes.io/os]": "linux"},
        {"metadata.labels[node-role.kubernetes.io/master]": ""},
        {"status.capacity": {"cpu": "-1"}},
        {"status.addresses": [{"type": "InternalIP", "address": "a"}] * 2},
        {"spec.externalID": "x"},
    ],
    states=[
        State(
            base={"spec.providerID": "a"},
            update=[{"spec.providerID": "b"}, {"spec.podCIDRs": ["1.0.0.0/8"]}, {"spec.unschedulable": True}, {"spec.taints": [{"key": "a"}]}, {"metadata.labels": {"a b": "c"}}],
            status_update=[
                {"status.capacity": {"cpu": "-1"}},
                {"status.capacity": {"a b": "1"}},
                {"status.capacity": {"example.com/x": "1.5"}},
                {"status.allocatable": {"hugepages-2Mi": "3Mi"}},
                {"status.addresses": [{"type": "InternalIP", "address": "a"}] * 2},
                {"status.addresses": [{"type": "Hostname", "address": "a"}]},
                {"status.config": {"assigned": {}}},
                {"status.config": {"active": {"configMap": {"name": "a"}}}},
                {"status.daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}},
                {"status.capacity": {"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"}},
                {"status.declaredFeatures": ["a b", "a", "a"]},
                {"status.declaredFeatures": ["b", "a"]},
            ],
        ),
        State(base={"spec.podCIDR": "1.0.0.0/8", "spec.podCIDRs": ["1.0.0.0/8"]}, update=[{"spec.podCIDR": "2.0.0.0/8", "spec.podCIDRs": ["2.0.0.0/8"]}, {"spec.podCIDRs": ["1.0.0.0/8", "fd00::/64"]}, {"spec.podCIDR": None, "spec.podCIDRs": None}]),
    ],
)
tell_of(
    "namespaces",
    "v1/*namespaces",
    {"metadata": {}},
    create=[
        {},
        *each("metadata.name", "A_", "a.b", LONG),
        *each("spec.finalizers", ["a"], ["a b"], ["a/b"], []),
        {"metadata.namespace": "x"},
        *each("metadata.labels", {"a b": "c"}),
        *({f"metadata.labels[pod-security.kubernetes.io/{mode}{suffix}]": value} for mode in ("enforce", "audit", "warn") for suffix, value in (("", "nope"), ("", "baseline"), ("-version", "x"), ("-version", "v1.2x"), ("-version", "latest"))),
    ],
    states=[
        State(
            update=[{"spec.finalizers": []}, {"status.phase": "Terminating"}, {"metadata.labels[kubernetes.io/metadata.name]": "other"}], status_update=[{"status.phase": "Terminating"}, {"status.phase": "Nope"}], calls=[("PUT", "finalize", {"spec.finalizers": ["a"]}), ("PUT", "finalize", {"spec.finalizers": ["a/b"]})]
        )
    ],
)
tell_of(
    "secrets",
    "v1/secrets",
    {"data": {"a": "eA=="}},
    create=[
        {},
        *each("data", {"a b": "eA=="}, {"..": "eA=="}, {"..a": "eA=="}, {"x" * 254: "eA=="}, {"a": "?"}, {"a": "eA==" * 270_000}),
        *each("stringData", {"a b": "x"}),
        *({"type": kind} for kind in ("kubernetes.io/service-account-token", "kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/tls", "bootstrap.kubernetes.io/token", "x y", "")),
        {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "eA=="}},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eA=="}},
        {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}},
        {"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}},
        {"type": "kubernetes.io/tls", "data": {"tls.crt": "eA==", "tls.key": "eA=="}},
        {"type": "kubernetes.io/basic-auth", "data": {"username": "eA=="}},
    ],
    states=[State(update=[{"type": "other"}, {"immutable": True}]), State(base={"immutable": True}, update=[{"immutable": None}, {"immutable": False}, {"data": {"a": "eQ=="}}, {"metadata.labels.a": "b"}])],
)
tell_of(
    "configmaps",
    "v1/configmaps",
    {"data": {"a": "x"}},
    create=[{}, *each("data", {"a b": "x"}, {"..": "x"}, {"a": "x" * 1_048_577}), *each("binaryData", {"a": "eA=="}, {"b c": "eA=="}, {"b": "eA=="}), {"metadata.name": "A_"}],
    states=[State(base={"immutable": True}, update=[{"immutable": None}, {"immutable": False}, {"data": {"a": "y"}}, {"binaryData": {"b": "eA=="}}])],
)
tell_of(
    "serviceaccounts",
    "v1/serviceaccounts",
    {},
    create=[{}, {"metadata.name": "A_"}, {"secrets": [{"name": ""}]}, {"imagePullSecrets": [{"name": ""}]}, {"automountServiceAccountToken": False}],
    states=[
        State(
            calls=[
                *(
                    ("POST", "token?x=y", {"spec": spec})
                    for spec in (
                        {"expirationSeconds": 599},
                        {"expirationSeconds": 4294967297},
                        {"audiences": ["a"], "boundObjectRef": {"kind": "Nope", "name": "x"}},
                        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "absent"}},
                        {"boundObjectRef": {"kind": "Secret", "apiVersion": "v2", "name": ""}},
                        {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "absent"}},
                        {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "absent"}},
                        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": ""}},
                    )
                )
            ]
        )
    ],
)

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
tell_of(
    "replicationcontrollers",
    "v1/replicationcontrollers",
    {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
    create=[
        {},
        {"spec.selector": {}},
        {"spec.selector": {"x": "y"}},
        {"spec.template": None},
        {"spec.replicas": -1},
        {"spec.minReadySeconds": -1},
        {"spec.template.spec.restartPolicy": "Never"},
        {"spec.template.spec.activeDeadlineSeconds": 1},
        {"spec.template.spec.ephemeralContainers": [{"name": "e", "image": "i"}]},
        {"spec.template.metadata.annotations[a b]": "x"},
        {"spec.selector": {"a": "b c"}},
        {"metadata.name": "a.b"},
        {"metadata.name": "A_"},
        {"spec.template.spec.terminationGracePeriodSeconds": -1},
    ],
    states=[
        State(base={"metadata.annotations[non-convertible.kubernetes.io/spec.selector]": "x"}, update=[{"spec.selector": {"a": "b", "c": "d"}, "spec.template.metadata.labels.c": "d"}, {"spec.replicas": 4}]),
        State(base={"metadata.annotations[non-convertible.kubernetes.io/other]": "x"}, update=[{"spec.replicas": 4}]),
        State(
            update=[{"spec.replicas": -1}, {"spec.selector": {"x": "y"}}, {"metadata.name": "o"}, {"metadata.annotations[non-convertible.kubernetes.io/spec.selector]": "x"}, {"metadata.annotations[non-convertible.kubernetes.io/spec.selector]": "x", "spec.selector": {"a": "b", "c": "d"}, "spec.template.metadata.labels.c": "d"}, {"metadata.annotations[non-convertible.kubernetes.io/other]": "x"}],
            status_update=[{"status.replicas": -1}, {"status.readyReplicas": 1}, {"status.availableReplicas": 1}, {"status.fullyLabeledReplicas": 1}, {"status.observedGeneration": -1}, {"status.replicas": 2, "status.readyReplicas": 1, "status.availableReplicas": 2}],
            calls=[("PUT", "scale", {"spec.replicas": -1}), ("PUT", "scale", {"spec.replicas": 2})],
        )
    ],
)
tell_of("podtemplates", "v1/podtemplates", {"template": TEMPLATE}, create=[{}, {"template": None}, {"template.spec.containers": []}, {"template.spec.containers[0].image": " i"}, {"template.metadata.labels": {"a b": "c"}}], states=[State(update=[{"template.spec.containers[0].image": ""}])])
tell_of(
    "events",
    "v1/events",
    {"involvedObject": {"kind": "Pod", "name": "a", "namespace": "{ns}"}, "reason": "X", "type": "Normal"},
    create=[
        {},
        {"involvedObject.namespace": "other"},
        {"involvedObject.namespace": None},
        {"involvedObject.kind": "Node"},
        {"reason": "x" * 129},
        {"type": "Nope"},
        {"reportingComponent": "a b"},
        {"reportingComponent": "a.b/c", "reportingInstance": "x" * 129},
        {"action": "x" * 129},
        {"message": "x" * 1025},
        {"eventTime": "2026-01-01T00:00:00.000000Z"},
        {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingComponent": "a.b/c", "reportingInstance": "i", "action": "A"},
        {"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}},
        {"involvedObject.apiVersion": "a/b/c"},
    ],
    states=[State(update=[{"reason": "Y"}, {"message": "new"}])],
)
