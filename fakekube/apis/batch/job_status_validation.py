"""Validation of updates of the status of a Job (ValidateJobStatusUpdate).

Most rules apply only when the fields that they are about change; `_Change` compares the fields.

Specified by: pkg/apis/batch/validation/validation.go; getStatusValidationOptions in
pkg/registry/batch/job/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import OMITTED, duplicate, invalid, required
from fakekube.apis.batch.indexes import IntervalError, count_indexes, overlap
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation.checks import all_non_negative
from fakekube.apis.validation.to_internal import to_internal

Part = Mapping[str, Any]

COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


def condition_is(status: Part, kind: str, value: str = "True") -> bool:
    conditions = status.get("conditions") or ()
    return any(item.get("type") == kind and item.get("status") == value for item in conditions)


def _is_finished(status: Part) -> bool:
    return condition_is(status, "Complete") or condition_is(status, "Failed")


class _Change:
    """The new and the old status, and the difference between them."""

    def __init__(self, job: Object, old: Object) -> None:
        self.spec: Part = job.get("spec") or {}
        self.status: Part = job.get("status") or {}
        self.old: Part = old.get("status") or {}
        self.complete, self.failed = self.holds("Complete"), self.holds("Failed")
        self.finished = _is_finished(self.status)
        self.finish_changed = self.finished != _is_finished(self.old)

    def holds(self, kind: str) -> bool:
        return condition_is(self.status, kind)

    def condition_changed(self, *kinds: str) -> bool:
        """Reports whether one of these conditions was added or removed."""
        return any(condition_is(self.old, kind) != self.holds(kind) for kind in kinds)

    def field_changed(self, *fields: str) -> bool:
        """Reports whether one of these fields changed."""
        return any(self.status.get(field) != self.old.get(field) for field in fields)


def validate_status_update(job: Object, old: Object) -> list[FieldError]:
    """Validates an update of the status of a job; the spec is unchanged."""
    change = _Change(job, old)
    errors = all_non_negative(change.status, COUNTS, "status")
    errors += _uncounted(change.status.get("uncountedTerminatedPods"))
    errors += _conditions_and_times(change)
    errors += _finished(change)
    errors += _indexes(change)
    errors += _counts(change)
    errors += _success(change)
    return errors + _kept(change)


def _uncounted(pods: Part | None) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate((pods or {}).get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _of_conditions(*texts: str) -> list[FieldError]:
    return [invalid("status.conditions", OMITTED, text) for text in texts]


def _conditions_and_times(change: _Change) -> list[FieldError]:
    status = change.status
    start, end = status.get("startTime"), status.get("completionTime")
    errors: list[FieldError] = []
    if change.condition_changed("Complete", "Failed") and change.complete and change.failed:
        errors += _of_conditions("cannot set Complete=True and Failed=true conditions")
    if change.condition_changed("Complete", "FailureTarget") and change.complete and change.holds("FailureTarget"):
        errors += _of_conditions("cannot set Complete=True and FailureTarget=true conditions")
    path = "status.completionTime"
    if change.condition_changed("Complete") or change.field_changed("completionTime"):
        if end is not None and not change.complete:
            text = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid(path, end, text))
        if end is None and change.complete:
            errors.append(required(path, "completionTime is required for Complete jobs"))
    if change.field_changed("startTime", "completionTime") and start is not None and end is not None and end < start:
        errors.append(invalid(path, end, "must be equal to or after `startTime`"))
    if (
        (change.condition_changed("Failed") or change.field_changed("failedIndexes"))
        and change.failed
        and not change.holds("FailureTarget")
    ):
        errors += _of_conditions("cannot set Failed=True condition without the FailureTarget=true condition")
    if change.condition_changed("Complete", "SuccessCriteriaMet") and change.complete and not change.holds("SuccessCriteriaMet"):
        text = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors += _of_conditions(text)
    return errors


def _finished(change: _Change) -> list[FieldError]:
    """Validates the fields that a finished job must have, and those that it cannot have."""
    status, spec = change.status, change.spec
    if not change.finished:
        return []
    errors: list[FieldError] = []
    active, uncounted = status.get("active", 0), status.get("uncountedTerminatedPods")
    if (change.finish_changed or change.field_changed("active")) and active > 0:
        errors.append(invalid("status.active", active, "active>0 is invalid for finished job"))
    empty = spec.get("suspend") and spec.get("completions") == 0
    if (change.finish_changed or change.field_changed("startTime")) and not empty and status.get("startTime") is None:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    if (change.finish_changed or change.field_changed("uncountedTerminatedPods")) and any((uncounted or {}).values()):
        shown = to_internal("UncountedTerminatedPods", uncounted or {})
        errors.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return errors


def _indexes(change: _Change) -> list[FieldError]:
    spec, status = change.spec, change.status
    completions, done, lost = (spec.get("completions"), status.get("completedIndexes", ""), status.get("failedIndexes"))
    done_changed, lost_changed = change.field_changed("completedIndexes"), change.field_changed("failedIndexes")
    done_path, lost_path = "status.completedIndexes", "status.failedIndexes"
    errors: list[FieldError] = []
    if done_changed and completions is not None:
        errors += _validate_index_format(done, completions, done_path)
    if lost_changed and completions is not None and "backoffLimitPerIndex" in spec and lost is not None:
        errors += _validate_index_format(lost, completions, lost_path)
    if done_changed and done and spec.get("completionMode", "NonIndexed") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid(done_path, done, text))
    if lost_changed and "backoffLimitPerIndex" not in spec and lost is not None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid(lost_path, lost, text))
    if (lost_changed or done_changed) and completions is not None and lost is not None:
        common = overlap(done, lost, completions)
        if common is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {common}"
            errors.append(invalid(lost_path, lost, text))
    return errors


def _validate_index_format(text: str, completions: int, path: str) -> list[FieldError]:
    try:
        count_indexes(text, completions)
    except IntervalError as error:
        return [invalid(path, text, f"error parsing {path.rpartition('.')[2]}: {error}")]
    return []


def _counts(change: _Change) -> list[FieldError]:
    status = change.status
    terminating, ready, active = status.get("terminating", 0), status.get("ready", 0), status.get("active", 0)
    errors: list[FieldError] = []
    if (change.finish_changed or change.field_changed("terminating")) and change.finished and terminating > 0:
        text = "terminating>0 is invalid for finished job"
        errors.append(invalid("status.terminating", terminating, text))
    if change.field_changed("ready", "active") and "ready" in status and ready > active:
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _success(change: _Change) -> list[FieldError]:
    met = change.holds("SuccessCriteriaMet")
    texts = []
    if met and change.failed:
        texts.append("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and change.holds("FailureTarget"):
        texts.append("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if "successPolicy" in change.spec and not met and change.complete:
        texts.append("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
    return _of_conditions(*texts)


def _kept(change: _Change) -> list[FieldError]:
    """Validates fields that cannot be decremented or removed."""
    status, old, spec = change.status, change.old, change.spec
    errors = _of_conditions(
        *(
            f"cannot disable the terminal {kind}=True condition"
            for kind in ("Failed", "Complete", "FailureTarget")
            if condition_is(old, kind) and not change.holds(kind)
        )
    )
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    counters: Sequence[str] = ("failed",) if elastic else ("failed", "succeeded")
    for field in counters:
        count = status.get(field, 0)
        if count < old.get(field, 0):
            errors.append(invalid(f"status.{field}", count, f"cannot decrease the {field} counter"))
    end, start = status.get("completionTime"), status.get("startTime")
    if end is not None and old.get("completionTime") not in (None, end):
        errors.append(invalid("status.completionTime", end, "field is immutable"))
    resuming = condition_is(old, "Suspended") and condition_is(status, "Suspended", "False")
    if change.field_changed("startTime") and not resuming and old.get("startTime") is not None and not spec.get("suspend"):
        text = "field is immutable for unsuspended job once set"
        errors.append(invalid("status.startTime", start, text))
    met, was_met = change.holds("SuccessCriteriaMet"), condition_is(old, "SuccessCriteriaMet")
    if was_met and not met:
        errors += _of_conditions("cannot disable the SuccessCriteriaMet=True condition")
    return errors
