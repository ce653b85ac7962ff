"""Random stories about forms: what Accept, Content-Type, Accept-Encoding, `pretty` and the user agent make of answers and bodies.

All is asked of a few objects, of their collections and subresources, of what is absent, and of paths that are no resources.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.differential.binary_answers import CBOR, PROTOBUF, cbor_answer, keep, protobuf_answer, wire
from tests.differential.client import Client
from tests.differential.definitions import definition, make, served
from tests.differential.generators.binaries import TAG, cbor_item
from tests.differential.random_stories import Steady
from tests.differential.steps import config_map, deployment
from tests.differential.transports import Reply

_MEDIA = (
    "application/json", "application/json", "application/yaml", PROTOBUF, CBOR, "*/*", "application/*", "text/plain", "text/html", "application/cbor-seq",
    "application/vnd.kubernetes.*", "application/vnd.kubernetes.protobuf.v1", "application/json-seq", "text/*", "*", "application", "*/json", "Application/Json", "APPLICATION/YAML",
    "application/apply-patch+yaml", "application/x-yaml", "text/yaml", "", "application/openmetrics-text", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
)  # fmt: skip
_AS = (
    "Table", "Table", "PartialObjectMetadata", "PartialObjectMetadataList", "PartialObjectMetadataList", "table", "Nope", "", "APIGroupDiscoveryList", "Status", "ConfigMap",
    "Scale", "Object",
)  # fmt: skip
_PARAMETERS = (
    "charset=utf-8", "charset=UTF-8", "charset=latin-1", "charset=", "pretty=1", "pretty=true", "pretty=0", "pretty=false", "pretty", "pretty=x", "stream=watch", "stream=", "stream=nope", "stream",
    "q=0", "q=1", "q=0.5", "q=0.001", "q=0.0001", "q=1.5", "q=-1", "q=x", "q=", "q", "q=.5", "q=1.", "q=1.000", "Q=0.5", 'q="0.5"', "q = 0.5", "q=0.5;ext=1", "q=0.9;as=Table", "q=NaN", "q=Inf", "q=1e-1",
    "v=v1", "v=v1beta1", "v=v2", "v=", "g=meta.k8s.io", "g=", "g=apps", "g=apidiscovery.k8s.io", "as=Table", "as=", "as", "x=y", 'x="y z"', 'x="y,z"', "=", ";", "=x", "x=", 'x="y', "profile=nopeer", "level=1",
)  # fmt: skip
_WHOLE = (
    "{m};as={a};v={v};g={g}", "{m};g={g};v={v};as={a}", "{m}; as={a}; v={v}; g={g}", "{m};as={a};g={g}", "{m};as={a};v={v}", "{m};AS={a};V={v};G={g}", '{m};as="{a}";v="{v}";g="{g}"',
    "{m};as={a};v={v};g={g};as=Table", "{m};as={a};v={v};g={g};charset=utf-8", "{m};as={a};v={v};g={g};pretty=1", "{m};as={a};v={v};g={g};stream=watch", "{m};as={a};v={v};g={g};q=0.4",
)  # fmt: skip
_AGENTS = (
    "replay/1",
    "replay/1",
    "replay/1",
    "curl/8.1",
    "Mozilla/5.0 (X11)",
    "mozilla",
    "Wget/1.2",
    "curl",
    "",
    "Curl/7",
    "xcurl/1",
)
_ENCODINGS = (
    "",
    "",
    "gzip",
    "gzip, deflate",
    "gzip;q=0",
    "gzip;q=0.5",
    "*",
    "identity",
    "br",
    "GZIP",
    "deflate,gzip;q=1.0",
    " gzip ",
    "gzip,",
    "x-gzip",
    "gzip;q=0.0, *",
)
_QUERIES = (
    "", "", "", "", "pretty=true", "pretty=1", "pretty=false", "pretty=", "pretty", "pretty=0&pretty=1", "pretty=x", "PRETTY=1", "limit=1", "limit=0", "limit=x", "includeObject=None", "includeObject=Object",
    "includeObject=Metadata", "includeObject=x", "includeObject=", "fieldSelector=metadata.name%3Da", "resourceVersion=0", "resourceVersion=x", "timeout=1s", "timeout=x", "labelSelector=a%3Db&limit=1", "as=Table",
)  # fmt: skip
_OF_TYPES = (
    "{}", "{}", "{}", "{};charset=utf-8", "{}; charset=UTF-8", "{};charset=latin-1", "{};x=y", "{};", "{} ", " {}", "{};charset", "{};q=0.5", "{};as=Table;v=v1;g=meta.k8s.io", "{}, text/plain", "{};stream=watch",
    "{};charset=utf-8;charset=utf-8", "{};pretty=1",
)  # fmt: skip
_NO_RESOURCES = (
    "/", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/healthz", "/livez", "/readyz/ping", "/metrics", "/nope", "/apis/nope.io", "/apis/apps/v9", "/api/v1/nopes", "/openapi/v2", "/openapi/v3",
    "/openapi/v3/apis/apps/v1", "/openapi/v3/version", "/.well-known/openid-configuration", "/openid/v1/jwks", "/statusz", "/flagz",
)  # fmt: skip
_PATCHES = (
    "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor", "application/json", "application/yaml",
    PROTOBUF, CBOR, "text/plain", "application/merge-patch+yaml", "application/merge-patch+cbor",
)  # fmt: skip
#: The number of bytes that are recorded of a text that each server has of its own, such as its metrics.
_BEGINNING = 60


def tell_forms(client: Client, rng: Steady) -> None:
    """Requests of all methods for objects in all forms; a definition's too."""
    body = definition(client, prefix="n", version={"subresources": {"status": {}}})
    with served(client, body) as collection:
        maps, deployments = (
            f"{root}/namespaces/{client.ns}/{what}"
            for root, what in (("/api/v1", "configmaps"), ("/apis/apps/v1", "deployments"))
        )
        made: list[tuple[str, dict[str, Any]]] = [
            (maps, {"apiVersion": "v1", **config_map("a", {"a": "b"}), "binaryData": {"b": "AAH/"}}), (deployments, deployment("a")), (collection, make(body, "a")),
        ]  # fmt: skip
        for path, document in made:
            client.post(path, document, silent=True)
        client.post(maps, config_map("big", {"big": "1"}, k="x" * 140_000), silent=True)
        for _ in range(40):
            rng.choice((_read, _read, _read, _read, _write, _write, _read_no_resource))(client, rng, *rng.choice(made))
        for _ in range(2):
            _watch(client, rng, rng.choice(made)[0])


def _read(client: Client, rng: Steady, collection: str, document: Mapping[str, Any]) -> None:
    status = "" if document["kind"] == "ConfigMap" else "/status"
    path = rng.choice(
        (
            f"{collection}/a",
            f"{collection}/a{status}",
            collection,
            collection,
            f"{collection}/absent",
            f"{collection}/big",
            f"{collection}/a/nope",
        )
    )
    query = rng.choice(_QUERIES)
    _ask(client, rng, rng.choice(("GET", "GET", "GET", "GET", "GET", "GET", "HEAD")), path, query, {"Accept": _accept(rng)})


def _read_no_resource(client: Client, rng: Steady, *_: Any) -> None:
    path, query = rng.choice(_NO_RESOURCES), rng.choice(_QUERIES[:10])
    _ask(
        client,
        rng,
        rng.choice(("GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE", "OPTIONS")),
        path,
        query,
        {"Accept": _accept(rng)},
    )


def _write(client: Client, rng: Steady, collection: str, document: dict[str, Any]) -> None:
    method = rng.choice(("POST", "POST", "PUT", "PATCH", "DELETE", "DELETE"))
    name = "new" if method == "POST" else "a"
    body: dict[str, Any] = {**document, "metadata": {**document["metadata"], "name": name, "labels": {"x": "y"}}}
    if method == "DELETE":
        body = {
            "kind": "DeleteOptions",
            "apiVersion": rng.choice(("v1", "meta.k8s.io/v1", "apps/v1")),
            "propagationPolicy": rng.choice(("Background", "Orphan", "x")),
        }
    content, media = _written(rng, body)
    media = rng.choice(_PATCHES) if method == "PATCH" else media if rng.random() < 0.8 else rng.choice((*_MEDIA, "none"))
    query = "&".join(one for one in (
        "dryRun=All", rng.choice(_QUERIES[:12]), rng.choice(("", "", "fieldValidation=Strict")), "fieldManager=m" if "apply" in media and rng.random() < 0.9 else "",
    ) if one)  # fmt: skip
    headers = {"Accept": _accept(rng) if rng.random() < 0.6 else "application/json"}
    if media != "none":
        headers["Content-Type"] = rng.choice(_OF_TYPES).format(media)
    if rng.random() < 0.1:
        headers["Content-Encoding"] = rng.choice(("gzip", "identity", "x"))
        content = gzip.compress(content, mtime=0) if rng.random() < 0.5 else content
    _ask(client, rng, method, collection if method == "POST" else f"{collection}/{name}", query, headers, content)


def _written(rng: Steady, body: Any) -> tuple[bytes, str]:
    """A body in a form, and the type of that form."""
    form = rng.random()
    if form < 0.45:
        return json.dumps(body).encode(), "application/json"
    if form < 0.7:
        return yaml.safe_dump(body, allow_unicode=True).encode(), "application/yaml"
    if form < 0.95:
        return TAG + cbor_item(rng, body, 0), CBOR
    return b"k8s\x00\x0a\x00", PROTOBUF


def _watch(client: Client, rng: Steady, path: str) -> None:
    query = "&".join(
        one
        for one in (
            "watch=1&timeoutSeconds=1",
            rng.choice(_QUERIES[:12]),
            rng.choice(("", "labelSelector=a%3Db", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan")),
        )
        if one
    )
    _ask(client, rng, "GET", path, query, {"Accept": _accept(rng)})


def _accept(rng: Steady) -> str:
    if rng.random() < 0.03:
        return "none"
    ranges = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        media = rng.choice(_MEDIA)
        form = rng.random()
        if form < 0.3:
            group = "meta.k8s.io" if rng.random() < 0.9 else rng.choice(("apidiscovery.k8s.io", "apps", ""))
            version = rng.choice(("v1", "v1", "v1", "v1beta1", "v2", ""))
            ranges.append(rng.choice(_WHOLE).format(m=media, a=rng.choice(_AS), v=version, g=group))
        elif form < 0.7:
            ranges.append(
                rng.choice((";", "; ", " ; ")).join([media, *(rng.choice(_PARAMETERS) for _ in range(rng.choice((1, 1, 2, 3))))])
            )
        else:
            ranges.append(media)
    return rng.choice((",", ", ", " , ", ",,")).join(ranges)


def _ask(
    client: Client, rng: Steady, method: str, path: str, query: str, headers: dict[str, str], body: bytes | None = None
) -> None:
    """Sends a request, and records what is in the answer."""
    sent = {**headers, "User-Agent": rng.choice(_AGENTS)}
    if encoding := rng.choice(_ENCODINGS):
        sent["Accept-Encoding"] = encoding
    if sent["Accept"] == "none":
        del sent["Accept"]
    reply = client.transport.send(method, path + (f"?{query}" if query else ""), body, sent)
    known = path.startswith(("/api/v1/names", "/apis/apps/v1/names", "/apis/n")) or b'"Status"' in reply.body[:100]
    shown = " ".join(f"{name}: {value}" for name, value in sent.items() if name not in ("Accept", "Content-Type"))
    keep(
        client,
        method,
        path,
        query,
        None if body is None else repr(body[:200]),
        f"{headers['Accept']} [{shown}]",
        headers.get("Content-Type", ""),
        reply,
        _told(reply, known),
    )


#: Bytes of a body in an error message: they have the random group of the definition, so they differ from run to run.
_UNSTEADY = re.compile(rb"(?<=\()[0-9a-f]{20,} \.\.\.(?=\))")


def _told(reply: Reply, known: bool) -> Any:
    kind, content = reply.headers.get("content-type", ""), reply.body
    if reply.headers.get("content-encoding") == "gzip":
        content = gzip.decompress(content)
    content = _UNSTEADY.sub(b"<bytes>", content) if "json" in kind or "yaml" in kind else content
    if not known:
        return (
            content[:_BEGINNING].decode("latin-1")
            if kind.startswith(("application/json", "text", "application/yaml")) and not kind.startswith("text/plain; version")
            else kind
        )
    if "cbor" in kind:
        return _undescribed(cbor_answer(content))
    if "protobuf" in kind:
        return _frames(content) if "stream=watch" in kind else protobuf_answer(content)
    if content[:2] == b"{\n":
        return {"indented": Reply(0, {}, content).json}
    if content.startswith((b"apiVersion: meta.k8s.io/v1\ncolumn", b"apiVersion: meta.k8s.io/v1beta1\ncolumn")):
        return _undescribed(yaml.safe_load(content))
    return found if (found := Reply(0, {}, content).json) is not None else content.decode("latin-1")


def _undescribed(value: Any) -> Any:
    """The same without what columns of tables say of themselves."""
    if isinstance(value, list):
        return [_undescribed(one) for one in value]
    if isinstance(value, dict):
        return {key: _undescribed(one) for key, one in value.items() if key != "description"}
    return value


def _frames(content: bytes) -> list[Any]:
    frames = []
    while len(content) >= 4:
        size = int.from_bytes(content[:4], "big")
        frames.append(wire(content[4 : 4 + size]) if content[4:8] != b"k8s\x00" else protobuf_answer(content[4 : 4 + size]))
        content = content[4 + size :]
    return frames
