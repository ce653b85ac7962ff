"""Rule tables: what a table can say of the fields of a struct, in the order of the real function.

A table has a row for each rule: the field, the check with its arguments, and where the rule holds (the gate, the first
minor, the minor that has it no more). It is compiled once for each emulated minor and set of gates, as decoders are: what
remains is a tuple of (field, end of the path, check). What no table can say (fields that depend on one another) is a function
with the name of the real one, which is a row too: `Rule("spec", calls(validate_levels))`.

Invariant: checks are pure; tables are values, and the order of their rows is the order of the errors.

Specified by: pkg/apis/*/validation; from 1.37 on many of them are tags of the types (k8s.io/code-generator/cmd/validation-gen).
`python -m tests.unit.apis.rule_pages` prints docs/rules.md from the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors import field as errors
from fakekube.apimachinery.features import Emulation
from fakekube.apis.validation import names
from fakekube.apis.validation.to_internal import semantic_deep_equal, without_empty_fields

Run = Callable[[Any, str], list[FieldError]]
"""(value or None, path) → errors."""
ChangeRun = Callable[[Any, Any, str], list[FieldError]]
"""(new value, old value, path) → errors."""

NEVER: Final = 1000
"""A minor that is not reached: the rule is in force still."""


@dataclass(slots=True, frozen=True)
class Check:
    """What a row says of its field."""

    words: str
    """For the page of rules."""
    run: Run
    table: Rules | None = None
    """The table of the struct in the field."""
    items: bool = False
    """The table is of each item."""

    def compile(self, emulation: Emulation) -> Run:
        """Returns what runs in an emulation."""
        if self.table is None:
            return self.run
        run = self.table.compile(emulation)
        return _of_each(run) if self.items else _of_struct(run)


@dataclass(slots=True, frozen=True)
class ChangeCheck:
    """What a row of a table of changes says of its field."""

    words: str
    run: ChangeRun


@dataclass(slots=True, frozen=True)
class Rule:
    """One row.

    Args:
        field: its JSON name, with dots where it lies deeper; "" is the struct itself.
        check: what is asked of it.
        gate: the rule holds while this feature gate is on; with "!" before it, while it is off.
        since: the number of the first minor that has the rule.
        until: the number of the first minor that has it no more.
    """

    field: str
    check: Check
    gate: str = ""
    since: int = 0
    until: int = NEVER


@dataclass(slots=True, frozen=True)
class Change:
    """One row of a table of changes; the arguments are those of `Rule`."""

    field: str
    check: ChangeCheck
    gate: str = ""
    since: int = 0
    until: int = NEVER


def _holds(row: Rule | Change, emulation: Emulation) -> bool:
    if not row.since <= emulation.minor < row.until:
        return False
    if not row.gate:
        return True
    return not emulation.enabled(row.gate[1:]) if row.gate.startswith("!") else emulation.enabled(row.gate)


@dataclass(slots=True, frozen=True, eq=False)
class Rules:
    """The table of a struct."""

    struct: str
    function: str
    """The real function."""
    rows: tuple[Rule, ...]

    def validate(self, value: Mapping[str, Any], path: str = "") -> list[FieldError]:
        """Returns the errors of a struct at a path ("" is an object), by the rules of the minor that is emulated."""
        return self.compile(features.current())(value, path)

    def compile(self, emulation: Emulation) -> Run:
        """Returns what runs in an emulation."""
        return emulation.compiled(self, self._compile)

    def _compile(self, emulation: Emulation) -> Run:
        rows = tuple((_getter(row.field), row.field, row.check.compile(emulation)) for row in self.rows if _holds(row, emulation))

        def run(value: Any, path: str) -> list[FieldError]:
            found: list[FieldError] = []
            prefix = f"{path}." if path else ""
            for get, name, check in rows:
                found += check(get(value), f"{prefix}{name}" if name else path)
            return found

        return run


@dataclass(slots=True, frozen=True, eq=False)
class Changes:
    """The table of the changes of a struct."""

    struct: str
    function: str
    rows: tuple[Change, ...]

    def validate(self, new: Mapping[str, Any], old: Mapping[str, Any], path: str = "") -> list[FieldError]:
        """Returns the errors of a change of a struct, by the rules of the minor that is emulated."""
        return features.current().compiled(self, self._compile)(new, old, path)

    def _compile(self, emulation: Emulation) -> ChangeRun:
        rows = tuple((_getter(row.field), row.field, row.check.run) for row in self.rows if _holds(row, emulation))

        def run(new: Any, old: Any, path: str) -> list[FieldError]:
            found: list[FieldError] = []
            prefix = f"{path}." if path else ""
            for get, name, check in rows:
                found += check(get(new), get(old), f"{prefix}{name}" if name else path)
            return found

        return run


def from_minor(number: int) -> bool:
    """Reports whether the emulated minor is this one or a later one, for code that no table says."""
    return features.current().minor >= number


#: The gate of what types declare as beta (`+k8s:beta`): while it is off, the functions by hand hold instead.
BETA: Final = "DeclarativeValidationBeta"
_FIRST_WITH_BETA: Final = 37


def holds_declared_rules() -> bool:
    """Reports whether the rules hold that types declare as beta, for code that no table says."""
    return from_minor(_FIRST_WITH_BETA) and features.current().enabled(BETA)


def rules(struct: str, function: str, *rows: Rule) -> Rules:
    """Returns the table of a struct, whose real function has this name."""
    return Rules(struct, function, rows)


def changes(struct: str, function: str, *rows: Change) -> Changes:
    """Returns the table of the changes of a struct."""
    return Changes(struct, function, rows)


def _getter(name: str) -> Callable[[Any], Any]:
    if not name:
        return lambda value: value
    if "." not in name:
        return lambda value: value.get(name)
    first, _, rest = name.partition(".")
    deeper = _getter(rest)
    return lambda value: deeper(value.get(first) or {})


def _of_struct(run: Run) -> Run:
    return lambda value, path: run(value, path) if value is not None else []


def _of_each(run: Run) -> Run:
    return lambda value, path: [error for index, item in enumerate(value or ()) for error in run(item, f"{path}[{index}]")]


# --- Checks of a struct, and of what it holds -------------------------------------------------------------------------


def struct(table: Rules) -> Check:
    """The rules of the struct in the field, if it is set."""
    return Check(f"see {table.struct}", _never, table)


def each(table: Rules) -> Check:
    """The rules of each item of the list."""
    return Check(f"each item: see {table.struct}", _never, table, items=True)


def each_value(check: Check) -> Check:
    """A check of each item of a list of plain values."""
    return Check(f"each item: {check.words}", _of_each(check.run))


def calls(function: Run) -> Check:
    """Code: a function of the value (or None) and its path, with the name of the real one."""
    return Check(f"code: `{function.__name__}`", function)


def _never(_value: Any, _path: str) -> list[FieldError]:
    return []


# --- Checks of presence -----------------------------------------------------------------------------------------------


def needed(text: str = "") -> Check:
    """The field must be set, and not empty."""
    return Check(_describe("required", text), lambda value, path: [] if value else [errors.required(path, text)])


def set_(text: str = "") -> Check:
    """The field must be set; it may be empty."""
    return Check(_describe("required", text), lambda value, path: [errors.required(path, text)] if value is None else [])


def then(first: Check, *others: Check) -> Check:
    """Asks for one check after another, until one finds errors."""

    def run(value: Any, path: str) -> list[FieldError]:
        for check in (first, *others):
            found = check.run(value, path)
            if found:
                return found
        return []

    return Check(", then ".join(check.words for check in (first, *others)), run)


def optional(check: Check) -> Check:
    """A check of a field that is set."""
    return Check(check.words, lambda value, path: [] if value is None else check.run(value, path))


def nonempty(check: Check) -> Check:
    """A check of a field that is set and not empty."""
    return Check(check.words, lambda value, path: check.run(value, path) if value else [])


# --- Checks of values -------------------------------------------------------------------------------------------------


def at_least(minimum: int, text: str = "", *, absent: int | None = 0) -> Check:
    """A number; `absent` is what an absent one counts as (None: it is not checked)."""
    told = text or names.min_error(minimum)

    def run(value: Any, path: str) -> list[FieldError]:
        number = absent if value is None else value
        return [] if number is None or number >= minimum else [errors.invalid(path, number, told)]

    return Check(f"at least {minimum}", run)


def at_most(maximum: int, text: str = "") -> Check:
    """A number."""
    told = text or names.max_error(maximum)
    return Check(f"at most {maximum}", lambda value, path: [errors.invalid(path, value, told)] if (value or 0) > maximum else [])


def between(minimum: int, maximum: int, text: str = "") -> Check:
    """A number between two others, both included; an absent one is 0."""
    told = text or f"must be between {minimum} and {maximum}, inclusive"

    def run(value: Any, path: str) -> list[FieldError]:
        number = 0 if value is None else value
        return [] if minimum <= number <= maximum else [errors.invalid(path, number, told)]

    return Check(f"{minimum} to {maximum}", run)


def one_of(*values: str, needs: str | None = None, ordered: bool = False, plain: bool = False) -> Check:
    """A value of an enumeration. `needs` is the text if there is none; without it an absent one is an unsupported one.

    The message lists the values sorted, unless `ordered`. `plain`: Go holds it as a plain string.
    """
    listed: Collection[str] = values if ordered else sorted(values)

    def run(value: Any, path: str) -> list[FieldError]:
        if not value and needs is not None:
            return [errors.required(path, needs)]
        return [] if value in values else [errors.not_supported(path, value or "", listed, plain=plain)]

    return Check(f"one of {', '.join(listed)}", run)


def form(check: Callable[[str], Iterable[str]], words: str, *, lower: bool = False) -> Check:
    """A text of a form: `check` of `validation.names` returns what is wrong with it."""

    def run(value: Any, path: str) -> list[FieldError]:
        text = (value or "").lower() if lower else value or ""
        return [errors.invalid(path, text, detail) for detail in check(text)]

    return Check(words, run)


SUBDOMAIN: Final = form(names.dns_subdomain, "DNS subdomain")
LABEL: Final = form(names.dns_label, "DNS label")
LABEL_OF_BYTES: Final = form(lambda text: names.count_in_bytes(names.dns_label(text)), "DNS label (k8s-short-name)")
SEGMENT: Final = form(names.path_segment, "segment of a path")


def fits(limit: int, told: int | None = None) -> Check:
    """A text of at most so many bytes (`told` is the number in the message, if it is another one)."""

    def run(value: Any, path: str) -> list[FieldError]:
        return [] if names.fits(value or "", limit) else [errors.too_long(path, told or limit)]

    return Check(f"at most {limit} bytes", run)


def forbids(text: str = "") -> Check:
    """The field must not be set."""
    return Check(_describe("forbidden", text), lambda value, path: [] if value is None else [errors.forbidden(path, text)])


def says(words: str, broken: Callable[[Any], bool], text: str, *, absent: Any = None, typed: bool = False) -> Check:
    """A rule of its own: `broken` reports whether a value breaks it, `text` is what the error says of the value.

    `typed`: Go holds the value in a string type of its own.
    """

    def run(value: Any, path: str) -> list[FieldError]:
        shown = absent if value is None else value
        return [errors.invalid(path, errors.Typed(shown) if typed else shown, text)] if broken(shown) else []

    return Check(words, run)


def _describe(words: str, text: str) -> str:
    return f"{words} ({text})" if text else words


# --- Checks of changes ------------------------------------------------------------------------------------------------


def immutable(shown: Callable[[Any], Any] = without_empty_fields, text: str = errors.IMMUTABLE) -> ChangeCheck:
    """The field cannot change; the error shows what `shown` makes of the new value."""

    def run(new: Any, old: Any, path: str) -> list[FieldError]:
        return [] if semantic_deep_equal(new, old) else [errors.invalid(path, shown(new), text)]

    return ChangeCheck("immutable", run)


def fixed(text: str = errors.IMMUTABLE) -> ChangeCheck:
    """The field cannot change; the error shows no value, as those of declared rules."""
    return immutable(lambda _: None, text)


def kept(text: str) -> ChangeCheck:
    """The field cannot change, which is forbidden in these words."""
    return ChangeCheck(
        f"unchanged ({text})", lambda new, old, path: [] if semantic_deep_equal(new, old) else [errors.forbidden(path, text)]
    )


def kept_deeply(text: str) -> ChangeCheck:
    """The map cannot change, which is forbidden in these words; an empty one differs from what is stored of it (DeepEqual)."""

    def run(new: Any, old: Any, path: str) -> list[FieldError]:
        return [errors.forbidden(path, text)] if new == {} or not semantic_deep_equal(new, old) else []

    return ChangeCheck(f"unchanged ({text})", run)


def kept_once_set(text: str) -> ChangeCheck:
    """The field can be set, but not changed after, which is forbidden in these words."""

    def run(new: Any, old: Any, path: str) -> list[FieldError]:
        return [] if not old or semantic_deep_equal(new, old) else [errors.forbidden(path, text)]

    return ChangeCheck(f"unchanged once set ({text})", run)


def fixed_once_set() -> ChangeCheck:
    """The field can be set, but not changed or cleared after; the error shows no value."""

    def run(new: Any, old: Any, path: str) -> list[FieldError]:
        verb = "modified" if new else "cleared"
        return (
            [] if not old or semantic_deep_equal(new, old) else [errors.invalid(path, None, f"field cannot be {verb} once set")]
        )

    return ChangeCheck("unchanged once set", run)


def calls_on_change(function: ChangeRun) -> ChangeCheck:
    """Code: a function of the new value, the old one and the path, with the name of the real one."""
    return ChangeCheck(f"code: `{function.__name__}`", function)


def by_minor(name: str, *rows: tuple[Check | ChangeCheck, int, int]) -> tuple[Any, ...]:
    """Returns the rows of one field whose check differs from minor to minor: (check, since, until)."""
    return tuple(_ROW[type(check)](name, check, since=since, until=until) for check, since, until in rows)


def by_declaration(name: str, check: Check | ChangeCheck, *by_hand: tuple[Check | ChangeCheck, int]) -> tuple[Any, ...]:
    """Returns the rows of one field whose check its type declares as beta; before that, and without the gate, there are others.

    Args:
        name: of the field.
        check: what is declared.
        by_hand: (check, since), in order: the last one also holds while the gate is off.
    """
    untils = [*(since for _, since in by_hand[1:]), _FIRST_WITH_BETA]
    rows = by_minor(name, *((earlier, since, until) for (earlier, since), until in zip(by_hand, untils, strict=True)))
    last, _ = by_hand[-1]
    row = _ROW[type(check)]
    without = row(name, last, gate=f"!{BETA}", since=_FIRST_WITH_BETA)
    return (*rows, without, row(name, check, gate=BETA, since=_FIRST_WITH_BETA))


_ROW: Mapping[Any, Any] = {Check: Rule, ChangeCheck: Change}
