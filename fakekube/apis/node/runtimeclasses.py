"""runtimeclasses.node: the handler of the containers of a pod, its overhead, and the nodes that support it.

Specified by: pkg/registry/node/runtimeclass; pkg/apis/node/validation; pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, required
from fakekube.apis.core.node_labels import DEPRECATED
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import immutable_field, invalid_each
from fakekube.apis.validation.objectmeta import validate_labels
from fakekube.apis.validation.resource_lists import container_resource_name, requirements
from fakekube.apis.validation.to_internal import to_internal
from fakekube.apis.validation.tolerations import tolerations

__all__ = ["RuntimeClassStrategy"]


class RuntimeClassStrategy(Strategy):
    """The strategy of runtimeclasses."""

    create_on_update = True
    unconditional_update = False
    standard_finalizers = False
    checks_metadata_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        handler = obj.get("handler", "")
        errors = [] if handler else [required("handler")]
        errors += invalid_each("handler", handler, names.dns_label(handler) if handler else ())
        fixed = (obj.get("overhead") or {}).get("podFixed")
        if fixed:
            errors += requirements({"limits": fixed}, "overhead", container_resource_name, frozenset())
        scheduling = obj.get("scheduling")
        return errors + _scheduling(scheduling, "scheduling") if scheduling else errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        meta, old_meta = obj["metadata"], old["metadata"]
        return [
            *self.validate_metadata(context, meta),
            *self.validate(context, obj),
            *self.validate_metadata_update(context, meta, old_meta),
            *immutable_field(obj.get("handler", ""), old.get("handler", ""), "handler"),
        ]

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        labels = (obj.get("scheduling") or {}).get("nodeSelector") or ()
        return [f"scheduling.nodeSelector: {DEPRECATED[label]}" for label in labels if label in DEPRECATED]


def _scheduling(scheduling: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = validate_labels(scheduling.get("nodeSelector") or {}, f"{path}.nodeSelector")
    items: Sequence[Mapping[str, Any]] = scheduling.get("tolerations") or ()
    errors += tolerations(items, f"{path}.tolerations")
    seen = set()
    for index, item in enumerate(items):
        key = tuple(item.get(field, "") for field in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(f"{path}.tolerations[{index}]", to_internal("Toleration", item)))
        seen.add(key)
    return errors
