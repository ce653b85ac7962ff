"""Deletes one object: preconditions, finalizers, grace periods, and the two phases of a deletion.

A deletion either removes the object at once, or marks it (deletionTimestamp, deletionGracePeriodSeconds, the finalizers
of the propagation policy); it is then removed when the finalizers are gone and the grace period is over.

`Plan` is the decision for one stored state, made without side effects; `remove` executes it by compare-and-set and
plans again after a conflict with another write.

Specified by: k8s.io/apiserver/pkg/registry/generic/registry/store.go (Delete, updateForGracefulDeletionAndFinalizers),
registry/rest/delete.go (BeforeDelete).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.schema.printing import zero
from fakekube.apis.rest.strategy import Strategy
from fakekube.apis.validation.objectmeta import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS
from fakekube.apiserver.registry.generic import conversion, corrupt_objects
from fakekube.apiserver.registry.generic.writes import document_at, stamp_revision
from fakekube.apiserver.registry.request_options import DeleteOptions
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.store import Conflict, Record

Admit = Callable[[Object], None]
"""Admission of the deletion of a stored object; raises StatusError."""

_SHARE_OF_PACE = 0.2
"""The time between two writes of one request, as a share of the cluster's pace: finalizing takes several writes."""


class Step(Enum):
    """The effect of a deletion on the object."""

    REMOVE = "remove"
    MARK = "mark"
    """Store it marked; it is removed later."""
    MARK_AND_REMOVE = "mark and remove"
    """A graceful deletion with a grace period of 0: marked, then removed."""
    PENDING = "pending"
    """It is terminating already; nothing changes."""
    HELD = "held"
    """The same, and the response has the object."""


@dataclass(slots=True)
class Plan:
    """The step, and the object to store."""

    step: Step
    obj: Object


@dataclass(slots=True)
class Removed:
    """The result of a deletion: the last state of the object, and whether it is removed."""

    document: Document
    deleted: bool
    returns_object: bool
    """The response is the object (it still exists), not a Status."""


def remove(scope: Scope, name: str, options: DeleteOptions, admit: Admit) -> Removed:
    """Deletes the object of that name.

    Raises StatusError: 404, 409 for failed preconditions, and what `admit` raises.
    """
    key, warnings = scope.key_of(name), len(scope.request.warnings)
    while True:
        del scope.request.warnings[warnings:]  # of the attempt that lost
        record = scope.bucket.get(key)
        if record is None:
            raise scope.not_found(name)
        corrupt_objects.require_decodable(scope, conversion.uncache(scope.resource, record.value))
        old = dict(record.value.tree)  # of a collection that is deleted, each object is read once
        _check_preconditions(scope, name, old, options)
        plan = _plan(scope, old, options)
        if plan.step not in (Step.PENDING, Step.HELD):
            admit(old)
        try:
            return _carry_out(scope, key, record, old, plan)
        except Conflict:
            continue


def _carry_out(scope: Scope, key: str, record: Record[Document], old: Object, plan: Plan) -> Removed:
    """Executes the plan for `old`, the object of the record. Raises Conflict if it has changed meanwhile."""
    if plan.step in (Step.PENDING, Step.HELD):
        shown = plan.step is Step.HELD or scope.resource.strategy.delete_returns_object
        return Removed(record.value, deleted=False, returns_object=shown)
    if plan.step is Step.REMOVE:
        if scope.dry_run and not scope.resource.custom and old["metadata"].get("finalizers"):
            # The update that removes the last finalizer is aborted, and leaves an empty object as the response.
            return Removed(Document(zero(scope.resource.type)), deleted=True, returns_object=True)
        return _take_away(scope, key, record, old)
    final = scope.resource.to_stored_form(plan.obj, old)
    if scope.dry_run:
        return Removed(document_at(final, record.revision), plan.step is Step.MARK_AND_REMOVE, returns_object=True)
    if final != old:
        record = scope.bucket.commit(key, record.revision, partial(stamp_revision, final))
    if plan.step is Step.MARK_AND_REMOVE:
        _pause(scope)
        try:
            return _take_away(scope, key, record, record.value.object)
        except Conflict:
            if scope.bucket.get(key) is not None:
                raise
            # another component, such as the kubelet, was faster
            return Removed(record.value, deleted=True, returns_object=scope.resource.strategy.delete_returns_object)
    return Removed(record.value, deleted=False, returns_object=True)


def _pause(scope: Scope) -> None:
    """Waits between the two writes of a deletion by a client, by the pace of the cluster, so that others can see the first.

    etcd takes milliseconds for a write. Controllers of suites rely on reading the object before it is removed.
    """
    clock, seconds = scope.backend.clock, scope.context.services.pace * _SHARE_OF_PACE
    if seconds and scope.request.address and not clock.held:
        over = threading.Event()
        timer = clock.call_at(clock.monotonic() + seconds, over.set, what="the second write of a deletion")
        over.wait(seconds)  # of real time, as somebody may hold the clock
        timer.cancel()


def _take_away(scope: Scope, key: str, record: Record[Document], stored: Object) -> Removed:
    """Removes `stored`, the object of the record. Raises Conflict if it has changed meanwhile."""
    document = record.value
    if not scope.dry_run:
        gone = scope.bucket.commit(key, record.revision, None)
        document = document_at(stored, gone.revision)
        scope.resource.strategy.after_delete(scope.context, document.object)
    return Removed(document, deleted=True, returns_object=scope.resource.strategy.delete_returns_object)


# --- The decision -----------------------------------------------------------------------------------------------------


def _plan(scope: Scope, old: Object, options: DeleteOptions) -> Plan:
    obj = {**old, "metadata": dict(old["metadata"])}
    meta = obj["metadata"]
    if scope.resource.strategy.terminates:
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = print_time(scope.backend.clock.now())
            _set_finalizers(meta, _finalizers(meta.get("finalizers", []), options, scope.resource.strategy))
            scope.resource.strategy.terminate(obj)
            return Plan(Step.MARK, obj)
        if not scope.resource.strategy.releasable(old):
            return Plan(Step.HELD, old)
    graceful, pending = _grace(scope, obj, old, options)
    if pending:
        return Plan(Step.PENDING, old)
    _set_finalizers(meta, _finalizers(meta.get("finalizers", []), options, scope.resource.strategy))
    if graceful:
        held = bool(meta.get("finalizers")) or meta["deletionGracePeriodSeconds"] > 0
        return Plan(Step.MARK if held else Step.MARK_AND_REMOVE, obj)
    if not meta.get("finalizers"):
        return Plan(Step.REMOVE, old)
    _mark(meta, scope.backend.clock.now())
    return Plan(Step.MARK, obj)


def _grace(scope: Scope, obj: Object, old: Object, options: DeleteOptions) -> tuple[bool, bool]:
    """Marks a graceful deletion on `obj`; returns (graceful, pending)."""
    strategy = scope.resource.strategy
    if not strategy.graceful:
        return False, False
    meta, now = obj["metadata"], scope.backend.clock.now()
    wanted = options.grace_period_seconds
    wanted = 1 if wanted is not None and wanted < 0 else wanted
    if "deletionTimestamp" in meta:
        return _shorten(meta, wanted, now)
    period = strategy.grace_period(scope.context, old, {} if wanted is None else {"gracePeriodSeconds": wanted})
    if period is None:
        return False, False
    meta["deletionTimestamp"] = print_time(now + _duration(period))
    meta["deletionGracePeriodSeconds"] = period
    _count(meta)
    return True, False


def _shorten(meta: dict[str, Any], wanted: int | None, now: datetime) -> tuple[bool, bool]:
    """Shortens the grace period of a pending deletion; it cannot become longer."""
    current = meta.get("deletionGracePeriodSeconds") or 0
    current = 1 if current < 0 else current
    if not current:
        return False, False
    if wanted is None or wanted >= current:
        return False, True
    due = datetime.fromisoformat(meta["deletionTimestamp"]) + _duration(wanted - current)
    if due < now:
        due, wanted = now, 1 if wanted else 0
    meta["deletionTimestamp"] = print_time(due)
    meta["deletionGracePeriodSeconds"] = wanted
    return True, False


def _duration(seconds: int) -> timedelta:
    """Returns a number of seconds as a Go Duration: nanoseconds in 64 bits, which overflow."""
    nanoseconds = (seconds * 10**9 + 2**63) % 2**64 - 2**63
    return timedelta(microseconds=nanoseconds // 1000)


def _mark(meta: dict[str, Any], now: datetime) -> None:
    """Marks an object whose finalizers prevent its removal."""
    stamp = print_time(now)
    if "deletionTimestamp" not in meta:
        _count(meta)
        meta["deletionTimestamp"] = stamp
    elif meta["deletionTimestamp"] > stamp:
        meta["deletionTimestamp"] = stamp
    meta["deletionGracePeriodSeconds"] = 0


def _count(meta: dict[str, Any]) -> None:
    """Increments the generation, since the mark is a change that controllers must see."""
    if meta.get("generation"):
        meta["generation"] += 1


def _finalizers(current: list[str], options: DeleteOptions, strategy: Strategy) -> list[str]:
    """Returns the finalizers with those of the garbage collector; other ones stay, in their order."""
    wanted = _collector_finalizer(current, options, strategy)
    others = [name for name in current if name not in (ORPHAN_DEPENDENTS, DELETE_DEPENDENTS)]
    new = [*others, wanted] if wanted else others
    return current if set(new) == set(current) else new


def _collector_finalizer(current: list[str], options: DeleteOptions, strategy: Strategy) -> str | None:
    """Returns the garbage collector's finalizer: by the options, else by those of the object, else by its kind."""
    if not strategy.collects_garbage:
        return None
    if options.orphan_dependents is not None:
        return ORPHAN_DEPENDENTS if options.orphan_dependents else None
    if options.propagation_policy is not None:
        return {"Orphan": ORPHAN_DEPENDENTS, "Foreground": DELETE_DEPENDENTS}.get(options.propagation_policy)
    wished = next((name for name in current if name in (ORPHAN_DEPENDENTS, DELETE_DEPENDENTS)), None)
    return wished or (ORPHAN_DEPENDENTS if strategy.orphans_by_default else None)


def _set_finalizers(meta: dict[str, Any], finalizers: list[str]) -> None:
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _check_preconditions(scope: Scope, name: str, old: Object, options: DeleteOptions) -> None:
    meta = old["metadata"]
    uid, revision = options.uid, options.resource_version
    if scope.resource.strategy.terminates:
        _check_preconditions_of_terminating(scope, name, meta, options)
    if uid is not None and uid != meta["uid"]:
        raise _make_conflict(
            scope,
            name,
            (
                f"the UID in the precondition ({uid}) does not match the UID in record ({meta['uid']}). "
                "The object might have been deleted and then recreated"
            ),
        )
    if revision is not None and revision != meta["resourceVersion"]:
        raise _make_conflict(
            scope,
            name,
            (
                f"the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record "
                f"({meta['resourceVersion']}). The object might have been modified"
            ),
        )


def _check_preconditions_of_terminating(scope: Scope, name: str, meta: Object, options: DeleteOptions) -> None:
    for what, wanted, found in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
    ):
        if wanted is not None and wanted != found:
            raise scope.conflict(f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}", name)


def _make_conflict(scope: Scope, name: str, problem: str) -> StatusError:
    """Returns the 409 of a failed precondition, in which the real server uses the kind instead of the resource."""
    return status.conflict(scope.resource.stored_group, scope.resource.kind, name, problem)
