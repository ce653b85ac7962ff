"""What an API server keeps in files: its objects in etcd's data folder, and a certificate and its key in --cert-dir.

Suites may stop kube-apiserver and start it again with the same etcd, and expect that the objects still exist. The API server
gets the path of the data folder from etcd, writes its state there when a signal ends it, and reads it when it starts. After
SIGKILL there is no state, and the next API server starts empty.

Invariants: a state is read at most once. Files are replaced atomically, and servers that share a folder use a certificate and a
key that match. The lock is on the folder itself, so that it ends with the process and leaves no file.

Specified by: k8s.io/apiserver/pkg/storage/etcd3 (objects are durable), pkg/server/options/serving.go
(MaybeDefaultWithSelfSignedCerts).
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fakekube.apiserver.auth.options import OptionError

if TYPE_CHECKING:
    from fakekube.cluster import Cluster


FILE = "fakekube-state.gz"
PATH = "/fakekube/data-dir"
"""The path at which `etcd` serves the path of its data folder."""

_TIMEOUT = 0.3
"""Seconds. Both run on one machine."""
_ANSWER_BYTES = 8192


def data_folder(servers: str) -> Path | None:
    """Returns the data folder of the first of --etcd-servers; None if that is not `etcd`, or the folder does not exist."""
    parts = urlsplit(servers.partition(",")[0])
    try:
        address = (parts.hostname or "", parts.port or 2379)
        if parts.scheme != "http" or not address[0]:
            return None
        with socket.create_connection(address, _TIMEOUT) as connection:
            connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while len(answer) < _ANSWER_BYTES and (data := connection.recv(_ANSWER_BYTES)):
                answer += data
    except (OSError, ValueError):
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    folder = Path(os.fsdecode(body))
    return folder if b" 200 " in head[:13] and folder.is_absolute() and folder.is_dir() else None


def restore(cluster: Cluster, folder: Path) -> None:
    """Loads the state in a folder into a cluster and deletes the file; does nothing if there is none. Raises StateError and
    OSError."""
    path = folder / FILE
    if path.exists():
        text = path.read_bytes()
        path.unlink()
        cluster.load(text)


def save(cluster: Cluster, folder: Path) -> None:
    """Writes the state of a cluster to a folder; ignores errors, because the folder may be deleted already."""
    temporary = folder / f".{FILE}-{os.getpid()}"
    with suppress(OSError):
        cluster.save(temporary, compact=True)
        os.replace(temporary, folder / FILE)


# --- The certificate and the key in --cert-dir ------------------------------------------------------------------------


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
