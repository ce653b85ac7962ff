"""The differences of two values of Go, as the reporter of go-cmp prints them; messages of servers before 1.34 contain such texts.

A value is a tree of `Value`s, each with the name of its type. First both are compared, which gives a tree of nodes with how
many of the values below are equal; then the nodes are formatted, which leaves out what is equal and far from a difference; then
the text is laid out, on one line or on several.

Not here: the form of go-cmp for long texts that differ only in parts, and cycles of pointers. The reporter of go-cmp chooses by
the second of its start whether it indents with plain or with unbreakable spaces, and where it looks first for equal
items of lists; this is the choice with plain ones.

Specified by: github.com/google/go-cmp v0.7, cmp/report_compare.go, report_reflect.go, report_text.go, internal/diff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Final

from fakekube.base.golang.strconv import go_quote


class Kind(Enum):
    """The kinds of types that differ in how they are compared and printed."""

    SCALAR = auto()
    STRING = auto()
    STRUCT = auto()
    SLICE = auto()
    MAP = auto()
    POINTER = auto()


@dataclass(frozen=True, slots=True)
class Value:
    """A value of Go.

    Args:
        kind: of its type.
        type: the name of its type.
        content: a text (of a scalar: as Go prints it; of a string: its characters), fields or entries by name, a list of
            items, or what a pointer points at; None for nil.
        printed: what the method String of its type returns; None if it has none.
        same: values that the method Equal of its type compares have this key; None if it has none.
    """

    kind: Kind
    type: str
    content: Any = None
    printed: str | None = None
    same: Any = None
    zero: bool = False
    """Of a scalar, whether it is the zero value of its type."""

    @property
    def is_zero(self) -> bool:
        """Whether it is the zero value of its type."""
        if self.kind is Kind.STRUCT:
            return all(item.is_zero for item in self.content.values())
        return not self.content if self.kind is Kind.STRING else self.zero if self.kind is Kind.SCALAR else self.content is None


# --- Comparison -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Node:
    """A pair of values; one of them is None where the other is without a counterpart."""

    x: Value | None
    y: Value | None
    same: int = 0
    differing: int = 0
    children: int = 0
    depth: int = 0
    records: list[tuple[str, _Node]] = field(default_factory=list)

    @property
    def one(self) -> Value:
        found = self.x if self.x is not None else self.y
        assert found is not None
        return found

    def add(self, name: str, child: _Node) -> None:
        self.records.append((name, child))
        self.same, self.differing = self.same + child.same, self.differing + child.differing
        self.children += child.children + 1
        self.depth = max(self.depth, child.depth + 1)

    def report(self, *, equal: bool) -> None:
        self.same, self.differing = int(equal), int(not equal)


def _compare(x: Value | None, y: Value | None) -> _Node:
    node = _Node(x, y)
    if x is None or y is None:
        node.report(equal=False)
    elif x.same is not None:
        node.report(equal=x.same == y.same)
    elif x.kind in (Kind.SCALAR, Kind.STRING) or (x.kind is not Kind.STRUCT and (x.content is None or y.content is None)):
        node.report(equal=x.content == y.content)
    elif x.kind is Kind.SLICE:
        for left, right in _align(x.content, y.content):
            node.add("", _compare(left, right))
    elif x.kind is Kind.POINTER:
        node.add("", _compare(x.content, y.content))
    else:
        names = list(x.content) if x.kind is Kind.STRUCT else sorted({*x.content, *y.content})
        for name in names:
            node.add(name, _compare(x.content.get(name), y.content.get(name)))
    return node


_SAME, _CHANGED, _ONLY_X, _ONLY_Y = range(4)


def _align(x: Sequence[Value], y: Sequence[Value]) -> list[tuple[Value | None, Value | None]]:
    """Returns the items of two lists in pairs, as many equal ones together as a greedy search from both ends finds."""
    known: dict[tuple[int, int], _Node] = {}

    def compare_at(i: int, j: int) -> _Node:
        if (i, j) not in known:
            known[i, j] = _compare(x[i], y[j])
        return known[i, j]

    pairs, i, j = list[tuple[Value | None, Value | None]](), 0, 0
    for step in _edits(len(x), len(y), compare_at):
        left, right = step is not _ONLY_Y, step is not _ONLY_X
        pairs.append((x[i] if left else None, y[j] if right else None))
        i, j = i + left, j + right
    return pairs


class _Path:
    """One end of the search: where it is, and the steps to there."""

    def __init__(self, direction: int, x: int, y: int, compare_at: Callable[[int, int], _Node]) -> None:
        self.direction, self.x, self.y, self.steps, self._compare_at = direction, x, y, list[int](), compare_at

    def pair(self, x: int, y: int) -> _Node:
        back = self.direction < 0
        return self._compare_at(x - back, y - back)

    def append(self, step: int) -> None:
        self.steps.append(step)
        self.x += self.direction * (step is not _ONLY_Y)
        self.y += self.direction * (step is not _ONLY_X)

    def connect(self, x: int, y: int) -> None:
        """Goes to a point, by pairs where they are equal or similar."""
        while (left := self.direction * (x - self.x)) > 0 and (up := self.direction * (y - self.y)) > 0:
            node = self.pair(self.x, self.y)
            if not node.differing:
                self.append(_SAME)
            elif node.same + 1 >= node.differing:
                self.append(_CHANGED)
            elif self.direction > 0:
                self.append(_ONLY_X if left >= up else _ONLY_Y)
            else:
                self.append(_ONLY_Y if up >= left else _ONLY_X)
        while self.x != x:
            self.append(_ONLY_X)
        while self.y != y:
            self.append(_ONLY_Y)

    def follow(self, other: _Path) -> None:
        """Goes on while the next items are equal."""
        self.append(_SAME)
        while self.direction * (other.x - self.x) > 0 and self.direction * (other.y - self.y) > 0:
            if self.pair(self.x, self.y).differing:
                return
            self.append(_SAME)


def _edits(count_x: int, count_y: int, compare_at: Callable[[int, int], _Node]) -> list[int]:
    forward, backward = _Path(1, 0, 0, compare_at), _Path(-1, count_x, count_y, compare_at)
    frontiers = {1: [0, 0], -1: [count_x, count_y]}
    budget, path, other = 4 * (count_x + count_y), forward, backward
    while frontiers[1][0] < frontiers[-1][0] and frontiers[1][1] < frontiers[-1][1] and budget:
        sign, (front_x, front_y) = path.direction, frontiers[path.direction]
        stops, number = [False, False], 0
        while not all(stops) and budget > 0:
            offset = sign * (number >> 1 if not number & 1 else ~number >> 1)
            x, y, number = front_x + offset, front_y - offset, number + 1
            if sign * (x - other.x) >= 0 or sign * (y - path.y) < 0:
                stops[0] = True
            elif sign * (y - other.y) >= 0 or sign * (x - path.x) < 0:
                stops[1] = True
            elif not path.pair(x, y).differing:
                path.connect(x, y)
                path.follow(other)
                front_x, front_y, stops = path.x, path.y, [True, True]
            else:
                budget -= 1
        ahead = sign * (other.x - front_x) >= sign * (other.y - front_y)
        frontiers[sign] = [front_x + sign, front_y] if ahead else [front_x, front_y + sign]
        path, other = other, path
    forward.connect(backward.x, backward.y)
    return forward.steps + backward.steps[::-1]


# --- Texts ------------------------------------------------------------------------------------------------------------

_BOTH, _REMOVED, _INSERTED, _IDENTICAL = "", "-", "+", "="
_WIDTH: Final = 80
_NIL, _ELLIPSIS = "nil", "..."


@dataclass(slots=True)
class _Wrap:
    prefix: str
    value: _Text
    suffix: str = ""


@dataclass(slots=True)
class _Record:
    value: _Text
    key: str = ""
    mark: str = ""
    comma: bool = True
    comment: _Stats | None = None


_Text = str | _Wrap | list[_Record]


@dataclass(frozen=True, slots=True)
class _Stats:
    """How many records were left out, or stand together."""

    name: str
    identical: int = 0
    removed: int = 0
    inserted: int = 0
    modified: int = 0

    @property
    def differing(self) -> int:
        return self.removed + self.inserted + self.modified

    def __add__(self, other: _Stats) -> _Stats:
        return _Stats(
            self.name,
            self.identical + other.identical,
            self.removed + other.removed,
            self.inserted + other.inserted,
            self.modified + other.modified,
        )

    def __str__(self) -> str:
        counts = {"identical": self.identical, "removed": self.removed, "inserted": self.inserted, "modified": self.modified}
        parts = [f"{count} {label}" for label, count in counts.items() if count]
        name = self.name
        if sum(counts.values()) > 1:
            name = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
        if len(parts) < 3:
            return f"{' and '.join(parts)} {name}"
        return f"{', '.join(parts[:-1])}, and {parts[-1]} {name}"


def _append_ellipsis(records: list[_Record], stats: _Stats | None = None) -> None:
    if not records or records[-1].value != _ELLIPSIS:
        records.append(_Record(_ELLIPSIS, comma=False, comment=stats))
    elif stats is not None:
        earlier = records[-1].comment
        records[-1].comment = stats if earlier is None else earlier + stats


def _compact(text: _Text, mark: str) -> tuple[str, _Text]:
    """Returns the text on one line, and the text with what may stand on one line as such lines."""
    if isinstance(text, str):
        return text, text
    if isinstance(text, _Wrap):
        line, value = _compact(text.value, mark)
        line = f"{text.prefix}{line}{text.suffix}"
        return line, line if isinstance(value, str) else _Wrap(text.prefix, value, text.suffix)
    records, lines, expands = list[_Record](), list[str](), False
    for record in text:
        line, value = _compact(record.value, mark or record.mark)
        expands |= bool(record.mark) or not isinstance(value, str) or record.comment is not None
        lines.append(f"{record.key}: {line}" if record.key else line)
        records.append(replace(record, value=value))
    line = ", ".join(lines)
    if mark and len(line.encode()) > _WIDTH:
        expands = True
    return line, records if expands else line


def _indent(mark: str, depth: int) -> str:
    return f"{mark or ' '} {chr(9) * depth}"


def _expand(text: _Text, mark: str, depth: int) -> str:
    if isinstance(text, str):
        return text
    if isinstance(text, _Wrap):
        return f"{text.prefix}{_expand(text.value, mark, depth)}{text.suffix}"
    end = f"\n{_indent(mark, depth)}"
    if all(not one.mark and not one.key and isinstance(one.value, str) and one.comment is None for one in text) and text:
        return "".join(f"\n{_indent(mark, depth + 1)}{line}" for line in _batches(text)) + end
    keys = _widths(text, lambda one: bool(one.key) and isinstance(one.value, str), lambda one: len(one.key))
    values = _widths(text, _is_commented, lambda one: len(str(one.value)))
    lines = []
    for number, record in enumerate(text):
        own = mark or record.mark
        line = f"\n{_indent(own, depth + 1)}{f'{record.key}: ' if record.key else ''}{' ' * keys[number]}"
        line += _expand(record.value, own, depth + 1) + ("," if record.comma else "") + " " * values[number]
        lines.append(line + (f" // {record.comment}" if record.comment is not None else ""))
    return "".join(lines) + end


def _is_commented(record: _Record) -> bool:
    return isinstance(record.value, str) and record.value != _ELLIPSIS and record.comment is not None


def _batches(records: Sequence[_Record]) -> list[str]:
    """Returns lines of several values."""
    lines, batch = list[str](), ""
    for record in records:
        value = str(record.value)
        if batch and len(batch) + len(value) + 2 > _WIDTH:
            lines.append(batch.rstrip(" "))
            batch = ""
        batch += f"{value}, "
    return [*lines, batch.rstrip(" ")]


def _widths(records: Sequence[_Record], counts: Callable[[_Record], bool], width: Callable[[_Record], int]) -> list[int]:
    """Returns how many spaces align each record with those beside it that count."""
    spaces, run = [0] * len(records), list[int]()
    for number, record in enumerate([*records, None]):
        if record is not None and counts(record):
            run.append(number)
            continue
        widest = max((width(records[index]) for index in run), default=0)
        for index in run:
            spaces[index] = widest - width(records[index])
        run = []
    return spaces


# --- Formats ----------------------------------------------------------------------------------------------------------


class _Types(Enum):
    """Whether the name of a type is printed."""

    EMIT = auto()
    ELIDE = auto()
    AUTO = auto()


_CONTEXT: Final = 2
_PRESETS: Final = 6


@dataclass(frozen=True, slots=True)
class _Options:
    mode: str = _BOTH
    types: _Types = _Types.EMIT
    verbosity: int | None = None
    plain: bool = False
    """Does not ask the method String."""

    def limit(self, shift: int) -> int | None:
        if self.verbosity is None:
            return None
        level = min(max(self.verbosity, 0), 16)
        return ((1 << level) >> 1) << 2 if shift < 0 else (1 << level) << shift

    def deeper(self) -> _Options:
        return self if self.verbosity is None else replace(self, verbosity=self.verbosity - 1)

    def preset(self, number: int) -> _Options:
        level = max(self.verbosity or 0, 0) + 2 * number
        return replace(self, verbosity=level, plain=self.plain or number > 0)


def _with_type(options: _Options, value: Value, text: _Text) -> _Text:
    if options.types is _Types.ELIDE:
        return text
    is_plain = value.kind not in (Kind.STRUCT, Kind.SLICE, Kind.MAP) or text == _NIL or options.mode == _IDENTICAL
    if options.types is _Types.AUTO and is_plain:
        return text
    name = f"({value.type})" if value.kind is Kind.POINTER else value.type
    braced = isinstance(text, _Wrap) and text.prefix[:1] + text.suffix[-1:] in ("()", "{}")
    return _Wrap(name, text if braced else _Wrap("(", text, ")"))


def _format_value(options: _Options, value: Value | None) -> _Text | None:
    if value is None:
        return None
    if value.printed is not None and not options.plain:
        return _format_string(options, "s", value.printed)
    if value.kind is Kind.POINTER:
        target = _format_value(options, value.content)
        return _with_type(options, value, _NIL) if target is None else _Wrap("&", target)
    return _with_type(options, value, _content(options, value))


def _content(options: _Options, value: Value) -> _Text:
    if value.kind is Kind.SCALAR:
        return str(value.content)
    if value.kind is Kind.STRING:
        return _format_string(options, "", value.content)
    if value.content is None:
        return _NIL
    most, inner = options.limit(-1), options.deeper()
    records = list[_Record]()
    if value.kind is Kind.SLICE:
        members, inner = [("", item) for item in value.content], replace(inner, types=_Types.ELIDE)
    elif value.kind is Kind.STRUCT:
        members = [(name, item) for name, item in value.content.items() if not item.is_zero]
        inner = replace(inner, types=_Types.AUTO)
    else:
        members, inner = (
            [(_key(value, name), value.content[name]) for name in sorted(value.content)],
            replace(inner, types=_Types.ELIDE),
        )
    for name, item in members:
        if len(records) == most:
            _append_ellipsis(records)
            break
        text = _format_value(inner, item)
        assert text is not None
        records.append(_Record(text, name))
    return _Wrap("{", records, "}")


def _key(value: Value, name: str) -> str:
    return f"s{go_quote(name)}" if value.type.endswith(".ResourceList") else go_quote(name)


def _format_string(options: _Options, prefix: str, text: str) -> str:
    most = options.limit(5)
    if most is not None and len(text.encode()) > most + len(_ELLIPSIS):
        return f"{prefix}{_quote(text[:most])}{_ELLIPSIS}"
    return prefix + _quote(text)


def _quote(text: str) -> str:
    quoted = go_quote(text)
    if len(quoted) == len(text) + 2:
        return quoted
    fits = all(character == "\t" or (character.isprintable() and character != "`") for character in text)
    return f"`{text}`" if fits else quoted


def _format(options: _Options, node: _Node) -> _Text | None:
    if options.mode == _IDENTICAL:
        options = replace(options, verbosity=1)
    elif options.verbosity is None or options.verbosity < 3:
        options = replace(options, verbosity=3)
    if not node.depth:
        return _format_leaf(options, node)
    value = node.one
    if value.kind is Kind.POINTER:
        target = _format(options, node.records[0][1])
        assert target is not None
        return _Wrap("&", target)
    return _with_type(options, value, _format_list(options, node, value))


def _format_leaf(options: _Options, node: _Node) -> _Text | None:
    if options.mode == _REMOVED:
        return _format_value(options, node.x)
    if options.mode == _INSERTED:
        return _format_value(options, node.y)
    if not node.differing:
        x, y = _format_value(options, node.x), _format_value(options, node.y)
        assert x is not None and y is not None
        return x if len(_compact(x, "")[0]) < len(_compact(y, "")[0]) else y
    records = _format_both(replace(options, types=_Types.ELIDE), node, _format_leaf)
    return _with_type(replace(options, types=_Types.EMIT), node.one, records)


def _format_both(options: _Options, node: _Node, form: Callable[[_Options, _Node], _Text | None], key: str = "") -> list[_Record]:
    """Returns what was removed and what was inserted; both are printed in more detail while they read the same."""
    removed, inserted = (form(replace(options, mode=mode), node) for mode in (_REMOVED, _INSERTED))
    for number in range(_PRESETS + 1):
        if removed is None or inserted is None or removed != inserted:
            break
        own = options.preset(number)
        removed, inserted = (form(replace(own, mode=mode), node) for mode in (_REMOVED, _INSERTED))
    pairs = ((_REMOVED, removed), (_INSERTED, inserted))
    return [_Record(text, key, mark) for mark, text in pairs if text is not None]


def _format_list(options: _Options, node: _Node, value: Value) -> _Text:
    options = replace(options, types=_Types.AUTO if value.kind is Kind.STRUCT else _Types.ELIDE)
    most, options = options.limit(-1 if options.mode == _IDENTICAL else 1), options.deeper()

    def key(name: str) -> str:
        return _key(value, name) if value.kind is Kind.MAP else name

    if options.mode == _BOTH:
        return _Wrap("{", _format_differences(options, node, value, key, most), "}")
    records = list[_Record]()
    for name, child in node.records:
        if len(records) == most:
            _append_ellipsis(records)
            break
        if value.kind is Kind.STRUCT and _is_left_out(options.mode, child):
            continue
        text = _format(options, child)
        if text is not None:
            records.append(_Record(text, key(name)))
    return _Wrap("{", records, "}")


def _is_left_out(mode: str, child: _Node) -> bool:
    sides = {_REMOVED: (child.x,), _INSERTED: (child.y,)}.get(mode, (child.x, child.y))
    return any(side is not None and side.is_zero for side in sides)


_NAMES: Final[Mapping[Kind, str]] = {Kind.STRUCT: "field", Kind.SLICE: "element", Kind.MAP: "entry"}


def _format_differences(
    options: _Options, node: _Node, value: Value, key: Callable[[str], str], most: int | None
) -> list[_Record]:
    """Formats records in groups of equal and of differing ones; of the equal ones, those that are near a difference."""
    records, rest, differing = list[_Record](), node.records, 0
    groups = _groups(_NAMES[value.kind], rest)
    left_out: _Stats | None = None
    for number, stats in enumerate(groups):
        if most is not None and differing >= most:
            left_out = stats if left_out is None else left_out + stats
            continue
        if not stats.differing:
            equal = stats.identical
            before = min(_CONTEXT, equal) if number else 0
            after = min(_CONTEXT, equal - before) if number < len(groups) - 1 else 0
            after += equal - before - after == 1
            same = replace(options, mode=_IDENTICAL)
            records += [_record(same, key(name), child) for name, child in rest[:before]]
            if equal > before + after:
                _append_ellipsis(records, replace(stats, identical=equal - before - after))
            records += [_record(same, key(name), child) for name, child in rest[equal - after : equal]]
            rest = rest[equal:]
            continue
        for name, child in rest[: stats.differing]:
            if child.children == child.depth:  # one value below differs, or all of it
                records += _format_both(options, child, _format, key(name))
            else:
                records.append(_record(options, key(name), child))
        rest, differing = rest[stats.differing :], differing + stats.differing
    if left_out is not None:
        _append_ellipsis(records, left_out)
    return records


def _record(options: _Options, key: str, child: _Node) -> _Record:
    text = _format(options, child)
    assert text is not None
    return _Record(text, key)


def _groups(name: str, records: Sequence[tuple[str, _Node]]) -> list[_Stats]:
    groups, was_equal = list[_Stats](), None
    for _, child in records:
        equal = not child.differing
        if equal is not was_equal:
            groups.append(_Stats(name))
            was_equal = equal
        kind = "identical" if equal else "removed" if child.y is None else "inserted" if child.x is None else "modified"
        groups[-1] += _Stats(name, **{kind: 1})
    return groups


def diff(x: Value, y: Value) -> str:
    """Returns what differs between two values of one type, in several lines; "" if nothing does."""
    node = _compare(x, y)
    if not node.differing:
        return ""
    text = _format(_Options(), node)
    assert text is not None
    _, text = _compact(text if isinstance(text, _Wrap) else _Wrap("", text), "")
    return f"{_indent('', 0)}{_expand(text, '', 0)}\n"
