"""Evaluates the macros that expand to comprehensions.

Each fold iterates over the elements of a container with the variables of the macro set. Its cost is that of the
comprehension which the macro expands to: every iteration has a cost besides that of its bodies.

Specified by: cel-spec, doc/langdef.md (Macros); cel-go/interpreter/interpretable.go (evalFold), runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.cel.cost.actual import comparison_cost
from fakekube.apimachinery.cel.cost.ranges import LIST_COST
from fakekube.apimachinery.cel.declarations import call
from fakekube.apimachinery.cel.errors import EvaluationError, no_list, no_such_overload
from fakekube.apimachinery.cel.frames import Evaluator, Frame
from fakekube.apimachinery.cel.values import Map, Mapping, go_name_of, kind_of, shown


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


def _mapped(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> list[Any]:
    body, made = bodies[-1], list[Any]()
    price = _LOOK + _CALL + (0 if body.constant else LIST_COST)
    run = body.run
    rounds = _rounds(frame, container, slots, 0)
    _collect(frame, rounds, _condition(bodies), price, lambda element: made.append(run(frame)))
    return made


def _filtered(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> list[Any]:
    made = list[Any]()
    rounds = _rounds(frame, container, slots, 0)
    _collect(frame, rounds, bodies[0].run, _LOOK + _LOOK + _CALL + LIST_COST, made.append)
    return made


def _transformed(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Map:
    run, made = bodies[-1].run, Map.of(())
    rounds = _rounds(frame, container, slots, 0)
    _collect(frame, rounds, _condition(bodies), _LOOK + _LOOK + _CALL, lambda key: made.set(key, run(frame)))
    return made


def _transformed_entries(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Map:
    run, made = bodies[-1].run, Map.of(())

    def insert(element: Any) -> None:
        entries = run(frame)
        if not isinstance(entries, Mapping):
            raise no_such_overload()
        for key in entries:
            if not made.add(key, entries.find(key)):
                raise EvaluationError(f"insert failed: key {shown(key)} already exists")

    _collect(frame, _rounds(frame, container, slots, 0), _condition(bodies), _LOOK + _CALL, insert)
    return made


def _sorted_by(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Any:
    frame.cost += _LOOK  # of the sorted list
    keys = _mapped(frame, container, slots, bodies)
    frame.cost += _LOOK + _CALL
    return call("@sortByAssociatedKeys", True, [container, keys])


def _sorted_by_typed_keys(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Any:
    """Evaluates `sortBy` with keys of a statically known type; only then their comparisons have a cost."""
    frame.cost += _LOOK
    try:
        keys = _mapped(frame, container, slots, bodies)
    except EvaluationError:
        raise no_list("*types.Err") from None
    made = call("@sortByAssociatedKeys", True, [container, keys])
    frame.cost += _LOOK + comparison_cost(keys)
    return made


#: `sortBy` with keys of one known type.
SORT: Final[Fold] = _sorted_by_typed_keys

FOLDS: Final[dict[str, Fold]] = {
    "all": _quantifier(False, _LOOK + _CALL),
    "exists": _quantifier(True, _LOOK + _CALL + _CALL),
    "existsOne": _exists_one,
    "map": _mapped,
    "filter": _filtered,
    "transformMap": _transformed,
    "transformMapEntry": _transformed_entries,
    "sortBy": _sorted_by,
}
