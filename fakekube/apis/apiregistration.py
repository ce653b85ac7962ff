"""APIServices: the server of each API group and version, and the order of preference.

Specified by: k8s.io/kube-aggregator/pkg/apis/apiregistration/{validation,v1/defaults.go,v1/helper},
k8s.io/kube-aggregator/pkg/registry/apiservice.
"""

from __future__ import annotations

from base64 import b64decode

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, required
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext, restore
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, one_of
from fakekube.apis.validation.objectmeta import validate_object_meta, validate_object_meta_update
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

MAX_GROUP_PRIORITY, MAX_VERSION_PRIORITY = 20000, 1000
_CONDITION_STATUSES = ("True", "False", "Unknown")
_KEPT_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


#: The message of the condition Available of an APIService without a service.
LOCAL_IS_AVAILABLE = "Local APIServices are always available"


class APIServiceStrategy(Strategy):
    """The strategy of apiservices; an APIService without a service reference is available at once."""

    has_status = True
    unconditional_update = False
    checks_metadata = False
    checks_metadata_update = False

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        if "service" not in (obj.get("spec") or {}):
            condition = {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": context.now(),
                "reason": "Local",
                "message": LOCAL_IS_AVAILABLE,
            }
            obj["status"] = {"conditions": [condition]}

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        name = f"{spec.get('version', '')}.{spec.get('group', '')}"

        def name_errors(value: str, prefix: bool) -> list[str]:
            wrong = names.path_segment(value, prefix)
            return wrong or ([] if value == name else [f'must be `spec.version+"."+spec.group`: {go_quote(name)}'])

        return validate_object_meta(obj["metadata"], False, name_errors, standard_finalizers=False) + _validate_spec(spec)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = validate_object_meta_update(obj["metadata"], old["metadata"], standard_finalizers=False)
        return errors + self.validate(context, obj)


def _validate_spec(spec: Object) -> list[FieldError]:
    group, version = spec.get("group", ""), spec.get("version", "")
    errors: list[FieldError] = []
    if not group and version != "v1":
        errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    if group:
        errors += invalid_each("spec.group", group, names.dns_subdomain(group))
    errors += invalid_each("spec.version", version, names.dns_1035_label(version))
    errors += _validate_priority(spec.get("groupPriorityMinimum", 0), "spec.groupPriorityMinimum", MAX_GROUP_PRIORITY)
    errors += _validate_priority(spec.get("versionPriority", 0), "spec.versionPriority", MAX_VERSION_PRIORITY)
    service = spec.get("service")
    return errors + (_validate_local(spec) if service is None else _validate_service_reference(spec, service))


def _validate_priority(value: int, path: str, highest: int) -> list[FieldError]:
    return [] if 0 < value <= highest else [invalid(path, value, f"must be positive and less than {highest}")]


def _validate_local(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("caBundle"):
        size = f"{len(b64decode(spec['caBundle']))} bytes"
        errors.append(invalid("spec.caBundle", size, "local APIServices may not have a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        text = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, text))
    return errors


def _validate_service_reference(spec: Object, service: Object) -> list[FieldError]:
    errors = [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    port = service.get("port", 0)
    refused = names.port_number(port)
    if refused:
        errors.append(invalid("spec.service.port", port, "port is not valid: " + ", ".join(refused)))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        errors.append(invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return errors


def _validate_status(obj: Object, old: Object) -> list[FieldError]:
    return [
        error
        for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ())
        for error in one_of(condition.get("status", ""), f"status.conditions[{index}].status", _CONDITION_STATUSES, ordered=True)
    ]


class _StatusStrategy(StatusStrategy):
    unconditional_update = False
    standard_finalizers = False

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        restore(obj["metadata"], old["metadata"], *_KEPT_METADATA)


STATUS = _StatusStrategy(_validate_status, resets=(("spec",), ("metadata",)))
