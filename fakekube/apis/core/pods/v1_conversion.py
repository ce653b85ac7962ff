"""Conversion of pods: pairs of an old and a new field, and removed fields.

Specified by: pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any

__all__ = ["drop_old_annotations", "raise_grace_period", "sync_pod_ips", "sync_service_account"]

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
