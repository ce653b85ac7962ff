"""kube-apiserver command lines of test suites, mapped to cluster options."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from fakekube.cli.envtest.command_line import REFUSED, FlagError, read

#: As controller-runtime's envtest has it.
ENVTEST = shlex.split("""
    --allow-privileged=true --authorization-mode=RBAC --bind-address=127.0.0.1 --cert-dir=C --client-ca-file=C/client-cert-auth-ca.crt
    --disable-admission-plugins=ServiceAccount --etcd-servers=http://127.0.0.1:1 --secure-port=2
    --service-account-issuer=https://127.0.0.1:2/ --service-account-key-file=C/sa-signer.crt
    --service-account-signing-key-file=C/sa-signer.key --service-cluster-ip-range=10.0.0.0/24
""")

#: As fabric8's kube-api-test has it.
KUBE_API_TEST = shlex.split("""
    --cert-dir D --secure-port 2 --etcd-servers http://0.0.0.0:1 --authorization-mode RBAC --service-account-issuer https://localhost
    --service-account-signing-key-file K --service-account-signing-key-file K --service-account-key-file K
    --service-account-issuer D/apiserver.crt --disable-admission-plugins ServiceAccount --client-ca-file D/client.crt
    --service-cluster-ip-range 10.0.0.0/24 --allow-privileged
""")


@pytest.mark.parametrize(
    ("arguments", "variable", "profile"),
    [
        ([], "", ""),
        (["--fakekube-profile=cluster"], "", "cluster"),
        ([], "envtest", "envtest"),
        (["--fakekube-profile", "a"], "b", "a"),
    ],
)
def test_a_suite_chooses_the_profile(arguments: list[str], variable: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKEKUBE_PROFILE", variable)
    assert read(arguments).profile == profile


@pytest.mark.parametrize(
    ("arguments", "variable", "pace"),
    [([], "", 0.05), (["--fakekube-pace=0"], "1s", 0.0), ([], "1s", 1.0), (["--fakekube-pace", "20ms"], "", 0.02)],
)
def test_a_suite_chooses_the_pace(arguments: list[str], variable: str, pace: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKEKUBE_PACE", variable)
    assert read(arguments).pace == pace


@pytest.mark.parametrize("text", ["soon", "-1s"])
def test_a_pace_is_a_duration(text: str) -> None:
    with pytest.raises(FlagError, match='for "--fakekube-pace" flag'):
        read([f"--fakekube-pace={text}"])


def test_the_command_line_of_envtest() -> None:
    line = read(ENVTEST)
    assert (line.host, line.port, line.certificates) == ("127.0.0.1", 2, Path("C"))
    assert line.flags == {
        "authorization_mode": ("RBAC",),
        "client_ca_file": "C/client-cert-auth-ca.crt",
        "disable_admission_plugins": ("ServiceAccount",),
        "service_cluster_ip_range": "10.0.0.0/24",
        "service_account_issuer": ("https://127.0.0.1:2/",),
        "service_account_key_file": ("C/sa-signer.crt",),
        "service_account_signing_key_file": "C/sa-signer.key",
    }


def test_the_command_line_of_kube_api_test() -> None:
    line = read(KUBE_API_TEST)
    assert (line.host, line.port, line.certificates) == ("127.0.0.1", 2, Path("D"))
    assert line.flags["service_account_issuer"] == ("https://localhost", "D/apiserver.crt")
    assert line.flags["service_account_signing_key_file"] == "K"


def test_feature_gates_and_anonymous_auth_flags() -> None:
    line = read(["--feature-gates=A=true,kube:B=false", "--feature-gates", "other:C=true", "--anonymous-auth=false"])
    assert line.feature_gates == {"A": True, "B": False}
    assert line.flags["anonymous_auth"] is False


def test_tls_cert_file_replaces_cert_dir() -> None:
    line = read(["--cert-dir=C", "--tls-cert-file=a", "--tls-private-key-file=b"])
    assert line.certificates is None
    assert line.flags == {"tls_cert_file": "a", "tls_private_key_file": "b"}


@pytest.mark.parametrize(
    "argument", ["--no-such-flag", "--no-such-flag=1", "--insecure-port=0", "--v=9", "--storage-backend=etcd3"]
)
def test_irrelevant_flags_are_accepted(argument: str) -> None:
    assert read([argument]).flags == {}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_unsupported_flags_are_rejected(name: str) -> None:
    with pytest.raises(FlagError, match=f"--{name} is not supported: "):
        read([f"--{name}=x"])
    assert read([f"--{name}="]).flags == {}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--secure-port=0"], "--secure-port 0 must be between 1 and 65535"),
        (["--secure-port=x"], 'invalid argument "x" for "--secure-port" flag'),
        (["--bind-address=localhost"], 'invalid argument "localhost" for "--bind-address" flag: failed to parse IP: "localhost"'),
        (["--insecure-port=8080"], "--insecure-port is not supported"),
        (["--tls-cert-file=a"], "--tls-cert-file and --tls-private-key-file must be specified together"),
        (["--feature-gates=A"], 'invalid argument "A" for "--feature-gates" flag'),
        (["--anonymous-auth=maybe"], 'invalid argument "maybe" for "--anonymous-auth" flag'),
    ],
)
def test_invalid_or_contradictory_flags_are_rejected(arguments: list[str], reason: str) -> None:
    with pytest.raises(FlagError, match=reason):
        read(arguments)
