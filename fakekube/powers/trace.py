"""Trace files: what happened in a cluster, as one HTML file that contains its page and opens without a server.

    <script type="application/json" id="trace">        requests, changes, objects and marks as rows, findings
    <script type="application/octet-stream;base64" id="bodies">   gzip of JSON: request → bodies and headers
    <script type="application/octet-stream;base64" id="state">    the compact state with history, as `Cluster.save` writes it

The rows are those of the live page. By default values of Secrets, tokens and headers with credentials are removed (`redaction`).

Invariant: a file has at most the number of bytes that was asked for, as far as dropping bodies, requests and versions can reach
it; what was dropped is counted in `limits`. What is read from a file is bounded, and its text is data.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.powers.columns import revision_value
from fakekube.powers.differences import ABSENT, Difference, differences, is_assigned
from fakekube.powers.exchange import exchange_data, json_line
from fakekube.powers.health import sentence
from fakekube.powers.redaction import REDACTED, redact_exchange, without_secrets
from fakekube.powers.state import StateError, past_of, state_of, write_state

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.journal import Change
    from fakekube.powers.observation import Observer
    from fakekube.powers.rows import Rows
    from fakekube.store import Event


API_VERSION: Final = "fakekube.dev/v1"
KIND: Final = "Trace"
#: The newest format that this version writes and reads.
FORMAT: Final = 1

#: The largest file that is read, in bytes.
MAX_FILE: Final = 256 << 20
#: The numbers of latest requests and changes in a file.
_REQUESTS: Final = 100_000
_CHANGES: Final = 100_000
#: The number of latest requests whose bodies stay.
_LAST: Final = 50
#: The part of the bodies that is dropped at once.
_STEP: Final = 4
_ROUNDS: Final = 12
_SIZE: Final = re.compile(r"([0-9]{1,9})\s*([kMG]?)B?", re.ASCII)
_UNITS: Final = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
#: Elements of a file; attributes are in the order in which they are written.
_ELEMENT: Final = '<script type="{type}" id="{id}">'
_BASE64: Final = "application/octet-stream;base64"


def read_size(text: str | int) -> int:
    """Reads a number of bytes such as `20MB`. Raises ValueError."""
    if isinstance(text, int):
        return text
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size such as 20MB")
    return int(found[1]) * _UNITS[found[2]]


@dataclass(slots=True)
class TraceParts:
    """The data of a trace file."""

    trace: Object
    bodies: dict[str, Object] = field(default_factory=dict)
    """Number of a request → its bodies and headers."""
    kept: set[str] = field(default_factory=set)
    """The numbers of requests whose bodies are not dropped: refused ones and the last ones."""
    state: bytes = b""

    def pack(self) -> dict[str, bytes]:
        """Returns the compressed parts."""
        return {"bodies": gzip.compress(json_line(self.bodies), 6, mtime=0), "state": self.state}

    def size(self) -> int:
        """Returns about how many bytes the data take in a file."""
        return len(json_line(self.trace)) + sum(len(part) * 4 // 3 for part in self.pack().values())


class TraceMaker:
    """Makes traces of one cluster.

    Args:
        backend, observer, rows: of the cluster.
    """

    def __init__(self, backend: Backend, observer: Observer, rows: Rows) -> None:
        self._backend, self._observer, self._rows = backend, observer, rows

    def make(self, info: Object, findings: Sequence[Object], test: Object | None, *, redact: bool, limit: int) -> TraceParts:
        """Returns the data of a file.

        Args:
            info: what `Cluster.describe` returns.
            findings: as plain data.
            test: id, outcome and message of the test.
            redact: remove values of Secrets, tokens and headers with credentials.
            limit: the maximum number of bytes.
        """
        kept = sorted(self._observer.recorder.list_exchanges(), key=lambda one: one.number)[-_REQUESTS:]
        trace: Object = {
            "kind": KIND,
            "apiVersion": API_VERSION,
            "format": FORMAT,
            "made": print_time(self._backend.clock.now()),
            "by": f"fakekube {info['version']}",
            "test": test,
            "redacted": redact,
            "limits": {"dropped": {"bodies": 0, "requests": 0, "versions": False}},
            "info": {**info, "readOnly": True},
            "actors": self._observer.actors.list_actors(),
            "resources": info["resources"],
            "requests": self._rows.request_table(kept).data(),
            "changes": self._changes(redact=redact),
            "objects": self._rows.objects(limit=_CHANGES),
            "marks": self._observer.marks.rows(0, self._observer.began),
            "findings": list(findings),
            "sections": ["bodies", "state"],
        }
        parts = TraceParts(trace, state=self._state(redact=redact, history=True))
        for place, one in enumerate(kept):
            number = str(one.number)
            parts.bodies[number] = self._bodies(one, redact=redact)
            if (one.status or 0) >= 400 or place >= len(kept) - _LAST:
                parts.kept.add(number)
        self._reduce(parts, kept, redact=redact, limit=limit)
        return parts

    def _state(self, *, redact: bool, history: bool) -> bytes:
        state = state_of(self._backend)
        if history:
            state["history"] = self._history()
        return write_state(without_secrets(state) if redact else state, compact=True)

    def _history(self) -> Object:
        """Returns the history of a state: of the journal, which reaches further back than the store."""
        events: dict[str, list[Event[Document]]] = {}
        floor, now = self._observer.journal.floor, self._backend.clock.monotonic()
        for change in self._rows.journal():
            if change.event is None:
                floor = max(floor, change.revision)
            else:
                events.setdefault(change.bucket, []).append(change.event)
        pasts = {
            bucket: past_of([event for event in found if event.revision > floor], floor, now) for bucket, found in events.items()
        }
        return {"since": revision_value(floor), "resources": pasts}

    # --- Rows ---------------------------------------------------------------------------------------------------------

    def _changes(self, *, redact: bool) -> Object:
        changes = self._rows.journal()[-_CHANGES:]
        data = self._rows.change_table(changes, with_states=True).data()
        strings: dict[str, int] = {text: place for place, text in enumerate(data["strings"])}
        paths, sentences = [], []
        for change in changes:
            found, told = self._tell(change, redact=redact)
            paths.append(found)
            sentences.append(strings.setdefault(told, len(strings)))
        data["columns"] |= {"paths": paths, "sentence": sentences}
        data["strings"] = list(strings)
        return data

    def _tell(self, change: Change, *, redact: bool) -> tuple[list[str], str]:
        """Returns the changed paths, and the sentence of a change."""
        if change.cause.reason == "initial":
            return [], ""
        before, after = change.before, change.object
        parts = (
            [] if before is None or after is None else [one for one in differences(before, after) if not is_assigned(one.path)]
        )
        shown = [_hide_values(one) for one in parts] if redact and change.bucket == "secrets" else parts
        info = change.cause.info
        told = sentence(
            actor=self._rows.actor(change)[0],
            reason=change.cause.reason,
            type_=change.type,
            kind=self._rows.kind(change.bucket).kind,
            before=before,
            after=after,
            changed=shown,
            subresource="" if info is None else info.subresource,
        )
        return [one.path for one in parts], told

    # --- Limits -------------------------------------------------------------------------------------------------------

    def _bodies(self, one: Exchange, *, redact: bool) -> Object:
        """Returns what a file has of a request besides its row."""
        data = exchange_data(one)
        shown = redact_exchange(data) if redact else _without_credentials(data)
        found = {name: shown[name] for name in ("method", "path", "query", "headers", "body", "answer")}
        return found if one.deliveries is None else {**found, "deliveries": self._rows.deliveries(one.deliveries)}

    def _reduce(self, parts: TraceParts, kept: Sequence[Exchange], *, redact: bool, limit: int) -> None:
        """Drops bodies, then requests, then versions, until the data fit."""
        dropped = parts.trace["limits"]["dropped"]
        sizes = {str(one.number): len(one.raw_body) + (0 if one.raw_answer is None else len(one.raw_answer)) for one in kept}
        order = sorted((number for number in parts.bodies if number not in parts.kept), key=lambda one: (-sizes[one], int(one)))
        for _ in range(_ROUNDS):
            if parts.size() <= limit or not order:
                break
            count = max(len(order) // _STEP, 1) if len(order) > _STEP else len(order)
            for number in order[:count]:
                del parts.bodies[number]
            dropped["bodies"] += count
            order = order[count:]
        rows = list(kept)
        while parts.size() > limit and len(rows) > _LAST:
            cut = max(len(rows) // 2, 1)
            for one in rows[:cut]:
                dropped["bodies"] += parts.bodies.pop(str(one.number), None) is not None
            dropped["requests"] += cut
            rows = rows[cut:]
            parts.trace["requests"] = self._rows.request_table(rows).data()
        if parts.size() > limit:
            parts.state = self._state(redact=redact, history=False)
            dropped["versions"] = True


def _hide_values(one: Difference) -> Difference:
    return Difference(one.path, *(value if value is ABSENT else REDACTED for value in (one.old, one.new)))


def _without_credentials(data: Object) -> Object:
    """Removes only headers with credentials, which no trace has."""
    return {**data, "headers": redact_exchange(data)["headers"]}


# --- Reading ----------------------------------------------------------------------------------------------------------


def is_trace_text(text: bytes) -> bool:
    """Reports whether a text looks like a trace file."""
    return text[:200].lstrip().lower().startswith(b"<!doctype html") and b'id="trace"' in text


def trace_in(text: bytes) -> Object:
    """Returns the rows of a trace file. Raises StateError."""
    found = _element(text, "application/json", "trace")
    try:
        value = json.loads(found)
    except (ValueError, RecursionError):
        raise StateError("the trace file is damaged: its rows are no JSON") from None
    if not isinstance(value, dict) or value.get("kind") != KIND or value.get("apiVersion") != API_VERSION:
        raise StateError(f"no {KIND} of {API_VERSION}")
    if not isinstance(value.get("format"), int) or value["format"] > FORMAT:
        raise StateError(f"the trace file has the format {value.get('format')}, this version reads up to {FORMAT}")
    return value


def state_in_trace(text: bytes) -> bytes:
    """Returns the compact state in a trace file. Raises StateError."""
    if len(text) > MAX_FILE:
        raise StateError(f"the trace file has more than {MAX_FILE} bytes")
    trace_in(text)
    try:
        return base64.b64decode(_element(text, _BASE64, "state"), validate=True)
    except binascii.Error as problem:
        raise StateError(f"the trace file is damaged: {problem}") from None


def _element(text: bytes, kind: str, name: str) -> bytes:
    start = _ELEMENT.format(type=kind, id=name).encode()
    _, found, rest = text.partition(start)
    content, end, _ = rest.partition(b"</script>")
    if not found or not end:
        raise StateError(f"the trace file is damaged: it has no {name}")
    return content.strip()
