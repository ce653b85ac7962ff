"""The ReplicaSets of one Deployment: found, made, scaled and cleaned up.

Invariant: the ReplicaSet of a template is found by the template alone (without its hash label); its name only has to be
free. A name that is taken by something else raises status.collisionCount, which changes the hash.

Specified by: pkg/controller/deployment/sync.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fakekube.client import ApiError
from fakekube.controllers.deployment.annotations import (
    REVISION,
    annotations_of,
    desired_replicas,
    max_revision,
    replica_annotations,
    revision_of,
    updated_annotations,
)
from fakekube.controllers.deployment.arithmetic import (
    is_rolling_update,
    is_saturated,
    max_surge,
    new_replicas,
    proportion,
    replicas_of,
    specified,
)
from fakekube.controllers.deployment.conditions import condition_of, has_progress_deadline, made_condition, with_condition
from fakekube.controllers.hashing import compute_hash
from fakekube.controllers.owners import controller_reference, is_controlled_by
from fakekube.controllers.pods import namespace_is_terminating
from fakekube.controllers.reconciler import Object, Reconciler
from fakekube.golang.quoting import go_quote
from fakekube.validation.semantic_equality import same

__all__ = ["Rollout", "by_creation", "same_template"]

HASH_LABEL = "pod-template-hash"
_MAX_NAME = 253
_MAX_INT32 = 2**31 - 1


def by_creation(replica_set: Object) -> tuple[str, str]:
    """Sorts ReplicaSets, the oldest first."""
    return replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]


def same_template(one: Object, other: Object) -> bool:
    """Are these pod templates equal, but for the label with the hash?"""
    return same(_without_hash(one), _without_hash(other))


def _without_hash(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if HASH_LABEL not in labels:
        return template
    rest = {name: value for name, value in labels.items() if name != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": rest}}


@dataclass(slots=True)
class Rollout:
    """One sync of a Deployment.

    Args:
        controller: writes, and records events.
        deployment: as it stands; replaced when the sync changes its status or annotations.
        replica_sets: those that it controls.
    """

    controller: Reconciler
    deployment: Object
    replica_sets: list[Object] = field(default_factory=list)

    # ---- the Deployment itself

    @property
    def status(self) -> Object:
        """The status of the Deployment."""
        return self.deployment.get("status") or {}

    def write_status(self, status: Object) -> None:
        """Write the status (and the annotations, which the status may be written with)."""
        self.deployment = {**self.deployment, "status": status}
        written = self.controller.client.update(self.deployment, subresource="status")
        self.deployment = {**self.deployment, "metadata": written["metadata"]}

    def _event(self, reason: str, message: str, type_: str = "Normal") -> None:
        self.controller.recorder.event(self.deployment, type_, reason, message)

    # ---- finding and making

    def new_replica_set(self) -> Object | None:
        """The oldest ReplicaSet with the present template."""
        return next(filter(self._has_template, sorted(self.replica_sets, key=by_creation)), None)

    def _has_template(self, replica_set: Object) -> bool:
        return same_template(replica_set["spec"]["template"], self.deployment["spec"]["template"])

    def synced(self, *, create: bool) -> tuple[Object | None, list[Object]]:
        """The ReplicaSet of the present template with its revision up to date, and the others, the oldest first.

        Args:
            create: make the ReplicaSet if there is none.
        """
        new = self.new_replica_set()
        old = sorted((one for one in self.replica_sets if one is not new), key=by_creation)
        revision = max_revision(old) + 1
        if new is not None:
            return self._updated(new, revision), old
        return (self._created(old, revision) if create else None), old

    def _updated(self, new: Object, revision: int) -> Object:
        annotations, changed = updated_annotations(self.deployment, annotations_of(new), revision)
        min_ready = self.deployment["spec"].get("minReadySeconds", 0)
        if changed or new["spec"].get("minReadySeconds", 0) != min_ready:
            spec = {**new["spec"], "minReadySeconds": min_ready}
            return self._write({**new, "metadata": {**new["metadata"], "annotations": annotations}, "spec": spec}, new)
        status = self.status
        if has_progress_deadline(self.deployment) and condition_of(status, "Progressing") is None:
            text = f"Found new replica set {go_quote(new['metadata']['name'])}"
            status = with_condition(status, self._condition("True", "FoundNewReplicaSet", text))
        if self._set_revision(annotations.get(REVISION, "")) or status is not self.status:
            self.write_status(status)
        return new

    def _write(self, changed: Object, old: Object) -> Object:
        """Write a ReplicaSet, and know it as it is now."""
        written = self.controller.client.update(changed)
        self.replica_sets = [written if one is old else one for one in self.replica_sets]
        return written

    def _set_revision(self, revision: str) -> bool:
        """Tell the Deployment its revision; was that new?"""
        annotations = annotations_of(self.deployment)
        if annotations.get(REVISION, "") == revision:
            return False
        metadata = {**self.deployment["metadata"], "annotations": {**annotations, REVISION: revision}}
        self.deployment = {**self.deployment, "metadata": metadata}
        return True

    def _condition(self, status: str, reason: str, message: str) -> Object:
        return made_condition("Progressing", status, reason, message, self.controller.client.now())

    def _created(self, old: Sequence[Object], revision: int) -> Object:
        wanted = self._made(old, revision)
        name = wanted["metadata"]["name"]
        try:
            created = self.controller.client.create(wanted)
        except ApiError as error:
            present = self._after_failure(error, name)
            self.replica_sets = [*self.replica_sets, present]
            if self._set_revision(str(revision)):
                self.write_status(self.status)
            return present
        self.replica_sets = [*self.replica_sets, created]
        if replicas_of(created):
            self._event("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas_of(created)}")
        status = self.status
        if has_progress_deadline(self.deployment):
            text = f"Created new replica set {go_quote(name)}"
            status = with_condition(status, self._condition("True", "NewReplicaSetCreated", text))
        if self._set_revision(str(revision)) or status is not self.status:
            self.write_status(status)
        return created

    def _made(self, old: Sequence[Object], revision: int) -> Object:
        """The ReplicaSet of the present template."""
        spec, metadata = self.deployment["spec"], self.deployment["metadata"]
        hash_ = compute_hash(spec["template"], self.status.get("collisionCount"))
        template_metadata = spec["template"].get("metadata") or {}
        labels = {**(template_metadata.get("labels") or {}), HASH_LABEL: hash_}
        selector = {**spec["selector"], "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: hash_}}
        made: Object = {
            "kind": "ReplicaSet",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": f"{metadata['name'][: _MAX_NAME - 1 - len(hash_)]}-{hash_}",
                "namespace": metadata["namespace"],
                "labels": labels,
                "ownerReferences": [controller_reference(self.deployment)],
            },
            "spec": {
                "replicas": 0,
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": selector,
                "template": {**spec["template"], "metadata": {**template_metadata, "labels": labels}},
            },
        }
        made["spec"]["replicas"] = new_replicas(self.deployment, [*old, made], made)
        annotations, _ = updated_annotations(self.deployment, {}, revision)
        desired = replicas_of(self.deployment)
        made["metadata"]["annotations"] = annotations | replica_annotations(desired, desired + max_surge(self.deployment))
        return made

    def _after_failure(self, error: ApiError, name: str) -> Object:
        """The ReplicaSet that has the name already, if it is ours. Raises the error if it is not, or another one."""
        if error.reason == "AlreadyExists":
            namespace = self.deployment["metadata"]["namespace"]
            present = self.controller.cache.get("replicasets.apps", namespace, name)
            ours = present is not None and is_controlled_by(present, self.deployment)
            if present is not None and ours and self._has_template(present):
                return present
            self.write_status({**self.status, "collisionCount": self.status.get("collisionCount", 0) + 1})
        elif not namespace_is_terminating(error):
            text = f"Failed to create new replica set {go_quote(name)}: {error}"
            if has_progress_deadline(self.deployment):
                self.write_status(with_condition(self.status, self._condition("False", "ReplicaSetCreateError", text)))
            self._event("ReplicaSetCreateError", text, "Warning")
        raise error

    # ---- scaling

    def is_scaling(self) -> bool:
        """Was the Deployment scaled since its ReplicaSets were?"""
        new, old = self.synced(create=False)
        active = [one for one in (*old, new) if one is not None and replicas_of(one)]
        wanted = [desired_replicas(one) for one in active]
        return any(one is not None and one != replicas_of(self.deployment) for one in wanted)

    def scale(self, new: Object | None, old: list[Object]) -> None:
        """Bring the ReplicaSets to the Deployment's size, without moving the rollout on."""
        only = _active_or_latest(new, old)
        desired = replicas_of(self.deployment)
        if only is not None:
            self.scale_replica_set(only, desired)
        elif is_saturated(self.deployment, new):
            for one in old:
                if replicas_of(one):
                    self.scale_replica_set(one, 0)
        elif is_rolling_update(self.deployment):
            self._scale_in_proportion([one for one in (*old, new) if one is not None and replicas_of(one)])

    def _scale_in_proportion(self, active: list[Object]) -> None:
        desired = replicas_of(self.deployment)
        to_add = (desired + max_surge(self.deployment) if desired else 0) - specified(active)
        ordered = _by_size(active, newest_first=to_add > 0) if to_add else active
        sizes, added = [], 0
        for one in ordered:
            share = proportion(one, self.deployment, to_add, added)
            sizes.append(replicas_of(one) + share)
            added += share
        if to_add and sizes:
            sizes[0] = max(sizes[0] + to_add - added, 0)
        for one, size in zip(ordered, sizes, strict=True):
            self.scale_replica_set(one, size, force=True)

    def scale_replica_set(self, replica_set: Object, size: int, *, force: bool = False) -> tuple[bool, Object]:
        """Give a ReplicaSet a size, and tell it that of the Deployment.

        Args:
            replica_set: to scale.
            size: the new spec.replicas.
            force: bring the annotations up to date even if the size stays.

        Returns:
            Whether the size has changed, and the ReplicaSet as it is now.
        """
        before = replicas_of(replica_set)
        if not force and before == size:
            return False, replica_set
        desired = replicas_of(self.deployment)
        wanted = replica_annotations(desired, desired + max_surge(self.deployment))
        present = annotations_of(replica_set)
        if before == size and wanted.items() <= present.items():
            return False, replica_set
        metadata = {**replica_set["metadata"], "annotations": present | wanted}
        changed = {**replica_set, "metadata": metadata, "spec": {**replica_set["spec"], "replicas": size}}
        written = self._write(changed, replica_set)
        if before != size:
            direction, name = "up" if before < size else "down", written["metadata"]["name"]
            self._event("ScalingReplicaSet", f"Scaled {direction} replica set {name} from {before} to {size}")
        return before != size, written

    # ---- history

    def clean_up(self, old: Sequence[Object]) -> None:
        """Delete the oldest ReplicaSets without pods, as far as there are more than revisionHistoryLimit."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit in (None, _MAX_INT32):
            return
        alive = [one for one in old if "deletionTimestamp" not in one["metadata"]]
        surplus = len(alive) - limit
        for one in sorted(alive, key=lambda one: (revision_of(one) or 0, *by_creation(one)))[: max(surplus, 0)]:
            status = one.get("status") or {}
            unobserved = one["metadata"].get("generation", 0) > status.get("observedGeneration", 0)
            if status.get("replicas") or replicas_of(one) or unobserved:
                continue
            metadata = one["metadata"]
            try:
                self.controller.client.delete("replicasets.apps", metadata["name"], namespace=metadata["namespace"])
            except ApiError as error:
                if error.code != 404:
                    raise


def _active_or_latest(new: Object | None, old: Sequence[Object]) -> Object | None:
    """The only ReplicaSet with replicas, or the latest if none has any; None if several have."""
    active = [one for one in (*old, new) if one is not None and replicas_of(one)]
    if len(active) > 1:
        return None
    if active:
        return active[0]
    return new if new is not None else max(old, key=by_creation, default=None)


def _by_size(replica_sets: list[Object], *, newest_first: bool) -> list[Object]:
    """The largest first; of equal ones the newest or the oldest."""
    ordered: list[Any] = sorted(replica_sets, key=by_creation, reverse=newest_first)
    return sorted(ordered, key=lambda one: -replicas_of(one))
