"""Matches writes with webhooks and policies (rules, selectors), and converts their objects to the version they expect.

`Criteria` are the compiled match criteria of a configuration; `match` returns the version of the resource in which the webhook
or policy receives the object, or None. With matchPolicy Equivalent a request also matches by another version of its resource
(or by the other group of events).

The attributes of a write contain built-in objects in storage form, and custom resources in the version of the request or of
the storage. `VersionedAttributes` provides both objects with kind and apiVersion in one version, in the form of responses. A
mutating plugin sets `object` to a new tree and calls `write_back` at the end.

Invariant: an error in a selector is raised only for requests that match all other criteria.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go (ShouldCallHook),
plugin/webhook/predicates/{rules,namespace,object}, plugin/policy/matching/matching.go, pkg/admission/conversion.go
(VersionedAttributes, ConvertToGVK).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.data import ADMISSION_REGISTRATION
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.selectors import LabelSelector, SelectorError, from_label_selector
from fakekube.apis.rest.resource import GVK, Resource
from fakekube.apis.validation.webhooks import is_excluded
from fakekube.apiserver.admission.chain import Attributes, Operation

if TYPE_CHECKING:
    from fakekube.base.objects import Object


_UNSET: Any = object()


class VersionedAttributes:
    """The attributes of a write, with its objects in one version.

    Args:
        attributes: the attributes of the write.
        resource: the version of the resource, or an equivalent resource; None: that of the request.
    """

    __slots__ = ("_object", "_old", "attributes", "dirty", "kind", "resource", "views")

    def __init__(self, attributes: Attributes, resource: Resource | None = None) -> None:
        self.attributes = attributes
        self.resource = resource or attributes.resource
        self.kind: GVK = _version_kind_of(self.resource, attributes.subresource)
        self.dirty = False
        self._object: Object | None = _UNSET
        self._old: Object | None = _UNSET
        self.views: dict[str, Any] = {}
        """A cache for readers of the objects, by their own names; cleared when the object changes."""

    @property
    def object(self) -> Object | None:
        """The new object. Callers must not mutate it, but set another one."""
        if self._object is _UNSET:
            self._object = self._convert(self.attributes.object, stored=False)
        return self._object

    @object.setter
    def object(self, new: Object) -> None:
        self._object = new
        self.dirty = True
        self.views.clear()

    @property
    def old(self) -> Object | None:
        """The stored object. Callers must not mutate it."""
        if self._old is _UNSET:
            self._old = self._convert(self.attributes.old, stored=True)
        return self._old

    def write_back(self) -> None:
        """Converts a changed object back to the form of the attributes and sets it there."""
        target = self.attributes.object
        if not self.dirty or target is None or self._object is None:
            return
        found: Mapping[str, Any] = self._object
        if self.resource.custom and self.kind == self.resource.gvk:
            convert = self.attributes.resource.convert
            wanted = self.attributes.resource.api_version
            if found["apiVersion"] != wanted and convert is not None:
                found = convert(dict(found), wanted)
        else:
            found = {name: item for name, item in found.items() if name not in ("kind", "apiVersion")}
            if self.kind == self.resource.gvk and self.resource.to_storage is not None:
                found = self.resource.to_storage(found)
        target.clear()
        target.update(found)
        self.dirty = False

    def _convert(self, obj: Object | None, *, stored: bool) -> Object | None:
        if obj is None:
            return None
        resource, kind = self.resource, self.kind
        if kind != resource.gvk:  # the body of a subresource, of which there is one version
            type_ = resource.subresources[self.attributes.subresource].type
            return _with_kind(kind, printing.normalise(type_, obj, stored=stored))
        if resource.custom:
            if obj.get("apiVersion") == resource.api_version or resource.convert is None:
                return obj
            return resource.convert(obj, resource.api_version)
        if resource.from_storage is not None:
            return _with_kind(kind, printing.normalise(resource.type, resource.from_storage(obj), stored=stored))
        return _with_kind(kind, obj if stored else printing.normalise(resource.type, obj, stored=False))


def _version_kind_of(resource: Resource, subresource: str) -> GVK:
    below = resource.subresources.get(subresource)
    return below.gvk if below is not None else resource.gvk


def _with_kind(kind: GVK, obj: Object) -> Object:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}


#: Resources that webhooks and policies never match: their own configuration.
_EXEMPT_KINDS = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Match:
    """The version of the resource that matches."""

    resource: Resource
    """The resource of the request, or an equivalent one."""
    kind: GVK
    """The kind of the object in that version."""


def is_exempt(attributes: Attributes) -> bool:
    """Reports whether no webhook sees the request: one for the configuration of admission itself, and, with a gate, a review."""
    resource = attributes.resource
    if resource.group == ADMISSION_REGISTRATION:
        return resource.kind in _EXEMPT_KINDS
    return is_excluded(resource.group, resource.plural)


def namespace_of(attributes: Attributes) -> str:
    """Returns the namespace of a request; for a Namespace, its own name."""
    if _is_namespace(attributes.resource):
        return attributes.name
    return attributes.namespace


def _is_namespace(resource: Resource) -> bool:
    return resource.plural == "namespaces" and not resource.group


# --- Rules ------------------------------------------------------------------------------------------------------------


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
    """The names of the matching objects; empty matches all."""

    @classmethod
    def parse(cls, rule: Mapping[str, Any]) -> _Rule:
        resources = (text.partition("/") for text in rule.get("resources") or ())
        return cls(
            frozenset(rule.get("operations") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()),
            tuple((plural, subresource) for plural, _, subresource in resources),
            rule.get("scope") or _ANY,
            frozenset(rule.get("resourceNames") or ()),
        )

    def matches(self, attributes: Attributes, resource: Resource) -> bool:
        """Reports whether the rule matches the request, as a request for `resource`."""
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
        """Reports whether the scope matches; namespaces are cluster-scoped."""
        if self.scope == _ANY:
            return True
        namespaced = bool(attributes.namespace) and not _is_namespace(resource)
        return self.scope == ("Namespaced" if namespaced else "Cluster")


def _holds(values: frozenset[str], value: str) -> bool:
    return value in values or _ANY in values


def _rules(rules: Iterable[Mapping[str, Any]] | None) -> tuple[_Rule, ...]:
    return tuple(map(_Rule.parse, rules or ()))


# --- Selectors --------------------------------------------------------------------------------------------------------


class _Selector:
    """A label selector, possibly invalid."""

    def __init__(self, selector: Mapping[str, Any] | None) -> None:
        self._selector, self._problem = LabelSelector(), ""
        try:
            self._selector = from_label_selector({} if selector is None else selector)
        except SelectorError as error:
            self._problem = str(error)

    @property
    def empty(self) -> bool:
        """Whether the selector is empty and valid."""
        return not self._problem and self._selector.empty

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Raises StatusError 500 if the selector is invalid."""
        if self._problem:
            raise status.internal(self._problem)
        return self._selector.matches(labels)


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str] | None:
    found: Mapping[str, str] | None = (obj.get("metadata") or {}).get("labels")
    return found


def _namespace_labels(attributes: Attributes) -> Mapping[str, str] | None:
    """Returns the labels of the request's namespace; for a written Namespace, its new labels. Raises StatusError 404."""
    written = attributes.operation in (Operation.CREATE, Operation.UPDATE) and not attributes.subresource
    if written and _is_namespace(attributes.resource) and attributes.object is not None:
        return _labels(attributes.object)
    name = namespace_of(attributes)
    namespace = attributes.context.services.get("", "namespaces", "", name)
    if namespace is None:
        raise status.not_found("", "namespaces", name)
    return _labels(namespace)


# --- Criteria ---------------------------------------------------------------------------------------------------------


class Criteria:
    """The compiled match criteria of a webhook or policy."""

    def __init__(
        self,
        *,
        rules: Sequence[Mapping[str, Any]] | None,
        match_policy: str | None,
        namespace_selector: Mapping[str, Any] | None,
        object_selector: Mapping[str, Any] | None,
        excluded: Sequence[Mapping[str, Any]] | None = None,
        everything_without_rules: bool = False,
    ) -> None:
        self._rules, self._excluded = _rules(rules), _rules(excluded)
        self._equivalent = match_policy == "Equivalent"
        self._namespace, self._object = _Selector(namespace_selector), _Selector(object_selector)
        self._everything = everything_without_rules and not self._rules

    @classmethod
    def of_webhook(cls, hook: Mapping[str, Any]) -> Criteria:
        """Returns the criteria of a webhook."""
        return cls(
            rules=hook.get("rules"),
            match_policy=hook.get("matchPolicy"),
            namespace_selector=hook.get("namespaceSelector"),
            object_selector=hook.get("objectSelector"),
        )

    @classmethod
    def of_match_resources(cls, match: Mapping[str, Any] | None) -> Criteria:
        """Returns the criteria of MatchResources of a policy or binding; without rules they match everything."""
        match = match or {}
        return cls(
            rules=match.get("resourceRules"),
            match_policy=match.get("matchPolicy"),
            namespace_selector=match.get("namespaceSelector"),
            object_selector=match.get("objectSelector"),
            excluded=match.get("excludeResourceRules"),
            everything_without_rules=True,
        )

    def match(self, attributes: Attributes) -> Match | None:
        """Returns the version that matches the request, or None.

        Raises StatusError: 404 if its namespace does not exist, 500 for an invalid selector.
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
        name = attributes.subresource
        return Match(resource, resource.subresources[name].gvk if name else resource.gvk)

    @staticmethod
    def _selects(decide: Callable[[], bool], errors: list[StatusError]) -> bool:
        """Evaluates the selectors; errors are raised later, if all other criteria match."""
        try:
            return decide()
        except StatusError as error:
            errors.append(error)
            return True

    def _matches_namespace(self, attributes: Attributes) -> bool:
        """Matches the namespaceSelector; cluster-scoped requests always match."""
        if self._namespace.empty or (not attributes.namespace and not _is_namespace(attributes.resource)):
            return True
        return self._namespace.matches(_namespace_labels(attributes))

    def _matches_object(self, attributes: Attributes) -> bool:
        """Matches the objectSelector with the new or the old object; objects without metadata have no labels."""
        if self._object.empty:
            return True
        candidates = [attributes.old] if attributes.operation is Operation.CONNECT else [attributes.object, attributes.old]
        return any(self._object.matches(_labels(obj)) for obj in candidates if obj is not None)

    def _resource(self, rules: Sequence[_Rule], attributes: Attributes) -> Resource | None:
        """Returns the version that a rule matches: that of the request first, then equivalent ones, in the order of the rules."""
        resource = attributes.resource
        if any(rule.matches(attributes, resource) for rule in rules):
            return resource
        if not self._equivalent or not rules:
            return None
        others = [o for o in attributes.context.services.equivalents(resource, attributes.subresource) if o is not resource]
        return next((other for rule in rules for other in others if rule.matches(attributes, other)), None)
