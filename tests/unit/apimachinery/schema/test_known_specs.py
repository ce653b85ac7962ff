"""What is remembered of specs is what the decoder, the defaults and the normalisation make of them."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema import defaults, known_specs
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.decode import decode
from fakekube.apimachinery.schema.printing import normalise
from fakekube.apimachinery.schema.walk import SlowPathRequired
from tests.unit.apimachinery.schema.recorded import CASES, Case

WITH_SPEC = [
    case for case in CASES if case.error is None and not case.strict and isinstance(json.loads(case.body)[0].get("spec"), dict)
]
POD = builtins("1.36").type_of("k8s.io/api/core/v1.Pod")


def default_of(case: Case) -> defaults.Defaulter:
    return defaults.defaulter(builtins("1.36"), case.group, case.version, case.kind)


@pytest.mark.parametrize("case", WITH_SPEC, ids=str)
def test_a_spec_is_the_same_when_it_is_seen_again(case: Case) -> None:
    value = json.loads(case.body)[0]
    whole = decode(case.type, value)
    default_of(case)(whole)
    for _ in range(3):
        if not value["spec"]:
            continue
        try:
            found = known_specs.decode_spec(case.type, default_of(case), value["spec"])
        except SlowPathRequired:
            return
        assert json.dumps(found) == json.dumps(whole["spec"])


@pytest.mark.parametrize("case", WITH_SPEC, ids=str)
@pytest.mark.parametrize("stored", [True, False])
def test_normalised_specs_are_those_of_the_whole_object(case: Case, stored: bool) -> None:
    tree = decode(case.type, json.loads(case.body)[0])
    default_of(case)(tree)
    expected = normalise(case.type, tree, stored=stored)
    for _ in range(3):
        parts = known_specs.normalised_spec(case.type, tree, stored=stored)
        assert json.dumps(normalise(case.type, tree, stored=stored, parts=parts)) == json.dumps(expected)


@pytest.mark.parametrize("case", WITH_SPEC, ids=str)
def test_defaults_are_set_once_and_need_not_be_looked_for_again(case: Case) -> None:
    expected = decode(case.type, json.loads(case.body)[0])
    default_of(case)(expected)
    tree = decode(case.type, json.loads(case.body)[0])
    for _ in range(3):
        known_specs.set_defaults(default_of(case), tree)
        assert tree == expected


@pytest.mark.parametrize("case", WITH_SPEC, ids=str)
def test_what_a_patch_leaves_is_copied_as_it_would_be_decoded(case: Case) -> None:
    body, same = ({"metadata": {"name": "a"}, **json.loads(case.body)[0]} for _ in range(2))
    live = decode(case.type, same)  # of which the values of any form are those of the body
    default_of(case)(live)
    live["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"b": "1"}, "managedFields": [{"manager": "m"}]}
    live = normalise(case.type, live)
    if decode(case.type, live) != live:  # nulls that a decoder drops, which a copy of a spec has always kept
        return
    text = json.dumps(live)
    changed = {**live["metadata"], "labels": {"b": "2", "a": ""}, "annotations": {}, "finalizers": ["x"]}
    for document in (live, dict(live), {**live, "metadata": changed}, *({**live, name: item} for name, item in body.items())):
        try:
            found = known_specs.decode_changes(case.type, document, live, default_of(case))
        except SlowPathRequired:
            continue
        expected = decode(case.type, document)
        default_of(case)(expected)
        in_order = [json.dumps(normalise(case.type, tree, stored=False)) for tree in (found, expected)]
        assert in_order[0] == in_order[1]
        _empty(found, but=live["metadata"]["managedFields"])
        assert json.dumps(live) == text


def _empty(tree: Any, *, but: Any) -> None:
    """Removes all that is in a tree, except what may be shared."""
    for item in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(item, dict | list) and item is not but:
            _empty(item, but=but)
    tree.clear()


def test_decoded_specs_belong_to_the_caller() -> None:
    default = defaults.defaulter(builtins("1.36"), "", "v1", "Pod")
    spec = {"containers": [{"name": "own", "image": "a"}]}
    for _ in range(3):
        found = known_specs.decode_spec(POD, default, spec)
        assert "volumeMounts" not in found["containers"][0]
        found["containers"][0]["volumeMounts"] = []
    assert spec == {"containers": [{"name": "own", "image": "a"}]}


def test_normalised_specs_are_shared_after_the_second_time() -> None:
    pods: list[dict[str, Any]] = [{"spec": {"containers": [{"name": "shared", "resources": {}}]}} for _ in range(4)]
    parts = [known_specs.normalised_spec(POD, pod, stored=True) for pod in pods]
    assert parts[0] == {}
    assert parts[1]["spec"] is parts[2]["spec"] is parts[3]["spec"]
    assert all(parts[1]["spec"]["containers"] is not pod["spec"]["containers"] for pod in pods)


def test_what_the_caller_changes_later_is_not_remembered() -> None:
    first: dict[str, Any] = {"spec": {"containers": [{"name": "later", "resources": {}}]}}
    second: dict[str, Any] = {"spec": {"containers": [{"name": "later", "resources": {}}]}}
    known_specs.normalised_spec(POD, first, stored=True)
    known_specs.normalised_spec(POD, first, stored=True)
    first["spec"]["containers"][0]["name"] = "changed"
    assert known_specs.normalised_spec(POD, second, stored=True)["spec"]["containers"][0]["name"] == "later"


def test_long_specs_and_those_without_a_text_are_not_remembered() -> None:
    for value in ("x" * 10_000, 2**70, "\ud800"):
        pod = {"spec": {"containers": [{"name": "c", "image": value}]}}
        for _ in range(3):
            assert known_specs.normalised_spec(POD, pod, stored=True) == {}
