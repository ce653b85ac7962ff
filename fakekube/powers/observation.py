"""Records every exchange and applies faults.

`Observer` is installed in the application (`apiserver.http.application.Application.observer`), which calls it for every
request: when it arrives, after authentication, before it is performed, and with the response.

Invariant: without faults requests and responses pass unchanged.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.codecs.document import Chunks
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.registry.scope import Backend
from fakekube.base.caches import trim
from fakekube.base.objects import Object
from fakekube.controllers.client import Client
from fakekube.net.streams import subscribe_weakly
from fakekube.powers.action_context import ActionContext
from fakekube.powers.exchange import KEPT_BYTES, Actors, Cause, Exchange
from fakekube.powers.fault import Action, Criteria, Fault, Frequency, ResourceName
from fakekube.powers.faults import Faults
from fakekube.powers.journal import CURRENT, Journal, Marks, describe_move
from fakekube.powers.requests import Recorder, Requests
from fakekube.powers.streams import ObservedStream, SharedSource

if TYPE_CHECKING:
    from contextvars import Token

    from fakekube.apiserver.webhooks.caller import CallObservation
    from fakekube.apiserver.webhooks.transport import Endpoint


class Observer:
    """The recorder and the faults of one cluster.

    Args:
        backend: of the cluster.
        client: a client in the same process, for the writes of faults.
        keep: the maximum number of recorded exchanges.
    """

    def __init__(self, backend: Backend, client: Client, keep: int) -> None:
        def resolve(name: str) -> str:
            with suppress(LookupError):
                return client.resource(name).plural
            return name

        self.clock = backend.clock
        self.began = time.monotonic()
        """The time of `time.monotonic` from which the times of requests are counted."""
        self.context = ActionContext(backend, client)
        self.epoch = self.clock.now().timestamp() - self.clock.monotonic()
        """Seconds since the epoch at the zero of the cluster's monotonic clock, so that rows have the same times each time."""
        self._own: tuple[Fault, ...] = ()
        self.has_faults = False
        """Whether any fault is armed."""
        self.recorder = Recorder(keep, resolve)
        self.requests = Requests(self.recorder)
        self.journal = Journal(self.recorder.ring, backend.store.revision)
        self.actors = Actors()
        backend.store.keep_journal(self.journal.note)
        self._reading = self.clock.reading
        subscribe_weakly(self, Observer._clock_moved, (self.clock,))
        self.faults = Faults(weakref.proxy(self), backend.clock, resolve)

    @cached_property
    def marks(self) -> Marks:
        """What was done to the cluster outside of the Kubernetes API."""
        recorder, store, clock = self.recorder, weakref.ref(self.context.store), self.clock

        def current_position() -> tuple[int, int, float]:
            found = store()
            return recorder.newest, 0 if found is None else found.revision, clock.now().timestamp()

        return Marks(current_position)

    def _clock_moved(self) -> None:
        before, self._reading = self._reading, self.clock.reading
        text = describe_move(before, self._reading)
        if text:
            self.marks.add("clock", text)

    @cached_property
    def _streams(self) -> weakref.WeakSet[ObservedStream]:
        return weakref.WeakSet()

    @cached_property
    def _sources(self) -> weakref.WeakValueDictionary[int, SharedSource]:
        return weakref.WeakValueDictionary()

    def observe(self, environ: Mapping[str, Any], path: str) -> Observation:
        """Called when a request arrives; returns its exchange."""
        recorder = self.recorder
        observation = Observation(recorder.next_number(), environ, path, self.clock)
        observation.observer = self
        recorder.keep(observation)
        outer = CURRENT.get()
        if outer is not None:
            observation.within = outer if isinstance(outer, Exchange) else None
        observation.reset = CURRENT.set(observation)
        return observation

    def observe_call(self, endpoint: Endpoint, body: bytes, review: Object, seconds: float) -> CallObservation:
        """Called when the API server calls a webhook; returns the exchange with the faults that happen to the call."""
        from fakekube.powers.webhook_faults import ObservedCall, exchange_of

        exchange = exchange_of(self.recorder.next_number(), endpoint, body, review, self.clock)
        self.recorder.keep(exchange)
        hits = []
        if len(self.faults):
            found = [one for one in self.faults.candidates(exchange) if one.action.on_calls and one.meets(exchange)]
            hits = choose(found, exchange, self.faults.retire)
        return ObservedCall(exchange, endpoint, seconds, hits, context=self.context, notify=self.recorder.notify)

    def apply_to_open_watches(self, fault: Fault) -> None:
        """Called when a fault is armed: applies it to open watches, if its action can happen to them."""
        fault.action.apply_once(self.context)
        if not fault.action.on_open:
            return
        for stream in list(self._streams):
            if fault.action.concerns(stream.exchange) and fault.meets(stream.exchange) and fault.take():
                stream.exchange.faults = [*stream.exchange.faults, fault.name]
                stream.exchange.fault = stream.exchange.fault or fault.name
                fault.action.stream(stream, self.context)
                stream.wake()

    def arm_own(self, action: Action, lasts: float) -> None:
        """Applies an action to every request for `lasts` seconds of the clock, without an armed fault that tests can see."""
        fault = Fault(
            Criteria(resource=ResourceName.parse("*")),
            False,
            action,
            Frequency(lasts=lasts),
            action.name,
            self.clock,
            Random(0),
            self._forget_own,
        )
        self._own = (*(one for one in self._own if not one.exhausted), fault)
        self.refresh()

    def _forget_own(self, fault: Fault, _by_hand: bool) -> None:
        self._own = tuple(one for one in self._own if one is not fault)
        self.refresh()

    def refresh(self) -> None:
        """Called after faults were armed or removed."""
        self.has_faults = bool(self._own) or len(self.faults) > 0

    def candidates(self, exchange: Exchange) -> list[Fault]:
        """Returns the faults that may happen to a request: first those of the cluster itself, then those of tests."""
        return [*self._own, *self.faults.candidates(exchange)]

    def stop(self) -> None:
        """Called when the cluster stops: delayed requests continue."""
        self.context.stop()

    def require_hits(self) -> None:
        """Raises AssertionError, with the most similar requests, if an armed fault never happened."""
        unfired = self.faults.unfired()
        if unfired:
            near = (f"{fault} never happened{self.requests.nearest(fault.criteria)}" for fault in unfired)
            raise AssertionError("\n".join(near))

    def stream(self, exchange: Exchange, stream: Any) -> ObservedStream:
        """Wraps the stream of a watch."""
        source = self._sources.get(id(stream.source))
        if source is None or source.source is not stream.source:
            source = self._sources[id(stream.source)] = SharedSource(stream.source)
        if self.recorder.keep_frames:
            exchange.frames = []
        observed = ObservedStream(stream, exchange, source, self.clock, self._streams.discard)
        self._streams.add(observed)
        return observed


class Observation(Exchange):
    """An exchange in progress. The application calls its methods; they record and apply faults."""

    observer: Observer
    """Removed at the end of the exchange, which the observer keeps."""
    request: Request | None = None
    reset: Token[Exchange | Cause | None]
    """Ends it as the cause of changes; removed with `observer`."""
    _hits: Sequence[Fault] = ()

    def note_user(self, user: str) -> None:
        """Called after authentication and before authorization. Raises StatusError 401 if a fault refuses the token."""
        self.user = user
        for fault in self.observer.faults.of_tokens:
            if fault.action.concerns(self) and fault.meets(self) and fault.take():
                self.faults, self.fault = [*self.faults, fault.name], fault.name
                fault.action.refuse_token(fault, self)

    def perform(self, request: Request, perform: Callable[[], Response]) -> Response:
        """Performs the request, unless a fault responds in its place. Raises StatusError and BrokenStreamError."""
        if self.verb in ("create", "update", "patch"):
            self.raw_body = request.read_body()  # criteria and functions may read it; `note_response` drops it if it is too large
        candidates = self.observer.candidates(self)
        fitting = [one for one in candidates if one.action.concerns(self) and one.meets(self)]
        self._hits = hits = choose(fitting, self, self.observer.faults.retire)
        context = self.observer.context
        for fault in hits:
            answer = fault.action.before_request(fault, self, request, context)
            if answer is not None:
                return answer
        return perform()

    def note_response(self, response: Response) -> None:
        """Called with the response; faults may change its body. Raises BrokenStreamError if a fault drops it."""
        request, body, observer = self.request, response.body, self.observer
        if request is not None:
            sent = request.sent_body
            if sent is not None:
                self.raw_body = b"" if len(sent) > KEPT_BYTES else trim(sent) if self.own else sent
            self.request = None
        self.answer_headers = response.headers
        if body.__class__ is bytes or isinstance(body, bytes | Chunks):
            self.raw_answer = body if len(body) <= KEPT_BYTES else None
        elif hasattr(body, "take") and not hasattr(body, "receive"):
            # a watch of this API server; streams of extension API servers and tunnels pass unchanged
            self._observe_stream(response)
        self.seconds = time.monotonic() - self.began
        self.status = response.status
        if observer.recorder.waiting_views:
            observer.recorder.notify()
        if self._hits:
            for fault in self._hits:
                if isinstance(body, bytes | Chunks) or fault.action.loses_streams:
                    fault.action.after_response(fault, self, response)
        if observer.has_faults and self.subresource == "token" and response.status == 201:
            observer.faults.note_issued_token(self.answer)
        self._leave()

    def _observe_stream(self, response: Response) -> None:
        observed = self.observer.stream(self, response.body)
        response.body = observed
        for fault in self._hits:
            fault.action.stream(observed, self.observer.context)

    def note_drop(self) -> None:
        """Called when the connection drops before a response."""
        self.raw_body = self.raw_body if len(self.raw_body) <= KEPT_BYTES else b""
        self.seconds = time.monotonic() - self.began
        self.observer.recorder.notify()
        self._leave()

    def _leave(self) -> None:
        self._environ = self.observer.recorder.share_environ(self._environ)
        self.observer.recorder.note_bodies(len(self.raw_body) + len(self.raw_answer or b""))
        CURRENT.reset(self.reset)
        self.within = None
        del self.observer, self.reset


def choose(faults: Sequence[Fault], exchange: Exchange, retire: Callable[[Fault], None]) -> list[Fault]:
    """Returns the faults of those that match which happen to an exchange: at most one whose `combines` is False, the one
    armed first. Exhausted faults are passed to `retire`."""
    hits: list[Fault] = []
    decided = False
    for fault in faults:
        if (decided and not fault.action.combines) or not fault.take():
            continue
        decided = decided or not fault.action.combines
        hits.append(fault)
        if fault.exhausted:
            retire(fault)
    if hits:
        exchange.faults = [*exchange.faults, *(fault.name for fault in hits)]
        exchange.fault = next((fault for fault in hits if not fault.action.combines), hits[0]).name
    return hits
