"""Validates the keywords of every node of a schema: unsupported keywords, and extensions that contradict each other.

Properties are visited in sorted order (the real server: in random order).

The fields of x-kubernetes-validations are keywords as well; `rule_compilation` compiles the rules.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
(ValidateCustomResourceDefinitionOpenAPISchema).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fakekube.apiextensions.definition.structural_validation import structural_problem
from fakekube.apiextensions.definition.to_internal import internal_schema
from fakekube.apiextensions.instances.objects import MetadataError, embedded_errors, metadata_of
from fakekube.apiextensions.instances.pruning import has_unknown_fields
from fakekube.apiextensions.instances.validation import value_errors
from fakekube.apiextensions.schema import META_FIELDS, has_rules, schema_type
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import aggregate, forbidden, invalid, not_supported, required
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apimachinery.schema.paths import Schema, SchemaPathError, place_at
from fakekube.apis.validation.checks import NOT_BLANK, ONE_LINE, repeated_indices
from fakekube.apis.validation.rules import from_minor


def keyword_errors(schema: Schema, path: str, *, root: bool = False) -> list[FieldError]:
    """Validates the keywords of a schema and of all nested schemas; `root`: the schema is that of whole objects."""
    return list(_node_errors(schema, path, _Where(root=root)))


@dataclass(slots=True, frozen=True)
class _Where:
    """The context that a node inherits from the nodes above it."""

    root: bool = False
    in_meta: bool = False
    """The node is within the metadata of the object, or of an embedded one."""
    no_default: str | None = None
    """Why a default is forbidden; empty if it is allowed."""


def _node_errors(schema: Schema, path: str, where: _Where) -> Iterator[FieldError]:
    yield from _keyword_errors(schema, path, where)
    values, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if values is not None and values is not True and properties:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    inner = replace(where, root=False) if where.root else where
    for below, part, inherited in _child_schemas(schema, inner, root=where.root):
        yield from _node_errors(part, f"{path}.{below}", inherited)
    yield from extension_errors(schema, path)
    yield from rule_errors(schema, path)


def _child_schemas(schema: Schema, where: _Where, *, root: bool) -> Iterator[tuple[str, Schema, _Where]]:
    """Yields (path, schema, context) of the schemas directly in a schema."""
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        reason = "inside additionalProperties applying to object metadata"
        yield "additionalProperties", values, replace(where, no_default=reason) if where.in_meta else where
    for name, part in sorted((schema.get("properties") or {}).items()):
        inherited = where
        if name in META_FIELDS and (root or schema.get("x-kubernetes-embedded-resource")):
            inherited = replace(where, in_meta=True, no_default=f"in top-level {name}" if root else where.no_default)
        yield f"properties[{name}]", part, inherited
    if schema.get("not") is not None:
        yield "not", schema["not"], where
    for logic in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(schema.get(logic) or ()):
            yield f"{logic}[{index}]", part, where
    for name, part in sorted((schema.get("definitions") or {}).items()):
        yield f"definitions[{name}]", part, where
    items = schema.get("items")
    if isinstance(items, dict):
        yield "items", items, where
    else:
        for index, part in enumerate(items or ()):
            yield f"items[{index}]", part, where
    for name, part in sorted((schema.get("dependencies") or {}).items()):
        if isinstance(part, dict):
            yield f"dependencies[{name}]", part, where


_FORBIDDEN = frozenset({"id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"})
TYPES = ("array", "boolean", "integer", "number", "object", "string")


def _keyword_errors(schema: Schema, path: str, where: _Where) -> Iterator[FieldError]:
    kind, items = schema.get("type", ""), schema.get("items")
    if kind and kind not in TYPES:
        yield not_supported(f"{path}.type", kind, TYPES, plain=True)
    if schema.get("default") is not None and where.no_default:
        yield forbidden(f"{path}.default", f"must not be set {where.no_default}")
    for name, is_set in (
        ()
        if _FORBIDDEN.isdisjoint(schema)
        else (
            ("id", bool(schema.get("id"))),
            ("additionalItems", schema.get("additionalItems") is not None),
            ("patternProperties", bool(schema.get("patternProperties"))),
            ("definitions", bool(schema.get("definitions"))),
            ("dependencies", schema.get("dependencies") is not None),
            ("$ref", schema.get("$ref") is not None),
        )
    ):
        if is_set:
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(items, list) and items:
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if where.in_meta and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", text)


# --- Extensions -------------------------------------------------------------------------------------------------------

_MAP_TYPES = ("atomic", "granular")
_LIST_TYPES = ("atomic", "set", "map")


def extension_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Validates the extensions of one node."""
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    if map_type is not None:
        yield from _wrong_type(schema, path, "object", "x-kubernetes-map-type")
        if map_type not in _MAP_TYPES:
            yield not_supported(f"{path}.x-kubernetes-map-type", map_type, _MAP_TYPES, plain=True)
    if list_type is not None:
        wrong = list(_wrong_type(schema, path, "array", "x-kubernetes-list-type"))
        yield from wrong or _set_errors(schema, path)
        if list_type not in _LIST_TYPES:
            yield not_supported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES, plain=True)
    yield from _key_errors(schema, path)
    if list_type == "map":
        yield from _map_list_errors(schema, path)
    yield from _identity_errors(schema, path)


def _wrong_type(schema: Schema, path: str, wanted: str, extension: str) -> Iterator[FieldError]:
    kind, text = schema.get("type", ""), f"must be {wanted} if {extension} is specified"
    if not kind:
        yield required(f"{path}.type", text)
    elif kind != wanted:
        yield invalid(f"{path}.type", kind, text)


def _set_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Validates the items of sets, which must be atomic."""
    items = schema.get("items")
    if schema["x-kubernetes-list-type"] != "set" or not isinstance(items, dict):
        return
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield invalid(f"{path}.items.x-kubernetes-list-type", inner, text)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid(f"{path}.items.x-kubernetes-map-type", inner, text)


def _key_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    list_type, text = schema.get("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty"
    if not schema.get("x-kubernetes-list-map-keys"):
        return
    if list_type is None:
        yield required(f"{path}.x-kubernetes-list-type", text)
    elif list_type != "map":
        yield invalid(f"{path}.x-kubernetes-list-type", list_type, text)


def _map_list_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    keys, items = schema.get("x-kubernetes-list-map-keys") or [], schema.get("items")
    keys_path = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(keys_path, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if isinstance(items, list):
        shown = {"Schema": None, "JSONSchemas": [internal_schema(item) for item in items]}
        yield invalid(f"{path}.items", shown, "must only have a single schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), text)
        return
    properties = items.get("properties") or {}
    repeated = set(repeated_indices(keys))
    for index, key in enumerate(keys):
        if key not in properties:
            yield invalid(keys_path, keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", "object", text)
        if index in repeated:
            yield invalid(keys_path, keys, "must not contain duplicate entries")


def _identity_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Validates that the items of sets and the keys of maps are not nullable, and that keys are required or defaulted."""
    items, list_type = schema.get("items"), schema.get("x-kubernetes-list-type")
    if not isinstance(items, dict) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    if list_type == "map":
        properties: Mapping[str, Any] = items.get("properties") or {}
        for key in schema.get("x-kubernetes-list-map-keys") or ():
            if key in properties:
                found = f"{path}.items.properties[{key}]"
                yield from _absent_key_errors(properties[key], found, is_required=key in (items.get("required") or ()))


def _absent_key_errors(key: Schema, path: str, *, is_required: bool) -> Iterator[FieldError]:
    if not is_required and key.get("default") is None:
        text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        yield required(f"{path}.default", text)
    if key.get("nullable"):
        yield forbidden(f"{path}.nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable")


_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Validates the rules of one node of a schema."""
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        place = f"{path}.x-kubernetes-validations[{index}]"
        yield from _text_errors(rule, place)
        expression, reason = rule.get("messageExpression", ""), rule.get("reason")
        if expression and not expression.strip():
            yield required(f"{place}.messageExpression", "messageExpression must be non-empty if specified")
        if reason is not None and reason not in _REASONS:
            yield not_supported(f"{place}.reason", reason, _REASONS)
        yield from _field_path_errors(rule.get("fieldPath", ""), schema, f"{place}.fieldPath")


def _detail(field: str, text: str) -> str:
    """Returns the detail of an error, which names the field before 1.34."""
    return text if from_minor(34) else f"{field} {text}"


def _breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _text_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Returns the first error of rule and message."""
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not text:
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, _detail("message", NOT_BLANK))
    elif _breaks(message.strip()):
        yield invalid(f"{path}.message", message, _detail("message", ONE_LINE))
    elif _breaks(text) and not message:
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")


def _field_path_errors(field_path: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if field_path and not field_path.strip():
        yield invalid(path, field_path, _detail("fieldPath", NOT_BLANK))
    if _breaks(field_path):
        yield invalid(path, field_path, _detail("fieldPath", ONE_LINE))
    if field_path and not structural_problem(schema):
        try:
            place_at(field_path, schema)
        except SchemaPathError:
            yield invalid(path, field_path, _detail("fieldPath", "must be a valid path"))


# --- The defaults in a schema ------------------------------------------------------------------------------------------
# A default is invalid if pruning would change it, if embedded objects in it are invalid, or if it violates keywords or rules of
# the schema. A default within the metadata (or for the kind or apiVersion) of an object is validated as part of such an object.
#
# Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting (validation.go, surroundingobject.go).


_EMBEDDED, _INT_OR_STRING = "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"


Surround = Callable[[Any], dict[str, Any]]
"""Returns the surrounding object of a value at the position of its schema."""


def _object(value: Any) -> dict[str, Any]:
    return {"kind": "Validation", "apiVersion": "validation/v1", **value}


def default_errors(schema: Schema, path: str) -> list[FieldError]:
    """Validates the defaults of a complete structural schema."""
    return list(_errors({**schema, _EMBEDDED: True}, {}, _object, False, path))


def _errors(schema: Schema, resource: Schema, surround: Surround, in_meta: bool, path: str) -> Iterator[FieldError]:
    if schema.get(_EMBEDDED):
        resource, surround, in_meta = schema, _object, False
    value = schema.get("default")
    if value is not None:
        found = _meta_errors(resource, surround(value)) if in_meta else []
        if found:
            yield invalid(f"{path}.default", value, f"must result in valid metadata: {aggregate(found)}")
        else:
            yield from default_value_errors(schema, value, f"{path}.default", in_meta=in_meta)
    if schema.get("items") is not None:
        yield from _errors(schema["items"], resource, lambda item: surround([item]), in_meta, f"{path}.items")
    for name, below in sorted((schema.get("properties") or {}).items()):
        within = in_meta or (bool(schema.get(_EMBEDDED)) and name in META_FIELDS)
        yield from _errors(below, resource, _surround_property(surround, name), within, f"{path}.properties[{name}]")


def _surround_property(surround: Surround, name: str) -> Surround:
    return lambda value: surround({name: value})


def _meta_errors(resource: Schema, obj: dict[str, Any]) -> list[FieldError]:
    type_ = schema_type({**resource, _EMBEDDED: True})
    return list(_unreadable(type_, obj, ""))[:1] or list(embedded_errors(type_, obj))


def default_value_errors(schema: Schema, value: Any, path: str, *, in_meta: bool = False) -> Iterator[FieldError]:
    """Validates the default of one node; `in_meta`: its metadata has already been validated."""
    if not in_meta and isinstance(value, dict | list):
        type_ = schema_type(schema)
        if has_unknown_fields(type_, value, is_resource=bool(schema.get(_EMBEDDED))):
            yield invalid(path, value, "must not have unknown fields")
        found = list(_unreadable(type_, value, path))[:1] or list(embedded_errors(type_, value, path))
        if found:
            yield from found
            return
    wrong = value_errors(_without_int_or_string(schema), value)
    for error in wrong:
        place = f"{path}.{error.path.removeprefix('.')}" if error.path else path
        yield replace(error, path=place)
    if not wrong and has_rules(schema):
        from fakekube.apimachinery.cel import compile_rules  # imported late: that is slow, and most definitions do not need it

        rules = compile_rules(schema, root=bool(schema.get(_EMBEDDED)))
        if rules is not None:
            yield from rules.validate_default(value, path)


def _without_int_or_string(schema: Any) -> Any:
    """Removes x-kubernetes-int-or-string, which is not validated in defaults."""
    if isinstance(schema, list):
        return [_without_int_or_string(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = ((name, part) for name, part in schema.items() if name != _INT_OR_STRING or part is not True)
    return {name: _without_int_or_string(part) for name, part in kept}


def _unreadable(type_: Type, value: Any, path: str) -> Iterator[FieldError]:
    """Returns errors for fields of embedded objects that have the wrong type."""
    if isinstance(value, dict):
        if type_.embedded_resource:
            yield from _unreadable_meta(value, path)
        fields = type_.fields if type_.shape is Shape.STRUCT else {}
        for name in sorted(value):
            if name in fields:
                yield from _unreadable(fields[name].type, value[name], f"{path}.{name}" if path else name)
            elif type_.shape is Shape.MAP and type_.items is not None:
                yield from _unreadable(type_.items, value[name], f"{path}[{name}]")
    elif isinstance(value, list) and type_.shape is Shape.LIST and type_.items is not None:
        for index, item in enumerate(value):
            yield from _unreadable(type_.items, item, f"{path}[{index}]")


def _unreadable_meta(value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    prefix = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str):
            yield invalid(f"{prefix}{name}", value[name], "must be a string")
    if "metadata" in value:
        try:
            metadata_of(value["metadata"])
        except MetadataError as error:
            yield invalid(f"{prefix}metadata", value["metadata"], str(error))
