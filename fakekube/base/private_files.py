"""Writes files with tokens, keys or data of Secrets: only their owner may read them.

Invariant: such a file has the mode 0600 from the moment it exists; `write_private` gives it its name when it is complete.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO


def write_private(path: Path | str, data: bytes | str) -> None:
    """Writes a file that only its owner may read. A file of that name, or a symbolic link, is replaced.

    What is not a regular file (`/dev/stdout`, a named pipe) is written as it is. Raises OSError.
    """
    path = Path(path)
    content = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    import tempfile

    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # 0600
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def open_private(path: Path | str, *, append: bool = False) -> IO[bytes]:
    """Opens a file that only its owner may read, for writing; it is made if it is missing, else emptied unless `append`.

    A regular file with a wider mode is restricted to its owner before anything is written. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
    descriptor = os.open(path, flags, 0o600)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) and mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return open(descriptor, "ab" if append else "wb")
