"""Plans: what the containers of a pod do, from annotations or from `cluster.pods.on(…)`.

A plan defines for each container how long its image is pulled, how long it runs, how it terminates, and when it is ready. By
default all this happens at once, and containers run for ever; init containers and the containers of Jobs' pods succeed at once.

Annotations of a pod (`fakekube.dev/NAME`, or `fakekube.dev/NAME.CONTAINER` for one container):

| name | value |
|---|---|
| `start` | seconds before the first container starts; `never`; only for the pod |
| `pull` | seconds for which the image is pulled; `fail` if that fails |
| `run` | seconds before the container exits; several with commas, the last for all further runs |
| `exit-code` | the exit code; several with commas, as for `run` |
| `reason`, `message` | of the exit, such as OOMKilled (with the exit code 137) |
| `ready` | seconds before it is ready; `never` |
| `terminate` | seconds that it takes to stop when its pod is deleted |

Invariant: a plan is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

PREFIX: Final = "fakekube.dev/"
OOM_KILLED: Final = "OOMKilled"
OOM_CODE: Final = 137
#: The reason and the exit code of a container whose program could not be started.
_START_FAILED: Final = "StartError"
_NOT_STARTED: Final = 128

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class PlanError(ValueError):
    """The value of an annotation is invalid."""


@dataclass(slots=True, frozen=True)
class Run:
    """One run of a container, or several equal ones in a row."""

    seconds: float | None = None
    """The duration; None if it does not end."""
    exit_code: int = 0
    reason: str = ""
    """The reason of the termination; "" for Completed, or Error if the exit code is not 0."""
    message: str = ""
    times: int | None = None
    """The number of equal runs; None for all further ones."""
    probe: str = ""
    """The probe that ends the run: liveness or startup."""


def failed_start(error: str) -> Run:
    """Returns the run of a container whose program could not be started."""
    return Run(0.0, _NOT_STARTED, _START_FAILED, error)


@dataclass(slots=True, frozen=True)
class ContainerPlan:
    """The plan of one container. Times are seconds."""

    pull_seconds: float = 0.0
    pull_error: str = ""
    """The error of pulling the image; "" if it succeeds."""
    pull_failures: int | None = None
    """The number of failures; None for all attempts."""
    ready_after: float | None = 0.0
    """The time from the start until the container is ready; None for never."""
    started_after: float = 0.0
    """The time from the start until the startup probe succeeds."""
    start_error: str = ""
    """The error of starting its program; "" if it starts."""
    runs: tuple[Run, ...] = ()
    """The runs in order; after the last one the container runs for ever."""
    stop_seconds: float = 0.0
    """The time that the container takes to stop."""

    def run(self, number: int) -> Run:
        """Returns the run after so many others."""
        for one in self.runs:
            if one.times is None or number < one.times:
                return one
            number -= one.times
        return Run()


@dataclass(slots=True, frozen=True)
class PodPlan:
    """The plan of a pod. Times are seconds."""

    start_seconds: float | None = 0.0
    """The time before its containers start; None if they never start."""
    main: ContainerPlan = ContainerPlan()
    """The plan of containers that are not in `containers`, except init containers and sidecars."""
    containers: Mapping[str, ContainerPlan] = field(default_factory=dict)
    """Name of a container → its plan."""
    failure: tuple[float, str, str] | None = None
    """The time after which the pod as a whole fails, with reason and message."""

    def with_change(self, container: str | None, change: Callable[[ContainerPlan], ContainerPlan]) -> PodPlan:
        """Returns a plan with a change for the main containers, or for the container with this name."""
        if container is None:
            return replace(self, main=change(self.main))
        return replace(self, containers={**self.containers, container: change(self.containers.get(container, ContainerPlan()))})


def parse_seconds(text: str) -> float:
    """Parses a duration such as `3`, `3s`, `1m30s` or `250ms`. Returns seconds. Raises PlanError."""
    rest, total = text.strip(), 0.0
    if not rest:
        raise PlanError(f"invalid duration: {text!r}")
    while rest:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        rest = rest[len(digits) :]
        unit = rest[: len(rest) - len(rest.lstrip("msh"))]
        rest = rest[len(unit) :]
        try:
            total += float(digits) * _UNITS[unit or "s"]
        except (ValueError, KeyError):
            raise PlanError(f"invalid duration: {text!r}") from None
    return total


def plan_from_annotations(pod: Mapping[str, Any]) -> PodPlan | None:
    """Returns the plan in the annotations of a pod; None if there is none. Raises PlanError."""
    annotations = pod["metadata"].get("annotations")
    if not annotations or not any(key.startswith(PREFIX) for key in annotations):
        return None
    fields: dict[str | None, dict[str, str]] = {}
    for key, value in annotations.items():
        if key.startswith(PREFIX):
            name, _, container = key.removeprefix(PREFIX).partition(".")
            if name in _FIELDS or (name == "start" and not container):
                fields.setdefault(container or None, {})[name] = value
    if not fields:
        return None
    plan = PodPlan()
    start = fields.get(None, {}).pop("start", None)
    if start is not None:
        plan = replace(plan, start_seconds=None if start == "never" else parse_seconds(start))
    for container, values in fields.items():
        plan = plan.with_change(container, lambda one, values=values: _apply_values(one, values))  # type: ignore[misc]
    return plan


def _apply_values(plan: ContainerPlan, values: Mapping[str, str]) -> ContainerPlan:
    """Returns a plan with the values of annotations, by their names. Raises PlanError."""
    for name, value in values.items():
        plan = _FIELDS[name](plan, value)
    if {"run", "exit-code", "reason", "message"} & values.keys():
        plan = replace(plan, runs=_parse_runs(values))
    return plan


def _parse_runs(values: Mapping[str, str]) -> tuple[Run, ...]:
    reason = values.get("reason", "")
    durations = [parse_seconds(one) for one in values.get("run", "0").split(",")]
    codes = _parse_exit_codes(values.get("exit-code", str(OOM_CODE) if reason == OOM_KILLED else "0"))
    count = max(len(durations), len(codes))
    return tuple(
        Run(
            durations[min(index, len(durations) - 1)],
            codes[min(index, len(codes) - 1)],
            reason,
            values.get("message", ""),
            1 if index < count - 1 else None,
        )
        for index in range(count)
    )


def _parse_exit_codes(text: str) -> list[int]:
    try:
        codes = [int(one) for one in text.split(",")]
    except ValueError:
        raise PlanError(f"invalid exit code: {text!r}") from None
    if any(not 0 <= code <= 255 for code in codes):
        raise PlanError(f"invalid exit code: {text!r}")
    return codes


def _plan_pull(plan: ContainerPlan, value: str) -> ContainerPlan:
    if value == "fail":
        return replace(plan, pull_error=PULL_ERROR)
    return replace(plan, pull_seconds=parse_seconds(value))


def _keep_plan(plan: ContainerPlan, value: str) -> ContainerPlan:
    return plan


PULL_ERROR: Final = "pull access denied, repository does not exist or may require authorization"

#: Name of an annotation → what adds its value to a plan; `_parse_runs` reads those of runs together.
_FIELDS: Final[Mapping[str, Callable[[ContainerPlan, str], ContainerPlan]]] = {
    "pull": _plan_pull,
    "ready": lambda plan, value: replace(plan, ready_after=None if value == "never" else parse_seconds(value)),
    "terminate": lambda plan, value: replace(plan, stop_seconds=parse_seconds(value)),
    "run": _keep_plan,
    "exit-code": _keep_plan,
    "reason": _keep_plan,
    "message": _keep_plan,
}
