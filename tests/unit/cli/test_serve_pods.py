"""`fakekube serve`: files of images and rules for pods, images that do not exist, system pods, the access log, the pace."""

from __future__ import annotations

import io
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fakekube.cli import _cluster
from fakekube.cli.arguments import Options, UsageError, parse
from fakekube.cli.logs import with_access_log


def options(tmp_path: Path, *words: str) -> Options:
    return parse(["serve", "--kubeconfig", str(tmp_path / "kubeconfig"), *words])


def pod(name: str, image: str) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_files_of_images_and_rules_apply(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text("- name: ghcr.io/me/app\n  programs: {app: {stdout: 'hi\\n', code: 2}}\n")
    (tmp_path / "rules.yaml").write_text("on: {name: bad}\ndo: {exits: {code: 4}}\n")
    words = ("--images", str(tmp_path / "images.yaml"), "--rules", str(tmp_path / "rules.yaml"), "--missing-image", "no*")
    with _cluster(options(tmp_path, *words)) as cluster:
        for name, image in (("app", "ghcr.io/me/app:1"), ("bad", "x:1"), ("none", "nothing:1")):
            cluster.create(pod(name, image))
        cluster.settle()
        states = {one["metadata"]["name"]: one["status"]["containerStatuses"][0]["state"] for one in cluster.list("pods")}
        assert states["app"]["terminated"]["exitCode"] == 2
        assert states["bad"]["terminated"]["exitCode"] == 4
        assert states["none"]["waiting"]["reason"] == "ImagePullBackOff"
        assert cluster.pace == 0.05


@pytest.mark.parametrize(
    ("flag", "text", "reason"),
    [
        ("--images", "[1]", "item 1 is not an object"),
        ("--images", "{name: a, programs: {p: {code: 999}}}", "item 1: stdout and stderr of a program are strings"),
        ("--images", "{name: a, colour: red}", "item 1: unknown member 'colour'"),
        ("--rules", "{on: {name: a}}", "item 1: member 'do' is required"),
        ("--rules", "- {on: {name: a}, do: {sing: {}}}", "item 1: unknown method 'sing'"),
    ],
)
def test_files_that_are_invalid_are_errors_in_words(tmp_path: Path, flag: str, text: str, reason: str) -> None:
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(UsageError, match=re.escape(reason)), _cluster(options(tmp_path, flag, str(tmp_path / "file.yaml"))):
        pass


def test_system_pods_are_those_of_a_kind_cluster(tmp_path: Path) -> None:
    with _cluster(options(tmp_path, "--kube-system", "--pace", "0")) as cluster:
        names = {one["metadata"]["name"] for one in cluster.list("pods", namespace="kube-system")}
        assert {"etcd-node-1", "kube-apiserver-node-1", "kube-scheduler-node-1"} <= names
        assert cluster.get("deployments", "coredns", namespace="kube-system")["status"]["readyReplicas"] == 2
        assert cluster.get("endpoints", "kubernetes")["subsets"][0]["ports"][0]["port"] == 6443
        served_by = cluster.get("apiservices", "v1beta1.metrics.k8s.io")["spec"]["service"]["name"]
        assert cluster.get("endpoints", served_by, namespace="kube-system")["subsets"][0]["addresses"]


def test_a_claim_of_a_kind_cluster_waits_for_its_first_pod(tmp_path: Path) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    user = pod("user", "x:1")
    user["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    with _cluster(options(tmp_path, "--kube-system", "--pace", "0")) as cluster:
        cluster.create(claim)
        cluster.settle()
        waiting = cluster.get("persistentvolumeclaims", "data")
        assert (waiting["spec"]["storageClassName"], waiting["status"]["phase"]) == ("standard", "Pending")
        cluster.create(user)
        cluster.settle()
        assert cluster.get("persistentvolumeclaims", "data")["status"]["phase"] == "Bound"
        assert cluster.get("pods", "user")["status"]["phase"] == "Running"


def test_the_log_of_coredns_names_the_configuration_that_kubeadm_writes(tmp_path: Path) -> None:
    with _cluster(options(tmp_path, "--kube-system", "--pace", "0", "--nodes", "1")) as cluster:
        pods = f"{cluster.url}/api/v1/namespaces/kube-system/pods"
        name = next(
            one["metadata"]["name"] for one in cluster.list("pods", namespace="kube-system", label_selector="k8s-app=kube-dns")
        )
        with urllib.request.urlopen(f"{pods}/{name}/log?follow=true") as log:
            lines = [log.readline().decode().rstrip() for _ in range(4)]
        assert (lines[0], lines[2]) == (".:53", "CoreDNS-1.13.1")
        assert lines[1].startswith("[INFO] plugin/reload: Running configuration SHA512 = 1b226df7")


def test_system_services_have_the_addresses_of_a_kind_cluster(tmp_path: Path) -> None:
    with _cluster(options(tmp_path, "--kube-system", "--pace", "0", "--profile", "apiserver", "--nodes", "1")) as cluster:
        assert cluster.get("services", "kube-dns", namespace="kube-system")["spec"]["clusterIP"] == "10.96.0.10"
        assert cluster.get("services", "kubernetes")["spec"]["clusterIP"] == "10.96.0.1"
    words = [
        "--kube-system",
        "--pace",
        "0",
        "--profile",
        "apiserver",
        "--nodes",
        "1",
        "--service-cluster-ip-range",
        "10.7.0.0/24",
    ]
    with _cluster(options(tmp_path, *words)) as cluster:
        assert cluster.get("services", "kube-dns", namespace="kube-system")["spec"]["clusterIP"].startswith("10.7.0.")


def test_system_deployments_leave_a_node_that_is_drained(tmp_path: Path) -> None:
    with _cluster(options(tmp_path, "--kube-system", "--pace", "0", "--nodes", "2")) as cluster:
        cluster.patch("nodes", "node-2", {"spec": {"unschedulable": True}})
        for one in cluster.list("pods", namespace="kube-system"):
            if any(owner["kind"] == "ReplicaSet" for owner in one["metadata"].get("ownerReferences", ())):
                cluster.delete("pods", one["metadata"]["name"], namespace="kube-system")
        cluster.settle()
        found = [one for one in cluster.list("pods", namespace="kube-system") if one["spec"].get("nodeName") == "node-2"]
        assert {one["metadata"]["ownerReferences"][0]["kind"] for one in found} == {"DaemonSet"}


def test_run_has_the_options_about_pods(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("on: {name: bad}\ndo: {exits: {code: 4}}\n")
    words = ["run", "--pace", "70ms", "--rules", str(tmp_path / "rules.yaml"), "--kube-system", "--", "true"]
    with _cluster(parse(words)) as cluster:
        assert cluster.pace == 0.07
        cluster.clock.hold()
        cluster.create(pod("bad", "x:1"))
        cluster.settle()
        assert cluster.get("pods", "bad")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4
        assert cluster.list("pods", namespace="kube-system")


def test_a_cluster_without_metrics_has_no_metrics_server(tmp_path: Path) -> None:
    with _cluster(options(tmp_path, "--kube-system", "--pace", "0", "--controllers=*,-metrics-server")) as cluster:
        names = {one["metadata"]["name"] for one in cluster.list("deployments", namespace="kube-system")}
        assert names == {"coredns"}


def test_the_access_log_has_a_line_for_each_request() -> None:
    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("404 Not Found", [])
        return [b""]

    output = io.StringIO()
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api\n", "QUERY_STRING": "a=b", "HTTP_USER_AGENT": "kubectl/v1 x"}
    with_access_log(application, output)(environ, lambda line, headers: None)
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} GET /api\\n\?a=b 404 kubectl/v1 \d+\.\d ms\n", output.getvalue())


@pytest.mark.parametrize(("words", "kept", "is_open"), [((), 1, True), (("--keep-requests=0", "--keep-changes=false"), 0, False)])
def test_requests_and_changes_are_kept_as_the_options_say(
    tmp_path: Path, words: tuple[str, ...], kept: int, is_open: bool
) -> None:
    with _cluster(options(tmp_path, "--profile", "apiserver", *words)) as cluster:
        with urllib.request.urlopen(f"{cluster.url}/version"):
            pass
        assert len(cluster.requests.where(verb="get")) == kept
        assert cluster._observe().journal.is_open is is_open
