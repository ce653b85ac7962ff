"""Commands that change files and their names.

Specified by: busybox coreutils (cp, ln, mkdir, mv, rm, touch …).
"""

from __future__ import annotations

import copy
import errno
import os
import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final

from fakekube.nodes.runtime.descriptors import Descriptor, Null, OpenFile, PipeReader
from fakekube.nodes.runtime.filesystem import BlockDevice, Device, Directory, File, Node, Place, Symlink, apply_mode
from fakekube.nodes.runtime.program import Command, Program, Usage, options, size


async def _refuse(program: Program, doing: str, path: str, error: OSError) -> int:
    return await program.complain(f"can't {doing} '{path}': {error.strerror}")


async def _mkdir(program: Program) -> int:
    flags, paths = options(program, "pm:v", ["parents", "mode="], aliases={"parents": "p", "mode": "m"})
    if not paths:
        raise Usage("usage: mkdir [-m MODE] [-p] DIRECTORY...")
    code, mode = 0, 0o777 & ~program.umask
    for path in paths:
        try:
            if "p" in flags:
                made = program.files.make_directories(path, program.cwd, mode=mode)
            else:
                made = program.files.make_directory(path, program.cwd, mode=mode)
            if "m" in flags:
                made.mode = _mode(flags["m"], 0o777, directory=True)
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
                program.files.create(path, program.cwd, mode=0o666 & ~program.umask)
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
    flags, operands = options(program, "rRafpt:TvLPHdu", ["recursive"], aliases={"recursive": "r", "R": "r"})
    flags = {**flags, "r": "", "p": ""} if "a" in flags else flags
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
            umask = 0 if "p" in flags else program.umask
            failed = _copy(program, place, named(source), follows_links=follows_links, replaces="f" in flags, umask=umask)
            for path, reason in failed:
                code = await program.complain(f"can't create '{path}': {reason.strerror}")
        except OSError as error:
            code = await program.complain(f"can't stat '{source}': {error.strerror}")
    return code


def _copy(
    program: Program, source: Place, target: str, *, follows_links: bool, replaces: bool, umask: int
) -> list[tuple[str, OSError]]:
    """Copies a file or a tree. Returns the paths that could not be created, with the errors.

    Args:
        program: the command.
        source: what is copied.
        target: the path of the copy.
        follows_links: copy what links lead to in their place.
        replaces: links replace files that exist.
        umask: the permissions that copies do not get.
    """
    files, cwd = program.files, program.cwd
    pending, failed = [(source, target)], list[tuple[str, OSError]]()
    while pending:
        place, target = pending.pop()
        try:
            if follows_links and isinstance(place.node, Symlink):
                place = files.find_place(place.path)
            if isinstance(place.node, Directory):
                entries = [(child, posixpath.join(target, child.name)) for child in reversed(files.children(place))]
                if not files.exists(target, cwd):  # it may become an entry of the directory, which is not copied
                    files.make_directory(target, cwd, mode=place.node.mode & ~umask)
                pending += entries
            elif place.node is not None:
                _copy_node(program, place.node, target, replaces=replaces, umask=umask)
        except OSError as error:
            failed.append((target, error))
    return failed


def _copy_node(program: Program, node: Node, target: str, *, replaces: bool, umask: int) -> None:
    """Copies a file, a link or a device; see `_copy`. Raises OSError."""
    files, cwd = program.files, program.cwd
    if isinstance(node, File):
        files.write(target, bytes(node.content), cwd, mode=node.mode & ~umask)
        return
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


def _mode(text: str, old: int, *, directory: bool, umask: int = 0) -> int:
    """Applies the operand of chmod to a mode, see `apply_mode`. Raises Usage."""
    try:
        return apply_mode(text, old, directory=directory, umask=umask)
    except ValueError as error:
        raise Usage(str(error)) from None


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
        node.mode = _mode(wanted, node.mode, directory=isinstance(node, Directory), umask=program.umask)

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
        program.write_file(path, data[:length].ljust(length, b"\0"))
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
}
