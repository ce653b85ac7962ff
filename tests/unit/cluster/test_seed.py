"""Equal twice: clusters with a seed, and normalised objects."""

from __future__ import annotations

import http.client
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakekube import Cluster
from fakekube.powers.export import as_yaml, normalise_objects

Object = dict[str, Any]


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def service(name: str) -> Object:
    spec = {"type": "NodePort", "selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def fill(cluster: Cluster) -> None:
    for name in ("web", "api"):
        cluster.create(deployment(name, 3))
        cluster.create(service(name))
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-", "namespace": "default"}})
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.settle()
    cluster.clock.advance(minutes=6)
    cluster.delete("deployments", "api")
    cluster.settle()
    cluster.clock.advance(seconds=10)  # a controller that met a conflict tries again
    cluster.settle()


def run(seed: int | None) -> tuple[bytes, list[str]]:
    with Cluster(seed=seed) as cluster:
        cluster.clock.hold()
        fill(cluster)
        return as_yaml(cluster.export()), [one["metadata"]["uid"] for one in cluster.list("pods")]


def test_two_runs_with_a_seed_are_equal_and_other_seeds_differ() -> None:
    first = run(7)
    assert run(7) == first
    assert run(8)[0] != first[0]
    assert len(set(first[1])) == 3


def test_controllers_come_to_rest_before_each_request_while_the_clock_is_held() -> None:
    found = []
    for _ in range(2):
        with Cluster(seed=7, nodes=3) as cluster:
            cluster.clock.hold()
            for name in ("a", "b", "c", "d"):
                cluster.create(deployment(name, 4))
                cluster.create(service(name))
            cluster.settle()
            pods = cluster.list("pods")
            events = [(one["metadata"]["resourceVersion"], one["metadata"]["name"]) for one in cluster.list("events")]
            found.append(
                ([(one["metadata"]["resourceVersion"], one["spec"]["nodeName"], one["status"]["podIP"]) for one in pods], events)
            )
    assert found[0] == found[1]


def test_events_of_a_fork_have_names_of_their_own() -> None:
    with Cluster() as cluster:
        cluster.clock.hold()
        cluster.create(deployment("a", 2))
        cluster.settle()
        known = {one["metadata"]["name"] for one in cluster.list("events")}
        with cluster.fork() as fork:
            for one in fork.list("pods"):
                fork.delete("pods", one["metadata"]["name"])
            fork.settle()
            reasons = [one["reason"] for one in fork.list("events") if one["metadata"]["name"] not in known]
    assert reasons.count("SuccessfulCreate") == reasons.count("Scheduled") == 2


def test_runs_of_two_processes_are_equal() -> None:
    code = "import sys; from tests.unit.cluster.test_seed import run; sys.stdout.buffer.write(run(3)[0])"
    root = Path(__file__).parents[3]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True).stdout
    assert found == run(3)[0]


def test_a_fork_takes_a_seed_of_its_own() -> None:
    with Cluster(profile="apiserver", seed=1) as cluster:
        names = []
        for fork in (cluster.fork(), cluster.fork(), cluster.fork(seed=2)):
            made = fork.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}}
            )
            names.append(made["metadata"]["name"])
    assert names[0] == names[1] != names[2]


def test_equal_requests_draw_different_values() -> None:
    with Cluster(profile="apiserver", seed=1) as cluster:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}}
        assert len({cluster.create(body)["metadata"]["uid"] for _ in range(20)}) == 20


def test_clusters_without_a_seed_are_normalised_to_equal_objects() -> None:
    found = []
    for _ in range(2):
        with Cluster() as cluster:
            cluster.clock.hold()
            fill(cluster)
            found.append((cluster.normalised(), cluster.normalised(kinds=["endpointslices", "endpoints", "pods"])))
    assert found[0] == found[1]


def test_endpoints_are_in_the_order_of_their_pods() -> None:
    def pod(uid: str, name: str, ip: str) -> Object:
        metadata = {"name": f"web-{name}", "generateName": "web-", "namespace": "default", "uid": uid}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"podIPs": [{"ip": ip}]}}

    def endpoint(given: Object) -> Object:
        return {"targetRef": {"uid": given["metadata"]["uid"], "name": given["metadata"]["name"]}}

    def normalised(one: Object, other: Object, *, turned: bool) -> list[Object]:
        addresses = [{"ip": given["status"]["podIPs"][0]["ip"], **endpoint(given)} for given in (one, other)]
        in_slice = [
            {"addresses": [address["ip"]], **endpoint(given)} for given, address in zip((one, other), addresses, strict=True)
        ]
        metadata = {"name": "web", "namespace": "default"}
        return normalise_objects([
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [{"addresses": addresses}]},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
             "endpoints": in_slice[::-1] if turned else in_slice},
            one, other,
        ])  # fmt: skip

    uids = [f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2)]
    one, other = pod(uids[0], "aaaaa", "10.244.0.9"), pod(uids[1], "bbbbb", "10.244.0.10")
    assert normalised(one, other, turned=False) == normalised(one, other, turned=True) == normalised(other, one, turned=True)


def test_references_have_the_name_of_what_they_refer_to() -> None:
    with Cluster() as cluster:
        cluster.clock.hold()
        fill(cluster)
        objects = cluster.normalised()
    by_kind = {kind: [one for one in objects if one["kind"] == kind] for kind in ("Pod", "ReplicaSet", "Service", "IPAddress")}
    pods = [one["metadata"]["name"] for one in by_kind["Pod"]]
    (replica_set,) = by_kind["ReplicaSet"]
    assert pods == [f"{replica_set['metadata']['name']}-generated-{number}" for number in (1, 2, 3)]
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in by_kind["Pod"]} == {replica_set["metadata"]["uid"]}
    assert {one["spec"]["clusterIP"] for one in by_kind["Service"]} == {one["metadata"]["name"] for one in by_kind["IPAddress"]}
    assert all(one["metadata"]["creationTimestamp"] == "time" for one in objects)
    assert all("managedFields" not in one["metadata"] for one in objects)
    assert {one["spec"]["ports"][0].get("nodePort") for one in by_kind["Service"]} == {None, "nodeport-1", "nodeport-2"}


def test_names_that_begin_with_a_generated_name_are_stable() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "replicas": 1, "template": template}
    job = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}}
    found = []
    for _ in range(2):
        with Cluster() as cluster:
            cluster.clock.hold()
            for group, kind, one in (
                ("apps/v1", "StatefulSet", spec),
                ("apps/v1", "Deployment", spec),
                ("batch/v1", "Job", {"template": job}),
            ):
                metadata = {"generateName": f"{kind.lower()}-", "namespace": "default"}
                cluster.create({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": one})
                cluster.settle()
            found.append(cluster.normalised(namespace="default"))
    assert found[0] == found[1]
    names = {one["metadata"]["name"].partition("-generated-1")[2] for one in found[0] if one["kind"] == "Pod"}
    assert {"-0", "-generated-1"} <= names


def test_export_over_http_normalises() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}})
        names = [one["metadata"]["name"] for one in cluster.normalised(kinds=["configmaps"])]
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
        connection.request("GET", "/fakekube/v1/export?normalised=true&kinds=configmaps")
        text = connection.getresponse().read().decode()
        connection.close()
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(text)] == names
    assert "a-generated-1" in names


def test_syrupy_compares_normalised_manifests(tmp_path: Path) -> None:
    pytest.importorskip("syrupy")
    from tests.nested_pytest import Project

    project = Project(tmp_path)
    project.write("pytest.ini", "[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    project.write(
        "test_golden.py",
        """
        from fakekube.cluster.testing.snapshots import ManifestExtension

        def test_golden(fakekube, snapshot):
            fakekube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}})
            assert fakekube.normalised(kinds=["configmaps"], namespace="default") == snapshot(extension_class=ManifestExtension)
        """,
    )
    assert project.run("-p", "syrupy", "--snapshot-update").parseoutcomes()["passed"] == 1
    (written,) = tmp_path.rglob("*.yaml")
    assert "a-generated-1" in written.read_text()
    assert project.run("-p", "syrupy").parseoutcomes()["passed"] == 1
