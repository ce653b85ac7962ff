"""Nodes (taints, pod CIDRs, a status that a client may set on create), deprecated labels of nodes, and component statuses.

The paths of errors of taints are below metadata, as in the real server.

Selectors of other kinds that use deprecated labels of nodes get warnings. Component statuses are not stored: the real server
asks the components on every request. There are no components here, so the responses are those of a server that runs alone
with its etcd.

Specified by: pkg/registry/core/node, ValidateNode and ValidateNodeUpdate in pkg/apis/core/validation, pkg/apis/core/v1
(defaults.go, conversion.go); pkg/api/node/util.go; pkg/registry/core/componentstatus.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import FieldErrorType, duplicate, forbidden, internal, invalid, required, too_many
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.rest.strategy import RevalidatingStrategy, StatusStrategy, WriteContext, restore
from fakekube.apis.validation import ip, names
from fakekube.apis.validation.checks import label_name, positive, repeated_indices
from fakekube.apis.validation.objectmeta import read_avoid_pods, read_taints
from fakekube.apis.validation.resource_lists import quantity_value
from fakekube.apis.validation.rules import NEVER, by_minor, changes, fixed_once_set, kept_once_set
from fakekube.apis.validation.selectors import taint_effect
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.golang.json_reader import JSONError
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

TAINTS = "scheduler.alpha.kubernetes.io/taints"
_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
ANNOTATIONS = "metadata.annotations"

#: What the Node authorizer and NodeRestriction say to a node that asks for the object of another one.
LEASE_OF_OTHER_NODE = "can only access node lease with the same name as the requesting node"
CSI_NODE_OF_OTHER_NODE = "can only access CSINode with the same name as the requesting node"

_MAX_PREEMPTION_KEYS: Final = 20

_is_feature = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch
_FEATURE_TEXT = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


class NodeStrategy(RevalidatingStrategy):
    """The strategy of nodes."""

    validates_unchanged_update = True  # a create does not look at the addresses

    def default(self, obj: Object) -> None:
        _match_pod_cidrs(obj.get("spec") or {})
        status = obj.get("status") or {}
        if "capacity" in status and status.get("allocatable") is None:
            status["allocatable"] = dict(status["capacity"])

    def canonicalize(self, obj: Object) -> None:
        _default_allocatable(obj)

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj.get("spec", {}).pop("configSource", None)
        obj.get("status", {}).pop("config", None)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        restore(obj, old, "status")
        obj.get("spec", {}).pop("configSource", None)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec, status = obj.get("spec", {}), obj.get("status", {})
        errors = _validate_annotations(obj["metadata"].get("annotations") or {})
        errors += _validate_taints(spec.get("taints") or (), "metadata.taints")
        errors += _validate_resources(status)
        swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
        if swap is not None:
            errors += positive(swap, "metadata.nodeSwapStatus.capacity")
        errors += _validate_features(status.get("declaredFeatures") or ())
        errors += _validate_pod_cidrs(spec.get("podCIDRs") or [])
        return errors + _validate_preemption_policy(spec, {})

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_node_change(obj, old)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        spec = obj.get("spec", {})
        warnings: list[str] = []
        if spec.get("externalID"):
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for index, cidr in enumerate(spec.get("podCIDRs") or ()):
            warnings += ip.cidr_warnings(f"spec.podCIDRs[{index}]", cidr)
        return warnings

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


def _default_allocatable(obj: Object) -> None:
    """Sets allocatable to capacity if it is empty; the real server does so by a default when it reads the object from storage."""
    status = obj.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _match_pod_cidrs(spec: Object) -> None:
    """Sets podCIDR to the first of podCIDRs; where they differ, podCIDR wins."""
    one, many = spec.get("podCIDR", ""), spec.get("podCIDRs") or []
    if one and many[:1] != [one]:
        spec["podCIDRs"] = [one]
    elif many:
        spec["podCIDR"] = many[0]


def _validate_node_change(obj: Object, old: Object) -> list[FieldError]:
    """Validates an update of the node or of its status."""
    spec, old_spec, status = obj.get("spec", {}), old.get("spec", {}), obj.get("status", {})
    errors = _validate_annotations(obj["metadata"].get("annotations") or {})
    errors += _validate_resources(status)
    errors += _validate_features(status.get("declaredFeatures") or ())
    errors += _validate_status_addresses(status.get("addresses") or ())
    errors += _validate_pod_cidrs_update(spec.get("podCIDRs") or [], old_spec.get("podCIDRs") or [])
    errors += _NODE_SPEC_CHANGES.validate(spec, old_spec, "spec")
    errors += _validate_taints(spec.get("taints") or (), "metadata.taints")
    if spec.get("externalID", "") != old_spec.get("externalID", ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors + _validate_preemption_policy(spec, old_spec)


def _validate_preemption_policy(spec: Object, old_spec: Object) -> list[FieldError]:
    """Validates the policy of preemption by resizes, unless it is unchanged (Validate_NodePodPreemptionPolicy)."""
    policy = spec.get("podPreemptionPolicy") or {}
    if policy == (old_spec.get("podPreemptionPolicy") or {}):
        return []
    keys, path = policy.get("disableResizePreemption") or [], "spec.podPreemptionPolicy.disableResizePreemption"
    if len(keys) > _MAX_PREEMPTION_KEYS:
        return [too_many(path, len(keys), _MAX_PREEMPTION_KEYS)]
    errors = [error for index, name in enumerate(keys) for error in label_name(name, f"{path}[{index}]")]
    return errors + [duplicate(f"{path}[{index}]", keys[index]) for index in repeated_indices(keys)]


def _validate_pod_cidrs_update(new: list[str], old: list[str]) -> list[FieldError]:
    if not old:
        return []
    changes = 1 if len(new) != len(old) else sum(a != b for a, b in zip(new, old, strict=True))
    text = 'node updates may not change podCIDR except from "" to valid'
    return [forbidden("spec.podCIDRs", text)] * changes


def _validate_status_addresses(items: Sequence[Mapping[str, str]]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, item in enumerate(items):
        kind, address = item.get("type", ""), item.get("address", "")
        if (kind, address) in seen:
            errors.append(duplicate(f"status.addresses[{index}]", {"Type": kind, "Address": address}))
        seen.add((kind, address))
    return errors


def _validate_annotations(annotations: Mapping[str, str]) -> list[FieldError]:
    """Validates the annotations that preceded fields: taints and preferAvoidPods."""
    errors: list[FieldError] = []
    if annotations.get(TAINTS):
        try:
            errors += _validate_taints(read_taints(annotations[TAINTS]), f"{ANNOTATIONS}.{TAINTS}")
        except JSONError as problem:
            errors.append(invalid(ANNOTATIONS, TAINTS, str(problem)))
    if annotations.get(_AVOID_PODS):
        errors += _validate_avoid_pods(annotations[_AVOID_PODS])
    return errors


def _validate_avoid_pods(text: str) -> list[FieldError]:
    try:
        found = read_avoid_pods(text)
    except JSONError as problem:
        return [invalid(f"{ANNOTATIONS}.AvoidPods", _AVOID_PODS, str(problem))]
    errors: list[FieldError] = []
    for index, entry in enumerate(found.get("preferAvoidPods") or ()):
        path = f"{ANNOTATIONS}.{_AVOID_PODS}[{index}].PodSignature"
        controller = (entry.get("podSignature") or {}).get("podController")
        if controller is None:
            errors.append(required(path))
        elif not controller.get("controller"):
            errors.append(invalid(f"{path}.PodController.Controller", False, "must point to a controller"))
    return errors


def _validate_taints(taints: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += label_name(key, f"{where}.key")
        details = names.label_value(value)
        if details:
            errors.append(invalid(f"{where}.value", value, ";".join(details)))
        errors += taint_effect(effect, f"{where}.effect")
        if (key, effect) in seen:
            text = "taints must be unique by key and effect pair"
            errors.append(FieldError(FieldErrorType.DUPLICATE, where, to_internal("Taint", taint), text))
        seen.add((key, effect))
    return errors


def _validate_resources(status: Object) -> list[FieldError]:
    return [
        error
        for field in ("capacity", "allocatable")
        for name, amount in (status.get(field) or {}).items()
        for error in quantity_value(name, amount, f"status.{field}.{name}")
    ]


def _validate_features(features: Sequence[str]) -> list[FieldError]:
    """Validates declaredFeatures: well-formed, sorted and unique."""
    errors: list[FieldError] = []
    path = "status.declaredFeatures"
    for index, feature in enumerate(features):
        problem = _feature_problem(feature)
        if problem:
            text = f"invalid feature name {go_quote(feature)}: {problem}"
            errors.append(invalid(f"{path}[{index}]", feature, text))
        following = features[index + 1] if index + 1 < len(features) else None
        if following == feature:
            errors.append(duplicate(f"{path}[{index + 1}]", following))
        elif following is not None and feature > following:
            errors.append(invalid(f"{path}[{index + 1}]", following, "list must be sorted alphabetically"))
    return errors


def _feature_problem(feature: str) -> str:
    if not names.fits(feature, names.SUBDOMAIN_LENGTH):
        return names.too_long_text(names.SUBDOMAIN_LENGTH)
    return "" if _is_feature(feature) else _FEATURE_TEXT


def _validate_pod_cidrs(cidrs: list[str]) -> list[FieldError]:
    path = "spec.podCIDRs"
    errors = [error for i, cidr in enumerate(cidrs) for error in ip.legacy_cidr(f"{path}[{i}]", cidr, strict=True)]
    if len(cidrs) < 2:
        return errors
    networks = [ip.parse_cidr(cidr) for cidr in cidrs]
    if None in networks:
        index = networks.index(None)
        problem = f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {cidrs[index]})"
        errors.append(internal(path, f"invalid PodCIDRs. failed to check with dual stack with error:{problem}"))
    families = {network.network.version for network in networks if network}
    if None in networks or len(families) < 2 or len(cidrs) > 2:
        errors.append(invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
    return errors


class _NodeStatusStrategy(StatusStrategy):
    validates_unchanged_update = True

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        obj.get("status", {}).pop("config", None)

    def canonicalize(self, obj: Object) -> None:
        _default_allocatable(obj)


STATUS = _NodeStatusStrategy(_validate_node_change)


_NODE_SPEC_CHANGES = changes(
    "NodeSpec",
    "ValidateNodeUpdate",
    *by_minor(
        "providerID",
        (kept_once_set('node updates may not change providerID except from "" to valid'), 0, 37),
        (fixed_once_set(), 37, NEVER),
    ),
)


#: The deprecated label → the version since which it is deprecated, and the label to use instead.
RENAMED_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}

#: The label → the text of the warning.
DEPRECATED: Mapping[str, str] = {
    **{label: f'deprecated since {version}; use "{successor}" instead' for label, (version, successor) in RENAMED_LABELS.items()},
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    _AVOID_PODS: "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def node_selector_term_warnings(term: Mapping[str, Any], path: str, *, check_values: bool = False) -> list[str]:
    """Returns the warnings about a core NodeSelectorTerm.

    Args:
        term: the term.
        path: its path in the object.
        check_values: whether there are warnings about invalid label values, which validation accepts.
    """
    warnings = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        if key in DEPRECATED:
            warnings.append(f"{path}.matchExpressions[{index}].key: {key} is {DEPRECATED[key]}")
        if check_values:
            warnings += [
                f"{path}.matchExpressions[{index}].values[{position}]: {value} is invalid, {detail}"
                for position, value in enumerate(expression.get("values") or ())
                for detail in names.label_value(value)
            ]
    return warnings


def node_label_selector_warnings(selector: Mapping[str, Any] | None, path: str) -> list[str]:
    """Returns the warnings about a metav1.LabelSelector that selects nodes."""
    if not selector:
        return []
    warnings = node_selector_term_warnings(selector, path)
    labels = selector.get("matchLabels") or ()
    return warnings + [f"{path}.matchLabels.{key}: {DEPRECATED[key]}" for key in labels if key in DEPRECATED]


_COMPONENT_STATUSES = "/api/v1/componentstatuses"
_HEALTHY: Final = ({"type": "Healthy", "status": "True", "message": "ok"},)


def component_statuses(facts: data.Facts, services: ClusterAccess) -> Sequence[Object]:
    """Returns all component statuses of a minor: those of components that do not run here are Unhealthy."""
    running = services.components()
    return [
        {**row, **({"conditions": list(_HEALTHY)} if row["metadata"]["name"] in running else {})}
        for row in facts.bootstrap[_COMPONENT_STATUSES]
    ]
