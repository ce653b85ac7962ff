"""podtemplates, and the pod templates of all kinds: defaults, validation, warnings, the selector that must match the labels.

Specified by: pkg/registry/core/podtemplate; ValidatePodTemplate… of pkg/apis/core/validation;
pkg/apis/core/validation/validation.go, pkg/api/pod/util.go, pkg/api/pod/warnings.go.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported
from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.selectors import LabelSelector, SelectorError, from_label_selector
from fakekube.apis.core.pods.annotations import validate_pod_annotations, validate_profiles_match
from fakekube.apis.core.pods.defaults import DROPS_ON_WRITES_SINCE, default_pod_spec, drop_old_annotations
from fakekube.apis.core.pods.spec import validate_pod_spec
from fakekube.apis.core.pods.validation_options import NEW_TEMPLATE, ValidationOptions
from fakekube.apis.core.pods.warnings import hostname_warnings, template_warnings
from fakekube.apis.disabled_fields import drop_disabled_pod_fields
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import selectors
from fakekube.apis.validation.objectmeta import validate_annotations, validate_labels
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import without_empty_fields
from fakekube.base.objects import Object, Part


class PodTemplateStrategy(Strategy):
    """The strategy of podtemplates."""

    generation = True
    delete_returns_object = True

    def default(self, obj: Object) -> None:
        default_template(obj.setdefault("template", {}))

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        drop_disabled(context.emulation, obj["template"])

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        drop_disabled(context.emulation, obj["template"], old["template"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return validate_template(obj["template"], "template", validation_options(None))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        options = validation_options(old["template"])
        return validate_template(obj["template"], "template", options)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return changed_template_warnings(obj["template"], obj, old, "template")


def _template_spec(template: Object) -> Object:
    """Returns the spec of a template; an empty one if it is absent."""
    spec: Object = template.setdefault("spec", {})
    return spec


def default_template(template: Object) -> None:
    default_pod_spec(_template_spec(template))
    if "metadata" in template and not from_minor(DROPS_ON_WRITES_SINCE):
        drop_old_annotations(template["metadata"])


def drop_disabled(emulation: Emulation, template: Object | None, old: Object | None = None) -> None:
    """Drops fields whose feature gates are disabled, and old annotations."""
    if template is not None:
        drop_disabled_pod_fields(emulation, template.get("spec") or {}, (old or {}).get("spec"))
        drop_old_annotations(template.get("metadata") or {})


def validation_options(old: Object | None, selector: Part | None = None) -> ValidationOptions:
    """Returns the validation options of an update of this template (and of the selector, if given); for None, those of
    a new template.
    """
    if old is None:
        return NEW_TEMPLATE
    return ValidationOptions(old.get("spec") or {}, old.get("metadata") or {}, of_pod=False, selector=selector)


def validate_template(template: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates a template (ValidatePodTemplateSpec)."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    errors = validate_labels(labels, f"{path}.labels") if labels else []
    if annotations:
        errors += validate_annotations(annotations, f"{path}.annotations")
        errors += validate_pod_annotations(annotations, spec, f"{path}.annotations", options)
    errors += validate_pod_spec(spec, f"{path}.spec", options)
    errors += validate_profiles_match(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        where = f"{path}.spec.ephemeralContainers"
        errors.append(forbidden(where, "ephemeral containers not allowed in pod template"))
    return errors


def validate_always_restarts(template: Object, path: str, kind: str) -> list[FieldError]:
    """Validates that pods always restart and have no active deadline."""
    spec = template.get("spec") or {}
    errors: list[FieldError] = []
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", text))
    return errors


#: The detail of a template that the selector of its owner does not select.
SELECTOR_MISMATCH = "`selector` does not match template `labels`"


def validate_selector_matches(selector: LabelSelector, template: Object, path: str) -> list[FieldError]:
    """Validates that the selector matches the labels of the template."""
    labels = (template.get("metadata") or {}).get("labels")
    if selector.empty or selector.matches(labels):
        return []
    return [invalid(f"{path}.metadata.labels", labels, SELECTOR_MISMATCH)]


def validate_selector(selector: Part | None, path: str, empty: str) -> list[FieldError]:
    """Validates a label selector that must not be empty; `empty` is the kind in the message."""
    errors = selectors.label_selector(selector, path)
    if not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions"):
        errors.append(invalid(path, without_empty_fields(selector), f"empty selector is invalid for {empty}"))
    return errors


def parsed_selector(selector: Part | None) -> LabelSelector | None:
    """Compiles the selector; returns None if it is invalid."""
    try:
        return from_label_selector(selector)
    except SelectorError:
        return None


def name_warnings(name: str) -> list[str]:
    """Returns warnings about a name that is too long as the start of pod names."""
    return hostname_warnings(name, "Pod names and hostnames")


def changed_template_warnings(template: Object, obj: Object, old: Object | None, path: str) -> list[str]:
    """Returns warnings about the template of a new object, or of one with a new generation."""
    generation = obj["metadata"].get("generation")
    if old is not None and generation == old["metadata"].get("generation"):
        return []
    return template_warnings(template, path)
