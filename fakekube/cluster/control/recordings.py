"""The endpoints of the control API for recording and replay.

    POST   recording              {"kinds": ["pods"], "namespace": "default", "redact": true}
    GET    recording              the number of changes so far
    DELETE recording              ends it; the response is the recording
    POST   replay?speed=10        the recording as body
    GET    replay
    DELETE replay                 ends it

Each function is the `answer` of an `Endpoint`, as in `cluster.control.powers`. A cluster has at most one recording and one
replay of the control API; a recording is kept in memory, up to a limit.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakekube.cluster.control.members import BadMembers, boolean_member
from fakekube.cluster.control.powers import Raw
from fakekube.controllers.client import UnknownResource
from fakekube.powers.recording import RecordingError

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.powers.recording import Recording
    from fakekube.powers.replay import Replay


Answer = tuple[int, Any]
Members = Mapping[str, Any]

#: The maximum size of a recording, which is kept in memory, in bytes.
LIMIT = 256 << 20


class _Buffer(io.BytesIO):
    """A file in memory that drops data beyond the limit."""

    full = False

    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > LIMIT:
            self.full = True
            return len(data)
        return super().write(data)


def start_recording(cluster: Cluster, members: Members) -> Answer:
    if "recording" in cluster.controlled:
        raise RuntimeError("a recording is in progress; DELETE ends it")
    kinds, namespace = members.get("kinds") or [], members.get("namespace")
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise BadMembers("member 'kinds' must be a list of strings")
    redact = boolean_member(members, "redact")
    buffer = _Buffer()
    try:
        recording = cluster.record(buffer, kinds=kinds, namespace=namespace, redact=redact)
    except UnknownResource as problem:
        raise BadMembers(str(problem)) from None
    cluster.controlled["recording"] = recording, buffer
    return 201, _recording(recording, buffer)


def _recording(recording: Recording, buffer: _Buffer) -> dict[str, Any]:
    recording.flush()
    return {"changes": recording.changes, "bytes": buffer.tell(), "full": buffer.full}


def _current(cluster: Cluster) -> tuple[Recording, _Buffer]:
    found: tuple[Recording, _Buffer] | None = cluster.controlled.get("recording")
    if found is None:
        raise LookupError("there is no recording")
    return found


def get_recording(cluster: Cluster, _members: Members) -> Answer:
    return 200, _recording(*_current(cluster))


def stop_recording(cluster: Cluster, _members: Members) -> Answer:
    recording, buffer = _current(cluster)
    recording.stop()
    del cluster.controlled["recording"]
    return 200, Raw(buffer.getvalue())


def start_replay(cluster: Cluster, members: Members) -> Answer:
    try:
        speed = float(members.get("speed", "1"))
    except ValueError:
        raise BadMembers("parameter 'speed' must be a number") from None
    if not speed > 0:
        raise BadMembers("parameter 'speed' must be positive")
    before: Replay | None = cluster.controlled.get("replay")
    if before is not None and not before.finished:
        raise RuntimeError("a replay is in progress; DELETE ends it")
    try:
        replay = cluster.replay(bytes(members["body"]), speed=math.inf if math.isinf(speed) else speed)
    except RecordingError as problem:
        raise BadMembers(str(problem)) from None
    cluster.controlled["replay"] = replay
    return 201, replay.describe()


def _replay(cluster: Cluster) -> Replay:
    found: Replay | None = cluster.controlled.get("replay")
    if found is None:
        raise LookupError("there is no replay")
    return found


def get_replay(cluster: Cluster, _members: Members) -> Answer:
    return 200, _replay(cluster).describe()


def stop_replay(cluster: Cluster, _members: Members) -> Answer:
    replay = _replay(cluster)
    replay.stop()
    del cluster.controlled["replay"]
    return 200, replay.describe()
