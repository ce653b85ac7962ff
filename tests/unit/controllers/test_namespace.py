"""Namespaces that end, and what they say while they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="namespace-controller,serviceaccount-controller", nodes=0)
    cluster.clock.hold()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.settle()
    yield cluster
    cluster.stop()


def condition(cluster: Cluster, kind: str) -> tuple[str, str, str]:
    cluster.settle()
    (found,) = (one for one in cluster.get("namespaces", "team")["status"]["conditions"] if one["type"] == kind)
    return found["status"], found["reason"], found["message"]


def is_there(cluster: Cluster) -> bool:
    cluster.settle()
    return any(one["metadata"]["name"] == "team" for one in cluster.list("namespaces"))


def pod(cluster: Cluster, **more: Any) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "team", **more},
            "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30, "containers": [{"name": "c", "image": "i"}]},
        }
    )


def test_pods_are_deleted_first(cluster: Cluster) -> None:
    pod(cluster, finalizers=["example.com/wait"])
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}})
    cluster.delete("namespaces", "team")
    assert condition(cluster, "NamespaceContentRemaining") == ("False", "ContentRemoved", "All content successfully removed")
    assert "deletionTimestamp" not in cluster.get("configmaps", "c", namespace="team")["metadata"]
    cluster.delete("pods", "p", namespace="team", gracePeriodSeconds=0)
    cluster.patch("pods", "p", {"metadata": {"finalizers": None}}, namespace="team")
    assert not is_there(cluster)


def test_a_pod_that_outlives_its_grace_period_is_unexpected(cluster: Cluster) -> None:
    pod(cluster)
    cluster.delete("namespaces", "team")
    assert condition(cluster, "NamespaceDeletionContentFailure")[0] == "False"
    cluster.clock.advance(seconds=31)
    assert condition(cluster, "NamespaceDeletionContentFailure") == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: team for gvr: "
        "/v1, Resource=pods",
    )
    cluster.delete("pods", "p", namespace="team", gracePeriodSeconds=0)
    assert not is_there(cluster)


def test_a_refused_deletion_shows_in_the_conditions_and_is_retried(cluster: Cluster) -> None:
    admission = "admissionregistration.k8s.io/v1"
    cluster.create(
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "keep"},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["secrets"]}
                    ]
                },
                "validations": [{"expression": "false"}],
            },
        }
    )
    cluster.create(
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "keep"},
            "spec": {"policyName": "keep", "validationActions": ["Deny"]},
        }
    )
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team"}})
    cluster.delete("namespaces", "team")
    assert condition(cluster, "NamespaceDeletionContentFailure") == (
        "True",
        "ContentDeletionFailed",
        'Failed to delete all resource types, 1 remaining: secrets "Unknown" is forbidden: ValidatingAdmissionPolicy '
        "'keep' with binding 'keep' denied request: failed expression: false",
    )
    cluster.delete("validatingadmissionpolicybindings", "keep")
    cluster.clock.advance(minutes=20)
    assert not is_there(cluster)


def test_an_unavailable_api_service_keeps_a_namespace(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1.metrics.example.com"},
            "spec": {
                "group": "metrics.example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"namespace": "default", "name": "absent"},
                "insecureSkipTLSVerify": True,
            },
        }
    )
    cluster.settle()
    cluster.delete("namespaces", "team")
    assert condition(cluster, "NamespaceDeletionDiscoveryFailure") == (
        "True",
        "DiscoveryFailed",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "metrics.example.com/v1: stale GroupVersion discovery: metrics.example.com/v1",
    )
    cluster.delete("apiservices", "v1.metrics.example.com")
    assert not is_there(cluster)


def test_other_finalizers_stay(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "mine"},
            "spec": {"finalizers": ["kubernetes", "example.com/mine"]},
        }
    )
    cluster.delete("namespaces", "mine")
    cluster.settle()
    assert cluster.get("namespaces", "mine")["spec"]["finalizers"] == ["example.com/mine"]
