"""Which connectives and bounds do the probes not tell from their mutants? All at once, in one pass over the probes.

    python -m tests.mutants.untold [apis/core]

The rooms are loaded with each `and` and `or` watched for an evaluation whose result differs from that of the other one, each `<`, `<=`,
`>` and `>=` for operands that are equal, and each `+` and `-` for a right side that is not empty. What is listed has met no such
moment, so that no probe can fail of its mutant; what is not listed may survive nevertheless.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.mutants.__main__ import _groups
from tests.mutants.changes import PROJECT, ROOMS, mutants
from tests.mutants.probes import Probe, import_everything, in_fork, probes

Place = tuple[str, int]
"""Path and position, as of a mutant."""

_told: set[Place] = set()
_left: dict[Place, Any] = {}

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _connect(place: Place, is_and: bool, *operands: Callable[[], Any]) -> Any:
    """Evaluates `and` or `or`, and notes whether the other one has another result."""
    once = [functools.cache(operand) for operand in operands]
    result = _first(not is_and, once)
    if place not in _told:
        try:
            differs = bool(_first(is_and, once) != result)
        except Exception:  # what the first operand guards
            differs = True
        if differs:
            _told.add(place)
    return result


def _first(wanted: bool, operands: Iterable[Callable[[], Any]]) -> Any:
    """The value of the first operand that is true (or false), or of the last one."""
    value = None
    for operand in operands:
        value = operand()
        if bool(value) is wanted:
            break
    return value


def _note_left(place: Place, value: Any) -> Any:
    _left[place] = value
    return value


def _note_right(place: Place, value: Any) -> Any:
    if value == _left.get(place):
        _told.add(place)
    return value


def _note_added(place: Place, value: Any) -> Any:
    if value:
        _told.add(place)
    return value


_WATCHES: dict[str, Callable[..., Any]] = {
    "_connect_": _connect, "_note_left_": _note_left, "_note_right_": _note_right, "_note_added_": _note_added,
}  # fmt: skip


class _Watching(ast.NodeTransformer):
    """Calls a watch for each expression that could be a mutant."""

    def __init__(self, path: str, positions: dict[int, int]) -> None:
        self._path, self._positions = path, positions

    def _call(self, watch: str, node: ast.expr, *arguments: ast.expr) -> ast.Call:
        place = ast.Tuple([ast.Constant(self._path), ast.Constant(self._positions[id(node)])], ast.Load())
        return ast.copy_location(ast.Call(ast.Name(watch, ast.Load()), [place, *arguments], []), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):  # whose name would be that of the function
            return node
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return self._call(
            "_connect_", node, ast.Constant(isinstance(node.op, ast.And)), *(ast.Lambda(nothing, value) for value in node.values)
        )

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ops[0], _ORDERS):
            node.left = self._call("_note_left_", node, node.left)
            node.comparators[0] = self._call("_note_right_", node, node.comparators[0])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Sub):
            node.right = self._call("_note_added_", node, node.right)
        return node


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the watched modules of the rooms."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        place = PROJECT / fullname.replace(".", "/")
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if not any(fullname.startswith(f"fakekube.{room.replace('/', '.')}.") for room in ROOMS) or not file.exists():
            return None
        folders = [str(place)] if place.is_dir() else None
        return importlib.util.spec_from_file_location(fullname, file, loader=self, submodule_search_locations=folders)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__file__
        file = Path(module.__file__)
        tree = ast.parse(file.read_text(encoding="utf-8"))
        positions = {id(node): position for position, node in enumerate(ast.walk(tree))}
        kept = list(ast.walk(tree))  # so that no other node gets the id of one that is replaced
        watched = _Watching(str(file.relative_to(PROJECT)), positions).visit(tree)
        exec(compile(ast.fix_missing_locations(watched), file, "exec"), module.__dict__)
        del kept


def _play(group: Iterable[Probe]) -> set[Place]:
    for probe in group:
        probe.play()
    return _told


def main(place: str = "") -> None:
    """The command; see the module."""
    vars(builtins).update(_WATCHES)
    sys.meta_path.insert(0, _Finder())
    import_everything()
    for group in _groups(list(probes())):
        _told.update(in_fork(functools.partial(_play, group), 600) or ())
    for mutant in mutants():
        is_watched = "↔" in mutant.what or "of +" in mutant.what or mutant.what.partition(" ")[0] in ("Lt", "LtE", "Gt", "GtE")
        if mutant.path.startswith(f"fakekube/{place}") and is_watched and (mutant.path, mutant.position) not in _told:
            print(mutant)


if __name__ == "__main__":
    main(*sys.argv[1:])
