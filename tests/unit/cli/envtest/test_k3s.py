"""`fakekube server` in place of `k3s server`: the flags and files that testcontainers' modules use."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from fakekube.cli.envtest.command_line import FlagError
from fakekube.cli.envtest.k3s import READY, Arguments, main, read_arguments
from fakekube.cli.envtest.kubectl import main as kubectl
from tests.benchmarks.sides import free_port

MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: loaded, namespace: default}}"


def test_defaults_equal_those_of_k3s() -> None:
    assert read_arguments([]) == Arguments()
    assert read_arguments(["--disable=traefik", "--no-deploy=traefik", "--snapshotter", "native"]) == Arguments()


def test_supported_k3s_flags() -> None:
    found = read_arguments([
        "--tls-san=a", "--tls-san", "b,c", "--https-listen-port", "7000", "-o", "/k", "-d", "/d", "--service-cidr=10.43.0.0/16",
        "--kube-apiserver-arg=feature-gates=A=true", "--kube-apiserver-arg", "anonymous-auth=false", "--disable-scheduler",
    ])  # fmt: skip
    assert found == Arguments(
        port=7000,
        kubeconfig=Path("/k"),
        data=Path("/d"),
        names=("a", "b", "c"),
        scheduler=False,
        feature_gates={"A": True},
        flags={"service_cluster_ip_range": "10.43.0.0/16", "anonymous_auth": False},
    )


def test_invalid_port_is_rejected() -> None:
    with pytest.raises(FlagError, match="https-listen-port"):
        read_arguments(["--https-listen-port=x"])


def test_unwritable_data_dir_is_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data-dir=/dev/null"]) == 1
    assert capsys.readouterr().err.startswith("fakekube server: error creating self-signed certificates: /dev/null")


def test_server_prints_ready_line_writes_kubeconfig_and_loads_manifests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifests = tmp_path / "server" / "manifests"
    manifests.mkdir(parents=True)
    (manifests / "map.yaml").write_text(MAP)
    port, path = free_port(), tmp_path / "etc" / "k3s.yaml"
    command = [
        sys.executable,
        "-m",
        "fakekube",
        "server",
        "--disable=traefik",
        "--tls-san=example.test",
        f"--data-dir={tmp_path}",
    ]
    command += [f"--https-listen-port={port}", f"--write-kubeconfig={path}", "--bind-address=127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{READY}\n"
        cluster = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
        assert cluster["server"] == f"https://127.0.0.1:{port}"
        certificate = x509.load_pem_x509_certificate((tmp_path / "server/tls/apiserver.crt").read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert "example.test" in names.get_values_for_type(x509.DNSName)
        assert kubectl(["get", "cm", "-o", "name", f"--kubeconfig={path}"]) == 0
        assert "configmap/loaded" in capsys.readouterr().out.splitlines()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
