"""Authorization webhooks: a remote service decides by SubjectAccessReviews.

A webhook is called only for requests that its match conditions (CEL) select, and decisions are cached for the
configured time. An error means no opinion or a denial, by the failure policy.

Specified by: k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go, k8s.io/apiserver/pkg/authorization/cel.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from fakekube.apimachinery.cel.compilation import ExpressionError, access_review
from fakekube.apimachinery.cel.cost.limits import PER_CALL_LIMIT
from fakekube.apimachinery.cel.errors import CostLimitExceeded, EvaluationError
from fakekube.apimachinery.cel.views import wrap_untyped
from fakekube.apimachinery.data import AUTHORIZATION
from fakekube.apis.rest.cluster_access import CallError, Decision
from fakekube.apiserver.auth.authorization import NO_OPINION, Attributes, ResolvedRules
from fakekube.apiserver.endpoints.request import User
from fakekube.base.clock import Clock
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import aggregate_errors

if TYPE_CHECKING:
    from fakekube.apimachinery.cel.evaluation import Program
    from fakekube.apiserver.webhooks.transport import Transport


_KIND: Final = "SubjectAccessReview"
_KEPT: Final = 8192
#: Decisions for attributes with longer texts than this are not cached.
_LARGEST_KEPT: Final = 10_000
#: The number of attempts, and the delay before the second one in seconds (then 1.5 times as long).
_STEPS, _DELAY, _FACTOR = 5, 0.5, 1.5


@dataclass(slots=True, frozen=True)
class WebhookConfiguration:
    """The configuration of a webhook. Times are seconds."""

    name: str
    kubeconfig: str
    """The path of a file."""
    version: str = "v1"
    """The version of the SubjectAccessReviews: v1 or v1beta1."""
    timeout: float = 30.0
    denies_on_failure: bool = False
    authorized_ttl: float = 300.0
    """The TTL of cached decisions that allow; 0 disables the cache."""
    unauthorized_ttl: float = 30.0
    match_conditions: Sequence[str] = ()
    """CEL; all must be true."""


class MatchConditionError(ValueError):
    """A match condition does not compile; has the error."""


class WebhookAuthorizer:
    """Authorizes requests by one webhook.

    Args:
        configuration: the webhook and its settings.
        clock: the clock of the cluster, for the expiration of cached decisions.

    Raises MatchConditionError, and webhooks.kubeconfig.KubeconfigError.
    """

    def __init__(self, configuration: WebhookConfiguration, clock: Clock) -> None:
        from fakekube.apiserver.webhooks.transport import endpoint_of

        self._configuration = configuration
        self._clock = clock
        endpoint = endpoint_of(configuration.kubeconfig)
        self._endpoint = replace(endpoint, url=f"{endpoint.url}?timeout={configuration.timeout:g}s")
        self._conditions = [(source, compiled_condition(source)) for source in configuration.match_conditions]
        self._transport: Transport | None = None
        self._lock = threading.Lock()
        self._kept: dict[bytes, tuple[float, Decision]] = {}

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Reports that a webhook cannot list rules."""
        return ResolvedRules((), True, "webhook authorizer does not support user rule resolution")

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        spec = review_spec(attributes)
        try:
            if not self._matches(spec):
                return NO_OPINION
        except MatchConditionError as error:
            return self._decide_on_error(str(error))
        key = orjson.dumps(spec)
        known = self._kept.get(key)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        try:
            status = self._call_webhook(spec)
        except CallError as error:
            return self._decide_on_error(str(error))
        decision = _decision(status)
        self._keep(key, attributes, decision, allowed=bool(status.get("allowed")))
        return decision

    def _decide_on_error(self, problem: str) -> Decision:
        return Decision(False, "", self._configuration.denies_on_failure, problem)

    def _keep(self, key: bytes, attributes: Attributes, decision: Decision, *, allowed: bool) -> None:
        configuration = self._configuration
        ttl = configuration.authorized_ttl if allowed else configuration.unauthorized_ttl
        if ttl <= 0 or _length(attributes) >= _LARGEST_KEPT:
            return
        with self._lock:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = (self._clock.monotonic() + ttl, decision)

    def _matches(self, spec: Mapping[str, Any]) -> bool:
        """Reports whether all match conditions are true. Raises MatchConditionError if none is false and one fails."""
        problems: list[str] = []
        for source, condition in self._conditions:
            value: Any
            try:
                value, _ = condition.evaluate({"request": wrap_untyped(_request(spec))}, PER_CALL_LIMIT)
            except CostLimitExceeded as error:
                value = EvaluationError(str(error))
            if isinstance(value, EvaluationError):
                problems.append(f"cel evaluation error: expression '{source}' resulted in error: {value}")
            elif value is not True:
                return False
        if problems:
            raise MatchConditionError(aggregate_errors(problems))
        return True

    def _call_webhook(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Calls the webhook and returns the status of the review. Raises CallError."""
        from fakekube.apiserver.webhooks.caller import review_in
        from fakekube.apiserver.webhooks.transport import Transport

        version = self._configuration.version
        api_version = f"{AUTHORIZATION}/{version}"
        if version == "v1beta1":
            spec = {("group" if key == "groups" else key): value for key, value in spec.items()}
        review = {"kind": _KIND, "apiVersion": api_version, "metadata": {}, "spec": spec, "status": {"allowed": False}}
        if self._transport is None:
            self._transport = Transport()
        delay = _DELAY
        for step in range(_STEPS):
            answer = self._transport.post(self._endpoint, orjson.dumps(review) + b"\n", self._configuration.timeout)
            if answer.status not in (429, 500, 504) or step == _STEPS - 1:
                break
            time.sleep(delay)
            delay *= _FACTOR
        status: Mapping[str, Any] = review_in(answer, api_version, _KIND).get("status") or {}
        return status


def _decision(status: Mapping[str, Any]) -> Decision:
    reason, allowed, denied = status.get("reason", ""), bool(status.get("allowed")), bool(status.get("denied"))
    if allowed and denied:
        return Decision(False, reason, True, "webhook subject access review returned both allow and deny response")
    return Decision(allowed, reason, denied)


def _length(attributes: Attributes) -> int:
    """Returns the total length of the texts that the user controls."""
    texts = (
        attributes.namespace,
        attributes.verb,
        attributes.group,
        attributes.version,
        attributes.resource,
        attributes.subresource,
        attributes.name,
        attributes.path,
    )
    return sum(map(len, texts))


# --- The review -------------------------------------------------------------------------------------------------------


_FIELD_OPERATORS: Final = {"=": "In", "!=": "NotIn"}
_LABEL_OPERATORS: Final = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
}


def review_spec(attributes: Attributes) -> dict[str, Any]:
    """Returns the spec of the SubjectAccessReview that is sent."""
    user = attributes.user
    spec: dict[str, Any] = {}
    if attributes.is_resource_request:
        spec["resourceAttributes"] = _resource_attributes(attributes)
    else:
        spec["nonResourceAttributes"] = _present({"path": attributes.path, "verb": attributes.verb})
    about = {
        "user": user.name,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in sorted(user.extra.items())},
        "uid": user.uid,
    }
    return {**spec, **_present(about)}


def _resource_attributes(attributes: Attributes) -> dict[str, Any]:
    found: dict[str, Any] = _present(
        {
            "namespace": attributes.namespace,
            "verb": attributes.verb,
            "group": attributes.group,
            "version": attributes.version,
            "resource": attributes.resource,
            "subresource": attributes.subresource,
            "name": attributes.name,
        }
    )
    if attributes.selectors is None:
        return found
    fields = [
        {"key": one.field, "operator": _FIELD_OPERATORS[one.operator], "values": [one.value]}
        for one in attributes.selectors.fields
    ]
    labels = [
        {"key": one.key, "operator": _LABEL_OPERATORS[one.operator], **({"values": list(one.values)} if one.values else {})}
        for one in attributes.selectors.labels
        if one.operator in _LABEL_OPERATORS
    ]
    if fields:
        found["fieldSelector"] = {"requirements": fields}
    if labels:
        found["labelSelector"] = {"requirements": labels}
    return found


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


_RESOURCE_TEXTS: Final = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


def _request(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the spec as CEL expressions see it: strings are set even if empty."""
    found: dict[str, Any] = {
        "user": spec.get("user", ""),
        "groups": spec.get("groups", []),
        "uid": spec.get("uid", ""),
        "extra": spec.get("extra", {}),
    }
    resource = spec.get("resourceAttributes")
    if resource is not None:
        selectors = {key: resource[key] for key in ("fieldSelector", "labelSelector") if key in resource}
        found["resourceAttributes"] = {**{name: resource.get(name, "") for name in _RESOURCE_TEXTS}, **selectors}
    if "nonResourceAttributes" in spec:
        path = spec["nonResourceAttributes"]
        found["nonResourceAttributes"] = {"path": path.get("path", ""), "verb": path.get("verb", "")}
    return found


def compiled_condition(source: str) -> Program:
    """Compiles a match condition. Raises MatchConditionError."""
    try:
        found = access_review().compile(source)
    except ExpressionError as error:
        raise MatchConditionError(str(error)) from None
    if found.type.name != "bool":
        raise MatchConditionError(f"must evaluate to bool but got {found.type.name or go_quote('')}")
    return found.program
