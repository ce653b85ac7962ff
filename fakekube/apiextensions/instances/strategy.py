"""The strategies of custom resources: main path and /status.

A strategy belongs to one version of one definition. New and old objects have this version, with kind and apiVersion.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource (strategy.go, status_strategy.go, validator.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fakekube.apiextensions.instances import objects
from fakekube.apiextensions.instances.objects import embedded_errors
from fakekube.apiextensions.instances.scale import scale_errors, scale_status_errors
from fakekube.apiextensions.instances.schema_cache import CompiledSchema
from fakekube.apiextensions.instances.validation import NONE_BEFORE, list_errors, value_errors
from fakekube.apiextensions.schema import schema_type
from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors import field as fields
from fakekube.apimachinery.errors.field import FieldErrorType
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.resource import GVK
from fakekube.apis.rest.strategy import Finish, Object, Strategy, WriteContext
from fakekube.apis.validation.objectmeta import standard_finalizer_warnings, validate_object_meta
from fakekube.apis.validation.rules import from_minor

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
    checks_metadata = False  # here, it is part of the rest
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
            errors += self.version.keyword_errors(obj) + self._replica_errors(obj)
        errors += embedded_errors(self.version.type, obj)
        errors += list_errors(self.version.type, obj)
        return errors + self.rule_errors(context, errors, obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = self.type_meta_errors(obj)
        if not errors:
            errors = self.validate_metadata_update(context, obj["metadata"], old["metadata"])
            errors += self.version.keyword_errors(obj, old) + self._replica_errors(obj)
        errors += embedded_errors(self.version.type, obj)
        errors += self.changed_list_errors(obj, old)
        return errors + self.rule_errors(context, errors, obj, old)

    def type_meta_errors(self, obj: Object) -> list[FieldError]:
        """Validates that an object has the kind and version of the path."""
        gvk = self.version.gvk
        wanted = {"kind": gvk.kind, "apiVersion": gvk.api_version}
        return [fields.invalid(n, obj.get(n, ""), f"must be {text}") for n, text in wanted.items() if obj.get(n) != text]

    def _replica_errors(self, obj: Object) -> list[FieldError]:
        scale = self.version.scale
        return [*scale_errors(scale, obj), *scale_status_errors(scale, obj)] if scale else []

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
            return [fields.invalid("<nil>", None, _UNCHECKED)]
        return rules.validate(obj, old, context.warnings.append)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        known: Iterable[str] = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
        added = sorted(set(obj["metadata"].get("finalizers") or ()) - set(known))
        return [text for name in added for text in standard_finalizer_warnings(name, "metadata.finalizers")]

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)] if self.version.has_status else []


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
                found = value_errors(schema, obj["status"], "", old.get("status", NONE_BEFORE))  # their words begin below it
                errors += [replace(error, path=f"status.{error.path}" if error.path else "status") for error in found]
            if version.scale:
                errors += scale_status_errors(version.scale, obj)
        errors += main.changed_list_errors(obj, old)
        return errors + main.rule_errors(context, errors, obj, old)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        since_metadata_is_reset = 36
        return [("metadata",), ("spec",)] if self.emulation.minor >= since_metadata_is_reset else [("spec",)]
