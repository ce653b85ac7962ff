"""Finds the programs that commands name.

Specified by: POSIX.1-2017, Shell & Utilities, 2.9.1.1 (Command Search and Execution); execve(2).
"""

from __future__ import annotations

import re

from fakekube.runtime.filesystem import File, FileSystem, Node

__all__ = ["ProgramNotFound", "find_program", "shebang"]


class ProgramNotFound(Exception):
    """There is no program of this name, or it cannot be run."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def find_program(name: str, files: FileSystem, path: str, cwd: str) -> str | None:
    """Returns the path of a program that can be run. Raises ProgramNotFound if there is a file that cannot."""
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
    """Returns the interpreter that the first line of a script names."""
    found = re.match(rb"#!\s*(\S+)[ \t]*([^\n]*)", content[:256])
    if found is None:
        return None
    return [part.decode("utf-8", "surrogateescape") for part in (found[1], found[2].strip()) if part]
