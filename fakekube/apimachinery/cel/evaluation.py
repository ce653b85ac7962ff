"""Compiles a checked tree to a program that evaluates it and counts its cost.

Every node is compiled to a closure that takes a frame (the variables and the cost so far) and returns a value or raises
EvaluationError. `&&`, `||`, `all` and `exists` ignore an error if another operand decides the result.

Costs are those of cel-go, which plans an expression before it runs: constants are free, and so are lists and maps of
constants. The limit is checked in every iteration of a comprehension and at the end; in between, the cost is bounded by
the length of the expression. The cost of an operation that fails is not exact.

Specified by: cel-spec, doc/langdef.md (Evaluation); cel-go/interpreter (planner, decorators, runtimecost).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.cel.checker import Checked
from fakekube.apimachinery.cel.cost.estimated_calls import LIST_COST, MAP_COST, STRUCT_COST
from fakekube.apimachinery.cel.cost.runtime_cost import Frame, equality_cost, rule_of
from fakekube.apimachinery.cel.declarations import call
from fakekube.apimachinery.cel.errors import EvaluationError, InterpreterError, no_such_overload
from fakekube.apimachinery.cel.interpretable import (
    FOLDS,
    SORT,
    ZEROS,
    Attribute,
    Bindings,
    Body,
    Evaluator,
    alternative,
    binary,
    constant_step,
    field_step,
    function,
    key_step,
    list_argument,
    plan_logical,
    room,
    summing,
    truth,
    without_overload_details,
)
from fakekube.apimachinery.cel.libraries.strings import compile_pattern
from fakekube.apimachinery.cel.mutation import maker_of
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
    name_of_local,
    qualified_name,
)
from fakekube.apimachinery.cel.values import (
    ABSENT,
    MAX_UINT64,
    OPERATORS,
    QUALIFIERS,
    TYPE_NAMES,
    CelType,
    Map,
    Optional,
    format_value,
    go_name_of,
    key_of,
    kind_of,
    negate,
    type_of,
)

#: The identifiers of types, which are values.
_TYPES: Final = {name: CelType(name) for name in (*TYPE_NAMES.values(), "net.IP", "net.CIDR")} | {
    "timestamp": CelType("google.protobuf.Timestamp"),
    "duration": CelType("google.protobuf.Duration"),
}


class Program:
    """A compiled expression."""

    def __init__(self, run: Evaluator, names: Sequence[str], slots: int, *, deep: bool) -> None:
        self._run, self._names, self._deep = run, names, deep
        self._locals = [None] * (slots - len(names))

    def evaluate(self, variables: Bindings, limit: int = MAX_UINT64) -> tuple[Any, int]:
        """Evaluates the expression. Returns the value or the EvaluationError, and the cost. Raises CostLimitExceeded."""
        get = variables.get
        frame = Frame([*[get(name, ABSENT) for name in self._names], *self._locals], limit)
        value: Any
        try:
            if self._deep:
                with room(deep=True):
                    value = self._run(frame)
            else:
                value = self._run(frame)
        except (EvaluationError, InterpreterError) as error:
            value = EvaluationError(str(error))
        frame.check()
        return value, frame.cost


def program(checked: Checked) -> Program:
    """Compiles a checked expression. Raises EvaluationError if the evaluation of a constant part fails."""
    names = sorted(checked.uses)
    planner = _Planner(checked, names)
    with room(checked.deep):
        plan = planner.plan(checked.tree)
    return Program(plan.run, names, planner.slots, deep=checked.deep)


class _Plan(NamedTuple):
    """The compiled form of a node."""

    run: Evaluator
    attribute: Attribute | None = None
    constant: Any = ABSENT

    @property
    def is_constant(self) -> bool:
        return self.constant is not ABSENT

    @property
    def as_attribute(self) -> Attribute:
        return self.attribute or Attribute(self.run)

    @property
    def as_part(self) -> Evaluator:
        """The plan of the node as the base of a selection, where an attribute is free."""
        return self.attribute.evaluator(price=0) if self.attribute is not None else self.run


def _constant(value: Any) -> _Plan:
    return _Plan(lambda frame: value, None, value)


def _of_attribute(attribute: Attribute) -> _Plan:
    return _Plan(attribute.evaluator(), attribute)


class _Variable(NamedTuple):
    """A variable. A lazy one has the cost of its first use in the slot after its own."""

    slot: int
    lazy: bool = False
    value: Evaluator | None = None
    """Computes the value on the first use (`cel.bind`)."""


class _Planner:
    def __init__(self, checked: Checked, names: Sequence[str]) -> None:
        self._checked = checked
        self._scope = {name: _Variable(slot) for slot, name in enumerate(names)}
        self._globals = self._scope
        self.slots = len(names)

    def plan(self, node: Node) -> _Plan:
        return _METHODS[type(node)](self, node)

    # --- Values and selections ----------------------------------------------------------------------------------------

    def literal(self, node: Literal) -> _Plan:
        return _constant(node.value)

    def identifier(self, node: Identifier) -> _Plan:
        return self._named(node.name)

    def _named(self, name: str) -> _Plan:
        variable = self._scope.get(name_of_local(name))
        name = name.removeprefix(".")
        if variable is None:
            variable = self._globals.get(name)
        if variable is None:
            return _constant(_TYPES.get(name) or CelType(name))
        if variable.value is not None:
            return _of_attribute(Attribute(_evaluate_once(variable.slot, variable.value)))
        return _of_attribute(Attribute((_lazy if variable.lazy else _slot)(variable.slot, name)))

    def select(self, node: Select) -> _Plan:
        if node.operand not in self._checked.types:  # a qualified name
            return self._named(qualified_name(node))
        attribute = self.plan(node.operand).as_attribute
        if node.test:
            return _Plan(attribute.presence(node.field))
        if node.optional:
            return _of_attribute(attribute.step(field_step(node.field, optional=True)))
        return _of_attribute(attribute.field(node.field))

    def list_literal(self, node: ListLiteral) -> _Plan:
        plans = [(self.plan(element), number in node.optional) for number, element in enumerate(node.elements)]
        if all(plan.is_constant for plan, _ in plans):
            return _constant([plan.constant for plan, _ in plans])
        parts = [(plan.run, optional) for plan, optional in plans]

        def make(frame: Frame) -> list[Any]:
            made = [_unwrap(part(frame)) if optional else part(frame) for part, optional in parts]
            frame.cost += LIST_COST
            return [value for value in made if value is not ABSENT]

        return _Plan(make)

    def map_literal(self, node: MapLiteral) -> _Plan:
        plans = [(self.plan(key), self.plan(value), number in node.optional) for number, (key, value) in enumerate(node.entries)]
        if all(key.is_constant and value.is_constant for key, value, _ in plans):
            return _constant(Map.from_pairs((key.constant, value.constant) for key, value, _ in plans))
        parts = [(key.run, value.run, optional) for key, value, optional in plans]

        def make(frame: Frame) -> Map:
            made = Map.from_pairs(())
            for key_part, value_part, optional in parts:
                key, value = key_part(frame), value_part(frame)
                content = _unwrap(value) if optional else value
                if content is not ABSENT:
                    made.set(key, content)
            frame.cost += MAP_COST
            return made

        return _Plan(make)

    # --- Calls --------------------------------------------------------------------------------------------------------

    def call(self, node: Call) -> _Plan:
        special = _SPECIAL.get(node.function)
        if special is not None and node.target is None:
            return special(self, node)
        plans = [self.plan(part) for part in node.operands]
        folded = self._fold(node, plans)
        if folded is not None:
            return folded
        member = node.target is not None
        rule = rule_of(node.function, member=member, meanings=self._checked.overloads.get(node, ()))
        operator = OPERATORS.get(node.function)
        if operator is not None and not member:
            return _Plan(binary(operator, plans[0].run, plans[1].run, rule))
        if member and node.function in ("or", "orValue"):
            return _Plan(alternative(node.function, plans[0].run, plans[1].run))
        parts = [plan.run for plan in plans]
        if node.function in _SELF_COMPARING and len(self._checked.overloads[node]) == 1:
            parts = [list_argument(parts[0])]
        run = function(node.function, member, parts, rule)
        meanings = self._checked.overloads[node]
        if node.function == "sum" and len(meanings) == 1 and meanings[0].result.name in ZEROS:
            run = summing(run, ZEROS[meanings[0].result.name])
        return _Plan(without_overload_details(run) if _has_known_pattern(node, plans) else run)

    def _fold(self, node: Call, plans: list[_Plan]) -> _Plan | None:
        """Folds a call with constant arguments into a constant. Raises EvaluationError if the evaluation fails."""
        if node.function in _CONVERSIONS and len(plans) == 1 and plans[0].is_constant:
            return _constant(call(node.function, False, [plans[0].constant]))
        if _has_known_pattern(node, plans):
            compile_pattern(plans[1].constant)
        if node.function == "@in" and plans[1].is_constant and kind_of(plans[1].constant) is list:
            meanings = self._checked.overloads.get(node, ())
            return _membership(plans[0], plans[1].constant) if len(meanings) == 1 else None
        return None

    def message(self, node: MessageLiteral) -> _Plan:
        parts = [(name, self.plan(value).run, number in node.optional) for number, (_, name, value) in enumerate(node.fields)]
        maker = maker_of(node.name.removeprefix("."))

        def make(frame: Frame) -> Any:
            made = {name: _unwrap(part(frame)) if optional else part(frame) for name, part, optional in parts}
            frame.cost += STRUCT_COST
            return maker({name: value for name, value in made.items() if value is not ABSENT})

        return _Plan(make)

    def conditional(self, node: Call) -> _Plan:
        condition, yes, no = map(self.plan, node.arguments)
        asked, if_true, if_false = condition.run, yes.as_part, no.as_part

        def choose(frame: Frame) -> Any:
            return if_true(frame) if truth(asked(frame)) else if_false(frame)

        return _of_attribute(Attribute(choose, unit=0))

    def index(self, node: Call) -> _Plan:
        container, key = map(self.plan, node.arguments)
        optional = node.function == "_[?_]"
        if key.is_constant:
            if kind_of(key.constant) not in QUALIFIERS:
                raise EvaluationError(f"invalid qualifier type: {go_name_of(key.constant)}")
            step = constant_step(key.constant, optional=optional)
        else:
            step = key_step(key.as_part, optional=optional)
        return _of_attribute(container.as_attribute.step(step))

    def logic(self, node: Call) -> _Plan:
        one, other = (self.plan(argument).run for argument in node.arguments)
        return _Plan(plan_logical(one, other, decisive=node.function == "_||_"))

    def equality(self, node: Call) -> _Plan:
        one, other = (self.plan(argument).run for argument in node.arguments)
        operator = OPERATORS[node.function]
        if all(self._checked.types[argument].name in _SCALARS for argument in node.arguments):
            return _Plan(binary(operator, one, other, None))

        def compare(frame: Frame) -> Any:
            left, right = one(frame), other(frame)
            frame.cost += equality_cost(left, right)
            return operator(left, right)

        return _Plan(compare)

    def negation(self, node: Call) -> _Plan:
        run = self.plan(node.arguments[0]).run
        apply: Callable[[Any], Any] = negate if node.function == "-_" else lambda value: not truth(value)

        def run_operator(frame: Frame) -> Any:
            value = run(frame)
            frame.cost += 1
            return apply(value)

        return _Plan(run_operator)

    # --- Macros -------------------------------------------------------------------------------------------------------

    def loop(self, node: Loop) -> _Plan:
        target = self.plan(node.target)
        if node.macro in ("optMap", "optFlatMap"):
            return self._on_content(node, target.run)
        if node.macro == "bind":
            return self._bind(node, target.run)
        slots = tuple(range(self.slots, self.slots + len(node.variables)))
        self.slots += len(slots)
        names = [variable.name for variable in node.variables]
        bodies = tuple(
            Body(plan.run, plan.is_constant)
            for plan in self._plan_with(dict(zip(names, map(_Variable, slots), strict=True)), node.bodies)
        )
        container, fold = target.run, FOLDS[node.macro]
        if node.macro == "sortBy" and self._sorts_surely(node):
            container, fold = list_argument(container), SORT
        return _Plan(lambda frame: fold(frame, container(frame), slots, bodies))

    def _sorts_surely(self, node: Loop) -> bool:
        """Reports whether the type of the keys of `sortBy` is known."""
        binding = self._checked.expansions[node]
        assert isinstance(binding, Comprehension)
        return len(self._checked.overloads.get(binding.result, ())) == 1

    def _plan_with(self, variables: dict[str, _Variable], bodies: Sequence[Node]) -> list[_Plan]:
        outer = self._scope
        self._scope = {**outer, **variables}
        plans = [self.plan(body) for body in bodies]
        self._scope = outer
        return plans

    def _bind(self, node: Loop, value: Evaluator) -> _Plan:
        slot = self.slots
        self.slots += 1
        body = self._plan_with({node.variables[0].name: _Variable(slot, value=value)}, node.bodies)[0].run

        def run(frame: Frame) -> Any:
            frame.slots[slot] = ABSENT
            return body(frame)

        return _Plan(run)

    def _on_content(self, node: Loop, target: Evaluator) -> _Plan:
        """Compiles `optMap` and `optFlatMap`; the first use of the variable counts the cost of the value once more."""
        slot, wraps = self.slots, node.macro == "optMap"
        self.slots += 2
        body = self._plan_with({node.variables[0].name: _Variable(slot, lazy=True)}, node.bodies)[0].run

        def run(frame: Frame) -> Any:
            before = frame.cost
            value = target(frame)
            if value.__class__ is not Optional:
                raise no_such_overload(f"hasValue({type_of(value).name})")
            spent = frame.cost - before
            frame.cost += 1
            if not value.present:
                frame.cost += 1
                return value
            frame.slots[slot], frame.slots[slot + 1] = value.content, spent + 1
            made = body(frame)
            if not wraps:
                return made
            frame.cost += 1
            return Optional(made)

        return _of_attribute(Attribute(run, unit=0))


# --- Variables --------------------------------------------------------------------------------------------------------


def _slot(slot: int, name: str) -> Evaluator:
    def look(frame: Frame) -> Any:
        value = frame.slots[slot]
        if value is ABSENT:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return look


def _evaluate_once(slot: int, value: Evaluator) -> Evaluator:
    def look(frame: Frame) -> Any:
        found = frame.slots[slot]
        if found is ABSENT:
            found = frame.slots[slot] = value(frame)
        return found

    return look


def _lazy(slot: int, name: str) -> Evaluator:
    def look(frame: Frame) -> Any:
        frame.cost += frame.slots[slot + 1]
        frame.slots[slot + 1] = 0
        return frame.slots[slot]

    return look


# --- Literals ---------------------------------------------------------------------------------------------------------


def _unwrap(value: Any) -> Any:
    if value.__class__ is not Optional:
        raise EvaluationError(f"cannot initialize optional list element from non-optional value {format_value(value)}")
    return value.content


# --- Functions and operators ------------------------------------------------------------------------------------------


def _has_known_pattern(node: Call, plans: list[_Plan]) -> bool:
    return node.function in _PATTERNS and isinstance(plans[1].constant, str)


def _membership(element: _Plan, items: list[Any]) -> _Plan | None:
    """Compiles `in` with a constant list of primitives to a set lookup without cost; None for other lists."""
    if not items:
        return _constant(False)
    if not all(kind_of(item) in _PRIMITIVES for item in items):
        return None
    known, run = frozenset(map(key_of, items)), element.run

    def is_one(frame: Frame) -> bool:
        value = run(frame)
        return kind_of(value) in _PRIMITIVES and key_of(value) in known

    return _Plan(is_one)


_SELF_COMPARING: Final = frozenset({"distinct", "sort"})
_SCALARS: Final = frozenset({"bool", "int", "uint", "double", "duration", "timestamp"})
_PRIMITIVES: Final = frozenset(
    kind for kind, name in TYPE_NAMES.items() if name in ("bool", "int", "uint", "double", "string", "null_type")
)
_CONVERSIONS: Final = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
_PATTERNS: Final = frozenset({"find", "findAll", "matches"})

_SPECIAL: Final[dict[str, Callable[[_Planner, Any], _Plan]]] = {
    "_?_:_": _Planner.conditional,
    "_[_]": _Planner.index,
    "_[?_]": _Planner.index,
    "_&&_": _Planner.logic,
    "_||_": _Planner.logic,
    "_==_": _Planner.equality,
    "_!=_": _Planner.equality,
    "!_": _Planner.negation,
    "-_": _Planner.negation,
}

_METHODS: Final[dict[type, Callable[[_Planner, Any], _Plan]]] = {
    Literal: _Planner.literal,
    Identifier: _Planner.identifier,
    Select: _Planner.select,
    Call: _Planner.call,
    ListLiteral: _Planner.list_literal,
    MapLiteral: _Planner.map_literal,
    MessageLiteral: _Planner.message,
    Loop: _Planner.loop,
}
