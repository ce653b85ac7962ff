"""Vendored files, the import map and the wheel's files; needs no browser."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path

from fakekube.page import assets

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fakekube" / "page"
BUILD = ROOT / "fixtures" / "page-vendor"


def test_vendored_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((FOLDER / "vendor" / "manifest.json").read_text(encoding="utf-8"))["files"]
    found = {path.name for path in (FOLDER / "vendor").iterdir()} - {"manifest.json", "LICENSES.txt"}
    assert found == set(manifest)
    licences = (FOLDER / "vendor" / "LICENSES.txt").read_text(encoding="utf-8")
    for name, one in manifest.items():
        assert hashlib.sha256((FOLDER / "vendor" / name).read_bytes()).hexdigest() == one["sha256"], name
        for package in one["packages"]:
            assert package["name"] in licences
            assert package["integrity"].startswith("sha512-")


def test_the_lock_file_has_the_packages_of_the_manifest() -> None:
    manifest = json.loads((FOLDER / "vendor" / "manifest.json").read_text(encoding="utf-8"))["files"]
    locked = json.loads((BUILD / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    for one in manifest.values():
        for package in one["packages"]:
            entry = locked[f"node_modules/{package['name']}"]
            assert (entry["version"], entry["integrity"]) == (package["version"], package["integrity"])


def test_imports_are_bare_names_of_the_map_without_circles_of_pure_modules() -> None:
    graph = {}
    for bare, name in assets().modules.items():
        one = assets().files[name]
        if not one.vendored:
            text = re.sub(r"/\*.*?\*/", "", one.data.decode(), flags=re.DOTALL)
            graph[bare] = set(re.findall(r'^import\s(?:[^"\']*\sfrom\s)?"([^"]+)"', text, re.MULTILINE))
            assert graph[bare] <= set(assets().modules), name
    pure = [
        "fk/filter",
        "fk/exact_json",
        "fk/owners",
        "fk/yaml_lines",
        "fk/order",
        "fk/format",
        "fk/escape",
        "fk/paths",
        "fk/diff",
        "fk/store",
        "fk/revisions",
    ]
    for module in pure:
        assert graph[module] <= {*pure}, module


def test_no_source_uses_markup_from_text_or_style_attributes() -> None:
    for name, one in assets().files.items():
        if name.endswith(".js") and not one.vendored:
            text = one.data.decode()
            for forbidden in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "unsafeHTML",
                "document.write",
                "styleMap",
                " style=",
                "eval(",
                "new Function",
            ):
                assert forbidden not in text, (name, forbidden)


def test_the_wheel_has_the_files_and_not_those_of_the_build() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert packages["package-data"]["fakekube.page"] == ["static/*", "vendor/*"]
    assert not BUILD.is_relative_to(FOLDER)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_contrast_of_the_tokens_in_both_themes() -> None:
    text = assets().files["tokens.css"].data.decode()
    blocks = re.findall(r"\{([^{}]*--surface[^{}]*)\}", text)
    assert len(blocks) == 3
    for block in blocks:
        tokens = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        pairs = [(one, back, 4.5) for one in ("text", "muted", "accent", "bad", "warn", "good") for back in ("surface", "raised")]
        pairs += [
            ("text", "selected", 4.5),
            ("then", "then-back", 4.5),
            ("on-accent", "accent", 4.5),
            ("text", "added", 4.5),
            ("text", "removed", 4.5),
        ]
        pairs += [(name, "surface", 4.5) for name in tokens if name.startswith("hue-")] + [("focus", "surface", 3.0)]
        for one, other, least in pairs:
            light, dark = sorted((_luminance(tokens[one]), _luminance(tokens[other])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= least, (one, other)
