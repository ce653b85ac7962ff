"""ResourceQuota: rejects writes that exceed the quotas of a namespace.

The limits are `hard` and `used` in the status of a quota (a controller sets them from the spec), and an admitted write increases
`used` at once. An `Evaluator` handles the objects of one resource. It knows which resource names of a quota match them (`pods`,
`requests.cpu`, `count/widgets.example.com`), which scopes they match, and how much they use. A resource without an evaluator
has its objects counted.

Specified by: k8s.io/apiserver/pkg/admission/plugin/resourcequota (CheckRequest), pkg/quota/v1/evaluator/core,
k8s.io/apiserver/pkg/quota/v1/generic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from fakekube.apimachinery.errors import status
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.resources import (
    Amounts,
    amounts,
    pod_limits,
    pod_requests,
    qos_class,
    sums_of_resize,
    sums_of_spec,
    with_allocated_resources,
)
from fakekube.apis.rest.cluster_access import Recorded
from fakekube.apis.validation.resource_lists import HUGE_PAGES, REQUESTS, is_extended, is_native, quantity
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.well_known import BETA_STORAGE_CLASS_ANNOTATION
from fakekube.apiserver.admission.chain import CREATE, UPDATE, Attributes, Operation, Plugin, forbidden
from fakekube.base.objects import Object

#: Resources that no quota counts.
IGNORED = frozenset({("", "events"), ("events.k8s.io", "events"), ("", "bindings")})

#: Resources that are also counted under their plain name.
_ALSO_BARE = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")

ONE = quantity("1")
NONE = quantity("0")

_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
_PER_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_PER_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_MAX_DEVICES = 32


class Evaluator:
    """Counts objects; the base class of the other evaluators."""

    updates: frozenset[str] = frozenset()
    """The subresources ("" for the object itself) through which an update may change the usage."""

    def __init__(self, group: str, plural: str) -> None:
        self.count = f"count/{plural}.{group}" if group else f"count/{plural}"
        self.names = frozenset({self.count, plural} if not group and plural in _ALSO_BARE else {self.count})

    def matches_resource(self, name: str) -> bool:
        """Reports whether this resource name of a quota matches the objects."""
        return name in self.names

    def matches_scope(self, scope: Object, obj: Object) -> bool:
        """Reports whether the object matches a scope of a quota (MatchesScope)."""
        return False

    def constraints(self, limited: Iterable[str], obj: Object) -> str:
        """Returns an error text if the object does not specify limited resources that it must specify (Constraints);
        "" if it is fine.
        """
        return ""

    def handles_update(self, obj: Object, old: Object) -> bool:
        """Reports whether this update of the object itself can change its usage."""
        return True

    def usage(self, obj: Object, now: datetime) -> Amounts:
        """Returns the usage of the object."""
        return dict.fromkeys(self.names, ONE)


class _Pods(Evaluator):
    updates = frozenset({"", "resize"})

    #: If a quota limits one of these, every container must specify it. Kubernetes does not extend this rule, which it regards
    #: as a mistake, to other resources.
    REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
    NAMES = REQUIRED | {
        "pods", "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage",
    }  # fmt: skip

    def matches_resource(self, name: str) -> bool:
        if name == self.count or name in self.NAMES or name.startswith((HUGE_PAGES, REQUESTS + HUGE_PAGES)):
            return True
        return name.startswith(REQUESTS) and (not is_native(name) or name.startswith(REQUESTS + _DEVICE_CLASS))

    def matches_scope(self, scope: Object, obj: Object) -> bool:
        name, spec = str(scope.get("scopeName")), obj["spec"]
        if name in ("Terminating", "NotTerminating"):
            return _has_deadline(obj) == (name == "Terminating")
        if name in ("BestEffort", "NotBestEffort"):
            return (qos_class(spec) == "BestEffort") == (name == "BestEffort")
        if name == "PriorityClass":
            return _matches_class(scope, spec.get("priorityClassName", ""))
        return name == "CrossNamespacePodAffinity" and _has_cross_namespace_affinity(spec)

    def constraints(self, limited: Iterable[str], obj: Object) -> str:
        spec = obj["spec"]
        if any(pod_level for pod_level in (spec.get("resources") or {}).values()):
            return ""
        required = self.REQUIRED.intersection(limited)
        missing: dict[str, set[str]] = {}
        for field in ("containers", "initContainers"):
            for container in spec.get(field) or ():
                resources = container.get("resources") or {}
                specified = _compute(amounts(resources.get("requests")), amounts(resources.get("limits")))
                for name in required - specified.keys():
                    missing.setdefault(name, set()).add(container["name"])
        listed = [f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing)]
        return f"must specify {'; '.join(listed)}" if listed else ""

    def handles_update(self, obj: Object, old: Object) -> bool:
        return _has_deadline(obj) != _has_deadline(old)

    def usage(self, obj: Object, now: datetime) -> Amounts:
        if _is_over(obj, now):
            return {self.count: ONE}
        pod, sums = (obj, sums_of_resize) if from_minor(37) else (with_allocated_resources(obj), sums_of_spec)
        used = _compute(pod_requests(pod, overhead=True, sums=sums), pod_limits(pod, overhead=True, sums=sums))
        return {self.count: ONE, "pods": ONE, **used}


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    used: Amounts = {}
    for name, amount in requests.items():
        if name in ("cpu", "memory", "ephemeral-storage") or name.startswith(HUGE_PAGES):
            used[name] = used[REQUESTS + name] = amount
        elif is_extended(name) or name.startswith(_DEVICE_CLASS):
            used[REQUESTS + name] = amount
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    return used


def _has_deadline(pod: Object) -> bool:
    return "activeDeadlineSeconds" in pod["spec"]


def _is_over(pod: Object, now: datetime) -> bool:
    """Reports whether the pod has terminated, or its deletion grace period has passed (QuotaV1Pod)."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    meta = pod["metadata"]
    if "deletionTimestamp" not in meta or "deletionGracePeriodSeconds" not in meta:
        return False
    deleted = datetime.fromisoformat(meta["deletionTimestamp"])
    return now > deleted + timedelta(seconds=meta["deletionGracePeriodSeconds"])


def _has_cross_namespace_affinity(spec: Object) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        affinity_terms = [
            *(terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()),
            *(term.get("podAffinityTerm") or {} for term in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()),
        ]
        if any(term.get("namespaces") or "namespaceSelector" in term for term in affinity_terms):
            return True
    return False


class _Services(Evaluator):
    updates = frozenset({""})

    def __init__(self, group: str, plural: str) -> None:
        super().__init__(group, plural)
        self.names |= {"services", "services.nodeports", "services.loadbalancers"}

    def usage(self, obj: Object, now: datetime) -> Amounts:
        spec = obj["spec"]
        ports, balanced = spec.get("ports") or (), spec.get("type") == "LoadBalancer"
        node_ports = len(ports) if balanced or spec.get("type") == "NodePort" else 0
        if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(1 for port in ports if port.get("nodePort"))
        return {
            self.count: ONE, "services": ONE, "services.nodeports": quantity(str(node_ports)),
            "services.loadbalancers": ONE if balanced else NONE,
        }  # fmt: skip


class _PersistentVolumeClaims(Evaluator):
    updates = frozenset({"", "status"})

    BARE = ("persistentvolumeclaims", "requests.storage")

    def matches_resource(self, name: str) -> bool:
        return name == self.count or name in self.BARE or name.endswith(tuple(_PER_STORAGE_CLASS + n for n in self.BARE))

    def matches_scope(self, scope: Object, obj: Object) -> bool:
        if scope.get("scopeName") != "VolumeAttributesClass":
            return False
        status = obj.get("status") or {}
        classes = {
            obj["spec"].get("volumeAttributesClassName", ""),
            status.get("currentVolumeAttributesClassName", ""),
            (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName", ""),
        } - {""}
        return any(_matches_class(scope, name) for name in classes or {""})

    def usage(self, obj: Object, now: datetime) -> Amounts:
        spec = obj["spec"]
        annotations = obj["metadata"].get("annotations") or {}
        storage_class = annotations.get(BETA_STORAGE_CLASS_ANNOTATION) or spec.get("storageClassName", "")
        used = {"persistentvolumeclaims": ONE}
        requested = amounts((spec.get("resources") or {}).get("requests")).get("storage")
        if requested is not None:
            allocated = amounts((obj.get("status") or {}).get("allocatedResources")).get("storage", NONE)
            used["requests.storage"] = max(requested.round_up(0), allocated.round_up(0))
        if storage_class:
            used |= {f"{storage_class}{_PER_STORAGE_CLASS}{name}": amount for name, amount in used.items()}
        return {self.count: ONE, **used}


class _ResourceClaims(Evaluator):
    updates = frozenset({""})

    def matches_resource(self, name: str) -> bool:
        return name == self.count or name.endswith(_PER_DEVICE_CLASS)

    def usage(self, obj: Object, now: datetime) -> Amounts:
        used: Amounts = {self.count: ONE}
        for request in (obj["spec"].get("devices") or {}).get("requests") or ():
            worst: Amounts = {}
            for option in request.get("firstAvailable") or [request.get("exactly") or {}]:
                name, count = option.get("deviceClassName", "") + _PER_DEVICE_CLASS, option.get("count", 0)
                devices = quantity(str(_MAX_DEVICES if option.get("allocationMode") == "All" else count))
                worst[name] = max(worst.get(name, NONE), devices)
            for name, amount in worst.items():
                used[name] = used.get(name, NONE) + amount
        return used


_EVALUATORS: Mapping[tuple[str, str], type[Evaluator]] = {
    ("", "pods"): _Pods,
    ("", "services"): _Services,
    ("", "persistentvolumeclaims"): _PersistentVolumeClaims,
    ("resource.k8s.io", "resourceclaims"): _ResourceClaims,
}


@cache
def evaluator_for(group: str, plural: str) -> Evaluator | None:
    """Returns the evaluator of a resource; None for resources that no quota counts."""
    if (group, plural) in IGNORED:
        return None
    return _EVALUATORS.get((group, plural), Evaluator)(group, plural)


def matches(quota: Object, evaluator: Evaluator, obj: Object) -> bool:
    """Reports whether the object matches all scopes of a quota."""
    return all(evaluator.matches_scope(scope, obj) for scope in _scopes(quota))


def _scopes(quota: Object) -> Sequence[Object]:
    spec = quota.get("spec") or {}
    plain = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return [*plain, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ())]


def _matches_class(scope: Object, name: str) -> bool:
    """Reports whether the expression of a scope matches a class name ("" for none)."""
    operator, values = str(scope.get("operator")), scope.get("values") or ()
    if operator in ("Exists", "DoesNotExist"):
        return bool(name) == (operator == "Exists")
    return (name in list(values)) == (operator == "In") if name else operator == "NotIn"


class ResourceQuota(Plugin):
    """See the module."""

    name = "ResourceQuota"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    subresources = frozenset({"", "status", "resize"})
    acts_for = "resource_quotas"

    @classmethod
    def from_configuration(cls, configuration: Any) -> ResourceQuota:
        limited = (configuration or {}).get("limitedResources")
        return LimitedResources(limited) if limited else cls()

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.object
        evaluator = evaluator_for(attributes.resource.group, attributes.resource.plural)
        if obj is None or evaluator is None or not attributes.namespace or not _matters(attributes, evaluator, obj):
            return
        services = attributes.context.services
        quotas = list(services.list("", "resourcequotas", attributes.namespace))
        requested = [(quota, asked) for quota, asked in _requested_usage(attributes, evaluator, obj, quotas) if asked]
        self._check_limits(attributes, evaluator, obj, quotas)
        for quota, asked in requested:
            _check(attributes, quota, asked)
        if attributes.context.dry_run:
            return
        recorded = Recorded("status", attributes.context.clock.now())
        for quota, asked in requested:

            def add_usage(stored: Object, asked: Amounts = asked) -> Object:
                _check(attributes, stored, asked)
                return _with_used(stored, asked)

            name = quota["metadata"]["name"]
            services.update("", "resourcequotas", attributes.namespace, name, add_usage, recorded=recorded)

    def _check_limits(self, attributes: Attributes, evaluator: Evaluator, obj: Object, quotas: Sequence[Object]) -> None:
        """Raises StatusError for limited consumption that no quota covers; without a configuration none is limited."""


class LimitedResources(ResourceQuota):
    """Also rejects the consumption of limited resources that no quota covers.

    Args:
        limited: limitedResources of a ResourceQuotaConfiguration.
    """

    acts_for = ""

    def __init__(self, limited: Sequence[Object]) -> None:
        self._limited = limited

    def _check_limits(self, attributes: Attributes, evaluator: Evaluator, obj: Object, quotas: Sequence[Object]) -> None:
        now = attributes.context.clock.now()
        used = evaluator.usage(obj, now)
        before = evaluator.usage(attributes.old, now) if attributes.operation is UPDATE and attributes.old is not None else {}
        if all((amount - before.get(name, NONE)).sign <= 0 for name, amount in used.items()):
            return
        covered = {name for quota in quotas if matches(quota, evaluator, obj) for name in _status(quota, "hard")}
        if missing := sorted(self._list_limited(attributes, used) - covered):
            raise forbidden(attributes, f"insufficient quota to consume: {','.join(missing)}")
        scopes = {scope["scopeName"] for quota in quotas for scope in _scopes(quota) if evaluator.matches_scope(scope, obj)}
        limited = [
            scope for one in self._limited for scope in one.get("matchScopes") or () if evaluator.matches_scope(scope, obj)
        ]
        if uncovered := [_print_scope(scope) for scope in limited if scope["scopeName"] not in scopes]:
            raise status.generic(500, "", f"insufficient quota to match these scopes: [{' '.join(uncovered)}]")

    def _list_limited(self, attributes: Attributes, used: Amounts) -> set[str]:
        """Returns the names of the resources that the object uses and that are limited (limitedByDefault)."""
        own = (attributes.resource.group, attributes.resource.plural)
        parts = [
            part
            for one in self._limited
            if (one.get("apiGroup", ""), one.get("resource")) == own
            for part in one.get("matchContains") or ()
        ]
        return {name for name, amount in used.items() if amount.sign > 0 and any(part in name for part in parts)}


def _print_scope(scope: Object) -> str:
    """Prints a ScopedResourceSelectorRequirement as Go prints structs."""
    return f"{{{scope['scopeName']} {scope.get('operator', '')} [{' '.join(scope.get('values') or ())}]}}"


def _matters(attributes: Attributes, evaluator: Evaluator, obj: Object) -> bool:
    """Reports whether this write may change the usage."""
    if attributes.operation is CREATE:
        return not attributes.subresource
    if attributes.subresource not in evaluator.updates:
        return False
    return bool(attributes.subresource) or attributes.old is None or evaluator.handles_update(obj, attributes.old)


def _requested_usage(
    attributes: Attributes, evaluator: Evaluator, obj: Object, quotas: Sequence[Object]
) -> list[tuple[Object, Amounts]]:
    """Returns the increase of usage in each quota that matches the object."""
    measured: list[tuple[Object, list[str]]] = []
    for quota in quotas:
        names = sorted(name for name in _status(quota, "hard") if evaluator.matches_resource(name))
        if not names or not matches(quota, evaluator, obj):
            continue
        _check_constraints(attributes, evaluator, obj, quota, names)
        measured.append((quota, names))
    now = attributes.context.clock.now()
    used = evaluator.usage(obj, now)
    more, old = used, attributes.old
    if attributes.operation is UPDATE and old is not None:
        before = evaluator.usage(old, now)
        more = {name: amount - before[name] if name in before else amount for name, amount in used.items()}
    return [
        (quota, _positive(more if old is not None and matches(quota, evaluator, old) else used, names))
        for quota, names in measured
    ]


def _check_constraints(attributes: Attributes, evaluator: Evaluator, obj: Object, quota: Object, names: Sequence[str]) -> None:
    """Checks that the object sets the limited resources, and that the quota's status is set."""
    named = quota["metadata"]["name"]
    missing = evaluator.constraints(names, obj)
    if missing:
        raise forbidden(attributes, f"failed quota: {named}: {missing}")
    used = _status(quota, "used")
    if any(name not in used for name in names):
        raise forbidden(attributes, f"status unknown for quota: {named}, resources: {','.join(names)}")


def _positive(used: Amounts, names: Iterable[str]) -> Amounts:
    return {name: used[name] for name in names if used.get(name, NONE).sign > 0}


def _check(attributes: Attributes, quota: Object, asked: Amounts) -> None:
    """Raises StatusError if the quota is exceeded (updates of a status only change the usage)."""
    if attributes.subresource == "status":
        return
    hard, used = amounts(_status(quota, "hard")), amounts(_status(quota, "used"))
    exceeded = [n for n, amount in asked.items() if n in hard and used.get(n, NONE) + amount > hard[n]]
    if exceeded:
        name = quota["metadata"]["name"]
        problem = (
            f"exceeded quota: {name}, requested: {_pretty_print(asked, exceeded)}, used: {_pretty_print(used, exceeded)}, "
            f"limited: {_pretty_print(hard, exceeded)}"
        )
        raise forbidden(attributes, problem)


def _with_used(quota: Object, asked: Amounts) -> Object:
    used = amounts(_status(quota, "used"))
    sums = {name: used[name] + amount if name in used else amount for name, amount in asked.items()}
    texts = {name: str(amount) for name, amount in {**used, **sums}.items()}
    return {**quota, "status": {**quota["status"], "used": texts}}


def _status(quota: Object, side: str) -> Mapping[str, str]:
    return (quota.get("status") or {}).get(side) or {}


def _pretty_print(sums: Mapping[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(f"{name}={sums[name]}" for name in sorted(names) if name in sums)
