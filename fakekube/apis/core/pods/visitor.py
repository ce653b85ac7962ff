"""Iteration over the containers of a pod, of all types, in the order of the real server, and over the objects to which it refers.

Specified by: pkg/apis/core/pods/helpers.go (VisitContainersWithPath), pkg/api/pod/util.go (VisitContainers,
HasAPIObjectReference), pkg/api/v1/pod/util.go (VisitPodSecretNames, VisitPodConfigmapNames).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakekube.base.objects import StoredObject

CONTAINER_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")

Container = dict[str, Any]

#: The path of errors about a pod as a whole.
NIL_PATH = "[]"

#: The lists of containers in the order of checks that name paths, and in the order of the other ones.
WITH_PATHS = ("initContainers", "containers", "ephemeralContainers")


def containers(spec: Mapping[str, Any]) -> Iterator[Container]:
    """Yields all containers of a pod."""
    for field in WITH_PATHS:
        yield from spec.get(field) or ()


def uses_restart_rules(spec: dict[str, Any]) -> bool:
    """Reports whether a container has a restart policy that only ContainerRestartRules allow (containerRestartRulesInUse)."""
    if any(item.get("restartPolicy") for item in spec.get("containers") or ()):
        return True
    inits = spec.get("initContainers") or ()
    return any(item.get("restartPolicyRules") or item.get("restartPolicy", "Always") != "Always" for item in inits)


def restarts_all_containers(spec: Mapping[str, Any]) -> bool:
    """Reports whether a container, or an init container, has a rule that restarts all containers of the pod."""
    return any(
        rule.get("action") == "RestartAllContainers"
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def containers_with_paths(spec: dict[str, Any], path: str) -> Iterator[tuple[Container, str]]:
    """Yields all containers of a pod, each with its path; `path` is that of the spec ("" for none)."""
    prefix = f"{path}." if path else ""
    for field in WITH_PATHS:
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{prefix}{field}[{index}]"


def is_sidecar(container: Container) -> bool:
    """Reports whether this init container is restartable (a sidecar)."""
    return container.get("restartPolicy") == "Always"


def projected_sources(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the sources of all projected volumes."""
    for volume in spec.get("volumes") or ():
        yield from volume.get("projected", {}).get("sources") or ()


#: Volume sources that refer to a secret, by a reference or by name.
_SECRETS: Final = (
    ("azureFile", "secretName"), ("cephfs", "secretRef"), ("cinder", "secretRef"), ("flexVolume", "secretRef"),
    ("rbd", "secretRef"), ("secret", "secretName"), ("scaleIO", "secretRef"), ("iscsi", "secretRef"),
    ("storageos", "secretRef"), ("csi", "nodePublishSecretRef"),
)  # fmt: skip
#: Volume source → the name of the referenced objects in messages. Secrets and config maps are found by name before; other
#: sources refer to no API object.
_NEEDS_API: Final = (
    ("csi", "csidrivers (via CSI volumes)"), ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"), ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
)  # fmt: skip
_PROJECTED_NEEDS_API: Final = (
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"), ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
)  # fmt: skip


def secret_names(spec: dict[str, Any]) -> Iterator[str]:
    """Yields the name of every secret to which the spec of a pod refers."""
    yield from (item.get("name", "") for item in spec.get("imagePullSecrets") or ())
    yield from _of_containers(spec, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        yield from _secrets_of_volume(volume)
    yield from (source["secret"].get("name", "") for source in projected_sources(spec) if source.get("secret") is not None)


def _secrets_of_volume(volume: StoredObject) -> Iterator[str]:
    """Yields the name of the secret to which a volume of a pod refers directly."""
    for source, field in _SECRETS:
        value = (volume.get(source) or {}).get(field)
        if value:
            yield value if isinstance(value, str) else value.get("name", "")


def config_map_names(spec: dict[str, Any]) -> Iterator[str]:
    """Yields the name of every config map to which the spec of a pod refers."""
    yield from _of_containers(spec, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        if volume.get("configMap") is not None:
            yield volume["configMap"].get("name", "")
    sources = (source["configMap"] for source in projected_sources(spec) if source.get("configMap") is not None)
    yield from (source.get("name", "") for source in sources)


def _of_containers(spec: dict[str, Any], whole: str, key: str) -> Iterator[str]:
    """Yields the names in the environments of containers: of `whole` objects, or of objects with a `key`."""
    for container in containers(spec):
        for source in container.get("envFrom") or ():
            if source.get(whole) is not None:
                yield source[whole].get("name", "")
        for variable in container.get("env") or ():
            reference = (variable.get("valueFrom") or {}).get(key)
            if reference is not None:
                yield reference.get("name", "")


def claim_names(spec: StoredObject, pod: str) -> Iterator[str]:
    """Yields the names of the persistent volume claims of a pod, including those of its ephemeral volumes."""
    for volume in spec.get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            yield volume["persistentVolumeClaim"].get("claimName", "")
        elif volume.get("ephemeral") is not None:
            yield f"{pod}-{volume['name']}"


def api_object_reference(spec: dict[str, Any]) -> str:
    """Returns the kind of API objects to which the spec of a pod refers, for messages; "" if there are none, as in a
    mirror pod.
    """
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if next(secret_names(spec), None) is not None:
        return "secrets"
    if next(config_map_names(spec), None) is not None:
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        found = next((words for source, words in _NEEDS_API if volume.get(source) is not None), "")
        for projected in (volume.get("projected") or {}).get("sources") or ():
            found = found or next((words for source, words in _PROJECTED_NEEDS_API if projected.get(source) is not None), "")
        if found:
            return found
    return ""
