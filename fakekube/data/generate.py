"""Makes the data of one minor from the facts that were collected from a real server of it.

    python -m fakekube.data.generate FACTS_DIR 1.36

FACTS_DIR holds a folder `v1.36` with `types.json` (what the compiled-in types say about themselves), `discovery.json`,
`columns.json`, `bootstrap.json` and `openapi/*.json` (what a fresh server says). The result is a folder `v1_36` beside
this file: JSON with one entry a line, so that two minors can be compared with `diff`; `fakekube/data/__init__.py`
tells what stands in it. Nothing in there is written by hand; the few rules that facts cannot tell stand below as tables.

Only what can be met is kept: the types of served kinds and their subresources, of the meta kinds (options, Status,
Table, WatchEvent …) and of the reviews that servers exchange with webhooks.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fakekube.data.shapes import property_schema, schema_name

__all__ = ["main"]

Row = dict[str, Any]

#: Kinds that are not served but met: what webhooks are sent, and versions that a subresource takes besides its own.
EXTRA_KINDS = (
    "admission.k8s.io/v1, AdmissionReview", "admission.k8s.io/v1beta1, AdmissionReview",
    "apiextensions.k8s.io/v1, ConversionReview", "apiextensions.k8s.io/v1beta1, ConversionReview",
    "apidiscovery.k8s.io/v2, APIGroupDiscoveryList", "apidiscovery.k8s.io/v2beta1, APIGroupDiscoveryList",
    "policy/v1beta1, Eviction", "extensions/v1beta1, Scale", "apps/v1beta1, Scale", "apps/v1beta2, Scale",
)

#: Groups whose every kind is kept.
META_GROUP_VERSIONS = ("meta.k8s.io/v1", "v1")

#: Defaults that depend on more than the field itself: the modules of their kinds apply them.
CONDITIONAL = frozenset({
    ("apps/v1.RollingUpdateDaemonSet", "maxSurge"), ("apps/v1.RollingUpdateDaemonSet", "maxUnavailable"),
    ("apps/v1.RollingUpdateDeployment", "maxSurge"), ("apps/v1.RollingUpdateDeployment", "maxUnavailable"),
    ("apps/v1.RollingUpdateStatefulSetStrategy", "partition"), ("apps/v1.StatefulSetUpdateStrategy", "type"),
    ("autoscaling/v2.HPAScalingRules", "selectPolicy"), ("autoscaling/v2.HPAScalingRules", "stabilizationWindowSeconds"),
    ("batch/v1.JobSpec", "backoffLimit"), ("batch/v1.JobSpec", "completions"), ("batch/v1.JobSpec", "parallelism"),
    ("batch/v1.JobSpec", "podReplacementPolicy"),
    ("core/v1.Container", "imagePullPolicy"), ("core/v1.EphemeralContainerCommon", "imagePullPolicy"),
    ("core/v1.ImageVolumeSource", "pullPolicy"), ("core/v1.ServiceSpec", "internalTrafficPolicy"),
    ("networking/v1.NetworkPolicySpec", "policyTypes"),
    ("resource/v1.DeviceSubRequest", "count"), ("resource/v1.ExactDeviceRequest", "count"),
    ("resource/v1.DeviceTaint", "timeAdded"),
})  # fmt: skip

#: Constant defaults that are structs: objects whose every struct is present cannot show them.
STRUCT_DEFAULTS: Mapping[tuple[str, str], Any] = {
    ("core/v1.PodSpec", "securityContext"): {},
    ("admissionregistration/v1.ValidatingWebhook", "namespaceSelector"): {},
    ("admissionregistration/v1.ValidatingWebhook", "objectSelector"): {},
    ("admissionregistration/v1.MutatingWebhook", "namespaceSelector"): {},
    ("admissionregistration/v1.MutatingWebhook", "objectSelector"): {},
    ("admissionregistration/v1.MatchResources", "namespaceSelector"): {},
    ("admissionregistration/v1.MatchResources", "objectSelector"): {},
    ("apps/v1.StatefulSetSpec", "persistentVolumeClaimRetentionPolicy"): {},
    ("apiextensions/v1.CustomResourceDefinitionSpec", "conversion"): {"strategy": "None"},
}

_PACKAGE_PREFIX = re.compile(r"^k8s\.io/(?:api/|apimachinery/pkg/(?:apis/)?|apiextensions-apiserver/pkg/apis/|kube-aggregator/pkg/apis/)")
_PATH_STEP = re.compile(r"\.[^.\[]+|\[\]")


def short_name(go_name: str) -> str:
    """`k8s.io/api/core/v1.Pod` as the tables above write it: `core/v1.Pod`."""
    return _PACKAGE_PREFIX.sub("", go_name)


class Facts:
    """The collected facts of one minor, and what follows from them."""

    def __init__(self, folder: Path) -> None:
        collected = json.loads((folder / "types.json").read_text())
        self.types: dict[str, Row] = collected["types"]
        self.kinds: dict[str, Row] = collected["kinds"]
        self.discovery = json.loads((folder / "discovery.json").read_text())
        self.columns = json.loads((folder / "columns.json").read_text())
        self.bootstrap = json.loads((folder / "bootstrap.json").read_text())
        self.schemas: dict[str, Row] = {}
        for document in sorted((folder / "openapi").glob("*.json")):
            self.schemas.update(json.loads(document.read_text())["components"].get("schemas", {}))
        self._shown_in: dict[str, Row] = {}
        for name in self.types:
            if schema_name(name) in self.schemas:
                self._note_inlined(name, self.schemas[schema_name(name)])

    def _note_inlined(self, name: str, schema: Row) -> None:
        for field in self.types[name].get("fields", ()):
            if field.get("inline"):
                self._shown_in.setdefault(field["type"], schema)
                self._note_inlined(field["type"], schema)

    def schema_showing(self, name: str) -> Row:
        """The schema that shows the fields of a type: its own, or that of a type that it is inlined in."""
        return self.schemas.get(schema_name(name)) or self._shown_in.get(name, {})

    def row(self, name: str) -> Row:
        """What is said of a type; nothing of one that has no name of its own."""
        return self.types.get(name, {})

    def underlying(self, name: str) -> str:
        """The type behind a named scalar, list or map; any other type itself."""
        return str(self.types.get(name, {}).get("alias") or name)

    def parts(self, name: str) -> Iterator[str]:
        """The named types that a type is made of."""
        row = self.types.get(name)
        if row is None:
            for inner in _inner_names(name):
                yield inner
            return
        if "alias" in row:
            yield from _inner_names(row["alias"])
        for field in row.get("fields", ()):
            yield from _inner_names(field["type"])

    def reachable(self, roots: Iterable[str]) -> set[str]:
        """All named types below the roots."""
        found: set[str] = set()
        pending = list(roots)
        while pending:
            name = pending.pop()
            if name not in found and name in self.types:
                found.add(name)
                pending.extend(self.parts(name))
        return found

    def fields(self, name: str) -> dict[str, tuple[str, Row]]:
        """The fields of a struct by JSON name, each with the struct that declares it (inlined or the struct itself)."""
        flat: dict[str, tuple[str, Row]] = {}
        for field in self.types[name].get("fields", ()):
            flat.update(self.fields(field["type"]) if field.get("inline") else {field["json"]: (name, field)})
        return flat

    def owner(self, root: str, path: str) -> tuple[str, str]:
        """The struct that declares the field that a path of `defaults` ends at, and the field."""
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
        """Is this the list of a kind?"""
        return name.endswith("List") and "items" in self.fields(name)

    def group_versions(self) -> list[str]:
        """What discovery serves, in its order."""
        legacy = self.discovery["legacy"]
        versions = list(legacy["/api"]["versions"])
        for group in legacy["/apis"]["groups"]:
            versions += [version["groupVersion"] for version in group["versions"]]
        return versions


def _inner_names(type_name: str) -> list[str]:
    """The named types in `map[a]b`, `[]c` …"""
    match = re.match(r"map\[([^\]]*)\](.*)", type_name)
    if match:
        return [*_inner_names(match[1]), *_inner_names(match[2])]
    return _inner_names(type_name[2:]) if type_name.startswith("[]") else [type_name]


def resources(facts: Facts) -> list[Row]:
    """A row for each served resource and subresource, in the order of discovery."""
    rows: list[Row] = []
    for group_version in facts.group_versions():
        path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        for listed in facts.discovery["legacy"][path]["resources"]:
            row: Row = {"in": group_version, "name": listed["name"], "kind": listed["kind"]}
            if "version" in listed:
                row["of"] = "/".join(filter(None, (listed.get("group"), listed["version"])))
            row["verbs"] = listed["verbs"]
            optional = {
                "singular": listed["singularName"], "namespaced": listed["namespaced"], "short": listed.get("shortNames"),
                "categories": listed.get("categories"), "hash": listed.get("storageVersionHash"),
            }  # fmt: skip
            rows.append(row | {key: value for key, value in optional.items() if value})
    return rows


def groups(facts: Facts) -> list[Row]:
    """The groups in the order of /apis, each with its versions, the preferred one first named."""
    return [
        {"name": group["name"], "versions": [v["version"] for v in group["versions"]], "preferred": group["preferredVersion"]["version"]}
        for group in facts.discovery["legacy"]["/apis"]["groups"]
    ]


def kept_kinds(facts: Facts) -> dict[str, Row]:
    """The kinds that can be met, by "group/version, Kind"."""
    served = set(facts.group_versions()) | set(META_GROUP_VERSIONS)
    return {
        name: row for name, row in facts.kinds.items()
        if name in EXTRA_KINDS or (name.partition(", ")[0] in served)
    }  # fmt: skip


def constant_defaults(facts: Facts, kinds: Mapping[str, Row]) -> tuple[dict[tuple[str, str], Any], dict[str, dict[str, Any]]]:
    """The constant defaults: those that hold wherever the struct occurs, by (struct, field); the others by kind and path."""
    shown: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    reach: dict[str, set[str]] = {}
    for kind, row in kinds.items():
        if facts.is_list(row["type"]):
            continue
        reach[kind] = facts.reachable([row["type"]])
        for path, value in row.get("defaults", {}).items():
            owner = facts.owner(row["type"], path)
            if (short_name(owner[0]), owner[1]) not in CONDITIONAL:
                shown[owner][kind][path.removesuffix("[]")] = [value] if path.endswith("[]") else value
    everywhere: dict[tuple[str, str], Any] = {}
    by_kind: dict[str, dict[str, Any]] = defaultdict(dict)
    for owner, places in shown.items():
        # Kinds without any default have no defaulting at all (PodStatusResult and the like).
        kinds_with_owner = [kind for kind, types in reach.items() if owner[0] in types and kinds[kind].get("defaults")]
        values = [value for paths in places.values() for value in paths.values()]
        if len(places) == len(kinds_with_owner) and all(value == values[0] for value in values):
            everywhere[owner] = values[0]
            continue
        for kind, paths in places.items():
            by_kind[kind].update(paths)
    by_short_name = {short_name(name): name for name in facts.types}
    for (struct, field), value in STRUCT_DEFAULTS.items():
        everywhere[by_short_name[struct], field] = value
    return everywhere, by_kind


def kind_rows(facts: Facts, kinds: Mapping[str, Row], by_kind: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By group version and kind: the type, or all that is said of the kind. Kinds that are not kept are named only."""
    table: dict[str, dict[str, Any]] = defaultdict(dict)
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


def type_row(facts: Facts, name: str, defaults: Mapping[tuple[str, str], Any]) -> Row:
    """What is kept of one type; see `fakekube/data/__init__.py` for the keys."""
    known = facts.types[name]
    schema = facts.schemas.get(schema_name(name), {})
    row: Row = {}
    if "alias" in known:
        row["alias"] = known["alias"]
    if known.get("customJSON"):
        row["custom"] = True
    properties = facts.schema_showing(name).get("properties", {})
    required = facts.schema_showing(name).get("required", [])
    if known.get("fields") and not known.get("customJSON"):
        row["fields"] = {
            ("+" + str(position) if field.get("inline") else field["json"]): field_row(facts, name, field, defaults, properties, required)
            for position, field in enumerate(known["fields"])
        }
    for key, short in (("x-kubernetes-map-type", "map"), ("x-kubernetes-unions", "unions"), ("x-kubernetes-group-version-kind", "gvk")):
        if key in schema and not (key.endswith("kind") and short_name(name) in ("meta/v1.DeleteOptions", "meta/v1.WatchEvent")):
            row[short] = schema[key]
    if schema_name(name) in facts.schemas:
        plain = "properties" in schema or schema == {"type": "object"}
        row["schema"] = True if plain else schema
    return row


def field_row(
    facts: Facts, owner: str, field: Row, defaults: Mapping[tuple[str, str], Any], properties: Mapping[str, Row], required: list[str]
) -> Row:
    """What is kept of one field."""
    name = field["json"]
    row: Row = {"t": ("*" if field.get("pointer") else "") + field["type"]}
    if not field.get("inline"):
        omitted = ("e" if field.get("omitempty") else "") + ("z" if field.get("omitzero") else "")
        if not omitted:
            row["o"] = 0
        elif omitted != "e":
            row["o"] = omitted
    protobuf = field.get("protobuf", "").split(",")
    if len(protobuf) > 1:
        row["n"] = int(protobuf[1])
        if protobuf[0] != "bytes":
            row["w"] = protobuf[0]
    if field.get("patchStrategy"):
        row["s"] = field["patchStrategy"]
    if field.get("patchMergeKey"):
        row["k"] = field["patchMergeKey"]
    if name in required:
        row["r"] = 1
    if (owner, name) in defaults:
        row["d"] = defaults[owner, name]
    actual = properties.get(name)
    if actual is not None:
        items = actual.get("items") or actual.get("additionalProperties") or {}
        if actual.get("x-kubernetes-list-type", "atomic") != "atomic":
            row["l"] = actual["x-kubernetes-list-type"]
        elif "x-kubernetes-list-type" in actual:
            row["l"] = "atomic"
        if "x-kubernetes-list-map-keys" in actual:
            row["m"] = actual["x-kubernetes-list-map-keys"]
        if "x-kubernetes-map-type" in actual:
            row["g"] = actual["x-kubernetes-map-type"]
        if "enum" in actual:
            row["e"] = actual["enum"]
        elif "enum" in items:
            row["e"] = items["enum"]
        if "default" in actual and property_schema(row, facts.row).get("default") != actual["default"]:
            row["v"] = actual["default"]
        if property_schema(row, facts.row) != actual:
            row["x"] = actual
    return row


def strip_server_values(obj: Row) -> Row:
    """An object without what every start makes anew: uid, revision and times."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "resourceVersion", "creationTimestamp")}
    if "managedFields" in metadata:
        metadata["managedFields"] = [{k: v for k, v in entry.items() if k != "time"} for entry in metadata["managedFields"]]
    return {**obj, "metadata": metadata}


def write_lines(path: Path, value: Mapping[str, Any]) -> None:
    """A JSON object with one line an entry."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{_compact(key)}: {_compact(entry)}" for key, entry in value.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """A JSON list with one line an item."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(_compact(row) for row in rows) + "\n]\n")


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def generate(facts: Facts, out: Path) -> None:
    """Write all files of one minor."""
    kinds = kept_kinds(facts)
    everywhere, by_kind = constant_defaults(facts, kinds)
    packages: dict[str, dict[str, Row]] = defaultdict(dict)
    for name in sorted(facts.reachable(row["type"] for row in kinds.values())):
        package, _, base = name.rpartition(".")
        packages[package][base] = type_row(facts, name, everywhere)
    shutil.rmtree(out, ignore_errors=True)
    for package, rows in packages.items():
        write_lines(out / "types" / f"{package.replace('/', '_')}.json", rows)
    write_lines(out / "kinds.json", kind_rows(facts, kinds, by_kind))
    write_rows(out / "resources.json", resources(facts))
    write_rows(out / "groups.json", groups(facts))
    write_lines(out / "columns.json", facts.columns)
    named = {schema_name(f"{package}.{base}") for package, rows in packages.items() for base in rows}
    write_lines(out / "schemas.json", {name: schema for name, schema in sorted(facts.schemas.items()) if name not in named})
    for path, objects in facts.bootstrap.items():
        write_rows(out / "bootstrap" / f"{path.strip('/').replace('/', '_')}.json", map(strip_server_values, objects))


def main(arguments: list[str]) -> int:
    """The command; see the module."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    facts_dir, minor = arguments
    out = Path(__file__).parent / f"v{minor.replace('.', '_')}"
    generate(Facts(Path(facts_dir) / f"v{minor}"), out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
