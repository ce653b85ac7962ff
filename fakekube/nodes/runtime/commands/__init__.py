"""The commands that containers have, by name; the module of a command is imported when it is first run.

They do what busybox' applets do, as far as scripts and people in a debugging session ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from fakekube.nodes.runtime.program import Command

__all__ = ["APPLETS", "command"]

_MODULES: Final[Mapping[str, str]] = {
    "text": "cat cut echo head nl printf rev seq sort tac tail tee tr uniq wc yes"
    " base64 md5sum sha1sum sha256sum sha512sum hexdump od",
    "awk": "awk",
    "grep_sed": "grep egrep fgrep sed",
    "files": "basename chmod chown chgrp cp dirname find ln mkdir mktemp mv readlink realpath rm rmdir touch truncate dd"
    " ls stat du df",
    "system": "arch clear date env free hostname id kill logname nproc printenv ps pwd sleep stty sync time timeout top tty"
    " sysctl uname uptime usleep which whoami groups nohup xargs",
    "mounts": "mount umount nsenter",
    "shells": "sh ash bash dash busybox [ [[ expr false test true",
    "archive": "tar gzip gunzip zcat",
    "network": "curl nc ping wget ifconfig ip netstat dig getent host nslookup",
}

#: Name → module.
APPLETS: Final[Mapping[str, str]] = {name: module for module, names in _MODULES.items() for name in names.split()}


def command(name: str) -> Command | None:
    """Returns the implementation of a command; None if there is none of this name."""
    found = APPLETS.get(name)
    if found is None:
        return None
    return cast("Command", import_module(f"{__name__}.{found}").COMMANDS[name])
