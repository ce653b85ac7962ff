"""Compiles validation rules: syntax, types, constants, and estimated costs.

The variables are `self` and `oldSelf`; a schema declares their type.

Specified by: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.cel.checker import Checked, check
from fakekube.apimachinery.cel.cost.estimate import estimate
from fakekube.apimachinery.cel.declarations import Declaration
from fakekube.apimachinery.cel.errors import CompileError, EvaluationError
from fakekube.apimachinery.cel.evaluation import Program, program
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.syntax import called_functions
from fakekube.apimachinery.cel.types import BOOL, DYN, STRING, Type, functions_too_new, list_of, optional_of, read


class CompilationError(Exception):
    """The errors of an expression, and the variables that it uses, if known."""

    def __init__(self, text: str, uses: frozenset[str] = frozenset()) -> None:
        super().__init__(text)
        self.uses = uses


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled expression."""

    checked: Checked
    program: Program

    @property
    def uses_old_self(self) -> bool:
        return "oldSelf" in self.checked.uses


def compile_rule(rule: Mapping[str, Any], declared: Declaration, unknown: frozenset[str] = frozenset()) -> Compiled:
    """Compiles the rule of a validation; `unknown` are functions that it cannot use. Raises CompilationError."""
    checked = _check(rule.get("rule", ""), _variables(rule, declared), unknown, "")
    if checked.type != BOOL:
        raise CompilationError("cel expression must evaluate to a bool")
    return _instantiate(checked, "program ")


def compile_message(rule: Mapping[str, Any], declared: Declaration, unknown: frozenset[str] = frozenset()) -> Compiled:
    """Compiles the messageExpression of a validation; `unknown` are functions that it cannot use. Raises CompilationError."""
    checked = _check(rule["messageExpression"], _variables(rule, declared), unknown, "messageExpression ")
    if checked.type != STRING:
        raise CompilationError("messageExpression must evaluate to a string")
    return _instantiate(checked, "messageExpression ")


def _variables(rule: Mapping[str, Any], declared: Declaration) -> dict[str, Type]:
    """Returns the types of the variables; as in the real server, the name of the object type is generated."""
    seen = declared.type(f"selfType{time.time_ns() % 1_000_000_000}")
    return {"self": seen, "oldSelf": optional_of(seen) if rule.get("optionalOldSelf") else seen}


def _check(source: str, variables: Mapping[str, Type], unknown: frozenset[str], prefix: str) -> Checked:
    try:
        return check(source, parse(source, unknown=unknown), variables, unknown=unknown)
    except CompileError as error:
        raise CompilationError(f"{prefix}compilation failed: {error}") from None


def _instantiate(checked: Checked, prefix: str) -> Compiled:
    try:
        return Compiled(checked, program(checked))
    except EvaluationError as error:
        raise CompilationError(f"{prefix}instantiation failed: {error}", frozenset(checked.uses)) from None


# --- When a definition is written -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """The errors of a rule and its messageExpression ("" if there are none), and their costs."""

    rule_problem: str = ""
    message_problem: str = ""
    uses_old_self: bool = False
    rule_cost: int = 0
    """The maximum cost for one value."""
    message_cost: int | None = None
    """The maximum cost; None without a valid messageExpression."""


def compile_validation(rule: Mapping[str, Any], declared: Declaration) -> CompilationResult:
    """Compiles a rule and its messageExpression for the values of a declaration, as new expressions of the current minor."""
    if not rule.get("rule", "").strip():
        return CompilationResult()
    unknown = functions_too_new(features.current().minor)
    try:
        compiled = compile_rule(rule, declared, unknown)
    except CompilationError as error:
        return CompilationResult(str(error), uses_old_self="oldSelf" in error.uses)
    cost = estimate(compiled.checked, declared).high
    if not rule.get("messageExpression"):
        return CompilationResult(uses_old_self=compiled.uses_old_self, rule_cost=cost)
    try:
        message = compile_message(rule, declared, unknown)
    except CompilationError as error:
        return CompilationResult("", str(error), compiled.uses_old_self, cost)
    return CompilationResult("", "", compiled.uses_old_self, cost, estimate(message.checked, declared).high)


# --- The environments of expressions: variables for admission, access reviews, tokens, and device selectors ----------
# `Environment.compile` compiles an expression. The variables of a policy are fields of `variables`: `with_variable` makes the
# environment of the expressions after a variable.
#
# Specified by: k8s.io/apiserver/pkg/admission/plugin/cel/{compile,composition}.go, pkg/cel/mutation,
# k8s.io/dynamic-resource-allocation/cel/compile.go.


NULL: Final = Type("null")

#: Object type → its fields with their types; `#Name` is another of these types.
_OBJECTS: Final[Mapping[str, str]] = {
    "GroupVersionKind": "group string, version string, kind string",
    "GroupVersionResource": "group string, version string, resource string",
    "UserInfo": "username string, uid string, groups list(string), extra map(string,list(string))",
    "AdmissionRequest": "kind #GroupVersionKind, resource #GroupVersionResource, subResource string, "
    "requestKind #GroupVersionKind, requestResource #GroupVersionResource, requestSubResource string, name string, "
    "namespace string, operation string, userInfo #UserInfo, dryRun bool, options dyn",
    "SubjectAccessReviewSpec": "resourceAttributes #ResourceAttributes, nonResourceAttributes #NonResourceAttributes, "
    "user string, groups list(string), extra map(string,list(string)), uid string",
    "ResourceAttributes": "namespace string, verb string, group string, version string, resource string, subresource string, "
    "name string, fieldSelector #FieldSelectorAttributes, labelSelector #LabelSelectorAttributes",
    "NonResourceAttributes": "path string, verb string",
    "FieldSelectorAttributes": "rawSelector string, requirements list(#SelectorRequirement)",
    "LabelSelectorAttributes": "rawSelector string, requirements list(#SelectorRequirement)",
    "SelectorRequirement": "key string, operator string, values list(string)",
    "NamespaceSpec": "finalizers list(string)",
    "NamespaceCondition": "status string, type string, lastTransitionTime timestamp, message string, reason string",
    "NamespaceStatus": "conditions list(#NamespaceCondition), phase string",
    "NamespaceMetadata": "name string, generateName string, namespace string, labels map(string,string), "
    "annotations map(string,string), UID string, creationTimestamp timestamp, deletionGracePeriodSeconds int, "
    "deletionTimestamp timestamp, generation int, resourceVersion string, finalizers list(string)",
    "Namespace": "metadata #NamespaceMetadata, spec #NamespaceSpec, status #NamespaceStatus",
    "DRADevice": "driver string, attributes map(string,map(string,any)), allowMultipleAllocations bool, "
    "capacity map(string,map(string,kubernetes.Quantity))",
}


class _AnyField(Mapping[str, Type]):
    """The fields of an object type: any name, of type dyn."""

    def __getitem__(self, name: str) -> Type:
        return DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _PatchFields(dict[str, Type]):
    """The fields of a type; an unknown field has a type without a name, to which no value of a known type is assignable."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, _NAMELESS)


_NAMELESS: Final = Type("")

OBJECT: Final = Type("Object", fields=_AnyField())
"""The result type of an apply configuration."""
JSON_PATCH: Final = list_of(Type("JSONPatch", fields=_PatchFields({"op": STRING, "from": STRING, "path": STRING, "value": DYN})))
"""The result type of a JSON patch."""


@cache
def _object(name: str) -> Type:
    fields = (part.split(" ") for part in _OBJECTS[name].split(", "))
    return Type(f"kubernetes.{name}", fields={field: _read_type(text) for field, text in fields})


def _read_type(text: str) -> Type:
    if text.startswith("#"):
        return _object(text[1:])
    return list_of(_object(text[6:-1])) if text.startswith("list(#") else read(text)


def _patch_types(name: str) -> Type | None:
    if name == "JSONPatch":
        return JSON_PATCH.parameters[0]
    return Type(name, fields=OBJECT.fields) if name == "Object" or name.startswith("Object.") else None


class ExpressionError(Exception):
    """An invalid expression; has the detail of the field error."""


class ConstantError(ExpressionError):
    """The evaluation of a constant part failed; the real server reports it as a program instantiation error.

    `type` is that of the expression, which is known by then.
    """

    def __init__(self, text: str, type_: Type) -> None:
        super().__init__(text)
        self.type = type_


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiled expression."""

    type: Type
    program: Program
    functions: frozenset[str] = frozenset()
    """The functions, methods, operators and macros that it calls."""
    uses: frozenset[str] = frozenset()
    """The variables that it uses."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables and types that an expression can use."""

    variables: Mapping[str, Type]
    makes_patches: bool = False
    """Whether the types of mutations are available."""
    extensions: frozenset[str] = frozenset()
    """Functions that are not available to all expressions."""

    def with_variable(self, name: str, type_: Type | None) -> Environment:
        """Adds a field to `variables`; the type is None if its expression does not compile."""
        known = self.variables["variables"].fields or {}
        composed = Type("kubernetes.variables", fields={**known, name: _type_in_composition(type_)})
        return replace(self, variables={**self.variables, "variables": composed})

    def without_authorizer(self) -> Environment:
        """Removes the variables of the authorizer library."""
        kept = {name: type_ for name, type_ in self.variables.items() if not name.startswith("authorizer")}
        return replace(self, variables=kept)

    def compiled(self, source: str) -> Type:
        """Returns the type of a new expression of the current minor. Raises ExpressionError."""
        return self.compile(source, functions_too_new(features.current().minor)).type

    def check(self, source: str, unknown: frozenset[str] = frozenset()) -> Checked:
        """Parses and type-checks an expression; `unknown` are functions that it cannot use. Raises CompileError."""
        messages = _patch_types if self.makes_patches else lambda name: None
        parsed = parse(source, extensions=self.extensions, unknown=unknown)
        return check(source, parsed, self.variables, messages, unknown)

    def compile(self, source: str, unknown: frozenset[str] = frozenset()) -> Compilation:
        """Compiles an expression; `unknown` are functions that it cannot use. Raises ExpressionError."""
        try:
            checked = self.check(source, unknown)
        except CompileError as error:
            raise ExpressionError(f"compilation failed: {error}") from None
        try:
            return Compilation(checked.type, program(checked), called_functions(checked.tree), frozenset(checked.uses))
        except EvaluationError as error:
            raise ConstantError(f"program instantiation failed: {error}", checked.type) from None


def _type_in_composition(type_: Type | None) -> Type:
    """Returns the type of a variable for other expressions; object types become dyn."""
    if type_ is None or type_.fields is not None or "." in type_.name or type_.name in ("any", "type"):
        return DYN
    if type_.name not in ("list", "map"):
        return type_
    return Type(type_.name, tuple(map(_type_in_composition, type_.parameters)))


@cache
def admission(*, params: bool = False, composed: bool = False, patches: bool = False) -> Environment:
    """Returns the environment of match conditions and policies. `composed` adds the variables of a policy."""
    variables = {"object": DYN, "oldObject": DYN, "request": _object("AdmissionRequest"), "namespaceObject": _object("Namespace")}
    if params:
        variables["params"] = DYN
    variables["authorizer"] = Type("kubernetes.authorization.Authorizer")
    variables["authorizer.requestResource"] = Type("kubernetes.authorization.ResourceCheck")
    if composed:
        variables["variables"] = Type("kubernetes.variables", fields={})
    return Environment(variables, patches, frozenset({"jsonpatch.escapeKey"} if patches else ()))


@cache
def access_review() -> Environment:
    """Returns the environment of the match conditions of an authorization webhook."""
    return Environment({"request": _object("SubjectAccessReviewSpec")})


@cache
def token_claims() -> Environment:
    """Returns the environment of expressions on the claims of a token."""
    return Environment({"claims": read("map(string,any)")})


@cache
def token_user() -> Environment:
    """Returns the environment of the userValidationRules of a token."""
    return Environment({"user": _object("UserInfo")})


@cache
def devices() -> Environment:
    """Returns the environment of device selectors."""
    return Environment({"device": _object("DRADevice")}, extensions=frozenset({"cel.bind"}))
