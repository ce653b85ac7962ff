"""The resource quota controller: recalculates the usage in the status of ResourceQuotas.

Admission adds what is created to the usage (`apiserver.admission.resource_quota`). This controller counts objects that are
older than the quota, and recalculates when objects are deleted or changed so that they use less.

Specified by: pkg/controller/resourcequota/{resource_quota_controller,resource_quota_monitor}.go,
pkg/quota/v1/install/update_filter.go, k8s.io/apiserver/pkg/quota/v1/resources.go (CalculateUsage).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.core.pods.resources import Amounts, amounts
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.admission.resource_quota import NONE, Evaluator, evaluator_for, matches
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.informers import ADDED, DELETED
from fakekube.controllers.reconciler import Key, Reconciler

QUOTAS: Final = "resourcequotas"
#: Seconds between two full recalculations of a quota (--resource-quota-sync-period).
SYNC_PERIOD: Final = 300.0


class ResourceQuotaController(Reconciler):
    """Writes the status of ResourceQuotas; keys are quotas."""

    name = "resourcequota-controller"
    watches = (QUOTAS,)

    def on_resources_changed(self) -> None:
        for quota in self.cache.list(QUOTAS):
            self.enqueue(_quota_key(quota))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        found: list[Key] = []
        if (
            resource == QUOTAS
            and event_type != DELETED
            and (old is None or _hard_limits(old, "spec") != _hard_limits(obj, "spec"))
        ):
            found.append(_quota_key(obj))
        if event_type != ADDED:
            found += self._replenish_quota(resource, event_type, obj, old)
        return found

    def _replenish_quota(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterator[Key]:
        """Yields the quotas whose usage an update or a deletion may have reduced (replenishQuota)."""
        quotas = self.cache.list(QUOTAS, obj["metadata"].get("namespace", ""))
        plural, _, group = resource.partition(".")
        evaluator = evaluator_for(group, plural) if quotas else None
        if evaluator is None or (event_type != DELETED and not self._usage_changed(evaluator, obj, old or obj, quotas)):
            return
        yield from (_quota_key(quota) for quota in quotas if any(map(evaluator.matches_resource, _hard_limits(quota, "status"))))

    def _usage_changed(self, evaluator: Evaluator, obj: StoredObject, old: StoredObject, quotas: Iterable[Object]) -> bool:
        """Reports whether the usage of an object has changed, or the quotas that match it."""
        if not evaluator.updates:
            return False
        # The evaluators, which only read, declare that their objects are dicts.
        new, former, now = cast("Object", obj), cast("Object", old), self.clock.now()
        if evaluator.usage(new, now) != evaluator.usage(former, now):
            return True
        return any(matches(quota, evaluator, new) != matches(quota, evaluator, former) for quota in quotas)

    def reconcile(self, key: Key) -> None:
        quota = self.cache.get(QUOTAS, key.namespace, key.name)
        if quota is None:
            return
        self.requeue_after(key, SYNC_PERIOD)
        hard, status = _hard_limits(quota, "spec"), quota.get("status") or {}
        usage = {**amounts(status.get("used")), **self._calculate_usage(quota, hard)}
        used = {name: str(amount) for name, amount in sorted(usage.items()) if name in hard}
        if amounts(status.get("hard")) != amounts(hard) or amounts(status.get("used")) != amounts(used) or "used" not in status:
            self.client.update({**quota, "status": {"hard": dict(hard), "used": used}}, subresource="status")

    def _calculate_usage(self, quota: Object, hard: Mapping[str, str]) -> Amounts:
        """Returns the usage of the limits for which there are evaluators."""
        total: Amounts = {}
        for resource in self._countable_resources():
            evaluator = evaluator_for(resource.group, resource.plural)
            names = [name for name in hard if evaluator is not None and evaluator.matches_resource(name)]
            if evaluator is None or not names:
                continue
            self.also_watch(resource.group_resource)
            objects = self.cache.list(resource.group_resource, quota["metadata"]["namespace"])
            usage = self._sum_usage(quota, evaluator, objects)
            _add_amounts(total, {name: usage.get(name, NONE) for name in names})
        return total

    def _sum_usage(self, quota: Object, evaluator: Evaluator, objects: Iterable[Object]) -> Amounts:
        """Returns the usage of the objects that match a quota."""
        now = self.clock.now()
        total: Amounts = {}
        for obj in objects:
            if matches(quota, evaluator, obj):
                _add_amounts(total, evaluator.usage(obj, now))
        return total

    def _countable_resources(self) -> Sequence[Resource]:
        return [one for one in self.client.namespaced_resources() if {"create", "list", "delete"} <= one.verbs]


def _add_amounts(total: Amounts, more: Mapping[str, Quantity]) -> None:
    """Adds amounts to a total, which it changes."""
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _quota_key(obj: StoredObject) -> Key:
    return Key(obj["metadata"]["namespace"], obj["metadata"]["name"])


def _hard_limits(quota: StoredObject, side: str) -> Mapping[str, str]:
    """Returns the limits in the spec or the status."""
    hard: Mapping[str, str] = (quota.get(side) or {}).get("hard") or {}
    return hard
