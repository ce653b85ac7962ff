"""What CBOR and Protobuf answers say, as JSON that recordings can keep and compare."""

from __future__ import annotations

import json
import struct
from typing import Any

from tests.differential.client import JSON, Client
from tests.differential.transports import Reply

CBOR, PROTOBUF = "application/cbor", "application/vnd.kubernetes.protobuf"


def keep(c: Client, method: str, path: str, query: Any, body: Any, accept: str, ctype: str, reply: Reply, seen: Any) -> None:
    """Record an exchange with what a helper made of the answer's body."""
    c._record(
        method,
        path,
        query,
        body,
        {"Accept": accept, "Content-Type": ctype},
        Reply(reply.status, reply.headers, json.dumps(seen).encode()),
    )


def cbor(data: bytes, at: int = 0) -> tuple[Any, int]:
    """One CBOR item as JSON; text strings (Kubernetes writes byte strings) are marked with t', tags by number."""
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    if info < 24:
        value = info
    elif info < 28:
        size = 1 << (info - 24)
        value, at = int.from_bytes(data[at : at + size], "big"), at + size
    elif info == 31:
        return {"indefinite": major}, len(data)
    else:
        raise ValueError(info)
    if major == 0:
        return value, at
    if major == 1:
        return -1 - value, at
    if major in (2, 3):
        return ("" if major == 2 else "t'") + data[at : at + value].decode("utf-8", "replace"), at + value
    if major == 4:
        items = []
        for _ in range(value):
            item, at = cbor(data, at)
            items.append(item)
        return items, at
    if major == 5:
        members = {}
        for _ in range(value):
            key, at = cbor(data, at)
            members[str(key)], at = cbor(data, at)
        return members, at
    if major == 6:
        item, at = cbor(data, at)
        return (item if value == 55799 else {f"tag {value}": item}), at
    return (
        {20: False, 21: True, 22: None}.get(info, struct.unpack(">d", data[at - 8 : at])[0] if info == 27 else f"simple {info}")
    ), at


def cbor_answer(raw: bytes) -> Any:
    """The items of a CBOR answer (several in a watch), and whether it began with the self-describing tag."""
    items, at = [], 0
    while at < len(raw):
        item, at = cbor(raw, at)
        items.append(item)
    return {"tagged": raw[:3].hex() == "d9d9f7", "items": items}


def wire(data: bytes) -> Any:
    """A protobuf message by field numbers, or None if it is none. Times are masked; revisions are strings of digits."""
    fields: list[list[Any]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError

    try:
        while at < len(data):
            number, kind = divmod(varint(), 8)
            if not 0 < number < 3000:
                return None
            if kind == 0:
                value: Any = varint()
                if 1_500_000_000 < value < 3_000_000_000:
                    value = "<seconds>"
            elif kind == 2:
                size = varint()
                if at + size > len(data):
                    return None
                chunk, at = data[at : at + size], at + size
                text = all(32 <= byte < 127 for byte in chunk)
                inner = None if text else protobuf_answer(chunk) if chunk[:4] == b"k8s\x00" else wire(chunk)
                value = inner if inner is not None else chunk.decode("utf-8", "backslashreplace")
                if isinstance(value, str) and value.isdigit() and len(value) > 1:
                    value = "<digits>"
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
                value, at = data[at : at + size].hex(), at + size
            else:
                return None
            fields.append([number, value])
    except (IndexError, ValueError):
        return None
    return fields


def protobuf_answer(raw: bytes) -> Any:
    return (
        {"magic": raw[:4].hex(), "envelope": wire(raw[4:])}
        if raw[:4] == b"k8s\x00"
        else {"first": raw[:4].hex(), "size over 100": len(raw) > 100}
    )


def binary(
    c: Client, method: str, path: str, accept: str, body: Any = None, query: Any = None, ctype: str | None = None
) -> Reply:
    """Ask for CBOR or Protobuf and record the decoded answer."""
    reply = c.request(method, path, body, query, ctype=ctype, headers={"Accept": accept}, silent=True)
    kind = reply.headers.get("content-type", "")
    seen: Any = reply.json
    if reply.json is None:
        seen = (
            cbor_answer(reply.body)
            if "cbor" in kind
            else protobuf_answer(reply.body)
            if "protobuf" in kind
            else reply.body.decode("latin-1")
        )
    keep(c, method, path, query, body, accept, ctype or JSON, reply, seen)
    return reply
