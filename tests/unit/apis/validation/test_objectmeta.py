"""What the kinds leave out of the validation of metadata that the common validation of an update has accepted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apis.validation import names, objectmeta
from fakekube.apis.validation.names import NameCheck

TEXTS = st.sampled_from(["", "a", "A", "a.b", "a/b", "-", ".", "x" * 64, "kubernetes", "orphan", "foregroundDeletion", "e.com/x"])
OLD = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"}

METADATA = st.fixed_dictionaries(
    {"name": TEXTS, "namespace": st.sampled_from(["n", ""]), "resourceVersion": st.just("1"), "uid": st.just("u")},
    optional={
        "generateName": TEXTS,
        "labels": st.dictionaries(TEXTS, TEXTS, max_size=2),
        "annotations": st.dictionaries(TEXTS, TEXTS, max_size=2),
        "finalizers": st.lists(TEXTS, max_size=3),
        "ownerReferences": st.lists(st.fixed_dictionaries({"uid": TEXTS, "name": TEXTS, "kind": TEXTS}), max_size=2),
        "managedFields": st.lists(
            st.fixed_dictionaries({"operation": st.sampled_from(["Apply", "Update", "x"]), "manager": TEXTS}), max_size=2
        ),
    },
)


@pytest.mark.parametrize("name_errors", [names.path_segment, names.dns_subdomain, names.dns_label])
@pytest.mark.parametrize("standard", [True, False])
@given(meta=METADATA, namespaced=st.booleans())
def test_kind_rules_complete_common_metadata_validation(
    name_errors: NameCheck, standard: bool, meta: dict[str, Any], namespaced: bool
) -> None:
    old = {**OLD, "name": meta["name"], "namespace": meta["namespace"]}
    if objectmeta.validate_object_meta(old, namespaced, name_errors):  # it cannot be stored
        return
    if objectmeta.validate_common_update(meta, old):
        return
    whole = objectmeta.validate_object_meta(meta, namespaced, name_errors, standard_finalizers=standard)
    assert objectmeta.validate_rules_of_kind(meta, name_errors, standard_finalizers=standard) == whole
    change = objectmeta.validate_object_meta_update(meta, old, standard_finalizers=standard)
    assert change == (objectmeta.validate_standard_finalizers(meta) if standard else [])


@given(meta=METADATA, kept=st.sets(st.sampled_from(["labels", "annotations", "ownerReferences", "finalizers", "managedFields"])))
def test_common_validation_of_an_update_is_that_of_the_whole_metadata(meta: dict[str, Any], kept: set[str]) -> None:
    meta |= {"name": "a", "namespace": "n"}
    old = {**OLD, **{field: meta[field] for field in kept & meta.keys()}}
    if objectmeta.validate_object_meta(old, True, names.path_segment, standard_finalizers=False):  # it cannot be stored
        return
    whole = objectmeta.validate_object_meta(meta, True, names.path_segment, standard_finalizers=False)
    if whole:
        whole += objectmeta.validate_object_meta_update(meta, old, standard_finalizers=False)
    assert objectmeta.validate_common_update(meta, old) == whole


@pytest.mark.parametrize("field", objectmeta.IMMUTABLE_FIELDS)
def test_immutable_metadata_fields_are_reported(field: str) -> None:
    new: dict[str, Any] = {**OLD, field: "b"}
    errors = objectmeta.validate_common_update(new, OLD)
    assert [error.path for error in errors] == [f"metadata.{field}"] * len(errors)
    assert errors
