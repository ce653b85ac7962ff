"""ResourceQuota: rejects writes that exceed the quotas of the namespace.

The limits are `hard` and `used` in the status of a quota (a controller sets them from the spec). An admitted write
increases `used` at once.

Specified by: k8s.io/apiserver/pkg/admission/plugin/resourcequota (CheckRequest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fakekube.admission.plugin import CREATE, UPDATE, Attributes, Operation, Plugin
from fakekube.admission.refusals import forbidden
from fakekube.apis.core.pods.resource_requests import Amounts, amounts
from fakekube.quota.evaluators import Evaluator, evaluator_for, matches
from fakekube.registry.cluster_access import Recorded
from fakekube.registry.strategy import Object
from fakekube.schema.quantity import Quantity
from fakekube.validation.resource_lists import quantity

__all__ = ["ResourceQuota"]

NONE = quantity("0")


class ResourceQuota(Plugin):
    """See the module."""

    name = "ResourceQuota"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    subresources = frozenset({"", "status", "resize"})

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.object
        meter = evaluator_for(attributes.resource.group, attributes.resource.plural)
        if obj is None or meter is None or not attributes.namespace or not _matters(attributes, meter, obj):
            return
        services = attributes.context.services
        quotas = list(services.list("", "resourcequotas", attributes.namespace))
        if not quotas:
            return
        booked = [(quota, asked) for quota, asked in _asked(attributes, meter, obj, quotas) if asked]
        for quota, asked in booked:
            _check(attributes, quota, asked)
        if attributes.context.dry_run:
            return
        recorded = Recorded("status", attributes.context.clock.now())
        for quota, asked in booked:

            def book(stored: Object, asked: Amounts = asked) -> Object:
                _check(attributes, stored, asked)
                return _with_used(stored, asked)

            name = quota["metadata"]["name"]
            services.update("", "resourcequotas", attributes.namespace, name, book, recorded=recorded)


def _matters(attributes: Attributes, meter: Evaluator, obj: Object) -> bool:
    """Reports whether this write may change the usage."""
    if attributes.operation is CREATE:
        return not attributes.subresource
    if attributes.subresource not in meter.updates:
        return False
    return bool(attributes.subresource) or attributes.old is None or meter.handles_update(obj, attributes.old)


def _asked(attributes: Attributes, meter: Evaluator, obj: Object, quotas: Sequence[Object]) -> list[tuple[Object, Amounts]]:
    """Returns the increase of usage in each quota that matches the object."""
    measured: list[tuple[Object, list[str]]] = []
    for quota in quotas:
        names = sorted(name for name in _status(quota, "hard") if meter.matches_resource(name))
        if not names or not matches(quota, meter, obj):
            continue
        _check_told(attributes, meter, obj, quota, names)
        measured.append((quota, names))
    now = attributes.context.clock.now()
    used = meter.usage(obj, now)
    negative = sorted(name for name, amount in used.items() if amount.sign < 0)
    if negative:
        raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
    more, old = used, attributes.old
    if attributes.operation is UPDATE and old is not None:
        before = meter.usage(old, now)
        more = {name: amount - before[name] if name in before else amount for name, amount in used.items()}
    return [
        (quota, _positive(more if old is not None and matches(quota, meter, old) else used, names)) for quota, names in measured
    ]


def _check_told(attributes: Attributes, meter: Evaluator, obj: Object, quota: Object, names: Sequence[str]) -> None:
    """Checks that the object sets the limited resources, and that the quota's status is set."""
    named = quota["metadata"]["name"]
    missing = meter.constraints(names, obj)
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
            f"exceeded quota: {name}, requested: {_listed(asked, exceeded)}, used: {_listed(used, exceeded)}, "
            f"limited: {_listed(hard, exceeded)}"
        )
        raise forbidden(attributes, problem)


def _with_used(quota: Object, asked: Amounts) -> Object:
    used = amounts(_status(quota, "used"))
    sums = {name: used[name] + amount if name in used else amount for name, amount in asked.items()}
    texts = {name: str(amount) for name, amount in {**used, **sums}.items()}
    return {**quota, "status": {**quota["status"], "used": texts}}


def _status(quota: Object, side: str) -> Mapping[str, str]:
    return (quota.get("status") or {}).get(side) or {}


def _listed(sums: Mapping[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(f"{name}={sums[name]}" for name in sorted(names) if name in sums)
