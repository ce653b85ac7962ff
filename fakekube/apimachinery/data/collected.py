"""Reads the facts that were collected from a real server of one minor, for the generator.

The folder contains `types.json` (from the reflection of the compiled-in types), `discovery.json`,
`columns.json`, `bootstrap.json`, `features.json`, `parameters.json` and `openapi/*.json` (the responses of a fresh server);
`features.txt`, `structs.txt` and `internal.txt` (what the programs tests/reference/recorders print); and, where a server with all
APIs and gates was asked too, `all` with `discovery.json`, `columns.json` and `openapi/*.json` of that one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fakekube.apimachinery.data import META_V1
from fakekube.apimachinery.data.shapes import schema_name

Row = dict[str, Any]


#: PartialObjectMetadata, which is in no scheme and so not among the collected types.
_METADATA_ONLY: dict[str, Row] = {
    META_V1 + name: {
        "fields": [
            {"json": "", "type": META_V1 + "TypeMeta", "inline": True},
            {"json": "metadata", "type": META_V1 + metadata, "omitempty": True, "protobuf": "bytes,1,opt"},
            *more,
        ]
    }
    for name, metadata, more in (
        ("PartialObjectMetadata", "ObjectMeta", []),
        (
            "PartialObjectMetadataList",
            "ListMeta",
            [{"json": "items", "type": f"[]{META_V1}PartialObjectMetadata", "protobuf": "bytes,2,rep"}],
        ),
    )
}

_PACKAGE_PREFIX = re.compile(
    r"^k8s\.io/(?:api/|apimachinery/pkg/(?:apis/)?|apiextensions-apiserver/pkg/apis/|kube-aggregator/pkg/apis/)"
)
_PATH_STEP = re.compile(r"\.[^.\[]+|\[\]")


def short_name(go_name: str) -> str:
    """Returns the short name of a Go type: `core/v1.Pod` for `k8s.io/api/core/v1.Pod`."""
    return _PACKAGE_PREFIX.sub("", go_name)


class Collected:
    """The collected facts of one minor."""

    def __init__(self, folder: Path) -> None:
        collected = json.loads((folder / "types.json").read_text())
        self.types: dict[str, Row] = collected["types"] | _METADATA_ONLY
        self.kinds: dict[str, Row] = collected["kinds"]
        self.discovery = json.loads((folder / "discovery.json").read_text())
        self.columns = json.loads((folder / "columns.json").read_text())
        self.bootstrap = json.loads((folder / "bootstrap.json").read_text())
        self.features, self.parameters = (self._newer(folder / name) for name in ("features.json", "parameters.json"))
        self.histories, self.structs, self.internal = (
            self._lines(folder / f"{name}.txt") for name in ("features", "structs", "internal")
        )
        everything = folder / "all" if (folder / "all").exists() else folder
        self.all_discovery = json.loads((everything / "discovery.json").read_text())
        """Discovery with all APIs and gates."""
        self.columns |= json.loads((everything / "columns.json").read_text())
        self.schemas: dict[str, Row] = {}
        for document in sorted((everything / "openapi").glob("*.json")):
            self.schemas.update(json.loads(document.read_text())["components"].get("schemas", {}))
        self._shown_in: dict[str, Row] = {}
        for name in self.types:
            if schema_name(name) in self.schemas:
                self._note_inlined(name, self.schemas[schema_name(name)])

    @staticmethod
    def _newer(file: Path) -> Row:
        """Reads a file that older collections do not have."""
        found: Row = json.loads(file.read_text()) if file.exists() else {}
        return found

    @staticmethod
    def _lines(file: Path) -> dict[str, str]:
        """Reads a text with a line `name: definition`, or `name = type`, an entry; the second keeps its sign."""
        found: dict[str, str] = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            name, separator, definition = line.partition(": ")
            if not separator:
                name, separator, definition = line.partition(" = ")
            found[name] = definition if separator == ": " else f"= {definition}"
        return found

    def _note_inlined(self, name: str, schema: Row) -> None:
        for field in self.types[name].get("fields", ()):
            if field.get("inline"):
                self._shown_in.setdefault(field["type"], schema)
                self._note_inlined(field["type"], schema)

    def schema_showing(self, name: str) -> Row:
        """Returns the schema with the fields of a type: its own, or that of a type that inlines it."""
        return self.schemas.get(schema_name(name)) or self._shown_in.get(name, {})

    def row(self, name: str) -> Row:
        """Returns the row of a type; an empty row for an unnamed type."""
        return self.types.get(name, {})

    def underlying(self, name: str) -> str:
        """Returns the underlying type of a named scalar, list or map; any other type itself."""
        return str(self.types.get(name, {}).get("alias") or name)

    def parts(self, name: str) -> Iterator[str]:
        """Returns the named types of the fields or elements of a type."""
        row = self.types.get(name)
        if row is None:
            yield from _inner_names(name)
            return
        if "alias" in row:
            yield from _inner_names(row["alias"])
        for field in row.get("fields", ()):
            yield from _inner_names(field["type"])

    def reachable(self, roots: Iterable[str]) -> set[str]:
        """Returns all named types that are reachable from the roots."""
        found: set[str] = set()
        pending = list(roots)
        while pending:
            name = pending.pop()
            if name not in found and name in self.types:
                found.add(name)
                pending.extend(self.parts(name))
        return found

    def fields(self, name: str) -> dict[str, tuple[str, Row]]:
        """Returns the fields of a struct by JSON name, each with the struct that declares it (itself or an inlined one)."""
        flat: dict[str, tuple[str, Row]] = {}
        for field in self.types[name].get("fields", ()):
            flat.update(self.fields(field["type"]) if field.get("inline") else {field["json"]: (name, field)})
        return flat

    def owner(self, root: str, path: str) -> tuple[str, str]:
        """Returns the struct that declares the last field of a path of `defaults`, and the field."""
        current, owner = root, ("", "")
        for step in _PATH_STEP.findall(path):
            if step == "[]":
                current = self.underlying(current).removeprefix("[]")
            else:
                declaring, field = self.fields(current)[step[1:]]
                owner = (declaring, step[1:])
                current = field["type"]
        return owner

    def is_list(self, name: str) -> bool:
        """Reports whether this is the list type of a kind."""
        return name.endswith("List") and "items" in self.fields(name)

    def group_versions(self) -> list[str]:
        """Returns all group versions in the order of discovery, those included that are served on demand."""
        legacy = self.all_discovery["legacy"]
        versions = list(legacy["/api"]["versions"])
        for group in legacy["/apis"]["groups"]:
            versions += [version["groupVersion"] for version in group["versions"]]
        return versions


def _inner_names(type_name: str) -> list[str]:
    """Returns the named types in a Go type expression such as `map[a]b` or `[]c`."""
    match = re.match(r"map\[([^\]]*)\](.*)", type_name)
    if match:
        return [*_inner_names(match[1]), *_inner_names(match[2])]
    return _inner_names(type_name[2:]) if type_name.startswith("[]") else [type_name]
