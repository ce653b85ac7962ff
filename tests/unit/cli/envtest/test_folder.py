"""The folder of replacements for envtest's binaries: what is in it, what the scripts say by themselves, and the pair at work as envtest starts it."""

from __future__ import annotations

import base64
import json
import re
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakekube.cli import main
from fakekube.cli.envtest.folder import BINARIES, default_folder, installed_folder, named_release, write_folder
from fakekube.net.certificates import Authority
from tests.benchmarks.sides import free_port


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("stand ins")  # with a space, as home folders have it
    write_folder(found, version="v1.36.3")
    return found


def output(*command: object) -> str:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def test_write_folder_creates_exactly_the_three_binaries(folder: Path) -> None:
    write_folder(folder, version="v1.36.3")
    assert sorted(path.name for path in folder.iterdir()) == sorted(BINARIES)


def test_etcd_help_lists_unsafe_no_fsync(folder: Path) -> None:
    assert re.search(r"(?m)^\s*--unsafe-no-fsync\b", output(folder / "etcd", "--help"))


def test_kube_apiserver_help_lacks_insecure_port(folder: Path) -> None:
    text = output(folder / "kube-apiserver", "--help")
    assert "--secure-port" in text
    assert not re.search(r"(?m)^\s*--insecure-port\b", text)
    assert output(folder / "kube-apiserver", "--version") == "Kubernetes v1.36.3\n"


def test_default_and_installed_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert default_folder() == tmp_path / "fakekube/envtest"
    assert installed_folder("1.36.3") == tmp_path / "kubebuilder-envtest/k8s/1.36.3-linux-amd64"


def test_replacements_are_installed_under_the_releases_that_suites_ask_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    asked = ("1.35.4", "1.29.0", "1.36")
    words = [word for release in asked for word in ("--kubernetes-version", release)]
    assert main(["envtest", "--install", *words]) == 0
    assert "1.29.0 is not emulated: its replacement is a 1.33" in capsys.readouterr().err
    for release in ("1.35.4", "1.29.0", "1.36.3"):
        assert output(installed_folder(release) / "kube-apiserver", "--version") == f"Kubernetes v{release}\n"
    assert "minor='1.35'" in (installed_folder("1.35.4") / "kube-apiserver").read_text().replace("'\"'\"'", "'")
    assert main(["envtest", "--dir", str(tmp_path / "one"), *words]) == 2


def test_store_of_the_go_library_on_a_mac(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    store = tmp_path / "Library/Application Support/io.kubebuilder.envtest/k8s"
    assert installed_folder("1.36.3") == store / "1.36.3-darwin-arm64"


class Pair:
    """etcd and kube-apiserver, started as envtest starts them."""

    def __init__(self, folder: Path, certificates: Path) -> None:
        self.authority = Authority()
        self.certificates = certificates
        issued = self.authority.issue_server("127.0.0.1")
        texts = {"apiserver.crt": issued.pem, "apiserver.key": issued.key_pem, "client-ca.crt": self.authority.pem}
        for name, text in {**texts, "tokens": "secret,alice,1\n"}.items():
            (certificates / name).write_text(text)
        self.etcd_port, self.port = free_port(), free_port()
        etcd = [f"--listen-client-urls=http://127.0.0.1:{self.etcd_port}", "--unsafe-no-fsync=true", f"--data-dir={certificates}"]
        self.command = [
            folder / "kube-apiserver",
            "--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", f"--cert-dir={certificates}",
            f"--client-ca-file={certificates}/client-ca.crt", "--disable-admission-plugins=ServiceAccount",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", f"--secure-port={self.port}",
            f"--service-account-issuer=https://127.0.0.1:{self.port}/", f"--token-auth-file={certificates}/tokens",
            f"--service-account-key-file={certificates}/apiserver.key",
            f"--service-account-signing-key-file={certificates}/apiserver.key",
        ]  # fmt: skip
        self.etcd = subprocess.Popen([folder / "etcd", *etcd], stderr=subprocess.DEVNULL)
        self.start_server()

    def start_server(self) -> None:
        self.server = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)

    def context(self, user: str = "", groups: tuple[str, ...] = ()) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.pem)
        if user:
            issued = self.authority.issue_client(user, groups)
            path = self.certificates / f"{user}.pem"
            path.write_text(issued.pem + issued.key_pem)
            context.load_cert_chain(path)
        return context

    def get(self, path: str, context: ssl.SSLContext, token: str = "", body: object = None) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith(b"{") else {"text": text.decode()}

    def wait_until_healthy(self) -> None:
        end = time.monotonic() + 60
        while not self._is_etcd_healthy():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert self.server.stderr is not None
        line = self.server.stderr.readline()
        assert line == f"Serving securely on 127.0.0.1:{self.port}\n"

    def _is_etcd_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.etcd_port}/health", timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def end(self) -> None:
        for process in (self.server, self.etcd):
            process.kill()
            process.wait()
        assert self.server.stderr is not None
        self.server.stderr.close()


@pytest.fixture(scope="module")
def pair(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    found = Pair(folder, tmp_path_factory.mktemp("certificates"))
    try:
        found.wait_until_healthy()
        yield found
    finally:
        found.end()


def test_health_endpoints_need_no_authentication(pair: Pair) -> None:
    for path in ("/healthz", "/readyz", "/livez"):
        assert pair.get(path, pair.context()) == {"text": "ok"}
    with urllib.request.urlopen(f"http://127.0.0.1:{pair.etcd_port}/health", timeout=60) as answer:
        assert answer.status == 200


def identity(pair: Pair, context: ssl.SSLContext, token: str = "") -> object:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    status = pair.get("/apis/authentication.k8s.io/v1/selfsubjectreviews", context, token, review)["status"]
    assert isinstance(status, dict)
    return status["userInfo"]["username"], status["userInfo"]["groups"]


def test_client_certificate_authenticates_its_user(pair: Pair) -> None:
    admin = pair.context("admin", ("system:masters",))
    assert identity(pair, admin) == ("admin", ["system:masters", "system:authenticated"])
    assert pair.get("/api/v1/namespaces/default", admin)["kind"] == "Namespace"


def test_token_file_and_service_account_signing_key_are_used(pair: Pair) -> None:
    assert identity(pair, pair.context(), "secret") == ("alice", ["system:authenticated"])
    admin = pair.context("admin", ("system:masters",))
    account = {"metadata": {"name": "bot"}}
    pair.get("/api/v1/namespaces/default/serviceaccounts", admin, body=account)
    issued = pair.get("/api/v1/namespaces/default/serviceaccounts/bot/token", admin, body={"spec": {}})["status"]
    assert isinstance(issued, dict)
    claims = json.loads(base64.urlsafe_b64decode(issued["token"].split(".")[1] + "=="))
    assert claims["iss"] == f"https://127.0.0.1:{pair.port}/"


def test_port_in_use_is_an_error(folder: Path, pair: Pair, tmp_path: Path) -> None:
    found = subprocess.run(
        [folder / "kube-apiserver", f"--secure-port={pair.port}", "--cert-dir", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert "bind: address already in use" in found.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["apiserver.crt", "apiserver.key"]


def test_sigterm_stops_with_open_watches_and_objects_survive_a_restart(pair: Pair) -> None:
    admin = pair.context("admin", ("system:masters",))
    made = pair.get("/api/v1/namespaces/default/configmaps", admin, body={"metadata": {"name": "kept"}})["metadata"]
    url = f"https://127.0.0.1:{pair.port}/api/v1/namespaces?watch=1"
    with urllib.request.urlopen(url, context=admin, timeout=60) as watch:
        assert json.loads(watch.readline())["type"] == "ADDED"
        begin = time.monotonic()
        pair.server.send_signal(signal.SIGTERM)
        assert pair.server.wait(60) == 0
        assert time.monotonic() - begin < 20
    assert pair.server.stderr is not None
    pair.server.stderr.close()
    pair.start_server()
    pair.wait_until_healthy()
    found = pair.get("/api/v1/namespaces/default/configmaps/kept", admin)["metadata"]
    assert isinstance(found, dict)
    assert isinstance(made, dict)
    assert (found["uid"], found["resourceVersion"]) == (made["uid"], made["resourceVersion"])
    assert not list(pair.certificates.glob("*fakekube*"))
    pair.etcd.send_signal(signal.SIGTERM)
    assert pair.etcd.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize(
    ("name", "release"), [("1.34.1-linux-amd64", "1.34.1"), ("1.35.0-darwin-arm64", "1.35.0"), ("envtest", None), ("1.34", None)]
)
def test_named_release(name: str, release: str | None) -> None:
    assert named_release(Path("k8s") / name) == release
