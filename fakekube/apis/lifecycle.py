"""EvictionRequests and Evictions, and the responders of pods that carry evictions out (1.37, with EvictionRequestAPI).

Their status is validated as far as its conditions, its generation and its requesters; the turns of responders, which the
controller of the real server takes, are not.

Specified by: pkg/registry/lifecycle; k8s.io/api/lifecycle/v1alpha1/types.go (tags), pkg/apis/lifecycle/{validation,v1alpha1},
pkg/apis/core/v1/validation.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, duplicate, invalid, not_supported, required, too_many
from fakekube.apis.resource.devices import validate_uid
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import conditions, invalid_each, repeated_indices
from fakekube.base.objects import Object, Part

INTENTS: Final = ("Eviction", "Withdrawn")
CONDITIONS = REQUESTERS = 100
_RESPONDERS_OF_POD: Final = 10
_MAX_PRIORITY: Final = 100_000
_RESERVED_PRIORITIES: Final = 1000
FINAL: Final = ("TargetEvicted", "Failed")

_RESERVED: Final = (".k8s.io", ".kubernetes.io")


class EvictionStrategy(Strategy):
    """The strategy of evictions, which the controller makes of requests."""

    generation = True
    has_status = True
    unconditional_update = False

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return [] if prefix else names.long_name(name)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_target(obj["spec"])

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _forbid_change(obj["spec"], old["spec"], "target")


class EvictionRequestStrategy(EvictionStrategy):
    """The strategy of evictionrequests."""

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        return [
            *_validate_target(spec),
            *_validate_requester(spec.get("requester", ""), "spec.requester"),
            *_validate_intent(spec, "spec.intent"),
        ]

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = [error for field in ("target", "requester") for error in _forbid_change(spec, old["spec"], field)]
        errors += [] if spec.get("requester") else [required("spec.requester")]
        return errors + (_validate_intent(spec, "spec.intent") if spec.get("intent") != old["spec"].get("intent") else [])


def _forbid_change(spec: Part, old: Part, field: str) -> list[FieldError]:
    return [] if spec.get(field) == old.get(field) else [invalid(f"spec.{field}", None, IMMUTABLE)]


def _validate_target(spec: Part) -> list[FieldError]:
    pod = (spec.get("target") or {}).get("pod")
    if pod is None:
        return [invalid("spec.target", "", "must specify one of: `pod`")]
    name, uid, path = pod.get("name", ""), pod.get("uid", ""), "spec.target.pod"
    errors = invalid_each(f"{path}.name", name, names.long_name(name)) if name else [required(f"{path}.name")]
    return errors + (validate_uid(uid, f"{path}.uid") if uid else [required(f"{path}.uid")])


def _validate_prefixed_key(value: str, path: str) -> list[FieldError]:
    """Validates a key with a domain (IsPrefixedLabelKey)."""
    if not value:
        return [required(path)]
    texts = [*names.label_key(value)] or ([] if "/" in value else ["must include a prefix (e.g. 'example.com/key')"])
    return invalid_each(path, value, texts)


def _validate_requester(value: str, path: str) -> list[FieldError]:
    return _validate_prefixed_key(value, path) + (_forbid_reserved_domain(value, path) if value else [])


def _forbid_reserved_domain(value: str, path: str) -> list[FieldError]:
    """Validates that a key has no domain of Kubernetes (ValidateForbiddenReservedDomainSuffixes)."""
    domain = value.partition("/")[0].lower().strip().rstrip(".")
    if not f".{domain}".endswith(_RESERVED):
        return []
    return [invalid(path, value, f"domain names {', '.join(f'*{suffix}' for suffix in _RESERVED)} are reserved")]


def _validate_intent(holder: Part, path: str) -> list[FieldError]:
    value = holder.get("intent", "")
    if not value:
        return [required(path)]
    return [] if value in INTENTS else [not_supported(path, value, INTENTS)]


def validate_responders_of_pod(responders: Sequence[Part], path: str) -> list[FieldError]:
    """Validates spec.evictionResponders of a pod."""
    if len(responders) > _RESPONDERS_OF_POD:
        return [too_many(path, len(responders), _RESPONDERS_OF_POD)]
    errors = _forbid_duplicates(responders, path)
    for index, one in enumerate(responders):
        errors += _validate_requester(one.get("name", ""), f"{path}[{index}].name")
        errors += _validate_priority(one.get("priority"), f"{path}[{index}].priority")
        priority = one.get("priority")
        if priority is not None and 0 <= priority < _RESERVED_PRIORITIES:
            text = "priorities 0-999 are reserved for responders with *.k8s.io suffix"
            errors.append(invalid(f"{path}[{index}].priority", priority, text))
    return errors


def _validate_priority(value: int | None, path: str) -> list[FieldError]:
    if value is None:
        return [required(path)]
    if value < 0:
        return [invalid(path, value, names.min_error(0))]
    return [] if value <= _MAX_PRIORITY else [invalid(path, value, names.max_error(_MAX_PRIORITY))]


def _forbid_duplicates(items: Sequence[Part], path: str) -> list[FieldError]:
    return [duplicate(f"{path}[{index}]", items[index]) for index in repeated_indices(item.get("name", "") for item in items)]


# --- Status -----------------------------------------------------------------------------------------------------------


def _validate_request_status(obj: Object, old: Object) -> list[FieldError]:
    status, before = obj.get("status") or {}, old.get("status") or {}
    held = status.get("conditions") or ()
    if len(held) > CONDITIONS:
        return [too_many("status.conditions", len(held), CONDITIONS)]
    errors = _validate_observed_generation(status.get("observedGeneration"), before.get("observedGeneration"))
    return conditions(held, "status.conditions") + errors


def _validate_observed_generation(value: int | None, before: int | None) -> list[FieldError]:
    path = "status.observedGeneration"
    if value is None:
        return [] if before is None else [invalid(path, None, "field cannot be cleared once set")]
    errors = [invalid(path, value, names.min_error(1))] if value < 1 else []
    if before is not None and value < before:
        errors.append(invalid(path, value, f"may not be decreased from {before}"))
    return errors


def _validate_eviction_status(obj: Object, old: Object) -> list[FieldError]:
    status, before = obj.get("status") or {}, old.get("status") or {}
    held = {one.get("type"): one for one in status.get("conditions") or ()}
    errors = _validate_request_status(obj, old)
    for one in before.get("conditions") or ():
        new = held.get(one.get("type"), {"status": "False"})
        reverted = new.get("status") == "False" or new.get("reason") != one.get("reason")
        if one.get("type") in FINAL and one.get("status") == "True" and reverted:
            text = f"{one['type']} condition status cannot be reverted"
            errors.append(invalid("status.conditions", status.get("conditions"), text))
    requesters = status.get("requesters") or ()
    if len(requesters) > REQUESTERS:
        return [*errors, too_many("status.requesters", len(requesters), REQUESTERS)]
    errors += _forbid_duplicates(requesters, "status.requesters")
    for index, one in enumerate(requesters):
        errors += _validate_prefixed_key(one.get("name", ""), f"status.requesters[{index}].name")
        errors += _validate_intent(one, f"status.requesters[{index}].intent")
    return errors


REQUEST_STATUS = ConditionalStatusStrategy(_validate_request_status)
STATUS = ConditionalStatusStrategy(_validate_eviction_status)
