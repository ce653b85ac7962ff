"""Definitions that are refused, in the real server's words: all of a definition but its schemas."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiextensions.definition.conditions import ANNOTATION, approval_errors
from fakekube.apiextensions.definition.validation import preserve_errors, spec_errors, stored_version_errors

ANY = {"type": "object"}
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def version(name: str = "v1", **more: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": ANY}, **more}


def spec(**more: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    names |= more.pop("names", {})
    return {
        "group": "example.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [version()],
        "conversion": {"strategy": "None"},
        **more,
    }


def messages(found: dict[str, Any], **options: Any) -> list[str]:
    return [error.message for error in spec_errors(found, **{"checks_authorities": False, **options})]


def printed(name: str, **more: Any) -> str:
    fields = {"Served": "true", "Storage": "true", **more}
    return (
        f'{{"Name":"{name}","Served":{fields["Served"]},"Storage":{fields["Storage"]},"Deprecated":false,"DeprecationWarning":null,'
        '"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}'
    )


def test_minimal_spec_is_valid() -> None:
    assert messages(spec()) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"group": ""}, ["spec.group: Required value"]),
        ({"group": "nodot"}, ['spec.group: Invalid value: "nodot": should be a domain with at least one dot']),
        ({"scope": ""}, ["spec.scope: Required value"]),
        ({"scope": "Global"}, ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"']),
        ({"names": {"plural": "", "kind": ""}}, ["spec.names.plural: Required value", "spec.names.kind: Required value"]),
        ({"names": {"singular": "wid_get"}}, [f'spec.names.singular: Invalid value: "wid_get": {LABEL}']),
        (
            {"names": {"kind": "Has Space"}},
            [f'spec.names.kind: Invalid value: "Has Space": may have mixed case, but should otherwise match: {LABEL}'],
        ),
        (
            {"names": {"listKind": "Widget"}},
            ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
        ),
        (
            {"names": {"shortNames": ["ok", "Not_ok"], "categories": ["ALL"]}},
            [
                f'spec.names.shortNames[1]: Invalid value: "Not_ok": {LABEL}',
                f'spec.names.categories[0]: Invalid value: "ALL": {LABEL}',
            ],
        ),
        ({"versions": None}, ["spec.versions: Invalid value: null: must have exactly one version marked as storage version"]),
        ({"versions": []}, ["spec.versions: Invalid value: []: must have exactly one version marked as storage version"]),
        (
            {"versions": [version(), version("v2", storage=True)]},
            [
                f"spec.versions: Invalid value: [{printed('v1')},{printed('v2')}]: must have exactly one version marked as storage version"
            ],
        ),
        (
            {"versions": [version(), version(storage=False)]},
            [
                f"spec.versions: Invalid value: [{printed('v1')},{printed('v1', Storage='false')}]: must contain unique version names"
            ],
        ),
        ({"versions": [version(schema=None)]}, ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
        ({"versions": [version(), version("v2", schema={})]}, ["spec.versions[1].schema.openAPIV3Schema: Required value"]),
        (
            {"versions": [version("V1", storage=True)]},
            [f'spec.versions[0].name: Invalid value: "V1": {LABEL}', f'spec.version: Invalid value: "V1": {LABEL}'],
        ),
        (
            {"versions": [version(deprecationWarning="no")]},
            ['spec.versions[0].deprecationWarning: Invalid value: "no": can only be set for deprecated versions'],
        ),
        (
            {"versions": [version(deprecated=True, deprecationWarning="é\nlines")]},
            [
                'spec.versions[0].deprecationWarning: Invalid value: "é\\nlines": '
                "must only contain printable UTF-8 characters; non-printable character found at index 2"
            ],
        ),
        (
            {"versions": [version(deprecated=True, deprecationWarning="")]},
            ['spec.versions[0].deprecationWarning: Invalid value: "": must not be an empty string'],
        ),
    ],
)
def test_names_and_versions_are_validated(change: dict[str, Any], expected: list[str]) -> None:
    assert messages(spec(**change)) == expected


COLUMN = {"name": "A", "type": "string", "jsonPath": ".spec.a"}
TYPES = "must be one of boolean,date,integer,number,string"


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({}, []),
        ({"name": ""}, ["name: Required value"]),
        ({"type": ""}, [f"type: Required value: {TYPES}"]),
        ({"type": "object"}, [f'type: Invalid value: "object": {TYPES}']),
        (
            {"format": "weird"},
            ['format: Invalid value: "weird": must be one of byte,date,date-time,double,float,int32,int64,password'],
        ),
        ({"jsonPath": ""}, ["JSONPath: Required value"]),
        ({"jsonPath": "{.spec.a}"}, ['JSONPath: Invalid value: "{.spec.a}": must be a simple json path starting with .']),
    ],
)
def test_printer_columns_are_validated(column: dict[str, Any], expected: list[str]) -> None:
    found = messages(spec(versions=[version(additionalPrinterColumns=[{**COLUMN, **column}])]))
    assert found == [f"spec.additionalPrinterColumns[0].{text}" for text in expected]


def test_differing_version_fields_are_reported_per_version() -> None:
    versions = [version(additionalPrinterColumns=[{**COLUMN, "name": ""}]), version("v2")]
    assert messages(spec(versions=versions)) == ["spec.versions[0].additionalPrinterColumns[0].name: Required value"]


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ({}, []),
        ({"specReplicasPath": ""}, ["specReplicasPath: Required value"]),
        (
            {"specReplicasPath": "spec.replicas"},
            ['specReplicasPath: Invalid value: "spec.replicas": must be a simple json path starting with .'],
        ),
        ({"specReplicasPath": ".spec"}, ['specReplicasPath: Invalid value: ".spec": should be a json path under .spec']),
        (
            {"statusReplicasPath": ".spec.r"},
            ['statusReplicasPath: Invalid value: ".spec.r": should be a json path under .status'],
        ),
        ({"labelSelectorPath": ""}, []),
        (
            {"labelSelectorPath": ".metadata.labels"},
            ['labelSelectorPath: Invalid value: ".metadata.labels": should be a json path under either .spec or .status'],
        ),
    ],
)
def test_scale_subresource_is_validated(scale: dict[str, Any], expected: list[str]) -> None:
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", **scale}
    found = messages(spec(versions=[version(subresources={"scale": paths})]))
    assert found == [f"spec.subresources.scale.{text}" for text in expected]


FIELDS = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "n": {"type": "number"},
        "o": {"type": "object", "additionalProperties": True},
        **{f"s{index}": {"type": "string"} for index in range(9)},
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
KINDS = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([".s"], []),
        ([""], ["[0].jsonPath: Required value"]),
        ([".n"], [f'[0].jsonPath: Invalid value: ".n": {KINDS}']),
        ([".o.any"], [f'[0].jsonPath: Invalid value: ".o.any": {KINDS}']),
        ([".zz"], ['[0].jsonPath: Invalid value: ".zz": is an invalid path: does not refer to a valid field']),
        (["['s']"], ["[0].jsonPath: Invalid value: \"['s']\": is an invalid path: array notation is not allowed"]),
        ([".metadata.name"], ['[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata']),
        ([".s", ".s"], ['[1].jsonPath: Duplicate value: ".s"']),
        ([f".s{index}" for index in range(9)], [": Too many: 9: must have at most 8 items"]),
    ],
)
def test_selectable_fields_are_validated(paths: list[str], expected: list[str]) -> None:
    selectable = [{"jsonPath": path} for path in paths]
    found = messages(spec(versions=[version(schema={"openAPIV3Schema": FIELDS}, selectableFields=selectable)]))
    assert found == [f"spec.selectableFields{text}" for text in expected]


def test_selectable_fields_need_a_schema() -> None:
    versions = [version(schema=None, selectableFields=[{"jsonPath": ".s"}]), version("v2")]
    assert messages(spec(versions=versions))[1:] == [
        'spec.versions[0].selectableFields: Invalid value: "": '
        "may only be set when `version.schema.openAPIV3Schema` is not included"
    ]


def webhook(client: dict[str, Any] | None = None, versions: tuple[str, ...] = ("v1",)) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": list(versions)}}


URL = {"url": "https://example.com"}


@pytest.mark.parametrize(
    ("conversion", "expected"),
    [
        (webhook(URL), []),
        ({"strategy": "Other"}, ['strategy: Unsupported value: "Other": supported values: "None", "Webhook"']),
        ({}, ["strategy: Required value"]),
        (
            {"strategy": "Webhook"},
            [
                "webhookClientConfig: Required value: required when strategy is set to Webhook",
                "conversionReviewVersions: Required value",
            ],
        ),
        (
            {**webhook(URL), "strategy": "None"},
            [
                "webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
                "conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
            ],
        ),
        (webhook({}), ["webhookClientConfig: Required value: exactly one of url or service is required"]),
        (
            webhook({"url": "https://x.com?a=b"}),
            ['webhookClientConfig.url: Invalid value: "a=b": query parameters are not permitted in the URL'],
        ),
        (
            webhook({"service": {"name": "a", "port": 0}}),
            [  # the namespace is missing; the real server confuses the two
                "webhookClientConfig.service.name: Required value",
                "webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            ],
        ),
        (webhook(URL, ("v1", "v1")), ['conversionReviewVersions[1]: Invalid value: "v1": duplicate version']),
        (webhook(URL, ("v9",)), ['conversionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1']),
    ],
)
def test_conversion_is_validated(conversion: dict[str, Any], expected: list[str]) -> None:
    assert messages(spec(conversion=conversion)) == [f"spec.conversion.{text}" for text in expected]


def test_ca_bundles_are_validated_on_request() -> None:
    wrong = spec(conversion=webhook({**URL, "caBundle": "aGk="}))
    assert messages(wrong) == []
    assert messages(wrong, checks_authorities=True) == [
        'spec.conversion.webhookClientConfig.caBundle: Invalid value: "aGk=": '
        "unable to load root certificates: unable to parse bytes as PEM block"
    ]


def test_preserve_unknown_fields_must_be_false() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    found = spec(preserveUnknownFields=True, versions=[version(schema={"openAPIV3Schema": schema})], conversion=webhook(URL))
    assert messages(found) == [
        "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema",
        'spec.conversion.strategy: Invalid value: "Webhook": must be None if spec.preserveUnknownFields is true',
    ]
    assert [error.path for error in preserve_errors(found)] == ["spec.preserveUnknownFields"]
    assert list(preserve_errors(spec())) == []


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (["v1"], []),
        ([], ["status.storedVersions: Invalid value: null: must have at least one stored version"]),
        (["v2"], ['status.storedVersions: Invalid value: ["v2"]: must have the storage version v1']),
        (
            ["v1", "v0"],
            [
                'status.storedVersions[1]: Invalid value: "v0": missing from spec.versions; v0 was previously a storage version, and must '
                "remain in spec.versions until a storage migration ensures no data remains persisted in v0 and removes v0 from "
                "status.storedVersions"
            ],
        ),
    ],
)
def test_stored_versions_are_validated(stored: list[str], expected: list[str]) -> None:
    found = stored_version_errors(stored, [version(), version("v2")])
    assert [error.message for error in found] == expected


def definition(group: str, approval: str | None) -> dict[str, Any]:
    annotations = {} if approval is None else {ANNOTATION: approval}
    return {"metadata": {"name": "x", "annotations": annotations}, "spec": {"group": group}}


@pytest.mark.parametrize(
    ("group", "approval", "reason"),
    [
        ("example.com", None, None),
        ("x-k8s.io", None, None),
        ("k8s.io", "", "FieldValueRequired"),
        ("a.kubernetes.io", None, "FieldValueRequired"),
        ("a.k8s.io", "nonsense", "FieldValueInvalid"),
        ("a.k8s.io", "unapproved, experimental", None),
        ("a.k8s.io", "https://github.com/kubernetes/pull/1", None),
        ("a.k8s.io", "https://[bad", "FieldValueInvalid"),
    ],
)
def test_api_approval_annotation_is_validated(group: str, approval: str | None, reason: str | None) -> None:
    obj = definition(group, approval)
    assert [error.type.reason for error in approval_errors(obj, None)] == ([reason] if reason else [])
    assert list(approval_errors(obj, obj)) == []
