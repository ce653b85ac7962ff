"""Resource names and quantities (`cpu: 100m`): the names that each place accepts, and their valid quantities.

A resource list is a mapping of names to quantities in canonical form. Names without a slash are native and must be
known. Names with a domain other than kubernetes.io are extended resources, which have integer quantities and cannot be
overcommitted.

Specified by: pkg/apis/core/validation/validation.go, pkg/apis/core/helper/helpers.go,
k8s.io/component-helpers/resource/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import (
    FieldErrorType,
    Printed,
    Typed,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fakekube.apimachinery.schema.quantity import Quantity, QuantityError, parse
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import NOT_NEGATIVE, POSITIVE, invalid_each
from fakekube.apis.validation.rules import from_minor
from fakekube.base.caches import cache_by_text, forgettable
from fakekube.base.golang.strconv import MAX_INT64, go_quote

MAX_MILLI_VALUE: Final = MAX_INT64 // 1000

ResourceList = Mapping[str, str]
ResourceNameCheck = Callable[[str, str], list[FieldError]]

HUGE_PAGES = "hugepages-"
REQUESTS = "requests."
_NATIVE_DOMAIN = "kubernetes.io/"

COMPUTE = frozenset({"cpu", "memory"})
CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_INTEGER_RESOURCES = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
QUOTA_RESOURCES = (
    _INTEGER_RESOURCES
    | CONTAINER_RESOURCES
    | {f"{side}.{name}" for side in ("requests", "limits") for name in CONTAINER_RESOURCES}
    | {"requests.storage"}
)
_STANDARD_RESOURCES = QUOTA_RESOURCES | {"storage"}

#: The text of a quantity → the quantity; a cache, as the same texts are parsed again and again.
quantity: Callable[[str], Quantity] = cache_by_text(4096)(parse)


@cache_by_text(4096)
def _is_fractional(amount: str) -> bool:
    """Reports whether the quantity, in thousandths, is not a whole number."""
    return quantity(amount).milli_value() % 1000 != 0


def fractional_bytes(resources: Mapping[str, str], path: str, names: Iterable[str]) -> list[str]:
    """Returns warnings about quantities that are not a whole number of bytes."""
    return [
        f"{path}[{name}]: fractional byte value {go_quote(resources[name])} is invalid, must be an integer"
        for name in names
        if name in resources and _is_fractional(resources[name])
    ]


@forgettable
@lru_cache(maxsize=4096)
def exceeds(amount: str, limit: str) -> bool:
    """Reports whether the quantity is larger than the limit."""
    return quantity(limit) < quantity(amount)


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_quota_huge_page(name: str) -> bool:
    return name.startswith((HUGE_PAGES, REQUESTS + HUGE_PAGES))


def is_native(name: str) -> bool:
    """Reports whether this is a native resource of Kubernetes."""
    return "/" not in name or _NATIVE_DOMAIN in name


@cache_by_text(1024)
def is_extended(name: str) -> bool:
    """Reports whether this is an extended resource."""
    return not is_native(name) and not name.startswith(REQUESTS) and not names.label_key(REQUESTS + name)


def is_integer(name: str) -> bool:
    return name in _INTEGER_RESOURCES or is_extended(name)


def is_overcommitable(name: str) -> bool:
    """Reports whether the limit may exceed the request."""
    return is_native(name) and not is_huge_page(name)


def resource_name(name: str, path: str) -> list[FieldError]:
    """Validates a qualified name, which must be a known one if it has no domain (validateResourceName)."""
    if name in _STANDARD_RESOURCES:
        return []
    errors = invalid_each(path, _print_name(name), names.label_key(name))
    if errors or "/" in name or is_quota_huge_page(name):
        return errors
    return [invalid(path, _print_name(name), "must be a standard resource type or fully qualified")]


def _print_name(name: str) -> str:
    """Returns the name as a bad value: 1.33 prints it with its method String, without quotes."""
    return Typed(name) if from_minor(34) else Printed(name)


def container_resource_name(name: str, path: str) -> list[FieldError]:
    """Validates the name of a resource of a container (validateContainerResourceName)."""
    if name in CONTAINER_RESOURCES:
        return []
    errors = resource_name(name, path)
    if "/" not in name:
        if not is_huge_page(name):
            errors.append(invalid(path, _print_name(name), "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, _print_name(name), "doesn't follow extended resource name standard"))
    return errors


def is_pod_level(name: str) -> bool:
    """Reports whether the resource can be requested at pod level."""
    return name in COMPUTE or is_huge_page(name)


def pod_resource_name(name: str, path: str) -> list[FieldError]:
    """Validates the name of a pod-level resource (validatePodResourceName)."""
    errors = resource_name(name, path)
    if errors or is_pod_level(name):
        return errors
    return [not_supported(path, name, ["cpu", HUGE_PAGES, "memory"])]


def quota_resource_name(name: str, path: str) -> list[FieldError]:
    """Validates the name of a resource of a quota (ValidateResourceQuotaResourceName)."""
    errors = resource_name(name, path)
    if "/" in name or name in QUOTA_RESOURCES or is_quota_huge_page(name):
        return errors
    return [*errors, invalid(path, _print_name(name), "must be a standard resource for quota")]


def non_negative_quantity(amount: str, path: str) -> list[FieldError]:
    return [invalid(path, amount, NOT_NEGATIVE)] if amount.startswith("-") else []


def positive_quantity(amount: str, path: str) -> list[FieldError]:
    return [] if quantity(amount).sign > 0 else [invalid(path, amount, POSITIVE)]


def quantity_value(name: str, amount: str, path: str) -> list[FieldError]:
    """Validates the quantity of a resource: not negative, and an integer where the resource needs one."""
    errors = non_negative_quantity(amount, path)
    if is_integer(name) and _is_fractional(amount):
        errors.append(invalid(path, amount, "must be an integer"))
    return errors


def requirements(
    resources: Mapping[str, Any],
    path: str,
    name_check: ResourceNameCheck,
    claim_names: Set[str],
    allow_indivisible_huge_pages: bool = False,
) -> list[FieldError]:
    """Validates the limits, requests and claims of a container or pod (validateResourceRequirements)."""
    limits: ResourceList = resources.get("limits") or {}
    requests: ResourceList = resources.get("requests") or {}
    errors: list[FieldError] = []
    for name, amount in limits.items():
        errors += _amount(name, amount, f"{path}.limits[{name}]", name_check, allow_indivisible_huge_pages)
    for name, amount in requests.items():
        where = f"{path}.requests[{name}]"
        errors += name_check(name, where)
        errors += quantity_value(name, amount, where)
        errors += _request_within_limit(name, amount, limits.get(name), path)
        if is_huge_page(name) and not allow_indivisible_huge_pages:
            errors += _divisible(name, amount, where)
    named = {*limits, *requests}
    if not named & COMPUTE and any(map(is_huge_page, named)):
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    claims = resources.get("claims")
    return errors + _claims(claims, claim_names, f"{path}.claims") if claims else errors


def _amount(name: str, amount: str, path: str, name_check: ResourceNameCheck, allow_indivisible: bool) -> list[FieldError]:
    errors = name_check(name, path) + quantity_value(name, amount, path)
    if is_huge_page(name) and not allow_indivisible:
        errors += _divisible(name, amount, path)
    return errors


def _request_within_limit(name: str, amount: str, limit: str | None, path: str) -> list[FieldError]:
    if limit is None:
        if is_overcommitable(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    if amount == limit:
        return []
    if not is_overcommitable(name) and quantity(amount) != quantity(limit):
        return [invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")]
    if exceeds(amount, limit):
        text = names.max_error(f"{name} limit of {limit}")
        return [invalid(f"{path}.requests", amount, text)]
    return []


def is_divisible(name: str, amount: str) -> bool:
    """Reports whether the quantity of huge pages is a multiple of the page size."""
    try:
        page = quantity(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return False
    return page.sign > 0 and page.milli_value() % 1000 == 0 and quantity(amount).value() % page.value() == 0


def _divisible(name: str, amount: str, path: str) -> list[FieldError]:
    if is_divisible(name, amount):
        return []
    return [invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]


def _claims(claims: Iterable[Mapping[str, Any]], pod_claims: Set[str], path: str) -> list[FieldError]:
    """Validates references to the resource claims of the pod (validateResourceClaimNames)."""
    errors: list[FieldError] = []
    seen: dict[str, set[str]] = {}
    """The requests of each claim that were mentioned so far; "" for all of them."""
    for index, claim in enumerate(claims):
        name, request, where = claim.get("name", ""), claim.get("request", ""), f"{path}[{index}]"
        if not name:
            errors.append(required(where))
            continue
        requests = seen.setdefault(name, set())
        if "" in requests:
            errors.append(duplicate(where, name))
        else:
            errors += _claim_request(name, request, requests, where)
            requests.add(request)
        if name not in pod_claims:
            known = f": {', '.join(sorted(pod_claims))}" if pod_claims else " which is empty"
            text = f"must be one of the names in pod.spec.resourceClaims{known}"
            errors.append(FieldError(FieldErrorType.NOT_FOUND, where, name, text))
    return errors


def _claim_request(name: str, request: str, requests: Set[str], path: str) -> list[FieldError]:
    if not request:
        return [duplicate(path, name)] * len(requests)
    errors = invalid_each(f"{path}.request", request, names.dns_label(request))
    return [*errors, duplicate(path, f"{name}/{request}")] if request in requests else errors
