"""What objects use of quotas."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiserver.admission.resource_quota import Evaluator, evaluator_for, matches

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def meter(plural: str, group: str = "") -> Evaluator:
    found = evaluator_for(group, plural)
    assert found is not None
    return found


def used(plural: str, obj: dict[str, Any], group: str = "") -> dict[str, str]:
    return {name: str(amount) for name, amount in meter(plural, group).usage(obj, NOW).items()}


def pod(*containers: dict[str, Any], meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    named = [{"name": f"c{index}", **container} for index, container in enumerate(containers)]
    return {"metadata": meta or {}, "spec": {"containers": named, **spec}}


def asking(side: str = "requests", **amounts: str) -> dict[str, Any]:
    return {"resources": {side: {name.replace("_", "/"): amount for name, amount in amounts.items()}}}


def test_events_are_not_counted() -> None:
    assert evaluator_for("", "events") is evaluator_for("events.k8s.io", "events") is None


def test_other_objects_are_counted() -> None:
    assert used("configmaps", {}) == {"count/configmaps": "1", "configmaps": "1"}
    assert used("widgets", {}, "example.com") == {"count/widgets.example.com": "1"}
    assert meter("widgets", "example.com").matches_resource("count/widgets.example.com")
    assert not meter("widgets", "example.com").matches_resource("widgets")


def test_a_pod_uses_the_requests_and_limits_of_its_containers() -> None:
    both = pod(asking(cpu="100m", memory="1Gi"), asking(cpu="200m", **{"example.com_gpu": "1"}))
    assert used("pods", both) == {
        "count/pods": "1", "pods": "1", "cpu": "300m", "requests.cpu": "300m", "memory": "1Gi", "requests.memory": "1Gi",
        "requests.example.com/gpu": "1",
    }  # fmt: skip
    assert used("pods", pod(asking("limits", cpu="1"))) == {"count/pods": "1", "pods": "1", "limits.cpu": "1"}


def test_init_containers_count_by_their_maximum() -> None:
    largest = pod(asking(cpu="1"), initContainers=[{"name": "i", **asking(cpu="3")}, {"name": "j", **asking(cpu="2")}])
    assert used("pods", largest)["cpu"] == "3"
    sidecar = pod(asking(cpu="1"), initContainers=[{"name": "i", "restartPolicy": "Always", **asking(cpu="3")}])
    assert used("pods", sidecar)["cpu"] == "4"


def test_overhead_and_pod_level_resources() -> None:
    assert used("pods", pod(asking(cpu="1"), overhead={"cpu": "10m"}))["cpu"] == "1010m"
    assert used("pods", pod(asking(cpu="1"), resources={"requests": {"cpu": "5"}}))["cpu"] == "5"


def test_a_resized_pod_uses_the_maximum_of_spec_and_status() -> None:
    resized = pod(asking(cpu="1"))
    resized["status"] = {
        "containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}]
    }
    assert used("pods", resized)["cpu"] == "3"
    resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    assert used("pods", resized)["cpu"] == "9"
    resized["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert used("pods", resized)["cpu"] == "3"


@pytest.mark.parametrize(
    "over",
    [
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Failed"}},
        {"metadata": {"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}},
    ],
)
def test_a_terminated_pod_uses_only_object_counts(over: dict[str, Any]) -> None:
    assert used("pods", {**pod(asking(cpu="1")), **over}) == {"count/pods": "1"}


def test_a_terminating_pod_still_uses_resources() -> None:
    going = pod(asking(cpu="1"), meta={"deletionTimestamp": "2025-12-31T23:59:59Z", "deletionGracePeriodSeconds": 30})
    assert used("pods", going)["cpu"] == "1"


@pytest.mark.parametrize(
    ("spec", "ports", "balancers"),
    [
        ({"type": "ClusterIP", "ports": [{}]}, "0", "0"),
        ({"type": "NodePort", "ports": [{}, {}]}, "2", "0"),
        ({"type": "LoadBalancer", "ports": [{}, {}]}, "2", "1"),
        ({"type": "LoadBalancer", "ports": [{"nodePort": 1}, {}], "allocateLoadBalancerNodePorts": False}, "1", "1"),
    ],
)
def test_services(spec: dict[str, Any], ports: str, balancers: str) -> None:
    assert used("services", {"spec": spec}) == {
        "count/services": "1", "services": "1", "services.nodeports": ports, "services.loadbalancers": balancers,
    }  # fmt: skip


def test_claims_use_storage_of_their_storage_class() -> None:
    claim = {"metadata": {}, "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1.5"}}}}
    assert used("persistentvolumeclaims", claim) == {
        "count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "2",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1", "gold.storageclass.storage.k8s.io/requests.storage": "2",
    }  # fmt: skip
    claim["status"] = {"allocatedResources": {"storage": "5"}}
    assert used("persistentvolumeclaims", claim)["requests.storage"] == "5"


def test_device_claims_use_the_maximum_of_their_alternatives() -> None:
    options = [
        {"deviceClassName": "a", "allocationMode": "ExactCount", "count": 2},
        {"deviceClassName": "a", "allocationMode": "ExactCount", "count": 3},
        {"deviceClassName": "b", "allocationMode": "All"},
    ]
    claim = {"spec": {"devices": {"requests": [{"firstAvailable": options}, {"exactly": options[0]}]}}}
    assert used("resourceclaims", claim, "resource.k8s.io") == {
        "count/resourceclaims.resource.k8s.io": "1", "a.deviceclass.resource.k8s.io/devices": "5",
        "b.deviceclass.resource.k8s.io/devices": "32",
    }  # fmt: skip


PLAIN, GUARANTEED = pod({}), pod({"resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}})
URGENT, SHORT = pod({}, priorityClassName="high"), pod({}, activeDeadlineSeconds=0)


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ({"scopes": ["BestEffort"]}, PLAIN, GUARANTEED),
        ({"scopes": ["NotBestEffort"]}, GUARANTEED, PLAIN),
        ({"scopes": ["Terminating"]}, SHORT, PLAIN),
        ({"scopes": ["NotTerminating"]}, PLAIN, SHORT),
        ({"scopes": ["BestEffort", "Terminating"]}, SHORT, PLAIN),
        ({"scopes": ["PriorityClass"]}, URGENT, PLAIN),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
            URGENT,
            PLAIN,
        ),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]}},
            PLAIN,
            URGENT,
        ),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}}, PLAIN, URGENT),
    ],
)
def test_scopes(scope: dict[str, Any], inside: dict[str, Any], outside: dict[str, Any]) -> None:
    assert matches({"spec": scope}, meter("pods"), inside)
    assert not matches({"spec": scope}, meter("pods"), outside)


def test_scopes_of_pods_do_not_match_other_objects() -> None:
    assert matches({"spec": {}}, meter("services"), {"spec": {}})
    assert not matches({"spec": {"scopes": ["BestEffort"]}}, meter("services"), {"spec": {}})


def test_required_resources_of_containers() -> None:
    missing = meter("pods").constraints(["pods", "requests.cpu", "limits.memory"], pod({}, asking(cpu="1")))
    assert missing == "must specify limits.memory for: c0,c1; requests.cpu for: c0"
    assert meter("pods").constraints(["requests.cpu"], pod({}, resources={"requests": {"cpu": "1"}})) == ""


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=5))
def test_sums_are_exact(millis: list[int]) -> None:
    together = pod(*(asking(cpu=f"{amount}m") for amount in millis))
    assert meter("pods").usage(together, NOW)["cpu"].milli_value() == sum(millis)
