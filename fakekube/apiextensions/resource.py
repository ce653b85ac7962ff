"""Builds the resources of a definition: one for each served version, all stored in the bucket `plural.group`.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go (getOrCreateServingInfoFor).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from fakekube.apiextensions.conversion import Convert, converter
from fakekube.apiextensions.definition import conditions
from fakekube.apiextensions.instances import objects
from fakekube.apiextensions.instances.pruning import prune
from fakekube.apiextensions.instances.schema_cache import CompiledSchema, compile_schema, is_pruned_and_defaulted
from fakekube.apiextensions.instances.strategy import CustomResourceStrategy, StatusStrategy, Version, projection
from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.cluster_access import Call
from fakekube.apis.rest.field_labels import METADATA_LABELS, field_path
from fakekube.apis.rest.resource import GVK, Resource
from fakekube.apis.rest.strategy import Subresource
from fakekube.apis.validation.names import preference
from fakekube.apis.validation.webhooks import has_usable_ca_bundle
from fakekube.base.objects import Object

_VERBS = frozenset({"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"})
#: The verbs that a terminating definition no longer supports.
_LIVING_VERBS = frozenset({"patch", "create", "update"})
_SUBRESOURCE_VERBS = frozenset({"get", "patch", "update"})
_SCALE = GVK("autoscaling", "v1", "Scale")

Entry = Mapping[str, Any]


def resources_of(definition: Object, call: Call, emulation: Emulation) -> list[Resource]:
    """Returns the served resources of a definition on a server; `call` calls its conversion webhook."""
    return _resources(definition, call, emulation, "served")


def storage_resource_of(definition: Object, call: Call, emulation: Emulation) -> Resource:
    """Returns the resource of the storage version, which need not be served."""
    (found,) = _resources(definition, call, emulation, "storage")
    return found


def _resources(definition: Object, call: Call, emulation: Emulation, flag: str) -> list[Resource]:
    """Returns the resources of the versions that have a flag."""
    versions = definition["spec"]["versions"]
    made = {entry["name"]: _version(definition, entry) for entry in versions}
    stored = next(entry for entry in versions if entry.get("storage"))
    storage = stored["name"]
    make = partial(
        _resource,
        definition,
        made=made,
        storage=storage,
        storage_hash=_storage_version_hash(made[storage].gvk) if stored.get("served") else "",
        convert=converter(definition, call),
        recommended=_recommended_version(versions),
        known_versions=_known_versions(definition),
        emulation=emulation,
    )
    return [make(entry) for entry in versions if entry.get(flag)]


def _names(definition: Object) -> Mapping[str, Any]:
    """Returns the accepted names, which may differ from those in the spec."""
    accepted = conditions.accepted_names(definition)
    wanted: Mapping[str, Any] = definition["spec"]["names"]
    return accepted if accepted.get("plural") and accepted.get("kind") else wanted


def _version(definition: Object, entry: Entry) -> Version:
    spec, subresources = definition["spec"], entry.get("subresources") or {}
    said = (entry.get("schema") or {}).get("openAPIV3Schema")
    schema = compile_schema(said) if said is not None else CompiledSchema({})
    return Version(
        GVK(spec["group"], entry["name"], _names(definition)["kind"]),
        schema,
        free=bool(spec.get("preserveUnknownFields")),
        has_status=subresources.get("status") is not None,
        scale=subresources.get("scale"),
        ending=conditions.is_ending(definition),
    )


def _resource(
    definition: Object,
    entry: Entry,
    *,
    made: Mapping[str, Version],
    storage: str,
    storage_hash: str,
    convert: Convert,
    recommended: str,
    known_versions: frozenset[str],
    emulation: Emulation,
) -> Resource:
    spec, names = definition["spec"], _names(definition)
    version, group, plural = made[entry["name"]], spec["group"], names["plural"]
    strategy = CustomResourceStrategy(version)
    strategy.emulation = emulation
    selectable = [field["jsonPath"].removeprefix(".") for field in entry.get("selectableFields") or ()]
    return Resource(
        group=group,
        version=entry["name"],
        plural=plural,
        singular=names.get("singular", ""),
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        verbs=_VERBS,
        bucket=f"{plural}.{group}",
        strategy_factory=lambda: strategy,
        type_factory=lambda: version.type,
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources={s.name: s for s in _subresources(version, strategy, emulation, made.values())},
        field_labels=(*METADATA_LABELS, *selectable),
        field_readers={label: field_path(label) for label in (*METADATA_LABELS, *selectable)},
        storage_version_hash=storage_hash,
        deprecation=_deprecation(version.gvk, entry, recommended),
        storage_prefix=f"{group}/{plural}",
        printer_columns=entry.get("additionalPrinterColumns") or (),
        custom=True,
        emulation=emulation,
        hidden_verbs=_LIVING_VERBS if version.ending else frozenset(),
        from_storage=partial(_from_storage, version, made, convert),
        keep=partial(_to_storage, made[storage], convert),
        convert=convert,
        known_versions=known_versions,
        unservable="" if has_usable_ca_bundle(spec) else "error resolving resource",
        converts_by_call=(spec.get("conversion") or {}).get("strategy") == "Webhook" and len(made) > 1,
    )


def _known_versions(definition: Object) -> frozenset[str]:
    """Returns the apiVersions that stored objects can have; none while the first spec is in effect, which fits all objects."""
    spec = definition["spec"]
    if definition["metadata"].get("generation", 1) == 1:
        return frozenset()
    return frozenset(f"{spec['group']}/{entry['name']}" for entry in spec["versions"])


def _subresources(
    version: Version, strategy: CustomResourceStrategy, emulation: Emulation, versions: Iterable[Version]
) -> list[Subresource]:
    found = []
    if version.has_status:
        view = StatusStrategy(strategy)
        view.emulation = emulation
        found.append(Subresource("status", version.gvk, _SUBRESOURCE_VERBS, lambda: version.type, lambda: view))
    if version.scale is not None:
        window = projection(version.scale, versions)
        found.append(Subresource("scale", _SCALE, _SUBRESOURCE_VERBS, partial(_scale_type, emulation), lambda: window))
    return found


def _scale_type(emulation: Emulation) -> Type:
    found = emulation.types.kind_type(_SCALE.group, _SCALE.version, _SCALE.kind)
    assert found is not None
    return found


def _storage_version_hash(gvk: GVK) -> str:
    """Returns storageVersionHash of discovery (k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go)."""
    digest = sha256(f"{gvk.group}/{gvk.version}/{gvk.kind}".encode()).digest()
    return b64encode(digest[:8]).decode()


def _deprecation(gvk: GVK, entry: Entry, recommended: str) -> str:
    if not entry.get("deprecated"):
        return ""
    if entry.get("deprecationWarning"):
        return str(entry["deprecationWarning"])
    better = recommended and preference(recommended) < preference(gvk.version)
    use = f"; use {gvk.group}/{recommended} {gvk.kind}" if better else ""
    return f"{gvk.api_version} {gvk.kind} is deprecated{use}"


def _recommended_version(versions: Sequence[Entry]) -> str:
    """Returns the first served version that is not deprecated; "" if there is none."""
    names = (entry["name"] for entry in versions if entry.get("served") and not entry.get("deprecated"))
    return min(names, key=preference, default="")


def _to_storage(storage: Version, convert: Convert, obj: Object) -> Object:
    """Converts an object of a version to the stored form. Raises StatusError 500 if it cannot be converted."""
    if obj.get("apiVersion") != storage.gvk.api_version:
        obj, _ = prune(storage.type, _convert_stored(convert, obj, storage.gvk.api_version))
        objects.drop_nulls(storage.type, obj)
    kept: Object = objects.stored_form(obj)
    return kept


def _from_storage(version: Version, made: Mapping[str, Version], convert: Convert, obj: Object) -> Object:
    """Converts a stored object to a version; the schema of the storage version prunes and defaults it first.

    Raises StatusError 500 if it cannot be converted.
    """
    if obj.get("apiVersion") == version.gvk.api_version and is_pruned_and_defaulted(version.type, obj):
        return obj
    stored = made.get(obj.get("apiVersion", "").rpartition("/")[2], version)
    shown, _ = prune(stored.type, obj)
    objects.drop_nulls(stored.type, shown)
    filled = objects.default(stored.type, shown)
    if obj.get("apiVersion") == version.gvk.api_version:
        if not filled:
            return shown  # type: ignore[no-any-return]  # sorted as it was stored
    else:
        shown, _ = prune(version.type, _convert_stored(convert, shown, version.gvk.api_version))
        objects.drop_nulls(version.type, shown)
    result: Object = objects.sorted_tree(shown)
    return result


def _convert_stored(convert: Convert, obj: Object, api_version: str) -> Object:
    """Converts an object that is read from or written to the storage, in which it has no revision."""
    metadata = obj["metadata"]
    if "resourceVersion" not in metadata:
        return convert(obj, api_version)
    revision = metadata["resourceVersion"]
    found = convert({**obj, "metadata": {n: v for n, v in metadata.items() if n != "resourceVersion"}}, api_version)
    return {**found, "metadata": {**found["metadata"], "resourceVersion": revision}}
