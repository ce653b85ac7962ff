from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.patch.apply import managed_fields
from fakekube.apimachinery.patch.apply.fieldpath import FieldSet
from fakekube.apimachinery.patch.apply.managed_fields import APPLY, UPDATE, EntryError, Managed, Manager, Owned
from fakekube.base import caches


def entry(manager: str = "m", operation: str = UPDATE, **more: Any) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}},
        **more,
    }


def without(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}


def test_decode_and_encode_round_trip() -> None:
    written = [
        entry("a", APPLY, fieldsV1={"f:data": {".": {}, "f:k": {}}}),
        without(entry("a"), "time"),
        entry("b", subresource="status"),
        entry("a", time="2026-01-02T00:00:00Z"),
    ]
    written[1]["apiVersion"] = "v2"
    assert managed_fields.encode(managed_fields.decode(written)) == written


def test_members_of_entries_are_in_go_order() -> None:
    (written,) = managed_fields.encode(managed_fields.decode([entry(subresource="status")]))
    assert list(written) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"]


def test_entries_of_custom_resources_are_sorted_recursively() -> None:
    fields = {'k:{"n":10}': {}, "v:1": {}, 'k:{"n":9}': {"f:x": {}}, "f:a": {}}
    (written,) = managed_fields.encode(managed_fields.decode([entry(fieldsV1=fields)]), sorted_keys=True)
    assert list(written) == ["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "time"]
    assert list(written["fieldsV1"]) == ["f:a", 'k:{"n":10}', 'k:{"n":9}', "v:1"]
    (plain,) = managed_fields.encode(managed_fields.decode([written]))
    assert list(plain["fieldsV1"]) == ["f:a", 'k:{"n":9}', 'k:{"n":10}', "v:1"]


def test_entries_are_ordered_by_operation_time_name_version_and_subresource() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    in_order = [
        entry("z", APPLY, time=early),
        entry("a", APPLY, time=late),
        without(entry("y"), "time"),
        entry("z", time=early),
        entry("a", time=late),
        entry("b", time=late),
        entry("b", time=late, subresource="status"),
        entry("b", time=late, apiVersion="v2"),
    ]
    assert managed_fields.encode(managed_fields.decode(in_order[::-1])) == in_order


def test_appliers_are_identified_without_their_version_updaters_with_it() -> None:
    applied = managed_fields.decode([entry("m", APPLY), entry("m", APPLY, apiVersion="v2")])
    assert [owned.api_version for owned in applied.owners.values()] == ["v2"]
    updated = managed_fields.decode([entry("m"), entry("m", apiVersion="v2")])
    assert len(updated.owners) == 2


def test_equal_field_sets_share_their_encoding() -> None:
    first = managed_fields.encode(Managed({Manager("a", UPDATE, "v1"): Owned(FieldSet.from_paths(("f:x", "f:y")), "v1")}))
    second = managed_fields.encode(Managed({Manager("b", UPDATE, "v1"): Owned(FieldSet.from_paths(("f:x", "f:y")), "v1")}))
    assert first[0]["fieldsV1"] is second[0]["fieldsV1"]


def test_sort_order_depends_on_the_kind_of_encoding() -> None:
    """The same fields on a custom resource, whose members are sorted as texts, and on a built-in object."""
    fields = {"f:list": {'k:{"n":9}': {}, 'k:{"n":10}': {}}}
    for sorted_keys, order in ((True, ["10", "9"]), (False, ["9", "10"]), (True, ["10", "9"])):
        (written,) = managed_fields.encode(managed_fields.decode([entry(fieldsV1=fields)]), sorted_keys=sorted_keys)
        for _ in range(2):
            assert [element[7:-1] for element in written["fieldsV1"]["f:list"]] == order
            (written,) = managed_fields.encode(managed_fields.decode([written]), sorted_keys=sorted_keys)


@pytest.mark.parametrize(
    "wrong",
    [
        entry(operation="Delete"),
        without(entry(), "operation"),
        entry(apiVersion=""),
        without(entry(), "fieldsType"),
        entry(fieldsType="FieldsV2"),
        entry(fieldsV1={"name": {}}),
        entry(fieldsV1=5),
    ],
)
def test_invalid_entries_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(EntryError):
        managed_fields.decode([entry("good"), wrong])


def test_none_and_empty_lists_decode_to_no_entries() -> None:
    assert managed_fields.decode(None) == managed_fields.decode([]) == Managed()
    assert managed_fields.encode(Managed()) == []


@pytest.mark.parametrize(("requested", "reset"), [([], True), ([{}], True), (None, False), ([{}, {}], False), ([entry()], False)])
def test_is_reset_detects_reset_requests(requested: Any, reset: bool) -> None:
    assert managed_fields.is_reset(requested) is reset


@pytest.mark.parametrize(
    ("manager", "identifier", "printed"),
    [
        (Manager.for_write("m", APPLY, "v1", ""), '{"manager":"m","operation":"Apply"}', '"m"'),
        (
            Manager.for_write("m", UPDATE, "apps/v1", "status"),
            '{"manager":"m","operation":"Update","apiVersion":"apps/v1","subresource":"status"}',
            '"m" with subresource "status" using apps/v1',
        ),
        (
            Manager.for_write("", UPDATE, "v1", ""),
            '{"manager":"unknown","operation":"Update","apiVersion":"v1"}',
            '"unknown" using v1',
        ),
    ],
)
def test_manager_identifier_and_printed_name(manager: Manager, identifier: str, printed: str) -> None:
    assert (manager.identifier, manager.printed) == (identifier, printed)


# ---------------------------------------------------------------- limit of update entries


def updaters(*days: int, api_version: str = "v1") -> Managed:
    managed = Managed()
    for number, day in enumerate(days):
        manager = Manager(f"m{number:02}", UPDATE, api_version)
        managed.owners[manager] = Owned(FieldSet.from_paths((f"f:{number}",)), api_version)
        managed.times[manager] = f"2026-01-{day:02}T00:00:00Z"
    return managed


def names(managed: Managed) -> list[str]:
    return [item["manager"] for item in managed_fields.encode(managed)]


def test_ten_update_entries_are_not_capped() -> None:
    managed = updaters(*range(1, 11))
    managed.owners[Manager("applier", APPLY)] = Owned(FieldSet.from_paths(("f:x",)), "v1")
    assert managed.cap_update_managers() is managed


def test_oldest_update_entries_are_merged_into_ancient_changes() -> None:
    capped = updaters(*range(1, 13)).cap_update_managers()
    assert names(capped) == ["ancient-changes", *(f"m{number:02}" for number in range(3, 12))]
    ancient = managed_fields.encode(capped)[0]
    assert ancient["fieldsV1"] == {"f:0": {}, "f:1": {}, "f:2": {}}
    assert ancient["time"] == "2026-01-03T00:00:00Z"


def test_further_entries_are_merged_into_ancient_changes() -> None:
    managed = updaters(*range(1, 13)).cap_update_managers()
    newest = Manager("newest", UPDATE, "v1")
    managed.owners[newest] = Owned(FieldSet.from_paths(("f:new",)), "v1")
    managed.times[newest] = "2026-02-01T00:00:00Z"
    capped = managed.cap_update_managers()
    assert names(capped)[:2] == ["ancient-changes", "m04"]
    assert managed_fields.encode(capped)[0]["fieldsV1"] == {"f:0": {}, "f:1": {}, "f:2": {}, "f:3": {}}


def test_ancient_changes_are_kept_per_version() -> None:
    managed = updaters(*range(1, 7))
    other = updaters(*range(1, 7), api_version="v2")
    managed.owners |= other.owners
    managed.times |= other.times
    capped = managed.cap_update_managers()
    assert sorted((item["manager"], item["apiVersion"]) for item in managed_fields.encode(capped))[:2] == [
        ("ancient-changes", "v1"),
        ("ancient-changes", "v2"),
    ]


def test_the_bytes_of_kept_trees_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MAXIMUM_SIZE", 12_000)
    caches.forget_all()
    for number in range(20):
        tree: dict[str, Any] = {f"f:{name}{number}": {} for name in ("b" * 500, "a" * 500)}
        owned = Owned(managed_fields.intern(FieldSet(tree)), "v1")
        (written,) = managed_fields.encode(Managed({Manager("m", UPDATE): owned}), sorted_fields=True)
        assert list(written["fieldsV1"]) == sorted(tree)
        assert 1 <= len(managed_fields._sorted) <= 2
