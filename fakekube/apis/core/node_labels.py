"""Deprecated labels of nodes, and the warnings about selectors that use them.

Specified by: pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apis.validation import names

__all__ = ["DEPRECATED", "node_label_selector_warnings", "node_selector_term_warnings"]

#: The label → the version since which it is deprecated, and the label to use instead.
_RENAMED = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}

#: The label → the text of the warning.
DEPRECATED: Mapping[str, str] = {
    **{label: f'deprecated since {version}; use "{successor}" instead' for label, (version, successor) in _RENAMED.items()},
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": ("deprecated since v1.22; use Taints and Tolerations instead"),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def node_selector_term_warnings(term: Mapping[str, Any], path: str, *, check_values: bool = False) -> list[str]:
    """Returns the warnings about a core NodeSelectorTerm; `check_values` where validation accepts invalid label
    values.
    """
    warnings = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        if key in DEPRECATED:
            warnings.append(f"{path}.matchExpressions[{index}].key: {key} is {DEPRECATED[key]}")
        if check_values:
            warnings += [
                f"{path}.matchExpressions[{index}].values[{position}]: {value} is invalid, {detail}"
                for position, value in enumerate(expression.get("values") or ())
                for detail in names.label_value(value)
            ]
    return warnings


def node_label_selector_warnings(selector: Mapping[str, Any] | None, path: str) -> list[str]:
    """Returns the warnings about a metav1.LabelSelector that selects nodes."""
    if not selector:
        return []
    warnings = node_selector_term_warnings(selector, path)
    labels = selector.get("matchLabels") or ()
    return warnings + [f"{path}.matchLabels.{key}: {DEPRECATED[key]}" for key in labels if key in DEPRECATED]
