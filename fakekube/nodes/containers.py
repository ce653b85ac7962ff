"""The containers of one pod that has been told something, as a kubelet runs them: a state machine that time drives.

Init containers run one after the other, sidecars stay, then the others run together. What ends is restarted, or not, by the
restart policy: at once the first time, then after 10, 20, 40 … 300 seconds. An image that cannot be pulled is tried again
likewise. When all have ended for good, sidecars are ended, too.

Nothing here reads a clock: `advance(t)` does what is due first, if it is due at `t` or before; times are seconds of one clock.

Invariant: whatever the steps in which time passes, the states at a time are the same.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, doBackOff), kuberuntime_container.go,
images/image_manager.go, k8s.io/kubernetes/pkg/api/v1/pod (ContainerShouldRestart).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fakekube.nodes.container import Container, Kind, State, Step, Termination
from fakekube.nodes.plans import ContainerPlan, PodPlan, Run

__all__ = ["Happening", "Pod"]

BACK_OFF: Final = 10.0
MAX_BACK_OFF: Final = 300.0
#: A run of so many seconds ends a back-off.
LONG_RUN: Final = 600.0

KILLED: Final = 137
CRASH_LOOP: Final = "CrashLoopBackOff"
CREATING: Final = "ContainerCreating"
INITIALIZING: Final = "PodInitializing"
PULL_FAILED: Final = "ErrImagePull"
PULL_BACK_OFF: Final = "ImagePullBackOff"


#: Steps before which what is there is shown.
_SHOWN_BEFORE: Final = frozenset({Step.WAIT, Step.PULL_AGAIN, Step.RESTART})


class Happening(NamedTuple):
    """An event to be told."""

    container: str
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Pod:
    """The containers of a pod on a node.

    Args:
        spec: of the pod.
        plan: what it has been told.
        since: when it came to the node.
        completes: its containers end well at once if nothing else is said, as those of a Job.
    """

    spec: Mapping[str, Any]
    plan: PodPlan
    since: float
    completes: bool = False
    containers: list[Container] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    sandbox: bool = False
    failed: tuple[str, str] | None = None
    """Reason and message of a pod that failed as a whole."""
    terminating: bool = False

    def __post_init__(self) -> None:
        policy = self.spec.get("restartPolicy") or "Always"
        for one in self.spec.get("initContainers") or ():
            kind = Kind.SIDECAR if one.get("restartPolicy") == "Always" else Kind.INIT
            self.containers.append(Container(one, kind, self._plan_of(one["name"], kind), policy, reason=INITIALIZING))
        creating = INITIALIZING if self.containers else CREATING
        for one in self.spec["containers"]:
            self.containers.append(Container(one, Kind.MAIN, self._plan_of(one["name"], Kind.MAIN), policy, reason=creating))

    def _plan_of(self, name: str, kind: Kind) -> ContainerPlan:
        told = self.plan.containers.get(name)
        if told is None:
            told = self.plan.main if kind is Kind.MAIN else ContainerPlan()
        ends = kind is Kind.INIT or (kind is Kind.MAIN and self.completes)
        if ends and not told.runs:
            return ContainerPlan(
                told.pull_seconds,
                told.pull_error,
                told.pull_failures,
                told.ready_after,
                told.started_after,
                (Run(0.0),),
                told.stop_seconds,
            )
        return told

    # ------------------------------------------------------------ what it is like

    def of_kind(self, *kinds: Kind) -> Iterator[Container]:
        """The containers of some kinds, in order."""
        return (one for one in self.containers if one.kind in kinds)

    @property
    def is_initialized(self) -> bool:
        """Have all init containers ended well, and all sidecars started?"""
        return all(
            one.finished_well if one.kind is Kind.INIT else one.started or one.attempt > 0
            for one in self.of_kind(Kind.INIT, Kind.SIDECAR)
        )

    @property
    def phase(self) -> str:
        """As a kubelet tells it (getPhase)."""
        if self.failed is not None or any(one.is_over and not one.finished_well for one in self.of_kind(Kind.INIT)):
            return "Failed"
        mains = list(self.of_kind(Kind.MAIN))
        if all(one.is_over for one in mains):
            return "Succeeded" if all(one.finished_well for one in mains) else "Failed"
        if not self.is_initialized or any(one.state is State.WAITING and one.last is None for one in mains):
            return "Pending"
        return "Running"

    @property
    def is_done(self) -> bool:
        """Does nothing run any more?"""
        return not any(one.state is State.RUNNING for one in self.containers)

    @property
    def next_due(self) -> float | None:
        """When something happens next; None if nothing does."""
        if self.failed is not None or (self.terminating and self.is_done):
            return None
        times = [time for one in self.containers for time in one.steps.values()]
        if not self.sandbox and not self.terminating and self.plan.start_seconds is not None:
            times.append(self.since + self.plan.start_seconds)
        if self.plan.failure is not None and self.phase not in ("Failed", "Succeeded"):
            times.append(self.since + self.plan.failure[0])
        return min(times, default=None)

    # ------------------------------------------------------------ time passes

    def advance(self, now: float) -> bool:
        """Do what is due first, if it is due by now. False if nothing is."""
        due = self.next_due
        if due is None or due > now:
            return False
        if self.plan.failure is not None and self.since + self.plan.failure[0] <= due and self.failed is None:
            self.fail(due, *self.plan.failure[1:])
            return True
        if not self.sandbox:
            self.sandbox = True
            self._progress(due)
        shown = self._fire(due, shown=True)
        while not shown and self._fire(due, shown=False):
            pass
        return True

    def _fire(self, due: float, *, shown: bool) -> bool:
        """Do the first step that is due; `shown`: only one before which what is there was to be shown."""
        ready = [
            (step.value, index, step)
            for index, one in enumerate(self.containers)
            for step, time in one.steps.items()
            if time <= due and (step in _SHOWN_BEFORE) is shown
        ]
        if not ready:
            return False
        _, index, step = min(ready, key=lambda one: one[:2])
        container = self.containers[index]
        del container.steps[step]
        _STEPS[step](self, container, due)
        self._progress(due)
        return True

    def _progress(self, now: float) -> None:
        """Begin what may begin now, and end sidecars when all else is over."""
        if self.terminating or self.failed is not None:
            return
        if self.phase in ("Succeeded", "Failed"):
            for one in self.of_kind(Kind.SIDECAR):
                if one.state is State.RUNNING:
                    self._end(one, now, Run(0.0))
                one.steps.clear()
            return
        for one in self.of_kind(Kind.INIT, Kind.SIDECAR):
            if not one.begun:
                self._begin(one, now)
                return
            if not (one.finished_well if one.kind is Kind.INIT else one.started or one.attempt > 0):
                return
        for one in self.of_kind(Kind.MAIN):
            if not one.begun:
                self._begin(one, now)

    def _begin(self, one: Container, now: float) -> None:
        one.begun = True
        one.reason = INITIALIZING if one.kind is not Kind.MAIN else CREATING
        self._pull(one, now)

    def _pull(self, one: Container, now: float) -> None:
        plan = one.plan
        fails = bool(plan.pull_error) and (plan.pull_failures is None or one.pull_failures < plan.pull_failures)
        if fails or plan.pull_seconds or one.pull_failures:
            self._say(one, "Normal", "Pulling", f'Pulling image "{one.spec.get("image", "")}"')
        one.steps[Step.FAIL_PULL if fails else Step.START] = now + plan.pull_seconds

    def _fail_pull(self, one: Container, now: float) -> None:
        image = one.spec.get("image", "")
        one.pull_failures += 1
        error = f'failed to pull and unpack image "{image}": {one.plan.pull_error}'
        one.reason, one.message = PULL_FAILED, error
        self._say(one, "Warning", "Failed", f'Failed to pull image "{image}": {error}')
        self._say(one, "Warning", "Failed", "Error: ErrImagePull")
        one.back_off = min(one.back_off * 2, MAX_BACK_OFF) if one.back_off else BACK_OFF
        one.steps[Step.WAIT] = now
        one.steps[Step.PULL_AGAIN] = now + one.back_off

    def _wait(self, one: Container, now: float) -> None:
        """The back-off begins to show."""
        image = one.spec.get("image", "")
        if one.state is State.WAITING:
            message = f'Back-off pulling image "{image}"'
            one.reason, one.message = PULL_BACK_OFF, f"{message}: ErrImagePull: {one.message}"
            self._say(one, "Normal", "BackOff", message)
            self._say(one, "Warning", "Failed", "Error: ImagePullBackOff")
            return
        one.last, one.ended = one.ended, None
        one.state, one.reason = State.WAITING, CRASH_LOOP
        delay = int(one.steps[Step.RESTART] - (one.last.finished if one.last else now))
        minutes, rest = divmod(delay, 60)
        text = f"{minutes}m{rest}s" if minutes else f"{rest}s"
        one.message = f"back-off {text} restarting failed container={one.name} pod=$POD"
        self._say(one, "Warning", "BackOff", f"Back-off restarting failed container {one.name} in pod $POD")

    def _restart(self, one: Container, now: float) -> None:
        if one.state is State.TERMINATED:
            one.last, one.ended = one.ended, None
        one.attempt += 1
        self._start(one, now)

    def _start(self, one: Container, now: float) -> None:
        image = one.spec.get("image", "")
        if one.plan.pull_seconds and one.attempt == 0:
            took = f"{one.plan.pull_seconds:g}s"
            pulled = f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: 0 bytes.'
        else:
            pulled = f'Container image "{image}" already present on machine and can be accessed by the pod'
        self._say(one, "Normal", "Pulled", pulled)
        self._say(one, "Normal", "Created", "Container created")
        self._say(one, "Normal", "Started", "Container started")
        if one.attempt == 0:
            one.back_off = 0.0
        one.state, one.reason, one.message = State.RUNNING, "", ""
        one.started_at = now
        self._schedule(one, now)

    @staticmethod
    def _schedule(one: Container, now: float) -> None:
        """What a run that starts now has before it."""
        one.steps.clear()
        started = max(one.plan.started_after, _delay(one.spec, "startupProbe"))
        one.steps[Step.STARTED] = now + started
        if one.plan.ready_after is not None and one.kind is not Kind.INIT:
            one.steps[Step.READY] = now + max(one.plan.ready_after, started, _delay(one.spec, "readinessProbe"))
        run = one.plan.run(one.attempt)
        if run.seconds is not None:
            one.steps[Step.EXIT] = now + run.seconds

    def _started(self, one: Container, now: float) -> None:
        one.started = True

    def _ready(self, one: Container, now: float) -> None:
        one.ready = True

    def _exit(self, one: Container, now: float, run: Run | None = None) -> None:
        run = run or one.plan.run(one.attempt)
        if run.probe:
            self._say(one, "Warning", "Unhealthy", f"{run.probe.capitalize()} probe failed: ")
            self._say(one, "Normal", "Killing", f"Container {one.name} failed {run.probe} probe, will be restarted")
        self._end(one, now, run)
        if not one.restarts or self.terminating:
            return
        assert one.ended is not None
        delay = one.back_off if one.ended.finished - one.ended.started < LONG_RUN else 0.0
        one.back_off = min(delay * 2, MAX_BACK_OFF) if delay else BACK_OFF
        one.steps[Step.RESTART] = now + delay
        if delay:
            one.steps[Step.WAIT] = now

    @staticmethod
    def _end(one: Container, now: float, run: Run) -> None:
        one.steps.clear()
        reason = run.reason or ("Error" if run.exit_code else "Completed")
        one.state, one.reason, one.message = State.TERMINATED, "", ""
        one.ended = Termination(run.exit_code, reason, run.message, one.started_at, now, one.attempt)
        one.ready = one.kind is Kind.INIT and run.exit_code == 0
        one.started = False

    # ------------------------------------------------------------ from outside

    def replan(self, plan: PodPlan) -> None:
        """From the next run on containers do something else; what runs ends, or is ready, as it is told now."""
        self.plan = plan
        for one in self.containers:
            one.plan = self._plan_of(one.name, one.kind)
            if one.state is State.RUNNING and not self.terminating:
                self._schedule(one, one.started_at)
                if one.plan.ready_after is None:
                    one.ready = False

    def adopt(self, name: str, status: Mapping[str, Any], now: float) -> None:
        """A container runs, or has ended, already, as its status says; what it is told counts from now."""
        self.sandbox = True
        for one in self.containers:
            state = status.get("state") or {}
            if one.name != name or "waiting" in state or not state:
                continue
            one.begun, one.attempt = True, status.get("restartCount", 0)
            one.started, one.ready = bool(status.get("started", True)), bool(status.get("ready"))
            one.started_at = now
            if "running" in state:
                one.state, one.reason = State.RUNNING, ""
                self._schedule(one, now)
                if one.plan.ready_after is None:
                    one.ready = False
            else:
                ended = state["terminated"]
                self._end(one, now, Run(0.0, ended.get("exitCode", 0), ended.get("reason", "")))

    def exit(self, name: str, attempt: int, code: int, now: float) -> bool:
        """The main program of a container has ended by itself; False if that run is over already."""
        for one in self.containers:
            if one.name == name and one.attempt == attempt and one.state is State.RUNNING:
                self._exit(one, now, Run(0.0, code))
                self._progress(now)
                return True
        return False

    def fail(self, now: float, reason: str, message: str) -> None:
        """The pod as a whole has failed: everything is killed."""
        self.failed = (reason, message)
        for one in self.containers:
            if one.state is State.RUNNING:
                self._end(one, now, Run(0.0, KILLED, "Error"))
            one.steps.clear()

    def terminate(self, now: float, grace: float) -> None:
        """The pod is being deleted: containers are asked to end, and killed when the grace period is over."""
        self.terminating = True
        for one in self.containers:
            if one.state is not State.RUNNING:
                one.steps.clear()
                continue
            self._say(one, "Normal", "Killing", f"Stopping container {one.name}")
            one.steps.clear()
            if one.plan.stop_seconds > grace:
                one.plan = _ending(one.plan, KILLED)
                one.steps[Step.EXIT] = now + grace
            else:
                one.plan = _ending(one.plan, 0)
                one.steps[Step.EXIT] = now + one.plan.stop_seconds

    def _say(self, one: Container, type_: str, reason: str, message: str) -> None:
        self.happenings.append(Happening(one.name, type_, reason, message))


def _delay(container: Mapping[str, Any], probe: str) -> float:
    """Seconds before a probe can have succeeded."""
    found = container.get(probe)
    if not found:
        return 0.0
    more = (found.get("successThreshold") or 1) - 1
    return float((found.get("initialDelaySeconds") or 0) + more * (found.get("periodSeconds") or 10))


def _ending(plan: ContainerPlan, code: int) -> ContainerPlan:
    """A plan whose next run ends with this code."""
    return ContainerPlan(stop_seconds=plan.stop_seconds, runs=(Run(0.0, code),))


_STEPS: Final = {
    Step.START: Pod._start,
    Step.STARTED: Pod._started,
    Step.READY: Pod._ready,
    Step.EXIT: Pod._exit,
    Step.FAIL_PULL: Pod._fail_pull,
    Step.WAIT: Pod._wait,
    Step.PULL_AGAIN: Pod._pull,
    Step.RESTART: Pod._restart,
}
