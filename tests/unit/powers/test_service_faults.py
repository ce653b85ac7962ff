"""Faults of webhooks, groups, tokens and answers: each as a client sees it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from fakekube.apis.rest.cluster_access import CallError
from fakekube.apiserver.webhooks.caller import review_in
from fakekube.apiserver.webhooks.transport import Answer, Endpoint
from fakekube.powers.faults import FaultSelector
from fakekube.powers.webhook_faults import ObservedCall

MAPS = "/api/v1/namespaces/default/configmaps"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
HOOK = {
    "name": "hook.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/validate"},
    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "timeoutSeconds": 1,
    "namespaceSelector": {},
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        yield made


def ask(cluster: Cluster, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read()
        return (
            response.status,
            json.loads(text) if text.startswith(b"{") and text.endswith(b"}\n") else text,
            dict(response.headers),
        )
    finally:
        connection.close()


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def allowed(one: Any) -> tuple[int, dict[str, Any]]:
    uid = one.body["request"]["uid"]
    return 200, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, "allowed": True}}


def install(cluster: Cluster, kind: str = "Validating", **more: Any) -> None:
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{**HOOK, **more}],
    }
    cluster.create(configuration)


# ---------------------------------------------------------------- webhooks


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_intercept_answers_in_place_of_a_webhook(cluster: Cluster, kind: str) -> None:
    install(cluster, kind)
    with pytest.raises(ApiError, match="connection refused"):
        cluster.create(config_map("a"))
    cluster.faults.on("call", "configmaps").intercept(allowed)
    assert cluster.create(config_map("a"))
    call = cluster.requests.where(verb="call", resource="configmaps", name="a", own=True).last
    assert (call.status, call.path, call.agent) == (200, "/validate", "kube-apiserver-admission")
    assert call.body["request"]["operation"] == "CREATE"
    assert call.answer["response"]["allowed"]
    assert cluster.requests.where(verb="call").none() is None  # not among what clients asked


ACTIONS: list[tuple[Callable[[FaultSelector], Any], str]] = [
    (lambda on: on.refuse(), "dial tcp 127.0.0.1:1: connect: connection refused"),
    (lambda on: on.status(500, message="sorry"), r'an error on the server \("sorry"\) has prevented the request from succeeding'),
    (lambda on: on.status(503), "the server is currently unable to handle the request"),
    (lambda on: on.intercept(lambda one: (200, {"kind": "Nothing"})), "Nothing"),
]


@pytest.mark.parametrize(("arm", "text"), ACTIONS)
def test_webhook_call_faults(cluster: Cluster, arm: Callable[[FaultSelector], Any], text: str) -> None:
    install(cluster)
    cluster.clock.hold()
    with arm(cluster.faults.on("call", "configmaps")) as fault, pytest.raises(ApiError, match=text):
        cluster.create(config_map("a"))
    assert fault.hits == 1
    call = cluster.requests.where(verb="call", own=True).last
    assert list(call.faults) == [fault.name]


@pytest.mark.parametrize(("method", "text"), [("lose", "EOF"), ("malformed", "json parse error")])
def test_lost_or_cut_webhook_responses(cluster: Cluster, method: str, text: str) -> None:
    called: list[str] = []

    def perform(call: ObservedCall) -> Answer:
        called.append(call.exchange.name)
        return Answer(200, {"content-type": "application/json"}, json.dumps(allowed(call.exchange)[1]).encode())

    fault = getattr(cluster.faults.on("call"), method)()
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "name": "a"}}
    call = cluster._observe().observe_call(Endpoint("https://127.0.0.1:1/x", None, b""), json.dumps(review).encode(), review, 1.0)
    assert isinstance(call, ObservedCall)
    with pytest.raises(CallError, match=text):
        review_in(call.perform(lambda: perform(call)), review["apiVersion"], review["kind"])
    assert (called, fault.hits) == (["a"], 1)


@dataclass(frozen=True)
class CallWithoutAnswer:
    """Creates an object whose webhook does not answer in time; returns the error."""

    arm: Callable[[FaultSelector], Any]
    policy: str

    def __call__(self) -> str:
        with Cluster(profile="apiserver") as cluster:
            install(cluster, failurePolicy=self.policy)
            cluster.clock.hold()
            error = ""
            with self.arm(cluster.faults.on("call", path="/vali*")) as fault:
                try:
                    cluster.create(config_map("a"))
                except ApiError as refused:
                    error = str(refused)
            call = cluster.requests.where(verb="call", own=True).last
            assert (fault.hits, list(call.faults)) == (1, [fault.name])
            return error


@pytest.mark.parametrize(
    ("awaited", "error"),
    [
        (CallWithoutAnswer(lambda on: on.delay(60), "Fail"), "context deadline exceeded"),
        (CallWithoutAnswer(lambda on: on.hang(), "Fail"), "context deadline exceeded"),
        (CallWithoutAnswer(lambda on: on.hang(times=1), "Ignore"), ""),
    ],
    indirect=["awaited"],
    ids=["delay", "hang", "ignored"],
)
def test_a_webhook_that_does_not_answer_in_time(awaited: str, error: str) -> None:
    assert error in awaited
    assert bool(error) == bool(awaited)


def test_delay_within_the_webhook_timeout_has_no_effect(cluster: Cluster) -> None:
    install(cluster)
    cluster.faults.on("call", "configmaps").delay(0.01)
    cluster.faults.on("call", "configmaps").intercept(allowed)
    assert cluster.create(config_map("a"))
    assert len(cluster.requests.where(verb="call", own=True).last.faults) == 2


def test_webhook_calls_match_only_the_verb_call(cluster: Cluster) -> None:
    install(cluster, failurePolicy="Ignore")
    everything = cluster.faults.on("*", "configmaps", own=True).delay(0)
    others = cluster.faults.on("call", "secrets").refuse()
    named = cluster.faults.on("call", name="b").refuse()
    cluster.create(config_map("a"))
    assert (everything.hits, others.hits, named.hits) == (1, 0, 0)
    cluster.create(config_map("b"))
    assert named.hits == 1


# ---------------------------------------------------------------- groups


def test_unavailable_group_returns_503_and_is_stale_in_discovery(cluster: Cluster) -> None:
    fault = cluster.faults.on("*", "*.apps").unavailable()
    for path in (
        "/apis/apps/v1/deployments",
        "/apis/apps/v1",
        "/apis/apps",
        "/apis/apps/v1/namespaces/default/deployments/web/status",
    ):
        code, body, _ = ask(cluster, "GET", path)
        assert (code, body) == (503, b"service unavailable\n")
    assert ask(cluster, "GET", "/apis/batch/v1/jobs")[0] == 200
    code, found, headers = ask(cluster, "GET", "/apis", Accept=AGGREGATED)
    fresh = {item["metadata"]["name"]: {version["freshness"] for version in item["versions"]} for item in found["items"]}
    assert fresh["apps"] == {"Stale"}
    assert {"Current"} == set().union(*(value for name, value in fresh.items() if name != "apps"))
    fault.remove()
    code, found, after = ask(cluster, "GET", "/apis", Accept=AGGREGATED)
    assert {version["freshness"] for item in found["items"] for version in item["versions"]} == {"Current"}
    assert headers["Etag"] != after["Etag"]


def test_unavailable_group_drops_its_watches(cluster: Cluster) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    connection.request("GET", "/apis/apps/v1/deployments?watch=1")
    watch = connection.getresponse()
    cluster.faults.on("*", "*.apps").unavailable()
    with pytest.raises((http.client.HTTPException, OSError)):
        watch.read()
    connection.close()


# ---------------------------------------------------------------- tokens


def test_expire_tokens_rejects_old_service_account_tokens_only(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "op"}})
    path = "/api/v1/namespaces/default/serviceaccounts/op/token"

    def token() -> str:
        made: str = cluster.call("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})[
            "status"
        ]["token"]
        return made

    def code(bearer: str) -> int:
        return ask(cluster, "GET", MAPS, Authorization=f"Bearer {bearer}")[0]

    old = token()
    assert code(old) == 403  # known, and not allowed
    fault = cluster.faults.on("*", user="system:serviceaccount:default:op").expire_tokens(label="expired")
    status, answer, _ = ask(cluster, "GET", MAPS, Authorization=f"Bearer {old}")
    assert (status, answer["reason"]) == (401, "Unauthorized")
    assert cluster.requests.last.fault == "expired"
    new = token()
    assert [code(new), code(old), code("user-token"), code("admin-token")] == [403, 401, 403, 200]
    assert fault.hits == 2
    fault.remove()
    assert code(old) == 403


def test_expire_tokens_rejects_static_tokens(cluster: Cluster) -> None:
    cluster.faults.on("*", user="alice").expire_tokens()
    assert ask(cluster, "GET", "/api", Authorization="Bearer user-token")[0] == 401
    assert ask(cluster, "GET", MAPS)[0] == 200


# ---------------------------------------------------------------- answers


def test_malformed_fault_truncates_response_bodies(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    with cluster.faults.on("list,create", "configmaps").malformed():
        code, body, _ = ask(cluster, "GET", MAPS)
        assert code == 200
        with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
            json.loads(body)
        ask(cluster, "POST", MAPS, config_map("b"))
    assert cluster.get("cm", "b")
    with cluster.faults.on("watch", "configmaps").malformed():
        _, body, _ = ask(cluster, "GET", f"{MAPS}?watch=1")
    assert body.count(b"\n") == 0
    assert cluster.requests.last.ended == "malformed by a fault"


def test_service_faults_over_the_control_api(cluster: Cluster) -> None:
    for on, do in (
        ({"verbs": "call", "resource": "pods"}, {"refuse": {}}),
        ({"verbs": "*", "resource": "*.apps"}, {"unavailable": {}}),
        ({"verbs": "*", "user": "alice"}, {"expire_tokens": {}}),
        ({"verbs": "get"}, {"malformed": {}}),
    ):
        code, answer, _ = ask(cluster, "POST", "/fakekube/v1/faults", {"on": on, "do": do})
        assert (code, answer["do"]) == (201, do)
