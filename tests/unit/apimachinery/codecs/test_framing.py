from __future__ import annotations

import pytest

from fakekube.apimachinery.codecs.formats import FRAMES


@pytest.mark.parametrize(
    ("name", "expected"), [("json", b"event\n"), ("yaml", b"---\nevent"), ("protobuf", b"\0\0\0\x05event"), ("cbor", b"event")]
)
def test_watch_event_frames(name: str, expected: bytes) -> None:
    assert FRAMES[name](b"event") == expected
