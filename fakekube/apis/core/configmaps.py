"""configmaps: texts and bytes by key, and the checks that they share with secrets.

Specified by: pkg/registry/core/configmap; ValidateConfigMap… of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, too_long
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each
from fakekube.base.golang.strings import bytes_of
from fakekube.base.objects import Object

#: The maximum total size of the values of a config map or a secret, in bytes.
MAX_SECRET_SIZE = 1024 * 1024


class ConfigMapStrategy(Strategy):
    """The strategy of configmaps."""

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        errors: list[FieldError] = []
        for key in data:
            if wrong := names.config_map_key(key):
                errors += invalid_each(f"data[{key}]", key, wrong)
            if key in binary:
                errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        if binary:
            errors += validate_data_keys(binary, "binaryData")
        size = len(bytes_of("".join(data.values()))) + sum(map(size_of_base64, binary.values()))
        return [*errors, too_long("[]", MAX_SECRET_SIZE)] if size > MAX_SECRET_SIZE else errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if old.get("immutable"):
            errors += validate_immutable(obj, old, {"data": {}, "binaryData": None})
        errors += self.validate_metadata(context, obj["metadata"])
        return errors + self.validate(context, obj)


def validate_data_keys(keys: Iterable[str], field: str) -> list[FieldError]:
    return [error for key in keys for error in invalid_each(f"{field}[{key}]", key, names.config_map_key(key))]


def validate_immutable(obj: Object, old: Object, fields: Mapping[str, Any]) -> list[FieldError]:
    """Validates that an immutable object keeps its immutable flag and these fields (each with its value if it is absent)."""
    text = "field is immutable when `immutable` is set"
    changed = [] if obj.get("immutable") else ["immutable"]
    changed += [field for field, absent in fields.items() if obj.get(field, absent) != old.get(field, absent)]
    return [forbidden(field, text) for field in changed]


def size_of_base64(text: str | None) -> int:
    """Returns the number of bytes that a base64 text encodes; 0 for null."""
    return len(text) // 4 * 3 - text[-2:].count("=") if text else 0
