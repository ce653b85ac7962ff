from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.patch.apply.schema import OBJECT_META
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.decode import decode
from fakekube.apimachinery.schema.printing import normalise
from fakekube.apimachinery.schema.trees import copy_metadata, deep_copy
from tests.unit.apimachinery.schema.values import right_values

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.just("\udc80"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def parts(value: Any) -> list[Any]:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [part for member in members for part in parts(member)]
    return [value, *below] if isinstance(value, (dict, list)) else below


@given(VALUES)
def test_copied_is_a_deep_copy(value: Any) -> None:
    copy = deep_copy(value)
    assert repr(copy) == repr(value)
    assert not {id(part) for part in parts(copy)} & {id(part) for part in parts(value)}


@given(st.data())
def test_copied_metadata_are_those_that_a_decoder_makes_of_stored_ones(data: st.DataObject) -> None:
    type_ = type_of(OBJECT_META)
    stored = normalise(type_, decode(type_, data.draw(right_values(type_))))
    copy = copy_metadata(stored)
    assert repr(copy) == repr(normalise(type_, decode(type_, stored)))
    shared = [name for name in copy if isinstance(copy[name], dict | list) and copy[name] is stored[name]]
    assert set(shared) <= {"managedFields"}
