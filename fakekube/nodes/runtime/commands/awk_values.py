"""The values of `awk`, and what its programs do with them: variables, fields, operators, functions.

Specified by: POSIX.1-2017, Shell & Utilities (awk).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.nodes.runtime.program import Program, Usage
from fakekube.nodes.runtime.regular_expressions import PatternError, compile_posix
from fakekube.nodes.runtime.scheduling import check_memory

_NUMBER: Final = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


_FORMAT: Final = re.compile(r"%([-+ 0#]*)(\d+|\*)?(?:\.(\d+))?([a-zA-Z%])")


Value = str | float


Evaluate = Callable[["Run"], Awaitable[Value]]


Execute = Callable[["Run"], Awaitable[None]]


class Leave(Exception):
    """Leaves a loop, a line or the program: `break`, `continue`, `next`, `exit`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def number_of(value: Value) -> float:
    if isinstance(value, float):
        return value
    found = _NUMBER.match(value)
    return float(found[0]) if found else 0.0


def text_of(value: Value) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else f"{value:.6g}"


class Field(str):
    """A text from the input, which compares as a number if it looks like one."""

    __slots__ = ()


def _looks_numeric(value: Value) -> bool:
    return isinstance(value, float) or (isinstance(value, Field) and re.fullmatch(rf"{_NUMBER.pattern}\s*", value) is not None)


def is_true(value: Value) -> bool:
    return number_of(value) != 0 if _looks_numeric(value) else value != ""


@dataclass(slots=True)
class Run:
    """The variables of a program, and the line that it works on."""

    program: Program
    variables: dict[str, Any] = field(default_factory=dict)
    fields: list[str] = field(default_factory=lambda: [""])
    code: int = 0
    output: list[str] = field(default_factory=list)

    def get(self, name: str) -> Value:
        if name == "NF":
            return float(len(self.fields) - 1)
        found: Value = self.variables.get(name, Field(""))
        return found

    def array(self, name: str) -> dict[str, Value]:
        found: dict[str, Value] = self.variables.setdefault(name, {})
        if not isinstance(found, dict):
            raise Usage(f"cmd. line:1: {name} is not an array")
        return found

    async def set_line(self, line: str) -> None:
        self.fields = [Field(line), *[Field(one) for one in await self.split(line, text_of(self.get("FS")))]]

    async def split(self, text: str, separator: str) -> list[str]:
        if separator == " ":
            return text.split()
        if not text:
            return []
        if len(separator) == 1:
            return text.split(separator)
        replaced, _ = await compile_expression(separator).replace(text, lambda _: "\0")
        parts: list[str] = replaced.split("\0")
        return parts

    async def set_field(self, number: int, value: str) -> None:
        if number == 0:
            await self.set_line(value)
            return
        check_memory(number * 64)
        self.fields += [Field("")] * (number + 1 - len(self.fields))
        self.fields[number] = value
        self.fields[0] = text_of(self.get("OFS")).join(self.fields[1:])

    async def flush(self) -> None:
        text, self.output = "".join(self.output), []
        await self.program.write(text)


def compile_expression(source: str) -> Any:
    try:
        return compile_posix(source, extended=True)
    except PatternError as error:
        raise Usage(f"bad regex '{source}': {error}") from None


async def goes_on(body: Execute, run: Run) -> bool:
    """Runs the body of a loop; returns False after `break`."""
    try:
        await body(run)
    except Leave as leave:
        if leave.kind not in ("break", "continue"):
            raise
        return leave.kind == "continue"
    return True


@dataclass(slots=True, frozen=True)
class Target:
    """What can be assigned to."""

    get: Evaluate
    set: Callable[[Run, Value], Awaitable[None]]


def variable_target(name: str) -> Target:
    async def read(run: Run) -> Value:
        return run.get(name)

    async def write(run: Run, value: Value) -> None:
        if name == "NF":
            count = int(number_of(value))
            check_memory(count * 64)
            run.fields = (run.fields + [Field("")] * (count + 1 - len(run.fields)))[: count + 1]
            run.fields[0] = text_of(run.get("OFS")).join(run.fields[1:])
        else:
            run.variables[name] = value

    return Target(read, write)


def element_target(name: str, key: Evaluate) -> Target:
    async def read(run: Run) -> Value:
        return run.array(name).setdefault(text_of(await key(run)), Field(""))

    async def write(run: Run, value: Value) -> None:
        found = run.array(name)
        found[text_of(await key(run))] = value
        check_memory(len(found) * 100)

    return Target(read, write)


def field_target(number: Evaluate) -> Target:
    async def read(run: Run) -> Value:
        index = int(number_of(await number(run)))
        return run.fields[index] if 0 <= index < len(run.fields) else Field("")

    async def write(run: Run, value: Value) -> None:
        await run.set_field(max(int(number_of(await number(run))), 0), text_of(value))

    return Target(read, write)


def constant(value: Value) -> Evaluate:
    async def evaluate(run: Run) -> Value:
        return value

    return evaluate


def assign(target: Target, operator: str, value: Evaluate) -> Evaluate:
    async def evaluate(run: Run) -> Value:
        found = await value(run)
        if operator != "=":
            found = _compute(operator[:-1], await target.get(run), found)
        await target.set(run, found)
        return found

    return evaluate


def step(target: Target, step: float, *, before: bool) -> Evaluate:
    async def evaluate(run: Run) -> Value:
        old = number_of(await target.get(run))
        await target.set(run, old + step)
        return old + step if before else old

    return evaluate


def member(key: Evaluate, array: str) -> Evaluate:
    async def evaluate(run: Run) -> Value:
        return float(text_of(await key(run)) in run.array(array))

    return evaluate


def operation(operator: str, left: Evaluate, right: Evaluate) -> Evaluate:
    async def evaluate(run: Run) -> Value:
        first = await left(run)
        if operator in ("&&", "||"):
            if is_true(first) is (operator == "||"):
                return float(operator == "||")
            return float(is_true(await right(run)))
        if operator in ("~", "!~"):
            found = compile_expression(text_of(await right(run))).search(text_of(first))
            return float((found is not None) is (operator == "~"))
        return _compute(operator, first, await right(run))

    return evaluate


def _compute(operator: str, first: Value, second: Value) -> Value:
    if operator == "":
        text = text_of(first) + text_of(second)
        check_memory(len(text))
        return text
    if operator in _COMPARISONS:
        numeric = _looks_numeric(first) and _looks_numeric(second)
        pair: tuple[Any, Any] = (number_of(first), number_of(second)) if numeric else (text_of(first), text_of(second))
        return float(_COMPARISONS[operator](*pair))
    try:
        return float(_ARITHMETIC[operator](number_of(first), number_of(second)))
    except (ZeroDivisionError, OverflowError, ValueError):
        raise Usage("cmd. line:1: Division by zero") from None


def format_values(values: Sequence[Value]) -> str:
    """Formats values as printf does."""
    if not values:
        return ""
    rest = list(values[1:])

    def convert(found: re.Match[str]) -> str:
        flags, width, precision, kind = found.groups()
        if kind == "%":
            return "%"
        size = str(int(number_of(rest.pop(0) if rest else ""))) if width == "*" else width or ""
        check_memory(int(size or 0) + int(precision or 0))
        value = rest.pop(0) if rest else ""
        shape = f"%{flags}{size}{f'.{precision}' if precision else ''}"
        if kind in "di":
            return f"{shape}d" % int(number_of(value))
        if kind in "ouxX":
            return f"{shape}{'d' if kind == 'u' else kind}" % int(number_of(value))
        if kind in "eEfFgG":
            return f"{shape}{kind}" % number_of(value)
        text = text_of(value)
        return f"{shape}s" % ((chr(int(value)) if isinstance(value, float) else text[:1]) if kind == "c" else text)

    return _FORMAT.sub(convert, text_of(values[0]))


def _substr(given: Sequence[Value]) -> Value:
    text, start = text_of(given[0]), round(number_of(given[1]))
    end = start + round(number_of(given[2])) if len(given) > 2 else len(text) + 1
    return text[max(start, 1) - 1 : max(end - 1, 0)]


FUNCTIONS: Final[dict[str, Callable[[Sequence[Value]], Value]]] = {
    "length": lambda given: float(len(text_of(given[0]))),
    "substr": _substr,
    "index": lambda given: float(text_of(given[0]).find(text_of(given[1])) + 1),
    "tolower": lambda given: text_of(given[0]).lower(),
    "toupper": lambda given: text_of(given[0]).upper(),
    "sprintf": format_values,
    "int": lambda given: float(int(number_of(given[0]))),
    "sqrt": lambda given: math.sqrt(number_of(given[0])),
    "exp": lambda given: math.exp(number_of(given[0])),
    "log": lambda given: math.log(number_of(given[0])),
    "sin": lambda given: math.sin(number_of(given[0])),
    "cos": lambda given: math.cos(number_of(given[0])),
    "atan2": lambda given: math.atan2(number_of(given[0]), number_of(given[1])),
    "rand": lambda given: random.random(),
    "srand": lambda given: 0.0,
}


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "%": math.fmod, "^": lambda a, b: a**b,
}  # fmt: skip
