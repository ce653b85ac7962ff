"""What pods are told to do: plans, made of annotations or by `cluster.pods.on(…)`.

A plan says of each container how long its image takes, how long it runs and how it ends, and when it is ready. What a plan
does not say is as by default: at once, and for ever; init containers end well at once, and so do the containers of Jobs' pods.

Annotations of a pod (`fakekube.dev/NAME`, or `fakekube.dev/NAME.CONTAINER` for one container):

| name | value |
|---|---|
| `start` | seconds before the first container starts; `never` |
| `pull` | seconds that the image takes; `fail` for one that cannot be pulled |
| `run` | seconds before the container exits; several by commas, the last for all that follow |
| `exit-code` | with which code; several by commas, as for `run` |
| `reason`, `message` | of the exit, such as OOMKilled (which exits with 137) |
| `ready` | seconds before it is ready; `never` |
| `terminate` | seconds that it takes to end when its pod is deleted |

Invariant: a plan never changes; adding to one makes another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

__all__ = ["NOTHING_TOLD", "ContainerPlan", "PlanError", "PodPlan", "Run", "seconds", "told_by_annotations"]

PREFIX: Final = "fakekube.dev/"
OOM_KILLED: Final = "OOMKilled"
OOM_CODE: Final = 137

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class PlanError(ValueError):
    """An annotation says nothing that can be done."""


@dataclass(slots=True, frozen=True)
class Run:
    """One run of a container, or several in a row."""

    seconds: float | None = None
    """None: it does not end."""
    exit_code: int = 0
    reason: str = ""
    """"" for Completed, or Error if the code is not 0."""
    message: str = ""
    times: int | None = None
    """How many runs are like this; None: all that follow."""
    probe: str = ""
    """The probe that ends it: liveness or startup."""


@dataclass(slots=True, frozen=True)
class ContainerPlan:
    """What one container does. Times are seconds."""

    pull_seconds: float = 0.0
    pull_error: str = ""
    """Why the image cannot be pulled; "" if it can."""
    pull_failures: int | None = None
    """How often that fails; None: always."""
    ready_after: float | None = 0.0
    """Counted from the start; None: never."""
    started_after: float = 0.0
    """When the startup probe succeeds."""
    runs: tuple[Run, ...] = ()
    """In order; after the last it runs for ever."""
    stop_seconds: float = 0.0
    """How long it takes to end when it is asked to."""

    def run(self, number: int) -> Run:
        """The run that comes after so many others."""
        for one in self.runs:
            if one.times is None or number < one.times:
                return one
            number -= one.times
        return Run()


@dataclass(slots=True, frozen=True)
class PodPlan:
    """What a pod does."""

    start_seconds: float | None = 0.0
    """Before its containers; None: they never start."""
    main: ContainerPlan = ContainerPlan()
    """All containers that are not named, but init containers and sidecars."""
    containers: Mapping[str, ContainerPlan] = field(default_factory=dict)
    """By name."""
    failure: tuple[float, str, str] | None = None
    """The pod as a whole fails after so many seconds, with this reason and message."""

    def changed(self, container: str | None, change: Callable[[ContainerPlan], ContainerPlan]) -> PodPlan:
        """A plan in which the containers (or the one with that name) do something else."""
        if container is None:
            return replace(self, main=change(self.main))
        return replace(self, containers={**self.containers, container: change(self.containers.get(container, ContainerPlan()))})


NOTHING_TOLD: Final = PodPlan()


def seconds(text: str) -> float:
    """A duration such as `3`, `3s`, `1m30s` or `250ms`. Raises PlanError."""
    rest, total = text.strip(), 0.0
    if not rest:
        raise PlanError(f"{text!r} is no duration")
    while rest:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        rest = rest[len(digits) :]
        unit = rest[: len(rest) - len(rest.lstrip("msh"))]
        rest = rest[len(unit) :]
        try:
            total += float(digits) * _UNITS[unit or "s"]
        except (ValueError, KeyError):
            raise PlanError(f"{text!r} is no duration") from None
    return total


def told_by_annotations(pod: Mapping[str, Any]) -> PodPlan | None:
    """The plan that the annotations of a pod make; None if they say nothing. Raises PlanError."""
    annotations = pod["metadata"].get("annotations")
    if not annotations or not any(key.startswith(PREFIX) for key in annotations):
        return None
    words: dict[str | None, dict[str, str]] = {}
    for key, value in annotations.items():
        if key.startswith(PREFIX):
            name, _, container = key.removeprefix(PREFIX).partition(".")
            if name in _WORDS or name == "start":
                words.setdefault(container or None, {})[name] = value
    if not words:
        return None
    plan = PodPlan()
    start = words.get(None, {}).pop("start", None)
    if start is not None:
        plan = replace(plan, start_seconds=None if start == "never" else seconds(start))
    for container, said in words.items():
        plan = plan.changed(container, lambda one, said=said: _container(one, said))  # type: ignore[misc]
    return plan


def _container(plan: ContainerPlan, said: Mapping[str, str]) -> ContainerPlan:
    for name, value in said.items():
        plan = _WORDS[name](plan, value)
    if {"run", "exit-code", "reason", "message"} & said.keys():
        plan = replace(plan, runs=_runs(said))
    return plan


def _runs(said: Mapping[str, str]) -> tuple[Run, ...]:
    reason = said.get("reason", "")
    durations = [seconds(one) for one in said.get("run", "0").split(",")]
    codes = _codes(said.get("exit-code", str(OOM_CODE) if reason == OOM_KILLED else "0"))
    count = max(len(durations), len(codes))
    return tuple(
        Run(
            durations[min(index, len(durations) - 1)],
            codes[min(index, len(codes) - 1)],
            reason,
            said.get("message", ""),
            1 if index < count - 1 else None,
        )
        for index in range(count)
    )


def _codes(text: str) -> list[int]:
    try:
        codes = [int(one) for one in text.split(",")]
    except ValueError:
        raise PlanError(f"{text!r} is no exit code") from None
    if any(not 0 <= code <= 255 for code in codes):
        raise PlanError(f"{text!r} is no exit code")
    return codes


def _pull(plan: ContainerPlan, value: str) -> ContainerPlan:
    if value == "fail":
        return replace(plan, pull_error=PULL_ERROR)
    return replace(plan, pull_seconds=seconds(value))


def _as_it_is(plan: ContainerPlan, value: str) -> ContainerPlan:
    return plan


PULL_ERROR: Final = "pull access denied, repository does not exist or may require authorization"

_WORDS: Final[Mapping[str, Callable[[ContainerPlan, str], ContainerPlan]]] = {
    "pull": _pull,
    "ready": lambda plan, value: replace(plan, ready_after=None if value == "never" else seconds(value)),
    "terminate": lambda plan, value: replace(plan, stop_seconds=seconds(value)),
    "run": _as_it_is,
    "exit-code": _as_it_is,
    "reason": _as_it_is,
    "message": _as_it_is,
}
