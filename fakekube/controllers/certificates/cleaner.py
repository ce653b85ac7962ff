"""Old CertificateSigningRequests go: decided ones after an hour, others after a day, and with their certificate.

Specified by: pkg/controller/certificates/cleaner/cleaner.go, which looks at all of them every hour; here each goes when its
time has come.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta

from fakekube.controllers.certificates.requests import RESOURCE
from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["CSRCleanerController"]

DECIDED = timedelta(hours=1)
PENDING = timedelta(hours=24)
#: Times in objects are whole seconds: one more, and an object is older than its limit.
SECOND = timedelta(seconds=1)


class CSRCleanerController(Reconciler):
    """See the module."""

    name = "certificatesigningrequest-cleaner-controller"
    client_name = "certificate-controller"
    watches = (RESOURCE,)

    def reconcile(self, key: Key) -> None:
        obj = self.cache.get(RESOURCE, "", key.name)
        ends = min(_ends(obj), default=None) if obj is not None else None
        if ends is None:
            return
        left = (ends + SECOND - self.clock.now()).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
        else:
            self.client.delete(RESOURCE, key.name)


def _ends(obj: Object) -> Iterator[datetime]:
    """The times after which a request is not kept, each for a reason of its own."""
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
            yield from _expires(status["certificate"])


def _expires(certificate: str) -> Iterator[datetime]:
    from cryptography import x509

    try:
        yield x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc
    except ValueError:
        return
