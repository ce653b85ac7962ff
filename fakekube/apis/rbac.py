"""Roles, ClusterRoles and their bindings, and the check that nobody grants permissions that they do not have.

Every granted rule is broken down into its smallest parts (one group, resource, verb and name each), and a single rule of the
user must cover each part. The check does not apply to users with the verb `escalate` on the role, or `bind` on the role of a
binding, nor to members of system:masters.

Specified by: pkg/apis/rbac (validation, v1/defaults.go), pkg/registry/rbac (escalation_check.go, */policybased,
validation/rule.go, validation/policy_compact.go), k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from fakekube.apimachinery.data import RBAC
from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors.field import invalid, not_supported, required
from fakekube.apis.rest.strategy import RevalidatingStrategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import API_GROUP_REQUIRED, RESOURCE_REQUIRED, RESOURCES_OR_URLS, VERBS_REQUIRED
from fakekube.apis.validation.rules import (
    NEVER,
    SEGMENT,
    SUBDOMAIN,
    Rule,
    by_declaration,
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
from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.apis.well_known import SYSTEM_PRIVILEGED_GROUP
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

SUBJECT_KINDS = ("ServiceAccount", "User", "Group")

_ALL: Final = "*"
_named_kind: Final = re.compile(rf"\b(cluster)?role\.{re.escape(RBAC)}")

PolicyRule = Mapping[str, Any]

#: The permissions that writing an aggregation rule requires, as it can select any rule.
_FULL_AUTHORITY: Final[Sequence[PolicyRule]] = (
    {"verbs": [_ALL], "apiGroups": [_ALL], "resources": [_ALL]},
    {"verbs": [_ALL], "nonResourceURLs": [_ALL]},
)

#: Fields that the garbage collector writes; an update of only these fields is not checked.
_GARBAGE_COLLECTION: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")

#: The fields of a rule, and as the message of the 403 shows them.
_PARTS: Final = (
    ("apiGroups", "APIGroups"),
    ("resources", "Resources"),
    ("nonResourceURLs", "NonResourceURLs"),
    ("resourceNames", "ResourceNames"),
    ("verbs", "Verbs"),
)


class _RBACStrategy(RevalidatingStrategy):
    create_on_update = True
    validated_twice_until = 35

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return names.path_segment(name)


class RoleStrategy(_RBACStrategy):
    """The strategy of roles."""

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        if not (_may_escalate(context) or (old is not None and only_garbage_collection(obj, old))):
            _check_rules(context, obj, obj.get("rules") or ())

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return ROLE.validate(obj)


class ClusterRoleStrategy(RoleStrategy):
    """The strategy of clusterroles, which may aggregate the rules of others."""

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        if _may_escalate(context) or (old is not None and only_garbage_collection(obj, old)):
            return
        _check_rules(context, obj, obj.get("rules") or ())
        if _selectors(obj) or (old is not None and _selectors(old)):
            problem = "must have cluster-admin privileges to use the aggregationRule"
            _check_rules(context, obj, _FULL_AUTHORITY, problem)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _CLUSTER_ROLE.validate(obj) + _validate_aggregation_rule(obj, allow_invalid_values=False)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        allow_invalid_values = bool(_validate_selectors(_selectors(old), allow_invalid_values=False))
        return _CLUSTER_ROLE.validate(obj) + _validate_aggregation_rule(obj, allow_invalid_values=allow_invalid_values)


class RoleBindingStrategy(_RBACStrategy):
    """The strategy of rolebindings, which refer to roles of their namespace or to cluster roles."""

    namespaced: ClassVar[bool] = True

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        _check_binding(context, obj, old)

    def default(self, obj: Object) -> None:
        role = obj.setdefault("roleRef", {})
        if not role.get("apiGroup"):
            role["apiGroup"] = RBAC
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = RBAC

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return (_ROLE_BINDING if self.namespaced else _CLUSTER_ROLE_BINDING).validate(obj)

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _ROLE_BINDING_CHANGES.validate(obj, old)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """The strategy of clusterrolebindings; subjects that are service accounts must have a namespace."""

    namespaced = False


_AGGREGATION = "aggregationRule.clusterRoleSelectors"


def _validate_aggregation_rule(obj: Object, *, allow_invalid_values: bool) -> list[FieldError]:
    if obj.get("aggregationRule") is None:
        return []
    selectors = _selectors(obj)
    if not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [required(_AGGREGATION, text)]
    return _validate_selectors(selectors, allow_invalid_values=allow_invalid_values)


def _selectors(obj: Object) -> Sequence[Mapping[str, Any]]:
    return (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()


def _validate_selectors(selectors: Sequence[Mapping[str, Any]], *, allow_invalid_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, selector in enumerate(selectors):
        path = f"{_AGGREGATION}[{index}]"
        errors += label_selector(selector, path, allow_invalid_values=allow_invalid_values)
        if label_selector(selector, path):
            errors.append(invalid(path, None, "invalid label selector."))
    return errors


def validate_policy_rule(rule: Object, path: str) -> list[FieldError]:
    """Validates that a rule is about resources or about URLs (ValidatePolicyRule)."""
    if rule.get("nonResourceURLs"):
        if not (rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames")):
            return []
        return [invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], RESOURCES_OR_URLS)]
    errors = [] if rule.get("apiGroups") else [required(f"{path}.apiGroups", API_GROUP_REQUIRED)]
    return errors + ([] if rule.get("resources") else [required(f"{path}.resources", RESOURCE_REQUIRED)])


def validate_role_binding_subject(subject: Object, path: str) -> list[FieldError]:
    """Validates kind, group and name of a subject together (ValidateRoleBindingSubject)."""
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    if kind == "ServiceAccount":
        errors = SUBDOMAIN.run(name, f"{path}.name") if name else []
        return errors + ([not_supported(f"{path}.apiGroup", group, [""], plain=True)] if group else [])
    if kind in ("User", "Group"):
        return _OF_GROUP.run(group, f"{path}.apiGroup")
    return [not_supported(f"{path}.kind", kind, SUBJECT_KINDS, plain=True)]


def validate_namespace_of_service_account(subject: Object, path: str) -> list[FieldError]:
    """Validates that a service account of a cluster role binding has a namespace (ValidateRoleBindingSubject)."""
    wrong = subject.get("kind") == "ServiceAccount" and not subject.get("namespace")
    return [required(f"{path}.namespace")] if wrong else []


_OF_GROUP = one_of(RBAC, plain=True)
VERBS = by_declaration("verbs", needed(), (needed(VERBS_REQUIRED), 0))
_NAMESPACED_URLS = nonempty(says("empty", bool, "namespaced rules cannot apply to non-resource URLs"))

POLICY_RULE = rules("PolicyRule", "ValidatePolicyRule", *VERBS, Rule("", calls(validate_policy_rule)))
_NAMESPACED_POLICY_RULE = rules(
    "PolicyRule of a Role",
    "ValidatePolicyRule",
    *VERBS,
    Rule("nonResourceURLs", _NAMESPACED_URLS),
    Rule("", calls(validate_policy_rule)),
)
ROLE = rules("Role", "ValidateRole", Rule("rules", each(_NAMESPACED_POLICY_RULE)))
_CLUSTER_ROLE = rules("ClusterRole", "ValidateClusterRole", Rule("rules", each(POLICY_RULE)))


def _role_reference(*kinds: str) -> tuple[Rule, ...]:
    return (
        Rule("roleRef.apiGroup", _OF_GROUP),
        Rule("roleRef.kind", one_of(*kinds, ordered=True, plain=True)),
        Rule("roleRef.name", then(needed(), SEGMENT)),
    )


SUBJECT = rules("Subject", "ValidateRoleBindingSubject", Rule("name", needed()), Rule("", calls(validate_role_binding_subject)))
_CLUSTER_SUBJECT = rules(
    "Subject of a ClusterRoleBinding",
    "ValidateRoleBindingSubject",
    *SUBJECT.rows,
    Rule("", calls(validate_namespace_of_service_account)),
)
_ROLE_BINDING = rules(
    "RoleBinding", "ValidateRoleBinding", *_role_reference("Role", "ClusterRole"), Rule("subjects", each(SUBJECT))
)
_CLUSTER_ROLE_BINDING = rules(
    "ClusterRoleBinding", "ValidateClusterRoleBinding", *_role_reference("ClusterRole"), Rule("subjects", each(_CLUSTER_SUBJECT))
)


def _as_internal(role: Object) -> dict[str, str]:
    return {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}


_ROLE_BINDING_CHANGES = changes(
    "RoleBinding",
    "ValidateRoleBindingUpdate",
    *by_minor("roleRef", (immutable(_as_internal, "cannot change roleRef"), 0, 37), (immutable(_as_internal), 37, NEVER)),
)


# --- Checks of a write ------------------------------------------------------------------------------------------------


def _check_rules(context: WriteContext, obj: Object, rules: Sequence[PolicyRule], problem: str = "") -> None:
    """Checks that the user may write an object that grants these rules. Raises StatusError 403.

    `problem` replaces the list of missing permissions in the message.
    """
    missing = _missing_rights(context, rules)
    if missing:
        raise status.forbidden(RBAC, context.resource.plural, obj["metadata"].get("name", ""), problem or missing)


def _may_escalate(context: WriteContext) -> bool:
    """Reports whether the user has the verb `escalate` on the role of this request, or is not checked at all."""
    return SYSTEM_PRIVILEGED_GROUP in context.groups or _is_authorized(context, "escalate", context.resource.plural, context.name)


def _check_binding(context: WriteContext, obj: Object, old: Object | None) -> None:
    """Checks that the user may bind the role of a binding. Raises StatusError 403, or 404 if the role does not exist."""
    if SYSTEM_PRIVILEGED_GROUP in context.groups or (old is not None and only_garbage_collection(obj, old)):
        return
    role = obj.get("roleRef") or {}
    kind, name = role.get("kind", ""), role.get("name", "")
    plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
    if plural is None:
        raise status.generic(500, "", unsupported_role_kind(kind))
    if _is_authorized(context, "bind", plural, name, group=role.get("apiGroup", "")):
        return
    found = context.services.get(RBAC, plural, context.namespace if kind == "Role" else "", name)
    if found is None:
        raise status.not_found(RBAC, context.resource.plural, name)
    _check_rules(context, obj, found.get("rules") or ())


def only_garbage_collection(obj: Object, old: Object) -> bool:
    """Reports whether a write changes only the fields that the garbage collector changes."""
    meta, old_meta = dict(obj["metadata"]), dict(old["metadata"])
    for field in _GARBAGE_COLLECTION:
        meta.pop(field, None)
        old_meta.pop(field, None)
    return semantic_deep_equal({**obj, "metadata": meta}, {**old, "metadata": old_meta})


def _is_authorized(context: WriteContext, verb: str, plural: str, name: str, group: str = RBAC) -> bool:
    attributes = {"verb": verb, "group": group, "version": _ALL, "resource": plural, "name": name, "namespace": context.namespace}
    return context.authorize(attributes)[0]


# --- Rules ------------------------------------------------------------------------------------------------------------


def _missing_rights(context: WriteContext, rules: Sequence[PolicyRule]) -> str:
    """Returns the permissions that the user lacks, as the message of the 403 has them; "" if there are none."""
    owned, problem = context.services.rbac_rules(context.user, context.groups, context.namespace)
    missing = [part for rule in rules for part in _broken_down(rule) if not any(covers(own, part) for own in owned)]
    if not missing:
        return ""
    groups = " ".join(map(go_quote, context.groups))
    descriptions = "\n".join(sorted({_format_rule(rule) for rule in _compact_rules(missing)}))
    text = (
        f"user {go_quote(context.user)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n"
        f"{descriptions}"
    )
    if not problem:
        return text
    # These roles are looked up in the storage, which calls what it does not find by the resource of the request.
    return f"{text}; resolution errors: [{_named_kind.sub(f'{context.resource.plural}.{RBAC}', problem)}]"


def _broken_down(rule: PolicyRule) -> Iterator[PolicyRule]:
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                yield from ({**part, "resourceNames": [name]} for name in names) if names else (part,)
    for url in rule.get("nonResourceURLs") or ():
        yield from ({"nonResourceURLs": [url], "verbs": [verb]} for verb in verbs)


def covers(owned: PolicyRule, part: PolicyRule) -> bool:
    """Reports whether a rule grants everything that a broken-down rule grants."""
    return (
        _has_all(owned, part, "verbs")
        and _has_all(owned, part, "apiGroups")
        and all(_covers_resource(owned.get("resources") or (), resource) for resource in part.get("resources") or ())
        and _covers_names(owned.get("resourceNames") or (), part.get("resourceNames") or ())
        and all(_covers_url(owned.get("nonResourceURLs") or (), url) for url in part.get("nonResourceURLs") or ())
    )


def _has_all(owned: PolicyRule, part: PolicyRule, field: str) -> bool:
    values = owned.get(field) or ()
    return _ALL in values or all(value in values for value in part.get(field) or ())


def _covers_resource(owned: Sequence[str], resource: str) -> bool:
    if _ALL in owned or resource in owned:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned


def _covers_names(owned: Sequence[str], names: Sequence[str]) -> bool:
    return not owned or (bool(names) and all(name in owned for name in names))


def _covers_url(owned: Sequence[str], url: str) -> bool:
    return any(own == url or (own.endswith(_ALL) and url.startswith(own.rstrip(_ALL))) for own in owned)


def _compact_rules(parts: Sequence[PolicyRule]) -> list[PolicyRule]:
    """Merges rules about the same resource (and name); verbs keep their order."""
    simple: dict[tuple[str, ...], dict[str, Any]] = {}
    others = []
    for part in parts:
        if part.get("nonResourceURLs"):
            others.append(part)
            continue
        key = (part["apiGroups"][0], part["resources"][0], *part.get("resourceNames", ()))
        known = simple.setdefault(key, {**part, "verbs": []})
        known["verbs"] += part["verbs"]
    return [*others, *simple.values()]


def _format_rule(rule: PolicyRule) -> str:
    parts = (f"{shown}:[{' '.join(map(go_quote, rule[field]))}]" for field, shown in _PARTS if rule.get(field))
    return f"{{{', '.join(parts)}}}"


def unsupported_role_kind(kind: str) -> str:
    """Returns what the real server says of a roleRef to neither a Role nor a ClusterRole."""
    return f"unsupported role reference kind: {go_quote(kind)}"
