"""StorageVersionMigrations: requests to write all objects of a resource anew, in the present storage version.

Specified by: pkg/apis/storagemigration/validation, pkg/registry/storagemigration/storagemigration.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, invalid, required
from fakekube.apis.rest.strategy import ConditionalStatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import conditions
from fakekube.apis.validation.objectmeta import has_condition
from fakekube.apis.validation.rules import from_minor
from fakekube.base.objects import Object

_WELL_FORMED: Final = re.compile(r"0|[1-9]\d*")
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"


class StorageVersionMigrationStrategy(Strategy):
    """The strategy of storageversionmigrations."""

    unconditional_update = False
    has_status = True
    checks_metadata_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {})

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = self.validate_metadata(context, obj["metadata"]) + self.validate(context, obj)
        errors += self.validate_metadata_update(context, obj["metadata"], old["metadata"])
        spec = obj.get("spec") or {}
        if not from_minor(35):
            resource, before = spec.get("resource") or {}, (old.get("spec") or {}).get("resource") or {}
            changed = [name for name in ("group", "version", "resource") if resource.get(name, "") != before.get(name, "")]
            return errors + [invalid(name, resource.get(name, ""), IMMUTABLE) for name in changed]
        if spec.get("resource") != (old.get("spec") or {}).get("resource"):
            resource = spec.get("resource") or {}
            shown = {name: resource.get(name, "") for name in ("group", "resource")}
            errors.append(invalid("spec", {"Resource": shown}, IMMUTABLE))
        return errors


def _validate_spec(spec: Object) -> list[FieldError]:
    resource: Any = spec.get("resource") or {}
    errors: list[FieldError] = []
    if not from_minor(35):
        missing = [name for name in ("resource", "version") if not resource.get(name)]
        return [required(f"spec.resource.{name}", f"{name} is required") for name in missing]
    if not resource.get("resource"):
        errors.append(required("spec.resource.resource", "resource is required to be set"))
    elif problems := names.dns_1035_label(resource["resource"]):
        errors.append(invalid("spec.resource.resource", resource["resource"], ",".join(problems)))
    if resource.get("group") and (problems := names.dns_subdomain(resource["group"])):
        errors.append(invalid("spec.resource.group", resource["group"], ",".join(problems)))
    return errors


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    status, before = obj.get("status") or {}, old.get("status") or {}
    revision, errors = status.get("resourceVersion", ""), []
    if revision and not _WELL_FORMED.fullmatch(revision):
        errors.append(invalid("status.resourceVersion", revision, f"resource version is not well formed: {revision}"))
    items = status.get("conditions")
    errors += conditions(items or [], "status.conditions")
    if before.get("resourceVersion") and before["resourceVersion"] != revision:
        errors.append(invalid("status.resourceVersion", revision, IMMUTABLE))
    if has_condition(status, SUCCEEDED) and has_condition(status, FAILED):
        errors.append(invalid("status.conditions", items, "Both success and failed conditions cannot be true at the same time"))
    for type_, word in ((SUCCEEDED, "Success"), (FAILED, "Failed")):
        if has_condition(before, type_) and not has_condition(status, type_):
            errors.append(invalid("status.conditions", items, f"{word} condition cannot be set to false once it is true"))
    return errors


STATUS = ConditionalStatusStrategy(_validate_status)
