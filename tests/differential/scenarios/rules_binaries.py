"""Protobuf and CBOR where JSON would say something else; the server needs `--feature-gates=CBORServingAndStorage=true`."""

from __future__ import annotations

import json
from typing import Any

from tests.differential.binary_answers import CBOR, PROTOBUF, binary
from tests.differential.client import Client
from tests.differential.definitions import definition, served
from tests.differential.registry import scenario
from tests.differential.steps import maps

DRY = {"dryRun": "All"}


def item(value: Any) -> bytes:
    """A CBOR item of texts, numbers, lists and maps with less than 24 members, and texts with less than 256 bytes."""
    if value is None or isinstance(value, bool):
        return b"\xf6" if value is None else b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return b"\x1b" + value.to_bytes(8, "big") if value >= 0 else b"\x3b" + (-1 - value).to_bytes(8, "big")
    if isinstance(value, str):
        return b"\x58" + bytes([len(value.encode())]) + value.encode()
    if isinstance(value, list):
        return bytes([0x80 + len(value)]) + b"".join(map(item, value))
    return bytes([0xA0 + len(value)]) + b"".join(item(part) for pair in value.items() for part in pair)


def body(value: Any) -> bytes:
    return b"\xd9\xd9\xf7" + item(value)


def note_head(client: Client, path: str, headers: dict[str, str]) -> None:
    """Sends a GET, and records status and form of the answer."""
    reply = client.transport.send("GET", path, None, headers)
    request = {"method": "GET", "path": path, "query": None, "accept": json.dumps(headers), "type": "", "body": None}
    kept = {name: reply.headers[name] for name in ("content-type", "content-encoding") if name in reply.headers}
    client.transcript.append({"request": request, "status": reply.status, "headers": kept})


@scenario
def quantities(client: Client) -> None:
    """A quantity is a text in CBOR, and no number."""
    path = f"/apis/storage.k8s.io/v1/namespaces/{client.ns}/csistoragecapacities"
    head = {"kind": "CSIStorageCapacity", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "a"}, "storageClassName": "s"}
    for size in (255, "1Gi", True, None, [], "x"):
        binary(client, "POST", path, CBOR, body({**head, "maximumVolumeSize": size}), DRY, ctype=CBOR)


@scenario
def errors_of_filters(client: Client) -> None:
    """In which form authentication, authorization and the router answer."""
    for path, headers in (
        ("/api/v1/namespaces/x/secrets", {"Authorization": "Bearer user-token"}),
        ("/api/v1/namespaces/x/secrets", {"Authorization": "Bearer nope"}),
        ("/apis/apps/v1/nope", {}),
        ("/apis/nope.io/v1/x", {}),
    ):
        for accept in (CBOR, f"{CBOR},application/json;q=0.1", PROTOBUF):
            note_head(client, path, {"Accept": accept, **headers})
    for ctype in (CBOR, "text/plain"):
        binary(client, "PATCH", f"{maps(client)}/a", CBOR, body({"data": {}}), DRY, ctype=ctype)


@scenario
def forms_of_discovery(client: Client) -> None:
    """Groups, versions and a custom resource: what of them is told in CBOR."""
    body = definition(client)
    group = body["spec"]["group"]
    with served(client, body) as path:
        for asked in (
            "/api",
            "/apis",
            "/apis/apps",
            "/apis/nope.io",
            "/apis/apps/v1",
            f"/apis/{group}",
            f"/apis/{group}/v1",
            f"{path}/a",
            f"{path}/a/nope",
        ):
            for accept in (CBOR, f"{CBOR};q=0.5,text/plain", "text/plain"):
                note_head(client, asked, {"Accept": accept})


@scenario
def compressed_documents(client: Client) -> None:
    """Which Accept-Encoding compresses OpenAPI, metrics and resources, each of which another library sends."""
    client.post(maps(client), {"metadata": {"name": "a"}, "data": {"a": "x" * 140_000}}, silent=True)
    for encoding in (
        "gzip", "GZIP", "gzip;q=0", "gzip;q=0.5", "gzip;q=1.0", "gzip;q=0.0, *", "*", "identity, gzip", "identity;q=0.5, gzip", "gzip;q=0.5, identity", "br, gzip", "gzip;x=1", "gzip;q=x", "gzip;q=2",
        "gzip;q=0.5;x=1, identity", "x-gzip", "gzip,", ",gzip", "gzip ; q=0.5", "gzip;q=0, gzip",
    ):  # fmt: skip
        for path in ("/openapi/v2", "/metrics", f"{maps(client)}/a"):
            note_head(client, path, {"Accept": "*/*", "Accept-Encoding": encoding})


@scenario
def values_of_any_form(client: Client) -> None:
    """Data of a ControllerRevision: their text is kept, and told in CBOR without it."""
    path = f"/apis/apps/v1/namespaces/{client.ns}/controllerrevisions"
    client.post(path, '{"metadata":{"name":"a"},"data":{"b": 1, "a":2.0,"c":[{"x": null}]},"revision":1}', silent=True)
    binary(client, "GET", f"{path}/a", CBOR)
    binary(client, "GET", path, CBOR)
    binary(client, "GET", f"{path}/a", PROTOBUF)
    same = client.get(f"{path}/a", headers={"Accept": PROTOBUF}, silent=True).body
    binary(client, "PUT", f"{path}/a", PROTOBUF, same, DRY, ctype=PROTOBUF)
    client.transcript[-1]["request"]["body"] = "what was read"
    head = {"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": {"name": "b"}, "revision": 1}
    for data in ({"b": 1, "a": "x"}, 5, "x", [1], None, {}):
        binary(client, "POST", path, CBOR, body({**head, "data": data}), DRY, ctype=CBOR)


@scenario
def options_of_deletions(client: Client) -> None:
    """Options in Protobuf that are of another kind, or of any version."""
    client.post(maps(client), {"metadata": {"name": "a"}}, silent=True)
    for version in (b"", b"v1", b"meta.k8s.io/v1", b"x/v9"):
        for kind in (b"", b"DeleteOptions", b"Pod"):
            names = b"\x0a" + bytes([len(version)]) + version + b"\x12" + bytes([len(kind)]) + kind
            options = b"\x08\x00\x2a\x03All"
            raw = b"k8s\x00\x0a" + bytes([len(names)]) + names + b"\x12" + bytes([len(options)]) + options
            client.delete(f"{maps(client)}/a", raw, ctype=PROTOBUF)
