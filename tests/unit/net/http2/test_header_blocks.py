from __future__ import annotations

from dataclasses import asdict

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.net.http2 import header_blocks
from fakekube.net.http2.frames import ConnectionFailure, ErrorCode
from fakekube.net.http2.header_blocks import BlockDecoder, encode_block, parse_request

NAMES = st.from_regex(r"[a-z][a-z0-9\-]{0,200}", fullmatch=True)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=300)
USUAL = ((b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a"), (b":path", b"/x"))


@given(st.sampled_from(["200", "404", "500", "201", "422"]), st.lists(st.tuples(NAMES, VALUES), max_size=20))
def test_encoded_header_block_decodes_to_the_same_fields(status: str, fields: list[tuple[str, str]]) -> None:
    decoded = hpack.Decoder().decode(encode_block(status, fields), raw=True)
    assert [(bytes(name), bytes(value)) for name, value in decoded] == [
        (b":status", status.encode()),
        *((name.encode(), value.encode("latin-1")) for name, value in fields),
    ]


def test_header_names_are_lowercased_and_line_breaks_in_values_replaced() -> None:
    decoded = hpack.Decoder().decode(encode_block("200", [("X-A", "b\r\nc: d")]))
    assert [tuple(field) for field in decoded][1:] == [("x-a", "b  c: d")]


@given(
    st.lists(st.lists(st.sampled_from([("a", "1"), ("b", "2" * 300), ("c", "3" * 3000), ("d", "4")]), max_size=6), max_size=12)
)
def test_cached_header_blocks_match_the_hpack_dynamic_table(blocks: list[list[tuple[str, str]]]) -> None:
    encoder, decoder = hpack.Encoder(), BlockDecoder()
    for number, fields in enumerate(blocks):
        if number % 5 == 4:
            encoder.header_table_size = 4096 if number % 2 else 1000
        found = decoder.decode(encoder.encode(fields))
        assert [(name.decode(), value.decode()) for name, value in found] == fields


def test_header_block_with_table_size_update_is_not_cached() -> None:
    decoder = BlockDecoder()
    for size, block in ((b"\x20", b"\x82"), (b"\x3f\xe1\x1f", b"\x84"), (b"\x20", b"\x82")):
        decoder.decode(size + block)
    with pytest.raises(ConnectionFailure):
        decoder.decode(b"\x40\x01a\x01b" + b"\xbe")  # there is no table to index


def test_authority_takes_precedence_over_host_header() -> None:
    assert parse_request((*USUAL, (b"host", b"other")), False).fields.pairs == (("host", "a"),)
    without = USUAL[:2] + USUAL[3:]
    assert parse_request((*without, (b"host", b"other")), False).fields.pairs == (("host", "other"),)
    assert not parse_request(without, False).fields.has_host


@pytest.mark.parametrize("has_body", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        ((b"content-length", b"?"),),
        ((b"a", b"b"), (b"content-length", b"?"), (b"expect", b"100-continue")),
        ((b"content-length", b"?"), (b"content-length", b"5")),
        ((b"content-length", b"5"), (b"content-length", b"?")),
        ((b"x-content-length", b"?"), (b"content-length", b"5")),
        ((b"content-length", b"?"), (b"connection", b"close")),
    ],
)
def test_blocks_that_differ_in_their_content_length_are_parsed_as_if_each_were_the_first(
    fields: tuple[tuple[bytes, bytes], ...], has_body: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome_of(length: bytes) -> object:
        block = [(name, length if value == b"?" else value) for name, value in fields]
        authority = (b":authority", b"of-" + length[:1])
        found = parse_request((*USUAL[:2], authority, USUAL[3], *block), has_body).fields
        return {**asdict(found), "variables": None, "model": None}

    lengths = [b"5", b"7", b"0", b"12345", b"05", b"x", b"", b"9" * 30, b"56"]
    together = [outcome_of(length) for length in lengths]
    monkeypatch.setattr(header_blocks, "_fields", header_blocks._parse_fields)
    assert together == [outcome_of(length) for length in lengths]


@pytest.mark.parametrize(
    ("fields", "has_body", "length"),
    [
        ((), True, None),
        ((), False, 0),
        (((b"content-length", b"12"),), True, 12),
        (((b"content-length", b"12"),), False, 0),
        (((b"content-length", b"x"),), True, 0),
        (((b"content-length", b"9" * 19),), True, 0),
    ],
)
def test_content_length_of_a_request(fields: tuple[tuple[bytes, bytes], ...], has_body: bool, length: int | None) -> None:
    assert parse_request((*USUAL, *fields), has_body).fields.length == length


@pytest.mark.parametrize(
    "block",
    [
        b"\x82" * 2000,
        b"\x00\x01a\x01b" * 1500,
        b"\x40\x01a" + b"\x81\x07" * 1 + b"\xbe" * 1500,
        b"\x00\x01a" + b"\xff\x81\xff\x0f" + b"\0" * (256 << 10),  # a long Huffman code
    ],
    ids=["indexed", "literal", "from the table", "huffman"],
)
def test_expensive_header_blocks_are_refused_before_they_are_decoded(block: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = BlockDecoder()

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(decoder._decoder, "decode", fail)
    with pytest.raises(ConnectionFailure) as caught:
        decoder.decode(block)
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM


def test_header_block_with_an_endless_integer_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = BlockDecoder()

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(decoder._decoder, "decode", fail)
    with pytest.raises(ConnectionFailure) as caught:
        decoder.decode(b"\xff" + b"\x80" * 2000 + b"\0")
    assert caught.value.code is ErrorCode.COMPRESSION_ERROR


def test_large_header_block_of_few_fields_is_decoded() -> None:
    block = encode_block("200", [(f"name-{number}", "x" * 1000) for number in range(500)])
    assert len(BlockDecoder().decode(block)) == 501


def test_requests_of_known_blocks_are_parsed_once_and_forgotten_when_the_table_changes() -> None:
    decoder = BlockDecoder()
    stable = b"\x82\x87\x84\x01\x01a"  # GET https / with the authority "a"; nothing is indexed
    fields = decoder.decode(stable)
    request = decoder.parse(stable, fields, False)
    assert decoder.parse(stable, decoder.decode(stable), False) is request
    assert decoder.parse(stable, fields, True) is not request
    assert (request.method, request.target) == ("GET", "/")
    decoder.decode(b"\x40\x01b\x01c")  # adds an entry to the table
    again = decoder.parse(stable, decoder.decode(stable), False)
    assert again is not request
    assert again == request
