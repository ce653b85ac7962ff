"""The field manager: managedFields of every write, and server-side apply.

One `FieldManager` serves one kind in one version, at its main path or at a subresource. `update` sets managedFields
after a change (create, replace, any patch); `apply` merges a configuration and sets managedFields.

Invariant: of the arguments, only the new object of `update`, which belongs to its request, is changed, and only its
`metadata`. An apply that changes only managedFields does not change the rest of the live object.

Specified by: k8s.io/apimachinery/pkg/util/managedfields/internal: fieldmanager.go and the managers that it
stacks (versioncheck, lastapplied, skipnonapplied, capmanagers, managedfieldsupdater, stripmeta,
structuredmerge).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.errors.status import bad_request, not_convertible
from fakekube.apimachinery.patch import uninterpreted_error
from fakekube.apimachinery.patch.apply import managed_fields, updater
from fakekube.apimachinery.patch.apply.atoms import Atom, Difference, TypingError
from fakekube.apimachinery.patch.apply.changes import Change, Changes
from fakekube.apimachinery.patch.apply.fieldpath import FieldSet, field, print_path
from fakekube.apimachinery.patch.apply.managed_fields import APPLY, UPDATE, EntryError, Managed, Manager, Owned
from fakekube.apimachinery.patch.apply.schema import atom_of, custom_atom_of
from fakekube.apimachinery.patch.apply.updater import (
    Comparison,
    Conflicts,
    Filter,
    Typed,
    UnknownVersion,
    Updater,
    without_managed_fields,
)
from fakekube.apimachinery.schema.known_specs import SPEC
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.printing import zero
from fakekube.apimachinery.schema.trees import holds_raw_values, text_of, without_texts
from fakekube.apimachinery.schema.unstructured import from_unstructured
from fakekube.apimachinery.schema.walk import DecodeError
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object, group_version

OtherVersion = Callable[[Object, str, str], "tuple[Object, Type] | None"]
"""(object, its apiVersion, another apiVersion) → the object in that version and the type of its kind there; None if there is no
such version. Objects have kind and apiVersion or not, as at rest."""

#: The fields that no manager ever owns.
_NEVER_OWNED: Final = FieldSet.from_paths(
    (field("apiVersion"),),
    (field("kind"),),
    (field("metadata"),),
    *(
        (field("metadata"), field(name))
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)

#: The maximum number of configurations whose field sets are cached.
_MAX_APPLIED: Final = 500

#: The maximum number of shapes of new objects whose managedFields are cached.
_MAX_CREATIONS: Final = 500
#: Stands for the text of a spec.
_NO_SPEC: Final = b""
#: The maximum number of members of an object whose shape is determined.
_MAX_MEMBERS: Final = 50

#: The manager of the current change until it is known whether anything changed.
_CURRENT: Final = Manager("current-operation", UPDATE)

#: The manager of the existing fields at the first apply to an object without managedFields.
_BEFORE_FIRST_APPLY: Final = "before-first-apply"


_ownable: BoundedCache[int, tuple[FieldSet, FieldSet]] = BoundedCache(_MAX_APPLIED)
"""Interned sets of configurations, by the identity of their trees, and those without the fields that no manager owns."""


def _leave_out_never_owned(fields: FieldSet) -> FieldSet:
    """Returns a set without the fields that no manager ever owns."""
    known = _ownable.get(id(fields.tree))
    if known is not None:
        return known[1]
    left = fields - _NEVER_OWNED
    return _ownable.add(id(fields.tree), (fields, managed_fields.intern(left)))[1] if managed_fields.is_interned(fields) else left


def _has_no_scalars(value: Any) -> bool:
    """Reports whether no scalar of an object can equal that of an empty one, so that all that are there are owned."""
    return value is None or (isinstance(value, dict) and all(map(_has_no_scalars, value.values())))


def _shape_of(value: dict[str, Any], levels: int = 3) -> Hashable | None:
    """Returns the names of an object's members, the classes of scalars, which of them are empty, and the texts of lists.

    Objects of one shape have the same field set, also when they are normalised. None for large and deep objects.
    """
    if len(value) > _MAX_MEMBERS or not levels:
        return None
    marks: list[Hashable] = []
    for item in value.values():
        kind = item.__class__
        if kind is not dict and kind is not list:
            marks.append(kind if item else (kind,))
            continue
        mark = _shape_of(item, levels - 1) if kind is dict else text_of(item)
        if mark is None:
            return None
        marks.append(mark)
    return tuple(value), tuple(marks)


def excluding(paths: Iterable[tuple[str, ...]]) -> Filter:
    """Returns a filter that removes fields (paths of names) and everything below them."""
    excluded = FieldSet.from_paths(*(tuple(map(field, path)) for path in paths))
    return lambda fields: fields.recursive_difference(excluded)


def including(paths: Iterable[tuple[str | None, ...]]) -> Filter:
    """Returns a filter that keeps only these fields and everything below them; None matches any element."""
    patterns = [tuple(name if name is None else field(name) for name in path) for path in paths]
    return lambda fields: fields.matching(patterns)


class FieldManager:
    """Tracks the field managers of one kind in one version."""

    def __init__(
        self,
        type: Type,
        group: str,
        version: str,
        kind: str,
        *,
        subresource: str = "",
        filters: Mapping[str, Filter] | None = None,
        other_version: OtherVersion | None = None,
        custom: bool = False,
        scale_of_custom: bool = False,
        keeps_entries: bool = True,
    ) -> None:
        """
        Args:
            type: the type of the kind (for a custom resource that of its schema, to which metadata is added).
            subresource: the subresource of the writes; "" for the main resource.
            filters: by apiVersion, the filters of the reset fields of the strategy.
            other_version: converts objects; by default there are no other versions.
            custom: whether this is a custom resource, whose objects have kind and apiVersion and sorted members.
            scale_of_custom: whether this is the scale of a custom resource, which the real server cannot apply.
            keeps_entries: whether a change that cannot be attributed keeps the stored managedFields, or drops them.
        """
        self._type = type
        self._kind = kind
        self._gvk = f"{group}/{version}, Kind={kind}"
        self._api_version = group_version(group, version)
        self._subresource = subresource
        self._other_version = other_version
        self._custom = custom
        self._scale_of_custom = scale_of_custom
        self._keeps_entries = keeps_entries
        self._atom = custom_atom_of(type) if custom else atom_of(type)
        self._atoms: dict[int, Atom] = {id(type): self._atom}
        self._empty = {} if custom else zero(type)
        self._has_plain_zero = _has_no_scalars(self._empty)
        self._holds_texts = holds_raw_values(type)
        self._updater = Updater(self._convert, filters or {})
        self._changes = Changes(self._api_version)
        self._creations: BoundedCache[Hashable, dict[str, Any]] = BoundedCache(_MAX_CREATIONS)
        """The managedFields entries of new objects, with some time, by `creation_of`."""
        self._applied: BoundedCache[bytes | None, FieldSet] = BoundedCache(_MAX_APPLIED)
        """The field sets of valid configurations, by their text."""
        self._applied_specs: BoundedCache[bytes, FieldSet] = BoundedCache(_MAX_APPLIED)
        """The fields of valid configurations that are those of their specs, by the text of these."""

    # --- Update -------------------------------------------------------------------------------------------------------

    def update(self, live: Object | None, new: Object, manager: str, now: datetime, creation: Hashable | None = None) -> None:
        """Sets the managedFields of a changed object.

        Args:
            live: the stored object; None for a create.
            new: the new object before admission, which belongs to the request. Its managedFields are those that
                the client sent.
            manager: the fieldManager of the request, or the prefix of its user agent.
            creation: that of a new object (`creation_of`), under which its managedFields are kept.
        """
        metadata = new.get("metadata")
        if not isinstance(metadata, dict):
            return
        requested = metadata.pop("managedFields", None)
        if live is None and not requested:
            self._track_creation(new, metadata, manager, now, creation)
            return
        before = _entries_of(live)
        entries = self._entries_before(requested, before)
        old = without_managed_fields(live) if live is not None else self._empty
        try:
            written = self._track(old, new, entries, manager, now)
        except TypingError:
            if before and self._keeps_entries:
                self._set_metadata(metadata, before)
            return
        if written:
            self._set_metadata(metadata, written)

    def creation_of(self, new: Object, manager: str, spec_text: bytes | None = None) -> Hashable | None:
        """Returns what the managedFields of a new object depend on: the spec, and which members the rest has; None if unknown.

        Args:
            new: the object, which need not be normalised, without managedFields.
            spec_text: a text that tells its spec, if one is known.
        """
        if not self._has_plain_zero:
            return None
        text = spec_text or (text_of(new[SPEC]) if SPEC in new else _NO_SPEC)
        rest = _shape_of({name: item for name, item in new.items() if name != SPEC} if SPEC in new else new)
        return None if text is None or rest is None else (manager, text, rest)

    def repeat_creation(self, creation: Hashable | None, metadata: Object, now: datetime) -> bool:
        """Sets the managedFields of a new object like those of an equal creation; returns whether there was one."""
        entry = self._creations.get(creation)
        if entry is not None:
            self._set_metadata(metadata, [{**entry, "time": print_time(now)}])
        return entry is not None

    def _track_creation(self, new: Object, metadata: Object, manager: str, now: datetime, creation: Hashable | None) -> None:
        """Sets the managedFields of a new object: its maker owns all its fields."""
        try:
            entries = self._track(self._empty, new, [], manager, now)
        except TypingError:
            return
        if not entries:
            return
        self._set_metadata(metadata, entries)
        if creation is not None and text_of(entries[0]) is not None:  # it is not too long
            self._creations.add(creation, entries[0])

    def _entries_before(self, requested: Any, before: list[Any]) -> list[Any]:
        """Returns the entries before a change: those in the request if they may be set and are valid, else the stored ones."""
        if requested is not None and not self._subresource and requested != before:
            if managed_fields.is_reset(requested):
                return []
            sent = self._encode(_decode_or_empty(requested))
            if sent:
                return sent
        return before

    def _track(self, old: Object, new: Object, before: list[Any], manager: str, now: datetime) -> list[Any]:
        """Returns the entries after a change, with which the manager becomes the only owner of the changed fields.

        They are known if a like change was made before. Objects without managedFields since their creation stay without them.
        Raises TypingError.

        Args:
            old: the object before, without managedFields.
            new: the object after, without managedFields.
            before: the entries before.
        """
        if not before and _has_uid(old):
            return []
        if self._custom:
            self._as_typed(new).check(duplicates=True)
            self._as_typed(old).check(duplicates=True)
        difference = self._atom.compare(old, new)  # the reset fields included: the outcome of a known change needs no filter
        change = self._changes.find(difference, before, manager)
        if change is not None:
            return change.entries(before, now)
        managed = _decode_or_empty(before)
        if not managed.owners and _has_uid(old):
            return []
        if not managed_fields.are_shared(before):  # of an object that was made again from its text
            before = self._encode(managed)
            change = self._changes.find(difference, before, manager)
            if change is not None:
                return change.entries(before, now)
        after, maker = self._attribute(old, new, difference, managed, manager=manager, now=now)
        if len(after.owners) > managed_fields.MAX_UPDATE_MANAGERS or len(managed.times) < len(before):
            return self._encode(after.cap_update_managers())  # of which the oldest are merged
        change = Change.from_managers(before, after, maker, sorted_keys=self._custom)
        self._changes.keep(difference, change, manager)
        return change.entries(before, now)

    def _attribute(
        self, old: Object, new: Object, difference: Difference, managed: Managed, *, manager: str, now: datetime
    ) -> tuple[Managed, Manager | None]:
        """Returns the managers after a change, and its manager if the change gives it fields."""
        comparison = self._updater.without_reset_fields(Comparison.from_difference(difference), self._api_version)
        owners = self._updater.update(self._as_typed(old), self._as_typed(new), managed.owners, _CURRENT, comparison)
        maker = self._give_to_manager(owners, manager)
        times = managed.times if maker is None else {**managed.times, maker: print_time(now)}
        return Managed(owners, times), maker

    def _give_to_manager(self, owners: dict[Manager, Owned], manager: str) -> Manager | None:
        """Gives the fields of the current operation to the manager, and returns it; None if there are none."""
        current = owners.pop(_CURRENT, None)
        fields = current.fields - _NEVER_OWNED if current is not None else FieldSet()
        if not fields:
            return None
        maker = Manager.for_write(manager, UPDATE, self._api_version, self._subresource)
        if maker in owners:
            fields |= owners[maker].fields
        owners[maker] = Owned(fields, self._api_version)
        return maker

    # --- Apply --------------------------------------------------------------------------------------------------------

    def apply(self, live: Object | None, applied: Any, manager: str, force: bool, now: datetime) -> Object:
        """Applies a configuration. Returns the object before defaulting.

        Args:
            live: the stored object; None if it does not exist.
            applied: the parsed configuration, with kind and apiVersion.

        Returns:
            `live` itself if nothing changes; `live` with other managedFields if only these change; else, for a
            built-in kind, a new tree.

        Raises:
            StatusError: 400 for a configuration of another kind, 409 for conflicts, 500 for one that does not conform
                to the type.
        """
        as_expected = applied.get("kind") == self._kind and applied.get("apiVersion") == self._api_version
        if not as_expected and self._gvk_of(applied) != self._gvk:
            raise bad_request(f"invalid object type: {self._gvk_of(applied)}")
        before = _entries_of(live)
        try:
            managed = managed_fields.decode(before)
        except EntryError as error:
            raise uninterpreted_error(f"failed to decode managed fields: {error}") from None
        base = live if live is not None else self._empty
        if live is not None and not managed.owners:
            managed = self._before_first_apply(live, managed, now)
        result, managed = self._apply(base, applied, managed, manager=manager, force=force, now=now)
        if manager == updater.KUBECTL:
            result = updater.with_annotation(result, applied)
        return self._with_entries(result, managed, before)

    def _before_first_apply(self, live: Object, managed: Managed, now: datetime) -> Managed:
        """Returns the managers of an object without managedFields: `before-first-apply` owns its fields."""
        problem = "failed to create manager for existing fields"
        if self._scale_of_custom:
            raise self._not_convertible(f"{problem}: failed to convert live object (/; {self._gvk})")
        try:
            self._as_typed(live).check(duplicates=True)
        except TypingError as error:
            what = f"failed to convert new object ({self._describe(live)}) to smd typed"
            raise uninterpreted_error(f"{problem}: {what}: {error}") from None
        new = without_managed_fields(live)
        difference = self._atom.compare(self._empty, new)
        return self._attribute(self._empty, new, difference, managed, manager=_BEFORE_FIRST_APPLY, now=now)[0]

    def _apply(
        self, live: Object, applied: Any, managed: Managed, *, manager: str, force: bool, now: datetime
    ) -> tuple[Object, Managed]:
        """Returns the object with the configuration applied, or itself, and the managers after that."""
        configuration, fields = self._configuration(applied)
        old = self._as_typed(without_texts(self._type, live) if self._holds_texts else live)
        if self._custom:
            self._check_live(old)
        who = Manager.for_write(manager, APPLY, self._api_version, self._subresource)
        try:
            new, owners = self._merge(old, configuration, managed, who, fields=fields, force=force)
        except TypingError as error:
            self._check_live(old)
            raise uninterpreted_error(str(error)) from None
        times = dict(managed.times)
        if who in owners:
            fields = _leave_out_never_owned(owners[who].fields)
            del owners[who]
            if fields:
                owners[who] = Owned(fields, self._api_version)
        if new is old and live is not self._empty:
            return live, Managed(owners, times)
        times[who] = print_time(now)
        return self._decode(new.value, applied, live), Managed(owners, times)

    def _configuration(self, applied: Object) -> tuple[Typed, FieldSet]:
        """Validates the applied configuration; returns it with its field set. Raises StatusError.

        Clients apply the same configuration again and again, so the sets of valid ones are cached by their text.
        """
        metadata = applied.get("metadata")
        if isinstance(metadata, dict) and managed_fields.are_readable(metadata.get("managedFields")):
            raise bad_request("metadata.managedFields must be nil")
        value = applied
        if not self._custom:
            value = {name: item for name, item in applied.items() if name not in ("kind", "apiVersion")}
        configuration, text = self._as_typed(value), text_of(value)
        known = self._applied.get(text)
        if known is not None:
            return configuration, known
        try:
            fields = self._read_fields(configuration)
            return configuration, fields if text is None else self._applied.add(text, managed_fields.intern(fields))
        except TypingError as error:
            what = self._describe(applied)
            raise uninterpreted_error(f"failed to create typed patch object ({what}): {error}") from None

    def _read_fields(self, configuration: Typed) -> FieldSet:
        """Validates a configuration and returns its field set; a spec that many have is read once. Raises TypingError."""
        spec = configuration.value.get(SPEC)
        text = text_of(spec) if spec else None
        if text is None:
            return configuration.read_fields()
        known = self._applied_specs.get(text)
        if known is not None:
            rest = {name: item for name, item in configuration.value.items() if name != SPEC}
            return self._as_typed(rest).read_fields() | known
        fields = configuration.read_fields()
        self._applied_specs.add(text, fields.starting_with(field(SPEC)))
        return fields

    def _check_live(self, live: Typed) -> None:
        try:
            live.check(duplicates=True)
        except TypingError as error:
            what = self._describe(live.value)
            raise uninterpreted_error(f"failed to create typed live object ({what}): {error}") from None

    def _merge(
        self, live: Typed, applied: Typed, managed: Managed, who: Manager, *, fields: FieldSet, force: bool
    ) -> tuple[Typed, dict[Manager, Owned]]:
        """Returns the merged object and its managers; kubectl takes over the fields of its client-side apply."""
        try:
            return self._updater.apply(live, applied, managed.owners, who, fields=fields, force=force)
        except Conflicts as conflicts:
            allowed = None
            if who.name == updater.KUBECTL:
                allowed = updater.fields_taken_over(live, self._kind)
            left = conflicts if allowed is None else conflicts.drop_allowed(allowed)
            if left.paths:
                raise _conflict_error(left) from None
        return self._updater.apply(live, applied, managed.owners, who, fields=fields, force=True)

    def _decode(self, new: Object, applied: Object, live: Object) -> Object:
        """Decodes the merged object."""
        if self._scale_of_custom:
            raise self._not_convertible(f"failed to convert new object ({self._describe(applied)})")
        if self._custom:
            return new
        try:
            return decode_unstructured(self._type, self._gvk, new, decoded=None if live is self._empty else live)
        except TypingError as error:
            raise uninterpreted_error(
                f"failed to convert new object ({self._describe(applied)}) to proper version: {error}"
            ) from None

    def _not_convertible(self, problem: str) -> StatusError:
        reason = f"request to convert CR to an invalid group/version: {self._api_version}"
        return uninterpreted_error(f"{problem} to proper version: {reason}")

    # --- Helpers ------------------------------------------------------------------------------------------------------

    def _as_typed(self, value: Any) -> Typed:
        return Typed(value, self._api_version, self._atom)

    def _convert(self, typed: Typed, version: str) -> Typed:
        """See `updater.Convert`."""
        if version.count("/") > 1:
            raise TypingError(f"unexpected GroupVersion string: {version}")
        if version == self._api_version == typed.api_version:
            return typed
        found = self._other_version(typed.value, typed.api_version, version) if self._other_version else None
        if found is None:
            raise self._unknown_version(version)
        value, type = found
        return Typed(value, version, self._atom_of(type)).check()

    def _unknown_version(self, version: str) -> UnknownVersion | TypingError:
        """Returns the error for a version that the kind does not have.

        Managers of such a version are dropped; not so for custom resources, whose converter has another error (crConverter).
        """
        if not self._custom:
            return UnknownVersion()
        if version.rpartition("/")[0] == self._api_version.rpartition("/")[0]:
            return TypingError(f"request to convert CR to an invalid group/version: {version}")
        return TypingError(not_convertible(str(self._gvk), version))

    def _atom_of(self, type: Type) -> Atom:
        if not self._custom:
            return atom_of(type)
        known = self._atoms.get(id(type))
        if known is None:
            known = self._atoms[id(type)] = custom_atom_of(type)
        return known

    def _gvk_of(self, applied: Any) -> str:
        """Returns group, version and kind as Go prints them; empty ones if they are invalid."""
        api_version, kind = applied.get("apiVersion"), applied.get("kind")
        api_version = api_version if isinstance(api_version, str) else ""
        kind = kind if isinstance(kind, str) else ""
        if api_version.count("/") > 1:
            return "/, Kind="
        group, _, version = api_version.rpartition("/")
        return f"{group}/{version}, Kind={kind}"

    def _describe(self, applied: Object) -> str:
        """Returns namespace, name and kind as in error messages."""
        metadata = applied.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace, name = (value if isinstance(value := metadata.get(key), str) else "" for key in ("namespace", "name"))
        return f"{namespace}/{name}; {self._gvk}"

    def _encode(self, managed: Managed) -> list[dict[str, Any]]:
        return managed_fields.encode(managed, sorted_keys=self._custom)

    def _set_metadata(self, metadata: Object, written: list[Any]) -> None:
        metadata["managedFields"] = written
        if self._custom:
            members = sorted(metadata.items())
            metadata.clear()
            metadata.update(members)

    def _with_entries(self, obj: Object, managed: Managed, before: list[Any]) -> Object:
        """Returns the object with these managedFields; itself if it already has them."""
        written = self._encode(managed)
        is_same = managed_fields.are_same(written, before)
        if is_same and before == _entries_of(obj):
            return obj
        metadata = dict(obj.get("metadata") or {})
        metadata.pop("managedFields", None)
        if written:
            self._set_metadata(metadata, before if is_same else written)
        return {**obj, "metadata": metadata}


def decode_unstructured(type: Type, gvk: str, value: Object, *, decoded: Object | None = None) -> Object:
    """Decodes an object of a built-in kind; `decoded` as in `from_unstructured`. Raises TypingError."""
    try:
        found: Object = from_unstructured(type, value, decoded=decoded)
    except DecodeError as error:
        raise TypingError(f"unable to convert unstructured object to {gvk}: {error}") from None
    return found


def _conflict_error(conflicts: Conflicts) -> StatusError:
    """Returns a 409 with one cause per field."""
    found = list(conflicts)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager.printed}", "field": print_path(path)}
        for manager, path in found
    ]
    if len(found) == 1:
        (manager, path), *_ = found
        message = f"Apply failed with 1 conflict: conflict with {manager.printed}: {print_path(path)}"
    else:
        lines = []
        for manager, fields in conflicts.paths.items():
            lines.append(f"conflicts with {manager.printed}:")
            lines += [f"- {print_path(path)}" for path in fields]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", message, {"causes": causes})


def _entries_of(obj: Object | None) -> list[Any]:
    return ((obj or {}).get("metadata") or {}).get("managedFields") or []


def _decode_or_empty(before: list[Any]) -> Managed:
    if not before:
        return Managed()
    try:
        return managed_fields.decode(before)
    except EntryError:
        return Managed()


def _has_uid(obj: Object | None) -> bool:
    return bool(((obj or {}).get("metadata") or {}).get("uid"))
