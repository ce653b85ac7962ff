"""The subresource token of service accounts: a POST creates a token, with claims about the account and the object it is bound to.

`apiserver.auth.service_accounts` signs the claims, and authenticates with tokens.

Specified by: pkg/registry/core/serviceaccount/storage/token.go; pkg/serviceaccount/claims.go; ValidateTokenRequest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors.field import invalid, not_supported
from fakekube.apis.rest.strategy import WriteContext, check_key_name
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import token_seconds
from fakekube.apis.well_known import service_account_groups, service_account_username
from fakekube.base.chance import random_uuid
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object

GROUP, KIND = "authentication.k8s.io", "TokenRequest"


#: A request for exactly this duration gets a token for a year, and warnings after an hour (extended tokens).
_EXTENDED = 60 * 60 + 7
_EXTENSION = 365 * 24 * 60 * 60

#: Kinds to which a token can be bound: the resource, and whether it is namespaced.
_BOUND_KINDS = {"Pod": ("pods", True), "Node": ("nodes", False), "Secret": ("secrets", True)}

#: Kinds of webhook configurations, to which a token for a webhook can be bound.
_WEBHOOK_KINDS: Mapping[str, str] = {
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
}
_WEBHOOK_GATE = "APIServerWebhookAuthenticationToken"
_REVIEWED_GROUPS = "admissionReviewAPIGroups"
"""The attestation of the API groups whose reviews a token is for."""
_KNOWS_ATTESTATIONS = 37
"""The first minor that knows attestations."""
_WEBHOOK_SECONDS = 10 * 60
"""The longest life of a token for a webhook."""

#: The audit annotation with the id of a token.
_ISSUED_CREDENTIAL = "authentication.kubernetes.io/issued-credential-id"


#: The audit annotation of a request with the UID of another account.
_UID_MISMATCH = "authentication.k8s.io/token-request-uid-mismatch"
_UID_GATE = "TokenRequestServiceAccountUIDValidation"
_KNOWS_UID = 34
"""The first minor that looks at the UID of a TokenRequest."""


@dataclass(slots=True, frozen=True)
class _Bound:
    """The object to which a token is bound."""

    kind: str = ""
    obj: Mapping[str, Any] | None = None


def request_token(context: WriteContext, name: str, request: Object) -> Object:
    """Handles a POST to serviceaccounts/token. Raises StatusError: 404, 409 for another uid, 422, 400."""
    _check_name(name, request.get("metadata") or {})
    account = context.services.get("", "serviceaccounts", context.namespace, name)
    if account is None:
        raise status.not_found("", "serviceaccounts", name)
    meta = _metadata(context, name, request.get("metadata") or {}, account["metadata"])
    spec = dict(request.get("spec") or {})
    if not spec.get("audiences"):
        spec["audiences"] = [context.services.issuer]
    _check_spec(spec, context.emulation.minor)
    now = context.clock.now()
    context.check({**request, "metadata": {**meta, "creationTimestamp": print_time(now)}, "spec": spec})
    bound = _bound_object(context, name, spec)
    claims = _claims(context, account, bound, spec, now)
    token = context.services.sign(claims)
    context.annotations.setdefault(_ISSUED_CREDENTIAL, ("Metadata", f"JTI={claims['jti']}"))
    expiration = print_time(now + timedelta(seconds=spec["expirationSeconds"]))
    return {
        **request,
        "metadata": {**meta, "creationTimestamp": print_time(now)},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": expiration},
    }


def _check_name(name: str, meta: Mapping[str, Any]) -> None:
    expected = meta.get("name")
    if expected and expected != name:
        text = "must match the service account name if specified"
        raise status.invalid(GROUP, KIND, name, [invalid("metadata.name", expected, text)])


def _metadata(context: WriteContext, name: str, meta: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the metadata of the response: that of the request, with name, namespace and uid of the account.

    Another uid is kept while the feature gate is off; before 1.34 there is none, and nothing is added.

    Raises StatusError 409 for another uid.
    """
    named = {**meta, "name": name, "namespace": context.namespace}
    if context.emulation.minor < _KNOWS_UID:
        return named
    uid = account.get("uid", "")
    expected = meta.get("uid") or uid
    if expected != uid:
        text = f"the UID in the token request ({expected}) does not match the UID of the service account ({uid})"
        if context.emulation.enabled(_UID_GATE):
            raise status.conflict(GROUP, KIND, name, text)
        context.annotations.setdefault(_UID_MISMATCH, ("Metadata", text))
        context.warnings.append(f"{text} but {_UID_GATE} is not enabled. In the future, this will return a conflict error")
    return {**named, "uid": expected}


def _check_spec(spec: Mapping[str, Any], minor: int) -> None:
    """Validates a request (ValidateTokenRequest). Raises StatusError 422."""
    errors = token_seconds(spec.get("expirationSeconds", 0), "spec.expirationSeconds")
    attestations = spec.get("attestations") or {}
    is_webhook = minor >= _KNOWS_ATTESTATIONS and _is_webhook(spec.get("boundObjectRef"))
    if is_webhook:
        if len(spec["audiences"]) != 1:
            errors.append(invalid("spec.audiences", spec["audiences"], "must be length 1 when bound to a webhook config"))
        errors += _validate_attestations(spec.get("attestations"), "spec.attestations")
    elif attestations and minor >= _KNOWS_ATTESTATIONS:
        text = "attestations may only be specified with a webhook bound object reference"
        errors = [invalid("spec.attestations", attestations, text)]
    if errors:
        raise status.invalid(GROUP, KIND, "", errors)


def _is_webhook(reference: Mapping[str, Any] | None) -> bool:
    known = {"apiVersion": "admissionregistration.k8s.io/v1"}
    return reference is not None and reference.get("kind") in _WEBHOOK_KINDS and known.items() <= reference.items()


def _validate_attestations(attestations: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    if not attestations or len(attestations) != 1:
        text = f"webhook bound requests require exactly one {_REVIEWED_GROUPS} attestation"
        return [invalid(path, attestations, text)]
    ((key, values),) = attestations.items()
    path = f"{path}[{key}]"
    if key != _REVIEWED_GROUPS:
        return [not_supported(path, key, [_REVIEWED_GROUPS])]
    if len(values or ()) != 1:
        return [invalid(path, values, "must specify a single value")]
    group, path = values[0], f"{path}[0]"
    if not group:
        return [invalid(path, group, "may not be an empty string")]
    texts = [] if group == "*" else names.dns_subdomain(group)
    return [invalid(path, group, f"must specify a valid API Group: {text}") for text in texts]


def _bound_object(context: WriteContext, name: str, spec: dict[str, Any]) -> _Bound:
    reference = spec.get("boundObjectRef")
    if reference is None:
        return _Bound()
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    if context.emulation.minor >= _KNOWS_ATTESTATIONS and _is_webhook(reference):
        return _bound_webhook(context, name, spec, reference)
    if "/" in api_version or kind not in _BOUND_KINDS:
        raise status.bad_request(f"cannot bind token to object of type {_go_syntax(api_version, kind)}")
    plural, namespaced = _BOUND_KINDS[kind]
    expected = reference.get("name", "")
    check_key_name(expected)
    obj = context.services.get("", plural, context.namespace if namespaced else "", expected)
    if obj is None:
        raise status.not_found("", plural, expected)
    if kind == "Pod" and name != obj["spec"].get("serviceAccountName", ""):
        text = f'cannot bind token for serviceaccount "{name}" to pod running with different serviceaccount name.'
        raise status.bad_request(text)
    _check_uid(reference, obj, "")
    return _Bound(kind, obj)


def _check_uid(reference: Mapping[str, Any], obj: Mapping[str, Any], group: str) -> None:
    uid = reference.get("uid")
    if uid and uid != obj["metadata"].get("uid"):
        raise status.conflict(group, reference["kind"], reference["name"], uid_mismatch(uid))


def _bound_webhook(context: WriteContext, name: str, spec: dict[str, Any], reference: Mapping[str, Any]) -> _Bound:
    """Returns the webhook configuration that a token is for; shortens the life of the token.

    Raises StatusError: 400, 403 if the account may not attest the group, or no webhook has the audience and the group.
    """
    kind = reference["kind"]
    if not context.emulation.enabled(_WEBHOOK_GATE):
        shown = _go_syntax(reference["apiVersion"], kind)
        raise status.bad_request(f"cannot bind token to object of type {shown} (feature gate {_WEBHOOK_GATE} is disabled)")
    (audience,), (group,) = spec["audiences"], spec["attestations"][_REVIEWED_GROUPS]
    if audience == context.services.issuer:
        raise status.bad_request("api server audiences are invalid for webhook token requests")
    spec["expirationSeconds"] = min(spec["expirationSeconds"], _WEBHOOK_SECONDS)
    _check_attests(context, name, group)
    found = context.services.get("admissionregistration.k8s.io", _WEBHOOK_KINDS[kind], "", reference.get("name", ""))
    if found is None or (group != "*" and not any(_is_for(hook, audience, group) for hook in found.get("webhooks") or ())):
        raise status.forbidden("", "serviceaccounts/token", name, "token request denied")
    _check_uid(reference, found, "admissionregistration.k8s.io")
    return _Bound(kind, found)


def _check_attests(context: WriteContext, name: str, group: str) -> None:
    account = service_account_username(context.namespace, name)
    question = {"group": "authentication.k8s.io", "version": "*", "resource": _REVIEWED_GROUPS, "verb": "attest", "name": group}
    groups = (*service_account_groups(context.namespace), "system:authenticated")
    allowed, reason = context.services.authorize(account, groups, {"resourceAttributes": question})
    if not allowed:
        who = f"User {go_quote(account)} cannot attest"
        problem = f'{who} resource "{_REVIEWED_GROUPS}" in API group "authentication.k8s.io" at the cluster scope'
        problem = f"{problem}: {reason}" if reason else problem
        raise status.forbidden("authentication.k8s.io", _REVIEWED_GROUPS, group, problem)


def _is_for(hook: Mapping[str, Any], audience: str, group: str) -> bool:
    """Reports whether a webhook has the audience, which is its URL, and reviews objects of the group."""
    groups = {one for rule in hook.get("rules") or () for one in rule.get("apiGroups") or ()}
    client = hook.get("clientConfig") or {}
    return not groups.isdisjoint((group, "*")) and audience in (client.get("url"), _url_of(client.get("service")))


def _url_of(service: Mapping[str, Any] | None) -> str:
    if service is None:
        return ""
    path = service.get("path") or "/"
    return f"https://{service['name']}.{service['namespace']}.svc:{service.get('port', 443)}/{path.removeprefix('/')}"


def _go_syntax(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def uid_mismatch(uid: str) -> str:
    """Returns the text about a bound object that has another UID."""
    return (
        f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )


def _claims(context: WriteContext, account: Object, bound: _Bound, spec: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    meta, at = account["metadata"], int(now.timestamp())
    audiences, seconds = spec["audiences"], spec["expirationSeconds"]
    private: dict[str, Any] = {"namespace": meta["namespace"], "serviceaccount": _reference(meta)}
    if spec.get("attestations"):
        private["attestations"] = spec["attestations"]
    if bound.obj is not None:
        private[bound.kind.lower()] = _reference(bound.obj["metadata"])
    if bound.obj is not None and bound.kind == "Pod":
        node = bound.obj["spec"].get("nodeName")
        if node:
            found = context.services.get("", "nodes", "", node) or {"metadata": {"name": node}}
            private["node"] = _reference(found["metadata"])
        if seconds == _EXTENDED and set(audiences) == {context.services.issuer}:
            private["warnafter"], seconds = at + seconds, _EXTENSION
    return {
        "aud": audiences,
        "exp": at + seconds,
        "iat": at,
        "iss": context.services.issuer,
        "jti": random_uuid(),
        "kubernetes.io": dict(sorted(private.items())),
        "nbf": at,
        "sub": service_account_username(meta["namespace"], meta["name"]),
    }


def _reference(meta: Mapping[str, Any]) -> dict[str, str]:
    return {field: meta[field] for field in ("name", "uid") if meta.get(field)}
