"""LimitRanger: sets the defaults of LimitRanges in containers, and enforces their limits.

Specified by: plugin/pkg/admission/limitranger/admission.go (PodValidateLimitFunc, PersistentVolumeClaimValidateLimitFunc, and the
functions that have the names of those here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.resources import Amounts, amounts, pod_limits, pod_requests
from fakekube.apis.validation.resource_lists import MAX_MILLI_VALUE, quantity
from fakekube.apiserver.admission.chain import UPDATE, Attributes, Operation, Plugin, forbidden
from fakekube.apiserver.admission.pods import PODS
from fakekube.apiserver.admission.storage import CLAIMS
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.objects import Object

ANNOTATION = "kubernetes.io/limit-ranger"


NOTHING = quantity("0")


class LimitRanger(Plugin):
    """See the module."""

    name = "LimitRanger"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS, CLAIMS})
    subresources = frozenset({"", "resize"})
    acts_for = "limit_ranges"

    def admit(self, attributes: Attributes) -> None:
        obj = attributes.object
        if obj is not None and attributes.resource.plural == "pods" and _supports_limit(attributes):
            for limit_range in _limit_ranges(attributes):
                _merge_pod_resource_requirements(obj, limit_range)

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.object
        if obj is None or not _supports_limit(attributes):
            return
        check = _validate_pod if attributes.resource.plural == "pods" else _validate_claim
        for limit_range in _limit_ranges(attributes):
            problem = aggregate_errors(check(obj, limit_range["spec"].get("limits") or ()))
            if problem:
                raise forbidden(attributes, problem)


def _supports_limit(attributes: Attributes) -> bool:
    """Reports whether limits apply: to pods that are created or resized, and to all writes of claims."""
    if attributes.old is not None and "deletionTimestamp" in attributes.old["metadata"]:
        return False
    update = attributes.operation is UPDATE
    if attributes.subresource:
        return update and attributes.resource.plural == "pods"
    return not (update and attributes.resource.plural == "pods")


def _limit_ranges(attributes: Attributes) -> Iterator[Object]:
    return attributes.context.services.list("", "limitranges", attributes.namespace)


# --- Defaults ---------------------------------------------------------------------------------------------------------


def _merge_pod_resource_requirements(pod: Object, limit_range: Object) -> None:
    """Sets the default requests and limits of containers (defaultContainerResourceRequirements)."""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for item in limit_range["spec"].get("limits") or ():
        if item.get("type") == "Container":
            limits |= item.get("default") or {}
            requests |= item.get("defaultRequest") or {}
    notes: list[str] = []
    for field, what in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            resources = container.setdefault("resources", {})
            for side, defaults in (("requests", requests), ("limits", limits)):
                missing = _merge_defaults(resources, side, defaults)
                if missing:
                    notes.append(f"{', '.join(missing)} {side[:-1]} for {what} {container.get('name', '')}")
    if notes:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _merge_defaults(resources: Object, side: str, defaults: Mapping[str, str]) -> list[str]:
    """Sets missing defaults and returns their names."""
    held = resources.get(side) or {}
    missing = sorted(name for name in defaults if name not in held)
    if missing:
        resources[side] = {**held, **{name: defaults[name] for name in missing}}
    return missing


# --- Limits -----------------------------------------------------------------------------------------------------------


def _validate_claim(claim: Object, limits: Sequence[Object]) -> Iterator[str]:
    requests = amounts((claim["spec"].get("resources") or {}).get("requests"))
    for item in limits:
        kind = item.get("type", "")
        if kind == "PersistentVolumeClaim":
            for name, bound in _bounds(item, "min"):
                yield from _min_constraint(kind, name, bound, requests, {})
            for name, bound in _bounds(item, "max"):
                yield from _max_request_constraint(kind, name, bound, requests)


def _validate_pod(pod: Object, limits: Sequence[Object]) -> Iterator[str]:
    for item in limits:
        kind = item.get("type", "")
        if kind == "Container":
            for field in ("containers", "initContainers"):
                for container in pod["spec"].get(field) or ():
                    resources = container.get("resources") or {}
                    requests, maxima = amounts(resources.get("requests")), amounts(resources.get("limits"))
                    yield from _constraints(kind, item, requests, maxima)
        elif kind == "Pod":
            yield from _constraints(kind, item, pod_requests(pod), pod_limits(pod))


def _constraints(kind: str, item: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    checks: Mapping[str, Callable[[str, str, Quantity, Amounts, Amounts], Iterator[str]]] = {
        "min": _min_constraint,
        "max": _max_constraint,
        "maxLimitRequestRatio": _limit_request_ratio_constraint,
    }
    for field, check in checks.items():
        for name, bound in _bounds(item, field):
            yield from check(kind, name, bound, requests, limits)


def _bounds(item: Object, field: str) -> Iterator[tuple[str, Quantity]]:
    for name, amount in sorted((item.get(field) or {}).items()):
        yield name, quantity(amount)


def _request_limit_enforced_values(*quantities: Quantity) -> list[int]:
    """Returns milli-values if all are small enough, else values."""
    if all(one.value() <= MAX_MILLI_VALUE for one in quantities):
        return [one.milli_value() for one in quantities]
    return [one.value() for one in quantities]


def _min_constraint(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    asked, most, least = _request_limit_enforced_values(request or NOTHING, limit or NOTHING, bound)
    text = f"minimum {name} usage per {kind} is {bound}"
    if request is None:
        yield f"{text}.  No request is specified"
    elif asked < least:
        yield f"{text}, but request is {request}"
    elif limit is not None and most < least:
        yield f"{text}, but limit is {limit}"


def _max_request_constraint(kind: str, name: str, bound: Quantity, requests: Amounts) -> Iterator[str]:
    request = requests.get(name)
    asked, most = _request_limit_enforced_values(request or NOTHING, bound)
    text = f"maximum {name} usage per {kind} is {bound}"
    if request is None:
        yield f"{text}.  No request is specified"
    elif asked > most:
        yield f"{text}, but request is {request}"


def _max_constraint(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    asked, wanted, most = _request_limit_enforced_values(request or NOTHING, limit or NOTHING, bound)
    text = f"maximum {name} usage per {kind} is {bound}"
    if limit is None:
        yield f"{text}.  No limit is specified"
    elif wanted > most:
        yield f"{text}, but limit is {limit}"
    elif request is not None and asked > most:
        yield f"{text}, but request is {request}"


def _limit_request_ratio_constraint(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    asked, wanted, _ = _request_limit_enforced_values(requests.get(name, NOTHING), limits.get(name, NOTHING), bound)
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    if not asked:
        yield f"{text}, but no request is specified or request is 0"
    elif not wanted:
        yield f"{text}, but no limit is specified or limit is 0"
    elif wanted / asked * 1000 > bound.milli_value():
        yield f"{text}, but provided ratio is {wanted / asked:.6f}"
