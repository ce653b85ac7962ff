"""The x-kubernetes-validations of a schema: compiled once, and held against values.

`compile_rules` makes a tree of the parts of a schema that have rules, at or below them. A walk over a value evaluates
the rules of each part that is there (null has none), outer parts first. Rules that speak of `oldSelf` need an old value
that belongs to the new one, unless they take it as optional. An error about a part that has not changed is only a
warning.

Specified by: apiextensions-apiserver/pkg/apiserver/schema/cel/{validation,compilation}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fakekube.cel.correlation import Correlation, items_by_key, key_of_item
from fakekube.cel.errors import CompileError, EvaluationError
from fakekube.cel.evaluation import Evaluator, evaluator
from fakekube.cel.fieldpaths import field_path
from fakekube.cel.parser import parse
from fakekube.cel.syntax import references
from fakekube.cel.values import Optional
from fakekube.cel.views import Reader, reader, with_object_meta
from fakekube.errors import FieldError, field
from fakekube.errors.field import OMITTED

__all__ = ["Rules", "compile_rules"]

Schema = Mapping[str, Any]
Warn = Callable[[str], None]

_VALIDATIONS: Final = "x-kubernetes-validations"
_MAX_MESSAGE: Final = 5 * 1024


def compile_rules(schema: Schema) -> Rules | None:
    """The rules of the schema of a resource; None if there are none."""
    return _compile(schema, schema, root=True) if _has_rules(schema) else None


def _has_rules(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return _VALIDATIONS in schema or any(map(_has_rules, schema.values()))
    return isinstance(schema, list) and any(map(_has_rules, schema))


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule, ready to run. `evaluate` is a text if it does not compile: what the compiler says."""

    text: str
    evaluate: Evaluator | str
    transition: bool
    """Does it speak of the old value?"""
    optional_old: bool
    message: str
    message_evaluate: Evaluator | None
    reason: str
    field_path: str
    """Relative, as printed; may be empty."""

    @property
    def told(self) -> str:
        """How errors call it."""
        return self.message or self.text

    def failure(self, path: str, value: Any, detail: str) -> FieldError:
        make = _REASONS.get(self.reason, field.invalid)
        return make(path, value, detail)


_REASONS: Final[dict[str, Callable[[str, Any, str], FieldError]]] = {
    "FieldValueForbidden": lambda path, value, detail: field.forbidden(path, detail),
    "FieldValueRequired": lambda path, value, detail: field.required(path, detail),
    "FieldValueDuplicate": lambda path, value, detail: field.duplicate(path, value),
}


def _rule(rule: Mapping[str, Any], schema: Schema) -> _Rule:
    text = rule.get("rule", "").strip()
    evaluate: Evaluator | str
    transition = False
    try:
        tree = parse(rule.get("rule", ""))
        evaluate, transition = evaluator(tree), references(tree, "oldSelf")
    except CompileError as error:
        evaluate = f"rule compile error: compilation failed: {error}"
    return _Rule(
        text, evaluate, transition, bool(rule.get("optionalOldSelf")), (rule.get("message") or "").strip(),
        _message_evaluator(rule.get("messageExpression") or ""), rule.get("reason") or "",
        field_path(rule.get("fieldPath") or "", schema),
    )


def _message_evaluator(source: str) -> Evaluator | None:
    try:
        return evaluator(parse(source)) if source.strip() else None
    except CompileError:
        return None


@dataclass(frozen=True, slots=True)
class _Ratchet:
    """What is known of the old value where the walk stands: of the part itself, or of the nearest around it."""

    current: Correlation | None = None
    parent: Correlation | None = None

    @property
    def holds(self) -> bool:
        """Is this part unchanged?"""
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


@dataclass(frozen=True, slots=True)
class _Walk:
    """Where what is found goes."""

    errors: list[FieldError]
    warn: Warn


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one part of a schema, and of the parts below it."""

    schema: Schema
    rules: tuple[_Rule, ...]
    read: Reader
    properties: Mapping[str, Rules]
    additional: Rules | None
    items: Rules | None
    all_of: tuple[Rules, ...]

    def validate(self, value: Any, old: Any = None, warn: Warn | None = None) -> list[FieldError]:
        """What the rules find wrong with a resource, given the one it replaces (None: it is new).

        `warn` takes the message of each error about a part that has not changed, which is no error.
        """
        walk = _Walk([], warn or (lambda text: None))
        ratchet = _Ratchet(Correlation(self.schema, value, old)) if old is not None else _Ratchet()
        self._validate(walk, "", value, old, ratchet)
        return walk.errors

    def _validate(self, walk: _Walk, path: str, value: Any, old: Any, ratchet: _Ratchet) -> None:
        if value is None:
            return
        if self.rules:
            self._evaluate(walk, path, value, old, ratchet)
        for part in self.all_of:
            part._validate(walk, path, value, old, replace(ratchet, current=None))
        if isinstance(value, dict):
            self._validate_object(walk, path, value, old if isinstance(old, dict) else {}, ratchet)
        elif isinstance(value, list) and self.items is not None:
            before = items_by_key(self.schema, old)
            for number, item in enumerate(value):
                old_item = before.get(key_of_item(self.schema, item) or ())
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
        try:
            plain, optional = self._variables(value, old)
        except EvaluationError as error:
            told = [_evaluation_problem(str(error), rule) for rule in self.rules]
            walk.errors.extend(field.invalid(path, kind, text) for text in told)
            return
        for rule in self.rules:
            if isinstance(rule.evaluate, str):
                walk.errors.append(field.invalid(path, kind, rule.evaluate))
                continue
            if rule.transition and old is None and not rule.optional_old:
                continue
            try:
                if rule.evaluate(dict(optional if rule.optional_old else plain)) is True:
                    continue
            except EvaluationError as error:
                walk.errors.append(field.invalid(path, kind, _evaluation_problem(str(error), rule)))
                continue
            except RecursionError:
                walk.errors.append(field.invalid(path, kind, _evaluation_problem("evaluation too deep", rule)))
                continue
            shown = OMITTED if kind in ("object", "array") else value
            failure = rule.failure(_joined(path, rule.field_path), shown, _message(rule, plain))
            if not rule.transition and ratchet.holds:
                walk.warn(failure.message)
            else:
                walk.errors.append(failure)

    def _variables(self, value: Any, old: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The variables, with `oldSelf` as it is, and as an optional value."""
        seen = self.read(value)
        if old is None:
            return {"self": seen}, {"self": seen, "oldSelf": Optional()}
        before = self.read(old)
        return {"self": seen, "oldSelf": before}, {"self": seen, "oldSelf": Optional(before)}


def _joined(path: str, below: str) -> str:
    return f"{path}.{below}" if path and below else path or below


def _evaluation_problem(problem: str, rule: _Rule) -> str:
    if problem.startswith("no such overload"):
        said = "call arguments did not match a supported operator, function or macro signature"
        return f"'{problem}': {said} for rule: {rule.told}"
    return f"{problem} evaluating rule: {rule.told}"


def _message(rule: _Rule, variables: dict[str, Any]) -> str:
    """What the rule says when it does not hold: computed if it can be, else as written, else the rule."""
    if rule.message_evaluate is not None:
        try:
            computed = rule.message_evaluate(dict(variables))
        except EvaluationError:
            computed = None
        if isinstance(computed, str):
            text = computed.strip()
            if text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE:
                return text
    return rule.message or f"failed rule: {rule.text}"


# ------------------------------------------------------------ compiling


def _compile(rules: Schema, schema: Schema, root: bool = False) -> Rules | None:
    """`rules` says what is asked (it may stand in an allOf), `schema` what values look like."""
    embedded = root or bool(schema.get("x-kubernetes-embedded-resource"))
    compiled = tuple(_rule(rule, schema) for rule in rules.get(_VALIDATIONS) or ())
    properties = {
        name: below
        for name, part in (rules.get("properties") or {}).items()
        if (known := (schema.get("properties") or {}).get(name)) is not None
        and _is_readable(known) and (below := _compile(part, known)) is not None
    }
    additional = _compile_below(rules, schema, "additionalProperties")
    items = _compile_below(rules, schema, "items")
    all_of = tuple(
        part for nested in rules.get("allOf") or () if (part := _compile(nested, schema, root)) is not None
    )
    if not (compiled or properties or additional or items or all_of):
        return None
    seen = with_object_meta(schema) if embedded else schema
    return Rules(schema, compiled, reader(seen), properties, additional, items, all_of)


def _compile_below(rules: Schema, schema: Schema, name: str) -> Rules | None:
    part, known = rules.get(name), schema.get(name)
    return _compile(part, known) if isinstance(part, Mapping) and isinstance(known, Mapping) else None


def _is_readable(schema: Schema) -> bool:
    """Parts of no type are left out."""
    return bool(schema.get("type") or schema.get("x-kubernetes-int-or-string"))
