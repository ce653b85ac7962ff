"""jobs.batch: pods that run to completion, with a generated selector.

Specified by: pkg/registry/batch/job; ValidateJob… of pkg/apis/batch/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import immutable, invalid, required
from fakekube.apis.batch.job_scheduling import validate_declared_scheduling, validate_scheduling_update
from fakekube.apis.batch.job_validation import job_spec_warnings, validate_job_spec, validate_status_update
from fakekube.apis.core import podtemplates
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, restore, spec_as_stored
from fakekube.apis.validation import names, selectors
from fakekube.apis.validation.checks import immutable_field
from fakekube.apis.validation.objectmeta import has_condition
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import to_internal, without_empty_fields
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Object

_DOMAIN = "batch.kubernetes.io/"
#: Labels of the pods of a job, with and without a domain.
_NAME_LABELS = ("job-name", f"{_DOMAIN}job-name")
UID_LABELS = ("controller-uid", f"{_DOMAIN}controller-uid")

#: Fields of the template that can change while the job is suspended (scheduling directives).
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")

_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


class JobStrategy(Strategy):
    """The strategy of jobs."""

    has_status = True
    generation = True
    orphans_by_default = True
    checks_metadata_update = False

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        template = spec.setdefault("template", {})
        podtemplates.default_template(template)
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        if "backoffLimit" not in spec:
            spec["backoffLimit"] = MAX_INT32 if "backoffLimitPerIndex" in spec else 6
        _default_labels(obj)
        if not from_minor(34):  # later it is a default of the pattern, and constant
            _default_condition_statuses(spec)
        if features.current().enabled("JobPodReplacementPolicy"):
            policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
            spec.setdefault("podReplacementPolicy", policy)

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        if not obj["spec"].get("manualSelector"):
            _generate_selector(obj)
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"])

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        podtemplates.drop_disabled(context.emulation, obj["spec"]["template"], old["spec"]["template"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _validate(obj, podtemplates.validation_options(None), with_domain=True)
        return errors + validate_declared_scheduling(obj["spec"], None, "spec")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, before = obj["spec"], old["spec"]
        options = podtemplates.validation_options(before["template"], before.get("selector"))
        labels = (before["template"].get("metadata") or {}).get("labels") or {}
        errors = self.validate_metadata(context, obj["metadata"])
        with_domain = _NAME_LABELS[1] in labels and UID_LABELS[1] in labels
        errors += _validate_name_allows_completions(obj) if from_minor(37) else _validate(obj, options, with_domain=with_domain)
        errors += self.validate_metadata_update(context, obj["metadata"], old["metadata"])
        errors += _validate_spec(spec, options)
        errors += _validate_spec_change(spec, spec_as_stored(context, obj, old), old)
        return errors + validate_declared_scheduling(spec, before, "spec")

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        meta = obj["metadata"]
        if old is None:
            return podtemplates.name_warnings(meta["name"]) + job_spec_warnings(obj["spec"], "spec")
        if meta.get("generation") == old["metadata"].get("generation"):
            return []
        return job_spec_warnings(obj["spec"], "spec")

    def stores_unchanged_update(self, obj: Object) -> bool:
        """Reports whether the template has only generated labels."""
        made = obj["spec"]["template"]["metadata"].get("labels") or {}
        return set(made) <= {*_NAME_LABELS, *UID_LABELS} and obj["metadata"].get("labels") == made

    def canonicalize(self, obj: Object) -> None:
        _default_labels(obj)  # the real server sets them when it reads the stored object

    def delete_warnings(self, options: Object) -> list[str]:
        silent = options.get("propagationPolicy") is not None or options.get("orphanDependents") is not None
        return [] if silent else [_PRESERVED]


def _generate_selector(obj: Object) -> None:
    """Generates the selector, which has the uid of the job."""
    meta, spec = obj["metadata"], obj["spec"]
    template_meta = spec["template"].setdefault("metadata", {})
    labels = template_meta.get("labels")
    shared = labels is not None and meta.get("labels") == labels
    generated = {**dict.fromkeys(_NAME_LABELS, meta["name"]), **dict.fromkeys(UID_LABELS, meta["uid"])}
    template_meta["labels"] = dict(sorted({**generated, **(labels or {})}.items()))
    if shared:
        meta["labels"] = template_meta["labels"]
    selector = spec.get("selector") or {}
    matching = {UID_LABELS[1]: meta["uid"], **(selector.get("matchLabels") or {})}
    spec["selector"] = {**selector, "matchLabels": dict(sorted(matching.items()))}


def _default_condition_statuses(spec: Object) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def _default_labels(obj: Object) -> None:
    """Copies the labels of the template to a job without labels."""
    labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _validate(obj: Object, options: ValidationOptions, *, with_domain: bool) -> list[FieldError]:
    """Validates a job without its metadata (ValidateJob)."""
    return (
        _validate_generated_selector(obj, with_domain)
        + _validate_spec(obj["spec"], options)
        + _validate_name_allows_completions(obj)
    )


def _validate_name_allows_completions(obj: Object) -> list[FieldError]:
    """Validates that the pods of an indexed job have host names (validateNameAllowsCompletions)."""
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    errors: list[FieldError] = []
    if spec.get("completionMode") == "Indexed" and spec.get("completions", 0) > 0:
        hostname = f"{name}-{spec['completions'] - 1}"
        if names.dns_label(hostname):
            text = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(invalid("metadata.name", name, text))
    return errors


def _validate_generated_selector(obj: Object, with_domain: bool) -> list[FieldError]:
    """Validates that selector and labels are the generated ones (validateGeneratedSelector)."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    errors = [] if meta.get("uid") else [required("metadata.uid")]
    kinds = (0, 1) if with_domain else (0,)
    wanted = [
        (labels[kind], meta.get(field, "")) for kind in kinds for labels, field in ((UID_LABELS, "uid"), (_NAME_LABELS, "name"))
    ]
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    for key, value in wanted:
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(required(path, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(path, labels, f"must be '{value}'"))
    parsed = podtemplates.parsed_selector(spec["selector"])
    if parsed is not None and not parsed.matches(dict(wanted)):
        errors.append(invalid("spec.selector", without_empty_fields(spec["selector"]), "`selector` not auto-generated"))
    return errors


def _validate_spec(spec: Object, options: ValidationOptions) -> list[FieldError]:
    """Validates the spec (ValidateJobSpec)."""
    errors = validate_job_spec(spec, "spec", options)
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    errors += selectors.label_selector(selector, "spec.selector", allow_invalid_values=options.selector_values)
    parsed = podtemplates.parsed_selector(selector)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if parsed is not None and not parsed.matches(labels):
        errors.append(invalid("spec.template.metadata.labels", labels, podtemplates.SELECTOR_MISMATCH))
    return errors


def _validate_spec_change(sent: Object, spec: Object, old: Object) -> list[FieldError]:
    """Validates an update of the spec (ValidateJobSpecUpdate). `sent` is the spec as sent, which messages show."""
    before = old["spec"]
    errors = _validate_completions_update(spec, before)
    errors += immutable_field(spec.get("selector"), before.get("selector"), "spec.selector")
    errors += _validate_template_update(sent["template"], spec["template"], old)
    errors += immutable_field(spec.get("completionMode"), before.get("completionMode"), "spec.completionMode")
    for field, struct in (
        ("podFailurePolicy", "PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "SuccessPolicy"),
    ):
        if spec.get(field) != before.get(field):
            value = sent.get(field)
            shown = to_internal(struct, value) if struct and value is not None else value
            errors.append(immutable(f"spec.{field}", shown))
    return errors + validate_scheduling_update(spec, before, "spec")


def _validate_completions_update(spec: Object, before: Object) -> list[FieldError]:
    """Validates an update of completions: for indexed jobs, they may change together with parallelism."""
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        return immutable_field(completions, before.get("completions"), "spec.completions")
    if completions is None or completions in (before.get("completions"), spec.get("parallelism")):
        return []
    text = "can only be modified in tandem with spec.parallelism"
    return [invalid("spec.completions", completions, text)]


def _has_mutable_resources(job: Object) -> bool:
    """Reports whether the requests and limits of a job may change."""
    return features.current().enabled("MutablePodResourcesForSuspendedJobs") and _waits(job)


def _is_suspended(job: Object) -> bool:
    """Reports whether the job is suspended so that the scheduling directives of its pods may change."""
    suspended, started = bool(job["spec"].get("suspend")), (job.get("status") or {}).get("startTime") is not None
    if not features.current().enabled("MutableSchedulingDirectivesForSuspendedJobs"):
        return suspended and not started
    return suspended and _waits(job)


def _waits(job: Object) -> bool:
    """Reports whether a suspended job has no pods: before 1.36 its condition must say that it is suspended."""
    status = job.get("status") or {}
    is_suspended = has_condition(status, "Suspended")
    started = status.get("startTime") is not None
    ready = is_suspended or (from_minor(36) and bool(job["spec"].get("suspend")) and not started)
    return ready and not status.get("active")


def _validate_template_update(sent: Object, template: Object, old: Object) -> list[FieldError]:
    """Validates an update of the template (validatePodTemplateUpdate)."""
    before = old["spec"]["template"]
    if _is_suspended(old):
        before = _with_directives(before, template)
    if not old["spec"].get("suspend"):
        if template == before:
            return []
        return [immutable("spec.template", to_internal("PodTemplateSpec", sent))]
    if not _has_mutable_resources(old):
        return [] if template == before else [immutable("spec.template", to_internal("PodTemplateSpec", sent))]
    pod, old_pod = (template.get("spec") or {}, _with_resources(before.get("spec") or {}, template.get("spec") or {}))
    if pod == old_pod:
        return []
    return [immutable("spec.template.spec", to_internal("PodSpec", sent.get("spec") or {}))]


def _with_directives(before: Object, template: Object) -> Object:
    """Returns the old template with the scheduling directives of the new one."""
    spec, new = dict(before.get("spec") or {}), template.get("spec") or {}
    restore(spec, new, *_DIRECTIVES)
    affinity, wanted = spec.get("affinity"), new.get("affinity")
    if wanted is None and affinity is not None:
        rest = {kind: rules for kind, rules in affinity.items() if kind != "nodeAffinity"}
        spec.pop("affinity")
        if rest:
            spec["affinity"] = rest
    elif wanted is not None:
        merged = dict(affinity or {})
        restore(merged, wanted, "nodeAffinity")
        spec["affinity"] = merged
    meta = dict(before.get("metadata") or {})
    restore(meta, template.get("metadata") or {}, "annotations", "labels")
    return {**before, "metadata": meta, "spec": spec}


def _with_resources(before: Mapping[str, Any], pod: Mapping[str, Any]) -> Object:
    """Returns the old pod template with the resources of the new one, if the containers match."""
    spec = dict(before)
    for field in ("containers", "initContainers"):
        olds, news = before.get(field) or (), pod.get(field) or ()
        if len(olds) != len(news):
            continue
        merged = []
        for one, new in zip(olds, news, strict=True):
            container = dict(one)
            if one.get("name") == new.get("name"):
                restore(container, new, "resources")
            merged.append(container)
        if merged:
            spec[field] = merged
    return spec


class JobStatusStrategy(StatusStrategy):
    """The strategy of jobs/status."""

    def canonicalize(self, obj: Object) -> None:
        _default_labels(obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return validate_status_update(obj, old)
