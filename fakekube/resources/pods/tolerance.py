"""What an update may leave as it is although it would no longer be accepted: the validation options of pods.

A rule that was made stricter binds new objects only; an old object that breaks it stays changeable.
`NEW_POD` and `NEW_TEMPLATE` tolerate nothing; `for_update` looks at the old spec.

Specified by: pkg/api/pod/util.go (GetValidationOptionsFromPodSpecAndMeta), with the feature gates of 1.36.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fakekube.resources import selectors
from fakekube.resources.paths import non_reserved
from fakekube.resources.pods.sysctls import shared_namespace
from fakekube.resources.pods.walking import containers, projected_sources
from fakekube.resources.resource_lists import is_divisible, is_huge_page

Spec = dict[str, Any]

_number_matches = re.compile("0|[1-9][0-9]*|-[0-9]+").fullmatch

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(slots=True, frozen=True)
class Tolerance:
    """Each flag lets a rule be broken; `of_pod` tells a pod from a template."""

    of_pod: bool = False
    deletion_cost: bool = False
    """An annotation for the deletion cost that is no number."""
    huge_pages: bool = False
    """Amounts that are no whole number of huge pages."""
    selector_values: bool = False
    """Values in the selectors of pod affinity that no label can have."""
    node_selector_values: bool = False
    """The same in required node affinity."""
    spread_selectors: bool = False
    """Wrong selectors in topology spread constraints."""
    spread_label_keys: bool = False
    """Label keys in topology spread constraints that the selector has too."""
    token_paths: bool = False
    """Paths of service account tokens that lead out of the volume."""
    host_sysctls: bool = False
    """Namespaced sysctls although the pod shares the node's namespace."""
    selinux_change_policy: bool = False
    """A change policy other than Recursive."""
    comparing_tolerations: bool = False
    """Tolerations with Lt and Gt."""
    host_network_users: bool = False
    """A user namespace together with the node's network."""
    user_namespace_devices: bool = False
    """A user namespace together with block devices."""
    restarting_init_containers: bool = False
    """Init containers that resizing restarts."""


NEW_POD = Tolerance(of_pod=True)
NEW_TEMPLATE = Tolerance()


def for_update(old: Spec, old_meta: dict[str, Any], *, of_pod: bool) -> Tolerance:
    """What an update of a pod (or template) with this old spec and metadata tolerates."""
    security = old.get("securityContext") or {}
    shares_users = old.get("hostUsers") is False
    return Tolerance(
        of_pod=of_pod,
        deletion_cost=not is_deletion_cost((old_meta.get("annotations") or {}).get(DELETION_COST)),
        huge_pages=_has_indivisible_huge_pages(old),
        selector_values=_has_wrong_affinity_selector(old),
        node_selector_values=_has_wrong_node_selector(old),
        spread_selectors=_has_wrong_spread_selector(old),
        spread_label_keys=_has_wrong_spread_label_keys(old),
        token_paths=_has_wrong_token_path(old),
        host_sysctls=any(
            shared_namespace(sysctl.get("name", ""), old) for sysctl in security.get("sysctls") or ()
        ),
        selinux_change_policy="seLinuxChangePolicy" in security,
        comparing_tolerations=any(
            toleration.get("operator") in ("Lt", "Gt") for toleration in old.get("tolerations") or ()
        ),
        host_network_users=bool(shares_users and old.get("hostNetwork")),
        user_namespace_devices=shares_users and any(item.get("volumeDevices") for item in containers(old)),
        restarting_init_containers=_has_restarting_init_container(old),
    )


def is_deletion_cost(text: str | None) -> bool:
    """A whole number of 32 bits, without plus or leading zeros; absent is fine."""
    return text is None or (_number_matches(text) is not None and -(2**31) <= int(text) < 2**31)


def _has_indivisible_huge_pages(spec: Spec) -> bool:
    lists = [spec.get("overhead") or {}]
    for container in containers(spec):
        wanted = container.get("resources") or {}
        lists += [wanted.get("limits") or {}, wanted.get("requests") or {}]
    return any(
        is_huge_page(name) and not is_divisible(name, amount)
        for resources in lists
        for name, amount in resources.items()
    )


def pod_affinity_terms(spec: Spec) -> list[tuple[str, dict[str, Any]]]:
    """All terms of pod affinity and anti-affinity, each with its path below the spec."""
    affinity = spec.get("affinity") or {}
    found = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(terms.get(REQUIRED) or ()):
            found.append((f"affinity.{kind}.{REQUIRED}[{index}]", term))
        for index, term in enumerate(terms.get(PREFERRED) or ()):
            inner = term.get("podAffinityTerm") or {}
            found.append((f"affinity.{kind}.{PREFERRED}[{index}].podAffinityTerm", inner))
    return found


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _has_wrong_affinity_selector(spec: Spec) -> bool:
    return any(
        selectors.label_selector(term.get(field), "")
        for _, term in pod_affinity_terms(spec)
        for field in ("labelSelector", "namespaceSelector")
    )


def _has_wrong_node_selector(spec: Spec) -> bool:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    return any(selectors.has_invalid_label_value(term) for term in required.get("nodeSelectorTerms") or ())


def _has_wrong_spread_selector(spec: Spec) -> bool:
    constraints = spec.get("topologySpreadConstraints") or ()
    return any(selectors.label_selector(item.get("labelSelector"), "") for item in constraints)


def _has_wrong_spread_label_keys(spec: Spec) -> bool:
    constraints = spec.get("topologySpreadConstraints") or ()
    return any(
        selectors.label_keys(item.get("matchLabelKeys") or (), (), item.get("labelSelector"), "")
        for item in constraints
    )


def _has_wrong_token_path(spec: Spec) -> bool:
    tokens = (source.get("serviceAccountToken") for source in projected_sources(spec))
    return any(token is not None and non_reserved(token.get("path", ""), "") for token in tokens)


def _has_restarting_init_container(spec: Spec) -> bool:
    return any(
        policy.get("restartPolicy") == "RestartContainer"
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") != "Always"
        for policy in container.get("resizePolicy") or ()
    )
