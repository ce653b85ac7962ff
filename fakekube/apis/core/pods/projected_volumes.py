"""Validation of projected volumes, and of the files that volumes make of objects and of pod fields.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported, required
from fakekube.apis.core.pods.environment import VOLUME_FIELDS, object_field, resource_field
from fakekube.apis.validation.paths import non_reserved
from fakekube.apis.validation.selectors import label_selector
from fakekube.apis.validation.to_internal import to_internal

Part = Mapping[str, Any]

MIN_TOKEN_SECONDS = 10 * 60
MAX_TOKEN_SECONDS = 1 << 32


def file_mode(part: Part, field: str, path: str) -> list[FieldError]:
    """Validates permission bits."""
    mode = part.get(field)
    if mode is None or 0 <= mode <= 0o777:
        return []
    text = "must be a number between 0 and 0777 (octal), both inclusive"
    return [invalid(f"{path}.{field}", mode, text)]


def key_to_path(item: Part, path: str) -> list[FieldError]:
    """Validates the mapping of a key of an object to a file."""
    errors = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    return errors + non_reserved(item.get("path", ""), f"{path}.path") + file_mode(item, "mode", path)


def downward_file(item: Part, path: str) -> list[FieldError]:
    """Validates the mapping of a field of the pod, or a resource of a container, to a file
    (validateDownwardAPIVolumeFile).
    """
    target = item.get("path", "")
    errors = [] if target else [required(f"{path}.path")]
    errors += non_reserved(target, f"{path}.path")
    if "fieldRef" in item:
        errors += object_field(item["fieldRef"], f"{path}.fieldRef", VOLUME_FIELDS)
        if "resourceFieldRef" in item:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", text))
    elif "resourceFieldRef" in item:
        errors += resource_field(item["resourceFieldRef"], f"{path}.resourceFieldRef", of_volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + file_mode(item, "mode", path)


def projected_volume(volume: Part, path: str, *, allow_token_paths: bool = False) -> list[FieldError]:
    """Validates a projected volume (validateProjectedVolumeSource)."""
    errors = file_mode(volume, "defaultMode", path)
    taken: set[str] = set()
    for index, source in enumerate(volume.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for field in ("secret", "configMap"):
            if field in source:
                errors += _object(source[field], taken, path, f"{where}.{field}")
        if "downwardAPI" in source:
            errors += _downward(source["downwardAPI"], taken, path, f"{where}.downwardAPI")
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            errors += _token(token, path, f"{where}.serviceAccountToken", allow_token_paths)
        if "clusterTrustBundle" in source:
            errors += _trust_bundle(source["clusterTrustBundle"], taken, path, f"{where}.clusterTrustBundle")
        if "podCertificate" in source:
            errors += _pod_certificate(source["podCertificate"], taken, path, f"{where}.podCertificate")
        if len(source) > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return errors


def _free(target: str, taken: set[str], shown: str, path: str) -> list[FieldError]:
    """Validates that no two files of a volume have the same path."""
    if not target:
        return []
    if target in taken:
        return [invalid(path, shown, "conflicting duplicate paths")]
    taken.add(target)
    return []


def _object(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    name = source.get("name", "")
    errors = [] if name else [required(f"{path}.name")]
    for index, item in enumerate(source.get("items") or ()):
        errors += key_to_path(item, f"{path}.items[{index}]")
        errors += _free(item.get("path", ""), taken, name, volume_path)
    return errors


def _downward(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for item in source.get("items") or ():
        target = item.get("path", "")
        errors += downward_file(item, path) + _free(target, taken, target, volume_path)
    return errors


def _trust_bundle(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    from fakekube.apis.certificates.certificatesigningrequests import signer_name
    from fakekube.apis.certificates.clustertrustbundles import bundle_name_errors

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
        errors += signer_name(signer, f"{path}.signerName")
        if source.get("labelSelector") is not None:
            errors += label_selector(source["labelSelector"], f"{path}.labelSelector")
    else:
        errors.append(required(path, "either name or signerName must be specified"))
    if not target:
        errors.append(required(f"{path}.path"))
    errors += non_reserved(target, f"{path}.path")
    return errors + _free(target, taken, target, volume_path)


def _signer_of(bundle: str) -> str:
    """Returns the signer that the name of a trust bundle begins with (extractSignerNameFromClusterTrustBundleName)."""
    prefix, colon, _ = bundle.rpartition(":")
    return prefix.replace(":", "/") if colon else ""


_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def _pod_certificate(source: Part, taken: set[str], volume_path: str, path: str) -> list[FieldError]:
    from fakekube.apis.certificates import podcertificaterequests as requests
    from fakekube.apis.certificates.certificatesigningrequests import signer_name

    signer, seconds, kind = source.get("signerName", ""), source.get("maxExpirationSeconds"), source.get("keyType", "")
    errors = signer_name(signer, f"{path}.signerName")
    errors += requests.validate_user_annotations(source.get("userAnnotations") or {}, f"{path}.userAnnotations")
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
        errors += non_reserved(source[field], f"{path}.{field}") + _free(source[field], taken, source[field], volume_path)
    if not given:
        errors.append(required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
    return errors


def _token(token: Part, volume_path: str, path: str, tolerate_path: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds, target = token.get("expirationSeconds", 0), token.get("path", "")
    if seconds < MIN_TOKEN_SECONDS:
        text = "may not specify a duration less than 10 minutes"
        errors.append(invalid(f"{path}.expirationSeconds", seconds, text))
    if seconds > MAX_TOKEN_SECONDS:
        text = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{path}.expirationSeconds", seconds, text))
    if not target:
        errors.append(required(f"{volume_path}.path"))
    elif not tolerate_path:
        errors += non_reserved(target, f"{volume_path}.path")
    return errors
