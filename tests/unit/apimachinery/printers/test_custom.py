from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.printers import custom
from tests.unit.apimachinery.printers.rows import AGES, ago


def column(type_: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": "C", "type": type_, "jsonPath": path, **more}


OBJECT: dict[str, Any] = {
    "metadata": {"name": "x", "creationTimestamp": ago(hours=5)},
    "spec": {
        "s": "text",
        "i": 5,
        "f": 1.5,
        "b": True,
        "d": ago(days=3),
        "n": None,
        "o": {"k": 1},
        "l": [1, 2],
        "null": "null",
        "large": 1e21,
    },
}


@pytest.mark.parametrize(
    ("type_", "path", "cell"),
    [
        ("string", ".spec.s", "text"), ("string", ".spec.i", "5"), ("string", ".spec.b", "true"), ("string", ".spec.o", '{"k":1}'),
        ("string", ".spec.l[*]", "1"), ("string", ".spec.n", "<no value>"), ("string", ".spec.missing", None),
        ("integer", ".spec.i", 5), ("integer", ".spec.f", 1), ("integer", ".spec.s", None), ("integer", ".spec.b", None),
        ("number", ".spec.f", 1.5), ("number", ".spec.i", 5.0), ("number", ".spec.s", None),
        ("boolean", ".spec.b", True), ("boolean", ".spec.i", None),
        ("date", ".spec.d", "3d"), ("date", ".spec.s", "<invalid>"), ("date", ".spec.null", "<unknown>"), ("date", ".spec.i", None),
        ("other", ".spec.s", None), ("integer", ".spec.large", -(2**63)),
    ],
)  # fmt: skip
def test_column_cells(type_: str, path: str, cell: Any) -> None:
    assert custom.convertor([column(type_, path)]).cells(OBJECT, AGES) == ["x", cell]


def test_column_definitions() -> None:
    made = custom.convertor(
        [column("integer", ".a", format="int32", priority=1, description="d"), column("string", ".b")]
    ).columns
    described = "Custom resource definition column (in JSONPath format): .b"
    assert [dict(one) for one in made] == [
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "C", "type": "integer", "format": "int32", "description": "d", "priority": 1},
        {"name": "C", "type": "string", "format": "", "description": described, "priority": 0},
    ]


def test_columns_end_before_an_invalid_path() -> None:
    made = custom.convertor([column("string", ".spec.s"), column("string", ".spec.l["), column("string", ".spec.s")])
    assert (len(made.columns), made.cells(OBJECT, AGES)) == (2, ["x", "text"])


def test_default_column_is_age() -> None:
    convertor = custom.convertor([])
    assert [one["name"] for one in convertor.columns] == ["Name", "Age"]
    assert convertor.cells(OBJECT, AGES) == ["x", "5h"]


def test_convertors_are_cached() -> None:
    assert custom.convertor([column("string", ".a")]) is custom.convertor([column("string", ".a")])
