"""The resources of containers and pods: their usage, and the files of their cgroups.

Usage is from rules of tests, annotations, or defaults: `cluster.pods.on(…).uses(cpu=…, memory=…)` takes precedence over kwok's
annotations `kwok.x-k8s.io/usage-cpu` and `kwok.x-k8s.io/usage-memory` of the pod, which apply to each of its containers. What the
programs of known images consume is added (resource-consumer).

Invariant: cpu.max, cpu.weight and memory.max are those of the resources which the status of the container contains, so that they
follow a resize. Those of a pod are in the cgroups of its node, in the folders of systemd's driver.

Specified by: kwok's preset usage-from-annotation; cgroups(7); pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod,
MilliCPUToQuota, MilliCPUToShares), pkg/kubelet/cm/cgroup_manager_linux.go (ToSystemd),
github.com/opencontainers/cgroups/utils.go (ConvertCPUSharesToCgroupV2Value).
"""

from __future__ import annotations

import math
import posixpath
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.core.pods.resources import with_status_resources
from fakekube.base.objects import StoredObject
from fakekube.nodes.pod_resources import actuated_resources, cgroup_resources

if TYPE_CHECKING:
    from fakekube.base.clock import Clock
    from fakekube.nodes.runtime.behaviour import Behaviour
    from fakekube.nodes.runtime.filesystem import Directory, FileSystem, Node


Used = dict[str, int]
"""cpu in millicores, memory in bytes."""


class Behaviours(Protocol):
    """Has the behaviour that tests have set for containers."""

    def behaviour_of(self, pod: StoredObject, container: StoredObject) -> Behaviour:
        """Returns the behaviour of a container."""

    def consumption_of(self, pod: StoredObject, container: StoredObject, resource: str) -> float:
        """Returns what the programs of a container use of a resource in addition: millicores of cpu, or bytes of memory."""


class Consumption:
    """What programs consume for some time, in addition to the usage of their container.

    Args:
        clock: the clock of the cluster.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._parts: dict[tuple[float, str], float] = {}
        """Until when a resource is used → the amount; what ends within a tenth of a second is one part."""

    def add(self, resource: str, amount: float, seconds: float) -> None:
        """Consumes an amount of a resource, in millicores or bytes, for so many seconds; from any thread."""
        until = math.ceil((self._clock.monotonic() + seconds) * 10) / 10
        with self._lock:
            if (until, resource) not in self._parts:
                self._forget_past()
            self._parts[until, resource] = self._parts.get((until, resource), 0.0) + amount

    def amount(self, resource: str) -> float:
        """Returns what is consumed of a resource at present."""
        with self._lock:
            self._forget_past()
            return sum(amount for (_, name), amount in self._parts.items() if name == resource)

    def _forget_past(self) -> None:
        now = self._clock.monotonic()
        self._parts = {one: amount for one, amount in self._parts.items() if one[0] > now}


_ANNOTATIONS: Final = {"cpu": "kwok.x-k8s.io/usage-cpu", "memory": "kwok.x-k8s.io/usage-memory"}
_DEFAULTS: Final = {"cpu": "1m", "memory": "1Mi"}


def container_usage(behaviours: Behaviours, pod: StoredObject, container: StoredObject) -> Used:
    """Returns the current usage of a container."""
    rule = behaviours.behaviour_of(pod, container).usage
    annotations = pod["metadata"].get("annotations") or {}
    made: Used = {}
    for resource, annotation in _ANNOTATIONS.items():
        value = None if rule is None else getattr(rule, resource)
        value = value(pod) if callable(value) else value
        usage = _amount(resource, annotations.get(annotation) if value is None else value)
        made[resource] = usage + int(behaviours.consumption_of(pod, container, resource))
        limit = (container.get("resources") or {}).get("limits", {}).get("cpu") if resource == "cpu" else None
        if limit is not None:  # a container is slowed down at its limit of cpu; what a test says it uses stays
            made[resource] = max(usage, min(made[resource], _amount(resource, limit)))
    return made


def _amount(resource: str, value: Any) -> int:
    try:
        quantity = parse(str(_DEFAULTS[resource] if value is None else value))
    except ValueError:
        quantity = parse(_DEFAULTS[resource])
    return max(quantity.milli_value() if resource == "cpu" else quantity.value(), 0)


def running_containers(pod: StoredObject) -> Iterable[StoredObject]:
    """Yields the running containers of a pod: items of its spec."""
    status = pod.get("status") or {}
    running = {
        one["name"]
        for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for one in status.get(kind) or ()
        if (one.get("state") or {}).get("running")
    }
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        yield from (one for one in pod["spec"].get(kind) or () if one["name"] in running)


Resources = Mapping[str, Mapping[str, Any]]

ROOT: Final = "/sys/fs/cgroup"

#: Microseconds.
_PERIOD: Final = 100_000
_MIN_QUOTA: Final = 1000
_MIN_SHARES: Final = 2
_MAX_SHARES: Final = 262_144


def mount_cgroup(files: FileSystem, resources: Callable[[], Resources]) -> None:
    """Mounts the cgroup of a container, which is read-only.

    Args:
        files: the files of the container.
        resources: returns its present requests and limits.
    """
    files.mount(ROOT, _cgroup(resources, files.now()), read_only=True)


def _cgroup(resources: Callable[[], Resources], now: float) -> Directory:
    """Returns the folder of a cgroup with these resources."""
    from fakekube.nodes.runtime.filesystem import Directory, File  # the first cluster imports this module, and needs no files

    made = {
        name: File(0o444, mtime=now, source=lambda value=value: f"{value(resources())}\n".encode())  # type: ignore[misc]
        for name, value in _FILES.items()
    }
    return Directory(0o555, mtime=now, own={**made})


def add_node_cgroups(files: FileSystem, pods: Callable[[], Iterable[StoredObject]]) -> None:
    """Adds the cgroups of a node to its files.

    Args:
        files: the files of the node.
        pods: returns the pods that run on it.
    """
    from fakekube.nodes.runtime.filesystem import Directory

    def of_class(name: str) -> dict[str, Node]:
        """Returns the folders of the pods of a QoS class."""
        found = [pod for pod in pods() if (pod.get("status") or {}).get("qosClass") == name]
        slices = f"kubepods-{name.lower()}" if name != "Guaranteed" else "kubepods"
        return {
            f"{slices}-pod{pod['metadata']['uid'].replace('-', '_')}.slice": _cgroup(partial(pod_cgroup, pod), files.now())
            for pod in found
        }

    def folder(source: Callable[[], dict[str, Node]]) -> Directory:
        return Directory(mode=0o555, mtime=files.now(), source=source)

    classes = {f"kubepods-{name.lower()}.slice": folder(partial(of_class, name)) for name in ("Burstable", "BestEffort")}
    pods_folder = folder(lambda: {**classes, **of_class("Guaranteed")})
    files.make_directories(posixpath.dirname(ROOT))
    files.add(ROOT, Directory(0o555, mtime=files.now(), own={"kubepods.slice": pods_folder}, kind="cgroup2"))


def pod_cgroup(pod: StoredObject) -> Resources:
    """Returns the resources of the cgroup of a pod."""
    return cgroup_resources({**with_status_resources(pod)["spec"], "resources": actuated_resources(pod)})


def _milli_cpu(resources: Resources, side: str) -> int:
    return parse(str((resources.get(side) or {}).get("cpu") or 0)).milli_value()


def _cpu_max(resources: Resources) -> str:
    milli = _milli_cpu(resources, "limits")
    return f"{max(milli * _PERIOD // 1000, _MIN_QUOTA) if milli else 'max'} {_PERIOD}"


def _cpu_weight(resources: Resources) -> int:
    shares = (_milli_cpu(resources, "requests") or _milli_cpu(resources, "limits")) * 1024 // 1000
    if shares <= _MIN_SHARES:
        return 1
    log = math.log2(min(shares, _MAX_SHARES))
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34))


def _memory_max(resources: Resources) -> int | str:
    return parse(str((resources.get("limits") or {}).get("memory") or 0)).value() or "max"


_FILES: Final[Mapping[str, Callable[[Resources], int | str]]] = {
    "cpu.max": _cpu_max,
    "cpu.weight": _cpu_weight,
    "memory.max": _memory_max,
}
