"""kubectl's ways to change what is there: apply on the client and on the server, prune, edit, replace, roll out.

What it prints here is what it prints on the reference server. The last test is helm's way, in Python: a three-way merge.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from tests.clients.test_kubectl import COMMAND, Kubectl

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "%s", ports: [{containerPort: 80}]}
"""
CONFIG_MAP = """---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, labels: {part: demo}}
data: {a: "%s"}
"""

needs_kubectl = pytest.mark.skipif(not COMMAND, reason="there is no kubectl on PATH or in FAKEKUBE_KUBECTL")


@pytest.fixture
def kubectl(fakekube: Cluster, tmp_path: Path) -> Kubectl:
    return Kubectl(fakekube, tmp_path)


def editor(folder: Path, script: str) -> str:
    """An editor that runs a shell script on the file."""
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@needs_kubectl
def test_migration_from_client_side_to_server_side_apply(kubectl: Kubectl) -> None:
    assert kubectl("apply -f -", DEPLOYMENT % (2, "nginx:1")) == "deployment.apps/web created\n"
    assert kubectl("apply -f -", DEPLOYMENT % (3, "nginx:1")) == "deployment.apps/web configured\n"
    assert kubectl("apply --server-side -f -", DEPLOYMENT % (3, "nginx:1")) == "deployment.apps/web serverside-applied\n"
    entries = kubectl.json("get deployment web --show-managed-fields")["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in entries if entry["operation"] == "Apply"] == [
        ("kubectl-last-applied", "Apply"),
        ("kubectl", "Apply"),
    ]
    kubectl("apply --server-side -f -", DEPLOYMENT % (4, "nginx:2"))
    refused = kubectl.fails("apply --server-side --field-manager=other -f -", DEPLOYMENT % (5, "nginx:2"))
    assert 'conflict with "kubectl": .spec.replicas' in refused
    assert "--force-conflicts" in refused
    difference = kubectl.run("diff --server-side --field-manager=other --force-conflicts -f -", DEPLOYMENT % (5, "nginx:2"))
    assert difference.returncode == 1
    assert "-  replicas: 4\n+  replicas: 5\n" in difference.stdout
    kubectl("apply --server-side --field-manager=other --force-conflicts -f -", DEPLOYMENT % (5, "nginx:2"))
    assert "conflict" in kubectl.fails("apply --server-side -f -", DEPLOYMENT % (4, "nginx:2"))


@needs_kubectl
def test_prune(kubectl: Kubectl) -> None:
    both = CONFIG_MAP % ("one", "1") + CONFIG_MAP % ("two", "1")
    kubectl("apply -f -", both)
    pruned = kubectl("apply --prune -l part=demo --prune-allowlist=core/v1/ConfigMap -f -", CONFIG_MAP % ("one", "2"))
    assert pruned == "configmap/one configured\nconfigmap/two pruned\n"
    assert kubectl("get configmaps -l part=demo -o name") == "configmap/one\n"


@needs_kubectl
@pytest.mark.parametrize("how", ["", "--server-side"])
def test_prune_by_apply_set(kubectl: Kubectl, how: str) -> None:
    line = f"apply {how} --namespace=default --prune --applyset=secret/set -f -"
    kubectl(line, CONFIG_MAP % ("one", "1") + CONFIG_MAP % ("two", "1"), KUBECTL_APPLYSET="true")
    assert "configmap/two pruned" in kubectl(line, CONFIG_MAP % ("one", "1"), KUBECTL_APPLYSET="true")
    assert kubectl("get configmaps -l part=demo -o name") == "configmap/one\n"
    annotations = kubectl.json("get secret set")["metadata"]["annotations"]
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap"


@needs_kubectl
def test_view_and_set_last_applied(kubectl: Kubectl) -> None:
    kubectl("create -f -", CONFIG_MAP % ("one", "1"))
    assert kubectl("apply view-last-applied configmap one") == ""
    assert kubectl("apply set-last-applied --create-annotation -f -", CONFIG_MAP % ("one", "1")) == "configmap/one configured\n"
    assert 'a: "1"' in kubectl("apply view-last-applied configmap one")
    changed = (CONFIG_MAP % ("one", "1")).replace('a: "1"', 'b: "2"')
    kubectl("apply -f -", changed)
    assert kubectl.json("get configmap one")["data"] == {"b": "2"}


@needs_kubectl
def test_edit_objects_and_last_applied(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("apply -f -", DEPLOYMENT % (2, "nginx:1"))
    good = editor(tmp_path, "sed -i 's/replicas: 2/replicas: 6/' \"$1\"")
    assert kubectl("edit deployment web", KUBE_EDITOR=good) == "deployment.apps/web edited\n"
    bad = editor(tmp_path, "grep -q 'not valid' \"$1\" || sed -i 's/replicas: 6/replicas: -6/' \"$1\"")
    refused = kubectl.run("edit deployment web", KUBE_EDITOR=bad)
    assert refused.returncode == 1
    assert 'deployments.apps "web" is invalid' in refused.stderr
    assert kubectl.run("edit deployment web", KUBE_EDITOR="true").stderr == "Edit cancelled, no changes made.\n"
    assert kubectl.json("get deployment web")["spec"]["replicas"] == 6


@needs_kubectl
def test_scale_set_annotate_label_and_replace(kubectl: Kubectl, fakekube: Cluster) -> None:
    kubectl("apply -f -", DEPLOYMENT % (2, "nginx:1"))
    assert "expected replicas to be 3" in kubectl.fails("scale deployment web --replicas=8 --current-replicas=3").lower()
    assert kubectl("scale deployment web --replicas=8 --current-replicas=2") == "deployment.apps/web scaled\n"
    assert kubectl("set image deployment/web c=nginx:2") == "deployment.apps/web image updated\n"
    assert 'unable to find container named "nope"' in kubectl.fails("set image deployment/web nope=nginx:2")
    assert kubectl("set env deployment/web B=2") == "deployment.apps/web env updated\n"
    assert "B=2" in kubectl("set env deployment/web --list")
    assert kubectl("set resources deployment web --limits=cpu=200m") == "deployment.apps/web resource requirements updated\n"
    assert kubectl("annotate deployment web n=1") == "deployment.apps/web annotated\n"
    assert kubectl("label deployment web app-") == "deployment.apps/web unlabeled\n"
    fakekube.settle()  # replace reads, then writes what it has read: a controller that writes between makes it a conflict
    assert kubectl("replace -f -", DEPLOYMENT % (1, "nginx:3")) == "deployment.apps/web replaced\n"
    assert "deleted" in kubectl("replace --force -f -", DEPLOYMENT % (1, "nginx:3"))


@needs_kubectl
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("""-p '{"spec":{"replicas":2}}'""", "deployment.apps/web patched (no change)\n"),
        ("""-p '{"spec":{"replicas":3}}'""", "deployment.apps/web patched\n"),
        ("""--type=merge -p '{"metadata":{"labels":{"x":"1"}}}'""", "deployment.apps/web patched\n"),
        ("""--type=json -p '[{"op":"replace","path":"/spec/replicas","value":3}]'""", "deployment.apps/web patched\n"),
        ("""--subresource=scale --type=merge -p '{"spec":{"replicas":3}}'""", "scale.autoscaling/web patched\n"),
        ("""--subresource=status --type=merge -p '{"status":{"replicas":3}}'""", "deployment.apps/web patched\n"),
    ],
)
def test_patch_types(kubectl: Kubectl, patch: str, said: str) -> None:
    kubectl("apply -f -", DEPLOYMENT % (2, "nginx:1"))
    assert kubectl(f"patch deployment web {patch}") == said


@needs_kubectl
def test_invalid_patches_are_rejected(kubectl: Kubectl) -> None:
    kubectl("apply -f -", DEPLOYMENT % (2, "nginx:1"))
    test = """patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":9}]'"""
    assert "the server rejected our request due to an error in our request" in kubectl.fails(test)
    emptied = """patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"c"}]}}}}'"""
    assert "spec.template.spec.containers: Required value" in kubectl.fails(emptied)


@needs_kubectl
def test_rollout_restart_pause_and_resume(kubectl: Kubectl) -> None:
    kubectl("apply -f -", DEPLOYMENT % (2, "nginx:1"))
    assert kubectl("rollout restart deployment web") == "deployment.apps/web restarted\n"
    assert kubectl("rollout pause deployment web") == "deployment.apps/web paused\n"
    assert "is already paused" in kubectl.fails("rollout pause deployment web")
    assert kubectl("rollout resume deployment web") == "deployment.apps/web resumed\n"
    assert "is not paused" in kubectl.fails("rollout resume deployment web")


# ---------------------------------------------------------------- helm


def three_way(original: Any, modified: Any, live: Any) -> Any:
    """A JSON merge patch that makes of `live` what `modified` says, and takes away what only `original` said."""
    patch: dict[str, Any] = {name: None for name in original if name not in modified and name in live}
    for name, value in modified.items():
        if isinstance(value, dict) and isinstance(live.get(name), dict):
            before = original.get(name)
            below = three_way(before if isinstance(before, dict) else {}, value, live[name])
            if below:
                patch[name] = below
        elif live.get(name) != value:
            patch[name] = value
    return patch


def test_three_way_merge_upgrade(fakekube: Cluster) -> None:
    def chart(**data: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "release", "namespace": "default"}, "data": data}

    first, second = chart(kept="1", changed="1", dropped="1"), chart(kept="1", changed="2", new="1")
    fakekube.create(copy.deepcopy(first))
    fakekube.patch("configmaps", "release", {"data": {"by-hand": "1"}}, namespace="default")
    live = fakekube.get("configmaps", "release", namespace="default")
    patch = three_way(first, second, live)
    assert patch == {"data": {"changed": "2", "new": "1", "dropped": None}}
    upgraded = fakekube.patch("configmaps", "release", patch, namespace="default")
    assert upgraded["data"] == {"kept": "1", "changed": "2", "new": "1", "by-hand": "1"}
    again = fakekube.patch("configmaps", "release", three_way(second, second, upgraded), namespace="default")
    assert again["metadata"]["resourceVersion"] == upgraded["metadata"]["resourceVersion"]
