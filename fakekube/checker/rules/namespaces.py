"""Rules about objects of the same name in two namespaces (C5)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fakekube.checker.alterations import path_text
from fakekube.checker.reaction import EffectKind, children_of, is_time, leaves_of, value_at
from fakekube.checker.rule import Rule
from fakekube.checker.rules.identity import RecreatedOwner
from fakekube.checker.sample import new_token
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.writes import own_objects
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial


class SameName(Rule):
    """Two objects of the same name are created in two namespaces, while the client cannot watch, and one after the other; later
    one of them is deleted."""

    id = "C5"
    name = "namespaces"
    provocation = "objects of the same name are created in two namespaces, and one of them is deleted"
    obligation = RecreatedOwner.obligation
    advice = "key caches and queues by namespace and name, or by the uid"
    source = "API conventions, metadata (a name is unique within its namespace)"
    steps = ("W8", "R2")
    watches = True
    converges = False
    expected_seconds = 10.0

    lacking: str = ""
    """What the client has not done for one of the objects, or has undone; "" if nothing."""

    def require(self, baseline: Baseline) -> None:
        found = {obj["metadata"].get("namespace", "") for obj in baseline.control.objects}
        if len(found) != 1 or "" in found:
            raise NotExercised("the objects of the sample are not in one namespace")
        if any("/namespaces/" in key.path for key in baseline.delivering):
            raise NotExercised("the client watches one namespace")
        if not any(effect.is_state for effect in baseline.reaction.effects):
            raise NotExercised("the client's reaction is not visible in the cluster")
        children = baseline.reaction.children
        made = {call.namespace for call in baseline.trial.trace if call.status == 201 and call.resource in children}
        if children and made.isdisjoint(found):
            raise NotExercised("what the client creates for an object is not in the object's namespace")

    def provoke(self, trial: Trial) -> None:
        namespace = f"check-{new_token(trial.random)}"
        trial.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        trial.cluster.settle(timeout=10.0)

        def move(obj: Object) -> None:
            obj["metadata"]["namespace"] = namespace

        first = trial.stimulate(move)
        first.judged = False
        if not trial.await_reaction(first, trial.baseline.seconds_to_react(5.0)):
            raise NotExercised("the client does not handle objects in a new namespace")
        if _lacking(trial, first):
            raise NotExercised("what the client creates for an object is not in the object's namespace")
        if self._lacks_one(trial, self._make_pair(trial, move, together=True)):
            return
        pair = self._make_pair(trial, move, together=False)
        if self._lacks_one(trial, pair) or self._mixes(trial, pair, [trial.copies[0], first]):
            return
        trial.delete(pair[1])
        trial.wait(trial.baseline.seconds_to_react(1.0))
        if undone := _lacking(trial, pair[0]):
            self.lacking = f"{undone} any more, since the object of the same name in {namespace} was deleted"

    def _mixes(self, trial: Trial, pair: Sequence[Copy], alone: Sequence[Copy]) -> bool:
        """Waits until what the client writes into both copies is what it writes into some whose name only they have, and reports
        whether it stays different."""

        def find_mixed() -> str:
            usual, other = (_written_values(trial, one) for one in alone)
            for copy in pair:
                for path, value in _written_values(trial, copy).items():
                    if path in usual and usual[path] == other.get(path) and value != usual[path]:
                        where = f"{copy.objects[0]['metadata']['namespace']}/{copy.names()[0]}"
                        return f"{path_text(path[1:])} of {where} is {value}, and not {usual[path]} as usual"
            return ""

        if trial.await_until(lambda: not find_mixed(), trial.reaction_timeout):
            return False
        mixed = find_mixed()
        self.lacking = f"{mixed}, while {pair[0].names()[0]} exists in two namespaces" if mixed else ""
        return bool(mixed)

    @staticmethod
    def _make_pair(trial: Trial, move: Callable[[Object], None], *, together: bool) -> tuple[Copy, Copy]:
        """Makes two copies of the same name, the second one in the other namespace: both while the client cannot watch, so that
        it handles them at the same time, or the second one when it has handled the first one."""
        token = new_token(trial.random)
        if together:
            with trial.disconnect():
                pair = (trial.stimulate(token=token), trial.stimulate(move, token=token))
        else:
            first = trial.stimulate(token=token)
            trial.await_reaction(first)
            pair = (first, trial.stimulate(move, token=token))
        for copy in pair:
            copy.judged = False
        return pair

    def _lacks_one(self, trial: Trial, pair: tuple[Copy, Copy]) -> bool:
        """Waits for the reaction to both copies, and reports whether that to one of them is incomplete."""
        if trial.await_until(lambda: not any(_lacking(trial, copy) for copy in pair), trial.reaction_timeout):
            return False
        lacking = next((text for copy in pair if (text := _lacking(trial, copy))), "")
        self.lacking = f"{lacking}, while {pair[0].names()[0]} exists in two namespaces" if lacking else ""
        return bool(lacking)

    def judge(self, trial: Trial) -> Verdict:
        if self.lacking and not (trial.ended or trial.loop):
            return Verdict.failure(self.lacking, *trial.excerpt(), by_time=True)
        return super().judge(trial)


def _lacking(trial: Trial, copy: Copy) -> str:
    """Returns what of the reaction to a copy is missing in its own namespace; "" if nothing is."""
    namespace, name = copy.objects[0]["metadata"]["namespace"], copy.names()[0]
    for effect in trial.missing_of(copy):
        if effect.kind is EffectKind.FIELD:
            return f"{namespace}/{name} has no {'.'.join(effect.detail)}"
    for resource, count in trial.baseline.reaction.children.items():
        found = []
        with suppress(ApiError):
            found = [one for one in children_of(trial.cluster, copy, resource) if one["metadata"].get("namespace") == namespace]
        if len(found) < count:
            return f"{namespace}/{name} has no {resource}"
    return ""


def _written_values(trial: Trial, copy: Copy) -> dict[tuple[str | int, ...], str]:
    """Returns what the client has written into the objects of a copy, without the copy's token and namespace, and without times.

    The first part of a path is the resource.
    """
    found: dict[tuple[str | int, ...], str] = {}
    for resource, obj in own_objects(trial, copy):
        for effect in trial.baseline.reaction.effects:
            if effect.kind is not EffectKind.FIELD or effect.resource != resource:
                continue
            for path, value in leaves_of(value_at(obj, effect.detail)):
                if not is_time(value):
                    text = str(value).replace(copy.token, "{}").replace(obj["metadata"]["namespace"], "{namespace}")
                    found[resource, *effect.detail, *path] = text
    return found


RULES = (SameName,)
