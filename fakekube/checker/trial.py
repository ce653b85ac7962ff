"""One run of the client: creates copies of the sample, provokes the client, and waits for its reactions.

Invariant: only copies that are not deleted, and calls since the provocation, are judged.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fakekube.checker.client_run import ClientRun, Decided
from fakekube.checker.delivery import has_delivered
from fakekube.checker.judges import judge_convergence, judge_process
from fakekube.checker.reaction import Copy, Effect
from fakekube.checker.rule import NotExercised, Rule, Verdict
from fakekube.checker.sample import changes_of_texts, new_token
from fakekube.checker.timeouts import reaction_timeout
from fakekube.checker.trace import CLOSED, Call, Stream, StreamKey, excerpt, lines_of
from fakekube.controllers.client import ApiError, UnknownResource

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from fakekube.checker.session import Session
    from fakekube.controllers.objects import Object

#: How many of the watches that began before the provocation are part of the evidence.
_WATCHES_BEFORE = 2

#: A client without --idle does not close a silent watch within so many seconds.
_IDLE_LIMIT = 5.0
#: The part of --idle within which a client does not close one; it begins to measure before the server does.
_IDLE_PART = 0.5

#: How many changes of an object are tried until the API accepts one.
_MOST_CHANGES = 6

#: An object of a resource that clients do not watch.
_UNWATCHED = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "template": {"spec": {"containers": [{"name": "check", "image": "check"}]}},
}


class Trial(ClientRun):
    """One run of the client, with the copies of the sample that it receives."""

    def __init__(self, session: Session, rule: Rule | None) -> None:
        super().__init__(session, rule)
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

    # ------------------------------------------------------------ stimuli

    def stimulate(
        self, change: Callable[[Object], None] | None = None, *, token: str = "", only: Container[int] | None = None
    ) -> Copy:
        """Creates a fresh copy of the sample.

        Args:
            change: changes each object before it is created.
            only: the positions in the sample of the objects to change; all by default.
            token: the token of a deleted copy, to use its names again.

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
        copy = Copy(token, made, resources, mark, self.now)
        self.copies.append(copy)
        return copy

    def resource_of(self, obj: Object) -> str:
        """Returns the name of an object's resource, such as `deployments.apps`. Raises NotExercised if it is unknown."""
        try:
            return self.cluster.resource_name(obj)
        except UnknownResource as error:
            raise NotExercised(str(error)) from None

    def alter(self, copy: Copy) -> bool:
        """Changes a string in the data or the spec of an object of a copy; returns whether the API accepted a change."""
        ending = new_token(self.random)
        for resource, obj in zip(copy.resources, copy.objects, strict=True):
            metadata = obj["metadata"]
            for change in changes_of_texts(obj, ending)[:_MOST_CHANGES]:
                try:
                    self.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))
                except ApiError:
                    continue
                return True
        return False

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

    # ------------------------------------------------------------ convergence

    def has_received(self, copy: Copy) -> bool:
        """Reports whether the client has received all objects of a copy that it receives in the baseline run."""
        keys = self.session.baseline.delivering if self.session.baseline is not None else {}
        streams = self.trace.streams()
        for key, resources in keys.items():
            stream = streams.get(key)
            for resource, obj in zip(copy.resources, copy.objects, strict=True):
                if resource in resources and (stream is None or not has_delivered(stream, copy, obj)):
                    return False
        return True

    def missing_of(self, copy: Copy) -> list[Effect]:
        """Returns the missing effects of the reaction to a copy."""
        return self.baseline.reaction.missing(self.cluster, copy, self.trace.since(copy.mark))

    def has_reacted(self, copy: Copy) -> bool:
        """Reports whether the client has received a copy and its reaction is complete."""
        return self.has_received(copy) and not self.missing_of(copy) and self.session.expects.met(self, copy)

    def await_reaction(self, copy: Copy, seconds: float | Callable[[float], float] | None = None) -> bool:
        """Waits for the reaction to a copy, by default with `reaction_timeout` as the timeout. Raises ClientEnded, HotLoop and
        Decided."""
        return self.await_until(lambda: self.has_reacted(copy), self.reaction_timeout if seconds is None else seconds)

    def idle_limit(self) -> float:
        """Returns the seconds of silence after which the client may close a watch."""
        return _IDLE_LIMIT if self.session.idle is None else _IDLE_PART * self.session.idle

    def reaction_timeout(self, since: float) -> float:
        """Returns the timeout, in seconds, for a reaction of a correct client; `since` is the start of the wait."""
        return reaction_timeout(self, since)

    def converge(self) -> None:
        """Creates a fresh copy and waits for the reactions to all copies; the failures are in `missing`, `not_received` and
        `unmet`.

        Raises Decided, ClientEnded and HotLoop.
        """
        self.stimulate()
        self.await_all()

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
        self.missing = [(copy, self.missing_of(copy)) for copy in alive if self.missing_of(copy)]
        self.not_received = [copy for copy in alive if not self.has_received(copy)]
        self.unmet = next((copy for copy in alive if not self.session.expects.met(self, copy)), None)
        if self.missing or self.not_received or self.unmet is not None:
            raise Decided("no reaction")

    def find_unwatched(self) -> list[StreamKey]:
        """Returns the streams that the client watches from its start on, and does not watch now."""
        opened = {call.stream for call in self.trace.open_watches()}
        usual = self.baseline.lasting_streams()
        return [key for key in self.baseline.first_streams if key in usual and key not in opened]

    def has_failed(self) -> bool:
        return self.rule is not None and self.rule.find_failure(self) is not None

    def common_verdict(self) -> Verdict | None:
        """Returns the verdict about the process and convergence; None if the client runs and has converged."""
        return judge_process(self) or judge_convergence(self)

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

    def calm(self) -> float:
        """Returns for how many seconds nothing had happened before the client ended: no request, and no change or fault."""
        watches = [call for call in self.trace.since() if call.is_watch]
        closed = [call.end for call in watches if call.end is not None and call.ended == CLOSED]
        ended = self.ended_at or max(closed, default=self.now)
        times = [call.at for call in self.trace.since()]
        times += [call.end for call in watches if call.end is not None and call.ended != CLOSED]
        times += [copy.created_at for copy in self.copies]
        return ended - max((at for at in times if at <= ended), default=self.started_at)

    # ------------------------------------------------------------ provocations

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
            raise NotExercised("the client does not watch")
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
    def disconnected(self) -> Iterator[None]:
        """Cuts the watches and refuses all connections of the client within the context."""
        with self.faults.on("*").refuse(label="disconnected"), self.faults.on("*", path="*").refuse(label="disconnected"):
            self.faults.on("watch").cut(label="disconnected").remove()
            yield

    def streams_since(self) -> dict[StreamKey, Stream]:
        """Returns the client's streams since the provocation."""
        return {key: one for key, one in self.trace.streams(self.provoked_at).items() if key in self.baseline.streams}
