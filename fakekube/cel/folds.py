"""Evaluates the macros that loop.

Each fold walks the elements of a container, with the macro's variables set, and spends what the comprehension that the
macro stands for would: a round has a price of its own besides that of the bodies.

Specified by: cel-spec, doc/langdef.md (Macros); cel-go/interpreter/interpretable.go (evalFold), runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from fakekube.cel.cost.actual import comparison_cost
from fakekube.cel.cost.ranges import LIST_COST
from fakekube.cel.errors import EvaluationError, no_list, no_such_overload
from fakekube.cel.frames import Evaluator, Frame
from fakekube.cel.functions import call
from fakekube.cel.texts import shown
from fakekube.cel.values import Map, Mapping, go_name_of, kind_of

__all__ = ["FOLDS", "SORT", "Body", "Fold", "truth"]


class Body(NamedTuple):
    """What is computed for each element."""

    run: Evaluator
    constant: bool = False


#: (frame, container, slots of the variables, bodies) → result.
Fold = Callable[[Frame, Any, tuple[int, ...], tuple[Body, ...]], Any]

#: What a look at the accumulator costs, and a call.
_LOOK: Final = 1
_CALL: Final = 1


def truth(value: Any) -> bool:
    """A value that must be true or false. Raises EvaluationError."""
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()


def _rounds(frame: Frame, container: Any, slots: tuple[int, ...], price: int) -> Iterator[Any]:
    """The elements (of maps: the keys), with the variables set; each round has a price."""
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


def _settled(decisive: bool, check: int) -> Fold:
    """`all` (settled by false), `exists` (settled by true); `check`: the price of asking whether it goes on."""

    def fold(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> bool:
        run, problem, settled = bodies[0].run, None, False
        for _ in _rounds(frame, container, slots, check):
            if settled:
                break
            frame.cost += _LOOK
            try:
                settled = truth(run(frame)) is decisive
            except EvaluationError as error:
                problem = problem or error
        frame.cost += _LOOK
        if settled:
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


def _collected(frame: Frame, rounds: Iterator[Any], condition: Evaluator | None, price: int, take: Callable[[Any], None]) -> None:
    """Takes the elements for which the condition, if there is one, holds; only they have the price.

    It goes on after an error: the last one of conditions is told, else the first one of `take`.
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
    _collected(frame, rounds, _condition(bodies), price, lambda element: made.append(run(frame)))
    return made


def _filtered(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> list[Any]:
    made = list[Any]()
    rounds = _rounds(frame, container, slots, 0)
    _collected(frame, rounds, bodies[0].run, _LOOK + _LOOK + _CALL + LIST_COST, made.append)
    return made


def _transformed(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Map:
    run, made = bodies[-1].run, Map.of(())
    rounds = _rounds(frame, container, slots, 0)
    _collected(frame, rounds, _condition(bodies), _LOOK + _LOOK + _CALL, lambda key: made.set(key, run(frame)))
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

    _collected(frame, _rounds(frame, container, slots, 0), _condition(bodies), _LOOK + _CALL, insert)
    return made


def _sorted_by(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Any:
    frame.cost += _LOOK  # at what is sorted
    keys = _mapped(frame, container, slots, bodies)
    frame.cost += _LOOK + _CALL
    return call("@sortByAssociatedKeys", True, [container, keys])


def _surely_sorted_by(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Any:
    """Where it is known what is compared, so that it has its price."""
    frame.cost += _LOOK
    try:
        keys = _mapped(frame, container, slots, bodies)
    except EvaluationError:
        raise no_list("*types.Err") from None
    made = call("@sortByAssociatedKeys", True, [container, keys])
    frame.cost += _LOOK + comparison_cost(keys)
    return made


#: `sortBy` with keys of one known type.
SORT: Final[Fold] = _surely_sorted_by

FOLDS: Final[dict[str, Fold]] = {
    "all": _settled(False, _LOOK + _CALL),
    "exists": _settled(True, _LOOK + _CALL + _CALL),
    "existsOne": _exists_one,
    "map": _mapped,
    "filter": _filtered,
    "transformMap": _transformed,
    "transformMapEntry": _transformed_entries,
    "sortBy": _sorted_by,
}
