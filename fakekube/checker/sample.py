"""The sample of a check: prerequisites, and objects that are copied to make the client react.

If the user gives none, the sample has one object of each built-in resource that the client watches.

CustomResourceDefinitions are prerequisites, and so are Namespaces beside other objects. All objects but definitions and the
namespaces of other objects are copied under new names; references between objects of the sample become references between the
copies.

Invariant: a copy differs from the sample only in names, in fields that the server assigns (nodePort, clusterIP), and in the data
of Secrets, which are in base64 as in what the server returns.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.checker.alterations import to_base64
from fakekube.checker.verdict import NotExercised
from fakekube.cluster.testing.manifests import objects
from fakekube.cluster_options import Source

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.trace import Call


_DEFINITIONS = frozenset({"CustomResourceDefinition"})

#: Fields whose values are not references to objects, and are not renamed, so that selectors still match.
_NOT_REFERENCES = frozenset({"labels", "matchLabels", "selector", "nodeSelector"})

#: The letters of tokens: no vowels, and no letters that look alike.
LETTERS = "bcdfghjkmnpqrstvwxz2456789"

_LONGEST_NAME = 63


def new_token(dice: random.Random) -> str:
    """Returns a random suffix for the names of a copy."""
    return "".join(dice.choice(LETTERS) for _ in range(6))


def new_early_token(dice: random.Random) -> str:
    """Returns a random suffix that comes before nearly all others in the order of a list."""
    return "22" + new_token(dice)[2:]


def new_late_token(dice: random.Random) -> str:
    """Returns a random suffix that comes after nearly all others in the order of a list."""
    return "zz" + new_token(dice)[2:]


@dataclass(slots=True, frozen=True)
class Sample:
    """The prerequisites and the objects to copy (stimuli)."""

    prerequisites: Sequence[Object]
    stimuli: Sequence[Object]

    @classmethod
    def read(cls, *sources: Source) -> Sample:
        """Reads a sample from files, folders, YAML text or objects. Raises ManifestError."""
        found = objects(*sources)
        used = {_metadata(obj).get("namespace") for obj in found if obj["kind"] != "Namespace"}
        spaces = [obj for obj in found if obj["kind"] == "Namespace"]
        definitions = [obj for obj in found if obj["kind"] in _DEFINITIONS]
        fixed = [*definitions, *(obj for obj in spaces if _metadata(obj).get("name") in used)]
        # beside other objects any namespace may be one in which the client writes
        needed = [*definitions, *spaces] if len(found) > len(spaces) + len(definitions) else fixed
        named = {_metadata(obj).get("name") for obj in needed if obj["kind"] == "Namespace"}
        made = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            for name in sorted({str(name) for name in used if name} - named - {"default"})
        ]
        return cls([*needed, *made], [obj for obj in found if not any(obj is one for one in fixed)])

    def copies(self, token: str) -> list[Object]:
        """Returns the stimuli under new names, which end with the token."""
        longest = _LONGEST_NAME - len(token) - 1
        names = {name: f"{name[:longest].rstrip('-.')}-{token}" for name in map(_name, self.stimuli)}
        return [_make_copy(obj, names) for obj in self.stimuli]

    @property
    def definitions(self) -> list[Object]:
        return [obj for obj in self.prerequisites if obj["kind"] in _DEFINITIONS]


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return obj.get("metadata") or {}


def _name(obj: Mapping[str, Any]) -> str:
    metadata = _metadata(obj)
    return str(metadata.get("name") or str(metadata.get("generateName") or "sample").rstrip("-"))


def _make_copy(obj: Object, names: Mapping[str, str]) -> Object:
    new: Object = _with_references(copy.deepcopy(obj), names)
    metadata = new.setdefault("metadata", {})
    metadata.pop("generateName", None)
    metadata["name"] = names[_name(obj)]
    for assigned in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"):
        metadata.pop(assigned, None)
    new.pop("status", None)
    if new["kind"] == "Service":
        release_addresses(new.get("spec") or {})
    if new["kind"] == "Secret" and "stringData" in new:
        encoded = {key: to_base64(str(text)) for key, text in (new.pop("stringData") or {}).items()}
        new["data"] = {**(new.get("data") or {}), **encoded}
    return new


def _with_references(value: Any, names: Mapping[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {
            inner: part if inner in _NOT_REFERENCES else _with_references(part, names, inner) for inner, part in value.items()
        }
    if isinstance(value, list):
        return [_with_references(part, names, key) for part in value]
    return _reference(value, names) if isinstance(value, str) and key not in ("kind", "apiVersion", "namespace") else value


def _reference(text: str, names: Mapping[str, str]) -> str:
    """Renames `NAME`, `NAMESPACE/NAME` and `NAME.NAMESPACE.svc…`."""
    if text in names:
        return names[text]
    first, slash, last = text.rpartition("/")
    if slash and last in names and "/" not in first and "." not in first:  # with a dot it is a qualified name, and no namespace
        return f"{first}/{names[last]}"
    host, dot, domain = text.partition(".")
    if dot and host in names and (domain.endswith(".svc") or ".svc." in domain):
        return f"{names[host]}.{domain}"
    return text


def release_addresses(spec: Object) -> None:
    """Removes the fields of a Service that the server assigns from its spec."""
    if spec.get("clusterIP") != "None":
        spec.pop("clusterIP", None)
        spec.pop("clusterIPs", None)
    for port in spec.get("ports") or ():
        port.pop("nodePort", None)


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
        metadata: Object = {"name": "sample", **_labels_for(call.query.get("labelSelector", ""))}
        if call.namespace and resource != "namespaces":
            metadata["namespace"] = call.namespace
        name = _name_for(call.query.get("fieldSelector", ""))
        if name:
            metadata["name"] = name
        made[resource] = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **copy.deepcopy(rest)}
    if not made:
        raise NotExercised("the client watches no resource that has a default sample; pass one with --sample")
    return Sample.read(*made.values())


def _labels_for(selector: str) -> Object:
    """Returns labels that match a label selector; requirements other than equality and existence are ignored."""
    labels = {}
    for part in selector.split(","):
        key, equal, value = part.replace("==", "=").partition("=")
        if equal and not key.endswith("!"):
            labels[key.strip()] = value.strip()
        elif key and not equal and not key.startswith("!") and " " not in key:
            labels[key.strip()] = "sample"
    return {"labels": labels} if labels else {}


def _name_for(selector: str) -> str:
    prefix = "metadata.name="
    return next((part.removeprefix(prefix) for part in selector.split(",") if part.startswith(prefix)), "")
