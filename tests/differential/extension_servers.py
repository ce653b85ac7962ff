"""Extension servers for scenarios: what serves a further API group behind an APIService."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.certificates import self_signed
from tests.differential.client import Client
from tests.differential.definitions import note
from tests.differential.pacing import until
from tests.differential.steps import Request, listening
from tests.differential.transports import Reply

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
#: Headers that differ from request to request, or belong to the transport.
VOLATILE = {"audit-id", "traceparent", "tracestate", "content-length"}
Answer = Callable[[Request], tuple[int, dict[str, str], bytes]]


def group_of(client: Client, suffix: str = "") -> str:
    return f"{suffix}g{client.id}.example.com"


def api_service(
    client: Client, version: str = "v1", group: str = "", service: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """An APIService; without `service` a local one."""
    group = group or group_of(client)
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            **({"service": service} if service else {}),
            **spec,
        },
    }


def body_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def resources(*names: str) -> list[dict[str, Any]]:
    return [
        {
            "name": n,
            "singularName": n.removesuffix("s"),
            "namespaced": True,
            "kind": n.removesuffix("s").capitalize(),
            "verbs": ["get", "list"],
        }
        for n in names or ("things",)
    ]


class Extension:
    """What an extension server answers: discovery, and for all the rest an echo of the request, unless `special` knows better."""

    def __init__(
        self, group: str, *versions: str, aggregated: bool = True, openapi: bool = False, special: Answer | None = None
    ) -> None:
        self.group, self.versions, self.aggregated, self.openapi, self.special = (
            group,
            versions or ("v1",),
            aggregated,
            openapi,
            special,
        )
        self.resources: dict[str, list[dict[str, Any]]] = {v: resources() for v in self.versions}
        self.failing = 0  # a status that every request for discovery is answered with

    def __call__(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        path = request.path.split("?")[0]
        discovering = (
            path in ("/apis", f"/apis/{self.group}")
            or path.startswith("/openapi")
            or path in (f"/apis/{self.group}/{v}" for v in self.versions)
        )
        if discovering and self.failing:
            return self.failing, {"Content-Type": "text/plain"}, b"out of order"
        if path == "/apis":
            return self.groups(request)
        for version in self.versions:
            if path == f"/apis/{self.group}/{version}":
                return (
                    200,
                    {},
                    body_of(
                        {
                            "kind": "APIResourceList",
                            "apiVersion": "v1",
                            "groupVersion": f"{self.group}/{version}",
                            "resources": self.resources[version],
                        }
                    ),
                )
        if path.startswith("/openapi") and not self.openapi:
            return 404, {"Content-Type": "text/plain"}, b"no such thing"
        if path.startswith("/openapi"):
            return self.document(path)
        if path.startswith(f"/apis/{self.group}/") and path.count("/") == 3:
            return 404, {"Content-Type": "text/plain"}, b"404 no such version"
        return (self.special or self.echo)(request)

    def groups(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        if not self.aggregated or "apidiscovery.k8s.io" not in request.headers.get("accept", ""):
            return 406, {"Content-Type": "text/plain"}, b"not acceptable"
        versions = [
            {
                "version": v,
                "freshness": "Current",
                "resources": [
                    {
                        "resource": r["name"],
                        "responseKind": {"group": self.group, "version": v, "kind": r["kind"]},
                        "scope": "Namespaced",
                        "singularResource": r["singularName"],
                        "verbs": r["verbs"],
                    }
                    for r in self.resources[v]
                ],
            }
            for v in self.versions
        ]
        return (
            200,
            {"Content-Type": V2},
            body_of(
                {
                    "kind": "APIGroupDiscoveryList",
                    "apiVersion": "apidiscovery.k8s.io/v2",
                    "metadata": {},
                    "items": [{"metadata": {"name": self.group}, "versions": versions}],
                }
            ),
        )

    def document(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """OpenAPI v3 as an extension serves it: the paths that it has, and a document for each."""
        if path == "/openapi/v3":
            return (
                200,
                {"Etag": '"one"'},
                body_of(
                    {
                        "paths": {
                            f"apis/{self.group}/{v}": {"serverRelativeURL": f"/openapi/v3/apis/{self.group}/{v}?hash=ABC"}
                            for v in self.versions
                        }
                    }
                ),
            )
        if path.startswith("/openapi/v3/"):
            return (
                200,
                {"Etag": '"two"'},
                body_of(
                    {
                        "openapi": "3.0.0",
                        "info": {"title": "extension", "version": "1"},
                        "paths": {f"/apis/{self.group}/v1/things": {"get": {"responses": {"200": {"description": "OK"}}}}},
                    }
                ),
            )
        return 404, {}, b"{}"

    @staticmethod
    def echo(request: Request) -> tuple[int, dict[str, str], bytes]:
        headers = {k: v for k, v in sorted(request.headers.items()) if k not in VOLATILE}
        return (
            200,
            {"X-Extension": "here"},
            body_of(
                {
                    "kind": "Echo",
                    "method": request.method,
                    "path": request.path,
                    "headers": headers,
                    "body": request.body.decode("latin-1"),
                }
            ),
        )


def external(client: Client, name: str = "ext") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}


def condition(client: Client, name: str) -> list[Any]:
    """Status, reason and message of a service's condition Available."""
    found = [
        c
        for c in client.get(f"{SERVICES}/{name}", silent=True).get("status", "conditions", default=None) or []
        if c.get("type") == "Available"
    ]
    return [found[0].get("status"), found[0].get("reason"), found[0].get("message")] if found else []


def await_reason(client: Client, name: str, reason: str, seconds: float = 20) -> None:
    until(lambda: condition(client, name)[1:2] == [reason], seconds)


@contextlib.contextmanager
def extended(
    client: Client, extension: Extension, *versions: str, reason: str | None = "Passed", suffix: str = "ext", **spec: Any
) -> Iterator[tuple[int, list[Request]]]:
    """An extension server with its service and APIServices, passed on to once the body runs; yields its port and what it is sent."""
    service_name = f"{suffix}.{client.ns}.svc"
    with listening(client, extension, service_name) as (port, seen):
        client.post(f"/api/v1/namespaces/{client.ns}/services", external(client, suffix), silent=True)
        trust = {} if "insecureSkipTLSVerify" in spec or "caBundle" in spec else {"caBundle": self_signed(service_name)[1]}
        names = []
        for version in versions or extension.versions:
            body = api_service(
                client, version, extension.group, {"namespace": client.ns, "name": suffix, "port": port}, **trust, **spec
            )
            client.post(SERVICES, {**body, "spec": {k: v for k, v in body["spec"].items() if v is not None}}, silent=True)
            names.append(body["metadata"]["name"])
        for name in names:
            if reason:
                until(lambda: condition(client, name)[1:2] == [reason], 20)
            group, version = name.split(".", 1)[1], name.split(".", 1)[0]
            if reason in ("Passed", None):
                until(
                    lambda: (
                        client.get(f"/apis/{group}/{version}/namespaces/none/probe", silent=True).status
                        == (200 if reason else 503)
                    ),
                    10,
                )
        try:
            yield port, seen
        finally:
            extension.failing = 0
            for name in names:
                client.delete(f"{SERVICES}/{name}", silent=True)
                until(
                    lambda: (
                        client.get(
                            f"/apis/{name.split('.', 1)[1]}/{name.split('.', 1)[0]}/namespaces/none/probe", silent=True
                        ).status
                        == 404
                    ),
                    10,
                )


def discovered(client: Client, group: str, accept: str = V2) -> Any:
    """The group's part of the aggregated discovery document."""
    found = [
        i
        for i in client.get("/apis", headers={"Accept": accept}, silent=True).get("items", default=None) or []
        if i["metadata"].get("name") == group
    ]
    return found[0] if found else None


def listed(client: Client, group: str) -> Any:
    """The group's part of the list of groups."""
    found = [g for g in client.get("/apis", silent=True).get("groups", default=None) or [] if g.get("name") == group]
    return found[0] if found else None


def texts(client: Client, what: str, *replies: Reply) -> None:
    note(
        client,
        what,
        [
            [
                r.status,
                r.headers.get("content-type"),
                r.body.decode("latin-1")[:500] if r.json is None else (r.get("message") or r.json),
            ]
            for r in replies
        ],
    )
