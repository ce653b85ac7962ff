"""Rules about caches that do not contain the client's own last writes yet (C8, C9)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fakekube.checker.judges import judge_extra_children
from fakekube.checker.provocations import shape_of
from fakekube.checker.reaction import Copy, children_of, written_fields
from fakekube.checker.rule import Rule
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet
from fakekube.checker.writes import TOUCHED, generated_children, require_generated_children, require_own_writes, touch_objects
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault


class StaleCacheAfterCreate(Rule):
    """The watches of children deliver no events for some time after a create."""

    id = "C8"
    name = "late"
    provocation = "the watch that would tell of a created child is late"
    steps = ("W8",)
    obligation = "no second create until the cache contains the first object"
    advice = "remember created objects until the watch delivers them, or derive their names from the owner"
    source = "KEP-5647; controller expectations of kube-controller-manager"
    expected_seconds = 20.0

    def require(self, baseline: Baseline) -> None:
        require_generated_children(baseline)

    def provoke(self, trial: Trial) -> None:
        resources = list(generated_children(trial.baseline))
        faults = [trial.faults.on("watch", resource).silence(label="late") for resource in resources]
        subject = trial.stimulate()
        trial.await_until(
            lambda: all(children_of(trial.cluster, subject, resource) for resource in resources), trial.reaction_timeout
        )
        for _ in range(4):
            touch_objects(trial, subject)
            trial.wait(0.7)
        for fault in faults:
            fault.remove()
        for resource in resources:
            trial.faults.on("watch", resource).cut(label="late").remove()

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_extra_children(trial, generated_children(trial.baseline))


class StaleCacheAfterUpdate(Rule):
    """The watch of the sample's objects delivers nothing after a copy was made, while the client is woken by its children."""

    id = "C9"
    name = "late"
    provocation = "the watch that would tell of the client's own writes to an object is late"
    obligation = "a client whose cache does not have its own last write yet does not repeat or undo the write"
    advice = "compare the cache with the resourceVersion of the last own write, and wait until it has caught up"
    source = "KEP-5647 (stale controller handling); client-go tools/cache (LastStoreSyncResourceVersion)"
    steps = ("W8",)
    watches = True
    expected_seconds = 12.0

    mark: int = -1
    copy: Copy | None = None

    def require(self, baseline: Baseline) -> None:
        require_own_writes(baseline)
        watched = set(baseline.streams.values())
        if not any(resource in watched for resource in baseline.reaction.children):
            raise NotExercised("nothing wakes the client while its cache is old: it watches no children")
        if any(baseline.periodic_fields().get(resource) for resource in baseline.control.resources):
            raise NotExercised("the client changes the objects all the time")

    def provoke(self, trial: Trial) -> None:
        resources = {trial.baseline.control.resources[number] for number in trial.baseline.written}
        faults: list[Fault] = []

        def silence(exchange: Exchange) -> None:
            if not faults:  # just before the first write, of which the cache must not know
                faults.extend(trial.faults.on("watch", resource).silence(label="late") for resource in resources)

        with trial.faults.on("create,update,patch").intercept(silence, label="late"):
            subject = self.copy = trial.stimulate()
            enough = trial.baseline.seconds_to_react(_COMPLETE_WITHIN)
            complete = trial.await_until(lambda: not trial.missing_of(subject), enough)
        if complete:
            await_quiet(trial, subject.mark, [subject.token])
            self.mark = trial.trace.mark()
        for number in range(_WAKES if complete else 0):
            change = {"metadata": {"annotations": {TOUCHED: str(number)}}}
            for resource in trial.baseline.reaction.children:
                for child in children_of(trial.cluster, subject, resource):
                    metadata = child["metadata"]
                    with suppress(ApiError):
                        trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))
            trial.wait(0.6)
        for fault in faults:
            fault.remove()
        for resource in resources:
            trial.faults.on("watch", resource).cut(label="late").remove()

    def find_failure(self, trial: Trial) -> Verdict | None:
        if self.copy is None:
            return None
        extra = judge_extra_children(trial, trial.baseline.reaction.children)
        if extra is not None:
            return extra
        names = self.copy.names()
        changing: dict[object, list[Call]] = {}
        for call in trial.trace.since(self.copy.mark):
            if (
                call.is_write
                and call.succeeded
                and call.name in names
                and call.collection in self.copy.resources
                and written_fields(trial.cluster, call, call.name)
            ):
                same = changing.setdefault((call.verb, call.path, shape_of(call.body)), [])
                # A write without a change has the revision of the last one.
                if all(call.revision != one.revision for one in same):
                    same.append(call)
        repeated = max(changing.values(), key=len, default=[])
        late = [call for call in repeated if 0 <= self.mark < call.number]
        if len(repeated) < _CHANGES and len(late) < _REPEATED:
            return None
        return Verdict.failure(
            f"{repeated[0].verb} {repeated[0].path} changes the object {len(repeated)} times: the cache did not have the "
            "client's own write",
            *trial.excerpt(repeated),
        )


#: How many equal changes of an object are a failure, while the cache is old.
_CHANGES = 4
#: How many times the children wake the client, and how many more changes of their owner are a failure after the reaction.
_WAKES, _REPEATED = 4, 2
#: Seconds within which a client completes its reaction without the events of its own writes; many wait for them.
_COMPLETE_WITHIN = 5.0


RULES = (StaleCacheAfterUpdate, StaleCacheAfterCreate)
