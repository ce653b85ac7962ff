"""Reads scenario files: `apiVersion: fakekube.dev/v1`, `kind: Scenario`.

    spec:
      title, text (Markdown), version, profile, nodes
      load: [manifests, YAML text or paths]      pods: [{on, do}]        missingImages: [pattern]
      faults: [the body of POST faults, and at: seconds]                 advance: seconds before the first task
      tasks: [{title, text, hints: [text], goal: {objects: [...], requests: [...]}, budget: {seconds, requests}}]
      solution: [{apply: YAML} | {patch: {...}} | {delete: {...}} | {create: {...}} | {kubectl: text} | {advance: seconds}]

Invariant: a scenario that was read has no unknown member and none that has no effect, and its CEL expressions compile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib import resources
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.patch import APPLY_YAML, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

if TYPE_CHECKING:
    from fakekube.apimachinery.cel.evaluation import Program


KIND: Final = "Scenario"

_SPEC: Final = frozenset(
    ["title", "text", "version", "profile", "nodes", "load", "pods", "missingImages", "faults", "advance", "tasks", "solution"]
)
_TASK: Final = frozenset({"title", "text", "hints", "goal", "budget"})
_OBJECTS: Final = frozenset({"resource", "namespace", "name", "labelSelector", "cel", "exists", "count"})
_REQUESTS: Final = frozenset({"where", "except", "count", "none", "text"})
_WHERE: Final = frozenset({"verb", "resource", "namespace", "name", "user", "agent", "status"})
_RULE: Final = frozenset({"on", "do"})
_FAULT: Final = frozenset({"on", "do", "times", "after", "every", "probability", "lasts", "label", "at"})
_TARGET: Final = frozenset({"resource", "namespace", "name"})
#: Step of a solution → its members; none for steps that are no objects with members of their own.
_STEPS: Final[Mapping[str, frozenset[str]]] = {
    "advance": frozenset(),
    "apply": frozenset(),
    "create": frozenset(),
    "delete": _TARGET,
    "kubectl": frozenset(),
    "patch": _TARGET | {"subresource", "type", "patch"},
}
#: Type of a patch in a solution → its media type; `apply` is that of the step of this name.
PATCH_TYPES: Final = {"apply": APPLY_YAML, "merge": MERGE_PATCH, "json": JSON_PATCH, "strategic": STRATEGIC_MERGE_PATCH}


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
    but: tuple[Mapping[str, Any], ...] = ()
    """Which of these do not count."""
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
    _check_members("the scenario", found, frozenset({"apiVersion", "kind", "metadata", "spec"}))
    spec = found["spec"]
    _check_members("spec", spec, _SPEC)
    tasks = [_task(one, where) for where, one in _items(spec, "tasks", "spec")]
    if not tasks:
        raise ValueError("spec.tasks has no task")
    return Scenario(
        name=str(found["metadata"]["name"]),
        title=str(spec["title"]),
        text=str(spec.get("text") or ""),
        version=str(spec.get("version") or ""),
        profile=str(spec.get("profile") or "cluster"),
        nodes=None if spec.get("nodes") is None else _count(spec["nodes"], "spec.nodes"),
        load=_load(spec),
        pods=[_rule(one, where, _RULE) for where, one in _items(spec, "pods", "spec")],
        missing_images=_texts(spec, "missingImages", "spec"),
        faults=[_rule(one, where, _FAULT) for where, one in _items(spec, "faults", "spec")],
        advance=_number(spec.get("advance", 0), "spec.advance"),
        tasks=tasks,
        solution=[_step(one, where) for where, one in _items(spec, "solution", "spec")],
        folder=folder,
    )


def _items(found: Mapping[str, Any], name: str, where: str) -> Sequence[tuple[str, Any]]:
    """Returns the items of a list, each with its place; none if it is not given. Raises ValueError if it is no list."""
    items = found.get(name)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise ValueError(f"{where}.{name} must be a list")
    return [(f"{where}.{name}[{number}]", item) for number, item in enumerate(items)]


def _texts(found: Mapping[str, Any], name: str, where: str) -> Sequence[str]:
    for place, item in _items(found, name, where):
        if not isinstance(item, str):
            raise ValueError(f"{place} must be a string")
    return list(found.get(name) or ())


def _load(spec: Mapping[str, Any]) -> Sequence[Any]:
    """Returns the manifests: objects, YAML text, paths."""
    load = spec.get("load")
    if isinstance(load, str | dict):
        return [load]
    for place, item in _items(spec, "load", "spec"):
        if not isinstance(item, str | dict):
            raise ValueError(f"{place} must be an object, YAML text or a path")
    return list(load or ())


def _rule(found: Any, where: str, known: frozenset[str]) -> dict[str, Any]:
    """Returns the members of a rule or a fault, with the name `on`, which YAML 1.1 reads as true."""
    _check_members(where, found)
    members = {"on" if name is True or name == "true" else name: member for name, member in found.items()}
    _check_members(where, members, known)
    _require(where, members, _RULE)
    if "at" in members:
        _number(members["at"], f"{where}.at")
    return members


def _number(value: Any, where: str) -> float:
    """Returns a number of seconds or requests. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise ValueError(f"{where} must be a number that is not negative")
    return float(value)


def _count(value: Any, where: str) -> int:
    if not _number(value, where).is_integer():
        raise ValueError(f"{where} must be an integer")
    return int(value)


def _step(found: Any, where: str) -> Mapping[str, Any]:
    """Returns a step of a solution. Raises ValueError."""
    _check_members(where, found, frozenset(_STEPS))
    if len(found) != 1:
        raise ValueError(f"{where} must have one of {', '.join(_STEPS)}")
    ((kind, value),) = found.items()
    where = f"{where}.{kind}"
    if kind == "advance":
        _number(value, where)
    elif kind == "kubectl" and not isinstance(value, str):
        raise ValueError(f"{where} must be a string, the arguments of kubectl")
    elif kind in ("apply", "create") and not isinstance(value, str | dict):
        raise ValueError(f"{where} must be YAML text or an object")
    elif _STEPS[kind]:
        _check_members(where, value, _STEPS[kind])
        _require(where, value, {"resource", "name"} | ({"patch"} if kind == "patch" else set()))
        _check_texts(where, value, _TARGET | {"subresource"})
        if value.get("type", "merge") not in PATCH_TYPES:
            raise ValueError(f"{where}.type must be one of {', '.join(PATCH_TYPES)}")
    return dict(found)


def _task(found: Any, where: str) -> Task:
    _check_members(where, found, _TASK)
    goal, budget = found.get("goal") or {}, found.get("budget") or {}
    _check_members(f"{where}.goal", goal, frozenset({"objects", "requests"}))
    _check_members(f"{where}.budget", budget, frozenset({"seconds", "requests"}))
    for name, value in budget.items():
        _number(value, f"{where}.budget.{name}")
    objects = [_object_goal(one, place) for place, one in _items(goal, "objects", f"{where}.goal")]
    requests = [_request_goal(one, place) for place, one in _items(goal, "requests", f"{where}.goal")]
    if not objects and not requests:
        raise ValueError(f"{where}.goal has neither objects nor requests")
    return Task(
        title=str(found["title"]),
        text=str(found.get("text") or ""),
        hints=_texts(found, "hints", where),
        objects=objects,
        requests=requests,
        seconds=budget.get("seconds"),
        most_requests=budget.get("requests"),
    )


def _object_goal(found: Any, where: str) -> ObjectGoal:
    from fakekube.apimachinery.selectors import SelectorError, parse_labels

    _check_members(where, found, _OBJECTS)
    _require(where, found, {"resource"})
    _check_texts(where, found, _TARGET | {"labelSelector", "cel"})
    if found.get("name") and found.get("labelSelector"):
        raise ValueError(f"{where} has both name and labelSelector")
    if not found.keys() & {"cel", "exists", "count"}:
        raise ValueError(f"{where} must have cel, exists or count")
    if not isinstance(found.get("exists"), bool | None):
        raise ValueError(f"{where}.exists must be true or false")
    if found.get("exists") is False and found.keys() & {"cel", "count"}:
        raise ValueError(f"{where} has exists: false, so cel and count have no meaning")
    try:
        parse_labels(found.get("labelSelector") or "")
    except SelectorError as problem:
        raise ValueError(f"{where}.labelSelector: {problem}") from None
    return ObjectGoal(
        resource=found["resource"],
        namespace=found.get("namespace"),
        name=found.get("name"),
        label_selector=found.get("labelSelector") or "",
        cel=found.get("cel") or "",
        exists=found.get("exists"),
        count=_count(found["count"], f"{where}.count") if "count" in found else None,
        program=_compile(found["cel"], f"{where}.cel") if found.get("cel") else None,
    )


def _compile(expression: str, where: str) -> Program:
    from fakekube.apimachinery.cel.compilation import Environment, ExpressionError
    from fakekube.apimachinery.cel.types import DYN

    try:
        return Environment({"object": DYN}).compile(expression).program
    except ExpressionError as problem:
        raise ValueError(f"{where}: {problem}") from None


def _request_goal(found: Any, where: str) -> RequestGoal:
    _check_members(where, found, _REQUESTS)
    _require(where, found, {"where"})
    _check_criteria(found["where"], f"{where}.where")
    spared = found.get("except", [])
    spared = spared if isinstance(spared, list) else [spared]
    for one in spared:
        _check_criteria(one, f"{where}.except")
    none = found.get("none", False)
    if not isinstance(none, bool):
        raise ValueError(f"{where}.none must be true or false")
    if none and "count" in found:
        raise ValueError(f"{where} has both count and none")
    count = None if none else _count(found.get("count", 1), f"{where}.count")
    return RequestGoal(found["where"], tuple(spared), count, none, str(found.get("text") or ""))


def _check_criteria(found: Any, where: str) -> None:
    """Raises ValueError for what is no set of arguments of `cluster.requests.where`."""
    from fakekube.powers.fault import ResourceName, verbs_of

    _check_members(where, found, _WHERE)
    if not found:
        raise ValueError(f"{where} must have one of {', '.join(sorted(_WHERE))}")
    _check_texts(where, found, _WHERE - {"verb", "status"})
    if "status" in found:
        _count(found["status"], f"{where}.status")
    verb = found.get("verb", "*")
    if not isinstance(verb, str) and not (isinstance(verb, list) and all(isinstance(one, str) for one in verb)):
        raise ValueError(f"{where}.verb must be a string or a list of strings")
    try:
        verbs_of(verb)
    except ValueError as problem:
        raise ValueError(f"{where}.verb: {problem}") from None
    try:
        ResourceName.parse(found.get("resource", "*"))
    except ValueError as problem:
        raise ValueError(f"{where}.resource: {problem}") from None


def _check_texts(where: str, found: Mapping[str, Any], names: frozenset[str]) -> None:
    """Raises ValueError for the first of these members that is no string."""
    for name in sorted(names & found.keys()):
        if not isinstance(found[name], str):
            raise ValueError(f"{where}.{name} must be a string")


def _require(where: str, found: Mapping[str, Any], names: AbstractSet[str]) -> None:
    missing = sorted(names - found.keys())
    if missing:
        raise ValueError(f"{where}.{missing[0]} is missing")


def _check_members(where: str, found: Any, known: frozenset[str] | None = None) -> None:
    """Raises ValueError for what is no object, or has an unknown member."""
    if not isinstance(found, dict):
        raise ValueError(f"{where} must be an object")
    unknown = sorted(str(name) for name in found if known is not None and name not in known)
    if unknown:
        raise ValueError(f"{where} has an unknown member {unknown[0]!r}; known are {', '.join(sorted(known or ()))}")
