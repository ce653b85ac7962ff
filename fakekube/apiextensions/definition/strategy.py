"""The strategies of CustomResourceDefinitions: main path and /status.

A definition is validated as a whole, including its metadata, because its name depends on its spec. Controllers
(`apiserver.controlplane`) set conditions and accepted names; the strategy only maintains
storedVersions.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition (strategy.go, etcd.go),
pkg/apis/apiextensions/v1/defaults.go, pkg/apiserver/validation/formats.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.apiextensions.definition.conditions import FINALIZER, approval_errors, is_true
from fakekube.apiextensions.definition.validation import preserve_errors, spec_errors, status_errors, stored_version_errors
from fakekube.apiextensions.instances.schema_cache import find_compiled
from fakekube.apiextensions.instances.validation import unrecognized_formats
from fakekube.apiextensions.schema import schemas_in
from fakekube.apimachinery.codecs.json import to_untyped
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.schema.paths import Schema
from fakekube.apimachinery.schema.trees import in_order
from fakekube.apis.rest.strategy import Strategy, WriteContext, keep_all_but
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import immutable_field
from fakekube.apis.validation.objectmeta import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS, validate_object_meta, with_condition
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.webhooks import has_valid_ca_bundle
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

#: The finalizers of propagation policies: a definition ignores the policy of its first deletion.
_PROPAGATION_FINALIZERS = frozenset({ORPHAN_DEPENDENTS, DELETE_DEPENDENTS})


class DefinitionStrategy(Strategy):
    """The strategy of definitions on the main path."""

    unconditional_update = False
    has_status = True
    generation = True
    terminates = True
    standard_finalizers = False
    checks_metadata = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec_names = spec.setdefault("names", {})
        kind = spec_names.get("kind", "")
        if not spec_names.get("singular"):
            spec_names["singular"] = kind.lower()
        if kind and not spec_names.get("listKind"):
            spec_names["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        _drop_empty_webhook(spec["conversion"])
        for version in spec.get("versions") or ():
            _to_stored_schema((version.get("schema") or {}).get("openAPIV3Schema"))
        storage = _storage_version(spec)
        status = obj.get("status") or {}
        if storage is not None and not status.get("storedVersions"):
            obj["status"] = {**status, "storedVersions": [storage]}

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["status"] = {}
        _add_storage_version(obj)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        _add_storage_version(obj)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        required_name = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"

        def name_errors(name: str, prefix: bool) -> list[str]:
            wrong = [] if name == required_name else ['must be spec.names.plural+"."+spec.group']
            return names.dns_subdomain(name, prefix) + wrong

        errors = validate_object_meta(obj["metadata"], False, name_errors, standard_finalizers=False)
        return errors + _validate_all_but_metadata(obj, None, spec_errors(spec, checks_authorities=False))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, old_spec = obj["spec"], old["spec"]
        established = is_true(old, "Established")
        if spec == old_spec:  # it was valid before, and schemas are large
            return _validate_all_but_metadata(obj, old, [])
        errors = spec_errors(spec, checks_authorities=established and has_valid_ca_bundle(old_spec))
        if established:
            errors += immutable_field(spec.get("scope", ""), old_spec.get("scope", ""), "spec.scope")
            errors += _same_name(spec, old_spec, "kind")
        errors += immutable_field(spec.get("group", ""), old_spec.get("group", ""), "spec.group")
        errors += _same_name(spec, old_spec, "plural")
        return _validate_all_but_metadata(obj, old, errors)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        if not from_minor(34):
            return []
        known = set(_unrecognized_formats(old["spec"])) if old is not None else set()
        found = [f"unrecognized format {go_quote(text)}" for text in _unrecognized_formats(obj["spec"]) if text not in known]
        if from_minor(37):
            before = _types_of_set_items(old["spec"]) if old is not None else set()
            found += [_SET_OF_CONTAINERS.format(go_quote(type_)) for type_ in sorted(_types_of_set_items(obj["spec"]) - before)]
        return found

    def terminate(self, obj: Object) -> None:
        meta = obj["metadata"]
        finalizers = [name for name in meta.get("finalizers") or () if name not in _PROPAGATION_FINALIZERS]
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        meta["finalizers"] = finalizers
        marked = with_condition(
            obj,
            type_="Terminating",
            status="True",
            now=meta["deletionTimestamp"],
            reason="InstanceDeletionPending",
            message="CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        )
        obj["status"] = marked["status"]


class DefinitionStatusStrategy(Strategy):
    """The strategy of /status: metadata can change, too."""

    unconditional_update = False
    standard_finalizers = False

    def default(self, obj: Object) -> None:
        DefinitionStrategy().default(obj)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        keep_all_but(obj, old, "status")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return status_errors(obj.get("status") or {})

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",)]


def _validate_all_but_metadata(obj: Object, old: Object | None, errors: list[FieldError]) -> list[FieldError]:
    """Returns the errors of the spec, which are given, then all others."""
    spec, status = obj["spec"], obj.get("status") or {}
    return [
        *errors,
        *status_errors(status),
        *stored_version_errors(status.get("storedVersions") or (), spec.get("versions") or ()),
        *approval_errors(obj, old),
        *preserve_errors(spec),
    ]


# --- The stored form --------------------------------------------------------------------------------------------------


def _drop_empty_webhook(conversion: dict[str, Any]) -> None:
    webhook = conversion.get("webhook")
    if webhook is not None and webhook.get("clientConfig") is None and not webhook.get("conversionReviewVersions"):
        del conversion["webhook"]


_UNTYPED_KEYWORDS = frozenset({"default", "example", "enum"})


def _to_stored_schema(schema: dict[str, Any] | None) -> None:
    """Brings a schema into the form in which it is read from the storage, in place.

    Untyped values pass through Go values: maps lose their order, and large integers become floats. An empty list of
    items is encoded as null.
    """
    for part in schemas_in(schema):
        for name in () if _UNTYPED_KEYWORDS.isdisjoint(part) else _UNTYPED_KEYWORDS.intersection(part):
            if not isinstance(part[name], str):  # most are strings
                part[name] = to_untyped(in_order(part[name]))
        if "items" in part and part["items"] is None:
            del part["items"]


# --- Versions and states ----------------------------------------------------------------------------------------------


def _storage_version(spec: Mapping[str, Any]) -> str | None:
    found = (version.get("name", "") for version in spec.get("versions") or () if version.get("storage"))
    return next(found, None)


def _add_storage_version(obj: Object) -> None:
    """Adds the storage version to storedVersions."""
    storage, status = _storage_version(obj["spec"]), obj.get("status") or {}
    stored = status.get("storedVersions") or []
    if storage is not None and storage not in stored:
        obj["status"] = {**status, "storedVersions": [*stored, storage]}


def _same_name(spec: Mapping[str, Any], old_spec: Mapping[str, Any], name: str) -> list[FieldError]:
    value, old = (each["names"].get(name, "") for each in (spec, old_spec))
    return immutable_field(value, old, f"spec.names.{name}")


def _schemas_of_versions(spec: Mapping[str, Any]) -> Iterator[Schema]:
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            yield schema


def _unrecognized_formats(spec: Mapping[str, Any]) -> Iterator[str]:
    """Returns the unrecognized formats in all schemas."""
    for schema in _schemas_of_versions(spec):
        known = find_compiled(schema)
        yield from known.unrecognized_formats if known is not None else unrecognized_formats(schema)


_SET_OF_CONTAINERS: Final = (
    "x-kubernetes-list-type: set for items of type {} is not supported by server-side apply or CEL validation rules"
)


def _types_of_set_items(spec: Mapping[str, Any]) -> set[str]:
    """Returns the types other than scalars that items of sets have in any schema (getNonScalarListTypeSetWarnings)."""
    parts = (part for schema in _schemas_of_versions(spec) for part in schemas_in(schema))
    sets = (part for part in parts if part.get("x-kubernetes-list-type") == "set" and isinstance(part.get("items"), dict))
    return {part["items"].get("type", "") for part in sets} & {"array", "object"}
