"""Annotations of Deployments and ReplicaSets: the revision, and the size of the Deployment when it was last scaled.

Specified by: pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.objects import Object

__all__ = [
    "REVISION",
    "ROLLBACK_TO",
    "annotations_of",
    "get_desired_replicas_annotation",
    "get_max_replicas_annotation",
    "last_revision",
    "max_revision",
    "new_replica_set_annotations",
    "replicas_annotations",
    "revision_of",
    "rollback_annotations",
]

Annotations = dict[str, str]

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ROLLBACK_TO = "deprecated.deployment.rollback.to"

_NOT_COPIED = frozenset({LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO})
#: Characters of the annotation with former revisions (maxRevHistoryLengthInChars).
_MAX_HISTORY = 2000
_MAX_INT32 = 2**31 - 1


def annotations_of(obj: Object) -> Annotations:
    """Returns a copy of metadata.annotations."""
    return dict(obj["metadata"].get("annotations") or {})


def _integer(text: str) -> int | None:
    """Parses a number as strconv.ParseInt does; None if it is malformed."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() else None


def revision_of(obj: Object) -> int | None:
    """Returns the revision in the annotation; 0 if it is absent, None if it is not a number."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION)
    return 0 if text is None else _integer(text)


def max_revision(replica_sets: Iterable[Object]) -> int:
    """Returns the highest revision; 0 if there is none."""
    return max((revision_of(one) or 0 for one in replica_sets), default=0)


def last_revision(replica_sets: Iterable[Object]) -> int:
    """Returns the second highest revision; 0 if there is none."""
    known = [revision for one in replica_sets if (revision := revision_of(one)) is not None]
    return sorted([0, 0, *known])[-2]


def _non_negative_annotation(obj: Object, name: str) -> int | None:
    """Returns the non-negative number in an annotation; None if it is absent or malformed."""
    text = (obj["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_INT32 else None


def get_desired_replicas_annotation(replica_set: Object) -> int | None:
    """Returns spec.replicas of the Deployment at the time when the ReplicaSet was last scaled."""
    return _non_negative_annotation(replica_set, DESIRED_REPLICAS)


def get_max_replicas_annotation(replica_set: Object) -> int | None:
    """Returns spec.replicas plus maxSurge of the Deployment at the time when the ReplicaSet was last scaled."""
    return _non_negative_annotation(replica_set, MAX_REPLICAS)


def replicas_annotations(desired: int, maximum: int) -> Annotations:
    """Returns the annotations that a ReplicaSet gets when it is scaled (SetReplicasAnnotations)."""
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(maximum)}


def new_replica_set_annotations(deployment: Object, annotations: Annotations, new_revision: int) -> tuple[Annotations, bool]:
    """Returns the annotations of the new ReplicaSet, and whether they have changed (SetNewReplicaSetAnnotations).

    Args:
        deployment: Its annotations are copied, except those that belong to the Deployment itself.
        annotations: The present annotations of the ReplicaSet.
        new_revision: The revision of the present template.
    """
    copied = {name: value for name, value in annotations_of(deployment).items() if name not in _NOT_COPIED}
    result = {**annotations, **copied}
    changed = result != annotations
    old_text = annotations.get(REVISION, "")
    old = _integer(old_text) if old_text else 0
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
