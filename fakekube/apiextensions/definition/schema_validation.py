"""Validates the schema of a version of a definition.

The schema must be structural, its defaults must be valid, the keywords of every node are checked, and its rules are
compiled. A schema that passes the fast check (`schema_fast_check`) skips the checks that produce error messages, and a
schema that is already served is not validated again.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
(validateCustomResourceDefinitionValidation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fakekube.apiextensions.definition.keyword_validation import default_errors, keyword_errors
from fakekube.apiextensions.definition.schema_fast_check import check_schema
from fakekube.apiextensions.definition.structural_validation import structural_errors, structural_problem
from fakekube.apiextensions.definition.to_internal import Schema, internal_schema, set_fields
from fakekube.apiextensions.instances.schema_cache import find_compiled
from fakekube.apiextensions.schema import has_rules
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid


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
