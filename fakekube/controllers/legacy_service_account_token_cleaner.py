"""Labels and deletes tokens of service accounts that control planes before 1.24 generated, if they were not used for a year.

Every 24 hours: a token Secret that its account lists, that is older than a year, was not used for a year and is mounted by no
pod gets the label invalid-since. If the label is older than a year, the Secret is deleted. Nothing is done in the first year
after the API server began to track the use of tokens.

Specified by: pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from fakekube.apis.core.pods.references import secret_names
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.service_account_tokens import NAME, TYPE, UID

__all__ = ["LegacyTokenCleaner"]

CLEAN_UP_PERIOD = timedelta(days=365)
SYNC_PERIOD = timedelta(hours=24)
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
TRACKING = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking")

_ALL = Key("", "")


class LegacyTokenCleaner(Reconciler):
    """Has a single key, which stands for all token Secrets."""

    name = "legacy-serviceaccount-token-cleaner-controller"
    client_name = "legacy-service-account-token-cleaner"
    watches = ("secrets",)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return False

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        return (_ALL,) if event_type == "ADDED" and obj.get("type") == TYPE else ()

    def reconcile(self, key: Key) -> None:
        tokens = [secret for secret in self.cache.list("secrets") if secret.get("type") == TYPE]
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
        account = self.cache.get("serviceaccounts", metadata["namespace"], annotations.get(NAME, ""))
        if account is None or annotations.get(UID, "") not in ("", account["metadata"]["uid"]):
            return False
        if metadata["name"] not in {one.get("name") for one in account.get("secrets") or ()}:
            return False
        pods = self.cache.list("pods", metadata["namespace"])
        return not any(metadata["name"] in secret_names(pod["spec"]) for pod in pods)

    def _mark_or_delete(self, secret: Object, now: datetime) -> None:
        metadata = secret["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        marked = (metadata.get("labels") or {}).get(INVALID_SINCE, "")
        if _parse_date(marked) is None:
            labels = {"metadata": {"uid": metadata["uid"], "labels": {INVALID_SINCE: _format_date(now)}}}
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
