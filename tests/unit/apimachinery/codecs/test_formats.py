"""Objects, lists and watch events in all formats."""

from __future__ import annotations

import json as python_json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import EncodeError, cbor, protobuf, yaml
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.codecs.formats import Format, Kind, format_of
from fakekube.apimachinery.schema.builtin import kind_type
from tests.unit.apimachinery.schema.values import CHARACTERS, json_values

POD = Kind("v1", "Pod", kind_type("", "v1", "Pod"))
PODS = Kind("v1", "PodList")
CUSTOM = Kind("g.io/v1", "Thing", custom=True)
CUSTOMS = Kind("g.io/v1", "ThingList", custom=True)

OBJECT: dict[str, Any] = {"metadata": {"name": "p", "labels": {"a": "<"}}}
THING: dict[str, Any] = {"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "t"}}

COMPACT = format_of("json")
PRETTY = format_of("json", pretty=True)
YAMLS = format_of("yaml")
CBORS = format_of("cbor")
PROTOBUFS = format_of("protobuf")


def answers(format_: Format, obj: dict[str, Any], kind: Kind, listing: Kind) -> tuple[bytes, bytes, bytes]:
    document = Document(obj)
    part, whole_list = (
        format_.encoded_item(document, kind),
        format_.list(format_.items([document] * 2, kind), listing, {"resourceVersion": "7"}),
    )
    assert isinstance(whole_list, bytes)
    return (format_.object(part, kind), whole_list, format_.event("ADDED", part, kind))


def test_compact_json() -> None:
    assert answers(COMPACT, OBJECT, POD, PODS) == (
        rb'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"\u003c"}}}' + b"\n",
        rb'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
        rb'{"metadata":{"name":"p","labels":{"a":"\u003c"}}},{"metadata":{"name":"p","labels":{"a":"\u003c"}}}]}' + b"\n",
        rb'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"\u003c"}}}}' + b"\n",
    )


def test_compact_json_of_custom_resources() -> None:
    thing = b'{"apiVersion":"g.io/v1","kind":"Thing","metadata":{"name":"t"}}'
    assert answers(COMPACT, THING, CUSTOM, CUSTOMS) == (
        thing + b"\n",
        b'{"apiVersion":"g.io/v1","items":['
        + thing
        + b","
        + thing
        + b'],"kind":"ThingList","metadata":{"resourceVersion":"7"}}\n',
        b'{"type":"ADDED","object":' + thing + b"}\n",
    )


def test_compact_json_of_an_empty_object() -> None:
    assert COMPACT.object(COMPACT.encoded_item(Document({}), POD), POD) == b'{"kind":"Pod","apiVersion":"v1"}\n'


def test_pretty_json_has_no_trailing_newline() -> None:
    whole, listing, event = answers(PRETTY, OBJECT, POD, PODS)
    assert whole == (
        b'{\n  "kind": "Pod",\n  "apiVersion": "v1",\n  "metadata": {\n    "name": "p",\n    "labels": {\n'
        b'      "a": "\\u003c"\n    }\n  }\n}'
    )
    assert listing.startswith(b'{\n  "kind": "PodList",\n  "apiVersion": "v1",\n  "metadata": {')
    assert event == answers(COMPACT, OBJECT, POD, PODS)[2]


def test_yaml_format() -> None:
    whole, listing, event = answers(YAMLS, OBJECT, POD, PODS)
    assert whole == b"apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    a: <\n  name: p\n"
    assert listing.startswith(b"apiVersion: v1\nitems:\n- metadata:\n    labels:\n")
    assert event.startswith(b"---\nobject:\n  apiVersion: v1\n")


@given(st.lists(st.dictionaries(st.text(CHARACTERS, max_size=3), json_values, max_size=4), max_size=3))
def test_yaml_list_equals_yaml_of_the_whole_list(objects: list[dict[str, Any]]) -> None:
    metadata = {"resourceVersion": "7"}
    listing = YAMLS.list(YAMLS.items(map(Document, objects), POD), PODS, metadata)
    assert listing == yaml.dumps({"kind": PODS.kind, "apiVersion": PODS.api_version, "metadata": metadata, "items": objects})


@pytest.mark.parametrize(
    ("format_", "read"),
    [(COMPACT, python_json.loads), (PRETTY, python_json.loads), (YAMLS, lambda body: yaml.loads(body)[0]), (CBORS, cbor.loads)],
)
@pytest.mark.parametrize(("obj", "kind", "listing"), [(OBJECT, POD, PODS), (THING, CUSTOM, CUSTOMS)])
def test_all_formats_contain_the_same_data(format_: Format, read: Any, obj: dict[str, Any], kind: Kind, listing: Kind) -> None:
    whole, whole_list, event = (read(body.removeprefix(b"---\n")) for body in answers(format_, obj, kind, listing))
    complete = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
    assert whole == complete
    assert whole_list == {
        "kind": listing.kind, "apiVersion": listing.api_version, "metadata": {"resourceVersion": "7"}, "items": [obj, obj],
    }  # fmt: skip
    assert event == {"type": "ADDED", "object": complete}


def test_cbor_event_contains_a_self_described_document() -> None:
    whole, _, event = answers(CBORS, OBJECT, POD, PODS)
    assert event == cbor.SELF_DESCRIBED + b"\xa2\x44type\x45ADDED\x46object" + whole
    assert whole.startswith(cbor.SELF_DESCRIBED)


def test_protobuf_format() -> None:
    whole, listing, event = answers(PROTOBUFS, OBJECT, POD, PODS)
    content = protobuf.encode(POD.type, OBJECT) if POD.type else b""
    assert whole == b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + bytes([len(content)]) + content + b"\x1a\0\x22\0"
    assert protobuf.loads(whole, "", "") == {"apiVersion": "v1", "kind": "Pod", **OBJECT, "spec": {}, "status": {}}
    assert listing.startswith(b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodList\x12")
    assert listing.count(content) == 2
    assert event == len(event[4:]).to_bytes(4, "big") + b"\x0a\x05ADDED\x12" + event[12:]
    assert event.endswith(whole)


def test_custom_resources_have_no_protobuf() -> None:
    with pytest.raises(EncodeError):
        PROTOBUFS.encoded_item(Document(THING), CUSTOM)


def test_encoded_items_are_cached() -> None:
    document = Document(OBJECT)
    for format_ in (COMPACT, CBORS, PROTOBUFS):
        assert format_.encoded_item(document, POD) is format_.encoded_item(document, POD)
