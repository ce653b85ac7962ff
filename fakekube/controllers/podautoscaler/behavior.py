"""Stabilizes and limits the replica count: recent recommendations, the rate of scaling, minReplicas and maxReplicas.

Without `spec.behavior` the highest recommendation of the last five minutes is used, and the replica count may at most double (or
grow to four). With it, each direction has its own stabilization window and policies.

Invariant: a recommendation older than the stabilization windows is replaced by a new one, so that the list does not grow.

Specified by: pkg/controller/podautoscaler/horizontal.go (normalizeDesiredReplicas, normalizeDesiredReplicasWithBehaviors).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from fakekube.controllers.objects import Object

__all__ = ["Bounds", "Decision", "History"]


#: Seconds (--horizontal-pod-autoscaler-downscale-stabilization).
DOWNSCALE_WINDOW = 300.0
SCALE_UP_FACTOR = 2
SCALE_UP_MINIMUM = 4
_MAX_INT32 = 2**31 - 1

_LOWER = "recent recommendations were lower than current one, applying the lowest recent recommendation"
_HIGHER = "recent recommendations were higher than current one, applying the highest recent recommendation"
_READY = ("ReadyForNewScale", "recommended size matches current size")
_IN_RANGE = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


class Bounds(NamedTuple):
    """minReplicas and maxReplicas."""

    minimum: int
    maximum: int


class Decision(NamedTuple):
    """The replica count, and the conditions that explain it."""

    replicas: int
    able: tuple[str, str]
    """Reason and message of the condition AbleToScale."""
    limited: bool
    """The status of the condition ScalingLimited."""
    limit: tuple[str, str]
    """Reason and message of the condition ScalingLimited."""


class _Sample(NamedTuple):
    """A recommendation or a change of the replica count, and its time."""

    value: int
    time: float


@dataclass(slots=True)
class History:
    """The recommendations and scale events of one autoscaler. Times are monotonic seconds of the clock."""

    recommendations: list[_Sample] = field(default_factory=list)
    ups: list[_Sample] = field(default_factory=list)
    downs: list[_Sample] = field(default_factory=list)

    def record_initial_recommendation(self, current: int, now: float) -> None:
        """Adds the current replica count, if there is no recommendation yet (recordInitialRecommendation)."""
        if not self.recommendations:
            self.recommendations.append(_Sample(current, now))

    # ---- without behavior

    def normalize(self, desired: int, current: int, bounds: Bounds, now: float) -> Decision:
        """Stabilizes and limits a replica count (normalizeDesiredReplicas).

        Args:
            desired: The replica count that the metrics recommend.
            current: The current replica count.
            bounds: minReplicas and maxReplicas.
            now: The monotonic time.
        """
        minimum, maximum = bounds
        cutoff = now - DOWNSCALE_WINDOW
        stable = max([desired, *(one.value for one in self.recommendations if one.time >= cutoff)])
        self._record(desired, now, cutoff)
        able = ("ScaleDownStabilized", _HIGHER) if stable != desired else _READY
        limit = max(SCALE_UP_FACTOR * current, SCALE_UP_MINIMUM)
        allowed, reason = (limit, _UP_LIMIT) if maximum > limit else (maximum, _TOO_MANY)
        if stable < minimum:
            return Decision(minimum, able, True, _TOO_FEW)
        if stable > allowed:
            return Decision(allowed, able, True, reason)
        return Decision(stable, able, False, _IN_RANGE)

    def _record(self, desired: int, now: float, cutoff: float) -> None:
        """Replaces the last outdated recommendation, if there is one, by a new one; else appends it."""
        outdated = [index for index, one in enumerate(self.recommendations) if one.time < cutoff]
        if outdated:
            self.recommendations[outdated[-1]] = _Sample(desired, now)
        else:
            self.recommendations.append(_Sample(desired, now))

    # ---- with behavior

    def normalize_with_behaviors(self, behavior: Object, desired: int, current: int, bounds: Bounds, now: float) -> Decision:
        """As `normalize`, with the rules of `spec.behavior` (normalizeDesiredReplicasWithBehaviors)."""
        minimum, maximum = bounds
        up, down = behavior["scaleUp"], behavior["scaleDown"]
        stable = self._stabilize(up, down, desired, current, now)
        able = _READY
        if stable != desired:
            able = ("ScaleUpStabilized", _LOWER) if desired >= current else ("ScaleDownStabilized", _HIGHER)
        if stable > current:
            limit = max(self._calculate_limit(up, current, now, 1), current)
            allowed, reason = (limit, _UP_LIMIT) if maximum > limit else (maximum, _TOO_MANY)
            if stable > allowed:
                return Decision(allowed, able, True, reason)
        elif stable < current:
            limit = min(self._calculate_limit(down, current, now, -1), current)
            allowed, reason = (limit, _DOWN_LIMIT) if minimum < limit else (minimum, _TOO_FEW)
            if stable < allowed:
                return Decision(allowed, able, True, reason)
        return Decision(stable, able, False, _IN_RANGE)

    def _stabilize(self, up: Object, down: Object, desired: int, current: int, now: float) -> int:
        since_up = now - up.get("stabilizationWindowSeconds", 0)
        since_down = now - down.get("stabilizationWindowSeconds", DOWNSCALE_WINDOW)
        lowest = min([desired, *(one.value for one in self.recommendations if one.time > since_up)])
        highest = max([desired, *(one.value for one in self.recommendations if one.time > since_down)])
        self._record(desired, now, min(since_up, since_down))
        return min(max(current, lowest), highest)

    def _calculate_limit(self, rules: Object, current: int, now: float, sign: int) -> int:
        """Returns the replica count that the policies allow; `sign` is 1 for scaling up and -1 for scaling down."""
        select = rules.get("selectPolicy", "Max")
        if select == "Disabled":
            return current
        choose: Callable[..., int] = max if (select == "Max") == (sign > 0) else min
        limits = []
        for policy in rules.get("policies") or ():
            start = current - self._change_in_period(self.ups, policy, now) + self._change_in_period(self.downs, policy, now)
            if policy["type"] == "Pods":
                limits.append(start + sign * policy["value"])
            elif sign > 0:
                limits.append(ceil(start * (1 + policy["value"] / 100)))
            else:
                limits.append(int(start * (1 - policy["value"] / 100)))
        return choose(limits) if limits else (-_MAX_INT32 if choose is max else _MAX_INT32)

    @staticmethod
    def _change_in_period(events: list[_Sample], policy: Object, now: float) -> int:
        """Returns the change of the replica count in the policy's period (getReplicasChangePerPeriod)."""
        return sum(event.value for event in events if event.time > now - policy["periodSeconds"])

    def store_scale_event(self, behavior: Object | None, before: int, after: int, now: float) -> None:
        """Adds a change of the replica count, if there is a `spec.behavior` (storeScaleEvent)."""
        if behavior is None:
            return
        events, rules = (self.ups, behavior["scaleUp"]) if after > before else (self.downs, behavior["scaleDown"])
        longest = max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)
        events[:] = [event for event in events if event.time >= now - longest]
        events.append(_Sample(abs(after - before), now))
