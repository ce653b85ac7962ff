"""Aggregation: APIService objects, their availability, discovery of what other servers serve, and requests passed on to them.

A scenario runs its extension server on loopback, over HTTPS (../extensions.py). The API server reaches it through a
Service of type ExternalName with the name 127.0.0.1, so that nothing but loopback is needed. The extension answers
each request with what it was sent, so that an exchange shows both directions.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.differential import pacing
from tests.differential.certificates import self_signed
from tests.differential.client import APPLY, JSON_PATCH, MERGE, PARTIAL, TABLE, Client
from tests.differential.definitions import CRDS, DRY, definition, make, note, served, where
from tests.differential.extension_servers import (
    SERVICES,
    V2,
    V2BETA1,
    Extension,
    api_service,
    await_reason,
    body_of,
    condition,
    discovered,
    extended,
    external,
    group_of,
    listed,
    resources,
    texts,
)
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.steps import ALICE, NOBODY, Request, grant, granted_everywhere, listening, on, robot, rule

# ---------------------------------------------------------------- the objects


@scenario
def services_are_checked(client: Client) -> None:
    """The name is version.group; priorities have bounds; a service needs name, namespace and port; caBundle and insecureSkipTLSVerify exclude each other and local services."""
    good = {"namespace": "n", "name": "s"}
    for change in (
        {},
        {"service": good},
        {"service": {**good, "port": 8443}},
        {"service": {**good, "port": 0}},
        {"service": {**good, "port": 70000}},
        {"service": {"name": "s"}},
        {"service": {"namespace": "n"}},
        {"service": {}},
        {"groupPriorityMinimum": 0},
        {"groupPriorityMinimum": 20001},
        {"groupPriorityMinimum": 20000},
        {"groupPriorityMinimum": -1},
        {"groupPriorityMinimum": None},
        {"versionPriority": 0},
        {"versionPriority": 1001},
        {"versionPriority": None},
        {"insecureSkipTLSVerify": True},
        {"caBundle": base64.b64encode(b"x").decode()},
        {"service": good, "insecureSkipTLSVerify": True},
        {"service": good, "insecureSkipTLSVerify": True, "caBundle": base64.b64encode(b"x").decode()},
        {"service": good, "caBundle": "not base64"},
        {"service": good, "caBundle": base64.b64encode(b"no certificate").decode()},
        {"version": "v2"},
        {"version": "V1"},
        {"version": ""},
        {"group": "other.example.com"},
        {"group": "Bad_Group"},
        {"group": ""},
        {"extra": 1},
    ):
        body = api_service(client)
        client.post(SERVICES, {**body, "spec": {k: v for k, v in {**body["spec"], **change}.items() if v is not None}}, DRY)
    for name, group, version in (
        ("v1.", "", "v1"),
        ("v2.", "", "v2"),
        (f"v1beta1.{group_of(client)}", group_of(client), "v1beta1"),
        (f"one.{group_of(client)}", group_of(client), "one"),
        ("Bad Name", "x.example.com", "v1"),
        ("", "x.example.com", "v1"),
        ("1a.x", "x", "1a"),
    ):
        client.post(
            SERVICES,
            {
                "metadata": {"name": name},
                "spec": {"group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1},
            },
            DRY,
        )
    client.post(SERVICES, {**api_service(client), "metadata": {"generateName": "v1."}}, DRY)
    client.post(SERVICES, {"metadata": {"name": "v1.x"}}, DRY)


@scenario
def services_as_objects(client: Client) -> None:
    """Create, read, table, update, patch, apply, status, selectors, delete; what may be changed."""
    body = api_service(client, service={"namespace": client.ns, "name": "none"})
    path = f"{SERVICES}/{body['metadata']['name']}"
    client.post(SERVICES, body)
    await_reason(client, body["metadata"]["name"], "ServiceNotFound")
    now = client.get(path)
    client.post(SERVICES, body)
    client.get(SERVICES, {"fieldSelector": f"metadata.name={body['metadata']['name']}"}, headers={"Accept": TABLE})
    client.get(path, headers={"Accept": PARTIAL})
    client.get(SERVICES, {"fieldSelector": "spec.group=x"})
    client.patch(path, {"spec": {"versionPriority": 20, "groupPriorityMinimum": 1500}}, MERGE)
    client.patch(path, {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": []}}, MERGE)
    client.patch(path, {"spec": {"version": "v2"}}, MERGE)
    client.patch(path, {"spec": {"service": {"port": None}}}, MERGE)
    client.patch(path, [{"op": "replace", "path": "/spec/insecureSkipTLSVerify", "value": True}], JSON_PATCH)
    client.put(path, {**body, "metadata": {"name": body["metadata"]["name"]}})
    client.put(path, {**body, "metadata": {"name": body["metadata"]["name"], "resourceVersion": now.rv}})
    client.patch(
        path,
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": {"versionPriority": 30}},
        APPLY,
        {"fieldManager": "m"},
    )
    client.patch(
        path,
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": {"versionPriority": 30}},
        APPLY,
        {"fieldManager": "m", "force": "true"},
    )
    client.get(f"{path}/status")
    client.patch(f"{path}/status", {"status": {"conditions": [{"type": "Available", "status": "Maybe"}]}}, MERGE)
    client.patch(
        f"{path}/status",
        {
            "spec": {"versionPriority": 1},
            "status": {"conditions": [{"type": "Mine", "status": "True", "reason": "R", "message": "m"}]},
        },
        MERGE,
        DRY,
    )
    client.patch(path, {"spec": {"service": None}}, MERGE)
    client.patch(path, {"spec": {"service": None, "insecureSkipTLSVerify": False}}, MERGE)
    await_reason(client, body["metadata"]["name"], "Local")
    note(client, "local now", condition(client, body["metadata"]["name"]))
    client.get(SERVICES, {"labelSelector": "a=b"}, headers={"Accept": TABLE})
    client.delete(path)
    client.get(path)
    client.get(SERVICES, headers=ALICE)
    client.post(SERVICES, body, headers=ALICE)


@scenario
def services_of_what_is_built_in(client: Client) -> None:
    """Each group and version that the server itself serves has an APIService with its priorities, made at the start; what is done to it later stays, and without it the group is served but no longer listed."""
    items = [i for i in client.get(SERVICES, silent=True).get("items", default=[]) if "example" not in i["metadata"]["name"]]
    note(client, "names", sorted(i["metadata"]["name"] for i in items))
    note(
        client,
        "priorities",
        sorted([i["spec"].get("groupPriorityMinimum"), i["spec"].get("versionPriority"), i["metadata"]["name"]] for i in items),
    )
    note(client, "labels", sorted({json.dumps(i["metadata"].get("labels"), sort_keys=True) for i in items}))
    note(
        client,
        "conditions",
        sorted(
            {json.dumps([[c["type"], c["status"], c["reason"], c["message"]] for c in i["status"]["conditions"]]) for i in items}
        ),
    )
    for name in ("v1.apps", "v1.", "v2.autoscaling"):
        found = client.get(f"{SERVICES}/{name}", silent=True)
        note(
            client,
            name,
            [
                found.get("spec"),
                found.get("metadata", "labels"),
                [m["manager"] for m in found.get("metadata", "managedFields", default=[])],
            ],
        )
    note(
        client,
        "table",
        (
            client.get(SERVICES, {"fieldSelector": "metadata.name=v1.batch"}, headers={"Accept": TABLE}, silent=True).get(
                "rows", 0, "cells"
            )
            or []
        )[:3],
    )
    path = f"{SERVICES}/v1.node.k8s.io"
    before = client.get(path, silent=True)
    note(client, "patched", client.patch(path, {"spec": {"versionPriority": 99}}, MERGE, silent=True).get("spec"))
    pacing.sleep(1)
    note(client, "a second later", client.get(path, silent=True).get("spec"))
    client.delete(path)
    until(lambda: listed(client, "node.k8s.io") is None)
    note(client, "listed without it", [listed(client, "node.k8s.io"), (discovered(client, "node.k8s.io") or {}).get("metadata")])
    client.get("/apis/node.k8s.io/v1/runtimeclasses")
    client.get("/apis/node.k8s.io")
    client.get("/apis/node.k8s.io/v1")
    client.post(
        SERVICES,
        {"metadata": {"name": "v1.node.k8s.io", "labels": before.get("metadata", "labels")}, "spec": before.get("spec")},
        silent=True,
    )
    until(lambda: listed(client, "node.k8s.io"))
    note(client, "listed again", listed(client, "node.k8s.io"))


@scenario
def local_services(client: Client) -> None:
    """An APIService without a service is available at once, is shown in discovery, and has nothing behind it."""
    group = group_of(client)
    client.get(f"/apis/{group}")
    client.post(SERVICES, api_service(client, "v1beta1"))
    client.post(SERVICES, api_service(client, "v1", versionPriority=5), silent=True)
    until(lambda: client.get(f"/apis/{group}", silent=True).status == 200)
    until(lambda: len((listed(client, group) or {}).get("versions", [])) == 2)
    client.get(f"/apis/{group}")
    note(client, "listed", listed(client, group))
    note(client, "discovered", discovered(client, group))
    client.get(f"/apis/{group}/v1")
    client.get(f"/apis/{group}/v1/things")
    client.get(f"/apis/{group}/v2")
    client.get(f"/apis/{group}/")
    client.get(f"/apis/{group}/v1/things", headers=ALICE)
    client.patch(f"{SERVICES}/v1.{group}", {"spec": {"versionPriority": 50}}, MERGE, silent=True)
    until(lambda: (listed(client, group) or {}).get("preferredVersion", {}).get("version") == "v1")
    client.get(f"/apis/{group}")
    client.delete(f"{SERVICES}/v1.{group}")
    until(lambda: len((listed(client, group) or {}).get("versions", [])) == 1)
    client.get(f"/apis/{group}")
    client.delete(f"{SERVICES}/v1beta1.{group}")
    until(lambda: client.get(f"/apis/{group}", silent=True).status == 404)
    client.get(f"/apis/{group}")
    note(client, "not listed", listed(client, group))


@scenario
def services_that_are_not_available(client: Client) -> None:
    """The condition's reason and message for a missing service, port, endpoints, addresses and cluster address; requests are answered 503 in text; discovery shows the group, stale."""
    services = f"/api/v1/namespaces/{client.ns}/services"
    port = {"name": "https", "port": 443}
    client.post(services, {"metadata": {"name": "wrongport"}, "spec": {"ports": [{**port, "port": 8443}]}}, silent=True)
    client.post(services, {"metadata": {"name": "noslices"}, "spec": {"ports": [port]}}, silent=True)
    client.post(services, {"metadata": {"name": "noaddresses"}, "spec": {"ports": [port]}}, silent=True)
    client.post(
        f"/apis/discovery.k8s.io/v1/namespaces/{client.ns}/endpointslices",
        {
            "metadata": {"name": "noaddresses-1", "labels": {"kubernetes.io/service-name": "noaddresses"}},
            "addressType": "IPv4",
            "endpoints": [],
            "ports": [{"name": "https", "port": 443}],
        },
        silent=True,
    )
    client.post(services, {"metadata": {"name": "unready"}, "spec": {"ports": [port]}}, silent=True)
    client.post(
        f"/apis/discovery.k8s.io/v1/namespaces/{client.ns}/endpointslices",
        {
            "metadata": {"name": "unready-1", "labels": {"kubernetes.io/service-name": "unready"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": False}}],
            "ports": [{"name": "https", "port": 443}],
        },
        silent=True,
    )
    client.post(services, {"metadata": {"name": "headless"}, "spec": {"clusterIP": "None", "ports": [port]}}, silent=True)
    client.post(
        f"/apis/discovery.k8s.io/v1/namespaces/{client.ns}/endpointslices",
        {
            "metadata": {"name": "headless-1", "labels": {"kubernetes.io/service-name": "headless"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"]}],
            "ports": [{"name": "https", "port": 443}],
        },
        silent=True,
    )
    for name, reason, number in (
        ("missing", "ServiceNotFound", 443),
        ("wrongport", "ServicePortError", 443),
        ("noslices", "EndpointsNotFound", 443),
        ("noaddresses", "MissingEndpoints", 443),
        ("unready", "MissingEndpoints", 443),
        ("headless", "FailedDiscoveryCheck", 443),
    ):
        group = group_of(client, name)
        client.post(
            SERVICES,
            api_service(
                client, group=group, service={"namespace": client.ns, "name": name, "port": number}, insecureSkipTLSVerify=True
            ),
            silent=True,
        )
        await_reason(client, f"v1.{group}", reason)
        client.get(f"{SERVICES}/v1.{group}")
        until(lambda: client.get(f"/apis/{group}/v1", silent=True).status == 503, 5)
        client.get(f"/apis/{group}/v1/things")
        client.get(f"/apis/{group}")
        until(lambda: discovered(client, group), 10)
        texts(
            client,
            "503",
            client.get(f"/apis/{group}/v1", silent=True),
            client.post(f"/apis/{group}/v1/things", {}, silent=True),
            client.get(f"/apis/{group}/v1/things", headers={"Accept": "application/yaml"}, silent=True),
            client.get(f"/apis/{group}/v2", silent=True),
            client.get(f"/apis/{group}/v1/things", headers=ALICE, silent=True),
        )
        note(client, "discovered", [listed(client, group), discovered(client, group)])
        client.get(f"{SERVICES}", {"fieldSelector": f"metadata.name=v1.{group}"}, headers={"Accept": TABLE})
    group = group_of(client, "noslices")
    client.post(
        f"/apis/discovery.k8s.io/v1/namespaces/{client.ns}/endpointslices",
        {
            "metadata": {"name": "noslices-1", "labels": {"kubernetes.io/service-name": "noslices"}},
            "addressType": "IPv4",
            "endpoints": [],
            "ports": [],
        },
        silent=True,
    )
    await_reason(client, f"v1.{group}", "MissingEndpoints")
    note(client, "after a slice came", condition(client, f"v1.{group}"))
    client.delete(f"{services}/wrongport", silent=True)
    await_reason(client, f"v1.{group_of(client, 'wrongport')}", "ServiceNotFound")
    note(client, "after the service went", condition(client, f"v1.{group_of(client, 'wrongport')}"))
    for name in ("missing", "wrongport", "noslices", "noaddresses", "unready", "headless"):
        client.delete(f"{SERVICES}/v1.{group_of(client, name)}", silent=True)


# ---------------------------------------------------------------- passing on


@scenario
def requests_are_passed_on(client: Client) -> None:
    """Every verb, path, query, body and type goes to the extension as it came, and its answer comes back as it is."""
    group = group_of(client)
    with extended(client, Extension(group)):
        path = f"/apis/{group}/v1/namespaces/{client.ns}/things"
        client.get(path)
        client.get(f"{path}/one", {"a": "1", "b": ["2", "3"], "z": "a b&c"})
        client.get(f"{path}/one", "x=1&x=0&a=%2F&flag&empty=")
        client.post(path, {"kind": "Thing", "metadata": {"name": "one"}}, {"fieldManager": "me", "dryRun": "All"})
        client.put(f"{path}/one", "a: b\n", ctype="application/yaml")
        client.patch(f"{path}/one", {"a": 1}, MERGE)
        client.patch(f"{path}/one", {"a": 1}, APPLY, {"force": "true"})
        client.delete(f"{path}/one", {"propagationPolicy": "Orphan"})
        client.delete(path)
        client.request("HEAD", path)
        client.request("OPTIONS", path)
        client.post(f"/apis/{group}/v1/anything/at/all", b"\x00\x01binary", ctype="application/octet-stream")
        client.get(f"/apis/{group}/v1/things/")
        client.get(f"/apis/{group}/v1/a%2Fb//c")
        client.get(f"/apis/{group}/v1/things/one/status/deep/er")
        client.get(
            path,
            headers={
                "Accept": "text/html",
                "Accept-Encoding": "gzip",
                "X-Custom": "kept",
                "Cookie": "a=b",
                "If-None-Match": '"x"',
                "User-Agent": "someone/2",
            },
        )
        client.get(
            path,
            headers={
                "Connection": "keep-alive, X-Hop",
                "X-Hop": "dropped",
                "TE": "trailers",
                "Proxy-Authorization": "Basic eA==",
            },
        )
        client.get(path, {"watch": "true", "timeoutSeconds": "1"})


@scenario
def answers_come_back_as_they_are(client: Client) -> None:
    """Status, headers and body of the extension: errors, text, nothing, redirects, compressed bytes, headers of its own, and what the API server adds."""
    group = group_of(client)
    answers: dict[str, tuple[int, dict[str, str], bytes]] = {
        "teapot": (418, {"Content-Type": "text/plain"}, b"short and stout"),
        "status": (
            409,
            {},
            body_of(
                {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "message": "mine", "code": 409}
            ),
        ),
        "nothing": (204, {}, b""),
        "empty": (200, {}, b""),
        "error": (500, {"Content-Type": "text/plain"}, b"oops"),
        "unavailable": (503, {"Retry-After": "7"}, b"{}"),
        "many": (429, {"Retry-After": "3", "Content-Type": "text/plain"}, b"slow down"),
        "created": (201, {"Location": "/somewhere"}, b'{"kind": "Thing"}'),
        "moved": (302, {"Location": "https://example.com/elsewhere"}, b""),
        "permanently": (301, {"Location": f"/apis/{group}/v1/other"}, b""),
        "notmodified": (304, {"Etag": '"x"'}, b""),
        "yaml": (200, {"Content-Type": "application/yaml"}, b"a: b\n"),
        "html": (200, {"Content-Type": "text/html"}, f'<a href="/apis/{group}/v1/x">x</a>'.encode()),
        "warning": (200, {"Warning": '299 - "careful"', "Cache-Control": "max-age=60", "Vary": "X", "Link": "<x>"}, b"{}"),
        "authenticate": (401, {"WWW-Authenticate": "Basic realm=x", "Content-Type": "text/plain"}, b"who"),
        "spaced": (200, {}, b'{ "b":1,\n "a" : 2 }'),
    }

    def special(request: Request) -> tuple[int, dict[str, str], bytes]:
        return answers.get(request.path.rsplit("/", 1)[1], (200, {}, b"{}"))

    with extended(client, Extension(group, special=special)):
        for name in answers:
            client.get(f"/apis/{group}/v1/{name}")
        client.post(f"/apis/{group}/v1/teapot", {})
        client.request("HEAD", f"/apis/{group}/v1/teapot")


@scenario
def the_extension_is_told_who_asks(client: Client) -> None:
    """X-Remote-User, -Group, -Uid and -Extra- name the asker, whatever the request said; credentials and impersonation are not passed on."""
    group, name = group_of(client), f"user-{client.id}"
    with (
        extended(client, Extension(group)),
        granted_everywhere(client, name, rule("*", "*", group)),
        granted_everywhere(client, f"system:serviceaccount:{client.ns}:robot", rule("*", "*", group), suffix="robot"),
    ):
        path = f"/apis/{group}/v1/things"
        client.get(path)
        client.get(
            path,
            headers={
                "X-Remote-User": "root",
                "X-Remote-Group": "system:masters",
                "X-Remote-Extra-Scopes": "all",
                "X-Remote-Uid": "0",
                "X-Forwarded-For": "1.2.3.4",
                "X-Forwarded-Host": "evil",
                "Via": "x",
                "Forwarded": "for=1.2.3.4",
            },
        )
        client.get(path, headers={"Impersonate-User": name})
        client.get(
            path,
            headers={
                "Impersonate-User": name,
                "Impersonate-Group": "one",
                "Impersonate-Uid": "u-7",
                "Impersonate-Extra-Scopes": "view",
                "Impersonate-Extra-Example.com%2Fkey": "a b",
            },
        )
        client.get(path, headers={"Impersonate-User": name, "Impersonate-Extra-Acme": "caf%C3%A9"})
        client.get(path, headers={"Impersonate-User": "system:anonymous", "Impersonate-Group": "system:masters"})
        bot = robot(client)
        reply = bot.get(path, silent=True)
        headers = {
            k: v
            for k, v in (reply.get("headers", default=None) or {}).items()
            if k.startswith("x-remote") or k == "authorization"
        }
        note(
            client,
            "as a robot",
            {k: "<jti>" if k == "x-remote-extra-authentication.kubernetes.io%2fcredential-id" else v for k, v in headers.items()},
        )
        client.get(path, headers=ALICE)
        client.get(path, headers=NOBODY)
        client.get(f"/apis/{group}/v1", headers=ALICE)
        client.get(f"/apis/{group}/v1", headers=NOBODY)
        client.get(f"/apis/{group}", headers=ALICE)
        client.get(path, headers={"Authorization": "Bearer wrong"})


@scenario
def rights_are_checked_before(client: Client) -> None:
    """The API server authorizes by the group, resource and verb of the path before anything is passed on; the extension sees only what was allowed."""
    group, name = group_of(client), f"user-{client.id}"
    with extended(client, Extension(group)) as (_, seen):
        grant(client, name, rule("get list", "things things/status", group), rule("create", "others", group))
        path = f"/apis/{group}/v1/namespaces/{client.ns}"
        seen.clear()
        for method, rest in (
            ("GET", "things"),
            ("GET", "things/one"),
            ("GET", "things/one/status"),
            ("GET", "things/one/scale"),
            ("POST", "things"),
            ("POST", "others"),
            ("DELETE", "things/one"),
            ("PATCH", "things/one"),
            ("GET", "others"),
        ):
            client.request(
                method,
                f"{path}/{rest}",
                {} if method in ("POST", "PATCH") else None,
                headers={"Impersonate-User": name},
                ctype=MERGE if method == "PATCH" else None,
            )
        client.get(f"{path}/things", {"watch": "1"}, headers={"Impersonate-User": name})
        client.get(f"/apis/{group}/v1/things", headers={"Impersonate-User": name})
        client.get(f"/apis/{group}/v1/odd/path/of/its/own", headers={"Impersonate-User": name})
        client.get(f"/apis/{group}/v2/namespaces/{client.ns}/things", headers={"Impersonate-User": name})
        note(client, "reached the extension", [r.path for r in seen if "namespaces" in r.path])


@scenario
def trust(client: Client) -> None:
    """caBundle must have signed the certificate, which must name service.namespace.svc; insecureSkipTLSVerify looks at neither; what fails is told in the condition."""
    group = group_of(client)
    wrong = self_signed("other.example.com")[1]
    for suffix, spec, reason in (
        ("insecure", {"insecureSkipTLSVerify": True}, "Passed"),
        ("unknown", {"caBundle": None}, "FailedDiscoveryCheck"),
        ("wrong", {"caBundle": wrong}, "FailedDiscoveryCheck"),
        ("garbage", {"caBundle": base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()}, None),
    ):
        with extended(client, Extension(group), reason=reason, suffix=suffix, **spec):
            found = condition(client, f"v1.{group}")
            note(client, suffix, [*found[:2], *(str(m).split(" (possibly")[0] for m in found[2:])])
            client.get(f"/apis/{group}/v1/things")
    with listening(client, Extension(group), "not.the.service") as (port, _):
        client.post(f"/api/v1/namespaces/{client.ns}/services", external(client, "named"), silent=True)
        client.post(
            SERVICES,
            api_service(
                client,
                service={"namespace": client.ns, "name": "named", "port": port},
                caBundle=self_signed("not.the.service")[1],
            ),
            silent=True,
        )
        await_reason(client, f"v1.{group}", "FailedDiscoveryCheck")
        note(client, "another name", condition(client, f"v1.{group}"))
        client.get(f"/apis/{group}/v1/things")
        client.patch(f"{SERVICES}/v1.{group}", {"spec": {"caBundle": None, "insecureSkipTLSVerify": True}}, MERGE, silent=True)
        await_reason(client, f"v1.{group}", "Passed", 45)
        until(lambda: client.get(f"/apis/{group}/v1/things", silent=True).status == 200)
        client.get(f"/apis/{group}/v1/things")
        client.delete(f"{SERVICES}/v1.{group}", silent=True)


@scenario
def extensions_that_break(client: Client) -> None:
    """Discovery that fails makes the service unavailable; it comes back by itself; nobody listening and broken answers are 503 with the reason in text."""
    group = group_of(client)
    extension = Extension(group)
    extension.failing = 500
    with extended(client, extension, reason="FailedDiscoveryCheck"):
        note(client, "failing", condition(client, f"v1.{group}"))
        client.get(f"/apis/{group}/v1/things")
        client.get(f"/apis/{group}/v1")
        extension.failing = 0
        await_reason(client, f"v1.{group}", "Passed", 45)
        until(lambda: client.get(f"/apis/{group}/v1/things", silent=True).status == 200)
        client.get(f"/apis/{group}/v1/things")
        for extension.failing in (404, 302):
            client.patch(
                f"{SERVICES}/v1.{group}", {"metadata": {"labels": {"touched": str(extension.failing)}}}, MERGE, silent=True
            )
            until(lambda: str(extension.failing) in str(condition(client, f"v1.{group}")[2:]), 45)
            note(client, f"answering {extension.failing}", condition(client, f"v1.{group}"))
    client.post(
        SERVICES,
        api_service(client, service={"namespace": client.ns, "name": "ext", "port": 9}, insecureSkipTLSVerify=True),
        silent=True,
    )
    await_reason(client, f"v1.{group}", "FailedDiscoveryCheck")
    note(client, "nobody", condition(client, f"v1.{group}"))
    client.get(f"/apis/{group}/v1/things")
    client.delete(f"{SERVICES}/v1.{group}", silent=True)
    other = group_of(client, "gone")
    client.post(f"/api/v1/namespaces/{client.ns}/services", external(client, "gone"), silent=True)
    with listening(client, Extension(other), f"gone.{client.ns}.svc") as (port, _):
        client.post(
            SERVICES,
            api_service(
                client, group=other, service={"namespace": client.ns, "name": "gone", "port": port}, insecureSkipTLSVerify=True
            ),
            silent=True,
        )
        until(lambda: client.get(f"/apis/{other}/v1/things", silent=True).status == 200)
    refused = client.get(f"/apis/{other}/v1/things", silent=True)
    note(
        client,
        "stopped a moment ago",
        [refused.status, refused.headers.get("content-type"), refused.body.decode().replace(str(port), "443")],
    )
    client.delete(f"{SERVICES}/v1.{other}", silent=True)


@scenario
def streams_pass(client: Client) -> None:
    """A watch of an extension's is passed on piece by piece, until the extension ends it."""
    group = group_of(client)
    events = [
        {"type": "ADDED", "object": {"kind": "Thing", "metadata": {"name": "one"}}},
        {"type": "DELETED", "object": {"kind": "Thing", "metadata": {"name": "one"}}},
    ]

    def special(request: Request) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b"".join(body_of(e) + b"\n" for e in events) if "watch" in request.path else b"{}"

    with extended(client, Extension(group, special=special)):
        client.watch(f"/apis/{group}/v1/things")
        client.watch(f"/apis/{group}/v1/watch/things", {"timeoutSeconds": "2"})
        client.watch(f"/apis/{group}/v1/things", headers=ALICE)


@scenario
def a_service_with_a_finalizer(client: Client) -> None:
    """An APIService that is being deleted still serves until it is gone; then nothing is found, in text."""
    group = group_of(client)
    with extended(client, Extension(group)):
        path = f"{SERVICES}/v1.{group}"
        client.patch(path, {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE, silent=True)
        reply = client.delete(path, silent=True)
        note(
            client,
            "deleting",
            [reply.status, reply.get("metadata", "finalizers"), bool(reply.get("metadata", "deletionTimestamp"))],
        )
        client.get(f"/apis/{group}/v1/things")
        client.get(f"/apis/{group}")
        client.patch(path, {"metadata": {"finalizers": None}}, MERGE, silent=True)
        until(lambda: client.get(f"/apis/{group}/v1/things", silent=True).status == 404)
        client.get(f"/apis/{group}/v1/things")
        client.get(f"/apis/{group}/v1")
        client.get(f"/apis/{group}")
        until(lambda: discovered(client, group) is None)
        note(client, "discovered", [listed(client, group), discovered(client, group)])
        client.get(f"/apis/{group}/v1/things", headers=ALICE)


# ---------------------------------------------------------------- discovery


@scenario
def discovery_is_merged(client: Client) -> None:
    """The group of an extension in the list of groups, as a group, as a list of resources, and in the aggregated document, with and without aggregated discovery of its own."""
    for suffix, aggregated in (("new", True), ("old", False)):
        group = group_of(client, suffix)
        extension = Extension(group, "v1", "v2alpha1", aggregated=aggregated)
        extension.resources["v1"] = [
            *resources("things", "widgets"),
            {"name": "things/status", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get", "patch"]},
        ]
        with extended(client, extension, suffix=suffix):
            until(
                lambda: all(
                    v.get("freshness") == "Current" and v.get("resources")
                    for v in (discovered(client, group) or {"versions": [{}]})["versions"]
                ),
                20,
            )
            note(client, "listed", listed(client, group))
            client.get(f"/apis/{group}")
            client.get(f"/apis/{group}/v1")
            client.get(f"/apis/{group}/v2alpha1")
            note(client, "discovered", discovered(client, group))
            note(client, "discovered, v2beta1", discovered(client, group, V2BETA1))
            for accept in ("application/yaml", "application/vnd.kubernetes.protobuf", "text/html", TABLE):
                texts(
                    client,
                    accept,
                    client.get(f"/apis/{group}", headers={"Accept": accept}, silent=True)
                    if "protobuf" not in accept
                    else client.get(f"/apis/{group}/v1", headers={"Accept": accept}, silent=True),
                )
            client.get(f"/apis/{group}/")
            client.post(f"/apis/{group}", {})


@scenario
def discovery_goes_stale(client: Client) -> None:
    """An extension that cannot be asked leaves its version in the aggregated document, without resources and stale; with it again, current."""
    group = group_of(client)
    extension = Extension(group)
    extension.failing = 503
    with extended(client, extension, reason="FailedDiscoveryCheck"):
        until(lambda: (discovered(client, group) or {"versions": [{}]})["versions"][0].get("freshness") == "Stale")
        note(client, "stale", [listed(client, group), discovered(client, group)])
        extension.failing = 0
        await_reason(client, f"v1.{group}", "Passed", 45)
        until(lambda: (discovered(client, group) or {"versions": [{}]})["versions"][0].get("freshness") == "Current", 45)
        note(client, "current", discovered(client, group))
    note(client, "gone", [until(lambda: discovered(client, group) is None), listed(client, group)])


@scenario
def documents_are_merged(client: Client) -> None:
    """OpenAPI v3: the extension's documents are listed beside the server's own, and passed on."""
    group = group_of(client)
    with extended(client, Extension(group, openapi=True)):
        key = f"apis/{group}/v1"

        def found() -> Any:
            return client.get("/openapi/v3", silent=True).get("paths", key)

        until(found, 20)
        note(client, "listed", found())
        client.get(f"/openapi/v3/{key}", {"hash": "ABC"})
        client.get(f"/openapi/v3/{key}")
        client.get(f"/openapi/v3/{key}", headers=ALICE)
        note(client, "its own", bool(client.get("/openapi/v3", silent=True).get("paths", "apis/apps/v1")))
    until(lambda: not found(), 20)
    note(client, "afterwards", found())


@scenario
def an_extension_of_a_built_in_group(client: Client) -> None:
    """A further version of a group that the server has itself: discovery shows it by its priority, the others stay."""
    with extended(client, Extension("batch", "v9"), versionPriority=2):
        until(
            lambda: (
                len((listed(client, "batch") or {}).get("versions", [])) == 2
                and len((discovered(client, "batch") or {"versions": []})["versions"]) == 2
            )
        )
        client.get("/apis/batch")
        client.get("/apis/batch/v9")
        client.get(f"/apis/batch/v9/namespaces/{client.ns}/things")
        client.get(f"/apis/batch/v1/namespaces/{client.ns}/jobs")
        client.get(f"/apis/batch/v9/namespaces/{client.ns}/jobs")
        note(
            client,
            "versions",
            [
                [v["version"], v.get("freshness"), len(v.get("resources", []))]
                for v in (discovered(client, "batch") or {"versions": []})["versions"]
            ],
        )
    until(lambda: len((listed(client, "batch") or {}).get("versions", [])) == 1)
    client.get("/apis/batch")
    client.get("/apis/batch/v9")


@scenario
def one_service_for_several_groups(client: Client) -> None:
    """Two groups and three versions behind one service: each is passed on by its own APIService, and ends with it."""
    one, two = group_of(client, "one"), group_of(client, "two")

    def special(request: Request) -> tuple[int, dict[str, str], bytes]:
        return Extension(two)(request) if f"/{two}/" in request.path else Extension.echo(request)

    with extended(client, Extension(one, "v1", "v2", special=special)) as (port, _):
        bundle = client.get(f"{SERVICES}/v1.{one}", silent=True).get("spec", "caBundle")
        client.post(
            SERVICES,
            api_service(client, "v1", two, {"namespace": client.ns, "name": "ext", "port": port}, caBundle=bundle),
            silent=True,
        )
        await_reason(client, f"v1.{two}", "Passed")
        until(lambda: client.get(f"/apis/{two}/v1/things", silent=True).status == 200)
        for path in (f"{one}/v1/things", f"{one}/v2/things", f"{two}/v1/things", f"{two}/v2/things", f"{two}/v1", one, two):
            client.get(f"/apis/{path}")
        client.delete(f"{SERVICES}/v2.{one}", silent=True)
        until(lambda: client.get(f"/apis/{one}/v2/things", silent=True).status == 404)
        client.get(f"/apis/{one}/v2/things")
        client.get(f"/apis/{one}")
        client.delete(f"{SERVICES}/v1.{two}", silent=True)
        until(lambda: client.get(f"/apis/{two}/v1/things", silent=True).status == 404)
        client.get(f"/apis/{two}")
        client.get(f"/apis/{one}/v1/things")


@scenario
def availability_is_watched(client: Client) -> None:
    """A watch of an APIService shows the condition come and change with its service."""
    group = group_of(client)
    name = f"v1.{group}"

    def story() -> None:
        client.post(SERVICES, api_service(client, service={"namespace": client.ns, "name": "later", "port": 443}), silent=True)
        await_reason(client, name, "ServiceNotFound")
        client.post(
            f"/api/v1/namespaces/{client.ns}/services",
            {"metadata": {"name": "later"}, "spec": {"ports": [{"port": 80}]}},
            silent=True,
        )
        await_reason(client, name, "ServicePortError")
        client.patch(f"/api/v1/namespaces/{client.ns}/services/later", {"spec": {"ports": [{"port": 443}]}}, MERGE, silent=True)
        await_reason(client, name, "EndpointsNotFound")
        client.delete(f"{SERVICES}/{name}", silent=True)

    events = client.watch(SERVICES, {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": "30"}, quiet=2, then=story)
    note(
        client,
        "conditions",
        [
            [
                e.get("type"),
                [[c["status"], c["reason"], c["message"]] for c in e["object"].get("status", {}).get("conditions", [])],
            ]
            for e in events
            if isinstance(e, dict)
        ],
    )


@scenario
def an_extension_may_lack_a_version(client: Client) -> None:
    """A version that the extension does not know: the condition fails for it alone; the aggregated document holds it without resources."""
    group = group_of(client)
    with extended(client, Extension(group, "v1"), "v1"):
        service = client.get(f"{SERVICES}/v1.{group}", silent=True).get("spec", "service")
        bundle = client.get(f"{SERVICES}/v1.{group}", silent=True).get("spec", "caBundle")
        client.post(SERVICES, api_service(client, "v2", group, service, caBundle=bundle, versionPriority=20), silent=True)
        until(lambda: condition(client, f"v2.{group}") != [], 10)
        until(lambda: len((discovered(client, group) or {"versions": []})["versions"]) == 2)
        note(client, "v2", condition(client, f"v2.{group}"))
        client.get(f"/apis/{group}")
        client.get(f"/apis/{group}/v2")
        client.get(f"/apis/{group}/v2/things")
        client.get(f"/apis/{group}/v1/things")
        until(
            lambda: all(
                v.get("resources") for v in (discovered(client, group) or {"versions": [{}]})["versions"] if v["version"] == "v1"
            ),
            10,
        )
        note(
            client,
            "discovered",
            [[v["version"], v.get("resources")] for v in (discovered(client, group) or {"versions": []})["versions"]],
        )
        client.delete(f"{SERVICES}/v2.{group}", silent=True)


@scenario
def priorities_order_discovery(client: Client) -> None:
    """Groups by the highest groupPriorityMinimum of their versions, then by name; versions by versionPriority, then as versions are ordered."""
    groups = {
        "a": [("v1", 1200, 10)],
        "b": [("v1", 1300, 10)],
        "c": [("v1", 1200, 10)],
        "d": [("v1", 100, 10), ("v2", 18500, 5)],
        "e": [
            ("v1alpha1", 1250, 15),
            ("v1beta2", 1250, 15),
            ("v2", 1250, 15),
            ("v1", 1250, 15),
            ("v10", 1250, 15),
            ("foo", 1250, 15),
            ("v1beta1", 1250, 15),
            ("v3", 1250, 20),
            ("v4", 1250, 1),
        ],
    }
    for suffix, versions in groups.items():
        for version, group_priority, priority in versions:
            client.post(
                SERVICES,
                api_service(
                    client, version, group_of(client, suffix), groupPriorityMinimum=group_priority, versionPriority=priority
                ),
                silent=True,
            )
    try:
        until(
            lambda: all(len((listed(client, group_of(client, s)) or {}).get("versions", [])) == len(v) for s, v in groups.items())
        )
        mine = [group_of(client, s) for s in groups]
        note(
            client,
            "groups",
            [
                g["name"]
                for g in client.get("/apis", silent=True).get("groups", default=[])
                if g["name"] in (*mine, "apps", "batch", "events.k8s.io")
            ],
        )
        for suffix in ("d", "e"):
            client.get(f"/apis/{group_of(client, suffix)}")
        client.patch(f"{SERVICES}/v1.{group_of(client, 'a')}", {"spec": {"groupPriorityMinimum": 19000}}, MERGE, silent=True)
        until(
            lambda: (
                [g["name"] for g in client.get("/apis", silent=True).get("groups", default=[]) if g["name"] in mine][:1]
                == [group_of(client, "a")]
            )
        )
        note(
            client,
            "groups afterwards",
            [g["name"] for g in client.get("/apis", silent=True).get("groups", default=[]) if g["name"] in (*mine, "apps")],
        )
        client.patch(f"{SERVICES}/v1alpha1.{group_of(client, 'e')}", {"spec": {"versionPriority": 999}}, MERGE, silent=True)
        until(lambda: (listed(client, group_of(client, "e")) or {}).get("preferredVersion", {}).get("version") == "v1alpha1")
        client.get(f"/apis/{group_of(client, 'e')}")
    finally:
        for suffix, versions in groups.items():
            for version, *_ in versions:
                client.delete(f"{SERVICES}/{version}.{group_of(client, suffix)}", silent=True)


@scenario
def priorities_order_the_aggregated_document(client: Client) -> None:
    """The aggregated document sorts groups and versions by the same priorities."""
    one, two = group_of(client, "one"), group_of(client, "two")
    with (
        extended(client, Extension(one, "v1", "v2beta1", "v2"), suffix="one", groupPriorityMinimum=1100),
        extended(client, Extension(two), suffix="two", groupPriorityMinimum=18200, versionPriority=100),
    ):
        until(
            lambda: all(
                v.get("freshness") == "Current"
                for g in (one, two)
                for v in (discovered(client, g) or {"versions": [{}]})["versions"]
            )
        )
        items = client.get("/apis", headers={"Accept": V2}, silent=True).get("items", default=[])
        note(
            client,
            "groups",
            [
                i["metadata"]["name"]
                for i in items
                if i["metadata"]["name"] in (one, two, "apps", "batch", "apiextensions.k8s.io")
            ],
        )
        note(client, "versions", [v["version"] for i in items if i["metadata"]["name"] == one for v in i["versions"]])
        client.patch(f"{SERVICES}/v2beta1.{one}", {"spec": {"versionPriority": 500}}, MERGE, silent=True)
        until(lambda: [v["version"] for v in (discovered(client, one) or {"versions": []})["versions"]][:1] == ["v2beta1"])
        note(client, "versions afterwards", [v["version"] for v in (discovered(client, one) or {"versions": []})["versions"]])
        client.get(f"/apis/{one}")


# ---------------------------------------------------------------- custom resources beside extensions


@scenario
def definitions_have_services(client: Client) -> None:
    """A definition's versions get an APIService each, managed, with priorities by the order of versions, until the definition goes."""
    body = definition(client)
    for version in ("v1beta1", "v2alpha1", "v2"):
        body["spec"]["versions"].append(
            {"name": version, "served": True, "storage": False, "schema": body["spec"]["versions"][0]["schema"]}
        )
    body["spec"]["versions"].append(
        {"name": "v3", "served": False, "storage": False, "schema": body["spec"]["versions"][0]["schema"]}
    )
    group = body["spec"]["group"]

    def services() -> list[Any]:
        return sorted(
            [
                i["metadata"]["name"],
                i["spec"],
                i["metadata"].get("labels"),
                [[c["status"], c["reason"]] for c in i["status"].get("conditions", [])],
            ]
            for i in client.get(SERVICES, silent=True).get("items", default=[])
            if i["spec"].get("group") == group
        )

    with served(client, body):
        until(lambda: len(services()) >= 4)
        note(client, "services", services())
        client.get(f"/apis/{group}")
        client.patch(f"{SERVICES}/v1.{group}", {"spec": {"versionPriority": 7}}, MERGE, silent=True)
        until(lambda: client.get(f"{SERVICES}/v1.{group}", silent=True).get("spec", "versionPriority") != 7, 15)
        note(client, "mended", client.get(f"{SERVICES}/v1.{group}", silent=True).get("spec"))
        client.delete(f"{SERVICES}/v2.{group}", silent=True)
        until(lambda: client.get(f"{SERVICES}/v2.{group}", silent=True).status == 200, 15)
        note(client, "made again", client.get(f"{SERVICES}/v2.{group}", silent=True).status)
        client.post(SERVICES, api_service(client, group=group), DRY)
    until(lambda: services() == [], 15)
    note(client, "afterwards", services())
    client.get(f"/apis/{group}")


@scenario
def an_extension_beside_a_definition(client: Client) -> None:
    """Two versions of one group, one of custom resources and one of an extension: each is served by its own, discovery shows both."""
    body = definition(client)
    group = body["spec"]["group"]
    with served(client, body) as path, extended(client, Extension(group, "v2"), versionPriority=200):
        client.post(path, make(body), silent=True)
        until(
            lambda: (
                len((listed(client, group) or {}).get("versions", [])) == 2
                and len((discovered(client, group) or {"versions": []})["versions"]) == 2
            )
        )
        client.get(f"/apis/{group}")
        client.get(f"{path}/one")
        client.get(path.replace("/v1/", "/v2/"))
        client.get(f"{path.replace('/v1/', '/v2/')}/one")
        note(client, "v1", [r["name"] for r in client.get(f"/apis/{group}/v1", silent=True).get("resources", default=[])])
        client.get(f"/apis/{group}/v2")
        until(lambda: all(v.get("freshness") == "Current" for v in (discovered(client, group) or {"versions": [{}]})["versions"]))
        note(client, "discovered", discovered(client, group))


@scenario
def an_extension_before_a_definition(client: Client) -> None:
    """An APIService that was there first keeps its version, though a definition for it comes later: the custom resources are hidden, until the APIService goes."""
    body = definition(client, group=group_of(client))
    group = body["spec"]["group"]
    with extended(client, Extension(group, "v1")):
        client.post(CRDS, body, silent=True)
        until(
            lambda: any(
                c["type"] == "Established" and c["status"] == "True"
                for c in client.get(f"{CRDS}/{body['metadata']['name']}", silent=True).get("status", "conditions", default=None)
                or []
            )
        )
        path = where(client, body)
        client.post(path, make(body))
        client.get(path)
        found = client.get(f"{SERVICES}/v1.{group}", silent=True)
        note(
            client,
            "service",
            [found.get("metadata", "labels"), found.get("spec", "versionPriority"), found.get("spec", "service", "name")],
        )
        client.get(f"/apis/{group}/v1")
        client.delete(f"{SERVICES}/v1.{group}", silent=True)
        until(lambda: client.get(path, silent=True).get("kind") == "WidgetList", 15)
        client.get(path)
        found = client.get(f"{SERVICES}/v1.{group}", silent=True)
        note(client, "service of the definition", [found.get("metadata", "labels"), found.get("spec")])
        client.delete(f"{CRDS}/{body['metadata']['name']}", silent=True)
        until(lambda: client.get(f"{CRDS}/{body['metadata']['name']}", silent=True).status == 404)
        until(lambda: client.get(f"{SERVICES}/v1.{group}", silent=True).status == 404, 15)


@scenario
def a_managed_service_taken_over(client: Client) -> None:
    """Without its label, the APIService of a definition belongs to whoever changed it, and may point to an extension."""
    body = definition(client, group=group_of(client))
    group = body["spec"]["group"]
    with served(client, body) as path:
        client.post(path, make(body), silent=True)
        until(lambda: client.get(f"{SERVICES}/v1.{group}", silent=True).status == 200)
        service_name = f"taker.{client.ns}.svc"
        with listening(client, Extension(group), service_name) as (port, _):
            client.post(f"/api/v1/namespaces/{client.ns}/services", external(client, "taker"), silent=True)
            change = {
                "metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": None}},
                "spec": {
                    "service": {"namespace": client.ns, "name": "taker", "port": port},
                    "caBundle": self_signed(service_name)[1],
                },
            }
            client.patch(f"{SERVICES}/v1.{group}", change, MERGE, silent=True)
            until(lambda: client.get(path, silent=True).get("kind") == "Echo", 15)
            client.get(path)
            client.get(f"/apis/{group}/v1")
            client.patch(f"{SERVICES}/v1.{group}", {"spec": {"service": None, "caBundle": None}}, MERGE, silent=True)
            until(lambda: client.get(path, silent=True).get("kind") == "WidgetList", 15)
            client.get(f"{path}/one")
        client.delete(f"{SERVICES}/v1.{group}", silent=True)


@scenario
def webhooks_find_services_in_the_same_way(client: Client) -> None:
    """A webhook's clientConfig.service with an external name: port, path, and a certificate that names service.namespace.svc."""
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        review = json.loads(request.body)
        return (
            200,
            {},
            body_of(
                {
                    "apiVersion": review["apiVersion"],
                    "kind": review["kind"],
                    "response": {
                        "uid": review["request"]["uid"],
                        "allowed": False,
                        "status": {"message": f"{request.method} {request.path}"},
                    },
                }
            ),
        )

    for suffix, names in (("hook", (f"hook.{client.ns}.svc",)), ("other", ("wrong.example.com",))):
        with listening(client, answer, *names) as (port, _):
            client.post(f"/api/v1/namespaces/{client.ns}/services", external(client, suffix), silent=True)
            for path in (None, "/check", "/deep/path"):
                service = {"namespace": client.ns, "name": suffix, "port": port, **({"path": path} if path else {})}
                client.post(
                    hooks,
                    {
                        "metadata": {"name": client.name(suffix)},
                        "webhooks": [
                            {
                                "name": "hook.example.com",
                                "clientConfig": {"service": service, "caBundle": self_signed(*names)[1]},
                                "sideEffects": "None",
                                "admissionReviewVersions": ["v1"],
                                "timeoutSeconds": 5,
                                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": client.ns}},
                                "rules": [on("configmaps", "CREATE")],
                            }
                        ],
                    },
                    silent=True,
                )
                until(
                    lambda: (
                        client.post(
                            f"/api/v1/namespaces/{client.ns}/configmaps", {"metadata": {"name": "probe"}}, DRY, silent=True
                        ).status
                        != 201
                    ),
                    5,
                )
                client.post(f"/api/v1/namespaces/{client.ns}/configmaps", {"metadata": {"name": "one"}}, DRY)
                client.delete(f"{hooks}/{client.name(suffix)}", silent=True)
                until(
                    lambda: (
                        client.post(
                            f"/api/v1/namespaces/{client.ns}/configmaps", {"metadata": {"name": "probe"}}, DRY, silent=True
                        ).status
                        == 201
                    ),
                    5,
                )
