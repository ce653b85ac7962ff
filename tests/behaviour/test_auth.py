"""Authentication, authorization, impersonation, and the review kinds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ALICE = {"Authorization": "Bearer user-token"}
ANONYMOUS = {"Authorization": ""}


def grant_permission(
    api, verb: str, resource: str, name: str = "reader", subject: dict[str, Any] | None = None, **more: Any
) -> None:
    """Grant alice (or another subject) a permission in the test's namespace."""
    rule = {"verbs": [verb], "apiGroups": [""], "resources": [resource], **more}
    assert (
        api.post(api.path("roles", group="rbac.authorization.k8s.io/v1"), {"metadata": {"name": name}, "rules": [rule]}).status
        == 201
    )
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject or {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
    }
    assert api.post(api.path("rolebindings", group="rbac.authorization.k8s.io/v1"), binding).status == 201


def eventually(status: int, call: Callable[[], Any]) -> Any:
    """The real server's authorizer follows writes a moment later, and it remembers good tokens for ten seconds."""
    for _ in range(150):
        reply = call()
        if reply.status == status:
            return reply
        time.sleep(0.1)
    raise AssertionError(f"{reply.status}, not {status}: {reply.body!r}")


# ---------------------------------------------------------------- authentication


def whoami(api, **headers: str) -> dict[str, Any]:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reply = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review, headers=headers)
    assert reply.status == 201, reply.body
    return reply.at("status", "userInfo")


def test_groups_of_authenticated_users(api) -> None:
    assert whoami(api)["groups"] == ["system:masters", "system:authenticated"]
    assert whoami(api, **ALICE) == {"username": "alice", "uid": "alice", "groups": ["team-a", "system:authenticated"]}


def test_invalid_bearer_token_returns_401(api) -> None:
    reply = api.get("/version", headers={"Authorization": "Bearer wrong"})
    assert (reply.status, reply.at("reason"), reply.at("message")) == (401, "Unauthorized", "Unauthorized")


@pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "nonsense"])
def test_requests_without_token_are_anonymous(api, header: str) -> None:
    reply = api.get("/api/v1/nodes", headers={"Authorization": header})
    assert reply.status == 403
    assert reply.at("message") == (
        'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    assert api.get("/version", headers={"Authorization": header}).status == 200


# ---------------------------------------------------------------- authorization


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", "/api/v1/nodes", 'cannot list resource "nodes" in API group "" at the cluster scope'),
        ("GET", "/api/v1/nodes?watch=1", 'cannot watch resource "nodes" in API group "" at the cluster scope'),
        ("GET", "/apis/apps/v1/deployments", 'cannot list resource "deployments" in API group "apps" at the cluster scope'),
        ("GET", "/api/v1/namespaces/a/pods/p/log", 'cannot get resource "pods/log" in API group "" in the namespace "a"'),
        ("DELETE", "/api/v1/namespaces/a/pods", 'cannot deletecollection resource "pods" in API group "" in the namespace "a"'),
        ("POST", "/api/v1/namespaces/a/pods", 'cannot create resource "pods" in API group "" in the namespace "a"'),
        ("PATCH", "/api/v1/namespaces/a", 'cannot patch resource "namespaces" in API group "" in the namespace "a"'),
        ("GET", "/apis/nope/v1/things", 'cannot list resource "things" in API group "nope" at the cluster scope'),
        ("GET", "/metrics", 'cannot get path "/metrics"'),
        ("POST", "/version", 'cannot post path "/version"'),
    ],
)
def test_requests_without_permission_are_forbidden(api, method: str, path: str, words: str) -> None:
    reply = api.request(method, path, headers=ALICE)
    assert (reply.status, reply.at("reason")) == (403, "Forbidden")
    assert reply.at("message").endswith(f'forbidden: User "alice" {words}')


@pytest.mark.parametrize("path", ["/version", "/healthz", "/api", "/apis", "/apis/apps/v1", "/openapi/v3"])
def test_discovery_paths_are_readable_by_every_authenticated_user(api, path: str) -> None:
    assert api.get(path, headers=ALICE).status == 200


def test_role_binding_grants_and_revokes_access(api) -> None:
    pods = api.path("pods")
    assert api.get(pods, headers=ALICE).status == 403
    grant_permission(api, "list", "pods")
    eventually(200, lambda: api.get(pods, headers=ALICE))
    assert api.get(api.path("pods", "p"), headers=ALICE).status == 403
    assert api.get("/api/v1/pods", headers=ALICE).status == 403
    assert api.delete(api.path("rolebindings", "reader", group="rbac.authorization.k8s.io/v1")).status == 200
    eventually(403, lambda: api.get(pods, headers=ALICE))


def test_resource_names_limit_a_rule_to_one_object(api) -> None:
    grant_permission(api, "get", "configmaps", resourceNames=["mine"])
    assert eventually(404, lambda: api.get(api.path("configmaps", "mine"), headers=ALICE)).at("reason") == "NotFound"
    assert api.get(api.path("configmaps", "other"), headers=ALICE).status == 403
    assert api.get(api.path("configmaps"), headers=ALICE).status == 403


def test_create_on_update_requires_the_create_verb(api) -> None:
    grant_permission(api, "patch", "configmaps")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}

    def apply() -> Any:
        query = {"fieldManager": "m"}
        return api.patch(api.path("configmaps", "c"), body, "application/apply-patch+yaml", query, headers=ALICE)

    for _ in range(50):
        reply = apply()
        if "cannot patch" not in reply.at("message"):
            break
    assert (reply.status, reply.at("details", "name")) == (403, "c")


# ---------------------------------------------------------------- privilege escalation


RBAC_GROUP = "rbac.authorization.k8s.io"
READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}


def path_of(api, plural: str, name: str = "") -> str:
    return api.path(plural, name, group=f"{RBAC_GROUP}/v1") if name else api.path(plural, group=f"{RBAC_GROUP}/v1")


def test_creating_a_role_with_more_permissions_than_own_is_forbidden(api) -> None:
    grant_permission(api, "create", "roles", apiGroups=[RBAC_GROUP])

    def grant(*verbs: str) -> Any:
        role = {"metadata": {"name": "granted"}, "rules": [{**READ_PODS, "verbs": verbs}]}
        return api.post(path_of(api, "roles"), role, {"dryRun": "All"}, headers=ALICE)

    reply = eventually_says("attempting to grant", lambda: grant("get", "list"))
    assert reply.status == 403
    missing = '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    assert reply.at("message") == (
        'roles.rbac.authorization.k8s.io "granted" is forbidden: user "alice" (groups=["team-a" "system:authenticated"]) is '
        f"attempting to grant RBAC permissions not currently held:\n{missing}"
    )
    grant_permission(api, "get", "pods", name="pods")
    assert eventually_says('Verbs:["list"]', lambda: grant("get", "list")).status == 403
    assert grant("get").status == 201


def test_escalate_verb_allows_granting_any_permission(api) -> None:
    grant_permission(api, "create", "roles", apiGroups=[RBAC_GROUP])
    grant_permission(api, "escalate", "roles", name="escalating", apiGroups=[RBAC_GROUP])
    role = {"metadata": {"name": "granted"}, "rules": [READ_PODS]}
    assert eventually(201, lambda: api.post(path_of(api, "roles"), role, headers=ALICE)).at("rules") == [READ_PODS]


def test_bind_verb_allows_binding_a_role(api) -> None:
    grant_permission(api, "create", "rolebindings", apiGroups=[RBAC_GROUP])
    assert api.post(path_of(api, "roles"), {"metadata": {"name": "pods"}, "rules": [READ_PODS]}).status == 201

    def bind(role: str) -> Any:
        reference = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": role}
        subject = {"kind": "User", "apiGroup": RBAC_GROUP, "name": "bob"}
        binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
        return api.post(path_of(api, "rolebindings"), binding, {"dryRun": "All"}, headers=ALICE)

    assert eventually_says("attempting to grant", lambda: bind("pods")).status == 403
    lost = bind("none")
    assert (lost.status, lost.at("message")) == (404, 'rolebindings.rbac.authorization.k8s.io "none" not found')
    grant_permission(api, "bind", "roles", name="binding", apiGroups=[RBAC_GROUP], resourceNames=["pods"])
    eventually(201, lambda: bind("pods"))
    assert bind("none").status == 404


def test_bindings_to_missing_roles_are_reported_in_errors(api) -> None:
    grant_permission(api, "create", "roles", apiGroups=[RBAC_GROUP])
    reference = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "none-such"}
    subject = {"kind": "Group", "apiGroup": RBAC_GROUP, "name": "team-a"}
    binding = {"metadata": {"name": "lost"}, "roleRef": reference, "subjects": [subject]}
    assert api.post(path_of(api, "rolebindings"), binding).status == 201
    problem = 'RBAC: clusterrole.rbac.authorization.k8s.io "none-such" not found'
    assert eventually_says(problem, lambda: api.get(api.path("pods"), headers=ALICE)).status == 403
    role = {"metadata": {"name": "granted"}, "rules": [READ_PODS]}
    reply = eventually_says("attempting to grant", lambda: api.post(path_of(api, "roles"), role, headers=ALICE))
    assert reply.at("message").endswith('; resolution errors: [roles.rbac.authorization.k8s.io "none-such" not found]')


def test_authorization_reason_names_the_first_matching_subject(api) -> None:
    assert api.post(path_of(api, "roles"), {"metadata": {"name": "pods"}, "rules": [READ_PODS]}).status == 201
    subjects = [{"kind": kind, "apiGroup": RBAC_GROUP, "name": name} for kind, name in (
        ("User", "bob"), ("Group", "team-a"), ("User", "alice"), ("Group", "team-b"))]  # fmt: skip
    reference = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": "pods"}
    binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects}
    assert api.post(path_of(api, "rolebindings"), binding).status == 201
    eventually(200, lambda: api.get(api.path("pods"), headers=ALICE))
    said = f'RBAC: allowed by RoleBinding "b/{api.namespace}" of Role "pods" to Group "team-a"'
    assert access(api, "get", "pods", **ALICE)["reason"] == said


def eventually_says(words: str, call: Callable[[], Any]) -> Any:
    """The response whose message contains a text."""
    for _ in range(100):
        reply = call()
        if words in (reply.at("message") or ""):
            return reply
        time.sleep(0.1)
    raise AssertionError(f"{reply.status}: {reply.body!r}")


# ---------------------------------------------------------------- impersonation


def test_impersonation(api) -> None:
    user = whoami(api, **{"Impersonate-User": "bob", "Impersonate-Group": "g", "Impersonate-Extra-Acme.io%2Fx": "1"})
    assert user == {"username": "bob", "groups": ["g", "system:authenticated"], "extra": {"acme.io/x": ["1"]}}
    assert api.get("/api/v1/nodes", headers={"Impersonate-User": "bob"}).status == 403


def test_impersonating_a_group_without_user_returns_400(api) -> None:
    reply = api.get("/version", headers={"Impersonate-Group": "g"})
    assert reply.status == 400
    assert "without impersonating a user name" in reply.at("message")


def test_impersonation_requires_the_impersonate_verb(api) -> None:
    reply = api.get(api.path("pods"), headers={**ALICE, "Impersonate-User": "bob"})
    assert (reply.status, reply.at("reason")) == (403, "Forbidden")
    assert 'User "alice" cannot impersonate' in reply.at("message")


# ---------------------------------------------------------------- reviews


def review(api, group: str, kind: str, spec: dict[str, Any], **headers: str) -> dict[str, Any]:
    body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
    reply = api.post(f"/apis/{group}/v1/{kind.lower()}s", body, headers=headers)
    assert reply.status == 201, reply.body
    return reply.at("status")


def access(api, verb: str, resource: str, **headers: str) -> dict[str, Any]:
    attributes = {"verb": verb, "resource": resource, "namespace": api.namespace}
    return review(api, "authorization.k8s.io", "SelfSubjectAccessReview", {"resourceAttributes": attributes}, **headers)


def test_self_subject_access_review(api) -> None:
    assert access(api, "list", "pods", **ALICE) == {"allowed": False}
    assert access(api, "list", "pods") == {"allowed": True}
    grant_permission(api, "list", "pods")
    eventually(200, lambda: api.get(api.path("pods"), headers=ALICE))
    assert access(api, "list", "pods", **ALICE) == {
        "allowed": True,
        "reason": f'RBAC: allowed by RoleBinding "reader/{api.namespace}" of Role "reader" to User "alice"',
    }


def test_token_review(api) -> None:
    status = review(api, "authentication.k8s.io", "TokenReview", {"token": "user-token"})
    assert status["authenticated"] is True
    assert status["user"]["username"] == "alice"
    status = review(api, "authentication.k8s.io", "TokenReview", {"token": "wrong"})
    assert "authenticated" not in status
    assert "invalid bearer token" in status["error"]


@pytest.mark.parametrize(
    ("token", "user"),
    [("user-token ", "alice"), ("user-token and more", "alice"), (" user-token", "system:anonymous"), ("  ", "system:anonymous")],
)
def test_token_review_accepts_the_same_tokens_as_the_authorization_header(api, token: str, user: str) -> None:
    status = review(api, "authentication.k8s.io", "TokenReview", {"token": token})
    assert (status["authenticated"], status["user"]["username"]) == (True, user)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda token: f"{token}=", "invalid bearer token"),
        (lambda token: f"{token}.x", "invalid bearer token"),
        (lambda token: f"{token[:-4]}!!!!", "invalid bearer token"),
        (lambda token: f"{token[:-4]}AAAA", "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]"),
    ],
)
def test_token_review_rejects_a_modified_service_account_token(api, spoil: Callable[[str], str], problem: str) -> None:
    assert api.post(api.path("serviceaccounts"), {"metadata": {"name": "robot"}}).status == 201
    token = api.post(api.path("serviceaccounts", "robot/token"), {"spec": {}}).at("status", "token")
    assert review(api, "authentication.k8s.io", "TokenReview", {"token": spoil(token)}) == {"user": {}, "error": problem}


def test_service_account_token_authenticates_until_the_account_is_deleted(api) -> None:
    assert api.post(api.path("serviceaccounts"), {"metadata": {"name": "robot"}}).status == 201
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = api.post(api.path("serviceaccounts", "robot", "token"), request)
    assert made.status == 201, made.body
    robot = {"Authorization": f"Bearer {made.at('status', 'token')}"}
    user = whoami(api, **robot)
    assert user["username"] == f"system:serviceaccount:{api.namespace}:robot"
    assert user["groups"] == ["system:serviceaccounts", f"system:serviceaccounts:{api.namespace}", "system:authenticated"]
    assert api.get(api.path("pods"), headers=robot).status == 403
    grant_permission(api, "list", "pods", subject={"kind": "ServiceAccount", "name": "robot", "namespace": api.namespace})
    eventually(200, lambda: api.get(api.path("pods"), headers=robot))
    assert api.delete(api.path("serviceaccounts", "robot")).status == 200
    eventually(401, lambda: api.get(api.path("pods"), headers=robot))
