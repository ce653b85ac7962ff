"""FlowSchemas and PriorityLevelConfigurations: classification of requests, and limits of concurrency.

Two objects of each kind are mandatory: their specs cannot change.

Specified by: pkg/apis/flowcontrol/{validation,v1/defaults.go,internalbootstrap}, pkg/registry/flowcontrol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, invalid, not_supported, required
from fakekube.apis.rest.strategy import Object, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, one_of, required_one_of
from fakekube.apis.validation.semantic_equality import same
from fakekube.apis.validation.to_internal import to_internal

__all__ = ["STATUS", "FlowSchemaStrategy", "PriorityLevelConfigurationStrategy"]

PATH = "/apis/flowcontrol.apiserver.k8s.io/v1/"
MANDATORY = ("exempt", "catch-all")
EXEMPT = "exempt"
ANNOTATION = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"

DEFAULT_PRECEDENCE, MAX_PRECEDENCE = 1000, 10000
DEFAULT_QUEUING = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}
MAX_QUEUES = 10_000_000
HASH_BITS = 60

DISTINGUISHERS = ("ByNamespace", "ByUser")
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
#: The order in which the other members of a subject are validated.
_OTHERS = ("ServiceAccount", "User", "Group")
LEVELS = ("Exempt", "Limited")
RESPONSES = ("Queue", "Reject")
NOT_NEGATIVE = "must be a non-negative integer"


class _FlowControlStrategy(Strategy):
    has_status = True
    generation = True
    checks_metadata_update = False
    checks_metadata_again = True

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


class FlowSchemaStrategy(_FlowControlStrategy):
    """The strategy of flowschemas."""

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or DEFAULT_PRECEDENCE

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec, name = obj.get("spec") or {}, obj["metadata"].get("name", "")
        errors = _precedence(spec.get("matchingPrecedence", 0), name)
        method, level = spec.get("distinguisherMethod"), spec.get("priorityLevelConfiguration") or {}
        if method is not None and method.get("type") not in DISTINGUISHERS:
            shown = to_internal("FlowDistinguisherMethod", method)
            errors.append(not_supported("spec.distinguisherMethod.type", shown, DISTINGUISHERS))
        where = "spec.priorityLevelConfiguration.name"
        if level.get("name"):
            errors += invalid_each(where, level["name"], names.dns_subdomain(level["name"]))
        else:
            errors.append(required(where, "must reference a priority level"))
        for index, rule in enumerate(spec.get("rules") or ()):
            errors += _rule(rule, f"spec.rules[{index}]")
        if name in MANDATORY and not same(spec, _fixed("flowschemas", name)):
            shown = to_internal("FlowSchemaSpec", spec)
            errors.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
        return errors + _conditions(obj, obj)


class PriorityLevelConfigurationStrategy(_FlowControlStrategy):
    """The strategy of prioritylevelconfigurations."""

    def default(self, obj: Object) -> None:
        limited = (obj.get("spec") or {}).get("limited") or {}
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for field, value in DEFAULT_QUEUING.items():
                queuing[field] = queuing.get(field) or value

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec, meta = obj.get("spec") or {}, obj["metadata"]
        name = meta.get("name", "")
        errors: list[FieldError] = []
        if ANNOTATION in (meta.get("annotations") or {}):
            errors.append(forbidden("metadata.annotations", f"annotation '{ANNOTATION}' is forbidden"))
        errors += _level(spec, name)
        shown = to_internal("PriorityLevelConfigurationSpec", spec)
        if name == EXEMPT and not same({**spec, "exempt": {}}, {"type": "Exempt", "exempt": {}}):
            text = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
            errors.append(invalid("spec", shown, text))
        elif name in MANDATORY and name != EXEMPT and not same(spec, _fixed("prioritylevelconfigurations", name)):
            errors.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
        return errors + _conditions(obj, obj)


def _fixed(plural: str, name: str) -> Object:
    bootstrap = features.current().facts.bootstrap
    found: Object = next(o["spec"] for o in bootstrap[PATH + plural] if o["metadata"]["name"] == name)
    return found


def _precedence(value: int, name: str) -> list[FieldError]:
    path = "spec.matchingPrecedence"
    if value <= 0:
        return [invalid(path, value, "must be a positive value")]
    if value > MAX_PRECEDENCE:
        return [invalid(path, value, f"must not be greater than {MAX_PRECEDENCE}")]
    if value == 1 and name != EXEMPT:
        return [invalid(path, value, f"only the schema named '{EXEMPT}' may have matchingPrecedence 1")]
    return []


def _rule(rule: Object, path: str) -> list[FieldError]:
    subjects = rule.get("subjects") or ()
    resources, others = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    errors = [] if subjects else [required(f"{path}.subjects", "subjects must contain at least one value")]
    for index, subject in enumerate(subjects):
        errors += _subject(subject, f"{path}.subjects[{index}]")
    if not resources and not others:
        errors.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for index, item in enumerate(resources):
        errors += _resource_rule(item, f"{path}.resourceRules[{index}]")
    for index, item in enumerate(others):
        errors += _non_resource_rule(item, f"{path}.nonResourceRules[{index}]")
    return errors


def _subject(subject: Object, path: str) -> list[FieldError]:
    kind = subject.get("kind", "")
    errors = one_of(kind, f"{path}.kind", SUBJECTS)
    if errors:
        return errors
    field = SUBJECTS[kind]
    named = subject.get(field)
    if named is None:
        errors.append(required(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'"))
    elif not named.get("name"):
        errors.append(required(f"{path}.{field}.name"))
    elif kind == "ServiceAccount" and named["name"] != "*":
        errors += invalid_each(f"{path}.{field}.name", named["name"], names.dns_subdomain(named["name"]))
    if named is not None and kind == "ServiceAccount":
        errors += _namespace(named.get("namespace", ""), f"{path}.{field}.namespace")
    for other in _OTHERS:
        field = SUBJECTS[other]
        if other != kind and field in subject:
            errors.append(forbidden(f"{path}.{field}", f"{field} is forbidden when subject kind is not '{other}'"))
    return errors


def _namespace(value: str, path: str) -> list[FieldError]:
    if not value:
        return [required(path, "must specify namespace for service account")]
    return invalid_each(path, value, names.dns_label(value))


def _verbs(verbs: Sequence[str], path: str) -> list[FieldError]:
    if not verbs:
        return [required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return [invalid(path, verbs, "if '*' is present, must not specify other verbs")] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(VERBS) else [not_supported(path, verbs, VERBS)]


def _resource_rule(rule: Object, path: str) -> list[FieldError]:
    errors = _verbs(rule.get("verbs") or (), f"{path}.verbs")
    for field, what, others in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = rule.get(field) or ()
        if not values:
            errors.append(required(f"{path}.{field}", f"resource rules must supply at least one {what}"))
        elif len(values) > 1 and "*" in values:
            errors.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {others}"))
    return errors + _namespaces(rule, f"{path}.namespaces")


def _namespaces(rule: Object, path: str) -> list[FieldError]:
    values = rule.get("namespaces") or ()
    if not values and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        return [required(path, text)]
    if "*" in values:
        text = "if '*' is present, must not specify other namespaces"
        return [invalid(path, values, text)] if len(values) > 1 else []
    return [
        invalid(f"{path}[{index}]", value, f"each member of this list must be '*' or a DNS-1123 label; {text}")
        for index, value in enumerate(values)
        for text in names.dns_label(value)
    ]


def _non_resource_rule(rule: Object, path: str) -> list[FieldError]:
    errors = _verbs(rule.get("verbs") or (), f"{path}.verbs")
    urls, path = rule.get("nonResourceURLs") or (), f"{path}.nonResourceURLs"
    if not urls:
        return [*errors, required(path, "nonResourceURLs must contain at least one value")]
    if "*" not in urls:
        return errors + [error for i, url in enumerate(urls) for error in _non_resource_url(url, f"{path}[{i}]")]
    if len(urls) > 1:
        errors.append(invalid(path, urls, "if '*' is present, must not specify other non-resource URLs"))
    return errors


def _non_resource_url(url: str, path: str) -> list[FieldError]:
    wildcards = url.count("*")
    rules = (
        (not url, "must not be empty"),
        (not url.startswith("/"), "must start with slash"),
        (" " in url, "must not contain white-space"),
        ("//" in url, "must not contain double slash"),
        (wildcards > 1 or (wildcards == 1 and not url.endswith("/*")), "wildcard can only do suffix matching"),
    )
    return [invalid(path, url, text) for broken, text in rules if broken][:1]


def _level(spec: Object, name: str) -> list[FieldError]:
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    errors: list[FieldError] = []
    if (name == EXEMPT) != (kind == "Exempt"):
        errors.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            errors.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        return errors + (_exempt(exempt, "spec.exempt") if exempt is not None else [])
    if kind == "Limited":
        if exempt is not None:
            errors.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            return [*errors, required("spec.limited", "must not be empty when type is Limited")]
        return errors + _limited(limited, "spec.limited")
    return errors + required_one_of(kind, "spec.type", LEVELS)


def _exempt(exempt: Object, path: str) -> list[FieldError]:
    return _shares(exempt, path) + _lendable(exempt, path)


def _limited(limited: Object, path: str) -> list[FieldError]:
    errors = _shares(limited, path)
    errors += _response(limited.get("limitResponse") or {}, f"{path}.limitResponse")
    errors += _lendable(limited, path)
    borrowing = limited.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        errors.append(invalid(f"{path}.borrowingLimitPercent", borrowing, f"if specified, {NOT_NEGATIVE}"))
    return errors


def _shares(level: Object, path: str) -> list[FieldError]:
    shares = level.get("nominalConcurrencyShares", 0)
    return [] if shares >= 0 else [invalid(f"{path}.nominalConcurrencyShares", shares, NOT_NEGATIVE)]


def _lendable(level: Object, path: str) -> list[FieldError]:
    percent = level.get("lendablePercent", 0)
    where = f"{path}.lendablePercent"
    return [] if 0 <= percent <= 100 else [invalid(where, percent, "must be between 0 and 100, inclusive")]


def _response(response: Object, path: str) -> list[FieldError]:
    kind, queuing = response.get("type", ""), response.get("queuing")
    where = f"{path}.queuing"
    if kind == "Reject" and queuing is not None:
        return [forbidden(where, "must be nil if limited.limitResponse.type is not Limited")]
    if kind == "Queue":
        text = "must not be empty if limited.limitResponse.type is Limited"
        return [required(where, text)] if queuing is None else _queuing(queuing, where)
    return required_one_of(kind, f"{path}.type", RESPONSES)


def _queuing(queuing: Object, path: str) -> list[FieldError]:
    length, queues, hand = (queuing.get(field, 0) for field in ("queueLengthLimit", "queues", "handSize"))
    errors = [] if length > 0 else [invalid(f"{path}.queueLengthLimit", length, "must be positive")]
    if queues <= 0:
        errors.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > MAX_QUEUES:
        errors.append(invalid(f"{path}.queues", queues, f"must not be greater than {MAX_QUEUES}"))
    where = f"{path}.handSize"
    if hand <= 0:
        errors.append(invalid(where, hand, "must be positive"))
    elif hand > queues:
        errors.append(invalid(where, hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > HASH_BITS:
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        errors.append(invalid(where, hand, text))
    return errors


def _conditions(obj: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            errors.append(duplicate(path, kind))
        seen.add(kind)
        errors += [] if kind else [required(path)]
    return errors


class _StatusStrategy(StatusStrategy):
    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        tracked = obj["metadata"].get("managedFields")
        obj["metadata"] = {**old["metadata"]}
        if tracked is not None:
            obj["metadata"]["managedFields"] = tracked


STATUS = _StatusStrategy(_conditions, resets=(("spec",), ("metadata",)))
