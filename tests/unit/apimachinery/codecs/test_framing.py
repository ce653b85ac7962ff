from __future__ import annotations

from collections.abc import Callable

import pytest

from fakekube.apimachinery.codecs.formats import json_frame, protobuf_frame, yaml_frame


@pytest.mark.parametrize(
    ("frame", "expected"), [(json_frame, b"event\n"), (yaml_frame, b"---\nevent"), (protobuf_frame, b"\0\0\0\x05event")]
)
def test_watch_event_frames(frame: Callable[[bytes], bytes], expected: bytes) -> None:
    assert frame(b"event") == expected
