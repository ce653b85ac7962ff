"""Admission plugins for pods that are off by default.

Specified by: plugin/pkg/admission/{alwayspullimages,antiaffinity,extendedresourcetoleration}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakekube.apimachinery.errors import status
from fakekube.apimachinery.errors.field import aggregate, not_supported
from fakekube.apis.core.pods import visitor
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation.resource_lists import is_extended
from fakekube.apis.well_known import LABEL_HOSTNAME
from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin
from fakekube.apiserver.admission.refusals import forbidden

PODS = ("", "pods")


class PodPlugin(Plugin):
    """A plugin for the creation and update of pods."""

    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS})


class AlwaysPullImages(PodPlugin):
    """Sets the pull policy Always, so that pods need the credentials for their images."""

    name = "AlwaysPullImages"

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if _adds_no_image(attributes):
            return
        spec = attributes.object["spec"]
        for container in visitor.containers(spec):
            container["imagePullPolicy"] = "Always"
        for volume in spec.get("volumes") or ():
            if volume.get("image") is not None:
                volume["image"]["pullPolicy"] = "Always"

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if _adds_no_image(attributes):
            return
        errors = [
            forbidden(attributes, aggregate([not_supported(path, policy, ("Always",))])).message
            for path, policy in _pull_policies(attributes.object["spec"])
            if policy != "Always"
        ]
        if errors:
            raise status.generic(500, "", errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _adds_no_image(attributes: Attributes) -> bool:
    """Reports whether an update adds no image."""
    if attributes.operation is not Operation.UPDATE or attributes.object is None or attributes.old is None:
        return False
    before = {container.get("image") for container in visitor.containers(attributes.old["spec"])}
    return all(container.get("image") in before for container in visitor.containers(attributes.object["spec"]))


def _pull_policies(spec: Object) -> Iterator[tuple[str, Any]]:
    """Yields the pull policies of a pod with their paths."""
    for container, path in visitor.containers_with_paths(spec, "spec"):
        yield f"{path}.imagePullPolicy", container.get("imagePullPolicy", "")
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{index}].image.pullPolicy", volume["image"].get("pullPolicy", "")


class LimitPodHardAntiAffinityTopology(PodPlugin):
    """Rejects required anti-affinity with a topology key other than the hostname."""

    name = "LimitPodHardAntiAffinityTopology"

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        affinity = (attributes.object["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            key = term.get("topologyKey", "")
            if key != LABEL_HOSTNAME:
                name = attributes.object["metadata"].get("name", "")
                problem = f"has TopologyKey {key} but only key {LABEL_HOSTNAME} is allowed"
                raise status.forbidden("", "pods", name, f"affinity.PodAntiAffinity.RequiredDuringScheduling {problem}")


class ExtendedResourceToleration(PodPlugin):
    """Adds tolerations for the extended resources that a pod requests."""

    name = "ExtendedResourceToleration"

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object["spec"]
        found = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        requests = ((container.get("resources") or {}).get("requests") or {} for container in found)
        for name in sorted({name for amounts in requests for name in amounts if is_extended(name)}):
            toleration = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            held = spec.get("tolerations") or []
            if toleration not in held:
                spec["tolerations"] = [*held, toleration]
