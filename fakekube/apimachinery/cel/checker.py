"""The type checker: resolves the names and types of an expression.

Every node gets a type; type errors are reported with their position. The type `dyn` is assignable to every type.
Macros are checked as the comprehensions into which they expand. The result (`Checked`) has the types for the cost
estimate, and the calls with exactly one overload for the evaluation.

Specified by: cel-spec, doc/langdef.md (Gradual type checking); cel-go/checker/checker.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from fakekube.apimachinery.cel.depth import is_deep, room
from fakekube.apimachinery.cel.errors import CompileError, Issue
from fakekube.apimachinery.cel.literals import literal_issues
from fakekube.apimachinery.cel.macros import expanded
from fakekube.apimachinery.cel.signatures import SIGNATURES, Signature
from fakekube.apimachinery.cel.syntax import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    Loop,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    qualified_name,
)
from fakekube.apimachinery.cel.types import BOOL, DYN, ERROR, INT, Type, Unification, list_of, map_of, optional_of
from fakekube.apimachinery.cel.values import TYPE_NAMES, kind_of

_PRINTED: Final = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration", "null_type": "null"}
_LITERAL_TYPES: Final = {kind: Type(_PRINTED.get(name, name)) for kind, name in TYPE_NAMES.items()}
#: Types that are assignable only to themselves and dyn.
_PLAIN: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint", "timestamp", "duration"})
_LIST_OF_ANY: Final = list_of(DYN)
_MAP_OF_ANY: Final = map_of(DYN, DYN)

#: Identifier → the type that it denotes.
_TYPES: Final[dict[str, Type]] = {
    name: Type("type", (each,))
    for name, each in {
        **{name: Type(_PRINTED.get(name, name)) for name in TYPE_NAMES.values()},
        "list": _LIST_OF_ANY,
        "map": _MAP_OF_ANY,
        "net.IP": Type("net.IP"),
        "net.CIDR": Type("net.CIDR"),
        "timestamp": Type("timestamp"),
        "duration": Type("duration"),
    }.items()
}


@dataclass(slots=True)
class Checked:
    """The result of type checking."""

    tree: Node
    type: Type = ERROR
    types: dict[Node, Type] = field(default_factory=dict)
    overloads: dict[Node, tuple[Signature, ...]] = field(default_factory=dict)
    """Call → its possible overloads."""
    expansions: dict[Node, Node] = field(default_factory=dict)
    """Macro → its expansion."""
    uses: set[str] = field(default_factory=set)
    """The names of the variables that the expression uses."""
    deep: bool = False
    """Whether a recursive walk over the tree needs a higher recursion limit."""


#: The maximum number of collected issues.
_MOST_ISSUES: Final = 1000

#: Name of a type of messages → the type, if there is one.
Messages = Callable[[str], Type | None]


def check(source: str, node: Node, variables: Mapping[str, Type], messages: Messages = lambda name: None) -> Checked:
    """Check an expression whose variables have types. Raises CompileError."""
    checker = _Checker(node, variables, messages)
    deep = is_deep(source)
    with room(deep):
        checker.check(node)
        if checker.issues:
            raise CompileError(source, checker.issues)
        checked = checker.finish()
        issues = literal_issues(checked.tree, checked.types, checked.overloads)
    if issues:
        raise CompileError(source, issues)
    checked.deep = deep
    return checked


class _Checker:
    def __init__(self, tree: Node, variables: Mapping[str, Type], messages: Messages) -> None:
        self.issues: list[Issue] = []
        self._issues_of: dict[Node, slice] = {}
        self._messages = messages
        self._checked = Checked(tree)
        self._types = self._checked.types
        self._variables = variables
        self._locals: list[tuple[str, Type]] = []
        """Variables of comprehensions, inner ones last."""
        self._unification = Unification()

    def finish(self) -> Checked:
        """Returns the result with all type variables substituted."""
        for node, found in self._types.items():
            if found.parameters or found.is_variable:
                self._types[node] = self._unification.substituted(found, to_dyn=True)
        self._checked.type = self._types[self._checked.tree]
        return self._checked

    def check(self, node: Node) -> Type:
        known = self._types.get(node)
        if known is not None:  # the expansion of `optMap` has its target twice
            self._repeat_issues(node)
            return known
        before = len(self.issues)
        found = self._types[node] = _METHODS[type(node)](self, node)
        if len(self.issues) > before:
            self._issues_of[node] = slice(before, len(self.issues))
        return found

    def _repeat_issues(self, node: Node) -> None:
        if node in self._issues_of and len(self.issues) < _MOST_ISSUES:
            self.issues += self.issues[self._issues_of[node]]

    def _complain(self, node: Node, message: str) -> Type:
        self.issues.append(Issue(node.position, message))
        return ERROR

    def _mismatch(self, node: Node, expected: Type, found: Type) -> Type:
        return self._complain(node, f"expected type '{expected}' but found '{found}'")

    def _resolved(self, found: Type) -> Type:
        return self._unification.substituted(found)

    # ------------------------------------------------------------ names and fields

    def literal(self, node: Literal) -> Type:
        return _LITERAL_TYPES[kind_of(node.value)]

    def identifier(self, node: Identifier) -> Type:
        return self._named(node.name) or self._complain(node, f"undeclared reference to '{node.name}' (in container '')")

    def _named(self, name: str) -> Type | None:
        local = next((found for known, found in reversed(self._locals) if known == name), None)
        if local is not None:
            return local
        if name in self._variables:
            self._checked.uses.add(name)
            return self._variables[name]
        message = self._messages(name)
        return Type("type", (message,)) if message is not None else _TYPES.get(name)

    def select(self, node: Select) -> Type:
        name = qualified_name(node) if not node.optional and not node.test else ""
        known = self._named(name) if name else None
        if known is not None:
            return known
        operand = self._resolved(self.check(node.operand))
        wrapped = operand.name == "optional_type"
        found = self._field(node, operand.parameters[0] if wrapped else operand)
        if node.test:
            return BOOL
        return self._resolved(optional_of(found) if node.optional or wrapped else found)

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.name == "map":
            return operand.parameters[1]
        if operand.fields is not None:
            found = operand.fields.get(node.field) or operand.fields.get(f"__{node.field}__")
            return found or self._complain(node, f"undefined field '{node.field}'")
        if operand.is_variable:
            self._unification.fits(DYN, operand)
        elif operand.is_struct:
            self._complain(node, f"unexpected failed resolution of '{operand}'")
        elif not operand.is_dynamic:
            self._complain(node, f"type '{operand}' does not support field selection")
        return DYN

    # ------------------------------------------------------------ calls

    def call(self, node: Call) -> Type:
        for argument in node.arguments:
            self.check(argument)
        if node.target is not None:
            self.check(node.target)
        name, member = node.function, node.target is not None
        if (name, member) not in SIGNATURES and (name, not member) not in SIGNATURES:
            return self._complain(node, f"undeclared reference to '{name}' (in container '')")
        given = tuple(self._types[part] for part in node.operands)
        if name in _LOGIC:
            wrong = [
                self._mismatch(part, BOOL, found)
                for part, found in zip(node.operands, given, strict=True)
                if not self._unification.fits(found, BOOL)
            ]
            return ERROR if wrong else BOOL
        return self._result(node, given)

    def _result(self, node: Call, given: tuple[Type, ...]) -> Type:
        """Returns the result type of the matching overloads."""
        result: Type | None = None
        fitting = []
        plain = tuple(each.name if each.name in _PLAIN else None for each in given)
        for signature in _candidates(node.function, node.target is not None, plain):
            wanted = (signature.result, *signature.arguments)
            if signature.is_generic:
                wanted = self._unification.instance(wanted)
            if self._unification.all_fit(given, wanted[1:]):
                fitting.append(signature)
                found = self._resolved(wanted[0])
                if result is None:
                    result = found
                elif found != result:
                    result = DYN
        if result is None:
            shown = [str(self._unification.substituted(each, to_dyn=True)) for each in given]
            target = f"{shown.pop(0)}." if node.target is not None else ""
            applied = f"{target}({', '.join(shown)})"
            return self._complain(node, f"found no matching overload for '{node.function}' applied to '{applied}'")
        self._checked.overloads[node] = tuple(fitting)
        return result

    # ------------------------------------------------------------ literals with parts

    def list_literal(self, node: ListLiteral) -> Type:
        items: Type | None = None
        for number, element in enumerate(node.elements):
            items = self._join(items, self._content(element, number in node.optional))
        return list_of(items or self._unification.fresh())

    def map_literal(self, node: MapLiteral) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for number, (key, value) in enumerate(node.entries):
            keys = self._join(keys, self.check(key))
            values = self._join(values, self._content(value, number in node.optional))
        return map_of(keys or self._unification.fresh(), values or self._unification.fresh())

    def _content(self, node: Node, optional: bool) -> Type:
        """The type of an element; with a question mark it must be an optional value."""
        found = self.check(node)
        if not optional:
            return found
        if found.name == "optional_type":
            return found.parameters[0]
        return found if found == DYN else self._mismatch(node, optional_of(found), found)

    def _join(self, before: Type | None, found: Type) -> Type:
        if before is None:
            return found
        return self._unification.more_general(before, found) if self._unification.fits(before, found) else DYN

    def message_literal(self, node: MessageLiteral) -> Type:
        known = self._messages(node.name)
        made = known or self._other_message(node)
        if made is None:  # then its fields are not checked
            return ERROR
        for number, (position, name, value) in enumerate(node.fields):
            found = self._content(value, number in node.optional)
            wanted = made.fields.get(name) if made.fields is not None else None
            if known is None:
                self.issues.append(Issue(position, f"unexpected failed resolution of '{node.name}'"))
            elif wanted is None:
                self.issues.append(Issue(position, f"undefined field '{name}'"))
            elif not self._unification.fits(wanted, found):
                said = f"expected type of field '{name}' is '{wanted}' but provided type is '{found}'"
                self.issues.append(Issue(position, said))
        return known or ERROR

    def _other_message(self, node: MessageLiteral) -> Type | None:
        """Reports a name that is not a message type. Returns its type, None if it is undeclared."""
        named = self._named(node.name)
        if named is None:
            self._complain(node, f"undeclared reference to '{node.name}' (in container '')")
        elif named.name != "type":
            self._complain(node, f"'{named}' is not a type")
        else:
            self._complain(node, f"'{named.parameters[0]}' is not a message type")
        return named

    # ------------------------------------------------------------ macros

    def loop(self, node: Loop) -> Type:
        expansion = self._checked.expansions[node] = expanded(node)
        return self.check(expansion)

    def comprehension(self, node: Comprehension) -> Type:
        self.check(node.range)
        initial = self.check(node.initial)
        found = self._resolved(self._types[node.range])
        depth = len(self._locals)
        self._locals.append((node.accumulator, initial))
        self._locals += zip(node.variables, self._elements(node, found), strict=False)
        self._expect(node.condition, BOOL)
        self._expect(node.step, initial)
        del self._locals[depth + 1 :]
        result = self.check(node.result)
        del self._locals[depth:]
        return self._resolved(result)

    def _elements(self, node: Comprehension, container: Type) -> tuple[Type, ...]:
        if container.name == "list":
            return container.parameters if len(node.variables) == 1 else (INT, *container.parameters)
        if container.name == "map":
            return container.parameters
        if container.is_dynamic or container.is_variable:
            self._unification.fits(DYN, container)
            return (DYN, DYN)
        said = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._complain(node.range, f"expression of type '{container}' {said}")
        return (ERROR, ERROR)

    def _expect(self, node: Node, wanted: Type) -> None:
        found = self.check(node)
        if not self._unification.fits(wanted, found):
            self._mismatch(node, wanted, found)


@lru_cache(maxsize=2048)
def _candidates(name: str, member: bool, given: tuple[str | None, ...]) -> tuple[Signature, ...]:
    """Returns the overloads that may match arguments of these primitive types (None: another type)."""
    overloads = SIGNATURES.get((name, member), ())
    return tuple(each for each in overloads if len(each.arguments) == len(given) and not _is_excluded(each, given))


def _is_excluded(signature: Signature, given: tuple[str | None, ...]) -> bool:
    """Reports whether the primitive types of the arguments exclude an overload."""
    if signature.is_generic:
        return False
    return any(each and wanted.name not in (each, "dyn") for wanted, each in zip(signature.arguments, given, strict=True))


_LOGIC: Final = frozenset({"_&&_", "_||_"})

_METHODS: Final[dict[type, Callable[[_Checker, Any], Type]]] = {
    Literal: _Checker.literal,
    Identifier: _Checker.identifier,
    Select: _Checker.select,
    Call: _Checker.call,
    ListLiteral: _Checker.list_literal,
    MapLiteral: _Checker.map_literal,
    MessageLiteral: _Checker.message_literal,
    Loop: _Checker.loop,
    Comprehension: _Checker.comprehension,
}
