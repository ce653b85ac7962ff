"""The pace of pods with programs: when a kubelet looks at what it has started, and what it sees then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from fakekube.base.clock import Clock
from fakekube.nodes.node_state import Exit
from fakekube.nodes.plans import PodPlan, Run
from fakekube.nodes.pod_state import Container
from fakekube.nodes.pod_workers import PodWorkers

ADDRESSES = "10.0.0.1", ["10.244.0.1"]
LOOK = 1.0


class Node:
    """A kubelet whose containers have programs, which a test ends."""

    def __init__(self, *containers: str, look: float = LOOK, policy: str = "Never") -> None:
        self.clock = Clock()
        self.clock.hold()
        self.written: list[tuple[str, list[str]]] = []
        """The phases and the states of containers, in the order in which they were written."""
        self.started: list[str] = []
        specs = [{"name": name, "image": "busybox"} for name in containers]
        self.pod: dict[str, Any] = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": specs, "restartPolicy": policy},
        }
        self.workers = PodWorkers(
            self.clock,
            self,  # type: ignore[arg-type]
            self.write,
            lambda pod: frozenset(one["name"] for one in pod["spec"]["containers"]),
            lambda _pod: (lambda _spec: "", lambda: ""),
            start=self.start,
            look_after=lambda: look,
            image_of=lambda _name: None,
            minor=37,
        )

    def event(self, *_: object, **__: object) -> None:
        """Records nothing."""

    def write(self, pod: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
        states = [next(iter(one["state"])) for one in status.get("containerStatuses") or ()]
        self.written.append((status["phase"], states))
        return {**pod, "status": status}

    def start(self, _pod: object, containers: Iterable[Container]) -> Sequence[Exit]:
        self.started += [one.name for one in containers]
        return ()

    def sync(self, *ended: str) -> float | None:
        exits = [Exit(name, 0, Run(0.0), self.clock.monotonic()) for name in ended]
        return self.workers.sync(self.pod, PodPlan(), ADDRESSES, exits)


def test_a_program_that_ends_before_the_look_is_never_seen_running() -> None:
    node = Node("a")
    assert node.sync() == LOOK
    assert node.started == ["a"]
    assert [phase for phase, _ in node.written] == ["Pending"]
    node.clock.advance(seconds=LOOK / 2)
    node.sync("a")
    assert node.written[1:] == [("Succeeded", ["terminated"])]


def test_a_program_that_runs_on_is_seen_running_at_the_look() -> None:
    node = Node("a", "b")
    node.sync()
    node.clock.advance(seconds=LOOK / 2)
    assert node.sync() == pytest.approx(LOOK / 2)
    assert node.started == ["a", "b"]
    node.clock.advance(seconds=LOOK / 2)
    assert node.sync() is None
    assert node.written[1:] == [("Running", ["running", "running"])]


def test_the_end_of_one_program_is_a_look_at_the_others() -> None:
    node = Node("a", "b")
    node.sync()
    assert node.sync("a") is None
    assert node.written[1:] == [("Running", ["terminated", "running"])]


def test_without_a_pace_the_kubelet_looks_at_once() -> None:
    node = Node("a", look=0.0)
    node.sync()
    assert node.written[1:] == [("Running", ["running"])]


def test_a_deleted_pod_is_looked_at() -> None:
    node = Node("a")
    node.sync()
    node.pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    node.sync()
    assert node.written[-1] == ("Failed", ["terminated"])
    assert node.workers.is_done("u")
