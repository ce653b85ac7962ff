"""Leader election by a Lease, as client-go's leaderelection.

Specified by: staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go.

Invariant: timestamps of other processes are not used. A lease has expired when this process has seen no change of its record for
the duration in the record.
"""

from __future__ import annotations

import copy
import datetime
import random
import threading
import time
from typing import Any

from defects import active
from transport import Api, ApiError, Broken


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Election:
    """Acquires a lease and keeps it; `lost` is set when it could not be kept.

    Args:
        duration, deadline, period: leaseDurationSeconds; within how many seconds it has to be renewed; how often it is tried.
    """

    def __init__(self, api: Api, namespace: str, name: str, identity: str, duration: int, deadline: float, period: float) -> None:
        self._api = api
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._duration, self._deadline, self._period = duration, deadline, period
        self._observed: dict[str, Any] = {}
        self._observed_at = 0.0
        self._renewed = 0.0
        self.lost = threading.Event()

    def acquire(self) -> None:
        """Waits until this process leads; a thread then renews the lease."""
        while not self._try():
            time.sleep(self._period * (1 + 1.2 * random.random()))
        self._renewed = time.monotonic()
        threading.Thread(target=self._renew, daemon=True).start()
        threading.Thread(target=self._watch_deadline, daemon=True).start()

    def _renew(self) -> None:
        while not self.lost.is_set():
            time.sleep(self._period)
            began = time.monotonic()
            if self._try():
                self._renewed = began

    def _watch_deadline(self) -> None:
        """Renews in a thread of its own, because the request may hang."""
        while active("L1-keeps-leading") or time.monotonic() - self._renewed < self._deadline:
            time.sleep(0.1)
        self.lost.set()

    def release(self) -> None:
        if self._holder() == self._identity:
            body = copy.deepcopy(self._observed)
            body["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now(), "acquireTime": _now()}
            self._write("PUT", f"{self._collection}/{self._name}", body)

    def _holder(self) -> str:
        return str((self._observed.get("spec") or {}).get("holderIdentity") or "")

    def _try(self) -> bool:
        """Tries once to acquire or renew the lease."""
        try:
            found = self._api.request("GET", f"{self._collection}/{self._name}")
        except ApiError as error:
            if error.code != 404:
                print(f"lease: {error}", flush=True)
                return False
            spec = self._spec({"leaseTransitions": 0})
            return self._write("POST", self._collection, {**self._manifest(), "spec": spec})
        except Broken as broken:
            print(f"lease: {broken}", flush=True)
            return False
        if found.get("spec") != self._observed.get("spec"):
            self._observe(found)
        self._observed = found
        if self._holder() not in {"", self._identity} and not self._expired(found["spec"]):
            return False
        body = copy.deepcopy(found)
        body["spec"] = self._spec(found.get("spec") or {})
        if active("L1-no-revision"):
            return self._write("PATCH", f"{self._collection}/{self._name}", {"spec": body["spec"]})
        return self._write("PUT", f"{self._collection}/{self._name}", body)

    def _expired(self, spec: dict[str, Any]) -> bool:
        duration = float(spec.get("leaseDurationSeconds") or 0)
        if active("L1-renew-time"):
            renewed = datetime.datetime.fromisoformat(str(spec.get("renewTime")).replace("Z", "+00:00"))
            return datetime.datetime.now(datetime.UTC) - renewed > datetime.timedelta(seconds=duration)
        if active("L1-ahead") and str(spec.get("renewTime")) > _now():
            return False
        if active("L1-own-duration"):
            duration = self._duration
        return time.monotonic() - self._observed_at > duration

    def _manifest(self) -> dict[str, Any]:
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}

    def _spec(self, old: dict[str, Any]) -> dict[str, Any]:
        spec = {**old, "holderIdentity": self._identity, "leaseDurationSeconds": self._duration, "renewTime": _now()}
        if old.get("holderIdentity") != self._identity:
            spec["acquireTime"] = _now()
            spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + (1 if old.get("holderIdentity") else 0)
        return spec

    def _observe(self, lease: dict[str, Any]) -> None:
        self._observed, self._observed_at = lease, time.monotonic()

    def _write(self, method: str, path: str, body: dict[str, Any]) -> bool:
        try:
            patch = {"content_type": "application/merge-patch+json"} if method == "PATCH" else {}
            self._observe(self._api.request(method, path, None, body, **patch))
        except (ApiError, Broken) as error:
            print(f"lease: {error}", flush=True)
            return False
        return True
