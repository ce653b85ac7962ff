"""Compiles the CEL rules of a schema and estimates their cost when a definition is written.

Rules are compiled against the type of the values at their node, inner nodes first. Nodes with other errors at or below
them are skipped, and so are rules within allOf, anyOf, oneOf and not. The estimated cost of a rule is its cost for one
value times the maximum number of values; there is a limit for each rule and one for all rules of a schema.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
(ValidateCustomResourceDefinitionOpenAPISchema, the part about celContext), cel_validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from fakekube.apiextensions.definition.to_internal import internal_schema
from fakekube.apimachinery.cel.compilation import compile_validation
from fakekube.apimachinery.cel.cost.limits import STATIC_ESTIMATED_COST_LIMIT, STATIC_ESTIMATED_CRD_COST_LIMIT
from fakekube.apimachinery.cel.declarations import Declaration, declaration
from fakekube.apimachinery.cel.rules import VALIDATIONS
from fakekube.apimachinery.cel.syntax import escape
from fakekube.apimachinery.cel.values import MAX_UINT64
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, internal, invalid
from fakekube.apimachinery.schema.paths import Schema

#: The maximum number of expensive rules that are reported, and the minimum part of the limit that each of them exceeds.
_MOST_EXPENSIVE: Final = 4
_EXPENSIVE: Final = STATIC_ESTIMATED_CRD_COST_LIMIT // 100


def compilation_errors(schema: Schema, path: str, others: Sequence[FieldError]) -> list[FieldError]:
    """Returns the compilation errors of the rules of a structural schema; `others` are its other errors."""
    walk = _Walk(_find_nodes_with_rules(schema), [error.path for error in others])
    if not walk.ruled:
        return []
    root = _Node(schema, path, declaration(schema, root=True), 1)
    errors = list(_node_errors(root, walk))
    return [*errors, *walk.total.errors(path)]


_INNER: Final = frozenset({"additionalProperties", "items", "properties"})


def _find_nodes_with_rules(schema: Schema) -> set[int]:
    """Returns the identities of the nodes with rules, and of those on the way to them."""
    found: set[int] = set()
    if not _INNER.isdisjoint(schema):
        for part in (schema.get("additionalProperties"), schema.get("items"), *(schema.get("properties") or {}).values()):
            if isinstance(part, dict):
                found |= _find_nodes_with_rules(part)
    if found or schema.get(VALIDATIONS):
        found.add(id(schema))
    return found


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of a schema."""

    schema: Schema
    path: str
    declared: Declaration | None
    cardinality: int | None
    """The maximum number of values in one object; None if it is unbounded."""
    uncorrelatable: str = ""
    """The path of the closest outer list whose items cannot be correlated, if there is one."""

    def descend(self, schema: Schema, path: str, declared: Declaration | None, uncorrelatable: str = "") -> _Node:
        most = _max_elements(self.schema)
        count = None if self.cardinality is None or most is None else min(self.cardinality * most, MAX_UINT64)
        return _Node(schema, f"{self.path}{path}", declared, count, uncorrelatable or self.uncorrelatable)


def _max_elements(schema: Schema) -> int | None:
    """Returns the maximum number of elements of a node; None if it is unbounded."""
    kind = schema.get("type")
    if kind == "array":
        limit = schema.get("maxItems")
    elif kind == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    else:
        return 1
    return None if limit is None else max(limit, 0)


def _node_errors(node: _Node, walk: _Walk) -> Iterator[FieldError]:
    for below in _nodes_below(node, walk.ruled):
        yield from _node_errors(below, walk)
    if node.schema.get(VALIDATIONS) and not any(_lies_within(fault, node.path) for fault in walk.faults):
        if node.declared is None:
            said = "failed to construct type information for x-kubernetes-validations rules"
            why = "unable to convert structural schema to CEL declarations"
            yield internal(f"{node.path}.{VALIDATIONS}", f"internal error: {said}: {why}")
        else:
            yield from _rule_errors(node, node.declared, walk.total)


def _nodes_below(node: _Node, wanted: Set[int]) -> Iterator[_Node]:
    schema, declared = node.schema, node.declared
    values, items = schema.get("additionalProperties"), schema.get("items")
    of_elements = declared.items if declared is not None else None
    if isinstance(values, dict) and id(values) in wanted:
        yield node.descend(values, ".additionalProperties", of_elements)
    ruled = [item for item in (schema.get("properties") or {}).items() if id(item[1]) in wanted]
    for name, part in sorted(ruled, key=itemgetter(0)):
        escaped = escape(name)
        known = declared.fields.get(escaped) if declared is not None and escaped is not None else None
        if known is None:
            known = declaration(part, bool(part.get("x-kubernetes-embedded-resource")))
        yield node.descend(part, f".properties[{name}]", known)
    if isinstance(items, dict) and id(items) in wanted:
        around = node.uncorrelatable or ("" if schema.get("x-kubernetes-list-type") == "map" else node.path)
        yield node.descend(items, ".items", of_elements, around)


def _lies_within(fault: str, path: str) -> bool:
    return fault.startswith(path) and fault[len(path) :][:1] in ("", ".", "[")


def _rule_errors(node: _Node, declared: Declaration, total: _Total) -> Iterator[FieldError]:
    for index, rule in enumerate(node.schema[VALIDATIONS]):
        place = f"{node.path}.{VALIDATIONS}[{index}]"
        result = compile_validation(rule, declared)
        values = declared.max_cardinality if node.cardinality is None else node.cardinality
        cost = min(result.rule_cost * values, MAX_UINT64)
        yield from _cost_errors(f"{place}.rule", "estimated rule cost", cost, total)
        if result.rule_problem:
            yield invalid(f"{place}.rule", _print_rule(rule), result.rule_problem)
        if result.message_problem:
            yield invalid(f"{place}.messageExpression", _print_rule(rule), result.message_problem)
        elif result.message_cost is not None:
            name = "estimated messageExpression cost"
            yield from _cost_errors(f"{place}.messageExpression", name, result.message_cost, total)
        if result.uses_old_self and node.uncorrelatable:
            said = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {node.uncorrelatable}"
            yield invalid(f"{place}.rule", rule["rule"], said)
        elif not result.uses_old_self and rule.get("optionalOldSelf") is not None:
            said = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{place}.optionalOldSelf", rule["optionalOldSelf"], said)


def _print_rule(rule: Mapping[str, Any]) -> Any:
    """Returns a rule as Go prints the internal type."""
    return (internal_schema({VALIDATIONS: [rule]}) or {})["XValidations"][0]


# --- Costs ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Total:
    """The estimated cost of all rules of a schema."""

    cost: int = 0
    expensive: list[tuple[int, str]] = field(default_factory=list)
    """The most expensive rules: (cost, path)."""

    def add(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, MAX_UINT64)
        if cost >= _EXPENSIVE:
            self.expensive.append((cost, path))
            self.expensive.sort(key=lambda each: -each[0])
            del self.expensive[_MOST_EXPENSIVE:]

    def errors(self, path: str) -> Iterator[FieldError]:
        """Returns the errors if the total exceeds the limit: one for the schema, and one for each expensive rule."""
        if self.cost <= STATIC_ESTIMATED_CRD_COST_LIMIT:
            return
        said = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        for _, place in self.expensive:
            yield forbidden(place, said)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _excess(name, self.cost, STATIC_ESTIMATED_CRD_COST_LIMIT))


@dataclass(slots=True)
class _Walk:
    """The arguments that are the same at all nodes."""

    ruled: Set[int]
    """The nodes to visit: see `_find_nodes_with_rules`."""
    faults: Sequence[str]
    """The paths with other errors."""
    total: _Total = field(default_factory=_Total)


def _cost_errors(path: str, name: str, cost: int, total: _Total) -> Iterator[FieldError]:
    total.add(path, cost)
    if cost > STATIC_ESTIMATED_COST_LIMIT:
        yield forbidden(path, _excess(name, cost, STATIC_ESTIMATED_COST_LIMIT))


def _excess(name: str, cost: int, limit: int) -> str:
    ratio = cost / limit
    factor = "more than 100x" if ratio > 100 else f"{ratio:f}x" if ratio < 1.5 else f"{ratio:.1f}x"
    advice = "adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{name} exceeds budget by factor of {factor} (try simplifying the rule, or {advice})"
