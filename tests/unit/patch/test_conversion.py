from __future__ import annotations

from typing import Any

import pytest

from fakekube.patch.conversion import ConversionError, convert
from fakekube.schema.model import Field, Shape, Type
from tests.unit.patch.shapes import BOOLEAN, INT32, STRING, list_of, map_of, struct

INT64 = Type(Shape.INTEGER, "int64", "int64", format="int64")
TYPE = struct(
    "T",
    small=INT32,
    large=INT64,
    ratio=Type(Shape.NUMBER, "float64", "float64"),
    text=STRING,
    named=Type(Shape.STRING, "Mode", "v1.Mode"),
    flag=BOOLEAN,
    when=Type(Shape.TIME, "Time", "v1.Time"),
    data=Type(Shape.BYTES, "bytes", "[]uint8"),
    inner=Field("inner", struct("Inner", number=INT32), pointer=True),
    items=list_of(struct("Item", number=INT32)),
    values=map_of(INT32),
)


@pytest.mark.parametrize(
    ("member", "value", "expected"),
    [
        ("small", 3.0, 3),
        ("small", 2**32 + 1, 1),
        ("small", 2**31, -(2**31)),
        ("large", 2**31, 2**31),
        ("large", 2.0**62, 2**62),
        ("ratio", 3, 3),
        ("items", [{"number": 1.0}, None], [{"number": 1}, None]),
        ("values", {"a": 1.0, "b": None}, {"a": 1, "b": None}),
        ("inner", {"number": 1.0, "unknown": 1.0}, {"number": 1, "unknown": 1.0}),
        ("unknown", 1.5, 1.5),
        ("text", None, None),
    ],
)
def test_values_that_fit(member: str, value: Any, expected: Any) -> None:
    converted = convert(TYPE, {member: value}, {member: value})
    assert converted == {member: expected}
    assert type(converted[member]) is type(expected)


@pytest.mark.parametrize(
    ("member", "value", "problem"),
    [
        ("small", "3", "unrecognized type: int32"),
        ("small", True, "unrecognized type: int32"),
        ("small", 1.5, "cannot convert float64 to int32"),
        ("large", [], "unrecognized type: int64"),
        ("ratio", "x", "unrecognized type: float64"),
        ("text", 3, "cannot convert int64 to string"),
        ("named", 3, "cannot convert int64 to v1.Mode"),
        ("text", 1.5, "unrecognized type: string"),
        ("text", {}, "unrecognized type: string"),
        ("flag", 1, "unrecognized type: bool"),
        ("when", 5, "json: cannot unmarshal number into Go value of type string"),
        ("data", 5, "cannot restore slice from int64"),
        ("inner", "x", "cannot restore struct from: string"),
        ("inner", [], "cannot restore struct from: slice"),
        ("items", {}, "cannot restore slice from map"),
        ("items", "x", "cannot restore slice from string"),
        ("items", [1], "cannot restore struct from: int64"),
        ("values", [], "cannot restore map from slice"),
        ("values", {"a": "x"}, "unrecognized type: int32"),
    ],
)
def test_values_that_do_not(member: str, value: Any, problem: str) -> None:
    with pytest.raises(ConversionError, match="^" + problem.replace("[", r"\[")):
        convert(TYPE, {member: value}, {member: value})


def test_the_first_misfit_in_the_order_of_the_type_is_told() -> None:
    value = {"flag": 1, "small": "x"}
    with pytest.raises(ConversionError, match="int32"):
        convert(TYPE, value, value)


def test_only_what_the_patch_touches_is_looked_at() -> None:
    value = {"small": "wrong", "text": "x", "inner": {"number": "wrong"}}
    assert convert(TYPE, value, {"text": "x", "inner": {}}) is value


def test_directives_lead_to_what_they_touch() -> None:
    value = {"items": [{"number": 1.0}], "inner": {"number": 2.0}}
    patch = {"$setElementOrder/items": [], "inner": {"$patch": "replace", "number": 2.0}}
    assert convert(TYPE, value, patch) == {"items": [{"number": 1}], "inner": {"number": 2}}
