"""The cache of changes does not affect managedFields."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.patch.apply import FieldManager, managed_fields
from fakekube.apimachinery.patch.apply.changes import Change, Changes
from fakekube.apimachinery.patch.apply.fieldpath import FieldSet, field
from fakekube.apimachinery.patch.apply.managed_fields import UPDATE, Managed, Manager, Owned
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


def entries(fields: FieldSet, **other: Any) -> list[dict[str, Any]]:
    owned = Owned(managed_fields.intern(fields), "v1")
    (entry,) = managed_fields.encode(Managed({ME: owned}, {ME: "2026-01-01T00:00:00Z"}))
    return [{**entry, **other}]


def test_cached_change_is_keyed_by_difference_manager_and_entries() -> None:
    changes = Changes("v1")
    before = entries(A)
    change = Change(before, [], False)
    changes.keep((None, None, B.tree), change, "you")
    assert changes.find((None, None, B.tree), entries(A, time="2026-01-02T00:00:00Z"), "you") is change
    for difference, owned, manager in (
        ((B.tree, None, None), before, "you"),
        ((None, B.tree, None), before, "you"),
        ((None, None, B.tree), before, "me"),
        ((None, None, B.tree), entries(B), "you"),
        ((None, None, B.tree), entries(A, fieldsV1=dict(A.tree)), "you"),
        ((None, None, B.tree), [*before, *before], "you"),
    ):
        assert changes.find(difference, owned, manager) is None
    for name in ("manager", "operation", "apiVersion", "subresource", "fieldsType"):
        assert changes.find((None, None, B.tree), entries(A, **{name: "other"}), "you") is None


def test_changes_of_entries_of_other_versions_are_not_cached() -> None:
    changes, before = Changes("v1"), entries(A, apiVersion="v2")
    changes.keep((None, None, B.tree), Change(before, [], False), "you")
    assert changes.find((None, None, B.tree), before, "you") is None


def test_entry_without_a_time_stays_without_one_when_it_loses_a_field() -> None:
    (entry,) = entries(FieldSet.from_paths((field("data"), field("a")), (field("data"), field("b"))))
    del entry["time"]
    live = {"metadata": {"name": "m", "uid": "u", "managedFields": [entry]}, "data": {"a": "1", "b": "1"}}
    for _ in range(2):
        new: dict[str, Any] = {"metadata": {"name": "m", "uid": "u"}, "data": {"a": "1", "b": "2"}}
        REMEMBERING.update(live, new, "you", NOW)
        first, second = new["metadata"]["managedFields"]
        assert first == {**entry, "fieldsV1": {"f:data": {"f:a": {}}}}
        assert second["fieldsV1"] == {"f:data": {"f:b": {}}}


def test_entries_that_a_cached_change_leaves_are_shared_and_in_the_order_of_their_times() -> None:
    live: dict[str, Any] = {"metadata": {"name": "m", "uid": "u"}, "data": {"a": "1"}}
    REMEMBERING.update(None, live, "first", NOW)
    new: dict[str, Any] = {"metadata": {"name": "m", "uid": "u"}, "data": {"a": "1", "b": "1"}}
    REMEMBERING.update(live, new, "second", NOW + timedelta(seconds=1))
    for number, (changed, other, key) in enumerate((("first", "second", "a"), ("second", "first", "b")) * 2):
        live, new = new, {"metadata": {"name": "m", "uid": "u"}, "data": {**new["data"], key: f"new-{number}"}}
        REMEMBERING.update(live, new, changed, NOW + timedelta(seconds=2 + number))
        before, after = live["metadata"]["managedFields"], new["metadata"]["managedFields"]
        assert [(entry["manager"], entry["time"]) for entry in after] == [
            (other, before[1]["time"]),
            (changed, f"2026-01-02T03:04:{7 + number:02}Z"),
        ]
        assert number < 2 or after[0] is before[1]


def test_an_update_that_changes_nothing_leaves_the_list_of_entries() -> None:
    live: dict[str, Any] = {"metadata": {"name": "m", "uid": "u"}, "data": {"a": "1"}}
    REMEMBERING.update(None, live, "first", NOW)
    for _ in range(2):
        new: dict[str, Any] = {"metadata": {"name": "m", "uid": "u"}, "data": {"a": "1"}}
        REMEMBERING.update(live, new, "second", NOW)
        assert new["metadata"]["managedFields"] is live["metadata"]["managedFields"]
