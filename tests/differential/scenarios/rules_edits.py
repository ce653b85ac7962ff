"""Edits that random ones found: each of them once was answered otherwise than by the real server."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.rule_tables import State, tell

# fmt: off
tell_of = functools.partial(tell, module="rules_edits")

TIME = "2026-01-01T00:00:00Z"
CONDITION = {"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": TIME}
CONDITIONS: list[dict[str, Any]] = [
    {"status.conditions": [CONDITION, CONDITION]},
    {"status.conditions": [{}]},
    *({"status.conditions": [{**CONDITION, name: value}]} for name, value in (
        ("type", ""), ("type", "a b"), ("status", ""), ("status", "Nope"), ("reason", ""), ("reason", "1"), ("reason", "R" * 1025), ("message", "m" * 32769), ("observedGeneration", -1), ("lastTransitionTime", None),
    )),
]
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
OWNERS: list[dict[str, Any]] = [
    *({"metadata.ownerReferences": [{**OWNER, "apiVersion": version}]} for version in ("v1/", "/", "/v1", "a/b/c", "", "v1", "a/", "a b")),
    *({"metadata.ownerReferences": [{**OWNER, name: ""}]} for name in ("kind", "name", "uid")),
    {"metadata.ownerReferences": [{}]},
    {"metadata.ownerReferences": [{**OWNER, "apiVersion": "v1/", "kind": ""}, {**OWNER, "kind": "Event"}, {**OWNER, "controller": True}, {**OWNER, "controller": True}]},
]

tell_of("config_maps", "v1/configmaps", {"data": {"a": "b"}}, create=OWNERS, states=[State(update=OWNERS)])
tell_of("roles", "rbac.authorization.k8s.io/v1/roles", {"rules": []}, create=OWNERS, states=[State(update=OWNERS)])

tell_of("csi_nodes", "storage.k8s.io/v1/*csinodes", {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}}, create=[
    {"status": {"storageHealth": [{"name": "d"}]}},
], states=[State(update=[{"status": {"storageHealth": [{"name": "d"}]}}], status_update=[{"status.storageHealth": [{"name": "A_"}]}, {"spec.drivers[0].nodeID": "m", "metadata.labels": {"a": "b"}}])])

tell_of("budgets", "policy/v1/poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": {}}}, states=[State(status_update=CONDITIONS)])
tell_of("policies", "admissionregistration.k8s.io/v1/*validatingadmissionpolicies", {"spec": {"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [
    {"apiGroups": ["a.b"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}]}}}, states=[State(status_update=CONDITIONS)])
tell_of("service_cidrs", "networking.k8s.io/v1/*servicecidrs", {"spec": {"cidrs": ["10.99.0.0/24"]}}, states=[State(status_update=CONDITIONS)])
tell_of("api_services", "apiregistration.k8s.io/v1/*apiservices", {"metadata": {"name": "v1.edits.example.com"}, "spec": {"group": "edits.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}}, states=[State(status_update=CONDITIONS)])

LEVEL = {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}
LEVELS: list[dict[str, Any]] = [
    *({"spec.type": kind, "spec.exempt": exempt, "spec.limited.limitResponse": response}
      for kind in ("Limited", "Exempt", "Nope", "") for exempt in (None, {}, {"lendablePercent": 101}) for response in ({"type": "Nope", "queuing": {"handSize": 6}}, {"type": "Queue"}, {"type": "Reject", "queuing": {}}, {"type": ""})),
    {"spec.type": "Exempt", "spec.limited": None},
    {"spec.type": "Nope", "spec.limited": None},
    {"spec.type": "Nope", "spec.limited": None, "spec.exempt": {"nominalConcurrencyShares": -1}},
]
tell_of("levels", "flowcontrol.apiserver.k8s.io/v1/*prioritylevelconfigurations", LEVEL, create=LEVELS, states=[State(update=LEVELS)])

CLAIM = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}
OPTION = {"name": "o", "deviceClassName": "c"}
BOTH = "spec.devices.requests[0].firstAvailable"
CONSTRAINTS: list[dict[str, Any]] = [{"spec.devices.constraints": [item]} for item in (
    {}, {"requests": []}, {"matchAttribute": "a.b/c"}, {"matchAttribute": "c"}, {"distinctAttribute": "a.b/c"}, {"distinctAttribute": "c"}, {"distinctAttribute": "100m"}, {"matchAttribute": "A.b/c", "distinctAttribute": "a-"},
    {"matchAttribute": "a.b/c", "distinctAttribute": "a.b/c"}, {"matchAttribute": "", "distinctAttribute": ""}, {"requests": ["A_"], "matchAttribute": "a.b/8"},
)]
CLAIMS: list[dict[str, Any]] = [
    *CONSTRAINTS,
    {BOTH: [OPTION]},
    {BOTH: [OPTION, OPTION]},
    {BOTH: [{**OPTION, "deviceClassName": "*"}]},
    {BOTH: [{**OPTION, "deviceClassName": ""}]},
    {BOTH: [{**OPTION, "name": "A_"}]},
    {BOTH: [{**OPTION, "allocationMode": "Nope"}]},
    {BOTH: [{**OPTION, "count": -1}]},
    {BOTH: [{**OPTION, "selectors": [{}]}]},
    {BOTH: [{**OPTION, "tolerations": [{"operator": "Nope"}]}]},
    {BOTH: [{**OPTION, "name": f"o{n}"} for n in range(9)]},
    {BOTH: [OPTION], "spec.devices.requests[0].exactly.deviceClassName": "A_"},
    {BOTH: [OPTION], "spec.devices.requests[0].exactly.allocationMode": "Nope"},
    {"spec.devices.requests": [{"name": "A_", "firstAvailable": []}, {"name": "A_", "firstAvailable": []}]},
    {"spec.devices.requests": [{"name": "r"}, {"name": "r"}]},
    {"spec.devices.config": [{}]},
    {"spec.devices.config": [{"opaque": {"driver": "a" * 254, "parameters": {}}}]},
    {"spec.devices.config": [{"opaque": {"driver": "a" * 64, "parameters": {}}}]},
]
tell_of("claims", "resource.k8s.io/v1/resourceclaims", CLAIM, create=CLAIMS)
RESULT = {"request": "r", "driver": "d.e", "pool": "p", "device": "d"}
tell_of("claim_statuses", "resource.k8s.io/v1/resourceclaims", CLAIM, states=[State(status_update=[
    *({"status.allocation": {"devices": {"results": [{**RESULT, "pool": pool}]}}} for pool in ("", "../x", "a/../b", "/", "a/", "A", "a" * 254, "a/" + "b" * 254, "é")),
    *({"status.allocation": {"devices": {"results": [{**RESULT, name: value}]}}} for name, value in (("request", ""), ("driver", ""), ("driver", "a" * 64), ("driver", "A_"), ("device", ""), ("device", "a" * 64), ("request", "r/x"), ("request", "x"))),
])])
SLICE = {"spec": {"driver": "d.e", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "allNodes": True}}
tell_of("slices", "resource.k8s.io/v1/*resourceslices", SLICE, create=[
    *({"spec.sharedCounters": [{"name": "k", "counters": {name: {"value": "1"}}}]} for name in ("a" * 64, "a" * 63, "A_", "", "é")),
    *({"spec.pool.name": pool} for pool in ("../x", "", "a/../b", "/", "a" * 254)),
    {"spec.sharedCounters": [{"name": "a" * 64, "counters": {"a": {"value": "1"}}}]},
    *({"spec.devices": [{"name": "d", "capacity": {name: {"value": "1"}}}]} for name in ("a" * 33, "a" * 64, "A.b/c", "", "a-")),
    *({"spec.devices": [{"name": "d", "attributes": {name: {"int": 1}}}]} for name in ("a" * 33, "a" * 64, "A.b/c", "", "a-", "a.b/" + "c" * 33)),
    *({"spec.devices": [{"name": "d", "attributes": {"a": value}}]} for value in ({}, {"string": "s" * 65}, {"version": "1"}, {"version": "1." * 40}, {"int": 1, "bool": True}, {"string": ""})),
])
tell_of("device_classes", "resource.k8s.io/v1/*deviceclasses", {"spec": {}}, create=[
    {"spec.config": [{"opaque": {"driver": driver, "parameters": {}}}]} for driver in ("a" * 254, "a" * 64, "A_", "", "a..b")
])

NODE = {"status": {"addresses": [{"type": "InternalIP", "address": "a"}, {"type": "InternalIP", "address": "a"}]}}
tell_of("nodes", "v1/*nodes", NODE, states=[State(update=[{}, {"metadata.labels": {"a": "b"}}, {"status.addresses": []}], status_update=[{}, {"status.addresses": []}], calls=[
    ("PATCH", "", {}), ("PATCH", "status", {}), ("PATCH", "status", {"status": {"addresses": []}}),
]), State(base={"status": {}, "spec.providerID": "a"}, update=[{"spec.providerID": ""}, {"spec.providerID": None}, {"spec.providerID": "b"}, {"spec.providerID": "a"}])])

ACCOUNTS: list[dict[str, Any]] = [{"secrets": value} for value in ([{"kind": "A"}], [{}], [{"name": "a"}, {"uid": "x"}], [{"name": "a"}], [{"name": "a"}, {"name": "a"}], [])]
tell_of("accounts", "v1/serviceaccounts", {"automountServiceAccountToken": False}, create=ACCOUNTS, states=[State(update=[*ACCOUNTS, *({**one, "metadata.managedFields": fields} for one in ACCOUNTS for fields in ([], [{}]))])])

POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
EQUAL = {"requests": AMOUNTS, "limits": AMOUNTS}
tell_of("qualities", "v1/pods", POD, create=[
    {"spec.resources": {}},
    {"spec.resources": {}, "spec.containers[0].resources": EQUAL},
    {"spec.resources": {"limits": {}, "requests": {}}, "spec.containers[0].resources": EQUAL},
    {"spec.resources": EQUAL},
    {"spec.resources": {"limits": AMOUNTS}},
    {"spec.resources": {"limits": {"cpu": "1"}}, "spec.containers[0].resources": EQUAL},
    {"spec.resources": {"requests": {"cpu": "1"}}, "spec.containers[0].resources": {"limits": AMOUNTS}},
    {"spec.resources": {"limits": {"cpu": "1", "memory": "0"}}},
    {"spec.resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}},
    {"spec.containers[0].resources": {"limits": {"example.com/x": "1"}}},
    {"spec.containers[0].resources": {"limits": {"cpu": "0", "memory": "0"}}},
    {"spec.containers[0].resources": {"limits": {"cpu": "0", "memory": "1Gi"}}},
    {"spec.containers[0].resources": EQUAL, "spec.containers[1]": {"name": "d", "image": "i"}},
    {"spec.containers[0].resources": EQUAL, "spec.initContainers": [{"name": "d", "image": "i", "resources": EQUAL}]},
    {"spec.containers[0].resources": EQUAL, "spec.initContainers": [{"name": "d", "image": "i"}]},
    {"spec.containers[0].resources": EQUAL, "status.qosClass": "BestEffort"},
])

SET = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}}}
VOLUME = {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
tell_of("stateful_sets", "apps/v1/statefulsets", SET, states=[State(base={"spec.volumeClaimTemplates": [VOLUME]}, calls=[
    ("PATCH", "", {"spec": {"volumeClaimTemplates": [VOLUME, {**VOLUME, "spec": {**VOLUME["spec"], "accessModes": []}}]}}),
], update=[{"spec.volumeClaimTemplates[0].spec.accessModes": []}, {"spec.volumeClaimTemplates[0].spec.selector": {}}, {"spec.volumeClaimTemplates": []}])])

GROUP = "edits.example.com"
CRD = {"metadata": {"name": f"widgets.{GROUP}"}, "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}}]}}
PROPERTY = "spec.versions[0].schema.openAPIV3Schema.properties.a"
tell_of("sets", "apiextensions.k8s.io/v1/*customresourcedefinitions", CRD, create=[
    {PROPERTY: {"type": "array", "x-kubernetes-list-type": "set", "items": items}} for items in (
        {"type": "string"}, {"type": "object"}, {"type": "object", "x-kubernetes-map-type": "atomic"}, {"type": "array", "items": {"type": "string"}}, {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}}, {"type": "integer", "nullable": True}, {"x-kubernetes-int-or-string": True}, {"type": "string", "default": "x"},
    )
])
