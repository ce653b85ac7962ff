"""Checks of CEL expressions of objects: they compile, and the results have the right type.

Specified by: pkg/apis/admissionregistration/validation (convertCELErrorToValidationError …);
k8s.io/apiserver/pkg/admission/plugin/cel/compile.go (CompileCELExpression).
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.cel.environments import ConstantError, Environment, ExpressionError
from fakekube.cel.types import Type
from fakekube.errors import FieldError
from fakekube.errors.field import internal, invalid

__all__ = ["expression", "expression_error", "type_name"]

_NAMES: Mapping[str, str] = {
    "null": "null_type",
    "any": "google.protobuf.Any",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def expression(environment: Environment, source: str, path: str, *types: Type, shown: str | None = None) -> list[FieldError]:
    """Validates that an expression compiles and returns one of these types. The error shows `shown`, if it is given."""
    try:
        found = environment.compiled(source)
    except ExpressionError as error:
        return [expression_error(path, source if shown is None else shown, error)]
    if found in types:
        return []
    expected = " ".join(map(type_name, types))
    expected = expected if len(types) == 1 else f"one of [{expected}]"
    return [invalid(path, source if shown is None else shown, f"must evaluate to {expected} but got {type_name(found)}")]


def expression_error(path: str, shown: str, error: ExpressionError) -> FieldError:
    return internal(path, str(error)) if isinstance(error, ConstantError) else invalid(path, shown, str(error))


def type_name(type_: Type) -> str:
    """Returns the name of a type as the real server prints it."""
    name = _NAMES.get(type_.name, type_.name)
    return f"{name}({', '.join(map(type_name, type_.parameters))})" if type_.parameters else name
