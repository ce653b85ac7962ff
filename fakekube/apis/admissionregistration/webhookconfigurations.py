"""Validating and mutating webhook configurations.

An update may keep what the stored object has wrong already: unknown review versions, side effects, duplicate names.

Specified by: pkg/apis/admissionregistration/{validation,v1/defaults.go},
pkg/registry/admissionregistration/{validating,mutating}webhookconfiguration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required
from fakekube.apis.admissionregistration.rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    AdmissionStrategy,
    match_conditions,
    rule_errors,
)
from fakekube.apis.rest.strategy import Object, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import fully_qualified_name, invalid_each, one_of
from fakekube.apis.validation.selectors import has_invalid_label_value, label_selector
from fakekube.apis.validation.semantic_equality import contains_empty
from fakekube.apis.validation.webhooks import service_errors, url_errors

__all__ = ["MutatingWebhookStrategy", "ValidatingWebhookStrategy"]

REVIEW_VERSIONS = ("v1", "v1beta1")
SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
MAX_TIMEOUT = 30


@dataclass(slots=True, frozen=True)
class _ValidationOptions:
    """Rules that an update may break because the stored object breaks them already."""

    side_effects: bool = False
    versions: bool = False
    names: bool = False
    label_values: bool = False
    conditions: bool = False


class ValidatingWebhookStrategy(AdmissionStrategy):
    """The strategy of validatingwebhookconfigurations."""

    mutating: ClassVar[bool] = False

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if contains_empty(context.resource.storage_type.fields["webhooks"].type, obj.get("webhooks")):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return self._hooks(obj.get("webhooks") or (), _ValidationOptions())

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        new, before = obj.get("webhooks") or (), old.get("webhooks") or ()
        return self._hooks(new, _validation_options(new, before))

    def _hooks(self, hooks: Sequence[Object], options: _ValidationOptions) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, hook in enumerate(hooks):
            path, name = f"webhooks[{index}]", hook.get("name", "")
            errors += self._hook(hook, path, options)
            errors += _review_versions(hook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions", options)
            if name in seen and not options.names:
                errors.append(duplicate(f"{path}.name", name))
            if name:
                seen.add(name)
        return errors

    def _hook(self, hook: Object, path: str, options: _ValidationOptions) -> list[FieldError]:
        errors = fully_qualified_name(hook.get("name", ""), f"{path}.name")
        for index, rule in enumerate(hook.get("rules") or ()):
            errors += rule_errors(rule, f"{path}.rules[{index}]")
        errors += _enumeration(hook, "failurePolicy", path, FAILURE_POLICIES)
        errors += _enumeration(hook, "matchPolicy", path, MATCH_POLICIES)
        allowed = SIDE_EFFECTS if options.side_effects else NO_SIDE_EFFECTS
        if hook.get("sideEffects") is None:
            errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
        errors += _enumeration(hook, "sideEffects", path, allowed)
        timeout = hook.get("timeoutSeconds")
        if timeout is not None and not 1 <= timeout <= MAX_TIMEOUT:
            text = f"the timeout value must be between 1 and {MAX_TIMEOUT} seconds"
            errors.append(invalid(f"{path}.timeoutSeconds", timeout, text))
        for field in ("namespaceSelector", "objectSelector"):
            errors += label_selector(hook.get(field), f"{path}.{field}", allow_invalid_values=options.label_values)
        if self.mutating:
            errors += _enumeration(hook, "reinvocationPolicy", path, REINVOCATION_POLICIES)
        errors += _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
        if not options.conditions:
            errors += match_conditions(hook.get("matchConditions") or (), f"{path}.matchConditions")
        return errors


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    """The strategy of mutatingwebhookconfigurations."""

    mutating = True


def _enumeration(hook: Object, field: str, path: str, values: Sequence[str]) -> list[FieldError]:
    return one_of(hook[field], f"{path}.{field}", values) if hook.get(field) is not None else []


def _validation_options(hooks: Sequence[Object], before: Sequence[Object]) -> _ValidationOptions:
    old_names = [hook.get("name", "") for hook in before]
    return _ValidationOptions(
        side_effects=any(hook.get("sideEffects") not in NO_SIDE_EFFECTS for hook in before),
        versions=any(
            not set(hook["admissionReviewVersions"]) & set(REVIEW_VERSIONS)
            for hook in before
            if hook.get("admissionReviewVersions")
        ),
        names=len(set(old_names)) < len(old_names),
        label_values=any(
            has_invalid_label_value(hook.get(field)) for hook in before for field in ("namespaceSelector", "objectSelector")
        ),
        conditions=[hook.get("matchConditions") for hook in hooks] == [hook.get("matchConditions") for hook in before],
    )


def _client(client: Object, path: str) -> list[FieldError]:
    if ("url" in client) == ("service" in client):
        return [required(path, "exactly one of url or service is required")]
    if "url" in client:
        return url_errors(client["url"], f"{path}.url")
    return service_errors(client["service"], f"{path}.service", swapped=True)


def _review_versions(versions: Sequence[str], path: str, options: _ValidationOptions) -> list[FieldError]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            errors += invalid_each(f"{path}[{index}]", version, names.dns_1035_label(version))
    if not options.versions and not set(versions) & set(REVIEW_VERSIONS):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors
