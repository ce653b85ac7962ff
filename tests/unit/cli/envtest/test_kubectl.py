"""The replacement for kubectl: what it prints, its exit codes, and the kubeconfigs that it writes."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

import fakekube
from fakekube.cli.envtest.kubectl import main

Kubectl = Callable[..., tuple[int, str, str]]

MAP = '{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: "%s"}}'


@pytest.fixture(scope="module")
def cluster() -> Iterator[fakekube.Cluster]:
    with fakekube.Cluster(profile="apiserver", tls=True) as found:
        yield found


@pytest.fixture
def kubectl(cluster: fakekube.Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Kubectl]:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        found = capsys.readouterr()
        return code, found.out, found.err

    yield call
    for obj in cluster.list("configmaps", namespace="default"):
        cluster.delete("configmaps", obj["metadata"]["name"])


def test_get_prints_tables(kubectl: Kubectl, cluster: fakekube.Cluster) -> None:
    code, out, _ = kubectl("get", "ns", "default", "--request-timeout=5s")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [["NAME", "STATUS", "AGE"], ["default", "Active", out.split()[-1]]]
    assert kubectl("get", "pods") == (0, "", "No resources found in default namespace.\n")
    assert kubectl("get", "pods", "-A") == (0, "", "No resources found\n")
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "labels": {"a": "1"}}})
    assert kubectl("get", "cm", "-l", "a=1", "-A", "--no-headers")[1].split()[:2] == ["default", "web"]
    assert kubectl("get", "configmap/web", "-o", "name") == (0, "configmap/web\n", "")
    assert kubectl("get", "cm,ns", "-o=name")[1].splitlines()[:2] == ["configmap/web", "namespace/default"]


def test_cells_of_tables_do_not_control_the_terminal(kubectl: Kubectl, cluster: fakekube.Cluster) -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "red \x1b[31m\n::error::more"}
    cluster.create({**event, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}})
    assert kubectl("get", "events", "--no-headers")[1].endswith("   red ^[[31m...\n")


def test_get_prints_objects(kubectl: Kubectl, cluster: fakekube.Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "1"}})
    assert json.loads(kubectl("get", "cm", "web", "-o", "json")[1])["data"] == {"a": "1"}
    assert yaml.safe_load(kubectl("get", "cm", "web", "-oyaml")[1])["kind"] == "ConfigMap"
    assert kubectl("get", "cm", "web", "-o", "jsonpath={.data.a}") == (0, "1", "")


def test_error_messages_equal_those_of_kubectl(kubectl: Kubectl) -> None:
    assert kubectl("get", "ns", "x") == (1, "", 'Error from server (NotFound): namespaces "x" not found\n')
    assert kubectl("get", "ns", "x", "--ignore-not-found") == (0, "", "")
    assert kubectl("get", "things") == (1, "", 'error: the server doesn\'t have a resource type "things"\n')
    assert kubectl("get", "ns", "--server", "https://127.0.0.1:1")[2].startswith("Unable to connect to the server: ")
    code, _, err = kubectl("top", "pods")
    assert code == 1
    assert err.startswith('error: unknown command "top"')


def test_apply_create_and_delete(kubectl: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    for value, done in (("1", "created"), ("1", "unchanged"), ("2", "configured")):
        file.write_text(MAP % value)
        assert kubectl("apply", "-f", str(file)) == (0, f"configmap/web {done}\n", "")
    assert kubectl("apply", "--server-side", f"--filename={file}") == (0, "configmap/web serverside-applied\n", "")
    assert kubectl("create", "-f", str(file))[2] == 'Error from server (AlreadyExists): configmaps "web" already exists\n'
    assert kubectl("delete", "-f", str(file)) == (0, 'configmap "web" deleted from default namespace\n', "")
    assert kubectl("delete", "cm", "web", "--ignore-not-found") == (0, "", "")
    file.write_text("{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}}")
    assert 'no matches for kind "Thing" in version "example.com/v1"' in kubectl("create", "-f", str(file))[2]


def test_version(kubectl: Kubectl) -> None:
    assert kubectl("version") == (0, "Client Version: v1.37.2\nServer Version: v1.37.2\n", "")
    assert kubectl("version", "--client") == (0, "Client Version: v1.37.2\n", "")
    assert json.loads(kubectl("version", "-o", "json")[1])["serverVersion"]["gitVersion"] == "v1.37.2"


def test_config_builds_a_kubeconfig(kubectl: Kubectl, tmp_path: Path) -> None:
    path, certificate = tmp_path / "folder" / "config", tmp_path / "ca.crt"
    certificate.write_text("PEM")

    def config(*arguments: str) -> str:
        code, out, err = kubectl("config", *arguments, f"--kubeconfig={path}")
        assert (code, err) == (0, "")
        return str(out)

    assert (
        config("set-cluster", "c", "--server=https://127.0.0.1:1", f"--certificate-authority={certificate}")
        == 'Cluster "c" set.\n'
    )
    assert config("set-credentials", "u", "--client-key", str(certificate), "--embed-certs") == 'User "u" set.\n'
    assert config("set-context", "x", "--cluster=c", "--user=u") == 'Context "x" created.\n'
    assert config("set-context", "x", "--namespace=n") == 'Context "x" modified.\n'
    assert config("use-context", "x") == 'Switched to context "x".\n'
    assert config("current-context") == "x\n"
    assert config("get-contexts", "-o", "name") == "x\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert yaml.safe_load(path.read_text()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": str(certificate)}}],
        "users": [{"name": "u", "user": {"client-key-data": "UEVN"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }
    assert "client-key-data: DATA+OMITTED" in config("view")
    config("unset", "contexts.x.namespace")
    config("unset", "users.u")
    config("unset", "current-context")
    found = yaml.safe_load(path.read_text())
    assert (found["users"], found["current-context"]) == ([], "")
    assert found["contexts"] == [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    assert kubectl("config", "current-context", f"--kubeconfig={path}") == (1, "", "error: current-context is not set\n")
    assert kubectl("config", "use-context", "y", f"--kubeconfig={path}")[2] == 'error: no context exists with the name: "y"\n'
