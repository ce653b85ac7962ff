"""Large bodies are split into chunks of limited size."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs.document import CHUNK_BYTES, Chunks, Items, enclose
from fakekube.apiserver.http.compression import gzip_body


@given(
    sizes=st.lists(st.integers(0, 3 * CHUNK_BYTES), max_size=8), small=st.integers(0, 2000),
    between=st.sampled_from([b"", b",", b", "]),
)  # fmt: skip
def test_chunks_concatenate_to_the_whole_body(sizes: list[int], small: int, between: bytes) -> None:
    parts = [b"a" * size for size in sizes] + [b"b" * 100] * small
    whole = b"<" + between.join(parts) + b">"
    items = Items(parts, between)
    pieces = Chunks(b"<", items, b">")
    for again in range(3):
        assert b"".join(pieces) == whole, f"they can be had {again + 1} times"
    assert len(pieces) == len(whole)
    assert items.count == len(parts)
    assert gzip.decompress(gzip_body(pieces)) == whole


@given(size=st.integers(1, 5000), count=st.integers(1, 2000))
def test_chunks_have_similar_sizes(size: int, count: int) -> None:
    opening, *lengths = [len(piece) for piece in Chunks(b"[", Items([b"a" * size] * count, b","), b"]")]
    assert opening == 1
    assert max(lengths) <= CHUNK_BYTES + 2 + size
    assert all(length > CHUNK_BYTES // 2 - size for length in lengths[:-1])


def test_chunks_are_cached_from_the_second_iteration_on() -> None:
    items = Items([b"a" * 1000] * 1000, b",")
    first, second, third = ([*items] for _ in range(3))
    assert first == second == third
    assert not any(one is other for one, other in zip(first, second, strict=True))
    assert all(one is other for one, other in zip(second, third, strict=True))


def test_abandoned_iteration_does_not_truncate_the_next() -> None:
    items = Items([b"a" * 1000] * 1000, b",")
    for _ in range(3):
        next(iter(items))
    assert b"".join(items) == b",".join([b"a" * 1000] * 1000)


def test_only_large_bodies_are_chunked() -> None:
    small, large = (enclose(b"[", Items([b"{}" * 10] * count, b","), b"]") for count in (10, 10_000))
    assert small == b"[" + b",".join([b"{}" * 10] * 10) + b"]"
    assert isinstance(large, Chunks)
    assert b"".join(large) == b"[" + b",".join([b"{}" * 10] * 10_000) + b"]"
    assert enclose(b"[", Items([], b","), b"]") == b"[]"
