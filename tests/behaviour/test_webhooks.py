"""Admission webhooks: review requests, effects of responses, and failures."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.conftest import Api, Reply
from tests.behaviour.webhook_server import JSON, LOCAL, TEXT, Authority, Webhook
from tests.behaviour.webhook_server import Reply as Answer

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
DRY = {"dryRun": "All"}
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
HOOK = "hook.example.com"
CALLING = f'Internal error occurred: failed calling webhook "{HOOK}": '


def allow(review: dict[str, Any], **response: Any) -> Answer:
    """The response that allows a request, with additional members."""
    found = {"uid": review["request"]["uid"], "allowed": True, **response}
    return 200, JSON, json.dumps({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": found}).encode()


def patched(review: dict[str, Any], *operations: dict[str, Any], **response: Any) -> Answer:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return allow(review, patchType="JSONPatch", patch=patch, **response)


def deny(review: dict[str, Any], **status: Any) -> Answer:
    return allow(review, allowed=False, **({"status": status} if status else {}))


def config_map(name: str = "one", labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"a": "1"}}


@dataclass
class Hooks:
    """Webhooks for the namespace of a test."""

    api: Api
    authority: Authority
    folder: Path
    webhooks: list[Webhook] = field(default_factory=list)
    configurations: list[str] = field(default_factory=list)

    def start(self, behave: Callable[[dict[str, Any]], Answer] = allow) -> Webhook:
        folder = self.folder / str(len(self.webhooks))
        folder.mkdir()
        self.webhooks.append(Webhook(folder, self.authority, LOCAL, behave))
        return self.webhooks[-1]

    def configure(
        self, kind: str, webhook: Webhook | None, *entries: dict[str, Any], name: str = "hooks", wait: bool = True
    ) -> None:
        """Make a configuration, and wait until the server knows it."""
        hooks = [self._entry(webhook, entry) for entry in entries or ({},)]
        probe = self._entry(
            webhook,
            {
                "name": "probe.example.com",
                "rules": [CONFIG_MAPS],
                "objectSelector": {"matchLabels": {"probe": "probe"}},
                "failurePolicy": "Fail",
            },
        )
        path = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations"
        body = {"kind": f"{kind}WebhookConfiguration", "metadata": {"name": self.api.name(name)}, "webhooks": [*hooks, probe]}
        made = self.api.post(path, body)
        assert made.status == 201, made.body
        self.configurations.append(f"{path}/{self.api.name(name)}")
        if self.api.is_ours or not wait:
            return
        end = time.monotonic() + 60
        while time.monotonic() < end:
            probed = self.api.post(self.api.path("configmaps"), config_map("probe", {"probe": "probe"}), DRY)
            if probed.status != 201 or (webhook and webhook.seen):
                break
            time.sleep(0.05)
        time.sleep(0.2)
        if webhook:
            webhook.seen.clear()
            webhook.requests.clear()

    def _entry(self, webhook: Webhook | None, entry: dict[str, Any]) -> dict[str, Any]:
        client_config = webhook.client_config if webhook else {"url": "https://127.0.0.1:9/none"}
        return {
            "name": HOOK,
            "clientConfig": client_config,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
            "rules": [CONFIG_MAPS],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.api.namespace}},
            **entry,
        }

    def mutating(self, behave: Callable[[dict[str, Any]], Answer], *entries: dict[str, Any]) -> Webhook:
        webhook = self.start(behave)
        self.configure("Mutating", webhook, *entries)
        return webhook

    def validating(self, behave: Callable[[dict[str, Any]], Answer] = allow, *entries: dict[str, Any]) -> Webhook:
        webhook = self.start(behave)
        self.configure("Validating", webhook, *entries)
        return webhook

    def close(self) -> None:
        for path in self.configurations:
            self.api.delete(path)
        for webhook in self.webhooks:
            webhook.close()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def hooks(api: Api, authority: Authority, tmp_path: Path) -> Iterator[Hooks]:
    made = Hooks(api, authority, tmp_path)
    yield made
    made.close()


def created(api: Api, *arguments: Any, **data: str) -> Reply:
    return api.post(api.path("configmaps"), config_map(*arguments, **data))


def request_of(webhook: Webhook) -> dict[str, Any]:
    """The only request that the webhook has received."""
    (review,) = webhook.seen
    webhook.seen.clear()
    found: dict[str, Any] = review["request"]
    return found


# ---------------------------------------------------------------- admission reviews


def test_admission_review_of_a_create(api: Api, hooks: Hooks) -> None:
    webhook = hooks.validating()
    made = api.post(api.path("configmaps"), config_map(), {"fieldManager": "me"})
    (review,), (sent,) = webhook.seen, webhook.requests
    assert sent[0] == "/convert?timeout=30s" and sent[1]["Accept"] == "application/json, */*"
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    request = review["request"]
    kind, resource = {"group": "", "version": "v1", "kind": "ConfigMap"}, {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["kind"] == request["requestKind"] == kind
    assert request["resource"] == request["requestResource"] == resource
    assert (request["operation"], request["name"], request["namespace"]) == ("CREATE", "one", api.namespace)
    assert request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert request["dryRun"] is False and request["oldObject"] is None
    assert "system:masters" in request["userInfo"]["groups"]
    assert "subResource" not in request
    expected = made.json
    del expected["metadata"]["resourceVersion"]
    assert request["object"] == expected


def test_admission_reviews_of_other_verbs(api: Api, hooks: Hooks) -> None:
    made = created(api).json
    path = api.path("configmaps", "one")
    webhook = hooks.validating()
    api.patch(path, {"data": {"b": "2"}}, MERGE, DRY)
    request = request_of(webhook)
    assert (request["operation"], request["dryRun"], request["oldObject"]) == ("UPDATE", True, made)
    assert request["object"]["data"] == {"a": "1", "b": "2"}
    assert request["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}
    api.put(path, config_map())
    assert request_of(webhook)["operation"] == "UPDATE", "an update that changes nothing is admitted, too"
    api.get(path)
    assert webhook.seen == []
    api.patch(api.path("configmaps", "new"), json.dumps(config_map("new")), APPLY, {"fieldManager": "m"})
    assert request_of(webhook)["operation"] == "CREATE"
    api.delete(path, {"propagationPolicy": "Background"})
    request = request_of(webhook)
    assert (request["operation"], request["object"], request["oldObject"]["metadata"]["name"]) == ("DELETE", None, "one")
    assert request["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"}
    api.delete(api.path("configmaps"), None, {"labelSelector": "!none"})
    assert "name" not in webhook.seen[-1]["request"]


def test_missing_or_invalid_objects_are_not_reviewed(api: Api, hooks: Hooks) -> None:
    webhook = hooks.validating()
    assert api.put(api.path("configmaps", "none"), config_map("none")).status == 404
    assert api.delete(api.path("configmaps", "none")).status == 404
    assert created(api, "Bad Name").status == 422
    assert webhook.seen == []


def test_webhooks_for_subresources(api: Api, hooks: Hooks) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    path = api.path("deployments", group="apps/v1")
    assert api.post(path, deployment).status == 201
    webhook = hooks.validating(allow, {"rules": [{**EVERYTHING, "resources": ["deployments/*"]}]})
    api.patch(f"{path}/d/scale", {"spec": {"replicas": 3}}, MERGE)
    request = request_of(webhook)
    assert (request["subResource"], request["requestSubResource"], request["kind"]["kind"]) == ("scale", "scale", "Scale")
    assert (request["object"]["spec"], request["oldObject"]["spec"]) == ({"replicas": 3}, {"replicas": 1})
    api.patch(f"{path}/d/status", {"status": {"replicas": 3}}, MERGE, DRY)
    assert request_of(webhook)["kind"]["kind"] == "Deployment"


def test_webhooks_for_create_only_and_connect_requests(api: Api, hooks: Hooks) -> None:
    api.post(api.path("pods"), {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    rules = [{**EVERYTHING, "resources": ["pods/*", "localsubjectaccessreviews"]}]
    webhook = hooks.validating(deny, {"rules": rules})
    refusal = f'admission webhook "{HOOK}" denied the request without explanation'
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert api.post(api.path("pods", "p", "eviction"), eviction).json["message"] == refusal
    assert request_of(webhook)["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n"}}
    assert api.post(api.path("pods", "p", "binding"), binding).json["message"] == refusal
    assert request_of(webhook)["subResource"] == "binding"
    assert api.get(api.path("pods", "p", "exec"), {"command": ["a", "b"], "stdin": "true"}).json["message"] == refusal
    request = request_of(webhook)
    assert (request["operation"], request["options"]) == ("CONNECT", None)
    assert request["object"] == {"kind": "PodExecOptions", "apiVersion": "v1", "stdin": True, "command": ["a", "b"]}
    api.get(api.path("pods", "p", "proxy", "x", "y"))
    assert request_of(webhook)["object"] == {"kind": "PodProxyOptions", "apiVersion": "v1", "path": "/x/y"}
    review = {"metadata": {"namespace": api.namespace}, "spec": {"user": "u", "resourceAttributes": {"namespace": api.namespace}}}
    found = api.post(api.path("localsubjectaccessreviews", group="authorization.k8s.io/v1"), review)
    sees_reviews = int(api.get("/version").json["minor"]) < 37  # the gate ExcludeAdmissionWebhookVirtualResources
    assert found.json.get("message") == (refusal if sees_reviews else None)


def test_webhook_rules_match_equivalent_versions(api: Api, hooks: Hooks) -> None:
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["*"], "resources": ["horizontalpodautoscalers"]}

    def answer(review: dict[str, Any]) -> Answer:
        return patched(review, {"op": "replace", "path": "/spec/maxReplicas", "value": 7})

    webhook = hooks.mutating(answer, {"rules": [rule]}, {"name": "exact.example.com", "rules": [rule], "matchPolicy": "Exact"})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    scaler = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}
    made = api.post(api.path("horizontalpodautoscalers", group="autoscaling/v1"), scaler)
    assert made.status == 201, made.body
    assert made.json["spec"]["maxReplicas"] == 7
    request = request_of(webhook)
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v2", "v1")
    assert (request["object"]["apiVersion"], "metrics" in request["object"]["spec"]) == ("autoscaling/v2", True)


def test_first_supported_admission_review_version_is_used(api: Api, hooks: Hooks) -> None:
    def answer(review: dict[str, Any]) -> Answer:
        found = json.loads(patched(review, {"op": "add", "path": "/data/b", "value": "2"})[2])
        found["response"] |= {"uid": "another"}
        del found["response"]["patchType"]
        return 200, JSON, json.dumps(found).encode()

    webhook = hooks.mutating(answer, {"admissionReviewVersions": ["v9", "v1beta1", "v1"]})
    assert created(api).json["data"] == {"a": "1", "b": "2"}, "v1beta1 verifies nothing"
    assert webhook.seen[-1]["apiVersion"] == "admission.k8s.io/v1beta1"


def test_webhook_configurations_are_not_reviewed(api: Api, hooks: Hooks) -> None:
    webhook = hooks.start(deny)
    rule = {**EVERYTHING, "apiGroups": ["admissionregistration.k8s.io"]}
    hooks.configure("Validating", webhook, {"rules": [rule], "namespaceSelector": {}})
    path = f"{CONFIGURATIONS}/validatingwebhookconfigurations"
    made = api.post(path, {"metadata": {"name": api.name("other")}}, DRY)
    assert made.status == 201, made.body


# ---------------------------------------------------------------- mutating webhooks


def test_mutating_webhook_json_patch(api: Api, hooks: Hooks) -> None:
    def answer(review: dict[str, Any]) -> Answer:
        return patched(
            review, {"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}, {"op": "remove", "path": "/data/a"}
        )

    hooks.mutating(answer)
    made = created(api, a="1", b="2")
    assert (made.json["metadata"]["labels"], made.json["data"]) == ({"by": "hook"}, {"b": "2"})
    assert [entry["manager"] for entry in made.json["metadata"]["managedFields"]] == ["tests"]
    changed = api.patch(api.path("configmaps", "one"), {"data": {"a": "3"}}, MERGE)
    assert changed.json["data"] == {"b": "2"}


def test_fields_added_by_a_webhook_patch_are_defaulted(api: Api, hooks: Hooks) -> None:
    side = {"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "i"}}
    rule = {**CONFIG_MAPS, "resources": ["configmaps", "pods"]}

    def answer(review: dict[str, Any]) -> Answer:
        return patched(review, side) if review["request"]["kind"]["kind"] == "Pod" else allow(review)

    hooks.mutating(answer, {"rules": [rule]})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = api.post(api.path("pods"), pod, DRY)
    first, second = made.json["spec"]["containers"]
    assert {**first, "name": ""} == {**second, "name": ""}


PATCHES = [
    (
        [{"op": "remove", "path": "/data/nope"}],
        500,
        "Internal error occurred: error in remove for path: '/data/nope': Unable to remove nonexistent key: nope: missing value",
    ),
    ([{"op": "odd"}], 500, "Internal error occurred: Unexpected kind: odd"),
    (
        [{"op": "test", "path": "/data/a", "value": "2"}],
        500,
        "Internal error occurred: testing value /data/a failed: test failed",
    ),
    (
        [{"op": "add", "path": "/data/n", "value": 5}],
        500,
        "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    ),
    (
        [{"op": "replace", "path": "/apiVersion", "value": "apps/v1"}],
        500,
        'Internal error occurred: no kind "ConfigMap" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
    (
        [{"op": "replace", "path": "/kind", "value": "Secret"}, {"op": "remove", "path": "/data"}],
        500,
        "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
    ),
    (
        [{"op": "replace", "path": "/kind", "value": ["x"]}],
        500,
        "Internal error occurred: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go struct "
        "field .kind of type string",
    ),
    (
        [{"op": "add", "path": "/data/big", "value": "x" * 1_100_000}],
        422,
        'ConfigMap "one" is invalid: []: Too long: may not be more than 1048576 bytes',
    ),
]


@pytest.mark.parametrize(("operations", "code", "message"), PATCHES, ids=range(len(PATCHES)))
def test_inapplicable_webhook_patches_are_reported(
    api: Api, hooks: Hooks, operations: list[dict[str, Any]], code: int, message: str
) -> None:
    hooks.mutating(lambda review: patched(review, *operations))
    made = created(api)
    assert (made.status, made.json["message"]) == (code, message)
    assert api.get(api.path("configmaps", "one")).status == 404


def test_invalid_managed_fields_from_a_webhook_patch_are_reverted(api: Api, hooks: Hooks) -> None:
    broken = {"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "x", "operation": "Bad"}]}
    hooks.mutating(lambda review: patched(review, broken))
    made = created(api)
    assert [entry["manager"] for entry in made.json["metadata"]["managedFields"]] == ["tests"]
    assert "operation must be `Apply` or `Update`" in made.headers["warning"]


def test_custom_resources_are_pruned_after_a_webhook_patch(api: Api, hooks: Hooks) -> None:
    group = f"w{api.suffix}.example.com"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    definitions, path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", api.path("widgets", group=f"{group}/v1")
    assert api.post(definitions, definition).status == 201
    try:
        end = time.monotonic() + 60
        while api.get(path).status != 200 and time.monotonic() < end:
            time.sleep(0.05)
        rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
        replaced = {"op": "replace", "path": "/spec", "value": {"odd": 1}}
        hooks.mutating(
            lambda review: patched(review, replaced) if review["request"]["kind"]["kind"] == "Widget" else allow(review),
            {"rules": [rule]},
        )
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "spec": {"size": 5}}
        assert api.post(path, {**widget, "metadata": {"name": "w"}}).json["spec"] == {"size": 3}
        broken = {"op": "replace", "path": "/metadata/labels", "value": 5}
        hooks.webhooks[-1].behave = lambda review: patched(review, broken)
        assert "labels" not in api.post(path, {**widget, "metadata": {"name": "x", "labels": {"a": "b"}}}).json["metadata"]
        hooks.webhooks[-1].behave = lambda review: patched(review, {"op": "remove", "path": "/metadata"})
        refused = api.post(path, {**widget, "metadata": {"name": "y"}})
        expected = f'Widget.{group} "" is invalid: metadata.name: Required value: name or generateName is required'
        assert (refused.status, refused.json["message"]) == (422, expected)
    finally:
        api.delete(f"{definitions}/widgets.{group}")


def test_mutating_webhook_cannot_patch_a_delete(api: Api, hooks: Hooks) -> None:
    created(api)
    hooks.mutating(lambda review: patched(review, {"op": "add", "path": "/x", "value": 1}))
    refused = api.delete(api.path("configmaps", "one"))
    expected = f'admission webhook "{HOOK}" attempted to modify the object, which is not supported for this operation'
    assert (refused.status, refused.json["message"]) == (500, f"Internal error occurred: {expected}")


def test_mutating_webhooks_are_called_in_order_of_configuration_names(api: Api, hooks: Hooks) -> None:
    def answer(review: dict[str, Any]) -> Answer:
        data = review["request"]["object"]["data"]
        return patched(review, {"op": "add", "path": f"/data/{len(data)}", "value": str(len(data))})

    webhook = hooks.start(answer)
    for name in ("zz", "aa"):
        hooks.configure("Mutating", webhook, {"name": f"{name}1.example.com"}, {"name": f"{name}2.example.com"}, name=name)
    made = created(api)
    assert made.json["data"] == {"a": "1", "1": "1", "2": "2", "3": "3", "4": "4"}
    assert [len(review["request"]["object"]["data"]) for review in webhook.seen] == [1, 2, 3, 4]


@pytest.mark.parametrize(("policy", "calls"), [("Never", ["a", "b"]), ("IfNeeded", ["a", "b", "a"])])
def test_webhook_reinvocation(api: Api, hooks: Hooks, policy: str, calls: list[str]) -> None:
    def behave_as(name: str) -> Callable[[dict[str, Any]], Answer]:
        def answer(review: dict[str, Any]) -> Answer:
            seen.append(name)
            if name in review["request"]["object"].get("data", {}):
                return allow(review)
            return patched(review, {"op": "add", "path": f"/data/{name}", "value": "x"})

        return answer

    seen: list[str] = []
    first, second = hooks.start(behave_as("a")), hooks.start(behave_as("b"))
    entries = [
        {"name": "a.example.com", "clientConfig": first.client_config, "reinvocationPolicy": policy},
        {"name": "b.example.com", "clientConfig": second.client_config},
    ]
    hooks.configure("Mutating", first, *entries)
    seen.clear()
    assert created(api, "one", None, z="1").json["data"] == {"a": "x", "b": "x", "z": "1"}
    assert seen == calls


# ---------------------------------------------------------------- refusals, warnings, failures


REFUSALS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"message": "denied the request without explanation", "code": 400}),
    ({"message": "because"}, {"message": "denied the request: because", "code": 400}),
    ({"reason": "Because"}, {"message": "denied the request: Because", "reason": "Because", "code": 400}),
    ({"code": 418, "message": "teapot"}, {"message": "denied the request: teapot", "code": 418}),
    ({"code": 200, "status": "Success", "message": "fine?"}, {"message": "denied the request: fine?", "code": 400}),
    ({"status": "Custom"}, {"message": "denied the request without explanation", "status": "Custom", "code": 400}),
    (
        {"code": 429, "details": {"retryAfterSeconds": 5}},
        {"message": "denied the request without explanation", "details": {"retryAfterSeconds": 5}, "code": 429},
    ),
]


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
@pytest.mark.parametrize(("status", "expected"), REFUSALS, ids=range(len(REFUSALS)))
def test_denied_requests_return_the_webhook_status(
    api: Api, hooks: Hooks, kind: str, status: dict[str, Any], expected: dict[str, Any]
) -> None:
    webhook = hooks.start(lambda review: deny(review, **status))
    hooks.configure(kind, webhook)
    refused = created(api)
    expected = {"status": "Failure", **expected, "message": f'admission webhook "{HOOK}" {expected["message"]}'}
    body = {name: value for name, value in refused.json.items() if name not in ("kind", "apiVersion", "metadata")}
    assert (refused.status, body) == (expected["code"], expected)
    assert refused.headers.get("retry-after") == ("5" if "details" in expected else None)


def test_webhook_warnings(api: Api, hooks: Hooks) -> None:
    hooks.validating(lambda review: allow(review, warnings=["careful", "line\nbreak", "careful"]))
    assert created(api).headers["warning"] == '299 - "careful"'


def test_validating_webhooks_are_called_in_parallel(api: Api, hooks: Hooks) -> None:
    together = threading.Barrier(6, timeout=25)

    def answer(review: dict[str, Any]) -> Answer:
        together.wait()
        return allow(review)

    webhook = hooks.validating(answer, *({"name": f"{index}.example.com", "timeoutSeconds": 30} for index in range(6)))
    assert created(api).status == 201
    assert len(webhook.seen) == 6


BROKEN: list[tuple[Callable[[dict[str, Any]], Answer], str]] = [
    (
        lambda review: (200, JSON, b""),
        "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
    ),
    (
        lambda review: (500, TEXT, b"oops"),
        'failed to call webhook: an error on the server ("oops") has prevented the request from succeeding',
    ),
    (lambda review: (404, TEXT, b""), "failed to call webhook: the server could not find the requested resource"),
    (
        lambda review: (200, JSON, b'{"kind":"Review","apiVersion":"admission.k8s.io/v1"}'),
        'failed to call webhook: no kind "Review" is registered for version "admission.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
    (lambda review: (200, JSON, b"{}"), "received invalid webhook response: webhook response was absent"),
    (
        lambda review: patched(review, {"op": "add", "path": "/x", "value": 1}),
        "received invalid webhook response: validating webhook may not return response.patch",
    ),
    (
        lambda review: allow(review, allowed="yes"),
        "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
    ),
]


@pytest.mark.parametrize(("behave", "message"), BROKEN, ids=range(len(BROKEN)))
def test_malformed_webhook_responses_are_reported(
    api: Api, hooks: Hooks, behave: Callable[[dict[str, Any]], Answer], message: str
) -> None:
    hooks.validating(behave)
    made = created(api)
    assert (made.status, made.json["reason"], made.json["message"]) == (500, "InternalError", CALLING + message)
    assert made.json["details"] == {"causes": [{"message": made.json["message"].removeprefix("Internal error occurred: ")}]}


def test_webhook_response_uid_must_match(api: Api, hooks: Hooks) -> None:
    hooks.validating(lambda review: allow(review, uid="x"))
    message = created(api).json["message"]
    assert message.startswith(f"{CALLING}received invalid webhook response: expected response.uid=")
    assert message.endswith(', got "x"')


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"patch": "W10="}, "received invalid webhook response: webhook returned response.patch but not response.patchType"),
        (
            {"patchType": "JSONPatch"},
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
        (
            {"patchType": "JSONPatch", "patch": "bm90IGpzb24="},
            "received undecodable patch in webhook response: invalid character 'o' in literal null (expecting 'u')",
        ),
        (
            {"patchType": "JSONPatch", "patch": "e30="},
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
    ],
)
def test_invalid_webhook_patch_responses_are_reported(api: Api, hooks: Hooks, response: dict[str, Any], message: str) -> None:
    hooks.mutating(lambda review: allow(review, **response))
    assert created(api).json["message"] == CALLING + message


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_webhook_connection_refused_follows_the_failure_policy(api: Api, hooks: Hooks, kind: str) -> None:
    hooks.configure(kind, None, {"objectSelector": {"matchLabels": {"fail": "closed"}}})
    hooks.configure(kind, None, {"objectSelector": {"matchLabels": {"fail": "open"}}, "failurePolicy": "Ignore"}, name="open")
    refused = created(api, "one", {"fail": "closed"})
    problem = (
        'failed to call webhook: Post "https://127.0.0.1:9/none?timeout=30s": dial tcp 127.0.0.1:9: connect: connection refused'
    )
    assert (refused.status, refused.json["message"]) == (500, CALLING + problem)
    assert created(api, "two", {"fail": "open"}).status == 201


@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
def test_webhook_timeout_follows_the_failure_policy(api: Api, hooks: Hooks, policy: str, code: int) -> None:
    given_up = threading.Event()

    def answer(review: dict[str, Any]) -> Answer:
        if review["request"]["name"] == "slow":
            given_up.wait(60)
        return allow(review)

    slow = {"objectSelector": {"matchLabels": {"slow": "yes"}}, "timeoutSeconds": 1}
    quick = {"objectSelector": {"matchExpressions": [{"key": "slow", "operator": "DoesNotExist"}]}, "timeoutSeconds": 30}
    others = {"name": "quick.example.com", "failurePolicy": policy}
    webhook = hooks.validating(answer, {**slow, "failurePolicy": policy}, {**quick, **others})
    made = created(api, "slow", {"slow": "yes"})
    given_up.set()
    assert made.status == code
    if code == 500:
        url = f"{webhook.client_config['url']}?timeout=1s"
        assert made.json["message"] == f'{CALLING}failed to call webhook: Post "{url}": context deadline exceeded'
    assert created(api, "quick").status == 201


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_request_timeout_limits_the_webhook_timeout(api: Api, hooks: Hooks, policy: str) -> None:
    given_up = threading.Event()

    def answer(review: dict[str, Any]) -> Answer:
        if review["request"]["name"] == "slow":
            given_up.wait(60)
        return allow(review)

    webhook = hooks.validating(answer, {"failurePolicy": policy})
    made = api.post(api.path("configmaps"), config_map("slow"), {"timeout": "900ms"})
    given_up.set()
    expected = "Timeout: request did not complete within the allotted timeout"
    assert (made.status, made.json["reason"], made.json["message"]) == (504, "Timeout", expected)
    assert webhook.requests[-1][0] == "/convert?timeout=1s"


def test_webhook_service_not_found(api: Api, hooks: Hooks) -> None:
    service = {"name": "none", "namespace": api.namespace, "path": "/check"}
    hooks.configure("Validating", None, {"clientConfig": {"service": service}})
    problem = f'failed to call webhook: Post "https://none.{api.namespace}.svc:443/check?timeout=30s": service "none" not found'
    assert created(api).json["message"] == CALLING + problem


# ---------------------------------------------------------------- matching


def test_webhook_match_conditions(api: Api, hooks: Hooks) -> None:
    expressions = {
        "name": "object.metadata.name == 'one'",
        "operation": "request.operation == 'UPDATE'",
        "user": "'system:masters' in request.userInfo.groups",
        "rights": "authorizer.group('').resource('pods').namespace(request.namespace).check('get').allowed()",
        "old": "oldObject != null",
    }
    entries = [
        {"name": f"{name}.example.com", "matchConditions": [{"name": name, "expression": expression}]}
        for name, expression in expressions.items()
    ]
    webhook = hooks.validating(allow, *entries)
    created(api, "one")
    assert len(webhook.seen) == 3
    webhook.seen.clear()
    created(api, "two")
    assert len(webhook.seen) == 2


@pytest.mark.parametrize(("policy", "code"), [("Fail", 403), ("Ignore", 201)])
def test_match_condition_errors_follow_the_failure_policy(api: Api, hooks: Hooks, policy: str, code: int) -> None:
    conditions = [{"name": "broken", "expression": "object.data.none == 'x'"}, {"name": "all", "expression": "true"}]
    webhook = hooks.validating(allow, {"failurePolicy": policy, "matchConditions": conditions})
    made = created(api)
    assert (made.status, webhook.seen) == (code, [])
    if code == 403:
        assert made.json["message"] == (
            "configmaps \"one\" is forbidden: expression 'object.data.none == 'x'' resulted in error: no such key: none"
        )


def test_namespace_selector_matches_labels_of_a_new_namespace(api: Api, hooks: Hooks) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["namespaces"], "scope": "Cluster"}
    hooks.validating(deny, {"rules": [rule], "namespaceSelector": {"matchLabels": {"mine": api.suffix}}})
    refused = api.post("/api/v1/namespaces", {"metadata": {"name": api.name("new"), "labels": {"mine": api.suffix}}}, DRY)
    assert refused.status == 400
    assert api.post("/api/v1/namespaces", {"metadata": {"name": api.name("new")}}, DRY).status == 201


def test_hanging_webhook_does_not_delay_other_requests(api: Api, hooks: Hooks) -> None:
    hanging = threading.Event()

    def answer(review: dict[str, Any]) -> Answer:
        if review["request"]["name"] == "slow":
            hanging.wait(60)
        return allow(review)

    hooks.mutating(answer, {"objectSelector": {"matchLabels": {"asked": "yes"}}, "timeoutSeconds": 30})
    waiting = [threading.Thread(target=created, args=(api, "slow", {"asked": "yes"})) for _ in range(4)]
    for thread in waiting:
        thread.start()
    try:
        assert [created(api, f"quick-{number}").status for number in range(10)] == [201] * 10
        assert created(api, "asked", {"asked": "yes"}).status == 201
        assert all(thread.is_alive() for thread in waiting)
    finally:
        hanging.set()
        for thread in waiting:
            thread.join()
