"""A stage: for which objects it holds, how soon it comes, and what it does.

Of the stages of a kind those hold whose selector matches; if there are several, weights decide, by chance. A stage that holds
comes after its delay: the jitter, if there is one, is the bound of a random delay, or the delay itself if it is the smaller.

Specified by: sigs.k8s.io/kwok/pkg/apis/v1alpha1/stage_types.go, pkg/apis/internalversion/conversion.go, pkg/utils/lifecycle.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from fakekube.cel.environments import Environment, ExpressionError
from fakekube.cel.errors import EvaluationError
from fakekube.cel.types import DYN
from fakekube.cel.views import untyped
from fakekube.nodes.plans import PlanError, seconds
from fakekube.nodes.stages import go_templates, jq
from fakekube.nodes.stages.errors import StageError
from fakekube.nodes.stages.functions import CONTEXT, PLAIN

__all__ = ["Action", "Stage", "choose", "stage_of"]

Object = Mapping[str, Any]
Functions = Mapping[str, go_templates.Function]

GROUP: Final = "kwok.x-k8s.io/v1alpha1"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_TYPES: Final = {"json": JSON_PATCH, "merge": MERGE, "strategic": STRATEGIC, "apply": APPLY}

_SPEC: Final = frozenset({"resourceRef", "selector", "weight", "weightFrom", "delay", "steps", "next", "immediateNextStage"})
_STEP: Final = frozenset({"event", "finalizers", "delete", "patch", "apply"})
_NEXT: Final = frozenset({"event", "finalizers", "delete", "patches", "statusTemplate", "statusSubresource"})
_PATCH: Final = frozenset({"subresource", "root", "template", "type"})

Test = Callable[[Object], bool]
Read = Callable[[Object], Any]
"""A value that an expression finds, or None."""


@dataclass(slots=True, frozen=True)
class Action:
    """One thing that a stage does."""

    kind: str
    """event, finalizers, delete, patch or apply."""
    data: Any = None
    type: str = ""
    """Media type of a patch."""
    subresource: str = ""


@dataclass(slots=True, frozen=True)
class Stage:
    """A stage that can be carried out."""

    name: str
    api_version: str
    kind: str
    tests: tuple[Test, ...]
    steps: tuple[Mapping[str, Any], ...]
    weight: int = 0
    weight_from: Read | None = None
    delay: float = 0.0
    delay_from: Read | None = None
    jitter: float | None = None
    jitter_from: Read | None = None
    immediate: bool = False
    """Is the next stage chosen at once?"""

    def matches(self, obj: Object) -> bool:
        """Does it hold for this object?"""
        return all(test(obj) for test in self.tests)

    def weight_for(self, obj: Object) -> int | None:
        """Its weight; None if what should say it says no number."""
        if self.weight_from is not None and (found := self.weight_from(obj)) is not None:
            try:
                return int(found)
            except (TypeError, ValueError):
                return None
        return self.weight

    def delay_for(self, obj: Object, now: datetime, chance: random.Random) -> float:
        """Seconds before it comes."""
        delay = _duration(self.delay_from, obj, now, self.delay) or 0.0
        jitter = _duration(self.jitter_from, obj, now, self.jitter)
        if jitter is None:
            return max(delay, 0.0)
        return max(jitter if jitter <= delay else chance.uniform(delay, jitter), 0.0)

    def actions(self, obj: Object, functions: Functions) -> list[Action]:
        """What it does to an object. Raises StageError for a template that cannot be rendered."""
        made: list[Action] = []
        deleted = False
        for step in self.steps:
            if "event" in step:
                made.append(Action("event", step["event"]))
            if deleted:
                continue
            if "finalizers" in step and (ops := _finalizers(obj, step["finalizers"])):
                made.append(Action("finalizers", ops, JSON_PATCH))
            if step.get("delete"):
                deleted = True
                made.append(Action("delete"))
                continue
            if "patch" in step:
                made.append(self._patch(obj, step["patch"], functions))
            if "apply" in step:
                apply = step["apply"]
                data = _rendered(apply["template"], obj, functions)
                made.append(Action("apply", data, _TYPES[apply.get("type") or "apply"], apply.get("subresource", "")))
        return made

    def _patch(self, obj: Object, patch: Object, functions: Functions) -> Action:
        data = _rendered(patch.get("template", ""), obj, functions)
        root, type_ = patch.get("root", ""), patch.get("type")
        media_type = _TYPES[type_] if type_ else STRATEGIC if self.kind in ("Pod", "Node") and self.api_version == "v1" else MERGE
        if root and media_type == JSON_PATCH:
            data = [{**op, "path": f"/{root}{op.get('path', '')}"} for op in data or ()]
        elif root:
            data = {root: data}
        return Action("patch", data, media_type, patch.get("subresource", ""))


def _rendered(template: str, obj: Object, functions: Functions) -> Any:
    text = go_templates.compiled(template.strip()).render(obj, {**PLAIN, **functions})
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise StageError(f"template: what it renders is no YAML: {error}") from None


class _Loader(yaml.SafeLoader):
    """Times stay texts."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _finalizers(obj: Object, change: Object) -> list[dict[str, Any]]:
    known = list(obj["metadata"].get("finalizers") or ())
    if change.get("empty"):
        return [{"op": "remove", "path": "/metadata/finalizers"}] if known else []
    wanted = [one for one in known if one not in {entry["value"] for entry in change.get("remove") or ()}]
    wanted += [entry["value"] for entry in change.get("add") or () if entry["value"] not in wanted]
    if wanted == known:
        return []
    if not wanted:
        return [{"op": "remove", "path": "/metadata/finalizers"}]
    return [{"op": "add", "path": "/metadata/finalizers", "value": wanted}]


def _duration(read: Read | None, obj: Object, now: datetime, otherwise: float | None) -> float | None:
    """What an expression says: a time means the seconds until then."""
    found = read(obj) if read is not None else None
    if found is None:
        return otherwise
    text = str(found)
    try:
        return (datetime.fromisoformat(text).astimezone(UTC) - now).total_seconds()
    except ValueError:
        pass
    try:
        return seconds(text)
    except PlanError:
        return otherwise


def choose(stages: Sequence[Stage], obj: Object, chance: random.Random) -> Stage | None:
    """The stage that an object enters; None if none holds."""
    found = [stage for stage in stages if stage.matches(obj)]
    if len(found) <= 1:
        return found[0] if found else None
    weights = [(stage, stage.weight_for(obj)) for stage in found]
    readable = [(stage, weight) for stage, weight in weights if weight is not None]
    if not readable:
        return chance.choice(found)
    if sum(max(weight, 0) for _, weight in readable) == 0:
        return chance.choice([stage for stage, _ in readable])
    return chance.choices([stage for stage, _ in readable], [max(weight, 0) for _, weight in readable])[0]


# ---------------------------------------------------------------- reading


def stage_of(obj: Object) -> Stage | None:
    """A Stage object as a stage; None if it has no selector, which holds for nothing. Raises StageError."""
    name = (obj.get("metadata") or {}).get("name", "")
    try:
        return _stage(name, obj)
    except StageError as error:
        raise StageError(f"Stage {name}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StageError(f"Stage {name}: it is malformed: {error!r}") from None


def _stage(name: str, obj: Object) -> Stage | None:
    if obj.get("apiVersion") != GROUP or obj.get("kind") != "Stage":
        raise StageError(f"{obj.get('apiVersion')} {obj.get('kind')} is not supported")
    spec = obj["spec"]
    _only(_SPEC, spec, "")
    if spec.get("selector") is None:
        return None
    reference = spec["resourceRef"]
    delay = spec.get("delay") or {}
    _only({"durationMilliseconds", "durationFrom", "jitterDurationMilliseconds", "jitterDurationFrom"}, delay, "delay.")
    jitter = delay.get("jitterDurationMilliseconds")
    return Stage(
        name,
        reference.get("apiGroup") or "v1",
        reference["kind"],
        tuple(_tests(spec["selector"])),
        tuple(_steps(spec)),
        spec.get("weight") or 0,
        _value(spec.get("weightFrom")),
        (delay.get("durationMilliseconds") or 0) / 1000,
        _value(delay.get("durationFrom")),
        None if jitter is None else jitter / 1000,
        _value(delay.get("jitterDurationFrom")),
        bool(spec.get("immediateNextStage")),
    )


def _only(known: Iterable[str], found: Mapping[str, Any], where: str) -> None:
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise StageError(f"{where}{unknown[0]} is not supported")


def _tests(selector: Object) -> Iterable[Test]:
    _only({"matchLabels", "matchAnnotations", "matchExpressions"}, selector, "selector.")
    for words, place in (("matchLabels", "labels"), ("matchAnnotations", "annotations")):
        if selector.get(words):
            yield _has_all(place, selector[words])
    for expression in selector.get("matchExpressions") or ():
        yield _expression(expression)


def _has_all(place: str, wanted: Mapping[str, str]) -> Test:
    return lambda obj: wanted.items() <= (obj["metadata"].get(place) or {}).items()


def _expression(expression: Object) -> Test:
    if "cel" in expression:
        read = _cel(expression["cel"]["expression"])
        return lambda obj: read(obj) is True
    given = expression.get("jq") or expression
    _only({"key", "operator", "values"}, given, "selector.matchExpressions.")
    query, operator = jq.compiled(given["key"]), given["operator"]
    values = frozenset(given.get("values") or ())

    def test(obj: Object) -> bool:
        found = query(obj)
        if operator in ("Exists", "DoesNotExist"):
            return bool(found) is (operator == "Exists")
        return any(_text(one) in values for one in found) is (operator == "In")

    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise StageError(f"operator {operator} is not supported")
    return test


def _text(value: Any) -> str | None:
    """What is compared: texts, truth values and whole numbers."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int) else None


def _value(source: Object | None) -> Read | None:
    if not source:
        return None
    _only({"expressionFrom", "jq", "cel"}, source, "")
    if "cel" in source:
        return _cel(source["cel"]["expression"])
    text = source["expressionFrom"] if "expressionFrom" in source else source["jq"]["expression"]
    query = jq.compiled(text)
    return lambda obj: next(iter(query(obj)), None)


def _cel(text: str) -> Read:
    try:
        program = Environment({"self": DYN}).compile(text).program
    except ExpressionError as error:
        raise StageError(f"cel: {error}") from None

    def read(obj: Object) -> Any:
        value, _ = program.evaluate({"self": untyped(obj)})
        return None if isinstance(value, EvaluationError) else value

    return read


def _steps(spec: Object) -> Iterable[Mapping[str, Any]]:
    steps = spec.get("steps")
    if not steps:
        steps = list(_of_next(spec.get("next") or {}))
    for step in steps:
        _only(_STEP, step, "steps.")
        for name, known in (
            ("patch", _PATCH),
            ("apply", {"template", "subresource", "type"}),
            ("event", {"type", "reason", "message"}),
            ("finalizers", {"add", "remove", "empty"}),
        ):
            if name in step:
                _only(known, step[name], f"steps.{name}.")
        for name in ("patch", "apply"):
            if name in step:
                _check_template(step[name].get("template") or "")
        yield step


def _of_next(next_: Object) -> Iterable[dict[str, Any]]:
    """The older way to say it: an event, finalizers, patches (or a template of the status), and a deletion, in that order."""
    _only(_NEXT, next_, "next.")
    if next_.get("event"):
        yield {"event": next_["event"]}
    if next_.get("finalizers"):
        yield {"finalizers": next_["finalizers"]}
    if next_.get("patches"):
        yield from ({"patch": patch} for patch in next_["patches"])
    elif next_.get("statusTemplate"):
        subresource = next_.get("statusSubresource", "status")
        yield {"patch": {"root": "status", "subresource": subresource, "template": next_["statusTemplate"]}}
    if next_.get("delete"):
        yield {"delete": True}


def _check_template(text: str) -> None:
    unknown = sorted(go_templates.compiled(text.strip()).functions - PLAIN.keys() - CONTEXT)
    if unknown:
        raise StageError(f"template: the function {unknown[0]} is not supported")
