"""PodSecurity: enforces the Pod Security Standard in the labels of the namespace.

Specified by: k8s.io/pod-security-admission/{admission,api}, plugin/pkg/admission/security/podsecurity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors.field import aggregate, invalid
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin
from fakekube.apiserver.admission.namespaces import NAMESPACES
from fakekube.apiserver.admission.pod_security_checks import NEWEST, Violation, violations
from fakekube.apiserver.admission.pods import PODS
from fakekube.apiserver.options import ConfigurationError
from fakekube.base.objects import Object

#: Resource → the path of its pod or pod template.
_TEMPLATES: Mapping[tuple[str, str], Sequence[str]] = {
    ("", "replicationcontrollers"): ("spec", "template"),
    ("", "podtemplates"): ("template",),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}

PREFIX = "pod-security.kubernetes.io/"
MODES = ("enforce", "audit", "warn")
#: The levels, least restrictive first.
LEVELS = ("privileged", "baseline", "restricted")
_MOST_PODS = 3000

_minor = re.compile(r"v1\.(0|[1-9][0-9]*)").fullmatch


@dataclass(slots=True, frozen=True)
class _Standard:
    """A level at a version."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def strictness(self) -> int:
        return LEVELS.index(self.level)

    def is_equivalent(self, other: _Standard) -> bool:
        """Reports whether both ask for the same: the version of "privileged" says nothing."""
        return self == other or self.level == other.level == "privileged"

    def violations(self, meta: Object, spec: Object) -> list[Violation]:
        found = _minor(self.version)
        return violations(self.level, int(found[1]) if found else NEWEST, meta, spec)


_Policy = Mapping[str, _Standard]
"""Mode → standard."""

_PRIVILEGED = _Standard()
_PRIVILEGED_TEXT = str(_PRIVILEGED)
_WITHOUT_LABELS: _Policy = dict.fromkeys(MODES, _PRIVILEGED)


@dataclass(slots=True, frozen=True)
class _Configuration:
    """The PodSecurityConfiguration of the configuration file."""

    defaults: _Policy = field(default_factory=lambda: _WITHOUT_LABELS)
    """The policy of namespaces without labels."""
    usernames: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()
    """The exempt runtime classes."""


class PodSecurity(Plugin):
    """See the module."""

    name = "PodSecurity"

    def __init__(self, configuration: _Configuration | None = None) -> None:
        self._configuration = configuration or _Configuration()

    @classmethod
    def from_configuration(cls, configuration: Any) -> PodSecurity:
        """Raises ConfigurationError."""
        said = configuration or {}
        defaults, exempt = said.get("defaults") or {}, said.get("exemptions") or {}
        errors: list[FieldError] = []
        for mode in MODES:
            level, version = defaults.get(mode) or "privileged", defaults.get(f"{mode}-version") or "latest"
            if level not in LEVELS:
                errors.append(invalid(f"defaults.{mode}", level, f"must be one of {', '.join(LEVELS)}"))
            if version != "latest" and _minor(version) is None:
                errors.append(invalid(f"defaults.{mode}-version", version, 'must be "latest" or "v1.x"'))
        if errors:
            raise ConfigurationError(aggregate(errors))
        standards = {
            mode: _Standard(defaults.get(mode) or "privileged", defaults.get(f"{mode}-version") or "latest") for mode in MODES
        }
        return cls(
            _Configuration(
                standards, *(frozenset(exempt.get(name) or ()) for name in ("usernames", "namespaces", "runtimeClasses"))
            )
        )

    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({NAMESPACES, PODS, *_TEMPLATES})
    subresources = frozenset({"", "ephemeralcontainers", "resize"})

    def validate(self, attributes: Attributes) -> None:
        obj, resource = attributes.object, (attributes.resource.group, attributes.resource.plural)
        if obj is None:
            return
        if resource == NAMESPACES:
            _check_namespace(attributes, obj, self._configuration)
        elif resource == PODS:
            _check_pod(attributes, obj, self._configuration, enforce=True)
        else:
            template: Object | None = obj
            for field in _TEMPLATES[resource]:
                template = (template or {}).get(field)
            if template is not None and not attributes.subresource:
                _check_pod(attributes, template, self._configuration, enforce=False)


# --- Policies ---------------------------------------------------------------------------------------------------------


def _policy(namespace: Object, defaults: _Policy) -> tuple[_Policy, list[FieldError]]:
    """Returns the policy in the labels, and their errors (invalid levels are treated as restricted)."""
    labels = namespace["metadata"].get("labels") or {}
    if PREFIX not in " ".join(labels):
        return defaults, []
    policy = dict(defaults)
    errors: list[FieldError] = []
    for mode in MODES:
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None:
            known = level in LEVELS
            policy[mode] = replace(policy[mode], level=level if known else "restricted" if mode == "enforce" else "privileged")
            if not known:
                errors.append(_make_invalid_label(mode, level, f"must be one of {', '.join(LEVELS)}"))
        if version is not None:
            known = version == "latest" or _minor(version) is not None
            policy[mode] = replace(policy[mode], version=version if known else "latest")
            if not known:
                errors.append(_make_invalid_label(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
    enforced, warned = policy["enforce"], policy["warn"]
    is_stricter = labels.get(f"{PREFIX}enforce") in LEVELS and enforced.strictness > warned.strictness
    if f"{PREFIX}warn" not in labels and is_stricter:
        version = warned.version if f"{PREFIX}warn-version" in labels else enforced.version
        policy["warn"] = _Standard(enforced.level, version)
    return policy, errors


def _make_invalid_label(mode: str, value: str, text: str) -> FieldError:
    return invalid(f"metadata.labels[{PREFIX}{mode}]", value, text)


# --- Namespaces -------------------------------------------------------------------------------------------------------


def _check_namespace(attributes: Attributes, namespace: Object, configuration: _Configuration) -> None:
    """Validates the labels; violations of existing pods are warnings."""
    if attributes.subresource:
        return
    policy, errors = _policy(namespace, configuration.defaults)
    old, old_errors = _policy(attributes.old, configuration.defaults) if attributes.old is not None else ({}, [])
    if errors and errors != old_errors:
        raise status.invalid("", "Namespace", attributes.name, errors)
    new, before = policy["enforce"], old.get("enforce")
    if before is not None:
        relaxed = new.version == before.version and new.strictness <= before.strictness
        if new == before or new.level == "privileged" or relaxed:
            return
    if attributes.name in configuration.namespaces:
        attributes.context.warnings += _warn_of_exemption(namespace, policy, configuration.defaults)
    elif before is not None:
        attributes.context.warnings += _pods_against(attributes, new)


def _warn_of_exemption(namespace: Object, policy: _Policy, defaults: _Policy) -> list[str]:
    """Returns the warning for the labels of an exempt namespace."""
    if all(standard.is_equivalent(defaults[mode]) for mode, standard in policy.items()):
        return []
    if all(standard.level == "privileged" for standard in policy.values()):
        return []
    labels = namespace["metadata"].get("labels") or {}
    told = [
        f"{mode}={standard}"
        for mode, standard in policy.items()
        if standard.level != "privileged" and {PREFIX + mode, f"{PREFIX}{mode}-version"} & labels.keys()
    ]
    name = namespace["metadata"]["name"]
    return [f'namespace "{name}" is exempt from Pod Security, and the policy ({", ".join(told)}) will be ignored']


def _pods_against(attributes: Attributes, standard: _Standard) -> list[str]:
    namespace = attributes.name
    pods = _one_of_each_first(attributes.context.services.list("", "pods", namespace))
    told: dict[str, list[str]] = {}
    for pod in pods[:_MOST_PODS]:
        found = standard.violations(pod["metadata"], pod["spec"])
        if found:
            told.setdefault(", ".join(violation.reason for violation in found), []).append(pod["metadata"]["name"])
    warnings: list[str] = []
    if len(pods) > _MOST_PODS:
        checked = f"the first {_MOST_PODS} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if told:
        text = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"'
        warnings.append(text)
    return warnings + sorted(f"{_first_of(names)}: {reasons}" for reasons, names in told.items())


def _first_of(pods: Sequence[str]) -> str:
    others = len(pods) - 1
    more = f" (and {others} other pod{'s' if others > 1 else ''})" if others else ""
    return min(pods) + more


def _one_of_each_first(pods: Iterable[Object]) -> list[Object]:
    """Sorts the first pod of each controller to the front, because pods of one controller are similar."""
    seen: set[str] = set()
    first: list[Object] = []
    rest: list[Object] = []
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((owner["uid"] for owner in owners if owner.get("controller")), "")
        (rest if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
    return first + rest


# --- Pods -------------------------------------------------------------------------------------------------------------


def _check_pod(attributes: Attributes, pod: Object, configuration: _Configuration, *, enforce: bool) -> None:
    namespace = attributes.context.services.get("", "namespaces", "", attributes.namespace)
    if namespace is None:
        return None
    if attributes.namespace in configuration.namespaces:
        return _annotate(attributes, "exempt", "namespace")
    if attributes.context.user in configuration.usernames:
        return _annotate(attributes, "exempt", "user")
    policy, errors = _policy(namespace, configuration.defaults)
    enforced, audited, warned = policy["enforce"], policy["audit"], policy["warn"]
    if not errors and audited.level == warned.level == "privileged" and (not enforce or enforced.level == "privileged"):
        if enforce:
            _annotate(attributes, "enforce-policy", _PRIVILEGED_TEXT)
        return None
    if enforce and attributes.old is not None and not _is_significant_update(pod, attributes.old):
        return None
    meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if spec.get("runtimeClassName") in configuration.runtime_classes:
        return _annotate(attributes, "exempt", "runtimeClass")
    if errors:
        _annotate(attributes, "error", f"Failed to parse policy: {aggregate(errors)}")
    told: dict[_Standard, str] = {}

    def violations_of(standard: _Standard) -> str:
        if standard not in told:
            found = _format_violations(standard.violations(meta, spec))
            told[standard] = f'PodSecurity "{standard}": {found}' if found else ""
        return told[standard]

    if enforce:
        _annotate(attributes, "enforce-policy", str(enforced))
    if found := violations_of(audited):
        _annotate(attributes, "audit-violations", f"would violate {found}")
    if enforce and (found := violations_of(enforced)):
        raise status.forbidden("", "pods", attributes.name, f"violates {found}")
    if found := violations_of(warned):
        attributes.context.warnings.append(f"would violate {found}")
    return None


def _annotate(attributes: Attributes, key: str, value: str) -> None:
    attributes.context.annotations.setdefault(PREFIX + key, ("Metadata", value))


def _format_violations(found: Sequence[Violation]) -> str:
    return ", ".join(f"{v.reason} ({v.detail})" if v.detail else v.reason for v in found)


def _is_significant_update(pod: Object, old: Object) -> bool:
    """Reports whether an update changes images or containers; other relevant fields are immutable."""
    new, before = _images(pod, "containers", "initContainers"), _images(old, "containers", "initContainers")
    added = _images(pod, "ephemeralContainers")
    return new != before or not set(added) <= set(_images(old, "ephemeralContainers"))


def _images(pod: Object, *fields: str) -> list[tuple[str, str, str]]:
    return [
        (field, container.get("name", ""), container.get("image", ""))
        for field in fields
        for container in pod["spec"].get(field) or ()
    ]
