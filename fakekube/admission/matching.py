"""Which requests a webhook or a policy is about: rules, matchPolicy, and the two selectors.

`Criteria` is what a configuration says, compiled once; `match` tells in which version of the resource a request is to
be seen, or that it is not meant. With matchPolicy Equivalent a request also matches by another version of its resource
(or by the other group of events), and is then seen in that version.

Invariant: an error in a selector counts only for requests that everything else matches.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go (ShouldCallHook),
plugin/webhook/predicates/{rules,namespace,object}, plugin/policy/matching/matching.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fakekube.admission.plugin import Attributes, Operation
from fakekube.errors import StatusError, status
from fakekube.registry.resource import GVK, Resource
from fakekube.selectors import LabelSelector, SelectorError, from_label_selector

__all__ = ["Criteria", "Match", "is_exempt", "namespace_of"]

#: What no webhook and no policy may see: their own configuration.
_EXEMPT_KINDS = frozenset({
    "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
})
_EXEMPT_GROUP = "admissionregistration.k8s.io"
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Match:
    """In which version a request is seen."""

    resource: Resource
    """That of the request, or an equivalent one."""
    kind: GVK
    """Of the body in that version."""


def is_exempt(attributes: Attributes) -> bool:
    """Is it about the configuration of admission itself?"""
    resource = attributes.resource
    return resource.group == _EXEMPT_GROUP and resource.kind in _EXEMPT_KINDS


def namespace_of(attributes: Attributes) -> str:
    """The namespace of a request: of one about a namespace, its own name."""
    if _is_namespace(attributes.resource):
        return attributes.name
    return attributes.namespace


def _is_namespace(resource: Resource) -> bool:
    return resource.plural == "namespaces" and not resource.group


# ---------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class _Rule:
    """A RuleWithOperations, with the names of a NamedRuleWithOperations."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Resource and subresource ("" for the resource itself)."""
    scope: str
    names: frozenset[str]
    """Of the objects; without any, all."""

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> _Rule:
        resources = (text.partition("/") for text in rule.get("resources") or ())
        return cls(
            frozenset(rule.get("operations") or ()), frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()), tuple((plural, subresource) for plural, _, subresource in resources),
            rule.get("scope") or _ANY, frozenset(rule.get("resourceNames") or ()),
        )

    def matches(self, attributes: Attributes, resource: Resource) -> bool:
        """Does it apply to the request, if that is one for `resource`?"""
        return (
            _holds(self.operations, attributes.operation)
            and _holds(self.groups, resource.group)
            and _holds(self.versions, resource.version)
            and self._names_resource(resource.plural, attributes.subresource)
            and self._is_in_scope(attributes, resource)
            and (not self.names or attributes.name in self.names)
        )

    def _names_resource(self, plural: str, subresource: str) -> bool:
        return any(p in (_ANY, plural) and s in (_ANY, subresource) for p, s in self.resources)

    def _is_in_scope(self, attributes: Attributes, resource: Resource) -> bool:
        """Namespaces count as resources of the cluster."""
        if self.scope == _ANY:
            return True
        namespaced = bool(attributes.namespace) and not _is_namespace(resource)
        return self.scope == ("Namespaced" if namespaced else "Cluster")


def _holds(values: frozenset[str], value: str) -> bool:
    return value in values or _ANY in values


def _rules(rules: Iterable[Mapping[str, Any]] | None) -> tuple[_Rule, ...]:
    return tuple(map(_Rule.of, rules or ()))


# ---------------------------------------------------------------- selectors


class _Selector:
    """A label selector that may be wrong."""

    def __init__(self, selector: Mapping[str, Any] | None) -> None:
        self._selector, self._problem = LabelSelector(), ""
        try:
            self._selector = from_label_selector({} if selector is None else selector)
        except SelectorError as error:
            self._problem = str(error)

    @property
    def empty(self) -> bool:
        """Does it match everything? One that is wrong does not."""
        return not self._problem and self._selector.empty

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Raises StatusError 500 if the selector is wrong."""
        if self._problem:
            raise status.internal(self._problem)
        return self._selector.matches(labels)


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str] | None:
    found: Mapping[str, str] | None = (obj.get("metadata") or {}).get("labels")
    return found


def _namespace_labels(attributes: Attributes) -> Mapping[str, str] | None:
    """Those of the request's namespace, of one that is being written those that it will have. Raises StatusError 404."""
    written = attributes.operation in (Operation.CREATE, Operation.UPDATE) and not attributes.subresource
    if written and _is_namespace(attributes.resource) and attributes.object is not None:
        return _labels(attributes.object)
    name = namespace_of(attributes)
    namespace = attributes.context.services.get("", "namespaces", "", name)
    if namespace is None:
        raise status.not_found("", "namespaces", name)
    return _labels(namespace)


# ---------------------------------------------------------------- all together


class Criteria:
    """What decides whether a webhook or a policy is asked. Compiled once, for many requests."""

    def __init__(
        self, *, rules: Sequence[Mapping[str, Any]] | None, match_policy: str | None,
        namespace_selector: Mapping[str, Any] | None, object_selector: Mapping[str, Any] | None,
        excluded: Sequence[Mapping[str, Any]] | None = None, everything_without_rules: bool = False,
    ) -> None:
        self._rules, self._excluded = _rules(rules), _rules(excluded)
        self._equivalent = match_policy == "Equivalent"
        self._namespace, self._object = _Selector(namespace_selector), _Selector(object_selector)
        self._everything = everything_without_rules and not self._rules

    @classmethod
    def of_webhook(cls, hook: Mapping[str, Any]) -> Criteria:
        """What a webhook is asked about."""
        return cls(
            rules=hook.get("rules"), match_policy=hook.get("matchPolicy"), namespace_selector=hook.get("namespaceSelector"),
            object_selector=hook.get("objectSelector"),
        )

    @classmethod
    def of_match_resources(cls, match: Mapping[str, Any] | None) -> Criteria:
        """What MatchResources of a policy or of a binding mean; without rules they mean everything."""
        match = match or {}
        return cls(
            rules=match.get("resourceRules"), match_policy=match.get("matchPolicy"),
            namespace_selector=match.get("namespaceSelector"), object_selector=match.get("objectSelector"),
            excluded=match.get("excludeResourceRules"), everything_without_rules=True,
        )

    def match(self, attributes: Attributes) -> Match | None:
        """In which version the request is meant, or None if it is not.

        Raises StatusError: 404 if its namespace is not there, 500 for a selector that cannot be understood.
        """
        errors: list[StatusError] = []
        if not self._selects(lambda: self._matches_namespace(attributes), errors):
            return None
        if not self._selects(lambda: self._matches_object(attributes), errors):
            return None
        if self._excluded and self._resource(self._excluded, attributes) is not None:
            return None
        resource = attributes.resource if self._everything else self._resource(self._rules, attributes)
        if resource is None:
            return None
        if errors:
            raise errors[0]
        return Match(resource, _kind(resource, attributes.subresource))

    @staticmethod
    def _selects(decide: Callable[[], bool], errors: list[StatusError]) -> bool:
        """An error is kept for later, when it is known that the rest matches."""
        try:
            return decide()
        except StatusError as error:
            errors.append(error)
            return True

    def _matches_namespace(self, attributes: Attributes) -> bool:
        """Requests outside of namespaces always pass."""
        if self._namespace.empty or (not attributes.namespace and not _is_namespace(attributes.resource)):
            return True
        return self._namespace.matches(_namespace_labels(attributes))

    def _matches_object(self, attributes: Attributes) -> bool:
        """By the new object or by the old one; what has no metadata has no labels to select."""
        if self._object.empty:
            return True
        candidates = [attributes.old] if attributes.operation is Operation.CONNECT else [attributes.object, attributes.old]
        return any(self._object.matches(_labels(obj)) for obj in candidates if obj is not None)

    def _resource(self, rules: Sequence[_Rule], attributes: Attributes) -> Resource | None:
        """The version by which one of the rules matches: that of the request first, then others, earlier rules first."""
        resource = attributes.resource
        if any(rule.matches(attributes, resource) for rule in rules):
            return resource
        if not self._equivalent or not rules:
            return None
        others = [o for o in attributes.context.services.equivalents(resource, attributes.subresource) if o is not resource]
        return next((other for rule in rules for other in others if rule.matches(attributes, other)), None)


def _kind(resource: Resource, subresource: str) -> GVK:
    return resource.subresources[subresource].gvk if subresource else resource.gvk
