"""Defines authorizers, the attributes and decisions of authorization, and the response to forbidden requests.

Authorizers are asked in order until one allows or denies; most either allow or have no opinion. Members of
system:masters are always allowed. Requests, impersonation, the review kinds and the authorizer of CEL expressions use
the same authorizer.

Specified by: k8s.io/apiserver/pkg/authorization (authorizer, union, authorizerfactory),
…/endpoints/filters/authorization.go and …/handlers/responsewriters/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fakekube.apimachinery import features, selectors
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.selectors.fields import FieldRequirement
from fakekube.apimachinery.selectors.labels import LabelRequirement
from fakekube.apis.rest.cluster_access import Decision
from fakekube.apis.well_known import SYSTEM_PRIVILEGED_GROUP
from fakekube.apiserver.endpoints.request import RequestInfo, User
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import aggregate_errors
from fakekube.net.streams import Source, subscribe_weakly

_NAMES_AUTHORIZERS: Final = 37
"""The first minor whose reasons of refusals name the authorizer."""

ALLOWED: Final = Decision(True)
NO_OPINION: Final = Decision(False)

Rule = Mapping[str, Any]
"""A PolicyRule of a role."""


def path_matches(pattern: str, path: str) -> bool:
    """Reports whether a path that is no resource matches a pattern, which may end in `*` (NonResourceURLMatches, pathMatches)."""
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class UndecidedError(Exception):
    """An authorizer failed, and no other has allowed the request; has the reason."""


class Selectors:
    """The selectors of a list, watch or deletecollection. Requirements that do not parse are omitted."""

    __slots__ = ("_field_text", "_fields", "_label_text", "_labels")

    def __init__(
        self,
        field_text: str = "",
        label_text: str = "",
        fields: Sequence[FieldRequirement] = (),
        labels: Sequence[LabelRequirement] = (),
    ) -> None:
        self._field_text, self._label_text = field_text, label_text
        self._fields, self._labels = tuple(fields), tuple(labels)

    @property
    def fields(self) -> tuple[FieldRequirement, ...]:
        """The requirements of the field selector."""
        if self._field_text:
            try:
                return selectors.parse_fields(self._field_text).requirements
            except selectors.SelectorError:
                return ()
        return self._fields

    @property
    def labels(self) -> tuple[LabelRequirement, ...]:
        """The requirements of the label selector."""
        if self._label_text:
            try:
                return selectors.parse_labels(self._label_text).requirements
            except selectors.SelectorError:
                return ()
        return self._labels


@dataclass(slots=True, frozen=True)
class Attributes:
    """The attributes of a request. `path` is for non-resource requests, the other fields are for resource requests."""

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
    """The rules that an authorizer reports for a user."""

    rules: Sequence[Rule] = ()
    incomplete: bool = False
    problem: str = ""
    """The errors of the evaluation."""


class Authorizer(Protocol):
    """Authorizes requests."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""


class RuleResolver(Authorizer, Protocol):
    """An authorizer that can also list the rules of a user."""

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Returns the rules that apply to a user in a namespace."""


class PrivilegedGroup:
    """Allows every request of members of system:masters."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        return ALLOWED if SYSTEM_PRIVILEGED_GROUP in attributes.user.groups else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Returns no rules."""
        return ResolvedRules()


class AlwaysAllow:
    """Allows every request."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        return ALLOWED

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Returns rules that allow everything."""
        resources = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return ResolvedRules([resources, {"verbs": ["*"], "nonResourceURLs": ["*"]}])


class AlwaysDeny:
    """Denies every request (system:masters are allowed before)."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        return Decision(False, "Everything is forbidden.")

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Returns no rules."""
        return ResolvedRules()


class UnionAuthorizer:
    """Asks several authorizers in order; the first with an opinion decides.

    Args:
        authorizers: by their names, which stand before their reasons from 1.37 on.
    """

    def __init__(self, authorizers: Mapping[str, RuleResolver]) -> None:
        self._authorizers = authorizers

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        reasons, errors = [], []
        named = features.current().minor >= _NAMES_AUTHORIZERS
        for name, authorizer in self._authorizers.items():
            decision = authorizer.authorize(attributes)
            if decision.allowed or decision.denied:
                return decision
            if decision.reason:
                reasons.append(f"{name}: {decision.reason}" if named else decision.reason)
            if decision.error:
                errors.append(decision.error)
        return Decision(False, "\n".join(reasons), error=aggregate_errors(errors)) if reasons or errors else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Returns the rules of all authorizers."""
        found = [authorizer.rules_for(user, namespace) for authorizer in self._authorizers.values()]
        return ResolvedRules(
            [rule for one in found for rule in one.rules],
            any(one.incomplete for one in found),
            aggregate_errors([one.problem for one in found if one.problem]),
        )


# --- Requests ---------------------------------------------------------------------------------------------------------


def attributes_of(info: RequestInfo, user: User) -> Attributes:
    """Returns the authorization attributes of a request."""
    found = None
    if info.field_selector or info.label_selector:
        found = Selectors(info.field_selector, info.label_selector)
    return Attributes(
        user,
        info.verb,
        info.namespace,
        info.group,
        info.resource,
        info.subresource,
        info.name,
        info.path,
        info.is_resource_request,
        info.version,
        found,
    )


def forbidden(attributes: Attributes, reason: str = "") -> StatusError:
    """Returns the 403 for a request, with the reason and the errors of the authorizers."""
    problem = status.sanitise(_description(attributes))
    if reason:
        problem = f"{problem}: {reason}"
    return status.forbidden(attributes.group, attributes.resource, attributes.name, problem)


def _description(attributes: Attributes) -> str:
    user, verb = attributes.user.name, attributes.verb
    if not attributes.is_resource_request:
        return f"User {go_quote(user)} cannot {verb} path {go_quote(attributes.path)}"
    return status.describe_refusal(
        user, verb, attributes.resource, attributes.subresource, group=attributes.group, namespace=attributes.namespace
    )


class Lister(Protocol):
    """Reads objects of a cluster; `apis.rest.cluster_access.ClusterAccess` implements it."""

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        """Returns all stored objects of a resource, ordered by name."""


class Observed:
    """Observed resources of a cluster.

    Args:
        lister: lists the resources.
        sources: the buckets of the resources, which notify about changes.
    """

    def __init__(self, lister: Lister, sources: Sequence[Source]) -> None:
        self._lister = lister
        self.version: object = object()
        """Another object after every change. Read it before `list`, never after."""
        subscribe_weakly(self, Observed._begin_version, sources)

    def list(self, group: str, plural: str) -> Iterator[dict[str, Any]]:
        """Returns all objects of one of the resources."""
        return self._lister.list(group, plural)

    def _begin_version(self) -> None:
        # Writers of different buckets may run this at once: of two that count, one can write a number that was there before.
        self.version = object()
