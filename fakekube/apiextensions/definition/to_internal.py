"""Converts a definition to the internal version, in which fields that all versions have in common move to the spec.

The real server validates the internal type. So field errors have the path `spec.validation.openAPIV3Schema` if all
versions have the same schema (as a single version always has), and bad values that are structs are printed with the
internal type's Go names.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions (types.go, types_jsonschema.go, v1/conversion.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from fakekube.apimachinery.schema.paths import Schema

Spec = Mapping[str, Any]
S = TypeVar("S", bound=Schema)

#: Field of a version → top-level field of the spec, used if the field is the same in all versions.
_RAISED = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
#: Fields of which an empty value is the same as none.
_LISTS = frozenset({"additionalPrinterColumns", "selectableFields"})


def internal_spec(spec: Spec) -> dict[str, Any]:
    """Returns the spec with the fields that are the same in all versions moved to the top level; parts are shared."""
    versions = spec.get("versions")
    if not versions:
        return dict(spec)
    result = {**spec, "versions": [dict(version) for version in versions]}
    result["version"] = versions[0].get("name", "")
    for name, raised in _RAISED.items():
        first, *others = (_part(version, name) for version in versions)
        if all(other == first for other in others):
            result[raised] = first
            for version in result["versions"]:
                version.pop(name, None)
    return result


def _part(version: Mapping[str, Any], name: str) -> Any:
    return version.get(name) or None if name in _LISTS else version.get(name)


# --- As Go prints it --------------------------------------------------------------------------------------------------

Convert = Callable[[Any], Any]
Fields = tuple[tuple[str, str, Any, Convert], ...]


def _identity(value: Any) -> Any:
    return value


def _convert_each(convert: Convert) -> Convert:
    return lambda values: None if values is None else [convert(value) for value in values]


def _values(convert: Convert) -> Convert:
    return lambda values: None if values is None else {name: convert(values[name]) for name in sorted(values)}


def _struct(value: Mapping[str, Any] | None, fields: Fields) -> dict[str, Any] | None:
    if value is None:
        return None
    return {go: convert(value.get(name, zero)) for go, name, zero, convert in fields}


def internal_schema(schema: Schema | None) -> dict[str, Any] | None:
    """Returns a JSONSchemaProps as Go prints the internal type."""
    return _struct(schema, _SCHEMA_FIELDS)


def _items(value: Any) -> Any:
    if value is None:
        return None
    several = isinstance(value, list)
    return {
        "Schema": None if several else internal_schema(value),
        "JSONSchemas": [internal_schema(item) for item in value] if several else None,
    }


def _schema_or_bool(value: Any) -> Any:
    if value is None:
        return None
    return {"Allows": value is not False, "Schema": None if isinstance(value, bool) else internal_schema(value)}


def _schema_or_strings(value: Any) -> Any:
    several = isinstance(value, list)
    return {"Schema": None if several else internal_schema(value), "Property": value if several else None}


def _rule(value: Mapping[str, Any]) -> Any:
    return _struct(value, _RULE_FIELDS)


def _documentation(value: Mapping[str, Any] | None) -> Any:
    return _struct(value, (("Description", "description", "", _identity), ("URL", "url", "", _identity)))


#: (Go's name, name in JSON, zero value, how the value is printed), in the order of the type.
_SCHEMA_FIELDS: Fields = (
    ("ID", "id", "", _identity),
    ("Schema", "$schema", "", _identity),
    ("Ref", "$ref", None, _identity),
    ("Description", "description", "", _identity),
    ("Type", "type", "", _identity),
    ("Nullable", "nullable", False, _identity),
    ("Format", "format", "", _identity),
    ("Title", "title", "", _identity),
    ("Default", "default", None, _identity),
    ("Maximum", "maximum", None, _identity),
    ("ExclusiveMaximum", "exclusiveMaximum", False, _identity),
    ("Minimum", "minimum", None, _identity),
    ("ExclusiveMinimum", "exclusiveMinimum", False, _identity),
    ("MaxLength", "maxLength", None, _identity),
    ("MinLength", "minLength", None, _identity),
    ("Pattern", "pattern", "", _identity),
    ("MaxItems", "maxItems", None, _identity),
    ("MinItems", "minItems", None, _identity),
    ("UniqueItems", "uniqueItems", False, _identity),
    ("MultipleOf", "multipleOf", None, _identity),
    ("Enum", "enum", None, _identity),
    ("MaxProperties", "maxProperties", None, _identity),
    ("MinProperties", "minProperties", None, _identity),
    ("Required", "required", None, _identity),
    ("Items", "items", None, _items),
    ("AllOf", "allOf", None, _convert_each(internal_schema)),
    ("OneOf", "oneOf", None, _convert_each(internal_schema)),
    ("AnyOf", "anyOf", None, _convert_each(internal_schema)),
    ("Not", "not", None, internal_schema),
    ("Properties", "properties", None, _values(internal_schema)),
    ("AdditionalProperties", "additionalProperties", None, _schema_or_bool),
    ("PatternProperties", "patternProperties", None, _values(internal_schema)),
    ("Dependencies", "dependencies", None, _values(_schema_or_strings)),
    ("AdditionalItems", "additionalItems", None, _schema_or_bool),
    ("Definitions", "definitions", None, _values(internal_schema)),
    ("ExternalDocs", "externalDocs", None, _documentation),
    ("Example", "example", None, _identity),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None, _identity),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False, _identity),
    ("XIntOrString", "x-kubernetes-int-or-string", False, _identity),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None, _identity),
    ("XListType", "x-kubernetes-list-type", None, _identity),
    ("XMapType", "x-kubernetes-map-type", None, _identity),
    ("XValidations", "x-kubernetes-validations", None, _convert_each(_rule)),
)
_RULE_FIELDS: Fields = (
    ("Rule", "rule", "", _identity),
    ("Message", "message", "", _identity),
    ("MessageExpression", "messageExpression", "", _identity),
    ("Reason", "reason", None, _identity),
    ("FieldPath", "fieldPath", "", _identity),
    ("OptionalOldSelf", "optionalOldSelf", None, _identity),
)
_SCALE_FIELDS: Fields = (
    ("SpecReplicasPath", "specReplicasPath", "", _identity),
    ("StatusReplicasPath", "statusReplicasPath", "", _identity),
    ("LabelSelectorPath", "labelSelectorPath", None, _identity),
)
_SUBRESOURCE_FIELDS: Fields = (
    ("Status", "status", None, _identity),
    ("Scale", "scale", None, lambda value: _struct(value, _SCALE_FIELDS)),
)
_COLUMN_FIELDS: Fields = (
    ("Name", "name", "", _identity),
    ("Type", "type", "", _identity),
    ("Format", "format", "", _identity),
    ("Description", "description", "", _identity),
    ("Priority", "priority", 0, _identity),
    ("JSONPath", "jsonPath", "", _identity),
)
_VALIDATION_FIELDS: Fields = (("OpenAPIV3Schema", "openAPIV3Schema", None, internal_schema),)
_SELECTABLE_FIELDS: Fields = (("JSONPath", "jsonPath", "", _identity),)
_VERSION_FIELDS: Fields = (
    ("Name", "name", "", _identity),
    ("Served", "served", False, _identity),
    ("Storage", "storage", False, _identity),
    ("Deprecated", "deprecated", False, _identity),
    ("DeprecationWarning", "deprecationWarning", None, _identity),
    ("Schema", "schema", None, lambda value: _struct(value, _VALIDATION_FIELDS)),
    ("Subresources", "subresources", None, lambda value: _struct(value, _SUBRESOURCE_FIELDS)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", None, _convert_each(lambda value: _struct(value, _COLUMN_FIELDS))),
    ("SelectableFields", "selectableFields", None, _convert_each(lambda value: _struct(value, _SELECTABLE_FIELDS))),
)


def internal_versions(versions: Sequence[Mapping[str, Any]] | None) -> list[Any] | None:
    """Returns the versions of an internal spec as Go prints them."""
    return None if versions is None else [_struct(version, _VERSION_FIELDS) for version in versions]


# --- Fields that are set ----------------------------------------------------------------------------------------------

#: Keywords whose empty list or map is the same as none.
_EMPTY_IS_UNSET = frozenset({"enum", "allOf", "anyOf", "oneOf", "properties"})


def set_fields(schema: Schema) -> Iterator[tuple[str, str]]:
    """Returns (Go's name, name in JSON) of the fields of a schema that do not have their zero value."""
    for go, name, zero, _ in _SCHEMA_FIELDS:
        value = schema.get(name, zero)
        if value is zero or (zero == "" and value == "") or (name in _EMPTY_IS_UNSET and not value):
            continue
        yield go, name
