"""The steps of an evaluation, as closures over a frame: selections and indices, macros, operators and functions; with costs.

A chain of selections and indices is an *attribute* of its base (a variable or a call). It costs one unit for the base and one for
each step. All steps after an optional one are optional, and cost only if they find a value. If the base is an optional value, the
type of its content is not known: the real interpreter continues with the plain value in it.

Specified by: cel-go/interpreter/attributes.go, interpretable.go (evalTestOnly, evalWatch…).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from fakekube.apimachinery.cel.cost.estimated_calls import LIST_COST
from fakekube.apimachinery.cel.cost.runtime_cost import Frame, Rule, comparison_cost
from fakekube.apimachinery.cel.declarations import call
from fakekube.apimachinery.cel.errors import EvaluationError, no_list, no_such_overload
from fakekube.apimachinery.cel.values import (
    ABSENT,
    Duration,
    Map,
    Mapping,
    Opaque,
    Optional,
    Timestamp,
    UInt,
    format_value,
    go_name_of,
    index,
    kind_of,
    optional_index,
)
from fakekube.base.depth import allowance


class Bindings(Protocol):
    """The values of variables, read when the evaluation of an expression starts."""

    def get(self, name: str, default: Any, /) -> Any:
        """Returns the value of a variable, or the default if it has none."""


Evaluator = Callable[[Frame], Any]


# --- The recursion limit for deeply nested expressions ---------------------------------------------------------------
# An expression may nest 250 levels deep, and a recursive walk makes a few calls for each level, more than Python's default
# recursion limit.


_OPENING: Final = "([{?"
#: The number of levels that the default limit always allows.
_SHALLOW: Final = 20
_CALLS: Final = 12_000
_AS_IT_IS: Final = nullcontext()


def is_deep(source: str) -> bool:
    """Reports whether a walk over an expression may exceed the recursion limit."""
    return sum(map(source.count, _OPENING)) + source.count(".") // 4 > _SHALLOW


def room(deep: bool) -> AbstractContextManager[None]:
    """Returns the context manager for walks over an expression; `deep` is the result of `is_deep`."""
    return allowance(_CALLS) if deep else _AS_IT_IS


# --- Selections and indices ------------------------------------------------------------------------------------------


#: (frame, value) → part of the value; counts the cost of the step.
Step = Callable[[Frame, Any], Any]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: a base and the qualifiers that are applied to its value."""

    base: Evaluator
    """The evaluator of the base, without its cost."""
    unit: int = 1
    """The cost of the base; 0 for a conditional attribute."""
    names: tuple[str, ...] = ()
    """The leading qualifiers that are field names."""
    steps: tuple[Step, ...] = ()
    """The other qualifiers."""

    def field(self, name: str) -> Attribute:
        if self.steps:
            return self.step(field_step(name))
        return replace(self, names=(*self.names, name))

    def step(self, step: Step) -> Attribute:
        return replace(self, steps=(*self.steps, step))

    def evaluator(self, *, price: int | None = None) -> Evaluator:
        """Returns the evaluator of the attribute; `price` overrides the cost of the base."""
        unit = self.unit if price is None else price
        base, names, steps, fixed = self.base, self.names, self.steps, unit + len(self.names)

        def look(frame: Frame) -> Any:
            value = base(frame)
            if value.__class__ is Optional:
                value = _open(value)
            frame.cost += fixed
            for name in names:
                found = value.find(name) if isinstance(value, Mapping) else ABSENT
                value = _field(frame, value, name) if found is ABSENT else found
            return value

        def walk(frame: Frame) -> Any:
            value = look(frame)
            for step in steps:
                if value.__class__ is Optional and not value.present:
                    return value
                value = step(frame, value)
            return value

        return walk if steps else look

    def presence(self, name: str) -> Evaluator:
        """Returns the evaluator of `has(attribute.name)`."""
        container, price = self.evaluator(price=0), 1 if self.unit else 0

        def test(frame: Frame) -> bool:
            value = container(frame)
            frame.cost += price
            return _has(value, name)

        return test


def _open(value: Optional) -> Optional:
    """Returns the optional value with an untyped content. Raises EvaluationError if the content cannot be converted."""
    content = value.content
    if content.__class__ is Optional:
        return Optional(content.content if content.present else None)
    if isinstance(content, Opaque) and content.go_type:
        raise EvaluationError(f"unsupported conversion to ref.Val: ({content.go_type}){content}")
    return Optional(content.to_untyped()) if hasattr(content, "to_untyped") else value


def _field(frame: Frame, value: Any, name: str) -> Any:
    """Returns a field, whose cost has been counted. Raises EvaluationError."""
    if isinstance(value, Mapping):
        found = value.find(name)
        if found is ABSENT:
            raise EvaluationError(f"no such key: {name}")
        return found
    if value.__class__ is Optional:
        frame.cost -= 1
        return _optional(frame, value, name)
    return index(value, name)


def _optional(frame: Frame, value: Any, key: Any) -> Optional:
    found = optional_index(value, key)
    if found.present:
        frame.cost += 1
    return found


def _has(value: Any, name: str) -> bool:
    if isinstance(value, Mapping):
        return value.find(name) is not ABSENT
    if value.__class__ is Optional:
        return value.present and _has(value.content, name)
    if isinstance(value, list):
        index(value, name)
    return False


def field_step(name: str, *, optional: bool = False) -> Step:
    """Returns the step of `.name`, or of `.?name`."""
    if optional:
        return lambda frame, value: _optional(frame, value, name)

    def step(frame: Frame, value: Any) -> Any:
        frame.cost += 1
        return _field(frame, value, name)

    return step


def _part(frame: Frame, value: Any, key: Any, *, optional: bool) -> Any:
    if optional or value.__class__ is Optional:
        return _optional(frame, value, key)
    frame.cost += 1
    return index(value, key)


def constant_step(key: Any, *, optional: bool) -> Step:
    """Returns the step of `[key]` or `[?key]` with a key that is written out."""
    return lambda frame, value: _part(frame, value, key, optional=optional)


def key_step(key: Evaluator, *, optional: bool) -> Step:
    """Returns the step of `[key]` or `[?key]`, with a key that is evaluated."""
    return lambda frame, value: _part(frame, value, key(frame), optional=optional)


# --- Macros that expand to comprehensions ----------------------------------------------------------------------------
# Each fold iterates over the elements of a container with the variables of the macro set. Its cost is that of the
# comprehension which the macro expands to: every iteration has a cost besides that of its bodies.
#
# Specified by: cel-spec, doc/langdef.md (Macros); cel-go/interpreter/interpretable.go (evalFold), runtimecost.go.


class Body(NamedTuple):
    """An expression that is evaluated for each element."""

    run: Evaluator
    constant: bool = False


#: (frame, container, slots of the variables, bodies) → result.
Fold = Callable[[Frame, Any, tuple[int, ...], tuple[Body, ...]], Any]

#: The cost of reading the accumulator, and of a call.
_LOOK: Final = 1
_CALL: Final = 1


def truth(value: Any) -> bool:
    """Returns the value of a condition. Raises EvaluationError if it is not a boolean."""
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()


def _rounds(frame: Frame, container: Any, slots: tuple[int, ...], price: int) -> Iterator[Any]:
    """Yields the elements (of a map: the keys) with the variables set; counts the cost of each iteration."""
    kind = kind_of(container)
    if kind is list:
        pairs: Any = enumerate(container)
    elif kind is Mapping:
        pairs = ((key, container.find(key)) for key in container)
    elif len(slots) == 2:
        raise EvaluationError(f"unsupported comprehension range type: {go_name_of(container)}")
    else:
        raise EvaluationError(f"got '{go_name_of(container)}', expected iterable type")
    values, limit = frame.slots, frame.limit
    two, by_value = len(slots) == 2, kind is list
    for key, value in pairs:
        frame.cost += price
        if frame.cost > limit:
            frame.check()
        if two:
            values[slots[0]], values[slots[1]] = key, value
            yield key
        else:
            element = values[slots[0]] = value if by_value else key
            yield element


def _quantifier(decisive: bool, check: int) -> Fold:
    """Makes the fold of `all` (ends with false) or `exists` (ends with true); `check` is the cost of the loop condition."""

    def fold(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> bool:
        run, problem, decided = bodies[0].run, None, False
        for _ in _rounds(frame, container, slots, check):
            if decided:
                break
            frame.cost += _LOOK
            try:
                decided = truth(run(frame)) is decisive
            except EvaluationError as error:
                problem = problem or error
        frame.cost += _LOOK
        if decided:
            return decisive
        if problem is not None:
            raise problem
        return not decisive

    return fold


def _exists_one(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> bool:
    count, problem = 0, None
    for _ in _rounds(frame, container, slots, 0):
        try:
            if truth(bodies[0].run(frame)):
                frame.cost += _LOOK + _CALL
                count += 1
        except EvaluationError as error:
            problem = error
    frame.cost += _LOOK + _CALL
    if problem is not None:
        raise problem
    return count == 1


def _collect(frame: Frame, rounds: Iterator[Any], condition: Evaluator | None, price: int, take: Callable[[Any], None]) -> None:
    """Calls `take`, which costs `price`, for each element that matches the condition, if there is one.

    The iteration continues after an error. The last error of a condition is raised, else the first one of `take`.
    """
    problem = None
    for element in rounds:
        try:
            if condition is not None and not truth(condition(frame)):
                continue
        except EvaluationError as error:
            problem = error
            continue
        frame.cost += price
        try:
            take(element)
        except EvaluationError as error:
            problem = problem or error
    frame.cost += _LOOK
    if problem is not None:
        raise problem


def _condition(bodies: tuple[Body, ...]) -> Evaluator | None:
    return bodies[0].run if len(bodies) > 1 else None


def _map(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> list[Any]:
    body, made = bodies[-1], list[Any]()
    price = _LOOK + _CALL + (0 if body.constant else LIST_COST)
    run = body.run
    rounds = _rounds(frame, container, slots, 0)
    _collect(frame, rounds, _condition(bodies), price, lambda element: made.append(run(frame)))
    return made


def _filter(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> list[Any]:
    made = list[Any]()
    rounds = _rounds(frame, container, slots, 0)
    _collect(frame, rounds, bodies[0].run, _LOOK + _LOOK + _CALL + LIST_COST, made.append)
    return made


def _transform(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Map:
    run, made = bodies[-1].run, Map.from_pairs(())
    rounds = _rounds(frame, container, slots, 0)
    _collect(frame, rounds, _condition(bodies), _LOOK + _LOOK + _CALL, lambda key: made.set(key, run(frame)))
    return made


def _transformed_entries(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Map:
    run, made = bodies[-1].run, Map.from_pairs(())

    def insert(element: Any) -> None:
        entries = run(frame)
        if not isinstance(entries, Mapping):
            raise no_such_overload()
        for key in entries:
            if not made.add(key, entries.find(key)):
                raise EvaluationError(f"insert failed: key {format_value(key)} already exists")

    _collect(frame, _rounds(frame, container, slots, 0), _condition(bodies), _LOOK + _CALL, insert)
    return made


def _sort_by(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Any:
    frame.cost += _LOOK  # for the sorted list
    keys = _map(frame, container, slots, bodies)
    frame.cost += _LOOK + _CALL
    return call("@sortByAssociatedKeys", True, [container, keys])


def _sort_by_typed_keys(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Any:
    """Evaluates `sortBy` with keys of a statically known type; only then their comparisons have a cost."""
    frame.cost += _LOOK
    try:
        keys = _map(frame, container, slots, bodies)
    except EvaluationError:
        raise no_list("*types.Err") from None
    made = call("@sortByAssociatedKeys", True, [container, keys])
    frame.cost += _LOOK + comparison_cost(keys)
    return made


#: `sortBy` with keys of one known type.
SORT: Final[Fold] = _sort_by_typed_keys

FOLDS: Final[dict[str, Fold]] = {
    "all": _quantifier(False, _LOOK + _CALL),
    "exists": _quantifier(True, _LOOK + _CALL + _CALL),
    "existsOne": _exists_one,
    "map": _map,
    "filter": _filter,
    "transformMap": _transform,
    "transformMapEntry": _transformed_entries,
    "sortBy": _sort_by,
}


# --- Operators and functions: arguments, costs, and absorbed errors --------------------------------------------------
# Specified by: cel-spec, doc/langdef.md (Logical Operators); cel-go/interpreter/interpretable.go, runtimecost.go.


def binary(operator: Callable[[Any, Any], Any], one: Evaluator, other: Evaluator, rule: Rule | None) -> Evaluator:
    """Compiles a binary operator; without a cost rule it costs 1."""
    if rule is None:

        def plain(frame: Frame) -> Any:
            left, right = one(frame), other(frame)
            frame.cost += 1
            return operator(left, right)

        return plain

    def priced(frame: Frame) -> Any:
        left, right = one(frame), other(frame)
        frame.spend(rule((left, right)))
        return operator(left, right)

    return priced


def function(name: str, member: bool, parts: list[Evaluator], rule: Rule | None) -> Evaluator:
    """Compiles a function or method; without a cost rule it costs 1."""

    def run(frame: Frame) -> Any:
        arguments = [part(frame) for part in parts]
        if rule is None:
            frame.cost += 1
        else:
            _pay(frame, rule, arguments)
        return call(name, member, arguments)

    return run


def _pay(frame: Frame, rule: Rule, arguments: list[Any]) -> None:
    """Counts the cost of a call; a call with arguments of wrong types is free, since it fails."""
    try:
        cost = rule(arguments)
    except (AttributeError, TypeError):
        return
    frame.spend(cost)


def summing(run: Evaluator, zero: Any) -> Evaluator:
    """Compiles `sum` so that the sum of an empty list has the type of its items."""

    def add(frame: Frame) -> Any:
        result = run(frame)
        return zero if result.__class__ is int else result

    return add


ZEROS: Final[dict[str, Any]] = {"uint": UInt(0), "double": 0.0, "duration": Duration(0)}
_ADDABLE: Final = frozenset({int, UInt, float, str, bytes, Timestamp, Duration})


def list_argument(run: Evaluator) -> Evaluator:
    """Evaluates an argument that the cost function of cel-go casts to a list. Raises InterpreterError for other values."""

    def look(frame: Frame) -> Any:
        try:
            value = run(frame)
        except EvaluationError:
            raise no_list("*types.Err") from None
        kind = kind_of(value)
        if kind is not list:
            raise no_list(go_name_of(value), "Contains" if kind in _ADDABLE else "Add")
        return value

    return look


def without_overload_details(run: Evaluator) -> Evaluator:
    """Compiles a function with a constant pattern, whose overload error does not contain the types."""

    def apply(frame: Frame) -> Any:
        try:
            return run(frame)
        except EvaluationError as error:
            if str(error).startswith(_NO_OVERLOAD):
                raise no_such_overload() from None
            raise

    return apply


_NO_OVERLOAD: Final = str(no_such_overload())


def alternative(name: str, one: Evaluator, other: Evaluator) -> Evaluator:
    """Compiles `.or` and `.orValue`, which evaluate the alternative only if the target is empty."""

    def choose(frame: Frame) -> Any:
        first = one(frame)
        if first.__class__ is not Optional:
            return first
        if first.present:
            return first if name == "or" else first.content
        return other(frame)

    return choose


def plan_logical(one: Evaluator, other: Evaluator, decisive: bool) -> Evaluator:
    """Compiles `&&` (decided by false) and `||` (decided by true)."""

    def decide(frame: Frame) -> bool:
        try:
            if truth(one(frame)) is decisive:
                return decisive
        except EvaluationError:
            try:
                if truth(other(frame)) is decisive:
                    return decisive
            except EvaluationError:
                pass
            raise
        return truth(other(frame))

    return decide
