"""Which outdated pods of a DaemonSet are replaced next.

Without surge an old pod is deleted and the new one follows: at once where the old one is not available, else as far as
maxUnavailable allows. With surge the new pod comes first, and the old one goes when the new one is available.

Specified by: pkg/controller/daemon/update.go (rollingUpdate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fakekube.controllers.daemon.placement import should_run
from fakekube.controllers.daemon.template import is_updated, template_generation
from fakekube.controllers.percentages import scaled_value
from fakekube.controllers.pods import is_available

__all__ = ["allows_surge", "rolling_update"]

Object = dict[str, Any]


def _rolling(daemon_set: Object) -> Object | None:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    return strategy.get("rollingUpdate") or {} if strategy.get("type") == "RollingUpdate" else None


def allows_surge(daemon_set: Object) -> bool:
    """May an update run two pods on a node?"""
    rolling = _rolling(daemon_set)
    return rolling is not None and scaled_value(rolling.get("maxSurge"), 1, round_up=True) > 0


@dataclass(slots=True)
class _Plan:
    """What an update does next."""

    delete: list[Object] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)


def rolling_update(
    daemon_set: Object, nodes: Sequence[Object], pods_of: Mapping[str, list[Object]], hash_: str, now: datetime
) -> tuple[list[Object], list[str]]:
    """The next step.

    Args:
        daemon_set: to update.
        nodes: all nodes.
        pods_of: the pods by the node that they are made for.
        hash_: of the present template.
        now: what availability is counted to.

    Returns:
        The pods to delete, and the names of the nodes to make pods for.
    """
    wanted = [node["metadata"]["name"] for node in nodes if should_run(node, daemon_set)[0]]
    rolling = _rolling(daemon_set) or {}
    surge = scaled_value(rolling.get("maxSurge"), len(wanted), round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable"), len(wanted), round_up=True)
    if wanted and not surge and not unavailable:
        unavailable = 1
    present = {**{name: [] for name in wanted}, **pods_of}
    update = _Update(daemon_set, hash_, now, {node["metadata"]["name"]: node for node in nodes})
    if surge:
        return update.with_surge(present, surge, len(wanted))
    return update.without_surge(present, unavailable), []


@dataclass(slots=True)
class _Update:
    daemon_set: Object
    hash_: str
    now: datetime
    nodes: Mapping[str, Object]

    def _available(self, pod: Object) -> bool:
        return is_available(pod, self.daemon_set["spec"].get("minReadySeconds", 0), self.now)

    def _pair(self, pods: Sequence[Object]) -> tuple[Object | None, Object | None] | None:
        """The new and the old pod of a node; None if there are two of a kind."""
        generation = template_generation(self.daemon_set)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        new = [pod for pod in alive if is_updated(pod, self.hash_, generation)]
        old = [pod for pod in alive if not is_updated(pod, self.hash_, generation)]
        if len(new) > 1 or len(old) > 1:
            return None
        return new[0] if new else None, old[0] if old else None

    def without_surge(self, present: Mapping[str, list[Object]], limit: int) -> list[Object]:
        """The old pods to delete."""
        at_once, candidates, unavailable = [], [], 0
        for pods in present.values():
            new, old = self._pair(pods) or (None, None)
            if (new is None) == (old is None):
                unavailable += 1
            elif new is not None:
                unavailable += not self._available(new)
            elif old is not None and not self._available(old):
                at_once.append(old)
                unavailable += 1
            elif old is not None and unavailable < limit:
                candidates.append(old)
        return at_once + candidates[: max(limit - unavailable, 0)]

    def with_surge(self, present: Mapping[str, list[Object]], limit: int, wanted: int) -> tuple[list[Object], list[str]]:
        """The old pods to delete, and the nodes to make new ones for."""
        plan, candidates, misplaced = _Plan(), _Plan(), []
        surging = available = 0
        for name, pods in present.items():
            pair = self._pair(pods)
            if pair is None:
                surging += 1
                continue
            new, old = pair
            shown = old or new
            available += shown is not None and self._available(shown)
            if old is None:
                continue
            if new is not None:
                if self._available(new):
                    plan.delete.append(old)
                else:
                    surging += 1
                continue
            runs = name in self.nodes and should_run(self.nodes[name], self.daemon_set)[0]
            if not self._available(old):
                if runs:
                    plan.nodes.append(name)
                else:
                    plan.delete.append(old)
            elif not runs:
                misplaced.append(old)
            elif surging < limit:
                candidates.nodes.append(name)
        plan.delete += misplaced[: max(available - wanted, 0)]
        return plan.delete, plan.nodes + candidates.nodes[: max(limit - surging, 0)]
