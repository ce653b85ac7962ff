"""The header blocks of HTTP/2: decodes those of requests, and encodes those of responses.

Responses use only the static table and no Huffman coding: their blocks do not depend on each other, are encoded without a lock,
and encodings of names can be cached.

Specified by: RFC 7541; golang.org/x/net/http2 (frame.go: readMetaFrame, checkPseudos; server.go: newWriterAndRequest,
checkValidHTTP2RequestHeaders) and its internal/httpcommon (NewServerRequest).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import cast

import hpack
from hpack.table import HeaderTable

from fakekube.base.caches import BoundedCache, cache_by_key, cache_if
from fakekube.net.http1 import Fields, Request, is_valid_target
from fakekube.net.http2.frames import ConnectionFailure, ErrorCode

MAX_LIST_BYTES = (1 << 20) + 320
"""SETTINGS_MAX_HEADER_LIST_SIZE: MaxHeaderBytes of kube-apiserver, and the 320 bytes that Go adds to it."""
_DECODED_BYTES = MAX_LIST_BYTES + (256 << 10)
"""Lists up to this size are decoded, to respond with a 431."""
_TABLE_BYTES = 4096
_REMEMBERED_BLOCK = 1024
_REMEMBERED_BLOCKS = 64
_REMEMBERED_LIST_BYTES = 4096

_TOO_LARGE = "431"
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")
_LENGTH = re.compile(r"[0-9]{1,19}")
_CONTENT_LENGTH = b"content-length"
_USUAL_LENGTH = re.compile(rb"[1-9][0-9]{0,8}")
_PSEUDO_NAMES = frozenset({b":method", b":scheme", b":authority", b":path", b":protocol"})
_CONNECTION_FIELDS = {
    b"connection": "Connection",
    b"keep-alive": "Keep-Alive",
    b"proxy-connection": "Proxy-Connection",
    b"transfer-encoding": "Transfer-Encoding",
    b"upgrade": "Upgrade",
}
"""In the order of Go's checks."""

Block = Sequence[tuple[bytes, bytes]]


class MalformedRequest(Exception):
    """A header block is not a valid request; its stream ends with PROTOCOL_ERROR."""


MAX_FIELDS = 1000
"""The maximum number of fields of a header block: the loop's thread decodes them, 10 µs each."""
MAX_HUFFMAN_BYTES = 128 << 10
"""The maximum number of bytes of a header block that are Huffman code, which is slow to decode."""
_CHEAP_BLOCK = 1024


class BlockDecoder:
    """Decodes the header blocks of one connection, in their order. Results are cached until a block changes the dynamic table."""

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=_DECODED_BYTES)
        self._decoder.max_allowed_table_size = _TABLE_BYTES
        self._known: dict[bytes, Block] = {}
        self._requests: dict[tuple[bytes, bool], Request] = {}
        """The requests of the known blocks, without and with a body."""

    def decode(self, block: bytes) -> Block:
        """Decodes a block. Raises ConnectionFailure if it is invalid, because later ones cannot be decoded either."""
        known = self._known.get(block)
        if known is not None:
            return known
        if len(block) > _CHEAP_BLOCK and not _is_affordable(block):
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)
        entries = self._decoder.header_table.dynamic_entries
        newest, count = entries[0] if entries else None, len(entries)
        try:
            fields = cast("Block", self._decoder.decode(block, raw=True))
        except hpack.OversizedHeaderListError:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR) from None
        except hpack.HPACKError:
            raise ConnectionFailure(ErrorCode.COMPRESSION_ERROR) from None
        entries = self._decoder.header_table.dynamic_entries
        resizes = block[:1] and block[0] & 0xE0 == 0x20
        if resizes or len(entries) != count or (count and entries[0] is not newest) or len(self._known) >= _REMEMBERED_BLOCKS:
            self._known.clear()
            self._requests.clear()
        elif len(block) <= _REMEMBERED_BLOCK:
            self._known[block] = fields
        return fields

    def parse(self, block: bytes, fields: Block, has_body: bool) -> Request:
        """Returns the request of a block that was just decoded; see `parse_request`."""
        request = self._requests.get((block, has_body))
        if request is None:
            request = parse_request(fields, has_body)
            if block in self._known:
                self._requests[block, has_body] = request
        return request


def _is_affordable(block: bytes) -> bool:
    """Reports whether a block has at most `MAX_FIELDS` fields and `MAX_HUFFMAN_BYTES` of Huffman code.

    The result for a block that ends too early does not matter, because the decoder refuses it. Raises ConnectionFailure.
    """
    place, end, fields, huffman = 0, len(block), 0, 0
    try:
        while place < end:
            fields += 1
            if fields > MAX_FIELDS:
                return False
            first = block[place]
            if first & 0x80:
                _, place = _decode_integer(block, place, 0x7F)
                continue
            if first & 0xE0 == 0x20:
                _, place = _decode_integer(block, place, 0x1F)
                continue
            index, place = _decode_integer(block, place, 0x3F if first & 0x40 else 0x0F)
            for _ in range(1 if index else 2):
                is_coded = block[place] & 0x80
                length, place = _decode_integer(block, place, 0x7F)
                place += length
                huffman += length if is_coded else 0
    except IndexError:
        pass
    return huffman <= MAX_HUFFMAN_BYTES


def _decode_integer(block: bytes, place: int, mask: int) -> tuple[int, int]:
    """Returns an integer with a prefix (RFC 7541, 5.1), and the place behind it.

    Raises:
        IndexError: the block ends before the integer does.
        ConnectionFailure: the integer is too long; not all versions of hpack refuse it, and the decoding takes quadratic time.
    """
    value = block[place] & mask
    place += 1
    if value == mask:
        shift = 0
        while True:
            byte = block[place]
            place += 1
            value += (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
            if shift > 35:
                raise ConnectionFailure(ErrorCode.COMPRESSION_ERROR)
    return value, place


def parse_request(block: Block, has_body: bool) -> Request:
    """Returns the request of a decoded header block. If `fields.fault` is not empty, it begins with the status code of the
    response that refuses the request. Raises MalformedRequest."""
    pseudo: dict[bytes, bytes] = {}
    start = 0
    for name, value in block:
        if name[:1] != b":":
            break
        if name in pseudo or name not in _PSEUDO_NAMES or not _VALUE.fullmatch(value):
            raise MalformedRequest(name)
        pseudo[name] = value
        start += 1
    regular = tuple(block[start:])
    authority = pseudo.get(b":authority", b"")
    fields = _fields(regular, authority, has_body)
    if _list_bytes(block) > MAX_LIST_BYTES:
        fields = Fields(fields.pairs, fields.length, True, False, False, fields.has_host, _TOO_LARGE)
    return _request(pseudo, fields)


def _request(pseudo: dict[bytes, bytes], fields: Fields) -> Request:
    method, path = pseudo.get(b":method", b"").decode("latin-1"), pseudo.get(b":path", b"").decode("latin-1")
    scheme = pseudo.get(b":scheme", b"")
    if b":protocol" in pseudo:
        raise MalformedRequest("extended CONNECT")
    if method == "CONNECT":
        path_of_connect = pseudo.get(b":authority", b"").decode("latin-1")
        if path or scheme or not path_of_connect:
            raise MalformedRequest("CONNECT")
        return Request(method, path_of_connect, (2, 0), fields)
    if not method or not path or scheme not in (b"https", b"http"):
        raise MalformedRequest("pseudo-header fields")
    if "@" in next((value for name, value in fields.pairs if name == "host"), "") or not is_valid_target(method, path):
        raise MalformedRequest("target")
    return Request(method, path, (2, 0), fields)


def _list_bytes(block: Block) -> int:
    """Returns the size of a header list (RFC 9113, 6.5.2)."""
    return sum([len(name) + len(value) for name, value in block]) + 32 * len(block)


def _is_usual(regular: Block, _authority: bytes, _has_body: bool) -> bool:
    return len(regular) <= 32 and _list_bytes(regular) <= _REMEMBERED_LIST_BYTES


_models: BoundedCache[tuple[Block, bytes], Fields] = BoundedCache(512)
"""By the regular fields, Content-Length without its value, and the authority: writes differ in their lengths."""


@cache_if(_is_usual, 512)
def _fields(regular: Block, authority: bytes, has_body: bool) -> Fields:
    """Returns the regular fields of a request; of those that differ only in their Content-Length one is parsed."""
    lengths = [value for name, value in regular if name == _CONTENT_LENGTH]
    is_usual = has_body and len(lengths) == 1 and _USUAL_LENGTH.fullmatch(lengths[0]) and _is_usual(regular, authority, has_body)
    if not is_usual:
        return _parse_fields(regular, authority, has_body)
    rest = tuple([(name, b"" if name == _CONTENT_LENGTH else value) for name, value in regular]), authority
    model = _models.get(rest)
    if model is not None:
        return model.with_length(lengths[0].decode("ascii"))
    return _models.add(rest, _parse_fields(regular, authority, has_body))


def _parse_fields(regular: Block, authority: bytes, has_body: bool) -> Fields:
    """Parses the regular fields of a request."""
    pairs: list[tuple[str, str]] = [("host", authority.decode("latin-1"))] if authority else []
    expectations, lengths = "", []
    for name, value in regular:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise MalformedRequest(name)
        text = value.decode("latin-1")
        match name:
            case b"host" if pairs and pairs[0][0] == "host":
                continue
            case b"expect":
                expectations += "," + text
            case b"content-length":
                lengths.append(text)
            case b"trailer":
                continue
        pairs.append((name.decode("latin-1"), text))
    expects_continue = "100-continue" in [token.strip(" \t").lower() for token in expectations.split(",")]
    if expects_continue:
        pairs = [(name, value) for name, value in pairs if name != "expect"]
    return Fields(
        pairs=tuple(pairs),
        length=_length(lengths) if has_body else 0,
        keep_alive=True,
        expects_continue=expects_continue and has_body,
        expectation_failed=False,
        has_host=bool(pairs) and pairs[0][0] == "host",
        fault=_fault(regular),
    )


def _length(lengths: list[str]) -> int | None:
    """Returns the declared length of the body; None if there is none, 0 for an invalid one."""
    if not lengths:
        return None
    return int(lengths[0]) if _LENGTH.fullmatch(lengths[0]) and int(lengths[0]) < 1 << 63 else 0


def _fault(regular: Block) -> str:
    """Returns the 400 for connection-specific fields (RFC 9113, 8.2.2); "" if there are none."""
    names = {name for name, _ in regular}
    for name, canonical in _CONNECTION_FIELDS.items():
        if name in names:
            return f'400 request header "{canonical}" is not valid in HTTP/2'
    te = [value for name, value in regular if name == b"te"]
    if te and (len(te) > 1 or te[0] not in (b"trailers", b"")):
        return '400 request header "TE" may only be "trailers" in HTTP/2'
    return ""


# --- Responses --------------------------------------------------------------------------------------------------------

_STATIC = HeaderTable.STATIC_TABLE
_STATUSES = {value.decode(): bytes([0x80 | index]) for index, (name, value) in enumerate(_STATIC, 1) if name == b":status"}
_NAMES: dict[str, int] = {}
for _index, (_static_name, _) in enumerate(_STATIC, 1):
    _NAMES.setdefault(_static_name.decode(), _index)


def encode_block(status: str, fields: Sequence[tuple[str, str]]) -> bytes:
    """Encodes the header block of a response; `status` is the code."""
    parts = [_STATUSES.get(status) or _literal((":status", status))]
    parts += map(_literal, fields)
    return b"".join(parts)


_USUAL_VALUE = 128
_AUDIT_ID = "Audit-Id"
"""The field that differs in all responses: it would push the others out of the cache."""


def _is_usual_field(field: tuple[str, str]) -> bool:
    return len(field[1]) <= _USUAL_VALUE and field[0] != _AUDIT_ID


@cache_by_key(_is_usual_field, 512)
def _literal(field: tuple[str, str]) -> bytes:
    """Encodes a literal field without indexing (RFC 7541, 6.2.2)."""
    name, value = field
    raw = value.encode("latin-1", "replace")
    if b"\n" in raw or b"\r" in raw:
        raw = raw.replace(b"\r", b" ").replace(b"\n", b" ")
    length = len(raw)
    return _name(name) + (bytes((length,)) if length < 127 else _integer(length, 7)) + raw


@functools.lru_cache(maxsize=512)
def _name(name: str) -> bytes:
    lower = name.lower()
    index = _NAMES.get(lower)
    if index is not None:
        return _integer(index, 4)
    raw = lower.encode("latin-1", "replace")
    return b"\0" + _integer(len(raw), 7) + raw


def _integer(value: int, bits: int) -> bytes:
    """Encodes an integer with a prefix of `bits` bits; the other bits of the first byte are zero (RFC 7541, 5.1)."""
    largest = (1 << bits) - 1
    if value < largest:
        return bytes((value,))
    encoded = bytearray((largest,))
    value -= largest
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
