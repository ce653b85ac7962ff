"""Aggregates ClusterRoles: a role with an aggregationRule gets the rules of all ClusterRoles that its selectors match.

Rules are in the order of the selectors, then of the names of the roles, then of each role; duplicates are dropped.

Specified by: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fakekube.apimachinery.selectors import from_label_selector
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.reconciler import Key, Reconciler

CLUSTER_ROLES: Final = "clusterroles.rbac.authorization.k8s.io"
MANAGER: Final = "clusterrole-aggregation-controller"


class ClusterRoleAggregationController(Reconciler):
    """Writes the rules of aggregated roles. A change of any role enqueues all of them."""

    name = "clusterrole-aggregation-controller"
    watches = (CLUSTER_ROLES,)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        return [Key("", role["metadata"]["name"]) for role in self.cache.list(CLUSTER_ROLES) if role.get("aggregationRule")]

    def reconcile(self, key: Key) -> None:
        role = self.cache.get(CLUSTER_ROLES, "", key.name)
        if role is None or not role.get("aggregationRule"):
            return
        rules = self._aggregate_rules(role)
        if rules != (role.get("rules") or []):
            applied = {
                "apiVersion": role["apiVersion"],
                "kind": role["kind"],
                "metadata": {"name": key.name},
                **({"rules": rules} if rules else {}),
            }
            self.client.apply(applied, field_manager=MANAGER, force=True)

    def _aggregate_rules(self, role: Object) -> list[Object]:
        """Returns the rules of the roles that the selectors of a role match, in the order that the module describes."""
        rules: list[Object] = []
        for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
            matches = from_label_selector(selector).matches
            selected = {
                one["metadata"]["name"]: one
                for one in self.cache.list(CLUSTER_ROLES)
                if one["metadata"]["name"] != role["metadata"]["name"] and matches(one["metadata"].get("labels") or {})
            }
            for name in sorted(selected):
                for rule in selected[name].get("rules") or ():
                    if rule not in rules:
                        rules.append(rule)
        return rules
