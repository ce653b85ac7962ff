"""Deletes old CertificateSigningRequests: one hour after a decision, 24 hours after creation, or when the certificate expires.

Specified by: pkg/controller/certificates/cleaner/cleaner.go, which lists all of them every hour; here each is deleted at its
own time.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta

from fakekube.controllers.certificates.requests import RESOURCE
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["CSRCleanerController"]

#: How long requests are kept that were denied, have failed or were issued (deniedExpiration, approvedExpiration).
DECIDED = timedelta(hours=1)
#: How long other requests are kept (pendingExpiration).
PENDING = timedelta(hours=24)
#: Timestamps are whole seconds, so that an object is older than a limit one second later.
SECOND = timedelta(seconds=1)


class CSRCleanerController(Reconciler):
    """Deletes old requests."""

    name = "certificatesigningrequest-cleaner-controller"
    client_name = "certificate-controller"
    watches = (RESOURCE,)

    def reconcile(self, key: Key) -> None:
        obj = self.cache.get(RESOURCE, "", key.name)
        expires = min(_expirations(obj), default=None) if obj is not None else None
        if expires is None:
            return
        left = (expires + SECOND - self.clock.now()).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
        else:
            self.client.delete(RESOURCE, key.name)


def _expirations(obj: Object) -> Iterator[datetime]:
    """Yields the times after which the request is to be deleted; the earliest counts."""
    status = obj.get("status") or {}
    issued = bool(status.get("certificate"))
    limits = {"Approved": DECIDED if issued else PENDING, "Denied": DECIDED, "Failed": DECIDED}
    conditions = status.get("conditions") or ()
    if not conditions:
        yield datetime.fromisoformat(obj["metadata"]["creationTimestamp"]) + PENDING
    for condition in conditions:
        updated = condition.get("lastUpdateTime")
        if updated and condition["type"] in limits:
            yield datetime.fromisoformat(updated) + limits[condition["type"]]
        if condition["type"] == "Approved" and issued:
            yield from _certificate_expiration(status["certificate"])


def _certificate_expiration(certificate: str) -> Iterator[datetime]:
    from cryptography import x509

    try:
        yield x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc
    except ValueError:
        return
