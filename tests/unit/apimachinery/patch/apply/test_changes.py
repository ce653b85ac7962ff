"""The cache of changes does not affect managedFields."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.patch.apply import FieldManager
from fakekube.apimachinery.patch.apply.fieldpath import EMPTY, FieldSet, field
from fakekube.apimachinery.patch.apply.managed_fields import UPDATE, Manager, Owned
from fakekube.apimachinery.patch.apply.updater import Change, Changes, Comparison
from fakekube.apimachinery.schema import builtin

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
A, B = (FieldSet.from_paths((field(name),)) for name in "ab")
ME = Manager("me", UPDATE, "v1")


def config_maps() -> FieldManager:
    type = builtin.kind_type("", "v1", "ConfigMap")
    assert type is not None
    return FieldManager(type, "", "v1", "ConfigMap")


REMEMBERING = config_maps()


@given(
    st.lists(
        st.tuples(st.sampled_from(["me", "you"]), st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"))), max_size=6
    )
)
def test_cached_and_uncached_managers_write_equal_managed_fields(changes: list[tuple[str, dict[str, str]]]) -> None:
    live: dict[str, Any] | None = None
    for number, (manager, data) in enumerate(changes):
        new: dict[str, Any] = {"metadata": {"name": "m", **({"uid": "u"} if live else {})}, "data": data}
        other = copy.deepcopy(new)
        now = NOW + timedelta(seconds=number)
        REMEMBERING.update(live, new, manager, now)
        config_maps().update(live, other, manager, now)
        assert json.dumps(new) == json.dumps(other)
        live = copy.deepcopy(new)


def test_cached_change_is_keyed_by_comparison_manager_and_owners() -> None:
    changes = Changes("v1")
    before = {ME: Owned(A, "v1")}
    signature = changes.signature(Comparison(EMPTY, B), before, "you")
    change = Change({}, None)
    changes.keep(signature, before, change)
    assert changes.find(changes.signature(Comparison(EMPTY, B), before, "you")) is change
    for other in (
        changes.signature(Comparison(B, EMPTY), before, "you"), changes.signature(Comparison(EMPTY, B), before, "me"),
        changes.signature(Comparison(EMPTY, B), {ME: Owned(FieldSet(dict(A.tree)), "v1")}, "you"),
    ):  # fmt: skip
        assert changes.find(other) is None


def test_changes_with_owners_of_other_versions_are_not_cached() -> None:
    changes = Changes("v1")
    signature = changes.signature(Comparison(EMPTY, B), {ME: Owned(A, "v2")}, "you")
    assert signature is None
    changes.keep(signature, {}, Change({}, None))
    assert changes.find(None) is None
