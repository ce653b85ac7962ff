"""Layers of the package: which subpackage may import which, and that the import of the package is lazy."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fakekube"

#: The layers, in the direction of a request. A layer imports only layers after it, and the shared modules. Subpackages of
#: `registry` and `crd` are listed separately where other layers lie between them.
LAYERS = (
    "cli",
    "envtest",
    "checker",
    "test_case",
    "cluster",
    "control",
    "testing",
    "powers",
    "nodes",
    "runtime",
    "scheduler",
    "controllers",
    "client",
    "assembly",
    "options",
    "server",
    "api",
    "audit",
    "auth",
    "endpoints",
    "streaming",
    "aggregator",
    "webhooks",
    "controlplane",
    "registry.store_access",
    "registry.generic",
    "crd",
    "crd.definition",
    "crd.instances",
    "crd.schema",
    "views",
    "admission",
    "quota",
    "apis",
    "registry",
    "patch",
    "codecs",
    "validation",
    "cel",
    "store",
)

#: Modules that any layer may import; they import no layer.
SHARED = frozenset(
    {
        "errors",
        "schema",
        "selectors",
        "streams",
        "pipes",
        "kubelet_api",
        "clock",
        "data",
        "depth",
        "golang",
        "caches",
        "threads",
        "wsgi",
    }
)


def layer_of(module: str) -> str:
    """The layer of a module: the longest of the names above that is its prefix."""
    path = module.partition(".")[2]
    inner = ".".join(path.split(".")[:2])
    return inner if inner in LAYERS else path.partition(".")[0]


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """The modules of ours that a file imports at run time."""
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8"))))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fakekube"):
            for alias in node.names:
                inner = PACKAGE.parent / f"{node.module}.{alias.name}".replace(".", "/")
                yield f"{node.module}.{alias.name}" if inner.is_dir() or inner.with_suffix(".py").exists() else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("fakekube."))


def files(layer: str) -> list[Path]:
    folder = PACKAGE / layer.replace(".", "/")
    found = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return [file for file in found if layer_of(module_of(file)) == layer]


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_imports_only_layers_below_it(layer: str) -> None:
    allowed = {*LAYERS[LAYERS.index(layer) :], *SHARED}
    wrong = [
        f"{file.relative_to(PACKAGE)}: {module}"
        for file in files(layer)
        for module in imports(file)
        if layer_of(module) not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize("module_name", sorted(SHARED))
def test_shared_modules_import_only_shared_modules(module_name: str) -> None:
    wrong = [
        f"{file.relative_to(PACKAGE)}: {module}"
        for file in files(module_name)
        for module in imports(file)
        if layer_of(module) not in SHARED
    ]
    assert not wrong


def test_store_imports_no_other_package() -> None:
    assert {layer_of(module) for file in files("store") for module in imports(file)} <= {"store"}


def test_package_import_is_lazy() -> None:
    code = "import sys, fakekube; print(sorted(m for m in sys.modules if m.startswith(('fakekube.', 'orjson', 'yaml'))))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_module_has_a_docstring() -> None:
    undocumented = [
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert not undocumented
