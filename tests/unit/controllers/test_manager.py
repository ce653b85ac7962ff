"""How controllers are run: what wakes them, what they see, when they are quiet, and how time takes them along."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from fakekube import ApiError, Cluster
from fakekube.base.objects import Object
from fakekube.controllers import controller_descriptors, manager
from fakekube.controllers.dispatcher import Dispatcher
from fakekube.controllers.manager import Manager
from fakekube.controllers.reconciler import Key, Reconciler

Work = Callable[[Reconciler, Key], None]


def nothing(_controller: Reconciler, _key: Key) -> None:
    """Does nothing."""


class Probe(Reconciler):
    """Writes down what it is told; a test says what it does."""

    name = "probe"
    watches = ("configmaps",)
    program = "probe-manager"
    work: ClassVar[Work] = nothing
    made: ClassVar[list[Probe]] = []

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.done: list[tuple[str, float]] = []
        Probe.made.append(self)

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if obj["metadata"]["name"] == "kube-root-ca.crt":
            return ()
        self.seen.append((event_type, obj["metadata"]["name"]))
        return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        self.done.append((key.name, self.clock.monotonic()))
        type(self).work(self, key)


@pytest.fixture(autouse=True)
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(
        controller_descriptors,
        "CONTROLLERS",
        (*controller_descriptors.CONTROLLERS, controller_descriptors.ControllerDescriptor("probe", Probe, ("configmaps",))),
    )
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setattr(Probe, "work", nothing)
    Probe.made.clear()
    yield
    Probe.made.clear()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="probe")
    Probe.made.clear()  # of the one that prepared the base state
    yield cluster
    cluster.stop()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_controller_waits_until_a_watched_resource_changes(cluster: Cluster) -> None:
    assert Probe.made == []
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    cluster.settle()
    assert Probe.made == []
    cluster.create(config_map("a"))
    assert Probe.made == []
    cluster.settle()
    assert [one.seen for one in Probe.made] == [[("ADDED", "a")]]


def test_informers_of_several_resources_are_at_one_revision(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    beside: dict[str, list[str]] = {}

    def keys(self: Probe, resource: str, event_type: str, _obj: Object, _old: Object | None) -> Iterable[Key]:
        if event_type == "MODIFIED":
            (other,) = {"configmaps", "secrets"} - {resource}
            seen = self.cache.get(other, "default", "a")
            beside[resource] = list((seen or {}).get("data") or ())
        return ()

    monkeypatch.setattr(Probe, "watches", ("configmaps", "secrets"))
    monkeypatch.setattr(Probe, "keys", keys)
    cluster.create(config_map("a"))
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    cluster.settle()
    cluster.patch("configmaps", "a", {"data": {"k": "v"}})
    cluster.patch("secrets", "a", {"data": {"k": "dg=="}})
    cluster.settle()
    assert beside == {"configmaps": ["k"], "secrets": ["k"]}


def test_events_are_ordered_and_equal_keys_are_reconciled_once(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.patch("configmaps", "a", {"data": {"k": "v"}})
    cluster.delete("configmaps", "a")
    cluster.create(config_map("a"))
    cluster.settle()
    (one,) = Probe.made
    assert one.seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "a")]
    assert [name for name, _ in one.done] == ["a"]


def test_the_cache_contains_own_writes_at_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(controller: Reconciler, key: Key) -> None:
        if key.name == "a":
            controller.client.create(config_map("b", k="v"), namespace="default")
        else:
            found = controller.cache.get("configmaps", "default", "b")
            assert found is not None
            assert (found["kind"], found["metadata"]["managedFields"][0]["manager"]) == ("ConfigMap", "probe-manager")
            assert [obj["metadata"]["name"] for obj in controller.cache.list("configmaps", "default")][-2:] == ["a", "b"]
            controller.client.delete("configmaps", "b")
            controller.client.delete("configmaps", "a")

    monkeypatch.setattr(Probe, "work", work)
    cluster.create(config_map("a"))
    cluster.settle()
    assert ("DELETED", "a") in Probe.made[0].seen


def test_dependents_are_indexed_by_their_owner(cluster: Cluster) -> None:
    owner = {"apiVersion": "v1", "kind": "Secret", "name": "o", "uid": "u-1", "controller": True}
    cluster.create({**config_map("a"), "metadata": {"name": "a", "ownerReferences": [owner]}})
    cluster.create(config_map("b"))
    cluster.settle()
    cache = Probe.made[0].cache

    def owned() -> list[str]:
        return [obj["metadata"]["name"] for obj in cache.dependents_of("configmaps", "u-1")]

    assert owned() == ["a"]
    cluster.patch("configmaps", "b", {"metadata": {"ownerReferences": [owner]}})
    cluster.patch("configmaps", "a", {"metadata": {"ownerReferences": None}})
    cluster.settle()
    assert owned() == ["b"]
    cluster.delete("configmaps", "b")
    cluster.settle()
    assert owned() == []


def test_a_refused_write_is_retried_by_the_clock(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(_controller: Reconciler, _key: Key) -> None:
        raise ApiError({"code": 500, "message": "not now"})

    monkeypatch.setattr(Probe, "work", work)
    cluster.clock.hold()
    cluster.create(config_map("a"))
    cluster.settle()
    (one,) = Probe.made
    cluster.clock.advance(seconds=1)
    times = [moment for _, moment in one.done]
    waits = [round(later - earlier, 6) for earlier, later in pairwise(times)]
    assert waits == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32]


def test_conflicts_are_retried_at_once_and_not_found_is_not(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([(409, "Conflict"), (409, "Conflict"), (404, "NotFound")])

    def work(_controller: Reconciler, _key: Key) -> None:
        code, reason = next(answers)
        raise ApiError({"code": code, "reason": reason, "message": ""})

    monkeypatch.setattr(Probe, "work", work)
    cluster.clock.hold()
    cluster.create(config_map("a"))
    cluster.settle()
    assert len(Probe.made[0].done) == 3


def test_a_failing_controller_does_not_stop_the_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def work(_controller: Reconciler, key: Key) -> None:
        if key.name == "bad":
            raise ZeroDivisionError

    monkeypatch.setattr(Probe, "work", work)
    cluster.clock.hold()
    cluster.create(config_map("bad"))
    cluster.create(config_map("good"))
    cluster.settle()
    assert [name for name, _ in Probe.made[0].done] == ["bad", "good"]
    assert "ZeroDivisionError" in caplog.text


def test_a_change_that_a_controller_cannot_handle_is_skipped(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keys = Probe.keys

    def fails(self: Probe, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if obj["metadata"]["name"] == "bad":
            raise ZeroDivisionError
        return keys(self, resource, event_type, obj, old)

    monkeypatch.setattr(Probe, "keys", fails)
    cluster.create(config_map("bad"))
    cluster.create(config_map("good"))
    cluster.settle()
    assert [name for name, _ in Probe.made[0].done] == ["good"]
    assert "probe cannot handle an event of configmaps" in caplog.text


def test_a_controller_that_cannot_start_is_skipped(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Probe, "on_start", lambda self: 1 / 0)
    cluster.create(config_map("a"))
    cluster.settle()
    cluster.create(config_map("b"))
    cluster.settle()
    assert caplog.text.count("probe cannot start") == 1


def test_a_write_succeeds_if_a_controller_cannot_handle_its_event(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(resource: str, obj: Object, old: Object | None) -> bool:
        raise ZeroDivisionError

    cluster.create(config_map("a"))
    cluster.settle()
    monkeypatch.setattr(Probe, "concerns", staticmethod(fails))
    cluster.create(config_map("b"))
    cluster.settle()
    assert Probe.made[0].seen == [("ADDED", "a"), ("ADDED", "b")]
    assert "the controllers cannot handle an event of configmaps" in caplog.text


def test_the_thread_continues_after_an_exception_outside_of_reconcile(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dispatch, failed, done = Dispatcher.dispatch, threading.Event(), threading.Event()

    def fails_once(self: Dispatcher) -> None:
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError
        dispatch(self)

    monkeypatch.setattr(manager, "RESTART_PERIOD", 0.01)
    monkeypatch.setattr(Dispatcher, "dispatch", fails_once)
    Probe.work = lambda _controller, _key: done.set()  # type: ignore[assignment]
    cluster.start()
    cluster.create(config_map("a"))
    assert done.wait(60)
    assert "ZeroDivisionError" in caplog.text


def test_stop_does_not_wait_for_the_restart_of_the_thread(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def fails(self: Dispatcher) -> None:
        failed.set()
        raise ZeroDivisionError

    monkeypatch.setattr(manager, "RESTART_PERIOD", 60.0)
    monkeypatch.setattr(Dispatcher, "dispatch", fails)
    cluster.start()
    cluster.create(config_map("a"))
    assert failed.wait(60)
    stopper = threading.Thread(target=cluster.stop, daemon=True)
    stopper.start()
    stopper.join(60)
    assert not stopper.is_alive()


def test_controllers_work_while_the_clock_is_moved(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probe, "work", lambda controller, key: controller.requeue_after(key, 60.0))
    cluster.clock.hold()
    start = cluster.clock.monotonic()
    cluster.create(config_map("a"))
    cluster.clock.advance(minutes=5)
    assert [round(moment - start, 6) for _, moment in Probe.made[0].done] == [0, 60, 120, 180, 240, 300]


def test_a_moving_clock_waits_for_work_however_long_it_takes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOCK_TIMEOUT limits the wait for controllers that run in another thread only."""
    monkeypatch.setattr(manager, "LOCK_TIMEOUT", 0.0)
    test_controllers_work_while_the_clock_is_moved(cluster, monkeypatch)


def test_settle_waits_for_what_is_due_within_its_horizon(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(controller: Reconciler, key: Key) -> None:
        if len(controller.done) == 1:  # type: ignore[attr-defined]
            controller.requeue_after(key, 600.0)

    monkeypatch.setattr(Probe, "work", work)
    cluster.create(config_map("a"))
    cluster.settle()
    cluster.clock.advance(seconds=599.95 - cluster.clock.monotonic() + Probe.made[0].done[0][1])
    assert len(Probe.made[0].done) == 1
    cluster.settle(horizon=1)
    assert len(Probe.made[0].done) == 2


def test_settle_names_the_controllers_that_still_work(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probe, "work", lambda controller, key: controller.enqueue(key))
    cluster.create(config_map("a"))
    with pytest.raises(TimeoutError, match=r"still at work after 0.01 s: probe"):
        cluster.settle(timeout=0.01)


def test_the_thread_works_without_settle(cluster: Cluster) -> None:
    done = threading.Event()
    Probe.work = lambda _controller, _key: done.set()  # type: ignore[assignment]
    cluster.start()
    cluster.create(config_map("a"))
    assert done.wait(60)


def test_a_restore_is_delivered_as_changes(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.settle()
    snapshot = cluster.snapshot()
    cluster.delete("configmaps", "a")
    cluster.create(config_map("b"))
    cluster.settle()
    cluster.restore(snapshot)
    cluster.settle()
    assert Probe.made[0].seen[-2:] == [("DELETED", "b"), ("ADDED", "a")]


def test_compacted_events_are_replaced_by_a_relist(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.settle()
    cluster.create(config_map("b"))
    cluster.delete("configmaps", "a")
    cluster.compact()
    cluster.settle()
    assert Probe.made[0].seen[-2:] == [("DELETED", "a"), ("ADDED", "b")]


def test_settling_an_idle_cluster_is_cheap(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    cluster.settle()
    calls: list[object] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code) if event in ("call", "c_call") else None)
    try:
        cluster.settle()
    finally:
        sys.setprofile(None)
    assert len(calls) < 100


def test_a_manager_without_controllers_does_not_watch() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.create(config_map("a"))
        cluster.settle()
        assert cluster.working() == []
    assert isinstance(Manager, type)


def test_enqueue_does_not_wait_for_a_running_controller() -> None:
    """A program in a container may end while a controller writes, and waits for, the end of the container."""
    with Cluster() as cluster:
        running = cluster._manager
        with running._lock:  # as during a reconciliation
            caller = threading.Thread(target=running.enqueue, args=("kubelet", Key("default", "p")), daemon=True)
            caller.start()
            caller.join(timeout=60)
            assert not caller.is_alive()
