"""Go's text/template, as far as stages use it, with the functions of Go, of sprig that stages use, and of kwok.

Actions: fields, variables, pipelines, parentheses, `if`, `else if`, `else`, `with`, `range` (with variables), `end`, comments,
and trimming of white space. Functions that depend on the cluster are arguments; an unknown one is rejected when the template is
compiled.

Specified by: text/template (doc.go, funcs.go), text/template/parse; github.com/Masterminds/sprig/v3,
sigs.k8s.io/kwok/pkg/utils/gotpl/funcs.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import yaml

from fakekube.nodes.stages import StageError

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


Function = Callable[..., Any]

#: The quantifiers are possessive, so that the time is linear for every template.
_ACTION: Final = re.compile(
    r"\{\{(-\s)?\s*+(/\*.*?\*/|(?:\"(?:[^\"\\]|\\.)*+\"|`[^`]*+`|(?!\s-\}\}|\}\})[^\"`])*+)\s*(\s-)?\}\}", re.DOTALL
).match
_TOKEN: Final = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*"|`[^`]*`)|(-?\d+(?:\.\d+)?)|(\$[A-Za-z_]\w*|\$)|(:=|=|[()|,])|(\.[A-Za-z_]\w*)|(\.)|([A-Za-z_]\w*))'
)


class _Scope:
    """The data and the variables, those of the innermost block last."""

    def __init__(self, dot: Any, functions: Mapping[str, Function], root: Any) -> None:
        self.dot = dot
        self.functions = functions
        self.variables: list[dict[str, Any]] = [{"$": root}]

    def get(self, name: str) -> Any:
        for known in reversed(self.variables):
            if name in known:
                return known[name]
        raise StageError(f"undefined variable {name}")

    def assign(self, name: str, value: Any) -> None:
        for known in reversed(self.variables):
            if name in known:
                known[name] = value
                return
        raise StageError(f"undefined variable {name}")


_Node = Callable[[_Scope, list[str]], None]
_Value = Callable[[_Scope], Any]


class Template:
    """A compiled template."""

    def __init__(self, body: _Node, used: frozenset[str]) -> None:
        self._body = body
        self.functions = used
        """The names of the functions that it calls."""

    def render(self, data: Any, functions: Mapping[str, Function]) -> str:
        """Returns the text for some data. Raises StageError."""
        out: list[str] = []
        self._body(_Scope(data, functions, data), out)
        return "".join(out)


@lru_cache(maxsize=512)
def compile_template(text: str) -> Template:
    """Compiles a template. Raises StageError if it is malformed or uses something unsupported."""
    parser = _Parser(_pieces(text))
    body, end = parser.block(top=True)
    if end:
        raise StageError(f"template: unexpected {{{{{end}}}}}")
    return Template(body, frozenset(parser.used))


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Yields (whether it is an action, text), with white space trimmed as actions require. Raises StageError."""
    place, trim = 0, False
    while (start := text.find("{{", place)) >= 0:
        found = _ACTION(text, start)
        if found is None:
            raise StageError("template: an action, or a string in it, has no end")
        before = text[place:start]
        before = before.lstrip() if trim else before
        yield False, before.rstrip() if found[1] else before
        if not found[2].startswith("/*"):
            yield True, found[2].strip()
        place, trim = found.end(), bool(found[3])
    rest = text[place:]
    yield False, rest.lstrip() if trim else rest


class _Parser:
    """Parses pieces into nodes."""

    def __init__(self, pieces: Iterator[tuple[bool, str]]) -> None:
        self._pieces = pieces
        self.used: set[str] = set()

    def block(self, *, top: bool = False) -> tuple[_Node, str]:
        """Parses nodes up to `end` or `else`. Returns them, and the text of that action."""
        nodes: list[_Node] = []
        for is_action, text in self._pieces:
            if not is_action:
                if text:
                    nodes.append(_text(text))
                continue
            word, _, rest = text.partition(" ")
            if word in ("end", "else"):
                return _sequence(nodes), text
            if word in ("if", "with", "range"):
                nodes.append(self._control(word, rest))
            elif word in ("define", "block", "template", "break", "continue"):
                raise StageError(f"template: {{{{{word}}}}} is not supported")
            else:
                nodes.append(self._action(text))
        if not top:
            raise StageError("template: an {{end}} is missing")
        return _sequence(nodes), ""

    def _control(self, word: str, rest: str) -> _Node:
        names, pipeline = _parse_declaration(rest)
        value = self._pipeline(pipeline)
        body, end = self.block()
        otherwise: _Node = _sequence([])
        if end.startswith("else"):
            after = end.removeprefix("else").strip()
            if after:
                inner, _, more = after.partition(" ")
                if inner not in ("if", "with"):
                    raise StageError(f"template: {{{{{end}}}}} is not supported")
                otherwise = self._control(inner, more)
            else:
                otherwise, _ = self.block()
        return {"if": _if_action, "with": _with_action, "range": _range_action}[word](names, value, body, otherwise)

    def _action(self, text: str) -> _Node:
        names, pipeline = _parse_declaration(text)
        if names:
            return _declare(names[0], self._pipeline(pipeline))
        found = re.match(r"(\$[A-Za-z_]\w*)\s*=\s*(.+)", text, re.S)
        if found:
            return _assign(found[1], self._pipeline(found[2]))
        return _print(self._pipeline(pipeline))

    # --- Pipelines ----------------------------------------------------------------------------------------------------

    def _pipeline(self, text: str) -> _Value:
        tokens: list[str] = []
        spaced: list[bool] = []
        place = 0
        while place < len(text) and text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise StageError(f"template: {text[place:].strip()[:20]!r} is not supported")
            token = next(group for group in found.groups() if group is not None)
            tokens.append(token)
            spaced.append(found.end() - found.start() > len(token) or place == 0)
            place = found.end()
        value, place = self._commands(tokens, spaced, 0)
        if place != len(tokens):
            raise StageError(f"template: unexpected {tokens[place]!r} in {text!r}")
        return value

    def _commands(self, tokens: list[str], spaced: list[bool], place: int) -> tuple[_Value, int]:
        value, place = self._command(tokens, spaced, place, None)
        while place < len(tokens) and tokens[place] == "|":
            value, place = self._command(tokens, spaced, place + 1, value)
        return value, place

    def _command(self, tokens: list[str], spaced: list[bool], place: int, last: _Value | None) -> tuple[_Value, int]:
        if place >= len(tokens):
            raise StageError("template: a command is missing")
        name = tokens[place]
        if name[0].isalpha() and name not in ("true", "false", "nil"):
            self.used.add(name)
            arguments = []
            place += 1
            while place < len(tokens) and tokens[place] not in ("|", ")"):
                argument, place = self._operand(tokens, spaced, place)
                arguments.append(argument)
            return _call(name, [*arguments, *([last] if last is not None else [])]), place
        if last is not None:
            raise StageError(f"template: {name!r} is no function")
        return self._operand(tokens, spaced, place)

    def _operand(self, tokens: list[str], spaced: list[bool], place: int) -> tuple[_Value, int]:
        token = tokens[place]
        place += 1
        value: _Value
        if token == "(":
            value, place = self._commands(tokens, spaced, place)
            if place >= len(tokens) or tokens[place] != ")":
                raise StageError("template: a ) is missing")
            place += 1
        elif token[0] in '"`':
            value = _constant(json.loads(token) if token[0] == '"' else token[1:-1])
        elif token[0] in "-0123456789":
            value = _constant(json.loads(token))
        elif token in ("true", "false", "nil"):
            value = _constant({"true": True, "false": False, "nil": None}[token])
        elif token[0] == "$":
            value = _variable(token)
        elif token == ".":
            value = _dot
        elif token[0] == ".":
            value = _field(_dot, token[1:])
        elif token[0].isalpha():
            self.used.add(token)
            value = _call(token, [])
        else:
            raise StageError(f"template: {token!r} is not supported")
        while place < len(tokens) and tokens[place][0] == "." and len(tokens[place]) > 1 and not spaced[place]:
            value = _field(value, tokens[place][1:])
            place += 1
        return value, place


def _parse_declaration(text: str) -> tuple[list[str], str]:
    found = re.match(r"\s*(\$[A-Za-z_]\w*)\s*(?:,\s*(\$[A-Za-z_]\w*)\s*)?:=\s*(.+)", text, re.S)
    if found is None:
        return [], text
    return [name for name in found.groups()[:2] if name], found[3]


# --- Nodes ------------------------------------------------------------------------------------------------------------


def _text(text: str) -> _Node:
    return lambda scope, out: out.append(text)


def _sequence(nodes: list[_Node]) -> _Node:
    def run(scope: _Scope, out: list[str]) -> None:
        for node in nodes:
            node(scope, out)

    return run


def _declare(name: str, value: _Value) -> _Node:
    def run(scope: _Scope, out: list[str]) -> None:
        scope.variables[-1][name] = value(scope)

    return run


def _assign(name: str, value: _Value) -> _Node:
    return lambda scope, out: scope.assign(name, value(scope))


def _print(value: _Value) -> _Node:
    return lambda scope, out: out.append(sprint(value(scope)))


def _run_inside(scope: _Scope, dot: Any, variables: dict[str, Any], body: _Node, out: list[str]) -> None:
    before, scope.dot = scope.dot, dot
    scope.variables.append(variables)
    body(scope, out)
    scope.variables.pop()
    scope.dot = before


def _if_action(names: list[str], value: _Value, body: _Node, otherwise: _Node) -> _Node:
    def run(scope: _Scope, out: list[str]) -> None:
        found = value(scope)
        _run_inside(scope, scope.dot, {names[0]: found} if names else {}, body if is_true(found) else otherwise, out)

    return run


def _with_action(names: list[str], value: _Value, body: _Node, otherwise: _Node) -> _Node:
    def run(scope: _Scope, out: list[str]) -> None:
        found = value(scope)
        dot = found if is_true(found) else scope.dot
        _run_inside(scope, dot, {names[0]: found} if names else {}, body if is_true(found) else otherwise, out)

    return run


def _range_action(names: list[str], value: _Value, body: _Node, otherwise: _Node) -> _Node:
    def run(scope: _Scope, out: list[str]) -> None:
        found = value(scope)
        items = sorted(found.items()) if isinstance(found, dict) else list(enumerate(found or ()))
        for key, item in items:
            variables = {names[0]: item} if len(names) == 1 else dict(zip(names, (key, item), strict=False))
            _run_inside(scope, item, variables, body, out)
        if not items:
            _run_inside(scope, scope.dot, {}, otherwise, out)

    return run


# --- Values -----------------------------------------------------------------------------------------------------------


def is_true(value: Any) -> bool:
    """Reports whether a value is not the zero value of its type, as `if` decides."""
    return value not in (None, False, 0, "") and not (isinstance(value, list | dict) and not value)


def sprint(value: Any) -> str:
    """Formats a value as fmt.Sprint does."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{sprint(one)}' for key, one in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(sprint, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _constant(value: Any) -> _Value:
    return lambda scope: value


def _dot(scope: _Scope) -> Any:
    return scope.dot


def _variable(name: str) -> _Value:
    return lambda scope: scope.get(name)


def _field(base: _Value, name: str) -> _Value:
    def run(scope: _Scope) -> Any:
        value = base(scope)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise StageError(f"template: can't evaluate field {name} in {sprint(value)!r}")
        return value.get(name)

    return run


def _call(name: str, arguments: list[_Value]) -> _Value:
    def run(scope: _Scope) -> Any:
        if name in {"and", "or"}:
            found: Any = None
            for argument in arguments:
                found = argument(scope)
                if is_true(found) is (name == "or"):
                    break
            return found
        try:
            return scope.functions[name](*(argument(scope) for argument in arguments))
        except (TypeError, KeyError, IndexError, AttributeError) as error:
            raise StageError(f"template: error calling {name}: {error}") from None

    return run


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


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
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
    "lt": _comparison(lambda a, b: a < b),
    "le": _comparison(lambda a, b: a <= b),
    "gt": _comparison(lambda a, b: a > b),
    "ge": _comparison(lambda a, b: a >= b),
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
