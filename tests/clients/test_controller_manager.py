"""A real kube-controller-manager takes the place of ours, where there is one: FAKEKUBE_KUBE_CONTROLLER_MANAGER is the command."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fakekube import Cluster

COMMAND = shlex.split(os.environ.get("FAKEKUBE_KUBE_CONTROLLER_MANAGER", ""))

pytestmark = pytest.mark.skipif(not COMMAND, reason="FAKEKUBE_KUBE_CONTROLLER_MANAGER names no kube-controller-manager")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (tmp_path / "sa.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    with Cluster(tls=True, controllers="kubelet") as cluster, (tmp_path / "log").open("w") as log:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        process = subprocess.Popen(
            [
                *COMMAND,
                f"--kubeconfig={tmp_path / 'kubeconfig'}",
                "--leader-elect=false",
                "--secure-port=0",
                f"--service-account-private-key-file={tmp_path / 'sa.key'}",
            ],
            stdout=log,
            stderr=log,
        )
        yield cluster
        process.terminate()
        process.wait(60)


def test_kube_controller_manager_runs_a_cluster(cluster: Cluster) -> None:
    cluster.wait_for("serviceaccounts", "default", namespace="default", timeout=60)
    owner = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "owned", "ownerReferences": [reference]}})
    cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}},
            },
        }
    )
    cluster.wait_for("deployments", "web", until=lambda found: found.get("status", {}).get("replicas") == 2, timeout=60)
    cluster.delete("configmaps", "owner")
    cluster.wait_for("secrets", "owned", gone=True, timeout=60)
