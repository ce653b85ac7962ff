"""Error messages of JSON patch operations that cannot be applied."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.patch.json_patch import PatchRejected, perform

DOCUMENT = {"a": {"b": 1}, "items": [1, 2], "text": "x"}


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        ({"op": "nonsense"}, "Unexpected kind: nonsense"),
        ({"op": 5}, "Unexpected kind: unknown"),
        ({}, "Unexpected kind: unknown"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        ({"op": "remove", "path": 5}, "remove operation failed to decode path: missing value"),
        ({"op": "replace"}, "replace operation failed to decode path: operation missing path field: missing value"),
        ({"op": "move", "path": "/x"}, "move operation failed to decode from: operation, missing from field: missing value"),
        ({"op": "move", "from": "/text"}, "move operation failed to decode path: operation missing path field: missing value"),
        ({"op": "copy", "from": "/text"}, "copy operation failed to decode path: missing value"),
        ({"op": "add", "path": "", "value": 1}, 'add operation does not apply: doc is missing path: "": missing value'),
        ({"op": "add", "path": "/none/x"}, 'add operation does not apply: doc is missing path: "/none/x": missing value'),
        (
            {"op": "add", "path": "/items/9"},
            "error in add for path: '/items/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "add", "path": "/items/x"},
            "error in add for path: '/items/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            {"op": "add", "path": "/items/" + "9" * 5000},
            f"error in add for path: '/items/{'9' * 5000}': value was not a proper array index: '{'9' * 5000}': "
            f'strconv.Atoi: parsing "{"9" * 5000}": value out of range',
        ),
        (
            {"op": "remove", "path": "/a/x"},
            "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "remove", "path": "/items/x"},
            "error in remove for path: '/items/x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            {"op": "replace", "path": "/items/7", "value": 1},
            "replace operation does not apply: doc is missing key: /items/7: missing value",
        ),
        (
            {"op": "replace", "path": "/none/7", "value": 1},
            "replace operation does not apply: doc is missing path: /none/7: missing value",
        ),
        (
            {"op": "move", "from": "/none/x", "path": "/y"},
            "move operation does not apply: doc is missing from path: /none/x: missing value",
        ),
        (
            {"op": "move", "from": "/a/x", "path": "/y"},
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "move", "from": "/a/b", "path": "/none/x"},
            "move operation does not apply: doc is missing destination path: /none/x: missing value",
        ),
        ({"op": "test", "path": "/text", "value": "y"}, "testing value /text failed: test failed"),
        ({"op": "test", "path": "/none/x", "value": 1}, "test operation does not apply: is missing path: /none/x: missing value"),
        (
            {"op": "test", "path": "/items/5", "value": 1},
            "error in test for path: '/items/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            {"op": "copy", "from": "/items/5", "path": "/y"},
            "error in copy for from: '/items/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            {"op": "copy", "from": "/text", "path": "/items/5"},
            "error while adding value during copy: Unable to access invalid index: 5: invalid index referenced",
        ),
    ],
)
def test_error_messages_of_inapplicable_operations(operation: dict[str, Any], problem: str) -> None:
    with pytest.raises(PatchRejected) as caught:
        perform(DOCUMENT, [operation])
    assert str(caught.value) == problem


def test_copy_size_limit_is_reported() -> None:
    operations = [{"op": "copy", "from": "/text", "path": f"/copy{index}"} for index in range(4)]
    with pytest.raises(PatchRejected, match=r"Unable to complete the copy, the accumulated size increase of copy is \d+"):
        perform({"text": "x" * 1_000_000}, operations)
