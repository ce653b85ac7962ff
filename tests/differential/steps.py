"""What several modules of scenarios need: waiting, definitions, other identities, HTTPS servers, policies in force."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.certificates import self_signed
from tests.differential.client import MERGE, Client, Verbs
from tests.differential.definitions import DRY
from tests.differential.pacing import until
from tests.differential.transports import Reply

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHZ = "/apis/authorization.k8s.io/v1"
AUTHN = "/apis/authentication.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
ALICE = {"Authorization": "Bearer user-token"}
NOBODY = {"Authorization": ""}


# ---------------------------------------------------------------- waiting and telling

# ---------------------------------------------------------------- objects


def maps(client: Client, ns: str = "") -> str:
    return f"/api/v1/namespaces/{ns or client.ns}/configmaps"


def config_map(name: str = "one", labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "data": data or {"a": "1"},
    }


def deployment(name: str = "web", replicas: int = 1, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.com/main:1", **container}]},
            },
        },
    }


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}], **spec},
    }


# ---------------------------------------------------------------- identities and rights


class As(Verbs):
    """The scenario's client with other credentials."""

    def __init__(self, client: Client, headers: dict[str, str]) -> None:
        self.client, self.headers, self.ns = client, headers, client.ns

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Any = None,
        *,
        ctype: str | None = None,
        headers: dict[str, str] | None = None,
        silent: bool = False,
    ) -> Reply:
        return self.client.request(
            method, path, body, query, ctype=ctype, headers={**self.headers, **(headers or {})}, silent=silent
        )


def accounts(client: Client) -> str:
    return f"/api/v1/namespaces/{client.ns}/serviceaccounts"


def robot(client: Client, name: str = "robot", **spec: Any) -> As:
    """A service account of the scenario's, made silently, with a token of its own that the server already knows."""
    client.post(accounts(client), {"metadata": {"name": name}}, silent=True)
    token = client.post(f"{accounts(client)}/{name}/token", {"spec": spec}, silent=True).get("status", "token", default="none")
    until(lambda: client.get("/version", headers={"Authorization": f"Bearer {token}"}, silent=True).status == 200, 3)
    return As(client, {"Authorization": f"Bearer {token}"})


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> dict[str, Any]:
    return {
        "verbs": verbs.split(),
        "resources": resources.split(),
        "apiGroups": groups.split(",") if groups else [""],
        **({"resourceNames": names.split()} if names else {}),
    }


def role(name: str, *rules: dict[str, Any], kind: str = "Role", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules), **more}


def user_subject(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def binding(
    name: str, role_name: str, *users: str, kind: str = "RoleBinding", role_kind: str = "Role", **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role_name},
        "subjects": [user_subject(u) for u in users],
        **more,
    }


def allowed(client: Client, who: str, verb: str, resource: str, group: str = "", ns: str | None = None, **more: Any) -> bool:
    attributes = {"namespace": client.ns if ns is None else ns, "verb": verb, "group": group, "resource": resource, **more}
    return bool(
        client.post(
            f"{AUTHZ}/subjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": who, "resourceAttributes": attributes},
            },
            silent=True,
        ).get("status", "allowed")
    )


def grant(
    client: Client, user: str, *rules: dict[str, Any], name: str = "granted", wait: tuple[str, str, str] | None = None
) -> None:
    """Let the user do this in the scenario's namespace, and wait until the server knows."""
    roles = f"{RBAC}/namespaces/{client.ns}"
    client.post(f"{roles}/roles", role(name, *rules), silent=True)
    client.post(f"{roles}/rolebindings", binding(name, name, user), silent=True)
    first = rules[0]
    verb, resource, group = wait or (first["verbs"][0], first["resources"][0], first["apiGroups"][0])
    resource, _, sub = resource.partition("/")
    named = {"name": first["resourceNames"][0]} if first.get("resourceNames") else {}
    until(
        lambda: allowed(
            client, user, "get" if verb == "*" else verb, resource, group, **named, **({"subresource": sub} if sub else {})
        ),
        5,
    )


@contextlib.contextmanager
def granted_everywhere(client: Client, user: str, *rules: dict[str, Any], suffix: str = "wide") -> Iterator[None]:
    """Let the user do this in the whole cluster for a while."""
    name = client.name(suffix)
    client.post(f"{RBAC}/clusterroles", role(name, *rules, kind="ClusterRole"), silent=True)
    client.post(
        f"{RBAC}/clusterrolebindings", binding(name, name, user, kind="ClusterRoleBinding", role_kind="ClusterRole"), silent=True
    )

    def answer() -> Reply:
        one = rules[-1]
        if "nonResourceURLs" in one:
            spec: dict[str, Any] = {
                "nonResourceAttributes": {"path": one["nonResourceURLs"][0].replace("*", "x"), "verb": one["verbs"][0]}
            }
        else:
            resource, _, sub = one["resources"][0].partition("/")
            spec = {
                "resourceAttributes": {
                    "verb": one["verbs"][0].replace("*", "get"),
                    "resource": resource,
                    "group": one["apiGroups"][0],
                    **({"name": one["resourceNames"][0]} if one.get("resourceNames") else {}),
                    **({"subresource": sub} if sub else {}),
                }
            }
        return client.post(f"{AUTHZ}/subjectaccessreviews", {"spec": {"user": user, **spec}}, silent=True)

    until(lambda: answer().get("status", "allowed"), 5)
    try:
        yield
    finally:
        client.delete(f"{RBAC}/clusterrolebindings/{name}", silent=True)
        client.delete(f"{RBAC}/clusterroles/{name}", silent=True)
        until(lambda: f'"{name}' not in str(answer().get("status", "reason")), 5)


# ---------------------------------------------------------------- servers that the API server calls


class Request:
    """What the API server sent to a server of the scenario's: `method`, `path` with its query, `headers` (lower case), `body` (bytes)."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.path, self.headers, self.body = method, path, headers, body


@contextlib.contextmanager
def listening(
    client: Client, answer: Callable[[Request], tuple[int, dict[str, str], bytes]], *names: str
) -> Iterator[tuple[int, list[Request]]]:
    """An HTTPS server on loopback; yields its port and what it is sent. Port and certificate are hidden in the transcript."""
    seen: list[Request] = []
    live: set[Any] = set()
    context, bundle = self_signed(*names)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            live.add(self.connection)

        def one(self) -> None:
            headers: dict[str, str] = {}
            for key, value in self.headers.items():
                headers[key.lower()] = f"{headers[key.lower()]} || {value}" if key.lower() in headers else value
            request = Request(self.command, self.path, headers, self.rfile.read(int(headers.get("content-length") or 0)))
            seen.append(request)
            status, out, data = answer(request)
            try:
                self.send_response(status)
                for key, value in {"Content-Type": "application/json", **out}.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)
            except OSError:
                pass

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):  # any method at all
                return self.one
            raise AttributeError(name)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    port = server.server_address[1]
    try:
        yield port, seen
    finally:
        server.shutdown()
        server.server_close()
        for connection in live:  # kept alive by the API server
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        text = (
            json.dumps(client.transcript)
            .replace(f"127.0.0.1:{port}", "127.0.0.1:443")
            .replace(f".svc:{port}", ".svc:443")
            .replace(f'"port": {port}', '"port": 443')
            .replace(bundle, "<ca bundle>")
        )
        client.transcript[:] = json.loads(text)


# ---------------------------------------------------------------- policies


def on(
    resources: str, operations: str = "CREATE UPDATE DELETE", group: str = "", versions: str = "v1", **more: Any
) -> dict[str, Any]:
    return {
        "apiGroups": group.split(","),
        "apiVersions": versions.split(),
        "operations": operations.split(),
        "resources": resources.split(),
        **more,
    }


def here(client: Client) -> dict[str, Any]:
    """The selector of the scenario's namespace."""
    return {"matchLabels": {"kubernetes.io/metadata.name": client.ns}}


def policy(client: Client, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A policy on the config maps of the scenario's namespace, unless `spec` says other things; constraints are added to, not replaced."""
    constraints = {
        "namespaceSelector": here(client),
        "resourceRules": [on("configmaps", "CREATE UPDATE DELETE" if kind == "Validating" else "CREATE UPDATE")],
        **(spec.get("matchConstraints") or {}),
    }
    base = {} if kind == "Validating" else {"reinvocationPolicy": "Never"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}AdmissionPolicy",
        "metadata": {"name": name},
        "spec": {**base, **spec, "matchConstraints": constraints},
    }


def policy_binding(client: Client, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    base = {"validationActions": ["Deny"]} if kind == "Validating" else {}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {**base, **spec},
    }


def collection(kind: str, bindings: bool = False) -> str:
    return f"{ADMISSION}/{kind.lower()}admissionpolic{'ybindings' if bindings else 'ies'}"


def settled(client: Client, kind: str = "Validating") -> None:
    """Wait until all that was written to policies of the kind before is in force: a further policy, on a lease, shows its effect."""
    mark = client.name(f"mark{len(client.transcript)}-{time.monotonic_ns() % 10**9}")
    constraints = {
        "namespaceSelector": here(client),
        "resourceRules": [{**on("leases", "CREATE", "coordination.k8s.io"), "resourceNames": [mark]}],
    }
    does: dict[str, Any] = (
        {"validations": [{"expression": "false", "message": "mark"}]}
        if kind == "Validating"
        else {
            "reinvocationPolicy": "Never",
            "failurePolicy": "Ignore",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'mark': 'yes'}}}"},
                }
            ],
        }
    )
    client.post(collection(kind), {"metadata": {"name": mark}, "spec": {"matchConstraints": constraints, **does}}, silent=True)
    client.post(
        collection(kind, True),
        policy_binding(
            client, kind, mark, {"policyName": mark, **({"validationActions": ["Warn"]} if kind == "Validating" else {})}
        ),
        silent=True,
    )

    def seen() -> bool:
        reply = client.post(
            f"/apis/coordination.k8s.io/v1/namespaces/{client.ns}/leases", {"metadata": {"name": mark}}, DRY, silent=True
        )
        return (
            mark in reply.headers.get("warning", "") if kind == "Validating" else reply.get("metadata", "labels", "mark") == "yes"
        )

    until(seen, 20)
    client.delete(f"{collection(kind, True)}/{mark}", silent=True)
    client.delete(f"{collection(kind)}/{mark}", silent=True)


@contextlib.contextmanager
def policed(
    client: Client,
    spec: dict[str, Any],
    *bindings: dict[str, Any],
    kind: str = "Validating",
    suffix: str = "policy",
    wait: bool = True,
) -> Iterator[str]:
    """A policy with its bindings, in force once the body runs; yields the policy's path."""
    name = client.name(suffix)
    client.post(collection(kind), policy(client, kind, name, spec), silent=True)
    names = [f"{name}-{i}" for i in range(len(bindings) or 1)]
    for n, b in zip(names, bindings or ({},), strict=False):
        client.post(collection(kind, True), policy_binding(client, kind, n, {"policyName": name, **b}), silent=True)
    if wait:
        settled(client, kind)
    try:
        yield f"{collection(kind)}/{name}"
    finally:
        for n in names:
            client.delete(f"{collection(kind, True)}/{n}", silent=True)
        client.delete(f"{collection(kind)}/{name}", silent=True)


@contextlib.contextmanager
def policed_each(
    client: Client,
    specs: dict[str, dict[str, Any]],
    kind: str = "Validating",
    operations: str = "CREATE",
    resources: str = "configmaps",
    group: str = "",
) -> Iterator[None]:
    """Many policies at once, each for the objects that bear its name."""
    with contextlib.ExitStack() as stack:
        for name, spec in specs.items():
            constraints = {
                **(spec.get("matchConstraints") or {}),
                "resourceRules": [on(resources, operations, group, resourceNames=[name])],
            }
            stack.enter_context(policed(client, {**spec, "matchConstraints": constraints}, kind=kind, suffix=name, wait=False))
        settled(client, kind)
        yield


def anchored(client: Client, api: str = "v1", kind: str = "ConfigMap") -> None:
    """Keep one policy with parameters of the kind for ever: the reference stops to follow a built-in kind when the last such policy goes, and never starts again."""
    name = f"anchor-{kind.lower()}"
    spec = {
        "paramKind": {"apiVersion": api, "kind": kind},
        "matchConstraints": {"resourceRules": [on("configmaps", "CREATE", resourceNames=[name])]},
        "validations": [{"expression": "true"}],
    }
    made = client.post(collection("Validating"), {"metadata": {"name": name}, "spec": spec}, silent=True).status
    client.post(
        collection("Validating", True),
        {
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Audit"],
                "paramRef": {"name": name, "namespace": "default", "parameterNotFoundAction": "Allow"},
            },
        },
        silent=True,
    )
    if made == 201:
        settled(client)


def only(**labels: str) -> dict[str, Any]:
    """A selector of objects with these labels."""
    return {"objectSelector": {"matchLabels": labels}}


def applied(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def unfinalize(client: Client, path: str) -> None:
    client.patch(path, {"metadata": {"finalizers": None}}, MERGE, silent=True)
