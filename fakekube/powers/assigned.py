"""What a cluster assigns to its objects beside their metadata: an export leaves it out, so that the next cluster assigns its own.

Specified by the allocators of Services (pkg/registry/core/service/storage), `generateSelector` of Jobs (pkg/registry/batch/job),
the binder of volumes (pkg/controller/volume/persistentvolume) and the tokens of service accounts (pkg/controller/serviceaccount).

Invariant: what a user has written stays, unless another cluster would refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.apis.batch.jobs import UID_LABELS
from fakekube.apis.networking import MANAGED_BY_LABEL
from fakekube.apis.well_known import AUTO_REGISTER_MANAGED_LABEL, SECRET_TYPE_SERVICE_ACCOUNT_TOKEN, SERVICE_ACCOUNT_UID_KEY
from fakekube.base.objects import Object
from fakekube.controllers.volumes.binding import BIND_COMPLETED, BOUND_BY_CONTROLLER

_BINDING: Final = frozenset({BIND_COMPLETED, BOUND_BY_CONTROLLER})


def is_made_by_every_server(obj: Object) -> bool:
    """Reports whether the API server of every cluster makes an object like this one itself."""
    kind, metadata = obj["kind"], obj["metadata"]
    labels = metadata.get("labels") or {}
    if kind == "Service":
        return (metadata.get("namespace"), metadata["name"]) == ("default", "kubernetes")
    if kind == "ServiceCIDR":
        return bool(metadata["name"] == "kubernetes")
    if kind == "IPAddress":
        return MANAGED_BY_LABEL in labels
    return kind == "APIService" and AUTO_REGISTER_MANAGED_LABEL in labels


def without_assigned(obj: Object) -> Object:
    """Returns the object without what its cluster has assigned; the object itself if that is nothing."""
    remove = _BY_KIND.get((obj["apiVersion"], obj["kind"]))
    return obj if remove is None else remove(obj)


def _drop_members(members: Mapping[str, Any] | None, *names: str) -> Object:
    return {name: value for name, value in (members or {}).items() if name not in names}


def _without_annotations(obj: Object, names: frozenset[str]) -> Object:
    if not names & (obj["metadata"].get("annotations") or {}).keys():
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": _drop_members(obj["metadata"]["annotations"], *names)}}


def _without_addresses(service: Object) -> Object:
    spec = service["spec"]
    if spec.get("clusterIP") == "None":
        return service
    return {**service, "spec": _drop_members(spec, "clusterIP", "clusterIPs", "healthCheckNodePort")}


def _without_selector(job: Object) -> Object:
    spec = job["spec"]
    if spec.get("manualSelector"):
        return job
    template = {**spec["template"], "metadata": _without_job_labels(spec["template"].get("metadata"))}
    return {
        **job,
        "metadata": _without_job_labels(job["metadata"]),
        "spec": {**_drop_members(spec, "selector"), "template": template},
    }


def _without_job_labels(metadata: Mapping[str, Any] | None) -> Object:
    if metadata is None or "labels" not in metadata:
        return dict(metadata or {})
    return {**metadata, "labels": _drop_members(metadata["labels"], *UID_LABELS)}


def _without_claim_uid(volume: Object) -> Object:
    volume, spec = _without_annotations(volume, _BINDING), volume["spec"]
    if not spec.get("claimRef"):
        return volume
    return {**volume, "spec": {**spec, "claimRef": _drop_members(spec["claimRef"], "uid", "resourceVersion")}}


def _without_binding(claim: Object) -> Object:
    return _without_annotations(claim, _BINDING)


def _without_token(secret: Object) -> Object:
    if secret.get("type") != SECRET_TYPE_SERVICE_ACCOUNT_TOKEN:
        return secret
    return _drop_members(_without_annotations(secret, frozenset({SERVICE_ACCOUNT_UID_KEY})), "data")


_BY_KIND: Final[Mapping[tuple[str, str], Callable[[Object], Object]]] = {
    ("v1", "Service"): _without_addresses,
    ("v1", "PersistentVolume"): _without_claim_uid,
    ("v1", "PersistentVolumeClaim"): _without_binding,
    ("v1", "Secret"): _without_token,
    ("batch/v1", "Job"): _without_selector,
}
