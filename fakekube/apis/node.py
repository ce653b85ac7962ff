"""runtimeclasses.node: the handler of the containers of a pod, its overhead, and the nodes that support it.

Specified by: pkg/registry/node/runtimeclass; pkg/apis/node/validation; pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate
from fakekube.apis.core.nodes import DEPRECATED
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation.objectmeta import validate_labels
from fakekube.apis.validation.resource_lists import container_resource_name, requirements
from fakekube.apis.validation.rules import (
    LABEL,
    LABEL_OF_BYTES,
    NEVER,
    Rule,
    by_declaration,
    by_minor,
    calls,
    changes,
    fixed,
    from_minor,
    immutable,
    needed,
    rules,
    then,
)
from fakekube.apis.validation.selectors import tolerations
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.objects import Object


class RuntimeClassStrategy(Strategy):
    """The strategy of runtimeclasses."""

    create_on_update = True
    unconditional_update = False
    standard_finalizers = False
    checks_metadata_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _RUNTIME_CLASS.validate(obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        meta, old_meta = obj["metadata"], old["metadata"]
        return [
            *self.validate_metadata(context, meta),
            *_UPDATED_RUNTIME_CLASS.validate(obj),
            *self.validate_metadata_update(context, meta, old_meta),
            *_RUNTIME_CLASS_CHANGES.validate(obj, old),
        ]

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        labels = (obj.get("scheduling") or {}).get("nodeSelector") or ()
        return [f"scheduling.nodeSelector: {DEPRECATED[label]}" for label in labels if label in DEPRECATED]


def validate_overhead(overhead: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    """Validates the overhead of pods (validateOverhead), in the words of limits of containers."""
    amounts = (overhead or {}).get("podFixed")
    return requirements({"limits": amounts}, path, container_resource_name, frozenset()) if amounts else []


def validate_scheduling(scheduling: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    """Validates the nodes that support the class (validateScheduling)."""
    scheduling = scheduling or {}
    errors = validate_labels(scheduling.get("nodeSelector") or {}, f"{path}.nodeSelector")
    items: Sequence[Mapping[str, Any]] = scheduling.get("tolerations") or ()
    errors += tolerations(items, f"{path}.tolerations" if from_minor(35) else f"{path}.tolerations.tolerations")
    seen = set()
    for index, item in enumerate(items):
        key = tuple(item.get(field, "") for field in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(f"{path}.tolerations[{index}]", to_internal("Toleration", item)))
        seen.add(key)
    return errors


_RUNTIME_CLASS = rules(
    "RuntimeClass",
    "ValidateRuntimeClass",
    *by_declaration("handler", then(needed(), LABEL_OF_BYTES), (LABEL, 0), (then(needed(), LABEL), 36)),
    Rule("overhead", calls(validate_overhead)),
    Rule("scheduling", calls(validate_scheduling)),
)
#: Of an update, whose handler the declared rules do not see again.
_UPDATED_RUNTIME_CLASS = rules(
    "RuntimeClass (update)",
    "ValidateRuntimeClass",
    *by_minor("handler", (LABEL, 0, 36), (then(needed(), LABEL), 36, NEVER)),
    *_RUNTIME_CLASS.rows[-2:],
)
_RUNTIME_CLASS_CHANGES = changes(
    "RuntimeClass", "ValidateRuntimeClassUpdate", *by_declaration("handler", fixed(), (immutable(), 0))
)
