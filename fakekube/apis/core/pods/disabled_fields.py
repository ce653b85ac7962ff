"""Fields whose feature gates are disabled in 1.36: a write drops them, unless the old object has them.

Specified by: pkg/api/pod/util.go (DropDisabledPodFields), pkg/features.
"""

from __future__ import annotations

from typing import Any

from fakekube.apis.core.pods.visitor import container_statuses, containers, projected_sources

Spec = dict[str, Any]

#: Sources of projected volumes of disabled features: ClusterTrustBundleProjection, PodCertificateRequest.
_SOURCES = ("clusterTrustBundle", "podCertificate")


def drop_disabled_fields(spec: Spec, old: Spec | None) -> None:
    """Drops the fields of features that are disabled in 1.36, in place (`old`: None on create)."""
    for field in _SOURCES:
        if old is None or not any(field in source for source in projected_sources(old)):
            for source in projected_sources(spec):
                source.pop(field, None)
    if old is None or "schedulingGroup" not in old:
        spec.pop("schedulingGroup", None)
    for container in containers(spec):
        hooks = container.get("lifecycle")
        if hooks is not None and hooks.pop("stopSignal", None) is not None and not hooks:
            del container["lifecycle"]


def drop_disabled_status(status: Spec) -> None:
    """Drops disabled fields of the status of a pod: allocated claims, and the digests of image volumes."""
    status.pop("nodeAllocatableResourceClaimStatuses", None)
    for container in container_statuses(status):
        for mount in container.get("volumeMounts") or ():
            mount.pop("volumeStatus", None)
