from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.printers.cluster import flow_order
from tests.unit.apimachinery.printers.rows import ago, cells

ADMISSION = "admissionregistration.k8s.io/v1"


def test_role_bindings() -> None:
    subjects = [
        {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g1"}, {"kind": "Group", "name": "g2"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]  # fmt: skip
    obj = {"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": subjects}
    for plural in ("rolebindings", "clusterrolebindings"):
        assert cells(f"rbac.authorization.k8s.io/v1/{plural}", obj) == ["x", "ClusterRole/view", "60m", "u", "g1, g2", "n/s"]


@pytest.mark.parametrize(
    ("conditions", "certificate", "expected"),
    [
        ([], "", "Pending"),
        (["Approved"], "", "Approved"),
        (["Approved"], "LS0=", "Approved,Issued"),
        (["Approved", "Denied"], "", "Denied"),
        (["Approved", "Failed"], "", "Approved,Failed"),
    ],
)
def test_certificate_signing_requests(conditions: list[str], certificate: str, expected: str) -> None:
    spec = {"signerName": "a/b", "username": "u", "expirationSeconds": 7200}
    obj = {"spec": spec, "status": {"conditions": [{"type": type_} for type_ in conditions], "certificate": certificate}}
    assert cells("certificates.k8s.io/v1/certificatesigningrequests", obj) == ["x", "60m", "a/b", "u", "120m", expected]


def test_webhook_configurations_and_policies() -> None:
    assert cells(f"{ADMISSION}/mutatingwebhookconfigurations", {"webhooks": [{}, {}]}) == ["x", 2, "60m"]
    spec = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{}]}
    assert cells(f"{ADMISSION}/validatingadmissionpolicies", {"spec": spec}) == ["x", 1, "v1/ConfigMap", "60m"]
    assert cells(f"{ADMISSION}/mutatingadmissionpolicies", {"spec": {"mutations": [{}, {}]}}) == ["x", 2, "<unset>", "60m"]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (None, "<unset>"),
        ({"name": "n"}, "*/n"),
        ({"name": "n", "namespace": "s"}, "s/n"),
        (
            {
                "selector": {
                    "matchLabels": {"b": "1", "a": "2"},
                    "matchExpressions": [{"key": "m", "operator": "In", "values": ["c", "b"]}],
                }
            },
            "&LabelSelector{MatchLabels:map[string]string{a: 2,b: 1,},"
            "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:m,Operator:In,Values:[c b],},},}",
        ),
    ],
)
def test_policy_bindings(reference: dict[str, Any] | None, expected: str) -> None:
    spec = {"policyName": "p"} | ({} if reference is None else {"paramRef": reference})
    assert cells(f"{ADMISSION}/validatingadmissionpolicybindings", {"spec": spec}) == ["x", "p", expected, "60m"]


def test_priority_classes_and_other_small_kinds() -> None:
    assert cells("scheduling.k8s.io/v1/priorityclasses", {"value": 7, "preemptionPolicy": "Never"}) == [
        "x",
        7,
        False,
        "60m",
        "Never",
    ]
    assert cells("node.k8s.io/v1/runtimeclasses", {"handler": "h"}) == ["x", "h", "60m"]
    assert cells("coordination.k8s.io/v1/leases", {"spec": {"holderIdentity": "me"}}) == ["x", "me", "60m"]
    assert cells("resource.k8s.io/v1/deviceclasses", {}) == ["x", "60m"]
    spec = {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}
    assert cells("resource.k8s.io/v1/resourceslices", {"spec": spec}) == ["x", "n", "d", "p", "60m"]


def test_resource_claims() -> None:
    path = "resource.k8s.io/v1/resourceclaims"
    assert cells(path, {})[1] == "pending"
    assert cells(path, {"status": {"allocation": {}}})[1] == "allocated"
    reserved: dict[str, Any] = {"status": {"allocation": {}, "reservedFor": [{}]}}
    assert cells(path, reserved)[1] == "allocated,reserved"
    assert cells(path, reserved, deletionTimestamp=ago(minutes=1))[1] == "deleted,allocated,reserved"


def test_flow_schemas() -> None:
    spec = {"priorityLevelConfiguration": {"name": "l"}, "matchingPrecedence": 77, "distinguisherMethod": {"type": "ByUser"}}
    obj = {"spec": spec, "status": {"conditions": [{"type": "Dangling", "status": "True"}]}}
    path = "flowcontrol.apiserver.k8s.io/v1/flowschemas"
    assert cells(path, obj) == ["x", "l", 77, "ByUser", "60m", "True"]
    assert cells(path, {}) == ["x", "", 0, "<none>", "60m", "?"]
    assert flow_order({"metadata": {"name": "x"}, **obj}) == (77, "x")


def test_priority_level_configurations() -> None:
    path = "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    assert cells(path, {"spec": {"type": "Exempt", "exempt": {}}}) == [
        "x",
        "Exempt",
        "<none>",
        "<none>",
        "<none>",
        "<none>",
        "60m",
    ]
    limited: dict[str, Any] = {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}
    assert cells(path, {"spec": {"type": "Limited", "limited": limited}})[2:6] == [5, "<none>", "<none>", "<none>"]
    limited["limitResponse"] = {"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 9}}
    assert cells(path, {"spec": {"type": "Limited", "limited": limited}})[2:6] == [5, 8, 2, 9]


def test_api_services() -> None:
    path = "apiregistration.k8s.io/v1/apiservices"
    condition = {"type": "Available", "status": "True", "reason": "Local"}
    assert cells(path, {"status": {"conditions": [condition]}}) == ["x", "Local", "True", "60m"]
    spec = {"service": {"namespace": "n", "name": "s"}}
    condition = {"type": "Available", "status": "False", "reason": "ServiceNotFound"}
    assert cells(path, {"spec": spec, "status": {"conditions": [condition]}}) == ["x", "n/s", "False (ServiceNotFound)", "60m"]
    assert cells(path, {"spec": spec})[2] == "Unknown"
