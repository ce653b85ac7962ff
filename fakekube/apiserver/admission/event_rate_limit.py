"""EventRateLimit: limits the rate of events of the server, or of each namespace, user, or source and object. Off by
default.

There is a token bucket for each key: it holds `burst` tokens, refills with `qps` tokens a second of the cluster's
clock, and an event takes one. The least recently used keys are dropped.

Specified by: plugin/pkg/admission/eventratelimit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fakekube.apimachinery.errors import FieldError, StatusError
from fakekube.apimachinery.errors.field import aggregate, invalid, not_supported
from fakekube.apiserver.admission.configuration import ConfigurationError
from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin

_CACHE_SIZE = 4096
_SOURCE = ("component", "host")
_OBJECT = ("kind", "namespace", "name", "uid", "apiVersion")


def _source_and_object(attributes: Attributes) -> str:
    event = attributes.object or {}
    source = event.get("source") or event.get("deprecatedSource") or {}
    involved = event.get("involvedObject") or event.get("regarding") or {}
    return "".join([*(source.get(name, "") for name in _SOURCE), *(involved.get(name, "") for name in _OBJECT)])


#: Type of a limit → the key of its buckets.
_KEYS: Mapping[str, Callable[[Attributes], str]] = {
    "Server": lambda attributes: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: attributes.context.user,
    "SourceAndObject": _source_and_object,
}


@dataclass(slots=True)
class _Limit:
    type: str
    qps: int
    burst: int
    size: int
    buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    """Key → tokens at some time, and that time."""

    def accept(self, attributes: Attributes) -> str:
        """Takes a token for the event; returns the error if there is none, else ""."""
        key, now = _KEYS[self.type](attributes), attributes.context.clock.monotonic()
        tokens, since = self.buckets.pop(key, (float(self.burst), now))
        tokens = min(tokens + (now - since) * self.qps, self.burst)
        allowed = tokens >= 1
        self.buckets[key] = (tokens - 1 if allowed else tokens, now)
        if len(self.buckets) > self.size:
            self.buckets.popitem(last=False)
        return "" if allowed else f"limit reached on type {self.type} for key {key}"


class EventRateLimit(Plugin):
    """See the module."""

    name = "EventRateLimit"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "events"), ("events.k8s.io", "events")})

    def __init__(self, limits: list[_Limit]) -> None:
        self._limits = limits
        self._lock = threading.Lock()

    @classmethod
    def configured(cls, configuration: Any) -> EventRateLimit:
        """Raises ConfigurationError."""
        limits = (configuration or {}).get("limits") or []
        errors = [] if limits else [invalid("limits", None, "must not be empty")]
        for index, limit in enumerate(limits):
            errors += _errors(limit, f"limits[{index}]")
        if errors:
            raise ConfigurationError(aggregate(errors))
        return cls(
            [_Limit(limit["type"], limit["qps"], limit["burst"], limit.get("cacheSize") or _CACHE_SIZE) for limit in limits]
        )

    def validate(self, attributes: Attributes) -> None:
        if attributes.context.dry_run:
            return
        with self._lock:
            problems = [problem for limit in self._limits if (problem := limit.accept(attributes))]
        if problems:
            told = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise StatusError(429, "TooManyRequests", f"Too many requests: {told}")


def _errors(limit: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    if limit.get("type") not in _KEYS:
        errors.append(not_supported(f"{path}.type", limit.get("type", ""), sorted(_KEYS)))
    errors += [
        invalid(f"{path}.{name}", limit.get(name, 0), "must be positive") for name in ("burst", "qps") if limit.get(name, 0) <= 0
    ]
    if limit.get("type") != "Server" and limit.get("cacheSize", 0) < 0:
        errors.append(invalid(f"{path}.cacheSize", limit["cacheSize"], "must not be negative"))
    return errors
