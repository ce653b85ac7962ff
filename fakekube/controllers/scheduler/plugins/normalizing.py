"""The normalization of scores that most plugins use.

Specified by: pkg/scheduler/framework/plugins/helper/normalize_score.go.
"""

from __future__ import annotations

from fakekube.controllers.scheduler.framework import MAX_NODE_SCORE

__all__ = ["default_normalize"]


def default_normalize(scores: list[int], *, reverse: bool = False) -> list[int]:
    """Scales scores so that the highest is MAX_NODE_SCORE, or with `reverse` 0 (DefaultNormalizeScore)."""
    largest = max(scores, default=0)
    if largest == 0:
        return [MAX_NODE_SCORE] * len(scores) if reverse else scores
    scaled = [MAX_NODE_SCORE * score // largest for score in scores]
    return [MAX_NODE_SCORE - score for score in scaled] if reverse else scaled
