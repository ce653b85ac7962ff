"""The built-in commands of the shell, which read or change its state.

Specified by: POSIX.1-2017, Shell & Utilities, 2.14 (Special Built-In Utilities) and the regular built-ins of ash.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from fakekube.nodes.runtime.filesystem import apply_mode
from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import SIGKILL, SIGNALS, Killed, Task
from fakekube.nodes.runtime.shell.expansion import BLANKS, ExpansionError, delimiter_of
from fakekube.nodes.runtime.shell.parser import KEYWORDS, ShellSyntaxError, parse
from fakekube.nodes.runtime.shell.state import ShellState

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
#: The conditions of `trap` by name; signals have the texts of their numbers, as in `ShellState.traps`.
_CONDITIONS: Final = {name: str(number) for name, number in SIGNALS.items()} | {"EXIT": "EXIT", "0": "EXIT"}
#: The signals that no program can handle.
_UNHANDLED: Final = frozenset({SIGKILL, SIGNALS["STOP"]})
_LAST_SIGNAL: Final = 64


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
    """Ends one or more loops; with `continues`, only the current iteration of the outermost of them.

    Args:
        levels: the number of loops.
        continues: whether the command was `continue`.
    """

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


async def _read_number(program: Program, shell: ShellState, default: int, least: int = 0) -> int:
    """Returns the argument of a built-in command as a number, which has digits only (number). Raises Exit."""
    if not program.args:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", program.args[0]) or int(program.args[0]) < least:
        raise Exit(await _complain(program, shell, f"Illegal number: {program.args[0]}", 2))
    return int(program.args[0])


async def _exit(program: Program, shell: ShellState) -> int:
    raise Exit(await _read_number(program, shell, shell.status))


async def _return(program: Program, shell: ShellState) -> int:
    raise Return(await _read_number(program, shell, shell.status))


async def _leave_loops(program: Program, shell: ShellState) -> int:
    """`break` and `continue`, which do nothing outside of a loop."""
    levels = min(await _read_number(program, shell, 1, least=1), shell.loops)
    if levels:
        raise Break(levels, continues=program.name == "continue")
    return 0


async def _cd(program: Program, shell: ShellState) -> int:
    args = [arg for arg in program.args if arg not in ("-L", "-P", "--")]
    target = args[0] if args else shell.variables.get("HOME", "/")
    if target == "-":
        target = shell.variables.get("OLDPWD", shell.cwd)
        await program.write(f"{target}\n")
    try:
        shell.files.directory(target, shell.cwd)
    except OSError as error:
        return await _complain(program, shell, f"can't cd to {target}: {error.strerror}", 2)
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
    return await _declare(args, shell.exported, program, shell)


async def _readonly(program: Program, shell: ShellState) -> int:
    args = [arg for arg in program.args if arg != "-p"]
    if not args:
        for name in sorted(shell.read_only):
            value = f"='{shell.variables[name]}'" if name in shell.variables else ""
            await program.write(f"readonly {name}{value}\n")
    return await _declare(args, shell.read_only, program, shell)


async def _declare(args: Sequence[str], names: set[str], program: Program, shell: ShellState) -> int:
    """Assigns the variables in arguments like NAME=VALUE, and adds all to the names. Raises Exit for a bad name."""
    for arg in args:
        name, equals, value = arg.partition("=")
        if not _NAME.fullmatch(name):
            raise Exit(await _complain(program, shell, f"{arg}: bad variable name", 2))
        if equals:
            shell.set_variable(name, value)
        names.add(name)
    return 0


async def _local(program: Program, shell: ShellState) -> int:
    if not shell.locals:
        raise Exit(await _complain(program, shell, "not in a function", 2))
    for arg in program.args:
        name, equals, value = arg.partition("=")
        shell.locals[-1].setdefault(name, shell.variables.get(name))
        if equals:
            shell.set_variable(name, value)
    return 0


async def _unset(program: Program, shell: ShellState) -> int:
    functions = "-f" in program.args
    for name in (arg for arg in program.args if arg not in ("-v", "-f")):
        if functions:
            shell.functions.pop(name, None)
        elif not _NAME.fullmatch(name):
            raise Exit(await _complain(program, shell, f"{name}: bad variable name", 2))
        else:
            shell.require_writable(name)
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
    count = await _read_number(program, shell, 1)
    if count > len(shell.arguments):
        return 1
    del shell.arguments[:count]
    return 0


async def _eval(program: Program, shell: ShellState) -> int:
    return await _run_source(" ".join(program.args), program, shell)


async def _run_source(source: str, program: Program, shell: ShellState) -> int:
    """Runs a text in the shell itself, with the descriptors of the command. Raises Exit for a syntax error."""
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
        return await _run_source(content.decode("utf-8", "surrogateescape"), program, shell)
    except Return as end:
        return end.code


async def _exec(program: Program, shell: ShellState) -> int:
    raise Exit(await shell.call(program.args, (), dict(program.descriptors), functions=False))


async def _command(program: Program, shell: ShellState) -> int:
    args = [arg for arg in program.args if arg != "-p"]
    if args[:1] == ["-V"]:
        return await _describe_commands(args[1:2], program, shell)
    if args[:1] == ["-v"]:
        known = [name if _meaning(name, shell) else shell.find(name) for name in args[1:2]]
        for found in filter(None, known):
            await program.write(f"{found}\n")
        return 0 if all(known) else 127
    return await shell.call(args, (), dict(program.descriptors), functions=False) if args else 0


async def _type(program: Program, shell: ShellState) -> int:
    return await _describe_commands(program.args, program, shell)


def _meaning(name: str, shell: ShellState) -> str:
    """Returns what a name means to the shell itself; "" if it is no more than the name of a program."""
    if name in KEYWORDS:
        return "shell keyword"
    if name in shell.functions:
        return "function"
    if name in SPECIAL_BUILTINS:
        return "special shell builtin"
    return "shell builtin" if name in BUILTINS or name in _BUILT_IN_APPLETS else ""


async def _describe_commands(names: Sequence[str], program: Program, shell: ShellState) -> int:
    """Writes what each name means to the shell (describe_command). Returns the exit code."""
    code = 0
    for name in names:
        if meaning := _meaning(name, shell):
            await program.write(f"{name} is a {meaning}\n")
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
    while not raw and _continues(line) and ended:
        more = (await program.stdin.readline()).decode("utf-8", "surrogateescape")
        ended, line = more.endswith("\n"), line[:-1] + more.removesuffix("\n")
    text = line if raw else _ESCAPED.sub(r"\1", line)
    if names:
        mask = line if raw else _ESCAPED.sub(lambda found: "\0" * len(found[1]), line)
        values = _split_fields(text, mask, shell.variables.get("IFS", BLANKS), len(names))
    else:
        names, values = ["REPLY"], [text]
    for name, value in zip_longest(names, values, fillvalue=""):
        try:
            shell.set_variable(name, value)
        except ExpansionError as error:
            return await _complain(program, shell, str(error), 2)
    return 0 if ended else 1


#: A backslash, with the character that it escapes.
_ESCAPED: Final = re.compile(r"\\(.?)", re.DOTALL)


def _continues(line: str) -> bool:
    """Reports whether a line ends with a backslash that is not escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split_fields(text: str, mask: str, separators: str, count: int) -> list[str]:
    """Splits a line at the characters of IFS into at most `count` fields, the last of which is the rest (shell_builtin_read).

    Args:
        text: the line.
        mask: the line with NULs in place of the characters that are escaped, which do not separate fields.
        separators: the characters of IFS.
        count: the maximum number of fields.
    """
    blanks, delimiter = "".join(one for one in separators if one in BLANKS), delimiter_of(separators)
    fields, place = list[str](), len(mask) - len(mask.lstrip(blanks))
    while len(fields) < count - 1 and (found := delimiter.search(mask, place)) is not None:
        fields.append(text[place : found.start()])
        place = found.end()
    rest = text[place:].rstrip(blanks)
    if rest and rest[-1] in separators:  # it ends a field, unless the rest has several
        field = rest[:-1].rstrip(blanks)
        rest = rest if any(one in separators for one in field) else field
    return [*fields, rest]


async def _trap(program: Program, shell: ShellState) -> int:
    args = list(program.args)
    if not args:
        names = {condition: name for name, condition in _CONDITIONS.items() if name != "0"}
        for condition, action in sorted(shell.traps.items(), key=lambda one: 0 if one[0] == "EXIT" else int(one[0])):
            await program.write(f"trap -- '{action}' {names.get(condition, condition)}\n")
        return 0
    action, code = args.pop(0) if len(args) > 1 else "-", 0
    for arg in args:
        condition = _CONDITIONS.get(arg.upper().removeprefix("SIG"), arg)
        if condition != "EXIT" and not (re.fullmatch(r"[0-9]{1,2}", condition) and int(condition) <= _LAST_SIGNAL):
            code = await _complain(program, shell, f"{arg}: invalid signal specification")
        elif action == "-":
            shell.traps.pop(condition, None)
        else:
            shell.traps[condition] = action
    handled = {int(name): action for name, action in shell.traps.items() if name.isdigit()}
    program.task.caught = frozenset(handled) - _UNHANDLED
    program.task.ignored = frozenset(number for number in program.task.caught if not handled[number])
    return code


async def _wait(program: Program, shell: ShellState) -> int:
    wanted = _find_jobs(program, shell) if program.args else list(shell.background)
    code = 127 if program.args and not wanted else 0
    for task in wanted:
        try:
            code = await task.join()
        except Killed as killed:
            if await shell.run_trap(killed):
                return 128 + killed.signal
            raise
        shell.background = [one for one in shell.background if one is not task]
    return code if program.args else 0


def _find_jobs(program: Program, shell: ShellState) -> list[Task]:
    """Returns the background tasks that the arguments name, `%1` or by process id."""
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


#: The permissions of a file, as they are shown.
_BITS: Final = {"r": 4, "w": 2, "x": 1}


async def _umask(program: Program, shell: ShellState) -> int:
    args = [arg for arg in program.args if arg != "-S"]
    if args:
        if re.fullmatch("[0-7]{1,4}", args[0]):
            shell.umask = int(args[0], 8) & 0o777
            return 0
        try:
            shell.umask = ~apply_mode(args[0], ~shell.umask & 0o777) & 0o777
        except ValueError:
            return await _complain(program, shell, f"Illegal mode: {args[0]}", 2)
    elif "-S" in program.args:
        allowed = [(who, ~shell.umask >> shift) for who, shift in (("u", 6), ("g", 3), ("o", 0))]
        letters = [f"{who}={''.join(name for name, bit in _BITS.items() if bits & bit)}" for who, bits in allowed]
        await program.write(f"{','.join(letters)}\n")
    else:
        await program.write(f"{shell.umask:04o}\n")
    return 0


async def _do_nothing(program: Program, shell: ShellState) -> int:
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
    ":": _do_nothing,
    ".": _source,
    "alias": _do_nothing,
    "break": _leave_loops,
    "cd": _cd,
    "command": _command,
    "continue": _leave_loops,
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
    "ulimit": _do_nothing,
    "umask": _umask,
    "unset": _unset,
    "wait": _wait,
}

#: Commands that are built into ash; here they are applets like others.
_BUILT_IN_APPLETS: Final = frozenset({"[", "[[", "echo", "false", "printf", "pwd", "test", "true"})

#: The special built-in commands: variables that are assigned before them keep their values.
SPECIAL_BUILTINS: Final = frozenset(
    {
        ".",
        ":",
        "break",
        "continue",
        "eval",
        "exec",
        "exit",
        "export",
        "local",
        "readonly",
        "return",
        "set",
        "shift",
        "source",
        "trap",
        "unset",
    }
)
