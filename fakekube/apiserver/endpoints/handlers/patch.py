"""Handles PATCH: every patch type, on objects and on subresources.

A `Patch` is decoded once. It is a function from the current object, in the version of the request, to the patched one, a new
tree with managedFields updated; the result is decoded by its schema and written as an update. After a conflict with another
writer the patch is applied again; only a patch with a resourceVersion can fail with 409. An apply to an absent object creates
it.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fakekube.apiextensions.instances import objects
from fakekube.apimachinery.codecs import DecodeError, cbor, json, yaml
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import field, status
from fakekube.apimachinery.patch import (
    APPLY_CBOR,
    APPLY_YAML,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    json_patch,
    strategic,
)
from fakekube.apimachinery.patch.apply import without_managed_fields
from fakekube.apimachinery.patch.literals import as_written, has_ambiguous_literals, loads_with_literals
from fakekube.apimachinery.patch.merge_patch import INVALID, apply_merge_patch, decode_merge_patch
from fakekube.apimachinery.schema.trees import MAX_TEXT, are_equal, copy_with_texts
from fakekube.apis.rest.strategy import restore
from fakekube.apiserver.endpoints import admission, bodies, negotiation, projection, response_writers
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry.generic import conversion, field_manager, writes
from fakekube.apiserver.registry.request_options import WriteOptions, patch_options
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import UNTYPED_OBJECT, json_kind, unmarshal_error
from fakekube.base.objects import Object
from fakekube.store import Record

Change = Callable[["Object | None"], Object]
"""(live object in the request's version, or None) → the patched one. Raises StatusError."""


@dataclass(slots=True)
class Patch:
    """A patch that is decoded on its first call, so that NotFound is reported before a malformed patch."""

    read: Callable[[], Change]
    creates: bool = False
    """The patch creates an object that does not exist."""
    key: Hashable | None = None
    """What an apply of which the same object can be made again depends on; None for other patches."""
    _change: Change | None = None

    def __call__(self, live: Object | None) -> Object:
        if self._change is None:
            self._change = self.read()
        return self._change(live)


def _patch_document(content_type: str, body: bytes) -> Any:
    """Returns the patch in a body as a document; None if it cannot be decoded."""
    try:
        if content_type.endswith("+cbor"):
            return cbor.load_map(body)
        return yaml.loads(body)[0] if content_type.endswith("+yaml") else json.loads(body)[0]
    except DecodeError:
        return None


@dataclass(slots=True)
class _Body:
    """The body of a patch. What its validation has read is the document of the first reader, which may change it."""

    raw: bytes
    _document: tuple[Any, list[str]] | None = None

    def validate_json(self) -> None:
        """Raises DecodeError for a body that is not JSON."""
        self._document = json.loads(self.raw, merge=False)

    def take_document(self) -> tuple[Any, list[str]]:
        """Returns a document of the caller's own, and the paths of duplicate members. Raises DecodeError."""
        document, self._document = self._document, None
        return document or json.loads(self.raw, merge=False)


def _patch_for(scope: Scope, content_type: str, body: bytes, options: WriteOptions) -> Patch:
    """Returns the patch in a body. Raises StatusError 400 if the minor validates patches before it looks for the object."""
    read = _Body(body)
    if scope.resource.emulation.minor >= _VALIDATED_AT_ONCE_SINCE:
        _validate_patch(content_type, read)
    applies = content_type in _APPLIES
    creates = applies and (scope.subresource is None or scope.strategy.create_on_update)
    key = _key_of_apply(scope, content_type, body, options) if applies else None
    return Patch(partial(_READERS[content_type], scope, read, options), creates, key)


def _key_of_apply(scope: Scope, content_type: str, body: bytes, options: WriteOptions) -> Hashable | None:
    """Returns what distinguishes an apply; None if webhooks or policies must see what it makes of the object."""
    resource = scope.resource
    converts = resource.custom or resource.to_storage is not None
    if converts or len(body) > MAX_TEXT or scope.context.configured.webhooks_or_policies:
        return None
    subresource = "" if scope.subresource is None else scope.subresource.name
    return resource, subresource, content_type, body, options.field_manager, options.force, options.field_validation


#: The number of the first minor that validates every patch before it looks for the object (validateAndTranscodePatch).
_VALIDATED_AT_ONCE_SINCE = 37
_JSON_PREFIX = re.compile(rb"\s*\{").match


def _validate_patch(content_type: str, body: _Body) -> None:
    """Raises StatusError 400 for a body that is not in the format of its media type."""
    if content_type == APPLY_CBOR:
        return
    try:
        if content_type == APPLY_YAML:
            if not _JSON_PREFIX(body.raw):  # what may be JSON is not converted
                yaml.loads(body.raw)
            return
        body.validate_json()
    except DecodeError as error:
        text = f"error encoding patch: {error}" if content_type == APPLY_YAML else "invalid JSON patch"
        raise status.bad_request(text) from None


def _name_of_patch(scope: Scope) -> str:
    """Returns what error messages call the document of an apply."""
    return "patch" if scope.resource.emulation.minor >= _VALIDATED_AT_ONCE_SINCE else "YAML"


#: The message about a patch that strict decoding refuses.
_UNDECODABLE: Final = "error decoding patch: {}"


# --- Patches of the JSON text -----------------------------------------------------------------------------------------


def _read_json_patch(scope: Scope, body: _Body, options: WriteOptions) -> Change:
    strict = options.field_validation != "Ignore"
    value, duplicates = _parse(body, _UNDECODABLE if strict else "{}")
    operations, findings = json_patch.decode(value, strict=strict, duplicates=duplicates, members=partial(json.members, body.raw))
    text = partial(json_patch.text_of_result, operations=operations, body=body.raw)
    edit = partial(json_patch.apply, operations=operations, body=body.raw)
    return _json_patch(scope, options, findings, edit, text if has_ambiguous_literals(body.raw) else None)


def _read_merge_patch(scope: Scope, body: _Body, options: WriteOptions) -> Change:
    strict = options.field_validation != "Ignore"
    value, duplicates = _parse(body, _UNDECODABLE if strict else INVALID)
    has_literals = has_ambiguous_literals(body.raw)
    document = decode_merge_patch(value, strict=strict)
    if strict and has_literals:
        _check_numbers(document)

    def text(whole: Object) -> str:
        return as_written(apply_merge_patch(whole, loads_with_literals(body.raw)))

    edit = partial(_merge, document)
    return _json_patch(scope, options, _messages(duplicates), edit, text if has_literals else None)


def _merge(document: Any, whole: Object) -> Any:
    return apply_merge_patch(whole, document)


def _json_patch(
    scope: Scope,
    options: WriteOptions,
    findings: Sequence[str],
    edit: Callable[[Object], Any],
    text: Callable[[Object], str] | None = None,
) -> Change:
    """Returns a patch of the object's JSON; its result is decoded like a request body.

    `text`: encodes the result with the scalars of the patch as they are written there, if the server writes some otherwise.
    """
    strict = options.field_validation != "Ignore"

    def refusal(present: Object, patched: Any, problem: str) -> status.StatusError:
        shown = text(present) if text is not None else json.dumps(patched).decode()
        return status.invalid("", "", "", [field.invalid("patch", shown, problem)])

    def change(live: Object | None) -> Object:
        live = _present(scope, live)
        present = _with_type_meta(scope, live)
        patched = edit(present)
        try:
            literals = partial(_literals_of_result, text, present) if text is not None else None
            obj, unknown = bodies.decode_patched(scope, patched, live, literals, wants_strict=strict)
            bodies.report_strict_errors(scope, [*findings, *unknown], options.field_validation)
        except bodies.Problem as problem:
            raise refusal(present, patched, problem.message) from None
        try:
            return _finish(scope, live, obj, options)
        except status.ConversionError as error:
            present = _with_type_meta(scope, live)
            raise refusal(present, edit(present), error.problem) from None

    return change


def _literals_of_result(text: Callable[[Object], str], present: Object) -> Any:
    """Returns the patched object with the numbers as they are written in the patch (see `schema.decode.decode`)."""
    return json.literals(text(present).encode("utf-8", "surrogatepass"))


def _read_strategic(scope: Scope, body: _Body, options: WriteOptions) -> Change:
    value, duplicates = _parse(body, "{}", untyped=True)
    parsed = [strategic.decode(value)]

    def patch() -> Object:
        """Returns a patch that may be used up; the body is parsed again only for another attempt."""
        return parsed.pop() if parsed else strategic.decode(_parse(body, "{}", untyped=True)[0])

    def change(live: Object | None) -> Object:
        live = _present(scope, live)
        original = _with_type_meta(scope, live)
        unknown: list[str] = []
        obj = strategic.apply(scope.type, original, patch(), unknown, scope.constants)
        try:
            bodies.report_strict_errors(scope, [*_messages(duplicates), *unknown], options.field_validation)
        except bodies.Problem as problem:
            raise strategic.refusal_error(scope.type, original, patch(), problem.message) from None
        try:
            return _finish(scope, live, _without_kind(obj), options)
        except status.ConversionError as error:
            raise status.StatusError(500, "", error.problem) from None

    return change


# --- Apply ------------------------------------------------------------------------------------------------------------


def _read_apply_yaml(scope: Scope, body: _Body, options: WriteOptions) -> Change:
    try:
        value, duplicates = yaml.loads(body.raw)
        value = json.to_untyped(value)
    except DecodeError as error:
        raise status.bad_request(f"error decoding {_name_of_patch(scope)}: error converting YAML to JSON: {error}") from None
    return _apply(scope, value, duplicates, options)


def _read_apply_cbor(scope: Scope, body: _Body, options: WriteOptions) -> Change:
    try:
        value = cbor.load_map(body.raw)
    except DecodeError as error:
        raise status.bad_request(f"error decoding {_name_of_patch(scope)}: {error}") from None
    return _apply(scope, value, (), options)


def _apply(scope: Scope, value: Any, problems: Sequence[str], options: WriteOptions) -> Change:
    if value is not None and not isinstance(value, dict):
        problem = unmarshal_error(json_kind(value), UNTYPED_OBJECT)
        text = f"error decoding {_name_of_patch(scope)}: error unmarshaling JSON: while decoding JSON: {problem}"
        raise status.bad_request(text)

    configuration = value or {}

    def change(live: Object | None) -> Object:
        merged = field_manager.apply_configuration(scope, live, configuration, options.field_manager, force=bool(options.force))
        if scope.is_custom:
            obj = _copy_object({**merged, "metadata": objects.readable_metadata(merged.get("metadata") or {})})
        else:
            obj = _copy_object(merged) if live is not None and _is_shared(merged, live) else merged
        scope.default(obj)
        if problems and options.field_validation == "Strict":
            what = f"error converting YAML to JSON: {yaml.strict_error(problems)}"
            raise status.bad_request(f"error strict decoding {_name_of_patch(scope)}: {what}")
        if problems and options.field_validation == "Warn":
            scope.request.warnings.extend(problems)
        uid = obj.setdefault("metadata", {}).get("uid")
        if live is None and uid:
            raise scope.conflict(f"uid mismatch: the provided object specified uid {uid}, and no existing object was found")
        return _check_name(scope, obj)

    return change


# --- Shared steps -----------------------------------------------------------------------------------------------------


def _parse(body: _Body, problem: str, *, untyped: bool = False) -> tuple[Any, list[str]]:
    """Returns the document, and the paths of duplicate members (the last one counts).

    `problem`: the message for a body that is not JSON; `{}` stands for the error of the decoder.
    `untyped`: the document is first decoded into untyped values, so that large integers become floats.
    """
    try:
        value, doubled = body.take_document()
        if untyped and isinstance(value, dict):
            value = json.to_untyped(value)
        return value, doubled
    except DecodeError as error:
        raise status.bad_request(problem.format(error)) from None


def _check_numbers(value: Any) -> None:
    """Raises StatusError 400 if a number is beyond those of untyped values."""
    try:
        json.check_numbers(value)
    except DecodeError as error:
        raise status.bad_request(_UNDECODABLE.format(error)) from None


def _messages(duplicates: Sequence[str]) -> list[str]:
    return [f'duplicate field "{path}"' for path in duplicates]


def _present(scope: Scope, live: Object | None) -> Object:
    if live is None:
        raise scope.not_found()
    return live


def _with_type_meta(scope: Scope, live: Object) -> Object:
    """Returns the object with kind and apiVersion, as patches are applied to it."""
    if scope.is_custom:
        return live
    return {"kind": scope.kind.kind, "apiVersion": scope.kind.api_version, **live}


def _is_shared(obj: Object, live: Object) -> bool:
    """Reports whether an applied object shares everything but managedFields with the live one."""
    return all(item is live.get(name) for name, item in obj.items() if name != "metadata")


def _copy_object(obj: Object) -> Object:
    """Returns a copy of the object that shares managedFields, which are never changed in place."""
    metadata = obj.get("metadata") or {}
    managed_fields = metadata.get("managedFields")
    if managed_fields is None:
        return dict(copy_with_texts(obj))
    copy: Object = copy_with_texts({**obj, "metadata": {**metadata, "managedFields": None}})
    copy["metadata"]["managedFields"] = managed_fields
    return copy


def _without_kind(obj: Object) -> Object:
    """Removes kind and apiVersion, which built-in objects are stored without."""
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return obj


def _finish(scope: Scope, live: Object, obj: Object, options: WriteOptions) -> Object:
    if obj:  # else it has no name, and is refused below
        scope.default(obj, has_constants=not scope.is_custom)
    obj.setdefault("metadata", {})
    return _check_name(scope, field_manager.update(scope, live, obj, options.field_manager))


def _check_name(scope: Scope, obj: Object) -> Object:
    """Checks that the patched object still has the name and namespace of the path."""
    meta = obj.setdefault("metadata", {})
    writes.match_namespace(meta, scope.namespace)
    writes.match_name(meta, scope.name)
    return obj


_READERS: dict[str, Callable[[Scope, _Body, WriteOptions], Change]] = {
    JSON_PATCH: _read_json_patch,
    MERGE_PATCH: _read_merge_patch,
    STRATEGIC_MERGE_PATCH: _read_strategic,
    APPLY_YAML: _read_apply_yaml,
    APPLY_CBOR: _read_apply_cbor,
}

_APPLIES = frozenset({APPLY_YAML, APPLY_CBOR})


def patch(scope: Scope) -> Response:
    """Handles a PATCH. Raises StatusError."""
    offer = negotiation.offer_of(scope)
    types = negotiation.patch_types(strategic=not scope.resource.custom, cbor=offer.cbor)
    content_type = negotiation.patch_input(scope.request.content_type, types)
    scope.require_name()
    representation = negotiation.negotiate(scope, offer)
    body = scope.request.read_body()
    chosen = patch_options(scope.request.query, apply=content_type.startswith("application/apply-patch"))
    scope.begin_write(chosen.dry_run, chosen.raw)
    if scope.request.audit is not None:
        scope.request.audit.request_patch(_patch_document(content_type, body))
    patch = _patch_for(scope, content_type, body, chosen)
    if scope.subresource is not None and scope.subresource.projection is not None:
        return projection.update(scope, representation, patch)
    return _patch_object(scope, representation, patch)


def _to_storage(scope: Scope, record: Record[Document] | None, live: Object | None, patch: Patch) -> Object:
    """Returns the patched object in the storage version.

    An apply that changes only the managers leaves the fields that the version of the request does not have.
    """
    resource, obj = scope.resource, patch(live)
    converts = patch.creates and resource.to_storage is not None and not resource.custom
    if converts and record is not None and live is not None and are_equal(*map(without_managed_fields, (obj, live))):
        stored = _copy_object(record.value.object)
        restore(stored["metadata"], obj["metadata"], "managedFields")
        return stored
    return conversion.to_storage(resource, obj)


def _circumstances_of(scope: Scope, apply: Hashable) -> object | None:
    """Returns all that the outcome of an apply to an object depends on.

    None if it depends on more, and for a request that is audited: admission annotates its event.
    """
    store, request = scope.backend.store, scope.request
    if request.audit is not None or not scope.backend.admission.repeatable:
        return None
    # No revision is used twice in a store. Forks have the same revisions and share documents, which must not hold a store.
    return apply, weakref.ref(store), store.revision, request.user, scope.dry_run


def _patch_object(scope: Scope, representation: negotiation.MediaType, patch: Patch) -> Response:
    apply = patch.key
    circumstances = None if apply is None else _circumstances_of(scope, apply)
    for record in writes.attempts(scope, create_absent=patch.creates):
        if record is None and not patch.creates:  # kinds that a PUT creates: NotFound is reported before the patch is decoded
            raise scope.not_found()
        if record is not None and circumstances is not None and record.value.is_unchanged_by(circumstances):
            return response_writers.object_response(scope, representation, 200, record.value)
        live = conversion.live_object(scope.resource, record)
        if record is not None and apply is not None and record.value.is_unchanged_by(apply):
            obj = _copy_object(record.value.object)
        else:
            obj = _to_storage(scope, record, live, patch)
        check = admission.admit_update(scope, record, obj, live)
        written = writes.commit(scope, record, obj, check)
        if written is not None:
            if record is not None and written.document is record.value and apply is not None and not scope.request.warnings:
                record.value.note_unchanged(apply, circumstances)
            return response_writers.object_response(scope, representation, 201 if written.created else 200, written.document)
    raise AssertionError
