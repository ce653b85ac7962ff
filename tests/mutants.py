"""Do the tests notice a small error in a rule? Mutants of the rooms of rules, drawn by chance, and which of them are killed.

    python -m tests.mutants [--seed 1] [--count 300] [--jobs 2]      # by hand: about ten seconds a mutant
    python -m tests.mutants --seed 1 --one 17                        # one mutant, with what killed it
    python -m tests.mutants --seed 1 --count 300 --list              # which mutants they are

A mutant is one change of one expression: a comparison, an operator, a number, a condition, a text. It is loaded in a process of
its own in place of the module; the recordings and unit tests of its room are played until one fails. A mutant that nothing
notices survives: add the story that shows the rule, or delete the code if no request can reach it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

PROJECT = Path(__file__).parents[1]
ROOMS = ("apis", "apiextensions", "apiserver/admission", "apiserver/registry")
#: Room → the recordings and unit tests that concern it; the first row that fits.
TESTS: Sequence[tuple[str, Sequence[str], Sequence[str]]] = (
    ("apis/batch", ("rules/batch", "v1.37/rules/batch", "validation"), ("apis",)),
    ("apis/core/pods", ("rules/pods", "rules/actions", "rules/edits", "corridors", "v1.37/rules/pods", "rules/admission", "rules/gates"), ("apis", "nodes")),
    ("apis/core", ("rules/core", "rules/actions", "rules/dual-stack", "rules/gates", "rules/edits", "corridors", "v1.37/rules/core", "validation"), ("apis",)),
    ("apis/validation", ("rules/pods", "rules/core", "rules/groups", "rules/actions", "rules/gates", "v1.37/rules/groups"), ("apis",)),
    ("apis/rest", ("rules/actions", "rules/groups", "writes", "options", "access"), ("apis", "apiserver/registry")),
    ("apis/certificates", ("rules/groups", "v1.37/rules/groups", "v1.37/rules/newer"), ("apis",)),
    ("apis", ("rules/groups", "v1.37/rules/groups", "v1.37/rules/newer", "rules/gates", "rules/edits", "validation", "identities"), ("apis",)),
    ("apiextensions", ("rules/extensions", "definitions", "custom_resources"), ("apiextensions",)),
    ("apiserver/admission", ("rules/admission", "rules/pods", "rules/groups", "quotas", "policies", "webhooks"), ("apiserver/admission", "apis")),
    ("apiserver/registry", ("writes", "deletion", "options", "patches", "lists", "rules/actions", "corridors", "apply"), ("apiserver/registry",)),
)  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
SECONDS = 240
"""The longest that the tests of one mutant may take; one that hangs is killed."""


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

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.what}"


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
    """The nodes that say nothing of behaviour: docstrings, annotations, `__all__`, words of tables, guards of types."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
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
        elif isinstance(node, ast.keyword) and node.arg in ("maxsize", "slots", "frozen", "eq"):
            parts = [node]
        found.update(id(inner) for part in parts for inner in ast.walk(part))
    return found


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


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        place = str(PROJECT / self._mutant.path)
        return importlib.util.spec_from_file_location(fullname, place, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        code = compile(self._mutant.tree(), str(PROJECT / self._mutant.path), "exec")
        exec(code, module.__dict__)


def drawn(seed: str, count: int) -> list[Mutant]:
    """The mutants of a seed."""
    return random.Random(seed).sample(list(mutants()), count)


def killed_by(mutant: Mutant) -> str:
    """Loads a mutant and plays what concerns it; returns what failed, or ""."""
    sys.meta_path.insert(0, _Finder(mutant))
    importlib.import_module(mutant.module)  # before pytest, whose own finder would come before this one
    _, names, folders = next(row for row in TESTS if mutant.path.startswith(f"fakekube/{row[0]}/"))
    try:
        from tests.differential import scores
        from tests.differential.recordings import RECORDINGS, score_in_process

        table = scores.read()
        for name in names:
            figures = scores.figures(score_in_process(RECORDINGS[name], RECORDINGS[name].read()))
            if figures["identical"] < table[name]["identical"]:
                return name
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    import pytest

    paths = [str(PROJECT / "tests" / "unit" / folder) for folder in folders]
    return "unit tests" if pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *paths]) else ""


def _judged(seed: str, count: int, number: int) -> str:
    """The verdict on one mutant, from a process of its own."""
    command = [sys.executable, "-m", "tests.mutants", "--seed", seed, "--count", str(count), "--one", str(number)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=PROJECT)
    except subprocess.TimeoutExpired:
        return "killed: does not end"
    verdicts = [line for line in done.stdout.splitlines() if line.startswith(("killed: ", "survived"))]
    return verdicts[-1] if verdicts else "killed: does not start"


def main() -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="leaves so many out, to go on where a run was ended")
    parser.add_argument("--one", type=int, default=-1)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    found = drawn(options.seed, options.count)
    if options.list:
        print("\n".join(f"{number} {mutant}" for number, mutant in enumerate(found)))
        return 0
    if options.one >= 0:
        by = killed_by(found[options.one])
        print(f"killed: {by}" if by else "survived", flush=True)
        return 0
    survived = total = 0
    numbers = range(options.first, options.count)
    with ThreadPoolExecutor(options.jobs) as pool:
        for number, verdict in zip(numbers, pool.map(lambda n: _judged(options.seed, options.count, n), numbers), strict=True):
            total += 1
            survived += verdict == "survived"
            print(f"{number} {found[number]}: {verdict} ({total - survived} of {total} killed)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
