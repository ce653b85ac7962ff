"""Validation options of pods: rules that an update may leave broken because the old object breaks them.

A rule that was made stricter applies to new objects only; an old object that breaks it can still be updated. `NEW_POD`
and `NEW_TEMPLATE` allow nothing.

`KnownSpecs` remembers the specs in which a check found nothing: the pods of a workload and of a test suite are alike. A spec is
known by its JSON text, since equal specs have equal findings. What validation says may also depend on the metadata of the pod:
specs with `resourceClaims` and with ephemeral volumes, whose claims have names of the pod, are never known.

Invariant: a known spec is valid as that of a new pod or template, so it is valid for every update, whose options only allow more.

Specified by: pkg/api/pod/util.go (GetValidationOptionsFromPodSpecAndMeta), with the feature gates of 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid
from fakekube.apis.core.pods.sysctls import shared_namespace
from fakekube.apis.core.pods.visitor import containers, is_sidecar, projected_sources, restarts_all_containers, uses_restart_rules
from fakekube.apis.validation import selectors
from fakekube.apis.validation.checks import label_name, non_reserved
from fakekube.apis.validation.resource_lists import is_divisible, is_huge_page
from fakekube.apis.well_known import POD_DELETION_COST
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strconv import INT32, parse_int
from fakekube.base.objects import Object

_number_matches = re.compile("0|[1-9][0-9]*|-[0-9]+").fullmatch


class ValidationOptions:
    """Each flag allows breaking a rule because the old pod (or template) breaks it; flags are computed on first use."""

    def __init__(self, old: Object, old_meta: dict[str, Any], *, of_pod: bool, selector: Mapping[str, Any] | None = None) -> None:
        """Creates the options for an old spec.

        Args:
            of_pod: distinguishes a pod from a template.
            selector: the old selector of the workload that owns the template, where it matters.
        """
        self.of_pod = of_pod
        self._old = old
        self._old_meta = old_meta
        self._selector = selector

    @property  # not cached: the options of new pods serve clusters of all minors and gates
    def deletion_cost(self) -> bool:
        """Whether the annotation for the deletion cost may be invalid."""
        annotations = self._old_meta.get("annotations") or {}
        return not is_deletion_cost(annotations.get(POD_DELETION_COST)) or not features.current().enabled("PodDeletionCost")

    @cached_property
    def huge_pages(self) -> bool:
        """Whether quantities may not be a multiple of the huge page size."""
        return _has_indivisible_huge_pages(self._old)

    @cached_property
    def selector_values(self) -> bool:
        """Whether selectors of pod affinity (and of the workload) may have invalid label values."""
        return _has_wrong_affinity_selector(self._old) or selectors.has_invalid_label_value(self._selector)

    @cached_property
    def node_selector_values(self) -> bool:
        """Whether required node affinity may have invalid label values."""
        return _has_wrong_node_selector(self._old)

    @cached_property
    def spread_selectors(self) -> bool:
        """Whether topology spread constraints may have invalid selectors."""
        return _has_wrong_spread_selector(self._old)

    @property  # not cached: the options of new pods serve clusters of all minors and gates
    def legacy_spread_label_keys(self) -> bool:
        """Whether label keys of topology spread constraints must not be in the selector, which is not merged with them."""
        if not features.current().enabled("MatchLabelKeysInPodTopologySpread"):
            return True
        return _has_wrong_spread_label_keys(self._old) if merges_spread_keys() else not _has_legacy_wrong_spread_keys(self._old)

    @cached_property
    def token_paths(self) -> bool:
        """Whether paths of service account tokens may leave the volume."""
        return _has_wrong_token_path(self._old)

    @cached_property
    def host_sysctls(self) -> bool:
        """Whether namespaced sysctls may be set although the pod shares the namespace of the node."""
        sysctls = (self._old.get("securityContext") or {}).get("sysctls") or ()
        return any(shared_namespace(sysctl.get("name", ""), self._old) for sysctl in sysctls)

    @property  # not cached: the options of new pods serve clusters of all minors and gates
    def selinux_change_policy(self) -> bool:
        """Whether a change policy other than Recursive is valid."""
        return features.current().enabled("SELinuxMount") or "seLinuxChangePolicy" in (self._old.get("securityContext") or {})

    @property  # not cached: the options of new pods serve clusters of all minors and gates
    def comparing_tolerations(self) -> bool:
        """Whether tolerations may have the operators Lt and Gt."""
        if features.current().enabled("TaintTolerationComparisonOperators"):
            return True
        return any(toleration.get("operator") in ("Lt", "Gt") for toleration in self._old.get("tolerations") or ())

    @property  # not cached: the options of new pods serve clusters of all minors and gates
    def host_network_users(self) -> bool:
        """Whether a user namespace may be combined with the network of the host."""
        in_use = bool(self._old.get("hostUsers") is False and self._old.get("hostNetwork"))
        return in_use or features.current().enabled("UserNamespacesHostNetworkSupport")

    @property  # not cached: the options of new pods serve clusters of all minors and gates
    def restart_rules(self) -> bool:
        """Whether containers may have a restart policy and rules of their own."""
        return features.current().enabled("ContainerRestartRules") or uses_restart_rules(self._old)

    @property  # not cached: the options of new pods serve clusters of all minors and gates
    def restart_all_containers(self) -> bool:
        """Whether a rule may restart all containers, and sidecars may have rules."""
        return features.current().enabled("RestartAllContainersOnContainerExits") or _uses_restart_all(self._old)

    @cached_property
    def user_namespace_devices(self) -> bool:
        """Whether a user namespace may be combined with block devices."""
        shares_users = self._old.get("hostUsers") is False
        return shares_users and any(item.get("volumeDevices") for item in containers(self._old))

    @cached_property
    def restarting_init_containers(self) -> bool:
        """Whether a resize may restart init containers."""
        return _has_restarting_init_container(self._old)

    @property
    def were_strict(self) -> bool:
        """Whether all flags that were asked so far allow no more than in a new pod."""
        if any(vars(self).get(name) for name in _FLAGS):
            return False
        return all(getattr(self, name) == getattr(NEW_POD, name) for name in _GATED_FLAGS)


_GATED_FLAGS = (
    "deletion_cost",
    "legacy_spread_label_keys",
    "selinux_change_policy",
    "comparing_tolerations",
    "host_network_users",
    "restart_rules",
    "restart_all_containers",
)
_FLAGS = tuple(name for name, flag in vars(ValidationOptions).items() if isinstance(flag, cached_property))

NEW_POD = ValidationOptions({}, {}, of_pod=True)
NEW_TEMPLATE = ValidationOptions({}, {}, of_pod=False)


def is_deletion_cost(text: str | None) -> bool:
    """Reports whether the value is a whole number of 32 bits, without plus or leading zeros; an absent one is valid."""
    if text is None:
        return True
    try:
        return _number_matches(text) is not None and parse_int(text) in INT32
    except ValueError:  # more than 64 bits
        return False


def _has_indivisible_huge_pages(spec: Object) -> bool:
    lists = [spec.get("overhead") or {}]
    for container in containers(spec):
        resources = container.get("resources") or {}
        lists += [resources.get("limits") or {}, resources.get("requests") or {}]
    return any(is_huge_page(name) and not is_divisible(name, amount) for resources in lists for name, amount in resources.items())


def pod_affinity_terms(spec: Object) -> list[tuple[str, dict[str, Any]]]:
    """Returns all terms of pod affinity and anti-affinity, each with its path below the spec."""
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


def _has_wrong_affinity_selector(spec: Object) -> bool:
    return any(
        selectors.label_selector(term.get(field), "")
        for _, term in pod_affinity_terms(spec)
        for field in ("labelSelector", "namespaceSelector")
    )


def _has_wrong_node_selector(spec: Object) -> bool:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    return any(selectors.has_invalid_label_value(term) for term in required.get("nodeSelectorTerms") or ())


def _has_wrong_spread_selector(spec: Object) -> bool:
    constraints = spec.get("topologySpreadConstraints") or ()
    return any(selectors.label_selector(item.get("labelSelector"), "") for item in constraints)


def _has_wrong_spread_label_keys(spec: Object) -> bool:
    constraints = spec.get("topologySpreadConstraints") or ()
    return any(selectors.label_keys(item.get("matchLabelKeys") or (), (), item.get("labelSelector"), "") for item in constraints)


def _has_legacy_wrong_spread_keys(spec: Object) -> bool:
    constraints = spec.get("topologySpreadConstraints") or ()
    return any(forbid_keys_in_selector(item.get("matchLabelKeys") or (), item.get("labelSelector"), "") for item in constraints)


def merges_spread_keys() -> bool:
    """Reports whether the label keys of topology spread constraints become requirements of their selectors."""
    emulation = features.current()
    needed = ("MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge")
    return all(map(emulation.enabled, needed))


def forbid_keys_in_selector(keys: Sequence[str], selector: Object | None, path: str) -> list[FieldError]:
    """Validates that the selector does not have the matchLabelKeys already (ValidateMatchLabelKeysInTopologySpread)."""
    if not keys:
        return []
    errors = [] if selector is not None else [forbidden(path, selectors.KEYS_WITHOUT_SELECTOR)]
    taken = {item.get("key") for item in (selector or {}).get("matchExpressions") or ()}
    taken |= set((selector or {}).get("matchLabels") or ())
    for index, key in enumerate(keys):
        where = f"{path}[{index}]"
        errors += label_name(key, where)
        if key in taken:
            errors.append(invalid(where, key, selectors.IN_KEYS_AND_SELECTOR))
    return errors


def _has_wrong_token_path(spec: Object) -> bool:
    tokens = (source.get("serviceAccountToken") for source in projected_sources(spec))
    return any(token is not None and non_reserved(token.get("path", ""), "") for token in tokens)


def _has_restarting_init_container(spec: Object) -> bool:
    return any(
        policy.get("restartPolicy") == "RestartContainer"
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") != "Always"
        for policy in container.get("resizePolicy") or ()
    )


def _uses_restart_all(spec: Object) -> bool:
    """Reports whether a spec has what only RestartAllContainersOnContainerExits allows: such a rule, or rules of a sidecar."""
    inits = spec.get("initContainers") or ()
    return any(is_sidecar(item) and item.get("restartPolicyRules") for item in inits) or restarts_all_containers(spec)


# --- The specs in which a check has found nothing --------------------------------------------------------------------

#: The maximum number of known specs.
_MAX_SPECS: Final = 256
#: What a text has in which a volume has a claim of the pod; strings have no such part.
_EPHEMERAL: Final = b'"ephemeral":'


class KnownSpecs(BoundedCache[Hashable, str]):
    """The specs of pods and templates in which one check finds nothing, or of which one step makes always the same."""

    def __init__(self) -> None:
        super().__init__(_MAX_SPECS)

    def key(self, spec: Mapping[str, Any], text: bytes | None, *, of_pod: bool) -> Hashable | None:
        """Returns the key of a spec of a pod or of a template; None if its findings may depend on more than the spec.

        `text`: what `text_of` returns for the spec.
        """
        if text is None or "resourceClaims" in spec or ("volumes" in spec and _EPHEMERAL in text):
            return None
        return features.CURRENT.get(), of_pod, text
