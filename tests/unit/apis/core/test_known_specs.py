"""What is known of pod specs: which are validated again, and which never are."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from fakekube.apimachinery.features import emulating, emulation
from fakekube.apimachinery.schema.trees import text_of
from fakekube.apis.core.pods import containers
from fakekube.apis.core.pods.spec import validate_pod_spec
from fakekube.apis.core.pods.validation_options import NEW_POD, NEW_TEMPLATE, KnownSpecs, ValidationOptions
from fakekube.apis.core.pods.warnings import pod_warnings, template_warnings


def pod_spec(image: str, **container: Any) -> dict[str, Any]:
    """Returns a valid spec; each test has an image of its own, since specs are known in the whole process."""
    made = {
        "name": "web",
        "image": image,
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {
        "containers": [{**made, **container}],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
    }


def test_valid_spec_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = pod_spec("once")
    assert validate_pod_spec(spec, "spec", NEW_POD) == []
    monkeypatch.delattr(containers, "validate_containers")
    assert validate_pod_spec(deepcopy(spec), "spec", NEW_POD) == []
    assert validate_pod_spec(deepcopy(spec), "spec", ValidationOptions({}, {}, of_pod=True)) == []
    with pytest.raises(AttributeError):  # a template has other rules
        validate_pod_spec(deepcopy(spec), "spec", NEW_TEMPLATE)
    with emulating(emulation("1.34")), pytest.raises(AttributeError):  # and so has another minor
        validate_pod_spec(deepcopy(spec), "spec", NEW_POD)


def test_invalid_spec_stays_invalid() -> None:
    spec = pod_spec("invalid", name="Not a label")
    first = validate_pod_spec(spec, "spec", NEW_POD)
    assert [error.path for error in first] == ["spec.containers[0].name"]
    assert validate_pod_spec(spec, "spec", NEW_POD) == first


def test_spec_that_only_an_update_allows_is_not_known() -> None:
    amounts = {"hugepages-2Mi": "1Mi", "cpu": "1"}
    spec = pod_spec("pages", resources={"limits": amounts, "requests": amounts})
    assert validate_pod_spec(spec, "spec", ValidationOptions(spec, {}, of_pod=True)) == []
    assert validate_pod_spec(spec, "spec", NEW_POD) != []


@pytest.mark.parametrize(
    "part", [{"resourceClaims": [{"name": "a"}]}, {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {}}}]}]
)
def test_spec_whose_claims_have_names_of_the_pod_is_never_known(part: dict[str, Any]) -> None:
    spec = {**pod_spec("claims"), **part}
    assert KnownSpecs().key(spec, text_of(spec), of_pod=True) is None


def test_spec_with_equal_values_of_another_text_has_another_key() -> None:
    specs = KnownSpecs()
    one, other = {**pod_spec("text"), "priority": 1}, {**pod_spec("text"), "priority": True}
    assert one == other
    assert specs.key(one, text_of(one), of_pod=True) != specs.key(other, text_of(other), of_pod=True)
    unprintable = {**one, "hostname": "\udc80"}
    assert specs.key(unprintable, text_of(unprintable), of_pod=True) is None


def test_warnings_are_told_each_time() -> None:
    spec = {**pod_spec("warned"), "nodeSelector": {"beta.kubernetes.io/os": "linux"}}
    told = pod_warnings(spec, {})
    assert len(told) == 1
    assert pod_warnings(spec, {}) == told
    assert template_warnings({"spec": spec}, "template") == [f"template.{told[0]}"]


def test_annotations_are_warned_of_although_the_spec_is_known() -> None:
    spec, annotations = pod_spec("annotated"), {"scheduler.alpha.kubernetes.io/critical-pod": ""}
    assert pod_warnings(spec, {}) == pod_warnings(spec, {"annotations": {}}) == []
    assert len(pod_warnings(spec, {"annotations": annotations})) == 1
