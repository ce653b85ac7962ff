"""`OperatorMachine` finds planted defects in an operator made with kopf, and shrinks the steps that show them.

The operator keeps, for each Widget, a ConfigMap of the same name with the size of the widget. Examples and seeds are fixed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

pytest.importorskip("hypothesis")
kopf = pytest.importorskip("kopf")

from hypothesis import strategies as st  # noqa: E402

from fakekube.strategies import OperatorMachine  # noqa: E402
from fakekube.strategies.machine import _Attempts  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # kopf's own doings

MAPS = "/api/v1/namespaces/default/configmaps"
GROUP, VERSION, PLURAL = "example.com", "v1", "widgets"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "kind": "Widget"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "x-kubernetes-validations": [{"rule": "!has(self.limit) || self.size <= self.limit"}],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 0, "maximum": 9},
                                    "limit": {"type": "integer", "minimum": 0, "maximum": 9},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


#: An operator that does nothing about what it watches.
WATCHER = """
import os, re, urllib.request
server = re.search(r"server: (\\S+)", open(os.environ["KUBECONFIG"]).read())[1]
while True:
    try:
        with urllib.request.urlopen(f"{server}/api/v1/namespaces/default/configmaps?watch=1") as events:
            events.read()
    except OSError:
        pass
"""


class Operator:
    """Runs the operator in a thread until it is stopped.

    Args:
        kubeconfig: of the cluster.
        defect: what is wrong with it; "" for nothing.
    """

    def __init__(self, kubeconfig: Path, defect: str) -> None:
        found = re.search(r"server: (\S+)", kubeconfig.read_text())
        assert found is not None
        self._server, self._defect = found[1], defect
        self._registry, self._stop = kopf.OperatorRegistry(), threading.Event()
        self._settings = kopf.OperatorSettings()
        self._settings.posting.enabled = False
        self._settings.networking.error_backoffs = [0.02] * 50
        self._settings.watching.reconnect_backoff = 0.02
        selected: dict[str, Any] = {"registry": self._registry, "backoff": 0.02}
        kopf.on.login(registry=self._registry)(self._log_in)
        kopf.on.create(GROUP, VERSION, PLURAL, **selected)(self._keep)
        if defect != "ignores changes":
            kopf.on.update(GROUP, VERSION, PLURAL, **selected)(self._keep)
        if defect == "writes on resume":
            kopf.on.resume(GROUP, VERSION, PLURAL, **selected)(self._stamp)
        if defect != "leaves things behind":
            kopf.on.delete(GROUP, VERSION, PLURAL, **selected)(self._remove)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()

    def _log_in(self, **_: Any) -> Any:
        return kopf.ConnectionInfo(server=self._server)

    def _keep(self, spec: Any, name: str, **_: Any) -> None:
        """Writes the ConfigMap of a widget."""
        size = min(spec["size"], 2) if self._defect == "cuts large sizes" else spec["size"]
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"size": str(size)}}
        try:
            if self._ask("PUT", f"{MAPS}/{name}", body) == 404:
                self._ask("POST", MAPS, body)
        except OSError as error:
            if self._defect != "swallows errors":
                raise kopf.TemporaryError(str(error), delay=0.02) from None

    def _remove(self, name: str, **_: Any) -> None:
        try:
            self._ask("DELETE", f"{MAPS}/{name}")
        except OSError as error:
            raise kopf.TemporaryError(str(error), delay=0.02) from None

    def _stamp(self, patch: Any, **_: Any) -> None:
        patch.metadata.annotations["seen"] = datetime.now(UTC).isoformat()

    def _ask(self, method: str, path: str, body: Any = None) -> int:
        """Sends a request. Returns the status, 404 included; raises OSError for other errors."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:
                    raise
                return 404

    async def _run(self) -> None:
        await kopf.operator(
            registry=self._registry, settings=self._settings, namespaces=["default"], standalone=True, stop_flag=self._stop
        )

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)


def widget(size: int) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": size}}


class WidgetMachine(OperatorMachine):
    """The operator without a defect."""

    operator = staticmethod(lambda kubeconfig: Operator(kubeconfig, ""))
    resource = f"{PLURAL}.{GROUP}"
    definitions = DEFINITION
    faults: ClassVar = {
        "ConfigMaps are refused": lambda cluster, _: cluster.faults.on("create,update", "configmaps").status(503, times=1)
    }
    names = ("a",)
    quiet = 0.1
    patience = 0.3

    def _size(self, name: str) -> str | None:
        found = [one for one in self.cluster.list("configmaps", namespace="default") if one["metadata"]["name"] == name]
        return str(found[0]["data"]["size"]) if found else None

    def check(self, obj: dict[str, Any]) -> None:
        size = self._size(obj["metadata"]["name"])
        assert size == str(obj["spec"]["size"]), f"the size is {size}"

    def check_deleted(self, name: str) -> None:
        assert self._size(name) is None, f"the ConfigMap {name} is left"


def test_operator_without_defects_passes() -> None:
    class Machine(WidgetMachine):
        patience = 20.0  # what is right in the end is awaited, however busy this machine is

    Machine.run(max_examples=2, stateful_step_count=4, derandomize=True)


def test_command_leaves_alone_what_is_beside_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine(OperatorMachine):
        operator = (sys.executable, "-c", WATCHER)
        resource = "configmaps"
        quiet = 0.1

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    beside = tmp_path / "beside"
    beside.touch()
    Machine.run(max_examples=1, stateful_step_count=2, derandomize=True)
    assert list(tmp_path.iterdir()) == [beside]


@pytest.mark.parametrize(
    ("defect", "words", "steps"),
    [
        ("cuts large sizes", "the size is 2", ["create_or_change"]),
        ("ignores changes", "the size is", ["create_or_change", "create_or_change"]),
        ("leaves things behind", "the ConfigMap a is left", ["create_or_change", "delete"]),
        ("swallows errors", "the size is None", ["inject", "create_or_change"]),
        ("writes on resume", "a second pass over the same objects changes something", ["create_or_change", "restart"]),
    ],
)
def test_planted_defect_is_found_and_shrunk(defect: str, words: str, steps: list[str]) -> None:
    class Machine(WidgetMachine):
        operator = staticmethod(lambda kubeconfig: Operator(kubeconfig, defect))

        def objects(self) -> st.SearchStrategy[dict[str, Any]]:
            return super().objects() if defect == "cuts large sizes" else st.sampled_from((widget(1), widget(2)))

    with pytest.raises(AssertionError, match=words) as caught:
        Machine.run(max_examples=40, stateful_step_count=4, derandomize=True, attempts=3)
    shown = "\n".join(getattr(caught.value, "__notes__", ()))
    found = [step for step in re.findall(r"state\.(\w+)\(", shown) if step not in ("holds", "teardown")]
    assert set(steps) <= {*found, *(step.removesuffix("_while_stopped") for step in found)}
    assert len(found) <= len(steps) + 2  # the number of attempts is bounded


def test_steps_that_have_passed_before_are_performed_in_their_order() -> None:
    done: list[str] = []

    class Machine(OperatorMachine):
        operator = staticmethod(lambda _kubeconfig: SimpleNamespace(stop=lambda: None))
        resource = "configmaps"
        timeout = 0.01
        _attempts = _Attempts(1)

        def play(self, *steps: str) -> None:
            for step in steps:
                self._perform(step, "", partial(self.note, step))
            self.teardown()

        def note(self, step: str) -> None:
            assert self.cluster.url
            done.append(step)

    Machine().play("first", "second")
    Machine().play("first", "second", "third")
    assert done == ["first", "second", "first", "second", "third"]


def test_objects_change_and_go_while_the_operator_is_stopped() -> None:
    missed: list[str] = []

    class Looker:
        """Compares the objects when it starts with those when the one before it was stopped."""

        left: ClassVar[dict[str, dict[str, str]]] = {}

        def __init__(self, kubeconfig: Path) -> None:
            found = re.search(r"server: (\S+)", kubeconfig.read_text())
            assert found is not None
            self._server = found[1]
            before, now = self.left.pop(self._server, {}), self._versions()
            missed.extend("deleted" if name not in now else "changed" for name in before if before[name] != now.get(name))

        def stop(self) -> None:
            self.left[self._server] = self._versions()

        def _versions(self) -> dict[str, str]:
            with urllib.request.urlopen(f"{self._server}/apis/{GROUP}/{VERSION}/{PLURAL}", timeout=60) as response:
                return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in json.load(response)["items"]}

    class Machine(OperatorMachine):
        operator = Looker
        resource = f"{PLURAL}.{GROUP}"
        definitions = DEFINITION
        faults: ClassVar = {"none": lambda _cluster, _resource: None}  # the operator tries nothing again
        quiet = patience = 0.0
        timeout = 0.01

        def objects(self) -> st.SearchStrategy[dict[str, Any]]:
            return st.sampled_from((widget(1), widget(2)))

    Machine.run(max_examples=20, derandomize=True)
    assert set(missed) == {"changed", "deleted"}
