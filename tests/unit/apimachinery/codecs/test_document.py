from __future__ import annotations

from typing import Any

from fakekube.apimachinery.codecs.document import Document


def test_encoding_is_cached() -> None:
    calls = []

    def make(obj: dict[str, Any]) -> bytes:
        calls.append(obj)
        return b"x"

    document = Document({"a": 1})
    assert [document.encoded("x", make), document.encoded("x", make)] == [b"x", b"x"]
    assert calls == [{"a": 1}]


def test_encodings_are_cached_separately() -> None:
    document = Document({"a": 1.0})
    assert document.encoded("x", len) == 1
    assert document.json == b'{"a":1}'


def test_superseded_document_is_encoded_again() -> None:
    document = Document({"a": 1})
    before = document.json
    document.supersede()
    assert document.json == before == b'{"a":1}'


def test_repr_shows_namespace_and_name() -> None:
    assert repr(Document({"metadata": {"namespace": "n", "name": "x"}})) == "<Document n/x>"
    assert repr(Document({})) == "<Document />"
