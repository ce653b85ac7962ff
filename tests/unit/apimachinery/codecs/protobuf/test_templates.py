"""Objects whose texts differ only in some strings are encoded as if each were read."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import protobuf
from fakekube.apimachinery.codecs.document import MAX_MISSES, Document
from fakekube.apimachinery.codecs.protobuf.encoder import encode_time
from fakekube.apimachinery.codecs.protobuf.templates import template_encoder
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.model import Type

Obj = dict[str, Any]


def type_of(group: str, version: str, kind: str) -> Type:
    found = builtins().kind_type(group, version, kind)
    assert found is not None
    return found


POD = type_of("", "v1", "Pod")


class Listed:
    """Encodes objects of a type one after another as in a list, and counts those that are read."""

    def __init__(self, type_: Type = POD) -> None:
        self._type = type_
        self.read = 0
        self._by_template = template_encoder(self._encode, encode_time)

    def _encode(self, obj: Any) -> bytes:
        self.read += 1
        return protobuf.encode_item(self._type, obj)

    def check(self, obj: Obj, *, is_packed: bool = True) -> int:
        """Checks the encoding of an object; returns how many were read for it."""
        before, document = self.read, Document(obj)
        assert document.json
        if is_packed:
            document.pack()
        made = self._by_template(document)
        assert made in (None, protobuf.encode_item(self._type, obj))
        return self.read - before if made is not None else 1


def pod(number: int, *, name: str = "", time: str = "", **labels: str) -> Obj:
    """A running pod."""
    time = time or f"2026-11-27T10:{number % 60:02}:05Z"
    ip = f"10.0.{number % 7}.{number % 10}"
    return {
        "metadata": {
            "name": name or f"web-{number}", "namespace": "default", "uid": f"{number:036}", "resourceVersion": f"{number:05}",
            "generation": 1, "creationTimestamp": time, "labels": {"app": "web", **labels},
            "managedFields": [
                {
                    "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:status": {"f:podIPs": {f'k:{{"ip":"{ip}"}}': {"f:ip": {}}}}}, "subresource": "status",
                }
            ],
        },
        "spec": {
            "volumes": [{"name": f"kube-api-access-{number:05}"}], "containers": [{"name": "c", "image": "nginx:1.27"}],
            "nodeName": f"node-{number % 3}",
        },
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "startTime": time,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
            "containerStatuses": [{"name": "c", "ready": True, "restartCount": number % 2, "image": "i", "imageID": ""}],
        },
    }  # fmt: skip


@pytest.mark.parametrize("is_packed", [True, False])
def test_pods_of_one_workload_are_seldom_read(is_packed: bool) -> None:
    listed = Listed()
    for number in range(40):
        listed.check(pod(number, turn=str(number % 10)), is_packed=is_packed)
    assert [listed.check(pod(number, turn=str(number % 10)), is_packed=is_packed) for number in range(40, 99)] == [0] * 59


def test_a_name_of_another_length_is_read_once() -> None:
    listed = Listed()
    for number in range(40):
        listed.check(pod(number))
    reads = [listed.check(pod(number, name="n" * (number % 2 * 300 + 2))) for number in range(40, 46)]
    assert reads == [1, 1, 0, 0, 0, 0]


#: Values of one length, for a label that was "12345678" in others.
STRANGE = [
    'a","b":"c', "a\\\\b\\\\c", 'ab\\"cd\\"', "áéíó", "<&><&><&", "2026-11-", "        ", "~000----", "~001----", "\x7f" * 8, "~name~na",
    "%b%s{0}%",
]  # fmt: skip


@pytest.mark.parametrize("value", STRANGE)
def test_strange_strings(value: str) -> None:
    listed = Listed()
    for number in range(20):
        listed.check(pod(number, turn=f"{number:08}"))
    for number in range(20, 24):
        listed.check(pod(number, turn=value))
        listed.check(pod(number, name=value))
        listed.check(pod(number, turn=f"{number:08}"))


def test_percent_signs_in_what_all_have() -> None:
    listed = Listed()
    for number in range(20):
        listed.check(pod(number, same="%b %% %(a)s {0} %"))
    assert listed.check(pod(20, same="%b %% %(a)s {0} %")) == 0


def test_members_with_the_same_text_at_the_ends() -> None:
    """What stands between two equal pieces need not be one string."""
    listed = Listed()
    several = pod(20, a="4", b="44", c="444")
    length = len(Document(several).json) - len(Document(pod(20, a="")).json)
    for number in range(20):
        listed.check(pod(number, a=f"{number:0{length}}"))
    listed.check(several)


@pytest.mark.parametrize(
    "time",
    ["2500-10-11T12:00:05Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1970-01-01T00:02:08Z", "2026-11-31T10:00:00Z"],
)
def test_times(time: str) -> None:
    listed = Listed()
    for number in range(20):
        listed.check(pod(number))
    is_valid = "-31T10" not in time
    if is_valid:
        listed.check(pod(20, time=time))
        listed.check(pod(21, time=time))
    else:
        document = Document(pod(20, time=time))
        document.pack()
        assert listed._by_template(document) is None
    assert listed.check(pod(22)) == 0


def test_times_of_leases_with_fractions() -> None:
    listed = Listed(type_of("coordination.k8s.io", "v1", "Lease"))
    reads = [
        listed.check(
            {
                "metadata": {"name": f"n-{number}", "uid": "u" * 36, "resourceVersion": f"{number:05}"},
                "spec": {
                    "holderIdentity": f"node-{number:03}",
                    "renewTime": f"2026-11-27T10:00:{number % 60:02}.{number * 977:06}Z",
                },
            }
        )
        for number in range(1000)
    ]
    assert 200 < reads[20:].count(1) < 400  # small fractions have shorter encodings
    assert reads[20:].count(0) == len(reads) - 20 - reads[20:].count(1)


def test_strings_that_are_encoded_in_another_form() -> None:
    listed = Listed(type_of("", "v1", "Secret"))
    for number in range(20):
        obj = {"metadata": {"name": f"s-{number}", "uid": f"{number:036}"}, "data": {"k": f"{number:06}YQ"}, "type": "Opaque"}
        assert listed.check(obj) >= 1


def test_objects_that_all_differ_are_seldom_cut() -> None:
    listed = Listed()
    reads = [listed.check(pod(number, **{f"l{number}": "x" * number})) for number in range(MAX_MISSES * 3)]
    assert set(reads) == {1}
    assert listed.read == 0


@pytest.mark.parametrize(("strings", "length"), [(100, 1), (1, 20_000)])
def test_objects_with_many_or_long_strings_are_read_once_each(strings: int, length: int) -> None:
    listed = Listed(type_of("", "v1", "ConfigMap"))
    for number in range(8):
        data = {f"k{place:03}": str(number) * length for place in range(strings)}
        assert listed.check({"metadata": {"name": "c", "uid": f"{number:036}"}, "data": data}) == 1


def test_types_whose_text_is_not_enough() -> None:
    assert protobuf.item_encoder_by_templates(POD) is not None
    assert protobuf.item_encoder_by_templates(type_of("apps", "v1", "ControllerRevision")) is None


PIECES = st.sampled_from(
    ["", "a", "1", "v1", "ab", "10.0.0.1", "2026-01-02T03:04:05Z", "é", '"', "\\\\", "~000", ':\\"x1\\"', "word"]
)
STRINGS = st.lists(PIECES, max_size=2).map("".join)


@settings(max_examples=30)
@given(st.lists(st.tuples(STRINGS, STRINGS, STRINGS, STRINGS), min_size=4, max_size=8), st.booleans())
def test_any_strings(drawn: list[tuple[str, str, str, str]], is_packed: bool) -> None:
    listed = Listed()
    for name, label, image, ip in drawn:
        metadata = {"name": name, "uid": "u", "labels": {"a": label}, "annotations": {"x": f'{{"b":"{label}","c":"{image}"}}'}}
        obj = {
            "metadata": metadata,
            "spec": {"containers": [{"name": name, "image": image}]},
            "status": {"podIP": ip, "hostIP": ip},
        }
        listed.check(obj, is_packed=is_packed)


def test_what_follows_a_colon_in_a_string_is_no_string() -> None:
    encode_alike = template_encoder(orjson.dumps, encode_time)
    for number in range(3):
        document = Document({"metadata": {"name": "a"}, "args": ["a:", number, "b"]})
        text = document.json
        assert encode_alike(document) in (None, text)
