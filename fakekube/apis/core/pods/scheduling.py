"""Validation of the scheduling of pods: affinity, topology spread constraints, scheduling gates.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required
from fakekube.apis.core.pods.validation_options import PREFERRED, REQUIRED, ValidationOptions
from fakekube.apis.validation import names, selectors
from fakekube.apis.validation.checks import invalid_each, label_name, one_of, positive

Part = Mapping[str, Any]


def affinity(rules: Part, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the affinity of a pod (validateAffinity)."""
    errors: list[FieldError] = []
    if "nodeAffinity" in rules:
        errors += _node_affinity(rules["nodeAffinity"], f"{path}.nodeAffinity", options)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = rules.get(kind) or {}
        for index, term in enumerate(terms.get(REQUIRED) or ()):
            errors += _pod_affinity_term(term, f"{path}.{kind}.{REQUIRED}[{index}]", options)
        for index, term in enumerate(terms.get(PREFERRED) or ()):
            where = f"{path}.{kind}.{PREFERRED}[{index}]"
            errors += selectors.weight(term, where)
            inner = term.get("podAffinityTerm") or {}
            errors += _pod_affinity_term(inner, f"{where}.podAffinityTerm", options)
    return errors


def _node_affinity(rules: Part, path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if REQUIRED in rules:
        errors += selectors.node_selector(
            rules[REQUIRED], f"{path}.{REQUIRED}", allow_invalid_values=options.node_selector_values
        )
    return errors + selectors.preferred_scheduling_terms(rules.get(PREFERRED) or (), f"{path}.{PREFERRED}")


def _pod_affinity_term(term: Part, path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        errors += selectors.label_selector(term.get(field), f"{path}.{field}", allow_invalid_values=options.selector_values)
    for name in term.get("namespaces") or ():
        errors += invalid_each(f"{path}.namespace", name, names.dns_label(name))
    matching, mismatching = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    errors += selectors.label_keys(matching, mismatching, term.get("labelSelector"), path)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + label_name(key, f"{path}.topologyKey")


NODE_POLICIES = ("Honor", "Ignore")


def topology_spread(items: Sequence[Part], path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates topology spread constraints (validateTopologySpreadConstraints)."""
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        errors += _constraint(item, f"{path}[{index}]", items[index + 1 :], options)
    return errors


def _constraint(item: Part, path: str, rest: Sequence[Part], options: ValidationOptions) -> list[FieldError]:
    key, action, domains = (item.get("topologyKey", ""), item.get("whenUnsatisfiable", ""), item.get("minDomains"))
    errors = positive(item.get("maxSkew", 0), f"{path}.maxSkew")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    errors += one_of(action, f"{path}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"))
    if any((key, action) == (other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")) for other in rest):
        errors.append(duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    if domains is not None:
        errors += positive(domains, f"{path}.minDomains")
        if action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid(f"{path}.minDomains", domains, text))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if field in item:
            errors += one_of(item[field], f"{path}.{field}", NODE_POLICIES)
    selector, keys = item.get("labelSelector"), item.get("matchLabelKeys") or ()
    if options.spread_label_keys:
        errors += _keys_in_selector(keys, selector, f"{path}.matchLabelKeys")
    else:
        errors += selectors.label_keys(keys, (), selector, path)
    if not options.spread_selectors:
        errors += selectors.label_selector(selector, f"{path}.labelSelector")
    return errors


def _keys_in_selector(keys: Sequence[str], selector: Part | None, path: str) -> list[FieldError]:
    """Validates that the selector does not have the matchLabelKeys already (ValidateMatchLabelKeysInTopologySpread)."""
    if not keys:
        return []
    errors = selectors.label_keys(keys, (), {} if selector is not None else None, path.removesuffix(".matchLabelKeys"))
    taken = {item.get("key") for item in (selector or {}).get("matchExpressions") or ()}
    taken |= set((selector or {}).get("matchLabels") or ())
    return errors + [
        invalid(f"{path}[{index}]", key, "exists in both matchLabelKeys and labelSelector")
        for index, key in enumerate(keys)
        if key in taken
    ]


def scheduling_gates(items: Sequence[Part], path: str) -> list[FieldError]:
    """Validates scheduling gates (validateSchedulingGates)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        errors += label_name(name, f"{path}[{index}]")
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors
