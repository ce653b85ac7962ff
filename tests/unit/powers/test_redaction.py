"""Saved requests have no credentials and no data of Secrets, whatever the form of the body."""

from __future__ import annotations

import json
import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

from fakekube import Cluster
from tests.unit.raw_calls import Call, call

SECRET = "c2VjcmV0LXZhbHVl"
PLAIN = "plain-value"
SECRETS = "/api/v1/namespaces/default/secrets"


def secret(**more: Any) -> dict[str, Any]:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"key": SECRET}})}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "annotations": applied},
        "data": {"key": SECRET},
        "stringData": {"other": PLAIN},
        **more,
    }


def saved(cluster: Cluster, tmp_path: Path, **options: Any) -> str:
    path = tmp_path / "requests.jsonl"
    cluster.requests.save(path, **options)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_text()


def send(cluster: Cluster, method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    fields = {"Content-Type": kind, "Authorization": "Bearer admin-token", "Cookie": "session=abc", **headers}
    status, answer = call(cluster, Call(method, path, fields, data))
    assert status < 300, answer


WRITES = [
    ("PUT", "application/json", secret()),
    ("PATCH", "application/merge-patch+json", {"data": {"key": SECRET}, "stringData": {"other": PLAIN}}),
    ("PATCH", "application/strategic-merge-patch+json", {"data": {"key": SECRET}}),
    ("PATCH", "application/json-patch+json", [{"op": "add", "path": "/data/more", "value": SECRET}]),
    ("PATCH", "application/json-patch+json", [{"op": "replace", "path": "/data", "value": {"key": SECRET}}]),
    ("PATCH", "application/apply-patch+yaml", {"apiVersion": "v1", "kind": "Secret", "data": {"applied": SECRET}}),
]


def test_secrets_and_credentials_are_left_out(tmp_path: Path) -> None:
    with Cluster(profile="apiserver") as cluster:
        send(cluster, "POST", SECRETS, secret())
        for method, kind, body in WRITES:
            send(cluster, method, f"{SECRETS}/s?fieldManager=me&force=true" if "apply" in kind else f"{SECRETS}/s", body, kind)
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        for path, accept in (
            (f"{SECRETS}/s", "application/json"),
            (SECRETS, "application/json"),
            (f"{SECRETS}?includeObject=Object", table),
            (SECRETS, "application/vnd.kubernetes.protobuf"),
            (SECRETS, "application/yaml"),
            (SECRETS, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        ):
            send(cluster, "GET", path, Accept=accept)
        account = "/api/v1/namespaces/default/serviceaccounts"
        send(cluster, "POST", account, {"metadata": {"name": "a"}})
        send(cluster, "POST", f"{account}/a/token", {"spec": {}})
        send(cluster, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "some-token"}})
        text = saved(cluster, tmp_path)
        for value in (
            SECRET,
            PLAIN,
            b64encode(PLAIN.encode()).decode(),
            "secret-value",
            "admin-token",
            "session=abc",
            "some-token",
            "eyJ",
        ):
            assert value not in text
        assert '"key":"REDACTED"' in text
        assert len(text.splitlines()) == len(WRITES) + 10


def test_a_member_named_kind_may_have_any_value(tmp_path: Path) -> None:
    """The schema of a definition has a member `kind`, whose value is a schema: definitions that controller-gen writes have it."""
    with Cluster(profile="apiserver") as cluster:
        schema = {"type": "object", "properties": {"kind": {"type": "string"}, "data": {"type": "object"}}}
        spec = {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "tests", "kind": "Test"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        }
        metadata = {"name": "tests.example.com"}
        body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}
        send(cluster, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
        text = saved(cluster, tmp_path)
        assert cluster.trace(tmp_path / "trace.html").exists()
    assert '"data":{"type":"object"}' in text


def test_everything_is_saved_on_request(tmp_path: Path) -> None:
    with Cluster(profile="apiserver") as cluster:
        send(cluster, "POST", SECRETS, secret())
        text = saved(cluster, tmp_path, redact=False)
        assert SECRET in text
        assert "admin-token" in text


def test_files_with_secrets_are_the_owners(tmp_path: Path) -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.save(tmp_path / "state.yaml")
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        with cluster.record(tmp_path / "recording.yaml"):
            pass
    for name in ("state.yaml", "kubeconfig", "recording.yaml"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
