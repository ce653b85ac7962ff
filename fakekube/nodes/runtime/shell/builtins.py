"""The built-in commands of the shell, which read or change its state.

Specified by: POSIX.1-2017, Shell & Utilities, 2.14 (Special Built-In Utilities) and the regular built-ins of ash.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import Task
from fakekube.nodes.runtime.shell.parser import ShellSyntaxError, parse
from fakekube.nodes.runtime.shell.state import ShellState

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
SIGNALS: Final = {"HUP": "1", "INT": "2", "QUIT": "3", "TERM": "15", "EXIT": "EXIT", "0": "EXIT"}


class Exit(Exception):
    """Ends the shell."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code & 0xFF


class Return(Exception):
    """Ends a function."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code & 0xFF


class Break(Exception):
    """Ends one or more loops; with `continues`, only the current iteration of the outermost of them."""

    def __init__(self, levels: int, *, continues: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.continues = continues

    def leaves(self) -> bool:
        """Called by each enclosing loop: reports whether the loop ends. Raises itself again if an outer loop is meant."""
        self.levels -= 1
        if self.levels > 0:
            raise self
        return not self.continues


async def _number(program: Program, default: int) -> int:
    if not program.args:
        return default
    try:
        return int(program.args[0])
    except ValueError:
        await program.shell.complain(f"{program.name}: Illegal number: {program.args[0]}", program.descriptors)
        raise Exit(2) from None


async def _exit(program: Program, shell: ShellState) -> int:
    raise Exit(await _number(program, shell.status))


async def _return(program: Program, shell: ShellState) -> int:
    raise Return(await _number(program, shell.status))


async def _break(program: Program, shell: ShellState) -> int:
    raise Break(await _number(program, 1), continues=False)


async def _continue(program: Program, shell: ShellState) -> int:
    raise Break(await _number(program, 1), continues=True)


async def _cd(program: Program, shell: ShellState) -> int:
    args = [arg for arg in program.args if arg not in ("-L", "-P", "--")]
    target = args[0] if args else shell.variables.get("HOME", "/")
    if target == "-":
        target = shell.variables.get("OLDPWD", shell.cwd)
        await program.write(f"{target}\n")
    try:
        shell.files.directory(target, shell.cwd)
    except OSError as error:
        return await _complain(program, shell, f"can't cd to {target}: {error.strerror}")
    shell.variables["OLDPWD"] = shell.cwd
    shell.cwd = posixpath.normpath(posixpath.join(shell.cwd, target))
    shell.variables["PWD"] = shell.cwd
    return 0


async def _complain(program: Program, shell: ShellState, message: str, code: int = 1) -> int:
    await shell.complain(f"{program.name}: {message}", dict(program.descriptors))
    return code


async def _export(program: Program, shell: ShellState) -> int:
    args = [arg for arg in program.args if arg != "-p"]
    if not args:
        for name in sorted(shell.exported & shell.variables.keys()):
            await program.write(f"export {name}='{shell.variables[name]}'\n")
    for arg in args:
        name, equals, value = arg.partition("=")
        if not _NAME.fullmatch(name):
            return await _complain(program, shell, f"{arg}: bad variable name", 2)
        if equals:
            shell.set_variable(name, value)
        shell.exported.add(name)
    return 0


async def _readonly(program: Program, shell: ShellState) -> int:
    for arg in program.args:
        name, equals, value = arg.partition("=")
        if equals:
            shell.set_variable(name, value)
        shell.read_only.add(name)
    return 0


async def _local(program: Program, shell: ShellState) -> int:
    if not shell.locals:
        return await _complain(program, shell, "not in a function")
    for arg in program.args:
        name, equals, value = arg.partition("=")
        shell.locals[-1].setdefault(name, shell.variables.get(name))
        if equals:
            shell.set_variable(name, value)
    return 0


async def _unset(program: Program, shell: ShellState) -> int:
    functions = "-f" in program.args
    for name in program.args:
        if functions:
            shell.functions.pop(name, None)
        elif name not in ("-v", "-f"):
            shell.variables.pop(name, None)
            shell.exported.discard(name)
    return 0


async def _set(program: Program, shell: ShellState) -> int:
    args = list(program.args)
    if not args:
        for name in sorted(shell.variables):
            await program.write(f"{name}='{shell.variables[name]}'\n")
    while args and args[0][:1] in ("-", "+") and len(args[0]) > 1:
        arg = args.pop(0)
        if arg == "--":
            shell.arguments = args
            return 0
        names = {args.pop(0)} if arg[1:] == "o" and args else set(arg[1:])
        names = {{"errexit": "e", "nounset": "u", "xtrace": "x"}.get(name, name) for name in names}
        if "o" in names and args:
            names = (names - {"o"}) | {args.pop(0)}
        shell.options = shell.options | names if arg[0] == "-" else shell.options - names
    if args:
        shell.arguments = args
    return 0


async def _shift(program: Program, shell: ShellState) -> int:
    count = await _number(program, 1)
    if count > len(shell.arguments):
        return 1
    del shell.arguments[:count]
    return 0


async def _eval(program: Program, shell: ShellState) -> int:
    return await _run(" ".join(program.args), program, shell)


async def _run(source: str, program: Program, shell: ShellState) -> int:
    try:
        script = parse(source)
    except ShellSyntaxError as error:
        await shell.complain(f"syntax error: {error}", dict(program.descriptors))
        raise Exit(2) from None
    before, shell.descriptors = shell.descriptors, dict(program.descriptors)
    shell.depth += 1
    try:
        return await shell.run(script)
    finally:
        shell.depth -= 1
        shell.descriptors = before


async def _source(program: Program, shell: ShellState) -> int:
    if not program.args:
        return await _complain(program, shell, "filename argument required", 2)
    try:
        content = shell.files.read(program.args[0], shell.cwd)
    except OSError:
        await shell.complain(f".: can't open '{program.args[0]}': {os.strerror(errno.ENOENT)}", dict(program.descriptors))
        raise Exit(2) from None
    try:
        return await _run(content.decode("utf-8", "surrogateescape"), program, shell)
    except Return as end:
        return end.code


async def _exec(program: Program, shell: ShellState) -> int:
    raise Exit(await shell.call(program.args, (), dict(program.descriptors), functions=False))


async def _command(program: Program, shell: ShellState) -> int:
    args = list(program.args)
    if args and args[0] in ("-v", "-V"):
        code = 0
        for name in args[1:]:
            known = name in BUILTINS or name in shell.functions
            found = name if known else shell.find(name)
            if found is None:
                code = 127
            else:
                await program.write(f"{found}\n")
        return code
    args = [arg for arg in args if arg != "-p"]
    return await shell.call(args, (), dict(program.descriptors), functions=False) if args else 0


async def _type(program: Program, shell: ShellState) -> int:
    code = 0
    for name in program.args:
        if name in BUILTINS:
            await program.write(f"{name} is a shell builtin\n")
        elif name in shell.functions:
            await program.write(f"{name} is a function\n")
        elif (found := shell.find(name)) is not None:
            await program.write(f"{name} is {found}\n")
        else:
            await program.write(f"{name}: not found\n")
            code = 127
    return code


async def _read(program: Program, shell: ShellState) -> int:
    args, raw, prompt, names = list(program.args), False, "", list[str]()
    while args:
        arg = args.pop(0)
        if arg == "-r":
            raw = True
        elif arg in ("-p", "-t", "-n", "-d"):
            value = args.pop(0) if args else ""
            prompt = value if arg == "-p" else prompt
        elif arg != "-s":
            names.append(arg)
    if prompt:
        await program.stderr.write(prompt.encode())
    line = (await program.stdin.readline()).decode("utf-8", "surrogateescape")
    ended = line.endswith("\n")
    line = line.removesuffix("\n")
    while not raw and line.endswith("\\") and ended:
        more = (await program.stdin.readline()).decode("utf-8", "surrogateescape")
        ended, line = more.endswith("\n"), line[:-1] + more.removesuffix("\n")
    names = names or ["REPLY"]
    separators = shell.variables.get("IFS", " \t\n")
    values = _split_fields(line if raw else re.sub(r"\\(.)", r"\1", line), separators, len(names))
    for number, name in enumerate(names):
        shell.set_variable(name, values[number] if number < len(values) else "")
    return 0 if ended else 1


def _split_fields(line: str, separators: str, count: int) -> list[str]:
    blanks = "".join(one for one in separators if one in " \t\n")
    if not separators:
        return [line]
    line = line.strip(blanks) if blanks else line
    return re.split(rf"[{re.escape(blanks)}]*[{re.escape(separators)}][{re.escape(blanks)}]*" if blanks else
                    f"[{re.escape(separators)}]", line, maxsplit=count - 1)  # fmt: skip


async def _trap(program: Program, shell: ShellState) -> int:
    args = list(program.args)
    if not args:
        for name, action in shell.traps.items():
            await program.write(f"trap -- '{action}' {name}\n")
        return 0
    action = args.pop(0) if len(args) > 1 else "-"
    for arg in args:
        name = SIGNALS.get(arg.upper().removeprefix("SIG"), arg)
        if action == "-":
            shell.traps.pop(name, None)
        else:
            shell.traps[name] = action
    program.task.caught = frozenset(int(name) for name in shell.traps if name.isdigit())
    return 0


async def _wait(program: Program, shell: ShellState) -> int:
    wanted = _jobs(program, shell) if program.args else list(shell.background)
    code = 127 if program.args and not wanted else 0
    for task in wanted:
        code = await task.join()
        shell.background = [one for one in shell.background if one is not task]
    return code if program.args else 0


def _jobs(program: Program, shell: ShellState) -> list[Task]:
    found = []
    for arg in program.args:
        if arg.startswith("%") and arg[1:].isdigit() and int(arg[1:]) <= len(shell.background):
            found.append(shell.background[int(arg[1:]) - 1])
        else:
            found += [task for task in shell.background if str(task.pid) == arg]
    return found


async def _list_jobs(program: Program, shell: ShellState) -> int:
    for number, task in enumerate(shell.background, 1):
        state = "Running" if task.exit_code is None else "Done"
        await program.write(f"[{number}]+  {state:<26} {task.name}\n")
    return 0


async def _umask(program: Program, shell: ShellState) -> int:
    if not program.args:
        await program.write("0022\n")
    return 0


async def _true(program: Program, shell: ShellState) -> int:
    return 0


async def _kill(program: Program, shell: ShellState) -> int:
    args = [
        str(shell.background[int(arg[1:]) - 1].pid)
        if re.fullmatch(r"%\d+", arg) and int(arg[1:]) <= len(shell.background)
        else arg
        for arg in program.args
    ]
    return await shell.program.run_other(["kill", *args], replace(program, args=args))


BUILTINS: Final[dict[str, Callable[[Program, ShellState], Awaitable[int]]]] = {
    ":": _true,
    ".": _source,
    "alias": _true,
    "break": _break,
    "cd": _cd,
    "command": _command,
    "continue": _continue,
    "eval": _eval,
    "exec": _exec,
    "exit": _exit,
    "export": _export,
    "jobs": _list_jobs,
    "kill": _kill,
    "local": _local,
    "read": _read,
    "readonly": _readonly,
    "return": _return,
    "set": _set,
    "shift": _shift,
    "source": _source,
    "trap": _trap,
    "type": _type,
    "ulimit": _true,
    "umask": _umask,
    "unset": _unset,
    "wait": _wait,
}
