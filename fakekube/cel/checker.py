"""What the compiler says of an expression before it ever runs: names, types, literals.

Every node gets a type; what does not fit is told with its place. Where types are not known (`dyn`), everything fits.

Specified by: cel-spec, doc/langdef.md (Gradual type checking); cel-go/checker/checker.go, cel-go/cel/validator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.cel.errors import CompileError, EvaluationError, Issue
from fakekube.cel.libraries.formatting import formatted
from fakekube.cel.libraries.regex import compiled
from fakekube.cel.libraries.standard import parse_duration, parse_timestamp
from fakekube.cel.signatures import SIGNATURES
from fakekube.cel.syntax import (
    Call,
    Identifier,
    ListLiteral,
    Literal,
    Loop,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    dotted,
)
from fakekube.cel.types import BOOL, DYN, INT, Type, fits, join, list_of, map_of, optional_of, substituted
from fakekube.cel.values import TYPE_NAMES, kind_of

__all__ = ["check"]

_PRINTED: Final = {
    "google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration", "null_type": "null",
}
_TYPES: Final = {name: Type("type", (Type(_PRINTED.get(name, name)),)) for name in TYPE_NAMES.values()}


Messages = Callable[[str], Type | None]
"""Name of a type of messages → the type, if there is one."""


def check(source: str, node: Node, variables: Mapping[str, Type], messages: Messages = lambda name: None) -> Type:
    """The type of an expression. Raises CompileError."""
    checker = _Checker(variables, messages)
    found = checker.type_of(node)
    issues = checker.issues or checker.literal_issues()
    if issues:
        raise CompileError(source, issues)
    return found


class _Checker:
    def __init__(self, variables: Mapping[str, Type], messages: Messages) -> None:
        self.issues: list[Issue] = []
        self._messages = messages
        self._variables = dict(variables)
        self._literals: list[tuple[int, list[tuple[int, Type]]]] = []
        """Elements of literals, whose types must be the same: (position, type)."""
        self._calls: list[Call] = []
        self._lenient = 0
        """Are we in an argument of a function whose literals may mix types?"""

    def _complain(self, node: Node, message: str) -> Type:
        self.issues.append(Issue(node.position, message))
        return DYN

    def type_of(self, node: Node) -> Type:
        return _METHODS[type(node)](self, node)

    def literal(self, node: Literal) -> Type:
        name = TYPE_NAMES[kind_of(node.value)]
        return Type(_PRINTED.get(name, name))

    def identifier(self, node: Identifier) -> Type:
        found = self._variables.get(node.name) or _TYPES.get(node.name)
        return found or self._complain(node, f"undeclared reference to '{node.name}' (in container '')")

    def select(self, node: Select) -> Type:
        qualified = dotted(node)
        if known := _TYPES.get(qualified) or self._variables.get(qualified):
            return known
        operand = self.type_of(node.operand)
        optional = node.optional
        if operand.name == "optional_type":
            operand, optional = operand.parameters[0], True
        found = self._field(node, operand)
        if node.test:
            return BOOL
        return optional_of(found) if optional and found.name != "optional_type" else found

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.is_unknown:
            return operand
        if operand.name == "map":
            return operand.parameters[1]
        if operand.fields is None:
            return self._complain(node, f"type '{operand}' does not support field selection")
        found = operand.fields.get(node.field) or operand.fields.get(f"__{node.field}__")
        return found or self._complain(node, f"undefined field '{node.field}'")

    def call(self, node: Call) -> Type:
        parts = (node.target, *node.arguments) if node.target else node.arguments
        self._lenient += node.function == "format"
        given = [self.type_of(part) for part in parts]
        self._lenient -= node.function == "format"
        if node.function in _LOGIC and node.target is None:
            for part, found in zip(parts, given, strict=True):
                self._expect_bool(part, found)
            return BOOL
        member = node.target is not None
        overloads = SIGNATURES.get((node.function, member))
        if overloads is None:
            if (node.function, not member) not in SIGNATURES:
                return self._complain(node, f"undeclared reference to '{node.function}' (in container '')")
            overloads = ()
        results = []
        for signature in overloads:
            bindings: dict[str, Type] = {}
            if len(signature.arguments) == len(given) and all(
                fits(wanted, each, bindings) for wanted, each in zip(signature.arguments, given, strict=True)
            ):
                results.append(substituted(signature.result, bindings))
        if not results:
            return self._complain(node, _no_overload(node.function, member, given))
        self._calls.append(node)
        return results[0] if all(result == results[0] for result in results) else DYN

    def list_literal(self, node: ListLiteral) -> Type:
        elements = [self._element(part, number in node.optional) for number, part in enumerate(node.elements)]
        self._note(elements)
        return list_of(join([found for _, found in elements]) if elements else DYN)

    def map_literal(self, node: MapLiteral) -> Type:
        keys = [self._element(key, optional=False) for key, _ in node.entries]
        values = [self._element(part, number in node.optional) for number, (_, part) in enumerate(node.entries)]
        self._note(keys)
        self._note(values)
        return map_of(join([found for _, found in keys]), join([found for _, found in values]))

    def message(self, node: MessageLiteral) -> Type:
        made = self._messages(node.name)
        values = [self.type_of(part) for _, _, part in node.fields]
        if made is None:
            return self._complain(node, f"undeclared reference to '{node.name}' (in container '')")
        for (position, name, _), found in zip(node.fields, values, strict=True):
            wanted = made.fields.get(name) if made.fields is not None else None
            if wanted is None:
                self.issues.append(Issue(position, f"undefined field '{name}'"))
            elif not fits(wanted, found, {}):
                said = f"expected type of field '{name}' is '{wanted}' but provided type is '{found}'"
                self.issues.append(Issue(position, said))
        return made

    def _element(self, node: Node, optional: bool) -> tuple[int, Type]:
        found = self.type_of(node)
        if optional and found.name == "optional_type":
            found = found.parameters[0]
        return node.position, found

    def _note(self, elements: list[tuple[int, Type]]) -> None:
        if elements and not self._lenient:
            self._literals.append((elements[0][0], elements))

    def loop(self, node: Loop) -> Type:
        container = self.type_of(node.target)
        hidden = {name: self._variables.get(name) for name in node.variables}
        self._variables.update(zip(node.variables, self._loop_types(node, container), strict=False))
        bodies = [self.type_of(body) for body in node.bodies]
        for name, before in hidden.items():
            if before is None:
                self._variables.pop(name, None)
            else:
                self._variables[name] = before
        self._check_condition(node, container, bodies)
        return _LOOP_RESULTS[node.macro](container, bodies[-1])

    def _loop_types(self, node: Loop, container: Type) -> tuple[Type, ...]:
        if node.macro == "bind":
            return (container,)
        if node.macro in ("optMap", "optFlatMap"):
            if container.name == "optional_type":
                return container.parameters
            if not container.is_unknown:
                self._complain(node, _no_overload("hasValue", True, [container]))
            return (DYN,)
        if container.name == "list":
            return container.parameters if len(node.variables) == 1 else (INT, *container.parameters)
        if container.name == "map":
            return container.parameters[: len(node.variables)]
        if not container.is_unknown:
            said = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._complain(node.target, f"expression of type '{container}' {said}")
        return (DYN, DYN)

    def _check_condition(self, node: Loop, container: Type, bodies: list[Type]) -> None:
        """What is asked of each element is true or false."""
        condition = bodies[0]
        if condition == BOOL or condition.is_unknown or (node.macro not in _CONDITIONAL and len(bodies) == 1):
            return
        if node.macro in ("all", "exists"):
            self._expect_bool(node.bodies[0], condition)
        else:
            made = INT if node.macro == "existsOne" else _LOOP_RESULTS[node.macro](container, bodies[-1])
            self._complain(node, _no_overload("_?_:_", False, [condition, made, made]))

    def _expect_bool(self, node: Node, found: Type) -> None:
        if found != BOOL and not found.is_unknown:
            self._complain(node, f"expected type 'bool' but found '{found}'")

    # ------------------------------------------------------------ what only sound expressions are asked

    def literal_issues(self) -> list[Issue]:
        """Literals that can be seen to be wrong: mixed types, patterns, times, clauses of `format`."""
        issues = []
        for _, elements in self._literals:
            first = elements[0][1]
            wrong = next(((position, each) for position, each in elements if str(each) != str(first)), None)
            if wrong:
                issues.append(Issue(wrong[0], f"expected type '{first}' but found '{wrong[1]}'"))
        for call in self._calls:
            issues += _argument_issues(call)
        return issues


def _no_overload(name: str, member: bool, given: list[Type]) -> str:
    shown = ", ".join(map(str, given[1:] if member else given))
    return f"found no matching overload for '{name}' applied to '{f'{given[0]}.' if member else ''}({shown})'"


_LITERAL_CHECKS: Final[dict[str, Callable[[str], object]]] = {
    "matches": compiled, "duration": parse_duration, "timestamp": parse_timestamp,
}


def _argument_issues(call: Call) -> list[Issue]:
    read = _LITERAL_CHECKS.get(call.function)
    last = call.arguments[-1] if call.arguments else None
    if read is not None and isinstance(last, Literal) and isinstance(last.value, str):
        try:
            read(last.value)
        except EvaluationError:
            return [Issue(last.position, f"invalid {call.function} argument")]
    if call.function == "format" and isinstance(call.target, Literal) and isinstance(last, ListLiteral):
        return _format_issues(call, call.target.value, last)
    return []


def _format_issues(call: Call, template: str, arguments: ListLiteral) -> list[Issue]:
    """Of a template whose arguments are all literals."""
    if not all(isinstance(part, Literal) for part in arguments.elements):
        return []
    values: list[Any] = [part.value for part in arguments.elements if isinstance(part, Literal)]
    try:
        formatted(template, values)
    except EvaluationError as error:
        wrong = call.position
        if str(error).startswith("error during formatting"):
            wrong = arguments.elements[_first_misfit(template, values)].position
        return [Issue(wrong, str(error))]
    return []


def _first_misfit(template: str, values: list[Any]) -> int:
    """The index of the argument that its clause does not take."""
    for count in range(1, len(values)):
        try:
            formatted(template, values[:count])
        except EvaluationError as error:
            if str(error).startswith("error during formatting"):
                return count - 1
    return len(values) - 1


_LOGIC: Final = frozenset({"_&&_", "_||_"})
_CONDITIONAL: Final = frozenset({"all", "exists", "existsOne", "filter"})
_LOOP_RESULTS: Final[dict[str, Callable[[Type, Type], Type]]] = {
    **dict.fromkeys(("all", "exists", "existsOne"), lambda container, body: BOOL),
    "map": lambda container, body: list_of(body),
    "filter": lambda container, body: list_of(container.parameters[0] if container.parameters else DYN),
    "sortBy": lambda container, body: container,
    "transformMap": lambda container, body: map_of(
        INT if container.name == "list" else container.parameters[0] if container.parameters else DYN, body
    ),
    "transformMapEntry": lambda container, body: body,
    "optMap": lambda container, body: optional_of(body),
    "optFlatMap": lambda container, body: body,
    "bind": lambda container, body: body,
}

_METHODS: Final[dict[type, Callable[[_Checker, Any], Type]]] = {
    Literal: _Checker.literal, Identifier: _Checker.identifier, Select: _Checker.select, Call: _Checker.call,
    ListLiteral: _Checker.list_literal, MapLiteral: _Checker.map_literal, MessageLiteral: _Checker.message, Loop: _Checker.loop,
}
