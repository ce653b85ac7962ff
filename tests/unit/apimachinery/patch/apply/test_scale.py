from __future__ import annotations

from typing import Any

from fakekube.apimachinery.patch.apply import managed_fields
from fakekube.apimachinery.patch.apply.updater import ScaleMapping

MAPPING = ScaleMapping("apps/v1", {"apps/v1": ("spec", "replicas"), "apps/v1beta1": None})
REPLICAS = {"f:spec": {"f:replicas": {}}}
TIME = "2026-01-01T00:00:00Z"


def entry(manager: str, operation: str, api_version: str, fields: Any, **more: Any) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        **({"time": TIME} | more),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def untimed(manager: str, operation: str, api_version: str, fields: Any, subresource: str = "") -> dict[str, Any]:
    made = {name: value for name, value in entry(manager, operation, api_version, fields).items() if name != "time"}
    return {**made, **({"subresource": subresource} if subresource else {})}


OWNER = entry("owner", "Apply", "apps/v1", {"f:spec": {"f:paused": {}, "f:replicas": {}}})
OTHER = entry("other", "Update", "apps/v1", {"f:spec": {"f:paused": {}}})


def test_scale_shows_only_managers_of_replicas() -> None:
    assert MAPPING.to_scale([OWNER, OTHER]) == [entry("owner", "Apply", "autoscaling/v1", REPLICAS)]
    assert MAPPING.to_scale(None) == []


def test_managers_of_unknown_versions_are_hidden_in_the_scale() -> None:
    unknown = [entry("a", "Apply", "apps/v9", REPLICAS), entry("b", "Apply", "apps/v1beta1", REPLICAS)]
    assert MAPPING.to_scale(unknown) == []


def test_unchanged_scale_entries_keep_the_parent_entries() -> None:
    parent = [OWNER, OTHER]
    assert MAPPING.to_parent(parent, MAPPING.to_scale(parent)) == parent


def test_replicas_move_to_the_manager_of_the_scale() -> None:
    scaled = [{**entry("scaler", "Update", "autoscaling/v1", REPLICAS), "subresource": "scale"}]
    assert MAPPING.to_parent([OWNER, OTHER], scaled) == [
        entry("owner", "Apply", "apps/v1", {"f:spec": {"f:paused": {}}}),
        untimed("scaler", "Update", "apps/v1", REPLICAS, "scale"),
        OTHER,
    ]


def test_managers_without_remaining_fields_are_removed() -> None:
    parent = [entry("owner", "Apply", "apps/v1", REPLICAS)]
    assert MAPPING.to_parent(parent, []) == []


def test_entries_of_unknown_versions_are_dropped() -> None:
    parent = [entry("a", "Apply", "apps/v9", REPLICAS), entry("b", "Apply", "apps/v1beta1", REPLICAS)]
    assert MAPPING.to_parent(parent, []) == [parent[1]]


def test_other_fields_of_the_scale_are_ignored() -> None:
    scaled = [entry("labeler", "Update", "autoscaling/v1", {"f:metadata": {"f:labels": {}}})]
    assert MAPPING.to_parent([OTHER], scaled) == [OTHER]


def test_entries_of_custom_resources_are_sorted() -> None:
    mapping = ScaleMapping("g/v1", {"g/v1": ("spec", "size")}, custom=True)
    (written,) = mapping.to_parent([], [entry("a", "Apply", "autoscaling/v1", REPLICAS)])
    assert list(written) == sorted(written)
    assert written["fieldsV1"] == {"f:spec": {"f:size": {}}}


def test_entries_written_back_have_sorted_elements() -> None:
    ports = {'k:{"port":9}': {}, 'k:{"port":80}': {}}
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:ports": ports}},
    }
    mapping = ScaleMapping("apps/v1", {"apps/v1": ("spec", "replicas")})
    (back,) = mapping.to_parent([entry], [])
    assert list(back) == list(entry)
    assert list(back["fieldsV1"]["f:spec"]["f:ports"]) == ['k:{"port":80}', 'k:{"port":9}']
    assert back == entry
    assert not managed_fields.are_same([back], [entry])
