"""The rooms of the package: what each may import, circles of modules, and that the import of the package is lazy.

Imports for types and imports inside functions count like all others.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fakekube"

#: What each room imports besides itself, from the user's side to the store. docs/architecture.md shows it as a picture.
ROOMS: Mapping[str, frozenset[str]] = {
    room: frozenset(imported.split())
    for room, imported in {
        "__init__": "apiserver base checker cluster cluster_options controllers nodes powers store",
        "__main__": "cli",
        "cli": "apimachinery apiserver base checker cluster controllers net nodes powers",
        "strategies": "apimachinery base checker cluster cluster_options controllers",
        "checker": "apimachinery apiserver base cluster cluster_options controllers page powers",
        "cluster": "apimachinery apiserver base cluster_options controllers net nodes page powers store",
        "page": "",
        "cluster_options": "",
        "powers": "apimachinery apis apiserver base controllers net store",
        "nodes": "apimachinery apis apiserver base controllers net",
        "controllers": "apimachinery apis apiserver base net store",
        "apiserver": "apiextensions apimachinery apis base net store",
        "apiextensions": "apimachinery apis base",
        "apis": "apimachinery base",
        "apimachinery": "base",
        "net": "base",
        "store": "",
        "base": "",
    }.items()
}

#: What the packages of the rooms with several parts import within their room.
PARTS: Mapping[str, frozenset[str]] = {
    part: frozenset(imported.split())
    for part, imported in {
        "apiserver.server": "admission aggregator audit auth controlplane http options registry webhooks",
        "apiserver.extension_server": "admission aggregator auth endpoints http registry webhooks",
        "apiserver.options": "auth registry",
        "apiserver.http": "aggregator audit auth endpoints registry",
        "apiserver.audit": "auth endpoints options webhooks",
        "apiserver.auth": "endpoints webhooks",
        "apiserver.aggregator": "controlplane endpoints options webhooks",
        "apiserver.controlplane": "",
        "apiserver.endpoints": "admission aggregator registry",
        "apiserver.registry": "admission endpoints",
        "apiserver.webhooks": "admission options",
        "apiserver.admission": "options",
        "apiextensions.resource": "conversion definition instances",
        "apiextensions.conversion": "",
        "apiextensions.definition": "instances schema",
        "apiextensions.instances": "schema",
        "apiextensions.schema": "",
        "apimachinery.printers": "codecs data schema",
        "apimachinery.features": "data schema",
        "apimachinery.codecs": "data schema",
        "apimachinery.patch": "errors features schema",
        "apimachinery.cel": "errors features schema selectors",
        "apimachinery.selectors": "errors schema",
        "apimachinery.schema": "data",
        "apimachinery.errors": "data features schema",
        "apimachinery.data": "",
    }.items()
}

#: Circles of modules that remain, each with its reason.
CIRCLES: Mapping[frozenset[str], str] = {
    frozenset({"apis.rest.strategy", "apis.rest.resource", "apis.rest.cluster_access"}): (
        "one definition in three parts, which import each other for types only: a resource has a strategy, whose hooks get the access "
        "to the cluster, which finds resources"
    )
}


def module_of(file: Path) -> str:
    """The name of a module without the package's: `store.bucket`."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def exists(module: str) -> bool:
    path = PACKAGE / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


#: An import of the package's modules: what it imports from, and the names, in parentheses or on the line.
_FROM = re.compile(r"^[ \t]*from fakekube(?:\.([\w.]+))? import (?:\(([^)]*)\)|([^#\n]*))", re.MULTILINE)
_COMMENT = re.compile(r"#.*")


@functools.cache
def imports(file: Path) -> frozenset[str]:
    """The modules of the package that a file imports anywhere, for types and in examples as well. To parse it takes thirty times as long."""
    return frozenset(_imports(file.read_text(encoding="utf-8")))


def _imports(text: str) -> Iterator[str]:
    for module, within, beside in _FROM.findall(text):
        for name in _COMMENT.sub("", within or beside).split(","):
            if imported := name.partition(" as ")[0].strip():
                inner = f"{module}.{imported}".strip(".")
                yield inner if exists(inner) else module


def files(module: str = "") -> list[Path]:
    folder = PACKAGE / module.replace(".", "/")
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def room_of(module: str) -> str:
    return module.partition(".")[0]


def part_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_what_its_row_names(room: str) -> None:
    allowed = {room, "", *ROOMS[room]}
    wrong = [f"{module_of(file)}: {name}" for file in files(room) for name in imports(file) if room_of(name) not in allowed]
    assert not wrong


@pytest.mark.parametrize("part", PARTS)
def test_part_imports_only_what_its_row_names(part: str) -> None:
    room = room_of(part)
    allowed = {part, *(f"{room}.{name}" for name in PARTS[part])}
    wrong = [
        f"{module_of(file)}: {name}"
        for file in files(part)
        for name in imports(file)
        if room_of(name) == room and part_of(name) not in allowed
    ]
    assert not wrong


def test_every_room_has_a_row() -> None:
    entries = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    entries.discard("pytest_plugin")  # a link to conftest_plugin, and a copy of it in the source distribution
    assert entries == set(ROOMS)


@pytest.mark.parametrize("room", sorted({room_of(part) for part in PARTS}))
def test_every_part_has_a_row(room: str) -> None:
    entries = {path.stem for path in (PACKAGE / room).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert entries - {"__init__"} == {part.partition(".")[2] for part in PARTS if room_of(part) == room}


def test_modules_are_imported_by_names_from_packages() -> None:
    """As `imports` reads them."""
    assert [
        str(file) for file in files() if re.search(r"^[ \t]*import fakekube\.", file.read_text(encoding="utf-8"), re.MULTILINE)
    ] == []


def test_every_row_is_used() -> None:
    unused = [
        f"{room}: {name}"
        for room, allowed in ROOMS.items()
        for name in allowed - {room_of(found) for file in files(room) for found in imports(file)}
    ]
    assert not unused


def circles(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The strongly connected components of a graph that have more than one node (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for successor in graph.get(node, ()):
            if successor not in number:
                visit(successor)
                lowest[node] = min(lowest[node], lowest[successor])
            elif successor in stack:
                lowest[node] = min(lowest[node], number[successor])
        if lowest[node] == number[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(frozenset(component))

    for node in graph:
        if node not in number:
            visit(node)
    return found


def test_modules_form_no_circles_but_the_listed_ones() -> None:
    graph: dict[str, set[str]] = {}
    for file in files():
        module = module_of(file)
        # A package's face refers to its modules, which do not depend on it.
        graph[module] = {name for name in imports(file) if name not in ("", module) and not module.startswith(f"{name}.")}
    assert set(circles(graph)) == set(CIRCLES)


def test_package_import_is_lazy() -> None:
    code = "import sys, fakekube; print(sorted(m for m in sys.modules if m.startswith(('fakekube.', 'orjson', 'yaml'))))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def words_of(package: Path) -> set[str]:
    """The names and the words of texts in the code of a package's own modules; docstrings are not code."""
    found: set[str] = set()
    for file in package.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute | ast.arg):
                found.add(node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else node.arg)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                found.update(re.findall(r"\w+", node.value))
    return found


def test_docstrings_of_packages_name_what_there_is() -> None:
    modules = {part for file in files() for part in module_of(file).split(".")}
    missing = []
    for face in PACKAGE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(face.read_text(encoding="utf-8"))) or ""
        names = set(re.findall(r"`([a-z_]+)`", text.partition("Specified by:")[0])) - modules
        if names:
            missing += [f"{face.parent.relative_to(PACKAGE)}: {name}" for name in sorted(names - words_of(face.parent))]
    assert missing == []


def test_every_module_has_a_docstring() -> None:
    undocumented = [
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert not undocumented
