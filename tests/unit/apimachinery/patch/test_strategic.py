from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.patch import strategic
from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.apimachinery.patch.strategic import Lookup, in_order, partition
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apimachinery.schema.model import Field
from fakekube.apimachinery.schema.trees import deep_copy
from tests.unit.apimachinery.patch.shapes import (
    BOOLEAN,
    INT32,
    QUANTITY,
    SPEC,
    STRING,
    THING,
    list_of,
    map_of,
    specs,
    struct,
    things,
)

CONTAINER = struct(
    "Container",
    name=STRING,
    image=STRING,
    args=list_of(STRING),
    ports=Field("ports", list_of(struct("Port", port=INT32, name=STRING)), patch_strategy=("merge",), patch_merge_key="port"),
)

POD = struct(
    "Pod",
    metadata=Field(
        "metadata",
        struct(
            "Meta", name=STRING, labels=map_of(STRING), finalizers=Field("finalizers", list_of(STRING), patch_strategy=("merge",))
        ),
    ),
    spec=Field(
        "spec",
        struct(
            "PodSpec",
            containers=Field("containers", list_of(CONTAINER), patch_strategy=("merge",), patch_merge_key="name"),
            tolerations=list_of(struct("Toleration", key=STRING)),
            keyless=Field("keyless", list_of(struct("Keyless", a=STRING)), patch_strategy=("merge",)),
            strategy=Field(
                "strategy",
                struct("Strategy", type=STRING, rolling=struct("Rolling", surge=STRING)),
                patch_strategy=("retainKeys",),
            ),
            fixed=Field("fixed", struct("Fixed", a=STRING, b=STRING), patch_strategy=("replace",)),
            nested=map_of(struct("Nested", a=STRING)),
            replicas=Field("replicas", INT32, pointer=True),
            paused=BOOLEAN,
            cpu=QUANTITY,
        ),
    ),
)

DOCUMENT: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"a": "1", "b": "2"}, "finalizers": ["f/1", "f/2"]},
    "spec": {
        "containers": [
            {"name": "one", "image": "i1", "args": ["x"], "ports": [{"port": 80, "name": "http"}, {"port": 443}]},
            {"name": "two", "image": "i2"},
        ],
        "tolerations": [{"key": "t"}],
        "strategy": {"type": "Rolling", "rolling": {"surge": "1"}},
        "fixed": {"a": "1", "b": "2"},
        "nested": {"n": {"a": "1"}},
        "replicas": 1,
    },
}


POD_SPEC = type_of("k8s.io/api/core/v1.PodSpec")


def patched(patch: Any) -> Any:
    """What the merge gives, whose result fits its type."""
    decoded = strategic.decode(patch)
    strategic.apply(POD, DOCUMENT, deep_copy(decoded))
    return strategic.merge(POD, DOCUMENT, decoded)


def names(result: Any) -> list[str]:
    return [container["name"] for container in result["spec"]["containers"]]


def spec(**members: Any) -> dict[str, Any]:
    return {"spec": members}


# ---------------------------------------------------------------- merging


def test_items_are_merged_by_key_and_new_items_added() -> None:
    result = patched(spec(containers=[{"name": "three", "image": "i3"}, {"name": "one", "image": "new"}]))
    assert names(result) == ["three", "one", "two"]
    assert result["spec"]["containers"][1] == {**DOCUMENT["spec"]["containers"][0], "image": "new"}


def test_nested_lists_are_merged() -> None:
    result = patched(spec(containers=[{"name": "one", "ports": [{"port": 443, "name": "tls"}, {"port": 9}]}]))
    assert result["spec"]["containers"][0]["ports"] == [{"port": 80, "name": "http"}, {"port": 443, "name": "tls"}, {"port": 9}]


def test_lists_without_a_strategy_are_replaced() -> None:
    result = patched(spec(tolerations=[{"key": "u"}], containers=[{"name": "one", "args": ["y", "z"]}]))
    assert result["spec"]["tolerations"] == [{"key": "u"}]
    assert result["spec"]["containers"][0]["args"] == ["y", "z"]


def test_primitive_lists_with_merge_strategy_are_merged() -> None:
    result = patched({"metadata": {"finalizers": ["f/3", "f/1"]}})
    assert result["metadata"]["finalizers"] == ["f/3", "f/1", "f/2"]


def test_nulls_delete_members_and_are_not_stored() -> None:
    result = patched({"metadata": {"labels": {"a": None, "x": None}}, "new": {"y": None, "z": 1}})
    assert result["metadata"]["labels"] == {"b": "2"}
    assert result["new"] == {"z": 1}


def test_replace_strategy_replaces_objects() -> None:
    assert patched(spec(fixed={"b": "3"}))["spec"]["fixed"] == {"b": "3"}


def test_unchanged_parts_are_shared() -> None:
    before = copy.deepcopy(DOCUMENT)
    result = patched(spec(replicas=2))
    assert result["metadata"] is DOCUMENT["metadata"]
    assert result["spec"]["containers"] is DOCUMENT["spec"]["containers"]
    assert before == DOCUMENT


# ---------------------------------------------------------------- directives


def test_patch_delete() -> None:
    assert names(patched(spec(containers=[{"name": "one", "$patch": "delete"}, {"name": "absent", "$patch": "delete"}]))) == [
        "two"
    ]
    assert patched(spec(strategy={"$patch": "delete"}))["spec"]["strategy"] == {}
    assert "absent" not in patched(spec(absent={"$patch": "delete"}))["spec"]


def test_patch_replace() -> None:
    result = patched(spec(containers=[{"name": "new", "image": "i"}, {"$patch": "replace"}]))
    assert result["spec"]["containers"] == [{"name": "new", "image": "i"}]
    assert patched({"metadata": {"labels": {"$patch": "replace", "c": "3"}}})["metadata"]["labels"] == {"c": "3"}


def test_retain_keys() -> None:
    result = patched(spec(strategy={"$retainKeys": ["type"], "type": "Recreate"}))
    assert result["spec"]["strategy"] == {"type": "Recreate"}
    assert patched(spec(strategy={"$retainKeys": []}))["spec"]["strategy"] == {}


def test_delete_from_primitive_list() -> None:
    result = patched({"metadata": {"$deleteFromPrimitiveList/finalizers": ["f/1", "f/9"]}})
    assert result["metadata"]["finalizers"] == ["f/2"]
    ignored = patched({"metadata": {"$deleteFromPrimitiveList/finalizers": "f/1", "$deleteFromPrimitiveList/absent": ["x"]}})
    assert ignored["metadata"] == DOCUMENT["metadata"]


@pytest.mark.parametrize(
    ("order", "containers", "expected"),
    [
        (["two", "one"], None, ["two", "one"]),
        (["two"], None, ["one", "two"]),
        (["new", "two", "one"], [{"name": "new"}], ["new", "two", "one"]),
        (["one", "new"], [{"name": "new"}], ["one", "new", "two"]),
        (["new", "one"], [{"name": "two", "$patch": "delete"}, {"name": "new"}], ["new", "one"]),
        ([], [{"name": "one", "image": "x"}], ["one", "two"]),
    ],
)
def test_element_order(order: list[str], containers: Any, expected: list[str]) -> None:
    patch: dict[str, Any] = {"$setElementOrder/containers": [{"name": name} for name in order]}
    if containers is not None:
        patch["containers"] = containers
    assert names(patched({"spec": patch})) == expected


def test_element_order_of_scalars() -> None:
    patch = {"$setElementOrder/finalizers": ["f/3", "f/2"], "finalizers": ["f/3"]}
    assert patched({"metadata": patch})["metadata"]["finalizers"] == ["f/3", "f/1", "f/2"]


def test_directives_are_dropped_if_the_object_has_no_list() -> None:
    document = {"spec": {}}
    patch = {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "containers": [{"name": "b"}, {"name": "a"}, {"name": "c", "$patch": "delete"}],
    }
    result = strategic.merge(POD, document, {"spec": patch})
    assert result["spec"]["containers"] == [{"name": "b"}, {"name": "a"}]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"metadata": {"labels": {"$patch": "merge"}}}, 500, "unknown patch type: merge in map: map[$patch:merge]"),
        ({"metadata": {"labels": {"$patch": 5}}}, 500, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        (spec(containers=[{"name": "one", "$patch": "merge"}]), 500, "merging lists cannot yet be specified in the patch"),
        (spec(containers=[{"name": "one", "$patch": "odd"}]), 500, "unknown patch type: odd in map: map[$patch:odd name:one]"),
        (spec(containers=[{"$patch": "delete"}]), 500, "map: map[$patch:delete] does not contain declared merge key: name"),
        (spec(containers=[{"image": "x"}]), 500, "map: map[image:x] does not contain declared merge key: name"),
        (spec(keyless=[{"a": "1"}]), 0, ""),
        ({"metadata": {"finalizers": [1]}}, 500, "list element types are not identical: [[f/1 f/2] [1]]"),
        (spec(strategy={"$retainKeys": "type"}), 400, "invalid patch format of retainKeys"),
        (spec(strategy={"$retainKeys": ["x"], "type": "y"}), 400, "invalid patch format of retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveList": ["x"]}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrderX/y": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"metadata": {"$setElementOrder/name": []}}, 500, "expected a []interface {}, but received a string"),
        (spec(**{"$setElementOrder/containers": "x"}), 500, "expected a []interface {}, but received a string"),
        (spec(**{"$setElementOrder/containers": None}), 500, "expected a []interface {}, but received a %!s(<nil>)"),
        (spec(**{"$setElementOrder/absent": []}), 500, 'unable to find api field in struct PodSpec for the json field "absent"'),
        (spec(**{"$setElementOrder/replicas": []}), 500, "expected a []interface {}, but received a int64"),
        (
            spec(**{"$setElementOrder/containers": [{"name": "one"}], "containers": [{"name": "absent"}]}),
            500,
            "The order in patch list:\n[map[name:absent]]\n doesn't match $setElementOrder list:\n[map[name:one]]\n",
        ),
        (spec(**{"$setElementOrder/containers": ["x"]}), 500, "value for key 0 is not a map"),
        (spec(nested={"n": {"a": "2"}}), 500, "merging an object in json but data type is not struct, instead is: map"),
        ({"metadata": {"finalizers": [["x"]]}}, 500, "list element types are not identical: [[f/1 f/2] [[x]]]"),
    ],
)
def test_invalid_directives(patch: Any, code: int, message: str) -> None:
    if not code:
        assert patched(patch)["spec"]["keyless"] == [{"a": "1"}]
        return
    with pytest.raises(StatusError) as caught:
        patched(patch)
    assert (caught.value.code, caught.value.message) == (code, message)
    assert caught.value.reason == ("BadRequest" if code == 400 else "")


def test_lists_of_objects_need_a_key() -> None:
    with pytest.raises(StatusError) as caught:
        strategic.apply(POD, spec(keyless=[{"a": "1"}]), spec(keyless=[{"a": "2"}]))
    assert caught.value.message == "cannot merge lists without merge key for struct"


@pytest.mark.parametrize("patch", [[], 5, "x", True])
def test_invalid_patch_bodies_are_rejected(patch: Any) -> None:
    with pytest.raises(StatusError) as caught:
        strategic.decode(patch)
    assert caught.value.code == 400
    assert caught.value.message.endswith("into Go value of type map[string]interface {}")


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (spec(containers={"name": "x"}), "map[spec:map[containers:map[name:x]]]: cannot restore slice from map"),
        (spec(replicas="3"), "map[spec:map[replicas:3]]: unrecognized type: int32"),
        ({"spec": "x"}, "map[spec:x]: cannot restore struct from: string"),
        (
            spec(strategy={"$retainKeys": ["type"], "type": 1}),
            "map[spec:map[strategy:map[type:1]]]: cannot convert int64 to string",
        ),
    ],
)
def test_type_errors_show_the_remaining_patch(patch: Any, problem: str) -> None:
    with pytest.raises(StatusError) as caught:
        patched(patch)
    shown, _, words = problem.partition(": ")
    assert caught.value.code == 422
    assert caught.value.message == f' "" is invalid: patch: Invalid value: "{shown}": {words}'


def test_refused_error_shows_the_remaining_patch() -> None:
    error = strategic.refusal_error(POD, DOCUMENT, spec(cpu="x"), "strict decoding error: …")
    assert error.message == ' "" is invalid: patch: Invalid value: "map[spec:map[cpu:x]]": strict decoding error: …'


def test_result_is_decoded_as_the_go_type() -> None:
    unknown: list[str] = []
    result = strategic.apply(POD, {"spec": {}}, {"spec": {"nope": 1, "replicas": 2.0, "cpu": "1000m"}}, unknown)
    assert result["spec"]["replicas"] == 2
    assert result["spec"]["cpu"] == "1"
    assert "nope" not in result["spec"]
    assert unknown == ['unknown field "spec.nope"']


# ---------------------------------------------------------------- laws


_leaf = st.sampled_from(["a", "b", "c"])
_labels = st.dictionaries(_leaf, _leaf | st.none(), max_size=3)
_patches = st.fixed_dictionaries(
    {},
    optional={"text": _leaf | st.none(), "labels": _labels | st.none(), "inner": st.fixed_dictionaries({"a": _leaf | st.none()})},
)


@given(specs, _patches)
def test_patch_without_lists_equals_a_merge_patch(document: dict[str, Any], patch: dict[str, Any]) -> None:
    assert strategic.merge(SPEC, document, patch) == apply_merge_patch(document, patch)


@given(things, things)
def test_patching_twice_equals_patching_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    patch = {**patch, "spec": {key: value for key, value in patch["spec"].items() if key not in ("any", "parts")}}
    once = strategic.merge(THING, document, patch)
    assert strategic.merge(THING, once, patch) == once


@given(st.lists(st.sampled_from("abcd"), max_size=5), st.lists(st.sampled_from("abcdef"), max_size=4))
def test_item_order_shortcut_gives_the_full_result(original: list[str], patch: list[str]) -> None:
    """A patch of existing items in their order keeps this order, as the complete algorithm does."""
    lookup = Lookup(POD_SPEC.fields["containers"].type.items, "merge", "name")  # type: ignore[arg-type]
    items, changes = ([{"name": name} for name in names] for names in (original, patch))
    merged, is_ordered = strategic._merge_items(items, changes, lookup)
    if is_ordered:
        assert in_order(*partition(merged, changes, "name"), changes, items, "name") == merged
    assert is_ordered or len(set(original)) < len(original) or patch != [name for name in original if name in patch]


def test_long_lists_are_sorted_in_a_bounded_time() -> None:
    items = [f"a{number}" for number in range(30_000)]
    order = items[::-1]
    assert in_order(items, [], order, items, "") == order  # a minute, if each item were compared with all others


def test_many_items_are_deleted_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Any] = []
    find = strategic.identity_or_none
    monkeypatch.setattr(strategic, "identity_or_none", lambda item, key: looked_at.append(item) or find(item, key))
    items = [{"name": f"a{number}"} for number in range(100)]
    deletions = [{**item, "$patch": "delete"} for item in items[1:]]
    assert strategic._apply_item_directives(items, [*deletions, {"name": "b"}], "name") == ([{"name": "a0"}], [{"name": "b"}])
    assert len(looked_at) == len(items)


def test_items_without_a_position_and_the_smallest_go_to_the_front() -> None:
    assert in_order(["x", "b", "y", "a"], [], ["a", "b"], [], "") == ["a", "y", "b", "x"]
