"""Writes the allocations of a scheduled pod's ResourceClaims, and reserves the claims for the pod.

Invariant: devices of a claim that was written are not allocated again, even while the informer does not have the write yet.

Specified by: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PreBind, bindClaim, isClaimReadyForBinding),
pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go (AssumeClaimAfterAPICall).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.resource_claim import FINALIZER
from fakekube.controllers.scheduler.algorithm import Filters
from fakekube.controllers.scheduler.framework import Lister
from fakekube.controllers.scheduler.plugins.dynamic_resources import CLAIMS, DynamicResources, allocation_of, is_reserved_for

#: The number of attempts to write a claim (retry.DefaultRetry).
_ATTEMPTS: Final = 5


class AssumeCache:
    """Reads objects as the informers have them, but claims as the scheduler has written them last.

    Args:
        lister: the informers.
    """

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._assumed: dict[str, StoredObject] = {}
        """Uid → the claim, until the informer has it."""

    def get(self, resource: str, namespace: str, name: str) -> StoredObject | None:
        """See `Lister.get`."""
        found = self._lister.get(resource, namespace, name)
        return found if found is None or resource != CLAIMS else self._newest(found)

    def list(self, resource: str, namespace: str = "") -> Iterable[StoredObject]:
        """See `Lister.list`."""
        found = self._lister.list(resource, namespace)
        return found if resource != CLAIMS else map(self._newest, found)

    def assume(self, claim: StoredObject) -> None:
        """Takes note of a claim that was written."""
        self._assumed[claim["metadata"]["uid"]] = claim

    def observe(self, claim: StoredObject, *, deleted: bool) -> None:
        """Takes note of a change that the informer has seen."""
        uid = claim["metadata"]["uid"]
        if deleted or (uid in self._assumed and self._newest(claim) is claim):
            self._assumed.pop(uid, None)

    def _newest(self, claim: StoredObject) -> StoredObject:
        assumed = self._assumed.get(claim["metadata"]["uid"])
        return claim if assumed is None or _revision(assumed) <= _revision(claim) else assumed


def _revision(claim: StoredObject) -> int:
    return int(claim["metadata"]["resourceVersion"])


class ClaimBinder:
    """Writes the claims of pods.

    Args:
        client: writes claims.
        cache: reads them.
        has_timestamps: whether allocations have a time, as those with binding conditions need.
    """

    def __init__(self, client: Client, cache: AssumeCache, *, has_timestamps: bool) -> None:
        self._client, self.cache, self._has_timestamps = client, cache, has_timestamps

    def bind(self, filters: Filters, pod: StoredObject, node: str) -> bool:
        """Writes the claims of the cycle's pod. Returns whether all conditions of their devices are met. Raises ApiError."""
        plugin = next((one for one in filters.plugins if isinstance(one, DynamicResources)), None)
        if plugin is None:
            return True
        allocations = iter(plugin.allocations.get(node, ()))
        for claim in plugin.claims:
            allocation = next(allocations) if allocation_of(claim) is None else None
            if not is_reserved_for(claim, pod):
                self.cache.assume(self._write(claim, allocation, pod))
        return self.is_ready(plugin.claims)

    def is_ready(self, claims: Iterable[StoredObject]) -> bool:
        """Reports whether the devices of claims have all conditions that they need (isClaimReadyForBinding)."""
        for one in claims:
            claim = self.cache.get(CLAIMS, one["metadata"]["namespace"], one["metadata"]["name"]) or one
            for result in ((allocation_of(claim) or {}).get("devices") or {}).get("results") or ():
                wanted = set(result.get("bindingConditions") or ())
                if wanted and not wanted <= _true_conditions(claim, result):
                    return False
        return True

    def _write(self, claim: StoredObject, allocation: Object | None, pod: StoredObject) -> Object:
        """Adds an allocation, and the pod to the users of a claim; reads it again after a conflict. Raises ApiError."""
        found: Object = dict(claim)
        metadata = claim["metadata"]
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._write_once(found, allocation, pod)
            except ApiError as error:
                if error.reason != "Conflict":
                    raise
                found = self._client.get(CLAIMS, metadata["name"], namespace=metadata["namespace"])
        return self._write_once(found, allocation, pod)

    def _write_once(self, claim: Object, allocation: Object | None, pod: StoredObject) -> Object:
        metadata = claim["metadata"]
        finalizers = metadata.get("finalizers") or []
        if allocation is not None and FINALIZER not in finalizers:
            claim = self._client.update({**claim, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}})
        status = claim.get("status") or {}
        made = dict(allocation or allocation_of(claim) or {})
        if self._has_timestamps:
            made.setdefault("allocationTimestamp", self._client.now())
        user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        users = [*(status.get("reservedFor") or ()), user]
        return self._client.update(
            {**claim, "status": {**status, "allocation": made, "reservedFor": users}}, subresource="status"
        )


def _true_conditions(claim: StoredObject, result: StoredObject) -> set[str]:
    """Returns the types of the conditions that a device has in the status of a claim."""
    keys = ("driver", "pool", "device", "shareID")
    return {
        condition["type"]
        for device in claim["status"].get("devices") or ()
        if all(device.get(key) == result.get(key) for key in keys)
        for condition in device.get("conditions") or ()
        if condition.get("status") == "True"
    }
