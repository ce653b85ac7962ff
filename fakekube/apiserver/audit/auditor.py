"""Audits the requests of one cluster: evaluates the policy and passes events to backends and subscribers.

Without a policy there is no auditor, and requests do no work for it. Subscribers get the same events as backends, as JSON data,
which they must not change.

Specified by: k8s.io/apiserver/pkg/server/options/audit.go and pkg/endpoints/filters/{audit,authn_audit}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from fakekube.apiserver.audit.backends import LogBackend, WebhookBackend
from fakekube.apiserver.audit.context import AuditContext, Event
from fakekube.apiserver.audit.options import AuditOptions
from fakekube.apiserver.audit.policy import Level, Policy, read_policy
from fakekube.apiserver.auth.authorization import attributes_of
from fakekube.apiserver.auth.options import OptionError
from fakekube.apiserver.endpoints.request import RequestInfo, User
from fakekube.base.clock import Clock

_FORMATS: Final = ("legacy", "json")
_MODES: Final = ("batch", "blocking", "blocking-strict")


class Backend(Protocol):
    """A destination of events."""

    def process(self, event: Event) -> None:
        """Processes one event. May be called from several threads."""

    def close(self) -> None:
        """Processes queued events and releases resources."""


class Auditor:
    """Creates an `AuditContext` for each request.

    Args:
        policy: selects requests, and the level of their events.
        clock: of the cluster.
        backends: process the events.
    """

    def __init__(self, policy: Policy, clock: Clock, *backends: Backend) -> None:
        self._policy = policy
        self._clock = clock
        self._backends = backends
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        """Calls `subscriber` with every event from now on, in the thread of the request."""
        self._subscribers.append(subscriber)

    def begin(self, info: RequestInfo, user: User | None, facts: Mapping[str, Any]) -> AuditContext | None:
        """Returns the context for a request; None if the policy excludes it.

        Args:
            info: the request.
            user: None if authentication failed.
            facts: the fields of the event that are about the HTTP request: auditID, requestURI, sourceIPs, userAgent.
        """
        attributes = attributes_of(info, user or _NOBODY)
        config = self._policy.evaluate(attributes)
        if config.level is Level.NONE:
            return None
        return AuditContext(config, self._emit, self._clock, attributes=attributes, user=user, facts=facts)

    def _emit(self, event: Event) -> None:
        for backend in self._backends:
            backend.process(event)
        for subscriber in self._subscribers:
            subscriber(event)

    def close(self) -> None:
        """Closes all backends."""
        for backend in self._backends:
            backend.close()


_NOBODY: Final = User("", groups=())


def auditor_of(options: AuditOptions, clock: Clock) -> Auditor | None:
    """Returns the auditor for these flags; None without a policy. Raises OptionError."""
    if not options.audit_policy_file:
        if options.audit_log_path or options.audit_webhook_config_file:
            raise OptionError("--audit-policy-file: without a policy no events would be logged")
        return None
    backends: list[Backend] = []
    if options.audit_log_path:
        if options.audit_log_format not in _FORMATS:
            raise OptionError(f"invalid audit log format {options.audit_log_format}, allowed formats are {','.join(_FORMATS)}")
        backends.append(LogBackend(options.audit_log_path, options.audit_log_format))
    if options.audit_webhook_config_file:
        backends.append(_webhook(options))
    return Auditor(read_policy(options.audit_policy_file), clock, *backends)


def _webhook(options: AuditOptions) -> WebhookBackend:
    from fakekube.apiserver.webhooks.transport import KubeconfigError, endpoint_of

    if options.audit_webhook_mode not in _MODES:
        raise OptionError(f"invalid audit webhook mode {options.audit_webhook_mode}, allowed modes are {','.join(_MODES)}")
    try:
        return WebhookBackend(endpoint_of(options.audit_webhook_config_file), options)
    except KubeconfigError as error:
        raise OptionError(f"--audit-webhook-config-file: {error}") from None
