"""Kubernetes' Protobuf, byte for byte; compared with Google's library."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import ContentError, DecodeError, EncodeError, protobuf
from fakekube.apimachinery.codecs.document import Items
from fakekube.apimachinery.codecs.protobuf.decoder import go_name
from fakekube.apimachinery.codecs.protobuf.wire import encode_varint
from fakekube.apimachinery.schema import decode
from fakekube.apimachinery.schema.builtin import kind_type, type_of
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.printing import normalise
from tests.unit.apimachinery.codecs.values import POD
from tests.unit.apimachinery.schema.values import typed_values


def builtin(group: str, version: str, kind: str) -> Type:
    found = kind_type(group, version, kind)
    assert found is not None
    return found


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return encode_varint(number << 3) + encode_varint(value)


#: ObjectMeta with nothing in it: name, generateName, namespace, selfLink, uid, resourceVersion, generation and
#: creationTimestamp are held by value.
EMPTY_METADATA = b'\n\0\x12\0\x1a\0"\0*\x002\x008\0B\0'
METADATA = field(1, EMPTY_METADATA)


# ---------------------------------------------------------------- vectors, field by field

VECTORS: list[tuple[tuple[str, str, str], dict[str, Any], bytes]] = [
    (
        ("", "v1", "ConfigMap"),
        {"metadata": {"name": "c"}, "data": {"b": "2", "a": "1"}, "binaryData": {"x": "aGk="}, "immutable": False},
        field(1, b"\n\1c" + EMPTY_METADATA[2:])
        + field(2, b"\n\1a\x12\0011")  # keys are sorted
        + field(2, b"\n\1b\x12\0012")
        + field(3, b"\n\1x\x12\2hi")
        + number_field(4, 0),  # a pointer that is set
    ),
    (("", "v1", "Secret"), {"data": {"b": "aGk="}}, METADATA + field(2, b"\n\1b\x12\2hi") + field(3, b"")),
    (
        ("", "v1", "Service"),
        {"spec": {"ports": [{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8080}], "clusterIP": "x"}},
        METADATA
        + field(
            2,
            field(1, b"\n\0\x12\0\x18P" + field(4, b"\x08\1\x10\0\x1a\4http") + b"\x28\0")
            + field(1, b"\n\0\x12\0\x18Q" + field(4, b"\x08\0\x10\x90\x3f\x1a\0") + b"\x28\0")
            + b'\x1a\1x"\0:\0B\0R\0Z\0`\0h\0',
        )
        + field(3, field(1, b"")),
    ),
    (
        # Volumes have their source, probes their handler, as a message of its own.
        ("", "v1", "PersistentVolume"),
        {"spec": {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/"}}},
        METADATA
        + field(2, field(1, b"\n\7storage" + field(2, field(1, b"1Gi"))) + field(2, field(3, field(1, b"/"))) + b"*\x002\0")
        + field(3, b"\n\0\x12\0\x1a\0"),
    ),
    (
        ("coordination.k8s.io", "v1", "Lease"),
        {"spec": {"acquireTime": "2026-01-02T03:04:05.000001Z"}},
        METADATA + field(2, field(3, number_field(1, 1767323045) + number_field(2, 1000))),
    ),
    (
        # ExtraValue is a message around its strings.
        ("authorization.k8s.io", "v1", "SubjectAccessReview"),
        {"spec": {"user": "u", "extra": {"k": ["a", "b"]}}},
        METADATA
        + field(2, field(3, b"u") + field(5, b"\n\1k" + field(2, field(1, b"a") + field(1, b"b"))) + field(6, b""))
        + field(3, b"\x08\0\x12\0\x1a\0 \0"),
    ),
    (
        ("apps", "v1", "ControllerRevision"),
        {"data": {"a": 1}, "revision": -1},
        METADATA + field(2, field(1, b'{"a":1}')) + b"\x18" + b"\xff" * 9 + b"\1",
    ),
]


@pytest.mark.parametrize(("kind", "obj", "content"), VECTORS, ids=[kind[2] for kind, _, _ in VECTORS])
def test_encoding_test_vectors(kind: tuple[str, str, str], obj: dict[str, Any], content: bytes) -> None:
    type_ = builtin(*kind)
    assert protobuf.encode(type_, obj) == content
    assert normalise(type_, protobuf.decode(type_, content)) == normalise(type_, obj)


def test_pod_round_trip() -> None:
    type_ = builtin("", "v1", "Pod")
    assert protobuf.decode(type_, protobuf.encode(type_, POD)) == POD


def test_recursive_schemas_round_trip() -> None:
    schema = {
        "type": "object", "maximum": 1.5, "default": {"x": [1]}, "enum": [1, "a"], "items": {"type": "string"}, "not": {"type": "x"},
        "properties": {"a": {"additionalProperties": {"type": "string"}}}, "additionalProperties": False,
        "dependencies": {"d": ["e"], "f": {"type": "object"}}, "x-kubernetes-preserve-unknown-fields": True,
    }  # fmt: skip
    type_ = type_of("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps")
    content = protobuf.encode(type_, schema)
    assert protobuf.decode(type_, content) == schema
    assert field(30, number_field(1, 0)) in content  # additionalProperties: false
    assert field(30, number_field(1, 1) + field(2, protobuf.encode(type_, {"type": "string"}))) in content


# ---------------------------------------------------------------- round trips


@given(typed_values())
def test_encoded_objects_can_be_decoded(typed: tuple[Type, Any]) -> None:
    """Nulls and empty lists apart, which messages do not tell from nothing."""
    type_, value = typed

    def passed(obj: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = decode.decode(type_, protobuf.decode(type_, protobuf.encode(type_, obj)))
        return found

    once = passed(decode.decode(type_, value))
    assert passed(once) == once


KINDS = [
    ("", "v1", kind)
    for kind in ("ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PodTemplate", "ReplicationController", "ServiceAccount")
] + [
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"), ("apiregistration.k8s.io", "v1", "APIService"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), ("autoscaling", "v2", "HorizontalPodAutoscaler"), ("batch", "v1", "CronJob"),
    ("discovery.k8s.io", "v1", "EndpointSlice"), ("networking.k8s.io", "v1", "Ingress"), ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"), ("storage.k8s.io", "v1", "CSIDriver"), ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=[kind[2] for kind in KINDS])
def test_empty_object_of_every_kind(kind: tuple[str, str, str]) -> None:
    type_ = builtin(*kind)
    content = protobuf.encode(type_, {})
    assert content.startswith(METADATA)
    assert protobuf.encode(type_, protobuf.decode(type_, content)) == content


# ---------------------------------------------------------------- comparison with Google's library


def test_google_protobuf_decodes_a_config_map() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="cm.proto", package="test", syntax="proto2")
    one, many, text, message = 1, 3, 9, 11
    entry = descriptor_pb2.DescriptorProto(name="DataEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    entry.field.add(name="key", number=1, label=one, type=text)
    entry.field.add(name="value", number=2, label=one, type=text)
    meta = file.message_type.add(name="Meta")
    meta.field.add(name="name", number=1, label=one, type=text)
    meta.field.add(name="generation", number=7, label=one, type=3)
    config_map = file.message_type.add(name="ConfigMap")
    config_map.nested_type.append(entry)
    config_map.field.add(name="metadata", number=1, label=one, type=message, type_name=".test.Meta")
    config_map.field.add(name="data", number=2, label=many, type=message, type_name=".test.ConfigMap.DataEntry")
    config_map.field.add(name="immutable", number=4, label=one, type=8)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    read: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("test.ConfigMap"))()

    obj = {"metadata": {"name": "é", "generation": -3}, "data": {"a": "1", "b": "x" * 300}, "immutable": True}
    read.ParseFromString(protobuf.encode(builtin("", "v1", "ConfigMap"), obj))
    assert (read.metadata.name, read.metadata.generation, dict(read.data), read.immutable) == ("é", -3, obj["data"], True)
    written = protobuf.decode(builtin("", "v1", "ConfigMap"), read.SerializeToString())
    assert written == obj


# ---------------------------------------------------------------- decoding

LENIENT: list[tuple[bytes, dict[str, Any]]] = [
    (b"", {"metadata": {}}),
    (field(1, b"\n\1a") + field(1, b"\x1a\1n"), {"metadata": {"name": "a", "namespace": "n"}}),  # parts are merged
    (field(1, b"\n\1a\n\1b"), {"metadata": {"name": "b"}}),  # the last one counts
    (field(15, b"x") + number_field(16, 1), {"metadata": {}}),  # unknown
    (b"\x7b\x08\1\x7c", {"metadata": {}}),  # an unknown group
    (b"\x79" + b"\0" * 8 + b"\x7d" + b"\0" * 4, {"metadata": {}}),
    (b"\x8a\0\2\n\0", {"metadata": {}}),  # a tag in more bytes than it needs
    (field(2, b"\n\1a"), {"metadata": {}, "data": {"a": ""}}),  # an entry without a value
    (field(2, b"\x12\1v"), {"metadata": {}, "data": {"": "v"}}),
    (field(1, b"\n\1\xff"), {"metadata": {"name": "\udcff"}}),
]


@pytest.mark.parametrize(("content", "obj"), LENIENT)
def test_unusual_but_valid_messages(content: bytes, obj: dict[str, Any]) -> None:
    type_ = builtin("", "v1", "ConfigMap")
    found = protobuf.decode(type_, content)
    assert {"metadata": {}, **found} == obj


BROKEN = [
    ("0a", "unexpected EOF"),
    ("0aff", "unexpected EOF"),
    ("0a05", "unexpected EOF"),
    ("0a021a", "unexpected EOF"),
    ("80", "unexpected EOF"),
    ("12040a020a80", "unexpected EOF"),
    ("0a0a420a08ffffffffffffffff7f", "unexpected EOF"),
    ("0801", "proto: wrong wireType = 0 for field ObjectMeta"),
    ("1801", "proto: wrong wireType = 0 for field Status"),
    ("0a020801", "proto: wrong wireType = 0 for field Name"),
    ("0b0c", "proto: wrong wireType = 3 for field ObjectMeta"),
    ("ffffffffffffffffffff01", "proto: integer overflow"),
    ("00", "proto: Pod: illegal tag 0 (wire type 0)"),
    ("07", "proto: Pod: illegal tag 0 (wire type 7)"),
    ("0affffffffffffffffff01", "proto: negative length found during unmarshaling"),
    ("4401", "proto: Pod: wiretype end group for non-group"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN)
def test_invalid_message_errors(content: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        protobuf.decode(builtin("", "v1", "Pod"), bytes.fromhex(content))
    assert str(caught.value) == message


@given(st.binary(max_size=60), st.sampled_from(["Pod", "Service", "Event"]))
def test_arbitrary_bytes_decode_or_raise_decode_error(content: bytes, kind: str) -> None:
    try:
        obj = protobuf.decode(builtin("", "v1", kind), content)
    except DecodeError:
        return
    assert isinstance(obj, dict)


@given(st.data())
def test_mutated_messages_decode_or_raise_decode_error(data: st.DataObject) -> None:
    content = bytearray(protobuf.encode(builtin("", "v1", "Pod"), POD))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DecodeError):
        protobuf.decode(builtin("", "v1", "Pod"), bytes(content))


# ---------------------------------------------------------------- encoding


@pytest.mark.parametrize(
    "obj",
    [{"spec": []}, {"spec": {"containers": [1]}}, {"metadata": {"labels": {"a": 1}}}, {"metadata": {"creationTimestamp": "x"}}],
)
def test_objects_of_wrong_type_cannot_be_encoded(obj: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        protobuf.encode(builtin("", "v1", "Pod"), obj)


# ---------------------------------------------------------------- documents


def test_document_round_trip() -> None:
    type_ = builtin("", "v1", "ConfigMap")
    body = protobuf.document("v1", "ConfigMap", protobuf.encode_item(type_, {"data": {"a": "b"}}))
    assert protobuf.loads(body, "", "") == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "b"}}


def test_document_without_kind_uses_the_expected_kind() -> None:
    body = b"k8s\0" + field(2, field(2, b"\n\1a\x12\1b"))
    assert protobuf.loads(body, "v1", "ConfigMap") == {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


def test_document_of_an_unknown_kind() -> None:
    body = protobuf.document("nope/v1", "Nope", field(2, b"\xff"))
    assert protobuf.loads(body, "v1", "ConfigMap") == {"apiVersion": "nope/v1", "kind": "Nope"}


def test_invalid_content_of_a_known_kind() -> None:
    with pytest.raises(ContentError) as caught:
        protobuf.loads(protobuf.document("v1", "Pod", field(2, b"\xff")), "", "")
    assert (str(caught.value), caught.value.api_version, caught.value.kind) == ("unexpected EOF", "v1", "Pod")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty data"),
        (b"k8s\0", "empty body"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0\xff", "unexpected EOF"),
    ],
)
def test_invalid_documents(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        protobuf.loads(body, "v1", "Pod")
    assert str(caught.value) == message


def test_list_document_concatenates_items() -> None:
    parts = [field(2, b"one"), field(2, b"two")]
    listing = protobuf.list_document("v1", "PodList", {"resourceVersion": "7", "remainingItemCount": 3}, Items(parts))
    content = field(1, b"\n\0\x12\0017\x1a\0 \3") + b"".join(parts)
    assert listing == protobuf.document("v1", "PodList", field(2, content))


def test_watch_event_encoding() -> None:
    assert protobuf.event("ADDED", b"document") == field(1, b"ADDED") + field(2, field(1, b"document"))


def test_field_caches_do_not_mix_values() -> None:
    """More short and long values than the cache holds, each encoded twice."""
    texts = [f"{'n' * (number % 50) * 5}{number}" for number in range(200)]
    for text in [*texts, *texts]:
        labels = {text: "v", "k": text}
        sorted_labels = sorted(labels.items())
        expected = field(1, field(1, text.encode()) + EMPTY_METADATA[2:] + b"".join(
            field(11, field(1, name.encode()) + field(2, value.encode())) for name, value in sorted_labels
        ))  # fmt: skip
        assert protobuf.encode(builtin("", "v1", "ConfigMap"), {"metadata": {"name": text, "labels": labels}}) == expected


def test_positive_and_negative_zero_are_encoded_differently() -> None:
    type_ = type_of("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps")
    written = [protobuf.encode(type_, {"minimum": number}) for number in (0.0, -0.0)]
    assert [content.count(b"\x80") for content in written] == [0, 1]


@pytest.mark.parametrize("absent", ["metadata", "spec", "status"])
def test_null_members_are_encoded_as_absent(absent: str) -> None:
    pod = builtin("", "v1", "Pod")
    without = {name: member for name, member in POD.items() if name != absent}
    assert protobuf.encode(pod, POD | {absent: None}) == protobuf.encode(pod, without)
    assert protobuf.encode(pod, {"spec": {"containers": [None], "nodeSelector": {"a": None}}}) == protobuf.encode(
        pod, {"spec": {"containers": [{}], "nodeSelector": {"a": ""}}}
    )


@given(st.integers(-(2**63), 2**64 - 1))
def test_varint_encoding(number: int) -> None:
    encoded = encode_varint(number)
    assert len(encoded) <= 10
    assert sum((byte & 0x7F) << 7 * at for at, byte in enumerate(encoded)) == number % 2**64


# ---------------------------------------------------------------- details of the generated Go code


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x0a" + b"\xff" * 8 + b"\x7f", "proto: negative length found during unmarshaling"),
        (b"\xfa\x01" + b"\xff" * 8 + b"\x7f", "proto: negative length found during unmarshaling"),
        (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "proto: ConfigMap: illegal tag 0 (wire type 9223372036854775808)"),
        (b"\x80\x80\x80\x80\x40", "proto: ConfigMap: illegal tag -2147483648 (wire type 17179869184)"),
        (b"\x80\x80\x80\x80\x10\x05\x08\x05", "proto: wrong wireType = 0 for field ObjectMeta"),
    ],
)
def test_invalid_lengths_and_tags(content: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        protobuf.decode(builtin("", "v1", "ConfigMap"), content)
    assert str(caught.value) == message


def test_map_entry_may_exceed_its_length() -> None:
    entry = b"\x12\x06\x0a\x01k\x12\x03v"  # the value is two bytes longer than the entry
    obj = protobuf.decode(builtin("", "v1", "ConfigMap"), entry + b"\x1a\x07\x0a\x01b\x12\x02\0\1")
    assert obj == {"data": {"k": "v\x1a\x07"}, "binaryData": {"b": "AAE="}}
    with pytest.raises(DecodeError):
        protobuf.decode(builtin("", "v1", "ConfigMap"), entry)


def test_errors_use_go_field_names() -> None:
    rule = field(2, field(3, b"\x10\1"))  # IngressSpec.rules[].IngressRuleValue as a number
    with pytest.raises(DecodeError) as caught:
        protobuf.decode(builtin("networking.k8s.io", "v1", "Ingress"), rule)
    assert str(caught.value) == "proto: wrong wireType = 0 for field IngressRuleValue"


@pytest.mark.parametrize(
    ("name", "struct", "go"),
    [
        ("podIP", "PodStatus", "PodIP"),
        ("dnsPolicy", "PodSpec", "DNSPolicy"),
        ("hostIPs", "PodStatus", "HostIPs"),
        ("tls", "IngressSpec", "TLS"),
        ("metadata", "Pod", "ObjectMeta"),
        ("x-kubernetes-list-map-keys", "JSONSchemaProps", "XListMapKeys"),
        ("pool", "RBDVolumeSource", "RBDPool"),
        ("pool", "ResourceSliceSpec", "Pool"),
        ("serviceAccount", "PodSpec", "DeprecatedServiceAccount"),
        ("clusterIPs", "ServiceSpec", "ClusterIPs"),
    ],
)
def test_go_names(name: str, struct: str, go: str) -> None:
    assert go_name(name, struct) == go


def test_invalid_api_version_is_replaced_by_the_expected_one() -> None:
    body = protobuf.document("a/b/v1", "ConfigMap", field(2, b""))
    assert protobuf.loads(body, "v1", "Pod") == {"apiVersion": "v1", "kind": "ConfigMap"}


def test_invalid_managed_fields_are_skipped() -> None:
    entry = field(17, field(1, b"m") + field(7, field(1, b"{")))
    obj = protobuf.decode(builtin("", "v1", "ConfigMap"), field(1, entry))
    assert obj["metadata"]["managedFields"] == [{"manager": "m"}]
