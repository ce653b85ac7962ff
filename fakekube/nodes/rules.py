"""What pods do, as a test tells it: `cluster.pods.on(labels={"app": "web"}).run(seconds=3).exits(1)`.

Rules hold for pods that they match, those that run already included; of several that match, the one that was made last
counts. What annotations of a pod say counts before any rule.

Invariant: a rule is changed under the lock of its set, and kubelets are told of each change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final

from fakekube.controllers.reconciler import Key
from fakekube.nodes.inside import InsideWords, PodInside
from fakekube.nodes.plans import OOM_CODE, OOM_KILLED, PULL_ERROR, ContainerPlan, PodPlan, Run
from fakekube.runtime.behaviour import NOTHING, Behaviour, merged
from fakekube.selectors import parse_labels

__all__ = ["RULES", "PodRule", "Pods"]

#: The key under which kubelets look at all pods again.
RULES: Final = Key("", "")

Object = Mapping[str, Any]


class PodRule(InsideWords):
    """Which pods do what; every word returns the rule, so that words can follow each other. Times are seconds of the clock."""

    def __init__(self, pods: Pods, matches: Callable[[Object], bool], container: str | None, image: str | None = None) -> None:
        self._pods = pods
        self._container, self._image = container, image
        self.matches = matches
        """Does it hold for this pod?"""
        self.plan = PodPlan()
        """What it says."""
        self.id = 0
        """Tells it from the other rules of its cluster."""
        self.selection: dict[str, Any] = {}
        """What `Pods.on` was given."""

    def _changed(self) -> None:
        self._pods.changed()

    def concerns(self, container: Object) -> bool:
        """Is the rule about this container of a pod that it matches?"""
        named = self._container is None or container["name"] == self._container
        return named and (self._image is None or _has_image(container, self._image))

    def plan_of(self, pod: Object) -> PodPlan:
        """What it says to a pod that it matches."""
        if self._image is None:
            return self.plan
        named = {one["name"]: self.plan.main for one in pod["spec"]["containers"] if _has_image(one, self._image)}
        return replace(self.plan, main=ContainerPlan(), containers={**named, **self.plan.containers})

    def _change(self, change: Callable[[ContainerPlan], ContainerPlan]) -> PodRule:
        self.plan = self.plan.changed(self._container, change)
        self._pods.changed()
        return self

    def _change_pod(self, **fields: Any) -> PodRule:
        self.plan = replace(self.plan, **fields)
        self._pods.changed()
        return self

    # ---- how containers run

    def run(self, seconds: float) -> PodRule:
        """Containers run so long, and exit with 0 unless `exits`, `oom` or `forever` says otherwise."""
        return self._change(lambda plan: replace(plan, runs=(*plan.runs, Run(seconds))))

    def exits(self, code: int = 0, *, reason: str = "", message: str = "", times: int | None = None) -> PodRule:
        """They exit with this code: after the `run` before, or else at once; `times` runs in a row, by default all that follow.

        Raises ValueError for what is no exit code.
        """
        if not 0 <= code <= 255:
            raise ValueError(f"{code} is no exit code")

        def end(plan: ContainerPlan) -> ContainerPlan:
            last = plan.runs[-1] if plan.runs else None
            open_ = last is not None and last == Run(last.seconds)
            seconds = last.seconds if last is not None and open_ else 0.0
            before = plan.runs[:-1] if open_ else plan.runs
            return replace(plan, runs=(*before, Run(seconds, code, reason, message, times)))

        return self._change(end)

    def oom(self, *, times: int | None = None) -> PodRule:
        """They use too much memory and are killed."""
        return self.exits(OOM_CODE, reason=OOM_KILLED, times=times)

    def unhealthy(self, after: float = 0.0, *, probe: str = "liveness", times: int | None = None) -> PodRule:
        """A probe (liveness or startup) fails so long after their start: they are killed and restarted."""
        return self._change(lambda plan: replace(plan, runs=(*plan.runs, Run(after, OOM_CODE, "Error", "", times, probe))))

    def forever(self) -> PodRule:
        """They run, and do not end."""
        return self._change(lambda plan: replace(plan, runs=(*plan.runs, Run())))

    def starts(self, after: float | None) -> PodRule:
        """The pod's containers start after so long; None: never (they are being created)."""
        return self._change_pod(start_seconds=after)

    def ready(self, after: float) -> PodRule:
        """They are ready so long after their start."""
        return self._change(lambda plan: replace(plan, ready_after=after))

    def never_ready(self) -> PodRule:
        """They run, but are not ready."""
        return self._change(lambda plan: replace(plan, ready_after=None))

    def terminates(self, after: float) -> PodRule:
        """They take so long to end when their pod is deleted, but no longer than its grace period."""
        return self._change(lambda plan: replace(plan, stop_seconds=after))

    # ---- images

    def pulls(self, seconds: float) -> PodRule:
        """The image takes so long."""
        return self._change(lambda plan: replace(plan, pull_seconds=seconds))

    def image_pull_back_off(self, message: str = PULL_ERROR, *, times: int | None = None) -> PodRule:
        """The image cannot be pulled; `times`: it can after so many failures."""
        return self._change(lambda plan: replace(plan, pull_error=message, pull_failures=times))

    # ---- the pod as a whole

    def fails(self, reason: str = "", message: str = "", *, after: float = 0.0) -> PodRule:
        """The pod fails as a whole."""
        return self._change_pod(failure=(after, reason, message))

    def evicted(self, message: str = "The node was low on resource: memory.", *, after: float = 0.0) -> PodRule:
        """Its node evicts the pod."""
        return self.fails("Evicted", message, after=after)

    def remove(self) -> None:
        """The rule holds no more; pods that run go on as they are."""
        self._pods.remove(self)


class Pods:
    """The rules of a cluster: `cluster.pods`.

    Args:
        changed: called after each change.
        inside: returns what is inside the pod of a namespace and a name.
    """

    def __init__(self, changed: Callable[[], None], inside: Callable[[str, str], PodInside]) -> None:
        self._inside = inside
        self._lock = threading.Lock()
        self._rules: list[PodRule] = []
        self._last = 0
        self.changed = changed

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
        """Begin a rule for pods.

        Args:
            labels: that the pods have: a mapping, or a selector as kubectl reads it.
            namespace, name, node: where they are, and what they are called; patterns with `*` and `?`.
            container: the one that the words that follow are about; by default all but init containers and sidecars.
            image: that these containers have: a pattern for the whole name or its last part, with or without tag.

        Raises SelectorError.
        """
        selector = parse_labels(labels) if isinstance(labels, str) else None
        wanted = {} if labels is None or isinstance(labels, str) else dict(labels)

        def matches(pod: Object) -> bool:
            metadata = pod["metadata"]
            found = metadata.get("labels") or {}
            return (
                wanted.items() <= found.items()
                and (selector is None or selector.matches(found))
                and _is_like(metadata["namespace"], namespace)
                and _is_like(metadata["name"], name)
                and _is_like(pod["spec"].get("nodeName") or "", node)
                and (image is None or any(_has_image(one, image) for one in _containers(pod)))
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
        """Have the same rules as others have now."""
        for rule in others:
            twin = PodRule(self, rule.matches, rule._container, rule._image)
            twin.plan, twin.behaviour = rule.plan, rule.behaviour
            twin.id, twin.selection = rule.id, rule.selection
            with self._lock:
                self._last = max(self._last, twin.id)
                self._rules.append(twin)
        self.changed()

    def plan_for(self, pod: Object) -> PodPlan | None:
        """What the rules tell a pod: of those that match, each says what it says of its containers, the last one first."""
        with self._lock:
            found = [rule for rule in self._rules if rule.plan != PodPlan() and rule.matches(pod)]
        if not found:
            return None
        plan = found[-1].plan_of(pod)
        for rule in reversed(found[:-1]):
            if containers := rule.plan_of(pod).containers:
                plan = replace(plan, containers={**containers, **plan.containers})
        return plan

    def behaviour_of(self, pod: Object, container: Object) -> Behaviour:
        """What the rules say of the inside of a container."""
        with self._lock:
            found = [
                rule for rule in self._rules if rule.behaviour is not NOTHING and rule.matches(pod) and rule.concerns(container)
            ]
        return merged(rule.behaviour for rule in found) if found else NOTHING

    @property
    def run_commands(self) -> bool:
        """Does any rule let containers run their commands?"""
        return any(rule.behaviour.follows_command for rule in self._rules)

    def get(self, name: str, namespace: str = "default") -> PodInside:
        """A pod from inside: `.log("ready")`, `.logs()`, `.exec("ls")`, `.files()`, `.connect(port)`."""
        return self._inside(namespace, name)

    def remove(self, rule: PodRule) -> None:
        """See `PodRule.remove`."""
        with self._lock:
            if rule in self._rules:
                self._rules.remove(rule)

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._rules.clear()

    def __iter__(self) -> Iterator[PodRule]:
        with self._lock:
            return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)


def _containers(pod: Object) -> Iterator[Object]:
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        yield from pod["spec"].get(kind) or ()


def _has_image(container: Object, pattern: str) -> bool:
    image = container.get("image") or ""
    untagged = image.partition("@")[0]
    if untagged.rfind(":") > untagged.rfind("/"):
        untagged = untagged[: untagged.rfind(":")]
    last = image.rpartition("/")[2]
    return any(fnmatchcase(one, pattern) for one in (image, untagged, last, untagged.rpartition("/")[2]))


def _is_like(text: str, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(text, pattern)
