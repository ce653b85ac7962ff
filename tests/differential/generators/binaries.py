"""Random stories in Protobuf and CBOR: objects of a kind in both forms, and bodies in which fields, items and bytes are wrong."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

from fakekube.apimachinery.codecs.protobuf.wire import encode_varint
from tests.differential.binary_answers import CBOR, PROTOBUF, binary
from tests.differential.client import APPLY, STRATEGIC
from tests.differential.definitions import DRY
from tests.differential.generators.objects import SHARED, Story
from tests.differential.random_stories import Steady

Object = dict[str, Any]
Fields = list[tuple[int, int, Any]]
"""The fields of a message: number, wire type and value; a value of type 2 is bytes, or the fields of a message."""
_MAGIC, TAG = b"k8s\x00", b"\xd9\xd9\xf7"
#: Of ObjectMeta: name, labels, annotations, ownerReferences and finalizers; what a new object may say.
_OF_NEW_METADATA = (1, 11, 12, 13, 14)
_RAW = 2
"""The number of the object in its envelope (runtime.Unknown)."""
_FORMS = (
    "{}",
    "{},application/json;q=0.5",
    "{};as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "{};as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
    "{};as=Table;v=v1;g=meta.k8s.io,application/json",
    "{};stream=watch",
    "{};charset=utf-8",
)


#: What no server can repeat, though the answer is not read by the names of its fields: dumps of bodies, tokens, hashes of names.
_UNSTEADY = re.compile(r"(?<=\()6b3873[0-9a-f]+ \.\.\.(?=\))|eyJ2Ijoi[\w-]+|\b642d[0-9a-f]{16,}|\bZC[\w-]{10,}")


def _ask(story: Story, method: str, path: str, accept: str, *args: Any, **options: Any) -> None:
    """Sends a request, and records what is in the answer."""
    binary(story.client, method, path, accept, *args, **options)
    last = story.client.transcript[-1]
    last["body"] = json.loads(_UNSTEADY.sub("<unsteady>", json.dumps(last.get("body"), sort_keys=True)))  # CBOR has any order


def _read(story: Story, paths: list[str], media: str) -> None:
    """Objects and collections, as they are and in part."""
    rng = story.rng
    for path in paths:
        _ask(story, "GET", path, media)
    if story.kind.namespaced:
        _ask(story, "GET", story.collection, media)
        form = f"{media};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        _ask(story, "GET", story.collection, form, query={"limit": "1"} if rng.random() < 0.3 else None)
    for path in paths[:2]:
        _ask(story, "GET", path, rng.choice(_FORMS).format(media))
    _ask(story, "GET", f"{story.collection}/absent", media)


# ---------------------------------------------------------------- Protobuf


def tell_protobuf(story: Story) -> None:
    """Objects as Protobuf; dry runs of what they would become with fields that are lost, doubled, unknown or of another type."""
    client, rng = story.client, story.rng
    with story.made(*story.some(3, 0.6)) as paths:
        for path in paths if story.has_status else ():
            story.write_status(path, 1, 3)
        _read(story, paths, PROTOBUF)
        for path in paths[:2]:
            content = client.get(path, headers={"Accept": PROTOBUF}, silent=True).body
            if not content.startswith(_MAGIC):
                _ask(story, "PUT", path, PROTOBUF, content, ctype=PROTOBUF)
                continue
            envelope = _fields(content[4:], 1) or []
            for _ in range(4):
                _send(story, "PUT", path, _changed(rng, envelope))
            _send(story, "POST", story.collection, _changed(rng, _of_new(envelope)))
            _send(story, "PATCH", path, envelope)
        for path in paths[:1] if story.kind.name not in SHARED else ():
            options: Fields = [(1, 0, 0), (4, 2, b"Background"), (5, 2, b"All")]
            names: Fields = [
                (1, 2, rng.choice([b"v1", b"", b"meta.k8s.io/v1", b"x/v9"])),
                (2, 2, rng.choice([b"DeleteOptions", b"", b"Pod"])),
            ]
            whole: Fields = [(1, 2, names), (_RAW, 2, _changed(rng, options) if rng.random() < 0.5 else options)]
            _send(story, "DELETE", path, whole)


def _send(story: Story, method: str, path: str, envelope: Fields) -> None:
    rng = story.rng
    body = _MAGIC + _written(envelope)
    if rng.random() < 0.1:
        body = rng.choice([body[:4], body[: 4 + len(body) // 2], body + b"\x00", body[:2], b"", body[4:], body + b"\x12\xff\x01"])
    accept = rng.choice([PROTOBUF, "application/json"])
    _ask(story, method, path, accept, body, DRY, ctype=rng.choice([PROTOBUF, PROTOBUF, PROTOBUF, f"{PROTOBUF};charset=utf-8"]))


def _of_new(envelope: Fields) -> Fields:
    """The envelope of an object like this one, with the metadata that a new object may have."""
    out: Fields = []
    for number, kind, value in envelope:
        if number == _RAW and isinstance(value, list):
            first, *rest = value
            if isinstance(first[2], list):
                first = (first[0], first[1], [one for one in first[2] if one[0] in _OF_NEW_METADATA])
            value = [first, *rest]
        out.append((number, kind, value))
    return out


def _changed(rng: Steady, fields: Fields) -> Fields:
    """A copy with one field changed, somewhere in the message."""
    index = rng.randrange(len(fields)) if fields else 0
    if not fields:
        return [(1, 2, b"x")]
    number, kind, value = fields[index]
    if isinstance(value, list) and rng.random() < 0.85:
        return [*fields[:index], (number, kind, _changed(rng, value)), *fields[index + 1 :]]
    new = rng.choice([
        [], [fields[index], fields[index]], [(number, kind, value), (99, 2, b"x")], [(number, 0, 7)], [(number, 2, b"")], [(number, 2, b"\xff\xfe")], [(number, 2, b"x")],
        [(number, 0, 2**64 - 1)], [(number, 0, 2**31)], [(number, 1, 5)], [(number, 5, 5)], [(number, 3, 0), (number, 4, 0)], [(0, 0, 1)], [(number, 6, 0)], [(number + 1, kind, value)],
        [(number, kind, value), (99, 0, 1), (2000, 1, 5), (98, 5, 7)],
    ])  # fmt: skip
    return [*fields[:index], *new, *fields[index + 1 :]]


def _fields(data: bytes, depth: int) -> Fields | None:
    """The fields of a message, or None if the bytes are none; texts are not read as messages."""
    out: Fields = []
    at = 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            number, kind = divmod(tag, 8)
            if not 0 < number < 3000:
                return None
            value: Any
            if kind == 0:
                value, at = _varint(data, at)
            elif kind == 2:
                size, at = _varint(data, at)
                value, at = data[at : at + size], at + size
                if at > len(data):
                    return None
                if not all(32 <= byte < 127 for byte in value) or (depth == 1 and number == _RAW):
                    inner = _fields(value, depth + 1)
                    value = value if inner is None else inner
            else:
                return None
            out.append((number, kind, value))
    except IndexError:
        return None
    return out


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def _written(fields: Fields) -> bytes:
    out = b""
    for number, kind, value in fields:
        out += encode_varint(number * 8 + kind)
        if kind == 0:
            out += encode_varint(value)
        elif kind == 2:
            content = value if isinstance(value, bytes) else _written(value)
            out += encode_varint(len(content)) + content
        elif kind in (1, 5):
            out += value.to_bytes(8 if kind == 1 else 4, "little")
    return out


# ---------------------------------------------------------------- CBOR


def tell_cbor(story: Story) -> None:
    """Objects as CBOR; dry runs of edited ones, whose texts, numbers and maps are encoded in every way that there is."""
    client, rng = story.client, story.rng
    base = story.sample()
    for _ in range(5):
        body = _document(rng, story.named(story.edited(base, story.times(0, 1, 1, 2)), "a"))
        query = {**DRY, "fieldValidation": rng.choice(["Strict", "Warn"])} if rng.random() < 0.4 else DRY
        _ask(story, "POST", story.collection, rng.choice([CBOR, "application/json"]), body, query, ctype=CBOR)
    with story.made(*story.some(2, 0.4)) as paths:
        _read(story, paths, CBOR)
        for path in paths[:1]:
            current = client.get(path, silent=True).json
            for _ in range(3):
                _ask(story, "PUT", path, CBOR, _document(rng, story.edited(current, story.times(0, 1, 2))), DRY, ctype=CBOR)
            applied = story.named(story.edited(base, story.times(0, 1)), path.rpartition("/")[2])
            query = {**DRY, "fieldManager": "m", "force": "true"}
            _ask(story, "PATCH", path, CBOR, _document(rng, applied), query, ctype="application/apply-patch+cbor")
            _ask(story, "PATCH", path, CBOR, _document(rng, applied), DRY, ctype=rng.choice([CBOR, STRATEGIC, APPLY]))
            options = {
                "kind": "DeleteOptions",
                "apiVersion": rng.choice(["v1", "meta.k8s.io/v1"]),
                "dryRun": ["All"],
                "gracePeriodSeconds": rng.choice([0, "x", -1, 5]),
            }
            if story.kind.name not in SHARED:
                _ask(story, "DELETE", path, CBOR, _document(rng, options), DRY, ctype=CBOR)


def _document(rng: Steady, value: Any) -> bytes:
    """An item, mostly with the tag that says what it is; now and then cut, or followed by more."""
    body = (b"" if rng.random() < 0.15 else TAG) + cbor_item(rng, value, 0.0 if rng.random() < 0.6 else 0.05)
    if rng.random() < 0.08:
        body = rng.choice(
            [body[:3], body[:-1], body + b"\x00", TAG + body, b"", b"\xf6", b"\xa0", b"\xff", json.dumps(value).encode()]
        )
    return body


def cbor_item(rng: Steady, value: Any, odd: float) -> bytes:
    """The encoding of a value; `odd`: how often an item is encoded in a way that the real server does not choose."""
    if rng.random() < odd:
        return _odd_item(rng, value)
    if value is None or isinstance(value, bool):
        return b"\xf6" if value is None else b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, str):
        return _head(2, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(cbor_item(rng, one, odd) for one in value)
    return _head(5, len(value)) + b"".join(cbor_item(rng, key, odd / 4) + cbor_item(rng, one, odd) for key, one in value.items())


def _odd_item(rng: Steady, value: Any) -> bytes:
    plain = cbor_item(rng, value, 0)
    if isinstance(value, str):
        text = value.encode()
        return rng.choice([
            _head(3, len(text)) + text, b"\x7f" + _head(3, len(text)) + text + b"\xff", b"\x5f" + plain + b"\xff", b"\x58" + bytes([len(text) % 256]) + text, b"\x62\xff\xfe", b"\xc0" + plain,
            b"\xd5" + plain, b"\xd6" + plain, b"\xd7" + plain,
        ])  # fmt: skip
    if isinstance(value, dict) and value:
        key, first = next(iter(value.items()))
        pair = cbor_item(rng, key, 0) + cbor_item(rng, first, 0)
        return rng.choice(
            [
                b"\xbf" + plain[1:] + b"\xff" if len(value) < 24 else plain,
                _head(5, 2) + pair + pair,
                b"\xa1\x01" + cbor_item(rng, first, 0),
                b"\xa1\xf6\xf6",
                b"\xa0",
            ]
        )
    if isinstance(value, list):
        return rng.choice([b"\x9f" + plain[1:] + b"\xff" if len(value) < 24 else plain, b"\x80", b"\xc1" + plain, b"\x40"])
    return rng.choice([
        b"\xf7", b"\xf9\x3c\x00", b"\xf9\x7e\x00", b"\xfa\x3f\x80\x00\x00", b"\xfb\x3f\xf8\x00\x00\x00\x00\x00\x00", b"\xc2\x41\x05", b"\xc1" + plain, b"\x18\x05", b"\xe0", b"\xf8\x20", b"\xf8\x18", b"\x1c",
        b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", b"\x45hello", b"\x65hello", b"\xd8\x64" + plain,
    ])  # fmt: skip


def _head(major: int, argument: int) -> bytes:
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 24:
            return bytes([major << 5 | argument])
        if argument < 1 << 8 * size:
            return bytes([major << 5 | code]) + argument.to_bytes(size, "big")
    return bytes([major << 5 | 27]) + b"\xff" * 8
