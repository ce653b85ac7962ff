"""podtemplates: a template for others to refer to.

Specified by: pkg/registry/core/podtemplate; ValidatePodTemplate… of pkg/apis/core/validation.
"""

from __future__ import annotations

from fakekube.errors import FieldError
from fakekube.resources.strategy import Object, Strategy, WriteContext
from fakekube.resources.workloads import templates


class PodTemplateStrategy(Strategy):
    """podtemplates."""

    generation = True
    delete_returns_object = True

    def default(self, obj: Object) -> None:
        templates.default_template(obj.setdefault("template", {}))

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        templates.drop_disabled(obj["template"])

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        templates.drop_disabled(obj["template"], old["template"])

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return templates.validate_template(obj["template"], "template", templates.tolerance_of(None))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        tolerance = templates.tolerance_of(old["template"])
        return templates.validate_template(obj["template"], "template", tolerance)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return templates.changed_template_warnings(obj["template"], obj, old, "template")
