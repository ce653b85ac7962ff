"""NodeDeclaredFeatureValidator: rejects changes of pods that need features which their node does not declare.

Specified by: plugin/pkg/admission/nodedeclaredfeatures, k8s.io/component-helpers/nodedeclaredfeatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fakekube.apis.core.pods import visitor
from fakekube.apis.validation.semantic_equality import same
from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin
from fakekube.apiserver.admission.refusals import forbidden
from fakekube.base.golang.quoting import go_quote

Spec = Mapping[str, Any]


def _changes_pod_resources(old: Spec, new: Spec) -> bool:
    return not same(old.get("resources"), new.get("resources"))


def _changes_init_containers(old: Spec, new: Spec) -> bool:
    """Reports whether the resources of a non-restartable init container change."""
    pairs = zip(old.get("initContainers") or (), new.get("initContainers") or (), strict=False)
    return any(not visitor.is_sidecar(one) and not same(one.get("resources"), other.get("resources")) for one, other in pairs)


#: The features that changes require, in the order of the error text.
_FEATURES: Mapping[str, Callable[[Spec, Spec], bool]] = {
    "InPlacePodLevelResourcesVerticalScaling": _changes_pod_resources,
    "InPlacePodVerticalScalingInitContainers": _changes_init_containers,
}


class NodeDeclaredFeatureValidator(Plugin):
    """See the module."""

    name = "NodeDeclaredFeatureValidator"
    operations = frozenset({Operation.UPDATE})
    resources = frozenset({("", "pods")})
    subresources = frozenset({"", "resize"})

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None and attributes.old is not None
        new, old = attributes.object["spec"], attributes.old["spec"]
        name = new.get("nodeName")
        if not name or new == old:
            return
        missing = list(_missing(attributes, name, old, new))
        if missing:
            problem = f"pod update requires features {', '.join(missing)} which are not available on node {go_quote(name)}"
            raise forbidden(attributes, problem)


def _missing(attributes: Attributes, name: str, old: Spec, new: Spec) -> Iterator[str]:
    """Returns the required features that the node does not declare. Raises StatusError 403 if the node does not
    exist."""
    required = [feature for feature, is_required in _FEATURES.items() if is_required(old, new)]
    if not required:
        return
    node = attributes.context.services.get("", "nodes", "", name)
    if node is None:
        raise forbidden(attributes, f"node {go_quote(name)} not found")
    declared = (node.get("status") or {}).get("declaredFeatures") or ()
    yield from (feature for feature in required if feature not in declared)
