"""Role-based access control: rules of roles, given to subjects by bindings.

Rules only ever add rights, so a question is answered by the first rule that matches. The roles and bindings
are read through `Observed`; what they say is indexed by subject once, and decisions are kept, until they
change.

Invariant: an answer is never older than the last write of a role or binding that was seen to end before the
question.

Specified by: k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation/rule.go and
pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.auth import identities
from fakekube.auth.authorization import Attributes, Decision, ResolvedRules, Rule, aggregated
from fakekube.auth.observing import Observed
from fakekube.errors import status
from fakekube.golang.quoting import go_quote
from fakekube.registry.request import User

__all__ = ["BUCKETS", "GROUP", "RBACAuthorizer", "Rule", "rule_allows"]

GROUP: Final = "rbac.authorization.k8s.io"
#: Where the store keeps what decisions depend on.
BUCKETS: Final = tuple(
    f"{plural}.{GROUP}" for plural in ("clusterroles", "roles", "clusterrolebindings", "rolebindings")
)
_ALL: Final = "*"
_MAXIMUM_KEPT_DECISIONS: Final = 4096

@dataclass(slots=True, frozen=True)
class Binding:
    """What one binding gives to one of its subjects."""

    position: int
    """Among all bindings of its kind: the order in which they are asked."""
    subject: int
    """Which of the subjects of the binding it is: the first that is meant counts."""
    source: str
    """In words, for the reason of a decision."""
    rules: Sequence[Rule]
    problem: str = ""
    """Why there are no rules."""


_Subjects = dict[tuple[str, str], list[Binding]]
"""("User" | "Group", name) → what it was given; service accounts are there by their user name."""


class _Policy:
    """Roles and bindings as they were at one version, and the decisions made from them.

    It is never changed but for the kept decisions, so threads that still hold one agree with themselves.
    """

    def __init__(self, policies: Observed, version: int) -> None:
        self.version = version
        self.decisions: dict[tuple[object, ...], Decision] = {}
        self._cluster: _Subjects = {}
        self._namespaces: dict[str, _Subjects] = {}
        roles = _Roles(policies)
        for position, binding in enumerate(policies.list(GROUP, "clusterrolebindings")):
            _index(self._cluster, binding, position, "", roles)
        for position, binding in enumerate(policies.list(GROUP, "rolebindings")):
            namespace = binding["metadata"]["namespace"]
            _index(self._namespaces.setdefault(namespace, {}), binding, position, namespace, roles)

    def bindings(self, user: User, namespace: str) -> Iterator[Binding]:
        """What a user was given in the cluster and, if one is named, in a namespace."""
        yield from _given(self._cluster, user)
        if namespace:
            yield from _given(self._namespaces.get(namespace, {}), user)

    def decide(self, attributes: Attributes) -> Decision:
        """May the user do that?"""
        problems = []
        for binding in self.bindings(attributes.user, attributes.namespace):
            if binding.problem:
                problems.append(binding.problem)
            elif any(rule_allows(rule, attributes) for rule in binding.rules):
                return Decision(True, f"RBAC: allowed by {binding.source}")
        return Decision(False, f"RBAC: {aggregated(problems)}" if problems else "")


class RBACAuthorizer:
    """Answers from the roles and bindings of a cluster."""

    def __init__(self, policies: Observed) -> None:
        self._policies = policies
        self._latest: _Policy | None = None

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""
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
        """Every rule that applies to a user in a namespace (or to the cluster only, if ""), and what went
        wrong.
        """
        bindings = list(self._policy().bindings(user, namespace))
        rules = [rule for binding in bindings for rule in binding.rules]
        return ResolvedRules(rules, False, aggregated([binding.problem for binding in bindings if binding.problem]))

    def _policy(self) -> _Policy:
        version = self._policies.version()
        policy = self._latest
        if policy is None or policy.version != version:
            policy = self._latest = _Policy(self._policies, version)
        return policy


class _Roles:
    """The rules behind a roleRef."""

    def __init__(self, policies: Observed) -> None:
        self._cluster = {
            role["metadata"]["name"]: role.get("rules") or () for role in policies.list(GROUP, "clusterroles")
        }
        self._roles = {
            (role["metadata"]["namespace"], role["metadata"]["name"]): role.get("rules") or ()
            for role in policies.list(GROUP, "roles")
        }

    def rules(self, kind: str, namespace: str, name: str) -> tuple[Sequence[Rule], str]:
        """The rules, or why there are none."""
        if kind == "ClusterRole":
            rules = self._cluster.get(name)
        elif kind == "Role":
            rules = self._roles.get((namespace, name))
        else:
            return (), f"unsupported role reference kind: {go_quote(kind)}"
        return ((), status.not_found(GROUP, kind.lower(), name).message) if rules is None else (rules, "")


def _index(subjects: _Subjects, binding: Mapping[str, Any], position: int, namespace: str, roles: _Roles) -> None:
    """Note what a binding gives to each of its subjects."""
    reference = binding["roleRef"]
    rules, problem = roles.rules(reference["kind"], namespace, reference["name"])
    named = f"{binding['metadata']['name']}/{namespace}" if namespace else binding["metadata"]["name"]
    opening = f"{'RoleBinding' if namespace else 'ClusterRoleBinding'} {go_quote(named)} of {reference['kind']} "
    for index, subject in enumerate(binding.get("subjects") or ()):
        key = _subject_key(subject, namespace)
        given = subjects.setdefault(key, [])
        if not given or given[-1].position != position:
            source = f"{opening}{go_quote(reference['name'])} to {_described(subject, namespace)}"
            given.append(Binding(position, index, source, rules, problem))


def _subject_key(subject: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    if subject["kind"] != "ServiceAccount":
        return subject["kind"], subject["name"]
    where = subject.get("namespace") or namespace
    # Without any namespace it names nobody; no user name is like this.
    return "User", identities.service_account_username(where, subject["name"]) if where else ""


def _described(subject: Mapping[str, Any], namespace: str) -> str:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject['kind']} {go_quote(name)}"


def _given(subjects: _Subjects, user: User) -> list[Binding]:
    """What a user was given by name and by groups, each binding once, in order."""
    found = list(subjects.get(("User", user.name), ())) if user.name else []
    for group in user.groups:
        found += subjects.get(("Group", group), ())
    if len(found) > 1:
        found.sort(key=lambda binding: (binding.position, -binding.subject))
        found = list({binding.position: binding for binding in found}.values())
    return found


def rule_allows(rule: Rule, attributes: Attributes) -> bool:
    """Does this rule allow that?"""
    verbs = rule.get("verbs") or ()
    if attributes.verb not in verbs and _ALL not in verbs:
        return False
    if not attributes.is_resource_request:
        return any(_path_matches(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
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


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in (_ALL, path) or (pattern.endswith(_ALL) and path.startswith(pattern.rstrip(_ALL)))
