"""`sh` and its other names (scripts, commands with -c, interactive sessions), and what conditions of scripts run: `test`, `expr`.

Specified by: POSIX.1-2017, Shell & Utilities (sh, test, expr, true, false).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Final

from fakekube.nodes.runtime.filesystem import BlockDevice, Device, Directory, File, Node, Socket, Symlink
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.regular_expressions import PatternError, compile_posix
from fakekube.nodes.runtime.scheduling import SIGINT, Task
from fakekube.nodes.runtime.shell.builtins import Exit
from fakekube.nodes.runtime.shell.interpreter import Shell
from fakekube.nodes.runtime.shell.parser import IncompleteError, ShellSyntaxError, parse
from fakekube.nodes.runtime.shell.syntax import process_name


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
    shell = Shell.for_program(program, args[0] if args and source is not None else name, args[1:])
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

        commands = script.items[0].first.commands if len(script.items) == 1 and not script.items[0].rest else ()
        task: Task = program.task.scheduler.start(body(), process_name(commands), program.host.next_pid(), program.task)
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


def _node(program: Program, path: str, *, follow: bool = True) -> Node | None:
    try:
        return program.files.place(path, program.cwd, follow=follow).node
    except OSError:
        return None


_OF_FILES: Final[dict[str, Callable[[Node | None], bool]]] = {
    "-e": lambda node: node is not None,
    "-a": lambda node: node is not None,
    "-f": lambda node: isinstance(node, File),
    "-d": lambda node: isinstance(node, Directory),
    "-c": lambda node: isinstance(node, Device),
    "-r": lambda node: node is not None,
    "-w": lambda node: node is not None,
    "-x": lambda node: node is not None and bool(node.mode & 0o111),
    "-s": lambda node: isinstance(node, File) and len(node.content) > 0,
    "-p": lambda node: False,
    "-S": lambda node: isinstance(node, Socket),
    "-b": lambda node: isinstance(node, BlockDevice),
}
_OF_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
_OF_TEXTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


class _Test:
    """Parses and evaluates the operands of `test`."""

    def __init__(self, program: Program, words: list[str]) -> None:
        self._program, self._words = program, words

    def parse_expression(self) -> bool:
        value = self._or()
        if self._words:
            raise Usage(f"{self._words[0]}: unknown operand", 2)
        return value

    def _or(self) -> bool:
        value = self._and()
        while self._words and self._words[0] in ("-o", "||"):
            self._words.pop(0)
            value = self._and() or value
        return value

    def _and(self) -> bool:
        value = self._primary()
        while self._words and self._words[0] in ("-a", "&&"):
            self._words.pop(0)
            value = self._primary() and value
        return value

    def _primary(self) -> bool:
        words = self._words
        if not words:
            raise Usage("argument expected", 2)
        if len(words) >= 3 and (words[1] in _OF_TEXTS or words[1] in _OF_NUMBERS or words[1] in ("-nt", "-ot", "-ef")):
            return self._binary(words.pop(0), words.pop(0), words.pop(0))
        if words[0] == "!" and len(words) > 1:
            words.pop(0)
            return not self._primary()
        if words[0] == "(" and len(words) > 2:
            words.pop(0)
            value = self._or()
            if not words or words.pop(0) != ")":
                raise Usage("closing paren expected", 2)
            return value
        if len(words) >= 2 and (words[0] in _OF_FILES or words[0] in ("-n", "-z", "-L", "-h", "-t")):
            return self._unary(words.pop(0), words.pop(0))
        return words.pop(0) != ""

    def _unary(self, name: str, value: str) -> bool:
        if name in ("-n", "-z"):
            return (value == "") is (name == "-z")
        if name == "-t":
            found = self._program.descriptors.get(int(value)) if value.isdigit() else None
            return found is not None and found.is_terminal
        if name in ("-L", "-h"):
            return isinstance(_node(self._program, value, follow=False), Symlink)
        return _OF_FILES[name](_node(self._program, value))

    def _binary(self, left: str, name: str, right: str) -> bool:
        if name in _OF_TEXTS:
            return _OF_TEXTS[name](left, right)
        if name in _OF_NUMBERS:
            return _OF_NUMBERS[name](_whole_number(left), _whole_number(right))
        nodes = _node(self._program, left), _node(self._program, right)
        if name == "-ef":
            return nodes[0] is not None and nodes[0] is nodes[1]
        times = [float("-inf") if node is None else node.mtime for node in nodes]
        return times[0] > times[1] if name == "-nt" else times[0] < times[1]


def _whole_number(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise Usage(f"{text}: bad number", 2) from None


async def _test(program: Program) -> int:
    words = list(program.args)
    if program.name in ("[", "[["):
        end = "]" * len(program.name)
        if not words or words.pop() != end:
            return await program.complain(f"missing {end}", 2)
    return 1 if not words else int(not _Test(program, words).parse_expression())


async def _true(program: Program) -> int:
    return 0


async def _false(program: Program) -> int:
    return 1


async def _expr(program: Program) -> int:
    args = list(program.args)
    if len(args) == 3 and args[1] == ":":
        try:
            found = compile_posix(args[2], extended=False).match(args[0])
        except PatternError as error:
            raise Usage(f"bad regex '{args[2]}': {error}", 2) from None
        result = (found[1] if found.groups else str(len(found[0]))) if found else "" if "\\(" in args[2] else "0"
    elif len(args) == 2 and args[0] == "length":
        result = str(len(args[1]))
    elif (
        len(args) == 3 and args[1] in ("=", "!=", "<", ">", "<=", ">=") and not all(re.fullmatch(r"-?\d+", a) for a in args[::2])
    ):
        compare = {**_OF_TEXTS, "<=": operator.le, ">=": operator.ge}[args[1]]
        result = str(int(compare(args[0], args[2])))
    else:
        from fakekube.nodes.runtime.shell.expansion import ExpressionError, evaluate

        try:
            result = str(evaluate(" ".join("==" if arg == "=" else arg for arg in args), {})) if len(args) != 1 else args[0]
        except ExpressionError as error:
            raise Usage("division by zero" if "zero" in str(error) else "syntax error", 2) from None
    await program.write(f"{result}\n")
    return int(result in ("", "0"))


COMMANDS: Final[dict[str, Command]] = {
    "sh": _sh,
    "ash": _sh,
    "bash": _sh,
    "dash": _sh,
    "busybox": _busybox,
    "[": _test,
    "[[": _test,
    "test": _test,
    "true": _true,
    "false": _false,
    "expr": _expr,
}
