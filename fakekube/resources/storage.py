"""The kinds of storage.k8s.io: classes of volumes and of their attributes, CSI drivers and what they tell
of nodes and capacities, attachments.

Specified by: pkg/apis/storage (validation, v1/defaults.go), pkg/api/storage, pkg/registry/storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.errors import FieldError
from fakekube.errors.field import duplicate, forbidden, immutable, invalid, required, too_long
from fakekube.resources import names
from fakekube.resources.checks import immutable_field, invalid_each, label_name, non_negative, one_of
from fakekube.resources.equality import same
from fakekube.resources.internal import as_internal, printed
from fakekube.resources.metadata import validate_object_meta
from fakekube.resources.node_labels import DEPRECATED, node_label_selector_warnings
from fakekube.resources.persistentvolumes import validate_volume_spec
from fakekube.resources.pods.volumes import csi_driver_name
from fakekube.resources.resource_lists import non_negative_quantity
from fakekube.resources.revalidated import Revalidated
from fakekube.resources.selectors import label_selector, topology_selector_term
from fakekube.resources.status import StatusStrategy
from fakekube.resources.strategy import Object, Strategy, WriteContext
from fakekube.schema.strings import bytes_of

__all__ = [
    "VOLUME_ATTACHMENT_STATUS",
    "CSIDriverStrategy",
    "CSINodeStrategy",
    "CSIStorageCapacityStrategy",
    "StorageClassStrategy",
    "VolumeAttachmentStrategy",
    "VolumeAttributesClassStrategy",
]

MAX_PARAMETERS = 512
PARAMETERS_SIZE = 256 * 1024
METADATA_SIZE = 256 * 1024
ERROR_LENGTH = 1024
NODE_ID_LENGTH = 256
MAX_INT32 = 2**31 - 1


# ---------------------------------------------------------------- classes


class StorageClassStrategy(Revalidated):
    """Classes of volumes: what a provisioner makes. Little of a class may change."""

    delete_returns_object = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _provisioner(obj.get("provisioner", ""), "provisioner")
        errors += _parameters(obj.get("parameters") or {}, "parameters")
        if obj.get("reclaimPolicy"):
            errors += one_of(obj["reclaimPolicy"], "reclaimPolicy", ("Delete", "Retain"))
        mode = obj.get("volumeBindingMode")
        modes = ("Immediate", "WaitForFirstConsumer")
        errors += [required("volumeBindingMode")] if mode is None else one_of(mode, "volumeBindingMode", modes)
        return errors + _topologies(obj.get("allowedTopologies") or ())

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if not same(obj.get("parameters"), old.get("parameters")):
            errors.append(immutable("parameters", obj.get("parameters")))
        for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
            errors += immutable_field(obj.get(field), old.get(field), field)
        return errors

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return [
            f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {DEPRECATED[item['key']]}"
            for index, term in enumerate(obj.get("allowedTopologies") or ())
            for position, item in enumerate(term.get("matchLabelExpressions") or ())
            if item.get("key") in DEPRECATED
        ]


def _provisioner(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    return label_name(name.lower(), path)


def _parameters(parameters: Mapping[str, str], path: str) -> list[FieldError]:
    if len(parameters) > MAX_PARAMETERS:
        return [too_long(path, MAX_PARAMETERS)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    return errors if _size(parameters) <= PARAMETERS_SIZE else [*errors, too_long(path, PARAMETERS_SIZE)]


def _size(mapping: Mapping[str, str]) -> int:
    return sum(len(bytes_of(key)) + len(bytes_of(value)) for key, value in mapping.items())


def _topologies(terms: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[dict[str, frozenset[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}]"
        found, wrong = topology_selector_term(term, path)
        errors += wrong
        repeats = sum(1 for other in seen if other == found)
        errors += [duplicate(f"{path}.matchLabelExpressions", "")] * repeats
        seen.append(found)
    return errors


class VolumeAttributesClassStrategy(Strategy):
    """Classes of what can be changed of a volume. A class itself does not change."""

    delete_returns_object = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors = _provisioner(obj.get("driverName", ""), "driverName")
        parameters = obj.get("parameters") or {}
        errors += _parameters(parameters, "parameters")
        return errors if parameters else [*errors, required("parameters", "must contain at least one key/value pair")]

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        changed = [field for field in ("driverName", "parameters") if not same(obj.get(field), old.get(field))]
        errors = [forbidden(field, f"updates to {field} are forbidden.") for field in changed]
        errors += validate_object_meta(obj["metadata"], False, self.name_errors)
        return errors + self.validate(context, obj)


# ---------------------------------------------------------------- CSI


TOKENS_HINT = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true "
    "to prevent possible logging of tokens in volume attributes"
)
LIMIT_SCALING_GATE = "VolumeLimitScaling"


class CSIDriverStrategy(Strategy):
    """CSI drivers: what they want of the kubelet and the scheduler."""

    delete_returns_object = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        if not context.services.enabled(LIMIT_SCALING_GATE):
            obj["spec"].pop("preventPodSchedulingIfMissing", None)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if old["spec"].get("preventPodSchedulingIfMissing") is None:
            self.prepare_for_create(context, obj)
        if not same(obj["spec"], old["spec"]):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        wanted = {
            "attachRequired": "attachedRequired",
            "podInfoOnMount": "podInfoOnMount",
            "storageCapacity": "storageCapacity",
        }
        errors = [required(f"spec.{shown}") for field, shown in wanted.items() if spec.get(field) is None]
        policy, period, in_secrets = (
            spec.get("fsGroupPolicy"),
            spec.get("nodeAllocatableUpdatePeriodSeconds"),
            spec.get("serviceAccountTokenInSecrets"),
        )
        if policy is not None:
            errors += one_of(policy, "spec.fsGroupPolicy", ("File", "None", "ReadWriteOnceWithFSType"))
        errors += _token_requests(spec.get("tokenRequests") or ())
        for mode in spec.get("volumeLifecycleModes") or ():
            errors += one_of(mode, "spec.volumeLifecycleModes", ("Persistent", "Ephemeral"), ordered=True)
        if spec.get("seLinuxMount") is None:
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
            *immutable_field(
                spec.get("volumeLifecycleModes"), old_spec.get("volumeLifecycleModes"), "spec.volumeLifecycleModes"
            ),
        ]

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        spec, old_spec = obj["spec"], (old or {}).get("spec") or {}
        tokens = spec.get("tokenRequests")
        if (
            not tokens
            or spec.get("serviceAccountTokenInSecrets") is not None
            or same(tokens, old_spec.get("tokenRequests"))
        ):
            return []
        return [TOKENS_HINT]


def _token_requests(requests: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(requests):
        path, audience, seconds = (
            f"spec.tokenRequests[{index}]",
            item.get("audience", ""),
            item.get("expirationSeconds"),
        )
        if audience in seen:
            errors.append(duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        if seconds is not None and seconds < 600:
            errors.append(
                invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
            )
        if seconds is not None and seconds > 2**32:
            text = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, text))
    return errors


class CSINodeStrategy(Strategy):
    """What the CSI drivers on a node tell of it. What a driver told stays, but for what fits on the node."""

    delete_returns_object = True
    unconditional_update = False
    checks_metadata_update = False
    checks_metadata_again = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, driver in enumerate(obj["spec"].get("drivers") or ()):
            errors += _node_driver(driver, seen, f"spec.drivers[{index}]")
        return errors

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = self.validate(context, obj)
        for before in old["spec"].get("drivers") or ():
            for driver in obj["spec"].get("drivers") or ():
                if driver.get("name") == before.get("name"):
                    errors += _changed_driver(driver, before)
        return errors


def _node_driver(driver: Object, seen: set[str], path: str) -> list[FieldError]:
    name, node = driver.get("name", ""), driver.get("nodeID", "")
    errors = csi_driver_name(name, f"{path}.name")
    if not node:
        errors.append(required(f"{path}.nodeID"))
    if not names.fits(node, NODE_ID_LENGTH):
        errors.append(invalid(f"{path}.nodeID", node, f"must be {NODE_ID_LENGTH} characters or less"))
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


def _changed_driver(new: Object, old: Object) -> list[FieldError]:
    shown, before = (
        {
            "Name": item.get("name", ""),
            "NodeID": item.get("nodeID", ""),
            "TopologyKeys": item.get("topologyKeys"),
            "Allocatable": None,
        }
        for item in (new, old)
    )
    return [] if same(shown, before) else [immutable("spec.drivers", shown)]


class CSIStorageCapacityStrategy(Revalidated):
    """How much a driver can still make of a class, where."""

    unconditional_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _storage_capacity(obj, tolerant=False)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return _storage_capacity(obj, tolerant=bool(label_selector(old.get("nodeTopology"), "")))

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        topology, before = obj.get("nodeTopology"), old.get("nodeTopology")
        errors: list[FieldError] = []
        if (topology is None) != (before is None) or not same(topology, before):
            errors.append(immutable("nodeTopology", printed(topology)))
        name = obj.get("storageClassName", "")
        return errors + immutable_field(name, old.get("storageClassName", ""), "storageClassName")

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return node_label_selector_warnings(obj.get("nodeTopology"), "nodeTopology")


def _storage_capacity(obj: Object, *, tolerant: bool) -> list[FieldError]:
    errors = label_selector(obj.get("nodeTopology"), "nodeTopology", allow_invalid_values=tolerant)
    name, capacity = obj.get("storageClassName", ""), obj.get("capacity")
    errors += invalid_each("storageClassName", name, names.dns_subdomain(name))
    return errors if capacity is None else errors + non_negative_quantity(capacity, "capacity")


# ---------------------------------------------------------------- attachments


class VolumeAttachmentStrategy(Strategy):
    """A volume is to be attached to a node. Only the status changes."""

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
    errors = csi_driver_name(spec.get("attacher", ""), "spec.attacher")
    errors += _attached(spec.get("source") or {}, "spec.source")
    node = spec.get("nodeName", "")
    errors += invalid_each("spec.nodeName", node, names.dns_subdomain(node))
    if _size(status.get("attachmentMetadata") or {}) > METADATA_SIZE:
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
    errors: list[FieldError] = []
    if not names.fits(error.get("message", ""), ERROR_LENGTH):
        errors.append(too_long(f"{path}.message", METADATA_SIZE))
    if code is not None and code < 0:
        errors += invalid_each(f"{path}.errorCode", code, names.in_range(code, 0, MAX_INT32))
    return errors


def _changed_attachment(obj: Object, old: Object) -> list[FieldError]:
    spec, old_spec = obj["spec"], old["spec"]
    if same(spec, old_spec):
        return []
    source = spec.get("source") or {}
    inline = source.get("inlineVolumeSpec")
    shown = {
        "Attacher": spec.get("attacher", ""),
        "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": None if inline is None else as_internal("PersistentVolumeSpec", inline),
        },
        "NodeName": spec.get("nodeName", ""),
    }
    return [immutable("spec", shown)]


class _AttachmentStatus(StatusStrategy):
    unconditional_update = False
    checks_metadata_update = False
    checks_metadata_again = True


def _validate_attachment_status(obj: Object, old: Object) -> list[FieldError]:
    return _attachment(obj) + _changed_attachment(obj, old)


VOLUME_ATTACHMENT_STATUS = _AttachmentStatus(
    _validate_attachment_status, keeps_metadata=True, resets=(("metadata",), ("spec",))
)
