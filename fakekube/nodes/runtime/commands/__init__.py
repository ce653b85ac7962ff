"""The commands that containers have, by name; the module of a command is imported when it is first run.

They do what busybox' applets do, as far as scripts and people in a debugging session ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fakekube.nodes.runtime.program import Command

__all__ = ["APPLETS", "command"]

_Commands = Mapping[str, "Command"]


def _load_echo() -> _Commands:
    from fakekube.nodes.runtime.commands.echo import COMMANDS

    return COMMANDS


def _load_encodings() -> _Commands:
    from fakekube.nodes.runtime.commands.encodings import COMMANDS

    return COMMANDS


def _load_sort() -> _Commands:
    from fakekube.nodes.runtime.commands.sort import COMMANDS

    return COMMANDS


def _load_text() -> _Commands:
    from fakekube.nodes.runtime.commands.text import COMMANDS

    return COMMANDS


def _load_awk() -> _Commands:
    from fakekube.nodes.runtime.commands.awk import COMMANDS

    return COMMANDS


def _load_grep_sed() -> _Commands:
    from fakekube.nodes.runtime.commands.grep_sed import COMMANDS

    return COMMANDS


def _load_files() -> _Commands:
    from fakekube.nodes.runtime.commands.files import COMMANDS

    return COMMANDS


def _load_listing() -> _Commands:
    from fakekube.nodes.runtime.commands.listing import COMMANDS

    return COMMANDS


def _load_find() -> _Commands:
    from fakekube.nodes.runtime.commands.find import COMMANDS

    return COMMANDS


def _load_system() -> _Commands:
    from fakekube.nodes.runtime.commands.system import COMMANDS

    return COMMANDS


def _load_mounts() -> _Commands:
    from fakekube.nodes.runtime.commands.mounts import COMMANDS

    return COMMANDS


def _load_shells() -> _Commands:
    from fakekube.nodes.runtime.commands.shells import COMMANDS

    return COMMANDS


def _load_archive() -> _Commands:
    from fakekube.nodes.runtime.commands.archive import COMMANDS

    return COMMANDS


def _load_network() -> _Commands:
    from fakekube.nodes.runtime.commands.network import COMMANDS

    return COMMANDS


_NAMES: Final[Mapping[Callable[[], _Commands], str]] = {
    _load_echo: "echo printf",
    _load_text: "cat cut head nl paste rev seq tac tail tee tr uniq wc yes",
    _load_sort: "sort",
    _load_encodings: "base64 hd hexdump md5sum od sha1sum sha256sum sha512sum",
    _load_awk: "awk",
    _load_grep_sed: "grep egrep fgrep sed",
    _load_files: "basename chmod chown chgrp cp dirname ln mkdir mknod mktemp mv readlink realpath rm rmdir touch truncate dd",
    _load_listing: "df du ls stat",
    _load_find: "find",
    _load_system: "arch clear date env free hostname id kill logname nproc printenv ps pwd sleep stty sync time timeout top tty"
    " sysctl uname uptime usleep which whoami groups nohup xargs",
    _load_mounts: "mount umount nsenter chroot",
    _load_shells: "sh ash bash dash busybox [ [[ expr false test true",
    _load_archive: "tar gzip gunzip zcat",
    _load_network: "curl nc ping wget ifconfig ip netstat dig getent host nslookup",
}

#: Name → the function that imports its module.
APPLETS: Final[Mapping[str, Callable[[], _Commands]]] = {name: load for load, names in _NAMES.items() for name in names.split()}


def command(name: str) -> Command | None:
    """Returns the implementation of a command; None if there is none of this name."""
    load = APPLETS.get(name)
    return None if load is None else load()[name]
