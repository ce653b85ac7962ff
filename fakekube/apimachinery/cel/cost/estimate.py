"""Estimates the maximum cost of an expression at compile time.

Walks the checked tree with the expansions of macros. Costs depend on sizes: those of literals are known, those of fields
below a variable are declared by the schema (at their *path*), those of results follow from the arguments.

Specified by: cel-go/checker/cost.go; of sizes: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go
(sizeEstimator).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.cel.checker import Checked
from fakekube.apimachinery.cel.cost.estimated_calls import (
    FREE,
    LIST_COST,
    MAP_COST,
    NOTHING,
    ONE,
    STRUCT_COST,
    UNKNOWN,
    CallEstimate,
    EstimatedCall,
    Operand,
    Range,
    estimate_call,
    fixed_range,
)
from fakekube.apimachinery.cel.declarations import Declaration
from fakekube.apimachinery.cel.interpretable import room
from fakekube.apimachinery.cel.parser import ACCUMULATOR
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
)
from fakekube.apimachinery.cel.types import Signature, Type

Path = tuple[str, ...]


def estimate(checked: Checked, root: Declaration) -> Range:
    """Returns the cost of an expression; every variable has the declaration `root`."""
    with room(checked.deep):
        return _Estimator(checked, root).cost(checked.tree)


class _Entries(NamedTuple):
    """Sizes of the keys (or indices) and values of a list or map."""

    container: str
    keys: Range
    values: Range

    def union(self, other: _Entries) -> _Entries:
        return _Entries(self.container, self.keys.union(other.keys), self.values.union(other.values))


class _Local(NamedTuple):
    """A variable of a comprehension."""

    path: Path
    size: Range | None
    entries: _Entries | None = None


_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


def _is_scalar(kind: Type) -> bool:
    return kind.name in _SCALARS or (kind.name == "optional_type" and _is_scalar(kind.parameters[0]))


def _literal_size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes) else 1


class _Estimator:
    def __init__(self, checked: Checked, root: Declaration) -> None:
        self._checked, self._root = checked, root
        self._costs: dict[Node, Range] = {}
        """The cost of each node; a node that occurs twice is estimated once, but counts twice."""
        self._paths: dict[Node, Path] = {}
        self._sizes: dict[Node, Range] = {}
        self._entries: dict[Node, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        known = self._costs.get(node)
        if known is None:
            known = self._costs[node] = _METHODS[type(node)](self, node)
        return known

    # --- What is known of a node --------------------------------------------------------------------------------------

    def _local(self, node: Node) -> _Local | None:
        known = self._locals.get(node.name) if isinstance(node, Identifier) else None
        return known[-1] if known else None

    def _path(self, node: Node) -> Path:
        local = self._local(node)
        return local.path if local is not None else self._paths.get(node, ())

    def _size(self, node: Node) -> Range | None:
        known = self._sizes.get(node)
        if known is not None:
            return known
        match node:
            case Literal():
                return fixed_range(_literal_size(node.value))
            case ListLiteral():
                return fixed_range(len(node.elements))
            case MapLiteral():
                return fixed_range(len(node.entries))
            case Loop():
                return self._size(self._checked.expansions[node])
        declared = self.declared_size(self._path(node))
        if declared is not None:
            self._sizes[node] = declared
            return declared
        if _is_scalar(self._checked.types[node]):
            return ONE
        local = self._local(node)
        return local.size if local is not None else None

    def _size_or_unknown(self, node: Node) -> Range:
        return self._size(node) or UNKNOWN

    def declared_size(self, path: Path) -> Range | None:
        """Returns the size that the schema declares for a path."""
        here: Declaration | None = self._root
        for name in path[1:]:
            if here is None:
                return None
            here = here.items if name in ("@items", "@values") else here.keys if name == "@keys" else here.fields.get(name)
        return Range(0, here.max_elements) if here is not None and path else None

    def _entries_of(self, node: Node) -> _Entries | None:
        if isinstance(node, Loop):
            return self._entries_of(self._checked.expansions[node])
        local = self._local(node)
        return self._entries.get(node) or (local.entries if local is not None else None)

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        kept = () if path and path[0] == ACCUMULATOR else path
        value = node.value if isinstance(node, Literal) else None
        return Operand(self._checked.types[node], kept, self._size(node), value)

    # --- Nodes --------------------------------------------------------------------------------------------------------

    def literal(self, node: Literal) -> Range:
        return FREE

    def identifier(self, node: Identifier) -> Range:
        local = self._local(node)
        self._paths[node] = local.path if local is not None else (node.name.removeprefix("."),)
        return ONE

    def select(self, node: Select) -> Range:
        if node.optional:
            return self.cost(node.operand).plus(ONE)
        if node.operand not in self._checked.types:  # a name with dots
            return ONE
        cost = self.cost(node.operand)
        if node.test:
            return cost
        self._paths[node] = (*self._path(node.operand), node.field)
        operand = self._checked.types[node.operand]
        return cost.plus(ONE) if operand.name == "map" or operand.is_struct else cost

    def list_literal(self, node: ListLiteral) -> Range:
        cost, sizes = fixed_range(LIST_COST), NOTHING if node.elements else FREE
        for element in node.elements:
            cost = cost.plus(self.cost(element))
            sizes = sizes.union(self._size_or_unknown(element))
        self._entries[node] = _Entries("list", ONE, sizes)
        return cost

    def map_literal(self, node: MapLiteral) -> Range:
        cost = fixed_range(MAP_COST)
        keys = values = NOTHING if node.entries else FREE
        for key, value in node.entries:
            cost = cost.plus(self.cost(key)).plus(self.cost(value))
            keys, values = keys.union(self._size_or_unknown(key)), values.union(self._size_or_unknown(value))
        self._entries[node] = _Entries("map", keys, values)
        return cost

    def message_literal(self, node: MessageLiteral) -> Range:
        cost = fixed_range(STRUCT_COST)
        for _, _, value in node.fields:
            cost = cost.plus(self.cost(value))
        return cost

    # --- Calls --------------------------------------------------------------------------------------------------------

    def call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.arguments[0])
            self._copy_sizes(node, node.arguments[0])
            return cost.plus(ONE)
        costs = [self.cost(argument) for argument in node.arguments]
        arguments = [self._operand(argument) for argument in node.arguments]
        if node.function in LOGICAL_OPERATORS and node.target is None:
            return Range(costs[0].low, costs[0].plus(costs[1]).high)
        overloads = self._checked.overloads.get(node, ())
        spent, target = FREE, None
        if node.target is not None:
            spent = self.cost(node.target)
            target = self._operand(node.target)
        result = NOTHING
        size: Range | None = None
        for overload in overloads:
            made = self._overload(node, overload, target, arguments, costs)
            result = result.union(made.cost)
            if made.size is not None:
                size = made.size if size is None else size.union(made.size)
            size = self._index(node, overload, size)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[node] = size
        return spent.plus(result)

    def _overload(
        self, node: Call, overload: Signature, target: Operand | None, arguments: list[Operand], costs: list[Range]
    ) -> CallEstimate:
        spent = FREE
        for cost in costs:
            spent = spent.plus(cost)
        special = _SPECIAL.get((node.function, overload.key))
        if special is not None:
            return special(self, node, arguments, costs)
        made = estimate_call(EstimatedCall(node.function, overload, target, arguments, self.declared_size))
        return CallEstimate(made.cost.plus(spent), made.size)

    def _index(self, node: Call, overload: Signature, size: Range | None) -> Range | None:
        """Returns the estimate of an element, which has a path of its own."""
        step = _STEPS.get(overload.arguments[0].name) if node.function == "_[_]" else None
        if step is None:
            return size
        container = node.arguments[0]
        entries = self._entries_of(container)
        self._paths[node] = (*self._path(container), step)
        return entries.values if entries is not None else None

    def conditional(self, node: Call, arguments: list[Operand], costs: list[Range]) -> CallEstimate:
        """Returns the union of two results."""
        _, yes, no = node.arguments
        self._join_entries(node, yes, no)
        size = self._size_or_unknown(yes).union(self._size_or_unknown(no))
        return CallEstimate(costs[0].plus(costs[1].union(costs[2])), size)

    def concatenation(self, node: Call, arguments: list[Operand], costs: list[Range]) -> CallEstimate:
        """Returns the estimate of the concatenation of lists; its cost does not depend on their sizes."""
        one, other = node.arguments
        size = self._size_or_unknown(one).plus(self._size_or_unknown(other))
        self._join_entries(node, one, other)
        return CallEstimate(costs[0].plus(costs[1]).plus(ONE), size)

    def _join_entries(self, node: Call, one: Node, other: Node) -> None:
        entries, others = self._entries_of(one), self._entries_of(other)
        if entries is not None and others is not None:
            self._entries[node] = entries.union(others)

    def _copy_sizes(self, node: Node, source: Node) -> None:
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._sizes[node] = size
        if entries is not None:
            self._entries[node] = entries

    # --- Macros -------------------------------------------------------------------------------------------------------

    def loop(self, node: Loop) -> Range:
        return self.cost(self._checked.expansions[node])

    def comprehension(self, node: Comprehension) -> Range:
        cost = self.cost(node.range).plus(self.cost(node.initial))
        local = _Local(self._path(node.initial), self._size(node.initial), self._entries_of(node.initial))
        if self._is_binding(node):
            self._push(node.accumulator, local)
            cost = cost.plus(self.cost(node.result))
            self._pop(node.accumulator)
            self._copy_sizes(node, node.result)
            return cost
        self._push(node.accumulator, local)
        for name, variable in zip(node.variables, self._variables(node), strict=True):
            self._push(name, variable)
        round_cost = self.cost(node.condition)
        round_cost = self.cost(node.step).plus(round_cost)
        for name in node.variables:
            self._pop(name)
        cost = cost.plus(self.cost(node.result))
        self._pop(node.accumulator)
        rounds = self._size_or_unknown(node.range)
        if isinstance(node.initial, Literal):
            self._copy_size(node, node.initial)
        else:
            self._sizes[node] = rounds
            entries = self._entries_of(node.step)
            if entries is not None:
                self._entries[node] = entries
        return cost.plus(rounds.times(round_cost))

    def _copy_size(self, node: Node, source: Node) -> None:
        size = self._size(source)
        if size is not None:
            self._sizes[node] = size

    @staticmethod
    def _is_binding(node: Comprehension) -> bool:
        """Reports whether a comprehension only binds a variable (`cel.bind`)."""
        return (
            isinstance(node.range, ListLiteral)
            and not node.range.elements
            and isinstance(node.condition, Literal)
            and node.condition.value is False
        )

    def _variables(self, node: Comprehension) -> list[_Local]:
        entries = self._entries_of(node.range)
        container = entries.container if entries is not None else self._checked.types[node.range].name
        path = self._path(node.range)
        is_list = container == "list"
        keys = _Local((*path, "@indices" if is_list else "@keys"), entries.keys if entries else None)
        values = _Local((*path, "@items" if is_list else "@values"), entries.values if entries else None)
        if len(node.variables) == 2:
            return [keys, values]
        return [values if is_list else keys]

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _pop(self, name: str) -> None:
        self._locals[name].pop()


#: Type → the path step to its elements.
_STEPS: Final = {"list": "@items", "map": "@values"}
#: (function, types of arguments) → the cost, including that of the arguments.
_SPECIAL: Final[dict[tuple[str, str], Callable[..., CallEstimate]]] = {
    ("_?_:_", "bool A A"): _Estimator.conditional,
    ("_+_", "list(A) list(A)"): _Estimator.concatenation,
}

_METHODS: Final[dict[type, Callable[[_Estimator, Any], Range]]] = {
    Literal: _Estimator.literal,
    Identifier: _Estimator.identifier,
    Select: _Estimator.select,
    Call: _Estimator.call,
    ListLiteral: _Estimator.list_literal,
    MapLiteral: _Estimator.map_literal,
    MessageLiteral: _Estimator.message_literal,
    Loop: _Estimator.loop,
    Comprehension: _Estimator.comprehension,
}
