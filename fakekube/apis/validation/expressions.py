"""Checks of CEL expressions of objects: they compile, and the results have the right type.

Specified by: pkg/apis/admissionregistration/validation (convertCELErrorToValidationError …);
k8s.io/apiserver/pkg/admission/plugin/cel/compile.go (CompileCELExpression).
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.apimachinery.cel.compilation import ConstantError, Environment, ExpressionError
from fakekube.apimachinery.cel.types import Type
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import internal, invalid

_NAMES: Mapping[str, str] = {
    "null": "null_type",
    "any": "google.protobuf.Any",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def expression(environment: Environment, source: str, path: str, *types: Type, shown: str | None = None) -> list[FieldError]:
    """Validates that an expression compiles and returns one of these types. The error shows `shown`, if it is given."""
    shown = source if shown is None else shown
    found, problem = compiled_type(environment, source)
    if found is None or found in types:
        return [] if problem is None else [expression_error(path, shown, problem)]
    expected = " ".join(map(type_name, types))
    expected = expected if len(types) == 1 else f"one of [{expected}]"
    return [invalid(path, shown, f"must evaluate to {expected} but got {type_name(found)}")]


def compiled_type(environment: Environment, source: str) -> tuple[Type | None, ExpressionError | None]:
    """Returns the type of an expression, as far as it has one, and why it cannot be compiled.

    The type is checked before the parts that are constant are computed.
    """
    try:
        return environment.compiled(source), None
    except ConstantError as error:
        return error.type, error
    except ExpressionError as error:
        return None, error


def expression_error(path: str, shown: str, error: ExpressionError) -> FieldError:
    return internal(path, str(error)) if isinstance(error, ConstantError) else invalid(path, shown, str(error))


def type_name(type_: Type) -> str:
    """Returns the name of a type as the real server prints it."""
    name = _NAMES.get(type_.name, type_.name)
    return f"{name}({', '.join(map(type_name, type_.parameters))})" if type_.parameters else name
