"""Compiles the x-kubernetes-validations of a schema, and validates values with them.

`compile_rules` compiles the rules of a schema to a tree that has only the fields with rules at or below them. A walk over a
value evaluates the rules of each field that is present and not null, outer fields first. A transition rule (one that uses
`oldSelf`) is evaluated if the old object has a correlated value, or if it takes `oldSelf` as optional. By ratcheting, an
error about an unchanged value is only a warning.

Specified by: apiextensions-apiserver/pkg/apiserver/schema/cel/{validation,compilation}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, NoReturn

from fakekube.apimachinery import features
from fakekube.apimachinery.cel.compilation import CompilationError, Compiled, compile_message, compile_rule
from fakekube.apimachinery.cel.cost.limits import PER_CALL_LIMIT, RUNTIME_COST_BUDGET
from fakekube.apimachinery.cel.declarations import Declaration, declaration
from fakekube.apimachinery.cel.errors import CostLimitExceeded, EvaluationError
from fakekube.apimachinery.cel.syntax import escape
from fakekube.apimachinery.cel.values import Optional, key_of
from fakekube.apimachinery.cel.views import Reader, reader, with_object_meta
from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.errors.field import OMITTED
from fakekube.apimachinery.schema.paths import Schema, SchemaPathError, place_at
from fakekube.base.golang.strconv import go_quote

# --- Correlation of new values with old ones (ratcheting) ------------------------------------------------------------
# Properties, map values and items of lists of type map can be correlated. An unchanged value, or one within an unchanged
# value, may violate rules (ratcheting).
#
# Specified by: k8s.io/apiserver/pkg/cel/common/{equality,maplist}.go.


_SCALARS = frozenset({bool, int, float, str})


def _key_of_item(schema: Schema, item: Any) -> tuple[Any, ...] | None:
    """The keys of an item of a list of type map, None if it has none."""
    names = schema.get("x-kubernetes-list-map-keys")
    if not names or schema.get("x-kubernetes-list-type") != "map" or not isinstance(item, dict):
        return None
    found = [item.get(name) for name in names]
    return tuple(map(key_of, found)) if all(value.__class__ in _SCALARS for value in found) else None


def _items_by_key(schema: Schema, items: Any) -> dict[tuple[Any, ...], Any]:
    """Returns the items of a list of type map; empty for other lists."""
    found: dict[tuple[Any, ...], Any] = {}
    for item in items if isinstance(items, list) else ():
        key = _key_of_item(schema, item)
        if key is not None:
            found.setdefault(key, item)
    return found


class Correlation:
    """A new value, the correlated old value, and their schema."""

    def __init__(self, schema: Schema, value: Any, old: Any) -> None:
        self._schema, self._value, self._old = schema, value, old

    def key(self, name: str) -> Correlation | None:
        """Returns the correlation of a property or map value; None if it is missing in one of them or in the schema."""
        if not isinstance(self._value, dict) or not isinstance(self._old, dict):
            return None
        if name not in self._value or name not in self._old:
            return None
        schema = (self._schema.get("properties") or {}).get(name) or self._schema.get("additionalProperties")
        return Correlation(schema, self._value[name], self._old[name]) if isinstance(schema, Mapping) else None

    def index(self, number: int) -> Correlation | None:
        """Returns the correlation of an item of a list of type map; None without an old item with the same keys."""
        item = self._value[number]
        old, schema = self._old_items.get(_key_of_item(self._schema, item) or ()), self._schema.get("items")
        return Correlation(schema, item, old) if old is not None and schema is not None else None

    @cached_property
    def _old_items(self) -> dict[tuple[Any, ...], Any]:
        return _items_by_key(self._schema, self._old)

    @cached_property
    def equal(self) -> bool:
        """Whether the new value equals the old one."""
        value, old = self._value, self._old
        if value is None or old is None:
            return value is old
        if value.__class__ is not old.__class__:
            return False
        if isinstance(value, dict):
            return len(value) == len(old) and all(child is not None and child.equal for child in map(self.key, value))
        if isinstance(value, list):
            if self._schema.get("x-kubernetes-list-type") != "map":
                return bool(value == old)
            children = map(self.index, range(len(value)))
            return len(value) == len(old) and all(child is not None and child.equal for child in children)
        return bool(value == old)


Warn = Callable[[str], None]

VALIDATIONS: Final = "x-kubernetes-validations"
_MAX_MESSAGE: Final = 5 * 1024
_BUDGET_SPENT: Final = "failed due to running out of cost budget, no further validation rules will be run"

#: The number of the first minor whose errors show values of scalars, and not their type.
_VALUES_SHOWN_SINCE = 35


def compile_rules(schema: Schema, *, root: bool = True) -> Rules | None:
    """Compiles the rules of a schema (`root`: that of a whole resource); None if there are none."""
    return _compile(schema, schema, declaration(schema, root), root)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A compiled rule."""

    text: str
    compiled: Compiled | None
    problem: str
    """The compilation error, or ""."""
    optional_old: bool
    message: str
    message_source: str
    message_compiled: Compiled | None
    reason: str
    field_path: str
    """The fieldPath of the rule, relative to the value, as printed in errors; may be empty."""
    is_transition: bool
    """Whether the rule uses `oldSelf`."""

    @property
    def described(self) -> str:
        """The rule in error messages."""
        return self.message or self.text

    def failure(self, path: str, value: Any, detail: str) -> FieldError:
        make = _REASONS.get(self.reason, field.invalid)
        return make(path, value, detail)


_REASONS: Final[dict[str, Callable[[str, Any, str], FieldError]]] = {
    "FieldValueForbidden": lambda path, value, detail: field.forbidden(path, detail),
    "FieldValueRequired": lambda path, value, detail: field.required(path, detail),
    "FieldValueDuplicate": lambda path, value, detail: field.duplicate(path, value),
}


def _rule(rule: Mapping[str, Any], schema: Schema, declared: Declaration | None) -> _Rule:
    compiled = message = None
    problem = ""
    if declared is None:
        problem = "rule compiler initialization error: failed to convert to declType for CEL validation rules"
    elif rule.get("rule", "").strip():
        try:
            compiled = compile_rule(rule, declared)
            message = _message_program(rule, declared)
        except CompilationError as error:
            problem = f"rule compile error: {error}"
    return _Rule(
        rule.get("rule", "").strip(),
        compiled,
        problem,
        bool(rule.get("optionalOldSelf")),
        (rule.get("message") or "").strip(),
        rule.get("messageExpression") or "",
        message,
        rule.get("reason") or "",
        _field_path(rule.get("fieldPath") or "", schema),
        compiled is not None and compiled.uses_old_self,
    )


def _message_program(rule: Mapping[str, Any], declared: Declaration) -> Compiled | None:
    try:
        return compile_message(rule, declared) if rule.get("messageExpression") else None
    except CompilationError:
        return None


def _field_path(text: str, schema: Schema) -> str:
    """Returns a fieldPath as printed in errors; "" if it is invalid."""
    try:
        return place_at(text, schema).path if text else ""
    except SchemaPathError:
        return ""


@dataclass(frozen=True, slots=True)
class _Ratchet:
    """The correlated old value at the current position of the walk: that of the value itself, or of its nearest ancestor."""

    current: Correlation | None = None
    parent: Correlation | None = None

    @property
    def holds(self) -> bool:
        """Whether the value is unchanged."""
        nearest = self.current or self.parent
        return nearest is not None and nearest.equal

    def key(self, name: str) -> _Ratchet:
        if self.current is None:
            return self
        if self.parent is None and name in ("apiVersion", "kind"):
            return _Ratchet()
        return _Ratchet(self.current.key(name), self.current)

    def index(self, number: int) -> _Ratchet:
        return self if self.current is None else _Ratchet(self.current.index(number), self.current)


class _Here(NamedTuple):
    """The current position of the walk."""

    path: str
    value: Any
    ratchet: _Ratchet


class _Spent(Exception):
    """The cost budget is exhausted."""


@dataclass(slots=True)
class _Walk:
    """The state of one validation: errors, and the remaining cost budget."""

    errors: list[FieldError]
    warn: Warn
    budget: int = RUNTIME_COST_BUDGET

    def spend(self, cost: int) -> bool:
        """Deducts a cost from the budget. Returns false if it is exhausted."""
        if cost > self.budget:
            return False
        self.budget -= cost
        return True

    def stop(self, error: FieldError) -> NoReturn:
        """Adds the last error and ends the walk. Raises _Spent."""
        self.errors.append(error)
        raise _Spent


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a schema and of the schemas below it."""

    schema: Schema
    rules: tuple[_Rule, ...]
    read: Reader
    properties: Mapping[str, Rules]
    additional: Rules | None
    items: Rules | None
    all_of: tuple[Rules, ...]

    def validate(self, value: Any, old: Any = None, warn: Warn | None = None) -> list[FieldError]:
        """Validates a resource against the one it replaces (None: it is new). Returns the errors.

        `warn` is called with the message of each error that ratcheting suppresses.
        """
        ratchet = _Ratchet(Correlation(self.schema, value, old)) if old is not None else _Ratchet()
        return self._found("", value, old, ratchet, warn or (lambda text: None))

    def validate_default(self, value: Any, path: str) -> list[FieldError]:
        """Validates a default at a path, both as a new value and as an unchanged one. Returns the errors."""
        nothing = _Ratchet()
        return self._found(path, value, value, nothing, lambda text: None) or self._found(
            path, value, None, nothing, lambda text: None
        )

    def _found(self, path: str, value: Any, old: Any, ratchet: _Ratchet, warn: Warn) -> list[FieldError]:
        walk = _Walk([], warn)
        with suppress(_Spent):
            self._validate(walk, path, value, old, ratchet)
        return walk.errors

    def _validate(self, walk: _Walk, path: str, value: Any, old: Any, ratchet: _Ratchet) -> None:
        if value is None:
            return
        if self.rules:
            self._evaluate(walk, path, value, old, ratchet)
        for part in self.all_of:
            part._validate(walk, path, value, old, replace(ratchet, current=None))
        if isinstance(value, dict) and (self.properties or self.additional is not None):
            self._validate_object(walk, path, value, old if isinstance(old, dict) else {}, ratchet)
        elif isinstance(value, list) and self.items is not None:
            before = _items_by_key(self.schema, old)
            for number, item in enumerate(value):
                old_item = before.get(_key_of_item(self.schema, item) or ())
                self.items._validate(walk, f"{path}[{number}]", item, old_item, ratchet.index(number))

    def _validate_object(
        self, walk: _Walk, path: str, value: Mapping[str, Any], old: Mapping[str, Any], ratchet: _Ratchet
    ) -> None:
        for name, part in value.items():
            if self.additional is not None:
                self.additional._validate(walk, f"{path}[{name}]", part, old.get(name), ratchet.key(name))
            below = self.properties.get(name)
            if below is not None:
                below._validate(walk, f"{path}.{name}" if path else name, part, old.get(name), ratchet.key(name))

    def _evaluate(self, walk: _Walk, path: str, value: Any, old: Any, ratchet: _Ratchet) -> None:
        kind = self.schema.get("type", "")
        if walk.budget <= 0:
            walk.stop(field.invalid(path, kind, f"validation {_BUDGET_SPENT}"))
        plain, optional, unreadable = self._variables(value, old)
        for rule in self.rules:
            if rule.problem:
                walk.errors.append(field.invalid(path, kind, rule.problem))
            elif rule.compiled is None or (rule.is_transition and old is None and not rule.optional_old):
                continue
            elif unreadable and rule.compiled.checked.uses:
                walk.errors.append(field.invalid(path, kind, _evaluation_problem(unreadable, rule)))
            else:
                found = self._result(walk, path, rule, rule.compiled, optional if rule.optional_old else plain)
                if found is False:
                    self._fail(walk, _Here(path, value, ratchet), rule, plain)

    def _result(self, walk: _Walk, path: str, rule: _Rule, compiled: Compiled, variables: dict[str, Any]) -> bool:
        """Evaluates a rule. Returns its result; after an evaluation error, which it adds, true."""
        kind = self.schema.get("type", "")
        exceeded = None
        try:
            found, cost = compiled.program.evaluate(variables, PER_CALL_LIMIT)
        except CostLimitExceeded as error:
            exceeded, cost = error, error.cost
        if not walk.spend(cost):
            walk.stop(field.invalid(path, kind, f"validation {_BUDGET_SPENT}"))
        if exceeded is not None:
            said = "no further validation rules will be run due to call cost exceeds limit for rule"
            walk.stop(field.invalid(path, kind, f"'{exceeded}': {said}: {rule.described}"))
        if isinstance(found, EvaluationError):
            walk.errors.append(field.invalid(path, kind, _evaluation_problem(str(found), rule)))
            return True
        return found is True

    def _fail(self, walk: _Walk, here: _Here, rule: _Rule, variables: dict[str, Any]) -> None:
        """Adds the error of a rule that is violated; for an unchanged value, only a warning."""
        kind = self.schema.get("type", "")
        place, ends = _join(here.path, rule.field_path), False
        try:
            shown = kind  # as older minors show every value
            if features.current().minor >= _VALUES_SHOWN_SINCE:
                shown = OMITTED if kind in ("object", "array") else here.value
            failure = rule.failure(place, shown, _message(walk, rule, variables))
        except _MessageProblem as problem:
            failure, ends = field.invalid(place, kind, str(problem)), True
        if not rule.is_transition and here.ratchet.holds:
            walk.warn(failure.message)
        else:
            walk.errors.append(failure)
        if ends:
            raise _Spent

    def _variables(self, value: Any, old: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Returns the variables with a plain and with an optional `oldSelf`, and the error message if a value cannot be read."""
        try:
            seen = self.read(value)
            before = self.read(old) if old is not None else None
        except EvaluationError as error:
            return {}, {}, str(error)
        if old is None:
            return {"self": seen}, {"self": seen, "oldSelf": Optional()}, ""
        return {"self": seen, "oldSelf": before}, {"self": seen, "oldSelf": Optional(before)}, ""


def _join(path: str, below: str) -> str:
    return f"{path}.{below}" if path and below else path or below


def _evaluation_problem(problem: str, rule: _Rule) -> str:
    if problem.startswith("no such overload"):
        said = "call arguments did not match a supported operator, function or macro signature"
        return f"'{problem}': {said} for rule: {rule.described}"
    return f"{problem} evaluating rule: {rule.described}"


class _MessageProblem(Exception):
    """The messageExpression exceeded the cost limit."""


def _message(walk: _Walk, rule: _Rule, variables: dict[str, Any]) -> str:
    """Returns the message of a violated rule: that of its messageExpression, else its message, else the rule itself.

    Raises _MessageProblem.
    """
    if rule.message_compiled is not None:
        computed = _computed_message(walk, rule, rule.message_compiled, variables)
        text = computed.strip() if isinstance(computed, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE:
            return text
    return rule.message or f"failed rule: {rule.text}"


def _computed_message(walk: _Walk, rule: _Rule, compiled: Compiled, variables: dict[str, Any]) -> Any:
    exceeded = False
    try:
        computed, cost = compiled.program.evaluate(variables, PER_CALL_LIMIT)
    except CostLimitExceeded as error:
        computed, cost, exceeded = None, error.cost, True
    if not walk.spend(cost):
        raise _MessageProblem(f"messageExpression evaluation {_BUDGET_SPENT}")
    if exceeded:
        said = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
        raise _MessageProblem(f"{said}: {go_quote(rule.message_source)}")
    return computed


# --- Compiling --------------------------------------------------------------------------------------------------------


def _compile(rules: Schema, schema: Schema, declared: Declaration | None, root: bool = False) -> Rules | None:
    """Compiles rules: `rules` is the schema that has them (possibly in an allOf), `schema` the type of the values."""
    compiled = tuple(_rule(rule, schema, declared) for rule in rules.get(VALIDATIONS) or ())
    properties = {
        name: below
        for name, part in (rules.get("properties") or {}).items()
        if (known := (schema.get("properties") or {}).get(name)) is not None
        and (below := _compile_property(part, known, name, declared)) is not None
    }
    additional = _compile_below(rules, schema, "additionalProperties", declared)
    items = _compile_below(rules, schema, "items", declared)
    all_of = tuple(part for nested in rules.get("allOf") or () if (part := _compile(nested, schema, declared, root)) is not None)
    if not (compiled or properties or additional or items or all_of):
        return None
    seen = with_object_meta(schema) if root else schema
    return Rules(schema, compiled, reader(seen), properties, additional, items, all_of)


def _compile_property(rules: Schema, schema: Schema, name: str, parent: Declaration | None) -> Rules | None:
    """Compiles the rules of a property; a property that expressions cannot access has none."""
    escaped, embedded = escape(name), bool(schema.get("x-kubernetes-embedded-resource"))
    if escaped is None:
        declared = declaration(schema, embedded)
    else:
        declared = parent.fields.get(escaped) if parent is not None else None
    return _compile(rules, schema, declared, embedded) if declared is not None else None


def _compile_below(rules: Schema, schema: Schema, name: str, parent: Declaration | None) -> Rules | None:
    part, known = rules.get(name), schema.get(name)
    if not isinstance(part, Mapping) or not isinstance(known, Mapping):
        return None
    declared = parent.items if parent is not None else None
    return _compile(part, known, declared, bool(known.get("x-kubernetes-embedded-resource")))
