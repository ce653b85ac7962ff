"""Texts of rules about fields behind feature gates, of the releases that have them (written by kube-apiserver's own code)."""

from __future__ import annotations

from typing import Any

from fakekube import Cluster

PODS = "/api/v1/namespaces/default/pods"
SCHEDULING = "scheduling.k8s.io/v1beta1"
GROUPS = f"/apis/{SCHEDULING}/namespaces/default"
CONTAINER = {"name": "main", "image": "example.com/main:1"}
POLICY: dict[str, Any] = {"basic": {}}


def answer(gates: dict[str, bool], path: str, body: dict[str, Any], **options: Any) -> dict[str, Any]:
    """What a server of 1.37 with the gates says of a new object."""
    with Cluster(version="1.37", feature_gates=gates, **options) as cluster:
        answered: dict[str, Any] = cluster.request("POST", path, body).json()
        return answered


def test_strategies_of_stateful_sets() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "updateStrategy": {"type": "Nope"}}
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    found = answer({"StatefulSetRecreateStrategy": True}, path, {"metadata": {"name": "s"}, "spec": spec})
    assert "'RollingUpdate', 'OnDelete', or 'Recreate'" in found["message"]


def test_stop_signals_need_an_operating_system() -> None:
    container = {**CONTAINER, "lifecycle": {"stopSignal": "SIGTERM"}}
    found = answer({"ContainerStopSignals": True}, PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    assert "may not be set for containers with empty `spec.os.name`" in found["message"]


def test_evicted_pods_have_no_group() -> None:
    responders = [{"name": "example.com/r", "priority": 1}]
    spec = {"containers": [CONTAINER], "schedulingGroup": {"podGroupName": "g"}, "evictionResponders": responders}
    gates = {"GenericWorkload": True, "EvictionRequestAPI": True}
    assert (
        "may not be set when evictionResponders is set"
        in answer(gates, PODS, {"metadata": {"name": "p"}, "spec": spec})["message"]
    )


def test_priorities_of_composite_groups_and_templates() -> None:
    gates = dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"), True)
    served = {"runtime_config": f"{SCHEDULING}=true"}
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": POLICY, "priority": 1}}
    served_group = {"runtime_config": "api/all=true"}
    path = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"
    assert "priority set in the composite pod group (1) must match" in answer(gates, path, group, **served_group)["message"]
    templates = [{"name": name, "schedulingPolicy": POLICY, "priority": index} for index, name in enumerate("ab")]
    workload = {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": templates}}
    assert "detected multiple priority configurations" in answer(gates, f"{GROUPS}/workloads", workload, **served)["message"]


def test_a_token_of_another_uid_is_warned_about_while_the_gate_is_off() -> None:
    with Cluster(version="1.36", feature_gates={"TokenRequestServiceAccountUIDValidation": False}) as cluster:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        cluster.request("POST", accounts, {"metadata": {"name": "robot"}})
        asked = {"metadata": {"uid": "00000000-0000-4000-8000-000000000001"}, "spec": {}}
        answered = cluster.request("POST", f"{accounts}/robot/token", asked)
        warning = answered.headers["Warning"]
        assert (
            "TokenRequestServiceAccountUIDValidation is not enabled. In the future, this will return a conflict error" in warning
        )
