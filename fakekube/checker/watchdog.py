"""Kills the clients of a check if the check itself is killed.

A shell reads from a pipe whose other end only the check holds. The check writes each process group that it starts or kills into
the pipe. When the pipe is closed, for any reason, the shell kills the remaining process groups. On Linux it also kills processes
that have left their group; it finds them by the check's folder in their environment.

Invariant: the shell starts together with the first client. If it cannot start, the check runs without it.
"""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: The script reads lines "+ GROUP" and "- GROUP"; its argument is the folder of the check.
_SCRIPT = """
trap '' INT TERM HUP
groups=
while read -r sign group; do
  case $sign in
    +) groups="$groups $group" ;;
    -) left=
       for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
       groups=$left ;;
  esac
done
for one in $groups; do kill -s KILL -- "-$one"; done
for file in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
  process=${file#/proc/}
  kill -s KILL "${process%/environ}"
done
rm -rf -- "$1"
"""

#: How many seconds `close` waits for the shell to end.
_TIMEOUT = 10.0


class Watchdog:
    """The shell that kills the clients if the check dies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None

    def started(self, group: int, folder: Path) -> None:
        """Registers a started process group; `folder` is the folder of the check, which the shell deletes at the end."""
        with self._lock:
            if self._shell is None:
                with suppress(OSError):
                    self._shell = _shell(folder)
        self._tell("+", group)

    def ended(self, group: int) -> None:
        """Removes a killed process group."""
        self._tell("-", group)

    def _tell(self, sign: str, group: int) -> None:
        with self._lock, suppress(OSError):
            if self._shell is not None and self._shell.stdin is not None:
                self._shell.stdin.write(f"{sign} {group}\n".encode())

    def close(self) -> None:
        """Closes the pipe, so that the shell kills the remaining clients and ends."""
        with self._lock:
            shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        shell.stdin.close()
        try:
            shell.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            shell.kill()
            shell.wait()


def _shell(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, "fakekube-check", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        start_new_session=True,
    )
