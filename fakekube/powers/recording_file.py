"""Starts recordings of a cluster of this process: selects the resources and opens the file.

Invariant: a file that was opened here is closed when the recording stops, also if it cannot start.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from fakekube.base.private_files import open_private
from fakekube.powers.change_recorder import ChangeRecorder
from fakekube.powers.recording import NOT_RECORDED

if TYPE_CHECKING:
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.controllers.client import Client

__all__ = ["Recording", "start_recording"]


class Recording:
    """A recording in progress; a context manager that stops it."""

    def __init__(self, recorder: ChangeRecorder, file: IO[bytes], *, closes: bool) -> None:
        self._recorder = recorder
        self._file = file
        self._closes = closes

    @property
    def changes(self) -> int:
        """The number of changes written so far."""
        return self._recorder.changes

    @property
    def finished(self) -> bool:
        """Reports whether the recording was stopped."""
        return self._recorder.stopped

    def flush(self) -> None:
        """Writes the changes so far to the file."""
        self._recorder.flush()
        if not self._file.closed:
            self._file.flush()

    def stop(self) -> None:
        """Ends the recording. May be called twice."""
        self._recorder.stop()
        if self._closes:
            self._file.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()


def start_recording(
    backend: Backend, client: Client, target: Path | str | IO[bytes], *, kinds: Sequence[str], namespace: str | None, redact: bool
) -> Recording:
    """Starts a recording; the arguments are those of `Cluster.record`. Raises OSError and UnknownResource."""
    wanted = [client.resource(name) for name in kinds] or [
        one for one in client.listable_resources() if one.group_resource not in NOT_RECORDED
    ]
    resources = [one for one in wanted if namespace is None or one.namespaced]
    closes = isinstance(target, str | Path)
    file = open_private(target) if isinstance(target, str | Path) else target
    try:
        recorder = ChangeRecorder(backend, resources, file, namespace=namespace, redact=redact)
    except BaseException:
        if closes:
            file.close()
        raise
    return Recording(recorder, file, closes=closes)
