"""Rules for the behaviour of pods in tests: `cluster.pods.on(labels={"app": "web"}).run(seconds=3).exits(1)`.

A rule applies to the pods that it matches, including running ones. Of several matching rules the last one that was added takes
precedence. Annotations of a pod take precedence over all rules. `PodInside` is what `cluster.pods.get(…)` returns.

Invariant: the list of rules is changed under a lock, and kubelets are notified of each change. A `Behaviour` is immutable; each
method of a rule replaces it, and the runtime reads it for each use.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from fakekube.apimachinery.selectors import parse_labels
from fakekube.apis.core.pods.visitor import containers
from fakekube.base.objects import StoredObject
from fakekube.controllers.reconciler import Key
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import KubeletError, Streams
from fakekube.nodes.images.names import is_matched
from fakekube.nodes.plans import OOM_CODE, OOM_KILLED, PULL_ERROR, ContainerPlan, PodPlan, Run
from fakekube.nodes.runtime.behaviour import NOTHING, Behaviour, LogPlan, Usage, merge_behaviours

if TYPE_CHECKING:
    from fakekube.net.streaming.kubelet_api import Connection, Destination, Execution
    from fakekube.nodes.runtime.behaviour import Handler, PortHandler
    from fakekube.nodes.runtime.container import Container
    from fakekube.nodes.runtime.filesystem import FileSystem
    from fakekube.nodes.runtime.runtime import Runtime


#: Real seconds for which `PodInside.exec` waits.
EXEC_TIMEOUT = 10.0
#: The maximum number of bytes that `PodInside.exec` collects from both streams together.
OUTPUT_BYTES: Final = 16 << 20


class BehaviourRule:
    """The methods of a rule that define what happens inside containers. Each returns the rule."""

    behaviour: Behaviour = NOTHING
    """The behaviour that was defined."""

    def _on_change(self) -> None:
        """Called after each change."""

    def _behave(self, **changes: Any) -> Self:
        self.behaviour = replace(self.behaviour, **changes)
        self._on_change()
        return self

    def logs(
        self,
        line: str | Callable[[int], str] = "",
        *,
        every: float = 0.0,
        times: int | None = None,
        lines: Sequence[str] = (),
        file: str | PathLike[str] | None = None,
        stream: str = "stdout",
    ) -> Self:
        """Defines the log of the containers, instead of the output of their command.

        Args:
            line: a line, or a function that returns the line for its number (from 0).
            every: seconds of the clock between two lines; with 0 there is a single line.
            times: the number of lines; None for no end.
            lines: the content of the log at the start.
            file: a file of this machine whose content is in the log at the start.
            stream: stdout or stderr.
        """
        plan = LogPlan(line, every, times, tuple(lines), None if file is None else Path(file), stream)
        return self._behave(logs=plan)

    def exec(self, handler: Handler | None, *, command: str | None = None) -> Self:
        """Defines a function that runs instead of a program in the containers.

        Args:
            handler: called with a `Context` (command, stdin, stdout, stderr, env, pod, container, files) in a thread of its
                own; returns the exit code, or a text for stdout. None restores the shell.
            command: the program that the function replaces, also within scripts; None for every exec.
        """
        if command is None:
            return self._behave(exec=handler)
        kept = {name: one for name, one in self.behaviour.commands.items() if name != command}
        return self._behave(commands=kept if handler is None else {**kept, command: handler})

    def attach(self, handler: Handler | None) -> Self:
        """Defines a function that serves attach requests; see `exec`."""
        return self._behave(attach=handler)

    def serve(self, port: int, what: Destination | PortHandler) -> Self:
        """Defines the server of a port, for port-forward, proxies, and containers that connect to it.

        Args:
            port: the port of the pod.
            what: a WSGI application; a function of two pipes, `handler(incoming, outgoing)`, which has a thread while
                a connection lasts; or `(host, port)` of this machine.
        """
        return self._behave(ports={**self.behaviour.ports, port: what})

    def refuse(self, port: int) -> Self:
        """Defines that nothing listens on a port."""
        return self._behave(ports={**self.behaviour.ports, port: None})

    def uses(self, cpu: Any = None, memory: Any = None) -> Self:
        """Defines the usage of containers: a quantity ("250m", "64Mi", a number), or a function of the Pod that returns one."""
        usage = self.behaviour.usage or Usage()
        return self._behave(usage=Usage(usage.cpu if cpu is None else cpu, usage.memory if memory is None else memory))

    def host_programs(self) -> Self:
        """Runs programs that the shell of the containers lacks on this machine, with its files and permissions."""
        return self._behave(host_programs=True)

    def runs_command(self) -> Self:
        """Runs the command and arguments of containers in the shell; they terminate with it, with its exit code."""
        return self._behave(follows_command=True)


@dataclass(slots=True, frozen=True)
class Result:
    """The result of a program."""

    code: int
    stdout: str
    stderr: str


class PodInside:
    """The inside of one pod: `cluster.pods.get("web-0")`.

    Args:
        pod: returns the present pod. Raises LookupError.
        runtime: the container runtime of the cluster.
    """

    def __init__(self, pod: Callable[[], Mapping[str, Any]], runtime: Runtime) -> None:
        self._pod, self._runtime = pod, runtime

    def _container(self, name: str | None) -> Container:
        pod = self._pod()
        chosen = name or pod["metadata"].get("annotations", {}).get("kubectl.kubernetes.io/default-container")
        return self._runtime.container(pod, chosen or pod["spec"]["containers"][0]["name"])

    def log(self, *lines: str, container: str | None = None, stream: str = "stdout") -> None:
        """Writes lines to the log of a container; by default the first one. Raises KubeletError if it is not running."""
        found = self._container(container)
        found.main.catch_up()
        found.log.write("".join(f"{line}\n" for line in lines).encode(), self._runtime.clock.now(), stream)

    def logs(self, container: str | None = None) -> str:
        """Returns the log of a container."""
        found = self._container(container)
        found.main.catch_up()
        return b"".join(line.text for line in found.log.read_lines()[0]).decode("utf-8", "replace")

    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = b"",
        container: str | None = None,
        timeout: float = EXEC_TIMEOUT,
    ) -> Result:
        """Runs a program, as kubectl exec does; a text is run by sh.

        Raises:
            TimeoutError: it has not ended after so many real seconds; it runs on, and its output is dropped.
            KubeletError: the container is not running, or the output has more than `OUTPUT_BYTES`.
        """
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        data = stdin.encode() if isinstance(stdin, str) else stdin
        incoming, outgoing = Pipe(max(len(data), 1)), (Pipe(), Pipe())
        with contextlib.suppress(BrokenPipeError):
            incoming.write_all(data)
        incoming.close()
        execution = self._runtime.exec(self._pod(), self._container(container).name, words, Streams(incoming, *outgoing))
        stdout, stderr = _collect_output(execution, outgoing, words[0], timeout)
        assert execution.exit is not None
        return Result(execution.exit.code, stdout, stderr)

    def files(self, container: str | None = None) -> FileSystem:
        """Returns the files of a container: `read(path)`, `write(path, data)`, `exists(path)`, `list(path)` …"""
        return self._container(container).files

    def connect(self, port: int) -> Connection:
        """Returns a connection to a port. Raises OSError if nothing listens there."""
        return self._runtime.connect(self._pod(), port)


def _collect_output(execution: Execution, pipes: Sequence[Pipe], program: str, timeout: float) -> list[str]:
    """Returns what a program has written to each of its pipes when it has ended. Raises as `PodInside.exec` does."""
    changed, deadline = threading.Event(), time.monotonic() + timeout
    execution.subscribe(changed.set)
    for pipe in pipes:
        pipe.subscribe(changed.set)
    output = [bytearray() for _ in pipes]
    try:
        while True:
            changed.clear()
            has_ended = execution.exit is not None
            for received, pipe in zip(output, pipes, strict=True):
                data = pipe.read()
                received.extend(data or b"")
                if data:
                    changed.set()  # there may be more
                has_ended = has_ended and data == b""
            if has_ended:
                return [received.decode("utf-8", "replace") for received in output]
            if sum(map(len, output)) > OUTPUT_BYTES:
                raise KubeletError(413, f"the output of {program} has more than {OUTPUT_BYTES} bytes")
            left = deadline - time.monotonic()
            if left <= 0 or not changed.wait(left):
                raise TimeoutError(f"{program} did not end in {timeout} s")
    finally:
        execution.cancel()  # without effect if it has ended


#: The key that makes kubelets sync all pods.
RULES: Final = Key("", "")


class PodRule(BehaviourRule):
    """A rule. Its methods return the rule, so that they can be chained. Times are seconds of the clock."""

    def __init__(
        self, pods: Pods, matches: Callable[[StoredObject], bool], container: str | None, image: str | None = None
    ) -> None:
        self._pods = pods
        self._container, self._image = container, image
        self.matches = matches
        """Whether the rule applies to a pod."""
        self.plan = PodPlan()
        """The plan that was defined."""
        self.id = 0
        """The id of the rule in its cluster."""
        self.selection: dict[str, Any] = {}
        """The arguments of `Pods.on`."""
        self.defined: dict[str, Any] = {}
        """The methods and their arguments, if the rule was made over HTTP."""

    def _on_change(self) -> None:
        self._pods.notify_kubelets()

    def concerns(self, container: StoredObject) -> bool:
        """Reports whether the rule applies to this container of a pod that it matches."""
        named = self._container is None or container["name"] == self._container
        return named and (self._image is None or _has_image(container, self._image))

    def plan_of(self, pod: StoredObject) -> PodPlan:
        """Returns the plan for a pod that it matches."""
        if self._image is None:
            return self.plan
        named = {one["name"]: self.plan.main for one in pod["spec"]["containers"] if _has_image(one, self._image)}
        return replace(self.plan, main=ContainerPlan(), containers={**named, **self.plan.containers})

    def _change(self, change: Callable[[ContainerPlan], ContainerPlan]) -> PodRule:
        self.plan = self.plan.with_change(self._container, change)
        self._pods.notify_kubelets()
        return self

    def _change_pod(self, **fields: Any) -> PodRule:
        self.plan = replace(self.plan, **fields)
        self._pods.notify_kubelets()
        return self

    # --- Runs of containers -------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> PodRule:
        """Lets containers run for so long; they exit with 0 unless `exits` or `oom` follows."""
        return self._change(lambda plan: replace(plan, runs=(*plan.runs, Run(seconds))))

    def exits(self, code: int = 0, *, reason: str = "", message: str = "", times: int | None = None) -> PodRule:
        """Lets containers exit with this code: after the preceding `run`, or else at once.

        Args:
            code: the exit code, from 0 to 255.
            reason: the reason; by default Completed or Error.
            message: the message of the termination.
            times: the number of runs that end so; None for all further ones.

        Raises:
            ValueError: the exit code is invalid.
        """
        if not 0 <= code <= 255:
            raise ValueError(f"invalid exit code: {code}")

        def end(plan: ContainerPlan) -> ContainerPlan:
            last = plan.runs[-1] if plan.runs else None
            open_ = last is not None and last == Run(last.seconds)
            seconds = last.seconds if last is not None and open_ else 0.0
            before = plan.runs[:-1] if open_ else plan.runs
            return replace(plan, runs=(*before, Run(seconds, code, reason, message, times)))

        return self._change(end)

    def oom(self, *, times: int | None = None) -> PodRule:
        """Lets containers be killed because they use too much memory."""
        return self.exits(OOM_CODE, reason=OOM_KILLED, times=times)

    def unhealthy(self, after: float = 0.0, *, probe: str = "liveness", times: int | None = None) -> PodRule:
        """Lets a probe (liveness or startup) fail so long after the start: containers are killed and restarted."""
        return self._change(lambda plan: replace(plan, runs=(*plan.runs, Run(after, OOM_CODE, "Error", "", times, probe))))

    def forever(self) -> PodRule:
        """Lets containers run without an end."""
        return self._change(lambda plan: replace(plan, runs=(*plan.runs, Run())))

    def starts(self, after: float | None) -> PodRule:
        """Starts the pod's containers after so long; None: never (they remain in ContainerCreating)."""
        return self._change_pod(start_seconds=after)

    def ready(self, after: float) -> PodRule:
        """Makes containers ready so long after their start."""
        return self._change(lambda plan: replace(plan, ready_after=after))

    def never_ready(self) -> PodRule:
        """Lets containers run without becoming ready."""
        return self._change(lambda plan: replace(plan, ready_after=None))

    def terminates(self, after: float) -> PodRule:
        """Sets how long containers take to stop when their pod is deleted, at most its grace period."""
        return self._change(lambda plan: replace(plan, stop_seconds=after))

    # --- Images -------------------------------------------------------------------------------------------------------

    def pulls(self, seconds: float) -> PodRule:
        """Sets how long the image is pulled."""
        return self._change(lambda plan: replace(plan, pull_seconds=seconds))

    def image_pull_back_off(self, message: str = PULL_ERROR, *, times: int | None = None) -> PodRule:
        """Lets pulling the image fail; with `times`, it succeeds after so many failures."""
        return self._change(lambda plan: replace(plan, pull_error=message, pull_failures=times))

    # --- The pod as a whole -------------------------------------------------------------------------------------------

    def fails(self, reason: str = "", message: str = "", *, after: float = 0.0) -> PodRule:
        """Fails the pod as a whole, after so long."""
        return self._change_pod(failure=(after, reason, message))

    def evicted(self, message: str = "The node was low on resource: memory.", *, after: float = 0.0) -> PodRule:
        """Lets the node evict the pod, after so long."""
        return self.fails("Evicted", message, after=after)

    def remove(self) -> None:
        """Removes the rule; running pods are not changed."""
        self._pods.remove(self)


class Pods:
    """The rules of a cluster: `cluster.pods`.

    Args:
        changed: called after each change.
        inside: returns the inside of a pod, by namespace and name.
    """

    def __init__(self, changed: Callable[[], None], inside: Callable[[str, str], PodInside]) -> None:
        self._inside = inside
        self._lock = threading.Lock()
        self._rules: list[PodRule] = []
        self._last = 0
        self.notify_kubelets = changed

    def on(
        self,
        labels: Mapping[str, str] | str | None = None,
        *,
        namespace: str | None = None,
        name: str | None = None,
        node: str | None = None,
        container: str | None = None,
        image: str | None = None,
    ) -> PodRule:
        """Adds a rule for pods.

        Args:
            labels: the labels of the pods: a mapping, or a label selector.
            namespace: a pattern with `*` and `?` for their namespace.
            name: a pattern for their name.
            node: a pattern for the name of their node.
            container: the container to which the rule applies; by default all but init containers and sidecars.
            image: a pattern for the images of these containers: the whole name or its last part, with or without the tag.

        Raises:
            SelectorError: the label selector is invalid.
        """
        selector = parse_labels(labels) if isinstance(labels, str) else None
        required = {} if labels is None or isinstance(labels, str) else dict(labels)

        def matches(pod: StoredObject) -> bool:
            metadata = pod["metadata"]
            found = metadata.get("labels") or {}
            return (
                required.items() <= found.items()
                and (selector is None or selector.matches(found))
                and _matches_pattern(metadata["namespace"], namespace)
                and _matches_pattern(metadata["name"], name)
                and _matches_pattern(pod["spec"].get("nodeName") or "", node)
                and (image is None or any(_has_image(one, image) for one in containers(pod["spec"])))
            )

        rule = PodRule(self, matches, container, image)
        given = {"labels": labels, "namespace": namespace, "name": name, "node": node, "container": container, "image": image}
        rule.selection = {key: value for key, value in given.items() if value is not None}
        with self._lock:
            self._last += 1
            rule.id = self._last
            self._rules.append(rule)
        return rule

    def adopt(self, others: Pods) -> None:
        """Adds copies of all rules of another cluster."""
        for rule in others:
            copy = PodRule(self, rule.matches, rule._container, rule._image)
            copy.plan, copy.behaviour = rule.plan, rule.behaviour
            copy.id, copy.selection, copy.defined = rule.id, rule.selection, rule.defined
            with self._lock:
                self._last = max(self._last, copy.id)
                self._rules.append(copy)
        self.notify_kubelets()

    def plan_for(self, pod: StoredObject) -> PodPlan | None:
        """Returns the plan for a pod: that of the last matching rule, with the plans of single containers of earlier ones."""
        with self._lock:
            found = [rule for rule in self._rules if rule.plan != PodPlan() and rule.matches(pod)]
        if not found:
            return None
        plan = found[-1].plan_of(pod)
        for rule in reversed(found[:-1]):
            if containers := rule.plan_of(pod).containers:
                plan = replace(plan, containers={**containers, **plan.containers})
        return plan

    def has_behaviour(self, pod: StoredObject, container: StoredObject) -> bool:
        """Reports whether a rule says how a container behaves."""
        return self.behaviour_of(pod, container) != NOTHING

    def behaviour_of(self, pod: StoredObject, container: StoredObject) -> Behaviour:
        """Returns the behaviour of a container, merged from all matching rules."""
        with self._lock:
            found = [
                rule for rule in self._rules if rule.behaviour is not NOTHING and rule.matches(pod) and rule.concerns(container)
            ]
        return merge_behaviours(rule.behaviour for rule in found) if found else NOTHING

    @property
    def run_commands(self) -> bool:
        """Whether a rule lets containers run their commands."""
        return any(rule.behaviour.follows_command for rule in self._rules)

    def get(self, name: str, namespace: str = "default") -> PodInside:
        """Returns the inside of a pod: `.log("ready")`, `.logs()`, `.exec("ls")`, `.files()`, `.connect(port)`."""
        return self._inside(namespace, name)

    def remove(self, rule: PodRule) -> None:
        """Removes a rule, see `PodRule.remove`."""
        with self._lock:
            if rule in self._rules:
                self._rules.remove(rule)

    def clear(self) -> None:
        """Removes all rules."""
        with self._lock:
            self._rules.clear()

    def __iter__(self) -> Iterator[PodRule]:
        with self._lock:
            return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)


def _has_image(container: StoredObject, pattern: str) -> bool:
    return is_matched(container.get("image") or "", pattern)


def _matches_pattern(text: str, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(text, pattern)
