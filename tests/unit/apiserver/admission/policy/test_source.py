"""When policies are read and compiled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube.apiserver.admission.policy.source import PolicySource

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"


class Objects:
    """Policies and bindings of a cluster, and how often they were read."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {POLICIES: {}, BINDINGS: {}}
        self.revision = 0
        self.reads = 0

    def put(self, plural: str, name: str, **spec: Any) -> None:
        self.revision += 1
        self.objects[plural][name] = {"metadata": {"name": name}, "spec": spec}

    def last_change(self, group: str, plural: str) -> int:
        return self.revision

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        self.reads += 1
        return iter(self.objects[plural].values())


@pytest.fixture
def cluster() -> Any:
    return Objects()


def test_policy_is_active_only_with_a_binding(cluster: Any) -> None:
    source: PolicySource[str] = PolicySource(POLICIES, BINDINGS, lambda spec: spec["own"])
    cluster.put(POLICIES, "alone", own="alone")
    cluster.put(BINDINGS, "early", policyName="late")
    assert source.hooks(cluster) == []
    cluster.put(POLICIES, "late", own="late")
    cluster.put(BINDINGS, "second", policyName="late", matchResources={})
    (hook,) = source.hooks(cluster)
    assert (hook.name, hook.evaluator, [binding.name for binding in hook.bindings]) == ("late", "late", ["early", "second"])
    assert [binding.criteria is None for binding in hook.bindings] == [True, False]


def test_policies_are_reread_only_after_changes(cluster: Any) -> None:
    source: PolicySource[str] = PolicySource(POLICIES, BINDINGS, lambda spec: "")
    cluster.put(POLICIES, "p")
    cluster.put(BINDINGS, "b", policyName="p")
    first = source.hooks(cluster)
    reads = cluster.reads
    assert source.hooks(cluster) is first
    assert cluster.reads == reads
    cluster.put(POLICIES, "p", failurePolicy="Ignore")
    (hook,) = source.hooks(cluster)
    assert not hook.fails


def test_cel_is_not_imported_without_bindings() -> None:
    code = (
        "import sys, fakekube\n"
        "cluster = fakekube.Cluster(profile='apiserver')\n"
        "cluster.create({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}})\n"
        "print([name for name in sys.modules if name.startswith(('fakekube.apimachinery.cel', 'fakekube.apiserver.admission.policy.'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['fakekube.apiserver.admission.policy.plugins']"
