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
from fakekube.apis.rbac import SUBJECT_KINDS
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, restore
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import (
    API_GROUP_REQUIRED,
    NOT_NEGATIVE_INTEGER,
    RESOURCE_REQUIRED,
    VERBS_REQUIRED,
    wildcard_alone,
)
from fakekube.apis.validation.rules import (
    BETA,
    LABEL,
    NEVER,
    SUBDOMAIN,
    Check,
    Rule,
    at_least,
    at_most,
    between,
    by_declaration,
    by_minor,
    calls,
    each,
    each_value,
    forbids,
    form,
    needed,
    one_of,
    rules,
    set_,
    struct,
    then,
)
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.base.objects import Object

PATH = "/apis/flowcontrol.apiserver.k8s.io/v1/"
MANDATORY = ("exempt", "catch-all")
_EXEMPT = "exempt"
ANNOTATION = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"

DEFAULT_PRECEDENCE, MAX_PRECEDENCE = 1000, 10000
_DEFAULT_QUEUING = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}
_MAX_QUEUES = 10_000_000
_HASH_BITS = 60

_DISTINGUISHERS = ("ByNamespace", "ByUser")
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}


class _FlowControlStrategy(Strategy):
    has_status = True
    generation = True
    checks_metadata_update = False
    checks_metadata_again = True


class FlowSchemaStrategy(_FlowControlStrategy):
    """The strategy of flowschemas."""

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or DEFAULT_PRECEDENCE

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec, name = obj.get("spec") or {}, obj["metadata"].get("name", "")
        errors = [
            *_validate_matching_precedence(name, spec.get("matchingPrecedence", 0)),
            *_FLOW_SCHEMA_SPEC.validate(spec, "spec"),
        ]
        if name in MANDATORY and not semantic_deep_equal(spec, _mandatory_spec("flowschemas", name)):
            shown = to_internal("FlowSchemaSpec", spec)
            errors.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
        return errors


class PriorityLevelConfigurationStrategy(_FlowControlStrategy):
    """The strategy of prioritylevelconfigurations."""

    def default(self, obj: Object) -> None:
        limited = (obj.get("spec") or {}).get("limited") or {}
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for field, value in _DEFAULT_QUEUING.items():
                queuing[field] = queuing.get(field) or value

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec, meta = obj.get("spec") or {}, obj["metadata"]
        name = meta.get("name", "")
        errors: list[FieldError] = []
        if ANNOTATION in (meta.get("annotations") or {}):
            errors.append(forbidden("metadata.annotations", f"annotation '{ANNOTATION}' is forbidden"))
        errors += _validate_level(name, spec)
        shown = to_internal("PriorityLevelConfigurationSpec", spec)
        if name == _EXEMPT and not semantic_deep_equal({**spec, "exempt": {}}, {"type": "Exempt", "exempt": {}}):
            text = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
            errors.append(invalid("spec", shown, text))
        elif (
            name in MANDATORY
            and name != _EXEMPT
            and not semantic_deep_equal(spec, _mandatory_spec("prioritylevelconfigurations", name))
        ):
            errors.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
        return errors


def _mandatory_spec(plural: str, name: str) -> Object:
    bootstrap = features.current().facts.bootstrap
    found: Object = next(o["spec"] for o in bootstrap[PATH + plural] if o["metadata"]["name"] == name)
    return found


def _validate_matching_precedence(name: str, value: int) -> list[FieldError]:
    """Validates the precedence of a schema; 1 is that of `exempt` (ValidateFlowSchemaSpec)."""
    path = "spec.matchingPrecedence"
    if value < 1:
        return [invalid(path, value, "must be a positive value")]
    if value > MAX_PRECEDENCE:
        return [invalid(path, value, f"must not be greater than {MAX_PRECEDENCE}")]
    if value == 1 and name != _EXEMPT:
        return [invalid(path, value, f"only the schema named '{_EXEMPT}' may have matchingPrecedence 1")]
    return []


def validate_flow_distinguisher_method(method: Object | None, path: str) -> list[FieldError]:
    """Validates the distinguisher; the error shows the whole method (ValidateFlowSchemaSpec)."""
    if method is None or method.get("type") in _DISTINGUISHERS:
        return []
    return [not_supported(f"{path}.type", to_internal("FlowDistinguisherMethod", method), _DISTINGUISHERS)]


def validate_flow_schema_subject(subject: Object, path: str) -> list[FieldError]:
    """Validates that a subject has the member of its kind, and no other (ValidateFlowSchemaSubject)."""
    kind = subject.get("kind", "")
    errors = _SUBJECT_KIND.run(kind, f"{path}.kind")
    if errors:
        return errors
    field = _SUBJECTS[kind]
    named = subject.get(field)
    if named is None:
        errors.append(required(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'"))
    else:
        errors += _SUBJECT_TABLES[kind].validate(named, f"{path}.{field}")
    for other in SUBJECT_KINDS:
        field = _SUBJECTS[other]
        if other != kind and field in subject:
            errors.append(forbidden(f"{path}.{field}", f"{field} is forbidden when subject kind is not '{other}'"))
    return errors


def validate_rules_with_subjects(rule: Object, path: str) -> list[FieldError]:
    """Validates that a rule is about something (ValidateFlowSchemaPolicyRulesWithSubjects)."""
    if rule.get("resourceRules") or rule.get("nonResourceRules"):
        return []
    return [required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")]


def _all_or_some(what: str, check: Check) -> Check:
    """A list that is only `*`, or values that `check` checks, of which none is `*`."""

    def run(values: Sequence[str] | None, path: str) -> list[FieldError]:
        if not values or "*" not in values:
            return check.run(values, path)
        return wildcard_alone(values, path, what)

    return Check(f"only '*', or {check.words}", run)


def validate_verbs(verbs: Sequence[str] | None, path: str) -> list[FieldError]:
    """Validates the verbs of a rule."""
    if not verbs:
        return [required(path, VERBS_REQUIRED)]
    return [] if set(verbs) <= set(VERBS) else [not_supported(path, verbs, VERBS)]


def validate_namespaces(rule: Object, path: str) -> list[FieldError]:
    """Validates the namespaces of a rule about resources (ValidateFlowSchemaResourcePolicyRule)."""
    values, path = rule.get("namespaces") or (), f"{path}.namespaces"
    if not values and not rule.get("clusterScope"):
        return [required(path, "resource rules that are not cluster scoped must supply at least one namespace")]
    return _all_or_some("namespaces", NAMESPACES).run(values, path)


def _validate_non_resource_url(url: str, path: str) -> list[FieldError]:
    wildcards = url.count("*")
    texts = (
        (not url, "must not be empty"),
        (not url.startswith("/"), "must start with slash"),
        (" " in url, "must not contain white-space"),
        ("//" in url, "must not contain double slash"),
        (wildcards > 1 or (wildcards == 1 and not url.endswith("/*")), "wildcard can only do suffix matching"),
    )
    return [invalid(path, url, text) for broken, text in texts if broken][:1]


NAMESPACES = each_value(
    form(
        lambda value: [f"each member of this list must be '*' or a DNS-1123 label; {text}" for text in names.dns_label(value)],
        "DNS label",
    )
)
_SUBJECT_KIND = one_of(*_SUBJECTS)
_OTHER_THAN_STAR = form(lambda name: names.dns_subdomain(name) if name != "*" else (), "DNS subdomain, or '*'")
NAMED = rules("UserSubject, GroupSubject", "ValidateFlowSchemaSubject", Rule("name", needed()))
_SERVICE_ACCOUNT = rules(
    "ServiceAccountSubject",
    "ValidateServiceAccountSubject",
    Rule("name", then(needed(), _OTHER_THAN_STAR)),
    Rule("namespace", then(needed("must specify namespace for service account"), LABEL)),
)
_SUBJECT_TABLES = {"User": NAMED, "Group": NAMED, "ServiceAccount": _SERVICE_ACCOUNT}
_VERBS_OF_RULE = Rule("verbs", _all_or_some("verbs", calls(validate_verbs)))
_RESOURCE_RULE = rules(
    "ResourcePolicyRule",
    "ValidateFlowSchemaResourcePolicyRule",
    _VERBS_OF_RULE,
    Rule("apiGroups", _all_or_some("api groups", needed(API_GROUP_REQUIRED))),
    Rule("resources", _all_or_some("resources", needed(RESOURCE_REQUIRED))),
    Rule("", calls(validate_namespaces)),
)
_NON_RESOURCE_RULE = rules(
    "NonResourcePolicyRule",
    "ValidateFlowSchemaNonResourcePolicyRule",
    _VERBS_OF_RULE,
    Rule(
        "nonResourceURLs",
        _all_or_some(
            "non-resource URLs",
            then(needed("nonResourceURLs must contain at least one value"), each_value(calls(_validate_non_resource_url))),
        ),
    ),
)
SUBJECT = rules("Subject", "ValidateFlowSchemaSubject", Rule("", calls(validate_flow_schema_subject)))
POLICY_RULE = rules(
    "PolicyRulesWithSubjects",
    "ValidateFlowSchemaPolicyRulesWithSubjects",
    Rule("subjects", needed("subjects must contain at least one value")),
    Rule("subjects", each(SUBJECT)),
    Rule("", calls(validate_rules_with_subjects)),
    Rule("resourceRules", each(_RESOURCE_RULE)),
    Rule("nonResourceRules", each(_NON_RESOURCE_RULE)),
)
_FLOW_SCHEMA_SPEC = rules(
    "FlowSchemaSpec",
    "ValidateFlowSchemaSpec",
    Rule("distinguisherMethod", calls(validate_flow_distinguisher_method)),
    Rule("priorityLevelConfiguration.name", then(needed("must reference a priority level"), SUBDOMAIN)),
    Rule("rules", each(POLICY_RULE)),
)


def _validate_level(name: str, spec: Object) -> list[FieldError]:
    """Validates type, `limited` and `exempt` together (ValidatePriorityLevelConfigurationSpec)."""
    kind = spec.get("type", "")
    errors: list[FieldError] = []
    if (name == _EXEMPT) != (kind == "Exempt"):
        errors.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    return errors + LEVELS.get(kind, _OTHER_LEVEL).validate(spec, "spec")


def validate_limit_response(response: Object | None, path: str) -> list[FieldError]:
    """Validates the response by its type (ValidateLimitResponse)."""
    response = response or {}
    return _RESPONSES.get(response.get("type", ""), _OTHER_RESPONSE).validate(response, path)


def validate_declared_limit(limited: Object | None, path: str) -> list[FieldError]:
    """Validates the union of the response, which is declared for a level of any type (LimitResponse)."""
    if limited is None:
        return []
    response, where = limited.get("limitResponse") or {}, f"{path}.limitResponse"
    kind = response.get("type", "")
    check = set_() if kind == "Queue" else forbids()
    return needed().run(kind, f"{where}.type") + check.run(response.get("queuing"), f"{where}.queuing")


def validate_hand_size(queuing: Object, path: str) -> list[FieldError]:
    """Validates the size of hands against the number of queues (ValidatePriorityLevelQueuingConfiguration)."""
    queues, hand = (queuing.get(field, 0) for field in ("queues", "handSize"))
    where = f"{path}.handSize"
    if hand < 1:
        return [invalid(where, hand, "must be positive")]
    if hand > queues:
        return [invalid(where, hand, f"should not be greater than queues ({queues})")]
    if math.ceil(math.log2(queues) * hand) <= _HASH_BITS:
        return []
    text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
    return [invalid(where, hand, text)]


_SHARES = Rule("nominalConcurrencyShares", at_least(0, NOT_NEGATIVE_INTEGER))
_LENDABLE = Rule("lendablePercent", between(0, 100))
_QUEUING = rules(
    "QueuingConfiguration",
    "ValidatePriorityLevelQueuingConfiguration",
    Rule("queueLengthLimit", at_least(1, "must be positive")),
    Rule("queues", then(at_least(1, "must be positive"), at_most(_MAX_QUEUES, f"must not be greater than {_MAX_QUEUES}"))),
    Rule("", calls(validate_hand_size)),
)
_RESPONSES = {
    "Reject": rules(
        "LimitResponse (Reject)",
        "ValidateLimitResponse",
        *by_declaration("queuing", forbids(), (forbids("must be nil if limited.limitResponse.type is not Limited"), 0)),
    ),
    "Queue": rules(
        "LimitResponse (Queue)",
        "ValidateLimitResponse",
        *by_declaration("queuing", set_(), (set_("must not be empty if limited.limitResponse.type is Limited"), 0)),
        Rule("queuing", struct(_QUEUING)),
    ),
}
_OTHER_RESPONSE = rules(
    "LimitResponse",
    "ValidateLimitResponse",
    *by_minor("type", (one_of("Queue", "Reject"), 0, 36), (one_of("Queue", "Reject", needs=""), 36, NEVER)),
    Rule("queuing", forbids(), gate=BETA, since=37),
)
LIMITED = rules(
    "LimitedPriorityLevelConfiguration",
    "ValidateLimitedPriorityLevelConfiguration",
    _SHARES,
    Rule("limitResponse", calls(validate_limit_response)),
    _LENDABLE,
    Rule("borrowingLimitPercent", at_least(0, f"if specified, {NOT_NEGATIVE_INTEGER}", absent=None)),
)
_EXEMPT_LEVEL = rules("ExemptPriorityLevelConfiguration", "ValidateExemptPriorityLevelConfiguration", _SHARES, _LENDABLE)
_DECLARED_LIMITED = Rule("limited", calls(validate_declared_limit), gate=BETA, since=37)
LEVELS = {
    "Exempt": rules(
        "PriorityLevelConfigurationSpec (Exempt)",
        "ValidatePriorityLevelConfigurationSpec",
        *by_declaration("limited", forbids(), (forbids("must be nil if the type is not Limited"), 0)),
        Rule("exempt", struct(_EXEMPT_LEVEL)),
        _DECLARED_LIMITED,
    ),
    "Limited": rules(
        "PriorityLevelConfigurationSpec (Limited)",
        "ValidatePriorityLevelConfigurationSpec",
        *by_declaration("exempt", forbids(), (forbids("must be nil if the type is Limited"), 0)),
        *by_declaration("limited", set_(), (set_("must not be empty when type is Limited"), 0)),
        Rule("limited", struct(LIMITED)),
    ),
}
_OTHER_LEVEL = rules(
    "PriorityLevelConfigurationSpec",
    "ValidatePriorityLevelConfigurationSpec",
    *by_minor("type", (one_of("Exempt", "Limited"), 0, 36), (one_of("Exempt", "Limited", needs=""), 36, NEVER)),
    Rule("exempt", forbids(), gate=BETA, since=37),
    Rule("limited", forbids(), gate=BETA, since=37),
    _DECLARED_LIMITED,
)
CONDITION = rules(
    "FlowSchemaCondition, PriorityLevelConfigurationCondition",
    "ValidateFlowSchemaCondition",
    *by_minor("type", (needed("must not be empty"), 0, 34), (needed(), 34, NEVER)),
)


def _validate_conditions(obj: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            errors.append(duplicate(path, kind))
        seen.add(kind)
        errors += CONDITION.validate(condition, path.removesuffix(".type"))
    return errors


class _StatusStrategy(StatusStrategy):
    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        meta = obj["metadata"]
        restore(meta, old["metadata"], *({*meta, *old["metadata"]} - {"managedFields"}))


STATUS = _StatusStrategy(_validate_conditions, resets=(("spec",), ("metadata",)))
