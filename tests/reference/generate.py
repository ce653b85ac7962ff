"""Generates the data of the minors from the facts that were collected from real servers.

    python -m tests.reference.generate fixtures/facts

The folder has an archive `v1.36.tar.xz` a minor, or a folder `v1.36`, with the files that `collect` names: `types.json` (from the
reflection of the compiled-in types), `discovery.json`, `columns.json`, `bootstrap.json`, `features.json`, `parameters.json` and
`openapi/*.json` (the responses of a fresh server); `features.txt`, `structs.txt`, `internal.txt` and `policy.txt` (what the
programs tests/reference/recorders print); and, where a server with all APIs and gates was asked too, `all` with
`discovery.json`, `columns.json` and `openapi/*.json` of that one.

The result is a folder `v1_36` a minor in `fakekube/apimachinery/data`: JSON with one entry a line, so that two versions can be
compared with `diff`; `__init__.py` there describes the files. The folder of the newest minor is complete, those of the others have
what differs from it. None is edited by hand; the tables below contain the few rules that do not follow from the facts.

Only the types that requests and responses can contain are kept: those of served kinds and their subresources, of the meta
kinds (options, Status, Table, WatchEvent …) and of the reviews that are sent to webhooks.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fakekube.apimachinery import data
from fakekube.apimachinery.data import META_V1, NEWEST, RELEASES
from fakekube.apimachinery.data.shapes import property_schema, schema_name

# --- The facts that were collected from a real server of one minor ---------------------------------------------------


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
        self.policy = self._policy(folder / "policy.txt")
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
    def _policy(file: Path) -> dict[str, Row]:
        """Reads roles and bindings, one a line after its resource and namespace; what a line names further is in the key."""
        found: dict[str, Row] = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            resource, namespace, content = line.split(" ", 2)
            obj: Row = json.loads(content)
            obj["metadata"].pop("creationTimestamp", None)
            found[f"{resource} {namespace} {obj['metadata']['name']}"] = obj
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


Defaults = Mapping[tuple[str, str], Any]
"""(struct, field) → default."""

#: Kinds that are not served but occur in requests: those that webhooks are sent, and other versions that a subresource
#: accepts.
EXTRA_KINDS = (
    "admission.k8s.io/v1, AdmissionReview",
    "admission.k8s.io/v1beta1, AdmissionReview",
    "apiextensions.k8s.io/v1, ConversionReview",
    "apiextensions.k8s.io/v1beta1, ConversionReview",
    "policy/v1beta1, Eviction",
    "extensions/v1beta1, Scale",
    "apps/v1beta1, Scale",
    "apps/v1beta2, Scale",
)

#: Types that are not registered in the scheme of the API server.
EXTRA_TYPES = ("k8s.io/api/apidiscovery/v2.APIGroupDiscoveryList",)

#: Kinds whose x-kubernetes-group-version-kind differs between documents.
KINDS_OF_EVERY_GROUP = ("meta/v1.DeleteOptions", "meta/v1.WatchEvent")

#: Names in the facts and in OpenAPI → keys of rows.
OF_FIELDS = {"patchStrategy": "s", "patchMergeKey": "k"}
OF_PROPERTIES = {"x-kubernetes-list-type": "l", "x-kubernetes-list-map-keys": "m", "x-kubernetes-map-type": "g"}
OF_TYPES = {"x-kubernetes-map-type": "map", "x-kubernetes-unions": "unions", "x-kubernetes-group-version-kind": "gvk"}

#: Defaults that depend on other fields, in every version of a group; the modules of the kinds apply them.
CONDITIONAL = frozenset({
    ("apps.RollingUpdateDaemonSet", "maxSurge"), ("apps.RollingUpdateDaemonSet", "maxUnavailable"),
    ("apps.RollingUpdateDeployment", "maxSurge"), ("apps.RollingUpdateDeployment", "maxUnavailable"),
    ("apps.RollingUpdateStatefulSetStrategy", "maxUnavailable"), ("apps.RollingUpdateStatefulSetStrategy", "partition"),
    ("apps.StatefulSetUpdateStrategy", "type"),
    ("autoscaling.HPAScalingRules", "selectPolicy"),
    ("autoscaling.HPAScalingRules", "stabilizationWindowSeconds"),
    ("batch.JobSpec", "backoffLimit"), ("batch.JobSpec", "completions"),
    ("batch.JobSpec", "parallelism"), ("batch.JobSpec", "podReplacementPolicy"),
    ("core.Container", "imagePullPolicy"), ("core.EphemeralContainerCommon", "imagePullPolicy"),
    ("core.ImageVolumeSource", "pullPolicy"), ("core.ServiceSpec", "internalTrafficPolicy"),
    ("networking.NetworkPolicySpec", "policyTypes"),
    ("resource.DeviceSubRequest", "count"), ("resource.ExactDeviceRequest", "count"),
    ("resource.DeviceTaint", "timeAdded"), ("storage.CSIDriverSpec", "preventPodSchedulingIfMissing"),
})  # fmt: skip

#: The version in the short name of a type.
_VERSION = re.compile(r"/v\d\w*\.")

#: Constant defaults that are structs, which the collected objects do not show, since all their structs are present.
STRUCT_DEFAULTS: Defaults = {
    ("core/v1.PodSpec", "securityContext"): {},
    ("admissionregistration/v1.ValidatingWebhook", "namespaceSelector"): {},
    ("admissionregistration/v1.ValidatingWebhook", "objectSelector"): {},
    ("admissionregistration/v1.MutatingWebhook", "namespaceSelector"): {},
    ("admissionregistration/v1.MutatingWebhook", "objectSelector"): {},
    **{
        (f"admissionregistration/{version}.MatchResources", selector): {}
        for version in ("v1", "v1beta1", "v1alpha1")
        for selector in ("namespaceSelector", "objectSelector")
    },
    ("apps/v1.StatefulSetSpec", "persistentVolumeClaimRetentionPolicy"): {},
    ("apiextensions/v1.CustomResourceDefinitionSpec", "conversion"): {"strategy": "None"},
}


def resources(facts: Collected) -> list[Row]:
    """Returns a row for each served resource and subresource, in the order of discovery."""
    rows: list[Row] = []
    by_default = facts.discovery["legacy"]
    for group_version in facts.group_versions():
        path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        served = {listed["name"] for listed in by_default.get(path, {}).get("resources", ())}
        for listed in facts.all_discovery["legacy"][path]["resources"]:
            row: Row = {"in": group_version, "name": listed["name"], "kind": listed["kind"]}
            if "version" in listed:
                row["of"] = "/".join(filter(None, (listed.get("group"), listed["version"])))
            row["verbs"] = listed["verbs"]
            optional = {
                "singular": listed["singularName"],
                "namespaced": listed["namespaced"],
                "short": listed.get("shortNames"),
                "categories": listed.get("categories"),
                "hash": listed.get("storageVersionHash"),
            }
            if listed["name"] not in served:
                row["off"] = 1
            rows.append(row | {key: value for key, value in optional.items() if value})
    return rows


def groups(facts: Collected) -> list[Row]:
    """Returns the groups in the order of /apis with their versions, the preferred one first."""
    return [
        {
            "name": group["name"],
            "versions": [version["version"] for version in group["versions"]],
            "preferred": group["preferredVersion"]["version"],
        }
        for group in facts.all_discovery["legacy"]["/apis"]["groups"]
    ]


def kept_kinds(facts: Collected) -> dict[str, Row]:
    """Returns the kinds that are kept, as "group/version, Kind"."""
    served = set(facts.group_versions())
    return {name: row for name, row in facts.kinds.items() if name in EXTRA_KINDS or name.partition(", ")[0] in served}


def constant_defaults(facts: Collected, kinds: Mapping[str, Row]) -> tuple[Defaults, dict[str, Row]]:
    """Returns the constant defaults: those of a struct wherever it occurs, and the others by kind and path."""
    shown: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    reach: dict[str, set[str]] = {}
    for kind, row in kinds.items():
        if facts.is_list(row["type"]):
            continue
        reach[kind] = facts.reachable([row["type"]])
        for path, value in row.get("defaults", {}).items():
            owner = facts.owner(row["type"], path)
            if (_VERSION.sub(".", short_name(owner[0])), owner[1]) not in CONDITIONAL:
                shown[owner][kind][path.removesuffix("[]")] = [value] if path.endswith("[]") else value
    everywhere: dict[tuple[str, str], Any] = {}
    by_kind: dict[str, Row] = defaultdict(dict)
    for owner, places in shown.items():
        # Kinds without any default have no defaulting function (such as PodStatusResult).
        kinds_with_owner = [k for k, types in reach.items() if owner[0] in types and kinds[k].get("defaults")]
        values = [value for paths in places.values() for value in paths.values()]
        if len(places) == len(kinds_with_owner) and all(value == values[0] for value in values):
            everywhere[owner] = values[0]
            continue
        for kind, paths in places.items():
            by_kind[kind].update(paths)
    by_short_name = {short_name(name): name for name in facts.types}
    for (struct, field), value in STRUCT_DEFAULTS.items():
        if struct in by_short_name:
            everywhere[by_short_name[struct], field] = value
    return everywhere, by_kind


def kind_rows(facts: Collected, kinds: Mapping[str, Row], by_kind: Mapping[str, Row]) -> dict[str, Row]:
    """Returns the rows of kinds by group version and kind: the type, or an object with more facts. Kinds that are not kept only
    have their names."""
    table: dict[str, Row] = defaultdict(dict)
    for name in sorted(facts.kinds):
        group_version, _, kind = name.partition(", ")
        if name not in kinds:
            table[group_version][kind] = ""
            continue
        row = kinds[name]
        entry: Row = {"type": row["type"]}
        if by_kind.get(name):
            entry["defaults"] = by_kind[name]
        if row.get("fieldLabels"):
            entry["labels"] = row["fieldLabels"]
        table[group_version][kind] = entry if len(entry) > 1 else row["type"]
    return table


def type_row(facts: Collected, name: str, defaults: Defaults) -> Row:
    """Returns the row of a type; see `fakekube/apimachinery/data/__init__.py` for the keys."""
    known = facts.types[name]
    row: Row = {}
    if "alias" in known:
        row["alias"] = known["alias"]
    if known.get("customJSON"):
        row["custom"] = True
    elif known.get("fields"):
        row["fields"] = {
            f"+{position}" if field.get("inline") else field["json"]: field_row(facts, name, field, defaults)
            for position, field in enumerate(known["fields"])
        }
    if schema_name(name) in facts.schemas:
        row |= of_schema(name, facts.schemas[schema_name(name)])
    return row


def of_schema(name: str, schema: Row) -> Row:
    """Returns the keys of a row that come from the OpenAPI schema of the type."""
    row = {short: schema[key] for key, short in OF_TYPES.items() if key in schema}
    if short_name(name) in KINDS_OF_EVERY_GROUP:
        row.pop("gvk", None)
    follows_from_fields = "properties" in schema or schema == {"type": "object"}
    return row | {"schema": True if follows_from_fields else schema}


def field_row(facts: Collected, owner: str, field: Row, defaults: Defaults) -> Row:
    """Returns the row of a field."""
    row: Row = {"t": ("*" if field.get("pointer") else "") + field["type"]}
    if not field.get("inline"):
        omitted = ("e" if field.get("omitempty") else "") + ("z" if field.get("omitzero") else "")
        if omitted != "e":
            row["o"] = omitted or 0
    wire, _, number = field.get("protobuf", "").partition(",")
    if number:
        row["n"] = int(number.partition(",")[0])
        if wire != "bytes":
            row["w"] = wire
    row |= {short: field[key] for key, short in OF_FIELDS.items() if key in field}
    schema = facts.schema_showing(owner)
    if field["json"] in schema.get("required", ()):
        row["r"] = 1
    if (owner, field["json"]) in defaults:
        row["d"] = defaults[owner, field["json"]]
    return row | of_property(facts, row, schema.get("properties", {}).get(field["json"]))


def of_property(facts: Collected, row: Row, schema: Row | None) -> Row:
    """Returns the keys of a row that come from the OpenAPI property of the field."""
    if schema is None:
        return {}
    more = {short: schema[key] for key, short in OF_PROPERTIES.items() if key in schema}
    element = schema.get("items") or schema.get("additionalProperties") or schema
    if "enum" in element:
        more["e"] = element["enum"]
    if "default" in schema and property_schema(row | more, facts.row).get("default") != schema["default"]:
        more["v"] = schema["default"]
    if property_schema(row | more, facts.row) != schema:
        more["x"] = schema
    return more


def histories(facts: Collected) -> dict[str, str]:
    """Returns the histories of the feature gates; of those that only metrics name, what they say."""
    letters = {"ALPHA": "a", "BETA": "b", "DEPRECATED": "d", "": "g"}
    told = {name: f"0{letters[stage]}{'+' * on}" for name, (stage, on) in facts.features.items()}
    return dict(sorted((told | facts.histories).items()))


def without_server_values(obj: Row) -> Row:
    """Returns an object without the values that differ between servers: uid, resourceVersion and times."""
    metadata = _drop(obj["metadata"], "uid", "resourceVersion", "creationTimestamp")
    if "managedFields" in metadata:
        metadata["managedFields"] = [_drop(entry, "time") for entry in metadata["managedFields"]]
    return {**obj, "metadata": metadata}


def _drop(row: Row, *keys: str) -> Row:
    return {key: value for key, value in row.items() if key not in keys}


def write_lines(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON object with one member a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{_compact(key)}: {_compact(entry)}" for key, entry in value.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Writes a JSON list with one item a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(_compact(row) for row in rows) + "\n]\n")


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def generate(facts: Collected, out: Path) -> None:
    """Writes all files of one minor."""
    kinds = kept_kinds(facts)
    everywhere, by_kind = constant_defaults(facts, kinds)
    roots = [row["type"] for row in kinds.values()]
    roots += [name for name in facts.types if "PartialObjectMetadata" in name or name in EXTRA_TYPES]
    types = {name: type_row(facts, name, everywhere) for name in sorted(facts.reachable(roots))}
    shutil.rmtree(out, ignore_errors=True)
    write_lines(out / "types.json", types)
    write_lines(out / "kinds.json", kind_rows(facts, kinds, by_kind))
    write_rows(out / "resources.json", resources(facts))
    write_rows(out / "groups.json", groups(facts))
    write_lines(out / "columns.json", facts.columns)
    write_lines(out / "features.json", histories(facts))
    write_lines(out / "structs.json", facts.structs)
    write_lines(out / "internal.json", facts.internal)
    write_lines(out / "policy.json", facts.policy)
    write_lines(out / "parameters.json", facts.parameters)
    named = set(map(schema_name, types))
    write_lines(out / "schemas.json", _drop(dict(sorted(facts.schemas.items())), *named))
    write_rows(out / "bootstrap.json", bootstrap_rows(facts))


#: The port of kube-apiserver without --secure-port.
SECURE_PORT = 6443


def bootstrap_rows(facts: Collected) -> Iterator[Any]:
    """Yields each initial object after the path of its collection, those of a collection in the order of their creation."""
    for path, objects in sorted(facts.bootstrap.items()):
        if path.endswith("/events"):  # events differ from one start to the next
            continue
        for obj in sorted(objects, key=lambda obj: int(obj["metadata"].get("resourceVersion") or 0)):
            made = without_server_values(obj)
            if path == "/api/v1/services":  # `kubernetes` leads to the port on which kube-apiserver listens
                made["spec"]["ports"] = [{**port, "targetPort": SECURE_PORT} for port in made["spec"]["ports"]]
            yield [path, made]


def keep_differences(folder: Path, base: Path) -> None:
    """Leaves in the folder of a minor what differs from the newest minor's: files, and in them entries."""
    for name in sorted({str(file.relative_to(each)) for each in (folder, base) for file in each.rglob("*.json")}):
        own, common = ((each / name, _content(each / name)) for each in (folder, base))
        if own[1] == common[1]:
            own[0].unlink(missing_ok=True)
        elif isinstance(own[1] if own[1] is not None else common[1], list):
            others = common[1] or []
            write_rows(own[0], [others.index(item) if item in others else item for item in own[1] or []])
        else:
            mine, others = own[1] or {}, common[1] or {}
            changed = {key: value for key, value in mine.items() if key not in others or others[key] != value}
            write_lines(own[0], dict(sorted({**changed, **dict.fromkeys(others.keys() - mine.keys())}.items())))


def _content(file: Path) -> Any:
    return json.loads(file.read_text()) if file.exists() else None


def main(arguments: list[str]) -> int:
    """Runs the command; see the module."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    generate_all(Path(arguments[0]), Path(data.__file__).parent)
    return 0


def generate_all(facts: Path, out: Path) -> None:
    """Writes the folders of all minors below `out`."""
    for minor in sorted(RELEASES, key=lambda name: name != NEWEST):
        folder = out / f"v{minor.replace('.', '_')}"
        generate(collect(facts, minor), folder)
        if minor != NEWEST:
            keep_differences(folder, out / f"v{NEWEST.replace('.', '_')}")


def collect(folder: Path, minor: str) -> Collected:
    """Reads the facts of a minor from a folder or an archive in it. Raises OSError."""
    archive = folder / f"v{minor}.tar.xz"
    if not archive.exists():
        return Collected(folder / f"v{minor}")
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(archive) as files:
        files.extractall(unpacked, filter="data")
        return Collected(Path(unpacked))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
