"""podtemplates: stored pod templates.

Specified by: pkg/registry/core/podtemplate; ValidatePodTemplate… of pkg/apis/core/validation.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apis.core import pod_template_spec
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext


class PodTemplateStrategy(Strategy):
    """The strategy of podtemplates."""

    generation = True
    delete_returns_object = True

    def default(self, obj: Object) -> None:
        pod_template_spec.default_template(obj.setdefault("template", {}))

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        pod_template_spec.drop_disabled(context.emulation, obj["template"])

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        pod_template_spec.drop_disabled(context.emulation, obj["template"], old["template"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return pod_template_spec.validate_template(obj["template"], "template", pod_template_spec.validation_options(None))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        options = pod_template_spec.validation_options(old["template"])
        return pod_template_spec.validate_template(obj["template"], "template", options)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return pod_template_spec.changed_template_warnings(obj["template"], obj, old, "template")
