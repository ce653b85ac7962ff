"""Reads the flags of agnhost's subcommands, with Go's syntax: `--port=80`, `--port 80`, `--http`, `-t 5`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from fakekube.nodes.runtime.program import Program, Usage

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TERM: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def flags(
    program: Program, defaults: Mapping[str, str], short: Mapping[str, str] | None = None
) -> tuple[dict[str, str], list[str]]:
    """Returns the flags of a subcommand, by name, and its operands.

    Args:
        program: the program; its first argument is the subcommand.
        defaults: name → default; a flag whose default is `true` or `false` takes a value only after `=`.
        short: letter → name.

    Raises:
        Usage: A flag is unknown.
    """
    found, operands, rest = dict(defaults), list[str](), list(program.args[1:])
    while rest:
        word = rest.pop(0)
        if word == "--":
            return found, operands + rest
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = (short or {}).get(name, name)
        if name == "v":
            rest = rest if equals else rest[1:]
            continue
        if name in ("logtostderr", "alsologtostderr"):
            continue
        if name not in defaults:
            raise Usage(f"unknown flag: --{name}")
        if not equals:
            value = "true" if defaults[name] in ("true", "false") else _next(rest, name)
        found[name] = value
    return found, operands


def _next(rest: list[str], name: str) -> str:
    if not rest:
        raise Usage(f"expected argument for flag --{name}")
    return rest.pop(0)


def is_true(value: str) -> bool:
    """Parses a boolean flag."""
    return value.lower() in ("true", "1", "t")


def duration(text: str) -> float:
    """Parses a duration of Go, in seconds. Raises ValueError."""
    if text in ("", "0"):
        return 0.0
    terms: Sequence[tuple[str, str]] = _TERM.findall(text)
    if "".join(number + unit for number, unit in terms) != text:
        raise ValueError(f'time: invalid duration "{text}"')
    return sum(float(number) * _UNITS[unit] for number, unit in terms)


def log(program: Program, text: str) -> None:
    """Writes a line to the container's log, as Go's package log does."""
    program.host.write_log(f"{text}\n", "stderr")
