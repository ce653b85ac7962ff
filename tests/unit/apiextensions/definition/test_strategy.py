"""The kind CustomResourceDefinition: what writes do to it."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from fakekube.apiextensions.definition.strategy import DefinitionStatusStrategy, DefinitionStrategy
from fakekube.apis.rest.strategy import WriteContext

CONTEXT = cast(WriteContext, None)  # no rule of this kind asks it anything
STRATEGY = DefinitionStrategy()


def definition(**spec: Any) -> dict[str, Any]:
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
            **spec,
        },
    }


def made(**spec: Any) -> dict[str, Any]:
    """A definition as it is stored."""
    obj = definition(**spec)
    STRATEGY.default(obj)
    STRATEGY.prepare_for_create(CONTEXT, obj)
    return obj


def established(**spec: Any) -> dict[str, Any]:
    obj = made(**spec)
    obj["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    return obj


def changed(obj: dict[str, Any], **spec: Any) -> list[str]:
    """The errors of a change of a definition's spec."""
    new = copy.deepcopy(obj)
    new["spec"] |= spec
    STRATEGY.prepare_for_update(CONTEXT, new, obj)
    return [error.message for error in STRATEGY.validate_update(CONTEXT, new, obj)]


def test_defaults() -> None:
    obj = definition()
    STRATEGY.default(obj)
    assert obj["spec"]["names"] == {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    assert obj["spec"]["conversion"] == {"strategy": "None"}
    assert obj["status"] == {"storedVersions": ["v1"]}
    again = copy.deepcopy(obj)
    STRATEGY.default(again)
    assert again == obj


def test_empty_definition_is_defaulted() -> None:
    obj: dict[str, Any] = {"metadata": {}}
    STRATEGY.default(obj)
    assert obj["spec"] == {"names": {"singular": ""}, "conversion": {"strategy": "None"}}


def test_empty_conversion_webhook_is_dropped() -> None:
    obj = definition(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": []}})
    STRATEGY.default(obj)
    assert obj["spec"]["conversion"] == {"strategy": "None"}


def test_members_of_json_values_are_sorted() -> None:
    schema = {"type": "object", "items": {"default": {"b": {"d": 1, "c": 2.0}, "a": 3}}}
    obj = definition(versions=[{"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}])
    STRATEGY.default(obj)
    value = obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["items"]["default"]
    assert list(value) == ["a", "b"]
    assert list(value["b"]) == ["c", "d"]


def test_create_resets_the_status() -> None:
    obj = {**definition(), "status": {"storedVersions": ["v7"], "conditions": [{"type": "Established"}]}}
    STRATEGY.prepare_for_create(CONTEXT, obj)
    assert obj["status"] == {"storedVersions": ["v1"]}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"name": "widgets.example.com", "finalizers": ["short"]}, []),
        ({"name": "other"}, ['metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group']),
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        (
            {"name": "wx", "generateName": "w"},
            [
                'metadata.generateName: Invalid value: "w": must be spec.names.plural+"."+spec.group',
                'metadata.name: Invalid value: "wx": must be spec.names.plural+"."+spec.group',
            ],
        ),
    ],
)
def test_name_must_be_plural_dot_group(meta: dict[str, Any], expected: list[str]) -> None:
    obj = {**made(), "metadata": meta}
    assert [error.message for error in STRATEGY.validate(CONTEXT, obj)] == expected


def test_order_of_validation_errors() -> None:
    obj = made(group="a.k8s.io", versions=[], preserveUnknownFields=True)
    assert [error.path for error in STRATEGY.validate(CONTEXT, obj)] == [
        "metadata.name",
        "spec.versions",
        "status.storedVersions",
        "metadata.annotations[api-approved.kubernetes.io]",
        "spec.preserveUnknownFields",
    ]


NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}


@pytest.mark.parametrize(
    ("spec", "when_established", "before"),
    [
        ({"scope": "Cluster"}, ['spec.scope: Invalid value: "Cluster": field is immutable'], []),
        ({"names": {**NAMES, "kind": "Gadget"}}, ['spec.names.kind: Invalid value: "Gadget": field is immutable'], []),
        ({"names": {**NAMES, "singular": "thing", "shortNames": ["wi"]}}, [], []),
        ({"group": "x.example.com"}, *[['spec.group: Invalid value: "x.example.com": field is immutable']] * 2),
        ({"names": {**NAMES, "plural": "xs"}}, *[['spec.names.plural: Invalid value: "xs": field is immutable']] * 2),
    ],
)
def test_immutable_fields_depend_on_established(spec: dict[str, Any], when_established: list[str], before: list[str]) -> None:
    assert changed(established(), **spec) == when_established
    assert changed(made(), **spec) == before


def webhook(bundle: str) -> dict[str, Any]:
    client = {"url": "https://example.com", "caBundle": bundle}
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def test_existing_invalid_ca_bundle_is_tolerated_on_update() -> None:
    refused = ["spec.conversion.webhookClientConfig.caBundle"]
    assert [text.partition(":")[0] for text in changed(established(), conversion=webhook("aGk="))] == refused
    assert changed(established(conversion=webhook("aGk=")), conversion=webhook("aGkx")) == []
    assert changed(made(), conversion=webhook("aGk=")) == []


def test_stored_versions_cannot_be_removed_from_spec() -> None:
    old = made()
    schema = {"openAPIV3Schema": {"type": "object"}}
    moved = [{"name": "v1", "schema": schema}, {"name": "v2", "storage": True, "schema": schema}]
    new = {**copy.deepcopy(old), "spec": {**old["spec"], "versions": moved}}
    STRATEGY.prepare_for_update(CONTEXT, new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert old["status"]["storedVersions"] == ["v1"], "the old object is the store's"
    (refused,) = changed(new, versions=moved[1:])
    assert refused.startswith('status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously')


def with_format(*formats: tuple[str, str]) -> dict[str, Any]:
    properties = {f"p{index}": {"type": kind, "format": name} for index, (kind, name) in enumerate(formats)}
    schema = {"type": "object", "properties": properties}
    return made(versions=[{"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}])


def test_unknown_formats_warn_once() -> None:
    known = with_format(
        ("string", "date-time"), ("string", "datetime"), ("integer", "int32"), ("number", "double"), ("string", "password")
    )
    assert STRATEGY.warnings(CONTEXT, known, None) == []
    odd = with_format(("string", "nonsense"), ("integer", "date"), ("boolean", "byte"))
    assert STRATEGY.warnings(CONTEXT, odd, None) == [f'unrecognized format "{name}"' for name in ("nonsense", "date", "byte")]
    assert STRATEGY.warnings(CONTEXT, odd, odd) == []
    some = with_format(("string", "nonsense"))
    assert STRATEGY.warnings(CONTEXT, odd, some) == ['unrecognized format "date"', 'unrecognized format "byte"']


def test_first_delete_sets_terminating() -> None:
    obj = established()
    before = copy.deepcopy(obj["status"])
    status = obj["status"]
    obj["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c", "foregroundDeletion"]}
    STRATEGY.terminate(obj)
    assert obj["metadata"]["finalizers"] == ["a.b/c", "customresourcecleanup.apiextensions.k8s.io"]
    assert obj["status"]["conditions"][-1] == {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    assert status == before, "the old status is the store's"


def test_status_update_changes_only_the_status() -> None:
    view, old = DefinitionStatusStrategy(), made()
    new = {**copy.deepcopy(old), "status": {"acceptedNames": {"plural": "A B"}, "storedVersions": ["gone"]}}
    new["spec"]["scope"] = "Cluster"
    view.prepare_for_update(CONTEXT, new, old)
    assert new["spec"] == old["spec"]
    assert [error.path for error in view.validate_update(CONTEXT, new, old)] == ["status.acceptedNames.plural"]


def test_status_keeps_at_least_the_storage_version() -> None:
    obj = {**made(), "status": {"storedVersions": []}}
    DefinitionStatusStrategy().default(obj)
    assert obj["status"]["storedVersions"] == ["v1"]
