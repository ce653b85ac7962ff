"""Access: RBAC, refusals, impersonation, access reviews, tokens, anonymous requests."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.differential import pacing
from tests.differential.client import APPLY, MERGE, PARTIAL, TABLE, Client
from tests.differential.definitions import CRDS, DRY, definition, make, note, served
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.steps import ALICE, AUTHN, AUTHZ, NOBODY, RBAC, As, allowed, binding, config_map, grant, maps, role, rule


def impersonating(client: Client, user: str, *groups: str, **extra: str) -> As:
    """The admin in the shape of someone else (of this scenario only, so that scenarios do not meet)."""
    headers = {"Impersonate-User": user, **{f"Impersonate-Extra-{k}": v for k, v in extra.items()}}
    if groups:
        headers["Impersonate-Group"] = groups[0]
    return As(client, headers)


def someone(client: Client) -> As:
    """A user without any rights whose name no other scenario knows."""
    return impersonating(client, f"user-{client.id}")


@scenario
def each_verb_is_refused_in_its_words(client: Client) -> None:
    """403 for every verb, with and without names, namespaced and not."""
    alice, path = As(client, ALICE), maps(client)
    client.post(path, config_map(), silent=True)
    alice.get(path)
    alice.get(f"{path}/one")
    alice.get(f"{path}/none")
    alice.post(path, config_map("two"))
    alice.put(f"{path}/one", config_map())
    alice.patch(f"{path}/one", {"data": {}}, MERGE)
    alice.patch(f"{path}/one", config_map(), APPLY, {"fieldManager": "m"})
    alice.delete(f"{path}/one")
    alice.delete(path)
    alice.get(path, {"watch": "1"})
    alice.get(f"{path}/one", {"watch": "1"})
    alice.get("/api/v1/configmaps")
    alice.get("/api/v1/nodes")
    alice.get("/api/v1/nodes/n1")
    alice.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    alice.get(f"/api/v1/namespaces/{client.ns}")
    alice.delete(f"/api/v1/namespaces/{client.ns}")
    alice.request("HEAD", path)
    alice.request("OPTIONS", path)


@scenario
def subresources_are_refused_by_name(client: Client) -> None:
    """resource/subresource in the message; groups too."""
    alice, ns = As(client, ALICE), f"namespaces/{client.ns}"
    for path in (
        f"/api/v1/{ns}/pods/p/log",
        f"/api/v1/{ns}/pods/p/status",
        f"/api/v1/{ns}/pods/p/exec",
        f"/api/v1/{ns}/pods/p/portforward",
        f"/api/v1/{ns}/services/s/proxy",
        f"/api/v1/{ns}/services/s/proxy/x/y",
        "/api/v1/nodes/n/proxy/",
        f"/apis/apps/v1/{ns}/deployments/d/scale",
        f"/apis/apps/v1/{ns}/deployments/d/status",
        f"/api/v1/namespaces/{client.ns}/status",
        f"/apis/nosuch.group/v1/{ns}/things/t",
        f"/apis/apps/v9/{ns}/deployments",
        f"/apis/apps/v1/{ns}/nosuch",
        f"/api/v1/{ns}/pods/p/nosuch",
    ):
        alice.get(path)
    alice.post(f"/api/v1/{ns}/pods/p/eviction", {})
    alice.post(f"/api/v1/{ns}/pods/p/binding", {})
    alice.post(f"/api/v1/{ns}/serviceaccounts/default/token", {})
    alice.patch(f"/api/v1/{ns}/pods/p/ephemeralcontainers", {}, MERGE)
    alice.put(f"/apis/apps/v1/{ns}/deployments/d/scale", {})


@scenario
def other_paths(client: Client) -> None:
    """Non-resource URLs: discovery and health are open to the authenticated, the rest is not."""
    alice = As(client, ALICE)
    for path in (
        "/",
        "/api",
        "/apis/apps",
        "/version",
        "/healthz",
        "/livez",
        "/readyz",
        "/metrics",
        "/logs",
        "/debug/pprof/",
        "/nothing",
        "/openapi/v2x",
        "/apis/nosuch.group",
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/api/v1x",
        "/healthz/ping",
        "/configz",
        "/ui/",
    ):
        reply = alice.get(path, silent=True)
        note(client, path, [reply.status, reply.get("reason"), reply.get("message")])
    alice.post("/healthz", {})
    alice.delete("/version")


@scenario
def who_is_not_known(client: Client) -> None:
    """401 for wrong credentials; anonymous requests; odd headers."""
    path = maps(client)
    for value in (
        "Bearer wrong",
        "Bearer",
        "Bearer ",
        "bearer admin-token",
        "Basic YWxpY2U6eA==",
        "Token admin-token",
        "admin-token",
        "Bearer admin-token extra",
        "Bearer  admin-token",
        "",
    ):
        client.get(path, headers={"Authorization": value})
    client.get("/version", headers={"Authorization": "Bearer wrong"})
    client.get("/healthz", headers=NOBODY)
    client.get("/version", headers=NOBODY)
    client.get("/apis/apps", headers=NOBODY)
    client.get("/api/v1/nodes", headers=NOBODY)
    client.post(path, config_map(), headers=NOBODY)
    client.get(f"{path}/x", headers=NOBODY)
    client.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": {}}, headers=NOBODY)


@scenario
def roles_give_rights(client: Client) -> None:
    """A role's verbs and nothing more; lists, watches and names."""
    user, path = someone(client), maps(client)
    name = f"user-{client.id}"
    client.post(path, config_map(), silent=True)
    grant(client, name, rule("get create", "configmaps"))
    user.get(f"{path}/one")
    user.get(path)
    user.post(path, config_map("two"))
    user.post(path, config_map("three"), DRY)
    user.delete(f"{path}/two")
    user.patch(f"{path}/fresh", config_map("fresh"), APPLY, {"fieldManager": "m"})
    user.get("/api/v1/configmaps")
    user.get("/api/v1/namespaces/default/configmaps/one")
    user.put(f"{path}/newer", config_map("newer"))
    grant(client, name, rule("patch update", "configmaps"), name="more")
    user.patch(f"{path}/fresh", config_map("fresh"), APPLY, {"fieldManager": "m"})
    user.put(f"{path}/newer", config_map("newer"))
    user.patch(f"{path}/one", {"data": {"b": "2"}}, MERGE, DRY)
    client.delete(f"{RBAC}/namespaces/{client.ns}/rolebindings/granted", silent=True)
    until(lambda: not allowed(client, name, "get", "configmaps"))
    user.get(f"{path}/one")


@scenario
def names_in_roles(client: Client) -> None:
    """resourceNames: get, update and delete by name; lists only with a field selector; never create or deletecollection."""
    user, path = someone(client), maps(client)
    for name in ("mine", "other"):
        client.post(path, config_map(name), silent=True)
    grant(client, f"user-{client.id}", rule("*", "configmaps", names="mine"))
    user.get(f"{path}/mine")
    user.get(f"{path}/other")
    user.get(path)
    user.get(path, {"fieldSelector": "metadata.name=mine"})
    user.get(path, {"fieldSelector": "metadata.name=other"})
    user.get(path, {"fieldSelector": "metadata.name!=other"})
    user.patch(f"{path}/mine", {"data": {"z": "1"}}, MERGE)
    user.patch(f"{path}/other", {"data": {"z": "1"}}, MERGE)
    user.post(path, config_map("mine"))
    user.put(f"{path}/mine", config_map("mine", q="1"))
    user.delete(path)
    user.delete(f"{path}/mine")
    user.patch(f"{path}/mine", config_map("mine"), APPLY, {"fieldManager": "m"})


@scenario
def wildcards_and_subresources(client: Client) -> None:
    """* and */scale, pods/*; a right to a resource is none to its subresources."""
    user, name, ns = someone(client), f"user-{client.id}", f"namespaces/{client.ns}"
    grant(client, name, rule("get", "*/scale pods/log deployments", "apps,"), wait=("get", "deployments", "apps"))
    for path in (
        f"/apis/apps/v1/{ns}/deployments/d",
        f"/apis/apps/v1/{ns}/deployments/d/scale",
        f"/apis/apps/v1/{ns}/deployments/d/status",
        f"/api/v1/{ns}/pods/p/log",
        f"/api/v1/{ns}/pods/p",
        f"/apis/apps/v1/{ns}/replicasets/r/scale",
        f"/api/v1/{ns}/replicationcontrollers/r/scale",
    ):
        user.get(path)
    grant(client, name, rule("get", "*", "batch"), name="batch", wait=("get", "jobs", "batch"))
    for path in (
        f"/apis/batch/v1/{ns}/jobs/j",
        f"/apis/batch/v1/{ns}/jobs/j/status",
        f"/apis/batch/v1/{ns}/nosuch/x",
        f"/apis/batch/v1/{ns}/jobs",
    ):
        user.get(path)


@scenario
def nobody_gives_more_than_he_has(client: Client) -> None:
    """Escalation: creating or widening roles and binding them needs the rights in them, or escalate and bind."""
    user, name, roles = someone(client), f"user-{client.id}", f"{RBAC}/namespaces/{client.ns}"
    grant(
        client,
        name,
        rule("create update patch get", "roles rolebindings", "rbac.authorization.k8s.io"),
        rule("get list", "configmaps"),
        wait=("get", "configmaps", ""),
    )
    user.post(f"{roles}/roles", role("same", rule("get", "configmaps")))
    user.post(f"{roles}/roles", role("more", rule("get", "secrets")))
    user.post(
        f"{roles}/roles",
        role(
            "lots",
            rule("*", "*", "*"),
            rule("get delete", "configmaps pods", ",apps"),
            {"nonResourceURLs": ["/x"], "verbs": ["get"]},
        ),
    )
    user.post(f"{roles}/roles", role("named", rule("get list", "configmaps", names="a b")))
    user.patch(f"{roles}/roles/same", {"rules": [rule("get delete", "configmaps")]}, MERGE)
    user.patch(f"{roles}/roles/same", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    client.post(
        f"{roles}/roles", role("strong", rule("delete", "configmaps", names="x"), rule("get", "pods pods/log")), silent=True
    )
    pacing.sleep(0.2)
    user.post(f"{roles}/rolebindings", binding("b1", "same", "bob"))
    user.post(f"{roles}/rolebindings", binding("b2", "strong", "bob"))
    user.post(f"{roles}/rolebindings", binding("b3", "absent", "bob"))
    user.post(f"{roles}/rolebindings", binding("b4", "cluster-admin", "bob", role_kind="ClusterRole"))
    user.post(f"{RBAC}/clusterroles", role(client.name("c"), rule("get", "pods"), kind="ClusterRole"))
    grant(
        client,
        name,
        rule("bind escalate", "roles", "rbac.authorization.k8s.io"),
        name="mighty",
        wait=("escalate", "roles", "rbac.authorization.k8s.io"),
    )
    user.post(f"{roles}/roles", role("more", rule("get", "secrets")))
    user.post(f"{roles}/rolebindings", binding("b2", "strong", "bob"))


@scenario
def roles_are_checked(client: Client) -> None:
    """What a role and a binding must say."""
    roles = f"{RBAC}/namespaces/{client.ns}"
    for rules in (
        [{}],
        [{"verbs": []}],
        [{"verbs": ["get"]}],
        [{"verbs": ["get"], "apiGroups": [""]}],
        [{"verbs": ["get"], "resources": ["pods"]}],
        [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        [{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"], "apiGroups": [""]}],
        [rule("", "pods")],
        [rule("get", "")],
        None,
    ):
        client.post(f"{roles}/roles", {**role("r"), "rules": rules}, DRY)
    for rules in (
        [{"verbs": ["get"], "nonResourceURLs": ["/x", "y", "*", "/a/*", "/*/b"]}],
        [{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}],
        [],
    ):
        client.post(f"{RBAC}/clusterroles", {**role(client.name("r"), kind="ClusterRole"), "rules": rules}, DRY)
    good = binding("b", "view", "bob", role_kind="ClusterRole")
    for change in (
        {"roleRef": {}},
        {"roleRef": {"kind": "Role", "name": "x"}},
        {"roleRef": {"apiGroup": "apps", "kind": "Role", "name": "x"}},
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Pod", "name": "x"}},
        {"subjects": None},
        {"subjects": [{}]},
        {"subjects": [{"kind": "User", "name": ""}]},
        {"subjects": [{"kind": "User", "name": "bob"}]},
        {"subjects": [{"kind": "Group", "name": "g", "apiGroup": "x"}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "sa"}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "S A", "namespace": "n"}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "n", "apiGroup": "x"}]},
        {"subjects": [{"kind": "Robot", "name": "r"}]},
        {"subjects": [{"kind": "User", "name": "bob", "namespace": "n", "apiGroup": "rbac.authorization.k8s.io"}]},
    ):
        client.post(f"{roles}/rolebindings", {**good, **change}, DRY)
    client.post(f"{RBAC}/clusterrolebindings", binding(client.name("c"), "x", "bob", kind="ClusterRoleBinding"), DRY)
    client.post(
        f"{RBAC}/clusterrolebindings",
        {
            **binding(client.name("c"), "x", kind="ClusterRoleBinding", role_kind="ClusterRole"),
            "subjects": [{"kind": "ServiceAccount", "name": "sa"}],
        },
        DRY,
    )
    client.post(f"{roles}/rolebindings", good)
    client.patch(f"{roles}/rolebindings/b", {"roleRef": {"name": "edit"}}, MERGE)
    client.patch(f"{roles}/rolebindings/b", {"subjects": []}, MERGE)
    client.get(f"{roles}/rolebindings", headers={"Accept": TABLE})
    client.get(f"{roles}/roles", headers={"Accept": TABLE})


@scenario
def aggregated_roles(client: Client) -> None:
    """aggregationRule is kept and checked; without a controller the rules stay as sent."""
    name = client.name("agg")
    body = role(name, kind="ClusterRole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"x": client.id}}]})
    for change in (
        {},
        {"aggregationRule": {}},
        {"aggregationRule": {"clusterRoleSelectors": []}},
        {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a b": "c"}}]}},
        {"rules": [rule("get", "pods")]},
        {"rules": None},
    ):
        client.post(f"{RBAC}/clusterroles", {**body, **change}, DRY)
    client.post(f"{RBAC}/clusterroles", body, silent=True)
    client.patch(f"{RBAC}/clusterroles/{name}", {"rules": [rule("get", "pods")]}, MERGE)
    client.get(f"{RBAC}/clusterroles", {"fieldSelector": f"metadata.name={name}"}, headers={"Accept": TABLE})
    client.delete(f"{RBAC}/clusterroles/{name}", silent=True)


@scenario
def cluster_roles_reach_everywhere(client: Client) -> None:
    """A ClusterRoleBinding covers all namespaces and cluster resources; a RoleBinding to a ClusterRole only its own."""
    user, name, role_name = someone(client), f"user-{client.id}", client.name("reader")
    client.post(
        f"{RBAC}/clusterroles",
        role(
            role_name,
            rule("get list", "configmaps nodes"),
            {"nonResourceURLs": ["/metrics", "/debug/*"], "verbs": ["get"]},
            kind="ClusterRole",
        ),
        silent=True,
    )
    client.post(
        f"{RBAC}/namespaces/{client.ns}/rolebindings", binding("b", role_name, name, role_kind="ClusterRole"), silent=True
    )
    try:
        until(lambda: allowed(client, name, "get", "configmaps"))
        user.get(f"{maps(client)}/one")
        user.get("/api/v1/nodes")
        user.get("/api/v1/configmaps")
        user.get("/metrics")
        client.post(
            f"{RBAC}/clusterrolebindings",
            binding(role_name, role_name, name, kind="ClusterRoleBinding", role_kind="ClusterRole"),
            silent=True,
        )
        until(lambda: allowed(client, name, "get", "nodes", ns=""))
        user.get("/api/v1/nodes/none")
        user.get("/api/v1/namespaces/default/configmaps/none")
        user.delete("/api/v1/nodes/none")
        note(client, "metrics", user.get("/metrics", silent=True).status)
        user.get("/debug/nothing")
        user.get("/nothing")
    finally:
        client.delete(f"{RBAC}/clusterrolebindings/{role_name}", silent=True)
        client.delete(f"{RBAC}/clusterroles/{role_name}", silent=True)


@scenario
def impersonation_changes_who_asks(client: Client) -> None:
    """User, group, uid and extra; what SelfSubjectReview then says; who may not; incomplete headers."""

    def who(**headers: str) -> None:
        client.post(
            f"{AUTHN}/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
            headers={k.replace("_", "-"): v for k, v in headers.items()},
        )

    who()
    who(Authorization="Bearer user-token")
    who(Impersonate_User="bob")
    who(Impersonate_User="bob", Impersonate_Group="devs")
    who(
        Impersonate_User="bob",
        Impersonate_Group="system:masters",
        Impersonate_Uid="u-1",
        Impersonate_Extra_Scopes="a%2Fb",
        Impersonate_Extra_Other="x",
    )
    who(Impersonate_User="system:serviceaccount:default:sa")
    who(Impersonate_User="system:serviceaccount:default:sa", Impersonate_Group="only")
    who(Impersonate_User="system:anonymous")
    who(Impersonate_User="system:node:n1", Impersonate_Group="system:nodes")
    who(Impersonate_Group="devs")
    who(Impersonate_Uid="u-1")
    who(Impersonate_Extra_X="y")
    who(Impersonate_User="")
    who(Impersonate_Nonsense="x")
    who(Impersonate_Nonsense="x", Impersonate_User="bob")
    for headers in (
        {"Impersonate-User": "bob"},
        {"Impersonate-User": "alice", "Impersonate-Group": "x"},
        {"Impersonate-User": "system:serviceaccount:default:sa"},
        {"Impersonate-User": "alice"},
        {"Impersonate-User": "alice", "Impersonate-Uid": "1"},
    ):
        client.get(maps(client), headers={**ALICE, **headers})
    client.get(maps(client), headers={**NOBODY, "Impersonate-User": "bob"})
    client.get(maps(client), headers={"Impersonate-User": "bob"})
    client.get(maps(client), headers={"Impersonate-User": "bob", "Impersonate-Group": "system:masters"})
    client.get("/api/v1/nodes", headers={"Impersonate-User": f"system:serviceaccount:{client.ns}:sa"})


@scenario
def impersonation_can_be_granted(client: Client) -> None:
    """The verb impersonate on users, groups, serviceaccounts, uids and userextras; whom the server saw succeed in this way is answered in its words afterwards."""
    name, role_name = f"system:serviceaccount:{client.ns}:robot", client.name("imp")
    accounts = f"/api/v1/namespaces/{client.ns}/serviceaccounts"
    client.post(accounts, {"metadata": {"name": "robot"}}, silent=True)
    token = client.post(f"{accounts}/robot/token", {"spec": {}}, silent=True).get("status", "token", default="")
    robot = {"Authorization": f"Bearer {token}"}
    until(lambda: client.get("/version", headers=robot, silent=True).status == 200, 3)
    client.post(
        f"{RBAC}/clusterroles",
        role(
            role_name,
            rule("impersonate", "users", names="bob"),
            rule("impersonate", "groups", names="devs"),
            rule("impersonate", "userextras/scopes", "authentication.k8s.io", "view"),
            kind="ClusterRole",
        ),
        silent=True,
    )
    client.post(
        f"{RBAC}/clusterrolebindings",
        {
            **binding(role_name, role_name, kind="ClusterRoleBinding", role_kind="ClusterRole"),
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}],
        },
        silent=True,
    )
    try:
        until(lambda: allowed(client, name, "impersonate", "users", ns="", name="bob"))
        client.get(maps(client), headers={**robot, "Impersonate-User": "eve"})
        for headers in (
            {"Impersonate-User": "bob"},
            {"Impersonate-User": "bob", "Impersonate-Group": "devs"},
            {"Impersonate-User": "bob", "Impersonate-Group": "ops"},
            {"Impersonate-User": "bob", "Impersonate-Extra-Scopes": "view"},
            {"Impersonate-User": "bob", "Impersonate-Extra-Scopes": "edit"},
            {"Impersonate-User": "bob", "Impersonate-Extra-Other": "view"},
            {"Impersonate-User": "eve"},
            {"Impersonate-User": "bob", "Impersonate-Uid": "7"},
        ):
            client.post(
                f"{AUTHN}/selfsubjectreviews",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
                headers={**robot, **headers},
            )
            client.get(maps(client), headers={**robot, **headers})
    finally:
        client.delete(f"{RBAC}/clusterrolebindings/{role_name}", silent=True)
        client.delete(f"{RBAC}/clusterroles/{role_name}", silent=True)


@scenario
def access_reviews(client: Client) -> None:
    """SubjectAccessReview for users, groups, non-resource paths; reasons; what is missing."""
    name = f"user-{client.id}"
    grant(client, name, rule("get list", "configmaps"), rule("delete", "configmaps", names="mine"))

    def ask(spec: Any) -> None:
        client.post(
            f"{AUTHZ}/subjectaccessreviews",
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
        )

    at = {"namespace": client.ns, "resource": "configmaps"}
    for spec in (
        {"user": name, "resourceAttributes": {**at, "verb": "get"}},
        {"user": name, "resourceAttributes": {**at, "verb": "delete"}},
        {"user": name, "resourceAttributes": {**at, "verb": "delete", "name": "mine"}},
        {"user": name, "resourceAttributes": {**at, "verb": "get", "subresource": "x"}},
        {"user": name, "resourceAttributes": {**at, "namespace": "", "verb": "get"}},
        {"user": name, "groups": ["system:masters"], "resourceAttributes": {"verb": "*", "resource": "*", "group": "*"}},
        {"groups": ["g"], "resourceAttributes": {**at, "verb": "get"}},
        {"user": name, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
        {"user": name, "groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/apis", "verb": "get"}},
        {"user": name},
        {},
        {"user": name, "resourceAttributes": {**at, "verb": "get"}, "nonResourceAttributes": {"path": "/", "verb": "get"}},
        {"resourceAttributes": {**at, "verb": "get"}},
        {"user": name, "resourceAttributes": {}},
        {"user": name, "resourceAttributes": {**at, "verb": "list", "fieldSelector": {"rawSelector": "metadata.name=x"}}},
        {
            "user": name,
            "resourceAttributes": {
                **at,
                "verb": "list",
                "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
            },
        },
        {
            "user": name,
            "resourceAttributes": {
                **at,
                "verb": "list",
                "labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]},
            },
        },
        {"user": name, "extra": {"k": ["v"]}, "uid": "u", "resourceAttributes": {**at, "verb": "get"}},
    ):
        ask(spec)
    client.post(
        f"{AUTHZ}/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {"name": "x"},
            "spec": {"user": name, "resourceAttributes": {**at, "verb": "get"}},
        },
    )
    client.post(
        f"{AUTHZ}/namespaces/{client.ns}/localsubjectaccessreviews",
        {"metadata": {"namespace": client.ns}, "spec": {"user": name, "resourceAttributes": {**at, "verb": "get"}}},
    )
    client.post(
        f"{AUTHZ}/namespaces/{client.ns}/localsubjectaccessreviews",
        {"spec": {"user": name, "resourceAttributes": {**at, "verb": "get"}}},
    )
    client.post(
        f"{AUTHZ}/namespaces/{client.ns}/localsubjectaccessreviews",
        {"spec": {"user": name, "resourceAttributes": {**at, "namespace": "default", "verb": "get"}}},
    )
    client.post(
        f"{AUTHZ}/namespaces/{client.ns}/localsubjectaccessreviews",
        {"spec": {"user": name, "nonResourceAttributes": {"path": "/", "verb": "get"}}},
    )
    client.get(f"{AUTHZ}/subjectaccessreviews")
    As(client, ALICE).post(
        f"{AUTHZ}/subjectaccessreviews", {"spec": {"user": "alice", "resourceAttributes": {**at, "verb": "get"}}}
    )


@scenario
def reviews_of_oneself(client: Client) -> None:
    """SelfSubjectAccessReview, SelfSubjectRulesReview and SelfSubjectReview, as admin, as alice and as one with a role."""
    user, name = someone(client), f"user-{client.id}"
    grant(client, name, rule("get list", "configmaps"), rule("*", "jobs", "batch", "j1"))
    for who in (As(client, {}), As(client, ALICE), user):
        for attributes in (
            {"namespace": client.ns, "verb": "get", "resource": "configmaps"},
            {"namespace": client.ns, "verb": "create", "resource": "configmaps"},
            {"verb": "list", "resource": "nodes"},
            {"namespace": client.ns, "verb": "watch", "group": "batch", "resource": "jobs", "name": "j1"},
        ):
            who.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})
        who.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": {"nonResourceAttributes": {"path": "/api", "verb": "get"}}})
        who.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": {}})
        rules = who.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": client.ns}}, silent=True)
        note(
            client,
            "rules",
            {
                "status": rules.status,
                **{
                    k: sorted(json.dumps(r, sort_keys=True) for r in rules.get("status", k, default=[]))
                    for k in ("resourceRules", "nonResourceRules")
                },
                "incomplete": rules.get("status", "incomplete"),
                "error": rules.get("status", "evaluationError"),
            },
        )
        who.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {}})
        who.post(f"{AUTHN}/selfsubjectreviews", {})
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "user-token"}})
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "wrong"}})
    client.post(f"{AUTHN}/tokenreviews", {"spec": {}})
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "user-token", "audiences": ["other"]}})
    As(client, ALICE).post(f"{AUTHN}/tokenreviews", {"spec": {"token": "user-token"}})


@scenario
def service_accounts_have_tokens(client: Client) -> None:
    """TokenRequest, then the token in use, its review, its audience, its end when the account goes."""
    accounts = f"/api/v1/namespaces/{client.ns}/serviceaccounts"
    client.post(accounts, {"metadata": {"name": "robot"}}, silent=True)

    def request(spec: Any, name: str = "robot") -> str:
        reply = client.post(
            f"{accounts}/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
            silent=True,
        )
        token = reply.get("status", "token", default="")
        shown = json.loads(json.dumps(reply.json).replace(token, "<token>")) if token else reply.json
        note(client, f"token {json.dumps(spec)}", [reply.status, shown])
        return token

    token = request({})
    request({"expirationSeconds": 3600, "audiences": ["a", "b"]})
    for spec in (
        {"expirationSeconds": 5},
        {"expirationSeconds": 2**33},
        {"audiences": ["x"]},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nopod"}},
        {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}},
        {"expirationSeconds": "x"},
    ):
        request(spec)
    request({}, "nobody")
    robot = As(client, {"Authorization": f"Bearer {token}"})
    until(lambda: robot.get("/version", silent=True).status == 200, 3)
    robot.get(maps(client))
    review = robot.post(f"{AUTHN}/selfsubjectreviews", {}, silent=True).json
    note(client, "who", json.loads(re.sub(r'"JTI=[^"]*"', '"<jti>"', json.dumps(review))))
    grant_to = {"kind": "ServiceAccount", "name": "robot", "namespace": client.ns}
    client.post(f"{RBAC}/namespaces/{client.ns}/roles", role("reading", rule("list", "configmaps")), silent=True)
    client.post(
        f"{RBAC}/namespaces/{client.ns}/rolebindings", {**binding("reading", "reading"), "subjects": [grant_to]}, silent=True
    )
    until(lambda: robot.get(maps(client), silent=True).status == 200, 5)
    note(client, "as the robot", robot.get(maps(client), silent=True).status)
    robot.get("/api/v1/pods")
    other = client.post(f"{accounts}/robot/token", {"spec": {"audiences": ["elsewhere"]}}, silent=True).get(
        "status", "token", default=""
    )
    client.get(maps(client), headers={"Authorization": f"Bearer {other}"}, silent=True)
    note(client, "another audience", client.get(maps(client), headers={"Authorization": f"Bearer {other}"}, silent=True).json)
    note(client, "spoilt", client.get(maps(client), headers={"Authorization": f"Bearer {token[:-4]}AAAA"}, silent=True).json)
    client.delete(f"{accounts}/robot", silent=True)
    until(lambda: robot.get(maps(client), silent=True).status == 401, 15)
    note(client, "after deletion", robot.get(maps(client), silent=True).json)


@scenario
def dry_run_needs_rights_and_more(client: Client) -> None:
    """A dry run is authorised like the real thing; unknown resources are refused before they are missed."""
    alice = As(client, ALICE)
    alice.post(maps(client), config_map(), DRY)
    alice.delete(f"{maps(client)}/one", None, DRY)
    alice.post(maps(client), "not json", DRY)
    alice.get("/apis/example.com/v1/things")
    alice.get(f"/apis/example.com/v1/namespaces/{client.ns}/things/t/status")
    alice.request("TRACE", maps(client))
    alice.request("PROPFIND", maps(client))
    alice.post(f"{maps(client)}/one", {})
    alice.delete("/api/v1/namespaces")
    client.delete("/api/v1/namespaces")


@scenario
def custom_resources_are_guarded_too(client: Client) -> None:
    """Rights to custom resources, their subresources and their definition."""
    user, name = someone(client), f"user-{client.id}"
    body = definition(
        client,
        version={"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}}},
    )
    group = body["spec"]["group"]
    with served(client, body) as path:
        client.post(path, make(body, spec={"r": 1}), silent=True)
        grant(client, name, rule("get patch", "widgets widgets/scale", group))
        user.get(f"{path}/one", headers={"Accept": PARTIAL})
        user.get(path)
        user.patch(f"{path}/one/scale", {"spec": {"replicas": 2}}, MERGE)
        user.get(f"{path}/one/status")
        user.patch(f"{path}/one/status", {}, MERGE)
        user.patch(f"{path}/new", make(body, "new"), APPLY, {"fieldManager": "m"})
        user.post(CRDS, body)
        user.get(f"{CRDS}/{body['metadata']['name']}")
        user.delete(path)


@scenario
def owners_and_finalizers(client: Client) -> None:
    """blockOwnerDeletion and the like, as one who may not change the owner."""
    user, name, path = someone(client), f"user-{client.id}", maps(client)
    owner = client.post(path, config_map("owner"), silent=True)
    grant(client, name, rule("create get patch update", "configmaps"))
    for block in (True, False):
        child = f"child-{str(block).lower()}"
        reply = user.post(
            path,
            {
                **config_map(child),
                "metadata": {
                    "name": child,
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid, "blockOwnerDeletion": block}
                    ],
                },
            },
            silent=True,
        )
        note(client, child, [reply.status, reply.get("message"), reply.get("metadata", "ownerReferences")])
    user.patch(f"{path}/owner", {"metadata": {"finalizers": ["example.com/x"]}}, MERGE)
    user.patch(f"{path}/owner", {"metadata": {"finalizers": None}}, MERGE)


@scenario
def built_in_roles(client: Client) -> None:
    """The names of the bootstrap roles and bindings, a few of them whole."""
    for kind in ("clusterroles", "clusterrolebindings"):
        note(
            client,
            kind,
            sorted(
                i["metadata"]["name"]
                for i in client.get(f"{RBAC}/{kind}", silent=True).get("items", default=[])
                if not i["metadata"]["name"].startswith("d-")
            ),
        )
    for name in (
        "cluster-admin",
        "view",
        "system:discovery",
        "system:public-info-viewer",
        "system:basic-user",
        "system:monitoring",
    ):
        reply = client.get(f"{RBAC}/clusterroles/{name}", silent=True)
        note(
            client,
            name,
            [
                reply.get("rules"),
                reply.get("aggregationRule"),
                reply.get("metadata", "labels"),
                reply.get("metadata", "annotations"),
            ],
        )
    for name in ("cluster-admin", "system:discovery", "system:basic-user"):
        reply = client.get(f"{RBAC}/clusterrolebindings/{name}", silent=True)
        note(client, name, [reply.get("roleRef"), reply.get("subjects")])
    for name in ("kube-system", "kube-public"):
        note(
            client,
            name,
            [
                sorted(
                    i["metadata"]["name"]
                    for i in client.get(f"{RBAC}/namespaces/{name}/{kind}", silent=True).get("items", default=[])
                )
                for kind in ("roles", "rolebindings")
            ],
        )
