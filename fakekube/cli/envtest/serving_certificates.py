"""The certificate and the key in --cert-dir: created and written if they do not exist.

Invariant: files are replaced atomically, and servers that share a folder use a certificate and a key that match. The lock is on
the folder itself, so that it ends with the process and leaves no file.

Specified by: k8s.io/apiserver/pkg/server/options/serving.go (MaybeDefaultWithSelfSignedCerts).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fakekube.apiserver.auth.options import OptionError

CERTIFICATE, KEY = "apiserver.crt", "apiserver.key"


def serving_files(folder: Path, hosts: Sequence[str]) -> tuple[Path, Path]:
    """Returns the paths of certificate and key; creates both files if one is missing. Raises OptionError.

    Args:
        folder: the value of --cert-dir.
        hosts: names and addresses for a new certificate.
    """
    paths = (folder / CERTIFICATE, folder / KEY)
    if all(path.is_file() for path in paths):
        return paths
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder):
            if not all(path.is_file() for path in paths):
                _write(paths, hosts)
    except OSError as error:
        raise OptionError(f"error creating self-signed certificates: {error.filename or folder}: {error.strerror}") from None
    return paths


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Holds an exclusive lock on a folder within the block. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(paths: tuple[Path, Path], hosts: Sequence[str]) -> None:
    """Writes a new certificate and its key."""
    from fakekube.net.certificates import authority

    issued = authority().issue_server(*hosts)
    for path, text in zip(paths, (issued.pem + authority().pem, issued.key_pem), strict=True):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(name, path)
