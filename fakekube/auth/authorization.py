"""May this user do that? The question, the answer, and what one who may not is told.

Authorizers are asked in their order until one allows or denies; most have an opinion only where they allow. Members of
system:masters may do everything and are never looked up. The same authorizer answers requests, impersonation, the review
kinds and the authorizer in CEL expressions.

Specified by: k8s.io/apiserver/pkg/authorization (authorizer, union, authorizerfactory),
…/endpoints/filters/authorization.go and …/handlers/responsewriters/errors.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fakekube import selectors
from fakekube.auth.identities import MASTERS
from fakekube.errors import StatusError, status
from fakekube.golang.quoting import go_quote
from fakekube.registry.cluster_access import Decision
from fakekube.registry.request import RequestInfo, User
from fakekube.selectors.fields import FieldRequirement
from fakekube.selectors.labels import LabelRequirement

__all__ = [
    "ALLOWED",
    "NO_OPINION",
    "AlwaysAllow",
    "AlwaysDeny",
    "Attributes",
    "Authorizer",
    "Decision",
    "PrivilegedGroup",
    "ResolvedRules",
    "Rule",
    "RuleResolver",
    "Selectors",
    "UnionAuthorizer",
    "aggregated",
    "attributes_of",
    "forbidden",
    "sanitised",
]

ALLOWED: Final = Decision(True)
NO_OPINION: Final = Decision(False)

Rule = Mapping[str, Any]
"""A PolicyRule, as a role has it."""


class Selectors:
    """The selectors of a list, watch or deletecollection. What does not parse is not there."""

    __slots__ = ("_field_text", "_fields", "_label_text", "_labels")

    def __init__(
        self, field_text: str = "", label_text: str = "", fields: Sequence[FieldRequirement] = (),
        labels: Sequence[LabelRequirement] = (),
    ) -> None:
        self._field_text, self._label_text = field_text, label_text
        self._fields, self._labels = tuple(fields), tuple(labels)

    @property
    def fields(self) -> tuple[FieldRequirement, ...]:
        """What fields must be equal to, or not."""
        if self._field_text:
            try:
                return selectors.parse_fields(self._field_text).requirements
            except selectors.SelectorError:
                return ()
        return self._fields

    @property
    def labels(self) -> tuple[LabelRequirement, ...]:
        """What labels must meet."""
        if self._label_text:
            try:
                return selectors.parse_labels(self._label_text).requirements
            except selectors.SelectorError:
                return ()
        return self._labels


@dataclass(slots=True, frozen=True)
class Attributes:
    """What is to be done. `path` counts for requests that are not about resources, the rest for those that are."""

    user: User
    verb: str
    namespace: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""
    is_resource_request: bool = True
    version: str = ""
    selectors: Selectors | None = None


@dataclass(slots=True, frozen=True)
class ResolvedRules:
    """What an authorizer can say of a user's rules."""

    rules: Sequence[Rule] = ()
    incomplete: bool = False
    problem: str = ""
    """What went wrong."""


class Authorizer(Protocol):
    """Whoever decides."""

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""


class RuleResolver(Authorizer, Protocol):
    """An authorizer that can also list rules."""

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """The rules that apply to a user in a namespace."""


class PrivilegedGroup:
    """Members of system:masters may do everything."""

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""
        return ALLOWED if MASTERS in attributes.user.groups else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Nothing is said of it."""
        return ResolvedRules()


class AlwaysAllow:
    """Everybody may do everything."""

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""
        return ALLOWED

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Every rule."""
        resources = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return ResolvedRules([resources, {"verbs": ["*"], "nonResourceURLs": ["*"]}])


class AlwaysDeny:
    """Nobody but system:masters may do anything."""

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""
        return Decision(False, "Everything is forbidden.")

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """No rule."""
        return ResolvedRules()


class UnionAuthorizer:
    """Several authorizers, the first that has an opinion decides."""

    def __init__(self, *authorizers: RuleResolver) -> None:
        self._authorizers = authorizers

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""
        reasons, errors = [], []
        for authorizer in self._authorizers:
            decision = authorizer.authorize(attributes)
            if decision.allowed or decision.denied:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
            if decision.error:
                errors.append(decision.error)
        return Decision(False, "\n".join(reasons), error=aggregated(errors)) if reasons or errors else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """The rules of all of them together."""
        found = [authorizer.rules_for(user, namespace) for authorizer in self._authorizers]
        return ResolvedRules(
            [rule for one in found for rule in one.rules], any(one.incomplete for one in found),
            aggregated([one.problem for one in found if one.problem]),
        )


def aggregated(problems: Sequence[str]) -> str:
    """Several errors as one text."""
    texts = list(dict.fromkeys(problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


# ---------------------------------------------------------------- requests


def attributes_of(info: RequestInfo, user: User) -> Attributes:
    """The question that a request asks."""
    found = None
    if info.field_selector or info.label_selector:
        found = Selectors(info.field_selector, info.label_selector)
    return Attributes(
        user, info.verb, info.namespace, info.group, info.resource, info.subresource, info.name, info.path,
        info.is_resource_request, info.version, found,
    )


def forbidden(attributes: Attributes, reason: str = "") -> StatusError:
    """403: what may not be done, and what went wrong while looking for a rule."""
    problem = sanitised(_description(attributes))
    if reason:
        problem = f"{problem}: {reason}"
    return status.forbidden(attributes.group, attributes.resource, attributes.name, problem)


def sanitised(text: str) -> str:
    """The real server keeps its texts from looking like HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _description(attributes: Attributes) -> str:
    who = f"User {go_quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource_request:
        return f"{who} path {go_quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f"{who} resource {go_quote(resource)} in API group {go_quote(attributes.group)}"
    if attributes.namespace:
        return f"{what} in the namespace {go_quote(attributes.namespace)}"
    return f"{what} at the cluster scope"
