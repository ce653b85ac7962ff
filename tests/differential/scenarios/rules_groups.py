"""The rules of the kinds of the named groups other than batch, each shown by an edit of an object that is valid."""

from __future__ import annotations

import base64
import functools
from typing import Any

from tests.differential.rule_tables import State, each, tell

# fmt: off
tell_of = functools.partial(tell, module="rules_groups")

Edit = dict[str, Any]
TIME = "2026-01-01T00:00:00Z"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD: dict[str, Any] = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}


# ---------------------------------------------------------------- apps

SELECTORS: list[Edit] = [
    {},
    {"spec.selector": None},
    {"spec.selector": {}},
    {"spec.selector.matchLabels": {"x": "y"}},
    {"spec.selector.matchLabels": {"a b": "c"}},
    {"spec.selector": {"matchExpressions": [{"key": "a", "operator": "Nope"}]}},
    {"spec.template.spec.restartPolicy": "Never"},
    {"spec.template.spec.activeDeadlineSeconds": 5},
    {"spec.template.spec.terminationGracePeriodSeconds": -1},
    {"metadata.name": "A_"},
    {"metadata.name": "a.b"},
    {"spec.minReadySeconds": -1},
    {"spec.revisionHistoryLimit": -1},
    {"spec.template.metadata.labels": {"a b": "c"}},
]
STATUS: list[Edit] = [
    *(
        {f"status.{name}": -1}
        for name in (
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "collisionCount",
            "fullyLabeledReplicas",
            "currentReplicas",
            "terminatingReplicas",
        )
    ),
    *(
        {"status.replicas": 1, f"status.{name}": 2}
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas", "currentReplicas")
    ),
    {"status.replicas": 3, "status.readyReplicas": 1, "status.availableReplicas": 2},
    {"status.conditions": [{"type": "a b", "status": "Nope"}]},
]
ROLLING = "spec.strategy.rollingUpdate"

tell_of(
    "deployments",
    "apps/v1/deployments",
    WORKLOAD,
    create=[
        *SELECTORS,
        {"spec.replicas": -1},
        {"spec.progressDeadlineSeconds": -1},
        {"spec.progressDeadlineSeconds": 5, "spec.minReadySeconds": 5},
        {"spec.progressDeadlineSeconds": 6, "spec.minReadySeconds": 5},
        *each(
            "spec.strategy",
            {"type": "Nope"},
            {"type": ""},
            {"type": "Recreate"},
            {"type": "Recreate", "rollingUpdate": {}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}},
        ),
        *(
            ({ROLLING: {"maxUnavailable": u, "maxSurge": s}})
            for u, s in (
                (0, 0),
                ("0%", "0%"),
                ("0%", 0),
                (0, 1),
                (-1, 1),
                ("101%", 1),
                ("x", 1),
                (1, -1),
                (1, "101%"),
                (1, "x"),
                ("100%", 0),
                ("%", 1),
                ("1", 1),
            )
        ),
        {"metadata.annotations[deprecated.deployment.rollback.to]": "x"},
        {"metadata.annotations[deprecated.deployment.rollback.to]": "-1"},
        {"spec.template.spec.volumes": [{"name": "v", "gitRepo": {"repository": "a"}}]},
    ],
    states=[
        State(
            status={"status.collisionCount": 5},
            update=[
                {"spec.selector.matchLabels": {"a": "b", "c": "d"}},
                {"spec.replicas": -1},
                {"spec.strategy": {"type": "Recreate"}},
                {"metadata.name": "o"},
                {ROLLING: {"maxUnavailable": 0, "maxSurge": 0}},
            ],
            status_update=[*STATUS, {"status.collisionCount": 4}, {"status.collisionCount": None}, {"status.collisionCount": 6}],
            calls=[
                ("PUT", "scale", {"spec.replicas": -1}),
                ("PUT", "scale", {"metadata.name": "o"}),
                ("PUT", "scale", {"metadata.resourceVersion": "1"}),
            ],
        )
    ],
)
tell_of(
    "replicasets",
    "apps/v1/replicasets",
    WORKLOAD,
    create=[*SELECTORS, {"spec.replicas": -1}, {"spec.template": None}],
    states=[
        State(
            update=[
                {"spec.selector.matchLabels": {"c": "d"}},
                {"spec.replicas": -1},
                {"spec.template.spec.containers[0].image": ""},
            ],
            status_update=STATUS,
            calls=[("PUT", "scale", {"spec.replicas": -1})],
        )
    ],
)
UPDATE = "spec.updateStrategy"
tell_of(
    "daemonsets",
    "apps/v1/daemonsets",
    WORKLOAD,
    create=[
        *SELECTORS,
        *each(
            UPDATE,
            {"type": "Nope"},
            {"type": "OnDelete"},
            {"type": "OnDelete", "rollingUpdate": {}},
            {"type": "RollingUpdate"},
            {"type": ""},
        ),
        *(
            {f"{UPDATE}.rollingUpdate": {"maxUnavailable": u, "maxSurge": s}}
            for u, s in (
                (0, 0),
                ("0%", "0%"),
                (1, 1),
                (1, 0),
                (0, 1),
                (-1, 0),
                ("101%", 0),
                (0, "101%"),
                ("x", 0),
                (0, "x"),
                ("50%", "50%"),
                (0, -1),
            )
        ),
    ],
    states=[
        State(
            status={"status.collisionCount": 5, "status.desiredNumberScheduled": 1},
            update=[
                {"spec.selector.matchLabels": {"c": "d"}},
                {f"{UPDATE}.rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}},
                {"spec.templateGeneration": 9},
                {"metadata.annotations[deprecated.daemonset.template.generation]": "7"},
            ],
            status_update=[
                *(
                    {f"status.{name}": -1}
                    for name in (
                        "currentNumberScheduled",
                        "numberMisscheduled",
                        "desiredNumberScheduled",
                        "numberReady",
                        "observedGeneration",
                        "updatedNumberScheduled",
                        "numberAvailable",
                        "numberUnavailable",
                        "collisionCount",
                    )
                ),
                {"status.collisionCount": 4},
            ],
        )
    ],
)
CLAIM = {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
tell_of(
    "statefulsets",
    "apps/v1/statefulsets",
    {"spec": {**WORKLOAD["spec"], "serviceName": "s"}},
    create=[
        *SELECTORS,
        {"spec.replicas": -1},
        *each("spec.serviceName", "", "A_", "x" * 254),
        *each("spec.podManagementPolicy", "Nope", "", "Parallel"),
        *each("spec.ordinals.start", -1, 1),
        *each(
            "spec.persistentVolumeClaimRetentionPolicy",
            {"whenDeleted": "Nope", "whenScaled": "Nope"},
            {"whenDeleted": "Delete"},
            {},
        ),
        *each(
            UPDATE,
            {"type": "Nope"},
            {"type": "OnDelete"},
            {"type": "OnDelete", "rollingUpdate": {}},
            {"type": "Other", "rollingUpdate": {}},
            {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "101%"}},
            {"type": ""},
        ),
        *each(
            "spec.volumeClaimTemplates", [CLAIM], [{**CLAIM, "spec": {}}], [{**CLAIM, "metadata": {"name": "A_"}}], [CLAIM, CLAIM]
        ),
        {"metadata.name": "a" * 64},
        {"metadata.name": "a" * 53},
        {"spec.template.spec.containers[0].image": ""},
    ],
    states=[
        State(
            base={"spec.volumeClaimTemplates": [CLAIM]},
            update=[
                {"spec.serviceName": "t"},
                {"spec.selector.matchLabels": {"c": "d"}},
                {"spec.podManagementPolicy": "Parallel"},
                {"spec.volumeClaimTemplates": []},
                {"spec.volumeClaimTemplates[0].metadata.labels.a": "b"},
                {"spec.replicas": -1},
                {"spec.replicas": 4},
                {f"{UPDATE}.type": "Nope"},
                {"spec.ordinals.start": 2},
                {"spec.revisionHistoryLimit": -1},
                {"spec.minReadySeconds": 9},
                {"spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Delete"},
                {"spec.serviceName": "t", "spec.podManagementPolicy": "Parallel"},
            ],
            status_update=[*STATUS, {"status.collisionCount": 2}],
            calls=[("PUT", "scale", {"spec.replicas": -1})],
        )
    ],
)
tell_of(
    "controllerrevisions",
    "apps/v1/controllerrevisions",
    {"revision": 1, "data": {"a": "b"}},
    create=[{}, {"revision": -1}, {"data": None}, {"metadata.name": "A_"}],
    states=[State(update=[{"data": {"a": "c"}}, {"revision": -1}, {"revision": 2}])],
)

# ---------------------------------------------------------------- autoscaling, policy, scheduling, coordination

METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
HPA: dict[str, Any] = {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}
NAMED = {"name": "m", "selector": {"matchLabels": {"a": "b"}}}
AVERAGE, VALUE = {"type": "AverageValue", "averageValue": "1"}, {"type": "Value", "value": "1"}


def metric(**more: Any) -> Edit:
    return {"spec.metrics": [more]}


def target(**more: Any) -> Edit:
    return metric(type="Resource", resource={"name": "cpu", "target": more})


tell_of(
    "horizontalpodautoscalers",
    "autoscaling/v2/horizontalpodautoscalers",
    HPA,
    create=[
        {},
        *each("spec.minReplicas", 0, -1, 4, 3),
        *each("spec.maxReplicas", 0, -1),
        *each(
            "spec.scaleTargetRef",
            {},
            {"kind": "a/b", "name": "c/d", "apiVersion": "apps/v1"},
            {"kind": "Pod", "name": "a"},
            {"kind": "Pod", "name": "a", "apiVersion": "v1"},
            {"kind": "X", "name": "%", "apiVersion": "a/b/c"},
        ),
        {
            "spec.minReplicas": 0,
            **metric(
                type="Object",
                object={"describedObject": {"kind": "A", "name": "b", "apiVersion": "v1"}, "metric": NAMED, "target": VALUE},
            ),
        },
        {"spec.minReplicas": 0, **metric(**METRIC)},
        metric(),
        metric(type="Nope"),
        metric(type="Resource"),
        metric(type="Pods", resource=METRIC["resource"]),
        metric(**METRIC, pods={"metric": NAMED, "target": AVERAGE}),
        target(),
        target(type="Nope"),
        target(type="Utilization"),
        target(type="Utilization", averageUtilization=0),
        target(type="Utilization", averageUtilization=-1),
        target(type="AverageValue"),
        target(type="AverageValue", averageValue="0"),
        target(type="AverageValue", averageValue="-1"),
        target(type="Value", value="1"),
        target(type="Value", value="0"),
        target(type="Utilization", averageUtilization=1, averageValue="1"),
        target(type="Utilization", averageUtilization=1, value="1"),
        target(type="AverageValue", averageValue="1", value="1"),
        metric(type="Resource", resource={"name": "", "target": METRIC["resource"]["target"]}),
        metric(type="Resource", resource={"name": "a/b/c", "target": METRIC["resource"]["target"]}),
        *(
            metric(
                type="ContainerResource",
                containerResource={
                    "name": "cpu",
                    "container": "c",
                    "target": {"type": "Utilization", "averageUtilization": 1},
                    **more,
                },
            )
            for more in (
                {},
                {"name": ""},
                {"container": ""},
                {"container": "a/b"},
                {"target": {}},
                {"target": VALUE},
                {"target": {"type": "AverageValue", "averageValue": "1", "averageUtilization": 1}},
            )
        ),
        *(
            metric(type="Pods", pods={"metric": NAMED, "target": AVERAGE, **more})
            for more in (
                {},
                {"metric": {"name": ""}},
                {"metric": {"name": "a/b"}},
                {"target": VALUE},
                {"target": {}},
                {"target": {"type": "AverageValue", "averageValue": "0"}},
            )
        ),
        *(
            metric(
                type="Object", object={"describedObject": {"kind": "A", "name": "b"}, "metric": NAMED, "target": VALUE, **more}
            )
            for more in (
                {},
                {"describedObject": {}},
                {"metric": {}},
                {"target": {}},
                {"target": {**VALUE, "averageValue": "1"}},
                {"target": {"type": "Value"}},
                {"target": {"type": "Value", "value": "-1"}},
                {"target": {"type": "Utilization", "averageUtilization": 1}},
            )
        ),
        *(
            metric(type="External", external={"metric": NAMED, "target": VALUE, **more})
            for more in (
                {},
                {"metric": {}},
                {"metric": {"name": "a", "selector": {"matchLabels": {"a b": "c"}}}},
                {"target": {}},
                {"target": {**VALUE, "averageValue": "1"}},
                {"target": {"type": "Value", "value": "0"}},
                {"target": {"type": "AverageValue", "averageValue": "0"}},
                {"target": {"type": "Utilization", "averageUtilization": 1}},
            )
        ),
        *(
            {f"spec.behavior.{way}": rules}
            for way in ("scaleUp", "scaleDown")
            for rules in (
                {},
                {"stabilizationWindowSeconds": -1},
                {"stabilizationWindowSeconds": 3600},
                {"stabilizationWindowSeconds": 3601},
                {"selectPolicy": "Nope"},
                {"selectPolicy": "Disabled"},
                {"policies": []},
                {"policies": [{"type": "Nope", "value": 1, "periodSeconds": 1}]},
                {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1}]},
                {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 0}]},
                {"policies": [{"type": "Percent", "value": -1, "periodSeconds": 1800}]},
                {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]},
                {"tolerance": "-1"},
                {"tolerance": "100m"},
            )
        ),
    ],
    states=[
        State(
            update=[{"spec.maxReplicas": 0}],
            status_update=[
                {"status.currentReplicas": -1, "status.desiredReplicas": -1},
                {"status.conditions": [{"type": "", "status": ""}]},
                {"status.currentReplicas": 1, "status.desiredReplicas": 1},
            ],
        )
    ],
)
tell_of(
    "poddisruptionbudgets",
    "policy/v1/poddisruptionbudgets",
    {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
    create=[
        {},
        {"spec.maxUnavailable": 1},
        *each("spec.minAvailable", -1, "101%", "x", "50%", 0, "-1%"),
        *each("spec.maxUnavailable", -1, "101%", "x", **{"spec.minAvailable": None}),
        *each("spec.selector", {}, None, {"matchLabels": {"a b": "c"}}),
        *each("spec.unhealthyPodEvictionPolicy", "Nope", "AlwaysAllow", ""),
    ],
    states=[
        State(
            update=[{"spec.minAvailable": -1}, {"spec.selector": {}}],
            status_update=[
                *(
                    {f"status.{name}": -1}
                    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods", "observedGeneration")
                ),
                {
                    "status.conditions": [
                        {"type": "a b", "status": "Nope", "reason": "", "lastTransitionTime": None, "message": ""}
                    ]
                },
                {"status.disruptedPods": {"a b": TIME}},
            ],
        )
    ],
)
tell_of(
    "priorityclasses",
    "scheduling.k8s.io/v1/*priorityclasses",
    {"value": 5},
    create=[
        {},
        {"value": 1000000001},
        {"value": 1000000000},
        {"value": -2147483648},
        {"preemptionPolicy": "Nope"},
        {"preemptionPolicy": ""},
        *({"metadata.name": name, "value": 5} for name in ("A_", "system-x", "system-node-critical")),
        {"metadata.name": "system-node-critical", "value": 2000001000},
        {"metadata.name": "system-node-critical", "value": 2000001000, "globalDefault": True},
    ],
    states=[
        State(update=[{"value": 6}, {"preemptionPolicy": "Never"}, {"globalDefault": True}, {"description": "x"}]),
        State(base={"globalDefault": True}, update=[{"globalDefault": None}]),
    ],
)
tell_of(
    "leases",
    "coordination.k8s.io/v1/leases",
    {"spec": {}},
    create=[
        {},
        {"spec.leaseDurationSeconds": 0},
        {"spec.leaseDurationSeconds": -1},
        {"spec.leaseTransitions": -1},
        {"spec.strategy": "Nope"},
        {"spec.strategy": "OldestEmulationVersion"},
        {"spec.preferredHolder": "x"},
        {"spec.preferredHolder": "x", "spec.strategy": "a.b/c"},
        {"spec.preferredHolder": "x", "spec.strategy": ""},
        {"spec.strategy": "a b/c"},
        {"metadata.name": "A_"},
        {"spec.holderIdentity": ""},
    ],
    states=[State(update=[{"spec.leaseDurationSeconds": -1}, {"spec.preferredHolder": "x"}])],
)

# ---------------------------------------------------------------- networking, discovery, node, storage

POLICY: dict[str, Any] = {"spec": {"podSelector": {}}}
tell_of(
    "networkpolicies",
    "networking.k8s.io/v1/networkpolicies",
    POLICY,
    create=[
        {},
        *each("spec.podSelector", {"matchLabels": {"a b": "c"}}),
        *each("spec.policyTypes", ["Nope"], ["Ingress", "Egress"], ["Ingress", "Egress", "Ingress"], []),
        *(
            {f"spec.{way}": [{"ports": [port]}]}
            for way in ("ingress", "egress")
            for port in (
                {"port": 0},
                {"port": 65536},
                {"port": "a b"},
                {"protocol": "Nope"},
                {"endPort": 5},
                {"port": "a", "endPort": 5},
                {"port": 5, "endPort": 4},
                {"port": 5, "endPort": 65536},
                {"port": 5, "endPort": 5},
            )
        ),
        *(
            {"spec.ingress": [{"from": [peer]}]}
            for peer in (
                {},
                {"podSelector": {"matchLabels": {"a b": "c"}}},
                {"namespaceSelector": {"matchLabels": {"a b": "c"}}},
                {"ipBlock": {"cidr": ""}},
                {"ipBlock": {"cidr": "x"}},
                {"ipBlock": {"cidr": "1.0.0.0/8", "except": ["x"]}},
                {"ipBlock": {"cidr": "1.0.0.0/8", "except": ["2.0.0.0/8"]}},
                {"ipBlock": {"cidr": "1.0.0.0/8", "except": ["1.0.0.0/8"]}},
                {"ipBlock": {"cidr": "1.0.0.0/8", "except": ["1.2.3.4/16"]}},
                {"ipBlock": {"cidr": "1.0.0.0/8"}, "podSelector": {}},
                {"ipBlock": {"cidr": "1.2.3.4/8"}},
                {"ipBlock": {"cidr": "01.0.0.0/8"}},
                {"ipBlock": {"cidr": "::ffff:1.0.0.0/104"}},
            )
        ),
        {"spec.egress": [{"to": [{}]}]},
    ],
    states=[State(update=[{"spec.policyTypes": ["Nope"]}])],
)
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


def path_of(**more: Any) -> Edit:
    return {"spec.rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND, **more}]}}]}


tell_of(
    "ingresses",
    "networking.k8s.io/v1/ingresses",
    {"spec": {"defaultBackend": BACKEND}},
    create=[
        {},
        {"spec.defaultBackend": None},
        *each(
            "spec.defaultBackend",
            {},
            {"service": {}},
            {"service": {"name": "s", "port": {}}},
            {"service": {"name": "A_", "port": {"number": 0, "name": "A_"}}},
            {"service": {"name": "s", "port": {"number": 65536}}},
            {"service": {"name": "s", "port": {"name": "a b"}}},
            {**BACKEND, "resource": {"kind": "A", "name": "b"}},
            {"resource": {"kind": "", "name": ""}},
            {"resource": {"apiGroup": "a.b", "kind": "A", "name": "b"}},
            {"resource": {"apiGroup": "a b", "kind": "A/b", "name": "%"}},
            {"service": {"name": "s", "port": {"number": 1, "name": "a"}}},
        ),
        *each(
            "spec.rules",
            [{"host": "A_"}],
            [{"host": "1.2.3.4"}],
            [{"host": "*.a"}],
            [{"host": "*."}],
            [{"host": "a.*"}],
            [{"http": {"paths": []}}],
            [{"host": "a.b", "http": {"paths": []}}],
        ),
        path_of(),
        *(
            path_of(**more)
            for more in (
                {"path": "a"},
                {"path": ""},
                {"path": "/a//b"},
                {"path": "/./a"},
                {"path": "/../a"},
                {"path": "/%2f"},
                {"path": "/%2F"},
                {"path": "/a/.."},
                {"pathType": "Nope"},
                {"pathType": ""},
                {"pathType": "Exact", "path": ""},
                {"pathType": "ImplementationSpecific", "path": "a"},
                {"pathType": "ImplementationSpecific", "path": ""},
                {"backend": {}},
            )
        ),
        *each("spec.tls", [{"hosts": ["A_"]}], [{"hosts": ["*.a"]}], [{"secretName": "A_"}], [{}]),
        *each("spec.ingressClassName", "A_", "x"),
        {"metadata.annotations[kubernetes.io/ingress.class]": "x"},
        {"metadata.annotations[kubernetes.io/ingress.class]": "x", "spec.ingressClassName": "y"},
    ],
    states=[
        State(
            update=[{"spec.ingressClassName": "A_"}, {"spec.defaultBackend": {}}],
            status_update=[
                {"status.loadBalancer.ingress": [item]}
                for item in (
                    {"ip": "x"},
                    {"hostname": "A_"},
                    {"hostname": "1.2.3.4"},
                    {"ip": "1.2.3.4", "ports": [{"port": 0, "protocol": "Nope"}]},
                    {"ip": "1.2.3.4", "ports": [{"port": 1, "protocol": "TCP", "error": "a b"}]},
                    {"ip": "01.2.3.4"},
                )
            ],
        )
    ],
)
tell_of(
    "ingressclasses",
    "networking.k8s.io/v1/*ingressclasses",
    {"spec": {"controller": "a.b/c"}},
    create=[
        {},
        *each("spec.controller", "", "a", "A_/b", "a.b/", "x" * 251 + ".a/b"),
        *(
            {"spec.parameters": {"kind": "A", "name": "b", **more}}
            for more in (
                {},
                {"kind": ""},
                {"name": ""},
                {"kind": "a/b"},
                {"name": "%"},
                {"apiGroup": "a b"},
                {"scope": "Nope"},
                {"scope": "Namespace"},
                {"scope": "Namespace", "namespace": "A_"},
                {"scope": "Cluster", "namespace": "a"},
                {"scope": "Namespace", "namespace": "a"},
                {"scope": ""},
            )
        ),
    ],
    states=[State(update=[{"spec.controller": "a.b/d"}, {"spec.parameters": {"kind": "", "name": "b"}}])],
)
tell_of(
    "ipaddresses",
    "networking.k8s.io/v1/*ipaddresses",
    {"metadata": {"name": "192.168.9.9"}, "spec": {"parentRef": {"resource": "services", "name": "a", "namespace": "b"}}},
    create=[
        {},
        *each("metadata.name", "x", "192.168.009.9", "fd00:0::1", "::ffff:1.2.3.4"),
        *each(
            "spec.parentRef",
            None,
            {},
            {"resource": "a/b", "name": "%"},
            {"group": "a b", "resource": "x", "name": "y", "namespace": "A/"},
            {"resource": "x", "name": ""},
        ),
    ],
    states=[State(update=[{"spec.parentRef.name": "c"}, {"metadata.labels.a": "b"}])],
)
tell_of(
    "servicecidrs",
    "networking.k8s.io/v1/*servicecidrs",
    {"spec": {"cidrs": ["10.77.0.0/24"]}},
    create=[
        {},
        *each(
            "spec.cidrs",
            [],
            ["x"],
            ["10.77.0.1/24"],
            ["10.77.0.0/24", "10.78.0.0/24"],
            ["10.77.0.0/24", "fd00::/64", "fd01::/64"],
            ["010.77.0.0/24"],
            ["fd00:0::/64"],
            ["10.77.0.0/24", "fd00::/64"],
        ),
        {"metadata.name": "A_"},
    ],
    states=[
        State(
            update=[{"spec.cidrs": ["10.79.0.0/24"]}, {"spec.cidrs": ["10.77.0.0/24", "fd00::/64"]}, {"spec.cidrs": []}],
            status_update=[{"status.conditions": [{"type": "a b", "status": "Nope", "reason": "", "message": ""}]}],
        )
    ],
)
ENDPOINT = {"addresses": ["1.2.3.4"]}
tell_of(
    "endpointslices",
    "discovery.k8s.io/v1/endpointslices",
    {"addressType": "IPv4", "endpoints": [ENDPOINT], "ports": [{"port": 80, "name": "a"}]},
    create=[
        {},
        *each("addressType", "", "Nope", "IPv6", "FQDN"),
        *(
            {"endpoints[0]": {**ENDPOINT, **more}}
            for more in (
                {"addresses": []},
                {"addresses": ["x"]},
                {"addresses": ["127.0.0.1"]},
                {"addresses": ["01.2.3.4"]},
                {"addresses": ["1.2.3.4"] * 2},
                {"addresses": [f"1.2.3.{n}" for n in range(101)]},
                {"hostname": "A_"},
                {"nodeName": "A_"},
                {"deprecatedTopology": {"a b": "c"}},
                {"deprecatedTopology": {"kubernetes.io/hostname": "a"}},
                {"deprecatedTopology": {f"a{n}": "b" for n in range(17)}},
                {"hints": {"forZones": [{"name": "a b"}]}},
                {"hints": {"forZones": [{"name": ""}]}},
                {"hints": {"forZones": [{"name": "a"}] * 2}},
                {"hints": {"forZones": [{"name": f"a{n}"} for n in range(9)]}},
                {"hints": {"forNodes": [{"name": "A_"}]}},
                {"hints": {"forNodes": [{"name": "a"}] * 2}},
                {"zone": "x"},
            )
        ),
        {"addressType": "FQDN", "endpoints": [{"addresses": ["A_"]}]},
        {"addressType": "FQDN", "endpoints": [{"addresses": ["a.b"]}]},
        {"addressType": "IPv6", "endpoints": [{"addresses": ["fe80::1"]}]},
        {"addressType": "IPv6", "endpoints": [{"addresses": ["FD00::1"]}]},
        {"endpoints": [ENDPOINT] * 1001},
        *(
            {"ports": ports}
            for ports in (
                [{"port": 0}],
                [{"port": 65536}],
                [{"port": 1, "protocol": "Nope"}],
                [{"port": 1, "name": "A_"}],
                [{"port": 1}, {"port": 2}],
                [{"port": 1, "appProtocol": "a b"}],
                [{"name": "x" * 64, "port": 1}],
                [{}],
                [{"name": f"a{n}", "port": 1} for n in range(20001)],
            )
        ),
    ],
    states=[State(update=[{"addressType": "IPv6"}, {"endpoints": [{"addresses": ["x"]}]}])],
)
tell_of(
    "runtimeclasses",
    "node.k8s.io/v1/*runtimeclasses",
    {"handler": "h"},
    create=[
        {},
        *each("handler", "", "A_", "x" * 64),
        *each("overhead.podFixed", {"cpu": "1"}, {"a b": "1"}, {"cpu": "-1"}),
        *each(
            "scheduling",
            {"nodeSelector": {"a b": "c"}},
            {"nodeSelector": {"beta.kubernetes.io/os": "x"}},
            {"tolerations": [{"operator": "Nope"}]},
            {"tolerations": [{"key": "a", "effect": "NoSchedule"}] * 2},
        ),
    ],
    states=[State(update=[{"handler": "x"}, {"overhead.podFixed": {"cpu": "-1"}}])],
)
tell_of(
    "storageclasses",
    "storage.k8s.io/v1/*storageclasses",
    {"provisioner": "a.b/c"},
    create=[
        {},
        *each("provisioner", "", "a b", "A_"),
        *each("parameters", {"": "x"}, {"a": "x" * 262_145}, {f"a{n}": "b" for n in range(513)}),
        *each("reclaimPolicy", "Nope", "Recycle", ""),
        *each("volumeBindingMode", "Nope", "", "Immediate"),
        *each(
            "allowedTopologies",
            [{}],
            [{"matchLabelExpressions": [{"key": "a b", "values": []}]}],
            [{"matchLabelExpressions": [{"key": "a", "values": ["x", "x"]}]}],
            [{"matchLabelExpressions": [{"key": "a", "values": ["x"]}] * 2}],
            [{"matchLabelExpressions": [{"key": "a", "values": ["x"]}]}] * 2,
            [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/os", "values": ["x"]}]}],
        ),
    ],
    states=[
        State(
            update=[
                {"provisioner": "x"},
                {"parameters": {"a": "b"}},
                {"reclaimPolicy": "Retain"},
                {"volumeBindingMode": "WaitForFirstConsumer"},
                {"allowVolumeExpansion": True},
            ]
        )
    ],
)
tell_of(
    "csidrivers",
    "storage.k8s.io/v1/*csidrivers",
    {"spec": {}},
    create=[
        {},
        *each("metadata.name", "A_b", "x" * 64),
        *each("spec.fsGroupPolicy", "Nope", "File"),
        *each("spec.volumeLifecycleModes", ["Nope"], ["Ephemeral", "Persistent"]),
        *each(
            "spec.tokenRequests",
            [{"audience": "a"}, {"audience": "a"}],
            [{"audience": "a", "expirationSeconds": 599}],
            [{"audience": "a", "expirationSeconds": 4294967297}],
            [{"audience": ""}],
        ),
        {"spec.nodeAllocatableUpdatePeriodSeconds": 9},
        {"spec.nodeAllocatableUpdatePeriodSeconds": 10},
        {"spec.serviceAccountTokenInSecrets": True},
        {"spec.serviceAccountTokenInSecrets": True, "spec.tokenRequests": [{"audience": "a"}]},
    ],
    states=[
        State(
            update=[
                {"spec.attachRequired": False},
                {"spec.podInfoOnMount": True},
                {"spec.fsGroupPolicy": "None"},
                {"spec.volumeLifecycleModes": ["Ephemeral"]},
                {"spec.storageCapacity": True},
                {"spec.requiresRepublish": True},
                {"spec.seLinuxMount": True},
                {"spec.fsGroupPolicy": "Nope"},
            ]
        )
    ],
)
tell_of(
    "csinodes",
    "storage.k8s.io/v1/*csinodes",
    {"spec": {"drivers": [{"name": "a.b", "nodeID": "n"}]}},
    create=[
        {},
        *(
            {"spec.drivers[0]": {"name": "a.b", "nodeID": "n", **more}}
            for more in (
                {"name": ""},
                {"name": "A_"},
                {"nodeID": ""},
                {"nodeID": "x" * 193},
                {"topologyKeys": ["a b"]},
                {"topologyKeys": ["a", "a"]},
                {"topologyKeys": [""]},
                {"allocatable": {"count": -1}},
            )
        ),
        {"spec.drivers[1]": {"name": "a.b", "nodeID": "m"}},
        {"metadata.annotations[storage.alpha.kubernetes.io/migrated-plugins]": "x"},
    ],
    states=[
        State(
            base={"spec.drivers[0].allocatable": {"count": 1}},
            update=[
                {"spec.drivers[0].nodeID": "m"},
                {"spec.drivers[0].allocatable.count": 2},
                {"spec.drivers[0].topologyKeys": ["x"]},
                {"spec.drivers": []},
                {"spec.drivers[1]": {"name": "c.d", "nodeID": ""}},
            ],
        )
    ],
)
tell_of(
    "csistoragecapacities",
    "storage.k8s.io/v1/csistoragecapacities",
    {"storageClassName": "s"},
    create=[
        {},
        *each("storageClassName", "", "A_"),
        {"capacity": "-1"},
        {"maximumVolumeSize": "-1"},
        *each(
            "nodeTopology",
            {"matchLabels": {"a b": "c"}},
            {"matchLabels": {"beta.kubernetes.io/os": "c"}},
            {"matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "a", "operator": "Nope"}]},
        ),
        {"metadata.name": "A_"},
    ],
    states=[
        State(
            base={"nodeTopology": {}},
            update=[{"storageClassName": "t"}, {"nodeTopology": {"matchLabels": {"a": "b"}}}, {"capacity": "1"}],
        )
    ],
)
tell_of(
    "volumeattachments",
    "storage.k8s.io/v1/*volumeattachments",
    {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}},
    create=[
        {},
        *each("spec.attacher", "", "x" * 64),
        *each("spec.nodeName", "", "A_"),
        *each(
            "spec.source",
            {},
            {"persistentVolumeName": ""},
            {"persistentVolumeName": "A_"},
            {"persistentVolumeName": "p", "inlineVolumeSpec": {"capacity": {"storage": "1"}}},
            {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.b", "volumeHandle": "h"}}},
            *(
                {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.b", "volumeHandle": "h"}, **more}}
                for more in (
                    {"storageClassName": "a"},
                    {"volumeMode": "Block"},
                    {"volumeMode": "Filesystem"},
                    {"persistentVolumeReclaimPolicy": "Delete"},
                    {"persistentVolumeReclaimPolicy": "Retain"},
                    {"nodeAffinity": {}},
                    {"capacity": {"storage": "1"}},
                    {"mountOptions": ["a"]},
                    {"claimRef": {"name": "a"}},
                    {"csi": None, "nfs": {"server": "a", "path": "/b"}},
                    {"accessModes": []},
                    {"volumeAttributesClassName": "x"},
                )
            ),
        ),
    ],
    states=[
        State(
            update=[{"spec.nodeName": "m"}],
            status_update=[
                {"status.attached": True, "status.attachmentMetadata": {"a": "x" * 300_000}},
                {"status.attachError": {"message": "x" * 300_000}},
                {"status.detachError": {"message": "x" * 300_000}},
                {"status.attachError": {"message": "x", "errorCode": -1}},
            ],
        )
    ],
)
tell_of(
    "volumeattributesclasses",
    "storage.k8s.io/v1/*volumeattributesclasses",
    {"driverName": "a.b", "parameters": {"a": "b"}},
    create=[{}, *each("driverName", "", "A_"), *each("parameters", {}, None, {"": "x"}, {"a": "x" * 262_145})],
    states=[State(update=[{"driverName": "c.d"}, {"parameters": {"a": "c"}}])],
)

# ---------------------------------------------------------------- rbac, certificates, flow control, registrations

ROLE: dict[str, Any] = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
tell_of(
    "roles",
    "rbac.authorization.k8s.io/v1/roles",
    ROLE,
    create=[
        {},
        *(
            {"rules[0]": {**ROLE["rules"][0], **more}}
            for more in (
                {"verbs": []},
                {"apiGroups": []},
                {"resources": []},
                {"nonResourceURLs": ["/a"]},
                {"nonResourceURLs": ["/a"], "apiGroups": [], "resources": []},
            )
        ),
        {"metadata.name": "a/b"},
        {"rules": []},
    ],
    states=[State(update=[{"rules[0].verbs": []}])],
)
tell_of(
    "clusterroles",
    "rbac.authorization.k8s.io/v1/*clusterroles",
    ROLE,
    create=[
        {},
        {"rules[0]": {"nonResourceURLs": ["/a"], "verbs": ["get"]}},
        {"rules[0]": {"nonResourceURLs": ["/a"], "verbs": []}},
        {"rules[0]": {"nonResourceURLs": ["/a"], "verbs": ["get"], "resourceNames": ["x"]}},
        {"rules[0]": {"nonResourceURLs": ["/a"], "verbs": ["get"], "resources": ["pods"], "apiGroups": [""]}},
        {"aggregationRule": {"clusterRoleSelectors": []}},
        {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a b": "c"}}]}},
        {"aggregationRule": {}},
    ],
    states=[State(update=[{"rules[0].verbs": []}])],
)
BINDING: dict[str, Any] = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "a"}],
}
for wide in ("", "*cluster"):
    tell_of(
        f"{wide.removeprefix('*')}rolebindings",
        f"rbac.authorization.k8s.io/v1/{wide}rolebindings",
        BINDING,
        create=[
            {},
            *each("roleRef.apiGroup", "x", ""),
            *each("roleRef.kind", "Nope", "Role", ""),
            *each("roleRef.name", "", "a/b"),
            *(
                {"subjects[0]": subject}
                for subject in (
                    {"kind": "Nope", "name": "a"},
                    {"kind": "User", "name": ""},
                    {"kind": "ServiceAccount", "name": "a"},
                    {"kind": "ServiceAccount", "name": "A_", "namespace": "b"},
                    {"kind": "ServiceAccount", "name": "a", "namespace": "b", "apiGroup": "x"},
                    {"kind": "User", "name": "a", "apiGroup": "x"},
                    {"kind": "Group", "name": "a", "apiGroup": "x"},
                    {"kind": "Group", "name": ""},
                    {},
                )
            ),
        ],
        states=[State(update=[{"roleRef.name": "edit"}, {"subjects[0].kind": "Nope"}])],
    )

ED = "MIGLMD8CAQAwDDEKMAgGA1UEAwwBYTAqMAUGAytlcAMhAMFuvD/QuTBxgVXrfuL1TS/rcWoep5KeB0/wq4afMjfIoAAwBQYDK2VwA0EANKJpC4X9csnpL/sLkeEBip9fQxzwnJOfS5UKygnbeN+hxmLCl0KvUZRm93GXous4P1Vo3lyjLFe35HOKPk2dAQ=="
EC = "MIHFMG4CAQAwDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCWV7EoBThY+24SksG53IRpCJz6SoLMBsVS2rM/HJ4stVw3JHhHTTAvKdHlBYSVpvctznxm4BXLyZofVmFDFKSigADAKBggqhkjOPQQDAgNHADBEAiBKxsjoFREZHriwd/GugybtuZfDAJBPBlhmFXTINCTLuAIgJoSGqdDf9eAisv3rGafShp+LkzyhW1CaIjZqU3AnNho="
RSA = "MIIBSzCBtQIBADAMMQowCAYDVQQDDAFhMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCdeeIGI5Szsm7uZdiazud1sWCMQqNOg2AI8AeQy1JCKj+w1/l21gvFSBPZZD0Ljq3rlK1QE/T9Wy++VSsqeMc4pUkXD1aJ7IhO3JwqbE+bb6/6FL4bx5NzqAaJtELSdy9M4l10gS9xEcROUfj3llURodyt3Z3fb70GgifRchHvWQIDAQABoAAwDQYJKoZIhvcNAQELBQADgYEAizLePcqfkRW30ORnkiYqi6xdi63W+Og2nkAbnEjhKOuUontsU0TBKWQ/eyCMa7KFzfUPZ566s8jEp7JVS3pFu7HdD14gzRQlndbzW8PHLBXxM3tTso4kSbO+U3YCTL9QQTU7XdpXq6SyeGoTr4F0WPANZkWHdKzFaGkwTfSqXEU="
CERTIFICATE = "MIHDMHegAwIBAgIBATAFBgMrZXAwDDEKMAgGA1UEAwwBYTAeFw0yNjAxMDEwMDAwMDBaFw0zNjAxMDEwMDAwMDBaMAwxCjAIBgNVBAMMAWEwKjAFBgMrZXADIQDBbrw/0LkwcYFV637i9U0v63FqHqeSngdP8KuGnzI3yDAFBgMrZXADQQB22gQYYLZNo1TIiKcDvqEGUHHeMLbsDHVtuBcLD4+aaTHGon5jYdRV365J+aP4F4zcoWvXFeHkd7kCe7dc3wEB"


def pem(kind: str, content: str, headers: str = "") -> str:
    """A PEM block in base64, as the fields of a request hold it."""
    return base64.b64encode(f"-----BEGIN {kind}-----\n{headers}{content}\n-----END {kind}-----\n".encode()).decode()


def forged(content: str) -> str:
    """The request with another last byte of its signature."""
    data = bytearray(base64.b64decode(content))
    data[-1] ^= 1
    return base64.b64encode(bytes(data)).decode()


CSR, CRT = "CERTIFICATE REQUEST", "CERTIFICATE"
SIGNED = {"spec": {"request": pem(CSR, ED), "signerName": "a.b/c", "usages": ["client auth"]}}
APPROVED = {"type": "Approved", "status": "True", "reason": "x"}
tell_of("certificatesigningrequests", "certificates.k8s.io/v1/*certificatesigningrequests", SIGNED, create=[
    {}, *each("spec.request", "", pem(CSR, EC), pem(CSR, RSA), *(pem(CSR, forged(one)) for one in (ED, EC, RSA)), pem("NOPE", ED), pem(CSR, "AAAA"), pem(CSR, "MAA="), pem(CSR, "MAMCAQA="), pem(CSR, "MIA="), pem(CSR, "MIQ="), pem(CSR, "MIEB"), pem(CSR, "MAUC"), pem(CSR, ""), pem(CSR, ED, "A: b\n\n"), "eA=="),
    *each("spec.signerName", "", "a", "a/b", "A_/b", "a.b/", "a.b/A_", "x" * 254 + ".a/b", "a.b/c/d", "kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown"), *each("spec.usages", [], ["nope"], ["client auth", "client auth"], ["signing", "server auth"]), *each("spec.expirationSeconds", 599, 600, -1), {"metadata.name": "a/b"},
], states=[
    State(update=[{"spec.usages": ["signing"]}, {"metadata.labels.a": "b"}], status_update=[*({"status.certificate": certificate} for certificate in (pem(CRT, CERTIFICATE), pem(CRT, CERTIFICATE, "A: b\n\n"), pem("NOPE", CERTIFICATE), pem(CRT, ""), pem(CRT, "AAAA"), "eA==")), {"status.conditions": [APPROVED]}, {"status.conditions": [{"type": "Failed", "status": "True"}]}, {"status.conditions": [{"type": "", "status": ""}]}, {"status.conditions": [{"type": "X", "status": "Nope"}]}, {"status.conditions": [{"type": "Failed", "status": "False"}]}], calls=[("PUT", "approval", {"status.conditions": conditions}) for conditions in ([APPROVED], [APPROVED, APPROVED], [APPROVED, {**APPROVED, "type": "Denied"}], [{**APPROVED, "status": "False"}], [{**APPROVED, "type": ""}])] + [("PUT", "approval", {"status.certificate": pem(CRT, CERTIFICATE)})]),
    State(status={"status.certificate": pem(CRT, CERTIFICATE), "status.conditions": [{"type": "Failed", "status": "True"}]}, status_update=[{"status.certificate": None}, {"status.certificate": "eA=="}, {"status.conditions": []}], calls=[("PUT", "approval", {"status.conditions": []})]),
])

FLOW: dict[str, Any] = {"spec": {"priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": 5, "rules": [{"subjects": [{"kind": "User", "user": {"name": "a"}}], "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}]}]}}
RULE = FLOW["spec"]["rules"][0]
tell_of("flowschemas", "flowcontrol.apiserver.k8s.io/v1/*flowschemas", FLOW, create=[
    {}, *each("spec.matchingPrecedence", 0, -1, 1, 10000, 10001), *each("spec.priorityLevelConfiguration.name", "", "A_"), *each("spec.distinguisherMethod", {"type": ""}, {"type": "Nope"}, {"type": "ByUser"}), *each("spec.rules", []), *({"spec.rules[0]": {**RULE, **more}} for more in ({"subjects": []}, {"resourceRules": [], "nonResourceRules": []}, *({"subjects": [subject]} for subject in ({"kind": "Nope"}, {"kind": "User"}, {"kind": "User", "user": {"name": ""}}, {"kind": "Group"}, {"kind": "Group", "group": {"name": ""}}, {"kind": "ServiceAccount"}, {"kind": "ServiceAccount", "serviceAccount": {"name": "", "namespace": ""}}, {"kind": "ServiceAccount", "serviceAccount": {"name": "A_", "namespace": "A_"}}, {"kind": "User", "user": {"name": "a"}, "group": {"name": "b"}}, {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "a"}}, {"kind": ""}))))
    , *({"spec.rules[0].resourceRules[0]": {**RULE["resourceRules"][0], **more}} for more in ({"verbs": []}, {"verbs": ["nope"]}, {"verbs": ["*", "get"]}, {"apiGroups": []}, {"apiGroups": ["*", "a"]}, {"apiGroups": ["A_"]}, {"resources": []}, {"resources": ["*", "a"]}, {"resources": ["a b"]}, {"namespaces": []}, {"namespaces": [], "clusterScope": True}, {"namespaces": ["*", "a"]}, {"namespaces": ["A_"]})),
    *({"spec.rules[0]": {"subjects": RULE["subjects"], "nonResourceRules": [rule]}} for rule in ({"verbs": ["get"], "nonResourceURLs": ["/a"]}, {"verbs": [], "nonResourceURLs": []}, {"verbs": ["list"], "nonResourceURLs": ["a"]}, {"verbs": ["get"], "nonResourceURLs": ["*", "/a"]}, {"verbs": ["*", "get"], "nonResourceURLs": ["/a/*", "/a*b", "/*/a", ""]}, {"verbs": ["get"], "nonResourceURLs": ["/a//b", "/ a"]})), {"metadata.name": "exempt"}, {"metadata.name": "catch-all", "spec.matchingPrecedence": 10000},
], states=[State(update=[{"spec.matchingPrecedence": 0}], status_update=[{"status.conditions": [{"type": "", "status": ""}]}, {"status.conditions": [{"type": "Dangling", "status": "True"}] * 2}])])
LEVEL: dict[str, Any] = {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}}
tell_of("prioritylevelconfigurations", "flowcontrol.apiserver.k8s.io/v1/*prioritylevelconfigurations", LEVEL, create=[
    {}, *each("spec.type", "Nope", "", "Exempt"), {"spec.limited": None}, {"spec.type": "Exempt", "spec.limited": None}, {"spec.exempt": {"nominalConcurrencyShares": 1}}, {"spec.type": "Exempt", "spec.limited": None, "spec.exempt": {"nominalConcurrencyShares": -1, "lendablePercent": 101}}, *each("spec.limited.nominalConcurrencyShares", -1, 0), *each("spec.limited.lendablePercent", -1, 101), *each("spec.limited.borrowingLimitPercent", -1, 0), *each("spec.limited.limitResponse", {}, {"type": "Nope"}, {"type": "Queue"}, {"type": "Reject", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 1}}, *({"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50, **more}} for more in ({}, {"queues": 0}, {"queues": 10_000_001}, {"handSize": 0}, {"handSize": 65}, {"queueLengthLimit": 0}, {"queues": 10_000_000, "handSize": 9}, {"queues": -1, "handSize": -1, "queueLengthLimit": -1}))), {"metadata.name": "exempt"}, {"metadata.name": "catch-all"},
], states=[State(update=[{"spec.type": "Exempt"}, {"spec.limited": None}], status_update=[{"status.conditions": [{"type": "", "status": ""}]}])])
SERVED: dict[str, Any] = {"metadata": {"name": "v1.rules.example.com"}, "spec": {"group": "rules.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 15, "service": {"name": "a", "namespace": "b"}, "insecureSkipTLSVerify": True}}
tell_of("apiservices", "apiregistration.k8s.io/v1/*apiservices", SERVED, create=[
    {}, {"metadata.name": "x"}, *each("spec.groupPriorityMinimum", 0, 20001, -1), *each("spec.versionPriority", 0, 1001, -1), *each("spec.group", "A_", ""), *each("spec.version", "A_", ""), *each("spec.service", None, {"name": ""}, {"name": "a", "namespace": ""}, {"name": "a", "namespace": "b", "port": 0}, {"name": "a", "namespace": "b", "port": 65536}), {"spec.caBundle": "eA=="}, {"spec.insecureSkipTLSVerify": False}, {"spec.caBundle": "eA==", "spec.insecureSkipTLSVerify": False}, {"spec.service": None, "spec.insecureSkipTLSVerify": False, "spec.caBundle": "eA=="},
], states=[State(calls=[("PATCH", "", {"spec": {"version": "v2"}}), ("PATCH", "", {"spec": {"groupPriorityMinimum": 0}}), ("PATCH", "status", {"status": {"conditions": [{"type": "Available", "status": "Nope", "reason": "x", "message": ""}]}})])])

# ---------------------------------------------------------------- webhooks and policies

HOOK: dict[str, Any] = {"webhooks": [{"name": "a.b.c", "clientConfig": {"url": "https://a"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "scope": "Namespaced"}], "namespaceSelector": {"matchLabels": {"rules": "never"}}, "failurePolicy": "Ignore"}]}
HOOKS: list[Edit] = [
    {}, *each("webhooks[0].name", "", "a", "A_.b.c"), *each("webhooks[0].clientConfig", {}, {"url": "http://a"}, {"url": "a"}, {"url": "https://a?b"}, {"url": "https://a#b"}, {"url": "https://u:p@a"}, {"url": "https://"}, {"url": "https://a", "service": {"name": "a", "namespace": "b"}}, {"service": {"name": "", "namespace": ""}}, *({"service": {"name": "a", "namespace": "b", **more}} for more in ({"port": 0}, {"port": 65536}, {"path": "a"}, {"path": "/a//b"}, {"path": "/"}, {"path": "/ä b"}, {"path": "//"})), {"url": "https://a", "caBundle": "eA=="}, {"url": "%"}),
    *each("webhooks[0].sideEffects", "", "Nope", "Some", "Unknown", None), *each("webhooks[0].admissionReviewVersions", [], ["v1", "v1"], ["v9"], ["A_"], ["v1beta1"]), *each("webhooks[0].failurePolicy", "Nope", ""), *each("webhooks[0].matchPolicy", "Nope", "Exact", ""), *each("webhooks[0].timeoutSeconds", 0, 1, 30, 31), *each("webhooks[0].namespaceSelector", {"matchLabels": {"a b": "c"}}), *each("webhooks[0].objectSelector", {"matchExpressions": [{"key": "a", "operator": "Nope"}]}), {"webhooks[1]": HOOK["webhooks"][0]},
    *({"webhooks[0].rules[0]": {**HOOK["webhooks"][0]["rules"][0], **more}} for more in ({"operations": []}, {"operations": ["Nope"]}, {"operations": ["*", "CREATE"]}, {"apiGroups": []}, {"apiGroups": ["*", "a"]}, {"apiVersions": []}, {"apiVersions": ["*", "v1"]}, {"apiVersions": [""]}, {"resources": []}, {"resources": ["*", "a"]}, {"resources": ["*/*", "a"]}, {"resources": ["a/*", "a/b"]}, {"resources": ["*/b", "a/b"]}, {"resources": [""]}, {"resources": ["a/"]}, {"scope": "Nope"}, {"scope": "*"})),
    *each("webhooks[0].matchConditions", [{"name": "a", "expression": "true"}], [{"name": "", "expression": ""}], [{"name": "a b", "expression": "true"}], [{"name": "a", "expression": "true"}] * 2, [{"name": "a", "expression": "1"}], [{"name": "a", "expression": "nope("}], [{"name": f"a{n}", "expression": "true"} for n in range(65)], [{"name": "a", "expression": "variables.x"}]),
]
for kind in ("validating", "mutating"):
    more = [*each("webhooks[0].reinvocationPolicy", "Nope", "IfNeeded")] if kind == "mutating" else []
    tell_of(f"{kind}webhookconfigurations", f"admissionregistration.k8s.io/v1/*{kind}webhookconfigurations", HOOK, create=[*HOOKS, *more], states=[State(update=[{"webhooks[0].name": "a"}, {"webhooks[0].sideEffects": "Some"}])])
CONSTRAINTS = {"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "resourceNames": ["never"]}]}
COMMON: list[Edit] = [
    {}, *each("spec.failurePolicy", "Nope", ""), *each("spec.paramKind", {}, {"apiVersion": "a/b/c", "kind": "X"}, {"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "A_"}, {"apiVersion": "a.b/V1", "kind": ""}), *each("spec.matchConstraints", None, {}, {"resourceRules": []}, {**CONSTRAINTS, "matchPolicy": "Nope"}, {**CONSTRAINTS, "namespaceSelector": {"matchLabels": {"a b": "c"}}}, {**CONSTRAINTS, "objectSelector": {"matchLabels": {"a b": "c"}}}, {"resourceRules": [{**CONSTRAINTS["resourceRules"][0], "operations": []}]}, {"resourceRules": [{**CONSTRAINTS["resourceRules"][0], "resourceNames": ["a", "a", "/", ""]}]}, {**CONSTRAINTS, "excludeResourceRules": [{"operations": [], "apiGroups": [], "apiVersions": [], "resources": []}]}, {"resourceRules": [{**CONSTRAINTS["resourceRules"][0], "operations": ["CONNECT"]}]}),
    *each("spec.matchConditions", [{"name": "", "expression": ""}], [{"name": "a b", "expression": "1"}], [{"name": "a", "expression": "true"}] * 2, [{"name": f"a{n}", "expression": "true"} for n in range(65)], [{"name": "a", "expression": "variables.x"}]), *each("spec.variables", [{"name": "", "expression": ""}], [{"name": "a b", "expression": "1"}], [{"name": "a", "expression": "1"}] * 2, [{"name": "a", "expression": "nope("}], [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]),
]
tell_of("validatingadmissionpolicies", "admissionregistration.k8s.io/v1/*validatingadmissionpolicies", {"spec": {"matchConstraints": CONSTRAINTS, "validations": [{"expression": "true"}]}}, create=[*COMMON, *({"spec.validations[0]": {"expression": "true", **more}} for more in ({"expression": ""}, {"expression": "1"}, {"expression": "nope("}, {"message": "a\nb"}, {"message": " "}, {"messageExpression": "1"}, {"messageExpression": " "}, {"messageExpression": "'a'"}, {"reason": "Nope"}, {"reason": "Forbidden"}, {"expression": "params.x"})), {"spec.validations": []}, *each("spec.auditAnnotations", [{"key": "a", "valueExpression": "'x'"}], [{"key": "", "valueExpression": ""}], [{"key": "a b", "valueExpression": "1"}], [{"key": "a", "valueExpression": "'x'"}] * 2, [{"key": f"a{n}", "valueExpression": "'x'"} for n in range(21)], [{"key": "a", "valueExpression": "x" * 5121}]), {"metadata.name": "", "metadata.generateName": "gen-", "spec.auditAnnotations": [{"key": "a", "valueExpression": "'x'"}]}, {"metadata.name": "A_", "spec.auditAnnotations": [{"key": "a", "valueExpression": "'x'"}]}], states=[State(update=[{"spec.validations[0].expression": "1"}, {"spec.failurePolicy": "Nope"}], status_update=[{"status.conditions": [{"type": "a b", "status": "Nope", "reason": "", "message": ""}]}, {"status.typeChecking": {"expressionWarnings": [{"fieldRef": "", "warning": ""}]}}, {"status.typeChecking": {"expressionWarnings": [{"fieldRef": "x", "warning": "y"}]}}])])
BOUND: dict[str, Any] = {"spec": {"policyName": "p", "validationActions": ["Audit"]}}
REFS: list[Edit] = [{}, *each("spec.policyName", "", "A_"), *each("spec.paramRef", {"parameterNotFoundAction": "Deny"}, {"name": "a"}, {"name": "a", "parameterNotFoundAction": "Nope"}, {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}, {"name": "%", "parameterNotFoundAction": "Deny"}, {"selector": {"matchLabels": {"a b": "c"}}, "parameterNotFoundAction": "Allow"}, {"name": "a", "namespace": "A_", "parameterNotFoundAction": "Deny"}), *each("spec.matchResources", {"resourceRules": []}, {"matchPolicy": "Nope"}, {"namespaceSelector": {"matchLabels": {"a b": "c"}}})]
tell_of("validatingadmissionpolicybindings", "admissionregistration.k8s.io/v1/*validatingadmissionpolicybindings", BOUND, create=[*REFS, *each("spec.validationActions", [], ["Nope"], ["Audit", "Audit"], ["Deny", "Warn"])], states=[State(update=[{"spec.policyName": ""}])])
tell_of("mutatingadmissionpolicybindings", "admissionregistration.k8s.io/v1/*mutatingadmissionpolicybindings", {"spec": {"policyName": "p"}}, create=REFS, states=[State(update=[{"spec.policyName": ""}])])
tell_of("mutatingadmissionpolicies", "admissionregistration.k8s.io/v1/*mutatingadmissionpolicies", {"spec": {"matchConstraints": CONSTRAINTS, "reinvocationPolicy": "Never", "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]}}, create=[*COMMON, *each("spec.reinvocationPolicy", "", "Nope"), *each("spec.mutations", [], [{}], [{"patchType": "Nope"}], [{"patchType": "ApplyConfiguration"}], [{"patchType": "JSONPatch"}], [{"patchType": "JSONPatch", "jsonPatch": {"expression": ""}}], [{"patchType": "JSONPatch", "jsonPatch": {"expression": "1"}}], [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}, "applyConfiguration": {"expression": "Object{}"}}], [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "1"}}], [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": ""}}])], states=[State(update=[{"spec.mutations": []}])])

# ---------------------------------------------------------------- devices

CLAIMING: dict[str, Any] = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}
EXACTLY = {"deviceClassName": "c"}
OPAQUE = {"opaque": {"driver": "a.b", "parameters": {}}}


def request(**more: Any) -> Edit:
    return {"spec.devices.requests[0].exactly": {**EXACTLY, **more}}


CLAIMS: list[Edit] = [
    {}, *each("spec.devices.requests", [{"name": "", "exactly": EXACTLY}], [{"name": "A_", "exactly": EXACTLY}], [{"name": "r", "exactly": EXACTLY}] * 2, [{"name": "r"}], [{"name": "r", "exactly": EXACTLY, "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}], [{"name": "r", "firstAvailable": []}], [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}] * 2}], [{"name": "r", "firstAvailable": [{"name": "A_", "deviceClassName": "A_"}]}], [{"name": "r", "firstAvailable": [{"name": f"s{n}", "deviceClassName": "c"} for n in range(9)]}], [{"name": f"r{n}", "exactly": EXACTLY} for n in range(33)]),
    request(deviceClassName=""), request(deviceClassName="A_"), request(allocationMode="Nope"), request(allocationMode="All"), request(allocationMode="All", count=1), request(count=0), request(count=-1), request(allocationMode="ExactCount", count=0), request(adminAccess=True), request(selectors=[{}]), request(selectors=[{"cel": {"expression": ""}}]), request(selectors=[{"cel": {"expression": "1"}}]), request(selectors=[{"cel": {"expression": "nope("}}]), request(selectors=[{"cel": {"expression": "true"}}] * 33), request(selectors=[{"cel": {"expression": "x" * 10_241}}]), request(selectors=[{"cel": {"expression": "device.driver == 'x'"}}]), request(tolerations=[{"operator": "Nope"}]), request(tolerations=[{"key": "a b", "operator": "Exists"}]), request(tolerations=[{"operator": "Equal"}]), request(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]), request(tolerations=[{"key": "a", "effect": "Nope"}]), request(tolerations=[{"key": "a", "operator": "Exists"}] * 17), request(capacity={"requests": {"a b": "1"}}), request(capacity={"requests": {"a": "1"}}),
    *({"spec.devices.constraints": [constraint]} for constraint in ({}, {"matchAttribute": "a.b/c"}, {"matchAttribute": ""}, {"matchAttribute": "c"}, {"matchAttribute": "A_/ c"}, {"matchAttribute": "/c"}, {"matchAttribute": "a.b/"}, {"matchAttribute": "a" * 64 + "/c"}, {"matchAttribute": "A.b/c"}, {"matchAttribute": "a/b/c"}, {"matchAttribute": "a.b/c", "requests": ["nope"]}, {"matchAttribute": "a.b/c", "requests": ["r", "r"]}, {"matchAttribute": "a.b/c", "requests": ["A_"]}, {"distinctAttribute": "a.b/c"}, {"distinctAttribute": "a.b/c", "matchAttribute": "a.b/c"}, {"matchAttribute": "a.b/" + "x" * 33})), {"spec.devices.constraints": [{"matchAttribute": "a.b/c"}] * 33},
    *({"spec.devices.config": [config]} for config in (OPAQUE, {}, {"opaque": {"driver": "", "parameters": None}}, {"opaque": {"driver": "A_", "parameters": {"a": 1}}}, {**OPAQUE, "requests": ["nope"]}, {**OPAQUE, "requests": ["r", "r"]}, {"opaque": {"driver": "a.b", "parameters": []}}, {"opaque": {"driver": "a.b", "parameters": {"a": "x" * 10_241}}}, {"opaque": {"driver": "x" * 64, "parameters": {}}})), {"spec.devices.config": [OPAQUE] * 33},
]
RESULT = {"request": "r", "driver": "a.b", "pool": "p", "device": "d"}
ALLOCATION = {"devices": {"results": [RESULT]}}
USER = {"resource": "pods", "name": "x", "uid": "u"}
tell_of("resourceclaims", "resource.k8s.io/v1/resourceclaims", CLAIMING, create=CLAIMS, states=[
    State(update=[{"spec.devices.requests[0].name": "s"}, {"metadata.labels.a": "b"}], status_update=[
        {"status.reservedFor": [USER]}, {"status.allocation": ALLOCATION}, {"status.allocation": ALLOCATION, "status.reservedFor": [USER, USER]}, {"status.allocation": ALLOCATION, "status.reservedFor": [{"resource": "", "name": "", "uid": ""}]}, {"status.allocation": ALLOCATION, "status.reservedFor": [{**USER, "apiGroup": "a b"}]}, {"status.allocation": ALLOCATION, "status.reservedFor": [{**USER, "uid": f"u{n}"} for n in range(257)]}, *({"status.allocation": {"devices": {"results": [{**RESULT, **more}]}}} for more in ({"request": ""}, {"request": "nope"}, {"driver": ""}, {"driver": "A_"}, {"pool": ""}, {"pool": "A_"}, {"pool": "a/b"}, {"pool": "x" * 254}, {"device": ""}, {"device": "A_"}, {"adminAccess": True}, {"shareID": "x"}, {"bindingConditions": ["a b"], "bindingFailureConditions": []})), {"status.allocation": {**ALLOCATION, "nodeSelector": {"nodeSelectorTerms": []}}}, {"status.allocation": {"devices": {"results": [RESULT], "config": [{"source": "", "opaque": OPAQUE["opaque"]}]}}}, {"status.allocation": {"devices": {"results": [RESULT], "config": [{"source": "Nope", "requests": ["nope"], "opaque": OPAQUE["opaque"]}]}}}, {"status.allocation": {"devices": {"results": [RESULT] * 33}}},
        {"status.devices": [{"driver": "a.b", "pool": "p", "device": "d"}]},
    ]),
    State(base={"metadata.finalizers": ["a.b/c"]}, status={"status.allocation": ALLOCATION, "status.reservedFor": [USER]}, status_update=[
        {"status.allocation": None}, {"status.allocation.devices.results[0].device": "e"}, {"status.reservedFor": []}, *({"status.devices": [{"driver": "a.b", "pool": "p", "device": "d", **more}]} for more in ({}, {"device": "nope"}, {"data": []}, {"data": {"a": "x" * 10_241}}, {"conditions": [{"type": "a b", "status": "Nope", "reason": "", "message": ""}]}, {"conditions": [{"type": f"A{n}", "status": "True", "reason": "x", "message": "", "lastTransitionTime": TIME} for n in range(9)]}, {"networkData": {"interfaceName": "x" * 257, "hardwareAddress": "x" * 129, "ips": ["x"]}}, {"networkData": {"ips": ["1.2.3.4/24", "1.2.3.4/24"]}}, {"networkData": {"ips": [f"1.2.3.{n}/24" for n in range(17)]}}, {"networkData": {"ips": ["01.2.3.4/24", "fd00:0::1/64"]}}, {"shareID": "x"})), {"status.devices": [{"driver": "a.b", "pool": "p", "device": "d"}] * 2},
    ], calls=[("DELETE", "?gracePeriodSeconds=0", None), ("PUT", "status", {"status.reservedFor": [USER, {**USER, "uid": "v"}]}), ("PUT", "status", {"status.reservedFor": []})]),
])
tell_of("resourceclaimtemplates", "resource.k8s.io/v1/resourceclaimtemplates", {"spec": CLAIMING}, create=[{}, {"spec.metadata.labels": {"a b": "c"}}, {"spec.spec.devices.requests[0].name": "A_"}, {"spec.metadata.name": "x"}], states=[State(update=[{"spec.metadata.labels.a": "b"}])])
tell_of("deviceclasses", "resource.k8s.io/v1/*deviceclasses", {"spec": {}}, create=[{}, {"metadata.name": "A_"}, *each("spec.selectors", [{}], [{"cel": {"expression": ""}}], [{"cel": {"expression": "1"}}], [{"cel": {"expression": "true"}}] * 33), *each("spec.config", [{}], [OPAQUE], [{"opaque": {"driver": "", "parameters": None}}], [OPAQUE] * 33), *each("spec.extendedResourceName", "", "a", "a b", "example.com/gpu", "kubernetes.io/x", "requests.example.com/x", "x" * 250 + ".com/x")], states=[State(update=[{"spec.selectors": [{}]}])])
SLICE: dict[str, Any] = {"spec": {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": "n", "devices": [{"name": "d"}]}}


def device(**more: Any) -> Edit:
    return {"spec.devices[0]": {"name": "d", **more}}


COUNTERS = [{"name": "s", "counters": {"c": {"value": "1"}}}]
tell_of("resourceslices", "resource.k8s.io/v1/*resourceslices", SLICE, create=[
    {}, {"metadata.name": "A_"}, *each("spec.driver", "", "A_", "x" * 64), *each("spec.pool", {}, {"name": "A_", "resourceSliceCount": 0, "generation": -1}, {"name": "a/b/c", "resourceSliceCount": 1, "generation": 0}, {"name": "x" * 254, "resourceSliceCount": 1, "generation": 0}), {"spec.nodeName": None}, {"spec.nodeName": "A_"}, {"spec.nodeName": ""}, {"spec.allNodes": True}, {"spec.allNodes": False}, {"spec.nodeName": None, "spec.allNodes": True}, {"spec.nodeName": None, "spec.nodeSelector": {"nodeSelectorTerms": []}}, {"spec.nodeName": None, "spec.nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 2}}, {"spec.nodeName": None, "spec.perDeviceNodeSelection": True}, {"spec.perDeviceNodeSelection": False}, {"spec.nodeName": None, "spec.perDeviceNodeSelection": True, **device(nodeName="n")}, {"spec.nodeName": None, "spec.perDeviceNodeSelection": True, **device(nodeName="n", allNodes=True)}, device(nodeName="n"),
    {"spec.devices[1]": {"name": "d"}}, device(name=""), device(name="A_"), {"spec.devices": [{"name": f"d{n}"} for n in range(129)]}, *(device(attributes=attributes) for attributes in ({"a": {}}, {"a": {"int": 1}}, {"a": {"int": 1, "bool": True}}, {"a b": {"int": 1}}, {"A_/b": {"int": 1}}, {"a.b/": {"int": 1}}, {"/b": {"int": 1}}, {"x" * 33: {"int": 1}}, {"a": {"string": "x" * 65}}, {"a": {"version": "x"}}, {"a": {"version": "1.0.0"}}, {"a": {"version": "1." * 40 + "0"}}, {"a": {"ints": []}}, {"a": {"ints": [1]}}, {"a": {"strings": ["x" * 65]}}, {"a": {"versions": ["x"]}}, {"a": {"bools": [True]}}, {f"a{n}": {"int": 1} for n in range(33)}, {"a": {"ints": list(range(49))}}, {"a.b/c/d": {"int": 1}})), *(device(capacity=capacity) for capacity in ({"a b": {"value": "1"}}, {"a": {"value": "1"}}, {"a": {"value": "1", "requestPolicy": {"default": "2"}}})),
    *(device(allowMultipleAllocations=True, capacity={"a": {"value": "10", "requestPolicy": policy}}) for policy in ({}, {"default": "11"}, {"default": "5"}, {"validValues": ["1"]}, {"default": "5", "validValues": ["1", "1", "20"]}, {"default": "1", "validValues": ["5", "1"]}, {"default": "1", "validRange": {"min": "2"}}, {"default": "1", "validRange": {"min": "1", "max": "20"}}, {"default": "2", "validRange": {"min": "1", "max": "10", "step": "3"}}, {"default": "1", "validRange": {}, "validValues": ["1"]}, {"default": "1", "validValues": [str(n) for n in range(1, 12)]})),
    *(device(taints=taints) for taints in ([{}], [{"key": "a b", "effect": "NoSchedule"}], [{"key": "a", "effect": "Nope"}], [{"key": "a", "value": "x y", "effect": "NoExecute"}], [{"key": "a", "effect": ""}], [{"key": "a", "effect": "NoSchedule"}] * 17, [{"key": "a", "effect": "None"}])), {"spec.sharedCounters": COUNTERS}, {"spec.devices": None, "spec.sharedCounters": COUNTERS}, {"spec.devices": None, "spec.sharedCounters": COUNTERS * 2}, {"spec.devices": None, "spec.sharedCounters": [{"name": "", "counters": {}}]}, {"spec.devices": None, "spec.sharedCounters": [{"name": "A_", "counters": {"a b": {"value": "1"}}}]}, {"spec.devices": None, "spec.sharedCounters": [{"name": f"s{n}", "counters": {"c": {"value": "1"}}} for n in range(9)]}, {"spec.devices": None, "spec.sharedCounters": [{"name": "s", "counters": {f"c{n}": {"value": "1"} for n in range(33)}}]},
    device(consumesCounters=[{"counterSet": "", "counters": {}}]), device(consumesCounters=[{"counterSet": "s", "counters": {"c": {"value": "1"}}}] * 2), device(consumesCounters=[{"counterSet": "A_", "counters": {"a b": {"value": "1"}}}]), device(bindsToNode=True), device(bindingConditions=["a"]), device(bindingConditions=["a b"], bindingFailureConditions=["c"]), device(bindingConditions=["a"], bindingFailureConditions=["a"]), device(bindingConditions=["a", "a"], bindingFailureConditions=["b"]), device(bindingConditions=[f"a{n}" for n in range(5)], bindingFailureConditions=["b"]), device(bindingFailureConditions=["b"]), device(bindingConditions=["a"], bindingFailureConditions=["b"]), {"spec.devices[0].attributes": {f"a{n}": {"ints": [1, 2]} for n in range(25)}},
], states=[State(update=[{"spec.nodeName": "m"}, {"spec.driver": "c.d"}, {"spec.pool.name": "q"}, {"spec.devices": []}, {"spec.pool.generation": -1}, {"spec.nodeName": None, "spec.allNodes": True}])])
