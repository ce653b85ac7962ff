"""The functions of templates in stages: those of Go, those of sprig that stages use, and those of kwok.

Specified by: text/template/funcs.go, github.com/Masterminds/sprig/v3, sigs.k8s.io/kwok/pkg/utils/gotpl/funcs.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from fakekube.nodes.stages.errors import StageError
from fakekube.nodes.stages.go_templates import Function, is_true, sprint

__all__ = ["CONTEXT", "PLAIN"]

#: Functions that depend on the cluster; `Template.render` gets them as an argument.
CONTEXT: Final = frozenset(
    {
        "Now",
        "StartTime",
        "Version",
        "NodeIP",
        "NodeName",
        "NodePort",
        "NodeIPWith",
        "NodeIPsWith",
        "PodIP",
        "PodIPWith",
        "PodIPsWith",
        "NodeConditions",
    }
)


def _quote(value: Any) -> str:
    """Returns a JSON string of a text, or of the JSON of another value (Quote of kwok)."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return json.dumps(text, ensure_ascii=False)


def _sprig_quote(*values: Any) -> str:
    return " ".join(json.dumps(sprint(value), ensure_ascii=False) for value in values if value is not None)


def _yaml(value: Any, indent: int = 0) -> str:
    """Returns YAML; with an indent it starts with a new line, and every line is indented by two spaces a step (YAML of kwok)."""
    text: str = yaml.safe_dump(value, default_flow_style=False, sort_keys=True)
    return f"\n{text}".replace("\n", "\n" + "  " * indent) if indent > 0 else text


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if value is None:
            return None
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            raise StageError(f"template: error calling index: {sprint(key)} is out of range")
    return value


def _printf(text: str, *values: Any) -> str:
    parts, place, left = [], 0, list(values)
    while (found := text.find("%", place)) >= 0:
        parts.append(text[place:found])
        verb = text[found + 1 : found + 2]
        if verb == "%":
            parts.append("%")
        elif verb in ("s", "v", "d", "q"):
            value = left.pop(0) if left else "%!" + verb + "(MISSING)"
            parts.append(json.dumps(sprint(value)) if verb == "q" else sprint(value))
        else:
            raise StageError(f"template: printf with %{verb} is not supported")
        place = found + 2
    return "".join((*parts, text[place:]))


def _equal(one: Any, *others: Any) -> bool:
    return any(one == other for other in others)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda one, other: bool(compare(one, other))


def _dict(*pairs: Any) -> dict[str, Any]:
    return {sprint(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _default(fallback: Any, value: Any = None) -> Any:
    return value if is_true(value) else fallback


PLAIN: Final[Mapping[str, Function]] = {
    "and": lambda *values: values,
    "or": lambda *values: values,  # `and` and `or` are evaluated by the template, which stops at the result
    "not": lambda value: not is_true(value),
    "eq": _equal,
    "ne": lambda one, other: one != other,
    "lt": _ordered(lambda a, b: a < b),
    "le": _ordered(lambda a, b: a <= b),
    "gt": _ordered(lambda a, b: a > b),
    "ge": _ordered(lambda a, b: a >= b),
    "len": lambda value: len(value or ()),
    "index": _index,
    "printf": _printf,
    "print": lambda *values: "".join(map(sprint, values)),
    "Quote": _quote,
    "YAML": _yaml,
    "quote": _sprig_quote,
    "squote": lambda value: f"'{sprint(value)}'",
    "default": _default,
    "dict": _dict,
    "list": lambda *values: list(values),
    "empty": lambda value: not is_true(value),
    "coalesce": lambda *values: next((one for one in values if is_true(one)), None),
    "ternary": lambda yes, no, test: yes if is_true(test) else no,
    "hasKey": lambda value, key: key in value,
    "get": lambda value, key: value.get(key, ""),
    "upper": lambda text: text.upper(),
    "lower": lambda text: text.lower(),
    "trim": lambda text: text.strip(),
    "title": lambda text: text.title(),
    "toString": sprint,
    "int": lambda value: int(value or 0),
    "add": lambda *values: sum(map(int, values)),
    "sub": lambda a, b: int(a) - int(b),
    "mul": lambda a, b: int(a) * int(b),
    "join": lambda separator, values: separator.join(map(sprint, values)),
    "split": lambda separator, text: {f"_{number}": part for number, part in enumerate(text.split(separator))},
    "contains": lambda part, text: part in text,
    "hasPrefix": lambda part, text: text.startswith(part),
    "hasSuffix": lambda part, text: text.endswith(part),
    "replace": lambda old, new, text: text.replace(old, new),
    "trimSuffix": lambda part, text: text.removesuffix(part),
    "trimPrefix": lambda part, text: text.removeprefix(part),
    "toJson": lambda value: json.dumps(value, separators=(",", ":")),
}
