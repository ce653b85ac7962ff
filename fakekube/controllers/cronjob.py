"""The CronJob controller: creates a Job at each time of a schedule, by the cluster's clock.

A CronJob is synced shortly after each scheduled time, and when it or one of its Jobs changes. Its status lists the active Jobs,
on which concurrencyPolicy depends. Finished Jobs are removed from the list, and the oldest are deleted.

Specified by: pkg/controller/cronjob/{cronjob_controllerv2,utils}.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from fakekube.apis.batch.schedules import Schedule, ScheduleError, parse_schedule, schedule_problem, time_zone, time_zone_problem
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_namespace_terminating, parse_time
from fakekube.controllers.informers import get_controller_of, is_controlled_by, new_controller_ref
from fakekube.controllers.job.utils import finished_type
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.recorder import get_reference

#: The number of missed starts above which an event is recorded.
MANY: Final = 100
#: Seconds between a scheduled time and the sync (nextScheduleDelta).
NEXT_DELTA: Final = 0.1


class TooFrequent(ValueError):
    """The times of the schedule are less than a second apart."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


class MostRecent(NamedTuple):
    """The most recent scheduled time."""

    earliest: datetime
    """The time after which scheduled times were searched."""
    time: datetime | None
    """The most recent scheduled time; None if none is due."""
    missed: int

    """The number of missed scheduled times."""


def most_recent_schedule_time(cron_job: StoredObject, now: datetime, schedule: Schedule, *, include_deadline: bool) -> MostRecent:
    """Returns the last scheduled time before now, and the number of missed ones (mostRecentScheduleTime).

    Args:
        cron_job: times are searched after its lastScheduleTime or, if that is absent, its creation.
        now: the time of the clock.
        schedule: the schedule of the CronJob.
        include_deadline: times that are longer ago than startingDeadlineSeconds are ignored.

    Raises:
        TooFrequent: the times of the schedule are less than a second apart.
    """
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    earliest = parse_time(last or cron_job["metadata"]["creationTimestamp"])
    seconds = cron_job["spec"].get("startingDeadlineSeconds")
    if include_deadline and seconds is not None:
        earliest = max(earliest, _subtract_seconds(now, seconds))
    first = schedule.next(earliest)
    second = schedule.next(first) if first is not None else None
    if first is not None and now < first:
        return MostRecent(earliest, None, 0)
    if first is not None and second is not None and now < second:
        return MostRecent(earliest, first, 0)
    if first is None or second is None or second - first < timedelta(seconds=1):
        raise TooFrequent
    interval = second - first
    missed = int((now - first).total_seconds()) // int(interval.total_seconds()) + 1
    time, found = schedule.next(first + (missed - 2) * interval), None
    while time is not None and time <= now:
        time, found = schedule.next(time), time
    return MostRecent(earliest, found, missed)


def _subtract_seconds(now: datetime, seconds: int) -> datetime:
    """Returns the time so many seconds ago; the earliest representable one on overflow."""
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def next_requeue_duration(cron_job: StoredObject, now: datetime, schedule: Schedule) -> float:
    """Returns the seconds until the CronJob is to be synced for its next scheduled time (nextScheduleTimeDuration)."""
    try:
        recent = most_recent_schedule_time(cron_job, now, schedule, include_deadline=False)
    except TooFrequent:
        base = now
    else:
        base = recent.time or (now if recent.missed else recent.earliest)
    time = schedule.next(base)
    return max((time - now).total_seconds() + NEXT_DELTA, 0.0) if time is not None else NEXT_DELTA


SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobController(Reconciler):
    """Creates and deletes the Jobs of CronJobs."""

    name = "cronjob-controller"
    watches = ("cronjobs.batch", "jobs.batch")

    # --- Events -------------------------------------------------------------------------------------------------------

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "cronjobs.batch":
            key = Key(metadata["namespace"], metadata["name"])
            return self._keys_after_change(key, obj) if old is not None and _timing(obj) != _timing(old) else (key,)
        owner, former = get_controller_of(obj), None if old is None else get_controller_of(old)
        names = {one["name"] for one in (former, owner) if one and one["kind"] == "CronJob"}
        return [Key(metadata["namespace"], name) for name in sorted(names)]

    def _keys_after_change(self, key: Key, cron_job: StoredObject) -> Iterable[Key]:
        """Requeues the key for the next time of a changed schedule; times that the old one has missed are skipped."""
        text = _format_schedule(cron_job)
        if schedule_problem(text):
            message = f"unparseable schedule for cronjob: {cron_job['spec']['schedule']}"
            self.recorder.event(cron_job, "Warning", "UnParseableCronJobSchedule", message)
        else:
            self.requeue_after(key, next_requeue_duration(cron_job, self.clock.now(), parse_schedule(text)))
        return ()

    def reconcile(self, key: Key) -> None:
        cron_job = self.cache.get("cronjobs.batch", key.namespace, key.name)
        if cron_job is None:
            return
        jobs = [job for job in self.cache.list("jobs.batch", key.namespace) if _is_controlled_by_name(job, key.name)]
        sync = _Sync(self, cron_job)
        sync.cleanup_finished_jobs(jobs)
        failure, wait = None, None
        try:
            wait = sync.run(jobs)
        except ApiError as error:
            failure = error
        if sync.changed:
            self.client.update({**cron_job, "status": sync.status}, subresource="status")
        if wait is not None:
            self.requeue_after(key, wait)
        if failure is not None and not is_namespace_terminating(failure):
            raise failure


def _timing(cron_job: StoredObject) -> tuple[Any, Any]:
    return cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone")


def _is_controlled_by_name(job: Object, name: str) -> bool:
    owner = get_controller_of(job)
    return owner is not None and owner["name"] == name


def _format_schedule(cron_job: StoredObject) -> str:
    """Returns the schedule, with the time zone as a prefix if it is valid (formatSchedule)."""
    schedule, zone = _timing(cron_job)
    if "TZ" in schedule or zone is None or time_zone_problem(zone):
        return str(schedule)
    return f"TZ={zone} {schedule}"


class _Sync:
    """One sync of a CronJob.

    Args:
        controller: provides the client, the clock and the recorder.
        cron_job: the CronJob.
    """

    def __init__(self, controller: CronJobController, cron_job: Object) -> None:
        self._controller = controller
        self._cron_job = cron_job
        self._now = controller.clock.now()
        self.status = dict(cron_job.get("status") or {})
        self.status["active"] = list(self.status.get("active") or ())
        self.changed = False

    def _record_event(self, type_: str, reason: str, message: str) -> None:
        self._controller.recorder.event(self._cron_job, type_, reason, message)

    # --- Existing Jobs ------------------------------------------------------------------------------------------------

    def cleanup_finished_jobs(self, jobs: list[Object]) -> None:
        """Deletes the oldest finished Jobs beyond the history limits."""
        spec = self._cron_job["spec"]
        for limit, condition in (("successfulJobsHistoryLimit", "Complete"), ("failedJobsHistoryLimit", "Failed")):
            most = spec.get(limit)
            if most is None:
                continue
            finished = sorted((job for job in jobs if finished_type(job) == condition), key=_by_start_time)
            for job in finished[: max(len(finished) - most, 0)]:
                self.changed |= self._delete_job(job)

    def _delete_job(self, job: Object) -> bool:
        metadata = job["metadata"]
        try:
            self._controller.client.delete(
                "jobs.batch", metadata["name"], namespace=metadata["namespace"], propagationPolicy="Background"
            )
        except ApiError as error:
            self._record_event("Warning", "FailedDelete", f"Deleted job: {error}")
            return False
        self._remove_active(metadata["uid"])
        self._record_event("Normal", "SuccessfulDelete", f"Deleted job {metadata['name']}")
        return True

    def _remove_active(self, uid: str) -> None:
        self.status["active"] = [one for one in self.status["active"] if one["uid"] != uid]

    def _is_active(self, uid: str) -> bool:
        return any(one["uid"] == uid for one in self.status["active"])

    def _sync_jobs(self, jobs: list[Object]) -> None:
        """Updates the list of active Jobs and lastSuccessfulTime. Raises ApiError."""
        for job in jobs:
            name, uid, finished = job["metadata"]["name"], job["metadata"]["uid"], finished_type(job)
            if not finished:
                if not self._is_active(uid) and not self._is_active_in_api(uid):
                    text = f"Saw a job that the controller did not create or forgot: {name}"
                    self._record_event("Warning", "UnexpectedJob", text)
                continue
            if self._is_active(uid):
                self._remove_active(uid)
                self._record_event("Normal", "SawCompletedJob", f"Saw completed job: {name}, condition: {finished}")
                self.changed = True
            if finished == "Complete":
                self._set_last_success((job.get("status") or {}).get("completionTime"))
        known = {job["metadata"]["uid"] for job in jobs}
        for one in self.status["active"]:
            if one["uid"] not in known and not self._job_exists(one):
                self._record_event("Normal", "MissingJob", f"Active job went missing: {one['name']}")
                self._remove_active(one["uid"])
                self.changed = True

    def _is_active_in_api(self, uid: str) -> bool:
        """Reports whether the stored CronJob, which may be newer, lists the Job as active."""
        metadata = self._cron_job["metadata"]
        fresh = self._controller.client.get("cronjobs.batch", metadata["name"], namespace=metadata["namespace"])
        return any(one["uid"] == uid for one in (fresh.get("status") or {}).get("active") or ())

    def _set_last_success(self, time: str | None) -> None:
        last = self.status.get("lastSuccessfulTime")
        if time is not None and (last is None or parse_time(time) > parse_time(last)):
            self.status["lastSuccessfulTime"] = time
            self.changed = True

    def _job_exists(self, job: Object) -> bool:
        try:
            self._controller.client.get("jobs.batch", job["name"], namespace=job["namespace"])
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    # --- The next start -----------------------------------------------------------------------------------------------

    def run(self, jobs: list[Object]) -> float | None:
        """Creates the Job that is due.

        Returns:
            seconds until the next sync; None if only a change requires one.

        Raises:
            ApiError: a request failed, and the sync must be repeated.
        """
        self._sync_jobs(jobs)
        spec = self._cron_job["spec"]
        if "deletionTimestamp" in self._cron_job["metadata"]:
            return None
        zone = spec.get("timeZone")
        if zone is not None and (problem := time_zone_problem(zone)):
            self._record_event("Warning", "UnknownTimeZone", f"invalid timeZone: {go_quote(zone)}: {problem}")
            return None
        if spec.get("suspend"):
            return None
        schedule = self._parse_schedule()
        if schedule is None:
            return None
        try:
            time = self._next_schedule_time(schedule)
        except TooFrequent as error:
            self._record_event("Warning", "InvalidSchedule", f"invalid schedule: {spec['schedule']} : {error}")
            return None
        if time is not None and self._may_start(time) and not self._create_job(time):
            return None
        return next_requeue_duration({**self._cron_job, "status": self.status}, self._now, schedule)

    def _parse_schedule(self) -> Schedule | None:
        text = self._cron_job["spec"]["schedule"]
        if "TZ" in text:
            self._record_event(
                "Warning",
                "UnsupportedSchedule",
                f"CRON_TZ or TZ used in schedule {go_quote(text)} is not officially supported, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
            )
        try:
            return parse_schedule(_format_schedule(self._cron_job))
        except ScheduleError as error:
            self._record_event("Warning", "UnparseableSchedule", f"unparseable schedule: {go_quote(text)} : {error}")
            return None

    def _next_schedule_time(self, schedule: Schedule) -> datetime | None:
        """Returns the scheduled time that is due; None if none is. Raises TooFrequent."""
        recent = most_recent_schedule_time(self._cron_job, self._now, schedule, include_deadline=True)
        if recent.time is not None and recent.missed > MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._record_event("Warning", "TooManyMissedTimes", text)
        return recent.time

    def _may_start(self, time: datetime) -> bool:
        """Reports whether the start is within the deadline, was not done before, and is allowed by concurrencyPolicy."""
        spec = self._cron_job["spec"]
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and (self._now - time).total_seconds() > deadline:
            text = f"Missed scheduled time to start a job: {time:%a, %d %b %Y %H:%M:%S +0000}"
            self._record_event("Warning", "MissSchedule", text)
            return False
        last = self.status.get("lastScheduleTime")
        if any(one["name"] == self._job_name(time) for one in self.status["active"]):
            return False
        if last is not None and parse_time(last) == time:
            return False
        if spec.get("concurrencyPolicy") == "Forbid" and self.status["active"]:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._record_event("Normal", "JobAlreadyActive", text)
            return False
        return True

    def _job_name(self, time: datetime) -> str:
        return f"{self._cron_job['metadata']['name']}-{int(time.timestamp()) // 60}"

    def _create_job(self, time: datetime) -> bool:
        """Creates the Job. Returns False if the name belongs to another owner's Job or to an active Job. Raises ApiError."""
        if self._cron_job["spec"].get("concurrencyPolicy") == "Replace":
            self._replace_active_jobs()
        new_job = self._build_job(time)
        try:
            job = self._controller.client.create(new_job)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                if not is_namespace_terminating(error):
                    self._record_event("Warning", "FailedCreate", f"Error creating job: {error}")
                raise
            metadata = new_job["metadata"]
            job = self._controller.client.get("jobs.batch", metadata["name"], namespace=metadata["namespace"])
            if not is_controlled_by(job, self._cron_job) or self._is_active(job["metadata"]["uid"]):
                return False
        else:
            self._record_event("Normal", "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        self.status["active"].append(get_reference(job))
        self.status["lastScheduleTime"] = print_time(time)
        self.changed = True
        return True

    def _replace_active_jobs(self) -> None:
        """Deletes the active Jobs. Raises ApiError."""
        for one in list(self.status["active"]):
            try:
                job = self._controller.client.get("jobs.batch", one["name"], namespace=one["namespace"])
            except ApiError as error:
                self._record_event("Warning", "FailedGet", f"Get job: {error}")
                raise
            if not self._delete_job(job):
                text = f"could not replace job {one['namespace']}/{one['name']}"
                raise ApiError({"code": 500, "reason": "InternalError", "message": text})
            self.changed = True

    def _build_job(self, time: datetime) -> Object:
        template = self._cron_job["spec"]["jobTemplate"]
        metadata = template.get("metadata") or {}
        zone = time_zone(self._cron_job["spec"].get("timeZone") or "")
        timestamp = time.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")
        return {
            "kind": "Job",
            "apiVersion": "batch/v1",
            "metadata": {
                "name": self._job_name(time),
                "namespace": self._cron_job["metadata"]["namespace"],
                "labels": dict(metadata.get("labels") or {}),
                "annotations": {**(metadata.get("annotations") or {}), SCHEDULED: timestamp},
                "ownerReferences": [new_controller_ref(self._cron_job)],
            },
            "spec": template["spec"],
        }


def _by_start_time(job: Object) -> tuple[bool, str, str]:
    """Returns a sort key of Jobs: by startTime, those without one last (byJobStartTime)."""
    start = (job.get("status") or {}).get("startTime")
    return start is None, start or "", job["metadata"]["name"]
