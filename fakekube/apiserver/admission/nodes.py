"""TaintNodesByCondition: adds the taint node.kubernetes.io/not-ready to new nodes.

Specified by: plugin/pkg/admission/nodetaint.
"""

from __future__ import annotations

from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(Plugin):
    """See the module."""

    name = "TaintNodesByCondition"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({("", "nodes")})

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object.setdefault("spec", {})
        taints = spec.get("taints") or []
        kept = {(taint.get("key"), taint.get("effect")) for taint in taints}
        if (NOT_READY["key"], NOT_READY["effect"]) not in kept:
            spec["taints"] = [*taints, dict(NOT_READY)]
