"""Validation of the spec of a Job (also in a CronJob) and of updates of its status.

Paths start with `path`, as the same rules apply to spec and spec.jobTemplate.spec.

Most rules of the status apply only when the fields that they are about change; `_Change` compares the fields.

Specified by: pkg/apis/batch/validation/validation.go (validateJobSpec, ValidateJobStatusUpdate, validateIndexesFormat),
getStatusValidationOptions in pkg/registry/batch/job/strategy.go, pkg/api/job/warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import OMITTED, duplicate, invalid, not_supported, required, too_long, too_many
from fakekube.apis.batch.job_scheduling import validate_scheduling
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.pods.warnings import template_warnings
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import all_non_negative, domain_prefixed_path, label_name, non_negative
from fakekube.apis.validation.objectmeta import has_condition
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.golang.strconv import go_quote, parse_int
from fakekube.base.objects import Object, Part

_INDEXED_PARALLELISM = 100_000
_FAILED_INDEXES = 100_000
_MANY_COMPLETIONS = 100_000
_PARALLELISM_OF_MANY = 10_000
_FAILED_INDEXES_OF_MANY = 10_000
_FAILURE_RULES = 20
EXIT_CODES = 255
_POD_CONDITIONS = 20
_MANAGED_BY_LENGTH = 63
_SUCCESS_RULES = 20
_SUCCEEDED_INDEXES_LENGTH = 64 * 1024

ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS = ("In", "NotIn")
STATUSES = ("False", "True", "Unknown")


def validate_job_spec(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the spec, without its selector."""
    errors = _validate_numbers(spec, path)
    if "managedBy" in spec:
        errors += domain_prefixed_path(spec["managedBy"], f"{path}.managedBy")
        if not names.fits(spec["managedBy"], _MANAGED_BY_LENGTH):
            errors.append(too_long(f"{path}.managedBy", _MANAGED_BY_LENGTH))
    errors += _validate_completion_mode(spec, path)
    if "podFailurePolicy" in spec:
        errors += _validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        errors += _validate_success_policy(spec, f"{path}.successPolicy")
    errors += _validate_replacement_policy(spec, f"{path}.podReplacementPolicy")
    errors += validate_scheduling(spec, path)
    errors += podtemplates.validate_template(spec.get("template") or {}, f"{path}.template", options)
    return errors + _validate_restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _validate_numbers(spec: Object, path: str) -> list[FieldError]:
    fields = (
        "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
        "backoffLimitPerIndex", "maxFailedIndexes",
    )  # fmt: skip
    errors = all_non_negative(spec, fields, path)
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    return errors


def _validate_completion_mode(spec: Object, path: str) -> list[FieldError]:
    mode = spec.get("completionMode")
    errors: list[FieldError] = []
    if mode not in (None, "NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        errors += _validate_indexed_job(spec, path)
    if mode in (None, "NonIndexed"):
        errors += [
            invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if field in spec
        ]
    return errors


def _validate_indexed_job(spec: Object, path: str) -> list[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 0)
    failed = spec.get("maxFailedIndexes", 0)
    errors: list[FieldError] = []
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _INDEXED_PARALLELISM:
        text = names.max_error(f"{_INDEXED_PARALLELISM} when completion mode is Indexed")
        errors.append(invalid(f"{path}.parallelism", parallelism, text))
    where = f"{path}.maxFailedIndexes"
    if completions is not None and "maxFailedIndexes" in spec and failed > completions:
        errors.append(invalid(where, failed, names.max_error("completions")))
    if failed > _FAILED_INDEXES:
        errors.append(invalid(where, failed, names.max_error(_FAILED_INDEXES)))
    if completions is None or completions <= _MANY_COMPLETIONS or "backoffLimitPerIndex" not in spec:
        return errors
    if "maxFailedIndexes" not in spec:
        errors.append(required(where, f"must be specified when completions is above {_MANY_COMPLETIONS}"))
    condition = f"when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
    if parallelism > _PARALLELISM_OF_MANY:
        text = names.max_error(f"{_PARALLELISM_OF_MANY} {condition}")
        errors.append(invalid(f"{path}.parallelism", parallelism, text))
    if failed > _FAILED_INDEXES_OF_MANY:
        text = names.max_error(f"{_FAILED_INDEXES_OF_MANY} {condition}")
        errors.append(invalid(where, failed, text))
    return errors


def _validate_restart_policy(spec: Object, path: str) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if "podFailurePolicy" in spec and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        return [invalid(path, policy, text)]
    return []


def _validate_replacement_policy(spec: Object, path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    supported = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    return [] if policy is None or policy in supported else [not_supported(path, policy, supported)]


def _valid_values(values: Iterable[str]) -> str:
    """Returns the valid values for a message about a missing value."""
    return f"valid values: [{' '.join(map(go_quote, values))}]"


def _validate_failure_policy(spec: Object, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors: list[FieldError] = []
    if len(rules) > _FAILURE_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _FAILURE_RULES))
    pod = (spec.get("template") or {}).get("spec") or {}
    fields = ("containers", "initContainers")
    containers = {item.get("name", "") for field in fields for item in pod.get(field) or ()}
    for index, rule in enumerate(rules):
        errors += _validate_failure_rule(rule, spec, containers, f"{path}.rules[{index}]")
    return errors


def _validate_failure_rule(rule: Part, spec: Object, containers: set[str], path: str) -> list[FieldError]:
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions")
    where = f"{path}.action"
    errors: list[FieldError] = []
    if not action:
        errors.append(required(where, _valid_values(ACTIONS)))
    elif action == "FailIndex":
        if "backoffLimitPerIndex" not in spec:
            errors.append(invalid(where, action, "requires the backoffLimitPerIndex to be set"))
    elif action not in ACTIONS:
        errors.append(not_supported(where, action, ACTIONS))
    if codes is not None:
        errors += _validate_exit_codes(codes, containers, f"{path}.onExitCodes")
    if conditions:
        errors += _validate_pod_conditions(conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid(path, OMITTED, text))
    if codes is None and not conditions:
        text = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(invalid(path, OMITTED, text))
    return errors


def _validate_pod_conditions(patterns: list[Part], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(patterns) > _POD_CONDITIONS:
        errors.append(too_many(path, len(patterns), _POD_CONDITIONS))
    for index, pattern in enumerate(patterns):
        errors += label_name(pattern.get("type", ""), f"{path}[{index}].type")
        status = pattern.get("status", "")
        if not status:
            errors.append(required(f"{path}[{index}].status", _valid_values(STATUSES)))
        elif status not in STATUSES:
            errors.append(not_supported(f"{path}[{index}].status", status, STATUSES))
    return errors


def _validate_exit_codes(codes: Part, containers: set[str], path: str) -> list[FieldError]:
    operator, values, container = codes.get("operator", ""), codes.get("values"), codes.get("containerName")
    errors: list[FieldError] = []
    if not operator:
        errors.append(required(f"{path}.operator", _valid_values(OPERATORS)))
    elif operator not in OPERATORS:
        errors.append(not_supported(f"{path}.operator", operator, OPERATORS))
    if container is not None and container not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", container, text))
    if not values:
        return [*errors, invalid(f"{path}.values", values, "at least one value is required")]
    if len(values) > EXIT_CODES:
        errors.append(too_many(f"{path}.values", len(values), EXIT_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and not value:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    if values != sorted(values):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def _validate_success_policy(spec: Object, path: str) -> list[FieldError]:
    policy = spec["successPolicy"]
    if spec.get("completionMode", "NonIndexed") != "Indexed":
        return [invalid(path, to_internal("SuccessPolicy", policy), "requires indexed completion mode")]
    rules = policy.get("rules") or ()
    errors: list[FieldError] = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", text))
    if len(rules) > _SUCCESS_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _SUCCESS_RULES))
    for index, rule in enumerate(rules):
        errors += _validate_success_rule(rule, spec.get("completions", 0), f"{path}.rules[{index}]")
    return errors


def _validate_success_rule(rule: Part, completions: int, path: str) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors: list[FieldError] = []
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, text))
    total = 0
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if not names.fits(indexes, _SUCCEEDED_INDEXES_LENGTH):
            errors.append(too_long(where, _SUCCEEDED_INDEXES_LENGTH))
        try:
            total = count_indexes(indexes, completions)
        except IntervalError as error:
            errors.append(invalid(where, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return errors
    where = f"{path}.succeededCount"
    errors += non_negative(count, where)
    if count > completions:
        text = names.max_error(f"{completions} (the number of specified completions)")
        errors.append(invalid(where, count, text))
    if indexes is not None and count > total:
        text = names.max_error(f"{total} (the number of indexes in the specified succeededIndexes field)")
        errors.append(invalid(where, count, text))
    return errors


def job_spec_warnings(spec: Object, path: str) -> list[str]:
    """Returns the warnings about the spec (WarningsForJobSpec)."""
    found = []
    many = spec.get("completions", 0) > _MANY_COMPLETIONS and spec.get("parallelism", 0) > _PARALLELISM_OF_MANY
    if spec.get("completionMode") == "Indexed" and many:
        text = (
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
            "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
        found.append(f"{path}: {text}")
    return found + template_warnings(spec.get("template") or {}, f"{path}.template")


COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


def _is_finished(status: Part) -> bool:
    return has_condition(status, "Complete") or has_condition(status, "Failed")


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
        return has_condition(self.status, kind)

    def condition_changed(self, *kinds: str) -> bool:
        """Reports whether one of these conditions was added or removed."""
        return any(has_condition(self.old, kind) != self.holds(kind) for kind in kinds)

    def field_changed(self, *fields: str) -> bool:
        """Reports whether one of these fields changed."""
        return any(self.status.get(field) != self.old.get(field) for field in fields)


def validate_status_update(job: Object, old: Object) -> list[FieldError]:
    """Validates an update of the status of a job; the spec is unchanged."""
    change = _Change(job, old)
    errors = all_non_negative(change.status, COUNTS, "status")
    errors += _validate_uncounted_pods(change.status.get("uncountedTerminatedPods"))
    enabled = features.current().enabled
    if not enabled("JobManagedBy"):  # only the Job controller writes this status, and it is trusted
        wide = enabled("JobPodReplacementPolicy") or has_condition(change.old, "SuccessCriteriaMet")
        return errors + _validate_success_criteria_met(change, wide=wide) + _validate_success_criteria_kept(change)
    errors += _validate_conditions_and_times(change)
    errors += _validate_finished_job(change)
    errors += _validate_indexes(change)
    errors += _validate_counts(change)
    errors += _validate_success_criteria_met(change)
    return errors + _forbid_decrements(change) + _validate_success_criteria_kept(change)


def _validate_uncounted_pods(pods: Part | None) -> list[FieldError]:
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


def _validate_conditions_and_times(change: _Change) -> list[FieldError]:
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


def _validate_finished_job(change: _Change) -> list[FieldError]:
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


def _validate_indexes(change: _Change) -> list[FieldError]:
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


def _validate_counts(change: _Change) -> list[FieldError]:
    status = change.status
    terminating, ready, active = status.get("terminating", 0), status.get("ready", 0), status.get("active", 0)
    errors: list[FieldError] = []
    if (change.finish_changed or change.field_changed("terminating")) and change.finished and terminating > 0:
        text = "terminating>0 is invalid for finished job"
        errors.append(invalid("status.terminating", terminating, text))
    if change.field_changed("ready", "active") and "ready" in status and ready > active:
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _validate_success_criteria_met(change: _Change, *, wide: bool = True) -> list[FieldError]:
    """Validates the condition SuccessCriteriaMet; `wide`: jobs that are not indexed, or have no success policy, can have it."""
    met = change.holds("SuccessCriteriaMet")
    texts = []
    if met and not wide and change.spec.get("completionMode", "NonIndexed") != "Indexed":
        texts.append("cannot set SuccessCriteriaMet to NonIndexed Job")
    if met and change.failed:
        texts.append("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and change.holds("FailureTarget"):
        texts.append("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if met and not wide and "successPolicy" not in change.spec:
        texts.append("cannot set SuccessCriteriaMet=True for Job without SuccessPolicy")
    if "successPolicy" in change.spec and not met and change.complete:
        texts.append("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
    return _of_conditions(*texts)


def _forbid_decrements(change: _Change) -> list[FieldError]:
    """Validates fields that cannot be decremented or removed."""
    status, old, spec = change.status, change.old, change.spec
    errors = _of_conditions(
        *(
            f"cannot disable the terminal {kind}=True condition"
            for kind in ("Failed", "Complete", "FailureTarget")
            if has_condition(old, kind) and not change.holds(kind)
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
    resuming = has_condition(old, "Suspended") and has_condition(status, "Suspended", "False")
    if change.field_changed("startTime") and not resuming and old.get("startTime") is not None and not spec.get("suspend"):
        errors.append(_immutable_start(start))
    return errors


def _validate_success_criteria_kept(change: _Change) -> list[FieldError]:
    met, was_met = change.holds("SuccessCriteriaMet"), has_condition(change.old, "SuccessCriteriaMet")
    if was_met and not met:
        return _of_conditions("cannot disable the SuccessCriteriaMet=True condition")
    if has_condition(change.old, "Complete") and not was_met and met:
        return _of_conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
    return []


def _immutable_start(start: str | None) -> FieldError:
    if from_minor(36):
        return invalid("status.startTime", start, "field is immutable for unsuspended job once set")
    return required("status.startTime", "startTime cannot be removed for unsuspended job")


class IntervalError(ValueError):
    """A text is not a list of intervals; the error text says why."""


def _index(text: str, completions: int) -> int:
    try:
        number = parse_int(text)
    except ValueError:
        raise IntervalError(f"cannot convert string to integer for index: {go_quote(text)}") from None
    if number >= completions:
        raise IntervalError(f"too large index: {go_quote(text)}")
    return number


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IntervalError(f"the fragment {go_quote(text)} {rule}")
    first = _index(parts[0], completions)
    last = _index(parts[1], completions) if len(parts) > 1 else first
    if len(parts) > 1 and first >= last:
        raise IntervalError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def count_indexes(text: str, completions: int) -> int:
    """Returns the number of indexes of these intervals. Raises IntervalError."""
    total = 0
    previous: int | None = None
    for part in text.split(",") if text else ():
        first, last = _interval(part, completions)
        if previous is not None and previous >= first:
            raise IntervalError(f"non-increasing order, previous: {previous}, current: {first}")
        total += last - first + 1
        previous = last
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Returns the first index that both texts contain; invalid intervals are skipped."""
    done, lost = _parse_valid_intervals(completed, completions), _parse_valid_intervals(failed, completions)
    while done and lost:
        if done[0][0] <= lost[0][1] and lost[0][0] <= done[0][1]:
            return max(done[0][0], lost[0][0])
        min(done, lost).pop(0)
    return None


def _parse_valid_intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for part in text.split(",") if text else ():
        try:
            found.append(_interval(part, completions))
        except IntervalError:
            continue
    return found
