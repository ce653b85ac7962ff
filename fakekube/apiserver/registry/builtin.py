"""Creates the built-in resources from the tables of `apimachinery/data/` and the code of their kinds.

The code of a kind is found by `find_storage`, which imports it when its resource is first used. The list of resources is created once
per emulation and is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

from fakekube.apimachinery import data, features
from fakekube.apimachinery.schema.builtin import Builtins
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.field_labels import field_readers, supported_labels
from fakekube.apis.rest.resource import GVK, Resource
from fakekube.apis.rest.strategy import Action, KindStatusStrategy, Projection, Strategy, Subresource
from fakekube.apiserver.registry.deprecation import deprecation_of
from fakekube.apiserver.registry.served_apis import NO_RUNTIME_CONFIG, RuntimeConfig, is_served
from fakekube.apiserver.registry.storage import CONVERSIONS, Conversions, find_storage
from fakekube.base.objects import group_resource

#: (group, plural) of the resources that are not stored and only support POST (reviews, bindings): their storage is an Action.
ACTIONS = frozenset(
    {
        ("", "bindings"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    }
)

#: (group, plural) of the read-only resources that are not stored: their storage is a function that computes the objects.
COMPUTED = frozenset({("", "componentstatuses")})


@dataclass(frozen=True, slots=True)
class StoredAs:
    """The group and version in which a resource is stored, and its bucket if that is another's."""

    group: str
    version: str
    bucket: str | None = None


_OTHER_SHAPE = StoredAs("resource.k8s.io", "v1beta2")  # v1beta1 has another shape than the versions after it

#: (group, version, plural) → how the resources are stored that are not stored as they are served.
STORED_AS: Mapping[tuple[str, str, str], StoredAs] = {
    ("events.k8s.io", "v1", "events"): StoredAs("", "v1", "events"),
    ("autoscaling", "v1", "horizontalpodautoscalers"): StoredAs("autoscaling", "v2"),
    **{
        ("resource.k8s.io", "v1beta1", plural): _OTHER_SHAPE
        for plural in ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
    },
    ("certificates.k8s.io", "v1", "podcertificaterequests"): StoredAs("certificates.k8s.io", "v1beta1"),
}

#: The subresources with a TableConvertor, and the exceptions.
_TABLES = frozenset({"status", "scale"})
_NO_TABLES = frozenset(
    {
        ("apiextensions.k8s.io", "customresourcedefinitions/status"),
        ("apiregistration.k8s.io", "apiservices/status"),
        ("resource.k8s.io", "resourceclaims/status"),
    }
)

_NO_REPLICAS = {"spec": {"replicas": 0}}

#: (group, plural) → fields of an empty object (a bookmark), besides the zero values of its type.
_EMPTY_OBJECTS: dict[tuple[str, str], dict[str, Any]] = {
    ("apps", "deployments"): _NO_REPLICAS,
    ("apps", "replicasets"): _NO_REPLICAS,
    ("apps", "statefulsets"): _NO_REPLICAS,
    ("apps", "daemonsets"): {"metadata": {"annotations": {"deprecated.daemonset.template.generation": "0"}}},
}

#: The storage prefix of a resource in the real server, if it is not its plural.
_STORAGE_PREFIXES = {
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "ingresses.networking.k8s.io": "ingress",
    "podsecuritypolicies.policy": "podsecuritypolicy",
    "apiservices.apiregistration.k8s.io": "apiregistration.k8s.io/apiservices",
}


def resources(emulation: features.Emulation = features.DEFAULT, config: RuntimeConfig = NO_RUNTIME_CONFIG) -> Sequence[Resource]:
    """Returns the built-in resources that a server serves, in the order of discovery. Shared by all clusters; do not change."""
    return emulation.compiled(("resources", config), partial(_resources, config))


def _resources(config: RuntimeConfig, emulation: features.Emulation) -> Sequence[Resource]:
    rows = [row for row in emulation.facts.resources if is_served(row, emulation, config)]
    main = [row for row in rows if "/" not in row.name]
    below: dict[tuple[str, str, str], list[data.ResourceRow]] = {}
    for row in rows:
        if "/" in row.name:
            below.setdefault((row.group, row.version, row.name.partition("/")[0]), []).append(row)
    return tuple(_resource(emulation, row, below.get((row.group, row.version, row.name), [])) for row in main)


def _resource(emulation: features.Emulation, row: data.ResourceRow, below: Sequence[data.ResourceRow]) -> Resource:
    facts, types = emulation.facts, emulation.types
    stored = STORED_AS.get((row.group, row.version, row.name), StoredAs(row.group, row.version))
    bucket = stored.bucket or group_resource(row.group, row.name)
    kind = facts.kind(row.group, row.version, row.kind)
    conversions = CONVERSIONS.get((row.group, row.version, row.name))
    call = partial(_call_storage, row.group, row.version, row.name)
    return Resource(
        group=row.group,
        version=row.version,
        plural=row.name,
        singular=row.singular,
        kind=row.kind,
        namespaced=row.namespaced,
        verbs=frozenset(row.verbs),
        bucket=bucket,
        strategy_factory=partial(_strategy, emulation, row.group, row.name, row.version),
        type_factory=partial(_type, types, GVK(row.group, row.version, row.kind)),
        storage_type_factory=partial(_type, types, GVK(stored.group, stored.version, row.kind)),
        list_kind=f"{row.kind}List",
        short_names=row.short_names,
        categories=row.categories,
        subresources={s.name: s for s in (_subresource(emulation, b) for b in below)},
        field_labels=supported_labels(row.group, row.version, row.kind, kind.field_labels if kind else ()),
        field_readers=field_readers(bucket),
        storage_version_hash=row.storage_version_hash,
        empty=_EMPTY_OBJECTS.get((row.group, row.name), {}),
        deprecation=deprecation_of(row.group, row.version, row.kind, emulation.minor),
        storage_prefix=_STORAGE_PREFIXES.get(bucket, row.name),
        to_storage=partial(_convert, conversions, 0) if conversions else None,
        from_storage=partial(_convert, conversions, 1) if conversions else None,
        action=call if (row.group, row.name) in ACTIONS else None,
        computed=partial(call, emulation.facts) if (row.group, row.name) in COMPUTED else None,
        emulation=emulation,
    )


def _type(types: Builtins, gvk: GVK) -> Type:
    found = types.kind_type(gvk.group, gvk.version, gvk.kind)
    if found is None:
        raise LookupError(f"no type for {gvk}")
    return found


def _strategy(emulation: features.Emulation, group: str, plural: str, version: str) -> Strategy:
    found = find_storage(group, version, plural)
    strategy: Strategy = found() if isinstance(found, type) else Strategy()  # an action or a computed resource has no own one
    strategy.emulation = emulation
    return strategy


def _call_storage(group: str, version: str, plural: str, *arguments: Any) -> Any:
    """Calls an action, or a function that computes objects; imports it when it is first called."""
    return find_storage(group, version, plural)(*arguments)


def _convert(conversions: Callable[[], Conversions], direction: int, *arguments: Any) -> Any:
    """Calls a conversion: to the storage version (0), or from it (1); imports it when it is first called."""
    return conversions()[direction](*arguments)


def _subresource(emulation: features.Emulation, row: data.ResourceRow) -> Subresource:
    name = row.name.partition("/")[2]
    gvk = GVK(row.kind_group, row.kind_version, row.kind)
    return Subresource(
        name,
        gvk,
        frozenset(row.verbs),
        partial(_type, emulation.types, gvk),
        partial(_implementation, emulation, row, name),
        tables=name in _TABLES and (row.group, row.name) not in _NO_TABLES,
    )


def _implementation(emulation: features.Emulation, row: data.ResourceRow, name: str) -> Strategy | Projection | Action | None:
    found = find_storage(row.group, row.version, row.name)
    made: Any
    if found is not None:
        made = found() if isinstance(found, type) else copy(found) if isinstance(found, Strategy) else found
    elif name == "status":
        made = KindStatusStrategy(_strategy(emulation, row.group, row.name.partition("/")[0], row.version))
    else:
        return None
    if isinstance(made, Strategy):
        made.emulation = emulation
    implementation: Strategy | Projection | Action = made
    return implementation
