"""Validation of the metadata of objects, on create and on update, of annotations that hold what later became fields, and the
conditions of a status.

The real server validates metadata at these points, so a wrong label of an update can cause several errors:

* create: the validation of the kind, which starts with `validate_object_meta` and the name rule of the kind;
* update: first, for every kind, `validate_common_update`; then the validation of the kind, which starts with
  `validate_object_meta_update` once more, and often repeats the validation of the create as well.

Go parses annotations as JSON into its types. Names match in any letter case, null means absent, and unknown members are skipped.
The first value of a wrong type is reported with Go's names of types and fields: internal types have no JSON names, so the message
has `Key` for them and `podSignature` for others.

A status has at most one condition of each type, in the order in which they were added. `set_condition` and `is_ready` are those
of pods.

Specified by: k8s.io/apimachinery/pkg/api/validation (objectmeta.go), …/api/meta/conditions.go and …/apis/meta/v1/validation;
k8s.io/apiserver/pkg/registry/rest (update.go); pkg/apis/core/helper/helpers.go (Get…FromPodAnnotations, …FromNodeAnnotations);
Go's encoding/json; k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/helpers.go (SetCRDCondition); pkg/api/pod/util.go
(UpdatePodCondition).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, Typed, forbidden, invalid, required, too_long
from fakekube.apis.validation import names
from fakekube.apis.validation.names import NameCheck
from fakekube.apis.validation.rules import from_minor
from fakekube.base.caches import cache_by_text
from fakekube.base.golang.json_reader import JSONError, parse
from fakekube.base.golang.strconv import INT64, go_quote, json_kind
from fakekube.base.golang.strings import bytes_of
from fakekube.base.golang.timestamps import TimeError, parse_time, print_time
from fakekube.base.objects import Object

Meta = Mapping[str, Any]

ANNOTATIONS_LENGTH = 256 * 1024
_MANAGER_LENGTH = 128
_SUBRESOURCE_LENGTH = 256
ORPHAN_DEPENDENTS = "orphan"
DELETE_DEPENDENTS = "foregroundDeletion"
RESOURCE_VERSION_REQUIRED = "must be specified for an update"

#: Kinds that cannot be owners: (apiVersion, kind).
_BANNED_OWNERS = frozenset({("v1", "Event")})

#: Fields that an update cannot change, in the order of the checks.
IMMUTABLE_FIELDS = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


#: Finalizers without a domain that are valid.
_STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN_DEPENDENTS, DELETE_DEPENDENTS})


def validate_object_meta(
    meta: Meta, namespaced: bool, name_errors: NameCheck, path: str = "metadata", *, standard_finalizers: bool = True
) -> list[FieldError]:
    """Validates the metadata of a new or updated object (ValidateObjectMeta).

    `meta` is complete (name generated, namespace set); `name_errors` is the name rule of the kind. With
    `standard_finalizers`, which nearly every kind sets, finalizers without a domain must be standard ones.
    """
    prefix = meta.get("generateName")
    errors = validate_generate_name(prefix, f"{path}.generateName", name_errors) if prefix else []
    name = meta.get("name")
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    elif wrong := name_errors(name, False):
        errors += [invalid(f"{path}.name", name, text) for text in wrong]
    if namespaced:  # otherwise the URL has no namespace, so that one in the object is refused before
        errors += _validate_namespace(meta.get("namespace", ""), path)
    if meta.get("generation", 0) < 0:
        errors.append(invalid(f"{path}.generation", meta["generation"], names.min_error(0)))
    errors += _validate_labels_to_owners(meta, path)
    finalizers = meta.get("finalizers")
    if finalizers:
        errors += _validate_finalizers(finalizers, f"{path}.finalizers")
    errors += _validate_managed_fields(meta.get("managedFields") or (), f"{path}.managedFields")
    if finalizers and standard_finalizers:
        errors += validate_standard_finalizers(meta, path)
    return errors


def validate_generate_name(prefix: str, path: str, name_errors: NameCheck = names.path_segment) -> list[FieldError]:
    """Validates a generateName that is not empty; `name_errors`: the name rule of the kind, by default that of all objects."""
    return [invalid(path, prefix, text) for text in name_errors(prefix, True)]


def validate_rules_of_kind(meta: Meta, name_errors: NameCheck, *, standard_finalizers: bool = True) -> list[FieldError]:
    """Returns what `validate_object_meta` returns for an update of which `validate_common_update` has accepted the metadata.

    What that leaves to the kinds are the rule of a generateName and the standard finalizers; the name is that of the stored one.
    """
    prefix = meta.get("generateName")
    errors = validate_generate_name(prefix, "metadata.generateName", name_errors) if prefix else []
    return errors + validate_standard_finalizers(meta) if standard_finalizers else errors


def validate_object_meta_update(new: Meta, old: Meta, *, standard_finalizers: bool = True) -> list[FieldError]:
    """Validates an update of metadata (ValidateObjectMetaUpdate).

    `new` already has the uid, creationTimestamp and deletion fields of `old`, which every update copies.
    """
    errors = _validate_change(new, old)
    errors += _validate_labels_to_owners(new, "metadata")
    errors += _validate_managed_fields(new.get("managedFields") or (), "metadata.managedFields")
    if standard_finalizers:
        errors += validate_standard_finalizers(new)
    return errors


def _validate_change(new: Meta, old: Meta) -> list[FieldError]:
    """Returns the errors of the comparison of old and new."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _validate_no_new_finalizers(new, old, "metadata")
    if not new.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", "", RESOURCE_VERSION_REQUIRED))
    for field in IMMUTABLE_FIELDS:
        if new.get(field) == old.get(field):
            continue
        value = new.get(field, "" if field in ("name", "namespace", "uid") else None)
        errors.append(invalid(f"metadata.{field}", Typed(value) if field == "uid" else value, IMMUTABLE))
    return errors


def validate_common_update(new: Meta, old: Meta) -> list[FieldError]:
    """Runs the checks of every update that come before those of the kind (validateCommonFields).

    `new` has the name and the namespace of `old`. What is as it was there is valid: it was validated when it was stored.
    """
    errors: list[FieldError] = []
    for field, check in _MUTABLE_FIELDS:
        value = new.get(field)
        if value and value != old.get(field):
            errors += check(value, f"metadata.{field}")
    if not errors:  # only the comparison with the old metadata is left
        return _validate_change(new, old)
    return errors + validate_object_meta_update(new, old, standard_finalizers=False)


def _validate_namespace(namespace: str, path: str) -> list[FieldError]:
    if not namespace:
        return [required(f"{path}.namespace")]
    wrong = _namespace_problems(namespace)
    return [invalid(f"{path}.namespace", namespace, text) for text in wrong] if wrong else []


@cache_by_text(1024)
def _namespace_problems(namespace: str) -> tuple[str, ...]:
    return tuple(names.dns_label(namespace))


def _validate_labels_to_owners(meta: Meta, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    labels, annotations, owners = meta.get("labels"), meta.get("annotations"), meta.get("ownerReferences")
    if labels:
        errors += validate_labels(labels, f"{path}.labels")
    if annotations:
        errors += validate_annotations(annotations, f"{path}.annotations")
    if owners:
        errors += _validate_owner_references(owners, f"{path}.ownerReferences")
    return errors


def validate_labels(labels: Mapping[str, str], path: str) -> list[FieldError]:
    """Validates keys and values of labels; the errors are about the map, not about its entries (ValidateLabels)."""
    errors: list[FieldError] = []
    for key, value in labels.items():
        wrong_key, wrong_value = names.label_key(key), names.label_value(value)
        if wrong_key or wrong_value:
            errors += [invalid(path, key, text) for text in wrong_key]
            errors += [invalid(path, value, text) for text in wrong_value]
    return errors


def validate_annotations(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    """Validates keys (in any letter case) and the total size of annotations (ValidateAnnotations)."""
    errors = [invalid(path, key, text) for key in annotations for text in names.label_key(key.lower())]
    if _byte_length("".join([*annotations, *annotations.values()])) > ANNOTATIONS_LENGTH:
        errors.append(too_long(path, ANNOTATIONS_LENGTH))
    return errors


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _validate_owner_references(references: Sequence[Meta], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    declared = from_minor(37)
    for index, reference in enumerate(references):
        if declared:
            errors += _validate_owner_reference_as_declared(reference, f"{path}[{index}]")
        else:
            errors += _validate_owner_reference(reference, path)
        if reference.get("controller"):
            owner = f"{reference.get('kind', '')}/{reference.get('name', '')}"
            if controller:
                both = f'Found "true" in references for {controller} and {owner}'
                text = f"Only one reference can have Controller set to true. {both}"
                errors.append(invalid(path, references, text))
            else:
                controller = owner
    return errors


def _validate_owner_reference(reference: Meta, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    if api_version.count("/") > 1 or not api_version.rpartition("/")[2]:
        errors.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
    missing = [field for field in ("kind", "name", "uid") if not reference.get(field)]
    named = not from_minor(34)
    errors += [
        invalid(f"{path}.{field}", "", f"{field} must not be empty" if named else "must not be empty") for field in missing
    ]
    if (api_version.removeprefix("/"), kind) in _BANNED_OWNERS:
        text = f"/{api_version.removeprefix('/')}, Kind={kind} is disallowed from being an owner"
        errors.append(invalid(path, reference, text))
    return errors


def _validate_owner_reference_as_declared(reference: Meta, path: str) -> list[FieldError]:
    """Validates a reference by the declared rules, which tell the index."""
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    errors = [] if api_version else [required(f"{path}.apiVersion", "must not be empty")]
    if api_version.count("/") > 1 or api_version.endswith("/"):
        errors.append(invalid(f"{path}.apiVersion", api_version, "must be <group>/<version> or <version>"))
    errors += [required(f"{path}.{field}", "must not be empty") for field in ("kind", "name", "uid") if not reference.get(field)]
    if (api_version.removeprefix("/"), kind) in _BANNED_OWNERS:
        text = f"/{api_version.removeprefix('/')}, Kind={kind} is disallowed from being an owner"
        errors.append(invalid(path, reference, text))
    return errors


def validate_finalizer_name(name: str, path: str) -> list[FieldError]:
    """Validates the form of the name of a finalizer (ValidateFinalizerName of the metadata)."""
    return [invalid(path, name, text) for text in names.label_key(name)]


def standard_finalizer_errors(name: str, path: str) -> list[FieldError]:
    """Validates that a finalizer without a domain is a standard one (validateKubeFinalizerName)."""
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return [invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def standard_finalizer_warnings(name: str, path: str) -> list[str]:
    """Returns the warnings about a finalizer of a custom resource that has no domain (validateKubeFinalizerName there)."""
    warnings = [f"{path}: {go_quote(name)}: {text}" for text in names.label_key(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        including = " including a path (/)" if "." in name else ""
        advice = f"prefer a domain-qualified finalizer name{including} to avoid accidental conflicts with other finalizer writers"
        warnings.append(f"{path}: {go_quote(name)}: {advice}")
    return warnings


def validate_standard_finalizers(meta: Meta, path: str = "metadata") -> list[FieldError]:
    """Validates that finalizers without a domain are standard ones."""
    finalizers = meta.get("finalizers")
    if not finalizers:
        return []
    return [
        error for index, name in enumerate(finalizers) for error in standard_finalizer_errors(name, f"{path}.finalizers[{index}]")
    ]


def _validate_finalizers(finalizers: Sequence[str], path: str) -> list[FieldError]:
    errors = [error for name in finalizers for error in validate_finalizer_name(name, path)]
    if ORPHAN_DEPENDENTS in finalizers and DELETE_DEPENDENTS in finalizers:
        text = f"finalizer {ORPHAN_DEPENDENTS} and {DELETE_DEPENDENTS} cannot be both set"
        errors.append(invalid(path, finalizers, text))
    return errors


def _validate_no_new_finalizers(new: Meta, old: Meta, path: str) -> list[FieldError]:
    extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not extra:
        return []
    shown = "[]string{" + ", ".join(go_quote(name) for name in extra) + "}"
    text = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
    return [forbidden(f"{path}.finalizers", text)]


def _validate_managed_fields(entries: Sequence[Meta], path: str) -> list[FieldError]:
    """Validates managedFields (ValidateManagedFields)."""
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        operation = entry.get("operation", "")
        manager, subresource = entry.get("manager", ""), entry.get("subresource", "")
        if operation not in ("Apply", "Update"):
            errors.append(invalid(f"{path}[{index}].operation", operation, "must be `Apply` or `Update`"))
        if not (manager.isascii() and manager.isprintable() and len(manager) <= _MANAGER_LENGTH):
            errors += _validate_manager(manager, f"{path}[{index}].manager")
        if subresource and _byte_length(subresource) > _SUBRESOURCE_LENGTH:
            errors.append(too_long(f"{path}[{index}].subresource", _SUBRESOURCE_LENGTH))
    return errors


def _validate_manager(manager: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if _byte_length(manager) > _MANAGER_LENGTH:
        errors.append(too_long(path, _MANAGER_LENGTH))
    position = 0
    for character in manager:
        if not character.isprintable():
            text = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(invalid(path, manager, text))
        position += _byte_length(character)
    return errors


#: What `validate_object_meta` checks of the fields that an update can change, in the order of the checks.
_MUTABLE_FIELDS: Final[tuple[tuple[str, Callable[[Any, str], list[FieldError]]], ...]] = (
    ("generateName", validate_generate_name),
    ("labels", validate_labels),
    ("annotations", validate_annotations),
    ("ownerReferences", _validate_owner_references),
    ("finalizers", _validate_finalizers),
    ("managedFields", _validate_managed_fields),
)


class _Field(NamedTuple):
    shown: str
    """The name of the field in messages."""
    go_type: str
    holds: Any = str
    """The type: str, bool, int, `parse_time`, or the fields of a struct."""
    many: bool = False


_Struct = Mapping[str, _Field]


def _struct(*fields: _Field) -> _Struct:
    return {field.shown.lower(): field for field in fields}


_TOLERATION = _struct(
    _Field("Key", "string"),
    _Field("Operator", "core.TolerationOperator"),
    _Field("Value", "string"),
    _Field("Effect", "core.TaintEffect"),
    _Field("TolerationSeconds", "int64", int),
)
_TAINT = _struct(
    _Field("Key", "string"),
    _Field("Value", "string"),
    _Field("Effect", "core.TaintEffect"),
    _Field("TimeAdded", "string", parse_time),
)
_OWNER_REFERENCE = _struct(
    _Field("apiVersion", "string"),
    _Field("kind", "string"),
    _Field("name", "string"),
    _Field("uid", "types.UID"),
    _Field("controller", "bool", bool),
    _Field("blockOwnerDeletion", "bool", bool),
)
_AVOID_PODS_ENTRY = _struct(
    _Field("podSignature", "v1.PodSignature", _struct(_Field("podController", "v1.OwnerReference", _OWNER_REFERENCE))),
    _Field("evictionTime", "string", parse_time),
    _Field("reason", "string"),
    _Field("message", "string"),
)
_AVOID_PODS = _struct(_Field("preferAvoidPods", "v1.PreferAvoidPodsEntry", _AVOID_PODS_ENTRY, many=True))


def read_tolerations(text: str) -> list[Object]:
    """Parses the tolerations of an annotation. Raises JSONError."""
    found: list[Object] = _read(text, _Field("", "core.Toleration", _TOLERATION, many=True)) or []
    return found


def read_taints(text: str) -> list[Object]:
    """Parses the taints of an annotation. Raises JSONError."""
    found: list[Object] = _read(text, _Field("", "core.Taint", _TAINT, many=True)) or []
    return found


def read_avoid_pods(text: str) -> Object:
    """Parses the preferAvoidPods annotation. Raises JSONError."""
    found: Object = _read(text, _Field("", "v1.AvoidPods", _AVOID_PODS)) or {}
    return found


def _read(text: str, root: _Field) -> Any:
    try:
        return _value(parse(bytes_of(text)), root, "value")
    except RecursionError:
        raise JSONError("exceeded max depth") from None


def _value(value: Any, field: _Field, where: str) -> Any:
    """Converts one value, or all items of a list; `where` is the name of the place in messages."""
    if value is None or not field.many:
        return _read_value(value, field, where)
    if not isinstance(value, list):
        raise _mismatch(value, where, f"[]{field.go_type}")
    return [_read_value(item, field, where) for item in value]


def _read_value(value: Any, field: _Field, where: str) -> Any:
    holds = field.holds
    if value is None:
        return {} if isinstance(holds, Mapping) else None
    if isinstance(holds, Mapping):
        return _members(value, field, where)
    if holds is parse_time:
        return _time(value, where)
    if type(value) is not holds or (holds is int and value not in INT64):
        raise _mismatch(value, where, field.go_type, shows_number=holds is int)
    return value


def _members(value: Any, field: _Field, where: str) -> Object:
    if not isinstance(value, dict):
        raise _mismatch(value, where, field.go_type)
    struct = field.go_type.rpartition(".")[2]
    above = where.partition(".")[2]
    found = {}
    for name, member in value.items():
        inner = field.holds.get(name.lower())
        if inner is not None and member is not None:
            path = f"{above}.{inner.shown}" if above else inner.shown
            key = inner.shown[:1].lower() + inner.shown[1:]
            found[key] = _value(member, inner, f"struct field {struct}.{path}")
    return found


def _time(value: Any, where: str) -> str | None:
    if type(value) is not str:
        raise _mismatch(value, where, "string")
    try:
        return parse_time(value)
    except TimeError as error:
        raise JSONError(str(error)) from None


def _mismatch(value: Any, where: str, go_type: str, *, shows_number: bool = False) -> JSONError:
    kind = json_kind(value)
    number = f" {value}" if shows_number and kind == "number" else ""
    place = f"{where} of type {go_type}"
    return JSONError(f"json: cannot unmarshal {kind}{number} into Go {place}")


# --- Conditions of the status of an object ----------------------------------------------------------------------------


def condition(obj: Object, type_: str) -> Mapping[str, str]:
    """Returns the condition of this type; an empty one if the object has none."""
    return find_condition(obj.get("status") or {}, type_) or {}


def find_condition(status: Mapping[str, Any], type_: str) -> Object | None:
    """Returns the condition of this type; None if the status has none (FindStatusCondition)."""
    return next((one for one in status.get("conditions") or () if one.get("type") == type_), None)


def has_condition(status: Mapping[str, Any], type_: str, value: str = "True") -> bool:
    """Reports whether a status has the condition of this type with this value (IsStatusConditionPresentAndEqual)."""
    return any(one.get("type") == type_ and one.get("status") == value for one in status.get("conditions") or ())


def set_status_condition(conditions: Iterable[Object] | None, new: Object) -> list[Object]:
    """Returns the conditions with this one; lastTransitionTime stays if the status does (meta.SetStatusCondition)."""
    result = list(conditions or ())
    for index, old in enumerate(result):
        if old["type"] == new["type"]:
            since = old["lastTransitionTime"] if old["status"] == new["status"] else new["lastTransitionTime"]
            result[index] = {**new, "lastTransitionTime": since}
            return result
    return [*result, new]


def with_condition(obj: Object, *, type_: str, status: str, reason: str, message: str, now: str) -> Object:
    """Returns the object with the condition set; lastTransitionTime changes only when the status does."""
    known = condition(obj, type_)
    since = known["lastTransitionTime"] if known.get("status") == status and "lastTransitionTime" in known else now
    return with_condition_since(obj, type_=type_, status=status, reason=reason, message=message, since=since)


def with_condition_since(obj: Object, *, type_: str, status: str, reason: str, message: str, since: str) -> Object:
    """Returns the object with the condition set, with this lastTransitionTime."""
    new = {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    found = list((obj.get("status") or {}).get("conditions") or ())
    if any(c["type"] == type_ for c in found):
        found = [new if c["type"] == type_ else c for c in found]
    else:
        found.append(new)
    return {**obj, "status": {**(obj.get("status") or {}), "conditions": found}}


Condition = dict[str, Any]


def set_condition(conditions: Sequence[Condition], new: Mapping[str, Any], now: datetime) -> list[Condition]:
    """Returns the conditions with this one; lastTransitionTime stays if the status does."""
    fresh = {**new, "lastProbeTime": None, "lastTransitionTime": print_time(now)}
    result = list(conditions)
    for index, condition in enumerate(result):
        if condition.get("type") == new["type"]:
            if condition.get("status") == new.get("status"):
                fresh["lastTransitionTime"] = condition.get("lastTransitionTime")
            result[index] = fresh
            return result
    return [*result, fresh]


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Reports whether a pod is ready (IsPodReady)."""
    return has_condition(pod.get("status") or {}, "Ready")
