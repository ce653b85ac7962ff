from __future__ import annotations

import pytest

from fakekube.base.golang import pem
from fakekube.base.golang.pem import Block

BLOCK = b"-----BEGIN A-----\nQUJD\n-----END A-----\n"
ABC = Block("A", False, b"ABC")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (BLOCK, [ABC]),
        (b"before\n" + BLOCK + b"between\n" + BLOCK.replace(b"\n", b" \t\r\n"), [ABC, ABC]),
        (b"-----BEGIN A-----\nk: v\n\nQUJD\n-----END A-----", [Block("A", True, b"ABC")]),
        (b"-----BEGIN A-----\n-----END A-----\n", [Block("A", False, b"")]),
        (b"-----BEGIN B-----\n" + BLOCK, [ABC]),  # the first one has no end
        (b"-----BEGIN A-----\nQUJD\n-----END B-----\n" + BLOCK, [ABC]),
        (b"-----BEGIN A-----\nQUJD=\n-----END A-----\n" + BLOCK, [ABC]),
        (b"-----BEGIN A-----\nQUJD\n-----END A----- x\n", []),
        (b"x-----BEGIN A-----\nQUJD\n-----END A-----\n", []),
        (b"-----BEGIN A-----\nk: v\n-----END A:-----\n" + BLOCK, []),  # the END line is a header
        (b"", []),
    ],
)
def test_blocks_are_those_of_go(text: bytes, found: list[Block]) -> None:
    assert list(pem.blocks(text)) == found


def test_what_is_encoded_is_decoded() -> None:
    content = bytes(range(100))
    text = pem.encode("A B", content)
    assert max(map(len, text.splitlines())) == 64
    assert pem.decode(text + b"rest") == (Block("A B", False, content), len(text))


@pytest.mark.parametrize("line", [b"-----BEGIN a:b-----\n", b"-----BEGIN A-----\n", b"-----END A-----\n", b"k: v\n"])
def test_a_text_without_blocks_is_read_once(line: bytes) -> None:
    assert list(pem.blocks(line * 100_000)) == []  # minutes, if each line were the start of another search
