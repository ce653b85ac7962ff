"""CSIDrivers, CSINodes, CSIStorageCapacities and VolumeAttachments.

Specified by: pkg/apis/storage/validation (ValidateCSIDriver, ValidateVolumeAttachment …), pkg/apis/storage/v1/defaults.go,
pkg/registry/storage/{csidriver,csinode,csistoragecapacity,volumeattachment}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, immutable, invalid, required, too_long, too_many
from fakekube.apis.core.nodes import node_label_selector_warnings
from fakekube.apis.core.persistentvolumes import validate_volume_spec
from fakekube.apis.core.pods.volumes import validate_csi_driver_name
from fakekube.apis.core.volume_health import REASON
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, RevalidatingStrategy, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import (
    immutable_field,
    invalid_each,
    label_name,
    non_negative,
    one_of,
    token_seconds,
    total_size,
)
from fakekube.apis.validation.resource_lists import non_negative_quantity
from fakekube.apis.validation.rules import (
    NEVER,
    Rule,
    by_minor,
    each,
    fits,
    from_minor,
    holds_declared_rules,
    needed,
    optional,
    rules,
    then,
)
from fakekube.apis.validation.rules import one_of as value_of
from fakekube.apis.validation.selectors import label_selector
from fakekube.apis.validation.to_internal import semantic_deep_equal, semantic_deep_equal_as, to_internal, without_empty_fields
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Object

_NODE_ID_LENGTH = 256
_HEALTH_CONDITIONS = 16
_TOKENS_HINT = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true "
    "to prevent possible logging of tokens in volume attributes"
)
_LIMIT_SCALING_GATE = "VolumeLimitScaling"


class CSIDriverStrategy(Strategy):
    """The strategy of csidrivers."""

    delete_returns_object = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]
        prevents = from_minor(36) and features.current().enabled(_LIMIT_SCALING_GATE)
        if spec.get("preventPodSchedulingIfMissing") is None and prevents:
            spec["preventPodSchedulingIfMissing"] = False
        if spec.get("seLinuxMount") is False and not features.current().enabled("SELinuxMountReadWriteOncePod"):
            del spec["seLinuxMount"]  # no default without the gate: no manager owns it

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if not semantic_deep_equal(obj["spec"], old["spec"]):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        mandatory = {
            "attachRequired": "attachedRequired",
            "podInfoOnMount": "podInfoOnMount",
            "storageCapacity": "storageCapacity",
        }
        errors = [required(f"spec.{shown}") for field, shown in mandatory.items() if spec.get(field) is None]
        policy, period, in_secrets = (
            spec.get("fsGroupPolicy"),
            spec.get("nodeAllocatableUpdatePeriodSeconds"),
            spec.get("serviceAccountTokenInSecrets"),
        )
        if policy is not None:
            errors += one_of(policy, "spec.fsGroupPolicy", ("File", "None", "ReadWriteOnceWithFSType"))
        errors += _validate_token_requests(spec.get("tokenRequests") or ())
        for mode in spec.get("volumeLifecycleModes") or ():
            errors += one_of(mode, "spec.volumeLifecycleModes", ("Persistent", "Ephemeral"), ordered=True)
        if spec.get("seLinuxMount") is None and self.emulation.enabled("SELinuxMountReadWriteOncePod"):
            errors.append(required("spec.seLinuxMount"))
        if period is not None and period < 10:
            text = "must be greater than or equal to 10 seconds"
            errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
        if in_secrets is not None and not spec.get("tokenRequests"):
            text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            errors.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, text))
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, old_spec = obj["spec"], old["spec"]
        return [
            *self.validate(context, obj),
            *immutable_field(spec.get("attachRequired"), old_spec.get("attachRequired"), "spec.attachedRequired"),
            *immutable_field(spec.get("volumeLifecycleModes"), old_spec.get("volumeLifecycleModes"), "spec.volumeLifecycleModes"),
        ]

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        spec, old_spec = obj["spec"], (old or {}).get("spec") or {}
        tokens = spec.get("tokenRequests") if context.emulation.enabled("CSIServiceAccountTokenSecrets") else None
        if (
            not tokens
            or spec.get("serviceAccountTokenInSecrets") is not None
            or semantic_deep_equal(tokens, old_spec.get("tokenRequests"))
        ):
            return []
        return [_TOKENS_HINT]


def _validate_token_requests(requests: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(requests):
        path, audience, seconds = (f"spec.tokenRequests[{index}]", item.get("audience", ""), item.get("expirationSeconds"))
        if audience in seen:
            errors.append(duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        if seconds is not None:
            errors += token_seconds(seconds, f"{path}.expirationSeconds")
    return errors


class CSINodeStrategy(Strategy):
    """The strategy of csinodes; a driver of a node is immutable, except for its allocatable count."""

    has_status = True
    delete_returns_object = True
    unconditional_update = False
    checks_metadata_update = False
    checks_metadata_again = True
    validated_twice_until = 36

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, driver in enumerate(obj["spec"].get("drivers") or ()):
            errors += _validate_node_driver(driver, seen, f"spec.drivers[{index}]")
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self.validate(context, obj) + _validate_driver_updates(obj["spec"], old["spec"])


_STORAGE_HEALTH_CONDITION = rules(
    "StorageHealthCondition",
    "validateStorageHealthCondition",
    Rule("status", value_of("StorageDegraded", "StorageUnreachable")),
    Rule("reason", then(needed(), REASON)),
    Rule("reason", fits(256)),
    Rule("message", fits(1024)),
    Rule("accessMode", optional(value_of("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"))),
    Rule("volumeMode", optional(value_of("Filesystem", "Block", ordered=True))),
)


_HEALTH_OF_DRIVER = rules("StorageHealth", "validateStorageHealth", Rule("healthConditions", each(_STORAGE_HEALTH_CONDITION)))


def _validate_storage_health(obj: Object, _old: Object) -> list[FieldError]:
    """Validates the status of a node (ValidateCSINodeStatusUpdate)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, health in enumerate((obj.get("status") or {}).get("storageHealth") or ()):
        path, name, found = f"status.storageHealth[{index}]", health.get("name", ""), health.get("healthConditions") or ()
        if name in seen:
            errors.append(duplicate(path, name))
        seen.add(name)
        errors += validate_csi_driver_name(name, f"{path}.name")
        where = f"{path}.healthConditions"
        if len(found) > _HEALTH_CONDITIONS:
            errors.append(too_many(where, len(found), _HEALTH_CONDITIONS))
        else:
            errors += _HEALTH_OF_DRIVER.validate(health, path)
    return errors


CSI_NODE_STATUS = ConditionalStatusStrategy(_validate_storage_health)


def _validate_node_driver(driver: Object, seen: set[str], path: str) -> list[FieldError]:
    name, node = driver.get("name", ""), driver.get("nodeID", "")
    errors = validate_csi_driver_name(name, f"{path}.name")
    if not node:
        errors.append(required(f"{path}.nodeID"))
    if not names.fits(node, _NODE_ID_LENGTH):
        errors.append(invalid(f"{path}.nodeID", node, f"must be {_NODE_ID_LENGTH} characters or less"))
    errors += non_negative((driver.get("allocatable") or {}).get("count") or 0, f"{path}.allocatable.count")
    if name in seen:
        errors.append(duplicate(f"{path}.name", name))
    seen.add(name)
    keys: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        if not key:
            errors.append(required(path))
        if key in keys:
            errors.append(duplicate(path, key))
        keys.add(key)
        errors += label_name(key, path)
    return errors


def _validate_driver_updates(spec: Object, old_spec: Object) -> list[FieldError]:
    """Validates the drivers that had an entry before."""
    by_name: dict[str, list[Object]] = {}
    for driver in spec.get("drivers") or ():
        by_name.setdefault(driver.get("name", ""), []).append(driver)
    errors: list[FieldError] = []
    for before in old_spec.get("drivers") or ():
        for driver in by_name.get(before.get("name", ""), ()):
            errors += _validate_driver_update(driver, before)
    return errors


def _validate_driver_update(new: Object, old: Object) -> list[FieldError]:
    mutable = features.current().enabled("MutableCSINodeAllocatableCount")
    shown, before = (
        {
            "Name": item.get("name", ""),
            "NodeID": item.get("nodeID", ""),
            "TopologyKeys": item.get("topologyKeys"),
            "Allocatable": None if mutable else _allocatable(item),
        }
        for item in (new, old)
    )
    kept = semantic_deep_equal(shown, before) and (shown["Allocatable"] is None) == (before["Allocatable"] is None)
    return [] if kept else [immutable("spec.drivers", shown)]


def _allocatable(driver: Object) -> Object | None:
    found = driver.get("allocatable")
    return None if found is None else {"Count": found.get("count")}


class CSIStorageCapacityStrategy(RevalidatingStrategy):
    """The strategy of csistoragecapacities."""

    unconditional_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_storage_capacity(obj, allow_invalid_values=False)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_storage_capacity(obj, allow_invalid_values=bool(label_selector(old.get("nodeTopology"), "")))

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        topology, before = obj.get("nodeTopology"), old.get("nodeTopology")
        errors: list[FieldError] = []
        if (topology is None) != (before is None) or not semantic_deep_equal(topology, before):
            errors.append(immutable("nodeTopology", without_empty_fields(topology)))
        name = obj.get("storageClassName", "")
        return errors + immutable_field(name, old.get("storageClassName", ""), "storageClassName")

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return node_label_selector_warnings(obj.get("nodeTopology"), "nodeTopology")


def _validate_storage_capacity(obj: Object, *, allow_invalid_values: bool) -> list[FieldError]:
    errors = label_selector(obj.get("nodeTopology"), "nodeTopology", allow_invalid_values=allow_invalid_values)
    name, capacity = obj.get("storageClassName", ""), obj.get("capacity")
    errors += invalid_each("storageClassName", name, names.dns_subdomain(name))
    return errors if capacity is None else errors + non_negative_quantity(capacity, "capacity")


_METADATA_SIZE = 256 * 1024
_ERROR_LENGTH = 1024
_SPEC = "k8s.io/api/storage/v1.VolumeAttachmentSpec"


_VOLUME_ERROR = rules(
    "VolumeError",
    "validateVolumeError",
    *by_minor("message", (fits(_ERROR_LENGTH, _METADATA_SIZE), 0, 37), (fits(_ERROR_LENGTH), 37, NEVER)),
)


class VolumeAttachmentStrategy(Strategy):
    """The strategy of volumeattachments, whose spec is immutable."""

    delete_returns_object = True
    unconditional_update = False
    has_status = True
    checks_metadata_update = False
    checks_metadata_again = True
    validated_twice_until = 35

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _validate_attachment(obj, None)
        if not from_minor(36):  # ValidateVolumeAttachmentV1, of new ones only
            errors += [
                *validate_csi_driver_name(obj["spec"].get("attacher", ""), "spec.attacher"),
                *_validate_volume_name(obj["spec"]),
            ]
        return errors

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_attachment(obj, old)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_attachment(obj, old) + _validate_attachment_update(obj, old)


def _validate_attacher(name: str, path: str, *, is_new: bool) -> list[FieldError]:
    if not name:
        return [required(path)]
    if not (holds_declared_rules() and is_new):  # the declared rules do not see an update, which the immutable spec refuses first
        return validate_csi_driver_name(name, path) if from_minor(36) else []
    errors = [] if names.fits(name, names.LABEL_LENGTH) else [too_long(path, names.LABEL_LENGTH)]
    if len(name) > names.LABEL_LENGTH:
        errors = [too_long(path, names.LABEL_LENGTH, "characters")]
    return errors + invalid_each(path, name, names.caseless_dns_subdomain(name))


def _validate_attachment(obj: Object, old: Object | None) -> list[FieldError]:
    spec, status = obj["spec"], obj.get("status") or {}
    errors = _validate_attacher(spec.get("attacher", ""), "spec.attacher", is_new=old is None)
    errors += _validate_attachment_source(spec.get("source") or {}, "spec.source")
    node = spec.get("nodeName", "")
    errors += invalid_each("spec.nodeName", node, names.dns_subdomain(node))
    if total_size(status.get("attachmentMetadata") or {}) > _METADATA_SIZE:
        errors.append(too_long("status.attachmentMetadata", _METADATA_SIZE))
    for field in ("attachError", "detachError"):
        errors += _validate_volume_error(status.get(field) or {}, f"status.{field}")
    return errors + _validate_volume_name(spec) if from_minor(36) else errors


def _validate_volume_name(spec: Object) -> list[FieldError]:
    volume = (spec.get("source") or {}).get("persistentVolumeName")
    return [] if volume is None else invalid_each("spec.source.persistentVolumeName", volume, names.dns_subdomain(volume))


def _validate_attachment_source(source: Mapping[str, Any], path: str) -> list[FieldError]:
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


def _validate_volume_error(error: Object, path: str) -> list[FieldError]:
    code = error.get("errorCode")
    errors = _VOLUME_ERROR.validate(error, path)
    if code is not None and code < 0:
        errors += invalid_each(f"{path}.errorCode", code, names.in_range(code, 0, MAX_INT32))
    return errors


def _validate_attachment_update(obj: Object, old: Object) -> list[FieldError]:
    spec, old_spec = obj["spec"], old["spec"]
    if semantic_deep_equal_as(features.current().types.type_of(_SPEC), spec, old_spec):
        return []
    if holds_declared_rules():
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
    validated_twice_until = 35
    unconditional_update = False
    checks_metadata_update = False
    checks_metadata_again = True

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _validate_attachment(obj, old)


def _validate_attachment_status(obj: Object, old: Object) -> list[FieldError]:
    return _validate_attachment(obj, old) + _validate_attachment_update(obj, old)


STATUS = _AttachmentStatusStrategy(_validate_attachment_status, keeps_metadata=True, resets=(("metadata",), ("spec",)))
