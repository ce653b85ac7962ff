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
from fakekube.apis.validation.checks import invalid_each, one_of
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
        return _rules(obj.get("rules") or (), namespaced=True)


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
        return _rules(obj.get("rules") or (), namespaced=False) + _aggregation(obj, allow_invalid_values=False)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        allow_invalid_values = bool(_selector_errors(_selectors(old), allow_invalid_values=False))
        return _rules(obj.get("rules") or (), namespaced=False) + _aggregation(obj, allow_invalid_values=allow_invalid_values)


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
        errors = _role_reference(obj.get("roleRef") or {}, self.role_kinds)
        for index, subject in enumerate(obj.get("subjects") or ()):
            errors += _subject(subject, self.namespaced, f"subjects[{index}]")
        return errors

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        new = _shown_role(obj.get("roleRef") or {})
        return [] if new == _shown_role(old.get("roleRef") or {}) else [invalid("roleRef", new, "cannot change roleRef")]


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """The strategy of clusterrolebindings; subjects that are service accounts must have a namespace."""

    role_kinds = ("ClusterRole",)
    namespaced = False


def _rules(rules: Sequence[Object], *, namespaced: bool) -> list[FieldError]:
    return [error for index, rule in enumerate(rules) for error in _rule(rule, namespaced, f"rules[{index}]")]


def _rule(rule: Object, namespaced: bool, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            errors.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(where, urls, text))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


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


def _role_reference(role: Object, kinds: tuple[str, ...]) -> list[FieldError]:
    errors = one_of(role.get("apiGroup", ""), "roleRef.apiGroup", (GROUP,), plain=True)
    errors += one_of(role.get("kind", ""), "roleRef.kind", kinds, ordered=True, plain=True)
    name = role.get("name", "")
    if not name:
        return [*errors, required("roleRef.name")]
    return errors + invalid_each("roleRef.name", name, names.path_segment(name))


def _shown_role(role: Object) -> dict[str, str]:
    return {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}


def _subject(subject: Object, namespaced: bool, path: str) -> list[FieldError]:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    errors = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += invalid_each(f"{path}.name", name, names.dns_subdomain(name))
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, [""], plain=True))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        errors += one_of(group, f"{path}.apiGroup", (GROUP,), plain=True)
    else:
        errors.append(not_supported(f"{path}.kind", kind, SUBJECT_KINDS, plain=True))
    return errors
