"""What a server says of itself: discovery in both forms, version, health, OpenAPI, the index, and the edges of their paths."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.differential import pacing
from tests.differential.client import JSON, Client
from tests.differential.registry import scenario
from tests.differential.transports import Reply

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGGREGATED_BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


def keep(c: Client, method: str, path: str, query: Any, headers: dict[str, str], reply: Reply, seen: Any) -> None:
    """Record an exchange with what a helper made of the answer's body; the server's own address is masked."""
    body = ADDRESS.sub("<address>", json.dumps(seen)).encode()
    c._record(
        method,
        path,
        query,
        None,
        {"Accept": headers.get("Accept", JSON), "Content-Type": ""},
        Reply(reply.status, reply.headers, body),
    )


def ask(c: Client, path: str, query: Any = None, method: str = "GET", body: Any = None, **headers: str) -> Reply:
    """Ask and record, JSON as JSON (without custom groups of other scenarios), other answers as text."""
    reply = c.request(method, path, body, query, headers=headers, silent=True)
    if isinstance(reply.json, dict) and isinstance(reply.json.get("groups"), list):
        reply.json["groups"] = [g for g in reply.json["groups"] if built_in(g["name"])]
    keep(c, method, path, query, headers, reply, reply.json if reply.json is not None else reply.body.decode("latin-1"))
    return reply


def built_in(group: str) -> bool:
    """Custom groups of other scenarios come and go: they are left out."""
    return "example.com" not in group


# ---------------------------------------------------------------- discovery, one document a group


@scenario
def core_versions(c: Client) -> None:
    """/api lists v1 and how to reach the server."""
    for path in ("/api", "/api/"):
        ask(c, path)
    ask(c, "/api", method="HEAD")


@scenario
def groups(c: Client) -> None:
    """/apis lists the groups, their versions and the preferred one, in order."""
    for path in ("/apis", "/apis/"):
        reply = c.get(path, silent=True)
        keep(
            c,
            "GET",
            path,
            None,
            {},
            reply,
            {**(reply.json or {}), "groups": [g for g in reply.get("groups", default=[]) if built_in(g["name"])]},
        )


GROUPS = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
]


@scenario
def each_group(c: Client) -> None:
    """/apis/GROUP of every group."""
    for group in GROUPS:
        ask(c, f"/apis/{group}")


@scenario
def each_version(c: Client) -> None:
    """/apis/GROUP/v1 of every group: resources, verbs, short names, categories, storage hashes."""
    ask(c, "/api/v1")
    for group in GROUPS:
        if group != "autoscaling":
            ask(c, f"/apis/{group}/v1")
    ask(c, "/apis/autoscaling/v1")
    ask(c, "/apis/autoscaling/v2")


@scenario
def versions_not_served(c: Client) -> None:
    """Beta and alpha versions, old ones, misspelt ones."""
    for path in (
        "/api/v2",
        "/api/v1beta1",
        "/apis/apps/v1beta1",
        "/apis/extensions/v1beta1",
        "/apis/batch/v1beta1",
        "/apis/autoscaling/v2beta2",
        "/apis/resource.k8s.io/v1beta1",
        "/apis/nope.example.com",
        "/apis/nope.example.com/v1",
        "/apis/v1",
        "/apis/core/v1",
        "/apis//v1",
        "/api/v1/v1",
        "/apis/apps/v1/",
        "/apis/apps/",
        "/api/v1/",
        "/apis/apps/V1",
        "/APIS/apps/v1",
        "/api/v1?x=y",
    ):
        path, _, query = path.partition("?")
        ask(c, path, query or None)


@scenario
def discovery_takes_get_only(c: Client) -> None:
    """Other verbs on discovery paths."""
    for path in ("/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"):
        for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            ask(c, path, method=method, body={} if method in ("POST", "PUT", "PATCH") else None)


# ---------------------------------------------------------------- aggregated discovery


def aggregated(c: Client, path: str, accept: str, **headers: str) -> Reply:
    """Ask for the aggregated form; custom groups are left out; whether there is an ETag is kept."""
    headers = {"Accept": accept, **headers}
    reply = c.get(path, headers=headers, silent=True)
    seen: Any = reply.json
    if isinstance(seen, dict):
        for key in ("items", "groups"):
            if isinstance(seen.get(key), list):
                seen[key] = [i for i in seen[key] if built_in(i.get("name") or i.get("metadata", {}).get("name", ""))]
    etag = reply.headers.get("etag", "")
    keep(
        c,
        "GET",
        path,
        None,
        headers,
        reply,
        {"body": seen, "etag": re.sub(r"[0-9A-F]{128}", "<hash>", etag), "vary": reply.headers.get("vary")},
    )
    return reply


@scenario
def aggregated_core(c: Client) -> None:
    """/api in the aggregated form."""
    aggregated(c, "/api", AGGREGATED)
    aggregated(c, "/api", AGGREGATED_BETA)


@scenario
def aggregated_groups(c: Client) -> None:
    """/apis in the aggregated form."""
    aggregated(c, "/apis", AGGREGATED)


@scenario
def aggregated_choice(c: Client) -> None:
    """Which Accept headers give which form."""
    for accept in (
        f"{AGGREGATED},{JSON}",
        f"{JSON},{AGGREGATED}",
        f"{AGGREGATED_BETA},{AGGREGATED},{JSON}",
        f"{AGGREGATED};q=0.1,{JSON}",
        AGGREGATED.replace("v=v2", "v=v3"),
        AGGREGATED.replace("v=v2", "v=v1"),
        AGGREGATED.replace("List", ""),
        "application/json;as=APIGroupDiscoveryList",
        f"{AGGREGATED};profile=unmerged",
        "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "*/*",
        "text/plain",
        AGGREGATED.replace("v=v2", "v=v3") + "," + JSON,
    ):
        reply = c.get("/api", headers={"Accept": accept}, silent=True)
        keep(
            c,
            "GET",
            "/api",
            None,
            {"Accept": accept},
            reply,
            {
                "kind": reply.get("kind"),
                "apiVersion": reply.get("apiVersion"),
                "message": reply.get("message"),
                "etag": "etag" in reply.headers,
                "text": reply.json is None and reply.body[:80].decode("latin-1"),
            },
        )


@scenario
def aggregated_etag(c: Client) -> None:
    """If-None-Match with the ETag answers 304 without a body."""
    first = c.get("/api", headers={"Accept": AGGREGATED}, silent=True)
    etag = first.headers.get("etag", "")
    for value in (etag, etag.strip('"'), f"W/{etag}", '"other"', f'"other", {etag}', "*", ""):
        reply = c.get("/api", headers={"Accept": AGGREGATED, "If-None-Match": value}, silent=True)
        keep(
            c,
            "GET",
            "/api",
            None,
            {"Accept": AGGREGATED},
            reply,
            {"same": reply.headers.get("etag") == etag, "empty": not reply.body},
        )
    reply = c.get("/api", headers={"If-None-Match": etag}, silent=True)
    keep(c, "GET", "/api", None, {}, reply, {"kind": reply.get("kind"), "etag": "etag" in reply.headers})


@scenario
def discovery_of_a_definition(c: Client) -> None:
    """A definition appears in every form of discovery."""
    group = f"v{c.id}.example.com"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    c.post(
        definitions,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things.{group}"},
            "spec": {
                "group": group,
                "scope": "Cluster",
                "names": {
                    "plural": "things",
                    "singular": "thing",
                    "kind": "Thing",
                    "listKind": "ThingList",
                    "shortNames": ["th", "tg"],
                    "categories": ["all", "mine"],
                },
                "versions": [
                    {"name": "v1alpha1", "served": True, "storage": False, "schema": schema},
                    {"name": "v2", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}},
                    {"name": "v1", "served": True, "storage": False, "schema": schema},
                    {"name": "v10", "served": False, "storage": False, "schema": schema},
                    {"name": "v1beta2", "served": True, "storage": False, "schema": schema},
                ],
            },
        },
        silent=True,
    )
    for _ in range(200):
        found = [
            i
            for i in c.get("/apis", headers={"Accept": AGGREGATED}, silent=True).get("items", default=[])
            if i["metadata"]["name"] == group
        ]
        if (
            found
            and c.get(f"/apis/{group}", silent=True).status == 200
            and c.get(f"/apis/{group}/v2/things", silent=True).status == 200
        ):
            break
        pacing.sleep(0.05)
    note = c.get("/apis", silent=True)
    keep(c, "GET", "/apis", None, {}, note, [g for g in note.get("groups", default=[]) if g["name"] == group])
    keep(c, "GET", "/apis", None, {"Accept": AGGREGATED}, note, found)
    for path in ("", "/v1", "/v2", "/v1alpha1", "/v1beta2", "/v10", "/v3", "/"):
        reply = c.get(f"/apis/{group}{path}", silent=True)
        for resource in reply.get("resources", default=[]):
            if resource.get("storageVersionHash"):
                resource["storageVersionHash"] = "<hash of the group's name>"
        keep(
            c,
            "GET",
            f"/apis/{group}{path}",
            None,
            {},
            reply,
            reply.json if reply.json is not None else reply.body.decode("latin-1"),
        )
    c.delete(f"{definitions}/things.{group}", silent=True)


# ---------------------------------------------------------------- version, health, index, metrics


@scenario
def version(c: Client) -> None:
    """/version: the fields, not the commit, date and compiler."""
    for path in ("/version", "/version/"):
        reply = c.get(path, silent=True)
        keep(
            c,
            "GET",
            path,
            None,
            {},
            reply,
            {
                k: v
                if k
                in (
                    "major",
                    "minor",
                    "emulationMajor",
                    "emulationMinor",
                    "minCompatibilityMajor",
                    "minCompatibilityMinor",
                    "gitTreeState",
                    "compiler",
                )
                else bool(v)
                for k, v in (reply.json or {}).items()
            }
            if reply.status == 200
            else reply.json,
        )
    reply = c.get("/version", silent=True)
    keep(c, "GET", "/version", None, {}, reply, {"indented": reply.body[:4].decode(), "ends": reply.body[-2:].decode()})
    for method in ("HEAD", "POST", "OPTIONS", "DELETE"):
        reply = c.request(method, "/version", {} if method == "POST" else None, silent=True)
        keep(
            c,
            method,
            "/version",
            None,
            {},
            reply,
            reply.json.get("message") if isinstance(reply.json, dict) else reply.body.decode("latin-1"),
        )


@scenario
def health(c: Client) -> None:
    """/healthz, /livez, /readyz: plain, verbose, excluding checks, single checks."""
    for path in ("/healthz", "/livez", "/readyz"):
        for query in (
            None,
            "verbose",
            "verbose=true",
            {"exclude": "etcd"},
            {"exclude": "nope"},
            "exclude=etcd&exclude=ping",
            "x=y",
        ):
            ask(c, path, query)
        for check in (
            "/ping",
            "/log",
            "/etcd",
            "/nope",
            "/",
            "/poststarthook",
            "/poststarthook/start-apiextensions-controllers",
            "/ping/",
            "/ping?verbose",
            "/etcd?exclude=etcd",
        ):
            at, _, query = check.partition("?")
            ask(c, path + at, query or None)
        ask(c, path, "verbose&exclude=etcd")
        ask(c, path, method="HEAD")
        ask(c, path, method="POST", body={})
    ask(c, "/readyz/shutdown")
    ask(c, "/livez/shutdown")
    ask(c, "/readyz/informer-sync")


@scenario
def index(c: Client) -> None:
    """/ lists the paths; custom groups of other scenarios are left out."""
    for path in ("/", ""):
        reply = c.get(path or "/", {"x": "1"} if not path else None, silent=True)
        keep(c, "GET", "/", None, {}, reply, {"paths": [p for p in reply.get("paths", default=[]) if built_in(p)]})
    for path in (
        "/index.htm",
        "/./",
        "/nope",
        "/nope/",
        "/favicon.ico",
        "/static",
        "/ui",
        "/swagger.json",
        "/swaggerapi",
        "/apis.json",
    ):
        ask(c, path)
    for path, method in (("/", "POST"), ("//", "GET"), ("/index.html", "GET")):
        reply = c.request(method, path, {} if method == "POST" else None, silent=True)
        keep(
            c,
            method,
            path,
            None,
            {},
            reply,
            {"paths": [p for p in reply.get("paths", default=[]) if built_in(p)]}
            if reply.status == 200
            else reply.body.decode("latin-1"),
        )


@scenario
def metrics(c: Client) -> None:
    """/metrics is text; some metrics must be there."""
    for path in ("/metrics", "/metrics/", "/metrics/slis", "/metrics/nope"):
        reply = c.get(path, silent=True)
        keep(
            c,
            "GET",
            path,
            None,
            {},
            reply,
            {"json": reply.json, "requests": b"apiserver_request_total" in reply.body, "help": reply.body[:7] == b"# HELP "},
        )


@scenario
def openid(c: Client) -> None:
    """The issuer's discovery document and keys."""
    ask(c, "/.well-known/openid-configuration")
    ask(c, "/.well-known/openid-configuration", Accept="*/*")
    ask(c, "/.well-known/openid-configuration", Accept="text/plain")
    ask(c, "/.well-known/openid-configuration", method="HEAD")
    ask(c, "/.well-known/")
    ask(c, "/openid/v1/jwks")
    reply = c.get("/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"}, silent=True)
    keep(c, "GET", "/openid/v1/jwks", None, {}, reply, [sorted(k) for k in reply.get("keys", default=[])])


@scenario
def other_roots(c: Client) -> None:
    """/logs, /debug and what is not served."""
    for path in (
        "/debug/pprof",
        "/debug/pprof/",
        "/logs",
        "/statusz",
        "/flagz",
        "/configz",
        "/debug/flags/v",
        "/debug/api_priority_and_fairness/dump_priority_levels",
        "/openapi",
        "/openapi/",
        "/openapi/v1",
        "/openapi/v4",
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.nope",
    ):
        reply = c.get(path, silent=True)
        keep(
            c,
            "GET",
            path,
            None,
            {},
            reply,
            {
                "json": reply.json if reply.status != 200 else None,
                "text": reply.body[:60].decode("latin-1") if reply.status != 200 and reply.json is None else None,
            },
        )


# ---------------------------------------------------------------- OpenAPI


@scenario
def openapi_v2(c: Client) -> None:
    """/openapi/v2: its info, paths, definitions, and the forms it comes in."""
    reply = c.get("/openapi/v2", silent=True)
    document = reply.json or {}
    keep(
        c,
        "GET",
        "/openapi/v2",
        None,
        {},
        reply,
        {
            "top": sorted(document),
            "swagger": document.get("swagger"),
            "info": document.get("info"),
            "security": document.get("securityDefinitions"),
            "etag": bool(reply.headers.get("etag")),
            "paths": sorted(p for p in document.get("paths", {}) if built_in(p)),
            "definitions": sorted(d for d in document.get("definitions", {}) if not d.startswith("com.example.")),
        },
    )
    for accept in (
        "application/json",
        "*/*",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        "application/yaml",
        "text/plain",
        "application/json;q=0.1,*/*",
    ):
        reply = c.get("/openapi/v2", headers={"Accept": accept}, silent=True)
        keep(
            c,
            "GET",
            "/openapi/v2",
            None,
            {"Accept": accept},
            reply,
            {
                "json": reply.json is not None,
                "large": len(reply.body) > 100_000,
                "text": reply.body.decode("latin-1") if reply.status >= 400 else None,
            },
        )
    for path, method in (("/openapi/v2/", "GET"), ("/openapi/v2/x", "GET"), ("/openapi/v2", "HEAD"), ("/openapi/v2", "POST")):
        reply = c.request(method, path, {} if method == "POST" else None, silent=True)
        keep(c, method, path, None, {}, reply, {"message": reply.get("message"), "large": len(reply.body) > 100_000})


def _fields(document: Any, name: str) -> Any:
    return (document or {}).get("definitions", (document or {}).get("components", {}).get("schemas", {})).get(name)


@scenario
def openapi_v2_definitions(c: Client) -> None:
    """Some definitions in full: fields, list types, merge keys, kinds."""
    reply = c.get("/openapi/v2", silent=True)
    for name in (
        "io.k8s.api.core.v1.ConfigMap",
        "io.k8s.api.core.v1.ContainerPort",
        "io.k8s.api.core.v1.ServiceSpec",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
        "io.k8s.api.apps.v1.DeploymentSpec",
    ):
        keep(c, "GET", f"/openapi/v2 {name}", None, {}, Reply(reply.status, {}, b""), _fields(reply.json, name))
    for path in (
        "/api/v1/namespaces/{namespace}/configmaps",
        "/api/v1/namespaces/{namespace}/configmaps/{name}",
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
        "/version/",
        "/api/v1/watch/configmaps",
    ):
        keep(
            c, "GET", f"/openapi/v2 {path}", None, {}, Reply(reply.status, {}, b""), (reply.json or {}).get("paths", {}).get(path)
        )


@scenario
def openapi_v3_index(c: Client) -> None:
    """/openapi/v3 lists one document a group and version, each with its hash."""
    for path in ("/openapi/v3", "/openapi/v3/"):
        reply = c.get(path, silent=True)
        paths = {
            p: {k: re.sub("[0-9A-F]{128}", "<hash>", v) for k, v in entry.items()}
            for p, entry in reply.get("paths", default={}).items()
            if built_in(p)
        }
        keep(
            c,
            "GET",
            path,
            None,
            {},
            Reply(reply.status, {k: v for k, v in reply.headers.items() if k != "content-length"}, b""),
            paths,
        )


@scenario
def openapi_v3_documents(c: Client) -> None:
    """A group's document: info, paths, schemas; with the hash it may be kept for ever; a wrong hash redirects."""
    index_reply = c.get("/openapi/v3", silent=True)
    for group in ("api/v1", "apis/apps/v1", "apis/batch/v1", "version", "apis", "api"):
        url = index_reply.get("paths", group, "serverRelativeURL", default="/openapi/v3/none?hash=none")
        path, _, query = url.partition("?")
        reply = c.get(path, query, silent=True)
        document = reply.json or {}
        seen = {
            "openapi": document.get("openapi"),
            "info": document.get("info"),
            "paths": sorted(document.get("paths", {})),
            "schemas": sorted(document.get("components", {}).get("schemas", {})),
            "security": document.get("components", {}).get("securitySchemes"),
            "etag": bool(reply.headers.get("etag")),
            "cache": reply.headers.get("cache-control"),
            "expires": "expires" in reply.headers,
        }
        keep(c, "GET", path, "hash", {}, reply, seen)
        reply = c.get(path, silent=True)
        keep(
            c,
            "GET",
            path,
            None,
            {},
            reply,
            {"large": len(reply.body) > 100, "cache": reply.headers.get("cache-control"), "expires": "expires" in reply.headers},
        )
        reply = c.get(path, {"hash": "WRONG"}, silent=True)
        location = reply.headers.get("location", "")
        reply.headers.update({"location": re.sub("[0-9A-F]{128}", "<hash>", location)} if location else {})
        keep(
            c,
            "GET",
            path,
            {"hash": "WRONG"},
            {},
            reply,
            reply.body[:200].decode("latin-1")
            if reply.status >= 400
            else re.sub("[0-9A-F]{128}", "<hash>", reply.body[:200].decode("latin-1"))
            if reply.status >= 300
            else None,
        )
    for path in (
        "/openapi/v3/apis/nope.example.com/v1",
        "/openapi/v3/apis/apps",
        "/openapi/v3/apis/apps/v1/",
        "/openapi/v3/api/v2",
    ):
        ask(c, path)


@scenario
def openapi_v3_etag(c: Client) -> None:
    """If-None-Match on a group's document."""
    first = c.get("/openapi/v3/apis/batch/v1", silent=True)
    etag = first.headers.get("etag", "")
    for value in (etag, etag.strip('"'), '"other"', "*", f"W/{etag}"):
        reply = c.get("/openapi/v3/apis/batch/v1", headers={"If-None-Match": value}, silent=True)
        keep(
            c,
            "GET",
            "/openapi/v3/apis/batch/v1",
            None,
            {},
            reply,
            {"same": reply.headers.get("etag") == etag, "empty": not reply.body},
        )
    for accept in (
        "application/json",
        "*/*",
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        "application/yaml",
        "text/plain",
    ):
        reply = c.get("/openapi/v3/apis/batch/v1", headers={"Accept": accept}, silent=True)
        keep(
            c,
            "GET",
            "/openapi/v3/apis/batch/v1",
            None,
            {"Accept": accept},
            reply,
            {
                "json": reply.json is not None,
                "large": len(reply.body) > 10_000,
                "text": reply.body.decode("latin-1") if reply.status >= 400 else None,
            },
        )


@scenario
def openapi_v3_schemas(c: Client) -> None:
    """Some schemas in full, and one path."""
    reply = c.get("/openapi/v3/api/v1", silent=True)
    for name in (
        "io.k8s.api.core.v1.Secret",
        "io.k8s.api.core.v1.ServicePort",
        "io.k8s.api.core.v1.Toleration",
        "io.k8s.api.core.v1.EnvVar",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
    ):
        keep(c, "GET", f"/openapi/v3/api/v1 {name}", None, {}, Reply(reply.status, {}, b""), _fields(reply.json, name))
    for path in (
        "/api/v1/namespaces/{namespace}/secrets",
        "/api/v1/namespaces/{namespace}/pods/{name}/eviction",
        "/api/v1/nodes/{name}",
    ):
        keep(
            c,
            "GET",
            f"/openapi/v3/api/v1 {path}",
            None,
            {},
            Reply(reply.status, {}, b""),
            (reply.json or {}).get("paths", {}).get(path),
        )


# ---------------------------------------------------------------- the edges of paths


@scenario
def paths_oddly_written(c: Client) -> None:
    """Double slashes, dots, trailing slashes, percent signs, letter case."""
    for path in (
        "/api//v1",
        "//api/v1",
        "/api/v1//",
        "/api/v1/namespaces//pods/x",
        "/api/v1/namespaces//x",
        f"/api/v1/namespaces/{c.ns}/",
        f"/api/v1/namespaces/{c.ns}//pods",
        f"/api/v1/namespaces/{c.ns}/pods/",
        f"/api/v1/namespaces/{c.ns}/pods//",
        f"/api/v1/namespaces/{c.ns}/pods/x/",
        f"/api/v1/namespaces/{c.ns}/pods/x/y/z/w",
        f"/api/v1/namespaces/{c.ns}/Pods",
        f"/api/v1/./namespaces/{c.ns}",
        f"/api/v1/../v1/namespaces/{c.ns}",
        f"/api/v1/namespaces/{c.ns}/pods/..",
        "/apis/apps/v1//deployments",
        "/api/v1/watch",
        "/api/v1/watch/nope",
        "/api/v1/proxy/nodes/x",
        "/api/v1/namespaces/a/b/c/d/e/f",
        "/v1/pods",
        "/pods",
    ):
        ask(c, path)


@scenario
def requests_oddly_made(c: Client) -> None:
    """Queries that do not parse, unknown verbs, no token, a wrong token."""
    for query in (
        "%zz",
        "a=%zz",
        "=",
        "&",
        "a;b=c",
        "limit=1;limit=2",
        "labelSelector=%",
        "watch",
        "watch=",
        "timeoutSeconds=abc",
    ):
        ask(c, f"/api/v1/namespaces/{c.ns}/configmaps", query) if query not in ("watch", "watch=") else None
    for method in ("FOO", "HEAD", "OPTIONS", "TRACE", "get", "PROPFIND"):
        ask(c, f"/api/v1/namespaces/{c.ns}/configmaps", method=method)
        ask(c, f"/api/v1/namespaces/{c.ns}/configmaps/x", method=method)
    for authorization in ("Bearer wrong", "Bearer ", "bearer admin-token", "Basic YTpi", "nonsense", ""):
        ask(c, f"/api/v1/namespaces/{c.ns}/configmaps", Authorization=authorization)
    for path in ("/healthz", "/version", "/api", "/apis", "/openapi/v2", "/openid/v1/jwks", "/", "/metrics", "/livez"):
        reply = c.get(path, headers={"Authorization": "Bearer wrong"}, silent=True)
        keep(c, "GET", path, None, {}, reply, {"message": reply.get("message"), "reason": reply.get("reason")})
