"""Validation of AdmissionReview responses."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiserver.webhooks.admission.admission_review import InvalidResponseError, response_in

V1 = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
PATCH = "W10="


def answer(**response: Any) -> dict[str, Any]:
    return {**V1, "response": {"uid": "u", "allowed": True, **response}}


@pytest.mark.parametrize(
    ("review", "mutating", "problem"),
    [
        (V1, True, "webhook response was absent"),
        (answer(uid="x"), True, 'expected response.uid="u", got "x"'),
        (
            {**answer(), "kind": "Review"},
            True,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1, Kind=Review",
        ),
        (
            {**answer(), "apiVersion": ""},
            True,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=AdmissionReview",
        ),
        (answer(patch=PATCH), True, "webhook returned response.patch but not response.patchType"),
        (answer(patchType="JSONPatch"), True, "webhook returned response.patchType but not response.patch"),
        (answer(patch=PATCH, patchType=""), True, 'webhook returned invalid response.patchType of ""'),
        (answer(patch=PATCH), False, "validating webhook may not return response.patch"),
        (answer(patchType="JSONPatch"), False, "validating webhook may not return response.patchType"),
    ],
)
def test_invalid_admission_responses_are_rejected(review: dict[str, Any], mutating: bool, problem: str) -> None:
    with pytest.raises(InvalidResponseError) as caught:
        response_in(review, "v1", "u", mutating=mutating)
    assert str(caught.value) == problem


def test_v1beta1_responses_are_not_verified() -> None:
    found = response_in(answer(uid="x", patch=PATCH), "v1beta1", "u", mutating=True)
    assert (found.allowed, found.patch, found.patch_type) == (True, b"[]", "JSONPatch")
    assert response_in(answer(patch=PATCH), "v1beta1", "u", mutating=False).patch == b""


def test_admission_response_fields() -> None:
    review = answer(patch=PATCH, patchType="Odd", warnings=["w"], auditAnnotations={"a": "b"}, status={"code": 418})
    found = response_in(review, "v1", "u", mutating=True)
    assert (found.patch_type, found.warnings, found.audit_annotations, found.result) == ("Odd", ["w"], {"a": "b"}, {"code": 418})
