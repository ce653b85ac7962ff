"""A cheap part of the matrix of defects: one defect is found, by one provocation. `matrix.py` runs all of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import fakekube
from fakekube.checker import Report

HERE = Path(__file__).parent


def defects(file: Path = HERE / "defects.py") -> dict:
    spec = importlib.util.spec_from_file_location("check_defects", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_defects"] = module
    spec.loader.exec_module(module)
    return dict(module.DEFECTS)


def test_each_rule_has_a_defect() -> None:
    from fakekube.checker.rules import all_rules

    own = {defect.rule for defect in defects().values()}
    strangers = {rule for _, rules in defects(HERE / "strangers" / "defects.py").values() for rule in rules.split()}
    assert {rule.id for rule in all_rules()} == own | strangers


def check_of_the_controller() -> Report:
    command = [sys.executable, str(HERE / "controller.py"), "--defect", "C2-newest"]
    return fakekube.check(command, sample=HERE / "widgets.yaml", again="C2/update")


@pytest.mark.parametrize("awaited", [check_of_the_controller], indirect=True)
def test_the_controller(awaited: Report) -> None:
    assert [(row.id, row.verdict) for row in awaited.rules] == [("C2", "fail")]
