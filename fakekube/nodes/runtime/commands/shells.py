"""`sh` and its other names: scripts, commands with -c, and interactive sessions.

Specified by: POSIX.1-2017, Shell & Utilities (sh).
"""

from __future__ import annotations

from typing import Final

from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import SIGINT, Task
from fakekube.nodes.runtime.shell.builtins import Exit
from fakekube.nodes.runtime.shell.interpreter import Shell
from fakekube.nodes.runtime.shell.parser import IncompleteError, ShellSyntaxError, parse

__all__ = ["COMMANDS"]


async def _sh(program: Program) -> int:
    args = list(program.args)
    options: set[str] = set()
    source: str | None = None
    while args and args[0][:1] in ("-", "+") and len(args[0]) > 1:
        arg = args.pop(0)
        if arg == "--":
            break
        if arg.startswith("--"):
            continue
        names = set(arg[1:])
        if "o" in names and args:
            names = (names - {"o"}) | {args.pop(0)}
        options |= names if arg[0] == "-" else set()
        if "c" in names:
            if not args:
                return await program.complain("-c requires an argument", 2)
            source = args.pop(0)
            break
    name = program.argv0
    shell = Shell.of(program, args[0] if args and source is not None else name, args[1:])
    shell.options = options & {"e", "u", "x", "pipefail"}
    if source is None and args and "s" not in options:
        shell.name = args[0]
        try:
            source = program.files.read(args[0], program.cwd).decode("utf-8", "surrogateescape")
        except OSError as error:
            return await program.complain(f"can't open '{args[0]}': {error.strerror}", 2)
    elif source is not None and not args:
        shell.name = name
    if source is not None:
        return await shell.run_text(source)
    if program.stdin.is_terminal or "i" in options:
        return await _interactive(shell, program)
    return await _from_stdin(shell, program)


async def _from_stdin(shell: Shell, program: Program) -> int:
    """Runs commands from stdin, line by line."""
    text = ""
    while line := await program.stdin.readline():
        text += line.decode("utf-8", "surrogateescape")
        try:
            script = parse(text)
        except IncompleteError:
            continue
        except ShellSyntaxError as error:
            await shell.complain(f"syntax error: {error}")
            return 2
        text = ""
        try:
            await shell.run(script)
        except Exit as end:
            shell.status = end.code
            break
    if text:
        return await shell.run_text(text)
    action = shell.traps.pop("EXIT", None)
    return shell.status if action is None else await shell.run_text(action)


async def _interactive(shell: Shell, program: Program) -> int:
    """Writes prompts and runs lines; an interrupt ends the line, not the shell."""
    set_foreground = getattr(program.stdin, "set_foreground", lambda _task: None)
    text = ""
    while True:
        await program.stdout.write((prompt(shell, program) if not text else "> ").encode())
        line = (await program.stdin.readline()).decode("utf-8", "surrogateescape")
        if not line:  # Ctrl-D
            if program.stdin.is_terminal:
                await program.stdout.write(b"exit\n" if program.name.endswith("bash") else b"\n")
            return shell.status
        if line == "\0":  # Ctrl-C
            text, shell.status = "", 130
            continue
        text += line
        try:
            script = parse(text)
        except IncompleteError:
            continue
        except ShellSyntaxError as error:
            await shell.complain(f"syntax error: {error}")
            text, shell.status = "", 2
            continue
        text = ""
        ended: list[int] = []

        async def body(script: object = script, ended: list[int] = ended) -> int:
            try:
                return await shell.run(script)  # type: ignore[arg-type]
            except Exit as end:
                ended.append(end.code)
                return end.code

        task: Task = program.task.scheduler.start(body(), "sh", program.host.next_pid(), program.task)
        program.host.register(task)
        set_foreground(task)
        try:
            shell.status = await task.join()
        finally:
            set_foreground(None)
        if shell.status == 128 + SIGINT:
            shell.checked = 0
            shell.descriptors = dict(program.descriptors)
        if ended:
            return ended[0]


def prompt(shell: Shell, program: Program) -> str:
    """Returns the prompt."""
    home = shell.variables.get("HOME", "/root")
    shown = "~" if shell.cwd == home else shell.cwd
    sign = "#" if program.host.uid == 0 else "$"
    given = shell.variables.get("PS1")
    if given is None:
        given = r"\u@\h:\w\$ " if program.name.endswith("bash") else r"\w \$ "
    user = "root" if program.host.uid == 0 else "I have no name!"
    for code, value in (("\\u", user), ("\\h", program.host.hostname), ("\\w", shown), ("\\W", shown.rpartition("/")[2] or "/"),
                        ("\\$", sign)):  # fmt: skip
        given = given.replace(code, value)
    return given


async def _busybox(program: Program) -> int:
    from fakekube.nodes.runtime.commands import APPLETS

    if program.args and program.args[0] not in ("--list", "--help"):
        if program.args[0] not in APPLETS:
            await program.stderr.write(f"{program.args[0]}: applet not found\n".encode())
            return 127
        return await program.run_other(program.args, program)
    await program.write("".join(f"{name}\n" for name in sorted(APPLETS)))
    return 0


COMMANDS: Final[dict[str, Command]] = {"sh": _sh, "ash": _sh, "bash": _sh, "dash": _sh, "busybox": _busybox}
