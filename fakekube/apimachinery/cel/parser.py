"""Parses an expression into a syntax tree.

A recursive descent parser for the grammar of cel-spec. It expands macros, so `has(…)` and `x.all(…)` are not calls in the
tree. Error messages are those of cel-go's generated parser, as far as a hand-written one can produce them.

Specified by: cel-spec, doc/langdef.md (Syntax); cel-go/parser/gen/CEL.g4, parser.go, macro.go; ext/comprehensions.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NoReturn

from fakekube.apimachinery.cel.errors import CompileError, Issue
from fakekube.apimachinery.cel.interpretable import is_deep, room
from fakekube.apimachinery.cel.syntax import (
    LOGICAL_OPERATORS,
    RESERVED,
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
    Token,
    parts,
    qualified_name,
    tokenize,
)
from fakekube.apimachinery.cel.types import SIGNATURES
from fakekube.base.caches import forgettable
from fakekube.base.golang.strings import readable

# --- Macros with variables, and their expansion to comprehensions ----------------------------------------------------
# Like cel-go, the checker and the cost estimate use the comprehension, so types, messages and costs are those of the fold.
# Nodes that are not in the source have the position of the opening bracket of the macro.
#
# Specified by: cel-spec, doc/langdef.md (Macros); cel-go/parser/macro.go, ext/comprehensions.go, cel/library.go.


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


def expand_macro(loop: Loop) -> Node:
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


def _append(loop: Loop, element: Node) -> Node:
    return _call(loop, "_+_", _accumulator(loop), ListLiteral(loop.position, (element,)))


def _map(loop: Loop) -> Node:
    return _collect(loop, ListLiteral(loop.position, ()), _append(loop, loop.bodies[-1]), _condition(loop))


def _filter(loop: Loop) -> Node:
    return _collect(loop, ListLiteral(loop.position, ()), _append(loop, loop.variables[0]), loop.bodies[0])


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


def _bind_optional(loop: Loop) -> Node:
    """Returns the binding of the content of an optional value to a name."""
    content = Call(loop.position, "value", (), loop.target)
    return _under_name(loop, loop.variables[0].name, content, loop.bodies[0])


def _on_content(loop: Loop, made: Node) -> Node:
    has_value = Call(loop.position, "hasValue", (), loop.target)
    return _call(loop, "_?_:_", has_value, made, _call(loop, "optional.none"))


def _opt_map(loop: Loop) -> Node:
    return _on_content(loop, _call(loop, "optional.of", _bind_optional(loop)))


def _opt_flat_map(loop: Loop) -> Node:
    return _on_content(loop, _bind_optional(loop))


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


_RELATIONS: Final = {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"}
#: operator → (function, precedence).
_CALCULATIONS: Final = {"+": ("_+_", 1), "-": ("_-_", 1), "*": ("_*_", 2), "/": ("_/_", 2), "%": ("_%_", 2)}
_DECLARED: Final = frozenset(name for name, _ in SIGNATURES)
#: Functions whose names have a dot.
_NAMESPACED: Final = frozenset(
    name for name, member in SIGNATURES if "." in name and not member and name != "jsonpatch.escapeKey"
)

#: The tokens that an expression can start with, besides a sign.
_STARTS: Final = frozenset({"literal", "name", "(", "[", "{", "."})
#: The tokens that can follow an operand.
_CONTINUATIONS: Final = frozenset({*_RELATIONS, *_CALCULATIONS, "&&", "||", "?"})
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_LITERALS: Final = frozenset({"true", "false", "null"})
_ENDS: Final = frozenset({*_CONTINUATIONS, ".", "[", ")", "]", "}", ",", ":", "end"})

#: Position in the grammar → the expected tokens in the error message.
_CONSTANTS: Final = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_START: Final = "{'[', '{', '(', '.', '-', '!', " + _CONSTANTS
_EXPECTED: Final = {
    "operand": _START,
    "arguments": "{'[', '{', '(', ')', '.', '-', '!', " + _CONSTANTS,
    "index": "{'[', '{', '(', '.', '-', '!', '?', " + _CONSTANTS,
    "elements": "{'[', ']', '{', '(', '.', ',', '-', '!', '?', " + _CONSTANTS,
    "entries": "{'[', '{', '}', '(', '.', ',', '-', '!', '?', " + _CONSTANTS,
    "fields": "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
}
_MAX_DEPTH: Final = 250
_MAX_LENGTH: Final = 100_000
_TOO_DEEP = f"expression recursion limit exceeded: {_MAX_DEPTH}"
_TOO_LARGE = 1 << 63


@forgettable
@lru_cache(maxsize=1024)
def parse(source: str, *, extensions: frozenset[str] = frozenset(), unknown: frozenset[str] = frozenset()) -> Node:
    """Parses an expression. Raises CompileError.

    `extensions` are the macros that are not available to all expressions; `unknown` are functions and macros that are not
    available.
    """
    source = readable(source)
    issues: list[Issue] = []
    if len(source) > _MAX_LENGTH:
        said = f"expression code point size exceeds limit: size: {len(source)}, limit {_MAX_LENGTH}"
        raise CompileError(source, [Issue(-1, said)])
    parser = _Parser(source, issues, extensions, unknown)
    try:
        with room(is_deep(source)):
            node = parser.parse()
    except _Stop:
        node = None
    if node is not None and not issues and len(source) > _MAX_DEPTH and _is_too_deep(node):
        issues.append(Issue(-1, "max recursion depth exceeded"))
    if issues or node is None:
        raise CompileError(source, issues)
    return node


def _is_too_deep(tree: Node) -> bool:
    """Reports whether operators and selections are nested too deeply."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        depth += isinstance(node, Select | Loop) or (isinstance(node, Call) and _is_deepening(node))
        if depth > _MAX_DEPTH:
            return True
        waiting.extend((part, depth) for part in parts(node))
    return False


def _is_deepening(call: Call) -> bool:
    return (
        call.target is not None or (call.function[0] == "_" and call.function not in LOGICAL_OPERATORS) or call.function == "@in"
    )


class _Stop(Exception):
    """The parser cannot continue."""


class _Parser:
    def __init__(self, source: str, issues: list[Issue], extensions: frozenset[str], unknown: frozenset[str]) -> None:
        self._source, self._issues, self._extensions, self._unknown = source, issues, extensions, unknown
        self._tokens = tokenize(source, issues)
        self._at = 0
        self._depths = {"expression": 0, "relation": 0, "calculation": 0}
        self._place = "operand"
        self._recovering = False
        """Whether the parser is recovering from an error; meanwhile no further one is reported."""

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        self._place, self._recovering = "operand", False
        if token.kind != "end":
            self._at += 1
        return token

    def _take_if(self, kind: str) -> Token | None:
        return self._take() if self._next.kind == kind else None

    @property
    def _second(self) -> Token:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _expect(self, kind: str) -> Token:
        """Consumes a required token. Like the generated parser, skips one extraneous token before it."""
        found = self._next
        if found.kind != kind:
            if found.kind == "end" or self._second.kind != kind:
                inserted = _STARTS | {"-", "!"} if kind == ":" else _CONTINUATIONS | {".", "[", self._outer_closing()}
                missing, wrong = f"missing '{kind}' at '{found.text}'", f"mismatched input '{found.text}' expecting '{kind}'"
                self._fail(missing if found.kind in inserted else wrong)
            self._complain(found.position, f"Syntax error: extraneous input '{found.text}' expecting '{kind}'")
            self._take()
        return self._take()

    def _outer_closing(self) -> str:
        """Returns the closing token of the second innermost open bracket, or "end"."""
        open_brackets = list[str]()
        for token in self._tokens[: self._at]:
            if token.kind in _CLOSING:
                open_brackets.append(_CLOSING[token.kind])
            elif open_brackets and token.kind == open_brackets[-1]:
                open_brackets.pop()
        return open_brackets[-2] if len(open_brackets) > 1 else "end"

    def _close(self, closing: str) -> None:
        """Consumes the end of a list, map or message, with an optional trailing comma."""
        if self._next.kind not in (",", closing):
            told = f"input '{self._next.text}' expecting {{'{closing}', ','}}"
            if self._second.kind not in (",", closing) or self._next.kind == "end":
                self._fail(f"mismatched {told}")
            self._complain(self._next.position, f"Syntax error: extraneous {told}")
            self._take()
        self._take_if(",")
        self._expect(closing)

    def _fail(self, problem: str) -> NoReturn:
        if not self._recovering:
            self._issues.append(Issue(self._next.position, f"Syntax error: {problem}"))
        raise _Stop

    def _complain(self, position: int, problem: str) -> None:
        self._issues.append(Issue(position, problem))

    def parse(self) -> Node:
        node = self._expression()
        if self._next.kind != "end":
            found = "extraneous" if self._second.kind == "end" else "mismatched"
            self._fail(f"{found} input '{self._next.text}' expecting <EOF>")
        return node

    def _enter(self, rule: str) -> None:
        """Counts the recursion depth of a grammar rule. Reports an error and raises _Stop at the limit."""
        self._depths[rule] += 1
        if self._depths[rule] > _MAX_DEPTH:
            self._complain(-1, _TOO_DEEP)
            raise _Stop

    def _expression(self, place: str = "operand") -> Node:
        """Parses an expression; `place` is its position in the grammar, for the error message if it is missing."""
        self._enter("expression")
        self._place = place
        node = self._logic("||", "_||_", self._conjunction)
        question = self._take_if("?")
        if question:
            yes = self._logic("||", "_||_", self._conjunction)
            self._expect(":")
            node = Call(question.position, "_?_:_", (node, yes, self._expression()))
        self._depths["expression"] -= 1
        return node

    def _conjunction(self) -> Node:
        return self._logic("&&", "_&&_", self._relation)

    def _logic(self, operator: str, function: str, term: Callable[[], Node]) -> Node:
        """Parses terms with the same logical operator into a balanced tree."""
        terms, positions = [term()], list[int]()
        while token := self._take_if(operator):
            positions.append(token.position)
            terms.append(term())

        def balance(low: int, high: int) -> Node:
            if low == high:
                return terms[low]
            middle = (low + high - 1 + 1) // 2
            return Call(positions[middle], function, (balance(low, middle), balance(middle + 1, high)))

        return balance(0, len(positions))

    def _relation(self) -> Node:
        self._enter("relation")
        node = self._calculation(1)
        while self._next.kind in _RELATIONS:
            token = self._take()
            self._enter("relation")
            node = Call(token.position, _RELATIONS[token.kind], (node, self._calculation(1)))
            self._depths["relation"] -= 1
        self._depths["relation"] -= 1
        return node

    def _calculation(self, strength: int) -> Node:
        """Parses operators of at least a precedence."""
        self._enter("calculation")
        node = self._unary()
        while (known := _CALCULATIONS.get(self._next.kind)) and known[1] >= strength:
            token = self._take()
            node = Call(token.position, known[0], (node, self._calculation(known[1] + 1)))
        self._depths["calculation"] -= 1
        return node

    def _unary(self) -> Node:
        first = self._next
        if first.kind not in ("!", "-"):
            return self._member(self._primary())
        count = 0
        while self._take_if(first.kind):
            count += 1
        following = self._next
        if following.kind == "end":
            if first.kind == "!":
                self._fail(f"extraneous input '<EOF>' expecting {_START}")
            self._complain(following.position, "Syntax error: no viable alternative at input '-'")
        elif first.kind == "-" and following.kind not in _STARTS:
            said = f"no viable alternative at input '-{following.text}'"
            self._complain(following.position, f"Syntax error: {said}")
        if count == 1 and first.kind == "-" and following.kind == "literal" and type(following.value) in (int, float):
            count -= 1  # the sign is part of the literal
            self._take()
            inner = self._member(Literal(first.position, self._check(following, -following.value)))
        else:
            inner = self._member(self._primary())
        return Call(first.position, "!_" if first.kind == "!" else "-_", (inner,)) if count % 2 else inner

    def _member(self, node: Node) -> Node:
        while True:
            if dot := self._take_if("."):
                node = self._select(node, dot)
                if self._recovering:
                    return node
            elif bracket := self._take_if("["):
                optional = self._take_if("?") is not None
                index = self._expression("operand" if optional else "index")
                self._expect("]")
                node = Call(bracket.position, "_[?_]" if optional else "_[_]", (node, index))
            elif self._next.kind == "{" and (name := qualified_name(node)):
                node = self._message(name)
            else:
                return node

    def _abandon_selection(self) -> None:
        """Recovers from a dot without a name: skips the tokens that cannot be parsed."""
        wrong, before = self._next, self._tokens[self._at - 1]
        found = "" if wrong.kind == "end" else wrong.text
        between = self._source[before.position + len(before.text) : wrong.position] if found else ""
        blank = "".join(character for character in between if character.isspace())
        if found in _LITERALS:
            self._complain(wrong.position, f"Syntax error: mismatched input '{found}' expecting IDENTIFIER")
        else:
            self._complain(wrong.position, f"Syntax error: no viable alternative at input '{before.text}{blank}{found}'")
        while self._next.kind not in _ENDS:
            self._at += 1
        self._recovering = True

    def _select(self, node: Node, dot: Token) -> Node:
        optional = self._take_if("?") is not None
        if escaped := self._take_if("escaped"):
            self._complain(escaped.position, "unsupported syntax: '`'")
            return node
        if self._next.kind != "name":
            self._abandon_selection()
            return node
        name = self._take().text
        opening = None if optional else self._take_if("(")
        if opening is None:
            return Select(dot.position, node, name, optional=optional)
        arguments = self._arguments(")")
        full_name = f"{qualified_name(node)}.{name}"
        known = full_name in self._extensions
        if known and (full_name, len(arguments)) == ("cel.bind", 3):
            return self._loop(opening, BIND, arguments[1], (arguments[0], arguments[2]))
        macro = MACROS.get((name, len(arguments)))
        if macro is not None and name not in self._unknown:
            return self._loop(opening, macro, node, arguments)
        function = full_name.removeprefix(".")
        if known or (function in _NAMESPACED and function not in self._unknown):
            return Call(opening.position, function, arguments)
        return Call(opening.position, name, arguments, node)

    def _loop(self, opening: Token, macro: Macro, target: Node, arguments: tuple[Node, ...]) -> Node:
        """Expands a macro with variables, which must be distinct simple identifiers."""
        variables = list[Identifier]()
        for argument in arguments[: macro.variables]:
            if not isinstance(argument, Identifier):
                self._complain(argument.position, macro.wants_name)
                return target
            if argument.name in (variable.name for variable in variables):
                self._complain(argument.position, f"duplicate variable name: {argument.name}")
                return target
            variables.append(argument)
        overwriting = next((each for each in variables if each.name == "__result__" and macro.accumulates), None)
        if overwriting is not None:
            self._complain(overwriting.position, "iteration variable overwrites accumulator variable")
            return target
        if macro.name == "sortBy" and isinstance(target, Literal | MapLiteral | MessageLiteral):
            said = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
            self._complain(target.position, said)
            return target
        return Loop(opening.position, macro.name, target, tuple(variables), arguments[macro.variables :])

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        arguments = []
        if self._next.kind == "," and self._second.kind == closing:
            self._complain(self._next.position, f"Syntax error: extraneous input ',' expecting {_EXPECTED['arguments']}")
            self._take()
        if not self._take_if(closing):
            arguments.append(self._expression("arguments"))
            while self._take_if(","):
                arguments.append(self._expression())
            self._expect(closing)
        return tuple(arguments)

    def _primary(self) -> Node:
        token = self._next
        match token.kind:
            case "literal":
                self._take()
                return Literal(token.position, self._check(token, token.value))
            case "(":
                self._take()
                node = self._expression()
                self._expect(")")
                return node
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | "name":
                return self._name()
        expected = _EXPECTED[self._place]
        if token.kind != "end" and self._second.kind in _STARTS:  # an extraneous token: skip it
            self._complain(token.position, f"Syntax error: extraneous input '{token.text}' expecting {expected}")
            self._take()
            return self._primary()
        if token.kind not in _CONTINUATIONS:
            self._fail(f"mismatched input '{token.text}' expecting {expected}")
        self._complain(token.position, f"Syntax error: mismatched input '{token.text}' expecting {expected}")
        return Literal(token.position, None)  # continue as if there were an operand

    def _check(self, token: Token, value: object) -> object:
        if type(value) is int and not -_TOO_LARGE <= value < _TOO_LARGE:
            self._complain(token.position, "invalid int literal")
        return value

    def _name(self) -> Node:
        dot = self._take_if(".")
        if dot and self._next.kind != "name":
            self._fail(f"no viable alternative at input '.{'' if self._next.kind == 'end' else self._next.text}'")
        token = self._take()
        name = f".{token.text}" if dot else token.text
        opening = self._take_if("(")
        if token.text in RESERVED:
            self._complain(token.position, f"reserved identifier: {token.text}")
        if opening is None:
            return Identifier(token.position, name)
        arguments = self._arguments(")")
        if name == "has" and len(arguments) == 1 and "has" not in self._unknown:
            return self._has(opening, arguments[0])
        return Call(opening.position, token.text if token.text in _DECLARED else name, arguments)

    def _has(self, opening: Token, argument: Node) -> Node:
        if isinstance(argument, Select):
            return Select(opening.position, argument.operand, argument.field, test=True, optional=argument.optional)
        self._complain(argument.position, "invalid argument to has() macro")
        return argument

    def _has_another(self, closing: str, any_before: bool) -> bool:
        """Reports whether there is another element; consumes the comma before it, but not a trailing one."""
        if not any_before:
            return self._next.kind not in (",", closing)
        if self._next.kind != "," or self._second.kind not in _STARTS | {"-", "!", "?"}:
            return False
        self._take()
        return True

    def _list(self) -> Node:
        opening = self._take()
        elements: list[Node] = []
        optional = set()
        while self._has_another("]", bool(elements)):
            if self._take_if("?"):
                optional.add(len(elements))
            elements.append(self._expression("operand" if elements else "elements"))
        self._close("]")
        return ListLiteral(opening.position, tuple(elements), frozenset(optional))

    def _map(self) -> Node:
        opening = self._take()
        entries: list[tuple[Node, Node]] = []
        optional = set()
        while self._has_another("}", bool(entries)):
            if self._take_if("?"):
                optional.add(len(entries))
            key = self._expression("operand" if entries else "entries")
            self._expect(":")
            entries.append((key, self._expression()))
        self._close("}")
        return MapLiteral(opening.position, tuple(entries), frozenset(optional))

    def _message(self, name: str) -> Node:
        opening = self._take()
        fields: list[tuple[int, str, Node]] = []
        optional = set()
        while self._has_another("}", bool(fields)):
            if self._take_if("?"):
                optional.add(len(fields))
            if self._next.kind != "name":
                self._fail(f"mismatched input '{self._next.text}' expecting {_EXPECTED['fields']}")
            field = self._take().text
            colon = self._expect(":")
            fields.append((colon.position, field, self._expression()))
        self._close("}")
        return MessageLiteral(opening.position, name, tuple(fields), frozenset(optional))
