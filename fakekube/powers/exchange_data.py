"""Converts exchanges to plain data, for the control API and for files.

Invariant: the result can be encoded as JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.codecs import json as deep_json
from fakekube.base.golang.timestamps import print_time

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange

__all__ = ["exchange_data", "json_line"]


def json_line(value: Any) -> bytes:
    """Encodes a value as a line of JSON; integers keep all their digits."""
    try:
        return json.dumps(value, separators=(",", ":"), default=_text_of).encode() + b"\n"
    except RecursionError:  # a client sent a deeply nested object
        return deep_json.dumps(value) + b"\n"


def _text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def exchange_data(one: Exchange) -> dict[str, Any]:
    """Returns an exchange as plain data; bodies that cannot be decoded are strings."""
    found: dict[str, Any] = {
        "number": one.number,
        "verb": one.verb,
        "group": one.group,
        "resource": one.resource,
        "subresource": one.subresource,
        "namespace": one.namespace,
        "name": one.name,
        "user": one.user,
        "agent": one.agent,
        "method": one.method,
        "path": one.path,
        "query": one.query,
        "headers": one.headers,
        "body": _printable(one.body),
        "status": one.status,
        "answer": _printable(one.answer),
        "revision": one.revision,
        "started": print_time(one.started),
        "seconds": one.seconds,
        "fault": one.fault,
        "faults": list(one.faults),
    }
    if one.verb == "watch":
        found |= {"events": one.events, "last_revision": one.last_revision, "ended": one.ended}
    return found


def _printable(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
