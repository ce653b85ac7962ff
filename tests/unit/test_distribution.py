"""What is distributed: the version, the licence files, and the dependencies that pyproject.toml and docs/dependencies.md name."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import fakekube

ROOT = Path(__file__).parents[2]
#: A link to conftest_plugin, and a copy of it in the source distribution.
PLUGIN = ROOT / "fakekube" / "pytest_plugin"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")
DEPENDENCIES = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")

#: The import names of the packages whose import name differs from the package's.
IMPORT_NAMES = {
    "PyYAML": "yaml",
    "axe-playwright-python": "axe_playwright_python",
    "google-re2": "re2",
    "json-merge-patch": "json_merge_patch",
    "kubernetes-validate": "kubernetes_validate",
    "protobuf": "google",
    "pykube-ng": "pykube",
    "pytest-asyncio": "pytest_asyncio",
    "pytest-xdist": "xdist",
}

#: Packages of the extra `test` that tests use without an import: commands, stubs and plugins.
NOT_IMPORTED = {"mypy", "pytest-asyncio", "pytest-xdist", "ruff", "types-PyYAML", "types-protobuf"}


def _names(requirements: list[str]) -> set[str]:
    """Returns the names of packages, without versions."""
    return {re.split(r"[^A-Za-z0-9_.-]", requirement)[0] for requirement in requirements}


def _rows(heading: str) -> Iterator[list[str]]:
    """Yields the cells of the table whose first column has this heading."""
    table = DEPENDENCIES.partition(f"| {heading} |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def _called(call: ast.Call) -> str:
    """Returns the last part of the name of the function that is called; "" if it has no name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


@functools.cache
def _neighbours(folder: Path) -> set[str]:
    """Returns the names of what is in a folder: scripts import their neighbours."""
    return {file.stem for file in folder.iterdir()}


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields the statements of a body, the inner ones as well; a tenth of all nodes."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(node, name, ()))


#: The first module that a line imports, and what stands for other modules.
_MENTIONS = re.compile(r"^\s*(?:from|import)\s+(\w+)|^\s*import\s.*(,)|(importorskip|find_spec)", re.MULTILINE)


@functools.cache
def _imports(folder: str) -> Mapping[str, set[str]]:
    """Returns the modules of each package that is not of the standard library, and the subfolders of the files that import it.

    A file is parsed only if its lines mention a package that is not known to be imported in its subfolder.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / folder).rglob("*.py"):
        if path.is_relative_to(PLUGIN):
            continue
        place = path.relative_to(ROOT / folder).parts[0]
        text = path.read_text(encoding="utf-8")
        known = sys.stdlib_module_names | _neighbours(path.parent) | {"_typeshed", "fakekube", "conftest_plugin", "tests"}
        mentioned = {"".join(match.groups("")) for match in _MENTIONS.finditer(text)}
        if all(name in known or place in found.get(name, ()) for name in mentioned):
            continue
        for name in set(_imported_names(text)) - known:
            found[name].add(place)
    return found


def _imported_names(text: str) -> Iterator[str]:
    """Yields the first parts of the names of the modules that a file imports or looks for."""
    calls = "importorskip" in text or "find_spec" in text
    for node in ast.walk(ast.parse(text)) if calls else _statements(ast.parse(text).body):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        if isinstance(node, ast.Call) and _called(node) in ("importorskip", "find_spec"):
            names = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        yield from (name.partition(".")[0] for name in names)


def _import_name(package: str) -> str:
    return IMPORT_NAMES.get(package, package)


def test_installed_version_is_that_of_the_package() -> None:
    assert importlib.metadata.version("fakekube") == fakekube.__version__


def test_version_has_one_place() -> None:
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]


def test_changelog_begins_with_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[?([0-9.]+)", changelog, re.M)[0] == fakekube.__version__


def test_licence_files_are_there() -> None:
    assert PROJECT["license"] == "Apache-2.0 AND BSD-3-Clause AND MIT"  # the latter of the page's libraries
    assert PROJECT["license-files"] == ["LICENSE", "NOTICE", "fakekube/page/vendor/LICENSES.txt"]
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_notice_says_what_every_data_file_was_made_from() -> None:
    data = ROOT / "fakekube" / "apimachinery" / "data"
    patterns = re.findall(r"^  (\S*v1_\*\S*) ", NOTICE, re.M)
    named = {path for pattern in patterns for path in data.glob(pattern)}
    assert patterns
    assert all(list(data.glob(pattern)) for pattern in patterns)
    files = {path for path in (ROOT / "fakekube").rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}
    page = {path for path in files if path.is_relative_to(ROOT / "fakekube" / "page")}  # its manifest names what is of others
    scenarios = set((ROOT / "fakekube" / "cluster" / "scenarios" / "library").glob("*.yaml"))  # written for this project
    assert files - named - page - scenarios == {ROOT / "fakekube" / "py.typed"}


def test_dependencies_are_those_that_are_imported() -> None:
    imported = dict(_imports("fakekube"))
    optional = {
        _import_name(name)
        for extra in ("clients", "descriptions", "snapshots", "strategies")
        for name in _names(PROJECT["optional-dependencies"][extra])
    }
    assert {_import_name(name) for name in _names(PROJECT["dependencies"])} == imported.keys() - optional
    assert _imports("conftest_plugin").keys() - {"pytest_html"} == {"pytest"}  # pytest-html is linked to, where it is installed


def test_dependencies_are_described_with_the_rooms_that_use_them() -> None:
    imported = _imports("fakekube")
    rows = {name: (module, rooms) for name, module, rooms, _ in _rows("package")}
    assert rows == {
        name: (f"`{_import_name(name)}`", ", ".join(sorted(imported[_import_name(name)])))
        for name in _names(PROJECT["dependencies"])
    }


def test_extras_are_described() -> None:
    described: dict[str, set[str]] = defaultdict(set)
    for extra, packages, _ in _rows("extra"):
        described[extra.strip("`")] |= set(packages.split(", "))
    assert described == {extra: _names(needed) for extra, needed in PROJECT["optional-dependencies"].items()}


def test_tests_import_what_the_extra_test_installs() -> None:
    installed = _names(PROJECT["optional-dependencies"]["test"])
    allowed = {_import_name(name) for name in installed | _names(PROJECT["dependencies"])}
    extras = PROJECT["optional-dependencies"]
    optional = {_import_name(name) for name in _names([*extras["clients"], *extras["page"]])}
    imported = _imports("tests").keys()
    assert imported - optional <= allowed
    assert {_import_name(name) for name in installed - NOT_IMPORTED} <= imported


@pytest.mark.parametrize(
    "code, imported",
    [
        ("import fakekube", set[str]()),
        (
            "import fakekube\ncluster = fakekube.Cluster(profile='apiserver').start()\n"
            "cluster.create({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}})\ncluster.stop()",
            {"orjson"},
        ),
    ],
    ids=["import", "create"],
)
def test_packages_are_imported_with_their_first_use(code: str, imported: set[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    names: set[Any] = {_import_name(name) for name in _names(PROJECT["dependencies"])}
    assert names & set(result.stdout.split()) == imported


def test_all_loggers_are_below_that_of_the_package() -> None:
    calls = [
        (path, node)
        for path in (ROOT / "fakekube").rglob("*.py")
        if "getLogger" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and _called(node) == "getLogger"
    ]
    assert calls
    assert [str(path) for path, node in calls if ast.unparse(node.args[0]) not in ("__name__", "'fakekube'")] == []
