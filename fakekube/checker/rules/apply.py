"""Rules about server-side apply (C7)."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakekube.checker.alterations import is_content, path_text
from fakekube.checker.reaction import children_of, leaves_of
from fakekube.checker.rule import Rule
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.writes import OTHERS_LABEL, is_apply, learned_writes
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange


class AppliedByOthers(Rule):
    """Another field manager owns the fields that the client applies."""

    id = "C7"
    name = "others"
    decisive = True
    provocation = "another manager has applied the same fields"
    fast = True
    obligation = "server-side apply: a controller forces conflicts, and does not repeat a conflicting apply unchanged"
    advice = "apply only the client's own fields, with force=true and a constant fieldManager"
    source = "Kubernetes docs, server-side apply, conflicts"
    expected_seconds = 8.0

    MANAGER = "check-another-manager"

    def __init__(self) -> None:
        self.met: set[str] = set()
        """The paths that another manager has applied, too."""
        self.changed: set[tuple[str, str]] = set()
        """The resources and names of the children that another manager has changed."""
        self.mark = -1

    def require(self, baseline: Baseline) -> None:
        applied_resources(baseline)

    def provoke(self, trial: Trial) -> None:
        met = self.met
        for resource in applied_resources(trial.baseline):

            def take(exchange: Exchange, resource: str = resource) -> None:
                if exchange.path not in met and apply_as_other(trial, exchange, self.MANAGER):
                    met.add(exchange.path)

            trial.faults.on("patch", resource).intercept(take, label="applied by another manager")
        subject = trial.stimulate(_add_label)
        trial.await_reaction(subject)
        self._change_children(trial, subject)
        first = 0
        for _ in range(_CHANGES if not self.met else 0):  # many clients apply again only when the owner has changed
            number = trial.alter(subject, first)
            if number is None:
                break
            first = number + 1
            trial.await_until(lambda: bool(self.met), trial.baseline.seconds_to_react(1.0))
            if self.met or trial.missing_of(subject):
                subject.judged = not trial.missing_of(subject)
                break

    def _change_children(self, trial: Trial, subject: Copy) -> None:
        """Applies other texts to the children of a copy as another manager, among what the client applies: a client that watches
        them applies them again."""
        sent = {
            (call.resource, call.name): call.body
            for call in trial.trace.since()
            if is_apply(call) and call.succeeded and isinstance(call.body, dict)
        }
        for resource in applied_resources(trial.baseline):
            for child in children_of(trial.cluster, subject, resource):
                metadata = {key: child["metadata"][key] for key in ("name", "namespace") if key in child["metadata"]}
                own = sent.get((resource, metadata["name"]), child)
                parts = {part: copy.deepcopy(own[part]) for part in ("data", "spec") if isinstance(own.get(part), dict)}
                for part in parts:
                    self.mark = trial.trace.mark()
                    other = {"apiVersion": child["apiVersion"], "kind": child["kind"], "metadata": metadata, **parts}
                    if _apply_altered(trial, other, part, before=child, manager=self.MANAGER):
                        self.changed.add((resource, str(metadata["name"])))
                        break
        if self.changed:
            trial.wait(trial.baseline.seconds_to_react(1.0))

    def judge(self, trial: Trial) -> Verdict:
        for call in trial.trace.since(trial.provoked_at):
            own = any(one.owns(call.collection, call.namespace, call.name) for one in trial.copies)
            if own and is_apply(call) and call.succeeded and call.mentions(OTHERS_LABEL):  # children may get the labels of owners
                return Verdict.failure(
                    f"applies {call.path} with a label of others, and so becomes its manager", *trial.excerpt([call])
                )
        refused = Counter(
            (call.path, call.exchange.raw_body) for call in trial.trace.since(trial.provoked_at) if _is_conflict_of_managers(call)
        )
        if refused:
            (path, _), count = refused.most_common(1)[0]
            calls = [call for call in trial.trace.since(trial.provoked_at) if call.path == path]
            if count >= 4:
                return Verdict.failure(
                    f"apply of {path} was repeated {count} times after a conflict of managers", *trial.excerpt(calls)
                )
        return super().judge(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        given_up = self._judge_giving_up(trial)
        if given_up is not None:
            return given_up
        again = [
            call
            for call in trial.trace.since(self.mark)
            if is_apply(call) and call.succeeded and (call.resource, call.name) in self.changed
        ]
        return Verdict.success() if self.met or again else Verdict.not_exercised("the client applied no object that existed")

    def _judge_giving_up(self, trial: Trial) -> Verdict | None:
        """Judges whether the client leaves a conflict of managers as it is: it forces no apply, and has not done so later."""
        applied = [call for call in trial.trace.since(trial.provoked_at) if is_apply(call)]
        for call in applied:
            if _is_conflict_of_managers(call) and not any(
                one.path == call.path and one.succeeded and one.number > call.number for one in applied
            ):
                return Verdict.failure(
                    f"apply of {call.path} was refused because of another manager, and the client gave it up",
                    *trial.excerpt([one for one in applied if one.path == call.path]),
                )
        return None


def _is_conflict_of_managers(call: Call) -> bool:
    """Reports whether an apply was refused because of other managers, and not because it has an old resourceVersion."""
    answer = call.answer
    if call.status != 409 or not is_apply(call) or not isinstance(answer, dict):
        return False
    causes = (answer.get("details") or {}).get("causes") or ()
    return any(one.get("reason") == "FieldManagerConflict" for one in causes)


def _add_label(obj: Object) -> None:
    obj["metadata"].setdefault("labels", {})[OTHERS_LABEL] = "kept"


def applied_resources(baseline: Baseline) -> list[str]:
    """Returns the resources that the client applies. Raises NotExercised if there are none."""
    known = learned_writes(baseline, "patch")
    applied = {call.resource for call in baseline.trial.trace.since() if is_apply(call)}
    found = [resource for _, resource in known if resource in applied]
    if not found:
        raise NotExercised("the client does not use server-side apply")
    return found


def apply_as_other(trial: Trial, exchange: Exchange, manager: str) -> bool:
    """Applies the client's configuration with one changed string to an existing object, as another manager.

    Returns whether this succeeded.
    """
    body = exchange.body
    if not isinstance(body, dict):
        return False
    given = body.get("metadata") or {}
    place = {"name": exchange.name, **({"namespace": exchange.namespace} if exchange.namespace else {})}
    suffix = f"/{exchange.subresource}" if exchange.subresource else ""
    other = {**body, "metadata": {**place, **{key: given[key] for key in ("labels", "annotations") if key in given}}}
    try:
        before = trial.cluster.call("GET", exchange.path.removesuffix(suffix))
    except ApiError:
        return False
    parts = [part for part in _TEXTS if isinstance(other.get(part), dict)]
    if parts:
        subresource = exchange.subresource
        return any(_apply_altered(trial, other, one, before=before, manager=manager, subresource=subresource) for one in parts)
    return _apply_altered(trial, other, "metadata", before=before, manager=manager)  # a client may apply metadata only


#: The parts of an object whose texts another manager changes.
_TEXTS = ("data", "stringData", "spec", "status")
#: How many texts of a part are tried until the API accepts a change, and how many strings of the owner are changed.
_MOST_TEXTS, _CHANGES = 8, 3
#: How a text is changed: at its end, by three more bytes at the beginning of data in base64, or by one more digit of a quantity.
_FORMS = ("{}-x", "QUJD{}", "1{}")


def _apply_altered(trial: Trial, obj: Object, part: str, *, before: Object, manager: str, subresource: str = "") -> bool:
    """Applies an object as another manager, with another text in one of its parts; returns whether the API accepts one.

    The last texts are tried first: in most kinds selectors and names, which cannot be changed, are the first ones.

    Args:
        trial: the run.
        obj: the object to apply.
        part: the member in which a text is changed.
        before: the object as it is.
        manager: the field manager.
        subresource: "" for the object itself.
    """
    texts = [path for path in _paths_of_texts(obj[part]) if part != "metadata" or path[0] in ("labels", "annotations")]
    for path, form in itertools.product(texts[: -_MOST_TEXTS - 1 : -1], _FORMS):
        altered = {**obj, part: copy.deepcopy(obj[part])}
        place = altered[part]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = form.format(place[path[-1]])
        with suppress(ApiError):
            after = trial.cluster.apply(altered, field_manager=manager, force=True, subresource=subresource)
            if _count_texts(after.get(part)) == _count_texts(before.get(part)):
                return True
    return False


def _count_texts(value: Any) -> int:
    """Returns how many strings a value has. The change of a name of an item of a list makes another item."""
    return len(_paths_of_texts(value))


def _paths_of_texts(value: Any) -> list[tuple[Any, ...]]:
    """Returns the paths of the strings in a value."""
    return [path for path, leaf in leaves_of(value) if isinstance(leaf, str)]


class ConstantManager(Rule):
    """The client is restarted."""

    id = "C7"
    name = "restart"
    provocation = "the client applies, is started again, and applies again"
    obligation = "server-side apply: the field manager is the same after a restart"
    advice = "name the field manager after the controller, without a process id, host name or random part"
    source = "Kubernetes docs, server-side apply, managers"
    expected_seconds = 6.0

    restarts = True
    managers: Sequence[tuple[str, set[str], set[str]]] = ()
    """The resources, with the field managers before and after the restart."""

    def require(self, baseline: Baseline) -> None:
        applied_resources(baseline)

    def provoke(self, trial: Trial) -> None:
        resources = applied_resources(trial.baseline)
        before = _managers(trial.trace.since(), resources)
        trial.restart_client()
        mark = trial.trace.mark()
        trial.converge()
        after = _managers(trial.trace.since(mark), resources)
        self.managers = [(one, before[one], after[one]) for one in resources if one in before and one in after]

    def judge_trace(self, trial: Trial) -> Verdict:
        managers = self.managers
        for resource, before, after in managers:
            if not before & after:
                return Verdict.failure(
                    f"applies {resource} as {', '.join(sorted(before))}, after a restart as {', '.join(sorted(after))}"
                )
        return Verdict.success() if managers else Verdict.not_exercised("the client did not apply before and after the restart")


def _managers(calls: Sequence[Call], resources: Sequence[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for call in calls:
        if call.verb == "patch" and call.resource in resources and "fieldManager" in call.query:
            found.setdefault(call.resource, set()).add(call.query["fieldManager"])
    return found


def judge_alternating_applies(trial: Trial) -> Verdict | None:
    """Judges whether the applies of an object alternate between two parts of it: each removes what only the other one has."""
    applied: dict[tuple[str, str], list[Call]] = {}
    for call in trial.trace.since():
        if is_apply(call) and call.succeeded and isinstance(call.body, dict):
            applied.setdefault((call.path, call.query.get("fieldManager", "")), []).append(call)
    for (path, _), calls in applied.items():
        parts = [frozenset(place for place, _ in leaves_of(call.body) if is_content(place[0])) for call in calls]
        for first in range(len(calls) - _ALTERNATIONS + 1):
            one, other = parts[first : first + 2]
            if one - other and other - one and parts[first : first + _ALTERNATIONS] == [one, other] * (_ALTERNATIONS // 2):
                lost = path_text(min(one - other, key=str))
                return Verdict.failure(
                    f"applies {path} with {lost} and without it in turn: the server removes what is left out",
                    *trial.excerpt(calls[first : first + _ALTERNATIONS]),
                )
    return None


#: How many applies of an object alternate between two parts if the client never applies all that it wants.
_ALTERNATIONS = 6


RULES = (AppliedByOthers, ConstantManager)
