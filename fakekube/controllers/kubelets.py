"""The label that marks nodes without a kubelet.

A node with the label `fakekube.dev/kubelet: silent` has none: a test does the kubelet's work, or the node has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["LABEL", "SILENT", "has_kubelet"]

LABEL: Final = "fakekube.dev/kubelet"
SILENT: Final = "silent"


def has_kubelet(node: Mapping[str, Any]) -> bool:
    """Whether a kubelet runs on this node."""
    return (node["metadata"].get("labels") or {}).get(LABEL) != SILENT
