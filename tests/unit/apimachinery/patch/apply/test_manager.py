"""The field manager from the outside: objects in, objects out. The algorithm is tested in `test_updater`."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.patch.apply import FieldManager, excluding, including, managed_fields, manager
from fakekube.apimachinery.patch.apply.atoms import TypingError
from fakekube.apimachinery.patch.apply.updater import Typed
from fakekube.apimachinery.schema import builtin
from fakekube.apimachinery.schema.model import Field, Shape, Type
from tests.unit.apimachinery.patch.shapes import SPEC, STRING, THING, struct, things

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def built_in(group: str, kind: str, **more: Any) -> FieldManager:
    type = builtin.kind_type(group, "v1", kind)
    assert type is not None
    return FieldManager(type, group, "v1", kind, **more)


CONFIG_MAPS = built_in("", "ConfigMap")
DEPLOYMENTS = built_in("apps", "Deployment", filters={"apps/v1": excluding([("status",)])})


def config_map(**data: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m"}, "data": data}


def applied_map(**data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", **config_map(**data)}


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    """As the store would have it."""
    return {**obj, "metadata": {**obj["metadata"], "uid": "u"}}


def create(fields: FieldManager, obj: dict[str, Any], manager: str = "creator", now: datetime = NOW) -> bool:
    """As the registry does it; returns whether the entries are those of a like object."""
    creation = fields.creation_of(obj, manager)
    if fields.repeat_creation(creation, obj["metadata"], now):
        return True
    fields.update(None, obj, manager, now, creation)
    return False


def created(**data: Any) -> dict[str, Any]:
    obj = config_map(**data)
    CONFIG_MAPS.update(None, obj, "creator", NOW)
    return stored(obj)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"labels": {"a": "1"}}, {"labels": {"b": "1"}}),
        ({"labels": {"a": "1"}}, {"annotations": {"a": "1"}}),
        ({"finalizers": ["x.io/a"]}, {"finalizers": ["x.io/b"]}),
        ({"ownerReferences": [{"uid": "1", "name": "o"}]}, {"ownerReferences": [{"uid": "2", "name": "o"}]}),
        ({"labels": {}}, {"labels": {"a": "1"}}),
        ({}, {"generateName": "m-"}),
        ({"labels": dict.fromkeys(map(str, range(60)), "")}, {"labels": dict.fromkeys(map(str, range(61)), "")}),
        ({"finalizers": ["x.io/" + "a" * 6000]}, {"finalizers": ["x.io/" + "b" * 6000]}),
    ],
)
def test_entries_of_new_objects_are_those_of_their_members(one: dict[str, Any], other: dict[str, Any]) -> None:
    for _ in range(2):  # the second time they are known
        for metadata in (one, other):
            obj = {"metadata": {"name": "m", **copy.deepcopy(metadata)}, "data": {"k": "v"}}
            again = copy.deepcopy(obj)
            create(CONFIG_MAPS, obj)
            create(built_in("", "ConfigMap"), again)
            assert json.dumps(obj) == json.dumps(again)
            assert list(obj["metadata"]["managedFields"][0]) == [
                "manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1",
            ]  # fmt: skip


def test_entries_of_equal_new_objects_have_their_own_times_and_managers() -> None:
    objects = [config_map(a="1") for _ in range(3)]
    assert not create(CONFIG_MAPS, objects[0], "one", NOW)
    assert create(CONFIG_MAPS, objects[1], "one", LATER)
    assert not create(CONFIG_MAPS, objects[2], "two", LATER)
    first, second, third = (obj["metadata"]["managedFields"][0] for obj in objects)
    assert first["time"] != second["time"] == third["time"]
    assert (first["manager"], third["manager"]) == ("one", "two")


def updated(live: dict[str, Any], manager: str = "updater", *, entries: Any = ..., **data: Any) -> dict[str, Any]:
    new = copy.deepcopy({**live, "data": data})
    if entries is not ...:
        new["metadata"]["managedFields"] = entries
    CONFIG_MAPS.update(live, new, manager, LATER)
    return new


def owners(obj: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def times(obj: dict[str, Any]) -> dict[str, str | None]:
    return {entry["manager"]: entry.get("time") for entry in obj["metadata"]["managedFields"]}


# ---------------------------------------------------------------- updates


def test_create_records_the_manager() -> None:
    obj = created(a="1")
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "creator",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ]
    assert list(obj["metadata"]) == ["name", "managedFields", "uid"]


def test_always_serialized_structs_are_not_owned_themselves() -> None:
    obj = {
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "resources": {}}]}},
            "strategy": {"type": "Recreate"},
        },
        "status": {"replicas": 3},
    }
    DEPLOYMENTS.update(None, obj, "creator", NOW)
    assert owners(obj) == {
        "creator": {
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:strategy": {"f:type": {}},
                "f:template": {
                    "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                    "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {}}}},
                },
            }
        }
    }


def test_update_takes_ownership_of_changed_fields() -> None:
    obj = updated(created(a="1", b="2"), a="1", b="3", c="4")
    assert owners(obj) == {"creator": {"f:data": {".": {}, "f:a": {}}}, "updater": {"f:data": {"f:b": {}, "f:c": {}}}}
    assert times(obj) == {"creator": "2026-01-02T03:04:05Z", "updater": "2026-01-02T04:04:05Z"}


def test_update_without_changes_keeps_managed_fields() -> None:
    live = created(a="1")
    obj = updated(live, "creator", a="1")
    assert obj["metadata"]["managedFields"] is live["metadata"]["managedFields"]


def test_repeated_updates_of_one_manager_share_an_entry() -> None:
    obj = updated(created(a="1"), "creator", a="1", b="2")
    assert owners(obj) == {"creator": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    assert times(obj) == {"creator": "2026-01-02T04:04:05Z"}


def test_server_managed_metadata_is_not_owned() -> None:
    obj = {
        "metadata": {
            "name": "m",
            "generateName": "g",
            "namespace": "n",
            "uid": "u",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"l": "1"},
            "finalizers": ["f/f"],
        }
    }
    CONFIG_MAPS.update(None, obj, "creator", NOW)
    assert owners(obj) == {
        "creator": {
            "f:metadata": {"f:finalizers": {".": {}, 'v:"f/f"': {}}, "f:generateName": {}, "f:labels": {".": {}, "f:l": {}}}
        }
    }


@pytest.mark.parametrize("reset", [[], [{}]])
def test_reset_managed_fields_stay_absent(reset: Any) -> None:
    obj = updated(created(a="1"), entries=reset, a="2")
    assert "managedFields" not in obj["metadata"]
    again = updated(obj, a="3")
    assert "managedFields" not in again["metadata"]


def test_managed_fields_can_be_edited_by_clients() -> None:
    live = created(a="1")
    by_hand = [{**live["metadata"]["managedFields"][0], "manager": "me", "fieldsV1": {"f:data": {"f:a": {}, "x:y": {}}}}]
    assert owners(updated(live, entries=by_hand, a="1")) == {"me": {"f:data": {"f:a": {}}}}


@pytest.mark.parametrize("wrong", [{"operation": "No"}, {"apiVersion": ""}, {"fieldsType": ""}, {"fieldsV1": {"odd": {}}}])
def test_invalid_managed_fields_are_ignored(wrong: dict[str, Any]) -> None:
    live = created(a="1")
    by_hand = [{**live["metadata"]["managedFields"][0], **wrong}]
    assert owners(updated(live, entries=by_hand, a="1")) == owners(live)


def test_absent_managed_fields_keep_the_stored_entries() -> None:
    live = created(a="1")
    new = config_map(a="1")
    CONFIG_MAPS.update(live, new, "updater", LATER)
    assert owners(new) == owners(live)


def test_managed_fields_sent_to_a_subresource_are_ignored() -> None:
    status = built_in("apps", "Deployment", subresource="status", filters={"apps/v1": excluding([("spec",)])})
    live = {"metadata": {"name": "d", "uid": "u", "managedFields": created()["metadata"]["managedFields"]}, "status": {}}
    live["metadata"]["managedFields"] = [
        {**created(a="1")["metadata"]["managedFields"][0], "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    ]
    new = {"metadata": {"name": "d", "managedFields": []}, "spec": {"replicas": 5}, "status": {"replicas": 1}}
    status.update(live, new, "controller", NOW)
    assert [(entry["manager"], entry.get("subresource")) for entry in new["metadata"]["managedFields"]] == [
        ("controller", "status"),
        ("creator", None),
    ]
    assert owners(new)["controller"] == {"f:status": {"f:replicas": {}}}


def test_managed_fields_of_objects_with_invalid_type_are_dropped() -> None:
    accounts = built_in("", "ServiceAccount")
    obj = {"metadata": {"name": "s"}, "secrets": [{"namespace": "n"}]}
    accounts.update(None, obj, "creator", NOW)
    assert "managedFields" not in obj["metadata"]


def test_update_entries_are_limited_to_ten() -> None:
    obj = created(a="0")
    for number in range(1, 13):
        obj = updated(obj, f"m{number:02}", **dict.fromkeys(obj["data"], "1"), **{f"k{number}": "1"})
    assert len(obj["metadata"]["managedFields"]) == 10
    assert "ancient-changes" in owners(obj)


def test_objects_without_metadata_have_no_managed_fields() -> None:
    review: dict[str, Any] = {"spec": {}}
    CONFIG_MAPS.update(None, review, "m", NOW)
    assert review == {"spec": {}}


# ---------------------------------------------------------------- apply


def apply(live: dict[str, Any] | None, applied: Any, manager: str = "me", *, force: bool = False) -> dict[str, Any]:
    return CONFIG_MAPS.apply(live, applied, manager, force, LATER)


def test_apply_creates_the_object() -> None:
    assert apply(None, applied_map(a="1")) == {
        "metadata": {
            "name": "m",
            "managedFields": [
                {
                    "manager": "me",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "time": "2026-01-02T04:04:05Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {"f:a": {}}},
                }
            ],
        },
        "data": {"a": "1"},
    }


def test_apply_without_changes_returns_the_live_object() -> None:
    live = stored(apply(None, applied_map(a="1")))
    before = copy.deepcopy(live)
    assert apply(live, applied_map(a="1")) is live
    assert live == before


def test_sharing_a_field_updates_managed_fields_without_a_time() -> None:
    live = stored(apply(None, applied_map(a="1")))
    obj = apply(live, applied_map(a="1"), "you")
    assert obj["data"] is live["data"]
    assert times(obj) == {"you": None, "me": "2026-01-02T04:04:05Z"}


def test_fields_dropped_by_their_only_applier_are_removed() -> None:
    live = stored(apply(None, applied_map(a="1", b="2")))
    obj = apply(live, applied_map(b="2"))
    assert obj["data"] == {"b": "2"}
    assert owners(obj) == {"me": {"f:data": {"f:b": {}}}}
    assert apply(stored(obj), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}) == {
        "metadata": {"name": "m", "uid": "u"}
    }


def test_conflict_status_lists_every_field() -> None:
    live = stored(apply(created(a="1", b="2"), applied_map(c="3"), "other"))
    with pytest.raises(StatusError) as caught:
        apply(live, applied_map(a="x", b="x", c="x"))
    assert caught.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": (
            'Apply failed with 3 conflicts: conflicts with "creator" using v1:\n- .data.a\n- .data.b\n'
            'conflicts with "other":\n- .data.c'
        ),
        "reason": "Conflict",
        "details": {
            "causes": [
                {"reason": "FieldManagerConflict", "message": 'conflict with "creator" using v1', "field": ".data.a"},
                {"reason": "FieldManagerConflict", "message": 'conflict with "creator" using v1', "field": ".data.b"},
                {"reason": "FieldManagerConflict", "message": 'conflict with "other"', "field": ".data.c"},
            ]
        },
        "code": 409,
    }
    forced = apply(live, applied_map(a="x", b="x", c="x"), force=True)
    assert owners(forced) == {"me": {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}, "creator": {"f:data": {}}}


def test_single_conflict_message() -> None:
    with pytest.raises(StatusError) as caught:
        apply(created(a="1"), applied_map(a="2"))
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "creator" using v1: .data.a'


def test_fields_of_untracked_objects_belong_to_before_first_apply() -> None:
    live = stored(config_map(a="1", b="2"))
    obj = apply(live, applied_map(a="1"))
    assert owners(obj) == {"me": {"f:data": {"f:a": {}}}, "before-first-apply": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        ({}, "invalid object type: /, Kind="),
        ({"apiVersion": "v1"}, "invalid object type: /v1, Kind="),
        ({"apiVersion": {}, "kind": "ConfigMap"}, "invalid object type: /, Kind=ConfigMap"),
        ({"apiVersion": "a/b/c", "kind": "ConfigMap"}, "invalid object type: /, Kind="),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "invalid object type: apps/v1, Kind=Deployment"),
        ({**applied_map(), "metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
        ({**applied_map(), "metadata": {"managedFields": [{}]}}, "metadata.managedFields must be nil"),
    ],
)
def test_invalid_apply_configurations_return_400(applied: Any, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        apply(None, applied)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        ({**applied_map(), "odd": 1}, "(/m; /v1, Kind=ConfigMap): .odd: field not declared in schema"),
        (applied_map(a=1), "(/m; /v1, Kind=ConfigMap): .data.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({**applied_map(), "metadata": "x"}, "(/; /v1, Kind=ConfigMap): .metadata: expected map, got &{x}"),
        (
            {**applied_map(), "metadata": {"name": "m", "namespace": "n", "labels": []}},
            "(n/m; /v1, Kind=ConfigMap): .metadata.labels: expected map, got &{[]}",
        ),
    ],
)
def test_configurations_with_type_errors_return_500(applied: Any, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        apply(None, applied)
    assert (caught.value.code, caught.value.reason) == (500, "")
    assert caught.value.message == f"failed to create typed patch object {message}"
    assert caught.value.details is None


def test_applied_values_must_be_convertible_to_the_go_type() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1.5}}
    with pytest.raises(StatusError) as caught:
        DEPLOYMENTS.apply(None, deployment, "me", False, NOW)
    assert caught.value.message == (
        "failed to convert new object (/d; apps/v1, Kind=Deployment) to proper version: "
        "unable to convert unstructured object to apps/v1, Kind=Deployment: cannot convert float64 to int32"
    )
    whole = DEPLOYMENTS.apply(None, {**deployment, "spec": {"replicas": 2.0}}, "me", False, NOW)
    assert (
        json.dumps(whole["spec"])
        == '{"replicas": 2, "selector": null, "template": {"metadata": {}, "spec": {"containers": null}}, "strategy": {}}'
    )


# ---------------------------------------------------------------- kubectl


def client_side_applied(**data: str) -> dict[str, Any]:
    obj = config_map(**data)
    obj["metadata"]["annotations"] = {ANNOTATION: json.dumps(applied_map(**data))}
    CONFIG_MAPS.update(None, obj, "kubectl-client-side-apply", NOW)
    return stored(obj)


def test_apply_by_kubectl_migrates_client_side_apply_ownership() -> None:
    live = client_side_applied(a="1", b="2")
    obj = apply(live, applied_map(a="x", b="2"), "kubectl")
    assert obj["data"] == {"a": "x", "b": "2"}
    last = json.loads(obj["metadata"]["annotations"][ANNOTATION])
    assert last == applied_map(a="x", b="2")
    with pytest.raises(StatusError):
        apply(live, applied_map(a="x", b="2"), "somebody")


def test_kubectl_apply_conflicts_with_later_changes_of_others() -> None:
    live = updated(client_side_applied(a="1", b="2"), "other", a="changed", b="2")
    with pytest.raises(StatusError) as caught:
        apply(live, applied_map(a="x", b="x"), "kubectl")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "other" using v1: .data.a'


# ---------------------------------------------------------------- custom resources


def custom_type(*, text: bool = True) -> Type:
    spec = {name: field for name, field in SPEC.fields.items() if text or name != "text"}
    return Type(
        Shape.STRUCT,
        resolve=lambda: {
            "spec": Field("spec", Type(Shape.STRUCT, resolve=lambda: spec)),
            "status": Field("status", struct("S", phase=STRING)),
        },
    )


def other_version(obj: dict[str, Any], _: str, wanted: str) -> tuple[dict[str, Any], Type] | None:
    if wanted == "g/v2":
        return {**obj, "apiVersion": wanted}, custom_type()
    if wanted == "g/v3":
        return {**obj, "apiVersion": wanted}, custom_type(text=False)
    return None


CUSTOM = FieldManager(
    custom_type(), "g", "v1", "Thing", custom=True, filters={"g/v1": excluding([("status",)])}, other_version=other_version
)


def thing(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def test_custom_resources_keep_kind_and_have_sorted_members() -> None:
    obj = CUSTOM.apply(None, thing(text="a"), "me", False, NOW)
    assert {key: obj[key] for key in ("apiVersion", "kind", "spec")} == {
        "apiVersion": "g/v1",
        "kind": "Thing",
        "spec": {"text": "a"},
    }
    assert list(obj["metadata"]) == ["managedFields", "name"]
    assert list(obj["metadata"]["managedFields"][0]) == ["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "time"]
    assert owners(obj) == {"me": {"f:spec": {"f:text": {}}}}


def test_create_of_a_custom_resource_owns_its_structs() -> None:
    obj = {**thing(text="a"), "status": {"phase": "x"}}
    CUSTOM.update(None, obj, "creator", NOW)
    assert owners(obj) == {"creator": {"f:spec": {".": {}, "f:text": {}}}}


def test_conflict_between_versions_of_a_custom_resource() -> None:
    live = stored(CUSTOM.apply(None, thing(text="a", number=1), "me", False, NOW))
    v2 = FieldManager(
        custom_type(),
        "g",
        "v2",
        "Thing",
        custom=True,
        other_version=lambda obj, frm, to: ({**obj, "apiVersion": to}, custom_type()) if to == "g/v1" else None,
    )
    live = {**live, "apiVersion": "g/v2"}
    with pytest.raises(StatusError) as caught:
        v2.apply(live, {**thing(text="b"), "apiVersion": "g/v2"}, "you", False, NOW)
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "me": .spec.text'


def test_apply_fails_if_a_managed_version_does_not_fit() -> None:
    live = stored(thing(text="a"))
    CUSTOM.update(None, live, "creator", NOW)
    live["metadata"]["managedFields"][0]["apiVersion"] = "g/v3"
    with pytest.raises(StatusError) as caught:
        CUSTOM.apply(live, thing(text="b"), "me", False, NOW)
    assert (caught.value.code, caught.value.message) == (500, ".spec.text: field not declared in schema")


def test_managers_with_invalid_group_version() -> None:
    live = stored(thing(text="a"))
    CUSTOM.update(None, live, "creator", NOW)
    live["metadata"]["managedFields"][0]["apiVersion"] = "a/b/c"
    with pytest.raises(StatusError, match=r"^unexpected GroupVersion string: a/b/c$"):
        CUSTOM.apply(live, thing(text="b"), "me", False, NOW)
    new = copy.deepcopy(live)
    CUSTOM.update(live, new, "updater", NOW)
    assert new["metadata"]["managedFields"] == live["metadata"]["managedFields"]
    dropping = FieldManager(CUSTOM._type, "g", "v1", "Thing", custom=True, keeps_entries=False)
    dropping.update(live, new, "updater", NOW)
    assert "managedFields" not in new["metadata"]


def test_live_custom_resource_must_match_its_schema() -> None:
    live = stored({**thing(text="a"), "odd": 1})
    live["metadata"]["managedFields"] = created(a="1")["metadata"]["managedFields"]
    with pytest.raises(StatusError) as caught:
        CUSTOM.apply(live, thing(text="b"), "me", False, NOW)
    assert caught.value.message == (
        "failed to create typed live object (/t; g/v1, Kind=Thing): .odd: field not declared in schema"
    )


def test_scale_of_a_custom_resource_cannot_be_applied() -> None:
    type = builtin.kind_type("autoscaling", "v1", "Scale")
    assert type is not None
    scales = FieldManager(type, "autoscaling", "v1", "Scale", subresource="scale", scale_of_custom=True)
    applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s"}, "spec": {"replicas": 2}}
    live = {"metadata": {"name": "s", "uid": "u"}, "spec": {"replicas": 1}}
    with pytest.raises(StatusError) as caught:
        scales.apply(live, applied, "me", True, NOW)
    assert caught.value.message == (
        "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) "
        "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
    )


def test_including_filters_limit_ownership() -> None:
    resizes = built_in("", "Pod", subresource="resize", filters={"v1": including([("spec", "containers", None, "resources")])})
    live = {
        "metadata": {"name": "p", "uid": "u", "managedFields": created(a="1")["metadata"]["managedFields"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    new = {
        "metadata": {"name": "p", "labels": {"l": "1"}},
        "spec": {"containers": [{"name": "c", "image": "j", "resources": {"limits": {"cpu": "1"}}}]},
    }
    resizes.update(live, new, "resizer", NOW)
    assert owners(new)["resizer"] == {
        "f:spec": {"f:containers": {'k:{"name":"c"}': {"f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}}}}}
    }


@settings(max_examples=40)
@given(st.lists(things, min_size=1, max_size=3))
def test_fields_of_a_spec_that_was_applied_before_are_those_of_a_new_one(applied: list[Any]) -> None:
    warm = FieldManager(THING, "g", "v1", "Thing")
    for value in applied * 2:
        for labels in ({"a": "b"}, {"a": "b", "c": "d"}, {"a": 1}):
            configuration = Typed({**value, "metadata": {"name": "t", "labels": labels}}, "g/v1", warm._atom)
            outcomes: list[Any] = []
            for read in (warm._read_fields, Typed.read_fields):
                try:
                    outcomes.append(json.dumps(read(configuration).tree))
                except TypingError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1]


@settings(max_examples=20)
@given(things)
def test_what_is_left_of_a_set_without_fields_that_nobody_owns_is_the_difference(applied: Any) -> None:
    fields = Typed(applied, "v1", FieldManager(THING, "g", "v1", "Thing")._atom).field_set()
    for each in (fields, managed_fields.intern(fields), managed_fields.intern(fields)):
        assert manager._leave_out_never_owned(each) == fields - manager._NEVER_OWNED
