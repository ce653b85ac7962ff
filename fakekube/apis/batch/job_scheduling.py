"""Validation of how the pods of a Job (also in a CronJob) are scheduled as a workload, which 1.37 has behind WorkloadWithJob.

What the types declare is told after what the functions by hand say.

Specified by: pkg/apis/batch/v1/zz_generated.validations.go (Validate_JobSchedulingConfiguration),
pkg/apis/batch/validation/validation.go (validateGangMinCount, validateJobScheduling, validateJobSchedulingUpdate),
k8s.io/component-helpers/scheduling/schedulingv1/workloadbuilder (validate.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid
from fakekube.apis.scheduling.workloads import (
    FieldCheck,
    union,
    validate_claims,
    validate_fields,
    validate_mode,
    validate_presence,
    validate_scheduling_constraints,
)
from fakekube.apis.validation.rules import at_least
from fakekube.base.objects import Part

_POSITIVE = at_least(1)


def validate_scheduling(spec: Part, path: str) -> list[FieldError]:
    """Validates what the parts of a configuration have to do with one another (validateGangMinCount, validateJobScheduling)."""
    scheduling = spec.get("scheduling")
    if scheduling is None:
        return []
    policy = scheduling.get("schedulingPolicy")
    count, parallelism = _minimum(policy), spec.get("parallelism", 1)
    errors: list[FieldError] = []
    if count is not None and count > parallelism:
        text = f"must not be greater than parallelism ({parallelism})"
        errors.append(invalid(f"{path}.scheduling.schedulingPolicy.gang.minCount", count, text))
    is_basic, mode = not policy or "basic" in policy, scheduling.get("disruptionMode") or {}
    if is_basic and "all" in mode and "single" not in mode:
        text = "the disruptionMode `all` is not supported with the Basic scheduling policy"
        errors.append(invalid(f"{path}.scheduling.disruptionMode", "", text))
    return errors


def _minimum(policy: Part | None) -> int | None:
    """Returns the least number of pods of a gang."""
    count: int | None = ((policy or {}).get("gang") or {}).get("minCount")
    return count


def validate_scheduling_update(spec: Part, old: Part, path: str) -> list[FieldError]:
    """Validates that the policy stays of its kind (validateJobSchedulingUpdate)."""
    policy, before = ((one.get("scheduling") or {}).get("schedulingPolicy") for one in (spec, old))
    if policy is None or before is None or ("basic" in policy) == ("basic" in before):
        return []
    text = "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated"
    return [invalid(f"{path}.scheduling.schedulingPolicy", None, text)]


def validate_declared_scheduling(spec: Part, old: Part | None, path: str) -> list[FieldError]:
    """Validates what the types of a configuration declare (Validate_JobSchedulingConfiguration).

    Args:
        spec: of the job.
        old: the one that is stored; None on create.
        path: of the spec.
    """
    scheduling, where = spec.get("scheduling"), f"{path}.scheduling"
    before = None if old is None else old.get("scheduling")
    if old is not None and (fixed := validate_presence(scheduling, before, where)):
        return fixed
    if scheduling is None:
        return []
    fields: Mapping[str, FieldCheck] = {"schedulingPolicy": partial(_validate_policy, is_update=old is not None), **_FIELDS}
    return validate_fields(scheduling, before, where, fields, mutable=("schedulingPolicy",))


def _validate_policy(policy: Any, old: Any, path: str, *, is_update: bool) -> list[FieldError]:
    if is_update and (fixed := validate_presence(policy, old, path)):
        return fixed
    if policy is None:
        return []
    count = _minimum(policy)
    errors = union("basic", "gang")(policy, None, path)
    return errors if count is None else errors + _POSITIVE.run(count, f"{path}.gang.minCount")


_FIELDS: Mapping[str, FieldCheck] = {
    "schedulingConstraints": validate_scheduling_constraints,
    "disruptionMode": validate_mode,
    "resourceClaims": validate_claims,
}
