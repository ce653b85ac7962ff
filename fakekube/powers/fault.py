"""A fault: the criteria of requests, the action that happens to them, and how often; and the index of armed faults.

Criteria are verbs, resources with subresources, namespaces, names, users, user agents. An action is called before the request is
performed (`before_request`: it may wait, raise, or return a response), after it was performed (`after_response`: it may drop or
cut the response), or with the `stream` of a watch. Of the actions whose `combines` is False, only one happens to a request: that
of the fault that was armed first. Arguments are checked when a fault is armed, so that no action fails because of them when a
request comes. The index finds the faults by the criteria that are compared for equality, so that thousands of faults cost a
request little.

Invariants: matching changes nothing; an absent criterion matches every request. A fault counts each request once, under its lock;
`hits` never exceeds `times`. An action never invents state: it changes objects only through the API, and the history only through
the store.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from itertools import chain, product
from math import isfinite
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from fakekube.apiserver.endpoints.request import Request, Response
    from fakekube.base.clock import Clock
    from fakekube.powers.action_context import ActionContext
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.streams import ObservedStream


# --- Criteria for requests --------------------------------------------------------------------------------------------


#: The verb of calls of webhooks by the API server.
CALL = "call"
#: The verbs of requests about resources; others are lower-case methods of requests about other paths.
VERBS = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy", "connect", CALL})


@dataclass(slots=True, frozen=True)
class ResourceName:
    """A resource as tests name it: `pods` (of any group), `deployments.apps`, `pods/status`, `pods/*`, `*.apps`, `*`."""

    plural: str
    group: str | None
    """None: of any group."""
    subresource: str
    """"" for the main resource, "*" for all subresources."""
    text: str

    @classmethod
    def parse(cls, text: str, resolve: Callable[[str], str] = str) -> ResourceName:
        """Parses a name; `resolve` returns the plural for a short name, a kind or a singular.

        Raises ValueError for a list of names, which would match nothing.
        """
        resource, _, subresource = text.partition("/")
        if "," in resource:
            raise ValueError(f"{text!r} is more than one resource: name one, or * for all")
        plural, _, group = resource.partition(".")
        return cls(plural if plural == "*" else resolve(plural), group or None, subresource, text)

    def matches(self, exchange: Exchange) -> bool:
        """Reports whether the exchange is a request for this resource."""
        if self.text == "*":
            return exchange.is_resource_request
        if self.plural not in ("*", exchange.resource) or self.group not in (None, exchange.group):
            return False
        if self.plural == "*" and not self.subresource:  # all resources and subresources of a group
            return exchange.is_resource_request
        return self.subresource == exchange.subresource or (self.subresource == "*" and bool(exchange.subresource))


@dataclass(slots=True, frozen=True)
class Criteria:
    """The properties that a request must have; None matches any value."""

    verb: tuple[str, ...] | None = None
    resource: ResourceName | None = None
    namespace: str | None = None
    name: str | None = None
    user: str | None = None
    agent: str | None = None
    """A prefix of the user agent."""
    status: int | None = None
    path: str | None = None
    """A glob, for requests that are not about resources."""

    def misses(self, exchange: Exchange) -> list[str]:
        """Returns the names of the criteria that an exchange does not meet."""
        return [field.name for field in fields(self) if not self._meets(field.name, exchange)]

    def matches(self, exchange: Exchange) -> bool:
        """Reports whether the exchange meets all criteria."""
        return all(self._meets(field.name, exchange) for field in fields(self))

    def _meets(self, criterion: str, exchange: Exchange) -> bool:
        wanted = getattr(self, criterion)
        if wanted is None:
            return True
        if criterion == "verb":
            return exchange.verb in wanted
        if criterion == "resource":
            return bool(wanted.matches(exchange))
        if criterion == "agent":
            return exchange.agent.startswith(wanted)
        if criterion == "path":
            return (not exchange.is_resource_request or exchange.verb == CALL) and fnmatchcase(exchange.path, wanted)
        return bool(getattr(exchange, criterion) == wanted)

    def __str__(self) -> str:
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        texts = (f"{name}={_text(value)}" for name, value in shown.items() if value is not None)
        return ", ".join(texts) or "any request"


def _text(value: object) -> str:
    if isinstance(value, ResourceName):
        return value.text
    return ",".join(value) if isinstance(value, tuple) else str(value)


def verbs_of(text: str | Iterable[str]) -> tuple[str, ...] | None:
    """Parses verbs (`get,list`); returns None for `*`. Raises ValueError for a verb that does not exist."""
    verbs = tuple(part.strip() for part in (text.split(",") if isinstance(text, str) else text))
    if verbs == ("*",):
        return None
    methods = {"get", "head", "post", "put", "patch", "delete", "options"}
    unknown = [verb for verb in verbs if verb not in VERBS | methods]
    if unknown:
        raise ValueError(f"there is no verb {', '.join(unknown)}; verbs are {', '.join(sorted(VERBS))}")
    return verbs


Reader = Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_whole(value) and value >= 0


def _is_positive(value: Any) -> bool:
    return _is_whole(value) and value >= 1


def _is_code(value: Any) -> bool:
    return _is_whole(value) and 200 <= value <= 599


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


def _is_probability(value: Any) -> bool:
    return _is_seconds(value) and value <= 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


#: Annotation of the field → predicate, and what the value must be.
_TYPES: Mapping[str, tuple[Reader, str]] = {
    "int": (_is_count, "an integer that is not negative"),
    "float": (_is_seconds, "a number that is not negative"),
    "str": (_is_text, "a string"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
}

#: Name of the field → the same, for fields that are more restricted than their type.
_NAMES: Mapping[str, tuple[Reader, str]] = {
    "code": (_is_code, "a status code from 200 to 599"),
    "size": (_is_positive, "a positive integer"),
    "times": (_is_positive, "a positive integer"),
    "every": (_is_positive, "a positive integer"),
    "probability": (_is_probability, "a number from 0 to 1"),
    "when": (lambda value: value in ("never", "often", "at end", "now"), '"never", "often", "at end" or "now"'),
}

_CALLABLE = (callable, "a function")


def check_arguments(arguments: DataclassInstance) -> None:
    """Raises ValueError for a field whose value has a wrong type or range; None is valid if the annotation allows it."""
    for argument in fields(arguments):
        value, kind = getattr(arguments, argument.name), str(argument.type)
        if value is None and kind.endswith("| None"):
            continue
        fits, wanted = _NAMES.get(argument.name) or _TYPES.get(kind.partition(" ")[0], _CALLABLE)
        if not fits(value):
            raise ValueError(f"{argument.name} must be {wanted}, not {value!r}")


def require_text(**values: object) -> None:
    """Raises ValueError for a value that is neither None nor a string."""
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} must be a string, not {value!r}")


@dataclass(slots=True, frozen=True)
class Action:
    """What a fault does. The fields of a class are the arguments of the action."""

    name: ClassVar[str]
    combines: ClassVar[bool] = False
    """Whether it can happen to a request together with other actions."""
    on_watches: ClassVar[bool] = True
    """Whether it can happen to watches."""
    on_others: ClassVar[bool] = True
    """Whether it can happen to requests that are not watches."""
    on_open: ClassVar[bool] = False
    """Whether it also happens to watches that are open when the fault is armed."""
    on_calls: ClassVar[bool] = False
    """Whether it can happen to calls of webhooks (`webhook_faults`)."""
    at_authentication: ClassVar[bool] = False
    """Whether it happens right after authentication (`refuse_token`), and at no other time."""
    loses_streams: ClassVar[bool] = False
    """Whether `after_response` is also called for the responses of watches."""

    def __post_init__(self) -> None:
        """Checks the arguments. Raises ValueError for one of a wrong type or out of its range."""
        check_arguments(self)

    def concerns(self, exchange: Exchange) -> bool:
        """Reports whether the action can happen to a request; other requests are not counted."""
        return self.on_watches if exchange.verb == "watch" else self.on_others

    def meets(self, criteria: Criteria, exchange: Exchange) -> bool:
        """Reports whether a request meets the criteria of the action's fault."""
        return criteria.matches(exchange)

    def refuse_token(self, fault: Fault, exchange: Exchange) -> None:
        """Called after authentication and before authorization. May raise StatusError 401."""

    def apply_once(self, context: ActionContext) -> None:
        """Called once, when the fault is armed."""

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        """Called before the request is performed. If it returns a response, that is sent and the request is not performed.
        May raise StatusError and BrokenStreamError."""
        return None

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        """Called after the request was performed; may change the response. May raise BrokenStreamError."""

    def note_token(self, token: str) -> None:
        """Called with each token that the cluster issues, whether or not the request meets the criteria."""

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        """Called with the stream of a watch."""

    def describe(self) -> dict[str, Any]:
        """Returns the action as the control API shows it."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {self.name: {name: value for name, value in values.items() if value is not None and not callable(value)}}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.describe()[self.name].items())
        return f"{self.name}({shown})"


_ids = itertools.count(1)


@dataclass(slots=True, frozen=True)
class Frequency:
    """How often a fault happens; the arguments that every action takes."""

    times: int | None = None
    """The maximum number of requests to which it happens; None for no limit."""
    after: int = 0
    """The number of matching requests that pass first."""
    every: int = 1
    """It happens to the first of each `every` matching requests."""
    probability: float = 1.0
    """The probability, from 0 to 1, with which it happens to a matching request."""
    lasts: float | None = None
    """The fault ends after this number of seconds of the cluster's clock; None for never."""

    def __post_init__(self) -> None:
        """Checks the values. Raises ValueError."""
        check_arguments(self)


@dataclass(eq=False)
class Fault:
    """An armed fault; a context manager that removes it at the end of the block."""

    criteria: Criteria
    own: bool
    """Whether requests of the cluster's own controllers and of clients in the same process count."""
    action: Action
    frequency: Frequency
    label: str | None
    clock: Clock
    dice: random.Random
    on_removal: Callable[[Fault, bool], None]
    """Called when the fault is removed, with True after `remove()` and False at the end of a `with` block."""
    hits: int = 0
    """The number of requests to which it has happened."""
    id: int = field(default_factory=lambda: next(_ids))

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = 0
        self.removed = False
        lasts = self.frequency.lasts
        self.until = None if lasts is None else self.clock.monotonic() + lasts
        """The time of the clock at which it ends; None if it does not."""

    @property
    def name(self) -> str:
        """The label, or the id."""
        return self.label or str(self.id)

    @property
    def exhausted(self) -> bool:
        """Whether the fault will not happen again."""
        spent = self.frequency.times is not None and self.hits >= self.frequency.times
        return spent or self.removed or (self.until is not None and self.clock.monotonic() >= self.until)

    def meets(self, exchange: Exchange) -> bool:
        """Reports whether a request meets the criteria. Requests that a fault sends never do; calls of webhooks do only if the
        verbs contain `call`."""
        if exchange.verb == CALL:
            return CALL in (self.criteria.verb or ()) and self.criteria.matches(exchange)
        return (not exchange.own or (self.own and not exchange.of_fault)) and self.action.meets(self.criteria, exchange)

    def take(self) -> bool:
        """Counts a request that meets the criteria, and reports whether the fault happens to it."""
        often = self.frequency
        with self._lock:
            if self.exhausted:
                return False
            place = self._seen - often.after
            self._seen += 1
            if place < 0 or place % often.every or (often.probability < 1.0 and self.dice.random() >= often.probability):
                return False
            self.hits += 1
            return True

    def remove(self) -> None:
        """Removes the fault; requests that it delays continue. May be called twice."""
        self._disarm(by_hand=True)

    def _disarm(self, *, by_hand: bool) -> None:
        self.removed = True
        self.on_removal(self, by_hand)

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._disarm(by_hand=self.removed or error is not None)

    def __str__(self) -> str:
        return f"fault {self.name} ({self.action} on {self.criteria})"

    def describe(self) -> dict[str, Any]:
        """Returns the fault as the control API shows it."""
        often, on = self.frequency, self.criteria
        return {
            "id": self.id,
            "label": self.label,
            "hits": self.hits,
            "exhausted": self.exhausted,
            "on": {
                "verbs": "*" if on.verb is None else ",".join(on.verb),
                "resource": on.resource.text if on.resource else "*",
                "namespace": on.namespace,
                "name": on.name,
                "user": on.user,
                "agent": on.agent,
                "path": on.path,
                "own": self.own,
            },
            "do": self.action.describe(),
            "times": often.times,
            "after": often.after,
            "every": often.every,
            "probability": often.probability,
            "lasts": often.lasts,
        }


_Key = tuple[str | None, str | None, str | None, str | None, str | None]
"""Verb, plural, and the criteria of `_NAMED`; None matches any value."""

#: Criteria that are only looked up if a fault has them, because reading a name may require decoding a body.
_NAMED = ("name", "namespace", "user")

_id = attrgetter("id")


class FaultIndex:
    """The faults by their keys; false if there are none."""

    __slots__ = ("_by_key", "_counts")

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[int, Fault]] = {}
        self._counts = dict.fromkeys(_NAMED, 0)
        """The number of faults with each of these criteria."""

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def add(self, fault: Fault) -> None:
        """Adds a fault."""
        for key in _keys(fault):
            self._by_key.setdefault(key, {})[fault.id] = fault
        self._count(fault, 1)

    def discard(self, fault: Fault) -> None:
        """Removes a fault, if it is there."""
        found = False
        for key in _keys(fault):
            faults = self._by_key.get(key, {})
            found = faults.pop(fault.id, None) is not None or found
            if not faults:
                self._by_key.pop(key, None)
        if found:
            self._count(fault, -1)

    def _count(self, fault: Fault, number: int) -> None:
        for name in _NAMED:
            if getattr(fault.criteria, name) is not None:
                self._counts[name] += number

    def candidates(self, exchange: Exchange) -> list[Fault]:
        """Returns the faults whose criteria an exchange may meet, in the order in which they were armed."""
        named = ((getattr(exchange, name), None) if self._counts[name] else (None,) for name in _NAMED)
        keys = set(product((exchange.verb, None), (exchange.resource or None, None), *named))
        found = [faults for key in keys if (faults := self._by_key.get(key))]
        if len(found) == 1:
            return list(found[0].values())
        return sorted(chain.from_iterable(faults.values() for faults in found), key=_id)


def _keys(fault: Fault) -> list[_Key]:
    criteria = fault.criteria
    plural = criteria.resource.plural if criteria.resource is not None else None
    return [
        (verb, None if plural == "*" else plural, criteria.name, criteria.namespace, criteria.user)
        for verb in dict.fromkeys(criteria.verb or (None,))
    ]
