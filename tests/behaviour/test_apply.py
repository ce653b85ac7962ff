"""Server-side apply: field ownership, conflicts, and managedFields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"


def owned(reply) -> dict[str, Any]:
    """The fields of each entry, by `manager`, `manager/Update` or `manager/Update/subresource`."""
    found = {}
    for entry in reply.at("metadata", "managedFields", default=[]):
        parts = [entry["manager"], *(["Update"] if entry["operation"] == "Update" else []), entry.get("subresource", "")]
        found["/".join(filter(None, parts))] = entry["fieldsV1"]
    return found


class Applier:
    """Applies configurations of one object."""

    def __init__(self, api, kind: str, plural: str, group: str = "v1", name: str = "x") -> None:
        self.api, self.name, self.group, self.kind = api, name, group, kind
        self.path = api.path(plural, name, group=group)

    def configuration(self, **parts: Any) -> dict[str, Any]:
        metadata = {"name": self.name, **parts.pop("metadata", {})}
        return {"apiVersion": self.group, "kind": self.kind, "metadata": metadata, **parts}

    def apply(self, manager: str, *, force: bool = False, query: dict[str, Any] | None = None, sub: str = "", **parts: Any):
        chosen = {"fieldManager": manager, **({"force": "true"} if force else {}), **(query or {})}
        return self.api.patch(self.path + sub, self.configuration(**parts), APPLY, chosen)

    def get(self):
        return self.api.get(self.path)


@pytest.fixture
def config(api) -> Applier:
    return Applier(api, "ConfigMap", "configmaps")


@pytest.fixture
def deployment(api) -> Applier:
    return Applier(api, "Deployment", "deployments", "apps/v1")


@pytest.fixture
def service(api) -> Applier:
    return Applier(api, "Service", "services")


def pods(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A deployment's spec, as it may be applied."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": list(containers)}}
    return {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec}


# ---------------------------------------------------------------- creating and changing


def test_apply_creates_a_missing_object(config: Applier) -> None:
    reply = config.apply("me", data={"a": "1"}, metadata={"labels": {"l": "1"}})
    assert reply.status == 201
    (entry,) = reply.at("metadata", "managedFields")
    assert list(entry) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("me", "Apply", "v1", "FieldsV1")
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}
    assert entry["time"] == reply.at("metadata", "creationTimestamp")


def test_repeated_identical_apply_changes_nothing(deployment: Applier) -> None:
    spec = pods({"name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "0.5"}}})
    first = deployment.apply("me", spec=spec)
    assert first.status == 201
    assert deployment.apply("me", spec=spec).json == first.json


def test_fields_dropped_from_the_configuration_are_removed(config: Applier) -> None:
    config.apply("me", data={"a": "1", "b": "2"})
    reply = config.apply("me", data={"b": "2"})
    assert (reply.status, reply.at("data"), owned(reply)) == (200, {"b": "2"}, {"me": {"f:data": {"f:b": {}}}})
    emptied = config.apply("me")
    assert (emptied.at("data"), owned(emptied)) == (None, {})


def test_fields_owned_by_other_managers_are_not_removed(config: Applier) -> None:
    config.apply("one", data={"a": "1", "b": "2"})
    config.apply("two", data={"b": "2", "c": "3"})
    reply = config.apply("one", data={})
    assert reply.at("data") == {"b": "2", "c": "3"}
    assert owned(reply) == {"one": {"f:data": {}}, "two": {"f:data": {"f:b": {}, "f:c": {}}}}


def test_dry_run_apply_does_not_store_the_object(config: Applier) -> None:
    assert config.apply("me", data={"a": "1"}, query={"dryRun": "All"}).status == 201
    assert config.get().status == 404


# ---------------------------------------------------------------- conflicts


def test_changing_a_field_of_another_manager_is_a_conflict(config: Applier) -> None:
    config.apply("one", data={"a": "1", "b": "1"})
    reply = config.apply("two", data={"a": "2"})
    assert (reply.status, reply.at("reason")) == (409, "Conflict")
    assert reply.at("message") == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert reply.at("details", "causes") == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]
    both = config.apply("two", data={"a": "2", "b": "2"})
    assert both.at("message") == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'


def test_conflicts_with_updates_name_version_and_subresource(api, deployment: Applier) -> None:
    deployment.apply("one", spec=pods({"name": "c", "image": "i"}, replicas=1))
    api.patch(deployment.path, {"spec": {"paused": True}}, MERGE_PATCH, {"fieldManager": "patcher"})
    api.patch(f"{deployment.path}/scale", {"spec": {"replicas": 2}}, MERGE_PATCH, {"fieldManager": "scaler"})
    paused = deployment.apply("two", spec=pods({"name": "c", "image": "i"}, paused=False))
    assert paused.at("message") == 'Apply failed with 1 conflict: conflict with "patcher" using apps/v1: .spec.paused'
    scaled = deployment.apply("two", spec=pods({"name": "c", "image": "i"}, replicas=3))
    assert scaled.at("message") == (
        'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas'
    )


def test_forced_apply_takes_over_ownership(config: Applier) -> None:
    config.apply("one", data={"a": "1", "b": "1"})
    reply = config.apply("two", force=True, data={"a": "2"})
    assert (reply.status, reply.at("data")) == (200, {"a": "2", "b": "1"})
    assert owned(reply) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_applying_the_same_value_shares_ownership(config: Applier) -> None:
    config.apply("one", data={"a": "1"})
    reply = config.apply("two", data={"a": "1"})
    assert owned(reply) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:a": {}}}}
    assert config.apply("one", data={"a": "2"}).status == 409


def test_update_takes_ownership_of_changed_fields(api, config: Applier) -> None:
    config.apply("one", data={"a": "1", "b": "1"})
    reply = api.patch(config.path, {"data": {"a": "2", "c": "3"}}, MERGE_PATCH, {"fieldManager": "patcher"})
    assert owned(reply) == {"one": {"f:data": {"f:b": {}}}, "patcher/Update": {"f:data": {"f:a": {}, "f:c": {}}}}
    removed = api.patch(config.path, {"data": {"b": None}}, MERGE_PATCH, {"fieldManager": "patcher"})
    assert owned(removed) == {"patcher/Update": {"f:data": {"f:a": {}, "f:c": {}}}}


# ---------------------------------------------------------------- lists and maps


def test_items_of_associative_lists_are_owned_separately(deployment: Applier) -> None:
    deployment.apply("one", spec=pods({"name": "a", "image": "i"}, {"name": "b", "image": "i"}))
    deployment.apply("two", spec={"template": {"spec": {"containers": [{"name": "b", "env": [{"name": "E", "value": "1"}]}]}}})
    reply = deployment.apply("one", spec=pods({"name": "a", "image": "i"}))
    assert reply.status == 422  # what "two" holds of b is not all that a container needs
    assert reply.at("details", "causes", 0, "field") == "spec.template.spec.containers[1].image"
    kept = deployment.apply("one", spec=pods({"name": "a", "image": "i"}, {"name": "b", "image": "j"}))
    assert [item["name"] for item in kept.at("spec", "template", "spec", "containers")] == ["a", "b"]
    assert owned(kept)["two"] == {
        "f:spec": {
            "f:template": {
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"b"}': {
                            ".": {},
                            "f:env": {'k:{"name":"E"}': {".": {}, "f:name": {}, "f:value": {}}},
                            "f:name": {},
                        }
                    }
                }
            }
        }
    }
    deployment.apply("two")
    last = deployment.apply("one", spec=pods({"name": "a", "image": "i"}))
    assert [item["name"] for item in last.at("spec", "template", "spec", "containers")] == ["a"]


def test_omitted_list_map_keys_are_defaulted(service: Applier) -> None:
    reply = service.apply("one", spec={"ports": [{"port": 53, "name": "tcp"}, {"port": 53, "protocol": "UDP", "name": "udp"}]})
    assert owned(reply)["one"]["f:spec"]["f:ports"] == {
        'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}},
        'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}},
    }
    removed = service.apply("one", spec={"ports": [{"port": 53, "name": "tcp", "protocol": "TCP"}]})
    assert [port["protocol"] for port in removed.at("spec", "ports")] == ["TCP"]


def test_duplicate_list_map_keys_are_rejected(service: Applier) -> None:
    twice = service.apply("one", spec={"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]})
    assert (twice.status, twice.at("message")) == (
        500,
        "failed to create typed patch object (/x; /v1, Kind=Service): .spec.ports: duplicate entries for key "
        '[port=80,protocol="TCP"]',
    )


def test_set_lists_of_several_managers_are_merged(config: Applier) -> None:
    config.apply("one", metadata={"finalizers": ["example.com/a", "example.com/b"]})
    reply = config.apply("two", metadata={"finalizers": ["example.com/b", "example.com/c"]})
    assert sorted(reply.at("metadata", "finalizers")) == ["example.com/a", "example.com/b", "example.com/c"]
    assert owned(reply)["two"] == {"f:metadata": {"f:finalizers": {'v:"example.com/b"': {}, 'v:"example.com/c"': {}}}}
    left = config.apply("one")
    assert sorted(left.at("metadata", "finalizers")) == ["example.com/b", "example.com/c"]
    assert config.apply("two").at("metadata", "finalizers") is None


def test_atomic_maps_are_owned_as_a_whole(service: Applier) -> None:
    service.apply("one", spec={"ports": [{"port": 80}], "selector": {"a": "1"}})
    reply = service.apply("two", spec={"selector": {"b": "2"}})
    assert (reply.status, reply.at("message")) == (409, 'Apply failed with 1 conflict: conflict with "one": .spec.selector')
    forced = service.apply("two", force=True, spec={"selector": {"b": "2"}})
    assert forced.at("spec", "selector") == {"b": "2"}
    assert owned(forced)["two"] == {"f:spec": {"f:selector": {}}}


def test_null_and_empty_values_are_owned(config: Applier) -> None:
    config.apply("one", data={"a": "1"})
    reply = config.apply("two", data={}, metadata={"labels": None})
    assert owned(reply)["two"] == {"f:data": {}, "f:metadata": {"f:labels": {}}}
    assert reply.at("data") == {"a": "1"}


# ---------------------------------------------------------------- managedFields


def test_an_empty_managed_fields_entry_resets_all_managers(api, config: Applier) -> None:
    config.apply("one", data={"a": "1"})
    reply = api.patch(config.path, {"metadata": {"managedFields": [{}]}}, MERGE_PATCH)
    assert (reply.status, reply.at("metadata", "managedFields")) == (200, None)
    again = config.apply("two", data={"b": "2"})
    assert owned(again) == {"before-first-apply/Update": {"f:data": {".": {}, "f:a": {}}}, "two": {"f:data": {"f:b": {}}}}


@pytest.mark.parametrize("change", [{"operation": "Nope"}, {"fieldsType": "x"}, {"apiVersion": ""}, {"fieldsV1": {"x": {}}}])
def test_invalid_managed_fields_entries_are_ignored(api, config: Applier, change: dict[str, Any]) -> None:
    before = config.apply("one", data={"a": "1"})
    (entry,) = before.at("metadata", "managedFields")
    reply = api.patch(config.path, {"metadata": {"managedFields": [{**entry, **change}]}}, MERGE_PATCH)
    assert (reply.status, reply.json) == (200, before.json)


def test_manager_name_in_managed_fields_has_a_maximum_length(api, config: Applier) -> None:
    (entry,) = config.apply("one", data={"a": "1"}).at("metadata", "managedFields")
    reply = api.patch(config.path, {"metadata": {"managedFields": [{**entry, "manager": "m" * 129}]}}, MERGE_PATCH)
    assert (reply.status, reply.at("details", "causes", 0, "field")) == (422, "metadata.managedFields[0].manager")


def test_managed_fields_entries_can_be_edited(api, config: Applier) -> None:
    config.apply("one", data={"a": "1", "b": "2"})
    (entry,) = config.get().at("metadata", "managedFields")
    edited = {**entry, "fieldsV1": {"f:data": {"f:b": {}}}}
    reply = api.patch(config.path, {"metadata": {"managedFields": [edited]}}, MERGE_PATCH)
    assert owned(reply) == {"one": {"f:data": {"f:b": {}}}}
    assert config.apply("two", data={"a": "x"}).status == 200


def test_oldest_update_entries_are_merged_into_ancient_changes(api, config: Applier) -> None:
    config.apply("one", data={})
    for number in range(12):
        api.patch(config.path, {"data": {f"k{number:02}": "1"}}, MERGE_PATCH, {"fieldManager": f"m{number:02}"})
    entries = owned(config.get())
    assert len([name for name in entries if name.endswith("/Update")]) == 10
    assert entries["ancient-changes/Update"]["f:data"] == {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}


def test_managed_fields_entries_are_sorted(api, config: Applier) -> None:
    for manager in ("b", "a"):
        config.apply(manager, data={manager: "1"})
    for manager in ("d", "c"):
        api.patch(config.path, {"data": {manager: "1"}}, MERGE_PATCH, {"fieldManager": manager})
    entries = config.get().at("metadata", "managedFields")
    orders = [(entry["operation"], entry["time"], entry["manager"]) for entry in entries]
    assert orders == sorted(orders)
    assert [entry["operation"] for entry in entries] == ["Apply", "Apply", "Update", "Update"]


@pytest.mark.parametrize(
    ("agent", "manager"),
    [("kubectl/v1.30 (linux)", "kubectl"), ("plain", "plain"), ("/x", "unknown"), ("a" * 200, "a" * 128), ("sp ace/1", "sp ace")],
)
def test_user_agent_is_the_default_field_manager(api, agent: str, manager: str) -> None:
    made = api.post(api.path("configmaps"), {"metadata": {"name": "c"}, "data": {"a": "1"}}, headers={"User-Agent": agent})
    assert list(owned(made)) == [f"{manager}/Update"]


def test_apply_configuration_with_managed_fields_is_rejected(config: Applier) -> None:
    reply = config.apply("one", metadata={"managedFields": []})
    assert (reply.status, reply.at("message")) == (400, "metadata.managedFields must be nil")


# ---------------------------------------------------------------- subresources and versions


def test_status_is_applied_through_the_status_subresource(deployment: Applier) -> None:
    deployment.apply("one", spec=pods({"name": "c", "image": "i"}), status={"replicas": 5})
    assert deployment.get().at("status") == {}
    reply = deployment.apply("two", sub="/status", status={"replicas": 1}, spec={"paused": True})
    assert (reply.status, reply.at("status"), reply.at("spec", "paused")) == (200, {"replicas": 1}, None)
    assert owned(reply)["two/status"] == {"f:status": {"f:replicas": {}}}


def test_ownership_of_replicas_moves_through_the_scale_subresource(api, deployment: Applier) -> None:
    deployment.apply("one", spec=pods({"name": "c", "image": "i"}, replicas=1))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}, "spec": {"replicas": 2}}
    refused = api.patch(f"{deployment.path}/scale", scale, APPLY, {"fieldManager": "scaler"})
    assert (refused.status, refused.at("message")) == (409, 'Apply failed with 1 conflict: conflict with "one": .spec.replicas')
    forced = api.patch(f"{deployment.path}/scale", scale, APPLY, {"fieldManager": "scaler", "force": "true"})
    assert (forced.status, forced.at("spec", "replicas")) == (200, 2)
    whole = deployment.get()
    assert owned(whole)["scaler/scale"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owned(whole)["one"]["f:spec"]
    assert deployment.apply("one", spec=pods({"name": "c", "image": "i"})).at("spec", "replicas") == 2


def test_conflict_between_managers_of_different_api_versions(api) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    old = Applier(api, "HorizontalPodAutoscaler", "horizontalpodautoscalers", "autoscaling/v1")
    new = Applier(api, "HorizontalPodAutoscaler", "horizontalpodautoscalers", "autoscaling/v2")
    spec = {"maxReplicas": 5, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50}
    assert old.apply("one", spec=spec).status == 201
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
    reply = new.apply("two", spec={"maxReplicas": 5, "scaleTargetRef": target, "metrics": [metric]})
    assert (reply.status, reply.at("message")) == (
        409,
        'Apply failed with 1 conflict: conflict with "one": .spec.targetCPUUtilizationPercentage',
    )
    forced = new.apply("two", force=True, spec={"maxReplicas": 5, "scaleTargetRef": target, "metrics": [metric]})
    versions = {entry["manager"]: entry["apiVersion"] for entry in forced.at("metadata", "managedFields")}
    assert versions == {"one": "autoscaling/v1", "two": "autoscaling/v2"}
    assert old.get().at("spec", "targetCPUUtilizationPercentage") == 60


# ---------------------------------------------------------------- migration from client-side apply

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_apply_by_kubectl_migrates_client_side_apply_ownership(api, config: Applier) -> None:
    last = config.configuration(data={"a": "1", "b": "1"})
    made = config.configuration(data={"a": "1", "b": "1"}, metadata={"annotations": {LAST_APPLIED: json.dumps(last)}})
    api.post(api.path("configmaps"), made, {"fieldManager": "kubectl-client-side-apply"})
    api.patch(config.path, {"data": {"b": "2"}}, MERGE_PATCH, {"fieldManager": "other"})
    assert config.apply("someone", data={"a": "x"}).status == 409
    reply = config.apply("kubectl", data={"a": "x"})
    assert (reply.status, reply.at("data", "a")) == (200, "x")
    kept = json.loads(reply.at("metadata", "annotations", LAST_APPLIED))
    assert kept["data"] == {"a": "x"}
    assert config.apply("kubectl", data={"a": "x", "b": "x"}).status == 409


# ---------------------------------------------------------------- requests


def test_apply_requires_a_field_manager(api, config: Applier) -> None:
    reply = api.patch(config.path, config.configuration(), APPLY)
    assert (reply.status, reply.at("reason")) == (422, "Invalid")
    assert reply.at("message") == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )


def test_force_is_forbidden_for_other_patches(api, config: Applier) -> None:
    config.apply("one", data={"a": "1"})
    reply = api.patch(config.path, {}, MERGE_PATCH, {"force": "true"})
    assert (reply.status, reply.at("message")) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    )


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "v9"}, 400, "invalid object type: /v9, Kind=ConfigMap"),
        ({"kind": None}, 400, "invalid object type: /v1, Kind="),
        ({"metadata": {"name": "other"}}, 400, "the name of the object (other) does not match the name on the URL (x)"),
        (
            {"metadata": {"name": "x", "namespace": "other"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ({"nope": 1}, 500, "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .nope: field not declared in schema"),
        (
            {"data": {"a": 1}},
            500,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .data.a: expected string, got "
            "&value.valueUnstructured{Value:1}",
        ),
        (
            {"metadata": {"name": "x", "resourceVersion": "1"}},
            409,
            'Operation cannot be fulfilled on configmaps "x": the object has been modified; please apply your changes '
            "to the latest version and try again",
        ),
        ({"binaryData": {"a": "!"}}, 500, None),
    ],
)
def test_invalid_apply_configurations_are_rejected(api, config: Applier, change: Any, status: int, message: str | None) -> None:
    config.apply("one", data={"z": "1"})
    reply = api.patch(config.path, {**config.configuration(), **change}, APPLY, {"fieldManager": "me"})
    assert reply.status == status
    if message is not None:
        assert reply.at("message") == message


def test_apply_body_is_parsed_as_yaml(api, config: Applier) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: 'yes'\n  b: |\n    two\n    lines\n"
    reply = api.patch(config.path, body, APPLY, {"fieldManager": "me"})
    assert (reply.status, reply.at("data")) == (201, {"a": "yes", "b": "two\nlines\n"})


@pytest.mark.parametrize(("validation", "status"), [("Strict", 400), ("Warn", 200), ("Ignore", 200)])
def test_duplicate_keys_in_an_apply_body(api, config: Applier, validation: str, status: int) -> None:
    config.apply("me", data={})
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: '1'\n  a: '2'\n"
    reply = api.patch(config.path, body, APPLY, {"fieldManager": "me", "fieldValidation": validation})
    assert reply.status == status
    if validation == "Warn":
        assert 'line 6: key \\"a\\" already set in map' in reply.headers["warning"]
    if status == 400:
        assert reply.at("message") == (
            "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n"
            '  line 6: key "a" already set in map'
        )
    else:
        assert reply.at("data") == {"a": "2"}


@pytest.mark.parametrize("body", ["[]", "5", "a: [", "x"])
def test_apply_body_must_be_an_object(api, config: Applier, body: str) -> None:
    reply = api.patch(config.path, body, APPLY, {"fieldManager": "me"})
    assert reply.status == 400
    assert reply.at("message").startswith(("error decoding patch: ", "error encoding patch: "))


# ---------------------------------------------------------------- random sequences

_keys = st.sampled_from(["a", "b", "c"])
_values = st.sampled_from(["1", "2"])
_maps = st.dictionaries(_keys, _values, max_size=3)
_steps = st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), _maps, st.booleans()), min_size=2, max_size=6)


@pytest.fixture
def histories(api) -> Iterator[Any]:
    counter = iter(range(10_000))
    return (Applier(api, "ConfigMap", "configmaps", name=f"h{number}") for number in counter)


@given(steps=_steps)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_sequences_of_applies_keep_ownership_consistent(
    histories: Iterator[Applier], steps: list[tuple[str, dict[str, str], bool]]
) -> None:
    """Every existing field has an owner; the last applier owns exactly its fields, and a repeated apply changes nothing."""
    config = next(histories)
    for manager, data, force in steps:
        parts = {"data": data} if data else {}
        reply = config.apply(manager, force=force, **parts)
        if reply.status == 409:
            assert not force
            continue
        entries, held = owned(reply), reply.at("data", default={})
        assert held.items() >= data.items()
        assert entries.get(manager, {}).get("f:data", {}) == {f"f:{key}": {} for key in data}
        assert {key for fields in entries.values() for key in fields["f:data"]} == {f"f:{key}" for key in held}
        assert config.apply(manager, **parts).json == reply.json


def test_the_same_apply_again_and_again_changes_nothing_until_somebody_else_does(api) -> None:
    pods = Applier(api, "Pod", "pods")
    spec = {
        "containers": [
            {"name": "c", "image": "a", "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}
        ]
    }
    first = pods.apply("one", spec=spec, metadata={"labels": {"a": "1"}})
    revisions = {
        pods.apply("one", spec=spec, metadata={"labels": {"a": "1"}}).at("metadata", "resourceVersion") for _ in range(4)
    }
    assert revisions == {first.at("metadata", "resourceVersion")}
    api.patch(pods.path, {"metadata": {"labels": {"a": "2"}}}, MERGE_PATCH)
    assert pods.apply("one", spec=spec, metadata={"labels": {"a": "1"}}).status == 409
    forced = pods.apply("one", force=True, spec=spec, metadata={"labels": {"a": "1"}})
    assert (forced.status, forced.at("metadata", "labels")) == (200, {"a": "1"})
    other = pods.apply("two", metadata={"labels": {"a": "1"}})
    assert {entry["manager"] for entry in other.at("metadata", "managedFields")} == {"one", "two"}
    assert pods.apply("one", spec=spec).at("metadata", "labels") == {"a": "1"}  # it has another owner
