"""Commands that change files and their names, and those that list them.

Specified by: busybox coreutils (cp, df, du, ln, ls, mkdir, mv, rm, stat, touch …).
"""

from __future__ import annotations

import copy
import errno
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from fakekube.nodes.runtime.descriptors import Descriptor, Null, OpenFile, PipeReader
from fakekube.nodes.runtime.filesystem import BlockDevice, Device, Directory, File, Node, Place, Socket, Symlink
from fakekube.nodes.runtime.program import Command, Program, Usage, options, size


async def _refuse(program: Program, doing: str, path: str, error: OSError) -> int:
    return await program.complain(f"can't {doing} '{path}': {error.strerror}")


async def _mkdir(program: Program) -> int:
    flags, paths = options(program, "pm:v", ["parents", "mode="], aliases={"parents": "p", "mode": "m"})
    if not paths:
        raise Usage("usage: mkdir [-m MODE] [-p] DIRECTORY...")
    code = 0
    for path in paths:
        try:
            if "p" in flags:
                program.files.make_directories(path, program.cwd)
            else:
                program.files.make_directory(path, program.cwd)
        except OSError as error:
            code = await program.complain(f"can't create directory '{path}': {error.strerror}")
    return code


async def _rm(program: Program) -> int:
    flags, paths = options(program, "rRfiv", ["recursive", "force"], aliases={"recursive": "r", "R": "r", "force": "f"})
    code = 0
    for path in (one.rstrip("/") or one for one in paths):  # a link is removed even if a slash comes after it
        try:
            node = program.files.node(path, program.cwd, follow=False)
            if isinstance(node, Directory) and "r" not in flags:
                code = await program.complain(f"'{path}' is a directory")
                continue
            program.files.remove(path, program.cwd)
        except OSError as error:
            if not (error.errno == errno.ENOENT and "f" in flags):
                code = await _refuse(program, "remove", path, error)
    return code


async def _rmdir(program: Program) -> int:
    _, paths = options(program, "p")
    code = 0
    for path in paths:
        try:
            if program.files.directory(path, program.cwd).entries:
                raise OSError(errno.ENOTEMPTY, "Directory not empty")
            program.files.remove(path, program.cwd)
        except OSError as error:
            code = await program.complain(f"'{path}': {error.strerror}")
    return code


#: Major and minor number of a character device → its driver.
_DRIVERS: Final = {("1", "3"): "null", ("1", "5"): "zero", ("1", "8"): "random", ("1", "9"): "random"}


async def _mknod(program: Program) -> int:
    flags, words = options(program, "m:")
    if len(words) != 4 or words[1] not in ("b", "c", "u") or not (words[2].isdigit() and words[3].isdigit()):
        raise Usage("usage: mknod [-m MODE] NAME TYPE MAJOR MINOR")
    path, kind, *numbers = words
    if program.host.uid:
        return await program.complain(f"{path}: Operation not permitted")
    mode, driver = int(flags.get("m", "644"), 8), _DRIVERS.get((numbers[0], numbers[1]), "")
    made = BlockDevice(mode) if kind == "b" else Device(mode, name=driver)
    made.mtime = program.files.now()
    try:
        program.files.add(path, made, program.cwd)
    except OSError as error:
        return await program.complain(f"{path}: {error.strerror}")
    return 0


async def _touch(program: Program) -> int:
    flags, paths = options(program, "cd:t:r:am")
    code = 0
    for path in paths:
        try:
            found = program.files.place(path, program.cwd).node
            if found is None and "c" not in flags:
                program.files.create(path, program.cwd)
            elif found is not None:
                found.mtime = program.files.now()
        except OSError as error:
            code = await program.complain(f"{path}: {error.strerror}")
    return code


def _target(program: Program, operands: Sequence[str], flags: dict[str, str]) -> tuple[list[str], Callable[[str], str]]:
    """Returns the sources of cp and mv, and a function from a source to its new path."""
    if "t" in flags:
        sources, target = list(operands), flags["t"]
    else:
        if len(operands) < 2:
            raise Usage(f"usage: {program.name} SOURCE... DEST")
        *sources, target = operands
    found = program.files.place(target, program.cwd).node
    if isinstance(found, Directory) and "T" not in flags:
        return sources, lambda source: posixpath.join(target, posixpath.basename(source.rstrip("/")))
    if len(sources) > 1:
        raise Usage(f"target '{target}' is not a directory")
    return sources, lambda source: target


async def _mv(program: Program) -> int:
    flags, operands = options(program, "fint:Tv")
    try:
        sources, named = _target(program, operands, flags)
    except OSError as error:
        return await program.complain_about(operands[-1], error)
    code = 0
    for source in sources:
        try:
            program.files.move(source, named(source), program.cwd)
        except OSError as error:
            code = await _refuse(program, "rename", source, error)
    return code


async def _cp(program: Program) -> int:
    flags, operands = options(program, "rRafpt:TvLPHdu", ["recursive"], aliases={"recursive": "r", "R": "r", "a": "r"})
    try:
        sources, named = _target(program, operands, flags)
    except OSError as error:
        return await program.complain_about(operands[-1], error)
    follows_links = "L" in flags or flags.keys().isdisjoint("rdP")
    code = 0
    for source in sources:
        try:
            place = program.files.find_place(source, program.cwd, follow=follows_links or "H" in flags)
            if isinstance(place.node, Directory) and "r" not in flags:
                code = await program.complain(f"omitting directory '{source}'")
                continue
            _copy(program, place, named(source), follows_links=follows_links, replaces="f" in flags)
        except OSError as error:
            code = await program.complain(f"can't stat '{source}': {error.strerror}")
    return code


def _copy(program: Program, source: Place, target: str, *, follows_links: bool, replaces: bool) -> None:
    """Copies a file or a tree.

    Args:
        program: the command.
        source: what is copied.
        target: the path of the copy.
        follows_links: copy what links lead to in their place.
        replaces: links replace files that exist.

    Raises OSError.
    """
    files, cwd = program.files, program.cwd
    pending = [(source, target)]
    while pending:
        place, target = pending.pop()
        if follows_links and isinstance(place.node, Symlink):
            place = files.find_place(place.path)
        node = place.node
        if isinstance(node, Directory):
            entries = [(child, posixpath.join(target, child.name)) for child in reversed(files.children(place))]
            if not files.exists(target, cwd):  # it may become an entry of the directory, which is not copied
                files.make_directory(target, cwd, mode=node.mode)
            pending += entries
        elif isinstance(node, File):
            files.write(target, bytes(node.content), cwd, mode=node.mode)
        elif node is not None:
            made = copy.copy(node)
            made.space, made.taken = None, 0
            present = files.place(target, cwd, follow=False)
            if replaces and present.node is not None and not isinstance(present.node, Directory):
                files.remove_place(present)
            files.add(target, made, cwd)


async def _ln(program: Program) -> int:
    flags, operands = options(program, "sfnv")
    if not operands:
        raise Usage("usage: ln [-sf] TARGET LINK")
    target = operands[0]
    path = operands[1] if len(operands) > 1 else posixpath.basename(target)
    try:
        if isinstance(program.files.place(path, program.cwd).node, Directory) and "n" not in flags:
            path = posixpath.join(path, posixpath.basename(target))
        if "f" in flags and program.files.exists(path, program.cwd, follow=False):
            program.files.remove(path, program.cwd)
        made: Node = (
            Symlink(target=target, mtime=program.files.now()) if "s" in flags else program.files.node(target, program.cwd)
        )
        program.files.add(path, made, program.cwd)
    except OSError as error:
        return await program.complain_about(path, error)
    return 0


def _mode(text: str, old: int, *, directory: bool) -> int:
    """Applies the operand of chmod to a mode, and returns the new mode."""
    if re.fullmatch(r"[0-7]{1,4}", text):
        return int(text, 8)
    mode = old
    for clause in text.split(","):
        found = re.fullmatch(r"([ugoa]*)([-+=])([rwxXst]*)", clause)
        if found is None:
            raise Usage(f"invalid mode '{text}'")
        who = found[1] or "a"
        shifts = [shift for letter, shift in (("u", 6), ("g", 3), ("o", 0)) if letter in who or "a" in who]
        bits = sum({"r": 4, "w": 2, "x": 1, "X": 1 if directory or old & 0o111 else 0}.get(letter, 0) for letter in set(found[3]))
        for shift in shifts:
            if found[2] == "=":
                mode &= ~(7 << shift)
            mode = mode & ~(bits << shift) if found[2] == "-" else mode | bits << shift
    return mode


async def _change(program: Program, change: Callable[[str, Node], None]) -> int:
    flags, operands = options(program, "Rfvh", mixed=False)
    if len(operands) < 2:
        raise Usage(f"usage: {program.name} [-R] WHAT FILE...")
    code = 0
    for path in operands[1:]:
        try:
            below = program.files.walk(path, program.cwd) if "R" in flags else [(path, program.files.node(path, program.cwd))]
            for _, node in list(below):
                change(operands[0], node)
        except OSError as error:
            code = await program.complain_about(path, error)
    return code


async def _chmod(program: Program) -> int:
    def change(wanted: str, node: Node) -> None:
        node.mode = _mode(wanted, node.mode, directory=isinstance(node, Directory))

    return await _change(program, change)


async def _chown(program: Program) -> int:
    def change(wanted: str, node: Node) -> None:
        user, _, group = wanted.replace(".", ":").partition(":")
        numbers = {"root": 0, "nobody": 65534, "": -1}
        try:
            uid, gid = (numbers[one] if one in numbers else int(one) for one in (user, group))
        except ValueError:
            raise Usage(f"unknown user {user}") from None
        node.uid, node.gid = node.uid if uid < 0 else uid, node.gid if gid < 0 else gid

    return await _change(program, change)


async def _chgrp(program: Program) -> int:
    def change(wanted: str, node: Node) -> None:
        node.gid = int(wanted) if wanted.isdigit() else 0

    return await _change(program, change)


async def _basename(program: Program) -> int:
    if not program.args:
        raise Usage("usage: basename FILE [SUFFIX]")
    name = posixpath.basename(program.args[0].rstrip("/")) or "/"
    if len(program.args) > 1 and name != program.args[1]:
        name = name.removesuffix(program.args[1])
    await program.write(f"{name}\n")
    return 0


async def _dirname(program: Program) -> int:
    for path in program.args:
        await program.write(f"{posixpath.dirname(path.rstrip('/')) or ('/' if path.startswith('/') else '.')}\n")
    return 0


async def _readlink(program: Program) -> int:
    flags, paths = options(program, "fenm")
    code = 0
    for path in paths:
        try:
            if "f" in flags or "e" in flags:
                await program.write(f"{program.files.place(path, program.cwd).path}\n")
                continue
            node = program.files.node(path, program.cwd, follow=False)
        except OSError:
            code = 1
            continue
        if isinstance(node, Symlink):
            await program.write(f"{node.target}\n")
        else:
            code = 1
    return code


async def _realpath(program: Program) -> int:
    code = 0
    for path in program.args:
        try:
            await program.write(f"{program.files.place(path, program.cwd).path}\n")
        except OSError as error:
            code = await program.complain_about(path, error)
    return code


async def _mktemp(program: Program) -> int:
    import secrets

    flags, operands = options(program, "dup:tq")
    pattern = operands[0] if operands else posixpath.join(flags.get("p") or program.env.get("TMPDIR") or "/tmp", "tmp.XXXXXX")
    path = re.sub(r"X{3,}$", lambda found: secrets.token_hex(len(found[0]))[: len(found[0])], pattern)
    try:
        if "d" in flags:
            program.files.make_directory(path, program.cwd, mode=0o700)
        else:
            program.files.create(path, program.cwd, mode=0o600)
    except OSError as error:
        return await program.complain(f"{pattern}: {error.strerror}")
    await program.write(f"{path}\n")
    return 0


async def _truncate(program: Program) -> int:
    flags, paths = options(program, "s:c")
    if "s" not in flags:
        raise Usage("usage: truncate [-c] -s SIZE FILE...")
    for path in paths:
        data = program.files.read(path, program.cwd) if program.files.exists(path, program.cwd) else b""
        length = size(flags["s"])
        if length < 0 or length > program.files.space.capacity:
            return await program.complain(f"{path}: {os.strerror(errno.ENOSPC if length > 0 else errno.EINVAL)}")
        program.files.write(path, data[:length].ljust(length, b"\0"), program.cwd)
    return 0


#: The operands of dd that have an effect here, and those of which nothing can be seen.
_DD_OPERANDS: Final = frozenset({"if", "of", "bs", "ibs", "obs", "count", "skip", "seek", "conv", "status", "iflag", "oflag"})


async def _dd(program: Program) -> int:
    given = dict(arg.partition("=")[::2] for arg in program.args)
    if unknown := given.keys() - _DD_OPERANDS:
        raise Usage(f"invalid argument '{min(unknown)}'")
    block = size(given.get("bs") or given.get("ibs") or "512")
    count = size(given["count"]) if "count" in given else None
    try:
        source = program.open(given["if"]) if "if" in given else program.stdin.hold()
        target = _dd_target(program, given) if "of" in given else program.stdout.hold()
    except OSError as error:
        return await program.complain(f"can't open '{error.filename}': {error.strerror}")
    blocks = rest = 0
    try:
        for _ in range(size(given.get("skip", "0"))):
            if not await _copy_block(source, Null(), block):
                break
        while (count is None or blocks + rest < count) and (copied := await _copy_block(source, target, block)):
            blocks, rest = (blocks + 1, rest) if copied == block else (blocks, rest + 1)
    finally:
        source.close()
        target.close()
    if given.get("status") != "none":
        await program.stderr.write(f"{blocks}+{rest} records in\n{blocks}+{rest} records out\n".encode())
    return 0


def _dd_target(program: Program, given: dict[str, str]) -> Descriptor:
    """Opens the file that dd writes, at the position that `seek` says. Raises OSError."""
    path, start = given["of"], size(given.get("seek", "0")) * size(given.get("bs") or given.get("obs") or "512")
    keeps = "notrunc" in given.get("conv", "").split(",")
    if not keeps and not start:
        return program.open(path, write=True, read=False)
    target = program.open(path, write=True)
    if isinstance(target, OpenFile):
        if not keeps:
            del target.node.data[start:]
        target.seek(start)
    return target


async def _copy_block(source: Descriptor, target: Descriptor, length: int) -> int:
    """Copies a block, or what a pipe has of it. Returns the number of bytes."""
    copied = 0
    while copied < length and (part := await source.read(length - copied)):
        await target.write(part)
        copied += len(part)
        if isinstance(source, PipeReader):
            break
    return copied


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
    for path in paths or ["."]:
        try:
            found = list(program.files.walk(path, program.cwd))
        except OSError as error:
            return await program.complain_about(path, error)
        totals: Counter[str] = Counter()
        for top, node in reversed(found):  # entries come before their directory
            total = (size_of(node) + 4095) // 4096 * 4 + totals.pop(top.rstrip("/"), 0)
            totals[top.rpartition("/")[0]] += total
            if isinstance(node, Directory) and ("s" not in flags or top == path):
                await program.write(f"{_human(total * 1024) if 'h' in flags else total}\t{top}\n")
    return 0


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


COMMANDS: Final[dict[str, Command]] = {
    "basename": _basename,
    "chgrp": _chgrp,
    "chmod": _chmod,
    "chown": _chown,
    "cp": _cp,
    "dd": _dd,
    "dirname": _dirname,
    "ln": _ln,
    "mkdir": _mkdir,
    "mknod": _mknod,
    "mktemp": _mktemp,
    "mv": _mv,
    "readlink": _readlink,
    "realpath": _realpath,
    "rm": _rm,
    "rmdir": _rmdir,
    "touch": _touch,
    "truncate": _truncate,
    "ls": _ls,
    "stat": _stat,
    "du": _du,
    "df": _df,
}
