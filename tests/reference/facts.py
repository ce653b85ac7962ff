"""Collects what a live, fresh server of one minor says about its API: the facts that `fakekube/apimachinery/data` is made of.

`collect` asks a server for discovery, OpenAPI v3 without descriptions, table columns and the objects that it starts with;
the types come from `oracle facts` (facts.go). A minor's facts are one archive, `fixtures/facts/v1.36.tar.xz`, with:

* `types.json`: `types`, every Go API type with its fields in order (JSON name, type, pointer, omitempty, inline, protobuf
  tag, patch strategy and merge key; `customJSON` marks types with a form of their own, `alias` is the shape behind a named
  scalar, list or map), and `kinds`, by "group/version, Kind" the type, its `defaults` (the leaves that defaulting puts into
  an object whose every struct is present and whose every list has one empty item) and its `fieldLabels`.
* `discovery.json`: /api, /apis, every group and version, in the legacy and the aggregated form.
* `openapi/*.json`: OpenAPI v3 of every group version, and `openapi-index.json`, the list of them.
* `columns.json`: the table columns of every listable resource; `field` is the first field of OpenAPI with the same description.
* `parameters.json`: the names of the shared parameters of OpenAPI v2. A name ends in a hash of the parameter's description:
  where several differ in nothing else, each says where it is used (a method, or a subresource).
* `features.json`: the feature gates by name, each with its stage and whether it is on.
* `bootstrap.json`: the objects that a fresh kube-apiserver makes by itself, by the path of their collection.
* `features.txt`, `structs.txt`, `internal.txt`, `policy.txt`: the histories of the feature gates, the Go types that a pod template
  reaches, internal types, and the bootstrap policy as far as it depends on gates, as the programs recorders/ print them with the Go modules of the minor. (internal.txt of 1.33 is that of 1.34,
  since the program needs the package resource/v1.)
* `all/`: discovery, OpenAPI and columns of a server with all APIs and gates, where one was asked.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.differential.client import Client
from tests.differential.transports import HttpTransport

HERE = Path(__file__).parent
FOLDER = Path(__file__).parents[2] / "fixtures" / "facts"

Files = dict[str, bytes]
"""By name within the archive."""


def archive_of(minor: str) -> Path:
    """Where the facts of a minor are kept."""
    return FOLDER / f"v{minor}.tar.xz"


def collect(minor: str, url: str, oracle: str, everything: str = "") -> Files:
    """The facts of a fresh server of a minor, of the reference's binary, and of its Go modules.

    `everything` is the URL of a server with all APIs and gates; "" if none was asked.
    """
    found = {name: _printed(value) for name, value in _asked(url).items()}
    found["types.json"] = subprocess.run([oracle, "facts"], check=True, capture_output=True).stdout
    for program in ("features", "structs", "internal", "policy"):
        found[f"{program}.txt"] = _recorded(program, minor)
    if everything:
        kept = {name: value for name, value in _asked(everything).items() if name.startswith(_OF_EVERYTHING)}
        found |= {f"all/{name}": _printed(value) for name, value in kept.items()}
    return found


_OF_EVERYTHING = ("discovery.json", "columns.json", "openapi/")


def _recorded(program: str, minor: str) -> bytes:
    """What a program of recorders/ prints with the Go modules of a minor."""
    modules = HERE / f"v{minor}.mod"
    module_file = f"-modfile={modules if modules.exists() else HERE / 'go.mod'}"
    command = ["go", "run", "-trimpath", module_file, "-tags", f"v{minor}", f"./recorders/{program}"]
    return subprocess.run(command, cwd=HERE, check=True, stdout=subprocess.PIPE).stdout


def _asked(url: str) -> dict[str, Any]:
    client = Client(HttpTransport(url))
    try:
        return _of_server(client)
    finally:
        client.delete(f"/api/v1/namespaces/{client.ns}", silent=True)


def pack(files: Files, archive: Path) -> None:
    """Write an archive; the same files give the same bytes."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", format=tarfile.USTAR_FORMAT) as out:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            out.addfile(entry, io.BytesIO(data))


def _of_server(client: Client) -> dict[str, Any]:
    aggregated = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    legacy: dict[str, Any] = {root: client.get(root).json for root in ("/api", "/apis")}
    versions = [f"/api/{version}" for version in legacy["/api"]["versions"]]
    for group in legacy["/apis"]["groups"]:
        legacy[f"/apis/{group['name']}"] = client.get(f"/apis/{group['name']}").json
        versions += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    columns: dict[str, Any] = {}
    bootstrap: dict[str, Any] = {}
    for version in versions:
        legacy[version] = client.get(version).json
        for resource in legacy[version]["resources"]:
            if "/" not in resource["name"] and "list" in resource["verbs"]:
                path = f"{version}/{resource['name']}"
                columns[path] = _columns(client, path)
                bootstrap[path] = [i for i in client.get(path).get("items") or () if i["metadata"]["name"] != client.ns]
    index = client.get("/openapi/v3").json["paths"]
    documents = {name: _document(client, name, entry) for name, entry in index.items()}
    fields = _fields_by_description(documents)
    columns = {path: [_column(column, fields) for column in found or ()] for path, found in columns.items()}
    return {
        "discovery.json": {
            "legacy": legacy,
            "aggregated": {p: client.get(p, headers=aggregated).json for p in ("/api", "/apis")},
        },
        "columns.json": columns,
        "features.json": _features(client),
        "parameters.json": _parameters(client.get("/openapi/v2").json),
        "bootstrap.json": {path: items for path, items in bootstrap.items() if items},
        "openapi-index.json": sorted(index),
        **{f"openapi/{name.replace('/', '_')}.json": without_descriptions(document) for name, document in documents.items()},
    }


def _features(client: Client) -> dict[str, list[Any]]:
    """What a server that was started without feature gates says of them in its metrics."""
    text = client.get("/metrics", headers={"Accept": "text/plain"}).body.decode()
    found = re.findall(r'^kubernetes_feature_enabled\{name="(\w+)",stage="(\w*)"\} ([01])$', text, re.MULTILINE)
    return {name: [stage, on == "1"] for name, stage, on in found}


def _parameters(document: Any) -> dict[str, dict[str, list[str]]]:
    """By place and name of a parameter, the hashes in the names of the shared ones, and where each is used."""
    methods: dict[str, set[str]] = {}
    places: dict[str, set[str]] = {}
    for path, item in document["paths"].items():
        below = "/".join([step for step in path.split("/") if step and "{" not in step][-2:])
        for method, operation in item.items():
            for used in operation if method == "parameters" else operation.get("parameters", ()):
                if reference := used.get("$ref", ""):
                    shared = reference.rpartition("/")[2]
                    methods.setdefault(shared, set()).add(method)
                    places.setdefault(shared, set()).add(below)
    alike: dict[str, list[str]] = {}
    for shared, parameter in sorted(document["parameters"].items()):
        if parameter["in"] != "body":
            alike.setdefault(f"{parameter['in']} {parameter['name']}", []).append(shared)
    found: dict[str, dict[str, list[str]]] = {}
    for key, names in alike.items():
        where = methods if all(methods[one].isdisjoint(methods[other]) for one, other in combinations(names, 2)) else places
        name = key.partition(" ")[2]
        found[key] = {shared.removeprefix(f"{name}-"): sorted(where[shared]) if names[1:] else [] for shared in names}
    return found


def _columns(client: Client, path: str) -> Any:
    table = client.get(path, {"limit": "1"}, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    return table.get("columnDefinitions")


def _column(column: dict[str, Any], fields: dict[str, str]) -> Any:
    shown = without_descriptions(column)
    field = "" if column["name"] in _OF_METADATA else fields.get(column["description"], "")
    return {**shown, "field": field} if field else shown


#: Columns that each kind has of its metadata.
_OF_METADATA = ("Name", "Age", "Created At")
#: What OpenAPI adds to the description of a field.
_ENUM = "\n\nPossible enum values:"


def _fields_by_description(documents: dict[str, Any]) -> dict[str, str]:
    """By description, the first field that has it (`io.k8s.api.core.v1.ConfigMap.data`)."""
    found: dict[str, str] = {}
    for _, document in sorted(documents.items()):
        for name, schema in sorted(document["components"].get("schemas", {}).items()):
            for field, described in sorted(schema.get("properties", {}).items()):
                if text := described.get("description", "").partition(_ENUM)[0]:
                    found.setdefault(text, f"{name}.{field}")
    return found


def _document(client: Client, name: str, entry: dict[str, str]) -> Any:
    return client.get(f"/openapi/v3/{name}", entry["serverRelativeURL"].partition("?")[2]).json


def without_descriptions(value: Any, inside_properties: bool = False) -> Any:
    """The value without its descriptions; a property that is called `description` stays."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if inside_properties or k != "description" or not isinstance(v, str)}
        return {name: without_descriptions(member, name == "properties") for name, member in kept.items()}
    return [without_descriptions(item) for item in value] if isinstance(value, list) else value


def _printed(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
