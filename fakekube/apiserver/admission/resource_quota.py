"""ResourceQuota: rejects writes that exceed the quotas of the namespace.

The limits are `hard` and `used` in the status of a quota (a controller sets them from the spec). An admitted write
increases `used` at once.

Specified by: k8s.io/apiserver/pkg/admission/plugin/resourcequota (CheckRequest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.resources import Amounts, amounts
from fakekube.apis.rest.cluster_access import Recorded
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apiserver.admission.chain import CREATE, UPDATE, Attributes, Operation, Plugin, forbidden
from fakekube.apiserver.quota import Evaluator, evaluator_for, matches

NONE = quantity("0")


class ResourceQuota(Plugin):
    """See the module."""

    name = "ResourceQuota"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    subresources = frozenset({"", "status", "resize"})
    acts_for = "resource_quotas"

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.object
        evaluator = evaluator_for(attributes.resource.group, attributes.resource.plural)
        if obj is None or evaluator is None or not attributes.namespace or not _matters(attributes, evaluator, obj):
            return
        services = attributes.context.services
        quotas = list(services.list("", "resourcequotas", attributes.namespace))
        if not quotas:
            return
        requested = [(quota, asked) for quota, asked in _requested_usage(attributes, evaluator, obj, quotas) if asked]
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
