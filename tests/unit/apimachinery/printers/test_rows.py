"""Rows joined from cached parts equal the rows of `apimachinery.printers.table`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.printers import custom, table
from fakekube.apimachinery.printers.table import DEFAULT, Row, Rows, TableConvertor, convertor_for, table_json
from tests.unit.apimachinery.printers.rows import NOW, ago

API_VERSION = "meta.k8s.io/v1"
META = {"resourceVersion": "7"}
POD: dict[str, Any] = {
    "metadata": {"name": 'a"\\<', "creationTimestamp": ago(minutes=5)},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
    "status": {
        "phase": "Failed",
        "containerStatuses": [{"restartCount": 2, "lastState": {"terminated": {"finishedAt": ago(hours=2)}}}],
    },
}


def both(convertor: TableConvertor, objects: list[dict[str, Any]], now: Any) -> tuple[bytes, bytes]:
    rows = [Row(obj, {"shown": obj["metadata"]["name"]}) for obj in objects]
    slow = json.dumps(table.table(convertor, API_VERSION, rows, META, now))
    kept = Rows(convertor, list(map(Document, objects)), [json.dumps(row.shown) for row in rows])

    def shown(now: datetime) -> bytes:
        body = table_json(convertor, API_VERSION, kept, metadata=META, now=now)
        return body if isinstance(body, bytes) else b"".join(body)

    assert shown(now) == slow + b"\n"
    return shown(now + timedelta(hours=1)), slow


@pytest.mark.parametrize("count", [0, 1, 3, 1000])
def test_joined_rows_equal_table_rows(count: int) -> None:
    later, before = both(convertor_for("", "v1", "pods"), [POD] * count, NOW)
    assert (
        later.count(b'"2 (3h ago)"') == later.count(b'"65m"') == before.count(b'"2 (120m ago)"') == before.count(b'"5m"') == count
    )


def test_flow_schemas_are_ordered_by_precedence() -> None:
    schemas = [
        {"metadata": {"name": name}, "spec": {"matchingPrecedence": place}} for name, place in (("b", 2), ("a", 2), ("c", 1))
    ]
    both(convertor_for("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"), schemas, NOW)


def test_kinds_without_printer() -> None:
    both(DEFAULT, [], NOW)
    both(DEFAULT, [{"metadata": {"name": "x"}}], NOW)


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**7))
def test_custom_printer_columns(text: str, number: float, seconds: int) -> None:
    columns = [
        {"name": "Text", "type": "string", "jsonPath": ".text"},
        {"name": "Number", "type": "number", "jsonPath": ".number"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Other", "type": "date", "jsonPath": ".time"},
    ]
    obj = {
        "metadata": {"name": text, "creationTimestamp": ago(seconds=seconds)},
        "text": text,
        "number": number,
        "time": ago(hours=1),
    }
    both(custom.convertor(columns), [obj, {"metadata": {"name": "b"}}], NOW)
