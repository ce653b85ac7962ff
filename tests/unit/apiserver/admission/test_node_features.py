"""Changes of pods that only some nodes can follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.resource import Registry
from fakekube.apiserver.admission.chain import Attributes, Operation
from fakekube.apiserver.admission.nodes import NodeDeclaredFeatureValidator
from fakekube.apiserver.registry import builtin

PODS = Registry(builtin.resources()).get("", "v1", "pods")


@dataclass
class Services:
    """A cluster with some nodes."""

    nodes: dict[str, list[str]] = field(default_factory=lambda: {"old": [], "new": ["InPlacePodLevelResourcesVerticalScaling"]})

    def get(self, group: str, plural: str, namespace: str, name: str) -> Any:
        features = self.nodes.get(name)
        return None if features is None else {"status": {"declaredFeatures": features}}


@dataclass
class Context:
    services: Services = field(default_factory=Services)


def validate(old: dict[str, Any], new: dict[str, Any], node: str) -> str:
    """The error of a change of a pod on a node."""
    assert PODS is not None
    context: Any = Context()
    before, after = ({"metadata": {"name": "p"}, "spec": {**spec, "nodeName": node}} for spec in (old, new))
    try:
        NodeDeclaredFeatureValidator().validate(Attributes(PODS, "resize", "n", "p", Operation.UPDATE, after, before, context))
    except StatusError as error:
        assert error.code == 403
        return error.message.removeprefix('pods "p" is forbidden: ')
    return ""


POD = ({"resources": {"limits": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "2"}}})
CONTAINER = tuple({"initContainers": [{"name": "i", **spec}]} for spec in POD)
SIDECAR = tuple({"initContainers": [{"name": "i", "restartPolicy": "Always", **spec}]} for spec in POD)
REQUIRES = "pod update requires features {} which are not available on node {}"


@pytest.mark.parametrize(
    ("change", "node", "problem"),
    [
        (POD, "", ""),
        (POD, "new", ""),
        (POD, "old", REQUIRES.format("InPlacePodLevelResourcesVerticalScaling", '"old"')),
        (POD, "none", 'node "none" not found'),
        (CONTAINER, "new", REQUIRES.format("InPlacePodVerticalScalingInitContainers", '"new"')),
        (SIDECAR, "old", ""),
        ((POD[0], POD[0]), "none", ""),
    ],
)
def test_pod_changes_require_node_features(change: tuple[dict[str, Any], dict[str, Any]], node: str, problem: str) -> None:
    assert validate(*change, node) == problem
