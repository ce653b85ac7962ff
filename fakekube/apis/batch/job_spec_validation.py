"""Validation of the spec of a Job, and of the job template of a CronJob (validateJobSpec).

Paths start with `path`, as the same rules apply to spec and spec.jobTemplate.spec.

Specified by: pkg/apis/batch/validation/validation.go, pkg/api/job/warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import OMITTED, duplicate, invalid, not_supported, required, too_long, too_many
from fakekube.apis.batch.indexes import IntervalError, count_indexes
from fakekube.apis.core import pod_template_spec
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.pods.warnings import template_warnings
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import all_non_negative, domain_prefixed_path, label_name, non_negative
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.golang.strconv import go_quote

Part = Mapping[str, Any]

INDEXED_PARALLELISM = 100_000
FAILED_INDEXES = 100_000
MANY_COMPLETIONS = 100_000
PARALLELISM_OF_MANY = 10_000
FAILED_INDEXES_OF_MANY = 10_000
FAILURE_RULES = 20
EXIT_CODES = 255
POD_CONDITIONS = 20
MANAGED_BY_LENGTH = 63
SUCCESS_RULES = 20
SUCCEEDED_INDEXES_LENGTH = 64 * 1024

ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS = ("In", "NotIn")
STATUSES = ("False", "True", "Unknown")


def validate_job_spec(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the spec, without its selector."""
    errors = _numbers(spec, path)
    if "managedBy" in spec:
        errors += domain_prefixed_path(spec["managedBy"], f"{path}.managedBy")
        if not names.fits(spec["managedBy"], MANAGED_BY_LENGTH):
            errors.append(too_long(f"{path}.managedBy", MANAGED_BY_LENGTH))
    errors += _completion_mode(spec, path)
    if "podFailurePolicy" in spec:
        errors += _failure_policy(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        errors += _success_policy(spec, f"{path}.successPolicy")
    errors += _replacement_policy(spec, f"{path}.podReplacementPolicy")
    errors += pod_template_spec.validate_template(spec.get("template") or {}, f"{path}.template", options)
    return errors + _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _numbers(spec: Object, path: str) -> list[FieldError]:
    fields = (
        "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
        "backoffLimitPerIndex", "maxFailedIndexes",
    )  # fmt: skip
    errors = all_non_negative(spec, fields, path)
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    return errors


def _completion_mode(spec: Object, path: str) -> list[FieldError]:
    mode = spec.get("completionMode")
    errors: list[FieldError] = []
    if mode not in (None, "NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        errors += _indexed(spec, path)
    if mode in (None, "NonIndexed"):
        errors += [
            invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if field in spec
        ]
    return errors


def _indexed(spec: Object, path: str) -> list[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 0)
    failed = spec.get("maxFailedIndexes", 0)
    errors: list[FieldError] = []
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > INDEXED_PARALLELISM:
        text = f"must be less than or equal to {INDEXED_PARALLELISM} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, text))
    where = f"{path}.maxFailedIndexes"
    if completions is not None and "maxFailedIndexes" in spec and failed > completions:
        errors.append(invalid(where, failed, "must be less than or equal to completions"))
    if failed > FAILED_INDEXES:
        errors.append(invalid(where, failed, f"must be less than or equal to {FAILED_INDEXES}"))
    if completions is None or completions <= MANY_COMPLETIONS or "backoffLimitPerIndex" not in spec:
        return errors
    if "maxFailedIndexes" not in spec:
        errors.append(required(where, f"must be specified when completions is above {MANY_COMPLETIONS}"))
    condition = f"when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
    if parallelism > PARALLELISM_OF_MANY:
        text = f"must be less than or equal to {PARALLELISM_OF_MANY} {condition}"
        errors.append(invalid(f"{path}.parallelism", parallelism, text))
    if failed > FAILED_INDEXES_OF_MANY:
        text = f"must be less than or equal to {FAILED_INDEXES_OF_MANY} {condition}"
        errors.append(invalid(where, failed, text))
    return errors


def _restart_policy(spec: Object, path: str) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if "podFailurePolicy" in spec and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        return [invalid(path, policy, text)]
    return []


def _replacement_policy(spec: Object, path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    supported = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    return [] if policy is None or policy in supported else [not_supported(path, policy, supported)]


def _valid_values(values: Iterable[str]) -> str:
    """Returns the valid values for a message about a missing value."""
    return f"valid values: [{' '.join(map(go_quote, values))}]"


def _failure_policy(spec: Object, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors: list[FieldError] = []
    if len(rules) > FAILURE_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), FAILURE_RULES))
    pod = (spec.get("template") or {}).get("spec") or {}
    fields = ("containers", "initContainers")
    containers = {item.get("name", "") for field in fields for item in pod.get(field) or ()}
    for index, rule in enumerate(rules):
        errors += _failure_rule(rule, spec, containers, f"{path}.rules[{index}]")
    return errors


def _failure_rule(rule: Part, spec: Object, containers: set[str], path: str) -> list[FieldError]:
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
        errors += _exit_codes(codes, containers, f"{path}.onExitCodes")
    if conditions:
        errors += _pod_conditions(conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid(path, OMITTED, text))
    if codes is None and not conditions:
        text = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(invalid(path, OMITTED, text))
    return errors


def _pod_conditions(patterns: list[Part], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(patterns) > POD_CONDITIONS:
        errors.append(too_many(path, len(patterns), POD_CONDITIONS))
    for index, pattern in enumerate(patterns):
        errors += label_name(pattern.get("type", ""), f"{path}[{index}].type")
        status = pattern.get("status", "")
        if not status:
            errors.append(required(f"{path}[{index}].status", _valid_values(STATUSES)))
        elif status not in STATUSES:
            errors.append(not_supported(f"{path}[{index}].status", status, STATUSES))
    return errors


def _exit_codes(codes: Part, containers: set[str], path: str) -> list[FieldError]:
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


def _success_policy(spec: Object, path: str) -> list[FieldError]:
    policy = spec["successPolicy"]
    if spec.get("completionMode", "NonIndexed") != "Indexed":
        return [invalid(path, to_internal("SuccessPolicy", policy), "requires indexed completion mode")]
    rules = policy.get("rules") or ()
    errors: list[FieldError] = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", text))
    if len(rules) > SUCCESS_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), SUCCESS_RULES))
    for index, rule in enumerate(rules):
        errors += _success_rule(rule, spec.get("completions", 0), f"{path}.rules[{index}]")
    return errors


def _success_rule(rule: Part, completions: int, path: str) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors: list[FieldError] = []
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, text))
    total = 0
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if not names.fits(indexes, SUCCEEDED_INDEXES_LENGTH):
            errors.append(too_long(where, SUCCEEDED_INDEXES_LENGTH))
        try:
            total = count_indexes(indexes, completions)
        except IntervalError as error:
            errors.append(invalid(where, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return errors
    where, limit = f"{path}.succeededCount", "must be less than or equal to"
    errors += non_negative(count, where)
    if count > completions:
        text = f"{limit} {completions} (the number of specified completions)"
        errors.append(invalid(where, count, text))
    if indexes is not None and count > total:
        text = f"{limit} {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid(where, count, text))
    return errors


def job_spec_warnings(spec: Object, path: str) -> list[str]:
    """Returns the warnings about the spec (WarningsForJobSpec)."""
    found = []
    many = spec.get("completions", 0) > MANY_COMPLETIONS and spec.get("parallelism", 0) > PARALLELISM_OF_MANY
    if spec.get("completionMode") == "Indexed" and many:
        text = (
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
            "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
        found.append(f"{path}: {text}")
    return found + template_warnings(spec.get("template") or {}, f"{path}.template")
