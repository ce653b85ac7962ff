"""The controllers of ServiceAccounts and of their token Secrets.

The ServiceAccount controller creates the account `default` in each namespace.

The tokens controller writes tokens into Secrets of type kubernetes.io/service-account-token, and deletes the Secrets of deleted
accounts.

The cleaner labels and deletes tokens that control planes before 1.24 generated, if they were not used for a year. Every 24 hours:
a token Secret that its account lists, that is older than a year, was not used for a year and is mounted by no pod gets the label
invalid-since. If the label is older than a year, the Secret is deleted. Nothing is done in the first year after the API server
began to track the use of tokens.

Specified by: pkg/controller/serviceaccount/{serviceaccounts_controller,tokens_controller,legacy_serviceaccount_token_cleaner}.go,
pkg/serviceaccount/legacy.go (LegacyClaims).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from fakekube.apis.core.pods.visitor import secret_names
from fakekube.apis.well_known import (
    DEFAULT_SERVICE_ACCOUNT_NAME,
    INVALID_SINCE_LABEL_KEY,
    SECRET_TYPE_SERVICE_ACCOUNT_TOKEN,
    SERVICE_ACCOUNT_NAME_KEY,
    SERVICE_ACCOUNT_UID_KEY,
    service_account_username,
)
from fakekube.apiserver.auth.service_accounts import LEGACY_ISSUER
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_namespace_terminating, parse_time
from fakekube.controllers.reconciler import Key, Reconciler


class ServiceAccountController(Reconciler):
    """Creates the account of a new namespace, and creates it again when it is deleted."""

    name = "serviceaccount-controller"
    watches = ("namespaces", "serviceaccounts")

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "namespaces":
            return () if event_type == "DELETED" else (Key("", metadata["name"]),)
        if event_type == "DELETED" and metadata["name"] == DEFAULT_SERVICE_ACCOUNT_NAME:
            return (Key("", metadata["namespace"]),)
        return ()

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource == "namespaces" or (obj is old and obj["metadata"]["name"] == DEFAULT_SERVICE_ACCOUNT_NAME)

    def reconcile(self, key: Key) -> None:
        namespace = self.client.get("namespaces", key.name)
        if namespace["status"].get("phase") == "Terminating":
            return
        account = {
            "kind": "ServiceAccount",
            "apiVersion": "v1",
            "metadata": {"name": DEFAULT_SERVICE_ACCOUNT_NAME, "namespace": key.name},
        }
        try:
            self.client.create(account)
        except ApiError as error:
            if error.reason != "AlreadyExists" and not is_namespace_terminating(error):
                raise


_ACCOUNT, _SECRET = "serviceaccount", "secret"


class TokensController(Reconciler):
    """Keys identify an account with its uid, or a Secret with name and uid of its account."""

    name = "serviceaccount-token-controller"
    client_name = "tokens-controller"
    watches = ("secrets", "serviceaccounts")

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return obj is old if resource == "serviceaccounts" else obj.get("type") == SECRET_TYPE_SERVICE_ACCOUNT_TOKEN

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "serviceaccounts":
            return (_new_key(metadata["namespace"], _ACCOUNT, metadata["name"], metadata["uid"]),)
        if obj.get("type") != SECRET_TYPE_SERVICE_ACCOUNT_TOKEN:
            return ()
        return (_new_key(metadata["namespace"], _SECRET, metadata["name"], *_account_of(obj)),)

    def reconcile(self, key: Key) -> None:
        kind, name, *rest = key.name.split("/")
        if kind == _ACCOUNT:
            self._sync_service_account(key.namespace, name, rest[0])
        elif rest[0]:
            self._sync_secret(key.namespace, name, *rest)

    def _sync_service_account(self, namespace: str, name: str, uid: str) -> None:
        """Deletes the tokens of an account that does not exist."""
        if self._get_account(namespace, name, uid) is not None:
            return
        for secret in self.cache.list("secrets", namespace):
            if secret.get("type") == SECRET_TYPE_SERVICE_ACCOUNT_TOKEN and _account_of(secret) == (name, uid):
                self._delete_secret(secret)

    def _sync_secret(self, namespace: str, name: str, account: str, uid: str) -> None:
        secret = self.cache.get("secrets", namespace, name)
        found = self._get_account(namespace, account, uid)
        if secret is None:
            if found is not None:
                self._remove_reference(found, name)
        elif found is None:
            self._delete_secret(secret)
        else:
            self._generate_token_if_needed(secret, found)

    def _get_account(self, namespace: str, name: str, uid: str) -> Object | None:
        found = self.cache.get("serviceaccounts", namespace, name)
        return found if found is not None and uid in ("", found["metadata"]["uid"]) else None

    def _delete_secret(self, secret: Object) -> None:
        metadata = secret["metadata"]
        try:
            self.client.delete(
                "secrets", metadata["name"], namespace=metadata["namespace"], preconditions={"uid": metadata["uid"]}
            )
        except ApiError as error:
            if error.reason != "Conflict":
                raise

    def _remove_reference(self, account: Object, secret: str) -> None:
        """Removes a deleted Secret from the list of an account."""
        secrets = account.get("secrets") or []
        kept = [one for one in secrets if one.get("name") != secret]
        if len(kept) != len(secrets):
            self.client.update({**account, "secrets": kept})

    def _generate_token_if_needed(self, secret: Object, account: Object) -> None:
        """Writes the CA certificate, the namespace and the token into a Secret, where they are missing."""
        metadata, data = secret["metadata"], dict(secret.get("data") or {})
        authority = _encode_base64(self.context.root_certificate)
        if data.get("ca.crt") != authority:
            data["ca.crt"] = authority
        if not data.get("namespace"):
            data["namespace"] = _encode_base64(metadata["namespace"])
        if not data.get("token"):
            data["token"] = _encode_base64(self.context.services.sign(_legacy_claims(account, metadata["name"])))
        if data == secret.get("data"):
            return
        own = account["metadata"]
        annotations = {
            **(metadata.get("annotations") or {}),
            SERVICE_ACCOUNT_NAME_KEY: own["name"],
            SERVICE_ACCOUNT_UID_KEY: own["uid"],
        }
        self.client.update({**secret, "metadata": {**metadata, "annotations": annotations}, "data": data})


def _new_key(namespace: str, *parts: str) -> Key:
    return Key(namespace, "/".join(parts))


def _account_of(secret: StoredObject) -> tuple[str, str]:
    """Returns name and uid of the account in a Secret's annotations; the uid may be ""."""
    annotations: Mapping[str, str] = secret["metadata"].get("annotations") or {}
    return annotations.get(SERVICE_ACCOUNT_NAME_KEY, ""), annotations.get(SERVICE_ACCOUNT_UID_KEY, "")


def _legacy_claims(account: Object, secret: str) -> dict[str, str]:
    metadata, prefix = account["metadata"], "kubernetes.io/serviceaccount/"
    return {
        "iss": LEGACY_ISSUER,
        "sub": service_account_username(metadata["namespace"], metadata["name"]),
        prefix + "namespace": metadata["namespace"],
        prefix + "secret.name": secret,
        prefix + "service-account.name": metadata["name"],
        prefix + "service-account.uid": metadata["uid"],
    }


def _encode_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


CLEAN_UP_PERIOD: Final = timedelta(days=365)
SYNC_PERIOD: Final = timedelta(hours=24)
LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
TRACKING: Final = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking")

_ALL: Final = Key("", "")


class LegacyTokenCleaner(Reconciler):
    """Has a single key, which stands for all token Secrets."""

    name = "legacy-serviceaccount-token-cleaner-controller"
    client_name = "legacy-service-account-token-cleaner"
    watches = ("secrets",)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return False

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        return (_ALL,) if event_type == "ADDED" and obj.get("type") == SECRET_TYPE_SERVICE_ACCOUNT_TOKEN else ()

    def reconcile(self, key: Key) -> None:
        tokens = [secret for secret in self.cache.list("secrets") if secret.get("type") == SECRET_TYPE_SERVICE_ACCOUNT_TOKEN]
        if not tokens:
            return
        self.requeue_after(_ALL, SYNC_PERIOD.total_seconds())
        now = self.clock.now()
        tracked = self.cache.get("configmaps", *TRACKING)
        since = _parse_date((tracked or {}).get("data", {}).get("since", ""))
        if since is None or now < since + timedelta(days=1) + CLEAN_UP_PERIOD:
            return
        for secret in tokens:
            if self._is_unused(secret, now):
                self._mark_or_delete(secret, now)

    def _is_unused(self, secret: Object, now: datetime) -> bool:
        metadata = secret["metadata"]
        if parse_time(metadata["creationTimestamp"]) >= now - CLEAN_UP_PERIOD or "deletionTimestamp" in metadata:
            return False
        used = (metadata.get("labels") or {}).get(LAST_USED)
        if used is not None and (_parse_date(used) is None or used >= _format_date(now - CLEAN_UP_PERIOD)):
            return False
        annotations = metadata.get("annotations") or {}
        account = self.cache.get("serviceaccounts", metadata["namespace"], annotations.get(SERVICE_ACCOUNT_NAME_KEY, ""))
        if account is None or annotations.get(SERVICE_ACCOUNT_UID_KEY, "") not in ("", account["metadata"]["uid"]):
            return False
        if metadata["name"] not in {one.get("name") for one in account.get("secrets") or ()}:
            return False
        pods = self.cache.list("pods", metadata["namespace"])
        return not any(metadata["name"] in secret_names(pod["spec"]) for pod in pods)

    def _mark_or_delete(self, secret: Object, now: datetime) -> None:
        metadata = secret["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        marked = (metadata.get("labels") or {}).get(INVALID_SINCE_LABEL_KEY, "")
        if _parse_date(marked) is None:
            labels = {"metadata": {"uid": metadata["uid"], "labels": {INVALID_SINCE_LABEL_KEY: _format_date(now)}}}
            self.client.patch("secrets", name, labels, namespace=namespace)
        elif marked < _format_date(now - CLEAN_UP_PERIOD):
            preconditions = {"resourceVersion": metadata["resourceVersion"]}
            try:
                self.client.delete("secrets", name, namespace=namespace, preconditions=preconditions)
            except ApiError as error:
                if error.reason != "Conflict":
                    raise


def _parse_date(text: str) -> datetime | None:
    try:
        return datetime.strptime(text + "+0000", "%Y-%m-%d%z")
    except ValueError:
        return None


def _format_date(time: datetime) -> str:
    return time.strftime("%Y-%m-%d")
