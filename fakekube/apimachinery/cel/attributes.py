"""Evaluates selections and indices.

A chain of them is an *attribute* of its base (a variable or a call). It costs one unit for the base and one for each step. All
steps after an optional one are optional, and cost only if they find a value. If the base is an optional value, the type of its
content is not known: the real interpreter continues with the plain value in it.

Specified by: cel-go/interpreter/attributes.go, interpretable.go (evalTestOnly, evalWatch…).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fakekube.apimachinery.cel.arithmetic import index, optional_index
from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.frames import Evaluator, Frame
from fakekube.apimachinery.cel.values import ABSENT, Mapping, Opaque, Optional

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
                value = _opened(value)
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


def _opened(value: Optional) -> Optional:
    """Returns the optional value with an untyped content. Raises EvaluationError if the content cannot be converted."""
    content = value.content
    if content.__class__ is Optional:
        return Optional(content.content if content.present else None)
    if isinstance(content, Opaque) and content.go_type:
        raise EvaluationError(f"unsupported conversion to ref.Val: ({content.go_type}){content}")
    return Optional(content.untyped()) if hasattr(content, "untyped") else value


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
    """`.name`, or `.?name`."""
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
    """`[key]` or `[?key]` with a key that is written out."""
    return lambda frame, value: _part(frame, value, key, optional=optional)


def key_step(key: Evaluator, *, optional: bool) -> Step:
    """`[key]` or `[?key]`."""
    return lambda frame, value: _part(frame, value, key(frame), optional=optional)
