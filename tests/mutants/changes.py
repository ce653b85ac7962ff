"""Mutants: small errors of the rooms of rules, and how a module is loaded with one.

A mutant is one change of one expression: a comparison, an operator, a number, a condition, a text.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

PROJECT = Path(__file__).parents[2]
ROOMS = ("apis", "apiextensions", "apiserver/admission", "apiserver/registry")
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One change: the node of a module, in the order in which `ast.walk` meets it."""

    path: str
    position: int
    line: int
    what: str

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def tree(self) -> ast.Module:
        """The changed module."""
        tree = ast.parse((PROJECT / self.path).read_text(encoding="utf-8"))
        for position, node in enumerate(ast.walk(tree)):
            if position == self.position:
                _change(node)
        return ast.fix_missing_locations(tree)

    def code(self) -> CodeType:
        """The changed module, compiled."""
        return compile(self.tree(), str(PROJECT / self.path), "exec")

    def place(self) -> Place:
        """Where the change is."""
        tree = ast.parse((PROJECT / self.path).read_text(encoding="utf-8"))
        node = next(node for position, node in enumerate(ast.walk(tree)) if position == self.position)
        return _place(tree, node)

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.what}"


@dataclass(frozen=True, slots=True)
class Place:
    """The lines of the statement of a change, of a compound one those of its head."""

    lines: range
    in_function: bool
    """Whether it is in the body of a function, but in no default, decorator or class of it."""


def _place(tree: ast.Module, changed: ast.AST) -> Place:
    """Where a node of a module is."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    steps = [changed]
    while steps[-1] is not tree:
        steps.append(parents[steps[-1]])
    lines, in_function = range(0), False
    for node, child in itertools.pairwise(reversed(steps)):
        if isinstance(node, ast.FunctionDef) and any(child is part for part in node.body):
            in_function = True
        if isinstance(child, ast.stmt) or not isinstance(node, ast.expr):  # the smallest statement, or part of one
            lines = range(getattr(child, "lineno", lines.start), (getattr(child, "end_lineno", lines.stop) or 0) + 1)
    return Place(lines, in_function)


def mutants() -> Iterator[Mutant]:
    """Yields all mutants, module by module."""
    for room in ROOMS:
        for path in sorted((PROJECT / "fakekube" / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            skipped = _not_run(tree)
            for position, node in enumerate(ast.walk(tree)):
                what = "" if id(node) in skipped else _described(node)
                if what:
                    yield Mutant(str(path.relative_to(PROJECT)), position, getattr(node, "lineno", 0), what)


def _not_run(tree: ast.Module) -> set[int]:
    """The nodes that say nothing of behaviour: docstrings, annotations, assertions, `__all__`, words of tables, guards of types."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            parts = [node]
        elif isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            parts = [node.returns]
        elif (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        ) or (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            parts = [node]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("rules", "changes", "lru_cache"):
            parts = [part for part in node.args if isinstance(part, ast.Constant)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("by_minor", "by_declaration"):
            parts = [
                part for inner in ast.walk(node) if isinstance(inner, ast.Tuple) for part in inner.elts[1:2] if _is_zero(part)
            ]
        elif isinstance(node, ast.keyword) and node.arg in ("maxsize", "slots", "frozen", "eq"):
            parts = [node]
        found.update(id(inner) for part in parts for inner in ast.walk(part))
    return found


def _is_zero(node: ast.expr) -> bool:
    """Reports whether this is the number of no minor: that a rule holds since 0 or since 1 is the same."""
    return isinstance(node, ast.Constant) and node.value == 0


def _described(node: ast.AST) -> str:
    """What would be changed of a node; "" for nodes that stay."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        return f"{type(node.ops[0]).__name__} → {COMPARISONS[type(node.ops[0])].__name__}"
    if isinstance(node, ast.BoolOp):
        return "and ↔ or"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return "not left out"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return "+ ↔ -" if isinstance(node.op, ast.Sub) else "right of + left out"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return f"{node.value} → {node.value + 1}"
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return f"{node.value} → {not node.value}"
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip() and len(node.value) >= 14:
        return f"{node.value[:40]!r} changed"
    return ""


def _change(node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub):
            node.op = ast.Add()
        else:  # `x + y` becomes `x + y[:0]` for lists and texts, `x` for numbers
            empty = ast.Call(ast.Name("type", ast.Load()), [node.right], [])
            node.right = ast.Call(empty, [], [])
    elif isinstance(node, ast.Constant):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}~"


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        place = str(PROJECT / self._mutant.path)
        return importlib.util.spec_from_file_location(fullname, place, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._mutant.code(), module.__dict__)


def drawn(seed: str, count: int) -> list[Mutant]:
    """The mutants of a seed."""
    return random.Random(seed).sample(list(mutants()), count)
