from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.base.golang.base64 import Base64Error, canonical, encode

#: Written, the byte at which Go gives up.
WRONG = [
    ("!", 0), ("a", 0), ("aGk", 0), ("not base64", 3), ("dGVzd", 4), ("dGVzdA", 4), ("dGVzdA=", 7), ("dGVzdA==x", 8),
    ("====", 0), ("d===", 1), ("dGVzdA=x", 6), ("dGVzdA=\n", 8), ("dGVz dA==", 4), ("é", 0), ("dGVzdA==\n=", 9),
    ("baDa=", 4), ("CaDa==", 4), ("abcd====", 4),
]  # fmt: skip


@given(st.binary(max_size=40))
def test_canonical_base64_is_unchanged(data: bytes) -> None:
    text = encode(data)
    assert canonical(text) == text


@given(st.binary(max_size=40), st.data())
def test_line_breaks_are_ignored(data: bytes, draw: st.DataObject) -> None:
    text = encode(data)
    position = draw.draw(st.integers(0, len(text)))
    assert canonical(text[:position] + draw.draw(st.sampled_from(["\n", "\r\n"])) + text[position:]) == text


def test_trailing_bits_are_dropped() -> None:
    assert canonical("dGVzdB==") == "dGVzdA=="


@pytest.mark.parametrize(("text", "position"), WRONG)
def test_error_has_the_offset_of_the_invalid_byte(text: str, position: int) -> None:
    with pytest.raises(Base64Error) as caught:
        canonical(text)
    assert str(caught.value) == f"illegal base64 data at input byte {position}"


@given(st.text(alphabet="abCD+/=\n é", max_size=12))
def test_arbitrary_text_is_decoded_or_rejected(text: str) -> None:
    try:
        assert canonical(canonical(text)) == canonical(text)
    except Base64Error as error:
        assert "illegal base64 data at input byte " in str(error)
