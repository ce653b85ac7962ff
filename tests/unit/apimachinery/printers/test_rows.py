"""Rows joined from cached parts equal the rows of `apimachinery.printers.table`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.printers import custom, table
from fakekube.apimachinery.printers.table import DEFAULT, Row, Rows, TableConvertor, convertor_for, table_json
from fakekube.base import caches
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


#: What cells read of metadata besides the name and the time of creation.
_DESCRIPTIONS: list[dict[str, Any]] = [
    {"labels": {"node-role.kubernetes.io/a": ""}},
    {"labels": {"node-role.kubernetes.io/b": ""}, "ownerReferences": [{"kind": "K", "name": "n", "controller": True}]},
    {
        "annotations": dict.fromkeys(
            ("storageclass.kubernetes.io/is-default-class", "ingressclass.kubernetes.io/is-default-class"), "true"
        )
    },
    {"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}},
    {"deletionTimestamp": "2026-01-02T03:04:05Z"},
    {},
]


@pytest.mark.parametrize("version", ["1.33", data.DEFAULT])
def test_rows_of_objects_with_equal_parts(version: str) -> None:
    shown = [convertor_for(row.group, row.version, row.name, minor=version) for row in data.minor(version).resources]
    default = {"metadata": {"name": "a-1", "annotations": _DESCRIPTIONS[2]["annotations"]}}
    for convertor in [*shown, *(one.for_list([default]) for one in shown if one.for_list is not None)]:
        for rest in ({"spec": {"a%s": "100%"}, "status": {"phase": "x%"}}, {"spec": {}}):
            objects = [
                {
                    "metadata": {
                        "name": f"a-{number}",
                        "uid": "u",
                        "resourceVersion": "7",
                        "creationTimestamp": ago(minutes=number),
                    }
                    | description,
                    **rest,
                }
                for description in _DESCRIPTIONS
                for number in range(4)
            ]
            expected = json.dumps(table.table(convertor, API_VERSION, [Row(obj, None) for obj in objects], META, NOW)) + b"\n"
            documents = list(map(Document, objects))
            for document in documents:
                document.pack()
            made = table_json(
                convertor, API_VERSION, Rows(convertor, documents, [b"null"] * len(objects)), metadata=META, now=NOW
            )
            assert made == expected


def test_rows_of_objects_with_parts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[Document] = []
    find_head = Document.find_head
    monkeypatch.setattr(Document, "find_head", lambda document: [split.append(document), find_head(document)][1])
    convertor = convertor_for("", "v1", "pods")
    objects = [
        {
            "metadata": {"name": f"a-{number}", "uid": "u", "resourceVersion": "7", "creationTimestamp": ago(minutes=number)},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "podIP": f"10.0.0.{min(number, 200)}"},
        }
        for number in range(300)
    ]
    expected = json.dumps(table.table(convertor, API_VERSION, [Row(obj, None) for obj in objects], META, NOW)) + b"\n"
    documents = list(map(Document, objects))
    for document in documents:
        document.pack()
    rows = Rows(convertor, documents, [b"null"] * len(objects))
    assert table_json(convertor, API_VERSION, rows, metadata=META, now=NOW) == expected
    numbers = [int(one.object["metadata"]["name"][2:]) for one in split]
    assert 64 < sum(number < 200 for number in numbers) < 90  # most are not split after some misses
    assert sum(number >= 250 for number in numbers) == 50  # all are again, since equal ones were found


def test_rows_of_large_objects_are_not_kept_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MAXIMUM_SIZE", 100)
    made: list[object] = []
    fill = table._SharedRow.fill
    monkeypatch.setattr(table._SharedRow, "fill", lambda row, *identity: [made.append(row), fill(row, *identity)][1])
    for size, kept in ((10, 2), (101, 0)):
        documents = [
            Document(
                {
                    "metadata": {"name": f"a-{number}", "uid": "u", "resourceVersion": "7", "creationTimestamp": ago(minutes=1)},
                    "data": {"k": "x" * size},
                }
            )
            for number in range(3)
        ]
        for document in documents:
            document.pack()
        made.clear()
        Rows(convertor_for("", "v1", "configmaps"), documents, [b"null"] * 3)
        assert len(made) == kept


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
