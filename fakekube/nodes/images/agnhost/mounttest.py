"""`agnhost mounttest`: writes files, and prints the type, mode, owner and content of files in volumes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fakekube.base.golang.strconv import go_quote
from fakekube.nodes.images.programs import flags, is_true
from fakekube.nodes.runtime.filesystem import Directory, Node, Symlink
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import sleep

_CONTENT: Final = b"mount-tester new file\n"
#: Seconds between two reads in a loop.
_PAUSE: Final = 2.0


def go_mode(node: Node) -> str:
    """Returns the mode of a file as Go prints it."""
    kind = "d" if isinstance(node, Directory) else "L" if isinstance(node, Symlink) else ""
    special = "".join(letter for letter, bit in (("u", 0o4000), ("g", 0o2000), ("t", 0o1000)) if node.mode & bit)
    return (kind + special or "-") + permissions(node)[1:]


def permissions(node: Node) -> str:
    """Returns the permissions of a file as Go prints them."""
    return "-" + "".join(letter if node.mode >> (8 - place) & 1 else "-" for place, letter in enumerate("rwxrwxrwx"))


async def _fs_type(program: Program, path: str) -> None:
    kind = program.files.kind_of(path, program.cwd)
    await program.write(f"mount type of {go_quote(path)}: {kind}\n")


def _writer(mode: int) -> Callable[[Program, str], Awaitable[None]]:
    async def write(program: Program, path: str) -> None:
        try:
            program.write_file(path, _CONTENT, mode=mode)
        except OSError as error:
            await program.write(f"error writing new file {go_quote(path)}: open {path}: {_text(error)}\n")
            raise
        await _content(program, path)

    return write


async def _mode(program: Program, path: str) -> None:
    node = await _stat(program, path, "Stat")
    await program.write(f"mode of file {go_quote(path)}: {go_mode(node)}\n")


async def _perm(program: Program, path: str) -> None:
    node = await _stat(program, path, "Stat")
    await program.write(f"perms of file {go_quote(path)}: {permissions(node)}\n")


async def _owner(program: Program, path: str) -> None:
    node = await _stat(program, path, "stat")
    await program.write(f"owner UID of {go_quote(path)}: {node.uid}\nowner GID of {go_quote(path)}: {node.gid}\n")


async def _stat(program: Program, path: str, call: str) -> Node:
    try:
        return program.files.node(path, program.cwd)
    except OSError as error:
        await program.write(f"error from {call}({go_quote(path)}): stat {path}: {_text(error)}\n")
        raise


async def _content(program: Program, path: str) -> None:
    try:
        content = program.read_file(path)
    except OSError as error:
        await program.write(f"error reading file content for {go_quote(path)}: open {path}: {_text(error)}\n")
        raise
    await program.write(b"content of file " + go_quote(path).encode() + b": " + content + b"\n")


def _text(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


async def _loop(program: Program, path: str, seconds: float, *, ends: bool) -> None:
    """Reads a file every two seconds, for so long, or until it has the content that this program writes."""
    failure: OSError | None = None
    start = program.task.scheduler.time
    while program.task.scheduler.time - start < seconds:
        try:
            content = program.read_file(path)
        except OSError as error:
            failure = error
            await program.write(f"Error reading file {path}: open {path}: {_text(error)}, retrying\n")
        else:
            failure = None
            await program.write(b"content of file " + go_quote(path).encode() + b": " + content + b"\n")
            if ends and content == _CONTENT:
                return
            if ends:
                await program.write(f"Unexpected content. Expected: {_CONTENT.decode()}. Retrying\n")
        await sleep(_PAUSE)
    if failure is not None:
        raise failure


_ACTIONS: Final[dict[str, Callable[[Program, str], Awaitable[None]]]] = {
    "fs_type": _fs_type,
    "new_file_0644": _writer(0o644),
    "new_file_0666": _writer(0o666),
    "new_file_0660": _writer(0o660),
    "new_file_0777": _writer(0o777),
    "file_mode": _mode,
    "file_perm": _perm,
    "file_owner": _owner,
    "file_content": _content,
}


async def _mounttest(program: Program) -> int:
    defaults = dict.fromkeys([*_ACTIONS, "file_content_in_loop"], "")
    given, _ = flags(program, {**defaults, "retry_time": "180", "break_on_expected_content": "true"})
    failed = False
    for name, action in _ACTIONS.items():
        if given[name]:
            try:
                await action(program, given[name])
            except OSError:
                failed = True
    if given["file_content_in_loop"]:
        try:
            await _loop(
                program,
                given["file_content_in_loop"],
                float(given["retry_time"]),
                ends=is_true(given["break_on_expected_content"]),
            )
        except OSError:
            failed = True
    return int(failed)


COMMANDS: Final[dict[str, Command]] = {"mounttest": _mounttest}
