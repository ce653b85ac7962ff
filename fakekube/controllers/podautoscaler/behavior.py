"""Keeps an autoscaler from flapping: what it recommended lately, how fast it may go, and where its limits are.

Without `spec.behavior` the highest recommendation of the last five minutes counts, and a target may at most double (or grow
to four). With it, both directions have windows and policies of their own.

Invariant: recommendations and scale events older than the longest window are replaced by new ones.

Specified by: pkg/controller/podautoscaler/horizontal.go (normalizeDesiredReplicas, …WithBehaviors).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

__all__ = ["Bounds", "Decision", "History"]

Object = dict[str, Any]

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

    least: int
    most: int


class Decision(NamedTuple):
    """How many replicas there are to be, and why."""

    replicas: int
    able: tuple[str, str]
    """Reason and message of AbleToScale."""
    limited: bool
    """Status of ScalingLimited."""
    limit: tuple[str, str]
    """Its reason and message."""


class _Sample(NamedTuple):
    """A recommendation, or a change of size, and when it was."""

    value: int
    time: float


@dataclass(slots=True)
class History:
    """What is remembered of one autoscaler. Times are monotonic seconds of the clock."""

    recommendations: list[_Sample] = field(default_factory=list)
    ups: list[_Sample] = field(default_factory=list)
    downs: list[_Sample] = field(default_factory=list)

    def begin(self, current: int, now: float) -> None:
        """The first thing that is recommended is what is there."""
        if not self.recommendations:
            self.recommendations.append(_Sample(current, now))

    # ---- without behavior

    def decide(self, desired: int, current: int, bounds: Bounds, now: float) -> Decision:
        """What becomes of a proposal.

        Args:
            desired: what the metrics propose.
            current: replicas now.
            bounds: minReplicas and maxReplicas.
            now: monotonic time.
        """
        least, most = bounds
        cutoff = now - DOWNSCALE_WINDOW
        stable = max([desired, *(one.value for one in self.recommendations if one.time >= cutoff)])
        self._remember(desired, now, cutoff)
        able = ("ScaleDownStabilized", _HIGHER) if stable != desired else _READY
        limit = max(SCALE_UP_FACTOR * current, SCALE_UP_MINIMUM)
        allowed, reason = (limit, _UP_LIMIT) if most > limit else (most, _TOO_MANY)
        if stable < least:
            return Decision(least, able, True, _TOO_FEW)
        if stable > allowed:
            return Decision(allowed, able, True, reason)
        return Decision(stable, able, False, _IN_RANGE)

    def _remember(self, desired: int, now: float, cutoff: float) -> None:
        """In place of the last outdated recommendation, if there is one."""
        outdated = [index for index, one in enumerate(self.recommendations) if one.time < cutoff]
        if outdated:
            self.recommendations[outdated[-1]] = _Sample(desired, now)
        else:
            self.recommendations.append(_Sample(desired, now))

    # ---- with behavior

    def decide_by(self, behavior: Object, desired: int, current: int, bounds: Bounds, now: float) -> Decision:
        """The same by `spec.behavior`."""
        least, most = bounds
        up, down = behavior["scaleUp"], behavior["scaleDown"]
        stable = self._stabilized(up, down, desired, current, now)
        able = _READY
        if stable != desired:
            able = ("ScaleUpStabilized", _LOWER) if desired >= current else ("ScaleDownStabilized", _HIGHER)
        if stable > current:
            limit = max(self._limit(up, current, now, 1), current)
            allowed, reason = (limit, _UP_LIMIT) if most > limit else (most, _TOO_MANY)
            if stable > allowed:
                return Decision(allowed, able, True, reason)
        elif stable < current:
            limit = min(self._limit(down, current, now, -1), current)
            allowed, reason = (limit, _DOWN_LIMIT) if least < limit else (least, _TOO_FEW)
            if stable < allowed:
                return Decision(allowed, able, True, reason)
        return Decision(stable, able, False, _IN_RANGE)

    def _stabilized(self, up: Object, down: Object, desired: int, current: int, now: float) -> int:
        since_up = now - up.get("stabilizationWindowSeconds", 0)
        since_down = now - down.get("stabilizationWindowSeconds", DOWNSCALE_WINDOW)
        lowest = min([desired, *(one.value for one in self.recommendations if one.time > since_up)])
        highest = max([desired, *(one.value for one in self.recommendations if one.time > since_down)])
        self._remember(desired, now, min(since_up, since_down))
        return min(max(current, lowest), highest)

    def _limit(self, rules: Object, current: int, now: float, sign: int) -> int:
        """How far the policies let the size go; `sign` is 1 up and -1 down."""
        select = rules.get("selectPolicy", "Max")
        if select == "Disabled":
            return current
        choose: Callable[..., int] = max if (select == "Max") == (sign > 0) else min
        limits = []
        for policy in rules.get("policies") or ():
            start = current - self._change(self.ups, policy, now) + self._change(self.downs, policy, now)
            if policy["type"] == "Pods":
                limits.append(start + sign * policy["value"])
            elif sign > 0:
                limits.append(ceil(start * (1 + policy["value"] / 100)))
            else:
                limits.append(int(start * (1 - policy["value"] / 100)))
        return choose(limits) if limits else (-_MAX_INT32 if choose is max else _MAX_INT32)

    @staticmethod
    def _change(events: list[_Sample], policy: Object, now: float) -> int:
        """By how many replicas the size changed in the policy's period."""
        return sum(event.value for event in events if event.time > now - policy["periodSeconds"])

    def scaled(self, behavior: Object | None, before: int, after: int, now: float) -> None:
        """Remember a change of size; only rules ask for it."""
        if behavior is None:
            return
        events, rules = (self.ups, behavior["scaleUp"]) if after > before else (self.downs, behavior["scaleDown"])
        longest = max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)
        events[:] = [event for event in events if event.time >= now - longest]
        events.append(_Sample(abs(after - before), now))
