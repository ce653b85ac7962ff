"""Devices of ResourceSlices: which a node can reach, which an expression selects, and what claims have taken of them.

Specified by: k8s.io/dynamic-resource-allocation/structured/internal/experimental/{pools_experimental,consumable_capacity}.go,
k8s.io/dynamic-resource-allocation/{cel/compile,resourceclaim/devicetoleration}.go,
pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.cel.compilation import Compilation, ExpressionError, devices
from fakekube.apimachinery.cel.cost.limits import PER_CALL_LIMIT
from fakekube.apimachinery.cel.errors import CostLimitExceeded, EvaluationError
from fakekube.apimachinery.cel.libraries.kubernetes_types import Quantity as CelQuantity
from fakekube.apimachinery.cel.libraries.kubernetes_types import parse_semver
from fakekube.apimachinery.cel.values import ABSENT, Map
from fakekube.apimachinery.schema.quantity import Format, Quantity
from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.apimachinery.selectors.nodes import selects_node
from fakekube.base.objects import StoredObject

#: Name of a capacity → amount.
Capacity = dict[str, Quantity]
#: The effects of taints that keep a device from being allocated.
_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})


class AllocationError(Exception):
    """Something is wrong with a claim, a class or a pool, so that the pod cannot be scheduled on any node."""


class PoolID(NamedTuple):
    """Identifies a pool."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """Identifies a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(slots=True, frozen=True, eq=False)
class Device:
    """A device of a slice."""

    id: DeviceID
    content: StoredObject
    """The item of the slice."""
    slice: StoredObject
    """The spec of the slice."""

    @property
    def is_shared(self) -> bool:
        """Whether it can be allocated several times, to a part each."""
        return bool(self.content.get("allowMultipleAllocations"))

    @property
    def placement(self) -> StoredObject:
        """Where it is: an object with nodeName, allNodes or nodeSelector."""
        return self.content if self.slice.get("perDeviceNodeSelection") else self.slice

    def attribute(self, name: str) -> StoredObject | None:
        """Returns the attribute with a fully qualified name; names without a domain have that of the driver."""
        attributes = self.content.get("attributes") or {}
        domain, _, own = name.partition("/")
        found: StoredObject | None = attributes.get(name) or (attributes.get(own) if domain == self.id.driver else None)
        return found


# --- Pools ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Pool:
    """The devices of a pool, as one node sees them."""

    id: PoolID
    devices: list[Device] = field(default_factory=list)
    """Those that the node may reach."""
    others: list[Device] = field(default_factory=list)
    """Those of slices for other nodes, which may use the same counters."""
    counters: dict[str, dict[str, Quantity]] = field(default_factory=dict)
    """Name of a set → name of a counter → its amount."""
    is_incomplete: bool = False
    """Whether slices are missing."""
    is_invalid: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether its devices can be allocated."""
        return not self.is_incomplete and not self.is_invalid


def matches_node(placement: Mapping[str, Any], node: StoredObject) -> bool:
    """Reports whether what is at a place can be reached from a node (NodeMatches)."""
    if name := placement.get("nodeName"):
        return bool(node["metadata"]["name"] == name)
    selector = placement.get("nodeSelector")
    return bool(placement.get("allNodes")) or (selector is not None and selects_node(selector, node))


def gather_pools(slices: Iterable[StoredObject], node: StoredObject, every: Sequence[StoredObject]) -> list[Pool]:
    """Returns the pools with devices that a node may reach, in the order in which they are tried (GatherPools).

    Args:
        slices: those that the node may need; others are left out.
        node: the node.
        every: all slices, also those of other nodes.
    """
    found: dict[PoolID, list[StoredObject]] = {}
    for one in slices:
        if _is_relevant(one["spec"], node):
            known = found.setdefault(_pool_of(one), [])
            newest = known[0]["spec"]["pool"]["generation"] if known else -1
            if one["spec"]["pool"]["generation"] > newest:
                known.clear()
            if one["spec"]["pool"]["generation"] >= newest:
                known.append(one)
    pools = [pool for id_, known in found.items() if (pool := _gather_pool(id_, known, every)) is not None]
    return sorted(pools, key=lambda pool: (any(one.content.get("bindingConditions") for one in pool.devices), pool.id))


def _pool_of(one: StoredObject) -> PoolID:
    return PoolID(one["spec"]["driver"], one["spec"]["pool"]["name"])


def _is_relevant(spec: StoredObject, node: StoredObject) -> bool:
    if spec.get("sharedCounters"):
        return True
    if spec.get("perDeviceNodeSelection"):
        return any(matches_node(one, node) for one in spec.get("devices") or ())
    return matches_node(spec, node)


def _gather_pool(id_: PoolID, slices: list[StoredObject], every: Iterable[StoredObject]) -> Pool | None:
    """Returns a pool; None if its slices are being replaced by newer ones."""
    pool = slices[0]["spec"]["pool"]
    whole = slices
    if len(slices) != pool["resourceSliceCount"]:
        generations = [(one["spec"]["pool"]["generation"], one) for one in every if _pool_of(one) == id_]
        if any(generation > pool["generation"] for generation, _ in generations):
            return None
        whole = [one for generation, one in generations if generation == pool["generation"]]
        if len(whole) != pool["resourceSliceCount"]:
            return Pool(id_, is_incomplete=True)
    return _build_pool(id_, slices, whole)


def _build_pool(id_: PoolID, slices: list[StoredObject], whole: list[StoredObject]) -> Pool:
    pool = Pool(id_)
    own = {one["metadata"]["name"] for one in slices}
    for one in sorted(whole, key=lambda one: one["metadata"]["name"]):
        spec = one["spec"]
        for counters in spec.get("sharedCounters") or ():
            pool.is_invalid |= counters["name"] in pool.counters
            pool.counters[counters["name"]] = _amounts(counters.get("counters"))
        made = [Device(DeviceID(*id_, item["name"]), item, spec) for item in spec.get("devices") or ()]
        (pool.devices if one["metadata"]["name"] in own else pool.others).extend(made)
    pool.is_invalid |= len({one.id for one in pool.devices}) < len(pool.devices)
    pool.is_invalid |= any(
        consumed["counterSet"] not in pool.counters
        or consumed.get("counters", {}).keys() - pool.counters[consumed["counterSet"]].keys()
        for one in (*pool.devices, *pool.others)
        for consumed in one.content.get("consumesCounters") or ()
    )
    return pool


def _amounts(values: Mapping[str, Any] | None) -> Capacity:
    return {name: parse_quantity(str(one["value"])) for name, one in (values or {}).items()}


def consumed_counters(device: Device) -> Iterator[tuple[str, str, Quantity]]:
    """Yields the set, the counter and the amount of all that a device consumes."""
    for consumed in device.content.get("consumesCounters") or ():
        for name, amount in _amounts(consumed.get("counters")).items():
            yield consumed["counterSet"], name, amount


# --- Selectors and taints ---------------------------------------------------------------------------------------------


class _Domains(Map):
    """Domain → its attributes or capacities; an unknown domain has none."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        found = super().find(key)
        return Map({}) if found is ABSENT and isinstance(key, str) else found


@lru_cache(256)
def _compile(expression: str) -> Compilation | str:
    """Returns a compiled expression, or why it cannot be compiled."""
    try:
        return devices().compile(expression)
    except ExpressionError as error:
        return str(error)


def select(device: Device, selectors: Iterable[StoredObject], owner: str) -> bool:
    """Reports whether all selectors match a device. Raises AllocationError.

    Args:
        device: the device.
        selectors: the selectors of a class or a request.
        owner: what has the selectors, for errors.
    """
    for index, selector in enumerate(selectors):
        compiled = _compile(selector["cel"]["expression"])
        if isinstance(compiled, str):
            raise AllocationError(f"{owner}: selector #{index}: CEL compile error: {compiled}")
        value: Any
        try:
            value, _ = compiled.program.evaluate({"device": _variable(device)}, PER_CALL_LIMIT)
        except CostLimitExceeded as error:
            value = EvaluationError(str(error))
        if isinstance(value, EvaluationError):
            raise AllocationError(f"{owner}: selector #{index}: CEL runtime error: {value}")
        if value is not True:
            return False
    return True


def _variable(device: Device) -> Map:
    """Returns the variable `device` of expressions."""
    capacity = {name: one["value"] for name, one in (device.content.get("capacity") or {}).items()}
    return Map.from_pairs(
        {
            "driver": device.id.driver,
            "allowMultipleAllocations": device.is_shared,
            "attributes": _by_domain(device, {name: _value(one) for name, one in _attributes(device).items()}),
            "capacity": _by_domain(device, {name: CelQuantity(parse_quantity(str(one))) for name, one in capacity.items()}),
        }.items()
    )


def _attributes(device: Device) -> Mapping[str, StoredObject]:
    found: Mapping[str, StoredObject] = device.content.get("attributes") or {}
    return found


def _by_domain(device: Device, values: Mapping[str, Any]) -> _Domains:
    domains: dict[str, Map] = {}
    for name, value in values.items():
        domain, slash, own = name.partition("/")
        domains.setdefault(domain if slash else device.id.driver, Map({})).set(own if slash else name, value)
    return _Domains.from_pairs(domains.items())  # type: ignore[return-value]


def _value(attribute: StoredObject) -> Any:
    """Returns the value of an attribute in expressions."""
    ((kind, value),) = attribute.items()
    if kind == "version":
        return parse_semver(value)
    return [parse_semver(one) for one in value] if kind == "versions" else value


def is_tainted(device: Device, tolerations: Iterable[StoredObject]) -> bool:
    """Reports whether a taint of a device keeps it from being allocated (taintPreventsAllocation)."""
    tolerated = list(tolerations)
    return any(
        taint.get("effect") in _PREVENTING and not any(_tolerates(one, taint) for one in tolerated)
        for taint in device.content.get("taints") or ()
    )


def _tolerates(toleration: StoredObject, taint: StoredObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


# --- Capacities -------------------------------------------------------------------------------------------------------


def consumed_capacity(device: Device, requests: Mapping[str, Any]) -> Capacity | None:
    """Returns what a request takes of the capacities of a device; None if it cannot be satisfied.

    Args:
        device: the device.
        requests: name of a capacity → requested amount.
    """
    capacities = device.content.get("capacity") or {}
    if requests.keys() - capacities.keys():
        return None
    consumed = {name: _round_up(requests.get(name), one) for name, one in capacities.items()}
    return None if any(_violates(consumed[name], one.get("requestPolicy")) for name, one in capacities.items()) else consumed


def _round_up(requested: Any, capacity: StoredObject) -> Quantity:
    """Returns a requested amount, rounded up by the policy of a capacity (calculateConsumedCapacity)."""
    policy = capacity.get("requestPolicy") or {}
    if requested is None:
        return parse_quantity(str(policy.get("default") or capacity["value"]))
    amount = parse_quantity(str(requested))
    allowed = policy.get("validRange")
    if allowed is not None and "min" in allowed:
        least = parse_quantity(str(allowed["min"]))
        if amount < least or "step" not in allowed:
            return max(amount, least)
        step = _step_of(allowed)
        steps = -(-(amount.value() - least.value()) // step)
        return Quantity(least.value() + step * steps, format=Format.BINARY_SI)
    values = [parse_quantity(str(one)) for one in policy.get("validValues") or ()]
    return next((one for one in values if amount <= one), amount)


def _step_of(allowed: StoredObject) -> int:
    """Returns the step of a range; 1 in place of zero, which slices before 1.37 may have."""
    return parse_quantity(str(allowed["step"])).value() or 1


def _violates(amount: Quantity, policy: StoredObject | None) -> bool:
    if not policy or ("default" in policy and amount == parse_quantity(str(policy["default"]))):
        return False
    if allowed := policy.get("validRange"):
        if "max" in allowed and amount > parse_quantity(str(allowed["max"])):
            return True
        least = parse_quantity(str(allowed.get("min") or 0)).value()
        return "step" in allowed and (amount.value() - least) % _step_of(allowed) != 0
    values = policy.get("validValues") or ()
    return bool(values) and all(amount != parse_quantity(str(one)) for one in values)


@dataclass(slots=True)
class AllocatedState:
    """What claims have taken."""

    devices: set[DeviceID] = field(default_factory=set)
    """The devices that are taken as a whole."""
    shared: dict[DeviceID, Capacity] = field(default_factory=dict)
    """Shared device → what is taken of its capacities."""

    def __contains__(self, id_: DeviceID) -> bool:
        return id_ in self.devices or id_ in self.shared

    def share(self, id_: DeviceID, consumed: Capacity) -> None:
        """Takes a part of a shared device."""
        known = self.shared.setdefault(id_, {})
        for name, amount in consumed.items():
            known[name] = known[name] + amount if name in known else amount


def gather_allocated_state(claims: Iterable[StoredObject]) -> AllocatedState:
    """Returns what allocated claims have taken; administrative access takes nothing (GatherAllocatedState)."""
    found = AllocatedState()
    for claim in claims:
        for result in (((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get("results") or ():
            id_ = DeviceID(result["driver"], result["pool"], result["device"])
            if result.get("adminAccess"):
                continue
            if "shareID" not in result:
                found.devices.add(id_)
                continue
            consumed = result.get("consumedCapacity") or {}
            found.share(id_, {name: parse_quantity(str(amount)) for name, amount in consumed.items()})
    return found
