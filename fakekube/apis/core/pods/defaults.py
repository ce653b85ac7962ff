"""Defaults and conversion of pods and templates that depend on other fields; `schema` applies the constant defaults.

References to images are parsed as far as the default of imagePullPolicy needs it. The conversion keeps pairs of an old and a new
field equal and drops removed fields.

Specified by: pkg/apis/core/v1/defaults.go, zz_generated.defaults.go; pkg/util/parsers; the grammar of
github.com/distribution/reference; pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.core.pods.resources import container_sums
from fakekube.apis.core.pods.visitor import WITH_PATHS, containers
from fakekube.apis.core.pods.volumes import SOURCES
from fakekube.apis.validation.resource_lists import is_huge_page, is_overcommitable, is_pod_level
from fakekube.base.caches import cache_by_text
from fakekube.base.objects import Object


def default_pod_spec(spec: Object) -> None:
    """Sets the defaults of a PodSpec of a pod or a template."""
    sync_service_account(spec)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for field in WITH_PATHS:
        for container in spec.get(field) or ():
            if not container.get("imagePullPolicy"):
                container["imagePullPolicy"] = _default_pull_policy(container.get("image", ""))


def _default_volume(volume: dict[str, Any]) -> None:
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy") and features.current().enabled("ImageVolume"):
        image["pullPolicy"] = _default_pull_policy(image.get("reference", ""))
    if "emptyDir" not in volume and SOURCES.keys().isdisjoint(volume):
        volume["emptyDir"] = {}


#: The gate with which the resources of a whole pod are defaulted after admission, limits included.
FIX_DEFAULTING: Final = "PodLevelResourcesFixDefaulting"


def default_pod(emulation: Emulation, spec: Object) -> None:
    """Sets the defaults of the spec of a pod that templates do not have (SetDefaults_Pod)."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            _default_requests(container.get("resources"))
    if "resources" in spec and emulation.enabled("PodLevelResources") and not emulation.enabled(FIX_DEFAULTING):
        _default_huge_page_limits(spec, spec["resources"])
        default_pod_requests(spec, spec["resources"])
    if spec.get("hostNetwork"):
        _default_host_ports(spec)
    if emulation.enabled("H2CContainerProbe"):
        _default_http_protocols(spec)


def _default_http_protocols(spec: Object) -> None:
    """Sets the protocol of probes and hooks that send HTTP requests."""
    for container in (each for field in WITH_PATHS for each in spec.get(field) or ()):
        hooks = container.get("lifecycle") or {}
        probes = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        for handler in (*probes, hooks.get("postStart"), hooks.get("preStop")):
            if handler and handler.get("httpGet") is not None:
                handler["httpGet"].setdefault("protocol", "HTTP1")


def _default_requests(resources: dict[str, Any] | None) -> None:
    """Sets missing requests to the limits."""
    limits = resources.get("limits") if resources else None
    if resources and limits is not None:
        requests = resources.get("requests") or {}
        resources["requests"] = {**requests, **{name: limit for name, limit in limits.items() if name not in requests}}


def _default_host_ports(spec: Object) -> None:
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)


def _default_huge_page_limits(spec: Object, resources: dict[str, Any]) -> None:
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


def default_pod_level_resources(emulation: Emulation, spec: Object) -> None:
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


def _default_pod_limits(spec: Object, resources: dict[str, Any]) -> None:
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


def default_pod_requests(spec: Object, resources: dict[str, Any], *, without_limits: bool = False) -> None:
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


_COMPONENT = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_STEP = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_DIGEST = "([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):([0-9a-fA-F]{32,})"
_matches = re.compile(
    rf"(?:{_DOMAIN}/)?({_STEP}(?:/{_STEP})*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@{_DIGEST})?"
).fullmatch
_identifier_matches = re.compile("[a-f0-9]{64}").fullmatch

#: The length of each digest algorithm's output, in hexadecimal digits.
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}

_PATH_LENGTH = 255


@cache_by_text(1024)
def _is_latest(image: str) -> bool:
    """Reports whether the tag is `latest`, or both tag and digest are absent; False for an invalid reference."""
    if _identifier_matches(image):
        return False
    domain, remote = _split(image)
    repository = remote.partition(":")[0]
    found = _matches(f"{domain}/{remote}") if repository == repository.lower() else None
    if found is None or len(found[1]) > _PATH_LENGTH:
        return False
    tag, algorithm, digest = found[2], found[3], found[4]
    if algorithm is None:
        return tag in (None, "latest")
    readable = _DIGEST_LENGTHS.get(algorithm) == len(digest) and digest == digest.lower()
    return bool(readable and tag == "latest")


def _split(image: str) -> tuple[str, str]:
    """Returns the domain and the rest; without a domain, that of Docker Hub."""
    domain, slash, remote = image.partition("/")
    if not slash:
        return "docker.io", f"library/{image}"
    if domain == "index.docker.io":
        domain = "docker.io"
    elif domain != "localhost" and not set(domain) & {".", ":"} and domain == domain.lower():
        return "docker.io", image
    if domain == "docker.io" and "/" not in remote:
        remote = f"library/{remote}"
    return domain, remote


def _default_pull_policy(image: str) -> str:
    return "Always" if _is_latest(image) else "IfNotPresent"


#: The first minor that drops old annotations when an object is written, after its managers are known; older ones drop them
#: when it is decoded.
DROPS_ON_WRITES_SINCE: Final = 37
#: Annotations that had the init containers before there was a field for them.
_OLD_ANNOTATIONS = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{what}" for stage in ("alpha", "beta") for what in ("s", "-statuses")
)


def sync_service_account(spec: dict[str, Any]) -> None:
    """Sets both serviceAccountName and serviceAccount; serviceAccountName wins."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def raise_grace_period(spec: dict[str, Any]) -> None:
    """Sets a negative grace period to one second, in pods but not in templates."""
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1


def sync_pod_ips(status: dict[str, Any]) -> None:
    """Sets podIP and podIPs to match; if they differ, only podIP is kept."""
    one, all_ = status.get("podIP"), status.get("podIPs")
    if one and (not all_ or all_[0].get("ip", "") != one):
        status["podIPs"] = [{"ip": one}]
    elif all_ and not one and all_[0].get("ip"):
        status["podIP"] = all_[0]["ip"]


def drop_old_annotations(meta: dict[str, Any]) -> None:
    annotations = meta.get("annotations")
    if annotations and not _OLD_ANNOTATIONS.isdisjoint(annotations):
        meta["annotations"] = {key: value for key, value in annotations.items() if key not in _OLD_ANNOTATIONS}
