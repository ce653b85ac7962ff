"""Commands that list files, and tell their sizes: ls, stat, du, df.

Specified by: busybox coreutils/{df,du,ls,stat}.c.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from datetime import UTC, datetime
from typing import Final

from fakekube.nodes.runtime.filesystem import BlockDevice, Device, Directory, File, Node, Socket, Symlink
from fakekube.nodes.runtime.program import Command, Program, options

_TERMINAL_WIDTH: Final = 80


#: Type → its letter for ls, and its name for stat.
_KINDS: Final[dict[type[Node], tuple[str, str]]] = {
    Directory: ("d", "directory"),
    Symlink: ("l", "symbolic link"),
    Device: ("c", "character special file"),
    BlockDevice: ("b", "block special file"),
    Socket: ("s", "socket"),
}


def mode_text(node: Node) -> str:
    """Formats a mode as ls does."""
    kind = _KINDS.get(type(node), ("-", ""))[0]
    letters = [letter if node.mode >> (8 - place) & 1 else "-" for place, letter in enumerate("rwxrwxrwx")]
    for bit, place, letter in ((0o4000, 2, "s"), (0o2000, 5, "s"), (0o1000, 8, "t")):
        if node.mode & bit:
            letters[place] = letter if letters[place] == "x" else letter.upper()
    return kind + "".join(letters)


def size_of(node: Node) -> int:
    """Returns the size of a node in bytes."""
    if isinstance(node, File):
        return len(node.content)
    return len(node.target) if isinstance(node, Symlink) else 4096 if isinstance(node, Directory) else 0


def _owner(number: int) -> str:
    return {0: "root", 65534: "nobody"}.get(number, str(number))


def _human(size: int) -> str:
    value, unit, units = float(size), "", iter("KMGT")
    while value >= 1024:
        value, unit = value / 1024, next(units)
    return f"{value:.1f}{unit}" if unit else str(size)


async def _ls(program: Program) -> int:
    flags, paths = options(program, "alAhd1RtrSiFLnsCx", ["color", "color=", "full-time"])
    code, singles, folders = 0, dict[str, Node](), list[str]()
    for path in paths or ["."]:
        try:
            node = program.files.node(path, program.cwd, follow="l" not in flags)
            if isinstance(node, Symlink) and not path.endswith("/") and "d" in flags:
                singles[path] = node
            elif isinstance(node, Directory) and "d" not in flags:
                folders.append(path)
            else:
                singles[path] = node
        except OSError as error:
            code = await program.complain_about(path, error)
    if singles:
        await _show(program, singles, flags)
    while folders:
        path = folders.pop(0)
        entries = program.files.list(path, program.cwd)
        if "R" in flags:
            folders = [
                posixpath.join(path, name) for name, node in entries.items() if isinstance(node, Directory) and name[0] != "."
            ] + folders
        shown = {name: node for name, node in entries.items() if not name.startswith(".") or flags.keys() & {"a", "A"}}
        if "a" in flags:
            here = program.files.node(path, program.cwd)
            shown = {".": here, "..": program.files.node(posixpath.join(path, ".."), program.cwd), **shown}
        if len(paths) > 1 or "R" in flags:
            await program.write(f"{path}:\n")
        if "l" in flags:
            await program.write(f"total {sum((size_of(node) + 4095) // 4096 * 4 for node in shown.values())}\n")
        await _show(program, shown, flags)
        if folders and (len(paths) > 1 or "R" in flags):
            await program.write("\n")
    return code


async def _show(program: Program, entries: dict[str, Node], flags: dict[str, str]) -> None:
    names = list(entries)
    if "t" in flags:
        names.sort(key=lambda name: -entries[name].mtime)
    elif "S" in flags:
        names.sort(key=lambda name: -size_of(entries[name]))
    if "r" in flags:
        names.reverse()
    if "l" in flags:
        await program.write("".join(_long(name, entries[name], flags) for name in names))
    elif program.stdout.is_terminal and "1" not in flags and names:
        width = max(map(len, names)) + 2
        columns = max(_TERMINAL_WIDTH // width, 1)
        rows = -(-len(names) // columns)
        lines = ["".join(name.ljust(width) for name in names[row::rows]).rstrip() for row in range(rows)]
        await program.write("".join(f"{line}\n" for line in lines))
    else:
        marks = {Directory: "/", Symlink: "@"} if "F" in flags else {}
        await program.write("".join(f"{name}{marks.get(type(entries[name]), '')}\n" for name in names))


def _long(name: str, node: Node, flags: dict[str, str]) -> str:
    time = datetime.fromtimestamp(node.mtime, UTC).strftime("%b %e %H:%M")
    size = _human(size_of(node)) if "h" in flags else str(size_of(node))
    target = f" -> {node.target}" if isinstance(node, Symlink) else ""
    owner, group = (str(node.uid), str(node.gid)) if "n" in flags else (_owner(node.uid), _owner(node.gid))
    links = 2 if isinstance(node, Directory) else 1
    return f"{mode_text(node)} {links:4} {owner:8} {group:8} {size:>9} {time} {name}{target}\n"


async def _stat(program: Program) -> int:
    flags, paths = options(program, "c:Lft")
    code = 0
    for path in paths:
        try:
            node = program.files.node(path, program.cwd, follow="L" in flags)
        except OSError as error:
            code = await program.complain(f"can't stat '{path}': {error.strerror}")
            continue
        kind = _KINDS.get(type(node), ("-", "regular file"))[1]
        values = {"%n": path, "%s": str(size_of(node)), "%a": f"{node.mode:o}", "%A": mode_text(node), "%F": kind,
                  "%u": str(node.uid), "%g": str(node.gid), "%U": _owner(node.uid), "%G": _owner(node.gid),
                  "%Y": str(int(node.mtime))}  # fmt: skip
        given = flags.get("c")
        if given is None:
            time = datetime.fromtimestamp(node.mtime, UTC).strftime("%Y-%m-%d %H:%M:%S.%f000 +0000")
            given = (
                f"  File: %n\n  Size: %s\tBlocks: {(size_of(node) + 511) // 512}\tIO Block: 4096   %F\n"
                f"Access: (0%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nModify: {time}"
            )
        for code_, value in values.items():
            given = given.replace(code_, value)
        await program.write(f"{given}\n")
    return code


async def _du(program: Program) -> int:
    flags, paths = options(program, "shakcmd:")
    depth = 0 if "s" in flags else int(flags.get("d", "-1"))
    code = of_all = 0

    def line(total: int, name: str) -> str:
        shown = _human(total * 1024) if "h" in flags else str(-(-total // 1024) if "m" in flags else total)
        return f"{shown}\t{name}\n"

    for path in paths or ["."]:
        try:
            found = list(program.files.walk(path, program.cwd))
        except OSError as error:
            code = await program.complain_about(path, error)
            continue
        totals: Counter[str] = Counter()
        for top, node in reversed(found):  # entries come before their directory
            total = (size_of(node) + 4095) // 4096 * 4 + totals.pop(top.rstrip("/"), 0)
            totals[top.rpartition("/")[0]] += total
            level = top[len(path) :].strip("/").count("/") + (top != path)
            if (isinstance(node, Directory) or "a" in flags or top == path) and (depth < 0 or level <= depth):
                await program.write(line(total, top))
        of_all += total  # the path itself has come last
    if "c" in flags:
        await program.write(line(of_all, "total"))
    return code


async def _df(program: Program) -> int:
    flags, paths = options(program, "hkPTi")
    human, code = "h" in flags, 0
    rows = [("Filesystem", "Size" if human else "1K-blocks", "Used", "Available", "Use%", "Mounted on")]
    shown = [] if paths else sorted(program.files.mounts)
    for one in paths:
        try:
            shown.append(program.files.mount_of(one, program.cwd))
        except OSError:
            code = await program.complain(f"{one}: can't find mount point")
    for path in shown:
        total, used = 100 * 1024 * 1024, 10 * 1024 * 1024
        node = program.files.mounts[path].node
        if isinstance(node, Directory) and node.size is not None:
            total, used = node.size // 1024, 0
        sizes = [_human(one * 1024) if human else str(one) for one in (total, used, total - used)]
        rows.append(("overlay" if path == "/" else "tmpfs", *sizes, f"{100 * used // max(total, 1)}%", path))  # type: ignore[arg-type]
    await program.write("".join(f"{a:<20} {b:>9} {c:>9} {d:>9} {e:>4} {f}\n" for a, b, c, d, e, f in rows))
    return code


COMMANDS: Final[dict[str, Command]] = {"df": _df, "du": _du, "ls": _ls, "stat": _stat}
