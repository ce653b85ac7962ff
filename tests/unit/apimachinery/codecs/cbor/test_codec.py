"""The CBOR profile of Kubernetes, compared with cbor2."""

from __future__ import annotations

import struct
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import ContentError, DecodeError, EncodeError, cbor
from fakekube.apimachinery.schema.builtin import kind_type
from fakekube.apimachinery.schema.model import Type
from tests.unit.apimachinery.codecs.values import OBJECTS, VALUES


def builtin(group: str, version: str, kind: str) -> Type:
    found = kind_type(group, version, kind)
    assert found is not None
    return found


READ: list[tuple[str, Any]] = [
    ("f6", None),
    ("a0", {}),
    ("d9d9f7a0", {}),
    ("d9d9f7d9d9f7a0", {}),
    ("a1616101", {"a": 1}),
    ("a1416120", {"a": -1}),
    ("a141611b7fffffffffffffff", {"a": 2**63 - 1}),
    ("a141613b7fffffffffffffff", {"a": -(2**63)}),
    ("a1416141ff", {"a": "\udcff"}),
    ("a14161f93e00", {"a": 1.5}),
    ("a14161f6", {"a": None}),
    ("a14161c074323031332d30332d32315432303a30343a30305a", {"a": "2013-03-21T20:04:00Z"}),
    ("a14161c11a5c8a1f00", {"a": "2019-03-14T09:29:36Z"}),
    ("a14161c1fb41d722a3c0200000", {"a": "2019-03-14T17:27:28.5Z"}),
    ("a14161d543fbeffe", {"a": "--_-"}),
    ("a14161d643fbeffe", {"a": "++/+"}),
    ("a14161d743fbeffe", {"a": "fbeffe"}),
    ("a14161d8644161", {"a": "a"}),
    ("bf41615f41614162ffff", {"a": "ab"}),
    ("a141619f0102ff", {"a": [1, 2]}),
]

NOT_WELL_FORMED = [
    ("", "EOF"),
    ("d9d9f7", "unexpected EOF"),
    ("a1", "unexpected EOF"),
    ("a141", "unexpected EOF"),
    ("5a00", "unexpected EOF"),
    ("a0a0", "cbor: 1 bytes of extraneous data starting at index 1"),
    ("ff", 'cbor: unexpected "break" code'),
    ("bf4161ff", 'cbor: unexpected "break" code'),
    ("1c", "cbor: invalid additional information 28 for type positive integer"),
    ("1f", "cbor: invalid additional information 31 for type positive integer"),
    ("f818", "cbor: invalid simple value 24 for type primitives"),
    ("a14161f97e00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"),
    ("a14161f97c00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"),
    ("a14161c24101", "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
    ("a141615f6161ff", "cbor: wrong element type UTF-8 text string for indefinite-length byte string"),
    ("a141615f5f4161ffff", "cbor: indefinite-length byte string chunk is not definite-length"),
    ("5bffffffffffffffff", "cbor: byte string length 18446744073709551615 is too large, causing integer overflow"),
    ("9bffffffffffffffff", "cbor: array length 18446744073709551615 is too large, it would cause integer overflow"),
    ("9b0000000080000000", "cbor: exceeded max number of elements 2147483647 for CBOR array"),
    ("bb0000000000200001", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
    ("81" * 10_001 + "00", "cbor: exceeded max nested level 10000"),
    # Well formed, but no object with a kind and an apiVersion.
    (
        "80",
        "cbor: cannot unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option)",
    ),
    ("01", "cbor: cannot unmarshal positive integer into Go value of type v1.TypeMeta"),
    ("20", "cbor: cannot unmarshal negative integer into Go value of type v1.TypeMeta"),
    ("6161", "cbor: cannot unmarshal UTF-8 text string into Go value of type v1.TypeMeta"),
    ("4161", "cbor: cannot unmarshal byte string into Go value of type v1.TypeMeta"),
    ("f5", "cbor: cannot unmarshal primitives into Go value of type v1.TypeMeta"),
    ("f7", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("f8ff", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 255 is not recognized"),
    ("a2416101416102", 'cbor: found duplicate map key "a" at map element index 1'),
    ("a2416101616102", 'cbor: found duplicate map key "a" at map element index 1'),
    ("a1446b696e6401", "cbor: cannot unmarshal positive integer into Go struct field v1.TypeMeta.kind of type string"),
    ("a14a61706956657273696f6e80", "cbor: cannot unmarshal array into Go struct field v1.TypeMeta.apiVersion of type string"),
    ("a1446b696e64c001", "cbor: tag number 0 must be followed by text string, got positive integer"),
]

NOT_ACCEPTED = [
    ("a14161f7", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("a14161e5", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 5 is not recognized"),
    (
        "a141611bffffffffffffffff",
        "cbor: cannot unmarshal positive integer into Go value of type int64 (18446744073709551615 overflows Go's int64)",
    ),
    (
        "a141613bffffffffffffffff",
        "cbor: cannot unmarshal negative integer into Go value of type int64 (-18446744073709551616 overflows Go's int64)",
    ),
    ("a14178a2416101416102", 'cbor: found duplicate map key "a" at map element index 1'),
    ("a10102", "cbor: cannot unmarshal positive integer into Go value of type string"),
    ("a1416161ff", "cbor: invalid UTF-8 string"),
    ("a14161c001", "cbor: tag number 0 must be followed by text string, got positive integer"),
    ("a14161c16161", "cbor: tag number 1 must be followed by integer or floating-point number, got UTF-8 text string"),
    (
        "a14161c11b7000000000000000",
        "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: Time.MarshalText: year outside of range [0,9999]",
    ),
]


@pytest.mark.parametrize(("body", "value"), READ)
def test_decoded_values(body: str, value: Any) -> None:
    assert cbor.loads(bytes.fromhex(body)) == value


@pytest.mark.parametrize(("body", "message"), NOT_WELL_FORMED, ids=[body[:30] for body, _ in NOT_WELL_FORMED])
def test_undecodable_bodies_have_no_kind(body: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        cbor.loads(bytes.fromhex(body))
    assert not isinstance(caught.value, ContentError)
    assert str(caught.value) == f"unable to determine group/version/kind: {message}"


@pytest.mark.parametrize(("body", "message"), NOT_ACCEPTED)
def test_invalid_object_content_is_rejected(body: str, message: str) -> None:
    with pytest.raises(ContentError) as caught:
        cbor.loads(bytes.fromhex(body))
    assert str(caught.value) == message


def test_errors_in_content_keep_the_kind() -> None:
    body = cbor2.dumps({"kind": "K", "x": cbor2.undefined, "apiVersion": "g/v1"})
    with pytest.raises(ContentError) as caught:
        cbor.loads(body)
    assert (caught.value.api_version, caught.value.kind) == ("g/v1", "K")
    assert cbor.loads_lenient(body) == {"kind": "K", "x": None, "apiVersion": "g/v1"}


@given(OBJECTS)
def test_encoded_values_can_be_decoded(value: dict[str, Any]) -> None:
    assert cbor.loads(cbor.dumps({"value": value})) == {"value": value}


@given(OBJECTS, st.booleans())
def test_decodes_output_of_cbor2(value: dict[str, Any], canonical: bool) -> None:
    """cbor2 writes strings as text strings, Kubernetes as byte strings."""
    assert cbor.loads(cbor2.dumps({"value": value}, canonical=canonical)) == {"value": value}


@given(VALUES)
def test_cbor2_decodes_the_output(value: Any) -> None:
    assert _texts(cbor2.loads(cbor.encode_item(value))) == value


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key.decode(): _texts(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda tail: b"\xa1\x41a" + tail))
def test_arbitrary_bytes_decode_or_raise_decode_error(body: bytes) -> None:
    try:
        value = cbor.loads(body)
    except ContentError:
        assert isinstance(cbor.loads_lenient(body), dict)
    except DecodeError:
        pass
    else:
        assert value is None or isinstance(value, dict)


@given(st.binary(max_size=40).map(lambda tail: b"\xa1\x48metadata" + tail))
def test_type_errors_handles_arbitrary_bytes(body: bytes) -> None:
    try:
        cbor.loads(body)
    except ContentError:
        cbor.type_errors(body, builtin("", "v1", "Pod"))
    except DecodeError:
        pass


def test_fast_and_general_decoder_agree() -> None:
    """An unusual item at the end makes the general decoder read the document."""
    obj = {"a": [1, -1, 2**40, True, False, None, "x" * 300, {"b": 1.5}], "key" * 20: {}}
    assert cbor.loads(cbor.dumps(obj)) == obj
    unusual = cbor.prepend_members(cbor.encode_item(obj), b"\x41z\xd8\x64\x01", 1)
    assert cbor.loads(unusual) == {**obj, "z": 1}


# ---------------------------------------------------------------- encoding


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "é"}, "a1416142c3a9"),
        ([1, 24, 256, 65536, 2**32, -1, -25], "870118181901001a000100001b00000001000000002038 18"),
        ([1.5, 0.1, 65504.0, 65505.0], "84f93e00fb3fb999999999999af97bfffa477fe100"),
        ([2**63 - 1, 2**63, -(2**63), -(2**64)], "841b7fffffffffffffff fa5f000000 3b7fffffffffffffff fadf800000"),
        ([True, False, None, {}, []], "85f5f4f6a080"),
        ("x" * 24, "5818" + "78" * 24),
    ],
)
def test_encoded_values(value: Any, expected: str) -> None:
    assert cbor.dumps(value).hex() == "d9d9f7" + expected.replace(" ", "")


@pytest.mark.parametrize("value", [10**400, float("nan"), float("inf"), b"".join, {"a": {1}}])
def test_unsupported_values_cannot_be_encoded(value: Any) -> None:
    with pytest.raises(EncodeError):
        cbor.dumps({"a": value})


def test_byte_fields_are_encoded_as_expected_base64() -> None:
    secret = builtin("", "v1", "Secret")
    body = cbor.encode_item({"data": {"a": "aGk="}, "stringData": {"b": "aGk="}}, secret)
    assert body == bytes.fromhex("a2") + b"\x44data\xa1\x41a\xd6\x42hi" + b"\x4astringData\xa1\x41b\x44aGk="
    assert cbor.loads(body) == {"data": {"a": "aGk="}, "stringData": {"b": "aGk="}}


def test_integral_values_of_float_fields_are_encoded_as_floats() -> None:
    """At any depth of a type that contains itself, and not in free JSON."""
    schema = {"maximum": 5, "items": {"maximum": 7}, "properties": {"a": {"maximum": 9}}, "default": {"maximum": 5}}
    obj = {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"not": schema}}}]}}
    body = cbor.encode_item(obj, builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    numbers = [struct.pack(">e", number) for number in (5, 7, 9)]
    assert [body.count(b"\x47maximum\xf9" + number) for number in numbers] == [1, 1, 1]
    assert body.count(b"\x47maximum\x05") == 1
    assert cbor.loads(body) == obj


@given(OBJECTS, OBJECTS.filter(lambda members: not {"apiVersion", "kind"} & members.keys()))  # which are texts in every object
def test_joined_puts_members_first(obj: dict[str, Any], more: dict[str, Any]) -> None:
    members = cbor.encode_item(more)[len(cbor.head(5, len(more))) :]
    own = {f"own.{key}": member for key, member in obj.items()}
    assert cbor.loads(cbor.prepend_members(cbor.encode_item(own), members, len(more))) == {**more, **own}


# ---------------------------------------------------------------- error messages

EXPLAINED: list[tuple[dict[str, Any], str, str]] = [
    ({"metadata": {"name": "x"}}, "", ""),
    (
        {"metadata": {"name": 1}},
        "cbor: cannot unmarshal positive integer into Go struct field v1.Pod.metadata of type string",
        "",
    ),
    ({"spec": {"containers": {}}}, "cbor: cannot unmarshal map into Go struct field v1.Pod.spec of type []v1.Container", ""),
    (
        {"spec": []},
        "cbor: cannot unmarshal array into Go struct field v1.Pod.spec of type v1.PodSpec (cannot decode CBOR array to struct without toarray option)",
        "",
    ),
    (
        {"spec": {"priority": 2**31}},
        "cbor: cannot unmarshal positive integer into Go struct field v1.Pod.spec of type int32 (2147483648 overflows int32)",
        "",
    ),
    ({"metadata": {"name": None}, "wrong": 1}, "", "cbor: found unknown field at map element index 1"),
    ({"metadata": {"name": "x", "wrong": 1}}, "", "cbor: found unknown field at map element index 1"),
]


@pytest.mark.parametrize(("obj", "error", "finding"), EXPLAINED)
def test_type_errors_of_documents(obj: dict[str, Any], error: str, finding: str) -> None:
    assert cbor.type_errors(cbor.dumps(obj), builtin("", "v1", "Pod")) == (error, finding)


# ---------------------------------------------------------------- decoding of structs


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        (
            "ConfigMap",
            "a1686d65746164617461a2646e616d656161646e616d656162",
            'cbor: found duplicate map key "name" at map element index 1',
        ),
        (
            "ConfigMap",
            "a1686d65746164617461a1a000",
            "cbor: cannot unmarshal map into Go struct field v1.ConfigMap.metadata of type string "
            "(map key is of type map and cannot be used to match struct field name)",
        ),
        (
            "Secret",
            "a16464617461a1616b63616263",
            "cbor: cannot unmarshal UTF-8 text string into Go struct field v1.Secret.data of type []uint8",
        ),
        (
            "Secret",
            "a16464617461a1616b4161",
            "cbor: failed to decode base64 from byte string: illegal base64 data at input byte 0",
        ),
        ("Secret", "a16464617461a1616bd64161", ""),
        ("Secret", "a16464617461a1616bc04161", "cbor: tag number 0 must be followed by text string, got byte string"),
        ("ConfigMap", "a1686d65746164617461a1716372656174696f6e54696d657374616d70f7", ""),
    ],
)
def test_type_errors_of_structs(kind: str, body: str, error: str) -> None:
    assert cbor.type_errors(bytes.fromhex(body), builtin("", "v1", kind))[0] == error


def test_first_unknown_field_of_a_struct_is_reported() -> None:
    body = cbor.dumps({"metadata": {"x": 1}, "data": {}, "y": 1})
    assert cbor.type_errors(body, builtin("", "v1", "ConfigMap"))[1] == "cbor: found unknown field at map element index 2"
    body = cbor.dumps({"data": {}, "metadata": {"name": "a", "x": 1}})
    assert cbor.type_errors(body, builtin("", "v1", "ConfigMap"))[1] == "cbor: found unknown field at map element index 1"


def test_truncated_multi_byte_tag_is_rejected() -> None:
    with pytest.raises(DecodeError) as caught:
        cbor.loads(b"\xd9\xd9\xf6")
    assert str(caught.value) == "unable to determine group/version/kind: unexpected EOF"
