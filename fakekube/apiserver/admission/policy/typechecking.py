"""Type-checks the expressions of validating policies against the schemas of the kinds that the policy matches.

For admission, objects have the type dyn, so an expression with a misspelled field compiles and fails for every object. Type
checking finds such errors, with the schemas of at most ten kinds: those that the rules name without wildcards.

Invariant: the results are warnings in the status; they never change the decisions of a policy.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go, pkg/cel/openapi/resolver/refs.go,
pkg/cel/common/schemas.go.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.cel.compilation import Environment, admission
from fakekube.apimachinery.cel.declarations import declaration
from fakekube.apimachinery.cel.errors import CompileError
from fakekube.apimachinery.cel.types import DYN
from fakekube.apimachinery.cel.types import Type as CelType
from fakekube.apimachinery.patch.apply.schema import OBJECT_META, UNSTRUCTURED_SCHEMAS
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.model import Shape, Type

if TYPE_CHECKING:
    from fakekube.apis.rest.resource import Resource
    from fakekube.base.objects import Object


_MOST_TYPES: Final = 10


def expression_warnings(spec: Object, resources: Iterable[Resource]) -> list[dict[str, str]]:
    """Returns the expressionWarnings of a policy's status.

    Args:
        spec: of a ValidatingAdmissionPolicy.
        resources: all that are served.
    """
    served = list(resources)
    kinds = _matched_kinds(spec, served)
    environments = [(str(kind.gvk), _environment(spec, kind, served)) for kind in kinds]
    warnings: list[dict[str, str]] = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            source = validation.get(field)
            found = [_expression_errors(kind, environment, source) for kind, environment in environments] if source else []
            text = "\n".join(filter(None, found))
            if text:
                warnings.append({"fieldRef": f"spec.validations[{index}].{field}", "warning": text})
    return warnings


def _expression_errors(kind: str, environment: Environment, source: str) -> str:
    """Returns the errors of an expression for objects of a kind."""
    try:
        environment.check(source)
    except CompileError as error:
        return f"{kind}: {error}\n"
    return ""


# --- Which kinds ------------------------------------------------------------------------------------------------------


def _matched_kinds(spec: Object, served: Iterable[Resource]) -> list[Resource]:
    """Returns the kinds that the rules match without wildcards, in order."""
    found: dict[tuple[str, str, str], Resource] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        for count, resource in enumerate(_named_resources(rule, served), start=1):
            found[resource.group, resource.version, resource.kind] = resource
            if count == _MOST_TYPES:
                return [found[key] for key in sorted(found)]
    return [found[key] for key in sorted(found)]


def _named_resources(rule: Mapping[str, Any], served: Iterable[Resource]) -> Iterator[Resource]:
    """Rules with a wildcard for groups or versions are given up; wildcards for resources, and subresources, are left out."""
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in text for text in (*groups, *versions)):
        return
    names = sorted(name for name in rule.get("resources") or () if "*" not in name and "/" not in name)
    for group in sorted(groups):
        for version in sorted(versions):
            for name in names:
                yield from (
                    resource
                    for resource in served
                    if group in ("", resource.group)  # the core group is taken for any
                    and resource.version == version
                    and name.lower() in (resource.plural, resource.singular)
                )


# --- Their types ------------------------------------------------------------------------------------------------------


def _environment(spec: Object, resource: Resource, served: Iterable[Resource]) -> Environment:
    """Returns the environment of the expressions of a policy for objects of a kind."""
    known = admission(params="paramKind" in spec, composed=True)
    own = _declare_type(resource)
    variables = {**known.variables, "object": own, "oldObject": own}
    variables.pop("authorizer.requestResource")
    if "params" in variables:
        variables["params"] = _declare_type(_param_resource(spec["paramKind"], served))
    environment = replace(known, variables=variables)
    for variable in spec.get("variables") or ():
        try:
            found = environment.check(variable.get("expression", "")).type
        except CompileError:
            found = None
        environment = environment.with_variable(variable.get("name", ""), found)
    return environment


def _param_resource(param_kind: Mapping[str, Any], served: Iterable[Resource]) -> Resource | None:
    wanted = (param_kind.get("apiVersion"), param_kind.get("kind"))
    return next((each for each in served if (each.api_version, each.kind) == wanted), None)


def _declare_type(resource: Resource | None) -> CelType:
    """Returns the type of the objects of a resource; its name is generated."""
    if resource is None:
        return DYN
    schema = _schema(resource.type, frozenset())
    if resource.custom:
        meta = _schema(type_of(OBJECT_META), frozenset())
        schema = {**schema, "properties": {**schema.get("properties", {}), "metadata": meta}}
    found = declaration(schema, root=True)
    return DYN if found is None else found.type(f"{resource.kind}{time.time_ns() % 1_000_000_000}")


class _Properties(Mapping[str, Mapping[str, Any]]):
    """The declarations of the fields of a struct, made on first use."""

    def __init__(self, type_: Type, seen: frozenset[str]) -> None:
        self._type, self._seen = type_, seen

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return _schema(self._type.fields[name].type, self._seen)

    def __iter__(self) -> Iterator[str]:
        return iter(self._type.fields)

    def __len__(self) -> int:
        return len(self._type.fields)


_OPEN: Final[Mapping[str, Any]] = {"type": "object"}
_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_TIME: Final[Mapping[str, Any]] = {"type": "string", "format": "date-time"}

_SCHEMAS: Final[Mapping[Shape, Mapping[str, Any]]] = {
    Shape.STRING: _STRING,
    Shape.DURATION: _STRING,
    Shape.BYTES: {"type": "string", "format": "byte"},
    Shape.INTEGER: {"type": "integer"},
    Shape.NUMBER: {"type": "number"},
    Shape.BOOLEAN: {"type": "boolean"},
    Shape.TIME: _TIME,
    Shape.MICRO_TIME: _TIME,
    Shape.INT_OR_STRING: {"x-kubernetes-int-or-string": True},
    Shape.RAW: _OPEN,
    Shape.FIELDS_V1: _OPEN,
}


def _schema(type_: Type, seen: frozenset[str]) -> Mapping[str, Any]:
    """Returns the OpenAPI schema of a type for expressions; quantities and untyped values have no type.

    `seen` are the enclosing types; a recursive type becomes an object without fields.
    """
    if type_.shape is Shape.STRING and not type_.name and type_.format:
        return {"type": "string", "format": type_.format}
    if type_.shape in _SCHEMAS:
        return _SCHEMAS[type_.shape]
    if type_.shape is Shape.LIST and type_.items is not None:
        return {"type": "array", "items": _schema(type_.items, seen)}
    if type_.items is not None:
        return {"type": "object", "additionalProperties": _schema(type_.items, seen)}
    if type_.shape is not Shape.STRUCT or type_.go.endswith(UNSTRUCTURED_SCHEMAS):
        return {}
    if type_.name and type_.name in seen:
        return _OPEN
    return {"type": "object", "properties": _Properties(type_, seen | {type_.name})}
