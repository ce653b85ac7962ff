"""kubectl works on a cluster: what people type, with the words that they read.

Needs a kubectl: on PATH, or the command that FAKEKUBE_KUBECTL names. Each test is one user's session with a fresh
cluster, in its namespace `default`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster

COMMAND = shlex.split(os.environ.get("FAKEKUBE_KUBECTL", "")) or ([found] if (found := shutil.which("kubectl")) else [])
TIMEOUT = 60

pytestmark = pytest.mark.skipif(not COMMAND, reason="there is no kubectl on PATH or in FAKEKUBE_KUBECTL")

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {level: "%s"}
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {ports: [{port: 80}], selector: {app: web}}
"""


class Kubectl:
    """kubectl with the kubeconfig of one cluster."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(cluster.kubeconfig)}
        self.environment["GOGC"] = "off"  # a fourth of what a short command costs

    def run(self, line: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *shlex.split(line)], input=stdin, env={**self.environment, **environment}, text=True,
            capture_output=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip

    def __call__(self, line: str, stdin: str = "", **environment: str) -> str:
        """What a command prints that must succeed."""
        done = self.run(line, stdin, **environment)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    def json(self, line: str) -> Any:
        return json.loads(self(f"{line} -o json"))

    def fails(self, line: str, stdin: str = "") -> str:
        """What a command complains about that must not succeed."""
        done = self.run(line, stdin)
        assert done.returncode != 0, (line, done.stdout)
        return done.stderr

    def start(self, line: str) -> subprocess.Popen[str]:
        """A command that goes on, to be read line by line."""
        return subprocess.Popen([*COMMAND, *shlex.split(line)], env=self.environment, text=True, stdout=subprocess.PIPE)


@pytest.fixture
def kubectl(fakekube: Cluster, tmp_path: Path) -> Kubectl:
    return Kubectl(fakekube, tmp_path)


@pytest.fixture
def started(kubectl: Kubectl) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts commands that end with the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(line: str) -> subprocess.Popen[str]:
        processes.append(kubectl.start(line))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=TIMEOUT)


def test_create_and_get(kubectl: Kubectl) -> None:
    assert kubectl("create deployment web --image=nginx --replicas=2") == "deployment.apps/web created\n"
    assert "successfully rolled out" in kubectl("rollout status deployment web --timeout=20s")
    header, row = kubectl("get deployments -o wide").splitlines()
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert row.split()[:4] == ["web", "2/2", "2", "2"]
    assert row.split()[5:] == ["nginx", "nginx", "app=web"]
    assert kubectl.json("get deployment web")["spec"]["replicas"] == 2
    assert "replicas: 2" in kubectl("get deployment web -o yaml").split("spec:")[1]
    assert kubectl("get deploy -o name") == "deployment.apps/web\n"
    assert kubectl("get deploy web -o jsonpath={.metadata.name}") == "web"
    assert "Replicas:               2 desired" in kubectl("describe deployment web")
    assert 'deployments.apps "gone" not found' in kubectl.fails("get deploy gone")
    assert "the server doesn't have a resource type" in kubectl.fails("get nothings")
    assert "already exists" in kubectl.fails("create deployment web --image=nginx")


def test_patch_edit_label_and_annotate(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create configmap settings --from-literal=a=1")
    kubectl("""patch configmap settings -p '{"data":{"b":"2"}}'""")
    kubectl("""patch configmap settings --type merge -p '{"data":{"b":null,"c":"3"}}'""")
    kubectl("""patch configmap settings --type json -p '[{"op":"replace","path":"/data/a","value":"9"}]'""")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/c: "3"/c: "4"/\' "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    assert kubectl("edit configmap settings", KUBE_EDITOR=str(editor)) == "configmap/settings edited\n"
    assert kubectl.json("get configmap settings")["data"] == {"a": "9", "c": "4"}
    kubectl("label configmap settings tier=front")
    assert "already has a value (front)" in kubectl.fails("label configmap settings tier=back")
    kubectl("label --overwrite configmap settings tier=back")
    kubectl("annotate configmap settings note=hello")
    assert kubectl("get configmaps -l tier=back -o name") == "configmap/settings\n"
    assert kubectl.json("get configmap settings")["metadata"]["annotations"] == {"note": "hello"}


def test_apply(kubectl: Kubectl) -> None:
    first, second = MANIFEST % "1", MANIFEST % "2"
    assert kubectl("apply -f -", first) == "configmap/settings created\nservice/front created\n"
    assert kubectl("apply -f -", first) == "configmap/settings unchanged\nservice/front unchanged\n"
    difference = kubectl.run("diff -f -", second)
    assert difference.returncode == 1
    assert '+  level: "2"' in difference.stdout
    assert kubectl("apply -f -", second) == "configmap/settings configured\nservice/front unchanged\n"
    assert kubectl("delete -f -", second).count("deleted") == 2


def test_server_side_apply(kubectl: Kubectl) -> None:
    text = MANIFEST.split("---", maxsplit=1)[0]
    assert kubectl("apply --server-side -f -", text % "1") == "configmap/settings serverside-applied\n"
    refused = kubectl.fails("apply --server-side --field-manager=other -f -", text % "2")
    assert 'conflict with "kubectl": .data.level' in refused
    kubectl("apply --server-side --field-manager=other --force-conflicts -f -", text % "2")
    shown = kubectl.json("get configmap settings --show-managed-fields")
    assert shown["data"] == {"level": "2"}
    assert [entry["manager"] for entry in shown["metadata"]["managedFields"]] == ["other"]  # who owns nothing is not listed
    assert "unknown field" in kubectl.fails("apply -f -", text.replace("\ndata:", "\ndat:") % "1")


def test_watch_wait_and_delete(kubectl: Kubectl, started: Callable[[str], subprocess.Popen[str]]) -> None:
    kubectl("create configmap settings")
    watch = started("get configmap settings --watch --output-watch-events --no-headers")
    assert watch.stdout is not None
    assert watch.stdout.readline().split()[:3] == ["ADDED", "settings", "0"]
    kubectl("label configmap settings a=b")
    assert watch.stdout.readline().split()[:2] == ["MODIFIED", "settings"]
    kubectl("wait configmap/settings --for=jsonpath={.metadata.labels.a}=b --timeout=20s")
    waiting = started("wait configmap/settings --for=delete --timeout=20s")
    assert kubectl("delete configmap settings --wait").startswith('configmap "settings" deleted')
    assert watch.stdout.readline().split()[:2] == ["DELETED", "settings"]
    assert waiting.wait(TIMEOUT) == 0


def test_scale_rollout_autoscale_and_expose(kubectl: Kubectl) -> None:
    kubectl("create deployment web --image=nginx")
    kubectl("scale deployment web --replicas=5")
    kubectl("set image deployment/web nginx=nginx:2")
    kubectl("rollout pause deployment web")
    kubectl("rollout resume deployment web")
    kubectl("rollout restart deployment web")
    kubectl("autoscale deployment web --min=1 --max=9")
    kubectl("expose deployment web --port=80")
    deployment = kubectl.json("get deployment web")
    assert deployment["spec"]["replicas"] == 5
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert "successfully rolled out" in kubectl("rollout status deployment web --timeout=20s")
    assert kubectl.json("get service web")["spec"]["selector"] == {"app": "web"}
    assert "deployment.apps/web" in kubectl("get all -o name").splitlines()


def test_pods_stay_pending_without_nodes(kubectl: Kubectl) -> None:
    kubectl("delete nodes --all")
    assert kubectl("run shell --image=busybox --port=80") == "pod/shell created\n"
    assert kubectl("get pods").splitlines()[1].split()[:3] == ["shell", "0/1", "Pending"]
    assert "Status:           Pending" in kubectl("describe pod shell")
    assert kubectl("logs shell") == ""
    assert "container nothing is not valid for pod shell" in kubectl.fails("logs shell --container nothing")
    assert "pod shell does not have a host assigned" in kubectl.fails("exec shell -- ls")
    assert "pod is not running" in kubectl.fails("port-forward shell 18080:80")
    assert "metrics not available yet" in kubectl.fails("top pods")
    assert kubectl("delete pod shell").startswith('pod "shell" deleted')


def test_run_wait_cordon_and_drain(kubectl: Kubectl) -> None:
    assert kubectl("get nodes").splitlines()[1].split()[:2] == ["node-1", "Ready"]
    assert kubectl("run shell --image=busybox") == "pod/shell created\n"
    assert "condition met" in kubectl("wait pod/shell --for=condition=Ready --timeout=10s")
    assert kubectl("get pods").splitlines()[1].split()[:3] == ["shell", "1/1", "Running"]
    assert "Successfully assigned default/shell to node-1" in kubectl("describe pod shell")
    assert kubectl("cordon node-1") == "node/node-1 cordoned\n"
    assert "pod/shell evicted" in kubectl("drain node-1 --force --ignore-daemonsets")


def test_auth_can_i_and_create_token(kubectl: Kubectl) -> None:
    kubectl("create serviceaccount bob")
    assert kubectl("create token bob").count(".") == 2
    kubectl("create role reader --verb=get --resource=pods")
    kubectl("create rolebinding bob --role=reader --serviceaccount=default:bob")
    bob = "--as=system:serviceaccount:default:bob"
    assert kubectl(f"auth can-i get pods {bob}") == "yes\n"
    assert kubectl.run(f"auth can-i delete pods {bob}").stdout == "no\n"
    rules = [line.split() for line in kubectl(f"auth can-i --list {bob}").splitlines()]
    assert ["pods", "[]", "[]", "[get]"] in rules
    assert ["*.*", "[]", "[]", "[*]"] in [line.split() for line in kubectl("auth can-i --list").splitlines()]


def test_api_resources_version_and_explain(kubectl: Kubectl) -> None:
    assert "deployments" in kubectl("api-resources --api-group=apps -o name").replace(".apps", "").splitlines()
    assert {"v1", "apps/v1", "rbac.authorization.k8s.io/v1"} <= set(kubectl("api-versions").splitlines())
    assert "Server Version: v1.37" in kubectl("version")
    assert "is running at" in kubectl("cluster-info")
    explained = kubectl("explain pods.spec.containers.ports")
    assert "containerPort\t<integer> -required-" in explained
    assert kubectl("get --raw /readyz") == "ok"


def test_get_events_and_delete_namespace(kubectl: Kubectl) -> None:
    kubectl("create namespace team")
    kubectl("create configmap settings --namespace team")
    kubectl("create -f -", json.dumps({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "first", "namespace": "team"}, "reason": "Started",
        "message": "it runs", "type": "Normal", "involvedObject": {"kind": "Pod", "name": "shell", "namespace": "team"},
    }))  # fmt: skip
    assert kubectl("get events --namespace team --no-headers").split()[1:] == ["Normal", "Started", "pod/shell", "it", "runs"]
    assert kubectl("delete namespace team") == 'namespace "team" deleted\n'
    assert 'namespaces "team" not found' in kubectl.fails("get namespace team")
