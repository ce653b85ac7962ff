"""The macros that loop, as they run.

Each fold walks the elements of a container, with the macro's variables set, and spends what the comprehension that the
macro stands for would: a round has a price of its own besides that of the bodies.

Specified by: cel-spec, doc/langdef.md (Macros); cel-go/interpreter/interpretable.go (evalFold), runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from fakekube.cel.cost.actual import rule_of
from fakekube.cel.cost.ranges import LIST_COST
from fakekube.cel.errors import EvaluationError, no_such_overload
from fakekube.cel.frames import Evaluator, Frame
from fakekube.cel.functions import call
from fakekube.cel.values import Map, Mapping, go_name_of, kind_of, shown

__all__ = ["FOLDS", "Body", "Fold", "truth"]


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
    run, count = bodies[0].run, 0
    for _ in _rounds(frame, container, slots, 0):
        if truth(run(frame)):
            frame.cost += _LOOK + _CALL
            count += 1
    frame.cost += _LOOK + _CALL
    return count == 1


def _chosen(
    frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...], price: int
) -> Iterator[Any]:
    """The elements for which the condition, if there is one, holds; only they have the price."""
    if len(bodies) == 1:
        yield from _rounds(frame, container, slots, price)
        return
    condition = bodies[0].run
    for element in _rounds(frame, container, slots, 0):
        if truth(condition(frame)):
            frame.cost += price
            yield element


def _mapped(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> list[Any]:
    body = bodies[-1]
    price = _LOOK + _CALL + (0 if body.constant else LIST_COST)
    run = body.run
    made = [run(frame) for _ in _chosen(frame, container, slots, bodies, price)]
    frame.cost += _LOOK
    return made


def _filtered(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> list[Any]:
    price = _LOOK + _LOOK + _CALL + LIST_COST
    made = list(_chosen(frame, container, slots, (*bodies, bodies[0]), price))
    frame.cost += _LOOK
    return made


def _transformed(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Map:
    run = bodies[-1].run
    made = Map.of([(key, run(frame)) for key in _chosen(frame, container, slots, bodies, _LOOK + _LOOK + _CALL)])
    frame.cost += _LOOK
    return made


def _transformed_entries(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Map:
    made = Map.of(())
    for _ in _chosen(frame, container, slots, bodies, _LOOK + _CALL):
        entries = bodies[-1].run(frame)
        if not isinstance(entries, Mapping):
            raise no_such_overload()
        for key in entries:
            if not made.add(key, entries.find(key)):
                raise EvaluationError(f"insert failed: key {shown(key)} already exists")
    frame.cost += _LOOK
    return made


def _sorted_by(frame: Frame, container: Any, slots: tuple[int, ...], bodies: tuple[Body, ...]) -> Any:
    frame.cost += _LOOK  # at what is sorted
    keys = _mapped(frame, container, slots, bodies)
    frame.cost += _LOOK
    made = call("@sortByAssociatedKeys", True, [container, keys])
    if _SORT_PRICE is not None:
        frame.cost += _SORT_PRICE([container, keys], made)
    return made


_SORT_PRICE: Final = rule_of("distinct", member=True, meanings=())

FOLDS: Final[dict[str, Fold]] = {
    "all": _settled(False, _LOOK + _CALL), "exists": _settled(True, _LOOK + _CALL + _CALL),
    "existsOne": _exists_one, "map": _mapped, "filter": _filtered, "transformMap": _transformed,
    "transformMapEntry": _transformed_entries, "sortBy": _sorted_by,
}
