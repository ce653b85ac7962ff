"""The controllers of bootstrap tokens: one signs the ConfigMap cluster-info with them, the other deletes expired tokens.

Specified by: pkg/controller/bootstrap/{bootstrapsigner,tokencleaner,util}.go, k8s.io/cluster-bootstrap/token/{jws,util}.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from fakekube.apimachinery.codecs import json
from fakekube.apis.well_known import NAMESPACE_SYSTEM, SECRET_TYPE_BOOTSTRAP_TOKEN
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.reconciler import Key, Reconciler

CLUSTER_INFO = Key("kube-public", "cluster-info")
KUBECONFIG, SIGNATURE_PREFIX = "kubeconfig", "jws-kubeconfig-"

_NAME: Final = re.compile(r"bootstrap-token-([a-z0-9]{6})")


def _is_token(obj: StoredObject) -> bool:
    return obj.get("type") == SECRET_TYPE_BOOTSTRAP_TOKEN and obj["metadata"].get("namespace") == NAMESPACE_SYSTEM


def _decode_data(secret: Object) -> Mapping[str, str]:
    """Returns the decoded data of a Secret."""
    return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in (secret.get("data") or {}).items()}


def _parse_expiration(secret: Object) -> datetime | None:
    """Returns the expiration of a token: None if there is none, the earliest time if it is malformed."""
    text = _decode_data(secret).get("expiration", "")
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    return found if found is not None and found.tzinfo is not None else datetime.fromisoformat("0001-01-01T00:00:00+00:00")


class TokenCleaner(Reconciler):
    """Deletes expired tokens; keys are Secrets."""

    name = "token-cleaner-controller"
    client_name = "token-cleaner"
    watches = ("secrets",)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return _is_token(obj)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        return (Key(NAMESPACE_SYSTEM, obj["metadata"]["name"]),) if event_type != "DELETED" and _is_token(obj) else ()

    def reconcile(self, key: Key) -> None:
        secret = self.cache.get("secrets", key.namespace, key.name)
        expires = _parse_expiration(secret) if secret is not None else None
        if secret is None or expires is None:
            return
        left = (expires - self.clock.now()).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
            return
        try:
            self.client.delete("secrets", key.name, namespace=key.namespace, preconditions={"uid": secret["metadata"]["uid"]})
        except ApiError as error:
            if error.reason != "Conflict":
                raise


class BootstrapSigner(Reconciler):
    """Signs cluster-info; its key is the only one."""

    name = "bootstrap-signer-controller"
    client_name = "bootstrap-signer"
    watches = ("secrets", "configmaps")

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return _is_token(obj) if resource == "secrets" else obj["metadata"]["name"] == CLUSTER_INFO.name

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == "secrets":
            return (CLUSTER_INFO,) if _is_token(obj) else ()
        is_info = Key(obj["metadata"]["namespace"], obj["metadata"]["name"]) == CLUSTER_INFO
        return (CLUSTER_INFO,) if is_info and event_type != "DELETED" else ()

    def reconcile(self, key: Key) -> None:
        info = self.cache.get("configmaps", *CLUSTER_INFO)
        data: Mapping[str, str] = (info or {}).get("data") or {}
        if info is None or KUBECONFIG not in data:
            return
        kept = {name: value for name, value in data.items() if not name.startswith(SIGNATURE_PREFIX)}
        signatures = {
            f"{SIGNATURE_PREFIX}{token}": compute_detached_signature(data[KUBECONFIG], token, secret)
            for token, secret in self._get_tokens().items()
        }
        if {**kept, **signatures} != data:
            self.client.update({**info, "data": {**kept, **signatures}})

    def _get_tokens(self) -> dict[str, str]:
        """Returns the secrets of the tokens that are used for signing, by the ids of the tokens."""
        found = {}
        now = self.clock.now()
        for secret in self.cache.list("secrets", NAMESPACE_SYSTEM):
            name, data = _NAME.fullmatch(secret["metadata"]["name"]), _decode_data(secret)
            if not _is_token(secret) or name is None or data.get("token-id") != name[1] or not data.get("token-secret"):
                continue
            expires = _parse_expiration(secret)
            if data.get("usage-bootstrap-signing") == "true" and (expires is None or expires > now):
                found[name[1]] = data["token-secret"]
        return found


def compute_detached_signature(content: str, token: str, secret: str) -> str:
    """Returns the detached JWS (HS256) of a text with a bootstrap token (ComputeDetachedSignature)."""
    header = _encode_base64url(json.dumps({"alg": "HS256", "kid": token}))
    digest = hmac.new(secret.encode(), f"{header}.{_encode_base64url(content.encode())}".encode(), hashlib.sha256).digest()
    return f"{header}..{_encode_base64url(digest)}"


def _encode_base64url(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()
