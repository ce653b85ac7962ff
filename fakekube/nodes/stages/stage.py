"""Stages: which objects they match, their delay, and their actions.

If several stages of a kind match an object, one is selected at random by weight. It is played after its delay. A jitter that is
greater than the delay is the upper bound of a random delay; else it replaces the delay.

Specified by: sigs.k8s.io/kwok/pkg/apis/v1alpha1/stage_types.go, sigs.k8s.io/kwok/pkg/apis/internalversion/conversion.go,
sigs.k8s.io/kwok/pkg/utils/lifecycle.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from fakekube.apimachinery.cel.compilation import Environment, ExpressionError
from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.types import DYN
from fakekube.apimachinery.cel.views import wrap_untyped
from fakekube.apimachinery.patch import APPLY_YAML, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from fakekube.base.objects import StoredObject
from fakekube.nodes.plans import PlanError, parse_seconds
from fakekube.nodes.stages import StageError, go_templates, jq
from fakekube.nodes.stages.go_templates import CONTEXT, PLAIN

Functions = Mapping[str, go_templates.Function]

GROUP: Final = "kwok.x-k8s.io/v1alpha1"
_TYPES: Final = {"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_MERGE_PATCH, "apply": APPLY_YAML}

_SPEC: Final = frozenset({"resourceRef", "selector", "weight", "weightFrom", "delay", "steps", "next", "immediateNextStage"})
_STEP: Final = frozenset({"event", "finalizers", "delete", "patch", "apply"})
_NEXT: Final = frozenset({"event", "finalizers", "delete", "patches", "statusTemplate", "statusSubresource"})
_PATCH: Final = frozenset({"subresource", "root", "template", "type"})

Test = Callable[[StoredObject], bool]
#: Returns the value that an expression finds in an object; None if it finds none.
Read = Callable[[StoredObject], Any]


@dataclass(slots=True, frozen=True)
class Action:
    """One action of a stage."""

    kind: str
    """event, finalizers, delete, patch or apply."""
    data: Any = None
    type: str = ""
    """The media type of a patch."""
    subresource: str = ""


@dataclass(slots=True, frozen=True)
class Stage:
    """A stage."""

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
    """Whether the next stage is matched at once."""

    def matches(self, obj: StoredObject) -> bool:
        """Reports whether the selector matches this object."""
        return all(test(obj) for test in self.tests)

    def weight_for(self, obj: StoredObject) -> int | None:
        """Returns the weight for an object; None if the expression for it gives no number."""
        if self.weight_from is not None and (found := self.weight_from(obj)) is not None:
            try:
                return int(found)
            except (TypeError, ValueError):
                return None
        return self.weight

    def delay_for(self, obj: StoredObject, now: datetime, random_: random.Random) -> float:
        """Returns the delay in seconds."""
        delay = _duration(self.delay_from, obj, now, self.delay) or 0.0
        jitter = _duration(self.jitter_from, obj, now, self.jitter)
        if jitter is None:
            return max(delay, 0.0)
        return max(jitter if jitter <= delay else random_.uniform(delay, jitter), 0.0)

    def actions(self, obj: StoredObject, functions: Functions) -> list[Action]:
        """Returns the actions for an object. Raises StageError if a template cannot be rendered."""
        result: list[Action] = []
        deleted = False
        for step in self.steps:
            if "event" in step:
                result.append(Action("event", step["event"]))
            if deleted:
                continue
            if "finalizers" in step and (ops := _finalizers(obj, step["finalizers"])):
                result.append(Action("finalizers", ops, JSON_PATCH))
            if step.get("delete"):
                deleted = True
                result.append(Action("delete"))
                continue
            if "patch" in step:
                result.append(self._patch(obj, step["patch"], functions))
            if "apply" in step:
                apply = step["apply"]
                data = _render(apply["template"], obj, functions)
                result.append(Action("apply", data, _TYPES[apply.get("type") or "apply"], apply.get("subresource", "")))
        return result

    def _patch(self, obj: StoredObject, patch: StoredObject, functions: Functions) -> Action:
        data = _render(patch.get("template", ""), obj, functions)
        root, type_ = patch.get("root", ""), patch.get("type")
        usual = STRATEGIC_MERGE_PATCH if self.kind in ("Pod", "Node") and self.api_version == "v1" else MERGE_PATCH
        media_type = _TYPES[type_] if type_ else usual
        if root and media_type == JSON_PATCH:
            data = [{**op, "path": f"/{root}{op.get('path', '')}"} for op in data or ()]
        elif root:
            data = {root: data}
        return Action("patch", data, media_type, patch.get("subresource", ""))


def _render(template: str, obj: StoredObject, functions: Functions) -> Any:
    text = go_templates.compile_template(template.strip()).render(obj, {**PLAIN, **functions})
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise StageError(f"template: the result is invalid YAML: {error}") from None


class _Loader(yaml.SafeLoader):
    """A YAML loader that does not convert timestamps."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _finalizers(obj: StoredObject, change: StoredObject) -> list[dict[str, Any]]:
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


def _duration(read: Read | None, obj: StoredObject, now: datetime, default: float | None) -> float | None:
    """Returns the duration that an expression finds; for a timestamp, the seconds until then."""
    found = read(obj) if read is not None else None
    if found is None:
        return default
    text = str(found)
    try:
        return (datetime.fromisoformat(text).astimezone(UTC) - now).total_seconds()
    except ValueError:
        pass
    try:
        return parse_seconds(text)
    except PlanError:
        return default


def match_stage(stages: Sequence[Stage], obj: StoredObject, random_: random.Random) -> Stage | None:
    """Returns a stage that matches an object; None if none does."""
    found = [stage for stage in stages if stage.matches(obj)]
    if len(found) <= 1:
        return found[0] if found else None
    weights = [(stage, stage.weight_for(obj)) for stage in found]
    readable = [(stage, weight) for stage, weight in weights if weight is not None]
    if not readable:
        return random_.choice(found)
    if sum(max(weight, 0) for _, weight in readable) == 0:
        return random_.choice([stage for stage, _ in readable])
    return random_.choices([stage for stage, _ in readable], [max(weight, 0) for _, weight in readable])[0]


# --- Parsing ----------------------------------------------------------------------------------------------------------


def new_stage(obj: StoredObject) -> Stage | None:
    """Parses a Stage object; None if it has no selector, and so matches nothing. Raises StageError."""
    name = (obj.get("metadata") or {}).get("name", "")
    try:
        return _stage(name, obj)
    except StageError as error:
        raise StageError(f"Stage {name}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StageError(f"Stage {name}: it is malformed: {error!r}") from None


def _stage(name: str, obj: StoredObject) -> Stage | None:
    if obj.get("apiVersion") != GROUP or obj.get("kind") != "Stage":
        raise StageError(f"{obj.get('apiVersion')} {obj.get('kind')} is not supported")
    spec = obj["spec"]
    _check_fields(_SPEC, spec, "")
    if spec.get("selector") is None:
        return None
    reference = spec["resourceRef"]
    delay = spec.get("delay") or {}
    _check_fields({"durationMilliseconds", "durationFrom", "jitterDurationMilliseconds", "jitterDurationFrom"}, delay, "delay.")
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


def _check_fields(known: Iterable[str], found: Mapping[str, Any], where: str) -> None:
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise StageError(f"{where}{unknown[0]} is not supported")


def _tests(selector: StoredObject) -> Iterable[Test]:
    _check_fields({"matchLabels", "matchAnnotations", "matchExpressions"}, selector, "selector.")
    for name, field in (("matchLabels", "labels"), ("matchAnnotations", "annotations")):
        if selector.get(name):
            yield _has_all(field, selector[name])
    for expression in selector.get("matchExpressions") or ():
        yield _expression(expression)


def _has_all(field: str, required: Mapping[str, str]) -> Test:
    return lambda obj: required.items() <= (obj["metadata"].get(field) or {}).items()


def _expression(expression: StoredObject) -> Test:
    if "cel" in expression:
        read = _cel(expression["cel"]["expression"])
        return lambda obj: read(obj) is True
    given = expression.get("jq") or expression
    _check_fields({"key", "operator", "values"}, given, "selector.matchExpressions.")
    query, operator = jq.compile_query(given["key"]), given["operator"]
    values = frozenset(given.get("values") or ())

    def test(obj: StoredObject) -> bool:
        found = query(obj)
        if operator in ("Exists", "DoesNotExist"):
            return bool(found) is (operator == "Exists")
        return any(_as_text(one) in values for one in found) is (operator == "In")

    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise StageError(f"operator {operator} is not supported")
    return test


def _as_text(value: Any) -> str | None:
    """Returns the text that is compared with values: of texts, booleans and integers; None for others."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int) else None


def _value(source: StoredObject | None) -> Read | None:
    if not source:
        return None
    _check_fields({"expressionFrom", "jq", "cel"}, source, "")
    if "cel" in source:
        return _cel(source["cel"]["expression"])
    text = source["expressionFrom"] if "expressionFrom" in source else source["jq"]["expression"]
    query = jq.compile_query(text)
    return lambda obj: next(iter(query(obj)), None)


def _cel(text: str) -> Read:
    try:
        program = Environment({"self": DYN}).compile(text).program
    except ExpressionError as error:
        raise StageError(f"cel: {error}") from None

    def read(obj: StoredObject) -> Any:
        value, _ = program.evaluate({"self": wrap_untyped(obj)})
        return None if isinstance(value, EvaluationError) else value

    return read


def _steps(spec: StoredObject) -> Iterable[Mapping[str, Any]]:
    steps = spec.get("steps")
    if not steps:
        steps = list(_steps_of_next(spec.get("next") or {}))
    for step in steps:
        _check_fields(_STEP, step, "steps.")
        for name, known in (
            ("patch", _PATCH),
            ("apply", {"template", "subresource", "type"}),
            ("event", {"type", "reason", "message"}),
            ("finalizers", {"add", "remove", "empty"}),
        ):
            if name in step:
                _check_fields(known, step[name], f"steps.{name}.")
        for name in ("patch", "apply"):
            if name in step:
                _check_template(step[name].get("template") or "")
        yield step


def _steps_of_next(next_: StoredObject) -> Iterable[dict[str, Any]]:
    """Converts `next` into steps: an event, finalizers, patches (or a template of the status), and a deletion, in that order."""
    _check_fields(_NEXT, next_, "next.")
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
    unknown = sorted(go_templates.compile_template(text.strip()).functions - PLAIN.keys() - CONTEXT)
    if unknown:
        raise StageError(f"template: the function {unknown[0]} is not supported")
