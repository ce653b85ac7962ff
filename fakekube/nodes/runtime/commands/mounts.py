"""Commands about mounts, mount namespaces and roots: mount, umount, nsenter, chroot.

Only a privileged container may mount, and enter the namespace of its node, which it finds at `proc/1/ns/mnt` of a hostPath volume
with the root of the node: programs then have the files of the node.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from fakekube.nodes.runtime.filesystem import Directory, FileSystem, MountNamespace
from fakekube.nodes.runtime.program import Program, Usage, options
from fakekube.nodes.runtime.resources import ROOT
from fakekube.nodes.runtime.shell.state import ProgramNotFound


async def _mount(program: Program) -> int:
    flags, operands = options(program, "t:o:r", ["bind"])
    if not operands:
        return await _list_mounts(program, flags.get("t", ""))
    if len(operands) != 2:
        raise Usage("bad usage")
    if not _is_privileged(program):
        return await program.complain("permission denied (are you root?)")
    source, target = operands
    choices = flags.get("o", "").split(",")
    if "bind" in flags or "bind" in choices:
        mounted = program.files.node(source, program.cwd)
    elif flags.get("t") == "tmpfs":
        mounted = Directory(0o1777, mtime=program.files.now(), kind="tmpfs")
    else:
        return await program.complain(f"mounting {source} on {target} failed: No such device")
    place = program.files.place(target, program.cwd)
    if place.node is None or isinstance(place.node, Directory) is not isinstance(mounted, Directory):
        reason = errno.ENOENT if place.node is None else errno.ENOTDIR
        return await program.complain(f"mounting {source} on {target} failed: {os.strerror(reason)}")
    program.files.mount(place.path, mounted, read_only="r" in flags or "ro" in choices)
    return 0


async def _list_mounts(program: Program, wanted: str) -> int:
    for path, mount in program.files.mounts.items():
        device, kind = {"/": ("overlay", "overlay"), ROOT: ("cgroup", "cgroup2")}.get(path, ("tmpfs", "tmpfs"))
        if wanted in ("", kind):
            await program.write(f"{device} on {path} type {kind} ({'ro' if mount.read_only else 'rw'},relatime)\n")
    return 0


async def _umount(program: Program) -> int:
    _, operands = options(program, "lf")
    if not operands:
        raise Usage("bad usage")
    code = 0
    for target in operands:
        if problem := _unmount(program, target):
            code = await program.complain(f"can't unmount {target}: {os.strerror(problem)}")
    return code


def _unmount(program: Program, target: str) -> int:
    """Removes a mount. Returns 0, or the number of an error."""
    place = program.files.place(target, program.cwd)
    if not _is_privileged(program):
        return errno.EPERM
    if place.node is None:
        return errno.ENOENT
    if place.path == "/":
        return errno.EBUSY
    return errno.EINVAL if program.files.mounts.pop(place.path, None) is None else 0


async def _nsenter(program: Program) -> int:
    flags, command = options(program, "m:", ["mount="], mixed=False, aliases={"m": "mount"})
    entered: FileSystem | None = None
    if "mount" in flags:
        try:
            namespace = program.files.node(flags["mount"], program.cwd)
        except OSError as error:
            return await program.complain(f"cannot open {flags['mount']}: {error.strerror}")
        entered = namespace.files() if isinstance(namespace, MountNamespace) else None
        if entered is None:
            return await program.complain("reassociate to namespace 'ns/mnt' failed: Invalid argument")
        if not _is_privileged(program):
            return await program.complain("reassociate to namespace 'ns/mnt' failed: Operation not permitted")
    return await program.run(command or ["/bin/sh"], root=entered or program.root, cwd="/")


async def _chroot(program: Program) -> int:
    if not program.args:
        raise Usage("bad usage")
    target, *command = program.args
    try:
        root = program.files.change_root(target, program.cwd)
    except OSError as error:
        return await program.complain(f"can't change root directory to '{target}': {error.strerror}")
    if program.host.uid != 0:
        return await program.complain(f"can't change root directory to '{target}': {os.strerror(errno.EPERM)}")
    words = command or [program.env.get("SHELL") or "/bin/sh", "-i"]
    try:
        return await program.run(words, root=root, cwd="/")
    except ProgramNotFound as missing:
        return await program.complain(f"can't execute '{words[0]}': {os.strerror(errno.ENOENT)}", missing.code)


def _is_privileged(program: Program) -> bool:
    context = program.host.spec.get("securityContext") or {}
    return program.host.uid == 0 and bool(context.get("privileged"))


COMMANDS: Final = {"mount": _mount, "umount": _umount, "nsenter": _nsenter, "chroot": _chroot}
