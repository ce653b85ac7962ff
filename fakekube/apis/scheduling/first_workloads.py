"""Workloads of 1.35, whose groups are in them.

Specified by: pkg/registry/scheduling/workload and pkg/apis/scheduling/validation of 1.35.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required, too_many
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.scheduling.workloads import MAX_TEMPLATES, VALIDATE_CONTROLLER
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import POSITIVE, invalid_each, many_set
from fakekube.apis.validation.rules import Change, changes, immutable
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.objects import Object, Part


class FirstWorkloadStrategy(Strategy):
    """The strategy of workloads in 1.35, whose groups are in them."""

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_first_workload(obj["spec"])

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = _validate_first_workload(obj["spec"])
        if old["spec"].get("controllerRef") is not None:
            errors += _FIRST_CONTROLLER.validate(obj["spec"], old["spec"])
        return errors + _FIRST_GROUPS.validate(obj["spec"], old["spec"])


def _internal_groups(groups: Sequence[Part] | None) -> list[Part] | None:
    """Returns the groups of a workload of 1.35 as the internal type holds them."""
    if groups is None:
        return None
    policies = [(one.get("name", ""), one.get("policy") or {}) for one in groups]
    return [{"Name": name, "Policy": {"Basic": policy.get("basic"), "Gang": _internal_gang(policy)}} for name, policy in policies]


def _internal_gang(policy: Part) -> Part | None:
    gang = policy.get("gang")
    return None if gang is None else {"MinCount": gang.get("minCount", 0)}


#: The paths do not start with the spec.
_FIRST_CONTROLLER = changes(
    "WorkloadSpec",
    "validateWorkloadSpecUpdate",
    Change("controllerRef", immutable(lambda value: value and to_internal("TypedLocalObjectReference", value))),
)
_FIRST_GROUPS = changes("WorkloadSpec", "validateWorkloadSpecUpdate", Change("podGroups", immutable(_internal_groups)))


def _validate_first_workload(spec: Part) -> list[FieldError]:
    """Validates the spec of a workload of 1.35 (validateWorkloadSpec)."""
    errors = (
        VALIDATE_CONTROLLER(spec["controllerRef"], None, "spec.controllerRef") if spec.get("controllerRef") is not None else []
    )
    groups: Sequence[Part] = spec.get("podGroups") or ()
    if not groups:
        return [*errors, required("spec.podGroups", "must have at least one item")]
    if len(groups) > MAX_TEMPLATES:
        return [*errors, too_many("spec.podGroups", len(groups), MAX_TEMPLATES)]
    held: set[str] = set()
    for index, group in enumerate(groups):
        path, name = f"spec.podGroups[{index}]", group.get("name", "")
        errors += invalid_each(f"{path}.name", name, names.dns_label(name))
        if name in held:
            errors.append(duplicate(f"{path}.name", name))
        held.add(name)
        errors += _validate_first_policy(group.get("policy") or {}, f"{path}.policy")
    return errors


def _validate_first_policy(policy: Part, path: str) -> list[FieldError]:
    """Validates the policy of a group of 1.35 (validatePodGroupPolicy)."""
    chosen = [name for name in ("basic", "gang") if policy.get(name) is not None]
    text = "exactly one of `basic`, `gang` is required"
    if not chosen:
        return [required(path, text)]
    if len(chosen) > 1:
        return [invalid(path, "{`basic`, `gang`}", many_set(text))]
    if chosen == ["basic"]:
        return []
    count = policy["gang"].get("minCount", 0)
    return [] if count > 0 else [invalid(f"{path}.gang.minCount", count, POSITIVE)]
