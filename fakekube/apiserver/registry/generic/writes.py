"""Implements the write path of the registry: create and update, with the hooks of each kind's strategy.

`create` stores a new object. An update is a loop over `attempts`: each yields the stored state, from which the handler makes the
new one; `commit` prepares and validates it, and stores it unless another write came first, after which there is another attempt.
Only setting the revision runs under the store's lock. An update without changes commits nothing; one that removes the last
finalizer of a terminating object deletes it. A dry run skips the commit.

The metadata that the server owns is set on create and kept on update, in the request's own tree. Times are RFC 3339 with whole
seconds, from the cluster's clock.

Invariants: stored objects are never changed; an object is committed in the printed form of its type
(`apimachinery.schema.printing`), so that two equal objects have equal encodings.

Specified by: k8s.io/apiserver/pkg/registry/generic/registry (store.go, dryrun.go), registry/rest/{create,update}.go,
registry/rest/meta.go (WipeObjectMetaSystemFields, FillObjectMetaSystemFields, EnsureObjectNamespaceMatchesRequestNamespace),
storage/names/generate.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import Document, keep_recent
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.errors import field as fields
from fakekube.apimachinery.schema import printing
from fakekube.apis.disabled_fields import drop_disabled_fields
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import names, objectmeta
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.request_options import parse_revision
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.chance import random_string, random_uuid
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.store import Conflict, Record

_SUFFIX_LENGTH = 5
_PREFIX_LENGTH = 63 - _SUFFIX_LENGTH

_WIPED = frozenset({"selfLink", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})


def wipe(metadata: dict[str, Any]) -> None:
    """Removes fields that a client cannot set on create."""
    for name in _WIPED & metadata.keys():
        del metadata[name]


def fill(metadata: dict[str, Any], now: datetime) -> None:
    """Sets uid and creationTimestamp of a new object."""
    metadata["uid"] = random_uuid()
    metadata["creationTimestamp"] = print_time(now)


def _needs_generated_name(metadata: Mapping[str, Any]) -> bool:
    return bool(metadata.get("generateName")) and not metadata.get("name")


def _generate_name(prefix: str) -> str:
    """Returns a name for a generateName: the prefix, cut to 58 characters, and five random ones."""
    return prefix[:_PREFIX_LENGTH] + random_string(_SUFFIX_LENGTH)


def match_namespace(metadata: dict[str, Any], namespace: str) -> None:
    """Sets the namespace of the request ("" for cluster-scoped resources) in an object that has none or the same.

    Raises StatusError 400 if the object has another one. The namespace of a cluster-scoped object is dropped.
    """
    own = metadata.get("namespace", "")
    if namespace and own and own != namespace:
        problem = "the namespace of the provided object does not match the namespace sent on the request"
        raise status.bad_request(problem)
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)


def match_name(metadata: Mapping[str, Any], name: str) -> None:
    """Raises StatusError 400 if the name of an object differs from that in the path."""
    own = metadata.get("name", "")
    if not own:
        problem = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(problem)
    if own != name:
        raise status.bad_request(f"the name of the object ({own}) does not match the name on the URL ({name})")


def _keep_on_update(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keeps the fields that an update can neither set nor remove (a missing uid is set, and validated afterwards)."""
    if not metadata.get("uid"):
        metadata["uid"] = old.get("uid", "")
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in old:
            metadata[name] = old[name]
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])


def deduplicate_owners(metadata: dict[str, Any], warnings: list[str], *, after_admission: bool) -> None:
    """Removes owner references that are exact duplicates, and warns the client."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[frozenset[tuple[str, Any]], Any] = {}
    doubled = [owner.get("uid", "") for owner in owners if kept.setdefault(frozenset(owner.items()), owner) is not owner]
    if doubled:
        metadata["ownerReferences"] = list(kept.values())
        when = " after mutating admission happens" if after_admission else ""
        warnings.append(_DOUBLED.format(when=when, uids=", ".join(doubled)))


_DOUBLED = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


#: The number of retries after a collision of a generated name.
_NAME_ATTEMPTS = 8

#: The placeholder for the revision until the store assigns one.
_UNSTAMPED = "0"

_NOT_COUNTED = frozenset({"metadata", "status", "apiVersion", "kind"})

Check = Callable[[Object, Object | None], None]
"""(new object, stored object or None): validating admission; raises StatusError."""


@dataclass(slots=True)
class Written:
    """The result of a write: the object (of a dry run: as it would be), and whether it was created or removed."""

    document: Document
    created: bool = False
    deleted: bool = False


def stamp_revision(obj: Object, revision: int) -> Document:
    """Returns the document to store of an object with its revision; everything else is shared."""
    document = document_at(obj, revision)
    keep_recent(document)
    return document


def _stamp_new(obj: Object, revision: int) -> Document:
    """Returns the document to store of a new object, whose tree belongs to the write, with its revision."""
    obj["metadata"]["resourceVersion"] = str(revision)
    document = Document(obj)
    keep_recent(document)
    return document


def document_at(obj: Object, revision: int) -> Document:
    """Returns the document of an object with a revision, which is not stored."""
    return Document({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})


def same_object(new: Object, stored: Document) -> bool:
    """Reports whether storing `new` would change only the revision."""
    old = stored.object
    if new is old:
        return True
    meta = {**new["metadata"], "resourceVersion": old["metadata"].get("resourceVersion", "")}
    candidate = {**new, "metadata": meta}
    return candidate == old and Document(candidate).json == stored.json  # 1, 1.0 and True are equal in Python


# --- Create -----------------------------------------------------------------------------------------------------------


def create(scope: Scope, obj: Object, check: Check) -> Written:
    """Stores a new object; retries with another generated name after a collision.

    Raises StatusError: 409 if the name is taken, 422 if the object is invalid, and whatever `check` raises.
    """
    meta = obj["metadata"]
    if not _needs_generated_name(meta):
        return _create_named(scope, obj, check)
    prefix, warnings = meta["generateName"], len(scope.request.warnings)
    for attempt in range(_NAME_ATTEMPTS):
        del scope.request.warnings[warnings:]
        name = _generate_name(prefix) if scope.resource.strategy.suffixes_names else prefix
        candidate = {**obj, "metadata": {**meta, "name": name}}
        try:
            return _create_named(scope, candidate, check)
        except StatusError as error:
            if error.reason != "AlreadyExists" or attempt == _NAME_ATTEMPTS - 1:
                raise
    raise AssertionError


def _create_named(scope: Scope, obj: Object, check: Check) -> Written:
    if not scope.dry_run:  # the storage takes it away, where a dry run does not come
        obj["metadata"].pop("selfLink", None)
    obj["metadata"].setdefault("name", "")  # strategies may read it; validation reports that it is missing
    fill(obj["metadata"], scope.backend.clock.now())
    context = scope.context
    scope.strategy.check_privileges(context, obj, None)
    finish = scope.strategy.begin_create(context, obj)
    stored = False
    try:
        written = _create_begun(scope, context, obj, check)
        stored = not scope.dry_run
    finally:
        if finish:
            finish(stored)
    return written


def _create_begun(scope: Scope, context: WriteContext, obj: Object, check: Check) -> Written:
    prepared = _prepare_for_create(scope, context, obj, check)
    name = prepared["metadata"]["name"]
    key = scope.resource.key(scope.namespace, name)
    if scope.dry_run:
        if scope.bucket.get(key) is not None:
            raise _make_already_exists(scope, key, name, obj)
        return Written(Document(scope.resource.strategy.read_back(scope.resource.to_stored_form(prepared))), created=True)
    _refuse_revision(scope, prepared)
    final = scope.resource.strategy.read_back(
        scope.resource.to_stored_form(_with_placeholder(prepared), spec_text=context.spec_text)
    )
    try:
        record = scope.bucket.commit(key, 0, partial(_stamp_new, final))
    except Conflict:
        raise _make_already_exists(scope, key, name, obj) from None
    record.value.has_floats = scope.resource.has_floats
    return Written(record.value, created=True)


def _prepare_for_create(scope: Scope, context: WriteContext, obj: Object, check: Check) -> Object:
    """Runs BeforeCreate and validating admission. Objects created through a subresource are prepared as any new object."""
    strategy, meta = scope.resource.strategy, obj["metadata"]
    match_namespace(meta, scope.namespace)
    if strategy.has_status:
        strategy.reset_status(obj)
    if strategy.generation:
        meta["generation"] = 1
    drop_disabled_fields(scope.resource.emulation, scope.resource.group, scope.resource.plural, obj, None)
    context.spec_text, context.metadata_is_valid = None, False  # an update may have been attempted before
    strategy.prepare_for_create(context, obj)
    namespaced = scope.resource.namespaced
    errors: list[fields.FieldError] = []
    if strategy.checks_metadata:
        errors += objectmeta.validate_object_meta(
            meta, namespaced, strategy.name_errors, standard_finalizers=strategy.standard_finalizers
        )
    errors += strategy.validate(context, obj)
    if not errors and not strategy.checks_metadata and not context.metadata_is_valid:
        errors += objectmeta.validate_object_meta(meta, namespaced, names.path_segment, standard_finalizers=False)
    elif not errors and meta.get("generateName"):  # the rules of some kinds do not look at it
        errors += objectmeta.validate_generate_name(meta["generateName"], "metadata.generateName")
    if errors:
        raise scope.invalid(obj, errors)
    context.warnings.extend(strategy.warnings(context, obj, None))
    strategy.canonicalize(obj)
    check(obj, None)
    return obj


def _refuse_revision(scope: Scope, obj: Object) -> None:
    text = obj["metadata"].get("resourceVersion", "")
    if not text:
        return
    try:
        revision = parse_revision(text, scope.backend.store.revision)
    except ValueError:
        return
    if revision:
        raise status.generic(500, "", "resourceVersion should not be set on objects to be created")


def _make_already_exists(scope: Scope, key: str, name: str, obj: Object) -> StatusError:
    """Returns a 409 for a name that is in use; the message reports if the other object is being deleted."""
    resource = scope.resource
    error = status.already_exists(resource.group, resource.plural, name)
    if obj["metadata"].get("generateName"):
        error = status.generate_name_conflict(resource.group, resource.plural, name)
    record = scope.bucket.get(key)
    if record is not None and "deletionTimestamp" in record.value.object["metadata"]:
        error.message = f"object is being deleted: {error.message}"
    return error


# --- Update -----------------------------------------------------------------------------------------------------------


#: The first minor that looks whether there is an object before it looks at the uid in a PUT (ignoreNotFound of Store.Update).
_ABSENCE_FIRST_SINCE = 34

#: The first minor in which an object that a PUT or an apply creates is wiped like one of a POST.
_WIPED_IN_UPDATES_SINCE = 37


def attempts(scope: Scope, *, uid: str = "", create_absent: bool = False) -> Iterator[Record[Document] | None]:
    """Yields the record on which each attempt of an update is based: first the present one, and a newer one after each conflict.

    A caller makes the new object and commits it (`commit`); it asks for another attempt when that returns None. There is no end:
    an attempt succeeds, or raises an error.

    Args:
        scope: that of the object.
        uid: the uid that the client has as a precondition; "" for none.
        create_absent: whether an absent object, for which the record is None, is created. Strategies may allow it, too.

    Raises:
        StatusError: 404, or 409 for another uid.
    """
    create_allowed = create_absent or scope.strategy.create_on_update
    warnings = len(scope.request.warnings)
    while True:
        del scope.request.warnings[warnings:]  # of the attempt that lost
        record = scope.bucket.get(scope.key)
        preconditions_first = uid and scope.resource.emulation.minor < _ABSENCE_FIRST_SINCE
        if record is None and not create_allowed and not preconditions_first:
            raise scope.not_found()
        stored_uid = record.value.object["metadata"].get("uid", "") if record else ""
        if uid and uid != stored_uid:
            raise scope.conflict(_wrong_uid(scope, uid, stored_uid))
        yield record


def commit(scope: Scope, record: Record[Document] | None, obj: Object, check: Check) -> Written | None:
    """Writes the new state of an object by compare-and-set; returns None if another write came first.

    Args:
        scope: that of the object.
        record: that of the attempt; None to create the object.
        obj: the new state, a tree of the caller's own.
        check: validating admission.

    Raises:
        StatusError: 409 for a stale resourceVersion, 422, and what the checks raise.
    """
    try:
        if record is not None:
            return _update_once(scope, record, obj, check)
        _revision_of(scope, obj["metadata"])
        if scope.resource.emulation.minor >= _WIPED_IN_UPDATES_SINCE:
            wipe(obj["metadata"])
        if not scope.dry_run:  # the storage takes it away, where a dry run does not come
            obj["metadata"].pop("resourceVersion", None)
        return _create_named(scope, obj, check)
    except Conflict:
        return None
    except StatusError as error:
        if record is None and error.reason == "AlreadyExists":
            return None
        raise


def _update_once(scope: Scope, record: Record[Document], obj: Object, check: Check) -> Written:
    old = record.value.object
    scope.strategy.check_privileges(scope.context, obj, old)
    meta = obj["metadata"]
    # A patch leaves the text that is stored, which need not be parsed.
    is_current = meta.get("resourceVersion") == old["metadata"].get("resourceVersion")
    revision = record.revision if is_current else _revision_of(scope, meta)
    if revision == 0 and not scope.strategy.unconditional_update:
        error = fields.invalid("metadata.resourceVersion", 0, objectmeta.RESOURCE_VERSION_REQUIRED)
        raise status.invalid(scope.resource.group, scope.resource.plural, scope.name, [error])
    if revision not in (0, record.revision):
        raise scope.conflict(status.OPTIMISTIC_LOCK_ERROR)
    meta["resourceVersion"] = str(record.revision)
    finish = scope.strategy.begin_update(scope.context, obj, old)
    stored = False
    try:
        written = _update_begun(scope, record, obj, check)
        stored = not scope.dry_run
    finally:
        if finish:
            finish(stored)
    return written


def _update_begun(scope: Scope, record: Record[Document], obj: Object, check: Check) -> Written:
    old = record.value.object
    final = _prepare_for_update(scope, obj, record.value, check)
    if _is_released(scope, final, old):
        return _remove_released(scope, record, obj, final)
    must_store = record.revision == record.created and scope.resource.strategy.stores_unchanged_update(old)
    if same_object(final, record.value) and not must_store:
        return Written(record.value)
    if scope.dry_run:
        return Written(document_at(final, record.revision))
    committed = scope.bucket.commit(record.key, record.revision, partial(stamp_revision, final))
    record.value.supersede()
    committed.value.has_floats = scope.resource.has_floats
    return Written(committed.value)


def _prepare_for_update(scope: Scope, obj: Object, document: Document, check: Check) -> Object:
    """Runs BeforeUpdate and validating admission; returns the object in the form in which it is stored."""
    stored = document.object
    old = conversion.to_version(scope.resource, document).object if scope.resource.custom else stored
    strategy, context, meta = scope.strategy, scope.context, obj["metadata"]
    context.spec_text = None
    match_namespace(meta, scope.namespace)
    _keep(meta, old["metadata"], "generation")
    if strategy.has_status:
        _keep(obj, old, "status")
    written = scope.resource.plural if not context.subresource else f"{scope.resource.plural}/{context.subresource}"
    if strategy.generation_counts_disabled_fields:
        strategy.prepare_for_update(context, obj, old)
    drop_disabled_fields(scope.resource.emulation, scope.resource.group, written, obj, old)
    if not strategy.generation_counts_disabled_fields:
        strategy.prepare_for_update(context, obj, old)
    if strategy.generation and _spec_changed(scope, obj, old):
        meta["generation"] = old["metadata"].get("generation", 0) + 1
    _keep_on_update(meta, old["metadata"])
    if not scope.dry_run and not _is_released(scope, obj, old):
        meta.pop("selfLink", None)
    if _changes_nothing(scope, obj, document):
        context.warnings.extend(strategy.warnings(context, obj, old))
        check(stored, stored)
        return stored
    errors = objectmeta.validate_common_update(meta, old["metadata"])
    context.metadata_is_valid = not errors
    errors += _kind_errors(scope, strategy, obj, old)
    if errors:
        raise scope.invalid(obj, errors)
    context.warnings.extend(strategy.warnings(context, obj, old))
    strategy.canonicalize(obj)
    final = _keep_times(scope.resource.to_stored_form(obj, stored, spec_text=context.spec_text), document)
    if scope.resource.custom:  # admission sees it in the version of the request
        check(obj, old)
    else:
        check(final, stored)
    return final


def _changes_nothing(scope: Scope, obj: Object, document: Document) -> bool:
    """Reports whether a prepared object equals the stored one and needs no validation (custom resources may have warnings)."""
    if scope.resource.custom or scope.strategy.validates_unchanged_update or obj != document.object:
        return False
    # Of equal text, so that it is in the stored form already; where Go prints a float otherwise, the texts differ.
    if json.dumps(obj, floats=False) == document.json:
        return True
    return same_object(scope.resource.to_stored_form(obj, document.object), document)


def _kind_errors(scope: Scope, strategy: Strategy, obj: Object, old: Object) -> list[fields.FieldError]:
    """Returns the errors of the kind's update validation, which may validate the metadata again."""
    context, meta = scope.context, obj["metadata"]
    errors: list[fields.FieldError] = []
    if context.emulation.minor < strategy.validated_twice_until:
        errors += [*strategy.validate_metadata(context, meta), *strategy.validate_changed(context, obj, old)]
    if strategy.checks_metadata_update:
        errors += strategy.validate_metadata_update(context, meta, old["metadata"])
    if strategy.checks_metadata_again:
        errors += strategy.validate_metadata(context, meta)
    return errors + strategy.validate_update(context, obj, old)


def _spec_changed(scope: Scope, obj: Object, old: Object) -> bool:
    """Reports whether anything except metadata and status has changed, so that generation is incremented."""
    # Only in the form in which they are stored are equal values equal trees; but most differences are plain.
    changed = [name for name in (obj.keys() | old.keys()) - _NOT_COUNTED if obj.get(name) != old.get(name)]
    if not changed:
        return False
    if any(printing.surely_differ(obj.get(name), old.get(name)) for name in changed):
        return True
    stored = scope.resource.to_stored_form(obj)
    return any(stored.get(name) != old.get(name) for name in changed)


def _keep(new: dict[str, Any], old: dict[str, Any], name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _keep_times(new: Object, stored: Document) -> Object:
    """Keeps the old managedFields if only their times differ, so that the write is a no-op."""
    old = stored.object
    entries, old_entries = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if entries is None or old_entries is None or entries == old_entries or len(entries) != len(old_entries):
        return new
    if any({**e, "time": None} != {**o, "time": None} for e, o in zip(entries, old_entries, strict=True)):
        return new
    same = {**new, "metadata": {**new["metadata"], "managedFields": old_entries}}
    return same if same_object(same, stored) else new


# --- Pieces -----------------------------------------------------------------------------------------------------------


def _revision_of(scope: Scope, metadata: Object) -> int:
    """Returns the resourceVersion of an object; "" and "0" mean none. Raises StatusError 500, as the real server does."""
    text = metadata.get("resourceVersion", "")
    if text in ("", "0"):
        return 0
    try:
        return parse_revision(text, scope.backend.store.revision)
    except ValueError as problem:
        raise status.generic(500, "", str(problem)) from None


def _with_placeholder(obj: Object) -> Object:
    obj["metadata"]["resourceVersion"] = _UNSTAMPED
    return obj


def _wrong_uid(scope: Scope, wanted: str, stored: str) -> str:
    prefix = "" if scope.dry_run else "/registry"  # a dry run does not come as far as the storage that adds it
    return status.invalid_object(f"{prefix}/{_storage_path(scope)}", status.precondition_failed("UID", wanted, stored))


def _storage_path(scope: Scope) -> str:
    """Returns the key of the object in the real server's storage, below /registry/."""
    return f"{scope.resource.storage_prefix}/{scope.key}"


def _is_released(scope: Scope, new: Object, old: Object) -> bool:
    """Reports whether the old object is terminating without a grace period, and the new one has no finalizers."""
    old_meta = old["metadata"]
    if new["metadata"].get("finalizers") or "deletionTimestamp" not in old_meta or old_meta.get("deletionGracePeriodSeconds"):
        return False
    return scope.resource.strategy.releasable(new)


def _remove_released(scope: Scope, record: Record[Document], obj: Object, final: Object) -> Written:
    """Removes the object; the response has the object after the update, which was never in the storage, with the old revision."""
    if not scope.dry_run:
        scope.bucket.commit(scope.key, record.revision, None)
        scope.resource.strategy.after_delete(scope.context, record.value.object)
    unstored = final if scope.resource.keep else printing.normalise(scope.resource.storage_type, obj, stored=False)
    return Written(document_at(unstored, record.revision), deleted=True)
