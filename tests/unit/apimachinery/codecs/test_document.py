from __future__ import annotations

import collections
import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import document as document_module
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import CompressedText, Document, compress, encode_all, keep_recent, pack_recent
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.json_writer import RawObject


def test_encoding_is_cached() -> None:
    calls = []

    def make(obj: dict[str, Any]) -> bytes:
        calls.append(obj)
        return b"x"

    document = Document({"a": 1})
    assert [document.encoding("x", make), document.encoding("x", make)] == [b"x", b"x"]
    assert calls == [{"a": 1}]


def test_encodings_are_cached_separately() -> None:
    document = Document({"a": 1.0})
    assert document.encoding("x", len) == 1
    assert document.json == b'{"a":1}'


def test_superseded_document_is_encoded_again() -> None:
    document = Document({"a": 1})
    before, encodings = document.json, iter((b"first", b"second"))
    assert document.encoding("x", lambda _: next(encodings)) == b"first"
    converted = document.encoding("y", Document)
    document.supersede()
    assert document.json == before == b'{"a":1}'
    assert document.encoding("x", lambda _: next(encodings)) == b"second"
    assert document.encoding("y", Document) is converted


@pytest.mark.parametrize(("drop", "left"), [(Document.pack, b"second"), (Document.supersede, b"again")])
def test_an_encoding_may_be_added_while_others_are_dropped(drop: Callable[[Document], None], left: bytes) -> None:
    """As by another thread."""
    document = Document({"a": 1})

    class Encoding:
        @property
        def __class__(self) -> type:  # what `drop` looks at
            document.encoding("added", lambda _: b"added")
            return Encoding

    document.encoding("first", lambda _: Encoding())
    document.encoding("second", lambda _: b"second")
    drop(document)
    assert document.encoding("second", lambda _: b"again") == left


def test_repr_shows_namespace_and_name() -> None:
    assert repr(Document({"metadata": {"namespace": "n", "name": "x"}})) == "<Document n/x>"
    assert repr(Document({})) == "<Document />"


@pytest.mark.parametrize("value", ["text", 1, 1.0, -0.0, True, None, [], {}, "<&>", 2**63, {"b": 1, "a": [1.5, {"x": "y"}]}])
def test_a_packed_document_holds_the_same_object(value: Any) -> None:
    obj = {"metadata": {"name": "a"}, "data": {"z": value, "a": value}}
    document = Document(copy.deepcopy(obj))
    text = document.json
    document.pack()
    assert document.json == text
    assert repr(document.object) == repr(obj)  # 1, 1.0 and True are equal
    document.pack()
    document.supersede()
    assert (document.json, repr(document.object)) == (text, repr(obj))


def test_a_document_with_texts_of_its_own_is_not_packed() -> None:
    obj = {"metadata": {"name": "a"}, "raw": RawObject({"b": 1}, b'{ "b" : 1 }')}
    document = Document(obj)
    document.pack()
    assert document.object is obj


def test_two_threads_pack_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """As clusters that share it do: the second one is done while the first one encodes."""
    document = Document({"metadata": {"name": "a"}})
    encode, others = orjson.dumps, [document]

    def encode_after_other_thread(*arguments: Any, **options: Any) -> bytes:
        while others:
            others.pop().pack()
        return encode(*arguments, **options)

    monkeypatch.setattr(orjson, "dumps", encode_after_other_thread)
    document.pack()
    assert _is_packed(document)
    assert document.object == {"metadata": {"name": "a"}}


def test_old_documents_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "_MAX_RECENT", 2)
    monkeypatch.setattr(document_module, "_recent", collections.deque())
    trees: list[dict[str, Any]] = [{"metadata": {"name": str(number)}} for number in range(3)]
    documents = [Document(tree) for tree in trees]
    for document in documents:
        keep_recent(document)
    first, _, last = documents
    assert last.object is trees[2]
    assert first.object is not trees[0]
    assert first.object == trees[0]
    assert first.object is first.object


def test_a_process_that_rests_packs_recent_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "_recent", collections.deque())
    documents = [Document({"metadata": {"name": str(number)}}) for number in range(3)]
    for document in [*documents, documents[0]]:
        keep_recent(document)
    pack_recent()
    assert all(map(_is_packed, documents))
    assert [one.object["metadata"]["name"] for one in documents] == ["0", "1", "2"]


def _is_packed(document: Document) -> bool:
    try:
        Document.__dict__["object"].__get__(document)
    except AttributeError:
        return True
    return False


def _packed(obj: dict[str, Any]) -> Document:
    document = Document(obj)
    document.pack()
    return document


@pytest.mark.parametrize("value", ["text", "<&>", "\u2028", 1, 1.0, 1e22, 1e-7, None])
def test_readers_of_many_documents_leave_them_packed(value: Any) -> None:
    obj = {"metadata": {"name": "a"}, "data": {"a": value}}
    document, other = _packed(copy.deepcopy(obj)), Document(copy.deepcopy(obj))
    assert document.tree == obj
    assert document.tree is not document.tree
    assert document.json == other.json
    assert document.encoding("x", lambda tree: repr(tree).encode()) == repr(obj).encode()
    assert _is_packed(document)
    assert other.tree is other.object


def test_a_packed_document_keeps_only_encodings_without_parts_of_the_tree() -> None:
    document = _packed({"metadata": {"name": "a"}})
    calls: list[str] = []

    def make(kind: Any) -> Any:
        def made(tree: dict[str, Any]) -> Any:
            calls.append(kind.__name__)
            return kind(tree["metadata"])

        return made

    for _ in range(2):
        document.encoding("part", make(dict))
        document.encoding("row", make(tuple))
    assert calls == ["dict", "tuple", "dict"]


def test_several_encodings_of_a_packed_document_are_made_from_one_tree() -> None:
    document = _packed({"metadata": {"name": "a"}})
    trees: list[int] = []

    def make(tree: dict[str, Any]) -> bytes:
        trees.append(id(tree))
        return b"x"

    encode_all([document], {"a": make, "b": make})
    encode_all([document], {"a": make, "b": make})
    assert len(trees) == 2
    assert len(set(trees)) == 1
    assert document.encoding("a", make) == b"x"
    assert len(trees) == 2


@pytest.mark.parametrize("text", ["a", "<&>", "\u2028\xe9", "\ufffd", "\ud800"])
@pytest.mark.parametrize("is_superseded", [True, False])
def test_an_object_without_floats_is_held_as_its_json(text: str, is_superseded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    obj = {"metadata": {"name": text}, "data": {"1.0": text, "n": 1}}
    document, other = Document(obj), Document(copy.deepcopy(obj))
    document.has_floats = False
    encoded = document.json
    assert encoded == other.json
    if is_superseded:
        document.supersede()
    document.pack()
    other.pack()
    with monkeypatch.context() as patched:
        if text in ("a", "<&>"):
            patched.setattr(json, "dumps", lambda *_, **__: pytest.fail("it was encoded again"))
        assert document.json == encoded
    assert document.object == other.object == obj
    assert document.find_head() == other.find_head() or "\\" in encoded.decode()


def test_a_document_knows_the_last_apply_that_left_it_as_it_is() -> None:
    document = Document({"metadata": {"name": "a"}})
    assert not document.is_unchanged_by("first")
    document.note_unchanged("first")
    assert document.is_unchanged_by("first")
    document.note_unchanged("second", "now")
    assert [document.is_unchanged_by(apply) for apply in ("first", "second", "now", "then")] == [False, True, True, False]
    document.pack()
    assert not document.is_unchanged_by("second")


#: What separates the parts of an object, and what looks like it, in names and strings.
_TEXTS = st.sampled_from(
    ["a", "é", "<&>", "1.0", '},"spec":{', ',"managedFields":[', "spec", "managedFields", "\\", '"', "\u2028"]
)
_MAPS = st.dictionaries(_TEXTS, _TEXTS, max_size=2)
_PARTS = st.dictionaries(_TEXTS, _TEXTS | st.sampled_from([None, 1, 1.0, 1e22]) | _MAPS | st.lists(_MAPS, max_size=2), max_size=2)
_ENTRIES = st.lists(st.fixed_dictionaries({"manager": _TEXTS, "fieldsV1": st.just({"f:spec": {}})}), min_size=1, max_size=2)
_METADATA = st.fixed_dictionaries(
    {}, optional={"name": _TEXTS, "labels": _MAPS, "annotations": _MAPS, "managedFields": _ENTRIES}
).map(lambda found: {name: found[name] for name in ("name", "labels", "annotations", "managedFields") if name in found})
_OBJECTS = st.builds(
    lambda names, metadata, parts: {name: metadata if name == "metadata" else parts[name] for name in names},
    st.lists(st.sampled_from(["metadata", "spec", "template", "status"]), unique=True).map(lambda names: ["metadata", *names])
    | st.sampled_from([["metadata", "spec", "status"], ["metadata", "data"], ["metadata"], ["apiVersion", "metadata", "spec"]]),
    _METADATA,
    st.fixed_dictionaries(dict.fromkeys(("apiVersion", "data", "spec", "template", "status"), _PARTS)),
)


def _without_managed_fields(obj: Any) -> dict[str, Any]:
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"}}


@settings(max_examples=50)
@given(st.lists(_OBJECTS, min_size=1, max_size=3))
def test_the_parts_of_packed_documents_are_those_of_the_object(objects: list[dict[str, Any]]) -> None:
    for obj in objects:
        packed, written = _packed(copy.deepcopy(obj)), json.dumps(obj["metadata"])
        assert repr(packed.tree) == repr(obj)
        assert repr(_without_managed_fields(packed.tree_to_print)) == repr(_without_managed_fields(obj))
        assert packed.labels == Document(obj).labels == obj["metadata"].get("labels")
        is_usual = next(iter(obj)) == "metadata"
        is_canonical = json.is_canonical(orjson.dumps(obj["metadata"]), floats=False)
        assert packed.cut_metadata() == (written if is_usual and is_canonical else None)
        kept = Document(copy.deepcopy(obj))
        assert kept.cut_metadata() is None
        assert kept.json == packed.json
        assert kept.cut_metadata() == (written if is_usual else None)


def test_metadata_before_a_field_with_the_name_of_one_of_its_own_is_not_looked_for() -> None:
    obj = {"metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {}}, "annotations": {"c": "d"}}
    assert _packed(obj).cut_metadata() is None
    assert _packed(obj).tree == obj


def test_metadata_with_addresses_is_cut_out_of_the_text() -> None:
    entry = {"manager": "kubelet", "fieldsV1": {"f:status": {"f:podIPs": {'k:{"ip":"10.0.0.7"}': {}}}}}
    obj = {"metadata": {"name": "a", "managedFields": [entry]}, "spec": {"a": 1}}
    assert _packed(obj).cut_metadata() == json.dumps(obj["metadata"])
    assert _packed(obj).tree_to_print == _without_managed_fields(obj)


def test_objects_of_one_workload_share_the_parts_that_readers_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "_parts", BoundedCache(10))  # without what other tests have read
    entry = {"manager": "m", "fieldsV1": {"f:spec": {}}}
    first, one, other = (_packed({"metadata": {"name": name, "managedFields": [entry]}, "spec": {"a": 1}}) for name in "abc")
    assert first.tree["spec"] is not first.tree["spec"]  # kept from the second time on: most statuses are read once
    assert one.tree["spec"] is other.tree["spec"]
    assert one.tree["metadata"]["managedFields"] is other.tree["metadata"]["managedFields"]
    assert one.object["spec"] is not other.object["spec"]


@pytest.mark.parametrize("value", ["text", "<&>", "\u2028", 1, 1.0, 1e22, None, {"a": [1, {"b": "c"}]}])
def test_compressed_documents_are_read_as_packed_ones(value: Any) -> None:
    meta = {"name": "a", "labels": {"l": "m"}, "managedFields": [{"manager": "x", "fieldsV1": {"f:data": {}}}]}
    objects = [{"metadata": {**meta, "name": f"a-{number}"}, "spec": {"a": value, "text": "x" * 500}} for number in range(9)]
    packed, compressed = ([_packed(copy.deepcopy(obj)) for obj in objects] for _ in range(2))
    for document in compressed:
        document.encoding("x", lambda _tree: b"made")
    compress(compressed)
    compress(compressed)  # has no effect
    (block,) = {one._packed._block for one in compressed if isinstance(one._packed, CompressedText)}
    assert len(block.data) < len(packed[0].json)
    for obj, one, other in zip(objects, packed, compressed, strict=True):
        assert (type(other._packed), other._made) == (CompressedText, {})
        assert (other.tree, other.labels, other.size) == (obj, {"l": "m"}, one.size)
        assert other.cut_metadata() == one.cut_metadata()
        assert (other.json, other.encoding("y", lambda tree: repr(tree).encode())) == (one.json, repr(obj).encode())
        compress([other])
        assert (other._json, other._made) == (b"", {})
        assert repr(other.object) == repr(obj)
        other.pack()
        assert (type(other._packed), other.json) == (bytes, one.json)


def test_only_packed_documents_are_compressed() -> None:
    document = Document({"metadata": {"name": "a"}})
    compress([document])
    assert document.object is document.tree


def test_a_document_that_is_read_while_it_is_compressed_can_be_compressed_again() -> None:
    document = _packed({"metadata": {"name": "a"}})
    assert document.object == {"metadata": {"name": "a"}}  # now it has both the tree and the text
    compress([document])
    document.pack()
    compress([document])
    assert type(document._packed) is CompressedText
    assert document.tree == {"metadata": {"name": "a"}}
