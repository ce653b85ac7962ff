"""The sample that is used if the user gives none: one object of each built-in resource that the client watches."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakekube.checker.rule import NotExercised
from fakekube.checker.sample import Sample

if TYPE_CHECKING:
    from fakekube.checker.trace import Call
    from fakekube.controllers.objects import Object

_POD_SPEC: Object = {"containers": [{"name": "main", "image": "example.com/image:1"}]}
_TEMPLATE: Object = {"metadata": {"labels": {"app": "sample"}}, "spec": _POD_SPEC}
_SELECTOR: Object = {"matchLabels": {"app": "sample"}}

#: By resource: apiVersion, kind, and the other required fields of the object.
_OBJECTS: dict[str, tuple[str, str, Object]] = {
    "configmaps": ("v1", "ConfigMap", {"data": {"key": "value"}}),
    "secrets": ("v1", "Secret", {"data": {"key": "dmFsdWU="}}),
    "pods": ("v1", "Pod", {"spec": _POD_SPEC}),
    "services": ("v1", "Service", {"spec": {"ports": [{"port": 80}], "selector": {"app": "sample"}}}),
    "serviceaccounts": ("v1", "ServiceAccount", {}),
    "namespaces": ("v1", "Namespace", {}),
    "nodes": ("v1", "Node", {}),
    "persistentvolumeclaims": (
        "v1",
        "PersistentVolumeClaim",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}},
    ),
    "deployments.apps": ("apps/v1", "Deployment", {"spec": {"replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE}}),
    "replicasets.apps": ("apps/v1", "ReplicaSet", {"spec": {"replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE}}),
    "daemonsets.apps": ("apps/v1", "DaemonSet", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
    "statefulsets.apps": (
        "apps/v1",
        "StatefulSet",
        {"spec": {"replicas": 1, "serviceName": "sample", "selector": _SELECTOR, "template": _TEMPLATE}},
    ),
    "jobs.batch": ("batch/v1", "Job", {"spec": {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}}}),
    "ingresses.networking.k8s.io": (
        "networking.k8s.io/v1",
        "Ingress",
        {"spec": {"defaultBackend": {"service": {"name": "sample", "port": {"number": 80}}}}},
    ),
    "leases.coordination.k8s.io": ("coordination.k8s.io/v1", "Lease", {}),
    "roles.rbac.authorization.k8s.io": ("rbac.authorization.k8s.io/v1", "Role", {}),
    "events": (
        "v1",
        "Event",
        {"involvedObject": {"kind": "Pod", "name": "sample", "namespace": "default"}, "reason": "Sample", "type": "Normal"},
    ),
}


def default_sample(calls: Iterable[tuple[str, Call]]) -> Sample:
    """Returns a sample of the resources that were watched or listed. Raises NotExercised if none of them has a sample."""
    made: dict[str, Object] = {}
    for resource, call in calls:
        if resource not in _OBJECTS or (resource in made and not call.is_watch):
            continue
        api_version, kind, rest = _OBJECTS[resource]
        metadata: Object = {"name": "sample", **_selected(call.query.get("labelSelector", ""))}
        if call.namespace and resource != "namespaces":
            metadata["namespace"] = call.namespace
        name = _selected_name(call.query.get("fieldSelector", ""))
        if name:
            metadata["name"] = name
        made[resource] = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **copy.deepcopy(rest)}
    if not made:
        raise NotExercised("the client watches no resource that has a default sample; pass one with --sample")
    return Sample.of(*made.values())


def _selected(selector: str) -> Object:
    """Returns labels that match a label selector; requirements other than equality and existence are ignored."""
    labels = {}
    for part in selector.split(","):
        key, equal, value = part.replace("==", "=").partition("=")
        if equal and not key.endswith("!"):
            labels[key.strip()] = value.strip()
        elif key and not equal and not key.startswith("!") and " " not in key:
            labels[key.strip()] = "sample"
    return {"labels": labels} if labels else {}


def _selected_name(selector: str) -> str:
    prefix = "metadata.name="
    return next((part.removeprefix(prefix) for part in selector.split(",") if part.startswith(prefix)), "")
