from __future__ import annotations

from fakekube.base.caches import cached_bytes


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
