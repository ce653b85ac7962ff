"""Calls a webhook as kube-apiserver's REST client does, and decodes the review in its response.

Specified by: k8s.io/apiserver/pkg/util/webhook/client.go; k8s.io/client-go/rest/request.go (transformResponse, Into);
k8s.io/apimachinery/pkg/api/errors (NewGenericServerResponse).
"""

from __future__ import annotations

import posixpath
import re
import threading
from base64 import b64decode
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from math import ceil
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit

from fakekube.apimachinery.codecs import DecodeError as CodecError
from fakekube.apimachinery.codecs import json, yaml
from fakekube.apimachinery.data import AUTHORIZATION, DEFAULT
from fakekube.apimachinery.errors.status import GENERIC_MESSAGES, not_registered, uninterpretable
from fakekube.apimachinery.schema import decode as schema_decode
from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apis.rest.cluster_access import CallError, CallTimeoutError
from fakekube.apis.validation.webhooks import SERVICE_PORT
from fakekube.apiserver.webhooks.admission.admission_review import TypeMetaError, type_meta
from fakekube.apiserver.webhooks.services import ServiceResolver
from fakekube.apiserver.webhooks.transport import UNREADABLE, Answer, Endpoint, Transport
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

#: The timeout of the REST client in seconds; an upper bound of the timeout of a webhook.
_CLIENT_TIMEOUT = 30.0

#: The maximum number of bytes of a response body in an error message.
_MAXIMUM_MESSAGE_BYTES = 2048

#: The kinds of the core group that are registered in the scheme of every such client.
_META_KINDS = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})


class CallObservation(Protocol):
    """Observes one call, and may change it."""

    has_faults: bool
    """Whether `perform` may change the call or delay it."""

    def perform(self, send: Callable[[], Answer]) -> Answer:
        """Sends the request with `send`, or returns a response in its place. Raises CallError."""


Observe = Callable[[Endpoint, bytes, Object, float], CallObservation]
"""Called before each call with the endpoint, the body, the review and the timeout in seconds."""


class Caller:
    """Calls the webhooks of one cluster; implements `apis.rest.cluster_access.Call`."""

    def __init__(self, resolver: ServiceResolver, observe: Observe | None = None) -> None:
        self._resolver = resolver
        self._transport = Transport()
        self.observe = observe
        """Called before every call; None if calls are not observed."""

    def close(self) -> None:
        """Closes the idle connections."""
        self._transport.close()

    def __call__(self, client_config: Mapping[str, Any], review: Object, *, timeout: float = _CLIENT_TIMEOUT) -> Object:
        """See `apis.rest.cluster_access.Call`."""
        endpoint = self._endpoint(client_config, timeout)
        body, allowed, observed = self._prepare(endpoint, review, timeout)
        send = partial(self._transport.post, endpoint, body, allowed)
        return self._review(send if observed is None else partial(observed.perform, send), review, timeout)

    def begin(
        self, client_config: Mapping[str, Any], review: Object, *, timeout: float = _CLIENT_TIMEOUT
    ) -> Callable[[], Object]:
        """See `apis.rest.cluster_access.Call`."""
        try:
            endpoint = self._endpoint(client_config, timeout)
        except CallError as error:
            return partial(_raise, error)
        body, allowed, observed = self._prepare(endpoint, review, timeout)
        send = partial(self._transport.post, endpoint, body, allowed)
        if observed is not None and observed.has_faults:
            return partial(self._review, _in_a_thread(partial(observed.perform, send)), review, timeout)
        answer = self._transport.begin(endpoint, body, allowed) or _in_a_thread(send)
        return partial(self._review, answer if observed is None else partial(observed.perform, answer), review, timeout)

    def _prepare(self, endpoint: Endpoint, review: Object, timeout: float) -> tuple[bytes, float, CallObservation | None]:
        """Returns the body of a call, its timeout in seconds, and its observation, if calls are observed."""
        body, allowed = json.dumps(review) + b"\n", min(timeout, _CLIENT_TIMEOUT)
        return body, allowed, None if self.observe is None else self.observe(endpoint, body, review, allowed)

    @staticmethod
    def _review(send: Callable[[], Answer], review: Object, timeout: float) -> Object:
        """Waits for the response and decodes the review in it. Raises CallError."""
        try:
            answer = send()
        except CallTimeoutError as error:
            if timeout < _CLIENT_TIMEOUT:
                raise
            reading = str(error).startswith(UNREADABLE)
            when = "or context cancellation while reading body" if reading else "exceeded while awaiting headers"
            raise CallTimeoutError(f"{error} (Client.Timeout {when})") from None
        return review_in(answer, review["apiVersion"], review["kind"])

    def _endpoint(self, client_config: Mapping[str, Any], timeout: float) -> Endpoint:
        bundle = b64decode(client_config.get("caBundle") or "")
        authorities = bundle if bundle.strip() else b""
        query = f"?timeout={ceil(timeout)}s"
        service = client_config.get("service")
        if service is None:
            parts = urlsplit(client_config["url"])
            return Endpoint(f"{parts.scheme}://{parts.netloc}{_clean_path(parts.path)}{query}", None, authorities)
        namespace, name, port = service["namespace"], service["name"], service.get("port") or SERVICE_PORT
        url = f"https://{name}.{namespace}.svc:{port}{_clean_path(service.get('path') or '')}{query}"
        try:
            address = self._resolver.resolve(namespace, name, port)
            return Endpoint(url, address, authorities or self._resolver.authorities(namespace, name))
        except CallError as error:
            raise CallError(f"Post {go_quote(url)}: {error}") from None


def _raise(error: CallError) -> NoReturn:
    raise error


def _in_a_thread(send: Callable[[], Answer]) -> Callable[[], Answer]:
    """Runs `send` in a thread. Returns a function that waits for its end and returns or raises its result."""
    done: Future[Answer] = Future()

    def run() -> None:
        try:
            done.set_result(send())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="fakekube-webhook", daemon=True).start()
    return done.result


def _clean_path(path: str) -> str:
    cleaned = posixpath.normpath(f"/{path}")
    return re.sub(r"^/+", "/", cleaned)


# --- The response -----------------------------------------------------------------------------------------------------


def review_in(answer: Answer, api_version: str, kind: str) -> Object:
    """Decodes the review in the response of a webhook. Raises CallError."""
    return _decode(body_of(answer), api_version, kind)


def body_of(answer: Answer) -> bytes:
    """Returns the body of a successful response. Raises CallError."""
    media_type = _media_type(answer)
    if not 200 <= answer.status <= 206 and answer.status != 101:
        raise CallError(_status_message(answer, media_type) or _message(answer, media_type))
    if not answer.body:
        content_type = answer.headers.get("content-type") or "application/json"
        raise CallError(f"0-length response with status code: {answer.status} and content type: {content_type}")
    return answer.body


def _media_type(answer: Answer) -> str:
    content_type = answer.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if not content_type:
        return ""
    if not media_type or media_type.startswith("/"):
        raise CallError("Internal error occurred: mime: no media type")
    return media_type


def generic_message(status: int) -> str:
    """Returns the message of client-go for a response whose body says nothing (NewGenericServerResponse)."""
    return GENERIC_MESSAGES.get(status, f"the server responded with the status code {status} but did not return more information")


def _message(answer: Answer, media_type: str) -> str:
    """Returns the error message for a status code that is not one of success."""
    status, text = answer.status, "unknown"
    if not media_type or media_type.startswith("text/"):
        text = answer.body[:_MAXIMUM_MESSAGE_BYTES].decode(errors="replace").strip()
    if status in (403, 415) or (status == 406 and text not in ("", "unknown")):
        return text
    if status in GENERIC_MESSAGES:
        return generic_message(status)
    if status >= 500:
        return f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
    return generic_message(status)


def _status_message(answer: Answer, media_type: str) -> str:
    """Returns the message if the body is a Status of a failure, else "". Its apiVersion may be missing."""
    if not answer.body:
        return ""
    try:
        value = _parse(answer.body)
    except CallError:
        return ""
    if not isinstance(value, dict) or value.get("kind") != "Status" or value.get("apiVersion") not in (None, "", "v1"):
        return ""
    return str(value.get("message", "")) if value.get("status") == "Failure" else ""


def _parse(body: bytes) -> Any:
    """Parses a body as JSON, or else as YAML; the Content-Type is ignored. Raises CallError."""
    try:
        value, _ = json.loads(body)
    except CodecError as error:
        if body.lstrip()[:1] == b"{":
            raise CallError(uninterpretable(error)) from None
        try:
            value, _ = yaml.loads(body)
        except CodecError as problem:
            raise CallError(str(problem)) from None
    return value


def _decode(body: bytes, api_version: str, kind: str) -> Object:
    """Decodes a body as the type of the expected kind, after a check of its own kind and apiVersion. Raises CallError."""
    value = _parse(body)
    if value is None:
        value = {}
    try:
        _check_kind(*type_meta(value), api_version, kind)
    except TypeMetaError as error:
        raise CallError(str(error)) from None
    group, _, version = api_version.rpartition("/")
    type_ = builtins(DEFAULT).kind_type(group, version, kind) or builtins(DEFAULT).kind_type(group, "v1", kind)
    assert type_ is not None
    try:
        decoded: Object = schema_decode.decode(type_, value)
    except schema_decode.DecodeError as error:
        raise CallError(str(error)) from None
    return decoded


def _check_kind(claimed: str, claimed_version: str, api_version: str, kind: str) -> None:
    """Raises CallError if the body has another kind or apiVersion than expected; empty ones default to the expected ones."""
    claimed, claimed_version = claimed or kind, claimed_version or api_version
    if (claimed, claimed_version) == (kind, api_version):
        return
    group = api_version.rpartition("/")[0]
    claimed_group, _, short = claimed_version.rpartition("/")
    known = short in ("v1", "v1beta1") and (
        (claimed_group == group and claimed in (kind, *_KINDS_BESIDE.get(group, ())))
        or (not claimed_group and claimed in _META_KINDS)
    )
    if group == AUTHORIZATION:
        known = builtins(DEFAULT).kind_type(claimed_group, short, claimed) is not None
    if known:
        wanted = api_version.rpartition("/")[2]
        raise CallError(f"converting ({short}.{claimed}) to ({wanted}.{kind}): unknown conversion")
    raise CallError(not_registered(claimed, claimed_version))


_KINDS_BESIDE = {"apiextensions.k8s.io": ("CustomResourceDefinition", "CustomResourceDefinitionList")}
