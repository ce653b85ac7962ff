"""Whether a client was told of an object: by an event, or in a list.

Invariant: what was not sent completely does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call, Stream

__all__ = ["tells"]

Object = dict[str, Any]


def tells(stream: Stream, copy: Copy, obj: Object) -> bool:
    """Has a stream told the client of an object, by an event or a list?"""
    name, revision = obj["metadata"]["name"], int(obj["metadata"]["resourceVersion"])
    return any(_listed(call, copy, name) or _delivered(call, name, revision) for call in reversed(stream.calls))


def _listed(call: Call, copy: Copy, name: str) -> bool:
    """Was the object in a list that the client was sent?"""
    if not call.is_list or call.status != 200:
        return False
    if call.answer_is_lost:  # it was too large to be kept
        return call.number > copy.mark
    return name.encode() in _bytes_of(call.exchange.raw_answer)


def _delivered(call: Call, name: str, revision: int) -> bool:
    """Was there an event of the object, or (where events cannot be read here) one that is as new?"""
    if not call.is_watch:
        return False
    return any(event.name == name or (not event.type and event.revision >= revision) for event in call.events)


def _bytes_of(answer: Any) -> bytes:
    return b"" if answer is None else answer if isinstance(answer, bytes) else b"".join(answer)
