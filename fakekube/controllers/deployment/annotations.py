"""The annotations by which a Deployment and its ReplicaSets know revisions, and sizes before they were scaled.

Specified by: pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = [
    "REVISION",
    "ROLLBACK_TO",
    "annotations_of",
    "desired_replicas",
    "last_revision",
    "max_replicas",
    "max_revision",
    "replica_annotations",
    "restored_annotations",
    "revision_of",
    "updated_annotations",
]

Object = dict[str, Any]
Annotations = dict[str, str]

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ROLLBACK_TO = "deprecated.deployment.rollback.to"

_NOT_COPIED = frozenset({LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO})
_MAX_HISTORY = 2000
"""Characters of the annotation that lists former revisions."""
_MAX_INT32 = 2**31 - 1


def annotations_of(obj: Object) -> Annotations:
    """metadata.annotations, a dict of its own."""
    return dict(obj["metadata"].get("annotations") or {})


def _integer(text: str) -> int | None:
    """What strconv.ParseInt reads."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() else None


def revision_of(obj: Object) -> int | None:
    """The revision that an annotation tells; 0 without one, None if it is not a number."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION)
    return 0 if text is None else _integer(text)


def max_revision(replica_sets: Iterable[Object]) -> int:
    """The highest revision; 0 if there is none."""
    return max((revision_of(one) or 0 for one in replica_sets), default=0)


def last_revision(replica_sets: Iterable[Object]) -> int:
    """The second highest revision; 0 if there is none."""
    known = [revision for one in replica_sets if (revision := revision_of(one)) is not None]
    return sorted([0, 0, *known])[-2]


def _count(obj: Object, name: str) -> int | None:
    """A number that is not negative; None if there is none."""
    text = (obj["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_INT32 else None


def desired_replicas(replica_set: Object) -> int | None:
    """How many replicas the Deployment had when the ReplicaSet was last scaled."""
    return _count(replica_set, DESIRED_REPLICAS)


def max_replicas(replica_set: Object) -> int | None:
    """How many pods the Deployment could have then."""
    return _count(replica_set, MAX_REPLICAS)


def replica_annotations(desired: int, maximum: int) -> Annotations:
    """What a ReplicaSet is told when it is scaled."""
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(maximum)}


def updated_annotations(deployment: Object, annotations: Annotations, new_revision: int) -> tuple[Annotations, bool]:
    """The annotations of the ReplicaSet of the present template.

    Args:
        deployment: whose annotations are copied, but for those that are its own.
        annotations: that the ReplicaSet has.
        new_revision: of the present template.

    Returns:
        The new annotations, and whether they differ in a way that is worth a write.
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
    """Remember a former revision; the oldest are forgotten if the text gets too long."""
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


def restored_annotations(deployment: Object, replica_set: Object) -> Annotations:
    """The annotations of a Deployment that is rolled back: its own, and those that the ReplicaSet was given then."""
    own = {name: value for name, value in annotations_of(deployment).items() if name in _NOT_COPIED}
    given = {name: value for name, value in annotations_of(replica_set).items() if name not in _NOT_COPIED}
    return own | given
