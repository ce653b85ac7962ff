"""Writes of the kinds that only a server with all gates and APIs has, as in `rules_metadata`, and the rules of those that stand in no other table."""

from __future__ import annotations

from typing import Any

from tests.differential.rule_tables import Edit, State, each, tell
from tests.differential.scenarios import rules_alpha, rules_newer, rules_podgroups
from tests.differential.scenarios.rules_metadata import register

# fmt: off

CANDIDATE = {
    "spec": {"leaseName": "l", "binaryVersion": "1.37.0", "emulationVersion": "1.37.0", "strategy": "OldestEmulationVersion"}
}
OBJECTS: dict[str, dict[str, Any]] = {
    "certificates.k8s.io/v1/clustertrustbundles": dict(rules_newer.BUNDLE),
    "coordination.k8s.io/v1beta1/namespaces/leasecandidates": CANDIDATE,
    "internal.apiserver.k8s.io/v1alpha1/storageversions": {"metadata": {"name": "$NS.a"}, "spec": {}},
    "lifecycle.k8s.io/v1alpha1/namespaces/evictionrequests": rules_alpha.ASKED,
    "lifecycle.k8s.io/v1alpha1/namespaces/evictions": rules_alpha.EVICTION,
    "resource.k8s.io/v1/devicetaintrules": dict(rules_newer.TAINT),
    "resource.k8s.io/v1alpha3/resourcepoolstatusrequests": {"spec": {"driver": "a.b"}},
    "scheduling.k8s.io/v1alpha3/namespaces/compositepodgroups": dict(rules_podgroups.COMPOSITE),
    "scheduling.k8s.io/v1beta1/namespaces/podgroups": dict(rules_podgroups.GROUP),
    "scheduling.k8s.io/v1beta1/namespaces/workloads": dict(rules_podgroups.WORKLOAD),
    "storagemigration.k8s.io/v1/storageversionmigrations": {"spec": {"resource": {"resource": "configmaps"}}},
}

for place, body in OBJECTS.items():
    version, _, plural = place.rpartition("/")
    collection = f"/apis/{version}/{plural}"
    register(plural, collection.replace("/namespaces/", "/namespaces/$NS/"), body, __name__)

VERSIONS = ("", "1", "1.37", "v1.37.0", "1.037.0", "1.37.0-alpha.1", "1.37.0-01", "1.37.0-", "1.37.0+a", "1.37.0+", "1.37.1", "1.36.9", "0.0.0", "1.37.0-a_b", "99999999999999999999.0.0")
CANDIDATES: list[Edit] = [
    {"metadata.name": "A_.b"}, {"metadata.name": "a b"}, *each("spec.leaseName", None, "", "m"), *each("spec.strategy", None, "", "Nope", "a.b/C", "a b/c", "a/b/c"),
    *each("spec.emulationVersion", None, *VERSIONS), *each("spec.binaryVersion", None, *VERSIONS), {"spec.emulationVersion": None, "spec.strategy": "a.b/C"}, {"spec.emulationVersion": "x", "spec.binaryVersion": "y"}, {"spec": {}}, {"spec": None},
]
tell("rules_of_leasecandidates", "coordination.k8s.io/v1beta1/leasecandidates", CANDIDATE, create=CANDIDATES, states=[State(update=CANDIDATES)], module=__name__)

POOL: dict[str, Any] = {"driver": "a.b", "poolName": "p", "generation": 1}
PARTITION = {"attribute": "a.b/c", "type": "t", "total": 0, "allocatable": 0}
CAPACITY = {"name": "n", "total": "1", "consumed": "0", "available": "1"}
DONE = {"type": "Complete", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
REQUESTS: list[Edit] = [
    *each("spec.driver", None, "", "A.B", "A_", "a" * 64, ".".join(["a" * 60] * 5)), *each("spec.poolName", "", "p", "a/B_", "a//b", "a" * 254), *each("spec.limit", 0, 1, 1000, 1001, -1, None),
    *each("spec.defaultPartitionTypeAttribute", "", "a.b/c", "c", "a_b/c", "a.b/c-d", "a.b/"), {"spec": {}}, {"status": {"poolCount": 1}},
]
STATUSES: list[dict[str, Any]] = [
    {}, {"poolCount": 0}, {"poolCount": -1}, *({"poolCount": 1, "conditions": held} for held in ([DONE], [DONE, DONE], [{}], [{**DONE, "type": f"C{number}"} for number in range(11)])),
    *({"poolCount": 1, "pools": [{**POOL, name: value}]} for name, values in {
        "driver": ("", "A.B", "A_"), "poolName": ("", "a/B_", "a//b"), "generation": (0, -1), "resourceSliceCount": (0, 1), "totalDevices": (-1, 0), "allocatedDevices": (-1, 0), "availableDevices": (-1, 0), "unavailableDevices": (-1, 0),
        "nodeName": ("", "A_", "n"), "validationError": ("", "a" * 256, "a" * 257),
        "partitionSummary": ([], [{}], [PARTITION], [PARTITION, PARTITION], [PARTITION, {**PARTITION, "type": "u"}], [{**PARTITION, "total": -1, "allocatable": -1}], [PARTITION] * 33, [{**PARTITION, "type": f"t{number}"} for number in range(33)]),
        "shareableSummary": ({}, {"fullyAvailableDevices": 0, "partiallyAvailableDevices": 0}, {"fullyAvailableDevices": -1, "partiallyAvailableDevices": -1}, *({"fullyAvailableDevices": 0, "partiallyAvailableDevices": 0, "capacity": items} for items in ([{}], [CAPACITY], [CAPACITY, CAPACITY], [CAPACITY] * 32, [CAPACITY] * 33))),
    }.items() for value in values),
    {"poolCount": 1, "pools": [POOL] * 1000}, {"poolCount": 1, "pools": [POOL] * 1001}, {"poolCount": 1, "pools": [{}]},
]
tell("rules_of_resourcepoolstatusrequests", "resource.k8s.io/v1alpha3/*resourcepoolstatusrequests", OBJECTS["resource.k8s.io/v1alpha3/resourcepoolstatusrequests"], create=REQUESTS, states=[
    State(update=[{"metadata.labels": {"a": "b"}}, *REQUESTS], status_update=[{"status": status} for status in STATUSES]),
    State(status={"status": {"poolCount": 1}}, update=[{"status": None}], status_update=[*each("status", None, {"poolCount": 1}, {"poolCount": 1, "pools": []}), {"metadata.labels": {"a": "b"}}]),
], module=__name__)
