"""Reads scenario files: `apiVersion: fakekube.dev/v1`, `kind: Scenario`.

    spec:
      title, text (Markdown), version, profile, nodes
      load: [manifests, YAML text or paths]      pods: [{on, do}]        missingImages: [pattern]
      faults: [the body of POST faults, and at: seconds]                 advance: seconds before the first task
      tasks: [{title, text, hints: [text], goal: {objects: [...], requests: [...]}, budget: {seconds, requests}}]
      solution: [{apply: YAML} | {patch: {...}} | {delete: {...}} | {create: {...}} | {kubectl: text} | {advance: seconds}]

Invariant: a scenario that was read has no unknown member, and its CEL expressions compile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fakekube.apimachinery.cel.evaluation import Program


KIND: Final = "Scenario"

_SPEC: Final = frozenset(
    ["title", "text", "version", "profile", "nodes", "load", "pods", "missingImages", "faults", "advance", "tasks", "solution"]
)
_TASK: Final = frozenset({"title", "text", "hints", "goal", "budget"})
_OBJECTS: Final = frozenset({"resource", "namespace", "name", "labelSelector", "cel", "exists", "count"})
_REQUESTS: Final = frozenset({"where", "count", "none", "text"})
_WHERE: Final = frozenset({"verb", "resource", "namespace", "name", "user", "agent", "status"})
_RULE: Final = frozenset({"on", "do"})
_FAULT: Final = frozenset({"on", "do", "times", "after", "every", "probability", "lasts", "label", "at"})
_STEPS: Final = frozenset({"kubectl", "apply", "advance", "patch", "delete", "create"})


class ScenarioError(ValueError):
    """A file is no valid scenario; the text has the file and the reason."""


@dataclass(frozen=True, slots=True)
class ObjectGoal:
    """A predicate over objects."""

    resource: str
    namespace: str | None = None
    name: str | None = None
    label_selector: str = ""
    cel: str = ""
    exists: bool | None = None
    count: int | None = None
    program: Program | None = None


@dataclass(frozen=True, slots=True)
class RequestGoal:
    """A predicate over the requests of the player."""

    where: Mapping[str, Any]
    count: int | None = None
    """The least number of requests; None with `none`."""
    none: bool = False
    text: str = ""
    """What it means, for people."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the player has to reach."""

    title: str
    text: str = ""
    hints: Sequence[str] = ()
    objects: Sequence[ObjectGoal] = ()
    requests: Sequence[RequestGoal] = ()
    seconds: float | None = None
    """The budget, in seconds of the cluster's clock."""
    most_requests: int | None = None
    """The budget of requests."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario."""

    name: str
    title: str
    text: str = ""
    version: str = ""
    profile: str = "cluster"
    nodes: int | None = None
    load: Sequence[Any] = ()
    pods: Sequence[Mapping[str, Any]] = ()
    missing_images: Sequence[str] = ()
    faults: Sequence[Mapping[str, Any]] = ()
    advance: float = 0.0
    tasks: Sequence[Task] = ()
    solution: Sequence[Mapping[str, Any]] = ()
    folder: Path = field(default_factory=Path)
    """That of the file, for the paths in it."""


def library() -> Mapping[str, Path]:
    """Returns the scenarios of the package: name → file."""
    folder = Path(str(resources.files("fakekube.cluster.scenarios"))) / "library"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_scenario(name: str) -> Scenario:
    """Returns a scenario by the path of its file, or by its name in the library. Raises ScenarioError."""
    path = library().get(name) or Path(name)
    try:
        text = path.read_bytes()
    except OSError as problem:
        near = f"; the library has {', '.join(library())}" if "/" not in name and "." not in name else ""
        raise ScenarioError(f"{name}: {problem.strerror}{near}") from None
    return read_scenario(text, str(path), path.parent)


def read_scenario(text: bytes, origin: str, folder: Path = Path()) -> Scenario:
    """Returns the scenario in a text.

    Args:
        text: YAML.
        origin: the name of the file, for errors.
        folder: to which paths in `load` are relative.

    Raises ScenarioError.
    """
    from fakekube.apimachinery.codecs import DecodeError, yaml

    try:
        found, _ = yaml.loads(text)
    except (DecodeError, ValueError, RecursionError) as problem:
        raise ScenarioError(f"{origin}: not YAML: {problem}") from None
    try:
        return _scenario(found, folder)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        reason = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
        raise ScenarioError(f"{origin}: {reason}") from None


def _scenario(found: Any, folder: Path) -> Scenario:
    """Returns the scenario of a document. Raises ValueError and other errors of wrong types and missing members."""
    from fakekube.powers.state import API_VERSION

    if not isinstance(found, dict) or found.get("apiVersion") != API_VERSION or found.get("kind") != KIND:
        raise ValueError(f"no scenario: apiVersion {API_VERSION} and kind {KIND} are required")
    spec = found["spec"]
    _check_members("spec", spec, _SPEC)
    tasks = [_task(one, f"spec.tasks[{number}]") for number, one in enumerate(spec.get("tasks") or ())]
    if not tasks:
        raise ValueError("spec.tasks has no task")
    load = spec.get("load") or ()
    return Scenario(
        name=str(found["metadata"]["name"]),
        title=str(spec["title"]),
        text=str(spec.get("text") or ""),
        version=str(spec.get("version") or ""),
        profile=str(spec.get("profile") or "cluster"),
        nodes=spec.get("nodes"),
        load=[load] if isinstance(load, str | dict) else list(load),
        pods=[_rule(one, f"spec.pods[{number}]", _RULE) for number, one in enumerate(spec.get("pods") or ())],
        missing_images=list(spec.get("missingImages") or ()),
        faults=[_rule(one, f"spec.faults[{number}]", _FAULT) for number, one in enumerate(spec.get("faults") or ())],
        advance=_number(spec.get("advance", 0), "spec.advance"),
        tasks=tasks,
        solution=_solution(spec.get("solution") or ()),
        folder=folder,
    )


def _rule(found: Any, where: str, known: frozenset[str]) -> dict[str, Any]:
    """Returns the members of a rule or a fault, with the name `on`, which YAML 1.1 reads as true."""
    _check_members(where, found)
    members = {"on" if name is True or name == "true" else name: member for name, member in found.items()}
    _check_members(where, members, known)
    missing = sorted(_RULE - members.keys())
    if missing:
        raise ValueError(f"{where}.{missing[0]} is missing")
    if "at" in members:
        _number(members["at"], f"{where}.at")
    return members


def _number(value: Any, where: str) -> float:
    """Returns a number of seconds or requests. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise ValueError(f"{where} must be a number that is not negative")
    return float(value)


def _solution(found: Sequence[Any]) -> list[dict[str, Any]]:
    for number, step in enumerate(found):
        _check_members(f"spec.solution[{number}]", step, _STEPS)
        if len(step) != 1:
            raise ValueError(f"spec.solution[{number}] must have one of {', '.join(sorted(_STEPS))}")
    return list(found)


def _task(found: Any, where: str) -> Task:
    _check_members(where, found, _TASK)
    goal, budget = found.get("goal") or {}, found.get("budget") or {}
    _check_members(f"{where}.goal", goal, frozenset({"objects", "requests"}))
    _check_members(f"{where}.budget", budget, frozenset({"seconds", "requests"}))
    for name, value in budget.items():
        _number(value, f"{where}.budget.{name}")
    objects = [_object_goal(one, f"{where}.goal.objects[{place}]") for place, one in enumerate(goal.get("objects") or ())]
    requests = [_request_goal(one, f"{where}.goal.requests[{place}]") for place, one in enumerate(goal.get("requests") or ())]
    if not objects and not requests:
        raise ValueError(f"{where}.goal has neither objects nor requests")
    return Task(
        title=str(found["title"]),
        text=str(found.get("text") or ""),
        hints=[str(one) for one in found.get("hints") or ()],
        objects=objects,
        requests=requests,
        seconds=budget.get("seconds"),
        most_requests=budget.get("requests"),
    )


def _object_goal(found: Any, where: str) -> ObjectGoal:
    from fakekube.apimachinery.cel.compilation import Environment, ExpressionError
    from fakekube.apimachinery.cel.types import DYN

    _check_members(where, found, _OBJECTS)
    expression = str(found.get("cel") or "")
    program = None
    if expression:
        try:
            program = Environment({"object": DYN}).compile(expression).program
        except ExpressionError as problem:
            raise ValueError(f"{where}.cel: {problem}") from None
    elif "exists" not in found and "count" not in found:
        raise ValueError(f"{where} must have cel, exists or count")
    if not isinstance(found.get("exists"), bool | None):
        raise ValueError(f"{where}.exists must be true or false")
    if "count" in found:
        _number(found["count"], f"{where}.count")
    return ObjectGoal(
        resource=str(found["resource"]),
        namespace=found.get("namespace"),
        name=found.get("name"),
        label_selector=str(found.get("labelSelector") or ""),
        cel=expression,
        exists=found.get("exists"),
        count=found.get("count"),
        program=program,
    )


def _request_goal(found: Any, where: str) -> RequestGoal:
    _check_members(where, found, _REQUESTS)
    _check_members(f"{where}.where", found["where"], _WHERE)
    none = bool(found.get("none"))
    return RequestGoal(found["where"], None if none else int(found.get("count", 1)), none, str(found.get("text") or ""))


def _check_members(where: str, found: Any, known: frozenset[str] | None = None) -> None:
    """Raises ValueError for what is no object, or has an unknown member."""
    if not isinstance(found, dict):
        raise ValueError(f"{where} must be an object")
    unknown = sorted(str(name) for name in found if known is not None and name not in known)
    if unknown:
        raise ValueError(f"{where} has an unknown member {unknown[0]!r}; known are {', '.join(sorted(known or ()))}")
