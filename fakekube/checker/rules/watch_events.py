"""Rules about events and their revisions: large events, bookmarks, revisions of lists, repeated events (W9 to W11, W13).

Invariant: the servers of these rules send what a real server may send.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from fakekube.apimachinery.selectors.labels import parse_labels
from fakekube.checker.judges import (
    judge_extra_children,
    judge_misread_status,
    judge_resumption,
    judge_unknown_revision,
    revision_of,
)
from fakekube.checker.reaction import Copy, children_of, find_changed_paths, value_at, written_fields
from fakekube.checker.rule import Rule
from fakekube.checker.rules.lists import require_lists
from fakekube.checker.rules.watch_errors import CONCEPTS, expire
from fakekube.checker.trace import CLOSED, excerpt, read_number
from fakekube.checker.verdict import NotExercised, Symptom, Verdict
from fakekube.checker.waits import SHORT, await_quiet
from fakekube.checker.writes import own_objects
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from fakekube.base.objects import Object
    from fakekube.checker.trace import Call, StreamKey
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange


class LargeEvents(Rule):
    """An event is larger than 1 MiB."""

    id = "W9"
    name = "large"
    provocation = "an event of more than a MiB"
    is_step = True
    watches = True
    fast = True
    obligation = "an event is one line, which may be large"
    advice = "read lines without a limit, or with one of 16 MiB; set the buffer of the HTTP library"
    source = "kube-apiserver --max-request-bytes, escaping of encoding/json; nolar/kopf#275"

    reacted: bool = False
    """Whether the client has reacted to the large object."""
    closed: Sequence[Call] = ()
    """The watches that the client closed while a large event was sent."""
    used_before: float = 0.0
    """How many seconds of a processor the client had used before the large event."""
    begun: float = 0.0
    """When the large event was made, in seconds of the trial."""

    def provoke(self, trial: Trial) -> None:
        before = trial.require_watch()
        self.used_before = trial.processor_seconds()
        self.begun = trial.now
        large = trial.stimulate(_enlarge)
        large.judged = False  # writes of the client with so large an object may be refused; the client only has to survive
        targets = list(zip(large.resources, large.objects, strict=True))
        if "configmaps" in trial.baseline.reaction.children:
            trial.await_reaction(large, 5.0)
            targets += [("configmaps", child) for child in children_of(trial.cluster, large, "configmaps")]
        for resource, obj in targets:
            if resource == "configmaps":
                fill_map(trial, obj["metadata"])
        # A client with an idle timeout may have been close to it when the first event was sent.
        sent = self.begun if trial.session.idle is not None else trial.now
        trial.await_until(lambda: trial.has_received(large), 10.0)
        self.reacted = trial.await_until(
            lambda: trial.has_reacted(large) or has_refused_write(trial, large), trial.reaction_timeout
        )
        trial.wait(0.5)
        carrying = {resource for resource, _ in targets}
        oldest = min(int(obj["metadata"]["resourceVersion"]) for _, obj in targets)

        def find_closed() -> list[Call]:
            watches = [call for call in [*before, *trial.trace.since(trial.provoked_at)] if call.is_watch]
            return [
                one
                for one in watches
                if one.ended == CLOSED
                and one.collection in carrying
                and one.newest_delivered() >= oldest
                and (one.end or 0.0) < max(sent, one.at) + trial.idle_limit()  # later it may be an idle timeout
                and (one.end or 0.0) < max(event.at for event in one.events) + trial.idle_limit()
            ]

        if find_closed():  # does it watch again, and does it close that watch, too?
            trial.await_until(
                lambda: len(find_closed()) >= _CLOSES or _watches_again(trial, find_closed()[0]), trial.reaction_timeout
            )
        self.closed = find_closed()

    def judge(self, trial: Trial) -> Verdict:
        """Returns only a warning for a client that is still busy with the large event."""
        verdict = super().judge(trial)
        used, share = trial.processor_seconds() - self.used_before, (trial.now - self.begun) / trial.session.competitors()
        is_busy = used > min(_BUSY, _PART * share)
        return verdict.as_warning() if verdict.symptom is Symptom.NO_REACTION and is_busy else verdict

    def judge_trace(self, trial: Trial) -> Verdict:
        closed = self.closed
        if len(closed) >= _CLOSES and not _closes_by_itself(trial):
            return Verdict.failure(
                f"the client closes its watch whenever a large event is sent ({len(closed)} times): {closed[0].path}",
                *excerpt(closed),
            )
        if closed and not trial.trace.streams()[closed[0].stream].next_call(closed[0]):
            return Verdict.failure(
                f"the client closed its watch while a large event was sent, and did not watch again: {closed[0].path}",
                *excerpt(closed),
                by_time=True,
            )
        if closed:
            return Verdict.warning(
                f"the client closed its watch while a large event was sent, and recovered in another way: {closed[0].path}",
                *trial.excerpt(),
            )
        if not self.reacted:
            return Verdict.warning("no reaction to an object whose event has 1.4 MB", *trial.excerpt(), by_time=True)
        return Verdict.success()


#: A client that has used so many seconds of a processor since the large event, or this part of those that a busy machine has for
#: it, is slow, and not stuck.
_BUSY, _PART = 5.0, 0.5
#: How many watches with a large event a client has to close.
_CLOSES = 2


def has_refused_write(trial: Trial, copy: Copy) -> bool:
    """Reports whether a write for a copy was refused as too large: the client has read the copy, and stores too much of it."""
    calls = trial.trace.since(copy.mark)
    return any(call.is_write and call.status in _TOO_LARGE and call.mentions(copy.token) for call in calls)


#: The status codes of requests that are too large, and of objects that are.
_TOO_LARGE = frozenset({413, 422})


def _watches_again(trial: Trial, closed: Call) -> bool:
    """Reports whether the client has opened another watch after a closed one, and did not close it soon."""
    watches = trial.trace.streams()[closed.stream].watches
    return any(one.number > closed.number and one.is_open and trial.now - one.at > SHORT for one in watches)


def _closes_by_itself(trial: Trial) -> bool:
    """Reports whether the client closed watches in the baseline run."""
    return any(call.is_watch and call.ended == CLOSED for call in trial.baseline.trial.trace)


def _enlarge(obj: Object) -> None:
    """Fills an annotation up to its limit with characters that JSON escapes with six bytes."""
    obj["metadata"].setdefault("annotations", {})["check.fakekube.dev/large"] = "<" * 240_000


#: Two patches that bring a ConfigMap near its limit of 1 MiB, and its events near 6 MiB.
_MORE = ({"check.fakekube.dev": "<" * 490_000}, {"more.check.fakekube.dev": "<" * 490_000})


def fill_map(trial: Trial, metadata: Object) -> None:
    """Brings a ConfigMap near its limit, unless the client has deleted it."""
    with suppress(ApiError):
        for more in _MORE:
            trial.cluster.patch("configmaps", metadata["name"], {"data": more}, namespace=metadata["namespace"])


_NO_BOOKMARKS = "the client does not ask for bookmarks (allowWatchBookmarks)"


class FrequentBookmarks(Rule):
    """Bookmarks are frequent and much newer than the last event; then the watch ends."""

    id = "W10"
    name = "often"
    provocation = "bookmarks come often, and far ahead of the last event"
    expected_seconds = 10.0
    steps = ("W5",)
    fast = True
    obligation = "a BOOKMARK updates the revision and is not an object; a client must not rely on bookmarks"
    advice = "on BOOKMARK store metadata.resourceVersion, and ignore the rest"
    source = f"{CONCEPTS} (watch bookmarks); KEP-956"

    ended: Sequence[Call] = ()

    def require(self, baseline: Baseline) -> None:
        _require_bookmarks(baseline)

    def provoke(self, trial: Trial) -> None:
        asking = [call for call in trial.require_watch() if call.wants_bookmarks]
        if not asking:
            raise NotExercised(_NO_BOOKMARKS)
        trial.faults.on("watch").bookmarks("often", label="bookmarks often")
        trial.stimulate()
        trial.await_all()
        trial.advance_revisions(20)
        watches = [call for call in trial.require_watch() if call.wants_bookmarks]
        trial.faults.on("watch").bookmarks("now", label="bookmark").remove()
        trial.await_until(lambda: all(not one.is_open or _ends_in_bookmark(one) for one in watches), 5.0)
        trial.wait(0.5)
        self.ended = [one for one in trial.end_watches() if one in watches]

    def find_failure(self, trial: Trial) -> Verdict | None:
        misread = judge_misread_status(trial, "k8s.io/initial-events-end")
        return misread or judge_resumption(trial, self.ended, bookmarks=True)

    def judge_trace(self, trial: Trial) -> Verdict:
        closed = [
            call
            for call in trial.trace
            if call.is_watch
            and call.ended == CLOSED
            and (call.end or 0.0) - call.at < trial.idle_limit()  # later it may be an idle timeout
            and _ends_in_bookmark(call)
            and not _is_used_as_list(call)
        ]
        if len(closed) > 1:
            return Verdict.failure(f"closes its watches after bookmarks ({len(closed)} times)", *trial.excerpt(closed))
        return Verdict.success()


def _ends_in_bookmark(watch: Call) -> bool:
    """Reports whether the last event of a watch was a bookmark, or cannot be read."""
    return bool(watch.events) and watch.events[-1].type in ("BOOKMARK", "")


def _is_used_as_list(watch: Call) -> bool:
    """Reports whether the only bookmark of a watch completes its initial events: a client may go on with another watch then."""
    return watch.sends_initial_events and sum(event.type == "BOOKMARK" for event in watch.events) == 1


def _require_bookmarks(baseline: Baseline) -> None:
    """Raises NotExercised if the client asks for no bookmarks."""
    if not any(call.is_watch and call.wants_bookmarks for call in baseline.trial.trace):
        raise NotExercised(_NO_BOOKMARKS)


class NoBookmarks(Rule):
    """The server sends no bookmarks."""

    id = "W10"
    name = "none"
    provocation = "no bookmark comes"
    steps = ("W5",)
    obligation = FrequentBookmarks.obligation
    advice = FrequentBookmarks.advice
    source = FrequentBookmarks.source

    ended: Sequence[Call] = ()

    def require(self, baseline: Baseline) -> None:
        _require_bookmarks(baseline)

    def provoke(self, trial: Trial) -> None:
        if not any(call.wants_bookmarks for call in trial.require_watch()):
            raise NotExercised(_NO_BOOKMARKS)
        trial.faults.on("watch").bookmarks("never", label="no bookmarks")
        trial.stimulate()
        trial.await_all()
        self.ended = trial.end_watches()

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_resumption(trial, self.ended, bookmarks=False)


class WatchAfterList(Rule):
    """The base class of the provocations of W11."""

    id = "W11"
    obligation = "the watch after a list starts from the list's resourceVersion, not from that of an item"
    advice = "take metadata.resourceVersion of the list; the revisions of the items are unordered and may be older"
    source = f"{CONCEPTS} (resource versions)"


class RevisionOfList(WatchAfterList):
    """A list has a newer revision than all its items."""

    name = "deleted"
    decisive = True
    provocation = "the newest object was deleted before the list"
    steps = ("W14",)
    watches = True
    fast = True
    at_start = True

    def prepare(self, trial: Trial) -> None:
        require_lists(trial)
        trial.stimulate()
        trial.stimulate()
        trial.delete(trial.stimulate())
        trial.advance_revisions(5)

        def write(exchange: Exchange) -> None:
            trial.advance_revisions(1)

        trial.faults.on("list").intercept(write, label="write before list")  # so that all lists have different revisions

    def provoke(self, trial: Trial) -> None:
        trial.require_watch()  # the client lists before a newer object exists

    def judge_trace(self, trial: Trial) -> Verdict:
        compared = False
        anew: list[Call] = []
        for stream in trial.streams_since().values():
            for call in stream.calls:
                before = [one for one in stream.lists if one.number < call.number and one.succeeded and one.revision]
                if before and call.is_watch and not call.resumes and not call.sends_initial_events:
                    anew.append(call)
                if not call.resumes or not before:
                    continue
                compared = True
                if not stream.knows(revision_of(call), call) and revision_of(call) in _revisions_of_items(before[-1]):
                    return Verdict.failure(
                        f"the watch of {stream.key} starts from {call.asked_revision}, the revision of an item; "
                        f"that of the list is {before[-1].revision}",
                        *trial.excerpt([before[-1], call]),
                    )
        not_received = judge_unknown_revision(trial)
        if not_received is not None:
            return not_received
        if anew:
            asked = anew[0].asked_revision or "unset"
            text = f"{anew[0].stream} is watched from resourceVersion {asked} after a list: deletions in between are missed"
            return Verdict.warning(text, *trial.excerpt())
        if not compared:
            raise NotExercised("the client does not watch from the revision of a list")
        return Verdict.success()


def _revisions_of_items(listed: Call) -> set[int]:
    """Returns the revisions of the items of a list."""
    answer = listed.answer
    items = (answer.get("items") or ()) if isinstance(answer, Mapping) else ()
    return {int(item["metadata"].get("resourceVersion", "0")) for item in items}


class SelectorsOfList(WatchAfterList):
    """An object is created that matches the selectors of the client's watch, and not those of the list before it."""

    name = "selectors"
    provocation = "an object is created that the watch selects, and the list before it does not"
    watches = True
    obligation = "a list and the watch after it have the same selectors"
    advice = "send labelSelector and fieldSelector with every list, each of its pages, and every watch"
    converges = False

    copy: Copy
    pair: tuple[str, StreamKey]
    """The label selector of the list, and the stream of the watch."""

    def require(self, baseline: Baseline) -> None:
        self._find_pair(baseline)

    @staticmethod
    def _find_pair(baseline: Baseline) -> tuple[Call, Call]:
        """Returns a list with a label selector, and the watch from its revision that has none.

        The key of a stream has the selectors, so that such lists and watches are streams of their own. Raises NotExercised if
        there are none.
        """
        streams = baseline.trial.trace.streams()
        listed = [call for one in streams.values() if not one.watches for call in one.lists if call.succeeded]
        watched = [call for one in streams.values() if not one.lists for call in one.watches if call.resumes]
        for before in listed:
            for call in watched:
                if (
                    before.path == call.path
                    and before.revision == revision_of(call)
                    and before.number < call.number
                    and before.stream.label_selector
                    and not call.stream.label_selector
                ):
                    return before, call
        raise NotExercised("the client's lists and watches have the same selectors")

    def provoke(self, trial: Trial) -> None:
        listed, watch = self._find_pair(trial.baseline)
        keys = [one.key for one in parse_labels(listed.stream.label_selector).requirements]

        def drop_labels(obj: Object) -> None:
            for key in keys:
                (obj["metadata"].get("labels") or {}).pop(key, None)

        copy = self.copy = trial.stimulate(drop_labels)
        copy.judged = False
        self.pair = (listed.stream.label_selector, watch.stream)
        trial.await_until(lambda: not trial.missing_of(copy), trial.baseline.seconds_to_react(2.0))

    def judge_trace(self, trial: Trial) -> Verdict:
        if trial.missing_of(self.copy):
            return Verdict.success("it does not handle what only the watch selects")
        selector, stream = self.pair
        return Verdict.failure(
            f"reacts to {self.copy.names()[0]}, which the watch of {stream} selects, and its list with labelSelector={selector} "
            "does not",
            *trial.excerpt(),
        )


class RepeatedAfterRelist(Rule):
    """The client lists all objects again after a 410."""

    id = "W13"
    name = "relist"
    provocation = "everything is listed again after a 410"
    steps: ClassVar[Sequence[str]] = ("W1",)
    obligation = "repeated events change nothing: handlers are idempotent"
    advice = "compare with the present state before acting; use fixed names, or look for the child by its owner first"
    source = f"{CONCEPTS} (resourceVersion 0); nolar/kopf#42"

    copy: Copy
    before: Mapping[str, tuple[str, Object]]
    """The objects of the copy and its children before they are delivered again."""

    def require(self, baseline: Baseline) -> None:
        if not baseline.reaction.children:
            raise NotExercised("the client creates no children that could be created twice")

    def provoke(self, trial: Trial) -> None:
        self.remember(trial)
        self.repeat(trial)
        trial.converge()
        if _judge_changes(trial, self.copy, self.before) is not None:  # what the client had not yet seen changes once
            _await_unchanged(trial, self.copy)
            self.before = _state(trial, self.copy)
            self.repeat(trial)

    def repeat(self, trial: Trial) -> None:
        """Lets the client receive all objects again."""
        expire(trial)

    def remember(self, trial: Trial) -> None:
        """Stores the state of a copy and its children after the reaction of the client."""
        copy = self.copy = trial.stimulate()
        trial.await_all()
        await_quiet(trial, copy.mark, [copy.token])
        _await_unchanged(trial, copy)
        self.before = _state(trial, copy)

    def judge_trace(self, trial: Trial) -> Verdict:
        return (
            judge_extra_children(trial, trial.baseline.reaction.children)
            or _judge_changes(trial, self.copy, self.before)
            or Verdict.success()
        )


class RepeatedAfterRestart(RepeatedAfterRelist):
    """The client restarts and lists all objects."""

    name = "restart"
    provocation = "the client starts again"
    restarts = True
    steps = ()
    fast = True

    def repeat(self, trial: Trial) -> None:
        trial.restart_client()


def _state(trial: Trial, copy: Copy) -> dict[str, tuple[str, Object]]:
    """Returns the objects of a copy and its children, with their resources, by uid."""
    found = list(own_objects(trial, copy))
    for resource in trial.baseline.reaction.children:
        found += [(resource, child) for child in children_of(trial.cluster, copy, resource)]
    return {obj["metadata"]["uid"]: (resource, obj) for resource, obj in found}


def _await_unchanged(trial: Trial, copy: Copy) -> None:
    """Waits until a copy and its children do not change any more: the client may react to what controllers do with them."""
    with suppress(TimeoutError):
        trial.cluster.settle(timeout=20.0, horizon=_UNCHANGED)
    seen: tuple[set[str], float] = (set(), trial.now)

    def is_unchanged() -> bool:
        nonlocal seen
        revisions = {obj["metadata"]["resourceVersion"] for _, obj in _state(trial, copy).values()}
        if revisions != seen[0]:
            seen = (revisions, trial.now)
        return trial.now - seen[1] >= _UNCHANGED * trial.session.slowness()

    trial.await_until(is_unchanged, _UNCHANGED * 10)


#: Seconds without a change after which controllers, the kubelet and the client have finished.
_UNCHANGED = 2.0


def _judge_changes(trial: Trial, copy: Copy, before: Mapping[str, tuple[str, Object]]) -> Verdict | None:
    """Judges whether the client changed objects after it received them again: a failure if a counter grew, else a warning.

    Fields that the idle client of the baseline run changes, such as heartbeats, do not count.
    """
    after = _state(trial, copy)
    periodic = trial.baseline.periodic_fields()
    for uid, (resource, old) in before.items():
        _, new = after.get(uid, (resource, old))
        name = new["metadata"]["name"]
        calls = [
            call
            for call in trial.trace.since(trial.provoked_at)
            if call.is_write and call.succeeded and (call.collection, call.name) == (resource, name)
        ]
        written = [path for call in calls for path in written_fields(trial.cluster, call, name)]
        for path in find_changed_paths(old, new):
            if not _is_within(path, written) or _is_within(path, periodic.get(resource, ())):
                continue
            values = [value_at(one, path) for one in (old, new)]
            text = f"{name} was delivered again, and {'.'.join(path)} changed from {values[0]} to {values[1]}"
            counted, more = (read_number(str(value)) for value in values)
            counts = all(str(value).isdecimal() for value in values) and 0 < more - counted < _COUNTED
            return (Verdict.failure if counts else Verdict.warning)(text, *trial.excerpt(calls))
    return None


def _is_within(path: tuple[str, ...], paths: Iterable[tuple[str, ...]]) -> bool:
    """Reports whether a path is one of some paths, or contains one, or is within one."""
    return any(path[: len(one)] == one[: len(path)] for one in paths)


#: A number that grows by less than this counts deliveries; a larger difference is a time.
_COUNTED = 4


RULES = (LargeEvents, FrequentBookmarks, NoBookmarks, RevisionOfList, SelectorsOfList, RepeatedAfterRelist, RepeatedAfterRestart)
