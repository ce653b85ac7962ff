"""The execution environment of a shell: parameters, variables, functions, options, traps, descriptors; the search for commands.

Invariant: changes of a fork do not affect the shell that it was forked from.

Specified by: POSIX.1-2017, Shell & Utilities, 2.5 (Parameters and Variables), 2.9.1.1 (Command Search and Execution), 2.12 (Shell
Execution Environment); execve(2).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from fakekube.nodes.runtime.descriptors import Descriptor
from fakekube.nodes.runtime.filesystem import File, FileSystem, Node
from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import Killed, Task, check_memory
from fakekube.nodes.runtime.shell.expansion import BLANKS, ExpansionError
from fakekube.nodes.runtime.shell.syntax import Command, Function, Script


class ProgramNotFound(Exception):
    """There is no such program, or it cannot be executed."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def find_program(name: str, files: FileSystem, path: str, cwd: str) -> str | None:
    """Returns the path of an executable program; None if there is none. Raises ProgramNotFound for a path without permission."""
    candidates = [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in path.split(":")]
    for candidate in candidates:
        try:
            node: Node | None = files.place(candidate, cwd).node
        except OSError:
            continue
        if isinstance(node, File) and node.mode & 0o111:
            return candidate
        if node is not None and "/" in name:
            raise ProgramNotFound(f"{name}: Permission denied", 126)
    return None


def shebang(content: bytes) -> list[str] | None:
    """Returns the interpreter in the first line of a script, and its argument; None if there is none."""
    found = re.match(rb"#!\s*(\S+)[ \t]*([^\n]*)", content[:256])
    if found is None:
        return None
    return [part.decode("utf-8", "surrogateescape") for part in (found[1], found[2].strip()) if part]


#: The length of a value from which the memory of all variables is computed; shorter ones, and functions, count as much.
_LONG: Final = 1024


@dataclass(slots=True)
class ShellState(ABC):
    """The execution environment of a shell; the interpreter runs programs in it."""

    program: Program
    pid: int
    """That of the shell that was started, also in its subshells."""
    name: str = "sh"
    """`$0`, which is also the beginning of error messages."""
    arguments: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    read_only: set[str] = field(default_factory=set)
    functions: dict[str, Command] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)
    traps: dict[str, str] = field(default_factory=dict)
    descriptors: dict[int, Descriptor] = field(default_factory=dict)
    cwd: str = "/"
    umask: int = 0o022
    status: int = 0
    background: list[Task] = field(default_factory=list)
    depth: int = 0
    loops: int = 0
    """The number of enclosing loops, those around the call of a function included."""
    locals: list[dict[str, str | None]] = field(default_factory=list)
    """For each running function its local variables, with their previous values."""
    checked: int = 0
    """The number of enclosing commands whose status is tested; in them, `set -e` does not end the shell."""

    @classmethod
    def for_program(cls, program: Program, name: str = "sh", arguments: Sequence[str] = ()) -> Self:
        """Returns a shell with the environment and the descriptors of a program."""
        made = cls(program, program.task.pid, name, list(arguments), dict(program.env), set(program.env))
        made.descriptors = dict(program.descriptors)
        made.cwd, made.umask = program.cwd, program.umask
        made.variables.setdefault("IFS", BLANKS)
        made.variables["PWD"] = program.cwd
        return made

    # --- expansion.Scope ----------------------------------------------------------------------------------------------

    @property
    def files(self) -> FileSystem:
        """See `expansion.Scope`."""
        return self.program.files

    def parameter(self, name: str) -> str | None:
        """See `expansion.Scope`."""
        if name.isdigit():
            number = int(name)
            return self.name if number == 0 else self.arguments[number - 1] if number <= len(self.arguments) else None
        special = {
            "?": lambda: str(self.status),
            "#": lambda: str(len(self.arguments)),
            "$": lambda: str(self.pid),
            "!": lambda: str(self.background[-1].pid) if self.background else "",
            "-": lambda: "".join(sorted(self.options)),
            "@": lambda: " ".join(self.arguments),
            "*": lambda: " ".join(self.arguments),
        }.get(name)
        if special is not None:
            return special()
        if name == "RANDOM" and name not in self.variables:
            import random

            return str(random.randrange(32768))
        return self.variables.get(name)

    def positional(self) -> list[str]:
        """See `expansion.Scope`."""
        return self.arguments

    def fork(self, descriptors: dict[int, Descriptor] | None = None) -> Self:
        """Returns a copy for a subshell; by default with the same descriptors."""
        return replace(
            self,
            arguments=list(self.arguments),
            variables=dict(self.variables),
            exported=set(self.exported),
            read_only=set(self.read_only),
            locals=[dict(one) for one in self.locals],
            functions=dict(self.functions),
            options=set(self.options),
            traps={},
            descriptors=dict(self.descriptors) if descriptors is None else descriptors,
            background=list(self.background),
            depth=self.depth + 1,
        )

    def environment(self) -> dict[str, str]:
        """Returns the exported variables."""
        return {name: self.variables[name] for name in self.exported if name in self.variables}

    async def complain(self, message: str, descriptors: dict[int, Descriptor] | None = None) -> None:
        """Writes an error message to stderr."""
        target = (descriptors or self.descriptors).get(2)
        if target is not None:
            await target.write(f"{self.name}: {message}\n".encode("utf-8", "surrogateescape"))

    def set_variable(self, name: str, value: str) -> None:
        """Assigns a value to a variable. Raises ExpansionError if it is read-only."""
        self.require_writable(name)
        check_memory(len(value) + _LONG * len(self.variables))
        if len(value) > _LONG:
            check_memory(len(value) + sum(map(len, self.variables.values())))
        self.variables[name] = value

    def require_writable(self, name: str) -> None:
        """Raises ExpansionError if a variable is read-only."""
        if name in self.read_only:
            raise ExpansionError(f"{name}: is read only")

    def set_function(self, function: Function) -> None:
        """Defines a function."""
        check_memory(_LONG * len(self.functions))
        self.functions[function.name] = function.body

    def find(self, name: str) -> str | None:
        """Returns the path of a program; None if there is none."""
        return find_program(name, self.files, self.variables.get("PATH", ""), self.cwd)

    @abstractmethod
    async def run_trap(self, killed: Killed) -> bool:
        """Runs the trap of a signal. Returns False if there is none. Raises Exit, Break, Return."""

    @abstractmethod
    async def run(self, script: Script) -> int:
        """Runs the lists of a script one after the other, and returns the last status. Raises Exit, Break, Return."""

    @abstractmethod
    async def call(
        self,
        argv: Sequence[str],
        assigned: Sequence[tuple[str, str]],
        descriptors: dict[int, Descriptor],
        *,
        functions: bool = True,
    ) -> int:
        """Runs a simple command: a function, a built-in command or a program."""
