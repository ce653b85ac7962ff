"""Updates managedFields in writes and applies, by means of `apimachinery.patch.apply`.

A version of a resource has one `FieldManager` for its main path, and one for each subresource; they are created when
first used and cached in the resource.

Specified by: "Server-Side Apply" in the Kubernetes documentation; k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager
and create.go (prefixFromUserAgent).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from fakekube.apimachinery.patch.apply import FieldManager, decode_unstructured, excluding
from fakekube.apimachinery.patch.apply.updater import ScaleMapping
from fakekube.apimachinery.schema import known_specs, printing
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.trees import are_equal, unchanged_members
from fakekube.apis.rest.cluster_access import Recorded
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apis.rest.strategy import Subresource
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.request_options import FIELD_MANAGER_MAX_LENGTH
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.caches import cache_by_text
from fakekube.base.golang.strings import readable
from fakekube.base.objects import Object

#: The field manager of writes of the real server as a client.
SERVER = "kube-apiserver"


def update(scope: Scope, live: Object | None, new: Object, manager: str) -> Object:
    """Returns the new object with the managedFields of a plain write; `live` is None for a create.

    Values that are not printed (empty maps and lists) are not owned, but validation must see them: they stay in the
    object. An empty list that is always printed (`rules: []`) becomes null only when it is stored: here it is still
    owned. For a version other than the storage version, ownership is computed after a round trip through storage.
    """
    if scope.resource.to_storage is not None and not scope.resource.custom:
        return _update_by_way_of_storage(scope, live, new, manager)
    parts: Object = {}
    if live is not None and not scope.resource.custom:
        parts = unchanged_members(scope.type, new, live)  # stored ones are normalised
        if "metadata" in parts:
            parts["metadata"] = new["metadata"]  # which are changed below
    # The requested managedFields need no other form; an empty list, which is not printed, resets those of the object.
    requested = new["metadata"].pop("managedFields", None)
    fields, name, now = _manager_of(scope), _manager_name(scope, manager), scope.backend.clock.now()
    spec_text = creation = None
    printed = new
    is_built_in = not scope.resource.custom
    if is_built_in and known_specs.SPEC in new and known_specs.SPEC not in parts:
        spec_text = known_specs.text_of_spec(scope.type, new)
    if live is None and not requested:
        creation = fields.creation_of(new, name, spec_text)
        if fields.repeat_creation(creation, new["metadata"], now):
            return new
    if is_built_in:
        type_ = scope.type
        if spec_text is not None:
            parts.update(known_specs.normalised_spec(type_, new, stored=False, text=spec_text))
        printed = printing.normalise(type_, new, stored=False, parts=parts)
    # The write path changes the object in place, so it must not get what is shared with the stored one.
    tracked = printed if not parts and are_equal(printed, new) else new
    if requested is not None:
        printed["metadata"]["managedFields"] = requested
    fields.update(live, printed, name, now, creation)
    tracked["metadata"] = printed["metadata"]
    return tracked


def _update_by_way_of_storage(scope: Scope, live: Object | None, new: Object, manager: str) -> Object:
    back = conversion.from_storage(scope.resource, conversion.to_storage(scope.resource, new))
    printed: Object = printing.normalise(scope.type, back, stored=False)
    requested = new["metadata"].pop("managedFields", None)
    printed["metadata"].pop("managedFields", None)
    fields, name, now = _manager_of(scope), _manager_name(scope, manager), scope.backend.clock.now()
    creation = fields.creation_of(printed, name) if live is None and not requested else None
    if not fields.repeat_creation(creation, printed["metadata"], now):
        if requested is not None:
            printed["metadata"]["managedFields"] = requested
        fields.update(live, printed, name, now, creation)
    if "managedFields" in printed["metadata"]:
        new["metadata"]["managedFields"] = printed["metadata"]["managedFields"]
    return new


def record_write(registry: Registry, resource: Resource, old: Object, new: Object, write: Recorded) -> Object:
    """Returns the new object with the managedFields of a write of the server as its own client."""
    tracked = {**new, "metadata": dict(new["metadata"])}
    _manager(registry, resource, resource.subresources.get(write.subresource)).update(old, tracked, SERVER, write.time)
    return tracked


def apply_configuration(scope: Scope, live: Object | None, configuration: Object, manager: str, *, force: bool) -> Object:
    """Returns the live object after an apply; the same object if nothing changes.

    Raises StatusError 400, 409 or 500.
    """
    return _manager_of(scope).apply(live, configuration, manager, force, scope.backend.clock.now())


def scale_mapping(scope: Scope) -> ScaleMapping:
    """Returns the mapping between the managedFields of an object and those of its scale."""
    resource = scope.resource
    assert scope.subresource is not None and scope.subresource.projection is not None
    served = scope.backend.registry.versions(resource.group, resource.plural)
    paths = scope.subresource.projection.replicas_paths or {each.api_version: ("spec", "replicas") for each in served}
    return ScaleMapping(resource.api_version, paths, resource.custom)


def _manager_name(scope: Scope, manager: str) -> str:
    """Returns the field manager of a request: fieldManager, or the part of the user agent before the slash."""
    return manager or _name_of_agent(scope.request.user_agent)


@cache_by_text(256)
def _name_of_agent(user_agent: str) -> str:
    name, length = "", 0
    for character in readable(user_agent.partition("/")[0]):
        if not character.isprintable():
            continue
        length += len(character.encode())
        if length > FIELD_MANAGER_MAX_LENGTH:
            break
        name += character
    return name


def _manager_of(scope: Scope) -> FieldManager:
    return _manager(scope.backend.registry, scope.resource, scope.subresource)


def _manager(registry: Registry, resource: Resource, subresource: Subresource | None) -> FieldManager:
    served = registry.versions(resource.group, resource.plural)
    key = (subresource.name if subresource else "", served)
    manager = resource.field_managers.get(key)
    if manager is None:
        manager = resource.field_managers[key] = _new_manager(resource, subresource, served)
    return manager


_KEEPS_ENTRIES: Final = 37
"""The first minor in which a change that cannot be attributed keeps the stored managedFields."""


def _new_manager(resource: Resource, subresource: Subresource | None, served: Sequence[Resource]) -> FieldManager:
    if subresource is not None and subresource.strategy is None:
        gvk = subresource.gvk
        return FieldManager(
            subresource.type, gvk.group, gvk.version, gvk.kind, subresource=subresource.name, scale_of_custom=resource.custom
        )
    strategy = resource.strategy if subresource is None or subresource.strategy is None else subresource.strategy
    filtered = [resource] if resource.custom else served
    return FieldManager(
        resource.type,
        resource.group,
        resource.version,
        resource.kind,
        subresource=subresource.name if subresource else "",
        custom=resource.custom,
        filters={r.api_version: excluding(reset) for r in filtered if (reset := strategy.reset_fields(r.version))},
        keeps_entries=resource.emulation.minor >= _KEEPS_ENTRIES,
        other_version=partial(_other_version, {r.api_version: r for r in served}),
    )


def _other_version(served: Mapping[str, Resource], obj: Object, api_version: str, other: str) -> tuple[Object, Type] | None:
    """See `apimachinery.patch.apply.OtherVersion`."""
    source, target = served.get(api_version), served.get(other)
    if source is None or target is None:
        return None
    if source is target:
        return obj, target.type
    if target.convert is not None:
        return target.convert(obj, other), target.type
    typed = decode_unstructured(source.type, str(source.gvk), obj or {})  # a pruned object may have nothing left
    converted = conversion.from_storage(target, conversion.to_storage(source, typed))
    return printing.normalise(target.type, converted), target.type
