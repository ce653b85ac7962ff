"""Runs the pods with plans: each has a state machine, whose states are written as time passes.

Invariant: a status is written before the next state is entered, so that watchers see every state that a kubelet sees: a container
whose program ends before the kubelet looks at it for the first time is terminated then, and is never seen running. The kubelet
looks at once, or, if the cluster has a pace, a pace after the start, as a kubelet that lists the containers once a second.

Specified by: pkg/kubelet/pod_workers.go, pkg/kubelet/status/status_manager.go, pkg/kubelet/pleg/generic.go (generateEvents).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.controllers.recorder import Recorder
from fakekube.nodes.container_events import record_container_events
from fakekube.nodes.node_state import Exit
from fakekube.nodes.plans import PodPlan
from fakekube.nodes.pod_state import Container, PodState, State, containers_by_name
from fakekube.nodes.pod_status import is_of_job, planned_status

if TYPE_CHECKING:
    from fakekube.nodes.images.image import Image


Addresses = tuple[str, list[str]]
#: The functions `creation_error` and `mount_error` of a `PodState`.
Obstacles = tuple[Callable[[Mapping[str, Any]], str], Callable[[], str]]
#: Writes a status; returns the updated pod.
Write = Callable[[Object, dict[str, Any]], Object]
#: Starts the programs of containers of a pod with the status that it will have; returns the exits of those that end at once.
Start = Callable[[Object, Iterable[Container]], Sequence[Exit]]


@dataclass(slots=True)
class _Worker:
    state: PodState
    plan: PodPlan
    seen: str | None = None
    """The resourceVersion of the pod when what could not be started was tried last."""
    looks_at: float | None = None
    """When the kubelet looks at the programs that it has started, and writes the status; None if it is written."""
    is_written: bool = True
    """The API server has the status of the present state; if it has refused it, the next sync writes it again."""


class PodWorkers:
    """The state machines of the pods with plans.

    Args:
        clock: the clock of the cluster.
        recorder: the recorder of the kubelet.
        write: writes the status of a pod.
        followed: returns the names of a pod's containers that terminate with their command.
        obstacles: returns the functions `creation_error` and `mount_error` of a pod, see `PodState`.
        start: starts the programs of containers that terminate with their command.
        look_after: returns the seconds between the start of a program and the first look at it.
        image_of: returns a known image.
        minor: the minor of the kubelet, e.g. 37.
    """

    def __init__(
        self,
        clock: Clock,
        recorder: Recorder,
        write: Write,
        followed: Callable[[Object], frozenset[str]],
        obstacles: Callable[[Object], Obstacles],
        *,
        start: Start,
        look_after: Callable[[], float],
        image_of: Callable[[str], Image | None],
        minor: int,
    ) -> None:
        self._clock, self._recorder, self._write, self._start = clock, recorder, write, start
        self._followed, self._obstacles = followed, obstacles
        self._look_after, self._image_of, self._minor = look_after, image_of, minor
        self._workers: dict[str, _Worker] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._workers

    def forget(self, uid: str) -> None:
        """Removes the state of a deleted pod."""
        self._workers.pop(uid, None)

    def sync(self, pod: Object, plan: PodPlan | None, addresses: Addresses, exits: Sequence[Exit] = ()) -> float | None:
        """Does what is due. Returns the seconds until the next transition; None if there is none. Raises ApiError.

        Args:
            pod: the pod.
            plan: its plan; None keeps the present one.
            addresses: the addresses of node and pod.
            exits: the exits of main programs.
        """
        uid = pod["metadata"]["uid"]
        now = self._clock.monotonic()
        worker = self._workers.get(uid)
        if worker is None:
            worker = self._workers[uid] = self._begin(pod, plan or PodPlan(), now)
            pod = self._write_state(pod, worker, addresses, now)
        elif plan is not None and plan != worker.plan:
            worker.plan = plan
            worker.state.replan(plan)
            pod = self._write_state(pod, worker, addresses, now)
        elif not worker.is_written:
            pod = self._write_state(pod, worker, addresses, now)
        state = worker.state
        if worker.seen != pod["metadata"].get("resourceVersion"):
            worker.seen = pod["metadata"].get("resourceVersion")
            if state.has_other_images(pod["spec"]) and not state.terminating:
                worker.plan = plan or PodPlan()
                state.change_images(pod["spec"], worker.plan, self._followed(pod), now)
            state.retry(now)
            if pod["spec"].get("readinessGates") and not state.terminating:
                pod = self._write_state(pod, worker, addresses, now)  # another component sets the conditions of the gates
        if "deletionTimestamp" in pod["metadata"] and not state.terminating:
            state.terminate(now, float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
            self._record_events(pod, state)
        for one in exits:
            if state.exit(one.container, one.attempt, one.run, min(one.time, now)):
                pod = self._write_state(pod, worker, addresses, now)
        if worker.looks_at is not None and (worker.looks_at <= now or state.terminating):
            pod = self._write_state(pod, worker, addresses, now)
        while worker.looks_at is None and state.advance(now):
            if state.followed and self._start_programs(pod, state, addresses, now) and (pace := self._look_after()):
                worker.looks_at = self._clock.monotonic() + pace
            else:
                pod = self._write_state(pod, worker, addresses, now)
        due = state.next_due if worker.looks_at is None else worker.looks_at
        return None if due is None else max(due - now, 0.0)

    def adopt(self, pod: Object, plan: PodPlan | None) -> None:
        """Makes a state machine for a pod whose containers run with the images in its status; the next sync applies others."""
        worker = self._workers[pod["metadata"]["uid"]] = self._begin(pod, plan or PodPlan(), self._clock.monotonic())
        images = {one["name"]: one["image"] for one in pod["status"]["containerStatuses"]}
        for one in worker.state.containers:
            if one.name in images:
                one.spec = {**one.spec, "image": images[one.name]}

    def retry(self, uid: str) -> None:
        """Lets the next sync of a pod try again what could not be started, although the pod has not changed."""
        if uid in self._workers:
            self._workers[uid].seen = None

    def running(self, uid: str) -> Iterator[Container]:
        """Yields the containers of a pod that are running."""
        worker = self._workers.get(uid)
        if worker is not None:
            yield from (one for one in worker.state.containers if one.state is State.RUNNING)

    def probe(self, pod: Object, container: Container, kind: str, succeeded: bool, addresses: Addresses) -> bool:
        """Applies the result of a probe of a running container. Returns whether it changed the status. Raises ApiError."""
        worker, now = self._workers[pod["metadata"]["uid"]], self._clock.monotonic()
        changed = worker.state.probe(container.name, container.attempt, kind, succeeded, now)
        if changed:
            self._write_state(pod, worker, addresses, now)
        return changed

    def resize(self, pod: Object) -> None:
        """Applies the new resources of a resized pod, if it has a state machine."""
        worker = self._workers.get(pod["metadata"]["uid"])
        if worker is not None:
            specs = containers_by_name(pod["spec"])
            for container in worker.state.containers:
                container.spec = specs.get(container.name, container.spec)

    def delay_stop(self, pod: Object, seconds: Mapping[str, float]) -> None:
        """Sets the minimum seconds that containers of a pod take to stop, by their names."""
        uid = pod["metadata"]["uid"]
        worker = self._workers.get(uid)
        if worker is None:
            worker = self._workers[uid] = self._begin(pod, PodPlan(), self._clock.monotonic())
        for one in worker.state.containers:
            one.plan = replace(one.plan, stop_seconds=max(one.plan.stop_seconds, seconds.get(one.name, 0.0)))

    def fail(self, pod: Object, addresses: Addresses, reason: str, message: str) -> None:
        """Fails a pod as a whole. Raises ApiError."""
        uid = pod["metadata"]["uid"]
        now = self._clock.monotonic()
        worker = self._workers.get(uid)
        if worker is None:
            worker = self._workers[uid] = self._begin(pod, PodPlan(), now)
        worker.state.fail(now, reason, message)
        self._write_state(pod, worker, addresses, now)

    def is_done(self, uid: str) -> bool:
        """Reports whether all containers of a deleted pod have stopped."""
        worker = self._workers.get(uid)
        return worker is None or (worker.state.terminating and worker.state.is_done)

    def _begin(self, pod: Object, plan: PodPlan, now: float) -> _Worker:
        followed, status = self._followed(pod), pod.get("status") or {}
        state = PodState(pod["spec"], plan, now, is_of_job(pod), followed)
        state.image_of, state.minor = self._image_of, self._minor
        if not status.get("startTime") or followed:
            state.creation_error, state.mount_error = self._obstacles(pod)
        for field in ("initContainerStatuses", "containerStatuses"):
            for one in status.get(field) or ():
                state.adopt(one["name"], one, now)
        return _Worker(state, plan)

    def _start_programs(self, pod: Object, state: PodState, addresses: Addresses, now: float) -> bool:
        """Starts the programs of containers that have just started, and ends the containers whose program ends at once.

        Returns whether it started one that runs on.
        """
        started = [one for one in state.containers if one.name in state.followed and one.is_new]
        if not started:
            return False
        status = {**(pod.get("status") or {}), **planned_status(pod, state, addresses, self._timestamps(), now)}
        for one in started:
            one.is_new = False
        for ended in self._start({**pod, "status": status}, started):
            state.exit(ended.container, ended.attempt, ended.run, now)
        return any(one.state is State.RUNNING for one in started)

    def _write_state(self, pod: Object, worker: _Worker, addresses: Addresses, now: float) -> Object:
        """Records the events, and writes the status."""
        worker.looks_at = None
        self._record_events(pod, worker.state)
        status = planned_status(pod, worker.state, addresses, self._timestamps(), now)
        worker.is_written = False
        written = self._write(pod, status)
        worker.is_written = True
        return written

    def _record_events(self, pod: Object, state: PodState) -> None:
        record_container_events(self._recorder, pod, state.events)
        state.events.clear()

    def _timestamps(self) -> Callable[[float], str]:
        current, monotonic = self._clock.now(), self._clock.monotonic()
        return lambda time: print_time(current - timedelta(seconds=monotonic - time))
