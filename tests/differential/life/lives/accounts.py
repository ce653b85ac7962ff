"""Service accounts, their CA and tokens, and roles that gather others."""

from __future__ import annotations

from tests.differential.life.manifests import config, pod
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


@scenario
def default_account(w: World) -> None:
    """Every namespace has the account `default` and the ConfigMap kube-root-ca.crt; both come back."""
    w.settle()
    w.dump("serviceaccounts", "configmaps", managers=True)
    w.remove("serviceaccounts", "default")
    w.remove("configmaps", "kube-root-ca.crt")
    w.settle()
    w.dump("serviceaccounts", "configmaps", label="again")
    w.edit(
        "configmaps",
        "kube-root-ca.crt",
        {"data": {"ca.crt": "mine", "more": "x"}, "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
    )
    w.settle()
    w.dump("configmaps", label="mended")


@scenario
def token_secret(w: World) -> None:
    """A Secret of type service-account-token is filled for the account it names."""
    w.make({"kind": "ServiceAccount", "metadata": {"name": "robot"}})
    w.make(
        {
            "kind": "Secret",
            "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "robot"}},
            "type": "kubernetes.io/service-account-token",
        }
    )
    w.settle()
    w.dump("serviceaccounts", "secrets", managers=True)
    w.edit("secrets", "t", {"data": {"token": None}})
    w.settle()
    w.dump("secrets", label="filled again")
    w.remove("serviceaccounts", "robot")
    w.settle()
    w.dump("secrets", label="account gone")


@scenario
def token_secret_without_account(w: World) -> None:
    """A token Secret for an account that is not there, or has another uid, is deleted."""
    w.make({"kind": "ServiceAccount", "metadata": {"name": "robot"}})
    for name, notes in (
        ("nobody", {"kubernetes.io/service-account.name": "nobody"}),
        (
            "other",
            {
                "kubernetes.io/service-account.name": "robot",
                "kubernetes.io/service-account.uid": "11111111-2222-3333-4444-555555555555",
            },
        ),
    ):
        w.make(
            {"kind": "Secret", "metadata": {"name": name, "annotations": notes}, "type": "kubernetes.io/service-account-token"}
        )
    w.settle()
    w.dump("secrets")


@scenario
def gathered_roles(w: World) -> None:
    """A ClusterRole with an aggregationRule takes the rules of all ClusterRoles selected, in the order of their names."""
    label = f"example.com/{w.id}"

    def role(name: str, rules: list[dict[str, object]], **meta: object) -> None:
        w.make({"kind": "ClusterRole", "metadata": {"name": w.name(name), **meta}, "rules": rules})

    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    jobs = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]}
    w.make(
        {
            "kind": "ClusterRole",
            "metadata": {"name": w.name("sum")},
            "rules": [{"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]}],
            "aggregationRule": {
                "clusterRoleSelectors": [
                    {"matchLabels": {label: "yes"}},
                    {"matchExpressions": [{"key": label, "operator": "In", "values": ["maybe"]}]},
                ]
            },
        }
    )
    role("b", [pods, jobs], labels={label: "yes"})
    role("a", [jobs], labels={label: "yes"})
    role("c", [{"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}], labels={label: "maybe"})
    role("no", [{"apiGroups": ["no"], "resources": ["*"], "verbs": ["*"]}])
    w.settle()
    w.fact("rules", (w.read("clusterroles", w.name("sum")) or {}).get("rules"))
    w.edit("clusterroles", w.name("c"), {"metadata": {"labels": {label: "no"}}})
    w.remove("clusterroles", w.name("a"))
    w.settle()
    w.fact("rules of fewer", (w.read("clusterroles", w.name("sum")) or {}).get("rules"))
    w.edit("clusterroles", w.name("b"), {"metadata": {"labels": {label: None}}})
    w.settle()
    w.dump("clusterroles", names=[w.name("sum")])


@scenario
def pod_of_an_account(w: World) -> None:
    """A pod gets its account's token volume, unless account or pod say no; an account's pull secrets are copied."""
    w.make(
        {
            "kind": "ServiceAccount",
            "metadata": {"name": "quiet"},
            "automountServiceAccountToken": False,
            "imagePullSecrets": [{"name": "pull"}],
        }
    )
    w.make(pod("one", hand=True, serviceAccountName="quiet"))
    w.make(pod("two", hand=True, serviceAccountName="quiet", automountServiceAccountToken=True))
    w.make(pod("three", hand=True, automountServiceAccountToken=False))
    w.answer("absent account", w.post(w.at("pods"), {"apiVersion": "v1", **pod("four", serviceAccountName="nobody")}))
    w.make(config("x"))
    w.settle()
    w.dump("pods")
