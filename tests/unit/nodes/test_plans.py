"""What annotations tell pods."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.nodes.plans import ContainerPlan, PlanError, PodPlan, Run, parse_seconds, plan_from_annotations


def pod(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"fakekube.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}}}


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3.0), ("3s", 3.0), ("1m30s", 90.0), ("250ms", 0.25), ("0.5", 0.5), ("1h", 3600.0)]
)
def test_durations(text: str, value: float) -> None:
    assert parse_seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "3d", "s", "1.2.3s", "-1"])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(PlanError):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("annotations", "plan"),
    [
        ({"run": "3s", "exit_code": "1"}, ContainerPlan(runs=(Run(3.0, 1),))),
        ({"exit_code": "1,0"}, ContainerPlan(runs=(Run(0.0, 1, times=1), Run(0.0, 0)))),
        ({"run": "5", "reason": "OOMKilled"}, ContainerPlan(runs=(Run(5.0, 137, "OOMKilled"),))),
        ({"ready": "never"}, ContainerPlan(ready_after=None)),
        ({"ready": "4s", "pull": "2s", "terminate": "1s"}, ContainerPlan(pull_seconds=2.0, ready_after=4.0, stop_seconds=1.0)),
    ],
)
def test_annotations_make_a_plan(annotations: dict[str, str], plan: ContainerPlan) -> None:
    assert plan_from_annotations(pod(**annotations)) == PodPlan(main=plan)


def test_annotations_of_one_container_and_of_the_pod() -> None:
    plan = plan_from_annotations({"metadata": {"annotations": {"fakekube.dev/run.side-car": "3", "fakekube.dev/start": "never"}}})
    assert plan == PodPlan(start_seconds=None, containers={"side-car": ContainerPlan(runs=(Run(3.0),))})


def test_only_the_pod_as_a_whole_has_a_start() -> None:
    assert plan_from_annotations({"metadata": {"annotations": {"fakekube.dev/start.c": "3"}}}) is None


@pytest.mark.parametrize("annotations", [{}, {"kubelet": "silent"}])
def test_other_annotations_are_ignored(annotations: dict[str, str]) -> None:
    assert plan_from_annotations(pod(**annotations)) is None


@pytest.mark.parametrize("annotations", [{"exit_code": "256"}, {"exit_code": "x"}, {"run": "soon"}, {"start": "later"}])
def test_invalid_annotations(annotations: dict[str, str]) -> None:
    with pytest.raises(PlanError):
        plan_from_annotations(pod(**annotations))


def test_runs_are_used_in_order() -> None:
    plan = ContainerPlan(runs=(Run(1.0, 1, times=2), Run(5.0, 0, times=1)))
    assert [plan.run(number).seconds for number in range(4)] == [1.0, 1.0, 5.0, None]
