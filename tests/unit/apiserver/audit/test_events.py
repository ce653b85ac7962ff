"""Audit events of requests, and the log and webhook backends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiserver.auth.options import OptionError
from fakekube.controllers.client import ApiError

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}

Start = Callable[..., Cluster]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "audit.log"


@pytest.fixture
def start(tmp_path: Path, log: Path) -> Iterator[Start]:
    clusters: list[Cluster] = []

    def make(*rules: dict[str, Any], policy: dict[str, Any] | None = None, **flags: Any) -> Cluster:
        path = tmp_path / "policy.yaml"
        path.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, **(policy or {})}))
        clusters.append(Cluster(profile="apiserver", audit_policy_file=path, **{"audit_log_path": log, **flags}))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.stop()


def events(log: Path, stage: str = "ResponseComplete") -> list[dict[str, Any]]:
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [event for event in found if event["stage"] == stage]


def test_audit_levels_determine_recorded_objects(start: Start, log: Path) -> None:
    for level, members in (
        ("Metadata", set()),
        ("Request", {"requestObject"}),
        ("RequestResponse", {"requestObject", "responseObject"}),
    ):
        start({"level": level}).create(CONFIG_MAP)
        event = events(log)[-1]
        assert event.keys() & {"requestObject", "responseObject"} == members
        assert event["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"}
    assert event["requestObject"] == {**CONFIG_MAP, "metadata": {"name": "a"}}
    assert event["responseObject"]["metadata"]["uid"]


def test_audit_event_fields(start: Start, log: Path) -> None:
    cluster = start({"level": "Metadata"})
    cluster.clock.hold()
    with pytest.raises(ApiError):
        cluster.as_user("alice", groups=["g"], uid="u", extra={"k": ["v"]}).get("configmaps", "none")
    received, complete = events(log, "RequestReceived")[0], events(log)[0]
    now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert list(complete) == [
        "kind",
        "apiVersion",
        "level",
        "auditID",
        "stage",
        "requestURI",
        "verb",
        "user",
        "sourceIPs",
        "userAgent",
        "objectRef",
        "responseStatus",
        "requestReceivedTimestamp",
        "stageTimestamp",
        "annotations",
    ]
    assert complete["user"] == {"username": "alice", "uid": "u", "groups": ["g", "system:authenticated"], "extra": {"k": ["v"]}}
    assert complete["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "reason": "Forbidden",
        "code": 403,
        "details": {"name": "none", "kind": "configmaps"},
        "message": 'configmaps "none" is forbidden: User "alice" cannot get resource "configmaps" in API group "" in the namespace "default"',
    }
    assert complete["annotations"] == {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}
    assert (complete["requestReceivedTimestamp"], complete["stageTimestamp"]) == (now, now)
    assert received["auditID"] == complete["auditID"]
    assert "responseStatus" not in received


def test_authorization_reason_names_binding_and_role(start: Start, log: Path) -> None:
    cluster = start({"level": "Metadata"})
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "readers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
        }
    )
    role = {"metadata": {"name": "view"}, "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]}
    cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **role})
    cluster.as_user("alice").list("pods")
    assert events(log)[-1]["annotations"] == {
        "authorization.k8s.io/decision": "allow",
        "authorization.k8s.io/reason": 'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "view" to User "alice"',
    }


POD_SPEC = {"containers": [{"name": "c", "image": "i"}]}
SECURITY = "pod-security.kubernetes.io/"


@pytest.mark.parametrize(
    ("labels", "spec", "expected"),
    [
        ({}, {"hostPID": True}, {"enforce-policy": "privileged:latest"}),
        (
            {"audit": "baseline"}, {"hostPID": True},
            {
                "enforce-policy": "privileged:latest",
                "audit-violations": 'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)',
            },
        ),
        ({"audit": "baseline"}, {}, {"enforce-policy": "privileged:latest"}),
        ({"enforce": "baseline", "enforce-version": "v1.30"}, {"hostPID": True}, {"enforce-policy": "baseline:v1.30"}),
    ],
)  # fmt: skip
def test_pod_security_audit_annotations(
    start: Start, log: Path, labels: dict[str, str], spec: dict[str, Any], expected: dict[str, str]
) -> None:
    cluster = start({"level": "Metadata"})
    marks = {SECURITY + key: value for key, value in labels.items()}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": marks}})
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "n"}})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {**POD_SPEC, **spec}}
    with pytest.raises(ApiError, match="violates PodSecurity") if "enforce" in labels else nullcontext():
        cluster.create(pod)
    annotations = events(log)[-1]["annotations"]
    assert {key.removeprefix(SECURITY): value for key, value in annotations.items() if SECURITY in key} == expected


def test_deprecated_annotation_is_set_at_response_complete(start: Start, log: Path) -> None:
    cluster = start({"level": "Metadata"})
    cluster.list("endpoints")
    stream = cluster.watch("/api/v1/endpoints", {"timeoutSeconds": "60"})
    stream.close()
    cluster.list("services")
    listed, watched, other = events(log)
    assert [event["annotations"].get("k8s.io/deprecated") for event in (listed, watched, other)] == ["true", "true", None]
    assert "k8s.io/deprecated" not in events(log, "ResponseStarted")[0]["annotations"]


def test_omit_managed_fields(start: Start, log: Path) -> None:
    cluster = start({"level": "RequestResponse"}, policy={"omitManagedFields": True})
    cluster.create(CONFIG_MAP)
    cluster.list("configmaps", namespace="default")
    created, listed = events(log)
    assert "managedFields" not in created["responseObject"]["metadata"]
    assert "managedFields" not in listed["responseObject"]["items"][0]["metadata"]
    assert cluster.get("configmaps", "a")["metadata"]["managedFields"]


def test_request_object_of_patches_and_delete_options(start: Start, log: Path) -> None:
    cluster = start({"level": "Request"})
    cluster.create(CONFIG_MAP)
    cluster.patch("configmaps", "a", {"data": {"x": "y"}})
    cluster.delete("configmaps", "a", gracePeriodSeconds=0)
    _, patched, deleted = events(log)
    assert patched["requestObject"] == {"data": {"x": "y"}}
    assert deleted["requestObject"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "gracePeriodSeconds": 0}
    assert deleted["responseStatus"]["status"] == "Success"


def test_watch_has_response_started_and_complete_events(start: Start, log: Path) -> None:
    cluster = start({"level": "RequestResponse", "omitStages": ["RequestReceived"]})
    stream = cluster.watch("/api/v1/namespaces/default/configmaps", {"timeoutSeconds": "60"})
    assert [event["stage"] for event in map(json.loads, log.read_text().splitlines())] == ["ResponseStarted"]
    revision = cluster.create(CONFIG_MAP)["metadata"]["resourceVersion"]
    cluster.patch("configmaps", "a", {"data": {"x": "y"}})
    assert stream.source is not None
    stream.close()
    stream.close()
    watched = [event for event in events(log) if event["verb"] == "watch"]
    assert [event["responseStatus"] for event in watched] == [{"metadata": {}, "code": 200}]
    following = cluster.watch("/api/v1/namespaces/default/configmaps", {"resourceVersion": revision})
    assert len(following.take()) == 1
    following.close()


def test_impersonation_and_failed_authentication(start: Start, log: Path) -> None:
    application = start({"level": "Metadata"}).application

    def ask(**headers: str) -> None:
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/api/v1/nodes",
            "QUERY_STRING": "",
            "wsgi.url_scheme": "http",
            "SERVER_NAME": "x",
            "SERVER_PORT": "80",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_AUDIT_ID": "id",
            **headers,
        }
        application(environ, lambda *_: None)

    ask(
        HTTP_IMPERSONATE_USER="bob",
        HTTP_IMPERSONATE_GROUP="g",
        HTTP_X_FORWARDED_FOR="10.0.0.1, nonsense, ::1",
        HTTP_USER_AGENT="u" * 2000,
    )
    event = events(log)[0]
    assert event["impersonatedUser"] == {"username": "bob", "groups": ["g", "system:authenticated"]}
    assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
    assert event["sourceIPs"] == ["10.0.0.1", "::1", "127.0.0.1"]
    assert event["userAgent"] == "u" * 1024 + "...TRUNCATED"
    ask(HTTP_AUTHORIZATION="Bearer wrong")
    (refused,) = events(log, "ResponseStarted")
    assert (refused["user"], refused["auditID"], refused["responseStatus"]["code"]) == ({}, "id", 401)


def test_level_none_writes_no_events(start: Start, log: Path) -> None:
    start({"level": "None"}).create(CONFIG_MAP)
    assert not log.exists()


def test_legacy_log_format(start: Start, log: Path) -> None:
    start({"level": "Metadata", "omitStages": ["RequestReceived"]}, audit_log_format="legacy").create(CONFIG_MAP)
    line = log.read_text()
    assert ' AUDIT: id="' in line
    assert line.endswith(
        'stage="ResponseComplete" ip="127.0.0.1" method="create" user="admin" groups="\\"system:masters\\",\\"system:authenticated\\"" '
        'as="<self>" asgroups="<lookup>" user-agent="fakekube" namespace="default" uri="/api/v1/namespaces/default/configmaps" response="201"\n'
    )


def test_webhook_backend_sends_batches_with_retry(start: Start, tmp_path: Path) -> None:
    lists: list[dict[str, Any]] = []
    answers = [500]  # the first try fails

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code = answers.pop() if answers else 200
            if code == 200:
                lists.append(body)
            self.send_response(code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.server_port}/audit"}}],
                "contexts": [{"name": "a", "context": {"cluster": "a"}}],
                "current-context": "a",
            }
        )
    )
    flags = {"audit_log_path": "", "audit_webhook_config_file": kubeconfig}
    cluster = start({"level": "Metadata"}, audit_webhook_batch_max_size=2, **flags)
    for name in ("a", "b", "c"):
        cluster.create({**CONFIG_MAP, "metadata": {"name": name}})
    cluster.stop()
    assert {(found["kind"], found["apiVersion"]) for found in lists} == {("EventList", "audit.k8s.io/v1")}
    names = [
        event["objectRef"].get("name") for found in lists for event in found["items"] if event["stage"] == "ResponseComplete"
    ]
    assert names == ["a", "b", "c"]
    lists.clear()
    start({"level": "Metadata", "omitStages": ["RequestReceived"]}, audit_webhook_mode="blocking", **flags).create(CONFIG_MAP)
    assert [event["verb"] for found in lists for event in found["items"]] == ["create"]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"audit_log_format": "xml"}, "invalid audit log format xml"),
        ({"audit_webhook_config_file": "{folder}/none"}, "no such file"),
        ({"audit_webhook_config_file": "{folder}/policy.yaml", "audit_webhook_mode": "x"}, "invalid audit webhook mode x"),
        ({"audit_policy_file": ""}, "--audit-policy-file"),
    ],
)
def test_invalid_audit_flags_are_rejected(tmp_path: Path, flags: dict[str, str], problem: str) -> None:
    (tmp_path / "policy.yaml").write_text('{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}')
    usual: dict[str, Any] = {"audit_policy_file": "{folder}/policy.yaml", "audit_log_path": "{folder}/log"}
    with pytest.raises(OptionError) as caught:
        Cluster(profile="apiserver", **{name: value.format(folder=tmp_path) for name, value in {**usual, **flags}.items()})
    assert problem in str(caught.value)
