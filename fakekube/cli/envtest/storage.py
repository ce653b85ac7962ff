"""Keeps the objects of `kube_apiserver` in etcd's data folder while no API server runs.

Suites may stop kube-apiserver and start it again with the same etcd, and expect that the objects still exist. The API server
gets the path of the data folder from etcd, writes its state there when a signal ends it, and reads it when it starts. After
SIGKILL there is no state, and the next API server starts empty.

Invariant: a state is read at most once, and replaced atomically.

Specified by: k8s.io/apiserver/pkg/storage/etcd3 (objects are durable).
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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
