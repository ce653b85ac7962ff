"""Every feature gate is read somewhere, or stands in the list of those without effect."""

from __future__ import annotations

import logging

import pytest

from fakekube.apimachinery import features
from fakekube.apimachinery.data import gates_without_effect
from fakekube.apimachinery.data.gates_without_effect import REASONS
from tests.unit.apimachinery import gate_pages


def test_each_changeable_gate_has_an_effect_or_a_reason() -> None:
    changeable = {name for name in gate_pages.names() if gate_pages.is_changeable(name)}
    read = set(gate_pages.read_by())
    assert changeable - read - set(REASONS) == set()
    assert set(REASONS) & read == set()
    assert set(REASONS) - changeable == set()


def test_setting_a_gate_without_effect_warns_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(gates_without_effect, "_told", set())
    monkeypatch.setattr(features, "_emulations", {})
    with caplog.at_level(logging.WARNING, "fakekube"):
        for minor in ("1.36", "1.37"):
            features.emulation(minor, {"EventedPLEG": True, "HPAScaleToZero": True})
    assert caplog.messages == [
        "The feature gate EventedPLEG has no effect: it is read by kubelets, container runtimes or volume plugins only."
    ]


def test_page_is_current() -> None:
    assert gate_pages.PAGE.read_text() == gate_pages.page(), "run `python -m tests.unit.apimachinery.gate_pages`"
