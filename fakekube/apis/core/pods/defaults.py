"""Defaults of pods and templates that depend on other fields; `schema` applies the constant ones.

Specified by: pkg/apis/core/v1/defaults.go, zz_generated.defaults.go.
"""

from __future__ import annotations

from typing import Any, Final

from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.core.pods.images import default_pull_policy
from fakekube.apis.core.pods.pod_resources import container_sums
from fakekube.apis.core.pods.v1_conversion import sync_service_account
from fakekube.apis.core.pods.visitor import containers
from fakekube.apis.core.pods.volumes import SOURCES
from fakekube.apis.validation.resource_lists import is_huge_page, is_overcommitable, is_pod_level

Spec = dict[str, Any]


def default_pod_spec(spec: Spec) -> None:
    """Sets the defaults of a PodSpec of a pod or a template."""
    sync_service_account(spec)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for container in containers(spec):
        if not container.get("imagePullPolicy"):
            container["imagePullPolicy"] = default_pull_policy(container.get("image", ""))


def _default_volume(volume: dict[str, Any]) -> None:
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = default_pull_policy(image.get("reference", ""))
    if "emptyDir" not in volume and not any(source in volume for source in SOURCES):
        volume["emptyDir"] = {}


#: The gate with which the resources of a whole pod are defaulted after admission, limits included.
FIX_DEFAULTING: Final = "PodLevelResourcesFixDefaulting"


def default_pod(emulation: Emulation, spec: Spec) -> None:
    """Sets the defaults of the spec of a pod that templates do not have (SetDefaults_Pod)."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            _default_requests(container.get("resources"))
    if "resources" in spec and emulation.enabled("PodLevelResources") and not emulation.enabled(FIX_DEFAULTING):
        _default_huge_page_limits(spec, spec["resources"])
        default_pod_requests(spec, spec["resources"])
    if spec.get("hostNetwork"):
        _default_host_ports(spec)


def _default_requests(resources: dict[str, Any] | None) -> None:
    """Sets missing requests to the limits."""
    limits = resources.get("limits") if resources else None
    if resources and limits is not None:
        requests = resources.get("requests") or {}
        resources["requests"] = {**requests, **{name: limit for name, limit in limits.items() if name not in requests}}


def _default_host_ports(spec: Spec) -> None:
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)


def _default_huge_page_limits(spec: Spec, resources: dict[str, Any]) -> None:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return
    missing = {
        name: str(amount)
        for name, amount in container_sums(spec, "limits").items()
        if is_huge_page(name) and name not in requests and name not in limits
    }
    if missing:
        resources["limits"] = {**limits, **missing}


def default_pod_level_resources(emulation: Emulation, spec: Spec) -> None:
    """Completes the resources of the whole pod, in a new dict (DefaultPodLevelResources)."""
    given = spec.get("resources")
    enabled = emulation.enabled("PodLevelResources") and emulation.enabled(FIX_DEFAULTING)
    if not enabled or not given or not (given.get("limits") or given.get("requests")):
        return
    resources = spec["resources"] = dict(given)
    _default_huge_page_limits(spec, resources)
    default_pod_requests(spec, resources, without_limits=True)
    _default_pod_limits(spec, resources)
    for field in ("limits", "requests"):
        if resources.get(field):
            resources[field] = dict(sorted(resources[field].items()))


def _default_pod_limits(spec: Spec, resources: dict[str, Any]) -> None:
    """Sets missing limits of the whole pod, of what all containers limit (defaultPodLevelLimits)."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    candidates = [name for name in requests if is_pod_level(name) and name not in limits]
    of_containers = [(container.get("resources") or {}).get("limits") or {} for container in containers(spec)]
    candidates = [name for name in candidates if all(name in one for one in of_containers)]
    sums = container_sums(spec, "limits") if candidates else {}
    for name in candidates:
        if name in sums:
            text = str(sums[name])
            limits = {**limits, name: requests[name] if parse(str(requests[name])) > parse(text) else text}
    if limits:
        resources["limits"] = limits


def default_pod_requests(spec: Spec, resources: dict[str, Any], *, without_limits: bool = False) -> None:
    """Sets missing requests of the whole pod to the sums of the containers' requests, or to the limits."""
    limits = resources.get("limits") or {}
    if not limits and not without_limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in container_sums(spec, "requests").items():
        if is_pod_level(name) and is_overcommitable(name):
            requests.setdefault(name, str(amount))
    for name, limit in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests
