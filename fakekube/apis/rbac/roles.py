"""Roles, ClusterRoles and their bindings. The check for privilege escalation is in `escalation`.

Specified by: pkg/apis/rbac (validation, v1/defaults.go), pkg/registry/rbac.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, not_supported, required
from fakekube.apis.rbac import escalation
from fakekube.apis.rest.strategy import Object, RevalidatingStrategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.rules import (
    NEVER,
    SEGMENT,
    SUBDOMAIN,
    Rule,
    by_minor,
    calls,
    changes,
    each,
    immutable,
    needed,
    nonempty,
    one_of,
    rules,
    says,
    then,
)
from fakekube.apis.validation.selectors import label_selector

__all__ = ["ClusterRoleBindingStrategy", "ClusterRoleStrategy", "RoleBindingStrategy", "RoleStrategy"]

GROUP = "rbac.authorization.k8s.io"
SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


class _RBACStrategy(RevalidatingStrategy):
    create_on_update = True

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return names.path_segment(name)


class RoleStrategy(_RBACStrategy):
    """The strategy of roles."""

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        if not (escalation.may_escalate(context) or (old is not None and escalation.only_garbage_collection(obj, old))):
            escalation.check_rules(context, obj, obj.get("rules") or ())

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return ROLE.validate(obj)


class ClusterRoleStrategy(RoleStrategy):
    """The strategy of clusterroles, which may aggregate the rules of others."""

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        if escalation.may_escalate(context) or (old is not None and escalation.only_garbage_collection(obj, old)):
            return
        escalation.check_rules(context, obj, obj.get("rules") or ())
        if _selectors(obj) or (old is not None and _selectors(old)):
            problem = "must have cluster-admin privileges to use the aggregationRule"
            escalation.check_rules(context, obj, escalation.FULL_AUTHORITY, problem)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return CLUSTER_ROLE.validate(obj) + _aggregation(obj, allow_invalid_values=False)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        allow_invalid_values = bool(_selector_errors(_selectors(old), allow_invalid_values=False))
        return CLUSTER_ROLE.validate(obj) + _aggregation(obj, allow_invalid_values=allow_invalid_values)


class RoleBindingStrategy(_RBACStrategy):
    """The strategy of rolebindings, which refer to roles of their namespace or to cluster roles."""

    role_kinds: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")
    namespaced: ClassVar[bool] = True

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        escalation.check_binding(context, obj, old)

    def default(self, obj: Object) -> None:
        role = obj.setdefault("roleRef", {})
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = GROUP

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return (ROLE_BINDING if self.namespaced else CLUSTER_ROLE_BINDING).validate(obj)

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return ROLE_BINDING_CHANGES.validate(obj, old)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """The strategy of clusterrolebindings; subjects that are service accounts must have a namespace."""

    role_kinds = ("ClusterRole",)
    namespaced = False


AGGREGATION = "aggregationRule.clusterRoleSelectors"


def _aggregation(obj: Object, *, allow_invalid_values: bool) -> list[FieldError]:
    if obj.get("aggregationRule") is None:
        return []
    selectors = _selectors(obj)
    if not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [required(AGGREGATION, text)]
    return _selector_errors(selectors, allow_invalid_values=allow_invalid_values)


def _selectors(obj: Object) -> Sequence[Mapping[str, Any]]:
    return (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()


def _selector_errors(selectors: Sequence[Mapping[str, Any]], *, allow_invalid_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, selector in enumerate(selectors):
        path = f"{AGGREGATION}[{index}]"
        errors += label_selector(selector, path, allow_invalid_values=allow_invalid_values)
        if label_selector(selector, path):
            errors.append(invalid(path, None, "invalid label selector."))
    return errors


def validate_policy_rule(rule: Object, path: str) -> list[FieldError]:
    """Validates that a rule is about resources or about URLs (ValidatePolicyRule)."""
    if rule.get("nonResourceURLs"):
        if not (rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames")):
            return []
        text = "rules cannot apply to both regular resources and non-resource URLs"
        return [invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], text)]
    errors = [] if rule.get("apiGroups") else [required(f"{path}.apiGroups", "resource rules must supply at least one api group")]
    return errors + (
        [] if rule.get("resources") else [required(f"{path}.resources", "resource rules must supply at least one resource")]
    )


def validate_role_binding_subject(subject: Object, path: str) -> list[FieldError]:
    """Validates kind, group and name of a subject together (ValidateRoleBindingSubject)."""
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    if kind == "ServiceAccount":
        errors = SUBDOMAIN.run(name, f"{path}.name") if name else []
        return errors + ([not_supported(f"{path}.apiGroup", group, [""], plain=True)] if group else [])
    if kind in ("User", "Group"):
        return OF_GROUP.run(group, f"{path}.apiGroup")
    return [not_supported(f"{path}.kind", kind, SUBJECT_KINDS, plain=True)]


def validate_namespace_of_service_account(subject: Object, path: str) -> list[FieldError]:
    """Validates that a service account of a cluster role binding has a namespace (ValidateRoleBindingSubject)."""
    wrong = subject.get("kind") == "ServiceAccount" and not subject.get("namespace")
    return [required(f"{path}.namespace")] if wrong else []


OF_GROUP = one_of(GROUP, plain=True)
VERBS = by_minor("verbs", (needed("verbs must contain at least one value"), 0, 37), (needed(), 37, NEVER))
NAMESPACED_URLS = nonempty(says("empty", bool, "namespaced rules cannot apply to non-resource URLs"))

POLICY_RULE = rules("PolicyRule", "ValidatePolicyRule", *VERBS, Rule("", calls(validate_policy_rule)))
NAMESPACED_POLICY_RULE = rules(
    "PolicyRule of a Role",
    "ValidatePolicyRule",
    *VERBS,
    Rule("nonResourceURLs", NAMESPACED_URLS),
    Rule("", calls(validate_policy_rule)),
)
ROLE = rules("Role", "ValidateRole", Rule("rules", each(NAMESPACED_POLICY_RULE)))
CLUSTER_ROLE = rules("ClusterRole", "ValidateClusterRole", Rule("rules", each(POLICY_RULE)))


def _role_reference(*kinds: str) -> tuple[Rule, ...]:
    return (
        Rule("roleRef.apiGroup", OF_GROUP),
        Rule("roleRef.kind", one_of(*kinds, ordered=True, plain=True)),
        Rule("roleRef.name", then(needed(), SEGMENT)),
    )


SUBJECT = rules("Subject", "ValidateRoleBindingSubject", Rule("name", needed()), Rule("", calls(validate_role_binding_subject)))
CLUSTER_SUBJECT = rules(
    "Subject of a ClusterRoleBinding",
    "ValidateRoleBindingSubject",
    *SUBJECT.rows,
    Rule("", calls(validate_namespace_of_service_account)),
)
ROLE_BINDING = rules(
    "RoleBinding", "ValidateRoleBinding", *_role_reference("Role", "ClusterRole"), Rule("subjects", each(SUBJECT))
)
CLUSTER_ROLE_BINDING = rules(
    "ClusterRoleBinding", "ValidateClusterRoleBinding", *_role_reference("ClusterRole"), Rule("subjects", each(CLUSTER_SUBJECT))
)


def _as_internal(role: Object) -> dict[str, str]:
    return {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}


ROLE_BINDING_CHANGES = changes(
    "RoleBinding",
    "ValidateRoleBindingUpdate",
    *by_minor("roleRef", (immutable(_as_internal, "cannot change roleRef"), 0, 37), (immutable(_as_internal), 37, NEVER)),
)
