from __future__ import annotations

import copy
from typing import Any

import json_merge_patch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.patch.merge_patch import apply_merge_patch, decode_merge_patch

_keys = st.sampled_from(["a", "b", "c"])
_scalars = st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"])


def _values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves | st.lists(_scalars, max_size=2), lambda inner: st.dictionaries(_keys, inner, max_size=3), max_leaves=8
    )


_documents = st.dictionaries(_keys, _values(_scalars), max_size=3)
_patches = st.dictionaries(_keys, _values(_scalars | st.none()), max_size=3)


@given(_documents, _patches)
def test_patches_agree_with_rfc_7386(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((document, patch))
    expected = json_merge_patch.merge(copy.deepcopy(document), copy.deepcopy(patch))
    assert apply_merge_patch(document, patch) == expected
    assert (document, patch) == before


@given(_documents, _patches)
def test_patching_twice_equals_patching_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply_merge_patch(document, patch)
    assert apply_merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("current", "value", "expected"),
    [
        ([1], [{"x": None, "y": 1}], [{"y": 1}]),
        ("s", [None, {"x": None}], [None, {}]),
        ({"o": 1}, [{"x": None}], [{"x": None}]),
        (None, {"x": None, "y": {"z": None}}, {"y": {}}),
    ],
)
def test_nulls_within_replacing_values(current: Any, value: Any, expected: Any) -> None:
    """Where the real server departs from the standard: lists lose the nulls of their objects, unless they
    replace an object."""
    assert apply_merge_patch({"k": current}, {"k": value}) == {"k": expected}


def test_merged_objects_are_sorted_and_others_shared() -> None:
    document = {"z": {"b": 1}, "a": {"y": 1, "x": 2}}
    patched = apply_merge_patch(document, {"a": {"new": 1}})
    assert list(patched) == ["a", "z"]
    assert list(patched["a"]) == ["new", "x", "y"]
    assert patched["z"] is document["z"]


def test_list_patch_replaces_the_document_without_strict_decoding() -> None:
    patch = decode_merge_patch([{"x": None}], strict=False)
    assert apply_merge_patch({"a": 1}, patch) == [{}]


@pytest.mark.parametrize(
    ("patch", "strict", "message"),
    [
        ([], True, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", True, "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (None, True, "Invalid JSON Patch"),
        (None, False, "Invalid JSON Patch"),
        (5, False, "Invalid JSON Patch"),
    ],
)
def test_invalid_patch_bodies_are_rejected(patch: Any, strict: bool, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        decode_merge_patch(patch, strict=strict)
    assert (caught.value.code, caught.value.message) == (400, message)
