"""Feature gates by minor. The texts were recorded from kube-apiserver 1.37.2."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from fakekube.apimachinery import data, features
from fakekube.apimachinery.features import FeatureGateError, emulation

FACTS = Path(__file__).parents[3] / "fixtures" / "facts"


@pytest.mark.parametrize("minor", data.RELEASES)
def test_gates_are_those_that_the_metrics_of_the_minor_tell(minor: str) -> None:
    with tarfile.open(FACTS / f"v{minor}.tar.xz") as archive:
        file = archive.extractfile("features.json")
        assert file is not None
        told = json.load(file)
    gates = emulation(minor).gates
    assert {name: [gates.spec(name).stage, gates.enabled(name)] for name in gates} == told


@pytest.mark.parametrize(
    ("gates", "text"),
    [
        ({"NoSuch": True}, "unrecognized feature gate: NoSuch"),
        ({"DRADeviceTaints": False}, "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]"),
        ({"DynamicResourceAllocation": False}, "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true"),
        ({"ClusterTrustBundle": False}, "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]"),
    ],
)  # fmt: skip
def test_gates_are_refused(gates: dict[str, bool], text: str) -> None:
    with pytest.raises(FeatureGateError) as refused:
        emulation("1.37", gates)
    assert str(refused.value) == text


def test_all_alpha_and_all_beta_leave_what_is_set_by_name() -> None:
    alpha = emulation("1.36", {"AllAlpha": True, "GangScheduling": False, "WorkloadAwarePreemption": False}).gates
    assert alpha.enabled("AllAlpha")
    assert (alpha.enabled("GenericWorkload"), alpha.enabled("GangScheduling")) == (True, False)
    assert alpha.enabled("CoordinatedLeaderElection") is False  # beta, and off by default
    beta = emulation("1.36", {"AllBeta": False, "HPAConfigurableTolerance": True}).gates
    assert (beta.enabled("HPAConfigurableTolerance"), beta.enabled("DRADeviceTaints")) == (True, False)


def test_emulations_are_interned_and_differ_by_gate() -> None:
    assert emulation("1.35") is emulation("1.35", {})
    assert emulation("1.35", {"AllAlpha": True}) is not emulation("1.35")
    assert emulation("1.35").compiled("key", lambda made: made.minor) == 35


def test_emulated_version_has_the_gates_of_the_older_minor() -> None:
    older = emulation("1.37", {}, "1.36")
    assert older.enabled("ClusterTrustBundle") is False
    assert emulation("1.37").enabled("ClusterTrustBundle")
    with pytest.raises(FeatureGateError, match=r"feature is PreAlpha at emulated version 1\.36"):
        emulation("1.37", {"CompositePodGroup": True}, "1.36")


def test_unknown_minor_is_refused_with_the_list() -> None:
    with pytest.raises(LookupError, match=r"Kubernetes 1\.32 is not known; known: 1\.33, 1\.34, 1\.35, 1\.36, 1\.37"):
        emulation("1.32")


def test_current_emulation_ends_with_its_block() -> None:
    with features.emulating(emulation("1.34")):
        assert features.current().minor == 34
    assert features.current() is features.DEFAULT
