"""A strategy for objects that the API server accepts.

A candidate is made for the schema of its resource; the API server is asked with a dry run. Optional fields that it refuses are
taken away, and after some refusals the example is given up. So rules that no schema states hold as well: those in CEL, those of
built-in kinds, admission.

Invariant: every object that is drawn was accepted by a dry run in the cluster of the strategy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hypothesis import reject
from hypothesis import strategies as st

from fakekube.apimachinery.data import DEFAULT
from fakekube.base.objects import Object
from fakekube.controllers.client.client import collection_path
from fakekube.strategies.schemas import values

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.cluster_options import Source


_ATTEMPTS: Final = 6
_REPAIRS: Final = 6
_PART: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")

#: The least that a kind needs whose schema does not say it.
_POD_SPEC: Final = {"containers": [{"name": "main", "image": "nginx"}]}
_TEMPLATE: Final = {"metadata": {"labels": {"app": "a"}}, "spec": _POD_SPEC}
_SELECTED: Final = {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}
_NEEDED: Final[Mapping[str, Object]] = {
    "Pod": {"spec": _POD_SPEC},
    "Deployment": {"spec": _SELECTED},
    "ReplicaSet": {"spec": _SELECTED},
    "DaemonSet": {"spec": _SELECTED},
    "StatefulSet": {"spec": {**_SELECTED, "serviceName": "a"}},
    "ReplicationController": {"spec": {"selector": {"app": "a"}, "template": _TEMPLATE}},
    "Job": {"spec": {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}}},
    "CronJob": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}}},
        }
    },
    "Service": {"spec": {"ports": [{"port": 80}]}},
}


def objects(
    resource: str,
    *,
    cluster: Cluster | None = None,
    definitions: Source | None = None,
    version: str = DEFAULT,
    names: st.SearchStrategy[str] | None = None,
    namespace: str = "default",
) -> st.SearchStrategy[Object]:
    """Returns a strategy for objects of a resource that the API server accepts.

    Args:
        resource: as kubectl names it: "deployments", "widgets.example.com".
        cluster: the cluster that judges; by default one of the strategy's own, without controllers.
        definitions: manifests that are loaded into the strategy's own cluster first, such as CustomResourceDefinitions.
        version: the minor of that cluster.
        names: the names of the objects; by default "a", "b" and "c".
        namespace: of namespaced objects.

    Raises UnknownResource when an example is drawn, if the cluster does not serve the resource.
    """
    names = st.sampled_from(("a", "b", "c")) if names is None else names
    made: list[_Judge] = []

    def judge() -> _Judge:
        if not made:
            made.append(_Judge(cluster or _own_cluster(definitions, version), resource, namespace))
        return made[0]

    @st.composite
    def draw_accepted(draw: st.DrawFn) -> Object:
        name = draw(names)
        for _ in range(_ATTEMPTS):
            found = judge().accept({**draw(judge().candidates), "metadata": {"name": name}})
            if found is not None:
                return found
        return reject()

    return draw_accepted()


def _own_cluster(definitions: Source | None, version: str) -> Cluster:
    from fakekube.cluster import Cluster

    made = Cluster(version=version, profile="apiserver")
    if definitions is not None:
        made.load(definitions)
    return made


class _Judge:
    """Makes candidates for one resource of a cluster, and asks the cluster about them."""

    def __init__(self, cluster: Cluster, resource: str, namespace: str) -> None:
        self._cluster = cluster
        self.mapping = cluster.mapping(resource)
        self._path = collection_path(self.mapping, namespace)
        self._document = _document(cluster, self.mapping.group, self.mapping.version)
        needed = _NEEDED.get(self.mapping.kind, {})
        schema = self._schema()
        shown = {name: part for name, part in (schema.get("properties") or {}).items() if name not in _OWN}
        top = {**schema, "properties": shown, "required": [name for name in schema.get("required") or () if name in shown]}
        self.candidates: st.SearchStrategy[Object] = values(top, self._resolve).map(lambda made: _merge(deepcopy(needed), made))

    def _schema(self) -> Mapping[str, Any]:
        wanted = (self.mapping.group, self.mapping.version, self.mapping.kind)
        for schema in self._document["components"]["schemas"].values():
            for gvk in schema.get("x-kubernetes-group-version-kind") or ():
                if (gvk["group"], gvk["version"], gvk["kind"]) == wanted:
                    found: Mapping[str, Any] = schema
                    return found
        return {"type": "object"}

    def _resolve(self, reference: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._document["components"]["schemas"][reference.rpartition("/")[2]]
        return found

    def accept(self, obj: Object) -> Object | None:
        """Returns `obj` without the optional fields that the cluster refuses; None if it refuses more."""
        version = f"{self.mapping.group}/{self.mapping.version}".strip("/")
        obj = {"apiVersion": version, "kind": self.mapping.kind, **obj}
        for _ in range(_REPAIRS):
            answer = self._cluster.request("POST", self._path, body=obj, query={"dryRun": "All"})
            if answer.status < 300 or answer.status == 409:  # an object of this name exists: the strategy is about its content
                return obj
            causes = (answer.json().get("details") or {}).get("causes") or ()
            removed = [_remove(obj, cause.get("field", "")) for cause in causes]
            if not any(removed):
                return None
        return None


#: The fields of an object that are not drawn.
_OWN: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


@lru_cache(maxsize=32)
def _document(cluster: Cluster, group: str, version: str) -> Mapping[str, Any]:
    """Returns the OpenAPI v3 document of a group version."""
    path = f"/openapi/v3/apis/{group}/{version}" if group else f"/openapi/v3/api/{version}"
    found: Mapping[str, Any] = cluster.request("GET", path).json()
    return found


def _merge(base: Any, made: Any) -> Any:
    """Returns `made` over `base`: what the base has in objects stays where `made` has nothing, or a list that is empty."""
    if isinstance(base, dict) and isinstance(made, dict):
        return {**base, **{name: _merge(base[name], value) if name in base else value for name, value in made.items()}}
    return base


def _remove(obj: Any, field: str) -> bool:
    """Removes the field of a cause, such as spec.ports[0].name or spec.labels[a.b]. Returns False if there is none."""
    parts = [part.strip("[]\"'") for part in _PART.findall(field)]
    if not parts or parts[0] == "metadata":
        return False
    for part in parts[:-1]:
        if isinstance(obj, list) and part.isdigit() and int(part) < len(obj):
            obj = obj[int(part)]
        elif isinstance(obj, dict) and part in obj:
            obj = obj[part]
        else:
            return False
    last = parts[-1]
    if isinstance(obj, dict) and last in obj:
        del obj[last]
        return True
    if isinstance(obj, list) and last.isdigit() and int(last) < len(obj):
        del obj[int(last)]
        return True
    return False
