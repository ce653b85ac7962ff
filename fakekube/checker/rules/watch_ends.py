"""Rules about watches that end or fall silent without an error (W5 to W8)."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from fakekube.checker.judges import LOST_ITS_LEASE, has_lost_its_lease, judge_resumption, judge_unknown_revision
from fakekube.checker.pauses import judge_backoff, judge_pauses_after_success
from fakekube.checker.process import fatal_line
from fakekube.checker.provocations import JoinEvents, arm
from fakekube.checker.rule import Rule
from fakekube.checker.rules.watch_errors import CONCEPTS, REFLECTOR, judge_only_failures
from fakekube.checker.trace import excerpt, read_number
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import SHORT, await_delivery, await_long_watches, await_requests, require_resumption
from fakekube.checker.writes import own_objects, touch_objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Trial


class ResumedWatch(Rule):
    """The base class of the provocations of W5."""

    id = "W5"
    obligation = "a client resumes a watch that ended normally from the last revision that the watch delivered"
    advice = "keep the resourceVersion of every event and watch again from it; list again only after a 410"
    source = f"{CONCEPTS}; kube-apiserver --min-request-timeout"


class NormalEnd(ResumedWatch):
    """The server ends a watch, as after timeoutSeconds or --min-request-timeout."""

    name = "ends"
    decisive = True
    provocation = "the server ends the watches"
    is_step = True
    watches = True
    fast = True

    ended: Sequence[Call] = ()

    def provoke(self, trial: Trial) -> None:
        self.ended = ended = []
        for number in range(_ENDS):
            await_long_watches(trial)  # a client may list after a short watch
            subject = trial.stimulate()
            trial.await_all()
            if number == _ENDS - 2:  # the last event is a change
                for resource, obj in touch_objects(trial, subject):
                    await_delivery(trial, resource, [obj])
            elif number == _ENDS - 1:  # or a deletion
                trial.delete(subject)
                trial.await_until(lambda one=subject: not own_objects(trial, one), _DELETED_WITHIN)  # type: ignore[misc]
                trial.wait(0.3)
            ended += trial.end_watches()
        await_requests(trial, ended)
        if self._judge_pauses(trial) is not None:  # a client may take only a watch that was open for some time for a success
            await_long_watches(trial)
            trial.stimulate()
            trial.await_all()
            trial.wait(_OPEN)
            ended += trial.end_watches()

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_resumption(trial, self.ended, bookmarks=False) or judge_unknown_revision(trial)

    def _judge_pauses(self, trial: Trial) -> Verdict | None:
        """Judges the pauses after the watches that have ended; None if they do not grow."""
        for key, stream in trial.streams_since().items():
            same = [one for one in self.ended if one.stream == key and one.newest_delivered(bookmarks=False)]
            slower = judge_pauses_after_success(stream, same) if not trial.baseline.is_shared(key) else None
            if slower is not None:
                return slower
        return None

    def judge_trace(self, trial: Trial) -> Verdict:
        relisted: list[Call] = []
        ended = [one for one in self.ended if (one.end or one.at) - one.at > SHORT and one.ended != "closed by the client"]
        for one in ended:
            following = trial.trace.streams()[one.stream].next_call(one)
            if (
                following is None
                or following.resumes
                or trial.baseline.is_shared(one.stream)
                or not one.newest_delivered(bookmarks=False)
            ):
                continue
            if following.is_watch and not following.sends_initial_events:
                return Verdict.failure(
                    f"after a normal end the client watches {one.stream} from no revision: it misses what was deleted in between",
                    *trial.excerpt([one, following]),
                )
            relisted.append(following)
        slower = self._judge_pauses(trial)
        if slower is not None:
            return slower
        if len(relisted) > len(ended) / 2:  # this is allowed, but expensive
            often = f"{len(relisted)} of {len(ended)}"
            return Verdict.warning(
                f"after {often} normal ends the client listed {relisted[0].path} again instead of resuming the watch",
                *trial.excerpt(),
            )
        return Verdict.success()


#: How many times the watches end, and the seconds within which most clients let go of a deleted object.
_ENDS, _DELETED_WITHIN = 4, 3.0
#: After so many seconds each client counts a watch as a success, so that its end begins the backoff anew.
_OPEN = 6.0


class Calm(ResumedWatch):
    """Observes whether the client of the baseline run ends by itself when nothing happens any more."""

    name = "calm"
    provocation = "nothing happens for some time"
    watches = True
    fast = True
    on_baseline = True

    def judge(self, trial: Trial) -> Verdict:
        if not trial.has_ended():
            return Verdict.success()
        if has_lost_its_lease(trial):
            return Verdict.not_exercised(LOST_ITS_LEASE)
        assert trial.process is not None
        code, calm = trial.process.exit_code(), trial.calm_seconds()
        said = f"; it printed: {fatal_line(trial.output())}" if trial.output() else ""
        return Verdict.failure(
            f"the client ended by itself (exit code {code}) after {calm:.0f} s in which nothing happened{said}",
            *trial.excerpt(trial.trace.since()[-_LAST:]),
        )


#: How many of the last requests of a client that ended are evidence.
_LAST = 4


class ImmediateEnds(Rule):
    """Every watch is closed immediately."""

    id = "W6"
    name = "at-once"
    provocation = "every watch is closed at once"
    watches = True
    steps = ("W5",)
    fast = True
    obligation = "the pauses before reopening watches that end at once grow"
    advice = "wait about 1 s after a watch without events, twice as long each time, up to 30 s, with jitter"
    source = f"{REFLECTOR} (backoff 800 ms to 30 s, jitter 1.0)"
    legality = "C"
    expected_seconds = 25.0

    def provoke(self, trial: Trial) -> None:
        require_resumption(trial)
        with trial.faults.on("watch").end(label="closed"):
            trial.wait(trial.session.seconds)

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_only_failures(trial)

    def judge_trace(self, trial: Trial) -> Verdict:
        return judge_backoff(trial.attempts_since()) or Verdict.success()


class HalfOpenPlain(Rule):
    """No more data arrives, but the connection stays open."""

    id = "W7"
    name = "silent-plain"
    provocation = "the watches fall silent, and their connections stay"
    watches = True
    obligation = "the client detects a dead connection by an idle timeout of its own"
    advice = "set a read timeout a little above timeoutSeconds, or HTTP/2 pings; then watch again from the last revision"
    source = "kubernetes/kubernetes#107266; nolar/kopf#1267; golang.org/x/net/http2 ReadIdleTimeout"
    legality = "C"
    expected_seconds = 60.0
    converges = False

    silenced: Sequence[Call] = ()
    silenced_at: float = 0.0
    back: bool = False

    def provoke(self, trial: Trial) -> None:
        self.silenced = trial.require_watch()
        self.silenced_at = trial.now
        trial.faults.on("watch").silence(connection=True, label="silent").remove()
        trial.stimulate()
        limit = self._limit(trial)
        self.back = trial.await_until(lambda: trial.has_reacted(trial.copies[-1]), limit)
        if self.back:
            trial.converge()

    def _limit(self, trial: Trial) -> float:
        """Returns the seconds within which the client has to notice the silence: by --idle, or by what it asks of the server."""
        idle = trial.session.idle
        if idle is not None:
            return 2 * idle + 5.0
        asked = [timeout_of(call) for call in self.silenced]
        decides = asked and min(asked) > 0 and max(asked) <= _GUESS
        return max(max(asked) + _LATE, _GUESS) if decides else _GUESS

    def judge_trace(self, trial: Trial) -> Verdict:
        if self.back:
            again = trial.trace.streams(self.silenced[-1].number) if self.silenced else {}
            noticed = [stream.calls[0].at - self.silenced_at for stream in again.values()]
            return Verdict.success(f"noticed the silence after {min(noticed):.0f} s" if noticed else "")
        idle, asked = trial.session.idle, [timeout_of(call) for call in self.silenced]
        if idle is None and not min(asked, default=0):
            return Verdict.warning(
                f"{_GUESS:.0f} s after its watches fell silent the client has not reconnected; pass --idle", *trial.excerpt()
            )
        if idle is None and max(asked, default=0) > _GUESS:  # a good client waits a little longer than that
            raise NotExercised(
                f"{_GUESS:.0f} s after its watches fell silent the client has not reconnected; it asks for watches of "
                f"{max(asked)} s, and may wait as long: pass --idle"
            )
        why = f"--idle is {idle:.0f}" if idle is not None else f"it asked the server to end its watches after {max(asked)} s"
        return Verdict.failure(
            f"the client did not close a silent watch within {self._limit(trial):.0f} s, though {why}",
            *trial.excerpt(),
            by_time=True,
        )


def timeout_of(watch: Call) -> int:
    """Returns the seconds after which the server ends a watch at the client's request; 0 if the client requests nothing."""
    return read_number(watch.query.get("timeoutSeconds", ""))


#: Seconds of silence after which a client without --idle is suspected: client-go sends a PING after 30 s and waits 15 s for its
#: answer.
_GUESS = 55.0
#: How many seconds later than the server a client may notice that a watch should have ended.
_LATE = 15.0


class HalfOpen(HalfOpenPlain):
    """The same over TLS, where clients may use HTTP/2 and detect the silence with PINGs."""

    fallback = HalfOpenPlain

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"tls": True}


class WholeEvents(Rule):
    """The base class of the provocations of W8."""

    id = "W8"
    obligation = "an event is complete at the end of its line, however the bytes arrive; a cut watch is resumed"
    advice = "buffer bytes up to the newline (only \\n), decode the whole line as UTF-8, drop what is incomplete"
    source = "RFC 9112 (chunked transfer coding); kubernetes-client/python#1325 and #2087"


class BrokenFrames(WholeEvents):
    """The connection is cut within an event and within a character, and later events arrive in small slices."""

    name = "slices"
    decisive = True
    provocation = "watches arrive in slices and are cut in mid-event"
    is_step = True
    watches = True
    fast = True
    legality = "C"

    def provoke(self, trial: Trial) -> None:
        for size in _CUTS:
            trial.require_watch()
            trial.faults.on("watch").cut(after_bytes=size, label="cut").remove()
            trial.stimulate(_with_text)
            trial.await_all()
        trial.faults.on("watch").slice(_SLICE, label="sliced")
        trial.stimulate(_with_text)
        trial.await_all()
        trial.wait(2.0)
        trial.end_watches()

    def find_failure(self, trial: Trial) -> Verdict | None:
        closed = [
            call
            for call in trial.trace.since(trial.provoked_at)
            if call.is_watch and call.ended == "closed by the client" and (call.end or 0.0) - call.at < _SOON
        ]
        if len(closed) > 1:
            return Verdict.failure(
                f"the client closed its watch {len(closed)} times soon after it was opened, while events arrived in slices",
                *excerpt(closed),
            )
        return _judge_text(trial)


def _judge_text(trial: Trial) -> Verdict | None:
    """Judges whether the client writes a text of an object back with other characters."""
    for call in trial.trace.since(trial.provoked_at):
        if call.is_write and _has_replaced(call):
            return Verdict.failure("writes U+FFFD instead of the characters of the object", *excerpt([call]))
    for copy in trial.copies:
        for _, obj in own_objects(trial, copy):
            text = (obj["metadata"].get("annotations") or {}).get(_ANNOTATION)
            known = next(one for one in copy.objects if one["metadata"]["name"] == obj["metadata"]["name"])
            if text != (known["metadata"].get("annotations") or {}).get(_ANNOTATION):
                calls = [call for call in trial.trace.since(copy.mark) if call.is_write and call.name == obj["metadata"]["name"]]
                return Verdict.failure(f"{obj['metadata']['name']} has a changed text", *excerpt(calls))
    return None


def _has_replaced(call: Call) -> bool:
    """Reports whether a body has replacement characters, as text, or in the data of a Secret."""
    if any(mark in call.exchange.raw_body for mark in _REPLACED):
        return True
    data = call.body.get("data") if call.collection == "secrets" and isinstance(call.body, dict) else None
    return isinstance(data, dict) and any(_REPLACED[0] in _decode(value) for value in data.values())


def _decode(value: Any) -> bytes:
    """Returns what a value of a Secret's data stands for; b"" if it cannot be read."""
    try:
        return base64.b64decode(str(value))
    except binascii.Error:
        return b""


#: The replacement character for invalid bytes, in UTF-8 and in the escapes of JSON.
_REPLACED = ("\ufffd".encode(), b"\\ufffd", b"\\uFFFD")

#: The sizes in bytes after which an event is cut: within `_TEXT`, at least once within a character.
_CUTS = (1500, 1501)
_SLICE = 5
#: A client does not close a watch because of an idle timeout within so many seconds.
_SOON = 1.5
#: Characters of two to four bytes; some libraries treat the second and third one as the end of a line.
_TEXT = "é\u0085\u2028漢😀"


def _with_text(obj: dict[str, Any]) -> None:
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations[_ANNOTATION] = _TEXT * 300
    if obj["kind"] == "ConfigMap" and obj["apiVersion"] == "v1":
        obj.setdefault("data", {})["check.fakekube.dev"] = _TEXT * 100


_ANNOTATION = "a.check.fakekube.dev/text"


class BatchedEvents(Rule):
    """Several events are waiting when a watch is resumed, and arrive together: in one chunk each, and all in one chunk."""

    id = "W8"
    name = "together"
    provocation = "several events and a bookmark arrive at once"
    watches = True
    steps = ("W5",)
    obligation = "one read from the connection may return several events"
    advice = "process every complete line in the buffer before the next read"
    source = "RFC 9112 (chunked transfer coding); kube-apiserver flushes when no event is waiting"

    EVENTS = 3

    ended: Sequence[Call] = ()

    def provoke(self, trial: Trial) -> None:
        """Ends the watches after each batch: the revision at which the client resumes shows whether it has read all events."""
        ended = self.ended = []
        for together in (False, True):
            require_resumption(trial)
            if together:
                arm(trial.faults.on("watch"), JoinEvents(), label="in one chunk")
            await_long_watches(trial)
            with trial.faults.on("watch").hang(label="held up"):
                await_requests(trial, trial.end_watches())
                for _ in range(self.EVENTS):
                    trial.stimulate()
            trial.await_all()
            ended += trial.end_watches()

    def find_failure(self, trial: Trial) -> Verdict | None:
        return judge_resumption(trial, self.ended, bookmarks=False)


RULES = (NormalEnd, Calm, ImmediateEnds, HalfOpen, BrokenFrames, BatchedEvents)
