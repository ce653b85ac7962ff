"""Rules for the failure patterns of sieve-project/sieve: stale, intermediate and unobserved state (W16, S1 to S3).

A controller restarts with an old view of the cluster, is killed between two writes, or misses changes.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.apimachinery.errors import status
from fakekube.checker.alterations import changes_of_all, changes_of_texts
from fakekube.checker.client_run import ClientEnded, HotLoop
from fakekube.checker.judges import judge_extra_children
from fakekube.checker.provocations import answer_with
from fakekube.checker.reaction import Copy, Effect, EffectKind, Reaction, children_of, effects_of
from fakekube.checker.rule import Rule
from fakekube.checker.rules.deletions import has_own_watch, require_repaired, watched_children
from fakekube.checker.rules.lists import require_lists
from fakekube.checker.sample import new_token
from fakekube.checker.trace import LEASES, WRITES, mentions
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_long_watches, await_quiet, await_requests
from fakekube.checker.writes import (
    delete_children,
    generated_children,
    learned_writes,
    own_objects,
    require_children,
    require_generated_children,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange

_SIEVE = "Sieve (sieve-project/sieve)"


def lease_seconds(trial: Trial) -> float:
    """Returns how many seconds a restarted client may wait until the lease of its previous process has expired."""
    for call in trial.baseline.trial.trace.since():
        if call.collection == LEASES and call.is_write and isinstance(call.body, dict):
            return 2.5 * float((call.body.get("spec") or {}).get("leaseDurationSeconds") or 0)
    return 0.0


def start_timeout(trial: Trial) -> Callable[[float], float]:
    """Returns the `reaction_timeout` of a client that has been started again, as `await_until` takes it: it includes the seconds
    until the lease of its previous process has expired."""
    seconds = lease_seconds(trial)
    return lambda since: trial.reaction_timeout(since) + seconds


class StaleRestart(Rule):
    """The client restarts and sees the cluster as it was before a copy was created."""

    id = "W16"
    name = "restart"
    provocation = "started again on a list of before a copy was made"
    distorts = True
    steps = ("W8",)
    obligation = "after a restart a list may be older than the state that the client saw before: delete nothing because of it"
    advice = "read from storage (no resourceVersion) before a delete, and delete with preconditions"
    source = f"kubernetes PR #83520; KEP-5647; {_SIEVE}: stale state"
    legality = "B"
    expected_seconds = 25.0

    #: How many seconds the client sees the old state.
    SECONDS = 4.0

    copy: Copy
    children: Mapping[str, tuple[str, str]] = MappingProxyType({})

    restarts = True

    def require(self, baseline: Baseline) -> None:
        self.stale_resources(baseline)

    def provoke(self, trial: Trial) -> None:
        resources = self.stale_resources(trial.baseline)
        before = trial.advance_revisions(15)
        trial.advance_revisions(15)
        subject = trial.stimulate()
        trial.await_reaction(subject)
        self.copy = subject
        self.children = {
            child["metadata"]["uid"]: (one, child["metadata"]["name"])
            for one in trial.baseline.reaction.children
            for child in children_of(trial.cluster, subject, one)
        }
        trial.kill_client()
        require_lists(trial)  # initial events are never stale
        newest = trial.advance_revisions(1)
        faults = []
        for one in resources:
            old = trial.faults.on("list,get,watch", one).stale(newest - before, label="an old view")
            faults += [old, trial.faults.on("watch", one).silence(label="an old view")]
        trial.begin_provocation()
        trial.start_client()
        trial.wait(self.SECONDS + lease_seconds(trial))
        for fault in faults:
            fault.remove()
        trial.faults.on("watch").cut(label="the view is new again").remove()

    def stale_resources(self, baseline: Baseline) -> list[str]:
        """Returns the resources whose old state the client sees: those of the sample. Raises NotExercised if there are none."""
        if not baseline.reaction.children:
            raise NotExercised("the client creates no children that it could delete by mistake")
        return sorted(set(baseline.control.resources))

    def find_failure(self, trial: Trial) -> Verdict | None:
        children = self.children
        names = {name for _, name in children.values()}
        deleted = [
            call
            for call in trial.trace.since(trial.provoked_at)
            if call.verb == "delete" and call.succeeded and call.name in names
        ]
        if deleted:
            return Verdict.failure(
                f"deleted {deleted[0].collection}/{deleted[0].name} because of an old list", *trial.excerpt(deleted)
            )
        return None


class StaleChildren(StaleRestart):
    """The client restarts and sees its children as they were before it created the last ones."""

    id = "S1"
    name = "stale"
    provocation = "started again on a list of before its children were made"
    expected_seconds = 8.0
    steps = ("W8",)
    obligation = "after a restart the cache may lack objects that the client has created: look before creating them again"
    advice = "read from storage before a create with generateName, or derive names from the owner"

    def stale_resources(self, baseline: Baseline) -> list[str]:
        require_generated_children(baseline)
        return sorted(generated_children(baseline))

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_extra_children(trial, generated_children(trial.baseline))


class KilledBetweenWrites(Rule):
    """The client is killed after each of its writes for a copy, and restarted."""

    id = "S2"
    name = "killed"
    provocation = "killed between two of its writes, and started again"
    fast = True
    obligation = "a client finishes interrupted work after a restart, and does nothing twice"
    advice = "derive the remaining work from the cluster's state; write the completion mark last"
    source = f"{_SIEVE}: intermediate state"
    legality = "A"
    expected_seconds = 12.0

    #: The largest number of writes after which the client is killed.
    PLACES = 5

    restarts = True

    def require(self, baseline: Baseline) -> None:
        if len(learned_writes(baseline)) < 2:
            raise NotExercised("the client's reaction has fewer than two writes")

    def provoke(self, trial: Trial) -> None:
        count = len(learned_writes(trial.baseline))
        places = range(1, count)
        if len(places) > self.PLACES:
            places = range(1, self.PLACES + 1)
        for place in places:
            if not self._die(trial, place) or self.find_failure(trial):
                return

    def _die(self, trial: Trial, place: int) -> bool:
        """Kills the client within its reaction to a fresh copy, and restarts it; returns whether it completes its reaction."""
        subject = self.kill(trial, place)
        if subject is None:
            return True
        trial.start_client()
        return trial.await_reaction(subject, start_timeout(trial))

    @staticmethod
    def kill(trial: Trial, place: int, *, refused: bool = False) -> Copy | None:
        """Kills the client just before a write for a fresh copy, after `place` other writes; returns the copy, or None if there
        was no such write. `refused`: the write that is under way then is not performed."""
        killed = threading.Event()
        counting = threading.Lock()
        done: list[int] = []
        token = new_token(trial.random)
        refusal = answer_with(status.internal("the client was killed"))

        def count(exchange: Exchange) -> tuple[int, Any] | None:
            if not mentions(exchange, token):
                return None
            with counting:
                done.append(exchange.number)
                if len(done) > place and not killed.is_set():
                    trial.kill_client()
                    killed.set()
            return refusal if refused and killed.is_set() else None

        fault = trial.faults.on("create,update,patch,delete").intercept(count, label="killed")
        subject = trial.stimulate(token=token)
        trial.await_until(killed.is_set, trial.reaction_timeout)
        fault.remove()
        return subject if killed.is_set() else None

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_extra_children(trial, generated_children(trial.baseline))


class MissedChildDeletion(Rule):
    """A child is deleted while the client is disconnected, and the history is compacted."""

    id = "S3"
    name = "child"
    provocation = "a child is deleted while the client is disconnected, and the events are compacted"
    steps = ("W8", "R2")
    fast = True
    obligation = "act on the present state, not on events: the client may miss any event"
    advice = "compare desired and present state in each reconcile, and reconcile all objects after a list"
    source = f"{_SIEVE}: unobserved state; client-go reflector (Replace)"
    expected_seconds = 12.0

    ignored: str = ""
    """The resource of children that the client watches by a stream of their own, and does not recreate; "" if there is none."""

    def require(self, baseline: Baseline) -> None:
        require_children(baseline)

    def provoke(self, trial: Trial) -> None:
        subject = trial.copies[0]
        resources = trial.baseline.reaction.children
        try:
            mended = require_repaired(trial, subject, resources)
        except NotExercised:
            watched = sorted(one for one in resources if has_own_watch(trial.baseline, one))
            if not watched or trial.await_reaction(subject):
                raise
            self.ignored, subject.judged = watched[0], False
            return
        trial.await_all()
        with trial.disconnect():
            for one in mended:
                delete_children(trial, subject, one)
            trial.compact()

    def judge_trace(self, trial: Trial) -> Verdict:
        if not self.ignored:
            return Verdict.success()
        return Verdict.warning(
            f"watches {self.ignored}, and does not recreate those for {trial.copies[0].names()[0]} when they are deleted",
            *trial.excerpt(),
            by_time=True,
        )


class MissedDeletion(Rule):
    """A copy is deleted while the client is disconnected, and the history is compacted."""

    id = "S3"
    name = "deletion"
    provocation = "an object is deleted while the client is disconnected, and the events are compacted"
    steps: ClassVar[Sequence[str]] = ("W8", "R2")
    fast = True
    obligation = MissedChildDeletion.obligation
    advice = MissedChildDeletion.advice
    source = MissedChildDeletion.source
    expected_seconds = 10.0

    gone: bool | None = None
    left: Sequence[str] = ()

    def require(self, baseline: Baseline) -> None:
        if not baseline.deleted_children and not baseline.adds_finalizer:
            raise NotExercised("the client does not clean up when a copy is deleted")

    def provoke(self, trial: Trial) -> None:
        subject = trial.copies[0]
        self.miss(trial, subject)
        self.gone = trial.await_until(lambda: not self._find_left(trial, subject), trial.reaction_timeout)
        self.left = self._find_left(trial, subject)

    def miss(self, trial: Trial, subject: Copy) -> None:
        """Deletes a copy so that the client does not receive the event at once."""
        with trial.disconnect():
            trial.delete(subject)
            trial.compact()

    @staticmethod
    def _find_left(trial: Trial, subject: Copy) -> list[str]:
        left = [f"{resource}/{obj['metadata']['name']}" for resource, obj in own_objects(trial, subject)]
        for resource in trial.baseline.deleted_children:
            left += [f"{resource}/{child['metadata']['name']}" for child in children_of(trial.cluster, subject, resource)]
        return left

    def judge(self, trial: Trial) -> Verdict:
        if not (trial.ended or trial.loop) and self.gone is False:
            shown = ", ".join(self.left[:3])
            return Verdict.failure(f"not cleaned up after the deletion of the copy: {shown}", *trial.excerpt(), by_time=True)
        return super().judge(trial)


class DeletedWhileKilled(MissedDeletion):
    """The client is killed within its reaction to a copy; the copy is deleted before the client is started again."""

    id = "S2"
    name = "deleted"
    provocation = "killed between two of its writes; the object is deleted before it is started again"
    fast = False
    steps = ()
    obligation = KilledBetweenWrites.obligation
    advice = "add the finalizer before anything is made that has to be removed with the object"
    source = f"{KilledBetweenWrites.source}; Kubernetes docs, finalizers"
    expected_seconds = 15.0

    restarts = True

    #: After how many writes the client is killed: the finalizer, and the first child.
    PLACE = 2

    def require(self, baseline: Baseline) -> None:
        if not baseline.adds_finalizer or not baseline.deleted_children:
            raise NotExercised("the client has no finalizer for what it makes")
        children = baseline.reaction.children
        further = sum(children.values()) - len(children)  # the creates of a resource are one of the learned writes
        if len(learned_writes(baseline)) + further <= self.PLACE:
            raise NotExercised(f"the client's reaction has no more than {self.PLACE} writes")

    def provoke(self, trial: Trial) -> None:
        subject = KilledBetweenWrites.kill(trial, self.PLACE, refused=True)
        if subject is None:
            raise NotExercised("the client could not be killed between its writes")
        subject.judged = False
        trial.delete(subject)
        trial.cluster.settle()
        trial.start_client()
        self.gone = trial.await_until(lambda: not self._find_left(trial, subject), start_timeout(trial))
        self.left = self._find_left(trial, subject)


class DeletionBehindEnd(MissedDeletion):
    """A copy is deleted while a watch that ended normally reconnects; the resumed watch delivers it, or its deletionTimestamp."""

    name = "deletion-end"
    provocation = "an object is deleted just behind the normal end of a watch"
    watches = True
    fast = False
    steps = ("W5",)

    def miss(self, trial: Trial, subject: Copy) -> None:
        await_long_watches(trial)
        with trial.faults.on("watch").hang(label="held up"):
            await_requests(trial, trial.end_watches())
            trial.delete(subject)


class MissedChange(Rule):
    """A copy is changed while the client is disconnected, and the history is compacted."""

    id = "S3"
    name = "change"
    provocation = "an object is changed while the client is disconnected, and the events are compacted"
    steps: ClassVar[Sequence[str]] = ("W8", "R2")
    fast = True
    obligation = MissedChildDeletion.obligation
    advice = MissedChildDeletion.advice
    source = MissedChildDeletion.source
    expected_seconds = 20.0

    reaction: Reaction
    """The writes of the client after a change of a copy."""
    change: int = 0
    """The number of the change to which the client reacts."""
    ending: str = ""
    """What the last change has appended, if it has changed a text."""
    mark: int = -1

    #: How many changes are tried until the client reacts to one.
    CHANGES: ClassVar[int] = 4

    def require(self, baseline: Baseline) -> None:
        if not learned_writes(baseline):
            raise NotExercised("the client writes nothing")
        if not changes_of_all(baseline.control.objects, "changed", 1):
            raise NotExercised("the sample has no text or number that can be changed")
        if baseline.unchanged and baseline.change is None:
            raise NotExercised(baseline.unchanged)

    def provoke(self, trial: Trial) -> None:
        self.reaction = self.learn(trial)
        self.mark = trial.trace.mark()
        with trial.disconnect():
            self._alter(trial, trial.copies[0])
            trial.compact()
        trial.await_until(lambda: not self._missing(trial), trial.reaction_timeout)

    def learn(self, trial: Trial) -> Reaction:
        """Returns the writes of the client after it sees changes of copies; tries several until it writes something. Raises
        NotExercised if it never does."""
        if trial.baseline.change is not None:
            self.change, reaction = trial.baseline.change
            await_quiet(trial, trial.copies[0].mark, [trial.copies[0].token])
            return reaction
        try:
            return self._try_changes(trial)
        except NotExercised as problem:
            trial.baseline.unchanged = str(problem)
            raise

    def _try_changes(self, trial: Trial) -> Reaction:
        """Tries changes of two copies until the client writes something for both, and tells the baseline of it. Raises
        NotExercised."""
        copies = self._await_copies(trial, (trial.copies[0], trial.stimulate()))
        undone = False
        texts = sum(len(changes_of_texts(obj, "")) for obj in copies[0].objects)
        for attempt in range(self.CHANGES):
            if attempt == self.CHANGES - 1:  # the client reacts to no text: then to a number
                self.change = max(self.change, texts)
            writes = self._observe(trial, copies) and self._observe(trial, copies)  # does it react each time?
            undone = any(trial.missing_of(copy) for copy in copies)
            if writes and not undone:
                trial.baseline.change = self.change, Reaction(writes)
                return Reaction(writes)
            self.change += 1
            if undone:
                for copy in copies:
                    copy.judged = False
                copies = self._await_copies(trial, (trial.stimulate(), trial.stimulate()))
        if undone:
            raise NotExercised("the client undoes its reaction after a change of a value in a copy")
        raise NotExercised("the client writes nothing when a copy is changed")

    @staticmethod
    def _await_copies(trial: Trial, copies: tuple[Copy, Copy]) -> tuple[Copy, Copy]:
        """Waits until the client has reacted to copies, and returns them; the first one becomes the first copy of the run, which
        the rules change later."""
        trial.copies.remove(copies[0])
        trial.copies.insert(0, copies[0])
        trial.await_all()
        await_quiet(trial, copies[0].mark, [copy.token for copy in copies])
        return copies

    def _observe(self, trial: Trial, copies: Sequence[Copy]) -> dict[Effect, int]:
        """Changes copies, and returns the writes of the client after it has seen that."""
        mark = trial.trace.mark()
        try:
            for copy in copies:
                self._alter(trial, copy)
            await_quiet(trial, mark, [copy.token for copy in copies])
        except (ClientEnded, HotLoop):
            raise NotExercised("the client ends or loops after a change of a value in a copy") from None
        sent = Reaction.common(*(effects_of(trial.cluster, copy, trial.trace.since(mark)) for copy in copies))
        return {one: count for one, count in sent.effects.items() if one.kind is EffectKind.REQUEST and one.detail[0] in WRITES}

    def _alter(self, trial: Trial, copy: Copy) -> None:
        """Changes a copy. Raises NotExercised if there is nothing to change."""
        ending = new_token(trial.random)
        number = trial.alter(copy, self.change, ending)
        if number is None:
            tried = "no other value" if self.change else "no value"
            raise NotExercised(f"the sample has {tried} that can be changed")
        self.change, self.ending = number, ending

    @property
    def writes_after_change(self) -> set[tuple[str, str]]:
        """(verb, resource) of the writes with which the client reacts to a change."""
        return {(one.detail[0], one.resource) for one in self.reaction.effects}

    def subjects(self, trial: Trial) -> Sequence[Copy]:
        """Returns the copies that are changed."""
        return trial.copies[:1]

    def _missing(self, trial: Trial) -> list[Effect]:
        return [effect for copy in self.subjects(trial) for effect in self._missing_of(trial, copy)]

    def _missing_of(self, trial: Trial, copy: Copy) -> list[Effect]:
        return self.reaction.missing(trial.cluster, copy, trial.trace.since(self.mark))

    def judge_trace(self, trial: Trial) -> Verdict:
        for copy in self.subjects(trial):
            if missing := self._missing_of(trial, copy):
                text = f"no reaction to the change of {copy.names()[0]}: before, the client {missing[0]}"
                return Verdict.failure(text, *trial.excerpt(), by_time=True)
        return Verdict.success()


class UnseenChild(MissedChange):
    """A child is deleted before the client's watch has told of its creation: no event of it will ever come. Then its owner
    changes."""

    name = "unseen"
    provocation = "a child is deleted before its watch has told of it, the events are compacted, and its owner changes"
    fast = False
    watches = True
    steps = ("W8", "W1")
    advice = "let expectations of events end after some seconds, and with each new list; then compare desired and present state"
    source = f"{_SIEVE}: unobserved state; kube-controller-manager (ControllerExpectations, ExpectationsTimeout)"
    expected_seconds = 15.0

    #: Seconds in which a client completes its reaction without the events of its children; some wait for these.
    UNTOLD: ClassVar[float] = 5.0
    #: How many times the owner changes, and the seconds after each: a client may wait some seconds for the event.
    TIMES: ClassVar[int] = 2
    EXPECTED: ClassVar[float] = 12.0

    lost: Copy | None = None

    def require(self, baseline: Baseline) -> None:
        super().require(baseline)
        watched_children(baseline)

    def provoke(self, trial: Trial) -> None:
        known = trial.copies[0]
        mended = require_repaired(trial, known, watched_children(trial.baseline))
        self.reaction = self.learn(trial)
        with ExitStack() as untold:
            for resource in mended:
                untold.enter_context(trial.faults.on("watch", resource).silence(label="late"))
            subject = trial.stimulate()
            enough = trial.baseline.seconds_to_react(self.UNTOLD)
            if not trial.await_until(lambda: all(children_of(trial.cluster, subject, one) for one in mended), enough):
                raise NotExercised("the client makes no children while their watch is silent")
            await_quiet(trial, subject.mark, [subject.token])
            changed, _ = changes_of_all(subject.objects, "", 1)[self.change]
            others = {obj["metadata"]["uid"] for number, obj in enumerate(subject.objects) if number != changed}
            for resource in mended:
                delete_children(trial, subject, resource, others)  # nothing tells the client to look at the other objects
            trial.compact()
        for resource in mended:
            trial.faults.on("watch", resource).cut(label="late").remove()
        subject.judged = False
        trial.converge()
        subject.judged = True
        self.lost = subject
        for _ in range(self.TIMES):  # without any event a client need not look at the copy
            self._alter(trial, subject)
            if trial.await_reaction(subject, trial.baseline.seconds_to_react(self.EXPECTED)):
                return

    def judge(self, trial: Trial) -> Verdict:
        lost = self.lost
        if lost is None or trial.ended or trial.loop or not (missing := trial.missing_of(lost)):
            return super().judge(trial)
        # Not a failure: the expectations of Kubernetes' own controllers end after five minutes, for which no run waits.
        return Verdict.warning(
            f"{lost.names()[0]} stays incomplete, although it was changed: what the client had made was deleted before any event "
            f"told of it, and in the baseline run the client {missing[0]}",
            *trial.excerpt(),
            by_time=True,
        )

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success()


RULES = (
    StaleRestart,
    StaleChildren,
    KilledBetweenWrites,
    DeletedWhileKilled,
    MissedChildDeletion,
    MissedDeletion,
    DeletionBehindEnd,
    MissedChange,
    UnseenChild,
)
