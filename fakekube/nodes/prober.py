"""Runs the probes of containers whose commands run (`container_lifecycle`).

The startup probe runs until it succeeds, then the others; each of them when its initialDelaySeconds have passed and then every
periodSeconds. A result counts when it has occurred as often in a row as its threshold says.

Invariant: a run of a container begins with probes that have no results.

Specified by: pkg/kubelet/prober/worker.go (doProbe), pkg/kubelet/prober/prober.go (probe).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.base.objects import Object
from fakekube.nodes.pod_state import PROBES

if TYPE_CHECKING:
    from fakekube.nodes.container_lifecycle import Commands
    from fakekube.nodes.pod_state import Container
    from fakekube.nodes.pod_workers import Addresses, PodWorkers
    from fakekube.nodes.status_manager import StatusManager


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
        kubelet: the kubelet of the pods.
        commands: the commands of their containers.
        workers: their state machines.
    """

    def __init__(self, kubelet: StatusManager, commands: Commands, workers: PodWorkers) -> None:
        self._kubelet, self._commands, self._workers = kubelet, commands, workers
        self._probes: dict[str, dict[tuple[str, str], _Worker]] = {}

    def forget(self, uid: str) -> None:
        """Removes the state of a deleted pod."""
        self._probes.pop(uid, None)

    def sync(self, pod: Object, addresses: Addresses) -> float | None:
        """Runs the probes that are due; while a pod terminates those of readiness only.

        Returns the seconds until the next one; None if there is none. Raises ApiError.
        """
        followed = self._commands.containers_with_command(pod)
        times = [
            due
            for container in self._workers.running(pod["metadata"]["uid"])
            if container.name in followed and self._commands.is_started(pod, container.name, container.attempt)
            for kind in (PROBES if "deletionTimestamp" not in pod["metadata"] else ("readinessProbe",))
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
        from fakekube.nodes.runtime.handlers import Caller, run_handler

        caller = Caller("kube-probe", self._kubelet.context.version)
        result = run_handler(running, spec, float(spec.get("timeoutSeconds") or 1), caller)
        title, where = kind.removesuffix("Probe").capitalize(), f"spec.containers{{{container.name}}}"
        if result.failure is None:
            if result.warning:
                self._kubelet.record(pod, "Warning", "ProbeWarning", f"{title} probe warning: {result.warning}", where)
            return True
        self._kubelet.record(pod, "Warning", "Unhealthy", f"{title} probe failed: {result.failure}", where)
        return False


def _threshold(spec: Mapping[str, Any], succeeded: bool) -> int:
    return int((spec.get("successThreshold") or 1) if succeeded else (spec.get("failureThreshold") or 3))
