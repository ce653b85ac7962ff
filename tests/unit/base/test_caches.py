from __future__ import annotations

import tracemalloc
import weakref
from functools import cache

import orjson

from fakekube.base.caches import (
    LONGEST_TEXT,
    MAXIMUM_SIZE,
    BoundedCache,
    cache_by_key,
    cache_by_text,
    cache_if,
    cached_bytes,
    forget_all,
    forgettable,
    trim,
)


def test_the_results_that_were_not_used_longest_are_forgotten_beyond_the_bound() -> None:
    calls: list[bytes] = []

    @cached_bytes(20)
    def double(text: bytes) -> bytes:
        calls.append(text)
        return text * 2

    assert double(b"aa") == b"aaaa"  # 6 bytes
    assert double(b"bb") == b"bbbb"
    assert double(b"aa") == b"aaaa"
    assert double(b"cc") == b"cccc"
    assert calls == [b"aa", b"bb", b"cc"]
    double(b"dd")  # 24 bytes: the oldest, bb, is forgotten
    double(b"aa")
    assert calls == [b"aa", b"bb", b"cc", b"dd"]
    double(b"bb")
    assert calls[-1] == b"bb"
    assert double(b"e" * 100) == b"e" * 200
    double(b"e" * 100)
    assert len(calls) == 7  # what is larger than the bound is not kept


def test_nothing_is_kept_about_long_texts() -> None:
    calls: list[str] = []

    @cache_by_text(2)
    def count(text: str) -> int:
        calls.append(text)
        return len(text)

    short, long = "a" * LONGEST_TEXT, "a" * (LONGEST_TEXT + 1)
    for text in (short, short, long, long, "b", "b"):
        assert count(text) == len(text)
    assert calls == [short, long, long, "b"]
    count("c")  # the cache is full: it is cleared first
    count("c")
    count("b")
    assert calls[4:] == ["c", "b"]


def test_results_are_kept_for_the_keys_that_the_condition_admits() -> None:
    calls: list[tuple[str, int]] = []

    def is_short(key: tuple[str, int]) -> bool:
        return len(key[0]) * key[1] <= 4

    @cache_by_key(is_short, 2)
    def repeat(key: tuple[str, int]) -> str:
        calls.append(key)
        return key[0] * key[1]

    assert [repeat(("ab", times)) for times in (2, 2, 3, 3)] == ["abab", "abab", "ababab", "ababab"]
    assert calls == [("ab", 2), ("ab", 3), ("ab", 3)]


def test_results_are_kept_for_the_arguments_that_the_condition_admits() -> None:
    calls: list[tuple[str, int]] = []

    @cache_if(lambda text, times: len(text) * times <= 4, 2)
    def repeat(text: str, times: int) -> str:
        calls.append((text, times))
        return text * times

    assert [repeat("ab", times) for times in (2, 2, 3, 3)] == ["abab", "abab", "ababab", "ababab"]
    assert calls == [("ab", 2), ("ab", 3), ("ab", 3)]


def test_a_bounded_cache_is_cleared_when_its_entries_are_too_large() -> None:
    cache: BoundedCache[str, int] = BoundedCache(10)
    half = MAXIMUM_SIZE // 2
    assert [cache.add(name, number, half) for number, name in enumerate("ab")] == [0, 1]
    assert cache == {"a": 0, "b": 1}
    cache.add("c", 2, 1)
    assert cache == {"c": 2}
    assert cache.add("d", 3, MAXIMUM_SIZE + 1) == 3
    assert cache == {"c": 2}


def test_trimmed_bytes_need_no_more_memory_than_their_text() -> None:
    text = trim(orjson.dumps({"a": "b"}))
    assert text == b'{"a":"b"}'
    tracemalloc.start()
    try:
        kept = [trim(orjson.dumps({"a": "b"})) for _ in range(100)]
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == 100
    assert used < 100 * 200


def test_all_caches_are_emptied_and_filled_again() -> None:
    calls: list[object] = []

    @cached_bytes(100)
    def double(text: bytes) -> bytes:
        calls.append(text)
        return text * 2

    @forgettable
    @cache
    def half(number: int) -> int:
        calls.append(number)
        return number // 2

    @cache_by_text(10)
    def count(text: str) -> int:
        calls.append(text)
        return len(text)

    bounded: BoundedCache[str, int] = BoundedCache(10)

    def use_all() -> None:
        assert (double(b"a"), half(4), count("abc")) == (b"aa", 2, 3)
        bounded.add("a", 1, MAXIMUM_SIZE // 2)

    for _ in range(3):
        use_all()
        use_all()
        forget_all()
        assert bounded == {}
    assert calls == [b"a", 4, "abc"] * 3
    use_all()
    bounded.add("b", 2, MAXIMUM_SIZE // 2)  # what was forgotten does not count
    assert bounded == {"a": 1, "b": 2}


def test_a_cache_that_is_gone_is_not_kept_to_be_emptied() -> None:
    bounded: BoundedCache[str, int] = BoundedCache(10)
    bounded.add("a", 1)
    reference = weakref.ref(bounded)
    del bounded
    assert reference() is None
    forget_all()
