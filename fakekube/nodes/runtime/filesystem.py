"""The file system of a container, in memory: directories, files, symbolic links and mounts.

Paths are resolved as in Linux; errors are an OSError with the errno and the text of Linux. A mount hides what the image has at
its path, and several containers may mount the same directory.

Invariant: a node is an entry of at most one directory; a mounted directory is an entry of none, but for one that is
bound to another path.

Specified by: path_resolution(7), mount(2).
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fakekube.net.streaming.kubelet_api import Connection

#: The maximum number of symbolic links in a path.
_MAX_LINKS = 40
#: The maximum numbers of bytes in a path (with its end, as in C) and in a name.
_PATH_MAX, _NAME_MAX = 4096, 255


def oserror(number: int, path: str = "") -> OSError:
    """Returns the error with this errno, as the operating system raises it."""
    return OSError(number, os.strerror(number), path)


class Space:
    """The bytes that the files of a container may have.

    Args:
        capacity: in bytes.
    """

    __slots__ = ("capacity", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0

    def take(self, size: int, path: str = "") -> None:
        """Reserves bytes. Raises OSError if there are not so many."""
        if self.used + size > self.capacity:
            raise oserror(errno.ENOSPC, path)
        self.used += size


#: The capacity of a file system without a bound.
_UNBOUNDED = 1 << 62
#: The bit of a directory's mode whose new entries belong to the group of the directory.
SET_GROUP = 0o2000
#: The space of an entry of a directory, in bytes.
_BLOCK = 4096


@dataclass(slots=True, eq=False)
class Node:
    """An entry of a directory. Times are seconds since 1970."""

    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime: float = 0.0
    space: Space | None = None
    """From which `taken` bytes are reserved."""
    taken: int = 0

    def take(self, space: Space, size: int) -> None:
        """Reserves bytes until the node ends. Raises OSError."""
        space = self.space or space
        space.take(size)
        self.space, self.taken = space, self.taken + size

    def __del__(self) -> None:
        if self.space is not None:
            self.space.used -= self.taken


@dataclass(slots=True, eq=False)
class File(Node):
    """A regular file."""

    data: bytearray = field(default_factory=bytearray)
    source: Callable[[], bytes] | None = None
    """Computes the content for each read, as in /proc; None if the content is `data`."""

    @property
    def content(self) -> bytes | bytearray:
        """The current content."""
        return self.data if self.source is None else self.source()


@dataclass(slots=True, eq=False)
class Device(Node):
    """A character device: null, zero, random, one that names a descriptor of the process, or "" for one without a driver."""

    name: str = "null"


@dataclass(slots=True, eq=False)
class BlockDevice(Node):
    """A block device, which has no driver."""


@dataclass(slots=True, eq=False)
class Socket(Node):
    """A socket of the domain UNIX."""

    mode: int = 0o755
    accept: Callable[[], Connection] | None = None
    """Connects to the program that listens; None if none does. Raises OSError."""


@dataclass(slots=True, eq=False)
class MountNamespace(File):
    """The file /proc/PID/ns/mnt, by which programs enter a mount namespace."""

    files: Callable[[], FileSystem | None] = lambda: None
    """Returns the files of the namespace; None if it has ended."""


@dataclass(slots=True, eq=False)
class Symlink(Node):
    """A symbolic link."""

    target: str = ""
    mode: int = 0o777


@dataclass(slots=True, eq=False)
class Directory(Node):
    """A directory."""

    own: dict[str, Node] = field(default_factory=dict)
    mode: int = 0o755
    kind: str = ""
    """The type of a file system of its own, such as tmpfs."""
    size: int | None = None
    """The size of its file system in bytes, if that has a limit of its own."""
    source: Callable[[], dict[str, Node]] | None = None
    """Computes the entries for each access; None if they are `own`."""

    @property
    def entries(self) -> dict[str, Node]:
        """Name → node."""
        return self.own if self.source is None else self.source()


@dataclass(slots=True, frozen=True)
class Mount:
    """A directory or file that is mounted."""

    node: Node
    read_only: bool = False


class Place(NamedTuple):
    """The result of resolving a path."""

    path: str
    """Absolute, without symbolic links before the last part."""
    node: Node | None
    """None if there is no such entry; its directory exists then."""
    read_only: bool
    parent: Directory | None
    """The directory that has the entry; None for the root."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(self.path)


class _Entry(NamedTuple):
    """One step in the resolution of a path."""

    name: str
    node: Node | None
    read_only: bool


class FileSystem:
    """The file system of one container.

    Args:
        root: the root directory of the image.
        now: returns the time for new files.
        space: for the data of files.
    """

    def __init__(self, root: Directory, now: Callable[[], float], space: Space | None = None) -> None:
        self.root = root
        self.space = space or Space(_UNBOUNDED)
        self.now = now
        self.mounts: dict[str, Mount] = {"/": Mount(root, read_only=False)}
        self._mounted_names: set[str] = set()
        """The last parts of the paths of mounts: for all other names there is no need to know the path."""

    def mount(self, path: str, node: Node, *, read_only: bool = False) -> None:
        """Mounts a directory or file at a path, which is created if it does not exist."""
        path = posixpath.normpath(path)
        parent = self.make_directories(posixpath.dirname(path))
        if posixpath.basename(path) not in parent.entries and parent.source is None:
            parent.own[posixpath.basename(path)] = Directory(mtime=self.now()) if isinstance(node, Directory) else File()
        self.mounts[path] = Mount(node, read_only)
        self._mounted_names.add(posixpath.basename(path))

    def change_root(self, path: str, cwd: str = "/") -> FileSystem:
        """Returns the file system whose root is a directory of this one, with the mounts below it (chroot). Raises OSError."""
        place = self.find_place(path, cwd)
        if not isinstance(place.node, Directory):
            raise oserror(errno.ENOTDIR, path)
        made = FileSystem(place.node, self.now, self.space)
        made.mounts["/"] = Mount(place.node, place.read_only)
        below = place.path.rstrip("/")
        for mounted, mount in self.mounts.items():
            if mounted.startswith(f"{below}/") and mounted != "/":
                made.mounts[mounted.removeprefix(below)] = mount
                made._mounted_names.add(posixpath.basename(mounted))
        return made

    # --- Paths --------------------------------------------------------------------------------------------------------

    def place(self, path: str, cwd: str = "/", *, follow: bool = True) -> Place:
        """Resolves a path. A link at its end is followed with `follow`, or if a slash comes after it.

        Raises OSError if a directory in it does not exist.
        """
        if not path:
            raise oserror(errno.ENOENT, path)
        follow = follow or path.endswith("/")
        _check_length(path)
        parts = _split(posixpath.join(cwd, path))
        links = 0
        root = self.mounts["/"]
        trail = [_Entry("", root.node, root.read_only)]
        while parts:
            name = parts.pop()
            if name == "..":
                if len(trail) > 1:
                    trail.pop()
                continue
            at = trail[-1].node
            if at is None:
                raise oserror(errno.ENOENT, path)
            if not isinstance(at, Directory):
                raise oserror(errno.ENOTDIR, path)
            if len(name) > _NAME_MAX:
                raise oserror(errno.ENAMETOOLONG, path)
            child = self._child(trail, at, name)
            if isinstance(child.node, Symlink) and (parts or follow):
                links += 1
                if links > _MAX_LINKS:
                    raise oserror(errno.ELOOP, path)
                target = child.node.target
                parts += _split(target)
                if target.startswith("/"):
                    trail = trail[:1]
                continue
            trail.append(child)
        found = trail[-1]
        if path.endswith("/") and found.node is not None and not isinstance(found.node, Directory):
            raise oserror(errno.ENOTDIR, path)
        parent = trail[-2].node if len(trail) > 1 else None
        return Place(_path_of(trail), found.node, found.read_only, parent if isinstance(parent, Directory) else None)

    def _child(self, trail: Sequence[_Entry], directory: Directory, name: str) -> _Entry:
        mount = self.mounts.get(f"{_path_of(trail).rstrip('/')}/{name}") if name in self._mounted_names else None
        if mount is not None:
            return _Entry(name, mount.node, mount.read_only)
        return _Entry(name, directory.entries.get(name), trail[-1].read_only)

    def children(self, place: Place) -> list[Place]:
        """Returns the entries of a directory, including mounts, sorted by name. Raises OSError.

        A tree of directories is walked with it: no path is resolved again.
        """
        directory = place.node
        if not isinstance(directory, Directory):
            raise oserror(errno.ENOTDIR, place.path)
        below, entries, found = place.path.rstrip("/"), directory.entries, []
        for name in sorted(entries):
            path = f"{below}/{name}"
            mount = self.mounts.get(path) if name in self._mounted_names else None
            node, read_only = (mount.node, mount.read_only) if mount else (entries[name], place.read_only)
            found.append(Place(path, node, read_only, directory))
        return found

    def find_place(self, path: str, cwd: str = "/", *, follow: bool = True) -> Place:
        """Resolves the path of a node. Raises OSError."""
        found = self.place(path, cwd, follow=follow)
        if found.node is None:
            raise oserror(errno.ENOENT, path)
        return found

    def require_present(self, place: Place, path: str) -> Node:
        """Returns the node of a place that was resolved earlier. Raises OSError if it has been removed since."""
        parent, node = place.parent, place.node
        is_kept = parent is None or parent.source is not None or place.path in self.mounts or parent.own.get(place.name) is node
        if node is None or not is_kept:
            raise oserror(errno.ENOENT, path)
        _check_length(path)
        return node

    def node(self, path: str, cwd: str = "/", *, follow: bool = True) -> Node:
        """Returns the node at a path. Raises OSError."""
        node = self.find_place(path, cwd, follow=follow).node
        assert node is not None
        return node

    def mount_of(self, path: str, cwd: str = "/") -> str:
        """Returns the path of the mount that has a path. Raises OSError."""
        at = self.find_place(path, cwd).path
        while at not in self.mounts:
            at = posixpath.dirname(at)
        return at

    def kind_of(self, path: str, cwd: str = "/") -> str:
        """Returns the type of the file system at a path. Raises OSError."""
        at = self.mount_of(path, cwd)
        node = self.mounts[at].node
        return (node.kind if isinstance(node, Directory) else "") or ("overlay" if at == "/" else "ext4")

    def directory(self, path: str, cwd: str = "/") -> Directory:
        """Returns the directory at a path. Raises OSError."""
        found = self.node(path, cwd)
        if not isinstance(found, Directory):
            raise oserror(errno.ENOTDIR, path)
        return found

    def exists(self, path: str, cwd: str = "/", *, follow: bool = True) -> bool:
        """Reports whether a path exists."""
        try:
            return self.place(path, cwd, follow=follow).node is not None
        except OSError:
            return False

    def list(self, path: str, cwd: str = "/") -> dict[str, Node]:
        """Returns the entries of a directory, including mounts, sorted by name. Raises OSError."""
        return {child.name: child.node for child in self.children(self.find_place(path, cwd)) if child.node is not None}

    def walk(self, path: str, cwd: str = "/") -> Iterator[tuple[str, Node]]:
        """Yields the paths and nodes of a tree, beginning with the given path. Raises OSError."""
        pending = [(path, self.find_place(path, cwd, follow=False))]
        while pending:
            path, place = pending.pop()
            _check_length(path)
            if place.node is not None:
                yield path, place.node
            if isinstance(place.node, Directory):
                below = path.rstrip("/")
                pending += [(f"{below}/{child.name}", child) for child in reversed(self.children(place))]

    # --- Reads and writes ---------------------------------------------------------------------------------------------

    def read(self, path: str, cwd: str = "/") -> bytes:
        """Returns the content of a file. Raises OSError."""
        found = self.node(path, cwd)
        if isinstance(found, Directory):
            raise oserror(errno.EISDIR, path)
        return bytes(found.content) if isinstance(found, File) else b""

    def write(self, path: str, data: bytes, cwd: str = "/", *, mode: int = 0o644) -> File:
        """Writes a file, which is created if necessary. Raises OSError."""
        found = self.create(path, cwd, mode=mode)
        if not isinstance(found, File):
            raise oserror(errno.EINVAL, path)
        self.reserve(found, len(data), path)
        found.data[:] = data
        found.mtime = self.now()
        return found

    def reserve(self, file: File, length: int, path: str = "") -> None:
        """Reserves the space for a length of a file. Raises OSError."""
        growth = length + _BLOCK - max(file.taken, len(file.data) + _BLOCK)
        if growth > 0:
            file.take(self.space, growth)
        elif length < len(file.data) and file.space is not None:
            freed = min(len(file.data) - length, file.taken - _BLOCK)
            if freed > 0:
                file.taken -= freed
                file.space.used -= freed

    def create(self, path: str, cwd: str = "/", *, mode: int = 0o644) -> Node:
        """Returns the file at a path for writing; creates it if it does not exist. Raises OSError."""
        place = self.place(path, cwd)
        if isinstance(place.node, Directory) or (place.node is None and path.endswith("/")):
            raise oserror(errno.EISDIR, path)
        if isinstance(place.node, Device):
            return place.node
        if place.read_only:
            raise oserror(errno.EROFS, path)
        if place.node is not None:
            if isinstance(place.node, File) and place.node.source is not None:
                raise oserror(errno.EACCES, path)
            return place.node
        made = File(mode=mode, mtime=self.now())
        self.add(path, made, cwd)
        return made

    def add(self, path: str, node: Node, cwd: str = "/") -> None:
        """Adds a node at a path that does not exist. Raises OSError."""
        place = self.place(path.rstrip("/") or "/", cwd, follow=False)
        if place.node is not None:
            raise oserror(errno.EEXIST, path)
        if path.endswith("/") and not isinstance(node, Directory):
            raise oserror(errno.ENOENT, path)
        if place.read_only or place.parent is None or place.parent.source is not None:
            raise oserror(errno.EROFS, path)
        if node.space is None:
            node.take(self.space, _BLOCK)
        if place.parent.mode & SET_GROUP:
            node.gid = place.parent.gid
            node.mode |= SET_GROUP if isinstance(node, Directory) else 0
        place.parent.own[place.name] = node
        place.parent.mtime = self.now()

    def make_directory(self, path: str, cwd: str = "/", *, mode: int = 0o755) -> Directory:
        """Creates a directory. Raises OSError."""
        made = Directory(mode=mode, mtime=self.now())
        self.add(path, made, cwd)
        return made

    def make_directories(self, path: str, cwd: str = "/", *, mode: int = 0o755) -> Directory:
        """Creates a directory and its parents, as far as they do not exist, all with the mode. Raises OSError."""
        full = posixpath.normpath(posixpath.join(cwd, path))
        at = ""
        for part in [part for part in full.split("/") if part]:
            at = f"{at}/{part}"
            if not self.exists(at):
                self.make_directory(at, mode=mode)
        return self.directory(at or "/")

    def remove(self, path: str, cwd: str = "/") -> None:
        """Removes a file, a link, or a directory with its content. Raises OSError."""
        place = self.find_place(path.rstrip("/") or "/", cwd, follow=False)
        if path.endswith("/") and not isinstance(place.node, Directory):
            raise oserror(errno.ENOTDIR, path)
        self.remove_place(place)

    def remove_place(self, place: Place) -> None:
        """Removes the node of a resolved path. Raises OSError."""
        path = place.path
        if place.parent is None or path in self.mounts:
            raise oserror(errno.EBUSY, path)
        if place.read_only or place.parent.source is not None:
            raise oserror(errno.EROFS, path)
        if any(mounted.startswith(f"{path}/") for mounted in self.mounts):
            raise oserror(errno.EBUSY, path)
        del place.parent.own[place.name]
        place.parent.mtime = self.now()

    def move(self, source: str, target: str, cwd: str = "/") -> None:
        """Moves a node to a path, and replaces an existing node there. Raises OSError."""
        old = self.place(source, cwd, follow=False)
        if old.node is None:
            raise oserror(errno.ENOENT, source)
        new = self.place(target, cwd, follow=False)
        if new.path == old.path:
            return
        if new.path.startswith(f"{old.path}/"):
            raise oserror(errno.EINVAL, target)
        if target.endswith("/") and not isinstance(old.node, Directory):
            raise oserror(errno.ENOTDIR, target)
        if isinstance(new.node, Directory) and new.node.entries:
            raise oserror(errno.ENOTEMPTY, target)
        if new.read_only or new.parent is None or new.parent.source is not None:
            raise oserror(errno.EROFS, target)
        self.remove(source, cwd)
        new.parent.own[new.name] = old.node


def apply_mode(text: str, old: int, *, directory: bool = False, umask: int = 0) -> int:
    """Applies the operand of chmod to a mode, and returns the new mode. Raises ValueError.

    Args:
        text: an octal number, or clauses such as `u+x,go=r`.
        old: the present mode.
        directory: whether it is that of a directory, which `X` concerns.
        umask: the permissions that a clause for nobody in particular does not change.
    """
    if re.fullmatch(r"[0-7]{1,4}", text):
        return int(text, 8)
    mode = old
    for clause in text.split(","):
        found = re.fullmatch(r"([ugoa]*)([-+=])([rwxXst]*)", clause)
        if found is None:
            raise ValueError(f"invalid mode '{text}'")
        who = found[1] or "a"
        bits = sum({"r": 4, "w": 2, "x": 1, "X": 1 if directory or old & 0o111 else 0}.get(letter, 0) for letter in set(found[3]))
        for letter, shift in (("u", 6), ("g", 3), ("o", 0)):
            if letter not in who and "a" not in who:
                continue
            changed = bits << shift & (0o777 if found[1] else ~umask)
            if found[2] == "=":
                mode &= ~(7 << shift)
            mode = mode & ~changed if found[2] == "-" else mode | changed
    return mode


def _split(path: str) -> list[str]:
    """Returns the parts of a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part and part != "."]


def _path_of(trail: Sequence[_Entry]) -> str:
    return "/".join(entry.name for entry in trail) or "/"


def _check_length(path: str) -> None:
    """Raises OSError for a path that is too long."""
    if len(path) >= _PATH_MAX // 4 and len(path.encode("utf-8", "surrogatepass")) >= _PATH_MAX:
        raise oserror(errno.ENAMETOOLONG, path)
