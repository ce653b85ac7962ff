"""Small checks that many kinds share. Each takes a value and the path of its field and returns field errors.

Every check is pure, so the validation of a kind is a sum of checks. A value is what the object has (`spec.get("replicas")`);
an absent one means Go's zero value, which the caller passes.

Specified by: pkg/apis/core/validation/validation.go, pkg/apis/apps/validation/validation.go, pkg/apis/storage/validation
(validateParameters, validateAttachmentMetadata).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, duplicate, immutable, invalid, not_supported, required, too_long
from fakekube.apis.validation import names
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import semantic_deep_equal, without_empty_fields
from fakekube.base.golang.strconv import MAX_INT64, parse_int
from fakekube.base.golang.strings import bytes_of
from fakekube.base.objects import Part

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")

IntOrString = int | str

#: Details of numbers. The real server words them in several ways.
NOT_NEGATIVE: Final = names.min_error(0)
NOT_BELOW_ZERO: Final = "must be greater than or equal to zero"
NOT_A_CLAIM: Final = "must match the name of an entry in `spec.resourceClaims`"
NOT_NEGATIVE_INTEGER: Final = "must be a non-negative integer"
POSITIVE: Final = "must be greater than zero"
ABOVE_0: Final = "must be greater than 0"

#: Details of texts.
NOT_BLANK: Final = "must be non-empty if specified"
ONE_LINE: Final = "must not contain line breaks"
ABSOLUTE_PATH: Final = "must be an absolute path"
DOMAIN_PREFIXED_PATH: Final = 'must be a domain-prefixed path (such as "acme.io/foo")'

#: Details of rules that say who may do what.
VERBS_REQUIRED: Final = "verbs must contain at least one value"
API_GROUP_REQUIRED: Final = "resource rules must supply at least one api group"
RESOURCE_REQUIRED: Final = "resource rules must supply at least one resource"
RESOURCES_OR_URLS: Final = "rules cannot apply to both regular resources and non-resource URLs"

#: The bounds of the lifetime of a service account token, in seconds.
_MIN_TOKEN_SECONDS: Final = 10 * 60
_MAX_TOKEN_SECONDS: Final = 1 << 32


def many_set(choice: str) -> str:
    """Returns the detail of a struct in which more than one of the fields of a choice is set."""
    return f"{choice}, but multiple fields are set"


def one_member(given: Iterable[str], members: Iterable[str], path: str) -> list[FieldError]:
    """Validates that exactly one member of a union is set, as types declare it (validate.Union).

    Args:
        given: the members that are set, in the order of the type.
        members: all members.
        path: the path of the union.
    """
    which, chosen = ", ".join(f"`{member}`" for member in members), list(given)
    if not chosen:
        return [invalid(path, "", f"must specify one of: {which}")]
    return [] if len(chosen) == 1 else [invalid(path, f"{{{', '.join(chosen)}}}", f"must specify exactly one of: {which}")]


def invalid_each(path: str, value: Any, details: Iterable[str]) -> list[FieldError]:
    """Returns one Invalid error of the same value for each detail (as the checks of `names` return them)."""
    return [invalid(path, value, detail) for detail in details] if details else []


def repeated_indices(items: Iterable[Hashable]) -> list[int]:
    """Returns the indices of the items that are equal to an earlier one, in a time that grows with the number of items."""
    found: list[int] = []
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        if item in seen:
            found.append(index)
        seen.add(item)
    return found


def non_negative(value: int, path: str) -> list[FieldError]:
    return [] if value >= 0 else [invalid(path, value, NOT_NEGATIVE)]


def all_non_negative(part: Mapping[str, Any], fields: Iterable[str], path: str) -> list[FieldError]:
    """Validates that the numbers which are set are not negative."""
    return [error for field in fields if part.get(field) is not None for error in non_negative(part[field], f"{path}.{field}")]


def positive(value: int, path: str) -> list[FieldError]:
    return [] if value > 0 else [invalid(path, value, POSITIVE)]


def too_many_error(maximum: int, what: str) -> str:
    """Returns the detail of a list or text that is too long."""
    return f"must not have more than {maximum} {what}"


def wildcard_alone(values: Sequence[str], path: str, what: str) -> list[FieldError]:
    """Validates that "*" is the only item of a list if it is one."""
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def token_seconds(seconds: int, path: str) -> list[FieldError]:
    """Validates the lifetime of a service account token."""
    if seconds < _MIN_TOKEN_SECONDS:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MAX_TOKEN_SECONDS:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def immutable_field(new: Any, old: Any, path: str) -> list[FieldError]:
    """Validates that a field is unchanged; absent and empty are equal (see `semantic_deep_equal`)."""
    return [] if semantic_deep_equal(new, old) else [immutable(path, without_empty_fields(new))]


def immutable_annotation(new: Mapping[str, Any], old: Mapping[str, Any], key: str, path: str) -> list[FieldError]:
    """Validates that an annotation is unchanged between two `metadata`; `path` is the path of the metadata."""
    value = (new.get("annotations") or {}).get(key, "")
    unchanged = value == (old.get("annotations") or {}).get(key, "")
    return [] if unchanged else [immutable(f"{path}.annotations.{key}", value)]


def one_of(value: str, path: str, supported: Collection[str], *, ordered: bool = False, plain: bool = False) -> list[FieldError]:
    """Validates the value of an enumeration; the message lists the values sorted, or in the given order where the real
    server does so. `plain`: Go holds it as a plain string.
    """
    if value in supported:
        return []
    return [not_supported(path, value, supported if ordered else sorted(supported), plain=plain)]


def required_one_of(
    value: str, path: str, supported: Collection[str], *, ordered: bool = False, plain: bool = False
) -> list[FieldError]:
    """Validates the value of an enumeration that must be set."""
    return one_of(value, path, supported, ordered=ordered, plain=plain) if value else [required(path)]


def port(value: int, path: str) -> list[FieldError]:
    return invalid_each(path, value, names.port_number(value))


def port_or_name(value: IntOrString, path: str) -> list[FieldError]:
    """Validates a port of a probe, a backend …: a number or a name."""
    if isinstance(value, str):
        return invalid_each(path, value, names.port_name(value))
    return port(value, path)


def label_name(value: str, path: str) -> list[FieldError]:
    return invalid_each(path, value, names.label_key(value))


_percent_matches = re.compile("([0-9]+)%").fullmatch


def percentage(value: IntOrString) -> int | None:
    """Returns the number of a percentage, at most the largest of 64 bits; None for other values."""
    found = _percent_matches(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        return parse_int(found[1])
    except ValueError:
        return MAX_INT64


def int_or_percent(value: IntOrString, path: str) -> list[FieldError]:
    """Validates a number that is not negative, or a percentage (ValidatePositiveIntOrPercent)."""
    if isinstance(value, str):
        return invalid_each(path, Typed(value), names.percent(value))
    return non_negative(value, path)


def at_most_one_hundred_percent(value: IntOrString, path: str) -> list[FieldError]:
    number = percentage(value)
    return [] if number is None or number <= 100 else [invalid(path, value, "must not be greater than 100%")]


def fully_qualified_name(value: str, path: str) -> list[FieldError]:
    """Validates a subdomain of at least three segments (IsFullyQualifiedName)."""
    return _domain(value, path, 3) if value else [required(path)]


def _domain(value: str, path: str, segments: int) -> list[FieldError]:
    details = names.dns_subdomain(value)
    if details:
        return [invalid(path, value, ",".join(details))]
    if value.count(".") + 1 < segments:
        count = {2: "two", 3: "three"}[segments]
        return [invalid(path, value, f"should be a domain with at least {count} segments separated by dots")]
    return []


def fully_qualified_domain(value: str, path: str) -> list[FieldError]:
    """Validates a domain of at least two labels; it may end with a dot (IsFullyQualifiedDomainName)."""
    domain = value.removesuffix(".")
    errors = _domain(domain, path, segments=2) if value else [required(path)]
    if errors:
        return errors
    for label in domain.split("."):
        details = names.dns_label(label)
        if details:
            return [invalid(path, label, ",".join(details))]
    return []


_http_path_matches = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch
_HTTP_PATH_TEXT = names.regex_text("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def domain_prefixed_path(value: str, path: str) -> list[FieldError]:
    """Validates a domain, a slash, and a path (`acme.io/foo`)."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, DOMAIN_PREFIXED_PATH)]
    errors = invalid_each(path, host, names.dns_subdomain(host))
    if not _http_path_matches(rest):
        errors.append(invalid(path, rest, _HTTP_PATH_TEXT))
    return errors


def secret_reference(reference: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates the reference of a persistent volume to a secret, which has a namespace."""
    return [required(f"{path}.{field}") for field in ("name", "namespace") if not reference.get(field)]


_CONDITION_REASON_LENGTH = 1024
_CONDITION_MESSAGE_LENGTH = 32 * 1024
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_reason_matches = re.compile(_REASON).fullmatch
_REASON_TEXT = names.regex_text(
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def condition_reason(reason: str) -> list[str]:
    """Returns what is wrong with the form of a reason (IsValidConditionReason)."""
    return [] if _reason_matches(reason) else [_REASON_TEXT]


def conditions(items: Sequence[Mapping[str, Any]], path: str) -> list[FieldError]:
    """Validates conditions of the type meta/v1 Condition."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        kind = item.get("type", "")
        if kind in seen:
            errors.append(duplicate(f"{path}[{index}]" if from_minor(37) else f"{path}[{index}].type", kind))
        seen.add(kind)
        errors += _condition(item, f"{path}[{index}]")
    return errors


def _condition(item: Mapping[str, Any], path: str) -> list[FieldError]:
    kind, status = item.get("type", ""), item.get("status", "")
    declared = from_minor(37)
    errors = [required(f"{path}.type", "is required")] if declared and not kind else label_name(kind, f"{path}.type")
    statuses = ("True", "False", "Unknown")
    errors += (required_one_of if declared else one_of)(status, f"{path}.status", statuses)
    generation, reason = item.get("observedGeneration", 0), item.get("reason", "")
    if generation < 0:
        errors.append(invalid(f"{path}.observedGeneration", generation, NOT_BELOW_ZERO))
    text = "" if from_minor(34) else "must be set"
    if not item.get("lastTransitionTime"):
        errors.append(required(f"{path}.lastTransitionTime", text))
    if not reason:
        errors.append(required(f"{path}.reason", text))
    else:
        errors += invalid_each(f"{path}.reason", reason, condition_reason(reason))
        if not names.fits(reason, _CONDITION_REASON_LENGTH):
            errors.append(too_long(f"{path}.reason", _CONDITION_REASON_LENGTH))
    if not names.fits(item.get("message", ""), _CONDITION_MESSAGE_LENGTH):
        errors.append(too_long(f"{path}.message", _CONDITION_MESSAGE_LENGTH))
    return errors


@dataclass(slots=True, frozen=True)
class StatusNumbers:
    """The rules of the numbers of a status."""

    not_negative: Sequence[str]
    within_replicas: Sequence[str]
    """The fields that cannot be greater than `replicas`."""
    ready_shown: str = "readyReplicas"
    """The name that messages use for the upper bound of availableReplicas."""
    counts_collisions: bool = True
    """The status has a collisionCount, which cannot be decremented."""

    def validate(self, status: Part) -> list[FieldError]:
        errors = all_non_negative(status, self.not_negative, "status")
        replicas = status.get("replicas", 0)
        for field in self.within_replicas:
            value = status.get(field, 0)
            if value > replicas:
                errors.append(invalid(f"status.{field}", value, "cannot be greater than status.replicas"))
        available = status.get("availableReplicas", 0)
        if self.within_replicas and available > status.get("readyReplicas", 0):
            text = f"cannot be greater than {self.ready_shown}"
            errors.append(invalid("status.availableReplicas", available, text))
        return errors

    def validate_update(self, status: Part, old: Part) -> list[FieldError]:
        """Returns the errors of the comparison with the old status only."""
        if not self.counts_collisions or old.get("collisionCount") is None:
            return []
        count = status.get("collisionCount")
        if count is not None and count >= old["collisionCount"]:
            return []
        return [invalid("status.collisionCount", count or 0, "cannot be decremented")]


def number_of(value: IntOrString) -> int:
    """Returns the number of a number or percentage; 0 for other texts."""
    if isinstance(value, int):
        return value
    found = percentage(value)
    if found is not None:
        return found
    try:
        return int(value)
    except ValueError:
        return 0


def no_backsteps(target: str, path: str) -> list[FieldError]:
    """Validates that no element of the path is `..` (validatePathNoBacksteps)."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending(target: str, path: str) -> list[FieldError]:
    """Validates a relative path without `..` (validateLocalDescendingPath)."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(target, path)


def non_reserved(target: str, path: str) -> list[FieldError]:
    """Validates a relative path that does not start with a name that the kubelet reserves (ValidateLocalNonReservedPath)."""
    errors = descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, names.STARTS_WITH_DOTS))
    return errors


def total_size(mapping: Mapping[str, str]) -> int:
    """Returns the number of bytes of keys and values."""
    return sum(len(bytes_of(key)) + len(bytes_of(value)) for key, value in mapping.items())
