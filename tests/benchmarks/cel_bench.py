"""Figures of expressions alone: `python tests/benchmarks/cel_bench.py`.

What it costs to judge the rules of a definition (syntax, types, the estimate of costs), to make them ready to run, and
to hold them against an object of 60 fields (microseconds, the best of several rounds).
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

from fakekube.apimachinery.cel import compile_rules
from fakekube.apimachinery.cel.compilation import judge
from fakekube.apimachinery.cel.declarations import declaration
from fakekube.apimachinery.cel.parser import parse

ROUNDS = 5
STRING = {"type": "string", "maxLength": 63}
PORT = {"type": "object", "properties": {"name": STRING, "port": {"type": "integer"}}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{f"field{number}": STRING for number in range(56)},
        **{name: {"type": "integer"} for name in ("replicas", "minReplicas", "maxReplicas")},
        "ports": {"type": "array", "maxItems": 20, "items": PORT},
    },
}
RULES = [
    {"rule": "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas"},
    {"rule": "!has(self.ports) || self.ports.all(p, p.port > 0 && p.port < 65536)"},
    {"rule": "self.field1 != self.field2"},
    {"rule": "has(self.field3) == has(self.field4)"},
    {"rule": "self.field5.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"},
]
OBJECT: dict[str, Any] = {
    **{f"field{number}": f"value{number}" for number in range(56)},
    "minReplicas": 1,
    "replicas": 3,
    "maxReplicas": 5,
    "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
}


def cost(operation: Callable[[], object], times: int = 50) -> float:
    """Microseconds that one call takes."""
    return min(timeit.repeat(operation, number=times, repeat=ROUNDS)) / times * 1e6


def judged() -> None:
    parse.cache_clear()
    declared = declaration(SCHEMA)
    assert declared is not None
    for rule in RULES:
        judge(rule, declared)


def main() -> None:
    rules = compile_rules({**SCHEMA, "x-kubernetes-validations": RULES}, root=False)
    assert rules is not None
    changed = {**OBJECT, "replicas": 4}
    figures: dict[str, Callable[[], object]] = {
        "judge five rules": judged,
        "make five rules ready": lambda: compile_rules({**SCHEMA, "x-kubernetes-validations": RULES}, root=False),
        "five rules, a new object": lambda: rules.validate(OBJECT),
        "five rules, a changed object": lambda: rules.validate(changed, OBJECT),
    }
    for name, operation in figures.items():
        print(f"{name:32}{cost(operation):10.1f} µs")


if __name__ == "__main__":
    main()
