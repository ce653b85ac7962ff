"""The three patch types that change an object: JSON patch, merge patch, strategic merge patch (apply has its own module)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client
from tests.differential.definitions import STRING, definition, make, obj, served
from tests.differential.registry import scenario


def core(c: Client, what: str) -> str:
    return f"/api/v1/namespaces/{c.ns}/{what}"


def apps(c: Client, what: str) -> str:
    return f"/apis/apps/v1/namespaces/{c.ns}/{what}"


def config_map(c: Client, **fields: Any) -> str:
    body = {
        "metadata": {"name": "m", "labels": {"app": "a", "tier": "front"}, "annotations": {"x.io/y": "1"}},
        "data": {"k": "v", "l": "w"},
        **fields,
    }
    c.post(core(c, "configmaps"), body)
    return core(c, "configmaps/m")


def deployment(c: Client, **pod: Any) -> str:
    spec = {
        "containers": [
            {
                "name": "one",
                "image": "nginx:1",
                "args": ["a", "b"],
                "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 443}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            },
            {"name": "two", "image": "redis:7"},
        ],
        **pod,
    }
    c.post(
        apps(c, "deployments"),
        {
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": spec},
            },
        },
    )
    return apps(c, "deployments/d")


def json_patches(c: Client, path: str, *documents: Any) -> None:
    for document in documents:
        c.patch(path, document, JSON_PATCH)


def pod_patch(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


# ---------------------------------------------------------------- JSON patch


@scenario
def json_add_sets_and_overwrites(c: Client) -> None:
    """`add` makes a member or overwrites it; its parent must be there."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "add", "path": "/data/new", "value": "1"}],
        [{"op": "add", "path": "/data/k", "value": "2"}],
        [{"op": "add", "path": "/metadata/labels/z", "value": "3"}],
        [{"op": "add", "path": "/binaryData/x", "value": "AA=="}],
        [{"op": "add", "path": "/binaryData", "value": {}}, {"op": "add", "path": "/binaryData/x", "value": "AA=="}],
        [{"op": "add", "path": "/a/b/c", "value": "x"}],
        [{"op": "add", "path": "/data/k/deeper", "value": "x"}],
    )
    c.get(path)


@scenario
def json_remove_needs_the_member(c: Client) -> None:
    """`remove` of something absent fails the whole patch."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "remove", "path": "/data/k"}],
        [{"op": "remove", "path": "/data/k"}],
        [{"op": "remove", "path": "/nope"}],
        [{"op": "remove", "path": "/nope/deep"}],
        [{"op": "remove", "path": "/data/l"}, {"op": "remove", "path": "/data/absent"}],
        [{"op": "remove", "path": "/data"}],
        [{"op": "remove", "path": "/metadata/labels"}, {"op": "remove", "path": "/metadata/annotations"}],
    )
    c.get(path)


@scenario
def json_replace_needs_the_member(c: Client) -> None:
    """`replace` of something absent fails; of something present it sets it."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "replace", "path": "/data/k", "value": "new"}],
        [{"op": "replace", "path": "/data/absent", "value": "new"}],
        [{"op": "replace", "path": "/absent", "value": "new"}],
        [{"op": "replace", "path": "/data", "value": {"only": "one"}}],
        [{"op": "replace", "path": "/data", "value": None}],
        [{"op": "replace", "path": "/data", "value": {"k": "again"}}],
    )
    c.get(path)


@scenario
def json_move_and_copy(c: Client) -> None:
    """`move` and `copy` take `from`; an absent source, a missing `from` and a move into itself."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "copy", "from": "/data/k", "path": "/data/k2"}],
        [{"op": "move", "from": "/data/k2", "path": "/data/k3"}],
        [{"op": "copy", "from": "/data/absent", "path": "/data/x"}],
        [{"op": "move", "from": "/data/absent", "path": "/data/x"}],
        [{"op": "move", "path": "/data/x"}],
        [{"op": "copy", "path": "/data/x"}],
        [{"op": "move", "from": "/data", "path": "/data/inside"}],
        [{"op": "copy", "from": "/data", "path": "/metadata/annotations"}],
        [{"op": "move", "from": "/data/k3", "path": "/data/k3"}],
        [{"op": "copy", "from": "/data/k", "path": "/nope/x"}],
    )
    c.get(path)


@scenario
def json_test_guards(c: Client) -> None:
    """A failing `test` answers 422 and changes nothing; equality is by JSON value."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "test", "path": "/data/k", "value": "v"}, {"op": "replace", "path": "/data/k", "value": "tested"}],
        [{"op": "test", "path": "/data/k", "value": "v"}, {"op": "replace", "path": "/data/k", "value": "again"}],
        [{"op": "test", "path": "/data/absent", "value": "v"}],
        [{"op": "test", "path": "/data/absent", "value": None}],
        [{"op": "test", "path": "/absent/deep", "value": None}],
        [{"op": "test", "path": "/data/absent"}],
        [{"op": "test", "path": "/data", "value": {"l": "w", "k": "tested"}}],
        [{"op": "test", "path": "/data", "value": {"l": "w"}}],
        [{"op": "test", "path": "/data/k", "value": ["tested"]}],
        [{"op": "add", "path": "/data/first", "value": "1"}, {"op": "test", "path": "/data/first", "value": "2"}],
    )
    c.get(path)


@scenario
def json_test_numbers_and_arrays(c: Client) -> None:
    """`test` on numbers, arrays and nested objects."""
    path = deployment(c)
    json_patches(
        c,
        path,
        [{"op": "test", "path": "/spec/replicas", "value": 2}],
        [{"op": "test", "path": "/spec/replicas", "value": 2.0}],
        [{"op": "test", "path": "/spec/replicas", "value": "2"}],
        [{"op": "test", "path": "/spec/template/spec/containers/0/args", "value": ["a", "b"]}],
        [{"op": "test", "path": "/spec/template/spec/containers/0/args", "value": ["b", "a"]}],
        [{"op": "test", "path": "/spec/template/spec/containers/0/env/1", "value": {"value": "2", "name": "B"}}],
        [{"op": "test", "path": "/spec/paused", "value": False}],
        [{"op": "test", "path": "/spec/replicas", "value": True}],
    )


@scenario
def json_pointer_escapes(c: Client) -> None:
    """~1 is '/', ~0 is '~'; other escapes stay as they are."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "replace", "path": "/metadata/annotations/x.io~1y", "value": "slash"}],
        [{"op": "replace", "path": "/metadata/annotations/til~0de", "value": "tilde"}],
        [{"op": "add", "path": "/metadata/annotations/a~01b", "value": "one"}],
        [{"op": "add", "path": "/metadata/annotations/a~2b", "value": "two"}],
        [{"op": "add", "path": "/metadata/annotations/end~", "value": "three"}],
        [{"op": "add", "path": "/metadata/annotations/", "value": "empty key"}],
        [{"op": "add", "path": "data/k", "value": "no slash"}],
        [{"op": "add", "path": "/data/k/", "value": "slash at the end"}],
        [{"op": "add", "path": "//data", "value": "x"}],
    )
    c.get(path)


@scenario
def json_arrays(c: Client) -> None:
    """Array positions: '-', an index, the index one past the end, too far, negative, leading zero, words."""
    path = deployment(c)
    args = "/spec/template/spec/containers/0/args"
    json_patches(
        c,
        path,
        [{"op": "add", "path": f"{args}/-", "value": "end"}],
        [{"op": "add", "path": f"{args}/0", "value": "start"}],
        [{"op": "add", "path": f"{args}/4", "value": "past"}],
        [{"op": "add", "path": f"{args}/9", "value": "far"}],
        [{"op": "add", "path": f"{args}/-1", "value": "minus"}],
        [{"op": "replace", "path": f"{args}/-1", "value": "minus"}],
        [{"op": "remove", "path": f"{args}/-1"}],
        [{"op": "remove", "path": f"{args}/-"}],
        [{"op": "replace", "path": f"{args}/-", "value": "x"}],
        [{"op": "add", "path": f"{args}/01", "value": "zero"}],
        [{"op": "add", "path": f"{args}/x", "value": "word"}],
        [{"op": "remove", "path": f"{args}/99"}],
        [{"op": "test", "path": f"{args}/0", "value": "start"}],
        [{"op": "move", "from": f"{args}/0", "path": f"{args}/-"}],
        [{"op": "copy", "from": f"{args}/0", "path": f"{args}/1"}],
    )
    c.get(path)


@scenario
def json_array_of_objects(c: Client) -> None:
    """Containers and ports by index; a duplicate name fails validation."""
    path = deployment(c)
    at = "/spec/template/spec/containers"
    json_patches(
        c,
        path,
        [{"op": "add", "path": f"{at}/-", "value": {"name": "three", "image": "x"}}],
        [{"op": "add", "path": f"{at}/1", "value": {"name": "one", "image": "x"}}],
        [{"op": "replace", "path": f"{at}/0/image", "value": "nginx:2"}],
        [{"op": "remove", "path": f"{at}/0/ports/1"}],
        [{"op": "add", "path": f"{at}/0/ports/-", "value": {"containerPort": 70000}}],
        [{"op": "remove", "path": f"{at}/0/ports"}],
        [{"op": "replace", "path": at, "value": []}],
        [{"op": "remove", "path": at}],
    )


@scenario
def json_documents_that_are_none(c: Client) -> None:
    """Documents that are no JSON patch: 400 with the decoder's words."""
    path = config_map(c)
    for document in (
        {},
        {"op": "add"},
        "text",
        "null",
        "5",
        "[5]",
        "[null]",
        "[[]]",
        '["x"]',
        "",
        "[",
        "[{]",
        "{",
        "[{}]",
        "true",
        '""',
    ):
        c.patch(path, document if not isinstance(document, str) else document.encode(), JSON_PATCH)
    c.patch(path, b"[]", JSON_PATCH)


@scenario
def json_operations_that_are_none(c: Client) -> None:
    """Unknown, missing or oddly written parts of an operation."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "nope", "path": "/data/k"}],
        [{"op": "ADD", "path": "/data/k", "value": "x"}],
        [{"path": "/data/k", "value": "x"}],
        [{"op": "add", "value": "x"}],
        [{"op": "add", "path": "/data/none"}],
        [{"op": "replace", "path": "/data/k"}],
        [{"op": "remove"}],
        [{"op": 5, "path": "/data/k"}],
        [{"op": "add", "path": 5, "value": 1}],
        [{"op": None, "path": "/data/k"}],
        [{"op": "add", "path": None, "value": 1}],
        [{"op": "move", "from": 5, "path": "/data/k"}],
        [{"op": "add", "path": "/data/ok", "value": "1", "extra": 1}],
        [{"op": "", "path": "/data/k"}],
        [{"op": "test"}],
    )
    c.get(path)


@scenario
def json_whole_document(c: Client) -> None:
    """The empty pointer names the whole document."""
    path = config_map(c)
    whole = c.get(path).json
    json_patches(
        c,
        path,
        [{"op": "test", "path": "", "value": whole}],
        [
            {
                "op": "replace",
                "path": "",
                "value": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"only": "this"}},
            }
        ],
        [{"op": "add", "path": "", "value": {"metadata": {"name": "m"}}}],
        [{"op": "remove", "path": ""}],
        [{"op": "replace", "path": "", "value": None}],
        [{"op": "replace", "path": "", "value": []}],
        [{"op": "copy", "from": "", "path": "/data/all"}],
    )
    c.get(path)


@scenario
def json_too_many_operations(c: Client) -> None:
    """More than 10000 operations are refused before any is tried."""
    path = config_map(c)
    c.patch(path, json.dumps([{"op": "test", "path": "/data/k", "value": "v"}] * 10001), JSON_PATCH)
    c.patch(path, json.dumps([{"op": "test", "path": "/data/k", "value": "v"}] * 100), JSON_PATCH)


@scenario
def json_result_must_fit_the_type(c: Client) -> None:
    """A result that the type cannot hold is 400 or 422."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "replace", "path": "/data/k", "value": 5}],
        [{"op": "replace", "path": "/data/k", "value": None}],
        [{"op": "replace", "path": "/data", "value": "text"}],
        [{"op": "replace", "path": "/data", "value": ["x"]}],
        [{"op": "replace", "path": "/metadata", "value": None}],
        [{"op": "replace", "path": "/metadata/labels", "value": {"a": 1}}],
        [{"op": "add", "path": "/metadata/labels/bad", "value": "not valid!"}],
        [{"op": "add", "path": "/binaryData", "value": {"x": "not base64"}}],
        [{"op": "add", "path": "/immutable", "value": "yes"}],
        [{"op": "add", "path": "/data/bad key", "value": "x"}],
    )


@scenario
def json_cannot_change_identity(c: Client) -> None:
    """Name, namespace, uid, kind and apiVersion stay; a changed resourceVersion is a precondition."""
    path = config_map(c)
    json_patches(
        c,
        path,
        [{"op": "replace", "path": "/metadata/name", "value": "other"}],
        [{"op": "remove", "path": "/metadata/name"}],
        [{"op": "replace", "path": "/metadata/namespace", "value": "default"}],
        [{"op": "replace", "path": "/metadata/uid", "value": "11111111-2222-3333-4444-555555555555"}],
        [{"op": "replace", "path": "/kind", "value": "Secret"}],
        [{"op": "replace", "path": "/apiVersion", "value": "v2"}],
        [{"op": "remove", "path": "/kind"}],
        [{"op": "remove", "path": "/apiVersion"}],
        [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}],
        [{"op": "remove", "path": "/metadata/resourceVersion"}],
        [{"op": "replace", "path": "/metadata/resourceVersion", "value": "x"}],
        [{"op": "replace", "path": "/metadata/creationTimestamp", "value": "2001-02-03T04:05:06Z"}],
        [{"op": "add", "path": "/metadata/generation", "value": 7}],
        [{"op": "add", "path": "/metadata/deletionTimestamp", "value": "2001-02-03T04:05:06Z"}],
        [{"op": "add", "path": "/metadata/generateName", "value": "x-"}],
        [{"op": "add", "path": "/metadata/selfLink", "value": "/x"}],
    )
    c.get(path)


# ---------------------------------------------------------------- merge patch


@scenario
def merge_null_removes(c: Client) -> None:
    """null removes a member, whether it is there or not."""
    path = config_map(c)
    for document in (
        {"data": {"k": None}},
        {"data": {"k": None, "absent": None}},
        {"metadata": {"labels": None}},
        {"data": None},
        {"data": {"k": "v", "n": None}},
        {"binaryData": {"x": None}},
        {"absent": None},
        {"metadata": {"annotations": {"x.io/y": None}}},
    ):
        c.patch(path, document, MERGE)


@scenario
def merge_arrays_are_replaced(c: Client) -> None:
    """An array is replaced as a whole."""
    path = deployment(c)
    for document in (
        pod_patch(containers=[{"name": "new", "image": "x"}]),
        {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}},
        {"metadata": {"finalizers": ["example.com/a"]}},
        {"metadata": {"finalizers": []}},
        pod_patch(containers=[]),
        pod_patch(containers=None),
        pod_patch(containers=[{"image": "x"}]),
        pod_patch(containers=[None]),
        pod_patch(containers={"name": "x"}),
    ):
        c.patch(path, document, MERGE)


@scenario
def merge_type_changes(c: Client) -> None:
    """Putting one JSON type where another was."""
    path = config_map(c)
    for document in (
        {"data": "text"},
        {"data": 5},
        {"data": ["x"]},
        {"data": {"k": 1}},
        {"data": {"k": True}},
        {"data": {"k": {"deep": "x"}}},
        {"metadata": "x"},
        {"metadata": []},
        {"metadata": None},
        {"metadata": {"labels": ["a"]}},
        {"metadata": {"labels": {"a": 1}}},
        {"immutable": "true"},
        {"kind": 5},
        {"apiVersion": None},
        {"kind": None},
    ):
        c.patch(path, document, MERGE)
    c.get(path)


@scenario
def merge_documents_that_are_none(c: Client) -> None:
    """Documents that are no merge patch."""
    path = config_map(c)
    for raw in (
        b"",
        b"null",
        b"[]",
        b"5",
        b'"x"',
        b"{",
        b"{}x",
        b"true",
        b"data:\n  k: yaml\n",
        b'{"data":{"k":"a","k":"b"}}',
        b"{} ",
        b"\xef\xbb\xbf{}",
        b'{"data":{"k":"\xff"}}',
    ):
        c.patch(path, raw, MERGE)
    c.get(path)


@scenario
def merge_resource_version_is_a_precondition(c: Client) -> None:
    """metadata.resourceVersion in the patch: current passes, stale is 409, "" and null are no condition."""
    path = config_map(c)
    first = c.get(path).rv
    c.patch(path, {"metadata": {"resourceVersion": first}, "data": {"k": "1"}}, MERGE)
    c.patch(path, {"metadata": {"resourceVersion": first}, "data": {"k": "2"}}, MERGE)
    for version in ("", None, "0", "1", "x", "999999999", 5):
        c.patch(path, {"metadata": {"resourceVersion": version}, "data": {"k": f"to {version}"}}, MERGE)
    c.get(path)


@scenario
def merge_uid_is_a_precondition(c: Client) -> None:
    """metadata.uid in the patch must be the object's."""
    path = config_map(c)
    uid = c.get(path).uid
    for value in (uid, "11111111-2222-3333-4444-555555555555", "", None, 5):
        c.patch(path, {"metadata": {"uid": value}, "data": {"k": "x"}}, MERGE)


@scenario
def merge_identity(c: Client) -> None:
    """Name, namespace, kind and apiVersion inside a merge patch."""
    path = config_map(c)
    for document in (
        {"metadata": {"name": "other"}},
        {"metadata": {"name": None}},
        {"metadata": {"name": ""}},
        {"metadata": {"namespace": "default"}},
        {"metadata": {"namespace": None}},
        {"kind": "Secret"},
        {"apiVersion": "apps/v1"},
        {"kind": "ConfigMap", "apiVersion": "v1"},
        {"kind": "", "apiVersion": ""},
        {"metadata": {"creationTimestamp": None}},
        {"metadata": {"creationTimestamp": "never"}},
        {"metadata": {"generation": 4}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}},
    ):
        c.patch(path, document, MERGE)
    c.get(path)


@scenario
def merge_unknown_fields(c: Client) -> None:
    """fieldValidation on a merge patch: Strict refuses, Warn warns, Ignore says nothing."""
    path = config_map(c)
    for level in ("Strict", "Warn", "Ignore", "", "nope"):
        c.patch(path, {"unknown": 1, "metadata": {"odd": 2}, "data": {"k": level}}, MERGE, {"fieldValidation": level})
    for level in ("Strict", "Warn", "Ignore"):
        c.patch(path, b'{"data":{"k":"a","k":"b"}}', MERGE, {"fieldValidation": level})
    c.patch(path, [{"op": "add", "path": "/unknown", "value": 1}], JSON_PATCH, {"fieldValidation": "Strict"})
    c.patch(path, [{"op": "add", "path": "/unknown", "value": 1}], JSON_PATCH)
    c.patch(path, b'[{"op":"add","path":"/data/z","value":"1","value":"2"}]', JSON_PATCH, {"fieldValidation": "Strict"})
    c.patch(path, {"unknown": 1}, STRATEGIC, {"fieldValidation": "Strict"})
    c.patch(path, {"unknown": 1}, STRATEGIC)
    c.patch(path, b'{"data":{"k":"a","k":"b"}}', STRATEGIC, {"fieldValidation": "Strict"})


# ---------------------------------------------------------------- strategic merge patch


@scenario
def strategic_merges_by_key(c: Client) -> None:
    """containers by name, ports by containerPort, env by name."""
    path = deployment(c)
    for spec in (
        {"containers": [{"name": "one", "image": "nginx:2"}]},
        {"containers": [{"name": "three", "image": "x"}]},
        {"containers": [{"name": "one", "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 8080}]}]},
        {"containers": [{"name": "one", "env": [{"name": "B", "value": "22"}, {"name": "C", "value": "3"}]}]},
        {"containers": [{"name": "one", "args": ["only"]}]},
        {"containers": [{"name": "two", "image": None}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "w", "configMap": {"name": "x"}}]},
        {"containers": [{"name": "two", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
        {"containers": [{"name": "two", "volumeMounts": [{"name": "w", "mountPath": "/v"}]}]},
    ):
        c.patch(path, pod_patch(**spec), STRATEGIC)
    c.get(path)


@scenario
def strategic_delete_directive(c: Client) -> None:
    """$patch: delete removes a list item by its key, or a map; an absent item is not missed."""
    path = deployment(c)
    for document in (
        pod_patch(containers=[{"name": "two", "$patch": "delete"}]),
        pod_patch(containers=[{"name": "absent", "$patch": "delete"}]),
        pod_patch(containers=[{"name": "one", "env": [{"name": "A", "$patch": "delete"}]}]),
        pod_patch(containers=[{"name": "one", "ports": [{"containerPort": 443, "$patch": "delete"}]}]),
        pod_patch(containers=[{"$patch": "delete"}]),
        {"spec": {"strategy": {"$patch": "delete"}}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"spec": {"$patch": "delete"}},
        {"$patch": "delete"},
    ):
        c.patch(path, document, STRATEGIC)
    c.get(path)


@scenario
def strategic_replace_directive(c: Client) -> None:
    """$patch: replace takes the patch's list or map instead of merging."""
    path = deployment(c)
    for document in (
        pod_patch(containers=[{"$patch": "replace"}, {"name": "fresh", "image": "y"}]),
        pod_patch(containers=[{"name": "fresh", "env": [{"name": "X", "value": "1"}]}]),
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
        {"metadata": {"labels": {"$patch": "replace", "c": "3"}}},
        {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
        pod_patch(containers=[{"$patch": "replace"}]),
        {"metadata": {"labels": {"$patch": "merge", "d": "4"}}},
        {"metadata": {"labels": {"$patch": "nope", "e": "5"}}},
        {"metadata": {"labels": {"$patch": 5}}},
        pod_patch(containers=[{"name": "fresh", "$patch": "merge", "image": "z"}]),
        pod_patch(containers=[{"name": "fresh", "$patch": "odd", "image": "z"}]),
    ):
        c.patch(path, document, STRATEGIC)
    c.get(path)


@scenario
def strategic_primitive_lists(c: Client) -> None:
    """finalizers merge as a set; $deleteFromPrimitiveList takes items out; args are atomic."""
    path = deployment(c)
    for document in (
        {"metadata": {"finalizers": ["example.com/a"]}},
        {"metadata": {"finalizers": ["example.com/b", "example.com/a"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/zz"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"], "finalizers": ["example.com/c"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "example.com/c"}},
        {"metadata": {"$deleteFromPrimitiveList/absent": ["x"]}},
        {"metadata": {"$setElementOrder/finalizers": ["example.com/c", "example.com/d"], "finalizers": ["example.com/d"]}},
        pod_patch(containers=[{"name": "one", "$deleteFromPrimitiveList/args": ["a"]}]),
        {"metadata": {"finalizers": None}},
    ):
        c.patch(path, document, STRATEGIC)
    c.get(path)


@scenario
def strategic_element_order(c: Client) -> None:
    """$setElementOrder orders a merged list; items it does not name keep their place; items it lacks are refused."""
    path = deployment(c)
    order = [{"name": "two"}, {"name": "one"}]
    for spec in (
        {"$setElementOrder/containers": order},
        {"$setElementOrder/containers": order, "containers": [{"name": "one", "image": "n:3"}]},
        {"$setElementOrder/containers": [{"name": "new"}, *order], "containers": [{"name": "new", "image": "n"}]},
        {"$setElementOrder/containers": [{"name": "one"}], "containers": [{"name": "absent", "image": "n"}]},
        {"$setElementOrder/containers": [{"nope": "one"}]},
        {"$setElementOrder/containers": "one"},
        {"$setElementOrder/containers": [{"name": "two"}]},
        {"$setElementOrder/absent": [{"name": "two"}]},
    ):
        c.patch(path, pod_patch(**spec), STRATEGIC)


@scenario
def strategic_retain_keys(c: Client) -> None:
    """$retainKeys drops every member it does not name."""
    path = deployment(c)
    for strategy in (
        {"$retainKeys": ["type"], "type": "Recreate"},
        {"$retainKeys": ["type", "rollingUpdate"], "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        {"type": "Recreate"},
        {"$retainKeys": ["type"], "rollingUpdate": {"maxSurge": 1}},
        {"$retainKeys": "type", "type": "Recreate"},
        {"$retainKeys": []},
    ):
        c.patch(path, {"spec": {"strategy": strategy}}, STRATEGIC)
    c.patch(path, pod_patch(volumes=[{"name": "v", "emptyDir": {}}]), STRATEGIC)
    c.patch(path, pod_patch(volumes=[{"name": "v", "emptyDir": {}}]), STRATEGIC)


@scenario
def strategic_wrong_types(c: Client) -> None:
    """A map for a list, a list for a map, items without their key."""
    path = deployment(c)
    for document in (
        pod_patch(containers={"name": "one"}),
        pod_patch(containers="one"),
        pod_patch(containers=[{"image": "x"}]),
        pod_patch(containers=["one"]),
        pod_patch(containers=[None]),
        {"spec": []},
        {"spec": "x"},
        {"spec": {"replicas": "3"}},
        {"spec": {"replicas": 1.5}},
        {"metadata": []},
        {"metadata": {"labels": ["x"]}},
        {"spec": {"template": None}},
        {"spec": None},
        {"spec": {"selector": {"matchLabels": None}}},
    ):
        c.patch(path, document, STRATEGIC)
    for raw in (b"", b"null", b"[]", b"5", b"{", b'"x"'):
        c.patch(path, raw, STRATEGIC)


@scenario
def strategic_atomic_lists(c: Client) -> None:
    """Lists without a merge key are replaced (tolerations), a struct of one is not merged item by item."""
    path = deployment(c)
    for spec in (
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
        {"tolerations": [{"key": "b", "operator": "Exists"}]},
        {"tolerations": []},
        {"tolerations": None},
        {"imagePullSecrets": [{"name": "x"}]},
        {"imagePullSecrets": [{"name": "y"}]},
        {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}]},
        {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["b"]}, {"ip": "1.2.3.5", "hostnames": ["c"]}]},
        {"nodeSelector": {"a": "b"}},
        {"nodeSelector": {"c": "d", "a": None}},
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
        {"topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}]},
    ):
        c.patch(path, pod_patch(**spec), STRATEGIC)


@scenario
def strategic_service_ports(c: Client) -> None:
    """Service ports merge by `port` alone."""
    c.post(
        core(c, "services"),
        {
            "metadata": {"name": "s"},
            "spec": {"selector": {"a": "b"}, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
        },
    )
    path = core(c, "services/s")
    for ports in (
        [{"port": 80, "targetPort": 8080}],
        [{"name": "c", "port": 82}],
        [{"port": 81, "$patch": "delete"}],
        [{"port": 80, "protocol": "UDP", "name": "u"}],
        [{"name": "x"}],
    ):
        c.patch(path, {"spec": {"ports": ports}}, STRATEGIC)
    c.patch(path, {"spec": {"selector": {"a": None, "c": "d"}}}, STRATEGIC)
    c.patch(path, {"spec": {"clusterIP": "10.0.0.250"}}, STRATEGIC)


@scenario
def strategic_conditions(c: Client) -> None:
    """Conditions of a status merge by type."""
    path = deployment(c) + "/status"
    for conditions in (
        [{"type": "Available", "status": "True", "reason": "r"}],
        [{"type": "Progressing", "status": "False"}],
        [{"type": "Available", "status": "Unknown"}],
        [{"type": "Progressing", "$patch": "delete"}],
        [{"status": "True"}],
    ):
        c.patch(path, {"status": {"conditions": conditions}}, STRATEGIC)


# ---------------------------------------------------------------- what a resource takes


THING = obj(
    {
        "spec": obj(
            {
                "size": {"type": "integer", "minimum": 0},
                "list": {"type": "array", "items": STRING},
                "map": obj(additionalProperties=STRING),
                "text": STRING,
            }
        ),
        "status": obj({"phase": STRING}),
    }
)


@contextlib.contextmanager
def custom_resource(c: Client) -> Iterator[str]:
    """A small definition and one object of it; yields the object's path."""
    body = definition(c, THING, {"subresources": {"status": {}}}, plural="things", kind="Thing", prefix="p")
    with served(c, body) as collection:
        c.post(collection, make(body, "t", spec={"size": 1, "list": ["a", "b"], "map": {"k": "v"}, "text": "x"}))
        yield f"{collection}/t"


@scenario
def custom_resources_take_no_strategic_patch(c: Client) -> None:
    """415 for strategic patches of custom resources; merge and JSON patches prune and validate."""
    with custom_resource(c) as path:
        c.patch(path, {"spec": {"size": 2}}, STRATEGIC)
        c.patch(path + "/status", {"status": {"phase": "x"}}, STRATEGIC)
        for document in (
            {"spec": {"size": 2}},
            {"spec": {"size": -1}},
            {"spec": {"size": "x"}},
            {"spec": {"list": ["c"]}},
            {"spec": {"map": {"k": None, "l": "w"}}},
            {"spec": {"unknown": 1}},
            {"spec": None},
            {"status": {"phase": "ignored"}},
            {"spec": {"text": None}},
            {"metadata": {"name": "u"}},
            {"kind": "Other"},
            {"apiVersion": "v1"},
            {"metadata": None},
            {},
        ):
            c.patch(path, document, MERGE)
        for document in (
            [{"op": "add", "path": "/spec", "value": {"size": 3}}],
            [{"op": "add", "path": "/spec/list", "value": []}, {"op": "add", "path": "/spec/list/-", "value": "z"}],
            [{"op": "add", "path": "/spec/map", "value": {}}, {"op": "add", "path": "/spec/map/a~1b~0c~01", "value": "escaped"}],
            [{"op": "remove", "path": "/spec/map/a~1b~0c~01"}],
            [{"op": "test", "path": "/spec/size", "value": 3}],
            [{"op": "replace", "path": "/spec/size", "value": "x"}],
            [{"op": "remove", "path": "/spec"}],
        ):
            c.patch(path, document, JSON_PATCH)
        c.patch(path, {"spec": {"unknown": 1}}, MERGE, {"fieldValidation": "Strict"})
        c.patch(path, {"spec": {"unknown": 2}}, MERGE, {"fieldValidation": "Warn"})
        c.patch(path + "/status", {"status": {"phase": "Ready"}, "spec": {"size": 99}}, MERGE)
        c.patch(path, {"a": 1}, "application/json")


@scenario
def content_types_of_a_patch(c: Client) -> None:
    """Which content types a PATCH takes; the others are 415 with the list."""
    path = config_map(c)
    for ctype in (
        "",
        "application/json",
        "application/yaml",
        "text/plain",
        "application/merge-patch+yaml",
        "application/strategic-merge-patch",
        "application/json-patch",
        "application/cbor",
        "*/*",
        "application/*",
        "nonsense",
        "application/vnd.kubernetes.protobuf",
        "application/json-patch+cbor",
        "application/apply-patch+json",
    ):
        c.patch(path, {"data": {"k": "x"}}, ctype)


@scenario
def content_type_parameters(c: Client) -> None:
    """Parameters after the content type, letter case and blanks."""
    path = config_map(c)
    for number, ctype in enumerate(
        (
            "application/merge-patch+json; charset=utf-8",
            "application/merge-patch+json;charset=latin-1",
            "Application/Merge-Patch+JSON",
            " application/merge-patch+json ",
            "application/merge-patch+json,application/json",
            "application/merge-patch+json;",
            "application/merge-patch+json; x",
        )
    ):
        c.patch(path, {"data": {"k": str(number)}}, ctype)


@scenario
def patch_of_the_absent(c: Client) -> None:
    """Only apply creates; the other patches of an absent object are 404."""
    path = core(c, "configmaps/absent")
    c.patch(path, {"data": {"k": "v"}}, MERGE)
    c.patch(path, {"data": {"k": "v"}}, STRATEGIC)
    c.patch(path, [{"op": "add", "path": "/data", "value": {}}], JSON_PATCH)
    c.patch(path, [{"op": "bad"}], JSON_PATCH)
    c.patch(path, b"{", MERGE)
    c.patch(core(c, "configmaps"), {"data": {}}, MERGE)
    c.patch("/api/v1/namespaces/absent-ns/configmaps/m", {"data": {}}, MERGE)
    c.patch(core(c, "nopes/m"), {}, MERGE)
    c.patch(
        path,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "absent"}, "data": {"k": "v"}},
        APPLY,
        {"fieldManager": "m"},
    )


@scenario
def status_patches(c: Client) -> None:
    """A patch of status leaves spec and labels; a patch of the object leaves status."""
    path = deployment(c)
    c.patch(
        path + "/status",
        {"status": {"replicas": 3, "observedGeneration": 1}, "spec": {"replicas": 9}, "metadata": {"labels": {"l": "x"}}},
        MERGE,
    )
    c.patch(path, {"status": {"replicas": 7}}, MERGE)
    c.patch(path + "/status", [{"op": "replace", "path": "/status/replicas", "value": 4}], JSON_PATCH)
    c.patch(path + "/status", [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH)
    c.patch(path + "/status", {"status": {"replicas": -1}}, MERGE)
    c.patch(path + "/status", {"status": {"readyReplicas": 9}}, MERGE)
    c.patch(path + "/status", {"status": None}, MERGE)
    c.patch(path + "/status", {"status": "x"}, STRATEGIC)
    c.patch(path + "/status", {"metadata": {"resourceVersion": "1"}}, MERGE)
    c.patch(config_map(c) + "/status", {}, MERGE)
    c.get(path)


@scenario
def scale_patches(c: Client) -> None:
    """Patches of the scale subresource set spec.replicas."""
    path = deployment(c)
    for document, ctype in (
        ({"spec": {"replicas": 5}}, MERGE),
        ({"spec": {"replicas": 6}}, STRATEGIC),
        ([{"op": "replace", "path": "/spec/replicas", "value": 7}], JSON_PATCH),
        ({"spec": {"replicas": -1}}, MERGE),
        ({"spec": {"replicas": "x"}}, MERGE),
        ({"spec": {"replicas": None}}, MERGE),
        ({"status": {"replicas": 4}}, MERGE),
        ({"metadata": {"labels": {"a": "b"}}}, MERGE),
        ({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}}, MERGE),
        ({}, MERGE),
        ({"metadata": {"name": "other"}}, MERGE),
        ([{"op": "test", "path": "/status/selector", "value": "app=a"}], JSON_PATCH),
    ):
        c.patch(path + "/scale", document, ctype)
    c.patch(apps(c, "deployments/absent/scale"), {"spec": {"replicas": 1}}, MERGE)
    c.get(path + "/scale")
    c.get(path)


@scenario
def other_subresources_take_no_patch(c: Client) -> None:
    """PATCH where it is not served is 405."""
    for path in (
        core(c, "pods/p/binding"),
        core(c, "pods/p/eviction"),
        core(c, "pods/p/log"),
        core(c, "serviceaccounts/s/token"),
        f"/api/v1/namespaces/{c.ns}/finalize",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        core(c, "pods/p/nope"),
        "/version",
        "/api/v1",
        "/apis/apps",
    ):
        c.patch(path, {}, MERGE)


@scenario
def unchanged_patches_write_nothing(c: Client) -> None:
    """A patch that changes nothing keeps the resourceVersion and the managers."""
    path = deployment(c)
    for document, ctype in (
        ({}, MERGE),
        ({"spec": {"replicas": 2}}, MERGE),
        ({}, STRATEGIC),
        (pod_patch(containers=[{"name": "one", "image": "nginx:1"}]), STRATEGIC),
        ([], JSON_PATCH),
        ([{"op": "replace", "path": "/spec/replicas", "value": 2}], JSON_PATCH),
        ({"unknown": 1}, MERGE),
        ({"status": {"replicas": 3}}, MERGE),
        ({"spec": {"paused": False}}, MERGE),
        ({"metadata": {"labels": {"absent": None}}}, MERGE),
        ({"metadata": {"labels": {}}}, MERGE),
    ):
        c.patch(path, document, ctype, {"fieldManager": "other"})


@scenario
def patch_options(c: Client) -> None:
    """force only with apply; dryRun, fieldManager and fieldValidation are checked."""
    path = config_map(c)
    for query in (
        {"force": "true"},
        {"force": "false"},
        {"force": "x"},
        {"dryRun": "All"},
        {"dryRun": "all"},
        {"dryRun": ""},
        {"dryRun": ["All", "All"]},
        {"fieldManager": "x" * 128},
        {"fieldManager": "x" * 129},
        {"fieldManager": "bad\x01name"},
        {"fieldManager": ""},
        {"fieldValidation": "strict"},
        {"pretty": "true"},
        {"dryRun": "no", "fieldValidation": "no", "fieldManager": "y" * 200, "force": "true"},
        {"unknownOption": "1"},
    ):
        c.patch(path, {"data": {"k": json.dumps(query)[:20]}}, MERGE, query)
    c.get(path)


@scenario
def patch_that_fails_validation(c: Client) -> None:
    """422 with every cause; immutable fields."""
    path = deployment(c)
    for document in (
        {"spec": {"replicas": -1}},
        {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
        {"spec": {"template": {"metadata": {"labels": {"app": None}}}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
        {"spec": {"strategy": {"type": "Nope"}}},
        pod_patch(restartPolicy="Never"),
        pod_patch(dnsPolicy="Nope"),
        {"spec": {"replicas": -1, "minReadySeconds": -1, "progressDeadlineSeconds": -5}},
        {"metadata": {"labels": {"bad key!": "bad value!"}}},
        {"metadata": {"annotations": {"Bad Key": "x"}}},
        {"metadata": {"finalizers": ["noslash"]}},
        {"spec": {"selector": None}},
    ):
        c.patch(path, document, MERGE)
    c.get(path)


@scenario
def generation_counts_changes_of_spec(c: Client) -> None:
    """metadata.generation rises with spec only."""
    path = deployment(c)
    for document in (
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"replicas": 3}},
        {"spec": {"replicas": 3}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"spec": {"paused": True}},
        {"metadata": {"generation": 99}},
    ):
        c.patch(path, document, MERGE)
    c.patch(path + "/status", {"status": {"replicas": 1}}, MERGE)


@scenario
def dry_run_patches(c: Client) -> None:
    """dryRun answers what would be, keeps the stored object and its resourceVersion."""
    path = config_map(c)
    for document, ctype in (
        ({"data": {"k": "dry"}}, MERGE),
        ([{"op": "remove", "path": "/data/k"}], JSON_PATCH),
        ({"data": {"k": None}}, STRATEGIC),
        ({"data": {"k": 5}}, MERGE),
    ):
        c.patch(path, document, ctype, {"dryRun": "All"})
        c.get(path)
    c.patch(core(c, "configmaps/absent"), {}, MERGE, {"dryRun": "All"})


@scenario
def stale_patches_and_retries(c: Client) -> None:
    """Two writers: a conditional patch of the second fails, and passes with what it read again."""
    path = config_map(c)
    seen = c.get(path).rv
    c.patch(path, {"data": {"k": "first"}}, MERGE)
    c.patch(
        path,
        [
            {"op": "test", "path": "/metadata/resourceVersion", "value": seen},
            {"op": "replace", "path": "/data/k", "value": "second"},
        ],
        JSON_PATCH,
    )
    c.patch(path, {"metadata": {"resourceVersion": seen}, "data": {"k": "second"}}, STRATEGIC)
    seen = c.get(path).rv
    c.patch(
        path,
        [
            {"op": "test", "path": "/metadata/resourceVersion", "value": seen},
            {"op": "replace", "path": "/data/k", "value": "second"},
        ],
        JSON_PATCH,
    )
    c.put(path, {"metadata": {"name": "m", "resourceVersion": seen}, "data": {"k": "third"}})


@scenario
def patches_remove_finalizers_of_the_deleted(c: Client) -> None:
    """While an object waits for finalizers they may go but not come; with the last one it is gone."""
    path = config_map(c, metadata={"name": "m", "finalizers": ["example.com/a", "example.com/b"]})
    c.delete(path)
    c.patch(path, {"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}}, MERGE)
    c.patch(path, {"data": {"still": "writable"}}, MERGE)
    c.patch(path, {"metadata": {"deletionTimestamp": None}}, MERGE)
    c.patch(path, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}, STRATEGIC)
    c.patch(path, [{"op": "remove", "path": "/metadata/finalizers/0"}], JSON_PATCH)
    c.get(path)


@scenario
def patched_owner_references(c: Client) -> None:
    """ownerReferences merge by uid strategically, as a whole otherwise; two controllers are refused."""
    path = config_map(c)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "11111111-2222-3333-4444-555555555555"}
    other = {**owner, "name": "q", "uid": "21111111-2222-3333-4444-555555555555"}
    for references, ctype in (
        ([owner], STRATEGIC),
        ([other], STRATEGIC),
        ([{**owner, "controller": True}], STRATEGIC),
        ([{**other, "controller": True}], STRATEGIC),
        ([{"uid": owner["uid"], "$patch": "delete"}], STRATEGIC),
        ([{**owner, "uid": ""}], MERGE),
        ([{"name": "x"}], MERGE),
        ([], MERGE),
    ):
        c.patch(path, {"metadata": {"ownerReferences": references}}, ctype)


@scenario
def answers_of_patches_in_other_forms(c: Client) -> None:
    """A patch's answer follows Accept as a get's does."""
    path = config_map(c)
    for number, accept in enumerate(
        (
            "application/yaml",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "text/plain",
            "*/*",
        )
    ):
        c.patch(path, {"data": {"k": str(number)}}, MERGE, headers={"Accept": accept})
    c.patch(path, {"data": 5}, MERGE, headers={"Accept": "application/yaml"})
    c.get(path)
