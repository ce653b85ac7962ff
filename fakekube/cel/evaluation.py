"""Turns a tree into a function of its variables.

Every node becomes a closure that takes the variables (a dict) and gives a value or raises EvaluationError. `&&`, `||`,
`all` and `exists` absorb errors where the other operands decide.

Specified by: cel-spec, doc/langdef.md (Evaluation, Macros); cel-go/interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakekube.cel.arithmetic import OPERATORS, index, negated, optional_index
from fakekube.cel.errors import EvaluationError, no_such_overload
from fakekube.cel.functions import call
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
from fakekube.cel.values import ABSENT, TYPE_NAMES, CelType, Map, Mapping, Optional, equal, kind_of, shown

__all__ = ["Evaluator", "evaluator"]

Variables = dict[str, Any]
Evaluator = Callable[[Variables], Any]

#: Names of types are values.
_TYPES = {name: CelType(name) for name in TYPE_NAMES.values()}


def evaluator(node: Node) -> Evaluator:
    """The function that computes an expression."""
    return _MAKERS[type(node)](node)


def _literal(node: Literal) -> Evaluator:
    value = node.value
    return lambda variables: value


def _identifier(node: Identifier) -> Evaluator:
    name = node.name
    constant = _TYPES.get(name)

    def look_up(variables: Variables) -> Any:
        value = variables.get(name, constant)
        if value is None and name not in variables:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return look_up


def _select(node: Select) -> Evaluator:
    name = node.field
    qualified = dotted(node)
    if qualified in _TYPES:
        value = _TYPES[qualified]
        return lambda variables: value
    operand = evaluator(node.operand)
    if node.test:
        return lambda variables: _has(operand(variables), name)
    if node.optional:
        return lambda variables: optional_index(operand(variables), name)

    def select(variables: Variables) -> Any:
        container = operand(variables)
        if isinstance(container, Mapping):
            value = container.find(name)
            if value is ABSENT:
                raise EvaluationError(f"no such key: {name}")
            return value
        return index(container, name) if container.__class__ is Optional else _no_field(container)

    return select


def _no_field(container: Any) -> Any:
    raise no_such_overload()


def _has(container: Any, name: str) -> bool:
    if isinstance(container, Mapping):
        return container.find(name) is not ABSENT
    if container.__class__ is Optional:
        return container.present and _has(container.content, name)
    raise no_such_overload()


def _call(node: Call) -> Evaluator:
    special = _SPECIAL.get(node.function)
    parts = [evaluator(part) for part in ((node.target, *node.arguments) if node.target else node.arguments)]
    if special is not None and node.target is None:
        return special(*parts)
    operator = OPERATORS.get(node.function)
    if operator is not None:
        one, other = parts
        return lambda variables: operator(one(variables), other(variables))
    name, member = node.function, node.target is not None
    if member and name in ("or", "orValue"):
        return _alternative(name, *parts)
    return lambda variables: call(name, member, [part(variables) for part in parts])


def _alternative(name: str, one: Evaluator, other: Evaluator) -> Evaluator:
    """`.or` and `.orValue` look at the alternative only if they need it."""
    def choose(variables: Variables) -> Any:
        first = one(variables)
        if first.__class__ is not Optional:
            raise no_such_overload()
        if first.present:
            return first if name == "or" else first.content
        return other(variables)

    return choose


def _truth(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()


def _decided(one: Evaluator, other: Evaluator, decisive: bool) -> Evaluator:
    """`&&` (decided by false), `||` (decided by true)."""
    def decide(variables: Variables) -> bool:
        try:
            if _truth(one(variables)) is decisive:
                return decisive
        except EvaluationError:
            try:
                if _truth(other(variables)) is decisive:
                    return decisive
            except EvaluationError:
                pass
            raise
        return _truth(other(variables))

    return decide


def _conditional(condition: Evaluator, yes: Evaluator, no: Evaluator) -> Evaluator:
    return lambda variables: yes(variables) if _truth(condition(variables)) else no(variables)


_SPECIAL: dict[str, Callable[..., Evaluator]] = {
    "_&&_": lambda one, other: _decided(one, other, decisive=False),
    "_||_": lambda one, other: _decided(one, other, decisive=True),
    "_?_:_": _conditional,
    "!_": lambda one: lambda variables: not _truth(one(variables)),
    "-_": lambda one: lambda variables: negated(one(variables)),
}


def _list(node: ListLiteral) -> Evaluator:
    parts = [(evaluator(element), number in node.optional) for number, element in enumerate(node.elements)]

    def make(variables: Variables) -> list[Any]:
        made = []
        for part, optional in parts:
            value = part(variables)
            if not optional:
                made.append(value)
            elif _unwrapped(value) is not ABSENT:
                made.append(value.content)
        return made

    return make


def _unwrapped(value: Any) -> Any:
    if value.__class__ is not Optional:
        raise EvaluationError(f"cannot initialize optional list element from non-optional value {shown(value)}")
    return value.content


def _message(node: MessageLiteral) -> Evaluator:
    def make(variables: Variables) -> Any:
        raise EvaluationError(f"unknown type: '{node.name}'")  # only the compiler knows messages

    return make


def _map(node: MapLiteral) -> Evaluator:
    parts = [(evaluator(k), evaluator(v), number in node.optional) for number, (k, v) in enumerate(node.entries)]

    def make(variables: Variables) -> Map:
        pairs: list[tuple[Any, Any]] = []
        for key_part, value_part, optional in parts:
            key, value = key_part(variables), value_part(variables)
            content = _unwrapped(value) if optional else value
            if content is not ABSENT:
                pairs.append((key, content))
        made = Map.of(pairs)
        if len(made) != len(pairs):
            raise EvaluationError("Failed with repeated key")
        return made

    return make


# ------------------------------------------------------------ macros


def _loop(node: Loop) -> Evaluator:
    target, variables = evaluator(node.target), node.variables
    bodies = [evaluator(body) for body in node.bodies]
    if node.macro in _OPTIONAL_LOOPS:
        return _optional_loop(node.macro, target, variables[0], bodies[0])
    fold = _FOLDS[node.macro]

    def run(scope: Variables) -> Any:
        container = target(scope)
        inner = dict(scope)
        return fold(_rounds(container, variables, inner), inner, *bodies)

    return run


def _rounds(container: Any, variables: tuple[str, ...], scope: Variables) -> Any:
    """Sets the variables for one element after the other."""
    kind = kind_of(container)
    if kind is list:
        pairs: Any = enumerate(container)
    elif kind is Mapping:
        pairs = ((key, container.find(key)) for key in container)
    else:
        raise no_such_overload()
    if len(variables) == 2:
        first, second = variables
        for key, value in pairs:
            scope[first], scope[second] = key, value
            yield key, value
        return
    name = variables[0]
    for key, value in pairs:
        scope[name] = element = value if kind is list else key
        yield key, element


def _settled(rounds: Any, scope: Variables, body: Evaluator, decisive: bool) -> bool:
    """`all` (settled by false), `exists` (settled by true)."""
    problem = None
    for _ in rounds:
        try:
            if _truth(body(scope)) is decisive:
                return decisive
        except EvaluationError as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return not decisive


def _exists_one(rounds: Any, scope: Variables, body: Evaluator) -> bool:
    return sum(_truth(body(scope)) for _ in rounds) == 1


def _chosen(rounds: Any, scope: Variables, bodies: tuple[Evaluator, ...]) -> Any:
    """The keys and elements for which the condition, if there is one, holds."""
    if len(bodies) == 1:
        return rounds
    return (pair for pair in rounds if _truth(bodies[0](scope)))


def _mapped(rounds: Any, scope: Variables, *bodies: Evaluator) -> list[Any]:
    return [bodies[-1](scope) for _ in _chosen(rounds, scope, bodies)]


def _filtered(rounds: Any, scope: Variables, body: Evaluator) -> list[Any]:
    return [element for _, element in rounds if _truth(body(scope))]


def _transformed(rounds: Any, scope: Variables, *bodies: Evaluator) -> Map:
    return Map.of([(key, bodies[-1](scope)) for key, _ in _chosen(rounds, scope, bodies)])


def _transformed_entries(rounds: Any, scope: Variables, *bodies: Evaluator) -> Map:
    pairs: list[tuple[Any, Any]] = []
    for _ in _chosen(rounds, scope, bodies):
        made = bodies[-1](scope)
        if not isinstance(made, Mapping):
            raise no_such_overload()
        for key in made:
            if any(equal(key, known) for known, _ in pairs):
                raise EvaluationError(f"insert failed: key {shown(key)} already exists")
            pairs.append((key, made.find(key)))
    return Map.of(pairs)


def _sorted_by(rounds: Any, scope: Variables, body: Evaluator) -> Any:
    keyed = [(body(scope), element) for _, element in rounds]
    return call("@sortByAssociatedKeys", True, [[element for _, element in keyed], [key for key, _ in keyed]])


_FOLDS: dict[str, Callable[..., Any]] = {
    "all": lambda rounds, scope, body: _settled(rounds, scope, body, decisive=False),
    "exists": lambda rounds, scope, body: _settled(rounds, scope, body, decisive=True),
    "existsOne": _exists_one, "map": _mapped, "filter": _filtered, "transformMap": _transformed,
    "transformMapEntry": _transformed_entries, "sortBy": _sorted_by,
}

_OPTIONAL_LOOPS = frozenset({"optMap", "optFlatMap"})


def _optional_loop(macro: str, target: Evaluator, name: str, body: Evaluator) -> Evaluator:
    def run(scope: Variables) -> Any:
        value = target(scope)
        if value.__class__ is not Optional:
            raise no_such_overload()
        if not value.present:
            return value
        made = body({**scope, name: value.content})
        return Optional(made) if macro == "optMap" else made

    return run


_MAKERS: dict[type, Callable[[Any], Evaluator]] = {
    Literal: _literal, Identifier: _identifier, Select: _select, Call: _call, ListLiteral: _list, MapLiteral: _map,
    Loop: _loop, MessageLiteral: _message,
}
