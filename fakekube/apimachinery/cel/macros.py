"""Defines the macros with variables, and expands them to comprehensions.

Like cel-go, the checker and the cost estimate use the comprehension, so types, messages and costs are those of the fold.
Nodes that are not in the source have the position of the opening bracket of the macro.

Specified by: cel-spec, doc/langdef.md (Macros); cel-go/parser/macro.go, ext/comprehensions.go, cel/library.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fakekube.apimachinery.cel.syntax import Call, Comprehension, Identifier, ListLiteral, Literal, Loop, MapLiteral, Node

#: The name of the accumulator, which is not a valid identifier.
ACCUMULATOR: Final = "@result"
_UNUSED: Final = "#unused"


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro for the parser."""

    name: str
    """The name in nodes."""
    variables: int = 1
    wants_name: str = "argument must be a simple name"
    accumulates: bool = True
    """Whether the expansion has an accumulator, whose name its variables must not have."""


_NO_IDENTIFIER: Final = "argument is not an identifier"


def _optional(name: str) -> Macro:
    return Macro(name, 1, f"{name}() variable name must be a simple identifier", accumulates=False)


#: (name, number of arguments) → macro.
MACROS: Final = {
    ("all", 2): Macro("all"),
    ("all", 3): Macro("all", 2),
    ("exists", 2): Macro("exists"),
    ("exists", 3): Macro("exists", 2),
    ("exists_one", 2): Macro("existsOne"),
    **{(name, 3): Macro("existsOne", 2) for name in ("exists_one", "existsOne")},
    ("map", 2): Macro("map", 1, _NO_IDENTIFIER),
    ("map", 3): Macro("map", 1, _NO_IDENTIFIER),
    ("filter", 2): Macro("filter", 1, _NO_IDENTIFIER),
    **{("transformList", count): Macro("map", 2) for count in (3, 4)},
    **{("transformMap", count): Macro("transformMap", 2) for count in (3, 4)},
    **{("transformMapEntry", count): Macro("transformMapEntry", 2) for count in (3, 4)},
    ("optMap", 2): _optional("optMap"),
    ("optFlatMap", 2): _optional("optFlatMap"),
    ("sortBy", 2): Macro("sortBy", 1, _NO_IDENTIFIER),
}


#: `cel.bind(name, value, expression)`, if the environment has it; the value is the target.
BIND: Final = Macro("bind", 1, "cel.bind() variable names must be simple identifiers", accumulates=False)


def expanded(loop: Loop) -> Node:
    """Returns the expansion of a macro; it contains the argument nodes themselves."""
    return _EXPANSIONS[loop.macro](loop)


def _accumulator(loop: Loop) -> Node:
    return Identifier(loop.position, ACCUMULATOR)


def _call(loop: Loop, function: str, *arguments: Node) -> Node:
    return Call(loop.position, function, arguments)


def _literal(loop: Loop, value: object) -> Node:
    return Literal(loop.position, value)


def _fold(loop: Loop, initial: Node, condition: Node, step: Node, result: Node) -> Node:
    names = tuple(variable.name for variable in loop.variables)
    return Comprehension(loop.position, loop.target, names, ACCUMULATOR, initial, condition, step, result)


def _all(loop: Loop) -> Node:
    goes_on = _call(loop, "@not_strictly_false", _accumulator(loop))
    step = _call(loop, "_&&_", _accumulator(loop), loop.bodies[0])
    return _fold(loop, _literal(loop, True), goes_on, step, _accumulator(loop))


def _exists(loop: Loop) -> Node:
    goes_on = _call(loop, "@not_strictly_false", _call(loop, "!_", _accumulator(loop)))
    step = _call(loop, "_||_", _accumulator(loop), loop.bodies[0])
    return _fold(loop, _literal(loop, False), goes_on, step, _accumulator(loop))


def _exists_one(loop: Loop) -> Node:
    one_more = _call(loop, "_+_", _accumulator(loop), _literal(loop, 1))
    step = _call(loop, "_?_:_", loop.bodies[0], one_more, _accumulator(loop))
    result = _call(loop, "_==_", _accumulator(loop), _literal(loop, 1))
    return _fold(loop, _literal(loop, 0), _literal(loop, True), step, result)


def _collect(loop: Loop, initial: Node, step: Node, condition: Node | None) -> Node:
    if condition is not None:
        step = _call(loop, "_?_:_", condition, step, _accumulator(loop))
    return _fold(loop, initial, _literal(loop, True), step, _accumulator(loop))


def _condition(loop: Loop) -> Node | None:
    return loop.bodies[0] if len(loop.bodies) > 1 else None


def _appended(loop: Loop, element: Node) -> Node:
    return _call(loop, "_+_", _accumulator(loop), ListLiteral(loop.position, (element,)))


def _map(loop: Loop) -> Node:
    return _collect(loop, ListLiteral(loop.position, ()), _appended(loop, loop.bodies[-1]), _condition(loop))


def _filter(loop: Loop) -> Node:
    return _collect(loop, ListLiteral(loop.position, ()), _appended(loop, loop.variables[0]), loop.bodies[0])


def _transform_map(loop: Loop) -> Node:
    key = Identifier(loop.position, loop.variables[0].name)
    step = _call(loop, "cel.@mapInsert", _accumulator(loop), key, loop.bodies[-1])
    return _collect(loop, MapLiteral(loop.position, ()), step, _condition(loop))


def _transform_map_entry(loop: Loop) -> Node:
    step = _call(loop, "cel.@mapInsert", _accumulator(loop), loop.bodies[-1])
    return _collect(loop, MapLiteral(loop.position, ()), step, _condition(loop))


def _under_name(loop: Loop, name: str, value: Node, result: Node) -> Node:
    return Comprehension(
        loop.position,
        ListLiteral(loop.position, ()),
        (_UNUSED,),
        name,
        value,
        _literal(loop, False),
        Identifier(loop.position, name),
        result,
    )


def _bind(loop: Loop) -> Node:
    return _under_name(loop, loop.variables[0].name, loop.target, loop.bodies[0])


def _bound(loop: Loop) -> Node:
    """Returns the binding of the content of an optional value to a name."""
    content = Call(loop.position, "value", (), loop.target)
    return _under_name(loop, loop.variables[0].name, content, loop.bodies[0])


def _on_content(loop: Loop, made: Node) -> Node:
    has_value = Call(loop.position, "hasValue", (), loop.target)
    return _call(loop, "_?_:_", has_value, made, _call(loop, "optional.none"))


def _opt_map(loop: Loop) -> Node:
    return _on_content(loop, _call(loop, "optional.of", _bound(loop)))


def _opt_flat_map(loop: Loop) -> Node:
    return _on_content(loop, _bound(loop))


#: The variable of `sortBy` for the sorted list.
_SORTED: Final = "@__sortBy_input__"


def _sort_by(loop: Loop) -> Node:
    items = Identifier(loop.position, _SORTED)
    keys = _map(Loop(loop.position, "map", items, loop.variables, loop.bodies))
    by_keys = Call(loop.position, "@sortByAssociatedKeys", (keys,), Identifier(loop.position, _SORTED))
    return _under_name(loop, _SORTED, loop.target, by_keys)


_EXPANSIONS: Final[dict[str, Callable[[Loop], Node]]] = {
    "all": _all,
    "exists": _exists,
    "existsOne": _exists_one,
    "map": _map,
    "filter": _filter,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_map_entry,
    "optMap": _opt_map,
    "optFlatMap": _opt_flat_map,
    "sortBy": _sort_by,
    "bind": _bind,
}
