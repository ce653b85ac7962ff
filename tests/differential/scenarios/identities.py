"""Identities: tokens of service accounts and what they are bound to, reviews, impersonation of every kind, and RBAC to the letter.

The impersonators are service accounts of the scenario's own: the server remembers by which kind of impersonation a user
succeeded last, and answers in the words of that kind from then on.

Certificates are those of `certificates.py`, whose text says what the server must trust.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from typing import Any

from tests.differential.client import APPLY, MERGE, PARTIAL, TABLE, Client, encode_query
from tests.differential.definitions import CRDS, DRY, definition, make, note, served
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.steps import (
    ALICE,
    AUTHN,
    AUTHZ,
    NOBODY,
    RBAC,
    As,
    accounts,
    allowed,
    binding,
    config_map,
    deployment,
    grant,
    granted_everywhere,
    maps,
    pod,
    robot,
    role,
    rule,
    user_subject,
)
from tests.differential.transports import Reply, joined

TOKEN_REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}


def claims_of(token: str, part: int = 1) -> dict[str, Any]:
    """What a token says, without what changes from one to the next."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[part] + "==="))
    except (IndexError, ValueError):
        return {}
    shown = {k: v for k, v in claims.items() if k not in ("exp", "iat", "nbf", "kid")}
    if "exp" in claims:
        shown["lifetime"] = claims["exp"] - claims["iat"]
        shown["nbf is iat"] = claims.get("nbf") == claims["iat"]
        if "warnafter" in claims.get("kubernetes.io", {}):
            shown["kubernetes.io"] = {
                **claims["kubernetes.io"],
                "warnafter": claims["kubernetes.io"]["warnafter"] - claims["iat"],
            }
    return shown


def request_token(client: Client, name: str, spec: Any, what: str = "", **more: Any) -> str:
    """Ask for a token and note the answer with the token's claims."""
    reply = client.post(f"{accounts(client)}/{name}/token", {**TOKEN_REQUEST, "spec": spec, **more}, silent=True)
    token = reply.get("status", "token", default="") or ""
    note(
        client,
        what or json.dumps(spec),
        [reply.status, json.loads(json.dumps(reply.json).replace(token, "<token>")) if token else reply.json, claims_of(token)],
    )
    return token


def bearing(client: Client, token: str) -> As:
    return As(client, {"Authorization": f"Bearer {token}"})


def who(client: Client, headers: dict[str, str] | None = None) -> Reply:
    return client.post(
        f"{AUTHN}/selfsubjectreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, headers=headers
    )


def ended(client: Client, bearer: As) -> None:
    until(lambda: bearer.get("/version", silent=True).status == 401, 20)


# ---------------------------------------------------------------- tokens of service accounts


@scenario
def tokens_say_what_they_are_for(client: Client) -> None:
    """Header and claims of a token: issuer, audience, subject, times, account; bound to a secret, a pod, a pod on a node and a node."""
    client.post(accounts(client), {"metadata": {"name": "bot"}}, silent=True)
    node = client.name("node")
    client.post("/api/v1/nodes", {"metadata": {"name": node}}, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/secrets", {"metadata": {"name": "s"}}, silent=True)
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    client.post(pods, pod("plain", serviceAccountName="bot"), silent=True)
    client.post(pods, pod("placed", serviceAccountName="bot", nodeName=node), silent=True)
    client.post(pods, pod("lost", serviceAccountName="bot", nodeName="no-such-node"), silent=True)
    try:
        token = request_token(client, "bot", {})
        note(client, "header", claims_of(token, 0))
        for kind, name in (("Secret", "s"), ("Pod", "plain"), ("Pod", "placed"), ("Pod", "lost"), ("Node", node)):
            bound = request_token(client, "bot", {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}})
            who(client, {"Authorization": f"Bearer {bound}"})
        who(client, {"Authorization": f"Bearer {token}"})
        request_token(
            client, "bot", {"expirationSeconds": 3607, "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "plain"}}
        )
        request_token(client, "bot", {"expirationSeconds": 3607})
        request_token(
            client,
            "bot",
            {
                "expirationSeconds": 3607,
                "audiences": ["elsewhere"],
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "plain"},
            },
        )
        request_token(client, "bot", {"expirationSeconds": 100000, "audiences": ["b", "a"]})
    finally:
        client.delete(f"/api/v1/nodes/{node}", silent=True)


@scenario
def requests_for_tokens_are_checked(client: Client) -> None:
    """Names, namespaces, uids, lifetimes, audiences and bound objects that cannot be; what is ignored; dry runs; rights by name."""
    client.post(accounts(client), {"metadata": {"name": "bot"}}, silent=True)
    client.post(accounts(client), {"metadata": {"name": "other"}}, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/pods", pod("theirs", serviceAccountName="other"), silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/pods", pod("mine", serviceAccountName="bot"), silent=True)
    path = f"{accounts(client)}/bot/token"

    def bound(**ref: Any) -> dict[str, Any]:
        return {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mine", **ref}}

    for body in (
        {"metadata": {"name": "other"}},
        {"metadata": {"namespace": "default"}},
        {"metadata": {"uid": "wrong"}},
        {"spec": {"expirationSeconds": 599}},
        {"spec": {"expirationSeconds": 0}},
        {"spec": {"expirationSeconds": -1}},
        {"spec": {"expirationSeconds": 2**32 + 1}},
        {"spec": {"expirationSeconds": None}},
        {"spec": {"expirationSeconds": "600"}},
        {"spec": {"audiences": "x"}},
        {"spec": bound(name="none")},
        {"spec": bound(name="theirs")},
        {"spec": bound(uid="wrong")},
        {"spec": bound(kind="Deployment", apiVersion="apps/v1")},
        {"spec": bound(kind="Node", name="no-such-node")},
        {"spec": bound(kind="Secret", name="none")},
        {"spec": bound(apiVersion="v2")},
        {"spec": bound(apiVersion="")},
        {"spec": bound(kind="")},
        {"spec": bound(name="")},
        {"spec": {"more": 1}},
        {"kind": "Pod"},
        {"apiVersion": "authentication.k8s.io/v1beta1"},
    ):
        reply = client.post(path, {**TOKEN_REQUEST, **body}, silent=True)
        note(
            client,
            json.dumps(body),
            [reply.status, reply.get("reason"), reply.get("message"), reply.headers.get("warning"), reply.get("spec")],
        )
    for query in (DRY, {"fieldManager": "m"}, {"fieldValidation": "Strict"}, {"dryRun": "None"}):
        reply = client.post(path, {**TOKEN_REQUEST, "spec": {"more": 1}}, query, silent=True)
        note(client, json.dumps(query), [reply.status, reply.get("message"), bool(reply.get("status", "token"))])
    client.post(f"{accounts(client)}/nobody/token", TOKEN_REQUEST)
    client.get(path)
    client.put(path, TOKEN_REQUEST)
    client.delete(path)
    client.post(path, TOKEN_REQUEST, headers=ALICE)
    client.post("/api/v1/serviceaccounts/bot/token", TOKEN_REQUEST)
    user = f"user-{client.id}"
    grant(client, user, rule("create", "serviceaccounts/token", names="bot"))
    for name in ("bot", "other"):
        reply = client.post(f"{accounts(client)}/{name}/token", TOKEN_REQUEST, headers={"Impersonate-User": user}, silent=True)
        note(client, f"by right for {name}", [reply.status, reply.get("message")])


@scenario
def tokens_are_for_their_audience(client: Client) -> None:
    """Which audiences the API server takes, and what TokenReview says of the others."""
    client.post(accounts(client), {"metadata": {"name": "bot"}}, silent=True)
    default = "https://kubernetes.default.svc"
    for audiences in (
        [],
        [default],
        ["vault"],
        ["vault", default],
        [default, "vault", "vault"],
        ["https://kubernetes.default.svc.cluster.local"],
        [""],
    ):
        token = request_token(client, "bot", {"audiences": audiences})
        who(client, {"Authorization": f"Bearer {token}"})
        for asked in ([], ["vault"], ["vault", "other", default], ["other"], [""]):
            reply = client.post(
                f"{AUTHN}/tokenreviews", {"spec": {"token": token, **({"audiences": asked} if asked else {})}}, silent=True
            )
            note(client, f"{audiences} reviewed for {asked}", [reply.status, reply.get("message"), reply.get("status")])


@scenario
def tokens_end(client: Client) -> None:
    """A token ends with its account, its pod, its secret or its node, and does not come back with another of the same name."""
    client.post(accounts(client), {"metadata": {"name": "bot"}}, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/secrets", {"metadata": {"name": "s"}}, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/pods", pod("p", serviceAccountName="bot"), silent=True)
    node = client.name("node")
    client.post("/api/v1/nodes", {"metadata": {"name": node}}, silent=True)
    bearers = {}
    for kind, name in (("Secret", "s"), ("Pod", "p"), ("Node", node), ("", "")):
        reply = client.post(
            f"{accounts(client)}/bot/token",
            {**TOKEN_REQUEST, "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}} if kind else {}},
            silent=True,
        )
        bearers[kind] = bearing(client, reply.get("status", "token", default="none"))
        note(client, f"bound to {kind or 'nothing'}", bearers[kind].get("/version", silent=True).status)
    for kind, path in (
        ("Secret", f"/api/v1/namespaces/{client.ns}/secrets/s"),
        ("Pod", f"/api/v1/namespaces/{client.ns}/pods/p"),
        ("Node", f"/api/v1/nodes/{node}"),
    ):
        client.delete(path, {"gracePeriodSeconds": 0}, silent=True)
        ended(client, bearers[kind])
        bearers[kind].get(maps(client))
        note(client, f"the plain one without the {kind}", bearers[""].get("/version", silent=True).status)
    client.post(f"/api/v1/namespaces/{client.ns}/secrets", {"metadata": {"name": "s"}}, silent=True)
    bearers["Secret"].get("/version")
    client.delete(f"{accounts(client)}/bot", silent=True)
    ended(client, bearers[""])
    bearers[""].get("/version")
    client.post(accounts(client), {"metadata": {"name": "bot"}}, silent=True)
    bearers[""].get("/version")
    who(client, bearers[""].headers)


@scenario
def tokens_that_are_none(client: Client) -> None:
    """Spoilt, foreign and unsigned tokens: 401 alike; TokenReview says why."""
    bot = robot(client)
    token = bot.headers["Authorization"].removeprefix("Bearer ")
    head, body, signature = token.split(".")

    def encoded(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = json.loads(base64.urlsafe_b64decode(body + "==="))
    forged = {
        "signature": f"{head}.{body}.{signature[:-6]}AAAAAA",
        "unsigned": f"{encoded({'alg': 'none'})}.{body}.",
        "claims": f"{head}.{encoded({**claims, 'sub': 'system:serviceaccount:kube-system:default'})}.{signature}",
        "short": f"{head}.{body}",
        "issuer": f"{encoded({'alg': 'ES256', 'kid': 'x'})}.{encoded({**claims, 'iss': 'https://elsewhere'})}.{signature}",
        "words": "not.a.token",
        "dots": "..",
        "plain": "secret",
    }
    for what, value in forged.items():
        reply = client.get(maps(client), headers={"Authorization": f"Bearer {value}"}, silent=True)
        note(client, what, [reply.status, reply.get("reason"), reply.get("message"), reply.headers.get("www-authenticate")])
        review = client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": value}}, silent=True)
        note(client, f"review of {what}", [review.status, review.get("status")])
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": ""}})
    client.post(f"{AUTHN}/tokenreviews", {"spec": {}})
    client.post(f"{AUTHN}/tokenreviews", {})
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "admin-token"}})
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "user-token", "audiences": ["https://kubernetes.default.svc"]}})
    client.post(
        f"{AUTHN}/tokenreviews", {"metadata": {"name": "x"}, "spec": {"token": "user-token"}, "status": {"authenticated": False}}
    )
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "user-token"}}, DRY)
    client.get(f"{AUTHN}/tokenreviews")
    client.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "user-token"}}, headers=ALICE)


@scenario
def secrets_with_tokens(client: Client) -> None:
    """A secret of the type service-account-token needs the account's name, may not change it, and stays without a token where no controller fills it."""
    client.post(accounts(client), {"metadata": {"name": "bot"}}, silent=True)
    path = f"/api/v1/namespaces/{client.ns}/secrets"
    kind = {"type": "kubernetes.io/service-account-token"}
    client.post(path, {"metadata": {"name": "one"}, **kind})
    client.post(path, {"metadata": {"name": "one", "annotations": {"kubernetes.io/service-account.name": ""}}, **kind})
    client.post(path, {"metadata": {"name": "one", "annotations": {"kubernetes.io/service-account.name": "bot"}}, **kind})
    client.post(path, {"metadata": {"name": "two", "annotations": {"kubernetes.io/service-account.name": "nobody"}}, **kind}, DRY)
    client.patch(f"{path}/one", {"metadata": {"annotations": {"kubernetes.io/service-account.name": "other"}}}, MERGE, DRY)
    client.patch(f"{path}/one", {"metadata": {"annotations": {"kubernetes.io/service-account.name": None}}}, MERGE, DRY)
    client.patch(f"{path}/one", {"type": "Opaque"}, MERGE, DRY)
    client.get(f"{accounts(client)}/bot")
    client.patch(
        f"{accounts(client)}/bot",
        {"secrets": [{"name": "one"}], "imagePullSecrets": [{"name": "pull"}], "automountServiceAccountToken": False},
        MERGE,
    )
    client.get(accounts(client), headers={"Accept": TABLE})


# ---------------------------------------------------------------- who asks, and who does not


@scenario
def each_learns_who_he_is(client: Client) -> None:
    """SelfSubjectReview for tokens, service accounts and the impersonated: uid, groups, extra; other versions, verbs, formats and dry runs."""
    who(client)
    who(client, ALICE)
    who(client, robot(client).headers)
    for headers in (
        {"Impersonate-User": "bob"},
        {"Impersonate-User": "bob", "Impersonate-Group": "devs", "Impersonate-Uid": "u-1"},
        {"Impersonate-User": "system:serviceaccount:default:sa"},
        {"Impersonate-User": "system:serviceaccount:default:sa", "Impersonate-Group": "own"},
        {"Impersonate-User": "system:node:n1"},
        {"Impersonate-User": "system:node:n1", "Impersonate-Group": "system:nodes"},
        {"Impersonate-User": "bob", "Impersonate-Group": "system:unauthenticated"},
        {"Impersonate-User": "bob", "Impersonate-Group": "system:authenticated"},
        {"Impersonate-User": "system:serviceaccount:x"},
        {"Impersonate-User": "system:serviceaccount:A:b"},
        {"Impersonate-User": "bob", "Impersonate-Extra-Scopes": "view"},
        {"Impersonate-User": "bob", "Impersonate-Extra-ACME.com%2Fproject": "one%20two"},
        {"Impersonate-User": "bob", "impersonate-extra-lower": "x", "impersonate-group": "y"},
        {"Impersonate-User": "bob smith"},
        {"Impersonate-User": "b\u00f6b"},
        {"Impersonate-User": "x" * 300},
        {"Impersonate-User": "bob", "Impersonate-Extra-": "nokey"},
        {"Impersonate-User": "bob", "Impersonate-Extra-Empty": ""},
    ):
        who(client, headers)
    client.post(f"{AUTHN}/selfsubjectreviews", {}, DRY)
    client.post(f"{AUTHN}/selfsubjectreviews", {"status": {"userInfo": {"username": "root"}}})
    client.post(f"{AUTHN}/selfsubjectreviews", {"spec": {"a": 1}}, {"fieldValidation": "Strict"})
    client.post(f"{AUTHN}/selfsubjectreviews", {}, headers={"Accept": "application/yaml"})
    client.post(f"{AUTHN}/selfsubjectreviews", {}, headers={"Accept": TABLE})
    client.post(f"{AUTHN}/selfsubjectreviews", {}, headers={"Accept": PARTIAL})
    client.post("/apis/authentication.k8s.io/v1beta1/selfsubjectreviews", {})
    client.get(f"{AUTHN}/selfsubjectreviews")
    client.delete(f"{AUTHN}/selfsubjectreviews")
    client.get(AUTHN)


@scenario
def strangers_are_turned_away(client: Client) -> None:
    """401 for bad credentials and 403 for anonymous requests: bodies and headers by verb, path and wanted type."""
    bad = {"Authorization": "Bearer wrong"}
    for headers in (bad, NOBODY):
        for method, path, body in (
            ("GET", maps(client), None),
            ("GET", f"{maps(client)}/x", None),
            ("POST", maps(client), config_map()),
            ("PUT", f"{maps(client)}/x", config_map("x")),
            ("DELETE", f"{maps(client)}/x", None),
            ("DELETE", maps(client), None),
            ("PATCH", f"{maps(client)}/x", {}),
            ("HEAD", maps(client), None),
            ("OPTIONS", maps(client), None),
            ("GET", "/api", None),
            ("GET", "/apis", None),
            ("GET", "/version", None),
            ("GET", "/healthz", None),
            ("GET", "/livez/ping", None),
            ("GET", "/nosuch", None),
            ("GET", "/metrics", None),
            ("GET", "/openapi/v2", None),
            ("POST", "/version", {}),
            ("GET", "/api/v1/nodes/x/proxy/y", None),
            ("GET", "/apis/apps/v1/namespaces/x/deployments/d/scale", None),
            ("GET", "/.well-known/openid-configuration", None),
            ("GET", "/openid/v1/jwks", None),
        ):
            reply = client.request(method, path, body, headers=headers, ctype=MERGE if method == "PATCH" else None, silent=True)
            note(
                client,
                f"{method} {path.replace(client.ns, 'ns')} {'bad' if headers is bad else 'none'}",
                [
                    reply.status,
                    {
                        h: v
                        for h, v in reply.headers.items()
                        if h in ("content-type", "www-authenticate", "cache-control", "x-content-type-options")
                    },
                    reply.json if reply.status >= 400 and reply.json else reply.status >= 400 and reply.body.decode("latin-1"),
                ],
            )
        for accept in ("application/yaml", "application/vnd.kubernetes.protobuf", "text/html", TABLE, "nonsense"):
            reply = client.get(maps(client), headers={**headers, "Accept": accept}, silent=True)
            note(
                client,
                f"{accept} {'bad' if headers is bad else 'none'}",
                [reply.status, reply.headers.get("content-type"), reply.json if reply.json else len(reply.body) > 0],
            )
        client.get(maps(client), {"watch": "1"}, headers=headers)
        client.get(maps(client), {"limit": "x"}, headers=headers)
        client.get(maps(client), headers={**headers, "Impersonate-User": "alice"})
        client.get("/version", headers={**headers, "Impersonate-User": "alice"})
        client.get(maps(client), headers={**headers, "Impersonate-Group": "x"})
    for value in (
        "bearer user-token",
        "BEARER user-token",
        "Bearer user-token",
        " Bearer user-token",
        "Bearer user-token extra",
        "Bearer",
        "Basic dTpw",
        "Bearer,user-token",
        "Negotiate x",
    ):
        reply = client.get(maps(client), headers={"Authorization": value}, silent=True)
        note(client, value, [reply.status, reply.get("message")])


# ---------------------------------------------------------------- impersonation


@scenario
def impersonation_in_the_old_way(client: Client) -> None:
    """The verb impersonate on users, groups, uids, userextras and serviceaccounts; names; each missing right in its words; once it succeeded, failures are told in its words first."""
    bot = robot(client)
    name = f"system:serviceaccount:{client.ns}:robot"
    attempts = (
        {"Impersonate-User": "bob"},
        {"Impersonate-User": "eve"},
        {"Impersonate-User": "bob", "Impersonate-Group": "devs"},
        {"Impersonate-User": "bob", "Impersonate-Group": "ops"},
        {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"},
        {"Impersonate-User": "bob", "Impersonate-Uid": "u-1"},
        {"Impersonate-User": "bob", "Impersonate-Uid": "u-2"},
        {"Impersonate-User": "bob", "Impersonate-Extra-Scopes": "view"},
        {"Impersonate-User": "bob", "Impersonate-Extra-Scopes": "edit"},
        {"Impersonate-User": "bob", "Impersonate-Extra-Other": "view"},
        {"Impersonate-User": f"system:serviceaccount:{client.ns}:sa"},
        {"Impersonate-User": "system:serviceaccount:default:sa"},
        {"Impersonate-User": "system:node:n1"},
        {"Impersonate-User": "system:anonymous"},
    )
    for headers in attempts[:4]:
        bot.get(maps(client), headers=headers)
    rules = [
        rule("impersonate", "users", names="bob system:node:n1"),
        rule("impersonate", "groups", names="devs system:masters"),
        rule("impersonate", "uids", "authentication.k8s.io", "u-1"),
        rule("impersonate", "userextras/scopes", "authentication.k8s.io", "view"),
    ]
    with granted_everywhere(client, name, *rules):
        grant(client, name, rule("impersonate", "serviceaccounts", names="sa"), name="accounts")
        until(lambda: allowed(client, name, "impersonate", "users", ns="", name="bob"))
        for headers in attempts:
            bot.post(
                f"{AUTHN}/selfsubjectreviews",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
                headers=headers,
            )
        bot.get(maps(client), headers=attempts[0])
        bot.get(maps(client), headers=attempts[4])
        bot.get(maps(client), headers=attempts[1])
        bot.get("/version", headers=attempts[1])


@scenario
def impersonation_of_users_for_one_purpose(client: Client) -> None:
    """impersonate:user-info says whom, impersonate-on:user-info:VERB what for: both are needed; system:masters and empty groups are never given; then the impersonated one's rights count."""
    bot = robot(client)
    name = f"system:serviceaccount:{client.ns}:robot"
    target = f"bob-{client.id}"
    client.post(maps(client), config_map(), silent=True)

    def attempts() -> None:
        for method, path, headers in (
            ("GET", maps(client), {}),
            ("GET", f"{maps(client)}/one", {}),
            ("GET", maps(client), {"Impersonate-Group": "devs"}),
            ("GET", maps(client), {"Impersonate-Group": "ops"}),
            ("GET", maps(client), {"Impersonate-Group": "system:masters"}),
            ("GET", maps(client), {"Impersonate-Group": ""}),
            ("GET", maps(client), {"Impersonate-Uid": "u-1"}),
            ("GET", maps(client), {"Impersonate-Extra-Example.com%2Fscopes": "view"}),
            ("GET", maps(client), {"Impersonate-Extra-Scopes": "view"}),
            ("DELETE", f"{maps(client)}/one", {}),
            ("GET", "/api/v1/configmaps", {}),
            ("GET", "/version", {}),
            ("GET", f"/api/v1/namespaces/{client.ns}/secrets", {}),
        ):
            bot.request(method, path, headers={"Impersonate-User": target, **headers})
        bot.get(maps(client), headers={"Impersonate-User": f"eve-{client.id}"})

    attempts()
    grant(client, target, rule("get list", "configmaps"), name="target")
    whom = [
        rule("impersonate:user-info", "users", "authentication.k8s.io", target),
        rule("impersonate:user-info", "groups", "authentication.k8s.io", "devs system:masters"),
        rule("impersonate:user-info", "userextras/example.com/scopes", "authentication.k8s.io", "view"),
        rule("impersonate:user-info", "uids", "authentication.k8s.io", "u-1"),
    ]
    with granted_everywhere(client, name, *whom, suffix="whom"):
        bot.get(maps(client), headers={"Impersonate-User": target})
        grant(client, name, rule("impersonate-on:user-info:list impersonate-on:user-info:get", "configmaps"), name="what")
        attempts()
    grant(client, name, rule("list", "configmaps"), name="own")
    bot.get(maps(client))


@scenario
def impersonation_of_accounts_for_one_purpose(client: Client) -> None:
    """impersonate:serviceaccount in the account's namespace, and impersonate-on:serviceaccount:VERB; with groups, uid or extra it is none of this kind."""
    bot = robot(client)
    name, other = f"system:serviceaccount:{client.ns}:robot", f"system:serviceaccount:{client.ns}:worker"
    grant(client, other, rule("list create", "configmaps"), name="worker")
    for headers in (
        {"Impersonate-User": other},
        {"Impersonate-User": other, "Impersonate-Group": "devs"},
        {"Impersonate-User": "system:serviceaccount:default:worker"},
        {"Impersonate-User": "system:serviceaccount:Bad:worker"},
    ):
        bot.get(maps(client), headers=headers)
    grant(client, name, rule("impersonate:serviceaccount", "serviceaccounts", "authentication.k8s.io", "worker"), name="whom")
    bot.get(maps(client), headers={"Impersonate-User": other})
    grant(
        client,
        name,
        rule(
            "impersonate-on:serviceaccount:list impersonate-on:serviceaccount:create impersonate-on:serviceaccount:delete",
            "configmaps",
        ),
        name="what",
    )
    for method, path, headers in (
        ("GET", maps(client), {}),
        ("POST", maps(client), {}),
        ("DELETE", f"{maps(client)}/one", {}),
        ("GET", f"{maps(client)}/one", {}),
        ("GET", maps(client), {"Impersonate-Group": "system:serviceaccounts"}),
        ("GET", maps(client), {"Impersonate-Uid": "x"}),
        ("GET", maps(client), {"Impersonate-Extra-A": "b"}),
    ):
        bot.request(method, path, config_map() if method == "POST" else None, headers={"Impersonate-User": other, **headers})
    bot.get(maps(client), headers={"Impersonate-User": "system:serviceaccount:default:worker"})
    bot.get(maps(client), headers={"Impersonate-User": f"system:serviceaccount:{client.ns}:stranger"})
    bot.get("/api/v1/configmaps", headers={"Impersonate-User": other})


@scenario
def impersonation_of_nodes_for_one_purpose(client: Client) -> None:
    """impersonate:arbitrary-node for any node; impersonate:associated-node for the node on which the asker's pod runs; the group is system:nodes, no other may be said."""
    node, other = client.name("node"), client.name("other")
    client.post("/api/v1/nodes", {"metadata": {"name": node}}, silent=True)
    client.post(accounts(client), {"metadata": {"name": "agent"}}, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/pods", pod("p", serviceAccountName="agent", nodeName=node), silent=True)
    client.post(accounts(client), {"metadata": {"name": "any"}}, silent=True)
    token = client.post(
        f"{accounts(client)}/agent/token",
        {**TOKEN_REQUEST, "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}},
        silent=True,
    ).get("status", "token", default="none")
    agent, anyone = bearing(client, token), robot(client, "any")
    on_node, on_other = {"Impersonate-User": f"system:node:{node}"}, {"Impersonate-User": f"system:node:{other}"}
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    try:
        for bearer in (agent, anyone):
            bearer.get(pods, headers=on_node)
        with (
            granted_everywhere(
                client,
                f"system:serviceaccount:{client.ns}:agent",
                rule("impersonate:associated-node", "nodes", "authentication.k8s.io"),
                rule("impersonate-on:associated-node:list", "pods"),
                suffix="agent",
            ),
            granted_everywhere(
                client,
                f"system:serviceaccount:{client.ns}:any",
                rule("impersonate:arbitrary-node", "nodes", "authentication.k8s.io", f"{node}"),
                rule("impersonate-on:arbitrary-node:list", "pods"),
                suffix="any",
            ),
        ):
            for bearer in (agent, anyone):
                bearer.get(pods, headers=on_node)
                bearer.get(pods, headers=on_other)
                bearer.get(pods, headers={**on_node, "Impersonate-Group": "system:nodes"})
                bearer.get(pods, headers={**on_node, "Impersonate-Uid": "x"})
                bearer.get(f"{pods}/p", headers=on_node)
                bearer.get(pods, headers={"Impersonate-User": "system:node:Bad_Name"})
            with granted_everywhere(client, f"system:node:{node}", rule("list", "pods"), suffix="node"):
                agent.get(f"{pods}", {"fieldSelector": "metadata.name=none"}, headers=on_node)
                anyone.get(f"{pods}", {"fieldSelector": "metadata.name=none"}, headers=on_node)
    finally:
        client.delete(f"/api/v1/nodes/{node}", silent=True)


# ---------------------------------------------------------------- what may be done


@scenario
def masters_may_do_everything(client: Client) -> None:
    """The group system:masters is asked for no rights: any verb, resource, path; the user of the same name is nobody; the group must be exact."""
    for headers in (
        {"Impersonate-User": "x", "Impersonate-Group": "system:masters"},
        {"Impersonate-User": "system:masters"},
        {"Impersonate-User": "x", "Impersonate-Group": "System:Masters"},
        {"Impersonate-User": "system:admin"},
        {"Impersonate-User": "system:kube-scheduler"},
        {"Impersonate-User": "x", "Impersonate-Group": "system:nodes"},
    ):
        for spec in (
            {"resourceAttributes": {"verb": "delete", "resource": "nodes"}},
            {
                "resourceAttributes": {
                    "verb": "invented",
                    "group": "nosuch.example.com",
                    "resource": "things",
                    "subresource": "sub",
                    "namespace": "x",
                    "name": "y",
                }
            },
            {"nonResourceAttributes": {"path": "/anything", "verb": "invented"}},
            {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}},
        ):
            client.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": spec}, headers=headers)
        reply = client.get("/metrics", headers=headers, silent=True)
        note(client, "metrics", [reply.status, reply.get("message")])


@scenario
def paths_that_are_no_resources(client: Client) -> None:
    """nonResourceURLs: exact, with a star at the end, all; the verb is the method in small letters; only cluster roles can give them."""
    rules = [
        {"nonResourceURLs": ["/debug/*", "/exact", "/version/*"], "verbs": ["get"]},
        {"nonResourceURLs": ["/posted"], "verbs": ["post", "put"]},
        {"nonResourceURLs": ["/all/*"], "verbs": ["*"]},
    ]
    name = f"user-{client.id}"
    with granted_everywhere(client, name, *rules):
        for method, path in (
            ("GET", "/debug/x"),
            ("GET", "/debug/x/y"),
            ("GET", "/debug"),
            ("GET", "/debug/"),
            ("GET", "/debugger"),
            ("GET", "/exact"),
            ("GET", "/exact/"),
            ("GET", "/exact/more"),
            ("POST", "/exact"),
            ("HEAD", "/exact"),
            ("OPTIONS", "/exact"),
            ("POST", "/posted"),
            ("PUT", "/posted"),
            ("PATCH", "/posted"),
            ("GET", "/posted"),
            ("DELETE", "/all/x"),
            ("PROPFIND", "/all/x"),
            ("GET", "/all"),
            ("GET", "/debug/../exact"),
            ("GET", "/debug//x"),
            ("GET", "/DEBUG/x"),
            ("GET", "/debug/%2e%2e/metrics"),
        ):
            reply = client.request(method, path, headers={"Impersonate-User": name}, silent=True)
            note(client, f"{method} {path}", [reply.status, reply.get("message")])
        for path, verb in (
            ("/debug/x", "get"),
            ("/debug", "get"),
            ("/exact", "get"),
            ("/exact", "post"),
            ("/all/a/b", "anything"),
            ("", "get"),
            ("exact", "get"),
            ("*", "get"),
            ("/debug/*", "get"),
        ):
            client.post(
                f"{AUTHZ}/subjectaccessreviews", {"spec": {"user": name, "nonResourceAttributes": {"path": path, "verb": verb}}}
            )
    client.post(f"{RBAC}/namespaces/{client.ns}/roles", role("r", {"nonResourceURLs": ["/x"], "verbs": ["get"]}), DRY)
    client.post(
        f"{RBAC}/clusterroles",
        role(client.name("bad"), {"nonResourceURLs": ["x", "/*/y", "/a*", "*", ""], "verbs": ["get"]}, kind="ClusterRole"),
        DRY,
    )


@scenario
def names_and_selectors(client: Client) -> None:
    """resourceNames with list, watch and deletecollection by metadata.name; other selectors, several names and subresources do not help; create cannot be named, but subresources can."""
    user, path = f"user-{client.id}", f"/apis/apps/v1/namespaces/{client.ns}/deployments"
    for name in ("mine", "ours", "theirs"):
        client.post(path, deployment(name), silent=True)
    grant(
        client,
        user,
        rule("get list watch update patch delete deletecollection create", "deployments", "apps", "mine ours"),
        rule("get update patch", "deployments/scale", "apps", "mine"),
    )
    asker = As(client, {"Impersonate-User": user})
    for selector in (
        "metadata.name=mine",
        "metadata.name==ours",
        "metadata.name=theirs",
        "metadata.name=mine,metadata.namespace=" + client.ns,
        "metadata.namespace=" + client.ns,
        "metadata.name!=theirs",
        "metadata.name=mine,metadata.name=mine",
        "metadata.name=mine,metadata.name=ours",
        "metadata.name=",
        "metadata.name",
    ):
        replies = [
            asker.get(path, {"fieldSelector": selector}, headers={"Accept": PARTIAL}, silent=True),
            asker.get(path, {"fieldSelector": selector, "watch": "1", "timeoutSeconds": "1"}, silent=True),
            asker.delete(path, None, {"fieldSelector": selector, "dryRun": "All"}, silent=True),
        ]
        note(
            client,
            selector,
            [[r.status, r.get("message"), [i["metadata"]["name"] for i in r.get("items", default=None) or []]] for r in replies],
        )
    asker.get(path)
    asker.get(path, {"labelSelector": "app=mine"})
    asker.get(f"{path}/mine", headers={"Accept": PARTIAL})
    asker.get(f"{path}/theirs")
    asker.get("/apis/apps/v1/deployments", {"fieldSelector": "metadata.name=mine"})
    asker.get(f"/apis/apps/v1/watch/namespaces/{client.ns}/deployments/mine", {"timeoutSeconds": "1"}, silent=True)
    asker.post(path, deployment("mine"))
    asker.post(path, deployment("fresh"))
    asker.patch(f"{path}/ours", {"metadata": {"labels": {"a": "b"}}}, MERGE, headers={"Accept": PARTIAL})
    asker.patch(f"{path}/mine/scale", {"spec": {"replicas": 2}}, MERGE)
    asker.patch(f"{path}/ours/scale", {"spec": {"replicas": 2}}, MERGE)
    asker.get(f"{path}/mine/status")
    asker.delete(f"{path}/theirs")
    asker.delete(f"{path}/ours", None, DRY, headers={"Accept": PARTIAL})


@scenario
def subjects_of_every_kind(client: Client) -> None:
    """Users, groups, the built-in groups and service accounts as subjects; namespaces of accounts; cluster roles bound in one namespace or in all; bindings to roles that are not there."""
    roles, api = f"{RBAC}/namespaces/{client.ns}", "rbac.authorization.k8s.io"
    path = maps(client)
    people: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
        "user": (user_subject(f"u-{client.id}"), {"Impersonate-User": f"u-{client.id}"}),
        "odd user": (user_subject(f"u {client.id}@example.com:x"), {"Impersonate-User": f"u {client.id}@example.com:x"}),
        "group": (
            {"kind": "Group", "apiGroup": api, "name": f"g-{client.id}"},
            {"Impersonate-User": "x", "Impersonate-Group": f"g-{client.id}"},
        ),
        "accounts": (
            {"kind": "Group", "apiGroup": api, "name": f"system:serviceaccounts:{client.ns}"},
            {"Impersonate-User": f"system:serviceaccount:{client.ns}:any"},
        ),
        "account": (
            {"kind": "ServiceAccount", "name": "sa", "namespace": f"ns-{client.id}"},
            {"Impersonate-User": f"system:serviceaccount:ns-{client.id}:sa"},
        ),
    }
    client.post(f"{roles}/roles", role("reader", rule("list", "configmaps")), silent=True)
    for what, (subject, headers) in people.items():
        before = client.get(path, headers=headers, silent=True).status
        client.post(f"{roles}/rolebindings", {**binding("b", "reader"), "subjects": [subject]}, silent=True)
        until(lambda: client.get(path, headers=headers, silent=True).status == 200, 5)
        note(
            client,
            what,
            [
                before,
                client.get(path, headers=headers, silent=True).status,
                client.get("/api/v1/configmaps", headers=headers, silent=True).status,
            ],
        )
        client.post(
            f"{AUTHZ}/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"namespace": client.ns, "verb": "list", "resource": "configmaps"}}},
            headers=headers,
        )
        client.delete(f"{roles}/rolebindings/b", silent=True)
        until(lambda: client.get(path, headers=headers, silent=True).status == 403, 5)
        client.get(path, headers=headers)
    name = f"v-{client.id}"
    client.post(f"{roles}/rolebindings", binding("lost", "no-such-role", name), silent=True)
    client.post(
        f"{roles}/rolebindings", binding("lostcluster", "no-such-cluster-role", name, role_kind="ClusterRole"), silent=True
    )
    asked = {"spec": {"user": name, "resourceAttributes": {"namespace": client.ns, "verb": "list", "resource": "configmaps"}}}
    until(
        lambda: (
            "no-such-cluster-role"
            in str(client.post(f"{AUTHZ}/subjectaccessreviews", asked, silent=True).get("status", "evaluationError"))
            and "no-such-role"
            in str(client.post(f"{AUTHZ}/subjectaccessreviews", asked, silent=True).get("status", "evaluationError"))
        ),
        5,
    )
    reply = client.post(f"{AUTHZ}/subjectaccessreviews", asked, silent=True)
    note(
        client,
        "roles that are not there",
        [
            reply.get("status", "allowed"),
            sorted(str(reply.get("status", "evaluationError")).strip("[]").split(", ")),
            sorted(str(reply.get("status", "reason")).removeprefix("RBAC: ").strip("[]").split(", ")),
        ],
    )
    client.delete(f"{roles}/rolebindings/lostcluster", silent=True)
    until(
        lambda: (
            "no-such-cluster-role"
            not in str(client.post(f"{AUTHZ}/subjectaccessreviews", asked, silent=True).get("status", "evaluationError"))
        ),
        5,
    )
    client.post(f"{AUTHZ}/subjectaccessreviews", asked)
    client.get(path, headers={"Impersonate-User": name})
    client.post(f"{roles}/rolebindings", binding("view", "view", name, role_kind="ClusterRole"), silent=True)
    until(lambda: allowed(client, name, "list", "configmaps"), 5)
    client.post(f"{AUTHZ}/subjectaccessreviews", asked)
    for resource, ns in (
        ("configmaps", "default"),
        ("configmaps", ""),
        ("secrets", client.ns),
        ("pods", client.ns),
        ("nodes", ""),
    ):
        client.post(
            f"{AUTHZ}/subjectaccessreviews",
            {"spec": {"user": name, "resourceAttributes": {"namespace": ns, "verb": "list", "resource": resource}}},
        )


@scenario
def nobody_gives_what_he_has_not(client: Client) -> None:
    """Escalation to the letter: what covers what, what is told to be missing, the verbs escalate and bind with names, changes that need nothing."""
    name, roles, api = f"user-{client.id}", f"{RBAC}/namespaces/{client.ns}", "rbac.authorization.k8s.io"
    user = As(client, {"Impersonate-User": name})
    grant(
        client, name, rule("create update patch get delete", "roles rolebindings", api), name="rbac", wait=("get", "roles", api)
    )
    grant(
        client,
        name,
        rule("get list watch", "configmaps secrets"),
        rule("*", "leases", "coordination.k8s.io"),
        rule("get", "pods", names="a b"),
        rule("create", "*", "batch"),
        rule("get", "*/scale", "apps"),
        wait=("watch", "configmaps", ""),
    )
    for n, rules in {
        "same": [rule("get list watch", "configmaps secrets")],
        "less": [rule("get", "secrets")],
        "named": [rule("get", "configmaps", names="x")],
        "split": [rule("get", "configmaps"), rule("list", "secrets")],
        "verb": [rule("get delete", "configmaps")],
        "resource": [rule("get", "configmaps services")],
        "group": [rule("get", "configmaps", ",apps")],
        "star": [rule("*", "configmaps")],
        "starred": [rule("*", "leases", "coordination.k8s.io")],
        "within": [rule("get update patch", "leases", "coordination.k8s.io", "x y")],
        "sub": [rule("get", "leases/status", "coordination.k8s.io")],
        "names": [rule("get", "pods", names="a")],
        "morenames": [rule("get", "pods", names="a c")],
        "nonames": [rule("get", "pods")],
        "anything": [rule("create", "jobs cronjobs jobs/status", "batch")],
        "allstar": [rule("create", "*", "batch")],
        "scale": [rule("get", "deployments/scale", "apps")],
        "scales": [rule("get", "*/scale", "apps")],
        "otherscale": [rule("get", "*/scale", "batch")],
        "empty": [],
        "several": [rule("get", "nodes"), rule("delete", "pods services"), rule("get", "configmaps")],
    }.items():
        reply = user.post(f"{roles}/roles", role(n, *rules), DRY, silent=True)
        note(client, n, [reply.status, reply.get("reason"), reply.get("message")])
    client.post(f"{roles}/roles", role("strong", rule("delete", "configmaps")), silent=True)
    client.post(f"{roles}/roles", role("weak", rule("get", "configmaps")), silent=True)
    client.post(f"{roles}/rolebindings", binding("strongly", "strong", "bob"), silent=True)
    until(lambda: allowed(client, "bob", "delete", "configmaps"))
    user.patch(f"{roles}/roles/strong", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    user.patch(f"{roles}/roles/strong", {"rules": [rule("get", "configmaps")]}, MERGE, DRY)
    user.patch(f"{roles}/roles/strong", {"rules": [rule("delete get", "configmaps")]}, MERGE, DRY)
    user.patch(f"{roles}/rolebindings/strongly", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    user.patch(f"{roles}/rolebindings/strongly", {"subjects": []}, MERGE, DRY)
    user.patch(f"{roles}/rolebindings/strongly", {"subjects": [user_subject("eve")]}, MERGE, DRY)
    user.post(f"{roles}/rolebindings", binding("weakly", "weak", "bob"), DRY)
    user.post(f"{roles}/rolebindings", binding("admin", "cluster-admin", "bob", role_kind="ClusterRole"), DRY)
    user.patch(
        f"{roles}/roles/applied", role("applied", rule("delete", "configmaps")), APPLY, {"fieldManager": "m", "dryRun": "All"}
    )
    user.delete(f"{roles}/roles/strong", None, DRY)
    grant(client, name, rule("bind", "roles", api, "strong"), name="bind", wait=("bind", "roles", api))
    user.post(f"{roles}/rolebindings", binding("bound", "strong", "bob"), DRY)
    user.post(f"{roles}/rolebindings", binding("bound", "cluster-admin", "bob", role_kind="ClusterRole"), DRY)
    grant(
        client, name, rule("bind", "clusterroles", api, "cluster-admin"), name="bindcluster", wait=("bind", "clusterroles", api)
    )
    user.post(f"{roles}/rolebindings", binding("bound", "cluster-admin", "bob", role_kind="ClusterRole"), DRY)
    grant(client, name, rule("escalate", "roles", api, "strong"), name="escalate", wait=("escalate", "roles", api))
    user.patch(f"{roles}/roles/strong", {"rules": [rule("*", "*", "*")]}, MERGE, DRY)
    user.post(f"{roles}/roles", role("other", rule("*", "*", "*")), DRY)


@scenario
def cluster_roles_are_guarded(client: Client) -> None:
    """Escalation by cluster roles: paths, aggregation rules, and rights held in one namespace that do not count for all."""
    name, api = f"user-{client.id}", "rbac.authorization.k8s.io"
    user = As(client, {"Impersonate-User": name})
    grant(client, name, rule("get", "secrets"))
    with granted_everywhere(
        client,
        name,
        rule("create patch update", "clusterroles clusterrolebindings", api),
        rule("get", "configmaps"),
        {"nonResourceURLs": ["/debug/*", "/one"], "verbs": ["get"]},
    ):
        for n, rules in {
            "same": [rule("get", "configmaps")],
            "near": [rule("get", "secrets")],
            "path": [{"nonResourceURLs": ["/one"], "verbs": ["get"]}],
            "below": [{"nonResourceURLs": ["/debug/x"], "verbs": ["get"]}],
            "wide": [{"nonResourceURLs": ["/debug/*"], "verbs": ["get"]}],
            "wider": [{"nonResourceURLs": ["*"], "verbs": ["get"]}],
            "posting": [{"nonResourceURLs": ["/one"], "verbs": ["post"]}],
        }.items():
            reply = user.post(f"{RBAC}/clusterroles", role(client.name(n), *rules, kind="ClusterRole"), DRY, silent=True)
            note(client, n, [reply.status, reply.get("message")])
        user.post(
            f"{RBAC}/clusterroles",
            role(client.name("agg"), kind="ClusterRole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
            DRY,
        )
        user.post(
            f"{RBAC}/clusterrolebindings",
            binding(client.name("b"), "view", "bob", kind="ClusterRoleBinding", role_kind="ClusterRole"),
            DRY,
        )
        user.post(
            f"{RBAC}/clusterrolebindings",
            binding(client.name("b"), "no-such-role", "bob", kind="ClusterRoleBinding", role_kind="ClusterRole"),
            DRY,
        )
        user.post(
            f"{RBAC}/clusterrolebindings",
            binding(client.name("b"), "system:discovery", "bob", kind="ClusterRoleBinding", role_kind="ClusterRole"),
            DRY,
        )
    user.post(f"{RBAC}/clusterroles", role(client.name("later"), rule("get", "configmaps"), kind="ClusterRole"), DRY)


@scenario
def reviews_of_access_to_the_letter(client: Client) -> None:
    """SubjectAccessReview with groups, extra, versions, names, wildcards, odd cases; what is echoed; errors of shape."""
    name, group = f"user-{client.id}", f"team-{client.id}"
    roles = f"{RBAC}/namespaces/{client.ns}"
    grant(
        client,
        name,
        rule("get", "configmaps", names="one"),
        rule("*", "deployments/*", "apps"),
        rule("get", "*", "batch"),
        rule("list", "pods"),
    )
    client.post(
        f"{roles}/rolebindings",
        {
            **binding("team", "view", role_kind="ClusterRole"),
            "subjects": [{"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}],
        },
        silent=True,
    )
    until(
        lambda: client.post(
            f"{AUTHZ}/subjectaccessreviews",
            {"spec": {"groups": [group], "resourceAttributes": {"namespace": client.ns, "verb": "get", "resource": "pods"}}},
            silent=True,
        ).get("status", "allowed")
    )
    at = {"namespace": client.ns}
    for spec in (
        {"user": name, "resourceAttributes": {**at, "verb": "get", "resource": "configmaps", "name": "one"}},
        {"user": name, "resourceAttributes": {**at, "verb": "get", "resource": "configmaps", "name": "two"}},
        {"user": name, "resourceAttributes": {**at, "verb": "get", "resource": "configmaps"}},
        {"user": name, "resourceAttributes": {**at, "verb": "get", "resource": "configmaps", "name": "*"}},
        {"user": name, "resourceAttributes": {**at, "verb": "GET", "resource": "configmaps", "name": "one"}},
        {
            "user": name,
            "resourceAttributes": {**at, "verb": "patch", "group": "apps", "resource": "deployments", "subresource": "scale"},
        },
        {"user": name, "resourceAttributes": {**at, "verb": "patch", "group": "apps", "resource": "deployments"}},
        {
            "user": name,
            "resourceAttributes": {
                **at,
                "verb": "get",
                "group": "batch",
                "version": "v7",
                "resource": "nosuch",
                "subresource": "x",
            },
        },
        {"user": name, "resourceAttributes": {**at, "verb": "get", "group": "*", "resource": "jobs"}},
        {"user": name, "resourceAttributes": {**at, "verb": "get", "group": "batch", "resource": "*"}},
        {"user": name, "resourceAttributes": {**at, "verb": "*", "group": "batch", "resource": "jobs"}},
        {"user": name, "groups": [group], "resourceAttributes": {**at, "verb": "get", "resource": "services"}},
        {"groups": [group], "resourceAttributes": {**at, "verb": "get", "resource": "services"}},
        {"user": "", "groups": [""], "resourceAttributes": {**at, "verb": "get", "resource": "services"}},
        {
            "user": name,
            "extra": {"a": ["b", "c"], "D": []},
            "uid": "7",
            "groups": ["z", "a"],
            "resourceAttributes": {**at, "verb": "list", "resource": "pods"},
        },
        {
            "user": name,
            "resourceAttributes": {**at, "verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "spec.nodeName=x"}},
        },
        {
            "user": name,
            "resourceAttributes": {**at, "verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "a in (b)"}},
        },
        {
            "user": name,
            "resourceAttributes": {
                **at,
                "verb": "list",
                "resource": "pods",
                "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["x"]}]},
            },
        },
        {
            "user": name,
            "resourceAttributes": {
                **at,
                "verb": "list",
                "resource": "pods",
                "fieldSelector": {"requirements": [{"key": "", "operator": "Is", "values": []}]},
            },
        },
        {
            "user": name,
            "resourceAttributes": {**at, "verb": "list", "resource": "pods", "labelSelector": {"rawSelector": "a in (b"}},
        },
        {
            "user": name,
            "resourceAttributes": {
                **at,
                "verb": "list",
                "resource": "pods",
                "labelSelector": {"requirements": [{"key": "a b", "operator": "Exists"}, {"key": "c", "operator": "In"}]},
            },
        },
        {"user": name, "resourceAttributes": {**at, "verb": "list", "resource": "pods", "labelSelector": {}}},
        {
            "user": name,
            "resourceAttributes": {
                **at,
                "verb": "list",
                "resource": "pods",
                "fieldSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]},
            },
        },
        {"user": name, "nonResourceAttributes": {}},
        {"user": name, "nonResourceAttributes": {"path": "/api"}},
        {"user": "x", "groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/api/", "verb": "get"}},
        {"user": "x", "groups": ["system:unauthenticated"], "nonResourceAttributes": {"path": "/version", "verb": "get"}},
        {"user": 5},
        {"user": name, "resourceAttributes": "x"},
    ):
        client.post(
            f"{AUTHZ}/subjectaccessreviews",
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
        )
    client.post(
        f"{AUTHZ}/subjectaccessreviews",
        {
            "metadata": {"namespace": client.ns},
            "spec": {"user": name, "resourceAttributes": {**at, "verb": "list", "resource": "pods"}},
        },
    )
    client.post(
        f"{AUTHZ}/subjectaccessreviews",
        {
            "spec": {"user": name, "resourceAttributes": {**at, "verb": "list", "resource": "pods"}},
            "status": {"allowed": False, "reason": "mine"},
        },
        DRY,
    )
    client.post(f"{AUTHZ}/subjectaccessreviews", {"spec": {"user": name, "extra": 1}}, {"fieldValidation": "Strict"})
    client.post(
        f"{AUTHZ}/subjectaccessreviews",
        {"spec": {"user": name, "resourceAttributes": {**at, "verb": "list", "resource": "pods"}}},
        headers={"Accept": TABLE},
    )
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        client.request(method, f"{AUTHZ}/subjectaccessreviews", {} if method in ("PUT", "PATCH") else None)
    client.get(f"{AUTHZ}/subjectaccessreviews/x")


@scenario
def reviews_of_ones_own_access(client: Client) -> None:
    """SelfSubjectAccessReview and LocalSubjectAccessReview: who may ask, for which namespace, and what the answer repeats."""
    name = f"user-{client.id}"
    grant(client, name, rule("get", "configmaps"))
    local = f"{AUTHZ}/namespaces/{client.ns}/localsubjectaccessreviews"
    asker = As(client, {"Impersonate-User": name})
    for attributes in (
        {"namespace": client.ns, "verb": "get", "resource": "configmaps"},
        {"verb": "get", "resource": "configmaps"},
        {"namespace": "no-such-namespace", "verb": "get", "resource": "configmaps"},
        {"namespace": client.ns, "verb": "get", "resource": "ConfigMaps"},
        {"namespace": client.ns, "verb": "get", "resource": "configmap"},
        {"namespace": client.ns, "verb": "get", "resource": "configmaps", "version": "v9"},
        {},
    ):
        asker.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})
    asker.post(
        f"{AUTHZ}/selfsubjectaccessreviews",
        {"spec": {"user": "admin", "resourceAttributes": {"verb": "get", "resource": "nodes"}}},
        {"fieldValidation": "Strict"},
    )
    asker.post(
        f"{AUTHZ}/selfsubjectaccessreviews",
        {"spec": {"user": "admin", "resourceAttributes": {"verb": "get", "resource": "nodes"}}},
    )
    asker.post(f"{AUTHZ}/selfsubjectaccessreviews", {})
    asker.post(
        f"{AUTHZ}/selfsubjectaccessreviews",
        {"metadata": {"name": "x"}, "spec": {"resourceAttributes": {"verb": "get", "resource": "nodes"}}},
    )
    asker.post(
        f"{AUTHZ}/subjectaccessreviews", {"spec": {"user": name, "resourceAttributes": {"verb": "get", "resource": "nodes"}}}
    )
    asker.post(
        local, {"spec": {"user": name, "resourceAttributes": {"namespace": client.ns, "verb": "get", "resource": "configmaps"}}}
    )
    for body in (
        {
            "metadata": {"namespace": client.ns},
            "spec": {"user": name, "resourceAttributes": {"namespace": client.ns, "verb": "get", "resource": "configmaps"}},
        },
        {
            "metadata": {"namespace": "default"},
            "spec": {"user": name, "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "configmaps"}},
        },
        {"spec": {"user": name, "resourceAttributes": {"verb": "get", "resource": "configmaps"}}},
        {"spec": {}},
        {"metadata": {"namespace": client.ns}, "spec": {"user": name, "nonResourceAttributes": {"path": "/", "verb": "get"}}},
        {"kind": "SubjectAccessReview", "spec": {}},
    ):
        client.post(local, body)
    client.post(f"{AUTHZ}/localsubjectaccessreviews", {"spec": {}})
    client.post(
        f"{AUTHZ}/namespaces/no-such-namespace/localsubjectaccessreviews",
        {
            "metadata": {"namespace": "no-such-namespace"},
            "spec": {
                "user": name,
                "resourceAttributes": {"namespace": "no-such-namespace", "verb": "get", "resource": "configmaps"},
            },
        },
    )
    asker.post(
        f"{AUTHZ}/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"namespace": client.ns, "verb": "get", "resource": "configmaps"}}},
        headers={"Accept": "application/yaml"},
    )


@scenario
def rules_of_oneself(client: Client) -> None:
    """SelfSubjectRulesReview: the rules of all bindings in the namespace, of groups too; roles that are missing; what must be said."""
    name = f"user-{client.id}"
    grant(client, name, rule("get list", "configmaps"), rule("*", "deployments deployments/scale", "apps", "d1 d2"))
    with granted_everywhere(client, name, rule("get", "nodes"), {"nonResourceURLs": ["/one"], "verbs": ["get", "post"]}):
        until(lambda: allowed(client, name, "list", "configmaps"))

        def rules_for(what: str, headers: dict[str, str], ns: str) -> None:
            reply = client.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": ns}}, headers=headers, silent=True)
            note(
                client,
                what,
                {
                    "status": reply.status,
                    **{
                        k: sorted(json.dumps(r, sort_keys=True) for r in reply.get("status", k, default=[]))
                        for k in ("resourceRules", "nonResourceRules")
                    },
                    "incomplete": reply.get("status", "incomplete"),
                    "error": reply.get("status", "evaluationError"),
                },
            )

        rules_for("here", {"Impersonate-User": name}, client.ns)
        rules_for("elsewhere", {"Impersonate-User": name}, "default")
        rules_for("nowhere", {"Impersonate-User": name}, "no-such-namespace")
        rules_for("master", {"Impersonate-User": name, "Impersonate-Group": "system:masters"}, client.ns)
        rules_for("stranger", {"Impersonate-User": "system:anonymous"}, client.ns)
        client.post(f"{RBAC}/namespaces/{client.ns}/rolebindings", binding("lost", "no-such-role", name), silent=True)
        until(
            lambda: client.post(
                f"{AUTHZ}/selfsubjectrulesreviews",
                {"spec": {"namespace": client.ns}},
                headers={"Impersonate-User": name},
                silent=True,
            ).get("status", "evaluationError"),
            5,
        )
        rules_for("with a role that is not there", {"Impersonate-User": name}, client.ns)
    for body in (
        {},
        {"spec": {}},
        {"spec": {"namespace": ""}},
        {"spec": {"namespace": 5}},
        {"metadata": {"name": "x"}, "spec": {"namespace": "none"}},
    ):
        reply = client.post(
            f"{AUTHZ}/selfsubjectrulesreviews",
            body,
            headers={"Impersonate-User": "system:anonymous", "Impersonate-Group": "system:authenticated"},
            silent=True,
        )
        note(client, json.dumps(body), [reply.status, reply.get("reason"), reply.get("message")])
    client.get(f"{AUTHZ}/selfsubjectrulesreviews")


@scenario
def verbs_that_requests_need(client: Client) -> None:
    """Which verb each request needs: watch for watches, deletecollection, patch for applies, create for what an update would make, verbs of subresources, connect's verbs by method."""
    user, path = f"user-{client.id}", f"/apis/coordination.k8s.io/v1/namespaces/{client.ns}/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    client.post(path, lease, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/pods", pod(nodeName="nowhere"), silent=True)
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    for method, target, body, query, ctype in (
        ("GET", path, None, {"watch": "true"}, None),
        ("GET", path, None, {"watch": "false"}, None),
        ("GET", path, None, {"watch": "0"}, None),
        ("GET", path, None, {"watch": ""}, None),
        ("GET", f"{path}/l", None, {"watch": "1"}, None),
        ("GET", f"/apis/coordination.k8s.io/v1/watch/namespaces/{client.ns}/leases", None, None, None),
        ("GET", f"/apis/coordination.k8s.io/v1/watch/namespaces/{client.ns}/leases/l", None, None, None),
        ("HEAD", path, None, None, None),
        ("HEAD", f"{path}/l", None, None, None),
        ("POST", path, lease, None, None),
        ("POST", f"{path}/l", lease, None, None),
        ("PUT", f"{path}/none", lease, None, None),
        ("PATCH", f"{path}/l", {}, None, MERGE),
        ("PATCH", f"{path}/l", lease, {"fieldManager": "m"}, APPLY),
        ("DELETE", f"{path}/l", None, None, None),
        ("DELETE", path, None, None, None),
        ("DELETE", path, None, {"fieldSelector": "metadata.name=l"}, None),
        ("GET", f"{pods}/p/exec", None, {"command": "x"}, None),
        ("POST", f"{pods}/p/exec", None, {"command": "x"}, None),
        ("GET", f"{pods}/p/log", None, {"follow": "true"}, None),
        ("PUT", f"{pods}/p/proxy/x", None, None, None),
        ("PATCH", f"{pods}/p/proxy", {}, None, MERGE),
        ("DELETE", f"{pods}/p/proxy", None, None, None),
        ("HEAD", f"{pods}/p/proxy", None, None, None),
        ("OPTIONS", f"{pods}/p/proxy", None, None, None),
        ("POST", f"{pods}/p/eviction", {}, None, None),
        ("GET", f"{pods}/p/status", None, None, None),
        ("PUT", f"{pods}/p/resize", {}, None, None),
        ("PUT", f"/api/v1/namespaces/{client.ns}/finalize", {}, None, None),
        ("GET", f"/api/v1/namespaces/{client.ns}", None, None, None),
        ("GET", "/api/v1/namespaces", None, {"fieldSelector": f"metadata.name={client.ns}"}, None),
        ("GET", f"/api/v1/namespaces/{client.ns}/nosuch/x/y/z", None, None, None),
        ("GET", "/apis/nosuch.example.com/v1/x", None, None, None),
        ("PROPFIND", path, None, None, None),
        ("TRACE", f"{path}/l", None, None, None),
    ):
        reply = client.request(method, target, body, query, ctype=ctype, headers={"Impersonate-User": user}, silent=True)
        note(client, f"{method} {target.replace(client.ns, 'ns')} {query or ''}", [reply.status, reply.get("message")])
    for verb in ("update", "create", "patch"):
        grant(client, user, rule(verb, "leases", "coordination.k8s.io"), name=verb)
        asker = As(client, {"Impersonate-User": user})
        replies = [
            asker.put(f"{path}/new", {**lease, "metadata": {"name": "new"}}, DRY, silent=True),
            asker.patch(
                f"{path}/newer", {**lease, "metadata": {"name": "newer"}}, APPLY, {**DRY, "fieldManager": "m"}, silent=True
            ),
            asker.post(path, {**lease, "metadata": {"name": "third"}}, DRY, silent=True),
            asker.put(f"{path}/l", lease, DRY, silent=True),
        ]
        note(client, f"with {verb}, too", [[r.status, r.get("message")] for r in replies])


@scenario
def custom_resources_and_their_rights(client: Client) -> None:
    """Group, resource and subresource of custom resources in rules; a grant that is older than the definition; discovery for all."""
    body = definition(client, version={"subresources": {"status": {}}}, names={"singular": "widget", "shortNames": ["wd"]})
    group, name = body["spec"]["group"], f"user-{client.id}"
    user = As(client, {"Impersonate-User": name})
    grant(client, name, rule("get list create", "widgets", group), rule("patch", "widgets/status", group, "one"))
    user.get(f"/apis/{group}/v1/namespaces/{client.ns}/widgets")
    with served(client, body) as path:
        user.post(path, make(body))
        user.get(f"{path}/one", headers={"Accept": PARTIAL})
        user.patch(f"{path}/one/status", {"status": {"a": 1}}, MERGE)
        user.patch(f"{path}/two/status", {"status": {"a": 1}}, MERGE)
        user.patch(f"{path}/one", {"spec": {"a": 1}}, MERGE)
        user.get(f"{path}/one/status")
        user.get(f"/apis/{group}/v1/namespaces/{client.ns}/wd")
        user.get(f"/apis/{group}/v1/namespaces/{client.ns}/widget")
        note(client, "resources", [r["name"] for r in user.get(f"/apis/{group}/v1", silent=True).get("resources", default=[])])
        user.get(f"/apis/{group}")
        user.get(f"{CRDS}/{body['metadata']['name']}")
        user.get(f"/apis/{group}/v1/widgets")
        user.delete(path)
        user.get(f"/apis/{group}/v9/namespaces/{client.ns}/widgets")


@scenario
def signing_requests_bear_their_author(client: Client) -> None:
    """A CertificateSigningRequest gets the asker's name, groups, uid and extra, whatever it says; approving needs the right to the signer."""
    path, name = "/apis/certificates.k8s.io/v1/certificatesigningrequests", client.name("csr")
    asker = f"user-{client.id}"
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(REQUEST.encode()).decode(),
            "signerName": "example.com/signer",
            "usages": ["client auth"],
            "username": "root",
            "groups": ["system:masters"],
            "uid": "0",
            "extra": {"a": ["b"]},
        },
    }
    with granted_everywhere(
        client,
        asker,
        rule(
            "get create update patch delete",
            "certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status",
            "certificates.k8s.io",
        ),
    ):
        as_asker = {
            "Impersonate-User": asker,
            "Impersonate-Group": "devs",
            "Impersonate-Uid": "u-9",
            "Impersonate-Extra-Scopes": "view",
        }
        user = As(client, {"Impersonate-User": asker})
        reply = client.post(path, body, headers=as_asker, silent=True)
        note(
            client,
            "made",
            [reply.status, reply.get("message"), {k: v for k, v in (reply.get("spec") or {}).items() if k != "request"}],
        )
        found = client.get(f"{path}/{name}", silent=True).json or {}
        reply = user.patch(f"{path}/{name}", {"spec": {"username": "root", "usages": ["server auth"]}}, MERGE, silent=True)
        note(client, "changed", [reply.status, reply.get("message"), reply.get("spec", "username"), reply.get("spec", "usages")])
        approved = {**found, "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "R", "message": "m"}]}}
        for rights in ("", "approve"):
            if rights:
                client.post(
                    f"{RBAC}/clusterroles",
                    role(
                        client.name("approver"),
                        rule("approve sign", "signers", "certificates.k8s.io", "example.com/signer"),
                        kind="ClusterRole",
                    ),
                    silent=True,
                )
                client.post(
                    f"{RBAC}/clusterrolebindings",
                    binding(
                        client.name("approver"),
                        client.name("approver"),
                        asker,
                        kind="ClusterRoleBinding",
                        role_kind="ClusterRole",
                    ),
                    silent=True,
                )
                until(
                    lambda: allowed(client, asker, "approve", "signers", "certificates.k8s.io", ns="", name="example.com/signer")
                )
            reply = user.put(f"{path}/{name}/approval", approved, silent=True)
            note(
                client,
                f"approval with {rights or 'nothing'}",
                [
                    reply.status,
                    reply.get("message"),
                    [
                        {k: v for k, v in c.items() if not k.endswith("Time")}
                        for c in reply.get("status", "conditions", default=None) or []
                    ],
                ],
            )
        reply = user.patch(
            f"{path}/{name}/status", {"status": {"certificate": base64.b64encode(b"no certificate").decode()}}, MERGE, silent=True
        )
        note(client, "status", [reply.status, reply.get("message")])
        client.delete(f"{RBAC}/clusterrolebindings/{client.name('approver')}", silent=True)
        client.delete(f"{RBAC}/clusterroles/{client.name('approver')}", silent=True)
        client.delete(f"{path}/{name}", silent=True)
    for spec in (
        {"request": "eA=="},
        {
            "request": base64.b64encode(REQUEST.encode()).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "groups": ["system:masters"],
        },
        {"signerName": "bad"},
        {"usages": []},
        {"usages": ["any", "any"]},
        {"expirationSeconds": 5},
    ):
        reply = client.post(path, {**body, "spec": {**body["spec"], **spec}}, DRY, silent=True)
        note(client, json.dumps({k: v for k, v in spec.items() if k != "request"}), [reply.status, reply.get("message")])


#: A request for a certificate, for no one.
REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHdMIGFAgEAMCMxDzANBgNVBAMMBm5vYm9keTEQMA4GA1UECgwHbm90aGluZzBZ
MBMGByqGSM49AgEGCCqGSM49AwEHA0IABJRVsajnUfC27j4eZCXxycSdOW8BEsMx
+mENWPVVp2dGjsJA4CYAUIy6QN0w487Q4HpRxc7ld7GzPGQsHa/I7LGgADAKBggq
hkjOPQQDAgNHADBEAiAnkFr2C8BOhWez5PhdRm/AHrVSTMECY21tY4MdD7EhQAIg
KxkKnHrwzm/AjNdS1iCVhXijeLc2s9ck9fc/4ykzbis=
-----END CERTIFICATE REQUEST-----
"""


@scenario
def keys_are_published(client: Client) -> None:
    """The issuer's discovery document and keys: who may read them, in which form."""
    client.get("/.well-known/openid-configuration", headers=ALICE)
    client.get("/openid/v1/jwks", headers=NOBODY)
    reply = client.get("/.well-known/openid-configuration", silent=True)
    note(
        client,
        "configuration",
        [
            reply.status,
            {h: reply.headers.get(h) for h in ("content-type", "cache-control")},
            {k: (v if k != "jwks_uri" else str(v).split("/", 3)[-1]) for k, v in (reply.json or {}).items()},
        ],
    )
    client.get("/openid/v1/jwks")
    reply = client.get("/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"}, silent=True)
    note(
        client,
        "keys",
        [
            reply.status,
            {h: reply.headers.get(h) for h in ("content-type", "cache-control")},
            [
                {k: (v if k not in ("x", "y", "kid") else "<of the key>") for k, v in key.items()}
                for key in reply.get("keys", default=[])
            ],
        ],
    )
    bot = robot(client)
    reply = bot.get("/.well-known/openid-configuration", silent=True)
    note(client, "as an account", reply.status)
    for method in ("POST", "HEAD", "DELETE"):
        reply = client.request(method, "/openid/v1/jwks", headers={"Accept": "*/*"}, silent=True)
        note(client, method, [reply.status, reply.headers.get("content-type"), reply.get("message")])
    client.get("/.well-known/other")
    client.get("/openid/v1/nosuch")


@scenario
def controlled_aggregation(client: Client) -> None:
    """A cluster role with an aggregationRule is filled by a controller; without one it stays as it was stored."""
    name = client.name("sum")
    parts = {"a": rule("get", "configmaps"), "b": rule("list", "secrets"), "c": {"nonResourceURLs": ["/x"], "verbs": ["get"]}}
    for n, r in parts.items():
        client.post(
            f"{RBAC}/clusterroles",
            {**role(client.name(n), r, kind="ClusterRole"), "metadata": {"name": client.name(n), "labels": {"sum": client.id}}},
            silent=True,
        )
    client.post(
        f"{RBAC}/clusterroles",
        role(
            name,
            rule("get", "nodes"),
            kind="ClusterRole",
            aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"sum": client.id}}]},
        ),
        silent=True,
    )
    until(
        lambda: len(client.get(f"{RBAC}/clusterroles/{name}", silent=True).get("rules", default=None) or []) == 3,
        10 if "controllers" in client.features else 0.5,
    )
    note(client, "rules", client.get(f"{RBAC}/clusterroles/{name}", silent=True).get("rules"))
    client.patch(f"{RBAC}/clusterroles/{client.name('b')}", {"metadata": {"labels": {"sum": None}}}, MERGE, silent=True)
    until(
        lambda: len(client.get(f"{RBAC}/clusterroles/{name}", silent=True).get("rules", default=None) or []) == 2,
        10 if "controllers" in client.features else 0.5,
    )
    note(client, "rules afterwards", client.get(f"{RBAC}/clusterroles/{name}", silent=True).get("rules"))
    client.patch(f"{RBAC}/clusterroles/{name}", {"rules": [rule("get", "pods")]}, MERGE, silent=True)
    until(
        lambda: client.get(f"{RBAC}/clusterroles/{name}", silent=True).get("rules", 0, "resources") != ["pods"],
        10 if "controllers" in client.features else 0.5,
    )
    note(client, "overwritten", client.get(f"{RBAC}/clusterroles/{name}", silent=True).get("rules"))
    for n in (*parts, "sum"):
        client.delete(f"{RBAC}/clusterroles/{client.name(n)}", silent=True)


# ---------------------------------------------------------------- certificates


class Certified:
    """A client of the scenario's server that shows a certificate of `certificates.SHOWN`."""

    def __init__(self, client: Client, certificate: str, headers: dict[str, str] | None = None) -> None:
        self.client, self.headers = client, headers or {}
        self.context = ssl._create_unverified_context()
        if certificate:
            folder = client.transport.certificates
            self.context.load_cert_chain(folder / f"{certificate}.crt", folder / f"{certificate}.key")

    def request(
        self, method: str, path: str, body: Any = None, query: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        sent = {
            "Accept": "application/json",
            "User-Agent": "replay/1",
            "Content-Type": "application/json",
            **self.headers,
            **(headers or {}),
        }
        connection = http.client.HTTPSConnection(self.client.host, self.client.port, context=self.context, timeout=30)
        try:
            connection.request(
                method,
                f"{path}?{encode_query(query)}" if query else path,
                body=json.dumps(body).encode() if body is not None else None,
                headers=sent,
            )
            answer = connection.getresponse()
            reply = Reply(
                answer.status,
                joined(answer.getheaders()),
                re.sub(rb"X509SHA256=[0-9a-f]{64}", b"X509SHA256=<hash>", answer.read()),
            )
        except (OSError, http.client.HTTPException) as error:
            reply = Reply(-1, {}, type(error).__name__.encode())
        finally:
            connection.close()
        self.client._record(method, path, query, body, sent, reply)
        return reply

    def who(self, **headers: str) -> Reply:
        return self.request(
            "POST", f"{AUTHN}/selfsubjectreviews", {}, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )


@scenario(needs="certificates")
def certificates_name_their_bearer(client: Client) -> None:
    """The common name is the user, organisations are groups, the uid has an attribute of its own; one that expired, is not for clients, or is of another authority, is none."""
    for certificate in ("plain", "grouped", "master", "uid", "nameless", "expired", "server", "stranger", ""):
        bearer = Certified(client, certificate)
        bearer.who()
        bearer.request("GET", maps(client))
        bearer.request("GET", "/version")
    Certified(client, "master").request("POST", maps(client), config_map())
    Certified(client, "grouped").who(Impersonate_User="bob")
    Certified(client, "master").who(Impersonate_User="bob", Impersonate_Group="devs")


@scenario(needs="certificates")
def certificates_beside_tokens(client: Client) -> None:
    """A certificate counts before a token; a bad token does not spoil a good certificate, nor a bad certificate a good token."""
    for certificate in ("plain", "expired", "stranger", ""):
        for token in ("user-token", "wrong", ""):
            Certified(client, certificate, {"Authorization": f"Bearer {token}"} if token else {}).who()


@scenario(needs="certificates")
def certificates_of_the_front_proxy(client: Client) -> None:
    """X-Remote-User, -Group, -Uid and -Extra- are believed from a certificate of the front proxies' authority with an allowed name, and from no other."""
    claims = {
        "X_Remote_User": "remote",
        "X_Remote_Group": "far",
        "X_Remote_Uid": "r-1",
        "X_Remote_Extra_Scopes": "view",
        "X_Remote_Extra_Example.com%2Fkey": "a",
    }
    for certificate in ("proxy", "impostor", "plain", "master", ""):
        bearer = Certified(client, certificate)
        bearer.who(**claims)
        bearer.who(X_Remote_User="system:anonymous")
        bearer.who(X_Remote_Group="far")
        bearer.request("GET", maps(client), headers={"X-Remote-User": "remote"})
        bearer.request("GET", maps(client), headers={"X-Remote-User": "remote", "X-Remote-Group": "system:masters"})
    Certified(client, "proxy").who(X_Remote_User="remote", X_Remote_Group="system:masters", Impersonate_User="bob")
    Certified(client, "proxy", {"Authorization": "Bearer user-token"}).who(**claims)
    Certified(client, "proxy", {"Authorization": "Bearer user-token"}).who()


@scenario(needs="certificates")
def certificates_are_told_to_extensions(client: Client) -> None:
    """The authorities and header names are published in kube-system for extension servers."""
    reply = client.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", silent=True)
    note(
        client,
        "published",
        [
            reply.status,
            {k: (v if "BEGIN" not in v else f"{v.count('BEGIN')} certificates") for k, v in (reply.get("data") or {}).items()},
        ],
    )
    note(
        client,
        "roles",
        sorted(
            i["metadata"]["name"]
            for i in client.get(f"{RBAC}/namespaces/kube-system/roles", silent=True).get("items", default=[])
            if "extension" in i["metadata"]["name"]
        ),
    )
