"""The API data of each Kubernetes minor: types, kinds, resources, groups, table columns, and bootstrap objects.

Theory of operation: each minor has a folder (`v1_37`), made by `tests/reference/generate.py`. The folder of the newest minor is
complete. That of another one has the files that differ, and of these the entries that differ: of an object, the members that are
other ones or that the minor does not have (null); of a list, all items, where a number stands for the item of the newest minor at
that index.
Files are parsed on first use and never changed.

The files, one entry a line:

* `resources.json`, `groups.json`: what discovery can serve, in its order (see `ResourceRow` and `GroupRow`). `off` marks what is
  only served with --runtime-config or a feature gate.
* `kinds.json`: by group version and kind, the Go name of the type, or an object with `type`, `labels` (what a
  field selector may name) and `defaults` (constant defaults, by path, that hold for this kind only). An empty
  string is a kind that the real server has heard of but that cannot be met.
* `types.json`: by Go name, a type: `alias` (the Go type behind a named scalar, list or map), `custom`
  (has a JSON form of its own), `fields`, `map` (x-kubernetes-map-type), `unions`, `gvk`, `schema` (true: it
  is in OpenAPI; an object: its schema, where that does not follow from the rest).
* The fields of a type, in order, by JSON name (`+0`, `+1` …: an inlined struct): "t" Go type, `*` is a
  pointer; "o" when it is printed (absent: omitempty; 0: always; "z": omitzero; "ez": both); "n" and "w"
  Protobuf number and wire (absent: bytes); "s" and "k" patch strategy and merge key; "r" required; "d"
  constant default; of OpenAPI "l", "m", "g" list type, map keys and map type, "e" enum, "v" default, "x" the
  whole property where `shapes.property_schema` is wrong.
* `schemas.json`: schemas of OpenAPI that belong to none of the types.
* `columns.json`: table columns by path of the collection; `field` names the field of OpenAPI that describes a column.
* `features.json`: by feature gate, its history in words (`22a 27b+ 34g+!`): the minor from which on it is alpha, beta, generally
  available or deprecated, `+` if it is on by default, `!` if it is locked to that, `@37` if only for servers that need not be
  compatible with older minors; `>Other` is a gate that it depends on. Gates that metrics name and the API server does not declare
  have one word with the minor 0.
* `structs.json`: the Go types that a pod template reaches, as `controllers.hash` reads them.
* `internal.json`: by name, the fields of the internal Go structs of the real server that messages print, in words: `Name` is a
  string, `Name#` a number, `Name!` a boolean, `Name"` a quantity, `Name?` a pointer, `Name*` a list or map, `Name.` a struct
  (each with the name of the struct, if any), `Name{` any JSON, `+Name` an embedded struct; `@name` follows where the JSON name
  differs by more than case.
* `parameters.json`: how the names of shared parameters of OpenAPI v2 end (see `parameter_hash`).
* `policy.json`: by resource, namespace (`-` for none) and name, what of the bootstrap policy depends on feature gates: the object
  with all gates, with those without which it ("gates"), a rule ("gates") or a URL of a rule ("urlGates") is not there.
* `bootstrap.json`: the objects of a fresh server, without uid, revision and times, each with the path of its collection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from fakekube.base.caches import forgettable
from fakekube.base.objects import group_version, group_version_path

#: Names of API groups, and the Go package of the meta types, that several rooms need.
FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io"
NETWORKING: Final = "networking.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"
API_EXTENSIONS: Final = "apiextensions.k8s.io"
RBAC: Final = "rbac.authorization.k8s.io"
ADMISSION_REGISTRATION: Final = "admissionregistration.k8s.io"
META_V1: Final = "k8s.io/apimachinery/pkg/apis/meta/v1."

RELEASES: Final[Mapping[str, int]] = {"1.33": 13, "1.34": 4, "1.35": 4, "1.36": 3, "1.37": 2}
"""The known minors, the oldest first, each with the patch release that the data are of."""

Row = Mapping[str, Any]


@dataclass(slots=True, frozen=True)
class ResourceRow:
    """A served resource or subresource (`deployments/status`), as discovery names it."""

    group: str
    version: str
    name: str
    kind: str
    kind_group: str
    """Group and version of the bodies: those of the resource, unless it is a subresource whose bodies have another kind."""
    kind_version: str
    foreign: bool
    """Discovery contains group and version of the kind: they differ from those of the resource, or it is a scale."""
    verbs: tuple[str, ...]
    namespaced: bool = False
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version_hash: str = ""
    off: bool = False
    """Not served without --runtime-config or a feature gate."""

    @property
    def path(self) -> str:
        """The path of the collection, as `columns` and `bootstrap` name it."""
        return f"{group_version_path(self.group, self.version)}/{self.name}"


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


class InternalField(NamedTuple):
    """A field of an internal struct.

    Attributes:
        name: its name in Go; "" for an embedded struct.
        json_name: its JSON name, in lower case.
        kind: the mark of what it holds, "" for a string (see the module).
        struct: the name of the struct that it holds, or its items; "" for other types.
    """

    name: str
    json_name: str
    kind: str
    struct: str


_INTERNAL_MARK: Final = re.compile(r'[#!"?*.{]')


def _parse_internal_field(word: str) -> InternalField:
    if word.startswith("+"):
        return InternalField("", "", "+", word[1:])
    word, _, json_name = word.partition("@")
    mark = _INTERNAL_MARK.search(word)
    if mark is None:
        return InternalField(word, (json_name or word).lower(), "", "")
    name = word[: mark.start()]
    return InternalField(name, (json_name or name).lower(), mark[0], word[mark.end() :])


class Facts:
    """The facts of one minor.

    Args:
        folder: the folder of its files.
        base: the folder of the newest minor, if `folder` only has what differs from it.
    """

    def __init__(self, folder: Path, base: Path | None = None) -> None:
        self.folder, self._base = folder, base
        self._rows: dict[str, Row] = {}

    def _read(self, name: str) -> Any:
        """Returns the content of a file. Raises FileNotFoundError."""
        file = self.folder / name
        if self._base is None:
            return orjson.loads(file.read_bytes())
        common = self._base / name
        if not file.exists():
            return orjson.loads(common.read_bytes())
        own = orjson.loads(file.read_bytes())
        return _merge(orjson.loads(common.read_bytes()), own) if common.exists() else own

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
        row = self._kinds.get(group_version(group, version), {}).get(kind)
        if row is None and kind in _UNVERSIONED:
            row = self._kinds["v1"].get(kind)
        if row is None:
            return None
        if isinstance(row, str):
            return KindRow(row)
        return KindRow(row["type"], tuple(row.get("labels", ())), row.get("defaults"))

    def kinds(self, group: str, version: str) -> Sequence[str]:
        """Returns the names of all kinds that the real server's scheme knows in a group version, sorted."""
        return tuple(self._kinds.get(group_version(group, version), ()))

    @property
    def group_versions(self) -> Sequence[str]:
        """Every group version that the real server's scheme knows, served or not, sorted."""
        return tuple(self._kinds)

    @cached_property
    def _types(self) -> Mapping[str, bytes]:
        """The rows of all types as JSON, by Go name, sorted; a server reads few of them."""
        texts: dict[str, bytes] = {}
        for folder in (self._base, self.folder):
            if folder is not None:
                texts.update(_read_lines(folder / "types.json"))
        return {name: texts[name] for name in sorted(texts) if texts[name] != b"null"}

    def type(self, go_name: str) -> Row:
        """Returns the row of a named type. Raises KeyError for one that is not kept."""
        row = self._rows.get(go_name)
        if row is None:
            row = self._rows[go_name] = orjson.loads(self._types[go_name])
        return row

    def package(self, package: str) -> Row:
        """Returns the rows of the types of a Go package, by name; none if no type of it is kept."""
        names = [go_name.rpartition(".") for go_name in self._types]
        return {base: self.type(f"{package}.{base}") for found, _, base in names if found == package}

    def row(self, go_name: str) -> Row:
        """Returns the same, but an empty row for what is not kept (`string`, `[]string` …)."""
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
        """Returns the Go names of all types, sorted."""
        return tuple(self._types)

    @cached_property
    def _columns(self) -> Mapping[str, Sequence[Row]]:
        columns: Mapping[str, Sequence[Row]] = self._read("columns.json")
        return columns

    def columns(self, path: str) -> Sequence[Row]:
        """Returns the table columns (name, type, format, priority) of a collection, by its path; none if it cannot be listed."""
        return self._columns.get(path, ())

    @cached_property
    def features(self) -> Mapping[str, str]:
        """The histories of the feature gates, by name (see the module); `apimachinery.features` reads them."""
        features: Mapping[str, str] = self._read("features.json")
        return features

    @cached_property
    def structs(self) -> Mapping[str, str]:
        """The definitions of the Go types that a pod template reaches, by name."""
        structs: Mapping[str, str] = self._read("structs.json")
        return structs

    @cached_property
    def internal(self) -> Mapping[str, Sequence[InternalField]]:
        """The fields of internal Go structs, by name."""
        structs: Mapping[str, str] = self._read("internal.json")
        return {struct: tuple(map(_parse_internal_field, words.split())) for struct, words in structs.items()}

    @cached_property
    def _parameters(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        parameters: Mapping[str, Mapping[str, Sequence[str]]] = self._read("parameters.json")
        return parameters

    def parameter_hash(self, place: str, name: str, *uses: str) -> str:
        """Returns how the name of a shared parameter of OpenAPI v2 ends: the hash of a text that is not here; "" if nobody asked.

        Args:
            place: "path" or "query".
            name: the name of the parameter.
            uses: the member of the path item that has it (`get`, `parameters`), and the last two steps of the path without
                parameters (`pods/log`): they tell apart parameters that differ in the text only.
        """
        for ending, users in self._parameters.get(f"{place} {name}", {}).items():
            if not users or not set(users).isdisjoint(uses):
                return ending
        return ""

    @cached_property
    def policy(self) -> Mapping[str, Row]:
        """The roles and bindings that depend on feature gates; `apiserver.controlplane.bootstrap_policy` reads them."""
        policy: Mapping[str, Row] = self._read("policy.json")
        return policy

    @cached_property
    def bootstrap(self) -> Mapping[str, Sequence[Row]]:
        """The objects that a fresh server has, without uid, revision and times, by the path of their collection."""
        collections: dict[str, list[Row]] = {}
        for path, obj in self._read("bootstrap.json"):
            collections.setdefault(path, []).append(obj)
        return collections


def _read_lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the JSON of each entry of a file."""
    for line in file.read_bytes().splitlines()[1:-1]:
        name, _, text = line.partition(b": ")
        yield name[1:-1].decode(), text.rstrip(b",")


def _merge(common: Any, own: Any) -> Any:
    """Returns the content of a file of a minor, of the newest minor's file and of what differs (see the module)."""
    if isinstance(own, list):
        return [common[item] if isinstance(item, int) else item for item in own]
    merged = {**common, **own}
    return {name: merged[name] for name in sorted(merged) if merged[name] is not None}


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
        off="off" in row,
    )


NEWEST: Final = max(RELEASES, key=lambda minor: int(minor.partition(".")[2]))
"""The newest minor that is known."""

DEFAULT: Final = NEWEST
"""The minor that is emulated by default."""


@cache
def minor(version: str = DEFAULT) -> Facts:
    """Returns the data of a minor ("1.36"). Raises LookupError, whose message lists the known minors."""
    if version not in RELEASES:
        raise LookupError(f"Kubernetes {version} is not known; known: {', '.join(RELEASES)}")
    folders = [Path(__file__).parent / f"v{name.replace('.', '_')}" for name in (version, NEWEST)]
    return Facts(folders[0], None if version == NEWEST else folders[1])


# --- The descriptions of schemas, which another installed package may have -------------------------------------------
# Such a package has an entry point in the group `fakekube.descriptions`. Its name is the minor ("1.36"), its
# value a function without arguments that returns the OpenAPI v2 document of that minor as Kubernetes publishes
# it (`api/openapi-spec/swagger.json`, parsed). What it says of definitions, properties, operations and parameters
# is taken from it, and nothing else; `kubectl explain` shows it. Without one, the package kubernetes-validate is asked,
# which has the definitions of each minor.


_GROUP: Final = "fakekube.descriptions"


@forgettable
@cache
def published_document(version: str) -> Mapping[str, Any]:
    """Returns the published document of a minor; empty if there is none."""
    from importlib.metadata import entry_points

    for point in entry_points(group=_GROUP, name=version):
        document: Mapping[str, Any] = point.load()()
        return document
    return _of_kubernetes_validate(version)


def _of_kubernetes_validate(version: str) -> Mapping[str, Any]:
    """Returns the definitions that the package kubernetes-validate has of a minor; empty if it is not installed, or has none."""
    package = find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        return {}
    file = Path(package.origin).parent / "kubernetes-json-schema" / f"v{version}.0-local" / "_definitions.json"
    if not file.is_file():
        return {}
    document = orjson.loads(file.read_bytes())
    return {"definitions": document.get("$defs") or document.get("definitions", {})}


def field_text(version: str, schema: str, field: str) -> str:
    """Returns the description of a field of a schema, such as `io.k8s.api.core.v1.Pod`; "" if there is none."""
    found = published_document(version).get("definitions", {}).get(schema, {}).get("properties", {}).get(field, {})
    text: str = found.get("description", "")
    return text
