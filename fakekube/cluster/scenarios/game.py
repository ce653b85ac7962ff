"""Runs scenarios: makes the cluster, judges the tasks, plays the solution.

The player is whoever sends requests over the network from the start of the scenario on; requests of the cluster's own components
do not count.

Invariant: judging changes nothing, and sends no request that is judged.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.objects import Object
from fakekube.cluster.scenarios.scenario import PATCH_TYPES, ObjectGoal, RequestGoal, Scenario, ScenarioError, Task
from fakekube.controllers.manager import PREPARATION_TIMEOUT

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.controllers.client.remote import RemoteClient
    from fakekube.powers.requests import Requests


#: How often a step of a solution is sent again.
_RETRIES: Final = 10
#: The answers after which it is sent again; 0 stands for none.
_TRANSIENT: Final = frozenset({0, 429, 503})
#: What tells that a step whose answer was lost has been performed, by its kind.
_PERFORMED: Final = {"create": 409, "delete": 404, "patch": 404}  # of a patch, that it removed the last finalizer
#: Real seconds that a command of a solution may take.
_COMMAND_SECONDS: Final = 60.0


@dataclass(slots=True)
class TaskResult:
    """How a task ended."""

    task: Task
    passed: bool = False
    seconds: float = 0.0
    requests: int = 0
    failed: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Returns the result for JSON."""
        return {
            "title": self.task.title,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "requests": self.requests,
            "failed": self.failed,
        }


class Game:
    """A scenario that is being played.

    Args:
        scenario: what is played.
        cluster: its cluster, in the state in which the player finds it.
    """

    def __init__(self, scenario: Scenario, cluster: Cluster) -> None:
        self.scenario, self.cluster = scenario, cluster
        self._began = cluster.clock.monotonic()
        self._mark = cluster.requests.mark()
        self.results = [TaskResult(task) for task in scenario.tasks]
        cluster.describe_scenario = self.describe

    def judge(self) -> bool:
        """Judges the tasks that have not passed, and reports whether all have."""
        requests = self.cluster.requests.where().since(self._mark)
        seconds = self.cluster.clock.monotonic() - self._began
        for result in self.results:
            if result.passed:
                result.failed = self._broken_rules(result.task, requests)
                result.passed = not result.failed
                continue
            result.seconds, result.requests = seconds, len(requests)
            result.failed = [*self._unmet(result.task, requests), *self._over_budget(result)]
            result.passed = not result.failed
        return all(result.passed for result in self.results)

    def data(self) -> dict[str, Any]:
        """Returns the result for JSON."""
        passed = sum(result.passed for result in self.results)
        return {
            "scenario": self.scenario.name,
            "passed": passed == len(self.results),
            "score": round(passed / len(self.results), 3),
            "tasks": [result.data() for result in self.results],
        }

    def describe(self) -> dict[str, Any]:
        """Returns the scenario for those who play it: its texts, the tasks with hints and budgets, and the latest judgement."""
        scenario = self.scenario
        return {
            "name": scenario.name,
            "title": scenario.title,
            "text": scenario.text,
            "passed": all(result.passed for result in self.results),
            "tasks": [
                {
                    "title": result.task.title,
                    "text": result.task.text,
                    "hints": list(result.task.hints),
                    "budget": {"seconds": result.task.seconds, "requests": result.task.most_requests},
                    "passed": result.passed,
                    "failed": list(result.failed),
                }
                for result in self.results
            ],
        }

    def _unmet(self, task: Task, requests: Requests) -> list[str]:
        found = [text for goal in task.objects if (text := self._judge_objects(goal))]
        return found + [text for goal in task.requests if (text := self._judge_requests(goal, requests))]

    def _broken_rules(self, task: Task, requests: Requests) -> list[str]:
        """Returns what must not happen, and has happened after the task had passed."""
        return [text for goal in task.requests if goal.none and (text := self._judge_requests(goal, requests))]

    @staticmethod
    def _over_budget(result: TaskResult) -> list[str]:
        task, found = result.task, []
        if task.seconds is not None and result.seconds > task.seconds:
            found.append(f"{result.seconds:g} seconds, the budget is {task.seconds:g}")
        if task.most_requests is not None and result.requests > task.most_requests:
            found.append(f"{result.requests} requests, the budget is {task.most_requests}")
        return found

    def _judge_objects(self, goal: ObjectGoal) -> str:
        """Returns why a goal is not met; "" if it is."""
        from fakekube.apimachinery.cel.errors import EvaluationError
        from fakekube.apimachinery.cel.views import wrap_untyped
        from fakekube.controllers.client import UnknownResource

        what = " ".join(filter(None, (goal.resource, goal.namespace or "", goal.name or goal.label_selector)))
        try:
            found = self._objects(goal)
        except UnknownResource:  # its definition may come later
            return "" if goal.exists is False or goal.count == 0 else f"{what}: there is no such resource"
        if goal.exists is not None and bool(found) != goal.exists:
            return f"{what}: there is {'no such object' if goal.exists else 'still one'}"
        if goal.count is not None and len(found) != goal.count:
            return f"{what}: there are {len(found)} objects, not {goal.count}"
        if goal.program is None:
            return ""
        if not found:
            return f"{what}: there is no such object"
        for obj in found:
            value, _ = goal.program.evaluate({"object": wrap_untyped(obj)})
            if value is not True:
                problem = f" ({value})" if isinstance(value, EvaluationError) else ""
                return f"{goal.resource} {obj['metadata']['name']}: {' '.join(goal.cel.split())} does not hold{problem}"
        return ""

    def _objects(self, goal: ObjectGoal) -> list[Object]:
        """Returns the objects of a goal. Raises UnknownResource."""
        from fakekube.controllers.client import ApiError

        try:
            if goal.name is not None:
                return [self.cluster.get(goal.resource, goal.name, namespace=goal.namespace)]
            selector = {"label_selector": goal.label_selector} if goal.label_selector else {}
            return list(self.cluster.list(goal.resource, namespace=goal.namespace, **selector))
        except ApiError as problem:
            if problem.code == 404:
                return []
            raise

    @staticmethod
    def _judge_requests(goal: RequestGoal, requests: Requests) -> str:
        found = list(requests.where(**goal.where))
        if goal.but:
            spared = {one.number for criteria in goal.but for one in requests.where(**criteria)}
            found = [one for one in found if one.number not in spared]
        if goal.none and found:
            return f"{goal.text or _describe(goal)}: {_count_requests(len(found))}, none is allowed"
        if len(found) < (goal.count or 0):
            return f"{goal.text or _describe(goal)}: {_count_requests(len(found))}, {goal.count} needed"
        return ""


def _describe(goal: RequestGoal) -> str:
    """Returns the words for a goal whose author gave none."""
    wanted, *spared = (", ".join(f"{name} {value}" for name, value in one.items()) for one in (goal.where, *goal.but))
    return f"{wanted}, but not {' or '.join(spared)}" if spared else wanted


def _count_requests(number: int) -> str:
    return "1 request" if number == 1 else f"{number} requests"


@contextmanager
def play(scenario: Scenario, **options: Any) -> Iterator[Game]:
    """Makes the cluster of a scenario, whose clock is held, in the state in which the player finds it; stops it at the end.

    Args:
        scenario: what is played.
        options: arguments of `Cluster`, such as the port.

    Raises ScenarioError if the scenario cannot be set up.
    """
    from fakekube.cluster import Cluster
    from fakekube.cluster.testing.manifests import ManifestError
    from fakekube.controllers.client import ApiError, UnknownResource

    arguments = {"profile": scenario.profile, "nodes": scenario.nodes, **options}
    if scenario.version:
        arguments["version"] = scenario.version
    try:
        cluster = Cluster(**arguments)
    except (ValueError, LookupError, TypeError) as problem:
        raise ScenarioError(f"{scenario.name}: {problem}") from None
    with cluster:
        try:
            _set_up(scenario, cluster)
        except (ManifestError, ApiError, UnknownResource, KeyError, TypeError, ValueError) as problem:
            raise ScenarioError(f"{scenario.name}: {problem}") from None
        yield Game(scenario, cluster)


def _set_up(scenario: Scenario, cluster: Cluster) -> None:
    """Brings the cluster to the state of the scenario, and holds its clock."""
    from fakekube.cluster.control.pods import create_rule

    cluster.clock.hold()
    cluster.images.missing.extend(scenario.missing_images)
    for number, rule in enumerate(scenario.pods):
        with _name_place(f"spec.pods[{number}]"):
            create_rule(cluster, rule)
    for source in scenario.load:
        is_path = isinstance(source, str) and "\n" not in source
        cluster.load(scenario.folder / source if is_path else source)
        cluster.settle(PREPARATION_TIMEOUT)
    if scenario.advance:
        cluster.clock.advance(seconds=scenario.advance)
        cluster.settle(PREPARATION_TIMEOUT)
    cluster.keep_initial()
    for number, fault in enumerate(scenario.faults):
        with _name_place(f"spec.faults[{number}]"):
            _arm(cluster, fault)


@contextmanager
def _name_place(where: str) -> Iterator[None]:
    """Adds the place in the scenario to what is wrong there."""
    from fakekube.cluster.control.members import BadMembers

    try:
        yield
    except BadMembers as problem:
        raise ScenarioError(f"{where}: {problem}") from None


def _arm(cluster: Cluster, fault: Mapping[str, Any]) -> None:
    """Arms a fault at its time. Raises BadMembers now, if it cannot be armed then."""
    from fakekube.cluster.control.powers import arm_fault, delete_fault

    members = {name: value for name, value in fault.items() if name != "at"}
    _, armed = arm_fault(cluster, members)
    if not fault.get("at"):
        return
    delete_fault(cluster, {"id": armed["id"]})

    def arm() -> None:
        arm_fault(cluster, members)

    cluster.clock.call_at(cluster.clock.monotonic() + float(fault["at"]), arm, what="a fault")


def play_solution(game: Game) -> dict[str, Any]:
    """Plays the solution of a scenario, and returns the result. Raises ScenarioError for a step that fails."""
    from fakekube.controllers.client import ApiError, UnknownResource
    from fakekube.controllers.client.remote import RemoteClient

    cluster = game.cluster
    client = RemoteClient.of_kubeconfig(cluster.kubeconfig)
    game.judge()
    for number, step in enumerate(game.scenario.solution, 1):
        ((kind, value),) = step.items()
        try:
            if kind == "advance":
                cluster.clock.advance(seconds=float(value))
            elif kind == "kubectl":
                _run_kubectl(cluster, str(value))
            else:
                _send_patiently(client, kind, value, cluster)
        except (ApiError, UnknownResource, OSError, ValueError, KeyError, subprocess.SubprocessError) as problem:
            raise ScenarioError(f"{game.scenario.name}: step {number} of the solution: {problem}") from None
        cluster.settle(PREPARATION_TIMEOUT)
        game.judge()
    return game.data()


def _send_patiently(client: RemoteClient, kind: str, value: Any, cluster: Cluster) -> None:
    """Sends a step again, a second later, while the server is busy, unavailable or drops connections, as a player does."""
    from fakekube.controllers.client import ApiError

    is_answer_lost = False
    for attempt in range(_RETRIES + 1):
        try:
            _send(client, kind, value)
        except ApiError as problem:
            if is_answer_lost and problem.code == _PERFORMED.get(kind):
                return
            if problem.code not in _TRANSIENT or attempt == _RETRIES:
                raise
            is_answer_lost = is_answer_lost or problem.code == 0
        else:
            return
        cluster.clock.advance(seconds=1)


def _send(client: RemoteClient, kind: str, value: Any) -> None:
    """Sends the requests of a step: apply, create, patch or delete."""
    from fakekube.cluster.testing.manifests import objects

    if kind in ("apply", "create"):
        for obj in objects(value if isinstance(value, dict) else f"{value}\n"):
            metadata = obj["metadata"]
            path = client.path(client.resource(_resource_name(obj)), metadata.get("namespace") or "default")
            if kind == "create":
                client.request("POST", path, obj)
            else:
                target = f"{path}/{metadata['name']}?fieldManager=kubectl&force=true"
                client.request("PATCH", target, obj, PATCH_TYPES["apply"])
        return
    path = client.path(client.resource(value["resource"]), value.get("namespace") or "default") + f"/{value['name']}"
    if kind == "delete":
        client.request("DELETE", path)
    else:
        subresource = f"/{value['subresource']}" if value.get("subresource") else ""
        target = f"{path}{subresource}?fieldManager=kubectl"
        client.request("PATCH", target, value["patch"], PATCH_TYPES[value.get("type", "merge")])


def _resource_name(obj: Object) -> str:
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return f"{obj['kind']}.{group}" if group else str(obj["kind"])


def _run_kubectl(cluster: Cluster, text: str) -> None:
    """Runs kubectl with arguments as in a shell. Raises ValueError if it fails, and OSError if there is none."""
    environment = {**os.environ, "KUBECONFIG": str(Path(cluster.kubeconfig).absolute())}
    command = ["kubectl", *shlex.split(text)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False)
    if done.returncode:
        raise ValueError(f"kubectl {text}: {done.stderr.strip() or done.returncode}")
