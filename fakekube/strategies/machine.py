"""`OperatorMachine`: a state machine of hypothesis that exercises an operator and judges what the cluster becomes.

Its steps create, change and delete objects of the operator's resource, restart the operator, advance the clock, and arm faults.
After each step it waits until the operator has nothing left to do, and checks that

* it comes to rest within `timeout`, and its process has not ended;
* every object is as `check` expects, and of deleted ones nothing is left that `check_deleted` complains about;
* nothing fights, and nobody writes the same again and again (`Cluster.findings`);
* after a restart, a second pass over the same objects changes nothing.

Seconds in which a thread of the operator or of the API server runs, or waits for a processor, are no seconds of rest, so that a
busy machine finds no defects that are none.

hypothesis shrinks the steps of a failure to the fewest and simplest ones that still fail. Each attempt takes real time, so `run`
bounds their number. Steps that have passed before are performed only when others follow, failed ones raise the same
error again; when no attempt is left, all others are only noted.

Invariant: an example begins with a fresh cluster and a fresh operator, and leaves neither behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fakekube.apimachinery.data import DEFAULT
from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.base.objects import Object
from fakekube.checker.alterations import changes_between
from fakekube.checker.process import ClientProcess, Starter, starter_of
from fakekube.cluster import Cluster
from fakekube.controllers.client import ApiError
from fakekube.strategies.objects import objects

if TYPE_CHECKING:
    from fakekube.cluster_options import Source


_WRITES: Final = "create,update,patch,delete"
#: Name → what arms the fault, from the cluster and the resource of the operator.
FAULTS: Final[Mapping[str, Callable[[Cluster, str], object]]] = {
    "a write is refused with 503": lambda cluster, _: cluster.faults.on(_WRITES, "*").status(503, times=1),
    "a write meets a conflict": lambda cluster, _: cluster.faults.on("update,patch", "*").conflict(times=1),
    "the answer to a write is lost": lambda cluster, _: cluster.faults.on("create,update,patch", "*").lose(times=1),
    "watches end": lambda cluster, resource: cluster.faults.on("watch", resource).end(times=1),
    "the history is compacted": lambda cluster, resource: cluster.faults.on("watch", resource).gone(times=1),
    "the API server restarts": lambda cluster, _: cluster.restart(cold=0.0),
}
_MISTAKES: Final = frozenset({"fight", "hot loop"})
#: Resources whose changes do not count in a second pass.
_INCIDENTAL: Final = frozenset({"events", "leases"})
_CONFLICT: Final = 409
_INVALID: Final = 422
#: Seconds between two looks at the processor time that others have used.
_SLICE: Final = 0.05
#: The part of the time that is rest at least: other threads of the process, which are not the operator's, may be busy for ever.
_LEAST_REST: Final = 0.2
#: How many times as long as a given time it may take on a busy machine.
_BUSY_FACTOR: Final = 20.0
_RETRIES: Final = 10


Steps = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Attempts:
    """What is known of the examples of one run, and how many attempts to shrink a failure are left."""

    left: int
    passed: set[tuple[Steps, str]] = field(default_factory=set)
    """The steps, and what was done after them without an error."""
    failures: dict[tuple[Steps, str], AssertionError] = field(default_factory=dict)

    def begin(self) -> bool:
        """Reports whether an example is performed, and counts it if it is an attempt to shrink."""
        if self.failures:
            self.left -= 1
        return self.left >= 0


class OperatorMachine(RuleBasedStateMachine):
    """The base class of machines for an operator; a subclass sets `operator` and `resource`, and overrides `check`."""

    operator: ClassVar[Sequence[str] | Callable[..., Any]]
    """How the operator is started, as for `fakekube.check`: a command, which receives KUBECONFIG, or a function that receives the
    path of a kubeconfig. A function in a class body is a staticmethod."""
    resource: ClassVar[str]
    """What users create: "widgets.example.com"."""
    definitions: ClassVar[Source | None] = None
    """Manifests that are loaded first, such as definitions."""
    profile: ClassVar[str] = "apiserver"
    version: ClassVar[str] = DEFAULT
    namespace: ClassVar[str] = "default"
    names: ClassVar[Sequence[str]] = ("a", "b")
    """The names of the objects."""
    faults: ClassVar[Mapping[str, Callable[[Cluster, str], object]]] = FAULTS
    """Name → what arms a fault, from the cluster and the resource; by default `FAULTS`."""
    quiet: ClassVar[float] = 0.3
    """Seconds of rest without a request after which the operator counts as idle."""
    patience: ClassVar[float] = 2.0
    """Seconds of rest for which a check may fail before it counts."""
    timeout: ClassVar[float] = 20.0
    """Real seconds in which the operator has to come to rest."""

    _attempts: ClassVar[_Attempts | None] = None

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[tuple[str, str]] = []
        self._contents: dict[str, Object] = {}
        """The objects that exist, as they were drawn last, by name."""
        self._deleted: set[str] = set()
        self._pending: list[Callable[[], object]] = []
        """What has passed before and is still to be performed."""
        self._is_performed: bool | None = None
        """None: that is not decided."""
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster of the example, after all steps until now."""
        if self._cluster is None:
            self.folder = Path(tempfile.mkdtemp(prefix="fakekube-machine-"))
            self._cluster = Cluster(version=self.version, profile=self.profile).start()
            if self.definitions is not None:
                self._cluster.load(self.definitions)
            self._starter: Starter = starter_of(type(self).operator)
            self._start()
        pending, self._pending = self._pending, []  # each step uses `cluster`, too, which must not perform the steps after it
        for perform in pending:
            perform()
        return self._cluster

    # --- For subclasses -----------------------------------------------------------------------------------------------

    def objects(self) -> st.SearchStrategy[Object]:
        """Returns the strategy for what users create; by default all that the API server accepts."""
        return _objects(self.resource, self.definitions, self.version, tuple(self.names), self.namespace)

    def check(self, obj: Object) -> None:
        """Checks an object when the operator has come to rest. Raises AssertionError."""

    def check_deleted(self, name: str) -> None:
        """Checks what is left of an object that was deleted and is gone. Raises AssertionError."""

    @classmethod
    def run(cls, *, attempts: int = 60, **options: Any) -> None:
        """Runs the machine as a test.

        Args:
            attempts: how often it tries to shrink a failure.
            options: settings of hypothesis, besides those that suit a test with real seconds: no deadline, no health checks,
                no database, 20 examples of at most 6 steps.

        Raises what the failing steps raise; hypothesis prints the steps.
        """
        defaults = {
            "deadline": None,
            "suppress_health_check": list(HealthCheck),
            "database": None,
            "max_examples": 20,
            "stateful_step_count": 6,
            "report_multiple_bugs": False,
            "phases": (Phase.generate, Phase.shrink),
        }
        machine = type(cls.__name__, (cls,), {"_attempts": _Attempts(attempts), "__module__": cls.__module__})
        run_state_machine_as_test(machine, settings=settings(**{**defaults, **options}))

    # --- Steps --------------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def create_or_change(self, data: st.DataObject) -> None:
        """Creates an object, or gives the one of this name another content."""
        written = self._draw_object(data)
        self._perform("create or change", written, lambda: self._write(*written))

    def _draw_object(self, data: st.DataObject) -> tuple[Object, ...]:
        """Returns what is written; the second object if the API server refuses the first one."""
        obj: Object = data.draw(self.objects(), label="object")
        name = obj["metadata"]["name"]
        written: tuple[Object, ...] = (obj,)
        if name in self._contents and type(self).objects is OperatorMachine.objects:
            written = self._draw_part(data, self._contents[name], obj)
        self._contents[name] = written[0]
        self._deleted.discard(name)
        return written

    @staticmethod
    def _draw_part(data: st.DataObject, old: Object, new: Object) -> tuple[Object, ...]:
        """Returns the new object, or before it the old one with a single change: what follows a part alone may be forgotten."""
        parts = list(_parts_of(changes_between(old, {**new, "metadata": old["metadata"]})))
        part = data.draw(st.none() | st.sampled_from(parts), label="part") if len(parts) > 1 else None
        return (new,) if part is None else (apply_merge_patch(old, part), new)

    def _write(self, *objects: Object) -> None:
        *_, last = objects
        for obj in objects:
            try:
                self._write_one(obj)
            except ApiError as error:
                if error.code != _INVALID or obj is last:
                    raise
            else:
                return

    def _write_one(self, obj: Object) -> None:
        name = obj["metadata"]["name"]
        for _ in range(_RETRIES):
            current = self._find(name)
            if current is not None and "deletionTimestamp" in current["metadata"]:
                return
            try:
                if current is None:
                    self.cluster.create(obj, namespace=self.namespace)
                else:
                    kept: Object = {key: current[key] for key in ("metadata", "status") if key in current}
                    self.cluster.update({**obj, **kept}, namespace=self.namespace)
            except ApiError as error:
                if error.code != _CONFLICT:
                    raise
            else:
                return

    @precondition(lambda self: bool(self._contents))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Deletes an object."""
        name = self._draw_name(data)
        self._perform("delete", name, lambda: self._delete(name))

    def _draw_name(self, data: st.DataObject) -> str:
        """Returns the name of an object that is deleted."""
        name: str = data.draw(st.sampled_from(sorted(self._contents)), label="name")
        del self._contents[name]
        self._deleted.add(name)
        return name

    def _delete(self, name: str) -> None:
        self.cluster.delete(self.resource, name, namespace=self.namespace)

    @precondition(lambda self: self._may_stop())
    @rule(data=st.data())
    def create_or_change_while_stopped(self, data: st.DataObject) -> None:
        """Creates or changes an object while the operator does not run, which has to find it out when it starts."""
        written = self._draw_object(data)
        self._perform("create or change while stopped", written, lambda: self._restart(lambda: self._write(*written)))

    @precondition(lambda self: self._may_stop())
    @rule(data=st.data())
    def delete_while_stopped(self, data: st.DataObject) -> None:
        """Deletes an object while the operator does not run."""
        name = self._draw_name(data)
        self._perform("delete while stopped", name, lambda: self._restart(lambda: self._delete(name)))

    def _restart(self, change: Callable[[], object] | None = None) -> None:
        """Stops the operator when it has come to rest, makes a change, and starts it again without faults."""
        self.cluster.faults.clear()
        self.settle()
        self._stop()
        if change is not None:
            change()
        self._start()

    def _may_stop(self) -> bool:
        """Reports whether there are objects, and no fault that a restart would clear before the operator meets it."""
        return bool(self._contents) and self._steps[-1][0] != "inject"

    @precondition(lambda self: bool(self._contents))
    @rule(hours=st.sampled_from((0.01, 1, 24)))
    def advance(self, hours: float) -> None:
        """Moves the clock of the cluster."""
        self._perform("advance", hours, lambda: self.cluster.clock.advance(hours=hours))

    @precondition(lambda self: not self._steps or self._steps[-1][0] != "inject")
    @rule(data=st.data())
    def inject(self, data: st.DataObject) -> None:
        """Arms a fault."""
        name = data.draw(st.sampled_from(tuple(self.faults)), label="fault")
        self._perform("inject", name, lambda: self.faults[name](self.cluster, self.resource))

    @precondition(lambda self: self._may_stop() and self._steps[-1][0] != "restart")
    @rule()
    def restart(self) -> None:
        """Restarts the operator; its second pass over the same objects changes nothing."""
        self._perform("restart", "", self._check_second_pass)

    def _check_second_pass(self) -> None:
        self.cluster.faults.clear()
        self.settle()
        before = self.cluster.snapshot().revision
        self._restart()
        self.settle()
        changed = [
            f"{one.verb} {one.resource}/{one.name}"
            for one in self.cluster.requests.where()
            if one.verb in _WRITES.split(",") and one.revision and one.revision > before and one.resource not in _INCIDENTAL
        ]
        assert not changed, f"after a restart, a second pass over the same objects changes something: {', '.join(changed)}"

    @invariant()
    def holds(self) -> None:
        """Checks everything, when the operator has come to rest."""
        self._judge("at rest", self._check_at_rest)

    def _perform(self, step: str, argument: object, perform: Callable[[], object]) -> None:
        """Performs a step, or notes it."""
        self._steps.append((step, repr(argument)))
        self._judge("in a step", perform)

    def _judge(self, where: str, check: Callable[[], object]) -> None:
        """Performs what may fail, unless it is known to pass or to fail. Raises AssertionError."""
        attempts, key = self._attempts or _Attempts(1), (tuple(self._steps), where)
        if key in attempts.failures:
            raise attempts.failures[key]
        if key in attempts.passed and self._cluster is None:
            self._pending.append(check)
            return
        if self._is_performed is None:
            self._is_performed = attempts.begin()
        if not self._is_performed:
            return
        try:
            self._pending.append(check)
            assert self.cluster
        except AssertionError as error:
            attempts.failures[key] = error
            raise
        attempts.passed.add(key)

    def _check_at_rest(self) -> None:
        left = self.patience
        while True:
            self.settle()
            try:
                self._check_all()
            except AssertionError:
                rested = self._rest_until_request(left, self.cluster.requests.mark())
                if rested is None:
                    raise
                left -= rested + self.quiet
            else:
                return

    # --- Rest ---------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Waits until the operator and the controllers have nothing left to do. Raises AssertionError after `timeout`."""
        end = time.monotonic() + self.timeout
        while True:
            code = self._client.exit_code()
            assert code is None, f"the operator has ended with {code}: {self._client.output()}"
            self.cluster.settle(self.timeout)
            if not self._hears(self.quiet):
                return
            if time.monotonic() > end:
                latest = [f"{one.verb} {one.resource}/{one.name}" for one in list(self.cluster.requests.where())[-5:]]
                raise AssertionError(f"the operator does not come to rest in {self.timeout:g} s: {', '.join(latest)} …")

    def _hears(self, seconds: float) -> bool:
        """Reports whether a client sends a request within some seconds of rest."""
        return self._rest_until_request(seconds, self.cluster.requests.mark()) is not None

    def _rest_until_request(self, seconds: float, mark: int) -> float | None:
        """Waits for a request after a mark; returns the seconds of rest before it, None if there is none within `seconds`."""
        assert self._cluster is not None
        view, rested, end = self._cluster.requests.since(mark), 0.0, time.monotonic() + seconds * _BUSY_FACTOR
        processes = {os.getpid(), self._client.process_id}
        now, busy = time.monotonic(), _busy_seconds(processes)
        while rested < seconds and now < end and self._client.exit_code() is None:
            with suppress(TimeoutError):
                view.wait(1, timeout=min(seconds - rested, _SLICE))
                return rested
            began, was_busy, now, busy = now, busy, time.monotonic(), _busy_seconds(processes)
            passed = now - began
            ran = max(busy - was_busy, 0.0)  # a thread that has ended makes the sum smaller
            rested += max(passed - ran, passed * _LEAST_REST)
        return None

    def _check_all(self) -> None:
        for obj in self.cluster.list(self.resource, namespace=self.namespace):
            metadata = obj["metadata"]
            finalizers = ", ".join(metadata.get("finalizers") or ())
            assert "deletionTimestamp" not in metadata, f"{metadata['name']} is still being deleted: {finalizers}"
            self.check(obj)
        for name in sorted(self._deleted - set(self._existing())):
            self.check_deleted(name)
        mistakes = [str(one) for one in self.cluster.findings() if one.kind in _MISTAKES]
        assert not mistakes, "; ".join(mistakes)

    # --- The operator -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Starts the operator, and waits for its first request: a fault must not meet what it does before it handles errors."""
        assert self._cluster is not None
        mark = self._cluster.requests.mark()
        self._client: ClientProcess = self._starter.start(self._cluster.kubeconfig, self.folder, self.folder)
        self._rest_until_request(self.timeout, mark)

    def _stop(self) -> None:
        self._client.kill()
        self._client.join()

    def _find(self, name: str) -> Object | None:
        try:
            return self.cluster.get(self.resource, name, namespace=self.namespace)
        except ApiError:
            return None

    def _existing(self) -> list[str]:
        found = self.cluster.list(self.resource, namespace=self.namespace)
        return sorted(one["metadata"]["name"] for one in found)

    def teardown(self) -> None:
        """Ends the operator and the cluster."""
        if self._cluster is None:
            return
        self._stop()
        self._starter.close()
        self._cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _parts_of(patch: Object, path: tuple[str, ...] = ()) -> Iterator[Object]:
    """Yields the merge patches that set one value each of those of another one."""
    for key, value in patch.items():
        if isinstance(value, dict) and value:
            yield from _parts_of(value, (*path, key))
        else:
            yield reduce(lambda inner, outer: {outer: inner}, reversed((*path, key)), value)


def _busy_seconds(processes: Iterable[int]) -> float:
    """Returns how long the threads of processes have run or waited for a processor; 0 where the system does not say so."""
    total = 0
    for process in processes:
        for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with suppress(OSError, ValueError):
                ran, waited, _ = file.read_bytes().split()
                total += int(ran) + int(waited)
    return total / 1e9


_known: dict[tuple[str, int, str, tuple[str, ...], str], st.SearchStrategy[Object]] = {}


def _objects(
    resource: str, definitions: Source | None, version: str, names: tuple[str, ...], namespace: str
) -> st.SearchStrategy[Object]:
    """Returns the strategy for a machine; one for all its examples, with one cluster that judges."""
    key = (resource, id(definitions), version, names, namespace)
    if key not in _known:
        chosen = st.sampled_from(names)
        _known[key] = objects(resource, definitions=definitions, version=version, names=chosen, namespace=namespace)
    return _known[key]
