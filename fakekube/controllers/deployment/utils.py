"""The ReplicaSets of a Deployment: found, created, scaled and cleaned up; conditions, annotations, numbers of replicas.

The annotations are the revision, and the size of the Deployment when it was last scaled. The numbers of replicas follow from
maxSurge, maxUnavailable and proportional scaling.

Invariant: there is at most one condition of each type. lastTransitionTime changes with the status, lastUpdateTime also with the
reason.

Invariant: the ReplicaSet of a template is found by comparing templates (without the hash label), not by name. If the name of a
new ReplicaSet is taken by another one, status.collisionCount is incremented, which changes the hash.

Specified by: pkg/controller/deployment/util/deployment_util.go; pkg/controller/deployment/sync.go,
pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.apis.well_known import DEPRECATED_ROLLBACK_TO, LAST_APPLIED_CONFIG_ANNOTATION
from fakekube.base.golang.strconv import MAX_INT32, go_quote, parse_int
from fakekube.base.objects import Object
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import get_non_negative_annotation, get_scaled_value, is_namespace_terminating
from fakekube.controllers.hash import compute_hash
from fakekube.controllers.informers import is_controlled_by, new_controller_ref
from fakekube.controllers.reconciler import Reconciler
from fakekube.controllers.recorder import MAX_NAME


def has_progress_deadline(deployment: Object) -> bool:
    """Reports whether the Deployment has a progressDeadlineSeconds (HasProgressDeadline)."""
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, MAX_INT32)


def new_deployment_condition(type_: str, status: str, reason: str, message: str, now: str) -> Object:
    """Returns a new condition with both times set to `now` (NewDeploymentCondition)."""
    times = {"lastUpdateTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def remove_condition(status: Object, type_: str) -> Object:
    """Returns the status without the condition of this type (RemoveDeploymentCondition)."""
    rest = [one for one in status.get("conditions") or () if one["type"] != type_]
    bare = {name: value for name, value in status.items() if name != "conditions"}
    return {**bare, "conditions": rest} if rest else bare


def set_condition(status: Object, condition: Object) -> Object:
    """Returns the status with the condition, unchanged if it has one of the same status and reason (SetDeploymentCondition)."""
    current = find_condition(status, condition["type"])
    if current is not None and current["status"] == condition["status"]:
        if current.get("reason") == condition["reason"]:
            return status
        condition = {**condition, "lastTransitionTime": current["lastTransitionTime"]}
    bare = remove_condition(status, condition["type"])
    return {**bare, "conditions": [*bare.get("conditions", ()), condition]}


Annotations = dict[str, str]

#: The first minor that cuts the names of ReplicaSets to the length of a name (generateReplicaSetName).
_CUTS_NAMES_SINCE: Final = 34
REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"

_NOT_COPIED: Final = frozenset(
    {LAST_APPLIED_CONFIG_ANNOTATION, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, DEPRECATED_ROLLBACK_TO}
)
#: Characters of the annotation with former revisions (maxRevHistoryLengthInChars).
_MAX_HISTORY: Final = 2000


def annotations_of(obj: Object) -> Annotations:
    """Returns a copy of metadata.annotations."""
    return dict(obj["metadata"].get("annotations") or {})


def parse_revision(text: str) -> int | None:
    """Parses a revision as strconv.ParseInt does; None if it is malformed."""
    try:
        return parse_int(text)
    except ValueError:
        return None


def revision_of(obj: Object) -> int | None:
    """Returns the revision in the annotation; 0 if it is absent, None if it is not a number."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION)
    return 0 if text is None else parse_revision(text)


def max_revision(replica_sets: Iterable[Object]) -> int:
    """Returns the highest revision; 0 if there is none."""
    return max((revision_of(one) or 0 for one in replica_sets), default=0)


def last_revision(replica_sets: Iterable[Object]) -> int:
    """Returns the second highest revision; 0 if there is none."""
    known = [revision for one in replica_sets if (revision := revision_of(one)) is not None]
    return sorted([0, 0, *known])[-2]


def get_desired_replicas_annotation(replica_set: Object) -> int | None:
    """Returns spec.replicas of the Deployment at the time when the ReplicaSet was last scaled."""
    return get_non_negative_annotation(replica_set, DESIRED_REPLICAS)


def get_max_replicas_annotation(replica_set: Object) -> int | None:
    """Returns spec.replicas plus maxSurge of the Deployment at the time when the ReplicaSet was last scaled."""
    return get_non_negative_annotation(replica_set, MAX_REPLICAS)


def replicas_annotations(desired: int, maximum: int) -> Annotations:
    """Returns the annotations that a ReplicaSet gets when it is scaled (SetReplicasAnnotations)."""
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(maximum)}


def new_replica_set_annotations(deployment: Object, annotations: Annotations, new_revision: int) -> tuple[Annotations, bool]:
    """Returns the annotations of the new ReplicaSet, and whether they have changed (SetNewReplicaSetAnnotations).

    Args:
        deployment: its annotations are copied, except those that belong to the Deployment itself.
        annotations: the present annotations of the ReplicaSet.
        new_revision: the revision of the present template.
    """
    copied = {name: value for name, value in annotations_of(deployment).items() if name not in _NOT_COPIED}
    result = {**annotations, **copied}
    changed = result != annotations
    old_text = annotations.get(REVISION, "")
    old = parse_revision(old_text) if old_text else 0
    if old is None:
        return result, False
    if old >= new_revision:
        return result, changed
    result[REVISION] = str(new_revision)
    if REVISION in annotations:
        _append_history(result, old_text)
    return result, True


def _append_history(annotations: Annotations, revision: str) -> None:
    """Appends a former revision; removes the oldest ones if the text gets too long."""
    text = annotations.get(REVISION_HISTORY, "")
    revisions = text.split(",")
    if not revisions[0]:
        annotations[REVISION_HISTORY] = revision
        return
    length, start = len(text) + len(revision) + 1, 0
    while length > _MAX_HISTORY and start < len(revisions):
        length -= len(revisions[start]) + 1
        start += 1
    if length <= _MAX_HISTORY:
        annotations[REVISION_HISTORY] = ",".join([*revisions[start:], revision])


def rollback_annotations(deployment: Object, replica_set: Object) -> Annotations:
    """Returns the annotations of a Deployment that is rolled back (SetDeploymentAnnotationsTo).

    They are the Deployment's own ones, and those that the ReplicaSet copied from it.
    """
    own = {name: value for name, value in annotations_of(deployment).items() if name in _NOT_COPIED}
    copied = {name: value for name, value in annotations_of(replica_set).items() if name not in _NOT_COPIED}
    return own | copied


def replicas_of(obj: Object) -> int:
    """Returns spec.replicas."""
    return obj["spec"].get("replicas", 0)  # type: ignore[no-any-return]


def get_replica_count(replica_sets: Iterable[Object]) -> int:
    """Returns the sum of spec.replicas (GetReplicaCountForReplicaSets)."""
    return sum(map(replicas_of, replica_sets))


def sum_status(replica_sets: Iterable[Object], field: str) -> int:
    """Returns the sum of a number in the statuses."""
    return sum((one.get("status") or {}).get(field, 0) for one in replica_sets)


def is_rolling_update(deployment: Object) -> bool:
    """Reports whether the strategy is RollingUpdate."""
    return deployment["spec"].get("strategy", {}).get("type") == "RollingUpdate"  # type: ignore[no-any-return]


def resolve_fenceposts(surge: int | str | None, unavailable: int | str | None, desired: int) -> tuple[int, int]:
    """Returns maxSurge, rounded up, and maxUnavailable, rounded down; if both are 0, maxUnavailable is 1."""
    surplus = get_scaled_value(surge, desired, round_up=True)
    missing = get_scaled_value(unavailable, desired, round_up=False)
    return (0, 1) if surplus == missing == 0 else (surplus, missing)


def _resolve_fenceposts(deployment: Object) -> tuple[int, int]:
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return resolve_fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), replicas_of(deployment))


def max_surge(deployment: Object) -> int:
    """Returns the number of pods above `replicas` that may exist (MaxSurge)."""
    return _resolve_fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    """Returns the number of pods that may be unavailable (MaxUnavailable)."""
    desired = replicas_of(deployment)
    if not is_rolling_update(deployment) or not desired:
        return 0
    return min(_resolve_fenceposts(deployment)[1], desired)


def new_rs_new_replicas(deployment: Object, replica_sets: Iterable[Object], new: Object) -> int:
    """Returns the size of the new ReplicaSet, given the present sizes of the others (NewRSNewReplicas).

    Args:
        deployment: the Deployment.
        replica_sets: all of its ReplicaSets, including the new one.
        new: the ReplicaSet of the present template.
    """
    desired = replicas_of(deployment)
    if not is_rolling_update(deployment):
        return desired
    surge = (deployment["spec"]["strategy"].get("rollingUpdate") or {}).get("maxSurge")
    limit = desired + get_scaled_value(surge, desired, round_up=True)
    total = get_replica_count(replica_sets)
    if total >= limit:
        return replicas_of(new)
    return replicas_of(new) + min(limit - total, desired - replicas_of(new))


def get_proportion(replica_set: Object, deployment: Object, to_add: int, added: int) -> int:
    """Returns how many of the replicas to add (or to remove, if negative) one ReplicaSet gets (GetReplicaSetProportion).

    Args:
        replica_set: a ReplicaSet with replicas.
        deployment: the Deployment, which was scaled during a rollout.
        to_add: the number for all ReplicaSets together.
        added: the number that other ReplicaSets have got already.
    """
    if not replicas_of(replica_set) or to_add in (0, added):
        return 0
    fraction, allowed = _get_fraction(replica_set, deployment), to_add - added
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def _get_fraction(replica_set: Object, deployment: Object) -> int:
    """Returns the change that keeps the ReplicaSet's share of the maximum as before the scaling (getReplicaSetFraction)."""
    size = replicas_of(replica_set)
    if not replicas_of(deployment):
        return -size
    before = get_max_replicas_annotation(replica_set) or (deployment.get("status") or {}).get("replicas", 0)
    if not before:
        return 0
    limit = replicas_of(deployment) + max_surge(deployment)
    return _round_half_away(size * limit / before) - size


def _round_half_away(number: float) -> int:
    """Rounds half away from zero, as math.Round does."""
    return int(number + 0.5) if number >= 0 else int(number - 0.5)


def is_saturated(deployment: Object, replica_set: Object | None) -> bool:
    """Reports whether the ReplicaSet has all replicas of the Deployment, and all are available (IsSaturated)."""
    if replica_set is None:
        return False
    desired = replicas_of(deployment)
    available = (replica_set.get("status") or {}).get("availableReplicas", 0)
    sizes = (replicas_of(replica_set), get_desired_replicas_annotation(replica_set), available)
    return all(size == desired for size in sizes)


def deployment_complete(deployment: Object, status: Object) -> bool:
    """Reports whether all replicas are updated and available, and no old ones are left (DeploymentComplete)."""
    desired = replicas_of(deployment)
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return observed and all(count == desired for count in counts)


HASH_LABEL: Final = "pod-template-hash"


def by_creation(replica_set: Object) -> tuple[str, str]:
    """Returns a sort key of ReplicaSets: the oldest first."""
    return replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]


def equal_ignore_hash(one: Object, other: Object) -> bool:
    """Reports whether two pod templates are equal but for the label with the hash (EqualIgnoreHash)."""
    return semantic_deep_equal(without_hash(one), without_hash(other))


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

    # --- The Deployment itself ----------------------------------------------------------------------------------------

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

    # --- Find and create ----------------------------------------------------------------------------------------------

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
        length = MAX_NAME - 1 - len(hash_) if self.controller.context.emulation.minor >= _CUTS_NAMES_SINCE else None
        built: Object = {
            "kind": "ReplicaSet",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": f"{metadata['name'][:length]}-{hash_}",
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

    # --- Scaling ------------------------------------------------------------------------------------------------------

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

    # --- History ------------------------------------------------------------------------------------------------------

    def cleanup(self, old: Sequence[Object]) -> None:
        """Deletes the oldest ReplicaSets without pods, until revisionHistoryLimit is kept (cleanupDeployment)."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit in (None, MAX_INT32):
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


def filter_active_replica_sets(replica_sets: Iterable[Object]) -> list[Object]:
    """Returns the ReplicaSets that shall have pods."""
    return [one for one in replica_sets if replicas_of(one)]
