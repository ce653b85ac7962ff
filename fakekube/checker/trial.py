"""One run of the client: creates copies of the sample, provokes the client, and waits for its reactions. Each run refers to the
baseline run, which shows what the client does without faults.

Invariant: only copies that are not deleted, and calls since the provocation, are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from fakekube.checker.alterations import changes_of_all
from fakekube.checker.client_run import ClientRun, Decided, HotLoop
from fakekube.checker.reaction import Copy, Effect, EffectKind, Reaction, children_of, has_delivered, written_fields
from fakekube.checker.sample import new_token
from fakekube.checker.trace import CLOSED, LEASES, LOOP_SECONDS, Call, Stream, StreamKey, describe_hot_loop, excerpt, lines_of
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.controllers.client import ApiError, UnknownResource

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from fakekube.base.objects import Object
    from fakekube.checker.sample import Sample
    from fakekube.checker.session import Session

#: How many of the watches that began before the provocation are part of the evidence.
_WATCHES_BEFORE = 2

#: A client without --idle does not close a silent watch within so many seconds.
_IDLE_LIMIT = 5.0
#: The part of --idle within which a client does not close one; it begins to measure before the server does.
_IDLE_PART = 0.5

#: The first pause of a backoff that is assumed for a client that has not paused yet, and the longest one, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0
#: How many times a client that only lists may list before it reacts.
_POLLS = 2
#: How many times longer than the longest pause of a backoff the next one may be: it doubles, and jitter doubles it again.
_GROWTH = 4.5

#: Until its first request the client may take so many seconds, plus so many times the seconds of the baseline run.
_START, _STARTS = 10.0, 5

#: Why rules about watches are not exercised.
DOES_NOT_WATCH = "the client does not watch"

#: The key of the baseline run.
BASELINE = "baseline"

#: An object of a resource that clients do not watch.
_UNWATCHED = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "template": {"spec": {"containers": [{"name": "check", "image": "check"}]}},
}


#: Seconds within which the idle client watches a stream again that it has closed.
_REOPENS_WITHIN = 20.0


@dataclass(slots=True)
class Baseline:
    """The result of the baseline run: what the client does without faults."""

    trial: Trial
    """The baseline run itself, whose client still runs."""
    agents: Sequence[str]
    """The User-Agents of the client."""
    streams: Mapping[StreamKey, str]
    """The streams that the client watches, with their resources."""
    first_streams: frozenset[StreamKey]
    """The streams that the client watches before it has seen a copy."""
    watches: Mapping[StreamKey, int]
    """How many watches of each stream the client keeps open."""
    listed_beside: frozenset[StreamKey]
    """The streams that the client also lists while it watches them: its lists have another purpose than its watches."""
    delivering: Mapping[StreamKey, frozenset[str]]
    """The streams that deliver objects of the copies, with the resources of these objects."""
    reaction: Reaction
    """The reaction to the creation of a copy."""
    deletion: Reaction
    """The reaction to the deletion of a copy: the requests that the client sends."""
    forgotten: Set[Effect]
    """The objects about several copies from which the client takes the name of a copy that is deleted."""
    deleted_children: Mapping[str, int]
    """How many children of each resource are deleted with a copy."""
    controls_children: bool
    """Whether children of a copy have a controller reference."""
    owns_children: bool
    """Whether children of a copy say that the copy is their owner, by their controller or by its uid elsewhere."""
    adds_finalizer: bool
    """Whether the client adds a finalizer to objects of the sample."""
    start_seconds: float
    """Seconds from the start to the first request."""
    reaction_seconds: float
    """Seconds from the creation of a copy, or from the next list of a client that does not watch, to the last request of the
    reaction."""
    requests: int
    """How many requests the client sent for the copies."""
    control: Copy
    """A copy that is not deleted. It shows how many children the client creates in the long run, because it is older than all
    copies of other runs."""
    idle_from: float
    """When the client became idle, in seconds of the trial."""
    written: frozenset[int]
    """The positions in the sample of the objects that the client writes to."""
    finalized: frozenset[int]
    """The positions in the sample of the objects to which the client adds a finalizer."""

    repaired: set[str] = field(default_factory=set)
    """The resources of the children that the client creates again when they are deleted, as far as a run has shown this."""
    relists: list[bool] = field(default_factory=list)
    """For each run until now in which the client listed again what it had watched: whether it asked for a revision."""
    _idle_writes: dict[int, Sequence[tuple[str, ...]]] = field(default_factory=dict)
    """The fields that writes of the idle client have changed, by the number of the call, as far as `periodic_fields` knows."""
    change: tuple[int, Reaction] | None = None
    """The number of a change of a copy to which the client reacts, and its writes then, as soon as a run has shown this."""
    unchanged: str = ""
    """Why no change of a copy makes the client write, as soon as a run has shown this."""
    uncopied: str = ""
    """Why no change of a value of a copy is followed, as soon as a run has shown this."""

    @property
    def session(self) -> Session:
        """The shared state of the check."""
        return self.trial.session

    @property
    def sample(self) -> Sample:
        """The objects of which each copy consists."""
        return self.session.sample

    @property
    def agent(self) -> str:
        """The first User-Agent of the client; "" if it has sent none."""
        return self.agents[0] if self.agents else ""

    def has_several_watches(self, key: StreamKey) -> bool:
        """Reports whether the client keeps several watches of a stream open, so that they cannot be told apart."""
        return self.watches.get(key, 0) > 1

    def replicas(self) -> int:
        """Returns how many processes of the client watch the same; more than one only if they are candidates for a lease, and
        each of its streams has as many watches."""
        is_elected = any(call.collection == LEASES for call in self.trial.trace)
        return max(min(self.watches.values(), default=1), 1) if is_elected else 1

    def is_shared(self, key: StreamKey) -> bool:
        """Reports whether requests of a stream have several purposes, so that a list may not belong to the watch after it."""
        return self.has_several_watches(key) or key in self.listed_beside

    def lasting_streams(self) -> set[StreamKey]:
        """Returns the streams that the client watches until now; it may be about to watch one again that it has just closed."""
        now = self.trial.now
        found: set[StreamKey] = set()
        for key, stream in self.trial.trace.streams().items():
            if any(now - (now if call.end is None else call.end) < _REOPENS_WITHIN for call in stream.watches):
                found.add(key)
        return found

    def poll_seconds(self) -> float:
        """Returns the longest time between two lists of a stream until now for a client that watches nothing, else 0."""
        if self.streams:
            return 0.0
        now = self.trial.now
        times = [[*(call.at for call in stream.lists), now] for stream in self.trial.trace.streams().values()]
        return max((after - before for some in times for before, after in pairwise(some)), default=0.0)

    def seconds_to_react(self, least: float) -> float:
        """Returns how many seconds to wait for a reaction without a fault.

        Args:
            least: the seconds for a client that reacts at once.
        """
        return least + 4 * self.reaction_seconds + _POLLS * self.poll_seconds()

    def periodic_fields(self) -> dict[str, set[tuple[str, ...]]]:
        """Returns the fields that the idle client has changed until now, by resource."""
        found: dict[str, set[tuple[str, ...]]] = {}
        for call in self.trial.trace:
            if call.at >= self.idle_from and call.is_write and call.succeeded and call.name:
                if call.number not in self._idle_writes:
                    self._idle_writes[call.number] = written_fields(self.trial.cluster, call, call.name)
                found.setdefault(call.collection, set()).update(self._idle_writes[call.number])
        return found

    def deletes_copies(self) -> bool:
        """Reports whether the client deletes objects of a copy itself when it is done with them, as far as it has shown this."""
        own = set(zip(self.control.resources, self.control.names(), strict=True))
        sent = (one for one in self.reaction.effects if one.kind is EffectKind.REQUEST and one.detail[0] == "delete")
        return any((one.resource, one.name_for(self.control)) in own for one in sent) or self.trial.has_deleted(self.control)

    def usual_children(self, resource: str) -> int:
        """Returns how many objects of a resource the client creates for a copy: in its reaction, or until now for `control`."""
        return max(self.reaction.children.get(resource, 0), len(children_of(self.trial.cluster, self.control, resource)))


class Provocation(Protocol):
    """What a run needs of the rule that it exercises."""

    id: ClassVar[str]
    provocation: ClassVar[str]
    token_file: ClassVar[bool]
    distorts: ClassVar[bool]

    @property
    def key(self) -> str:
        """The id and the name, such as W8/slices."""

    def cluster_arguments(self) -> Mapping[str, Any]:
        """Returns arguments of the cluster for this rule."""

    def find_failure(self, trial: Trial) -> Verdict | None:
        """Returns a failure that the trace already shows."""


def _name_of(rule: Provocation) -> str:
    """Returns the name that the seeds of a rule follow from."""
    return f"{rule.id}-{rule.provocation}"


class Trial(ClientRun):
    """One run of the client, with the copies of the sample that it receives.

    Args:
        session: the shared state of the check.
        rule: the rule that this run exercises; None for the baseline run.
        baseline: the result of the baseline run; None for this run itself, until it has one.
    """

    def __init__(self, session: Session, rule: Provocation | None = None, baseline: Baseline | None = None) -> None:
        name = _name_of(rule) if rule is not None else "calm"
        arguments = rule.cluster_arguments() if rule is not None else {}
        super().__init__(session, name, arguments, token_file=rule is not None and rule.token_file)
        self.rule = rule
        self.learned = baseline
        self.loop: str = ""
        """A description of the hot loop; "" if there was none."""
        self.past: list[Copy] = []
        """The copies of the rules that this client has undergone before."""
        self.copies: list[Copy] = []
        self.missing: list[tuple[Copy, list[Effect]]] = []
        """The copies with an incomplete reaction, with the missing effects."""
        self.not_received: list[Copy] = []
        """The copies that the client did not receive."""
        self.unmet: Copy | None = None
        """A copy for which an expectation of the user is not met."""
        self.abandoned: list[StreamKey] = []
        """The streams that the client has not watched again in time."""
        self.notes: list[str] = []
        """Evidence for a passed rule."""

    def go_on(self, rule: Provocation) -> None:
        """Begins to exercise another rule with the same client; what has happened until now is not judged again."""
        self.faults.clear()
        self.rule = rule
        self.seed(_name_of(rule))
        self.loop, self.unmet = "", None
        self.past += self.copies
        self.copies, self.missing, self.not_received, self.abandoned, self.notes = [], [], [], [], []
        self.provoked, self.provoked_at = False, self.trace.mark()

    @property
    def baseline(self) -> Baseline:
        """The result of the baseline run."""
        assert self.learned is not None
        return self.learned

    @property
    def key(self) -> str:
        """The key of the rule, or `BASELINE`."""
        return BASELINE if self.rule is None else self.rule.key

    # --- Stimuli ------------------------------------------------------------------------------------------------------

    def stimulate(
        self, change: Callable[[Object], None] | None = None, *, token: str = "", only: Container[int] | None = None
    ) -> Copy:
        """Creates a fresh copy of the sample.

        Args:
            change: changes each object before it is created.
            token: the token of a deleted copy, to use its names again; by default a new one.
            only: the positions in the sample of the objects to change; all by default.

        Raises NotExercised if the API refuses the copy.
        """
        token = token or new_token(self.random)
        mark = self.trace.mark()
        made: list[Object] = []
        resources: list[str] = []
        for number, obj in enumerate(self.sample.copies(token)):
            if change is not None and (only is None or number in only):
                change(obj)
            try:
                created = self.cluster.create(obj)
            except (ApiError, UnknownResource) as error:
                raise NotExercised(f"the copy of the sample cannot be created: {error}") from None
            made.append({"apiVersion": obj["apiVersion"], "kind": obj["kind"], **created})
            resources.append(self.resource_of(obj))
        copy = Copy(token, made, resources, mark, self.now, altered=int(change is not None))
        self.copies.append(copy)
        return copy

    def resource_of(self, obj: Object) -> str:
        """Returns the name of an object's resource, such as `deployments.apps`. Raises NotExercised if it is unknown."""
        try:
            return self.cluster.resource_name(obj)
        except UnknownResource as error:
            raise NotExercised(str(error)) from None

    def alter(self, copy: Copy, first: int = 0, ending: str = "") -> int | None:
        """Changes a text or a number in the data, the spec or the annotations of an object of a copy.

        Args:
            copy: the copy.
            first: the number of the first change to try.
            ending: what is appended to a text; by default a new token.

        Returns:
            the number of the change that the API accepts; None if it accepts none.
        """
        ending = ending or new_token(self.random)
        changes = changes_of_all(copy.objects, ending, copy.altered + 1)
        for number, (index, change) in enumerate(changes[first:], first):
            metadata = copy.objects[index]["metadata"]
            try:
                self.cluster.patch(copy.resources[index], metadata["name"], change, namespace=metadata.get("namespace"))
            except ApiError:
                continue
            copy.altered += 1
            return number
        return None

    def delete(self, copy: Copy) -> None:
        """Deletes the objects of a copy in reverse order."""
        copy.deleted = True
        pairs = list(zip(copy.resources, copy.objects, strict=True))
        for resource, obj in reversed(pairs):
            metadata = obj["metadata"]
            try:
                self.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"))
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    def start_timeout(self) -> float:
        longest = super().start_timeout()
        return longest if self.learned is None else min(_START + _STARTS * self.learned.start_seconds, longest)

    # --- Convergence --------------------------------------------------------------------------------------------------

    def has_received(self, copy: Copy) -> bool:
        """Reports whether the client has received all objects of a copy that it receives in the baseline run."""
        keys = self.learned.delivering if self.learned is not None else {}
        streams = self.trace.streams()
        for key, resources in keys.items():
            # A client may list with other selectors than it watches.
            same = [one for other, one in streams.items() if other == key or (other.path == key.path and not one.watches)]
            for resource, obj in zip(copy.resources, copy.objects, strict=True):
                if resource in resources and not any(has_delivered(one, copy, obj) for one in same):
                    return False
        return True

    def missing_of(self, copy: Copy) -> list[Effect]:
        """Returns the missing effects of the reaction to a copy."""
        reaction = self.baseline.reaction
        expected = reaction.without_names_of_children() if copy.altered else reaction
        missing = expected.missing(self.cluster, copy, self.trace.since(copy.mark))
        return [] if missing and self.is_done_with(copy) else missing

    def has_reacted(self, copy: Copy) -> bool:
        """Reports whether the client has received a copy and its reaction is complete."""
        complete = self.has_received(copy) and not self.missing_of(copy) and self.session.expects.are_met(self.cluster, copy)
        return complete or self.is_done_with(copy)

    def has_deleted(self, copy: Copy) -> bool:
        """Reports whether the client has deleted an object of a copy."""
        return any(
            call.verb == "delete" and call.succeeded and copy.owns(call.collection, call.namespace, call.name)
            for call in self.trace.since(copy.mark)
        )

    def is_done_with(self, copy: Copy) -> bool:
        """Reports whether the client has deleted an object of a copy, as it also does in the baseline run: nothing shows any more
        how it has reacted."""
        return self.has_deleted(copy) and self.baseline.deletes_copies()

    def await_reaction(self, copy: Copy, seconds: float | Callable[[float], float] | None = None) -> bool:
        """Waits for the reaction to a copy, and reports whether it came. Raises ClientEnded, HotLoop and Decided.

        Args:
            copy: the copy.
            seconds: the timeout, or what returns it for the start of the wait; by default `reaction_timeout`.
        """
        return self.await_until(lambda: self.has_reacted(copy), self.reaction_timeout if seconds is None else seconds)

    def idle_limit(self) -> float:
        """Returns the seconds of silence after which the client may close a watch."""
        return _IDLE_LIMIT if self.session.idle is None else _IDLE_PART * self.session.idle

    def reaction_timeout(self, since: float) -> float:
        """Returns the timeout, in seconds, for a reaction of a correct client; `since` is the start of the wait.

        The timeout is several times the reaction time of the baseline run. It starts when all streams of the client are connected
        again and its refused writes may be sent again. The next pause of the client may be several times as long as its longest
        pause until now, because the pauses of a backoff grow. A stream that keeps failing since the wait began does not extend
        the timeout. It also grows with Retry-After, and with the load of the machine.
        """
        calls = self.trace.since(self.provoked_at)
        retry_after = max((call.retry_after for call in calls), default=0)
        usual = self.session.slowness() * (8.0 + 8 * self.baseline.reaction_seconds) + retry_after
        usual += min(_POLLS * self.baseline.poll_seconds(), _LONGEST_PAUSE)
        tried = [one for one in self._attempts() if not one.keeps_failing(since)]
        longest = max((pause for one in tried for pause in one.pauses()), default=0.0)
        pause = min(_GROWTH * max(longest, _FIRST_PAUSE), _LONGEST_PAUSE)
        ready = max((one.time_connected(pause) for one in tried), default=since)
        return usual + min(max(ready - since, _GROWTH * _FIRST_PAUSE), 1.5 * pause)

    def _attempts(self) -> list[Stream]:
        """Returns the requests that the client repeats until they succeed: its streams, and its refused writes."""
        known = self.baseline.streams
        streams = [one for key, one in self.trace.streams().items() if key in known or not known]
        return [*streams, *self.trace.refused_writes(self.provoked_at)]

    def converge(self) -> None:
        """Creates a fresh copy and waits for the reactions to all copies; the failures are in `missing`, `not_received` and
        `unmet`.

        Raises Decided, ClientEnded and HotLoop.
        """
        self.stimulate()
        self.await_all()

    def require_reaction(self, copy: Copy, of: str) -> None:
        """Waits for the reaction to a copy that is made before the provocation, and not because of it.

        Args:
            copy: the copy.
            of: what the client reacts to, in words.

        Raises NotExercised if the reaction does not come; ClientEnded, HotLoop and Decided.
        """
        if not self.await_reaction(copy):
            raise NotExercised(f"the client did not react to {of}, before anything was provoked")

    def await_all(self) -> None:
        """Waits for the reactions to all copies that are not deleted.

        Raises Decided if a reaction is missing, ClientEnded and HotLoop.
        """
        alive = [copy for copy in self.copies if copy.judged and not copy.deleted]
        waiting = list(alive)

        def all_reacted() -> bool:
            waiting[:] = [copy for copy in waiting if not self.has_reacted(copy)]
            return not waiting and all(self.has_reacted(copy) for copy in alive)

        if self.await_until(all_reacted, self.reaction_timeout):
            return
        alive = [copy for copy in alive if not self.has_reacted(copy)]
        self.missing = [(copy, self.missing_of(copy)) for copy in alive if self.missing_of(copy)]
        self.not_received = [copy for copy in alive if not self.has_received(copy)]
        self.unmet = next((copy for copy in alive if not self.session.expects.are_met(self.cluster, copy)), None)
        if self.missing or self.not_received or self.unmet is not None:
            raise Decided("no reaction")

    def find_unwatched(self, mark: int) -> list[StreamKey]:
        """Returns the streams that the client watches from its start on, and neither watches now nor has watched after a mark.

        A client with an idle timeout closes quiet watches now and then, and may pause before it opens them again.
        """
        opened = {call.stream for call in self.trace.open_watches()}
        opened |= {call.stream for call in self.trace.since(mark) if call.is_watch}
        usual = self.baseline.lasting_streams()
        return [key for key in self.baseline.first_streams if key in usual and key not in opened]

    def look_at_trace(self) -> None:
        """Raises HotLoop if the client does not pause, and Decided if the rule is already broken."""
        if self.rule is None:
            return
        since = self.now - LOOP_SECONDS
        calls = [call for call in self.trace.since(self.provoked_at) if call.at >= since]
        self.loop = describe_hot_loop(calls, self.baseline.requests)
        if self.loop:
            raise HotLoop(self.loop)
        if self.provoked and self.rule.find_failure(self) is not None:
            raise Decided(self.rule.key)

    def excerpt(self, calls: Sequence[Call] | None = None) -> list[str]:
        """Returns lines of the trace as evidence: of the given calls, else the last watches before the provocation and all calls
        since. A line marks where the provocation began."""
        begins = self.provoked_at if self.provoked and self.rule is not None else None
        if calls is not None:
            return excerpt(calls, begins)
        begun = [call for call in self.trace.since() if call.is_watch and call.number <= self.provoked_at][-_WATCHES_BEFORE:]
        return excerpt([*begun, *self.trace.since(self.provoked_at)], begins)

    def whole_trace(self) -> list[str]:
        """Returns a line for each request of the client, and one where the provocation began."""
        begins = self.provoked_at if self.provoked and self.rule is not None else None
        return lines_of(self.trace.since(), begins)

    def time_ended(self) -> float:
        """Returns when the client ended, in seconds of the trial: when this was noticed, or else when its last watches broke."""
        closed = [call.end for call in self.trace if call.is_watch and call.end is not None and call.ended == CLOSED]
        return self.ended_at or max(closed, default=self.now)

    def calm_seconds(self) -> float:
        """Returns for how many seconds nothing had happened before the client ended: no request, and no change or fault."""
        watches = [call for call in self.trace.since() if call.is_watch]
        ended = self.time_ended()
        times = [call.at for call in self.trace.since()]
        times += [call.end for call in watches if call.end is not None and call.ended != CLOSED]
        times += [copy.created_at for copy in self.copies]
        return ended - max((at for at in times if at <= ended), default=self.started_at)

    def lists_again_at_revision(self) -> bool | None:
        """Reports whether the client asked for a revision when it listed again what it watched; None if it did not list again."""
        again: list[Call] = []
        for key, stream in self.trace.streams().items():
            watched = [call.at for call in stream.watches if call.at >= self.started_at]
            if watched and not self.baseline.is_shared(key):
                lists = [call for call in stream.calls if call.is_list or call.sends_initial_events]
                again += [call for call in lists if call.at > watched[0]]
        return any(call.asked_revision not in ("", "0") for call in again) if again else None

    # --- Provocations -------------------------------------------------------------------------------------------------

    def begin_provocation(self) -> None:
        """Marks the beginning of the provocation; only later calls are judged."""
        self.provoked = True
        self.provoked_at = self.trace.mark()
        if self.session.kept is not None:
            self.cluster.mark("the provocation begins")

    def require_watch(self) -> list[Call]:
        """Returns the open watches of the streams of the baseline run; waits for one if there is none.

        Raises NotExercised for a client that does not watch, ClientEnded and HotLoop.
        """
        if not self.baseline.streams:
            raise NotExercised(DOES_NOT_WATCH)
        found: list[Call] = []

        def are_open() -> bool:
            found[:] = [call for call in self.trace.open_watches() if call.stream in self.baseline.streams]
            return bool(found)

        self.await_until(are_open, self.reaction_timeout)
        return found

    def end_watches(self) -> list[Call]:
        """Ends the open watches, as the server does at their timeout; returns them."""
        ended = self.require_watch()
        self.faults.on("watch").end(label="ended").remove()
        return ended

    def advance_revisions(self, writes: int = 3) -> int:
        """Writes objects that the client does not watch; returns the newest revision."""
        revision = 0
        for number in range(writes):
            name = f"check-{new_token(self.random)}-{number}"
            made = self.cluster.create({**_UNWATCHED, "metadata": {"name": name}})
            revision = int(made["metadata"]["resourceVersion"]) + 1
            self.cluster.delete("podtemplates", name)
        return revision

    def compact(self) -> int:
        """Compacts the history and writes newer revisions; returns the oldest revision that is not expired."""
        oldest = self.advance_revisions(2)
        self.cluster.compact()
        self.advance_revisions(1)
        return oldest

    @contextmanager
    def disconnect(self) -> Iterator[None]:
        """Cuts the watches and refuses all connections of the client within the context."""
        with self.faults.on("*").refuse(label="disconnected"), self.faults.on("*", path="*").refuse(label="disconnected"):
            self.faults.on("watch").cut(label="disconnected").remove()
            yield

    def streams_since(self) -> dict[StreamKey, Stream]:
        """Returns the client's streams since the provocation."""
        return {key: one for key, one in self.trace.streams(self.provoked_at).items() if key in self.baseline.streams}

    def attempts_since(self) -> list[Stream]:
        """Returns the client's streams since the provocation, without lists that have another purpose than its watches."""
        beside = self.baseline.listed_beside
        found = (Stream(key, one.watches) if key in beside else one for key, one in self.streams_since().items())
        return [one for one in found if one.calls]
