"""`fakekube show FILE`: opens a trace file in a browser; of a saved state or a recording it makes one first.

Invariant: the file is not changed; nothing is served.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from fakekube.cli.arguments import Options, UsageError

#: The number of steps of the clock after which the rest of a recording is played at once.
_MAX_STEPS = 100_000


def show(options: Options) -> int:
    """Opens a file, and returns the exit code. Raises UsageError."""
    assert options.file is not None
    path = options.file
    try:
        text = path.read_bytes()
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}") from None
    from fakekube.powers.state import StateError
    from fakekube.powers.trace import is_trace_text, trace_in

    if not text.strip():
        raise UsageError(f"{path}: the file is empty")
    if is_trace_text(text):
        if options.output is not None:
            raise UsageError(f"--output has no effect: {path} is a trace file")
        try:
            trace_in(text)
        except StateError as problem:
            raise UsageError(f"{path}: {problem}") from None
    else:
        path = _trace_of(path, text, options.output)
    open_in_browser(path.absolute().as_uri())
    return 0


def open_in_browser(address: str) -> None:
    """Opens an address; prints it if there is no browser."""
    import webbrowser

    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if opened:
        print(f"fakekube: opened {address}", file=sys.stderr)
    else:
        print(f"fakekube: there is no browser; open {address}", file=sys.stderr)


def _trace_of(path: Path, text: bytes, output: Path | None) -> Path:
    """Makes the trace file of a saved state or a recording. Raises UsageError."""
    from fakekube.apimachinery.data import DEFAULT
    from fakekube.cluster import Cluster
    from fakekube.powers.recording import RecordingError
    from fakekube.powers.state import StateError, is_state_text

    with Cluster(profile="apiserver", version=version_of(text) or DEFAULT) as cluster:
        cluster.clock.hold()
        cluster.keep_changes()
        try:
            if is_state_text(text):
                cluster.load(text)
            else:
                _play(cluster, text)
        except (LookupError, StateError, RecordingError) as problem:
            raise UsageError(f"{path}: {problem}") from None
        cluster.test = {"id": path.name, "outcome": "", "message": ""}
        found = output or Path(tempfile.mkdtemp(prefix="fakekube-")) / f"{path.stem}.html"
        try:
            return cluster.trace(found)
        except OSError as problem:
            raise UsageError(f"{found}: {problem.strerror}") from None


def _play(cluster: object, text: bytes) -> None:
    """Plays a recording at its own times, which the held clock passes at once. Raises RecordingError."""
    from fakekube.cluster import Cluster

    assert isinstance(cluster, Cluster)
    replay = cluster.replay(text)
    for _ in range(_MAX_STEPS):
        if replay.finished or cluster.clock.next() is None:
            break


def version_of(text: bytes) -> str:
    """Returns the minor version of a saved state or a trace file; "" if the text is something else, or damaged."""
    from fakekube.powers.state import StateError, is_state_text, state_version
    from fakekube.powers.trace import is_trace_text, state_in_trace

    try:
        if is_trace_text(text):
            text = state_in_trace(text)
        return state_version(text) if is_state_text(text) else ""
    except StateError:
        return ""
