"""The API data of each Kubernetes minor: types, kinds, resources, groups, table columns, and bootstrap objects.

Theory of operation: each minor has a folder (`v1_36`), made by `generate.py`. Files are parsed on first use and never
changed.

The files, one entry a line:

* `resources.json`, `groups.json`: what discovery serves, in its order (see `ResourceRow` and `GroupRow`).
* `kinds.json`: by group version and kind, the Go name of the type, or an object with `type`, `labels` (what a
  field selector may name) and `defaults` (constant defaults, by path, that hold for this kind only). An empty
  string is a kind that the real server has heard of but that cannot be met.
* `types/PACKAGE.json`: by name, a type: `alias` (the Go type behind a named scalar, list or map), `custom`
  (has a JSON form of its own), `fields`, `map` (x-kubernetes-map-type), `unions`, `gvk`, `schema` (true: it
  is in OpenAPI; an object: its schema, where that does not follow from the rest).
* The fields of a type, in order, by JSON name (`+0`, `+1` …: an inlined struct): `t` Go type, `*` is a
  pointer; `o` when it is printed (absent: omitempty; 0: always; "z": omitzero; "ez": both); `n` and `w`
  Protobuf number and wire (absent: bytes); `s` and `k` patch strategy and merge key; `r` required; `d`
  constant default; of OpenAPI `l`, `m`, `g` list type, map keys and map type, `e` enum, `v` default, `x` the
  whole property where `shapes.property_schema` is wrong.
* `schemas.json`: schemas of OpenAPI that belong to none of the types.
* `columns.json`: table columns by path of the collection; `field` names the field of OpenAPI that describes a column.
* `features.json`, where they were collected: the feature gates, each with its stage and whether it is on.
* `parameters.json`, where they were collected: how the names of shared parameters of OpenAPI v2 end (see `parameter_hash`).
* `bootstrap/PATH.json`: the objects of a fresh server, without uid, revision and times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import orjson

__all__ = ["Facts", "GroupRow", "KindRow", "ResourceRow", "minor"]

Row = Mapping[str, Any]


@dataclass(slots=True, frozen=True)
class ResourceRow:
    """A served resource or subresource (`deployments/status`), as discovery names it."""

    group: str
    version: str
    name: str
    kind: str
    kind_group: str
    """Group and version of the bodies; those of the resource unless it is a subresource that speaks another
    kind."""
    kind_version: str
    foreign: bool
    """Discovery contains group and version of the kind (they differ from those of the resource, or it is a
    scale)."""
    verbs: tuple[str, ...]
    namespaced: bool = False
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version_hash: str = ""

    @property
    def path(self) -> str:
        """The path of the collection, as `columns` and `bootstrap` name it."""
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}/{self.name}"


@dataclass(slots=True, frozen=True)
class GroupRow:
    """An API group (never the core group) with its versions in the order of preference."""

    name: str
    versions: tuple[str, ...]
    preferred: str


@dataclass(slots=True, frozen=True)
class KindRow:
    """A kind of a group version."""

    type: str
    """The Go name of its type; empty for a kind that is registered but cannot be met."""
    field_labels: tuple[str, ...] = ()
    defaults: Mapping[str, Any] | None = None
    """Constant defaults of this kind only, by path (`.spec.enableServiceLinks`)."""


#: Kinds that are registered once, for every group version (AddUnversionedTypes of the meta group).
_UNVERSIONED = frozenset({"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"})


class Facts:
    """The facts of one minor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packages: dict[str, Row] = {}

    def _read(self, name: str) -> Any:
        return orjson.loads((self.folder / name).read_bytes())

    @cached_property
    def resources(self) -> Sequence[ResourceRow]:
        """All served resources and subresources, in the order of discovery."""
        return tuple(_resource(row) for row in self._read("resources.json"))

    @cached_property
    def groups(self) -> Sequence[GroupRow]:
        """All groups but the core one, in the order of /apis."""
        rows = self._read("groups.json")
        return tuple(GroupRow(row["name"], tuple(row["versions"]), row["preferred"]) for row in rows)

    @cached_property
    def _kinds(self) -> Mapping[str, Mapping[str, Any]]:
        kinds: Mapping[str, Mapping[str, Any]] = self._read("kinds.json")
        return kinds

    def kind(self, group: str, version: str, kind: str) -> KindRow | None:
        """Returns the row of a kind; None if the real server's scheme does not contain it."""
        row = self._kinds.get(f"{group}/{version}" if group else version, {}).get(kind)
        if row is None and kind in _UNVERSIONED:
            row = self._kinds["v1"].get(kind)
        if row is None:
            return None
        if isinstance(row, str):
            return KindRow(row)
        return KindRow(row["type"], tuple(row.get("labels", ())), row.get("defaults"))

    def kinds(self, group: str, version: str) -> Sequence[str]:
        """The names of all kinds that the real server's scheme knows in a group version, sorted."""
        return tuple(self._kinds.get(f"{group}/{version}" if group else version, ()))

    @property
    def group_versions(self) -> Sequence[str]:
        """Every group version that the real server's scheme knows, served or not, sorted."""
        return tuple(self._kinds)

    def type(self, go_name: str) -> Row:
        """The row of a named type. Raises KeyError for one that is not kept."""
        package, _, base = go_name.rpartition(".")
        rows = self._packages.get(package)
        if rows is None:
            try:
                rows = self._read(f"types/{package.replace('/', '_')}.json")
            except FileNotFoundError:
                raise KeyError(go_name) from None
            self._packages[package] = rows
        row: Row = rows[base]
        return row

    def row(self, go_name: str) -> Row:
        """The same, but an empty row for what is not kept (`string`, `[]string` …)."""
        try:
            return self.type(go_name)
        except KeyError:
            return {}

    @cached_property
    def schemas(self) -> Mapping[str, Row]:
        """The OpenAPI schemas that belong to none of the types, by their OpenAPI name."""
        schemas: Mapping[str, Row] = self._read("schemas.json")
        return schemas

    def type_names(self) -> Sequence[str]:
        """The Go names of all types (reads everything)."""
        names = []
        for file in sorted((self.folder / "types").iterdir()):
            package = file.stem.replace("_", "/")
            names += [f"{package}.{base}" for base in self._read(f"types/{file.name}")]
        return tuple(names)

    @cached_property
    def _columns(self) -> Mapping[str, Sequence[Row]]:
        columns: Mapping[str, Sequence[Row]] = self._read("columns.json")
        return columns

    def columns(self, path: str) -> Sequence[Row]:
        """The table columns (name, type, format, priority) of a collection, by its path; none if it cannot be
        listed."""
        return self._columns.get(path, ())

    @cached_property
    def features(self) -> Mapping[str, tuple[str, bool]]:
        """The feature gates: stage (empty for what is stable) and whether it is on by default; none if nobody asked."""
        if not (self.folder / "features.json").exists():
            return {}
        return {name: (stage, on) for name, (stage, on) in self._read("features.json").items()}

    @cached_property
    def _parameters(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        if not (self.folder / "parameters.json").exists():
            return {}
        parameters: Mapping[str, Mapping[str, Sequence[str]]] = self._read("parameters.json")
        return parameters

    def parameter_hash(self, place: str, name: str, *uses: str) -> str:
        """Returns how the name of a shared parameter of OpenAPI v2 ends: the hash of a text that is not here; "" if nobody asked.

        Args:
            place: "path" or "query".
            name: of the parameter.
            uses: the member of the path item that has it (`get`, `parameters`), and the last two steps of the path without
                parameters (`pods/log`): they tell apart parameters that differ in the text only.
        """
        for ending, users in self._parameters.get(f"{place} {name}", {}).items():
            if not users or not set(users).isdisjoint(uses):
                return ending
        return ""

    @cached_property
    def bootstrap(self) -> Mapping[str, Sequence[Row]]:
        """The objects that a fresh server has, by path of their collection. Without uid, revision and
        times."""
        paths = {row.path.strip("/").replace("/", "_"): row.path for row in self.resources}
        files = sorted((self.folder / "bootstrap").iterdir())
        return {paths[file.stem]: self._read(f"bootstrap/{file.name}") for file in files}


def _resource(row: Row) -> ResourceRow:
    group, _, version = row["in"].rpartition("/")
    kind_group, _, kind_version = row.get("of", row["in"]).rpartition("/")
    return ResourceRow(
        group=group,
        version=version,
        name=row["name"],
        kind=row["kind"],
        kind_group=kind_group,
        kind_version=kind_version,
        foreign="of" in row,
        verbs=tuple(row["verbs"]),
        namespaced=row.get("namespaced", False),
        singular=row.get("singular", ""),
        short_names=tuple(row.get("short", ())),
        categories=tuple(row.get("categories", ())),
        storage_version_hash=row.get("hash", ""),
    )


NEWEST: Final = "1.36"
"""The newest minor that is known."""


@cache
def minor(version: str = NEWEST) -> Facts:
    """Returns the data of a minor ("1.36"). Raises LookupError, whose message lists the known minors."""
    known = sorted(folder.name[1:].replace("_", ".") for folder in Path(__file__).parent.glob("v[0-9]*_[0-9]*"))
    if version not in known:
        raise LookupError(f"Kubernetes {version} is not known; known: {', '.join(known)}")
    return Facts(Path(__file__).parent / f"v{version.replace('.', '_')}")
