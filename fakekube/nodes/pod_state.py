"""The containers of one pod with a plan, as a kubelet runs them: a state machine driven by time.

`Container` is the state of one container, `PodState` that of all. Init containers run one after the other, then sidecars and the
main containers run together. Terminated containers are restarted according to the restart policy: at once the first time, then
after 10, 20, 40 … 300 seconds. Pulling an image is retried with the same back-off. When all main containers have terminated for
good, sidecars are stopped.

Nothing here reads a clock: `advance(t)` does the first transition that is due, if it is due at `t` or before. Times are seconds
of one clock.

Invariant: the states at a time do not depend on the steps in which time passes.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, containerChanged, doBackOff),
pkg/kubelet/kuberuntime/kuberuntime_container.go, pkg/kubelet/images/image_manager.go, pkg/kubelet/container/helpers.go
(ShouldContainerBeRestarted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from fakekube.nodes.container_events import (
    ContainerEvent,
    created_event,
    failed_event,
    image_events,
    pulling_event,
    started_event,
    stopping_event,
)
from fakekube.nodes.plans import ContainerPlan, PodPlan, Run, failed_start

if TYPE_CHECKING:
    from fakekube.nodes.images.image import Image


class Kind(Enum):
    """The type of a container, by its list in the pod spec."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class State(Enum):
    """The state in a container status."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


class Step(Enum):
    """A transition of a container. Of several at the same time the one with the lowest value is done first."""

    START = 0
    STARTED = 1
    READY = 2
    EXIT = 3
    FAIL_PULL = 4
    BACK_OFF = 5
    PULL_AGAIN = 6
    RESTART = 7


@dataclass(slots=True, frozen=True)
class Termination:
    """The end of a run."""

    exit_code: int
    reason: str
    message: str
    started: float | None
    """None if its program could not be started."""
    finished: float
    attempt: int


@dataclass(slots=True)
class Container:
    """One container. Times are seconds of one clock."""

    spec: Mapping[str, Any]
    kind: Kind
    plan: ContainerPlan
    policy: str
    """The restart policy of the pod."""
    state: State = State.WAITING
    reason: str = ""
    message: str = ""
    attempt: int = 0
    """The number of restarts."""
    started_at: float = 0.0
    ended: Termination | None = None
    """The end of the present run."""
    last: Termination | None = None
    """The end of the run before (lastState)."""
    ready: bool = False
    started: bool = False
    begun: bool = False
    """Whether its image is or was pulled: the containers before it let it start."""
    is_new: bool = False
    """Whether the present run has started, and its program has not."""
    pull_failures: int = 0
    back_off: float = 0.0
    """The seconds before the next attempt if the present one fails, too; 0 for at once."""
    steps: dict[Step, float] = field(default_factory=dict)
    """The transitions to come, with their times."""

    @property
    def name(self) -> str:
        """The name of the container."""
        name: str = self.spec["name"]
        return name

    @property
    def finished_well(self) -> bool:
        """Whether it has terminated with exit code 0."""
        return self.state is State.TERMINATED and self.ended is not None and self.ended.exit_code == 0

    @property
    def is_initialized(self) -> bool:
        """Whether the containers after it may start: it has succeeded, or is a sidecar that has started once."""
        return self.finished_well if self.kind is Kind.INIT else self.started or self.attempt > 0

    @property
    def restarts(self) -> bool:
        """Whether it is restarted after its termination."""
        return self.ended is not None and should_restart(self.spec, self.policy, self.kind, self.ended.exit_code)

    @property
    def is_over(self) -> bool:
        """Whether it has terminated and is not restarted."""
        return self.state is State.TERMINATED and not self.restarts


def _matches_exit(rule: Mapping[str, Any], code: int) -> bool:
    """Reports whether a rule of a container's restartPolicyRules is about an exit code."""
    codes = rule.get("exitCodes") or {}
    return (code in (codes.get("values") or ())) is (codes.get("operator") == "In")


def restarts_all(spec: Mapping[str, Any], code: int) -> bool:
    """Reports whether all containers of a pod are restarted when this one has terminated with this exit code."""
    rules = spec.get("restartPolicyRules") or ()
    return next((rule.get("action") == "RestartAllContainers" for rule in rules if _matches_exit(rule, code)), False)


def should_restart(spec: Mapping[str, Any], policy: str, kind: Kind, code: int) -> bool:
    """Reports whether a container that has terminated with this exit code is restarted."""
    for rule in spec.get("restartPolicyRules") or ():
        if rule.get("action") == "Restart" and _matches_exit(rule, code):
            return True
    own = spec.get("restartPolicy") or policy
    if own == "Always" and kind is Kind.INIT:
        own = "OnFailure"  # an init container that has succeeded is not run again
    return own == "Always" or (own == "OnFailure" and code != 0)


#: Seconds: the first back-off, and the longest one.
BACK_OFF: Final = 10.0
MAX_BACK_OFF: Final = 300.0
#: Seconds after which a pod or a container that could not be started is tried again.
RETRY: Final = 5.0
#: The fields of a container with probes, in the order in which they run.
PROBES: Final = ("startupProbe", "livenessProbe", "readinessProbe")
#: A run of at least so many seconds resets the back-off.
LONG_RUN: Final = 600.0

#: The exit code of a program that was killed.
KILLED: Final = 137
CRASH_LOOP: Final = "CrashLoopBackOff"
CONFIG_ERROR: Final = "CreateContainerConfigError"
CREATING: Final = "ContainerCreating"
INITIALIZING: Final = "PodInitializing"
PULL_FAILED: Final = "ErrImagePull"
PULL_BACK_OFF: Final = "ImagePullBackOff"
RUN_FAILED: Final = "RunContainerError"
#: The reasons of containers that wait for their next run.
_CRASHED: Final = frozenset({CRASH_LOOP, RUN_FAILED})

#: The message about a container that is stopped, and started with another image.
DEFINITION_CHANGED: Final = "Container {} definition changed, will be restarted"

#: Transitions before which the status with the previous state is written.
_WRITTEN_BEFORE: Final = frozenset({Step.BACK_OFF, Step.PULL_AGAIN, Step.RESTART})


def containers_by_name(spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the containers of a pod's spec that a `PodState` has, by their names."""
    return {one["name"]: one for field in ("initContainers", "containers") for one in spec.get(field) or ()}


def _no_obstacle(*_: object) -> str:
    return ""


def _no_image(_name: str) -> None:
    return None


@dataclass(slots=True)
class PodState:
    """The containers of a pod on a node.

    Args:
        spec: the spec of the pod.
        plan: the plan of the pod.
        since: the time when the pod was assigned to the node.
        completes: containers without a plan succeed at once, as those of a Job.
        followed: the names of containers that terminate with their command, and not at once.
    """

    spec: Mapping[str, Any]
    plan: PodPlan
    since: float
    completes: bool = False
    followed: frozenset[str] = frozenset()
    creation_error: Callable[[Mapping[str, Any]], str] = _no_obstacle
    """Returns why a container with this spec cannot be created; "" if it can."""
    mount_error: Callable[[], str] = _no_obstacle
    """Returns why the volumes cannot be mounted; "" if they can."""
    image_of: Callable[[str], Image | None] = _no_image
    """Returns a known image."""
    minor: int = 0
    """The minor of the kubelet, e.g. 37."""
    containers: list[Container] = field(default_factory=list)
    events: list[ContainerEvent] = field(default_factory=list)
    sandbox: bool = False
    """Whether the volumes are mounted, and the pod has its network."""
    failed: tuple[str, str] | None = None
    """Reason and message if the pod as a whole has failed."""
    terminating: bool = False
    mounted_at: float | None = None
    """The time at which volumes that could not be mounted are tried again."""

    def __post_init__(self) -> None:
        policy = self.spec.get("restartPolicy") or "Always"
        for one in self.spec.get("initContainers") or ():
            kind = Kind.SIDECAR if one.get("restartPolicy") == "Always" else Kind.INIT
            self.containers.append(Container(one, kind, self._plan_of(one["name"], kind), policy, reason=INITIALIZING))
        creating = INITIALIZING if self.containers else CREATING
        for one in self.spec["containers"]:
            self.containers.append(Container(one, Kind.MAIN, self._plan_of(one["name"], Kind.MAIN), policy, reason=creating))

    def _plan_of(self, name: str, kind: Kind) -> ContainerPlan:
        plan = self.plan.containers.get(name)
        if plan is None:
            plan = self.plan.main if kind is Kind.MAIN else ContainerPlan()
        ends = name not in self.followed and (kind is Kind.INIT or (kind is Kind.MAIN and self.completes))
        return replace(plan, runs=(Run(0.0),)) if ends and not plan.runs else plan

    # --- State --------------------------------------------------------------------------------------------------------

    def of_kind(self, *kinds: Kind) -> Iterator[Container]:
        """Returns the containers of these kinds, in order."""
        return (one for one in self.containers if one.kind in kinds)

    @property
    def is_initialized(self) -> bool:
        """Whether all init containers have succeeded, and all sidecars have started."""
        return all(one.is_initialized for one in self.of_kind(Kind.INIT, Kind.SIDECAR))

    @property
    def phase(self) -> str:
        """The phase of the pod (getPhase)."""
        if self.failed is not None or any(one.is_over and not one.finished_well for one in self.of_kind(Kind.INIT)):
            return "Failed"
        mains = list(self.of_kind(Kind.MAIN))
        if all(one.state is State.TERMINATED if self.terminating else one.is_over for one in mains):
            return "Succeeded" if all(one.finished_well for one in mains) else "Failed"
        if not self.is_initialized or any(one.state is State.WAITING and one.last is None for one in mains):
            return "Pending"
        return "Running"

    @property
    def is_done(self) -> bool:
        """Whether no container is running."""
        return not any(one.state is State.RUNNING for one in self.containers)

    @property
    def next_due(self) -> float | None:
        """The time of the next transition; None if there is none."""
        if self.failed is not None or (self.terminating and self.is_done):
            return None
        times = [time for one in self.containers for time in one.steps.values()]
        if not self.sandbox and not self.terminating and self.plan.start_seconds is not None:
            times.append(max(self.since + self.plan.start_seconds, self.mounted_at or 0.0))
        if self.plan.failure is not None and self.phase not in ("Failed", "Succeeded"):
            times.append(self.since + self.plan.failure[0])
        return min(times, default=None)

    # --- Transitions --------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> bool:
        """Does the first transition that is due. Returns False if none is due by now."""
        due = self.next_due
        if due is None or due > now:
            return False
        if self.plan.failure is not None and self.since + self.plan.failure[0] <= due and self.failed is None:
            self.fail(due, *self.plan.failure[1:])
            return True
        if not self.sandbox:
            if problem := self.mount_error():
                self.events.append(ContainerEvent("", "Warning", "FailedMount", problem))
                self.mounted_at = now + RETRY  # not `due`: what is missing now was looked for now
                return True
            self.sandbox = True
            self._progress(due)
        written = self._fire(due, written_before=True)
        while not written and self._fire(due, written_before=False):
            pass
        return True

    def _fire(self, due: float, *, written_before: bool) -> bool:
        """Does the first step that is due. Returns whether there was one.

        Args:
            due: the time.
            written_before: whether only steps in `_WRITTEN_BEFORE` are done, or only the others.
        """
        ready = [
            (step.value, index, step)
            for index, one in enumerate(self.containers)
            for step, time in one.steps.items()
            if time <= due and (step in _WRITTEN_BEFORE) is written_before
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
        """Starts the containers that can start, and stops sidecars when the main containers are over."""
        if self.terminating or self.failed is not None:
            return
        if self.phase in ("Succeeded", "Failed"):
            for one in self.of_kind(Kind.SIDECAR):
                if one.state is State.RUNNING:
                    self._terminate_container(one, now, Run(0.0))
                one.steps.clear()
            return
        for one in self.of_kind(Kind.INIT, Kind.SIDECAR):
            if not one.begun:
                self._begin(one, now)
                return
            if not one.is_initialized:
                return
        for one in self.of_kind(Kind.MAIN):
            if not one.begun:
                self._begin(one, now)

    def _begin(self, one: Container, now: float) -> None:
        one.begun = True
        self._pull(one, now)

    def _pull(self, one: Container, now: float) -> None:
        """Begins to pull the image."""
        plan = one.plan
        fails = bool(plan.pull_error) and (plan.pull_failures is None or one.pull_failures < plan.pull_failures)
        if fails or plan.pull_seconds or one.pull_failures:
            self.events.append(pulling_event(one.spec))
        one.steps[Step.FAIL_PULL if fails else Step.START] = now + plan.pull_seconds

    def _fail_pull(self, one: Container, now: float) -> None:
        image = one.spec.get("image", "")
        one.pull_failures += 1
        error = f'failed to pull and unpack image "{image}": {one.plan.pull_error}'
        one.reason, one.message = PULL_FAILED, error
        self._record(one, "Warning", "Failed", f'Failed to pull image "{image}": {error}')
        self._record(one, "Warning", "Failed", "Error: ErrImagePull")
        one.back_off = min(one.back_off * 2, MAX_BACK_OFF) if one.back_off else BACK_OFF
        one.steps[Step.BACK_OFF] = now
        one.steps[Step.PULL_AGAIN] = now + one.back_off

    def _enter_back_off(self, one: Container, now: float) -> None:
        """Lets a container wait for its next pull, or for its next run."""
        image = one.spec.get("image", "")
        if one.reason == PULL_FAILED:
            message = f'Back-off pulling image "{image}"'
            one.reason, one.message = PULL_BACK_OFF, f"{message}: ErrImagePull: {one.message}"
            self._record(one, "Normal", "BackOff", message)
            self._record(one, "Warning", "Failed", "Error: ImagePullBackOff")
            return
        one.last, one.ended = one.ended or one.last, None
        one.state, one.reason = State.WAITING, CRASH_LOOP
        delay = int(one.steps[Step.RESTART] - (one.last.finished if one.last else now))
        minutes, rest = divmod(delay, 60)
        text = f"{minutes}m{rest}s" if minutes else f"{rest}s"
        one.message = f"back-off {text} restarting failed container={one.name} pod=$POD"
        self._record(one, "Warning", "BackOff", f"Back-off restarting failed container {one.name} in pod $POD")

    def _restart(self, one: Container, now: float) -> None:
        if one.state is State.TERMINATED:
            one.last, one.ended = one.ended, None
        one.attempt += 1
        self._start(one, now)

    def _start(self, one: Container, now: float) -> None:
        """Creates and starts a container; tries again later if something keeps it from that."""
        is_pulled = one.attempt == 0 and one.reason != CONFIG_ERROR and (one.plan.pull_seconds or one.pull_failures)
        self.events.extend(image_events(one.spec, self.minor, one.plan.pull_seconds if is_pulled else None))
        if problem := self.creation_error(one.spec):
            self.events.append(failed_event(one.spec, problem))
            one.state, one.reason, one.message = State.WAITING, CONFIG_ERROR, problem
            one.steps[Step.START] = now + RETRY
            return
        self.events.append(created_event(one.spec, self.minor))
        if one.attempt == 0:
            one.back_off = 0.0
        if one.plan.start_error:
            self._fail_start(one, now)
            return
        self.events.append(started_event(one.spec, self.minor))
        one.state, one.reason, one.message = State.RUNNING, "", ""
        one.started_at, one.is_new = now, True
        self._schedule(one, now)

    def _fail_start(self, one: Container, now: float) -> None:
        """Ends a run whose program cannot be started; the container waits if it is started again."""
        error = one.plan.start_error
        self.events.append(failed_event(one.spec, error))
        one.started_at = now
        self._exit(one, now, failed_start(error))
        if one.ended is None:
            return
        one.ended = replace(one.ended, started=None)
        if one.restarts:
            one.last, one.ended = one.ended, None
            one.state, one.reason, one.message = State.WAITING, RUN_FAILED, error

    def _schedule(self, one: Container, now: float) -> None:
        """Sets the steps of a run that starts now. For containers that run their command, probes determine the rest."""
        one.steps.clear()
        probed = [kind for kind in PROBES if one.name in self.followed and one.spec.get(kind)]
        started = max(one.plan.started_after, _seconds_to_succeed(one.spec, "startupProbe"))
        if "startupProbe" not in probed:
            one.steps[Step.STARTED] = now + started
        if (
            one.plan.ready_after is not None
            and one.kind is not Kind.INIT
            and not {"startupProbe", "readinessProbe"} & set(probed)
        ):
            one.steps[Step.READY] = now + max(one.plan.ready_after, started, _seconds_to_succeed(one.spec, "readinessProbe"))
        run = one.plan.run(one.attempt)
        if run.seconds is not None:
            one.steps[Step.EXIT] = now + run.seconds

    def _set_started(self, one: Container, now: float) -> None:
        one.started = True

    def _set_ready(self, one: Container, now: float) -> None:
        one.ready = True

    def _exit(self, one: Container, now: float, run: Run | None = None) -> None:
        """Ends the present run, by default as planned, and schedules the next one if the container is restarted."""
        run = run or one.plan.run(one.attempt)
        if run.probe:
            self._record(one, "Warning", "Unhealthy", f"{run.probe.capitalize()} probe failed: ")
            self._record(one, "Normal", "Killing", f"Container {one.name} failed {run.probe} probe, will be restarted")
        self._terminate_container(one, now, run)
        if restarts_all(one.spec, run.exit_code) and not self.terminating:
            self._restart_all(now)
        if not one.restarts or self.terminating:
            return
        delay = one.back_off if now - one.started_at < LONG_RUN else 0.0
        one.back_off = min(delay * 2, MAX_BACK_OFF) if delay else BACK_OFF
        one.steps[Step.RESTART] = now + delay
        if delay:
            one.steps[Step.BACK_OFF] = now

    def _restart_all(self, now: float) -> None:
        """Stops all containers, and lets them start again, the init containers first."""
        for one in self.containers:
            if one.state is State.RUNNING:
                self.events.append(stopping_event(one.name))
                self._terminate_container(one, now, Run(0.0, self._exit_code_of(one)))
            self._reset(one, INITIALIZING)
            one.begun, one.back_off = False, 0.0

    @staticmethod
    def _reset(one: Container, reason: str) -> None:
        """Lets a container that does not run wait for its next attempt."""
        if one.state is State.TERMINATED or one.reason in _CRASHED:
            one.attempt += 1
        one.last, one.ended = one.ended or one.last, None
        one.state, one.reason, one.message = State.WAITING, reason, ""
        one.steps.clear()

    @staticmethod
    def _terminate_container(one: Container, now: float, run: Run) -> None:
        one.steps.clear()
        reason = run.reason or ("Error" if run.exit_code else "Completed")
        one.state, one.reason, one.message = State.TERMINATED, "", ""
        one.ended = Termination(run.exit_code, reason, run.message, one.started_at, now, one.attempt)
        one.ready = one.kind is Kind.INIT and run.exit_code == 0
        one.started = False

    # --- Changes from outside -----------------------------------------------------------------------------------------

    def replan(self, plan: PodPlan) -> None:
        """Sets another plan. For present runs its readiness and end apply, from their start."""
        self.plan = plan
        for one in self.containers:
            one.plan = self._plan_of(one.name, one.kind)
            if one.state is State.RUNNING and not self.terminating:
                self._schedule(one, one.started_at)
                if one.plan.ready_after is None:
                    one.ready = False

    def retry(self, now: float) -> None:
        """Tries to start what could not be started before; called when the pod has changed."""
        if self.mounted_at is not None:
            self.mounted_at = now
        for one in self.containers:
            if one.reason == CONFIG_ERROR and Step.START in one.steps:
                one.steps[Step.START] = now

    def has_other_images(self, spec: Mapping[str, Any]) -> bool:
        """Reports whether a changed spec of the pod has other images."""
        specs = containers_by_name(spec)
        return any(one.spec.get("image") != specs[one.name].get("image") for one in self.containers)

    def change_images(self, spec: Mapping[str, Any], plan: PodPlan, followed: frozenset[str], now: float) -> None:
        """Applies the images of a changed pod: their containers start again, whatever the restart policy, without back-off.

        Args:
            spec: the spec of the pod.
            plan, followed: its plan and programs, as the attributes.
            now: the time.
        """
        self.spec, self.plan, self.followed = spec, plan, followed
        specs = containers_by_name(spec)
        for one in self.containers:
            runs_on = one.state is State.RUNNING and one.kind is Kind.INIT
            if one.spec.get("image") == specs[one.name].get("image") or one.is_over or runs_on:
                continue
            one.spec, one.plan, one.pull_failures = specs[one.name], self._plan_of(one.name, one.kind), 0
            if one.begun:
                self._start_anew(one, now)

    def _start_anew(self, one: Container, now: float) -> None:
        """Starts a container whose definition has changed; one that runs is stopped before."""
        has_crashed = one.state is State.TERMINATED or one.reason in _CRASHED
        if one.state is State.RUNNING:
            message = "Init container {} definition changed" if one.kind is Kind.SIDECAR else DEFINITION_CHANGED
            self._record(one, "Normal", "Killing", message.format(one.name))
            self._terminate_container(one, now, Run(0.0, self._exit_code_of(one)))
        self._reset(one, CREATING)
        one.back_off = BACK_OFF if has_crashed else 0.0
        self._pull(one, now)

    def adopt(self, name: str, status: Mapping[str, Any], now: float) -> None:
        """Takes over the state of a container from its status; its plan applies from now."""
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
                self._terminate_container(one, now, Run(0.0, ended.get("exitCode", 0), ended.get("reason", "")))

    def exit(self, name: str, attempt: int, run: Run, now: float) -> bool:
        """Ends a run whose main program has exited. Returns False if that run is over already."""
        for one in self.containers:
            if one.name == name and one.attempt == attempt and one.state is State.RUNNING:
                self._exit(one, now, run)
                self._progress(now)
                return True
        return False

    def probe(self, name: str, attempt: int, kind: str, succeeded: bool, now: float) -> bool:
        """Applies the result of a probe (a field of the container). Returns False if it changes nothing."""
        one = next(one for one in self.containers if one.name == name)
        if one.attempt != attempt or one.state is not State.RUNNING:
            return False
        if kind != "readinessProbe" and not succeeded:
            text = kind.removesuffix("Probe")
            self._record(one, "Normal", "Killing", f"Container {name} failed {text} probe, will be restarted")
            self._exit(one, now, Run(0.0, KILLED))
            self._progress(now)
            return True
        before = one.started, one.ready
        if kind == "startupProbe":
            one.started = True
            one.ready = not one.spec.get("readinessProbe")
            self._progress(now)
        elif kind == "readinessProbe":
            one.ready = succeeded
        return before != (one.started, one.ready)

    def fail(self, now: float, reason: str, message: str) -> None:
        """Fails the pod as a whole, and kills all containers."""
        self.failed = (reason, message)
        for one in self.containers:
            if one.state is State.RUNNING:
                self.events.append(stopping_event(one.name))
                self._terminate_container(one, now, Run(0.0, KILLED, "Error"))
            one.steps.clear()

    def terminate(self, now: float, grace: float) -> None:
        """Stops the containers of a deleted pod; those that take longer than the grace period are killed."""
        self.terminating = True
        for one in self.containers:
            if one.state is not State.RUNNING:
                one.steps.clear()
                continue
            self.events.append(stopping_event(one.name))
            one.steps.clear()
            if one.plan.stop_seconds > grace:
                one.plan = _plan_to_exit(one.plan, KILLED)
                one.steps[Step.EXIT] = now + grace
            else:
                one.plan = _plan_to_exit(one.plan, self._exit_code_of(one))
                one.steps[Step.EXIT] = now + one.plan.stop_seconds

    def _exit_code_of(self, one: Container) -> int:
        """Returns the exit code of a container that is stopped: as process 1 a program without a handler ignores SIGTERM, and is
        killed.
        """
        image = self.image_of(one.spec.get("image", ""))
        return KILLED if one.name in self.followed and not (image is not None and image.daemon) else 0

    def _record(self, one: Container, type_: str, reason: str, message: str) -> None:
        self.events.append(ContainerEvent(one.name, type_, reason, message))


def _seconds_to_succeed(container: Mapping[str, Any], probe: str) -> float:
    """Returns the seconds after the start of a container within which a probe cannot have succeeded."""
    found = container.get(probe)
    if not found:
        return 0.0
    more = (found.get("successThreshold") or 1) - 1
    return float((found.get("initialDelaySeconds") or 0) + more * (found.get("periodSeconds") or 10))


def _plan_to_exit(plan: ContainerPlan, code: int) -> ContainerPlan:
    """Returns a plan whose next run ends at once with this exit code."""
    return ContainerPlan(stop_seconds=plan.stop_seconds, runs=(Run(0.0, code),))


_STEPS: Final = {
    Step.START: PodState._start,
    Step.STARTED: PodState._set_started,
    Step.READY: PodState._set_ready,
    Step.EXIT: PodState._exit,
    Step.FAIL_PULL: PodState._fail_pull,
    Step.BACK_OFF: PodState._enter_back_off,
    Step.PULL_AGAIN: PodState._pull,
    Step.RESTART: PodState._restart,
}
