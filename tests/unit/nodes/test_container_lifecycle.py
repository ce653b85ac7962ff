"""Containers that run their command, and their hooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        made.pods.on().runs_command()
        yield made


def container(script: str, **fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": "busybox", "command": ["sh", "-c", script], **fields}


def pod(name: str, main: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [main], **spec}}


def job(main: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [main]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template, **spec}}


def status_of(cluster: Cluster, name: str, resource: str = "pods") -> Any:
    return cluster.get(resource, name)["status"]


def reasons(cluster: Cluster) -> list[str]:
    return [event["reason"] for event in cluster.list("events")]


def test_a_container_terminates_with_its_command(cluster: Cluster) -> None:
    cluster.create(pod("p", container("echo begun; sleep 5; exit 3"), restartPolicy="Never"))
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Running"
    cluster.clock.advance(seconds=6)
    cluster.settle()
    found = status_of(cluster, "p")
    assert found["phase"] == "Failed"
    assert found["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert cluster.pods.get("p").logs() == "begun\n"


def test_a_program_runs_for_its_time_from_the_exact_moment_of_its_start(cluster: Cluster) -> None:
    whole = cluster.clock.now().replace(microsecond=0)
    cluster.clock.advance(seconds=1.7 - (cluster.clock.now() - whole).total_seconds())
    cluster.create(pod("p", container("sleep 1"), restartPolicy="Never"))
    cluster.settle()
    cluster.clock.advance(seconds=0.9)
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Running"
    cluster.clock.advance(seconds=0.2)
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Succeeded"


def states(cluster: Cluster, name: str) -> list[tuple[str, str]]:
    """Returns phase and state of the main container in each status of a pod."""
    found = []
    for version in cluster.history("pods", name):
        status = version.object["status"]
        for one in status.get("containerStatuses") or ():
            ((state, detail),) = one["state"].items()
            found.append((status["phase"], detail.get("reason", state)))
    return found


def test_a_program_that_ends_at_once_is_never_seen_running(cluster: Cluster) -> None:
    address = {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    cluster.create(pod("p", container("echo $ADDRESS", env=[address]), restartPolicy="Never"))
    cluster.create(pod("crashes", container("exit 3")))
    cluster.settle()
    assert states(cluster, "p") == [("Pending", "ContainerCreating"), ("Succeeded", "Completed")]
    assert cluster.pods.get("p").logs() == f"{status_of(cluster, 'p')['podIP']}\n"
    crashed = [("Running", "Error"), ("Running", "Error"), ("Running", "CrashLoopBackOff")]
    assert states(cluster, "crashes") == [("Pending", "ContainerCreating"), *crashed]


@pytest.mark.parametrize(
    ("image", "command", "phase", "code"),
    [
        ("nginx", [], "Succeeded", 0),
        ("example.com/app", [], "Failed", 137),
        ("busybox", ["sleep", "100"], "Failed", 137),
        ("busybox", ["sh", "-c", "trap 'exit 4' TERM; while true; do sleep 1; done"], "Failed", 4),
    ],
)
def test_a_deleted_pod_is_seen_stopped_before_it_is_gone(image: str, command: list[str], phase: str, code: int) -> None:
    with Cluster() as cluster:
        cluster.clock.hold()
        cluster.create(pod("p", {"name": "main", "image": image, "command": command}))
        cluster.settle()
        cluster.delete("pods", "p")
        cluster.settle()
        cluster.clock.advance(seconds=31)
        cluster.settle()
        *_, last, gone = [
            version for version in cluster.history("pods", "p") if version.object["metadata"].get("deletionTimestamp")
        ]
        status = last.object["status"]
        assert (status["phase"], status["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == (phase, code)
        ready = next(one for one in status["conditions"] if one["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "PodCompleted" if phase == "Succeeded" else "PodFailed")
        assert gone.type == "DELETED"


def test_init_containers_that_end_at_once_lead_to_the_main_containers(cluster: Cluster) -> None:
    inits = [{**container("true"), "name": "one"}, {**container("sleep 1"), "name": "two"}]
    cluster.create(pod("p", container("sleep 5"), restartPolicy="Never", initContainers=inits))
    cluster.settle()
    ended, runs = status_of(cluster, "p")["initContainerStatuses"]
    assert "terminated" in ended["state"]
    assert "running" in runs["state"]
    cluster.clock.advance(seconds=2)
    cluster.settle()
    assert states(cluster, "p")[-1] == ("Running", "running")
    assert {reason for phase, reason in states(cluster, "p") if phase == "Pending"} == {"PodInitializing"}


def test_the_program_of_an_unknown_image_with_input_runs_from_the_start() -> None:
    with Cluster() as cluster:
        cluster.clock.hold()
        cluster.create(pod("p", {**container("echo done"), "image": "example.com/app", "stdin": True}, restartPolicy="Never"))
        cluster.settle()
        assert status_of(cluster, "p")["phase"] == "Succeeded"


def test_a_failing_post_start_hook_kills_its_container(cluster: Cluster) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "exit 1"]}}}
    cluster.create(pod("p", container("sleep 100", lifecycle=hook), restartPolicy="Never"))
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Failed"
    assert "FailedPostStartHook" in reasons(cluster)


def test_a_pre_stop_hook_delays_termination(cluster: Cluster) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 7; exit 1"]}}}
    cluster.create(pod("p", container("sleep 100", lifecycle=hook)))
    cluster.settle()
    cluster.delete("pods", "p")
    cluster.settle()
    cluster.clock.advance(seconds=6)
    assert "deletionTimestamp" in cluster.get("pods", "p")["metadata"]
    cluster.clock.advance(seconds=2)
    assert not cluster.list("pods")
    assert "FailedPreStopHook" in reasons(cluster)


def test_a_sidecar_runs_its_hook_when_the_pod_is_deleted(cluster: Cluster) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "touch /data/stopped; sleep 5"]}}}
    mounts = [{"name": "data", "mountPath": "/data"}]
    busybox = {"image": "busybox", "command": ["sleep", "1000"], "volumeMounts": mounts}
    spec = {
        "initContainers": [{**busybox, "name": "sidecar", "restartPolicy": "Always", "lifecycle": hook}],
        "containers": [{**busybox, "name": "main"}],
        "volumes": [{"name": "data", "hostPath": {"path": "/srv"}}],
    }
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.settle()
    cluster.delete("pods", "p")
    cluster.settle()
    assert cluster.pods.get("p").exec("ls /data", container="sidecar").stdout == "stopped\n"
    cluster.clock.advance(seconds=6)
    cluster.settle()
    assert cluster.list("pods") == []


def test_a_pod_of_a_job_terminates_with_its_command(cluster: Cluster) -> None:
    cluster.create(
        job(container("sleep 5; exit $((JOB_COMPLETION_INDEX))"), completionMode="Indexed", completions=2, parallelism=2)
    )
    cluster.settle()
    assert status_of(cluster, "j", "jobs")["active"] == 2
    cluster.clock.advance(seconds=6)
    cluster.settle()
    found = status_of(cluster, "j", "jobs")
    assert (found["completedIndexes"], found["failed"]) == ("0", 1)


def test_a_pod_of_a_job_succeeds_if_the_shell_does_not_have_its_command(cluster: Cluster) -> None:
    cluster.create(job({"name": "main", "image": "migrations:1"}))
    cluster.settle()
    assert status_of(cluster, "j", "jobs")["succeeded"] == 1


def test_init_containers_terminate_with_their_commands(cluster: Cluster) -> None:
    inits = [container("sleep 5", name="first"), {"name": "second", "image": "migrations:1"}]
    cluster.create(pod("p", container("sleep 100"), initContainers=inits))
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Pending"
    cluster.clock.advance(seconds=6)
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Running"


def test_a_failing_init_container_is_restarted(cluster: Cluster) -> None:
    cluster.create(pod("p", container("sleep 100"), initContainers=[container("exit 3", name="first")]))
    cluster.settle()
    cluster.clock.advance(seconds=15)
    cluster.settle()
    found = status_of(cluster, "p")
    (first,) = found["initContainerStatuses"]
    assert found["phase"] == "Pending" and first["restartCount"] == 2
    assert first["lastState"]["terminated"]["exitCode"] == 3


def message_of(cluster: Cluster, main: dict[str, Any]) -> str:
    cluster.create(pod("p", main, restartPolicy="Never"))
    cluster.settle()
    (status,) = status_of(cluster, "p")["containerStatuses"]
    return str(status["state"]["terminated"].get("message", ""))


@pytest.mark.parametrize("root", [{}, {"securityContext": {"readOnlyRootFilesystem": True}}])
def test_the_termination_message_is_the_content_of_a_file(cluster: Cluster, root: dict[str, Any]) -> None:
    assert message_of(cluster, container("echo log; printf done > /dev/termination-log; exit 1", **root)) == "done"


def test_the_path_of_the_termination_message_can_be_changed(cluster: Cluster) -> None:
    assert message_of(cluster, container("printf done > /dev/other", terminationMessagePath="/dev/other")) == "done"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("printf done; exit 1", "done"),
        ("printf done", ""),
        ("printf log; printf done > /dev/termination-log; exit 1", "done"),
        ("for i in $(seq 100); do echo $i; done; exit 1", "".join(f"{i}\n" for i in range(21, 101))),
    ],
)
def test_the_log_is_the_termination_message_after_an_error(cluster: Cluster, script: str, expected: str) -> None:
    assert message_of(cluster, container(script, terminationMessagePolicy="FallbackToLogsOnError")) == expected


def test_a_long_termination_message_is_cut_to_its_end(cluster: Cluster) -> None:
    script = "{ head -c 2000 /dev/zero | tr '\\0' x; head -c 4000 /dev/zero | tr '\\0' y; } > /dev/termination-log"
    assert message_of(cluster, container(script)) == "x" * 96 + "y" * 4000


@pytest.mark.parametrize("refusals", [1, 4])
def test_an_exit_is_shown_although_the_status_could_not_be_written_at_once(cluster: Cluster, refusals: int) -> None:
    cluster.create(pod("p", container("sleep 3; exit 7"), restartPolicy="Never"))
    cluster.settle()
    cluster.faults.on("patch", "pods/status", agent="kubelet", own=True).status(500, times=refusals)
    cluster.clock.advance(minutes=1)
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Failed"
    assert cluster.faults.unfired() == []


def test_a_pod_starts_although_its_first_statuses_could_not_be_written(cluster: Cluster) -> None:
    cluster.faults.on("patch", "pods/status", agent="kubelet", own=True).status(500, times=4)
    cluster.create(pod("p", container("sleep 3; exit 7"), restartPolicy="Never"))
    cluster.clock.advance(minutes=1)
    cluster.settle()
    assert status_of(cluster, "p")["phase"] == "Failed"
    assert cluster.faults.unfired() == []
