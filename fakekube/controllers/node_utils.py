"""Facts and taints of nodes that several controllers use.

A node with the label `fakekube.dev/kubelet: silent` has no kubelet: a test does the kubelet's work, or the node has failed.

Specified by: pkg/controller/controller_utils.go (AddOrUpdateTaintOnNode, RemoveTaintOffNode),
pkg/controller/util/node/controller_utils.go (SwapNodeControllerTaint).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from fakekube.controllers.client import Client
from fakekube.controllers.objects import Object

__all__ = ["LABEL", "SILENT", "Taint", "has_kubelet", "swap_taints", "taint_keys"]

LABEL: Final = "fakekube.dev/kubelet"
SILENT: Final = "silent"


def has_kubelet(node: Mapping[str, Any]) -> bool:
    """Reports whether a kubelet runs on this node."""
    return (node["metadata"].get("labels") or {}).get(LABEL) != SILENT


#: (key, effect), which identify a taint of a node.
Taint = tuple[str, str]


def taint_keys(node: Object) -> list[Taint]:
    """Returns the taints of a node."""
    return [(taint["key"], taint.get("effect", "")) for taint in (node.get("spec") or {}).get("taints") or ()]


def swap_taints(client: Client, node: Object, add: Collection[Taint], remove: Collection[Taint]) -> Object:
    """Adds and removes taints, if necessary. Returns the updated node. Raises ApiError."""
    known = (node.get("spec") or {}).get("taints") or ()
    present = set(taint_keys(node))
    added = [one for one in add if one not in present]
    if not added and not present & set(remove):
        return node
    kept = [taint for taint in known if (taint["key"], taint.get("effect", "")) not in remove]
    now = client.now()
    taints = kept + [{"key": key, "effect": effect, "timeAdded": now} for key, effect in added]
    metadata = node["metadata"]
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"taints": taints or None}}
    return client.patch("nodes", metadata["name"], patch)
