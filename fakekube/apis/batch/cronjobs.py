"""cronjobs.batch. Their schedules are in `schedules`.

Specified by: pkg/registry/batch/cronjob; ValidateCronJob… of pkg/apis/batch/validation.
"""

from __future__ import annotations

import re

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, invalid, not_supported, required
from fakekube.apis.batch.job_scheduling import validate_declared_scheduling
from fakekube.apis.batch.job_validation import job_spec_warnings, validate_job_spec
from fakekube.apis.batch.schedules import schedule_problem, time_zone_problem
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation.checks import all_non_negative, required_one_of
from fakekube.apis.validation.to_internal import without_empty_fields
from fakekube.base.objects import Object

#: The maximum length of a name: the name of a job has eleven more characters.
_NAME_LENGTH = 63 - 11

POLICIES = ("Allow", "Forbid", "Replace")

_zone_part_matches = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


class CronJobStrategy(Strategy):
    """The strategy of cronjobs."""

    has_status = True
    generation = True

    def default(self, obj: Object) -> None:
        podtemplates.default_template(_job_spec(obj)["template"])

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        podtemplates.drop_disabled(context.emulation, _job_spec(obj)["template"])

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        podtemplates.drop_disabled(context.emulation, _job_spec(obj)["template"], old["spec"]["jobTemplate"]["spec"]["template"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _validate_spec(obj["spec"], None, podtemplates.validation_options(None))
        name = obj["metadata"]["name"]
        if len(name) > _NAME_LENGTH:
            text = f"must be no more than {_NAME_LENGTH} characters"
            errors.append(invalid("metadata.name", name, text))
        return errors + validate_declared_scheduling(_job_spec(obj), None, "spec.jobTemplate.spec")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        options = podtemplates.validation_options(old["spec"]["jobTemplate"]["spec"]["template"])
        errors = _validate_spec(obj["spec"], old["spec"], options)
        return errors + validate_declared_scheduling(_job_spec(obj), old["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec")

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        meta, spec, path = obj["metadata"], obj["spec"], "spec.jobTemplate.spec"
        if old is None:
            return podtemplates.name_warnings(meta["name"]) + job_spec_warnings(_job_spec(obj), path)
        found: list[str] = []
        if meta.get("generation") != old["metadata"].get("generation"):
            found += job_spec_warnings(_job_spec(obj), path)
        if "TZ" in spec.get("schedule", ""):
            page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
            text = f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"
            found.append(text)
        return found


def _job_spec(obj: Object) -> Object:
    spec: Object = obj["spec"].setdefault("jobTemplate", {}).setdefault("spec", {})
    spec.setdefault("template", {})
    return spec


def _validate_spec(spec: Object, old: Object | None, options: ValidationOptions) -> list[FieldError]:
    """Validates the spec (validateCronJobSpec)."""
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if schedule:
        in_schedule = old is not None and "TZ" in old.get("schedule", "")
        errors = _validate_schedule(schedule, zone, in_schedule)
    else:
        errors = [required("spec.schedule")]
    errors += all_non_negative(spec, ("startingDeadlineSeconds",), "spec")
    if zone is not None and (old is None or old.get("timeZone") != zone):
        errors += _validate_time_zone(zone, "spec.timeZone")
    policy = spec.get("concurrencyPolicy", "")
    errors += required_one_of(policy, "spec.concurrencyPolicy", POLICIES, ordered=True)
    errors += _validate_job_template(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", options)
    return errors + all_non_negative(spec, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"), "spec")


def _validate_schedule(schedule: str, zone: str | None, zone_allowed: bool) -> list[FieldError]:
    """Validates the schedule (validateScheduleFormat); a time zone in it is valid if the old object has one."""
    path, problem = "spec.schedule", schedule_problem(schedule)
    errors = [invalid(path, schedule, problem)] if problem else []
    if "TZ" in schedule and not zone_allowed:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(path, schedule, text))
    elif "TZ" in schedule and zone is not None:
        text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid(path, schedule, text))
    return errors


def _validate_time_zone(zone: str, path: str) -> list[FieldError]:
    shown = Typed(zone)
    if not zone:
        return [invalid(path, shown, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _zone_part_matches(part):
            return [invalid(path, shown, f"unknown time zone {zone}")]
    errors: list[FieldError] = []
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid(path, shown, text))
    problem = time_zone_problem(zone)
    return [*errors, invalid(path, shown, problem)] if problem else errors


def _validate_job_template(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the job template (ValidateJobTemplateSpec)."""
    errors = validate_job_spec(spec, path, options)
    if "selector" in spec:
        errors.append(invalid(f"{path}.selector", without_empty_fields(spec["selector"]), "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    return errors


class CronJobStatusStrategy(StatusStrategy):
    """The strategy of cronjobs/status, which validates nothing but the metadata."""

    checks_metadata_update = False
