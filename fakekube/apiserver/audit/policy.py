"""Audit policies: the first rule that matches a request determines the level of its events.

Specified by: k8s.io/apiserver/pkg/audit/policy (checker.go, reader.go) and pkg/apis/audit/validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, not_supported, required
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import RESOURCES_OR_URLS
from fakekube.apiserver.auth.authentication_configuration import Section, load_configuration, refuse
from fakekube.apiserver.auth.authorization import Attributes, path_matches
from fakekube.apiserver.auth.options import OptionError

STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
_FLAG: Final = "audit-policy-file"
_ALL: Final = "*"


class Level(IntEnum):
    """How much of a request an event contains."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


#: The names of levels, in their order.
LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")


@dataclass(slots=True, frozen=True)
class RequestAuditConfig:
    """The result of the policy for one request."""

    level: Level
    omit_stages: frozenset[str]
    omit_managed_fields: bool


@dataclass(slots=True, frozen=True)
class GroupResources:
    """Resources of one API group ("*" for all groups); if `resources` is empty, all resources of the group."""

    group: str
    resources: Sequence[str] = ()
    names: Sequence[str] = ()

    def matches(self, attributes: Attributes) -> bool:
        """Reports whether a request is for one of these resources."""
        if self.group not in (attributes.group, _ALL):
            return False
        if not self.resources:
            return True
        if self.names and attributes.name not in self.names:
            return False
        resource, subresource = attributes.resource, attributes.subresource
        wanted = {_ALL, f"{resource}/{subresource}" if subresource else resource, f"{resource}/{_ALL}"}
        if subresource:
            wanted.add(f"{_ALL}/{subresource}")
        return not wanted.isdisjoint(self.resources)


@dataclass(slots=True, frozen=True)
class PolicyRule:
    """A rule of a policy; empty fields match all requests."""

    config: RequestAuditConfig
    users: Sequence[str] = ()
    groups: Sequence[str] = ()
    verbs: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    resources: Sequence[GroupResources] = ()
    paths: Sequence[str] = ()

    def matches(self, attributes: Attributes) -> bool:
        """Reports whether the rule applies to a request."""
        user = attributes.user
        if self.users and user.name not in self.users:
            return False
        if self.groups and not any(group in self.groups for group in user.groups):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            if not attributes.is_resource_request or (self.namespaces and attributes.namespace not in self.namespaces):
                return False
            return not self.resources or any(one.matches(attributes) for one in self.resources)
        if self.paths:
            return not attributes.is_resource_request and any(path_matches(one, attributes.path) for one in self.paths)
        return True


@dataclass(slots=True, frozen=True)
class Policy:
    """The rules in their order, and the result for requests that match none."""

    rules: Sequence[PolicyRule]
    default: RequestAuditConfig

    def evaluate(self, attributes: Attributes) -> RequestAuditConfig:
        """Returns the result of the first rule that matches, or the default."""
        return next((rule.config for rule in self.rules if rule.matches(attributes)), self.default)


# --- The file ---------------------------------------------------------------------------------------------------------


def read_policy(path: str) -> Policy:
    """Reads the Policy in a file. Raises OptionError."""
    section = load_configuration(path, _FLAG, "Policy", ("v1",), group="audit.k8s.io")
    section.ignore("metadata")
    errors: list[FieldError] = []
    omit_stages = _stages(section, errors)
    omit_managed_fields = section.flag("omitManagedFields")
    rules = [_rule(rule, omit_stages, omit_managed_fields, errors) for rule in section.sections("rules")]
    section.require_no_other_fields()
    refuse(_FLAG, errors)
    if not rules:
        raise OptionError(f"--{_FLAG}: loading audit policy file {path}: no policy rules")
    return Policy(rules, RequestAuditConfig(Level.NONE, omit_stages, omit_managed_fields))


def _rule(rule: Section, omit_stages: frozenset[str], omit_managed_fields: bool, errors: list[FieldError]) -> PolicyRule:
    level = rule.text("level")
    if level not in LEVELS:
        errors.append(not_supported(rule.path_of("level"), level, LEVELS) if level else required(rule.path_of("level")))
        level = LEVELS[0]
    omits = rule.flag("omitManagedFields") if rule.has("omitManagedFields") else omit_managed_fields
    config = RequestAuditConfig(Level(LEVELS.index(level)), omit_stages | _stages(rule, errors), omits)
    made = PolicyRule(
        config,
        rule.texts("users"),
        rule.texts("userGroups"),
        rule.texts("verbs"),
        rule.texts("namespaces"),
        [_resources(one, errors) for one in rule.sections("resources")],
        rule.texts("nonResourceURLs"),
    )
    for index, path in enumerate(made.paths):
        where = f"{rule.path_of('nonResourceURLs')}[{index}]"
        if path != _ALL and not path.startswith("/"):
            errors.append(invalid(where, path, "non-resource URL rules must begin with a '/' character"))
        if _ALL in path[:-1]:
            errors.append(invalid(where, path, "non-resource URL wildcards '*' must be the final character of the rule"))
    if made.paths and (made.resources or made.namespaces):
        errors.append(invalid(rule.path_of("nonResourceURLs"), list(made.paths), RESOURCES_OR_URLS))
    rule.require_no_other_fields()
    return made


def _resources(section: Section, errors: list[FieldError]) -> GroupResources:
    made = GroupResources(section.text("group"), section.texts("resources"), section.texts("resourceNames"))
    if made.group not in ("", _ALL):
        problems = names.dns_subdomain(made.group, False)
        errors += [invalid(section.path_of("group"), made.group, problem) for problem in problems]
    if made.names and not made.resources:
        text = "using resourceNames requires at least one resource"
        errors.append(invalid(section.path_of("resourceNames"), list(made.names), text))
    section.require_no_other_fields()
    return made


def _stages(section: Section, errors: list[FieldError]) -> frozenset[str]:
    stages = section.texts("omitStages")
    for index, stage in enumerate(stages):
        if stage not in STAGES:
            where = f"{section.path_of('omitStages')}[{index}]"
            errors.append(invalid(where, stage, f"allowed stages are {','.join(STAGES)}"))
    return frozenset(stages)
