"""What a test says that containers do: log lines, answers to exec and attach, ports, what they use.

Invariant: a behaviour never changes; what is said later makes another one. Of several that match, the last one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.kubelet_api import Destination
from fakekube.runtime.handlers import Handler

if TYPE_CHECKING:
    from fakekube.pipes import Pipe

__all__ = ["NOTHING", "Behaviour", "LogPlan", "PortHandler", "Usage", "merged"]

PortHandler = Callable[["Pipe", "Pipe"], None]
"""Serves one connection: reads the first pipe and writes the second one, in a thread of its own."""


@dataclass(slots=True, frozen=True)
class LogPlan:
    """What a container logs by itself."""

    line: str | Callable[[int], str] = ""
    """A line, or a function that makes the line with this number, from 0 on."""
    every: float = 0.0
    """Seconds between two lines; 0 for one line, at the start."""
    times: int | None = None
    """How many lines there are; None: no end."""
    lines: tuple[str, ...] = ()
    """Lines that are there at the start."""
    file: Path | None = None
    """A file of this machine, whose lines are there at the start."""
    stream: str = "stdout"


@dataclass(slots=True, frozen=True)
class Usage:
    """What a container uses: a quantity, or a function of the pod that returns one."""

    cpu: Any = None
    memory: Any = None


@dataclass(slots=True, frozen=True)
class Behaviour:
    """What is said of a container; None and empty mappings say nothing."""

    logs: LogPlan | None = None
    exec: Handler | None = None
    """Answers every exec."""
    commands: Mapping[str, Handler] = field(default_factory=dict)
    """Answer for single programs, by name, also within scripts."""
    attach: Handler | None = None
    ports: Mapping[int, Destination | PortHandler | None] = field(default_factory=dict)
    """By port number; None: connections are refused."""
    usage: Usage | None = None
    host_programs: bool = False
    """Programs that the container does not have are run on this machine."""
    follows_command: bool | None = None
    """The container ends when its command does, with its exit code."""


NOTHING = Behaviour()


def merged(found: Iterable[Behaviour]) -> Behaviour:
    """Returns what several behaviours say together; later ones count more."""
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
