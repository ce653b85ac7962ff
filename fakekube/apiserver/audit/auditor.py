"""Audits the requests of one cluster: the context of a request emits events, the policy selects them, `backends` get them.

Without a policy there is no auditor, and requests do no work for it. The stages of a request are RequestReceived, ResponseStarted
(for long-running requests), ResponseComplete and Panic; an event has the data that the context has at its stage. Objects are
those of the request and response bodies, as JSON. Subscribers get the same events as backends, as JSON data, which they must not
change.

Invariant: an annotation is set once; later values for the same key are dropped.

Specified by: k8s.io/apiserver/pkg/audit (context.go, request.go), pkg/endpoints/filters/{audit,authn_audit}.go,
pkg/server/options/audit.go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fakekube.apiserver.audit.backends import LOG_FORMATS, WEBHOOK_MODES, Backend, Event, LogBackend, WebhookBackend
from fakekube.apiserver.audit.policy import LEVELS, Level, Policy, RequestAuditConfig, read_policy
from fakekube.apiserver.auth.access import user_info
from fakekube.apiserver.auth.authorization import Attributes, attributes_of
from fakekube.apiserver.auth.options import OptionError
from fakekube.apiserver.endpoints.request import RequestInfo, User
from fakekube.apiserver.options import AuditOptions
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_micro_time

# --- The audit context of one request ---------------------------------------------------------------------------------

_LONGEST_USER_AGENT: Final = 1024
_DEPRECATED: Final = "k8s.io/deprecated"
_TRUNCATED: Final = "...TRUNCATED"
_LEVELS: Final = {name: Level(index) for index, name in enumerate(LEVELS)}
_STATUS_MEMBERS: Final = ("status", "message", "reason", "details", "code")


class AuditContext:
    """The audit of one request.

    Args:
        config: the result of the policy for the request.
        emit: called with each event.
        clock: the clock of the cluster, for timestamps.
        attributes: the attributes of the request for authorization.
        user: the user; None if authentication failed.
        facts: the fields about the HTTP request: auditID, requestURI, sourceIPs, userAgent.
    """

    def __init__(
        self,
        config: RequestAuditConfig,
        emit: Callable[[Event], None],
        clock: Clock,
        *,
        attributes: Attributes,
        user: User | None,
        facts: Mapping[str, Any],
    ) -> None:
        self._config = config
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._received = clock.now()
        self._fields = _request_fields(config, attributes, user, facts)
        self._annotations: dict[str, str] = {}
        self._deprecated = False
        self._completed = False

    @property
    def level(self) -> Level:
        """The level of the events."""
        return self._config.level

    @property
    def wants_answer(self) -> bool:
        """Whether events contain the object of the response."""
        return self.level >= Level.REQUEST_RESPONSE

    # --- Data from the handlers ---------------------------------------------------------------------------------------

    def annotate(self, key: str, value: str, level: str = "Metadata") -> None:
        """Adds an annotation if the level of the events is at least `level`; the first value of a key is kept."""
        if self.level >= _LEVELS[level]:
            with self._lock:
                self._annotations.setdefault(key, value)

    def record_impersonation(self, user: User, constraint: str) -> None:
        """Records the impersonated user; `constraint` is the verb that allowed it, "" for the legacy verb."""
        self._fields["impersonatedUser"] = user_info(user)
        if constraint:
            self._fields["authenticationMetadata"] = {"impersonationConstraint": constraint}

    def request_object(self, obj: Mapping[str, Any]) -> None:
        """Records the object of the request, in the version of the endpoint, with kind and apiVersion."""
        meta = obj.get("metadata") or {}
        reference = self._fields.setdefault("objectRef", {})
        for member in ("namespace", "name", "uid", "resourceVersion"):
            if not reference.get(member) and meta.get(member):
                reference[member] = meta[member]
        if self.level >= Level.REQUEST and "requestObject" not in self._fields:
            self._fields["requestObject"] = self._omit_managed_fields(obj)

    def request_patch(self, patch: Any) -> None:
        """Records the patch of the request."""
        if self.level >= Level.REQUEST:
            self._fields["requestObject"] = patch

    def record_deprecation(self) -> None:
        """Records that the API version is deprecated; the annotation is added at ResponseComplete."""
        self._deprecated = True

    def response_object(self, obj: Any) -> None:
        """Records the object of the response."""
        if isinstance(obj, dict) and obj.get("kind") == "Status" and obj.get("apiVersion") == "v1":
            self._fields["responseStatus"] = {"metadata": {}, **{key: obj[key] for key in _STATUS_MEMBERS if key in obj}}
        if self.level >= Level.REQUEST_RESPONSE:
            self._fields["responseObject"] = self._omit_managed_fields(obj)

    def _omit_managed_fields(self, obj: Any) -> Any:
        return _without_managed_fields(obj) if self._config.omit_managed_fields else obj

    # --- Stages -------------------------------------------------------------------------------------------------------

    def emit_request_received(self) -> None:
        """Emits RequestReceived."""
        self._stage("RequestReceived", self._received)

    def emit_response_started(self, code: int) -> None:
        """Emits ResponseStarted with a status code."""
        self._set_response_code(code)
        self._stage("ResponseStarted", self._clock.now())

    def emit_response_complete(self, code: int | None = None) -> None:
        """Emits ResponseComplete. May be called twice; the second call has no effect."""
        with self._lock:
            if self._completed:
                return
            self._completed = True
        if self._deprecated:
            self.annotate(_DEPRECATED, "true")
        if code is not None:
            self._set_response_code(code)
        self._stage("ResponseComplete", self._clock.now())

    def emit_panic(self, problem: str) -> None:
        """Emits Panic, after an unexpected error of the server."""
        self._completed = True
        self._fields["responseStatus"] = {
            "metadata": {},
            "status": "Failure",
            "message": f"APIServer panic'd: {problem}",
            "reason": "InternalError",
            "code": 500,
        }
        self._stage("Panic", self._clock.now())

    def emit_refusal(self, status: Mapping[str, Any]) -> None:
        """Emits ResponseStarted for a request that authentication refused."""
        self.response_object(status)
        self._stage("ResponseStarted", self._clock.now())

    def _set_response_code(self, code: int) -> None:
        known = self._fields.get("responseStatus") or {"metadata": {}}
        self._fields["responseStatus"] = {**known, "code": code}

    def _stage(self, stage: str, moment: datetime) -> None:
        if stage in self._config.omit_stages:
            return
        with self._lock:
            annotations = dict(sorted(self._annotations.items()))
        reference = self._fields.get("objectRef") or {}
        values = {
            **self._fields,
            "objectRef": {name: reference[name] for name in _REFERENCE if name in reference},
            "stage": stage,
            "requestReceivedTimestamp": print_micro_time(self._received),
            "stageTimestamp": print_micro_time(moment),
            "annotations": annotations,
        }
        self._emit({name: values[name] for name in _ORDER if values.get(name) not in _ABSENT or name in _ALWAYS})


#: The fields of an event in the order of the Go struct.
_ORDER: Final = (
    "kind",
    "apiVersion",
    "level",
    "auditID",
    "stage",
    "requestURI",
    "verb",
    "user",
    "impersonatedUser",
    "authenticationMetadata",
    "sourceIPs",
    "userAgent",
    "objectRef",
    "responseStatus",
    "requestObject",
    "responseObject",
    "requestReceivedTimestamp",
    "stageTimestamp",
    "annotations",
)
_REFERENCE: Final = ("resource", "namespace", "name", "uid", "apiGroup", "apiVersion", "resourceVersion", "subresource")
_ALWAYS: Final = frozenset({"user", "requestURI", "verb"})
_ABSENT: Final[Sequence[Any]] = (None, "", [], {})


def _request_fields(
    config: RequestAuditConfig, attributes: Attributes, user: User | None, facts: Mapping[str, Any]
) -> dict[str, Any]:
    agent = facts.get("userAgent", "")
    if len(agent) > _LONGEST_USER_AGENT:
        agent = agent[:_LONGEST_USER_AGENT] + _TRUNCATED
    fields: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": LEVELS[config.level],
        "verb": attributes.verb,
        "user": user_info(user) if user is not None else {},
        **facts,
        "userAgent": agent,
    }
    if attributes.is_resource_request:
        reference = {
            "resource": attributes.resource,
            "namespace": attributes.namespace,
            "name": attributes.name,
            "apiGroup": attributes.group,
            "apiVersion": attributes.version,
            "subresource": attributes.subresource,
        }
        fields["objectRef"] = {key: value for key, value in reference.items() if value}
    return fields


def _without_managed_fields(value: Any) -> Any:
    """Removes managedFields from an object, and from the objects of a list or a Table."""
    if not isinstance(value, dict):
        return value
    shown = dict(value)
    meta = value.get("metadata")
    if isinstance(meta, dict) and "managedFields" in meta:
        shown["metadata"] = {key: part for key, part in meta.items() if key != "managedFields"}
    if isinstance(value.get("items"), list):
        shown["items"] = [_without_managed_fields(item) for item in value["items"]]
    if isinstance(value.get("rows"), list):
        shown["rows"] = [
            {**row, "object": _without_managed_fields(row.get("object"))} if isinstance(row, dict) else row
            for row in value["rows"]
        ]
    return shown


# --- The auditor of a cluster -----------------------------------------------------------------------------------------


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
            user: none if authentication failed.
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
        if options.audit_log_format not in LOG_FORMATS:
            raise OptionError(f"invalid audit log format {options.audit_log_format}, allowed formats are {','.join(LOG_FORMATS)}")
        backends.append(LogBackend(options.audit_log_path, options.audit_log_format))
    if options.audit_webhook_config_file:
        backends.append(_webhook(options))
    return Auditor(read_policy(options.audit_policy_file), clock, *backends)


def _webhook(options: AuditOptions) -> WebhookBackend:
    from fakekube.apiserver.webhooks.transport import KubeconfigError, endpoint_of

    if options.audit_webhook_mode not in WEBHOOK_MODES:
        raise OptionError(f"invalid audit webhook mode {options.audit_webhook_mode}, allowed modes are {','.join(WEBHOOK_MODES)}")
    try:
        return WebhookBackend(endpoint_of(options.audit_webhook_config_file), options)
    except KubeconfigError as error:
        raise OptionError(f"--audit-webhook-config-file: {error}") from None
