"""The files of a container's cgroup (v2) that contain its resources: cpu.max, cpu.weight, memory.max.

Invariant: the content is that of the resources which the status of the container contains, so that it follows a resize.

Specified by: cgroups(7); pkg/kubelet/cm/helpers_linux.go (MilliCPUToQuota, MilliCPUToShares),
github.com/opencontainers/cgroups/utils.go (ConvertCPUSharesToCgroupV2Value).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.apimachinery.schema.quantity import parse
from fakekube.nodes.runtime.filesystem import Directory, File, FileSystem

__all__ = ["ROOT", "mount_cgroup"]

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
        files: The files of the container.
        resources: Returns its present requests and limits.
    """
    made = {
        name: File(0o444, mtime=files.now(), source=lambda value=value: f"{value(resources())}\n".encode())  # type: ignore[misc]
        for name, value in _FILES.items()
    }
    files.mount(ROOT, Directory(0o555, mtime=files.now(), own={**made}), read_only=True)


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
