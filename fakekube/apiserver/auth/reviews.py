"""Converts the specs and statuses of the review kinds from and to users, attributes and rules.

The kinds themselves (decoding, validation, the requesting user) are resources like others; these functions are the
part that depends on users and rules. All take and return plain JSON data in the schema of the kinds.

Specified by: k8s.io/kubernetes/pkg/registry/authentication/tokenreview, …/authorization/subjectaccessreview,
…/selfsubjectrulesreview and …/authorization/util.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apimachinery.selectors.fields import FieldRequirement
from fakekube.apimachinery.selectors.labels import LabelRequirement
from fakekube.apiserver.auth.authentication import Authenticator
from fakekube.apiserver.auth.authorization import Attributes, Rule, RuleResolver, Selectors
from fakekube.apiserver.auth.identities import BadCredentialsError
from fakekube.apiserver.endpoints.request import User

_RESOURCE_RULE = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_RULE = ("verbs", "nonResourceURLs")


def user_info(user: User) -> dict[str, Any]:
    """Returns a user as an authentication.k8s.io UserInfo."""
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in sorted(user.extra.items())},
    }
    return {key: value for key, value in info.items() if value}


def token_review_status(authenticator: Authenticator, token: str, audiences: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the status of a TokenReview: the token is authenticated as the Authorization header of a request."""
    try:
        found = authenticator.authenticate_bearer(token, audiences)
    except BadCredentialsError as problem:
        return {"user": {}, "error": str(problem)}
    if found is None:
        return {"user": {}}
    return {"authenticated": True, "user": user_info(found.user), "audiences": list(found.audiences)}


def attributes_of_spec(spec: Mapping[str, Any]) -> Attributes:
    """Returns the attributes of the spec of a SubjectAccessReview."""
    extra = spec.get("extra") or {}
    user = User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec.get("nonResourceAttributes") or {}
        return Attributes(user, path.get("verb", ""), path=path.get("path", ""), is_resource_request=False)
    return Attributes(
        user,
        resource.get("verb", ""),
        resource.get("namespace", ""),
        resource.get("group", ""),
        resource.get("resource", ""),
        resource.get("subresource", ""),
        resource.get("name", ""),
        version=resource.get("version", ""),
        selectors=_selectors_of_spec(resource),
    )


def _selectors_of_spec(resource: Mapping[str, Any]) -> Selectors | None:
    """Returns the selectors of resourceAttributes, without invalid requirements."""
    fields, labels = resource.get("fieldSelector") or {}, resource.get("labelSelector") or {}
    if not fields and not labels:
        return None
    return Selectors(
        fields.get("rawSelector", ""),
        labels.get("rawSelector", ""),
        list(filter(None, map(_field_requirement, fields.get("requirements") or ()))),
        list(filter(None, map(_label_requirement, labels.get("requirements") or ()))),
    )


def _field_requirement(requirement: Mapping[str, Any]) -> FieldRequirement | None:
    operators: Mapping[str, Literal["=", "!="]] = {"In": "=", "NotIn": "!="}
    operator, values = operators.get(requirement.get("operator", "")), list(requirement.get("values") or ())
    if operator is None or len(values) != 1:
        return None
    return FieldRequirement(requirement.get("key", ""), operator, values[0])


def _label_requirement(requirement: Mapping[str, Any]) -> LabelRequirement | None:
    try:
        requirements = from_label_selector({"matchExpressions": [requirement]}).requirements
    except SelectorError:
        return None
    for found in requirements or ():
        return found
    return None


def rules_review_status(authorizer: RuleResolver, user: User, namespace: str) -> dict[str, Any]:
    """Returns the status of a SelfSubjectRulesReview of a user."""
    found = authorizer.rules_for(user, namespace)
    status: dict[str, Any] = {
        "resourceRules": [_part(rule, _RESOURCE_RULE) for rule in found.rules if rule.get("resources")],
        "nonResourceRules": [_part(rule, _PATH_RULE) for rule in found.rules if rule.get("nonResourceURLs")],
        "incomplete": found.incomplete,
    }
    if found.problem:
        status["evaluationError"] = found.problem
    return status


def _part(rule: Rule, members: Sequence[str]) -> dict[str, Any]:
    """Returns these fields of a rule; verbs are included even if empty."""
    return {member: list(rule.get(member) or ()) for member in members if rule.get(member) or member == "verbs"}
