"""Ends the clients of a check that was itself killed.

A shell waits at the end of a pipe whose other end only the check holds, and is told of each process group that the check has
started or ended. When the pipe ends, however the check has ended, the shell kills the groups that are left, and on Linux what
has left its group, too, which it knows by the folder in its environment.

Invariant: nothing is started before the first client, and a check that cannot have a watchdog runs without one.
"""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from pathlib import Path

__all__ = ["Watchdog"]

#: Reads lines "+ GROUP" and "- GROUP"; its argument is the folder of the check.
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

#: Seconds that the shell has for its end.
_PATIENCE = 10.0


class Watchdog:
    """See the module."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None

    def started(self, group: int, folder: Path) -> None:
        """Says that a process group was started; `folder` is that of the check, which is deleted in the end."""
        with self._lock:
            if self._shell is None:
                with suppress(OSError):
                    self._shell = _shell(folder)
        self._tell("+", group)

    def ended(self, group: int) -> None:
        """Says that a process group was killed."""
        self._tell("-", group)

    def _tell(self, sign: str, group: int) -> None:
        with self._lock, suppress(OSError):
            if self._shell is not None and self._shell.stdin is not None:
                self._shell.stdin.write(f"{sign} {group}\n".encode())

    def close(self) -> None:
        """Ends the shell, and with it what is left of the clients."""
        with self._lock:
            shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        shell.stdin.close()
        try:
            shell.wait(_PATIENCE)
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
