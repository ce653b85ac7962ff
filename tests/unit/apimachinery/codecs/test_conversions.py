"""Objects of built-in kinds are converted between all formats; invalid documents are rejected quickly."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import DecodeError, cbor, formats, json, protobuf, yaml
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.schema import decode
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.printing import normalise
from tests.unit.apimachinery.schema.values import KINDS, right_values

Obj = dict[str, Any]


class Format:
    """A format as bodies are written and read in it: whole objects of a type."""

    def __init__(self, name: str, write: Callable[[Type, Obj], bytes], read: Callable[[bytes], Any]) -> None:
        self.name, self.write, self.read = name, write, read

    def __repr__(self) -> str:
        return self.name


def _protobuf(type_: Type, obj: Obj) -> bytes:
    return protobuf.document(
        obj["apiVersion"],
        obj["kind"],
        protobuf.encode_item(type_, {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}),
    )


FORMATS = [
    Format("json", lambda _, obj: json.dumps(obj), lambda body: json.loads(body)[0]),
    Format("pretty", lambda _, obj: json.dumps_pretty(obj), lambda body: json.loads(body)[0]),
    Format("yaml", lambda _, obj: yaml.dumps(obj), lambda body: yaml.loads(body)[0]),
    Format("cbor", lambda type_, obj: cbor.dumps(obj, type_), cbor.loads),
    Format("protobuf", _protobuf, lambda body: protobuf.loads(body, "", "")),
]


@st.composite
def objects(draw: st.DrawFn) -> tuple[Type, Obj]:
    """An object of some kind as it is stored, with what it is."""
    group, version, kind = draw(st.sampled_from(KINDS))
    type_ = builtins().kind_type(group, version, kind)
    assert type_ is not None
    head = {"kind": kind, "apiVersion": f"{group}/{version}" if group else version}
    value = {name: member for name, member in draw(right_values(type_)).items() if name not in head}
    return type_, stored(type_, head, decode.decode(type_, value))


def stored(type_: Type, head: Obj, obj: Obj) -> Obj:
    """The form in which an object is printed once it was stored: Protobuf cannot tell empty from absent."""
    plain = {name: member for name, member in obj.items() if name not in head}
    passed = protobuf.decode(type_, protobuf.encode(type_, normalise(type_, plain)))
    return head | {name: member for name, member in normalise(type_, decode.decode(type_, passed)).items() if name not in head}


@given(objects())
def test_conversion_between_every_pair_of_formats(drawn: tuple[Type, Obj]) -> None:
    type_, obj = drawn
    head = {name: obj[name] for name in ("kind", "apiVersion")}
    for source, target in itertools.permutations(FORMATS, 2):
        first = source.read(source.write(type_, obj))
        there = stored(type_, head, decode.decode(type_, first))
        back = target.read(target.write(type_, there))
        assert without_texts(stored(type_, head, decode.decode(type_, back))) == without_texts(obj), (source, target)


def without_texts(tree: Any) -> Any:
    """The tree with plain objects: values of any form have a text in Protobuf, and YAML sorts what such a text does not."""
    if isinstance(tree, dict):
        return {name: without_texts(item) for name, item in tree.items()}
    return [without_texts(item) for item in tree] if isinstance(tree, list) else tree


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Format, bytes]:
    """A document in which some bytes are others, gone or new."""
    type_, obj = draw(objects())
    format_ = draw(st.sampled_from(FORMATS))
    body = bytearray(format_.write(type_, obj))
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(body)))
        body[begin : begin + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return format_, bytes(body)


@given(damaged() | st.tuples(st.sampled_from(FORMATS), st.binary(max_size=60)))
def test_mutated_bytes_decode_or_raise_decode_error(drawn: tuple[Format, bytes]) -> None:
    format_, body = drawn
    try:
        format_.read(body)
    except DecodeError as error:
        assert str(error)


HOSTILE = {
    "an alias of aliases": (
        "yaml",
        b"a: &a [x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%b]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 9)) for c in range(97, 115)),
    ),
    "an alias of itself": ("yaml", b"a: &a [*a]"),
    "lists in lists": ("yaml", b"[" * 50_000),
    "maps in maps": ("yaml", b"{a: " * 3_000),
    "dashes": ("yaml", b"- " * 20_000 + b"x"),
    "lists in lists, JSON": ("json", b"[" * 100_000),
    "maps in maps, JSON": ("json", b'{"a":' * 50_000),
    "lists in lists, CBOR": ("cbor", b"\x81" * 50_000),
    "endless lists, CBOR": ("cbor", b"\x9f" * 50_000),
    "tags, CBOR": ("cbor", b"\xd9\xd9\xf7" * 50_000),
    "a long list, CBOR": ("cbor", b"\x9b\0\0\0\0\x7f\xff\xff\xff"),
    "a long map, CBOR": ("cbor", b"\xbb\0\0\0\0\0\x1f\xff\xff"),
    "a long string, CBOR": ("cbor", b"\x5b\x7f" + b"\xff" * 7),
    "groups in groups": ("protobuf", protobuf.document("v1", "Pod", b"\x12\x80\x9a\x0c" + b"\xfb\x07" * 98_304)),
    "a length beyond all": ("protobuf", protobuf.document("v1", "Pod", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_inputs_are_rejected(what: str) -> None:
    name, body = HOSTILE[what]
    with pytest.raises(DecodeError):
        next(format_ for format_ in FORMATS if format_.name == name).read(body)


def _listed(document: Document, type_: Type) -> bytes:
    """Returns a document as it is encoded in a list."""
    return b"".join(formats.format_of("protobuf").items([document], Kind("v1", type_.name, type_)))


@given(objects(), st.booleans())
def test_packed_objects_are_listed_in_protobuf_as_others(given_object: tuple[Type, Obj], is_like_another: bool) -> None:
    type_, obj = given_object
    content = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
    first, document = Document(copy.deepcopy(content)), Document(copy.deepcopy(content))
    expected = protobuf.encode_item(type_, content)
    if is_like_another:
        first.pack()
        assert _listed(first, type_) == expected
    document.pack()
    assert _listed(document, type_) == expected
