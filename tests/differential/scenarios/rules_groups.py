"""The rules of the kinds of the named groups other than batch, each shown by an edit of an object that is valid."""

from __future__ import annotations

import base64
import functools
from typing import Any

from tests.differential.rule_tables import State, tell

# fmt: off (tables: a row is a line)
tell_of = functools.partial(tell, module="rules_groups")

Edit = dict[str, Any]
TIME = "2026-01-01T00:00:00Z"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD: dict[str, Any] = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}


def each(path: str, *values: Any, **more: Any) -> list[Edit]:
    return [{path: value, **more} for value in values]


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

PEM = "-----BEGIN CERTIFICATE REQUEST-----\nMIHcMIGDAgEAMCExHzAdBgNVBAMMFm\n-----END CERTIFICATE REQUEST-----\n"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def block(kind: str, text: str, headers: str = "") -> str:
    return f"-----BEGIN {kind}-----\n{headers}{b64(text)}\n-----END {kind}-----\n"


#: A request for CN=a by an Ed25519 key.
REQUEST = "-----BEGIN CERTIFICATE REQUEST-----\nMIGIMDwCAQAwCTEHMAUGA1UEAwwAMCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAA\nAAAAAAAAAAAAAAAAAAAAAAAAoAAwBQYDK2VwA0EA\n-----END CERTIFICATE REQUEST-----\n"
