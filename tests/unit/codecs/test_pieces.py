"""Large bodies: the pieces are the whole, and none of them is large."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from fakekube.api.compression import gzipped
from fakekube.codecs.formats import Kind, format_of
from fakekube.codecs.negotiation import JSON, MediaType
from fakekube.codecs.pieces import PIECE_BYTES, Pieces

COMPACT = format_of(MediaType("json", JSON))
PODS = Kind("v1", "PodList")


@given(sizes=st.lists(st.integers(0, 3 * PIECE_BYTES), min_size=1, max_size=8), small=st.integers(0, 2000))
def test_pieces_are_the_whole(sizes: list[int], small: int) -> None:
    parts = [b"a" * size for size in sizes] + [b"b" * 100] * small
    whole = b"<" + b",".join(parts) + b">"
    pieces = Pieces(b"<", parts, b">")
    assert b"".join(pieces) == whole
    assert b"".join(pieces) == whole, "they can be had again"
    assert len(pieces) == len(whole)
    assert gzip.decompress(gzipped(pieces)) == whole


@given(size=st.integers(1, 5000), count=st.integers(1, 2000))
def test_pieces_of_even_parts_are_as_long_as_is_good_for_sending(size: int, count: int) -> None:
    lengths = [len(piece) for piece in Pieces(b"[", [b"a" * size] * count, b"]")]
    assert max(lengths) <= PIECE_BYTES + 2 + size
    assert all(length > PIECE_BYTES // 2 - size for length in lengths[:-1])


def test_only_large_lists_come_in_pieces() -> None:
    small, large = (COMPACT.list([b"{}" * 10] * count, PODS, {}) for count in (10, 10_000))
    assert isinstance(small, bytes)
    assert isinstance(large, Pieces)
    opening = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":['
    assert b"".join(large) == opening + b",".join([b"{}" * 10] * 10_000) + b"]}\n"
    assert small == opening + b",".join([b"{}" * 10] * 10) + b"]}\n"
