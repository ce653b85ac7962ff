"""The metadata of every object: what a new one may say, and what a change may change.

Who checks what (as the real server does, so that a wrong label of an update shows up as several causes):

* a create: the kind's own check, which nearly always starts with `validate_object_meta` and the kind's rule for names;
* an update: first, for every kind, `validate_object_meta` with `names.path_segment` and `validate_object_meta_update`,
  then the kind's own check, which starts with `validate_object_meta_update` and often repeats the create's check.

Specified by: k8s.io/apimachinery/pkg/api/validation/objectmeta.go, …/meta/v1/validation, apiserver's registry/rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fakekube.errors import FieldError
from fakekube.errors.field import forbidden, go_quote, immutable, invalid, required, too_long
from fakekube.resources import names
from fakekube.resources.names import NameCheck

__all__ = [
    "validate_annotations", "validate_conditions", "validate_common_update", "validate_finalizer_name", "validate_labels",
    "validate_managed_fields", "validate_object_meta", "validate_object_meta_update",
]

Meta = Mapping[str, Any]

ANNOTATIONS_LENGTH = 256 * 1024
MANAGER_LENGTH = 128
SUBRESOURCE_LENGTH = 256
CONDITION_REASON_LENGTH = 1024
CONDITION_MESSAGE_LENGTH = 32 * 1024


def validate_object_meta(
    meta: Meta, namespaced: bool, name_errors: NameCheck, path: str = "metadata"
) -> list[FieldError]:
    """What is wrong with the metadata of an object, whether it is new or not (ValidateObjectMeta)."""
    errors: list[FieldError] = []
    prefix = meta.get("generateName")
    if prefix:
        errors += [invalid(f"{path}.generateName", prefix, text) for text in name_errors(prefix, True)]
    name = meta.get("name")
    if name:
        errors += [invalid(f"{path}.name", name, text) for text in name_errors(name, False)]
    else:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    errors += _validate_namespace(meta.get("namespace", ""), namespaced, path)
    if meta.get("generation", 0) < 0:
        errors.append(invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0"))
    errors += _validate_free_parts(meta, path)
    if meta.get("finalizers"):
        errors[_managed_fields_start(errors, path):] = [
            *_validate_finalizers(meta["finalizers"], f"{path}.finalizers"),
            *errors[_managed_fields_start(errors, path):],
        ]
    return errors
