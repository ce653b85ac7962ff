"""The probes of containers that end with their command (`commands`).

The startup probe runs until it succeeds, then the others; each of them when its initialDelaySeconds have passed and then every
periodSeconds. A result counts when it has occurred as often in a row as its threshold says. If the shell does not have the
command of the container, its probes succeed.

Invariant: each run of a container begins with probes that have no results.

Specified by: pkg/kubelet/prober/worker.go (doProbe), pkg/kubelet/prober/prober.go (probe).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.controllers.objects import Object
from fakekube.nodes.pod_state import PROBES

if TYPE_CHECKING:
    from fakekube.nodes.commands import Commands
    from fakekube.nodes.container import Container
    from fakekube.nodes.kubelet import Kubelet
    from fakekube.nodes.pod_workers import Addresses, PodWorkers

__all__ = ["Probes"]


@dataclass(slots=True)
class _Worker:
    """A probe of one run of a container."""

    attempt: int
    due: float
    """The time of the next run of the probe."""
    last: bool | None = None
    """The last result; None before the first one."""
    count: int = 0
    """How often it occurred in a row."""
    on_hold: bool = False
    """Whether the probe does not run any more."""


class Probes:
    """The probes of all pods.

    Args:
        kubelet: The kubelet of the pods.
        commands: The commands of their containers.
        workers: Their state machines.
    """

    def __init__(self, kubelet: Kubelet, commands: Commands, workers: PodWorkers) -> None:
        self._kubelet, self._commands, self._workers = kubelet, commands, workers
        self._probes: dict[str, dict[tuple[str, str], _Worker]] = {}

    def forget(self, uid: str) -> None:
        """Removes the state of a deleted pod."""
        self._probes.pop(uid, None)

    def sync(self, pod: Object, addresses: Addresses) -> float | None:
        """Runs the probes that are due. Returns the seconds until the next one; None if there is none. Raises ApiError."""
        followed = self._commands.followed(pod)
        times = [
            due
            for container in self._workers.running(pod["metadata"]["uid"])
            if container.name in followed and self._commands.is_started(pod, container.name, container.attempt)
            for kind in PROBES
            if container.spec.get(kind) and (due := self._sync(pod, container, kind, addresses)) is not None
        ]
        return max(min(times) - self._kubelet.clock.monotonic(), 0.0) if times else None

    def _sync(self, pod: Object, container: Container, kind: str, addresses: Addresses) -> float | None:
        """Runs a probe if it is due. Returns the time of its next run; None if there is none."""
        spec, now = container.spec[kind], self._kubelet.clock.monotonic()
        probes = self._probes.setdefault(pod["metadata"]["uid"], {})
        worker = probes.get((container.name, kind))
        if worker is None or worker.attempt != container.attempt:
            first = container.started_at + (spec.get("initialDelaySeconds") or 0)
            worker = probes[container.name, kind] = _Worker(container.attempt, first)
        if worker.on_hold or (kind == "startupProbe") is container.started:
            return None
        if worker.due > now:
            return worker.due
        worker.due = now + (spec.get("periodSeconds") or 10)
        succeeded = self._run(pod, container, kind, spec)
        worker.count = worker.count + 1 if worker.last is succeeded else 1
        worker.last = succeeded
        if worker.count >= _threshold(spec, succeeded):
            worker.on_hold = kind == "startupProbe" or (kind == "livenessProbe" and not succeeded)
            self._workers.probe(pod, container, kind, succeeded, addresses)
        return None if worker.on_hold else worker.due

    def _run(self, pod: Object, container: Container, kind: str, spec: Mapping[str, Any]) -> bool:
        """Runs a probe once. Returns whether it succeeded."""
        running = self._commands.container(pod, container.name)
        if running.main.absent:
            return True
        from fakekube.nodes.runtime.probing import run_handler

        failure = run_handler(running, spec, float(spec.get("timeoutSeconds") or 1)).failure
        if failure is None:
            return True
        text = f"{kind.removesuffix('Probe').capitalize()} probe failed: {failure}"
        self._kubelet.record(pod, "Warning", "Unhealthy", text, f"spec.containers{{{container.name}}}")
        return False


def _threshold(spec: Mapping[str, Any], succeeded: bool) -> int:
    return int((spec.get("successThreshold") or 1) if succeeded else (spec.get("failureThreshold") or 3))
