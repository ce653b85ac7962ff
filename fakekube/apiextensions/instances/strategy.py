"""The strategies of custom resources: main path, /status, and /scale with replicas at the dotted paths that the definition names.

A strategy belongs to one version of one definition. New and old objects have this version, with kind and apiVersion.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource (strategy.go, status_strategy.go, validator.go,
etcd.go: ScaleREST); k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go (NestedInt64, NestedString).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from fakekube.apiextensions.instances import objects
from fakekube.apiextensions.instances.schema_cache import CompiledSchema
from fakekube.apiextensions.instances.validation import NONE_BEFORE, list_errors, value_errors
from fakekube.apiextensions.schema import schema_type
from fakekube.apimachinery.errors import FieldError, field, status
from fakekube.apimachinery.errors.field import FieldErrorType
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.resource import GVK
from fakekube.apis.rest.strategy import Finish, Projection, Strategy, WriteContext
from fakekube.apis.validation.objectmeta import standard_finalizer_warnings, validate_object_meta
from fakekube.apis.validation.rules import from_minor
from fakekube.base.golang.strconv import MAX_INT32, go_quote, go_type, plain
from fakekube.base.objects import Object

#: Types of errors after which the real server does not evaluate rules.
_BLOCKING = frozenset(
    {
        FieldErrorType.NOT_SUPPORTED,
        FieldErrorType.REQUIRED,
        FieldErrorType.TOO_LONG,
        FieldErrorType.TOO_MANY,
        FieldErrorType.TYPE_INVALID,
    }
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)


#: The first minor in which metadata are among the reset fields of a status.
_RESETS_METADATA_SINCE = 36


@dataclass
class Version:
    """A version of a definition, with its compiled schema."""

    gvk: GVK
    schema: CompiledSchema
    """The cached schema; that of an empty schema if there is none."""
    free: bool = False
    """preserveUnknownFields: nothing is pruned."""
    has_status: bool = False
    scale: Mapping[str, str] | None = None
    ending: bool = False
    """The definition is terminating: creates are forbidden."""

    @cached_property
    def type(self) -> Type:
        """The type of its objects."""
        return schema_type(None) if self.free else self.schema.type

    def keyword_errors(self, obj: Object, before: Any = NONE_BEFORE) -> list[FieldError]:
        """Validates an object by the keywords of the schema."""
        return [] if self.schema.fits(obj) else value_errors(self.schema.keywords, obj, "", before)


class CustomResourceStrategy(Strategy):
    """The strategy of the main path."""

    unconditional_update = False
    standard_finalizers = False
    checks_metadata = False  # `validate` does it, between other checks
    checks_metadata_update = False

    def __init__(self, version: Version) -> None:
        self.version = version
        self.has_status = version.has_status

    def default(self, obj: Object) -> None:
        if obj.get("kind") == self.version.gvk.kind:
            objects.default(self.version.type, obj)

    def begin_create(self, context: WriteContext, obj: Object) -> Finish | None:
        if self.version.ending:
            problem = "create not allowed while custom resource definition is terminating"
            if not from_minor(34):
                error = status.method_not_supported(self.version.gvk.group, context.resource.plural, "create")
                error.message = problem
                raise error
            raise status.forbidden(self.version.gvk.group, context.resource.plural, obj["metadata"].get("name", ""), problem)
        return None

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if not all(objects.is_same(obj.get(name), old.get(name)) for name in {**obj, **old} if name != "metadata"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = self.type_meta_errors(obj)
        if not errors:
            errors = validate_object_meta(
                obj["metadata"], context.resource.namespaced, self.name_errors, standard_finalizers=False
            )
            context.metadata_is_valid = not errors
            errors += self.version.keyword_errors(obj) + self._replica_errors(obj)
        errors += objects.embedded_errors(self.version.type, obj)
        errors += list_errors(self.version.type, obj)
        return errors + self.rule_errors(context, errors, obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = self.type_meta_errors(obj)
        if not errors:
            errors = self.validate_metadata_update(context, obj["metadata"], old["metadata"])
            errors += self.version.keyword_errors(obj, old) + self._replica_errors(obj)
        errors += objects.embedded_errors(self.version.type, obj)
        errors += self.changed_list_errors(obj, old)
        return errors + self.rule_errors(context, errors, obj, old)

    def type_meta_errors(self, obj: Object) -> list[FieldError]:
        """Validates that an object has the kind and version of the path."""
        gvk = self.version.gvk
        wanted = {"kind": gvk.kind, "apiVersion": gvk.api_version}
        return [field.invalid(n, obj.get(n, ""), f"must be {text}") for n, text in wanted.items() if obj.get(n) != text]

    def _replica_errors(self, obj: Object) -> list[FieldError]:
        scale = self.version.scale
        return [*_scale_errors(scale, obj), *_scale_status_errors(scale, obj)] if scale else []

    def changed_list_errors(self, obj: Object, old: Object) -> list[FieldError]:
        """Validates list types; lists that were invalid before may stay invalid."""
        errors = list_errors(self.version.type, obj)
        return errors if errors and not list_errors(self.version.type, old) else []

    def rule_errors(
        self, context: WriteContext, errors: Sequence[FieldError], obj: Object, old: Object | None = None
    ) -> list[FieldError]:
        """Evaluates the rules of the schema, or reports that they cannot be evaluated."""
        rules = self.version.schema.rules
        if rules is None:
            return []
        if any(error.type in _BLOCKING for error in errors):
            return [field.invalid("<nil>", None, _UNCHECKED)]
        return rules.validate(obj, old, context.warnings.append)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        known: Iterable[str] = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
        added = sorted(set(obj["metadata"].get("finalizers") or ()) - set(known))
        return [text for name in added for text in standard_finalizer_warnings(name, "metadata.finalizers")]


class StatusStrategy(Strategy):
    """The strategy of /status: only the status changes."""

    unconditional_update = False
    standard_finalizers = False
    checks_metadata_update = False

    def __init__(self, main: CustomResourceStrategy) -> None:
        self._main = main

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        metadata = obj["metadata"]
        kept = {name: value for name, value in old.items() if name != "status"} | {"metadata": metadata}
        if "status" in obj:
            kept["status"] = obj["status"]
        entries = metadata.get("managedFields")
        metadata.clear()
        metadata.update({name: value for name, value in old["metadata"].items() if name != "managedFields"})
        if entries:
            metadata["managedFields"] = entries
        obj.clear()
        obj.update(kept)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        version, main = self._main.version, self._main
        errors = main.type_meta_errors(obj)
        schema = (version.schema.keywords.get("properties") or {}).get("status")
        if not errors:
            errors = self.validate_metadata_update(context, obj["metadata"], old["metadata"])
            if "status" in obj and schema:
                found = value_errors(schema, obj["status"], "", old.get("status", NONE_BEFORE))  # their paths begin at the status
                errors += [replace(error, path=f"status.{error.path}" if error.path else "status") for error in found]
            if version.scale:
                errors += _scale_status_errors(version.scale, obj)
        errors += main.changed_list_errors(obj, old)
        return errors + main.rule_errors(context, errors, obj, old)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("metadata",), ("spec",)] if self.emulation.minor >= _RESETS_METADATA_SINCE else [("spec",)]


# --- The scale subresource of custom resources ------------------------------------------------------------------------


_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")

#: The value of absent replicas in a scale that is updated.
_UNSET = -(2**31)


def projection(paths: Mapping[str, str], versions: Iterable[Version]) -> Projection:
    """Returns the scale projection of a version; `paths` is its scale, `versions` are all of the definition."""
    spec_path, status_path, selector_path = paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath")

    def show_scale(obj: Object, replicas: int) -> Object:
        return {
            "metadata": {name: obj["metadata"][name] for name in _SHOWN_METADATA if name in obj["metadata"]},
            "spec": {"replicas": replicas},
            "status": {
                "replicas": _integer_at(obj, status_path) or 0,
                "selector": (_string_at(obj, selector_path) or "") if selector_path else "",
            },
        }

    def read(obj: Object) -> Object:
        try:
            replicas = _integer_at(obj, spec_path)
            if replicas is None:
                raise status.internal(f"the spec replicas field {go_quote(spec_path)} does not exist")
            return show_scale(obj, replicas)
        except PathError as error:
            raise status.generic(500, "", str(error)) from None

    def read_leniently(obj: Object, unset: int) -> Object:
        try:
            replicas = _integer_at(obj, spec_path)
            return show_scale(obj, unset if replicas is None else replicas)
        except PathError as error:
            raise status.generic(500, "", str(error)) from None

    def write(obj: Object, scale: Object) -> Object:
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas == _UNSET:
            raise status.bad_request(f"the spec replicas field {go_quote(spec_path)} cannot be empty")
        return _with_value(obj, segments(spec_path), replicas)

    return Projection(
        read=read,
        write=write,
        validate=lambda _: [],
        replicas_paths={
            each.gvk.api_version: segments(each.scale["specReplicasPath"]) if each.scale else None for each in versions
        },
        read_for_update=lambda obj: read_leniently(obj, _UNSET),
        read_written=lambda obj: read_leniently(obj, 0),
    )


def _scale_errors(paths: Mapping[str, str], obj: Object) -> Iterator[FieldError]:
    """Validates the replicas in an object's spec."""
    yield from _replicas_errors(paths["specReplicasPath"], obj)


def _scale_status_errors(paths: Mapping[str, str], obj: Object) -> Iterator[FieldError]:
    """Validates the replicas in an object's status, and its selector."""
    yield from _replicas_errors(paths["statusReplicasPath"], obj)
    selector_path = paths.get("labelSelectorPath")
    if selector_path is not None:
        try:
            _string_at(obj, selector_path)
        except PathError as error:
            yield field.invalid(selector_path, "", str(error))


def _replicas_errors(path: str, obj: Any) -> Iterator[FieldError]:
    try:
        replicas = _integer_at(obj, path) or 0
    except PathError as error:
        yield field.invalid(path, 0, str(error))
        return
    if replicas < 0:
        yield field.invalid(path, replicas, "should be a non-negative integer")
    elif replicas > MAX_INT32:
        yield field.invalid(path, replicas, f"should be less than or equal to {MAX_INT32}")


class PathError(ValueError):
    """The value at a path has the wrong type; has the error message of the real server."""


def segments(path: str) -> tuple[str, ...]:
    """Returns the field names of a path."""
    return tuple(path.removeprefix(".").split("."))


#: Marks an absent value, as opposed to null.
_NOTHING: Final = object()


def _value_at(obj: Any, path: tuple[str, ...]) -> Any:
    value = obj
    for depth, name in enumerate(path):
        if value is None or value is _NOTHING:
            return _NOTHING
        if not isinstance(value, Mapping):
            raise _misfit(path[: depth + 1], value, "map[string]interface{}")
        value = value.get(name, _NOTHING)
    return value


def _misfit(path: tuple[str, ...], value: Any, wanted: str) -> PathError:
    shown = f".{'.'.join(path)}"
    return PathError(f"{shown} accessor error: {plain(value)} is of the type {go_type(value)}, expected {wanted}")


def _integer_at(obj: Any, path: str) -> int | None:
    """Returns the integer at a path, None if it is absent. Raises PathError."""
    value = _value_at(obj, segments(path))
    if value is _NOTHING:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _misfit(segments(path), value, "int64")
    return value


def _string_at(obj: Any, path: str) -> str | None:
    """Returns the string at a path, None if it is absent. Raises PathError."""
    value = _value_at(obj, segments(path))
    if value is _NOTHING:
        return None
    if not isinstance(value, str):
        raise _misfit(segments(path), value, "string")
    return value


def _with_value(obj: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Returns the object with a value set at a path; everything beside the path is shared."""
    first, rest = path[0], path[1:]
    if not rest:
        return {**obj, first: value}
    below = obj.get(first)
    return {**obj, first: _with_value(below if isinstance(below, Mapping) else {}, rest, value)}
