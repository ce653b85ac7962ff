"""What the kernel of a node knows of a container: its processes, and /proc/self/status.

Specified by: pid_namespaces(7), proc_pid_status(5), capabilities(7); containerd's defaults (oci/spec.go);
pkg/kubelet/kuberuntime/security_context.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from zlib import crc32

from fakekube.base.objects import StoredObject

if TYPE_CHECKING:
    from fakekube.nodes.runtime.filesystem import FileSystem
    from fakekube.nodes.runtime.scheduling import Task

#: All capabilities, in the order of their bits.
_CAPABILITIES: Final = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
]
#: The capabilities of a container whose securityContext names none.
_DEFAULT_CAPABILITIES: Final = frozenset(
    [
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "SETGID",
        "SETUID",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "NET_RAW",
        "SYS_CHROOT",
        "MKNOD",
        "AUDIT_WRITE",
        "SETFCAP",
    ]
)


#: The maximum number of processes in a namespace; a kubelet sets such a limit with podPidsLimit.
MAX_PROCESSES: Final = 1024


class ProcessNamespace:
    """The processes that see each other: those of a container, or of several that share a PID namespace.

    Args:
        has_pause: whether process 1 is that of the pod's sandbox, as with `shareProcessNamespace`.
    """

    def __init__(self, *, has_pause: bool = False) -> None:
        self.has_pause = has_pause
        self.tasks: dict[int, Task] = {}
        """The processes by id; ended ones are removed when there are `MAX_PROCESSES`."""
        self._last_pid = 1

    def next_pid(self) -> int:
        """Returns the id of a new process; 1 is left for the main program."""
        self._last_pid += 1
        return self._last_pid

    def register(self, task: Task) -> None:
        """Adds a process."""
        self._forget_ended(1)
        self.tasks[task.pid] = task

    def can_fork(self, count: int) -> bool:
        """Reports whether there may be so many more processes."""
        self._forget_ended(count)
        return len(self.tasks) + count <= MAX_PROCESSES

    def _forget_ended(self, count: int) -> None:
        """Removes the ended processes if so many more would be too many."""
        if len(self.tasks) + count > MAX_PROCESSES:
            self.tasks = {pid: one for pid, one in self.tasks.items() if one.exit_code is None}


#: The number of a descriptor of the main program → the name of the device that writes there.
MAIN_OUTPUT: Final = {"1": "stdout of 1", "2": "stderr of 1"}


def mount_proc(
    files: FileSystem,
    pod: Callable[[], StoredObject],
    container: StoredObject,
    ids: Callable[[], tuple[int, int, Sequence[int]]],
    oom_score: Callable[[], int],
) -> None:
    """Mounts /proc/self of a container, which is read-only, and of its main program its output and its OOM score.

    Args:
        files: the files of the container.
        pod: returns the pod.
        container: the container's item in the pod's spec.
        ids: returns user, group, and all groups of its processes.
        oom_score: returns the adjustment of the scores of its processes when memory is short.
    """
    # Files are imported by the first container that reads or writes one.
    from fakekube.nodes.runtime.filesystem import Device, Directory, File

    def status() -> bytes:
        return _print_status(pod(), container, *ids()).encode()

    def score() -> bytes:
        return f"{oom_score()}\n".encode()

    id_map = _print_id_map(pod()).encode()
    own = {"status": File(0o444, mtime=files.now(), source=status)}
    own |= {name: File(0o444, mtime=files.now(), source=lambda: id_map) for name in ("uid_map", "gid_map")}
    files.mount("/proc/self", Directory(0o555, mtime=files.now(), own={**own}), read_only=True)
    files.mount("/proc/1/oom_score_adj", File(0o644, mtime=files.now(), source=score), read_only=True)
    output = {number: Device(0o666, mtime=files.now(), name=name) for number, name in MAIN_OUTPUT.items()}
    files.mount("/proc/1/fd", Directory(0o555, mtime=files.now(), own={**output}))


#: The number of users in the user namespace of a pod, and of all.
_USERS: Final = 65536
_ALL_USERS: Final = 2**32 - 1


def _print_id_map(pod: StoredObject) -> str:
    """Returns the line of uid_map and gid_map: a pod with `hostUsers: false` has a range of the host's users of its own."""
    if pod["spec"].get("hostUsers", True):
        first, count = 0, _ALL_USERS
    else:
        first, count = (1 + crc32(pod["metadata"]["uid"].encode()) % (_ALL_USERS // _USERS - 1)) * _USERS, _USERS
    return f"{0:10} {first:10} {count:10}\n"


def _print_status(pod: StoredObject, container: StoredObject, uid: int, gid: int, groups: Sequence[int]) -> str:
    """Returns /proc/self/status, as `cat` reads it."""
    context = container.get("securityContext") or {}
    profile = context.get("seccompProfile") or (pod["spec"].get("securityContext") or {}).get("seccompProfile") or {}
    filtered = profile.get("type", "Unconfined") != "Unconfined" and not context.get("privileged")
    kept = _capabilities_of(context)
    bounding = sum(1 << bit for bit, name in enumerate(_CAPABILITIES) if name in kept)
    permitted = bounding if uid == 0 else 0
    rows = {
        "Name": "cat",
        "State": "R (running)",
        "Uid": "\t".join([str(uid)] * 4),
        "Gid": "\t".join([str(gid)] * 4),
        "Groups": " ".join(map(str, groups)),
        "CapInh": f"{0:016x}",
        "CapPrm": f"{permitted:016x}",
        "CapEff": f"{permitted:016x}",
        "CapBnd": f"{bounding:016x}",
        "CapAmb": f"{0:016x}",
        "NoNewPrivs": int(context.get("allowPrivilegeEscalation") is False),
        "Seccomp": 2 if filtered else 0,
        "Seccomp_filters": int(filtered),
    }
    return "".join(f"{name}:\t{value}\n" for name, value in rows.items())


def _capabilities_of(context: StoredObject) -> frozenset[str]:
    """Returns the capabilities of a container: those that it has by default, without `drop`, with `add`."""
    every = frozenset(_CAPABILITIES)
    if context.get("privileged"):
        return every
    asked = context.get("capabilities") or {}
    added, dropped = ({one.upper().removeprefix("CAP_") for one in asked.get(name) or ()} for name in ("add", "drop"))
    kept = every if "ALL" in added else _DEFAULT_CAPABILITIES if "ALL" not in dropped else frozenset()
    return (kept - dropped) | (added & every)
