"""Finds out whether the client has received an object in an event or a list.

Invariant: an answer or event that was not sent completely does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call, Stream
    from fakekube.controllers.objects import Object


def has_delivered(stream: Stream, copy: Copy, obj: Object) -> bool:
    """Reports whether a stream has delivered an object of a copy, in an event or a list."""
    name, revision = obj["metadata"]["name"], int(obj["metadata"]["resourceVersion"])
    return any(_listed(call, copy, name) or _delivered(call, name, revision) for call in reversed(stream.calls))


def _listed(call: Call, copy: Copy, name: str) -> bool:
    """Reports whether the answer of a list contains the object."""
    if not call.is_list or call.status != 200:
        return False
    if call.answer_is_lost:  # it was too large to be recorded
        return call.number > copy.mark
    return name.encode() in _bytes_of(call.exchange.raw_answer)


def _delivered(call: Call, name: str, revision: int) -> bool:
    """Reports whether a watch delivered an event of the object, or one as new if the format of the events cannot be read."""
    if not call.is_watch:
        return False
    return any(event.name == name or (not event.type and event.revision >= revision) for event in call.events)


def _bytes_of(answer: Any) -> bytes:
    return b"" if answer is None else answer if isinstance(answer, bytes) else b"".join(answer)
