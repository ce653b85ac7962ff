"""Defaults of HorizontalPodAutoscalers.

Specified by: pkg/apis/autoscaling/v2/defaults.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.apis.rest.strategy import Object

__all__ = ["DEFAULT_CPU_UTILIZATION", "default_behavior"]

DEFAULT_CPU_UTILIZATION = 80

_PERIOD = {"periodSeconds": 15}
_RULES: Mapping[str, Object] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, **_PERIOD}, {"type": "Percent", "value": 100, **_PERIOD}],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, **_PERIOD}]},
}


def default_behavior(behavior: Object) -> Object:
    """Returns the behavior with the default rules of both directions."""
    specified = {
        direction: {key: value for key, value in (behavior.get(direction) or {}).items() if value is not None}
        for direction in _RULES
    }
    return {direction: {**rules, **specified[direction]} for direction, rules in _RULES.items()}
