"""The behaviour of containers that rules of a test define: log lines, handlers for exec and attach, ports, resource usage.

Invariant: a behaviour is immutable; changing a rule replaces it. If several match a container, later ones take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.net.streaming.kubelet_api import Destination
from fakekube.nodes.runtime.handlers import Handler

if TYPE_CHECKING:
    from fakekube.net.pipes import Pipe

__all__ = ["NOTHING", "Behaviour", "LogPlan", "PortHandler", "Usage", "merged"]

PortHandler = Callable[["Pipe", "Pipe"], None]
"""Serves one connection: reads the first pipe and writes the second one, in a thread of its own."""


@dataclass(slots=True, frozen=True)
class LogPlan:
    """The log lines of a container."""

    line: str | Callable[[int], str] = ""
    """A line, or a function that returns the line for a number, from 0 on."""
    every: float = 0.0
    """Seconds between two lines; 0 for a single line at the start."""
    times: int | None = None
    """The number of lines; None for no limit."""
    lines: tuple[str, ...] = ()
    """Lines that are logged at the start."""
    file: Path | None = None
    """A file of this machine, whose lines are logged at the start."""
    stream: str = "stdout"


@dataclass(slots=True, frozen=True)
class Usage:
    """The resource usage of a container: quantities, or functions of the pod that return one."""

    cpu: Any = None
    memory: Any = None


@dataclass(slots=True, frozen=True)
class Behaviour:
    """The behaviour of a container; None and empty mappings are the default behaviour."""

    logs: LogPlan | None = None
    exec: Handler | None = None
    """The handler of every exec."""
    commands: Mapping[str, Handler] = field(default_factory=dict)
    """The handlers of single programs, by name, also within scripts."""
    attach: Handler | None = None
    ports: Mapping[int, Destination | PortHandler | None] = field(default_factory=dict)
    """The servers by port; None refuses connections."""
    usage: Usage | None = None
    host_programs: bool = False
    """Whether programs that the shell does not have are run on this machine."""
    follows_command: bool | None = None
    """Whether the container terminates with its command, and its exit code; None if it is interactive (`stdin: true`)."""


NOTHING = Behaviour()


def merged(found: Iterable[Behaviour]) -> Behaviour:
    """Merges behaviours; later ones take precedence."""
    made: dict[str, Any] = {}
    for one in found:
        for each in fields(Behaviour):
            value = getattr(one, each.name)
            if isinstance(value, Mapping):
                if value:
                    made[each.name] = {**made.get(each.name, {}), **value}
            elif value is not None and value is not False:
                made[each.name] = value
    return Behaviour(**made)
