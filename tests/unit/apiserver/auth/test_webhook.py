"""Authorization webhooks: requests, responses, and configuration."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiserver.auth.options import OptionError
from fakekube.base.clock import Clock
from fakekube.controllers.client import ApiError


class Webhook:
    """A webhook that answers by user name."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                webhook.asked.append(review)
                answer = webhook.answers.get(review["spec"].get("user", ""), {"allowed": False})
                body = answer if isinstance(answer, bytes) else json.dumps({**review, "status": answer}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.005,), daemon=True).start()
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
                    "contexts": [{"name": "a", "context": {"cluster": "a"}}],
                    "current-context": "a",
                }
            )
        )

    def configuration(self, **changes: Any) -> dict[str, Any]:
        return {
            "timeout": "3s",
            "authorizedTTL": "5m",
            "unauthorizedTTL": "30s",
            "subjectAccessReviewVersion": "v1",
            "failurePolicy": "NoOpinion",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(self.kubeconfig)},
            **changes,
        }

    def file(self, *authorizers: dict[str, Any], **changes: Any) -> Path:
        own = {"type": "Webhook", "name": "hook", "webhook": self.configuration(**changes)}
        path = self.kubeconfig.with_name("authorization.yaml")
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "AuthorizationConfiguration",
                    "authorizers": [own, *authorizers],
                }
            )
        )
        return path


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[Webhook]:
    made = Webhook(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


def refusal(cluster: Cluster, user: str, code: int = 403) -> str:
    with pytest.raises(ApiError) as caught:
        cluster.as_user(user, groups=["g"]).list("configmaps", namespace="default", label_selector="a in (b)")
    assert caught.value.code == code
    return str(caught.value)


def test_authorization_webhook_requests_and_responses(webhook: Webhook) -> None:
    webhook.answers = {
        "yes": {"allowed": True},
        "no": {"allowed": False, "denied": True, "reason": "never"},
        "maybe": {"allowed": False, "reason": "no idea"},
        "both": {"allowed": True, "denied": True},
        "garbage": b"garbage",
    }
    cluster = Cluster(profile="apiserver", authorization_config=webhook.file({"type": "RBAC", "name": "rbac"}))
    cluster.as_user("yes", groups=["g"]).list("configmaps", namespace="default", label_selector="a in (b)")
    assert webhook.asked[0] == {
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "status": {"allowed": False},
        "spec": {
            "resourceAttributes": {
                "namespace": "default",
                "verb": "list",
                "version": "v1",
                "resource": "configmaps",
                "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
            },
            "user": "yes",
            "groups": ["g", "system:authenticated"],
        },
    }
    assert refusal(cluster, "no").endswith(": never")
    assert refusal(cluster, "maybe").endswith(": no idea")
    assert "both allow and deny" in refusal(cluster, "both", 500)
    assert "couldn't get version/kind" in refusal(cluster, "garbage", 500)
    cluster.list("configmaps")
    assert all(review["spec"]["user"] != "admin" for review in webhook.asked)


def test_access_review_reports_webhook_denials_and_errors(webhook: Webhook) -> None:
    webhook.answers = {"no": {"allowed": False, "denied": True, "reason": "never"}, "garbage": b"[]"}
    cluster = Cluster(
        profile="apiserver", authorization_mode="RBAC,Webhook", authorization_webhook_config_file=webhook.kubeconfig
    )
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    question = {"verb": "get", "resource": "pods"}
    status = cluster.create({**review, "spec": {"user": "no", "resourceAttributes": question}})["status"]
    assert status == {"allowed": False, "denied": True, "reason": "never"}
    status = cluster.create({**review, "spec": {"user": "garbage", "resourceAttributes": question}})["status"]
    assert status["allowed"] is False
    assert "cannot unmarshal array" in status["evaluationError"]
    assert webhook.asked[0]["apiVersion"] == "authorization.k8s.io/v1beta1"


def test_webhook_responses_are_cached_by_the_cluster_clock(webhook: Webhook) -> None:
    webhook.answers = {"yes": {"allowed": True}}
    clock = Clock()
    clock.hold()
    cluster = Cluster(profile="apiserver", clock=clock, authorization_config=webhook.file(cacheUnauthorizedRequests=False))
    alice = cluster.as_user("yes")
    for seconds, asked in ((0, 1), (200, 1), (101, 2)):
        clock.advance(seconds=seconds)
        alice.list("pods")
        assert len(webhook.asked) == asked
    for count in (3, 4):
        refusal(cluster, "nobody")
        assert len(webhook.asked) == count


def test_match_conditions(webhook: Webhook) -> None:
    webhook.answers = {"yes": {"allowed": True}, "odd": {"allowed": True}}
    conditions = [
        {"expression": "has(request.resourceAttributes)"},
        {"expression": "request.user == 'odd' ? request.extra['x'][0] == 'y' : request.user.startsWith('y')"},
    ]
    cluster = Cluster(profile="apiserver", authorization_config=webhook.file(matchConditions=conditions, failurePolicy="Deny"))
    assert cluster.as_user("yes").list("pods") == []
    refusal(cluster, "other")
    assert "no such key: x" in refusal(cluster, "odd", 500)
    assert [review["spec"]["user"] for review in webhook.asked] == ["yes"]


def test_unreachable_webhook_follows_the_failure_policy(webhook: Webhook) -> None:
    webhook.server.shutdown()
    webhook.server.server_close()
    cluster = Cluster(profile="apiserver", authorization_config=webhook.file({"type": "AlwaysAllow", "name": "all"}))
    assert cluster.as_user("alice").list("pods") == []
    cluster = Cluster(
        profile="apiserver", authorization_config=webhook.file({"type": "AlwaysAllow", "name": "all"}, failurePolicy="Deny")
    )
    assert "connection refused" in refusal(cluster, "alice", 500)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"timeout": "31s"}, 'timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        ({"timeout": None}, "timeout: Required value"),
        ({"failurePolicy": "Fail"}, "failurePolicy: Unsupported value"),
        ({"subjectAccessReviewVersion": "v2"}, "subjectAccessReviewVersion: Unsupported value"),
        ({"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "relative"}}, "must be an absolute path"),
        ({"matchConditions": [{"expression": "request.nope"}]}, "undefined field 'nope'"),
        ({"matchConditions": [{"expression": "request.user"}]}, "must evaluate to bool but got string"),
        ({"matchConditions": [{"expression": "true"}, {"expression": "true"}]}, "Duplicate value"),
        ({"more": 1}, 'unknown field "authorizers[0].webhook.more"'),
        ({"timeout": 3}, "timeout is not a string"),
    ],
)
def test_invalid_webhook_configurations(webhook: Webhook, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        Cluster(profile="apiserver", authorization_config=webhook.file(**changes))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("authorizer", "problem"),
    [
        ({"type": "RBAC"}, "authorizers[1].name: Required value"),
        ({"name": "a"}, "authorizers[1].type: Required value"),
        ({"type": "Nope", "name": "a"}, "Unsupported value"),
        ({"type": "RBAC", "name": "hook"}, "Duplicate value"),
        ({"type": "Webhook", "name": "a"}, "required when type=Webhook"),
        ({"type": "RBAC", "name": "A"}, "authorizer name is invalid"),
    ],
)
def test_invalid_authorizers(webhook: Webhook, authorizer: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        Cluster(profile="apiserver", authorization_config=webhook.file(authorizer))
    assert problem in str(caught.value)


def test_invalid_authorization_modes() -> None:
    for mode in ("Nope", "RBAC,RBAC", "Webhook", ""):
        with pytest.raises(OptionError):
            Cluster(profile="apiserver", authorization_mode=mode)
