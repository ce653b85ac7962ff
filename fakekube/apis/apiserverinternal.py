"""StorageVersions: in which versions each API server stores the objects of a resource, and can read them.

Specified by: pkg/apis/apiserverinternal/validation, pkg/registry/apiserverinternal/storageversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each
from fakekube.base.objects import Object, Part

_EMPTY: Final = "must be non-empty"
#: What a version with two slashes is not.
_FORM: Final = (
    "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
)


class StorageVersionStrategy(Strategy):
    """The strategy of storageversions."""

    has_status = True
    unconditional_update = False
    checks_metadata_update = False

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        group, dot, resource = name.rpartition(".")
        if not dot:
            return ["name must be in the form of <group>.<resource>"]
        found = [f"the group segment {text}" for text in names.dns_subdomain(group)]
        return found + [f"the resource segment {text}" for text in names.dns_1035_label(resource)]

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return []


def _validate_status(obj: Object, _old: Object) -> list[FieldError]:
    status: Part = obj.get("status") or {}
    servers: Sequence[Part] = status.get("storageVersions") or ()
    errors: list[FieldError] = []
    held: set[str] = set()
    for index, server in enumerate(servers):
        path, name = f"status.storageVersions[{index}]", server.get("apiServerID", "")
        if name in held:
            errors.append(duplicate(f"{path}.apiServerID", name))
        held.add(name)
        errors += _validate_server(server, path)
    errors += _validate_common_version(status, {server.get("encodingVersion", "") for server in servers})
    return errors + _validate_conditions(status.get("conditions") or ())


def _validate_server(server: Part, path: str) -> list[FieldError]:
    """Validates what one server says (validateServerStorageVersion)."""
    name, encoding = server.get("apiServerID", ""), server.get("encodingVersion", "")
    decodable: Sequence[str] = server.get("decodableVersions") or ()
    errors = invalid_each(f"{path}.apiServerID", name, names.dns_subdomain(name))
    errors += _validate_api_version(encoding, f"{path}.encodingVersion")
    for index, version in enumerate(decodable):
        errors += _validate_api_version(version, f"{path}.decodableVersions[{index}]")
    if encoding not in decodable:
        text = f"decodableVersions must include encodingVersion {encoding}"
        errors.append(invalid(f"{path}.decodableVersions", server.get("decodableVersions"), text))
    for index, version in enumerate(server.get("servedVersions") or ()):
        where = f"{path}.servedVersions[{index}]"
        errors += _validate_api_version(version, where)
        if version not in decodable:
            told = f"[{' '.join(decodable)}]"
            text = f"individual served version : {version} must be included in decodableVersions : {told}"
            errors.append(invalid(where, version, text))
    return errors


def _validate_api_version(version: str, path: str) -> list[FieldError]:
    """Validates a version, or a group and a version (isValidAPIVersion)."""
    *groups, last = version.split("/")
    if len(groups) > 1:
        return [invalid(path, version, _FORM)]
    found = [f"group part: {text}" for group in groups for text in (names.dns_subdomain(group) if group else [_EMPTY])]
    found += [f"version part: {text}" for text in (names.dns_1035_label(last) if last else [_EMPTY])]
    return [invalid(path, version, ",".join(found))] if found else []


def _validate_common_version(status: Part, versions: set[str]) -> list[FieldError]:
    """Validates that the servers agree on the version that is said to be common (validateCommonVersion)."""
    said, path = status.get("commonEncodingVersion"), "status.commonEncodingVersion"
    if len(versions) != 1:
        text = (
            "should be nil if servers do not agree on the same encoding version, "
            "or if there is no server reporting the supported versions yet"
        )
        return [] if said is None else [invalid(path, said, text)]
    (common,) = versions
    if said is None:
        return [invalid(path, None, f"the common encoding version is {common}")]
    return [] if said == common else [invalid(path, said, f"the actual common encoding version is {common}")]


def _validate_conditions(conditions: Sequence[Part]) -> list[FieldError]:
    """Validates the conditions, whose paths lack their field (validateStorageVersionCondition)."""
    errors: list[FieldError] = []
    held: dict[str, int] = {}
    for index, condition in enumerate(conditions):
        path, type_, state = f"status[{index}]", condition.get("type", ""), condition.get("status", "")
        if type_ in held:
            text = f"the type of the condition is not unique, it also appears in conditions[{held[type_]}]"
            errors.append(invalid(f"{path}.type", type_, text))
        held[type_] = index
        errors += invalid_each(f"{path}.type", type_, names.label_key(type_))
        errors += invalid_each(f"{path}.status", state, names.label_key(state))
        errors += [required(f"{path}.{field}") for field in ("reason", "message") if not condition.get(field)]
    return errors


STORAGE_VERSION_STATUS = ConditionalStatusStrategy(_validate_status)
