"""TaintToleration: NoSchedule and NoExecute taints exclude pods that do not tolerate them; PreferNoSchedule lowers the score.

Specified by: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.selectors.taints import tolerates_all, untolerated
from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, ScorePlugin, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo
from fakekube.controllers.scheduler.plugins.normalizing import default_normalize

__all__ = ["TaintToleration", "TaintTolerationScore"]

PREFER_NO_SCHEDULE = "PreferNoSchedule"

Tolerations = Sequence[Mapping[str, Any]]


class TaintToleration(FilterPlugin):
    """Rejects nodes with a NoSchedule or NoExecute taint that is not tolerated."""

    name = "TaintToleration"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) had untolerated taint(s)",), name)

    def __init__(self, tolerations: Tolerations) -> None:
        self._tolerations = tolerations

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        return cls(cycle.spec.get("tolerations") or ())

    def filter(self, node: NodeInfo) -> Status | None:
        taints = node.taints
        return self.refusal if taints and untolerated(taints, self._tolerations) else None


class TaintTolerationScore(ScorePlugin):
    """Scores the number of PreferNoSchedule taints that are not tolerated: the fewer, the higher."""

    name = "TaintToleration"
    weight = 3

    def __init__(self, tolerations: Tolerations) -> None:
        self._tolerations = tolerations

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        if not any(taint.get("effect") == PREFER_NO_SCHEDULE for node in nodes for taint in node.taints):
            return None
        effects = ("", None, PREFER_NO_SCHEDULE)
        return cls([one for one in cycle.spec.get("tolerations") or () if one.get("effect") in effects])

    def score(self, node: NodeInfo) -> int:
        return sum(
            taint.get("effect") == PREFER_NO_SCHEDULE and not tolerates_all(self._tolerations, taint) for taint in node.taints
        )

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        return default_normalize(scores, reverse=True)
