"""Expressions of all libraries, errors included: what they come to and what they cost, as the reference server's library
says. Each case of the recording is an expression over one object, with its old self.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fakekube.apimachinery.cel.checker import check
from fakekube.apimachinery.cel.cost.estimate import estimate
from fakekube.apimachinery.cel.declarations import declaration
from fakekube.apimachinery.cel.errors import CompileError, EvaluationError
from fakekube.apimachinery.cel.evaluation import program
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.values import CelType, Duration, Mapping, Optional, Timestamp, UInt, double_text, kind_of
from fakekube.apimachinery.cel.views import reader

_FILE = Path(__file__).parents[4] / "fixtures" / "cel" / "expressions.jsonl"
_SETTING, *_CASES = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]
_DECLARED = declaration(_SETTING["schema"])
_READ = reader(_SETTING["schema"])
_SECOND = 10**9


def shown(value: Any) -> str:
    """A value with its type, as the recording has it."""
    return _SHOWN[kind_of(value)](value) if kind_of(value) in _SHOWN else str(value.type_name)


def _entries(value: Mapping) -> str:
    return ",".join(sorted(f"{shown(key)}:{shown(value.find(key))}" for key in value))


_SHOWN = {
    bool: lambda value: f"bool({str(value).lower()})",
    int: lambda value: f"int({value})",
    UInt: lambda value: f"uint({int(value)})",
    float: lambda value: f"double({double_text(value)})",
    str: lambda value: f"string({json.dumps(value, ensure_ascii=False)})",
    bytes: lambda value: f"bytes({value.hex()})",
    type(None): lambda value: "null",
    Duration: lambda value: f"duration({value.nanoseconds})",
    Timestamp: lambda value: f"timestamp({value.nanoseconds // _SECOND},{value.nanoseconds % _SECOND})",
    Optional: lambda value: f"optional({shown(value.content) if value.present else ''})",
    CelType: lambda value: f"type({value.name})",
    list: lambda value: f"[{','.join(map(shown, value))}]",
    Mapping: lambda value: f"{{{_entries(value)}}}",
}


def outcome(source: str) -> dict[str, Any]:
    """What our library says of an expression."""
    assert _DECLARED is not None
    seen = _DECLARED.type("selfType123")
    try:
        checked = check(source, parse(source), {"self": seen, "oldSelf": seen})
    except CompileError as error:
        return {"compile": str(error)}
    try:
        prepared = program(checked)
    except EvaluationError as error:
        return {"program": str(error)}
    estimated = {"estimate": list(estimate(checked, _DECLARED))}
    value, cost = prepared.evaluate({"self": _READ(_SETTING["object"]), "oldSelf": _READ(_SETTING["old"])})
    if isinstance(value, EvaluationError):
        return {"error": str(value), **estimated}
    return {"value": shown(value), **estimated, "cost": cost}


@pytest.mark.parametrize("first", range(0, len(_CASES), 50))
def test_recorded_expressions_have_equal_values_and_costs(first: int) -> None:
    for case in _CASES[first : first + 50]:
        assert {"expression": case["expression"], **outcome(case["expression"])} == case
