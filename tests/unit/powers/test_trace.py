"""Trace files: contents, redaction, limits, and what other clusters restore from them."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.page import trace_document
from fakekube.powers.state import StateError
from fakekube.powers.trace import FORMAT, is_trace_text, read_size, state_in_trace, trace_in
from tests.unit.seen import columns, config_map

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 \" ' & \ud800"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as started:
        yield started


def secret(value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"key": value}}


def parts(text: bytes) -> dict[str, bytes]:
    """Returns the decompressed parts of a file."""
    found = re.finditer(rb'<script type="application/octet-stream;base64" id="(\w+)">([^<]*)</script>', text)
    return {match[1].decode(): gzip.decompress(base64.b64decode(match[2])) for match in found}


def test_rows_are_those_of_the_page(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create(config_map("a", x="1"))
    cluster.patch("configmaps", "a", {"data": {"x": "2"}})
    cluster.mark("done")
    text = cluster.trace(tmp_path / "new" / "trace.html").read_bytes()
    trace = trace_in(text)
    assert (trace["kind"], trace["format"], trace["redacted"]) == ("Trace", FORMAT, True)
    assert columns(trace["requests"]) == columns(cluster.rows.requests())
    live = columns(cluster.rows.changes())
    assert [{name: row[name] for name in live[0]} for row in columns(trace["changes"])] == live
    sentences = [trace["changes"]["strings"][place] for place in trace["changes"]["columns"]["sentence"]]
    assert sentences[-2:] == ["fakekube created the ConfigMap a", 'fakekube changed data.x of the ConfigMap a from "1" to "2"']
    assert trace["changes"]["columns"]["paths"][-1] == ["data.x"]
    assert trace["marks"]["strings"][trace["marks"]["columns"]["text"][0]] == "done"
    assert columns(trace["objects"]) == columns(cluster.rows.objects())
    bodies = json.loads(parts(text)["bodies"])
    assert bodies["1"]["body"] == {"data": {"x": "2"}}
    assert trace["info"]["readOnly"] is True


def test_another_cluster_has_the_same_objects_revisions_and_history(cluster: Cluster, tmp_path: Path) -> None:
    cluster.keep_changes()
    created = cluster.create(config_map("a", x="1"))
    cluster.patch("configmaps", "a", {"data": {"x": "2"}})
    cluster.clock.hold()
    cluster.clock.advance(hours=1)
    cluster.create(config_map("b"))
    cluster.delete("configmaps", "b")
    path = cluster.trace(tmp_path / "trace.html")
    with Cluster(profile="apiserver") as other:
        assert other.load(path) == []
        again = other.get("configmaps", "a")
        assert again == cluster.get("configmaps", "a")
        assert again["metadata"]["uid"] == created["metadata"]["uid"]
        found = other.rows.changes(resource="configmaps", namespace="default")
        assert [row["revision"] for row in columns(found)][-4:] == [
            row["revision"] for row in columns(cluster.rows.changes(resource="configmaps", namespace="default"))
        ][-4:]
        assert {row["reason"] for row in columns(found)} <= {"load", "initial", "unknown"}
        assert [one.object["data"] for one in other.history("configmaps", "a")] == [{"x": "1"}, {"x": "2"}]


def test_nothing_secret_is_in_a_file(cluster: Cluster, tmp_path: Path) -> None:
    planted = "planted-value-of-a-secret"
    cluster.create(secret(planted))
    cluster.patch("secrets", "s", {"stringData": {"key": f"{planted}-2"}})
    cluster.patch("secrets", "s", {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": planted}}})
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "me", "namespace": "default"}})
    answer = cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts/me/token", {"spec": {}})
    token = answer["status"]["token"]
    cluster.delete("secrets", "s")
    text = cluster.trace(tmp_path / "trace.html").read_bytes()
    hidden = [planted, base64.b64encode(planted.encode()).decode().rstrip("=")[:-2], token]
    for part in (text, *parts(text).values()):
        assert not [one for one in hidden if one.encode() in part]
    assert "of the Secret s" in str(trace_in(text)["changes"]["strings"])
    full = parts(cluster.trace(tmp_path / "full.html", redact=False).read_bytes())
    assert all(any(one.encode() in part for part in full.values()) for one in hidden)
    assert (tmp_path / "full.html").stat().st_mode & 0o077 == 0


def test_a_redacted_secret_is_one_that_clients_can_read(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create(secret("x" * 24))
    path = cluster.trace(tmp_path / "trace.html")
    with Cluster(profile="apiserver") as other:
        other.load(path)
        assert base64.b64decode(other.get("secrets", "s")["data"]["key"]) == b"redacted (24 bytes)"


def test_a_file_is_not_larger_than_its_limit(cluster: Cluster, tmp_path: Path) -> None:
    import random

    dice = random.Random(0)
    for number in range(60):
        cluster.create(config_map(f"a-{number}", x=dice.randbytes(2_000).hex()))
    for _ in range(60):
        cluster.patch("configmaps", "a-1", {"data": {"x": dice.randbytes(2_000).hex()}})
    whole = cluster.trace(tmp_path / "whole.html")
    assert trace_in(whole.read_bytes())["limits"]["dropped"] == {"bodies": 0, "requests": 0, "versions": False}
    size = whole.stat().st_size
    less = cluster.trace(tmp_path / "less.html", limit=size - 150_000)
    assert less.stat().st_size <= size - 150_000
    dropped = trace_in(less.read_bytes())["limits"]["dropped"]
    assert dropped["bodies"] > 0
    assert dropped["requests"] == 0
    bodies = json.loads(parts(less.read_bytes())["bodies"])
    assert "119" in bodies  # one of the last fifty
    least = trace_in(cluster.trace(tmp_path / "least.html", limit=size // 3).read_bytes())["limits"]["dropped"]
    assert least["requests"] > 0
    assert least["versions"] is True


def test_hostile_texts_stay_text(cluster: Cluster, tmp_path: Path) -> None:
    cluster.test = {"id": HOSTILE, "outcome": "failed", "message": HOSTILE}
    cluster.mark(HOSTILE)
    cluster.create(config_map("a", x=HOSTILE.replace("\ud800", "")))
    text = cluster.trace(tmp_path / "trace.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert text.count("</script>") == text.count("<script")
    assert trace_in(text.encode())["test"]["message"] == HOSTILE
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "connect-src" not in policy[1]
    assert "default-src 'none'" in policy[1]


def test_documents_have_fresh_nonces() -> None:
    one, other = trace_document("trace", {}, {}), trace_document("trace", {}, {})
    nonces = [re.findall(r'nonce="([^"]+)"', text) for text in (one, other)]
    assert len({*nonces[0]}) == len({*nonces[1]}) == 1
    assert nonces[0][0] != nonces[1][0]


def test_damaged_files(cluster: Cluster, tmp_path: Path) -> None:
    text = cluster.trace(tmp_path / "trace.html").read_bytes()
    assert is_trace_text(text)
    for damaged, problem in (
        (text.replace(b'id="trace">{', b'id="trace">{{', 1), "rows are no JSON"),
        (text.replace(b'"kind":"Trace"', b'"kind":"Other"', 1), "no Trace of fakekube.dev/v1"),
        (text.replace(b'"format":1', b'"format":99', 1), "has the format 99"),
        (text.replace(b'id="state"', b'id="stale"', 1), "it has no state"),
        (text.replace(b'id="state">', b'id="state">*', 1), "damaged"),
    ):
        with pytest.raises(StateError, match=problem):
            state_in_trace(damaged)
    assert not is_trace_text(b"<!doctype html><p>hello")


@pytest.mark.parametrize(("text", "size"), [("20MB", 20_000_000), ("5 kB", 5_000), ("7", 7), (9, 9), ("1G", 1_000_000_000)])
def test_sizes(text: str | int, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1 TB", "1.5MB"])
def test_invalid_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size such as 20MB"):
        read_size(text)
