"""The plugin DynamicResources: nodes need the devices that the claims of a pod ask for, or have.

The modules that allocate devices are imported when a pod has a claim that is not allocated.

Specified by: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PreEnqueue, PreFilter, Filter),
k8s.io/dynamic-resource-allocation/resourceclaim/claim.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fakekube.apimachinery.selectors.nodes import selects_node
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.informers import is_controlled_by
from fakekube.controllers.scheduler.framework import (
    Code,
    Cycle,
    FilterPlugin,
    Lister,
    NodeInfo,
    PreFilterRejection,
    SchedulingError,
    Status,
)
from fakekube.controllers.volumes.binding import not_created_for_pod

if TYPE_CHECKING:
    from fakekube.controllers.scheduler.device_allocator import Allocator

CLAIMS: Final = "resourceclaims.resource.k8s.io"
SLICES: Final = "resourceslices.resource.k8s.io"
CLASSES: Final = "deviceclasses.resource.k8s.io"
#: The maximum number of users of a claim (ResourceClaimReservedForMaxSize).
_MAX_USERS: Final = 256
#: The first minor in which a search that takes too long is an error, after which the pod is tried again.
_FAILS_AFTER_TIMEOUT_SINCE: Final = 36


class ClaimError(Exception):
    """A pod cannot be scheduled yet because of a claim; the message is that of the scheduler."""


def pod_claims(pod: StoredObject, lister: Lister) -> list[StoredObject]:
    """Returns the claims of a pod (foreachPodResourceClaim). Raises ClaimError."""
    from fakekube.controllers.resource_claim import claim_name

    found = []
    metadata = pod["metadata"]
    for entry in pod["spec"].get("resourceClaims") or ():
        name = claim_name(pod, entry)
        if name is None:
            raise ClaimError(f'pod "{metadata["namespace"]}/{metadata["name"]}": ResourceClaim not created yet')
        if not name:
            continue
        claim = lister.get(CLAIMS, metadata["namespace"], name)
        if claim is None:
            raise ClaimError(f'resourceclaim.resource.k8s.io "{name}" not found')
        if "deletionTimestamp" in claim["metadata"]:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        if "resourceClaimName" not in entry and not is_controlled_by(claim, pod):
            raise ClaimError(not_created_for_pod(claim, pod))
        found.append(claim)
    return found


def allocation_of(claim: StoredObject) -> StoredObject | None:
    """Returns the allocation of a claim; None if it has none."""
    found: StoredObject | None = (claim.get("status") or {}).get("allocation")
    return found


def is_reserved_for(claim: StoredObject, pod: StoredObject) -> bool:
    """Reports whether a claim is reserved for a pod (IsReservedForPod)."""
    return any(one["uid"] == pod["metadata"]["uid"] for one in (claim.get("status") or {}).get("reservedFor") or ())


class DynamicResources(FilterPlugin):
    """Rejects nodes without the devices of the pod's claims; keeps the allocations on the others for the binding."""

    name = "DynamicResources"

    def __init__(self, cycle: Cycle, claims: Sequence[StoredObject]) -> None:
        self._cycle, self.claims = cycle, claims
        self._unallocated = [one for one in claims if allocation_of(one) is None]
        self._allocator: Allocator | None = None
        self.allocations: dict[str, list[Object]] = {}
        """Node → the allocations of the claims that are not allocated."""

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        if not cycle.has_claims:
            return None
        try:
            claims = pod_claims(cycle.pod.obj, cycle.lister)
            for claim in claims:
                _check_claim(claim, cycle)
        except ClaimError as error:
            raise PreFilterRejection(cls._refuse(str(error))) from error
        return cls(cycle, claims) if claims else None

    @classmethod
    def _refuse(cls, reason: str) -> Status:
        return Status(Code.UNRESOLVABLE, (reason,), cls.name)

    def filter(self, node: NodeInfo) -> Status | None:
        if self._unallocated and (refusal := self._allocate(node)) is not None:
            return refusal
        selectors = [(allocation_of(one) or {}).get("nodeSelector") for one in self.claims]
        if not all(selects_node(one, node.obj) for one in selectors if one is not None):
            return self._refuse("resourceclaim not available on the node")
        return None

    def _allocate(self, node: NodeInfo) -> Status | None:
        """Finds devices of a node for the claims that are not allocated. Raises SchedulingError."""
        from fakekube.controllers.scheduler.device_allocator import AllocationTimeout, InvalidPools
        from fakekube.controllers.scheduler.devices import AllocationError

        if self._allocator is None:
            self._allocator = self._new_allocator()
        try:
            found = self._allocator.allocate(node.obj)
        except AllocationError as error:
            raise SchedulingError(f'running "{self.name}" filter plugin: {error}') from error
        except AllocationTimeout as error:
            if self._cycle.minor >= _FAILS_AFTER_TIMEOUT_SINCE:
                raise SchedulingError(f'running "{self.name}" filter plugin: node {node.name}: {error}') from error
            return self._refuse(str(error))
        except InvalidPools as error:
            return self._refuse(str(error))
        if found is None:
            return self._refuse("cannot allocate all claims")
        self.allocations[node.name] = found
        return None

    def _new_allocator(self) -> Allocator:
        from fakekube.controllers.scheduler.device_allocator import Allocator
        from fakekube.controllers.scheduler.devices import gather_allocated_state

        lister = self._cycle.lister
        taken = gather_allocated_state(lister.list(CLAIMS))
        slices = list(lister.list(SLICES))
        return Allocator(self._unallocated, slices, lambda name: lister.get(CLASSES, "", name), taken, minor=self._cycle.minor)


def _check_claim(claim: StoredObject, cycle: Cycle) -> None:
    """Checks that a pod can use a claim, and that its classes exist. Raises ClaimError."""
    users = (claim.get("status") or {}).get("reservedFor") or ()
    if allocation_of(claim) is not None:
        if len(users) >= _MAX_USERS and not is_reserved_for(claim, cycle.pod.obj):
            raise ClaimError("resourceclaim in use")
        return
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        alternatives = [(f"{request['name']}/{one['name']}", one) for one in request.get("firstAvailable") or ()]
        for name, one in alternatives or [(request["name"], request["exactly"])]:
            if cycle.lister.get(CLASSES, "", one["deviceClassName"]) is None:
                raise ClaimError(f"request {name}: device class {one['deviceClassName']} does not exist")
