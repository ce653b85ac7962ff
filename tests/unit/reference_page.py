"""Makes docs/reference.md from the docstrings of the public names of fakekube: `python tests/unit/reference_page.py --write`.

A name is public if it is in `fakekube.__all__`; of a class its methods, properties and attributes without an underscore, those of
base classes included.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fakekube

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"

_HEAD = """\
# Reference

The public names of the package `fakekube`, from their docstrings: everything else is private and may change. The pytest plugin's
fixtures are at the end. This page is made by `python tests/unit/reference_page.py --write`, and a test compares it with the code.
"""
_SECTION = re.compile(r"^(Args|Raises|Returns|Yields):$")
_QUOTED = re.compile(r"(?<=: )'([^'\n]*)'|(?<=-> )'([^'\n]*)'")
"""An annotation, which `inspect` shows as the string that it is."""
_NOTED = re.compile(r'^    (?P<name>[a-z]\w*): [^\n]+\n    """(?P<text>[^"]+)"""', re.MULTILINE)


def render() -> str:
    """Returns the page."""
    parts = [_HEAD]
    for name in sorted(fakekube.__all__, key=str.lower):
        if not name.startswith("__"):
            parts += _describe(name, getattr(fakekube, name))
    parts.append("## Fixtures of the pytest plugin\n")
    parts += _fixtures()
    return "\n".join(parts).rstrip() + "\n"


def _describe(name: str, value: Any) -> Iterator[str]:
    yield f"## {name}\n"
    if typing.is_typeddict(value):
        yield from _text(inspect.getdoc(value))
        yield "| option | type |\n|---|---|"
        for option, type_ in value.__annotations__.items():
            yield f"| `{option}` | `{_type_text(type_)}` |"
        yield ""
    elif inspect.isclass(value):
        yield from _class(name, value)
    elif inspect.isfunction(value):
        yield f"```text\n{name}{_signature(value)}\n```\n"
        yield from _text(inspect.getdoc(value))
    else:
        yield f"The type `{_type_text(value)}`.\n"


def _class(name: str, value: type) -> Iterator[str]:
    constructor = value.__dict__.get("__init__")
    if constructor is not None and not issubclass(value, BaseException) and not dataclasses.is_dataclass(value):
        yield f"```text\n{name}{_signature(constructor)}\n```\n"
    yield from _text(value.__dict__.get("__doc__"))
    if constructor is not None and constructor.__doc__ and not dataclasses.is_dataclass(value):
        yield from _text(inspect.cleandoc(constructor.__doc__))
    rows, methods = [], []
    for member, found in sorted(_members(value).items()):
        if isinstance(found, property):
            rows.append((member, inspect.getdoc(found) or ""))
        elif isinstance(found, (staticmethod, classmethod)) or inspect.isfunction(found):
            methods.append((member, getattr(found, "__func__", found)))
    rows += sorted(_noted_attributes(value).items())
    if rows:
        yield "| attribute | |\n|---|---|"
        for member, text in sorted(rows):
            yield f"| `{member}` | {_one_line(text)} |"
        yield ""
    for member, function in methods:
        yield f"### {name}.{member}\n"
        yield f"```text\n{member}{_signature(function)}\n```\n"
        yield from _text(inspect.getdoc(function))


def _members(value: type) -> dict[str, Any]:
    """Returns the public members of a class and of its base classes in this package."""
    found: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("fakekube"):
            found |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    return found


def _noted_attributes(value: type) -> dict[str, str]:
    """Returns the annotated attributes with the strings below them."""
    found: dict[str, str] = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("fakekube"):
            found |= {match["name"]: match["text"] for match in _NOTED.finditer(inspect.getsource(base))}
    return found


def _signature(function: Callable[..., Any]) -> str:
    """Returns the parameters and the type of the result, one parameter a line if they are long."""
    signature = inspect.signature(function)
    parameters = [one for name, one in signature.parameters.items() if name not in ("self", "cls")]
    text = _QUOTED.sub(lambda match: match[1] or match[2] or "", str(signature.replace(parameters=parameters)))
    if len(text) <= 100:
        return text
    inner, _, result = text.rpartition(") -> ")
    return "(\n    " + ",\n    ".join(_split(inner.removeprefix("("))) + f",\n) -> {result}"


def _split(text: str) -> list[str]:
    """Splits parameters at the commas outside of brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for place, character in enumerate(text):
        quoted ^= character == "'"
        depth += (character in "[({") - (character in "])}")
        if character == "," and not depth and not quoted:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _text(docstring: str | None) -> Iterator[str]:
    """Formats a docstring: sections become lists, other indented lines stay."""
    listing = False
    for line in inspect.cleandoc(docstring or "").splitlines():
        if section := _SECTION.match(line):
            listing = True
            yield f"\n*{section[1]}*\n"
        elif listing and (entry := re.match(r"    (\*{0,2}\w[\w, ]*): (.*)", line)):
            yield f"* `{entry[1]}`: {entry[2]}"
        elif listing and line.startswith("    "):
            yield f"  {line.strip()}"
        else:
            listing = listing and not line
            yield line
    yield ""


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _type_text(type_: Any) -> str:
    text = getattr(type_, "__forward_arg__", None) or (type_ if isinstance(type_, str) else None)
    return str(text or getattr(type_, "__name__", None) or type_).replace("|", "\\|")


def _fixtures() -> Iterator[str]:
    from fakekube import pytest_plugin

    yield "| fixture | |\n|---|---|"
    for name in pytest_plugin.__all__:
        found = getattr(pytest_plugin, name)
        function = getattr(found, "__wrapped__", None) or getattr(found, "_fixture_function", None)
        if name.startswith("fakekube") and function is not None:
            yield f"| `{name}` | {_one_line(function.__doc__ or '')} |"
    yield ""


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(render(), encoding="utf-8")
    else:
        print(render(), end="")
