"""Validates definitions: names, versions, columns, subresources, conversion, approval, and the schema of each version.

A schema must be structural, its defaults must be valid, the keywords of every node are checked, and its rules are compiled. A
schema that passes the fast check (`schema_fast_check`) skips the checks that produce error messages, and a schema that is already
served is not validated again.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go, pkg/apihelpers/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fakekube.apiextensions.definition.keyword_validation import default_errors, keyword_errors
from fakekube.apiextensions.definition.schema_fast_check import check_schema
from fakekube.apiextensions.definition.structural_validation import structural_errors, structural_problem
from fakekube.apiextensions.definition.to_internal import Spec, internal_schema, internal_spec, internal_versions, set_fields
from fakekube.apiextensions.instances.schema_cache import find_compiled
from fakekube.apiextensions.schema import has_rules, schemas_in
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, duplicate, forbidden, invalid, required, too_many
from fakekube.apimachinery.schema.paths import Schema, SchemaPathError, place_at
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import required_one_of
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.webhooks import ca_bundle_errors, client_errors, review_version_errors
from fakekube.base.objects import Part


def spec_errors(spec: Spec, *, checks_authorities: bool) -> list[FieldError]:
    """Validates a spec.

    Args:
        spec: the spec in v1.
        checks_authorities: whether the CA bundle of the conversion webhook is validated, too.
    """
    return list(_spec_errors(internal_spec(spec), checks_authorities=checks_authorities))


def _spec_errors(spec: Spec, *, checks_authorities: bool) -> Iterator[FieldError]:
    yield from _group_errors(spec.get("group", ""))
    yield from required_one_of(spec.get("scope", ""), "spec.scope", ("Cluster", "Namespaced"), plain=True)
    yield from _missing_schemas(spec)
    if spec.get("preserveUnknownFields") and _has_defaults(spec):
        yield invalid("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")
    subresources = _subresources_by_version(spec)
    for index, version in enumerate(_versions(spec)):
        has_status = _has_status(subresources[version.get("name", "")])
        yield from _version_errors(version, f"spec.versions[{index}]", has_status=has_status)
    yield from _version_list_errors(spec)
    yield from _label_errors(spec.get("version", ""), "spec.version")
    spec_names = spec.get("names") or {}
    for name in ("plural", "singular", "kind", "listKind"):
        if not spec_names.get(name):
            yield required(f"spec.names.{name}")
    yield from _names_errors(spec_names, "spec.names")
    yield from _part_errors(spec, spec.get("validation"), "spec", "validation", has_status=_any_status(spec))
    yield from _conversion_errors(spec, checks_authorities=checks_authorities)


def _group_errors(group: str) -> Iterator[FieldError]:
    problems = names.dns_subdomain(group) if group else ()
    if not group:
        yield required("spec.group")
    elif problems:
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _label_errors(value: str, path: str) -> Iterator[FieldError]:
    """Validates a DNS label, if there is a value."""
    problems = names.dns_1035_label(value) if value else ()
    if problems:
        yield invalid(path, value, ",".join(problems))


def _versions(spec: Spec) -> Sequence[Part]:
    return spec.get("versions") or ()


def _schema_of(part: Part | None) -> Part | None:
    return (part or {}).get("openAPIV3Schema")


def _missing_schemas(spec: Spec) -> Iterator[FieldError]:
    if _schema_of(spec.get("validation")) is not None:
        return
    for index, version in enumerate(_versions(spec)):
        if _schema_of(version.get("schema")) is None:
            detail = "" if from_minor(34) else "schemas are required"
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", detail)


def _has_defaults(spec: Spec) -> bool:
    parts = [spec.get("validation"), *(version.get("schema") for version in _versions(spec))]
    return any(schema.get("default") is not None for part in parts for schema in schemas_in(_schema_of(part)))


# --- Versions ---------------------------------------------------------------------------------------------------------


def _has_status(subresources: Part | None) -> bool:
    return (subresources or {}).get("status") is not None


def _any_status(spec: Spec) -> bool:
    return any(_has_status(part.get("subresources")) for part in (spec, *_versions(spec)))


def _subresources_by_version(spec: Spec) -> Mapping[str, Part | None]:
    """Returns the subresources of each version, by its name; those of the spec if no version has its own."""
    own: dict[str, Part | None] = {}
    for version in _versions(spec):
        own.setdefault(version.get("name", ""), version.get("subresources"))
    has_own = any(version.get("subresources") is not None for version in _versions(spec))
    return own if has_own else dict.fromkeys(own, spec.get("subresources"))


def _version_errors(version: Part, path: str, *, has_status: bool) -> Iterator[FieldError]:
    name = version.get("name", "")
    problems = names.dns_1035_label(name)
    if problems:
        yield invalid(f"{path}.name", name, ",".join(problems))
    warning = version.get("deprecationWarning")
    if warning is not None:
        for text in _deprecation_problems(warning, deprecated=bool(version.get("deprecated"))):
            yield invalid(f"{path}.deprecationWarning", Typed(warning), text)
    yield from _part_errors(version, version.get("schema"), path, "schema", has_status=has_status)


def _deprecation_problems(warning: str, *, deprecated: bool) -> Iterator[str]:
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if not names.fits(warning, 256):
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    bad = next((index for index, character in enumerate(warning) if not character.isprintable()), None)
    if bad is not None:
        place = len(warning[:bad].encode())
        yield f"must only contain printable UTF-8 characters; non-printable character found at index {place}"


def _version_list_errors(spec: Spec) -> Iterator[FieldError]:
    versions, problems = _versions(spec), []
    if len({version.get("name", "") for version in versions}) < len(versions):
        problems.append("must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        problems.append("must have exactly one version marked as storage version")
    for problem in problems:
        yield invalid("spec.versions", internal_versions(spec.get("versions")), problem)


def _part_errors(part: Part, validation: Part | None, path: str, schema_name: str, *, has_status: bool) -> Iterator[FieldError]:
    """Validates the fields that are either in the versions or, for all versions, in the spec."""
    schema = _schema_of(validation)
    if schema is not None:
        yield from schema_errors(schema, f"{path}.{schema_name}.openAPIV3Schema", has_status=has_status)
    yield from _scale_errors((part.get("subresources") or {}).get("scale"), f"{path}.subresources.scale")
    for index, column in enumerate(part.get("additionalPrinterColumns") or ()):
        yield from _column_errors(column, f"{path}.additionalPrinterColumns[{index}]")
    fields = part.get("selectableFields")
    if not fields:
        return
    if schema is None and schema_name == "schema":
        text = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield invalid(f"{path}.selectableFields", "", text)
    elif validation is None:
        yield invalid(f"{path}.selectableFields", "", "may only be set when validations.schema is included")
    else:
        problem = structural_problem(schema) if schema is not None else ""
        if problem:
            yield invalid(f"{path}.schema.openAPIV3Schema", "", problem)
        yield from _selectable_errors(fields, {} if problem or schema is None else schema, f"{path}.selectableFields")


# --- Names ------------------------------------------------------------------------------------------------------------


def _names_errors(spec_names: Part, path: str) -> Iterator[FieldError]:
    for name in ("plural", "singular"):
        yield from _label_errors(spec_names.get(name, ""), f"{path}.{name}")
    kind, list_kind = spec_names.get("kind", ""), spec_names.get("listKind", "")
    for name, value in (("kind", kind), ("listKind", list_kind)):
        if value and (problem := names.kind_name(value)):
            yield invalid(f"{path}.{name}", value, problem)
    yield from _label_list_errors(spec_names, "shortNames", path)
    if kind and kind == list_kind:
        yield invalid(f"{path}.listKind", list_kind, "kind and listKind may not be the same")
    yield from _label_list_errors(spec_names, "categories", path)


def _label_list_errors(spec_names: Part, name: str, path: str) -> Iterator[FieldError]:
    for index, value in enumerate(spec_names.get(name) or ()):
        problems = names.dns_1035_label(value)
        if problems:
            yield invalid(f"{path}.{name}[{index}]", value, ",".join(problems))


# --- Paths into objects -----------------------------------------------------------------------------------------------


def _simple_path_errors(value: str, path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [] if value.startswith(".") else [invalid(path, value, "must be a simple json path starting with .")]


#: Field of the scale → the prefix that its path must have, and the error.
_SCALE_PATHS = {
    "specReplicasPath": ((".spec.",), "under .spec"),
    "statusReplicasPath": ((".status.",), "under .status"),
    "labelSelectorPath": ((".spec.", ".status."), "under either .spec or .status"),
}


def _scale_errors(scale: Part | None, path: str) -> Iterator[FieldError]:
    if scale is None:
        return
    for name, (roots, where) in _SCALE_PATHS.items():
        value = scale.get(name) or ""
        if not value and name == "labelSelectorPath":
            continue
        errors = _simple_path_errors(value, f"{path}.{name}")
        yield from errors
        if not errors and not value.startswith(roots):
            yield invalid(f"{path}.{name}", value, f"should be a json path {where}")


_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def _column_errors(column: Part, path: str) -> Iterator[FieldError]:
    kind, format_ = column.get("type", ""), column.get("format", "")
    if not column.get("name"):
        yield required(f"{path}.name")
    if kind not in _COLUMN_TYPES:
        text = f"must be one of {','.join(_COLUMN_TYPES)}"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    if format_ and format_ not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
    yield from _simple_path_errors(column.get("jsonPath", ""), f"{path}.JSONPath")


_MAX_SELECTABLE_FIELDS = 8
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def _selectable_errors(fields: Sequence[Part], schema: Part, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, selectable in enumerate(fields):
        json_path, field_path = selectable.get("jsonPath", ""), f"{path}[{index}].jsonPath"
        if not json_path:
            yield required(field_path)
            continue
        try:
            place = place_at(json_path, schema, brackets=False)
        except SchemaPathError as error:
            yield invalid(field_path, json_path, f"is an invalid path: {error}")
            continue
        if place.root == "metadata":
            yield invalid(field_path, json_path, "must not point to fields in metadata")
        if place.schema is None or place.schema.get("type") not in ("string", "boolean", "integer"):
            yield invalid(field_path, json_path, _NOT_SELECTABLE)
        if place.path in seen:
            yield duplicate(field_path, json_path)
        seen.add(place.path)
    if len(seen) > _MAX_SELECTABLE_FIELDS:
        yield too_many(path, len(seen), _MAX_SELECTABLE_FIELDS)


# --- Conversion -------------------------------------------------------------------------------------------------------


def _conversion_errors(spec: Spec, *, checks_authorities: bool) -> Iterator[FieldError]:
    conversion, path = spec.get("conversion"), "spec.conversion"
    if conversion is None:
        return
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy != "None" and spec.get("preserveUnknownFields"):
        yield invalid(f"{path}.strategy", strategy, "must be None if spec.preserveUnknownFields is true")
    yield from required_one_of(strategy, f"{path}.strategy", ("None", "Webhook"), plain=True)
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        for name, value in (("webhookClientConfig", client is not None), ("conversionReviewVersions", bool(versions))):
            if value:
                yield forbidden(f"{path}.{name}", text)
        return
    if client is None:
        yield required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from _client_errors(client, f"{path}.webhookClientConfig", checks_authorities=checks_authorities)
    yield from _review_version_list_errors(versions, f"{path}.conversionReviewVersions")


def _client_errors(client: Part, path: str, *, checks_authorities: bool) -> Iterator[FieldError]:
    yield from client_errors({name: value for name, value in client.items() if value is not None}, path)
    if checks_authorities:
        yield from ca_bundle_errors(client.get("caBundle", ""), f"{path}.caBundle")


def _review_version_list_errors(versions: list[str], path: str) -> Iterator[FieldError]:
    yield from review_version_errors(versions, path) if versions else [required(path)]


# --- Beside the spec --------------------------------------------------------------------------------------------------


def status_errors(status: Part) -> list[FieldError]:
    """Validates a status."""
    return list(_names_errors(status.get("acceptedNames") or {}, "status.acceptedNames"))


def stored_version_errors(stored: Sequence[str], versions: Sequence[Part]) -> Iterator[FieldError]:
    """Validates storedVersions: every stored version is in the spec, and the storage version is included."""
    path = "status.storedVersions"
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    missing = {name: index for index, name in enumerate(stored)}
    for version in versions:
        name = version.get("name", "")
        if version.get("storage") and name not in missing:
            yield invalid(path, list(stored), f"must have the storage version {name}")
        missing.pop(name, None)
    for name, index in missing.items():
        text = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a "
            f"storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        )
        yield invalid(f"{path}[{index}]", name, text)


def preserve_errors(spec: Spec) -> Iterator[FieldError]:
    """Validates that preserveUnknownFields is not true, which v1 does not allow."""
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", True, text)


# --- The schema of a version -----------------------------------------------------------------------------------------


def schema_errors(schema: Schema, path: str, *, has_status: bool) -> list[FieldError]:
    """Validates an openAPIV3Schema at a path; `has_status`: the version has a /status subresource."""
    errors = list(_root_errors(schema, path)) if has_status else []
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    if find_compiled(schema) is not None:
        return errors
    valid = check_schema(schema)
    if valid is not None:
        return errors + (_compilation_errors(schema, path, ()) if valid.ruled else [])
    problem = structural_problem(schema)
    violations = [] if problem else structural_errors(schema, path) or default_errors(schema, path)
    misused = keyword_errors(schema, path, root=True)
    errors += [*violations, *misused]
    if not problem and not violations and has_rules(schema):
        errors += _compilation_errors(schema, path, misused)
    if problem and not errors:
        errors.append(invalid(path, "", problem))
    return errors


def _compilation_errors(schema: Schema, path: str, others: Sequence[FieldError]) -> list[FieldError]:
    from fakekube.apiextensions.definition.rule_compilation import compilation_errors  # with CEL, which takes a while

    return compilation_errors(schema, path, others)


_AT_ROOT = (
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
)
_WITH_STATUS = "at the root of the schema if the status subresource is enabled"
_ONLY_AT_ROOT = f"only [{' '.join(_AT_ROOT)}] fields are allowed {_WITH_STATUS}"


def _root_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Restricts the keywords at the root if there is a /status subresource, which validates only the status."""
    for go, _ in set_fields(schema):
        if go == "Type" and schema["type"] != "object":
            text = f'only "object" is allowed as the type {_WITH_STATUS}'
            yield invalid(f"{path}.type", schema["type"], text)
            return
        if go not in _AT_ROOT:
            yield invalid(path, internal_schema(schema), _ONLY_AT_ROOT)
            return
