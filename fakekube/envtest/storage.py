"""Keeps the objects of the stand-in for kube-apiserver in etcd's data folder while no API server runs.

A suite may stop kube-apiserver and start it again with the same etcd, and expects its objects then. The API server
asks etcd for its data folder, writes the state there when a signal ends it, and reads it when it starts. After SIGKILL
there is nothing to be read, and the next API server is a fresh one.

Invariant: a state is read at most once, and never half written.

Specified by: k8s.io/apiserver/pkg/storage/etcd3 (what is written is there after a restart).
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

__all__ = ["data_folder", "restore", "save"]

FILE = "fakekube-state.gz"
PATH = "/fakekube/data-dir"
"""Of the stand-in for etcd; see `etcd.py`."""

_TIMEOUT = 0.3
"""Seconds. Both run on one machine."""
_ANSWER_BYTES = 8192


def data_folder(servers: str) -> Path | None:
    """Returns the data folder of the first of --etcd-servers; None if it is no stand-in, or has no such folder."""
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
    """Gives a cluster the state in a folder, if there is one, and removes it. Raises StateError and OSError."""
    path = folder / FILE
    if path.exists():
        text = path.read_bytes()
        path.unlink()
        cluster.load(text)


def save(cluster: Cluster, folder: Path) -> None:
    """Writes the state of a cluster to a folder; does nothing if it cannot be written, as after etcd's end."""
    temporary = folder / f".{FILE}-{os.getpid()}"
    with suppress(OSError):
        cluster.save(temporary, compact=True)
        os.replace(temporary, folder / FILE)
