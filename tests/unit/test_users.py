"""Clients and kubeconfigs of users, and flags of authentication and authorization."""

from __future__ import annotations

import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakekube import Cluster
from fakekube.apiserver.auth.options import OptionError
from fakekube.apiserver.controlplane.cluster_authentication_trust import ClusterAuthenticationInfo
from fakekube.cli.arguments import UsageError, parse
from fakekube.cluster.testing.object_client import ObjectClient
from fakekube.controllers.client import ApiError

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def who(client: ObjectClient) -> dict[str, Any]:
    info: dict[str, Any] = client.create(REVIEW)["status"]["userInfo"]
    return info


def test_as_user_authenticates_and_is_authorized_by_rbac() -> None:
    cluster = Cluster(profile="apiserver")
    alice = cluster.as_user("alice", groups=["team-a"], uid="u1", extra={"scopes": ["view"]})
    assert who(alice) == {
        "username": "alice",
        "uid": "u1",
        "groups": ["team-a", "system:authenticated"],
        "extra": {"scopes": ["view"]},
    }
    with pytest.raises(ApiError) as caught:
        alice.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    cluster.load("""
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: team-a, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: team-a}]
""")
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "edit"},
            "rules": [{"verbs": ["create", "get", "delete"], "apiGroups": [""], "resources": ["configmaps"]}],
        }
    )
    alice.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert alice.wait_for("configmaps", "a")
    with pytest.raises(ApiError):
        cluster.as_user("bob").get("configmaps", "a")


def asked(path: Path) -> str:
    """Who the server of a kubeconfig says that its user is."""
    config = yaml.safe_load(path.read_text())
    server, user = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]
    request = urllib.request.Request(
        f"{server}/apis/authentication.k8s.io/v1/selfsubjectreviews", b"{}", {"Content-Type": "application/json"}
    )
    context = None
    if "token" in user:
        request.add_header("Authorization", f"Bearer {user['token']}")
    else:
        import base64

        context = ssl.create_default_context(
            cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        )
        pem = path.with_suffix(".pem")
        pem.write_bytes(base64.b64decode(user["client-key-data"]) + base64.b64decode(user["client-certificate-data"]))
        context.load_cert_chain(pem)
    with urllib.request.urlopen(request, context=context) as answer:
        info = yaml.safe_load(answer.read())["status"]["userInfo"]
    return f"{info['username']}: {', '.join(info['groups'])}"


@pytest.mark.parametrize("tls", [False, True])
def test_kubeconfig_for_a_user_authenticates_as_it(tls: bool, tmp_path: Path) -> None:
    with Cluster(profile="apiserver", tls=tls) as cluster:
        path = cluster.kubeconfig_for("alice", groups=("team-a",))
        assert asked(path) == "alice: team-a, system:authenticated"
        assert cluster.kubeconfig_for("alice", groups=("team-a",)) == path
        assert (
            asked(cluster.kubeconfig_for("system:node:n1", ("system:nodes",)))
            == "system:node:n1: system:nodes, system:authenticated"
        )
        cluster.write_kubeconfig(tmp_path / "own", user="bob")
        assert asked(tmp_path / "own") == "bob: system:authenticated"
    assert not path.exists()


def test_fork_keeps_the_token_auth_file(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text('secret,carol,c1,"x,y"\n')
    cluster = Cluster(profile="apiserver", token_auth_file=tokens)
    for one in (cluster, cluster.fork()):
        assert one.create(
            {**REVIEW, "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "secret"}}
        )["status"]["user"] == {"username": "carol", "uid": "c1", "groups": ["x", "y", "system:authenticated"]}


def test_unusable_flags_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--client-ca-file"):
        Cluster(profile="apiserver", client_ca_file=tmp_path / "none")
    with pytest.raises(TypeError, match="no_such_flag"):
        Cluster(profile="apiserver", no_such_flag=1)


def test_custom_server_certificate(tmp_path: Path) -> None:
    from fakekube.net.certificates import credentials

    own = credentials("127.0.0.1")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_text(own.server_certificate)
    key.write_text(own.server_key)
    with Cluster(profile="apiserver", tls_cert_file=certificate, tls_private_key_file=key) as cluster:
        assert cluster.url.startswith("https")
        text = cluster.kubeconfig.read_text()
        assert yaml.safe_load(text)["clusters"][0]["cluster"]["certificate-authority-data"]
    key.write_text("nonsense")
    with pytest.raises(OptionError, match="--tls-cert-file"):
        Cluster(profile="apiserver", tls_cert_file=certificate, tls_private_key_file=key).start()


def test_extension_apiserver_authentication_config_map() -> None:
    cluster = Cluster(profile="apiserver", tls=True)
    name = "extension-apiserver-authentication"
    data = cluster.get("configmaps", name, namespace="kube-system")["data"]
    assert list(data) == ["client-ca-file"]
    cluster.delete("configmaps", name, namespace="kube-system")
    assert cluster.get("configmaps", name, namespace="kube-system")["data"] == data
    for _ in range(2):
        cluster.patch("configmaps", name, {"data": None}, namespace="kube-system")
        assert cluster.get("configmaps", name, namespace="kube-system")["data"] == data
    assert not Cluster(profile="apiserver").list("configmaps", namespace="kube-system", field_selector=f"metadata.name={name}")


def test_extension_apiserver_authentication_config_map_is_read_again_only_when_it_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(profile="apiserver", tls=True)
    for name in ("first", "second"):
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
        monkeypatch.setattr(ClusterAuthenticationInfo, "data", lambda *_: pytest.fail("its certificates were looked for again"))


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("text", "user"),
    [
        ("alice", ("alice", ())),
        ("alice:team-a", ("alice", ("team-a",))),
        ("alice:a,b", ("alice", ("a", "b"))),
        ("root:system:masters", ("root", ("system:masters",))),
        ("system:node:n1", ("system:node:n1", ())),
        ("system:node:n1:system:nodes", ("system:node:n1", ("system:nodes",))),
        ("system:serviceaccount:ns:robot:x", ("system:serviceaccount:ns:robot", ("x",))),
        ("system:kube-scheduler", ("system:kube-scheduler", ())),
    ],
)
def test_user_flag_on_the_command_line(text: str, user: tuple[str, tuple[str, ...]]) -> None:
    assert parse(["serve", "--user", text]).users == [user]


def test_authentication_and_authorization_flags_on_the_command_line() -> None:
    arguments = ["serve", "--authorization-mode=Node,RBAC", "--authorization-mode=AlwaysAllow", "--anonymous-auth=false"]
    assert parse([*arguments, "--token-auth-file", "t"]).flags == {
        "authorization_mode": ("Node", "RBAC", "AlwaysAllow"),
        "anonymous_auth": False,
        "token_auth_file": "t",
    }
    assert parse(["serve"]).flags == {}
    for wrong in (["--anonymous-auth=maybe"], ["--user", ":x"], ["--no-such-flag=1"]):
        with pytest.raises(UsageError):
            parse(["serve", *wrong])
