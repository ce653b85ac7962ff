"""`awk`: patterns and actions over the fields of lines.

The language of POSIX, except user-defined functions, `getline`, pipes and redirections.

Specified by: POSIX.1-2017, Shell & Utilities (awk).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.regular_expressions import PatternError, compile_posix
from fakekube.nodes.runtime.scheduling import breathe, check_memory

__all__ = ["COMMANDS"]

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n|\#[^\n]*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<text>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<sign>\+\+|--|\+=|-=|\*=|/=|%=|\^=|==|<=|>=|!=|!~|&&|\|\||[-+*/%^!<>|?:~$=,;(){}\[\]\n])"""
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "/": "/", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_NUMBER: Final = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_FORMAT: Final = re.compile(r"%([-+ 0#]*)(\d+|\*)?(?:\.(\d+))?([a-zA-Z%])")
#: After these tokens a slash divides; after all others it begins an expression.
_OPERANDS: Final = frozenset({"number", "text", ")", "]", "$", "incr"})
_KEYWORDS: Final = frozenset(
    {"BEGIN", "END", "if", "else", "while", "for", "do", "in", "print", "printf", "next", "exit", "break", "continue", "delete"}
)
#: The maximum depth of nested expressions and statements.
_MAX_DEPTH: Final = 100

Value = str | float
Token = tuple[str, str]
Evaluate = Callable[["_Run"], Awaitable[Value]]
Execute = Callable[["_Run"], Awaitable[None]]


class _Leave(Exception):
    """Leaves a loop, a line or the program: `break`, `continue`, `next`, `exit`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def _tokens(source: str) -> list[Token]:
    """Splits a program. Raises Usage."""
    found, at = list[Token](), 0
    while at < len(source):
        if source[at] == "/" and (not found or (found[-1][0] not in _OPERANDS and found[-1][0] != "name")):
            end = at + 1
            while end < len(source) and source[end] != "/":
                end += 2 if source[end] == "\\" else 1
            found.append(("regex", source[at + 1 : end].replace("\\/", "/")))
            at = end + 1
            continue
        match = _TOKEN.match(source, at)
        if match is None:
            raise Usage(f"cmd. line:1: Unexpected token near {source[at : at + 10]!r}")
        at, kind = match.end(), match.lastgroup or ""
        if kind == "sign":
            found.append((match[0], match[0]))
        elif kind == "text":
            found.append(("text", re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), match[0][1:-1])))
        elif kind == "name" and match[0] in _KEYWORDS:
            found.append((match[0], match[0]))
        elif kind == "name" and at < len(source) and source[at] == "(":
            found.append(("call", match[0]))
        elif kind != "space":
            found.append((kind, match[0]))
    return [*found, ("end", "")]


def _number(value: Value) -> float:
    if isinstance(value, float):
        return value
    found = _NUMBER.match(value)
    return float(found[0]) if found else 0.0


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else f"{value:.6g}"


class _Field(str):
    """A text from the input, which compares as a number if it looks like one."""

    __slots__ = ()


def _looks_numeric(value: Value) -> bool:
    return isinstance(value, float) or (isinstance(value, _Field) and re.fullmatch(rf"{_NUMBER.pattern}\s*", value) is not None)


def _is_true(value: Value) -> bool:
    return _number(value) != 0 if _looks_numeric(value) else value != ""


@dataclass(slots=True)
class _Run:
    """The variables of a program, and the line that it works on."""

    program: Program
    variables: dict[str, Any] = field(default_factory=dict)
    fields: list[str] = field(default_factory=lambda: [""])
    code: int = 0
    output: list[str] = field(default_factory=list)

    def get(self, name: str) -> Value:
        if name == "NF":
            return float(len(self.fields) - 1)
        found: Value = self.variables.get(name, _Field(""))
        return found

    def array(self, name: str) -> dict[str, Value]:
        found: dict[str, Value] = self.variables.setdefault(name, {})
        if not isinstance(found, dict):
            raise Usage(f"cmd. line:1: {name} is not an array")
        return found

    async def set_line(self, line: str) -> None:
        self.fields = [_Field(line), *[_Field(one) for one in await self.split(line, _text(self.get("FS")))]]

    async def split(self, text: str, separator: str) -> list[str]:
        if separator == " ":
            return text.split()
        if not text:
            return []
        if len(separator) == 1:
            return text.split(separator)
        replaced, _ = await _compiled(separator).replace(text, lambda _: "\0")
        parts: list[str] = replaced.split("\0")
        return parts

    async def set_field(self, number: int, value: str) -> None:
        if number == 0:
            await self.set_line(value)
            return
        check_memory(number * 64)
        self.fields += [_Field("")] * (number + 1 - len(self.fields))
        self.fields[number] = value
        self.fields[0] = _text(self.get("OFS")).join(self.fields[1:])

    async def flush(self) -> None:
        text, self.output = "".join(self.output), []
        await self.program.write(text)


def _compiled(source: str) -> Any:
    try:
        return compile_posix(source, extended=True)
    except PatternError as error:
        raise Usage(f"bad regex '{source}': {error}") from None


class _Parser:
    """Translates a program into functions. Raises Usage."""

    def __init__(self, source: str) -> None:
        self._tokens, self._at, self._depth = _tokens(source), 0, 0

    @property
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _take(self, *kinds: str) -> Token:
        token = self._tokens[self._at]
        if kinds and token[0] not in kinds:
            raise Usage(f"cmd. line:1: Unexpected token {token[1] or 'end of program'!r}")
        self._at += 1
        return token

    def _is(self, *kinds: str) -> bool:
        if self._kind in kinds:
            self._at += 1
            return True
        return False

    def _skip(self, *kinds: str) -> None:
        while self._is(*kinds):
            pass

    # ------------------------------------------------------------ statements

    def rules(self) -> list[tuple[str, Evaluate | None, Execute | None]]:
        """Returns the rules: BEGIN, END or "", the pattern and the action."""
        found = list[tuple[str, Evaluate | None, Execute | None]]()
        self._skip("\n", ";")
        while self._kind != "end":
            kind, pattern = "", None
            if self._kind in ("BEGIN", "END"):
                kind = self._take()[0]
            elif self._kind != "{":
                pattern = self._expression()
                if self._is(","):
                    pattern = self._range(pattern, self._expression())
            found.append((kind, pattern, self._block() if self._kind == "{" else None))
            self._skip("\n", ";")
        return found

    @staticmethod
    def _range(first: Evaluate, last: Evaluate) -> Evaluate:
        state = [False]

        async def evaluate(run: _Run) -> Value:
            if not state[0] and not _is_true(await first(run)):
                return 0.0
            state[0] = not _is_true(await last(run))
            return 1.0

        return evaluate

    def _block(self) -> Execute:
        self._take("{")
        statements = list[Execute]()
        self._skip("\n", ";")
        while not self._is("}"):
            statements.append(self._statement())
            self._skip("\n", ";")

        async def execute(run: _Run) -> None:
            for one in statements:
                await one(run)

        return execute

    def _body(self) -> Execute:
        self._skip("\n")
        return self._statement()

    def _statement(self) -> Execute:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Usage("cmd. line:1: the program is nested too deeply")
        try:
            parse = {
                "{": self._block, "if": self._if, "while": self._while, "do": self._do, "for": self._for, "print": self._print,
                "printf": self._print, "next": self._leave, "exit": self._exit, "break": self._leave,
                "continue": self._leave, "delete": self._delete,
            }.get(self._kind, self._simple)  # fmt: skip
            return parse()
        finally:
            self._depth -= 1

    def _simple(self) -> Execute:
        value = self._expression()

        async def execute(run: _Run) -> None:
            await value(run)

        return execute

    def _condition(self) -> Evaluate:
        self._take("(")
        value = self._expression()
        self._take(")")
        return value

    def _if(self) -> Execute:
        self._take()
        condition, then = self._condition(), self._body()
        place = self._at
        self._skip("\n", ";")
        otherwise = self._body() if self._is("else") else None
        if otherwise is None:
            self._at = place

        async def execute(run: _Run) -> None:
            if _is_true(await condition(run)):
                await then(run)
            elif otherwise is not None:
                await otherwise(run)

        return execute

    def _while(self) -> Execute:
        self._take()
        return self._loop(self._condition(), self._body(), None)

    def _do(self) -> Execute:
        self._take()
        body = self._body()
        self._skip("\n", ";")
        self._take("while")
        again = self._loop(self._condition(), body, None)

        async def execute(run: _Run) -> None:
            if await _goes_on(body, run):
                await again(run)

        return execute

    @staticmethod
    def _loop(condition: Evaluate | None, body: Execute, step: Execute | None) -> Execute:
        async def execute(run: _Run) -> None:
            while condition is None or _is_true(await condition(run)):
                await breathe()
                if not await _goes_on(body, run):
                    return
                if step is not None:
                    await step(run)

        return execute

    def _for(self) -> Execute:
        self._take()
        self._take("(")
        name = self._tokens[self._at]
        if name[0] == "name" and self._tokens[self._at + 1][0] == "in" and self._tokens[self._at + 3][0] == ")":
            self._at += 2
            array = self._take("name")[1]
            self._take(")")
            return self._each(name[1], array, self._body())
        first = None if self._kind == ";" else self._simple()
        self._take(";")
        condition = None if self._kind == ";" else self._expression()
        self._take(";")
        step = None if self._kind == ")" else self._simple()
        self._take(")")
        loop = self._loop(condition, self._body(), step)

        async def execute(run: _Run) -> None:
            if first is not None:
                await first(run)
            await loop(run)

        return execute

    @staticmethod
    def _each(name: str, array: str, body: Execute) -> Execute:
        async def execute(run: _Run) -> None:
            for key in list(run.array(array)):
                run.variables[name] = _Field(key)
                await breathe()
                if not await _goes_on(body, run):
                    return

        return execute

    def _leave(self) -> Execute:
        kind = self._take()[0]

        async def execute(run: _Run) -> None:
            raise _Leave(kind)

        return execute

    def _exit(self) -> Execute:
        self._take()
        code = None if self._kind in ("\n", ";", "}", "end") else self._expression()

        async def execute(run: _Run) -> None:
            if code is not None:
                run.code = int(_number(await code(run))) & 0xFF
            raise _Leave("exit")

        return execute

    def _delete(self) -> Execute:
        self._take()
        name = self._take("name")[1]
        key = self._subscript() if self._is("[") else None

        async def execute(run: _Run) -> None:
            if key is None:
                run.array(name).clear()
            else:
                run.array(name).pop(_text(await key(run)), None)

        return execute

    def _print(self) -> Execute:
        formatted = self._take()[0] == "printf"
        closing = self._kind == "("
        values = list[Evaluate]()
        if self._kind not in ("\n", ";", "}", "end"):
            place = self._at
            if closing and self._ends_statement_after_group():
                self._take("(")
                values = self._list(")")
                self._take(")")
            else:
                self._at = place
                values = self._list("\n")

        async def execute(run: _Run) -> None:
            made = [await one(run) for one in values]
            if formatted:
                run.output.append(_formatted(made))
            else:
                shown = [_text(one) for one in made] or [run.fields[0]]
                run.output.append(_text(run.get("OFS")).join(shown) + _text(run.get("ORS")))
            if len(run.output) > 256:
                await run.flush()

        return execute

    def _ends_statement_after_group(self) -> bool:
        """Whether the group of parentheses that begins here is the whole rest of the statement."""
        depth = 0
        for place in range(self._at, len(self._tokens)):
            kind = self._tokens[place][0]
            depth += (kind == "(") - (kind == ")")
            if depth == 0:
                return self._tokens[place + 1][0] in ("\n", ";", "}", "end")
        return False

    def _list(self, end: str) -> list[Evaluate]:
        found = [] if self._kind == end else [self._expression()]
        while found and self._is(","):
            self._skip("\n")
            found.append(self._expression())
        return found

    # ------------------------------------------------------------ expressions

    def _expression(self) -> Evaluate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Usage("cmd. line:1: the program is nested too deeply")
        try:
            return self._ternary()
        finally:
            self._depth -= 1

    def _ternary(self) -> Evaluate:
        place = self._at
        target = self._target()
        if target is not None and self._kind in _ASSIGNMENTS:
            operator = self._take()[0]
            return _assigned(target, operator, self._expression())
        self._at = place
        condition = self._binary(0)
        if not self._is("?"):
            return condition
        then = self._expression()
        self._take(":")
        otherwise = self._expression()

        async def evaluate(run: _Run) -> Value:
            return await (then if _is_true(await condition(run)) else otherwise)(run)

        return evaluate

    def _binary(self, level: int) -> Evaluate:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            if _LEVELS[level] == ("",):  # two operands beside each other
                if self._kind not in ("number", "text", "name", "call", "$", "(", "-", "!") or self._kind in ("-", "!"):
                    return left
                left = _operation("", left, self._binary(level + 1))
            elif _LEVELS[level] == ("in",) and self._is("in"):
                left = _member(left, self._take("name")[1])
            elif self._kind in _LEVELS[level] and self._kind != "in":
                operator = self._take()[0]
                self._skip("\n") if operator in ("&&", "||") else None
                left = _operation(operator, left, self._binary(level + 1))
            else:
                return left

    def _unary(self) -> Evaluate:
        if self._kind in ("!", "-", "+"):
            operator, value = self._take()[0], self._unary()

            async def evaluate(run: _Run) -> Value:
                found = await value(run)
                if operator == "!":
                    return float(not _is_true(found))
                return -_number(found) if operator == "-" else _number(found)

            return evaluate
        base = self._postfix()
        return _operation("^", base, self._unary()) if self._is("^") else base

    def _postfix(self) -> Evaluate:
        if self._kind in ("++", "--"):
            operator = self._take()[0]
            target = self._target()
            if target is None:
                raise Usage("cmd. line:1: Unexpected token")
            return _stepped(target, 1.0 if operator == "++" else -1.0, before=True)
        place = self._at
        target = self._target()
        if target is not None and self._kind in ("++", "--"):
            return _stepped(target, 1.0 if self._take()[0] == "++" else -1.0, before=False)
        if target is not None:
            return target.get
        self._at = place
        return self._primary()

    def _target(self) -> _Target | None:
        """Parses what can be assigned to; None if there is nothing of the kind here."""
        if self._is("$"):
            if self._kind in ("++", "--"):
                number: Evaluate = self._postfix()
            else:
                inner = self._target() if self._kind in ("name", "$") else None
                number = self._primary() if inner is None else inner.get
            return _field_target(number)
        if self._kind != "name":
            return None
        name = self._take()[1]
        return _element_target(name, self._subscript()) if self._is("[") else _variable_target(name)

    def _subscript(self) -> Evaluate:
        parts = self._list("]")
        self._take("]")

        async def evaluate(run: _Run) -> Value:
            return "\x1c".join([_text(await one(run)) for one in parts])

        return evaluate

    def _primary(self) -> Evaluate:
        kind, text = self._take("number", "text", "regex", "call", "(", "-")
        if kind == "(":
            value = self._expression()
            self._take(")")
            return value
        if kind == "-":
            return _operation("-", _constant(0.0), self._unary())
        if kind == "call":
            return self._call(text)
        if kind == "regex":
            expression = _compiled(text)

            async def matches(run: _Run) -> Value:
                return float(expression.search(run.fields[0]) is not None)

            return matches
        return _constant(float(text) if kind == "number" else text)

    def _call(self, name: str) -> Evaluate:
        self._take("(")
        if name == "split":
            return self._split()
        if name in ("sub", "gsub", "match"):
            return self._substitution(name)
        arguments = self._list(")")
        self._take(")")
        function = _FUNCTIONS.get(name)
        if function is None:
            raise Usage(f"cmd. line:1: Call to undefined function {name}")

        async def evaluate(run: _Run) -> Value:
            given = [await one(run) for one in arguments]
            if name == "length" and not given:
                given = [run.fields[0]]
            try:
                return function(given)
            except (IndexError, ValueError, OverflowError):
                raise Usage(f"cmd. line:1: {name}: invalid arguments") from None

        return evaluate

    def _pattern(self) -> Evaluate:
        if self._kind == "regex":
            return _constant(self._take()[1])
        return self._expression()

    def _split(self) -> Evaluate:
        text = self._expression()
        self._take(",")
        name = self._take("name")[1]
        separator = self._pattern() if self._is(",") else None
        self._take(")")

        async def evaluate(run: _Run) -> Value:
            by = _text(run.get("FS") if separator is None else await separator(run))
            parts = await run.split(_text(await text(run)), by)
            run.variables[name] = {str(number): _Field(one) for number, one in enumerate(parts, 1)}
            return float(len(parts))

        return evaluate

    def _substitution(self, name: str) -> Evaluate:
        first = self._expression() if name == "match" else self._pattern()
        self._take(",")
        second = self._pattern() if name == "match" else self._expression()
        target = self._target() if self._is(",") else _field_target(_constant(0.0))
        self._take(")")
        if target is None:
            raise Usage(f"cmd. line:1: {name}: invalid arguments")

        async def evaluate(run: _Run) -> Value:
            if name == "match":
                text = _text(await first(run))
                found = _compiled(_text(await second(run))).search(text)
                start = text.find(found[0]) + 1 if found is not None else 0
                run.variables |= {"RSTART": float(start), "RLENGTH": float(len(found[0]) if found is not None else -1)}
                return float(start)
            replacement = _text(await second(run))

            def replace(match: Any) -> str:
                return re.sub(r"\\&|&", lambda one: "&" if one[0] == "\\&" else match[0], replacement)

            pattern = _compiled(_text(await first(run)))
            text, count = await pattern.replace(_text(await target.get(run)), replace, count=1 if name == "sub" else None)
            if count:
                await target.set(run, _Field(text))
            return float(count)

        return evaluate


async def _goes_on(body: Execute, run: _Run) -> bool:
    """Runs the body of a loop; returns False after `break`."""
    try:
        await body(run)
    except _Leave as leave:
        if leave.kind not in ("break", "continue"):
            raise
        return leave.kind == "continue"
    return True


@dataclass(slots=True, frozen=True)
class _Target:
    """What can be assigned to."""

    get: Evaluate
    set: Callable[[_Run, Value], Awaitable[None]]


def _variable_target(name: str) -> _Target:
    async def read(run: _Run) -> Value:
        return run.get(name)

    async def write(run: _Run, value: Value) -> None:
        if name == "NF":
            count = int(_number(value))
            check_memory(count * 64)
            run.fields = (run.fields + [_Field("")] * (count + 1 - len(run.fields)))[: count + 1]
            run.fields[0] = _text(run.get("OFS")).join(run.fields[1:])
        else:
            run.variables[name] = value

    return _Target(read, write)


def _element_target(name: str, key: Evaluate) -> _Target:
    async def read(run: _Run) -> Value:
        return run.array(name).setdefault(_text(await key(run)), _Field(""))

    async def write(run: _Run, value: Value) -> None:
        found = run.array(name)
        found[_text(await key(run))] = value
        check_memory(len(found) * 100)

    return _Target(read, write)


def _field_target(number: Evaluate) -> _Target:
    async def read(run: _Run) -> Value:
        index = int(_number(await number(run)))
        return run.fields[index] if 0 <= index < len(run.fields) else _Field("")

    async def write(run: _Run, value: Value) -> None:
        await run.set_field(max(int(_number(await number(run))), 0), _text(value))

    return _Target(read, write)


def _constant(value: Value) -> Evaluate:
    async def evaluate(run: _Run) -> Value:
        return value

    return evaluate


def _assigned(target: _Target, operator: str, value: Evaluate) -> Evaluate:
    async def evaluate(run: _Run) -> Value:
        found = await value(run)
        if operator != "=":
            found = _computed(operator[:-1], await target.get(run), found)
        await target.set(run, found)
        return found

    return evaluate


def _stepped(target: _Target, step: float, *, before: bool) -> Evaluate:
    async def evaluate(run: _Run) -> Value:
        old = _number(await target.get(run))
        await target.set(run, old + step)
        return old + step if before else old

    return evaluate


def _member(key: Evaluate, array: str) -> Evaluate:
    async def evaluate(run: _Run) -> Value:
        return float(_text(await key(run)) in run.array(array))

    return evaluate


def _operation(operator: str, left: Evaluate, right: Evaluate) -> Evaluate:
    async def evaluate(run: _Run) -> Value:
        first = await left(run)
        if operator in ("&&", "||"):
            if _is_true(first) is (operator == "||"):
                return float(operator == "||")
            return float(_is_true(await right(run)))
        if operator in ("~", "!~"):
            found = _compiled(_text(await right(run))).search(_text(first))
            return float((found is not None) is (operator == "~"))
        return _computed(operator, first, await right(run))

    return evaluate


def _computed(operator: str, first: Value, second: Value) -> Value:
    if operator == "":
        text = _text(first) + _text(second)
        check_memory(len(text))
        return text
    if operator in _COMPARISONS:
        numeric = _looks_numeric(first) and _looks_numeric(second)
        pair: tuple[Any, Any] = (_number(first), _number(second)) if numeric else (_text(first), _text(second))
        return float(_COMPARISONS[operator](*pair))
    try:
        return float(_ARITHMETIC[operator](_number(first), _number(second)))
    except (ZeroDivisionError, OverflowError, ValueError):
        raise Usage("cmd. line:1: Division by zero") from None


def _formatted(values: Sequence[Value]) -> str:
    """Formats values as printf does."""
    if not values:
        return ""
    rest = list(values[1:])

    def one(found: re.Match[str]) -> str:
        flags, width, precision, kind = found.groups()
        if kind == "%":
            return "%"
        size = str(int(_number(rest.pop(0) if rest else ""))) if width == "*" else width or ""
        check_memory(int(size or 0) + int(precision or 0))
        value = rest.pop(0) if rest else ""
        shape = f"%{flags}{size}{f'.{precision}' if precision else ''}"
        if kind in "di":
            return f"{shape}d" % int(_number(value))
        if kind in "ouxX":
            return f"{shape}{'d' if kind == 'u' else kind}" % int(_number(value))
        if kind in "eEfFgG":
            return f"{shape}{kind}" % _number(value)
        text = _text(value)
        return f"{shape}s" % ((chr(int(value)) if isinstance(value, float) else text[:1]) if kind == "c" else text)

    return _FORMAT.sub(one, _text(values[0]))


def _substr(given: Sequence[Value]) -> Value:
    text, start = _text(given[0]), round(_number(given[1]))
    end = start + round(_number(given[2])) if len(given) > 2 else len(text) + 1
    return text[max(start, 1) - 1 : max(end - 1, 0)]


_FUNCTIONS: Final[dict[str, Callable[[Sequence[Value]], Value]]] = {
    "length": lambda given: float(len(_text(given[0]))),
    "substr": _substr,
    "index": lambda given: float(_text(given[0]).find(_text(given[1])) + 1),
    "tolower": lambda given: _text(given[0]).lower(),
    "toupper": lambda given: _text(given[0]).upper(),
    "sprintf": _formatted,
    "int": lambda given: float(int(_number(given[0]))),
    "sqrt": lambda given: math.sqrt(_number(given[0])),
    "exp": lambda given: math.exp(_number(given[0])),
    "log": lambda given: math.log(_number(given[0])),
    "sin": lambda given: math.sin(_number(given[0])),
    "cos": lambda given: math.cos(_number(given[0])),
    "atan2": lambda given: math.atan2(_number(given[0]), _number(given[1])),
    "rand": lambda given: random.random(),
    "srand": lambda given: 0.0,
}
_ASSIGNMENTS: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "^="})
#: Operators from the weakest to the strongest; ("",) is concatenation.
_LEVELS: Final[tuple[tuple[str, ...], ...]] = (
    ("||",), ("&&",), ("in",), ("~", "!~"), ("<", "<=", "==", "!=", ">", ">="), ("",), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "%": math.fmod, "^": lambda a, b: a**b,
}  # fmt: skip


async def _awk(program: Program) -> int:
    args, source = list(program.args), None
    run = _Run(program, {"FS": " ", "OFS": " ", "ORS": "\n", "NR": 0.0, "FNR": 0.0, "SUBSEP": "\x1c"})
    run.variables["ENVIRON"] = {name: _Field(value) for name, value in program.env.items()}
    while args and args[0].startswith("-") and args[0] != "-":
        flag = args.pop(0)
        if flag == "--":
            break
        value = flag[2:] or (args.pop(0) if args else "")
        if flag[1] == "F":
            run.variables["FS"] = "\t" if value == "t" else re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), value)
        elif flag[1] == "v":
            name, _, text = value.partition("=")
            run.variables[name] = _Field(text)
        elif flag[1] == "f":
            source = program.read_file(value).decode("utf-8", "surrogateescape")
        else:
            raise Usage(f"unrecognized option: {flag.lstrip('-')[:1]}")
    if source is None:
        if not args:
            raise Usage("usage: awk [OPTIONS] [AWK_PROGRAM] [FILE]...")
        source = args.pop(0)
    rules = _Parser(source).rules()
    try:
        await _run(run, rules, args)
    except _Leave as leave:
        if leave.kind != "exit":
            raise Usage(f"cmd. line:1: {leave.kind} outside of a rule") from None
    try:
        for kind, _, action in rules:
            if kind == "END" and action is not None:
                await action(run)
    except _Leave:
        pass
    await run.flush()
    return run.code or int(program.failed) * 2


async def _run(run: _Run, rules: Sequence[tuple[str, Evaluate | None, Execute | None]], paths: Sequence[str]) -> None:
    for kind, _, action in rules:
        if kind == "BEGIN" and action is not None:
            await action(run)
    if all(kind == "BEGIN" for kind, _, _ in rules):
        return
    async for name, opened in run.program.inputs(paths):
        run.variables |= {"FILENAME": "" if name == "-" else name, "FNR": 0.0}
        async for raw in opened.lines():
            for counter in ("NR", "FNR"):
                run.variables[counter] = _number(run.get(counter)) + 1
            await run.set_line(raw.decode("utf-8", "surrogateescape").removesuffix("\n"))
            try:
                for kind, pattern, action in rules:
                    if not kind and (pattern is None or _is_true(await pattern(run))):
                        if action is None:
                            run.output.append(run.fields[0] + _text(run.get("ORS")))
                        else:
                            await action(run)
            except _Leave as leave:
                if leave.kind != "next":
                    raise
            await run.flush()


COMMANDS: Final[dict[str, Command]] = {"awk": _awk}
