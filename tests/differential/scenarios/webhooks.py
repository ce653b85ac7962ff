"""Webhooks for conversion and admission, and ValidatingAdmissionPolicy."""

from __future__ import annotations

import base64
import contextlib
import copy
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential import pacing
from tests.differential.certificates import self_signed
from tests.differential.client import APPLY, MERGE, PARTIAL_LIST, TABLE, Client
from tests.differential.definitions import ANY, DRY, definition, make, note, obj, served
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.steps import anchored, config_map
from tests.differential.transports import Reply

HOOKS = "/apis/admissionregistration.k8s.io/v1"
_CERT: dict[str, str] = {}
Answer = Callable[[str, dict[str, Any]], Any]


@contextlib.contextmanager
def listening(client: Client, answer: Answer) -> Iterator[tuple[str, list[Any]]]:
    """An HTTPS server: `answer(path, review)` gives the body (or (status, bytes)); yields its URL and what it was sent."""
    seen: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            seen.append(
                {
                    "path": self.path,
                    "type": self.headers.get("Content-Type"),
                    "accept": self.headers.get("Accept"),
                    "body": review,
                }
            )
            out = answer(self.path.split("?")[0], copy.deepcopy(review))
            status, data = out if isinstance(out, tuple) else (200, json.dumps(out).encode())
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass

        def log_message(self, *_: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = self_signed()[0].wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    port = server.server_address[1]
    try:
        yield f"https://127.0.0.1:{port}", seen
    finally:
        server.shutdown()
        server.server_close()
        text = (
            json.dumps(client.transcript).replace(f"127.0.0.1:{port}", "127.0.0.1:443").replace(self_signed()[1], "<ca bundle>")
        )
        client.transcript[:] = json.loads(text)


def allow(path: str, review: dict[str, Any], **response: Any) -> dict[str, Any]:
    """The answer that lets a request pass, with more in its response."""
    return {
        "apiVersion": review["apiVersion"],
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": True, **response},
    }


def json_patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(list(operations)).encode()).decode()}


@contextlib.contextmanager
def hooked(client: Client, kind: str, answer: Answer, *entries: dict[str, Any], probe: bool = True) -> Iterator[list[Any]]:
    """A webhook configuration for the scenario's namespace that asks our server; yields what it is sent."""
    plural = f"{kind.lower()}webhookconfigurations"
    with listening(client, answer) as (url, seen):
        hooks = []
        for i, entry in enumerate(entries or ({},)):
            hook = {
                "name": f"hook{i}.example.com",
                "clientConfig": {"url": f"{url}/hook{i}", "caBundle": self_signed()[1]},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 5,
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": client.ns}},
                **entry,
            }
            if "service" in hook["clientConfig"]:
                hook["clientConfig"] = {"service": hook["clientConfig"]["service"]}
            hooks.append(hook)
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": client.name("hooks")},
            "webhooks": hooks,
        }
        client.post(f"{HOOKS}/{plural}", body, silent=True)
        try:
            if probe:
                until(
                    lambda: client.post(config_maps(client), config_map("probe"), DRY, silent=True).status != 201 or bool(seen), 3
                )
            else:
                pacing.sleep(0.7)
            pacing.sleep(0.1)
            seen.clear()
            yield seen
        finally:
            client.delete(f"{HOOKS}/{plural}/{client.name('hooks')}", silent=True)
            pacing.sleep(0.1)


def config_maps(client: Client) -> str:
    return f"/api/v1/namespaces/{client.ns}/configmaps"


def sent(client: Client, seen: list[Any], what: str = "sent to the webhook") -> None:
    """Show what the webhook got since the last time."""
    note(client, what, list(seen))
    seen.clear()


def first(client: Client, seen: list[Any]) -> None:
    """Show the first review since the last time (those of the server's own watches follow in any order)."""
    quiet = 0
    while quiet < 3:  # reviews of the server's watches may be on their way on a busy machine
        before = len(seen)
        pacing.sleep(0.3)
        quiet = quiet + 1 if len(seen) == before else 0
    note(client, "sent to the webhook first", seen[:1])
    seen.clear()


@contextlib.contextmanager
def policed(client: Client, spec: dict[str, Any], *bindings: dict[str, Any], wait: float = 2.5) -> Iterator[str]:
    """A ValidatingAdmissionPolicy on config maps of the scenario's namespace, with its bindings."""
    name = client.name("policy")
    constraints = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": client.ns}},
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["configmaps"]}
        ],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": constraints, **spec},
    }
    client.post(f"{HOOKS}/validatingadmissionpolicies", body)
    for i, binding in enumerate(bindings or ({},)):
        client.post(
            f"{HOOKS}/validatingadmissionpolicybindings",
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": client.name(f"binding{i}")},
                "spec": {"policyName": name, "validationActions": ["Deny"], **binding},
            },
            silent=True,
        )
    pacing.sleep(wait)
    try:
        yield f"{HOOKS}/validatingadmissionpolicies/{name}"
    finally:
        client.delete(f"{HOOKS}/validatingadmissionpolicies/{name}", silent=True)
        for i in range(len(bindings) or 1):
            client.delete(f"{HOOKS}/validatingadmissionpolicybindings/{client.name(f'binding{i}')}", silent=True)


# ---------------------------------------------------------------- configurations


def configuration(client: Client, kind: str, *hooks: Any) -> None:
    base = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/x"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    client.post(
        f"{HOOKS}/{kind.lower()}webhookconfigurations",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": client.name("c")},
            "webhooks": [{k: v for k, v in {**base, **h}.items() if v != "drop"} if isinstance(h, dict) else h for h in hooks],
        },
        DRY,
    )


@scenario
def configurations_are_defaulted(client: Client) -> None:
    """failurePolicy, matchPolicy, selectors, timeoutSeconds, scope, reinvocationPolicy, port of a service."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["pods"]}
    for kind in ("Validating", "Mutating"):
        configuration(client, kind, {})
        configuration(
            client,
            kind,
            {"rules": [rule]},
            {"name": "b.example.com", "clientConfig": {"service": {"namespace": "n", "name": "s"}}},
        )
        configuration(client, kind)


@scenario
def configurations_are_checked(client: Client) -> None:
    """Names, client configuration, policies, timeouts, versions, rules and match conditions."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    for hook in (
        {"name": ""},
        {"name": "nodots"},
        {"name": "A.b.c"},
        {"clientConfig": {}},
        {"clientConfig": {"url": "http://x"}},
        {"clientConfig": {"service": {"name": "s"}}},
        {"clientConfig": {"url": "https://x", "caBundle": "eA=="}},
        {"sideEffects": "Some"},
        {"sideEffects": "drop"},
        {"sideEffects": "NoneOnDryRun"},
        {"admissionReviewVersions": []},
        {"admissionReviewVersions": ["v2"]},
        {"admissionReviewVersions": ["v2", "v1"]},
        {"admissionReviewVersions": ["v1", "v1"]},
        {"admissionReviewVersions": "drop"},
        {"timeoutSeconds": 0},
        {"timeoutSeconds": 31},
        {"failurePolicy": "Never"},
        {"matchPolicy": "Sometimes"},
        {"reinvocationPolicy": "Always"},
        {"namespaceSelector": {"matchLabels": {"a b": "c"}}},
        {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        {"rules": [{**rule, "operations": []}]},
        {"rules": [{**rule, "operations": ["create"]}]},
        {"rules": [{**rule, "operations": ["*", "CREATE"]}]},
        {"rules": [{**rule, "apiGroups": []}]},
        {"rules": [{**rule, "apiGroups": ["*", "apps"]}]},
        {"rules": [{**rule, "apiVersions": [""]}]},
        {"rules": [{**rule, "resources": []}]},
        {"rules": [{**rule, "resources": ["*", "pods"]}]},
        {"rules": [{**rule, "resources": ["pods/*", "pods/status"]}]},
        {"rules": [{**rule, "resources": ["*/*", "x"]}]},
        {"rules": [{**rule, "resources": ["pods/"]}]},
        {"rules": [{**rule, "scope": "Global"}]},
        {"rules": [{}]},
        {"matchConditions": [{"name": "ok", "expression": "true"}]},
        {"matchConditions": [{"name": "bad name", "expression": "true"}]},
        {"matchConditions": [{"name": "x", "expression": "object.x ="}]},
        {"matchConditions": [{"name": "x", "expression": "1"}]},
        {"matchConditions": [{"name": "x", "expression": ""}]},
        {"matchConditions": [{"name": "x", "expression": "true"}] * 2},
        {"matchConditions": [{"name": "x", "expression": "nosuch.x"}]},
    ):
        configuration(client, "Mutating", hook)
    configuration(client, "Validating", {"reinvocationPolicy": "Never"})
    configuration(client, "Validating", {}, {})
    configuration(client, "Mutating", {}, {})


# ---------------------------------------------------------------- admission


@scenario
def a_review_tells_everything(client: Client) -> None:
    """The AdmissionReview of every verb: user, object, old object, options, dry run, kinds and resources."""
    with hooked(client, "Validating", allow) as seen:
        path = config_maps(client)
        client.post(path, config_map(), {"fieldManager": "me"})
        sent(client, seen)
        client.put(f"{path}/one", config_map(a="2"), {"dryRun": "All"})
        sent(client, seen)
        client.patch(f"{path}/one", {"data": {"b": "3"}}, MERGE)
        sent(client, seen)
        client.patch(
            f"{path}/one",
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"c": "4"}},
            APPLY,
            {"fieldManager": "applier", "force": "true"},
        )
        sent(client, seen)
        client.get(f"{path}/one", silent=True)
        sent(client, seen, "nothing for reads")
        client.delete(f"{path}/one", {"gracePeriodSeconds": 3, "propagationPolicy": "Background"})
        sent(client, seen)
        client.post(path, {"metadata": {"generateName": "generated-"}})
        sent(client, seen)
        client.delete(path)
        sent(client, seen, "a collection")
        client.post(path, config_map("Bad Name"))
        sent(client, seen, "an invalid one")


@scenario
def a_patch_changes_the_object(client: Client) -> None:
    """JSON patches of a mutating webhook; then defaults, validation and managed fields."""
    patches = {
        "labels": json_patch({"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}),
        "data": json_patch({"op": "replace", "path": "/data/a", "value": "9"}, {"op": "add", "path": "/data/b", "value": "8"}),
        "empty": {},
        "bad": json_patch({"op": "remove", "path": "/data/nope"}),
        "odd": json_patch({"op": "nonsense", "path": "/data"}),
        "type": {"patch": json_patch()["patch"]},
        "merge": {**json_patch(), "patchType": "MergePatch"},
        "text": {"patchType": "JSONPatch", "patch": "bm90IGpzb24="},
        "invalid": json_patch({"op": "add", "path": "/metadata/labels", "value": {"not valid": "x y"}}),
        "name": json_patch({"op": "replace", "path": "/metadata/name", "value": "other"}),
        "kind": json_patch({"op": "replace", "path": "/kind", "value": "Secret"}),
        "unknown": json_patch({"op": "add", "path": "/zz", "value": 1}),
        "number": json_patch({"op": "add", "path": "/data/n", "value": 5}),
    }

    def answer(path: str, review: dict[str, Any]) -> Any:
        return allow(path, review, **patches.get(review["request"]["name"], {}))

    with hooked(client, "Mutating", answer) as seen:
        for name in patches:
            client.post(config_maps(client), config_map(name))
        sent(client, [s["path"] for s in seen])
        client.patch(f"{config_maps(client)}/labels", {"metadata": {"labels": {"patched": "no"}}}, MERGE)
        client.get(f"{config_maps(client)}/data")


@scenario
def rejections_and_warnings(client: Client) -> None:
    """code, message, reason and details of the status; warnings; audit annotations."""
    responses = {
        "plain": {"allowed": False},
        "message": {"allowed": False, "status": {"message": "because"}},
        "reason": {"allowed": False, "status": {"reason": "Because"}},
        "code": {"allowed": False, "status": {"code": 418, "message": "teapot"}},
        "full": {
            "allowed": False,
            "status": {
                "code": 422,
                "message": "no",
                "reason": "Invalid",
                "details": {"causes": [{"field": "data", "message": "m"}]},
            },
        },
        "low": {"allowed": False, "status": {"code": 200, "message": "fine?"}},
        "warn": {"warnings": ["careful", "twice careful"]},
        "long": {"warnings": ["x" * 300]},
        "odd": {"warnings": ["line\nbreak", ""]},
        "both": {"allowed": False, "warnings": ["and more"], "status": {"message": "no"}},
        "audit": {"auditAnnotations": {"a": "b"}},
        "status": {"status": {"code": 500, "message": "ignored"}},
    }

    with hooked(client, "Validating", lambda path, review: allow(path, review, **responses.get(review["request"]["name"], {}))):
        for name in responses:
            client.post(config_maps(client), config_map(name))


@scenario
def broken_answers(client: Client) -> None:
    """Wrong uid, kind, version, status code, JSON; patches from a validating webhook; with Fail and with Ignore."""

    def answer(path: str, review: dict[str, Any]) -> Any:
        good = allow(path, review)
        return {
            "uid": {**good, "response": {"uid": "x", "allowed": True}},
            "kind": {**good, "kind": "Review"},
            "version": {**good, "apiVersion": "admission.k8s.io/v9"},
            "none": {k: v for k, v in good.items() if k != "response"},
            "code": (500, b"oops"),
            "moved": (404, b"nothing here"),
            "text": (200, b"hello"),
            "empty": (200, b""),
            "patch": allow(path, review, **json_patch()),
            "extra": {**good, "more": 1},
        }.get(review["request"]["name"], good)

    names = ("uid", "kind", "version", "none", "code", "moved", "text", "empty", "patch", "extra", "fine")
    for policy in ("Fail", "Ignore"):
        with hooked(client, "Validating", answer, {"failurePolicy": policy}):
            for name in names:
                client.post(config_maps(client), config_map(name), DRY)


@scenario
def slow_and_absent_webhooks(client: Client) -> None:
    """A timeout of one second, nobody listening, an untrusted certificate, a service that is not there."""

    def slow(path: str, review: dict[str, Any]) -> Any:
        if review["request"]["name"] == "slow":
            pacing.sleep(1.6)
        return allow(path, review)

    for policy in ("Fail", "Ignore"):
        with hooked(client, "Validating", slow, {"failurePolicy": policy, "timeoutSeconds": 1}):
            client.post(config_maps(client), config_map("slow"), DRY)
            client.post(config_maps(client), config_map("fast"), DRY)
    for change in (
        {"clientConfig": {"url": "https://127.0.0.1:9/gone"}},
        {"clientConfig": {"service": {"name": "nobody", "namespace": client.ns}}},
    ):
        with hooked(client, "Validating", allow, {**change, "timeoutSeconds": 2}):
            client.post(config_maps(client), config_map("one"), DRY)
            client.delete(f"{config_maps(client)}/none")


@scenario
def side_effects_and_dry_run(client: Client) -> None:
    """Only None and NoneOnDryRun are stored; a dry run says so in the review."""
    with hooked(client, "Mutating", allow, {"sideEffects": "NoneOnDryRun"}) as seen:
        client.post(config_maps(client), config_map(), DRY)
        note(client, "dry run", [s["body"]["request"]["dryRun"] for s in seen])
        client.patch(f"{config_maps(client)}/none", {"data": {}}, MERGE, DRY)


@scenario
def selectors_choose(client: Client) -> None:
    """objectSelector (old or new object), operations, resource names with subresources, scope."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}
    entries = (
        {"objectSelector": {"matchLabels": {"on": "yes"}}},
        {"rules": [rule]},
        {"rules": [{**rule, "operations": ["*"], "resources": ["*/*"]}]},
        {"rules": [{**rule, "operations": ["*"], "resources": ["*"], "scope": "Cluster"}]},
        {"rules": [{**rule, "operations": ["CREATE"], "apiVersions": ["v2"]}]},
        {"rules": [{**rule, "operations": ["DELETE"], "resources": ["*"], "scope": "Namespaced"}]},
        {"objectSelector": {"matchExpressions": [{"key": "on", "operator": "NotIn", "values": ["yes"]}]}},
    )
    with hooked(client, "Validating", allow, *entries) as seen:

        def paths(what: str) -> None:
            note(client, what, sorted(s["path"] for s in seen))
            seen.clear()

        path = config_maps(client)
        client.post(path, config_map(), silent=True)
        paths("create without label")
        client.post(path, config_map("two", {"on": "yes"}), silent=True)
        paths("create with label")
        client.patch(f"{path}/two", {"metadata": {"labels": None}}, MERGE, silent=True)
        paths("label taken away")
        client.delete(f"{path}/two", silent=True)
        paths("delete")
        client.post(f"/api/v1/namespaces/{client.ns}/serviceaccounts", {"metadata": {"name": "sa"}}, silent=True)
        paths("another resource")
        client.post(f"/api/v1/namespaces/{client.ns}/serviceaccounts/sa/token", {"spec": {}}, silent=True)
        paths("a subresource")


@scenario
def match_conditions_choose(client: Client) -> None:
    """CEL on object, oldObject, request, authorizer; an error counts as the failure policy says."""
    entries = [
        {"matchConditions": [{"name": n, "expression": e}]}
        for n, e in (
            ("by-name", "object.metadata.name == 'one'"),
            ("by-user", "request.userInfo.username != 'alice'"),
            ("old", "oldObject != null && oldObject.data.a == '1'"),
            ("operation", "request.operation == 'CREATE'"),
            ("rights", "authorizer.group('').resource('pods').namespace(request.namespace).check('get').allowed()"),
            ("namespace", "request.namespace.startsWith('zz')"),
        )
    ]
    with hooked(client, "Validating", allow, *entries) as seen:
        for name in ("one", "two"):
            client.post(config_maps(client), config_map(name), silent=True)
            note(client, f"create {name}", sorted(s["path"] for s in seen))
            seen.clear()
        client.put(f"{config_maps(client)}/one", config_map(a="2"), silent=True)
        note(client, "update", sorted(s["path"] for s in seen))
    for policy in ("Fail", "Ignore"):
        with hooked(
            client,
            "Validating",
            allow,
            {
                "failurePolicy": policy,
                "matchConditions": [
                    {"name": "broken", "expression": "object.data.nokey == 'x'"},
                    {"name": "plain", "expression": "true"},
                ],
            },
        ):
            client.post(config_maps(client), config_map("plain"), DRY)
            client.post(config_maps(client), config_map("right", None, nokey="x"), DRY)
            client.post(config_maps(client), config_map("wrong", None, nokey="y"), DRY)


@scenario
def reinvocation(client: Client) -> None:
    """IfNeeded: called again when a later webhook changed the object; order by name of configuration and place."""

    def answer(path: str, review: dict[str, Any]) -> Any:
        data = review["request"]["object"].get("data", {})
        return (
            allow(path, review, **json_patch({"op": "add", "path": f"/data/{path[1:]}", "value": f"after {len(data)}"}))
            if path[1:] not in data
            else allow(path, review)
        )

    for policy in ("Never", "IfNeeded"):
        with hooked(client, "Mutating", answer, {"reinvocationPolicy": policy}, {}) as seen:
            client.post(config_maps(client), config_map(policy.lower()))
            note(client, "calls", [s["path"] for s in seen])


@scenario
def equivalent_versions_match(client: Client) -> None:
    """matchPolicy Equivalent converts the object to the version of the rule; Exact passes by."""
    body = definition(client)
    body["spec"]["versions"].append({"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": ANY}})
    rule = {
        "apiGroups": [body["spec"]["group"]],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["widgets", "widgets/scale"],
    }
    with served(client, body) as path:
        for policy in ("Equivalent", "Exact"):
            with hooked(client, "Validating", allow, {"matchPolicy": policy, "rules": [rule]}, probe=False) as seen:
                client.post(path.replace("/v1/", "/v2/"), make(body, "one", "v2", spec={"a": 1}), DRY)
                sent(client, seen)
                client.post(path, make(body, "one", "v1", spec={"a": 1}), DRY)
                sent(client, seen)


# ---------------------------------------------------------------- conversion


def convertible(client: Client, url: str, **webhook: Any) -> dict[str, Any]:
    body = definition(
        client,
        obj({"spec": obj({"size": {"type": "integer"}}), "status": ANY}),
        {"subresources": {"status": {}}},
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": f"{url}/convert", "caBundle": self_signed()[1]},
                "conversionReviewVersions": ["v1"],
                **webhook,
            },
        },
    )
    body["spec"]["versions"].append(
        {
            "name": "v2",
            "served": True,
            "storage": False,
            "schema": {"openAPIV3Schema": obj({"spec": obj({"dimension": {"type": "string"}})})},
        }
    )
    return body


def converted(review: dict[str, Any]) -> list[Any]:
    out = []
    for item in review["request"]["objects"]:
        spec = item.get("spec") or {}
        item["apiVersion"] = review["request"]["desiredAPIVersion"]
        if item["apiVersion"].endswith("v2") and "size" in spec:
            item["spec"] = {"dimension": str(spec["size"])}
        elif item["apiVersion"].endswith("v1") and "dimension" in spec:
            item["spec"] = {"size": int(spec["dimension"])}
        out.append(item)
    return out


def review_of(review: dict[str, Any], **response: Any) -> dict[str, Any]:
    return {
        "apiVersion": review["apiVersion"],
        "kind": "ConversionReview",
        "response": {"uid": review["request"]["uid"], "result": {"status": "Success"}, **response},
    }


@scenario
def conversion_both_ways(client: Client) -> None:
    """What the webhook is sent and what comes of it: create, get, list, update, patch, apply, watch, delete."""
    with listening(client, lambda path, review: review_of(review, convertedObjects=converted(review))) as (url, seen):
        body = convertible(client, url)
        with served(client, body) as path:
            two = path.replace("/v1/", "/v2/")
            pacing.sleep(0.3)
            seen.clear()
            client.post(two, make(body, "one", "v2", spec={"dimension": "5"}))
            first(client, seen)
            client.get(f"{path}/one")
            pacing.sleep(0.3)
            note(client, "no conversion for the storage version", len(seen))
            client.get(f"{two}/one")
            first(client, seen)
            client.post(path, make(body, "two", spec={"size": 6}), silent=True)
            client.get(two)
            client.patch(f"{two}/two", {"spec": {"dimension": "7"}}, MERGE)
            seen.clear()
            client.patch(
                f"{two}/two", make(body, "two", "v2", spec={"dimension": "8"}), APPLY, {"fieldManager": "m", "force": "true"}
            )
            client.get(f"{path}/two")
            client.watch(two)
            client.delete(f"{two}/one")
            client.get(two, headers={"Accept": TABLE})
            client.get(two, headers={"Accept": PARTIAL_LIST})


@scenario
def conversion_that_fails(client: Client) -> None:
    """Failure with a message, wrong uid, wrong length, changed metadata, wrong version, broken answers."""
    modes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "refused": lambda r: review_of(r, result={"status": "Failure", "message": "cannot"}),
        "silent": lambda r: review_of(r, result={"status": "Failure"}),
        "uid": lambda r: review_of(r, uid="x", convertedObjects=converted(r)),
        "none": lambda r: review_of(r, convertedObjects=[]),
        "more": lambda r: review_of(r, convertedObjects=converted(r) * 2),
        "name": lambda r: review_of(
            r, convertedObjects=[{**o, "metadata": {**o["metadata"], "name": "other"}} for o in converted(r)]
        ),
        "newuid": lambda r: review_of(
            r, convertedObjects=[{**o, "metadata": {**o["metadata"], "uid": "other"}} for o in converted(r)]
        ),
        "labels": lambda r: review_of(
            r,
            convertedObjects=[
                {**o, "metadata": {**o["metadata"], "labels": {"new": "label"}, "annotations": {"new": "note"}}}
                for o in converted(r)
            ],
        ),
        "generation": lambda r: review_of(
            r,
            convertedObjects=[
                {**o, "metadata": {**o["metadata"], "generation": 99, "finalizers": ["example.com/x"]}} for o in converted(r)
            ],
        ),
        "badlabel": lambda r: review_of(
            r, convertedObjects=[{**o, "metadata": {**o["metadata"], "labels": {"a b": "c"}}} for o in converted(r)]
        ),
        "version": lambda r: review_of(r, convertedObjects=[{**o, "apiVersion": "other/v1"} for o in converted(r)]),
        "kind": lambda r: review_of(r, convertedObjects=[{**o, "kind": "Gadget"} for o in converted(r)]),
        "nometa": lambda r: review_of(
            r, convertedObjects=[{k: v for k, v in o.items() if k != "metadata"} for o in converted(r)]
        ),
        "text": lambda r: (200, b"hello"),
        "500": lambda r: (500, b"oops"),
        "review": lambda r: {"apiVersion": "v1", "kind": "Pod"},
        "old": lambda r: {**review_of(r, convertedObjects=converted(r)), "apiVersion": "apiextensions.k8s.io/v1beta1"},
        "noresponse": lambda r: {"apiVersion": r["apiVersion"], "kind": "ConversionReview"},
        "unknownstatus": lambda r: review_of(r, result={"status": "Maybe"}, convertedObjects=converted(r)),
        "invalidspec": lambda r: review_of(
            r, convertedObjects=[{**o, "spec": {"dimension": 5, "more": 1}} for o in converted(r)]
        ),
    }
    mode = ["good"]
    with listening(
        client,
        lambda path, review: (
            modes[mode[0]](review) if mode[0] in modes else review_of(review, convertedObjects=converted(review))
        ),
    ) as (url, _):
        body = convertible(client, url)
        with served(client, body) as path:
            two = path.replace("/v1/", "/v2/")
            client.post(path, make(body, spec={"size": 1}), silent=True)
            for mode[0] in modes:
                client.get(f"{two}/one")
            for mode[0] in ("refused", "name", "labels", "500"):
                client.post(two, make(body, "new", "v2", spec={"dimension": "3"}), DRY)
                client.patch(f"{two}/one", {"spec": {"dimension": "4"}}, MERGE, DRY)
                client.delete(f"{two}/one", None, DRY)
            mode[0] = "good"


@scenario
def conversion_of_metadata(client: Client) -> None:
    """Converted objects whose metadata are of another type or lack something."""
    metadata: list[Any] = [
        *("x", 1, None, [], {}, {"name": 1}, {"labels": "x"}, {"labels": {"a": 1}}, {"labels": None}, {"annotations": []}),
        *({"annotations": {"a b": "c"}}, {"labels": {"a": "b c"}}, {"namespace": "other"}, {"uid": 1}, "absent"),
    ]
    given: list[Any] = []

    def changed(one: dict[str, Any]) -> dict[str, Any]:
        if not given:
            return one
        if given[0] == "absent":
            return {name: value for name, value in one.items() if name != "metadata"}
        return {**one, "metadata": {**one["metadata"], **given[0]} if given[0] and isinstance(given[0], dict) else given[0]}

    def answer(path: str, review: dict[str, Any]) -> Any:
        return review_of(review, convertedObjects=[changed(one) for one in converted(review)])

    with listening(client, answer) as (url, _):
        body = convertible(client, url)
        with served(client, body) as path:
            client.post(path, make(body, spec={"size": 1}), silent=True)
            for meta in metadata:
                given[:] = [meta]
                client.get(f"{path.replace('/v1/', '/v2/')}/one")
            given.clear()


@scenario
def conversion_without_a_webhook(client: Client) -> None:
    """Nobody listens, or the service is not there."""
    for config in ({"url": "https://127.0.0.1:9/x"}, {"service": {"namespace": client.ns, "name": "nobody", "path": "/c"}}):
        body = convertible(client, "https://127.0.0.1:9", clientConfig=config)
        with served(client, body) as path:
            client.post(path, make(body, spec={"size": 1}), silent=True)
            client.get(f"{path.replace('/v1/', '/v2/')}/one")
            client.get(path.replace("/v1/", "/v2/"))
            client.post(path.replace("/v1/", "/v2/"), make(body, "two", "v2"))


# ---------------------------------------------------------------- policies


def policies(client: Client, *specs: dict[str, Any]) -> None:
    base = {
        "matchConstraints": {
            "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        },
        "validations": [{"expression": "true"}],
    }
    for spec in specs:
        client.post(
            f"{HOOKS}/validatingadmissionpolicies",
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": client.name("p")},
                "spec": {**base, **spec},
            },
            DRY,
        )


@scenario
def policies_are_checked(client: Client) -> None:
    """Expressions, variables, audit annotations, match conditions, parameters, constraints; and defaults."""
    policies(
        client,
        {},
        {"validations": []},
        {"validations": [{"expression": ""}]},
        {"validations": [{"expression": "object.x ="}]},
        {"validations": [{"expression": "1"}]},
        {"validations": [{"expression": "nosuch == 1"}]},
        {"validations": [{"expression": "true", "message": " "}]},
        {"validations": [{"expression": "true", "message": "a\nb"}]},
        {"validations": [{"expression": "true\n", "message": ""}]},
        {"validations": [{"expression": "true", "messageExpression": "1"}]},
        {"validations": [{"expression": "true", "messageExpression": "'x' +"}]},
        {"validations": [{"expression": "true", "reason": "Nope"}]},
        {"validations": [{"expression": "true", "reason": "Forbidden"}]},
        {"failurePolicy": "Maybe"},
        {"variables": [{"name": "a", "expression": "1"}], "validations": [{"expression": "variables.a == 1"}]},
        {"variables": [{"name": "a b", "expression": "1"}]},
        {"variables": [{"name": "a", "expression": ""}]},
        {"variables": [{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]},
        {"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]},
        {"validations": [{"expression": "variables.zz == 1"}]},
        {"validations": [{"expression": "params.x == 1"}]},
        {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "params.data.x == '1'"}]},
        {"paramKind": {"apiVersion": "v1"}},
        {"paramKind": {"apiVersion": "a/b/c", "kind": ""}},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]},
        {"auditAnnotations": [{"key": "bad key", "valueExpression": "'v'"}]},
        {"auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'v'"}] * 2},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'v'"}], "validations": []},
        {"matchConditions": [{"name": "x", "expression": "object.a"}]},
        {"matchConditions": [{"name": "", "expression": "true"}]},
        {"matchConstraints": None},
        {"matchConstraints": {}},
        {"matchConstraints": {"resourceRules": [{}]}},
        {"validations": [{"expression": "authorizer.check('x')"}]},
        {"validations": [{"expression": "namespaceObject.metadata.name == 'x'"}]},
    )
    for spec in (
        {"policyName": "x", "validationActions": ["Deny"]},
        {"policyName": "x"},
        {"policyName": "", "validationActions": ["Deny"]},
        {"policyName": "x", "validationActions": ["Deny", "Warn"]},
        {"policyName": "x", "validationActions": ["Deny", "Deny"]},
        {"policyName": "x", "validationActions": ["Refuse"]},
        {"policyName": "x", "validationActions": ["Warn", "Audit"], "paramRef": {"name": "p"}},
        {"policyName": "x", "validationActions": ["Audit"], "paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}},
        {
            "policyName": "x",
            "validationActions": ["Audit"],
            "paramRef": {"name": "p", "selector": {}, "parameterNotFoundAction": "Deny"},
        },
        {"policyName": "x", "validationActions": ["Audit"], "paramRef": {"parameterNotFoundAction": "Perhaps"}},
        {
            "policyName": "x",
            "validationActions": ["Audit"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"a b": "c"}}},
        },
        {},
    ):
        client.post(
            f"{HOOKS}/validatingadmissionpolicybindings",
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": client.name("b")},
                "spec": spec,
            },
            DRY,
        )


@scenario
def policies_deny(client: Client) -> None:
    """The first failing validation decides; message, messageExpression and reason; variables; old objects; deletions."""
    spec = {
        "variables": [
            {"name": "size", "expression": "object == null ? 0 : object.data.size()"},
            {"name": "big", "expression": "variables.size > 2"},
        ],
        "validations": [
            {"expression": "!variables.big", "message": "too many keys"},
            {"expression": "object == null || object.metadata.name != 'forbidden'", "reason": "Forbidden"},
            {
                "expression": "object == null || !('bad' in object.data)",
                "messageExpression": "'bad is ' + object.data.bad",
                "reason": "Invalid",
            },
            {
                "expression": "request.operation != 'UPDATE' || object.data.a == oldObject.data.a",
                "messageExpression": "'a was ' + oldObject.data.a",
            },
            {"expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'keep'", "message": "may not be deleted"},
            {
                "expression": "object == null || object.metadata.name != 'late' || namespaceObject.metadata.name == 'x'",
                "reason": "RequestEntityTooLarge",
            },
        ],
    }
    with policed(client, spec) as path:
        maps = config_maps(client)
        for body in (
            config_map(),
            config_map("keep"),
            config_map("big", None, a="1", b="2", c="3"),
            config_map("forbidden"),
            config_map("bad", None, bad="really"),
            config_map("late"),
            config_map("forbidden", None, a="1", b="2", c="3"),
        ):
            client.post(maps, body)
        client.patch(f"{maps}/one", {"data": {"a": "2"}}, MERGE)
        client.patch(f"{maps}/one", {"data": {"z": "2"}}, MERGE)
        client.delete(f"{maps}/keep")
        client.delete(f"{maps}/one", None, DRY)
        client.delete(maps)
        client.get(path)
        client.get(f"{path}/status")
        client.patch(f"{path}/status", {"status": {"observedGeneration": 1, "conditions": []}}, MERGE)


@scenario
def policies_warn_and_audit(client: Client) -> None:
    """Warn adds warnings and lets pass; Audit keeps quiet; with Deny both."""
    spec = {
        "validations": [
            {"expression": "object.data.a != '1'", "message": "a is one"},
            {"expression": "object.data.size() > 1", "messageExpression": "'only ' + string(object.data.size())"},
        ],
        "auditAnnotations": [{"key": "who", "valueExpression": "request.userInfo.username"}],
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": client.ns}},
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["configmaps"],
                    "resourceNames": [],
                }
            ],
        },
    }

    def only(name: str) -> dict[str, Any]:
        return {"objectSelector": {"matchLabels": {"for": name}}}

    with policed(
        client,
        spec,
        {"validationActions": ["Warn"], "matchResources": only("warn")},
        {"validationActions": ["Audit"], "matchResources": only("audit")},
        {"validationActions": ["Warn", "Audit"], "matchResources": only("both")},
        {"matchResources": only("deny")},
    ):
        for name in ("warn", "audit", "both", "deny", "none"):
            client.post(config_maps(client), config_map(name, {"for": name}))
            client.post(config_maps(client), config_map(name + "2", {"for": name}, a="2"))


@scenario
def policies_that_err(client: Client) -> None:
    """An error in an expression denies with failurePolicy Fail and passes with Ignore."""
    spec = {
        "validations": [
            {"expression": "object.data.need == 'x'", "message": "need must be x"},
            {"expression": "int(object.data.number) > 1", "message": "number"},
            {"expression": "object.data.a == '1'", "messageExpression": "string(object.data.nothing)"},
        ],
        "matchConditions": [{"name": "cond", "expression": "object.metadata.labels['run'] == 'yes'"}],
    }
    for policy in ("Fail", "Ignore"):
        with policed(client, {**spec, "failurePolicy": policy}):
            for body in (
                config_map("a"),
                config_map("b", {"run": "no"}),
                config_map("c", {"run": "yes"}),
                config_map("d", {"run": "yes"}, need="y", number="x", a="1"),
                config_map("e", {"run": "yes"}, need="x", number="5", a="2"),
                config_map("f", {"run": "yes"}, need="x", number="5", a="1"),
            ):
                client.post(config_maps(client), body, DRY)


@scenario
def policies_with_parameters(client: Client) -> None:
    """paramKind and paramRef: by name, by selector, missing with Allow and Deny."""
    anchored(client)
    client.post(config_maps(client), config_map("limits", {"limits": "yes"}, max="2"), silent=True)
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [
            {"expression": "object.data.size() <= int(params.data.max)", "messageExpression": "'at most ' + params.data.max"}
        ],
    }
    refs = (
        {"name": "limits", "namespace": client.ns, "parameterNotFoundAction": "Deny"},
        {"name": "absent", "namespace": client.ns, "parameterNotFoundAction": "Deny"},
        {"name": "absent", "namespace": client.ns, "parameterNotFoundAction": "Allow"},
        {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"},
    )
    with policed(
        client,
        spec,
        *({"paramRef": ref, "matchResources": {"objectSelector": {"matchLabels": {"by": str(i)}}}} for i, ref in enumerate(refs)),
        wait=0,
    ):

        def large(i: int) -> Reply:
            return client.post(
                config_maps(client), config_map(f"large{i}", {"by": str(i)}, a="1", b="2", c="3"), DRY, silent=True
            )

        until(
            lambda: (
                all("at most" in str(large(i).get("message")) for i in (0, 3))
                and large(1).status != 201
                and large(2).status == 201
            ),
            20,
        )
        for i in range(4):
            client.post(config_maps(client), config_map(f"small{i}", {"by": str(i)}, a="1"), DRY)
            client.post(config_maps(client), config_map(f"large{i}", {"by": str(i)}, a="1", b="2", c="3"), DRY)


@scenario
def mutating_policies(client: Client) -> None:
    """MutatingAdmissionPolicy: where it is served and what it checks."""
    base = {
        "matchConstraints": {
            "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        },
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'mutated': 'yes'}}}"},
            }
        ],
    }
    for spec in (
        base,
        {**base, "mutations": []},
        {
            **base,
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/data/x', value: 'y'}]"}}
            ],
        },
        {**base, "mutations": [{"patchType": "Odd"}]},
        {**base, "mutations": [{"patchType": "ApplyConfiguration"}]},
        {**base, "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "1"}}]},
        {**base, "reinvocationPolicy": "Often"},
    ):
        client.post(
            f"{HOOKS}/mutatingadmissionpolicies",
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingAdmissionPolicy",
                "metadata": {"name": client.name("m")},
                "spec": spec,
            },
            DRY,
        )
