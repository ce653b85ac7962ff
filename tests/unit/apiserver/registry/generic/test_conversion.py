"""The conversions of a watch cache by a webhook: how many threads they need, and how long they live."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import status
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.generic.writes import stamp_revision
from fakekube.store import Store


def resource(from_storage: Any) -> Resource:
    return Resource(
        group="example.com", version="v2", plural="gates", singular="gate", kind="Gate", namespaced=False, verbs=frozenset(),
        bucket="gates.example.com", strategy_factory=Any, type_factory=Any, custom=True, converts_by_call=True,
        from_storage=from_storage,
    )  # fmt: skip


def backend(*resources: Resource) -> Any:
    store: Store[Document] = Store()
    return SimpleNamespace(store=store, registry=Registry(resources), conversions={})


def write(backend: Any, name: str) -> int:
    tree = {"metadata": {"name": name}}
    record = backend.store.bucket("gates.example.com").commit(name, None, lambda revision: stamp_revision(tree, revision))
    return int(record.revision)


def wait_until(condition: Any) -> None:
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends
        threading.Event().wait(0.002)


def test_one_timer_waits_while_the_webhook_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, timers = [], []

    def fail(obj: dict[str, Any]) -> dict[str, Any]:
        calls.append(obj)
        raise status.internal("no webhook")

    def timer(pause: float, attempt: Any) -> threading.Timer:
        made = threading.Timer(3600, attempt)
        timers.append((pause, attempt, made))
        return made

    monkeypatch.setattr(conversion, "threading", SimpleNamespace(**{**vars(threading), "Timer": timer}))
    gates = resource(fail)
    cluster = backend(gates)
    conversions = conversion.conversions_of(cluster, gates)
    conversions.subscribe(lambda: None)
    try:
        for number in range(5):
            write(cluster, f"g{number}")
            wait_until(lambda: len(calls) > number)  # noqa: B023
        wait_until(lambda: timers)
        assert [pause for pause, _, _ in timers] == [0.8]
        seen = len(calls)
        timers[0][1]()
        wait_until(lambda: len(timers) == 2)
        assert len(calls) > seen
        assert timers[1][0] == 1.6
    finally:
        for _, _, made in timers:
            made.cancel()


def test_conversions_end_with_their_cluster() -> None:
    def convert() -> weakref.ref[Any]:
        gates = resource(lambda obj: obj)
        cluster = backend(gates)
        conversions = conversion.conversions_of(cluster, gates)
        revision = write(cluster, "a")
        wait_until(lambda: conversions.position == revision)
        assert conversion.conversions_of(cluster, gates) is conversions
        return weakref.ref(conversions)

    reference = convert()
    wait_until(lambda: gc.collect() >= 0 and reference() is None)


def test_conversions_of_a_version_that_is_gone_are_dropped() -> None:
    gates, later = resource(lambda obj: obj), resource(lambda obj: obj)
    cluster = backend(gates)
    conversion.conversions_of(cluster, gates)
    cluster.registry.replace([("example.com", "v2", "gates")], [later])
    conversion.conversions_of(cluster, later)
    assert list(cluster.conversions) == [later]


def test_an_object_that_a_version_does_not_change_is_converted_once() -> None:
    calls: list[dict[str, Any]] = []

    def convert(obj: dict[str, Any]) -> dict[str, Any]:
        calls.append(obj)
        return obj if obj["metadata"]["name"] == "same" else {**obj, "kind": "Gate"}

    gates = resource(convert)
    same, other = (Document({"metadata": {"name": name}}) for name in ("same", "other"))
    assert conversion.all_shown(gates, [same, other])[0] is same
    for document in (same, other):
        document.pack()
    shown = conversion.all_shown(gates, [same, other])
    assert shown[0] is same
    assert shown[1].object == {"metadata": {"name": "other"}, "kind": "Gate"}
    assert [obj["metadata"]["name"] for obj in calls] == ["same", "other", "other"]  # what was converted is not kept packed
