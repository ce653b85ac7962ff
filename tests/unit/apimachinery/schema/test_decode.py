from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.decode import DecodeError, decode, decoder
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.printing import normalise
from fakekube.apimachinery.schema.strict import Strict
from fakekube.apimachinery.schema.walk import SlowPathRequired, Walk
from tests.unit.apimachinery.schema.recorded import CASES, Case
from tests.unit.apimachinery.schema.values import json_values, mistaken_values, typed_values, types


def read(case: Case) -> tuple[Any, Strict]:
    value, duplicates = json.loads(case.body)
    strict = Strict(duplicates, lambda: json.members(case.body))
    return decode(case.type, value, strict, lambda: json.literals(case.body)), strict


@pytest.mark.parametrize("case", [case for case in CASES if case.error is not None], ids=str)
def test_decode_errors_match_the_reference(case: Case) -> None:
    with pytest.raises(DecodeError) as caught:
        read(case)
    assert str(caught.value) == case.error


@pytest.mark.parametrize("case", [case for case in CASES if case.error is None], ids=str)
def test_stored_form_and_strict_errors_match_the_reference(case: Case) -> None:
    tree, strict = read(case)
    assert json.dumps(normalise(case.type, tree)).decode() == case.stored
    assert strict.messages == case.strict


@given(typed_values())
def test_fast_and_slow_decoder_agree(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    quick = decoder(type_)(value, None)
    walk = Walk(None, None)
    assert decoder(type_)(value, walk) == quick
    assert walk.error is None
    assert walk.stack == []


@given(typed_values())
def test_decoding_normalised_objects_is_idempotent(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    untouched = copy.deepcopy(value)
    printed = normalise(type_, decode(type_, value))
    assert json.dumps(normalise(type_, decode(type_, printed))) == json.dumps(printed)
    assert value == untouched


@given(types, json_values)
def test_arbitrary_json_decodes_or_raises_decode_error(type_: Type, value: Any) -> None:
    try:
        decode(type_, value, Strict())
    except DecodeError as error:
        assert str(error)


@given(mistaken_values())
def test_mutated_values_decode_or_raise_decode_error(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    strict = Strict()
    try:
        tree = decode(type_, value, strict)
    except DecodeError as error:
        assert str(error)
    else:
        assert normalise(type_, tree) is not None
        assert all(message.startswith("unknown field ") for message in strict.messages)


@given(st.data())
def test_member_order_does_not_matter(data: st.DataObject) -> None:
    type_, value = data.draw(typed_values())

    def shuffled(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: shuffled(part[name]) for name in data.draw(st.permutations(list(part)))}
        return [shuffled(item) for item in part] if isinstance(part, list) else part

    in_order, out_of_order = decode(type_, value), decode(type_, shuffled(value))
    assert json.dumps(normalise(type_, out_of_order)) == json.dumps(normalise(type_, in_order)) or _holds_any_form(value)


def _holds_any_form(value: Any) -> bool:
    """Values of any form keep the order of their members."""
    names = {"data", "fieldsV1", "default", "example", "enum", "parameters"}
    if isinstance(value, dict):
        return bool(names & value.keys()) or any(map(_holds_any_form, value.values()))
    return isinstance(value, list) and any(map(_holds_any_form, value))


def test_empty_lists_and_maps_are_kept_for_defaulting() -> None:
    pod = type_of("k8s.io/api/core/v1.PodSpec")
    tree = decode(pod, {"tolerations": [], "nodeSelector": {}, "nodeName": "", "containers": []})
    assert tree == {"containers": [], "nodeSelector": {}, "tolerations": []}
    assert normalise(pod, tree) == {"containers": None}


def test_null_decodes_to_the_zero_value() -> None:
    secret = type_of("k8s.io/api/core/v1.Secret")
    assert decode(secret, None) == {"metadata": {}}
    assert decode(secret, {"data": None, "immutable": None, "type": None, "metadata": None}) == {"metadata": {}}


def test_unknown_fields_are_reported_once_up_to_a_limit() -> None:
    config_map = type_of("k8s.io/api/core/v1.ConfigMap")
    strict = Strict()
    decode(config_map, {f"x{number}": 1 for number in range(150)}, strict)
    assert len(strict.messages) == 100
    assert strict.messages[0] == 'unknown field "x0"'


def test_duplicates_inside_raw_or_unknown_fields_are_not_reported() -> None:
    revision = type_of("k8s.io/api/apps/v1.ControllerRevision")
    body = b'{"data": {"a": 1, "a": 2}, "nope": {"b": 1, "b": 2}, "revision": 1, "revision": 2}'
    value, duplicates = json.loads(body)
    strict = Strict(duplicates, lambda: json.members(body))
    decode(revision, value, strict)
    assert strict.messages == ['unknown field "nope"', 'duplicate field "revision"']


def test_number_errors_show_the_source_literal() -> None:
    spec = type_of("k8s.io/api/apps/v1.DeploymentSpec")
    body = b'{"replicas": 1.50}'
    with pytest.raises(DecodeError, match=r"number 1\.50 into Go struct field DeploymentSpec\.replicas"):
        decode(spec, {"replicas": 1.5}, None, lambda: json.literals(body))
    with pytest.raises(DecodeError, match=r"number 1\.5 into"):
        decode(spec, {"replicas": 1.5})


def test_fast_decoder_stops_at_unknown_fields() -> None:
    with pytest.raises(SlowPathRequired):
        decoder(type_of("k8s.io/api/core/v1.Pod"))({"unheard": 1}, None)
