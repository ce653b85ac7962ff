from __future__ import annotations

from typing import Any

from fakekube.codecs.document import Document


def test_an_encoding_is_made_once() -> None:
    calls = []

    def make(obj: dict[str, Any]) -> bytes:
        calls.append(obj)
        return b"x"

    document = Document({"a": 1})
    assert [document.encoded("x", make), document.encoded("x", make)] == [b"x", b"x"]
    assert calls == [{"a": 1}]


def test_encodings_are_kept_apart() -> None:
    document = Document({"a": 1.0})
    assert document.encoded("x", len) == 1
    assert document.json == b'{"a":1}'


def test_what_is_superseded_is_encoded_anew() -> None:
    document = Document({"a": 1})
    before = document.json
    document.supersede()
    assert document.json == before == b'{"a":1}'


def test_its_representation_names_it() -> None:
    assert repr(Document({"metadata": {"namespace": "n", "name": "x"}})) == "<Document n/x>"
    assert repr(Document({})) == "<Document />"
