"""What an update may leave as it is although it would no longer be accepted: the validation options of pods.

A rule that was made stricter binds new objects only; an old object that breaks it stays changeable.
`NEW_POD` and `NEW_TEMPLATE` tolerate nothing.

Specified by: pkg/api/pod/util.go (GetValidationOptionsFromPodSpecAndMeta), with the feature gates of 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fakekube.apis.core.pods.sysctls import shared_namespace
from fakekube.apis.core.pods.visitor import containers, projected_sources
from fakekube.validation import selectors
from fakekube.validation.paths import non_reserved
from fakekube.validation.resource_lists import is_divisible, is_huge_page

Spec = dict[str, Any]

_number_matches = re.compile("0|[1-9][0-9]*|-[0-9]+").fullmatch

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ValidationOptions:
    """Each flag lets a rule be broken, because the old pod (or template) breaks it; found out when it is asked for."""

    def __init__(
        self, old: Spec, old_meta: dict[str, Any], *, of_pod: bool, selector: Mapping[str, Any] | None = None
    ) -> None:
        """
        :param of_pod: tells a pod from a template.
        :param selector: the old one of the workload that the template belongs to, where it counts.
        """
        self.of_pod = of_pod
        self._old = old
        self._old_meta = old_meta
        self._selector = selector

    @cached_property
    def deletion_cost(self) -> bool:
        """An annotation for the deletion cost that is no number."""
        return not is_deletion_cost((self._old_meta.get("annotations") or {}).get(DELETION_COST))

    @cached_property
    def huge_pages(self) -> bool:
        """Amounts that are no whole number of huge pages."""
        return _has_indivisible_huge_pages(self._old)

    @cached_property
    def selector_values(self) -> bool:
        """Values in the selectors of pod affinity (and of the workload) that no label can have."""
        return _has_wrong_affinity_selector(self._old) or selectors.has_invalid_label_value(self._selector)

    @cached_property
    def node_selector_values(self) -> bool:
        """The same in required node affinity."""
        return _has_wrong_node_selector(self._old)

    @cached_property
    def spread_selectors(self) -> bool:
        """Wrong selectors in topology spread constraints."""
        return _has_wrong_spread_selector(self._old)

    @cached_property
    def spread_label_keys(self) -> bool:
        """Label keys in topology spread constraints that the selector has too."""
        return _has_wrong_spread_label_keys(self._old)

    @cached_property
    def token_paths(self) -> bool:
        """Paths of service account tokens that lead out of the volume."""
        return _has_wrong_token_path(self._old)

    @cached_property
    def host_sysctls(self) -> bool:
        """Namespaced sysctls although the pod shares the node's namespace."""
        sysctls = (self._old.get("securityContext") or {}).get("sysctls") or ()
        return any(shared_namespace(sysctl.get("name", ""), self._old) for sysctl in sysctls)

    @cached_property
    def selinux_change_policy(self) -> bool:
        """A change policy other than Recursive."""
        return "seLinuxChangePolicy" in (self._old.get("securityContext") or {})

    @cached_property
    def comparing_tolerations(self) -> bool:
        """Tolerations with Lt and Gt."""
        return any(toleration.get("operator") in ("Lt", "Gt") for toleration in self._old.get("tolerations") or ())

    @cached_property
    def host_network_users(self) -> bool:
        """A user namespace together with the node's network."""
        return bool(self._old.get("hostUsers") is False and self._old.get("hostNetwork"))

    @cached_property
    def user_namespace_devices(self) -> bool:
        """A user namespace together with block devices."""
        shares_users = self._old.get("hostUsers") is False
        return shares_users and any(item.get("volumeDevices") for item in containers(self._old))

    @cached_property
    def restarting_init_containers(self) -> bool:
        """Init containers that resizing restarts."""
        return _has_restarting_init_container(self._old)


NEW_POD = ValidationOptions({}, {}, of_pod=True)
NEW_TEMPLATE = ValidationOptions({}, {}, of_pod=False)


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
