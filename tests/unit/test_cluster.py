"""The public methods of a cluster."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakekube import ApiError, Cluster, ManifestError, UnknownResource


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as started:
        yield started


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize("name", ["deployments", "deployment", "deploy", "Deployment", "deployments.apps"])
def test_resource_is_found_by_plural_singular_kind_and_short_name(name: str, cluster: Cluster) -> None:
    assert cluster.list(name) == []


def test_unknown_resource_raises_unknown_resource(cluster: Cluster) -> None:
    with pytest.raises(UnknownResource, match="gadgets"):
        cluster.list("gadgets")


def test_returned_objects_have_kind_and_api_version(cluster: Cluster) -> None:
    cluster.create(config_map("a", k="v"))
    assert cluster.get("cm", "a")["kind"] == "ConfigMap"
    listed = cluster.list("cm", namespace="default", field_selector="metadata.name=a")
    assert [(item["apiVersion"], item["data"]) for item in listed] == [("v1", {"k": "v"})]


def test_rejected_request_raises_api_error(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as caught:
        cluster.get("pods", "absent")
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
    assert str(caught.value) == 'pods "absent" not found'


def test_load_accepts_folders_text_objects_and_lists(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.yaml").write_text("{kind: ConfigMap, apiVersion: v1, metadata: {name: one, namespace: late}}")
    (tmp_path / "two.json").write_text('{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "late"}}')
    text = "kind: List\napiVersion: v1\nitems:\n- {kind: ConfigMap, apiVersion: v1, metadata: {name: three}}\n---\n"
    loaded = cluster.load(tmp_path, text, config_map("four"), [config_map("five")])
    assert [obj["metadata"]["name"] for obj in loaded] == ["late", "one", "three", "four", "five"]
    cluster.load(tmp_path)  # applied: once more changes nothing


def test_manifests_are_parsed_by_the_yaml_rules_of_kubernetes(cluster: Cluster) -> None:
    text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: one}\ndata: {day: 2020-01-01, sign: =}\n"
    assert cluster.load(text)[0]["data"] == {"day": "2020-01-01", "sign": "="}


def test_missing_manifest_raises_manifest_error(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="No such file"):
        cluster.load(tmp_path / "absent.yaml")


def test_wait_for_sees_changes_of_another_thread(cluster: Cluster) -> None:
    timer = threading.Timer(0.01, lambda: cluster.create(config_map("late", k="v")))
    timer.start()
    found = cluster.wait_for("cm", "late", until=lambda obj: obj["data"] == {"k": "v"}, timeout=60)
    assert found is not None
    timer.join()


def test_update_with_stale_resource_version_conflicts(cluster: Cluster) -> None:
    made = cluster.create(config_map("one", k="v"))
    assert cluster.update({**made, "data": {"a": "1"}})["data"] == {"a": "1"}
    with pytest.raises(ApiError) as refused:
        cluster.update({**made, "data": {"a": "2"}})
    assert refused.value.code == 409
    del made["metadata"]["resourceVersion"]
    assert cluster.update(made)["data"] == {"k": "v"}


def test_wait_for_raises_timeout_error(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match="cm never does not exist after 0"):
        cluster.wait_for("cm", "never", timeout=0)


def test_snapshot_can_be_restored_repeatedly(cluster: Cluster) -> None:
    cluster.create(config_map("a", k="1"))
    saved = cluster.snapshot()
    for _ in range(2):
        cluster.patch("cm", "a", {"data": {"k": "2"}})
        cluster.create(config_map("b"))
        cluster.restore(saved)
        assert cluster.get("cm", "a")["data"] == {"k": "1"}
        assert [cm["metadata"]["name"] for cm in cluster.list("cm", namespace="default")] == ["a", "kube-root-ca.crt"]


def test_a_fork_is_independent(cluster: Cluster) -> None:
    cluster.create(config_map("a", k="1"))
    with cluster.fork() as twin:
        twin.patch("cm", "a", {"data": {"k": "2"}})
        cluster.delete("cm", "a")
        assert twin.get("cm", "a")["data"] == {"k": "2"}


def test_clusters_are_isolated() -> None:
    with Cluster() as one, Cluster() as two:
        one.create(config_map("mine"))
        assert two.list("cm", namespace="default", field_selector="metadata.name=mine") == []


def test_namespace_gets_default_objects_and_terminates(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.settle()
    assert [account["metadata"]["name"] for account in cluster.list("sa", namespace="team")] == ["default"]
    assert cluster.get("cm", "kube-root-ca.crt", namespace="team")
    cluster.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "finalizers": ["example.com/hold"]}}, namespace="team"
    )
    cluster.delete("namespaces", "team")
    cluster.settle()
    conditions = {c["type"]: c for c in cluster.get("namespaces", "team")["status"]["conditions"]}
    assert conditions["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    cluster.patch("secrets", "s", {"metadata": {"finalizers": None}}, namespace="team")
    cluster.settle()
    cluster.wait_for("namespaces", "team", gone=True)


def test_apiserver_profile_has_no_controllers() -> None:
    with Cluster(profile="apiserver") as bare:
        assert bare.list("serviceaccounts") == []
        bare.settle()
        assert bare.list("serviceaccounts") == []


def test_compact_makes_old_resource_versions_return_410(cluster: Cluster) -> None:
    revision = cluster.create(config_map("a"))["metadata"]["resourceVersion"]
    cluster.patch("cm", "a", {"data": {"k": "v"}})
    cluster.compact()
    with pytest.raises(ApiError) as caught:
        cluster.call("GET", "/api/v1/configmaps", None, {"resourceVersion": revision, "resourceVersionMatch": "Exact"})
    assert caught.value.code == 410


def test_stop_is_idempotent_and_needs_no_start() -> None:
    cluster = Cluster()
    with pytest.raises(RuntimeError, match="not started"):
        _ = cluster.url
    cluster.stop()
    cluster.stop()


def test_bootstrap_objects_are_in_storage_form() -> None:
    backend = Cluster(profile="apiserver")._machinery.backend
    seen = set()
    for resource in backend.registry:
        for record in backend.store.bucket(resource.bucket).page().records:
            final = resource.to_stored_form(record.value.object)
            assert json.dumps(record.value.object) == json.dumps(final), record.key  # the order of members included
            seen.add((resource.bucket, record.key))
    assert len(seen) > 150
