"""Random stories of who may do what: roles, bindings, reviews, impersonation, tokens, signing requests."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import DRY
from tests.differential.pacing import until
from tests.differential.random_stories import Steady
from tests.differential.steps import AUTHN, AUTHZ, RBAC, accounts, grant, robot, user_subject

# fmt: off

Object = dict[str, Any]

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "bind", "escalate", "impersonate", "use", "")
_RESOURCES = ("pods", "configmaps", "secrets", "deployments", "roles", "clusterroles", "pods/log", "pods/*", "*/status", "*", "*/*", "deployments/scale", "nope", "")
_GROUPS = ("", "apps", "*", "rbac.authorization.k8s.io", "nope.io")


def some(rng: Steady, of: tuple[str, ...], most: int = 2) -> list[str]:
    return [rng.choice(of) for _ in range(1 + rng.randrange(most))]


def policy_rule(rng: Steady) -> Object:
    if rng.random() < 0.15:
        return {"verbs": some(rng, ("get", "*", "post")), "nonResourceURLs": some(rng, ("/healthz", "/healthz/*", "*", "/x", "/a*b", ""))}
    out: Object = {"verbs": some(rng, _VERBS, 3), "apiGroups": some(rng, _GROUPS), "resources": some(rng, _RESOURCES)}
    if rng.random() < 0.25:
        out["resourceNames"] = some(rng, ("a", "b", "", "*"))
    return out


def review(rng: Steady, ns: str) -> Object:
    """The attributes of an access review."""
    if rng.random() < 0.2:
        return {"nonResourceAttributes": {"path": rng.choice(["/healthz", "/x", "/healthz/etcd", "", "/apis"]), "verb": rng.choice(["get", "post", "", "*"])}}
    attributes: Object = {"verb": rng.choice(_VERBS), "resource": rng.choice(_RESOURCES), "group": rng.choice(_GROUPS)}
    if rng.random() < 0.7:
        attributes["namespace"] = rng.choice([ns, ns, "default", "", "*"])
    if rng.random() < 0.3:
        attributes["name"] = rng.choice(["a", "b", ""])
    if rng.random() < 0.3:
        attributes["subresource"] = rng.choice(["log", "status", "*", ""])
    if rng.random() < 0.2:
        attributes["version"] = rng.choice(["v1", "*", "v9"])
    if rng.random() < 0.2:
        selector = rng.choice([{"rawSelector": "a=b"}, {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}, {"requirements": [{"key": "a", "operator": "Nope"}]}, {"rawSelector": "x y"}, {}, {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}, {"requirements": [{"key": "", "operator": "Exists", "values": ["x"]}]}])
        attributes[rng.choice(["labelSelector", "fieldSelector"])] = selector
    return {"resourceAttributes": attributes}


def tell_roles(client: Client, rng: Steady) -> None:
    """Roles and bindings written by one who has a few rights himself: what he may give, and what reviews say."""
    user = client.name("user")
    own = [policy_rule(rng) for _ in range(rng.choice([1, 2, 3]))]
    may = [{"verbs": ["create", "update", "patch", "get", "delete"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}]
    if rng.random() < 0.2:
        may.append({"verbs": [rng.choice(["escalate", "bind"])], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]})
    valid = [one for one in own if "nonResourceURLs" not in one and "" not in one["verbs"]]
    grant(client, user, *may, *valid, wait=("create", "roles", "rbac.authorization.k8s.io"))
    who = {"Impersonate-User": user}
    roles = f"{RBAC}/namespaces/{client.ns}"
    for number in range(6):
        name = f"r{number}"
        rules = [rng.choice(own) if rng.random() < 0.5 else policy_rule(rng) for _ in range(rng.choice([0, 1, 2]))]
        body = {"metadata": {"name": name}, "rules": rules}
        client.post(f"{roles}/roles", body, headers=who)
        client.post(f"{roles}/roles", body)
        if rng.random() < 0.5:
            client.patch(f"{roles}/roles/{name}", {"rules": [policy_rule(rng)]}, MERGE, headers=who)
        binding: Object = {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": rng.choice(["Role", "Role", "ClusterRole"]), "name": rng.choice([name, "view", "absent", "granted"])}, "subjects": [user_subject("bob")]}
        if rng.random() < 0.3:
            binding["subjects"] = rng.choice([[{"kind": "ServiceAccount", "name": "default"}], [{"kind": "ServiceAccount", "name": "a b", "namespace": "Not Valid"}], [{"kind": "Group", "name": "g"}], [{"kind": "Nope", "name": "x"}], [], None, [{"kind": "User", "name": ""}], [{"kind": "User", "name": "a", "apiGroup": "x"}]])
        client.post(f"{roles}/rolebindings", binding, headers=who)
        if rng.random() < 0.3:
            client.patch(f"{roles}/rolebindings/{name}", {"roleRef": {"name": rng.choice(["other", name])}, "subjects": [user_subject("eve")]}, MERGE, headers=who)
    for _ in range(8):
        spec = {"user": rng.choice([user, user, "bob", ""]), **review(rng, client.ns)}
        if rng.random() < 0.2:
            spec |= rng.choice([{"groups": ["system:masters"]}, {"groups": ["g"]}, {"uid": "1"}, {"extra": {"a": ["b"]}}, {"extra": {"Not Valid": ["x"]}}])
        client.post(f"{AUTHZ}/subjectaccessreviews", {"spec": spec})
        local = {"spec": spec, **({"metadata": {"namespace": rng.choice([client.ns, "default"])}} if rng.random() < 0.3 else {})}
        client.post(f"{AUTHZ}/namespaces/{client.ns}/localsubjectaccessreviews", local)
        client.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": review(rng, client.ns)}, headers=who)
    client.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": rng.choice([client.ns, ""])}}, headers=who)


_IMPERSONATE = ("impersonate", "impersonate", "impersonate:user-info", "impersonate:serviceaccount", "impersonate:arbitrary-node", "*")
_IMPERSONATE_ON = ("impersonate-on:user-info:create", "impersonate-on:user-info:list", "impersonate-on:serviceaccount:create", "impersonate-on:serviceaccount:get", "impersonate-on:arbitrary-node:create", "impersonate-on:user-info:get")
_USERS = ("bob", "system:node:n", "system:anonymous", "", "system:serviceaccount:x", "eve", "system:admin", "system:serviceaccount:{ns}:robot", "system:node:")
_EXTRAS = ("a", "Scopes", "a%2fb", "", "%zz", "example.com%2fa", "example.com%2fA")


def _right_to_impersonate(rng: Steady) -> list[Object]:
    groups = rng.choice([[""], ["authentication.k8s.io"], ["", "authentication.k8s.io"]])
    resources = some(rng, ("users", "groups", "serviceaccounts", "uids", "nodes", "userextras/a", "userextras/scopes", "userextras/*", "userextras/example.com/a"), 4)
    return [
        {"verbs": some(rng, _IMPERSONATE), "apiGroups": groups, "resources": resources, **({"resourceNames": some(rng, ("bob", "g", "robot", "1", "b", "n", "system:admin"))} if rng.random() < 0.35 else {})},
        {"verbs": some(rng, _IMPERSONATE_ON, 3), "apiGroups": ["authentication.k8s.io", ""], "resources": some(rng, ("selfsubjectreviews", "pods", "nodes", "*"))},
    ]


def tell_impersonation(client: Client, rng: Steady) -> None:
    """Headers that impersonate, sent by an account that may impersonate some of it, in the old way or for one purpose."""
    name = client.name("impersonator")
    rules = [*_right_to_impersonate(rng), *_right_to_impersonate(rng), {"verbs": ["get"], "nonResourceURLs": [f"/mark/{name}"]}]
    agent = robot(client)
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": client.ns}
    client.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules}, silent=True)
    client.post(f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}, "subjects": [subject]}, silent=True)
    marked = {"spec": {"user": f"system:serviceaccount:{client.ns}:robot", "nonResourceAttributes": {"path": f"/mark/{name}", "verb": "get"}}}
    until(lambda: client.post(f"{AUTHZ}/subjectaccessreviews", marked, silent=True).get("status", "allowed"), 10)
    try:
        for _ in range(18):
            headers: dict[str, str] = {"Impersonate-User": rng.choice(_USERS).format(ns=client.ns)}
            if rng.random() < 0.1:
                headers.pop("Impersonate-User")
            if rng.random() < 0.35:
                headers["Impersonate-Group"] = rng.choice(["g", "system:masters", "system:authenticated", "system:unauthenticated", "", "system:serviceaccounts"])
            if rng.random() < 0.25:
                headers["Impersonate-Uid"] = rng.choice(["1", "", "x"])
            if rng.random() < 0.35:
                headers[f"Impersonate-Extra-{rng.choice(_EXTRAS)}"] = rng.choice(["b", "x", ""])
            if rng.random() < 0.5:
                agent.post(f"{AUTHN}/selfsubjectreviews", {}, headers=headers)
            else:
                agent.get(rng.choice(["/api/v1/namespaces/default/pods", "/healthz", "/version", "/api/v1/nodes", "/apis"]), headers=headers)
    finally:
        client.delete(f"{RBAC}/clusterrolebindings/{name}", silent=True)
        client.delete(f"{RBAC}/clusterroles/{name}", silent=True)


def tell_tokens(client: Client, rng: Steady) -> None:
    """Requests for tokens, reviews of them, and secrets of service accounts."""
    path = accounts(client)
    for name in ("robot", "other"):
        client.post(path, {"metadata": {"name": name}}, silent=True)
    secrets = f"/api/v1/namespaces/{client.ns}/secrets"
    client.post(secrets, {"metadata": {"name": "s"}, "stringData": {"a": "b"}}, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/pods", {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}}, silent=True)
    for _ in range(9):
        spec: Object = {}
        if rng.random() < 0.5:
            spec["audiences"] = rng.choice([["a"], ["a", "b"], [], [""], None, ["https://kubernetes.default.svc"]])
        if rng.random() < 0.5:
            spec["expirationSeconds"] = rng.choice([600, 599, 3600, 2**32, 2**32 + 1, -1, 0, None, "x"])
        if rng.random() < 0.5:
            ref: Object = rng.choice([{"kind": "Pod", "apiVersion": "v1", "name": "p"}, {"kind": "Secret", "apiVersion": "v1", "name": "s"}, {"kind": "Pod", "apiVersion": "v1", "name": "absent"}, {"kind": "Node", "apiVersion": "v1", "name": "n"}, {"kind": "Pod", "apiVersion": "apps/v1", "name": "p"}, {"kind": "ConfigMap", "apiVersion": "v1", "name": "p"}, {}, {"kind": "Pod"}])
            spec["boundObjectRef"] = {**ref, **({"uid": rng.choice(["wrong", client.get(f"{secrets}/s", silent=True).uid or ""])} if rng.random() < 0.4 else {})}
        body: Object = {"spec": spec}
        if rng.random() < 0.3:
            body["metadata"] = rng.choice([{"name": "robot"}, {"name": "x"}, {"namespace": client.ns}, {"namespace": "x"}, {"labels": {"a": "b"}}, {"generateName": "x"}])
        reply = client.post(f"{path}/{rng.choice(['robot', 'robot', 'other', 'absent'])}/token", body, DRY if rng.random() < 0.2 else None, silent=True)
        _record_without_token(client, reply, body)
        token = reply.get("status", "token", default="") or rng.choice(["x", "a.b.c", ""])
        asked: Object = {"spec": {"token": token, **({"audiences": rng.choice([["a"], ["c"], ["a", "c"], []])} if rng.random() < 0.5 else {})}}
        review_of = client.post(f"{AUTHN}/tokenreviews", asked, silent=True)
        _record_without_token(client, review_of, {"spec": {**asked["spec"], "token": "<token>"}})
    for _ in range(5):
        account = rng.choice(["robot", "absent", "", None])
        annotations = {"kubernetes.io/service-account.name": account} if account is not None else {}
        if rng.random() < 0.3:
            annotations["kubernetes.io/service-account.uid"] = rng.choice(["wrong", client.get(f"{path}/robot", silent=True).uid or ""])
        body = {"metadata": {"name": rng.choice(["t", "u"]), "annotations": annotations}, "type": rng.choice(["kubernetes.io/service-account-token", "kubernetes.io/service-account-token", "kubernetes.io/dockerconfigjson", "kubernetes.io/tls", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/dockercfg", "bootstrap.kubernetes.io/token", "x/y", ""])}
        if rng.random() < 0.5:
            body["data"] = rng.choice([{".dockerconfigjson": "e30="}, {"tls.crt": "", "tls.key": ""}, {"username": "eA=="}, {"ssh-privatekey": "eA=="}, {".dockercfg": "eA=="}, {"a b": "eA=="}, {"token": "eA=="}])
        client.post(secrets, body, DRY if rng.random() < 0.4 else None)
        client.patch(f"{secrets}/t", rng.choice([{"type": "x"}, {"immutable": True}, {"data": {"x": "eA=="}}, {"stringData": {"y": "z"}}, {"metadata": {"annotations": {"kubernetes.io/service-account.name": None}}}]), MERGE)


def _record_without_token(client: Client, reply: Any, body: Object) -> None:
    """Puts an exchange into the transcript, without what is secret and random in it."""
    shown = reply.json
    if isinstance(shown, dict) and isinstance(shown.get("status"), dict):
        if "token" in shown["status"]:
            shown["status"]["token"] = "<token>"
        extra = shown["status"].get("user", {}).get("extra", {})
        for key in extra:
            extra[key] = ["<extra>"]
    if isinstance(shown, dict) and isinstance(shown.get("spec"), dict) and "token" in shown["spec"]:
        shown["spec"]["token"] = "<token>"
    request = {"method": "POST", "path": "token", "query": None, "accept": "", "type": "", "body": body}
    client.transcript.append({"request": request, "status": reply.status, "headers": {}, "body": shown})
