"""Validation of the volumes of a pod: exactly one source each; projected volumes, and the files that volumes make of objects.

`SOURCES` has a row for every source but emptyDir, in the order of the real server. The checks of sources that persistent
volumes share are public.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, invalid, not_supported, required, too_long
from fakekube.apis.core.pods.environment import (
    VOLUME_FIELDS,
    validate_container_resource_field_selector,
    validate_object_field_selector,
)
from fakekube.apis.core.pods.security_context import validate_pull_policy
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import (
    ABSOLUTE_PATH,
    descending,
    invalid_each,
    no_backsteps,
    non_reserved,
    one_of,
    token_seconds,
)
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.selectors import label_selector
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.golang.strconv import MAX_INT32, go_quote
from fakekube.base.objects import Part

Check = Callable[[Part, str], list[FieldError]]


def needs(*fields: str) -> Check:
    """Returns the check of a source that has these required fields."""

    def check(source: Part, path: str) -> list[FieldError]:
        return [required(f"{path}.{field}") for field in fields if not source.get(field)]

    return check


def _validate_partition(source: Part, path: str) -> list[FieldError]:
    partition = source.get("partition", 0)
    if 0 <= partition <= 255:
        return []
    return [invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive")]


def validate_gce_persistent_disk(source: Part, path: str) -> list[FieldError]:
    return needs("pdName")(source, path) + _validate_partition(source, path)


def validate_aws_elastic_block_store(source: Part, path: str) -> list[FieldError]:
    return needs("volumeID")(source, path) + _validate_partition(source, path)


_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip


def validate_host_path(source: Part, path: str) -> list[FieldError]:
    target, kind = source.get("path", ""), source.get("type")
    if not target:
        return [required(f"{path}.path")]
    errors = no_backsteps(target, f"{path}.path")
    return errors if kind is None else errors + one_of(kind, f"{path}.type", _HOST_PATH_TYPES)


def _validate_git_repo(source: Part, path: str) -> list[FieldError]:
    directory = descending(source.get("directory", ""), f"{path}.directory")
    return needs("repository")(source, path) + directory


def validate_nfs(source: Part, path: str) -> list[FieldError]:
    errors = needs("server", "path")(source, path)
    target = source.get("path", "")
    if not target.startswith("/"):
        errors.append(invalid(f"{path}.path", target, ABSOLUTE_PATH))
    return errors


_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)\Z", re.ASCII).search,
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}").fullmatch,
}


def _validate_iscsi_name(name: str, path: str) -> list[FieldError]:
    matches = _ISCSI_NAMES.get(name[:3])
    if matches is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if matches(name) else [invalid(path, name, "must be valid format")]


def validate_iscsi(source: Part, path: str) -> list[FieldError]:
    errors = needs("targetPortal")(source, path)
    name, lun, initiator = source.get("iqn", ""), source.get("lun", 0), source.get("initiatorName")
    errors += _validate_iscsi_name(name, f"{path}.iqn") if name else [required(f"{path}.iqn")]
    errors += invalid_each(f"{path}.lun", lun, names.in_range(lun, 0, 255))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and "secretRef" not in source:
        errors.append(required(f"{path}.secretRef"))
    return errors if initiator is None else errors + _validate_iscsi_name(initiator, f"{path}.initiatorname")


ISCSI_NAMES_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."
)
MANY_TYPES, NO_TYPE = "may not specify more than 1 volume type", "must specify a volume type"


def _validate_iscsi_initiator_length(name: str, source: Part, path: str) -> list[FieldError]:
    """Validates the total length of volume name and portal, if an initiator is set; `path` is that of the volume."""
    if "initiatorName" not in source or names.fits(f"{name}:{source.get('targetPortal', '')}", 64):
        return []
    return [invalid(f"{path}.name", name, ISCSI_NAMES_TOO_LONG)]


def validate_flocker(source: Part, path: str) -> list[FieldError]:
    name, identifier = source.get("datasetName", ""), source.get("datasetUUID", "")
    errors: list[FieldError] = []
    if not name and not identifier:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and identifier:
        text = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", text))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def _validate_secret_reference_name(source: Part, path: str) -> list[FieldError]:
    """Validates that a reference to a secret of the same namespace has a name."""
    reference = source.get("secretRef")
    return [required(f"{path}.secretRef.name")] if reference is not None and not reference.get("name") else []


def _validate_cinder(source: Part, path: str) -> list[FieldError]:
    return needs("volumeID")(source, path) + _validate_secret_reference_name(source, path)


_PAIRS = "must be a host:port pair or multiple pairs separated by commas"


def validate_quobyte(source: Part, path: str) -> list[FieldError]:
    registry = source.get("registry", "")
    if not registry:
        errors = [required(f"{path}.registry", _PAIRS)]
    elif not names.fits(source.get("tenant", ""), 64):
        errors = [required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")]
    else:
        wrong = [pair for pair in registry.split(",") if not _is_host_port(pair)]
        errors = [invalid(f"{path}.registry", registry, _PAIRS) for _ in wrong]
    return errors + needs("volume")(source, path)


_host_port_matches = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*):[^\[\]:]*").fullmatch


def _is_host_port(text: str) -> bool:
    """Reports whether net.SplitHostPort of Go accepts the text."""
    return _host_port_matches(text) is not None


def validate_fibre_channel(source: Part, path: str) -> list[FieldError]:
    targets, identifiers, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    errors: list[FieldError] = []
    if not targets and not identifiers:
        text = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(f"{path}.targetWWNs", text))
    if targets and identifiers:
        text = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", targets, text))
    if targets and lun is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif targets:
        errors += invalid_each(f"{path}.lun", lun, names.in_range(lun or 0, 0, 255))
    return errors


def validate_flex_volume(source: Part, path: str) -> list[FieldError]:
    errors = needs("driver")(source, path)
    for key in source.get("options") or ():
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, text))
    return errors


_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def validate_azure_disk(source: Part, path: str) -> list[FieldError]:
    errors = needs("diskName", "diskURI")(source, path)
    uri, caching, kind = source.get("diskURI", ""), source.get("cachingMode"), source.get("kind")
    if caching is not None:
        errors += one_of(caching, f"{path}.cachingMode", ("None", "ReadOnly", "ReadWrite"))
    if kind is not None:
        errors += one_of(kind, f"{path}.kind", ("Dedicated", "Managed", "Shared"))
        start, form = ("/subscriptions/", _MANAGED_DISK) if kind == "Managed" else ("https://", _BLOB_DISK)
        if not uri.startswith(start):
            errors.append(not_supported(f"{path}.diskURI", uri, [form]))
    return errors


def validate_storage_os(source: Part, path: str) -> list[FieldError]:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    errors = invalid_each(f"{path}.volumeName", name, names.dns_label(name)) if name else needs("volumeName")(source, path)
    if namespace:
        errors += invalid_each(f"{path}.volumeNamespace", namespace, names.dns_label(namespace))
    return errors + _validate_secret_reference_name(source, path)


def validate_csi_driver_name(name: str, path: str) -> list[FieldError]:
    """Validates the name of a CSI driver: a domain of at most 63 bytes, in any letter case (ValidateCSIDriverName)."""
    errors = [] if name else [required(path)]
    if not name and from_minor(35):
        return errors
    errors += [] if names.fits(name, 63) else [too_long(path, 63)]
    return errors + invalid_each(path, name, names.dns_subdomain(name.lower()))


def _validate_csi(source: Part, path: str) -> list[FieldError]:
    errors = validate_csi_driver_name(source.get("driver", ""), f"{path}.driver")
    reference = source.get("nodePublishSecretRef")
    if reference is None:
        return errors
    name = reference.get("name", "")
    if not name:
        return [*errors, required(f"{path}.nodePublishSecretRef.name")]
    return errors + invalid_each(f"{path}.name", name, names.dns_subdomain(name))


def _object_volume(name_field: str) -> Check:
    """Returns the check of a volume with the keys of a config map or secret as files."""

    def check(source: Part, path: str) -> list[FieldError]:
        errors = needs(name_field)(source, path) + _validate_mode_and_user(source, path, *_DEFAULTS)
        for index, item in enumerate(source.get("items") or ()):
            errors += _validate_key_to_path(item, f"{path}.items[{index}]")
        return errors

    return check


def _validate_downward_api(source: Part, path: str) -> list[FieldError]:
    errors = _validate_mode_and_user(source, path, *_DEFAULTS)
    for item in source.get("items") or ():
        errors += _validate_downward_file(item, path)
    return errors


@dataclass(slots=True, frozen=True)
class VolumeContext:
    """The context of a volume that the check of its source needs."""

    name: str
    """The name of the volume."""
    pod_name: str
    """The name of the pod; empty in templates."""
    options: ValidationOptions


def _validate_ephemeral(source: Part, path: str, volume_context: VolumeContext) -> list[FieldError]:
    from fakekube.apis.core.persistentvolumeclaims import validate_claim_template

    template = source.get("volumeClaimTemplate")
    if template is None:
        errors = [required(f"{path}.volumeClaimTemplate")]
    else:
        errors = validate_claim_template(template, f"{path}.volumeClaimTemplate")
    if volume_context.pod_name and volume_context.name:
        claim = f"{volume_context.pod_name}-{volume_context.name}"
        where = f"{path.removesuffix('.ephemeral')}.name"
        details = [f"PVC name {go_quote(claim)}: {text}" for text in names.dns_subdomain(claim)]
        errors += invalid_each(where, volume_context.name, details)
    return errors


def _validate_image(source: Part, path: str, volume_context: VolumeContext) -> list[FieldError]:
    errors = needs("reference")(source, path) if volume_context.options.of_pod else []
    return errors + validate_pull_policy(source.get("pullPolicy", ""), f"{path}.pullPolicy")


def _validate_projected_source(source: Part, path: str, volume_context: VolumeContext) -> list[FieldError]:
    return _validate_projected_volume(source, path, allow_token_paths=volume_context.options.token_paths)


class _Source(NamedTuple):
    check: Check | Callable[[Part, str, VolumeContext], list[FieldError]]
    takes_context: bool = False
    """Whether the check takes the VolumeContext."""
    shown: str = ""
    """The name in paths, if it differs."""
    surplus: str = ""
    """The name in the path of the error about a second source, if it differs."""


SOURCES: Mapping[str, _Source] = {
    "hostPath": _Source(validate_host_path),
    "gitRepo": _Source(_validate_git_repo),
    "gcePersistentDisk": _Source(validate_gce_persistent_disk, shown="persistentDisk"),
    "awsElasticBlockStore": _Source(validate_aws_elastic_block_store),
    "secret": _Source(_object_volume("secretName")),
    "nfs": _Source(validate_nfs),
    "iscsi": _Source(validate_iscsi),
    "glusterfs": _Source(needs("endpoints", "path")),
    "flocker": _Source(validate_flocker),
    "persistentVolumeClaim": _Source(needs("claimName")),
    "rbd": _Source(needs("monitors", "image")),
    "cinder": _Source(_validate_cinder),
    "cephfs": _Source(needs("monitors"), surplus="cephFS"),
    "quobyte": _Source(validate_quobyte),
    "downwardAPI": _Source(_validate_downward_api, surplus="downwarAPI"),
    "fc": _Source(validate_fibre_channel),
    "flexVolume": _Source(validate_flex_volume),
    "configMap": _Source(_object_volume("name")),
    "azureFile": _Source(needs("secretName", "shareName")),
    "vsphereVolume": _Source(needs("volumePath")),
    "photonPersistentDisk": _Source(needs("pdID")),
    "portworxVolume": _Source(needs("volumeID")),
    "azureDisk": _Source(validate_azure_disk),
    "storageos": _Source(validate_storage_os),
    "projected": _Source(_validate_projected_source, takes_context=True),
    "scaleIO": _Source(needs("gateway", "system", "volumeName")),
    "csi": _Source(_validate_csi),
    "ephemeral": _Source(_validate_ephemeral, takes_context=True),
    "image": _Source(_validate_image, takes_context=True),
}


def validate_volumes(
    items: Sequence[Part], pod_name: str, path: str, options: ValidationOptions
) -> tuple[dict[str, Part], list[FieldError]]:
    """Returns the volumes that containers may mount, by name, and the errors (ValidateVolumes).

    `pod_name` is empty in templates.
    """
    errors: list[FieldError] = []
    usable: dict[str, Part] = {}
    if not items:
        return usable, errors
    created = _created_claims(items, pod_name)
    for index, item in enumerate(items):
        name = item.get("name", "")
        found = _validate_volume(item, VolumeContext(name, pod_name, options), f"{path}[{index}]")
        if name in usable:
            found.append(duplicate(f"{path}[{index}].name", name))
        if not found:
            usable[name] = item
        errors += found
        claim = item.get("persistentVolumeClaim", {}).get("claimName")
        if claim in created:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{path}[{index}].persistentVolumeClaim.claimName", claim, text))
    return usable, errors


def _created_claims(items: Sequence[Part], pod_name: str) -> set[str]:
    """Returns the names of the claims that are created for ephemeral volumes."""
    if not pod_name:
        return set()
    return {f"{pod_name}-{item.get('name', '')}" for item in items if "ephemeral" in item}


def _validate_volume(volume: Part, volume_context: VolumeContext, path: str) -> list[FieldError]:
    errors = _validate_volume_source(volume, volume_context, path)
    if not volume_context.name:
        return [*errors, required(f"{path}.name")]
    return errors + invalid_each(f"{path}.name", volume_context.name, names.dns_label(volume_context.name))


_MAX_EMPTY_DIR_MODE = 0o1777


def _validate_volume_source(volume: Part, volume_context: VolumeContext, path: str) -> list[FieldError]:
    """Validates that there is exactly one source (validateVolumeSource)."""
    errors: list[FieldError] = []
    found = "emptyDir" in volume
    if found and volume["emptyDir"].get("sizeLimit", "").startswith("-"):
        text = "SizeLimit field must be a valid resource quantity"
        errors.append(forbidden(f"{path}.emptyDir.sizeLimit", text))
    if found and not 0 <= volume["emptyDir"].get("mode", 0) <= _MAX_EMPTY_DIR_MODE:
        text = "must be a number between 0 and 01777 (octal), both inclusive"
        errors.append(invalid(f"{path}.emptyDir.mode", volume["emptyDir"]["mode"], text))
    for field, row in SOURCES.items():
        if field not in volume:
            continue
        if found:
            where = f"{path}.{row.surplus or field}"
            errors.append(forbidden(where, MANY_TYPES))
        else:
            found = True
            rest = (volume_context,) if row.takes_context else ()
            errors += row.check(volume[field], f"{path}.{row.shown or field}", *rest)
        if field == "iscsi":
            errors += _validate_iscsi_initiator_length(volume_context.name, volume[field], path)
    return errors if found else [*errors, required(path, NO_TYPE)]


#: The fields of a volume that are the defaults of its files.
_DEFAULTS = ("defaultMode", "defaultUser")


def _validate_mode_and_user(part: Part, path: str, mode: str = "mode", user: str = "user") -> list[FieldError]:
    """Validates permission bits and the owner of files."""
    errors, bits = _validate_user(part, path, user), part.get(mode)
    if bits is None or 0 <= bits <= 0o777:
        return errors
    text = "must be a number between 0 and 0777 (octal), both inclusive"
    return [invalid(f"{path}.{mode}", bits, text), *errors]


def _validate_user(part: Part, path: str, field: str = "user") -> list[FieldError]:
    """Validates the owner of files (validateUserField)."""
    user = part.get(field)
    return [] if user is None else invalid_each(f"{path}.{field}", user, names.in_range(user, 0, MAX_INT32))


def _validate_key_to_path(item: Part, path: str) -> list[FieldError]:
    """Validates the mapping of a key of an object to a file."""
    errors = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    return errors + non_reserved(item.get("path", ""), f"{path}.path") + _validate_mode_and_user(item, path)


def _validate_downward_file(item: Part, path: str) -> list[FieldError]:
    """Validates the mapping of a field of the pod, or a resource of a container, to a file (validateDownwardAPIVolumeFile)."""
    target = item.get("path", "")
    errors = [] if target else [required(f"{path}.path")]
    errors += non_reserved(target, f"{path}.path")
    if "fieldRef" in item:
        errors += validate_object_field_selector(item["fieldRef"], f"{path}.fieldRef", VOLUME_FIELDS)
        if "resourceFieldRef" in item:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", text))
    elif "resourceFieldRef" in item:
        errors += validate_container_resource_field_selector(item["resourceFieldRef"], f"{path}.resourceFieldRef", of_volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _validate_mode_and_user(item, path)


def _validate_projected_volume(volume: Part, path: str, *, allow_token_paths: bool = False) -> list[FieldError]:
    """Validates a projected volume (validateProjectedVolumeSource)."""
    errors = _validate_mode_and_user(volume, path, *_DEFAULTS)
    taken: set[str] = set()
    for index, source in enumerate(volume.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for field in ("secret", "configMap"):
            if field in source:
                errors += _validate_projected_object(source[field], taken, path, f"{where}.{field}")
        if "downwardAPI" in source:
            errors += _validate_projected_downward_api(source["downwardAPI"], taken, path, f"{where}.downwardAPI")
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            errors += _validate_token(token, path, f"{where}.serviceAccountToken", allow_token_paths)
        if "clusterTrustBundle" in source:
            errors += _validate_trust_bundle(source["clusterTrustBundle"], taken, path, f"{where}.clusterTrustBundle")
        if "podCertificate" in source:
            errors += _validate_pod_certificate(source["podCertificate"], taken, path, f"{where}.podCertificate")
        if len(source) > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return errors


def _check_unique(target: str, taken: set[str], shown: str, path: str) -> list[FieldError]:
    """Validates that no two files of a volume have the same path."""
    if not target:
        return []
    if target in taken:
        return [invalid(path, shown, "conflicting duplicate paths")]
    taken.add(target)
    return []


def _validate_projected_object(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    name = source.get("name", "")
    errors = [] if name else [required(f"{path}.name")]
    for index, item in enumerate(source.get("items") or ()):
        errors += _validate_key_to_path(item, f"{path}.items[{index}]")
        errors += _check_unique(item.get("path", ""), taken, name, volume_path)
    return errors


def _validate_projected_downward_api(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for item in source.get("items") or ():
        target = item.get("path", "")
        errors += _validate_downward_file(item, path) + _check_unique(target, taken, target, volume_path)
    return errors


def _validate_trust_bundle(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    from fakekube.apis.certificates.signers import bundle_name_errors, validate_signer_name

    name, signer, target = source.get("name"), source.get("signerName"), source.get("path", "")
    errors: list[FieldError] = []
    if name is not None and signer is not None:
        errors.append(
            invalid(path, to_internal("ClusterTrustBundleProjection", source), "only one of name and signerName may be used")
        )
    elif name is not None:
        if not name:
            errors.append(required(f"{path}.name", "must be a valid object name"))
        problems = bundle_name_errors(_signer_of(name), name)
        errors += [invalid(f"{path}.name", name, f"not a valid clustertrustbundlename: {text}") for text in problems]
        if source.get("labelSelector") is not None:
            shown, text = source["labelSelector"], "labelSelector must be unset if name is specified"
            errors.append(invalid(f"{path}.labelSelector", shown, text))
    elif signer is not None:
        if not signer:
            errors.append(required(f"{path}.signerName", "must be a valid signer name"))
        errors += validate_signer_name(signer, f"{path}.signerName")
        if source.get("labelSelector") is not None:
            errors += label_selector(source["labelSelector"], f"{path}.labelSelector")
    else:
        errors.append(required(path, "either name or signerName must be specified"))
    if not target:
        errors.append(required(f"{path}.path"))
    errors += _validate_user(source, path) + non_reserved(target, f"{path}.path")
    return errors + _check_unique(target, taken, target, volume_path)


def _signer_of(bundle: str) -> str:
    """Returns the signer that the name of a trust bundle begins with (extractSignerNameFromClusterTrustBundleName)."""
    prefix, colon, _ = bundle.rpartition(":")
    return prefix.replace(":", "/") if colon else ""


_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def _validate_pod_certificate(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    from fakekube.apis.certificates import podcertificaterequests as requests
    from fakekube.apis.certificates.signers import validate_signer_name

    signer, seconds, kind = source.get("signerName", ""), source.get("maxExpirationSeconds"), source.get("keyType", "")
    errors = validate_signer_name(signer, f"{path}.signerName")
    errors += requests.validate_user_annotations(source.get("userAnnotations") or {}, f"{path}.userAnnotations")
    errors += _validate_user(source, path)
    if kind not in _KEY_TYPES:
        errors.append(not_supported(f"{path}.keyType", kind, _KEY_TYPES))
    if seconds is not None:
        where = f"{path}.maxExpirationSeconds"
        longest = requests.MAX_SECONDS_OF_KUBERNETES if requests.is_kubernetes_signer(signer) else requests.MAX_SECONDS
        if seconds < requests.MIN_SECONDS:
            text = f"if provided, maxExpirationSeconds must be >= {requests.MIN_SECONDS}"
            errors.append(invalid(where, seconds, text))
        if seconds > longest:
            errors.append(invalid(where, seconds, f"if provided, maxExpirationSeconds must be <= {longest}"))
    given = [field for field in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(field)]
    for field in given:
        errors += non_reserved(source[field], f"{path}.{field}") + _check_unique(source[field], taken, source[field], volume_path)
    if not given:
        errors.append(required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
    return errors


def _validate_token(token: Part, volume_path: str, path: str, tolerate_path: bool) -> list[FieldError]:
    errors = token_seconds(token.get("expirationSeconds", 0), f"{path}.expirationSeconds")
    target = token.get("path", "")
    if not target:
        errors.append(required(f"{volume_path}.path"))
    elif not tolerate_path:
        errors += non_reserved(target, f"{volume_path}.path")
    return errors + _validate_user(token, path)
