"""The back-off before a Job replaces failed pods: 10 s after the first failure, then twice as long each time, at most 10 min.

A success resets it. The records are lost when the controller stops, as those of the real one are.

Specified by: pkg/controller/job/backoff_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fakekube.base.objects import Object
from fakekube.controllers.controller_utils import get_pod_ready_condition, parse_time
from fakekube.controllers.job.pod_failure_policy import absolute_failure_count

#: Seconds (DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff).
DEFAULT_BACKOFF: Final = 10.0
MAX_BACKOFF: Final = 600.0


@dataclass(slots=True, frozen=True)
class BackoffRecord:
    """The failures since the last success."""

    failures: int = 0
    last_failure: datetime | None = None

    def with_terminated_pods(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> BackoffRecord:
        """Returns the record after these pods have terminated (newBackoffRecord)."""
        failures = sorted(map(get_finished_time, failed), reverse=True)
        if not succeeded:
            return BackoffRecord(self.failures + len(failures), failures[0]) if failures else self
        success = max(map(get_finished_time, succeeded))
        later = [failure for failure in failures if failure > success]
        return BackoffRecord(len(later), later[0] if later else None)

    def seconds_until_next_pod(self, now: datetime) -> float:
        """Returns the seconds until the next pod may be created."""
        return get_remaining_time(self.failures, self.last_failure, now)


def get_remaining_time(failures: int, last_failure: datetime | None, now: datetime) -> float:
    """Returns the seconds until a pod may be created after so many failures in a row."""
    if not failures or last_failure is None:
        return 0.0
    wait = min(DEFAULT_BACKOFF * 2.0 ** min(failures - 1, 10), MAX_BACKOFF)
    return max(wait - (now - last_failure).total_seconds(), 0.0)


def get_remaining_time_per_index(last_failed: Object | None, now: datetime) -> float:
    """Returns the seconds until the pod of an index may be created, given the last failed pod of the index, if any."""
    if last_failed is None:
        return 0.0
    return get_remaining_time(absolute_failure_count(last_failed) + 1, get_finished_time(last_failed), now)


def get_finished_time(pod: Object) -> datetime:
    """Returns the time at which the pod terminated.

    The first of these that is known: the end of its containers, the transition of its condition Ready, its deletion, its
    creation.
    """
    status, metadata = pod.get("status") or {}, pod["metadata"]
    sidecars = {one["name"] for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"}
    found = _latest_finish(status.get("containerStatuses") or ())
    in_init = [one for one in status.get("initContainerStatuses") or () if one["name"] in sidecars]
    if in_init:
        of_sidecars = _latest_finish(in_init)
        found = None if of_sidecars is None else max(found or of_sidecars, of_sidecars)
    if found is not None:
        return found
    ready = get_pod_ready_condition(pod)
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if "deletionTimestamp" in metadata:
        grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
        return parse_time(metadata["deletionTimestamp"]) - grace
    return parse_time(metadata["creationTimestamp"])


def _latest_finish(statuses: Iterable[Object]) -> datetime | None:
    """Returns the latest end of a container; None if one has not terminated or lacks the time."""
    latest = None
    for container in statuses:
        ended = ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if not ended:
            return None
        latest = max(latest or parse_time(ended), parse_time(ended))
    return latest
