"""Audit annotations of admission webhooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fakekube.apis.rest.resource import Registry
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apiserver.admission.chain import Attributes, Operation
from fakekube.apiserver.registry import builtin
from fakekube.apiserver.webhooks.admission import MutatingAdmissionWebhook, ValidatingAdmissionWebhook

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
MUTATION, PATCH = "mutation.webhook.admission.k8s.io/", "patch.webhook.admission.k8s.io/"


class Services:
    """A cluster with one configuration of one webhook."""

    def __init__(self, **spec: Any) -> None:
        hook = {"name": "h.example.com", "clientConfig": {}, "rules": [RULE], "admissionReviewVersions": ["v1"], **spec}
        self._configuration = {"metadata": {"name": "c"}, "webhooks": [hook]}

    def last_change(self, group: str, plural: str) -> int:
        return 1

    def list(self, group: str, plural: str) -> Any:
        return iter([self._configuration])


class Caller:
    """Answers every review in the same way, or fails."""

    def __init__(self, response: Mapping[str, Any] | Exception) -> None:
        self._response = response

    def __call__(self, client_config: Any, review: Any, *, timeout: float = 30) -> Any:
        if isinstance(self._response, Exception):
            raise self._response
        response = {"uid": review["request"]["uid"], "allowed": True, **self._response}
        return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}

    def begin(self, client_config: Any, review: Any, *, timeout: float = 30) -> Any:
        return lambda: self(client_config, review, timeout=timeout)


def annotations(plugin: Any, **spec: Any) -> dict[str, tuple[str, str]]:
    """What a create of a config map leaves."""
    resource = Registry(builtin.resources()).get("", "v1", "configmaps")
    assert resource is not None
    services: Any = Services(**spec)
    clock: Any = None
    context = WriteContext(resource, "n", clock, services)
    obj = {"metadata": {"name": "x"}, "data": {"a": "1"}}
    attributes = Attributes(resource, "", "n", "x", Operation.CREATE, obj, None, context)
    plugin.admit(attributes)
    plugin.validate(attributes)
    return context.annotations


def mutation(*, mutated: bool) -> str:
    return json.dumps({"configuration": "c", "webhook": "h.example.com", "mutated": mutated}, separators=(",", ":"))


def test_mutating_webhook_audit_annotations() -> None:
    patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEvYiIsInZhbHVlIjoiMiJ9XQ=="
    found = annotations(MutatingAdmissionWebhook(Caller({"patchType": "JSONPatch", "patch": patch})))
    operation = '{"op":"add","path":"/data/b","value":"2"}'
    said = f'{{"configuration":"c","webhook":"h.example.com","patch":[{operation}],"patchType":"JSONPatch"}}'
    assert found == {
        f"{MUTATION}round_0_index_0": ("Metadata", mutation(mutated=True)),
        f"{PATCH}round_0_index_0": ("Request", said),
    }


def test_webhook_audit_annotations_are_prefixed_with_its_name() -> None:
    said = {"auditAnnotations": {"key": "value", "a/b": "no qualified name", "bad key": "neither"}}
    assert annotations(ValidatingAdmissionWebhook(Caller(said))) == {"h.example.com/key": ("Metadata", "value")}


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (
            MutatingAdmissionWebhook,
            {
                f"{MUTATION}round_0_index_0": ("Metadata", mutation(mutated=False)),
                f"failed-open.{MUTATION}round_0_index_0": ("Metadata", "h.example.com"),
            },
        ),
        (
            ValidatingAdmissionWebhook,
            {"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": ("Metadata", "h.example.com")},
        ),
    ],
)
def test_audit_annotations_of_failing_open_webhooks(plugin: Any, expected: dict[str, tuple[str, str]]) -> None:
    from fakekube.apis.rest.cluster_access import CallError

    assert annotations(plugin(Caller(CallError("no"))), failurePolicy="Ignore") == expected
