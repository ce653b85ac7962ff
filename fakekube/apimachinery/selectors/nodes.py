"""Node selectors: the nodes on which a pod may run, or from which a volume can be accessed.

A node selector is a list of terms, of which one must match. A term is a list of requirements on labels and on the name
of the node, which must all be met. A term without requirements matches nothing, and so does one that cannot be parsed.

Specified by: k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fakekube.apimachinery.selectors.labels import LabelSelector, Operator, SelectorError, from_label_selector, requirement
from fakekube.base.caches import forgettable

Node = Mapping[str, Any]

_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}


@dataclass(slots=True, frozen=True)
class NodeSelectorTerm:
    """A conjunction of requirements on the labels and the name of a node."""

    labels: LabelSelector | None
    """The requirements on labels; None if there are none."""
    names: tuple[tuple[bool, str], ...]
    """The requirements on the name: (whether it must be equal, name)."""
    valid: bool = True

    def matches(self, node: Node) -> bool:
        """Reports whether the node meets all requirements; False for a term without any."""
        if not self.valid or (self.labels is None and not self.names):
            return False
        metadata = node["metadata"]
        if self.labels is not None and not self.labels.matches(metadata.get("labels")):
            return False
        return all((metadata["name"] == name) is equal for equal, name in self.names)


_INVALID = NodeSelectorTerm(None, (), valid=False)


def node_selector_term(term: Mapping[str, Any]) -> NodeSelectorTerm:
    """Compiles a NodeSelectorTerm of an object; one that cannot be parsed matches nothing."""
    expressions = tuple(map(_freeze, term.get("matchExpressions") or ()))
    fields = tuple(map(_freeze, term.get("matchFields") or ()))
    return _term(expressions, fields)


_Requirement = tuple[str, str, tuple[str, ...]]


def _freeze(expression: Mapping[str, Any]) -> _Requirement:
    return expression.get("key", ""), expression.get("operator", ""), tuple(expression.get("values") or ())


@forgettable
@lru_cache(maxsize=1024)
def _term(expressions: tuple[_Requirement, ...], fields: tuple[_Requirement, ...]) -> NodeSelectorTerm:
    try:
        labels = [requirement(key, _OPERATORS[operator], values) for key, operator, values in expressions]
    except (KeyError, SelectorError):
        return _INVALID
    names = []
    for key, operator, values in fields:
        if key != "metadata.name" or operator not in ("In", "NotIn") or len(values) != 1:
            return _INVALID
        names.append((operator == "In", values[0]))
    return NodeSelectorTerm(LabelSelector(tuple(labels)) if labels else None, tuple(names))


def selects_node(selector: Mapping[str, Any], node: Node) -> bool:
    """Reports whether a term of a NodeSelector matches the node."""
    return any(node_selector_term(term).matches(node) for term in selector.get("nodeSelectorTerms") or ())


def required_node_affinity(spec: Mapping[str, Any]) -> Callable[[Node], bool] | None:
    """Returns the nodeSelector and the required node affinity of the spec of a pod; None if the pod has neither."""
    node_labels = spec.get("nodeSelector")
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not node_labels and required is None:
        return None
    labels = from_label_selector({"matchLabels": node_labels}) if node_labels else None
    terms: Sequence[NodeSelectorTerm] | None = None
    if required is not None:
        terms = [node_selector_term(term) for term in required.get("nodeSelectorTerms") or ()]

    def matches(node: Node) -> bool:
        if labels is not None and not labels.matches(node["metadata"].get("labels")):
            return False
        return terms is None or any(term.matches(node) for term in terms)

    return matches


def preferred_weight(terms: Sequence[Mapping[str, Any]], node: Node) -> int:
    """Returns the sum of the weights of the preferred scheduling terms that match the node."""
    return sum(
        term.get("weight", 0)
        for term in terms
        if term.get("weight") and node_selector_term(term.get("preference") or {}).matches(node)
    )


# --- Taints and tolerations ------------------------------------------------------------------------------------------
# Specified by: k8s.io/api/core/v1/toleration.go, k8s.io/component-helpers/scheduling/corev1/helpers.go, pkg/util/tolerations.


Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Reports whether the toleration tolerates the taint; an empty effect or key matches every effect or key."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerates_all(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Reports whether one of the tolerations tolerates the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated_taint(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], effects: Sequence[str] = ("NoSchedule", "NoExecute")
) -> Taint | None:
    """Returns the first taint of these effects that no toleration tolerates, or None."""
    for taint in taints:
        if taint.get("effect") in effects and not tolerates_all(tolerations, taint):
            return taint
    return None


def merge_tolerations(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """Returns the tolerations that no other one covers; of equal ones the first (MergeTolerations)."""
    merged: list[Toleration] = []
    for index, toleration in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != toleration)
        if not any(is_superset(other, toleration) for other in (*merged, *later)):
            merged.append(toleration)
    return merged


def is_superset(one: Toleration, other: Toleration) -> bool:
    """Reports whether `one` tolerates every taint that `other` tolerates."""
    if one == other:
        return True
    operator = one.get("operator", "")
    if one.get("key", "") != other.get("key", "") and (one.get("key") or operator != "Exists"):
        return False
    if one.get("effect") and one["effect"] != other.get("effect", ""):
        return False
    if one.get("effect") == "NoExecute" and one.get("tolerationSeconds") is not None:
        seconds = other.get("tolerationSeconds")
        if seconds is None or seconds > one["tolerationSeconds"]:
            return False
    if operator in ("", "Equal"):
        return bool(other.get("operator", "") == "Equal" and other.get("value", "") == one.get("value", ""))
    return bool(operator == "Exists")
