"""The scale subresource: the replicas and the selector of a workload as an autoscaling/v1 Scale.

Specified by: the ScaleREST of pkg/registry/apps/*/storage and pkg/registry/core/replicationcontroller/storage.
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apis.rest.strategy import Projection
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import non_negative
from fakekube.apis.validation.objectmeta import validate_object_meta
from fakekube.base.objects import Object

_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _scale_of(selector_text: Callable[[Object], str]) -> Callable[[Object], Object]:
    def read(obj: Object) -> Object:
        meta = {field: obj["metadata"][field] for field in _SHOWN_METADATA if field in obj["metadata"]}
        replicas = (obj.get("status") or {}).get("replicas", 0)
        return {
            "metadata": meta,
            "spec": {"replicas": (obj.get("spec") or {}).get("replicas", 0)},
            "status": {"replicas": replicas, "selector": selector_text(obj)},
        }

    return read


def _selector_text(obj: Object) -> str:
    try:
        return str(from_label_selector((obj.get("spec") or {}).get("selector")))
    except SelectorError as error:
        raise status.bad_request(str(error)) from None


def _map_text(obj: Object) -> str:
    labels = (obj.get("spec") or {}).get("selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _writer(group: str, plural: str) -> Callable[[Object, Object], Object]:
    def write(obj: Object, scale: Object) -> Object:
        expected, actual = scale["metadata"].get("uid"), obj["metadata"].get("uid")
        if expected and expected != actual:
            problem = status.precondition_failed("UID", expected, actual)
            raise status.conflict(group, f"{plural}/scale", obj["metadata"]["name"], problem)
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        return {**obj, "spec": {**obj["spec"], "replicas": replicas}}

    return write


def _validate(scale: Object) -> list[FieldError]:
    """Validates a Scale (ValidateScale)."""
    errors = validate_object_meta(scale["metadata"], True, names.dns_subdomain)
    return errors + non_negative((scale.get("spec") or {}).get("replicas", 0), "spec.replicas")


def _projection(group: str, plural: str, read: Callable[[Object], Object]) -> Projection:
    return Projection(read=read, write=_writer(group, plural), validate=_validate)


DEPLOYMENTS = _projection("apps", "deployments", _scale_of(_selector_text))
REPLICA_SETS = _projection("apps", "replicasets", _scale_of(_selector_text))
STATEFUL_SETS = _projection("apps", "statefulsets", _scale_of(_selector_text))
REPLICATION_CONTROLLERS = _projection("", "replicationcontrollers", _scale_of(_map_text))
