from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.printers import table
from fakekube.apimachinery.printers.table import DEFAULT, Row, TableConvertor, convertor_for
from tests.unit.apimachinery.printers.rows import AGES, NOW, ago

API_VERSION = "meta.k8s.io/v1"


def row(name: str, **obj: Any) -> Row:
    stored = {"metadata": {"name": name, "creationTimestamp": ago(minutes=5)}, **obj}
    return Row(stored, {"shown": name})


def test_table_structure() -> None:
    made = table.table(
        convertor_for("", "v1", "configmaps"), API_VERSION, [row("a", data={"k": ""})], {"resourceVersion": "7"}, NOW
    )
    assert made == {
        "kind": "Table",
        "apiVersion": API_VERSION,
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": [
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
            {"name": "Data", "type": "string", "format": "", "description": "", "priority": 0},
            {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
        ],
        "rows": [{"cells": ["a", 1, "5m"], "object": {"shown": "a"}}],
    }
    assert list(made) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]


def test_later_events_have_no_column_definitions() -> None:
    for plural, group, repeated in (("configmaps", "", False), ("apiservices", "apiregistration.k8s.io", True)):
        made = table.table(convertor_for(group, "v1", plural), API_VERSION, [], {}, NOW, headers=False)
        assert (made["columnDefinitions"] is not None) is repeated


def test_conditions_precede_the_object() -> None:
    made = table.table(convertor_for("", "v1", "pods"), API_VERSION, [row("a", status={"phase": "Failed"})], {}, NOW)
    assert list(made["rows"][0]) == ["cells", "conditions", "object"]


def test_empty_tables() -> None:
    assert table.table(convertor_for("", "v1", "pods"), API_VERSION, [], {}, NOW)["rows"] == []
    assert table.table(DEFAULT, API_VERSION, [], {}, NOW)["rows"] is None


def test_flow_schema_rows_are_ordered() -> None:
    rows = [
        row("b", spec={"matchingPrecedence": 5}),
        row("a", spec={"matchingPrecedence": 5}),
        row("c", spec={"matchingPrecedence": 1}),
    ]
    made = table.table(convertor_for("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"), API_VERSION, rows, {}, NOW)
    assert [made_row["cells"][0] for made_row in made["rows"]] == ["c", "a", "b"]


def test_kinds_without_printer_show_created_at() -> None:
    convertor = convertor_for("rbac.authorization.k8s.io", "v1", "roles")
    assert [column["name"] for column in convertor.columns] == ["Name", "Created At"]
    assert convertor.cells(row("a").stored, AGES) == ["a", "2026-01-10T11:55:00Z"]
    assert convertor.cells({"metadata": {}}, AGES) == ["", "0001-01-01T00:00:00Z"]


def test_scale_tables() -> None:
    convertor = convertor_for("apps", "v1", "deployments", scale=True)
    assert [column["name"] for column in convertor.columns] == ["Name", "Desired", "Available", "Age"]
    assert convertor.cells(row("a", spec={"replicas": 3}, status={"replicas": 2}).stored, AGES) == ["a", 3, 2, "5m"]


#: The version of a kind that has no v1, by its group or its plural.
_VERSIONS = {
    "autoscaling": "v2",
    "lifecycle.k8s.io": "v1alpha1",
    "compositepodgroups": "v1alpha3",
    "leasecandidates": "v1beta1",
    "podgroups": "v1beta1",
    "resourcepoolstatusrequests": "v1alpha3",
    "workloads": "v1beta1",
}


@pytest.mark.parametrize(
    ("group", "version", "plural"),
    [(group, _VERSIONS.get(group) or _VERSIONS.get(plural, "v1"), plural) for group, plural in sorted(table._CELLS)],
)
def test_every_printer_fills_all_columns(group: str, version: str, plural: str) -> None:
    """And can print an object of nothing. (Addresses have a cell too many, as on the real server.)"""
    convertor: TableConvertor = convertor_for(group, version, plural)
    found = convertor.cells({"metadata": {"name": "x"}}, AGES)
    assert len(found) == len(convertor.columns) + (plural == "ipaddresses")
    assert all(isinstance(cell, str | int | bool) for cell in found)


@pytest.mark.parametrize("value", ["", "None", "Metadata", "Object"])
def test_valid_include_object_values(value: str) -> None:
    assert table.include_object_error(value) == ""


def test_invalid_include_object_value() -> None:
    assert table.include_object_error('a"') == (
        "Unable to convert to Table as requested: includeObject: Invalid value: \"a\\\"\": must be 'Metadata', 'Object', 'None', or empty"
    )
