"""The compiled webhooks of all configurations of one kind, and the call of one webhook.

After a failure to call a webhook (`CallFailedError`) its failurePolicy decides whether the request is denied; every other
error denies the request.

Invariant: the webhooks are those in the current state of the store. A configuration is compiled once for each of its versions.

Specified by: k8s.io/apiserver/pkg/admission/configuration, pkg/admission/plugin/webhook (accessors.go,
{mutating,validating}/dispatcher.go: callHook, errors/statuserror.go).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

from fakekube.apimachinery.data import ADMISSION_REGISTRATION
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apis.rest.cluster_access import Call, CallError, ClusterAccess
from fakekube.apis.validation.names import label_key
from fakekube.apis.validation.webhooks import NO_SIDE_EFFECTS, REVIEW_VERSIONS
from fakekube.apiserver.admission.chain import Attributes
from fakekube.apiserver.admission.matching import Criteria, Match, VersionedAttributes
from fakekube.apiserver.webhooks.admission.admission_review import InvalidResponseError, Response, response_in, review_of
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

if TYPE_CHECKING:
    from fakekube.apiserver.admission.cel import MatchConditions


Begin = Callable[..., Callable[[], Object]]
"""The type of `apis.rest.cluster_access.Call.begin`."""


class CallFailedError(Exception):
    """A webhook could not be called, or its response is invalid; has the message of kube-apiserver."""

    def __init__(self, webhook: Webhook, reason: str) -> None:
        super().__init__(f"failed calling webhook {go_quote(webhook.name)}: {reason}")


class _DeniedError(StatusError):
    """A webhook denied the request: the response is the Status of the webhook, with defaults for missing fields."""

    def __init__(self, webhook: Webhook, result: Object | None) -> None:
        given = result or {}
        code, reason, message = given.get("code") or 0, given.get("reason") or "", given.get("message") or ""
        denied = f"admission webhook {go_quote(webhook.name)} denied the request"
        text = f"{denied}: {message or reason}" if message or reason else f"{denied} without explanation"
        super().__init__(code if code >= 400 else 400, reason, text, given.get("details"))
        outcome = given.get("status") or ""
        self._outcome = "Failure" if outcome in ("", "Success") else outcome
        self._metadata = given.get("metadata") or {}

    def status(self) -> dict[str, Any]:
        body = {**super().status(), "metadata": self._metadata, "status": self._outcome}
        printed: dict[str, Any] = printing.normalise(type_of("k8s.io/apimachinery/pkg/apis/meta/v1.Status"), body)
        return printed


def matching(webhook: Webhook, attributes: Attributes) -> Match | None:
    """Returns how a webhook matches a request (with the version it is called in), else None. Raises StatusError."""
    match = webhook.criteria.match(attributes)
    if match is None or webhook.conditions is None:
        return match
    from fakekube.apiserver.admission.cel import Activation, MatchConditionError, authorizer_of

    versioned = VersionedAttributes(attributes, match.resource)
    try:
        activation = Activation(versioned, attributes.resource, authorizer_of(attributes.context))
        return match if webhook.conditions.match(activation) else None
    except MatchConditionError as error:
        resource = attributes.resource
        raise status.forbidden(resource.group, resource.plural, attributes.name, str(error)) from None


class Calls:
    """Calls admission webhooks.

    Args:
        call: sends the requests.
        mutating: whether a response may have a patch.
    """

    def __init__(self, call: Call, *, mutating: bool) -> None:
        self._call, self._mutating = call, mutating

    def ask(self, webhook: Webhook, match: Match, versioned: VersionedAttributes) -> Response:
        """Calls a webhook and returns the response if it allows the request.

        Raises:
            CallFailedError: the webhook could not be called, or its response is invalid.
            StatusError: the webhook denied the request or does not support dry run, or the request timed out.
        """
        return self.begin(webhook, match, versioned, self._call_now)()

    def begin(
        self, webhook: Webhook, match: Match, versioned: VersionedAttributes, begin: Begin | None = None
    ) -> Callable[[], Response]:
        """Begins a call. Returns a function that waits for the response like `ask` and must be called."""
        attributes = versioned.attributes
        if attributes.context.dry_run and not webhook.supports_dry_run:
            return _raising(status.bad_request(f"admission webhook {go_quote(webhook.name)} does not support dry run"))
        version = webhook.review_version
        if version is None:
            problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            return _raising(CallFailedError(webhook, f"could not create admission objects: {problem}"))
        uid = str(uuid4())
        review = review_of(versioned, match, version, uid)
        answer = (begin or self._call.begin)(webhook.spec["clientConfig"], review, timeout=_timeout(webhook, attributes))
        return lambda: self._response(webhook, attributes, answer, version, uid)

    def _call_now(self, client_config: Mapping[str, Any], review: Object, *, timeout: float) -> Callable[[], Object]:
        return lambda: self._call(client_config, review, timeout=timeout)

    def _response(
        self, webhook: Webhook, attributes: Attributes, answer: Callable[[], Object], version: str, uid: str
    ) -> Response:
        try:
            response = response_in(answer(), version, uid, mutating=self._mutating)
        except CallError as error:
            if time.monotonic() >= attributes.context.deadline:
                raise status.allotted_timeout() from None
            raise CallFailedError(webhook, f"failed to call webhook: {error}") from None
        except InvalidResponseError as error:
            raise CallFailedError(webhook, f"received invalid webhook response: {error}") from None
        for key, value in response.audit_annotations.items():
            if not label_key(f"{webhook.name}/{key}"):
                attributes.add_annotation(f"{webhook.name}/{key}", value)
        attributes.context.warnings.extend(response.warnings)
        if not response.allowed:
            raise _DeniedError(webhook, response.result)
        return response


def _raising(error: Exception) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail


def _timeout(webhook: Webhook, attributes: Attributes) -> float:
    """Returns the timeout of a call in seconds: that of the webhook, or the rest of the time of the request if it is shorter."""
    return max(min(webhook.timeout, attributes.context.deadline - time.monotonic()), 0)


_DEFAULT_TIMEOUT = 10


@dataclass
class Webhook:
    """One webhook of a configuration."""

    configuration: str
    """The name of its configuration."""
    uid: str
    """Unique among the webhooks of the cluster."""
    spec: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @cached_property
    def criteria(self) -> Criteria:
        """The requests that it is called for."""
        return Criteria.of_webhook(self.spec)

    @property
    def fails_open(self) -> bool:
        """Whether a request is allowed when the webhook cannot be called."""
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def timeout(self) -> int:
        """The timeout of a call in seconds."""
        return self.spec.get("timeoutSeconds") or _DEFAULT_TIMEOUT

    @property
    def supports_dry_run(self) -> bool:
        return self.spec.get("sideEffects") in NO_SIDE_EFFECTS

    @property
    def reinvocable(self) -> bool:
        """Whether it is called again when a later plugin has changed the object."""
        return self.spec.get("reinvocationPolicy") == "IfNeeded"

    @cached_property
    def conditions(self) -> MatchConditions | None:
        """The compiled matchConditions; None if there are none."""
        given = self.spec.get("matchConditions")
        if not given:
            return None
        from fakekube.apiserver.admission.cel import MatchConditions

        return MatchConditions(given, self.spec.get("failurePolicy") or "Fail")

    @cached_property
    def review_version(self) -> str | None:
        """The first of its versions of AdmissionReview that is supported; None if none is."""
        known = (version for version in self.spec.get("admissionReviewVersions") or () if version in REVIEW_VERSIONS)
        return next(known, None)


class Configurations:
    """The mutating or the validating webhooks of a cluster.

    Args:
        plural: the resource of the configurations.
    """

    def __init__(self, plural: str) -> None:
        self._plural = plural
        self._known: tuple[int, Sequence[Webhook]] = (-1, ())
        """The webhooks at a revision; one value, because requests read and replace it at the same time."""

    def webhooks(self, services: ClusterAccess) -> Sequence[Webhook]:
        """Returns all webhooks, ordered by the names of their configurations."""
        revision, (known, webhooks) = services.last_change(ADMISSION_REGISTRATION, self._plural), self._known
        if revision != known:
            found = services.list(ADMISSION_REGISTRATION, self._plural)
            webhooks = [hook for obj in found for hook in _webhooks(obj)]
            self._known = revision, webhooks
        return webhooks


def _webhooks(configuration: Object) -> list[Webhook]:
    name = configuration["metadata"]["name"]
    seen: Counter[str] = Counter()
    found = []
    for spec in configuration.get("webhooks") or ():
        found.append(Webhook(name, f"{name}/{spec['name']}/{seen[spec['name']]}", spec))
        seen[spec["name"]] += 1
    return found
