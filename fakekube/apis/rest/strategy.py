"""Strategies: the hooks of a kind in creates, updates and deletions, and those of writes through /status.

Order of a create: decode by schema (unknown fields reported, constants defaulted) → `default` → mutating admission →
`prepare_for_create` → `validate` → `canonicalize` → validating admission → `begin_create` (allocations, undone if the write
fails) → store. An update has the same order with `prepare_for_update`, `validate_update`, `begin_update`.

Objects are plain dicts in the shape of the storage version, without kind and apiVersion. The *new* object is the request's
own tree and may be changed in place; the *old* one belongs to the store and is never changed (the new one may share parts of
it). A strategy has no state but the `emulation` that it is for: the `WriteContext` contains what it needs.

A `Subresource` is a path below an object; every one has one of three forms:

* a *view*: the object itself through another `Strategy` (status, finalize, approval, ephemeralcontainers, resize);
* a *projection*: another kind computed from the object and written back into it (scale);
* an *action*: a POST that does something and answers with an object (binding, eviction, token).

Subresources that need a kubelet (log, exec, proxy …) have none of these forms; see `apiserver.endpoints.handlers.connect`.

`check_key_name` and `unusable_name` check names with which the server itself looks up objects: the storage and the clients of the
real server have different error messages for invalid ones.

Specified by: k8s.io/apiserver/pkg/registry/rest (create.go, update.go, delete.go) and pkg/registry/**/strategy.go;
k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go (ResetObjectMetaForStatus);
k8s.io/apiserver/pkg/registry/generic/registry/store.go (NamespaceKeyFunc), k8s.io/client-go/rest/request.go (Name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import status
from fakekube.apis.rest.cluster_access import AdmissionSnapshot
from fakekube.apis.validation import names, objectmeta
from fakekube.apis.validation.names import path_segment
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object

if TYPE_CHECKING:
    from fakekube.apimachinery.errors import FieldError, StatusError
    from fakekube.apimachinery.schema.model import Type
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.resource import GVK, Resource
    from fakekube.base.clock import Clock


Finish = Callable[[bool], None]
"""Finishes a `begin_…`. True: the object was stored, so release what it no longer needs; False: it was not stored (as in
a dry run), so release what was allocated for it."""


def _admit(obj: Object) -> None:
    """Admits everything."""


@dataclass(slots=True)
class WriteContext:
    """The context of one write for strategies."""

    resource: Resource
    namespace: str
    clock: Clock
    services: ClusterAccess
    """Access to the cluster: other objects, allocators, signing keys, feature gates."""
    user: str = "admin"
    groups: Sequence[str] = ()
    uid: str = ""
    """Of the user."""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of the user."""
    verb: str = ""
    """The verb of the request, such as "update"."""
    subresource: str = ""
    name: str = ""
    """The name in the path; "" for a create."""
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """Texts of Warning headers, in order; the response has each of them once."""
    deadline: float = inf
    """The deadline of the request, by `time.monotonic()`, which also applies to webhooks."""
    annotations: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The audit annotations of admission: key → (audit level, value)."""
    configured: AdmissionSnapshot = field(default_factory=AdmissionSnapshot)
    """What the cluster has configured for admission, as of the beginning of the write."""
    check: Callable[[Object], None] = _admit
    """For actions: validating admission of the request body, which they call after validation. Raises StatusError."""
    remove: Callable[[str, Object], None] | None = None
    """For actions: deletes an object of the resource by name, with DeleteOptions, as a client would."""
    metadata_is_valid: bool = False
    """Whether the metadata have been validated: on an update by the common checks, so that the kind need not repeat them; on a
    create by the kind itself, so that no common checks follow."""
    spec_text: bytes | None = None
    """The JSON text of the spec since the strategy has prepared it, by which its forms are remembered; None: unknown.

    Set by kinds whose validation needs it and whose `canonicalize` changes nothing; unset when an object is prepared again."""

    @property
    def emulation(self) -> features.Emulation:
        """The minor and the gates of the server."""
        return self.resource.emulation

    def now(self) -> str:
        """Returns the current time as metav1.Time prints it."""
        return print_time(self.clock.now())

    def authorize(self, attributes: Mapping[str, str]) -> tuple[bool, str]:
        """Asks the authorizers whether the user may do something; returns the decision with its reason.

        Args:
            attributes: the resourceAttributes of an access review; absent ones are "".
        """
        spec = {"uid": self.uid, "extra": self.extra, "resourceAttributes": attributes}
        return self.services.authorize(self.user, self.groups, spec)


def spec_as_stored(context: WriteContext, obj: Object, old: Object) -> Object:
    """Returns the spec of a changed object in the form in which it will be stored, for comparison with the old one.

    An object that is not yet in this form may contain empty lists and maps, and lack fields that are always printed.
    """
    new: Object = obj.get("spec") or {}
    if new == old.get("spec"):
        return new
    stored: Object = context.resource.to_stored_form({"spec": new}).get("spec") or {}
    return stored


class Strategy:
    """The default strategy; the strategies of kinds subclass it and override what differs."""

    emulation: features.Emulation = features.DEFAULT
    """The minor and the gates of the server, which `apiserver.registry.builtin` sets."""

    create_on_update: ClassVar[bool] = False
    """PUT of an absent name creates (AllowCreateOnUpdate)."""
    unconditional_update: ClassVar[bool] = True
    """PUT without resourceVersion overwrites (AllowUnconditionalUpdate)."""
    delete_returns_object: ClassVar[bool] = False
    """DELETE returns the deleted object instead of a Status."""
    has_status: bool = False
    """The kind has a /status subresource: main writes keep the old status (a create drops it), status writes keep the rest."""
    suffixes_names: ClassVar[bool] = True
    """A generated name has a random suffix (all kinds except IPAddress)."""
    graceful: ClassVar[bool] = False
    """DELETE may leave the object terminating for a grace period (pods)."""
    terminates: ClassVar[bool] = False
    """The first DELETE only marks the object, even without finalizers; failed preconditions have different messages."""
    cached: ClassVar[bool] = True
    """The real server has a watch cache for this resource (all except events)."""
    collects_garbage: ClassVar[bool] = True
    """Deletion sets the garbage collector's finalizers for propagation policies (all except events)."""
    orphans_by_default: ClassVar[bool] = False
    """Deletion without a policy orphans dependents (jobs)."""
    standard_finalizers: ClassVar[bool] = True
    """Finalizers without a domain must be standard ones (not in a few groups)."""
    generation: ClassVar[bool] = False
    """metadata.generation starts at 1 and is incremented by changes of anything except metadata and status."""
    generation_counts_disabled_fields: ClassVar[bool] = False
    """An update is prepared before fields of disabled features are dropped from it."""

    validates_unchanged_update: ClassVar[bool] = False
    """An update that changes nothing is validated: a create accepts what no update does."""

    checks_metadata: ClassVar[bool] = True
    """A new object's metadata is validated before the rest; else loosely, and only if the rest is valid (events)."""
    checks_metadata_update: ClassVar[bool] = True
    """The kind's update validation also validates the change of the metadata (errors are then reported twice)."""
    checks_metadata_again: ClassVar[bool] = False
    """The kind's update validation also validates the metadata like that of a new object."""
    validated_twice_until: ClassVar[int] = 0
    """The number of the first minor whose ValidateUpdate does not call both Validate… and Validate…Update."""

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        """Validates a name (or, if `prefix`, a generateName); returns texts of the detail. Default: DNS subdomain."""
        return names.dns_subdomain(name, prefix)

    def validate_metadata(self, context: WriteContext, meta: Object) -> list[FieldError]:
        """Validates the metadata of an object like that of a new one (ValidateObjectMeta with the rules of the kind)."""
        if context.metadata_is_valid:
            return objectmeta.validate_rules_of_kind(meta, self.name_errors, standard_finalizers=self.standard_finalizers)
        return objectmeta.validate_object_meta(
            meta, context.resource.namespaced, self.name_errors, standard_finalizers=self.standard_finalizers
        )

    def validate_metadata_update(self, context: WriteContext, meta: Object, old: Object) -> list[FieldError]:
        """Validates the change of the metadata (ValidateObjectMetaUpdate)."""
        if not context.metadata_is_valid:
            return objectmeta.validate_object_meta_update(meta, old, standard_finalizers=self.standard_finalizers)
        return objectmeta.validate_standard_finalizers(meta) if self.standard_finalizers else []

    def default(self, obj: Object) -> None:
        """Sets the defaults that depend on other fields; constants are already set."""

    def default_times(self, obj: Object, clock: Clock) -> None:
        """Sets the defaults that are the time of the request; called after `default`."""

    def read_back(self, obj: Object) -> Object:
        """Returns a new object as it is read from the store: with defaults that depend on what admission set."""
        return obj

    def reset_status(self, obj: Object) -> None:
        """Drops the status of a new object; only called if `has_status`."""
        obj.pop("status", None)

    def stores_unchanged_update(self, obj: Object) -> bool:
        """Reports whether the first update of an object is stored even if nothing changes, because every read adds something
        (as defaulting does) that the object was created without.
        """
        return False

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        """Resets fields that a client cannot set. Status and generation have been handled according to the flags."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        """Resets fields that an update cannot change. Status and generation have been handled according to the flags."""

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        """Validates a new object, except its metadata (which `apiserver.registry.generic` validates first)."""
        return []

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        """Validates a changed object, except its metadata. Default: `validate`."""
        return self.validate(context, obj)

    def validate_changed(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        """Validates the changed object by itself; `old` may relax rules (ratcheting). Default: `validate`."""
        return self.validate(context, obj)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        """Returns API warnings about an accepted object (`old` is None on create)."""
        return []

    def refused_deletion(self, context: WriteContext, name: str) -> StatusError | None:
        """Returns why an object of this name cannot be deleted, existing or not (not called for deletecollection)."""
        return None

    def delete_warnings(self, options: Object) -> list[str]:
        """Returns API warnings about a deletion with these DeleteOptions."""
        return []

    def canonicalize(self, obj: Object) -> None:
        """Brings an accepted object into the form in which it is stored."""

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        """Raises StatusError if the user is not permitted to write this object (`old` is None on create); called first."""

    def begin_create(self, context: WriteContext, obj: Object) -> Finish | None:
        """Allocates what the new object needs (may change it, may raise StatusError)."""
        return None

    def begin_update(self, context: WriteContext, obj: Object, old: Object) -> Finish | None:
        """Allocates and releases what the change requires."""
        return None

    def releasable(self, obj: Object) -> bool:
        """Reports whether a terminating object without finalizers can be removed (namespaces also have spec.finalizers)."""
        return True

    def after_delete(self, context: WriteContext, old: Object) -> None:
        """Releases what a removed object had allocated."""

    def terminate(self, obj: Object) -> None:
        """Applies the changes of the first deletion besides the metadata; only called if `terminates`."""

    def grace_period(self, context: WriteContext, old: Object, options: Object) -> int | None:
        """Returns the grace period (seconds) of a deletion of `old` (`options` may have gracePeriodSeconds), or None if the
        deletion is not graceful (CheckGracefulDelete); only called if `graceful`, and if the object is not terminating."""
        return None

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        """Returns the paths that writes of this strategy never own in managedFields."""
        return (("status",),) if self.has_status else ()


class RevalidatingStrategy(Strategy):
    """Order of an update's checks: metadata, `validate`, the change of the metadata, `validate_change`."""

    checks_metadata_update = False

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        meta = obj["metadata"]
        return [
            *self.validate_metadata(context, meta),
            *self.validate_changed(context, obj, old),
            *self.validate_metadata_update(context, meta, old["metadata"]),
            *self.validate_change(context, obj, old),
        ]

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        """Validates the change, for example immutable fields."""
        return []


#: The metadata that a write of the status cannot change, if the kind calls ResetObjectMetaForStatus.
_KEPT_METADATA: Final = ("deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences")

Validate = Callable[["Object", "Object"], "list[FieldError]"]
"""(new object, old object) → the errors of the new status."""


def keep_all_but(obj: Object, old: Object, *changing: str) -> None:
    """Restores all fields except the metadata and the given fields."""
    restore(obj, old, *({*obj, *old} - {"metadata", *changing}))


def restore(part: Object, old: Object, *fields: str) -> None:
    """Restores the given fields."""
    for name in fields:
        if name in old:
            part[name] = old[name]
        else:
            part.pop(name, None)


def keep_metadata(obj: Object, old: Object) -> None:
    """Restores the metadata (ResetObjectMetaForStatus)."""
    restore(obj["metadata"], old["metadata"], *_KEPT_METADATA)


class StatusStrategy(Strategy):
    """The status strategy of a kind.

    Args:
        validate: the kind's validation of a changed status.
        keeps_metadata: labels, annotations and the like cannot be changed through /status; else metadata changes as in a
            write of the object.
        resets: paths that such writes never own in managedFields.
    """

    def __init__(
        self,
        validate: Validate = lambda _new, _old: [],
        *,
        keeps_metadata: bool = False,
        resets: Sequence[tuple[str, ...]] = (("spec",),),
    ) -> None:
        self._validate = validate
        self._keeps_metadata = keeps_metadata
        self._resets = resets

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        keep_all_but(obj, old, "status")
        if self._keeps_metadata:
            keep_metadata(obj, old)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self._validate(obj, old)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return self._resets


class ConditionalStatusStrategy(StatusStrategy):
    """The status strategy of a kind whose updates must name a resourceVersion; its writes change neither metadata nor spec.

    Args:
        validate: the kind's validation of a changed status.
    """

    unconditional_update = False

    def __init__(self, validate: Validate) -> None:
        super().__init__(validate, keeps_metadata=True, resets=(("metadata",), ("spec",)))


class KindStatusStrategy(StatusStrategy):
    """The status strategy of a kind without its own status validation: validated as any update of the kind."""

    def __init__(self, kind: Strategy) -> None:
        super().__init__()
        self._kind = kind

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return self._kind.validate_update(context, obj, old)


Action = Callable[["WriteContext", str, "Object"], "Object"]
"""(context, name of the parent, decoded body) → the answer. Raises StatusError. Honours `context.dry_run`."""


@dataclass(slots=True, frozen=True)
class Projection:
    """Another kind that is computed from the object and written back into it."""

    read: Callable[[Object], Object]
    """The projected object, complete with metadata, without kind and apiVersion. May raise StatusError."""
    write: Callable[[Object, Object], Object]
    """(stored object, changed projection) → a new object that shares what did not change."""
    validate: Callable[[Object], list[FieldError]]
    """Validates the changed projection; returns field errors."""
    replicas_paths: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """apiVersion of a custom resource → the path of the field behind the projection's spec.replicas, None for a version without
    scale. Empty for built-in kinds: in all their versions it is spec.replicas."""
    read_for_update: Callable[[Object], Object] | None = None
    """Computes the projection that a patch is applied to, if it differs from the one that is read."""
    read_written: Callable[[Object], Object] | None = None
    """Computes the projection that a write returns, if it differs from the one that is read."""


@dataclass(eq=False)
class Subresource:
    """A subresource of a resource. Its implementation is imported when it is first used."""

    name: str
    gvk: GVK
    """The kind or type of request and response bodies."""
    verbs: frozenset[str]
    type_factory: Callable[[], Type]
    factory: Callable[[], Strategy | Projection | Action | None]
    tables: bool = True
    """Responses can be transformed to Tables."""

    @cached_property
    def type(self) -> Type:
        """The kind or type of request and response bodies."""
        return self.type_factory()

    @cached_property
    def _implementation(self) -> Strategy | Projection | Action | None:
        return self.factory()

    @property
    def strategy(self) -> Strategy | None:
        """If it is a view."""
        found = self._implementation
        return found if isinstance(found, Strategy) else None

    @property
    def projection(self) -> Projection | None:
        found = self._implementation
        return found if isinstance(found, Projection) else None

    @property
    def action(self) -> Action | None:
        found = self._implementation
        return None if found is None or isinstance(found, Strategy | Projection) else found


def check_key_name(name: str) -> None:
    """Raises StatusError 400 for a name that cannot be part of a storage key."""
    if not name:
        raise status.bad_request("Name parameter required.")
    problems = path_segment(name)
    if problems:
        raise status.bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")


def unusable_name(name: str) -> str:
    """Returns why a client cannot request an object of this name; "" if it can."""
    if not name:
        return "resource name may not be empty"
    problems = path_segment(name)
    return f"invalid resource name {go_quote(name)}: [{' '.join(problems)}]" if problems else ""
