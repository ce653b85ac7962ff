"""Finds the program for the name of a command.

Specified by: POSIX.1-2017, Shell & Utilities, 2.9.1.1 (Command Search and Execution); execve(2).
"""

from __future__ import annotations

import re

from fakekube.nodes.runtime.filesystem import File, FileSystem, Node

__all__ = ["ProgramNotFound", "find_program", "shebang"]


class ProgramNotFound(Exception):
    """There is no such program, or it cannot be executed."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def find_program(name: str, files: FileSystem, path: str, cwd: str) -> str | None:
    """Returns the path of an executable program; None if there is none. Raises ProgramNotFound for a path without permission."""
    candidates = [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in path.split(":")]
    for candidate in candidates:
        try:
            node: Node | None = files.place(candidate, cwd).node
        except OSError:
            continue
        if isinstance(node, File) and node.mode & 0o111:
            return candidate
        if node is not None and "/" in name:
            raise ProgramNotFound(f"{name}: Permission denied", 126)
    return None


def shebang(content: bytes) -> list[str] | None:
    """Returns the interpreter in the first line of a script, and its argument; None if there is none."""
    found = re.match(rb"#!\s*(\S+)[ \t]*([^\n]*)", content[:256])
    if found is None:
        return None
    return [part.decode("utf-8", "surrogateescape") for part in (found[1], found[2].strip()) if part]
