"""Runs shell programs; error messages are those of the shell of busybox.

Simple commands run in the task of the shell; the commands of a pipeline and background commands run in tasks of their own, with a
fork of the shell.

Invariant: descriptors that are opened for a command are closed when it ends.

Specified by: POSIX.1-2017, Shell & Utilities, 2.8 to 2.14; busybox shell/ash.c.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from fakekube.net.pipes import Pipe
from fakekube.nodes.runtime.descriptors import Capture, Descriptor, Given, PipeReader, PipeWriter
from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.regular_expressions import glob
from fakekube.nodes.runtime.scheduling import SIGKILL, Killed, Task, breathe, checkpoint, current
from fakekube.nodes.runtime.shell.builtins import BUILTINS, SPECIAL_BUILTINS, Break, Exit, Return
from fakekube.nodes.runtime.shell.expansion import ExpansionError, ExpressionError, fields, pattern, text
from fakekube.nodes.runtime.shell.parser import ShellSyntaxError, parse
from fakekube.nodes.runtime.shell.state import ProgramNotFound, ShellState
from fakekube.nodes.runtime.shell.syntax import (
    AndOr,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Loop,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Subshell,
    process_name,
)

T = TypeVar("T")

#: The maximum depth of functions and substitutions.
_DEPTH: Final = 100


class Shell(ShellState):
    """A shell."""

    async def output(self, script: Script) -> str:
        """See `expansion.Scope`."""
        capture = Capture()
        inner = self.fork({**self.descriptors, 1: capture})
        self.status = await inner.run_to_exit(script)
        return bytes(capture.data).decode("utf-8", "surrogateescape").rstrip("\n").replace("\0", "")

    # --- Whole programs -----------------------------------------------------------------------------------------------

    async def run_text(self, source: str) -> int:
        """Runs a program to its end and returns its exit code."""
        try:
            script = parse(source)
        except ShellSyntaxError as error:
            await self.complain(f"syntax error: {error}")
            return 2
        return await self.run_to_exit(script)

    async def run_to_exit(self, script: Script) -> int:
        """Runs a script until its end or `exit`, and then its trap for EXIT; returns the exit code."""
        task = current()
        caught, ignored = task.caught, task.ignored
        try:
            await self._run_to_end(self.run(script))
            action = self.traps.pop("EXIT", None)
            if action is not None:
                await self._run_to_end(self._trap(action))
        finally:
            task.caught, task.ignored = caught, ignored
        return self.status

    async def _run_to_end(self, running: Awaitable[object]) -> None:
        """Runs a script, or a trap, until its end or `exit`."""
        try:
            await running
        except Exit as end:
            self.status = end.code
        except (Break, Return):
            pass

    async def run_trap(self, killed: Killed) -> bool:
        """See `ShellState`. What the shell waited for is over, unlike in a real shell, which waits for its end."""
        action = self.traps.get(str(killed.signal))
        if action is None or killed.signal == SIGKILL:
            return False
        await self._trap(action)
        return True

    async def _trap(self, action: str) -> None:
        """Runs the text of a trap; the status stays. Raises Exit, Break, Return."""
        before = self.status
        try:
            await self.run(parse(action))
        except ShellSyntaxError as error:
            await self.complain(f"syntax error: {error}")
        self.status = before

    async def run(self, script: Script) -> int:
        """Runs the lists of a script one after the other, and returns the last status. Raises Exit, Break, Return."""
        if self.depth > _DEPTH:
            await self.complain("too many levels of recursion")
            raise Exit(2)
        for item in script.items:
            if item.background:
                await self._start_background(item)
                self.status = 0
            else:
                self.status = await self._and_or(item)
        return self.status

    async def _check_processes(self, count: int) -> None:
        """Lets other tasks run, and ends the shell if the container cannot have so many more processes."""
        await breathe()
        if not self.program.host.processes.can_fork(count):
            await self.complain("can't fork: Resource temporarily unavailable")
            raise Exit(2)

    async def _start_background(self, item: AndOr) -> None:
        await self._check_processes(1)
        shell = self.fork({number: one.hold() for number, one in self.descriptors.items()})

        async def body() -> int:
            try:
                return await shell.run_to_exit(Script((replace(item, background=False),)))
            finally:
                _close(shell.descriptors)

        self.background.append(self._task(body(), process_name(item.first.commands if not item.rest else ())))

    def _task(self, coroutine: Any, name: str) -> Task:
        parent = current()
        task = parent.scheduler.start(coroutine, name, self.program.host.next_pid(), parent)
        self.program.host.register(task)
        return task

    async def _and_or(self, item: AndOr) -> int:
        status = await self._run_checked(self._pipeline(item.first), last=not item.rest)
        for number, (operator, pipeline) in enumerate(item.rest, 1):
            if (status == 0) is (operator == "&&"):
                self.status = status
                status = await self._run_checked(self._pipeline(pipeline), last=number == len(item.rest))
        return status

    async def _run_checked(self, running: Awaitable[tuple[int, bool]], *, last: bool) -> int:
        """Waits for a pipeline, and returns its status. With `set -e`, the failure of the last one of a list ends the shell."""
        self.checked += not last
        try:
            status, decisive = await running
        finally:
            self.checked -= not last
        if status and decisive and last and not self.checked and "e" in self.options:
            raise Exit(status)
        return status

    async def _pipeline(self, pipeline: Pipeline) -> tuple[int, bool]:
        """Runs a pipeline. Returns its status, and whether a failure ends a shell with `set -e`."""
        self.checked += pipeline.negated
        try:
            if len(pipeline.commands) == 1:
                status = await self._command(pipeline.commands[0])
            else:
                status = await self._run_connected(pipeline.commands)
        finally:
            self.checked -= pipeline.negated
        return (int(status == 0), False) if pipeline.negated else (status, True)

    async def _run_connected(self, commands: Sequence[Command]) -> int:
        """Runs the commands of a pipeline concurrently, connected by pipes; returns the status."""
        await self._check_processes(len(commands))
        tasks = []
        reader: Descriptor | None = None
        for number, command in enumerate(commands):
            descriptors = {key: one.hold() for key, one in self.descriptors.items()}
            if reader is not None:
                descriptors[0].close()
                descriptors[0] = reader
            if number < len(commands) - 1:
                pipe = Pipe()
                descriptors[1].close()
                descriptors[1], reader = PipeWriter(pipe), PipeReader(pipe)
            tasks.append(self._task(self._stage(command, self.fork(descriptors)), process_name([command])))
        statuses = [await task.join() for task in tasks]
        if "pipefail" in self.options:
            return next((status for status in reversed(statuses) if status), 0)
        return statuses[-1]

    @staticmethod
    async def _stage(command: Command, shell: Shell) -> int:
        try:
            return await shell.run_to_exit(Script((AndOr(Pipeline((command,))),)))
        finally:
            _close(shell.descriptors)

    # --- Commands -----------------------------------------------------------------------------------------------------

    async def _command(self, command: Command) -> int:
        await self._wait_for(checkpoint())
        if isinstance(command, Function):
            self.set_function(command)
            return 0
        running = self._simple(command) if isinstance(command, Simple) else self._compound(command)
        return await self._wait_for(self._run_guarded(running)) or 0

    async def _wait_for(self, running: Awaitable[T]) -> T | None:
        """Waits for something; returns None after a signal that the shell traps."""
        try:
            return await running
        except Killed as killed:
            if not await self.run_trap(killed):
                raise
            return None

    async def _run_guarded(self, running: Awaitable[int]) -> int:
        try:
            return await running
        except ExpansionError as error:
            await self.complain(str(error))
            raise Exit(2) from None
        except ExpressionError as error:
            await self.complain(f"arithmetic syntax error: {error}" if "syntax" not in str(error) else str(error))
            raise Exit(2) from None

    async def _compound(self, command: Command) -> int:
        if isinstance(command, Subshell):
            inner = self.fork()
            opened = await self._redirect(command.redirects, inner.descriptors)
            if opened is None:
                return 1
            try:
                return await inner.run_to_exit(command.body)
            finally:
                _close_all(opened)
        if not command.redirects:
            return await self._run_compound(command)
        before = dict(self.descriptors)
        opened = await self._redirect(command.redirects, self.descriptors)
        if opened is None:
            self.descriptors = before
            return 1
        try:
            return await self._run_compound(command)
        finally:
            self.descriptors = before
            _close_all(opened)

    async def _run_compound(self, command: Command) -> int:
        if isinstance(command, Group):
            return await self.run(command.body)
        if isinstance(command, If):
            return await self._run_if(command)
        if isinstance(command, Loop):
            return await self._run_loop(command)
        if isinstance(command, For):
            return await self._run_for(command)
        assert isinstance(command, Case)
        return await self._run_case(command)

    async def _condition(self, script: Script) -> bool:
        self.checked += 1
        try:
            return await self.run(script) == 0
        finally:
            self.checked -= 1

    async def _run_if(self, command: If) -> int:
        for condition, body in command.branches:
            if await self._condition(condition):
                return await self.run(body)
        return 0 if command.otherwise is None else await self.run(command.otherwise)

    async def _run_loop(self, command: Loop) -> int:
        async def goes_on() -> bool:
            return (await self._condition(command.condition)) is not command.until

        return await self._repeat(command.body, goes_on)

    async def _run_for(self, command: For) -> int:
        values = iter(list(self.arguments) if command.words is None else await fields(command.words, self))

        async def goes_on() -> bool:
            for value in values:
                self.set_variable(command.name, value)
                return True
            return False

        return await self._repeat(command.body, goes_on)

    async def _repeat(self, body: Script, goes_on: Callable[[], Awaitable[bool]]) -> int:
        """Runs the body of a loop while `goes_on` returns True, or until a break; returns the exit status of the loop."""
        status = 0
        self.loops += 1
        try:
            while await goes_on():
                try:
                    status = await self.run(body)
                except Break as end:
                    if end.leaves():
                        return 0
        finally:
            self.loops -= 1
        return status

    async def _run_case(self, command: Case) -> int:
        value = await text(command.word, self)
        for wanted, body in command.branches:
            for one in wanted:
                if glob(await pattern(one, self)).fullmatch(value):
                    return await self.run(body)
        return 0

    async def _simple(self, command: Simple) -> int:
        self_status = self.status
        argv = await fields(command.words, self)
        assigned = [(name, await text(word, self)) for name, word in command.assignments]
        if not argv:
            substituted = self.status if self.status != self_status else 0
            return await self._assign(assigned, command, substituted)
        if "x" in self.options:
            await self.descriptors[2].write(f"+ {' '.join(argv)}\n".encode("utf-8", "surrogateescape"))
        descriptors = dict(self.descriptors)
        opened = await self._redirect(command.redirects, descriptors)
        if opened is None:
            return 1
        if argv[0] == "exec" and len(argv) == 1:  # the redirections remain
            self.descriptors = descriptors
            return 0
        try:
            return await self.call(argv, assigned, descriptors)
        finally:
            _close_all(opened)

    async def _assign(self, assigned: list[tuple[str, str]], command: Simple, status: int) -> int:
        self._set_variables(assigned)
        opened = await self._redirect(command.redirects, dict(self.descriptors))
        if opened is None:
            return 1
        _close_all(opened)
        return status

    async def call(
        self,
        argv: Sequence[str],
        assigned: Sequence[tuple[str, str]],
        descriptors: dict[int, Descriptor],
        *,
        functions: bool = True,
    ) -> int:
        """Runs a function, a builtin or a program. Raises Exit, Break, Return."""
        name = argv[0]
        for variable, _ in assigned:
            self.require_writable(variable)
        if functions and name in self.functions:
            return await self._function(argv, assigned, descriptors)
        program = replace(
            self.program,
            name=name,
            args=argv[1:],
            env={**self.environment(), **dict(assigned)},
            cwd=self.cwd,
            umask=self.umask,
            descriptors=descriptors,
            failed=False,
        )
        if name in BUILTINS:
            return await self._run_builtin(program, assigned)
        try:
            return await self.program.run_other(argv, program)
        except ProgramNotFound as missing:
            await self.complain(str(missing), descriptors)
            return missing.code

    async def _run_builtin(self, program: Program, assigned: Sequence[tuple[str, str]]) -> int:
        """Runs a built-in command; only a special one keeps the values of variables that are assigned before it."""
        replaced = self._set_variables(assigned)
        try:
            return await BUILTINS[program.name](program, self)
        finally:
            if program.name not in SPECIAL_BUILTINS:
                self._restore_variables(replaced)

    def _set_variables(self, assigned: Sequence[tuple[str, str]]) -> dict[str, str | None]:
        """Assigns variables. Returns their previous values, for `_restore_variables`."""
        replaced = {name: self.variables.get(name) for name, _ in assigned}
        for name, value in assigned:
            self.set_variable(name, value)
        return replaced

    def _restore_variables(self, values: Mapping[str, str | None]) -> None:
        """Gives variables these values; None: they are unset."""
        for name, value in values.items():
            if value is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = value

    async def _function(
        self, argv: Sequence[str], assigned: Sequence[tuple[str, str]], descriptors: dict[int, Descriptor]
    ) -> int:
        replaced = self._set_variables(assigned)
        arguments, before = self.arguments, self.descriptors
        self.arguments, self.descriptors = list(argv[1:]), descriptors
        self.depth += 1
        hidden: dict[str, str | None] = {}
        self.locals.append(hidden)
        try:
            return await self.run(Script((AndOr(Pipeline((self.functions[argv[0]],))),)))
        except Return as end:
            return end.code
        finally:
            self.depth -= 1
            self.locals.pop()
            self.arguments, self.descriptors = arguments, before
            self._restore_variables({**hidden, **replaced})

    # --- Redirections -------------------------------------------------------------------------------------------------

    async def _redirect(self, redirects: Sequence[Redirect], descriptors: dict[int, Descriptor]) -> list[Descriptor] | None:
        """Applies redirections to descriptors. Returns the opened ones; None, after an error message, if one cannot be opened."""
        opened: list[Descriptor] = []
        for one in redirects:
            target = await text(one.target, self)
            try:
                made = self._open(one, target, descriptors)
            except OSError as error:
                await self.complain(_refusal(one, target, error), descriptors)
                _close_all(opened)
                return None
            if made is None:
                descriptors.pop(one.descriptor, None)
                continue
            opened.append(made)
            descriptors[one.descriptor] = made
        return opened

    def _open(self, one: Redirect, target: str, descriptors: dict[int, Descriptor]) -> Descriptor | None:
        if one.operator == "<<":
            return Given(target.encode("utf-8", "surrogateescape"))
        if one.operator in (">&", "<&"):
            if target == "-":
                return None
            if not target.isdigit() or int(target) not in descriptors:
                raise OSError(errno.EBADF, "Bad file descriptor")
            return descriptors[int(target)].hold()
        program = replace(self.program, cwd=self.cwd, umask=self.umask, descriptors=descriptors)
        if one.operator == "<":
            return program.open(target)
        return program.open(target, write=True, append=one.operator == ">>", read=one.operator == "<>")


def _refusal(one: Redirect, target: str, error: OSError) -> str:
    if error.errno == errno.EBADF:
        return f"{target}: bad file descriptor"
    if one.operator.startswith("<"):
        return f"can't open {target}: {'no such file' if error.errno == errno.ENOENT else error.strerror}"
    return f"can't create {target}: {'nonexistent directory' if error.errno == errno.ENOENT else error.strerror}"


def _close(descriptors: dict[int, Descriptor]) -> None:
    _close_all(descriptors.values())


def _close_all(descriptors: Iterable[Descriptor]) -> None:
    for one in descriptors:
        one.close()
