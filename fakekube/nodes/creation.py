"""What keeps a kubelet from starting a pod or creating a container: volumes, variables, sub-paths, users.

A pod whose volumes cannot be mounted stays in ContainerCreating; a container that cannot be created waits with
CreateContainerConfigError. Both are tried again.

Specified by: pkg/kubelet/kubelet_pods.go (makeMounts, makeEnvironmentVariables), pkg/kubelet/kuberuntime/security_context.go
(verifyRunAsNonRoot), pkg/volume/configmap, pkg/volume/secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.golang.strconv import go_quote
from fakekube.controllers.objects import StoredObject

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.nodes.images.image import Image


#: Field of a source → (resource, kind).
_KEYED: Final = {
    "configMapKeyRef": ("configmaps", "ConfigMap"),
    "secretKeyRef": ("secrets", "Secret"),
    "configMapRef": ("configmaps", "ConfigMap"),
    "secretRef": ("secrets", "Secret"),
    "configMap": ("configmaps", "ConfigMap"),
    "secret": ("secrets", "Secret"),
}


def mount_error(pod: StoredObject, cluster: ClusterAccess) -> str:
    """Returns why the volumes of a pod cannot be mounted; "" if they can."""
    return next(_mount_errors(pod, cluster), "")


def _mount_errors(pod: StoredObject, cluster: ClusterAccess) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        sources = [volume, *((volume.get("projected") or {}).get("sources") or ())]
        for source in sources:
            for field in ("configMap", "secret"):
                if field in source:
                    problem = _missing(pod, field, source[field], cluster)
                    if problem:
                        yield f'MountVolume.SetUp failed for volume "{volume["name"]}" : {problem}'


def _missing(pod: StoredObject, field: str, source: StoredObject, cluster: ClusterAccess) -> str:
    """Returns what a source refers to and does not exist; "" if all exists, or is optional."""
    if source.get("optional"):
        return ""
    plural, kind = _KEYED[field]
    namespace, name = pod["metadata"]["namespace"], source.get("secretName") or source.get("name") or ""
    found = cluster.get("", plural, namespace, name)
    if found is None:
        return f'{plural.removesuffix("s")} "{name}" not found'
    known = {**(found.get("data") or {}), **(found.get("binaryData") or {})}
    for item in source.get("items") or ():
        if item["key"] not in known:
            return f"references non-existent {plural.removesuffix('s')} key: {item['key']}"
    if "key" in source and source["key"] not in known:
        return f"couldn't find key {source['key']} in {kind} {namespace}/{name}"
    return ""


def creation_error(
    pod: StoredObject, container: StoredObject, cluster: ClusterAccess, image: Image | None, environment: Mapping[str, str]
) -> str:
    """Returns why a container cannot be created; "" if it can.

    Args:
        pod: the pod.
        container: an item of its spec.
        cluster: access to ConfigMaps and Secrets.
        image: the image of the container; None if it is not known.
        environment: the variables of the container.
    """
    return next(_creation_errors(pod, container, cluster, image, environment), "")


def _creation_errors(
    pod: StoredObject, container: StoredObject, cluster: ClusterAccess, image: Image | None, environment: Mapping[str, str]
) -> Iterator[str]:
    for source in (*(container.get("envFrom") or ()), *(one.get("valueFrom") or {} for one in container.get("env") or ())):
        for field in _KEYED.keys() & source.keys():
            problem = _missing(pod, field, source[field], cluster)
            if problem:
                yield problem
    for mount in container.get("volumeMounts") or ():
        yield from _sub_path_errors(mount, environment)
    yield from _user_errors(pod, container, image)


def _sub_path_errors(mount: StoredObject, environment: Mapping[str, str]) -> Iterator[str]:
    expression = mount.get("subPathExpr") or ""
    if not expression:
        return
    from fakekube.nodes.runtime.environment import REFERENCE, expand

    for found in REFERENCE.finditer(expression):
        if found[2] is not None and found[2] not in environment:
            yield f'missing value for "{found[2]}"'
    path = expand(expression, environment)
    if path.startswith("/"):
        yield f"error SubPath {go_quote(path)} must not be an absolute path"
    if ".." in path.split("/"):
        yield f"unable to provision SubPath {go_quote(path)}: must not contain '..'"


def _user_errors(pod: StoredObject, container: StoredObject, image: Image | None) -> Iterator[str]:
    own, shared = container.get("securityContext") or {}, pod["spec"].get("securityContext") or {}

    def value(name: str) -> Any:
        return own[name] if own.get(name) is not None else shared.get(name)

    if not value("runAsNonRoot"):
        return
    metadata = pod["metadata"]
    where = f'(pod: "{metadata["name"]}_{metadata["namespace"]}({metadata["uid"]})", container: {container["name"]})'
    if value("runAsUser") == 0:
        yield f"container's runAsUser breaks non-root policy {where}"
    elif value("runAsUser") is None and image is not None and not (image.user.partition(":")[0] or "0").strip("0"):
        yield f"container has runAsNonRoot and image will run as root {where}"
