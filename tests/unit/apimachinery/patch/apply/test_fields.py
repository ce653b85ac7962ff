"""The algebra of field sets, held against sets of paths."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.patch.apply.fieldpath import FieldSet, FieldSetError, Path

_elements = st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'k:{"n":10}', 'v:"x"'])
_paths = st.lists(_elements, min_size=1, max_size=3).map(tuple)
_models = st.frozensets(_paths, max_size=8)
_sets = _models.map(lambda model: FieldSet.from_paths(*model))


def model(fields: FieldSet) -> frozenset[Path]:
    return frozenset(fields)


def is_well_formed(fields: FieldSet) -> bool:
    """No node without members; levels in canonical order; no mark where there are no children."""
    return FieldSet.from_json(fields.tree).tree == fields.tree and json.dumps(FieldSet.from_json(fields.tree).tree) == json.dumps(
        fields.tree
    )


@given(_models)
def test_field_set_contains_its_paths(paths: frozenset[Path]) -> None:
    fields = FieldSet.from_paths(*paths)
    assert model(fields) == paths
    assert len(fields) == len(paths)
    assert bool(fields) is bool(paths)
    assert all(path in fields for path in paths)
    assert () not in fields
    assert is_well_formed(fields)


@given(_models, _models)
def test_operations_equal_those_of_sets_of_paths(left: frozenset[Path], right: frozenset[Path]) -> None:
    a, b = FieldSet.from_paths(*left), FieldSet.from_paths(*right)
    for result, expected in (
        (a | b, left | right),
        (a & b, left & right),
        (a - b, left - right),
        (a.recursive_difference(b), {path for path in left if not any(path[: len(other)] == other for other in right)}),
    ):
        assert model(result) == expected
        assert is_well_formed(result)
    assert (a == b) is (left == right)


@given(_sets, _sets, _sets)
def test_algebraic_laws(a: FieldSet, b: FieldSet, c: FieldSet) -> None:
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert a & (b | c) == (a & b) | (a & c)
    assert a - (b | c) == (a - b) - c
    assert (a - b) | (a & b) == a
    assert a | a == a
    assert a - a == FieldSet()
    assert a.recursive_difference(b) - a == FieldSet()


@given(_models)
def test_leaves_are_paths_without_descendants(paths: frozenset[Path]) -> None:
    leaves = {path for path in paths if not any(other[: len(path)] == path and other != path for other in paths)}
    assert model(FieldSet.from_paths(*paths).leaves()) == leaves


@given(_models, st.lists(st.lists(st.none() | _elements, min_size=1, max_size=2).map(tuple), max_size=2))
def test_matching_filters_by_patterns(paths: frozenset[Path], patterns: list[tuple[str | None, ...]]) -> None:
    def fits(path: Path, pattern: tuple[str | None, ...]) -> bool:
        return all(wanted in (None, element) for wanted, element in zip(pattern, path, strict=False))

    result = model(FieldSet.from_paths(*paths).matching(patterns))
    assert result == {path for path in paths if any(fits(path, pattern) for pattern in patterns)}


@given(_sets, _sets)
def test_operations_share_unchanged_subtrees(a: FieldSet, b: FieldSet) -> None:
    before = json.dumps((a.tree, b.tree))
    assert (a - (b - a)).tree is a.tree
    assert (a | (a & b)).tree == a.tree
    assert json.dumps((a.tree, b.tree)) == before


def test_iteration_is_by_level() -> None:
    fields = FieldSet.from_paths(("f:a", "f:x"), ("f:b",), ("f:a",), ("f:a", 'k:{"n":10}'), ("f:a", 'k:{"n":9}'))
    assert list(fields) == [("f:a",), ("f:b",), ("f:a", "f:x"), ("f:a", 'k:{"n":9}'), ("f:a", 'k:{"n":10}')]


def test_tree_representation() -> None:
    fields = FieldSet.from_paths(("f:a", "f:x"), ("f:b",), ("f:a",))
    assert fields.tree == {"f:a": {".": {}, "f:x": {}}, "f:b": {}}
    assert list(fields.tree["f:a"]) == [".", "f:x"]


@pytest.mark.parametrize(
    ("value", "tree"),
    [
        (None, {}),
        ({".": {}}, {}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:a": None}, {"f:a": {}}),
        ({"f:b": {}, "f:a": {"f:x": {}, ".": {}}}, {"f:a": {".": {}, "f:x": {}}, "f:b": {}}),
        ({"f:a": {"x:unknown": {}}}, {"f:a": {}}),
        ({"v:1": {}, "v:1.0": {"f:a": {}}}, {"v:1": {".": {}, "f:a": {}}}),
    ],
)
def test_from_json_accepts_valid_sets(value: Any, tree: Any) -> None:
    assert FieldSet.from_json(value).tree == tree


@pytest.mark.parametrize("value", [5, "x", [], {"f:a": 1}, {"a": {}}, {"k:x": {}}])
def test_from_json_rejects_invalid_sets(value: Any) -> None:
    with pytest.raises(FieldSetError):
        FieldSet.from_json(value)


def test_equality_hash_and_repr() -> None:
    assert FieldSet.from_paths(("f:a",)) == FieldSet({"f:a": {}})
    assert len({FieldSet.from_paths(("f:a",)), FieldSet({"f:a": {}}), FieldSet()}) == 2
    assert repr(FieldSet()) == "FieldSet({})"
