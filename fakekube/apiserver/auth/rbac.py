"""The RBAC authorizer: allows requests by the rules of roles that are bound to the user.

Rules are additive, so the first rule that matches allows the request. The roles and bindings are read through
`Observed`; they are indexed by subject once, and decisions are cached until one of them changes.

Invariant: a decision includes every write of a role or binding that completed before the request for it.

Specified by: k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation/rule.go and
pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.data import RBAC
from fakekube.apimachinery.errors import status
from fakekube.apis.rbac import unsupported_role_kind
from fakekube.apis.rest.cluster_access import Decision
from fakekube.apis.well_known import service_account_username
from fakekube.apiserver.auth.authorization import Attributes, Observed, ResolvedRules, Rule, path_matches
from fakekube.apiserver.endpoints.request import User
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import aggregate_errors

__all__ = ["BUCKETS", "RBAC", "RBACAuthorizer", "Rule", "rule_allows"]

#: The buckets on which decisions depend.
BUCKETS: Final = tuple(f"{plural}.{RBAC}" for plural in ("clusterroles", "roles", "clusterrolebindings", "rolebindings"))
_ALL: Final = "*"
_MAXIMUM_KEPT_DECISIONS: Final = 4096


@dataclass(slots=True, frozen=True)
class Binding:
    """The role that one binding grants to one of its subjects."""

    position: int
    """Its position among all bindings of its kind, which are evaluated in this order."""
    subject: int
    """The index of the subject in the binding; the first that matches counts."""
    source: str
    """In words, for the reason of a decision."""
    rules: Sequence[Rule]
    problem: str = ""
    """Why there are no rules."""


_Subjects = dict[tuple[str, str], list[Binding]]
"""("User" | "Group", name) → what it was given; service accounts are there by their user name."""


class _Policy:
    """Roles and bindings at one version, and the cached decisions.

    Only the cached decisions change, so a thread that holds a policy gets consistent results.
    """

    def __init__(self, policies: Observed, version: object) -> None:
        self.version = version
        self.decisions: dict[tuple[object, ...], Decision] = {}
        self._cluster: _Subjects = {}
        self._namespaces: dict[str, _Subjects] = {}
        roles = _Roles(policies)
        for position, binding in enumerate(policies.list(RBAC, "clusterrolebindings")):
            _index(self._cluster, binding, position, "", roles)
        for position, binding in enumerate(policies.list(RBAC, "rolebindings")):
            namespace = binding["metadata"]["namespace"]
            _index(self._namespaces.setdefault(namespace, {}), binding, position, namespace, roles)

    def bindings(self, user: User, namespace: str) -> Iterator[Binding]:
        """Returns the bindings of a user in the cluster and, if given, in a namespace."""
        yield from _find_bindings(self._cluster, user)
        if namespace:
            yield from _find_bindings(self._namespaces.get(namespace, {}), user)

    def decide(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        problems = []
        for binding in self.bindings(attributes.user, attributes.namespace):
            if binding.problem:
                problems.append(binding.problem)
            elif any(rule_allows(rule, attributes) for rule in binding.rules):
                return Decision(True, f"RBAC: allowed by {binding.source}")
        return Decision(False, f"RBAC: {aggregate_errors(problems)}" if problems else "")


class RBACAuthorizer:
    """Authorizes by the roles and bindings of a cluster."""

    def __init__(self, policies: Observed) -> None:
        self._policies = policies
        self._latest: _Policy | None = None

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        policy = self._policy()
        user = attributes.user
        key = (
            user.name,
            user.groups,
            attributes.verb,
            attributes.namespace,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.name,
            attributes.path if not attributes.is_resource_request else None,
        )
        decision = policy.decisions.get(key)
        if decision is None:
            decision = policy.decide(attributes)
            if len(policy.decisions) < _MAXIMUM_KEPT_DECISIONS:
                policy.decisions[key] = decision
        return decision

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Returns the rules for a user in a namespace (cluster-wide only, if ""), and the resolution errors."""
        bindings = list(self._policy().bindings(user, namespace))
        rules = [rule for binding in bindings for rule in binding.rules]
        return ResolvedRules(rules, False, aggregate_errors([binding.problem for binding in bindings if binding.problem]))

    def _policy(self) -> _Policy:
        version = self._policies.version
        policy = self._latest
        if policy is None or policy.version is not version:
            policy = self._latest = _Policy(self._policies, version)
        return policy


class _Roles:
    """The rules behind a roleRef."""

    def __init__(self, policies: Observed) -> None:
        self._cluster = {role["metadata"]["name"]: role.get("rules") or () for role in policies.list(RBAC, "clusterroles")}
        self._roles = {
            (role["metadata"]["namespace"], role["metadata"]["name"]): role.get("rules") or ()
            for role in policies.list(RBAC, "roles")
        }

    def rules(self, kind: str, namespace: str, name: str) -> tuple[Sequence[Rule], str]:
        """Returns the rules, or the error."""
        if kind == "ClusterRole":
            rules = self._cluster.get(name)
        elif kind == "Role":
            rules = self._roles.get((namespace, name))
        else:
            return (), unsupported_role_kind(kind)
        return ((), status.not_found(RBAC, kind.lower(), name).message) if rules is None else (rules, "")


def _index(subjects: _Subjects, binding: Mapping[str, Any], position: int, namespace: str, roles: _Roles) -> None:
    """Indexes a binding by its subjects."""
    reference = binding["roleRef"]
    rules, problem = roles.rules(reference["kind"], namespace, reference["name"])
    named = f"{binding['metadata']['name']}/{namespace}" if namespace else binding["metadata"]["name"]
    opening = f"{'RoleBinding' if namespace else 'ClusterRoleBinding'} {go_quote(named)} of {reference['kind']} "
    for index, subject in enumerate(binding.get("subjects") or ()):
        key = _subject_key(subject, namespace)
        given = subjects.setdefault(key, [])
        if not given or given[-1].position != position:
            source = f"{opening}{go_quote(reference['name'])} to {_describe_subject(subject, namespace)}"
            given.append(Binding(position, index, source, rules, problem))


def _subject_key(subject: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    if subject["kind"] != "ServiceAccount":
        return subject["kind"], subject["name"]
    where = subject.get("namespace") or namespace
    # A ServiceAccount subject without a namespace matches nobody: no user has this name.
    return "User", service_account_username(where, subject["name"]) if where else ""


def _describe_subject(subject: Mapping[str, Any], namespace: str) -> str:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject['kind']} {go_quote(name)}"


def _find_bindings(subjects: _Subjects, user: User) -> list[Binding]:
    """Returns the bindings of a user by name and by groups, each once, in order."""
    found = list(subjects.get(("User", user.name), ())) if user.name else []
    for group in user.groups:
        found += subjects.get(("Group", group), ())
    if len(found) > 1:
        found.sort(key=lambda binding: (binding.position, -binding.subject))
        found = list({binding.position: binding for binding in found}.values())
    return found


def rule_allows(rule: Rule, attributes: Attributes) -> bool:
    """Reports whether the rule allows the request."""
    verbs = rule.get("verbs") or ()
    if attributes.verb not in verbs and _ALL not in verbs:
        return False
    if not attributes.is_resource_request:
        return any(path_matches(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if attributes.group not in groups and _ALL not in groups:
        return False
    names = rule.get("resourceNames")
    if names and attributes.name not in names:
        return False
    resources = rule.get("resources") or ()
    if _ALL in resources:
        return True
    if not attributes.subresource:
        return attributes.resource in resources
    return f"{attributes.resource}/{attributes.subresource}" in resources or f"*/{attributes.subresource}" in resources
