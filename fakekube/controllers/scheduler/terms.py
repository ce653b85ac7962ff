"""Parses the terms of inter-pod affinity and anti-affinity.

Specified by: pkg/scheduler/framework/types.go (AffinityTerm, getAffinityTerms, newAffinityTerm).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.selectors import LabelSelector, from_label_selector

__all__ = ["NO_TERMS", "AffinityTerm", "AffinityTerms", "affinity_terms"]

Labels = Mapping[str, str]


@dataclass(slots=True, frozen=True)
class AffinityTerm:
    """Selects pods by labels and namespaces, and the topology that they are compared in."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: Callable[[], Labels]) -> bool:
        """Whether the term matches a pod with these labels in this namespace."""
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels())
        ):
            return False
        return self.selector.matches(labels)


@dataclass(slots=True, frozen=True)
class AffinityTerms:
    """The affinity terms of a pod."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.required_anti or self.preferred or self.preferred_anti)


NO_TERMS: Final = AffinityTerms()


def affinity_terms(pod: Mapping[str, Any]) -> AffinityTerms:
    """Returns the terms of a pod's affinity and anti-affinity. Raises SelectorError for invalid selectors."""
    affinity = pod["spec"].get("affinity")
    if not affinity:
        return NO_TERMS
    near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not near and not far:
        return NO_TERMS
    namespace = pod["metadata"]["namespace"]
    return AffinityTerms(
        _required(near, namespace), _required(far, namespace), _preferred(near, namespace), _preferred(far, namespace)
    )


def _required(affinity: Mapping[str, Any], namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Sequence[Mapping[str, Any]] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term, namespace, 0) for term in terms)


def _preferred(affinity: Mapping[str, Any], namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Sequence[Mapping[str, Any]] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term["podAffinityTerm"], namespace, term.get("weight", 0)) for term in terms)


def _term(term: Mapping[str, Any], namespace: str, weight: int) -> AffinityTerm:
    namespaces = frozenset(term.get("namespaces") or ())
    selector = term.get("namespaceSelector")
    if not namespaces and selector is None:
        namespaces = frozenset({namespace})
    return AffinityTerm(
        term["topologyKey"],
        from_label_selector(term.get("labelSelector")),
        namespaces,
        None if selector is None else from_label_selector(selector),
        weight,
    )
