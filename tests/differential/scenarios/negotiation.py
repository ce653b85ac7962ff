"""What form an answer takes and what forms a body may have: Accept, Content-Type, tables, metadata only, YAML, CBOR, Protobuf, gzip."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib  # its gzip header is the same in every version of Python
from collections.abc import Iterator
from typing import Any

from tests.differential import sample_objects
from tests.differential.binary_answers import CBOR, PROTOBUF, binary, cbor_answer, keep, protobuf_answer, wire
from tests.differential.client import JSON, MERGE, PARTIAL, PARTIAL_LIST, TABLE, Client
from tests.differential.definitions import definition, make, served
from tests.differential.registry import scenario

YAML = "application/yaml"
AGES = {"Age", "Last Seen", "First Seen", "Created At", "Last Schedule", "Duration"}


def core(c: Client, what: str) -> str:
    return f"/api/v1/namespaces/{c.ns}/{what}"


def config_map(c: Client, name: str = "m", **fields: Any) -> str:
    c.post(core(c, "configmaps"), {"metadata": {"name": name, "labels": {"app": "a"}}, "data": {"k": "v"}, **fields}, silent=True)
    return core(c, f"configmaps/{name}")


def table(c: Client, path: str, accept: str = TABLE, query: Any = None, **kw: Any) -> None:
    """Ask for a table and record it with its ages masked."""
    reply = c.get(path, query, headers={"Accept": accept}, silent=True, **kw)
    seen = reply.json
    if isinstance(seen, dict) and seen.get("kind") == "Table":
        aged = [i for i, column in enumerate(seen["columnDefinitions"]) if column["name"] in AGES]
        for row in seen.get("rows") or []:
            for i in aged:
                if isinstance(row["cells"][i], str) and re.fullmatch(r"(\d+[ywdhms])+", row["cells"][i]):
                    row["cells"][i] = "<age>"
    keep(c, "GET", path, query, None, accept, "", reply, seen if seen is not None else reply.body.decode("latin-1"))


WIDGET_COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "how big"},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
    {"name": "Ratio", "type": "number", "format": "double", "jsonPath": ".spec.ratio"},
    {"name": "Wide", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    {"name": "First", "type": "string", "jsonPath": ".spec.parts[0].id"},
    {"name": "All", "type": "string", "jsonPath": ".spec.parts[*].id"},
    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
    {"name": "Map", "type": "string", "jsonPath": ".spec.options"},
    {"name": "Wrong", "type": "integer", "jsonPath": ".spec.color"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


@contextlib.contextmanager
def widgets(c: Client) -> Iterator[tuple[str, str]]:
    """A definition with columns and the scale subresource, and an object of it; yields the collection and the group."""
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    version = {"subresources": {"status": {}, "scale": scale}, "additionalPrinterColumns": WIDGET_COLUMNS}
    body = definition(c, version=version, prefix="n")
    spec = {
        "size": 4,
        "flag": False,
        "ratio": 0.5,
        "color": "blue",
        "parts": [{"id": "a"}, {"id": "b"}],
        "when": "never",
        "options": {"o": 1},
        "deep": [None, 1.5, True, {"x": []}],
    }
    with served(c, body) as collection:
        widget = make(body, "w", spec=spec)
        widget["metadata"]["labels"] = {"app": "a"}
        c.post(collection, widget, silent=True)
        yield collection, body["spec"]["group"]


# ---------------------------------------------------------------- Accept

ACCEPTS = [
    "*/*",
    "application/*",
    "application/json",
    "text/plain",
    "text/html",
    "*",
    "",
    "application/json;q=0.5",
    "application/yaml;q=0.5,application/json;q=0.1",
    "application/json;q=0,application/yaml",
    "application/json;q=x",
    "text/html, application/json",
    "text/html;q=0.9, */*;q=0.1",
    "application/xml",
    "application/json, */*",
    "application/json; charset=utf-8",
    "application/json;unknown=1",
    "application/json;pretty=1",
    "application/json;pretty=true",
    "application/json;pretty=0",
    "application/json;stream=watch",
    "application/yaml;charset=utf-8",
    "Application/JSON",
    " application/json ",
    "application/json,",
    ",",
    ";",
    "application",
    "application/",
    "/json",
    "application/vnd.kubernetes.protobuf;q=0",
    "application/yaml;pretty=1",
    "application/json;as=Nope;v=v1;g=meta.k8s.io",
    "application/json;as=Table",
    "application/json;as=Table;v=v1",
    "application/json;as=Table;g=meta.k8s.io",
    "application/json;as=Table;v=v2;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=other",
    "application/json;v=v1;g=meta.k8s.io",
    "application/json;as=;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.1,application/json",
]


@scenario
def accept_of_a_get(c: Client) -> None:
    """Which Accept headers a GET of an object takes; 406 lists what there is."""
    path = config_map(c)
    for accept in ACCEPTS:
        reply = c.get(path, headers={"Accept": accept}, silent=True)
        raw = reply.body
        keep(
            c,
            "GET",
            path,
            None,
            None,
            accept,
            "",
            reply,
            protobuf_answer(raw)
            if raw[:1] == b"k"
            else cbor_answer(raw)
            if raw[:1] == b"\xd9"
            else reply.json
            if raw[:2] != b"{\n" and reply.json is not None
            else raw.decode("latin-1"),
        )


@scenario
def accept_of_a_list(c: Client) -> None:
    """The same for a collection."""
    config_map(c)
    for accept in ACCEPTS[:12] + ACCEPTS[31:]:
        c.get(core(c, "configmaps"), {"labelSelector": "app=a"}, headers={"Accept": accept})


@scenario
def no_accept_at_all(c: Client) -> None:
    """A request without an Accept header is answered in JSON."""
    path = config_map(c)
    headers = {k: v for k, v in c.headers().items() if k != "Accept"}
    for target in (path, core(c, "configmaps"), core(c, "configmaps/absent"), "/version", "/api"):
        reply = c.transport.send("GET", target, None, headers)
        keep(c, "GET", target, None, None, "none", "", reply, reply.json if target != "/api" else sorted(reply.json))


@scenario
def accept_of_errors(c: Client) -> None:
    """Errors come in the wanted form; where there is none of it, in JSON."""
    for accept in (
        "application/yaml",
        "text/plain",
        "*/*",
        TABLE,
        PARTIAL,
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "text/html",
        "",
        "application/json;pretty=1",
    ):
        c.get(core(c, "configmaps/absent"), headers={"Accept": accept})
    c.get(core(c, "nopes"), headers={"Accept": YAML})
    c.get("/nope", headers={"Accept": YAML})
    c.post(core(c, "configmaps"), {"metadata": {"name": "Bad Name"}}, headers={"Accept": YAML})
    c.post(core(c, "configmaps"), "{", headers={"Accept": YAML})
    for accept in (CBOR, PROTOBUF):
        binary(c, "GET", core(c, "configmaps/absent"), accept)
        binary(c, "GET", core(c, "nopes"), accept)
        binary(c, "POST", core(c, "configmaps"), accept, {"metadata": {"name": "Bad Name"}})
        binary(c, "DELETE", core(c, "configmaps/absent"), accept)


@scenario
def accept_of_writes(c: Client) -> None:
    """POST, PUT and DELETE negotiate too; an unacceptable Accept does not stop the decoder first."""
    for number, accept in enumerate((YAML, TABLE, PARTIAL, "text/plain", "application/json;as=Nope;v=v1;g=meta.k8s.io", "*/*")):
        name = f"m{number}"
        c.post(
            core(c, "configmaps"), {"metadata": {"name": name}, "data": {"k": "v"}}, headers={"Accept": accept}
        ) if "Table" not in accept else None
        c.get(core(c, f"configmaps/{name}"))
        c.put(
            core(c, f"configmaps/{name}"), {"metadata": {"name": name}, "data": {"k": "w"}}, headers={"Accept": accept}
        ) if "Table" not in accept else None
        c.delete(core(c, f"configmaps/{name}"), headers={"Accept": accept})


@scenario
def accept_of_meta_paths(c: Client) -> None:
    """Discovery and version under several Accept headers."""
    for path in ("/api/v1", "/version", "/apis/apps", "/apis/apps/v1", "/healthz", "/nope"):
        for accept in (YAML, "text/plain", "*/*", TABLE, PARTIAL):
            reply = c.get(path, headers={"Accept": accept}, silent=True)
            keep(
                c,
                "GET",
                path,
                None,
                None,
                accept,
                "",
                reply,
                reply.json
                if isinstance(reply.json, dict) and reply.json.get("kind") == "Status"
                else reply.body[:60].decode("latin-1"),
            )


# ---------------------------------------------------------------- Content-Type


@scenario
def content_type_of_a_post(c: Client) -> None:
    """Which types a body may have; the others are 415; without one it is JSON."""
    for number, ctype in enumerate(
        (
            "",
            JSON,
            "application/json; charset=utf-8",
            "application/json;charset=latin-1",
            "Application/JSON",
            "text/plain",
            "text/json",
            "application/*",
            "*/*",
            "nonsense",
            ";",
            "application/json, text/plain",
            "application/x-www-form-urlencoded",
            "application/yaml;x=y",
            "application/json-patch+json",
            MERGE,
            "multipart/form-data",
        )
    ):
        c.post(core(c, "configmaps"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}"}}, ctype=ctype)


@scenario
def content_type_that_lies(c: Client) -> None:
    """A body in another form than its type says."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yam\ndata:\n  k: v\n"
    for ctype in (JSON, "", YAML, CBOR, PROTOBUF):
        c.post(core(c, "configmaps"), text, ctype=ctype)
    for ctype in (YAML, CBOR, PROTOBUF):
        c.post(core(c, "configmaps"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}}, ctype=ctype)
    for raw in (
        b"",
        b"k8s\x00",
        b"k8s\x00\x0a\x00",
        b"k8s\x00garbage",
        b"\xd9\xd9\xf7",
        b"\xd9\xd9\xf7\xa0",
        b"\xa0",
        b"\xff",
        b"\xd9\xd9\xf7\xa1\x41a",
    ):
        for ctype in (CBOR, PROTOBUF):
            c.post(core(c, "configmaps"), raw, ctype=ctype)


@scenario
def bodies_that_are_no_object(c: Client) -> None:
    """JSON and YAML bodies that are not one object."""
    for raw in (
        b"",
        b"null",
        b"5",
        b"[]",
        b'"x"',
        b"{",
        b"{} {}",
        b'{"kind":"ConfigMap"}',
        b'{"apiVersion":"v1"}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"metadata":{"name":"b"}}',
        b'{"KIND":"ConfigMap","apiVersion":"v1","metadata":{"name":"case"}}',
        b'\xef\xbb\xbf{"metadata":{"name":"bom"}}',
        b'{"metadata":{"name":"u"},"data":{"k":"\\u00e9\\ud83d\\ude00"}}',
        b'{"metadata":{"name":"ctl"},"data":{"k":"a\tb"}}',
        b'{"metadata":{"name":"bad"},"data":{"k":"\xff"}}',
        b'{"metadata":{"name":"trail"},}',
        b"// comment\n{}",
    ):
        c.post(core(c, "configmaps"), raw)
    for raw in (
        b"",
        b"null",
        b"- a\n",
        b"a: b\n",
        b"metadata: {name: y1}\n",
        b"metadata:\n\tname: x\n",
        b"metadata: {name: y2}\ndata: {k: yes}\n",
        b"metadata: {name: y3}\ndata: {k: 1}\n",
        b"%YAML 1.1\n---\nmetadata: {name: y4}\n",
        b"metadata: {name: y5}\n---\nmetadata: {name: y6}\n",
        b"metadata: {name: y7, name: y8}\n",
        b"metadata: {name: y9}\n...\n",
        b"&a metadata: {name: &n y10}\ndata: {k: *n}\n",
        b"!!binary x",
        b'{"metadata": {"name": "y11"}}',
    ):
        c.post(core(c, "configmaps"), raw, ctype=YAML)


@scenario
def yaml_round(c: Client) -> None:
    """Create, read, list and fail in YAML; strings that YAML would take for something else are quoted."""
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yam\n  labels: {a: 'true', n: \"1\"}\ndata:\n  bool: 'yes'\n  number: '0x1f'\n  'null': 'null'\n  empty: ''\n  lines: |\n    one\n    two\n"
        "  space: ' x '\n  colon: 'a: b'\n  hash: 'a #b'\n  date: '2001-01-01'\n  quote: \"it's\"\n  unicode: é\n  long: '"
        + "word " * 30
        + "'\n"
    )
    c.post(core(c, "configmaps"), text, ctype=YAML, headers={"Accept": YAML})
    c.get(core(c, "configmaps/yam"), headers={"Accept": YAML})
    c.get(core(c, "configmaps/yam"))
    c.get(core(c, "configmaps"), {"fieldSelector": "metadata.name=absent"}, headers={"Accept": YAML})
    c.put(core(c, "configmaps/yam"), "metadata: {name: yam}\ndata: {a: b}\n", ctype=YAML, headers={"Accept": YAML})
    c.delete(core(c, "configmaps/yam"), "dryRun: [All]\n", ctype=YAML, headers={"Accept": YAML})
    c.delete(core(c, "configmaps/yam"), headers={"Accept": YAML})
    c.get(core(c, "configmaps"), {"watch": "1", "timeoutSeconds": "1"}, headers={"Accept": YAML})


@scenario
def pretty(c: Client) -> None:
    """`pretty` asks for indented JSON; a browser or curl gets it by its user agent? Its bytes are kept."""
    path = config_map(c)
    for query, headers in (
        (None, {}),
        ({"pretty": "true"}, {}),
        ({"pretty": "1"}, {}),
        ({"pretty": "false"}, {}),
        ({"pretty": "0"}, {}),
        ({"pretty": ""}, {}),
        ({"pretty": "x"}, {}),
        (None, {"User-Agent": "curl/8.1"}),
        (None, {"User-Agent": "Mozilla/5.0"}),
        (None, {"User-Agent": "Wget/1.2"}),
        (None, {"Accept": "application/json;pretty=1"}),
        ({"pretty": "false"}, {"User-Agent": "curl/8.1"}),
    ):
        reply = c.get(path, query, headers=headers, silent=True)
        keep(c, "GET", path, query, None, str(headers), "", reply, {"text": reply.body.decode()})
    for query in (None, {"pretty": "true"}):
        reply = c.get(core(c, "configmaps/absent"), query, silent=True)
        keep(c, "GET", core(c, "configmaps/absent"), query, None, JSON, "", reply, {"text": reply.body.decode()})


# ---------------------------------------------------------------- CBOR and Protobuf


@scenario
def cbor_answers(c: Client) -> None:
    """CBOR of an object, a list, a table, metadata, an error, a create and a delete."""
    path = config_map(c, binaryData={"b": "AAH/"})
    binary(c, "GET", path, CBOR)
    binary(c, "GET", core(c, "configmaps"), CBOR, query={"labelSelector": "app=a"})
    binary(c, "GET", core(c, "configmaps"), CBOR, query={"labelSelector": "app=none"})
    binary(c, "GET", path, CBOR + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    binary(
        c,
        "GET",
        core(c, "configmaps"),
        CBOR + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        query={"labelSelector": "app=a"},
    )
    binary(c, "GET", path, CBOR + ", application/json")
    binary(c, "POST", core(c, "configmaps"), CBOR, {"metadata": {"name": "n"}, "data": {"x": "é"}})
    binary(c, "PATCH", path, CBOR, {"data": {"k": "2"}}, ctype=MERGE)
    binary(c, "DELETE", path, CBOR)
    binary(c, "GET", "/api/v1/namespaces/default/services/kubernetes", CBOR, query={"resourceVersion": "x"})


@scenario
def cbor_bodies(c: Client) -> None:
    """CBOR bodies: byte strings, text strings, with and without the self-describing tag, duplicates, floats, unknown fields."""

    def text(s: str) -> bytes:
        return bytes([0x60 + len(s)]) + s.encode() if len(s) < 24 else b"\x78" + bytes([len(s)]) + s.encode()

    def octets(s: str) -> bytes:
        return bytes([0x40 + len(s)]) + s.encode()

    def document(name: str, put: Any = text, data: bytes = b"\xa1\x61k\x61v", extra: bytes = b"", members: int = 4) -> bytes:
        return (
            bytes([0xA0 + members])
            + put("apiVersion")
            + put("v1")
            + put("kind")
            + put("ConfigMap")
            + put("metadata")
            + b"\xa1"
            + put("name")
            + put(name)
            + put("data")
            + data
            + extra
        )

    tag = b"\xd9\xd9\xf7"
    for raw in (
        tag + document("c1"),
        document("c2"),
        tag + document("c3", octets),
        tag + document("c4", data=b"\xa2\x61k\x61v\x61k\x61w"),
        tag + document("c5", data=b"\xa1\x61k\x05"),
        tag + document("c6", extra=text("unknown") + b"\x01", members=5),
        tag + document("c7", data=b"\xf6"),
        tag + document("c8", data=b"\xbf\x61k\x61v\xff"),
        tag + document("c9") + b"\x00",
        tag + document("c10", data=b"\xa1\x61k\xf5"),
        tag + document("c11", data=b"\xa1\x01\x61v"),
        tag + document("c12", data=b"\xa1\x61k\x62\xff\xfe"),
        tag + b"\x80",
        tag + b"\x61x",
        tag + document("c13")[:-1],
    ):
        c.post(core(c, "configmaps"), raw, ctype=CBOR)
    c.post(
        core(c, "configmaps"),
        tag + document("c14", extra=text("unknown") + b"\x01", members=5),
        {"fieldValidation": "Strict"},
        ctype=CBOR,
    )
    c.put(core(c, "configmaps/c1"), tag + document("c1", data=b"\xa1\x61k\x61w"), ctype=CBOR)
    c.patch(
        core(c, "configmaps/c1"),
        tag + document("c1", data=b"\xa1\x61k\x61x"),
        "application/apply-patch+cbor",
        {"fieldManager": "m", "force": "true"},
    )
    c.patch(core(c, "configmaps/c1"), tag + document("c1"), CBOR)
    c.delete(core(c, "configmaps/c1"), tag + b"\xa1" + text("gracePeriodSeconds") + b"\x00", ctype=CBOR)


@scenario
def protobuf_answers(c: Client) -> None:
    """Protobuf of an object, a list, metadata, an error, a create, a patch and a delete."""
    path = config_map(c, binaryData={"b": "AAH/"})
    binary(c, "GET", path, PROTOBUF)
    binary(c, "GET", core(c, "configmaps"), PROTOBUF, query={"labelSelector": "app=a"})
    binary(c, "GET", core(c, "configmaps"), PROTOBUF, query={"labelSelector": "app=none"})
    binary(c, "GET", path, PROTOBUF + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    binary(
        c,
        "GET",
        core(c, "configmaps"),
        PROTOBUF + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        query={"labelSelector": "app=a"},
    )
    binary(c, "GET", path, PROTOBUF + ", application/json")
    binary(c, "POST", core(c, "configmaps"), PROTOBUF, {"metadata": {"name": "n"}, "data": {"x": "é"}})
    binary(c, "PATCH", path, PROTOBUF, {"data": {"k": "2"}}, ctype=MERGE)
    binary(c, "DELETE", path, PROTOBUF)
    binary(c, "GET", path, PROTOBUF + ";charset=utf-8")
    binary(c, "GET", "/api/v1", PROTOBUF)
    binary(c, "GET", "/version", PROTOBUF)


@scenario
def protobuf_of_a_deployment(c: Client) -> None:
    """A deep object in Protobuf: quantities, int-or-string, times, maps."""
    _, plural, _, body, _ = sample_objects.KINDS["Deployment"]
    path = f"/apis/apps/v1/namespaces/{c.ns}/{plural}"
    binary(c, "POST", path, PROTOBUF, {"metadata": {"name": "d"}, **{k: v for k, v in body.items() if k != "metadata"}})
    binary(c, "GET", path + "/d", PROTOBUF)
    binary(c, "GET", path + "/d/scale", PROTOBUF)
    binary(c, "GET", path + "/d", CBOR)


@scenario
def protobuf_bodies(c: Client) -> None:
    """Protobuf bodies: a whole object, a wrong kind, an empty envelope, JSON inside, truncated."""

    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    def envelope(kind: bytes, raw: bytes, version: bytes = b"v1", more: bytes = b"") -> bytes:
        return b"k8s\x00" + field(1, field(1, version) + field(2, kind)) + field(2, raw) + more

    def thing(name: bytes) -> bytes:
        return field(1, field(1, name)) + field(2, field(1, b"k") + field(2, b"v"))

    for raw in (
        envelope(b"ConfigMap", thing(b"p1")),
        envelope(b"Secret", thing(b"p2")),
        envelope(b"", thing(b"p3"), b""),
        envelope(b"ConfigMap", thing(b"p4"), b"v2"),
        envelope(b"ConfigMap", thing(b"p5"))[:-1],
        envelope(b"ConfigMap", b'{"metadata":{"name":"p6"}}', more=field(4, b"application/json")),
        envelope(b"ConfigMap", thing(b"p7"), more=field(3, b"gzip")),
        envelope(b"ConfigMap", thing(b"p8") + field(15, b"x")),
        envelope(b"ConfigMap", b""),
        b"k8s\x01" + envelope(b"ConfigMap", thing(b"p9"))[4:],
        envelope(b"ConfigMap", thing(b"p10") + b"\xff"),
        envelope(b"ConfigMap", field(1, field(1, b"\xff\xfe"))),
    ):
        c.post(core(c, "configmaps"), raw, ctype=PROTOBUF)
    c.put(core(c, "configmaps/p1"), envelope(b"ConfigMap", thing(b"p1")), ctype=PROTOBUF)
    c.post(
        core(c, "configmaps"),
        envelope(b"ConfigMap", thing(b"p11") + field(15, b"x")),
        {"fieldValidation": "Strict"},
        ctype=PROTOBUF,
    )
    c.patch(core(c, "configmaps/p1"), envelope(b"ConfigMap", thing(b"p1")), PROTOBUF)


@scenario
def watches_in_other_forms(c: Client) -> None:
    """The content type of a watch in YAML, CBOR, Protobuf, tables and metadata; the first event of each."""
    config_map(c)
    path = core(c, "configmaps")
    for accept in (
        CBOR,
        "application/cbor-seq",
        PROTOBUF,
        PROTOBUF + ";stream=watch",
        CBOR + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ):
        query = {"watch": "1", "timeoutSeconds": "1", "labelSelector": "app=a"}
        reply = c.get(path, query, headers={"Accept": accept}, silent=True)
        raw, seen = reply.body, reply.json
        if reply.json is None and "cbor" in reply.headers.get("content-type", ""):
            seen = cbor_answer(raw)
        elif reply.json is None and "protobuf" in reply.headers.get("content-type", ""):
            frames = []
            while len(raw) >= 4:
                size = int.from_bytes(raw[:4], "big")
                frames.append(wire(raw[4 : 4 + size]) if raw[4:8] != b"k8s\x00" else protobuf_answer(raw[4 : 4 + size]))
                raw = raw[4 + size :]
            seen = {"frames": frames}
        keep(c, "GET", path, query, None, accept, "", reply, seen if seen is not None else reply.body.decode("latin-1"))
    for accept in (PARTIAL, "application/json;stream=watch", "application/json;stream=nope", "text/plain", "*/*"):
        c.watch(path, {"labelSelector": "app=a"}, headers={"Accept": accept})


@scenario
def custom_resources_in_other_forms(c: Client) -> None:
    """Custom resources have JSON, YAML and CBOR but no Protobuf."""
    with widgets(c) as (path, group):
        for accept in (
            YAML,
            PROTOBUF + ",application/json",
            "*/*",
            "application/*",
            "text/plain",
            PARTIAL,
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        ):
            c.get(path + "/w", headers={"Accept": accept}) if "Table" not in accept else table(c, path + "/w", accept)
        for accept in (PROTOBUF, CBOR):
            binary(c, "GET", path + "/w", accept)
            binary(c, "GET", path, accept)
            binary(c, "GET", path + "/absent", accept)
        binary(c, "GET", path + "/w", PROTOBUF + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
        c.get(path, headers={"Accept": PARTIAL_LIST})
        c.post(path, f"apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: yam}}\nspec: {{size: 1}}\n", ctype=YAML)
        c.post(
            path,
            {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "t"}, "spec": {"size": 1}},
            ctype="text/plain",
        )
        c.post(path, {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "n"}, "spec": {"size": 1}}, ctype="")
        c.post(path, {"metadata": {"name": "nameless"}, "spec": {"size": 1}})
        c.get(path + "/w/scale", headers={"Accept": YAML})
        binary(c, "GET", path + "/w/scale", PROTOBUF)


# ---------------------------------------------------------------- metadata only


@scenario
def metadata_only(c: Client) -> None:
    """PartialObjectMetadata of objects, PartialObjectMetadataList of collections, and the two confused."""
    path = config_map(c)
    for accept in (
        PARTIAL,
        PARTIAL_LIST,
        PARTIAL.split(",")[0],
        PARTIAL_LIST.split(",")[0],
        PARTIAL.replace("v=v1", "v=v1beta1"),
        PARTIAL.replace("v=v1", "v=v2"),
        "application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=apps",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io;pretty=1",
    ):
        c.get(path, headers={"Accept": accept})
        c.get(core(c, "configmaps"), {"labelSelector": "app=a"}, headers={"Accept": accept})
    c.get(core(c, "configmaps/absent"), headers={"Accept": PARTIAL})
    c.watch(core(c, "configmaps"), {"labelSelector": "app=a"}, headers={"Accept": PARTIAL})


# ---------------------------------------------------------------- gzip


@scenario
def gzip_from_128_kib(c: Client) -> None:
    """Answers over 128 KiB are compressed if gzip is accepted; small ones are not."""
    c.post(core(c, "configmaps"), {"metadata": {"name": "big"}, "data": {"k": "x" * 140_000}}, silent=True)
    c.post(core(c, "configmaps"), {"metadata": {"name": "small"}, "data": {"k": "x"}}, silent=True)
    for name in ("big", "small"):
        for encoding in (
            "gzip",
            "identity",
            "deflate",
            "gzip;q=0",
            "gzip, deflate",
            "br",
            "*",
            "GZIP",
            "",
            "x-gzip",
            "deflate, gzip;q=0.5",
        ):
            path = core(c, f"configmaps/{name}")
            reply = c.get(path, headers={"Accept-Encoding": encoding}, silent=True)
            body = gzip.decompress(reply.body) if reply.headers.get("content-encoding") == "gzip" else reply.body
            keep(
                c,
                "GET",
                path,
                None,
                None,
                encoding,
                "",
                reply,
                {"name": json.loads(body)["metadata"]["name"], "size": len(body) > 100_000, "compressed": body != reply.body},
            )
    for accept in (YAML, CBOR, PROTOBUF, "application/json;pretty=1"):
        reply = c.get(core(c, "configmaps/big"), headers={"Accept-Encoding": "gzip", "Accept": accept}, silent=True)
        keep(
            c,
            "GET",
            core(c, "configmaps/big"),
            None,
            None,
            accept + " gzip",
            "",
            reply,
            {"compressed": reply.body[:2].hex() == "1f8b"},
        )
    reply = c.get(core(c, "configmaps"), headers={"Accept-Encoding": "gzip"}, silent=True)
    keep(c, "GET", core(c, "configmaps"), None, None, "gzip", "", reply, {"compressed": reply.body[:2].hex() == "1f8b"})
    reply = c.put(
        core(c, "configmaps/big"),
        {"metadata": {"name": "big"}, "data": {"k": "y" * 140_000}},
        headers={"Accept-Encoding": "gzip"},
        silent=True,
    )
    keep(c, "PUT", core(c, "configmaps/big"), None, None, "gzip", "", reply, {"compressed": reply.body[:2].hex() == "1f8b"})
    reply = c.get("/openapi/v2", headers={"Accept-Encoding": "gzip"}, silent=True)
    keep(c, "GET", "/openapi/v2", None, None, "gzip", "", reply, {"compressed": reply.body[:2].hex() == "1f8b"})


@scenario
def compressed_bodies(c: Client) -> None:
    """A request body with Content-Encoding is not decompressed."""
    body = json.dumps({"metadata": {"name": "z"}}).encode()
    for encoding in ("gzip", "identity", "deflate"):
        reply = c.post(
            core(c, "configmaps"),
            zlib.compress(body, 9, wbits=31) if encoding == "gzip" else body,
            headers={"Content-Encoding": encoding},
            silent=True,
        )
        keep(c, "POST", core(c, "configmaps"), None, None, JSON, encoding, reply, reply.json)


# ---------------------------------------------------------------- tables


@scenario
def table_versions_and_parts(c: Client) -> None:
    """v1 and v1beta1; includeObject None, Metadata, Object; one object, several, none; errors."""
    path = config_map(c)
    config_map(c, "n", data={"a": "1", "b": "2"})
    for version in ("v1", "v1beta1"):
        accept = f"application/json;as=Table;v={version};g=meta.k8s.io"
        for include in (None, "None", "Metadata", "Object", "none", "Nope", ""):
            query = None if include is None else {"includeObject": include}
            table(c, core(c, "configmaps"), accept, {**(query or {}), "labelSelector": "app=a"})
            table(c, path, accept, query)
    table(c, core(c, "configmaps"), TABLE, {"labelSelector": "app=none"})
    table(c, core(c, "configmaps"), TABLE, {"labelSelector": "app=a", "limit": "1"})
    table(c, core(c, "configmaps/absent"))
    table(c, core(c, "configmaps"), "application/yaml;as=Table;v=v1;g=meta.k8s.io", {"labelSelector": "app=none"})
    binary(c, "GET", core(c, "configmaps"), PROTOBUF + ";as=Table;v=v1;g=meta.k8s.io", query={"labelSelector": "app=none"})
    binary(c, "GET", core(c, "configmaps"), CBOR + ";as=Table;v=v1;g=meta.k8s.io", query={"labelSelector": "app=none"})
    table(c, "/version")
    table(c, "/api/v1")


@scenario
def table_of_a_watch(c: Client) -> None:
    """A watch of tables gives the columns with the first event only."""
    path = config_map(c)
    rv = c.get(path).rv
    c.patch(path, {"data": {"k": "2"}}, MERGE)
    c.patch(path, {"data": {"k2": "2"}}, MERGE)
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    events = len(c.transcript)
    c.watch(core(c, "configmaps"), {"resourceVersion": rv, "labelSelector": "app=a"}, headers=headers)
    for event in c.transcript[events]["events"]:
        for row in event["object"].get("rows", []):
            row["cells"][2] = "<age>"


@scenario
def table_of_custom_resources(c: Client) -> None:
    """additionalPrinterColumns of a definition; the definition itself as a table."""
    with widgets(c) as (path, group):
        c.post(path, {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "v"}, "spec": {"size": 1}}, silent=True)
        for accept in (TABLE, "application/json;as=Table;v=v1beta1;g=meta.k8s.io"):
            table(c, path, accept)
            table(c, path + "/w", accept)
        table(c, path, TABLE, {"includeObject": "Object"})
        table(c, path, TABLE, {"includeObject": "None"})
        reply = c.get(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}",
            {"includeObject": "None"},
            headers={"Accept": TABLE},
            silent=True,
        )
        cells = reply.get("rows", 0, "cells")
        keep(
            c,
            "GET",
            "definition",
            None,
            None,
            TABLE,
            "",
            reply,
            {"columns": reply.get("columnDefinitions"), "name": cells and cells[0]},
        )


def _each_kind(c: Client, names: list[str]) -> None:
    for name in names:
        version, plural, namespaced, body, _ = SAMPLES[name]
        root = ("/api/" if version == "v1" else "/apis/") + version
        collection = f"{root}/namespaces/{c.ns}/{plural}" if namespaced else f"{root}/{plural}"
        own = json.loads(json.dumps(body).replace("{ns}", c.ns))
        identity = "s" if namespaced else c.name(plural[:8])
        status = own.pop("status", None)
        c.post(
            collection,
            {"apiVersion": version, "kind": name.split("/")[0], **own, "metadata": {**own.get("metadata", {}), "name": identity}},
        )
        if status:
            c.patch(f"{collection}/{identity}/status", {"status": status}, MERGE)
        table(c, f"{collection}/{identity}", query={"includeObject": "None"})
        table(c, collection, query={"fieldSelector": f"metadata.name={identity}", "includeObject": "Metadata"})
        if not namespaced:
            c.delete(f"{collection}/{identity}", silent=True)


_POD = {"containers": [{"name": "c", "image": "nginx:1.27"}, {"name": "d", "image": "redis:7"}], "restartPolicy": "Always"}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": _POD}
_SELECTOR = {"matchLabels": {"app": "a"}}
_RULE = [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["*"]}]
_HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": _RULE,
}

SAMPLES: dict[str, Any] = {
    **sample_objects.KINDS,
    "Endpoints": (
        "v1",
        "endpoints",
        True,
        {
            "subsets": [
                {
                    "addresses": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}],
                    "ports": [{"port": 80, "name": "h"}, {"port": 443, "name": "s"}],
                }
            ]
        },
        (),
    ),
    "LimitRange": ("v1", "limitranges", True, {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}, ()),
    "Namespace": ("v1", "namespaces", False, {}, ()),
    "PersistentVolume": (
        "v1",
        "persistentvolumes",
        False,
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
        (),
    ),
    "PersistentVolumeClaim": (
        "v1",
        "persistentvolumeclaims",
        True,
        {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}},
        (),
    ),
    "PodTemplate": ("v1", "podtemplates", True, {"template": _TEMPLATE}, ()),
    "ReplicationController": (
        "v1",
        "replicationcontrollers",
        True,
        {"spec": {"replicas": 2, "selector": {"app": "a"}, "template": _TEMPLATE}},
        (),
    ),
    "ResourceQuota": ("v1", "resourcequotas", True, {"spec": {"hard": {"secrets": "5", "configmaps": "3"}}}, ()),
    "ControllerRevision": ("apps/v1", "controllerrevisions", True, {"revision": 2, "data": {"a": 1}}, ()),
    "DaemonSet": ("apps/v1", "daemonsets", True, {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}, ()),
    "ReplicaSet": ("apps/v1", "replicasets", True, {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}, ()),
    "StatefulSet": (
        "apps/v1",
        "statefulsets",
        True,
        {"spec": {"serviceName": "s", "selector": _SELECTOR, "template": _TEMPLATE}},
        (),
    ),
    "HorizontalPodAutoscaler": (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        True,
        {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}},
        (),
    ),
    "CronJob": (
        "batch/v1",
        "cronjobs",
        True,
        {"spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}}}},
        (),
    ),
    "IngressClass": ("networking.k8s.io/v1", "ingressclasses", False, {"spec": {"controller": "x.io/y"}}, ()),
    "Ingress": (
        "networking.k8s.io/v1",
        "ingresses",
        True,
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
        (),
    ),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies", True, {"spec": {"podSelector": {}}}, ()),
    "ClusterRoleBinding": (
        "rbac.authorization.k8s.io/v1",
        "clusterrolebindings",
        False,
        {
            "subjects": [{"kind": "User", "name": "nobody"}],
            "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"},
        },
        (),
    ),
    "CSIDriver": ("storage.k8s.io/v1", "csidrivers", False, {"spec": {}}, ()),
    "CSINode": ("storage.k8s.io/v1", "csinodes", False, {"spec": {"drivers": []}}, ()),
    "CSIStorageCapacity": (
        "storage.k8s.io/v1",
        "csistoragecapacities",
        True,
        {"storageClassName": "fast", "capacity": "1Gi"},
        (),
    ),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses", False, {"provisioner": "x.io/y"}, ()),
    "VolumeAttachment": (
        "storage.k8s.io/v1",
        "volumeattachments",
        False,
        {"spec": {"attacher": "x", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
        (),
    ),
    "VolumeAttributesClass": (
        "storage.k8s.io/v1",
        "volumeattributesclasses",
        False,
        {"driverName": "x", "parameters": {"a": "b"}},
        (),
    ),
    "ValidatingWebhookConfiguration": (
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        False,
        {"webhooks": [_HOOK]},
        (),
    ),
    "MutatingWebhookConfiguration": (
        "admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        False,
        {"webhooks": [_HOOK]},
        (),
    ),
    "ValidatingAdmissionPolicy": (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
        False,
        {"spec": {"matchConstraints": {"resourceRules": _RULE}, "validations": [{"expression": "true"}]}},
        (),
    ),
    "ValidatingAdmissionPolicyBinding": (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
        False,
        {"spec": {"policyName": "none.example.com", "validationActions": ["Warn"]}},
        (),
    ),
    "MutatingAdmissionPolicyBinding": (
        "admissionregistration.k8s.io/v1",
        "mutatingadmissionpolicybindings",
        False,
        {"spec": {"policyName": "none.example.com"}},
        (),
    ),
    "RuntimeClass": ("node.k8s.io/v1", "runtimeclasses", False, {"handler": "runc"}, ()),
    "EndpointSlice": (
        "discovery.k8s.io/v1",
        "endpointslices",
        True,
        {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]},
        (),
    ),
    "DeviceClass": ("resource.k8s.io/v1", "deviceclasses", False, {"spec": {}}, ()),
    "ResourceClaim": (
        "resource.k8s.io/v1",
        "resourceclaims",
        True,
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}}},
        (),
    ),
    "ResourceClaimTemplate": (
        "resource.k8s.io/v1",
        "resourceclaimtemplates",
        True,
        {"spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}}}},
        (),
    ),
    "ResourceSlice": (
        "resource.k8s.io/v1",
        "resourceslices",
        False,
        {"spec": {"driver": "x.io", "allNodes": True, "pool": {"name": "p", "resourceSliceCount": 1}}},
        (),
    ),
    "PriorityLevelConfiguration": (
        "flowcontrol.apiserver.k8s.io/v1",
        "prioritylevelconfigurations",
        False,
        {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
        (),
    ),
}


@scenario
def tables_of_core_kinds(c: Client) -> None:
    """Columns and cells of the kinds of v1."""
    _each_kind(c, [n for n, s in SAMPLES.items() if s[0] == "v1"])


@scenario
def tables_of_workloads(c: Client) -> None:
    """Columns and cells of apps, batch, autoscaling and policy."""
    _each_kind(c, [n for n, s in SAMPLES.items() if s[0].split("/")[0] in ("apps", "batch", "autoscaling", "policy")])


@scenario
def tables_of_network_and_storage(c: Client) -> None:
    """Columns and cells of networking, discovery, storage and resource kinds."""
    _each_kind(c, [n for n, s in SAMPLES.items() if s[0].split(".")[0] in ("networking", "discovery", "storage", "resource")])


@scenario
def tables_of_the_rest(c: Client) -> None:
    """Columns and cells of rbac, admission, scheduling, node, coordination, flow control."""
    _each_kind(
        c,
        [
            n
            for n, s in SAMPLES.items()
            if s[0].split(".")[0] in ("rbac", "admissionregistration", "scheduling", "node", "coordination", "flowcontrol")
        ],
    )


@scenario
def tables_of_empty_collections(c: Client) -> None:
    """An empty collection has its columns and no rows."""
    for version, plural, namespaced, _, _ in SAMPLES.values():
        if namespaced:
            root = ("/api/" if version == "v1" else "/apis/") + version
            table(c, f"{root}/namespaces/{c.ns}/{plural}", query={"labelSelector": "none=of-these"})


@scenario
def tables_of_subresources(c: Client) -> None:
    """Tables of status and scale; and of answers to writes."""
    path = f"/apis/apps/v1/namespaces/{c.ns}/deployments"
    c.post(path, {"metadata": {"name": "d"}, "spec": sample_objects.KINDS["Deployment"][3]["spec"]})
    table(c, path + "/d/status", query={"includeObject": "None"})
    table(c, path + "/d/scale", query={"includeObject": "None"})
    config_map(c)
    c.delete(core(c, "configmaps/m"), headers={"Accept": TABLE})
    c.delete(core(c, "configmaps"), headers={"Accept": TABLE})
