"""How long a Job waits before it replaces a failed pod: 10 s after the first failure, then twice as long, to 10 min.

A success sets the count back. What is remembered is lost with the controller, as in the real one.

Specified by: pkg/controller/job/backoff_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fakekube.controllers.job.policies import absolute_failure_count
from fakekube.controllers.pods import moment, ready_condition

__all__ = ["BackoffRecord", "finished_time", "remaining_for_index", "remaining_time"]

Object = dict[str, Any]

DEFAULT_BACKOFF = 10.0
MAX_BACKOFF = 600.0


@dataclass(slots=True, frozen=True)
class BackoffRecord:
    """Failures since the last success."""

    failures: int = 0
    last_failure: datetime | None = None

    def after(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> BackoffRecord:
        """The record when these pods have ended, too."""
        failures = sorted(map(finished_time, failed), reverse=True)
        if not succeeded:
            return BackoffRecord(self.failures + len(failures), failures[0]) if failures else self
        success = max(map(finished_time, succeeded))
        later = [failure for failure in failures if failure > success]
        return BackoffRecord(len(later), later[0] if later else None)

    def remaining(self, now: datetime) -> float:
        """Seconds until the next pod may be created."""
        return remaining_time(self.failures, self.last_failure, now)


def remaining_time(failures: int, last_failure: datetime | None, now: datetime) -> float:
    """Seconds until a pod may be created after so many failures in a row."""
    if not failures or last_failure is None:
        return 0.0
    wait = min(DEFAULT_BACKOFF * 2.0 ** min(failures - 1, 10), MAX_BACKOFF)
    return max(wait - (now - last_failure).total_seconds(), 0.0)


def remaining_for_index(last_failed: Object | None, now: datetime) -> float:
    """Seconds until the index of a failed pod (None: there is none) may be tried again."""
    if last_failed is None:
        return 0.0
    return remaining_time(absolute_failure_count(last_failed) + 1, finished_time(last_failed), now)


def finished_time(pod: Object) -> datetime:
    """When the pod has ended: as its containers tell, its Ready condition, its deletion, or its creation."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    sidecars = {one["name"] for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"}
    found = _latest(status.get("containerStatuses") or ())
    in_init = [one for one in status.get("initContainerStatuses") or () if one["name"] in sidecars]
    if in_init:
        of_sidecars = _latest(in_init)
        found = None if of_sidecars is None else max(found or of_sidecars, of_sidecars)
    if found is not None:
        return found
    ready = ready_condition(pod)
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return moment(ready["lastTransitionTime"])
    if "deletionTimestamp" in metadata:
        grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
        return moment(metadata["deletionTimestamp"]) - grace
    return moment(metadata["creationTimestamp"])


def _latest(statuses: Iterable[Object]) -> datetime | None:
    """When the last container ended; None if one has not, or does not tell."""
    latest = None
    for container in statuses:
        ended = ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if not ended:
            return None
        latest = max(latest or moment(ended), moment(ended))
    return latest
