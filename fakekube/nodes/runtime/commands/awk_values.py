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


#: The texts and the characters of output that are kept until they are written.
_MAX_BUFFERED: Final = 256
_MAX_OUTPUT: Final = 64 * 1024
#: The bytes of an element of an array beside its key and value.
_ELEMENT: Final = 100


class Field(str):
    """A text from the input, which compares as a number if it looks like one."""

    __slots__ = ()


def _looks_numeric(value: Value) -> bool:
    return isinstance(value, float) or (isinstance(value, Field) and re.fullmatch(rf"{_NUMBER.pattern}\s*", value) is not None)


def _size_of(key: str, value: Value) -> int:
    return _ELEMENT + len(key) + (len(value) if isinstance(value, str) else 0)


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
    elements_size: int = 0
    """The bytes of the elements of all arrays."""
    output_size: int = 0
    """The characters of the output that waits."""

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

    def set_element(self, name: str, key: str, value: Value) -> None:
        array = self.array(name)
        self.elements_size += _size_of(key, value) - (_size_of(key, array[key]) if key in array else 0)
        check_memory(self.elements_size)
        array[key] = value

    def delete_element(self, name: str, key: str) -> None:
        array = self.array(name)
        if key in array:
            self.elements_size -= _size_of(key, array.pop(key))

    def delete_elements(self, name: str) -> None:
        array = self.array(name)
        self.elements_size -= sum(_size_of(key, value) for key, value in array.items())
        array.clear()

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

    async def print(self, text: str) -> None:
        """Writes a text; short ones are buffered."""
        self.output.append(text)
        self.output_size += len(text)
        if len(self.output) > _MAX_BUFFERED or self.output_size > _MAX_OUTPUT:
            await self.flush()

    async def flush(self) -> None:
        text, self.output, self.output_size = "".join(self.output), [], 0
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
        array, found = run.array(name), text_of(await key(run))
        if found not in array:
            run.set_element(name, found, Field(""))
        return array[found]

    async def write(run: Run, value: Value) -> None:
        run.set_element(name, text_of(await key(run)), value)

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
