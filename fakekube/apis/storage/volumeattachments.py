"""VolumeAttachments: requests to attach a volume to a node.

Specified by: pkg/apis/storage/validation (ValidateVolumeAttachment), pkg/registry/storage/volumeattachment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, immutable, required, too_long
from fakekube.apis.core.persistentvolumes import validate_volume_spec
from fakekube.apis.core.pods.volumes import csi_driver_name
from fakekube.apis.rest.strategy import Object, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each
from fakekube.apis.validation.maps import total_size
from fakekube.apis.validation.rules import NEVER, by_minor, fits, from_minor, rules
from fakekube.apis.validation.semantic_equality import same_as
from fakekube.apis.validation.to_internal import to_internal

__all__ = ["STATUS", "VolumeAttachmentStrategy"]

METADATA_SIZE = 256 * 1024
ERROR_LENGTH = 1024
_SPEC = "k8s.io/api/storage/v1.VolumeAttachmentSpec"
MAX_INT32 = 2**31 - 1


VOLUME_ERROR = rules(
    "VolumeError",
    "validateVolumeError",
    *by_minor("message", (fits(ERROR_LENGTH, METADATA_SIZE), 0, 37), (fits(ERROR_LENGTH), 37, NEVER)),
)


class VolumeAttachmentStrategy(Strategy):
    """The strategy of volumeattachments, whose spec is immutable."""

    delete_returns_object = True
    unconditional_update = False
    has_status = True
    checks_metadata_update = False
    checks_metadata_again = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _attachment(obj)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _attachment(obj) + _changed_attachment(obj, old)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


def _attachment(obj: Object) -> list[FieldError]:
    spec, status = obj["spec"], obj.get("status") or {}
    errors = csi_driver_name(spec.get("attacher", ""), "spec.attacher", unit="characters" if from_minor(37) else "bytes")
    errors += _attached(spec.get("source") or {}, "spec.source")
    node = spec.get("nodeName", "")
    errors += invalid_each("spec.nodeName", node, names.dns_subdomain(node))
    if total_size(status.get("attachmentMetadata") or {}) > METADATA_SIZE:
        errors.append(too_long("status.attachmentMetadata", METADATA_SIZE))
    for field in ("attachError", "detachError"):
        errors += _volume_error(status.get(field) or {}, f"status.{field}")
    volume = (spec.get("source") or {}).get("persistentVolumeName")
    if volume is not None:
        errors += invalid_each("spec.source.persistentVolumeName", volume, names.dns_subdomain(volume))
    return errors


def _attached(source: Mapping[str, Any], path: str) -> list[FieldError]:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        return [required(path, text)]
    if inline is not None and name is not None:
        return [forbidden(path, text)]
    if inline is not None:
        return validate_volume_spec(inline, f"{path}.inlineVolumeSpec", inline=True)
    where = f"{path}.persistentVolumeName"
    return [] if name else [required(where, "must specify non empty persistentVolumeName")]


def _volume_error(error: Object, path: str) -> list[FieldError]:
    code = error.get("errorCode")
    errors = VOLUME_ERROR.validate(error, path)
    if code is not None and code < 0:
        errors += invalid_each(f"{path}.errorCode", code, names.in_range(code, 0, MAX_INT32))
    return errors


def _changed_attachment(obj: Object, old: Object) -> list[FieldError]:
    spec, old_spec = obj["spec"], old["spec"]
    if same_as(features.current().types.type_of(_SPEC), spec, old_spec):
        return []
    if from_minor(37):
        return [immutable("spec", None)]
    source = spec.get("source") or {}
    inline = source.get("inlineVolumeSpec")
    shown = {
        "Attacher": spec.get("attacher", ""),
        "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": None if inline is None else to_internal("PersistentVolumeSpec", inline),
        },
        "NodeName": spec.get("nodeName", ""),
    }
    return [immutable("spec", shown)]


class _AttachmentStatusStrategy(StatusStrategy):
    unconditional_update = False
    checks_metadata_update = False
    checks_metadata_again = True


def _validate_attachment_status(obj: Object, old: Object) -> list[FieldError]:
    return _attachment(obj) + _changed_attachment(obj, old)


STATUS = _AttachmentStatusStrategy(_validate_attachment_status, keeps_metadata=True, resets=(("metadata",), ("spec",)))
