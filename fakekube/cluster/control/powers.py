"""The endpoints of the control API for faults, requests, histories, snapshots, state, recording and replay.

    POST   recording              {"kinds": ["pods"], "namespace": "default", "redact": true}
    GET    recording              the number of changes so far
    DELETE recording              ends it; the response is the recording
    POST   replay?speed=10        the recording as body
    GET    replay
    DELETE replay                 ends it

Each function is the `answer` of an `Endpoint`: it gets the cluster and, by name, the members of the body, the parameters of the
query and the variables of the path. A cluster has at most one recording and one replay of the control API; a recording is kept in
memory, up to a limit.
"""

from __future__ import annotations

import io
import math
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.base.golang.timestamps import print_time
from fakekube.cluster.control.members import Answer, BadMembers, Members, boolean_member
from fakekube.cluster.testing.manifests import ManifestError
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.powers.exchange import exchange_data
from fakekube.powers.export import as_list, as_yaml
from fakekube.powers.fault import Fault, Frequency
from fakekube.powers.fault_actions import ACTIONS
from fakekube.powers.fault_forms import actions, frequency, preview
from fakekube.powers.recording import RecordingError
from fakekube.powers.state import StateError, StateTooLargeError, is_state_text
from fakekube.powers.trace import is_trace_text

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.powers.faults import FaultSelector
    from fakekube.powers.recording import Recording
    from fakekube.powers.replay import Replay
    from fakekube.store import Snapshot


#: The members of `on` of a fault.
_ON = frozenset({"verbs", "resource", "namespace", "name", "user", "agent", "path", "own"})
_FREQUENCY = frozenset(field.name for field in fields(Frequency))
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)?")
NUMBER = re.compile(r"-?[0-9]{1,40}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}

#: The number of latest requests in a preview.
_PREVIEWED = 100

#: The maximum of the parameter `wait` for requests, in real seconds.
_LONGEST_WAIT = 60.0


class Raw(bytes):
    """A response body that is sent unchanged and not as JSON."""

    content_type = "application/yaml"
    file_name = ""
    """The name under which browsers save it, and never show it."""


# --- Faults -----------------------------------------------------------------------------------------------------------


def list_faults(cluster: Cluster, _members: Members) -> Answer:
    return 200, {"items": cluster.describe_faults(near=True)}


def list_actions(_cluster: Cluster, _members: Members) -> Answer:
    return 200, {"items": actions(), "frequency": frequency()}


def arm_fault(cluster: Cluster, members: Members) -> Answer:
    selector, name, arguments = _described_fault(cluster, members)
    often = {key: value for key, value in members.items() if key in _FREQUENCY and value is not None}
    try:
        fault = selector.arm(name, label=members.get("label"), **arguments, **often)
    except (TypeError, ValueError) as problem:
        raise BadMembers(str(problem)) from None
    return 201, fault.describe()


def preview_fault(cluster: Cluster, members: Members) -> Answer:
    """Returns which of the latest requests a fault would meet."""
    selector, name, arguments = _described_fault(cluster, members)
    latest = list(cluster.requests.where(own=True))
    latest = [one for one in latest if selector.own or not one.own][-_PREVIEWED:]
    try:
        found = preview(selector, name, arguments, latest, cluster.clock)
    except (TypeError, ValueError) as problem:
        raise BadMembers(str(problem)) from None
    return 200, {"matches": len(found), "of": len(latest), "requests": [one.number for one in found]}


def _described_fault(cluster: Cluster, members: Members) -> tuple[FaultSelector, str, dict[str, Any]]:
    """Returns the criteria, the name of the action and its arguments. Raises BadMembers."""
    on, do = members["on"], members["do"]
    if not isinstance(on, dict) or not set(on) <= _ON:
        raise BadMembers(f"member 'on' must be an object with {', '.join(sorted(_ON))}")
    if not isinstance(do, dict) or len(do) != 1 or next(iter(do)) not in ACTIONS:
        raise BadMembers(f"member 'do' must be an object with one of {', '.join(ACTIONS)}")
    ((name, arguments),) = do.items()
    if not isinstance(arguments, dict):
        raise BadMembers(f"the arguments of {name} must be an object")
    if name == "intercept" or arguments.get("change") is not None:
        raise BadMembers("functions are not supported here")
    clash = sorted(set(arguments) & (_FREQUENCY | {"label", "name"}))
    if clash:
        raise BadMembers(f"{clash[0]!r} is not an argument of {name}; it is a member beside 'do'")
    criteria = {key: value for key, value in on.items() if key != "verbs" and value is not None}
    verbs = on.get("verbs", "*")
    if not isinstance(verbs, str) and not (isinstance(verbs, list) and all(isinstance(verb, str) for verb in verbs)):
        raise BadMembers("verbs must be a string such as 'get,list'")
    try:
        return cluster.faults.on(verbs, **criteria), name, arguments
    except (TypeError, ValueError) as problem:
        raise BadMembers(str(problem)) from None


def clear_faults(cluster: Cluster, members: Members) -> Answer:
    cluster.faults.clear()
    return list_faults(cluster, members)


def _fault(cluster: Cluster, members: Members) -> Fault:
    found = cluster.faults.find(members["id"])
    if found is None:
        raise LookupError(f"there is no fault {members['id']}")
    return found


def get_fault(cluster: Cluster, members: Members) -> Answer:
    return 200, _fault(cluster, members).describe()


def delete_fault(cluster: Cluster, members: Members) -> Answer:
    fault = _fault(cluster, members)
    fault.remove()
    return 200, fault.describe()


# --- Requests ---------------------------------------------------------------------------------------------------------


def list_requests(cluster: Cluster, members: Members) -> Answer:
    names = ("verb", "resource", "namespace", "name", "user", "agent")
    wanted: dict[str, Any] = {name: members[name] for name in names if name in members}
    if "status" in members:
        wanted["status"] = _number(members["status"], "status")
    try:
        found = cluster.requests.where(**wanted, own=parse_flag(members.get("own", "false"), "own"))
    except ValueError as problem:
        raise BadMembers(str(problem)) from None
    if "since" in members:
        found = found.since(_number(members["since"], "since"))
    if "wait" in members:
        with suppress(TimeoutError):
            found.wait(1, timeout=min(_seconds(members["wait"]), _LONGEST_WAIT))
    cursor = cluster.requests.mark()
    limit = _number(members.get("limit", "100"), "limit")
    if limit < 0:
        raise BadMembers(NEGATIVE_LIMIT)
    items = list(found)[:limit]
    return 200, {"cursor": items[-1].number if items else cursor, "items": [exchange_data(one) for one in items]}


def _number(text: str, name: str) -> int:
    if not NUMBER.fullmatch(text):
        raise BadMembers(f"parameter {name!r} must be a number")
    return int(text)


NEGATIVE_LIMIT = "parameter 'limit' must not be negative"


def parse_flag(text: str, name: str) -> bool:
    """Returns a parameter that is true or false. Raises BadMembers."""
    if text not in ("true", "false"):
        raise BadMembers(f"parameter {name!r} must be true or false")
    return text == "true"


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadMembers("parameter 'wait' must be a duration such as 2s")
    return float(match[1]) * _UNITS[match[2] or "s"]


def clear_requests(cluster: Cluster, _members: Members) -> Answer:
    cluster.requests.clear()
    return 200, {"cursor": cluster.requests.mark(), "items": []}


# --- Histories and snapshots ------------------------------------------------------------------------------------------


def object_history(cluster: Cluster, members: Members) -> Answer:
    namespace = members["namespace"]
    try:
        found = cluster.history(members["resource"], members["name"], None if namespace == "-" else namespace)
    except UnknownResource as problem:
        raise LookupError(str(problem)) from None
    causes = cluster.rows.causes(one.revision for one in found)
    return 200, {
        "items": [
            {
                "revision": one.revision,
                "time": print_time(one.time),
                "type": one.type,
                "object": one.object,
                "changed": list(one.changed),
                **causes[one.revision],
            }
            for one in found
        ]
    }


def _item(name: str, snapshot: Snapshot[Any], time: Any) -> dict[str, Any]:
    return {"name": name, "revision": snapshot.revision, "time": print_time(time)}


def list_snapshots(cluster: Cluster, _members: Members) -> Answer:
    named = dict(cluster.named_snapshots)  # a copy: another request may add one
    return 200, {"items": [_item(name, snapshot, time) for name, (snapshot, time) in named.items()]}


def create_snapshot(cluster: Cluster, members: Members) -> Answer:
    """Keeps a snapshot until it is deleted or replaced, or the cluster stops. Their number is not limited."""
    name = members["name"]
    snapshot, now = cluster.snapshot(), cluster.clock.now()
    cluster.named_snapshots[name] = snapshot, now
    return 201, _item(name, snapshot, now)


def restore_snapshot(cluster: Cluster, members: Members) -> Answer:
    found = cluster.named_snapshots.get(members["name"])
    if found is None:
        raise _unknown_snapshot(members["name"])
    cluster.restore(found[0])
    return 200, {}


def delete_snapshot(cluster: Cluster, members: Members) -> Answer:
    if cluster.named_snapshots.pop(members["name"], None) is None:
        raise _unknown_snapshot(members["name"])
    return 200, {}


def _unknown_snapshot(name: str) -> LookupError:
    return LookupError(f"there is no snapshot {name!r}")


# --- State ------------------------------------------------------------------------------------------------------------


class Last(dict[str, Any]):
    """A response body after which the server closes the connection."""


def _simple(act: Callable[[Cluster, Members], None], *, last: bool = False) -> Callable[[Cluster, Members], Answer]:
    def answer(cluster: Cluster, members: Members) -> Answer:
        act(cluster, members)
        return 200, Last() if last else {}

    return answer


reset = _simple(lambda cluster, _: cluster.reset())
compact = _simple(lambda cluster, _: cluster.compact())
restart = _simple(lambda cluster, members: cluster.restart(members.get("cold", 1.0)), last=True)
outage = _simple(lambda cluster, members: cluster.outage(members["seconds"]), last=True)


def apply_load(cluster: Cluster, members: Members) -> Answer:
    try:
        body = members["body"]
        made = cluster.load(body if is_state_text(body) or is_trace_text(body) else body.decode() + "\n")
    except StateTooLargeError as problem:
        return 413, {"error": str(problem)}
    except (UnicodeDecodeError, ManifestError, StateError) as problem:
        raise BadMembers(str(problem)) from None
    except (ApiError, UnknownResource) as problem:
        raise BadMembers(f"the API server refuses an object: {problem}") from None
    return 200, {"items": [{key: one[key] for key in ("apiVersion", "kind")} | {"name": one["metadata"]["name"]} for one in made]}


def export(cluster: Cluster, members: Members) -> Answer:
    kinds = [kind for kind in members.get("kinds", "").split(",") if kind]
    read = cluster.normalised if parse_flag(members.get("normalised", "false"), "normalised") else cluster.export
    try:
        objects = read(namespace=members.get("namespace"), kinds=kinds)
    except UnknownResource as problem:
        raise BadMembers(str(problem)) from None
    if members.get("format", "yaml") not in ("yaml", "json"):
        raise BadMembers("parameter 'format' must be yaml or json")
    if members.get("format") == "json":
        return 200, objects_as_json(as_list(objects))
    return 200, Raw(as_yaml(objects))


def save_state(cluster: Cluster, members: Members) -> Answer:
    form = members.get("form", "yaml")
    if form not in ("yaml", "compact"):
        raise BadMembers("parameter 'form' must be yaml or compact")
    with tempfile.TemporaryDirectory(prefix="fakekube-") as folder:
        path = Path(folder) / "state"
        cluster.save(path, compact=form == "compact", history=parse_flag(members.get("history", "false"), "history"))
        raw = Raw(path.read_bytes())
    if form == "compact":
        raw.content_type = "application/gzip"
    return 200, raw


def objects_as_json(text: bytes) -> Raw:
    """Returns a body that is JSON already."""
    raw = Raw(text)
    raw.content_type = "application/json"
    return raw


# --- The endpoints of the control API for recording and replay -------------------------------------------------------


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
