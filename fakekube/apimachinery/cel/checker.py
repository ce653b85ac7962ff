"""The type checker: resolves the names and types of an expression.

Every node gets a type; type errors are reported with their position. The type `dyn` is assignable to every type.
Macros are checked as the comprehensions into which they expand. The result (`Checked`) has the types for the cost
estimate, and the calls with exactly one overload for the evaluation.

Specified by: cel-spec, doc/langdef.md (Gradual type checking); cel-go/checker/checker.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from fakekube.apimachinery.cel.declarations import call
from fakekube.apimachinery.cel.errors import CompileError, EvaluationError, Issue
from fakekube.apimachinery.cel.interpretable import is_deep, room
from fakekube.apimachinery.cel.libraries.strings import MISFITS, compile_pattern, fill_template
from fakekube.apimachinery.cel.parser import expand_macro
from fakekube.apimachinery.cel.syntax import (
    LOGICAL_OPERATORS,
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
    descendants,
    name_of_local,
    parts,
    qualified_name,
)
from fakekube.apimachinery.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    SIGNATURES,
    Signature,
    Type,
    Unification,
    equivalent,
    list_of,
    map_of,
    optional_of,
)
from fakekube.apimachinery.cel.values import TYPE_NAMES, kind_of
from fakekube.base.caches import forgettable

# --- The validation of literals --------------------------------------------------------------------------------------
# Mixed types in lists and maps, patterns, times, templates of `format`.
#
# Specified by: cel-go/cel/validator.go, cel-go/ext/formatting.go (stringFormatValidator).


Types = Mapping[Node, Type]


def _literal_issues(tree: Node, types: Types, calls: Mapping[Node, Any]) -> list[Issue]:
    """Returns the errors in the literals of a checked expression, all of whose nodes have types.

    `calls` has the calls that were found to be some.
    """
    found = list[Issue]()
    if not any(map(_is_looked_at, types)):
        return found
    exempt: set[Node] | None = None
    for node, times in _occurrences(tree):
        if isinstance(node, Call):
            found += list(_argument_issues(node, types)) * times if node in calls else ()
        elif isinstance(node, ListLiteral | MapLiteral):
            exempt = _within_format(tree) if exempt is None else exempt
            found += list(_content_issues(node, types)) * times if node not in exempt else ()
    return found


def _content_issues(node: ListLiteral | MapLiteral, types: Types) -> Iterator[Issue]:
    if isinstance(node, ListLiteral):
        yield from _find_mixed(node.elements, node.optional, types, stop=True)
    else:
        yield from _find_mixed([key for key, _ in node.entries], frozenset(), types)
        yield from _find_mixed([value for _, value in node.entries], node.optional, types)


def _is_looked_at(node: Node) -> bool:
    if isinstance(node, Call):
        return node.function in _ATTEMPTS or node.function == "format"
    return isinstance(node, ListLiteral | MapLiteral)


#: The maximum number of reported issues.
_MAXIMUM_ISSUES: Final = 1000


def _occurrences(tree: Node) -> Iterator[tuple[Node, int]]:
    """Yields the nodes with the number of their occurrences in the expansion; that of `optMap` has its target twice."""
    waiting = [(tree, 1)]
    while waiting:
        node, times = waiting.pop()
        yield node, times
        twice = node.target if isinstance(node, Loop) and node.macro in ("optMap", "optFlatMap") else None
        below = [(part, min(2 * times, _MAXIMUM_ISSUES) if part is twice else times) for part in parts(node)]
        waiting.extend(reversed(below))


def _within_format(tree: Node) -> set[Node]:
    """Returns the nodes within calls of `format`, whose arguments may have mixed types."""
    return {
        inner
        for node in descendants(tree)
        if isinstance(node, Call) and node.function == "format"
        for part in parts(node)
        for inner in descendants(part)
    }


def _find_mixed(elements: Any, optional: frozenset[int], types: Types, *, stop: bool = False) -> Iterator[Issue]:
    """Yields an issue for each element with another type than the first (`stop`: at most one)."""
    seen = [_content(types[node]) if number in optional else types[node] for number, node in enumerate(elements)]
    for node, each in zip(elements[1:], seen[1:], strict=True):
        if not equivalent(seen[0], each):
            yield Issue(node.position, f"expected type '{seen[0]}' but found '{each}'")
            if stop:
                return


def _content(found: Type) -> Type:
    return found.parameters[0] if found.parameters else found


#: Function → the conversion that is tried with the first argument, if it is a literal.
_ATTEMPTS: Final[dict[str, Callable[[Any], object]]] = {
    "matches": lambda value: compile_pattern(str(value)),
    "duration": lambda value: call("duration", False, [value]),
    "timestamp": lambda value: call("timestamp", False, [value]),
}


def _argument_issues(call: Call, types: Types) -> Iterator[Issue]:
    attempt = _ATTEMPTS.get(call.function)
    first = call.arguments[0] if call.arguments else None
    if attempt is not None and isinstance(first, Literal):
        try:
            attempt(first.value)
        except EvaluationError:
            yield Issue(first.position, f"invalid {call.function} argument")
    if call.function == "format" and isinstance(call.target, Literal) and isinstance(first, ListLiteral):
        yield from _format_issues(call, str(call.target.value), first.elements, types)


# --- Templates --------------------------------------------------------------------------------------------------------


def _format_issues(call: Call, template: str, arguments: tuple[Node, ...], types: Types) -> Iterator[Issue]:
    wrong: list[Node] = []
    used = 0

    def fill(index: int, letter: str, precision: int) -> str:
        nonlocal used
        used = index + 1
        misfit = _misfit(arguments[index], letter, types)
        if misfit is not None:
            wrong.append(misfit)
            name = _FULL_NAMES.get(types[misfit].name, types[misfit].name)
            raise EvaluationError(f"error during formatting: {MISFITS[letter]}, was given {name}")
        return ""

    try:
        fill_template(template, len(arguments), fill, is_literal=True)
    except EvaluationError as error:
        yield Issue((wrong[0] if wrong else call).position, str(error))
        return
    if used < len(arguments):
        said = f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})"
        yield Issue(call.position, said)


def _misfit(argument: Node, letter: str, types: Types) -> Node | None:
    """Returns the argument, or the part of it that the clause does not accept."""
    if types[argument] != DYN and types[argument].name not in _TAKEN[letter]:
        return argument
    if letter == "s" and isinstance(argument, ListLiteral | MapLiteral):
        return next((bad for part in parts(argument) if (bad := _misfit(part, "s", types))), None)
    return None


_FULL_NAMES: Final = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration", "null": "null_type"}
#: Verb → the types that it accepts.
_TAKEN: Final = {
    "s": frozenset({"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"}),
    "d": frozenset({"int", "uint"}),
    "o": frozenset({"int", "uint"}),
    "b": frozenset({"int", "uint", "bool"}),
    **dict.fromkeys("fe", frozenset({"double", "string"})),
    **dict.fromkeys("xX", frozenset({"int", "uint", "string", "bytes"})),
}


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


def check(
    source: str,
    node: Node,
    variables: Mapping[str, Type],
    messages: Messages = lambda name: None,
    unknown: frozenset[str] = frozenset(),
) -> Checked:
    """Check an expression whose variables have types; `unknown` are functions that it cannot use. Raises CompileError."""
    checker = _Checker(node, variables, messages, unknown)
    deep = is_deep(source)
    with room(deep):
        checker.check(node)
        if checker.issues:
            raise CompileError(source, checker.issues)
        checked = checker.finish()
        issues = _literal_issues(checked.tree, checked.types, checked.overloads)
    if issues:
        raise CompileError(source, issues)
    checked.deep = deep
    return checked


class _Checker:
    def __init__(self, tree: Node, variables: Mapping[str, Type], messages: Messages, unknown: frozenset[str]) -> None:
        self.issues: list[Issue] = []
        self._issues_of: dict[Node, slice] = {}
        self._messages = messages
        self._unknown = unknown
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
                self._types[node] = self._unification.substitute(found, to_dyn=True)
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

    def _resolve(self, found: Type) -> Type:
        return self._unification.substitute(found)

    # --- Names and fields ---------------------------------------------------------------------------------------------

    def literal(self, node: Literal) -> Type:
        return _LITERAL_TYPES[kind_of(node.value)]

    def identifier(self, node: Identifier) -> Type:
        return self._look_up(node.name) or self._complain(node, f"undeclared reference to '{node.name}' (in container '')")

    def _look_up(self, name: str) -> Type | None:
        local_name = name_of_local(name)
        local = next((found for known, found in reversed(self._locals) if known == local_name), None)
        if local is not None:
            return local
        name = name.removeprefix(".")
        if name in self._variables:
            self._checked.uses.add(name)
            return self._variables[name]
        message = self._messages(name)
        return Type("type", (message,)) if message is not None else _TYPES.get(name)

    def select(self, node: Select) -> Type:
        name = qualified_name(node) if not node.optional and not node.test else ""
        known = self._look_up(name) if name else None
        if known is not None:
            return known
        operand = self._resolve(self.check(node.operand))
        wrapped = operand.name == "optional_type"
        found = self._field(node, operand.parameters[0] if wrapped else operand)
        if node.test:
            return BOOL
        return self._resolve(optional_of(found) if node.optional or wrapped else found)

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

    # --- Calls --------------------------------------------------------------------------------------------------------

    def call(self, node: Call) -> Type:
        for argument in node.arguments:
            self.check(argument)
        if node.target is not None:
            self.check(node.target)
        name, member = node.function, node.target is not None
        declared = (name, member) in SIGNATURES or (name, not member) in SIGNATURES
        if not declared or name in self._unknown:
            return self._complain(node, f"undeclared reference to '{name}' (in container '')")
        given = tuple(self._types[part] for part in node.operands)
        if name in LOGICAL_OPERATORS:
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
                found = self._resolve(wanted[0])
                if result is None:
                    result = found
                elif found != result:
                    result = DYN
        if result is None:
            shown = [str(self._unification.substitute(each, to_dyn=True)) for each in given]
            target = f"{shown.pop(0)}." if node.target is not None else ""
            applied = f"{target}({', '.join(shown)})"
            return self._complain(node, f"found no matching overload for '{node.function}' applied to '{applied}'")
        self._checked.overloads[node] = tuple(fitting)
        return result

    # --- Literals with parts ------------------------------------------------------------------------------------------

    def list_literal(self, node: ListLiteral) -> Type:
        items: Type | None = None
        for number, element in enumerate(node.elements):
            items = self._join(items, self._content(element, number in node.optional))
        return list_of(items or self._unification.new_variable())

    def map_literal(self, node: MapLiteral) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for number, (key, value) in enumerate(node.entries):
            keys = self._join(keys, self.check(key))
            values = self._join(values, self._content(value, number in node.optional))
        return map_of(keys or self._unification.new_variable(), values or self._unification.new_variable())

    def _content(self, node: Node, optional: bool) -> Type:
        """Returns the type of an element; with a question mark it must be an optional value."""
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
        known = self._messages(node.name.removeprefix("."))
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
        named = self._look_up(node.name)
        if named is None:
            self._complain(node, f"undeclared reference to '{node.name}' (in container '')")
        elif named.name != "type":
            self._complain(node, f"'{named}' is not a type")
        else:
            self._complain(node, f"'{named.parameters[0]}' is not a message type")
        return named

    # --- Macros -------------------------------------------------------------------------------------------------------

    def loop(self, node: Loop) -> Type:
        expansion = self._checked.expansions[node] = expand_macro(node)
        return self.check(expansion)

    def comprehension(self, node: Comprehension) -> Type:
        self.check(node.range)
        initial = self.check(node.initial)
        found = self._resolve(self._types[node.range])
        depth = len(self._locals)
        self._locals.append((node.accumulator, initial))
        self._locals += zip(node.variables, self._elements(node, found), strict=False)
        self._expect(node.condition, BOOL)
        self._expect(node.step, initial)
        del self._locals[depth + 1 :]
        result = self.check(node.result)
        del self._locals[depth:]
        return self._resolve(result)

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


@forgettable
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
