"""Plugins that are off by default, and the flags that switch them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiserver.auth.options import OptionError
from fakekube.controllers.client import ApiError


def cluster(*plugins: str, **annotations: str) -> Cluster:
    made = Cluster(profile="apiserver", enable_admission_plugins=plugins)
    metadata = {"annotations": {f"scheduler.alpha.kubernetes.io/{name}": text for name, text in annotations.items()}}
    made.patch("namespaces", "default", {"metadata": metadata})
    return made


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", **spec.pop("container", {})}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def refusal(made: Cluster, obj: dict[str, Any], code: int = 403) -> str:
    with pytest.raises(ApiError) as caught:
        made.create(obj)
    assert caught.value.code == code
    return str(caught.value)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"enable_admission_plugins": ["Nope"]}, 'enable-admission-plugins plugin "Nope" is unknown'),
        ({"disable_admission_plugins": "PodSecurity,Nope"}, 'disable-admission-plugins plugin "Nope" is unknown'),
        (
            {"enable_admission_plugins": ["A"], "disable_admission_plugins": ["A"]},
            'enable-admission-plugins plugin "A" is unknown',
        ),
        (
            {"enable_admission_plugins": "AlwaysDeny", "disable_admission_plugins": "AlwaysDeny"},
            "[AlwaysDeny] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
    ],
)
def test_unknown_plugin_flags_are_rejected(flags: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        Cluster(profile="apiserver", **flags)
    assert str(caught.value) == problem


def test_disabled_plugins_do_not_run() -> None:
    quiet = Cluster(profile="apiserver", disable_admission_plugins="DefaultTolerationSeconds,Priority")
    spec = quiet.create(pod())["spec"]
    assert "tolerations" not in spec and "priority" not in spec


def test_service_account_plugin_without_controllers() -> None:
    problem = refusal(cluster("ServiceAccount"), pod())
    assert "error looking up service account default/default" in problem


def test_always_deny() -> None:
    made = Cluster(profile="apiserver", enable_admission_plugins="AlwaysDeny")
    assert refusal(made, pod()) == 'pods "p" is forbidden: admission control is denying all modifications'


def test_always_pull_images() -> None:
    made = cluster("AlwaysPullImages")
    volumes = [{"name": "v", "image": {"reference": "x"}}]
    spec = made.create(pod(container={"imagePullPolicy": "Never"}, volumes=volumes))["spec"]
    assert (spec["containers"][0]["imagePullPolicy"], spec["volumes"][0]["image"]["pullPolicy"]) == ("Always", "Always")
    made.patch("pods", "p", {"metadata": {"labels": {"a": "b"}}})


def test_limit_pod_hard_anti_affinity_topology() -> None:
    def affinity(key: str) -> dict[str, Any]:
        term = {"labelSelector": {}, "topologyKey": key}
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    made = cluster("LimitPodHardAntiAffinityTopology")
    problem = refusal(made, pod(affinity=affinity("zone")))
    assert problem.endswith("has TopologyKey zone but only key kubernetes.io/hostname is allowed")
    made.create(pod(affinity=affinity("kubernetes.io/hostname")))


def test_extended_resource_toleration() -> None:
    amounts = {"example.com/gpu": "1", "cpu": "1"}
    spec = cluster("ExtendedResourceToleration").create(pod(container={"resources": {"requests": amounts, "limits": amounts}}))[
        "spec"
    ]
    assert {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]


def test_namespace_auto_provision() -> None:
    made = cluster("NamespaceAutoProvision", "NamespaceExists")
    made.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, namespace="new")
    namespace = made.get("namespaces", "new")
    assert (namespace["status"], namespace["spec"]) == ({"phase": "Active"}, {"finalizers": ["kubernetes"]})


@pytest.mark.parametrize(
    ("selector", "asked", "expected"),
    [
        ("a=b", {}, {"a": "b"}),
        (" a = b ,c=d", {"z": "y"}, {"a": "b", "c": "d", "z": "y"}),
        ("a=b", {"a": "x"}, 'pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector'),
        ("a=b=c", {}, "invalid selector: [a b c]"),
    ],
)
def test_pod_node_selector(selector: str, asked: dict[str, str], expected: Any) -> None:
    made = cluster("PodNodeSelector", **{"node-selector": selector})
    if isinstance(expected, dict):
        assert made.create(pod(nodeSelector=asked))["spec"]["nodeSelector"] == expected
    else:
        assert refusal(made, pod(nodeSelector=asked), 500 if "invalid" in expected else 403) == expected


def test_pod_toleration_restriction() -> None:
    wide, narrow = {"key": "k", "operator": "Exists"}, {"key": "k", "operator": "Equal", "value": "v"}
    made = cluster("PodTolerationRestriction", defaultTolerations=json.dumps([wide]))
    kept = made.create(pod(tolerations=[narrow]))["spec"]["tolerations"]
    assert wide in kept and narrow not in kept
    problem = "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
    for allowed in ([narrow], [None]):  # for Go, null is a toleration with empty fields
        made = cluster("PodTolerationRestriction", tolerationsWhitelist=json.dumps(allowed))
        assert refusal(made, pod(tolerations=[wide]), 500) == problem


def test_deny_service_external_ips() -> None:
    made = cluster("DenyServiceExternalIPs")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "externalIPs": ["1.2.3.4"]},
    }
    assert refusal(made, service) == 'services "s" is forbidden: Use of external IPs is denied by admission control'


def test_owner_references_permission_enforcement() -> None:
    made = cluster("OwnerReferencesPermissionEnforcement")
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]},
        {"apiGroups": ["apps"], "resources": ["deployments/finalizers"], "verbs": ["update"]},
    ]
    group = "rbac.authorization.k8s.io"
    made.create({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": rules})
    subjects = [{"kind": "User", "name": "alice", "apiGroup": group}]
    role = {"apiGroup": group, "kind": "Role", "name": "r"}
    made.create(
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {"name": "r"}, "roleRef": role, "subjects": subjects}
    )
    alice = made.as_user("alice")

    def owned(name: str, **owner: Any) -> dict[str, Any]:
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "o", "uid": "u", **owner}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [reference]}}

    alice.create(owned("free"))
    alice.create(owned("blocking", blockOwnerDeletion=True))
    with pytest.raises(ApiError, match="refers to a resource you can't set finalizers on: , <nil>"):
        alice.create(owned("pod", blockOwnerDeletion=True, apiVersion="v1", kind="Pod"))
    with pytest.raises(ApiError, match='no matches for kind "Nope" in version "v1"'):
        alice.create(owned("unknown", blockOwnerDeletion=True, apiVersion="v1", kind="Nope"))
    with pytest.raises(ApiError, match="cannot set an ownerRef on a resource you can't delete: , <nil>"):
        alice.patch("configmaps", "free", {"metadata": {"ownerReferences": []}})
