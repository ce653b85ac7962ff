"""The actions of faults as data, for forms, and which requests a fault would meet, before it is armed.

Invariant: a preview arms nothing and counts nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Final

from fakekube.powers.fault import Fault, Frequency
from fakekube.powers.fault_actions import ACTIONS

if TYPE_CHECKING:
    from fakekube.base.clock import Clock
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.faults import FaultSelector


#: Name of an argument → what it is.
_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "code": "the status code of the Status",
    "reason": "the reason of the Status; by default that of the real server",
    "message": "the message of the Status; by default that of the real server",
    "retry_after": "the seconds in the header Retry-After",
    "seconds": "seconds of the clock",
    "jitter": "seconds of the clock, of which a random part is added",
    "by": "how many revisions ago",
    "after_events": "after this number of events",
    "after_bytes": "after this number of bytes",
    "size": "the number of bytes of a piece",
    "connection": "with HTTP/2, nothing more is sent on the whole connection",
    "when": "never, often, at end or now",
    "times": "the maximum number of requests to which it happens",
    "after": "the number of matching requests that pass first",
    "every": "to the first of each so many matching requests",
    "probability": "from 0 to 1",
    "lasts": "seconds of the clock until it ends",
}
_TYPES: Final[Mapping[str, str]] = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}


def actions() -> list[dict[str, Any]]:
    """Returns the actions that can be armed over HTTP: name, description, and the arguments with types and defaults."""
    return [
        {"name": name, "description": (getdoc(action) or "").partition("\n")[0], "arguments": list(_arguments(action))}
        for name, action in ACTIONS.items()
        if name != "intercept"
    ]


def frequency() -> list[dict[str, Any]]:
    """Returns the arguments that every fault takes."""
    return list(_arguments(Frequency))


def _arguments(kind: Any) -> Iterable[dict[str, Any]]:
    for one in fields(kind):
        type_ = _TYPES.get(str(one.type).partition(" ")[0])
        if type_ is not None and one.init:
            required = one.default is MISSING and one.default_factory is MISSING
            yield {
                "name": one.name,
                "type": type_,
                "default": None if required else one.default,
                "required": required,
                "description": _DESCRIPTIONS.get(one.name, ""),
            }


def preview(
    selector: FaultSelector, name: str, arguments: Mapping[str, Any], exchanges: Iterable[Exchange], clock: Clock
) -> list[Exchange]:
    """Returns the requests that a fault would meet.

    Args:
        selector: with the criteria.
        name, arguments: of the action.
        exchanges: the requests to look at.
        clock: of the cluster.

    Raises TypeError for an unknown argument, ValueError for an invalid one.
    """
    action = ACTIONS[name](**arguments)
    fault = Fault(selector.criteria, selector.own, action, Frequency(), None, clock, random.Random(0), lambda *_: None)
    return [one for one in exchanges if action.concerns(one) and fault.meets(one)]
