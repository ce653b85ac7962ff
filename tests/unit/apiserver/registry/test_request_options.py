"""Options of the verbs: conversion, defaults, and error messages equal to those of kube-apiserver."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.endpoints.request import Query
from fakekube.apiserver.registry import request_options
from fakekube.apiserver.registry.builtin import resources

PODS = next(r for r in resources() if r.plural == "pods" and not r.group)
HUGE = "9" * 5000
CONFIG_MAPS = next(r for r in resources() if r.plural == "configmaps")


def refusal(call: Any) -> StatusError:
    with pytest.raises(StatusError) as caught:
        call()
    return caught.value


def test_list_options_defaults() -> None:
    chosen = request_options.list_options(Query(""), PODS)
    assert (chosen.limit, chosen.resource_version, chosen.watch, chosen.selects) == (0, "", False, False)


@pytest.mark.parametrize(
    ("text", "watch"), [("1", True), ("x", True), ("", True), ("0", False), ("FALSE", False), ("false", False)]
)
def test_boolean_query_values(text: str, watch: bool) -> None:
    assert request_options.list_options(Query(f"watch={text}&resourceVersion=5"), PODS).watch is watch


@pytest.mark.parametrize(("revision", "initial"), [("", True), ("0", True), ("7", None)])
def test_watch_without_resource_version_sends_initial_events(revision: str, initial: bool | None) -> None:
    assert request_options.list_options(Query(f"watch=1&resourceVersion={revision}"), PODS).send_initial_events is initial


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("limit=9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        (f"limit={HUGE}", f'strconv.ParseInt: parsing "{HUGE}": value out of range'),
        ("timeoutSeconds=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("labelSelector=a+in+(b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("fieldSelector=metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("fieldSelector=x%3D1", "field label not supported: x"),
    ],
)
def test_unconvertible_query_values_return_400(query: str, message: str) -> None:
    error = refusal(lambda: request_options.list_options(Query(query), PODS))
    assert (error.code, error.message) == (400, message)


def test_unknown_field_selector_lists_known_fields() -> None:
    error = refusal(lambda: request_options.list_options(Query("fieldSelector=data.a%3D1"), CONFIG_MAPS))
    assert error.message == '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"'


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            "resourceVersion=1&resourceVersionMatch=exact",
            'resourceVersionMatch: Unsupported value: "exact": supported values: "Exact", "NotOlderThan", ""',
        ),
        ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        (
            "watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            "watch=1&sendInitialEvents=true",
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
    ],
)
def test_mutually_exclusive_list_options_return_422(query: str, message: str) -> None:
    error = refusal(lambda: request_options.list_options(Query(query), PODS))
    assert (error.code, error.message) == (422, f'ListOptions.meta.k8s.io "" is invalid: {message}')


def test_name_in_the_path_is_added_to_the_field_selector() -> None:
    assert str(request_options.list_options(Query(""), PODS, name="a").fields) == "metadata.name=a"
    error = refusal(lambda: request_options.list_options(Query("fieldSelector=metadata.name%3Db"), PODS, name="a"))
    assert error.message == "fieldSelector metadata.name doesn't match requested name"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dryRun=all", 'dryRun: Unsupported value: ["all"]: supported values: "All"'),
        (
            "fieldValidation=strict",
            'fieldValidation: Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn"',
        ),
        (f"fieldManager={'x' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
    ],
)
def test_invalid_write_options_return_422(query: str, message: str) -> None:
    error = refusal(lambda: request_options.create_options(Query(query)))
    assert (error.code, error.message) == (422, f'CreateOptions.meta.k8s.io "" is invalid: {message}')


def test_force_is_only_allowed_for_apply() -> None:
    error = refusal(lambda: request_options.patch_options(Query("force=false"), apply=False))
    assert error.message == 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
    assert request_options.patch_options(Query("force=true&fieldManager=m"), apply=True).force is True
    assert refusal(lambda: request_options.patch_options(Query("force=true"), apply=True)).code == 422


def test_delete_options_of_query_and_body_are_equivalent() -> None:
    query = request_options.delete_options_from_body(
        request_options.delete_options_in_query(Query("gracePeriodSeconds=5&propagationPolicy=Orphan&dryRun=All"))
    )
    body = request_options.delete_options_from_body({"gracePeriodSeconds": 5, "propagationPolicy": "Orphan", "dryRun": ["All"]})
    assert query == body
    assert SimpleNamespace(dry=query.dry_run, grace=query.grace_period_seconds) == SimpleNamespace(dry=True, grace=5)


def test_propagation_policy_excludes_orphan_dependents() -> None:
    error = refusal(lambda: request_options.delete_options_from_body({"propagationPolicy": "Orphan", "orphanDependents": True}))
    assert "orphanDependents and deletionPropagation cannot be both set" in error.message


def test_options_of_a_query_depend_on_the_kind_of_write() -> None:
    query = "fieldManager=m&fieldValidation=Strict&dryRun=All"
    known = request_options.create_options(Query(query))
    assert (known.field_manager, known.field_validation, known.dry_run, known.force) == ("m", "Strict", True, None)
    assert known.raw == {"dryRun": ["All"], "fieldManager": "m", "fieldValidation": "Strict"}
    assert request_options.create_options(Query(query)) == known
    assert request_options.patch_options(Query(""), apply=False) == request_options.create_options(Query(""))
    for _ in range(2):
        assert refusal(lambda: request_options.patch_options(Query(""), apply=True)).code == 422
