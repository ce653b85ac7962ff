"""Validation of updates of the status of a pod (ValidatePodStatusUpdate).

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import (
    IMMUTABLE,
    Typed,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
)
from fakekube.apis.core.pods.security_context import NOT_FOR_WINDOWS
from fakekube.apis.core.pods.visitor import CONTAINER_STATUSES, restarts_all_containers
from fakekube.apis.core.volume_health import validate_health_of_pod
from fakekube.apis.validation import ip, names
from fakekube.apis.validation.checks import (
    NOT_A_CLAIM,
    NOT_BLANK,
    NOT_NEGATIVE_INTEGER,
    invalid_each,
    label_name,
    repeated_indices,
)
from fakekube.apis.validation.resource_lists import COMPUTE, is_huge_page, is_native, quantity
from fakekube.apis.validation.rules import (
    NEVER,
    Rule,
    between,
    by_minor,
    calls,
    each,
    each_value,
    from_minor,
    needed,
    rules,
    set_,
)
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Part

#: Conditions whose types are not validated.
_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})

_HEALTH_MESSAGE_LENGTH = 1024
_NOT_FROM_TERMINATED = "may not be transitioned to non-terminated state"


def validate_status_update(new: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """Validates an update of the status of a pod; everything else is unchanged."""
    status, before, spec = new.get("status") or {}, old.get("status") or {}, old.get("spec") or {}
    errors = _validate_conditions(status.get("conditions") or ())
    errors += _validate_nominated_node(status, before, spec)
    if status.get("observedGeneration", 0) < 0:
        where, value = "status.observedGeneration", status["observedGeneration"]
        errors.append(invalid(where, value, NOT_NEGATIVE_INTEGER))
    if status.get("qosClass") != before.get("qosClass"):
        errors.append(invalid("status.qosClass", Typed(status.get("qosClass", "")), IMMUTABLE))
    errors += _validate_transitions(status, before, spec)
    errors += _validate_resource_claims(status, spec)
    errors += _validate_extended_claim(status, spec)
    errors += _validate_node_allocatable_claims(status, spec)
    errors += _validate_addresses(status, before, "podIPs", "PodIP")
    errors += _validate_host_addresses(status, before)
    errors += validate_health_of_pod(status, before, spec.get("volumes") or ())
    return errors + _validate_containers(status, spec)


def _validate_conditions(conditions: Sequence[Part]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        where, generation = f"status.conditions[{index}]", condition.get("observedGeneration", 0)
        if generation < 0:
            errors.append(invalid(f"{where}.observedGeneration", generation, NOT_NEGATIVE_INTEGER))
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS:
            errors += label_name(kind, f"{where}.Type")
    return errors


def _validate_nominated_node(status: Part, before: Part, spec: Part) -> list[FieldError]:
    name = status.get("nominatedNodeName", "")
    if not name or name == before.get("nominatedNodeName"):
        return []
    where = "status.nominatedNodeName"
    errors = invalid_each(where, name, names.dns_subdomain(name))
    if spec.get("nodeName") and features.current().enabled("ClearingNominatedNodeNameAfterBinding"):
        errors.append(forbidden(where, "may not be set on pods that are already bound to a node"))
    return errors


def _validate_transitions(status: Part, before: Part, spec: Part) -> list[FieldError]:
    """Validates that terminated containers stay terminated, unless they may restart."""
    errors: list[FieldError] = []
    if not restarts_all_containers(spec):
        for field, containers in (
            ("containerStatuses", spec.get("containers") or ()),
            ("initContainerStatuses", spec.get("initContainers") or ()),
        ):
            by_name = {container.get("name", ""): container for container in reversed(containers)}
            once = field != "containerStatuses" or features.current().enabled("ContainerRestartRules")
            for index, name, ended in _find_restarts(status.get(field) or (), before.get(field) or (), once=once):
                container = by_name.get(name)
                if container is None or not _should_restart(container, spec, ended.get("exitCode", 0)):
                    errors.append(forbidden(f"status.{field}[{index}].state", _NOT_FROM_TERMINATED))
    field = "ephemeralContainerStatuses"
    return errors + [
        forbidden(f"status.{field}[{index}].state", _NOT_FROM_TERMINATED)
        for index, _, _ in _find_restarts(status.get(field) or (), before.get(field) or (), once=False)
    ]


def _find_restarts(new: Sequence[Part], old: Sequence[Part], *, once: bool) -> Iterator[tuple[int, str, Part]]:
    """Yields containers that were terminated and no longer are: index, name, and the old terminated state."""
    alive = Counter(state.get("name", "") for state in new if "terminated" not in (state.get("state") or {}))
    for index, before in enumerate(old):
        ended, name = (before.get("state") or {}).get("terminated"), before.get("name", "")
        if ended is not None:
            yield from repeat((index, name, ended), min(alive[name], 1) if once else alive[name])


def _should_restart(container: Part, spec: Part, exit_code: int) -> bool:
    """Reports whether the rules or the policy of the container, or the policy of the pod, restart it (ContainerShouldRestart)."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes")
        if codes is not None:
            listed = exit_code in (codes.get("values") or ())
            if listed == (codes.get("operator") == "In"):
                return True
    policy = container.get("restartPolicy", spec.get("restartPolicy"))
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _validate_resource_claims(status: Part, spec: Part) -> list[FieldError]:
    """Validates resourceClaimStatuses (validatePodResourceClaimStatuses)."""
    known = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(status.get("resourceClaimStatuses") or ()):
        where, name, claim = (f"status.resourceClaimStatuses[{index}]", item.get("name", ""), item.get("resourceClaimName"))
        if name not in known:
            errors.append(invalid(f"{where}.name", name, NOT_A_CLAIM))
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if claim is not None:
            blamed = "resourceClaimName" if from_minor(36) else "name"
            errors += invalid_each(f"{where}.{blamed}", claim, names.dns_subdomain(claim))
    return errors


def _validate_node_allocatable_claims(status: Part, spec: Part) -> list[FieldError]:
    """Validates nodeAllocatableResourceClaimStatuses (validateNodeAllocatableResourceClaimStatus)."""
    claims = (*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ()))
    known = {claim["resourceClaimName"] for claim in claims if claim.get("resourceClaimName") is not None}
    items, where = status.get("nodeAllocatableResourceClaimStatuses") or (), "status.nodeAllocatableResourceClaimStatuses"
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        path, name = f"{where}[{index}]", item.get("resourceClaimName", "")
        if not from_minor(37):
            errors += _validate_older_node_allocatable_claim(item, known, path)
            continue
        if not name:
            errors.append(required(f"{path}.resourceClaimName"))
            continue
        if name not in known:
            errors.append(invalid(f"{path}.resourceClaimName", name, "no mapping found in pod reference"))
        errors += _NODE_ALLOCATABLE.validate(item, path)
    return errors + (_forbid_repeated_items(items, where, "resourceClaimName") if from_minor(37) else [])


def _validate_older_node_allocatable_claim(item: Part, known: Container[str], path: str) -> list[FieldError]:
    """Validates an item as 1.36 does, where it has resources in place of mappings."""
    name, resources = item.get("resourceClaimName", ""), item.get("resources") or {}
    errors = [] if name else [required(f"{path}.resourceClaimName", "must not be empty")]
    if name not in known:
        errors.append(invalid(f"{path}.resourceClaimName", name, "no mapping found in pod reference"))
    errors += [required(f"{path}.{field}", "must not be empty") for field in ("containers", "resources") if not item.get(field)]
    for key, amount in resources.items():
        where = f"{path}.resources[{key}]"
        if not is_native(key):
            errors.append(invalid(where, key, NOT_NODE_ALLOCATABLE))
        errors += validate_quantity(amount, where)
    return errors


def _forbid_repeated_items(items: Sequence[Part] | None, path: str, key: str) -> list[FieldError]:
    found = items or ()
    return [duplicate(f"{path}[{index}]", found[index]) for index in repeated_indices(item.get(key, "") for item in found)]


def validate_unique_names(items: Sequence[Part] | None, path: str) -> list[FieldError]:
    """Validates that names do not repeat, which is declared (listType=map)."""
    return _forbid_repeated_items(items, path, "name")


NOT_NODE_ALLOCATABLE = "must be a node allocatable resource name"


def validate_node_allocatable_name(name: str | None, path: str) -> list[FieldError]:
    """Validates the name of a resource that a node allocates itself (IsNodeAllocatableResourceName)."""
    if name in COMPUTE or is_huge_page(name or ""):
        return []
    return [invalid(path, name or "", NOT_NODE_ALLOCATABLE)]


def validate_overhead_is_set(overhead: Part, path: str) -> list[FieldError]:
    """Validates that an overhead says of what it is one (validateNodeAllocatableOverheadResources)."""
    if overhead.get("perPod") is not None or overhead.get("perContainer") is not None:
        return []
    return [invalid(path, "", "at least one of perPod or perContainer must be set")]


def validate_quantity(amount: str | None, path: str) -> list[FieldError]:
    """Validates that a quantity is not negative; the error shows it."""
    return [] if amount is None or quantity(amount).sign >= 0 else [invalid(path, amount, "must be non-negative")]


_MAPPED = rules(
    "NodeAllocatableMappedResources",
    "validateNodeAllocatableMappedResources",
    Rule("name", calls(validate_node_allocatable_name)),
    Rule("name", needed()),
    Rule("quantity", set_()),
    Rule("quantity", calls(validate_quantity)),
)
_OVERHEAD = rules(
    "NodeAllocatableOverheadResources",
    "validateNodeAllocatableOverheadResources",
    Rule("name", calls(validate_node_allocatable_name)),
    Rule("name", needed()),
    Rule("", calls(validate_overhead_is_set)),
    Rule("perPod", calls(validate_quantity)),
    Rule("perContainer", calls(validate_quantity)),
)
_NODE_ALLOCATABLE = rules(
    "NodeAllocatableResourceClaimStatus",
    "validateNodeAllocatableResourceClaimStatus",
    Rule("mapping", each(_MAPPED)),
    Rule("mapping", calls(validate_unique_names)),
    Rule("overhead", each(_OVERHEAD)),
    Rule("overhead", calls(validate_unique_names)),
)


def _validate_extended_claim(status: Part, spec: Part) -> list[FieldError]:
    """Validates extendedResourceClaimStatus (validatePodExtendedResourceClaimStatus)."""
    claim = status.get("extendedResourceClaimStatus")
    if claim is None:
        return []
    path = "status.extendedResourceClaimStatus"
    fields = ("initContainers", "containers")
    containers = {item.get("name", ""): item for field in fields for item in spec.get(field) or ()}
    mappings = claim.get("requestMappings") or ()
    errors = [] if mappings else [required(f"{path}.requestMappings", "at least one request mapping is required")]
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(mappings):
        errors += _validate_request_mapping(mapping, containers, seen, f"{path}.requestMappings[{index}]", path)
    name = claim.get("resourceClaimName", "")
    where = f"{path}.resourceClaimName"
    return errors + (invalid_each(where, name, names.dns_subdomain(name)) if name else [required(where)])


def _validate_request_mapping(
    mapping: Part, containers: Mapping[str, Part], seen: set[tuple[str, str, str]], path: str, claim_path: str
) -> list[FieldError]:
    fields = ("containerName", "resourceName", "requestName")
    container, resource, request = (mapping.get(field, "") for field in fields)
    errors: list[FieldError] = []
    if container not in containers:
        text = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
        errors.append(invalid(f"{path}.containerName", container, text))
    elif resource not in ((containers[container].get("resources") or {}).get("requests") or {}):
        places = "spec.initContainers.resources.requests or spec.containers.resources.requests"
        text = f"must match the extended resource name of an entry in {places}"
        errors.append(invalid(f"{path}.resourceName", resource, text))
    errors += invalid_each(f"{claim_path}.requestName", request, names.dns_label(request))
    if (container, resource, request) in seen:
        errors += [duplicate(f"{path}.{field}", mapping.get(field, "")) for field in fields]
    seen.add((container, resource, request))
    return errors


def _validate_addresses(status: Part, before: Part, field: str, struct: str) -> list[FieldError]:
    """Validates that there is at most one address of each family (validatePodIPs)."""
    path = f"status.{field}"
    items = [item.get("ip", "") for item in status.get(field) or ()]
    known = {item.get("ip", "") for item in before.get(field) or ()}
    errors: list[FieldError] = []
    for index, address in enumerate(items):
        errors += ip.legacy_ip(f"{path}[{index}]", address, strict=True, old=known)
    if len(items) > 1:
        parsed = [ip.parse_ip(item) for item in items]
        if None in parsed:
            index = parsed.index(None)
            text = f"failed to check for dual stack with error:invalid IP[{index}]: {items[index]}"
            errors.append(internal(path, text))
        families = {one.version for one in parsed if one is not None}
        if None in parsed or len(families) < 2 or len(items) > 2:
            shown = [to_internal(struct, item) for item in status[field]]
            errors.append(invalid(path, shown, ip.ONE_OF_EACH_FAMILY))
    return errors


def _validate_host_addresses(status: Part, before: Part) -> list[FieldError]:
    items = status.get("hostIPs") or ()
    if not items:
        return []
    first = items[0].get("ip", "")
    errors: list[FieldError] = []
    if status.get("hostIP", "") != first:
        errors.append(invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
    return errors + _validate_addresses(status, before, "hostIPs", "HostIP")


def _validate_containers(status: Part, spec: Part) -> list[FieldError]:
    """Validates users and allocated resources of container statuses."""
    system = (spec.get("os") or {}).get("name", "linux")
    errors: list[FieldError] = []
    for field in CONTAINER_STATUSES:
        for index, item in enumerate(status.get(field) or ()):
            linux = (item.get("user") or {}).get("linux")
            if linux is not None:
                errors += _validate_user(linux, system, f"status.{field}[{index}].user.linux")
    for field, containers in zip(CONTAINER_STATUSES, ("containers", "initContainers", ""), strict=True):
        by_name = {container.get("name"): container for container in reversed(spec.get(containers) or ())}
        for index, item in enumerate(status.get(field) or ()):
            where, allocated = (f"status.{field}[{index}].allocatedResourcesStatus", item.get("allocatedResourcesStatus"))
            if allocated and not containers:
                errors.append(forbidden(where, "must not be specified in container status"))
            elif allocated:
                errors += _validate_allocated_resources_status(allocated, by_name.get(item.get("name")), where)
    return errors


MAX_ID = MAX_INT32
_LINUX_USER = rules(
    "LinuxContainerUser",
    "validateContainerStatusUsers",
    *by_minor("uid", (between(0, MAX_ID), 0, 37), (between(0, 2**32 - 1), 37, NEVER)),
    Rule("gid", between(0, MAX_ID)),
    Rule("supplementalGroups", each_value(between(0, MAX_ID))),
)


def _validate_user(user: Part, system: str, path: str) -> list[FieldError]:
    if system == "windows":
        return [forbidden(path, NOT_FOR_WINDOWS)]
    return _LINUX_USER.validate(user, path)


def _validate_allocated_resources_status(items: Sequence[Part], container: Part | None, path: str) -> list[FieldError]:
    """Validates allocatedResourcesStatus (validateContainerStatusAllocatedResourcesStatus)."""
    errors: list[FieldError] = []
    claims = _claim_names(container) if container is not None else frozenset()
    for index, item in enumerate(items):
        if container is not None:
            errors += _validate_allocated_name(item.get("name", ""), container, claims, f"{path}[{index}].name")
        seen: set[str] = set()
        for position, resource in enumerate(item.get("resources") or ()):
            errors += _validate_allocated_resource(resource, seen, f"{path}[{index}].resources[{position}]")
    return errors


def _claim_names(container: Part) -> frozenset[str]:
    """Returns the names of a container's claims and requests, as allocatedResourcesStatus has them."""
    claims = (container.get("resources") or {}).get("claims") or ()
    return frozenset(
        f"claim:{claim.get('name', '')}" + (f"/{request}" if (request := claim.get("request")) else "") for claim in claims
    )


def _validate_allocated_name(name: str, container: Part, claims: Container[str], path: str) -> list[FieldError]:
    if not name.startswith("claim:"):
        text = "must match one of the container's resource requests"
        requests = (container.get("resources") or {}).get("requests") or {}
        return [] if name in requests else [invalid(path, name, text)]
    if name in claims:
        return []
    form = "in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
    if from_minor(37):
        form = (
            "as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set "
            "or 'claim:<claimName>' when it is empty"
        )
    return [invalid(path, name, f"must match one of the container's resource claims {form}")]


def _validate_allocated_resource(resource: Part, seen: set[str], path: str) -> list[FieldError]:
    health, message, identity = (resource.get("health", ""), resource.get("message"), resource.get("resourceID", ""))
    errors: list[FieldError] = []
    if health not in ("Healthy", "Unhealthy", "Unknown"):
        errors.append(not_supported(f"{path}.health", health, ("Healthy", "Unhealthy", "Unknown")))
    if message is not None and not message:
        errors.append(required(f"{path}.message", NOT_BLANK))
    elif message is not None and not names.fits(message, _HEALTH_MESSAGE_LENGTH):
        errors.append(too_long(f"{path}.message", _HEALTH_MESSAGE_LENGTH))
    if identity in seen:
        errors.append(duplicate(f"{path}.resourceID", identity))
    seen.add(identity)
    return errors
