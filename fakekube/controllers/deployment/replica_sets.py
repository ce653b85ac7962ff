"""Finds, creates, scales and cleans up the ReplicaSets of one Deployment.

Invariant: the ReplicaSet of a template is found by comparing templates (without the hash label), not by name. If the name of
a new ReplicaSet is taken by another one, status.collisionCount is incremented, which changes the hash.

Specified by: pkg/controller/deployment/sync.go, pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apis.validation.conditions import find_condition
from fakekube.apis.validation.to_internal import same
from fakekube.base.golang.strconv import go_quote
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_namespace_terminating
from fakekube.controllers.deployment.utils import (
    REVISION,
    annotations_of,
    get_desired_replicas_annotation,
    get_proportion,
    get_replica_count,
    has_progress_deadline,
    is_rolling_update,
    is_saturated,
    max_revision,
    max_surge,
    new_deployment_condition,
    new_replica_set_annotations,
    new_rs_new_replicas,
    replicas_annotations,
    replicas_of,
    revision_of,
    set_condition,
)
from fakekube.controllers.hashing import compute_hash
from fakekube.controllers.objects import Object, is_controlled_by, new_controller_ref
from fakekube.controllers.reconciler import Reconciler
from fakekube.controllers.recorder import MAX_NAME

__all__ = ["Rollout", "by_creation", "equal_ignore_hash"]

HASH_LABEL: Final = "pod-template-hash"
_MAX_INT32: Final = 2**31 - 1


def by_creation(replica_set: Object) -> tuple[str, str]:
    """A sort key of ReplicaSets: the oldest first."""
    return replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]


def equal_ignore_hash(one: Object, other: Object) -> bool:
    """Reports whether two pod templates are equal but for the label with the hash (EqualIgnoreHash)."""
    return same(without_hash(one), without_hash(other))


def without_hash(template: Object) -> Object:
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
        controller: provides the client, the cache, the clock and the recorder.
        deployment: the Deployment; replaced when the sync changes its status or annotations.
        replica_sets: the ReplicaSets that it controls.
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
        """Writes the status and the annotations, both of which the status subresource of Deployments accepts."""
        self.deployment = {**self.deployment, "status": status}
        written = self.controller.client.update(self.deployment, subresource="status")
        self.deployment = {**self.deployment, "metadata": written["metadata"]}

    def _record_event(self, reason: str, message: str, type_: str = "Normal") -> None:
        self.controller.recorder.event(self.deployment, type_, reason, message)

    # ---- find and create

    def find_new_replica_set(self) -> Object | None:
        """Returns the oldest ReplicaSet with the present template (FindNewReplicaSet)."""
        return next(filter(self._has_template, sorted(self.replica_sets, key=by_creation)), None)

    def _has_template(self, replica_set: Object) -> bool:
        return equal_ignore_hash(replica_set["spec"]["template"], self.deployment["spec"]["template"])

    def get_all_and_sync_revision(self, *, create: bool) -> tuple[Object | None, list[Object]]:
        """Returns the new ReplicaSet and the old ones, the oldest first, after the update of revisions.

        Args:
            create: creates the new ReplicaSet if there is none (getAllReplicaSetsAndSyncRevision).
        """
        new = self.find_new_replica_set()
        old = sorted((one for one in self.replica_sets if one is not new), key=by_creation)
        revision = max_revision(old) + 1
        if new is not None:
            return self._update_new_replica_set(new, revision), old
        return (self._create_new_replica_set(old, revision) if create else None), old

    def _update_new_replica_set(self, new: Object, revision: int) -> Object:
        annotations, changed = new_replica_set_annotations(self.deployment, annotations_of(new), revision)
        min_ready = self.deployment["spec"].get("minReadySeconds", 0)
        if changed or new["spec"].get("minReadySeconds", 0) != min_ready:
            spec = {**new["spec"], "minReadySeconds": min_ready}
            return self._update_replica_set(
                {**new, "metadata": {**new["metadata"], "annotations": annotations}, "spec": spec}, new
            )
        status = self.status
        if has_progress_deadline(self.deployment) and find_condition(status, "Progressing") is None:
            text = f"Found new replica set {go_quote(new['metadata']['name'])}"
            status = set_condition(status, self._set_progressing_condition("True", "FoundNewReplicaSet", text))
        if self._set_deployment_revision(annotations.get(REVISION, "")) or status is not self.status:
            self.write_status(status)
        return new

    def _update_replica_set(self, changed: Object, old: Object) -> Object:
        """Updates a ReplicaSet in the API and in `replica_sets`. Returns the updated one."""
        written = self.controller.client.update(changed)
        self.replica_sets = [written if one is old else one for one in self.replica_sets]
        return written

    def _set_deployment_revision(self, revision: str) -> bool:
        """Sets the revision annotation of the Deployment, without a write. Returns whether it has changed."""
        annotations = annotations_of(self.deployment)
        if annotations.get(REVISION, "") == revision:
            return False
        metadata = {**self.deployment["metadata"], "annotations": {**annotations, REVISION: revision}}
        self.deployment = {**self.deployment, "metadata": metadata}
        return True

    def _set_progressing_condition(self, status: str, reason: str, message: str) -> Object:
        return new_deployment_condition("Progressing", status, reason, message, self.controller.client.now())

    def _create_new_replica_set(self, old: Sequence[Object], revision: int) -> Object:
        replica_set = self._build_replica_set(old, revision)
        name = replica_set["metadata"]["name"]
        try:
            created = self.controller.client.create(replica_set)
        except ApiError as error:
            existing = self._handle_create_error(error, name)
            self.replica_sets = [*self.replica_sets, existing]
            if self._set_deployment_revision(str(revision)):
                self.write_status(self.status)
            return existing
        self.replica_sets = [*self.replica_sets, created]
        if replicas_of(created):
            self._record_event("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas_of(created)}")
        status = self.status
        if has_progress_deadline(self.deployment):
            text = f"Created new replica set {go_quote(name)}"
            status = set_condition(status, self._set_progressing_condition("True", "NewReplicaSetCreated", text))
        if self._set_deployment_revision(str(revision)) or status is not self.status:
            self.write_status(status)
        return created

    def _build_replica_set(self, old: Sequence[Object], revision: int) -> Object:
        """Returns the ReplicaSet of the present template, for a creation."""
        spec, metadata = self.deployment["spec"], self.deployment["metadata"]
        hash_ = compute_hash(spec["template"], self.status.get("collisionCount"), self.controller.context.version)
        template_metadata = spec["template"].get("metadata") or {}
        labels = {**(template_metadata.get("labels") or {}), HASH_LABEL: hash_}
        selector = {**spec["selector"], "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: hash_}}
        built: Object = {
            "kind": "ReplicaSet",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": f"{metadata['name'][: MAX_NAME - 1 - len(hash_)]}-{hash_}",
                "namespace": metadata["namespace"],
                "labels": labels,
                "ownerReferences": [new_controller_ref(self.deployment)],
            },
            "spec": {
                "replicas": 0,
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": selector,
                "template": {**spec["template"], "metadata": {**template_metadata, "labels": labels}},
            },
        }
        built["spec"]["replicas"] = new_rs_new_replicas(self.deployment, [*old, built], built)
        annotations, _ = new_replica_set_annotations(self.deployment, {}, revision)
        desired = replicas_of(self.deployment)
        built["metadata"]["annotations"] = annotations | replicas_annotations(desired, desired + max_surge(self.deployment))
        return built

    def _handle_create_error(self, error: ApiError, name: str) -> Object:
        """Returns the existing ReplicaSet of this name, if it is the new one; else raises the error, with status and event."""
        if error.reason == "AlreadyExists":
            namespace = self.deployment["metadata"]["namespace"]
            existing = self.controller.cache.get("replicasets.apps", namespace, name)
            if existing is not None and is_controlled_by(existing, self.deployment) and self._has_template(existing):
                return existing
            self.write_status({**self.status, "collisionCount": self.status.get("collisionCount", 0) + 1})
        elif not is_namespace_terminating(error):
            text = f"Failed to create new replica set {go_quote(name)}: {error}"
            if has_progress_deadline(self.deployment):
                self.write_status(
                    set_condition(self.status, self._set_progressing_condition("False", "ReplicaSetCreateError", text))
                )
            self._record_event("ReplicaSetCreateError", text, "Warning")
        raise error

    # ---- scaling

    def is_scaling_event(self) -> bool:
        """Reports whether spec.replicas of the Deployment has changed since its ReplicaSets were scaled."""
        new, old = self.get_all_and_sync_revision(create=False)
        active = [one for one in (*old, new) if one is not None and replicas_of(one)]
        annotated = [get_desired_replicas_annotation(one) for one in active]
        return any(one is not None and one != replicas_of(self.deployment) for one in annotated)

    def scale(self, new: Object | None, old: list[Object]) -> None:
        """Scales the ReplicaSets to the Deployment's size, in proportion if a rollout is in progress."""
        only = _find_active_or_latest(new, old)
        desired = replicas_of(self.deployment)
        if only is not None:
            self.scale_replica_set(only, desired)
        elif is_saturated(self.deployment, new):
            for one in old:
                if replicas_of(one):
                    self.scale_replica_set(one, 0)
        elif is_rolling_update(self.deployment):
            self._scale_proportionally([one for one in (*old, new) if one is not None and replicas_of(one)])

    def _scale_proportionally(self, active: list[Object]) -> None:
        desired = replicas_of(self.deployment)
        to_add = (desired + max_surge(self.deployment) if desired else 0) - get_replica_count(active)
        ordered = _by_size(active, newest_first=to_add > 0) if to_add else active
        sizes, added = [], 0
        for one in ordered:
            proportion = get_proportion(one, self.deployment, to_add, added)
            sizes.append(replicas_of(one) + proportion)
            added += proportion
        if to_add and sizes:
            sizes[0] = max(sizes[0] + to_add - added, 0)
        for one, size in zip(ordered, sizes, strict=True):
            self.scale_replica_set(one, size, force=True)

    def scale_replica_set(self, replica_set: Object, size: int, *, force: bool = False) -> tuple[bool, Object]:
        """Sets the size of a ReplicaSet, and the annotations with the size of the Deployment.

        Args:
            replica_set: the ReplicaSet.
            size: the new spec.replicas.
            force: updates the annotations also if the size is unchanged.

        Returns:
            whether the size has changed, and the updated ReplicaSet.
        """
        before = replicas_of(replica_set)
        if not force and before == size:
            return False, replica_set
        desired = replicas_of(self.deployment)
        annotations = replicas_annotations(desired, desired + max_surge(self.deployment))
        present = annotations_of(replica_set)
        if before == size and annotations.items() <= present.items():
            return False, replica_set
        metadata = {**replica_set["metadata"], "annotations": present | annotations}
        changed = {**replica_set, "metadata": metadata, "spec": {**replica_set["spec"], "replicas": size}}
        written = self._update_replica_set(changed, replica_set)
        if before != size:
            direction, name = "up" if before < size else "down", written["metadata"]["name"]
            self._record_event("ScalingReplicaSet", f"Scaled {direction} replica set {name} from {before} to {size}")
        return before != size, written

    # ---- history

    def cleanup(self, old: Sequence[Object]) -> None:
        """Deletes the oldest ReplicaSets without pods, until revisionHistoryLimit is kept (cleanupDeployment)."""
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


def _find_active_or_latest(new: Object | None, old: Sequence[Object]) -> Object | None:
    """Returns the only ReplicaSet with replicas, or the latest if none has replicas; None if several have."""
    active = [one for one in (*old, new) if one is not None and replicas_of(one)]
    if len(active) > 1:
        return None
    if active:
        return active[0]
    return new if new is not None else max(old, key=by_creation, default=None)


def _by_size(replica_sets: list[Object], *, newest_first: bool) -> list[Object]:
    """Sorts by size, the largest first; equal sizes by age."""
    ordered: list[Any] = sorted(replica_sets, key=by_creation, reverse=newest_first)
    return sorted(ordered, key=lambda one: -replicas_of(one))
