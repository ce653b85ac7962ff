from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.codecs import json as codec
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.patch import json_patch

DOCUMENT = {
    "kind": "ConfigMap",
    "metadata": {"name": "m", "labels": {"a/b": "1", "til~de": "2"}},
    "data": {"k": "v", "n": None},
    "list": ["a", "b", {"x": "y"}],
}


def patched(*operations: dict[str, Any], document: Any = None) -> Any:
    body = json.dumps(operations).encode()
    decoded, _ = json_patch.decode(json.loads(body), strict=True)
    return json_patch.apply(DOCUMENT if document is None else document, decoded, body)


def op(kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **more}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        (op("add", "/data/new", value=1), ("data",), {"k": "v", "n": None, "new": 1}),
        (op("add", "/data/k", value="w"), ("data", "k"), "w"),
        (op("add", "/data/empty"), ("data", "empty"), None),
        (op("add", "/list/-", value="c"), ("list",), ["a", "b", {"x": "y"}, "c"]),
        (op("add", "/list/0", value="c"), ("list",), ["c", "a", "b", {"x": "y"}]),
        (op("add", "/list/3", value="c"), ("list",), ["a", "b", {"x": "y"}, "c"]),
        (op("add", "/list/-1", value="c"), ("list",), ["a", "b", {"x": "y"}, "c"]),
        (op("add", "/list/-4", value="c"), ("list",), ["c", "a", "b", {"x": "y"}]),
        (op("add", "/list/01", value="c"), ("list",), ["a", "c", "b", {"x": "y"}]),
        (op("add", "/list/+1", value="c"), ("list",), ["a", "c", "b", {"x": "y"}]),
        (op("add", "ignored/data/k", value="w"), ("data", "k"), "w"),
        (op("add", "/metadata/labels/a~1b", value="3"), ("metadata", "labels", "a/b"), "3"),
        (op("add", "/metadata/labels/til~0de", value="3"), ("metadata", "labels", "til~de"), "3"),
        (op("remove", "/data/n"), ("data",), {"k": "v"}),
        (op("remove", "/list/-1"), ("list",), ["a", "b"]),
        (op("replace", "/data/absent", value="x"), ("data", "absent"), "x"),
        (op("replace", "/list/-1", value="x"), ("list",), ["a", "b", "x"]),
        (op("replace", "", value={"only": "this"}), (), {"only": "this"}),
        (op("replace", "", value=["this"]), (), ["this"]),
        (op("move", "/data/moved", **{"from": "/list/0"}), ("data", "moved"), "a"),
        (op("copy", "/data/copied", **{"from": "/list/2"}), ("data", "copied"), {"x": "y"}),
        (op("copy", "/data/copied", **{"from": "/data/absent"}), ("data", "copied"), None),
        (op("test", "/data/absent"), (), DOCUMENT),
        (op("test", "/data/absent", value=None), (), DOCUMENT),
        (op("test", "/data/n", value=None), (), DOCUMENT),
        (op("test", "/list", value=["a", "b", {"x": "y"}]), (), DOCUMENT),
        (op("test", "", value=DOCUMENT), (), DOCUMENT),
    ],
)
def test_applicable_operations(operation: dict[str, Any], path: tuple[str, ...], expected: Any) -> None:
    found = patched(operation)
    for name in path:
        found = found[name]
    assert found == expected


@pytest.mark.parametrize(
    "operation",
    [
        op("add", "", value={}),
        op("add", "/list/4", value=1),
        op("add", "/list/-5", value=1),
        op("add", "/list/x", value=1),
        op("add", "/list/1_0", value=1),
        op("add", "/absent/deep", value=1),
        op("add", "/data/k/deeper", value=1),
        op("remove", ""),
        op("remove", "/data/absent"),
        op("remove", "/list/3"),
        op("remove", "/list/-"),
        op("replace", "", value=3),
        op("replace", ""),
        op("replace", "/list/-", value=1),
        op("replace", "/list/3", value=1),
        op("move", "/data/x", **{"from": "/data/absent"}),
        op("move", "/data/x"),
        op("copy", "/data/x", **{"from": "/list/9"}),
        op("copy", "/data/all", **{"from": ""}),
        op("test", "/data/k", value="other"),
        op("test", "/data/k"),
        op("test", "/absent/deep", value=None),
        op("test", "/list", value=["a", "b"]),
        op("ADD", "/data/x", value=1),
        {"path": "/data/x"},
        {"op": "add", "value": 1},
        {"op": "add", "path": None, "value": 1},
        {"op": None, "path": "/data/x"},
    ],
)
def test_inapplicable_operation_fails_the_whole_patch(operation: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as caught:
        patched(op("add", "/data/before", value=1), operation)
    assert caught.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


@pytest.mark.parametrize(("value", "other"), [(1, True), (0, False), (1, 1.5), ("1", 1), (None, False), ({}, [])])
def test_values_of_different_types_are_not_equal(value: Any, other: Any) -> None:
    with pytest.raises(StatusError):
        patched(op("test", "/v", value=other), document={"v": value})


@pytest.mark.parametrize(("text", "equal"), [('"é<"', False), ('"é\\u003c"', True), ('"\\u00e9\\u003c"', False)])
def test_operation_compares_strings_in_their_json_form(text: str, equal: bool) -> None:
    """The document is compared as Go writes it: < escaped, é not."""
    body = f'[{{"op": "test", "path": "/k", "value": {text}}}, {{"op": "add", "path": "/k", "value": {text}}}]'
    operations, _ = json_patch.decode(json.loads(body), strict=True)
    if equal:
        assert json_patch.apply({"k": "é<"}, operations, body.encode()) == {"k": "é<"}
    else:
        with pytest.raises(StatusError):
            json_patch.apply({"k": "é<"}, operations, body.encode())


def test_operation_ignores_different_json_encodings_of_a_value() -> None:
    body = rb'[{"op":"add","path":"/k","value":{"s":"\u00e9","n":1.0}},{"op":"test","path":"/k","value":{"n":1.0,"s":"\u00e9"}}]'
    operations, _ = json_patch.decode(json.loads(body), strict=True)
    assert json_patch.apply({}, operations, body) == {"k": {"s": "é", "n": 1.0}}


def test_copied_values_are_independent_of_the_source() -> None:
    result = patched(
        op("copy", "/copy", **{"from": "/metadata"}),
        op("add", "/copy/name", value="other"),
        op("add", "/metadata/labels/new", value="1"),
    )
    assert result["metadata"]["name"] == "m"
    assert "new" not in result["copy"]["labels"]


def test_only_changed_parts_are_copied_and_sorted() -> None:
    result = patched(op("add", "/metadata/annotations", value={"z": "1", "a": "2"}))
    assert list(result) == ["data", "kind", "list", "metadata"]
    assert list(result["metadata"]) == ["annotations", "labels", "name"]
    assert list(result["metadata"]["annotations"]) == ["z", "a"]
    assert result["data"] is DOCUMENT["data"]
    assert result["metadata"]["labels"] is DOCUMENT["metadata"]["labels"]  # type: ignore[index]


def test_too_many_operations() -> None:
    operations = [op("test", "/data/k", value="v")] * (json_patch.MAX_OPERATIONS + 1)
    with pytest.raises(StatusError) as caught:
        patched(*operations)
    assert (caught.value.code, caught.value.message) == (
        413,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
    )


def test_total_size_of_copies_is_limited() -> None:
    document = {"big": "x" * (1 << 20)}
    copies = [op("copy", f"/copy{number}", **{"from": "/big"}) for number in range(4)]
    assert len(patched(*copies[:2], document=document)) == 3
    with pytest.raises(StatusError):
        patched(*copies, document=document)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (True, "json: cannot unmarshal bool into Go value of type []handlers.jsonPatchOp"),
        ([5], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5}], "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ([{"from": []}], "json: cannot unmarshal array into Go struct field jsonPatchOp.from of type string"),
    ],
)
def test_invalid_patch_bodies_with_strict_decoding(patch: Any, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch.decode(patch, strict=True)
    assert (caught.value.code, caught.value.message) == (400, f"error decoding patch: {message}")


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("x", "json: cannot unmarshal string into Go value of type jsonpatch.Patch"),
        ([[]], "json: cannot unmarshal array into Go value of type jsonpatch.Operation"),
    ],
)
def test_invalid_patch_bodies_with_lenient_decoding(patch: Any, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch.decode(patch, strict=False)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_unknown_and_duplicate_members_are_reported() -> None:
    body = b'[null, {"op":"add","path":"/y","path":"/x","extra":1,"extra":2,"more":{"a":1,"a":2},"op":"add"}]'
    patch, duplicates = codec.loads(body, merge=False)
    _, findings = json_patch.decode(patch, strict=True, duplicates=duplicates, members=lambda: codec.members(body))
    assert findings == [
        'json patch duplicate field "[1].path"',
        'json patch unknown field "[1].extra"',
        'json patch unknown field "[1].more"',
        'json patch duplicate field "[1].op"',
    ]


# ---------------------------------------------------------------- comparison with RFC 6902

_leaves = st.integers(0, 3) | st.sampled_from(["a", "b"])
_documents = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.recursive(
        _leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
        max_leaves=6,
    ),
    min_size=1,
    max_size=3,
)


def _pointers(document: Any, prefix: str = "") -> list[str]:
    """Pointers to all members and items."""
    pointers = []
    members = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in members:
        pointers.append(f"{prefix}/{key}")
        if isinstance(value, dict | list):
            pointers += _pointers(value, f"{prefix}/{key}")
    return pointers


@given(_documents, st.data())
def test_patches_agree_with_the_jsonpatch_library(document: dict[str, Any], data: st.DataObject) -> None:
    original = copy.deepcopy(document)
    expected: Any = copy.deepcopy(document)
    operations: list[dict[str, Any]] = []
    for _ in range(data.draw(st.integers(1, 4))):
        pointers = _pointers(expected)
        if not pointers:
            break
        pointer = st.sampled_from(pointers)
        kind = data.draw(st.sampled_from(["add", "remove", "replace", "copy", "move"]))
        operation = op(kind, data.draw(pointer))
        if kind in ("add", "replace"):
            operation["value"] = data.draw(_leaves)
        if kind in ("copy", "move"):
            operation["from"] = data.draw(pointer)
        try:
            expected = jsonpatch.apply_patch(expected, [operation])
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
            continue
        operations.append(operation)
    assert patched(*operations, document=document) == expected
    assert document == original


def test_copied_value_is_sorted_where_the_target_path_passes_through_it() -> None:
    document = {"a": {"z": 1, "y": {"q": 2, "p": 3}}}
    copied = json_patch.apply(document, [{"op": "copy", "from": "/a", "path": "/a/y/new"}])
    assert json.dumps(copied) == '{"a": {"y": {"new": {"y": {"p": 3, "q": 2}, "z": 1}, "p": 3, "q": 2}, "z": 1}}'


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        (op("swap", "/data"), "Unexpected kind: swap"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        (op("add", "/none/x", value=1), 'add operation does not apply: doc is missing path: "/none/x": missing value'),
        (
            op("add", "/list/x", value=1),
            "error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            op("add", "/list/9", value=1),
            "error in add for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (op("remove", "/data/x"), "error in remove for path: '/data/x': Unable to remove nonexistent key: x: missing value"),
        (
            op("remove", "/list/7"),
            "error in remove for path: '/list/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        ({"op": "replace"}, "replace operation failed to decode path: operation missing path field: missing value"),
        (op("replace", "/none/x", value=1), "replace operation does not apply: doc is missing path: /none/x: missing value"),
        (op("replace", "/list/7", value=1), "replace operation does not apply: doc is missing key: /list/7: missing value"),
        (op("move", "/x"), "move operation failed to decode from: operation, missing from field: missing value"),
        (
            op("move", "/x", **{"from": "/none/x"}),
            "move operation does not apply: doc is missing from path: /none/x: missing value",
        ),
        (
            op("move", "/none/x", **{"from": "/data/k"}),
            "move operation does not apply: doc is missing destination path: /none/x: missing value",
        ),
        (
            op("copy", "/x", **{"from": "/none/x"}),
            "copy operation does not apply: doc is missing from path: /none/x: missing value",
        ),
        (
            op("copy", "/none/x", **{"from": "/data/k"}),
            "copy operation does not apply: doc is missing destination path: /none/x: missing value",
        ),
        (
            op("copy", "/x", **{"from": "/list/7"}),
            "error in copy for from: '/list/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        (op("test", "/none/x", value=1), "test operation does not apply: is missing path: /none/x: missing value"),
        (op("test", "/data/k", value="w"), "testing value /data/k failed: test failed"),
    ],
)
def test_inapplicable_operations_are_explained(operation: dict[str, Any], problem: str) -> None:
    with pytest.raises(json_patch.PatchRejected) as raised:
        json_patch.perform(DOCUMENT, [operation])
    assert str(raised.value) == problem
    assert isinstance(raised.value, json_patch.TestFailed) == problem.endswith("test failed")
