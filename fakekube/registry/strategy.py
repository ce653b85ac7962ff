"""What a kind does of its own when it is written: the frame that every kind's module fills in.

Order of a create: decode by schema (unknown fields told, constants defaulted) → `default` → admission that changes →
`prepare_for_create` → `validate` → `canonicalize` → admission that checks → `begin_create` (allocations, undone if
the write fails) → store. An update: the same with `prepare_for_update`, `validate_update`, `begin_update`.

Objects are plain dicts in the shape of the storage version, without kind and apiVersion. The *new* object is the
request's own tree and may be changed in place; the *old* one belongs to the store and is never changed (parts of it
may be put into the new one as they are). A strategy keeps no state: what it needs comes in the `WriteContext`.

Specified by: k8s.io/apiserver/pkg/registry/rest (create.go, update.go, delete.go) and pkg/registry/**/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.golang.timestamps import print_time
from fakekube.validation import names

if TYPE_CHECKING:
    from fakekube.clock import Clock
    from fakekube.errors import FieldError, StatusError
    from fakekube.registry.cluster_access import ClusterAccess
    from fakekube.registry.resource import Resource

__all__ = ["Finish", "Object", "Strategy", "WriteContext", "part_as_stored"]

Object = dict[str, Any]
"""A Kubernetes object as JSON has it."""

Finish = Callable[[bool], None]
"""Ends what a `begin_…` began. True: the object was stored, so give back what it no longer needs; False: it was not
(a dry run stores nothing, either), so give back what was taken for it."""


def _unchecked(obj: Object) -> None:
    """Nobody refuses anything."""


@dataclass(slots=True)
class WriteContext:
    """Everything a strategy may ask during one write."""

    resource: Resource
    namespace: str
    clock: Clock
    services: ClusterAccess
    """What the cluster offers to strategies: lookups of other objects, allocators, signing keys, feature gates."""
    user: str = "admin"
    groups: Sequence[str] = ()
    uid: str = ""
    """Of the user."""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of the user."""
    subresource: str = ""
    name: str = ""
    """Of the object that the path names; "" for a create."""
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Object], None] = _unchecked
    """For actions: validating admission of what was sent, which they ask for once it is valid. Raises StatusError."""
    remove: Callable[[str, Object], None] | None = None
    """For actions: deletes an object of the resource by its name, with DeleteOptions, as a client would."""
    warnings: list[str] = field(default_factory=list)
    """Texts of Warning headers, in order; the answer sends each once."""
    deadline: float = inf
    """When the request must have its answer, by `time.monotonic()`: webhooks are not waited for any longer."""
    annotations: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What admission tells the audit log: key → (audit level, value)."""

    def now(self) -> str:
        """The time of day as metav1.Time prints it."""
        return print_time(self.clock.now())


def part_as_stored(context: WriteContext, obj: Object, old: Object, part: str = "spec") -> Object:
    """A part of a changed object in the form in which it will be stored: to be compared with the old one.

    An object before that may hold empty lists and maps, which are nothing, and lack what is always there.
    """
    new: Object = obj.get(part) or {}
    if new == old.get(part):
        return new
    stored: Object = context.resource.stored({part: new}).get(part) or {}
    return stored


class Strategy:
    """The generic kind; a kind's module subclasses it and overrides what differs."""

    create_on_update: ClassVar[bool] = False
    """PUT of an absent name creates (AllowCreateOnUpdate)."""
    unconditional_update: ClassVar[bool] = True
    """PUT without resourceVersion overwrites (AllowUnconditionalUpdate)."""
    delete_returns_object: ClassVar[bool] = False
    """DELETE answers with the deleted object instead of a Status."""
    has_status: bool = False
    """There is a /status subresource: main writes keep the old status (a create drops it), status writes keep the rest."""
    suffixes_names: ClassVar[bool] = True
    """A name for a generateName has random characters at its end (all but those of IP addresses)."""
    graceful: ClassVar[bool] = False
    """DELETE may leave the object terminating for a grace period (pods)."""
    terminates: ClassVar[bool] = False
    """The first DELETE always only marks the object, whatever holds it; preconditions fail in their own words."""
    cached: ClassVar[bool] = True
    """The real server keeps a watch cache of this resource (all but events)."""
    collects_garbage: ClassVar[bool] = True
    """Deletion leaves finalizers for the garbage collector where it is asked to (all but events)."""
    orphans_by_default: ClassVar[bool] = False
    """Deletion without a policy orphans dependents (jobs)."""
    standard_finalizers: ClassVar[bool] = True
    """Finalizers without a domain must be standard ones (see metadata.py; not so in a few groups)."""
    generation: ClassVar[bool] = False
    """metadata.generation starts at 1 and counts changes of anything but metadata and status."""

    checks_metadata: ClassVar[bool] = True
    """A new object's metadata is validated before the rest; else loosely, and only if the rest is fine (events)."""
    checks_metadata_update: ClassVar[bool] = True
    """The kind's own update validation looks at the change of the metadata once more (a fault is then told twice)."""
    checks_metadata_again: ClassVar[bool] = False
    """The kind's own update validation also validates the metadata as of a new object."""

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        """What is wrong with a name (or, if `prefix`, a generateName): texts of the detail. Default: DNS subdomain."""
        return names.dns_subdomain(name, prefix)

    def default(self, obj: Object) -> None:
        """Set the defaults that depend on other fields; constants are already there."""

    def reset_status(self, obj: Object) -> None:
        """Drop the status that a client gives a new object; only asked if `has_status`."""
        obj.pop("status", None)

    def is_unsettled(self, obj: Object) -> bool:
        """Is an object that nobody has updated stored without something that every read adds? Then the first update stores it,
        even if nothing changes.
        """
        return False

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        """Reset what a client may not set. The frame has dropped status and set the generation where the flags say so."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        """The same for updates. The frame has restored the status and counted the generation where the flags say so."""

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        """What is wrong with a new object, besides its metadata (which the frame validates first)."""
        return []

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        """What is wrong with a changed object, besides its metadata. Default: what is wrong with a new one."""
        return self.validate(context, obj)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        """API warnings about an accepted object (`old` is None on create)."""
        return []

    def refused_deletion(self, context: WriteContext, name: str) -> StatusError | None:
        """Why the object of this name may never be deleted, be it there or not (not asked for collections)."""
        return None

    def delete_warnings(self, options: Object) -> list[str]:
        """API warnings about a deletion with these DeleteOptions."""
        return []

    def canonicalize(self, obj: Object) -> None:
        """Bring an accepted object into the form in which it is stored."""

    def check_privileges(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        """Raise StatusError if the user may not write just this object (`old` is None on create): asked before all else."""

    def begin_create(self, context: WriteContext, obj: Object) -> Finish | None:
        """Allocate what the new object needs (may change it, may raise StatusError)."""
        return None

    def begin_update(self, context: WriteContext, obj: Object, old: Object) -> Finish | None:
        """Allocate and release what the change asks for."""
        return None

    def releasable(self, obj: Object) -> bool:
        """May an object that is being deleted, and whose metadata holds it no longer, go? (Namespaces have more.)"""
        return True

    def after_delete(self, context: WriteContext, old: Object) -> None:
        """Release what a removed object held."""

    def terminate(self, obj: Object) -> None:
        """What the first deletion changes besides the metadata; only asked if `terminates`."""

    def grace_period(self, context: WriteContext, old: Object, options: Object) -> int | None:
        """Seconds that a graceful deletion of `old` takes (`options` may name gracePeriodSeconds), or None if it is not
        to be graceful; only asked if `graceful`, and if no deletion is under way."""
        return None

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        """Paths that writes of this strategy never own in managedFields."""
        return ()
