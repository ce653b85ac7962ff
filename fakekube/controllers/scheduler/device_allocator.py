"""Allocates devices for the claims of a pod on one node.

The search is exhaustive: for each request of each claim it tries one device after the other, and takes the first solution.
Its time has a bound.

Invariant: what an attempt has taken is returned when the attempt fails.

Specified by: k8s.io/dynamic-resource-allocation/structured/internal/experimental/{allocator_experimental,constraint}.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import thread_time
from typing import Any, Final

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.base.chance import random_uuid
from fakekube.base.depth import with_deep_stack
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.scheduler.devices import (
    AllocatedState,
    AllocationError,
    Capacity,
    Device,
    DeviceID,
    PoolID,
    consumed_capacity,
    consumed_counters,
    gather_pools,
    is_tainted,
    matches_node,
    select,
)

#: The fields of a device, and of a result, about conditions that have to be met before its pod is bound.
BINDING_CONDITIONS: Final = ("bindingConditions", "bindingFailureConditions")
#: The maximum number of devices of a claim (AllocationResultsMaxSize).
_MAX_RESULTS: Final = 32
#: The first minor whose errors name the request with which a claim exceeds the maximum.
_NAMES_REQUEST_SINCE: Final = 37
#: Seconds of processor time for one node (DynamicResourcesArgs.filterTimeout, which are real seconds there).
_FILTER_TIMEOUT: Final = 10.0
#: Returns what an attempt has taken.
_Undo = Callable[[], None]


class InvalidPools(Exception):
    """No devices were found on this node, and some of its pools are invalid."""


class AllocationTimeout(Exception):
    """The search for devices on this node takes too long."""


@dataclass(slots=True)
class _Request:
    """A request of a claim, or a subrequest: one of several alternatives."""

    content: StoredObject
    """The fields about the devices."""
    parent: str
    """The name of the request, if this is a subrequest; else ""."""
    request_name: str
    device_class: StoredObject
    count: int = 0
    every: list[Device] | None = None
    """All devices that match, if the request asks for all of them."""
    matches: dict[DeviceID, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in results."""
        return f"{self.parent}/{self.request_name}" if self.parent else self.request_name

    @property
    def names(self) -> frozenset[str]:
        """The names by which constraints and configurations refer to it."""
        return frozenset({self.parent, self.name} if self.parent else {self.name})

    @property
    def is_administrative(self) -> bool:
        """Whether it asks for devices although they are in use."""
        return bool(self.content.get("adminAccess"))

    @property
    def capacities(self) -> Mapping[str, Any]:
        """The capacities that it asks for."""
        found: Mapping[str, Any] = (self.content.get("capacity") or {}).get("requests") or {}
        return found


class _Constraint:
    """A constraint of a claim: the devices have a value of an attribute in common, or have distinct ones.

    Of several devices for one request, only the last has to be distinct from those for other requests, as in the real scheduler.
    """

    def __init__(self, content: StoredObject) -> None:
        self._requests = frozenset(content.get("requests") or ())
        self._is_distinct = "distinctAttribute" in content
        self._attribute: str = content.get("distinctAttribute") or content.get("matchAttribute") or ""
        self._values: list[frozenset[Any]] = []
        """The values of the devices so far."""
        self._distinct: dict[str, frozenset[Any]] = {}
        """Request → the values that others must not have."""

    def add(self, request: _Request, device: Device) -> bool:
        """Adds a device; returns False if the constraint does not allow it."""
        if not self._concerns(request):
            return True
        values = _values_of(device.attribute(self._attribute))
        if values is None or not self._allows(values):
            return False
        self._values.append(values)
        self._distinct[request.parent or request.name] = values
        return True

    def remove(self, request: _Request) -> None:
        """Removes the device that was added last."""
        if self._concerns(request):
            self._values.pop()
            self._distinct.pop(request.parent or request.name, None)

    def _concerns(self, request: _Request) -> bool:
        return not self._requests or bool(self._requests & request.names)

    def _allows(self, values: frozenset[Any]) -> bool:
        if self._is_distinct:
            return not self._values or all(not values & other for other in self._distinct.values())
        return bool(values.intersection(*self._values))


def _values_of(attribute: StoredObject | None) -> frozenset[Any] | None:
    """Returns the values of an attribute, each with its type; None if there is no attribute."""
    if attribute is None:
        return None
    ((kind, value),) = attribute.items()
    values = value if isinstance(value, list) else [value]
    return frozenset((kind.removesuffix("s"), one) for one in values)


@dataclass(slots=True)
class _Result:
    """A device that is allocated for a request."""

    request: _Request
    device: Device
    consumed: Capacity | None
    """What is taken of a shared device; None if the device is not shared."""


class Allocator:
    """Allocates the claims of a pod, on one node after the other.

    Args:
        claims: the claims, which are not allocated.
        slices: all ResourceSlices.
        find_class: returns a DeviceClass.
        taken: what other claims have taken.
        minor: the minor of the scheduler, whose errors it has, e.g. 37.
    """

    def __init__(
        self,
        claims: Sequence[StoredObject],
        slices: Sequence[StoredObject],
        find_class: Callable[[str], StoredObject | None],
        taken: AllocatedState,
        *,
        minor: int,
    ) -> None:
        self.claims, self.slices, self.find_class, self.taken, self.minor = claims, slices, find_class, taken, minor
        self._on_node: defaultdict[str, list[StoredObject]] = defaultdict(list)
        """Node → the slices that only it can reach; "" → those that others may need."""
        for one in slices:
            self._on_node["" if one["spec"].get("sharedCounters") else one["spec"].get("nodeName", "")].append(one)

    def slices_for(self, node: StoredObject) -> Sequence[StoredObject]:
        """Returns the slices that a node may need."""
        return [*self._on_node.get(node["metadata"]["name"], ()), *self._on_node.get("", ())]

    @with_deep_stack
    def allocate(self, node: StoredObject) -> list[Object] | None:
        """Returns the allocation of each claim on a node; None if the node has not all devices.

        Raises:
            AllocationError: something is wrong with a claim, a class or a pool.
            AllocationTimeout: the search takes too long.
            InvalidPools: the node has not all devices, and some of its pools are invalid.
        """
        return _Search(self, node).allocate()


class _Search:
    """The search for devices of one node. See `Allocator.allocate`."""

    def __init__(self, allocator: Allocator, node: StoredObject) -> None:
        self._claims, self._find_class, self._taken = allocator.claims, allocator.find_class, allocator.taken
        self._node, self._minor = node, allocator.minor
        self._end = thread_time() + _FILTER_TIMEOUT
        self._pools = {pool.id: pool for pool in gather_pools(allocator.slices_for(node), node, allocator.slices)}
        self._devices = [one for pool in self._pools.values() if pool.is_usable for one in pool.devices]
        self._taking: dict[DeviceID, list[int]] = {}
        """Device → the indices of the claims for which it is taken as a whole."""
        self._shares: dict[DeviceID, list[Capacity]] = {}
        """Shared device → what is taken of it."""
        self._left: dict[PoolID, dict[tuple[str, str], Quantity]] = {}
        """Pool → what is left of its counters, by set and name."""
        self._results: list[list[_Result]] = [[] for _ in self._claims]
        self._constraints = [[_Constraint(one) for one in _spec(claim).get("constraints") or ()] for claim in self._claims]
        self._requests = [self._requests_of(claim) for claim in self._claims]

    def allocate(self) -> list[Object] | None:
        """See `Allocator.allocate`."""
        if self._allocate_claim(0):
            return [self._allocation(index) for index in range(len(self._claims))]
        if any(pool.is_invalid for pool in self._pools.values()):
            raise InvalidPools("invalid resource pools were encountered")
        return None

    def _check_time(self) -> None:
        """Raises AllocationTimeout after the time for one node."""
        if thread_time() > self._end:
            raise AllocationTimeout("timed out trying to allocate devices")

    # --- Requests -----------------------------------------------------------------------------------------------------

    def _requests_of(self, claim: StoredObject) -> list[list[_Request]]:
        """Returns the alternatives of each request of a claim.

        Raises AllocationError, also if the claim needs too many devices.
        """
        found: list[list[_Request]] = []
        least = 0
        for request in _spec(claim).get("requests") or ():
            found.append(self._alternatives(claim, request))
            added = _least_count(found[-1])
            if self._minor >= _NAMES_REQUEST_SINCE and least + added > _MAX_RESULTS:
                raise AllocationError(
                    f"claim {_full_name(claim)}, request {request['name']}: adding {added} devices exceeds the claim limit of "
                    f"{_MAX_RESULTS}, with {least} already accounted for"
                )
            least += added
        if least > _MAX_RESULTS:
            raise AllocationError(
                f"claim {_full_name(claim)}: number of requested devices {least} exceeds the claim limit of {_MAX_RESULTS}"
            )
        return found

    def _alternatives(self, claim: StoredObject, request: StoredObject) -> list[_Request]:
        """Returns a request, or its subrequests in the order of preference."""
        if "exactly" in request:
            return [self._request(claim, request["exactly"], "", request["name"])]
        return [self._request(claim, one, request["name"], one["name"]) for one in request.get("firstAvailable") or ()]

    def _request(self, claim: StoredObject, content: StoredObject, parent: str, name: str) -> _Request:
        where = f"claim {_full_name(claim)}, request {name}"
        class_name = content["deviceClassName"]
        found = self._find_class(class_name)
        if found is None:
            raise AllocationError(f"{where}: could not retrieve device class {class_name}")
        made = _Request(content, parent, name, found)
        if content.get("allocationMode") == "All":
            for pool in self._pools.values():
                if not pool.is_usable:
                    state = "being updated" if pool.is_incomplete else "invalid"
                    raise AllocationError(f"{where}: asks for all devices, but resource pool {pool.id} is currently {state}")
            made.every = [
                one for one in self._devices if self._matches(claim, made, one) and self._consumption(made, one) is not None
            ]
            made.count = len(made.every)
        else:
            made.count = int(content.get("count") or 1)
        return made

    def _matches(self, claim: StoredObject, request: _Request, device: Device) -> bool:
        """Reports whether the selectors of a request and of its class match a device.

        Raises AllocationError, AllocationTimeout.
        """
        known = request.matches.get(device.id)
        if known is None:
            self._check_time()
            class_ = request.device_class
            known = request.matches[device.id] = (
                select(device, class_["spec"].get("selectors") or (), f"class {class_['metadata']['name']}")
                and select(device, request.content.get("selectors") or (), f"claim {_full_name(claim)}")
                and matches_node(device.placement, self._node)
            )
        return known

    # --- Search -------------------------------------------------------------------------------------------------------

    def _allocate_claim(self, claim: int) -> bool:
        return claim == len(self._claims) or self._allocate_request(claim, 0)

    def _allocate_request(self, claim: int, index: int) -> bool:
        requests = self._requests[claim]
        if index == len(requests):
            return self._allocate_claim(claim + 1)
        room = _MAX_RESULTS - len(self._results[claim]) - sum(map(_least_count, requests[index + 1 :]))
        return any(self._allocate_devices(claim, index, one, 0, 0) for one in requests[index] if one.count <= room)

    def _allocate_devices(self, claim: int, index: int, request: _Request, number: int, start: int) -> bool:
        """Allocates the devices of a request from one on, and all that comes after them.

        Args:
            claim: the index of the claim.
            index: the index of its request.
            request: the request, or the chosen subrequest.
            number: how many devices it has.
            start: the index of the first device to try.
        """
        self._check_time()
        if number == request.count:
            return request.every != [] and self._allocate_request(claim, index + 1)
        candidates = self._devices[start:] if request.every is None else [request.every[number]]
        for position, device in enumerate(candidates, start):
            undo = self._take(claim, request, device)
            if undo is None:
                continue
            if self._allocate_devices(claim, index, request, number + 1, position + 1):
                return True
            undo()
        return False

    def _take(self, claim: int, request: _Request, device: Device) -> _Undo | None:
        """Takes a device for a request; None if it is in use, or something does not allow it. Raises AllocationError."""
        if not self._is_free(claim, request, device) or not self._matches(self._claims[claim], request, device):
            return None
        if is_tainted(device, request.content.get("tolerations") or ()):
            return None
        consumed, counters = self._consumption(request, device), self._counters_of(device)
        if consumed is None or not self._has_counters(device, counters):
            return None
        added: list[_Constraint] = []
        for one in self._constraints[claim]:
            if not one.add(request, device):
                for other in added:
                    other.remove(request)
                if request.every is not None:
                    where = f"claim {_full_name(self._claims[claim])}, request {request.request_name}"
                    raise AllocationError(
                        f"{where}: cannot add device {device.id} because a claim constraint would not be satisfied"
                    )
                return None
            added.append(one)
        self._mark(claim, device, consumed, counters)
        self._results[claim].append(_Result(request, device, consumed if device.is_shared else None))

        def undo() -> None:
            self._results[claim].pop()
            self._unmark(device, counters)
            for one in added:
                one.remove(request)

        return undo

    def _is_free(self, claim: int, request: _Request, device: Device) -> bool:
        """Reports whether no claim has the device as a whole; for administrative access, no request of the same claim."""
        if request.is_administrative:
            return device.is_shared or claim not in self._taking.get(device.id, ())
        return device.id not in self._taken.devices and not self._taking.get(device.id)

    def _consumption(self, request: _Request, device: Device) -> Capacity | None:
        """Returns what a request takes of the capacities of a device; None if they are too small (CmpRequestOverCapacity)."""
        consumed = consumed_capacity(device, request.capacities)
        if consumed is None:
            return None
        shares = [self._taken.shared.get(device.id, {}), *self._shares.get(device.id, ())]
        for name, amount in consumed.items():
            total = sum((share[name] for share in shares if name in share), amount)
            if total > parse_quantity(str(device.content["capacity"][name]["value"])):
                return None
        return consumed

    def _counters_of(self, device: Device) -> list[tuple[str, str, Quantity]]:
        """Returns the counters that a device consumes, if it is not in use already as a shared one."""
        in_use = device.is_shared and (device.id in self._taken.shared or self._shares.get(device.id))
        return [] if in_use else list(consumed_counters(device))

    def _has_counters(self, device: Device, counters: Sequence[tuple[str, str, Quantity]]) -> bool:
        """Reports whether the pool of a device has what it consumes."""
        available = self._available(device.id) if counters else {}
        return all(amount <= available[set_, name] for set_, name, amount in counters)

    def _available(self, id_: DeviceID) -> dict[tuple[str, str], Quantity]:
        """Returns what is left of the counters of a device's pool."""
        pool = self._pools[PoolID(id_.driver, id_.pool)]
        if pool.id not in self._left:
            left = {(set_, name): amount for set_, counters in pool.counters.items() for name, amount in counters.items()}
            for one in (*pool.devices, *pool.others):
                for set_, name, amount in consumed_counters(one) if one.id in self._taken else ():
                    left[set_, name] -= amount
            self._left[pool.id] = left
        return self._left[pool.id]

    def _mark(self, claim: int, device: Device, consumed: Capacity, counters: Sequence[tuple[str, str, Quantity]]) -> None:
        if device.is_shared:
            self._shares.setdefault(device.id, []).append(consumed)
        else:
            self._taking.setdefault(device.id, []).append(claim)
        for set_, name, amount in counters:
            self._available(device.id)[set_, name] -= amount

    def _unmark(self, device: Device, counters: Sequence[tuple[str, str, Quantity]]) -> None:
        (self._shares if device.is_shared else self._taking)[device.id].pop()
        for set_, name, amount in counters:
            self._available(device.id)[set_, name] += amount

    # --- Results ------------------------------------------------------------------------------------------------------

    def _allocation(self, index: int) -> Object:
        results = self._results[index]
        devices: Object = {"results": [_result(one) for one in results]}
        if config := list(_configurations(self._claims[index], results)):
            devices["config"] = config
        selector = _node_selector(results, self._node)
        return {"devices": devices, **({"nodeSelector": selector} if selector else {})}


def _spec(claim: StoredObject) -> StoredObject:
    """Returns the part of a claim's spec about devices."""
    found: StoredObject = claim["spec"].get("devices") or {}
    return found


def _least_count(alternatives: Sequence[_Request]) -> int:
    """Returns the least number of devices that satisfies a request."""
    return min(one.count for one in alternatives)


def _full_name(claim: StoredObject) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def _result(one: _Result) -> Object:
    """Returns an item of the results of an allocation."""
    found: Object = {"request": one.request.name, **one.device.id._asdict()}
    if one.request.is_administrative:
        found["adminAccess"] = True
    if tolerations := one.request.content.get("tolerations"):
        found["tolerations"] = tolerations
    found |= {name: one.device.content[name] for name in BINDING_CONDITIONS if one.device.content.get(name)}
    if one.consumed is not None:
        found["shareID"] = random_uuid()
        if one.consumed:
            found["consumedCapacity"] = {name: str(amount) for name, amount in one.consumed.items()}
    return found


def _configurations(claim: StoredObject, results: Sequence[_Result]) -> Iterator[Object]:
    """Yields the configuration of the classes, each once for all of its requests, and then that of the claim."""
    requests = list({one.request.name: one.request for one in results}.values())
    for name in dict.fromkeys(one.device_class["metadata"]["name"] for one in requests):
        own = [one for one in requests if one.device_class["metadata"]["name"] == name]
        for config in own[0].device_class["spec"].get("config") or ():
            yield {"source": "FromClass", "requests": [one.name for one in own], **config}
    names = {name for one in requests for name in one.names}
    for config in _spec(claim).get("config") or ():
        if not config.get("requests") or names & set(config["requests"]):
            yield {"source": "FromClaim", **config}


def _node_selector(results: Sequence[_Result], node: StoredObject) -> Object | None:
    """Returns the selector of the nodes that can reach all devices; None for all nodes (createNodeSelector)."""
    term: dict[str, list[Any]] = {}
    for one in results:
        placement = one.device.placement
        if placement.get("nodeName") or one.device.content.get("bindsToNode"):
            own = {"key": "metadata.name", "operator": "In", "values": [node["metadata"]["name"]]}
            return {"nodeSelectorTerms": [{"matchFields": [own]}]}
        for found in (placement.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            for field_name, requirements in found.items():
                known = term.setdefault(field_name, [])
                known.extend(requirement for requirement in requirements if requirement not in known)
    return {"nodeSelectorTerms": [term]} if term else None
