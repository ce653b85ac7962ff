"""The state machine of a pod's containers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.nodes.plans import ContainerPlan, PodPlan, Run
from fakekube.nodes.pod_state import Kind, PodState, State, should_restart

NAMES = ("a", "b")


def spec(policy: str = "Always", inits: tuple[str, ...] = (), sidecars: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    init = [{"name": one, "image": "i"} for one in inits]
    init += [{"name": one, "image": "s", "restartPolicy": "Always"} for one in sidecars]
    return {"restartPolicy": policy, "initContainers": init, "containers": [{"name": "c", "image": "x", **more}]}


def until(pod: PodState, time: float) -> PodState:
    while pod.advance(time):
        pass
    return pod


def container(pod: PodState, name: str = "c") -> Any:
    return next(one for one in pod.containers if one.name == name)


def told(*runs: Run, **more: Any) -> PodPlan:
    return PodPlan(main=ContainerPlan(runs=runs, **more))


def test_a_pod_with_an_empty_plan_runs_at_once_and_does_not_end() -> None:
    pod = until(PodState(spec(), PodPlan(), 5.0), 5.0)
    assert (pod.phase, container(pod).ready, pod.next_due) == ("Running", True, None)


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Never", 0, "Succeeded"),
        ("Never", 3, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 3, "Running"),
        ("Always", 0, "Running"),
    ],
)
def test_restart_policy_and_exit_code_decide_about_the_phase(policy: str, code: int, phase: str) -> None:
    pod = until(PodState(spec(policy), told(Run(2.0, code)), 0.0), 2.0)
    assert pod.phase == phase


def test_restarts_back_off_until_a_long_run() -> None:
    pod = PodState(spec(), told(Run(1.0, 1)), 0.0)
    starts = []
    for second in range(1500):
        before = container(pod).attempt
        until(pod, float(second))
        if container(pod).attempt != before:
            starts.append(second)
    assert starts[:6] == [1, 12, 33, 74, 155, 316]
    assert starts[6] - starts[5] == 301
    calm = until(PodState(spec(), told(Run(1.0, 1, times=1), Run(700.0, 1)), 0.0), 701.0)
    assert (container(calm).attempt, container(calm).state) == (2, State.RUNNING)


def test_a_container_whose_program_cannot_be_started_waits_with_its_error() -> None:
    pod = PodState(spec(), told(start_error="no program"), 0.0)
    seen = []
    while pod.advance(11.0):
        one = container(pod)
        seen.append((one.state, one.reason, one.attempt, one.last and (one.last.exit_code, one.last.message, one.last.started)))
    last = (128, "no program", None)
    assert seen == [
        (State.WAITING, "RunContainerError", 0, last),
        (State.WAITING, "RunContainerError", 1, last),
        (State.WAITING, "CrashLoopBackOff", 1, last),
        (State.WAITING, "RunContainerError", 2, last),
        (State.WAITING, "CrashLoopBackOff", 2, last),
    ]
    assert pod.phase == "Running"


def test_a_container_in_backoff_is_waiting_with_crash_loop_back_off() -> None:
    pod = until(PodState(spec(), told(Run(0.0, 1)), 0.0), 0.0)
    one = container(pod)
    assert (one.state, one.reason, one.attempt) == (State.WAITING, "CrashLoopBackOff", 1)
    assert one.message == "back-off 10s restarting failed container=c pod=$POD"
    assert one.last is not None and one.last.exit_code == 1
    assert [event.reason for event in pod.events][-1] == "BackOff"


def test_init_containers_run_in_order_and_sidecars_keep_running() -> None:
    plan = PodPlan(containers={name: ContainerPlan(runs=(Run(2.0),)) for name in NAMES})
    pod = PodState(spec("Never", NAMES, ("s",)), plan, 0.0)
    assert [container(until(pod, 1.0), name).state for name in (*NAMES, "s", "c")] == [
        State.RUNNING,
        State.WAITING,
        State.WAITING,
        State.WAITING,
    ]
    assert pod.phase == "Pending"
    until(pod, 3.0)
    assert container(pod, "b").state is State.RUNNING and container(pod, "c").reason == "PodInitializing"
    until(pod, 4.0)
    assert (pod.phase, container(pod, "s").state, container(pod).state) == ("Running", State.RUNNING, State.RUNNING)


def test_a_failing_init_container_is_restarted_or_fails_the_pod() -> None:
    plan = PodPlan(containers={"a": ContainerPlan(runs=(Run(0.0, 1, times=1), Run(0.0)))})
    assert until(PodState(spec("Never", ("a",)), plan, 0.0), 100.0).phase == "Failed"
    again = until(PodState(spec("Always", ("a",)), plan, 0.0), 100.0)
    assert (again.phase, container(again, "a").attempt) == ("Running", 1)


def test_sidecars_end_after_all_other_containers() -> None:
    pod = until(PodState(spec("Never", (), ("s",)), told(Run(3.0)), 0.0), 3.0)
    assert (pod.phase, container(pod, "s").state) == ("Succeeded", State.TERMINATED)


def test_a_failing_image_pull_is_retried() -> None:
    pod = PodState(spec(), PodPlan(main=ContainerPlan(pull_error="no", pull_failures=2)), 0.0)
    assert pod.advance(0.0) and container(pod).reason == "ErrImagePull"
    until(pod, 0.0)
    assert (container(pod).reason, pod.phase) == ("ImagePullBackOff", "Pending")
    assert container(until(pod, 29.0)).reason == "ImagePullBackOff"
    assert container(until(pod, 30.0)).state is State.RUNNING


def test_readiness_and_startup_probes_delay_readiness() -> None:
    probes = {"startupProbe": {"initialDelaySeconds": 3}, "readinessProbe": {"initialDelaySeconds": 5, "successThreshold": 2}}
    pod = PodState(spec(**probes), PodPlan(), 0.0)
    assert not container(until(pod, 2.0)).started
    assert container(until(pod, 3.0)).started and not container(pod).ready
    assert container(until(pod, 15.0)).ready


def test_a_failing_liveness_probe_restarts_the_container() -> None:
    pod = until(PodState(spec(), told(Run(4.0, 137, "Error", "", 1, "liveness")), 0.0), 4.0)
    assert container(pod).attempt == 1
    assert "Container c failed liveness probe, will be restarted" in [event.message for event in pod.events]


@pytest.mark.parametrize(("takes", "grace", "after", "code"), [(3.0, 30.0, 3.0, 0), (60.0, 30.0, 30.0, 137), (0.0, 0.0, 0.0, 0)])
def test_a_pod_terminates_within_its_grace_period(takes: float, grace: float, after: float, code: int) -> None:
    pod = until(PodState(spec(), PodPlan(main=ContainerPlan(stop_seconds=takes)), 0.0), 0.0)
    pod.terminate(10.0, grace)
    assert until(pod, 10.0 + after - 0.01).is_done is False or after == 0.0
    assert until(pod, 10.0 + after).is_done and container(pod).ended.exit_code == code
    assert pod.next_due is None


def test_a_pod_fails_as_a_whole() -> None:
    pod = until(PodState(spec(), PodPlan(failure=(5.0, "Evicted", "low")), 0.0), 5.0)
    assert (pod.phase, pod.failed, container(pod).ended.exit_code) == ("Failed", ("Evicted", "low"), 137)


def test_a_running_pod_gets_another_plan() -> None:
    pod = until(PodState(spec("Never"), PodPlan(), 0.0), 4.0)
    pod.replan(told(Run(6.0, 2), ready_after=None))
    assert not container(pod).ready
    assert until(pod, 6.0).phase == "Failed"


def test_restart_policy_rules_of_containers_apply_by_exit_code() -> None:
    rules = {
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
    }
    assert should_restart(rules, "Always", Kind.MAIN, 42)
    assert not should_restart(rules, "Always", Kind.MAIN, 1)


RUNS = st.builds(Run, st.sampled_from([0.0, 1.0, 7.0, 700.0]), st.sampled_from([0, 1]), times=st.sampled_from([1, 2, None]))
PLANS = st.builds(
    ContainerPlan,
    pull_seconds=st.sampled_from([0.0, 2.0]),
    pull_error=st.sampled_from(["", "no"]),
    pull_failures=st.sampled_from([1, 2]),
    ready_after=st.sampled_from([0.0, 3.0, None]),
    runs=st.lists(RUNS, max_size=3).map(tuple),
)


def shape(pod: PodState) -> Any:
    return pod.phase, pod.next_due, [(c.state, c.reason, c.attempt, c.ready, c.started, c.ended, c.last) for c in pod.containers]


@given(
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.lists(PLANS, min_size=3, max_size=3),
    st.lists(st.sampled_from([0.5, 1.0, 9.0, 300.0]), min_size=1, max_size=8),
)
def test_the_result_does_not_depend_on_the_size_of_time_steps(
    policy: str, plans: list[ContainerPlan], steps: list[float]
) -> None:
    whole = spec(policy, ("a",), ("s",))
    plan = PodPlan(main=plans[0], containers={"a": plans[1], "s": plans[2]})
    at_once, by_steps = PodState(whole, plan, 0.0), PodState(whole, plan, 0.0)
    time = 0.0
    for step in steps:
        time += step
        until(by_steps, time)
    assert shape(until(at_once, time)) == shape(by_steps)
    assert all(one.attempt >= 0 and (one.state is not State.RUNNING or one.begun) for one in at_once.containers)
    if at_once.phase in ("Succeeded", "Failed") and policy == "Never":
        assert (
            not any(one.state is State.RUNNING for one in at_once.of_kind(Kind.SIDECAR, Kind.MAIN)) or at_once.phase == "Failed"
        )
