"""The graph of relations between nodes, their pods, and the objects that the pods use.

The relations are read from pods, persistent volumes, volume attachments and resource slices, and cached until one of
them changes. The graph is built on the first use, so it costs nothing without the Node authorizer.

Specified by: k8s.io/kubernetes/plugin/pkg/auth/authorizer/node (graph.go) and pkg/api/persistentvolume/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakekube.apis.core.pods.references import claim_names, config_map_names, secret_names
from fakekube.apis.well_known import MIRROR_POD_ANNOTATION_KEY
from fakekube.apiserver.auth.observing import Observed

#: Group and plural of the resources that define relations.
RESOURCES: Final = (
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
)
#: The buckets of these resources.
BUCKETS: Final = tuple(f"{plural}.{group}" if group else plural for group, plural in RESOURCES)


_Object = tuple[str, str, str]
"""Plural, namespace and name."""

#: Source of a persistent volume → fields with a secret that kubelets use (a reference, or the name itself).
_PV_SECRET_SOURCES: Final = (
    *((source, "secretRef") for source in ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")),
    ("azureFile", "secretName"), ("csi", "nodePublishSecretRef"), ("csi", "nodeStageSecretRef"), ("csi", "nodeExpandSecretRef"),
)  # fmt: skip


class NodeGraph:
    """The graph of one cluster.

    Args:
        objects: reads `RESOURCES`.
    """

    def __init__(self, objects: Observed) -> None:
        self._objects = objects
        self._known: tuple[int, Mapping[_Object, frozenset[str]]] | None = None

    def has_path(self, node: str, plural: str, namespace: str, name: str) -> bool:
        """Reports whether there is a path from this object to the node."""
        version = self._objects.version()
        if self._known is None or self._known[0] != version:
            self._known = version, _nodes_of_objects(self._objects)
        return node in self._known[1].get((plural, namespace, name), ())


def _nodes_of_objects(objects: Observed) -> Mapping[_Object, frozenset[str]]:
    """Returns the nodes to which each object is related."""
    nodes: dict[_Object, set[str]] = {}
    for pod in objects.list("", "pods"):
        meta, node = pod["metadata"], pod["spec"].get("nodeName", "")
        if not node:
            continue
        for plural, name in (("pods", meta["name"]), *_used_by(pod)):
            nodes.setdefault((plural, meta["namespace"], name), set()).add(node)
    for volume in objects.list("", "persistentvolumes"):
        claim = volume["spec"].get("claimRef")
        found = nodes.get(("persistentvolumeclaims", claim.get("namespace", ""), claim.get("name", ""))) if claim else None
        if not found:
            continue
        nodes.setdefault(("persistentvolumes", "", volume["metadata"]["name"]), set()).update(found)
        for namespace, secret in _secrets_of_volume(volume["spec"], claim):
            nodes.setdefault(("secrets", namespace, secret), set()).update(found)
    for group, plural in RESOURCES[2:]:
        for obj in objects.list(group, plural):
            node = obj["spec"].get("nodeName", "")
            if node:
                meta = obj["metadata"]
                nodes.setdefault((plural, meta.get("namespace", ""), meta["name"]), set()).add(node)
    return {key: frozenset(found) for key, found in nodes.items()}


def _used_by(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields resource and name of the objects that a pod uses; mirror pods use none."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if MIRROR_POD_ANNOTATION_KEY in (meta.get("annotations") or {}):
        return
    if spec.get("serviceAccountName"):
        yield "serviceaccounts", spec["serviceAccountName"]
    yield from (("secrets", name) for name in secret_names(spec))
    yield from (("configmaps", name) for name in config_map_names(spec))
    yield from (("persistentvolumeclaims", name) for name in claim_names(spec, meta["name"]))
    for claim in spec.get("resourceClaims") or ():
        if claim.get("resourceClaimName"):
            yield "resourceclaims", claim["resourceClaimName"]
    for made in status.get("resourceClaimStatuses") or ():
        if made.get("resourceClaimName"):
            yield "resourceclaims", made["resourceClaimName"]
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    if extended:
        yield "resourceclaims", extended


def _secrets_of_volume(spec: Mapping[str, Any], claim: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields namespace and name of the secrets of a persistent volume; the default namespace is that of the claim."""
    for source, field in _PV_SECRET_SOURCES:
        holder = spec.get(source) or {}
        value = holder.get(field)
        if not value:
            continue
        if isinstance(value, str):
            yield holder.get("secretNamespace") or claim.get("namespace", ""), value
        else:
            yield value.get("namespace") or claim.get("namespace", ""), value.get("name", "")
