"""What a container image has: programs, an entry point, servers of ports, files.

A container whose image is known, and whose command is a program of the image or an applet of its shell, runs that program and
ends with it. A container of another image runs for ever, or succeeds at once if it is an init container or belongs to a Job.

Invariant: an image is immutable.

Specified by: the OCI image configuration (Entrypoint, Cmd, Env, User, WorkingDir).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakekube.controllers.objects import StoredObject

if TYPE_CHECKING:
    from fakekube.net.streaming.kubelet_api import Destination
    from fakekube.nodes.runtime.behaviour import PortHandler
    from fakekube.nodes.runtime.handlers import Handler
    from fakekube.nodes.runtime.program import Command


@dataclass(slots=True, frozen=True)
class Image:
    """A container image."""

    programs: Mapping[str, Handler | Command | Callable[..., Any]] = field(default_factory=dict)
    """Name or path → program: a function of a `Context`, or a coroutine of a `Program`."""
    serves: Mapping[int, Destination | PortHandler | None] = field(default_factory=dict)
    """Port → its server: a WSGI application, a function of two pipes, or host and port of this machine."""
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    """`UID` or `UID:GID`; root if it is empty."""
    working_directory: str = ""
    files: Mapping[str, bytes | str | Callable[[], str]] = field(default_factory=dict)
    """Path → content, or a function that returns it."""
    lacks: frozenset[str] = frozenset()
    """Applets that its shell does not have."""
    shell: bool = True
    """Whether it has a shell with its applets."""
    system: str = ""
    """The name of the system in /etc/os-release."""
    daemon: bool = False
    """Whether its entry point runs for ever and needs no process: it only serves ports."""

    def program(self, name: str) -> Any:
        """Returns the program with a name or path; None if it has none."""
        return self.programs.get(name) or self.programs.get(posixpath.basename(name))

    def argv(self, container: StoredObject) -> list[str]:
        """Returns the words of the main program of a container: its command and args, or those of the image."""
        command, args = list(container.get("command") or ()), list(container.get("args") or ())
        if command:
            return command + args
        return [*self.entrypoint, *(args or self.command)]

    def runs(self, container: StoredObject, *, completes: bool = False) -> bool:
        """Reports whether the main program of a container is known, so that it decides how the container ends.

        Args:
            container: an item of a pod's spec.
            completes: whether the container would succeed at once if its program were not known.
        """
        given = container.get("command") or container.get("args")
        argv = self.argv(container)
        if not argv:
            return False
        if not given and (self.daemon or not self.program(argv[0])):
            return self.daemon and (completes or _is_observed(container))
        return self.program(argv[0]) is not None or (self.shell and self._has_applet(argv[0]))

    def _has_applet(self, name: str) -> bool:
        from fakekube.nodes.runtime.commands import APPLETS

        base = posixpath.basename(name)
        return base in APPLETS and base not in self.lacks


def _is_observed(container: StoredObject) -> bool:
    """Reports whether something asks a container that runs for ever: a probe or a hook."""
    return any(container.get(one) for one in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"))
