"""An operator made with kopf works on a cluster: it handles create, update and delete of ConfigMaps with finalizers.

The operator runs in a thread of this process, as kopf documents for embedding, and finds the cluster by KUBECONFIG.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster

kopf = pytest.importorskip("kopf")

TIMEOUT = 60
NAME = "settings"

pytestmark = [
    pytest.mark.fakekube(kubeconfig=True),
    pytest.mark.filterwarnings("default"),  # kopf's own doings
]


class Operator:
    """Tells what it handled in a queue, and stamps what is created."""

    def __init__(self) -> None:
        self.handled: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._registry = kopf.OperatorRegistry()
        self._ready = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        selected: dict[str, Any] = {"registry": self._registry, "labels": {"handled": "yes"}}

        kopf.on.login(registry=self._registry)(kopf.login_with_kubeconfig)
        kopf.on.create("configmaps", **selected)(self._created)
        kopf.on.update("configmaps", field="data", **selected)(self._updated)
        kopf.on.delete("configmaps", **selected)(self._deleted)

    def _created(self, body: Any, patch: Any, **_: Any) -> None:
        patch.metadata.annotations["stamp"] = "here"
        self.handled.put(("create", dict(body["data"])))

    def _updated(self, old: Any, new: Any, **_: Any) -> None:
        self.handled.put(("update", (dict(old), dict(new))))

    def _deleted(self, name: str, **_: Any) -> None:
        self.handled.put(("delete", name))

    def _run(self) -> None:
        asyncio.run(
            kopf.operator(
                registry=self._registry, standalone=True, namespaces=["default"], ready_flag=self._ready, stop_flag=self._stop
            )
        )

    def __enter__(self) -> Operator:
        self._thread.start()
        assert self._ready.wait(TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT)

    def next(self) -> tuple[str, Any]:
        return self.handled.get(timeout=TIMEOUT)


@pytest.fixture
def operator(fakekube: Cluster) -> Iterator[Operator]:
    with Operator() as running:
        yield running


def manifest(value: str, name: str = NAME) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"handled": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}


def is_pruned_and_defaulted(obj: dict[str, Any]) -> bool:
    """Has kopf marked the object as its own, and remembered what it handled?"""
    metadata = obj["metadata"]
    annotations = metadata.get("annotations", {})
    return bool(metadata.get("finalizers")) and "kopf.zalando.org/last-handled-configuration" in annotations


def test_operator_handles_create_update_and_delete(fakekube: Cluster, operator: Operator) -> None:
    fakekube.create(manifest("1"))
    assert operator.next() == ("create", {"a": "1"})
    made = fakekube.wait_for("configmaps", NAME, until=is_pruned_and_defaulted, timeout=TIMEOUT)
    assert made is not None
    assert made["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
    assert made["metadata"]["annotations"]["stamp"] == "here"
    fakekube.patch("configmaps", NAME, {"data": {"a": "2"}})
    assert operator.next() == ("update", ({"a": "1"}, {"a": "2"}))
    fakekube.wait_for("configmaps", NAME, until=lambda obj: '"a":"2"' in str(obj["metadata"]["annotations"]), timeout=TIMEOUT)
    marked = fakekube.delete("configmaps", NAME)
    assert "deletionTimestamp" in marked["metadata"]
    assert operator.next() == ("delete", NAME)
    assert fakekube.wait_for("configmaps", NAME, gone=True, timeout=TIMEOUT) is None


def test_operator_handles_objects_created_before_its_start(fakekube: Cluster) -> None:
    fakekube.create(manifest("1"))
    with Operator() as operator:
        assert operator.next() == ("create", {"a": "1"})
        fakekube.wait_for("configmaps", NAME, until=is_pruned_and_defaulted, timeout=TIMEOUT)
    fakekube.delete("configmaps", NAME)
    with Operator() as successor:
        assert successor.next() == ("delete", NAME)
        fakekube.wait_for("configmaps", NAME, gone=True, timeout=TIMEOUT)


def test_operator_recovers_from_410_gone(fakekube: Cluster, operator: Operator) -> None:
    """A restored snapshot ends every watch with 410 Gone: kopf lists again, and goes on."""
    saved = fakekube.snapshot()
    fakekube.create(manifest("1"))
    assert operator.next() == ("create", {"a": "1"})
    fakekube.wait_for("configmaps", NAME, until=is_pruned_and_defaulted, timeout=TIMEOUT)
    fakekube.restore(saved)
    fakekube.create(manifest("2", name="another"))  # what kopf had still to write goes to the name of the first
    assert operator.next() == ("create", {"a": "2"})
