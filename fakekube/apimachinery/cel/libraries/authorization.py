"""The authorizer library: authorization checks of a user or a service account.

Methods build a check (`authorizer.group('').resource('pods').namespace('n').check('get')`); `check` performs it. The
`Authorizer` has the user and the function that authorizes.

Specified by: k8s.io/apiserver/pkg/cel/library/authz.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.values import Opaque
from fakekube.apimachinery.schema.dns import dns_label, dns_subdomain
from fakekube.apimachinery.selectors import SelectorError, parse_fields, parse_labels


@dataclass(frozen=True, slots=True)
class Decision(Opaque):
    """The decision of the authorizer."""

    type_name = "kubernetes.authorization.Decision"
    allowed: bool
    reason: str = ""
    error: str = ""
    """The error of the authorizer; empty if there was none."""


#: (spec of a SubjectAccessReview) → decision.
Ask = Callable[[Mapping[str, Any]], Decision]


@dataclass(frozen=True, slots=True)
class Authorizer(Opaque):
    """The user of the checks, and the function that authorizes."""

    type_name = "kubernetes.authorization.Authorizer"
    subject: Mapping[str, Any] = field(hash=False)
    """The user as in the spec of a SubjectAccessReview: user, uid, groups, extra."""
    ask: Ask = field(compare=False)
    subject_of: Callable[[str, str], Mapping[str, Any]] = field(compare=False)
    """Returns the subject for the namespace and the name of a service account."""


@dataclass(frozen=True, slots=True)
class PathCheck(Opaque):
    """A check of a non-resource path."""

    type_name = "kubernetes.authorization.PathCheck"
    authorizer: Authorizer
    path: str


@dataclass(frozen=True, slots=True)
class GroupCheck(Opaque):
    """A check of the resources of an API group."""

    type_name = "kubernetes.authorization.GroupCheck"
    authorizer: Authorizer
    group: str


class _Target(NamedTuple):
    """The resource of a resource check."""

    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fieldSelector: str = ""
    labelSelector: str = ""


@dataclass(frozen=True, slots=True)
class ResourceCheck(Opaque):
    """A check of a resource."""

    type_name = "kubernetes.authorization.ResourceCheck"
    authorizer: Authorizer
    group: str
    target: _Target

    @classmethod
    def for_resource(
        cls, authorizer: Authorizer, group: str, resource: str, *, subresource: str, namespace: str, name: str
    ) -> ResourceCheck:
        """Returns the check of a request's own resource."""
        return cls(authorizer, group, _Target(resource, subresource, namespace, name))


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer, path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if dns_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if dns_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    return replace(authorizer, subject=authorizer.subject_of(namespace, name))


def _resource(group: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(group.authorizer, group.group, _Target(resource))


def _set_attribute(name: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    """Returns the check with another attribute."""
    return lambda check, value: replace(check, target=check.target._replace(**{name: value}))


def _check_path(check: PathCheck, verb: str) -> Decision:
    attributes = {"path": check.path, "verb": verb}
    return check.authorizer.ask({**check.authorizer.subject, "nonResourceAttributes": attributes})


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    target = check.target._asdict()
    for name, parse in _SELECTORS.items():
        text = target.pop(name)
        if text and _reads(parse, text):
            target[name] = {"rawSelector": text}
    attributes = {"group": check.group, "version": "*", "verb": verb, **{k: v for k, v in target.items() if v}}
    return check.authorizer.ask({**check.authorizer.subject, "resourceAttributes": attributes})


_SELECTORS: Final[Mapping[str, Callable[[str], object]]] = {"fieldSelector": parse_fields, "labelSelector": parse_labels}


def _reads(parse: Callable[[str], object], text: str) -> bool:
    """Returns the check with a selector; an invalid selector is ignored, so that the check is about all objects."""
    try:
        parse(text)
    except SelectorError:
        return False
    return True


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("path", True, Authorizer, str): _path,
    ("group", True, Authorizer, str): GroupCheck,
    ("serviceAccount", True, Authorizer, str, str): _service_account,
    ("resource", True, GroupCheck, str): _resource,
    **{
        (name, True, ResourceCheck, str): _set_attribute(name)
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    },
    ("check", True, PathCheck, str): _check_path,
    ("check", True, ResourceCheck, str): _check_resource,
    ("allowed", True, Decision): lambda decision: decision.allowed,
    ("reason", True, Decision): lambda decision: decision.reason,
    ("errored", True, Decision): lambda decision: bool(decision.error),
    ("error", True, Decision): lambda decision: decision.error,
}
