"""serviceaccounts, the identities of pods, and their subresource token: a POST creates a token.

Specified by: pkg/registry/core/serviceaccount; ValidateServiceAccount… of pkg/apis/core/validation;
pkg/registry/core/serviceaccount/storage/token.go; pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fakekube.apimachinery.errors import status
from fakekube.apimachinery.errors.field import invalid
from fakekube.apis.rest.strategy import Strategy, WriteContext, check_key_name
from fakekube.apis.validation.checks import token_seconds
from fakekube.apis.well_known import ENFORCE_MOUNTABLE_SECRETS_ANNOTATION
from fakekube.base.chance import random_uuid
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object

MOUNTABLE_SECRETS_TEXT = (
    f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS_ANNOTATION}]: deprecated in v1.32+; "
    "prefer separate namespaces to isolate access to mounted secrets"
)


class ServiceAccountStrategy(Strategy):
    """The strategy of serviceaccounts."""

    delete_returns_object = True
    checks_metadata_again = True

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        _keep_names(obj)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        _keep_names(obj)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        annotations, before = ((o or {}).get("metadata", {}).get("annotations") or () for o in (obj, old))
        new = ENFORCE_MOUNTABLE_SECRETS_ANNOTATION in annotations and ENFORCE_MOUNTABLE_SECRETS_ANNOTATION not in before
        return [MOUNTABLE_SECRETS_TEXT] if new else []


def _keep_names(obj: Object) -> None:
    """Drops all fields but the name of references to secrets."""
    secrets = obj.get("secrets")
    if secrets:
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]


GROUP, KIND = "authentication.k8s.io", "TokenRequest"


#: A request for exactly this duration gets a token for a year, and warnings after an hour (extended tokens).
EXTENDED = 60 * 60 + 7
EXTENSION = 365 * 24 * 60 * 60

#: Kinds to which a token can be bound: the resource, and whether it is namespaced.
BOUND_KINDS = {"Pod": ("pods", True), "Node": ("nodes", False), "Secret": ("secrets", True)}

#: The audit annotation with the id of a token.
ISSUED_CREDENTIAL = "authentication.kubernetes.io/issued-credential-id"


#: The audit annotation of a request with the UID of another account.
UID_MISMATCH = "authentication.k8s.io/token-request-uid-mismatch"
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
    seconds = spec.get("expirationSeconds", 0)
    _check_duration(seconds)
    now = context.clock.now()
    context.check({**request, "metadata": {**meta, "creationTimestamp": print_time(now)}, "spec": spec})
    bound = _bound_object(context, name, spec.get("boundObjectRef"))
    claims = _claims(context, account, bound, spec, now)
    token = context.services.sign(claims)
    context.annotations.setdefault(ISSUED_CREDENTIAL, ("Metadata", f"JTI={claims['jti']}"))
    expiration = print_time(now + timedelta(seconds=seconds))
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
        context.annotations.setdefault(UID_MISMATCH, ("Metadata", text))
        context.warnings.append(f"{text} but {_UID_GATE} is not enabled. In the future, this will return a conflict error")
    return {**named, "uid": expected}


def _check_duration(seconds: int) -> None:
    errors = token_seconds(seconds, "spec.expirationSeconds")
    if errors:
        raise status.invalid(GROUP, KIND, "", errors)


def _bound_object(context: WriteContext, name: str, reference: Mapping[str, Any] | None) -> _Bound:
    if reference is None:
        return _Bound()
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    if "/" in api_version or kind not in BOUND_KINDS:
        raise status.bad_request(f"cannot bind token to object of type {_go_syntax(api_version, kind)}")
    plural, namespaced = BOUND_KINDS[kind]
    expected = reference.get("name", "")
    check_key_name(expected)
    obj = context.services.get("", plural, context.namespace if namespaced else "", expected)
    if obj is None:
        raise status.not_found("", plural, expected)
    if kind == "Pod" and name != obj["spec"].get("serviceAccountName", ""):
        text = f'cannot bind token for serviceaccount "{name}" to pod running with different serviceaccount name.'
        raise status.bad_request(text)
    uid = reference.get("uid")
    if uid and uid != obj["metadata"].get("uid"):
        raise status.conflict("", kind, expected, uid_mismatch(uid))
    return _Bound(kind, obj)


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
    if bound.obj is not None:
        private[bound.kind.lower()] = _reference(bound.obj["metadata"])
    if bound.obj is not None and bound.kind == "Pod":
        node = bound.obj["spec"].get("nodeName")
        if node:
            found = context.services.get("", "nodes", "", node) or {"metadata": {"name": node}}
            private["node"] = _reference(found["metadata"])
        if seconds == EXTENDED and set(audiences) == {context.services.issuer}:
            private["warnafter"], seconds = at + seconds, EXTENSION
    return {
        "aud": audiences,
        "exp": at + seconds,
        "iat": at,
        "iss": context.services.issuer,
        "jti": random_uuid(),
        "kubernetes.io": dict(sorted(private.items())),
        "nbf": at,
        "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
    }


def _reference(meta: Mapping[str, Any]) -> dict[str, str]:
    return {field: meta[field] for field in ("name", "uid") if meta.get(field)}
