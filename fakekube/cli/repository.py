"""The files of a repository that `fakekube validate` reads, and those that are for other programs: kustomize and helm.

A kustomization, its patches and its other files are no manifests, nor are the values and templates of a chart; what these
programs make of them is (`kubectl kustomize DIR | fakekube validate -`). Definitions in the folder `crds` of a chart are
manifests.

Invariant: every file with the suffix of a manifest that is not in a hidden folder, nor among the
packages of Node, is returned, with the reason if it is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

#: The suffixes of manifests.
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
_CHART: Final = "Chart.yaml"
#: The largest kustomization that is read, in bytes.
_MAX_BYTES: Final = 1 << 20
#: Fields of a kustomization whose items are paths.
_PATHS: Final = ("patchesStrategicMerge", "configurations", "crds", "transformers", "generators", "validators")
#: Fields of a kustomization whose items, or which itself, have the path of a file in one of these members.
_MEMBERS: Final = {
    "patches": ("path",),
    "patchesJson6902": ("path",),
    "replacements": ("path",),
    "openapi": ("path",),
    "helmCharts": ("valuesFile", "additionalValuesFiles"),
    "configMapGenerator": ("files", "envs", "env"),
    "secretGenerator": ("files", "envs", "env"),
}


def manifest_files(folder: Path) -> Mapping[Path, str]:
    """Returns the files below a folder, in their order: file → "" if it is read, or why it is not."""
    below = (path for path in folder.rglob("*") if path.is_file())
    found = sorted(path for path in below if not any(map(_is_foreign, path.relative_to(folder).parts)))
    reasons = {path: reason for file in found for path, reason in _foreign_files(file).items()}
    charts = [file.parent for file in found if file.name == _CHART]
    return {file: reasons.get(file.resolve(), "") or _role_in_chart(file, charts) for file in found if file.suffix in _SUFFIXES}


def _is_foreign(name: str) -> bool:
    """Reports whether a file or folder of this name is hidden, or has packages of others."""
    return name.startswith(".") or name == "node_modules"


def _foreign_files(file: Path) -> Mapping[Path, str]:
    """Returns a kustomization and the files that it names beside its resources, each with the reason why it is no manifest."""
    if file.name not in _KUSTOMIZATIONS:
        return {}
    folder, text = file.parent, _read(file)
    turned_off = {(folder / path).resolve(): f"a patch that is turned off in {file}" for path in _patches_in_comments(text)}
    named = {(folder / path).resolve(): f"kustomize reads it for {file}" for path in _named_paths(_parse(text))}
    return {
        **turned_off,
        **named,
        file.resolve(): f"a kustomization; `kubectl kustomize {folder} | fakekube validate -` validates its output",
    }


def _read(file: Path) -> str:
    """Returns the text of a kustomization; one that cannot be read is empty."""
    try:
        with file.open("rb") as source:
            return source.read(_MAX_BYTES).decode("utf-8-sig")
    except (OSError, ValueError):
        return ""


def _parse(text: str) -> Mapping[str, Any]:
    """Returns a kustomization; what is none names no files."""
    import yaml

    try:
        found = yaml.load(text, Loader=yaml.CSafeLoader)
    except (ValueError, RecursionError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _patches_in_comments(text: str) -> Iterator[str]:
    """Returns the paths of patches in comments: scaffolds of operators have them, for whoever turns them on."""
    for line in text.splitlines():
        comment = line.strip()
        if not comment.startswith("#"):
            continue
        label, _, path = comment.lstrip("#- \t").rpartition("path:")
        path = path.strip()
        if not label and path.endswith((".yaml", ".yml", ".json")) and ("path:" in comment or "patch" in path):
            yield path


def _named_paths(kustomization: Mapping[str, Any]) -> Iterator[str]:
    """Returns the relative paths that a kustomization names beside its resources; texts with several lines are no paths."""
    for field in _PATHS:
        yield from _paths(kustomization.get(field))
    for field, members in _MEMBERS.items():
        found = kustomization.get(field)
        for item in found if isinstance(found, list) else [found]:
            if isinstance(item, dict):
                for member in members:
                    yield from _paths(item.get(member))


def _paths(found: object) -> Iterator[str]:
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, str) and "\n" not in item:
            yield item.partition("=")[2] or item  # the files of a generator may be KEY=PATH


def _role_in_chart(file: Path, charts: list[Path]) -> str:
    """Returns why a file of a chart is no manifest; "" if it is one, or in no chart."""
    for chart in charts:
        if not file.is_relative_to(chart) or file.relative_to(chart).parts[0] == "crds":
            continue
        inside = file.relative_to(chart)
        if len(inside.parts) == 1 or inside.parts[0] in ("templates", "ci"):
            return f"helm reads it for the chart; `helm template {chart} | fakekube validate -` validates its output"
    return ""
